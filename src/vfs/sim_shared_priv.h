/* SPDX-License-Identifier: Apache-2.0 */
/* The two halves of the simulated shared storage: sim_storage.c has the objects and executes
 * operations, sim_shared.c has nodes and messages. */
#ifndef RQ_VFS_SIM_SHARED_PRIV_H
#define RQ_VFS_SIM_SHARED_PRIV_H

#include "base/buf.h"
#include "base/random.h"
#include "vfs/shared_priv.h"

typedef enum sim_verb {
    SIM_BEGIN,
    SIM_LOOK,
    SIM_ADD_SEGMENT,
    SIM_CREATE_STRIPE,
    SIM_APPEND,
    SIM_FENCE,
    SIM_FENCE_STRIPE,
    SIM_SEAL,
    SIM_LENGTHS,
    SIM_READ,
    SIM_REMOVE,
    SIM_CAS,
    SIM_GET,
    SIM_PUT,
    SIM_DEL,
    SIM_LIST,
} sim_verb;

/* An operation on one object, and its result. What it points to is in the message's arena. */
typedef struct sim_op {
    sim_verb verb;
    const char *name, *key;
    uint64_t token;  /* BEGIN … APPEND: the writer's; FENCE: the owner's, who ends in order */
    uint64_t number; /* the segment's; CAS: the expected generation */
    unsigned stripe;
    uint64_t off;
    rq_slice bytes;
    bool removes; /* CAS */
    rq_slog_segment *segments;
    size_t count;
    /* results */
    uint64_t generation;
    bool closed; /* FENCE: its owner had ended it */
    const char **keys;
} sim_op;

typedef struct sim_objects sim_objects;

RQ_NODISCARD rq_err rq__sim_objects_new(sim_objects **ret);
void rq__sim_objects_free(sim_objects *o);
/* Executes the operation at once. Results are allocated in the arena. */
RQ_NODISCARD rq_err rq__sim_execute(sim_objects *o, sim_op *op, rq_arena *arena);

#endif
