/* SPDX-License-Identifier: Apache-2.0 */
/* SequenceFiles: what is written is read, whole and in parts; damage is reported. */
#include "unit.h"

#include "transfer/plan.h"
#include "transfer/result.h"
#include "transfer/seqfile.h"
#include "vfs/memory.h"

#include <stdio.h>

enum { RECORDS = 20000 };

static rq_vfs *make_file(void)
{
    rq_vfs *v;
    rq__seq_writer w;
    assert_int_equal(rq_vfs_memory_new(&v), RQ_OK);
    assert_int_equal(rq__seq_writer_open(v, "f", RQ__CLASS_RESULT, &w, NULL), RQ_OK);
    for (int i = 0; i < RECORDS; i++) {
        char key[16], value[64];
        int len = snprintf(key, sizeof key, "key%06d", i);
        int value_len = snprintf(value, sizeof value, "%0*d", i % 60, i);
        assert_int_equal(rq__seq_append(&w, rq_slice_of(key, (size_t)len),
                                        rq_slice_of(value, (size_t)value_len), NULL),
                         RQ_OK);
    }
    assert_int_equal(rq__seq_writer_finish(&w, NULL), RQ_OK);
    rq__seq_writer_close(&w);
    return v;
}

/* Reads a part, whose keys must go on from *next. */
static rq_err read_part(rq_vfs *v, uint64_t from, uint64_t to, int *next)
{
    rq__seq_reader r;
    rq_slice key, value;
    char text[16];
    rq_err rc = rq__seq_reader_open(v, "f", RQ__CLASS_RESULT, &r, NULL);
    if (rc == RQ_OK) rc = rq__seq_seek(&r, from, NULL);
    while (rc == RQ_OK && (rc = rq__seq_next(&r, to, &key, &value, NULL)) == RQ_OK) {
        snprintf(text, sizeof text, "key%06d", *next);
        assert_int_equal(key.len, 9);
        assert_memory_equal(key.ptr, text, key.len);
        ++*next;
    }
    rq__seq_reader_close(&r);
    return rc;
}

static uint64_t size_of(rq_vfs *v)
{
    rq_stat st;
    assert_int_equal(rq_vfs_stat(v, "f", &st, NULL), RQ_OK);
    return st.size;
}

static void parts_have_each_record_once(void **state)
{
    rq_vfs *v = make_file();
    uint64_t size = size_of(v);
    (void)state;
    assert_true(size > 5 * 102400); /* several sync markers */
    static const uint64_t steps[] = {UINT64_MAX, 100000, 102401, 7777, 250000};
    for (size_t i = 0; i < RQ_ARRAY_LEN(steps); i++) {
        int next = 0;
        uint64_t step = steps[i] < size ? steps[i] : size;
        for (uint64_t from = 0; from < size; from += step) {
            uint64_t to = size - from < step ? size : from + step;
            assert_int_equal(read_part(v, from, to, &next), RQ_E_END);
        }
        assert_int_equal(next, RECORDS);
    }
    rq_vfs_free(v);
}

static void a_file_that_is_cut_is_corrupt(void **state)
{
    rq_vfs *v = make_file();
    rq_file *f;
    int next = 0;
    (void)state;
    assert_int_equal(rq_vfs_open(v, "f", RQ_OPEN_WRITE, &f, NULL), RQ_OK);
    assert_int_equal(rq_file_truncate(f, size_of(v) - 1, NULL), RQ_OK);
    assert_int_equal(read_part(v, 0, UINT64_MAX, &next), RQ_E_CORRUPT);
    assert_int_equal(next, RECORDS - 1);
    assert_int_equal(rq_file_truncate(f, 0, NULL), RQ_OK);
    assert_int_equal(read_part(v, 0, UINT64_MAX, &next), RQ_E_CORRUPT);
    (void)rq_file_close(f);
    rq_vfs_free(v);
}

static void a_plan_is_only_for_its_own_transfer(void **state)
{
    static const char *const parts[] = {"a", "b c", "d"};
    rq_vfs *v;
    rq__plan p;
    (void)state;
    assert_int_equal(rq_vfs_memory_new(&v), RQ_OK);
    assert_int_equal(rq__plan_open(v, "x/y", "export t", parts, 3, true, &p, NULL), RQ_OK);
    assert_int_equal(rq__plan_note_done(&p, 1, "rows 7\n", NULL), RQ_OK);
    rq__plan_close(&p);
    assert_int_equal(rq__plan_open(v, "x/y", "export u", parts, 3, true, &p, NULL), RQ_E_CONFLICT);
    rq__plan_close(&p);
    assert_int_equal(rq__plan_open(v, "x/y", "export t", parts, 2, true, &p, NULL), RQ_E_CONFLICT);
    rq__plan_close(&p);
    assert_int_equal(rq__plan_open(v, "x/y", "export t", parts, 2, false, &p, NULL), RQ_OK);
    assert_int_equal(p.count, 3);
    assert_int_equal(p.done, 1);
    assert_true(p.is_done[1] && !p.is_done[0] && p.is_resumed);
    assert_string_equal(p.parts[1], "b c");
    assert_int_equal(rq__plan_remove(&p, NULL), RQ_OK);
    rq__plan_close(&p);
    assert_int_equal(rq__plan_open(v, "x/y", "export u", parts, 1, true, &p, NULL), RQ_OK);
    assert_false(p.is_resumed);
    rq__plan_close(&p);
    rq_vfs_free(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_have_each_record_once),
        cmocka_unit_test(a_file_that_is_cut_is_corrupt),
        cmocka_unit_test(a_plan_is_only_for_its_own_transfer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
