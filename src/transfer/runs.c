/* SPDX-License-Identifier: Apache-2.0 */
/* Collecting rows and writing runs (runs.h). */
#include "transfer/runs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define HEAD (4 + 8 + 2) /* length, order, length of the row */

/* --- records ---------------------------------------------------------------------------------- */

static size_t record_len(rq_slice row, const rq_cell *cells, size_t count)
{
    size_t len = HEAD + row.len;
    for (size_t i = 0; i < count; i++)
        len += (size_t)1 + cells[i].family_len + 4 + cells[i].qualifier_len + 8 + 1 + 2 +
               cells[i].tags_len + 4 + cells[i].value_len;
    return len;
}

static uint8_t *put_bytes(uint8_t *at, const uint8_t *bytes, size_t len)
{
    if (len > 0) memcpy(at, bytes, len);
    return at + len;
}

static uint8_t *put_cell(uint8_t *at, const rq_cell *c)
{
    *at++ = c->family_len;
    at = put_bytes(at, c->family, c->family_len);
    rq_put_be32(at, c->qualifier_len);
    at = put_bytes(at + 4, c->qualifier, c->qualifier_len);
    rq_put_be64(at, (uint64_t)c->timestamp);
    at[8] = c->type;
    rq_put_be16(at + 9, c->tags_len);
    at = put_bytes(at + 11, c->tags, c->tags_len);
    rq_put_be32(at, c->value_len);
    return put_bytes(at + 4, c->value, c->value_len);
}

static uint64_t prefix_of(rq_slice row)
{
    uint8_t bytes[8] = {0};
    memcpy(bytes, row.ptr, row.len < 8 ? row.len : 8);
    return rq_get_be64(bytes);
}

static rq_err add_entry(rq__row_sorter *s, uint64_t prefix)
{
    if (s->count == s->cap) {
        size_t cap = s->cap == 0 ? 1024 : 2 * s->cap;
        rq__sort_entry *bigger = realloc(s->entries, cap * sizeof *bigger);
        if (bigger == NULL) return RQ_E_NO_MEMORY;
        s->entries = bigger;
        s->cap = cap;
    }
    s->entries[s->count++] = (rq__sort_entry){prefix, s->records.len};
    return RQ_OK;
}

static rq_err put_record(rq__row_sorter *s, uint64_t order, rq_slice row, const rq_cell *cells,
                         size_t count, size_t len)
{
    RQ_TRY(add_entry(s, prefix_of(row)));
    RQ_TRY(rq_buf_reserve(&s->records, len));
    uint8_t *at = s->records.ptr + s->records.len;
    rq_put_be32(at, (uint32_t)(len - 4));
    rq_put_be64(at + 4, order);
    rq_put_be16(at + 12, (uint16_t)row.len);
    at = put_bytes(at + HEAD, row.ptr, row.len);
    for (size_t i = 0; i < count; i++)
        at = put_cell(at, &cells[i]);
    s->records.len += len;
    return RQ_OK;
}

rq_err rq__sort_add(rq__row_sorter *s, uint64_t order, rq_slice row, const rq_cell *cells,
                    size_t count, rq_error *why)
{
    size_t len = record_len(row, cells, count);
    if (count == 0) return RQ_OK;
    if (len > INT32_MAX) return rq_fail(why, RQ_E_INVALID, "a row of the input has more than 2 GB");
    if (s->records.len + len + (s->count + 1) * sizeof *s->entries > s->memory)
        RQ_TRY(rq__sort_flush(s, why));
    return put_record(s, order, row, cells, count, len) == RQ_OK ? RQ_OK : rq_no_memory(why);
}

/* --- names ------------------------------------------------------------------------------------ */

void rq__run_path(const char *folder, const rq__run_name *name, char *ret, size_t size)
{
    if (name->part == RQ__RUN_MERGED)
        snprintf(ret, size, "%s/merged-%06" PRIu64, folder, name->number);
    else
        snprintf(ret, size, "%s/run-%06zu-%06" PRIu64, folder, name->part, name->number);
}

rq_err rq__runs_add(rq__runs *r, size_t part, uint64_t count, rq_error *why)
{
    if (count > r->cap - r->count) {
        size_t cap = 2 * r->cap + (size_t)count;
        rq__run_name *bigger = realloc(r->names, cap * sizeof *bigger);
        if (bigger == NULL) return rq_no_memory(why);
        r->names = bigger;
        r->cap = cap;
    }
    for (uint64_t i = 0; i < count; i++)
        r->names[r->count++] = (rq__run_name){part, i};
    return RQ_OK;
}

void rq__runs_clear(rq__runs *r)
{
    free(r->names);
    *r = (rq__runs){0};
}

/* --- sorting ---------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b, void *ctx)
{
    const rq__sort_entry *x = a, *y = b;
    const uint8_t *records = ctx;
    if (x->prefix != y->prefix) return x->prefix < y->prefix ? -1 : 1;
    const uint8_t *p = records + x->at, *q = records + y->at;
    int c = rq_bytes_compare(p + HEAD, rq_get_be16(p + 12), q + HEAD, rq_get_be16(q + 12));
    if (c != 0) return c;
    uint64_t m = rq_get_be64(p + 4), n = rq_get_be64(q + 4);
    return (m > n) - (m < n);
}

static bool is_sorted(const rq__row_sorter *s)
{
    for (size_t i = 1; i < s->count; i++)
        if (compare(&s->entries[i - 1], &s->entries[i], s->records.ptr) > 0) return false;
    return true;
}

rq_err rq__sort_flush(rq__row_sorter *s, rq_error *why)
{
    char path[512];
    rq__out out;
    rq_err rc;
    if (s->count == 0) return RQ_OK;
    if (!is_sorted(s)) qsort_r(s->entries, s->count, sizeof *s->entries, compare, s->records.ptr);
    rq__run_path(s->folder, &(rq__run_name){s->part, s->runs}, path, sizeof path);
    rc = rq__out_open(s->vfs, path, &out, why);
    for (size_t i = 0; rc == RQ_OK && i < s->count; i++) {
        const uint8_t *record = s->records.ptr + s->entries[i].at;
        if (rq_buf_append(&out.buf, record, 4 + (size_t)rq_get_be32(record)) != RQ_OK)
            rc = rq_no_memory(why);
        if (rc == RQ_OK) rc = rq__out_ease(&out, why);
    }
    if (rc == RQ_OK) rc = rq__out_finish(&out, why);
    rq__out_close(&out);
    rq_buf_reset(&s->records);
    s->count = 0;
    s->runs++;
    return rc;
}

void rq__row_sorter_clear(rq__row_sorter *s)
{
    rq_buf_clear(&s->records);
    free(s->entries);
    *s = (rq__row_sorter){0};
}
