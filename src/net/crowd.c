/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections and the process's limit of open files. Peers may open connections without being known,
 * and leave them idle. So accepted connections leave some descriptors to files: otherwise flushes and
 * the log would fail. When their share is used up, each loop closes some of its idle streams: first those of
 * peers that have not said who they are, then those that have been quiet for longest. The connections that wait
 * in the backlog are accepted afterwards. A client whose idle connection was closed opens a new one for its next call.
 *
 * A step looks at LOOKED_AT streams of a loop, and closes one in ROOM of them; so neither its time nor the work per
 * accepted connection grows with their number. The next step looks at the next ones.
 */
#include "net/loop_priv.h"

#include <limits.h>
#include <sys/resource.h>

/* Descriptors for everything but accepted connections: this part of the limit, at least FILES_MIN. */
#define FILES_PART 4
#define FILES_MIN 96
/* A step looks at so many streams, and closes one in so many of them: about a millisecond. */
#define LOOKED_AT 2048
#define ROOM 8
/* Streams that have heard or sent something more recently are kept. */
#define QUIET_NS UINT64_C(1000000000)
/* A loop that had nothing to close looks at its streams again after this time. */
#define AGAIN_NS (QUIET_NS / 4)

unsigned rq__crowd_max(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > INT_MAX) return INT_MAX;
    unsigned all = (unsigned)limit.rlim_cur;
    unsigned files = all / FILES_PART > FILES_MIN ? all / FILES_PART : FILES_MIN;
    return files < all / 2 ? all - files : all / 2;
}

/* Whether closing the stream yields a descriptor of an accepted connection. */
static bool may_yield(const rq_stream *s)
{
    return s->listener != NULL && s->memory == NULL && !s->closing && s->to == NULL;
}

/* The logarithm of the seconds for which the stream has been quiet; -1: it is in use. */
static int age_of(const rq_stream *s)
{
    uint64_t now = s->loop->now_ns;
    /* A peer that takes a long response says nothing meanwhile. */
    uint64_t last = s->heard_ns > s->progress_ns ? s->heard_ns : s->progress_ns;
    if (!may_yield(s) || now < last + QUIET_NS)
        return -1; /* `last` may be of another loop's clock */
    if (!s->finishing && (s->events->is_busy == NULL || s->events->is_busy(s))) return -1;
    return 63 - __builtin_clzll((now - last) / QUIET_NS);
}

void rq__crowd_forget(rq_stream *s)
{
    if (s->nameless) atomic_fetch_sub(&s->loop->loops->nameless, 1);
    s->nameless = false;
}

void rq_stream_named(rq_stream *s)
{
    rq__crowd_forget(s);
    s->heard_ns = s->loop->now_ns;
}

/* Of the `count` streams from `s` on. */
static unsigned close_of_age(rq_stream *s, unsigned count, bool known_too, int age, unsigned wanted)
{
    unsigned closed = 0;
    for (; count > 0 && closed < wanted; count--, s = s->next) {
        if (!(s->nameless || known_too) || age_of(s) != age) continue;
        rq_stream_close(s, RQ_E_TIMEOUT);
        closed++;
    }
    return closed;
}

/* Whether nameless streams are at least the part that a step closes. The youngest of them are closed only a step later,
 * but not those of known peers instead. */
static bool many_are_nameless(const rq_loops *loops)
{
    return atomic_load(&loops->nameless) >= atomic_load(&loops->accepted) / ROOM + 1;
}

static unsigned make_room(rq_loop *loop)
{
    bool known_too = !many_are_nameless(loop->loops);
    unsigned counts[64] = {0};
    unsigned wanted = 1, closed = 0, count = 0;
    rq_stream *from = loop->crowd_at != NULL ? loop->crowd_at : loop->streams, *s;
    for (s = from; s != NULL && count < LOOKED_AT; s = s->next, count++) {
        int age = s->nameless || known_too ? age_of(s) : -1;
        if (age >= 0) counts[age]++;
    }
    loop->crowd_at = s;
    wanted += count / ROOM;
    for (int age = 63; age >= 0 && closed < wanted; age--)
        if (counts[age] > 0) closed += close_of_age(from, count, known_too, age, wanted - closed);
    return closed;
}

static void run_make_room(rq_task *task)
{
    rq_loop *loop = RQ_CONTAINER_OF(task, rq_loop, make_room);
    if (loop->now_ns >= loop->no_room_until_ns) {
        unsigned closed = make_room(loop);
        if (closed == 0 && loop->crowd_at == NULL) loop->no_room_until_ns = loop->now_ns + AGAIN_NS;
        atomic_fetch_add(&loop->loops->crowded_out, closed);
    }
    atomic_store(&loop->makes_room, false);
}

void rq__crowd_init(rq_loop *loop)
{
    loop->make_room.run = run_make_room;
}

void rq__crowd_make_room(rq_loops *loops)
{
    for (unsigned i = 0; i < loops->count; i++) {
        rq_loop *loop = &loops->loop[i];
        if (!atomic_exchange(&loop->makes_room, true)) rq_lane_post(&loop->lane, &loop->make_room);
    }
}
