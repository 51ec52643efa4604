/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include "catalog/meta.h"
#include "catalog/tableinfo.h"
#include "hfile/read_ctx.h"
#include "proto/hbase.pb-c.h"
#include "region/region_scanner.h"

void world_init(world *w, uint64_t seed, const rq_sim_options *options)
{
    memset(w, 0, sizeof *w);
    assert_int_equal(rq_sim_new(seed, options, &w->sim), RQ_OK);
    w->env = rq_sim_env(w->sim);
    assert_int_equal(rq_config_new(&w->config), RQ_OK);
    w->start_code = 1700000000000;
}

void world_init_real(world *w, rq_env *env)
{
    memset(w, 0, sizeof *w);
    w->env = env;
    assert_int_equal(rq_config_new(&w->config), RQ_OK);
    w->start_code = 1700000000000;
}

static void region_failed(void *context, rq_region *r, const rq_error *why)
{
    world *w = context;
    if (w->catalog != NULL) rq_catalog_region_failed(w->catalog, r, why);
}

static void region_grown(void *context, rq_region *r)
{
    world *w = context;
    if (w->has_catalog) rq_catalog_region_grown(w->catalog, r);
}

rq_err world_open(world *w)
{
    w->why = (rq_error){0};
    rq_err rc = rq_root_open(w->env, &w->root, &w->why);
    if (rc != RQ_OK) return rc;
    rq_engine_options engine = {
        .config = w->config,
        .region_failed = region_failed,
        .region_grown = region_grown,
        .context = w,
    };
    rc = rq_engine_open(w->env, &engine, &w->engine, &w->why);
    if (rc == RQ_OK) {
        w->start_code++;
        rq_catalog_options options = {
            .server = {.host = "localhost", .port = 16020, .start_code = w->start_code},
            .master = {.host = "localhost", .port = 16000, .start_code = w->start_code},
            .config = w->config,
        };
        rc = rq_catalog_open(w->engine, w->root, &options, &w->catalog, &w->why);
        w->has_catalog = rc == RQ_OK;
        if (rc != RQ_OK) {
            w->catalog = NULL;
            (void)rq_engine_close(w->engine, false, NULL);
        }
    }
    if (rc != RQ_OK) {
        w->engine = NULL;
        rq_root_close(w->root);
        w->root = NULL;
    }
    return rc;
}

rq_err world_close(world *w, bool clean)
{
    if (w->root == NULL) return RQ_OK;
    rq_error why = {0};
    rq_err rc = rq_catalog_close(w->catalog, clean, &why);
    w->has_catalog = false;
    rq_err more = rq_engine_close(w->engine, clean && rc == RQ_OK, &why);
    if (clean && rc == RQ_OK && more == RQ_OK) rq_root_stopped_cleanly(w->root);
    rq_root_close(w->root);
    w->catalog = NULL;
    w->engine = NULL;
    w->root = NULL;
    if (w->sim != NULL) rq_sim_run(w->sim); /* helpers that never began */
    while (w->pending != NULL) {
        world_pending *next = w->pending->next;
        free(w->pending);
        w->pending = next;
    }
    w->why = why;
    return rc != RQ_OK ? rc : more;
}

void world_clear(world *w)
{
    (void)world_close(w, false);
    rq_config_free(w->config);
    if (w->sim != NULL) rq_sim_free(w->sim);
}

/* --- descriptors ------------------------------------------------------------------------------ */

static ProtobufCBinaryData bytes_of(rq_slice s)
{
    return (ProtobufCBinaryData){s.len, (uint8_t *)(uintptr_t)s.ptr};
}

static Pb__BytesBytesPair *pair_of(rq_arena *a, char *text)
{
    Pb__BytesBytesPair *p = rq_arena_alloc(a, sizeof *p);
    pb__bytes_bytes_pair__init(p);
    char *eq = strchr(text, '=');
    assert_non_null(eq);
    *eq = '\0';
    p->first = bytes_of(rq_slice_cstr(text));
    p->second = bytes_of(rq_slice_cstr(eq + 1));
    return p;
}

static Pb__ColumnFamilySchema *family_of(rq_arena *a, char *text)
{
    Pb__ColumnFamilySchema *f = rq_arena_alloc(a, sizeof *f);
    pb__column_family_schema__init(f);
    char *colon = strchr(text, ':');
    if (colon != NULL) *colon = '\0';
    f->name = bytes_of(rq_slice_cstr(text));
    f->attributes = rq_arena_calloc(a, 16, sizeof *f->attributes);
    char *save;
    for (char *t = colon == NULL ? NULL : strtok_r(colon + 1, ",", &save); t != NULL;
         t = strtok_r(NULL, ",", &save))
        f->attributes[f->n_attributes++] = pair_of(a, t);
    return f;
}

static rq_slice pack(rq_arena *a, const ProtobufCMessage *m)
{
    uint8_t *p = rq_arena_alloc(a, protobuf_c_message_get_packed_size(m));
    return rq_slice_of(p, protobuf_c_message_pack(m, p));
}

static void split_name(const char *table, rq_slice *ns, rq_slice *q)
{
    const char *colon = strchr(table, ':');
    *ns = colon == NULL ? RQ_SLICE_LIT("default") : rq_slice_of(table, (size_t)(colon - table));
    *q = rq_slice_cstr(colon == NULL ? table : colon + 1);
}

rq_slice world_schema(rq_arena *a, const char *table, const char *families)
{
    Pb__TableName name = PB__TABLE_NAME__INIT;
    Pb__TableSchema m = PB__TABLE_SCHEMA__INIT;
    rq_slice ns, q;
    split_name(table, &ns, &q);
    name.namespace_ = bytes_of(ns);
    name.qualifier = bytes_of(q);
    m.table_name = &name;
    m.attributes = rq_arena_calloc(a, 16, sizeof *m.attributes);
    m.column_families = rq_arena_calloc(a, 16, sizeof *m.column_families);
    char *text = rq_arena_cstr(a, rq_slice_cstr(families)), *save;
    for (char *t = strtok_r(text, " ", &save); t != NULL; t = strtok_r(NULL, " ", &save)) {
        if (t[0] == '@')
            m.attributes[m.n_attributes++] = pair_of(a, t + 1);
        else
            m.column_families[m.n_column_families++] = family_of(a, t);
    }
    return pack(a, &m.base);
}

/* --- verbs ------------------------------------------------------------------------------------ */

static void submitted(rq_ddl *d)
{
    world_pending *p = RQ_CONTAINER_OF(d, world_pending, ddl);
    p->done = true;
}

bool world_settle(world *w)
{
    for (int i = 0; i < 3000; i++) {
        rq_sim_run(w->sim);
        rq_arena a;
        rq_arena_init(&a);
        rq_procedure *list;
        size_t count, open = 0;
        assert_int_equal(rq_catalog_procedures(w->catalog, &a, &list, &count), RQ_OK);
        for (size_t k = 0; k < count; k++)
            open += !list[k].finished;
        rq_arena_clear(&a);
        if (open == 0) return true;
        rq_sim_advance(w->sim, 100000000);
    }
    return false;
}

/* Waits until the procedure has finished. When the power has gone that may be never: then it is
 * left to the end of the world. */
static rq_err submit(world *w, rq_ddl *d)
{
    if (w->sim == NULL) {
        w->why = (rq_error){0};
        d->nonce = w->nonce;
        d->nonce_group = w->nonce == 0 ? 0 : 7;
        rq_err rc = rq_catalog_ddl_sync(w->catalog, d, &w->why);
        w->proc = d->proc_id;
        return rc;
    }
    world_pending *p = calloc(1, sizeof *p);
    assert_non_null(p);
    w->why = (rq_error){0};
    p->ddl = *d;
    p->ddl.user = RQ_SLICE_LIT("tester");
    p->ddl.nonce = w->nonce;
    p->ddl.nonce_group = w->nonce == 0 ? 0 : 7;
    p->ddl.wait_finished = true;
    p->ddl.submitted = submitted;
    if (w->at_work != NULL) w->at_work(true);
    rq_catalog_submit(w->catalog, &p->ddl);
    while (!p->done) {
        if (rq_sim_step(w->sim)) continue;
        if (rq_sim_is_cut(w->sim)) {
            p->next = w->pending;
            w->pending = p;
            return RQ_E_IO;
        }
        rq_sim_advance(w->sim, 10000000);
    }
    if (w->at_work != NULL) w->at_work(false);
    rq_err rc = p->ddl.rc;
    w->why = p->ddl.why;
    w->proc = p->ddl.proc_id;
    free(p);
    return rc;
}

rq_err world_create(world *w, const char *table, const char *families, const char *splits)
{
    rq_arena a;
    rq_arena_init(&a);
    rq_ddl d = {.kind = RQ_DDL_CREATE_TABLE, .descriptor = world_schema(&a, table, families)};
    split_name(table, &d.ns, &d.qualifier);
    rq_slice keys[64];
    char *text = splits == NULL ? NULL : rq_arena_cstr(&a, rq_slice_cstr(splits)), *save;
    for (char *t = text == NULL ? NULL : strtok_r(text, " ", &save); t != NULL;
         t = strtok_r(NULL, " ", &save))
        keys[d.split_key_count++] = rq_slice_cstr(t);
    d.split_keys = keys;
    rq_err rc = submit(w, &d);
    rq_arena_clear(&a);
    return rc;
}

rq_err world_modify(world *w, const char *table, const char *families)
{
    rq_arena a;
    rq_arena_init(&a);
    rq_ddl d = {.kind = RQ_DDL_MODIFY_TABLE, .descriptor = world_schema(&a, table, families)};
    split_name(table, &d.ns, &d.qualifier);
    rq_err rc = submit(w, &d);
    rq_arena_clear(&a);
    return rc;
}

rq_err world_table(world *w, rq_ddl_kind kind, const char *table)
{
    rq_ddl d = {.kind = kind};
    split_name(table, &d.ns, &d.qualifier);
    return submit(w, &d);
}

rq_err world_truncate(world *w, const char *table, bool preserve)
{
    rq_ddl d = {.kind = RQ_DDL_TRUNCATE_TABLE, .preserve_splits = preserve};
    split_name(table, &d.ns, &d.qualifier);
    return submit(w, &d);
}

static bool encoded_of(world *w, const char *table, const char *row,
                       char ret[RQ_ENCODED_NAME_LEN + 1])
{
    rq_epoch_member m = {0};
    rq_epoch_pin(w->env->epoch, &m);
    const rq_catalog_region *r;
    w->why = (rq_error){0};
    rq_err rc =
        rq_catalog_locate(w->catalog, rq_slice_cstr(table), rq_slice_cstr(row), &r, &w->why);
    if (rc == RQ_OK) memcpy(ret, r->info->encoded, RQ_ENCODED_NAME_LEN + 1);
    rq_epoch_unpin(w->env->epoch, &m);
    return rc == RQ_OK;
}

rq_err world_split(world *w, const char *table, const char *row, const char *at)
{
    /* Outlives a submission the power cut off. */
    static char encoded[RQ_ENCODED_NAME_LEN + 1];
    if (!encoded_of(w, table, row, encoded)) return RQ_E_TABLE_NOT_FOUND;
    rq_slice key = at == NULL ? (rq_slice){NULL, 0} : rq_slice_cstr(at);
    rq_ddl d = {.kind = RQ_DDL_SPLIT_REGION,
                .family = rq_slice_cstr(encoded),
                .split_keys = &key,
                .split_key_count = 1};
    split_name(table, &d.ns, &d.qualifier);
    return submit(w, &d);
}

rq_err world_truncate_region(world *w, const char *table, const char *row)
{
    static char encoded[RQ_ENCODED_NAME_LEN + 1]; /* as above */
    if (!encoded_of(w, table, row, encoded)) return RQ_E_TABLE_NOT_FOUND;
    rq_ddl d = {.kind = RQ_DDL_TRUNCATE_REGION, .family = rq_slice_cstr(encoded)};
    split_name(table, &d.ns, &d.qualifier);
    return submit(w, &d);
}

rq_err world_merge(world *w, const char *table, const char *rows, bool forcible)
{
    rq_arena a;
    rq_arena_init(&a);
    char encoded[16][RQ_ENCODED_NAME_LEN + 1];
    rq_slice names[16];
    rq_ddl d = {.kind = RQ_DDL_MERGE_REGIONS, .split_keys = names, .forcible = forcible};
    split_name(table, &d.ns, &d.qualifier);
    char *text = rq_arena_cstr(&a, rq_slice_cstr(rows)), *save;
    rq_err rc = RQ_OK;
    for (char *t = strtok_r(text, " ", &save); t != NULL; t = strtok_r(NULL, " ", &save)) {
        if (!encoded_of(w, table, t, encoded[d.split_key_count])) rc = RQ_E_TABLE_NOT_FOUND;
        names[d.split_key_count] = rq_slice_cstr(encoded[d.split_key_count]);
        d.split_key_count++;
    }
    if (rc == RQ_OK) rc = submit(w, &d);
    rq_arena_clear(&a);
    return rc;
}

rq_err world_clean(world *w, const char *table)
{
    rq_ddl d = {.kind = RQ_DDL_CLEAN_PARENTS};
    split_name(table, &d.ns, &d.qualifier);
    return submit(w, &d);
}

/* Is a compaction of a region of the table wanted or at work? */
static bool compacts(world *w, const char *table, bool ask, bool *ret_refers)
{
    bool busy = *ret_refers = false;
    rq_epoch_member m = {0};
    rq_epoch_pin(w->env->epoch, &m);
    const rq_catalog_table *t = rq_catalog_table_find(w->catalog, rq_slice_cstr(table));
    for (size_t i = 0; t != NULL && i < t->region_count; i++) {
        rq_region *r = t->regions[i]->region;
        if (r == NULL) continue;
        if (ask) (void)!rq_region_compact(r, (rq_slice){NULL, 0}, true, NULL);
        busy |= rq_region_compaction_state(r) != 0;
        *ret_refers |= rq_region_has_references(r);
    }
    rq_epoch_unpin(w->env->epoch, &m);
    return busy;
}

rq_err world_compact(world *w, const char *table)
{
    bool refers;
    compacts(w, table, true, &refers);
    while (compacts(w, table, false, &refers)) {
        if (rq_sim_step(w->sim)) continue;
        if (rq_sim_is_cut(w->sim)) return RQ_E_IO;
        rq_sim_advance(w->sim, 10000000);
    }
    /* A compaction that failed tells nobody. */
    return rq_sim_is_cut(w->sim) ? RQ_E_IO : refers ? RQ_E_STATE : RQ_OK;
}

rq_err world_family(world *w, rq_ddl_kind kind, const char *table, const char *family)
{
    rq_arena a;
    rq_arena_init(&a);
    rq_ddl d = {.kind = kind};
    split_name(table, &d.ns, &d.qualifier);
    if (kind == RQ_DDL_DELETE_FAMILY || kind == RQ_DDL_ASSIGN_REGION ||
        kind == RQ_DDL_UNASSIGN_REGION)
        d.family = rq_slice_cstr(family);
    else
        d.descriptor = pack(&a, &family_of(&a, rq_arena_cstr(&a, rq_slice_cstr(family)))->base);
    rq_err rc = submit(w, &d);
    rq_arena_clear(&a);
    return rc;
}

rq_err world_tracker(world *w, const char *table, const char *family, const char *tracker)
{
    rq_ddl d = {.kind = family == NULL ? RQ_DDL_TABLE_TRACKER : RQ_DDL_FAMILY_TRACKER,
                .descriptor = rq_slice_cstr(tracker),
                .early = true};
    if (family != NULL) d.family = rq_slice_cstr(family);
    split_name(table, &d.ns, &d.qualifier);
    return submit(w, &d);
}

rq_err world_namespace(world *w, rq_ddl_kind kind, const char *name, const char *quota)
{
    rq_arena a;
    rq_arena_init(&a);
    Pb__NamespaceDescriptor m = PB__NAMESPACE_DESCRIPTOR__INIT;
    Pb__NameStringPair pair = PB__NAME_STRING_PAIR__INIT, *list = &pair;
    m.name = bytes_of(rq_slice_cstr(name));
    if (quota != NULL) {
        pair.name = rq_arena_cstr(&a, rq_slice_cstr(quota));
        char *eq = strchr(pair.name, '=');
        *eq = '\0';
        pair.value = eq + 1;
        m.configuration = &list;
        m.n_configuration = 1;
    }
    rq_ddl d = {.kind = kind, .ns = rq_slice_cstr(name), .descriptor = pack(&a, &m.base)};
    rq_err rc = submit(w, &d);
    rq_arena_clear(&a);
    return rc;
}

/* --- rows ------------------------------------------------------------------------------------- */

static rq_err region_of(world *w, const char *table, const char *row, rq_region **ret)
{
    rq_epoch_member m = {0};
    rq_epoch_pin(w->env->epoch, &m);
    const rq_catalog_region *r;
    w->why = (rq_error){0};
    rq_err rc =
        rq_catalog_locate(w->catalog, rq_slice_cstr(table), rq_slice_cstr(row), &r, &w->why);
    if (rc == RQ_OK && r->region == NULL) rc = RQ_E_NOT_SERVING_REGION;
    if (rc == RQ_OK) *ret = rq_region_ref(r->region);
    rq_epoch_unpin(w->env->epoch, &m);
    return rc;
}

static rq_err write_one(world *w, const char *table, rq_mutation_type type, rq_cell *cell)
{
    rq_region *r;
    char row[256];
    snprintf(row, sizeof row, "%.*s", (int)cell->row_len, (const char *)cell->row);
    rq_err rc = region_of(w, table, row, &r);
    if (rc != RQ_OK) return rc;
    rq_mutation m = {.type = type, .row = rq_cell_row(cell), .cells = cell, .cell_count = 1};
    m.time_range = RQ_TIME_RANGE_ALL;
    rq_row_op op = {.mutations = &m, .mutation_count = 1};
    rc = rq_region_write_sync(r, &op, 1, &w->why);
    rq_cellblock_clear(&op.result);
    rq_region_unref(r);
    return rc;
}

static rq_cell cell_at(const char *row, const char *family)
{
    return (rq_cell){
        .row = (const uint8_t *)row,
        .row_len = (uint16_t)strlen(row),
        .family = (const uint8_t *)family,
        .family_len = (uint8_t)strlen(family),
        .timestamp = RQ_TIMESTAMP_LATEST,
    };
}

rq_err world_put_cell(world *w, const char *table, const char *row, const char *family,
                      const char *qualifier, rq_slice value)
{
    rq_cell cell = cell_at(row, family);
    cell.qualifier = (const uint8_t *)qualifier;
    cell.qualifier_len = (uint32_t)strlen(qualifier);
    cell.value = value.ptr;
    cell.value_len = (uint32_t)value.len;
    cell.type = RQ_TYPE_PUT;
    return write_one(w, table, RQ_MUTATE_PUT, &cell);
}

rq_err world_put(world *w, const char *table, const char *row, const char *family)
{
    return world_put_cell(w, table, row, family, "q", RQ_SLICE_LIT("value"));
}

rq_err world_delete(world *w, const char *table, const char *row, const char *family)
{
    rq_cell cell = cell_at(row, family);
    cell.type = RQ_TYPE_DELETE_FAMILY;
    return write_one(w, table, RQ_MUTATE_DELETE, &cell);
}

/* Reads the region; each row's cells are handed to `take`. */
static rq_err scan_region(world *w, rq_region *r, const rq_scan *scan,
                          void (*take)(void *ctx, const rq_cellblock *row), void *ctx)
{
    rq_arena a;
    rq_arena_init(&a);
    rq_cellblock out = {0};
    rq_read_ctx read = {.may_block = true};
    rq_scan_limits limits = {0};
    rq_scan_state state = RQ_SCAN_MORE;
    rq_region_scanner *s = NULL;
    rq_epoch_member m = {0};
    rq_epoch_pin(w->env->epoch, &m);
    rq_err rc = rq_region_scanner_open(r, scan, 0, &a, &s, &w->why);
    while (rc == RQ_OK && state != RQ_SCAN_DONE) {
        rq_cellblock_reset(&out);
        rc = rq_region_scanner_next(s, &limits, &read, &out, &state, &w->why);
        if (rc == RQ_E_AGAIN) {
            rc = rq_read_ctx_fulfil(&read, &w->why);
            continue;
        }
        if (rc == RQ_OK && out.count > 0) take(ctx, &out);
    }
    rq_region_scanner_close(s);
    rq_read_ctx_clear(&read);
    rq_epoch_unpin(w->env->epoch, &m);
    rq_arena_clear(&a);
    rq_cellblock_clear(&out);
    return rc;
}

static void count_row(void *ctx, const rq_cellblock *row)
{
    (void)row;
    ++*(size_t *)ctx;
}

rq_err world_get(world *w, const char *table, const char *row, const char *family)
{
    rq_region *r;
    rq_err rc = region_of(w, table, row, &r);
    if (rc != RQ_OK) return rc;
    rq_scan_family f = {.family = rq_slice_cstr(family)};
    rq_scan scan = {
        .start_row = rq_slice_cstr(row),
        .stop_row = rq_slice_cstr(row),
        .include_start = true,
        .include_stop = true,
        .is_get = true,
        .families = &f,
        .family_count = 1,
        .max_versions = 1,
        .time_range = RQ_TIME_RANGE_ALL,
        .store_limit = -1,
    };
    size_t found = 0;
    rc = scan_region(w, r, &scan, count_row, &found);
    rq_region_unref(r);
    return rc == RQ_OK && found == 0 ? RQ_E_NOT_FOUND : rc;
}

static void note_row(void *ctx, const rq_cellblock *row)
{
    rq_cell cell;
    rq_cursor c = rq_cursor_of(rq_buf_slice(&row->bytes));
    assert_int_equal(rq_cellblock_next(&c, &cell, NULL), RQ_OK);
    (void)!rq_buf_printf(ctx, "%.*s ", (int)cell.row_len, (const char *)cell.row);
}

char *world_rows(world *w, const char *table)
{
    rq_region *list[64];
    size_t count = 0;
    rq_buf out = {0};
    rq_epoch_member m = {0};
    rq_epoch_pin(w->env->epoch, &m);
    const rq_catalog_table *t = rq_catalog_table_find(w->catalog, rq_slice_cstr(table));
    for (size_t i = 0; t != NULL && i < t->region_count && i < 64; i++)
        if (t->regions[i]->region != NULL) list[count++] = rq_region_ref(t->regions[i]->region);
    rq_epoch_unpin(w->env->epoch, &m);
    rq_scan scan = {
        .include_start = true,
        .max_versions = 1,
        .time_range = RQ_TIME_RANGE_ALL,
        .store_limit = -1,
    };
    for (size_t i = 0; i < count; i++) {
        if (scan_region(w, list[i], &scan, note_row, &out) != RQ_OK) rq_buf_reset(&out);
        rq_region_unref(list[i]);
    }
    char *text = strndup(out.len == 0 ? "" : (const char *)out.ptr, out.len);
    rq_buf_clear(&out);
    return text;
}

/* --- what there is ---------------------------------------------------------------------------- */

static void put_attributes(rq_buf *b, const rq_attributes *a)
{
    for (size_t i = 0; i < a->count; i++)
        assert_int_equal(rq_buf_printf(b, " %.*s=%.*s", (int)a->items[i].key.len,
                                       (const char *)a->items[i].key.ptr,
                                       (int)a->items[i].value.len,
                                       (const char *)a->items[i].value.ptr),
                         RQ_OK);
}

static char *text_of(rq_buf *b)
{
    char *text = strndup(b->len == 0 ? "" : (const char *)b->ptr, b->len);
    rq_buf_clear(b);
    return text;
}

char *world_describe(world *w)
{
    static const char *const states[] = {"ENABLED", "DISABLED", "DISABLING", "ENABLING"};
    rq_buf b = {0};
    rq_epoch_member m = {0};
    rq_epoch_pin(w->env->epoch, &m);
    const rq_catalog_table *const *tables;
    const rq_namespace *const *spaces;
    size_t n, k;
    rq_catalog_tables(w->catalog, &tables, &n);
    rq_catalog_namespaces(w->catalog, &spaces, &k);
    for (size_t i = 0; i < n; i++) {
        const rq_table_schema *s = tables[i]->schema;
        if (rq_slice_eq(s->ns, RQ_SLICE_LIT("hbase"))) continue;
        (void)!rq_buf_printf(&b, "%.*s %s", (int)s->name.len, (const char *)s->name.ptr,
                             states[tables[i]->state]);
        put_attributes(&b, &s->attributes);
        (void)!rq_buf_printf(&b, "\n");
        for (size_t f = 0; f < s->family_count; f++) {
            (void)!rq_buf_printf(&b, "  %.*s", (int)s->families[f].name.len,
                                 (const char *)s->families[f].name.ptr);
            put_attributes(&b, &s->families[f].attributes);
            (void)!rq_buf_printf(&b, "\n");
        }
        for (size_t r = 0; r < tables[i]->region_count; r++) {
            const rq_catalog_region *c = tables[i]->regions[r];
            (void)!rq_buf_printf(&b, "  [%.*s, %.*s) %s %s\n", (int)c->info->start_key.len,
                                 (const char *)c->info->start_key.ptr, (int)c->info->end_key.len,
                                 (const char *)c->info->end_key.ptr, c->info->encoded,
                                 c->region != NULL ? "open" : "closed");
        }
    }
    for (size_t i = 0; i < k; i++) {
        (void)!rq_buf_printf(&b, "namespace %.*s", (int)spaces[i]->name.len,
                             (const char *)spaces[i]->name.ptr);
        put_attributes(&b, &spaces[i]->configuration);
        (void)!rq_buf_printf(&b, "\n");
    }
    rq_epoch_unpin(w->env->epoch, &m);
    return text_of(&b);
}

typedef struct checking {
    world *w;
    rq_buf *out;
    size_t tables, regions;
    rq_buf parents; /* encoded names of regions that were split or merged and are still kept */
} checking;

static rq_err note_parents(void *ctx, const rq__meta_row *row, rq_error *why)
{
    checking *c = ctx;
    (void)why;
    if (row->malformed != NULL || row->is_table) return RQ_OK;
    if (row->info.split) (void)!rq_buf_printf(&c->parents, "%s ", row->info.encoded);
    for (size_t i = 0; i < row->merged_count; i++)
        (void)!rq_buf_printf(&c->parents, "%s ", row->merged[i].encoded);
    return RQ_OK;
}

static bool is_known(const checking *c, const char *encoded)
{
    if (rq_catalog_region_find(c->w->catalog, rq_slice_cstr(encoded)) != NULL) return true;
    return c->parents.len > 0 &&
           memmem(c->parents.ptr, c->parents.len, encoded, strlen(encoded)) != NULL;
}

static rq_err check_row(void *ctx, const rq__meta_row *row, rq_error *why)
{
    checking *c = ctx;
    (void)why;
    rq_epoch_member m = {0};
    rq_epoch_pin(c->w->env->epoch, &m);
    if (row->malformed != NULL) {
        (void)!rq_buf_printf(c->out, "meta: malformed %s\n", row->malformed);
    } else if (row->is_table) {
        const rq_catalog_table *t = rq_catalog_table_find(c->w->catalog, row->row);
        c->tables++;
        if (t == NULL)
            (void)!rq_buf_printf(c->out, "meta has table %.*s, the view has not\n",
                                 (int)row->row.len, (const char *)row->row.ptr);
        else if (t->state != row->table_state)
            (void)!rq_buf_printf(c->out, "%.*s: meta says state %d, the view %d\n",
                                 (int)row->row.len, (const char *)row->row.ptr, row->table_state,
                                 t->state);
    } else if (!row->info.split) {
        const rq_catalog_region *r =
            rq_catalog_region_find(c->w->catalog, rq_slice_cstr(row->info.encoded));
        c->regions++;
        if (r == NULL)
            (void)!rq_buf_printf(c->out, "meta has region %s, the view has not\n",
                                 row->info.encoded);
        else if ((r->state == RQ_REGION_OPEN) != (row->state == RQ_REGION_OPEN))
            (void)!rq_buf_printf(c->out, "%s: meta says region state %d, the view %d\n",
                                 row->info.encoded, row->state, r->state);
        const rq_catalog_table *t = rq_catalog_table_find(c->w->catalog, row->info.table);
        int replicas = t == NULL ? 0 : rq_catalog_replication(t->schema) - 1;
        if (row->state == RQ_REGION_OPEN && row->last_replica != replicas)
            (void)!rq_buf_printf(c->out, "%s: meta has %d replicas, the view %d\n",
                                 row->info.encoded, row->last_replica, replicas);
    }
    rq_epoch_unpin(c->w->env->epoch, &m);
    return RQ_OK;
}

static void check_disk(const checking *c, const rq_catalog_table *t)
{
    world *w = c->w;
    rq_buf *out = c->out;
    rq_table_schema *s = NULL;
    rq_error why = {0};
    if (rq__tableinfo_read(w->env->vfs, t->schema->ns, t->schema->qualifier, &s, &why) != RQ_OK)
        (void)!rq_buf_printf(out, "no descriptor: %s\n", why.message);
    else if (!rq_slice_eq(rq_table_schema_pb(s), rq_table_schema_pb(t->schema)))
        (void)!rq_buf_printf(out, "%.*s: the descriptor on disk is another\n",
                             (int)t->schema->name.len, (const char *)t->schema->name.ptr);
    rq_table_schema_unref(s);
    rq_arena a;
    rq_arena_init(&a);
    rq_dir_entry *entries;
    size_t count;
    char *dir = rq__table_dir(&a, t->schema->ns, t->schema->qualifier);
    if (rq_vfs_list(w->env->vfs, dir, &a, &entries, &count, &why) != RQ_OK) count = 0;
    for (size_t i = 0; i < count; i++) { /* no folder without a region */
        if (entries[i].name[0] == '.') continue;
        if (!is_known(c, entries[i].name))
            (void)!rq_buf_printf(out, "%s/%s belongs to no region\n", dir, entries[i].name);
    }
    rq_arena_clear(&a);
}

/* No manifest without a region. */
static void check_manifests(const checking *c)
{
    rq_arena a;
    rq_arena_init(&a);
    rq_dir_entry *entries;
    size_t count;
    if (rq_vfs_list(c->w->env->vfs, ".rorqual/regions", &a, &entries, &count, NULL) != RQ_OK)
        count = 0;
    char *store = rq_arena_cstr(&a, rq_slice_cstr(""));
    for (size_t i = 0; i < count; i++) {
        char encoded[RQ_ENCODED_NAME_LEN + 1];
        snprintf(encoded, sizeof encoded, "%.*s", (int)strcspn(entries[i].name, "."),
                 entries[i].name);
        if (is_known(c, encoded)) continue;
        if (store[0] == '\0') store = rq_arena_cstr(&a, rq_slice_cstr(encoded)); /* master:store */
        if (strcmp(store, encoded) != 0)
            (void)!rq_buf_printf(c->out, "manifest %s belongs to no region\n", entries[i].name);
    }
    rq_arena_clear(&a);
}

char *world_check(world *w)
{
    rq_buf out = {0};
    checking c = {.w = w, .out = &out};
    rq_arena a;
    rq_arena_init(&a);
    rq_error why = {0};
    rq_region *meta = NULL;
    rq_epoch_member m = {0};
    rq_epoch_pin(w->env->epoch, &m);
    rq_err rc = rq_catalog_region_by_name(w->catalog, RQ_SLICE_LIT("hbase:meta,,1"), &meta, &why);
    if (rc == RQ_OK) rq_region_ref(meta);
    const rq_catalog_table *const *tables;
    size_t n, regions = 0;
    rq_catalog_tables(w->catalog, &tables, &n);
    for (size_t i = 0; i < n; i++) {
        if (!tables[i]->schema->is_meta) regions += tables[i]->region_count;
    }
    rq_epoch_unpin(w->env->epoch, &m);
    if (rc == RQ_OK) rc = rq__meta_scan(meta, &a, note_parents, &c, &why);
    m = (rq_epoch_member){0};
    rq_epoch_pin(w->env->epoch, &m);
    rq_catalog_tables(w->catalog, &tables, &n);
    for (size_t i = 0; i < n; i++)
        check_disk(&c, tables[i]);
    check_manifests(&c);
    rq_epoch_unpin(w->env->epoch, &m);
    if (rc == RQ_OK) rc = rq__meta_scan(meta, &a, check_row, &c, &why);
    rq_buf_clear(&c.parents);
    if (rc != RQ_OK) (void)!rq_buf_printf(&out, "meta cannot be read: %s\n", why.message);
    if (meta != NULL) rq_region_unref(meta);
    if (rc == RQ_OK && (c.tables + 1 != n || c.regions != regions))
        (void)!rq_buf_printf(&out, "meta: %zu tables, %zu regions; view: %zu tables, %zu regions\n",
                             c.tables, c.regions, n - 1, regions);
    rq_arena_clear(&a);
    return text_of(&out);
}
