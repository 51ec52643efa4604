/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Delta encodings of data blocks: a cell is written as its difference from the previous cell.
 * Within the room. HBASE: PrefixKeyDeltaEncoder, DiffKeyDeltaEncoder, FastDiffDeltaEncoder 2.6.
 *
 * A block is be16 encoding id, be32 length of its cells in a DATA block, and the encoded cells. `n`
 * is a varint. A "key" is a KeyValue's key (row length, row, family length, family, qualifier,
 * timestamp, type). `shared` is the number of its first bytes that equal the previous key's:
 *
 *   PREFIX      n rest of the key | n value | n shared | rest of the key | value
 *   DIFF        flags | [n key] | [n value] | n shared | rest of row and qualifier |
 *               1 to 8 bytes of timestamp or of its difference, little-endian | [type] | value
 *               before the first cell: u8 family length, family
 *   FAST_DIFF   flags | [n key] | [n value] | n shared | rest of row and qualifier |
 *               the bytes of the timestamp after the shared ones | [type] | [value]
 *               the first cell: its whole key
 *   each then   [n tags | tags (tag_dictionary.h, or uncompressed)] | [vlong sequence id]
 *
 * In memory a block keeps this form, without the six bytes in front and with tags uncompressed: a
 * cell's tags must not depend on earlier tags, so that reading can begin at a checkpoint.
 */
#ifndef RQ_HFILE_DELTA_H
#define RQ_HFILE_DELTA_H

#include "base/buf.h"
#include "hfile/format.h"
#include "hfile/sidecar.h"
#include "hfile/tag_dictionary.h"

#define RQ__DELTA_HEADER_LEN 6

static inline bool rq__encoding_is_delta(rq_block_encoding e)
{
    return e == RQ_ENCODING_PREFIX || e == RQ_ENCODING_DIFF || e == RQ_ENCODING_FAST_DIFF;
}

/* The format of a file's cells. */
typedef struct rq__delta_shape {
    rq_block_encoding encoding;
    bool has_tags;
    bool has_mvcc;
} rq__delta_shape;

/* Lengths of the common prefixes of two cells. */
typedef struct rq__delta_shared {
    uint32_t row;       /* of their rows */
    uint32_t qualifier; /* of their qualifiers; 0 unless same_row */
    bool same_row;
} rq__delta_shared;
rq__delta_shared rq__delta_shared_of(const rq_cell *a, const rq_cell *b);

/* Appends `cell`; `last` is the previous cell of the block, NULL for the first; `shared` is rq__delta_shared_of the
 * two. `dictionary` NULL: tags are not compressed. */
RQ_NODISCARD
rq_err rq__delta_encode(rq__delta_shape shape, const rq_cell *cell, const rq_cell *last,
                        rq__delta_shared shared, rq__tag_dictionary *dictionary, rq_buf *out);

/* --- reading ---------------------------------------------------------------------------------- */

/* A position in a block. With zero bytes (except `key` and `room`) it is before the first cell. */
typedef struct rq__delta {
    rq_cell cell; /* row, family and qualifier point into `key`, the rest into the payload */
    uint32_t pos; /* offset of the cell in the payload */
    uint32_t next_pos;
    uint32_t key_len;   /* 0: before the first cell */
    uint32_t family_at; /* DIFF, FAST_DIFF: offset of family length and family in the payload */
    uint32_t room;
    uint8_t *key; /* the cell's key, as in a KeyValue */
} rq__delta;

void rq__delta_clear(rq__delta *d);
/* Moves before the first cell. */
static inline void rq__delta_rewind(rq__delta *d)
{
    d->next_pos = 0;
    d->key_len = 0;
}
RQ_NODISCARD
rq_err rq__delta_copy(rq__delta *to, const rq__delta *from);

/* Moves to the next cell. REQUIRES: bytes are left. RQ_E_CORRUPT: the position is invalid
 * afterwards. */
RQ_NODISCARD
rq_err rq__delta_next(rq__delta *d, rq__delta_shape shape, rq_slice payload);

/* Converts a block whose tags are compressed with a dictionary: appends its cells with uncompressed tags.
 * RQ_E_CORRUPT: also if the result is larger than RQ__DELTA_UNPACKED_FREE bytes plus 64 times the payload; no
 * writer makes such a block. */
#define RQ__DELTA_UNPACKED_FREE ((size_t)64 << 20)
RQ_NODISCARD
rq_err rq__delta_unpack_tags(rq__delta_shape shape, rq_slice payload, rq_buf *out);

/* --- checkpoints ------------------------------------------------------------------------------ */

#define RQ__DELTA_CELLS_PER_CHECKPOINT 16

/* Builds the block's sidecar: the key of every 16th cell (of fewer, if keys are long and their
 * differences short) and the state needed to continue from there. */
RQ_NODISCARD
rq_err rq__delta_checkpoints(rq__slab *slab, rq__delta_shape shape, rq_slice payload,
                             rq__sidecar **ret);
/* The last checkpoint whose cell sorts before the key; -1 when none does. */
int64_t rq__delta_checkpoint_before(const rq__sidecar *s, rq_cell_order order, const rq_cell *key);
/* Offset of the checkpoint's cell. */
uint32_t rq__delta_checkpoint_pos(const rq__sidecar *s, uint32_t i);
/* Moves `d` to the checkpoint's cell. */
RQ_NODISCARD
rq_err rq__delta_restore(rq__delta *d, const rq__sidecar *s, uint32_t i, rq_slice payload);

#endif
