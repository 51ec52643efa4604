/* SPDX-License-Identifier: Apache-2.0 */
/* See spread.h. */
#include "net/spread.h"

/* Rates with the second loop, in thousandths of the rate before. If the first loop was full, the streams
 * stay on two loops only from MORE on, because a second loop costs processor time, and measurements vary.
 * If it was not full, it already did all that its clients request, and the second loop can only shorten
 * waits: then AS_MUCH is enough. */
#define MORE 1050
#define AS_MUCH 970
/* Below this rate the clients have stopped: spreading never costs that much. */
#define STOPPED 500

static void enter(rq__trial *t, rq__trial_phase phase, const rq__trial_look *look)
{
    t->phase = phase;
    t->from_ns = look->now_ns;
    t->from_work = look->work;
}

static uint64_t rate_of(const rq__trial *t, const rq__trial_look *look)
{
    double seconds = (double)(look->now_ns - t->from_ns) / 1e9;
    return (uint64_t)((double)(look->work - t->from_work) / seconds);
}

static bool has_lasted(const rq__trial *t, const rq__trial_look *look, uint64_t ns)
{
    return look->now_ns - t->from_ns >= ns;
}

static void wait_longer(rq__trial *t, uint64_t now_ns)
{
    uint64_t twice = 2 * t->pause_ns;
    t->pause_ns = twice < RQ__TRIAL_PAUSE_MIN_NS   ? RQ__TRIAL_PAUSE_MIN_NS
                  : twice > RQ__TRIAL_PAUSE_MAX_NS ? RQ__TRIAL_PAUSE_MAX_NS
                                                   : twice;
    t->not_until_ns = now_ns + t->pause_ns;
}

static rq__trial_step decide(rq__trial *t, const rq__trial_look *look)
{
    double of_before = 1000.0 * (double)rate_of(t, look) / (double)(t->rate > 0 ? t->rate : 1);
    enter(t, RQ__TRIAL_IDLE, look);
    if (of_before >= (t->was_full ? MORE : AS_MUCH)) {
        t->pause_ns = 0;
        return RQ__TRIAL_KEEP;
    }
    if (of_before > STOPPED) wait_longer(t, look->now_ns);
    return RQ__TRIAL_TAKE_BACK;
}

static rq__trial_step measure_before(rq__trial *t, const rq__trial_look *look)
{
    if (!look->is_wanted) {
        enter(t, RQ__TRIAL_IDLE, look);
        return RQ__TRIAL_WAIT;
    }
    t->was_full = t->was_full && look->is_full;
    if (!has_lasted(t, look, RQ__TRIAL_MEASURE_NS)) return RQ__TRIAL_WAIT;
    t->rate = rate_of(t, look);
    enter(t, RQ__TRIAL_SETTLING, look);
    return RQ__TRIAL_SEND;
}

rq__trial_step rq__trial_go_on(rq__trial *t, const rq__trial_look *look)
{
    switch (t->phase) {
    case RQ__TRIAL_IDLE:
        if (!look->is_wanted || !rq__trial_may_begin(t, look->now_ns)) return RQ__TRIAL_WAIT;
        enter(t, RQ__TRIAL_BEFORE, look);
        t->was_full = true;
        return RQ__TRIAL_WAIT;
    case RQ__TRIAL_BEFORE:
        return measure_before(t, look);
    case RQ__TRIAL_SETTLING:
        if (has_lasted(t, look, RQ__TRIAL_SETTLE_NS)) enter(t, RQ__TRIAL_AFTER, look);
        return RQ__TRIAL_WAIT;
    case RQ__TRIAL_AFTER:
        return has_lasted(t, look, RQ__TRIAL_MEASURE_NS) ? decide(t, look) : RQ__TRIAL_WAIT;
    }
    return RQ__TRIAL_WAIT;
}
