/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection's input: turns reads of any size into whole frames, in place.
 *
 *  - Reads go to a buffer shared by all connections of a loop (a *chunk*). A frame that is complete
 *    there is used in place; its user holds a reference to the chunk. In the steady state all
 *    references are released before the next read, and the same bytes are reused.
 *  - Bytes that remain after a read (the beginning of a frame) are copied to a small chunk of the
 *    connection's own, and put in front of the next read. An idle connection holds no memory.
 *  - A frame larger than RQ_INPUT_BIG gets a chunk of its own, which grows with the bytes received:
 *    a client must send bytes to make the server allocate memory.
 *
 * Every chunk except a loop's first is charged to the budget before it is allocated. One thread.
 */
#ifndef RQ_NET_INPUT_H
#define RQ_NET_INPUT_H

#include "base/bytes.h"
#include "net/budget.h"

#define RQ_FRAME_HEAD 4 /* a frame is a be32 length and that many bytes */
#define RQ_CHUNK_BYTES ((size_t)64 * 1024)
#define RQ_INPUT_BIG ((size_t)16 * 1024)
#define RQ_INPUT_PROMPT ((size_t)128 * 1024)

typedef struct rq_chunk {
    unsigned refs;
    bool overdraws; /* shared chunk: it has the overdraft until no call uses it */
    rq_budget *budget;
    size_t charged;
    size_t cap;
    size_t used;     /* shared chunk: where the next read goes */
    uint8_t bytes[]; /* no padding in front: an overflow of the last byte is seen by ASan */
} rq_chunk;

void rq_chunk_unref(rq_chunk *c);

/* One per loop. */
typedef struct rq_chunk_pool {
    rq_budget *budget;
    rq_chunk *current;
} rq_chunk_pool;

void rq_chunk_pool_clear(rq_chunk_pool *p);

/* All zero is empty. */
typedef struct rq_input {
    rq_chunk *chunk; /* holds the unconsumed bytes [pos, end) */
    size_t pos;
    size_t end;
    rq_chunk *big; /* a large frame: big_len of its big_want bytes were received */
    size_t big_len;
    size_t big_want;
    size_t
        frame_max;  /* set by the user: the longest frame that it takes. A longer one stays where it
                       * was read, until rq_input_frame reports it */
    bool never_big; /* set by the user: the first bytes are not a frame, or one to be refused */
    bool prompt;    /* set by the user: the connection is read in small pieces even when the budget
                     * is used up, and frames up to RQ_INPUT_PROMPT may use the reserve */
} rq_input;

void rq_input_clear(rq_input *in, rq_budget *budget);

/* Returns the buffer for the next read. NULL: *ret_why is RQ_E_AGAIN (the budget is used up;
 * wait for it) or RQ_E_NO_MEMORY. */
void *rq_input_buffer(rq_input *in, rq_chunk_pool *pool, size_t *ret_len, rq_err *ret_why);
/* What the next attempt takes from the budget, for a waiter after RQ_E_AGAIN. */
typedef struct rq_input_need {
    size_t bytes; /* 0: unknown, and it does not take the overdraft */
    bool prompt;  /* it may use the reserve */
} rq_input_need;
rq_input_need rq_input_needs(const rq_input *in);
/* Reports that len > 0 bytes were read into that buffer. */
void rq_input_received(rq_input *in, rq_chunk_pool *pool, size_t len);
/* Reports that nothing was read, nor will be, into the buffer that rq_input_buffer returned. If the shared chunk has
 * the overdraft and no frame refers to the chunk, the overdraft is released. */
void rq_input_received_nothing(rq_chunk_pool *pool);

/* The unconsumed bytes. */
rq_slice rq_input_peek(const rq_input *in);
void rq_input_consume(rq_input *in, size_t len);

typedef enum rq_frame { RQ_FRAME_WHOLE, RQ_FRAME_MORE, RQ_FRAME_TOO_BIG } rq_frame;

/* The next frame without its length, valid while *ret_owner is referenced; the caller gets a
 * reference. RQ_FRAME_TOO_BIG: nothing was consumed, *ret holds the bytes received so far,
 * *ret_len its length. */
rq_frame rq_input_frame(rq_input *in, rq_slice *ret, rq_chunk **ret_owner, size_t *ret_len);
/* Call after the last frame: copies the remaining bytes and releases the shared chunk. The copy is
 * charged even if the budget is used up. RQ_E_NO_MEMORY. REQUIRES: the caller has handled
 * RQ_FRAME_TOO_BIG, if rq_input_frame returned it. */
RQ_NODISCARD
rq_err rq_input_detach(rq_input *in, rq_chunk_pool *pool);

/* Whether it shares no chunk with another connection of the loop. */
static inline bool rq_input_is_own(const rq_input *in)
{
    return in->chunk == NULL || in->chunk->refs == 1;
}

/* Bytes that were received and not consumed. */
static inline size_t rq_input_held(const rq_input *in)
{
    return in->big != NULL ? in->big_len : in->end - in->pos;
}

/* The length of the front frame, its header included; 0: unknown, or nothing was received. */
size_t rq_input_want(const rq_input *in);

/* Whether part of a frame was received. */
static inline bool rq_input_partial(const rq_input *in)
{
    return in->big != NULL || in->pos < in->end;
}

#endif
