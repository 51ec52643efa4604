/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows (window.h).
 *
 * References to a window: one by the lists (its reader's and the cache's), one by its task, and one by a
 * thread that reads it in the task's place. The task also holds a reference to the reader.
 *
 * At most RUNNING_MAX tasks are in the pool. The others wait in the cache's queue, and each task that ends submits the
 * next one; windows that an op waits for come first. So another read of the pool, such as a get's, is behind at most
 * RUNNING_MAX windows.
 */
#include "hfile/window.h"

#include "hfile/cache_priv.h"
#include "hfile/reader_priv.h"

#include <stdlib.h>

#define COUNT_MAX 256                   /* windows of a cache */
#define BYTES_MAX ((uint64_t)128 << 20) /* more do not make a device faster */
#define SHARE 8                         /* of the capacity */
#define AT_LEAST 6                      /* so many windows of the greatest length have room */
#define RUNNING_MAX 8                   /* more do not make a device faster */
#define OLD_NS UINT64_C(2000000000)
#define LOOK_NS (OLD_NS / 8) /* least time between two searches for old windows */

typedef enum window_state { ASKED, READING, READ } window_state;

typedef struct window_block {
    uint64_t offset;
    uint32_t size;
    rq_hfile_block *block; /* NULL: not read, or taken */
} window_block;

struct rq__window {
    rq_task task;
    rq_hfile_reader *reader;
    rq__window *next_of_reader;
    rq__window *next;        /* in the cache's list, or in a list of victims */
    rq__window *next_queued; /* in the queue of windows whose task is not submitted yet */
    rq_task *waiting;        /* tasks that run when the window has been read */
    uint64_t end;
    uint64_t charge;
    uint64_t memory_max; /* for its blocks */
    uint64_t used_ns;
    window_state state;
    rq_block_kind kind; /* of its blocks */
    bool past;          /* it is read past the page cache */
    uint32_t refs;
    uint32_t count;
    window_block blocks[];
};

static rq__windows *windows_of(const rq_hfile_reader *r)
{
    return &r->cache->windows;
}

static uint64_t now_ns(const rq__windows *all)
{
    return all->executor->now_ns(all->executor);
}

uint64_t rq__windows_bytes_max(uint64_t capacity)
{
    return capacity / SHARE < BYTES_MAX ? capacity / SHARE : BYTES_MAX;
}

/* The window's memory without its blocks. */
static uint64_t frame_of(const rq__window *w)
{
    return sizeof *w + w->count * sizeof w->blocks[0];
}

/* --- lists; under the lock -------------------------------------------------------------------- */

static void unlink_from_reader(rq__window *w)
{
    rq_hfile_reader *r = w->reader;
    rq__window *first = atomic_load_explicit(&r->windows, memory_order_relaxed);
    if (first == w) {
        atomic_store_explicit(&r->windows, w->next_of_reader, memory_order_release);
        return;
    }
    while (first->next_of_reader != w)
        first = first->next_of_reader;
    first->next_of_reader = w->next_of_reader;
}

/* Removes a window that has been read from both lists, and adds it to `victims`, which the caller frees without the
 * lock. */
static void drop(rq__windows *all, rq__window *w, rq__window **victims)
{
    rq__window **link = &all->all;
    while (*link != w)
        link = &(*link)->next;
    *link = w->next;
    unlink_from_reader(w);
    all->count--;
    all->bytes -= w->charge;
    all->unused += w->charge - frame_of(w); /* its blocks */
    w->next = *victims;
    *victims = w;
}

static void drop_old(rq__windows *all, rq__window **victims)
{
    uint64_t now = now_ns(all);
    all->looked_ns = now;
    for (rq__window *w = all->all, *next; w != NULL; w = next) {
        next = w->next;
        if (w->state == READ && now - w->used_ns >= OLD_NS) drop(all, w, victims);
    }
}

static void add(rq__windows *all, rq__window *w)
{
    rq_hfile_reader *r = w->reader;
    w->next = all->all;
    all->all = w;
    w->next_of_reader = atomic_load_explicit(&r->windows, memory_order_relaxed);
    atomic_store_explicit(&r->windows, w, memory_order_relaxed);
    all->count++;
    all->bytes += w->charge;
}

/* The entry of the block; w->count: none. */
static uint32_t entry_of(const rq__window *w, uint64_t offset)
{
    uint32_t low = 0, high = w->count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (w->blocks[mid].offset < offset)
            low = mid + 1;
        else
            high = mid;
    }
    return low < w->count && w->blocks[low].offset == offset ? low : w->count;
}

/* A window that has the block, or will have it; NULL: none. */
static rq__window *find(rq_hfile_reader *r, uint64_t offset, uint32_t *ret_entry)
{
    rq__window *w = atomic_load_explicit(&r->windows, memory_order_relaxed);
    for (; w != NULL; w = w->next_of_reader) {
        *ret_entry = entry_of(w, offset);
        if (*ret_entry < w->count && (w->state != READ || w->blocks[*ret_entry].block != NULL))
            return w;
    }
    return NULL;
}

static bool is_empty_from(const rq__window *w, uint32_t entry)
{
    while (entry < w->count && w->blocks[entry].block == NULL)
        entry++;
    return entry == w->count;
}

/* --- freeing ---------------------------------------------------------------------------------- */

static void free_window(rq__window *w)
{
    for (uint32_t i = 0; i < w->count; i++)
        rq__hfile_block_unref(w->blocks[i].block);
    free(w);
}

static void unref(rq__windows *all, rq__window *w)
{
    (void)pthread_mutex_lock(&all->lock);
    bool last = --w->refs == 0;
    (void)pthread_mutex_unlock(&all->lock);
    if (last) free_window(w);
}

static void free_victims(rq__windows *all, rq__window *victims)
{
    while (victims != NULL) {
        rq__window *next = victims->next;
        unref(all, victims);
        victims = next;
    }
}

/* --- reading ---------------------------------------------------------------------------------- */

static bool is_in_memory(const rq_hfile_reader *r, uint64_t offset)
{
    return rq__cache_has(r->cached, offset) || rq__cache_has_second(r->cached, offset);
}

/* Makes blocks of the file's bytes. */
static void make_blocks(rq__window *w, uint32_t first, uint32_t last, rq_slice bytes, uint64_t from)
{
    rq_hfile_reader *r = w->reader;
    rq_buf scratch = {0};
    uint64_t memory = 0;
    rq__block_source source = {&scratch, true, bytes, from};
    for (uint32_t i = first; i < last && memory <= w->memory_max; i++) {
        window_block *at = &w->blocks[i];
        rq_hfile_block *b;
        rq_error why;
        rq_error_clear(&why);
        if (at->offset + at->size > from + bytes.len || is_in_memory(r, at->offset) ||
            rq__reader_load_from(r, &source, at->offset, at->size, w->kind, &b, &why) != RQ_OK)
            continue;
        memory += b->heap_len;
        if (memory > w->memory_max)
            rq__hfile_block_unref(b);
        else
            at->block = b;
    }
    rq_buf_clear(&scratch);
}

static void read_blocks(rq__window *w, uint32_t first, uint32_t last)
{
    rq_hfile_reader *r = w->reader;
    const uint64_t align = RQ_READ_ALIGN;
    uint64_t from = w->blocks[first].offset / align * align;
    uint64_t to = w->blocks[last - 1].offset + w->blocks[last - 1].size;
    size_t len = (size_t)((to + align - 1) / align * align - from);
    size_t charge, got;
    uint8_t *room = rq__slab_take(r->cache->slab, len + align, &charge);
    if (room == NULL) return;
    uint8_t *bytes = room + (align - (uintptr_t)room % align) % align;
    rq_error why;
    rq_error_clear(&why);
    rq_err rc = w->past ? rq_file_read_past(r->file, bytes, len, from, &got, &why)
                        : rq_file_read(r->file, bytes, len, from, &got, &why);
    if (rc == RQ_OK) make_blocks(w, first, last, rq_slice_of(bytes, got), from);
    rq__slab_give(r->cache->slab, room, charge);
}

/* Blocks at the window's beginning and end that are in the cache already are not read again. */
static void read_window(rq__window *w)
{
    uint32_t first = 0, last = w->count;
    rq__cache_grant_windows(w->reader->cache);
    while (first < last && is_in_memory(w->reader, w->blocks[first].offset))
        first++;
    while (last > first && is_in_memory(w->reader, w->blocks[last - 1].offset))
        last--;
    if (first < last) read_blocks(w, first, last);
}

static uint64_t memory_of(const rq__window *w)
{
    uint64_t sum = frame_of(w);
    for (uint32_t i = 0; i < w->count; i++)
        if (w->blocks[i].block != NULL) sum += w->blocks[i].block->heap_len;
    return sum;
}

/* The window's read has ended. Returns the tasks that wait for it. */
static rq_task *end_read(rq__windows *all, rq__window *w)
{
    rq__window *victims = NULL;
    uint64_t memory = memory_of(w);
    (void)pthread_mutex_lock(&all->lock);
    rq_task *waiting = w->waiting;
    w->waiting = NULL;
    all->bytes = all->bytes - w->charge + memory;
    all->read += memory - frame_of(w);
    w->charge = memory;
    w->used_ns = now_ns(all);
    w->state = READ;
    if (is_empty_from(w, 0)) drop(all, w, &victims);
    (void)pthread_cond_broadcast(&all->ended);
    (void)pthread_mutex_unlock(&all->lock);
    free_victims(all, victims);
    return waiting;
}

/* Submits the tasks; `runs_last`: runs the last of them itself. */
static void wake(rq_executor *executor, rq_task *waiting, bool runs_last)
{
    while (waiting != NULL) {
        rq_task *task = waiting;
        waiting = task->next;
        if (runs_last && waiting == NULL)
            task->run(task);
        else
            executor->submit(executor, RQ_POOL_READ, task);
    }
}

/* --- the queue -------------------------------------------------------------------------------- */

/* False: the window waits for its turn. Under the lock. */
static bool may_start(rq__windows *all, rq__window *w)
{
    if (all->running < RUNNING_MAX) {
        all->running++;
        return true;
    }
    *(all->queued == NULL ? &all->queued : &all->last_queued->next_queued) = w;
    all->last_queued = w;
    return false;
}

/* For a window that an op begins to wait for: if the window is queued, moves it before those that no op waits for.
 * There may be many of those, and the op may be a get of one block. Under the lock. */
static void advance(rq__windows *all, rq__window *w)
{
    rq__window **to = &all->queued, *before = NULL;
    while (*to != NULL && *to != w && (*to)->waiting != NULL)
        to = &(*to)->next_queued;
    rq__window **at = to;
    for (; *at != NULL && *at != w; at = &before->next_queued)
        before = *at;
    if (*at == NULL || at == to) return;
    *at = w->next_queued;
    if (all->last_queued == w) all->last_queued = before;
    w->next_queued = *to;
    *to = w;
}

/* A task has ended: submits the next window's. */
static void start_next(rq__windows *all)
{
    (void)pthread_mutex_lock(&all->lock);
    rq__window *next = all->queued;
    if (next != NULL)
        all->queued = next->next_queued;
    else
        all->running--;
    (void)pthread_mutex_unlock(&all->lock);
    if (next != NULL) all->executor->submit(all->executor, RQ_POOL_READ, &next->task);
}

/* The last step of a task: the cache may be freed afterwards. */
static void end_task(rq__windows *all)
{
    (void)pthread_mutex_lock(&all->lock);
    rq_executor *executor = all->executor;
    rq_latch *waiter = --all->tasks == 0 ? all->no_task : NULL;
    (void)pthread_mutex_unlock(&all->lock);
    if (waiter != NULL) executor->latch_open(waiter, RQ_OK);
}

static void run(rq_task *task)
{
    rq__window *w = RQ_CONTAINER_OF(task, rq__window, task);
    rq_hfile_reader *r = w->reader;
    rq__windows *all = windows_of(r);
    (void)pthread_mutex_lock(&all->lock);
    bool mine = w->state == ASKED;
    if (mine) w->state = READING;
    (void)pthread_mutex_unlock(&all->lock);
    rq_task *waiting = NULL;
    if (mine) {
        read_window(w);
        waiting = end_read(all, w);
    }
    start_next(all);
    wake(all->executor, waiting, true);
    unref(all, w);
    rq_hfile_reader_unref(r);
    end_task(all);
}

/* --- asking and taking ------------------------------------------------------------------------ */

bool rq__windows_are_possible(const rq_hfile_reader *r)
{
    return r->cached != NULL && r->cache->windows.executor != NULL;
}

/* While a window is read, its bytes are in memory twice: in the buffer and in its blocks. */
uint64_t rq__window_len_max(const rq_hfile_reader *r)
{
    uint64_t most = rq__windows_bytes_max(atomic_load(&r->cache->capacity)) / AT_LEAST / 2;
    return most < RQ__WINDOW_BYTES ? most : RQ__WINDOW_BYTES;
}

uint64_t rq__window_end_at(rq_hfile_reader *r, uint64_t offset)
{
    uint64_t end = 0;
    uint32_t entry;
    if (atomic_load_explicit(&r->windows, memory_order_relaxed) == NULL) return 0;
    rq__windows *all = windows_of(r);
    (void)pthread_mutex_lock(&all->lock);
    const rq__window *w = find(r, offset, &entry);
    if (w != NULL) end = w->end;
    (void)pthread_mutex_unlock(&all->lock);
    return end;
}

static uint64_t end_of(const rq__window_spec *spec)
{
    const rq__block_place *last = &spec->blocks[spec->count - 1];
    return last->offset + last->size;
}

static uint64_t charge_of(const rq__window_spec *spec)
{
    return sizeof(rq__window) + spec->count * sizeof(window_block) +
           (end_of(spec) - spec->blocks[0].offset) + 3 * (uint64_t)RQ_READ_ALIGN + spec->memory;
}

static rq__window *window_new(rq_hfile_reader *r, const rq__window_spec *spec)
{
    rq__window *w = calloc(1, sizeof *w + spec->count * sizeof w->blocks[0]);
    if (w == NULL) return NULL;
    w->task.run = run;
    w->reader = r;
    w->state = ASKED;
    w->kind = spec->kind;
    w->past = spec->past;
    w->refs = 2;
    w->count = spec->count;
    w->end = end_of(spec);
    w->memory_max = spec->memory;
    w->charge = charge_of(spec);
    for (uint32_t i = 0; i < spec->count; i++)
        w->blocks[i] = (window_block){spec->blocks[i].offset, spec->blocks[i].size, NULL};
    return w;
}

/* Whether there is room now; if not, drops old windows first. Under the lock. */
static bool has_room(rq__windows *all, uint64_t charge, uint64_t most, rq__window **victims)
{
    bool has = all->count < COUNT_MAX && all->bytes + charge <= most;
    if (has || now_ns(all) - all->looked_ns < LOOK_NS) return has;
    drop_old(all, victims);
    return all->count < COUNT_MAX && all->bytes + charge <= most;
}

static uint64_t bytes_max(const rq_hfile_reader *r)
{
    return rq__windows_bytes_max(atomic_load(&r->cache->capacity));
}

rq__window_room rq__window_room_for(rq_hfile_reader *r, const rq__window_spec *spec)
{
    rq__windows *all = windows_of(r);
    rq__window *victims = NULL;
    uint64_t charge = charge_of(spec), most = bytes_max(r);
    if (charge > most) return RQ__ROOM_NEVER;
    (void)pthread_mutex_lock(&all->lock);
    bool now = has_room(all, charge, most, &victims);
    (void)pthread_mutex_unlock(&all->lock);
    free_victims(all, victims);
    return now ? RQ__ROOM_NOW : RQ__ROOM_LATER;
}

bool rq__window_ask(rq_hfile_reader *r, const rq__window_spec *spec)
{
    rq__windows *all = windows_of(r);
    rq__window *victims = NULL;
    rq__window *w = window_new(r, spec);
    bool starts = false;
    if (w == NULL) return false;
    (void)rq_hfile_reader_ref(r);
    (void)pthread_mutex_lock(&all->lock);
    bool fits = has_room(all, w->charge, bytes_max(r), &victims);
    if (fits) {
        add(all, w);
        all->tasks++;
        starts = may_start(all, w);
    }
    (void)pthread_mutex_unlock(&all->lock);
    free_victims(all, victims);
    if (starts) all->executor->submit(all->executor, RQ_POOL_READ, &w->task);
    if (!fits) {
        free(w);
        rq_hfile_reader_unref(r);
    }
    return fits;
}

/* Removes the block from a window that has been read. */
static rq_hfile_block *take(rq__windows *all, rq__window *w, uint32_t entry, rq__window **victims)
{
    rq_hfile_block *b = w->blocks[entry].block;
    w->blocks[entry].block = NULL;
    w->charge -= b->heap_len;
    all->bytes -= b->heap_len;
    w->used_ns = now_ns(all);
    if (is_empty_from(w, entry)) drop(all, w, victims);
    return b;
}

static rq_hfile_block *use(rq__windows *all, rq__window *w, uint32_t entry, bool keep,
                           rq__window **victims)
{
    if (!keep) return take(all, w, entry, victims);
    w->used_ns = now_ns(all);
    return rq__block_ref(w->blocks[entry].block);
}

/* The file got another number after the block was read (rq__cache_evict_file). In the cache, the block would not be
 * found by the new number. */
static bool is_outdated(const rq_hfile_reader *r, const rq__window *w, uint32_t entry)
{
    return w->state == READ && w->blocks[entry].block->file_id != rq__reader_file_id(r);
}

/* Reads a window whose task has not begun, in the task's place. REQUIRES: lock, which is released during the read. */
static void read_instead(rq__windows *all, rq__window *w)
{
    w->state = READING;
    w->refs++;
    (void)pthread_mutex_unlock(&all->lock);
    read_window(w);
    wake(all->executor, end_read(all, w), false);
    unref(all, w);
    (void)pthread_mutex_lock(&all->lock);
}

rq_err rq__window_take(rq_hfile_reader *r, uint64_t offset, bool may_block, bool keep,
                       rq_hfile_block **ret)
{
    rq_err rc = RQ_OK;
    rq_hfile_block *outdated = NULL;
    *ret = NULL;
    if (atomic_load_explicit(&r->windows, memory_order_relaxed) == NULL) return RQ_OK;
    rq__windows *all = windows_of(r);
    rq__window *victims = NULL, *w;
    uint32_t entry;
    (void)pthread_mutex_lock(&all->lock);
    while (*ret == NULL && (w = find(r, offset, &entry)) != NULL) {
        if (is_outdated(r, w, entry)) {
            outdated = take(all, w, entry, &victims);
            break;
        }
        if (w->state == READ)
            *ret = use(all, w, entry, keep, &victims);
        else if (!may_block)
            rc = RQ_E_AGAIN;
        else if (w->state == ASKED)
            read_instead(all, w);
        else
            (void)pthread_cond_wait(&all->ended, &all->lock);
        if (rc != RQ_OK) break;
    }
    (void)pthread_mutex_unlock(&all->lock);
    free_victims(all, victims);
    rq__hfile_block_unref(outdated);
    return rc;
}

void rq__window_release(rq_hfile_reader *r, uint64_t offset)
{
    if (atomic_load_explicit(&r->windows, memory_order_relaxed) == NULL) return;
    rq__windows *all = windows_of(r);
    rq__window *victims = NULL;
    rq_hfile_block *b = NULL;
    uint32_t entry;
    (void)pthread_mutex_lock(&all->lock);
    rq__window *w = find(r, offset, &entry);
    if (w != NULL && w->state == READ) b = take(all, w, entry, &victims);
    (void)pthread_mutex_unlock(&all->lock);
    free_victims(all, victims);
    rq__hfile_block_unref(b);
}

bool rq__window_wait(rq_hfile_reader *r, uint64_t offset, rq_task *task)
{
    uint32_t entry;
    if (atomic_load_explicit(&r->windows, memory_order_relaxed) == NULL) return false;
    rq__windows *all = windows_of(r);
    (void)pthread_mutex_lock(&all->lock);
    rq__window *w = find(r, offset, &entry);
    bool waits = w != NULL && w->state != READ;
    if (waits) {
        if (w->waiting == NULL) advance(all, w);
        task->next = w->waiting;
        w->waiting = task;
    }
    (void)pthread_mutex_unlock(&all->lock);
    return waits;
}

/* --- life ------------------------------------------------------------------------------------- */

/* A task holds a reference to its reader, so the reads of all windows of this reader have ended. NULL: there is no
 * window; a thread that has just dropped the last one does not use the reader any more. */
void rq__windows_forget(rq_hfile_reader *r)
{
    if (atomic_load_explicit(&r->windows, memory_order_acquire) == NULL) return;
    rq__windows *all = windows_of(r);
    rq__window *victims = NULL, *w;
    (void)pthread_mutex_lock(&all->lock);
    while ((w = atomic_load_explicit(&r->windows, memory_order_relaxed)) != NULL)
        drop(all, w, &victims);
    (void)pthread_mutex_unlock(&all->lock);
    free_victims(all, victims);
}

void rq__windows_get_stats(rq__windows *all, rq_block_cache_stats *ret)
{
    (void)pthread_mutex_lock(&all->lock);
    ret->ahead_bytes = all->read;
    ret->ahead_unused_bytes = all->unused;
    ret->ahead_now_bytes = all->bytes;
    (void)pthread_mutex_unlock(&all->lock);
}

bool rq__windows_drop_old(rq__windows *all)
{
    rq__window *victims = NULL;
    if (all->executor == NULL) return false;
    (void)pthread_mutex_lock(&all->lock);
    drop_old(all, &victims);
    bool left = all->count > 0;
    (void)pthread_mutex_unlock(&all->lock);
    free_victims(all, victims);
    return left;
}

void rq__windows_init(rq__windows *all)
{
    (void)pthread_mutex_init(&all->lock, NULL);
    (void)pthread_cond_init(&all->ended, NULL);
}

void rq__windows_clear(rq__windows *all)
{
    if (all->executor != NULL) {
        rq_latch latch;
        all->executor->latch_init(all->executor, &latch);
        (void)pthread_mutex_lock(&all->lock);
        bool wait = all->tasks > 0;
        if (wait) all->no_task = &latch;
        (void)pthread_mutex_unlock(&all->lock);
        if (wait) (void)all->executor->latch_wait(&latch); /* opened with RQ_OK only */
        all->executor->latch_destroy(&latch);
    }
    RQ_ASSERT(all->count == 0);
    (void)pthread_mutex_destroy(&all->lock);
    (void)pthread_cond_destroy(&all->ended);
}
