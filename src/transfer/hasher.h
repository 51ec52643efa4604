/* SPDX-License-Identifier: Apache-2.0 */
/* The hash of a batch of rows, as HBase's HashTable and SyncTable compute it: the MD5 of row, family,
 * qualifier, timestamp and value of each cell. HBASE: HashTable.ResultHasher. */
#ifndef RQ_TRANSFER_HASHER_H
#define RQ_TRANSFER_HASHER_H

#include "base/arena.h"
#include "cell/cell.h"
#include "transfer/crew.h"
#include "transfer/link.h"

#include <md5.h>

#define RQ__HASH_LEN MD5_DIGEST_LENGTH

typedef struct rq__hasher {
    MD5_CTX ctx;
    uint64_t bytes; /* of the cells so far, as HashTable counts them */
    bool ignores_times;
} rq__hasher;

void rq__hasher_begin(rq__hasher *h);
void rq__hasher_add(rq__hasher *h, const rq_cell *c);
void rq__hasher_end(rq__hasher *h, uint8_t ret[RQ__HASH_LEN]);

/* Batches of adjacent rows: each from its key to the key of the next batch. */
typedef struct rq__hash_entry {
    rq_slice key;
    uint8_t hash[RQ__HASH_LEN];
} rq__hash_entry;

typedef struct rq__hash_list {
    rq_arena arena; /* the keys */
    rq__hash_entry *entries;
    size_t count, cap;
} rq__hash_list;

RQ_NODISCARD
rq_err rq__hash_list_add(rq__hash_list *l, rq_slice key, const uint8_t hash[RQ__HASH_LEN]);
void rq__hash_list_reset(rq__hash_list *l);
void rq__hash_list_clear(rq__hash_list *l);

/* Hashes the rows of the link's table in the batches of the list, and compares the hashes. The last batch ends at
 * scan->stop (empty: the table's end); scan->start is set here. Differing batches are reported and counted in
 * crew->different. Blocking. */
RQ_NODISCARD
rq_err rq__hash_list_compare(const rq__hash_list *l, rq_scan *scan, rq__link *link,
                             bool ignores_times, rq__crew *crew, rq_error *why);

#endif
