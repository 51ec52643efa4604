/* SPDX-License-Identifier: Apache-2.0 */
/* HBase's log files: each reported edit lies inside the input. */
#include "catalog/pwal.h"

#include <stdlib.h>

typedef struct seen {
    rq_slice all;
    uint64_t sum;
} seen;

static void inside(const seen *s, rq_slice part)
{
    if (part.len == 0) return;
    for (size_t i = 0; i < part.len; i++)
        ((seen *)(uintptr_t)s)->sum += part.ptr[i];
}

static rq_err take(void *ctx, const rq__pwal_edit *e, rq_error *why)
{
    seen *s = ctx;
    (void)why;
    inside(s, e->table);
    inside(s, e->region);
    inside(s, rq_cell_row(e->cell));
    inside(s, rq_cell_family(e->cell));
    inside(s, rq_cell_qualifier(e->cell));
    inside(s, rq_cell_value(e->cell));
    if (e->cell->row < s->all.ptr || e->cell->row > s->all.ptr + s->all.len) abort();
    return RQ_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    seen s = {.all = rq_slice_of(data, size)};
    rq_error why = {0};
    rq_err rc = rq__pwal_read(s.all, take, &s, &why);
    (void)rc;
    return 0;
}
