/* SPDX-License-Identifier: Apache-2.0 */
/* The master's side, shared by remote.c, servers.c, silence.c, leases.c and draining.c. */
#ifndef RQ_CLUSTER_REMOTE_PRIV_H
#define RQ_CLUSTER_REMOTE_PRIV_H

#include "cluster/remote.h"

#include <pthread.h>

#define RQ__REMOTE_BUCKETS 1024
#define RQ__SERVER_BUCKETS 1024

/* The load of a region, as reported by the server that has it open. */
typedef struct rq__server_load {
    char encoded[RQ_ENCODED_NAME_LEN + 1];
    rq_region_load load;
} rq__server_load;

/* The name of a server that gets no further regions. */
typedef struct rq__draining rq__draining;

/* A server's lease on the shared storage, by the server's last report. */
typedef enum rq__lease_state {
    RQ__LEASE_UNKNOWN,
    RQ__LEASE_VALID,
    RQ__LEASE_EXPIRED,
} rq__lease_state;

/* A server that is up, or dead. */
typedef struct rq__server {
    struct rq__server *next, *same_bucket;
    const rq_server_name *name; /* a reference */
    rq__server_load *loads;     /* ascending by name; of its last report */
    size_t load_count;
    bool has_load;
    rq_server_load load; /* of its last report, too */
    rq_arena source_arena;
    rq_source_load *sources; /* likewise; in source_arena */
    size_t source_count;
    /* Time since its last report, since its last answer to a probe, and since the last of both; see
     * silence.c. */
    uint64_t unreported_ns, unanswered_ns, silent_ns;
    rq__lease_state lease;
    uint64_t unleased_ns; /* for how long its lease counts as expired; see leases.c */
    bool is_probed;       /* a probe is under way */
    bool has_hung_up;     /* it has closed all its connections */
    bool is_leaving;      /* it ends in order */
    unsigned refusals;    /* probes in a row whose connection its address refused */
    bool is_forgotten;    /* a dead server: rq_region_calls.dead does not list it any more */
} rq__server;

/* A list of servers, the newest first, with a hash table by address: a cluster status looks up the server of every
 * region. */
typedef struct rq__servers {
    rq__server *first;
    rq__server *buckets[RQ__SERVER_BUCKETS]; /* the newest first */
} rq__servers;

struct rq_remote {
    rq_remote_options o;
    rq_lane *lane;
    pthread_mutex_t lock; /* guards the rest; never held while something is sent or reported */
    struct rq__pending *buckets[RQ__REMOTE_BUCKETS];
    struct rq__message *messages;
    rq__servers up;
    rq__servers dead; /* the latest dead server of each address */
    rq__draining *draining;
    rq_log_limit not_running; /* lines about servers to decommission */
    size_t server_count;
    size_t turn; /* number of the server that the next region without a preference goes to */
    uint64_t next_id;
    uint64_t looked_ns; /* when silence was last counted; 0: never */
    bool is_lonely;     /* at the last look too few servers were heard both ways; this was logged */
    bool is_deaf;       /* at the last look too few servers were heard at all */
    uint64_t lonely_ns; /* for how long too few are heard both ways */
    uint64_t deaf_ns;   /* for how long too few are heard at all */
    uint64_t leases_looked_ns; /* when leases were last counted; 0: never */
    uint64_t lease_step_ns;    /* the longest step of the last look */
    uint64_t unleased_ns;      /* for how long the lease of this process counts as expired */
    size_t
        reporting; /* calls that were taken out and have not reported yet: a stop waits for them */
    rq_latch *quiet; /* opened when `reporting` becomes 0 */
    bool stopping;
};

/* --- remote.c --------------------------------------------------------------------------------- */
/* Ends the calls to a server that have not reported. */
void rq__end_calls_to(rq_remote *m, const rq_server_name *server, rq_err rc, const rq_error *why);

/* Fails unless `from` is the sender `said` that the message names. `from` NULL: not known;
 * RQ_OK. */
RQ_NODISCARD
rq_err rq__check_sender(const rq_server_name *from, const rq_server_name *said, rq_error *why);

/* --- servers.c -------------------------------------------------------------------------------- */
/* REQUIRES: lock held. */
bool rq__server_is_up(const rq_remote *m, const rq_server_name *name);
/* The server of that name; NULL: no such server is up. REQUIRES: lock held. */
rq__server *rq__server_find(const rq_remote *m, const rq_server_name *name);
/* Functions of the table of calls; ctx is the rq_remote. */
bool rq__servers_load(void *ctx, const rq_server_name *server, const rq_region_info *info,
                      rq_region_load *ret);
bool rq__servers_server_load(void *ctx, const rq_server_name *server, rq_server_load *ret);
rq_err rq__servers_sources(void *ctx, const rq_server_name *server, rq_arena *arena,
                           rq_source_load **ret, size_t *ret_count);
bool rq__remote_is_draining(void *ctx, const rq_server_name *server);
bool rq__remote_takes_regions(void *ctx, const rq_server_name *server);
rq_err rq__remote_drain(void *ctx, const rq_server_name *server, bool drains, rq_error *why);
rq_err rq__servers_dead(void *ctx, rq_arena *arena, const rq_server_name ***ret, size_t *ret_count);
bool rq__servers_forget_dead(void *ctx, const rq_server_name *server);
const rq_server_name *rq__servers_place(void *ctx, const rq_region_info *info,
                                        const rq_server_name *last);
void rq__servers_clear(rq_remote *m);
/* Whether it is the server in this process. */
bool rq__server_is_home(const rq_remote *m, const rq__server *s);

/* --- silence.c -------------------------------------------------------------------------------- */
/* The time since *looked_ns, which is set to now; at most `max_ns`. REQUIRES: lock held. */
uint64_t rq__remote_step(const rq_remote *m, uint64_t *looked_ns, uint64_t max_ns);

static inline void rq__cap(uint64_t *ns, uint64_t max_ns)
{
    if (*ns > max_ns) *ns = max_ns;
}

/* --- leases.c --------------------------------------------------------------------------------- */
/* Takes up what a report says of the sender's lease; NULL: nothing. REQUIRES: lock held. */
void rq__note_lease(rq_remote *m, const rq_server_name *from, const uint64_t *expired_ms);

/* --- draining.c ------------------------------------------------------------------------------- */
/* It neither drains nor ends in order. REQUIRES: lock held. */
rq_err rq__remote_draining(void *ctx, rq_arena *arena, const rq_server_name ***ret,
                           size_t *ret_count);
/* Whether a server of the host drains. */
bool rq__draining_has_host(rq_remote *m, const char *host);
bool rq__server_takes_regions(rq_remote *m, const rq__server *s);
void rq__draining_clear(rq_remote *m);

#endif
