/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transform for tests: a greeting, then records, both ways.
 *
 *   client: "HELO", server: "EHLO" (nothing of the protocol is sent before)
 *   record: be16 length, checksum, that many bytes XOR FRAMES_KEY
 *           be16 length | FRAMES_REPEAT, checksum, one byte, which stands for so many
 *           length 0: the output has ended
 *
 * So input may be partial, there is more output than input, and input that is wrong.
 */
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

/* Takes records apart, for the client's side; all zero is at the beginning of the records. */
typedef struct frames_reader {
    rq_buf in;
    bool ended;
} frames_reader;

/* Appends to `out` what the bytes, and those before, say. False: they are wrong. */
bool frames_decode(frames_reader *r, const void *bytes, size_t len, rq_buf *out);

#endif
