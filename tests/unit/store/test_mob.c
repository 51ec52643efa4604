/* SPDX-License-Identifier: Apache-2.0 */
/* Names, references and lists of MOB files. The names were taken from a folder of HBase 2.6.1. */
#include "store/mob.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void a_file_lies_where_hbase_puts_it(void **state)
{
    (void)state;
    rq_arena a = {0};
    rq_slice f = RQ_SLICE_LIT("f");
    assert_string_equal(rq_mob_family_dir(&a, RQ_SLICE_LIT("t"), f),
                        "mobdir/data/default/t/8710f5362b237e340ba83eeb6e111434/f");
    const char *dir = rq_mob_family_dir(&a, RQ_SLICE_LIT("ns:t"), f);
    assert_memory_equal(dir, "mobdir/data/ns/t/", 17);
    assert_null(rq_mob_family_dir(&a, RQ_SLICE_LIT("../t"), f));
    assert_null(rq_mob_family_dir(&a, RQ_SLICE_LIT("..:t"), f));
    assert_null(rq_mob_family_dir(&a, RQ_SLICE_LIT("ns:"), f));
    rq_arena_clear(&a);
}

static void a_file_is_named_as_hbase_names_it(void **state)
{
    (void)state;
    char name[RQ_MOB_FILE_NAME_LEN + 1];
    static const uint64_t random[2] = {0x0123456789abcdef, 0xfedcba9876543210};
    const char *region = "3e7c693fad145c1b69daad40c4b268c6";
    rq__mob_file_name((rq_slice){0}, 86400000 * INT64_C(3) / 2, random, region, name);
    assert_int_equal(strlen(name), RQ_MOB_FILE_NAME_LEN);
    assert_memory_equal(name, "d41d8cd98f00b204e9800998ecf8427e1970010", 39);
    assert_string_equal(name + 40,
                        "0123456789abcdeffedcba9876543210_3e7c693fad145c1b69daad40c4b268c6");
    rq_slice n = rq_slice_cstr(name);
    assert_true(rq_slice_eq(rq_mob_file_region(n), rq_slice_cstr(region)));
    /* The file's whole day must be over. */
    assert_false(rq_mob_file_is_expired(n, 86400000));
    assert_true(rq_mob_file_is_expired(n, 86400000 * INT64_C(4)));
    /* Times outside of the calendar keep the name's length. */
    static const int64_t odd[] = {INT64_MIN, -1, INT64_MAX, INT64_C(253402300800000)};
    for (size_t i = 0; i < RQ_ARRAY_LEN(odd); i++) {
        rq__mob_file_name((rq_slice){0}, odd[i], random, region, name);
        assert_int_equal(strlen(name), RQ_MOB_FILE_NAME_LEN);
    }
}

static rq_cell some_cell(void)
{
    return (rq_cell){.row = (const uint8_t *)"r",
                     .row_len = 1,
                     .family = (const uint8_t *)"f",
                     .family_len = 1,
                     .value = (const uint8_t *)"value",
                     .value_len = 5,
                     .tags = (const uint8_t *)"\0\2\x42x",
                     .tags_len = 4,
                     .type = RQ_TYPE_PUT};
}

static void a_reference_is_hbase_s_byte_for_byte(void **state)
{
    (void)state;
    rq_cell c = some_cell();
    rq_cell r;
    rq_buf bytes = {0};
    assert_false(rq__mob_is_reference(&c));
    assert_int_equal(
        rq__mob_reference_make(&c, RQ_SLICE_LIT("t"), RQ_SLICE_LIT("file"), &bytes, &r), RQ_OK);
    assert_true(rq__mob_is_reference(&r));
    assert_true(rq_slice_eq(rq_cell_value(&r), rq_slice_of("\0\0\0\5file", 8)));
    assert_true(
        rq_slice_eq(rq_slice_of(r.tags, r.tags_len), rq_slice_of("\0\1\5\0\2\6t\0\2\x42x", 11)));
    rq_mob_reference ref;
    bool names_file;
    assert_int_equal(rq__mob_reference_parse(&r, &ref, &names_file, NULL), RQ_OK);
    assert_true(names_file && rq_slice_eq(ref.table, RQ_SLICE_LIT("t")) &&
                rq_slice_eq(ref.file, RQ_SLICE_LIT("file")));
    rq_buf_clear(&bytes);
}

static void a_reference_that_leads_elsewhere_is_refused(void **state)
{
    (void)state;
    static const char *const files[] = {"../x", "a/b", ".hidden", ".."};
    rq_cell c = some_cell();
    rq_buf bytes = {0};
    for (size_t i = 0; i < RQ_ARRAY_LEN(files); i++) {
        rq_cell r;
        rq_mob_reference ref;
        bool names_file;
        assert_int_equal(
            rq__mob_reference_make(&c, RQ_SLICE_LIT("t"), rq_slice_cstr(files[i]), &bytes, &r),
            RQ_OK);
        assert_int_equal(rq__mob_reference_parse(&r, &ref, &names_file, NULL), RQ_E_MALFORMED);
    }
    /* Too short for a file name: HBase reads an empty value. */
    rq_cell r;
    rq_mob_reference ref;
    bool names_file = true;
    assert_int_equal(rq__mob_reference_make(&c, RQ_SLICE_LIT("t"), (rq_slice){0}, &bytes, &r),
                     RQ_OK);
    assert_int_equal(rq__mob_reference_parse(&r, &ref, &names_file, NULL), RQ_OK);
    assert_false(names_file);
    rq_buf_clear(&bytes);
}

static void a_list_of_files_comes_back_as_it_was(void **state)
{
    (void)state;
    rq_mob_refs refs = {0};
    rq_mob_refs again = {0};
    rq_buf out = {0};
    assert_int_equal(rq__mob_refs_encode(&refs, &out), RQ_OK);
    assert_true(rq_slice_eq(rq_buf_slice(&out), rq_slice_of("\0", 1)));
    char name[32];
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof name, "file%d", i / 2);
        rq_slice table = i % 4 < 2 ? RQ_SLICE_LIT("t") : RQ_SLICE_LIT("ns:u");
        assert_int_equal(rq__mob_refs_add(&refs, table, rq_slice_cstr(name)), RQ_OK);
    }
    assert_int_equal(refs.count, 250);
    rq_buf_reset(&out);
    assert_int_equal(rq__mob_refs_encode(&refs, &out), RQ_OK);
    assert_memory_equal(out.ptr, "ns:u/file1,file101,", 19);
    assert_int_equal(rq_mob_refs_add_encoded(&again, rq_buf_slice(&out), NULL), RQ_OK);
    assert_int_equal(again.count, 250);
    assert_true(rq_mob_refs_has(&again, RQ_SLICE_LIT("t"), RQ_SLICE_LIT("file0")));
    assert_false(rq_mob_refs_has(&again, RQ_SLICE_LIT("t"), RQ_SLICE_LIT("file1")));
    static const char *const bad[] = {"tt",     "/f",     "t/",   "t/f,",
                                      "t//u/f", "t/a//b", "t/..", "a:b:c/f"};
    for (size_t i = 0; i < 7; i++)
        if (rq_mob_refs_add_encoded(&again, rq_slice_cstr(bad[i]), NULL) == RQ_OK && i != 3)
            fail_msg("%s is taken for a list", bad[i]);
    rq_buf_clear(&out);
    rq_mob_refs_clear(&refs);
    rq_mob_refs_clear(&again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_lies_where_hbase_puts_it),
        cmocka_unit_test(a_file_is_named_as_hbase_names_it),
        cmocka_unit_test(a_reference_is_hbase_s_byte_for_byte),
        cmocka_unit_test(a_reference_that_leads_elsewhere_is_refused),
        cmocka_unit_test(a_list_of_files_comes_back_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
