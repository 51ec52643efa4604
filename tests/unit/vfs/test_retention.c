/* SPDX-License-Identifier: Apache-2.0 */
/* Holders: files by any of their paths, the log from the lowest held position. */
#include "../base/unit.h"

#include "vfs/retention.h"

#include <stdio.h>

static rq_retention *new_retention(void)
{
    rq_retention *r;
    assert_int_equal(rq_retention_new(&r), RQ_OK);
    return r;
}

static rq_holder *hold(rq_retention *r, const char *name)
{
    rq_holder *h;
    assert_int_equal(rq_retention_hold(r, name, 7, &h), RQ_OK);
    return h;
}

static void a_new_holder_holds_everything_until_it_is_narrowed(void **state)
{
    (void)state;
    rq_retention *r = new_retention();
    assert_false(rq_retention_keeps(r, "archive/data/a"));
    rq_holder *h = hold(r, "one");
    assert_true(rq_retention_keeps(r, "archive/data/a"));
    assert_int_equal(rq_holder_add(h, "data/a"), RQ_OK);
    rq_holder_narrow(h);
    assert_true(rq_retention_keeps(r, "data/a"));
    assert_true(rq_retention_keeps(r, "archive/data/a"));
    assert_false(rq_retention_keeps(r, "archive/data/b"));
    rq_holder_release(h);
    assert_false(rq_retention_keeps(r, "data/a"));
    rq_retention_free(r);
}

static void a_mob_file_is_known_by_its_path_in_the_archive(void **state)
{
    (void)state;
    rq_arena a = {0};
    rq_retention *r = new_retention();
    rq_holder *h = hold(r, "one");
    assert_int_equal(rq_holder_add(h, "mobdir/data/default/t/r/f/x"), RQ_OK);
    rq_holder_narrow(h);
    const char *archived = rq_retention_archived(&a, "mobdir/data/default/t/r/f/x");
    assert_string_equal(archived, "archive/data/default/t/r/f/x");
    assert_true(rq_retention_keeps(r, archived));
    rq_holder_release(h);
    rq_retention_free(r);
    rq_arena_clear(&a);
}

static void many_names_are_all_held_and_no_others(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    char path[64];
    rq_retention *r = new_retention();
    rq_holder *h = hold(r, "many");
    for (int i = 0; i < COUNT; i++) {
        snprintf(path, sizeof path, "data/default/t/%d/f/%d", i % 100, i);
        assert_int_equal(rq_holder_add(h, path), RQ_OK);
        assert_int_equal(rq_holder_add(h, path), RQ_OK); /* adding a path twice has no effect */
    }
    rq_holder_narrow(h);
    for (int i = 0; i < COUNT; i++) {
        snprintf(path, sizeof path, "archive/data/default/t/%d/f/%d", i % 100, i);
        assert_true(rq_retention_keeps(r, path));
        snprintf(path, sizeof path, "archive/data/default/t/%d/f/x%d", i % 100, i);
        assert_false(rq_retention_keeps(r, path));
    }
    rq_arena a = {0};
    rq_holder_info *list;
    size_t count;
    assert_int_equal(rq_retention_list(r, &a, &list, &count), RQ_OK);
    assert_int_equal(count, 1);
    assert_string_equal(list[0].name, "many");
    assert_int_equal(list[0].files, COUNT);
    assert_int_equal(list[0].since_ms, 7);
    assert_false(list[0].holds_all_files);
    rq_arena_clear(&a);
    rq_holder_release(h);
    rq_retention_free(r);
}

static void the_lowest_position_of_the_log_counts(void **state)
{
    (void)state;
    rq_retention *r = new_retention();
    assert_true(rq_retention_log_from(r) == RQ_RETENTION_NO_LOG);
    rq_holder *a = hold(r, "a");
    assert_true(rq_retention_log_from(r) == RQ_RETENTION_NO_LOG); /* the holder holds only files */
    rq_holder *b = hold(r, "b");
    rq_holder_keep_log(a, 500);
    rq_holder_keep_log(b, 300);
    assert_int_equal(rq_retention_log_from(r), 300);
    rq_holder_keep_log(b, RQ_RETENTION_NO_LOG);
    assert_int_equal(rq_retention_log_from(r), 500);
    rq_holder_release(a);
    assert_true(rq_retention_log_from(r) == RQ_RETENTION_NO_LOG);
    rq_holder_release(b);
    rq_holder_release(NULL);
    rq_retention_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_holder_holds_everything_until_it_is_narrowed),
        cmocka_unit_test(a_mob_file_is_known_by_its_path_in_the_archive),
        cmocka_unit_test(many_names_are_all_held_and_no_others),
        cmocka_unit_test(the_lowest_position_of_the_log_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
