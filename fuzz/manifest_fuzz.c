/* SPDX-License-Identifier: Apache-2.0 */
/* A region's manifest: a manifest that decodes must encode to the same bytes. */
#include "region/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rq_arena arena = {0};
    rq_buf out = {0};
    rq__manifest m;
    rq_error why = {0};
    if (rq__manifest_decode(rq_slice_of(data, size), &arena, &m, &why) == RQ_OK) {
        RQ_ASSERT(rq__manifest_encode(&m, &out) == RQ_OK);
        /* Numbers may use more bytes than necessary; that is the only other representation. */
        RQ_ASSERT(out.len <= size);
        RQ_ASSERT(out.len < size || rq_slice_eq(rq_buf_slice(&out), rq_slice_of(data, size)));
    } else {
        RQ_ASSERT(why.code != RQ_OK && why.message[0] != '\0');
    }
    rq_buf_clear(&out);
    rq_arena_clear(&arena);
    return 0;
}
