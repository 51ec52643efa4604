/* SPDX-License-Identifier: Apache-2.0 */
/* Sends log entries to another cluster: ReplicateWALEntry of a region server (src/replication). */
#ifndef RQ_CLIENT_REPLICATE_H
#define RQ_CLIENT_REPLICATE_H

#include "client/client.h"

#include <stdatomic.h>

/* A region server to which entries are sent. The client owns the object. */
typedef struct rq__conn rq_client_sink;

/* Does not connect yet. timeout_ms: of a call. */
RQ_NODISCARD
rq_err rq_client_sink_new(rq_client *c, rq_slice host, uint16_t port, uint32_t timeout_ms,
                          rq_client_sink **ret);
/* Blocking: sends a packed ReplicateWALEntryRequest and its cells (KeyValueCodecWithTags), and waits
 * until they are applied. RQ_E_CANCELLED: *stop was set meanwhile; then the client may only be
 * closed. */
RQ_NODISCARD
rq_err rq_client_replicate(rq_client *c, rq_client_sink *to, rq_slice message, rq_slice cells,
                           const atomic_bool *stop, rq_client_failure *ret_failure);

#endif
