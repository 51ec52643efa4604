/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open files of CephFS.
 *
 * An open file has capabilities of the metadata server, so its bytes stay when its last name is removed. libcephfs keeps
 * written bytes in its cache until a sync; ceph_fsync returns after the OSDs have them and the metadata server
 * has the length. A failed write-back is reported by the next sync, once.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vfs/cephfs_priv.h"

#define CALL_MAX ((size_t)1 << 30) /* libcephfs returns an int */

typedef struct cephfs_file {
    rq_file base;
    int fd;
    bool is_lock;
    _Atomic bool in_sequence;
    rq__extents extents;
    char path[]; /* for messages */
} cephfs_file;

static rq__cephfs *vfs_of(const rq_file *f)
{
    return (rq__cephfs *)(void *)f->vfs;
}

static rq_err fail_file(const cephfs_file *f, int rc, const char *verb, rq_error *why)
{
    return rq__cephfs_fail(vfs_of(&f->base), rc, verb, f->path, why);
}

static uint64_t owner_of(const cephfs_file *f)
{
    return (uint64_t)(uintptr_t)f;
}

/* --- opening ------------------------------------------------------------------------------------ */

/* Takes the descriptor. */
static rq_err file_new(rq__cephfs *v, const char *path, int fd, cephfs_file **ret, rq_error *why)
{
    size_t len = strlen(path) + 1;
    cephfs_file *f = calloc(1, sizeof *f + len);
    if (f == NULL) {
        ceph_close(v->mount, fd);
        return rq_fail(why, RQ_E_NO_MEMORY, "cannot open %s: out of memory", path);
    }
    f->base.vfs = &v->base;
    f->fd = fd;
    memcpy(f->path, path, len);
    *ret = f;
    return RQ_OK;
}

static rq_err check_regular(rq__cephfs *v, const char *path, int fd, uint64_t *ret_inode,
                            rq_error *why)
{
    struct ceph_statx st;
    int rc = ceph_fstatx(v->mount, fd, &st, CEPH_STATX_MODE | CEPH_STATX_INO, 0);
    if (rc != 0) return rq__cephfs_fail(v, rc, "stat", path, why);
    *ret_inode = st.stx_ino;
    if (S_ISREG(st.stx_mode)) return RQ_OK;
    return rq_fail(why, RQ_E_CORRUPT, "cannot open %s/%s: %s, not a regular file", v->name, path,
                   rq__file_kind(st.stx_mode));
}

/* The inode that the path has without symbolic links. Compared with that of the file that was opened by name afterwards. */
static rq_err inode_beneath(rq__cephfs *v, const char *path, uint64_t *ret, rq_error *why)
{
    Inode *in;
    struct ceph_statx st;
    int rc = rq__cephfs_walk(v, path, &in, &st);
    if (rc == -ELOOP)
        return rq_fail(why, RQ_E_PERMISSION, "cannot open %s/%s: symbolic links are not followed",
                       v->name, path);
    if (rc != 0) return rq__cephfs_fail(v, rc, "open", path, why);
    ceph_ll_put(v->mount, in);
    *ret = st.stx_ino;
    return RQ_OK;
}

static int open_flags(int flags)
{
    int how = (flags & RQ_OPEN_WRITE) != 0 ? O_RDWR : O_RDONLY;
    if ((flags & RQ_OPEN_CREATE) != 0) how |= O_CREAT;
    if ((flags & RQ_OPEN_EXCL) != 0) how |= O_EXCL;
    return how;
}

/* `beneath`: the inode that the file must have, or 0. */
static rq_err open_checked(rq__cephfs *v, const char *path, int flags, uint64_t beneath,
                           int *ret_fd, rq_error *why)
{
    char at[RQ_PATH_MAX + 1];
    uint64_t inode = 0;
    int fd =
        ceph_open(v->mount, rq__cephfs_path(path, at), open_flags(flags), rq__cephfs_file_mode(v));
    if (fd < 0) return rq__cephfs_fail(v, fd, "open", path, why);
    rq_err rc = check_regular(v, path, fd, &inode, why);
    if (rc == RQ_OK && beneath != 0 && inode != beneath)
        rc = rq_fail(why, RQ_E_PERMISSION, "cannot open %s/%s: it was replaced meanwhile", v->name,
                     path);
    if (rc != RQ_OK)
        ceph_close(v->mount, fd);
    else
        *ret_fd = fd;
    return rc;
}

/* Direct reads see only bytes that the OSDs have. Bytes that this process wrote through another open file may still be in
 * libcephfs' cache, so they are written out first. Other processes wrote theirs when this opening revoked their caches. */
static rq_err prepare_direct(cephfs_file *f, rq_error *why)
{
    rq__cephfs *v = vfs_of(&f->base);
    int rc = ceph_fsync(v->mount, f->fd, 1);
    if (rc != 0) return fail_file(f, rc, "sync", why);
    rq__extents_find(&v->pools, v->mount, f->fd, &f->extents);
    return RQ_OK;
}

rq_err rq__cephfs_open_file(rq_vfs *base, const char *path, int flags, rq_file **ret, rq_error *why)
{
    rq__cephfs *v = (rq__cephfs *)(void *)base;
    bool is_random = (flags & (RQ_OPEN_RANDOM | RQ_OPEN_WRITE)) == RQ_OPEN_RANDOM;
    uint64_t beneath = 0;
    int fd = -1;
    cephfs_file *f;
    if ((flags & RQ_OPEN_BENEATH) != 0) RQ_TRY(inode_beneath(v, path, &beneath, why));
    RQ_TRY(open_checked(v, path, flags, beneath, &fd, why));
    RQ_TRY(file_new(v, path, fd, &f, why));
    rq_err rc = is_random ? prepare_direct(f, why) : RQ_OK;
    if (rc != RQ_OK)
        (void)rq__cephfs_close(&f->base);
    else
        *ret = &f->base;
    return rc;
}

rq_err rq__cephfs_close(rq_file *base)
{
    cephfs_file *f = (cephfs_file *)(void *)base;
    rq__cephfs *v = vfs_of(base);
    int rc = f->is_lock ? ceph_flock(v->mount, f->fd, LOCK_UN, owner_of(f)) : 0;
    int closed = ceph_close(v->mount, f->fd);
    if (rc == 0) rc = closed;
    rq_err code = rc == 0 ? RQ_OK : fail_file(f, rc, "close", NULL);
    free(f);
    return code;
}

/* --- reads -------------------------------------------------------------------------------------- */

static rq_err read_in_order(cephfs_file *f, uint8_t *buf, size_t len, uint64_t off, size_t *ret_len,
                            rq_error *why)
{
    size_t done = 0;
    while (done < len) {
        size_t part = len - done < CALL_MAX ? len - done : CALL_MAX;
        int n = ceph_read(vfs_of(&f->base)->mount, f->fd, (char *)buf + done, (int64_t)part,
                          (int64_t)(off + done));
        if (n < 0) return fail_file(f, n, "read", why);
        if (n == 0) break;
        done += (size_t)n;
    }
    *ret_len = done;
    return RQ_OK;
}

rq_err rq__cephfs_read(rq_file *base, void *buf, size_t len, uint64_t off, size_t *ret_len,
                       rq_error *why)
{
    cephfs_file *f = (cephfs_file *)(void *)base;
    bool in_order = atomic_load_explicit(&f->in_sequence, memory_order_relaxed);
    if (in_order || !rq__extents_read(&f->extents, buf, len, off))
        return read_in_order(f, buf, len, off, ret_len, why);
    *ret_len = len;
    return RQ_OK;
}

rq_err rq__cephfs_try_read(rq_file *base, void *buf, size_t len, uint64_t off, size_t *ret_len)
{
    (void)base;
    (void)buf;
    (void)len;
    (void)off;
    (void)ret_len;
    return RQ_E_AGAIN; /* libcephfs has no read that does not wait */
}

void rq__cephfs_in_sequence(rq_file *base, bool on)
{
    cephfs_file *f = (cephfs_file *)(void *)base;
    atomic_store_explicit(&f->in_sequence, on, memory_order_relaxed);
}

/* --- writes ------------------------------------------------------------------------------------- */

rq_err rq__cephfs_write(rq_file *base, const void *buf, size_t len, uint64_t off, rq_error *why)
{
    cephfs_file *f = (cephfs_file *)(void *)base;
    for (size_t done = 0; done < len;) {
        size_t part = len - done < CALL_MAX ? len - done : CALL_MAX;
        int n = ceph_write(vfs_of(base)->mount, f->fd, (const char *)buf + done, (int64_t)part,
                           (int64_t)(off + done));
        if (n <= 0) return fail_file(f, n < 0 ? n : -EIO, "write", why);
        done += (size_t)n;
    }
    return RQ_OK;
}

/* A sync of the bytes alone would leave the length to the metadata server's recovery after a crash. */
rq_err rq__cephfs_sync(rq_file *base, rq_error *why)
{
    cephfs_file *f = (cephfs_file *)(void *)base;
    int rc = ceph_fsync(vfs_of(base)->mount, f->fd, 0);
    return rc == 0 ? RQ_OK : fail_file(f, rc, "sync", why);
}

rq_err rq__cephfs_truncate(rq_file *base, uint64_t size, rq_error *why)
{
    cephfs_file *f = (cephfs_file *)(void *)base;
    int rc = ceph_ftruncate(vfs_of(base)->mount, f->fd, (int64_t)size);
    return rc == 0 ? RQ_OK : fail_file(f, rc, "truncate", why);
}

/* --- the file as a whole ------------------------------------------------------------------------ */

static rq_err stat_file(cephfs_file *f, unsigned want, struct ceph_statx *ret, rq_error *why)
{
    int rc = ceph_fstatx(vfs_of(&f->base)->mount, f->fd, ret, want, 0);
    return rc == 0 ? RQ_OK : fail_file(f, rc, "stat", why);
}

rq_err rq__cephfs_size(rq_file *base, uint64_t *ret, rq_error *why)
{
    struct ceph_statx st;
    RQ_TRY(stat_file((cephfs_file *)(void *)base, CEPH_STATX_SIZE, &st, why));
    *ret = st.stx_size;
    return RQ_OK;
}

static int64_t nanoseconds(struct timespec t)
{
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

rq_err rq__cephfs_identify(rq_file *base, rq_file_id *ret, rq_error *why)
{
    struct ceph_statx st;
    RQ_TRY(stat_file((cephfs_file *)(void *)base, CEPH_STATX_BASIC_STATS, &st, why));
    *ret = (rq_file_id){.device = st.stx_dev,
                        .inode = st.stx_ino,
                        .size = st.stx_size,
                        .written_ns = nanoseconds(st.stx_mtime),
                        .changed_ns = nanoseconds(st.stx_ctime)};
    return RQ_OK;
}

static int link_inode(rq__cephfs *v, Inode *in, const char *path)
{
    Inode *folder;
    const char *name;
    int rc = rq__cephfs_walk_folder(v, path, &folder, &name);
    if (rc != 0) return rc;
    rc = ceph_ll_link(v->mount, in, folder, name, ceph_mount_perms(v->mount));
    ceph_ll_put(v->mount, folder);
    return rc;
}

/* Links the open file's inode, because its name may refer to another file by now. */
static rq_err link_open(cephfs_file *f, rq_vfs *to, const char *path, bool set_mode, rq_error *why)
{
    rq__cephfs *v = vfs_of(&f->base);
    struct ceph_statx st;
    Inode *in;
    if (to != f->base.vfs)
        return rq_fail(why, RQ_E_UNSUPPORTED, "cannot link %s: another mount", path);
    RQ_TRY(stat_file(f, CEPH_STATX_INO, &st, why));
    int rc = ceph_ll_lookup_inode(v->mount, (struct inodeno_t){st.stx_ino}, &in);
    if (rc != 0) return rq__cephfs_fail(v, rc, "link", path, why);
    rc = link_inode(v, in, path);
    if (rc == 0 && set_mode) {
        st.stx_mode = (uint16_t)rq__cephfs_file_mode(v);
        rc = ceph_ll_setattr(v->mount, in, &st, CEPH_SETATTR_MODE, ceph_mount_perms(v->mount));
        if (rc != 0) (void)v->base.remove(to, path, NULL);
    }
    ceph_ll_put(v->mount, in);
    return rc == 0 ? RQ_OK : rq__cephfs_fail(v, rc, "link", path, why);
}

rq_err rq__cephfs_link_file(rq_file *base, rq_vfs *to, const char *path, rq_error *why)
{
    struct ceph_statx st;
    cephfs_file *f = (cephfs_file *)(void *)base;
    RQ_TRY(stat_file(f, CEPH_STATX_UID | CEPH_STATX_NLINK, &st, why));
    if (st.stx_uid != geteuid() || st.stx_nlink != 1)
        return rq_fail(why, RQ_E_PERMISSION,
                       "cannot link %s: the file has another owner, or several names", path);
    return link_open(f, to, path, true, why);
}

rq_err rq__cephfs_share_file(rq_file *base, rq_vfs *to, const char *path, rq_error *why)
{
    return link_open((cephfs_file *)(void *)base, to, path, false, why);
}

/* --- the lock ----------------------------------------------------------------------------------- */

static rq_err take_lock(rq__cephfs *v, const char *path, int how, rq_file **ret, rq_error *why)
{
    char at[RQ_PATH_MAX + 1];
    cephfs_file *f;
    int fd = ceph_open(v->mount, rq__cephfs_path(path, at), how, rq__cephfs_file_mode(v));
    if (fd < 0) return rq__cephfs_fail(v, fd, "lock", path, why);
    RQ_TRY(file_new(v, path, fd, &f, why));
    int rc = ceph_flock(v->mount, fd, LOCK_EX | LOCK_NB, owner_of(f));
    f->is_lock = rc == 0;
    if (rc == 0) {
        *ret = &f->base;
        return RQ_OK;
    }
    (void)rq__cephfs_close(&f->base);
    return rc == -EAGAIN || rc == -EWOULDBLOCK
               ? rq_fail(why, RQ_E_LOCKED, "%s is in use by another process (%s)", v->name,
                         path[0] == '\0' ? "the folder is locked" : path)
               : rq__cephfs_fail(v, rc, "lock", path, why);
}

/* One lock is enough: that of the root folder. The file's is for versions that know no other, and these do not know
 * CephFS. */
rq_err rq__cephfs_lock(rq_vfs *base, const char *path, rq_file **ret, rq_error *why)
{
    (void)path;
    return take_lock((rq__cephfs *)(void *)base, "", O_RDONLY | O_DIRECTORY, ret, why);
}
