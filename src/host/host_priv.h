/* SPDX-License-Identifier: Apache-2.0 */
/* The host's struct, shared by its files. */
#ifndef RQ_HOST_HOST_PRIV_H
#define RQ_HOST_HOST_PRIV_H

#include "host/by_name.h"
#include "host/host.h"

#include <pthread.h>

/* A region that is open here. */
typedef struct rq__open_region {
    rq__named named;
    rq_region *region; /* a reference */
} rq__open_region;

/* A region that has moved to another server (moved.c); in a list, the oldest first. */
typedef struct rq__moved_region {
    rq__named named;
    struct rq__moved_region *later;
    const rq_server_name *to; /* a reference */
    int64_t close_seqnum;
    uint64_t until_ns;
} rq__moved_region;

struct rq_host {
    rq_engine *engine;
    const rq_env *env;
    const struct rq_config *config; /* may be NULL */
    const rq_server_name *name;     /* a reference */
    rq_region_names names; /* with `names_itself` the writer is the thread that holds `lock` */
    bool names_itself;     /* set before anything is opened */
    pthread_mutex_t lock;  /* guards the rest; never held across I/O */
    rq__by_name open;
    rq__by_name own; /* entries of own_names.c */
    _Atomic size_t
        own_retired; /* removed names that readers may still see; they hold their regions */
    rq__by_name moved;
    rq__moved_region *moved_first, *moved_last;
};

/* --- own_names.c: without effect unless the host names its regions itself ----------------------- */
typedef struct rq__own_name rq__own_name;
/* The region is about to be opened: lookups get RQ_E_REGION_OPENING. No effect if it is open already.
 * `copies`: its REGION_REPLICATION. */
RQ_NODISCARD
rq_err rq__own_name_begin(rq_host *h, const rq_region_info *info, int copies);
/* The region is open, and not served yet. */
void rq__own_name_opened(rq_host *h, rq_region *r, int64_t open_seqnum);
/* The region is about to be closed, or could not be opened. */
void rq__own_name_end(rq_host *h, const char *encoded);
/* Waits until all removed names are freed. REQUIRES: no reader. */
void rq__own_names_clear(rq_host *h);

/* --- moved.c ------------------------------------------------------------------------------------ */
/* Fails with RQ_E_REGION_MOVED if the region's new location is known; otherwise RQ_OK. */
RQ_NODISCARD
rq_err rq__moved_check(rq_host *h, rq_slice encoded, rq_error *why);
/* The region is here again. REQUIRES: lock held. */
void rq__moved_forget(rq_host *h, const char *encoded);
void rq__moved_clear(rq_host *h);

#endif
