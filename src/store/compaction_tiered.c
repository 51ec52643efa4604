/* SPDX-License-Identifier: Apache-2.0 */
/* Date-tiered compaction: keeps cells of similar age in the same files.
 *
 * Time is divided into windows; the first one contains the present. Going back in time,
 * windows_per_tier windows of one length are followed by windows that many times as long:
 *
 *     … [      64 h      ) [ 16 h ) [ 16 h ) [4 h)[4 h)[4 h)[ now )
 *
 * A file belongs to the window of its newest timestamp, or to the newer window of an older file; so
 * the files of a window are adjacent. A minor compaction merges the files of one window, the newest
 * one that has enough files; a major one writes one file per window. HBASE:
 * DateTieredCompactionPolicy, ExponentialCompactionWindowFactory.
 *
 * Where HBase's arithmetic would overflow and its loops not end, the search stops. */
#include "store/compaction_priv.h"

#include <stdlib.h>

#define BOUNDARIES_MAX 4096 /* older cells share one file */

typedef struct window {
    int64_t length, position; /* [position * length, (position + 1) * length) */
    int64_t grows_from;       /* windows that begin before this time do not grow */
} window;

static window window_of_now(const rq_tier_settings *t, int64_t now_ms)
{
    return (window){t->base_window_ms, now_ms / t->base_window_ms,
                    rq__minus(now_ms, t->max_tier_age_ms)};
}

static int64_t start_of(const window *w)
{
    int64_t r;
    return __builtin_mul_overflow(w->length, w->position, &r) ? INT64_MIN : r;
}

/* Position of the window of w's length that contains the time. */
static int64_t position_of(const window *w, int64_t ts)
{
    if (ts < 0) ts = rq__minus(ts, w->length - 1);
    return ts / w->length;
}

/* Less than, equal to or greater than 0: the window is before, around or after the time. */
static int compare_to(const window *w, int64_t ts)
{
    int64_t at = position_of(w, ts);
    return (w->position > at) - (w->position < at);
}

/* Steps back to the previous window. Skips windows up to the one at `position` as long as none of
 * them grows. False: there is no earlier window. */
static bool step_back_to(const rq_tier_settings *t, window *w, int64_t position)
{
    int64_t per_tier = t->windows_per_tier;
    int64_t length;
    bool over = __builtin_mul_overflow(w->length, per_tier, &length);
    bool in_tier = w->position % per_tier > 0;
    if (!in_tier && !over && rq__minus(start_of(w), length) >= w->grows_from) {
        w->length = length;
        w->position = w->position / per_tier - 1;
        return true;
    }
    /* once windows stop growing, no earlier one grows */
    int64_t stop = in_tier ? w->position - w->position % per_tier : INT64_MIN;
    w->position = position > stop ? position : stop;
    return !over || start_of(w) != INT64_MIN;
}

static bool step_back(const rq_tier_settings *t, window *w)
{
    return step_back_to(t, w, w->position - 1);
}

/* --- boundaries ------------------------------------------------------------------------------- */

static int64_t oldest_ts(const rq_store_file *files, size_t count)
{
    int64_t oldest = INT64_MAX;
    for (size_t i = 0; i < count; i++)
        if (rq__has_time_range(&files[i]) && files[i].min_ts < oldest) oldest = files[i].min_ts;
    return oldest;
}

/* Starts of the windows down to the oldest timestamp; `ret` NULL: only counts them. */
static size_t starts(const rq_tier_settings *t, int64_t oldest, int64_t now_ms, int64_t *ret)
{
    size_t n = 0;
    window w = window_of_now(t, now_ms);
    bool more = true;
    for (; more && n + 1 < BOUNDARIES_MAX && compare_to(&w, oldest) > 0; n++) {
        if (ret != NULL) ret[n] = start_of(&w);
        more = step_back(t, &w);
    }
    return n;
}

rq_err rq_compaction_boundaries(const rq_compaction_settings *s, const rq_compaction_choice *c,
                                const rq_store_file *files, int64_t now_ms, int64_t **ret,
                                size_t *ret_count)
{
    int64_t oldest = oldest_ts(files + c->first, c->count);
    size_t n = c->tiers == RQ_TIER_ALL      ? starts(&s->tiered, oldest, now_ms, NULL)
               : c->tiers == RQ_TIER_WINDOW ? 1
                                            : 0;
    int64_t *b = calloc(n + 1, sizeof *b);
    if (b == NULL) return RQ_E_NO_MEMORY;
    b[0] = INT64_MIN;
    if (c->tiers == RQ_TIER_WINDOW) {
        b[1] = c->window_start;
    } else if (n > 0) {
        (void)starts(&s->tiered, oldest, now_ms, b + 1);
        for (size_t i = 1, j = n; i < j; i++, j--) {
            int64_t swap = b[i];
            b[i] = b[j];
            b[j] = swap;
        }
    }
    *ret = b;
    *ret_count = n + 1;
    return RQ_OK;
}

/* --- major ------------------------------------------------------------------------------------ */

/* HBASE: DateTieredCompactionPolicy.shouldPerformMajorCompaction: some cells have expired, a file
 * was not written by a major compaction, or a window has several files. */
bool rq__tiered_major_is_due(const rq_compaction_settings *s, const rq_family_schema *family,
                             const rq_store_file *files, size_t count, int64_t now_ms)
{
    if (!rq__compaction_period_is_over(s, files, count, now_ms)) return false;
    rq_compaction_choice all = {.count = count, .tiers = RQ_TIER_ALL};
    int64_t *b;
    size_t n;
    if (rq_compaction_boundaries(s, &all, files, now_ms, &b, &n) != RQ_OK) return false;
    bool *taken = calloc(n, sizeof *taken);
    bool due = false;
    for (size_t i = 0; i < count && taken != NULL && !due; i++) {
        const rq_store_file *f = &files[i];
        bool known = rq__has_time_range(f);
        due = !f->major || f->bulk_loaded;
        if (known && family->ttl_s != RQ_TTL_FOREVER)
            due |= rq__minus(now_ms, f->min_ts) >= (int64_t)family->ttl_s * 1000;
        size_t low = n - 1;
        size_t high = n - 1;
        while (known && low > 0 && b[low] > f->min_ts)
            low--;
        while (known && high > 0 && b[high] > f->max_ts)
            high--;
        due |= low != high || taken[high];
        taken[high] = true;
    }
    free(taken);
    free(b);
    return due;
}

/* --- minor ------------------------------------------------------------------------------------ */

/* Whether some of these files, all files of one window, are worth a compaction. */
static bool choose_within(const rq_compaction_settings *s, const rq_store_file *files, size_t first,
                          size_t count, uint32_t min_files, bool offpeak, bool at_limit,
                          const window *w, rq_compaction_choice *ret)
{
    rq__run r = {.count = count};
    if (!at_limit)
        r = s->tiered.within == RQ_COMPACT_RATIO
                ? rq__compaction_by_ratio(s, files + first, count, min_files, offpeak)
                : rq__compaction_explore(s, files + first, count, min_files, offpeak, false);
    if (r.count == 0) return false;
    ret->first = first + r.first;
    ret->count = r.count;
    /* The output is split by windows if all files of the window are compacted: otherwise that would
     * not bring the cells of another window together. As in HBase, it is always split if the policy
     * inside windows is ratio. */
    bool divide = r.count == count || s->tiered.within == RQ_COMPACT_RATIO;
    if (divide && !s->tiered.single_output) {
        ret->tiers = RQ_TIER_WINDOW;
        ret->window_start = start_of(w);
    }
    return true;
}

static int64_t ts_of(const rq_store_file *f)
{
    return rq__has_time_range(f) ? f->max_ts : INT64_MIN;
}

void rq__tiered_choose_minor(const rq_compaction_settings *s, const rq_store_file *files,
                             size_t count, bool offpeak, bool at_limit, int64_t now_ms,
                             rq_compaction_choice *ret)
{
    int64_t oldest = rq__minus(now_ms, s->tiered.max_age_ms);
    int64_t *newest = calloc(count + 1, sizeof *newest); /* of the files up to each */
    if (newest == NULL) return;
    for (size_t i = 0; i < count; i++) {
        newest[i] = ts_of(&files[i]);
        if (i > 0 && newest[i - 1] > newest[i]) newest[i] = newest[i - 1];
    }
    window w = window_of_now(&s->tiered, now_ms);
    uint32_t min_files = s->tiered.incoming_min;
    for (size_t end = count; end > 0 && compare_to(&w, oldest) >= 0;) {
        if (compare_to(&w, newest[end - 1]) > 0) {
            /* Skips empty windows at once: with windows of a millisecond there may be 10^12 of
             * them. */
            if (!step_back_to(&s->tiered, &w, position_of(&w, newest[end - 1]))) break;
            min_files = s->min_files;
            continue;
        }
        size_t first = end;
        while (first > 0 && compare_to(&w, newest[first - 1]) <= 0)
            first--;
        if (end - first >= min_files &&
            choose_within(s, files, first, end - first, min_files, offpeak, at_limit, &w, ret))
            break;
        end = first;
    }
    free(newest);
}
