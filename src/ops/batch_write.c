/* SPDX-License-Identifier: Apache-2.0 */
/* The writes of a batch, grouped into runs that are passed to a region as a whole. An atomic group
 * is one op of the region, and atomic groups of one region that follow each other share a run, so that
 * they wait for the log once. Otherwise writes are collected, one op each, until an append or
 * increment comes or the group ends. HBASE: RSRpcServices.doAtomicBatchOp, doNonAtomicBatchOp.
 *
 * A run lives in the op's arena. The caller learns its results when it is done.
 *
 * If there is no memory for a run of all writes of a group, a small run is used again and again:
 * the iteration waits for it each time, so that a batch of any length makes progress. */
#include "ops/batch_priv.h"

#include "base/fnv.h"
#include "ops/mutate.h"

#include <string.h>

/* The memory of b->small_run. */
typedef struct scratch {
    rq_arena arena; /* of the decoded writes; begins with `bytes` */
    void *bytes;
    size_t accounted; /* to the op's arena: the most that the scratch had beyond `bytes` */
} scratch;

/* Writes handed to a region at once. */
typedef struct rq__batch_run {
    rq_write write;
    rq_op_batch *batch;
    rq_region *region; /* a reference while it is b->atomics */
    rq_row_op *ops;
    rq_mutation *mutations; /* one of each op; NULL: the ops are atomic groups */
    uint32_t *indexes;      /* of each op's part; NULL likewise */
    void **groups;  /* the caller's, of each atomic group; NULL: the ops are parts of `group` */
    bool has_marks; /* b->row_marks has the rows of its atomic groups */
    size_t op_count;
    size_t cap;       /* of the arrays */
    bool awaited;     /* the batch continues when it is done */
    bool running;     /* submitted, and not completely answered */
    scratch *scratch; /* of b->small_run; NULL: the writes are in the op's arena */
    /* Error of a put or delete that could not be decoded: all writes of this run fail with it. HBASE:
     * doNonAtomicBatchOp decodes the whole batch in one step. */
    rq_err refused;
    rq_error *refused_why; /* in the arena; NULL: no memory */
    void *group;           /* the caller's */
    size_t answered;       /* ops */
    rq_task task;          /* continues with the answers */
} run;

/* --- runs ------------------------------------------------------------------------------------- */

static void release_ops(void *thing)
{
    run *r = thing;
    for (size_t i = 0; i < r->op_count; i++)
        rq_row_op_clear(&r->ops[i]);
}

static run *run_alloc(rq_op_batch *b, size_t cap, bool atomic)
{
    rq_arena *arena = b->read.op.arena;
    run *r = rq_arena_alloc(arena, sizeof *r);
    if (r == NULL) return NULL;
    *r = (run){.batch = b, .region = b->region, .cap = cap, .group = b->group};
    r->ops = rq_arena_alloc(arena, cap * sizeof *r->ops);
    if (r->ops == NULL) return NULL;
    if (atomic) {
        r->groups = rq_arena_alloc(arena, cap * sizeof *r->groups);
        return r->groups == NULL ? NULL : r;
    }
    r->mutations = rq_arena_alloc(arena, cap * sizeof *r->mutations);
    r->indexes = rq_arena_alloc(arena, cap * sizeof *r->indexes);
    return r->mutations == NULL || r->indexes == NULL ? NULL : r;
}

static run *run_linked(rq_op_batch *b, run *r)
{
    return r != NULL && rq_arena_link(b->read.op.arena, release_ops, r) == RQ_OK ? r : NULL;
}

static void limit_memory(rq_op_batch *b, bool on)
{
    rq_op *op = &b->read.op;
    if (op->caller != NULL) op->caller->limit_memory(op, on);
}

/* For small parts it takes many times their bytes. */
static run *run_new(rq_op_batch *b, size_t cap, bool atomic)
{
    limit_memory(b, true);
    run *r = run_alloc(b, cap, atomic);
    limit_memory(b, false);
    return run_linked(b, r);
}

/* With its memory a small run stays below what every call may use. */
#define SMALL_RUN 64                    /* writes */
#define SMALL_BYTES ((size_t)32 * 1024) /* for the writes, decoded */

/* Results that the caller may still refer to outlive the run's next use. */
static rq_err keep_result(run *r, rq_row_op *op)
{
    rq_arena *arena = r->batch->read.op.arena;
    if (op->why == NULL && op->result.bytes.ptr == NULL) return RQ_OK;
    run *kept = rq_arena_alloc(arena, sizeof *kept);
    rq_row_op *copy = rq_arena_alloc(arena, sizeof *copy);
    if (kept == NULL || copy == NULL) return RQ_E_NO_MEMORY;
    *kept = (run){.ops = copy};
    RQ_TRY(rq_arena_link(arena, release_ops, kept));
    *copy = *op;
    kept->op_count = 1;
    op->why = NULL;
    op->result = (rq_cellblock){0};
    return RQ_OK;
}

static bool scratch_may_grow(void *ctx, size_t bytes)
{
    run *r = ctx;
    scratch *own = r->scratch;
    size_t total = own->arena.total_bytes + bytes;
    if (total <= own->accounted) return true;
    if (rq_arena_account(r->batch->read.op.arena, total - own->accounted) != RQ_OK) return false;
    own->accounted = total;
    return true;
}

static void release_scratch(void *thing)
{
    scratch *own = thing;
    rq_arena_clear(&own->arena);
}

static void renew_scratch(scratch *own)
{
    rq_arena_clear(&own->arena);
    rq_arena_lend(&own->arena, own->bytes, SMALL_BYTES);
}

static run *small_run_new(rq_op_batch *b)
{
    rq_arena *arena = b->read.op.arena;
    scratch *own = rq_arena_calloc(arena, 1, sizeof *own);
    run *r = run_linked(b, run_alloc(b, SMALL_RUN, false));
    if (own == NULL || r == NULL || rq_arena_link(arena, release_scratch, own) != RQ_OK)
        return NULL;
    own->bytes = rq_arena_alloc(arena, SMALL_BYTES);
    if (own->bytes == NULL) return NULL;
    rq_arena_meter(&own->arena, scratch_may_grow, r);
    r->scratch = own;
    return r;
}

/* The batch's small run, empty. NULL: it is in use, or there is no memory at all. */
static run *small_run(rq_op_batch *b)
{
    if (b->small_run == NULL) b->small_run = small_run_new(b);
    run *r = b->small_run;
    if (r == NULL || r->running) return NULL;
    for (size_t i = 0; i < r->op_count; i++)
        if (keep_result(r, &r->ops[i]) != RQ_OK) return NULL;
    r->op_count = r->answered = 0;
    r->refused = RQ_OK;
    r->refused_why = NULL;
    r->region = b->region;
    r->group = b->group;
    return r;
}

/* A small run is full as well when the next write might not find memory. */
static bool is_full(const run *r)
{
    if (r->scratch == NULL) return false;
    const rq_arena *own = &r->scratch->arena;
    return r->op_count == r->cap || own->total_bytes > 0 ||
           (size_t)(own->end - own->next) < SMALL_BYTES / 2;
}

static rq_row_op *run_add(run *r, const rq_mutation *mutation, uint32_t index)
{
    RQ_ASSERT(r->op_count < r->cap);
    size_t i = r->op_count++;
    rq_row_op *op = &r->ops[i];
    r->indexes[i] = index;
    r->mutations[i] = *mutation;
    op->mutations = &r->mutations[i];
    op->mutation_count = 1;
    op->conditions = NULL;
    op->condition_count = 0;
    op->multi_row = false;
    op->nonce_group = 0;
    op->nonce = 0;
    op->cluster_ids = r->batch->cluster_ids;
    op->asked_filters = false;
    op->vital = false;
    op->rc = RQ_OK;
    op->why = NULL;
    op->processed = false;
    op->result = (rq_cellblock){.with_tags = r->batch->with_tags};
    return op;
}

/* --- ends ------------------------------------------------------------------------------------- */

static void count_op(rq_op_batch *b, const rq_row_op *op)
{
    b->counts[rq__op_kind_of_row(op)]++;
    for (size_t i = 0; i < op->mutation_count; i++)
        b->read.op.cost.cells += op->mutations[i].cell_count;
}

static rq_err answer_single(run *r, size_t i)
{
    rq_op_batch *b = r->batch;
    rq_row_op *op = &r->ops[i];
    bool refused = r->refused != RQ_OK;
    if (!refused) count_op(b, op);
    b->result_bytes += op->result.bytes.len;
    return b->table->written(b, r->group, r->indexes[i], op, refused ? r->refused : op->rc,
                             refused ? r->refused_why : op->why);
}

static rq_err answer_atomic(run *r, size_t i)
{
    count_op(r->batch, &r->ops[i]);
    return r->batch->table->atomic_written(r->batch, r->groups[i], &r->ops[i]);
}

static void go_on_answering(rq_task *task);

/* RQ_E_AGAIN: the time slice is over, and a task continues. */
static rq_err answer_ops(run *r)
{
    const rq_ops_seat *seat = r->batch->read.op.seat;
    rq_meter meter = {0};
    rq_meter_begin(&meter);
    while (r->answered < r->op_count) {
        size_t i = r->answered++;
        RQ_TRY(r->groups != NULL ? answer_atomic(r, i) : answer_single(r, i));
        if (r->answered == r->op_count ||
            !rq_meter_spent(&meter, seat->executor, r->ops[i].mutation_count))
            continue;
        if (seat->lane == NULL) {
            rq_meter_begin(&meter);
            continue;
        }
        r->task.run = go_on_answering;
        rq_lane_post(seat->lane, &r->task);
        return RQ_E_AGAIN;
    }
    return RQ_OK;
}

/* True: all of it is answered. */
static bool answer_run(run *r)
{
    rq_err rc = answer_ops(r);
    if (rc == RQ_E_AGAIN) return false;
    if (rc != RQ_OK) rq__batch_fail(r->batch, rc);
    r->running = false;
    r->batch->runs_running--;
    return true;
}

static void end_run(run *r)
{
    rq_op_batch *b = r->batch;
    if (!answer_run(r)) return;
    bool drained = b->drains && b->runs_running == 0;
    if (drained) b->drains = false;
    if (r->awaited || drained)
        rq__batch_walk(b);
    else
        rq__batch_end_if_done(b);
}

static void go_on_answering(rq_task *task)
{
    end_run(RQ_CONTAINER_OF(task, run, task));
}

/* A batch may have any number of small runs: each continues in a task, not on the stack of the one
 * before. */
static void written(rq_write *w)
{
    run *r = RQ_CONTAINER_OF(w, run, write);
    if (RQ_LIKELY(r->scratch == NULL)) {
        end_run(r);
        return;
    }
    r->task.run = go_on_answering;
    rq_lane_post(r->batch->read.op.seat->lane, &r->task);
}

/* Runs outside the read section, like a single write (mutate.c). */
RQ_COLD static void write_on_thread(run *r)
{
    rq_op_batch *b = r->batch;
    rq_ops_seat *seat = b->read.op.seat;
    rq_err rc = RQ_OK;
    if (r->refused == RQ_OK) {
        rq_epoch_exit(seat->ops->env.epoch, seat->section);
        rc = rq_region_write_sync(r->region, r->ops, r->op_count, &b->read.op.why);
        rq_epoch_enter(seat->ops->env.epoch, seat->section);
    }
    (void)rc; /* each op has its own */
    (void)answer_run(r);
}

/* True: it is in progress, or has ended and the batch has continued. */
static bool submit(rq_op_batch *b, run *r, bool awaited)
{
    rq_ops_seat *seat = b->read.op.seat;
    r->awaited = awaited;
    r->running = true;
    b->runs_running++;
    if (RQ_UNLIKELY(seat->lane == NULL)) {
        write_on_thread(r);
        return false;
    }
    if (r->refused != RQ_OK && awaited) return !answer_run(r);
    if (r->refused != RQ_OK) {
        end_run(r);
        return true;
    }
    r->write.ops = r->ops;
    r->write.op_count = r->op_count;
    r->write.writer = seat->writer;
    r->write.gone = rq__op_gone(&b->read.op);
    r->write.done = written;
    rq_region_write(r->region, &r->write);
    return true;
}

RQ_COLD static rq_err pass_gate(rq_op_batch *b, const rq_mutation *m, rq_error *why)
{
    b->gate.bytes_written += rq_mutation_bytes(m);
    return rq__gate_ask_write(&b->read.op, b->region, m, why);
}

/* --- all parts of a group as one op ----------------------------------------------------------- */

/* Marks of the rows of a run's atomic groups, if there are two or more; one set, because only one run is collected at a
 * time. A group of a row that has a mark begins another run and waits for this one: ops of a run may have the same
 * timestamp, and a delete would hide a put behind it. Rows may share a mark; then a group waits without need. */
#define ROW_MARKS 8192

static size_t mark_of(rq_slice row)
{
    uint64_t h = rq_fnv1a(RQ_FNV1A, row);
    return (size_t)(h ^ h >> 32) % ROW_MARKS;
}

static void mark_rows(uint64_t *rows, const rq_row_op *op)
{
    for (size_t i = 0; i < op->mutation_count; i++) {
        size_t mark = mark_of(op->mutations[i].row);
        rows[mark / 64] |= (uint64_t)1 << mark % 64;
    }
}

static bool has_marked_row(const uint64_t *rows, const rq_row_op *op)
{
    for (size_t i = 0; i < op->mutation_count; i++) {
        size_t mark = mark_of(op->mutations[i].row);
        if ((rows[mark / 64] >> mark % 64 & 1) != 0) return true;
    }
    return false;
}

/* REQUIRES: the run is not submitted. Its ops move. */
static bool double_room(run *r)
{
    rq_arena *arena = r->batch->read.op.arena;
    size_t cap = r->cap * 2;
    rq_row_op *ops = rq_arena_alloc(arena, cap * sizeof *ops);
    void **groups = rq_arena_alloc(arena, cap * sizeof *groups);
    if (ops == NULL || groups == NULL) return false;
    memcpy(ops, r->ops, r->op_count * sizeof *ops);
    memcpy(groups, r->groups, r->op_count * sizeof *groups);
    r->ops = ops;
    r->groups = groups;
    r->cap = cap;
    return true;
}

/* With the run's first op, before another one comes. */
static bool begin_marks(run *r)
{
    rq_op_batch *b = r->batch;
    if (b->row_marks == NULL) b->row_marks = rq_arena_alloc(b->read.op.arena, ROW_MARKS / 8);
    if (b->row_marks == NULL) return false;
    memset(b->row_marks, 0, ROW_MARKS / 8);
    mark_rows(b->row_marks, &r->ops[0]);
    return r->has_marks = true;
}

static bool has_room_for(run *r, const rq_row_op *op)
{
    if (!r->has_marks && !begin_marks(r)) return false;
    return !has_marked_row(r->batch->row_marks, op) && (r->op_count < r->cap || double_room(r));
}

static bool may_join(run *r, const rq_row_op *op)
{
    limit_memory(r->batch, true);
    bool ret = has_room_for(r, op);
    limit_memory(r->batch, false);
    return ret;
}

/* The run for the op of the group at hand. NULL: no memory. */
static run *atomic_run(rq_op_batch *b, const rq_row_op *op, bool *ret_wait)
{
    if (b->atomics != NULL) {
        if (may_join(b->atomics, op)) return b->atomics;
        rq__batch_submit_atomics(b);
        *ret_wait = b->runs_running > 0;
    }
    b->atomics = run_new(b, 1, true);
    if (b->atomics != NULL) rq_region_ref(b->region);
    return b->atomics;
}

static rq_err add_atomic(rq_op_batch *b, const rq_row_op *op, bool *ret_wait)
{
    run *r = atomic_run(b, op, ret_wait);
    if (r == NULL) return RQ_E_NO_MEMORY;
    if (r->has_marks) mark_rows(b->row_marks, op);
    r->groups[r->op_count] = b->group;
    r->ops[r->op_count++] = *op;
    return RQ_OK;
}

rq_err rq__batch_collect_atomic(rq_op_batch *b, bool *ret_wait)
{
    rq_error why;
    rq_error_clear(&why);
    rq_row_op op = {.result = {.with_tags = b->with_tags}};
    rq_err rc = b->table->atomic(b, &op, &why);
    b->is_translated = false;
    for (size_t i = 0; rc == RQ_OK && b->is_gated && i < op.mutation_count; i++)
        rc = pass_gate(b, &op.mutations[i], &why);
    if (rc == RQ_OK) rc = add_atomic(b, &op, ret_wait);
    return rc == RQ_OK ? RQ_OK : b->table->group_failed(b, rc, &why);
}

bool rq__batch_joins(const rq_op_batch *b)
{
    return b->is_atomic && b->atomics != NULL && b->atomics->region == b->region;
}

void rq__batch_submit_atomics(rq_op_batch *b)
{
    run *r = b->atomics;
    if (r == NULL) return;
    b->atomics = NULL;
    submit(b, r, false);
    rq_region_unref(r->region);
}

/* --- each for itself -------------------------------------------------------------------------- */

/* The end of a run that begins with the current part: behind the next append or increment, after
 * which the run is submitted. *ret_count: the number of its writes. */
static size_t run_end(const rq_op_batch *b, size_t *ret_count)
{
    size_t i = b->part_at;
    *ret_count = 0;
    while (i < b->part_count) {
        const rq_batch_part *p = &b->parts[i++];
        *ret_count += rq_batch_part_writes(p);
        if (p->kind == RQ_PART_ALONE) break;
    }
    return i;
}

/* The run that collects writes. If there is no memory for a run with all writes up to run_end, they are collected in
 * small runs; no_run_before then keeps run_end's result, so that parts before it are not counted again. NULL: there is
 * no memory even for a small run. */
static run *collecting_run(rq_op_batch *b)
{
    if (b->collecting != NULL) return b->collecting;
    if (b->part_at >= b->no_run_before) {
        size_t count;
        size_t end = run_end(b, &count);
        b->collecting = run_new(b, count, false);
        if (b->collecting == NULL) b->no_run_before = end;
    }
    if (b->collecting == NULL) b->collecting = small_run(b);
    return b->collecting;
}

bool rq__batch_submit(rq_op_batch *b, bool awaited)
{
    run *r = b->collecting;
    b->collecting = NULL;
    return submit(b, r, awaited);
}

bool rq__batch_submit_rest(rq_op_batch *b)
{
    run *r = b->collecting;
    if (r == NULL || r->op_count == 0) return false;
    bool awaited = r->scratch != NULL;
    return rq__batch_submit(b, awaited) && awaited;
}

static void refuse_run(run *r, rq_err rc, const rq_error *why)
{
    if (r->refused != RQ_OK) return;
    r->refused = rc;
    r->refused_why = rq_arena_alloc(r->batch->read.op.arena, sizeof *why);
    if (r->refused_why != NULL) *r->refused_why = *why;
}

/* A run for an append or increment whose collected writes are refused: without them. */
static run *run_without_refused(rq_op_batch *b)
{
    rq__batch_submit(b, false);
    return b->collecting = run_new(b, 1, false);
}

/* A part fails, and the writes collected before it do not. These are submitted now if the part is an append or
 * increment, which would have ended the run, or if the run is a small one, so that the next part finds memory. */
RQ_COLD static rq_err part_failed(rq_op_batch *b, run *r, const rq_batch_part *p, rq_err rc,
                                  bool *ret_wait, const rq_error *why)
{
    bool reads = p->kind == RQ_PART_ALONE;
    if (r->op_count == 0) {
        if (reads) b->collecting = NULL; /* it has room for the parts up to this one */
        return rc;
    }
    *ret_wait = reads || r->scratch != NULL;
    return *ret_wait ? b->table->failed(b, p, rc, why) : rc;
}

RQ_COLD static rq_err translate_write(rq_op_batch *b, const rq_batch_part *p)
{
    rq_err rc = rq__batch_translate(b, p);
    if (rc == RQ_OK) return RQ_E_AGAIN;
    b->table->skip(b, p);
    return rc;
}

rq_err rq__batch_collect(rq_op_batch *b, const rq_batch_part *p, bool *ret_wait, rq_error *why)
{
    rq_mutation mutation;
    uint64_t nonce = 0;
    bool reads = p->kind == RQ_PART_ALONE;
    run *r = collecting_run(b);
    if (r == NULL) {
        b->table->skip(b, p);
        return RQ_E_NO_MEMORY;
    }
    if (r->scratch != NULL && r->op_count == 0 && !b->is_translated) renew_scratch(r->scratch);
    b->write_arena = r->scratch != NULL ? &r->scratch->arena : b->read.op.arena;
    if (rq__batch_must_translate(b, p)) return translate_write(b, p);
    rq_err rc = b->table->write(b, p, &mutation, &nonce, why);
    b->is_translated = false;
    if (RQ_UNLIKELY(b->is_gated) && rc == RQ_OK) rc = pass_gate(b, &mutation, why);
    if (rc == RQ_E_NO_MEMORY || (rc != RQ_OK && reads))
        return part_failed(b, r, p, rc, ret_wait, why);
    if (reads && r->refused != RQ_OK) r = run_without_refused(b);
    if (r == NULL) return RQ_E_NO_MEMORY;
    if (RQ_UNLIKELY(rc != RQ_OK)) {
        refuse_run(r, rc, why);
        mutation = (rq_mutation){.type = RQ_MUTATE_PUT};
    }
    b->meter.steps += mutation.cell_count;
    rq_row_op *op = run_add(r, &mutation, p->index);
    *ret_wait = reads || is_full(r);
    if (reads) {
        op->nonce_group = b->nonce_group;
        op->nonce = nonce;
    }
    return RQ_OK;
}
