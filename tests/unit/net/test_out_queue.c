/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of a connection's output (net/out_queue.h): order, counts, reuse of buffers. */
#include "net/out_queue.h"

#include "../base/unit.h"

static void put(rq_out_queue *q, rq_out_pool *p, const char *text)
{
    rq_buf *b = rq__out_queue_tail(q, p);
    assert_non_null(b);
    assert_int_equal(rq_buf_append(b, text, strlen(text)), RQ_OK);
    rq__out_queue_count(q);
}

static void assert_front(const rq_out_queue *q, const char *text)
{
    struct iovec iov[8];
    char all[256] = "";
    size_t len, at = 0;
    unsigned n = rq__out_queue_gather(q, iov, 8, &len);
    for (unsigned i = 0; i < n; i++) {
        memcpy(all + at, iov[i].iov_base, iov[i].iov_len);
        at += iov[i].iov_len;
    }
    assert_int_equal(len, strlen(text));
    assert_memory_equal(all, text, len);
}

static void appended_bytes_come_out_in_order(void **state)
{
    (void)state;
    rq_out_queue q = {0};
    rq_out_pool p = {0};
    put(&q, &p, "one");
    put(&q, &p, "two");
    rq_buf moved = {0};
    assert_int_equal(rq_buf_append(&moved, "three", 5), RQ_OK);
    assert_int_equal(rq__out_queue_move(&q, &moved), RQ_OK);
    assert_null(moved.ptr);
    put(&q, &p, "four");
    assert_int_equal(q.pending, 15);
    assert_front(&q, "onetwothreefour");
    rq__out_queue_consume(&q, &p, 4);
    assert_front(&q, "wothreefour");
    rq__out_queue_consume(&q, &p, 5);
    assert_front(&q, "eefour");
    rq__out_queue_consume(&q, &p, 6);
    assert_int_equal(q.pending, 0);
    assert_null(q.head);
    rq__out_pool_clear(&p);
}

/* The message of a response fills a buffer, and its cells begin another: the bytes in both buffers
 * are counted. */
static void an_answer_in_two_buffers_is_counted_whole(void **state)
{
    (void)state;
    static char front[48 * 1024];
    for (size_t counted = 0; counted < sizeof front; counted += 400) {
        rq_out_queue q = {0};
        rq_out_pool p = {0};
        assert_int_equal(rq_buf_append(rq__out_queue_tail(&q, &p), front, counted), RQ_OK);
        rq__out_queue_count(&q);
        assert_int_equal(rq_buf_append(rq__out_queue_tail(&q, &p), front, 900), RQ_OK);
        assert_int_equal(rq_buf_append(rq__out_queue_tail(&q, &p), front, 500), RQ_OK);
        rq__out_queue_count(&q);
        struct iovec iov[8];
        size_t len;
        rq__out_queue_gather(&q, iov, 8, &len);
        assert_int_equal(len, counted + 1400);
        assert_int_equal(q.pending, len);
        rq__out_queue_consume(&q, &p, len);
        assert_null(q.head);
        rq__out_pool_clear(&p);
    }
}

/* With a peer that always lags a little, a buffer must not grow forever. */
static void a_partly_written_buffer_stops_growing(void **state)
{
    (void)state;
    rq_out_queue q = {0};
    rq_out_pool p = {0};
    put(&q, &p, "being written");
    rq__out_queue_consume(&q, &p, 6);
    for (int i = 0; i < 1000; i++)
        put(&q, &p, "later");
    assert_int_equal(q.head->buf.len, 13);
    assert_int_equal(q.pending, 7 + 5000);
    rq__out_queue_consume(&q, &p, 7);
    assert_int_equal(q.head->buf.len, 5000);
    rq__out_queue_drop(&q, &p);
    assert_int_equal(q.pending, 0);
    rq__out_pool_clear(&p);
}

static void emptied_buffers_are_used_again(void **state)
{
    (void)state;
    rq_out_queue q = {0};
    rq_out_pool p = {0};
    put(&q, &p, "x");
    const uint8_t *at = q.head->buf.ptr;
    rq__out_queue_consume(&q, &p, 1);
    put(&q, &p, "y");
    assert_ptr_equal(q.head->buf.ptr, at);
    rq__out_queue_drop(&q, &p);
    rq__out_pool_clear(&p);
}

static rq_buf buffer(size_t bytes)
{
    rq_buf b = {0};
    assert_int_equal(rq_buf_reserve(&b, bytes), RQ_OK);
    memset(b.ptr, 'b', bytes);
    b.len = bytes;
    return b;
}

static void answers_that_are_appended_make_no_buffer_grow_beyond_what_is_kept(void **state)
{
    (void)state;
    rq_out_queue q = {0};
    rq_out_pool p = {0};
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < 200; i++) {
            rq_buf *out = rq__out_queue_tail(&q, &p);
            assert_non_null(out);
            assert_int_equal(rq_buf_reserve(out, 16384), RQ_OK);
            memset(out->ptr + out->len, 'a', 16384);
            out->len += 16384;
            rq__out_queue_count(&q);
            assert_in_range(out->cap, 16384, 65536);
        }
        assert_int_equal(q.pending, 200 * 16384);
        rq__out_queue_consume(&q, &p, q.pending);
        assert_int_equal(p.count, 32);
        assert_int_equal(p.spare_count, 0);
    }
    rq__out_pool_clear(&p);
}

/* The message of a response fills a buffer, and its cells are in the next one. */
static void an_answer_over_two_buffers_is_counted_whole(void **state)
{
    (void)state;
    rq_out_queue q = {0};
    rq_out_pool p = {0};
    size_t sum = 0;
    for (int i = 0; i < 10000; i++) {
        for (size_t part = 17; part <= 100; part += 83) {
            rq_buf *out = rq__out_queue_tail(&q, &p);
            assert_non_null(out);
            assert_int_equal(rq_buf_reserve(out, part), RQ_OK);
            memset(out->ptr + out->len, 'a', part);
            out->len += part;
            sum += part;
        }
        rq__out_queue_count(&q);
        assert_int_equal(q.pending, sum);
    }
    rq__out_queue_consume(&q, &p, sum);
    assert_null(q.head);
    rq__out_pool_clear(&p);
}

static void a_buffer_moved_in_is_a_spare_once_it_is_written(void **state)
{
    (void)state;
    rq_out_queue q = {0};
    rq_out_pool p = {0};
    rq_buf b = buffer(50000);
    const uint8_t *at = b.ptr;
    assert_int_equal(rq__out_queue_move(&q, &b), RQ_OK);
    rq__out_queue_consume(&q, &p, 49999);
    rq__out_pool_take(&p, 1, &b);
    assert_null(b.ptr);
    rq__out_queue_consume(&q, &p, 1);
    rq__out_pool_take(&p, 1, &b);
    assert_ptr_equal(b.ptr, at);
    assert_int_equal(b.len, 0);
    rq_buf_clear(&b);
    rq__out_pool_clear(&p);
}

static void of_the_spares_the_last_with_room_is_taken_else_the_largest(void **state)
{
    (void)state;
    static const size_t sizes[] = {100000, 300000, 200000, 50000};
    static const size_t wanted[] = {60000, 400000, 1, 1};
    static const size_t given[] = {200000, 300000, 50000, 100000};
    rq_out_pool p = {0};
    for (size_t i = 0; i < RQ_ARRAY_LEN(sizes); i++) {
        rq_buf b = buffer(sizes[i]);
        rq__out_pool_keep(&p, &b);
        assert_null(b.ptr);
    }
    for (size_t i = 0; i < RQ_ARRAY_LEN(wanted); i++) {
        rq_buf b = {0};
        rq__out_pool_take(&p, wanted[i], &b);
        assert_int_equal(b.cap, given[i]);
        rq_buf_clear(&b);
    }
    rq_buf none = {0};
    rq__out_pool_take(&p, 0, &none);
    assert_null(none.ptr);
    assert_int_equal(p.spare_bytes, 0);
}

static void spares_are_few_and_small_together(void **state)
{
    (void)state;
    rq_out_pool p = {0};
    for (size_t i = 0; i < 100; i++) {
        rq_buf b = buffer(i < 50 ? 1000 : 700000 + i);
        rq__out_pool_keep(&p, &b);
        assert_in_range(p.spare_count, 1, RQ_OUT_SPARES);
        assert_in_range(p.spare_bytes, 1000, RQ_OUT_SPARE_BYTES);
        assert_int_equal(p.spares[p.spare_count - 1].cap, i < 50 ? 1000 : 700000 + i);
    }
    rq_buf huge = buffer(RQ_OUT_SPARE_BYTES + 1);
    unsigned count = p.spare_count;
    rq__out_pool_keep(&p, &huge);
    assert_null(huge.ptr);
    assert_int_equal(p.spare_count, count);
    rq__out_pool_clear(&p);
    assert_int_equal(p.spare_bytes, 0);
}

static unsigned given; /* tasks posted to free memory */

static void free_later(rq_executor *ex, rq_pool pool, rq_task *task)
{
    (void)ex;
    (void)pool;
    given++;
    task->run(task);
}

/* Freeing it on the loop would block the loop while the kernel takes back the memory. */
static void a_huge_buffer_is_freed_by_a_pool(void **state)
{
    (void)state;
    rq_executor executor = {.submit = free_later};
    rq_out_queue q = {0};
    rq_out_pool p = {.executor = &executor};
    rq_buf b = {0};
    assert_int_equal(rq_buf_reserve(&b, RQ_OUT_SPARE_BYTES + 1), RQ_OK);
    b.len = 1;
    assert_int_equal(rq__out_queue_move(&q, &b), RQ_OK);
    given = 0;
    rq__out_queue_consume(&q, &p, 1);
    assert_int_equal(given, 1);
    rq__out_pool_clear(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appended_bytes_come_out_in_order),
        cmocka_unit_test(an_answer_in_two_buffers_is_counted_whole),
        cmocka_unit_test(a_partly_written_buffer_stops_growing),
        cmocka_unit_test(emptied_buffers_are_used_again),
        cmocka_unit_test(answers_that_are_appended_make_no_buffer_grow_beyond_what_is_kept),
        cmocka_unit_test(an_answer_over_two_buffers_is_counted_whole),
        cmocka_unit_test(a_buffer_moved_in_is_a_spare_once_it_is_written),
        cmocka_unit_test(of_the_spares_the_last_with_room_is_taken_else_the_largest),
        cmocka_unit_test(spares_are_few_and_small_together),
        cmocka_unit_test(a_huge_buffer_is_freed_by_a_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
