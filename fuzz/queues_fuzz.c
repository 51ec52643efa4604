/* SPDX-License-Identifier: Apache-2.0 */
/* The objects of replication on shared storage. Byte 0: bit 0 corrects the checksum; bit 1: a log's queues (wal/queues.h), else
 * the list of peers (replication/peer_list.h). What is decoded must encode to bytes that decode to as many entries. */
#include "base/checksum.h"
#include "replication/peer_list.h"
#include "wal/queues.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_queues(rq_slice bytes)
{
    rq_arena arena = {0};
    rq_buf out = {0};
    rq_wal_queues q, again;
    if (rq__queues_decode(bytes, &arena, &q, NULL) == RQ_OK) {
        if (rq__queues_encode(&q, &out) != RQ_OK) abort();
        if (rq__queues_decode(rq_buf_slice(&out), &arena, &again, NULL) != RQ_OK) abort();
        if (again.count != q.count || !rq_slice_eq(again.owner, q.owner)) abort();
    }
    rq_buf_clear(&out);
    rq_arena_clear(&arena);
}

static void check_peers(rq_slice bytes)
{
    rq_arena arena = {0};
    rq_buf out = {0};
    rq_peer_list l, again;
    if (rq__peer_list_decode(bytes, &arena, &l, NULL) == RQ_OK) {
        if (rq__peer_list_encode(&l, &out) != RQ_OK) abort();
        if (rq__peer_list_decode(rq_buf_slice(&out), &arena, &again, NULL) != RQ_OK) abort();
        if (again.count != l.count || again.version != l.version) abort();
    }
    rq_buf_clear(&out);
    rq_arena_clear(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 + 4) return 0;
    uint8_t *copy = malloc(size);
    if (copy == NULL) return 0;
    memcpy(copy, data, size);
    if ((data[0] & 1) != 0) rq_put_be32(copy + size - 4, rq_crc32c(0, copy + 1, size - 1 - 4));
    rq_slice bytes = rq_slice_of(copy + 1, size - 1);
    if ((data[0] & 2) != 0)
        check_queues(bytes);
    else
        check_peers(bytes);
    free(copy);
    return 0;
}
