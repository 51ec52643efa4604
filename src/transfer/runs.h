/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorts any number of rows with bounded memory. A sorter collects rows; when its memory is full, it
 * sorts them and writes them to a file (a run). At the end the runs are merged. Several threads may
 * collect at once, each with its own sorter and parts of the input; one thread merges.
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

/* A file of sorted records: "run-PART-NUMBER", of a part of the input, or "merged-NUMBER". */
typedef struct rq__run_name {
    size_t part; /* RQ__RUN_MERGED */
    uint64_t number;
} rq__run_name;
#define RQ__RUN_MERGED SIZE_MAX

/* The runs that are to be merged. One thread. */
typedef struct rq__runs {
    rq_vfs *vfs;
    const char *folder; /* in the vfs; exists */
    size_t memory;      /* bytes: the different cells of one row may need half of it; 0: no limit */
    rq__run_name *names;
    size_t count, cap;
} rq__runs;

typedef struct rq__sort_entry {
    uint64_t prefix; /* the row's first 8 bytes */
    uint64_t at;     /* of the record in `records` */
} rq__sort_entry;

/* Collects the rows of a part of the input. With the first members set and the rest zeroed it is empty. */
typedef struct rq__row_sorter {
    rq_vfs *vfs;
    const char *folder; /* in the vfs; exists: the runs go there */
    size_t memory;      /* bytes */
    size_t part;        /* of the input */
    uint64_t runs;      /* of the part, so far: their numbers are 0 … runs - 1 */
    rq_buf records;
    rq__sort_entry *entries;
    size_t count, cap;
} rq__row_sorter;

RQ_NODISCARD
rq_err rq__sort_add(rq__row_sorter *s, uint64_t order, rq_slice row, const rq_cell *cells,
                    size_t count, rq_error *why);
/* Writes the remaining rows as a run. Runs are durable, so that a part can be marked as
 * finished. */
RQ_NODISCARD
rq_err rq__sort_flush(rq__row_sorter *s, rq_error *why);
void rq__row_sorter_clear(rq__row_sorter *s);

/* Adds the runs of a part. */
RQ_NODISCARD
rq_err rq__runs_add(rq__runs *r, size_t part, uint64_t count, rq_error *why);
void rq__runs_clear(rq__runs *r);
void rq__run_path(const char *folder, const rq__run_name *name, char *ret, size_t size);
/* Merges all runs; `cell` gets every cell in order, valid during the call. The runs stay, so a
 * killed merge can be repeated. RQ_E_ROW_TOO_BIG: the different cells of a row need more than half of
 * `memory`. */
RQ_NODISCARD
rq_err rq__runs_merge(rq__runs *r, rq_err (*cell)(void *ctx, const rq_cell *c, rq_error *why),
                      void *ctx, rq_error *why);

#endif
