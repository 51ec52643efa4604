/* SPDX-License-Identifier: Apache-2.0 */
/* Ops on a simulated catalog, without rpc. Two seats: one with a lane, like an event loop, and one
 * of the test's own thread. Table t: families f (three versions) and g, split at row m; rows a0 to
 * a9 are in files, r0 to r9 in the memstore; f:q has the row's name, g:q "g". */
#ifndef RQ_TESTS_OPS_WORLD_H
#define RQ_TESTS_OPS_WORLD_H

#include "../catalog/world.h"

#include "ops/get.h"
#include "ops/ops.h"

typedef struct ops_world {
    world w;
    rq_ops *ops;
    rq_lane *lane;
    rq_epoch_member section;
    rq_ops_seat *loop; /* the seat with a lane */
    rq_ops_seat *own;  /* the seat of the test's thread */
    rq_arena arena;    /* for the op under test */
    unsigned done;     /* number of calls of ops_done */
} ops_world;

ops_world *ops_world_new(const rq_gate_policy *policy);
void ops_world_free(ops_world *o);

/* The done() of the tests' ops; counts its calls. */
void ops_done(rq_op *op);
/* Initialises an op whose user is the world, with a separate arena. */
void ops_init(ops_world *o, rq_op *op, rq_op_kind kind, rq_ops_seat *seat);
/* Runs tasks and lets time pass until this many ops are done. */
void ops_wait(ops_world *o, unsigned done);
/* The region of the row. */
rq_region *ops_region(ops_world *o, const char *row);

/* Gets family f of the row; the test owns `out`. */
void ops_get(ops_world *o, rq_op_get *g, rq_ops_seat *seat, const char *row, rq_cellblock *out);
/* Puts a value of this many bytes into f:q of the row. */
void ops_put_long(ops_world *o, const char *row, size_t len);
/* Flushes table t. */
void ops_flush(ops_world *o);
/* Above the size that is copied on a lane. */
#define OPS_LONG ((size_t)2 << 20)
/* The value of the block's only cell, or "" if it is empty. */
rq_slice ops_value(const rq_cellblock *cells);

rq_op_stats ops_stats(ops_world *o, rq_op_kind kind);
/* The number of durations recorded for table t. */
uint64_t ops_table_times(ops_world *o, rq_op_kind kind);

#endif
