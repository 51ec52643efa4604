/* SPDX-License-Identifier: Apache-2.0 */
/* Iterates over the groups and parts of a batch; see batch.h. HBASE: RSRpcServices.multi,
 * doNonAtomicRegionMutation. */
#include "ops/batch_priv.h"

/* --- groups ----------------------------------------------------------------------------------- */

/* The batch is timed for the table of its first group. */
static void give_region_back(rq_op_batch *b)
{
    if (!b->in_group) return;
    if (b->first_region == NULL)
        b->first_region = b->region;
    else
        rq_region_unref(b->region);
    b->in_group = false;
}

/* The results of the group's last run are not yet known, and not counted. */
RQ_COLD static void leave_gate(rq_op_batch *b)
{
    b->is_gated = false;
    b->gate.bytes_returned = b->result_bytes - b->gate.bytes_returned;
    b->gate.block_bytes = b->read.ctx.block_bytes_used - b->gate.block_bytes;
    rq__gate_leave_group(&b->read.op, &b->gate);
}

static void leave_group(rq_op_batch *b)
{
    if (RQ_UNLIKELY(b->is_gated)) leave_gate(b);
    give_region_back(b);
    b->region = NULL;
    b->collecting = NULL;
    b->group_at++;
}

/* HBASE: RegionServerRpcQuotaManager.checkBatchQuota: what counts as a read, a write, atomic. */
static void count_group(rq_op_batch *b)
{
    b->gate = (rq_gate_group){.region = b->region,
                              .bytes_returned = b->result_bytes,
                              .block_bytes = b->read.ctx.block_bytes_used};
    for (size_t i = 0; i < b->part_count; i++) {
        rq_batch_part_kind kind = b->parts[i].kind;
        bool writes = kind == RQ_PART_COLLECTED || kind == RQ_PART_ALONE;
        bool reads = kind == RQ_PART_ALONE || (writes && b->has_condition);
        b->gate.writes += writes;
        b->gate.reads += kind == RQ_PART_GET || reads;
        b->gate.is_atomic |= reads;
    }
}

/* Refused: all its parts fail. */
RQ_COLD static rq_err refuse_group(rq_op_batch *b, rq_err rc, const rq_error *why)
{
    for (size_t i = 0; i < b->part_count; i++)
        b->table->skip(b, &b->parts[i]);
    rc = b->table->group_failed(b, rc, why);
    leave_group(b);
    return rc;
}

/* A group that is refused has ended. */
RQ_COLD static rq_err ask_gate(rq_op_batch *b)
{
    rq_error why;
    rq_error_clear(&why);
    count_group(b);
    rq_err rc = rq__gate_enter_group(&b->read.op, &b->gate, &why);
    if (rc != RQ_OK) return refuse_group(b, rc, &why);
    b->is_gated = true;
    return RQ_OK;
}

static uint64_t bit_of(const rq_region *region)
{
    return (uint64_t)1 << ((uint64_t)(uintptr_t)region * 0x9e3779b97f4a7c15u >> 58);
}

/* Whether the group must wait for runs of earlier groups of its region, which may be in progress. A group without rows
 * in common with them would not have to wait, but the rows of writes are not known before they are decoded. */
static bool follows_another(rq_op_batch *b)
{
    uint64_t bit = bit_of(b->region);
    if (b->runs_running == 0) b->busy = b->busy_atomic = 0;
    bool follows = ((b->is_atomic ? b->busy : b->busy_atomic) & bit) != 0;
    b->busy |= bit;
    if (b->is_atomic) b->busy_atomic |= bit;
    return follows;
}

/* Whether the group may have to wait for earlier ones. Not if it is executed behind them, in their run. */
static bool begins_later(rq_op_batch *b)
{
    if (rq__batch_joins(b)) return false;
    rq__batch_submit_atomics(b);
    return follows_another(b);
}

static rq_err enter_group(rq_op_batch *b)
{
    b->region = NULL;
    b->is_long = false;
    RQ_TRY(b->table->enter(b));
    b->part_at = 0;
    rq__batch_forget_looks(b);
    b->no_run_before = 0;
    b->ahead = 0;
    b->meter.steps += b->part_count / 8;
    if (b->region == NULL) {
        leave_group(b);
        return RQ_OK;
    }
    rq_region_ref(b->region);
    b->in_group = true;
    b->follows = begins_later(b);
    return RQ_LIKELY(rq__gate_policy(b->read.op.seat) == NULL) ? RQ_OK : ask_gate(b);
}

/* --- single parts ----------------------------------------------------------------------------- */

/* While memory for results is scarce, a result longer than this ends the batch: the client asks for
 * the rest. */
#define LONG_WHEN_SCARCE ((size_t)64 * 1024)

/* HBASE: RSRpcServices.doNonAtomicRegionMutation. */
static bool too_much(const rq_op_batch *b)
{
    const rq_op *op = &b->read.op;
    const rq_ops *ops = op->seat->ops;
    if (b->result_bytes > ops->result_bytes_max || b->read.fetch_rc != RQ_OK) return true;
    if (b->result_bytes > LONG_WHEN_SCARCE && op->caller != NULL && op->caller->is_scarce(op))
        return true;
    return b->stops_at_blocks && b->read.ctx.block_bytes_used > ops->block_bytes_max;
}

static rq_err refuse(rq_op_batch *b, const rq_batch_part *p, rq_err rc, const rq_error *why)
{
    b->table->skip(b, p);
    return b->table->failed(b, p, rc, why);
}

RQ_COLD static rq_err refuse_more(rq_op_batch *b, const rq_batch_part *p)
{
    rq_error why;
    rq_error_clear(&why);
    rq_err rc = rq_fail(
        &why, RQ_E_RESULT_TOO_LARGE, "Max size exceeded CellSize: %llu BlockSize: %llu",
        (unsigned long long)b->result_bytes, (unsigned long long)b->read.ctx.block_bytes_used);
    return refuse(b, p, rc, &why);
}

rq_err rq__batch_translate(rq_op_batch *b, const rq_batch_part *p)
{
    b->drains = b->runs_running > 0; /* their ends are callbacks */
    return b->drains ? RQ_OK : b->table->translate(b, p);
}

/* The batch's other gets are not executed either; its writes are, as in HBase. */
RQ_COLD static rq_err leave_out_get(rq_op_batch *b, const rq_batch_part *p)
{
    rq__batch_fail(b, RQ_E_CALLER_DISCONNECTED);
    b->read.fetch_rc = RQ_OK;
    b->get_waits = b->is_translated = false;
    b->table->skip(b, p);
    return RQ_OK;
}

static rq_err work_get(rq_op_batch *b, const rq_batch_part *p, bool *ret_wait)
{
    rq_error why;
    rq_error_clear(&why);
    rq_err rc;
    if (RQ_UNLIKELY(rq__op_read_waited(&b->read) == RQ_E_CALLER_DISCONNECTED))
        return leave_out_get(b, p);
    if (rq__batch_must_translate(b, p) && !b->get_waits) {
        rc = rq__batch_translate(b, p);
        *ret_wait = rc == RQ_OK;
        return rc == RQ_OK ? RQ_OK : b->table->failed(b, p, rc, &why);
    }
    rc = rq__batch_begin_get(b, p, &why);
    if (rc == RQ_E_AGAIN && (b->get_running || b->get_waits)) return rc;
    if (rc != RQ_OK) return b->table->failed(b, p, rc, &why);
    return b->get_running ? rq__batch_go_on_get(b, p) : rq__batch_answer_get(b, p);
}

static rq_err work_write(rq_op_batch *b, const rq_batch_part *p, bool *ret_wait)
{
    rq_error why;
    rq_error_clear(&why);
    bool wait = false;
    rq_err rc = rq__batch_collect(b, p, &wait, &why);
    if (RQ_UNLIKELY(rc == RQ_E_AGAIN)) {
        *ret_wait = true;
        return RQ_OK;
    }
    if (rc != RQ_OK) return b->table->failed(b, p, rc, &why);
    if (!wait) return RQ_OK;
    b->part_at++; /* its end may walk on before this returns */
    *ret_wait = rq__batch_submit(b, true);
    if (!*ret_wait) b->part_at--;
    return RQ_OK;
}

static rq_err work_other(rq_op_batch *b, const rq_batch_part *p, bool *ret_wait)
{
    rq_error why;
    rq_error_clear(&why);
    *ret_wait = b->drains = b->runs_running > 0;
    if (b->drains) return RQ_OK; /* their ends are callbacks */
    rq_err rc = b->table->other(b, p, &why);
    if (rc != RQ_OK) return refuse(b, p, rc, &why);
    *ret_wait = true;
    return RQ_OK;
}

/* Executes one part. *ret_wait: it began something that must end before the next part. */
static rq_err work_part(rq_op_batch *b, const rq_batch_part *p, bool *ret_wait)
{
    if (RQ_UNLIKELY(!b->get_waits && !b->is_translated && too_much(b))) return refuse_more(b, p);
    switch (p->kind) {
    case RQ_PART_GET:
        return work_get(b, p, ret_wait);
    case RQ_PART_COLLECTED:
    case RQ_PART_ALONE:
        return work_write(b, p, ret_wait);
    case RQ_PART_OTHER:
        break;
    }
    return work_other(b, p, ret_wait);
}

/* --- the walk --------------------------------------------------------------------------------- */

static void end(rq_op_batch *b)
{
    rq_op *op = &b->read.op;
    rq_region *region;
    give_region_back(b);
    rq_region_scanner_close(b->scanner);
    rq__batch_drop_looks(b);
    rq_arena_clear(&b->get_arena);
    rq_read_ctx_clear(&b->read.ctx);
    op->cost.bytes_out = b->result_bytes;
    for (int kind = 0; kind < RQ_OP_KINDS; kind++) {
        op->cost.rows += b->counts[kind];
        if (b->counts[kind] > 0) rq__gate_count_parts(op, (rq_op_kind)kind, b->counts[kind]);
    }
    op->region = region = b->first_region;
    rq_op_end(op, b->ended_with);
    rq_region_unref(region);
}

void rq__batch_fail(rq_op_batch *b, rq_err rc)
{
    if (b->ended_with == RQ_OK) b->ended_with = rc;
}

void rq__batch_end_if_done(rq_op_batch *b)
{
    if (b->walked && b->runs_running == 0) end(b);
}

/* True: the group has been left, and the next one can begin. */
static bool work_atomic(rq_op_batch *b, rq_err *ret)
{
    bool wait = false;
    if (RQ_UNLIKELY(b->is_long) && !b->is_translated) {
        *ret = rq__batch_translate(b, NULL);
        if (*ret == RQ_OK) return false;
        rq_error why;
        rq_error_clear(&why);
        *ret = b->table->group_failed(b, *ret, &why);
    } else {
        *ret = b->part_count == 0 ? RQ_OK : rq__batch_collect_atomic(b, &wait);
    }
    leave_group(b);
    b->drains = wait && *ret == RQ_OK;
    return !b->drains;
}

/* True: the group waits for all runs in progress. */
RQ_COLD static bool waits_for_groups_before(rq_op_batch *b)
{
    b->follows = false;
    b->drains = b->runs_running > 0;
    b->busy = bit_of(b->region);
    b->busy_atomic = b->is_atomic ? b->busy : 0;
    return b->drains;
}

/* True: continue at once. */
static bool walk_group(rq_op_batch *b, rq_err *ret)
{
    *ret = RQ_OK;
    if (RQ_UNLIKELY(b->follows) && waits_for_groups_before(b)) return false;
    if (b->is_atomic) return work_atomic(b, ret) && *ret == RQ_OK;
    if (b->part_at == b->part_count) {
        if (rq__batch_submit_rest(b)) return false;
        leave_group(b);
        return true;
    }
    const rq_batch_part *p = &b->parts[b->part_at];
    bool wait = false;
    *ret = b->get_running ? rq__batch_go_on_get(b, p) : work_part(b, p, &wait);
    if (wait) return false;
    if (*ret == RQ_OK) b->part_at++;
    return *ret == RQ_OK;
}

/* Before a get goes on on another thread: the ends of runs are callbacks, which may use the sink. */
static bool waits_for_runs(rq_op_batch *b)
{
    b->drains = b->read.ctx.too_long > 0 && b->runs_running > 0;
    return b->drains;
}

/* Of a part, beside its cells. */
#define PART_STEPS 4

void rq__batch_walk(rq_op_batch *b)
{
    rq_executor *executor = b->read.op.seat->executor;
    rq_err rc = RQ_OK;
    rq_meter_begin(&b->meter);
    while (b->group_at < b->group_count) {
        bool goes_on = b->in_group ? walk_group(b, &rc) : (rc = enter_group(b)) == RQ_OK;
        if (!goes_on && rc == RQ_OK) return; /* an awaited run or the caller walks on */
        if (!goes_on) break;
        if (!rq_meter_spent(&b->meter, executor, PART_STEPS)) continue;
        rc = RQ_E_AGAIN; /* another task continues */
        break;
    }
    if (rc == RQ_E_AGAIN) {
        if (!waits_for_runs(b)) rq_op_read_wait(&b->read);
        return;
    }
    rq__batch_submit_atomics(b);
    /* Runs in progress still report to the caller: the op ends with the last of them. */
    if (rc != RQ_OK) rq__batch_fail(b, rc);
    b->walked = true;
    rq__batch_end_if_done(b);
}

void rq_op_batch_go_on(rq_op_batch *b, rq_err rc)
{
    if (rc != RQ_OK) {
        rq__batch_fail(b, rc);
        b->walked = true;
        rq__batch_end_if_done(b);
        return;
    }
    b->counts[RQ_OP_ENDPOINT]++;
    b->part_at++;
    rq__batch_walk(b);
}

void rq_op_batch_translated(rq_op_batch *b)
{
    b->is_translated = true;
    rq__batch_walk(b);
}

static void step(rq_op_read *read)
{
    rq__batch_walk(RQ_CONTAINER_OF(read, rq_op_batch, read));
}

static void run(rq_op *op)
{
    rq_op_batch *b = RQ_CONTAINER_OF(op, rq_op_batch, read.op);
    rq_op_read_init(&b->read, step, rq__batch_read_slice);
    b->read.sink = b->out;
    rq__op_read_run(&b->read);
}

void rq_op_batch_start(rq_op_batch *b)
{
    rq_op_begin(&b->read.op, run);
}
