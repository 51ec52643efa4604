/* SPDX-License-Identifier: Apache-2.0 */
/* The store's versions and files; contract in store.h. */
#include "store/store.h"

#include "hfile/writer.h"
#include "store/mob.h"
#include "store/prefetch.h"
#include "store/reference.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct rq_store {
    /* Read by every write and read. */
    const rq_family_schema *family;
    _Atomic(rq_store_version *) version;
    rq_env env;
    struct rq_block_cache *cache;
    struct rq_slab_pool *slabs;
    rq_table_schema *table;
    char *dir;
    rq_hfile_options file_options;
    rq_cache_options caching;
    rq_cache_family *counters; /* the cache's counters for this family; NULL without a cache */
    rq_mob_options mob;        /* no files: not a MOB family */
    rq_log_limit damage;       /* see rq__store_damage_lines */
    rq_log_limit *damage_lines;
    char *mob_dir;
    bool is_date_tiered;
    _Atomic uint64_t *versions_alive;
    void (*version_freed)(void *context);
    void *version_freed_context;
};

/* --- versions --------------------------------------------------------------------------------- */

static rq_store_version *version_alloc(const rq_store *s, size_t snapshot_room, size_t file_room)
{
    rq_store_version *v =
        calloc(1, sizeof *v + snapshot_room * sizeof *v->snapshots + file_room * sizeof *v->files);
    if (v == NULL) return NULL;
    atomic_init(&v->refs, 1);
    v->executor = s->env.executor;
    v->alive = s->versions_alive;
    v->freed = s->version_freed;
    v->freed_context = s->version_freed_context;
    if (v->alive != NULL) atomic_fetch_add(v->alive, 1);
    v->snapshot_room = snapshot_room;
    v->file_room = file_room;
    v->files = (rq_store_file *)(v + 1);
    v->snapshots = (rq_segment **)(v->files + file_room);
    return v;
}

static void version_free(rq_store_version *v)
{
    rq_segment_unref(v->active);
    for (size_t i = 0; i < v->snapshot_count; i++)
        rq_segment_unref(v->snapshots[i]);
    for (size_t i = 0; i < v->file_count; i++)
        rq_hfile_reader_unref(v->files[i].reader);
    _Atomic uint64_t *alive = v->alive;
    if (v->freed != NULL) v->freed(v->freed_context);
    free(v);
    if (alive != NULL) atomic_fetch_sub(alive, 1);
}

const rq_store_version *rq_store_version_now(const rq_store *s)
{
    return atomic_load_explicit(&s->version, memory_order_acquire);
}

uint64_t rq_store_version_data_bytes(const rq_store_version *v)
{
    uint64_t bytes = rq_segment_data_bytes(v->active);
    for (size_t i = 0; i < v->snapshot_count; i++)
        bytes += rq_segment_data_bytes(v->snapshots[i]);
    return bytes;
}

/* The reference count is the only mutable part of a version. */
static rq_store_version *writable(const rq_store_version *v)
{
    return (rq_store_version *)(uintptr_t)v;
}

const rq_store_version *rq_store_version_ref(const rq_store_version *v)
{
    atomic_fetch_add_explicit(&writable(v)->refs, 1, memory_order_relaxed);
    return v;
}

void rq_store_version_unref(const rq_store_version *v)
{
    if (v == NULL) return;
    if (atomic_fetch_sub_explicit(&writable(v)->refs, 1, memory_order_acq_rel) == 1)
        version_free(writable(v));
}

static void run_release(rq_task *task)
{
    rq_store_version_unref(RQ_CONTAINER_OF(task, rq_store_version, release));
}

/* Runs on any thread, mostly a loop's, so files are closed by a task: closing may take long,
 * especially for a removed file. */
static void release(rq_store_version *v)
{
    if (v->alive == NULL) {
        rq_store_version_unref(v);
        return;
    }
    v->release.run = run_release;
    v->executor->submit(v->executor, RQ_POOL_WORK, &v->release);
}

static void release_retired(rq_epoch_node *node)
{
    release(RQ_CONTAINER_OF(node, rq_store_version, retired));
}

static void publish(rq_store *s, rq_store_version *v)
{
    rq_store_version *old = atomic_exchange_explicit(&s->version, v, memory_order_acq_rel);
    if (old != NULL) rq_epoch_retire(s->env.epoch, &old->retired, release_retired);
}

rq_err rq_store_version_prepare_for(const rq_store *s, size_t more, rq_store_version **ret)
{
    const rq_store_version *now = rq_store_version_now(s);
    rq_store_version *v = version_alloc(s, now->snapshot_count, now->file_count + more);
    if (v == NULL) return RQ_E_NO_MEMORY;
    *ret = v;
    return RQ_OK;
}

rq_err rq_store_version_prepare(const rq_store *s, rq_store_version **ret)
{
    return rq_store_version_prepare_for(s, 1, ret);
}

void rq_store_version_discard(rq_store_version *v)
{
    if (v != NULL) version_free(v);
}

static uint64_t unflushed_from(const rq_store_version *v)
{
    uint64_t min, max, from;
    rq_segment_seqid_range(v->active, &from, &max);
    for (size_t i = 0; i < v->snapshot_count; i++) {
        rq_segment_seqid_range(v->snapshots[i], &min, &max);
        if (min < from) from = min;
    }
    return from == UINT64_MAX ? 0 : from;
}

rq_err rq_store_files_take(const rq_store *s, rq_store_files *ret)
{
    rq_err rc = RQ_OK;
    rq_epoch_member pin;
    rq_epoch_pin(s->env.epoch, &pin);
    const rq_store_version *v = rq_store_version_now(s);
    rq_store_file *list = calloc(v->file_count + 1, sizeof *list);
    if (list == NULL) rc = RQ_E_NO_MEMORY;
    size_t count = rc == RQ_OK ? v->file_count : 0;
    for (size_t i = 0; i < count; i++) {
        list[i] = v->files[i];
        rq_hfile_reader_ref(list[i].reader);
    }
    uint64_t from = unflushed_from(v);
    rq_epoch_unpin(s->env.epoch, &pin);
    *ret = (rq_store_files){list, count, from};
    return rc;
}

void rq_store_files_keep(rq_store_files *f, size_t first, size_t count)
{
    for (size_t i = 0; i < f->count; i++) {
        if (i >= first && i < first + count) continue;
        rq_hfile_reader_unref(f->list[i].reader);
        f->list[i].reader = NULL;
    }
}

void rq_store_files_release(rq_store_files *f)
{
    rq_store_files_keep(f, 0, 0);
    free(f->list);
    *f = (rq_store_files){0};
}

static bool segment_in(const rq_segment *s, rq_segment *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == s) return true;
    return false;
}

static int compare_rest(const rq_store_file *x, const rq_store_file *y)
{
    if (x->size_bytes != y->size_bytes) return x->size_bytes > y->size_bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* HBASE: StoreFileComparators.SEQ_ID, … */
static int compare_files(const void *a, const void *b)
{
    const rq_store_file *x = a;
    const rq_store_file *y = b;
    if (x->max_seqid != y->max_seqid) return x->max_seqid < y->max_seqid ? -1 : 1;
    return compare_rest(x, y);
}

/* … SEQ_ID_MAX_TIMESTAMP: a date-tiered compaction writes several files with one number. */
static int compare_files_by_time(const void *a, const void *b)
{
    const rq_store_file *x = a;
    const rq_store_file *y = b;
    if (x->max_seqid != y->max_seqid) return x->max_seqid < y->max_seqid ? -1 : 1;
    if (x->max_ts != y->max_ts) return x->max_ts < y->max_ts ? -1 : 1;
    return compare_rest(x, y);
}

static void sort_files(const rq_store *s, rq_store_version *v)
{
    qsort(v->files, v->file_count, sizeof *v->files,
          s->is_date_tiered ? compare_files_by_time : compare_files);
}

void rq_store_publish(rq_store *s, rq_store_version *v, rq_segment *const *flushed,
                      size_t flushed_count, const rq_store_file *removed, size_t removed_count,
                      const rq_store_file *added, size_t added_count)
{
    const rq_store_version *now = rq_store_version_now(s);
    v->active = rq_segment_ref(now->active);
    for (size_t i = 0; i < now->snapshot_count; i++)
        if (!segment_in(now->snapshots[i], flushed, flushed_count))
            v->snapshots[v->snapshot_count++] = rq_segment_ref(now->snapshots[i]);
    size_t gone = 0;
    for (size_t i = 0; i < now->file_count; i++) {
        if (gone < removed_count && strcmp(now->files[i].name, removed[gone].name) == 0) {
            rq_hfile_reader_set_obsolete(now->files[i].reader);
            gone++;
            continue;
        }
        rq_store_file *f = &v->files[v->file_count++];
        *f = now->files[i];
        rq_hfile_reader_ref(f->reader);
    }
    for (size_t i = 0; i < added_count; i++)
        v->files[v->file_count++] = added[i];
    RQ_ASSERT(gone == removed_count);
    RQ_ASSERT(v->snapshot_count <= v->snapshot_room && v->file_count <= v->file_room);
    sort_files(s, v);
    publish(s, v);
}

rq_segment *rq_store_active(const rq_store *s)
{
    return rq_store_version_now(s)->active;
}

rq_err rq_store_begin_flush(rq_store *s)
{
    const rq_store_version *now = rq_store_version_now(s);
    if (rq_segment_cell_count(now->active) == 0) return RQ_OK;
    rq_store_version *v = version_alloc(s, now->snapshot_count + 1, now->file_count);
    if (v == NULL) return RQ_E_NO_MEMORY;
    rq_err rc = rq__segment_new_in(s->slabs, rq_store_order(s), &v->active);
    if (rc != RQ_OK) {
        version_free(v);
        return rc;
    }
    v->snapshots[v->snapshot_count++] = rq_segment_ref(now->active);
    for (size_t i = 0; i < now->snapshot_count; i++)
        v->snapshots[v->snapshot_count++] = rq_segment_ref(now->snapshots[i]);
    for (; v->file_count < now->file_count; v->file_count++) {
        v->files[v->file_count] = now->files[v->file_count];
        rq_hfile_reader_ref(v->files[v->file_count].reader);
    }
    publish(s, v);
    return RQ_OK;
}

/* --- files ------------------------------------------------------------------------------------ */

/* "…_SeqId_<n>_": the number HBase gave to a bulk-loaded file. HBASE: HStoreFile.open. */
static bool seqid_of_name(const char *name, uint64_t *ret)
{
    const char *mark = NULL;
    /* The last one: a file that was loaded twice has two. */
    for (const char *p = name; (p = strstr(p, "_SeqId_")) != NULL; p++)
        mark = p;
    if (mark == NULL) return false;
    char *end;
    *ret = strtoull(mark + strlen("_SeqId_"), &end, 10);
    return *end == '_';
}

rq_err rq_store_file_open(const rq_store *s, const char *name, rq_store_file *ret, rq_error *why)
{
    if (strlen(name) > RQ_STORE_FILE_NAME_MAX)
        return rq_fail(why, RQ_E_INVALID, "store file name %s is too long", name);
    char *path;
    if (asprintf(&path, "%s/%s", s->dir, name) < 0) return rq_no_memory(why);
    rq_hfile_reader *reader;
    rq_store_name parts;
    rq_store_name_parse(rq_slice_cstr(name), &parts);
    bool elsewhere = parts.is_reference || parts.is_link;
    rq_hfile_reader_options o = {.cache = s->cache,
                                 .family = s->counters,
                                 .in_memory = s->family->in_memory,
                                 .keep_blocks = !s->caching.evict_on_close};
    rq_err rc = elsewhere
                    ? rq_store_open_elsewhere(s->env.vfs, s->dir, path, &parts, &o, &reader, why)
                    : rq_hfile_reader_open_with(s->env.vfs, path, &o, &reader, why);
    free(path);
    if (rc != RQ_OK) return rc;
    const rq_hfile_info *info = rq_hfile_reader_info(reader);
    rq_store_file f = {
        .reader = reader,
        .size_bytes = info->size_bytes,
        .max_seqid = info->has_max_seqid ? info->max_seqid : 0,
        .entry_count = info->entry_count,
        .min_ts = info->has_time_range ? info->min_ts : INT64_MIN,
        .max_ts = info->has_time_range ? info->max_ts : INT64_MAX,
        .create_time_ms = info->create_time_ms,
        .major = info->major,
        .bulk_loaded = info->bulk_loaded,
    };
    memcpy(f.name, name, strlen(name) + 1);
    if (s->caching.prefetch_on_open && s->cache != NULL && s->versions_alive != NULL)
        rq__prefetch_start(&(rq_prefetch){.env = &s->env,
                                          .cache = s->cache,
                                          .in_memory = s->family->in_memory,
                                          .alive = s->versions_alive},
                           reader);
    if (parts.is_reference) {
        /* HBASE: StoreFileInfo, StoreFileReader: half of the file; it never counts as written by a
         * major compaction. */
        f.is_reference = true;
        f.size_bytes /= 2;
        f.entry_count = (f.entry_count + 1) / 2;
        f.major = false;
    }
    uint64_t loaded_as;
    if (seqid_of_name(name, &loaded_as)) {
        f.bulk_loaded = true;
        f.max_seqid = loaded_as; /* replaces the number it had elsewhere. HBASE: HStoreFile.open */
    }
    /* HBASE: HStoreFile.open: a file of a MOB compaction; its cells keep their sequence ids. */
    rq_slice keep;
    if (f.bulk_loaded &&
        rq_hfile_reader_file_info(reader, RQ_SLICE_LIT("SKIP_RESET_SEQ_ID"), &keep) &&
        keep.len == 1 && keep.ptr[0] != 0) {
        f.bulk_loaded = false;
        f.max_seqid++;
    }
    *ret = f;
    return RQ_OK;
}

void rq_store_new_file_name(const rq_store *s, char ret[RQ_STORE_FILE_NAME_MAX + 1])
{
    uint64_t a = s->env.executor->random(s->env.executor);
    uint64_t b = s->env.executor->random(s->env.executor);
    snprintf(ret, RQ_STORE_FILE_NAME_MAX + 1, "%016" PRIx64 "%016" PRIx64, a, b);
}

/* --- life ------------------------------------------------------------------------------------- */

static rq_err open_files(rq_store *s, const char *const *files, size_t file_count,
                         rq_store_version *v, rq_error *why)
{
    RQ_TRY(rq__segment_new_in(s->slabs, rq_store_order(s), &v->active));
    for (size_t i = 0; i < file_count; i++) {
        RQ_TRY(rq_store_file_open(s, files[i], &v->files[v->file_count], why));
        v->file_count++;
    }
    sort_files(s, v);
    return RQ_OK;
}

static rq_err set_mob(rq_store *s, const rq_mob_options *mob)
{
    rq_arena a = {0};
    const char *dir = rq_mob_family_dir(&a, s->table->name, s->family->name);
    if (dir != NULL) s->mob_dir = strdup(dir);
    rq_arena_clear(&a);
    s->mob = *mob;
    return s->mob_dir == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

rq_err rq_store_open(const rq_store_options *o, const char *const *files, size_t file_count,
                     rq_store **ret, rq_error *why)
{
    rq_store *s = calloc(1, sizeof *s);
    if (s == NULL) return rq_no_memory(why);
    s->env = *o->env;
    s->damage_lines = &s->damage;
    s->versions_alive = o->versions_alive;
    s->version_freed = o->version_freed;
    s->version_freed_context = o->version_freed_context;
    rq_store_version *v = version_alloc(s, 0, file_count);
    char *dir = strdup(o->dir);
    rq_err rc = RQ_E_NO_MEMORY;
    if (v == NULL || dir == NULL) goto failed;
    s->cache = o->cache;
    s->slabs = o->slabs;
    s->table = rq_table_schema_ref(o->table);
    s->family = o->family;
    s->dir = dir;
    s->file_options = o->files != NULL ? *o->files : rq_hfile_options_default();
    s->is_date_tiered = o->is_date_tiered;
    rq_cache_options caching = o->caching != NULL ? *o->caching : rq_cache_options_default();
    s->caching = rq__cache_options_of(&caching, o->table, o->family);
    rc = RQ_OK;
    if (s->cache != NULL)
        rc = rq_cache_family_get(s->cache, o->table->name, o->family->name, &s->counters);
    if (rc != RQ_OK) goto failed;
    if (o->mob != NULL && o->family->is_mob) rc = set_mob(s, o->mob);
    if (rc == RQ_OK) rc = open_files(s, files, file_count, v, why);
    if (rc != RQ_OK) goto failed;
    atomic_init(&s->version, v);
    *ret = s;
    return RQ_OK;
failed:
    if (v != NULL) version_free(v);
    rq_cache_family_unref(s->counters);
    rq_table_schema_unref(s->table);
    free(s->mob_dir);
    free(dir);
    free(s);
    return rq_fail(why, rc, "%s", rq_err_text(rc));
}

void rq_store_free(rq_store *s)
{
    if (s == NULL) return;
    release(writable(rq_store_version_now(s)));
    rq_cache_family_unref(s->counters);
    rq_table_schema_unref(s->table);
    free(s->mob_dir);
    free(s->dir);
    free(s);
}

const rq_family_schema *rq_store_schema(const rq_store *s)
{
    return s->family;
}

const rq_table_schema *rq__store_table(const rq_store *s)
{
    return s->table;
}

rq_cell_order rq_store_order(const rq_store *s)
{
    return s->table->is_meta ? RQ_ORDER_META : RQ_ORDER_DEFAULT;
}

const rq_env *rq_store_env(const rq_store *s)
{
    return &s->env;
}

rq_log_limit *rq__store_damage_lines(const rq_store *s)
{
    return s->damage_lines;
}

const char *rq_store_dir(const rq_store *s)
{
    return s->dir;
}

const rq_hfile_options *rq__store_file_options(const rq_store *s)
{
    return &s->file_options;
}

const rq_cache_options *rq__store_cache_options(const rq_store *s)
{
    return &s->caching;
}

const rq_mob_options *rq__store_mob(const rq_store *s)
{
    return s->mob.files == NULL ? NULL : &s->mob;
}

rq_err rq__store_mob_dir(const rq_store *s, const char **ret, rq_error *why)
{
    *ret = s->mob_dir;
    return rq_vfs_mkdirs(s->env.vfs, s->mob_dir, why);
}
