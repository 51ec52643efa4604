/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the simulated shared storage: sim_storage.c has the objects and executes operations,
 * sim_messages.c has nodes and what is on the wire, sim_shared.c the functions of shared.h. */
#ifndef RQ_VFS_SIM_SHARED_PRIV_H
#define RQ_VFS_SIM_SHARED_PRIV_H

#include "base/buf.h"
#include "base/random.h"
#include "vfs/shared_priv.h"
#include "vfs/sim_shared.h"

typedef enum sim_verb {
    SIM_BEGIN,
    SIM_LOOK,
    SIM_ADD_LEDGER,
    SIM_CREATE_STRIPE,
    SIM_APPEND,
    SIM_FENCE,
    SIM_FENCE_STRIPE,
    SIM_SEAL,
    SIM_LENGTHS,
    SIM_READ,
    SIM_REMOVE,
    SIM_DROP,
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
    uint64_t token;  /* BEGIN … APPEND: the writer's; FENCE: the owner's; 0: a revoke */
    uint64_t number; /* the ledger's; CAS: the expected generation */
    unsigned stripe;
    uint64_t off;
    rq_slice bytes;
    bool removes; /* CAS */
    rq_slog_ledger *ledgers;
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

/* --- messages ------------------------------------------------------------------------------- */

struct rq_sim_storage {
    rq_sim *sim;
    rq_executor *executor;
    rq_lane *lane;
    rq_random random;
    unsigned unanswered;
    size_t on_wire;
    sim_objects *objects;
};

/* An operation on its way; see sim_messages.c. */
typedef struct sim_message {
    rq_timer wire, patience;
    struct sim_message *next; /* in the node's list of messages whose sender waits */
    rq_sim_storage *storage;
    rq_sim_node *node;       /* NULL: the sender's wait has ended */
    bool on_wire, impatient; /* which of the timers is armed, or its task queued */
    bool executed, unanswered;
    rq_arena arena;
    sim_op op;
    rq_err rc;
    void (*done)(struct sim_message *m); /* m->rc; may read m->op and the arena */
    rq_latch *latch;
    rq_slog_write *write;
    struct sim_tenure *tenure;
} sim_message;

struct rq_sim_node {
    rq_shared shared;
    rq_sim_storage *storage;
    uint64_t offset_ns;
    int rate_ppm;
    bool paused, cut, dead;
    sim_message *waiting;
    rq__quiet_times quiet_times;
};

/* The functions of shared.h; rq_sim_node_new copies them into each node's `shared`. */
extern const rq_shared rq__sim_shared_functions;

/* Copies the operation. `done` is called once. NULL: no memory. */
sim_message *rq__sim_message_new(rq_sim_node *n, const sim_op *op, void (*done)(sim_message *m));
void rq__sim_send(sim_message *m);
/* Sends and waits for the answer; a paused node waits before and after. Results are copied: numbers
 * into the operation, what it points to into the arena (NULL: there is nothing else). */
RQ_NODISCARD rq_err rq__sim_call(rq_sim_node *n, sim_op *op, rq_arena *arena, rq_error *why);

#endif
