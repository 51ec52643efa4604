/* SPDX-License-Identifier: Apache-2.0 */
/* A source shown as a folder that can only be read (session.h). */
#include "backup/session.h"

#include <stdlib.h>

typedef struct source_vfs {
    rq_vfs base;
    rq_source *source;
} source_vfs;

typedef struct source_file {
    rq_file base;
    const rq_source_part *part; /* NULL: it is a lock */
    rq_file *inner;             /* of a part that is not in memory */
} source_file;

static rq_err read_only(rq_error *why, const char *path)
{
    return rq_fail(why, RQ_E_PERMISSION, "%s: cannot be written: a server uses the folder", path);
}

static rq_err not_found(rq_error *why, const char *path)
{
    return rq_fail(why, RQ_E_NOT_FOUND, "%s: No such file or directory", path);
}

/* --- files ------------------------------------------------------------------------------------ */

static rq_err source_open(rq_vfs *base, const char *path, int flags, rq_file **ret, rq_error *why)
{
    source_vfs *v = (source_vfs *)base;
    if ((flags & (RQ_OPEN_WRITE | RQ_OPEN_CREATE)) != 0) return read_only(why, path);
    const rq_source_part *part = rq__source_find(v->source, path);
    if (part == NULL) return not_found(why, path);
    if (part->kind == RQ_IMAGE_DIR) return rq_fail(why, RQ_E_CORRUPT, "%s is a folder", path);
    source_file *f = calloc(1, sizeof *f);
    if (f == NULL) return rq_fail(why, RQ_E_NO_MEMORY, "%s: out of memory", path);
    *f = (source_file){.base.vfs = base, .part = part};
    rq_err rc = part->bytes != NULL ? RQ_OK : rq__source_open_part(v->source, part, &f->inner, why);
    if (rc != RQ_OK) {
        free(f);
        return rc;
    }
    *ret = &f->base;
    return RQ_OK;
}

static rq_err source_close(rq_file *base)
{
    source_file *f = (source_file *)base;
    rq_err rc = rq_file_close(f->inner);
    free(f);
    return rc;
}

/* How much of a read the part has. */
static size_t within(const source_file *f, size_t len, uint64_t off)
{
    if (off >= f->part->size) return 0;
    return f->part->size - off < len ? (size_t)(f->part->size - off) : len;
}

static rq_err source_read(rq_file *base, void *buf, size_t len, uint64_t off, size_t *ret_len,
                          rq_error *why)
{
    source_file *f = (source_file *)base;
    size_t n = within(f, len, off);
    if (f->inner != NULL) return rq_file_read(f->inner, buf, n, off, ret_len, why);
    if (n > 0) memcpy(buf, f->part->bytes + off, n);
    *ret_len = n;
    return RQ_OK;
}

static rq_err source_try_read(rq_file *base, void *buf, size_t len, uint64_t off, size_t *ret_len)
{
    source_file *f = (source_file *)base;
    if (f->inner == NULL) return source_read(base, buf, len, off, ret_len, NULL);
    return rq_file_try_read(f->inner, buf, within(f, len, off), off, ret_len);
}

static rq_err source_write(rq_file *base, const void *buf, size_t len, uint64_t off, rq_error *why)
{
    (void)buf;
    (void)len;
    (void)off;
    return read_only(why, ((source_file *)base)->part->path);
}

static rq_err source_sync(rq_file *base, rq_error *why)
{
    (void)base;
    (void)why;
    return RQ_OK; /* nothing was written */
}

static rq_err source_truncate(rq_file *base, uint64_t size, rq_error *why)
{
    (void)size;
    return read_only(why, ((source_file *)base)->part->path);
}

static rq_err source_size(rq_file *base, uint64_t *ret, rq_error *why)
{
    (void)why;
    *ret = ((source_file *)base)->part->size;
    return RQ_OK;
}

static rq_err source_identify(rq_file *base, rq_file_id *ret, rq_error *why)
{
    source_file *f = (source_file *)base;
    if (f->inner != NULL) return rq_file_identify(f->inner, ret, why);
    *ret = (rq_file_id){.inode = (uint64_t)(uintptr_t)f->part, .size = f->part->size};
    return RQ_OK;
}

/* --- names ------------------------------------------------------------------------------------ */

static rq_err source_stat(rq_vfs *base, const char *path, rq_stat *ret, rq_error *why)
{
    source_vfs *v = (source_vfs *)base;
    *ret = (rq_stat){.is_dir = true};
    if (path[0] == '\0') return RQ_OK;
    const rq_source_part *part = rq__source_find(v->source, path);
    if (part == NULL) return not_found(why, path);
    if (part->kind == RQ_IMAGE_DIR) return RQ_OK;
    *ret = (rq_stat){.size = part->size};
    return RQ_OK;
}

/* The first part whose path is not below `key`. */
static size_t lower_bound(const rq_source *s, const char *key)
{
    size_t low = 0, high = s->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(s->parts[middle].path, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Parts below one folder are adjacent in the list, at any depth. */
static rq_err source_list(rq_vfs *base, const char *dir, rq_arena *arena, rq_dir_entry **ret,
                          size_t *ret_count, rq_error *why)
{
    const rq_source *s = ((source_vfs *)base)->source;
    const rq_source_part *self = dir[0] == '\0' ? NULL : rq__source_find(s, dir);
    if (dir[0] != '\0' && (self == NULL || self->kind != RQ_IMAGE_DIR)) return not_found(why, dir);
    const char *prefix = dir[0] == '\0' ? "" : rq_arena_printf(arena, "%s/", dir);
    if (prefix == NULL) return rq_no_memory(why);
    size_t len = strlen(prefix), from = lower_bound(s, prefix), count = 0, i;
    for (i = from; i < s->count && strncmp(s->parts[i].path, prefix, len) == 0; i++)
        count += strchr(s->parts[i].path + len, '/') == NULL;
    rq_dir_entry *list = rq_arena_calloc(arena, count + 1, sizeof *list);
    if (list == NULL) return rq_no_memory(why);
    count = 0;
    for (size_t j = from; j < i; j++)
        if (strchr(s->parts[j].path + len, '/') == NULL)
            list[count++] = (rq_dir_entry){.name = s->parts[j].path + len,
                                           .is_dir = s->parts[j].kind == RQ_IMAGE_DIR};
    *ret = list;
    *ret_count = count;
    return RQ_OK;
}

static rq_err source_mkdir(rq_vfs *base, const char *path, rq_error *why)
{
    (void)base;
    return read_only(why, path);
}

static rq_err source_link(rq_vfs *base, const char *from, const char *to, rq_error *why)
{
    (void)base;
    (void)from;
    return read_only(why, to);
}

static rq_err source_sync_dir(rq_vfs *base, const char *dir, rq_error *why)
{
    (void)base;
    (void)dir;
    (void)why;
    return RQ_OK; /* nothing was written */
}

/* The folder belongs to its server; this view of it does not change. */
static rq_err source_lock(rq_vfs *base, const char *path, rq_file **ret, rq_error *why)
{
    (void)path;
    source_file *f = calloc(1, sizeof *f);
    if (f == NULL) return rq_no_memory(why);
    f->base.vfs = base;
    *ret = &f->base;
    return RQ_OK;
}

static rq_err source_link_file(rq_file *base, rq_vfs *to, const char *path, rq_error *why)
{
    (void)base;
    (void)to;
    return read_only(why, path);
}

static rq_err source_remove_file(rq_vfs *base, const char *path, const rq_file_id *id,
                                 rq_error *why)
{
    (void)base;
    (void)id;
    return read_only(why, path);
}

static void source_free(rq_vfs *base)
{
    free(base);
}

rq_err rq_source_vfs_new(rq_source *s, rq_vfs **ret, rq_error *why)
{
    source_vfs *v = calloc(1, sizeof *v);
    if (v == NULL) return rq_no_memory(why);
    v->base = (rq_vfs){
        .open = source_open,
        .close = source_close,
        .read = source_read,
        .try_read = source_try_read,
        .write = source_write,
        .sync = source_sync,
        .truncate = source_truncate,
        .size = source_size,
        .stat = source_stat,
        .list = source_list,
        .mkdir = source_mkdir,
        .remove = source_mkdir,
        .link = source_link,
        .sync_dir = source_sync_dir,
        .lock = source_lock,
        .identify = source_identify,
        .link_file = source_link_file,
        .remove_file = source_remove_file,
        .free = source_free,
    };
    v->source = s;
    *ret = &v->base;
    return RQ_OK;
}
