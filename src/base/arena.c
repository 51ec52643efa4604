/* SPDX-License-Identifier: Apache-2.0 */
/* Bump allocation in chunks; see arena.h for the contract. */
#include "base/arena.h"

#include "base/long_free.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define KEEP_MAX (RQ_ASAN ? 0 : (size_t)64 * 1024) /* the chunk a reset keeps */
#define GROW_MAX ((size_t)1024 * 1024)             /* chunks double up to this */

struct rq_arena_chunk {
    struct rq_arena_chunk *next;
    size_t size; /* of bytes */
    _Alignas(RQ_ARENA_ALIGN) uint8_t bytes[];
};

struct rq_arena_link {
    struct rq_arena_link *next;
    void (*release)(void *thing);
    void *thing;
};

void rq_arena_init(rq_arena *a)
{
    *a = (rq_arena){0};
}

/* Resets chunks and links; the meter stays. */
static void make_empty(rq_arena *a)
{
    *a = (rq_arena){.may_grow = a->may_grow, .grow_ctx = a->grow_ctx};
}

void rq_arena_meter(rq_arena *a, bool (*may_grow)(void *ctx, size_t bytes), void *ctx)
{
    a->may_grow = may_grow;
    a->grow_ctx = ctx;
}

void rq_arena_lend(rq_arena *a, void *memory, size_t size)
{
    a->next = memory;
    a->end = a->next + size;
    RQ_POISON(memory, size);
}

rq_err rq_arena_account(rq_arena *a, size_t bytes)
{
    if (a->may_grow != NULL && !a->may_grow(a->grow_ctx, bytes)) return RQ_E_NO_MEMORY;
    a->total_bytes += bytes;
    return RQ_OK;
}

static struct rq_arena_chunk *chunk_new(rq_arena *a, size_t size)
{
    if (a->may_grow != NULL && !a->may_grow(a->grow_ctx, sizeof(struct rq_arena_chunk) + size))
        return NULL;
    struct rq_arena_chunk *c = malloc(sizeof *c + size);
    if (c == NULL) return NULL;
    c->size = size;
    c->next = a->chunks;
    a->chunks = c;
    a->total_bytes += sizeof *c + size;
    RQ_POISON(c->bytes, size);
    return c;
}

void *rq__arena_alloc_more(rq_arena *a, size_t size)
{
    if (size > SIZE_MAX / 2) return NULL;
    size_t rounded = RQ_ARENA_ROUNDED(size);
    if (a->next == NULL || (size_t)(a->end - a->next) < rounded) {
        size_t want = a->chunks == NULL ? RQ_ARENA_CHUNK_MIN - sizeof(struct rq_arena_chunk)
                                        : a->chunks->size * 2;
        if (want > GROW_MAX) want = GROW_MAX;
        if (want < rounded) want = rounded;
        struct rq_arena_chunk *c = chunk_new(a, want);
        if (c == NULL) return NULL;
        a->next = c->bytes;
        a->end = c->bytes + want;
    }
    void *p = a->next;
    a->next += rounded;
    RQ_UNPOISON(p, size);
    return p;
}

void *rq_arena_calloc(rq_arena *a, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
    void *p = rq_arena_alloc(a, bytes);
    if (p != NULL) memset(p, 0, bytes);
    return p;
}

#define LIST_MIN 16

rq_err rq_arena_grow(rq_arena *a, void *items, size_t size, size_t count, size_t *cap)
{
    void *old;
    if (count < *cap) return RQ_OK;
    size_t more = *cap == 0 ? LIST_MIN : 2 * *cap;
    void *list = more > SIZE_MAX / size ? NULL : rq_arena_alloc(a, more * size);
    if (list == NULL) return RQ_E_NO_MEMORY;
    memcpy(&old, items, sizeof old); /* the caller's pointer is of its items' type */
    if (count > 0) memcpy(list, old, count * size);
    memcpy(items, &list, sizeof list);
    *cap = more;
    return RQ_OK;
}

rq_slice rq_arena_copy(rq_arena *a, rq_slice s)
{
    uint8_t *p = rq_arena_alloc(a, s.len == 0 ? 1 : s.len);
    if (p == NULL) return (rq_slice){NULL, 0};
    if (s.len > 0) memcpy(p, s.ptr, s.len);
    return rq_slice_of(p, s.len);
}

char *rq_arena_cstr(rq_arena *a, rq_slice s)
{
    char *p = rq_arena_alloc(a, s.len + 1);
    if (p == NULL) return NULL;
    if (s.len > 0) memcpy(p, s.ptr, s.len);
    p[s.len] = '\0';
    return p;
}

char *rq_arena_printf(rq_arena *a, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0) return NULL;
    char *p = rq_arena_alloc(a, (size_t)n + 1);
    if (p == NULL) return NULL;
    va_start(args, fmt);
    vsnprintf(p, (size_t)n + 1, fmt, args);
    va_end(args);
    return p;
}

rq_err rq_arena_link(rq_arena *a, void (*release)(void *thing), void *thing)
{
    struct rq_arena_link *l = rq_arena_alloc(a, sizeof *l);
    if (l == NULL) return RQ_E_NO_MEMORY;
    *l = (struct rq_arena_link){a->links, release, thing};
    a->links = l;
    return RQ_OK;
}

static void release_links(rq_arena *a)
{
    /* A release must not allocate from this arena; in case it does, the list is detached first. */
    struct rq_arena_link *l = a->links;
    a->links = NULL;
    for (; l != NULL; l = l->next)
        l->release(l->thing);
}

static void use_chunk_again(rq_arena *a, struct rq_arena_chunk *c)
{
    a->next = c->bytes;
    a->end = c->bytes + c->size;
    a->total_bytes = sizeof *c + c->size;
}

/* Frees all chunks except the newest one that is small enough to keep. */
RQ_COLD static void reset_chunks(rq_arena *a)
{
    struct rq_arena_chunk *keep = NULL;
    struct rq_arena_chunk *next;
    for (struct rq_arena_chunk *c = a->chunks; c != NULL; c = next) {
        next = c->next;
        if (keep == NULL && c->size <= KEEP_MAX)
            keep = c;
        else
            free(c);
    }
    make_empty(a);
    if (keep == NULL) return;
    keep->next = NULL;
    a->chunks = keep;
    use_chunk_again(a, keep);
}

void rq_arena_reset(rq_arena *a)
{
    struct rq_arena_chunk *c = a->chunks;
    if (RQ_UNLIKELY(a->links != NULL)) release_links(a);
    if (RQ_LIKELY(!RQ_ASAN && c != NULL && c->next == NULL && c->size <= KEEP_MAX))
        use_chunk_again(a, c);
    else
        reset_chunks(a);
}

static void free_chunks(struct rq_arena_chunk *c)
{
    struct rq_arena_chunk *next;
    for (; c != NULL; c = next) {
        next = c->next;
        free(c);
    }
}

void rq_arena_clear(rq_arena *a)
{
    release_links(a);
    free_chunks(a->chunks);
    make_empty(a);
}

/* A pool's task in the bytes of the first chunk that it frees. */
typedef struct clearing {
    rq_task task;
    struct rq_arena_chunk *chunks;
} clearing;

static void run_clearing(rq_task *task)
{
    free_chunks(RQ_CONTAINER_OF(task, clearing, task)->chunks);
}

void rq_long_clear_arena(rq_executor *ex, rq_arena *a)
{
    struct rq_arena_chunk *c = a->chunks;
    if (RQ_LIKELY(ex == NULL || c == NULL || a->total_bytes < RQ_LONG_FREE_BYTES)) {
        rq_arena_clear(a);
        return;
    }
    release_links(a);
    make_empty(a);
    RQ_ASSERT(c->size >= sizeof(clearing)); /* RQ_ARENA_CHUNK_MIN */
    clearing *k = (clearing *)(void *)c->bytes;
    RQ_UNPOISON(k, sizeof *k);
    *k = (clearing){.task.run = run_clearing, .chunks = c};
    ex->submit(ex, RQ_LONG_FREE_POOL, &k->task);
}
