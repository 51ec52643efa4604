/* SPDX-License-Identifier: Apache-2.0 */
/* Marks of cells (sidecar.h). With cells' offsets alone a point read over 110 MB of cached small
 * cells took 2.8 us, most of it cache misses of the binary search over the cells themselves. */
#include "hfile/sidecar.h"

static inline uint32_t mark_of(const uint8_t *s, size_t len, size_t skip)
{
    if (len >= skip + 4) return rq_get_be32(s + skip);
    uint32_t mark = 0;
    for (size_t i = skip; i < skip + 4; i++)
        mark = mark << 8 | (i < len ? s[i] : 0);
    return mark;
}

static uint32_t shared_prefix(rq_slice a, rq_slice b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    size_t i = 0;
    while (i < n && a.ptr[i] == b.ptr[i])
        i++;
    return (uint32_t)i;
}

static uint8_t *keep(uint8_t *out, rq_slice from)
{
    if (from.len > 0) memcpy(out, from.ptr, from.len);
    return out + from.len;
}

static void keep_first(rq__sidecar *s, const rq_cell *first)
{
    uint8_t *out = (uint8_t *)s->words;
    out = keep(out, rq_cell_row(first));
    out = keep(out, rq_cell_family(first));
    (void)keep(out, rq_cell_qualifier(first));
}

static rq_slice first_row(const rq__sidecar *s)
{
    return rq_slice_of((const uint8_t *)s->words, s->row_len);
}

static rq_slice first_family(const rq__sidecar *s)
{
    return rq_slice_of((const uint8_t *)s->words + s->row_len, s->family_len);
}

static rq_slice first_qualifier(const rq__sidecar *s)
{
    return rq_slice_of((const uint8_t *)s->words + s->row_len + s->family_len, s->qualifier_len);
}

static rq_err set_marks(rq__sidecar *s, uint32_t *samples, uint32_t *marks, const uint32_t *at,
                        rq__cell_parser cell, void *arg)
{
    for (uint32_t i = 0; i < s->count; i++) {
        rq_cell c;
        RQ_TRY(cell(arg, at == NULL ? i : at[i], &c));
        marks[i] = s->source == RQ__MARK_ROW ? mark_of(c.row, c.row_len, s->skip)
                   : s->source == RQ__MARK_QUALIFIER
                       ? mark_of(c.qualifier, c.qualifier_len, s->skip)
                       : 0;
        /* A block with cells out of order is searched without marks: the result is wrong, but in
         * bounds. */
        if (i > 0 && marks[i] < marks[i - 1]) s->source = RQ__MARK_NONE;
        if (i % RQ__MARKS_PER_SAMPLE == 0) samples[i / RQ__MARKS_PER_SAMPLE] = marks[i];
    }
    return RQ_OK;
}

rq_err rq__sidecar_new(rq__slab *slab, const uint32_t *at, uint32_t count, rq_cell_order order,
                       rq__cell_parser cell, void *arg, rq__sidecar **ret)
{
    uint32_t samples = rq__sidecar_sample_count(count);
    rq_cell first;
    rq_cell last;
    *ret = NULL;
    RQ_TRY(cell(arg, at == NULL ? 0 : at[0], &first));
    RQ_TRY(cell(arg, at == NULL ? count - 1 : at[count - 1], &last));
    rq__mark_source source = RQ__MARK_NONE;
    uint32_t skip = 0;
    if (order == RQ_ORDER_DEFAULT && !rq_cell_same_row(&first, &last)) {
        source = RQ__MARK_ROW;
        skip = shared_prefix(rq_cell_row(&first), rq_cell_row(&last));
    } else if (order == RQ_ORDER_DEFAULT &&
               rq_slice_eq(rq_cell_family(&first), rq_cell_family(&last))) {
        source = RQ__MARK_QUALIFIER;
        skip = shared_prefix(rq_cell_qualifier(&first), rq_cell_qualifier(&last));
    }
    size_t key_len = (size_t)first.row_len + first.family_len + first.qualifier_len;
    size_t key_words = (key_len + sizeof(uint32_t) - 1) / sizeof(uint32_t);
    size_t hint_words = sizeof(rq__sidecar_hint) / sizeof(uint32_t);
    size_t words = key_words + samples + count;
    words += at != NULL ? count : hint_words * count + hint_words - 1; /* aligned hints */
    size_t heap_len;
    rq__sidecar *s = rq__slab_take(slab, sizeof(*s) + words * sizeof(s->words[0]), &heap_len);
    if (s == NULL) return RQ_OK;
    *s = (rq__sidecar){.heap_len = heap_len,
                       .count = count,
                       .skip = skip,
                       .qualifier_len = first.qualifier_len,
                       .row_len = first.row_len,
                       .family_len = first.family_len,
                       .source = (uint8_t)source};
    uint32_t *sample = s->words + key_words;
    uint32_t *marks = sample + samples;
    if (at != NULL)
        memcpy(marks + count, at, count * sizeof(at[0]));
    else
        for (uint32_t i = 0; i < count; i++)
            atomic_init(&rq__sidecar_hints(s)[i], 0);
    keep_first(s, &first);
    rq_err rc = set_marks(s, sample, marks, at, cell, arg);
    if (rc != RQ_OK) {
        rq__sidecar_free(slab, s);
        return rc;
    }
    *ret = s;
    return RQ_OK;
}

void rq__sidecar_free(rq__slab *slab, rq__sidecar *s)
{
    if (s != NULL) rq__slab_give(slab, s, s->heap_len);
}

/* Index of the first mark that is at least `mark`. */
static uint32_t lower_bound(const rq__sidecar *s, uint32_t mark)
{
    const uint32_t *samples = rq__sidecar_samples(s);
    const uint32_t *marks = rq__sidecar_marks(s);
    uint32_t low = 0;
    uint32_t high = rq__sidecar_sample_count(s->count);
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (samples[mid] < mark)
            low = mid + 1;
        else
            high = mid;
    }
    /* samples[low] is the first sample not below `mark`, so the position is behind the sample before
     * it, and not behind samples[low]. */
    uint32_t i = low == 0 ? 0 : (low - 1) * RQ__MARKS_PER_SAMPLE;
    __builtin_prefetch(marks + s->count + i); /* the place, while marks are compared */
    uint32_t end = low * RQ__MARKS_PER_SAMPLE < s->count ? low * RQ__MARKS_PER_SAMPLE : s->count;
    while (i < end && marks[i] < mark)
        i++;
    return i;
}

void rq__sidecar_narrow(const rq__sidecar *s, const rq_cell *key, uint32_t *ret_low,
                        uint32_t *ret_high)
{
    *ret_low = 0;
    *ret_high = s->count;
    if (s->source == RQ__MARK_NONE) return;
    rq_slice shared = first_row(s);
    rq_slice string = rq_cell_row(key);
    if (s->source == RQ__MARK_QUALIFIER) {
        /* Keys in another row or family are left to the full comparison. */
        if (!rq_slice_eq(shared, string) || !rq_slice_eq(first_family(s), rq_cell_family(key)))
            return;
        shared = first_qualifier(s);
        string = rq_cell_qualifier(key);
    }
    size_t n = string.len < s->skip ? string.len : s->skip;
    int c = n == 0 ? 0 : memcmp(string.ptr, shared.ptr, n);
    if (c > 0) {
        *ret_low = s->count;
        return;
    }
    if (c < 0 || n < s->skip) {
        *ret_high = 0;
        return;
    }
    uint32_t mark = mark_of(string.ptr, string.len, s->skip);
    *ret_low = lower_bound(s, mark);
    const uint32_t *marks = rq__sidecar_marks(s);
    uint32_t high = *ret_low;
    for (int i = 0; i < 8 && high < s->count && marks[high] == mark; i++)
        high++;
    if (high < s->count && marks[high] == mark)
        high = mark == UINT32_MAX ? s->count : lower_bound(s, mark + 1);
    *ret_high = high;
}
