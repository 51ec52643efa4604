/* SPDX-License-Identifier: Apache-2.0 */
/* A cell block of untrusted bytes: iteration ends, and its cells encode to the same block. */
#include "cell/cellblock.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rq_error why = {0};
    rq_cursor cursor = rq_cursor_of(rq_slice_of(data, size));
    rq_cellblock again = {.with_tags = true};
    rq_cell c;
    rq_err rc;
    while ((rc = rq_cellblock_next(&cursor, &c, &why)) == RQ_OK)
        RQ_ASSERT(rq_cellblock_append(&again, &c) == RQ_OK);
    RQ_ASSERT(rc == RQ_E_END || rc == RQ_E_MALFORMED);
    RQ_ASSERT(again.bytes.len <= size);
    rq_cellblock_clear(&again);
    return 0;
}
