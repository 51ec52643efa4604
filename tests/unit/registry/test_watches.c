/* SPDX-License-Identifier: Apache-2.0 */
/* Watches of the registry's clients, on the catalog in the simulated environment. After a change
 * many watches of one client are checked in slices, and the client's next requests are answered
 * after the events. A closed session keeps no watches. */
#include "../service/service_world.h"

#include "base/meter.h"
#include "registry/registry.h"

enum { EXISTS = 3, GET_CHILDREN = 8, PING = 11, CLOSE_SESSION = -11, MANY = 20000 };

typedef struct client {
    rq_stream stream;
    rq_buf in; /* bytes sent by the client that the server has not taken yet */
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

/* The error in the only response that was sent to the client. */
static int32_t error_of_answer(const client *c)
{
    uint32_t err = 0;
    rq_cursor at = rq_cursor_of(rq_buf_slice(&c->stream.out));
    rq_slice before;
    assert_true(rq_cursor_bytes(&at, 4 + 4 + 8, &before) && rq_cursor_be32(&at, &err));
    return (int32_t)err;
}

/* Sets a watch by this request; returns the error in the response. */
static int32_t watch_by(client *c, uint32_t op, const char *path)
{
    size_t len = strlen(path);
    append_be32(c, (uint32_t)(4 + 4 + 4 + len + 1));
    append_be32(c, 1);
    append_be32(c, op);
    append_be32(c, (uint32_t)len);
    append(c, path, len);
    append(c, "\1", 1);
    offer(c);
    assert_int_equal(c->in.len, 0);
    int32_t err = error_of_answer(c);
    rq_buf_reset(&c->stream.out);
    return err;
}

static int32_t watch(client *c, const char *path)
{
    return watch_by(c, EXISTS, path);
}

static void ask(client *c, int32_t xid, int32_t op)
{
    append_be32(c, 8);
    append_be32(c, (uint32_t)xid);
    append_be32(c, (uint32_t)op);
    offer(c);
}

/* The xids of the responses sent to the client. */
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

/* The number of the loop's tasks for a change that triggers one of this many watches. */
static unsigned tasks_of_change(service_world *s, unsigned watches, const char *table)
{
    client c;
    int32_t xid[8];
    char path[64];
    open_client(&c, s);
    snprintf(path, sizeof path, "/hbase/table/%s", table);
    watch(&c, path); /* this watch is checked last */
    for (unsigned i = 0; i < watches; i++) {
        snprintf(path, sizeof path, "/hbase/table/none%u", i);
        watch(&c, path);
    }
    s->loops.loop.run(&s->loops.loop);
    unsigned before = s->posted;
    assert_int_equal(world_create(&s->w, table, "f", NULL), RQ_OK);
    ask(&c, -2, PING); /* sent before the loop runs */
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
    assert_int_equal(xid[0], -1); /* xid of the event */
    assert_int_equal(xid[1], -2);
    close_client(&c);
    return tasks;
}

static rq_registry *open_registry(service_world *s, size_t memory_max)
{
    rq_registry *registry;
    rq_registry_options o = {
        .env = s->w.env, .loops = &s->loops, .catalog = s->w.catalog, .memory_max = memory_max};
    assert_int_equal(rq_registry_open(&o, &registry, NULL), RQ_OK);
    return registry;
}

static void many_watches_are_compared_in_slices(void **state)
{
    (void)state;
    enum { LEAST = 2 * MANY / RQ_METER_STRETCH_STEPS };
    service_world *s = service_world_new();
    rq_registry *registry = open_registry(s, (size_t)64 << 20);
    unsigned few = tasks_of_change(s, 10, "one");
    unsigned many = tasks_of_change(s, MANY, "two");
    assert_true(many >= few + LEAST);
    rq_registry_close(registry);
    service_world_free(s);
}

/* The number of the loop's tasks for a new table. */
static unsigned tasks_of_creation(service_world *s, const char *table)
{
    s->loops.loop.run(&s->loops.loop);
    unsigned before = s->posted;
    assert_int_equal(world_create(&s->w, table, "f", NULL), RQ_OK);
    s->loops.loop.run(&s->loops.loop);
    return s->posted - before;
}

/* Comparing a list of tables takes as long as comparing a hundred nodes. */
static void watches_of_many_children_are_compared_in_slices(void **state)
{
    (void)state;
    enum { TABLES = 100, CLIENTS = 3 * RQ_METER_STRETCH_STEPS / TABLES };
    service_world *s = service_world_new();
    rq_registry *registry = open_registry(s, (size_t)64 << 20);
    client *all = calloc(CLIENTS, sizeof *all);
    char table[16];
    assert_non_null(all);
    for (int i = 0; i < TABLES; i++) {
        snprintf(table, sizeof table, "more%d", i);
        assert_int_equal(world_create(&s->w, table, "f", NULL), RQ_OK);
    }
    for (int i = 0; i < CLIENTS; i++)
        open_client(&all[i], s);
    assert_int_equal(watch_by(&all[0], GET_CHILDREN, "/hbase/table"), 0);
    unsigned few = tasks_of_creation(s, "one");
    for (int i = 0; i < CLIENTS; i++) {
        rq_buf_reset(&all[i].stream.out);
        assert_int_equal(watch_by(&all[i], GET_CHILDREN, "/hbase/table"), 0);
    }
    assert_true(tasks_of_creation(s, "two") >= few + 2);
    for (int i = 0; i < CLIENTS; i++) {
        int32_t xid[8];
        assert_int_equal(xids(&all[i], xid, 8), 1);
        close_client(&all[i]);
    }
    free(all);
    rq_registry_close(registry);
    service_world_free(s);
}

/* Sets watches until one is refused; returns how many were accepted. */
static unsigned watch_until_refused(client *c)
{
    enum { NO_NODE = -101, OPERATION_TIMEOUT = -7 };
    char path[64];
    for (unsigned count = 0;; count++) {
        snprintf(path, sizeof path, "/hbase/table/none%u", count);
        int32_t err = watch(c, path);
        if (err == OPERATION_TIMEOUT) return count;
        assert_int_equal(err, NO_NODE);
    }
}

static void a_closed_session_holds_no_watch(void **state)
{
    (void)state;
    service_world *s = service_world_new();
    rq_registry *registry = open_registry(s, (size_t)64 << 10);
    client first, second;
    open_client(&first, s);
    open_client(&second, s);
    unsigned most = watch_until_refused(&first);
    assert_true(most > 100);
    ask(&first, 7, CLOSE_SESSION);
    assert_int_equal(error_of_answer(&first), 0);
    assert_int_equal(watch_until_refused(&second),
                     most); /* the first connection's close has not been handled yet */
    close_client(&first);
    close_client(&second);
    rq_registry_close(registry);
    service_world_free(s);
}

/* Sends a setWatches for nodes that do not exist. */
static void set_watches(client *c, uint32_t count)
{
    enum { SET_WATCHES = 101, PATH = 24 };
    char path[PATH + 1];
    append_be32(c, 4 + 4 + 8 + 4 + 4 + count * (4 + PATH) + 4);
    append_be32(c, (uint32_t)-8);
    append_be32(c, SET_WATCHES);
    append(c, "\0\0\0\0\0\0\0", 8);
    append_be32(c, 0);
    append_be32(c, count);
    for (uint32_t i = 0; i < count; i++) {
        snprintf(path, sizeof path, "/hbase/table/none-%06u", i);
        append_be32(c, PATH);
        append(c, path, PATH);
    }
    append_be32(c, 0);
    offer(c);
}

static unsigned slices_until_answer(service_world *s, client *c)
{
    unsigned slices = 1;
    for (; c->in.len > 0; slices++) {
        assert_true(c->stream.paused);
        s->loops.loop.run(&s->loops.loop);
        c->stream.events->on_drain(&c->stream);
        assert_false(c->stream.paused);
        offer(c);
    }
    return slices;
}

static void many_watches_are_set_again_in_slices(void **state)
{
    (void)state;
    enum { COUNT = 16384, LEAST = COUNT / RQ_METER_STRETCH_STEPS, EXPECTED_XID = -8 };
    service_world *s = service_world_new();
    rq_registry *registry = open_registry(s, (size_t)64 << 20);
    client c, other, gone;
    int32_t xid[8];
    open_client(&c, s);
    open_client(&other, s);
    open_client(&gone, s);
    set_watches(&c, 10);
    assert_int_equal(slices_until_answer(s, &c), 1);
    assert_int_equal(xids(&c, xid, 8), 1);
    rq_buf_reset(&c.stream.out);
    set_watches(&c, COUNT);
    set_watches(&gone, COUNT);
    set_watches(&other, COUNT);
    assert_true(c.in.len > 0 && gone.in.len > 0);
    close_client(&gone); /* closes between two slices */
    assert_true(slices_until_answer(s, &c) > LEAST);
    assert_int_equal(xids(&c, xid, 8), 1);
    assert_int_equal(xid[0], EXPECTED_XID);
    assert_true(slices_until_answer(s, &other) > LEAST);
    ask(&c, -2, PING);
    assert_int_equal(xids(&c, xid, 8), 2);
    close_client(&c);
    close_client(&other);
    rq_registry_close(registry);
    service_world_free(s);
}

/* Sends the first `len` bytes of a request of 4,000 bytes. */
static void send_part(client *c, size_t len)
{
    static const uint8_t zeros[4000];
    append_be32(c, sizeof zeros);
    append(c, zeros, len - 4);
    offer(c);
}

static void unfinished_requests_are_charged(void **state)
{
    (void)state;
    enum { CLIENTS = 64, PART = 2000, MEMORY = CLIENTS * PART / 2 };
    service_world *s = service_world_new();
    rq_registry *registry = open_registry(s, MEMORY);
    client *all = calloc(CLIENTS, sizeof *all);
    client usual, later;
    unsigned kept = 0;
    assert_non_null(all);
    for (int i = 0; i < CLIENTS; i++) {
        open_client(&all[i], s);
        send_part(&all[i], PART);
        kept += !all[i].stream.closing;
    }
    assert_in_range(kept, CLIENTS / 4, CLIENTS / 2);
    open_client(&usual, s);
    send_part(&usual, 200);
    assert_false(usual.stream.closing); /* memory that others hold does not matter to it */
    for (int i = 0; i < CLIENTS; i++)
        close_client(&all[i]);
    free(all);
    open_client(&later, s);
    send_part(&later, PART);
    assert_false(later.stream.closing);
    close_client(&usual);
    close_client(&later);
    rq_registry_close(registry);
    service_world_free(s);
}

static void a_part_of_a_request_does_not_prolong_the_session(void **state)
{
    (void)state;
    service_world *s = service_world_new();
    rq_registry *registry = open_registry(s, (size_t)1 << 20);
    client c;
    open_client(&c, s);
    uint64_t expires_ns = c.stream.deadline_ns;
    for (int i = 0; i < 8; i++) { /* a PING, byte by byte */
        s->loops.loop.now_ns += 1000000000u;
        append(&c, i == 3 ? "\10" : "\0", 1);
        offer(&c);
        assert_int_equal(c.stream.deadline_ns, expires_ns);
    }
    append_be32(&c, PING);
    offer(&c);
    assert_int_equal(c.in.len, 0);
    assert_true(c.stream.deadline_ns > expires_ns);
    close_client(&c);
    rq_registry_close(registry);
    service_world_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_watches_are_compared_in_slices),
        cmocka_unit_test(watches_of_many_children_are_compared_in_slices),
        cmocka_unit_test(a_closed_session_holds_no_watch),
        cmocka_unit_test(many_watches_are_set_again_in_slices),
        cmocka_unit_test(unfinished_requests_are_charged),
        cmocka_unit_test(a_part_of_a_request_does_not_prolong_the_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
