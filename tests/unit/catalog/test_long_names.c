/* SPDX-License-Identifier: Apache-2.0 */
/* A region's name is its row key in hbase:meta: a change that would create a name above the limit
 * of row keys is refused before any region is closed, and a growing region is not split there. Names of
 * namespaces, tables and snapshots are names of folders. */
#include "world.h"

#include "catalog/catalog_priv.h"

#include <unistd.h>

static const uint8_t *long_key(void)
{
    static uint8_t key[RQ_ROW_LEN_MAX];
    memset(key, 'k', sizeof key);
    return key;
}

static void setup(world *w)
{
    world_init(w, unit_seed(), NULL);
    w->env->log->level = RQ_LOG_ERROR + 1;
    assert_int_equal(world_open(w), RQ_OK);
}

/* The table is unchanged and works. */
static void expect_untouched(world *w, const char *before)
{
    char *after = world_describe(w), *faults = world_check(w);
    assert_string_equal(before, after);
    assert_string_equal(faults, "");
    free(after);
    free(faults);
    assert_true(world_settle(w));
    assert_int_equal(world_put(w, "t", "a", "f"), RQ_OK);
}

/* The longest start key with which a region's name is a valid row key: table, id of 13 digits,
 * encoded name. */
#define LONGEST (RQ_ROW_LEN_MAX - 1 - 1 - 1 - 13 - 1 - 32 - 1)

static void a_split_is_refused_before_the_region_closes(void **state)
{
    (void)state;
    world w;
    setup(&w);
    assert_int_equal(world_create(&w, "t", "f", NULL), RQ_OK);
    char *before = world_describe(&w);
    const size_t lens[] = {LONGEST + 1, LONGEST + 20, RQ_ROW_LEN_MAX};
    for (size_t i = 0; i < RQ_ARRAY_LEN(lens); i++) {
        assert_int_equal(world_split_at(&w, "t", "a", rq_slice_of(long_key(), lens[i])),
                         RQ_E_ILLEGAL_ARGUMENT);
        assert_non_null(strstr(w.why.message, "Row length "));
        assert_non_null(strstr(w.why.message, " is > 32767"));
        expect_untouched(&w, before);
    }
    free(before);
    assert_int_equal(world_split_at(&w, "t", "a", rq_slice_of(long_key(), LONGEST)), RQ_OK);
    /* A region with such a name can be split, merged and truncated like any other. */
    assert_int_equal(world_split(&w, "t", "kz", "z"), RQ_OK);
    assert_int_equal(world_compact(&w, "t"), RQ_OK);
    assert_int_equal(world_clean(&w, "t"), RQ_OK);
    assert_int_equal(world_merge(&w, "t", "l z", false), RQ_OK);
    assert_int_equal(world_table(&w, RQ_DDL_DISABLE_TABLE, "t"), RQ_OK);
    assert_int_equal(world_truncate(&w, "t", true), RQ_OK);
    assert_int_equal(world_close(&w, true), RQ_OK);
    assert_int_equal(world_open(&w), RQ_OK);
    assert_int_equal(world_put(&w, "t", "l", "f"), RQ_OK);
    world_end(&w);
}

static void a_create_is_refused_and_its_name_is_free(void **state)
{
    (void)state;
    world w;
    setup(&w);
    const rq_slice keys[] = {RQ_SLICE_LIT("c"), rq_slice_of(long_key(), LONGEST + 1)};
    assert_int_equal(world_create_at(&w, "t", "f", keys, 2), RQ_E_ILLEGAL_ARGUMENT);
    assert_non_null(strstr(w.why.message, "Row length 32768 is > 32767"));
    assert_int_equal(world_create(&w, "t", "f", "m"), RQ_OK);
    char *before = world_describe(&w);
    expect_untouched(&w, before);
    free(before);
    world_end(&w);
}

/* --- names of folders ------------------------------------------------------------------------- */

static char *long_name(char *out, const char *prefix, size_t len)
{
    size_t before = strlen(prefix);
    memcpy(out, prefix, before);
    memset(out + before, 'n', len);
    out[before + len] = '\0';
    return out;
}

static void expect_refused(world *w, rq_err rc, const char *text)
{
    assert_int_equal(rc, RQ_E_ILLEGAL_ARGUMENT);
    assert_string_equal(w->why.message, text);
}

static void a_name_that_no_folder_can_have_is_refused(void **state)
{
    (void)state;
    world w;
    char name[10001], of_ns[10004];
    setup(&w);
    assert_int_equal(world_namespace(&w, RQ_DDL_CREATE_NAMESPACE, "ns", NULL), RQ_OK);
    assert_int_equal(world_create(&w, "t", "f", NULL), RQ_OK);
    assert_int_equal(world_snapshot(&w, "s", "t", true), RQ_OK);
    char *before = world_describe(&w);
    const size_t lens[] = {RQ_NAME_MAX + 1, 300, 10000};
    for (size_t i = 0; i < RQ_ARRAY_LEN(lens); i++) {
        long_name(name, "", lens[i]);
        long_name(of_ns, "ns:", lens[i]);
        expect_refused(&w, world_namespace(&w, RQ_DDL_CREATE_NAMESPACE, name, NULL),
                       "Namespace name is longer than 255 bytes");
        expect_refused(&w, world_create(&w, name, "f", "m"),
                       "Table qualifier is longer than 255 bytes");
        expect_refused(&w, world_create(&w, of_ns, "f", NULL),
                       "Table qualifier is longer than 255 bytes");
        expect_refused(&w, world_clone(&w, "s", name), "Table qualifier is longer than 255 bytes");
        expect_refused(&w, world_snapshot(&w, name, "t", true),
                       "Snapshot name is longer than 255 bytes");
        assert_int_equal(world_namespace(&w, RQ_DDL_DELETE_NAMESPACE, name, NULL),
                         RQ_E_NAMESPACE_NOT_FOUND);
        assert_int_equal(world_table(&w, RQ_DDL_DISABLE_TABLE, of_ns), RQ_E_TABLE_NOT_FOUND);
        expect_untouched(&w, before);
    }
    free(before);
    world_end(&w);
}

/* HBase has no limit; its texts are those of an invalid and of an absent id. */
static void a_long_id_of_a_peer_is_refused(void **state)
{
    (void)state;
    enum { LONGEST_ID = RQ_NAME_MAX - 5 /* "peer:" */ };
    world w;
    char id[10001];
    setup(&w);
    const size_t lens[] = {LONGEST_ID + 1, RQ_NAME_MAX + 1, 10000};
    for (size_t i = 0; i < RQ_ARRAY_LEN(lens); i++) {
        long_name(id, "", lens[i]);
        assert_int_equal(world_peer(&w, RQ_DDL_ADD_PEER, id, 0), RQ_E_DO_NOT_RETRY);
        assert_non_null(strstr(w.why.message, "Found invalid peer name: nnn"));
        assert_int_equal(world_peer(&w, RQ_DDL_REMOVE_PEER, id, 0), RQ_E_PEER_NOT_FOUND);
        assert_int_equal(world_peer(&w, RQ_DDL_UPDATE_PEER, id, 0), RQ_E_PEER_NOT_FOUND);
    }
    assert_int_equal(world_peer(&w, RQ_DDL_ADD_PEER, long_name(id, "", LONGEST_ID), 0), RQ_OK);
    assert_int_equal(world_peer(&w, RQ_DDL_REMOVE_PEER, id, 0), RQ_OK);
    world_end(&w);
}

static void the_longest_names_work(void **state)
{
    (void)state;
    world w;
    char name[RQ_NAME_MAX + 1], ns[RQ_NAME_MAX + 1], full[2 * RQ_NAME_MAX + 2];
    setup(&w);
    long_name(name, "", RQ_NAME_MAX);
    long_name(ns, "", RQ_NAME_MAX);
    snprintf(full, sizeof full, "%s:%s", ns, name);
    assert_int_equal(world_namespace(&w, RQ_DDL_CREATE_NAMESPACE, ns, NULL), RQ_OK);
    assert_int_equal(world_create(&w, full, "f", "m"), RQ_OK);
    assert_int_equal(world_put(&w, full, "a", "f"), RQ_OK);
    assert_int_equal(world_table(&w, RQ_DDL_FLUSH_TABLE, full), RQ_OK);
    assert_int_equal(world_snapshot(&w, name, full, true), RQ_OK);
    assert_int_equal(world_clone(&w, name, "c"), RQ_E_UNSUPPORTED); /* by its links' names */
    assert_int_equal(world_split(&w, full, "a", "b"), RQ_OK);
    assert_true(world_settle(&w));
    assert_int_equal(world_close(&w, false), RQ_OK);
    assert_int_equal(world_open(&w), RQ_OK);
    assert_int_equal(world_get(&w, full, "a", "f"), RQ_OK);
    char *faults = world_check(&w);
    assert_string_equal(faults, "");
    free(faults);
    assert_int_equal(world_delete_snapshot(&w, name), RQ_OK);
    assert_int_equal(world_table(&w, RQ_DDL_DISABLE_TABLE, full), RQ_OK);
    assert_int_equal(world_table(&w, RQ_DDL_DELETE_TABLE, full), RQ_OK);
    assert_int_equal(world_namespace(&w, RQ_DDL_DELETE_NAMESPACE, ns, NULL), RQ_OK);
    world_end(&w);
}

/* A start writes the places of all regions. Here each of their rows has 150 kB, as many as thousands of ordinary regions; a record
 * of the log has at most 16 MB. */
static void rows_of_all_regions_need_not_fit_into_a_record(void **state)
{
    enum { TABLES = 3, KEYS = 40, KEY_LEN = 30000 };
    (void)state;
    world w;
    rq_arena a = {0};
    rq_slice keys[KEYS];
    setup(&w);
    assert_int_equal(world_close(&w, true), RQ_OK);
    assert_int_equal(rq_config_set_pair(w.config, "rorqual.memory=256m", NULL), RQ_OK);
    assert_int_equal(world_open(&w), RQ_OK);
    for (size_t i = 0; i < KEYS; i++) {
        uint8_t *key = rq_arena_alloc(&a, KEY_LEN);
        assert_non_null(key);
        memset(key, 'a' + (int)(i % 26), KEY_LEN);
        key[KEY_LEN - 1] = (uint8_t)('a' + i / 26);
        keys[i] = rq_slice_of(key, KEY_LEN);
    }
    for (size_t i = 0; i < TABLES; i++) {
        const char name[] = {'t', (char)('0' + i), '\0'};
        assert_int_equal(world_create_at(&w, name, "f", keys, KEYS), RQ_OK);
    }
    assert_int_equal(world_close(&w, true), RQ_OK);
    assert_int_equal(world_open(&w), RQ_OK);
    assert_int_equal(world_put(&w, "t2", "zz", "f"), RQ_OK);
    char *faults = world_check(&w);
    assert_string_equal(faults, "");
    free(faults);
    world_end(&w);
    rq_arena_clear(&a);
}

/* The clone's name is part of its back references' names. Its failure leaves no table and no folder. */
static void a_clone_whose_back_references_are_too_long_is_undone(void **state)
{
    (void)state;
    world w;
    char name[256];
    setup(&w);
    assert_int_equal(world_create(&w, "t", "f", NULL), RQ_OK);
    assert_int_equal(world_put(&w, "t", "a", "f"), RQ_OK);
    assert_int_equal(world_snapshot(&w, "s", "t", true), RQ_OK);
    char *before = world_describe(&w);
    const size_t longest = RQ_NAME_MAX - RQ_ENCODED_NAME_LEN - 1;
    assert_int_equal(world_clone(&w, "s", long_name(name, "", longest + 1)), RQ_E_UNSUPPORTED);
    assert_non_null(strstr(w.why.message, "back reference is too long"));
    expect_untouched(&w, before);
    free(before);
    assert_int_equal(world_clone(&w, "s", long_name(name, "", longest)), RQ_OK);
    assert_int_equal(world_get(&w, name, "a", "f"), RQ_OK);
    world_end(&w);
}

typedef struct kept_results {
    size_t long_ones; /* with a long name or user */
    size_t refused, disabled;
} kept_results;

static kept_results results(world *w)
{
    kept_results ret = {0};
    rq_arena arena = {0};
    rq_procedure *list;
    size_t count;
    assert_int_equal(rq_catalog_procedures(w->catalog, &arena, &list, &count), RQ_OK);
    for (size_t i = 0; i < count; i++) {
        ret.long_ones += list[i].ns.len > RQ_NAME_MAX || list[i].qualifier.len > RQ_NAME_MAX ||
                         list[i].user.len > RQ_NAME_MAX;
        ret.refused += list[i].rc == RQ_E_TABLE_NOT_DISABLED;
        ret.disabled += list[i].kind == RQ_DDL_DISABLE_TABLE && list[i].user.len == RQ_NAME_MAX;
    }
    rq_arena_clear(&arena);
    return ret;
}

/* A result is kept for a client that repeats its call, with its names and its user, which clients choose. */
static void results_keep_no_long_text(void **state)
{
    (void)state;
    enum { LONG = 100000 };
    world w;
    setup(&w);
    assert_int_equal(world_create(&w, "t", "f", NULL), RQ_OK);
    char *name = malloc(LONG + 1);
    assert_non_null(name);
    rq_slice text = rq_slice_cstr(long_name(name, "", LONG));
    const struct {
        rq_ddl ddl;
        rq_err rc;
    } all[] = {
        {{.kind = RQ_DDL_DELETE_TABLE, .qualifier = text}, RQ_E_TABLE_NOT_FOUND},
        {{.kind = RQ_DDL_DELETE_TABLE, .ns = text, .qualifier = RQ_SLICE_LIT("t")},
         RQ_E_TABLE_NOT_FOUND},
        {{.kind = RQ_DDL_ENABLE_TABLE, .qualifier = text}, RQ_E_TABLE_NOT_FOUND},
        {{.kind = RQ_DDL_DELETE_NAMESPACE, .ns = text}, RQ_E_NAMESPACE_NOT_FOUND},
        {{.kind = RQ_DDL_DELETE_TABLE, .qualifier = RQ_SLICE_LIT("t")}, RQ_E_TABLE_NOT_DISABLED},
        {{.kind = RQ_DDL_DISABLE_TABLE, .qualifier = RQ_SLICE_LIT("t")}, RQ_OK},
    };
    for (size_t i = 0; i < RQ_ARRAY_LEN(all); i++) {
        rq_ddl d = all[i].ddl;
        if (d.ns.len == 0) d.ns = RQ_SLICE_LIT("default");
        d.user = text;
        d.nonce = i + 1;
        assert_int_equal(rq__catalog_ddl_sync(w.catalog, &d, &w.why), all[i].rc);
    }
    free(name);
    kept_results kept = results(&w);
    assert_int_equal(kept.long_ones, 0);
    assert_int_equal(kept.refused, 1);
    assert_int_equal(kept.disabled, 1);
    assert_int_equal(world_close(&w, false), RQ_OK);
    assert_int_equal(world_open(&w), RQ_OK);
    kept = results(&w);
    assert_int_equal(kept.long_ones, 0);
    assert_int_equal(kept.disabled, 1);
    assert_int_equal(world_close(&w, false), RQ_OK);
    world_clear(&w);
}

/* --- automatic splits ------------------------------------------------------------------------- */

static size_t lines_with(const char *path, const char *text)
{
    FILE *f = fopen(path, "r");
    char line[8192];
    size_t n = 0;
    assert_non_null(f);
    while (fgets(line, sizeof line, f) != NULL)
        n += strstr(line, text) != NULL;
    fclose(f);
    return n;
}

static void a_region_of_long_rows_is_not_split_by_itself(void **state)
{
    (void)state;
    world w;
    char path[] = "/tmp/rq-long-names-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    rq_sim_options options = {.log_fd = fd};
    world_init(&w, unit_seed(), &options);
    assert_int_equal(world_open(&w), RQ_OK);
    assert_int_equal(world_create(&w, "t",
                                  "@hbase.table.sanity.checks=false @MEMSTORE_FLUSHSIZE=400000 "
                                  "@MAX_FILESIZE=200000 f:BLOCKSIZE=2048",
                                  NULL),
                     RQ_OK);
    static uint8_t row[RQ_ROW_LEN_MAX];
    memset(row, 'r', sizeof row);
    for (unsigned i = 0; i < 100; i++) {
        row[RQ_ROW_LEN_MAX - 1] = (uint8_t)i;
        rq_cell cell = {
            .row = row,
            .row_len = RQ_ROW_LEN_MAX,
            .family = (const uint8_t *)"f",
            .family_len = 1,
            .timestamp = RQ_TIMESTAMP_LATEST,
            .type = RQ_TYPE_PUT,
        };
        rq_err rc;
        while ((rc = world_write(&w, "t", RQ_MUTATE_PUT, &cell)) == RQ_E_NOT_SERVING_REGION ||
               rc == RQ_E_REGION_TOO_BUSY)
            rq_sim_advance(w.sim, 10000000);
        assert_int_equal(rc, RQ_OK);
        rq_sim_run(w.sim);
    }
    for (int i = 0; i < 5; i++)
        assert_int_equal(world_table(&w, RQ_DDL_FLUSH_TABLE, "t"), RQ_OK);
    assert_true(world_settle(&w));
    char *text = world_describe(&w);
    assert_non_null(strstr(text, "[, )")); /* one region, open */
    assert_null(strstr(text, "closed"));
    free(text);
    world_end(&w);
    close(fd);
    assert_int_equal(lines_with(path, "cannot be split"), 1);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_split_is_refused_before_the_region_closes),
        cmocka_unit_test(a_create_is_refused_and_its_name_is_free),
        cmocka_unit_test(a_region_of_long_rows_is_not_split_by_itself),
        cmocka_unit_test(a_name_that_no_folder_can_have_is_refused),
        cmocka_unit_test(a_long_id_of_a_peer_is_refused),
        cmocka_unit_test(the_longest_names_work),
        cmocka_unit_test(rows_of_all_regions_need_not_fit_into_a_record),
        cmocka_unit_test(a_clone_whose_back_references_are_too_long_is_undone),
        cmocka_unit_test(results_keep_no_long_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
