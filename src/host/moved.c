/* SPDX-License-Identifier: Apache-2.0 */
/* New locations of regions that were open here. For two minutes a request for such a region is
 * answered with the location, so that the client need not ask hbase:meta. HBASE:
 * HRegionServer.addToMovedRegions, getMovedRegion. */
#include "host/host_priv.h"

#include <stdlib.h>

#define MOVED_NS (UINT64_C(120) * 1000000000) /* HBASE: TIMEOUT_REGION_MOVED */
#define MOVED_MAX 65536                       /* then the oldest are forgotten: 8 MB */
#define FORGET_MAX 16                         /* each new one adds one */

static void forget_first(rq_host *h)
{
    rq__moved_region *m = h->moved_first;
    h->moved_first = m->later;
    if (h->moved_first == NULL) h->moved_last = NULL;
    if (m->to != NULL) rq__by_name_remove(&h->moved, &m->named);
    rq_server_name_unref(m->to);
    free(m);
}

/* A few at a time, because requests do it on loops. */
static void forget_expired(rq_host *h, uint64_t now)
{
    for (int i = 0; i < FORGET_MAX && h->moved_first != NULL; i++) {
        if (h->moved_first->until_ns > now && h->moved.count <= MOVED_MAX) return;
        forget_first(h);
    }
}

/* The entry stays in the list by age, without a location, until it has expired. */
void rq__moved_forget(rq_host *h, const char *encoded)
{
    rq__named *n = rq__by_name_find(&h->moved, encoded);
    if (n == NULL) return;
    rq__moved_region *m = RQ_CONTAINER_OF(n, rq__moved_region, named);
    rq__by_name_remove(&h->moved, n);
    rq_server_name_unref(m->to);
    m->to = NULL;
}

void rq__moved_clear(rq_host *h)
{
    while (h->moved_first != NULL)
        forget_first(h);
}

void rq__host_moved(rq_host *h, const char *encoded, const rq_server_name *to, int64_t close_seqnum)
{
    rq__moved_region *m = calloc(1, sizeof *m);
    const rq_server_name *own = rq_server_name_new(to);
    if (m == NULL || own == NULL) { /* clients look into hbase:meta */
        free(m);
        rq_server_name_unref(own);
        return;
    }
    memcpy(m->named.encoded, encoded, strlen(encoded) + 1);
    m->to = own;
    m->close_seqnum = close_seqnum;
    uint64_t now = h->env->executor->now_ns(h->env->executor);
    m->until_ns = now + MOVED_NS;
    pthread_mutex_lock(&h->lock);
    rq__moved_forget(h, encoded);
    rq__by_name_put(&h->moved, &m->named);
    *(h->moved_last == NULL ? &h->moved_first : &h->moved_last->later) = m;
    h->moved_last = m;
    forget_expired(h, now);
    pthread_mutex_unlock(&h->lock);
}

/* HBASE: RegionMovedException.getMessage; clients parse it. */
rq_err rq__moved_check(rq_host *h, rq_slice encoded, rq_error *why)
{
    char name[RQ_ENCODED_NAME_LEN + 1] = {0};
    rq_err rc = RQ_OK;
    if (encoded.len > RQ_ENCODED_NAME_LEN) return RQ_OK;
    if (encoded.len > 0) memcpy(name, encoded.ptr, encoded.len);
    uint64_t now = h->env->executor->now_ns(h->env->executor);
    pthread_mutex_lock(&h->lock);
    forget_expired(h, now);
    rq__named *n = rq__by_name_find(&h->moved, name);
    const rq__moved_region *m = n == NULL ? NULL : RQ_CONTAINER_OF(n, rq__moved_region, named);
    if (m != NULL && m->until_ns > now) {
        rc = rq_fail(
            why, RQ_E_REGION_MOVED,
            "Region moved to: hostname=%s port=%u startCode=%lld. As of locationSeqNum=%lld.",
            m->to->host, m->to->port, (long long)m->to->start_code, (long long)m->close_seqnum);
    }
    pthread_mutex_unlock(&h->lock);
    return rc;
}
