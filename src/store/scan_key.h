/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of bytes and keys that a scanner keeps after the cells are gone: the current row and
 * column, a seek's target, the position to continue at. They grow by doubling in the scanner's
 * arena and are reused for the scanner's life.
 */
#ifndef RQ_STORE_SCAN_KEY_H
#define RQ_STORE_SCAN_KEY_H

#include "base/arena.h"
#include "cell/cell.h"

typedef struct rq__kept_bytes {
    uint8_t *ptr;
    uint32_t len;
    uint32_t cap;
} rq__kept_bytes;

/* Makes room for `len` bytes. The content is lost when it has to grow. */
static inline rq_err rq__kept_bytes_room(rq__kept_bytes *b, rq_arena *arena, size_t len)
{
    if (RQ_LIKELY(len <= b->cap)) return RQ_OK;
    if (len > UINT32_MAX / 2) return RQ_E_INVALID;
    size_t cap = b->cap < 32 ? 64 : 2 * (size_t)b->cap;
    if (cap < len) cap = len;
    uint8_t *ptr = rq_arena_alloc(arena, cap);
    if (ptr == NULL) return RQ_E_NO_MEMORY;
    b->ptr = ptr;
    b->cap = (uint32_t)cap;
    return RQ_OK;
}

static inline rq_err rq__kept_bytes_set(rq__kept_bytes *b, rq_arena *arena, const uint8_t *ptr,
                                        size_t len)
{
    RQ_TRY(rq__kept_bytes_room(b, arena, len));
    rq_short_copy(b->ptr, ptr, len);
    b->len = (uint32_t)len;
    return RQ_OK;
}

static inline rq_slice rq__kept_bytes_slice(const rq__kept_bytes *b)
{
    return rq_slice_of(b->ptr, b->len);
}

/* A copied key: row and qualifier are copies, value and tags are empty, the family's bytes
 * belong to the caller. */
typedef struct rq__kept_key {
    rq_cell cell;
    rq__kept_bytes bytes;
} rq__kept_key;

/* Copies `from`. Its family is replaced by `family`, unless it has none (row bounds). `from` may
 * point into the key itself only if it differs only in timestamp, type and seqid. */
static inline rq_err rq__kept_key_set(rq__kept_key *k, rq_arena *arena, const rq_cell *from,
                                      rq_slice family)
{
    RQ_TRY(rq__kept_bytes_room(&k->bytes, arena, (size_t)from->row_len + from->qualifier_len));
    uint8_t *row = k->bytes.ptr;
    if (from->row_len != 0) memmove(row, from->row, from->row_len);
    uint8_t *qualifier = row + from->row_len;
    if (from->qualifier_len != 0) memmove(qualifier, from->qualifier, from->qualifier_len);
    k->cell = (rq_cell){
        .row = row,
        .row_len = from->row_len,
        .qualifier = qualifier,
        .qualifier_len = from->qualifier_len,
        .timestamp = from->timestamp,
        .type = from->type,
        .seqid = from->seqid,
    };
    if (from->family_len != 0) {
        k->cell.family = family.ptr;
        k->cell.family_len = (uint8_t)family.len;
    }
    return RQ_OK;
}

#endif
