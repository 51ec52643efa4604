/* SPDX-License-Identifier: Apache-2.0 */
/* One half of a file. When a region is split its files stay in place; each daughter reads the part
 * of them in its own rows, until a compaction has rewritten that part.
 *
 * The scanner is the whole file's (scanner.c): a seek is first moved into the half, and a move that
 * ends outside of it finds no cell. Halves are divided between rows, so each is contiguous in key
 * order. */
#include "hfile/reader_priv.h"

#include <stdlib.h>

rq_err rq__half_check(rq_hfile_scanner *s)
{
    const rq_hfile_reader *r = s->reader;
    int c = rq_row_compare(r->info.order, rq_cell_row(&s->cell), rq_cell_row(&r->half->key));
    if (r->half->top ? c >= 0 : c < 0) return RQ_OK;
    rq__hfile_scanner_release(s);
    return RQ_E_END;
}

rq_err rq__half_new(const rq_hfile_half *half, const char *path, rq__half **ret, rq_error *why)
{
    if (half->row.len > RQ_ROW_LEN_MAX)
        return rq_fail(why, RQ_E_CORRUPT,
                       "%s: the reference's split row has %zu bytes, which is too long", path,
                       half->row.len);
    rq__half *h = malloc(sizeof *h + half->row.len);
    if (h == NULL) return rq_no_memory(why);
    uint8_t *row = (uint8_t *)(h + 1);
    if (half->row.len > 0) memcpy(row, half->row.ptr, half->row.len);
    h->key = rq_cell_first_on_row(rq_slice_of(row, half->row.len));
    h->top = half->top;
    *ret = h;
    return RQ_OK;
}
