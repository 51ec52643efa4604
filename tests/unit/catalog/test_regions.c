/* SPDX-License-Identifier: Apache-2.0 */
/* Split and merge: refusals, sequence ids, policies, and leftovers. Power cuts are tested in
 * tests/sim. */
#include "world.h"

#include "catalog/catalog_priv.h"

#include <string.h>

static void put_rows(world *w, const char *table, const char *rows)
{
    char one[2] = {0};
    for (; *rows != '\0'; rows++) {
        one[0] = *rows;
        assert_int_equal(world_put(w, table, one, "f"), RQ_OK);
    }
}

static size_t regions_of(world *w, const char *table, int64_t *ret_lowest_seqnum)
{
    rq_epoch_member m = {0};
    rq_epoch_pin(w->env->epoch, &m);
    const rq_catalog_table *t = rq_catalog_table_find(w->catalog, rq_slice_cstr(table));
    size_t n = t->region_count;
    if (ret_lowest_seqnum != NULL) *ret_lowest_seqnum = INT64_MAX;
    for (size_t i = 0; i < n && ret_lowest_seqnum != NULL; i++)
        if (rq_catalog_table_region(t, i)->open_seqnum < *ret_lowest_seqnum)
            *ret_lowest_seqnum = rq_catalog_table_region(t, i)->open_seqnum;
    rq_epoch_unpin(w->env->epoch, &m);
    return n;
}

static void expect_rows(world *w, const char *table, const char *rows)
{
    char *text = world_rows(w, table);
    assert_string_equal(text, rows);
    free(text);
}

static void expect_sound(world *w)
{
    char *faults = world_check(w);
    assert_string_equal(faults, "");
    free(faults);
}

static void expect_refused(const world *w, rq_err rc, rq_err code, const char *text)
{
    if (rc != code || strstr(w->why.message, text) == NULL)
        fail_msg("%s: %s, expected %s: %s", rq_err_name(rc), w->why.message, rq_err_name(code),
                 text);
}

static void invalid_requests_are_refused_with_hbases_messages(void **state)
{
    (void)state;
    world w;
    world_init(&w, unit_seed(), NULL);
    assert_int_equal(world_open(&w), RQ_OK);
    assert_int_equal(world_create(&w, "t", "f", "g n"), RQ_OK);
    expect_refused(&w, world_split(&w, "t", "h", "g"), RQ_E_DO_NOT_RETRY,
                   "Split row is equal to startkey: g");
    expect_refused(&w, world_split(&w, "t", "h", "p"), RQ_E_DO_NOT_RETRY,
                   "Split row is not inside region key range splitKey:p");
    if (strstr(w.why.message, "', STARTKEY => 'g', ENDKEY => 'n'}") == NULL)
        fail_msg("%s", w.why.message);
    expect_refused(&w, world_split(&w, "hbase:meta", "", "c"), RQ_E_DO_NOT_RETRY,
                   "1588230740 NOT splittable");
    expect_refused(&w, world_split(&w, "hbase:meta", "", NULL), RQ_E_DO_NOT_RETRY,
                   "1588230740 NOT splittable");
    expect_refused(&w, world_split(&w, "t", "h", NULL), RQ_E_DO_NOT_RETRY,
                   "Region not splittable because bestSplitPoint = null");
    expect_refused(&w, world_merge(&w, "t", "a z", false), RQ_E_MERGE_REGION,
                   "Unable to merge non-adjacent or non-overlapping regions");
    expect_refused(&w, world_merge(&w, "t", "a a", false), RQ_E_MERGE_REGION,
                   "Duplicate regions specified");
    expect_refused(&w, world_merge(&w, "t", "a", false), RQ_E_MERGE_REGION,
                   "Need two Regions at least");
    bool before;
    assert_int_equal(rq_catalog_switch_set(w.catalog, RQ_SWITCH_SPLIT, false, &before, NULL),
                     RQ_OK);
    expect_refused(&w, world_split(&w, "t", "a", "c"), RQ_E_DO_NOT_RETRY,
                   "failed due to split switch off");
    assert_int_equal(rq_catalog_switch_set(w.catalog, RQ_SWITCH_SPLIT, true, &before, NULL), RQ_OK);
    assert_int_equal(world_table(&w, RQ_DDL_DISABLE_TABLE, "t"), RQ_OK);
    expect_refused(&w, world_split(&w, "t", "a", "c"), RQ_E_TABLE_NOT_ENABLED, "t");
    assert_int_equal(world_create(&w, "fixed", "@SPLIT_ENABLED=false @MERGE_ENABLED=FALSE f", "m"),
                     RQ_OK);
    expect_refused(&w, world_split(&w, "fixed", "a", "c"), RQ_E_DO_NOT_RETRY,
                   "region split is disabled for the table");
    expect_refused(&w, world_merge(&w, "fixed", "a z", false), RQ_E_DO_NOT_RETRY,
                   "] failed as region merge is disabled for the table");
    assert_int_equal(
        world_create(&w, "never",
                     "@SPLIT_POLICY=org.apache.hadoop.hbase.regionserver.DisabledRegionSplitPolicy "
                     "f",
                     NULL),
        RQ_OK);
    expect_refused(&w, world_split(&w, "never", "a", "c"), RQ_E_DO_NOT_RETRY, "NOT splittable");
    expect_sound(&w);
    world_clear(&w);
}

/* A drop looks for the table's own parents only, between the rows of tables with similar names. */
static void a_drop_leaves_the_parents_of_other_tables(void **state)
{
    (void)state;
    static const char *const others[] = {"s", "t-t", "t.", "t0", "tt"};
    world w;
    world_init(&w, unit_seed(), NULL);
    assert_int_equal(world_open(&w), RQ_OK);
    rq_engine_compactions_enable(w.engine, false);
    for (size_t i = 0; i <= RQ_ARRAY_LEN(others); i++) {
        const char *table = i == 0 ? "t" : others[i - 1];
        assert_int_equal(world_create(&w, table, "f", NULL), RQ_OK);
        put_rows(&w, table, "akz");
        assert_int_equal(world_split(&w, table, "a", "k"), RQ_OK);
    }
    assert_int_equal(world_table(&w, RQ_DDL_DISABLE_TABLE, "t"), RQ_OK);
    assert_int_equal(world_table(&w, RQ_DDL_DELETE_TABLE, "t"), RQ_OK);
    expect_sound(&w);
    for (size_t i = 0; i < RQ_ARRAY_LEN(others); i++)
        expect_rows(&w, others[i], "a k z ");
    world_clear(&w);
}

static void rows_and_numbers_go_on_in_the_new_regions(void **state)
{
    (void)state;
    world w;
    world_init(&w, unit_seed(), NULL);
    assert_int_equal(world_open(&w), RQ_OK);
    assert_int_equal(world_create(&w, "t", "f g", NULL), RQ_OK);
    put_rows(&w, "t", "achkmz");
    assert_int_equal(world_table(&w, RQ_DDL_FLUSH_TABLE, "t"), RQ_OK);
    put_rows(&w, "t", "abn"); /* a second version of a, and new rows, all in the memstore */
    int64_t before, after;
    (void)regions_of(&w, "t", &before);
    rq_engine_compactions_enable(w.engine, false);
    assert_int_equal(world_split(&w, "t", "a", "k"), RQ_OK);
    assert_int_equal(regions_of(&w, "t", &after), 2);
    assert_true(after >= before + 9); /* above every sequence id assigned so far */
    expect_rows(&w, "t", "a b c h k m n z ");
    expect_sound(&w);
    /* A region with references is neither split nor merged. */
    expect_refused(&w, world_split(&w, "t", "a", "c"), RQ_E_DO_NOT_RETRY, "NOT splittable");
    expect_refused(&w, world_merge(&w, "t", "a z", false), RQ_E_MERGE_REGION, "is not mergeable");
    rq_engine_compactions_enable(w.engine, true);
    assert_int_equal(world_compact(&w, "t"), RQ_OK);
    assert_int_equal(world_split(&w, "t", "a", "c"), RQ_OK);
    expect_rows(&w, "t", "a b c h k m n z ");
    assert_int_equal(world_compact(&w, "t"), RQ_OK);
    assert_int_equal(world_merge(&w, "t", "z c a", false), RQ_OK);
    assert_int_equal(regions_of(&w, "t", &before), 1);
    assert_true(before >= after);
    expect_rows(&w, "t", "a b c h k m n z ");
    expect_sound(&w);
    /* The same after a restart. */
    put_rows(&w, "t", "x");
    assert_int_equal(world_close(&w, false), RQ_OK);
    assert_int_equal(world_open(&w), RQ_OK);
    expect_rows(&w, "t", "a b c h k m n x z ");
    expect_sound(&w);
    world_clear(&w);
}

static rq_err cut_before_the_check(void *ctx, const rq__proc *p, rq_error *why)
{
    if (p->ops->kind != RQ_DDL_MERGE_REGIONS || p->step != 0) return RQ_OK;
    rq_sim_cut_now(ctx);
    return rq_fail(why, RQ_E_IO, "cut");
}

/* The record is written before the first step, which checks the regions. Without that check a
 * resumed merge deleted the only row that names the parents of an earlier merge. */
static void a_merge_that_is_resumed_checks_its_regions(void **state)
{
    (void)state;
    world w;
    world_init(&w, unit_seed(), NULL);
    assert_int_equal(world_open(&w), RQ_OK);
    assert_int_equal(world_create(&w, "t", "f g", "g m"), RQ_OK);
    put_rows(&w, "t", "ahz");
    assert_int_equal(world_table(&w, RQ_DDL_FLUSH_TABLE, "t"), RQ_OK);
    assert_int_equal(world_merge(&w, "t", "a h", false), RQ_OK);
    assert_int_equal(world_compact(&w, "t"),
                     RQ_OK); /* no references are left, but the janitor has not run */
    rq_sim_advance(w.sim, 1000000000);
    w.catalog->procedures.before_step = cut_before_the_check;
    w.catalog->procedures.before_step_ctx = w.sim;
    (void)world_merge(&w, "t", "a z", false);
    (void)world_close(&w, false);
    rq_sim_run(w.sim);
    rq_sim_restart(w.sim);
    assert_int_equal(world_open(&w), RQ_OK);
    for (int i = 0; i < 100; i++)
        rq_sim_advance(w.sim, 10000000);
    expect_sound(&w);
    assert_int_equal(regions_of(&w, "t", NULL), 2);
    expect_rows(&w, "t", "a h z ");
    assert_int_equal(world_clean(&w, "t"), RQ_OK);
    assert_int_equal(world_merge(&w, "t", "a z", false), RQ_OK);
    expect_rows(&w, "t", "a h z ");
    expect_sound(&w);
    world_clear(&w);
}

static void a_truncated_region_has_nothing_and_goes_on(void **state)
{
    (void)state;
    world w;
    world_init(&w, unit_seed(), NULL);
    assert_int_equal(world_open(&w), RQ_OK);
    assert_int_equal(world_create(&w, "t", "f g", NULL), RQ_OK);
    put_rows(&w, "t", "acmz");
    assert_int_equal(world_table(&w, RQ_DDL_FLUSH_TABLE, "t"), RQ_OK);
    rq_engine_compactions_enable(w.engine, false);
    assert_int_equal(world_split(&w, "t", "a", "k"), RQ_OK); /* makes references */
    put_rows(&w, "t", "bn");                                 /* puts rows into the memstores */
    int64_t before, after;
    (void)regions_of(&w, "t", &before);
    assert_int_equal(world_truncate_region(&w, "t", "m"), RQ_OK);
    expect_rows(&w, "t", "a b c ");
    assert_int_equal(regions_of(&w, "t", &after), 2);
    put_rows(&w, "t", "z");
    /* Twice, and after a crash: the log still contains the truncated rows, and those put since. */
    assert_int_equal(world_truncate_region(&w, "t", "z"), RQ_OK);
    put_rows(&w, "t", "y");
    (void)world_close(&w, false);
    assert_int_equal(world_open(&w), RQ_OK);
    expect_rows(&w, "t", "a b c y ");
    expect_sound(&w);
    expect_refused(&w, world_truncate_region(&w, "hbase:meta", "t"), RQ_E_IOEXCEPTION,
                   "Can't truncate region in catalog tables");
    assert_int_equal(world_table(&w, RQ_DDL_DISABLE_TABLE, "t"), RQ_OK);
    expect_refused(&w, world_truncate_region(&w, "t", "a"), RQ_E_TABLE_NOT_ENABLED, "t");
    assert_int_equal(world_table(&w, RQ_DDL_ENABLE_TABLE, "t"), RQ_OK);
    expect_rows(&w, "t", "a b c y ");
    expect_sound(&w);
    world_clear(&w);
}

static size_t count_files(world *w, const char *dir)
{
    rq_arena a;
    rq_arena_init(&a);
    rq_dir_entry *entries;
    size_t count, n = 0;
    if (rq_vfs_list(w->env->vfs, dir, &a, &entries, &count, NULL) != RQ_OK) count = 0;
    for (size_t i = 0; i < count; i++) {
        char *path = rq_arena_printf(&a, "%s/%s", dir, entries[i].name);
        n += entries[i].is_dir ? count_files(w, path) : entries[i].name[0] != '.';
    }
    rq_arena_clear(&a);
    return n;
}

static void parents_stay_while_referred_to(void **state)
{
    (void)state;
    world w;
    world_init(&w, unit_seed(), NULL);
    assert_int_equal(world_open(&w), RQ_OK);
    assert_int_equal(world_create(&w, "t", "f", NULL), RQ_OK);
    put_rows(&w, "t", "abcxyz");
    rq_engine_compactions_enable(w.engine, false);
    assert_int_equal(world_split(&w, "t", "a", "m"), RQ_OK);
    /* Over a restart, with references that no compaction has rewritten. */
    assert_int_equal(world_clean(&w, "t"), RQ_OK);
    assert_int_equal(world_close(&w, true), RQ_OK);
    assert_int_equal(world_open(&w), RQ_OK);
    expect_rows(&w, "t", "a b c x y z ");
    assert_int_equal(world_compact(&w, "t"), RQ_OK);
    expect_sound(&w);
    /* Files: the parent's, the two daughters', and files of sequence ids. */
    size_t before = count_files(&w, "data/default/t");
    assert_int_equal(world_clean(&w, "t"), RQ_OK);
    assert_true(count_files(&w, "data/default/t") < before);
    assert_int_equal(count_files(&w, "archive/data/default/t"), 1);
    expect_rows(&w, "t", "a b c x y z ");
    expect_sound(&w);
    /* Dropped while its parents are not yet archived. */
    assert_int_equal(world_merge(&w, "t", "a z", false), RQ_OK);
    assert_int_equal(world_table(&w, RQ_DDL_DISABLE_TABLE, "t"), RQ_OK);
    assert_int_equal(world_table(&w, RQ_DDL_DELETE_TABLE, "t"), RQ_OK);
    expect_sound(&w);
    world_clear(&w);
}

static rq_region_info info_at(world *w, rq_arena *a, const char *row)
{
    rq_region_info info;
    const rq_catalog_region *r;
    rq_epoch_member m = {0};
    rq_epoch_pin(w->env->epoch, &m);
    assert_int_equal(rq_catalog_locate(w->catalog, RQ_SLICE_LIT("t"), rq_slice_cstr(row), &r, NULL),
                     RQ_OK);
    assert_int_equal(rq_region_info_copy(a, r->info, &info), RQ_OK);
    rq_epoch_unpin(w->env->epoch, &m);
    return info;
}

static rq_table_schema *schema_at(world *w, const char *row)
{
    const rq_catalog_region *r;
    assert_int_equal(rq_catalog_locate(w->catalog, RQ_SLICE_LIT("t"), rq_slice_cstr(row), &r, NULL),
                     RQ_OK);
    return rq_region_schema(r->region);
}

static void compact_at(world *w, const char *row)
{
    const rq_catalog_region *r;
    assert_int_equal(rq_catalog_locate(w->catalog, RQ_SLICE_LIT("t"), rq_slice_cstr(row), &r, NULL),
                     RQ_OK);
    rq_region *region = rq_region_ref(r->region);
    rq_engine_compactions_enable(w->engine, true);
    assert_int_equal(rq_region_compact(region, (rq_slice){0}, true, NULL), RQ_OK);
    while (rq_region_compaction_state(region) != 0)
        if (!rq_sim_step(w->sim)) rq_sim_advance(w->sim, 10000000);
    rq_engine_compactions_enable(w->engine, false);
    assert_false(rq_region_has_references(region));
    rq_region_unref(region);
}

static bool has_folder(world *w, const rq_region_info *info)
{
    char path[100];
    rq_stat st;
    snprintf(path, sizeof path, "data/default/t/%s", info->encoded);
    return rq_vfs_stat(w->env->vfs, path, &st, NULL) == RQ_OK;
}

/* A deposed master of a cluster repeats that step after its successor has split and archived the
 * daughter. */
static void a_daughter_that_is_laid_out_again_does_not_keep_its_parent(void **state)
{
    (void)state;
    world w;
    rq_arena a = {0};
    const rq_slice at = RQ_SLICE_LIT("m");
    world_init(&w, unit_seed(), NULL);
    assert_int_equal(world_open(&w), RQ_OK);
    assert_int_equal(world_create(&w, "t", "f", NULL), RQ_OK);
    put_rows(&w, "t", "acxz");
    rq_engine_compactions_enable(w.engine, false);
    rq_region_info parent = info_at(&w, &a, "a");
    rq_table_schema *schema = schema_at(&w, "a");
    assert_int_equal(world_split(&w, "t", "a", "m"), RQ_OK);
    rq_region_info daughter = info_at(&w, &a, "a");
    compact_at(&w, "a");
    assert_int_equal(world_split(&w, "t", "a", "b"), RQ_OK);
    compact_at(&w, "a");
    compact_at(&w, "c");
    assert_int_equal(world_clean(&w, "t"), RQ_OK);
    assert_false(has_folder(&w, &daughter));
    assert_true(has_folder(&w, &parent)); /* the other daughter refers to the parent */
    assert_int_equal(
        rq_region_create_from(w.engine, &daughter, schema, &parent, 1, &at, false, &w.why), RQ_OK);
    assert_int_equal(world_clean(&w, "t"), RQ_OK);
    assert_true(has_folder(&w, &parent));
    compact_at(&w, "x");
    assert_int_equal(world_clean(&w, "t"), RQ_OK);
    assert_false(has_folder(&w, &parent));
    assert_false(has_folder(&w, &daughter));
    expect_rows(&w, "t", "a c x z ");
    expect_sound(&w);
    rq_table_schema_unref(schema);
    rq_arena_clear(&a);
    world_clear(&w);
}

static void a_region_that_grows_is_split_by_its_policy(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        bool splits;
    } cases[] = {{"ConstantSize", true}, {"Disabled", false}, {"KeyPrefix", true}};
    for (size_t i = 0; i < RQ_ARRAY_LEN(cases); i++) {
        world w;
        world_init(&w, unit_seed(), NULL);
        assert_int_equal(world_open(&w), RQ_OK);
        char schema[400];
        snprintf(schema, sizeof schema,
                 "@hbase.table.sanity.checks=false @MEMSTORE_FLUSHSIZE=40000 @MAX_FILESIZE=20000 "
                 "@KeyPrefixRegionSplitPolicy.prefix_length=2 "
                 "@SPLIT_POLICY=org.apache.hadoop.hbase.regionserver.%sRegionSplitPolicy "
                 "f:BLOCKSIZE=2048",
                 cases[i].policy);
        assert_int_equal(world_create(&w, "t", schema, NULL), RQ_OK);
        static uint8_t value[1000];
        for (int k = 0; k < 200; k++) {
            char row[16];
            rq_err rc;
            snprintf(row, sizeof row, "r%03d", k);
            for (;;) { /* as a client retries while the region is being split */
                rc = world_put_cell(&w, "t", row, "f", "q", rq_slice_of(value, sizeof value));
                if (rc == RQ_OK) break;
                assert_true(rc == RQ_E_NOT_SERVING_REGION);
                rq_sim_advance(w.sim, 10000000);
                rq_sim_run(w.sim);
            }
            rq_sim_run(w.sim);
        }
        assert_true(world_settle(&w));
        assert_true((regions_of(&w, "t", NULL) > 1) == cases[i].splits);
        char *rows = world_rows(&w, "t");
        assert_int_equal(strlen(rows), 200 * 5);
        free(rows);
        if (strcmp(cases[i].policy, "KeyPrefix") == 0) {
            char *text = world_describe(&w);
            const char *bracket = strstr(text, ", r");
            assert_non_null(bracket);
            assert_int_equal(strcspn(bracket + 2, ")"), 2); /* split at a prefix of two bytes */
            free(text);
        }
        expect_sound(&w);
        world_clear(&w);
    }
}

/* --- a hole that another procedure fills first ------------------------------------------------ */

typedef struct hole {
    world *w;
    rq_ddl lock, fill, assign;
    unsigned answered;
    rq_region *open; /* the open region when the reopening began; has a reference */
} hole;

static void fill_answered(rq_ddl *d)
{
    RQ_CONTAINER_OF(d, hole, fill)->answered++;
    assert_int_equal(d->rc, RQ_OK);
}

static void assign_answered(rq_ddl *d)
{
    RQ_CONTAINER_OF(d, hole, assign)->answered++;
    assert_int_equal(d->rc, RQ_OK);
}

static void lock_answered(rq_ddl *d)
{
    assert_int_equal(d->rc, RQ_OK);
}

/* Submits the lock, or a procedure that waits for the lock. */
static void submit_waiting(hole *h, rq_ddl *d, rq_ddl_kind kind, void (*answered)(rq_ddl *d))
{
    d->kind = kind;
    d->ns = RQ_SLICE_LIT("default");
    d->qualifier = RQ_SLICE_LIT("t");
    d->submitted = answered;
    rq_catalog_submit(h->w->catalog, d);
    rq_sim_run(h->w->sim);
    assert_int_equal(h->answered, 0);
}

static rq_region *region_of_a(world *w)
{
    rq_epoch_member m = {0};
    const rq_catalog_region *r;
    rq_epoch_pin(w->env->epoch, &m);
    rq_err rc = rq_catalog_locate(w->catalog, RQ_SLICE_LIT("t"), RQ_SLICE_LIT("a"), &r, NULL);
    rq_region *region = rc != RQ_OK || r->region == NULL ? NULL : rq_region_ref(r->region);
    rq_epoch_unpin(w->env->epoch, &m);
    return region;
}

static rq_err watch_steps(void *ctx, const rq__proc *p, rq_error *why)
{
    hole *h = ctx;
    (void)why;
    if (p->ops->kind == RQ_DDL_REOPEN_REGION && h->open == NULL) h->open = region_of_a(h->w);
    return RQ_OK;
}

/* Another procedure assigns the region that FILL_HOLES has found. The reopening that FILL_HOLES
 * submits runs after that. */
static void a_filled_hole_that_is_open_is_not_closed_again(void **state)
{
    (void)state;
    world w;
    world_init(&w, unit_seed(), NULL);
    hole h = {.w = &w};
    char encoded[RQ_ENCODED_NAME_LEN + 1];
    assert_int_equal(world_open(&w), RQ_OK);
    assert_int_equal(world_create(&w, "t", "f", NULL), RQ_OK);
    put_rows(&w, "t", "a");
    rq_region *before = region_of_a(&w);
    assert_non_null(before);
    memcpy(encoded, rq_region_get_info(before)->encoded, sizeof encoded);
    rq_region_unref(before);
    assert_int_equal(world_forget(&w, "t", "a"), RQ_OK);
    assert_int_equal(world_close(&w, true), RQ_OK);
    assert_int_equal(world_open(&w), RQ_OK);
    h.lock.of.lock.description = RQ_SLICE_LIT("a test");
    submit_waiting(&h, &h.lock, RQ_DDL_LOCK_TABLE, lock_answered);
    submit_waiting(&h, &h.fill, RQ_DDL_FILL_HOLES, fill_answered);
    h.assign.of.one_region.region = rq_slice_cstr(encoded);
    submit_waiting(&h, &h.assign, RQ_DDL_ASSIGN_REGION, assign_answered);
    w.catalog->procedures.before_step = watch_steps;
    w.catalog->procedures.before_step_ctx = &h;
    /* the lock expires because it is not renewed */
    rq_sim_advance(w.sim, UINT64_C(3600) * 1000000000);
    assert_true(world_settle(&w));
    assert_int_equal(h.answered, 2);
    assert_non_null(h.open); /* the region was open before the reopening began */
    rq_region *now = region_of_a(&w);
    assert_ptr_equal(now, h.open);
    rq_region_unref(now);
    rq_region_unref(h.open);
    expect_rows(&w, "t", "a ");
    expect_sound(&w);
    world_clear(&w);
}

static rq_err (*real_open)(rq_vfs *v, const char *path, int flags, rq_file **ret, rq_error *why);
static bool denied;

static rq_err deny_region_info(rq_vfs *v, const char *path, int flags, rq_file **ret, rq_error *why)
{
    const char *name = strrchr(path, '/');
    if (denied || name == NULL || strcmp(name, "/.regioninfo") != 0)
        return real_open(v, path, flags, ret, why);
    denied = true;
    return rq_fail(why, RQ_E_PERMISSION, "cannot open %s", path);
}

/* A region that cannot be read now is not absent: no empty region takes its place. */
static void a_hole_is_not_filled_while_its_region_cannot_be_read(void **state)
{
    (void)state;
    world w;
    world_init(&w, unit_seed(), NULL);
    assert_int_equal(world_open(&w), RQ_OK);
    assert_int_equal(world_create(&w, "t", "f", NULL), RQ_OK);
    put_rows(&w, "t", "a");
    assert_int_equal(world_forget(&w, "t", "a"), RQ_OK);
    assert_int_equal(world_close(&w, true), RQ_OK);
    assert_int_equal(world_open(&w), RQ_OK);
    real_open = w.env->vfs->open;
    denied = false;
    w.env->vfs->open = deny_region_info;
    (void)world_table(&w, RQ_DDL_FILL_HOLES, "t");
    assert_true(denied);
    w.env->vfs->open = real_open;
    assert_int_equal(world_table(&w, RQ_DDL_FILL_HOLES, "t"), RQ_OK);
    assert_true(world_settle(&w));
    expect_rows(&w, "t", "a ");
    world_clear(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(invalid_requests_are_refused_with_hbases_messages),
        cmocka_unit_test(a_drop_leaves_the_parents_of_other_tables),
        cmocka_unit_test(rows_and_numbers_go_on_in_the_new_regions),
        cmocka_unit_test(a_merge_that_is_resumed_checks_its_regions),
        cmocka_unit_test(a_truncated_region_has_nothing_and_goes_on),
        cmocka_unit_test(parents_stay_while_referred_to),
        cmocka_unit_test(a_daughter_that_is_laid_out_again_does_not_keep_its_parent),
        cmocka_unit_test(a_region_that_grows_is_split_by_its_policy),
        cmocka_unit_test(a_filled_hole_that_is_open_is_not_closed_again),
        cmocka_unit_test(a_hole_is_not_filled_while_its_region_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
