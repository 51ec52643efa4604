/* SPDX-License-Identifier: Apache-2.0 */
/* See mutations.h. HBASE: Import.Importer. */
#include "transfer/mutations.h"

#include "base/pb.h"

#include <stdlib.h>

static rq_err add(rq__link *l, rq_mutate_kind kind, rq_slice row, const rq_cell *cells,
                  size_t count, rq_slice more, rq_error *why)
{
    const rq_mutate m = {
        .kind = kind, .row = row, .cells = cells, .cell_count = count, .more = more};
    return count == 0 ? RQ_OK : rq__link_add(l, &m, why);
}

static rq_err make_room(rq__sorter *s, size_t count, rq_error *why)
{
    if (count <= s->cap) return RQ_OK;
    rq_cell *bigger = realloc(s->deletes, count * sizeof *bigger);
    if (bigger == NULL) return rq_no_memory(why);
    s->deletes = bigger;
    s->cap = count;
    return RQ_OK;
}

void rq__sorter_clear(rq__sorter *s)
{
    free(s->deletes);
    *s = (rq__sorter){0};
}

/* A row's cells become a put, a delete, and one further delete for each family marker: a Delete
 * keeps only the newest marker of a family. */
rq_err rq__link_add_row(rq__link *l, rq__sorter *s, rq_slice row, rq_cell *cells, size_t count,
                        rq_slice more, rq_error *why)
{
    size_t puts = 0, deletes = 0;
    RQ_TRY(make_room(s, count, why));
    for (size_t i = 0; i < count; i++) {
        const rq_cell c = cells[i];
        if (c.type == RQ_TYPE_DELETE_FAMILY)
            RQ_TRY(add(l, RQ_MUTATE_DELETE, row, &c, 1, more, why));
        else if (c.type == RQ_TYPE_PUT)
            cells[puts++] = c;
        else
            s->deletes[deletes++] = c;
    }
    RQ_TRY(add(l, RQ_MUTATE_PUT, row, cells, puts, more, why));
    return add(l, RQ_MUTATE_DELETE, row, s->deletes, deletes, more, why);
}

/* --- attributes: MutationProto { NameBytesPair attribute 5 } ------------------------------------ */

static rq_err put_attribute(rq_buf *out, rq_slice name, rq_slice value)
{
    size_t at;
    RQ_TRY(rq_pb_begin(out, 5, &at));
    RQ_TRY(rq_pb_put_bytes(out, 1, name));
    RQ_TRY(rq_pb_put_bytes(out, 2, value));
    return rq_pb_end(out, at);
}

/* HBASE: Mutation.setCellVisibility. CellVisibility { expression 1 } */
rq_err rq__put_labels(rq_buf *out, rq_slice expression)
{
    size_t attribute, value;
    if (expression.len == 0) return RQ_OK;
    RQ_TRY(rq_pb_begin(out, 5, &attribute));
    RQ_TRY(rq_pb_put_bytes(out, 1, RQ_SLICE_LIT("VISIBILITY")));
    RQ_TRY(rq_pb_begin(out, 2, &value));
    RQ_TRY(rq_pb_put_bytes(out, 1, expression));
    RQ_TRY(rq_pb_end(out, value));
    return rq_pb_end(out, attribute);
}

rq_err rq__put_attributes(rq_buf *out, rq_slice list)
{
    while (list.len > 0) {
        const uint8_t *comma = memchr(list.ptr, ',', list.len);
        size_t len = comma == NULL ? list.len : (size_t)(comma - list.ptr);
        const uint8_t *arrow = memmem(list.ptr, len, "=>", 2);
        size_t name_len = arrow == NULL ? len : (size_t)(arrow - list.ptr);
        rq_slice value = {0};
        if (arrow != NULL) value = rq_slice_of(arrow + 2, len - name_len - 2);
        if (name_len > 0) RQ_TRY(put_attribute(out, rq_slice_of(list.ptr, name_len), value));
        len += comma != NULL;
        list = rq_slice_of(list.ptr + len, list.len - len);
    }
    return RQ_OK;
}
