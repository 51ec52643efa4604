/* SPDX-License-Identifier: Apache-2.0 */
/* Many watches of one client of the registry, on the catalog in the simulated environment: after a change they are
 * compared in slices, and what the client asks meanwhile is answered behind the events. */
#include "../service/service_world.h"

#include "base/meter.h"
#include "registry/registry.h"

enum { EXISTS = 3, PING = 11, MANY = 20000 };

typedef struct client {
    rq_stream stream;
    rq_buf in; /* sent, and not yet taken */
} client;

static void offer(client *c)
{
    size_t used = c->stream.events->on_data(&c->stream, rq_buf_slice(&c->in));
    assert_true(used <= c->in.len);
    memmove(c->in.ptr, c->in.ptr + used, c->in.len - used);
    c->in.len -= used;
}

static void append(client *c, const void *bytes, size_t len)
{
    assert_int_equal(rq_buf_append(&c->in, bytes, len), RQ_OK);
}

static void append_be32(client *c, uint32_t n)
{
    assert_int_equal(rq_buf_append_be32(&c->in, n), RQ_OK);
}

static void open_client(client *c, service_world *s)
{
    static const uint8_t hello[49] = {[3] = 45, [18] = 0x75, [19] = 0x30, [31] = 16};
    const rq_listener *l = s->loops.listener;
    *c = (client){.stream = {.loop = &s->loops.loop, .events = l->events}};
    assert_int_equal(c->stream.events->on_open(l->ctx, &c->stream), RQ_OK);
    append(c, hello, sizeof hello);
    offer(c);
    rq_buf_reset(&c->stream.out);
}

static void close_client(client *c)
{
    c->stream.events->on_close(&c->stream, RQ_OK);
    rq_buf_clear(&c->stream.out);
    rq_buf_clear(&c->in);
}

static void watch(client *c, const char *path)
{
    size_t len = strlen(path);
    append_be32(c, (uint32_t)(4 + 4 + 4 + len + 1));
    append_be32(c, 1);
    append_be32(c, EXISTS);
    append_be32(c, (uint32_t)len);
    append(c, path, len);
    append(c, "\1", 1);
    offer(c);
    assert_int_equal(c->in.len, 0);
    rq_buf_reset(&c->stream.out);
}

static void ping(client *c)
{
    append_be32(c, 8);
    append_be32(c, (uint32_t)-2);
    append_be32(c, PING);
    offer(c);
}

/* The xids of what was sent to the client. */
static size_t xids(const client *c, int32_t *ret, size_t most)
{
    rq_cursor at = rq_cursor_of(rq_buf_slice(&c->stream.out));
    uint32_t len, xid;
    rq_slice frame;
    size_t count = 0;
    while (rq_cursor_be32(&at, &len) && rq_cursor_bytes(&at, len, &frame) && count < most) {
        rq_cursor in = rq_cursor_of(frame);
        assert_true(rq_cursor_be32(&in, &xid));
        ret[count++] = (int32_t)xid;
    }
    return count;
}

/* Tasks of the loop for a change that one of as many watches shows. */
static unsigned tasks_of_change(service_world *s, unsigned watches, const char *table)
{
    client c;
    int32_t xid[8];
    char path[64];
    open_client(&c, s);
    snprintf(path, sizeof path, "/hbase/table/%s", table);
    watch(&c, path); /* compared last */
    for (unsigned i = 0; i < watches; i++) {
        snprintf(path, sizeof path, "/hbase/table/none%u", i);
        watch(&c, path);
    }
    s->loops.loop.run(&s->loops.loop);
    unsigned before = s->posted;
    assert_int_equal(world_create(&s->w, table, "f", NULL), RQ_OK);
    ping(&c); /* before the loop has run */
    bool waits = c.in.len > 0;
    assert_int_equal(waits, watches == MANY);
    s->loops.loop.run(&s->loops.loop);
    unsigned tasks = s->posted - before;
    if (waits) {
        assert_int_equal(xids(&c, xid, 8), 1);
        c.stream.events->on_drain(&c.stream);
        assert_false(c.stream.paused);
        offer(&c);
    }
    assert_int_equal(c.in.len, 0);
    assert_int_equal(xids(&c, xid, 8), 2);
    assert_int_equal(xid[0], -1); /* the event */
    assert_int_equal(xid[1], -2);
    close_client(&c);
    return tasks;
}

static void many_watches_are_compared_in_slices(void **state)
{
    (void)state;
    enum { LEAST = 2 * MANY / RQ_METER_STRETCH_STEPS };
    rq_registry *registry;
    service_world *s = service_world_new();
    rq_registry_options o = {.env = s->w.env,
                             .loops = &s->loops,
                             .catalog = s->w.catalog,
                             .memory_max = (size_t)64 << 20};
    assert_int_equal(rq_registry_open(&o, &registry, NULL), RQ_OK);
    unsigned few = tasks_of_change(s, 10, "one");
    unsigned many = tasks_of_change(s, MANY, "two");
    assert_true(many >= few + LEAST);
    rq_registry_close(registry);
    service_world_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_watches_are_compared_in_slices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
