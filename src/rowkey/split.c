/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Split keys. HBase's RegionSplitter in whole numbers; a sample by its quantiles; and formats
 * whose first parts are spread evenly, by fractions: the i-th of n split keys has i/n of all keys
 * before it, computed digit by digit. A part takes from the fraction f in [0, 1) what its first d
 * digits of base b tell, floor(f × b^d), and leaves the rest to the next part.
 */
#include "rowkey/rowkey_priv.h"

#include <stdio.h>
#include <stdlib.h>

/* Returns the keys in one allocation. Key i is the bytes from cuts[i] to cuts[i + 1] of `bytes`. */
static rq_err make_keys(const rq_buf *bytes, const size_t *cuts, size_t count, rq_key_list **ret,
                        rq_error *why)
{
    rq_key_list *keys = malloc(sizeof *keys + count * sizeof(rq_bytes) + bytes->len);
    if (keys == NULL) return rq_no_memory(why);
    rq_bytes *items = (rq_bytes *)(keys + 1);
    uint8_t *to = (uint8_t *)(items + count);
    if (bytes->len > 0) memcpy(to, bytes->ptr, bytes->len);
    for (size_t i = 0; i < count; i++)
        items[i] = (rq_bytes){to + cuts[i], cuts[i + 1] - cuts[i]};
    *keys = (rq_key_list){.count = count, .items = items};
    *ret = keys;
    return RQ_OK;
}

void rq_key_list_free(rq_key_list *keys)
{
    free(keys);
}

static rq_err check_regions(size_t regions, rq_error *why)
{
    if (regions >= 2 && regions <= RQ__REGIONS_MAX) return RQ_OK;
    return rq_fail(why, RQ_E_INVALID, "%zu regions; allowed are 2 to %d", regions, RQ__REGIONS_MAX);
}

/* --- HBase's RegionSplitter ------------------------------------------------------------------- */

/* The i-th split key, of 8 bytes, is step × i. */
static void write_split(rq_split_kind kind, uint64_t v, uint8_t out[8])
{
    char text[24];
    if (kind == RQ_SPLIT_UNIFORM) {
        rq_put_be64(out, v);
        return;
    }
    snprintf(text, sizeof text, kind == RQ_SPLIT_HEX ? "%08llx" : "%08llu", (unsigned long long)v);
    memcpy(out, text, 8);
}

rq_err rq__split_keys(rq_split_kind kind, size_t regions, rq_key_list **ret, rq_error *why)
{
    static const unsigned __int128 ranges[] = {
        [RQ_SPLIT_HEX] = (unsigned __int128)1 << 32,
        [RQ_SPLIT_DECIMAL] = 100000000,
        [RQ_SPLIT_UNIFORM] = (unsigned __int128)1 << 64,
    };
    if ((unsigned)kind >= RQ_ARRAY_LEN(ranges))
        return rq_fail(why, RQ_E_INVALID, "unknown kind of split keys");
    RQ_TRY(check_regions(regions, why));
    rq_buf bytes = {0};
    size_t *cuts = calloc(regions, sizeof *cuts);
    rq_err rc = cuts == NULL ? RQ_E_NO_MEMORY : RQ_OK;
    uint64_t step = (uint64_t)(ranges[kind] / regions);
    for (size_t i = 1; i < regions && rc == RQ_OK; i++) {
        uint8_t key[8];
        write_split(kind, step * i, key);
        rc = rq_buf_append(&bytes, key, sizeof key);
        cuts[i] = bytes.len;
    }
    rc = rc == RQ_OK ? make_keys(&bytes, cuts, regions - 1, ret, why) : rq_no_memory(why);
    rq_buf_clear(&bytes);
    free(cuts);
    return rc;
}

/* --- samples ---------------------------------------------------------------------------------- */

typedef struct weighed {
    rq_slice key;
    uint64_t weight;
} weighed;

static int by_key(const void *a, const void *b)
{
    return rq_slice_compare(((const weighed *)a)->key, ((const weighed *)b)->key);
}

/* The split keys found so far. `at`: the position of the last key that differs from its predecessor, 0: there is none yet;
 * `before`: the sum of the weights before it. */
typedef struct cutting {
    const weighed *w;
    size_t at, last_cut;
    unsigned __int128 before;
    rq_buf *bytes;
    size_t *cuts, count;
} cutting;

/* Several shares may be nearest to the same key, which is then used only once. */
static rq_err cut_at(cutting *c, size_t i)
{
    if (i == c->last_cut) return RQ_OK;
    RQ_TRY(rq_buf_append(c->bytes, c->w[i].key.ptr, c->w[i].key.len));
    c->cuts[++c->count] = c->bytes->len;
    c->last_cut = i;
    return RQ_OK;
}

/* Region number `share` begins at the key before which the sum is nearest to that many regions' shares of the total; if two are
 * equally near, at the later one. All sums are multiplied by the number of regions, so that shares are whole. */
static rq_err cut(const weighed *w, size_t count, size_t regions, rq_buf *bytes, size_t *cuts,
                  size_t *ret_count)
{
    unsigned __int128 total = 0, before = 0;
    cutting c = {.w = w, .bytes = bytes, .cuts = cuts};
    size_t share = 1;
    for (size_t i = 0; i < count; i++)
        total += w[i].weight;
    for (size_t i = 1; i < count && share < regions; i++) {
        before += w[i - 1].weight;
        if (rq_slice_eq(w[i].key, w[i - 1].key)) continue;
        for (; share < regions && before * regions >= total * share; share++) {
            unsigned __int128 wanted = total * share;
            bool is_later = c.at == 0 || before * regions - wanted <= wanted - c.before * regions;
            RQ_TRY(cut_at(&c, is_later ? i : c.at));
        }
        c.at = i;
        c.before = before;
    }
    if (share < regions) RQ_TRY(cut_at(&c, c.at)); /* nothing if at is 0 */
    *ret_count = c.count;
    return RQ_OK;
}

rq_err rq__split_sample(const rq_bytes *keys, const uint64_t *weights, size_t count, size_t regions,
                        rq_key_list **ret, rq_error *why)
{
    RQ_TRY(check_regions(regions, why));
    rq_buf bytes = {0};
    size_t found = 0;
    weighed *w = calloc(count + 1, sizeof *w);
    size_t *cuts = calloc(regions, sizeof *cuts);
    rq_err rc = w == NULL || cuts == NULL ? rq_no_memory(why) : RQ_OK;
    for (size_t i = 0; i < count && rc == RQ_OK; i++) {
        w[i] = (weighed){rq_slice_of(keys[i].data, keys[i].len), weights == NULL ? 1 : weights[i]};
        if (keys[i].len == 0) rc = rq_fail(why, RQ_E_INVALID, "key %zu is empty", i);
    }
    if (rc == RQ_OK) {
        qsort(w, count, sizeof *w, by_key);
        rc = cut(w, count, regions, &bytes, cuts, &found);
        rc = rc == RQ_OK ? make_keys(&bytes, cuts, found, ret, why) : rq_no_memory(why);
    }
    rq_buf_clear(&bytes);
    free(w);
    free(cuts);
    return rc;
}

/* --- formats ---------------------------------------------------------------------------------- */

/* What is left of i/n, as a fraction; n fits 32 bits. */
typedef struct fraction {
    uint64_t over, under;
} fraction;

/* The next digit of base `base`. */
static uint64_t next_digit(fraction *f, uint64_t base)
{
    unsigned __int128 v = (unsigned __int128)f->over * base;
    uint64_t digit = (uint64_t)(v / f->under);
    f->over = (uint64_t)(v % f->under);
    return digit;
}

static rq_err append_even(const rq__part *p, fraction *f, rq_buf *out)
{
    static const char letters[] = RQ__GEOHASH_LETTERS, hex[] = "0123456789abcdef";
    if (p->kind == RQ__PART_SALT || p->kind == RQ__PART_PHOENIX)
        return rq__salt_append(p, (uint32_t)next_digit(f, p->buckets), out);
    for (uint32_t i = 0; i < p->width && (f->over > 0 || i == 0); i++) {
        uint8_t b;
        if (p->kind == RQ__PART_GEOHASH)
            b = (uint8_t)letters[next_digit(f, 32)];
        else if (p->kind == RQ__PART_DIGITS)
            b = (uint8_t)('0' + next_digit(f, 10));
        else if (p->hex)
            b = (uint8_t)hex[next_digit(f, 16)];
        else
            b = (uint8_t)next_digit(f, 256);
        RQ_TRY(rq_buf_append_u8(out, b));
    }
    return RQ_OK;
}

static bool is_even(const rq__part *p)
{
    if (p->opt || (p->desc && p->kind == RQ__PART_GEOHASH)) return false;
    return rq__part_is_computed(p) || p->kind == RQ__PART_UUID || p->kind == RQ__PART_GEOHASH ||
           (p->rev && (p->kind == RQ__PART_UINT || p->kind == RQ__PART_DIGITS));
}

static rq_err append_split(const rq_key_format *f, fraction x, rq_buf *out, rq_error *why)
{
    for (size_t i = 0; i < f->count && (x.over > 0 || i == 0); i++) {
        const rq__part *p = &f->parts[i];
        if (p->kind == RQ__PART_LITERAL) {
            RQ_TRY(rq_buf_append(out, p->literal.ptr, p->literal.len));
            continue;
        }
        if (!is_even(p))
            return rq__part_fail(p, RQ_E_UNSUPPORTED, why,
                                 "how the format's values spread is unknown: give a sample%s",
                                 i == 0 ? "" : ", or a multiple of the buckets");
        RQ_TRY(append_even(p, &x, out));
    }
    return RQ_OK;
}

/* Appends the keys, each larger than the one before; fewer if there are more regions than keys. */
static rq_err append_splits(const rq_key_format *f, size_t regions, rq_buf *bytes, size_t *cuts,
                            size_t *ret_count, rq_error *why)
{
    size_t last = 0; /* where the key before begins: at first the smallest, which splits nothing */
    RQ_TRY(append_split(f, (fraction){0, regions}, bytes, why));
    cuts[0] = bytes->len;
    for (size_t i = 1; i < regions; i++) {
        size_t begin = bytes->len;
        RQ_TRY(append_split(f, (fraction){i, regions}, bytes, why));
        rq_slice before = rq_slice_of(bytes->ptr + last, begin - last);
        rq_slice now = rq_slice_of(bytes->ptr + begin, bytes->len - begin);
        if (rq_slice_compare(now, before) <= 0) {
            bytes->len = begin;
            continue;
        }
        last = begin;
        cuts[++*ret_count] = bytes->len;
    }
    return RQ_OK;
}

rq_err rq__split_format(const rq_key_format *f, size_t regions, rq_key_list **ret, rq_error *why)
{
    RQ_TRY(check_regions(regions, why));
    rq_buf bytes = {0};
    size_t found = 0;
    size_t *cuts = calloc(regions, sizeof *cuts);
    rq_err rc = cuts == NULL ? rq_no_memory(why) : RQ_OK;
    if (rc == RQ_OK) rc = append_splits(f, regions, &bytes, cuts, &found, why);
    if (rc == RQ_OK) rc = make_keys(&bytes, cuts, found, ret, why);
    if (rc == RQ_E_NO_MEMORY) rc = rq_no_memory(why);
    rq_buf_clear(&bytes);
    free(cuts);
    return rc;
}
