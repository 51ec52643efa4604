/* SPDX-License-Identifier: Apache-2.0 */
/* Compactions of regions that were written to and are no longer.
 *
 * The ordinary policy merges files of similar size, three or more. What a load leaves, a large file
 * and some smaller ones, stays until the next load or the major compaction of the week, and every
 * short scan reads a block of each. Merging them while the load lasts costs more than it brings: the
 * next flush would add a file again. So it is done once, after the last write: files that differ by
 * less than the off-peak ratio are merged (rq_compaction_choose_quiet), which writes at most
 * 1 + ratio bytes for each byte of the smaller ones.
 *
 * A region that was only opened is left alone: a server that takes over many regions would rewrite
 * all of them. */
#include "region/engine_priv.h"

void rq__quiet_look(rq_region *r)
{
    rq_executor *ex = r->env.executor;
    uint64_t point = rq__region_read_point(r);
    uint64_t now_ns = ex->now_ns(ex);
    uint64_t quiet_ms = r->engine->quiet_ms;
    if (point != r->quiet_point) {
        r->quiet_point = point;
        r->quiet_since_ns = now_ns;
        return;
    }
    if (quiet_ms == 0 || r->quiet_since_ns == 0 || r->schema->is_meta ||
        now_ns - r->quiet_since_ns < quiet_ms * 1000000)
        return;
    r->quiet_since_ns = 0;
    for (size_t i = 0; i < r->store_count; i++)
        rq__store_request_compaction(&r->stores[i], RQ__WANT_QUIET);
}
