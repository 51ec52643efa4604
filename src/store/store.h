/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One family of one region: memstore segments and HFiles.
 *
 * What readers see is an immutable *version*, replaced as a whole (flush began, flush ended,
 * compaction ended, bulk load) by publishing a pointer; the old one is retired through the epoch.
 * A reader uses a version inside its read section (a loop's iteration), or takes a reference.
 * Whichever version a reader takes, the cells at or below its read point are the same: flush and
 * compaction drop only what no open read point can see.
 *
 * Who may change it: the region. Every publishing call is made under the region's writer token, so
 * that versions follow one another without a lock and the token's holder may read the newest
 * version without a read section.
 */
#ifndef RQ_STORE_STORE_H
#define RQ_STORE_STORE_H

#include "base/env.h"
#include "hfile/reader.h"
#include "hfile/writer.h"
#include "store/cache_options.h"
#include "store/schema.h"
#include "store/segment.h"

#include <stdatomic.h>

typedef struct rq_store rq_store;

#define RQ_STORE_FILE_NAME_MAX 255 /* as file systems have it; references and links are long */

typedef struct rq_store_file {
    /* what every read looks at, side by side */
    rq_hfile_reader *reader; /* a reference of the version's */
    int64_t min_ts, max_ts;  /* INT64_MIN, INT64_MAX: not known */
    /* Reads below this point do not see the file: it was loaded after they began, though its cells
     * may count as older (region/bulk_load.h). 0 once the region was opened anew. */
    uint64_t visible_from;
    bool bulk_loaded;
    /* the rest */
    bool major;        /* MAJOR_COMPACTION_KEY */
    bool is_reference; /* a part of another region's file (store/reference.h): sizes are guesses */
    uint64_t size_bytes;
    uint64_t max_seqid; /* of its cells; MAX_SEQ_ID_KEY */
    uint64_t entry_count;
    int64_t create_time_ms;
    /* In the family's folder: 32 hex digits; bulk-loaded by HBase: with "_SeqId_<n>_" behind; of
     * references and links see store/reference.h. */
    char name[RQ_STORE_FILE_NAME_MAX + 1];
} rq_store_file;

typedef struct rq_store_version {
    _Atomic unsigned refs;
    rq_segment *active;     /* the one segment that still grows */
    rq_segment **snapshots; /* being flushed, newest first */
    size_t snapshot_count;
    rq_store_file *files; /* oldest first, by max_seqid */
    size_t file_count;
    size_t snapshot_room, file_room;
    _Atomic uint64_t *alive;      /* rq_store_options.versions_alive */
    void (*freed)(void *context); /* … .version_freed */
    void *freed_context;
    rq_executor *executor;
    rq_epoch_node retired;
    rq_task release;
} rq_store_version;

/* Inside a read section or with the writer token; valid until its end unless referenced. */
const rq_store_version *rq_store_version_now(const rq_store *s);
const rq_store_version *rq_store_version_ref(const rq_store_version *v);
void rq_store_version_unref(const rq_store_version *v);

/* The files of a version without the version: for whoever works on files for long. Its memstore
 * would otherwise stay in memory all that time, flushed or not, and no longer count as one. */
typedef struct rq_store_files {
    rq_store_file *list; /* a reference on each reader */
    size_t count;
} rq_store_files;

/* Those of the version now. Not inside a read section. */
RQ_NODISCARD
rq_err rq_store_files_take(const rq_store *s, rq_store_files *ret);
/* Those outside of [first, first + count) may be closed: their `reader` is NULL from here on. */
void rq_store_files_keep(rq_store_files *f, size_t first, size_t count);
void rq_store_files_release(rq_store_files *f); /* zeroed: fine */

const rq_family_schema *rq_store_schema(const rq_store *s);
const rq_table_schema *rq_store_table(const rq_store *s);
rq_cell_order rq_store_order(const rq_store *s);
const rq_env *rq_store_env(const rq_store *s);
const char *rq_store_dir(const rq_store *s);
/* The server's, as given at open. */
const struct rq_hfile_options *rq_store_file_options(const rq_store *s);
/* As they are for this family. */
const rq_cache_options *rq_store_cache_options(const rq_store *s);

/* What a store of a MOB family has beside (store/mob.h). */
typedef struct rq_mob_options {
    struct rq_mob_files *files; /* the server's; outlives the store */
    rq_slice start_key;         /* of the region; outlives the store */
    const char *region;         /* its encoded name; outlives the store */
    bool optimized;             /* hbase.mob.compaction.type */
    uint64_t file_bytes_max;    /* hbase.mob.compactions.max.file.size, then */
    bool discard_missing;       /* hbase.unsafe.mob.discard.miss */
} rq_mob_options;

/* NULL: the family is no MOB family. */
const rq_mob_options *rq_store_mob(const rq_store *s);
/* The folder of its MOB files, which is there and will be after a power cut. Blocking. */
RQ_NODISCARD
rq_err rq__store_mob_dir(const rq_store *s, const char **ret, rq_error *why);

/* --- life (the region's) ---------------------------------------------------------------------- */
typedef struct rq_store_options {
    const rq_env *env; /* copied */
    struct rq_block_cache *cache;
    struct rq_slab_pool *slabs;     /* of memstore segments; outlives all versions; may be NULL */
    rq_table_schema *table;         /* a reference is taken */
    const rq_family_schema *family; /* of `table` */
    const char *dir;                /* the family's folder; copied */
    const struct rq_hfile_options *files; /* the server's; copied. NULL: HBase's defaults */
    const rq_cache_options *caching;      /* likewise */
    bool is_date_tiered;                  /* files of one number are ordered by their times */
    /* Counts the versions not freed yet; cache, slabs and executor must outlive them. Retired ones
     * are then freed on RQ_POOL_WORK, for closing files and giving back memory takes longer than a
     * loop has, and a flushed memstore must not stay until a compaction ends. NULL: not counted,
     * freed by whoever collects. */
    _Atomic uint64_t *versions_alive;
    /* Called when one was freed, on whatever thread that was; may be NULL. */
    void (*version_freed)(void *context);
    void *version_freed_context;
    /* Copied. NULL: values stay in the store files, whatever the family says. */
    const rq_mob_options *mob;
} rq_store_options;

/* Blocking. Opens the named files; the memstore is empty. */
RQ_NODISCARD
rq_err rq_store_open(const rq_store_options *o, const char *const *files, size_t file_count,
                     rq_store **ret, rq_error *why);
/* REQUIRES: no reader any more (the region is freed through the epoch). NULL is fine. */
void rq_store_free(rq_store *s);
/* Blocking. Opens one file of the folder; *ret holds the reader's reference. With
 * PREFETCH_BLOCKS_ON_OPEN its blocks are brought into the cache meanwhile (store/prefetch.c). */
RQ_NODISCARD
rq_err rq_store_file_open(const rq_store *s, const char *name, rq_store_file *ret, rq_error *why);
/* A new file's name: 32 random hex digits. */
void rq_store_new_file_name(const rq_store *s, char ret[RQ_STORE_FILE_NAME_MAX + 1]);

/* --- changes: REQUIRE the writer token -------------------------------------------------------- */
/* The segment that grows; it changes with begin_flush only. */
rq_segment *rq_store_active(const rq_store *s);
/* The active segment becomes a snapshot (if it holds a cell) and an empty one takes its place. */
RQ_NODISCARD
rq_err rq_store_begin_flush(rq_store *s);

/* A version prepared before the point of no return, so that publishing cannot fail. Room for one
 * file more than now; between prepare and publish no other files may be published, and no flush may
 * begin. */
RQ_NODISCARD
rq_err rq_store_version_prepare(const rq_store *s, rq_store_version **ret);
/* The same with room for `more` files. */
RQ_NODISCARD
rq_err rq_store_version_prepare_for(const rq_store *s, size_t more, rq_store_version **ret);
void rq_store_version_discard(rq_store_version *v); /* NULL is fine */
/*
 * Publishes `v`: the version now, without the `segment_count` snapshots given and without the files
 * named in `removed`, with `added` (their reader references pass to the version).
 */
void rq_store_publish(rq_store *s, rq_store_version *v, rq_segment *const *flushed,
                      size_t flushed_count, const rq_store_file *removed, size_t removed_count,
                      const rq_store_file *added, size_t added_count);

#endif
