/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the files of a compaction; contract in compaction.h.
 *
 * This file has the part shared by all policies (too large files, major compactions and their
 * period, the limits of a run), and the two policies that look at sizes only.
 *
 * Exploring: considers all contiguous runs of min_files … max_files files whose sizes are "in
 * ratio" (no file is larger than `ratio` times the sum of the others), and selects the longest run,
 * or the smallest of equally long ones. If the store has reached its blocking file count, the run
 * with the most files per byte wins, and if no run is in ratio, the smallest run is taken. HBASE:
 * ExploringCompactionPolicy, RatioBasedCompactionPolicy, SortedCompactionPolicy.
 *
 * HBase also leaves out files with EXCLUDE_FROM_MINOR_COMPACTION in their file info, so that its
 * inputs need not be adjacent. Here such files are compacted like others. */
#include "store/compaction_priv.h"

#include <math.h>

static uint64_t sum_of(const rq_store_file *files, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += files[i].size_bytes;
    return sum;
}

static bool in_ratio(const rq_store_file *files, size_t count, double ratio)
{
    uint64_t total = sum_of(files, count);
    for (size_t i = 0; i < count && count > 1; i++)
        if ((double)files[i].size_bytes > (double)(total - files[i].size_bytes) * ratio)
            return false;
    return true;
}

static double ratio_of(const rq_compaction_settings *s, bool offpeak)
{
    return offpeak ? s->offpeak_ratio : s->ratio;
}

static uint64_t max_bytes_of(const rq_compaction_settings *s, bool offpeak)
{
    return offpeak ? s->offpeak_max_bytes : s->max_bytes;
}

/* HBASE: ExploringCompactionPolicy.isBetterSelection; "replaceIfBetterBy" is 1.05 there. */
static bool is_better(const rq__run *best, const rq__run *r, bool at_limit)
{
    if (at_limit && best->bytes > 0 && r->bytes > 0)
        return (double)best->count / (double)best->bytes * 1.05 <
               (double)r->count / (double)r->bytes;
    return r->count > best->count || (r->count == best->count && r->bytes < best->bytes);
}

/* Files too large for a minor compaction, before all others. */
static size_t too_large(const rq_compaction_settings *s, const rq_store_file *files, size_t count,
                        bool offpeak)
{
    size_t skip = 0;
    while (skip < count && !files[skip].is_reference &&
           files[skip].size_bytes > max_bytes_of(s, offpeak))
        skip++;
    return skip;
}

rq__run rq__compaction_explore(const rq_compaction_settings *s, const rq_store_file *files,
                               size_t count, uint32_t min_files, bool offpeak, bool at_limit)
{
    rq__run best = {0};
    rq__run smallest = {.bytes = UINT64_MAX};
    for (size_t first = 0; first < count; first++) {
        for (size_t n = min_files; n <= s->max_files && first + n <= count; n++) {
            rq__run r = {first, n, sum_of(files + first, n)};
            if (at_limit && r.bytes < smallest.bytes) smallest = r;
            if (r.bytes > max_bytes_of(s, offpeak)) continue;
            if (r.bytes >= s->min_bytes && !in_ratio(files + first, n, ratio_of(s, offpeak)))
                continue;
            if (is_better(&best, &r, at_limit)) best = r;
        }
    }
    return best.count == 0 && at_limit ? smallest : best;
}

/* HBASE: RatioBasedCompactionPolicy.applyCompactionPolicy: each file is compared with the files
 * that would be compacted with it, at most max_files. */
rq__run rq__compaction_by_ratio(const rq_compaction_settings *s, const rq_store_file *files,
                                size_t count, uint32_t min_files, bool offpeak)
{
    size_t first = 0;
    while (first < count && count - first >= min_files) {
        size_t behind = count - first - 1;
        if (behind >= s->max_files) behind = s->max_files - 1;
        double others = (double)sum_of(files + first + 1, behind) * ratio_of(s, offpeak);
        uint64_t most = others >= 9.2e18 ? INT64_MAX : (uint64_t)others;
        if (most < s->min_bytes) most = s->min_bytes;
        if (files[first].size_bytes <= most) break;
        first++;
    }
    return (rq__run){first, count - first, sum_of(files + first, count - first)};
}

/* --- the period of major compactions ---------------------------------------------------------- */

/* java.util.Random.nextDouble after setSeed: like HBase, derives the jitter from the first file's
 * name, so that it is the same after a restart. */
static double java_random(int32_t seed)
{
    uint64_t mask = ((uint64_t)1 << 48) - 1;
    uint64_t x = ((uint64_t)(int64_t)seed ^ 0x5DEECE66Du) & mask;
    x = (x * 0x5DEECE66Du + 0xBu) & mask;
    uint64_t high = x >> 22;
    x = (x * 0x5DEECE66Du + 0xBu) & mask;
    return (double)((high << 27) + (x >> 21)) * 0x1.0p-53;
}

/* java.lang.String.hashCode; names are ASCII. */
static int32_t java_hash(const char *name)
{
    uint32_t h = 0;
    for (; *name != '\0'; name++)
        h = h * 31 + (uint8_t)*name;
    return (int32_t)h;
}

/* HBASE: SortedCompactionPolicy.getNextMajorCompactTime. */
static int64_t period_of(const rq_compaction_settings *s, const rq_store_file *files)
{
    if (s->major_period_ms <= 0 || s->major_jitter <= 0) return s->major_period_ms;
    double jitter = floor((double)s->major_period_ms * s->major_jitter + 0.5);
    double part = java_random(java_hash(files[0].name));
    double period = (double)s->major_period_ms + jitter - floor(2 * jitter * part + 0.5);
    return period >= 0x1p62 ? INT64_MAX : period <= 0 ? 0 : (int64_t)period;
}

bool rq__compaction_period_is_over(const rq_compaction_settings *s, const rq_store_file *files,
                                   size_t count, int64_t now_ms)
{
    if (count == 0) return false;
    int64_t period = period_of(s, files);
    int64_t oldest = INT64_MAX;
    for (size_t i = 0; i < count; i++)
        if (files[i].create_time_ms < oldest) oldest = files[i].create_time_ms;
    return period > 0 && oldest > 0 && oldest < rq__minus(now_ms, period);
}

static int64_t ttl_ms_of(const rq_family_schema *f)
{
    return f->ttl_s == RQ_TTL_FOREVER ? INT64_MAX : (int64_t)f->ttl_s * 1000;
}

/* HBASE: RatioBasedCompactionPolicy.shouldPerformMajorCompaction. A single file is compacted only
 * if some of its cells have expired. */
static bool sized_major_is_due(const rq_compaction_settings *s, const rq_family_schema *family,
                               const rq_store_file *files, size_t count, int64_t now_ms)
{
    if (!rq__compaction_period_is_over(s, files, count, now_ms)) return false;
    if (count > 1) return true;
    int64_t ttl = ttl_ms_of(family);
    if (!rq__has_time_range(files) || ttl == INT64_MAX) return false;
    return rq__minus(now_ms, files[0].min_ts) > ttl;
}

static bool major_is_due(const rq_compaction_settings *s, const rq_family_schema *family,
                         const rq_store_file *files, size_t count, int64_t now_ms)
{
    return s->policy == RQ_COMPACT_DATE_TIERED
               ? rq__tiered_major_is_due(s, family, files, count, now_ms)
               : sized_major_is_due(s, family, files, count, now_ms);
}

/* --- the choice ------------------------------------------------------------------------------- */

/* After a split or merge the store is rewritten, so that the parents' files can be removed. HBASE:
 * SortedCompactionPolicy.selectCompaction, isAfterSplit. */
static bool has_reference(const rq_store_file *files, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (files[i].is_reference) return true;
    return false;
}

static void choose_minor(const rq_compaction_settings *s, const rq_store_file *files, size_t count,
                         bool offpeak, bool at_limit, int64_t now_ms, rq_compaction_choice *ret)
{
    rq__run r;
    switch (s->policy) {
    case RQ_COMPACT_DATE_TIERED:
        rq__tiered_choose_minor(s, files, count, offpeak, at_limit, now_ms, ret);
        return;
    case RQ_COMPACT_RATIO:
        r = rq__compaction_by_ratio(s, files, count, s->min_files, offpeak);
        break;
    default:
        r = rq__compaction_explore(s, files, count, s->min_files, offpeak, at_limit);
        break;
    }
    ret->first = r.first;
    ret->count = r.count >= s->min_files ? r.count : 0;
}

rq_compaction_choice rq_compaction_choose(const rq_compaction_settings *s,
                                          const rq_family_schema *family,
                                          const rq_store_file *files, size_t count,
                                          bool wants_major, bool may_use_offpeak, int64_t now_ms)
{
    rq_compaction_choice c = {0};
    if (s->policy == RQ_COMPACT_FIFO && !has_reference(files, count)) return c;
    size_t skip = wants_major ? 0 : too_large(s, files, count, may_use_offpeak);
    const rq_store_file *rest = files + skip;
    size_t left = count - skip;
    bool major =
        wants_major || (left < s->max_files && major_is_due(s, family, rest, left, now_ms));
    if (major || has_reference(rest, left)) {
        c.count = left;
        if (s->policy == RQ_COMPACT_DATE_TIERED) c.tiers = RQ_TIER_ALL;
    } else {
        choose_minor(s, rest, left, may_use_offpeak, count >= s->blocking_files, now_ms, &c);
    }
    c.first += skip;
    if (!wants_major && c.count > s->max_files) c.count = s->max_files;
    c.all_files = c.count > 0 && c.count == count;
    c.major = major && c.all_files;
    c.offpeak = c.count > 0 && !c.all_files && may_use_offpeak;
    return c;
}

rq_compaction_choice rq_compaction_choose_quiet(const rq_compaction_settings *s,
                                                const rq_store_file *files, size_t count)
{
    rq_compaction_choice c = {0};
    if (s->policy != RQ_COMPACT_EXPLORING && s->policy != RQ_COMPACT_RATIO) return c;
    if (has_reference(files, count)) return c;
    size_t skip = too_large(s, files, count, true);
    rq__run r = rq__compaction_explore(s, files + skip, count - skip, 2, true, false);
    if (r.count == 0 || r.bytes < s->min_bytes) return c;
    c.first = skip + r.first;
    c.count = r.count;
    c.all_files = c.count == count;
    return c;
}

bool rq_compaction_is_expired(const rq_compaction_settings *s, const rq_family_schema *family,
                              const rq_store_file *files, size_t count, size_t i, int64_t now_ms)
{
    bool fifo = s->policy == RQ_COMPACT_FIFO && !has_reference(files, count);
    if (fifo && files[i].entry_count == 0) return true;
    int64_t ttl = ttl_ms_of(family);
    if (family->min_versions > 0 || ttl == INT64_MAX) return false;
    if (!fifo && (!s->drop_expired || i + 1 == count)) return false;
    return files[i].max_ts < now_ms - ttl;
}

bool rq_compaction_is_worth_a_look(const rq_compaction_settings *s, const rq_store_file *files,
                                   size_t count, const rq_family_schema *family, int64_t now_ms)
{
    for (size_t i = 0; i < count; i++)
        if (files[i].is_reference || rq_compaction_is_expired(s, family, files, count, i, now_ms))
            return true;
    if (s->policy == RQ_COMPACT_FIFO) return false;
    if (major_is_due(s, family, files, count, now_ms)) return true;
    if (s->policy != RQ_COMPACT_DATE_TIERED) return count >= s->min_files;
    rq_compaction_choice c = {0};
    rq__tiered_choose_minor(s, files, count, false, true, now_ms, &c);
    return c.count > 0;
}

/* --- names ------------------------------------------------------------------------------------ */

#define PACKAGE "org.apache.hadoop.hbase.regionserver."

static bool is_class(rq_slice given, const char *name)
{
    return rq_slice_eq(given, rq_slice_cstr(name));
}

bool rq_compaction_policy_within(rq_slice policy, rq_compaction_policy *ret)
{
    if (policy.len == 0 || is_class(policy, PACKAGE "compactions.ExploringCompactionPolicy"))
        *ret = RQ_COMPACT_EXPLORING;
    else if (is_class(policy, PACKAGE "compactions.RatioBasedCompactionPolicy"))
        *ret = RQ_COMPACT_RATIO;
    else
        return false;
    return true;
}

bool rq_compaction_policy_of(rq_slice engine, rq_slice policy, rq_compaction_policy *ret)
{
    if (is_class(engine, PACKAGE "DateTieredStoreEngine")) {
        *ret = RQ_COMPACT_DATE_TIERED;
        return policy.len == 0 ||
               is_class(policy, PACKAGE "compactions.DateTieredCompactionPolicy");
    }
    if (engine.len > 0 && !is_class(engine, PACKAGE "DefaultStoreEngine")) return false;
    if (is_class(policy, PACKAGE "compactions.FIFOCompactionPolicy")) {
        *ret = RQ_COMPACT_FIFO;
        return true;
    }
    return rq_compaction_policy_within(policy, ret);
}
