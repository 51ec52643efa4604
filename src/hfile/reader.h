/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading HFiles: an open file and its scanners.
 *
 * An open file keeps its trailer, file info and little else in memory; index, bloom and data blocks
 * come through the block cache. It is immutable and reference-counted; any thread. Every block read
 * from the file has its header, checksum, sizes and inner structure checked before it is used;
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

/* What a reference of a split region stands for: the cells of a file in rows before `row`, or from
 * it on (`top`). HBASE: Reference, HalfStoreFileReader. */
typedef struct rq_hfile_half {
    rq_slice row;
    bool top;
} rq_hfile_half;

typedef struct rq_hfile_reader_options {
    rq_block_cache *cache;   /* NULL (tools): every block is then read from the file */
    rq_cache_family *family; /* whose counters the file's blocks go to; may be NULL */
    bool in_memory;          /* the family's IN_MEMORY attribute */
    bool keep_blocks;        /* they stay in the cache when the file is closed, for who opens it
                                again; else the last reader takes them along */
    /* NULL, or one half, whose scanners see its cells alone. What the file says of itself (counts,
     * blooms, keys, times) is of the whole: true of the half as an upper bound. Copied. */
    const rq_hfile_half *half;
} rq_hfile_reader_options;

/* Blocking. The vfs and the cache outlive the reader. A new reference. */
RQ_NODISCARD
rq_err rq_hfile_reader_open_with(rq_vfs *vfs, const char *path, const rq_hfile_reader_options *o,
                                 rq_hfile_reader **ret, rq_error *why);
/* The same with these options alone. */
RQ_NODISCARD
rq_err rq_hfile_reader_open(rq_vfs *vfs, const char *path, rq_block_cache *cache, bool in_memory,
                            rq_hfile_reader **ret, rq_error *why);
/* Of a file that is open already, without a cache. Takes it, whatever is returned; `path` is for
 * messages. */
RQ_NODISCARD
rq_err rq_hfile_reader_open_file(rq_file *file, const char *path, rq_hfile_reader **ret,
                                 rq_error *why);
rq_hfile_reader *rq_hfile_reader_ref(rq_hfile_reader *r);
/* The last one closes the file. NULL is fine. */
void rq_hfile_reader_unref(rq_hfile_reader *r);

const char *rq_hfile_reader_path(const rq_hfile_reader *r);
/* Valid as long as the reader. */
const rq_hfile_info *rq_hfile_reader_info(const rq_hfile_reader *r);
/* A hint: asks memory for what a point read looks at first. */
void rq_hfile_reader_ask_for(const rq_hfile_reader *r);
/* A file info value by HBase's key ("MAX_SEQ_ID_KEY"); false when absent. */
bool rq_hfile_reader_file_info(const rq_hfile_reader *r, rq_slice key, rq_slice *ret);
/* All of them, sorted by key: index from 0; false behind the last. */
bool rq_hfile_reader_file_info_at(const rq_hfile_reader *r, size_t index, rq_slice *ret_key,
                                  rq_slice *ret_value);

/* --- the file's blocks in the cache ----------------------------------------------------------- */
/* Nobody will open the file again: its blocks go with the last reader, kept or not. */
void rq_hfile_reader_set_obsolete(rq_hfile_reader *r);
/* What lies from `from` to `to` was read and will not be again: the operating system need not keep
 * it. The block cache does. */
void rq_hfile_reader_drop_behind(rq_hfile_reader *r, uint64_t from, uint64_t to);
/* Drops what is cached of it now; what is in use stays valid. */
void rq_hfile_reader_evict(rq_hfile_reader *r, uint64_t *ret_blocks, uint64_t *ret_bytes);
/* Bytes the cache holds of the file. */
uint64_t rq_hfile_reader_cached_bytes(const rq_hfile_reader *r);

enum { RQ_WARM_DATA = 1, RQ_WARM_INDEX = 2, RQ_WARM_BLOOMS = 4, RQ_WARM_ALL = 7 };

/* Blocking. Brings blocks of these kinds into the cache, in the file's order, from *position (0:
 * the beginning) on, until about `bytes_max` bytes were read; *position goes on. RQ_E_END at the
 * end of the blocks. Without a cache, and for halves, there is nothing to do. */
RQ_NODISCARD
rq_err rq_hfile_reader_warm(rq_hfile_reader *r, unsigned what, uint64_t bytes_max,
                            uint64_t *position, rq_error *why);
/* The caller's is the only reference. */
bool rq_hfile_reader_is_unused(const rq_hfile_reader *r);

/* --- cutting files before they are touched ---------------------------------------------------- */
/* Each sets *ret to false only when the file surely holds nothing that matches; a file without the
 * bloom answers true. RQ_E_AGAIN as every read. RQ_E_CORRUPT once: after that the damaged file
 * counts as one without blooms. HBASE: StoreFileReader goes on without a faulty bloom. */

/* Whether the row may be in the file. Uses a ROW bloom; other types answer by key range. */
RQ_NODISCARD
rq_err rq_hfile_may_contain_row(rq_hfile_reader *r, rq_read_ctx *ctx, rq_slice row, bool *ret,
                                rq_error *why);
/* Whether rows that begin with these bytes may be in the file. ROWPREFIX_FIXED_LENGTH, where the
 * prefix is not shorter than the bloom's; others answer true. */
RQ_NODISCARD
rq_err rq_hfile_may_contain_prefix(rq_hfile_reader *r, rq_read_ctx *ctx, rq_slice prefix, bool *ret,
                                   rq_error *why);
/* Whether the column, or a family delete of its row, may be in the file. ROWCOL bloom, else ROW. */
RQ_NODISCARD
rq_err rq_hfile_may_contain_column(rq_hfile_reader *r, rq_read_ctx *ctx, rq_slice row,
                                   rq_slice qualifier, bool *ret, rq_error *why);
/* Whether a DeleteFamily or DeleteFamilyVersion of the row may be in the file. */
RQ_NODISCARD
rq_err rq_hfile_may_contain_delete_family(rq_hfile_reader *r, rq_read_ctx *ctx, rq_slice row,
                                          bool *ret, rq_error *why);

/* The key in the middle of the data index: where a region splits. RQ_E_END on an empty file, and on
 * a half, which is not divided again (HBASE: HalfStoreFileReader.midKey). The bytes are appended to
 * `out`; a serialized key. */
RQ_NODISCARD
rq_err rq_hfile_midkey(rq_hfile_reader *r, rq_read_ctx *ctx, rq_buf *out, rq_error *why);

/* --- scanners ------------------------------------------------------------------------------- */
/*
 * A position in a file. Visible so that it can be embedded; fields are the reader's own. While
 * positioned it pins the current data block (and the index block that led to it).
 *
 * Keys are compared without the sequence id: a seek finds the first cell whose key is at or behind
 * the given one, so that among equal keys the newest sequence id comes first.
 *
 * RQ_E_AGAIN (may_block false): ctx->need tells what is missing; the scanner, its current cell
 * included, is as before and the same call may be repeated. RQ_E_END: no such cell; the scanner is
 * then not positioned. Any other error: not positioned.
 */
typedef struct rq_hfile_scanner {
    rq_hfile_reader *reader;
    rq_hfile_block *block; /* pinned while positioned */
    rq_hfile_block *leaf;  /* the index block (leaf, or root of one level) of `block` */
    bool owns_leaf;        /* else it is the reader's */
    bool owns_reader;      /* else the caller keeps it */
    uint32_t path[RQ_HFILE_INDEX_LEVELS_MAX]; /* entry taken in each index level, root first */
    uint32_t pos;                             /* of the cell in the block's payload */
    uint32_t next_pos;                        /* behind it */
    rq_cell cell;
    struct rq__delta
        *walk; /* delta-encoded files: the cell's key and how to go on; NULL: not yet */
    struct rq__delta *spare; /* where a move looks before it is sure */
} rq_hfile_scanner;

/* Takes a reference to the reader; not positioned. */
void rq_hfile_scanner_init(rq_hfile_scanner *s, rq_hfile_reader *r);
/* Without one: the reader outlives the scanner. A reference is a write to what all threads read. */
void rq_hfile_scanner_init_borrowed(rq_hfile_scanner *s, rq_hfile_reader *r);
/* Drops pins and the position, keeps the reader: cheap parking between two RPCs. */
void rq_hfile_scanner_release(rq_hfile_scanner *s);
/* Releases everything; all-zero scanners are fine. */
void rq_hfile_scanner_clear(rq_hfile_scanner *s);

RQ_NODISCARD
rq_err rq_hfile_scanner_seek_first(rq_hfile_scanner *s, rq_read_ctx *ctx, rq_error *why);
/* To the first cell at or behind the key, which may be the scanner's own cell or point into it. */
RQ_NODISCARD
rq_err rq_hfile_scanner_seek(rq_hfile_scanner *s, rq_read_ctx *ctx, const rq_cell *key,
                             rq_error *why);
/* Where a scanner of a plain file stood; file 0: nowhere. It says nothing of any other file, so it
 * may be kept when scanner and reader go. */
typedef struct rq_hfile_place {
    uint64_t file, block;
    uint32_t pos;
} rq_hfile_place;
rq_hfile_place rq_hfile_scanner_place(const rq_hfile_scanner *s);
bool rq_hfile_scanner_is_of(const rq_hfile_scanner *s, const rq_hfile_place *place);
/* Where the block at hand lies in the file; 0: there is none. */
uint64_t rq_hfile_scanner_offset(const rq_hfile_scanner *s);
/* As seek, for who goes on where he was: of the place's block cells before it may be passed over
 * unseen. Costs no search in the block, and the block earns no sidecar by it. */
RQ_NODISCARD
rq_err rq_hfile_scanner_seek_from(rq_hfile_scanner *s, rq_read_ctx *ctx, const rq_cell *key,
                                  const rq_hfile_place *place, rq_error *why);
/* The same, but never backward: stays where it is when the current cell is already at or behind
 * the key, and looks in the current block first. Seeks when not positioned. */
RQ_NODISCARD
rq_err rq_hfile_scanner_reseek(rq_hfile_scanner *s, rq_read_ctx *ctx, const rq_cell *key,
                               rq_error *why);
/* To the last cell before the key (reverse scans). */
RQ_NODISCARD
rq_err rq_hfile_scanner_seek_before(rq_hfile_scanner *s, rq_read_ctx *ctx, const rq_cell *key,
                                    rq_error *why);
RQ_NODISCARD
rq_err rq_hfile_scanner_next(rq_hfile_scanner *s, rq_read_ctx *ctx, rq_error *why);

/* Inside the block the scanner stands in, without I/O, and with what it showed of the rows. */
typedef enum rq_hfile_move {
    RQ_HFILE_NOT_MOVED, /* nothing has changed: rq_hfile_scanner_next knows more */
    RQ_HFILE_SAME_ROW,
    RQ_HFILE_NEW_ROW, /* the cell is of another row than the one before */
} rq_hfile_move;
/* REQUIRES: positioned, in a file that is_plain. */
rq_hfile_move rq_hfile_scanner_next_here(rq_hfile_scanner *s);
/* To the first cell of the row behind this one; false: nothing has changed, as above. */
bool rq_hfile_scanner_skip_row_here(rq_hfile_scanner *s);
/* It is a whole file, and its cells stand as KeyValues in their blocks, from row - 10 on. */
bool rq_hfile_reader_is_plain(const rq_hfile_reader *r);

static inline bool rq_hfile_scanner_is_positioned(const rq_hfile_scanner *s)
{
    return s->block != NULL;
}

/* A view on the pinned block and the scanner's own memory, valid until the scanner's next call that
 * succeeds or fails with anything but RQ_E_AGAIN. NULL when not positioned. */
static inline const rq_cell *rq_hfile_scanner_cell(const rq_hfile_scanner *s)
{
    return s->block != NULL ? &s->cell : NULL;
}

void rq_hfile_block_unref(rq_hfile_block *b); /* NULL is fine */

#endif
