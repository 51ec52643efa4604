/* SPDX-License-Identifier: Apache-2.0 */
/* See echo.h. */
#include "echo.h"

#include "../base/unit.h"

rq_loops *start_loops(unsigned count, rq_epoch *epoch)
{
    rq_loops *loops;
    rq_loops_options o = {.count = count, .epoch = epoch};
    assert_int_equal(rq_loops_new(&o, &loops), RQ_OK);
    assert_int_equal(rq_loops_start(loops), RQ_OK);
    return loops;
}

void stop_loops(rq_loops *loops)
{
    rq_loops_stop(loops);
    rq_loops_free(loops);
}

rq_err echo_open(void *ctx, rq_stream *s)
{
    struct echo *e = ctx;
    rq_stream_set_user(s, e);
    atomic_fetch_add(&e->opened, 1);
    assert_string_equal(rq_stream_peer(s)->host, "127.0.0.1");
    return RQ_OK;
}

size_t echo_data(rq_stream *s, rq_slice bytes)
{
    size_t used = 0;
    for (;;) {
        const uint8_t *end = memchr(bytes.ptr + used, '\n', bytes.len - used);
        if (end == NULL) return used;
        size_t n = (size_t)(end - (bytes.ptr + used)) + 1;
        if (n == 5 && memcmp(bytes.ptr + used, "quit\n", 5) == 0) {
            assert_int_equal(rq_stream_write(s, "bye\n", 4), RQ_OK);
            rq_stream_finish(s);
            return bytes.len;
        }
        assert_int_equal(rq_stream_write(s, bytes.ptr + used, n), RQ_OK);
        used += n;
    }
}

void echo_close(rq_stream *s, rq_err why)
{
    (void)why;
    struct echo *e = rq_stream_user(s);
    atomic_fetch_add(&e->closed, 1);
}

const rq_stream_events echo_events = {
    .on_open = echo_open,
    .on_data = echo_data,
    .on_close = echo_close,
};

rq_listener *listen_echo(rq_loops *loops, struct echo *e, unsigned max)
{
    rq_listener *l;
    rq_listener_options o = {.events = &echo_events, .ctx = e, .connections_max = max};
    assert_int_equal(rq_listener_open(loops, &o, &l, NULL), RQ_OK);
    assert_true(rq_listener_port(l) > 0);
    return l;
}
