/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Archives MOB files that are unreferenced, or whose cells have all expired. HBASE:
 * MobFileCleanerChore, RSMobFileCleanerChore, MobFileCleanupUtil, MobUtils.cleanExpiredMobFiles.
 *
 *   1. list the MOB files            2. exclude young ones and those being written
 *   3. read which MOB files every store file of every region refers to
 *   4. archive the files that are left and not referred to, unless a snapshot or a backup is
 *      listing files (vfs/retention.h): they wait for the next round
 *
 * In this order no referenced file is archived. A file that was not being written in step 2 was
 * already referred to, or never will be. References only move: from a store file to the compacted
 * one, from a region to the regions of a split or merge. A region's files are read as of one
 * generation of its manifest. A file that is removed meanwhile is read where its content went, or,
 * if nothing is left of it, the round fails and must be repeated.
 *
 * In a cluster other servers write MOB files, too. Step 2 asks them, after step 1. A server does not answer while it does not
 * know the outcome of a swap of a manifest: its next swap may go back to the files before a compaction, to which the
 * manifest on the storage no longer refers. A swap with an unknown outcome may also begin after the answer. So step 3 is
 * also done before step 2, and a file to which a manifest refers at either time stays.
 *
 * In the second step 3 the owner of each region must be a server that has answered, or the round fails. So a server that has
 * ended or hangs makes a round fail only while it owns a region of a MOB table. A fence would not be enough: it ends the
 * server's log, but a flush in progress can still be committed until another server has swapped the region's manifest. After
 * step 3 the round fails if this server has been fenced: a later master may be listing files for a snapshot.
 */
#ifndef RQ_REGION_MOB_CLEANER_H
#define RQ_REGION_MOB_CLEANER_H

#include "descriptor/schema.h"
#include "region/engine.h"

/* The answers of other servers, in an arena. */
typedef struct rq_mob_writers {
    rq_slice *servers; /* the names of those that answered */
    size_t server_count;
    rq_slice *files; /* the names of the MOB files that they are writing */
    size_t file_count;
} rq_mob_writers;

typedef struct rq_mob_cleaning {
    rq_table_schema *const *tables; /* all tables, since a clone refers to its origin's files */
    size_t table_count;
    int64_t min_age_ms; /* hbase.mob.min.age.archive */
    int64_t now_ms;
    /* Asks the other servers of a cluster. Servers that do not answer are left out. Blocks. NULL: there are none. */
    rq_err (*ask)(void *ctx, rq_arena *arena, rq_mob_writers *ret, rq_error *why);
    void *ctx;
} rq_mob_cleaning;

/* The names of the MOB files that this process is writing, unordered, in the arena. Blocks. RQ_E_STATE: the outcome of a swap
 * of a manifest is unknown. */
RQ_NODISCARD
rq_err rq_mob_writes(rq_engine *e, rq_arena *arena, rq_slice **ret, size_t *ret_count,
                     rq_error *why);

/* Runs one round. Blocks. If a table's store files do not list their references or cannot be
 * read, nothing is archived, since that table may refer to any table's MOB files. */
RQ_NODISCARD
rq_err rq_mob_clean(rq_engine *e, const rq_mob_cleaning *what, size_t *ret_archived, rq_error *why);

/* Archives the MOB files of a deleted table, or of a removed family (family.len > 0), except
 * those written by the `keep` regions. Blocks. May be repeated; absent files are no error. */
RQ_NODISCARD
rq_err rq_mob_archive(rq_engine *e, rq_slice table, rq_slice family, const rq_region_info *keep,
                      size_t keep_count, rq_error *why);

#endif
