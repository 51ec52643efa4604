/* SPDX-License-Identifier: Apache-2.0 */
/* Replicated entries that a server of a cluster passes on (replication/sink_router.h). The input is a be16 length, a
 * ReplicateWALEntryRequest of that length, and its cells. This file stands in for the other servers. If the request
 * succeeds, each cell has reached the server of its row once. */
#include "replication/entries.h"
#include "replication/region_locator.h"
#include "replication/sink_router.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct rq_client_table {
    int unused;
};

static struct rq_client_table the_table;

/* --- region_locator.h: rows below "m" are on one server, the others on another ---------------------------- */

rq_err rq__locator_open(const char *bootstrap, rq__locator **ret, rq_error *why)
{
    (void)bootstrap;
    (void)why;
    *ret = (rq__locator *)(void *)&the_table;
    return RQ_OK;
}

void rq__locator_close(rq__locator *p)
{
    (void)p;
}

int64_t rq__locator_now_ns(void)
{
    return 1;
}

rq_err rq__locator_read(rq__locator *p, rq_slice table, int64_t since_ns, rq__located_table **ret,
                        rq_error *why)
{
    (void)p;
    (void)since_ns;
    *ret = &the_table;
    if (table.ptr[0] != 'n') return RQ_OK;
    return rq_fail(why, RQ_E_TABLE_NOT_FOUND, "no such table");
}

static uint16_t port_of(rq_slice row)
{
    return row.len > 0 && row.ptr[0] >= 'm' ? 2 : 1;
}

rq_err rq__locator_find(const rq__located_table *t, rq_slice row, rq__location *ret)
{
    (void)t;
    *ret = (rq__location){.encoded = RQ_SLICE_LIT("0123456789abcdef0123456789abcdef"),
                          .host = "h",
                          .port = port_of(row)};
    return RQ_OK;
}

/* --- servers -------------------------------------------------------------------------------------- */

static void take_part(void *ctx, rq_sink_part *part)
{
    size_t *passed_on = ctx;
    rq_entries e;
    rq_cursor behind;
    rq_cell c;
    rq_err rc;
    Pb__ReplicateWALEntryRequest *r =
        pb__replicate_walentry_request__unpack(NULL, part->message.len, part->message.ptr);
    if (r == NULL) abort();
    rq_entries_begin(&e, r, part->cells);
    while ((rc = rq_entries_peek(&e, &behind, &c, NULL)) == RQ_OK) {
        if (port_of(rq_cell_row(&c)) != part->to->port || rq_entries_is_event(&c)) abort();
        rq_entries_take(&e, behind);
        ++*passed_on;
    }
    if (rc != RQ_E_END || rq_cursor_left(&e.cells) > 0) abort();
    pb__replicate_walentry_request__free_unpacked(r, NULL);
    rq_sink_part_sent(part, RQ_OK, NULL);
}

/* Cells of the request that are no events. */
static size_t count_cells(const Pb__ReplicateWALEntryRequest *r, rq_slice cells)
{
    rq_entries e;
    rq_cursor behind;
    rq_cell c;
    size_t count = 0;
    rq_entries_begin(&e, r, cells);
    while (rq_entries_peek(&e, &behind, &c, NULL) == RQ_OK) {
        count += !rq_entries_is_event(&c);
        rq_entries_take(&e, behind);
    }
    return count;
}

static void pass_on(const Pb__ReplicateWALEntryRequest *r, rq_slice cells)
{
    size_t passed_on = 0;
    rq_sink_router *s;
    rq_arena arena = {0};
    rq_error why = {.code = RQ_OK};
    const rq_sink_router_options o = {.bootstrap = "", .send = take_part, .ctx = &passed_on};
    if (rq_sink_router_new(&o, &s) != RQ_OK) abort();
    const rq_sink_request request = {r, cells, NULL, UINT64_MAX};
    rq_err rc = rq_sink_router_entries(s, &request, &arena, &why);
    if (rc == RQ_OK && passed_on != count_cells(r, cells)) abort();
    rq_sink_router_free(s);
    rq_arena_clear(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    size_t len = rq_get_be16(data);
    if (len > size - 2) return 0;
    Pb__ReplicateWALEntryRequest *r = pb__replicate_walentry_request__unpack(NULL, len, data + 2);
    if (r == NULL) return 0;
    pass_on(r, rq_slice_of(data + 2 + len, size - 2 - len));
    pb__replicate_walentry_request__free_unpacked(r, NULL);
    return 0;
}
