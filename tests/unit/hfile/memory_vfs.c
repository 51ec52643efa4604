/* SPDX-License-Identifier: Apache-2.0 */
/* Files in memory (memory_vfs.h). A handle is the file itself: files live until memory_vfs_clear.
 */
#include "memory_vfs.h"

#include <stdlib.h>

static memory_vfs *vfs_of(rq_vfs *v)
{
    return RQ_CONTAINER_OF(v, memory_vfs, base);
}

static memory_file *file_of(rq_file *f)
{
    return RQ_CONTAINER_OF(f, memory_file, base);
}

static memory_file *find(memory_vfs *m, const char *name)
{
    for (memory_file *f = m->files; f != NULL; f = f->next)
        if (strcmp(f->name, name) == 0) return f;
    return NULL;
}

static bool fails(memory_vfs *m)
{
    return ++m->calls == m->fail_at;
}

static rq_err open_file(rq_vfs *v, const char *path, int flags, rq_file **ret, rq_error *why)
{
    memory_vfs *m = vfs_of(v);
    memory_file *f = find(m, path);
    if (f != NULL && (flags & RQ_OPEN_EXCL)) return rq_fail(why, RQ_E_EXISTS, "%s exists", path);
    if (f == NULL && !(flags & RQ_OPEN_CREATE)) return rq_fail(why, RQ_E_NOT_FOUND, "no %s", path);
    if (f == NULL) {
        f = calloc(1, sizeof(*f));
        f->base.vfs = v;
        f->name = strdup(path);
        f->next = m->files;
        m->files = f;
    }
    *ret = &f->base;
    return RQ_OK;
}

static rq_err close_file(rq_file *f)
{
    (void)f;
    return RQ_OK;
}

static rq_err read_file(rq_file *base, void *buf, size_t len, uint64_t off, size_t *ret_len,
                        rq_error *why)
{
    memory_file *f = file_of(base);
    if (fails(vfs_of(base->vfs))) return rq_fail(why, RQ_E_IO, "%s: read fails", f->name);
    size_t left = off < f->bytes.len ? f->bytes.len - (size_t)off : 0;
    if (len > left) len = left;
    if (len > 0) memcpy(buf, f->bytes.ptr + off, len);
    *ret_len = len;
    return RQ_OK;
}

static rq_err try_read_file(rq_file *base, void *buf, size_t len, uint64_t off, size_t *ret_len)
{
    memory_vfs *m = vfs_of(base->vfs);
    if (m->again_percent > 0 && rq_random_below(&m->random, 100) < m->again_percent)
        return RQ_E_AGAIN;
    return read_file(base, buf, len, off, ret_len, NULL);
}

static rq_err write_file(rq_file *base, const void *buf, size_t len, uint64_t off, rq_error *why)
{
    memory_file *f = file_of(base);
    if (fails(vfs_of(base->vfs))) return rq_fail(why, RQ_E_IO, "%s: write fails", f->name);
    if (off + len > f->bytes.len) {
        RQ_TRY(rq_buf_reserve(&f->bytes, (size_t)(off + len) - f->bytes.len));
        if (off > f->bytes.len) memset(f->bytes.ptr + f->bytes.len, 0, (size_t)off - f->bytes.len);
        f->bytes.len = (size_t)(off + len);
    }
    memcpy(f->bytes.ptr + off, buf, len);
    f->synced = false;
    return RQ_OK;
}

static rq_err sync_file(rq_file *base, rq_error *why)
{
    if (fails(vfs_of(base->vfs))) return rq_fail(why, RQ_E_IO, "sync fails");
    file_of(base)->synced = true;
    return RQ_OK;
}

static rq_err file_size(rq_file *base, uint64_t *ret, rq_error *why)
{
    (void)why;
    *ret = file_of(base)->bytes.len;
    return RQ_OK;
}

static rq_err remove_file(rq_vfs *v, const char *path, rq_error *why)
{
    for (memory_file **link = &vfs_of(v)->files; *link != NULL; link = &(*link)->next)
        if (strcmp((*link)->name, path) == 0) {
            memory_file *f = *link;
            *link = f->next;
            rq_buf_clear(&f->bytes);
            free(f->name);
            free(f);
            return RQ_OK;
        }
    return rq_fail(why, RQ_E_NOT_FOUND, "no %s", path);
}

static rq_err sync_dir(rq_vfs *v, const char *dir, rq_error *why)
{
    (void)dir;
    if (fails(vfs_of(v))) return rq_fail(why, RQ_E_IO, "sync of the folder fails");
    vfs_of(v)->dir_syncs++;
    return RQ_OK;
}

void memory_vfs_init(memory_vfs *m, uint64_t seed)
{
    *m = (memory_vfs){
        .base = {.open = open_file,
                 .close = close_file,
                 .read = read_file,
                 .try_read = try_read_file,
                 .write = write_file,
                 .sync = sync_file,
                 .size = file_size,
                 .remove = remove_file,
                 .sync_dir = sync_dir},
    };
    rq_random_seed(&m->random, seed);
}

void memory_vfs_clear(memory_vfs *m)
{
    while (m->files != NULL)
        (void)remove_file(&m->base, m->files->name, NULL);
}

rq_buf *memory_vfs_bytes(memory_vfs *m, const char *name)
{
    memory_file *f = find(m, name);
    return f == NULL ? NULL : &f->bytes;
}

void memory_vfs_put(memory_vfs *m, const char *name, rq_slice bytes)
{
    (void)remove_file(&m->base, name, NULL);
    rq_file *f;
    if (open_file(&m->base, name, RQ_OPEN_WRITE | RQ_OPEN_CREATE, &f, NULL) != RQ_OK ||
        rq_buf_append(&file_of(f)->bytes, bytes.ptr, bytes.len) != RQ_OK)
        abort();
}
