/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls to regions (host/calls.h) as HBase's messages, and their reports.
 *
 *   OPEN, CLOSE   ExecuteProceduresRequest.open_region, close_region; reported by
 *                 ReportRegionStateTransition: OPENED, FAILED_OPEN, CLOSED
 *   FLUSH         .proc, FlushRegionCallable; reported by ReportProcedureDone
 *   the others    .proc with a class name of Rorqual's own; reported likewise
 *
 * An error travels as ForeignExceptionMessage: HBase's class, the text, and its number in errors.def.
 */
#ifndef RQ_CLUSTER_WIRE_H
#define RQ_CLUSTER_WIRE_H

#include "host/calls.h"

/* A call on its way to its server. */
typedef struct rq_order {
    rq_region_call_kind kind;
    uint64_t id;         /* the master's number of the call: open_proc_id, close_proc_id, proc_id */
    int64_t master_ms;   /* when that master became active: initiating_master_active_time */
    rq_region_info info; /* LIST_MOB_WRITES: zero */
    bool abandon;
    const rq_server_name *moves_to; /* in the arena; NULL: none */
    rq_slice *families;
    size_t family_count;
    bool flush;
} rq_order;

/* A fenced server, which answers no reads any more after `quiet_in_ms` (rq_tenure_quiet_in). */
typedef struct rq_revoked {
    const char *server; /* its ServerName */
    uint64_t quiet_in_ms;
} rq_revoked;

/* The report of an order. */
typedef struct rq_outcome {
    rq_region_call_kind kind; /* decoded: OPEN, CLOSE, or LOOK for all others */
    uint64_t id;
    int64_t master_ms;
    const rq_region_info *info; /* of a transition; decoded: NULL */
    rq_err rc;
    const char *message; /* NULL: none */
    int64_t open_seqnum;
    bool splittable, mergeable;
    rq_slice split_row;
    rq_region_files files;
    rq_slice *mob_writes;
    size_t mob_write_count;
} rq_outcome;

/* An ExecuteProceduresRequest for the server with that start code; in the arena. */
RQ_NODISCARD
rq_err rq__orders_encode(const rq_order *list, size_t count, int64_t start_code, rq_arena *arena,
                         rq_slice *ret);
/* Appends the list to an encoded ExecuteProceduresRequest; *request is then in the arena. */
RQ_NODISCARD
rq_err rq__revoked_append(const rq_revoked *list, size_t count, rq_arena *arena, rq_slice *request);
/* Decodes the list from an ExecuteProceduresRequest that rq__orders_decode has accepted. */
RQ_NODISCARD
rq_err rq__revoked_decode(rq_slice bytes, rq_arena *arena, rq_revoked **ret, size_t *ret_count);
/* Decodes untrusted bytes. RQ_E_DO_NOT_RETRY: malformed, or of an unknown class; then none of the
 * orders may be executed. *ret_start_code: the server it is meant for; 0: not given. */
RQ_NODISCARD
rq_err rq__orders_decode(rq_slice bytes, rq_arena *arena, rq_order **ret, size_t *ret_count,
                         int64_t *ret_start_code, rq_error *why);

/* A ReportRegionStateTransitionRequest (OPEN, CLOSE) or ReportProcedureDoneRequest of one outcome. */
RQ_NODISCARD
rq_err rq__outcome_encode(const rq_outcome *o, const rq_server_name *server, rq_arena *arena,
                          rq_slice *ret);
/* A copy in the arena, of files as decoded. */
RQ_NODISCARD
rq_err rq__wire_copy_files(const rq_region_files *files, rq_arena *arena, rq_region_files *ret);
/* Copies of names in the arena. */
RQ_NODISCARD
rq_err rq__wire_copy_names(const rq_slice *names, size_t count, rq_arena *arena, rq_slice **ret);
/* HBase's name of the method that takes it. */
const char *rq__outcome_method(rq_region_call_kind kind);
/* Decodes untrusted bytes. RQ_E_DO_NOT_RETRY: malformed. *ret_server: the sender; NULL: not
 * given. */
RQ_NODISCARD
rq_err rq__transitions_decode(rq_slice bytes, rq_arena *arena, rq_outcome **ret, size_t *ret_count,
                              const rq_server_name **ret_server, rq_error *why);
RQ_NODISCARD
rq_err rq__procedures_done_decode(rq_slice bytes, rq_arena *arena, rq_outcome **ret,
                                  size_t *ret_count, rq_error *why);

#endif
