/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and values as functions of their numbers. */
#include "load/rows.h"

#include <stdio.h>
#include <stdlib.h>

#define VALUE_VERSION_LEN 8

void rq__rows_name(rq_rows *r)
{
    if (r->families == 1)
        snprintf(r->family_names[0], sizeof r->family_names[0], "cf");
    else
        for (unsigned i = 0; i < r->families; i++)
            snprintf(r->family_names[i], sizeof r->family_names[i], "f%02u", i % 16);
    for (unsigned i = 0; i < r->columns; i++)
        snprintf(r->qualifier_names[i], sizeof r->qualifier_names[i], "q%04u", i % RQ_COLUMNS_MAX);
}

rq_err rq__rows_history(rq_rows *r, uint64_t keys)
{
    if (keys <= r->history_cap) return RQ_OK;
    uint64_t cap = keys + keys / 2;
    rq_row_history *h = realloc(r->history, cap * sizeof *h);
    if (h == NULL) return RQ_E_NO_MEMORY;
    memset(h + r->history_cap, 0, (cap - r->history_cap) * sizeof *h);
    r->history = h;
    r->history_cap = cap;
    return RQ_OK;
}

void rq__rows_clear(rq_rows *r)
{
    free(r->history);
    r->history = NULL;
    r->history_cap = 0;
}

void rq__rows_digits(const rq_rows *r, uint64_t i, char out[RQ_ROW_DIGITS + 1])
{
    static const char digits[] = "0123456789abcdef";
    uint64_t x = r->hashed ? rq__mix64(i) : i;
    for (int k = RQ_ROW_DIGITS - 1; k >= 0; k--, x >>= 4)
        out[k] = digits[x & 15];
    out[RQ_ROW_DIGITS] = 0;
}

rq_err rq__rows_key(const rq_rows *r, uint64_t i, rq_buf *out)
{
    char digits[RQ_ROW_DIGITS + 1];
    uint64_t hash = rq__mix64(i ^ UINT64_C(0x9e3779b97f4a7c15));
    uint32_t len = rq__sizes_of(&r->key_len, hash);
    rq__rows_digits(r, i, digits);
    RQ_TRY(rq_buf_append(out, digits, RQ_ROW_DIGITS));
    for (uint32_t k = RQ_ROW_DIGITS; k < len; k++)
        RQ_TRY(rq_buf_append_u8(out, (uint8_t)('a' + (hash >> k % 60) % 26)));
    return RQ_OK;
}

bool rq__rows_number(const rq_rows *r, rq_slice row, uint64_t *ret)
{
    uint64_t x = 0;
    if (row.len < RQ_ROW_DIGITS) return false;
    for (int k = 0; k < RQ_ROW_DIGITS; k++) {
        uint8_t d = row.ptr[k];
        if (d >= '0' && d <= '9')
            x = x << 4 | (uint64_t)(d - '0');
        else if (d >= 'a' && d <= 'f')
            x = x << 4 | (uint64_t)(d - 'a' + 10);
        else
            return false;
    }
    *ret = r->hashed ? rq__unmix64(x) : x;
    return true;
}

/* --- values ----------------------------------------------------------------------------------- */

static uint64_t value_seed(uint64_t key, uint32_t column, uint64_t version)
{
    return rq__mix64(rq__mix64(rq__mix64(key) + column) + version);
}

/* Eight bytes of the stream at a time. */
static uint64_t value_word(uint64_t seed, size_t n)
{
    return rq__mix64(seed + (n + 1) * UINT64_C(0x9e3779b97f4a7c15));
}

rq_err rq__rows_value(const rq_rows *r, uint64_t key, uint32_t column, uint64_t version,
                      rq_buf *out)
{
    uint64_t seed = value_seed(key, column, version);
    size_t len = rq__sizes_of(&r->value_len, seed);
    uint8_t head[VALUE_VERSION_LEN];
    rq_put_be64(head, version);
    if (len < VALUE_VERSION_LEN) return rq_buf_append(out, head + VALUE_VERSION_LEN - len, len);
    RQ_TRY(rq_buf_reserve(out, len));
    uint8_t *p = out->ptr + out->len;
    memcpy(p, head, sizeof head);
    for (size_t at = VALUE_VERSION_LEN; at < len; at += 8) {
        uint64_t word = value_word(seed, at);
        memcpy(p + at, &word, len - at < 8 ? len - at : 8);
    }
    out->len += len;
    return RQ_OK;
}

bool rq__rows_value_check(const rq_rows *r, uint64_t key, uint32_t column, rq_slice value,
                          uint64_t *ret_version)
{
    if (value.len < VALUE_VERSION_LEN) return false;
    *ret_version = rq_get_be64(value.ptr);
    uint64_t seed = value_seed(key, column, *ret_version);
    if (value.len != rq__sizes_of(&r->value_len, seed)) return false;
    for (size_t at = VALUE_VERSION_LEN; at < value.len; at += 8) {
        uint64_t word = value_word(seed, at);
        if (memcmp(value.ptr + at, &word, value.len - at < 8 ? value.len - at : 8) != 0)
            return false;
    }
    return true;
}

/* --- checking --------------------------------------------------------------------------------- */

rq_row_bounds rq__rows_bounds(const rq_rows *r, uint64_t key)
{
    if (r->history == NULL || key >= r->history_cap) return (rq_row_bounds){0};
    return (rq_row_bounds){r->history[key].put_acked, r->history[key].delete_acked};
}

static const char *check_absent(const rq_rows *r, uint64_t key, rq_row_bounds bounds)
{
    if (r->history == NULL || bounds.put_acked == 0) return NULL;
    return r->history[key].delete_sent > bounds.put_acked ? NULL : "an acknowledged row is missing";
}

static const char *check_version(const rq_rows *r, uint64_t key, rq_row_bounds bounds,
                                 uint64_t version, int64_t timestamp)
{
    if (r->history == NULL) return NULL;
    if ((int64_t)version != timestamp)
        return "a cell's timestamp differs from the one in its value";
    if (version < r->base + bounds.put_acked)
        return "a version older than the newest acknowledged one";
    if (version <= r->base + bounds.delete_acked && bounds.delete_acked > 0)
        return "a version that was deleted";
    if (key >= r->history_cap || version > r->base + r->history[key].put_sent)
        return "a version that was never written";
    return NULL;
}

/* "q" and four digits. */
static bool column_number(const rq_rows *r, const rq_cell *c, unsigned *ret)
{
    unsigned n = 0;
    if (c->qualifier_len != 5 || c->qualifier[0] != 'q') return false;
    for (int i = 1; i < 5; i++) {
        if (c->qualifier[i] < '0' || c->qualifier[i] > '9') return false;
        n = n * 10 + (unsigned)(c->qualifier[i] - '0');
    }
    *ret = n;
    return n < r->columns &&
           rq_slice_eq(rq_cell_family(c), rq_slice_cstr(r->family_names[n % r->families]));
}

const char *rq__rows_check(const rq_rows *r, uint64_t key, rq_row_bounds bounds, rq_op_result *row,
                           uint64_t *ret_cells, uint64_t *ret_bytes)
{
    rq_cell c;
    rq_err rc;
    uint64_t first = 0;
    unsigned count = 0;
    while ((rc = rq_result_next(&row->row, &row->cells, &c)) == RQ_OK) {
        uint64_t number;
        uint64_t version;
        unsigned column;
        ++*ret_cells;
        *ret_bytes += c.value_len;
        if (!rq__rows_number(r, rq_cell_row(&c), &number) || number != key)
            return "a cell of another row";
        if (!column_number(r, &c, &column)) return "a column that was never written";
        if (!rq__rows_value_check(r, key, column, rq_cell_value(&c), &version))
            return "a value that was never written";
        const char *wrong = check_version(r, key, bounds, version, c.timestamp);
        if (wrong != NULL) return wrong;
        if (count++ == 0) first = version;
        if (r->history != NULL && version != first) return "a row with cells of two versions";
    }
    if (rc != RQ_E_END) return "malformed cells";
    if (count == 0) return check_absent(r, key, bounds);
    return count == r->columns ? NULL : "a row without all its columns";
}
