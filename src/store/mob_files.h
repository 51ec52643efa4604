/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The MOB files of all regions of a server: open files, files being written, and reading of
 * referenced values. HBASE: MobFileCache, HMobStore.resolve, MobFile.
 *
 * A file is searched in the MOB folder, then in the archive, and is kept open while it is used. In
 * which of the two it was found does not matter afterwards: a MOB file never changes, and the
 * cleaner links it into the archive before it removes the old name.
 *
 * A file being written is registered from before it exists until the store file that refers to it
 * is committed, or certainly never will be. So the cleaner (region/mob_cleaner.c) can distinguish it from an unreferenced
 * file. If a commit's outcome stays unknown, the file stays registered until the process ends.
 *
 * Any thread; one lock, held for a hash lookup.
 */
#ifndef RQ_STORE_MOB_FILES_H
#define RQ_STORE_MOB_FILES_H

#include "base/env.h"
#include "hfile/reader.h"
#include "store/mob.h"

typedef struct rq_mob_files rq_mob_files;

/* `open_max`: number of files kept open (hbase.mob.file.cache.size); 0: none. */
RQ_NODISCARD
rq_err rq_mob_files_new(const rq_env *env, rq_block_cache *cache, size_t open_max,
                        rq_mob_files **ret);
/* REQUIRES: no reads are in progress. NULL is allowed. */
void rq_mob_files_free(rq_mob_files *f);
/* Closes files that were not used since the last call. Blocks. */
void rq_mob_files_trim(rq_mob_files *f);

/* Adds the MOB files a store file refers to; `name` may be a reference or a link. Blocks.
 * RQ_E_STATE: the file does not list them but may refer to some (written by HBase before 2.3, or
 * by another tool). */
RQ_NODISCARD
rq_err rq_mob_refs_of_store_file(rq_vfs *vfs, const char *dir, const char *name, rq_mob_refs *refs,
                                 rq_error *why);

/* --- being written ---------------------------------------------------------------------------- */
RQ_NODISCARD
rq_err rq__mob_files_writing(rq_mob_files *f, const char *name);
void rq__mob_files_written(rq_mob_files *f, const char *name);
bool rq_mob_files_is_being_written(rq_mob_files *f, const char *name);
/* The names of the files being written, unordered, in the arena. */
RQ_NODISCARD
rq_err rq_mob_files_list_written(rq_mob_files *f, rq_arena *arena, rq_slice **ret,
                                 size_t *ret_count);

/* --- reading ---------------------------------------------------------------------------------- */
/* Set the fields up to empty_on_miss, zero the rest; release it when done. */
typedef struct rq_mob_read {
    rq_mob_files *files;
    rq_slice family;
    uint64_t read_point; /* selects the value for a reference without sequence id */
    bool cache_blocks;   /* hbase.mob.cache.blocks */
    bool empty_on_miss;  /* empty.value.on.mobcell.miss */
    rq_hfile_scanner at; /* at the value last read; without a reader: it was missing */
} rq_mob_read;

/*
 * Returns the cell that a reference stands for: the reference's key and sequence id with the value
 * and tags of the MOB file. Valid until the next call or release. RQ_E_AGAIN as for every read. A
 * missing file is RQ_E_DO_NOT_RETRY with Java's FileNotFoundException in its text; with
 * empty_on_miss a missing or damaged file gives an empty value. References in ascending order
 * within a file are read without a new seek.
 */
RQ_NODISCARD
rq_err rq__mob_read_cell(rq_mob_read *r, const rq_cell *reference, rq_read_ctx *ctx, rq_cell *ret,
                         rq_error *why);
void rq__mob_read_release(rq_mob_read *r);

#endif
