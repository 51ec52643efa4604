/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulated shared storage (shared.h) and the servers that use it, in one simulation (sim.h).
 *
 * The storage survives its nodes and behaves as Ceph's RADOS does: it executes one operation on one
 * object at a time, and checks the writer's guard with each append. Operations are messages with
 * random delays in both directions, so they overtake each other; some get no answer, and are
 * executed seconds later or never.
 *
 * A node has a clock of its own, may be paused, cut off from the storage, and killed. A test's code
 * of a node runs on pool tasks: a pause stops it at its next call of shared.h, and the messages to it
 * wait.
 */
#ifndef RQ_VFS_SIM_SHARED_H
#define RQ_VFS_SIM_SHARED_H

#include "vfs/shared.h"
#include "vfs/sim.h"

typedef struct rq_sim_storage rq_sim_storage;
typedef struct rq_sim_node rq_sim_node;

/* Of 1,000 operations, `unanswered` end for the caller with RQ_E_IO after 2 s. */
RQ_NODISCARD rq_err rq_sim_storage_new(rq_sim *sim, unsigned unanswered, rq_sim_storage **ret);
/* NULL is allowed. REQUIRES: its nodes are freed. Delivers the messages that are still on the
 * wire. */
void rq_sim_storage_free(rq_sim_storage *s);

/* Its clock shows `offset_ns` more than the simulation's, and runs faster by `rate_ppm` millionths. */
RQ_NODISCARD rq_err rq_sim_node_new(rq_sim_storage *s, uint64_t offset_ns, int rate_ppm,
                                    rq_sim_node **ret);
/* NULL is allowed. REQUIRES: its tenures are freed. */
void rq_sim_node_free(rq_sim_node *n);
/* The node's interface to the storage; owned by the node. */
rq_shared *rq_sim_node_shared(rq_sim_node *n);
void rq_sim_node_pause(rq_sim_node *n, bool paused);
/* While cut, messages wait in both directions. */
void rq_sim_node_cut(rq_sim_node *n, bool cut);
/* All its calls fail from now on, so that its tasks end. What it sent may still arrive. */
void rq_sim_node_kill(rq_sim_node *n);

#endif
