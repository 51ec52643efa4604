/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorts any number of rows with bounded memory. A sorter collects rows; when its memory is full, it
 * sorts them and writes them to a file (a run). At the end the runs are merged. Several threads may
 * collect at once, each with its own sorter; one thread merges.
 *
 *    record   be32 length of what follows | be64 order | be16 length of the row | row | cells
 *    cell     u8 family length | family | be32 qualifier length | qualifier | be64 timestamp | u8 type
 *             | be16 tags length | tags | be32 value length | value
 *
 * Records are sorted by row and then by `order`, which is that of the input. Of cells with the same
 * key the last one in the input remains, as if they were put one after the other.
 */
#ifndef RQ_TRANSFER_RUNS_H
#define RQ_TRANSFER_RUNS_H

#include "cell/cell.h"
#include "transfer/in.h"
#include "transfer/out.h"

#include <stdatomic.h>

/* The runs of all threads. */
typedef struct rq__runs {
    rq_vfs *vfs;
    const char *folder; /* in the vfs; exists */
    _Atomic uint64_t count;
} rq__runs;

typedef struct rq__sort_entry {
    uint64_t prefix; /* the row's first 8 bytes */
    uint64_t at;     /* of the record in `records` */
} rq__sort_entry;

/* Collects rows. With `runs` and `memory` set and the rest zeroed it is empty. */
typedef struct rq__row_sorter {
    rq__runs *runs;
    size_t memory; /* bytes */
    rq_buf records;
    rq__sort_entry *entries;
    size_t count, cap;
} rq__row_sorter;

RQ_NODISCARD
rq_err rq__sort_add(rq__row_sorter *s, uint64_t order, rq_slice row, const rq_cell *cells,
                    size_t count, rq_error *why);
/* Writes what is left as a run. */
RQ_NODISCARD
rq_err rq__sort_flush(rq__row_sorter *s, rq_error *why);
void rq__row_sorter_clear(rq__row_sorter *s);

/* Merges all runs; `cell` gets every cell in order, valid during the call. Removes the runs. */
RQ_NODISCARD
rq_err rq__runs_merge(rq__runs *r, rq_err (*cell)(void *ctx, const rq_cell *c, rq_error *why),
                      void *ctx, rq_error *why);

#endif
