/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of Multi share: client_multi.c walks through a request's regions and actions,
 * client_multi_write.c does the mutations, client_multi_get.c the gets.
 *
 * All of it runs on the loop of the call's connection.
 */
#ifndef RQ_SERVICE_CLIENT_MULTI_PRIV_H
#define RQ_SERVICE_CLIENT_MULTI_PRIV_H

#include "base/meter.h"
#include "service/client_priv.h"

/* What an action is, decided once, when its region action is entered. Nothing behind that looks at
 * the request's Action, whose optional parts a client may set as it likes. */
typedef enum rq__action_kind {
    RQ__ACTION_GET,
    RQ__ACTION_BATCHED, /* a put or delete: goes to the region together with others */
    RQ__ACTION_ALONE,   /* an append or increment: ends the batch that it is in */
    RQ__ACTION_SERVICE,
    RQ__ACTION_EMPTY,     /* none of these */
    RQ__ACTION_AMBIGUOUS, /* several of these at once */
} rq__action_kind;

typedef struct rq__action {
    rq__action_kind kind;
    uint32_t index; /* the client's number of it: goes into the answer and has no other use */
    const Pb__MutationProto *mutation; /* its cells are in the cell block; NULL: it has none */
    union {
        const Pb__Get *get;                     /* of a GET */
        const Pb__CoprocessorServiceCall *call; /* of a SERVICE */
    };
} rq__action;

static inline bool rq__action_is_mutation(const rq__action *a)
{
    return a->kind == RQ__ACTION_BATCHED || a->kind == RQ__ACTION_ALONE;
}

typedef struct rq__multi {
    rq__read_job job; /* for gets */
    rq_cursor cells;
    Pb__MultiResponse response;
    Pb__MultiRegionLoadStats stats;
    Pb__Result nothing; /* the result of every put and delete */
    /* The walk. */
    size_t region_at;
    size_t action_at;
    bool in_region;
    const rq__action *actions; /* of the region action */
    size_t action_count;
    rq_region *region;                  /* a reference while in_region */
    bool stale;                         /* it was named as a replica */
    struct rq__multi_batch *collecting; /* puts and deletes of this region */
    size_t ahead;                       /* actions before this one were asked for ahead */
    /* The get under way. */
    rq_scan scan;
    rq_region_scanner *scanner;
    rq_cellblock get_cells;
    rq_cellblock_mark get_mark;
    bool get_running;
    size_t batches_running;
    rq_meter meter; /* of the walk */
    bool walked;
    rq_err failed; /* RQ_OK, or what the call as a whole ends with */
    uint64_t result_bytes;
} rq__multi;

static inline const Pb__MultiRequest *rq__multi_request(const rq__multi *m)
{
    return (const Pb__MultiRequest *)m->job.call->param;
}

static inline const Pb__RegionAction *rq__multi_region_action(const rq__multi *m)
{
    return rq__multi_request(m)->regionaction[m->region_at];
}

static inline Pb__RegionActionResult *rq__multi_region_answer(const rq__multi *m)
{
    return m->response.regionactionresult[m->region_at];
}

/* --- client_multi.c --------------------------------------------------------------------------- */
/* A slot for one action's outcome; the list was sized for all actions. NULL: no memory. */
Pb__ResultOrException *rq__multi_add_outcome(rq__multi *m, Pb__RegionActionResult *answer,
                                             uint32_t index);
Pb__Result *rq__multi_new_result(rq__multi *m);
/* The action's outcome is this error. */
RQ_NODISCARD
rq_err rq__multi_add_exception(rq__multi *m, uint32_t index, rq_err code, const rq_error *why);
/* Goes on with the next action. */
void rq__multi_walk(rq__multi *m);
/* The cells of the action in the request's cell block are passed over. */
void rq__multi_skip_cells(rq__multi *m, const rq__action *action);
/* The call will end with this error, if not with one before. */
void rq__multi_fail(rq__multi *m, rq_err rc);
/* Ends the call when all is walked through and no batch is under way. */
void rq__multi_finish_if_done(rq__multi *m);

/* --- client_multi_write.c --------------------------------------------------------------------- */
/* All actions of the region as one op; `condition` may be NULL. */
RQ_NODISCARD
rq_err rq__multi_begin_atomic(rq__multi *m, const Pb__Condition *condition, rq_error *why);
/* Puts one mutation to those of its region that are collected. *ret_flush: they must go, and be
 * waited for, before the next action. */
RQ_NODISCARD
rq_err rq__multi_collect(rq__multi *m, const rq__action *action, bool *ret_flush, rq_error *why);
/* Hands what is collected to the region. `awaited`: the walk goes on when it is done. */
void rq__multi_submit_collected(rq__multi *m, bool awaited);

/* --- client_multi_get.c ----------------------------------------------------------------------- */
/* Answered at once (rq_region_get), or get_running; RQ_E_AGAIN: running, and it waits for a block.
 */
RQ_NODISCARD
rq_err rq__multi_begin_get(rq__multi *m, const rq__action *action, rq_error *why);
/* The answer of a get that was answered at once. */
RQ_NODISCARD
rq_err rq__multi_answer_get(rq__multi *m, const rq__action *action);
/* RQ_E_AGAIN: a block must be brought first. */
RQ_NODISCARD
rq_err rq__multi_go_on_get(rq__multi *m, const rq__action *action);

#endif
