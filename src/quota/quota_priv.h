/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share. */
#ifndef RQ_QUOTA_PRIV_H
#define RQ_QUOTA_PRIV_H

#include "base/epoch.h"
#include "quota/limiter.h"
#include "quota/quota.h"

#include <stdatomic.h>

#define RQ__QUOTA_TABLE RQ_SLICE_LIT("hbase:quota")
#define RQ__QUOTA_SERVER "all" /* HBASE: QuotaTableUtil.QUOTA_REGION_SERVER_ROW_KEY */

/* --- view.c: the quotas in memory ------------------------------------------------------------- */
typedef enum rq__owner {
    RQ__OWNER_USER,
    RQ__OWNER_USER_TABLE,     /* name: user, other: table */
    RQ__OWNER_USER_NAMESPACE, /* name: user, other: namespace */
    RQ__OWNER_TABLE,
    RQ__OWNER_NAMESPACE,
    RQ__OWNER_SERVER,
    RQ__OWNER_TABLE_USAGE, /* the table's state (u:p) as written when it was last measured */
} rq__owner;

typedef struct rq__entry {
    _Atomic unsigned refs; /* the buckets that have it */
    rq__owner owner;
    rq_slice name, other; /* bytes in the same allocation, after the struct */
    rq__limiter *limiter; /* a reference; NULL: no throttle */
    bool bypasses;        /* a user's: no quota but the user's own applies */
    bool has_space;
    uint64_t space_limit;
    Pb__SpaceViolationPolicy policy;
    uint64_t usage;   /* TABLE_USAGE only */
    bool is_violated; /* TABLE_USAGE only */
} rq__entry;

/* Entries whose rows have hashes with the same low bits, ordered by row: the entries of one row of hbase:quota
 * are adjacent. Immutable, shared by the views that have it. */
typedef struct rq__quota_bucket {
    _Atomic unsigned refs;
    size_t count;
    struct rq__quota_place {
        uint64_t hash; /* of the row */
        rq__entry *entry;
    } list[];
} rq__quota_bucket;

#define RQ__QUOTA_BUCKETS 1024

/* Immutable once published. A change of one row replaces one bucket. */
typedef struct rq__view_of_quotas {
    rq_epoch_node retired;
    rq__quota_bucket *buckets[RQ__QUOTA_BUCKETS]; /* NULL: empty */
    size_t count;                                 /* entries */
    size_t throttles, spaces, usages; /* entries with a throttle, a space quota, a usage */
    bool exceeds;                     /* exceedThrottleQuota */
} rq__view_of_quotas;

/* Reads hbase:quota. Limiters of `before` (may be NULL) are kept, with their new limits.
 * Blocking. */
RQ_NODISCARD
rq_err rq__quota_view_read(rq_quotas *q, const rq__view_of_quotas *before, rq__view_of_quotas **ret,
                           rq_error *why);
/* Makes a copy of `before` with one row read again from hbase:quota. Blocking. */
RQ_NODISCARD
rq_err rq__quota_view_update(rq_quotas *q, const rq__view_of_quotas *before, rq_slice row,
                             rq__view_of_quotas **ret, rq_error *why);
/* RQ_E_DO_NOT_RETRY: the view is full, so a quota in this row, which has none yet, would not be enforced. */
RQ_NODISCARD
rq_err rq__quota_view_has_room(const rq__view_of_quotas *v, rq_slice row, rq_error *why);
void rq__quota_view_free(rq__view_of_quotas *v); /* NULL is fine */
/* NULL: none. */
const rq__entry *rq__quota_find(const rq__view_of_quotas *v, rq__owner owner, rq_slice name,
                                rq_slice other);
/* The entries one after the other; the cursor is zero at first. NULL: the end. */
typedef struct rq__quota_cursor {
    size_t bucket, at;
} rq__quota_cursor;
const rq__entry *rq__quota_next(const rq__view_of_quotas *v, rq__quota_cursor *cursor);
/* "PBUF" + Quotas; NULL: it cannot be read. In the arena. */
Pb__Quotas *rq__quotas_unpack(rq_slice bytes, rq_arena *arena);
/* Whether the number is in the enumeration: protobuf-c accepts any number for it. */
static inline bool rq__space_policy_is_known(int policy)
{
    return policy >= PB__SPACE_VIOLATION_POLICY__DISABLE &&
           policy <= PB__SPACE_VIOLATION_POLICY__NO_INSERTS;
}
RQ_NODISCARD
rq_err rq__quotas_pack(const Pb__Quotas *m, rq_arena *arena, rq_slice *ret);

/* Begins a change by a client; rq__quotas_end_change must follow. RQ_E_PLEASE_HOLD: RQ__QUOTA_CHANGES_MAX changes are
 * waiting already; the client retries. Changes of space quotas wait for the end of a round that disables or enables
 * tables. Such a round may take minutes, and waits for the locks of the tables. Each waiting change occupies a thread
 * of a pool, whose few threads bulk loads need too. */
#define RQ__QUOTA_CHANGES_MAX 4
RQ_NODISCARD
rq_err rq__quotas_begin_change(rq_quotas *q, rq_error *why);
void rq__quotas_end_change(rq_quotas *q);
/* Reads a row of hbase:quota that has changed, and publishes the new view. `measures`: a space quota has changed, so
 * the sizes of the tables are compared with the limits at once. Blocking. */
RQ_NODISCARD
rq_err rq__quotas_reload_row(rq_quotas *q, rq_slice row, bool measures, rq_error *why);

/* --- space.c ---------------------------------------------------------------------------------- */
/* A namespace with a space quota; a table to which a space quota applies, its own or its namespace's; or a table that
 * has lost its quota (is_lost). */
typedef struct rq__space_entry {
    rq_space_state state;
    bool is_own; /* `state` is of the table's own quota, not of its namespace's */
    /* `followed`: the state that was last applied to the table and written to hbase:quota; valid if `was_followed`. At
     * the beginning of a round it is the previous round's. After a failure it differs from `state`, and the next
     * round tries again. */
    bool was_followed;
    rq_space_state followed;
    bool is_lost; /* the table has no quota any more, and `followed` is still to be undone */
} rq__space_entry;

/* Immutable once published, except `was_followed` and `followed` of the entries: a round writes them, with q->work. */
typedef struct rq__space_view {
    rq_epoch_node retired;
    rq_arena arena;
    rq__space_entry *entries; /* by is_namespace, then name */
    size_t count;
} rq__space_view;

/* A round: measures tables, publishes their states, writes changed states to hbase:quota, disables and enables tables.
 * Blocking. REQUIRES: q->rounds and q->work are held; q->work is released while a table is disabled or enabled. */
RQ_NODISCARD
rq_err rq__space_measure(rq_quotas *q, rq_error *why);
void rq__space_view_free(rq__space_view *v); /* NULL is fine */
/* Whether the table's record in hbase:quota is still needed, to undo a policy after a restart. REQUIRES:
 * q->work. */
bool rq__space_needs_record(const rq_quotas *q, rq_slice table);
const rq__space_entry *rq__space_find(const rq__space_view *v, rq_slice table);

/* --- snapshots.c ------------------------------------------------------------------------------ */
typedef struct rq__snapshot_usage rq__snapshot_usage;
/* Measures the snapshots of tables with a space quota, if the chore's period has passed or with `at_once`.
 * Sets q->snapshots, and writes changed sizes to hbase:quota. Blocking. REQUIRES: q->work. */
RQ_NODISCARD
rq_err rq__snapshot_usage_measure(rq_quotas *q, bool at_once, rq_error *why);
/* Bytes that only snapshots of the table keep. `u` NULL: 0. */
uint64_t rq__snapshot_usage_of(const rq__snapshot_usage *u, rq_slice table);
void rq__snapshot_usage_free(rq__snapshot_usage *u); /* NULL is fine */

/* --- gate.c ----------------------------------------------------------------------------------- */
extern const rq_gate_policy rq__quota_policy_table; /* without ctx */
/* Sets the policy at the gate: the one of quotas if there is anything to limit, which also calls q->next; otherwise
 * q->next alone. REQUIRES: q->work. */
void rq__quota_set_gate(rq_quotas *q);

/* The entry of a user without a quota of its own, with the default quotas (settings). */
typedef struct rq__default_user {
    struct rq__default_user *next;
    rq__limiter *limiter;
    size_t name_len;
    uint8_t name[];
} rq__default_user;

#define RQ__DEFAULT_USERS 1024 /* buckets */
#define RQ__DEFAULT_USERS_MAX 10000
#define RQ__DEFAULT_USER_NAME_MAX 1024 /* bytes */

struct rq_quotas {
    rq_env env;
    rq_catalog *catalog;
    rq_ops *ops;
    const rq_config *config;
    rq_lane *lane;
    bool enabled;
    rq_gate_policy policy;
    const rq_gate_policy *next; /* called by `policy`; may be NULL */
    rq__refill refill;
    int64_t read_unit, write_unit;      /* bytes */
    bool by_results;                    /* hbase.quota.use.result.size.bytes */
    char owner[128];                    /* the user of this process, a superuser */
    const char *user_key;               /* the request attribute that names the user; "": none */
    _Atomic(rq__view_of_quotas *) view; /* NULL: not yet read */
    _Atomic(rq__space_view *) space;    /* NULL: none */
    bool has_measured;                  /* a round has run since the start; under `work` */
    rq__snapshot_usage *snapshots;      /* under `work`; NULL: not yet measured */
    uint64_t snapshots_ns, snapshot_ns; /* time of the last measurement, and its period */
    /* One round of space quotas at a time; taken before `work`. Held while procedures run; never by an event loop. */
    pthread_mutex_t rounds;
    pthread_mutex_t work;     /* one change at a time; held across I/O, never by an event loop */
    _Atomic unsigned changes; /* calls that change quotas, or wait to change them */
    /* The users that the defaults apply to. */
    bool has_defaults;
    Pb__Throttle defaults;
    Pb__TimedQuota default_quotas[RQ__BUDGETS];
    pthread_mutex_t users_lock;
    rq__default_user *users[RQ__DEFAULT_USERS];
    size_t user_count;
    /* The timer. */
    pthread_mutex_t lock;
    rq_timer timer;
    rq_task task;
    uint64_t period_ns, refresh_ns, space_ns; /* 0: never */
    uint64_t refreshed_ns, measured_ns;
    unsigned busy; /* tasks that were submitted and have not ended */
    bool is_stopping;
    rq_task dropped; /* reads hbase:quota after a table was dropped */
    bool has_dropped;
    rq_latch *idle;
};

#endif
