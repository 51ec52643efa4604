/* SPDX-License-Identifier: Apache-2.0 */
/* SequenceFiles: written records are read, from whole files and from parts; damage is reported. */
#include "unit.h"

#include "transfer/hashdir.h"
#include "transfer/plan.h"
#include "transfer/result.h"
#include "transfer/seqfile.h"
#include "vfs/memory.h"

#include <stdio.h>
#include <zlib.h>

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

/* Reads a part, whose keys must continue from *next. */
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

/* --- files of compressed blocks ----------------------------------------------------------------- */

static void put_deflated(rq_buf *to, const uint8_t *bytes, size_t len)
{
    uint8_t out[127]; /* so that the length takes one byte as a vint */
    uLongf size = sizeof out;
    assert_int_equal(compress(out, &size, bytes, len), Z_OK);
    assert_int_equal(rq_buf_append_u8(to, (uint8_t)size), RQ_OK);
    assert_int_equal(rq_buf_append(to, out, size), RQ_OK);
}

static void put_text(rq_buf *to, const char *text)
{
    assert_int_equal(rq_buf_append_u8(to, (uint8_t)strlen(text)), RQ_OK);
    assert_int_equal(rq_buf_append(to, text, strlen(text)), RQ_OK);
}

/* Two hashes, whose keys are the letters at `name`. */
static void put_block(rq_buf *to, const uint8_t sync[16], const char *name)
{
    const uint8_t key_lengths[] = {5, 5}, value_lengths[] = {4 + RQ__HASH_LEN, 4 + RQ__HASH_LEN};
    const uint8_t keys[] = {0, 0, 0, 1, (uint8_t)name[0], 0, 0, 0, 1, (uint8_t)name[1]};
    uint8_t values[2 * (4 + RQ__HASH_LEN)] = {0};
    values[3] = values[4 + RQ__HASH_LEN + 3] = RQ__HASH_LEN;
    assert_int_equal(rq_buf_append_be32(to, UINT32_MAX), RQ_OK);
    assert_int_equal(rq_buf_append(to, sync, 16), RQ_OK);
    assert_int_equal(rq_buf_append_u8(to, 2), RQ_OK);
    put_deflated(to, key_lengths, sizeof key_lengths);
    put_deflated(to, keys, sizeof keys);
    put_deflated(to, value_lengths, sizeof value_lengths);
    put_deflated(to, values, sizeof values);
}

static rq_vfs *make_blocks(const char *names)
{
    const uint8_t sync[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    rq_vfs *v;
    rq_buf b = {0};
    assert_int_equal(rq_buf_append(&b, "SEQ\6", 4), RQ_OK);
    put_text(&b, RQ__CLASS_BYTES);
    put_text(&b, RQ__CLASS_BYTES);
    assert_int_equal(rq_buf_append(&b, "\1\1", 2), RQ_OK);
    put_text(&b, "org.apache.hadoop.io.compress.DefaultCodec");
    assert_int_equal(rq_buf_append_be32(&b, 0), RQ_OK);
    assert_int_equal(rq_buf_append(&b, sync, sizeof sync), RQ_OK);
    for (; *names != '\0'; names += 2)
        put_block(&b, sync, names);
    assert_int_equal(rq_vfs_memory_new(&v), RQ_OK);
    assert_int_equal(rq_vfs_mkdirs(v, "hashes/part-r-00000", NULL), RQ_OK);
    assert_int_equal(rq_vfs_write_new_file(v, "hashes/part-r-00000/data", rq_buf_slice(&b), NULL),
                     RQ_OK);
    rq_buf_clear(&b);
    return v;
}

/* A comparison's part begins reading in the block of its first batch. Reading from the start of the
 * file would make the work grow with the square of the number of batches. */
static void reading_hashes_goes_on_at_their_block(void **state)
{
    rq_vfs *v = make_blocks("abcdef");
    rq__hash_reader r, again;
    rq__hash_place place, ignored;
    rq_slice key;
    uint8_t hash[RQ__HASH_LEN];
    (void)state;
    rq__hash_reader_init(v, 1, (rq__hash_place){0, 0}, &r);
    for (char name = 'a'; name <= 'f'; name++) {
        assert_int_equal(rq__hash_next(&r, &key, hash, &place, NULL), RQ_OK);
        assert_true(key.len == 1 && *key.ptr == (uint8_t)name);
        rq__hash_reader_init(v, 1, place, &again);
        assert_int_equal(rq__hash_next(&again, &key, hash, &ignored, NULL), RQ_OK);
        assert_int_equal(*key.ptr, name - (name - 'a') % 2); /* the first hash of the block */
        rq__hash_reader_close(&again);
    }
    assert_int_equal(rq__hash_next(&r, &key, hash, &place, NULL), RQ_E_END);
    rq__hash_reader_close(&r);
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
        cmocka_unit_test(reading_hashes_goes_on_at_their_block),
        cmocka_unit_test(a_plan_is_only_for_its_own_transfer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
