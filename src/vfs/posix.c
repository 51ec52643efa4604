/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Storage on a local folder. Every name is opened relative to the root's descriptor, so the server
 * keeps its folder even if somebody moves it.
 *
 * fdatasync is enough for files: it makes the length durable where the bytes need it. Folders are
 * made durable by fsync on the folder. Writes and reads go on after partial counts and EINTR; a
 * failed fdatasync is reported and never tried again on that file (the kernel forgets which pages
 * it lost: a second call would succeed and mean nothing).
 */
#include "vfs/vfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* A sync that was put off (rq_vfs_defer). */
typedef struct deferred {
    struct deferred *next;
    bool is_dir;
    char path[];
} deferred;

typedef struct posix_vfs {
    rq_vfs base;
    int root;
    char *root_path; /* for messages */
    pthread_mutex_t lock;
    bool deferring RQ_GUARDED_BY(lock);
    deferred *deferred RQ_GUARDED_BY(lock);
} posix_vfs;

typedef struct posix_file {
    rq_file base;
    int fd;
    char path[]; /* for messages */
} posix_file;

static rq_err code_of(int e)
{
    switch (e) {
    case ENOENT:
        return RQ_E_NOT_FOUND;
    case ENOTDIR:
        return RQ_E_NOT_FOUND;
    case EEXIST:
        return RQ_E_EXISTS;
    case ENOTEMPTY:
        return RQ_E_EXISTS;
    case ENOSPC:
        return RQ_E_NO_SPACE;
    case EDQUOT:
        return RQ_E_NO_SPACE;
    case EFBIG:
        return RQ_E_NO_SPACE;
    case EACCES:
        return RQ_E_PERMISSION;
    case EPERM:
        return RQ_E_PERMISSION;
    case EROFS:
        return RQ_E_PERMISSION;
    case ENOMEM:
        return RQ_E_NO_MEMORY;
    default:
        return RQ_E_IO;
    }
}

static rq_err fail_errno(rq_error *why, int e, const char *verb, const posix_vfs *v,
                         const char *path)
{
    char text[128];
    return rq_fail(why, code_of(e), "cannot %s %s%s%s: %s", verb, v->root_path,
                   path[0] == '\0' ? "" : "/", path, strerror_r(e, text, sizeof text));
}

static rq_err fail_file(rq_error *why, int e, const char *verb, const posix_file *f)
{
    return fail_errno(why, e, verb, (const posix_vfs *)f->base.vfs, f->path);
}

/* openat's name for a folder that may be the root itself. */
static const char *dir_name(const char *path)
{
    return path[0] == '\0' ? "." : path;
}

/* --- files -------------------------------------------------------------------------------- */

static rq_err file_new(posix_vfs *v, const char *path, int fd, rq_file **ret, rq_error *why)
{
    size_t len = strlen(path) + 1;
    posix_file *f = malloc(sizeof *f + len);
    if (f == NULL) {
        close(fd);
        return rq_fail(why, RQ_E_NO_MEMORY, "cannot open %s: out of memory", path);
    }
    f->base.vfs = &v->base;
    f->fd = fd;
    memcpy(f->path, path, len);
    *ret = &f->base;
    return RQ_OK;
}

static rq_err posix_open(rq_vfs *base, const char *path, int flags, rq_file **ret, rq_error *why)
{
    posix_vfs *v = (posix_vfs *)base;
    int how = O_CLOEXEC | ((flags & RQ_OPEN_WRITE) != 0 ? O_RDWR : O_RDONLY);
    if ((flags & RQ_OPEN_CREATE) != 0) how |= O_CREAT;
    if ((flags & RQ_OPEN_EXCL) != 0) how |= O_EXCL;
    int fd;
    do
        fd = openat(v->root, path, how, 0644);
    while (fd < 0 && errno == EINTR);
    if (fd < 0) return fail_errno(why, errno, "open", v, path);
    if ((flags & RQ_OPEN_RANDOM) != 0) (void)posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    return file_new(v, path, fd, ret, why);
}

static rq_err posix_close(rq_file *base)
{
    posix_file *f = (posix_file *)base;
    int rc = close(f->fd);
    int e = errno;
    free(f);
    return rc == 0 || e == EINTR ? RQ_OK : code_of(e);
}

static rq_err posix_read(rq_file *base, void *buf, size_t len, uint64_t off, size_t *ret_len,
                         rq_error *why)
{
    posix_file *f = (posix_file *)base;
    size_t done = 0;
    while (done < len) {
        ssize_t n = pread(f->fd, (uint8_t *)buf + done, len - done, (off_t)(off + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_file(why, errno, "read", f);
        if (n == 0) break;
        done += (size_t)n;
    }
    *ret_len = done;
    return RQ_OK;
}

static rq_err posix_try_read(rq_file *base, void *buf, size_t len, uint64_t off, size_t *ret_len)
{
    posix_file *f = (posix_file *)base;
    struct iovec part = {buf, len};
    ssize_t n = preadv2(f->fd, &part, 1, (off_t)off, RWF_NOWAIT);
    if (n < 0) {
        if (errno == EAGAIN || errno == EOPNOTSUPP || errno == EINTR) return RQ_E_AGAIN;
        return code_of(errno);
    }
    if ((size_t)n < len) {
        /* A part is cached only, or the file ends here. */
        struct stat st;
        if (fstat(f->fd, &st) != 0) return code_of(errno);
        if (off + (uint64_t)n < (uint64_t)st.st_size) return RQ_E_AGAIN;
    }
    *ret_len = (size_t)n;
    return RQ_OK;
}

static void posix_drop_behind(rq_file *base, uint64_t off, uint64_t len)
{
    posix_file *f = (posix_file *)base;
    (void)posix_fadvise(f->fd, (off_t)off, (off_t)len, POSIX_FADV_DONTNEED);
}

static rq_err posix_write(rq_file *base, const void *buf, size_t len, uint64_t off, rq_error *why)
{
    posix_file *f = (posix_file *)base;
    size_t done = 0;
    while (done < len) {
        ssize_t n = pwrite(f->fd, (const uint8_t *)buf + done, len - done, (off_t)(off + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_file(why, errno, "write", f);
        if (n == 0) return fail_file(why, EIO, "write", f);
        done += (size_t)n;
    }
    return RQ_OK;
}

/* True: remembered (once for each path), or *ret_rc says why not. */
static bool put_off(posix_vfs *v, const char *path, bool is_dir, rq_err *ret_rc)
{
    pthread_mutex_lock(&v->lock);
    bool deferring = v->deferring;
    deferred *d = v->deferred;
    *ret_rc = RQ_OK;
    while (deferring && d != NULL && strcmp(d->path, path) != 0)
        d = d->next;
    if (deferring && d == NULL) {
        d = malloc(sizeof *d + strlen(path) + 1);
        if (d == NULL) {
            *ret_rc = RQ_E_NO_MEMORY;
        } else {
            d->next = v->deferred;
            d->is_dir = is_dir;
            strcpy(d->path, path);
            v->deferred = d;
        }
    }
    pthread_mutex_unlock(&v->lock);
    return deferring;
}

static rq_err posix_sync(rq_file *base, rq_error *why)
{
    posix_file *f = (posix_file *)base;
    rq_err rc;
    if (put_off((posix_vfs *)base->vfs, f->path, false, &rc)) return rc;
    if (fdatasync(f->fd) != 0) return fail_file(why, errno, "sync", f);
    return RQ_OK;
}

static rq_err posix_truncate(rq_file *base, uint64_t size, rq_error *why)
{
    posix_file *f = (posix_file *)base;
    int rc;
    do
        rc = ftruncate(f->fd, (off_t)size);
    while (rc != 0 && errno == EINTR);
    return rc == 0 ? RQ_OK : fail_file(why, errno, "truncate", f);
}

static rq_err posix_size(rq_file *base, uint64_t *ret, rq_error *why)
{
    posix_file *f = (posix_file *)base;
    struct stat st;
    if (fstat(f->fd, &st) != 0) return fail_file(why, errno, "stat", f);
    *ret = (uint64_t)st.st_size;
    return RQ_OK;
}

/* --- names -------------------------------------------------------------------------------- */

static rq_err posix_stat(rq_vfs *base, const char *path, rq_stat *ret, rq_error *why)
{
    posix_vfs *v = (posix_vfs *)base;
    struct stat st;
    if (fstatat(v->root, dir_name(path), &st, 0) != 0)
        return fail_errno(why, errno, "stat", v, path);
    ret->size = (uint64_t)st.st_size;
    ret->mtime_ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
    ret->is_dir = S_ISDIR(st.st_mode);
    return RQ_OK;
}

static bool entry_is_dir(int dir, const struct dirent *d)
{
    if (d->d_type == DT_DIR) return true;
    if (d->d_type != DT_UNKNOWN && d->d_type != DT_LNK) return false;
    struct stat st;
    return fstatat(dir, d->d_name, &st, 0) == 0 && S_ISDIR(st.st_mode);
}

static bool entry_is_link(int dir, const struct dirent *d)
{
    if (d->d_type != DT_UNKNOWN) return d->d_type == DT_LNK;
    struct stat st;
    return fstatat(dir, d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

typedef struct entry_list {
    rq_arena *arena;
    rq_dir_entry *ptr;
    size_t count;
    size_t cap;
} entry_list;

static bool entry_add(entry_list *l, const char *name, bool is_dir, bool is_link)
{
    if (l->count == l->cap) {
        size_t cap = l->cap == 0 ? 16 : l->cap * 2;
        rq_dir_entry *more = rq_arena_calloc(l->arena, cap, sizeof *more);
        if (more == NULL) return false;
        if (l->count > 0) memcpy(more, l->ptr, l->count * sizeof *more);
        l->ptr = more;
        l->cap = cap;
    }
    char *copy = rq_arena_cstr(l->arena, rq_slice_cstr(name));
    if (copy == NULL) return false;
    l->ptr[l->count++] = (rq_dir_entry){.name = copy, .is_dir = is_dir, .is_link = is_link};
    return true;
}

static rq_err posix_list(rq_vfs *base, const char *dir, rq_arena *arena, rq_dir_entry **ret,
                         size_t *ret_count, rq_error *why)
{
    posix_vfs *v = (posix_vfs *)base;
    int fd = openat(v->root, dir_name(dir), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return fail_errno(why, errno, "list", v, dir);
    DIR *d = fdopendir(fd);
    if (d == NULL) {
        int e = errno;
        close(fd);
        return fail_errno(why, e, "list", v, dir);
    }
    entry_list entries = {.arena = arena};
    rq_err rc = RQ_OK;
    while (rc == RQ_OK) {
        errno = 0;
        const struct dirent *e = readdir(d);
        if (e == NULL) {
            if (errno != 0) rc = fail_errno(why, errno, "list", v, dir);
            break;
        }
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        if (!entry_add(&entries, e->d_name, entry_is_dir(dirfd(d), e), entry_is_link(dirfd(d), e)))
            rc = rq_fail(why, RQ_E_NO_MEMORY, "cannot list %s: out of memory", dir);
    }
    closedir(d);
    if (rc != RQ_OK) return rc;
    *ret = entries.ptr;
    *ret_count = entries.count;
    return RQ_OK;
}

static rq_err posix_mkdir(rq_vfs *base, const char *path, rq_error *why)
{
    posix_vfs *v = (posix_vfs *)base;
    if (mkdirat(v->root, path, 0755) != 0) return fail_errno(why, errno, "make folder", v, path);
    return RQ_OK;
}

static rq_err posix_remove(rq_vfs *base, const char *path, rq_error *why)
{
    posix_vfs *v = (posix_vfs *)base;
    if (unlinkat(v->root, path, 0) == 0) return RQ_OK;
    if (errno == EISDIR && unlinkat(v->root, path, AT_REMOVEDIR) == 0) return RQ_OK;
    return fail_errno(why, errno, "remove", v, path);
}

static rq_err posix_link(rq_vfs *base, const char *from, const char *to, rq_error *why)
{
    posix_vfs *v = (posix_vfs *)base;
    if (linkat(v->root, from, v->root, to, 0) != 0) return fail_errno(why, errno, "link", v, to);
    return RQ_OK;
}

static rq_err posix_sync_dir(rq_vfs *base, const char *dir, rq_error *why)
{
    posix_vfs *v = (posix_vfs *)base;
    rq_err rc;
    if (put_off(v, dir, true, &rc)) return rc;
    int fd = openat(v->root, dir_name(dir), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return fail_errno(why, errno, "sync folder", v, dir);
    /* Some network file systems know no fsync for folders; their names are durable at once. */
    if (fsync(fd) != 0 && errno != EINVAL) rc = fail_errno(why, errno, "sync folder", v, dir);
    close(fd);
    return rc;
}

/* What was removed since needs no sync: its folder has one. */
static rq_err sync_deferred(posix_vfs *v, const deferred *d, rq_error *why)
{
    if (d->is_dir) {
        rq_error detail = {.code = RQ_OK};
        rq_err rc = posix_sync_dir(&v->base, d->path, &detail);
        return rc == RQ_OK || rc == RQ_E_NOT_FOUND ? RQ_OK : rq_fail(why, rc, "%s", detail.message);
    }
    int fd = openat(v->root, d->path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return errno == ENOENT ? RQ_OK : fail_errno(why, errno, "sync", v, d->path);
    rq_err rc = fdatasync(fd) == 0 ? RQ_OK : fail_errno(why, errno, "sync", v, d->path);
    close(fd);
    return rc;
}

static rq_err posix_defer(rq_vfs *base, bool on, rq_error *why)
{
    posix_vfs *v = (posix_vfs *)base;
    pthread_mutex_lock(&v->lock);
    deferred *list = on ? NULL : v->deferred;
    v->deferring = on;
    if (!on) v->deferred = NULL;
    pthread_mutex_unlock(&v->lock);
    rq_err rc = RQ_OK;
    for (int dirs = 0; dirs < 2; dirs++)
        for (const deferred *d = list; d != NULL; d = d->next)
            if (rc == RQ_OK && d->is_dir == (dirs == 1)) rc = sync_deferred(v, d, why);
    while (list != NULL) {
        deferred *next = list->next;
        free(list);
        list = next;
    }
    return rc;
}

/* --- the lock ----------------------------------------------------------------------------- */

/* The process id in the lock file, for a message only. */
static long lock_holder(int fd)
{
    char text[24] = {0};
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    return n > 0 ? strtol(text, NULL, 10) : 0;
}

/* An open file description lock: it belongs to this open file and not to the process, so that two
 * servers in one process exclude each other too. */
static rq_err posix_lock(rq_vfs *base, const char *path, rq_file **ret, rq_error *why)
{
    posix_vfs *v = (posix_vfs *)base;
    int fd = openat(v->root, path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) return fail_errno(why, errno, "lock", v, path);
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_SETLK, &all) != 0) {
        int e = errno;
        long holder = lock_holder(fd);
        close(fd);
        if (e != EAGAIN && e != EACCES) return fail_errno(why, e, "lock", v, path);
        if (holder > 0)
            return rq_fail(why, RQ_E_LOCKED, "%s is in use by process %ld (%s)", v->root_path,
                           holder, path);
        return rq_fail(why, RQ_E_LOCKED, "%s is in use by another process (%s)", v->root_path,
                       path);
    }
    char text[24];
    int len = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)len, 0) != len) {
        int e = errno;
        close(fd);
        return fail_errno(why, e, "write lock", v, path);
    }
    return file_new(v, path, fd, ret, why);
}

/* --- the vfs ------------------------------------------------------------------------------ */

static void posix_free(rq_vfs *base)
{
    posix_vfs *v = (posix_vfs *)base;
    while (v->deferred != NULL) { /* a layout that was given up */
        deferred *next = v->deferred->next;
        free(v->deferred);
        v->deferred = next;
    }
    pthread_mutex_destroy(&v->lock);
    close(v->root);
    free(v->root_path);
    free(v);
}

rq_err rq_vfs_posix_new(const char *root, rq_vfs **ret, rq_error *why)
{
    posix_vfs *v = calloc(1, sizeof *v);
    char *path = strdup(root);
    if (v == NULL || path == NULL) {
        free(v);
        free(path);
        return rq_fail(why, RQ_E_NO_MEMORY, "out of memory");
    }
    v->base = (rq_vfs){
        .open = posix_open,
        .close = posix_close,
        .read = posix_read,
        .try_read = posix_try_read,
        .drop_behind = posix_drop_behind,
        .write = posix_write,
        .sync = posix_sync,
        .truncate = posix_truncate,
        .size = posix_size,
        .stat = posix_stat,
        .list = posix_list,
        .mkdir = posix_mkdir,
        .remove = posix_remove,
        .link = posix_link,
        .sync_dir = posix_sync_dir,
        .lock = posix_lock,
        .defer = posix_defer,
        .free = posix_free,
    };
    v->root_path = path;
    pthread_mutex_init(&v->lock, NULL);
    v->root = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (v->root < 0) {
        rq_err rc = fail_errno(why, errno, "open", v, "");
        free(path);
        free(v);
        return rc;
    }
    *ret = &v->base;
    return RQ_OK;
}
