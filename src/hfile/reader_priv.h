/* SPDX-License-Identifier: Apache-2.0 */
/* What reader.c, bloom_reader.c, scanner.c and read_ctx.c share. Within the room. */
#ifndef RQ_HFILE_READER_PRIV_H
#define RQ_HFILE_READER_PRIV_H

#include "hfile/block.h"
#include "hfile/delta.h"
#include "hfile/index.h"
#include "hfile/reader.h"
#include "hfile/trailer.h"

/* A block known by its place; size 0: there is none. */
typedef struct rq__block_place {
    uint64_t offset;
    uint32_t size;
} rq__block_place;

/* What point reads look at stands in front, in four cache lines (rq_hfile_reader_ask_for). */
struct rq_hfile_reader {
    /* Blocks at hand (held.c); NULL, none, without a cache. */
    _Atomic(rq_hfile_block *) *held;
    size_t held_count;
    size_t held_chunks[2], held_children; /* where each kind begins */
    struct rq__half *half;                /* NULL: the whole file */
    rq__cache_file *cached;               /* NULL without a cache */
    rq__block_place root, bloom, delete_bloom;
    _Atomic bool bloom_damaged;  /* a read of a bloom has failed: it is asked no more */
    bool counts_delete_families; /* DELETE_FAMILY_COUNT is there */
    bool unpacks_tags;           /* data blocks come with a dictionary of tags */
    bool in_memory, keep_blocks;
    uint8_t checksum_type;     /* of every block */
    uint32_t bloom_prefix_len; /* ROWPREFIX_FIXED_LENGTH */
    rq_hfile_info info;

    _Atomic uint32_t refs;
    rq_block_cache *cache; /* NULL: tools */
    rq_file *file;
    char *path;
    uint64_t data_end; /* blocks end here: the trailer's offset */
    rq__trailer trailer;
    rq__file_info file_info;
    uint8_t *first_key;
};

/* --- one half of a file (half.c) -------------------------------------------------------------- */
typedef struct rq__half {
    rq_cell key; /* the first there can be in the dividing row, which stands behind the struct */
    bool top;    /* what is at or behind it; else what is before it */
} rq__half;

RQ_NODISCARD
rq_err rq__half_new(const rq_hfile_half *half, const char *path, rq__half **ret, rq_error *why);

/* A scanner of a half has moved: it stays where it is when that is inside, else it is nowhere and
 * the answer is RQ_E_END. */
RQ_NODISCARD
rq_err rq__half_check(rq_hfile_scanner *s);

/* --- blocks in memory ------------------------------------------------------------------------- */
/*
 * What a block's payload is once it is loaded:
 *   data            plain cells, or differences (delta.h) without a header and with tags as they
 *                   are; cells are checked one by one as they are parsed
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

/* What its blocks carry. Without a cache only pins do, and they do not outlive the reader. */
static inline uint64_t rq__reader_file_id(const rq_hfile_reader *r)
{
    return r->cached == NULL ? (uint64_t)(uintptr_t)r
                             : atomic_load_explicit(&r->cached->id, memory_order_relaxed);
}

static inline rq__delta_shape rq__reader_delta_shape(const rq_hfile_reader *r)
{
    return (rq__delta_shape){r->info.encoding, r->info.has_tags, r->info.has_mvcc};
}

/* A new reference to the block: pinned, cached or read. RQ_E_AGAIN fills ctx->need. */
RQ_NODISCARD
rq_err rq__reader_block(rq_hfile_reader *r, rq_read_ctx *ctx, uint64_t offset, uint32_t size,
                        rq_block_kind kind, rq_hfile_block **ret, rq_error *why);
/* Reads the block from the file, past pins and cache; with may_block false only from the page
 * cache. Checked and turned into its form in memory, not yet in the cache. */
RQ_NODISCARD
rq_err rq__reader_load(rq_hfile_reader *r, rq_buf *scratch, bool may_block, uint64_t offset,
                       uint32_t size, rq_block_kind kind, rq_hfile_block **ret, rq_error *why);

/* A block's header alone; *ret_kind is that of its form in memory. Blocking. */
RQ_NODISCARD
rq_err rq__reader_header(rq_hfile_reader *r, uint64_t offset, rq_block_kind *ret_kind,
                         uint32_t *ret_size, rq_error *why);

/* The same with the payload as it stands in the file: checksum and size checked, no structure. */
RQ_NODISCARD
rq_err rq__reader_load_raw(rq_hfile_reader *r, rq_buf *scratch, bool may_block, uint64_t offset,
                           uint32_t size, rq_block_kind kind, rq_hfile_block **ret, rq_error *why);

/* --- blocks at hand (held.c) ------------------------------------------------------------------ */
enum { RQ__HELD_ROOT, RQ__HELD_BLOOM, RQ__HELD_DELETE_BLOOM, RQ__HELD_OTHERS };

/* A block that the reader keeps, valid as long as the reader is; or one of the caller's own. */
typedef struct rq__lent_block {
    rq_hfile_block *block;
    bool owned;
} rq__lent_block;

static inline void rq__lent_return(rq__lent_block b)
{
    if (b.owned) rq_hfile_block_unref(b.block);
}

/* Once, when it is known how many there are. */
RQ_NODISCARD
rq_err rq__reader_held_init(rq_hfile_reader *r, size_t bloom_chunks, size_t delete_bloom_chunks,
                            size_t root_children);
/* What the reader has at hand there; NULL: nothing yet, or no such slot. */
static inline rq_hfile_block *rq__reader_held(const rq_hfile_reader *r, size_t slot)
{
    return slot < r->held_count ? atomic_load_explicit(&r->held[slot], memory_order_acquire) : NULL;
}
/* Before the file is closed. */
void rq__reader_held_clear(rq_hfile_reader *r);
/* rq__reader_block for a block that is used again and again; the same slot always for the same. */
RQ_NODISCARD
rq_err rq__reader_at_hand(rq_hfile_reader *r, rq_read_ctx *ctx, size_t slot, uint64_t offset,
                          uint32_t size, rq_block_kind kind, rq__lent_block *ret, rq_error *why);
RQ_NODISCARD
rq_err rq__reader_root(rq_hfile_reader *r, rq_read_ctx *ctx, rq__lent_block *ret, rq_error *why);

/* A failure of this block, with file and offset in front. */
#define rq__fail_block(why, r, block, text)                                                        \
    rq_fail(why, RQ_E_CORRUPT, "%s: block at offset %llu (%s): %s", (r)->path,                     \
            (unsigned long long)(block)->offset, rq_block_kind_name((rq_block_kind)(block)->kind), \
            text)

#endif
