/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests are counted by region, so a region's start key stands for all its rows: a step's requests to the region are
 * one key of the plan, with their number as weight. A region without requests has a key of weight 0, and so a place in
 * the heat map. Nothing grows or is split: the simulation only adds up what was measured, by region and by the server
 * that had the region when the plan was begun.
 */
#include "design/watch.h"
#include "design/plan_priv.h"

#include <stdlib.h>

static rq_slice start_key_of(const rq_plan *p, size_t i)
{
    return rq_slice_of(p->bytes.ptr + p->known[i].offset, p->known[i].length);
}

static rq_err add_region(rq_plan *p, const rq_watched_region *r)
{
    rq_slice key = r->start_key;
    uint32_t offset = (uint32_t)p->bytes.len;
    RQ_TRY(rq__plan_add(p, key, 0, 0));
    p->known[p->known_count++] = (rq_plan_region){offset, (uint32_t)key.len, r->server};
    p->key_length += (double)key.len;
    return RQ_OK;
}

rq_err rq_plan_of_regions(const rq_watched_region *regions, size_t count, uint64_t servers,
                          rq_plan *ret, rq_error *why)
{
    *ret = (rq_plan){.name = "as measured",
                     .key = "",
                     .cost = "",
                     .scans = 1,
                     .servers = servers,
                     .regions = count,
                     .region_bytes = 10737418240.,
                     .has_reads = true};
    if (count == 0 || servers == 0)
        return rq_fail(why, RQ_E_NOT_FOUND, "the table has no open region");
    ret->known = calloc(count, sizeof *ret->known);
    if (ret->known == NULL || rq_buf_reserve(&ret->bytes, 1) != RQ_OK) return rq_no_memory(why);
    for (size_t i = 0; i < count; i++)
        if (add_region(ret, &regions[i]) != RQ_OK) return rq_no_memory(why);
    ret->key_length /= (double)count;
    return RQ_OK;
}

/* The region that has the key, or had it. */
static const rq_plan_region *region_of(const rq_plan *p, rq_slice key)
{
    size_t low = 0, high = p->known_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (rq_slice_compare(start_key_of(p, middle), key) <= 0)
            low = middle;
        else
            high = middle;
    }
    return &p->known[low];
}

rq_err rq_plan_add_requests(rq_plan *p, rq_slice start_key, uint32_t from, uint32_t to,
                            double reads, double writes, rq_error *why)
{
    const rq_plan_region *r = region_of(p, start_key);
    double requests = reads + writes;
    p->reads += reads;
    p->writes += writes;
    for (uint32_t step = from; step < to && requests > 0; step++)
        if (rq__plan_add_again(p, r->offset, r->length, step, requests / (to - from)) != RQ_OK)
            return rq_no_memory(why);
    return RQ_OK;
}

rq_err rq_plan_end_requests(rq_plan *p, double period_s, rq_error *why)
{
    p->period_s = period_s;
    if (p->reads + p->writes <= 0)
        return rq_fail(why, RQ_E_NOT_FOUND, "the table had no requests in this time");
    rq__plan_sort(p);
    return RQ_OK;
}
