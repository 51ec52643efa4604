/* SPDX-License-Identifier: Apache-2.0 */
/* Divides the rows of a range into batches, as HBase's HashTable does: a batch ends at the first row
 * at which it has the wanted bytes. */
#ifndef RQ_TRANSFER_BATCHES_H
#define RQ_TRANSFER_BATCHES_H

#include "transfer/hasher.h"
#include "transfer/sweep.h"

/* The key is valid during the call. */
typedef rq_err (*rq__take_batch)(void *ctx, rq_slice key, const uint8_t hash[RQ__HASH_LEN],
                                 rq_error *why);

typedef struct rq__batcher {
    rq__hasher hasher;
    uint64_t bytes_wanted;
    rq_buf key, row; /* of the batch; the last row */
    bool has_row;
    rq__take_batch take;
    void *ctx;
} rq__batcher;

/* bytes 0: HashTable's default. */
void rq__batcher_init(rq__batcher *b, uint64_t bytes, bool ignores_times, rq__take_batch take,
                      void *ctx);
/* The range's first batch has the range's start as its key, even if no row has that key. */
RQ_NODISCARD
rq_err rq__batcher_begin(rq__batcher *b, rq_slice start, rq_error *why);
RQ_NODISCARD
rq_err rq__batcher_add(rq__batcher *b, rq_op_result *row, rq_error *why);
RQ_NODISCARD
rq_err rq__batcher_end(rq__batcher *b, rq_error *why);
void rq__batcher_clear(rq__batcher *b);

#endif
