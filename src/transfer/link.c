/* SPDX-License-Identifier: Apache-2.0 */
/* See link.h. */
#include "transfer/link.h"

#include <stdlib.h>

#define POLL_NS 10000000
#define BATCH_BYTES ((size_t)1024 * 1024)
#define BATCH_COUNT 10000
#define RETRIES 15 /* HBASE: hbase.client.retries.number */

/* Fails with what the server said, in one line. */
RQ_COLD static rq_err fail_of(const rq_op_result *r, const char *table, rq_error *why)
{
    rq_slice text = r->text.len > 0 ? r->text : rq_slice_cstr(rq_err_text(r->err));
    const uint8_t *line = text.len == 0 ? NULL : memchr(text.ptr, '\n', text.len);
    size_t len = line == NULL ? text.len : (size_t)(line - text.ptr);
    if (len > 600) len = 600;
    return rq_fail(why, r->err, "table %s: %.*s", table, (int)len, (const char *)text.ptr);
}

static rq_err open_table(rq__link *ret, rq_error *why)
{
    RQ_TRY(rq_client_table_open(ret->client, ret->name, &ret->table, why));
    if (rq_op_new(ret->client, 0, ret, &ret->scan_op) != RQ_OK) return rq_no_memory(why);
    for (size_t i = 0; i < RQ_ARRAY_LEN(ret->batches); i++) {
        rq__batch *b = &ret->batches[i];
        b->link = ret;
        if (rq_op_new(ret->client, 0, b, &b->op) != RQ_OK) return rq_no_memory(why);
    }
    return RQ_OK;
}

rq_err rq__link_open(const rq_client_options *o, const char *table, rq__link *ret, rq_error *why)
{
    rq_client_options mine = *o;
    *ret = (rq__link){.name = table};
    if (mine.retries == 0) mine.retries = RETRIES;
    mine.with_tags = true;
    RQ_TRY(rq_client_open(&mine, &ret->client, why));
    return open_table(ret, why);
}

rq_err rq__link_share(rq_client *c, const char *table, rq__link *ret, rq_error *why)
{
    *ret = (rq__link){.name = table, .client = c, .shares = true};
    return open_table(ret, why);
}

rq_err rq__link_tools(const rq_client_options *o, const char *table, size_t size, void **ret,
                      rq_error *why)
{
    *ret = calloc(1, size);
    if (*ret == NULL) return rq_no_memory(why);
    return rq__link_open(o, table, *ret, why);
}

void rq__link_close(rq__link *l)
{
    if (l->client != NULL && !l->shares) rq_client_stop(l->client); /* ends what is on the wire */
    rq_op_free(l->scan_op);
    for (size_t i = 0; i < RQ_ARRAY_LEN(l->batches); i++)
        rq_op_free(l->batches[i].op);
    if (l->shares && l->table != NULL) rq_client_table_close(l->table);
    if (!l->shares) rq_client_close(l->client);
    *l = (rq__link){0};
}

/* --- scans ------------------------------------------------------------------------------------ */

typedef struct rq__scan_run {
    const rq__scan_calls *calls;
    rq_error *why;
    rq_err rc;
    bool waits, goes_on;
} rq__scan_run;

static void take_row(rq_op *op, void *ctx, uint32_t index, rq_op_result *r)
{
    rq__link *l = ctx;
    rq__scan_run *run = l->run;
    (void)op;
    (void)index;
    if (run->rc == RQ_OK) run->rc = run->calls->row(run->calls->ctx, r, run->why);
}

static void take_end(rq_op *op, void *ctx, const rq_op_result *r)
{
    rq__link *l = ctx;
    rq__scan_run *run = l->run;
    (void)op;
    if (run == NULL) return; /* the link is being closed */
    run->waits = false;
    run->goes_on = r->goes_on;
    if (r->err != RQ_OK && run->rc == RQ_OK) run->rc = fail_of(r, l->name, run->why);
}

rq_err rq__link_scan(rq__link *l, const rq_scan *scan, const rq__scan_calls *calls, rq_error *why)
{
    rq__scan_run run = {.calls = calls, .why = why, .waits = true, .goes_on = true};
    l->run = &run;
    rq_err rc = rq_op_scan(l->scan_op, l->table, scan, take_row, take_end);
    if (rc != RQ_OK) run = (rq__scan_run){.rc = rc};
    while (run.waits || run.goes_on) {
        while (run.waits)
            rq_client_poll(l->client, POLL_NS);
        if (!run.goes_on) break;
        if (run.rc == RQ_OK && calls->rest != NULL) run.rc = calls->rest(calls->ctx, why);
        if (run.rc != RQ_OK) {
            rq_op_scan_end(l->scan_op);
            break;
        }
        run.waits = true;
        rq_op_scan_step(l->scan_op);
    }
    l->run = NULL;
    if (run.rc == RQ_OK && calls->rest != NULL) run.rc = calls->rest(calls->ctx, why);
    return rc == RQ_OK ? run.rc : rq_no_memory(why);
}

/* --- mutations -------------------------------------------------------------------------------- */

static void note(rq__link *l, const rq_op_result *r)
{
    if (l->err == RQ_OK) l->err = fail_of(r, l->name, &l->why);
}

static void take_action(rq_op *op, void *ctx, uint32_t index, rq_op_result *r)
{
    rq__batch *b = ctx;
    (void)op;
    (void)index;
    if (r->err != RQ_OK) note(b->link, r);
}

static void take_batch(rq_op *op, void *ctx, const rq_op_result *r)
{
    rq__batch *b = ctx;
    (void)op;
    b->is_sent = false;
    if (r->err != RQ_OK) note(b->link, r);
}

rq_err rq__link_add(rq__link *l, const rq_mutate *m, rq_error *why)
{
    rq__batch *b = &l->batches[l->filling];
    if (!b->is_open) rq_op_batch_begin(b->op, l->table);
    b->is_open = true;
    rq_mutate tagged = *m;
    tagged.with_tags = true;
    if (rq_op_batch_mutate(b->op, &tagged) != RQ_OK) return rq_no_memory(why);
    l->count++;
    for (size_t i = 0; i < m->cell_count; i++)
        l->bytes += rq_cell_serialized_len(&m->cells[i], false);
    return RQ_OK;
}

static rq_err failure(const rq__link *l, rq_error *why)
{
    return l->err == RQ_OK ? RQ_OK : rq_fail(why, l->err, "%s", l->why.message);
}

static void wait_for(rq__link *l, const rq__batch *b)
{
    while (b->is_sent)
        rq_client_poll(l->client, POLL_NS);
}

/* Sends the batch, and waits until the other batch can be filled. */
static rq_err send(rq__link *l, rq_error *why)
{
    rq__batch *b = &l->batches[l->filling];
    if (b->is_open) {
        b->is_open = false;
        b->is_sent = true;
        l->bytes = l->count = 0;
        rq_err rc = rq_op_batch_run(b->op, take_action, take_batch);
        if (rc != RQ_OK) {
            b->is_sent = false;
            return rq_no_memory(why);
        }
        rq_client_flush(l->client);
        l->filling ^= 1;
    }
    wait_for(l, &l->batches[l->filling]);
    return failure(l, why);
}

rq_err rq__link_ease(rq__link *l, rq_error *why)
{
    return l->bytes < BATCH_BYTES && l->count < BATCH_COUNT ? failure(l, why) : send(l, why);
}

rq_err rq__link_drain(rq__link *l, rq_error *why)
{
    rq_err rc = send(l, why);
    for (size_t i = 0; i < RQ_ARRAY_LEN(l->batches); i++)
        wait_for(l, &l->batches[i]);
    return rc != RQ_OK ? rc : failure(l, why);
}
