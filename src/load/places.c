/* SPDX-License-Identifier: Apache-2.0 */
/* The slots: `depth` on each connection; and idle connections. An idle connection has done one get,
 * so that the server has all the state of a client's connection. */
#include "load/load_priv.h"

#include <stdlib.h>

#define IDLE_POLL_NS 50000000

rq_err rq__open_places(rq__bench *b)
{
    const rq_load_options *o = b->o;
    unsigned lanes = o->client.lanes > 0 ? o->client.lanes : 1;
    b->slot_count = (size_t)lanes * o->depth;
    b->slots = calloc(b->slot_count, sizeof *b->slots);
    if (b->slots == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = b->slot_count; i > 0; i--) {
        rq__slot *s = &b->slots[i - 1];
        s->bench = b;
        s->cells = calloc(b->rows.columns, sizeof *s->cells);
        if (s->cells == NULL) return RQ_E_NO_MEMORY;
        RQ_TRY(rq_op_new(b->client, (unsigned)((i - 1) % lanes), s, &s->op));
        s->next_free = b->free_slots;
        b->free_slots = s;
    }
    return RQ_OK;
}

void rq__close_places(rq__bench *b)
{
    for (size_t i = 0; b->slots != NULL && i < b->slot_count; i++) {
        rq__slot *s = &b->slots[i];
        rq_op_free(s->op);
        rq_buf_clear(&s->row);
        rq_buf_clear(&s->values);
        rq_buf_clear(&s->keep);
        free(s->cells);
        free(s->batch);
    }
    free(b->slots);
}

/* --- connections that do nothing -------------------------------------------------------------- */

typedef struct first_get {
    bool done;
    rq_err err;
    char text[160];
} first_get;

static void take_first(rq_op *op, void *ctx, const rq_op_result *r)
{
    first_get *g = ctx;
    (void)op;
    g->done = true;
    g->err = r->err;
    snprintf(g->text, sizeof g->text, "%.*s", (int)(r->kind.len > 150 ? 150 : r->kind.len),
             r->kind.len > 0 ? (const char *)r->kind.ptr : "");
}

static rq_err open_one(rq__bench *b, unsigned lane, rq_slice row, rq_error *why)
{
    first_get g = {0};
    rq_op *op = NULL;
    rq_err rc = rq_op_new(b->client, lane, &g, &op);
    if (rc == RQ_OK) rc = rq_op_get(op, b->table, &(rq_get){.row = row}, take_first);
    while (rc == RQ_OK && !g.done)
        rq_client_poll(b->client, IDLE_POLL_NS);
    rq_op_free(op);
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", rq_err_text(rc));
    return g.err == RQ_OK ? RQ_OK
                          : rq_fail(why, g.err, "cannot open an idle connection: %s", g.text);
}

rq_err rq__open_idle(rq__bench *b, rq_error *why)
{
    const rq_load_options *o = b->o;
    unsigned lanes = o->client.lanes > 0 ? o->client.lanes : 1;
    rq_buf row = {0};
    rq_err rc = rq__rows_key(&b->rows, 0, &row);
    if (rc != RQ_OK) rq_fail(why, rc, "%s", rq_err_text(rc));
    for (unsigned i = 0; rc == RQ_OK && i < o->idle; i++)
        rc = open_one(b, lanes + i, rq_buf_slice(&row), why);
    rq_buf_clear(&row);
    return rc;
}
