/* SPDX-License-Identifier: Apache-2.0 */
/* Sorted cells to HFiles for a bulk load, FOLDER/FAMILY/NAME: one for each family and region, with the
 * family's compression, encoding, bloom filter and block size. HBASE: HFileOutputFormat2. */
#ifndef RQ_TRANSFER_HFILES_H
#define RQ_TRANSFER_HFILES_H

#include "descriptor/schema.h"
#include "hfile/writer.h"
#include "transfer/ranges.h"

typedef struct rq__hfiles {
    /* Set by the caller. */
    rq_vfs *vfs;
    const char *folder; /* in the vfs */
    const rq_table_schema *schema;
    const rq__range *ranges; /* of all regions, in order */
    size_t range_count;
    /* Its own. */
    size_t range;              /* that the cells are in */
    rq_hfile_writer **writers; /* of the families; NULL: not begun */
    uint64_t files, cells;
} rq__hfiles;

/* `ctx` is an rq__hfiles: a callback of rq__runs_merge. */
RQ_NODISCARD
rq_err rq__hfiles_put(void *ctx, const rq_cell *c, rq_error *why);
/* Finishes the last files. */
RQ_NODISCARD
rq_err rq__hfiles_end(rq__hfiles *h, rq_error *why);
/* Drops unfinished files. */
void rq__hfiles_clear(rq__hfiles *h);

/* A new file for that family. */
RQ_NODISCARD
rq_err rq__hfile_begin_at(rq_vfs *v, const char *path, const rq_family_schema *f,
                          rq_hfile_writer **ret, rq_error *why);

#endif
