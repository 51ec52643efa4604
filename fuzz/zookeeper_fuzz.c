/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes from a ZooKeeper client: handshake, requests, watches, four letters, on a stream in memory
 * and a catalog of two tables that changes meanwhile.
 *
 * Input: byte 0 selects the size of the reads and, with bit 7, a valid handshake before the
 * rest. */
#include "catalog/peers.h"
#include "registry/registry.h"

#include "../tests/unit/net/memory_loop.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- the catalog, which grows and shrinks with its view's number */

struct rq_root {
    int unused;
};

struct rq_catalog {
    struct rq_root root;
    rq_server_name server;
    uint64_t view;
    rq_table_schema schemas[2];
    rq_catalog_table tables[2];
    const rq_catalog_table *list[2];
    rq_namespace space;
    const rq_namespace *spaces[1];
    void (*changed)(void *ctx);
    void *changed_ctx;
};

static void change(rq_catalog *c)
{
    c->view++;
    c->tables[0].state = c->view % 2 == 0 ? RQ_TABLE_ENABLED : RQ_TABLE_DISABLED;
    if (c->changed != NULL) c->changed(c->changed_ctx);
}

void rq_catalog_on_change(rq_catalog *c, void (*changed)(void *ctx), void *ctx)
{
    c->changed = changed;
    c->changed_ctx = ctx;
}

const rq_server_name *rq_catalog_server(const rq_catalog *c)
{
    return &c->server;
}

const rq_server_name *rq_catalog_master(const rq_catalog *c)
{
    return &c->server;
}

uint16_t rq_catalog_info_port(const rq_catalog *c)
{
    return c->view % 2 == 0 ? 0 : 16010;
}

rq_root *rq_catalog_root(const rq_catalog *c)
{
    return (rq_root *)&c->root;
}

const char *rq_root_cluster_id(const rq_root *r)
{
    (void)r;
    return "6f1c2a3e-0000-4000-8000-000000000000";
}

uint64_t rq_catalog_view_number(const rq_catalog *c)
{
    return c->view;
}

void rq_catalog_tables(const rq_catalog *c, const rq_catalog_table *const **ret, size_t *ret_count)
{
    *ret = c->list;
    *ret_count = c->view % 3 == 0 ? 1 : 2;
}

const rq_catalog_table *rq_catalog_table_find(const rq_catalog *c, rq_slice table)
{
    size_t count = c->view % 3 == 0 ? 1 : 2;
    for (size_t i = 0; i < count; i++)
        if (rq_slice_eq(c->tables[i].schema->name, table)) return &c->tables[i];
    return NULL;
}

void rq_catalog_namespaces(const rq_catalog *c, const rq_namespace *const **ret, size_t *ret_count)
{
    *ret = c->spaces;
    *ret_count = 1;
}

const rq_namespace *rq_catalog_namespace_find(const rq_catalog *c, rq_slice name)
{
    return rq_slice_eq(c->space.name, name) ? &c->space : NULL;
}

rq_err rq_catalog_peers(rq_catalog *c, rq_arena *arena, rq_peer_info **ret, size_t *ret_count)
{
    *ret_count = c->view % 3 == 0 ? 0 : 1;
    *ret = rq_arena_alloc(arena, sizeof **ret);
    if (*ret == NULL) return RQ_E_NO_MEMORY;
    **ret = (rq_peer_info){.id = "p", .enabled = true};
    return RQ_OK;
}

rq_err rq_catalog_peer(rq_catalog *c, rq_slice id, rq_arena *arena, rq_peer_info *ret)
{
    (void)arena;
    *ret = (rq_peer_info){.id = "p", .enabled = true};
    bool exists = c->view % 3 != 0 && rq_slice_eq(id, RQ_SLICE_LIT("p"));
    return exists ? RQ_OK : RQ_E_NOT_FOUND;
}

/* ---- feeding */

/* Version, last zxid, time-out 30 s, session 0, a password of 16 zeroes, not read-only. */
static const uint8_t hello[49] = {[3] = 45, [18] = 0x75, [19] = 0x30, [31] = 16};

static void feed(rq_stream *s, rq_catalog *catalog, const uint8_t *bytes, size_t len, size_t step)
{
    rq_buf in = {0}; /* the bytes received but not consumed */
    while (len > 0 && !s->closing) {
        size_t n = len < step ? len : step;
        if (rq_buf_append(&in, bytes, n) != RQ_OK) abort();
        bytes += n;
        len -= n;
        do {
            s->paused = false;
            size_t used = s->events->on_data(s, rq_buf_slice(&in));
            if (used > in.len) abort();
            memmove(in.ptr, in.ptr + used, in.len - used);
            in.len -= used;
            bool waits = s->paused; /* the client reads its responses */
            rq_buf_reset(&s->out);
            if (!s->closing) s->events->on_drain(s);
            if (s->paused && !s->closing) { /* until its watches have been checked */
                s->loop->run(s->loop);
                if (!s->closing) s->events->on_drain(s);
            }
            if (waits && s->paused && !s->closing) abort(); /* the connection would hang forever */
            if (!waits) break;
        } while (in.len > 0 && !s->closing);
        change(catalog);
        if (!s->closing && len % 2 != 0) s->loop->run(s->loop);
    }
    rq_buf_clear(&in);
}

static void run_connection(rq_loops *loops, rq_catalog *catalog, const uint8_t *data, size_t size)
{
    static const size_t steps[] = {1 << 20, 1, 13, 64};
    rq_listener *l = loops->listener;
    rq_stream s = {.loop = &loops->loop, .events = l->events};
    if (s.events->on_open(l->ctx, &s) != RQ_OK) abort();
    if ((data[0] & 0x80) != 0) feed(&s, catalog, hello, sizeof hello, sizeof hello);
    feed(&s, catalog, data + 1, size - 1, steps[data[0] & 3]);
    s.events->on_close(&s, RQ_OK);
    /* runs without the connection, which must no longer be accessed */
    loops->loop.run(&loops->loop);
    rq_buf_clear(&s.out);
}

static uint64_t random_number(rq_executor *e)
{
    (void)e;
    return 4711;
}

static uint64_t no_time(rq_executor *e)
{
    (void)e;
    return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    rq_executor executor = {.random = random_number, .now_ns = no_time};
    rq_env env = {.executor = &executor};
    rq_loops loops;
    memory_loops_init(&loops, NULL, NULL);
    rq_catalog c = {.server = {.text = "localhost,16020,1", .host = "localhost", .port = 16020}};
    c.server.start_code = 1700000000000;
    c.schemas[0].name = RQ_SLICE_LIT("t");
    c.schemas[1].name = RQ_SLICE_LIT("ns:u");
    c.space.name = RQ_SLICE_LIT("ns");
    c.spaces[0] = &c.space;
    for (size_t i = 0; i < 2; i++) {
        c.tables[i].schema = &c.schemas[i];
        c.list[i] = &c.tables[i];
    }
    rq_registry_options o = {.env = &env, .loops = &loops, .catalog = &c};
    rq_registry *registry;
    if (rq_registry_open(&o, &registry, NULL) != RQ_OK) abort();
    run_connection(&loops, &c, data, size);
    rq_registry_close(registry);
    return 0;
}
