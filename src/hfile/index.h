/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The block index: writing it and reading its blocks. Within the room.
 *
 * Two forms on disk. HBASE: HFileBlockIndex, NoOpIndexBlockEncoder.
 *   root:     (be64 offset | be32 size | vint key length | key)…, then for more than one level the
 *             mid key: be64 offset | be32 size of its leaf | be32 entry in it
 *   non-root: be32 count | be32 relative offset, count + 1 of them |
 *             (be64 offset | be32 size | key)…
 *
 * In memory every index block has the non-root form, so that one binary search serves all levels. A
 * root is converted when it is read; its mid key follows it.
 *
 * Keys are serialized cell keys; in the meta index and in a ROW bloom they are plain bytes.
 */
#ifndef RQ_HFILE_INDEX_H
#define RQ_HFILE_INDEX_H

#include "base/buf.h"
#include "cell/cell.h"
#include "hfile/format.h"
#include "hfile/sidecar.h"

/* --- reading --------------------------------------------------------------------------------- */

typedef struct rq__index_entry {
    uint64_t offset;
    uint32_t size; /* of the whole block on disk */
    rq_slice key;
} rq__index_entry;

#define RQ__INDEX_MID_KEY_LEN 16

/* A view on a non-root index that rq__index_check accepted. */
typedef struct rq__index_view {
    const uint8_t *bytes;
    uint32_t count;
} rq__index_view;

/* Whether the bytes are a well-formed non-root index: offsets in order and inside, entries
 * within a file of `limit` bytes, keys that parse (if cell_keys). *ret_len: length of the index
 * itself. */
bool rq__index_check(rq_slice bytes, uint64_t limit, bool cell_keys, rq__index_view *ret,
                     size_t *ret_len);
/* The view without checks, for bytes that rq__index_check accepted before. */
rq__index_view rq__index_view_of(const uint8_t *bytes);
rq__index_entry rq__index_at(rq__index_view v, uint32_t i);
/* The last entry whose key is at or before the given key (_before: strictly before), or -1.
 * `marks` speed up the search for cell keys; NULL: none. */
int64_t rq__index_floor(rq__index_view v, const rq__sidecar *marks, rq_cell_order order,
                        const rq_cell *key);
int64_t rq__index_floor_before(rq__index_view v, const rq__sidecar *marks, rq_cell_order order,
                               const rq_cell *key);
int64_t rq__index_floor_bytes(rq__index_view v, rq_slice key);
/* Builds the marks of an index of cell keys. NULL: it is too short to benefit, or memory is
 * exhausted. */
rq__sidecar *rq__index_marks(rq__slab *slab, rq__index_view v, rq_cell_order order);

/* Appends the non-root form of `count` root entries read from the cursor, which ends behind
 * them. RQ_E_CORRUPT. */
RQ_NODISCARD
rq_err rq__index_from_root(rq_cursor *root, uint32_t count, rq_buf *out);

/* --- building -------------------------------------------------------------------------------- */

typedef struct rq__index_chunk {
    struct rq__index_chunk_entry *entries;
    size_t count, cap;
    rq_buf keys;
    size_t non_root_len; /* length of the entries, without count and relative offsets */
    size_t root_len;
} rq__index_chunk;

void rq__index_chunk_clear(rq__index_chunk *c);
void rq__index_chunk_reset(rq__index_chunk *c);
/* `sub_entries`: number of entries below this one and its predecessors, for the mid key. */
RQ_NODISCARD
rq_err rq__index_chunk_add(rq__index_chunk *c, rq_slice key, uint64_t offset, uint32_t size,
                           uint64_t sub_entries);
rq__index_entry rq__index_chunk_at(const rq__index_chunk *c, size_t i);
/* Length of the non-root form. */
size_t rq__index_chunk_len(const rq__index_chunk *c);
RQ_NODISCARD
rq_err rq__index_chunk_write(const rq__index_chunk *c, rq_buf *out);
RQ_NODISCARD
rq_err rq__index_chunk_write_root(const rq__index_chunk *c, rq_buf *out);
/* Writes the mid key of a chunk that is the root of more than one level. */
RQ_NODISCARD
rq_err rq__index_chunk_write_mid_key(const rq__index_chunk *c, rq_buf *out);

/* Replaces `out` with a short serialized key k, left < k <= right. `left` may be NULL. HBASE:
 * HFileWriterImpl.getMidpoint. */
RQ_NODISCARD
rq_err rq__index_key_between(rq_cell_order order, const rq_cell *left, const rq_cell *right,
                             rq_buf *out);

/* Whether a later key is possible in this cell's column: false for the last type at the oldest timestamp. */
bool rq__index_key_has_next(const rq_cell *key);
/* Replaces `out` with the first possible key behind all cells with this key, serialized. It is the index
 * key of a block whose first cells have the same key as the last cell of the block before. So a search for
 * this key finds the block with the first of these cells, and a search for a later key the last of their
 * blocks. REQUIRES: rq__index_key_has_next. */
RQ_NODISCARD
rq_err rq__index_key_behind(const rq_cell *key, rq_buf *out);

#endif
