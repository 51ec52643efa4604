/* SPDX-License-Identifier: Apache-2.0 */
/* Garbage that clients can write into hbase:meta and hbase:namespace. It must not prevent a start,
 * or affect more than its own row: each case writes its garbage, then the intact tables must be
 * served, over restarts, and catalog changes must work.
 *
 * The garbage is written without the checks of a client's write, because a folder may have it from
 * an older version or a bulk load; another test checks what clients are refused. */
#include "world.h"

#include <unistd.h>

#include "catalog/catalog_priv.h"
#include "catalog/fsck.h"
#include "catalog/meta.h"

#define DAY_MS (INT64_C(86400) * 1000)

static void setup_options(world *w, const rq_sim_options *options)
{
    world_init(w, unit_seed(), options);
    if (options == NULL) w->env->log->level = RQ_LOG_ERROR + 1; /* garbage is reported */
    w->trusted = true;
    assert_int_equal(world_open(w), RQ_OK);
    assert_int_equal(world_namespace(w, RQ_DDL_CREATE_NAMESPACE, "n", "a=b"), RQ_OK);
    assert_int_equal(world_create(w, "n:t", "f", "m"), RQ_OK);
    assert_int_equal(world_create(w, "u", "f g", NULL), RQ_OK);
    assert_int_equal(world_put(w, "n:t", "a", "f"), RQ_OK);
    assert_int_equal(world_put(w, "u", "a", "f"), RQ_OK);
}

static void setup(world *w)
{
    setup_options(w, NULL);
}

static rq_cell cell_of(const char *row, const char *family, const char *qualifier, uint8_t type,
                       int64_t timestamp, rq_slice value)
{
    return (rq_cell){
        .row = (const uint8_t *)row,
        .row_len = (uint16_t)strlen(row),
        .family = (const uint8_t *)family,
        .family_len = (uint8_t)strlen(family),
        .qualifier = (const uint8_t *)qualifier,
        .qualifier_len = (uint32_t)strlen(qualifier),
        .value = value.ptr,
        .value_len = (uint32_t)value.len,
        .timestamp = timestamp,
        .type = type,
    };
}

static void write_at(world *w, const char *row, const char *family, const char *qualifier,
                     uint8_t type, int64_t timestamp, rq_slice value)
{
    rq_cell cell = cell_of(row, family, qualifier, type, timestamp, value);
    rq_err rc =
        world_write(w, "hbase:meta", type == RQ_TYPE_PUT ? RQ_MUTATE_PUT : RQ_MUTATE_DELETE, &cell);
    if (rc != RQ_OK) fail_msg("%s: %s", row, w->why.message);
}

static void restart(world *w, bool clean)
{
    (void)world_close(w, clean); /* close fails if the log is kept for regions that nobody knows */
    if (world_open(w) != RQ_OK) fail_msg("open: %s", w->why.message);
    if (!world_settle(w)) fail_msg("a procedure never ends");
}

/* The intact tables are served, and they and new ones can be changed. */
static void expect_service(world *w)
{
    if (world_get(w, "n:t", "a", "f") != RQ_OK) fail_msg("n:t: %s", w->why.message);
    if (world_get(w, "u", "a", "f") != RQ_OK) fail_msg("u: %s", w->why.message);
    OK(world_create(w, "n:new", "f", NULL));
    OK(world_put(w, "n:new", "x", "f"));
    OK(world_table(w, RQ_DDL_DISABLE_TABLE, "n:new"));
    OK(world_table(w, RQ_DDL_DELETE_TABLE, "n:new"));
    OK(world_family(w, RQ_DDL_MODIFY_FAMILY, "u", "f:VERSIONS=4"));
    OK(world_table(w, RQ_DDL_FLUSH_TABLE, "n:t"));
    int64_t cleaned;
    OK(rq_catalog_clean_parents(w->catalog, &cleaned, &w->why));
}

static void expect_starts(world *w)
{
    for (int i = 0; i < 3; i++) {
        restart(w, i % 2 == 0);
        expect_service(w);
    }
    (void)world_close(w, true);
    world_clear(w);
}

static void put(world *w, const char *row, const char *family, const char *qualifier,
                rq_slice value)
{
    write_at(w, row, family, qualifier, RQ_TYPE_PUT, RQ_TIMESTAMP_LATEST, value);
}

static unsigned problems;

static void count_problem(void *ctx, rq_finding level, const char *where, const char *text)
{
    (void)where;
    if (level == RQ_FINDING_PROBLEM) problems++;
    if (ctx != NULL && strstr(text, ctx) != NULL) problems += 1000000;
}

/* fsck of the stopped folder must find a problem that contains `name`. */
static void expect_named(world *w, const char *name)
{
    rq_fsck_totals totals;
    const rq_fsck_options o = {.findings = {count_problem, NULL, (void *)(uintptr_t)name}};
    problems = 0;
    (void)world_close(w, false);
    rq_err rc = rq_fsck(w->env->vfs, &o, &totals, &w->why);
    if (rc != RQ_OK) fail_msg("fsck: %s", w->why.message);
    if (problems == 0) fail_msg("fsck finds nothing");
    if (name != NULL && problems < 1000000) fail_msg("fsck does not name %s", name);
    if (world_open(w) != RQ_OK) fail_msg("open: %s", w->why.message);
    assert_true(world_settle(w));
}

/* --- timestamps ------------------------------------------------------------------------------- */

static const int64_t times[] = {INT64_MAX - 1, INT64_MAX - 2,     INT64_MAX - 1000000,
                                INT64_MAX / 2, INT64_MAX / 4 * 3, 30000 * 365 * DAY_MS};

static void puts_near_the_end_of_time(void **state)
{
    (void)state;
    for (size_t i = 0; i < RQ_ARRAY_LEN(times); i++) {
        world w;
        setup(&w);
        char *row = world_region_name(&w, "n:t", "x");
        write_at(&w, row, "info", "state", RQ_TYPE_PUT, times[i], RQ_SLICE_LIT("junk"));
        write_at(&w, "u", "table", "state", RQ_TYPE_PUT, times[i], rq_slice_of("\x08\x00", 2));
        write_at(&w, "nowhere", "table", "state", RQ_TYPE_PUT, times[i],
                 rq_slice_of("\x08\x00", 2));
        free(row);
        if (i < 3) expect_named(&w, "timestamp");
        expect_starts(&w);
    }
}

/* A marker in the future hides no later change of its row, if a clock can still rise above it, although its row has no
 * other cell. The clock of the catalog stays far from the end of time. */
static void markers_hide_no_later_change(void **state)
{
    (void)state;
    for (size_t i = 3; i < RQ_ARRAY_LEN(times); i++) {
        world w;
        setup(&w);
        write_at(&w, "later", "table", "", RQ_TYPE_DELETE_FAMILY, times[i], (rq_slice){NULL, 0});
        restart(&w, i % 2 == 0);
        assert_int_equal(world_create(&w, "later", "f", NULL), RQ_OK);
        assert_int_equal(world_put(&w, "later", "a", "f"), RQ_OK);
        assert_true(atomic_load(&w.catalog->last_ms) < INT64_MAX / 4 * 3 + DAY_MS);
        assert_int_equal(world_table(&w, RQ_DDL_DISABLE_TABLE, "later"), RQ_OK);
        restart(&w, i % 2 == 1);
        if (world_table(&w, RQ_DDL_ENABLE_TABLE, "later") != RQ_OK)
            fail_msg("%zu: %s", i, w.why.message);
        assert_int_equal(world_get(&w, "later", "a", "f"), RQ_OK);
        expect_starts(&w);
    }
}

/* The rows that these markers hide are dropped by the next flush; nothing else is affected. */
static void markers_at_the_end_of_time_cost_their_row(void **state)
{
    (void)state;
    static const uint8_t types[] = {RQ_TYPE_DELETE, RQ_TYPE_DELETE_COLUMN, RQ_TYPE_DELETE_FAMILY,
                                    RQ_TYPE_DELETE_FAMILY_VERSION};
    for (size_t i = 0; i < RQ_ARRAY_LEN(types) * 3; i++) {
        world w;
        setup(&w);
        uint8_t type = types[i / 3];
        bool of_family = type == RQ_TYPE_DELETE_FAMILY || type == RQ_TYPE_DELETE_FAMILY_VERSION;
        char *row = world_region_name(&w, "n:t", "z");
        write_at(&w, row, "info", of_family ? "" : "regioninfo", type, times[i % 3],
                 (rq_slice){NULL, 0});
        write_at(&w, "u", "table", of_family ? "" : "state", type, times[i % 3],
                 (rq_slice){NULL, 0});
        assert_int_equal(world_table(&w, RQ_DDL_DISABLE_TABLE, "n:t"), RQ_OK);
        assert_int_equal(world_table(&w, RQ_DDL_ENABLE_TABLE, "n:t"), RQ_OK);
        free(row);
        expect_starts(&w);
    }
}

static rq_err write_client(world *w, const char *table, uint8_t type, int64_t timestamp)
{
    rq_cell cell = cell_of("u", strcmp(table, "hbase:meta") == 0 ? "table" : "info", "q", type,
                           timestamp, RQ_SLICE_LIT("v"));
    return world_write(w, table, type == RQ_TYPE_PUT ? RQ_MUTATE_PUT : RQ_MUTATE_DELETE, &cell);
}

static void clients_write_no_times_far_ahead_into_system_tables(void **state)
{
    (void)state;
    world w;
    setup(&w);
    w.trusted = false;
    static const char *const tables[] = {"hbase:meta", "hbase:namespace"};
    static const uint8_t types[] = {RQ_TYPE_PUT, RQ_TYPE_DELETE_COLUMN, RQ_TYPE_DELETE_FAMILY};
    int64_t now = w.env->executor->now_ms(w.env->executor);
    for (size_t i = 0; i < RQ_ARRAY_LEN(tables) * RQ_ARRAY_LEN(types); i++) {
        const char *table = tables[i % 2];
        uint8_t type = types[i / 2];
        assert_int_equal(write_client(&w, table, type, now + DAY_MS / 2), RQ_OK);
        assert_int_equal(write_client(&w, table, type, RQ_TIMESTAMP_LATEST), RQ_OK);
        for (size_t k = 0; k < RQ_ARRAY_LEN(times); k++) {
            assert_int_equal(write_client(&w, table, type, times[k]), RQ_E_SANITY_CHECK);
            assert_non_null(strstr(w.why.message, "Timestamp for KV out of range"));
        }
        assert_int_equal(write_client(&w, table, type, now + 2 * DAY_MS), RQ_E_SANITY_CHECK);
    }
    /* A user table accepts any timestamp. */
    rq_cell cell = cell_of("r", "f", "q", RQ_TYPE_PUT, INT64_MAX - 1, RQ_SLICE_LIT("v"));
    assert_int_equal(world_write(&w, "u", RQ_MUTATE_PUT, &cell), RQ_OK);
    expect_starts(&w);
}

/* --- rows ------------------------------------------------------------------------------------- */

typedef struct false_region {
    const char *ns, *qualifier, *start, *end;
    int64_t id;
    int32_t replica;
    bool parent;
} false_region;

static void put_region(world *w, const false_region *f)
{
    rq_arena a;
    rq_arena_init(&a);
    rq_region_info info;
    rq_slice bytes;
    assert_int_equal(rq_region_info_make(&a, rq_slice_cstr(f->ns), rq_slice_cstr(f->qualifier),
                                         rq_slice_cstr(f->start), rq_slice_cstr(f->end), f->id,
                                         f->replica, &info),
                     RQ_OK);
    info.split = info.offline = f->parent;
    assert_int_equal(rq_region_info_serialize(&info, &a, &bytes), RQ_OK);
    put(w, rq_arena_cstr(&a, info.name), "info", "regioninfo", bytes);
    rq_arena_clear(&a);
}

static void missing_regions(void **state)
{
    (void)state;
    static const false_region regions[] = {
        {"hbase", "meta", "", "", 1, 0, false},
        {"hbase", "meta", "a", "", 1, 0, false},
        {"master", "store", "", "", 1, 0, false},
        {"master", "store", "", "", 7, 0, false},
        {"hbase", "namespace", "", "", 1, 0, false},
        {"default", "u", "", "", 1, 0, false},
        {"default", "u", "", "", INT64_MAX, 0, false},
        {"default", "u", "", "", INT64_MAX - 1, 0, false},
        {"default", "u", "", "", INT64_C(1) << 62, 0, false},
        {"default", "u", "", "", -5, 0, false},
        {"default", "u", "b", "a", 9, 0, false},
        {"default", "u", "a", "a", 9, 0, false},
        {"default", "u", "", "", 1, 1, false},
        {"default", "u", "", "", 1, 0, true},
        {"n", "t", "", "m", 5, 0, false},
        {"n", "t", "c", "z", 5, 0, false},
        {"n", "t", "x", "", 5, 0, false},
        {"n", "nobody", "", "", 5, 0, false},
        {"nobody", "t", "", "", 5, 0, false},
        {"default", "a b", "", "", 5, 0, false},
        {"default", "..", "", "", 5, 0, false},
        {"n", "a:b", "", "", 5, 0, false},
        {"", "u", "q", "", 5, 0, false},
    };
    for (size_t i = 0; i <= RQ_ARRAY_LEN(regions); i++) {
        world w;
        setup(&w);
        for (size_t k = 0; k < RQ_ARRAY_LEN(regions); k++)
            if (k == i || i == RQ_ARRAY_LEN(regions)) put_region(&w, &regions[k]);
        if (i < RQ_ARRAY_LEN(regions) && !regions[i].parent) expect_named(&w, NULL);
        expect_starts(&w);
    }
}

static void columns_that_cannot_be_read(void **state)
{
    (void)state;
    static const char *const columns[] = {"splitA",
                                          "splitB",
                                          "merge0000",
                                          "merge9999",
                                          "merge",
                                          "state",
                                          "state_FFFF",
                                          "state_0001",
                                          "server",
                                          "serverstartcode",
                                          "seqnumDuringOpen",
                                          "sn",
                                          "",
                                          "x"};
    world w;
    setup(&w);
    char *rows[] = {world_region_name(&w, "n:t", "a"), world_region_name(&w, "u", "a")};
    for (size_t r = 0; r < RQ_ARRAY_LEN(rows); r++) {
        for (size_t i = 0; i < RQ_ARRAY_LEN(columns); i++)
            put(&w, rows[r], "info", columns[i], RQ_SLICE_LIT("\xff\x00junk"));
        put(&w, rows[r], "table", "state", RQ_SLICE_LIT("\x08\x00"));
        put(&w, rows[r], "rep_barrier", "seqnumDuringOpen", RQ_SLICE_LIT("junk"));
        free(rows[r]);
    }
    put(&w, "u", "info", "regioninfo", RQ_SLICE_LIT("junk"));
    put(&w, "u", "info", "state", RQ_SLICE_LIT("junk"));
    assert_int_equal(world_split(&w, "u", "a", "k"), RQ_OK);
    assert_int_equal(world_modify(&w, "n:t", "f:VERSIONS=2 @REGION_REPLICATION=2"), RQ_OK);
    assert_int_equal(world_modify(&w, "n:t", "f:VERSIONS=2"), RQ_OK);
    expect_named(&w, "splitA, splitB or merge0000");
    expect_starts(&w);
}

static void a_row_of_many_large_cells_takes_little_memory(void **state)
{
    (void)state;
    static uint8_t large[900000];
    world w;
    setup(&w);
    rq_slice value = rq_slice_of(large, sizeof large);
    char *row = world_region_name(&w, "n:t", "a");
    for (int i = 0; i < 40; i++) {
        char qualifier[16];
        snprintf(qualifier, sizeof qualifier, i % 2 ? "merge%04d" : "x%d", i);
        put(&w, row, "info", qualifier, value);
        put(&w, "wide", "info", qualifier, value);
    }
    put(&w, "large", "table", "state", value);
    put(&w, "large,,1.0123456789abcdef0123456789abcdef.", "info", "regioninfo", value);
    free(row);
    expect_starts(&w);
}

/* The names of such tables are free, and the log reports the first few. */
static void many_tables_without_a_folder(void **state)
{
    (void)state;
    char path[] = "/tmp/rq-garbage-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    rq_sim_options options = {.log_fd = fd};
    world w;
    setup_options(&w, &options);
    for (int i = 0; i < 3000; i++) {
        char row[64];
        snprintf(row, sizeof row,
                 i % 3 == 0   ? "phantom%d"
                 : i % 3 == 1 ? "n:%d"
                              : "no table %d",
                 i);
        put(&w, row, "table", "state", RQ_SLICE_LIT("\x08\x00"));
    }
    restart(&w, true);
    const rq_catalog_table *const *tables;
    size_t count;
    rq_catalog_tables(w.catalog, &tables, &count);
    assert_int_equal(count, 4);
    assert_int_equal(world_create(&w, "phantom3", "f", "m"), RQ_OK);
    restart(&w, false);
    assert_int_equal(world_put(&w, "phantom3", "x", "f"), RQ_OK);
    (void)world_close(&w, true);
    world_clear(&w);
    close(fd);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t lines = 0;
    for (int c; (c = fgetc(f)) != EOF;)
        lines += c == '\n';
    fclose(f);
    unlink(path);
    assert_true(lines < 100);
}

static void names_longer_than_a_folder_may_have(void **state)
{
    (void)state;
    static const size_t lens[] = {250, 255, 256, 300, 3000, 32700};
    static char name[32768];
    world w;
    setup(&w);
    for (size_t i = 0; i < RQ_ARRAY_LEN(lens); i++) {
        memset(name, 'a', lens[i]);
        name[lens[i]] = '\0';
        put(&w, name, "table", "state", RQ_SLICE_LIT("\x08\x00"));
        const false_region f = {"default", name, "", "", 5, 0, false};
        if (lens[i] < 32000) put_region(&w, &f);
        name[lens[i] / 2] = ':';
        put(&w, name, "table", "state", RQ_SLICE_LIT("\x08\x00"));
    }
    expect_named(&w, "table name");
    expect_starts(&w);
}

/* --- wrong rows about splits and merges ------------------------------------------------------- */

static void copy_info(world *w, const char *table, const char *at, rq_arena *a, rq_region_info *ret)
{
    rq_epoch_member m = {0};
    const rq_catalog_region *r;
    rq_epoch_pin(w->env->epoch, &m);
    assert_int_equal(
        rq_catalog_locate(w->catalog, rq_slice_cstr(table), rq_slice_cstr(at), &r, NULL), RQ_OK);
    assert_int_equal(rq_region_info_copy(a, r->info, ret), RQ_OK);
    rq_epoch_unpin(w->env->epoch, &m);
}

/* The janitor archives parents. A region that is served is not a parent, whatever its row says. */
static void a_region_that_is_served_is_not_archived(void **state)
{
    (void)state;
    world w;
    rq_arena a;
    rq_arena_init(&a);
    rq_region_info t, u;
    rq_slice bytes;
    int64_t cleaned;
    setup(&w);
    copy_info(&w, "n:t", "a", &a, &t);
    copy_info(&w, "u", "a", &a, &u);
    char *row_t = world_region_name(&w, "n:t", "z"), *row_u = world_region_name(&w, "u", "a");
    assert_int_equal(rq_region_info_serialize(&u, &a, &bytes), RQ_OK);
    put(&w, row_t, "info", "merge0000", bytes); /* a region of another table */
    assert_int_equal(rq_region_info_serialize(&t, &a, &bytes), RQ_OK);
    put(&w, row_t, "info", "merge0001", bytes); /* a region of the same table */
    u.split = u.offline = true;
    assert_int_equal(rq_region_info_serialize(&u, &a, &bytes), RQ_OK);
    put(&w, row_u, "info", "regioninfo", bytes);
    assert_int_equal(rq_catalog_clean_parents(w.catalog, &cleaned, &w.why), RQ_OK);
    assert_int_equal(cleaned, 0);
    assert_int_equal(world_get(&w, "u", "a", "f"), RQ_OK);
    assert_int_equal(world_get(&w, "n:t", "a", "f"), RQ_OK);
    /* Nor does dropping the table archive another table's regions. */
    assert_int_equal(world_table(&w, RQ_DDL_DISABLE_TABLE, "n:t"), RQ_OK);
    assert_int_equal(world_table(&w, RQ_DDL_DELETE_TABLE, "n:t"), RQ_OK);
    assert_int_equal(world_get(&w, "u", "a", "f"), RQ_OK);
    free(row_t);
    free(row_u);
    rq_arena_clear(&a);
    (void)world_close(&w, true);
    world_clear(&w);
}

/* --- namespaces ------------------------------------------------------------------------------- */

static void put_namespace(world *w, const char *row, int64_t timestamp, rq_slice value)
{
    rq_cell cell = cell_of(row, "info", "d", RQ_TYPE_PUT, timestamp, value);
    assert_int_equal(world_write(w, "hbase:namespace", RQ_MUTATE_PUT, &cell), RQ_OK);
}

static void missing_namespaces(void **state)
{
    (void)state;
    world w;
    setup(&w);
    char *before = world_describe(&w);
    put_namespace(&w, "x", RQ_TIMESTAMP_LATEST, RQ_SLICE_LIT("junk"));
    put_namespace(&w, "x", INT64_MAX - 1, RQ_SLICE_LIT("\x0a\x01x"));
    put_namespace(&w, "n", INT64_MAX - 1, RQ_SLICE_LIT("junk"));
    put_namespace(&w, "y", RQ_TIMESTAMP_LATEST, RQ_SLICE_LIT("\x0a\x01z"));
    put_namespace(&w, "..", RQ_TIMESTAMP_LATEST, RQ_SLICE_LIT("\x0a\x02.."));
    put_namespace(&w, "a b", RQ_TIMESTAMP_LATEST,
                  RQ_SLICE_LIT("\x0a\x03"
                               "a b"));
    put_namespace(&w, "master", RQ_TIMESTAMP_LATEST, RQ_SLICE_LIT("\x0a\x06master"));
    for (int i = 0; i < 2; i++) {
        restart(&w, i == 0);
        char *after = world_describe(&w);
        assert_string_equal(before, after);
        free(after);
    }
    free(before);
    assert_int_equal(world_create(&w, "master:store", "f", NULL), RQ_E_CONSTRAINT);
    assert_int_equal(world_namespace(&w, RQ_DDL_CREATE_NAMESPACE, "master", NULL), RQ_E_CONSTRAINT);
    expect_starts(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(puts_near_the_end_of_time),
        cmocka_unit_test(markers_hide_no_later_change),
        cmocka_unit_test(markers_at_the_end_of_time_cost_their_row),
        cmocka_unit_test(clients_write_no_times_far_ahead_into_system_tables),
        cmocka_unit_test(missing_regions),
        cmocka_unit_test(columns_that_cannot_be_read),
        cmocka_unit_test(a_row_of_many_large_cells_takes_little_memory),
        cmocka_unit_test(many_tables_without_a_folder),
        cmocka_unit_test(names_longer_than_a_folder_may_have),
        cmocka_unit_test(a_region_that_is_served_is_not_archived),
        cmocka_unit_test(missing_namespaces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
