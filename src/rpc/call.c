/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a call: its object, its arena, and what they are charged with. receive.c begins
 * calls, reply.c ends them.
 *
 * Call objects and their arenas are recycled per loop; in the steady state a call allocates
 * nothing. Decoded messages may be many times larger than their bytes (an empty Action is 2 bytes
 * on the wire and over a hundred in memory), so growth of the arena beyond ARENA_FREE is charged to
 * the budget. A call that needs more than a copy of its request while the budget is used up is
 * refused. A call that decodes gets at most rq__call_charge_max(), one that runs twice that. The
 * same growth tells a loop that a parameter takes long to decode, however short it is. */
#include "rpc/call_priv.h"

#include "base/long_free.h"
#include "base/pb.h"
#include "net/answers.h"

#include <stdlib.h>

#define ARENA_FREE ((size_t)64 * 1024)
/* So many calls of a loop have ARENA_FREE each. Further ones are charged with all that they take, 5 kB and more: otherwise
 * a million short requests that wait, which fit into the budget, would take many times the budget. */
#define CALLS_FREE 512
#define CALLS_POOLED 256 /* enough for a loop whose connections have many calls in flight */
/* … but no more than this: memory left by a burst of large requests is freed */
#define POOLED_BYTES_MAX ((size_t)2 << 20)

/* ---- memory ---------------------------------------------------------------------------------- */

static void *arena_alloc(void *data, size_t size)
{
    return rq_arena_alloc(data, size);
}

/* A call that has the overdraft may be charged with up to BUDGETS_MAX times the budget, or SWELL_MAX times its
 * request's bytes if that is more: decoded, many small puts take ten times their bytes, but a large value is only
 * copied once. */
#define BUDGETS_MAX 2
#define SWELL_MAX 3
/* While it runs, a call may be charged with this many times rq__call_charge_max(): its results
 * count too. */
#define RUNNING_MAX 2

size_t rq__call_charge_max(const rq_call_private *p)
{
    size_t max = BUDGETS_MAX * rq_budget_max(rq__call_budget(p));
    size_t swollen = SWELL_MAX * (size_t)p->call.request_bytes;
    return max > swollen ? max : swollen;
}

static bool overdraw(rq_call_private *p, size_t bytes)
{
    if (p->charged + bytes > rq__call_charge_max(p)) {
        p->never_fits = true;
        return false;
    }
    if (!rq_budget_overdraws(rq__call_budget(p), p->frame) &&
        !rq_budget_overdraw(rq__call_budget(p), p))
        return false;
    rq_budget_force(rq__call_budget(p), bytes);
    return true;
}

/* Charges `bytes` more. A copy of the request is charged in any case (the request was admitted,
 * and large values are mostly one copy). Beyond that, only while there is room, or for the one
 * call with the overdraft: otherwise a request near the limit could be retried forever without
 * success. */
bool rq__call_charge(rq_call_private *p, size_t bytes)
{
    bool taken = true;
    if (p->charged + bytes <= p->call.request_bytes + ARENA_FREE)
        rq_budget_force(rq__call_budget(p), bytes);
    else if (!rq_budget_try(rq__call_budget(p), bytes))
        taken = overdraw(p, bytes);
    if (taken)
        p->charged += bytes;
    else
        p->over_budget = true;
    return taken;
}

/* Charges what an admitted call needs while it runs: the budget may be exceeded, so that calls do
 * not wait for each other, but not the limit of one call. */
static bool charge_running(rq_call_private *p, size_t bytes)
{
    if (RQ_UNLIKELY(p->charged + bytes > RUNNING_MAX * rq__call_charge_max(p))) {
        p->over_budget = p->never_fits = true;
        return false;
    }
    rq_budget_force(rq__call_budget(p), bytes);
    p->charged += bytes;
    return true;
}

/* The size of the decoded message in the arena beyond which a loop leaves the parameter to a pool. A byte of the arena
 * takes at most a nanosecond to produce, whatever the message is; a byte of the parameter takes 0.1 to 35 ns to
 * decode. */
#define DECODED_AT_ONCE ((size_t)1 << 20)

/* A method without a type decodes its parameter itself. */
static bool loop_decodes_param(const rq_call_private *p)
{
    const rq_call *c = &p->call;
    return c->decoding && c->param == NULL && !p->on_pool && c->method->request != NULL &&
           rq__call_may_offload(p);
}

/* Called before the call's arena gets another chunk. False: the arena returns NULL. */
static bool charge_arena(void *ctx, size_t bytes)
{
    rq_call_private *p = ctx;
    size_t total = p->call.arena.total_bytes + bytes;
    if (total > DECODED_AT_ONCE && loop_decodes_param(p)) {
        p->takes_long = true;
        return false;
    }
    size_t free_bytes = p->is_counted ? 0 : ARENA_FREE;
    if (total <= p->arena_charged + free_bytes) return true;
    size_t more = total - p->arena_charged - free_bytes;
    if (!(p->call.decoding ? rq__call_charge(p, more) : charge_running(p, more))) return false;
    p->arena_charged += more;
    return true;
}

static void no_free(void *data, void *pointer)
{
    (void)data;
    (void)pointer;
}

ProtobufCAllocator rq_rpc_allocator(rq_arena *arena)
{
    return (ProtobufCAllocator){arena_alloc, no_free, arena};
}

RQ_COLD static void count(rq_call_private *p)
{
    p->is_counted = true;
    p->charged = sizeof *p;
    rq_budget_force(rq__call_budget(p), sizeof *p);
}

/* Bytes kept by a pooled call. */
static size_t pooled_bytes(const rq_call_private *p)
{
    return p->call.arena.total_bytes + p->call.cells.bytes.cap;
}

RQ_COLD static void link_made(rq_rpc_worker *w, rq_call_private *p)
{
    p->next_made = w->made;
    if (w->made != NULL) w->made->previous_made = p;
    w->made = p;
}

RQ_COLD static void unlink_made(rq_rpc_worker *w, rq_call_private *p)
{
    if (p->next_made != NULL) p->next_made->previous_made = p->previous_made;
    if (p->previous_made != NULL)
        p->previous_made->next_made = p->next_made;
    else
        w->made = p->next_made;
}

rq_call_private *rq__call_new(rq_rpc_conn *conn)
{
    rq_rpc_worker *w = conn->worker;
    rq_call_private *p = w->free_calls;
    if (p != NULL) {
        w->free_calls = p->next_free;
        w->free_count--;
        w->free_bytes -= pooled_bytes(p);
    } else {
        p = calloc(1, sizeof *p);
        if (p == NULL) return NULL;
        p->call.priv = p;
        rq_arena_meter(&p->call.arena, charge_arena, p);
        p->call.loop = w->loop;
        link_made(w, p);
    }
    p->conn = conn;
    conn->refs++;
    conn->calls++;
    if (RQ_UNLIKELY(++w->in_flight > CALLS_FREE)) count(p);
    p->call.client = &conn->client;
    p->call.cells.with_tags = conn->client.codec_with_tags;
    return p;
}

/* The cells that were not sent. */
static void clear_cells(const rq_rpc_worker *w, rq_cellblock *cells)
{
    rq_long_clear_buf(w->server->options.executor, &cells->bytes);
    rq_cellblock_clear(cells);
}

RQ_COLD static void call_free(rq_rpc_worker *w, rq_call_private *p)
{
    unlink_made(w, p);
    rq_long_clear_arena(w->server->options.executor, &p->call.arena);
    clear_cells(w, &p->call.cells);
    free(p);
}

void rq__call_pool_clear(rq_rpc_worker *w)
{
    while (w->free_calls != NULL) {
        rq_call_private *p = w->free_calls;
        w->free_calls = p->next_free;
        call_free(w, p);
    }
    w->free_count = 0;
    w->free_bytes = 0;
}

static void call_recycle(rq_rpc_worker *w, rq_call_private *p)
{
    rq_call *c = &p->call;
    if (RQ_ASAN || w->free_count >= CALLS_POOLED || w->free_bytes >= POOLED_BYTES_MAX) {
        call_free(w, p);
        return;
    }
    if (RQ_UNLIKELY(c->arena.total_bytes >= RQ_LONG_FREE_BYTES))
        rq_long_clear_arena(w->server->options.executor, &c->arena);
    else
        rq_arena_reset(&c->arena);
    if (c->cells.bytes.cap > RQ__CELLS_KEEP)
        clear_cells(w, &c->cells);
    else
        rq_cellblock_reset(&c->cells);
    const size_t kept = offsetof(rq_call_private, call.method);
    memset((char *)p + kept, 0, sizeof *p - kept);
    p->next_free = w->free_calls;
    w->free_calls = p;
    w->free_count++;
    w->free_bytes += pooled_bytes(p);
}

void rq__call_release_request(rq_call_private *p)
{
    rq_long_clear_buf(p->conn->worker->server->options.executor, &p->block);
    rq_budget_give(rq__call_budget(p), p->charged);
    rq_budget_end_overdraft(rq__call_budget(p), p);
    rq_chunk_unref(p->frame);
}

RQ_COLD static void take_times(rq_rpc_worker *w, const rq_call *c, uint64_t weight)
{
    uint64_t now = rq_loop_clock_ns();
    rq_times_add(&w->queue_times, c->started_ns - c->received_ns, weight);
    rq_times_add(&w->process_times, now - c->started_ns, weight);
    rq_times_add(&w->total_times, now - c->received_ns, weight);
}

void rq__call_end(rq_call_private *p)
{
    rq_rpc_conn *conn = p->conn;
    rq_rpc_worker *w = conn->worker;
    if (RQ_UNLIKELY(p->timed != 0)) take_times(w, &p->call, p->timed);
    rq__call_release_request(p);
    rq__answer_end(p);
    if (RQ_UNLIKELY(p->packing != NULL)) rq__packing_free(p->packing);
    rq__call_out_of_hand(&p->call);
    if (RQ_UNLIKELY(p->text != NULL)) free(p->text);
    call_recycle(w, p);
    conn->calls--;
    w->in_flight--;
    rq__counter_add(&w->counters.ended, 1);
    rq__conn_call_ended(conn);
    rq__conn_unref(conn);
}

bool rq_call_disconnected(const rq_call *call)
{
    const rq_rpc_conn *conn = call->priv->conn;
    return conn->stream == NULL || rq_stream_closing(conn->stream);
}

const _Atomic bool *rq_call_gone(const rq_call *call)
{
    return &call->priv->conn->gone;
}

void **rq_call_connection_state(rq_call *call)
{
    return &call->priv->conn->service_state;
}

void rq_call_keep_connection(rq_call *call)
{
    call->priv->conn->kept = true;
}

void rq_call_hold_answers(rq_call *call)
{
    rq_stream_answers_always(call->priv->conn->stream, false);
}

const struct Pb__RequestHeader *rq_call_header(rq_call *call)
{
    rq_call_private *p = rq__call_private(call);
    if (p->header == NULL) {
        ProtobufCAllocator allocator = rq_rpc_allocator(&call->arena);
        p->header = pb__request_header__unpack(&allocator, p->head.len, p->head.ptr);
    }
    return p->header;
}

rq_slice rq_call_param_bytes(const rq_call *call)
{
    const rq_call_private *p = call->priv;
    /* The parameter follows the header; its bounds were checked when it was decoded (receive.c). */
    rq_cursor c =
        rq_cursor_of(rq_slice_of(p->head.ptr + p->head.len, call->request_bytes - p->head.len - 1));
    rq_slice bytes = {0};
    RQ_ASSERT(rq_pb_delimited(&c, &bytes));
    return bytes;
}

/* --- long work -------------------------------------------------------------------------------- */

static void begin_work(rq_call_work *w);

static void run_done(rq_task *task)
{
    rq_call_work *w = RQ_CONTAINER_OF(task, rq_call_work, task);
    rq_rpc_conn *conn = rq__call_private(w->call)->conn;
    conn->work = w->next;
    if (conn->work != NULL) begin_work(conn->work);
    w->done(w);
}

static void submit_work(rq_call_work *w)
{
    if (w->packers != NULL)
        rq_pool_share_submit(w->packers, &w->task);
    else
        w->executor->submit(w->executor, RQ_POOL_CODEC, &w->task);
}

static void run_work(rq_task *task)
{
    rq_call_work *w = RQ_CONTAINER_OF(task, rq_call_work, task);
    bool has_ended = w->work(w);
    if (w->packers != NULL) rq_pool_share_end(w->packers);
    if (!has_ended) {
        submit_work(w);
        return;
    }
    w->task.run = run_done;
    rq_call_post(w->call, &w->task);
}

static void begin_work(rq_call_work *w)
{
    bool is_wanted = !w->is_for_peer || !rq_call_disconnected(w->call);
    w->task.run = is_wanted ? run_work : run_done;
    if (is_wanted)
        submit_work(w);
    else
        rq_call_post(w->call, &w->task);
}

/* Puts the work behind that of the connection's other calls. */
static void queue_work(rq_call_work *w)
{
    rq_rpc_conn *conn = rq__call_private(w->call)->conn;
    if (RQ_UNLIKELY(conn->compressor != NULL) && conn->worker->server->has_packers)
        w->packers = &conn->worker->server->packers;
    bool is_first = conn->work == NULL;
    *(is_first ? &conn->work : &conn->last_work->next) = w;
    conn->last_work = w;
    if (is_first) begin_work(w);
}

void rq_call_work_start(rq_call_work *w, rq_executor *executor, rq_call *call,
                        bool (*work)(rq_call_work *w), void (*done)(rq_call_work *w))
{
    *w = (rq_call_work){.call = call, .work = work, .done = done, .executor = executor};
    queue_work(w);
}

bool rq__call_may_offload(const rq_call_private *p)
{
    return p->conn->worker->server->options.executor != NULL;
}

void rq__call_offload(rq_call_private *p, rq_call_work *w, bool (*work)(rq_call_work *w),
                      void (*done)(rq_call_work *w))
{
    *w = (rq_call_work){.call = &p->call,
                        .work = work,
                        .done = done,
                        .executor = p->conn->worker->server->options.executor,
                        .is_for_peer = true};
    queue_work(w);
}
