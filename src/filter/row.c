/* SPDX-License-Identifier: Apache-2.0 */
/* Filters on whole rows: PrefixFilter, InclusiveStopFilter, PageFilter, RandomRowFilter,
 * FilterAllFilter. HBASE: the classes of these names. */
#include "base/random.h"
#include "filter/filter_priv.h"

#include "proto/filter.pb-c.h"

/* --- PrefixFilter ----------------------------------------------------------------------------- */
typedef struct prefix_filter {
    rq_filter base;
    rq_slice prefix;
    bool has_prefix;
    bool passed; /* the scan is behind the last row with the prefix */
    bool row_out;
} prefix_filter;

static void prefix_reset(rq_filter *f)
{
    ((prefix_filter *)f)->row_out = true;
}

static bool prefix_all_remaining(rq_filter *f)
{
    return ((prefix_filter *)f)->passed;
}

static rq_err prefix_row_key(rq_filter *f, rq_slice row, bool *ret, rq_error *why)
{
    (void)why;
    prefix_filter *p = (prefix_filter *)f;
    *ret = true;
    if (!p->has_prefix || p->passed || row.len < p->prefix.len) return RQ_OK;
    int c = rq_bytes_compare(row.ptr, p->prefix.len, p->prefix.ptr, p->prefix.len);
    if (f->reversed ? c < 0 : c > 0) p->passed = true;
    *ret = p->row_out = c != 0;
    return RQ_OK;
}

/* Rows before the prefix are before all rows that have it. */
static bool prefix_row_hint(const rq_filter *f, rq_slice row, rq_slice *ret)
{
    (void)row;
    const prefix_filter *p = (const prefix_filter *)f;
    *ret = p->prefix;
    return p->prefix.len > 0 && !p->passed;
}

static rq_err prefix_cell(rq_filter *f, const rq_cell *cell, rq_filter_code *ret, rq_error *why)
{
    (void)cell, (void)why;
    *ret = ((prefix_filter *)f)->row_out ? RQ_FILTER_NEXT_ROW : RQ_FILTER_INCLUDE;
    return RQ_OK;
}

static bool prefix_row(rq_filter *f)
{
    return ((prefix_filter *)f)->row_out;
}

static const rq_filter_class prefix_class = {
    .reset = prefix_reset,
    .all_remaining = prefix_all_remaining,
    .row_key = prefix_row_key,
    .row_hint = prefix_row_hint,
    .cell = prefix_cell,
    .row = prefix_row,
    .forgets_rows = true,
};

rq_err rq__parse_prefix(rq__parse *p, rq_slice bytes, rq_filter **ret)
{
    const Pb__PrefixFilter *m = rq__parse_message(p, &pb__prefix_filter__descriptor, bytes);
    if (m == NULL) return rq__parse_failed(p);
    prefix_filter *f = (prefix_filter *)rq__parse_new_filter(p, sizeof *f, &prefix_class);
    if (f == NULL) return rq__parse_failed(p);
    f->has_prefix = m->has_prefix;
    f->prefix = rq__slice_of_pb(m->prefix);
    f->row_out = true;
    *ret = &f->base;
    return RQ_OK;
}

/* --- InclusiveStopFilter ---------------------------------------------------------------------- */
typedef struct stop_filter {
    rq_filter base;
    rq_slice stop;
    bool has_stop;
    bool done;
} stop_filter;

static bool stop_all_remaining(rq_filter *f)
{
    return ((stop_filter *)f)->done;
}

static rq_err stop_row_key(rq_filter *f, rq_slice row, bool *ret, rq_error *why)
{
    stop_filter *s = (stop_filter *)f;
    if (!s->done) {
        if (!s->has_stop) return rq__filter_throw(why, RQ__NULL_POINTER);
        int c = rq_slice_compare(row, s->stop);
        s->done = f->reversed ? c < 0 : c > 0;
    }
    *ret = s->done;
    return RQ_OK;
}

static rq_err stop_cell(rq_filter *f, const rq_cell *cell, rq_filter_code *ret, rq_error *why)
{
    (void)cell, (void)why;
    *ret = ((stop_filter *)f)->done ? RQ_FILTER_NEXT_ROW : RQ_FILTER_INCLUDE;
    return RQ_OK;
}

static const rq_filter_class stop_class = {
    .all_remaining = stop_all_remaining,
    .row_key = stop_row_key,
    .cell = stop_cell,
};

rq_err rq__parse_inclusive_stop(rq__parse *p, rq_slice bytes, rq_filter **ret)
{
    const Pb__InclusiveStopFilter *m =
        rq__parse_message(p, &pb__inclusive_stop_filter__descriptor, bytes);
    if (m == NULL) return rq__parse_failed(p);
    stop_filter *f = (stop_filter *)rq__parse_new_filter(p, sizeof *f, &stop_class);
    if (f == NULL) return rq__parse_failed(p);
    f->has_stop = m->has_stop_row_key;
    f->stop = rq__slice_of_pb(m->stop_row_key);
    *ret = &f->base;
    return RQ_OK;
}

/* --- PageFilter: so many rows, of each region ------------------------------------------------- */
typedef struct page_filter {
    rq_filter base;
    int64_t size;
    int64_t accepted;
} page_filter;

static bool page_all_remaining(rq_filter *f)
{
    const page_filter *p = (const page_filter *)f;
    return p->accepted >= p->size;
}

static bool page_row(rq_filter *f)
{
    page_filter *p = (page_filter *)f;
    p->accepted++;
    return p->accepted > p->size;
}

static const rq_filter_class page_class = {
    .all_remaining = page_all_remaining,
    .has_filter_row = rq__filter_has_filter_row,
    .row = page_row,
    .forgets_rows = true,
};

rq_err rq__parse_page(rq__parse *p, rq_slice bytes, rq_filter **ret)
{
    const Pb__PageFilter *m = rq__parse_message(p, &pb__page_filter__descriptor, bytes);
    if (m == NULL) return rq__parse_failed(p);
    if (m->page_size < 0)
        return rq__parse_illegal(p, "must be positive %lld", (long long)m->page_size);
    page_filter *f = (page_filter *)rq__parse_new_filter(p, sizeof *f, &page_class);
    if (f == NULL) return rq__parse_failed(p);
    f->size = m->page_size;
    *ret = &f->base;
    return RQ_OK;
}

/* --- RandomRowFilter -------------------------------------------------------------------------- */
typedef struct random_filter {
    rq_filter base;
    float chance;
    bool row_out;
    rq_random dice;
} random_filter;

static void random_reset(rq_filter *f)
{
    ((random_filter *)f)->row_out = false;
}

static rq_err random_row_key(rq_filter *f, rq_slice row, bool *ret, rq_error *why)
{
    (void)row, (void)why;
    random_filter *r = (random_filter *)f;
    if (r->chance < 0)
        r->row_out = true;
    else if (r->chance > 1)
        r->row_out = false;
    else /* 24 bits in [0, 1), as Java's nextFloat; NaN excludes */
        r->row_out = !((float)(rq_random_next(&r->dice) >> 40) * 0x1p-24f < r->chance);
    *ret = r->row_out;
    return RQ_OK;
}

static rq_err random_cell(rq_filter *f, const rq_cell *cell, rq_filter_code *ret, rq_error *why)
{
    (void)cell, (void)why;
    *ret = ((random_filter *)f)->row_out ? RQ_FILTER_NEXT_ROW : RQ_FILTER_INCLUDE;
    return RQ_OK;
}

static bool random_row(rq_filter *f)
{
    return ((random_filter *)f)->row_out;
}

static void random_seed(rq_filter *f, uint64_t seed)
{
    rq_random_seed(&((random_filter *)f)->dice, seed);
}

static const rq_filter_class random_class = {
    .reset = random_reset,
    .row_key = random_row_key,
    .cell = random_cell,
    .has_filter_row = rq__filter_has_filter_row,
    .row = random_row,
    .set_seed = random_seed,
};

rq_err rq__parse_random_row(rq__parse *p, rq_slice bytes, rq_filter **ret)
{
    const Pb__RandomRowFilter *m = rq__parse_message(p, &pb__random_row_filter__descriptor, bytes);
    if (m == NULL) return rq__parse_failed(p);
    random_filter *f = (random_filter *)rq__parse_new_filter(p, sizeof *f, &random_class);
    if (f == NULL) return rq__parse_failed(p);
    f->chance = m->chance;
    rq_random_seed(&f->dice, 1);
    *ret = &f->base;
    return RQ_OK;
}

/* --- FilterAllFilter: nothing passes; HBase's own tests send it ------------------------------- */
static rq_err nothing_cell(rq_filter *f, const rq_cell *cell, rq_filter_code *ret, rq_error *why)
{
    (void)f, (void)cell, (void)why;
    *ret = RQ_FILTER_SKIP;
    return RQ_OK;
}

static bool nothing_row(rq_filter *f)
{
    (void)f;
    return true;
}

static const rq_filter_class nothing_class = {
    .cell = nothing_cell,
    .has_filter_row = rq__filter_has_filter_row,
    .row = nothing_row,
};

rq_err rq__parse_filter_all(rq__parse *p, rq_slice bytes, rq_filter **ret)
{
    if (rq__parse_message(p, &pb__filter_all_filter__descriptor, bytes) == NULL)
        return rq__parse_failed(p);
    *ret = rq__parse_new_filter(p, sizeof **ret, &nothing_class);
    return *ret == NULL ? rq__parse_failed(p) : RQ_OK;
}
