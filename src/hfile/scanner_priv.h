/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a scanner's move, shared by the files of the scanner: scanner.c (seeking and stepping) finds a
 * data block by the index (scanner_index.c) and a cell inside it (scanner_block.c). Within the room.
 *
 * Every move first collects all blocks it needs in a target and only then changes the scanner, so
 * that RQ_E_AGAIN leaves it unchanged. */
#ifndef RQ_HFILE_SCANNER_PRIV_H
#define RQ_HFILE_SCANNER_PRIV_H

#include "hfile/plain.h"
#include "hfile/reader_priv.h"

/* The destination of a move. Its blocks are references owned by the target until it is taken or
 * dropped, except an index block that the reader holds. */
typedef struct rq__target {
    rq__lent_block leaf;
    rq_hfile_block *block;
    uint32_t path[RQ_HFILE_INDEX_LEVELS_MAX];
    size_t pos, next_pos;
    rq_cell cell;
} rq__target;

static inline void rq__target_drop(rq__target *t)
{
    rq__lent_return(t->leaf);
    rq__hfile_block_unref(t->block);
    t->leaf = (rq__lent_block){0};
    t->block = NULL;
}

static inline rq__lent_block rq__scanner_leaf(const rq_hfile_scanner *s)
{
    return (rq__lent_block){s->leaf, s->owns_leaf};
}

static inline rq__plain_shape rq__scanner_shape(const rq_hfile_scanner *s)
{
    return (rq__plain_shape){s->reader->info.has_tags, s->reader->info.has_mvcc};
}

static inline rq_slice rq__payload_of(const rq_hfile_block *b)
{
    return rq_slice_of(b->payload, b->payload_len);
}

static inline bool rq__scanner_is_delta(const rq_hfile_scanner *s)
{
    return rq__encoding_is_delta(s->reader->info.encoding);
}

/* --- cells ------------------------------------------------------------------------------------ */

RQ_COLD rq_err rq__scanner_bad_cell(const rq_hfile_scanner *s, const rq_hfile_block *b, size_t pos,
                                    rq_error *why);

static inline rq_err rq__scanner_cell_at(const rq_hfile_scanner *s, const rq_hfile_block *b,
                                         size_t pos, rq_cell *ret, size_t *ret_next, rq_error *why)
{
    size_t len = rq__plain_parse(b->payload + pos, b->payload_len - pos, rq__scanner_shape(s), ret);
    if (RQ_UNLIKELY(len == 0)) return rq__scanner_bad_cell(s, b, pos, why);
    *ret_next = pos + len;
    return RQ_OK;
}

static inline rq_err rq__scanner_delta_next(const rq_hfile_scanner *s, const rq_hfile_block *b,
                                            rq__delta *d, rq_error *why)
{
    rq_err rc = rq__delta_next(d, rq__reader_delta_shape(s->reader), rq__payload_of(b));
    return RQ_UNLIKELY(rc == RQ_E_CORRUPT) ? rq__scanner_bad_cell(s, b, d->pos, why) : rc;
}

/* --- scanner_block.c -------------------------------------------------------------------------- */

/* The sidecar, if the block has one or this is its second search. */
RQ_NODISCARD
rq_err rq__scanner_sidecar(const rq_hfile_scanner *s, rq_hfile_block *b, bool wanted,
                           rq__sidecar **ret, rq_error *why);
/* Moves the target to its block's first cell. */
RQ_NODISCARD
rq_err rq__scanner_find_first(rq_hfile_scanner *s, rq__target *t, rq_error *why);
/* Moves the target to the first cell of its block that is neither before `pos` nor before the key. */
RQ_NODISCARD
rq_err rq__scanner_find_from(rq_hfile_scanner *s, rq__target *t, size_t pos, const rq_cell *key,
                             bool *ret_found, rq_error *why);
/* Moves the target to the first cell of its block at or behind the key; with `from_here` the block
 * is the scanner's own and its current cell is before the key. *ret_found is false if there is
 * none. */
RQ_NODISCARD
rq_err rq__scanner_find_at_or_behind(rq_hfile_scanner *s, rq__target *t, bool from_here,
                                     const rq_cell *key, bool *ret_found, rq_error *why);
/* Moves the target to the last cell of its block that is before the key, or to the last one if key
 * is NULL. */
RQ_NODISCARD
rq_err rq__scanner_find_last_before(rq_hfile_scanner *s, rq__target *t, const rq_cell *key,
                                    bool *ret_found, rq_error *why);

/* --- scanner_index.c -------------------------------------------------------------------------- */

typedef enum rq__edge { RQ__EDGE_FIRST, RQ__EDGE_LAST } rq__edge;

/* How a descent chooses an entry of an index block. */
typedef struct rq__choice {
    const uint32_t *path; /* the entries themselves; NULL: by key */
    const rq_cell *key;   /* NULL: by edge */
    bool before;          /* strictly before the key */
    rq__edge edge;
} rq__choice;

RQ_NODISCARD
rq_err rq__scanner_load(rq_hfile_scanner *s, rq_read_ctx *ctx, rq__target *t, rq_error *why);
/* Descends from index block `b` of `level` (whose reference it takes over) to the last index block. */
RQ_NODISCARD
rq_err rq__scanner_descend_to_leaf(rq_hfile_scanner *s, rq_read_ctx *ctx, rq__lent_block b,
                                   uint32_t level, rq__choice c, rq__target *t, rq_error *why);
RQ_NODISCARD
rq_err rq__scanner_descend(rq_hfile_scanner *s, rq_read_ctx *ctx, rq__choice c, rq__target *t,
                           rq_error *why);
/* Moves to the data block next to that of (leaf, path); RQ_E_END at the file's edge. */
RQ_NODISCARD
rq_err rq__scanner_step(rq_hfile_scanner *s, rq_read_ctx *ctx, rq__lent_block leaf,
                        const uint32_t *path, rq__edge side, rq__target *t, rq_error *why);

#endif
