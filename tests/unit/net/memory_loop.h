/* SPDX-License-Identifier: Apache-2.0 */
/* Event loops without sockets, for fuzz targets and unit tests: one loop on this thread, a listener
 * that accepts nothing, and streams that read from memory and keep their output. It replaces
 * net/loop.c, stream.c, listener.c, driven.c and connect.c at link time. */
#ifndef RQ_TESTS_RPC_MEMORY_LOOP_H
#define RQ_TESTS_RPC_MEMORY_LOOP_H

#include "net/loop.h"
#include "net/stream.h"

/* The clock that rq_loop_clock_ns reads; 0: the system's, and no iteration is ever long. */
extern uint64_t memory_clock_ns;

struct rq_loop {
    rq_lane own; /* tasks wait here when no other lane is given */
    rq_task *tasks;
    rq_task **end;
    rq_lane *lane;   /* the lane on which posted tasks run */
    uint64_t now_ns; /* 0 is long ago: calls with a time-out count as expired */
    void (*run)(struct rq_loop *loop);
    rq_loop_timer *timers; /* armed timers, unordered */
};

struct rq_listener {
    const rq_stream_events *events;
    void *ctx;
};

struct rq_loops {
    rq_loop loop;
    rq_listener *listener; /* the listener opened last; valid until it is closed */
};

struct rq_stream {
    rq_loop *loop;
    const rq_stream_events *events;
    void *user;
    rq_peer peer;
    rq_buf out;
    uint64_t deadline_ns;
    bool paused, closing;
};

/* `lane` NULL: tasks run on a lane of the loop's own. `run` runs posted tasks until none is left;
 * NULL: runs those of the own lane. */
void memory_loops_init(rq_loops *loops, rq_lane *lane, void (*run)(rq_loop *loop));

/* Runs the timers that are due at loop->now_ns; false: none was due. Time passes only if the test
 * sets now_ns and calls this. */
bool memory_loop_run_timers(rq_loop *loop);

/* Calls on_deadline if the stream's deadline has come at loop->now_ns. */
void memory_stream_look_at_clock(rq_stream *s);

/* Feeds the connection as it reads, at most `step` bytes at a time, until the bytes are used up or
 * it stops reading. Output that blocks it is discarded. */
void memory_stream_feed(rq_stream *s, const uint8_t *bytes, size_t len, size_t step);

#endif
