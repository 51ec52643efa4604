/* SPDX-License-Identifier: Apache-2.0 */
/* Batches. A batch stores its encoded actions one after another and, for each attempt, the order of the
 * unfinished actions: by server, then region, then as given, so that actions of one row stay in order. The
 * actions for one server form one Multi, made of RegionActions:
 *
 *    [region 1: get, put, put] [region 1: atomic, condition] [region 1: put] [region 2: get …]
 *
 * A result names its action by index, which must belong to the result's RegionAction; an atomic one has one result,
 * of its only action. An action whose row is in no region fails without affecting the others. */
#include "client/op_priv.h"

#include <stdlib.h>

void rq_op_batch_begin(rq_op *op, rq_client_table *t)
{
    rq__op_prepare(op, t, RQ__OP_BATCH);
    op->action_count = 0;
    op->batch_err = RQ_OK;
}

static rq_err add_action(rq_op *op, rq_slice row, rq__action **ret)
{
    if (op->action_count == op->action_cap) {
        size_t cap = op->action_cap == 0 ? 16 : op->action_cap * 2;
        rq__action *actions = realloc(op->actions, cap * sizeof *actions);
        if (actions == NULL) return RQ_E_NO_MEMORY;
        op->actions = actions;
        uint32_t *order = realloc(op->order, cap * sizeof *order);
        if (order == NULL) return RQ_E_NO_MEMORY;
        op->order = order;
        op->action_cap = cap;
    }
    rq__action *a = &op->actions[op->action_count];
    *a = (rq__action){
        .row = {op->row.len, row.len}, .bytes = {op->body.len, 0}, .cells = {op->cells.len, 0}};
    *ret = a;
    return rq_buf_append(&op->row, row.ptr, row.len);
}

static void added_action(rq_op *op, rq__action *a)
{
    a->bytes.len = op->body.len - a->bytes.at;
    a->cells.len = op->cells.len - a->cells.at;
    op->action_count++;
}

rq_err rq_op_batch_get(rq_op *op, const rq_get *get)
{
    rq__action *a;
    RQ_TRY(add_action(op, get->row, &a));
    a->priority = get->priority;
    RQ_TRY(rq__put_get_action(&op->body, (uint32_t)op->action_count, get));
    added_action(op, a);
    return RQ_OK;
}

rq_err rq_op_batch_mutate(rq_op *op, const rq_mutate *m)
{
    rq__action *a;
    RQ_TRY(add_action(op, m->row, &a));
    a->priority = m->priority;
    RQ_TRY(rq__put_mutate_action(&op->body, &op->cells, (uint32_t)op->action_count, m));
    added_action(op, a);
    return RQ_OK;
}

rq_err rq_op_batch_atomic(rq_op *op, const rq_mutate *list, size_t count, rq_slice condition)
{
    rq__action *a;
    RQ_ASSERT(count > 0);
    RQ_TRY(add_action(op, list[0].row, &a));
    a->is_atomic = true;
    a->priority = rq__mutations_priority(list, count);
    RQ_TRY(rq__put_atomic_body(&op->body, &op->cells, list, count, condition));
    added_action(op, a);
    return RQ_OK;
}

rq_err rq_op_batch_run(rq_op *op, rq_op_item item, rq_op_done done)
{
    op->item = item;
    op->done = done;
    rq__op_attempt(op);
    return RQ_OK;
}

static int by_place(const void *a, const void *b, void *ctx)
{
    const rq__action *actions = ctx;
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    const rq__region *rx = actions[x].region;
    const rq__region *ry = actions[y].region;
    if (rx != ry) {
        if (rx->server != ry->server) return rx->server < ry->server ? -1 : 1;
        return rx < ry ? -1 : 1;
    }
    return x < y ? -1 : 1;
}

static void note_failure(rq_op *op, rq_err *slot, rq_err err, rq_slice kind)
{
    size_t len = kind.len < sizeof op->kind_text ? kind.len : sizeof op->kind_text - 1;
    *slot = err;
    if (len > 0) memcpy(op->kind_text, kind.ptr, len);
    op->kind_text[len] = 0;
}

/* An action's failure: kept for the next attempt, or reported. */
static void fail_action(rq_op *op, uint32_t index, rq_err err, bool retry, rq_slice kind,
                        rq_slice java_class, rq_slice text)
{
    rq__action *a = &op->actions[index];
    a->answered = true;
    if ((retry || rq__map_is_wrong(err)) && op->attempts < op->client->options.retries) {
        note_failure(op, &op->retry_err, err, kind);
        return;
    }
    rq_op_result r = {
        .err = err, .kind = kind, .java_class = java_class, .text = text, .retry = retry};
    a->done = true;
    note_failure(op, &op->batch_err, err, kind);
    op->item(op, op->ctx, index, &r);
}

static void end_attempt(rq_op *op)
{
    bool left = false;
    for (size_t i = 0; i < op->action_count && !left; i++)
        left = !op->actions[i].done;
    rq_slice kind = rq_slice_cstr(op->kind_text);
    if (left && rq__op_again(op, op->retry_err, true, kind)) return;
    rq_op_result r = {.err = op->batch_err, .kind = kind};
    if (left) r.err = op->retry_err;
    rq__op_finish(op, &r);
}

static void end_part(rq_op *op)
{
    if (--op->parts_out == 0) end_attempt(op);
}

static void fail_exception(rq_op *op, uint32_t index, const rq_exception_view *e)
{
    fail_action(op, index, rq__err_of_class(e->java_class), !e->do_not_retry,
                rq__simple_name(e->java_class), e->java_class, e->text);
}

/* Whether the action was sent in the RegionAction with order[begin … end), which has not answered it yet. */
static bool awaits(const rq_op *op, uint32_t index, size_t begin, size_t end)
{
    if (index >= op->action_count) return false;
    const rq__action *a = &op->actions[index];
    return !a->done && !a->answered && a->place >= begin && a->place < end;
}

/* Passes a result on; `cells` moves behind its cells. */
static rq_err give_result(rq_op *op, uint32_t index, const rq_action_result *a, bool processed,
                          rq_cursor *cells)
{
    rq_op_result r = {.row = a->result, .cells = *cells, .processed = processed};
    rq_result_view skip = a->result;
    rq_cell cell;
    if (a->exception.java_class.len > 0) {
        fail_exception(op, index, &a->exception);
        return RQ_OK;
    }
    while (skip.count > 0)
        RQ_TRY(rq_result_next(&skip, cells, &cell));
    op->actions[index].done = op->actions[index].answered = true;
    op->item(op, op->ctx, index, &r);
    return RQ_OK;
}

/* The results of single actions, order[begin … end). Cells are in the order of the results. */
static rq_err take_singles(rq_op *op, const rq_region_result *region, size_t begin, size_t end,
                           rq_cursor *cells)
{
    rq_cursor c = rq_cursor_of(region->actions);
    rq_action_result a;
    rq_err rc;
    while ((rc = rq__action_result_next(&c, &a)) == RQ_OK) {
        if (!awaits(op, a.index, begin, end)) return RQ_E_MALFORMED;
        RQ_TRY(give_result(op, a.index, &a, false, cells));
    }
    return rc == RQ_E_END ? RQ_OK : rc;
}

/* The result of an atomic action, which is the first one of its RegionAction. Servers may leave it out if there are no
 * cells. */
static rq_err take_atomic(rq_op *op, const rq_region_result *region, uint32_t index,
                          rq_cursor *cells)
{
    rq_cursor c = rq_cursor_of(region->actions);
    rq_action_result a = {0};
    rq_err rc = rq__action_result_next(&c, &a);
    if (rc != RQ_OK && rc != RQ_E_END) return rc;
    return give_result(op, index, &a, region->processed, cells);
}

/* The answer to a RegionAction with the actions order[begin … end). */
static rq_err take_region(rq_op *op, const rq_region_result *region, size_t begin, size_t end,
                          rq_cursor *cells)
{
    if (region->exception.java_class.len > 0) {
        for (size_t i = begin; i < end; i++)
            fail_exception(op, op->order[i], &region->exception);
        return RQ_OK;
    }
    if (op->actions[op->order[begin]].is_atomic)
        return take_atomic(op, region, op->order[begin], cells);
    return take_singles(op, region, begin, end, cells);
}

/* Where the RegionAction ends that begins with order[begin]. */
static size_t region_end(const rq_op *op, size_t begin, size_t end)
{
    const rq__action *first = &op->actions[op->order[begin]];
    size_t i = begin + 1;
    while (i < end && !first->is_atomic && !op->actions[op->order[i]].is_atomic &&
           op->actions[op->order[i]].group == first->group)
        i++;
    return i;
}

static void take_part(void *ctx, const rq_reply *reply)
{
    rq__part *p = ctx;
    rq_op *op = p->op;
    rq_err rc = reply->err;
    if (rc == RQ_OK) {
        rq_cursor message = rq_cursor_of(reply->message);
        rq_cursor cells = rq_cursor_of(reply->cells);
        rq_region_result region;
        size_t next;
        for (size_t i = p->begin; rc == RQ_OK && i < p->end; i = next) {
            next = region_end(op, i, p->end);
            rc = rq__multi_response_next(&message, &region);
            if (rc == RQ_OK) rc = take_region(op, &region, i, next, &cells);
        }
    }
    for (size_t i = p->begin; i < p->end; i++) {
        const rq__action *a = &op->actions[op->order[i]];
        if (a->answered) continue;
        if (reply->err != RQ_OK)
            fail_action(op, op->order[i], reply->err, reply->retry, reply->kind, reply->java_class,
                        reply->text);
        else
            fail_action(op, op->order[i], RQ_E_MALFORMED, false, RQ_SLICE_LIT("MalformedAnswer"),
                        (rq_slice){0}, RQ_SLICE_LIT(""));
    }
    end_part(op);
}

/* MultiRequest { regionAction 1 { region 1, action 3, or what rq__put_atomic_body has put }, nonceGroup 2 } */
static rq_err send_part(rq_op *op, rq__part *p)
{
    rq__conn *conn = NULL;
    uint32_t priority = 0; /* the highest of the part's actions */
    size_t next;
    rq_buf_reset(&op->scratch);
    rq_buf_reset(&op->scratch_cells);
    for (size_t i = p->begin; i < p->end; i = next) {
        size_t at;
        const rq__region *r = op->actions[op->order[i]].region;
        next = region_end(op, i, p->end);
        RQ_TRY(rq_pb_begin(&op->scratch, 1, &at));
        RQ_TRY(rq_buf_append(&op->scratch, r->specifier.ptr, r->specifier.len));
        for (size_t k = i; k < next; k++) {
            const rq__action *a = &op->actions[op->order[k]];
            if (a->priority > priority) priority = a->priority;
            RQ_TRY(rq_buf_append(&op->scratch, op->body.ptr + a->bytes.at, a->bytes.len));
            if (a->cells.len > 0)
                RQ_TRY(
                    rq_buf_append(&op->scratch_cells, op->cells.ptr + a->cells.at, a->cells.len));
        }
        RQ_TRY(rq_pb_end(&op->scratch, at));
    }
    RQ_TRY(rq_pb_put_number(&op->scratch, 2, op->client->nonce_group));
    uint32_t server = op->actions[op->order[p->begin]].region->server;
    RQ_TRY(rq__client_lane(op->client, server, op->lane, &conn));
    return rq__conn_call_until(conn, op->until_ns, "Multi", rq__op_priority(op, priority),
                               (rq_slice){0}, rq_buf_slice(&op->scratch),
                               rq_buf_slice(&op->scratch_cells), take_part, p);
}

/* Finds the unfinished actions' regions, and the order of those that have one. */
static void order_actions(rq_op *op)
{
    op->ordered = 0;
    for (size_t i = 0; i < op->action_count; i++) {
        rq__action *a = &op->actions[i];
        a->answered = false;
        a->place = SIZE_MAX;
        if (a->done) continue;
        a->region = rq__map_locate(op->table, rq_slice_of(op->row.ptr + a->row.at, a->row.len));
        if (a->region != NULL && a->region->server == RQ__NO_SERVER) a->region = NULL;
        if (a->region == NULL) continue;
        a->group = (size_t)(a->region - op->table->regions);
        op->order[op->ordered++] = (uint32_t)i;
    }
    if (op->ordered > 1) qsort_r(op->order, op->ordered, sizeof *op->order, by_place, op->actions);
    for (size_t i = 0; i < op->ordered; i++)
        op->actions[op->order[i]].place = i;
}

/* Computes the order of actions for this attempt, and its parts. */
static rq_err plan_batch(rq_op *op, size_t *ret_parts)
{
    size_t parts = 0;
    order_actions(op);
    for (size_t i = 0; i < op->ordered; i++) {
        uint32_t server = op->actions[op->order[i]].region->server;
        if (parts == 0 ||
            op->actions[op->order[op->parts[parts - 1].begin]].region->server != server) {
            if (parts == op->part_cap) {
                rq__part *bigger = realloc(op->parts, (op->part_cap + 4) * sizeof *bigger);
                if (bigger == NULL) return RQ_E_NO_MEMORY;
                op->parts = bigger;
                op->part_cap += 4;
            }
            op->parts[parts++] = (rq__part){.op = op, .begin = i};
        }
        op->parts[parts - 1].end = i + 1;
    }
    *ret_parts = parts;
    return RQ_OK;
}

/* HBASE: AsyncBatchRpcRetryingCaller.groupAndSend tries actions without a location again. */
static void fail_homeless(rq_op *op)
{
    for (size_t i = 0; i < op->action_count; i++)
        if (!op->actions[i].done && op->actions[i].region == NULL)
            fail_action(op, (uint32_t)i, RQ_E_NOT_SERVING_REGION, true, RQ_SLICE_LIT("NoRegion"),
                        (rq_slice){0}, RQ_SLICE_LIT(""));
}

rq_err rq__batch_send(rq_op *op)
{
    size_t parts = 0;
    op->retry_err = RQ_OK;
    RQ_TRY(plan_batch(op, &parts));
    op->parts_out = parts + 1; /* 1 for this function itself, so that the end is reported only
                                * once */
    fail_homeless(op);
    for (size_t i = 0; i < parts; i++) {
        rq__part *p = &op->parts[i];
        rq_err rc = send_part(op, p);
        if (rc == RQ_OK) continue;
        for (size_t k = p->begin; k < p->end; k++)
            fail_action(op, op->order[k], rc, rc == RQ_E_IO, RQ_SLICE_LIT("CannotSend"),
                        (rq_slice){0}, RQ_SLICE_LIT(""));
        op->parts_out--;
    }
    end_part(op);
    return RQ_OK;
}
