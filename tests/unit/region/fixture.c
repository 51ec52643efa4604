/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of the region's tests; see fixture.h. */
#include "fixture.h"

#include "proto/hbase.pb-c.h"
#include "vfs/vfs.h"

#include <ftw.h>
#include <inttypes.h>
#include <unistd.h>

/* --- the real environment --------------------------------------------------------------------- */

void real_env_open(real_env *e)
{
    static const unsigned threads[RQ_POOL_COUNT] = {2, 2, 1, 1};
    const char *tmp = getenv("TMPDIR");
    *e = (real_env){.log = {.fd = 2, .level = RQ_LOG_ERROR}};
    snprintf(e->root, sizeof e->root, "%s/rq-XXXXXX", tmp == NULL ? "/tmp" : tmp);
    assert_non_null(mkdtemp(e->root));
    assert_ok(rq_vfs_posix_new(e->root, &e->env.vfs, NULL));
    assert_ok(rq_thread_executor_new(threads, &e->env.executor));
    assert_ok(rq_epoch_new(&e->env.epoch));
    e->env.log = &e->log;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

void real_env_close(real_env *e)
{
    rq_thread_executor_free(e->env.executor);
    rq_epoch_free(e->env.epoch);
    rq_vfs_free(e->env.vfs);
    nftw(e->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int real_env_setup(void **state)
{
    real_env *e = calloc(1, sizeof *e);
    assert_non_null(e);
    real_env_open(e);
    *state = e;
    return 0;
}

int real_env_teardown(void **state)
{
    real_env_close(*state);
    free(*state);
    return 0;
}

rq_env *env_of(void **state)
{
    return &((real_env *)*state)->env;
}

/* --- schema ----------------------------------------------------------------------------------- */

static ProtobufCBinaryData pb(const char *s)
{
    return (ProtobufCBinaryData){strlen(s), (uint8_t *)(uintptr_t)s};
}

rq_table_schema *make_schema(const char *ns, const char *qualifier, const family_def *families,
                             size_t count)
{
    rq_arena a = {0};
    Pb__TableName name = PB__TABLE_NAME__INIT;
    name.namespace_ = pb(ns);
    name.qualifier = pb(qualifier);
    Pb__TableSchema t = PB__TABLE_SCHEMA__INIT;
    t.table_name = &name;
    t.column_families = rq_arena_calloc(&a, count + 1, sizeof *t.column_families);
    for (size_t i = 0; i < count; i++) {
        Pb__ColumnFamilySchema *f = rq_arena_alloc(&a, sizeof *f);
        pb__column_family_schema__init(f);
        f->name = pb(families[i].name);
        f->attributes = rq_arena_calloc(&a, 8, sizeof *f->attributes);
        for (size_t j = 0; families[i].attributes[j] != NULL; j += 2) {
            Pb__BytesBytesPair *p = rq_arena_alloc(&a, sizeof *p);
            pb__bytes_bytes_pair__init(p);
            p->first = pb(families[i].attributes[j]);
            p->second = pb(families[i].attributes[j + 1]);
            f->attributes[f->n_attributes++] = p;
        }
        t.column_families[t.n_column_families++] = f;
    }
    uint8_t *bytes = rq_arena_alloc(&a, pb__table_schema__get_packed_size(&t) + 1);
    size_t len = pb__table_schema__pack(&t, bytes);
    rq_table_schema *s;
    rq_error why = {0};
    rq_err rc = rq_table_schema_parse(rq_slice_of(bytes, len), &s, &why);
    if (rc != RQ_OK) fail_msg("schema: %s", why.message);
    rq_arena_clear(&a);
    return s;
}

rq_table_schema *schema_with(rq_table_schema *old, const char *key, const char *value)
{
    Pb__BytesBytesPair pair = PB__BYTES_BYTES_PAIR__INIT;
    pair.first = pb(key);
    pair.second = pb(value);
    Pb__BytesBytesPair *pairs[] = {&pair};
    Pb__TableName name = PB__TABLE_NAME__INIT;
    name.namespace_ = pb("default");
    name.qualifier = pb("t");
    Pb__TableSchema t = PB__TABLE_SCHEMA__INIT;
    t.table_name = &name;
    t.attributes = pairs;
    t.n_attributes = 1;
    /* Two concatenated messages decode to one message with both lists. */
    rq_slice before = rq_table_schema_pb(old);
    uint8_t bytes[4096];
    assert_true(before.len + pb__table_schema__get_packed_size(&t) <= sizeof bytes);
    memcpy(bytes, before.ptr, before.len);
    size_t len = before.len + pb__table_schema__pack(&t, bytes + before.len);
    rq_table_schema *s;
    rq_error why = {0};
    if (rq_table_schema_parse(rq_slice_of(bytes, len), &s, &why) != RQ_OK)
        fail_msg("schema: %s", why.message);
    rq_table_schema_unref(old);
    return s;
}

/* --- the fixture ------------------------------------------------------------------------------ */

void fixture_start(fixture *f)
{
    rq_error why = {0};
    rq_engine_options o = {.config = f->config};
    if (rq_engine_open(f->env, &o, &f->engine, &why) != RQ_OK) fail_msg("engine: %s", why.message);
    if (rq_region_create(f->engine, &f->info, f->schema, &why) != RQ_OK)
        fail_msg("create: %s", why.message);
    if (rq_region_open(f->engine, &f->info, f->schema, &f->region, &why) != RQ_OK)
        fail_msg("open: %s", why.message);
}

void fixture_stop(fixture *f, bool clean)
{
    rq_error why = {0};
    if (rq_region_close(f->region, !clean, &why) != RQ_OK) fail_msg("close: %s", why.message);
    rq_region_unref(f->region);
    f->region = NULL;
    if (rq_engine_close(f->engine, clean, &why) != RQ_OK) fail_msg("stop: %s", why.message);
    f->engine = NULL;
}

void fixture_open_with(fixture *f, rq_env *env, const family_def *families, size_t count,
                       const char *const *settings)
{
    static const family_def two[] = {{"a", {NULL}}, {"b", {"VERSIONS", "3", NULL}}};
    *f = (fixture){.env = env};
    f->schema = families == NULL ? make_schema("default", "t", two, 2)
                                 : make_schema("default", "t", families, count);
    assert_ok(rq_region_info_make(&f->arena, RQ_SLICE_LIT("default"), RQ_SLICE_LIT("t"),
                                  (rq_slice){0}, (rq_slice){0}, 1700000000000, 0, &f->info));
    assert_ok(rq_config_new(&f->config));
    /* A start fills a quarter of a WAL file, at most 1 MB, with zeros, which takes most of the time
     * of a simulated start. */
    assert_ok(rq_config_set_pair(f->config, "rorqual.wal.file.size=262144", NULL));
    for (size_t i = 0; settings != NULL && settings[i] != NULL; i++)
        assert_ok(rq_config_set_pair(f->config, settings[i], NULL));
    fixture_start(f);
}

void fixture_open(fixture *f, rq_env *env, const family_def *families, size_t count)
{
    fixture_open_with(f, env, families, count, NULL);
}

void fixture_close(fixture *f)
{
    if (f->engine != NULL) fixture_stop(f, true);
    rq_table_schema_unref(f->schema);
    rq_config_free(f->config);
    rq_arena_clear(&f->arena);
}

/* --- writing ---------------------------------------------------------------------------------- */

rq_cell cell_of(const char *family, const char *qualifier, int64_t ts, rq_cell_type type,
                const char *value)
{
    return (rq_cell){
        .family = (const uint8_t *)family,
        .family_len = (uint8_t)strlen(family),
        .qualifier = (const uint8_t *)qualifier,
        .qualifier_len = (uint32_t)strlen(qualifier),
        .timestamp = ts,
        .type = (uint8_t)type,
        .value = (const uint8_t *)value,
        .value_len = value == NULL ? 0 : (uint32_t)strlen(value),
    };
}

static rq_err write_one(fixture *f, rq_mutation *m, uint64_t nonce, rq_cellblock *result)
{
    rq_row_op op = {.mutations = m, .mutation_count = 1, .nonce = nonce, .nonce_group = nonce};
    rq_err rc = rq_region_write_sync(f->region, &op, 1, NULL);
    if (result != NULL)
        *result = op.result;
    else
        rq_cellblock_clear(&op.result);
    return rc;
}

rq_err put(fixture *f, const char *row, const char *family, const char *qualifier, int64_t ts,
           const char *value)
{
    rq_cell c = cell_of(family, qualifier, ts, RQ_TYPE_PUT, value);
    rq_mutation m = {
        .type = RQ_MUTATE_PUT, .row = rq_slice_cstr(row), .cells = &c, .cell_count = 1};
    return write_one(f, &m, 0, NULL);
}

rq_err delete_cell(fixture *f, const char *row, const char *family, const char *qualifier,
                   int64_t ts, rq_cell_type type)
{
    rq_cell c = cell_of(family, qualifier, ts, type, NULL);
    rq_mutation m = {
        .type = RQ_MUTATE_DELETE, .row = rq_slice_cstr(row), .cells = &c, .cell_count = 1};
    return write_one(f, &m, 0, NULL);
}

rq_err increment(fixture *f, const char *row, const char *family, const char *qualifier, int64_t by,
                 uint64_t nonce, int64_t *ret)
{
    uint8_t delta[8];
    rq_put_be64(delta, (uint64_t)by);
    rq_cell c = cell_of(family, qualifier, RQ_TIMESTAMP_LATEST, RQ_TYPE_PUT, NULL);
    c.value = delta;
    c.value_len = 8;
    rq_mutation m = {.type = RQ_MUTATE_INCREMENT,
                     .row = rq_slice_cstr(row),
                     .cells = &c,
                     .cell_count = 1,
                     .return_results = true};
    rq_cellblock result = {0};
    rq_err rc = write_one(f, &m, nonce, &result);
    if (rc == RQ_OK && ret != NULL) {
        rq_cell got;
        rq_cursor at = rq_cursor_of(rq_buf_slice(&result.bytes));
        assert_int_equal(result.count, 1);
        assert_ok(rq_cellblock_next(&at, &got, NULL));
        assert_int_equal(got.value_len, 8);
        *ret = (int64_t)rq_get_be64(got.value);
    }
    rq_cellblock_clear(&result);
    return rc;
}

/* --- reading ---------------------------------------------------------------------------------- */

static void scan_all(fixture *f, const rq_scan *scan, rq_cellblock *out)
{
    rq_arena arena = {0};
    rq_region_scanner *s;
    rq_read_ctx ctx = {.may_block = true};
    rq_error why = {0};
    rq_scan_state state = RQ_SCAN_MORE;
    rq_epoch_member pin;
    rq_epoch_pin(f->env->epoch, &pin);
    if (rq_region_scanner_open(f->region, scan, 0, &arena, &s, &why) != RQ_OK)
        fail_msg("scan: %s", why.message);
    while (state != RQ_SCAN_DONE) {
        rq_scan_limits none = {0};
        rq_err rc = rq_region_scanner_next(s, &none, &ctx, out, &state, &why);
        if (rc != RQ_OK) fail_msg("next: %s", why.message);
    }
    rq_region_scanner_close(s);
    rq_epoch_unpin(f->env->epoch, &pin);
    rq_read_ctx_clear(&ctx);
    rq_arena_clear(&arena);
}

static rq_scan scan_of(const char *row, int versions, bool raw)
{
    return (rq_scan){
        .start_row = rq_slice_cstr(row),
        .stop_row = rq_slice_cstr(row),
        .include_start = true,
        .include_stop = row[0] != '\0',
        .is_get = row[0] != '\0' && !raw,
        .raw = raw,
        .cache_blocks = true,
        .max_versions = versions == 0 ? INT32_MAX : versions,
        .time_range = RQ_TIME_RANGE_ALL,
        .store_limit = -1,
    };
}

static const char *type_name(uint8_t type)
{
    switch (type) {
    case RQ_TYPE_PUT:
        return "Put";
    case RQ_TYPE_DELETE:
        return "Delete";
    case RQ_TYPE_DELETE_COLUMN:
        return "DeleteColumn";
    case RQ_TYPE_DELETE_FAMILY:
        return "DeleteFamily";
    case RQ_TYPE_DELETE_FAMILY_VERSION:
        return "DeleteFamilyVersion";
    default:
        return "?";
    }
}

const char *read_text(fixture *f, const char *row, int versions, bool raw)
{
    rq_cellblock out = {0};
    rq_buf text = {0};
    rq_scan scan = scan_of(row, versions, raw);
    scan_all(f, &scan, &out);
    rq_cursor at = rq_cursor_of(rq_buf_slice(&out.bytes));
    rq_cell c;
    while (rq_cellblock_next(&at, &c, NULL) == RQ_OK)
        assert_ok(rq_buf_printf(&text, "%.*s/%.*s:%.*s/%" PRId64 "/%s=%.*s\n", c.row_len, c.row,
                                c.family_len, c.family, (int)c.qualifier_len, c.qualifier,
                                c.timestamp, type_name(c.type), (int)c.value_len, c.value));
    char *copy = rq_arena_cstr(&f->arena, rq_buf_slice(&text));
    rq_buf_clear(&text);
    rq_cellblock_clear(&out);
    return copy;
}

static bool newest(fixture *f, const char *row, const char *family, const char *qualifier,
                   rq_slice *ret)
{
    rq_cellblock out = {0};
    rq_slice q = rq_slice_cstr(qualifier);
    rq_scan_family one = {.family = rq_slice_cstr(family), .qualifiers = &q, .qualifier_count = 1};
    rq_scan scan = scan_of(row, 1, false);
    scan.families = &one;
    scan.family_count = 1;
    scan_all(f, &scan, &out);
    rq_cursor at = rq_cursor_of(rq_buf_slice(&out.bytes));
    rq_cell c;
    bool found = rq_cellblock_next(&at, &c, NULL) == RQ_OK;
    if (found) *ret = rq_arena_copy(&f->arena, rq_cell_value(&c));
    rq_cellblock_clear(&out);
    return found;
}

const char *get(fixture *f, const char *row, const char *family, const char *qualifier)
{
    rq_slice v;
    return newest(f, row, family, qualifier, &v) ? rq_arena_cstr(&f->arena, v) : NULL;
}

int64_t get_long(fixture *f, const char *row, const char *family, const char *qualifier)
{
    rq_slice v;
    if (!newest(f, row, family, qualifier, &v)) return INT64_MIN;
    assert_int_equal(v.len, 8);
    return (int64_t)rq_get_be64(v.ptr);
}
