/* SPDX-License-Identifier: Apache-2.0 */
/* Storage in a local folder. Every name is opened relative to the root's descriptor, so the server
 * keeps its folder even if it is moved.
 *
 * fdatasync is enough for files: it makes the length durable where it is needed to read the bytes.
 * Folders are made durable by fsync on the folder. Writes and reads continue after partial counts
 * and EINTR. A failed fdatasync is reported and never repeated on that file: the kernel forgets
 * which pages it lost, so a second call would succeed without making them durable. */
#include "vfs/vfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "vfs/posix_priv.h"
#include "vfs/reads_priv.h"
#include "vfs/vfs_priv.h"

#define FOLDER_MODE 0700

/* A deferred sync (rq_vfs_defer). */
typedef struct deferred {
    struct deferred *next;
    bool is_dir;
    char path[];
} deferred;

typedef struct posix_vfs {
    rq_vfs base;
    int root;
    char *root_path; /* for messages */
    mode_t folder_mode;
    rq_vfs_slow slow;
    void *slow_ctx;
    _Atomic uint64_t slow_ns;
    rq__cached cached;
    rq__direct_count direct;
    int sequence_advice; /* for files that are read in sequence */
    pthread_mutex_t lock;
    bool deferring RQ_GUARDED_BY(lock);
    deferred *deferred RQ_GUARDED_BY(lock);
} posix_vfs;

typedef struct posix_file {
    rq_file base;
    int fd;
    uint64_t opened_size;
    int root_lock; /* of a lock: the descriptor that locks the root; otherwise -1 */
    bool is_lock;
    bool is_random;     /* opened with RQ_OPEN_RANDOM */
    _Atomic int wanted; /* advice (POSIX_FADV_…) that the next read gives to the kernel */
    _Atomic int given;  /* advice that the kernel has */
    rq__direct direct;
    rq__held held; /* of a lock */
    char path[];   /* for messages */
} posix_file;

static rq_err fail_errno(rq_error *why, int e, const char *verb, const posix_vfs *v,
                         const char *path)
{
    char text[128];
    return rq_fail(why, rq__errno_code(e), "cannot %s %s%s%s: %s", verb, v->root_path,
                   path[0] == '\0' ? "" : "/", path, strerror_r(e, text, sizeof text));
}

static rq_err fail_file(rq_error *why, int e, const char *verb, const posix_file *f)
{
    return fail_errno(why, e, verb, (const posix_vfs *)f->base.vfs, f->path);
}

/* The name for openat; the folder may be the root itself. */
static const char *dir_name(const char *path)
{
    return path[0] == '\0' ? "." : path;
}

/* --- files -------------------------------------------------------------------------------- */

static rq_err file_new(posix_vfs *v, const char *path, int fd, uint64_t size, rq_file **ret,
                       rq_error *why)
{
    size_t len = strlen(path) + 1;
    posix_file *f = malloc(sizeof *f + len);
    if (f == NULL) {
        close(fd);
        return rq_fail(why, RQ_E_NO_MEMORY, "cannot open %s: out of memory", path);
    }
    f->base.vfs = &v->base;
    f->fd = fd;
    f->opened_size = size;
    f->root_lock = -1;
    f->is_lock = false;
    f->is_random = false;
    atomic_init(&f->wanted, POSIX_FADV_NORMAL);
    atomic_init(&f->given, POSIX_FADV_NORMAL);
    rq__direct_init(&f->direct);
    memcpy(f->path, path, len);
    *ret = &f->base;
    return RQ_OK;
}

static mode_t file_mode(const posix_vfs *v)
{
    return v->folder_mode & 0666;
}

/* Checked on the descriptor, because the name may refer to another file by now. */
static rq_err check_regular(const posix_vfs *v, const char *path, int fd, uint64_t *ret_size,
                            rq_error *why)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return fail_errno(why, errno, "stat", v, path);
    *ret_size = (uint64_t)st.st_size;
    if (S_ISREG(st.st_mode)) return RQ_OK;
    return rq_fail(why, RQ_E_CORRUPT, "cannot open %s/%s: %s, not a regular file", v->root_path,
                   path, rq__file_kind(st.st_mode));
}

/* Without O_NONBLOCK, opening a FIFO would wait for its other end; it has no effect on regular
 * files. */
static int open_flags(int flags)
{
    int how = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    how |= (flags & RQ_OPEN_WRITE) != 0 ? O_RDWR : O_RDONLY;
    if ((flags & RQ_OPEN_CREATE) != 0) how |= O_CREAT;
    if ((flags & RQ_OPEN_EXCL) != 0) how |= O_EXCL;
    return how;
}

static rq_err fail_beneath(rq_error *why, int e, const char *verb, const posix_vfs *v,
                           const char *path)
{
    if (e == ELOOP || e == EXDEV)
        return rq_fail(why, RQ_E_PERMISSION, "cannot %s %s/%s: symbolic links are not followed",
                       verb, v->root_path, path);
    return fail_errno(why, e, verb, v, path);
}

static rq_err posix_open(rq_vfs *base, const char *path, int flags, rq_file **ret, rq_error *why)
{
    posix_vfs *v = (posix_vfs *)base;
    bool beneath = (flags & RQ_OPEN_BENEATH) != 0;
    int how = open_flags(flags);
    int fd;
    do
        fd = beneath ? rq__open_beneath(v->root, path, how, file_mode(v))
                     : openat(v->root, path, how, file_mode(v));
    while (fd < 0 && errno == EINTR);
    if (fd < 0) return (beneath ? fail_beneath : fail_errno)(why, errno, "open", v, path);
    uint64_t size;
    rq_err rc = check_regular(v, path, fd, &size, why);
    if (rc != RQ_OK) {
        close(fd);
        return rc;
    }
    RQ_TRY(file_new(v, path, fd, size, ret, why));
    posix_file *f = (posix_file *)*ret;
    if ((flags & RQ_OPEN_RANDOM) != 0) atomic_init(&f->wanted, POSIX_FADV_RANDOM);
    /* A file that is also written could be read past the bytes that are on the device. */
    f->is_random = (flags & (RQ_OPEN_RANDOM | RQ_OPEN_WRITE)) == RQ_OPEN_RANDOM;
    return RQ_OK;
}

static rq_err close_lock(posix_file *f);

static rq_err posix_close(rq_file *base)
{
    posix_file *f = (posix_file *)base;
    if (f->is_lock) return close_lock(f);
    rq__direct_clear(&f->direct, &((posix_vfs *)base->vfs)->direct);
    int rc = close(f->fd);
    int e = errno;
    free(f);
    return rc == 0 || e == EINTR ? RQ_OK : rq__errno_code(e);
}

/* If two threads give different advice at the same time, the kernel may keep the older advice until the next change.
 * Then reads are slower, but not wrong. */
static int give_advice(posix_file *f)
{
    int wanted = atomic_load_explicit(&f->wanted, memory_order_relaxed);
    if (RQ_LIKELY(wanted == atomic_load_explicit(&f->given, memory_order_relaxed))) return wanted;
    atomic_store_explicit(&f->given, wanted, memory_order_relaxed);
    (void)posix_fadvise(f->fd, 0, 0, wanted);
    return wanted;
}

static bool read_past_cache(posix_file *f, void *buf, size_t len, uint64_t off)
{
    posix_vfs *v = (posix_vfs *)f->base.vfs;
    const rq__direct_file file = {&v->direct, v->root, f->path, f->fd};
    return rq__direct_read(&f->direct, &file, buf, len, off);
}

static rq_err read_by_cache(posix_file *f, void *buf, size_t len, uint64_t off, size_t *ret_len,
                            rq_error *why)
{
    posix_vfs *v = (posix_vfs *)f->base.vfs;
    size_t done = 0;
    while (done < len) {
        ssize_t n = pread(f->fd, (uint8_t *)buf + done, len - done, (off_t)(off + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_file(why, errno, "read", f);
        if (n == 0) break;
        done += (size_t)n;
    }
    rq__cached_learn(&v->cached, f->fd, off, done);
    *ret_len = done;
    return RQ_OK;
}

static rq_err posix_read(rq_file *base, void *buf, size_t len, uint64_t off, size_t *ret_len,
                         rq_error *why)
{
    posix_file *f = (posix_file *)base;
    posix_vfs *v = (posix_vfs *)base->vfs;
    bool may_be_direct = give_advice(f) == POSIX_FADV_RANDOM && f->is_random;
    if (may_be_direct && rq__direct_is_worth_it(&f->direct, &v->cached, f->fd, off, len) &&
        read_past_cache(f, buf, len, off)) {
        *ret_len = len;
        return RQ_OK;
    }
    return read_by_cache(f, buf, len, off, ret_len, why);
}

static rq_err posix_read_past(rq_file *base, void *buf, size_t len, uint64_t off, size_t *ret_len,
                              rq_error *why)
{
    posix_file *f = (posix_file *)base;
    (void)give_advice(f); /* for a read through the page cache */
    if (f->is_random && rq__direct_has_its_turn(&f->direct) && read_past_cache(f, buf, len, off)) {
        *ret_len = len;
        return RQ_OK;
    }
    return read_by_cache(f, buf, len, off, ret_len, why);
}

static bool posix_begin_read(rq_file *base, rq_reads *q, rq_read *r, uint64_t off, size_t len)
{
    posix_file *f = (posix_file *)base;
    posix_vfs *v = (posix_vfs *)base->vfs;
    if (!f->is_random || give_advice(f) != POSIX_FADV_RANDOM || !rq__uring_has_room(&q->uring))
        return false;
    int fd = rq__direct_worth_beginning(&f->direct, &v->cached, f->fd, off, len);
    if (fd < 0 || !rq__uring_open(q) || !rq__read_take(q, r, off, len)) return false;
    rq__uring_read(q, fd, r);
    return true;
}

static rq_err posix_try_read(rq_file *base, void *buf, size_t len, uint64_t off, size_t *ret_len)
{
    posix_file *f = (posix_file *)base;
    int e;
    (void)give_advice(f); /* the kernel may read ahead here, too */
    ssize_t n = rq__cached_read(&((posix_vfs *)base->vfs)->cached, f->fd, buf, len, off, &e);
    if (n < 0) return e == EAGAIN ? RQ_E_AGAIN : rq__errno_code(e);
    *ret_len = (size_t)n;
    return RQ_OK;
}

static void posix_drop_behind(rq_file *base, uint64_t off, uint64_t len)
{
    posix_file *f = (posix_file *)base;
    (void)posix_fadvise(f->fd, (off_t)off, (off_t)len, POSIX_FADV_DONTNEED);
}

static void posix_in_sequence(rq_file *base, bool on)
{
    posix_file *f = (posix_file *)base;
    if (!f->is_random) return;
    int advice = ((const posix_vfs *)base->vfs)->sequence_advice;
    atomic_store_explicit(&f->wanted, on ? advice : POSIX_FADV_RANDOM, memory_order_relaxed);
}

static rq_read_plan posix_plan_read(rq_file *base, uint64_t off, uint64_t len)
{
    posix_file *f = (posix_file *)base;
    posix_vfs *v = (posix_vfs *)base->vfs;
    return f->is_random ? rq__direct_plan(&f->direct, &v->cached, f->fd, off, len) : RQ_READ_AHEAD;
}

static uint64_t now_ns(void)
{
    return rq_clock_ns(CLOCK_MONOTONIC);
}

static void look_at_time(const posix_file *f, const char *what, uint64_t bytes, uint64_t begun_ns)
{
    const posix_vfs *v = (const posix_vfs *)f->base.vfs;
    uint64_t took = now_ns() - begun_ns;
    if (RQ_UNLIKELY(took > atomic_load_explicit(&v->slow_ns, memory_order_relaxed)))
        v->slow(v->slow_ctx, what, f->path, bytes, took);
}

static rq_err posix_write(rq_file *base, const void *buf, size_t len, uint64_t off, rq_error *why)
{
    posix_file *f = (posix_file *)base;
    uint64_t begun_ns = now_ns();
    size_t done = 0;
    while (done < len) {
        ssize_t n = pwrite(f->fd, (const uint8_t *)buf + done, len - done, (off_t)(off + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_file(why, errno, "write", f);
        if (n == 0) return fail_file(why, EIO, "write", f);
        done += (size_t)n;
    }
    look_at_time(f, "write", len, begun_ns);
    return RQ_OK;
}

/* True: the sync was deferred (once for each path), or *ret_rc has the error. */
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
    uint64_t begun_ns = now_ns();
    if (fdatasync(f->fd) != 0) return fail_file(why, errno, "sync", f);
    look_at_time(f, "sync", 0, begun_ns);
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

static int64_t nanoseconds(struct timespec t)
{
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static rq_err posix_opened_size(rq_file *base, uint64_t *ret, rq_error *why)
{
    (void)why;
    *ret = ((posix_file *)base)->opened_size;
    return RQ_OK;
}

static rq_err posix_identify(rq_file *base, rq_file_id *ret, rq_error *why)
{
    posix_file *f = (posix_file *)base;
    struct stat st;
    if (fstat(f->fd, &st) != 0) return fail_file(why, errno, "stat", f);
    *ret = (rq_file_id){.device = st.st_dev,
                        .inode = st.st_ino,
                        .size = (uint64_t)st.st_size,
                        .written_ns = nanoseconds(st.st_mtim),
                        .changed_ns = nanoseconds(st.st_ctim)};
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

static bool entry_is_dir(int dir, const struct dirent64 *d)
{
    if (d->d_type == DT_DIR) return true;
    if (d->d_type != DT_UNKNOWN && d->d_type != DT_LNK) return false;
    struct stat st;
    return fstatat(dir, d->d_name, &st, 0) == 0 && S_ISDIR(st.st_mode);
}

static bool entry_is_link(int dir, const struct dirent64 *d)
{
    if (d->d_type != DT_UNKNOWN) return d->d_type == DT_LNK;
    struct stat st;
    return fstatat(dir, d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

/* Adds the entries of a buffer that getdents64 has filled. False: out of memory. */
static bool add_entries(rq__entry_list *l, int dir, const char *buf, size_t len)
{
    for (size_t at = 0; at < len;) {
        const struct dirent64 *e = (const struct dirent64 *)(const void *)(buf + at);
        at += e->d_reclen;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        if (!rq__entry_add(l, e->d_name, entry_is_dir(dir, e), entry_is_link(dir, e))) return false;
    }
    return true;
}

/* Without a DIR, which takes three more system calls and 32 kB: a start lists many small folders. A folder that is
 * removed meanwhile has no further entries, as with readdir. */
static rq_err list_open(const posix_vfs *v, const char *dir, int fd, rq__entry_list *l,
                        rq_error *why)
{
    _Alignas(struct dirent64) char buf[4096];
    for (;;) {
        ssize_t n = getdents64(fd, buf, sizeof buf);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno != ENOENT) return fail_errno(why, errno, "list", v, dir);
        if (n <= 0) return RQ_OK;
        if (!add_entries(l, fd, buf, (size_t)n))
            return rq_fail(why, RQ_E_NO_MEMORY, "cannot list %s: out of memory", dir);
    }
}

static rq_err posix_list(rq_vfs *base, const char *dir, rq_arena *arena, rq_dir_entry **ret,
                         size_t *ret_count, rq_error *why)
{
    posix_vfs *v = (posix_vfs *)base;
    int fd = openat(v->root, dir_name(dir), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return fail_errno(why, errno, "list", v, dir);
    rq__entry_list entries = {.arena = arena};
    rq_err rc = list_open(v, dir, fd, &entries, why);
    close(fd);
    if (rc != RQ_OK) return rc;
    *ret = entries.ptr;
    *ret_count = entries.count;
    return RQ_OK;
}

static rq_err posix_mkdir(rq_vfs *base, const char *path, rq_error *why)
{
    posix_vfs *v = (posix_vfs *)base;
    if (mkdirat(v->root, path, v->folder_mode) != 0)
        return fail_errno(why, errno, "make folder", v, path);
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

/* Links the descriptor, because the name may refer to another file by now. The first way needs a
 * capability (before Linux 6.10), the second a mounted /proc. */
static bool link_open(int fd, int to_root, const char *to)
{
    char name[64];
    if (linkat(fd, "", to_root, to, AT_EMPTY_PATH) == 0) return true;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, name, to_root, to, AT_SYMLINK_FOLLOW) == 0;
}

/* Whether the process's user owns the file and it has exactly `names` hard links. A file of another
 * owner may still be written by that owner, and a file with further links may be in use. */
static bool is_own_file(int fd, nlink_t names)
{
    struct stat st;
    return fstat(fd, &st) == 0 && st.st_uid == geteuid() && st.st_nlink == names;
}

static rq_err posix_link_file(rq_file *base, rq_vfs *to, const char *path, rq_error *why)
{
    posix_file *f = (posix_file *)base;
    const posix_vfs *v = (posix_vfs *)to;
    if (!is_own_file(f->fd, 1))
        return rq_fail(why, RQ_E_PERMISSION,
                       "cannot link %s: the file has another owner, or several names", path);
    if (!link_open(f->fd, v->root, path)) return fail_errno(why, errno, "link", v, path);
    if (is_own_file(f->fd, 2) && fchmod(f->fd, file_mode(v)) == 0) return RQ_OK;
    (void)unlinkat(v->root, path, 0);
    return rq_fail(why, RQ_E_PERMISSION, "cannot link %s: the file changed meanwhile", path);
}

static rq_err posix_share_file(rq_file *base, rq_vfs *to, const char *path, rq_error *why)
{
    posix_file *f = (posix_file *)base;
    const posix_vfs *v = (posix_vfs *)to;
    return link_open(f->fd, v->root, path) ? RQ_OK : fail_errno(why, errno, "link", v, path);
}

static rq_err posix_sync_all(rq_vfs *base, rq_error *why)
{
    posix_vfs *v = (posix_vfs *)base;
    return syncfs(v->root) == 0 ? RQ_OK : fail_errno(why, errno, "sync", v, "");
}

static rq_err posix_remove_file(rq_vfs *base, const char *path, const rq_file_id *id, rq_error *why)
{
    posix_vfs *v = (posix_vfs *)base;
    struct stat st;
    const char *name;
    int dir = rq__open_folder_of(v->root, path, &name);
    if (dir < 0) return fail_beneath(why, errno, "remove", v, path);
    rq_err rc = RQ_OK;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        rc = fail_errno(why, errno, "remove", v, path);
    else if (st.st_dev != id->device || st.st_ino != id->inode)
        rc = rq_fail(why, RQ_E_CONFLICT, "cannot remove %s/%s: another file has this name now",
                     v->root_path, path);
    else if (unlinkat(dir, name, 0) != 0)
        rc = fail_errno(why, errno, "remove", v, path);
    close(dir);
    return rc;
}

static mode_t allowed_mode(const posix_vfs *v, const struct stat *st)
{
    return (S_ISDIR(st->st_mode) ? v->folder_mode : file_mode(v)) | 07000;
}

static bool has_excess(const posix_vfs *v, const struct stat *st)
{
    bool plain = S_ISDIR(st->st_mode) || S_ISREG(st->st_mode);
    return plain && (st->st_mode & 07777 & ~allowed_mode(v, st)) != 0 && st->st_uid == geteuid();
}

static rq_err posix_restrict_mode(rq_vfs *base, const char *path, unsigned *ret_was, rq_error *why)
{
    posix_vfs *v = (posix_vfs *)base;
    struct stat st;
    /* Nearly always there is nothing to do. A file whose mode must change is checked again, by its descriptor. */
    if (fstatat(v->root, dir_name(path), &st, AT_SYMLINK_NOFOLLOW) == 0 && !has_excess(v, &st))
        return RQ_OK;
    int fd = rq__open_beneath(v->root, dir_name(path), O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0);
    if (fd < 0) {
        bool absent = errno == ENOENT || errno == ELOOP || errno == ENOTDIR || errno == ENXIO;
        return absent ? RQ_OK : fail_errno(why, errno, "open", v, path);
    }
    rq_err rc = RQ_OK;
    if (fstat(fd, &st) != 0)
        rc = fail_errno(why, errno, "stat", v, path);
    else if (!has_excess(v, &st))
        *ret_was = 0;
    else if (fchmod(fd, st.st_mode & allowed_mode(v, &st)) != 0)
        rc = fail_errno(why, errno, "change the mode of", v, path);
    else
        *ret_was = st.st_mode & 07777;
    close(fd);
    return rc;
}

static rq_err posix_sync_dir(rq_vfs *base, const char *dir, rq_error *why)
{
    posix_vfs *v = (posix_vfs *)base;
    rq_err rc;
    if (put_off(v, dir, true, &rc)) return rc;
    int fd = openat(v->root, dir_name(dir), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return fail_errno(why, errno, "sync folder", v, dir);
    /* Some network file systems have no fsync for folders; their names are durable at once. */
    if (fsync(fd) != 0 && errno != EINVAL) rc = fail_errno(why, errno, "sync folder", v, dir);
    close(fd);
    return rc;
}

/* A file removed since then needs no sync: its folder has one. */
static rq_err sync_deferred(posix_vfs *v, const deferred *d, rq_error *why)
{
    if (d->is_dir) {
        rq_error detail = {.code = RQ_OK};
        rq_err rc = posix_sync_dir(&v->base, d->path, &detail);
        return rc == RQ_OK || rc == RQ_E_NOT_FOUND ? RQ_OK : rq_fail(why, rc, "%s", detail.message);
    }
    int fd = openat(v->root, d->path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
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

/* The process id in the lock file, only for a message. */
static long lock_holder(int fd)
{
    char text[24] = {0};
    ssize_t n = fd < 0 ? 0 : pread(fd, text, sizeof text - 1, 0);
    return n > 0 ? strtol(text, NULL, 10) : 0;
}

static rq_err in_use(rq_error *why, const posix_vfs *v, const char *path, int fd)
{
    long holder = lock_holder(fd);
    const char *what = path == NULL ? "the folder is locked" : path;
    if (holder == (long)getpid())
        return rq_fail(why, RQ_E_LOCKED, "%s is in use by process %ld, which is this one (%s)",
                       v->root_path, holder, what);
    if (holder > 0)
        return rq_fail(why, RQ_E_LOCKED, "%s is in use by process %ld (%s)", v->root_path, holder,
                       what);
    return rq_fail(why, RQ_E_LOCKED, "%s is in use by another process (%s)", v->root_path, what);
}

/* *ret -1: the file system has no locks on folders (e.g. NFS); the lock file must do. `named`: the
 * lock file, or -1. */
static rq_err lock_root(const posix_vfs *v, const char *path, int named, int *ret, rq_error *why)
{
    *ret = -1;
    int fd = openat(v->root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return fail_errno(why, errno, "lock", v, "");
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        *ret = fd;
        return RQ_OK;
    }
    int e = errno;
    close(fd);
    return e == EWOULDBLOCK ? in_use(why, v, path, named) : RQ_OK;
}

static rq_err open_lock_file(const posix_vfs *v, const char *path, int *ret, rq_error *why)
{
    *ret = -1;
    if (path == NULL) return RQ_OK;
    int fd =
        openat(v->root, path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, file_mode(v));
    if (fd < 0) return fail_errno(why, errno, "lock", v, path);
    uint64_t size;
    rq_err rc = check_regular(v, path, fd, &size, why);
    if (rc != RQ_OK)
        close(fd);
    else
        *ret = fd;
    return rc;
}

/* An open file description lock, as on the root: it belongs to this open file and not to the
 * process, so that two servers in one process exclude each other too. */
static rq_err lock_file(const posix_vfs *v, const char *path, int fd, rq_error *why)
{
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_SETLK, &all) != 0)
        return errno == EAGAIN || errno == EACCES ? in_use(why, v, path, fd)
                                                  : fail_errno(why, errno, "lock", v, path);
    char text[24];
    int len = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)len, 0) != len)
        return fail_errno(why, errno, "write lock", v, path);
    return RQ_OK;
}

/* Both locks. `fd`, the lock file or -1, is the lock's or closed. */
static rq_err take_locks(posix_vfs *v, const char *path, int fd, rq_file **ret, rq_error *why)
{
    int root = -1;
    rq_file *lock = NULL;
    rq_err rc = lock_root(v, path, fd, &root, why);
    if (rc == RQ_OK && path != NULL) rc = lock_file(v, path, fd, why);
    if (rc == RQ_OK) {
        rc = file_new(v, path == NULL ? "" : path, fd, 0, &lock, why);
        fd = -1; /* file_new's, or closed */
    }
    if (rc != RQ_OK) {
        if (fd >= 0) close(fd);
        if (root >= 0) close(root);
        return rc;
    }
    posix_file *f = (posix_file *)lock;
    f->root_lock = root;
    f->is_lock = true;
    rq__held_add(&f->held, &f->fd, &f->root_lock);
    *ret = lock;
    return RQ_OK;
}

static rq_err posix_lock(rq_vfs *base, const char *path, rq_file **ret, rq_error *why)
{
    posix_vfs *v = (posix_vfs *)base;
    int fd;
    if (rq__held_begin() != RQ_OK) return rq_no_memory(why);
    rq_err rc = open_lock_file(v, path, &fd, why);
    if (rc == RQ_OK) rc = take_locks(v, path, fd, ret, why);
    rq__held_end();
    return rc;
}

/* Unlocks explicitly, because a child that was just forked shares the open files until its handler
 * closes them: closing the descriptors here would not release the locks. In a forked child they are
 * closed already (-1). */
static rq_err close_lock(posix_file *f)
{
    struct flock all = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    RQ_TRY(rq__held_begin());
    rq__held_remove(&f->held);
    bool unlocked = f->fd < 0 || fcntl(f->fd, F_OFD_SETLK, &all) == 0;
    unlocked = (f->root_lock < 0 || flock(f->root_lock, LOCK_UN) == 0) && unlocked;
    int e = errno;
    if (f->fd >= 0) close(f->fd);
    if (f->root_lock >= 0) close(f->root_lock);
    rq__held_end();
    free(f);
    return unlocked ? RQ_OK : rq__errno_code(e);
}

/* --- the vfs ------------------------------------------------------------------------------ */

static void posix_free(rq_vfs *base)
{
    posix_vfs *v = (posix_vfs *)base;
    while (v->deferred != NULL) { /* an abandoned layout */
        deferred *next = v->deferred->next;
        free(v->deferred);
        v->deferred = next;
    }
    pthread_mutex_destroy(&v->lock);
    close(v->root);
    free(v->root_path);
    free(v);
}

void rq_vfs_posix_set_mode(rq_vfs *base, unsigned folder_mode)
{
    ((posix_vfs *)base)->folder_mode = folder_mode;
}

void rq_vfs_posix_on_slow(rq_vfs *base, rq_vfs_slow slow, void *ctx)
{
    posix_vfs *v = (posix_vfs *)base;
    v->slow = slow;
    v->slow_ctx = ctx;
}

void rq_vfs_posix_set_slow(rq_vfs *base, uint64_t ns)
{
    posix_vfs *v = (posix_vfs *)base;
    atomic_store_explicit(&v->slow_ns, v->slow == NULL ? UINT64_MAX : ns, memory_order_relaxed);
}

rq_err rq_vfs_posix_new(const char *root, rq_vfs **ret, rq_error *why)
{
    posix_vfs *v = calloc(1, sizeof *v);
    char *path = strdup(root);
    if (v == NULL || path == NULL) {
        free(v);
        free(path);
        return rq_no_memory(why);
    }
    v->base = (rq_vfs){
        .open = posix_open,
        .close = posix_close,
        .read = posix_read,
        .try_read = posix_try_read,
        .drop_behind = posix_drop_behind,
        .in_sequence = posix_in_sequence,
        .plan_read = posix_plan_read,
        .read_past = posix_read_past,
        .begin_read = posix_begin_read,
        .write = posix_write,
        .sync = posix_sync,
        .truncate = posix_truncate,
        .size = posix_size,
        .opened_size = posix_opened_size,
        .stat = posix_stat,
        .list = posix_list,
        .mkdir = posix_mkdir,
        .remove = posix_remove,
        .link = posix_link,
        .sync_dir = posix_sync_dir,
        .lock = posix_lock,
        .identify = posix_identify,
        .link_file = posix_link_file,
        .share_file = posix_share_file,
        .sync_all = posix_sync_all,
        .remove_file = posix_remove_file,
        .restrict_mode = posix_restrict_mode,
        .defer = posix_defer,
        .free = posix_free,
    };
    v->root_path = path;
    v->folder_mode = FOLDER_MODE;
    v->slow_ns = UINT64_MAX;
    rq__direct_count_init(&v->direct);
    pthread_mutex_init(&v->lock, NULL);
    v->root = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (v->root < 0) {
        rq_err rc = fail_errno(why, errno, "open", v, "");
        free(path);
        free(v);
        return rc;
    }
    v->sequence_advice = rq__sequence_advice(v->root);
    *ret = &v->base;
    return RQ_OK;
}
