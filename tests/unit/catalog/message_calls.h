/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of a master to a server by messages (src/cluster), over a network that delays, loses and repeats
 * them: for the simulated environment. Master and server are in one process and exchange only
 * bytes. */
#ifndef RQ_TESTS_CATALOG_MESSAGE_CALLS_H
#define RQ_TESTS_CATALOG_MESSAGE_CALLS_H

#include "host/calls.h"
#include "vfs/sim.h"

typedef struct message_calls message_calls;

message_calls *message_calls_new(rq_sim *sim, rq_host *host, int64_t master_ms);
rq_region_calls message_calls_table(message_calls *m);
/* REQUIRES: the catalog is closed. `m` may be NULL. */
void message_calls_free(message_calls *m);

#endif
