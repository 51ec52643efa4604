/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slow and large calls: calls that took longer than a limit, or whose response exceeded one. The
 * newest are kept in a ring for the operator (HBase's get_slowlog_responses, the page /debug/slow).
 *
 * Other calls cost two comparisons at their end. Their duration comes from the loop's time, which
 * is that of the beginning of the iteration, so it misses at most one iteration, 2 ms. The clock is
 * read only if that duration exceeds the limit less RQ_SLOW_SLACK_NS. Hence a call that begins and
 * ends within one iteration is checked only if the limit is below RQ_SLOW_SLACK_NS.
 *
 * Each record is one allocation of at most about 3 KB, and the ring has a fixed number of places;
 * nothing is allocated before the first slow call. HBASE: RpcServer.isTooSlow, SlowLogQueueService.
 */
#ifndef RQ_RPC_SLOW_LOG_H
#define RQ_RPC_SLOW_LOG_H

#include "base/config.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define RQ_SLOW_SLACK_NS ((uint64_t)4000000)
#define RQ_SLOW_NEVER UINT64_MAX

/* The parts of a call's duration that are measured. The rest is processing on its loop, filters
 * included, and waiting for the loop. */
typedef enum rq_call_place {
    RQ_CALL_IN_MEMORY, /* waiting for memory for the response */
    RQ_CALL_IN_FILES,  /* waiting for blocks: for a thread that reads them, and for the disk */
    RQ_CALL_IN_LOG,    /* all other time of a call that only writes: waiting for the log */
    RQ_CALL_PLACES
} rq_call_place;

/* A call's request as text, filled by its service; zeroed before. */
typedef struct rq_call_text {
    char region[768];                        /* name of the region; empty: none, or several kinds */
    char param[1024];                        /* the request, cut */
    unsigned gets, mutations, service_calls; /* of a Multi */
    bool only_writes;                        /* see RQ_CALL_IN_LOG */
} rq_call_text;

/* A record; immutable. Texts end with NUL and live as long as the record. */
typedef struct rq_slow_call {
    bool is_slow, is_large;
    int64_t start_ms;  /* wall clock at which its processing began */
    uint64_t queue_ns; /* between the read of its bytes and the start of its processing */
    uint64_t ns;       /* from the start of its processing until its response could be sent */
    uint64_t place_ns[RQ_CALL_PLACES]; /* of `ns` */
    uint64_t request_bytes, answer_bytes;
    unsigned gets, mutations, service_calls;
    const char *server;  /* "HRegionServer", "HMaster" */
    const char *method;  /* static */
    const char *request; /* the message's name, static */
    const char *failure; /* the Java class of the exception it ended with; NULL: none */
    const char *client;  /* host:port */
    const char *user, *region, *param;
} rq_slow_call;

/* Limits, in ns and bytes; RQ_SLOW_NEVER: none. A call is slow from `ns` on, large above
 * `bytes`. */
typedef struct rq_slow_limits {
    uint64_t ns, scan_ns;
    uint64_t bytes, scan_bytes;
    bool keeps; /* in the ring; else calls are logged only */
} rq_slow_limits;

/* The limits in the settings hbase.ipc.warn.response.… and hbase.regionserver.slowlog.…, with their
 * current values. */
rq_slow_limits rq_slow_limits_of(const rq_config *c);

typedef struct rq_slow_log rq_slow_log;

/* `places`: records kept. */
RQ_NODISCARD
rq_err rq_slow_log_new(unsigned places, const rq_slow_limits *limits, rq_slow_log **ret);
/* REQUIRES: no thread uses it, and every list was released. NULL is fine. */
void rq_slow_log_free(rq_slow_log *l);
/* Any thread, while calls run. */
void rq_slow_log_set(rq_slow_log *l, const rq_slow_limits *limits);
/* Copies the call into the ring, in the place of the oldest. Without memory it is left out. Any
 * thread. */
void rq__slow_log_add(rq_slow_log *l, const rq_slow_call *call);
/* Removes all records. False: the limits say that none are kept (`keeps`). Any thread. */
bool rq_slow_log_clear(rq_slow_log *l);
/* Calls recorded since the start, including those no longer in the ring. */
uint64_t rq_slow_log_count(const rq_slow_log *l, bool large);

/* The records, newest first. Costs a few ns per record, so event loops may call it. */
typedef struct rq_slow_list {
    const rq_slow_call **calls; /* NULL with count 0 */
    size_t count;
} rq_slow_list;
RQ_NODISCARD
rq_err rq_slow_log_list(rq_slow_log *l, rq_slow_list *ret);
void rq_slow_list_release(rq_slow_list *list);

/* --- for calls (reply.c) ---------------------------------------------------------------------- */

struct rq_slow_log {
    /* The lowest limits of time (less RQ_SLOW_SLACK_NS) and of bytes; checked for every call. */
    _Atomic uint64_t look_ns, look_bytes;
    _Atomic uint64_t ns, scan_ns, bytes, scan_bytes;
    _Atomic bool keeps;
    _Atomic uint64_t slow_count, large_count;
    struct rq_slow_ring *ring;
};

/* Whether a call that has run for about `ns` and has a response of `bytes` must be checked. */
static inline bool rq__slow_log_looks(const rq_slow_log *l, uint64_t ns, uint64_t bytes)
{
    return ns >= atomic_load_explicit(&l->look_ns, memory_order_relaxed) ||
           bytes >= atomic_load_explicit(&l->look_bytes, memory_order_relaxed);
}

/* Fills is_slow and is_large from ns and answer_bytes. False: it is neither. */
bool rq__slow_log_judge(const rq_slow_log *l, bool is_scan, rq_slow_call *call);

#endif
