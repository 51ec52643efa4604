/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides by a trial whether two loops do the work of one busy loop faster. If clients wait for each
 * response, two loops may serve fewer requests than one: each loop has its own wake-ups, cold caches
 * and log writes. The trial compares the work before with the work on two loops, in bytes read and
 * written by the streams of all loops.
 *
 *    IDLE ── a loop is busy, another one idle ──► BEFORE ── measured ──► streams are sent: SETTLING
 *      ▲                                            │ no longer busy          │
 *      │◄───────────────────────────────────────────┘                        ▼
 *      │◄── kept: more was done, or as much by a loop that was not full ── AFTER
 *      │◄── taken back otherwise; the next trial waits, each time twice as long
 *
 * It uses no clock, loop or stream: time and work are arguments (balance.c).
 */
#ifndef RQ_NET_SPREAD_H
#define RQ_NET_SPREAD_H

#include <stdbool.h>
#include <stdint.h>

typedef enum rq__trial_phase {
    RQ__TRIAL_IDLE,
    RQ__TRIAL_BEFORE,
    RQ__TRIAL_SETTLING,
    RQ__TRIAL_AFTER,
} rq__trial_phase;

/* All zero: idle, and the next trial may begin. */
typedef struct rq__trial {
    rq__trial_phase phase;
    bool was_full;         /* BEFORE: the loop had no time left */
    uint64_t from_ns;      /* beginning of the phase, with: */
    uint64_t from_work;    /* work done until then */
    uint64_t rate;         /* of BEFORE, work per second */
    uint64_t pause_ns;     /* of the last trial that was taken back */
    uint64_t not_until_ns; /* its end */
} rq__trial;

typedef struct rq__trial_look {
    uint64_t now_ns;
    uint64_t work;  /* of all loops, ever */
    bool is_wanted; /* the loop is busy, and one to help it is idle */
    bool is_full;   /* the loop had no time left in this window */
} rq__trial_look;

typedef enum rq__trial_step {
    RQ__TRIAL_WAIT,
    RQ__TRIAL_SEND, /* streams to the other loop */
    RQ__TRIAL_KEEP, /* the trial is over, and they stay */
    RQ__TRIAL_TAKE_BACK,
} rq__trial_step;

#define RQ__TRIAL_MEASURE_NS 300000000ull
#define RQ__TRIAL_SETTLE_NS 100000000ull
#define RQ__TRIAL_PAUSE_MIN_NS 2000000000ull
#define RQ__TRIAL_PAUSE_MAX_NS 32000000000ull

/* At the end of each of the loop's windows. */
rq__trial_step rq__trial_go_on(rq__trial *t, const rq__trial_look *look);
/* Whether a trial may begin now. */
static inline bool rq__trial_may_begin(const rq__trial *t, uint64_t now_ns)
{
    return t->phase == RQ__TRIAL_IDLE && now_ns >= t->not_until_ns;
}

#endif
