/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the compaction policies (compaction.c, compaction_tiered.c). */
#ifndef RQ_STORE_COMPACTION_PRIV_H
#define RQ_STORE_COMPACTION_PRIV_H

#include "store/compaction.h"

typedef struct rq__run {
    size_t first;
    size_t count;
    uint64_t bytes;
} rq__run;

/* The run of files a policy selects. `at_limit`: the store has reached its blocking file count. */
rq__run rq__compaction_explore(const rq_compaction_settings *s, const rq_store_file *files,
                               size_t count, uint32_t min_files, bool offpeak, bool at_limit);
rq__run rq__compaction_by_ratio(const rq_compaction_settings *s, const rq_store_file *files,
                                size_t count, uint32_t min_files, bool offpeak);
/* Whether the period of major compactions has passed since the oldest file was written. */
bool rq__compaction_period_is_over(const rq_compaction_settings *s, const rq_store_file *files,
                                   size_t count, int64_t now_ms);

/* a - b, clamped on overflow: timestamps and periods come from clients and files. */
static inline int64_t rq__minus(int64_t a, int64_t b)
{
    int64_t r;
    if (!__builtin_sub_overflow(a, b, &r)) return r;
    return b > 0 ? INT64_MIN : INT64_MAX;
}

static inline bool rq__has_time_range(const rq_store_file *f)
{
    return f->min_ts != INT64_MIN || f->max_ts != INT64_MAX;
}

bool rq__tiered_major_is_due(const rq_compaction_settings *s, const rq_family_schema *family,
                             const rq_store_file *files, size_t count, int64_t now_ms);
/* Sets first, count and tiers of *ret. */
void rq__tiered_choose_minor(const rq_compaction_settings *s, const rq_store_file *files,
                             size_t count, bool offpeak, bool at_limit, int64_t now_ms,
                             rq_compaction_choice *ret);

#endif
