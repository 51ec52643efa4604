/* SPDX-License-Identifier: Apache-2.0 */
/* Filters on single versions: TimestampsFilter selects them, KeyOnlyFilter removes their value.
 * HBASE: the classes of these names. */
#include "filter/filter_priv.h"

#include "proto/filter.pb-c.h"

#include <stdlib.h>

/* --- TimestampsFilter ------------------------------------------------------------------------- */
typedef struct timestamps_filter {
    rq_filter base;
    int64_t *timestamps; /* ascending */
    size_t count;
    bool can_hint;
} timestamps_filter;

static size_t count_below(const timestamps_filter *t, int64_t timestamp)
{
    size_t low = 0;
    size_t high = t->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (t->timestamps[mid] < timestamp)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static rq_err timestamps_cell(rq_filter *f, const rq_cell *cell, rq_filter_code *ret, rq_error *why)
{
    (void)why;
    const timestamps_filter *t = (const timestamps_filter *)f;
    size_t below = count_below(t, cell->timestamp);
    int64_t min = t->count == 0 ? INT64_MAX : t->timestamps[0];
    if (below < t->count && t->timestamps[below] == cell->timestamp)
        *ret = RQ_FILTER_INCLUDE;
    else if (cell->timestamp < min)
        *ret = RQ_FILTER_NEXT_COL; /* the rest of the column is older still */
    else
        *ret = t->can_hint ? RQ_FILTER_SEEK_NEXT_USING_HINT : RQ_FILTER_SKIP;
    return RQ_OK;
}

static rq_err timestamps_hint(rq_filter *f, const rq_cell *cell, rq_cell *ret, bool *has)
{
    const timestamps_filter *t = (const timestamps_filter *)f;
    if (!t->can_hint) return RQ_OK;
    size_t below = count_below(t, cell->timestamp);
    rq_slice row = rq_cell_row(cell);
    rq_slice family = rq_cell_family(cell);
    rq_slice qualifier = rq_cell_qualifier(cell);
    *ret = below == 0
               ? rq_cell_last_on_column(row, family, qualifier)
               : rq_cell_first_on_column_ts(row, family, qualifier, t->timestamps[below - 1]);
    *has = true;
    return RQ_OK;
}

static const rq_filter_class timestamps_class = {
    .row_key = rq__filter_row_key_passes,
    .cell = timestamps_cell,
    .hint = timestamps_hint,
    .hinting = true,
};

static int compare_timestamps(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

rq_err rq__parse_timestamps(rq__parse *p, rq_slice bytes, rq_filter **ret)
{
    const Pb__TimestampsFilter *m = rq__parse_message(p, &pb__timestamps_filter__descriptor, bytes);
    if (m == NULL) return rq__parse_failed(p);
    for (size_t i = 0; i < m->n_timestamps; i++)
        if (m->timestamps[i] < 0)
            return rq__parse_illegal(p, "must be positive %lld", (long long)m->timestamps[i]);
    timestamps_filter *f =
        (timestamps_filter *)rq__parse_new_filter(p, sizeof *f, &timestamps_class);
    if (f == NULL) return rq__parse_failed(p);
    f->timestamps = m->timestamps;
    f->count = m->n_timestamps;
    f->can_hint = m->can_hint;
    if (f->count > 1) qsort(f->timestamps, f->count, sizeof *f->timestamps, compare_timestamps);
    *ret = &f->base;
    return RQ_OK;
}

/* --- KeyOnlyFilter ---------------------------------------------------------------------------- */
typedef struct key_only_filter {
    rq_filter base;
    bool len_as_value;
    uint8_t len[4]; /* the value of the last cell: its length, be32 */
} key_only_filter;

static void key_only_transform(rq_filter *f, const rq_cell *in, rq_cell *ret)
{
    key_only_filter *k = (key_only_filter *)f;
    rq_put_be32(k->len, in->value_len);
    if (ret != in) *ret = *in;
    ret->value = k->len;
    ret->value_len = k->len_as_value ? sizeof k->len : 0;
    ret->tags = NULL;
    ret->tags_len = 0;
    ret->seqid = 0;
}

static const rq_filter_class key_only_class = {
    .row_key = rq__filter_row_key_passes,
    .transform = key_only_transform,
    .forgets_rows = true,
};

rq_err rq__parse_key_only(rq__parse *p, rq_slice bytes, rq_filter **ret)
{
    const Pb__KeyOnlyFilter *m = rq__parse_message(p, &pb__key_only_filter__descriptor, bytes);
    if (m == NULL) return rq__parse_failed(p);
    key_only_filter *f = (key_only_filter *)rq__parse_new_filter(p, sizeof *f, &key_only_class);
    if (f == NULL) return rq__parse_failed(p);
    f->len_as_value = m->len_as_val;
    *ret = &f->base;
    return RQ_OK;
}
