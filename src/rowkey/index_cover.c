/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Covered columns: an entry has copies of its row's columns, so that a query of these columns reads
 * entries alone. A copy is a cell of the entry,
 *
 *   i:c FAMILY 00 QUALIFIER      timestamp (8 bytes), value; empty: the row lacks the column
 *
 * and each put of an entry writes all of them. Readers use copies of verified entries only (index.c).
 */
#include "rowkey/index_priv.h"

#include "cell/cellblock.h"

#include <stdlib.h>

static int compare_bytes(rq_bytes a, rq_bytes b)
{
    return rq_slice_compare(rq_slice_of_bytes(a), rq_slice_of_bytes(b));
}

static int compare_columns(const void *a, const void *b)
{
    const rq_column *x = a, *y = b;
    int c = compare_bytes(x->family, y->family);
    return c != 0 ? c : compare_bytes(x->qualifier, y->qualifier);
}

/* Sorted, each once. */
static void sort_columns(rq_index *x)
{
    size_t kept = 0;
    qsort(x->covered, x->covered_count, sizeof x->covered[0], compare_columns);
    for (size_t i = 0; i < x->covered_count; i++)
        if (kept == 0 || compare_columns(&x->covered[kept - 1], &x->covered[i]) != 0)
            x->covered[kept++] = x->covered[i];
    x->covered_count = kept;
}

/* The names go to covered_names as "c FAMILY 00 QUALIFIER", and the columns point there. */
static rq_err copy_names(rq_index *x)
{
    size_t at = 0;
    for (size_t i = 0; i < x->covered_count; i++) {
        const rq_column *c = &x->covered[i];
        RQ_TRY(rq_buf_append_u8(&x->covered_names, 'c'));
        RQ_TRY(rq_buf_append(&x->covered_names, c->family.data, c->family.len));
        RQ_TRY(rq_buf_append_u8(&x->covered_names, 0));
        RQ_TRY(rq_buf_append(&x->covered_names, c->qualifier.data, c->qualifier.len));
    }
    for (size_t i = 0; i < x->covered_count; i++) { /* the buffer does not move any more */
        rq_column *c = &x->covered[i];
        const uint8_t *name = x->covered_names.ptr + at;
        x->copies[i] = rq_bytes_of(name, 2 + c->family.len + c->qualifier.len);
        c->family.data = name + 1;
        c->qualifier.data = name + 2 + c->family.len;
        at += x->copies[i].len;
    }
    return RQ_OK;
}

rq_err rq__covered_take(rq_index *x, const rq_index_spec *spec, rq_failure *why)
{
    if (spec->covered_count == 0) return RQ_OK;
    if (spec->covered == NULL || spec->covered_count >= RQ__COVERED_MAX)
        return rq__index_fail(why, RQ_E_INVALID, "the number of covered columns is not 1 to 15");
    for (size_t i = 0; i < spec->covered_count; i++) {
        const rq_column *c = &spec->covered[i];
        if (c->family.len == 0 || c->family.data == NULL || c->qualifier.data == NULL)
            return rq__index_fail(why, RQ_E_INVALID,
                                  "a covered column has no family or no qualifier");
        x->covered[i] = *c;
    }
    x->covered[spec->covered_count] = (rq_column){x->family, x->qualifier};
    x->covered_count = spec->covered_count + 1;
    sort_columns(x);
    return copy_names(x) == RQ_OK
               ? RQ_OK
               : rq__index_fail(why, RQ_E_NO_MEMORY, "out of memory, for an index");
}

/* The put's last edit of a column, or NULL. */
static const rq_edit *edit_of(const rq_change *put, const rq_column *c)
{
    for (size_t i = put->edit_count; i > 0; i--) {
        rq_column edited = {put->edits[i - 1].family, put->edits[i - 1].qualifier};
        if (compare_columns(&edited, c) == 0) return &put->edits[i - 1];
    }
    return NULL;
}

bool rq__covered_changes(const rq_index *x, const rq_change *put)
{
    for (size_t i = 0; i < x->covered_count; i++)
        if (edit_of(put, &x->covered[i]) != NULL) return true;
    return false;
}

static rq_err append_copy(rq_buf *out, int64_t time, rq_bytes value)
{
    uint8_t bytes[8];
    rq_put_be64(bytes, (uint64_t)time);
    RQ_TRY(rq_buf_append(out, bytes, sizeof bytes));
    return rq_buf_append(out, value.data, value.len);
}

rq_err rq__copies_make(const rq_index *x, const rq_row *row, const rq_change *put, int64_t time,
                       rq__copies *ret)
{
    size_t ends[RQ__COVERED_MAX];
    ret->bytes.len = 0;
    for (size_t i = 0; i < x->covered_count; i++) {
        const rq_column *c = &x->covered[i];
        const rq_edit *edit = put == NULL ? NULL : edit_of(put, c);
        const rq_kv *cell = rq_row_find(row, c->family, c->qualifier);
        if (edit != NULL)
            RQ_TRY(append_copy(&ret->bytes, time, edit->value));
        else if (cell != NULL)
            RQ_TRY(append_copy(&ret->bytes, cell->timestamp, cell->value));
        ends[i] = ret->bytes.len;
    }
    for (size_t i = 0; i < x->covered_count; i++) {
        size_t begin = i == 0 ? 0 : ends[i - 1];
        ret->edits[i] = (rq_edit){
            .family = rq_text("i"),
            .qualifier = x->copies[i],
            .value = begin == ends[i] ? rq_bytes_of("", 0)
                                      : rq_bytes_of(ret->bytes.ptr + begin, ends[i] - begin)};
    }
    ret->count = x->covered_count;
    return RQ_OK;
}

/* false: the entry was put by an index that does not cover the column. */
static rq_err append_cell(const rq_index *x, size_t i, const rq_row *entry, const rq__entry *e,
                          rq_cellblock *out, bool *ret_there)
{
    const rq_kv *copy = rq_row_find(entry, rq_text("i"), x->copies[i]);
    const rq_column *c = &x->covered[i];
    *ret_there = copy != NULL && (copy->value.len == 0 || copy->value.len >= 8);
    if (!*ret_there || copy->value.len == 0) return RQ_OK;
    const uint8_t *bytes = copy->value.data;
    rq_cell cell = {.row = e->row.ptr,
                    .row_len = (uint16_t)e->row.len,
                    .family = c->family.data,
                    .family_len = (uint8_t)c->family.len,
                    .qualifier = c->qualifier.data,
                    .qualifier_len = (uint32_t)c->qualifier.len,
                    .timestamp = (int64_t)rq_get_be64(bytes),
                    .type = RQ_TYPE_PUT,
                    .value = bytes + 8,
                    .value_len = (uint32_t)(copy->value.len - 8)};
    return rq_cellblock_append(out, &cell);
}

rq_err rq__copies_row(const rq_index *x, const rq_row *entry, const rq__entry *e, rq_row **ret)
{
    rq_cellblock block = {0};
    bool whole = e->exists && e->verified && x->covered_count > 0;
    rq_err rc = RQ_OK;
    *ret = NULL;
    for (size_t i = 0; rc == RQ_OK && whole && i < x->covered_count; i++)
        rc = append_cell(x, i, entry, e, &block, &whole);
    if (rc == RQ_OK && whole)
        rc = rq_row_of_block(rq_buf_slice(&block.bytes), block.count, NULL, ret);
    rq_cellblock_clear(&block);
    return rc;
}
