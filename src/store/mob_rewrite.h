/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What flush and compaction of a MOB family do with each cell that is to be written: larger values
 * go to a MOB file, the store file gets references. HBASE: DefaultMobStoreFlusher,
 * DefaultMobStoreCompactor.
 *
 *   flush, compaction         references stay as they are; a larger value goes to the MOB file
 *   compaction of MOB files   also what references stand for is written anew: to the new MOB file,
 *                             or, once the threshold was raised, into the store file. With
 *                             hbase.mob.compaction.type "optimized" MOB files above a size stay.
 *
 * MOB files are whole and durable before the store file that refers to them is finished.
 */
#ifndef RQ_STORE_MOB_REWRITE_H
#define RQ_STORE_MOB_REWRITE_H

#include "hfile/writer.h"
#include "store/compaction.h"
#include "store/mob_files.h"

typedef struct rq__mob_rewrite {
    const rq_rewrite *what;
    const rq_mob_options *mob;
    rq_slice table;
    uint64_t threshold;
    rq_hfile_options options;
    int64_t newest_ms;
    rq_hfile_writer *store_file;
    rq_hfile_writer *mob_file; /* NULL: none was begun */
    uint64_t mob_cells;
    uint64_t value_bytes; /* written to MOB files so far */
    char name[RQ_MOB_FILE_NAME_LEN + 1];
    rq_mob_refs refs;
    rq_mob_read read;
    rq_read_ctx ctx;
    rq_buf reference;
} rq__mob_rewrite;

/* `options`: of the store file; `store_file` outlives it. */
void rq__mob_rewrite_init(rq__mob_rewrite *m, const rq_rewrite *what,
                          const rq_hfile_options *options, rq_hfile_writer *store_file);
RQ_NODISCARD
rq_err rq__mob_rewrite_cell(rq__mob_rewrite *m, const rq_cell *c, rq_error *why);
/* The last MOB file is finished and the store file told. */
RQ_NODISCARD
rq_err rq__mob_rewrite_finish(rq__mob_rewrite *m, rq_error *why);
/* A MOB file that was not finished is removed. */
void rq__mob_rewrite_clear(rq__mob_rewrite *m);

#endif
