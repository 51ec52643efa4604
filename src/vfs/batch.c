/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in batch.h. The batch has a list of the files and folders to be synced. If it gets long, one sync
 * of the whole file system takes less time (and also writes what others have written). */
#include "vfs/batch.h"

#include "base/parallel.h"
#include "vfs/vfs_priv.h"

#include <pthread.h>
#include <stdlib.h>

#define NOTES_MAX 24

typedef struct note {
    char *path;
    bool is_dir;
} note;

typedef struct batch_vfs {
    rq_vfs base;
    rq_vfs *below;
    pthread_mutex_t lock;
    note notes[NOTES_MAX];
    size_t count;
    bool all; /* more than that: the notes do not count any more */
} batch_vfs;

typedef struct batch_file {
    rq_file base;
    rq_file *below;
} batch_file;

static rq_vfs *below(rq_vfs *base)
{
    return ((batch_vfs *)base)->below;
}

static rq_file *file_below(rq_file *base)
{
    return ((batch_file *)base)->below;
}

/* --- notes ------------------------------------------------------------------------------------ */
/* Also of what was found done: an earlier attempt may have ended before its syncs. */

/* NULL: it has none. REQUIRES: lock held. */
static note *find_note(batch_vfs *b, const char *path)
{
    for (size_t i = 0; i < b->count; i++)
        if (strcmp(b->notes[i].path, path) == 0) return &b->notes[i];
    return NULL;
}

static void add_note(rq_vfs *base, const char *path, bool is_dir)
{
    batch_vfs *b = (batch_vfs *)base;
    pthread_mutex_lock(&b->lock);
    if (!b->all && find_note(b, path) == NULL) {
        char *copy = b->count < NOTES_MAX ? strdup(path) : NULL;
        b->all = copy == NULL;
        if (copy != NULL) b->notes[b->count++] = (note){.path = copy, .is_dir = is_dir};
    }
    pthread_mutex_unlock(&b->lock);
}

static void note_parent(rq_vfs *base, const char *path)
{
    char parent[RQ_PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t len = slash == NULL ? 0 : (size_t)(slash - path);
    memcpy(parent, path, len);
    parent[len] = '\0';
    add_note(base, parent, true);
}

static void drop_note(rq_vfs *base, const char *path)
{
    batch_vfs *b = (batch_vfs *)base;
    pthread_mutex_lock(&b->lock);
    note *n = find_note(b, path);
    if (n != NULL) {
        free(n->path);
        *n = b->notes[--b->count];
    }
    pthread_mutex_unlock(&b->lock);
}

/* --- files ------------------------------------------------------------------------------------ */

static rq_err batch_open(rq_vfs *base, const char *path, int flags, rq_file **ret, rq_error *why)
{
    batch_file *f = malloc(sizeof *f);
    if (f == NULL) return rq_no_memory(why);
    f->base.vfs = base;
    rq_err rc = below(base)->open(below(base), path, flags, &f->below, why);
    bool is_noted = rc == RQ_OK || rc == RQ_E_EXISTS;
    if (is_noted && (flags & RQ_OPEN_WRITE) != 0) add_note(base, path, false);
    if (is_noted && (flags & RQ_OPEN_CREATE) != 0) note_parent(base, path);
    if (rc != RQ_OK) {
        free(f);
        return rc;
    }
    *ret = &f->base;
    return RQ_OK;
}

static rq_err batch_close(rq_file *base)
{
    rq_err rc = rq_file_close(file_below(base));
    free(base);
    return rc;
}

static rq_err batch_read(rq_file *base, void *buf, size_t len, uint64_t off, size_t *ret_len,
                         rq_error *why)
{
    return rq_file_read(file_below(base), buf, len, off, ret_len, why);
}

static rq_err batch_try_read(rq_file *base, void *buf, size_t len, uint64_t off, size_t *ret_len)
{
    return rq_file_try_read(file_below(base), buf, len, off, ret_len);
}

static rq_err batch_write(rq_file *base, const void *buf, size_t len, uint64_t off, rq_error *why)
{
    return rq_file_write(file_below(base), buf, len, off, why);
}

static rq_err batch_sync(rq_file *base, rq_error *why)
{
    (void)base; /* noted when it was opened */
    (void)why;
    return RQ_OK;
}

static rq_err batch_truncate(rq_file *base, uint64_t size, rq_error *why)
{
    return rq_file_truncate(file_below(base), size, why);
}

static rq_err batch_size(rq_file *base, uint64_t *ret, rq_error *why)
{
    return rq_file_size(file_below(base), ret, why);
}

static rq_err batch_identify(rq_file *base, rq_file_id *ret, rq_error *why)
{
    return rq_file_identify(file_below(base), ret, why);
}

static rq_err batch_link_file(rq_file *base, rq_vfs *to, const char *path, rq_error *why)
{
    (void)base;
    (void)to;
    return rq_fail(why, RQ_E_UNSUPPORTED, "cannot link %s in a batch", path);
}

/* --- names ------------------------------------------------------------------------------------ */

static rq_err batch_stat(rq_vfs *base, const char *path, rq_stat *ret, rq_error *why)
{
    return below(base)->stat(below(base), path, ret, why);
}

static rq_err batch_list(rq_vfs *base, const char *dir, rq_arena *arena, rq_dir_entry **ret,
                         size_t *ret_count, rq_error *why)
{
    return below(base)->list(below(base), dir, arena, ret, ret_count, why);
}

/* An earlier attempt may have made any of the folders above, too. */
static void note_path(rq_vfs *base, const char *path)
{
    char above[RQ_PATH_MAX];
    memcpy(above, path, strlen(path) + 1);
    for (char *slash = strrchr(above, '/'); slash != NULL; slash = strrchr(above, '/')) {
        *slash = '\0';
        add_note(base, above, true);
    }
    add_note(base, "", true);
}

static rq_err batch_mkdir(rq_vfs *base, const char *path, rq_error *why)
{
    rq_err rc = below(base)->mkdir(below(base), path, why);
    if (rc == RQ_OK || rc == RQ_E_EXISTS) note_path(base, path);
    return rc;
}

static rq_err batch_remove(rq_vfs *base, const char *path, rq_error *why)
{
    rq_err rc = below(base)->remove(below(base), path, why);
    if (rc != RQ_OK && rc != RQ_E_NOT_FOUND) return rc;
    drop_note(base, path);
    note_parent(base, path);
    return rc;
}

static rq_err batch_remove_file(rq_vfs *base, const char *path, const rq_file_id *id, rq_error *why)
{
    rq_err rc = below(base)->remove_file(below(base), path, id, why);
    if (rc != RQ_OK) return rc;
    drop_note(base, path);
    note_parent(base, path);
    return RQ_OK;
}

static rq_err batch_link(rq_vfs *base, const char *from, const char *to, rq_error *why)
{
    rq_err rc = below(base)->link(below(base), from, to, why);
    if (rc == RQ_OK || rc == RQ_E_EXISTS) note_parent(base, to);
    return rc;
}

static rq_err batch_sync_dir(rq_vfs *base, const char *dir, rq_error *why)
{
    (void)why;
    add_note(base, dir, true);
    return RQ_OK;
}

static rq_err batch_lock(rq_vfs *base, const char *path, rq_file **ret, rq_error *why)
{
    (void)base;
    (void)path;
    (void)ret;
    return rq_fail(why, RQ_E_UNSUPPORTED, "a batch has no lock");
}

static rq_err batch_sync_all(rq_vfs *base, rq_error *why)
{
    return rq_vfs_sync_all(below(base), why);
}

static void batch_free(rq_vfs *base)
{
    batch_vfs *b = (batch_vfs *)base;
    for (size_t i = 0; i < b->count; i++)
        free(b->notes[i].path);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

rq_err rq_vfs_batch_new(rq_vfs *on, rq_vfs **ret, rq_error *why)
{
    batch_vfs *b = calloc(1, sizeof *b);
    if (b == NULL) return rq_no_memory(why);
    pthread_mutex_init(&b->lock, NULL);
    b->below = on;
    b->base = (rq_vfs){
        .open = batch_open,
        .close = batch_close,
        .read = batch_read,
        .try_read = batch_try_read,
        .write = batch_write,
        .sync = batch_sync,
        .truncate = batch_truncate,
        .size = batch_size,
        .stat = batch_stat,
        .list = batch_list,
        .mkdir = batch_mkdir,
        .remove = batch_remove,
        .link = batch_link,
        .sync_dir = batch_sync_dir,
        .lock = batch_lock,
        .identify = batch_identify,
        .link_file = batch_link_file,
        .remove_file = batch_remove_file,
        .sync_all = batch_sync_all,
        .free = batch_free,
    };
    *ret = &b->base;
    return RQ_OK;
}

/* --- the sync --------------------------------------------------------------------------------- */

typedef struct syncing {
    batch_vfs *batch;
    pthread_mutex_t lock;
    rq_err rc;
    rq_error why;
} syncing;

/* Names removed meanwhile by others (empty folders, by the archive's cleaner) need no sync. */
static void sync_one(void *ctx, size_t i)
{
    syncing *s = ctx;
    const note *n = &s->batch->notes[i];
    rq_vfs *v = s->batch->below;
    rq_error why = {0};
    rq_err rc = n->is_dir ? rq_vfs_sync_dir(v, n->path, &why) : rq_vfs_sync_file(v, n->path, &why);
    if (rc == RQ_OK || rc == RQ_E_NOT_FOUND) return;
    pthread_mutex_lock(&s->lock);
    if (s->rc == RQ_OK) {
        s->rc = rc;
        (void)rq_fail(&s->why, rc, "%s", why.code != RQ_OK ? why.message : rq_err_text(rc));
    }
    pthread_mutex_unlock(&s->lock);
}

static rq_err sync_notes(batch_vfs *b, rq_executor *ex, rq_error *why)
{
    syncing s = {.batch = b};
    if (b->all) return rq_vfs_sync_all(b->below, why);
    pthread_mutex_init(&s.lock, NULL);
    rq_parallel(ex, b->count, sync_one, &s);
    pthread_mutex_destroy(&s.lock);
    return s.rc == RQ_OK ? RQ_OK : rq_fail(why, s.rc, "%s", s.why.message);
}

rq_err rq_vfs_batch_end(rq_vfs *batch, rq_executor *ex, rq_err rc, rq_error *why)
{
    if (rc == RQ_OK) rc = sync_notes((batch_vfs *)batch, ex, why);
    rq_vfs_free(batch);
    return rc;
}
