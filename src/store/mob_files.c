/* SPDX-License-Identifier: Apache-2.0 */
/* Open MOB files, and reading values from them; contract in mob_files.h. */
#include "store/mob_files.h"

#include "store/reference.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define BUCKETS 1024
/* "<table>/<family>/<file>" */
#define KEY_MAX_LEN ((size_t)2 * 256 + RQ_FAMILY_LEN_MAX + 256 + 4)

typedef struct open_file {
    struct open_file *chain;
    struct open_file *newer, *older; /* by last use */
    rq_hfile_reader *reader;
    bool used; /* since the last trim */
    size_t key_len;
    char key[];
} open_file;

typedef struct written_file {
    struct written_file *next;
    char name[];
} written_file;

struct rq_mob_files {
    rq_env env;
    rq_block_cache *cache;
    size_t open_max;
    pthread_mutex_t lock;
    open_file *buckets[BUCKETS] RQ_GUARDED_BY(lock);
    open_file *newest RQ_GUARDED_BY(lock);
    open_file *oldest RQ_GUARDED_BY(lock);
    size_t count RQ_GUARDED_BY(lock);
    written_file *written RQ_GUARDED_BY(lock);
    size_t written_count RQ_GUARDED_BY(lock);
};

rq_err rq_mob_files_new(const rq_env *env, rq_block_cache *cache, size_t open_max,
                        rq_mob_files **ret)
{
    rq_mob_files *f = calloc(1, sizeof *f);
    if (f == NULL) return RQ_E_NO_MEMORY;
    f->env = *env;
    f->cache = cache;
    f->open_max = open_max;
    pthread_mutex_init(&f->lock, NULL);
    *ret = f;
    return RQ_OK;
}

static void free_list(open_file *list)
{
    while (list != NULL) {
        open_file *next = list->older;
        rq_hfile_reader_unref(list->reader);
        free(list);
        list = next;
    }
}

void rq_mob_files_free(rq_mob_files *f)
{
    if (f == NULL) return;
    for (written_file *w = f->written, *next; w != NULL; w = next) {
        next = w->next;
        free(w);
    }
    free_list(f->newest);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

/* --- the open ones ---------------------------------------------------------------------------- */

static open_file **bucket_of(rq_mob_files *f, rq_slice key)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < key.len; i++)
        h = (h ^ key.ptr[i]) * UINT64_C(0x100000001b3);
    return &f->buckets[(h ^ h >> 32) % BUCKETS];
}

static open_file **find(rq_mob_files *f, rq_slice key)
{
    open_file **at = bucket_of(f, key);
    while (*at != NULL && !rq_slice_eq(rq_slice_of((*at)->key, (*at)->key_len), key))
        at = &(*at)->chain;
    return at;
}

static void unlink_use(rq_mob_files *f, open_file *o)
{
    *(o->newer != NULL ? &o->newer->older : &f->newest) = o->older;
    *(o->older != NULL ? &o->older->newer : &f->oldest) = o->newer;
}

static void link_use(rq_mob_files *f, open_file *o)
{
    o->newer = NULL;
    o->older = f->newest;
    *(o->older != NULL ? &o->older->newer : &f->oldest) = o;
    f->newest = o;
}

/* Out of all lists; the caller's. */
static open_file *take_out(rq_mob_files *f, open_file *o)
{
    open_file **at = find(f, rq_slice_of(o->key, o->key_len));
    *at = o->chain;
    unlink_use(f, o);
    f->count--;
    o->older = NULL;
    return o;
}

/* A new reference, or NULL. */
static rq_hfile_reader *get_open(rq_mob_files *f, rq_slice key)
{
    rq_hfile_reader *reader = NULL;
    pthread_mutex_lock(&f->lock);
    open_file *o = *find(f, key);
    if (o != NULL) {
        unlink_use(f, o);
        link_use(f, o);
        o->used = true;
        reader = rq_hfile_reader_ref(o->reader);
    }
    pthread_mutex_unlock(&f->lock);
    return reader;
}

/* Best effort: a file that is not kept open is opened again when needed. */
static void keep_open(rq_mob_files *f, rq_slice key, rq_hfile_reader *reader)
{
    open_file *o = f->open_max == 0 ? NULL : malloc(sizeof *o + key.len);
    if (o == NULL) return;
    *o = (open_file){.used = true, .key_len = key.len};
    memcpy(o->key, key.ptr, key.len);
    open_file *out = NULL;
    pthread_mutex_lock(&f->lock);
    open_file **at = find(f, key);
    if (*at == NULL) {
        o->reader = rq_hfile_reader_ref(reader);
        *at = o;
        link_use(f, o);
        f->count++;
        o = NULL;
        if (f->count > f->open_max) out = take_out(f, f->oldest);
    }
    pthread_mutex_unlock(&f->lock);
    free(o); /* another thread was faster */
    free_list(out);
}

void rq_mob_files_trim(rq_mob_files *f)
{
    open_file *out = NULL;
    pthread_mutex_lock(&f->lock);
    for (open_file *o = f->newest, *next; o != NULL; o = next) {
        next = o->older;
        if (!o->used) {
            take_out(f, o)->older = out;
            out = o;
        }
        o->used = false;
    }
    pthread_mutex_unlock(&f->lock);
    free_list(out);
}

/* --- being written ---------------------------------------------------------------------------- */

rq_err rq__mob_files_writing(rq_mob_files *f, const char *name)
{
    size_t size = strlen(name) + 1;
    written_file *w = malloc(sizeof *w + size);
    if (w == NULL) return RQ_E_NO_MEMORY;
    memcpy(w->name, name, size);
    pthread_mutex_lock(&f->lock);
    w->next = f->written;
    f->written = w;
    f->written_count++;
    pthread_mutex_unlock(&f->lock);
    return RQ_OK;
}

static written_file **find_written(rq_mob_files *f, const char *name)
{
    written_file **at = &f->written;
    while (*at != NULL && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    return at;
}

void rq__mob_files_written(rq_mob_files *f, const char *name)
{
    pthread_mutex_lock(&f->lock);
    written_file **at = find_written(f, name);
    written_file *w = *at;
    if (w != NULL) {
        *at = w->next;
        f->written_count--;
    }
    pthread_mutex_unlock(&f->lock);
    free(w);
}

bool rq_mob_files_is_being_written(rq_mob_files *f, const char *name)
{
    pthread_mutex_lock(&f->lock);
    bool is = *find_written(f, name) != NULL;
    pthread_mutex_unlock(&f->lock);
    return is;
}

rq_err rq_mob_files_list_written(rq_mob_files *f, rq_arena *arena, rq_slice **ret,
                                 size_t *ret_count)
{
    rq_err rc = RQ_OK;
    *ret_count = 0;
    pthread_mutex_lock(&f->lock);
    *ret = rq_arena_calloc(arena, f->written_count + 1, sizeof **ret);
    if (*ret == NULL) rc = RQ_E_NO_MEMORY;
    for (const written_file *w = f->written; w != NULL && rc == RQ_OK; w = w->next) {
        rq_slice name = rq_arena_copy(arena, rq_slice_cstr(w->name));
        if (name.ptr == NULL) rc = RQ_E_NO_MEMORY;
        (*ret)[(*ret_count)++] = name;
    }
    pthread_mutex_unlock(&f->lock);
    return rc;
}

/* --- opening ---------------------------------------------------------------------------------- */

/* A file and the key it is kept under. */
typedef struct wanted {
    rq_slice table, family, file; /* parts of the key */
    size_t key_len;
    char key[KEY_MAX_LEN];
} wanted;

static rq_slice key_of(const wanted *w)
{
    return rq_slice_of(w->key, w->key_len);
}

/* The names have been checked: neither is longer than a file name may be. */
static void name_wanted(wanted *w, const rq_mob_reference *ref, rq_slice family)
{
    int n = snprintf(w->key, sizeof w->key, "%.*s/%.*s/%.*s", (int)ref->table.len,
                     (const char *)ref->table.ptr, (int)family.len, (const char *)family.ptr,
                     (int)ref->file.len, (const char *)ref->file.ptr);
    RQ_ASSERT(n > 0 && (size_t)n < sizeof w->key);
    w->key_len = (size_t)n;
    w->table = rq_slice_of(w->key, ref->table.len);
    w->family = rq_slice_of(w->key + ref->table.len + 1, family.len);
    w->file = rq_slice_of(w->key + ref->table.len + 1 + family.len + 1, ref->file.len);
}

/* Blocking. */
static rq_err open_wanted(rq_mob_files *f, const wanted *w, rq_hfile_reader **ret, rq_error *why)
{
    rq_arena a;
    rq_arena_init(&a);
    const char *dir = rq_mob_family_dir(&a, w->table, w->family);
    char *path = dir == NULL ? NULL
                             : rq_arena_printf(&a, "%s/%.*s", dir, (int)w->file.len,
                                               (const char *)w->file.ptr);
    char *archived =
        path == NULL ? NULL : rq_arena_printf(&a, "archive%s", path + sizeof RQ_MOB_DIR - 1);
    rq_err rc = archived == NULL ? RQ_E_NO_MEMORY : RQ_OK;
    rq_error own = {0};
    if (rc == RQ_OK) rc = rq_hfile_reader_open(f->env.vfs, path, f->cache, false, ret, &own);
    if (rc == RQ_E_NOT_FOUND) {
        own = (rq_error){0};
        rc = rq_hfile_reader_open(f->env.vfs, archived, f->cache, false, ret, &own);
    }
    /* HBASE: HMobStore.readCell. Reopening the region would not help. */
    if (rc == RQ_E_NOT_FOUND)
        rc = rq_fail(why, RQ_E_DO_NOT_RETRY,
                     "java.io.FileNotFoundException: File %s does not exist", archived);
    else if (rc != RQ_OK)
        rc = rq_fail(why, rc, "%s", own.code == RQ_OK ? rq_err_text(rc) : own.message);
    rq_arena_clear(&a);
    if (rc == RQ_OK) keep_open(f, key_of(w), *ret);
    return rc;
}

/* An opening that an event loop waits for. */
typedef struct opening {
    rq_read_wait base;
    rq_mob_files *files;
    wanted what;
    rq_hfile_reader *reader;
    rq_err rc;
    rq_error why;
} opening;

static void opening_bring(rq_read_wait *wait)
{
    opening *o = RQ_CONTAINER_OF(wait, opening, base);
    o->rc = open_wanted(o->files, &o->what, &o->reader, &o->why);
}

static void opening_release(rq_read_wait *wait)
{
    opening *o = RQ_CONTAINER_OF(wait, opening, base);
    rq_hfile_reader_unref(o->reader);
    free(o);
}

static rq_err begin_opening(rq_mob_files *f, const wanted *w, rq_read_ctx *ctx)
{
    opening *o = calloc(1, sizeof *o);
    if (o == NULL) return RQ_E_NO_MEMORY;
    o->base = (rq_read_wait){.bring = opening_bring, .release = opening_release};
    o->files = f;
    o->what = *w;
    o->what.table.ptr = (const uint8_t *)o->what.key;
    o->what.family.ptr = o->what.table.ptr + w->table.len + 1;
    o->what.file.ptr = o->what.family.ptr + w->family.len + 1;
    rq_read_ctx_wait_for(ctx, &o->base);
    return RQ_E_AGAIN;
}

/* A new reference. */
static rq_err reader_of(rq_mob_files *f, const wanted *w, rq_read_ctx *ctx, rq_hfile_reader **ret,
                        rq_error *why)
{
    if (ctx->wait != NULL && ctx->wait->done && ctx->wait->bring == opening_bring) {
        opening *o = RQ_CONTAINER_OF(ctx->wait, opening, base);
        if (rq_slice_eq(key_of(&o->what), key_of(w))) {
            if (o->rc != RQ_OK) return rq_fail(why, o->rc, "%s", o->why.message);
            *ret = rq_hfile_reader_ref(o->reader);
            return RQ_OK;
        }
    }
    *ret = get_open(f, key_of(w));
    if (*ret != NULL) return RQ_OK;
    return ctx->may_block ? open_wanted(f, w, ret, why) : begin_opening(f, w, ctx);
}

/* --- reading ---------------------------------------------------------------------------------- */

static rq_err position_at_file(rq_mob_read *r, const rq_mob_reference *ref, rq_read_ctx *ctx,
                               rq_error *why)
{
    wanted w;
    rq_hfile_reader *reader;
    name_wanted(&w, ref, r->family);
    RQ_TRY(reader_of(r->files, &w, ctx, &reader, why));
    if (reader != r->at.reader) {
        rq_hfile_scanner_clear(&r->at);
        rq_hfile_scanner_init(&r->at, reader);
    }
    rq_hfile_reader_unref(reader);
    return RQ_OK;
}

static bool is_at(const rq_hfile_scanner *at, const rq_cell *key)
{
    const rq_cell *c = rq_hfile_scanner_cell(at);
    return c != NULL && rq_cell_compare_key(RQ_ORDER_DEFAULT, c, key) == 0;
}

static rq_err seek_key(rq_hfile_scanner *at, const rq_cell *key, rq_read_ctx *ctx, rq_error *why)
{
    rq_err rc = rq_hfile_scanner_reseek(at, ctx, key, why);
    /* The scanner is behind the key if references were not in ascending order. */
    if (rc == RQ_OK && !is_at(at, key)) rc = rq_hfile_scanner_seek(at, ctx, key, why);
    return rc;
}

/* Selects the wanted one of several cells with equal keys: the newest at or below `limit`. A file
 * has two if a reader of the older one was open when the file was written. If all are above the
 * limit, because the region was renumbered, takes the oldest. */
static rq_err choose(rq_mob_read *r, const rq_cell *key, uint64_t limit, rq_read_ctx *ctx,
                     rq_error *why)
{
    rq_hfile_scanner *at = &r->at;
    size_t passed = 0;
    rq_err rc = seek_key(at, key, ctx, why);
    for (; rc == RQ_OK && is_at(at, key); passed++) {
        if (rq_hfile_scanner_cell(at)->seqid <= limit) return RQ_OK;
        rc = rq_hfile_scanner_next(at, ctx, why);
    }
    if (rc != RQ_OK && rc != RQ_E_END) return rc;
    if (passed == 0)
        return rq_fail(why, RQ_E_CORRUPT, "%s: the referenced value is missing",
                       rq_hfile_reader_path(at->reader));
    RQ_TRY(rq_hfile_scanner_seek(at, ctx, key, why));
    while (--passed > 0)
        RQ_TRY(rq_hfile_scanner_next(at, ctx, why));
    return RQ_OK;
}

static rq_err read_value(rq_mob_read *r, const rq_cell *reference, const rq_mob_reference *ref,
                         rq_read_ctx *ctx, rq_cell *ret, rq_error *why)
{
    RQ_TRY(position_at_file(r, ref, ctx, why));
    uint64_t limit = reference->seqid > 0 ? reference->seqid : r->read_point;
    bool dont_cache = ctx->dont_cache;
    ctx->dont_cache = !r->cache_blocks;
    rq_err rc = choose(r, reference, limit, ctx, why);
    ctx->dont_cache = dont_cache;
    RQ_TRY(rc);
    const rq_cell *found = rq_hfile_scanner_cell(&r->at);
    *ret = *reference;
    ret->value = found->value;
    ret->value_len = found->value_len;
    ret->tags = found->tags;
    ret->tags_len = found->tags_len;
    return RQ_OK;
}

rq_err rq__mob_read_cell(rq_mob_read *r, const rq_cell *reference, rq_read_ctx *ctx, rq_cell *ret,
                         rq_error *why)
{
    rq_mob_reference ref;
    bool names_file;
    rq_error own = {0};
    rq_err rc = rq__mob_reference_parse(reference, &ref, &names_file, &own);
    if (rc == RQ_OK && names_file) {
        rc = read_value(r, reference, &ref, ctx, ret, &own);
        if (rc == RQ_OK || rc == RQ_E_AGAIN) return rc;
    }
    bool missed = rc == RQ_E_CORRUPT || rc == RQ_E_MALFORMED || rc == RQ_E_DO_NOT_RETRY;
    if (rc != RQ_OK && !(missed && r->empty_on_miss)) return rq_fail(why, rc, "%s", own.message);
    rq_hfile_scanner_clear(&r->at);
    *ret = *reference;
    ret->value = NULL;
    ret->value_len = 0;
    return RQ_OK;
}

void rq__mob_read_release(rq_mob_read *r)
{
    rq_hfile_scanner_clear(&r->at);
}

/* --- what a store file refers to -------------------------------------------------------------- */

static rq_err open_store_file(rq_vfs *vfs, const char *dir, const char *name, rq_hfile_reader **ret,
                              rq_error *why)
{
    rq_arena a;
    rq_arena_init(&a);
    rq_store_name parts;
    const rq_hfile_reader_options none = {0}; /* no cache */
    rq_store_name_parse(rq_slice_cstr(name), &parts);
    const char *path = rq_arena_printf(&a, "%s/%s", dir, name);
    rq_err rc = path == NULL ? rq_no_memory(why)
                : parts.is_reference || parts.is_link
                    ? rq_store_open_elsewhere(vfs, dir, path, &parts, &none, ret, why)
                    : rq_hfile_reader_open(vfs, path, NULL, false, ret, why);
    rq_arena_clear(&a);
    return rc;
}

static bool may_have_tags(const rq_hfile_reader *reader)
{
    rq_slice longest;
    return rq_hfile_reader_file_info(reader, RQ_SLICE_LIT("hfile.MAX_TAGS_LEN"), &longest) &&
           !(longest.len == 4 && rq_get_be32(longest.ptr) == 0);
}

/* Whether the file was written by a bulk load job, whose files contain values instead of
 * references. HBASE: MobFileCleanupUtil, HStoreFile.BULKLOAD_TASK_KEY. */
static bool is_of_a_job(const rq_hfile_reader *reader)
{
    rq_slice task;
    return rq_hfile_reader_file_info(reader, RQ_SLICE_LIT("BULKLOAD_SOURCE_TASK"), &task);
}

rq_err rq_mob_refs_of_store_file(rq_vfs *vfs, const char *dir, const char *name, rq_mob_refs *refs,
                                 rq_error *why)
{
    rq_hfile_reader *reader;
    rq_slice value;
    RQ_TRY(open_store_file(vfs, dir, name, &reader, why));
    rq_err rc = RQ_OK;
    if (rq_hfile_reader_file_info(reader, RQ_SLICE_LIT(RQ_MOB_INFO_REFS), &value))
        rc = rq_mob_refs_add_encoded(refs, value, why);
    else if (may_have_tags(reader) && !is_of_a_job(reader)) /* no reference is without tags */
        rc = rq_fail(why, RQ_E_STATE,
                     "store file %s/%s does not list the MOB files that it refers to", dir, name);
    rq_hfile_reader_unref(reader);
    return rc;
}
