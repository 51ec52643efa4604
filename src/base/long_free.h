/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool's thread frees memory of 4 MB and more: the kernel takes up to 0.2 ms for each megabyte, and a loop would serve no
 * connection meanwhile. Smaller memory is freed at once.
 */
#ifndef RQ_BASE_LONG_FREE_H
#define RQ_BASE_LONG_FREE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/executor.h"

#define RQ_LONG_FREE_BYTES ((size_t)4 << 20)
#define RQ_LONG_FREE_POOL RQ_POOL_READ /* many threads and short tasks */

/* `p` is malloc's and has at least `size` bytes. `ex` may be NULL: it is freed at once. */
void rq_long_free(rq_executor *ex, void *p, size_t size);
/* As rq_buf_clear and rq_arena_clear; what is linked to the arena is released at once. */
void rq_long_clear_buf(rq_executor *ex, rq_buf *b);
/* In arena.c. */
void rq_long_clear_arena(rq_executor *ex, rq_arena *a);

#endif
