/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection's input: from reads of any size to whole frames, in place.
 *
 *  - Reads land in a buffer that all connections of a loop share (a *chunk*). A frame that came
 *    whole is used where it lies; whoever works on it holds a reference on the chunk. In the steady
 *    state all references are gone before the next read, and the same bytes are used again.
 *  - What is left behind a read (a frame's beginning) is copied to a small chunk of the
 * connection's own, and put in front of the next read. An idle connection holds nothing.
 *  - A frame larger than RQ_INPUT_BIG gets a chunk of its own, which grows with what has arrived,
 *    so that a client pays with bytes for the memory it is given.
 *
 * Every chunk but a loop's first is charged to the budget before it is allocated. One thread.
 */
#ifndef RQ_NET_INPUT_H
#define RQ_NET_INPUT_H

#include "base/bytes.h"
#include "net/budget.h"

#define RQ_FRAME_HEAD 4 /* a frame: its length, 4 bytes big-endian, then as many bytes */
#define RQ_CHUNK_BYTES ((size_t)64 * 1024)
#define RQ_INPUT_BIG ((size_t)16 * 1024)

typedef struct rq_chunk {
    unsigned refs;
    rq_budget *budget;
    size_t charged;
    size_t cap;
    size_t used; /* of the shared chunk: where the next read lands */
    uint8_t bytes[];
} rq_chunk;

void rq_chunk_unref(rq_chunk *c);

/* Per loop. */
typedef struct rq_chunk_pool {
    rq_budget *budget;
    rq_chunk *current;
} rq_chunk_pool;

void rq_chunk_pool_clear(rq_chunk_pool *p);

/* All-zero is empty. */
typedef struct rq_input {
    rq_chunk *chunk; /* holds the bytes that are not consumed yet: [pos, end) */
    size_t pos;
    size_t end;
    rq_chunk *big; /* a frame that grows: big_len bytes of big_want are there */
    size_t big_len;
    size_t big_want;
    bool never_big; /* set by the user: what is in front is no frame, or one that is refused */
} rq_input;

void rq_input_clear(rq_input *in, rq_budget *budget);

/* Where the next bytes shall be read to. NULL: the budget is spent (wait for it), or memory is out
 * (*ret_why says which: RQ_E_AGAIN, RQ_E_NO_MEMORY). */
void *rq_input_buffer(rq_input *in, rq_chunk_pool *pool, size_t *ret_len, rq_err *ret_why);
/* len > 0 bytes were read there. */
void rq_input_received(rq_input *in, rq_chunk_pool *pool, size_t len);

/* The bytes that are not consumed yet. */
rq_slice rq_input_peek(const rq_input *in);
void rq_input_consume(rq_input *in, size_t len);

typedef enum rq_frame { RQ_FRAME_WHOLE, RQ_FRAME_MORE, RQ_FRAME_TOO_BIG } rq_frame;

/* The next frame without its length: valid as long as *ret_owner, on which the caller gets a
 * reference. TOO_BIG: *ret holds what is there of it, nothing was consumed, *ret_len its length. */
rq_frame rq_input_frame(rq_input *in, size_t bytes_max, rq_slice *ret, rq_chunk **ret_owner,
                        size_t *ret_len);
/* After the last frame: lets go of the shared chunk, keeping the rest. REQUIRES: a frame longer
 * than bytes_max was dealt with. */
RQ_NODISCARD
rq_err rq_input_settle(rq_input *in, rq_chunk_pool *pool);

/* Nothing of what it holds is shared with another connection of the loop. */
static inline bool rq_input_is_own(const rq_input *in)
{
    return in->chunk == NULL || in->chunk->refs == 1;
}

/* Part of a frame is here. */
static inline bool rq_input_partial(const rq_input *in)
{
    return in->big != NULL || in->pos < in->end;
}

#endif
