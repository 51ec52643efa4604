/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/out_queue.h"

#include "unit.h"

static void put(rq_out_queue *q, rq_out_pool *p, const char *text)
{
    rq_buf *b = rq_out_queue_tail(q, p);
    assert_non_null(b);
    assert_int_equal(rq_buf_append(b, text, strlen(text)), RQ_OK);
    rq_out_queue_count(q);
}

static void assert_front(const rq_out_queue *q, const char *text)
{
    struct iovec iov[8];
    char all[256] = "";
    size_t len, at = 0;
    unsigned n = rq_out_queue_gather(q, iov, 8, &len);
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
    assert_int_equal(rq_out_queue_move(&q, &moved), RQ_OK);
    assert_null(moved.ptr);
    put(&q, &p, "four");
    assert_int_equal(q.pending, 15);
    assert_front(&q, "onetwothreefour");
    rq_out_queue_consume(&q, &p, 4);
    assert_front(&q, "wothreefour");
    rq_out_queue_consume(&q, &p, 5);
    assert_front(&q, "eefour");
    rq_out_queue_consume(&q, &p, 6);
    assert_int_equal(q.pending, 0);
    assert_null(q.head);
    rq_out_pool_clear(&p);
}

/* A peer that always lags a little must not make one buffer grow for ever. */
static void a_buffer_whose_front_is_written_grows_no_more(void **state)
{
    (void)state;
    rq_out_queue q = {0};
    rq_out_pool p = {0};
    put(&q, &p, "being written");
    rq_out_queue_consume(&q, &p, 6);
    for (int i = 0; i < 1000; i++)
        put(&q, &p, "later");
    assert_int_equal(q.head->buf.len, 13);
    assert_int_equal(q.pending, 7 + 5000);
    rq_out_queue_consume(&q, &p, 7);
    assert_int_equal(q.head->buf.len, 5000);
    rq_out_queue_drop(&q, &p);
    assert_int_equal(q.pending, 0);
    rq_out_pool_clear(&p);
}

static void emptied_buffers_are_used_again(void **state)
{
    (void)state;
    rq_out_queue q = {0};
    rq_out_pool p = {0};
    put(&q, &p, "x");
    const uint8_t *at = q.head->buf.ptr;
    rq_out_queue_consume(&q, &p, 1);
    put(&q, &p, "y");
    assert_ptr_equal(q.head->buf.ptr, at);
    rq_out_queue_drop(&q, &p);
    rq_out_pool_clear(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appended_bytes_come_out_in_order),
        cmocka_unit_test(a_buffer_whose_front_is_written_grows_no_more),
        cmocka_unit_test(emptied_buffers_are_used_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
