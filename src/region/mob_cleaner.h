/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MOB files that nobody refers to any more, or whose cells have all expired, go to the archive.
 * HBASE: MobFileCleanerChore, RSMobFileCleanerChore, MobFileCleanupUtil,
 * MobUtils.cleanExpiredMobFiles.
 *
 *   1. list the MOB files            2. leave out young ones and those being written
 *   3. read what every store file of every region says it refers to
 *   4. what is left and not referred to is archived
 *
 * In this order no file is missed that a store file refers to: one that was not being written in 2
 * was referred to by then, or never will be, and references only move: from a store file to the one
 * a compaction makes of it, from a region to those a split or merge makes of it. A region's files
 * are read as of one generation of its manifest; one that is cleared away meanwhile is read where
 * its files went, or, when nothing is left of it, makes the round fail: begin it anew.
 */
#ifndef RQ_REGION_MOB_CLEANER_H
#define RQ_REGION_MOB_CLEANER_H

#include "region/engine.h"
#include "store/schema.h"

typedef struct rq_mob_cleaning {
    rq_table_schema *const *tables; /* all there are: a clone refers to its origin's files */
    size_t table_count;
    int64_t min_age_ms; /* hbase.mob.min.age.archive */
    int64_t now_ms;
} rq_mob_cleaning;

/* Blocking. A table whose store files do not say what they refer to, or cannot be read, keeps its
 * MOB files, and so does every other for what that table may refer to: then nothing is archived. */
RQ_NODISCARD
rq_err rq_mob_clean(rq_engine *e, const rq_mob_cleaning *what, size_t *ret_archived, rq_error *why);

/* Blocking. The MOB files of a table that is deleted, or of a family (family.len > 0) that is
 * removed, go to the archive; those that the `keep` regions wrote stay. May be repeated; absent is
 * fine. */
RQ_NODISCARD
rq_err rq_mob_archive(rq_engine *e, rq_slice table, rq_slice family, const rq_region_info *keep,
                      size_t keep_count, rq_error *why);

#endif
