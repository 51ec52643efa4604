/* SPDX-License-Identifier: Apache-2.0 */
/* FuzzyRowFilter: rows that match one of several keys in which some positions are free. For a row
 * that matches none, the hint is the next row that could. HBASE: FuzzyRowFilter 2.6.1.
 *
 * Masks have two encodings. A client writes 0 for a fixed position and 1 for a free one and
 * converts both before sending: fixed becomes -1, and free becomes 2 (`is_mask_v2`) or, with older
 * clients, 0. The server turns both into -1 and 0 by a shift right by two before each comparison,
 * which keeps -1 and turns 2 and 0 into 0. The shift is done here at the same moments as in HBase,
 * so that even masks that no client makes (5: free only from the second row on) behave alike.
 *
 * The next_row() of each key is kept until the scan has reached it. The smallest of them (the
 * greatest in a reversed scan) is the hint; when there is none left the scan is over. */
#include "filter/filter_priv.h"

#include "proto/filter.pb-c.h"

#include <stdlib.h>

#define FIXED (-1)
#define FREE 0

typedef struct fuzzy_key {
    uint8_t *key;
    int8_t *mask;
    size_t len;
    uint8_t shifts; /* of the mask so far */
    bool has_next;
    rq_buf next; /* the next row that could match, when the last hint was given */
} fuzzy_key;

typedef struct fuzzy_filter {
    rq_filter base;
    rq_pace *pace;
    rq_arena *arena; /* of the filter: charged for the keys' `next` */
    fuzzy_key *keys;
    size_t count;
    size_t last_found; /* tried first: neighbouring rows mostly match the same key */
    bool tracking;     /* `next` has been computed once for all keys */
    bool done;
    bool row_out;
} fuzzy_filter;

/* After five shifts no byte changes any more. */
static void shift_mask(fuzzy_key *k)
{
    if (k->shifts == 4) return;
    k->shifts++;
    for (size_t i = 0; i < k->len; i++)
        k->mask[i] = (int8_t)(k->mask[i] >> 2);
}

/* To hold it against a row once (pace.h). */
static int64_t units_of(const fuzzy_key *k)
{
    return (int64_t)(1 + k->len / 8);
}

/* A row shorter than the key matches if all its bytes match. */
static bool satisfies(const fuzzy_key *k, rq_slice row)
{
    size_t len = row.len < k->len ? row.len : k->len;
    for (size_t i = 0; i < len; i++)
        if ((row.ptr[i] & (uint8_t)k->mask[i]) != k->key[i]) return false;
    return true;
}

static void fuzzy_reset(rq_filter *f)
{
    ((fuzzy_filter *)f)->row_out = false;
}

static bool fuzzy_all_remaining(rq_filter *f)
{
    return ((fuzzy_filter *)f)->done;
}

static rq_err fuzzy_cell(rq_filter *f, const rq_cell *cell, rq_filter_code *ret, rq_error *why)
{
    (void)why;
    fuzzy_filter *z = (fuzzy_filter *)f;
    if (RQ_UNLIKELY(rq__pace_is_due(z->pace))) return RQ_E_AGAIN;
    z->pace->resuming = false;
    for (size_t n = 0; n < z->count; n++) {
        size_t i = (z->last_found + n) % z->count;
        z->pace->slice_left -= units_of(&z->keys[i]);
        shift_mask(&z->keys[i]);
        if (satisfies(&z->keys[i], rq_cell_row(cell))) {
            z->last_found = i;
            *ret = RQ_FILTER_INCLUDE;
            return RQ_OK;
        }
    }
    z->last_found = 0;
    z->row_out = true;
    *ret = RQ_FILTER_SEEK_NEXT_USING_HINT;
    return RQ_OK;
}

static bool fuzzy_row(rq_filter *f)
{
    return ((fuzzy_filter *)f)->row_out;
}

/* --- Hints ------------------------------------------------------------------------------------ */
static int scan_order(const fuzzy_filter *z, rq_slice a, rq_slice b)
{
    int c = rq_slice_compare(a, b);
    return z->base.reversed ? -c : c;
}

/* Computes the row to seek to: the smallest row greater than `row` that has the key's bytes in the
 * fixed positions. If setting the fixed positions makes `row` smaller, the last free position that
 * can be incremented is incremented, and all free positions behind it get their lowest value. In a
 * reversed scan the same in the other direction. False: there is no such row. */
static rq_err compute_next(const fuzzy_filter *z, fuzzy_key *k, rq_slice row)
{
    bool reversed = z->base.reversed;
    uint8_t highest = reversed ? 0 : 0xff;
    uint8_t lowest = reversed ? 0xff : 0;
    size_t len = row.len > k->len ? row.len : k->len;
    k->has_next = false;
    rq_buf_reset(&k->next);
    RQ_TRY(rq__filter_reserve(z->arena, &k->next, len + 1));
    uint8_t *out = k->next.ptr;
    if (k->len > 0) memcpy(out, k->key, k->len);
    memset(out + k->len, lowest, len - k->len);

    bool increased = false;
    size_t to_inc = SIZE_MAX;
    for (size_t i = 0; i < len; i++) {
        /* A mismatch ends the loop inside the row, unless the mask is one that no client makes. */
        uint8_t have = i < row.len ? row.ptr[i] : 0;
        int8_t mask = i < k->len ? k->mask[i] : FREE;
        if (mask == FREE) {
            out[i] = have;
            if (have != highest) to_inc = i;
        } else if (mask == FIXED && have != k->key[i]) {
            increased = reversed ? have > k->key[i] : have < k->key[i];
            break;
        }
    }
    if (!increased) {
        if (to_inc == SIZE_MAX) return RQ_OK;
        out[to_inc] = (uint8_t)(reversed ? out[to_inc] - 1 : out[to_inc] + 1);
        for (size_t i = to_inc + 1; i < len; i++)
            if (i >= k->len || k->mask[i] == FREE) out[i] = lowest;
    }
    if (!reversed) {
        /* Free positions at the end are zero and can be omitted. */
        size_t end = k->len < len ? k->len : len;
        while (end > 0 && k->mask[end - 1] == FREE)
            end--;
        if (to_inc != SIZE_MAX && end < to_inc + 1) end = to_inc + 1;
        len = end;
    }
    k->next.len = len;
    /* A next row that is not ahead of `row` is ignored; HBase would seek to it again and again.
     * Only masks that no client makes lead to such a row. */
    k->has_next = scan_order(z, rq_buf_slice(&k->next), row) > 0;
    return RQ_OK;
}

static rq_err fuzzy_hint(rq_filter *f, const rq_cell *cell, rq_cell *ret, bool *has)
{
    fuzzy_filter *z = (fuzzy_filter *)f;
    rq_slice row = rq_cell_row(cell);
    const fuzzy_key *nearest = NULL;
    for (size_t i = 0; i < z->count; i++) {
        fuzzy_key *k = &z->keys[i];
        if (z->tracking && !k->has_next) continue;
        z->pace->slice_left -= units_of(k);
        if (!z->tracking || scan_order(z, rq_buf_slice(&k->next), row) <= 0)
            RQ_TRY(compute_next(z, k, row));
        if (!k->has_next) continue;
        if (nearest == NULL ||
            scan_order(z, rq_buf_slice(&k->next), rq_buf_slice(&nearest->next)) < 0)
            nearest = k;
    }
    z->tracking = true;
    if (nearest == NULL) {
        z->done = true;
        return RQ_OK;
    }
    *ret = rq__filter_first_on_row(rq_buf_slice(&nearest->next));
    *has = true;
    return RQ_OK;
}

static const rq_filter_class fuzzy_class = {
    .reset = fuzzy_reset,
    .all_remaining = fuzzy_all_remaining,
    .cell = fuzzy_cell,
    .hint = fuzzy_hint,
    .row = fuzzy_row,
    .hinting = true,
};

/* --- Parsing ---------------------------------------------------------------------------------- */
/* HBASE: FuzzyRowFilter.preprocessMask and preprocessSearchKey, on a platform with unaligned reads.
 * A mask that consists of -1 and the free value only has been converted by the client. */
static void preprocess(fuzzy_key *k, int8_t free_value)
{
    bool converted = true;
    for (size_t i = 0; i < k->len; i++)
        if (k->mask[i] != FIXED && k->mask[i] != free_value) converted = false;
    for (size_t i = 0; i < k->len; i++) {
        if (!converted && k->mask[i] == 0)
            k->mask[i] = FIXED;
        else if (!converted && k->mask[i] == 1)
            k->mask[i] = free_value;
        if (k->mask[i] == free_value) k->key[i] = 0;
    }
}

static void release_keys(void *thing)
{
    fuzzy_filter *z = thing;
    for (size_t i = 0; i < z->count; i++)
        rq_buf_clear(&z->keys[i].next);
}

rq_err rq__parse_fuzzy_row(rq__parse *p, rq_slice bytes, rq_filter **ret)
{
    const Pb__FuzzyRowFilter *m = rq__parse_message(p, &pb__fuzzy_row_filter__descriptor, bytes);
    if (m == NULL) return rq__parse_failed(p);
    fuzzy_filter *f = (fuzzy_filter *)rq__parse_new_filter(p, sizeof *f, &fuzzy_class);
    if (f == NULL) return rq__parse_failed(p);
    RQ_TRY(rq__parse_pace(p, &f->pace));
    f->arena = p->arena;
    f->count = m->n_fuzzy_keys_data;
    p->parts += (uint32_t)f->count;
    f->keys = rq__parse_calloc(p, f->count, sizeof *f->keys);
    if (f->keys == NULL) return rq__parse_failed(p);
    /* HBase creates a PriorityQueue of this capacity, which must not be 0. */
    if (f->count == 0)
        return rq_fail(&p->why, RQ_E_DO_NOT_RETRY, "java.lang.IllegalArgumentException");
    for (size_t i = 0; i < f->count; i++) {
        const Pb__BytesBytesPair *pair = m->fuzzy_keys_data[i];
        if (pair->first.len != pair->second.len) {
            char key[200];
            char mask[200];
            rq_bytes_to_string(rq__slice_of_pb(pair->first), key, sizeof key);
            rq_bytes_to_string(rq__slice_of_pb(pair->second), mask, sizeof mask);
            return rq__parse_illegal(p, "Fuzzy pair lengths do not match: {%s,%s}", key, mask);
        }
        f->keys[i].key = pair->first.data;
        f->keys[i].mask = (int8_t *)pair->second.data;
        f->keys[i].len = pair->first.len;
        preprocess(&f->keys[i], m->has_is_mask_v2 && m->is_mask_v2 ? 2 : 0);
    }
    RQ_TRY(rq_arena_link(p->arena, release_keys, f));
    *ret = &f->base;
    return RQ_OK;
}
