/* SPDX-License-Identifier: Apache-2.0 */
/* How an op waits while it reads; see read.h. */
#include "ops/read.h"

#include "ops/beside.h"
#include "ops/ops_priv.h"

#include <stdlib.h>

static uint64_t now_ns(const rq_op_read *read)
{
    rq_executor *executor = read->op.seat->executor;
    return executor->now_ns(executor);
}

uint64_t rq_op_read_yield_ns(const rq_op_read *read)
{
    return read->op.seat->lane == NULL ? 0 : now_ns(read) + RQ_METER_STRETCH_NS;
}

static void run_step(rq_task *task)
{
    rq_op_read *read = RQ_CONTAINER_OF(task, rq_op_read, task);
    read->step(read);
}

static void fetch(rq_op_read *read)
{
    uint64_t begun = now_ns(read);
    read->fetch_rc = rq_read_ctx_fulfil(&read->ctx, &read->op.why);
    read->fetch_ns += now_ns(read) - begun;
}

static void run_fetched(rq_task *task)
{
    rq_op_read *read = RQ_CONTAINER_OF(task, rq_op_read, task);
    rq_op *op = &read->op;
    if (op->caller != NULL && op->caller->waited_for_block != NULL)
        op->caller->waited_for_block(op, now_ns(read) - read->asked_ns);
    if (read->beside != NULL) rq__beside_collect(read->beside, &read->ctx);
    read->step(read);
}

static void run_fetch(rq_task *task)
{
    rq_op_read *read = RQ_CONTAINER_OF(task, rq_op_read, task);
    fetch(read);
    read->task.run = run_fetched; /* before the last read of those beside it posts the task */
    if (read->beside != NULL && !rq__beside_ended(read->beside)) return;
    rq_lane_post(read->op.seat->lane, &read->task);
}

/* The begun read has ended; on the lane. */
static void run_take(rq_task *task)
{
    rq_op_read *read = RQ_CONTAINER_OF(task, rq_op_read, task);
    rq_executor *executor = read->op.seat->executor;
    rq_err rc = rq_read_ctx_take(&read->ctx, &read->op.why);
    if (RQ_UNLIKELY(rc == RQ_E_AGAIN)) {
        read->task.run = run_fetch;
        executor->submit(executor, RQ_POOL_READ, &read->task);
        return;
    }
    read->fetch_rc = rc;
    read->fetch_ns += now_ns(read) - read->asked_ns;
    read->task.run = run_fetched;
    if (read->beside == NULL || rq__beside_ended(read->beside)) run_fetched(&read->task);
}

/* Begins the op's own read, without a thread if possible. */
static void begin_fetch(rq_op_read *read)
{
    const rq_ops_seat *seat = read->op.seat;
    read->task.run = run_take;
    if (rq_read_ctx_begin(&read->ctx, seat->reads, &read->task)) return;
    read->task.run = run_fetch;
    seat->executor->submit(seat->executor, RQ_POOL_READ, &read->task);
}

static void run_wait(rq_task *task)
{
    rq_op_read_wait(RQ_CONTAINER_OF(task, rq_op_read, task));
}

/* The bytes that a slice may add to a result; charged ahead for a result that is already large. */
#define SLICE_BYTES ((size_t)256 * 1024)

static rq_err ask_for_memory(rq_op_read *read)
{
    rq_op *op = &read->op;
    if (op->caller == NULL) return RQ_OK;
    size_t len = read->sink == NULL ? 0 : read->sink->bytes.len;
    size_t other = read->held == NULL ? 0 : read->held->bytes.cap;
    size_t next = read->ctx.need.reader != NULL ? read->ctx.need.size : read->ctx.too_long;
    if (next < SLICE_BYTES && len + other > SLICE_BYTES) next = SLICE_BYTES;
    size_t cap = read->sink == NULL ? next : rq_buf_cap_after(&read->sink->bytes, next);
    read->task.run = run_wait;
    rq_err rc = op->caller->may_grow(op, len + other, cap + other, &read->task);
    if (rc == RQ_E_AGAIN && read->sink != NULL) rq_buf_trim(&read->sink->bytes);
    return rc;
}

static void defer(rq_op_read *read)
{
    read->task.run = run_step;
    if (read->op.caller != NULL)
        read->op.caller->defer(&read->op, &read->task);
    else
        rq_lane_post(read->op.seat->lane, &read->task);
}

rq_err rq__op_read_waited(const rq_op_read *read)
{
    const rq_op *op = &read->op;
    if (read->fetch_rc != RQ_OK) return read->fetch_rc;
    bool has_gone = op->has_waited && op->caller != NULL && op->caller->has_gone(op);
    return has_gone ? RQ_E_CALLER_DISCONNECTED : RQ_OK;
}

rq_err rq_op_read_slice(rq_op_read *read)
{
    RQ_TRY(rq__op_read_waited(read));
    if (read->is_read) {
        read->is_read = false;
        return read->slice_rc;
    }
    read->ctx.too_long = 0;
    return read->slice(read);
}

static void run_slice(rq_task *task)
{
    rq_op_read *read = RQ_CONTAINER_OF(task, rq_op_read, task);
    const rq_ops_seat *seat = read->op.seat;
    rq_epoch_member pin;
    read->ctx.too_long = read->ctx.copy_max = 0;
    read->is_read = true;
    rq_epoch_pin(seat->ops->env.epoch, &pin);
    read->slice_rc = read->slice(read);
    rq_epoch_unpin(seat->ops->env.epoch, &pin);
    read->ctx.copy_max = RQ_READ_COPY_MAX;
    read->task.run = run_step;
    rq_lane_post(seat->lane, &read->task);
}

/* Runs the next slice on a thread that may copy a long value. */
RQ_COLD static void read_elsewhere(rq_op_read *read)
{
    rq_executor *executor = read->op.seat->executor;
    read->task.run = run_slice;
    executor->submit(executor, RQ_POOL_READ, &read->task);
}

static void wait_on_thread(rq_op_read *read)
{
    if (rq_read_ctx_needs(&read->ctx)) fetch(read);
    read->goes_on = true;
}

void rq_op_read_wait(rq_op_read *read)
{
    rq_op *op = &read->op;
    rq__gate_start(op);
    op->has_waited = true;
    if (op->seat->lane == NULL) {
        wait_on_thread(read);
        return;
    }
    rq_err rc = ask_for_memory(read);
    if (rc == RQ_E_AGAIN) {
        rq_read_ctx_unpin(&read->ctx);
        return;
    }
    if (rc != RQ_OK) {
        read->fetch_rc = rq_fail(&op->why, rc, "%s",
                                 rc == RQ_E_CALL_QUEUE_TOO_BIG
                                     ? "the memory for responses is full, so the call is refused"
                                     : rq_err_text(rc));
        read->step(read); /* at once: what it holds is charged nowhere */
        return;
    }
    if (!rq_read_ctx_needs(&read->ctx)) {
        if (RQ_UNLIKELY(read->ctx.too_long > 0))
            read_elsewhere(read);
        else
            defer(read);
        return;
    }
    read->task.run = run_fetch;
    read->asked_ns = now_ns(read);
    if (read->beside != NULL)
        rq__beside_begin(read->beside, read);
    else if (rq_read_ctx_wait(&read->ctx, &read->task))
        return; /* the block is being read for a scan; the task runs when that has ended */
    begin_fetch(read);
}

void rq__op_read_run(rq_op_read *read)
{
    if (read->op.seat->lane != NULL) {
        read->step(read);
        return;
    }
    do {
        read->goes_on = false;
        read->step(read);
    } while (read->goes_on);
}

/* --- time ranges of families ------------------------------------------------------------------ */

static int compare_families(const void *a, const void *b)
{
    return rq_slice_compare(((const rq_scan_family *)a)->family,
                            ((const rq_scan_family *)b)->family);
}

/* Lists all families of the region in `ret`, in the arena. */
static rq_err name_all_families(const rq_region *region, rq_arena *arena, rq_scan *ret)
{
    rq_table_schema *schema = rq_region_schema(region);
    rq_scan_family *list = rq_arena_calloc(arena, schema->family_count, sizeof *list);
    rq_err rc = list == NULL ? RQ_E_NO_MEMORY : RQ_OK;
    for (size_t i = 0; rc == RQ_OK && i < schema->family_count; i++) {
        list[i].family = rq_arena_copy(arena, schema->families[i].name);
        if (list[i].family.ptr == NULL) rc = RQ_E_NO_MEMORY;
    }
    ret->families = list;
    ret->family_count = schema->family_count;
    rq_table_schema_unref(schema);
    return rc;
}

rq_err rq_op_read_limit_family(rq_scan *scan, const rq_region *region, rq_arena *arena,
                               rq_slice family, rq_time_range range)
{
    if (scan->family_count == 0) RQ_TRY(name_all_families(region, arena, scan));
    rq_scan_family key = {.family = family};
    rq_scan_family *f = (rq_scan_family *)(uintptr_t)bsearch(
        &key, scan->families, scan->family_count, sizeof key, compare_families);
    if (f == NULL) return RQ_OK; /* the scan does not ask for it */
    f->has_time_range = true;
    f->time_range = range;
    return RQ_OK;
}
