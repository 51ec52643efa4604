/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dispatches the calls of other servers of the cluster by method: orders of masters, and, while this process is
 * the active master, reports of servers. REQUIRES: the caller has proven the secret (handshake.h).
 *
 * Any thread; nothing blocks but rq_sides_set_…, which wait for calls under way.
 */
#ifndef RQ_CLUSTER_SIDES_H
#define RQ_CLUSTER_SIDES_H

#include "cluster/orders.h"
#include "cluster/remote.h"

typedef struct rq_sides rq_sides;

/* Neither server nor master yet: calls are answered with RQ_E_SERVER_NOT_RUNNING. */
RQ_NODISCARD
rq_err rq_sides_new(const rq_log *log, rq_sides **ret);
/* REQUIRES: no connection is in use. NULL is fine. */
void rq_sides_free(rq_sides *s);
/* NULL: this process has none any more. On return no call uses the previous one. */
void rq_sides_set_orders(rq_sides *s, rq_orders *orders);
void rq_sides_set_master(rq_sides *s, rq_remote *master);

/* A connection of that server has proven the secret; it is closed. The active master learns when a server has closed its last one. */
RQ_NODISCARD
rq_err rq_sides_connected(rq_sides *s, const rq_server_name *from);
void rq_sides_disconnected(rq_sides *s, const rq_server_name *from);
/* Whether the server has a connection to this process. */
bool rq_sides_is_connected(rq_sides *s, const rq_server_name *from);

/* `method`: HBase's name, or RegionServerLeaving. *ret: the response, in the arena; empty for most. */
RQ_NODISCARD
rq_err rq_sides_call(rq_sides *s, const rq_server_name *from, const char *method, rq_slice request,
                     rq_arena *arena, rq_slice *ret, rq_error *why);

#endif
