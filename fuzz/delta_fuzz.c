/* SPDX-License-Identifier: Apache-2.0 */
/* A delta-encoded data block from untrusted bytes: tags are unpacked, cells walked, checkpoints
 * made and resumed. The first byte selects the encoding and the parts of the cells. */
#include "hfile/delta.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t walk(rq__delta *d, rq__delta_shape shape, rq_slice payload)
{
    uint64_t sum = 0;
    while (d->next_pos < payload.len && rq__delta_next(d, shape, payload) == RQ_OK) {
        const rq_cell *c = &d->cell;
        for (uint32_t i = 0; i < c->value_len; i++)
            sum += c->value[i];
        for (uint32_t i = 0; i < c->tags_len; i++)
            sum += c->tags[i];
        for (uint32_t i = 0; i < c->qualifier_len; i++)
            sum += c->qualifier[i];
        sum += c->row_len + (uint64_t)c->family_len;
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const rq_block_encoding encodings[] = {RQ_ENCODING_PREFIX, RQ_ENCODING_DIFF,
                                                  RQ_ENCODING_FAST_DIFF, RQ_ENCODING_DIFF};
    if (size < 2) return 0;
    rq__delta_shape shape = {encodings[data[0] & 3], (data[0] & 4) != 0, (data[0] & 8) != 0};
    rq_slice payload = rq_slice_of(data + 1, size - 1);
    rq_buf form = {0};
    if (shape.has_tags && (data[0] & 16) != 0 &&
        rq__delta_unpack_tags(shape, payload, &form) == RQ_OK)
        payload = rq_buf_slice(&form);
    rq__delta d = {0};
    uint64_t sum = walk(&d, shape, payload);
    rq__sidecar *s;
    if (rq__delta_checkpoints(NULL, shape, payload, &s) == RQ_OK && s->count > 0) {
        rq_cell key = rq_cell_first_on_row(RQ_SLICE_LIT("row"));
        int64_t at = rq__delta_checkpoint_before(s, RQ_ORDER_DEFAULT, &key);
        if (rq__delta_restore(&d, s, at < 0 ? 0 : (uint32_t)at, payload) != RQ_OK) abort();
        sum += walk(&d, shape, payload);
    }
    rq__sidecar_free(NULL, s);
    rq__delta_clear(&d);
    rq_buf_clear(&form);
    if (sum == UINT64_MAX) abort(); /* keeps the compiler from omitting the reads above */
    return 0;
}
