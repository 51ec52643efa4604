/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing of a MOB family's cells by flush and compaction: larger values go to a MOB file, and the
 * store file gets references. HBASE: DefaultMobStoreFlusher, DefaultMobStoreCompactor.
 *
 *   flush, compaction         references are kept; a larger value goes to the MOB file
 *   compaction of MOB files   referenced values are rewritten, too: to the new MOB file, or into
 *                             the store file if the threshold was raised. With
 *                             hbase.mob.compaction.type "optimized", large MOB files are kept.
 *
 * MOB files are complete and durable before the store file that refers to them is finished.
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
    rq_hfile_writer *mob_file; /* NULL: none is being written */
    uint64_t mob_cells;
    uint64_t value_bytes; /* written to MOB files so far */
    char name[RQ_MOB_FILE_NAME_LEN + 1];
    rq_mob_refs refs;
    rq_mob_read read;
    rq_read_ctx ctx;
    rq_buf reference;
} rq__mob_rewrite;

/* `options`: the store file's. `store_file` must outlive it. */
void rq__mob_rewrite_init(rq__mob_rewrite *m, const rq_rewrite *what,
                          const rq_hfile_options *options, rq_hfile_writer *store_file);
RQ_NODISCARD
rq_err rq__mob_rewrite_cell(rq__mob_rewrite *m, const rq_cell *c, rq_error *why);
/* Finishes the last MOB file and writes the references into the store file's file info. */
RQ_NODISCARD
rq_err rq__mob_rewrite_finish(rq__mob_rewrite *m, rq_error *why);
/* Removes an unfinished MOB file and frees the struct's memory. */
void rq__mob_rewrite_clear(rq__mob_rewrite *m);

#endif
