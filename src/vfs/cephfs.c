/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mount of a CephFS folder in this process, and its names.
 *
 * The metadata server answers a change of names before it is durable; ceph_fsync of the folder waits until it is. Every
 * other client sees the change at once.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vfs/cephfs_priv.h"
#include "vfs/shared_rados_priv.h"

/* --- errors ------------------------------------------------------------------------------------- */

static void tell_lost(rq__cephfs *v)
{
    rq_error why = {.code = RQ_OK};
    if (v->lost == NULL || atomic_flag_test_and_set(&v->is_lost)) return;
    (void)rq_fail(
        &why, RQ_E_SERVER_ABORTED,
        "%s: Ceph has evicted this process's client, because it was silent for too long or "
        "was blocklisted. This server ends; other servers open its regions",
        v->name);
    v->lost(v->lost_ctx, &why);
}

/* libcephfs reports a file in the place of a folder as a lack of permission to search it. */
static int errno_of(rq__cephfs *v, int rc, const char *path)
{
    Inode *in;
    struct ceph_statx st;
    if (rc != -EACCES) return -rc;
    int found = rq__cephfs_walk(v, path, &in, &st);
    if (found == 0) ceph_ll_put(v->mount, in);
    return found == -ENOTDIR ? ENOTDIR : EACCES;
}

rq_err rq__cephfs_fail(rq__cephfs *v, int rc, const char *verb, const char *path, rq_error *why)
{
    char text[128];
    bool evicted = rc == -ESHUTDOWN || rc == -ENOTCONN;
    int e = errno_of(v, rc, path);
    if (evicted) tell_lost(v);
    return rq_fail(why, e == ETIMEDOUT ? RQ_E_TIMEOUT : rq__errno_code(e), "cannot %s %s%s%s: %s",
                   verb, v->name, path[0] == '\0' ? "" : "/", path,
                   evicted ? "this client was evicted" : strerror_r(e, text, sizeof text));
}

const char *rq__cephfs_path(const char *path, char ret[static RQ_PATH_MAX + 1])
{
    ret[0] = '/';
    strcpy(ret + 1, path); /* vfs.c has checked its length */
    return ret;
}

/* --- paths without links ------------------------------------------------------------------------ */

/* Replaces *in, whose reference is returned and whose state is *ret_stat, by its child. */
static int step(rq__cephfs *v, Inode **in, const char *name, struct ceph_statx *ret_stat)
{
    Inode *next = NULL;
    int rc = -ENOTDIR; /* asked for a name below a file, libcephfs checks its permissions first */
    if (S_ISDIR(ret_stat->stx_mode))
        rc = ceph_ll_lookup(v->mount, *in, name, &next, ret_stat, CEPH_STATX_BASIC_STATS,
                            AT_SYMLINK_NOFOLLOW, ceph_mount_perms(v->mount));
    ceph_ll_put(v->mount, *in);
    if (rc == 0 && S_ISLNK(ret_stat->stx_mode)) {
        ceph_ll_put(v->mount, next);
        rc = -ELOOP;
    }
    *in = next;
    return rc;
}

static int walk(rq__cephfs *v, char *path, Inode **ret, struct ceph_statx *ret_stat)
{
    int rc = ceph_ll_lookup_root(v->mount, ret);
    ret_stat->stx_mode = S_IFDIR;
    for (char *name; rc == 0 && (name = strsep(&path, "/")) != NULL;)
        if (*name != '\0') rc = step(v, ret, name, ret_stat);
    return rc;
}

int rq__cephfs_walk(rq__cephfs *v, const char *path, Inode **ret, struct ceph_statx *ret_stat)
{
    char copy[RQ_PATH_MAX];
    strcpy(copy, path);
    return walk(v, copy, ret, ret_stat);
}

int rq__cephfs_walk_folder(rq__cephfs *v, const char *path, Inode **ret, const char **ret_name)
{
    char copy[RQ_PATH_MAX];
    struct ceph_statx st;
    const char *slash = strrchr(path, '/');
    size_t len = slash == NULL ? 0 : (size_t)(slash - path);
    memcpy(copy, path, len);
    copy[len] = '\0';
    *ret_name = slash == NULL ? path : slash + 1;
    return walk(v, copy, ret, &st);
}

/* --- names -------------------------------------------------------------------------------------- */

static rq__cephfs *of(rq_vfs *base)
{
    return (rq__cephfs *)(void *)base;
}

static rq_err cephfs_stat(rq_vfs *base, const char *path, rq_stat *ret, rq_error *why)
{
    rq__cephfs *v = of(base);
    char at[RQ_PATH_MAX + 1];
    struct ceph_statx st;
    int rc = ceph_statx(v->mount, rq__cephfs_path(path, at), &st, CEPH_STATX_BASIC_STATS, 0);
    if (rc != 0) return rq__cephfs_fail(v, rc, "stat", path, why);
    *ret =
        (rq_stat){.size = st.stx_size,
                  .mtime_ms = (int64_t)st.stx_mtime.tv_sec * 1000 + st.stx_mtime.tv_nsec / 1000000,
                  .is_dir = S_ISDIR(st.stx_mode)};
    return RQ_OK;
}

/* Whether a link's target is a folder. */
static bool leads_to_folder(rq__cephfs *v, const char *dir, const char *name)
{
    char at[RQ_PATH_MAX + 258];
    struct ceph_statx st;
    snprintf(at, sizeof at, "/%s/%s", dir, name);
    return ceph_statx(v->mount, at, &st, CEPH_STATX_MODE, 0) == 0 && S_ISDIR(st.stx_mode);
}

static rq_err add_entry(rq__cephfs *v, rq__entry_list *l, const char *dir, const struct dirent *e,
                        const struct ceph_statx *st)
{
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) return RQ_OK;
    bool is_link = S_ISLNK(st->stx_mode);
    bool is_dir = is_link ? leads_to_folder(v, dir, e->d_name) : S_ISDIR(st->stx_mode);
    return rq__entry_add(l, e->d_name, is_dir, is_link) ? RQ_OK : RQ_E_NO_MEMORY;
}

static rq_err cephfs_list(rq_vfs *base, const char *dir, rq_arena *arena, rq_dir_entry **ret,
                          size_t *ret_count, rq_error *why)
{
    rq__cephfs *v = of(base);
    char at[RQ_PATH_MAX + 1];
    struct ceph_dir_result *d;
    struct dirent e;
    struct ceph_statx st;
    rq__entry_list entries = {.arena = arena};
    int more = ceph_opendir(v->mount, rq__cephfs_path(dir, at), &d);
    if (more != 0) return rq__cephfs_fail(v, more, "list", dir, why);
    rq_err rc = RQ_OK;
    while (rc == RQ_OK && (more = ceph_readdirplus_r(v->mount, d, &e, &st, CEPH_STATX_MODE,
                                                     AT_SYMLINK_NOFOLLOW, NULL)) > 0)
        rc = add_entry(v, &entries, dir, &e, &st);
    (void)ceph_closedir(v->mount, d);
    if (rc != RQ_OK) return rq_fail(why, rc, "cannot list %s: out of memory", dir);
    if (more < 0) return rq__cephfs_fail(v, more, "list", dir, why);
    *ret = entries.ptr;
    *ret_count = entries.count;
    return RQ_OK;
}

static rq_err cephfs_mkdir(rq_vfs *base, const char *path, rq_error *why)
{
    rq__cephfs *v = of(base);
    char at[RQ_PATH_MAX + 1];
    int rc = ceph_mkdir(v->mount, rq__cephfs_path(path, at), v->folder_mode);
    return rc == 0 ? RQ_OK : rq__cephfs_fail(v, rc, "make folder", path, why);
}

static rq_err cephfs_remove(rq_vfs *base, const char *path, rq_error *why)
{
    rq__cephfs *v = of(base);
    char at[RQ_PATH_MAX + 1];
    int rc = ceph_unlink(v->mount, rq__cephfs_path(path, at));
    if (rc == -EISDIR) rc = ceph_rmdir(v->mount, at);
    return rc == 0 ? RQ_OK : rq__cephfs_fail(v, rc, "remove", path, why);
}

static rq_err cephfs_link(rq_vfs *base, const char *from, const char *to, rq_error *why)
{
    rq__cephfs *v = of(base);
    char a[RQ_PATH_MAX + 1], b[RQ_PATH_MAX + 1];
    int rc = ceph_link(v->mount, rq__cephfs_path(from, a), rq__cephfs_path(to, b));
    return rc == 0 ? RQ_OK : rq__cephfs_fail(v, rc, "link", to, why);
}

static rq_err cephfs_sync_dir(rq_vfs *base, const char *dir, rq_error *why)
{
    rq__cephfs *v = of(base);
    char at[RQ_PATH_MAX + 1];
    int fd = ceph_open(v->mount, rq__cephfs_path(dir, at), O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0) return rq__cephfs_fail(v, fd, "sync folder", dir, why);
    int rc = ceph_fsync(v->mount, fd, 0);
    (void)ceph_close(v->mount, fd);
    return rc == 0 ? RQ_OK : rq__cephfs_fail(v, rc, "sync folder", dir, why);
}

static rq_err cephfs_sync_all(rq_vfs *base, rq_error *why)
{
    rq__cephfs *v = of(base);
    int rc = ceph_sync_fs(v->mount);
    return rc == 0 ? RQ_OK : rq__cephfs_fail(v, rc, "sync", "", why);
}

static int remove_if_same(rq__cephfs *v, const char *path, const rq_file_id *id)
{
    Inode *in, *folder;
    const char *name;
    struct ceph_statx st;
    int rc = rq__cephfs_walk(v, path, &in, &st);
    if (rc != 0) return rc;
    ceph_ll_put(v->mount, in);
    if (st.stx_dev != id->device || st.stx_ino != id->inode) return -ECANCELED;
    rc = rq__cephfs_walk_folder(v, path, &folder, &name);
    if (rc != 0) return rc;
    rc = ceph_ll_unlink(v->mount, folder, name, ceph_mount_perms(v->mount));
    ceph_ll_put(v->mount, folder);
    return rc;
}

static rq_err cephfs_remove_file(rq_vfs *base, const char *path, const rq_file_id *id,
                                 rq_error *why)
{
    rq__cephfs *v = of(base);
    int rc = remove_if_same(v, path, id);
    if (rc == -ECANCELED)
        return rq_fail(why, RQ_E_CONFLICT, "cannot remove %s/%s: another file has this name now",
                       v->name, path);
    if (rc == -ELOOP)
        return rq_fail(why, RQ_E_PERMISSION, "cannot remove %s/%s: symbolic links are not followed",
                       v->name, path);
    return rc == 0 ? RQ_OK : rq__cephfs_fail(v, rc, "remove", path, why);
}

static rq_err cephfs_restrict_mode(rq_vfs *base, const char *path, unsigned *ret_was, rq_error *why)
{
    rq__cephfs *v = of(base);
    char at[RQ_PATH_MAX + 1];
    struct ceph_statx st;
    int rc = ceph_statx(v->mount, rq__cephfs_path(path, at), &st, CEPH_STATX_BASIC_STATS,
                        AT_SYMLINK_NOFOLLOW);
    if (rc == -ENOENT || rc == -ENOTDIR) return RQ_OK;
    if (rc != 0) return rq__cephfs_fail(v, rc, "stat", path, why);
    mode_t allowed = (S_ISDIR(st.stx_mode) ? v->folder_mode : rq__cephfs_file_mode(v)) | 07000;
    bool plain = S_ISDIR(st.stx_mode) || S_ISREG(st.stx_mode);
    if (!plain || st.stx_uid != geteuid() || (st.stx_mode & 07777 & ~allowed) == 0) return RQ_OK;
    rc = ceph_lchmod(v->mount, at, st.stx_mode & 07777 & allowed);
    if (rc != 0) return rq__cephfs_fail(v, rc, "change the mode of", path, why);
    *ret_was = st.stx_mode & 07777;
    return RQ_OK;
}

/* --- clients ------------------------------------------------------------------------------------ */

/* What the metadata server knows a client by: the UUID of its session. Folders of one file system may be those of
 * different clusters, whose processes may have the same names. */
static char *uuid_of(const char *root, const char *client)
{
    size_t size = sizeof "rorqual  " + strlen(root) + strlen(client);
    char *uuid = malloc(size);
    if (uuid != NULL) snprintf(uuid, size, "rorqual %s %s", root, client);
    return uuid;
}

/* The metadata server ends the session of the UUID, has the OSDs refuse the client, and gives others what it held.
 * 0 or a negative errno. */
static int evict(rq__cephfs *v, const char *uuid)
{
    pthread_mutex_lock(&v->evicting);
    int rc = ceph_start_reclaim(v->mount, uuid, CEPH_RECLAIM_RESET);
    ceph_finish_reclaim(v->mount);
    pthread_mutex_unlock(&v->evicting);
    return rc == -ENOENT ? 0 : rc; /* there is no such session */
}

static rq_err cephfs_evict(rq_vfs *base, const char *client, rq_error *why)
{
    rq__cephfs *v = of(base);
    char text[128], *uuid = uuid_of(strchr(v->name, '/'), client);
    if (uuid == NULL) return rq_no_memory(why);
    int rc = evict(v, uuid);
    free(uuid);
    if (rc == 0) return RQ_OK;
    if (rc == -ESHUTDOWN || rc == -ENOTCONN) tell_lost(v);
    return rq_fail(why, rc == -EOPNOTSUPP ? RQ_E_UNSUPPORTED : rq__errno_code(-rc),
                   "%s: the metadata server does not end the session of %s: %s", v->name, client,
                   strerror_r(-rc, text, sizeof text));
}

/* --- the mount ---------------------------------------------------------------------------------- */

static void cephfs_free(rq_vfs *base)
{
    rq__cephfs *v = of(base);
    rq__data_pools_clear(&v->pools);
    pthread_mutex_destroy(&v->evicting);
    if (v->mount != NULL) {
        (void)ceph_unmount(v->mount); /* writes back what was not synced */
        (void)ceph_release(v->mount);
    }
    free(v->name);
    free(v);
}

static const rq_vfs functions = {
    .open = rq__cephfs_open_file,
    .close = rq__cephfs_close,
    .read = rq__cephfs_read,
    .try_read = rq__cephfs_try_read,
    .in_sequence = rq__cephfs_in_sequence,
    .write = rq__cephfs_write,
    .sync = rq__cephfs_sync,
    .truncate = rq__cephfs_truncate,
    .size = rq__cephfs_size,
    .stat = cephfs_stat,
    .list = cephfs_list,
    .mkdir = cephfs_mkdir,
    .remove = cephfs_remove,
    .link = cephfs_link,
    .sync_dir = cephfs_sync_dir,
    .sync_all = cephfs_sync_all,
    .lock = rq__cephfs_lock,
    .identify = rq__cephfs_identify,
    .link_file = rq__cephfs_link_file,
    .share_file = rq__cephfs_share_file,
    .remove_file = cephfs_remove_file,
    .restrict_mode = cephfs_restrict_mode,
    .evict = cephfs_evict,
    .free = cephfs_free,
};

/* The cache has bytes that are to be written, and those read ahead. */
static const char *const settings[][2] = {{"client_mount_timeout", "20"},
                                          {"client_oc_size", "67108864"},
                                          {"client_oc_max_dirty", "33554432"},
                                          {"client_oc_target_dirty", "4194304"}};

static int configure(struct ceph_mount_info *mount, const rq_cephfs_options *o)
{
    int rc = ceph_conf_read_file(mount, o->conf);
    for (size_t i = 0; rc == 0 && i < RQ_ARRAY_LEN(settings); i++)
        rc = ceph_conf_set(mount, settings[i][0], settings[i][1]);
    if (rc == 0 && o->file_system != NULL) rc = ceph_select_filesystem(mount, o->file_system);
    return rc;
}

/* Before the mount, after which the session cannot get a name. */
static int name_client(struct ceph_mount_info *mount, const rq_cephfs_options *o)
{
    char *uuid = uuid_of(o->root, o->client);
    int rc = uuid == NULL ? -ENOMEM : ceph_init(mount);
    if (rc == 0) ceph_set_uuid(mount, uuid);
    free(uuid);
    return rc;
}

/* 0 or a negative errno. */
static int mount_at(const rq_cephfs_options *o, const char *root, struct ceph_mount_info **ret)
{
    struct ceph_mount_info *mount;
    int rc = ceph_create(&mount, o->user + strlen("client."));
    if (rc != 0) return rc;
    rc = configure(mount, o);
    if (rc == 0 && o->client != NULL) rc = name_client(mount, o);
    if (rc == 0) rc = ceph_mount(mount, root);
    if (rc == 0)
        *ret = mount;
    else
        (void)ceph_release(mount);
    return rc;
}

static rq_err fail_mount(const rq__cephfs *v, int rc, rq_error *why)
{
    if (rc == -ETIMEDOUT)
        return rq_fail(why, RQ_E_TIMEOUT, "%s: no metadata server answers", v->name);
    return rq_fail(why, rq__errno_code(-rc), "%s: cannot mount: %s", v->name, strerror(-rc));
}

static void unmount(struct ceph_mount_info *mount)
{
    (void)ceph_unmount(mount);
    (void)ceph_release(mount);
}

/* The folder is missing, or the file system is. */
static rq_err make_root(const rq__cephfs *v, const rq_cephfs_options *o, rq_error *why)
{
    struct ceph_mount_info *mount;
    int rc = mount_at(o, "/", &mount);
    if (rc == -ENOENT)
        return rq_fail(why, RQ_E_CONFIG, "%s: there is no such CephFS file system", v->name);
    if (rc == -EPERM || rc == -EACCES)
        return rq_fail(why, RQ_E_PERMISSION, "%s: the folder is missing, and %s may not create it",
                       v->name, o->user);
    if (rc != 0) return fail_mount(v, rc, why);
    rc = o->create ? ceph_mkdirs(mount, o->root, v->folder_mode) : -ENOENT;
    if (rc == 0 || rc == -EEXIST) rc = ceph_sync_fs(mount);
    unmount(mount);
    return rc == 0 ? RQ_OK
                   : rq_fail(why, rq__errno_code(-rc), "%s: cannot %s the folder: %s", v->name,
                             o->create ? "make" : "find", strerror(-rc));
}

/* In a session without a name: one that finds no folder keeps its name for a while, and no other session may have it. */
static rq_err look_for_root(const rq__cephfs *v, const rq_cephfs_options *o, rq_error *why)
{
    struct ceph_mount_info *mount;
    rq_cephfs_options unnamed = *o;
    unnamed.client = NULL;
    int rc = mount_at(&unnamed, o->root, &mount);
    if (rc == -ENOENT) return make_root(v, &unnamed, why);
    if (rc != 0) return fail_mount(v, rc, why);
    unmount(mount);
    return RQ_OK;
}

static rq_err mount_root(rq__cephfs *v, const rq_cephfs_options *o, rq_error *why)
{
    RQ_TRY(look_for_root(v, o, why));
    int rc = mount_at(o, o->root, &v->mount);
    if (rc != 0) return fail_mount(v, rc, why);
    (void)ceph_umask(v->mount, 0); /* modes are chosen by the caller */
    return RQ_OK;
}

static char *name_of(const rq_cephfs_options *o)
{
    const char *system = o->file_system == NULL ? "" : o->file_system;
    size_t size = sizeof "cephfs:" + strlen(system) + strlen(o->root);
    char *name = malloc(size);
    if (name != NULL) snprintf(name, size, "cephfs:%s%s", system, o->root);
    return name;
}

__attribute__((visibility("default"))) rq_cephfs_entry rq__cephfs_new;

rq_err rq__cephfs_new(const char *version, const rq_cephfs_options *o, rq_shared *pool,
                      rq_vfs **ret, rq_error *why)
{
    if (strcmp(version, RQ_VERSION) != 0)
        return rq_fail(why, RQ_E_UNSUPPORTED, "the plug-in for Ceph has version %s, not %s",
                       RQ_VERSION, version);
    rq__cephfs *v = calloc(1, sizeof *v);
    if (v == NULL) return rq_no_memory(why);
    v->base = functions;
    v->folder_mode = o->folder_mode;
    v->lost = o->lost;
    v->lost_ctx = o->lost_ctx;
    pthread_mutex_init(&v->evicting, NULL);
    rq__data_pools_init(&v->pools, rq__rados_of(pool)->cluster);
    v->name = name_of(o);
    rq_err rc = v->name == NULL ? rq_no_memory(why) : mount_root(v, o, why);
    if (rc == RQ_OK)
        *ret = &v->base;
    else
        cephfs_free(&v->base);
    return rc;
}
