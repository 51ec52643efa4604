/* SPDX-License-Identifier: Apache-2.0 */
/* cephfs.c has the mount and names, cephfs_file.c open files, cephfs_direct.c reads from the data pool. */
#ifndef RQ_VFS_CEPHFS_PRIV_H
#define RQ_VFS_CEPHFS_PRIV_H

#include <cephfs/libcephfs.h>
#include <rados/librados.h>
#include <pthread.h>
#include <stdatomic.h>

#include "vfs/cephfs.h"
#include "vfs/vfs_priv.h"

/* --- reads from the data pool ------------------------------------------------------------------ */
/* A pool that has data of files. */
typedef struct rq__data_pool {
    struct rq__data_pool *next;
    int64_t id;
    rados_ioctx_t io;
} rq__data_pool;

/* The pools that files were opened in. */
typedef struct rq__data_pools {
    rados_t cluster; /* borrowed */
    pthread_mutex_t lock;
    rq__data_pool *first RQ_GUARDED_BY(lock);
} rq__data_pools;

/* Where the bytes of a file are. `io` NULL: it is not read directly. */
typedef struct rq__extents {
    rados_ioctx_t io; /* borrowed */
    uint64_t inode, size;
    uint64_t stripe_unit, stripe_count, object_size;
} rq__extents;

void rq__data_pools_init(rq__data_pools *p, rados_t cluster);
void rq__data_pools_clear(rq__data_pools *p);
/* Sets ret->io, or leaves it NULL if the file's pool cannot be read by this user. */
void rq__extents_find(rq__data_pools *p, struct ceph_mount_info *mount, int fd, rq__extents *ret);
/* Reads the bytes from their objects; waits while OSDs do not answer. False: they are not all there (a hole, the end of the
 * file), or an error; the caller reads in the ordinary way. */
bool rq__extents_read(const rq__extents *e, void *buf, size_t len, uint64_t off);

/* --- files and names --------------------------------------------------------------------------- */
typedef struct rq__cephfs {
    rq_vfs base;
    struct ceph_mount_info *mount;
    char *name; /* of the root, for messages: "cephfs:/path" */
    mode_t folder_mode;
    rq__data_pools pools;
    pthread_mutex_t evicting; /* libcephfs knows of one eviction of a mount at a time */
    void (*lost)(void *ctx, const rq_error *why);
    void *lost_ctx;
    atomic_flag is_lost;
} rq__cephfs;

static inline mode_t rq__cephfs_file_mode(const rq__cephfs *v)
{
    return v->folder_mode & 0666;
}

/* The error of a call of libcephfs: rc is a negative errno. */
RQ_NODISCARD rq_err rq__cephfs_fail(rq__cephfs *v, int rc, const char *verb, const char *path,
                                    rq_error *why);
/* The path from the mount's root. */
const char *rq__cephfs_path(const char *path, char ret[static RQ_PATH_MAX + 1]);
/* The inode of a path, or of its folder, without following any symbolic link (-ELOOP). The caller returns it with
 * ceph_ll_put. 0 or a negative errno. */
int rq__cephfs_walk(rq__cephfs *v, const char *path, Inode **ret, struct ceph_statx *ret_stat);
int rq__cephfs_walk_folder(rq__cephfs *v, const char *path, Inode **ret, const char **ret_name);

rq_err rq__cephfs_open_file(rq_vfs *base, const char *path, int flags, rq_file **ret,
                            rq_error *why);
rq_err rq__cephfs_close(rq_file *base);
rq_err rq__cephfs_read(rq_file *base, void *buf, size_t len, uint64_t off, size_t *ret_len,
                       rq_error *why);
rq_err rq__cephfs_try_read(rq_file *base, void *buf, size_t len, uint64_t off, size_t *ret_len);
rq_err rq__cephfs_write(rq_file *base, const void *buf, size_t len, uint64_t off, rq_error *why);
rq_err rq__cephfs_sync(rq_file *base, rq_error *why);
rq_err rq__cephfs_truncate(rq_file *base, uint64_t size, rq_error *why);
rq_err rq__cephfs_size(rq_file *base, uint64_t *ret, rq_error *why);
rq_err rq__cephfs_identify(rq_file *base, rq_file_id *ret, rq_error *why);
rq_err rq__cephfs_link_file(rq_file *base, rq_vfs *to, const char *path, rq_error *why);
rq_err rq__cephfs_share_file(rq_file *base, rq_vfs *to, const char *path, rq_error *why);
rq_err rq__cephfs_lock(rq_vfs *base, const char *path, rq_file **ret, rq_error *why);
void rq__cephfs_in_sequence(rq_file *base, bool on);

#endif
