/* SPDX-License-Identifier: Apache-2.0 */
/* One KeyValue of untrusted bytes: an accepted cell lies inside the input and is written back
 * unchanged (except for an empty tags part). */
#include "cell/cell.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(const uint8_t *part, size_t len, const uint8_t *data, size_t size)
{
    RQ_ASSERT(len == 0 || (part >= data && len <= size && part + len <= data + size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rq_error why = {0};
    rq_cell c;
    if (rq__cell_parse_key(rq_slice_of(data, size), &c, &why) == RQ_OK) {
        RQ_ASSERT(rq_cell_key_len(&c) == size);
        RQ_ASSERT(rq_cell_compare(RQ_ORDER_META, &c, &c) == 0);
    }
    if (rq__cell_parse(rq_slice_of(data, size), &c, &why) != RQ_OK) return 0;
    check_inside(c.row, c.row_len, data, size);
    check_inside(c.family, c.family_len, data, size);
    check_inside(c.qualifier, c.qualifier_len, data, size);
    check_inside(c.value, c.value_len, data, size);
    check_inside(c.tags, c.tags_len, data, size);
    for (unsigned type = 0; type < 256; type++) {
        rq_slice tag;
        if (rq_cell_tag(&c, (uint8_t)type, &tag)) check_inside(tag.ptr, tag.len, data, size);
    }
    size_t len = rq_cell_serialized_len(&c, true);
    RQ_ASSERT(len == size || len + 2 == size);
    uint8_t *again = malloc(len);
    RQ_ASSERT(again != NULL);
    rq_cell_serialize(&c, true, again);
    RQ_ASSERT(memcmp(again, data, len) == 0);
    free(again);
    return 0;
}
