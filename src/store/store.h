/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One family of one region: memstore segments and HFiles.
 *
 * Readers see an immutable *version*. It is replaced as a whole (when a flush begins or ends, a
 * compaction ends, files are bulk-loaded) by publishing a pointer; the old one is retired through
 * the epoch. A reader uses a version inside its read section (a loop's iteration) or takes a
 * reference. All versions a reader may get have the same cells at or below its read point: flush
 * and compaction drop only cells that no open read point can see.
 *
 * Only the region changes a store. Every publishing call is made under the region's writer token,
 * so versions follow one another without a lock, and the token's holder may read the newest version
 * without a read section.
 */
#ifndef RQ_STORE_STORE_H
#define RQ_STORE_STORE_H

#include "base/env.h"
#include "descriptor/schema.h"
#include "hfile/reader.h"
#include "hfile/writer.h"
#include "store/cache_options.h"
#include "store/segment.h"

#include <stdatomic.h>

typedef struct rq_store rq_store;

/* The limit of file systems; names of references and links are long. */
#define RQ_STORE_FILE_NAME_MAX 255

typedef struct rq_store_file {
    /* used by every read, kept together */
    rq_hfile_reader *reader; /* a reference held by the version */
    int64_t min_ts, max_ts;  /* INT64_MIN, INT64_MAX: unknown */
    /* Reads with a lower read point do not see the file: it was loaded after they began,
     * although its cells may have lower sequence ids (region/bulk_load.h). 0 after the region
     * was reopened. */
    uint64_t visible_from;
    bool bulk_loaded;
    /* other properties */
    bool major;        /* MAJOR_COMPACTION_KEY */
    bool is_reference; /* part of another region's file (store/reference.h); sizes are estimates */
    uint64_t size_bytes;
    uint64_t max_seqid; /* highest of its cells; MAX_SEQ_ID_KEY */
    uint64_t entry_count;
    int64_t create_time_ms;
    /* Name in the family's folder: 32 hex digits; bulk-loaded by HBase: followed by
     * "_SeqId_<n>_"; references and links: store/reference.h. */
    char name[RQ_STORE_FILE_NAME_MAX + 1];
} rq_store_file;

typedef struct rq_store_version {
    _Atomic unsigned refs;
    rq_segment *active;     /* the segment that receives writes */
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

/* The newest version. REQUIRES: a read section or the writer token; valid until its end unless
 * referenced. */
const rq_store_version *rq_store_version_now(const rq_store *s);
/* Bytes of the cells in the version's memstore; their memory is more. */
uint64_t rq_store_version_data_bytes(const rq_store_version *v);
const rq_store_version *rq_store_version_ref(const rq_store_version *v);
void rq_store_version_unref(const rq_store_version *v);

/* The files of a version without the version, for long work on files. A referenced version would
 * keep its memstore in memory all that time, even after a flush. */
typedef struct rq_store_files {
    rq_store_file *list; /* a reference on each reader */
    size_t count;
    uint64_t unflushed_from; /* smallest sequence id in the version's memstore; 0: it is empty */
} rq_store_files;

/* Takes the files of the newest version. Not inside a read section. */
RQ_NODISCARD
rq_err rq_store_files_take(const rq_store *s, rq_store_files *ret);
/* Releases the files outside [first, first + count), which may then be closed: their `reader` is
 * NULL from now on. */
void rq_store_files_keep(rq_store_files *f, size_t first, size_t count);
void rq_store_files_release(rq_store_files *f); /* a zeroed struct is allowed */

const rq_family_schema *rq_store_schema(const rq_store *s);
const rq_table_schema *rq__store_table(const rq_store *s);
rq_cell_order rq_store_order(const rq_store *s);
const rq_env *rq_store_env(const rq_store *s);
const char *rq_store_dir(const rq_store *s);
/* The server's options, as given at open. */
const struct rq_hfile_options *rq__store_file_options(const rq_store *s);
/* The options in effect for this family. */
const rq_cache_options *rq__store_cache_options(const rq_store *s);

/* Additional options of a MOB family (store/mob.h). */
typedef struct rq_mob_options {
    struct rq_mob_files *files; /* the server's; must outlive the store */
    rq_slice start_key;         /* of the region; must outlive the store */
    const char *region;         /* its encoded name; must outlive the store */
    bool optimized;             /* hbase.mob.compaction.type */
    uint64_t file_bytes_max;    /* hbase.mob.compactions.max.file.size, if optimized */
    bool discard_missing;       /* hbase.unsafe.mob.discard.miss */
} rq_mob_options;

/* NULL: not a MOB family. */
const rq_mob_options *rq__store_mob(const rq_store *s);
/* For lines about damaged or missing files, which each read of them would cause. */
struct rq_log_limit *rq__store_damage_lines(const rq_store *s);
/* Returns the folder of its MOB files after making it durable. Blocks. */
RQ_NODISCARD
rq_err rq__store_mob_dir(const rq_store *s, const char **ret, rq_error *why);

/* --- life (the region's) ---------------------------------------------------------------------- */
typedef struct rq_store_options {
    const rq_env *env; /* copied */
    struct rq_block_cache *cache;
    struct rq_slab_pool *slabs;     /* for memstore segments; must outlive all versions; may be
                                     * NULL */
    rq_table_schema *table;         /* a reference is taken */
    const rq_family_schema *family; /* of `table` */
    const char *dir;                /* the family's folder; copied */
    const struct rq_hfile_options *files; /* the server's; copied. NULL: HBase's defaults */
    const rq_cache_options *caching;      /* likewise */
    bool is_date_tiered;                  /* files with the same sequence id are ordered by time */
    /* Counts the versions that are not freed yet; cache, slabs and executor must outlive these
     * versions. Retired versions are then freed on RQ_POOL_WORK, because closing files and freeing
     * memory takes too long for a loop, and a flushed memstore must not stay until a compaction
     * ends. NULL: versions are not counted, and are freed by the thread that collects the epoch. */
    _Atomic uint64_t *versions_alive;
    /* Called after a version was freed, on any thread; may be NULL. */
    void (*version_freed)(void *context);
    void *version_freed_context;
    /* Copied. NULL: values stay in the store files, also in a MOB family. */
    const rq_mob_options *mob;
} rq_store_options;

/* Opens a store with the named files and an empty memstore. Blocks. */
RQ_NODISCARD
rq_err rq_store_open(const rq_store_options *o, const char *const *files, size_t file_count,
                     rq_store **ret, rq_error *why);
/* REQUIRES: no readers (the region is freed through the epoch). NULL is allowed. */
void rq_store_free(rq_store *s);
/* Opens one file of the folder; *ret holds the reader's reference. Blocks. With
 * PREFETCH_BLOCKS_ON_OPEN a background task caches its blocks (store/prefetch.c). */
RQ_NODISCARD
rq_err rq_store_file_open(const rq_store *s, const char *name, rq_store_file *ret, rq_error *why);
/* Makes a new file's name: 32 random hex digits. */
void rq_store_new_file_name(const rq_store *s, char ret[RQ_STORE_FILE_NAME_MAX + 1]);

/* --- changes: REQUIRE the writer token -------------------------------------------------------- */
/* The active segment; only begin_flush replaces it. */
rq_segment *rq_store_active(const rq_store *s);
/* Makes the active segment a snapshot, if it has cells, and starts an empty one. */
RQ_NODISCARD
rq_err rq_store_begin_flush(rq_store *s);

/* Allocates a version in advance, so that publishing cannot fail, with room for one more file
 * than now. Between prepare and publish no other files may be published and no flush may begin. */
RQ_NODISCARD
rq_err rq_store_version_prepare(const rq_store *s, rq_store_version **ret);
/* Like rq_store_version_prepare, with room for `more` files. */
RQ_NODISCARD
rq_err rq_store_version_prepare_for(const rq_store *s, size_t more, rq_store_version **ret);
void rq_store_version_discard(rq_store_version *v); /* NULL is fine */
/*
 * Publishes `v`: the current version without the `flushed` snapshots and the `removed` files, which
 * are in the version's order, and with `added` (whose reader references pass to the version).
 */
void rq_store_publish(rq_store *s, rq_store_version *v, rq_segment *const *flushed,
                      size_t flushed_count, const rq_store_file *removed, size_t removed_count,
                      const rq_store_file *added, size_t added_count);

#endif
