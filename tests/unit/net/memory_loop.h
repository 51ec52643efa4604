/* SPDX-License-Identifier: Apache-2.0 */
/* Event loops without sockets, for fuzz targets and unit tests: one loop on this thread, a listener
 * that accepts nothing, streams that are fed from memory and whose output is kept. It replaces
 * net/loop.c, stream.c, listener.c, driven.c and connect.c at link time. */
#ifndef RQ_TESTS_RPC_MEMORY_LOOP_H
#define RQ_TESTS_RPC_MEMORY_LOOP_H

#include "net/loop.h"
#include "net/stream.h"

struct rq_loop {
    rq_lane own; /* tasks wait here when no other lane is given */
    rq_task *tasks;
    rq_task **end;
    rq_lane *lane;   /* what posts to the loop */
    uint64_t now_ns; /* 0, long ago: calls with a time-out are expired */
    void (*run)(struct rq_loop *loop);
    rq_loop_timer *timers; /* armed ones, unordered */
};

struct rq_listener {
    const rq_stream_events *events;
    void *ctx;
};

struct rq_loops {
    rq_loop loop;
    rq_listener *listener; /* opened last; valid until it is closed */
};

struct rq_stream {
    rq_loop *loop;
    const rq_stream_events *events;
    void *user;
    rq_peer peer;
    rq_buf out;
    bool paused, closing;
};

/* `lane` NULL: tasks run on a lane of the loop's own. `run` runs what was posted until nothing is
 * left; NULL: what does so for the own lane. */
void memory_loops_init(rq_loops *loops, rq_lane *lane, void (*run)(rq_loop *loop));

/* Runs the timers that are due at loop->now_ns; false: there was none. Who never calls it has no time pass. */
bool memory_loop_run_timers(rq_loop *loop);

/* Feeds the connection as it reads, at most `step` bytes at a time, until the bytes are used up or
 * it stops reading. Output that blocks it is discarded. */
void memory_stream_feed(rq_stream *s, const uint8_t *bytes, size_t len, size_t step);

#endif
