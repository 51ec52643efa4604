/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of responses, from their first byte until the peer has read the last.
 *
 *   being made ─ budget `answers` ─► complete ─ budget `unread` ─► read by the peer
 *
 *  (1) A suspended call is charged to `answers` for the bytes that it has made, and for its own
 *      memory. A call that never leaves its loop is not charged for a response before it is
 *      complete: there is at most one such response per loop.
 *  (2) A call waits only while it holds nothing that others need: between two slices (its handler
 *      calls rq_call_may_grow), or with its complete response packed (rq__answer_wait). It never
 *      waits while it holds an overdraft.
 *  (3) A connection whose unread responses exceed its share waits only for its own peer: its calls
 *      are in no queue with other connections' calls. One call of it (`exempt`) may exceed the
 *      share, so that a larger response can be sent.
 *  (4) While unread responses fill their budget no large response grows or is sent: its call waits
 *      for the peers. So responses being made are bounded by their budget and reserve, unread ones
 *      by their budget, reserve and one response. Responses up to RQ_UNREAD_SMALL are always sent;
 *      their debt is handled by the budget (rq__budget_owe).
 *  (5) A call that must wait but finds no memory for its bytes is refused with
 *      CallQueueTooBigException. While the server stops no call waits:
 *      RegionServerStoppedException.
 */
#include "rpc/rpc_priv.h"

/* A connection whose calls make no more than this may use the reserve. */
#define NEEDS_LITTLE ((size_t)128 * 1024)

static rq_call_private *private_of(rq_call *call)
{
    return RQ_CONTAINER_OF(call, rq_call_private, call);
}

static const rq_rpc_server *server_of(const rq_call_private *p)
{
    return p->conn->worker->server;
}

/* --- charging --------------------------------------------------------------------------------- */

static void note(rq_call_private *p, size_t bytes)
{
    p->conn->made += bytes - p->answer_charged;
    p->answer_charged = bytes;
}

/* Memory of a call in flight besides its response's cells and its request. */
static size_t own_bytes(const rq_call_private *p)
{
    size_t arena = p->call.arena.total_bytes;
    return sizeof *p + (arena > p->arena_charged ? arena - p->arena_charged : 0);
}

/* Whether it holds an overdraft, for which others wait. */
static bool must_not_wait(const rq_call_private *p)
{
    const rq_rpc_server_options *o = &server_of(p)->options;
    return rq_budget_overdraws(o->answers, p) || rq_budget_overdraws(o->budget, p) ||
           (p->frame != NULL && rq_budget_overdraws(o->budget, p->frame));
}

/* Rule (3). */
static bool waits_for_own_peer(rq_call_private *p, size_t bytes)
{
    rq_rpc_conn *conn = p->conn;
    size_t share = server_of(p)->share;
    if (conn->unread.debt.owed > share) return true;
    if (conn->made - p->answer_charged + bytes + conn->unread.debt.owed <= share) return false;
    if (conn->exempt == NULL) conn->exempt = p;
    return conn->exempt != p;
}

/* --- waiting ---------------------------------------------------------------------------------- */

static void list_waiting(rq_call_private *p)
{
    rq_rpc_conn *conn = p->conn;
    p->waiting = true;
    p->next_waiting = NULL;
    p->previous_waiting = conn->last_waiting;
    if (conn->last_waiting != NULL)
        conn->last_waiting->next_waiting = p;
    else
        conn->first_waiting = p;
    conn->last_waiting = p;
}

static void unlist_waiting(rq_call_private *p)
{
    rq_rpc_conn *conn = p->conn;
    p->waiting = false;
    if (p->previous_waiting != NULL)
        p->previous_waiting->next_waiting = p->next_waiting;
    else
        conn->first_waiting = p->next_waiting;
    if (p->next_waiting != NULL)
        p->next_waiting->previous_waiting = p->previous_waiting;
    else
        conn->last_waiting = p->previous_waiting;
}

static void run_on(rq_task *task)
{
    rq_call_private *p = RQ_CONTAINER_OF(task, rq_call_private, go_on);
    rq_budget *b = p->waits_in;
    p->waits_in = NULL;
    p->woken = false;
    p->call.place_ns[RQ_CALL_IN_MEMORY] += rq_loop_clock_ns() - p->waits_since_ns;
    unlist_waiting(p);
    p->grow_task->run(p->grow_task); /* may end the call */
    if (b != NULL) rq_budget_kick(b);
}

/* Runs when the waiter is posted. The work that follows may be long, so it is deferred. */
static void run_woken(rq_task *task)
{
    rq_call_private *p = RQ_CONTAINER_OF(task, rq_call_private, answer_waiter.task);
    if (p->waits_in != NULL) rq_budget_woken(p->waits_in, &p->answer_waiter);
    p->woken = true;
    p->go_on.run = run_on;
    rq_loop_defer(p->call.loop, &p->go_on);
}

static void wake(rq_call_private *p)
{
    p->woken = true;
    rq_lane_post(rq_loop_lane(p->call.loop), &p->answer_waiter.task);
}

/* The exempt call goes first: any other call would find no room, wait again, and wake nobody. */
void rq__answers_wake_one(rq_rpc_conn *conn)
{
    rq_call_private *exempt = conn->exempt;
    if (exempt != NULL && exempt->waiting && exempt->waits_in == NULL) {
        if (!exempt->woken) wake(exempt);
        return;
    }
    for (rq_call_private *p = conn->first_waiting; p != NULL; p = p->next_waiting) {
        if (p->waits_in != NULL) continue;
        if (!p->woken) wake(p);
        return;
    }
}

void rq__answers_wake_all(rq_rpc_conn *conn)
{
    for (rq_call_private *p = conn->first_waiting; p != NULL; p = p->next_waiting) {
        if (p->woken) continue;
        if (p->waits_in != NULL && !rq_budget_forget(p->waits_in, &p->answer_waiter)) continue;
        p->waits_in = NULL;
        wake(p);
    }
}

/* Suspends the call: in `queue`, or with NULL until its connection's peer has read or its exempt
 * call has ended. `held` bytes stay charged; `more` will be requested. */
static rq_err stay(rq_call_private *p, size_t held, size_t more, rq_budget *queue, rq_task *task)
{
    rq_budget *answers = server_of(p)->options.answers;
    if (atomic_load_explicit(&server_of(p)->draining, memory_order_relaxed))
        return RQ_E_SERVER_STOPPED;
    if (held > p->answer_charged) {
        if (!rq_budget_force_reserve(answers, held - p->answer_charged))
            return RQ_E_CALL_QUEUE_TOO_BIG;
        note(p, held);
    }
    p->grow_task = task;
    p->waits_since_ns = rq_loop_clock_ns();
    p->waits_in = queue;
    p->answer_waiter.task.run = run_woken;
    p->answer_waiter.lane = rq_loop_lane(p->call.loop);
    p->answer_waiter.bytes = queue == answers ? more : 0;
    p->answer_waiter.prompt = queue == answers && held + more <= NEEDS_LITTLE;
    list_waiting(p);
    if (queue != NULL) rq_budget_wait(queue, &p->answer_waiter);
    return RQ_E_AGAIN;
}

/* Marks the connection heavy: it waits for its turn while iterations are long. */
static void mark_heavy(const rq_call_private *p)
{
    p->conn->heavy_ns = rq_loop_now_ns(p->call.loop);
}

/* --- questions of handlers -------------------------------------------------------------------- */

static bool is_scarce(const rq_call_private *p)
{
    rq_budget *unread = server_of(p)->options.unread;
    return unread != NULL && rq_budget_is_full(unread);
}

static bool leaves_share(const rq_call_private *p)
{
    return p->conn->unread.debt.owed > server_of(p)->share;
}

bool rq_call_answers_are_scarce(const rq_call *call)
{
    return is_scarce(call->priv) || leaves_share(call->priv);
}

bool rq_call_can_grow(rq_call *call, size_t wanted)
{
    rq_call_private *p = private_of(call);
    if (server_of(p)->options.answers == NULL || must_not_wait(p)) return true;
    return wanted <= p->answer_charged || !(leaves_share(p) || is_scarce(p));
}

rq_err rq_call_may_grow(rq_call *call, size_t held, size_t wanted, rq_task *task)
{
    rq_call_private *p = private_of(call);
    rq_budget *answers = server_of(p)->options.answers;
    if (answers == NULL) return RQ_OK;
    if (rq_call_disconnected(call)) return RQ_E_CALL_DROPPED;
    if (wanted == held || wanted > RQ_UNREAD_SMALL) mark_heavy(p);
    held += own_bytes(p);
    wanted += own_bytes(p);
    if (wanted <= p->answer_charged) return RQ_OK;
    size_t more = wanted - p->answer_charged;
    if (must_not_wait(p)) {
        if (rq_budget_overdraws(answers, p))
            rq_budget_force_overdraft(answers, more);
        else
            rq_budget_force(answers, more);
        note(p, wanted);
        return RQ_OK;
    }
    if (waits_for_own_peer(p, wanted)) return stay(p, held, wanted - held, NULL, task);
    bool scarce = is_scarce(p);
    bool little = p->conn->made + more + p->conn->unread.debt.owed <= NEEDS_LITTLE;
    if (scarce && !little) return stay(p, held, wanted - held, server_of(p)->options.unread, task);
    bool taken = little ? rq_budget_try_reserve(answers, more) : rq_budget_try(answers, more);
    if (!taken && !scarce && rq_budget_overdraw(answers, p)) {
        rq_budget_force_overdraft(answers, more);
        taken = true;
    }
    if (taken) {
        note(p, wanted);
        return RQ_OK;
    }
    return stay(p, held, wanted - held, scarce ? server_of(p)->options.unread : answers, task);
}

bool rq__answer_must_wait(const rq_call_private *p)
{
    if (server_of(p)->options.answers == NULL || must_not_wait(p)) return false;
    return leaves_share(p) || is_scarce(p);
}

rq_err rq__answer_wait(rq_call_private *p, size_t bytes, rq_task *task)
{
    mark_heavy(p);
    return stay(p, bytes, 0, leaves_share(p) ? NULL : server_of(p)->options.unread, task);
}

void rq__answer_release(rq_call_private *p)
{
    rq_rpc_conn *conn = p->conn;
    rq_budget *answers = server_of(p)->options.answers;
    if (conn->exempt == p) conn->exempt = NULL;
    conn->made -= p->answer_charged;
    rq_budget_give(answers, p->answer_charged);
    rq_budget_end_overdraft(answers, p);
    rq__answers_wake_one(conn);
}
