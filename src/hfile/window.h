/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows: blocks that a scan will need soon, read in advance, mostly past the page cache. A window has data blocks, or
 * a single leaf index block. Internal to hfile.
 *
 *   scanner_index.c ── ask ──► window, listed in its reader ── a thread of RQ_POOL_READ: one large read,
 *                                                               blocks are checked and decompressed
 *   reader.c ── take ──► the block, while the next windows are read
 *
 * A window belongs to the reader, not to a scanner, because a scan's scanners are freed and made again. So
 * another scan of the same blocks can use the window, too. It is freed when its last block has been used, or when its
 * reader is closed. A scan that stops leaves its windows behind: they are freed after two seconds without use, by
 * rq__windows_drop_old or when another window needs the memory.
 *
 * Memory: all windows of a cache, with the buffers that they are read into, take at most
 * rq__windows_bytes_max, which is deducted from the cache's capacity for blocks. If a window does not fit, it is not
 * made: the scan waits until it has used one of its windows, or reads block by block.
 *
 * An error in a window's read is not reported: the window then lacks the block, which is read again when a scan needs
 * it.
 */
#ifndef RQ_HFILE_WINDOW_H
#define RQ_HFILE_WINDOW_H

#include "base/executor.h"
#include "hfile/read_ctx.h"
#include "vfs/vfs.h"

#include <pthread.h>
#include <stdbool.h>

/* Longest window on disk. Its read begins and ends at multiples of RQ_READ_ALIGN, and the buffer is aligned, too. With
 * that, the buffer is not longer than the slab's longest piece. Each window wakes several threads, which costs a tenth
 * of a millisecond (a row takes a microsecond), so short windows would cost more CPU time. */
#define RQ__WINDOW_BYTES ((uint64_t)RQ_READ_PAST_MAX - 4 * (uint64_t)RQ_READ_ALIGN)
#define RQ__WINDOW_BLOCKS 256

struct rq__block_place;
typedef struct rq__window rq__window;

/* The windows of a cache. */
typedef struct rq__windows {
    pthread_mutex_t lock;  /* guards all windows, except the bytes that a running read writes */
    pthread_cond_t ended;  /* a read has ended */
    rq_executor *executor; /* NULL: no windows. Set before the first reader */
    rq__window *all;
    rq__window *queued, *last_queued; /* windows whose tasks are not in the pool yet */
    uint32_t count;
    uint32_t running;      /* tasks in the pool */
    uint64_t bytes;        /* charged */
    uint64_t read, unused; /* bytes of blocks read so far; of them, freed without being taken */
    uint64_t looked_ns;    /* last search for old windows */
    uint32_t tasks;        /* in the queue above and in the pool */
    rq_latch *no_task;     /* opened when the last task has ended; NULL: nobody waits */
} rq__windows;

void rq__windows_init(rq__windows *w);
/* Waits for the tasks. REQUIRES: no reader is open, except those that the tasks hold. */
void rq__windows_clear(rq__windows *w);
/* Memory limit of all windows, in bytes, in a cache of this capacity. */
uint64_t rq__windows_bytes_max(uint64_t capacity);
struct rq_block_cache_stats;
/* Fills the counters of windows. */
void rq__windows_get_stats(rq__windows *w, struct rq_block_cache_stats *ret);
/* Frees the windows that have not been used for two seconds; returns whether other windows are left. */
bool rq__windows_drop_old(rq__windows *w);

/* Whether blocks of this kind may be in windows. */
static inline bool rq__windows_have(rq_block_kind kind)
{
    return kind == RQ_BLOCK_DATA || kind == RQ_BLOCK_LEAF_INDEX;
}
/* Whether windows of this reader can be asked for. */
bool rq__windows_are_possible(const rq_hfile_reader *r);
/* The longest window for this reader, in bytes of its blocks in memory. In a small cache windows are shorter, so that
 * there is room for several. */
uint64_t rq__window_len_max(const rq_hfile_reader *r);
/* End offset of the window that has the block at this offset, or will have it; 0: none. */
uint64_t rq__window_end_at(rq_hfile_reader *r, uint64_t offset);

/* The window that a scan asks for. */
typedef struct rq__window_spec {
    const struct rq__block_place *blocks; /* in the file's order, of at most RQ__WINDOW_BYTES */
    uint32_t count;                       /* 1 to RQ__WINDOW_BLOCKS */
    rq_block_kind kind;                   /* of all of them, in memory */
    bool past;                            /* read past the page cache */
    uint64_t memory;                      /* upper bound of the blocks' size in memory, in bytes */
} rq__window_spec;

typedef enum rq__window_room { RQ__ROOM_NOW, RQ__ROOM_LATER, RQ__ROOM_NEVER } rq__window_room;

/* Whether there is memory for such a window. REQUIRES, here and below: rq__windows_are_possible. */
rq__window_room rq__window_room_for(rq_hfile_reader *r, const rq__window_spec *spec);
/* Queues the window's read. False: there is no memory for the window. Never waits. */
bool rq__window_ask(rq_hfile_reader *r, const rq__window_spec *spec);
/* Takes a block out of its window: *ret is a reference, NULL: no window has it. RQ_E_AGAIN (may_block
 * false): it is still being read. `keep`: the block will not be cached, so it also stays in the window until
 * rq__window_release: a scan that is suspended inside the block needs it again. */
RQ_NODISCARD
rq_err rq__window_take(rq_hfile_reader *r, uint64_t offset, bool may_block, bool keep,
                       rq_hfile_block **ret);
/* Frees the block that rq__window_take has kept: the scanner has moved to another one. */
void rq__window_release(rq_hfile_reader *r, uint64_t offset);
/* Whether a window that is not read yet will have the block. If so, the task runs on a thread of RQ_POOL_READ when the
 * window has been read. */
bool rq__window_wait(rq_hfile_reader *r, uint64_t offset, rq_task *task);
/* Frees the reader's windows. REQUIRES: nobody uses the reader. */
void rq__windows_forget(rq_hfile_reader *r);

#endif
