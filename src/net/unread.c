/* SPDX-License-Identifier: Apache-2.0 */
/* Debts of streams; contract in unread.h. */
#include "net/unread.h"

#define LOOK_NS (2 * 1000000000ull)

static void run_eviction(rq_task *task)
{
    rq_unread *u = RQ_CONTAINER_OF(task, rq_unread, debt.task);
    bool owes = rq__budget_confirm_eviction(u->budget, &u->debt);
    if (u->stream == NULL)
        u->released(u);
    else if (owes)
        u->cut_off(u);
}

void rq_unread_init(rq_unread *u, rq_budget *budget, rq_stream *stream,
                    void (*cut_off)(rq_unread *u), void (*released)(rq_unread *u))
{
    *u = (rq_unread){.debt.task.run = run_eviction,
                     .budget = budget,
                     .stream = stream,
                     .cut_off = cut_off,
                     .released = released};
    rq_unread_moved(u);
}

void rq_unread_moved(rq_unread *u)
{
    u->debt.lane = rq_loop_lane(rq_stream_loop(u->stream));
}

bool rq_unread_is_clear(rq_unread *u)
{
    return u->debt.owed == 0 && (u->budget == NULL || !rq__budget_is_debtor(u->budget, &u->debt));
}

static uint64_t now_ns(const rq_unread *u)
{
    return rq_loop_now_ns(rq_stream_loop(u->stream));
}

void rq__unread_charge(rq_unread *u, size_t pending)
{
    bool waits = pending > RQ_UNREAD_SMALL || (pending > 0 && rq__stream_stalled(u->stream));
    size_t bytes = waits ? rq__stream_out_held(u->stream) : 0;
    uint64_t taken = rq_stream_out_taken(u->stream);
    bool first = u->debt.owed == 0;
    bool renew = !first && bytes > 0 && taken >= u->mark;
    if (bytes == u->debt.owed && !renew) return;
    if (first || renew) {
        u->mark = taken + pending;
        u->since_ns = now_ns(u);
    }
    if (first) {
        u->taken = taken;
        u->look_ns = u->since_ns + LOOK_NS;
    }
    if (bytes == 0) u->look_ns = 0;
    rq__budget_owe(u->budget, &u->debt, bytes, renew);
}

bool rq_unread_is_late(rq_unread *u, uint64_t slow_ns)
{
    uint64_t now = now_ns(u);
    uint64_t taken = rq_stream_out_taken(u->stream);
    bool late = taken == u->taken || now - u->since_ns >= slow_ns;
    u->taken = taken;
    u->look_ns = now + LOOK_NS;
    return late;
}

bool rq_unread_close(rq_unread *u)
{
    if (u->debt.owed > 0) rq__budget_owe(u->budget, &u->debt, 0, false);
    u->stream = NULL;
    return rq_unread_is_clear(u);
}
