/* SPDX-License-Identifier: Apache-2.0 */
/* A transform for tests: a greeting, then records, in both directions.
 *
 *    client: "HELO", server: "EHLO" (no protocol byte is sent before)
 *    record: be16 length, checksum, that many bytes XOR FRAMES_KEY
 *            be16 length | FRAMES_REPEAT, checksum, one byte, which is repeated `length` times
 *            length 0: the output has ended
 *
 * So input may be incomplete or invalid, and decoding may expand it. */
#ifndef RQ_TEST_NET_FRAMES_H
#define RQ_TEST_NET_FRAMES_H

#include "net/stream.h"

#define FRAMES_KEY 0x5a
#define FRAMES_REPEAT 0x8000u
#define FRAMES_LEN_MAX 0x3fffu
#define FRAMES_HEAD 3

/* For rq_transform_kind; ctx is not used. */
rq_err frames_make(void *ctx, rq_transform **ret);
/* Appends records of at most `step` bytes; runs of one byte become repetitions. */
void frames_encode(rq_buf *out, const void *bytes, size_t len, size_t step);
void frames_encode_end(rq_buf *out);

/* Decodes records for the client's side; a zeroed reader is at the beginning of the records. */
typedef struct frames_reader {
    rq_buf in;
    bool ended;
} frames_reader;

/* Appends the content of these bytes, and of bytes kept from earlier calls, to `out`. False: the
 * bytes are invalid. */
bool frames_decode(frames_reader *r, const void *bytes, size_t len, rq_buf *out);

#endif
