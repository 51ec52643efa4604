/* SPDX-License-Identifier: Apache-2.0 */
/* Closed regions of a cluster: a master's changes of their files and manifests, whichever server
 * has or had them open. */
#include "cluster.h"

#include "region/region_files.h"
#include "vfs/batch.h"
#include "wal/head.h"

/* --- closed regions --------------------------------------------------------------------------- */

/* The other half of the table's key range, or a region with another id. */
static rq_region_info make_info(cluster_server *s, const char *start, const char *end, int64_t id)
{
    rq_region_info info;
    assert_ok(rq_region_info_make(&s->f.arena, RQ_SLICE_LIT("default"), RQ_SLICE_LIT("t"),
                                  rq_slice_cstr(start), rq_slice_cstr(end), id, 0, &info));
    return info;
}

static void use_region(cluster_server *s, const rq_region_info *info)
{
    s->f.info = *info;
}

static rq_err make_linked(cluster_server *s, const rq_region_info *info, const rq_region_info *from,
                          const rq_region_files *files, rq_error *why)
{
    rq_vfs *batch;
    RQ_TRY(rq_vfs_batch_new(s->f.env->vfs, &batch, why));
    rq_err rc = rq_region_create_linked(s->f.engine, batch, info, s->f.schema, from, files, why);
    return rq_vfs_batch_end(batch, s->f.env->executor, rc, why);
}

/* As when a table is created or cloned. */
static void a_region_of_links_has_a_manifest(void **state)
{
    (void)state;
    cluster c;
    rq_region_files files = {0};
    rq__manifest m;
    cluster_init(&c);
    cluster_server *one = &c.servers[0], *two = &c.servers[1];
    rq_region_info empty = make_info(one, "", "", 2), clone = make_info(one, "", "", 3);
    rq_region_info first = one->f.info;
    assert_ok(make_linked(one, &empty, &empty, &files, NULL));
    use_region(two, &empty);
    assert_ok(cluster_open(two, NULL));
    assert_ok(put(&two->f, "r", "a", "q", 1, "x"));
    assert_ok(rq_region_flush(two->f.region, (rq_slice){0}, NULL, NULL));
    assert_ok(make_linked(one, &empty, &empty, &files, NULL)); /* a retry after a crash */
    cluster_manifest(two, &m);
    assert_int_equal(m.open_number, 1);
    assert_int_equal(rq__manifest_family_of(&m, RQ_SLICE_LIT("a"))->file_count, 1);
    assert_ok(cluster_close(two, false));
    use_region(one, &first);
    assert_ok(cluster_open(one, NULL));
    assert_ok(put(&one->f, "r", "a", "q", 1, "cloned"));
    assert_int_equal(rq_region_files_of_closed(one->f.engine, &first, one->f.schema, &one->f.arena,
                                               &files, NULL),
                     RQ_E_STATE);
    assert_ok(cluster_close(one, false));
    assert_ok(rq_region_files_of_closed(one->f.engine, &first, one->f.schema, &one->f.arena, &files,
                                        NULL));
    assert_ok(make_linked(one, &clone, &first, &files, NULL));
    use_region(two, &clone);
    assert_ok(cluster_open(two, NULL));
    assert_string_equal(get(&two->f, "r", "a", "q"), "cloned");
    cluster_end(&c);
}

static void a_region_is_split(void **state)
{
    (void)state;
    cluster c;
    rq_error why = {.code = RQ_OK};
    const rq_slice at = RQ_SLICE_LIT("m");
    cluster_init(&c);
    cluster_server *one = &c.servers[0], *two = &c.servers[1];
    rq_region_info parent = one->f.info,
                   halves[2] = {make_info(one, "", "m", 2), make_info(one, "m", "", 2)};
    assert_ok(cluster_open(two, NULL));
    assert_ok(put(&two->f, "a", "a", "q", RQ_TIMESTAMP_LATEST, "low"));
    assert_ok(put(&two->f, "z", "a", "q", RQ_TIMESTAMP_LATEST, "high"));
    assert_int_equal(rq_region_create_from(one->f.engine, &halves[0], one->f.schema, &parent, 1,
                                           &at, false, &why),
                     RQ_E_STATE);
    assert_ok(cluster_close(two, false));
    rq_sim_set_clock(c.sim, -3600 * 1000);
    for (int again = 0; again < 2; again++)
        for (int i = 0; i < 2; i++)
            assert_ok(rq_region_create_from(one->f.engine, &halves[i], one->f.schema, &parent, 1,
                                            &at, i == 1, NULL));
    use_region(two, &halves[1]);
    assert_ok(cluster_open(two, NULL));
    assert_string_equal(get(&two->f, "z", "a", "q"), "high");
    assert_ok(put(&two->f, "z", "a", "q", RQ_TIMESTAMP_LATEST, "later"));
    assert_string_equal(get(&two->f, "z", "a", "q"), "later");
    /* A deposed master repeats the step. */
    assert_int_equal(rq_region_create_from(one->f.engine, &halves[1], one->f.schema, &parent, 1,
                                           &at, true, &why),
                     RQ_E_STATE);
    assert_string_equal(get(&two->f, "z", "a", "q"), "later");
    assert_ok(rq_region_flush(two->f.region, (rq_slice){0}, NULL, NULL));
    /* The same if the table has been disabled by then. */
    assert_ok(cluster_close(two, false));
    assert_int_equal(rq_region_create_from(one->f.engine, &halves[1], one->f.schema, &parent, 1,
                                           &at, true, &why),
                     RQ_E_STATE);
    assert_ok(cluster_open(two, NULL));
    assert_string_equal(get(&two->f, "z", "a", "q"), "later");
    cluster_end(&c);
}

static bool has_references(const cluster_server *s, const rq_region_info *info)
{
    bool has;
    assert_ok(rq_region_folder_has_references(s->f.engine, info, &has, NULL));
    return has;
}

static void compact(cluster *c, cluster_server *s)
{
    assert_ok(rq_region_compact(s->f.region, (rq_slice){0}, true, NULL));
    while (rq_region_compaction_state(s->f.region) != 0)
        if (!rq_sim_step(c->sim)) rq_sim_advance(c->sim, 10000000);
}

/* The janitor's work before it looks for references that keep the parent. */
static void compact_and_drop(cluster *c, cluster_server *s)
{
    compact(c, s);
    assert_ok(rq_region_drop_stale_references(s->f.region, NULL));
}

/* The parent was opened again between two attempts, and has other files. References of the first
 * attempt do not keep it. */
static void a_split_that_is_tried_again_takes_the_files_of_now(void **state)
{
    (void)state;
    cluster c;
    const rq_slice at = RQ_SLICE_LIT("m");
    cluster_init(&c);
    cluster_server *one = &c.servers[0], *two = &c.servers[1];
    rq_region_info parent = one->f.info, half = make_info(one, "m", "", 2);
    assert_ok(cluster_open(two, NULL));
    assert_ok(put(&two->f, "x", "a", "q", RQ_TIMESTAMP_LATEST, "first"));
    assert_ok(cluster_close(two, false));
    assert_ok(
        rq_region_create_from(one->f.engine, &half, one->f.schema, &parent, 1, &at, true, NULL));
    assert_ok(cluster_open(two, NULL));
    assert_ok(put(&two->f, "y", "a", "q", RQ_TIMESTAMP_LATEST, "second"));
    assert_ok(rq_region_flush(two->f.region, (rq_slice){0}, NULL, NULL));
    compact(&c, two);
    assert_ok(cluster_close(two, false));
    assert_ok(
        rq_region_create_from(one->f.engine, &half, one->f.schema, &parent, 1, &at, true, NULL));
    use_region(two, &half);
    assert_ok(cluster_open(two, NULL));
    assert_string_equal(get(&two->f, "x", "a", "q"), "first");
    assert_string_equal(get(&two->f, "y", "a", "q"), "second");
    assert_true(has_references(one, &half));
    compact_and_drop(&c, two);
    assert_false(has_references(one, &half));
    assert_string_equal(get(&two->f, "x", "a", "q"), "first");
    cluster_end(&c);
}

/* References of a deposed master, written after the family was dropped. */
static void references_in_a_family_that_was_dropped_do_not_keep_the_parent(void **state)
{
    (void)state;
    cluster c;
    static const family_def one_family[] = {{"a", {NULL}}};
    const rq_slice at = RQ_SLICE_LIT("m");
    char dir[200], path[300];
    cluster_init(&c);
    cluster_server *one = &c.servers[0], *two = &c.servers[1];
    rq_region_info parent = one->f.info, half = make_info(one, "m", "", 2);
    assert_ok(cluster_open(two, NULL));
    assert_ok(put(&two->f, "x", "a", "q", RQ_TIMESTAMP_LATEST, "kept"));
    assert_ok(cluster_close(two, false));
    rq_table_schema_unref(two->f.schema);
    two->f.schema = make_schema("default", "t", one_family, 1);
    assert_ok(
        rq_region_create_from(one->f.engine, &half, two->f.schema, &parent, 1, &at, true, NULL));
    use_region(two, &half);
    assert_ok(cluster_open(two, NULL));
    snprintf(dir, sizeof dir, "data/default/t/%s/b", half.encoded);
    snprintf(path, sizeof path, "%s/0123456789abcdef0123456789abcdef.%s", dir, parent.encoded);
    assert_ok(rq_vfs_mkdirs(one->f.env->vfs, dir, NULL));
    assert_ok(rq_vfs_write_new_file(one->f.env->vfs, path, RQ_SLICE_LIT("late"), NULL));
    compact_and_drop(&c, two);
    assert_false(has_references(one, &half));
    assert_string_equal(get(&two->f, "x", "a", "q"), "kept");
    cluster_end(&c);
}

static rq_err remove_in_batch(cluster_server *s, rq_error *why)
{
    rq_vfs *batch;
    RQ_TRY(rq_vfs_batch_new(s->f.env->vfs, &batch, why));
    rq_err rc = rq_region_remove(s->f.engine, batch, &s->f.info, why);
    return rq_vfs_batch_end(batch, s->f.env->executor, rc, why);
}

static rq_err destroy_at_once(cluster_server *s, rq_error *why)
{
    return rq_region_destroy(s->f.engine, &s->f.info, why);
}

static void check_removal(rq_err (*removes)(cluster_server *s, rq_error *why))
{
    cluster c;
    rq_error why = {.code = RQ_OK};
    char name[32];
    cluster_init(&c);
    cluster_server *one = &c.servers[0], *two = &c.servers[1];
    memcpy(name, two->name, sizeof name);
    assert_ok(cluster_open(two, NULL));
    assert_ok(put(&two->f, "r", "a", "q", 1, "x"));
    assert_ok(rq_region_flush(two->f.region, (rq_slice){0}, NULL, NULL));
    assert_int_equal(removes(one, &why), RQ_E_STATE);
    assert_non_null(strstr(why.message, "which is not fenced"));
    assert_string_equal(get(&two->f, "r", "a", "q"), "x");
    assert_ok(put(&two->f, "s", "a", "q", 1, "in the log"));
    cluster_crash(&c, two);
    cluster_fence(one, name);
    assert_ok(removes(one, NULL));
    assert_ok(removes(one, NULL)); /* a retry after a crash */
    assert_int_equal(cluster_open(one, NULL), RQ_E_NOT_FOUND);
    assert_int_equal(cluster_keys(one, name), 0);
    assert_ok(rq_wal_retire(one->shared, name, NULL));
    assert_ok(rq_region_create(one->f.engine, &one->f.info, one->f.schema, NULL));
    assert_ok(cluster_open(one, NULL));
    assert_null(get(&one->f, "r", "a", "q"));
    assert_ok(cluster_close(one, false));
    assert_ok(removes(one, NULL));
    cluster_end(&c);
}

static void an_open_region_is_not_removed(void **state)
{
    (void)state;
    check_removal(destroy_at_once);
    check_removal(remove_in_batch);
}

static void a_removed_family_stays_removed(void **state)
{
    (void)state;
    static const family_def without[] = {{"b", {NULL}}};
    cluster c;
    rq__manifest m;
    char name[32];
    cluster_init(&c);
    cluster_server *one = &c.servers[0], *two = &c.servers[1];
    memcpy(name, two->name, sizeof name);
    assert_ok(cluster_open(two, NULL));
    assert_ok(put(&two->f, "r", "a", "q", 1, "flushed"));
    assert_ok(put(&two->f, "r", "b", "q", 1, "kept"));
    assert_int_equal(rq_region_remove_family(one->f.engine, &one->f.info, RQ_SLICE_LIT("a"), NULL),
                     RQ_E_STATE);
    assert_ok(rq_region_flush(two->f.region, (rq_slice){0}, NULL, NULL));
    assert_ok(put(&two->f, "s", "a", "q", 1, "in the log"));
    assert_ok(put(&two->f, "s", "b", "q", 1, "in the log"));
    cluster_crash(&c, two);
    cluster_fence(one, name);
    for (int again = 0; again < 2; again++)
        assert_ok(rq_region_remove_family(one->f.engine, &one->f.info, RQ_SLICE_LIT("a"), NULL));
    cluster_manifest(one, &m);
    assert_int_equal(m.family_count, 1);
    assert_true(rq_slice_eq(m.owner, rq_slice_cstr(name))); /* the owner's lease must end first */
    rq_table_schema *all = one->f.schema;
    one->f.schema = make_schema("default", "t", without, 1);
    assert_ok(cluster_open(one, NULL));
    assert_string_equal(get(&one->f, "s", "b", "q"), "in the log");
    assert_string_equal(get(&one->f, "r", "b", "q"), "kept");
    assert_ok(cluster_close(one, false));
    rq_table_schema_unref(one->f.schema);
    one->f.schema = all;
    assert_ok(cluster_open(one, NULL));
    assert_null(get(&one->f, "r", "a", "q"));
    assert_null(get(&one->f, "s", "a", "q"));
    cluster_end(&c);
}

static rq_region_numbers numbers_of(const cluster_server *s)
{
    rq_region_numbers n = {0};
    assert_ok(rq_region_numbers_of(s->f.engine, &s->f.info, &n, NULL));
    return n;
}

static rq_err truncate_noted(const cluster_server *s, rq_region_numbers noted)
{
    return rq_region_truncate(s->f.engine, &s->f.info, &noted, NULL);
}

/* Of files and of the log of a server that has ended. A repetition does not touch what was written since, nor does a master
 * that had stopped in the middle: it archives what the old manifest named. */
static void a_truncation_happens_once(void **state)
{
    (void)state;
    cluster c;
    rq__manifest m;
    char name[32];
    cluster_init(&c);
    cluster_server *one = &c.servers[0], *two = &c.servers[1];
    memcpy(name, two->name, sizeof name);
    assert_ok(cluster_open(two, NULL));
    rq_region_numbers before = numbers_of(one);
    assert_ok(put(&two->f, "r", "a", "q", 1, "flushed"));
    assert_ok(rq_region_flush(two->f.region, (rq_slice){0}, NULL, NULL));
    assert_ok(put(&two->f, "s", "b", "q", 1, "in the log"));
    assert_int_equal(truncate_noted(one, before), RQ_E_STATE);
    assert_string_equal(get(&two->f, "r", "a", "q"), "flushed");
    cluster_crash(&c, two);
    cluster_fence(one, name);
    assert_ok(truncate_noted(one, before));
    cluster_manifest(one, &m);
    assert_int_equal(m.family_count, 0);
    assert_true(rq_slice_eq(m.owner, rq_slice_cstr(name))); /* its lease is waited for */
    assert_int_equal(numbers_of(one).openings, before.openings + 1);
    assert_int_equal(numbers_of(one).truncations, before.truncations + 1);
    assert_ok(cluster_open(one, NULL));
    assert_null(get(&one->f, "r", "a", "q"));
    assert_null(get(&one->f, "s", "b", "q"));
    assert_ok(put(&one->f, "r", "a", "q", 1, "new"));
    assert_ok(put(&one->f, "s", "b", "q", 1, "new"));
    assert_ok(rq_region_flush(one->f.region, (rq_slice){0}, NULL, NULL));
    assert_ok(truncate_noted(one, before));
    assert_ok(cluster_close(one, false));
    assert_ok(truncate_noted(one, before));
    assert_ok(cluster_open(one, NULL));
    assert_string_equal(get(&one->f, "r", "a", "q"), "new");
    assert_string_equal(get(&one->f, "s", "b", "q"), "new");
    cluster_end(&c);
}

static rq_err (*manifest_get)(rq_shared *s, const char *name, rq_arena *arena, rq_slice *ret,
                              uint64_t *ret_generation, rq_error *why);
static cluster_server *later_master; /* NULL: it has had its turn */
static rq_region_numbers truncated_at;

/* Between the read of the manifest and its swap a later master truncates the region, and a client
 * writes to it. */
static rq_err get_and_be_deposed(rq_shared *s, const char *name, rq_arena *arena, rq_slice *ret,
                                 uint64_t *ret_generation, rq_error *why)
{
    cluster_server *by = later_master;
    rq_err rc = manifest_get(s, name, arena, ret, ret_generation, why);
    if (by == NULL || strncmp(name, "region:", 7) != 0) return rc;
    later_master = NULL;
    assert_ok(truncate_noted(by, truncated_at));
    assert_ok(cluster_open(by, NULL));
    assert_ok(put(&by->f, "r", "a", "q", 1, "new"));
    assert_ok(rq_region_flush(by->f.region, (rq_slice){0}, NULL, NULL));
    return rc;
}

static void a_deposed_truncation_spares_new_files(void **state)
{
    (void)state;
    cluster c;
    cluster_init(&c);
    cluster_server *one = &c.servers[0], *two = &c.servers[1];
    assert_ok(cluster_open(one, NULL));
    assert_ok(put(&one->f, "r", "a", "q", 1, "old"));
    assert_ok(cluster_close(one, false));
    truncated_at = numbers_of(one);
    manifest_get = one->shared->object_get;
    later_master = two;
    one->shared->object_get = get_and_be_deposed;
    assert_int_equal(truncate_noted(one, truncated_at), RQ_E_CONFLICT);
    one->shared->object_get = manifest_get;
    assert_ok(cluster_close(two, false));
    assert_ok(cluster_open(two, NULL));
    assert_string_equal(get(&two->f, "r", "a", "q"), "new");
    cluster_end(&c);
}

/* Of a procedure that was aborted meanwhile: the region is in use, or was closed again with its rows. */
static void a_truncation_of_a_region_that_was_opened_since_is_refused(void **state)
{
    (void)state;
    cluster c;
    cluster_init(&c);
    cluster_server *one = &c.servers[0], *two = &c.servers[1];
    rq_region_numbers noted = numbers_of(one);
    assert_ok(cluster_open(two, NULL));
    assert_ok(put(&two->f, "r", "a", "q", 1, "new"));
    assert_int_equal(truncate_noted(one, noted), RQ_E_STATE);
    assert_ok(cluster_close(two, false));
    assert_int_equal(truncate_noted(one, noted), RQ_E_CONFLICT);
    assert_ok(cluster_open(one, NULL));
    assert_string_equal(get(&one->f, "r", "a", "q"), "new");
    cluster_end(&c);
}

static rq_err refuse_to_link(rq_vfs *v, const char *from, const char *to, rq_error *why)
{
    (void)v;
    return rq_fail(why, RQ_E_IO, "%s is not linked to %s", from, to);
}

static size_t files_below(const cluster_server *s, const char *top)
{
    rq_arena a = {0};
    rq_dir_entry *entries;
    size_t count = 0;
    const char *dir = rq_arena_printf(&a, "%s%s/a", top, rq__region_dir(&a, &s->f.info));
    rq_err rc = rq_vfs_list(s->f.env->vfs, dir, &a, &entries, &count, NULL);
    rq_arena_clear(&a);
    return rc == RQ_OK ? count : 0;
}

/* The master ends between the swap and the files: a later one archives them, or an opening does. */
static void files_of_a_truncation_that_was_cut_are_archived(void **state)
{
    (void)state;
    for (int opened = 0; opened < 2; opened++) {
        cluster c;
        rq__manifest m;
        cluster_init(&c);
        cluster_server *one = &c.servers[0], *two = &c.servers[1];
        assert_ok(cluster_open(one, NULL));
        assert_ok(put(&one->f, "r", "a", "q", 1, "old"));
        assert_ok(cluster_close(one, false));
        rq_region_numbers noted = numbers_of(one);
        rq_vfs *vfs = one->f.env->vfs;
        rq_err (*link)(rq_vfs * v, const char *from, const char *to, rq_error *why) = vfs->link;
        vfs->link = refuse_to_link;
        assert_int_equal(truncate_noted(one, noted), RQ_E_IO);
        assert_ok(rq_region_numbers_of(one->f.engine, &one->f.info, &noted, NULL));
        assert_int_equal(noted.truncations, 1);
        noted.truncations = 0;
        if (opened == 1) assert_int_equal(cluster_open(two, NULL), RQ_E_IO);
        vfs->link = link;
        cluster_manifest(two, &m);
        assert_true(m.family_count == 0 && m.removed_count > 0 && files_below(two, "") == 1);
        if (opened == 0) assert_ok(truncate_noted(two, noted));
        assert_ok(cluster_open(two, NULL));
        assert_null(get(&two->f, "r", "a", "q"));
        cluster_manifest(two, &m);
        assert_true(m.removed_count == 0 && m.truncations == 1);
        assert_true(files_below(two, "") == 0 && files_below(two, "archive/") == 1);
        cluster_end(&c);
    }
}

/* What a failed change had opened is closed without a flush, and removed by any server. */
static void a_region_without_edits_is_given_up_without_a_flush(void **state)
{
    (void)state;
    cluster c;
    rq__manifest m;
    cluster_init(&c);
    cluster_server *one = &c.servers[0], *two = &c.servers[1];
    assert_ok(cluster_open(two, NULL));
    assert_ok(cluster_close(two, true));
    cluster_manifest(one, &m);
    assert_true(m.owner.len == 0 && m.log_count == 0);
    assert_int_equal(cluster_keys(one, two->name), 0);
    assert_ok(cluster_open(two, NULL));
    assert_ok(put(&two->f, "r", "a", "q", 1, "in the log"));
    assert_ok(cluster_close(two, true));
    cluster_manifest(one, &m);
    assert_true(rq_slice_eq(m.owner, rq_slice_cstr(two->name)));
    cluster_end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_region_of_links_has_a_manifest),
        cmocka_unit_test(a_region_is_split),
        cmocka_unit_test(a_split_that_is_tried_again_takes_the_files_of_now),
        cmocka_unit_test(references_in_a_family_that_was_dropped_do_not_keep_the_parent),
        cmocka_unit_test(an_open_region_is_not_removed),
        cmocka_unit_test(a_removed_family_stays_removed),
        cmocka_unit_test(a_truncation_happens_once),
        cmocka_unit_test(a_deposed_truncation_spares_new_files),
        cmocka_unit_test(a_truncation_of_a_region_that_was_opened_since_is_refused),
        cmocka_unit_test(files_of_a_truncation_that_was_cut_are_archived),
        cmocka_unit_test(a_region_without_edits_is_given_up_without_a_flush),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
