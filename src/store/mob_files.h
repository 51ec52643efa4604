/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The MOB files of all regions of a server: those that are open, those that are being written, and
 * the way from a reference to its value. HBASE: MobFileCache, HMobStore.resolve, MobFile.
 *
 * A file is looked for where MOB files live, then in the archive, and stays open while it is asked
 * for. Which of the two it was does not matter afterwards: a MOB file never changes, and the
 * cleaner links it into the archive before its old name goes.
 *
 * A file that is written is noted as such from before it exists until the store file that refers to
 * it counts. So the cleaner (region/mob_cleaner.c) can tell it from one that nobody refers to any
 * more.
 *
 * Any thread; one lock, held for a hash lookup.
 */
#ifndef RQ_STORE_MOB_FILES_H
#define RQ_STORE_MOB_FILES_H

#include "base/env.h"
#include "hfile/reader.h"
#include "store/mob.h"

typedef struct rq_mob_files rq_mob_files;

/* `open_max`: files kept open, hbase.mob.file.cache.size; 0: none. */
RQ_NODISCARD
rq_err rq_mob_files_new(const rq_env *env, rq_block_cache *cache, size_t open_max,
                        rq_mob_files **ret);
/* REQUIRES: no reader any more. NULL is fine. */
void rq_mob_files_free(rq_mob_files *f);
/* Closes what was not asked for since the last call. Blocking. */
void rq_mob_files_trim(rq_mob_files *f);

/* Adds what the store file refers to; `name` may be a reference or a link. Blocking. RQ_E_STATE: it
 * does not say and may refer to some (HBase before 2.3 wrote it, or somebody's tool). */
RQ_NODISCARD
rq_err rq_mob_refs_of_store_file(rq_vfs *vfs, const char *dir, const char *name, rq_mob_refs *refs,
                                 rq_error *why);

/* --- being written ---------------------------------------------------------------------------- */
RQ_NODISCARD
rq_err rq_mob_files_writing(rq_mob_files *f, const char *name);
void rq_mob_files_written(rq_mob_files *f, const char *name);
bool rq_mob_files_is_being_written(rq_mob_files *f, const char *name);

/* --- reading ---------------------------------------------------------------------------------- */
/* Zero-initialised but for the first fields; release it when done. */
typedef struct rq_mob_read {
    rq_mob_files *files;
    rq_slice family;
    uint64_t read_point; /* says which value is meant by a reference that has lost its number */
    bool cache_blocks;   /* hbase.mob.cache.blocks */
    bool empty_on_miss;  /* empty.value.on.mobcell.miss */
    rq_hfile_scanner at; /* on the value last read; no reader: it was missing */
} rq_mob_read;

/*
 * The cell a reference stands for: its key and number, the value and tags of the MOB file. Valid
 * until the next call or release. RQ_E_AGAIN as every read. A file that is nowhere is
 * RQ_E_DO_NOT_RETRY with Java's FileNotFoundException in its text, or, as damage is, an empty value
 * with empty_on_miss. References that ascend within a file are read without seeking anew.
 */
RQ_NODISCARD
rq_err rq_mob_read_cell(rq_mob_read *r, const rq_cell *reference, rq_read_ctx *ctx, rq_cell *ret,
                        rq_error *why);
void rq_mob_read_release(rq_mob_read *r);

#endif
