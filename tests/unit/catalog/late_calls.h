/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of a master whose server answers late, in any order, as if it were another process: for the
 * simulated environment. */
#ifndef RQ_TESTS_CATALOG_LATE_CALLS_H
#define RQ_TESTS_CATALOG_LATE_CALLS_H

#include "catalog/catalog.h"
#include "vfs/sim.h"

typedef struct late_calls late_calls;

/* Delays are drawn from the simulation's seed. */
late_calls *late_calls_new(rq_sim *sim, rq_host *host);
rq_region_calls late_calls_table(late_calls *l);
/* The number of calls that had to wait. */
uint64_t late_calls_count(const late_calls *l);
/* From now on no server is available for regions to be opened (`gone`), or one is available
 * again. */
void late_calls_lose_servers(late_calls *l, bool gone);
/* From now on calls are held in transit (`held`), or delivered. */
void late_calls_hold(late_calls *l, bool held);
/* The next `count` calls are not sent, as if memory were short. */
void late_calls_exhaust(late_calls *l, unsigned count);
/* From now on opening a region of the namespace default fails with `rc` (RQ_OK: succeeds). */
void late_calls_fail_opens(late_calls *l, rq_err rc);
/* From now on tables of the namespace default are placed on a server with another name. The host
 * acts as this server, too. */
void late_calls_name_server(late_calls *l);
/* That server is killed and replaced by a new one. The caller notifies the catalog, and releases
 * the name. */
const rq_server_name *late_calls_end_server(late_calls *l);
/* REQUIRES: the catalog is closed. `l` may be NULL. */
void late_calls_free(late_calls *l);

#endif
