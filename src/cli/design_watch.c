/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at a cluster's status at equal intervals; the differences of the regions' counters are an interval's
 * requests. A region that was opened since the last look (a daughter, or on another server) has no difference yet, so its
 * requests of this interval are not counted. */
#include "cli/design_watch.h"

#include "base/clock.h"
#include "design/watch.h"

#include <stdlib.h>
#include <string.h>

#define SECOND_NS UINT64_C(1000000000)

/* Of a region of the table: the name is "table,start". */
static bool start_key_of(const rq__cluster_row *r, const char *table, rq_slice *ret)
{
    size_t len = strlen(table);
    if (r->name.len <= len || memcmp(r->name.ptr, table, len) != 0 || r->name.ptr[len] != ',')
        return false;
    *ret = rq_slice_of(r->name.ptr + len + 1, r->name.len - len - 1);
    return true;
}

/* The regions in the order of the names, which is that of the start keys. */
static rq_err begin(const rq__cluster *c, const char *table, rq_plan *ret, rq_error *why)
{
    size_t count = 0;
    rq_watched_region *list = calloc(c->regions.count + 1, sizeof *list);
    if (list == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < c->regions.count; i++) {
        const rq__cluster_row *r = &c->regions.list[i];
        if (r->server < c->servers.count && start_key_of(r, table, &list[count].start_key))
            list[count++].server = (uint32_t)r->server;
    }
    rq_err rc = rq_plan_of_regions(list, count, c->servers.count, ret, why);
    free(list);
    return rc;
}

static rq_err add_all(rq_plan *p, const rq__cluster *c, const char *table, double seconds,
                      uint32_t from, uint32_t to, rq_error *why)
{
    for (size_t i = 0; i < c->regions.count; i++) {
        const rq__cluster_row *r = &c->regions.list[i];
        rq_slice key;
        if (start_key_of(r, table, &key))
            RQ_TRY(rq_plan_add_requests(p, key, from, to, r->reads_s * seconds,
                                        r->writes_s * seconds, why));
    }
    return RQ_OK;
}

/* At most one each second, and a number of which the report's number of steps is a multiple. */
static uint32_t looks_in(uint64_t seconds)
{
    uint32_t looks = seconds < RQ_DESIGN_STEPS ? (uint32_t)seconds : RQ_DESIGN_STEPS;
    while (RQ_DESIGN_STEPS % looks != 0)
        looks--;
    return looks;
}

static void sleep_until(uint64_t ns)
{
    uint64_t now = rq_clock_ns(CLOCK_MONOTONIC);
    if (now < ns) rq_clock_sleep_ns(ns - now);
}

/* `before` has the first look, and is replaced by each one. */
static rq_err look_on(rq__cluster_link *link, rq__cluster *before, const char *table,
                      uint64_t seconds, rq_plan *p, rq_error *why)
{
    uint32_t looks = looks_in(seconds), steps = RQ_DESIGN_STEPS / looks;
    uint64_t begun_ns = rq_clock_ns(CLOCK_MONOTONIC);
    double total_s = 0;
    rq_err rc = RQ_OK;
    for (uint32_t i = 0; i < looks && rc == RQ_OK; i++) {
        rq__cluster now = {0};
        sleep_until(begun_ns + seconds * SECOND_NS / looks * (i + 1));
        rc = rq__cluster_look(link, &now, why);
        double passed_s = (double)(now.taken_ns - before->taken_ns) / 1e9;
        if (rc == RQ_OK) rq__cluster_rates(&now, before);
        if (rc == RQ_OK) rc = add_all(p, &now, table, passed_s, i * steps, (i + 1) * steps, why);
        total_s += passed_s;
        rq__cluster_clear(before);
        *before = now;
    }
    return rc == RQ_OK ? rq_plan_end_requests(p, total_s, why) : rc;
}

rq_err rq__watch_table(const rq__cluster_where *where, const char *table, uint64_t seconds,
                       rq_plan *ret, rq_error *why)
{
    rq__cluster_link link = {0};
    rq__cluster first = {0};
    *ret = (rq_plan){0};
    rq_err rc = rq__cluster_open(where, &link, why);
    if (rc == RQ_OK) rc = rq__cluster_look(&link, &first, why);
    if (rc == RQ_OK) rc = begin(&first, table, ret, why);
    if (rc == RQ_OK) rc = look_on(&link, &first, table, seconds, ret, why);
    rq__cluster_clear(&first);
    rq__cluster_close(&link);
    return rc;
}
