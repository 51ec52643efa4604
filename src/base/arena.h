/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An arena: memory that is freed all at once. There is one per request, and one per step of a flush
 * or compaction.
 *
 * Chunks start at RQ_ARENA_CHUNK_MIN bytes and grow; an allocation larger than a chunk gets a chunk
 * of its own. Reference-counted objects that a request uses (cache blocks, readers) are *linked*
 * with a release function, so that no error path can leak them. Release functions run in reverse
 * order at reset. An arena is used by one thread at a time.
 *
 * Under AddressSanitizer a red zone follows each allocation, and a reset keeps no chunk.
 */
#ifndef RQ_BASE_ARENA_H
#define RQ_BASE_ARENA_H

#include "base/asan.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/macros.h"

#define RQ_ARENA_CHUNK_MIN 4096

typedef struct rq_arena {
    struct rq_arena_chunk *chunks; /* newest first */
    struct rq_arena_link *links;
    uint8_t *next;
    uint8_t *end;
    size_t total_bytes;                        /* of all chunks, plus rq_arena_account's bytes */
    bool (*may_grow)(void *ctx, size_t bytes); /* see rq_arena_meter */
    void *grow_ctx;
} rq_arena;

/* Makes an empty arena; a zero-initialised rq_arena is empty, too. Nothing is allocated until the first use. */
void rq_arena_init(rq_arena *a);
/* Runs the release functions and frees all chunks except the newest one of at most 64 kB, which is
 * used again. The meter stays set; lent memory is no longer used. */
void rq_arena_reset(rq_arena *a);
/* Runs the release functions and frees all chunks. The arena is empty and usable again. */
void rq_arena_clear(rq_arena *a);

/* Sets a function that is asked before a chunk is allocated. When it returns false, the
 * allocation returns NULL. REQUIRES: an empty arena. */
void rq_arena_meter(rq_arena *a, bool (*may_grow)(void *ctx, size_t bytes), void *ctx);
/* Serves the first allocations from the caller's memory, which must outlive the arena and be
 * aligned to RQ_ARENA_ALIGN. REQUIRES: an empty arena. */
void rq_arena_lend(rq_arena *a, void *memory, size_t size);
/* Counts `bytes` of memory that was allocated elsewhere and is linked to the arena.
 * RQ_E_NO_MEMORY: the meter refused it. */
RQ_NODISCARD
rq_err rq_arena_account(rq_arena *a, size_t bytes);

#define RQ_ARENA_ALIGN ((size_t)16)
#define RQ_ARENA_ROUNDED(size) (((size) + RQ_RED_ZONE + RQ_ARENA_ALIGN - 1) & ~(RQ_ARENA_ALIGN - 1))

/* The slow path of rq_arena_alloc: the current chunk is full. */
RQ_COLD void *rq__arena_alloc_more(rq_arena *a, size_t size);

/* Returns `size` uninitialised bytes aligned to 16, or NULL when memory is exhausted. size may
 * be 0. */
static inline void *rq_arena_alloc(rq_arena *a, size_t size)
{
    size_t rounded = RQ_ARENA_ROUNDED(size); /* less than size on overflow */
    if (RQ_UNLIKELY(rounded < size || rounded >= (size_t)(a->end - a->next)))
        return rq__arena_alloc_more(a, size);
    void *p = a->next;
    a->next += rounded;
    RQ_UNPOISON(p, size);
    return p;
}

/* Returns zeroed memory, or NULL. count * size is checked for overflow. */
void *rq_arena_calloc(rq_arena *a, size_t count, size_t size);
/* Makes room for one more item in a list that the arena holds. A full list (*cap == count) is copied to one of twice
 * the size, and *items is set to the copy. *items is NULL if *cap is 0. */
RQ_NODISCARD
rq_err rq_arena_grow(rq_arena *a, void *items, size_t size, size_t count, size_t *cap);
/* Copies the bytes. ptr is NULL only when memory is exhausted; a copied empty slice has a
 * non-NULL ptr. */
rq_slice rq_arena_copy(rq_arena *a, rq_slice s);
/* A NUL-terminated copy, or NULL. */
char *rq_arena_cstr(rq_arena *a, rq_slice s);
char *rq_arena_printf(rq_arena *a, const char *fmt, ...) RQ_PRINTF(2, 3);

/* Calls release(thing) when the arena is reset or cleared. On RQ_E_NO_MEMORY nothing is linked. */
RQ_NODISCARD
rq_err rq_arena_link(rq_arena *a, void (*release)(void *thing), void *thing);

#endif
