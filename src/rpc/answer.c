/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of answers, from their first byte until the peer has taken the last.
 *
 *   being made ─ budget `answers` ─► whole ─ budget `unread` ─► taken by the peer
 *
 *  (1) What a suspended call has made is charged, with the call itself. A call that does not leave
 *      its loop holds one answer per loop, which is not charged before it is whole.
 *  (2) A call waits only where it holds nothing that others need: between two slices (its handler
 *      asks rq_call_may_grow), or with its answer whole and packed (rq__answer_wait). It never
 *      waits while it holds an overdraft.
 *  (3) A connection that leaves its share unread waits for its own peer, alone: its calls stand in
 *      no queue of others. One call of it, the leader, may go over the share, so that an answer that
 *      is larger passes.
 *  (4) While unread answers fill their budget no large answer grows or goes: its calls wait for the
 *      peers. So what is made is bounded by its budget and reserve, what is unread by its budget,
 *      reserve and one answer. Answers up to RQ_UNREAD_SMALL always go; what becomes of their debt
 *      is the budget's affair (rq_budget_owe).
 *  (5) A call that must wait and whose bytes fit nowhere is refused: CallQueueTooBigException. While
 *      the server stops no call waits: RegionServerStoppedException.
 */
#include "rpc/rpc_priv.h"

/* A connection whose calls make no more than this may take from the reserve. */
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

/* What a call in flight costs beside its answer's cells and its request. */
static size_t own_bytes(const rq_call_private *p)
{
    size_t arena = p->call.arena.total_bytes;
    return sizeof *p + (arena > p->arena_charged ? arena - p->arena_charged : 0);
}

/* It holds an overdraft: others wait for it. */
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
    if (conn->leader == NULL) conn->leader = p;
    return conn->leader != p;
}

/* --- waiting ---------------------------------------------------------------------------------- */

static void stick(rq_call_private *p)
{
    rq_rpc_conn *conn = p->conn;
    p->stuck = true;
    p->next_stuck = NULL;
    p->previous_stuck = conn->last_stuck;
    if (conn->last_stuck != NULL)
        conn->last_stuck->next_stuck = p;
    else
        conn->first_stuck = p;
    conn->last_stuck = p;
}

static void unstick(rq_call_private *p)
{
    rq_rpc_conn *conn = p->conn;
    p->stuck = false;
    if (p->previous_stuck != NULL)
        p->previous_stuck->next_stuck = p->next_stuck;
    else
        conn->first_stuck = p->next_stuck;
    if (p->next_stuck != NULL)
        p->next_stuck->previous_stuck = p->previous_stuck;
    else
        conn->last_stuck = p->previous_stuck;
}

static void run_on(rq_task *task)
{
    rq_call_private *p = RQ_CONTAINER_OF(task, rq_call_private, go_on);
    rq_budget *b = p->waits_in;
    p->waits_in = NULL;
    p->woken = false;
    unstick(p);
    p->grow_task->run(p->grow_task); /* may end the call */
    if (b != NULL) rq_budget_kick(b);
}

/* What it goes on with may be long. */
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

void rq__answers_wake_one(rq_rpc_conn *conn)
{
    for (rq_call_private *p = conn->first_stuck; p != NULL; p = p->next_stuck) {
        if (p->waits_in != NULL) continue;
        if (!p->woken) wake(p);
        return;
    }
}

void rq__answers_wake_all(rq_rpc_conn *conn)
{
    for (rq_call_private *p = conn->first_stuck; p != NULL; p = p->next_stuck) {
        if (p->woken) continue;
        if (p->waits_in != NULL && !rq_budget_forget(p->waits_in, &p->answer_waiter)) continue;
        p->waits_in = NULL;
        wake(p);
    }
}

/* Waits in `queue`, or without one for the connection's own peer or leader; `held` bytes stay
 * charged, `more` will be asked for. */
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
    p->waits_in = queue;
    p->answer_waiter.task.run = run_woken;
    p->answer_waiter.lane = rq_loop_lane(p->call.loop);
    p->answer_waiter.bytes = queue == answers ? more : 0;
    p->answer_waiter.prompt = queue == answers && held + more <= NEEDS_LITTLE;
    stick(p);
    if (queue != NULL) rq_budget_wait(queue, &p->answer_waiter);
    return RQ_E_AGAIN;
}

/* Its connection waits for its turn while iterations are long. */
static void mark_heavy(const rq_call_private *p)
{
    p->conn->heavy_ns = rq_loop_now_ns(p->call.loop);
}

/* --- what is asked ---------------------------------------------------------------------------- */

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

void rq__answer_end(rq_call_private *p)
{
    rq_rpc_conn *conn = p->conn;
    if (RQ_LIKELY(p->answer_charged == 0 && conn->first_stuck == NULL && conn->leader != p)) return;
    rq_budget *answers = server_of(p)->options.answers;
    if (conn->leader == p) conn->leader = NULL;
    conn->made -= p->answer_charged;
    rq_budget_give(answers, p->answer_charged);
    rq_budget_settle(answers, p);
    rq__answers_wake_one(conn);
}
