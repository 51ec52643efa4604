/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads from the objects of a CephFS file: past libcephfs, whose calls all take one lock and copy through its cache, and
 * past the metadata server.
 *
 * Byte `off` of a file is in one of its objects, INODE.NUMBER, as its layout says: stripe units go round a set of
 * `stripe_count` objects until each has `object_size` bytes, then to the next set.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vfs/cephfs_priv.h"

void rq__data_pools_init(rq__data_pools *p, rados_t cluster)
{
    p->cluster = cluster;
    p->first = NULL;
    pthread_mutex_init(&p->lock, NULL);
}

void rq__data_pools_clear(rq__data_pools *p)
{
    while (p->first != NULL) {
        rq__data_pool *next = p->first->next;
        rados_ioctx_destroy(p->first->io);
        free(p->first);
        p->first = next;
    }
    pthread_mutex_destroy(&p->lock);
}

/* With the lock held. */
static rados_ioctx_t add_pool(rq__data_pools *p, int64_t id)
{
    rq__data_pool *made = malloc(sizeof *made);
    if (made == NULL) return NULL;
    *made = (rq__data_pool){.next = p->first, .id = id};
    if (rados_ioctx_create2(p->cluster, id, &made->io) < 0) {
        free(made);
        return NULL;
    }
    p->first = made;
    return made->io;
}

static rados_ioctx_t pool_of(rq__data_pools *p, int64_t id)
{
    pthread_mutex_lock(&p->lock);
    const rq__data_pool *found = p->first;
    while (found != NULL && found->id != id)
        found = found->next;
    rados_ioctx_t io = found != NULL ? found->io : add_pool(p, id);
    pthread_mutex_unlock(&p->lock);
    return io;
}

/* A layout may name a RADOS namespace; such files are read in the ordinary way. */
static bool has_namespace(struct ceph_mount_info *mount, int fd)
{
    char name[8];
    int len = ceph_fgetxattr(mount, fd, "ceph.file.layout.pool_namespace", name, sizeof name);
    return len > 0 || len == -ERANGE;
}

void rq__extents_find(rq__data_pools *p, struct ceph_mount_info *mount, int fd, rq__extents *ret)
{
    int unit = 0, count = 0, size = 0, pool = -1;
    *ret = (rq__extents){0};
    struct ceph_statx st;
    if (ceph_fstatx(mount, fd, &st, CEPH_STATX_INO | CEPH_STATX_SIZE, 0) != 0) return;
    if (ceph_get_file_layout(mount, fd, &unit, &count, &size, &pool) != 0) return;
    if (unit <= 0 || count <= 0 || size < unit || has_namespace(mount, fd)) return;
    *ret = (rq__extents){.io = pool_of(p, pool),
                         .inode = st.stx_ino,
                         .size = st.stx_size,
                         .stripe_unit = (uint64_t)unit,
                         .stripe_count = (uint64_t)count,
                         .object_size = (uint64_t)size};
}

/* The object that has the byte `off`, where it is there, and how many of `len` bytes follow it there. */
typedef struct piece {
    char object[40];
    uint64_t off;
    size_t len;
} piece;

static void piece_of(const rq__extents *e, uint64_t off, size_t len, piece *ret)
{
    uint64_t unit = off / e->stripe_unit, in_unit = off % e->stripe_unit;
    uint64_t stripe = unit / e->stripe_count, units_each = e->object_size / e->stripe_unit;
    uint64_t number = stripe / units_each * e->stripe_count + unit % e->stripe_count;
    uint64_t left = e->stripe_unit - in_unit;
    snprintf(ret->object, sizeof ret->object, "%llx.%08llx", (unsigned long long)e->inode,
             (unsigned long long)number);
    ret->off = stripe % units_each * e->stripe_unit + in_unit;
    ret->len = len < left ? len : (size_t)left;
}

/* The connection's limit for an operation is that of the log. A read waits, like one of a local disk. */
static int read_piece(const rq__extents *e, const piece *p, void *buf)
{
    int n;
    do
        n = rados_read(e->io, p->object, buf, p->len, p->off);
    while (n == -ETIMEDOUT);
    return n;
}

bool rq__extents_read(const rq__extents *e, void *buf, size_t len, uint64_t off)
{
    if (e->io == NULL || off > e->size || len > e->size - off) return false;
    for (size_t done = 0; done < len;) {
        piece p;
        piece_of(e, off + done, len - done, &p);
        if (read_piece(e, &p, (uint8_t *)buf + done) != (int)p.len) return false;
        done += p.len;
    }
    return true;
}
