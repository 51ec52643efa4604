/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading HFiles: an open file and its scanners.
 *
 * An open file keeps its trailer, its file info and little else in memory; index, bloom and data
 * blocks come through the block cache. A reader is immutable, reference-counted, and usable by any
 * thread. Header, checksum, sizes and inner structure of every block are checked after it is read;
 * RQ_E_CORRUPT names the file and the block's offset.
 */
#ifndef RQ_HFILE_READER_H
#define RQ_HFILE_READER_H

#include "cell/cell.h"
#include "hfile/block_cache.h"
#include "hfile/format.h"
#include "hfile/read_ctx.h"
#include "vfs/vfs.h"

/* --- files ---------------------------------------------------------------------------------- */

/* What a reference file of a split region stands for: the cells of a file in rows before `row`,
 * or (`top`) from `row` on. HBASE: Reference, HalfStoreFileReader. */
typedef struct rq_hfile_half {
    rq_slice row;
    bool top;
} rq_hfile_half;

typedef struct rq_hfile_reader_options {
    rq_block_cache *cache;   /* NULL (tools): blocks are read from the file each time */
    rq_cache_family *family; /* counts the file's blocks in the cache; may be NULL */
    bool in_memory;          /* the family's IN_MEMORY attribute */
    bool keep_blocks;        /* blocks stay in the cache when the file is closed, for the next
                              * reader of the file; else the last reader evicts them */
    /* NULL, or a half: scanners see its cells only. The file's own statements (counts, blooms,
     * keys, times) are those of the whole file: an upper bound for the half. Copied. */
    const rq_hfile_half *half;
} rq_hfile_reader_options;

/* Opens a file; returns a new reference. Blocks. The vfs and the cache must outlive the reader. */
RQ_NODISCARD
rq_err rq_hfile_reader_open_with(rq_vfs *vfs, const char *path, const rq_hfile_reader_options *o,
                                 rq_hfile_reader **ret, rq_error *why);
/* Like rq_hfile_reader_open_with, with these options only. */
RQ_NODISCARD
rq_err rq_hfile_reader_open(rq_vfs *vfs, const char *path, rq_block_cache *cache, bool in_memory,
                            rq_hfile_reader **ret, rq_error *why);
/* Makes a reader without a cache for an open file. Takes over the file, also on failure. `path`
 * is for messages. */
RQ_NODISCARD
rq_err rq_hfile_reader_open_file(rq_file *file, const char *path, rq_hfile_reader **ret,
                                 rq_error *why);
rq_hfile_reader *rq_hfile_reader_ref(rq_hfile_reader *r);
/* Dropping the last reference closes the file. NULL is allowed. */
void rq_hfile_reader_unref(rq_hfile_reader *r);

const char *rq_hfile_reader_path(const rq_hfile_reader *r);
/* Valid as long as the reader. */
const rq_hfile_info *rq_hfile_reader_info(const rq_hfile_reader *r);
/* A hint: prefetches the fields that a point read uses first. */
void rq_hfile_reader_prefetch(const rq_hfile_reader *r);
/* A file info value by HBase's key ("MAX_SEQ_ID_KEY"); false when absent. */
bool rq_hfile_reader_file_info(const rq_hfile_reader *r, rq_slice key, rq_slice *ret);
/* All file info entries, sorted by key; index from 0. False: index is past the end. */
bool rq_hfile_reader_file_info_at(const rq_hfile_reader *r, size_t index, rq_slice *ret_key,
                                  rq_slice *ret_value);

/* --- the file's blocks in the cache ----------------------------------------------------------- */
/* Says that the file will not be opened again: the last reader then evicts its blocks, whatever
 * keep_blocks says. */
void rq_hfile_reader_set_obsolete(rq_hfile_reader *r);
/* Advice that the bytes [from, to) will not be read from the file again, so the operating system
 * need not keep them. Does not affect the block cache. */
void rq_hfile_reader_drop_behind(rq_hfile_reader *r, uint64_t from, uint64_t to);
/* Evicts the file's blocks from the cache. Blocks in use stay valid. */
void rq_hfile_reader_evict(rq_hfile_reader *r, uint64_t *ret_blocks, uint64_t *ret_bytes);
/* Bytes of the file's blocks in the cache. */
uint64_t rq_hfile_reader_cached_bytes(const rq_hfile_reader *r);

/* Whether each data block is in one of the cache's levels. Blocks: reads the blocks' headers, up to the
 * first that is in none. False for a half of a file. */
RQ_NODISCARD
rq_err rq_hfile_reader_is_cached(rq_hfile_reader *r, bool *ret, rq_error *why);

enum { RQ_WARM_DATA = 1, RQ_WARM_INDEX = 2, RQ_WARM_BLOOMS = 4, RQ_WARM_ALL = 7 };

/* Reads blocks of these kinds into the cache, in file order, starting at *position (0: the
 * beginning), until about `bytes_max` bytes were read; updates *position. Blocks. RQ_E_END: the end
 * of the blocks was reached, or the reader has no cache or is for a half. */
RQ_NODISCARD
rq_err rq_hfile_reader_warm(rq_hfile_reader *r, unsigned what, uint64_t bytes_max,
                            uint64_t *position, rq_error *why);
/* Whether the caller holds the only reference. */
bool rq_hfile_reader_is_unused(const rq_hfile_reader *r);

/* --- cutting files before they are touched ---------------------------------------------------- */
/* Each sets *ret to false only if the file certainly holds no match; without the bloom it is
 * true. May return RQ_E_AGAIN like every read. A damaged bloom returns RQ_E_CORRUPT once; then
 * the file counts as one without blooms. HBASE: StoreFileReader goes on without a faulty bloom. */

/* Whether the file may contain the row. Uses a ROW or ROWPREFIX_FIXED_LENGTH bloom and the key
 * range; with other types only the key range. */
RQ_NODISCARD
rq_err rq_hfile_may_contain_row(rq_hfile_reader *r, rq_read_ctx *ctx, rq_slice row, bool *ret,
                                rq_error *why);
/* Whether the file may contain rows with this prefix. Uses a ROWPREFIX_FIXED_LENGTH bloom if the
 * prefix is not shorter than the bloom's; otherwise true. */
RQ_NODISCARD
rq_err rq_hfile_may_contain_prefix(rq_hfile_reader *r, rq_read_ctx *ctx, rq_slice prefix, bool *ret,
                                   rq_error *why);
/* Whether the file may contain the column, or a family delete of its row. Uses a ROWCOL bloom;
 * without one like rq_hfile_may_contain_row. */
RQ_NODISCARD
rq_err rq_hfile_may_contain_column(rq_hfile_reader *r, rq_read_ctx *ctx, rq_slice row,
                                   rq_slice qualifier, bool *ret, rq_error *why);
/* Whether the file may contain a DeleteFamily or DeleteFamilyVersion of the row. */
RQ_NODISCARD
rq_err rq__hfile_may_contain_delete_family(rq_hfile_reader *r, rq_read_ctx *ctx, rq_slice row,
                                           bool *ret, rq_error *why);

/* Appends the key in the middle of the data index to `out`, serialized: where a region splits.
 * RQ_E_END: the file is empty, or a half, which is not split again (HBASE:
 * HalfStoreFileReader.midKey). */
RQ_NODISCARD
rq_err rq_hfile_midkey(rq_hfile_reader *r, rq_read_ctx *ctx, rq_buf *out, rq_error *why);

/* --- scanners ------------------------------------------------------------------------------- */
/*
 * A position in a file. The struct is visible so that it can be embedded; its fields are internal.
 * While positioned it pins the current data block and the index block that leads to it.
 *
 * Keys are compared without the sequence id: a seek finds the first cell whose key is at or behind
 * the given key, so among equal keys the cell with the newest sequence id.
 *
 * RQ_E_AGAIN (may_block false): ctx->need names the missing block; the scanner and its current cell
 * are unchanged and the same call may be repeated. RQ_E_END: there is no such cell; the scanner is
 * not positioned afterwards, as after any other error.
 */
/* How far a scanner has followed the file's data blocks, one after the other; zero: not at all. */
typedef struct rq_hfile_trail {
    uint64_t begun, end; /* of the blocks moved through in sequence, on disk */
    uint64_t planned;    /* up to this offset it is decided how the blocks are read */
    uint64_t leaf_asked; /* offset of the index block that was asked for last; 0: none */
    bool os_reads_ahead; /* the last decision: the operating system reads ahead */
} rq_hfile_trail;

typedef struct rq_hfile_scanner {
    rq_hfile_reader *reader;
    rq_hfile_block *block; /* pinned while positioned */
    rq_hfile_block *leaf;  /* the index block that `block` was found in (a leaf, or a root) */
    bool owns_leaf;        /* else it is held by the reader */
    bool owns_reader;      /* else the caller holds it */
    uint32_t path[RQ_HFILE_INDEX_LEVELS_MAX]; /* entry taken in each index level, root first */
    uint32_t pos;                             /* offset of the cell in the block's payload */
    uint32_t next_pos;                        /* offset behind the cell */
    rq_cell cell;
    rq_hfile_trail trail;
    bool follows;            /* reads in sequence, and is counted in the reader's `followers` */
    uint8_t back_wait;       /* number of moves back not to be tried here, since one was too far */
    struct rq__delta *walk;  /* delta-encoded files: the decoding state; NULL: not yet made */
    struct rq__delta *spare; /* second decoding state, for moves that may fail */
} rq_hfile_scanner;

/* Takes a reference to the reader. The scanner is not positioned. */
void rq_hfile_scanner_init(rq_hfile_scanner *s, rq_hfile_reader *r);
/* Takes no reference: the reader must outlive the scanner. This avoids a write to a cache line
 * that all threads read. */
void rq_hfile_scanner_init_borrowed(rq_hfile_scanner *s, rq_hfile_reader *r);
/* Releases pins and position but keeps the reader: cheap parking between two RPCs. */
void rq__hfile_scanner_release(rq_hfile_scanner *s);
/* Releases everything. A zeroed scanner is allowed. */
void rq_hfile_scanner_clear(rq_hfile_scanner *s);

RQ_NODISCARD
rq_err rq_hfile_scanner_seek_first(rq_hfile_scanner *s, rq_read_ctx *ctx, rq_error *why);
/* Moves to the first cell at or behind the key, which may be the scanner's own cell or point
 * into it. */
RQ_NODISCARD
rq_err rq_hfile_scanner_seek(rq_hfile_scanner *s, rq_read_ctx *ctx, const rq_cell *key,
                             rq_error *why);
/* A remembered position in a file; file 0: none. It holds no references and may outlive scanner and
 * reader; it has no meaning for other files. */
typedef struct rq_hfile_place {
    uint64_t file, block;
    uint32_t pos;
    uint32_t path[RQ_HFILE_INDEX_LEVELS_MAX]; /* as the scanner's */
    rq_hfile_trail trail;
} rq_hfile_place;
rq_hfile_place rq_hfile_scanner_place(const rq_hfile_scanner *s);
bool rq_hfile_scanner_is_of(const rq_hfile_scanner *s, const rq_hfile_place *place);
/* File offset of the current block; 0: none, or the first one. */
uint64_t rq_hfile_scanner_offset(const rq_hfile_scanner *s);
/* Like seek, to continue a scan at `place`, which also has the scan's read-ahead state (trail). Cells before the
 * place are not compared with the key. So the block is not searched and needs no sidecar, and a scan within
 * many equal keys does not begin with the first of them again. */
RQ_NODISCARD
rq_err rq_hfile_scanner_seek_from(rq_hfile_scanner *s, rq_read_ctx *ctx, const rq_cell *key,
                                  const rq_hfile_place *place, rq_error *why);
/* Like seek, but never backward: stays if the current cell is at or behind the key, and searches
 * the current block first. Seeks if not positioned. */
RQ_NODISCARD
rq_err rq_hfile_scanner_reseek(rq_hfile_scanner *s, rq_read_ctx *ctx, const rq_cell *key,
                               rq_error *why);
/* Moves to the last cell before the key (reverse scans). */
RQ_NODISCARD
rq_err rq_hfile_scanner_seek_before(rq_hfile_scanner *s, rq_read_ctx *ctx, const rq_cell *key,
                                    rq_error *why);
RQ_NODISCARD
rq_err rq_hfile_scanner_next(rq_hfile_scanner *s, rq_read_ctx *ctx, rq_error *why);

/* Result of a move inside the current block, without I/O. */
typedef enum rq_hfile_move {
    RQ_HFILE_NOT_MOVED, /* unchanged; call rq_hfile_scanner_next instead */
    RQ_HFILE_SAME_ROW,
    RQ_HFILE_NEW_ROW, /* the new cell belongs to another row */
} rq_hfile_move;
/* REQUIRES: positioned, in a file that is_plain. */
rq_hfile_move rq_hfile_scanner_next_here(rq_hfile_scanner *s);
/* Moves to the first cell of the next row. False: unchanged; it is not in this block. */
bool rq_hfile_scanner_skip_row_here(rq_hfile_scanner *s);
/* Move back to the last cell before the key (_before), or to the first cell that is not before it (_to),
 * if that cell is a few cells away in the current block and the block has a sidecar. False: unchanged;
 * use a seek. REQUIRES: the file is_plain. */
bool rq_hfile_scanner_back_before_here(rq_hfile_scanner *s, const rq_cell *key);
bool rq_hfile_scanner_back_to_here(rq_hfile_scanner *s, const rq_cell *key);
/* Whether the reader is for a whole file, not a half, whose blocks contain plain KeyValues; a
 * cell's KeyValue then begins at cell.row - 10. */
bool rq_hfile_reader_is_plain(const rq_hfile_reader *r);

/* The current cell: a view on the pinned block and the scanner's memory, valid until the
 * scanner's next call that returns anything but RQ_E_AGAIN. NULL when not positioned. */
static inline const rq_cell *rq_hfile_scanner_cell(const rq_hfile_scanner *s)
{
    return s->block != NULL ? &s->cell : NULL;
}

void rq__hfile_block_unref(rq_hfile_block *b); /* NULL is allowed */

#endif
