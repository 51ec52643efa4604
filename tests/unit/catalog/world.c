/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing of the world, and its functions for changes of the catalog. */
#include "world.h"

#include "catalog/catalog_priv.h"

#include "proto/hbase.pb-c.h"
#include "proto/replication.pb-c.h"
#include "proto/snapshot.pb-c.h"

void world_init(world *w, uint64_t seed, const rq_sim_options *options)
{
    memset(w, 0, sizeof *w);
    assert_int_equal(rq_sim_new(seed, options, &w->sim), RQ_OK);
    w->env = rq_sim_env(w->sim);
    assert_int_equal(rq_config_new(&w->config), RQ_OK);
    /* A start fills a quarter of a WAL file, at most 1 MB, with zeros, which takes most of the time
     * of a simulated start. */
    assert_int_equal(rq_config_set_pair(w->config, "rorqual.wal.file.size=262144", NULL), RQ_OK);
    w->start_code = 1700000000000;
    const char *late = getenv("RQ_LATE");
    w->by_messages = late != NULL && strcmp(late, "messages") == 0;
    w->late = late != NULL && !w->by_messages;
    const char *part_bytes = getenv("RQ_PART_BYTES");
    if (part_bytes != NULL) w->part_bytes = (size_t)strtoul(part_bytes, NULL, 10);
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

static bool make_calls(world *w, rq_region_calls *ret)
{
    if (w->make_calls != NULL) {
        w->make_calls(w->calls_ctx, w, ret);
        return true;
    }
    if (w->by_messages) {
        w->messages = message_calls_new(w->sim, w->host, w->start_code);
        *ret = message_calls_table(w->messages);
    } else if (w->late) {
        w->calls = late_calls_new(w->sim, w->host);
        *ret = late_calls_table(w->calls);
    }
    return w->by_messages || w->late;
}

static void free_calls(world *w)
{
    if (w->free_calls != NULL && w->host != NULL) w->free_calls(w->calls_ctx);
    late_calls_free(w->calls);
    message_calls_free(w->messages);
    w->calls = NULL;
    w->messages = NULL;
}

rq_err world_open(world *w)
{
    w->why = (rq_error){0};
    rq_err rc = w->cluster_id == NULL
                    ? rq_root_open(w->env, &w->root, &w->why)
                    : rq_root_open_joined(w->env, w->cluster_id, &w->root, &w->why);
    if (rc != RQ_OK) return rc;
    rq_engine_options engine = {
        .config = w->config,
        .region_failed = region_failed,
        .region_grown = region_grown,
        .context = w,
        .tenure = w->tenure,
        .server_name = w->server_name,
    };
    rc = rq_engine_open(w->env, &engine, &w->engine, &w->why);
    if (rc == RQ_OK) {
        w->start_code++;
        if (w->port == 0) w->port = 16020;
        const rq_server_name name = {
            .host = "localhost", .port = w->port, .start_code = w->start_code};
        rq_catalog_options options = {
            .master = {.host = "localhost", .port = 16000, .start_code = w->start_code},
            .config = w->config,
            .part_bytes = w->part_bytes,
        };
        rc = rq_host_new(w->engine, &name, w->config, &w->host);
        options.host = w->host;
        rq_region_calls calls = {0};
        if (rc == RQ_OK && make_calls(w, &calls)) options.calls = &calls;
        if (rc == RQ_OK) rc = rq_catalog_open(w->root, &options, &w->catalog, &w->why);
        w->has_catalog = rc == RQ_OK;
        if (rc != RQ_OK) {
            w->catalog = NULL;
            free_calls(w);
            rq_host_free(w->host);
            w->host = NULL;
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
    free_calls(w);
    rq_host_free(w->host);
    rq_err more = rq_engine_close(w->engine, clean && rc == RQ_OK, &why);
    if (clean && rc == RQ_OK && more == RQ_OK) rq_root_stopped_cleanly(w->root);
    rq_root_close(w->root);
    w->catalog = NULL;
    w->host = NULL;
    w->engine = NULL;
    w->root = NULL;
    if (w->sim != NULL) rq_sim_run(w->sim); /* tasks that have not begun */
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

void world_end(world *w)
{
    OK(world_close(w, true));
    world_clear(w);
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

/* --- changes ---------------------------------------------------------------------------------- */

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
        for (size_t k = 0; k < count; k++) {
            open += !list[k].finished;
            if (i == 2999 && !list[k].finished)
                print_message("procedure %llu, step %s: %s\n", (unsigned long long)list[k].id,
                              list[k].step, list[k].message);
        }
        rq_arena_clear(&a);
        if (open == 0) return true;
        rq_sim_advance(w->sim, 100000000);
    }
    return false;
}

/* Waits until the procedure has finished. After a power cut it may never finish: then it is left
 * until the world is freed. */
static rq_err submit(world *w, rq_ddl *d)
{
    if (w->sim == NULL) {
        w->why = (rq_error){0};
        d->nonce = w->nonce;
        d->nonce_group = w->nonce == 0 ? 0 : 7;
        rq_err rc = rq__catalog_ddl_sync(w->catalog, d, &w->why);
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

rq_err world_create_at(world *w, const char *table, const char *families, const rq_slice *keys,
                       size_t count)
{
    rq_arena a;
    rq_arena_init(&a);
    rq_ddl d = {.kind = RQ_DDL_CREATE_TABLE,
                .of.create = {.schema = world_schema(&a, table, families),
                              .split_keys = keys,
                              .split_key_count = count}};
    split_name(table, &d.ns, &d.qualifier);
    rq_err rc = submit(w, &d);
    rq_arena_clear(&a);
    return rc;
}

rq_err world_create(world *w, const char *table, const char *families, const char *splits)
{
    rq_arena a;
    rq_arena_init(&a);
    rq_slice keys[64];
    size_t count = 0;
    char *text = splits == NULL ? NULL : rq_arena_cstr(&a, rq_slice_cstr(splits)), *save;
    for (char *t = text == NULL ? NULL : strtok_r(text, " ", &save); t != NULL;
         t = strtok_r(NULL, " ", &save))
        keys[count++] = rq_slice_cstr(t);
    rq_err rc = world_create_at(w, table, families, keys, count);
    rq_arena_clear(&a);
    return rc;
}

rq_err world_modify(world *w, const char *table, const char *families)
{
    rq_arena a;
    rq_arena_init(&a);
    rq_ddl d = {.kind = RQ_DDL_MODIFY_TABLE, .of.modify.schema = world_schema(&a, table, families)};
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

char *world_region_name(world *w, const char *table, const char *row)
{
    rq_epoch_member m = {0};
    const rq_catalog_region *r;
    rq_epoch_pin(w->env->epoch, &m);
    assert_int_equal(
        rq_catalog_locate(w->catalog, rq_slice_cstr(table), rq_slice_cstr(row), &r, NULL), RQ_OK);
    char *name = strndup((const char *)r->info->name.ptr, r->info->name.len);
    rq_epoch_unpin(w->env->epoch, &m);
    return name;
}

rq_err world_open_closed_region(world *w, rq_arena *a, rq_region_info *ret_info,
                                rq_table_schema **ret_schema)
{
    const rq_catalog_region *r;
    RQ_TRY(world_open(w));
    RQ_TRY(world_create(w, "t", "f", NULL));
    RQ_TRY(world_put(w, "t", "a", "f"));
    RQ_TRY(rq_catalog_locate(w->catalog, RQ_SLICE_LIT("t"), RQ_SLICE_LIT("a"), &r, &w->why));
    RQ_TRY(rq_region_info_copy(a, r->info, ret_info));
    *ret_schema = rq_region_schema(r->region);
    return world_table(w, RQ_DDL_DISABLE_TABLE, "t");
}

rq_err world_truncate(world *w, const char *table, bool preserve)
{
    rq_ddl d = {.kind = RQ_DDL_TRUNCATE_TABLE, .of.truncate.preserve_splits = preserve};
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
    return world_split_at(w, table, row, at == NULL ? (rq_slice){NULL, 0} : rq_slice_cstr(at));
}

rq_err world_split_at(world *w, const char *table, const char *row, rq_slice key)
{
    /* Must outlive a submission that a power cut interrupts. */
    static char encoded[RQ_ENCODED_NAME_LEN + 1];
    if (!encoded_of(w, table, row, encoded)) return RQ_E_TABLE_NOT_FOUND;
    rq_ddl d = {.kind = RQ_DDL_SPLIT_REGION,
                .of.split = {.region = rq_slice_cstr(encoded), .row = key}};
    split_name(table, &d.ns, &d.qualifier);
    return submit(w, &d);
}

rq_err world_truncate_region(world *w, const char *table, const char *row)
{
    static char encoded[RQ_ENCODED_NAME_LEN + 1]; /* as above */
    if (!encoded_of(w, table, row, encoded)) return RQ_E_TABLE_NOT_FOUND;
    rq_ddl d = {.kind = RQ_DDL_TRUNCATE_REGION, .of.one_region.region = rq_slice_cstr(encoded)};
    split_name(table, &d.ns, &d.qualifier);
    return submit(w, &d);
}

rq_err world_transit(world *w, rq_ddl_kind kind, const char *table, const char *row)
{
    static char encoded[RQ_ENCODED_NAME_LEN + 1]; /* as above */
    if (!encoded_of(w, table, row, encoded)) return RQ_E_TABLE_NOT_FOUND;
    rq_ddl d = {.kind = kind, .of.one_region.region = rq_slice_cstr(encoded)};
    split_name(table, &d.ns, &d.qualifier);
    return submit(w, &d);
}

rq_err world_forget(world *w, const char *table, const char *row)
{
    char encoded[RQ_ENCODED_NAME_LEN + 1];
    rq_arena a = {0};
    rq__batch b;
    rq_region *meta;
    if (!encoded_of(w, table, row, encoded)) return RQ_E_NOT_FOUND;
    const rq_catalog_region *r = rq_catalog_region_find(w->catalog, rq_slice_cstr(encoded));
    rq__batch_init(&b, &a, rq__catalog_now_ms(w->catalog));
    rq_err rc = rq__meta_delete_region(&b, r->info);
    if (rc == RQ_OK) rc = rq__meta_ref(w->catalog, &meta, &w->why);
    if (rc == RQ_OK) {
        rc = rq__batch_commit(&b, meta, true, &w->why);
        rq_region_unref(meta);
    }
    rq_arena_clear(&a);
    return rc;
}

rq_err world_lock(world *w, rq_ddl_kind kind, const char *table, const char *row)
{
    static char encoded[RQ_ENCODED_NAME_LEN + 1]; /* as above */
    static rq_slice region;
    rq_ddl d = {.kind = kind, .of.lock.description = RQ_SLICE_LIT("a test")};
    split_name(table, &d.ns, &d.qualifier);
    if (kind == RQ_DDL_LOCK_REGIONS) {
        if (!encoded_of(w, table, row, encoded)) return RQ_E_TABLE_NOT_FOUND;
        region = rq_slice_cstr(encoded);
        d.of.lock.regions = &region;
        d.of.lock.region_count = 1;
    }
    return submit(w, &d);
}

rq_err world_merge(world *w, const char *table, const char *rows, bool forcible)
{
    rq_arena a;
    rq_arena_init(&a);
    char encoded[16][RQ_ENCODED_NAME_LEN + 1];
    rq_slice names[16];
    rq_ddl d = {.kind = RQ_DDL_MERGE_REGIONS, .of.merge = {.regions = names, .forcible = forcible}};
    size_t *count = &d.of.merge.region_count;
    split_name(table, &d.ns, &d.qualifier);
    char *text = rq_arena_cstr(&a, rq_slice_cstr(rows)), *save;
    rq_err rc = RQ_OK;
    for (char *t = strtok_r(text, " ", &save); t != NULL; t = strtok_r(NULL, " ", &save)) {
        if (!encoded_of(w, table, t, encoded[*count])) rc = RQ_E_TABLE_NOT_FOUND;
        names[*count] = rq_slice_cstr(encoded[*count]);
        (*count)++;
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

/* Whether a compaction of a region of the table is queued or running; `ask` requests one first. */
static bool compacts(world *w, const char *table, bool ask, bool *ret_refers)
{
    bool busy = *ret_refers = false;
    rq_epoch_member m = {0};
    rq_epoch_pin(w->env->epoch, &m);
    const rq_catalog_table *t = rq_catalog_table_find(w->catalog, rq_slice_cstr(table));
    for (size_t i = 0; t != NULL && i < t->region_count; i++) {
        rq_region *r = rq_catalog_table_region(t, i)->region;
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
    /* A failed compaction reports no error here. */
    return rq_sim_is_cut(w->sim) ? RQ_E_IO : refers ? RQ_E_STATE : RQ_OK;
}

rq_err world_family(world *w, rq_ddl_kind kind, const char *table, const char *family)
{
    rq_arena a;
    rq_arena_init(&a);
    rq_ddl d = {.kind = kind};
    split_name(table, &d.ns, &d.qualifier);
    if (kind == RQ_DDL_DELETE_FAMILY)
        d.of.delete_family.family = rq_slice_cstr(family);
    else if (kind == RQ_DDL_ASSIGN_REGION || kind == RQ_DDL_UNASSIGN_REGION)
        d.of.one_region.region = rq_slice_cstr(family);
    else
        d.of.put_family.schema =
            pack(&a, &family_of(&a, rq_arena_cstr(&a, rq_slice_cstr(family)))->base);
    rq_err rc = submit(w, &d);
    rq_arena_clear(&a);
    return rc;
}

rq_err world_tracker(world *w, const char *table, const char *family, const char *tracker)
{
    rq_ddl d = {.kind = family == NULL ? RQ_DDL_TABLE_TRACKER : RQ_DDL_FAMILY_TRACKER,
                .of.tracker.name = tracker == NULL ? (rq_slice){0} : rq_slice_cstr(tracker),
                .early = true};
    if (family != NULL) d.of.tracker.family = rq_slice_cstr(family);
    split_name(table, &d.ns, &d.qualifier);
    return submit(w, &d);
}

rq_err world_peer(world *w, rq_ddl_kind kind, const char *id, int64_t bandwidth)
{
    rq_arena a;
    rq_arena_init(&a);
    Pb__ReplicationPeer config = PB__REPLICATION_PEER__INIT;
    Pb__ReplicationState state = PB__REPLICATION_STATE__INIT;
    Pb__ReplicationPeerDescription m = PB__REPLICATION_PEER_DESCRIPTION__INIT;
    config.clusterkey = (char *)(uintptr_t) "other:2181:/hbase";
    config.has_bandwidth = 1;
    config.bandwidth = bandwidth;
    state.state = PB__REPLICATION_STATE__STATE__ENABLED;
    m.id = (char *)(uintptr_t)id;
    m.state = &state;
    m.config = &config;
    rq_ddl d = {.kind = kind,
                .ns = rq_slice_cstr(rq_arena_printf(&a, RQ_PEER_LOCK_PREFIX "%s", id))};
    if (kind == RQ_DDL_ADD_PEER || kind == RQ_DDL_UPDATE_PEER)
        d.of.put_peer.description = pack(&a, &m.base);
    rq_err rc = submit(w, &d);
    rq_arena_clear(&a);
    return rc;
}

static rq_err take_snapshot(world *w, const char *name, const char *table, bool flush,
                            int64_t ttl_s, bool silent)
{
    rq_arena a = {0};
    Pb__SnapshotDescription m = PB__SNAPSHOT_DESCRIPTION__INIT;
    m.name = (char *)(uintptr_t)name;
    m.table = (char *)(uintptr_t)table;
    m.has_creation_time = m.has_type = true;
    m.has_ttl = ttl_s > 0;
    m.ttl = ttl_s;
    m.creation_time = w->env->executor->now_ms(w->env->executor);
    m.type =
        flush ? PB__SNAPSHOT_DESCRIPTION__TYPE__FLUSH : PB__SNAPSHOT_DESCRIPTION__TYPE__SKIPFLUSH;
    size_t len = pb__snapshot_description__get_packed_size(&m);
    uint8_t *bytes = rq_arena_alloc(&a, len);
    assert_non_null(bytes);
    pb__snapshot_description__pack(&m, bytes);
    rq_ddl d = {.kind = RQ_DDL_SNAPSHOT,
                .of.snapshot = {.name = rq_slice_cstr(name),
                                .description = rq_slice_of(bytes, len),
                                .flush = flush,
                                .names_disabled = silent}};
    split_name(table, &d.ns, &d.qualifier);
    rq_err rc = submit(w, &d);
    rq_arena_clear(&a);
    return rc;
}

rq_err world_snapshot_ttl(world *w, const char *name, const char *table, bool flush, int64_t ttl_s)
{
    return take_snapshot(w, name, table, flush, ttl_s, false);
}

rq_err world_snapshot_silent(world *w, const char *name, const char *table)
{
    return take_snapshot(w, name, table, true, 0, true);
}

rq_err world_snapshot(world *w, const char *name, const char *table, bool flush)
{
    return world_snapshot_ttl(w, name, table, flush, 0);
}

rq_err world_delete_snapshot(world *w, const char *name)
{
    rq_ddl d = {.kind = RQ_DDL_DELETE_SNAPSHOT,
                .ns = RQ_SLICE_LIT(RQ_SNAPSHOT_NS),
                .qualifier = rq_slice_cstr(name)};
    return submit(w, &d);
}

static rq_err from_snapshot(world *w, rq_ddl_kind kind, const char *name, const char *table,
                            const char *tracker)
{
    rq_ddl d = {.kind = kind,
                .of.restore.name = rq_slice_cstr(name),
                .of.restore.tracker = rq_slice_cstr(tracker)};
    split_name(table, &d.ns, &d.qualifier);
    return submit(w, &d);
}

rq_err world_clone(world *w, const char *name, const char *table)
{
    return from_snapshot(w, RQ_DDL_CLONE_SNAPSHOT, name, table, "");
}

rq_err world_clone_tracker(world *w, const char *name, const char *table, const char *tracker)
{
    return from_snapshot(w, RQ_DDL_CLONE_SNAPSHOT, name, table, tracker);
}

rq_err world_restore(world *w, const char *name, const char *table)
{
    return from_snapshot(w, RQ_DDL_RESTORE_SNAPSHOT, name, table, "");
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
    rq_ddl d = {.kind = kind, .ns = rq_slice_cstr(name)};
    if (kind != RQ_DDL_DELETE_NAMESPACE) d.of.put_namespace.descriptor = pack(&a, &m.base);
    rq_err rc = submit(w, &d);
    rq_arena_clear(&a);
    return rc;
}
