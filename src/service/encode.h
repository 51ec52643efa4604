/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes the cells of a read as HBase's Result: with a codec the cells stay in the answer's cell
 * block and the Result has their number; without one they go into the message. */
#ifndef RQ_SERVICE_ENCODE_H
#define RQ_SERVICE_ENCODE_H

#include "base/pb.h"
#include "rpc/call.h"

#include "proto/client.pb-c.h"

/* Fills `ret` with the cells of `bytes` (in cell block format) as messages in the arena; their byte
 * fields point into `bytes`. */
RQ_NODISCARD
rq_err rq__encode_cells(rq_slice bytes, uint32_t count, rq_arena *arena, Pb__Result *ret);
/* Cells of up to this many bytes are copied, or encoded in a message, on the loop; more take longer than a loop may
 * (rpc/long_reply.h). */
#define RQ__PACKED_AT_ONCE ((size_t)256 * 1024)
/* For a write's result cells: appended to call->cells when the client has a codec, else as messages. Long ones are moved there if
 * there are no others. */
RQ_NODISCARD
rq_err rq__encode_result(rq_call *call, rq_cellblock *cells, Pb__Result *ret);
/* Appends the message to `ret`, for rq_call_reply_long. */
RQ_NODISCARD
rq_err rq__pack_message(rq_call *call, const ProtobufCMessage *message, rq_buf *ret);

/* The answers of nearly all gets and puts, encoded without protobuf-c; the result points into
 * `out`. */
#define RQ__COUNTED_RESULT_MAX (2 + 2 + RQ_VARINT_MAX + 2)
#define RQ__PROCESSED_LEN 2
/* GetResponse { result { associated_cell_count, stale = false } } */
static inline rq_slice rq__pack_counted_result(uint32_t count, uint8_t out[RQ__COUNTED_RESULT_MAX])
{
    uint8_t *p = out + 2;
    *p++ = 2 << 3 | RQ_PB_VARINT; /* associated_cell_count */
    p += rq_put_varint(p, count);
    *p++ = 4 << 3 | RQ_PB_VARINT; /* stale */
    *p++ = 0;
    out[0] = 1 << 3 | RQ_PB_BYTES; /* result */
    out[1] = (uint8_t)(p - out - 2);
    return rq_slice_of(out, (size_t)(p - out));
}
/* MutateResponse { processed } */
static inline rq_slice rq__pack_processed(bool processed, uint8_t out[RQ__PROCESSED_LEN])
{
    out[0] = 2 << 3 | RQ_PB_VARINT;
    out[1] = processed;
    return rq_slice_of(out, RQ__PROCESSED_LEN);
}

#endif
