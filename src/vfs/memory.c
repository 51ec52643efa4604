/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A vfs in the process's memory, for databases that live as long as the process keeps them open.
 * Everything is durable at once, and gone with the vfs.
 *
 * A folder's names are a list. A file is an array of chunks; chunks that contain only zeros are
 * absent (the log writes zeros ahead). One lock guards the names, and each file has one for its
 * bytes. A file lives as long as it has a name or is open.
 */
#include "vfs/memory.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "vfs/vfs_priv.h"

#define CHUNK ((size_t)64 * 1024)

typedef struct entry {
    struct entry *next;
    struct node *node;
    char name[];
} entry;

typedef struct node {
    unsigned refs; /* names and open files; guarded by the vfs's lock */
    bool is_dir;
    bool locked;    /* likewise */
    entry *entries; /* likewise; of a folder */
    pthread_rwlock_t bytes;
    uint8_t **chunks RQ_GUARDED_BY(bytes);
    size_t chunk_count RQ_GUARDED_BY(bytes);
    uint64_t size RQ_GUARDED_BY(bytes);
    int64_t written_ns RQ_GUARDED_BY(bytes);
} node;

typedef struct memory_vfs {
    rq_vfs base;
    pthread_mutex_t lock;
    node *root;
} memory_vfs;

typedef struct memory_file {
    rq_file base;
    node *node;
    bool holds_lock;
    char path[];
} memory_file;

/* --- nodes ------------------------------------------------------------------------------------ */

static node *node_new(bool is_dir)
{
    node *n = calloc(1, sizeof *n);
    if (n == NULL) return NULL;
    n->refs = 1;
    n->is_dir = is_dir;
    n->written_ns = (int64_t)rq_clock_ns(CLOCK_REALTIME);
    pthread_rwlock_init(&n->bytes, NULL);
    return n;
}

static void drop_chunks(node *n, size_t from)
{
    for (size_t i = from; i < n->chunk_count; i++) {
        free(n->chunks[i]);
        n->chunks[i] = NULL;
    }
}

static void node_unref(node *n)
{
    if (--n->refs > 0) return;
    while (n->entries != NULL) {
        entry *e = n->entries;
        n->entries = e->next;
        node_unref(e->node);
        free(e);
    }
    drop_chunks(n, 0);
    free(n->chunks);
    pthread_rwlock_destroy(&n->bytes);
    free(n);
}

/* The link that leads to the name's entry, or the list's end. */
static entry **find(node *dir, const char *name, size_t len)
{
    entry **e = &dir->entries;
    while (*e != NULL && (strncmp((*e)->name, name, len) != 0 || (*e)->name[len] != '\0'))
        e = &(*e)->next;
    return e;
}

/* NULL: there is none. */
static node *walk(const memory_vfs *v, const char *path, size_t len)
{
    node *n = v->root;
    for (size_t at = 0; at < len;) {
        size_t part = strcspn(path + at, "/");
        if (part > len - at) part = len - at;
        entry *e = n->is_dir ? *find(n, path + at, part) : NULL;
        if (e == NULL) return NULL;
        n = e->node;
        at += part + 1;
    }
    return n;
}

/* The folder of the path's last name, or NULL. */
static node *walk_parent(const memory_vfs *v, const char *path, const char **ret_name)
{
    const char *slash = strrchr(path, '/');
    *ret_name = slash == NULL ? path : slash + 1;
    node *n = walk(v, path, slash == NULL ? 0 : (size_t)(slash - path));
    return n != NULL && n->is_dir ? n : NULL;
}

static rq_err add_entry(node *dir, const char *name, node *n)
{
    size_t len = strlen(name) + 1;
    entry *e = malloc(sizeof *e + len);
    if (e == NULL) return RQ_E_NO_MEMORY;
    memcpy(e->name, name, len);
    e->node = n;
    e->next = dir->entries;
    dir->entries = e;
    return RQ_OK;
}

static rq_err create(memory_vfs *v, const char *path, bool is_dir, node **ret, rq_error *why)
{
    const char *name;
    node *parent = walk_parent(v, path, &name);
    if (parent == NULL) return rq_fail(why, RQ_E_NOT_FOUND, "cannot create %s: no folder", path);
    if (*find(parent, name, strlen(name)) != NULL)
        return rq_fail(why, RQ_E_EXISTS, "cannot create %s: it exists", path);
    node *n = node_new(is_dir);
    if (n == NULL) return rq_no_memory(why);
    rq_err rc = add_entry(parent, name, n);
    if (rc != RQ_OK) {
        node_unref(n);
        return rq_no_memory(why);
    }
    *ret = n;
    return RQ_OK;
}

/* --- files ------------------------------------------------------------------------------------ */

static rq_err file_new(memory_vfs *v, node *n, const char *path, memory_file **ret, rq_error *why)
{
    size_t len = strlen(path) + 1;
    memory_file *f = calloc(1, sizeof *f + len);
    if (f == NULL) return rq_no_memory(why);
    f->base.vfs = &v->base;
    f->node = n;
    n->refs++;
    memcpy(f->path, path, len);
    *ret = f;
    return RQ_OK;
}

static rq_err open_locked(memory_vfs *v, const char *path, int flags, memory_file **ret,
                          rq_error *why)
{
    node *n = walk(v, path, strlen(path));
    if (n != NULL && n->is_dir) return rq_fail(why, RQ_E_CORRUPT, "cannot open %s: a folder", path);
    if (n != NULL && (flags & RQ_OPEN_EXCL) != 0)
        return rq_fail(why, RQ_E_EXISTS, "cannot create %s: it exists", path);
    if (n == NULL && (flags & RQ_OPEN_CREATE) == 0)
        return rq_fail(why, RQ_E_NOT_FOUND, "cannot open %s: not found", path);
    if (n == NULL) RQ_TRY(create(v, path, false, &n, why));
    return file_new(v, n, path, ret, why);
}

static rq_err memory_open(rq_vfs *base, const char *path, int flags, rq_file **ret, rq_error *why)
{
    memory_vfs *v = (memory_vfs *)base;
    memory_file *f = NULL;
    pthread_mutex_lock(&v->lock);
    rq_err rc = open_locked(v, path, flags, &f, why);
    pthread_mutex_unlock(&v->lock);
    if (rc == RQ_OK) *ret = &f->base;
    return rc;
}

static rq_err memory_close(rq_file *base)
{
    memory_file *f = (memory_file *)base;
    memory_vfs *v = (memory_vfs *)base->vfs;
    pthread_mutex_lock(&v->lock);
    if (f->holds_lock) f->node->locked = false;
    node_unref(f->node);
    pthread_mutex_unlock(&v->lock);
    free(f);
    return RQ_OK;
}

static rq_err memory_try_read(rq_file *base, void *buf, size_t len, uint64_t off, size_t *ret_len)
{
    node *n = ((memory_file *)base)->node;
    uint8_t *to = buf;
    pthread_rwlock_rdlock(&n->bytes);
    if (off >= n->size) len = 0;
    if (len > n->size - off) len = (size_t)(n->size - off);
    for (size_t done = 0; done < len;) {
        size_t at = (size_t)(off + done) / CHUNK, in = (size_t)(off + done) % CHUNK;
        size_t part = CHUNK - in < len - done ? CHUNK - in : len - done;
        if (at < n->chunk_count && n->chunks[at] != NULL)
            memcpy(to + done, n->chunks[at] + in, part);
        else
            memset(to + done, 0, part);
        done += part;
    }
    pthread_rwlock_unlock(&n->bytes);
    *ret_len = len;
    return RQ_OK;
}

static rq_err memory_read(rq_file *base, void *buf, size_t len, uint64_t off, size_t *ret_len,
                          rq_error *why)
{
    (void)why;
    return memory_try_read(base, buf, len, off, ret_len);
}

static rq_err reserve(node *n, uint64_t size)
{
    size_t count = (size_t)((size + CHUNK - 1) / CHUNK);
    if (count <= n->chunk_count) return RQ_OK;
    size_t cap = 2 * n->chunk_count > count ? 2 * n->chunk_count : count;
    uint8_t **chunks = realloc(n->chunks, cap * sizeof *chunks);
    if (chunks == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = n->chunk_count; i < cap; i++)
        chunks[i] = NULL;
    n->chunks = chunks;
    n->chunk_count = cap;
    return RQ_OK;
}

static bool is_zero(const uint8_t *bytes, size_t len)
{
    return len == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0);
}

static rq_err write_locked(node *n, const uint8_t *from, size_t len, uint64_t off)
{
    RQ_TRY(reserve(n, off + len));
    for (size_t done = 0; done < len;) {
        size_t at = (size_t)(off + done) / CHUNK, in = (size_t)(off + done) % CHUNK;
        size_t part = CHUNK - in < len - done ? CHUNK - in : len - done;
        if (n->chunks[at] == NULL && !is_zero(from + done, part) &&
            (n->chunks[at] = calloc(1, CHUNK)) == NULL)
            return RQ_E_NO_MEMORY;
        if (n->chunks[at] != NULL) memcpy(n->chunks[at] + in, from + done, part);
        done += part;
    }
    if (off + len > n->size) n->size = off + len;
    n->written_ns = (int64_t)rq_clock_ns(CLOCK_REALTIME);
    return RQ_OK;
}

/* Memory is this disk's space. */
static rq_err no_space(rq_err rc, const char *path, rq_error *why)
{
    return rc == RQ_OK ? RQ_OK
                       : rq_fail(why, RQ_E_NO_SPACE, "cannot write %s: out of memory", path);
}

static rq_err memory_write(rq_file *base, const void *buf, size_t len, uint64_t off, rq_error *why)
{
    memory_file *f = (memory_file *)base;
    if (len == 0) return RQ_OK;
    pthread_rwlock_wrlock(&f->node->bytes);
    rq_err rc = write_locked(f->node, buf, len, off);
    pthread_rwlock_unlock(&f->node->bytes);
    return no_space(rc, f->path, why);
}

static rq_err memory_sync(rq_file *base, rq_error *why)
{
    (void)base, (void)why;
    return RQ_OK;
}

static rq_err memory_truncate(rq_file *base, uint64_t size, rq_error *why)
{
    memory_file *f = (memory_file *)base;
    node *n = f->node;
    pthread_rwlock_wrlock(&n->bytes);
    rq_err rc = reserve(n, size);
    if (rc == RQ_OK) {
        size_t at = (size_t)(size / CHUNK), in = (size_t)(size % CHUNK);
        if (size < n->size && at < n->chunk_count && n->chunks[at] != NULL)
            memset(n->chunks[at] + in, 0, CHUNK - in);
        if (size < n->size) drop_chunks(n, in == 0 ? at : at + 1);
        n->size = size;
        n->written_ns = (int64_t)rq_clock_ns(CLOCK_REALTIME);
    }
    pthread_rwlock_unlock(&n->bytes);
    return no_space(rc, f->path, why);
}

static rq_err memory_size(rq_file *base, uint64_t *ret, rq_error *why)
{
    node *n = ((memory_file *)base)->node;
    (void)why;
    pthread_rwlock_rdlock(&n->bytes);
    *ret = n->size;
    pthread_rwlock_unlock(&n->bytes);
    return RQ_OK;
}

static rq_err memory_identify(rq_file *base, rq_file_id *ret, rq_error *why)
{
    node *n = ((memory_file *)base)->node;
    (void)why;
    pthread_rwlock_rdlock(&n->bytes);
    *ret = (rq_file_id){.device = (uintptr_t)base->vfs,
                        .inode = (uintptr_t)n,
                        .size = n->size,
                        .written_ns = n->written_ns,
                        .changed_ns = n->written_ns};
    pthread_rwlock_unlock(&n->bytes);
    return RQ_OK;
}

/* --- names ------------------------------------------------------------------------------------ */

static rq_err memory_stat(rq_vfs *base, const char *path, rq_stat *ret, rq_error *why)
{
    memory_vfs *v = (memory_vfs *)base;
    pthread_mutex_lock(&v->lock);
    node *n = walk(v, path, strlen(path));
    if (n != NULL) {
        pthread_rwlock_rdlock(&n->bytes);
        *ret = (rq_stat){.size = n->size, .mtime_ms = n->written_ns / 1000000, .is_dir = n->is_dir};
        pthread_rwlock_unlock(&n->bytes);
    }
    pthread_mutex_unlock(&v->lock);
    return n != NULL ? RQ_OK : rq_fail(why, RQ_E_NOT_FOUND, "cannot stat %s: not found", path);
}

static rq_err list_locked(const memory_vfs *v, const char *dir, rq_arena *arena, rq_dir_entry **ret,
                          size_t *ret_count, rq_error *why)
{
    const node *n = walk(v, dir, strlen(dir));
    if (n == NULL || !n->is_dir)
        return rq_fail(why, RQ_E_NOT_FOUND, "cannot list %s: no folder", dir);
    size_t count = 0;
    for (const entry *e = n->entries; e != NULL; e = e->next)
        count++;
    rq_dir_entry *list = rq_arena_calloc(arena, count + 1, sizeof *list);
    if (list == NULL) return rq_no_memory(why);
    size_t i = 0;
    for (const entry *e = n->entries; e != NULL; e = e->next, i++) {
        list[i].name = rq_arena_cstr(arena, rq_slice_cstr(e->name));
        list[i].is_dir = e->node->is_dir;
        if (list[i].name == NULL) return rq_no_memory(why);
    }
    *ret = list;
    *ret_count = count;
    return RQ_OK;
}

static rq_err memory_list(rq_vfs *base, const char *dir, rq_arena *arena, rq_dir_entry **ret,
                          size_t *ret_count, rq_error *why)
{
    memory_vfs *v = (memory_vfs *)base;
    pthread_mutex_lock(&v->lock);
    rq_err rc = list_locked(v, dir, arena, ret, ret_count, why);
    pthread_mutex_unlock(&v->lock);
    return rc;
}

static rq_err memory_mkdir(rq_vfs *base, const char *path, rq_error *why)
{
    memory_vfs *v = (memory_vfs *)base;
    node *n;
    pthread_mutex_lock(&v->lock);
    rq_err rc = create(v, path, true, &n, why);
    pthread_mutex_unlock(&v->lock);
    return rc;
}

/* inode 0: any. */
static rq_err remove_locked(memory_vfs *v, const char *path, uint64_t inode, rq_error *why)
{
    const char *name;
    node *parent = walk_parent(v, path, &name);
    entry **at = parent == NULL ? NULL : find(parent, name, strlen(name));
    if (at == NULL || *at == NULL)
        return rq_fail(why, RQ_E_NOT_FOUND, "cannot remove %s: not found", path);
    entry *e = *at;
    if (inode != 0 && (uintptr_t)e->node != inode)
        return rq_fail(why, RQ_E_CONFLICT, "cannot remove %s: it is another file now", path);
    if (e->node->is_dir && e->node->entries != NULL)
        return rq_fail(why, RQ_E_EXISTS, "cannot remove %s: not empty", path);
    *at = e->next;
    node_unref(e->node);
    free(e);
    return RQ_OK;
}

static rq_err memory_remove(rq_vfs *base, const char *path, rq_error *why)
{
    memory_vfs *v = (memory_vfs *)base;
    pthread_mutex_lock(&v->lock);
    rq_err rc = remove_locked(v, path, 0, why);
    pthread_mutex_unlock(&v->lock);
    return rc;
}

static rq_err memory_remove_file(rq_vfs *base, const char *path, const rq_file_id *id,
                                 rq_error *why)
{
    memory_vfs *v = (memory_vfs *)base;
    pthread_mutex_lock(&v->lock);
    rq_err rc = remove_locked(v, path, id->inode, why);
    pthread_mutex_unlock(&v->lock);
    return rc;
}

static rq_err link_locked(memory_vfs *v, node *n, const char *to, rq_error *why)
{
    const char *name;
    node *parent = walk_parent(v, to, &name);
    if (n == NULL || parent == NULL)
        return rq_fail(why, RQ_E_NOT_FOUND, "cannot link %s: not found", to);
    if (n->is_dir) return rq_fail(why, RQ_E_PERMISSION, "cannot link %s: of a folder", to);
    if (*find(parent, name, strlen(name)) != NULL)
        return rq_fail(why, RQ_E_EXISTS, "cannot link %s: it exists", to);
    if (add_entry(parent, name, n) != RQ_OK) return rq_no_memory(why);
    n->refs++;
    return RQ_OK;
}

static rq_err memory_link(rq_vfs *base, const char *from, const char *to, rq_error *why)
{
    memory_vfs *v = (memory_vfs *)base;
    pthread_mutex_lock(&v->lock);
    rq_err rc = link_locked(v, walk(v, from, strlen(from)), to, why);
    pthread_mutex_unlock(&v->lock);
    return rc;
}

static rq_err memory_link_file(rq_file *base, rq_vfs *to, const char *path, rq_error *why)
{
    memory_vfs *v = (memory_vfs *)to;
    if (base->vfs != to)
        return rq_fail(why, RQ_E_UNSUPPORTED, "cannot link %s: of another vfs", path);
    pthread_mutex_lock(&v->lock);
    rq_err rc = link_locked(v, ((memory_file *)base)->node, path, why);
    pthread_mutex_unlock(&v->lock);
    return rc;
}

static rq_err memory_sync_all(rq_vfs *base, rq_error *why)
{
    (void)base;
    (void)why;
    return RQ_OK;
}

static rq_err memory_sync_dir(rq_vfs *base, const char *dir, rq_error *why)
{
    memory_vfs *v = (memory_vfs *)base;
    pthread_mutex_lock(&v->lock);
    const node *n = walk(v, dir, strlen(dir));
    pthread_mutex_unlock(&v->lock);
    if (n != NULL && n->is_dir) return RQ_OK;
    return rq_fail(why, RQ_E_NOT_FOUND, "cannot sync %s: no folder", dir);
}

static rq_err lock_locked(memory_vfs *v, const char *path, memory_file **ret, rq_error *why)
{
    node *n = walk(v, path, strlen(path));
    if (n == NULL) RQ_TRY(create(v, path, false, &n, why));
    if (n->locked) return rq_fail(why, RQ_E_LOCKED, "%s is locked", path);
    RQ_TRY(file_new(v, n, path, ret, why));
    (*ret)->holds_lock = n->locked = true;
    return RQ_OK;
}

static rq_err memory_lock(rq_vfs *base, const char *path, rq_file **ret, rq_error *why)
{
    memory_vfs *v = (memory_vfs *)base;
    memory_file *f = NULL;
    pthread_mutex_lock(&v->lock);
    rq_err rc = lock_locked(v, path == NULL ? "" : path, &f, why);
    pthread_mutex_unlock(&v->lock);
    if (rc == RQ_OK) *ret = &f->base;
    return rc;
}

/* --- life ------------------------------------------------------------------------------------- */

static void memory_free(rq_vfs *base)
{
    memory_vfs *v = (memory_vfs *)base;
    node_unref(v->root);
    pthread_mutex_destroy(&v->lock);
    free(v);
}

rq_err rq_vfs_memory_new(rq_vfs **ret)
{
    memory_vfs *v = calloc(1, sizeof *v);
    if (v == NULL) return RQ_E_NO_MEMORY;
    v->root = node_new(true);
    if (v->root == NULL) {
        free(v);
        return RQ_E_NO_MEMORY;
    }
    pthread_mutex_init(&v->lock, NULL);
    v->base = (rq_vfs){
        .open = memory_open,
        .close = memory_close,
        .read = memory_read,
        .try_read = memory_try_read,
        .write = memory_write,
        .sync = memory_sync,
        .truncate = memory_truncate,
        .size = memory_size,
        .stat = memory_stat,
        .list = memory_list,
        .mkdir = memory_mkdir,
        .remove = memory_remove,
        .link = memory_link,
        .sync_dir = memory_sync_dir,
        .sync_all = memory_sync_all,
        .lock = memory_lock,
        .identify = memory_identify,
        .link_file = memory_link_file,
        .remove_file = memory_remove_file,
        .free = memory_free,
    };
    *ret = &v->base;
    return RQ_OK;
}
