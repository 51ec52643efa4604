/* SPDX-License-Identifier: Apache-2.0 */
/* A reference to half of a store file, and the names of references and links. */
#include "store/reference.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rq_slice bytes = rq_slice_of(data, size);
    rq_hfile_half half, again;
    rq_error why = {0};
    rq_buf out = {0};
    if (rq_reference_decode(bytes, &half, &why) == RQ_OK) {
        RQ_ASSERT(rq_reference_encode(&half, &out) == RQ_OK);
        RQ_ASSERT(rq_reference_decode(rq_buf_slice(&out), &again, &why) == RQ_OK);
        RQ_ASSERT(rq_slice_eq(half.row, again.row) && half.top == again.top);
    } else {
        RQ_ASSERT(why.code != RQ_OK && why.message[0] != '\0');
    }
    rq_buf_clear(&out);
    rq_store_name n;
    rq_store_name_parse(bytes, &n);
    RQ_ASSERT(n.file.len > 0 || size == 0);
    return 0;
}
