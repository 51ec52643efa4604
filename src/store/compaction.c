/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice of files for a compaction; contract in compaction.h.
 *
 * HBase's exploring policy: among all contiguous runs of min_files … max_files files whose sizes
 * are "in ratio" (no file larger than `ratio` times the sum of the others) take the longest, of
 * equally long ones the smallest. When the store is at its blocking count and no run is in ratio,
 * the smallest run is taken all the same; with files in ratio the best files-per-byte wins. HBASE:
 * ExploringCompactionPolicy, RatioBasedCompactionPolicy, SortedCompactionPolicy.
 */
#include "store/compaction.h"

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

typedef struct run {
    size_t first;
    size_t count;
    uint64_t bytes;
} run;

/* HBASE: ExploringCompactionPolicy.isBetterSelection; "replaceIfBetterBy" is 1.05 there. */
static bool is_better(const run *best, const run *r, bool may_be_stuck)
{
    if (may_be_stuck && best->bytes > 0 && r->bytes > 0)
        return (double)r->count / (double)r->bytes >
               (double)best->count * 1.05 / (double)best->bytes;
    return r->count > best->count || (r->count == best->count && r->bytes < best->bytes);
}

static run explore(const rq_compaction_settings *s, const rq_store_file *files, size_t count,
                   bool may_be_stuck)
{
    run best = {0};
    run smallest = {.bytes = UINT64_MAX};
    for (size_t first = 0; first < count; first++) {
        for (size_t n = s->min_files; n <= s->max_files && first + n <= count; n++) {
            run r = {first, n, sum_of(files + first, n)};
            if (may_be_stuck && r.bytes < smallest.bytes) smallest = r;
            if (r.bytes > s->max_bytes) continue;
            if (r.bytes >= s->min_bytes && !in_ratio(files + first, n, s->ratio)) continue;
            if (is_better(&best, &r, may_be_stuck)) best = r;
        }
    }
    return best.count == 0 && may_be_stuck ? smallest : best;
}

/* --- the period of major compactions ---------------------------------------------------------- */

static const rq_hfile_info *info_of(const rq_store_file *f)
{
    return rq_hfile_reader_info(f->reader);
}

/* The period with its jitter, drawn from the files' names so that a restart does not change it. */
static int64_t period_of(const rq_compaction_settings *s, const rq_store_file *files, size_t count)
{
    if (s->major_period_ms <= 0 || s->major_jitter <= 0) return s->major_period_ms;
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < count; i++)
        for (const char *p = files[i].name; *p != '\0'; p++)
            h = (h ^ (uint8_t)*p) * 0x100000001b3u;
    double part = (double)(h >> 11) / (double)((uint64_t)1 << 53);
    double jitter = (double)s->major_period_ms * s->major_jitter;
    return s->major_period_ms + (int64_t)(jitter - 2 * jitter * part);
}

/* HBASE: RatioBasedCompactionPolicy.shouldPerformMajorCompaction. */
static bool major_is_due(const rq_compaction_settings *s, const rq_family_schema *family,
                         const rq_store_file *files, size_t count, int64_t now_ms)
{
    int64_t period = period_of(s, files, count);
    if (count == 0 || period <= 0) return false;
    int64_t oldest = INT64_MAX;
    for (size_t i = 0; i < count; i++)
        if (info_of(&files[i])->create_time_ms < oldest)
            oldest = info_of(&files[i])->create_time_ms;
    if (oldest <= 0 || oldest >= now_ms - period) return false;
    if (count > 1) return true;
    if (family->ttl_s == RQ_TTL_FOREVER) return !files[0].major;
    /* One file: worth it only when something in it has expired. */
    return files[0].min_ts <= files[0].max_ts && files[0].min_ts >= 0 &&
           now_ms - files[0].min_ts > (int64_t)family->ttl_s * 1000;
}

/* --- the choice ------------------------------------------------------------------------------- */

/* After a split or merge the store is written anew, so that the other regions' files can go.
 * HBASE: SortedCompactionPolicy.selectCompaction, isAfterSplit. */
static bool has_reference(const rq_store_file *files, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (files[i].is_reference) return true;
    return false;
}

rq_compaction_choice rq_compaction_choose(const rq_compaction_settings *s,
                                          const rq_family_schema *family,
                                          const rq_store_file *files, size_t count,
                                          bool wants_major, int64_t now_ms)
{
    size_t skip = 0;
    bool after_split = has_reference(files, count);
    if (!wants_major && !after_split)
        while (skip < count && files[skip].size_bytes > s->max_bytes)
            skip++;
    const rq_store_file *rest = files + skip;
    size_t left = count - skip;
    bool major = wants_major || after_split ||
                 (left < s->max_files && major_is_due(s, family, rest, left, now_ms));
    rq_compaction_choice c = {.first = skip};
    if (major) {
        c.count = left;
        if (!wants_major && c.count > s->max_files) c.count = s->max_files;
    } else {
        run r = explore(s, rest, left, count >= s->blocking_files);
        c.first = skip + r.first;
        c.count = r.count;
    }
    c.all_files = c.count > 0 && c.count == count;
    c.major = major && c.all_files;
    return c;
}

bool rq_compaction_is_worth_a_look(const rq_compaction_settings *s, const rq_store_file *files,
                                   size_t count, const rq_family_schema *family, int64_t now_ms)
{
    return count >= s->min_files || has_reference(files, count) ||
           major_is_due(s, family, files, count, now_ms);
}
