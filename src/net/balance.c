/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which streams move between loops, and when. Each loop measures its CPU share in time windows and
 * publishes it.
 *
 *  - Little work is gathered on the first loops: a loop that wakes up for each request of a few
 *    clients costs more (wake-ups, cold caches, a log write each) than one that is always active.
 *  - Much work is spread: a loop that is busy, or whose long iterations delay its other streams,
 *    gives streams to a loop that has time. If the receiving loop was idle, and the reason is not long iterations, the
 *    move is a trial (spread.h): the streams come back unless the loops together do more.
 *
 * A stream's part of the load is estimated by its part of the loop's reads and bytes. A stream does
 * not move back for the same reason: a loop gives streams away above BUSY, and two loops are merged
 * only if they are below GATHER together. Streams to send away are chosen among those that worked in the window: a loop
 * may have 100,000 idle streams.
 */
#include "net/loop_priv.h"

#include "base/clock.h"

#define WINDOW_NS 100000000ull
/* Shares of a window, in thousandths. */
#define BUSY 600                 /* from here on a loop gives away … */
#define GAP 200                  /* … to one that has that much less to do */
#define LONG_BUSY 100            /* the same for a loop with long turns */
#define GATHER 350               /* up to this together, one loop does the work of two */
#define IDLE 300                 /* up to this a loop is one more, whose help is tried */
#define FULL 900                 /* from here on a loop has no time left */
#define STALE_NS (3 * WINDOW_NS) /* for that long a load is believed */
#define BACK_WINDOWS 10          /* from one attempt to send streams home to the next */
#define LOST_NS 1000000000ull    /* after that long without a window, a loop in a trial sleeps */
#define LONG_TURN_NS 100000u

static uint64_t thread_cpu_ns(void)
{
    return rq_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* What is known of a loop's load; any thread. `now` may be another loop's. */
static unsigned load_of(rq_loop *loop, uint64_t now)
{
    const rq_load *l = &loop->load;
    uint64_t entered = atomic_load_explicit(&l->entered, memory_order_relaxed);
    if (entered != 0 && now > entered + WINDOW_NS) return 1000; /* in one turn all the while */
    uint64_t at = atomic_load_explicit(&l->at, memory_order_relaxed);
    if (now > at + STALE_NS) return 0; /* it sleeps, or has just woken up */
    return atomic_load_explicit(&l->permille, memory_order_relaxed);
}

rq_loop *rq__loop_for_stream(rq_loops *loops)
{
    uint64_t now = loops->loop[0].now_ns;
    rq_loop *best = NULL;
    unsigned least = UINT32_MAX;
    for (unsigned i = 0; i < loops->count; i++) {
        unsigned load = load_of(&loops->loop[i], now);
        if (load < least) {
            best = &loops->loop[i];
            least = load;
        }
        if (load < GATHER) break;
    }
    return best;
}

/* The loop with the least load, other than `loop`. */
static rq_loop *idlest(rq_loop *loop, unsigned *ret_load)
{
    rq_loop *best = NULL;
    *ret_load = UINT32_MAX;
    for (unsigned i = 0; i < loop->loops->count; i++) {
        rq_loop *other = &loop->loops->loop[i];
        unsigned load = other == loop ? UINT32_MAX : load_of(other, loop->now_ns);
        if (load >= *ret_load) continue;
        best = other;
        *ret_load = load;
    }
    return best;
}

/* For an idle stream the count may be from an earlier window. */
static unsigned work_of(const rq_stream *s)
{
    return s->work_window == s->loop->load.window ? s->work : 0;
}

RQ_COLD static void list_worked(rq_stream *s)
{
    rq_load *l = &s->loop->load;
    s->has_worked = true;
    s->prev_worked = NULL;
    s->next_worked = l->worked;
    if (s->next_worked != NULL) s->next_worked->prev_worked = s;
    l->worked = s;
}

void rq__stream_unlist_worked(rq_stream *s)
{
    if (!s->has_worked) return;
    *(s->prev_worked == NULL ? &s->loop->load.worked : &s->prev_worked->next_worked) =
        s->next_worked;
    if (s->next_worked != NULL) s->next_worked->prev_worked = s->prev_worked;
    s->has_worked = false;
}

void rq__stream_worked(rq_stream *s, unsigned work)
{
    rq_load *l = &s->loop->load;
    if (RQ_UNLIKELY(!s->has_worked) && s->loop->loops->count > 1) list_worked(s);
    s->work = work_of(s) + work;
    s->work_window = l->window;
    l->work += work;
}

/* Sends streams with about `share` thousandths of the loop's work; the last one may exceed the
 * share by half. */
static void send_share(rq_loop *loop, rq_loop *to, unsigned share, unsigned trial)
{
    uint64_t all = loop->load.work;
    uint64_t left = all * share / 1000;
    for (rq_stream *s = loop->load.worked; s != NULL && left > 0; s = s->next_worked) {
        unsigned work = work_of(s);
        if (work == 0 || work == all || work / 2 > left) continue;
        left -= work < left ? work : left;
        s->trial = trial;
        rq__stream_send(s, to);
    }
}

static void send_all(rq_loop *loop, rq_loop *to)
{
    uint64_t left = loop->load.work;
    for (rq_stream *s = loop->load.worked; s != NULL && left > 0; s = s->next_worked) {
        unsigned work = work_of(s);
        if (work == 0) continue;
        left -= work < left ? work : left; /* closed streams did a part of it */
        s->trial = 0;
        rq__stream_send(s, to);
    }
}

/* The first loop that can take over this one's work; NULL: none. */
static rq_loop *gatherer(rq_loop *loop, unsigned load)
{
    for (unsigned i = 0; i < loop->index; i++) {
        rq_loop *other = &loop->loops->loop[i];
        if (atomic_load_explicit(&other->load.long_turns, memory_order_relaxed)) continue;
        if (load + load_of(other, loop->now_ns) <= GATHER) return other;
    }
    return NULL;
}

/* --- trials ----------------------------------------------------------------------------------- */

static uint64_t bytes_of_all(const rq_loops *loops)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < loops->count; i++)
        sum += atomic_load_explicit(&loops->loop[i].load.bytes, memory_order_relaxed);
    return sum;
}

static unsigned half_of_gap(unsigned load, unsigned other_load)
{
    return (load - other_load) * 500 / load;
}

static void begin_trial(rq_loop *loop, rq_loop *helper, unsigned load, unsigned helper_load)
{
    rq_load *l = &loop->load;
    do /* 0 means no trial */
        l->trial_number = atomic_fetch_add(&loop->loops->trials, 1) + 1;
    while (l->trial_number == 0);
    send_share(loop, helper, half_of_gap(load, helper_load), l->trial_number);
}

/* Streams are sent by the loops that have them, at the end of their windows. */
static void take_back(rq_loop *loop)
{
    rq_loops *loops = loop->loops;
    atomic_store_explicit(&loops->back_to, loop, memory_order_relaxed);
    atomic_store_explicit(&loops->taken_back, loop->load.trial_number, memory_order_release);
}

/* Publishes the loop's load without the work that it has just sent away. Without this call the old value might stay for
 * long, because a loop that sleeps publishes nothing. */
static void publish_without(rq_loop *loop, uint64_t sent)
{
    rq_load *l = &loop->load;
    uint64_t load = atomic_load_explicit(&l->permille, memory_order_relaxed);
    if (l->work == 0) return;
    load = sent < l->work ? load * (l->work - sent) / l->work : 0;
    atomic_store_explicit(&l->permille, (unsigned)load, memory_order_relaxed);
}

/* Whether the loop tries to send the trial's streams back in this window: in the first one, and in each tenth after it,
 * because a stream that cannot move is kept from reading while the attempt lasts. */
static bool is_time_to_send_back(rq_load *l, unsigned trial)
{
    if (trial != l->sending_back) {
        l->sending_back = trial;
        l->sending_from = l->window;
    }
    return (l->window - l->sending_from) % BACK_WINDOWS == 0;
}

/* Sends back the streams that came here for a trial which was taken back. Some may have stayed for long since then: a
 * stream in use cannot move. */
static void send_back(rq_loop *loop)
{
    unsigned trial = atomic_load_explicit(&loop->loops->taken_back, memory_order_acquire);
    rq_loop *to = atomic_load_explicit(&loop->loops->back_to, memory_order_relaxed);
    if (trial == loop->load.sent_back || to == loop) return;
    if (!is_time_to_send_back(&loop->load, trial)) return;
    bool any = false;
    uint64_t sent = 0;
    for (rq_stream *s = loop->streams; s != NULL; s = s->next) {
        if (s->trial != trial) continue;
        any = true;
        sent += work_of(s);
        rq__stream_send(s, to);
    }
    publish_without(loop, sent);
    if (!any) loop->load.sent_back = trial;
}

static bool is_trying(const rq_loop *loop)
{
    return atomic_load_explicit(&loop->loops->trying, memory_order_relaxed) == loop;
}

/* Whether another loop is in a trial: only one may be at a time. A loop that sleeps in its trial
 * loses it. */
static bool another_is_trying(rq_loop *loop)
{
    rq_loop *who = atomic_load(&loop->loops->trying);
    if (who == NULL || who == loop) return false;
    uint64_t at = atomic_load_explicit(&who->load.at, memory_order_relaxed);
    if (loop->now_ns <= at + LOST_NS) return true;
    return !atomic_compare_exchange_strong(&loop->loops->trying, &who, NULL);
}

static bool may_try(rq_loop *loop)
{
    rq_loop *none = NULL;
    return atomic_compare_exchange_strong(&loop->loops->trying, &none, loop);
}

/* The loop slept, and the trial was lost meanwhile. */
static void lose_trial(rq_loop *loop)
{
    rq__trial *t = &loop->load.trial;
    if (t->phase == RQ__TRIAL_SETTLING || t->phase == RQ__TRIAL_AFTER) take_back(loop);
    t->phase = RQ__TRIAL_IDLE;
}

/* Long turns delay the loop's streams, whatever the result of a trial. */
static void end_trial(rq_loop *loop)
{
    loop->load.trial.phase = RQ__TRIAL_IDLE;
    atomic_store(&loop->loops->trying, NULL);
}

/* The loop is busy, another one idle; or the loop is in a trial. */
static void try_to_spread(rq_loop *loop, unsigned load)
{
    rq_load *l = &loop->load;
    unsigned helper_load;
    rq_loop *helper = idlest(loop, &helper_load);
    rq__trial_look look = {.now_ns = loop->now_ns,
                           .work = bytes_of_all(loop->loops),
                           .is_wanted = load > BUSY && helper_load <= IDLE,
                           .is_full = load >= FULL};
    switch (rq__trial_go_on(&l->trial, &look)) {
    case RQ__TRIAL_SEND:
        begin_trial(loop, helper, load, helper_load);
        break;
    case RQ__TRIAL_TAKE_BACK:
        take_back(loop);
        break;
    case RQ__TRIAL_WAIT:
    case RQ__TRIAL_KEEP:
        break;
    }
    if (l->trial.phase == RQ__TRIAL_IDLE) atomic_store(&loop->loops->trying, NULL);
}

/* --- decisions -------------------------------------------------------------------------------- */

/* Whether the last trial has ended only just now: its streams may still be moving, and published loads may be older
 * than the moves. */
static bool is_settling(const rq_loop *loop)
{
    return loop->now_ns <= loop->load.trial.from_ns + STALE_NS;
}

static void spread(rq_loop *loop, unsigned load, bool long_turns)
{
    if (!long_turns && is_settling(loop)) return;
    unsigned other_load;
    rq_loop *other = idlest(loop, &other_load);
    unsigned gap = long_turns ? LONG_BUSY : GAP;
    if (other_load + gap >= load) return;
    if (long_turns || other_load > IDLE)
        send_share(loop, other, half_of_gap(load, other_load), 0);
    else if (rq__trial_may_begin(&loop->load.trial, loop->now_ns) && may_try(loop))
        try_to_spread(loop, load);
}

static void send_some(rq_loop *loop, unsigned load, bool long_turns)
{
    bool busy = load > BUSY || (long_turns && load > LONG_BUSY);
    send_back(loop);
    if (is_trying(loop) && !long_turns) {
        try_to_spread(loop, load);
        return;
    }
    if (is_trying(loop)) end_trial(loop);
    if (loop->load.trial.phase != RQ__TRIAL_IDLE) lose_trial(loop);
    /* In a trial moves of others would be measured, too. */
    if (!(busy && long_turns) && another_is_trying(loop)) return;
    if (busy) {
        spread(loop, load, long_turns);
    } else if (!long_turns) {
        rq_loop *other = gatherer(loop, load);
        if (other != NULL) send_all(loop, other);
    }
}

static void begin_window(rq_load *l)
{
    for (rq_stream *s = l->worked; s != NULL; s = s->next_worked)
        s->has_worked = false;
    l->worked = NULL;
    l->work = 0;
    l->window++;
}

static void window_end(rq_loop *loop)
{
    rq_load *l = &loop->load;
    uint64_t cpu = thread_cpu_ns();
    uint64_t spent = cpu - l->cpu_ns;
    uint64_t permille = spent * 1000 / (loop->now_ns - l->window_ns);
    unsigned load = permille > 1000 ? 1000 : (unsigned)permille;
    bool long_turns = spent / l->turns > LONG_TURN_NS;
    bool first = l->window_ns == 0;
    l->cpu_ns = cpu;
    l->window_ns = loop->now_ns;
    l->turns = 0;
    if (!first) {
        atomic_store_explicit(&l->permille, load, memory_order_relaxed);
        atomic_store_explicit(&l->long_turns, long_turns, memory_order_relaxed);
        atomic_store_explicit(&l->at, loop->now_ns, memory_order_relaxed);
        send_some(loop, load, long_turns);
    }
    begin_window(l);
}

void rq__loop_balance(rq_loop *loop)
{
    if (loop->loops->count == 1) return;
    loop->load.turns++;
    if (loop->loops->restless) {
        send_all(loop, &loop->loops->loop[(loop->index + 1) % loop->loops->count]);
        begin_window(&loop->load);
    } else if (loop->now_ns - loop->load.window_ns >= WINDOW_NS) {
        window_end(loop);
    }
    if (loop->leaving != NULL) rq__loop_send_leaving(loop);
}
