/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The servers that this process has fenced, and from when on they answer no reads (rq_tenure_revoke). Orders to open regions carry
 * the list (rq_remote_options.revoked).
 *
 * Servers that this process has fenced because they had ended come first, the last one at the beginning: their regions are opened
 * now. Behind them are those that a new master has found among the servers whose logs are not removed yet. There may be many of
 * these, for example because a replication peer is away; their number must not drive out the others.
 *
 * A name is in the list until it is forgotten. No locks: the caller has one.
 */
#ifndef RQ_SERVER_REVOKED_H
#define RQ_SERVER_REVOKED_H

#include "cluster/wire.h"

#define RQ__REVOKED_LISTED_MAX 64 /* of an order */

typedef struct rq__revoked_server rq__revoked_server;

/* {0}: empty. */
typedef struct rq__revoked_servers {
    rq__revoked_server *first;
} rq__revoked_servers;

/* A server that is in the list keeps the earlier time. `is_found`: see above. Without memory it is left out: whoever opens its
 * regions waits for the whole lease. */
void rq__revoked_note(rq__revoked_servers *r, const char *server, uint64_t quiet_ns, bool is_found);
void rq__revoked_forget(rq__revoked_servers *r, const char *server);
/* The first RQ__REVOKED_LISTED_MAX, in the arena. */
size_t rq__revoked_list(const rq__revoked_servers *r, uint64_t now_ns, rq_arena *arena,
                        rq_revoked **ret);
void rq__revoked_clear(rq__revoked_servers *r);

#endif
