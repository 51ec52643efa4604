/* SPDX-License-Identifier: Apache-2.0 */
/* The reader's struct and its blocks, shared by the files that read (reader.c, the files of the
 * scanner, bloom_reader.c, half.c, held.c, here.c, warm.c, check.c, ahead.c, read_ctx.c). Within the
 * room. */
#ifndef RQ_HFILE_READER_PRIV_H
#define RQ_HFILE_READER_PRIV_H

#include "hfile/block.h"
#include "hfile/delta.h"
#include "hfile/index.h"
#include "hfile/reader.h"
#include "hfile/trailer.h"

/* Offset and size of a block; size 0: none. */
typedef struct rq__block_place {
    uint64_t offset;
    uint32_t size;
} rq__block_place;

/* The fields that point reads use come first, in four cache lines (rq_hfile_reader_prefetch). */
struct rq_hfile_reader {
    /* Blocks held by the reader (held.c); NULL without a cache. */
    _Atomic(rq_hfile_block *) *held;
    size_t held_count;
    size_t held_chunks[2], held_children; /* first slot of each kind */
    struct rq__half *half;                /* NULL: the whole file */
    rq__cache_file *cached;               /* NULL without a cache */
    rq__block_place root, bloom, delete_bloom;
    _Atomic bool bloom_damaged;  /* a bloom could not be read; blooms are not used any more */
    bool counts_delete_families; /* the file info has DELETE_FAMILY_COUNT */
    bool unpacks_tags;           /* tags in data blocks are compressed */
    bool in_memory, keep_blocks;
    uint8_t checksum_type;     /* of every block */
    uint32_t bloom_prefix_len; /* ROWPREFIX_FIXED_LENGTH */
    rq_hfile_info info;

    _Atomic uint32_t refs;
    _Atomic int followers; /* scanners that read in sequence */
    /* Blocks read in advance; guarded by the lock of the cache's windows, but compared with NULL without the lock. */
    _Atomic(struct rq__window *) windows;
    rq_block_cache *cache; /* NULL: tools */
    rq_file *file;
    char *path;
    uint64_t data_end; /* end of the blocks: the trailer's offset */
    rq_slice end;      /* the file's last bytes, while it is being opened; otherwise empty */
    uint64_t end_offset;
    rq__trailer trailer;
    rq__file_info file_info;
    uint8_t *first_key;
};

/* --- one half of a file (half.c) -------------------------------------------------------------- */
typedef struct rq__half {
    rq_cell key; /* the smallest key of the dividing row, which is stored behind the struct */
    bool top;    /* the half at or behind the key; else the one before it */
} rq__half;

RQ_NODISCARD
rq_err rq__half_new(const rq_hfile_half *half, const char *path, rq__half **ret, rq_error *why);

/* Called after a scanner of a half has moved: if it is outside the half, makes it not positioned
 * and returns RQ_E_END. */
RQ_NODISCARD
rq_err rq__half_check(rq_hfile_scanner *s);

/* --- blocks in memory ------------------------------------------------------------------------- */
/*
 * The payload of a loaded block:
 *   data            plain cells, or delta-encoded cells (delta.h) without header and with
 *                   uncompressed tags; cells are checked one by one as they are parsed
 *   index, any      the non-root form (index.h), checked; a root has its mid key behind it
 *   bloom chunk     the bits, not empty
 *   bloom meta      rq__bloom_meta, then the non-root form
 *   others          as on disk
 */
typedef struct rq__bloom_meta {
    uint32_t hash_type;
    uint32_t hash_count;
    uint32_t chunk_count;
    bool cell_keys;
    uint64_t key_count, max_keys, bytes;
} rq__bloom_meta;

static inline rq__index_view rq__bloom_meta_index(const rq_hfile_block *b)
{
    return rq__index_view_of(b->payload + sizeof(rq__bloom_meta));
}

/* The file id stored in its blocks. Without a cache only pinned blocks carry it, which do not
 * outlive the reader. */
static inline uint64_t rq__reader_file_id(const rq_hfile_reader *r)
{
    return r->cached == NULL ? (uint64_t)(uintptr_t)r
                             : atomic_load_explicit(&r->cached->id, memory_order_relaxed);
}

static inline rq__delta_shape rq__reader_delta_shape(const rq_hfile_reader *r)
{
    return (rq__delta_shape){r->info.encoding, r->info.has_tags, r->info.has_mvcc};
}

/* Returns a new reference to a block that is pinned, cached, or read now. RQ_E_AGAIN fills
 * ctx->need. */
RQ_NODISCARD
rq_err rq__reader_block(rq_hfile_reader *r, rq_read_ctx *ctx, uint64_t offset, uint32_t size,
                        rq_block_kind kind, rq_hfile_block **ret, rq_error *why);
/* Reads a block from the file, bypassing pins and cache; with may_block false only from the page
 * cache. The block is checked and converted to its form in memory, but not put into the cache. */
RQ_NODISCARD
rq_err rq__reader_load(rq_hfile_reader *r, rq_buf *scratch, bool may_block, uint64_t offset,
                       uint32_t size, rq_block_kind kind, rq_hfile_block **ret, rq_error *why);

/* Longest block, on disk and in memory, that a thread which must not wait loads from the page cache: its bytes are
 * copied, checked and decompressed, which takes up to a millisecond. Longer blocks come from a large BLOCKSIZE or from
 * a long cell; a long block may take only a few bytes on disk if it is compressed. */
#define RQ__LOAD_AT_ONCE_MAX ((uint32_t)256 * 1024)

/* How the bytes of a block are read. */
typedef struct rq__block_source {
    rq_buf *scratch;
    bool may_block;
    rq_slice have; /* bytes of the file that have been read already; may be empty */
    uint64_t have_offset;
} rq__block_source;
/* Like rq__reader_load. */
RQ_NODISCARD
rq_err rq__reader_load_from(rq_hfile_reader *r, const rq__block_source *source, uint64_t offset,
                            uint32_t size, rq_block_kind kind, rq_hfile_block **ret, rq_error *why);

/* Reads only a block's header; *ret_kind is the kind of its form in memory. Blocks. */
RQ_NODISCARD
rq_err rq__reader_header(rq_hfile_reader *r, uint64_t offset, rq_block_kind *ret_kind,
                         uint32_t *ret_size, rq_error *why);

/* Like rq__reader_load, but the payload stays as in the file: checksum and size are checked, the
 * structure is not. */
RQ_NODISCARD
rq_err rq__reader_load_raw(rq_hfile_reader *r, rq_buf *scratch, bool may_block, uint64_t offset,
                           uint32_t size, rq_block_kind kind, rq_hfile_block **ret, rq_error *why);

/* Whether a block of this size may begin at the offset: its position may come from a damaged index. */
static inline bool rq__reader_has_place(const rq_hfile_reader *r, uint64_t offset, uint32_t size)
{
    return size >= RQ_HFILE_HEADER_LEN && offset <= r->data_end && size <= r->data_end - offset;
}

/* --- blocks at hand (held.c) ------------------------------------------------------------------ */
enum { RQ__HELD_ROOT, RQ__HELD_BLOOM, RQ__HELD_DELETE_BLOOM, RQ__HELD_OTHERS };

/* A block held by the reader, valid as long as the reader; or (`owned`) a reference of the
 * caller. */
typedef struct rq__lent_block {
    rq_hfile_block *block;
    bool owned;
} rq__lent_block;

static inline void rq__lent_return(rq__lent_block b)
{
    if (b.owned) rq__hfile_block_unref(b.block);
}

/* Called once, when the numbers are known. */
RQ_NODISCARD
rq_err rq__reader_held_init(rq_hfile_reader *r, size_t bloom_chunks, size_t delete_bloom_chunks,
                            size_t root_children);
/* The block held in that slot; NULL: none yet, or no such slot. */
static inline rq_hfile_block *rq__reader_held(const rq_hfile_reader *r, size_t slot)
{
    return slot < r->held_count ? atomic_load_explicit(&r->held[slot], memory_order_acquire) : NULL;
}
/* Called before the file is closed. */
void rq__reader_held_clear(rq_hfile_reader *r);
/* rq__reader_block for a block that is used often: the reader keeps it in `slot`. A slot always
 * belongs to the same block. */
RQ_NODISCARD
rq_err rq__reader_at_hand(rq_hfile_reader *r, rq_read_ctx *ctx, size_t slot, uint64_t offset,
                          uint32_t size, rq_block_kind kind, rq__lent_block *ret, rq_error *why);

/* --- reader.c --------------------------------------------------------------------------------- */
/* The root of the data index. */
RQ_NODISCARD
rq_err rq__reader_root(rq_hfile_reader *r, rq_read_ctx *ctx, rq__lent_block *ret, rq_error *why);

/* Called when a scanner begins (`on`) or ceases to read the file in sequence. The first such scanner
 * turns the operating system's read-ahead on, the last one turns it off. Only a hint: if two threads call
 * at the same time, the file may keep the wrong setting until the next call. */
void rq__reader_follow(rq_hfile_reader *r, bool on);

/* RQ_E_CORRUPT for a block; the message begins with file and offset. */
#define rq__fail_block(why, r, block, text)                                                        \
    rq_fail(why, RQ_E_CORRUPT, "%s: block at offset %llu (%s): %s", (r)->path,                     \
            (unsigned long long)(block)->offset, rq_block_kind_name((rq_block_kind)(block)->kind), \
            text)

#endif
