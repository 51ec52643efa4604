/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a cluster is; see cluster.h. Objects on its storage:
 *
 *   cluster     "format 1\nid UUID\n": made by the first process; a process of another format is refused
 *   start-code  the last start code that was given, decimal: start codes of a cluster are unique and rise,
 *               whatever the clocks of its machines say
 */
#include "server/cluster.h"

#include "base/address.h"
#include "base/host_port.h"
#include "catalog/catalog.h"
#include "server/server_priv.h"
#include "vfs/cephfs.h"
#include "vfs/shared_rados.h"
#include "vfs/vfs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FORMAT 1
#define RADOS "rados:"
#define CEPHFS "cephfs:"
#define DEFAULT_SPACE "rorqual"
#define DEFAULT_CONF "/etc/ceph/ceph.conf"
#define DEFAULT_USER "client.admin"
#define TRIES 100 /* other processes that start at the same time are faster */

/* --- the text ------------------------------------------------------------------------------------ */

static rq_err check_address(const char *text, rq_error *why)
{
    char host[RQ_HOST_PORT_MAX];
    uint16_t port = 0;
    bool good = rq_host_port_split(rq_slice_cstr(text), host, sizeof host, &port) && port > 0;
    return good ? RQ_OK
                : rq_fail(why, RQ_E_CONFIG, "--cluster: zk: '%s' is not HOST:PORT of a ZooKeeper",
                          text);
}

/* ZooKeeper's own rules for paths, and below its own node nothing is kept. */
static rq_err check_root(const char *root, rq_error *why)
{
    size_t len = strlen(root);
    bool good = root[0] == '/' && len > 1 && len < 256 && root[len - 1] != '/' &&
                strstr(root, "//") == NULL && strstr(root, "/./") == NULL &&
                strstr(root, "/../") == NULL && strcmp(root + len - 2, "/.") != 0 &&
                (len < 3 || strcmp(root + len - 3, "/..") != 0);
    bool own = strncmp(root, "/zookeeper", 10) == 0 && (root[10] == '\0' || root[10] == '/');
    if (good && !own) return RQ_OK;
    return rq_fail(
        why, RQ_E_CONFIG,
        "--cluster: zk: '%s' cannot be the root of the cluster's znodes; use a path such as /hbase",
        root);
}

static rq_err append(rq_arena *arena, const char **list, const char *more, rq_error *why)
{
    *list = *list == NULL ? more : rq_arena_printf(arena, "%s,%s", *list, more);
    return *list == NULL ? rq_no_memory(why) : RQ_OK;
}

static rq_err add_zookeeper(char *text, rq_arena *arena, rq_cluster_place *ret, rq_error *why)
{
    char *slash = strchr(text, '/');
    if (ret->root != NULL)
        return rq_fail(why, RQ_E_CONFIG, "--cluster: zk: /ROOT must follow the last HOST:PORT");
    if (slash != NULL) {
        ret->root = rq_arena_cstr(arena, rq_slice_cstr(slash));
        if (ret->root == NULL) return rq_no_memory(why);
        RQ_TRY(check_root(ret->root, why));
        *slash = '\0';
    }
    RQ_TRY(check_address(text, why));
    return append(arena, &ret->quorum, text, why);
}

/* The value behind "KEY=", or NULL. */
static char *value_of(char *text, const char *key)
{
    size_t len = strlen(key);
    return strncmp(text, key, len) == 0 && text[len] == '=' ? text + len + 1 : NULL;
}

static rq_err set_once(const char *key, char *value, const char **ret, rq_error *why)
{
    if (*ret != NULL || *value == '\0')
        return rq_fail(why, RQ_E_CONFIG, "--cluster: %s= is %s", key,
                       *ret != NULL ? "given twice" : "empty");
    *ret = value;
    return RQ_OK;
}

static rq_err add_part(char *part, bool *in_zk, rq_arena *arena, rq_cluster_place *ret,
                       rq_error *why)
{
    const struct {
        const char *key;
        const char **ret;
    } others[] = {{"store", &ret->store},
                  {"secret", &ret->secret},
                  {"files", &ret->files},
                  {"conf", &ret->conf},
                  {"user", &ret->user}};
    char *zk = value_of(part, "zk");
    if (zk != NULL && ret->quorum != NULL)
        return rq_fail(why, RQ_E_CONFIG, "--cluster: zk= is given twice");
    if (zk != NULL || (*in_zk && strchr(part, '=') == NULL)) {
        *in_zk = true;
        return add_zookeeper(zk != NULL ? zk : part, arena, ret, why);
    }
    *in_zk = false;
    for (size_t i = 0; i < RQ_ARRAY_LEN(others); i++) {
        char *value = value_of(part, others[i].key);
        if (value != NULL) return set_once(others[i].key, value, others[i].ret, why);
    }
    return rq_fail(why, RQ_E_CONFIG,
                   "--cluster: '%s' is not valid; expected "
                   "zk=HOST:PORT[,HOST:PORT]...[/ROOT],store=DIR,secret=FILE; in Ceph: "
                   "store=rados:POOL[/NAMESPACE],files=cephfs:[NAME]/PATH or "
                   "files=DIR[,conf=FILE][,user=client.NAME]",
                   part);
}

/* "POOL[/NAMESPACE]", as Ceph's tools write it. */
static rq_err split_pool(rq_arena *arena, rq_cluster_place *p, rq_error *why)
{
    char *pool = rq_arena_cstr(arena, rq_slice_cstr(p->store + strlen(RADOS)));
    if (pool == NULL) return rq_no_memory(why);
    char *slash = strchr(pool, '/');
    if (slash != NULL) *slash = '\0';
    p->pool = pool;
    p->space = slash == NULL ? DEFAULT_SPACE : slash + 1;
    if (*p->pool != '\0' && *p->space != '\0' && strchr(p->space, '/') == NULL) return RQ_OK;
    return rq_fail(why, RQ_E_CONFIG,
                   "--cluster: store: '%s' is not rados:POOL or rados:POOL/NAMESPACE", p->store);
}

/* "[NAME]/PATH". The path has no "." and "..", because paths below it are checked as text. */
static rq_err split_cephfs(rq_arena *arena, rq_cluster_place *p, rq_error *why)
{
    char *name = rq_arena_cstr(arena, rq_slice_cstr(p->files + strlen(CEPHFS)));
    if (name == NULL) return rq_no_memory(why);
    char *slash = strchr(name, '/');
    size_t len = slash == NULL ? 0 : strlen(slash);
    if (len < 2 || slash[len - 1] == '/' || strstr(slash, "/.") != NULL ||
        strstr(slash, "//") != NULL)
        return rq_fail(why, RQ_E_CONFIG,
                       "--cluster: files: '%s' is not cephfs:/PATH or cephfs:NAME/PATH", p->files);
    p->files_root = rq_arena_cstr(arena, rq_slice_cstr(slash));
    *slash = '\0';
    p->file_system = *name == '\0' ? NULL : name;
    return p->files_root == NULL ? rq_no_memory(why) : RQ_OK;
}

static rq_err check_rados(rq_arena *arena, rq_cluster_place *p, rq_error *why)
{
    RQ_TRY(split_pool(arena, p, why));
    if (p->files == NULL)
        return rq_fail(
            why, RQ_E_CONFIG,
            "--cluster: files=cephfs:/PATH or files=DIR is missing: the folder for HFiles, in "
            "CephFS or in a file system that all servers mount; the pool has only logs and "
            "manifests");
    if (strncmp(p->files, CEPHFS, strlen(CEPHFS)) == 0) RQ_TRY(split_cephfs(arena, p, why));
    if (p->conf == NULL) p->conf = DEFAULT_CONF;
    if (p->user == NULL) p->user = DEFAULT_USER;
    if (strncmp(p->user, "client.", 7) == 0 && p->user[7] != '\0') return RQ_OK;
    return rq_fail(why, RQ_E_CONFIG, "--cluster: user: '%s' is not client.NAME", p->user);
}

static rq_err check_store(rq_arena *arena, rq_cluster_place *p, rq_error *why)
{
    if (strncmp(p->store, RADOS, strlen(RADOS)) == 0) return check_rados(arena, p, why);
    if (p->files == NULL && p->conf == NULL && p->user == NULL) return RQ_OK;
    return rq_fail(why, RQ_E_CONFIG,
                   "--cluster: files=, conf= and user= belong to a store in Ceph, "
                   "store=rados:POOL; the store here is the folder '%s'",
                   p->store);
}

static rq_err check_complete(rq_arena *arena, rq_cluster_place *p, rq_error *why)
{
    if (p->quorum == NULL)
        return rq_fail(why, RQ_E_CONFIG, "--cluster: zk=HOST:PORT/ROOT is missing");
    if (p->store == NULL)
        return rq_fail(why, RQ_E_CONFIG,
                       "--cluster: store=DIR is missing: the folder that all servers share; with "
                       "Ceph: store=rados:POOL,files=cephfs:/PATH");
    if (p->secret == NULL)
        return rq_fail(why, RQ_E_CONFIG,
                       "--cluster: secret=FILE is missing: servers accept calls only from servers "
                       "with the cluster's secret. Create the file with (umask 077; head -c 32 "
                       "/dev/urandom | base64 >FILE) and copy it to all servers");
    RQ_TRY(check_store(arena, p, why));
    return check_root(p->root, why);
}

rq_err rq__cluster_parse(const char *text, const char *root, rq_arena *arena, rq_cluster_place *ret,
                         rq_error *why)
{
    bool in_zk = false;
    *ret = (rq_cluster_place){0};
    char *rest = rq_arena_cstr(arena, rq_slice_cstr(text));
    if (rest == NULL) return rq_no_memory(why);
    for (char *part; (part = strsep(&rest, ",")) != NULL;)
        RQ_TRY(add_part(part, &in_zk, arena, ret, why));
    if (ret->root == NULL) ret->root = root;
    return check_complete(arena, ret, why);
}

/* --- the storage --------------------------------------------------------------------------------- */

static rq_err open_folder(const char *path, unsigned mode, rq_vfs **ret, rq_error *why)
{
    RQ_TRY(rq__server_make_folder(path, mode, why));
    RQ_TRY(rq_vfs_posix_new(path, ret, why));
    rq_vfs_posix_set_mode(*ret, mode);
    return RQ_OK;
}

static rq_err make_below(const char *folder, const char *name, unsigned mode, rq_vfs **ret,
                         rq_error *why)
{
    char path[4096];
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path)
        return rq_fail(why, RQ_E_CONFIG, "--cluster: store: the path is too long");
    return open_folder(path, mode, ret, why);
}

static bool is_of_files(const char *name)
{
    return strcmp(name, ".rorqual") == 0 || strcmp(name, "hbase.version") == 0;
}

static bool is_of_store(const char *name)
{
    return strcmp(name, "files") == 0 || strcmp(name, "shared") == 0 ||
           strcmp(name, "lost+found") == 0;
}

/* The first entry that does not belong to a cluster's store, or NULL. The files of a data folder come first: they tell what
 * the folder is. */
static const char *find_foreign(const rq_dir_entry *entries, size_t count)
{
    const char *foreign = NULL;
    for (size_t i = 0; i < count; i++) {
        if (is_of_files(entries[i].name)) return entries[i].name;
        if (foreign == NULL && !is_of_store(entries[i].name)) foreign = entries[i].name;
    }
    return foreign;
}

/* Nothing but a cluster's two folders. */
static rq_err check_entries(const char *folder, rq_vfs *v, rq_error *why)
{
    rq_arena a = {0};
    rq_dir_entry *entries;
    size_t count = 0;
    rq_err rc = rq_vfs_list(v, "", &a, &entries, &count, why);
    const char *name = rc == RQ_OK ? find_foreign(entries, count) : NULL;
    if (name != NULL && is_of_files(name))
        rc = rq_fail(why, RQ_E_STATE,
                     "store %s is the data folder of a standalone server or of HBase, or has "
                     "the files of a cluster in Ceph (it has %s). Nothing was changed",
                     folder, name);
    else if (name != NULL)
        rc = rq_fail(why, RQ_E_UNSUPPORTED,
                     "store %s contains %s, so it is not a cluster's store. Nothing was "
                     "changed; use an empty folder or one that does not exist",
                     folder, name);
    rq_arena_clear(&a);
    return rc;
}

static rq_err check_folder(const char *folder, unsigned mode, rq_error *why)
{
    rq_vfs *v;
    RQ_TRY(rq__server_make_folder(folder, mode, why));
    RQ_TRY(rq_vfs_posix_new(folder, &v, why));
    rq_err rc = check_entries(folder, v, why);
    rq_vfs_free(v);
    return rc;
}

static rq_err read_identity(rq_cluster_store *s, rq_arena *arena, rq_error *why)
{
    rq_slice bytes;
    uint64_t generation;
    int format = 0;
    RQ_TRY(rq_object_get(s->shared, "cluster", arena, &bytes, &generation, why));
    const char *text = rq_arena_cstr(arena, bytes);
    if (text == NULL) return rq_no_memory(why);
    if (sscanf(text, "format %d\nid %36[0-9a-f-]\n", &format, s->cluster_id) < 1 || format < 1)
        return rq_fail(why, RQ_E_CORRUPT, "the storage's object \"cluster\" is malformed");
    if (format > FORMAT)
        return rq_fail(why, RQ_E_VERSION,
                       "the cluster's storage has format %d, this server supports up to %d: a "
                       "newer version wrote it",
                       format, FORMAT);
    return strlen(s->cluster_id) == RQ_CLUSTER_ID_SIZE - 1
               ? RQ_OK
               : rq_fail(why, RQ_E_CORRUPT, "the storage's object \"cluster\" has no id");
}

/* Where the logs are not in the files' file system, a folder is claimed first, so that processes with different folders
 * cannot make one cluster. */
static rq_err make_identity(rq_cluster_store *s, rq_executor *ex, rq_arena *arena, rq_error *why)
{
    uint64_t generation;
    rq_root_make_cluster_id(ex, s->cluster_id);
    if (s->shared_files == NULL) RQ_TRY(rq_root_claim(s->files, s->cluster_id, why));
    const char *text = rq_arena_printf(arena, "format %d\nid %s\n", FORMAT, s->cluster_id);
    if (text == NULL) return rq_no_memory(why);
    return rq_object_cas(s->shared, "cluster", 0, rq_slice_cstr(text), &generation, why);
}

static rq_err identify(rq_cluster_store *s, rq_executor *ex, rq_error *why)
{
    rq_arena a = {0};
    rq_error first = {0}, own = {0};
    rq_err rc = read_identity(s, &a, &own);
    if (rc ==
        RQ_E_NOT_FOUND) { /* another process may be faster, which has then also taken the folder */
        rq_err made = make_identity(s, ex, &a, &first);
        rq_error_clear(&own);
        rc = read_identity(s, &a, &own);
        if (rc == RQ_E_NOT_FOUND && made != RQ_OK) {
            rc = made;
            own = first;
        }
    }
    rq_arena_clear(&a);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", own.message);
}

static rq_err open_in_folder(const char *folder, unsigned mode, rq_executor *ex,
                             rq_cluster_store *ret, rq_error *why)
{
    rq_error own = {0};
    RQ_TRY(check_folder(folder, mode, why));
    RQ_TRY(make_below(folder, "files", mode, &ret->files, why));
    RQ_TRY(make_below(folder, "shared", mode, &ret->shared_files, why));
    RQ_TRY(rq_shared_posix_new(ret->shared_files, ex, NULL, NULL, &ret->shared));
    RQ_TRY(identify(ret, ex, why));
    rq_err rc = rq_root_join(ret->files, ret->cluster_id, &own);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "store %s/files: %s", folder, own.message);
}

static rq_err connect_to_pool(const rq_cluster_place *p, const char *plugin, rq_executor *ex,
                              rq_cluster_store *ret, rq_error *why)
{
    const rq_rados_options o = {
        .conf = p->conf, .user = p->user, .pool = p->pool, .space = p->space};
    return rq_shared_rados_open(plugin, &o, ex, &ret->shared, why);
}

static rq_err open_mounted(const rq_cluster_place *p, unsigned mode, bool create, rq_vfs **ret,
                           rq_error *why)
{
    struct stat st;
    if (!create && stat(p->files, &st) != 0 && errno == ENOENT)
        return rq_fail(why, RQ_E_NOT_FOUND, "the folder does not exist");
    return open_folder(p->files, mode, ret, why);
}

static rq_cephfs_options cephfs_options(const rq_cluster_place *p, const rq_cluster_store *s)
{
    return (rq_cephfs_options){.conf = p->conf,
                               .user = p->user,
                               .file_system = p->file_system,
                               .root = p->files_root,
                               .lost = s->process.lost,
                               .lost_ctx = s->process.lost_ctx};
}

/* The mount is named by the process's ServerName, so that whoever fences the server can end the mount. */
static rq_err open_cephfs(const rq_cluster_place *p, const char *plugin, unsigned mode, bool create,
                          rq_executor *ex, rq_cluster_store *s, rq_error *why)
{
    rq_cephfs_options o = cephfs_options(p, s);
    RQ_TRY(rq__cluster_start_code(s->shared, ex, &s->start_code, why));
    const rq_server_name name = {
        .host = s->process.host, .port = s->process.port, .start_code = s->start_code};
    const rq_server_name *client = rq_server_name_new(&name);
    if (client == NULL) return rq_no_memory(why);
    o.client = client->text;
    o.create = create;
    o.folder_mode = mode;
    rq_err rc = rq_cephfs_open(plugin, &o, s->shared, &s->files, why);
    rq_server_name_unref(client);
    return rc;
}

static rq_err fail_missing(const rq_cluster_place *p, const rq_cluster_store *s, rq_error *why)
{
    return rq_fail(
        why, RQ_E_STATE,
        "files: %s does not exist, but cluster %s has data there. Is its file system mounted?",
        p->files, s->cluster_id);
}

/* A folder is made with the cluster, not where a mount is missing. */
static rq_err open_files(const rq_cluster_place *p, const char *plugin, unsigned mode,
                         rq_executor *ex, rq_cluster_store *s, rq_error *why)
{
    rq_arena a = {0};
    rq_error own = {0};
    rq_err rc = read_identity(s, &a, &own); /* first: the folder is older */
    rq_arena_clear(&a);
    bool create = rc == RQ_E_NOT_FOUND;
    if (rc != RQ_OK && !create) return rq_fail(why, rc, "store %s: %s", p->store, own.message);
    rq_error_clear(&own);
    rc = p->files_root == NULL ? open_mounted(p, mode, create, &s->files, &own)
                               : open_cephfs(p, plugin, mode, create, ex, s, &own);
    if (rc != RQ_E_NOT_FOUND || create)
        return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", own.message);
    return fail_missing(p, s, why);
}

static rq_err take_files(rq_cluster_store *s, rq_executor *ex, rq_error *why)
{
    RQ_TRY(identify(s, ex, why));
    RQ_TRY(rq_root_check_claim(s->files, s->cluster_id, why));
    return rq_root_join(s->files, s->cluster_id, why);
}

static rq_err open_in_ceph(const rq_cluster_place *p, unsigned mode, rq_executor *ex,
                           rq_cluster_store *ret, rq_error *why)
{
    rq_error own = {0};
    char plugin[4096];
    RQ_TRY(rq_shared_rados_find(plugin, sizeof plugin, why));
    RQ_TRY(connect_to_pool(p, plugin, ex, ret, why));
    RQ_TRY(open_files(p, plugin, mode, ex, ret, why));
    rq_err rc = take_files(ret, ex, &own);
    return rc == RQ_OK
               ? RQ_OK
               : rq_fail(why, rc, "store %s, files %s: %s", p->store, p->files, own.message);
}

/* The path by which clients name files for bulk loads. */
static rq_err find_path(const rq_cluster_place *p, rq_cluster_store *ret, rq_error *why)
{
    rq_arena a = {0};
    const char *path = p->pool != NULL ? p->files : rq_arena_printf(&a, "%s/files", p->store);
    ret->files_path = path == NULL ? NULL : realpath(path, NULL);
    rq_err rc = RQ_OK;
    if (path == NULL)
        rc = rq_no_memory(why);
    else if (ret->files_path == NULL)
        rc = rq_fail(why, RQ_E_IO, "files: %s: %s", path, strerror(errno));
    rq_arena_clear(&a);
    return rc;
}

rq_err rq__cluster_store_open(const rq_cluster_place *place, unsigned mode, rq_executor *ex,
                              const rq_cluster_process *process, rq_cluster_store *ret,
                              rq_error *why)
{
    *ret = (rq_cluster_store){.process = *process};
    RQ_TRY(place->pool != NULL ? open_in_ceph(place, mode, ex, ret, why)
                               : open_in_folder(place->store, mode, ex, ret, why));
    if (ret->start_code == 0)
        RQ_TRY(rq__cluster_start_code(ret->shared, ex, &ret->start_code, why));
    return place->files_root != NULL ? RQ_OK : find_path(place, ret, why);
}

void rq__cluster_store_close(rq_cluster_store *s)
{
    rq_vfs_free(s->files); /* in CephFS: before the connection of `shared` */
    rq_shared_free(s->shared);
    rq_vfs_free(s->shared_files);
    free(s->files_path);
}

/* --- a look that changes nothing ------------------------------------------------------------------- */

/* RQ_E_NOT_FOUND: there is no cluster yet. */
static rq_err look_for_identity(rq_cluster_store *s, rq_error *why)
{
    rq_arena a = {0};
    rq_err rc = read_identity(s, &a, why);
    rq_arena_clear(&a);
    return rc;
}

static rq_err look_in_folder(const char *folder, rq_executor *ex, rq_cluster_store *s,
                             rq_error *why)
{
    char path[4096];
    struct stat st;
    if ((size_t)snprintf(path, sizeof path, "%s/shared", folder) >= sizeof path)
        return rq_fail(why, RQ_E_CONFIG, "--cluster: store: the path is too long");
    if (stat(folder, &st) != 0 && errno == ENOENT)
        return rq_fail(why, RQ_E_NOT_FOUND, "the folder does not exist");
    if (access(folder, R_OK | W_OK | X_OK) != 0)
        return rq_fail(why, RQ_E_PERMISSION, "%s", strerror(errno));
    RQ_TRY(rq_vfs_posix_new(folder, &s->files, why));
    RQ_TRY(check_entries(folder, s->files, why));
    if (stat(path, &st) != 0 && errno == ENOENT)
        return rq_fail(why, RQ_E_NOT_FOUND, "the folder is empty");
    RQ_TRY(rq_vfs_posix_new(path, &s->shared_files, why));
    RQ_TRY(rq_shared_posix_new(s->shared_files, ex, NULL, NULL, &s->shared));
    return look_for_identity(s, why);
}

/* RQ_E_NOT_FOUND: the folder is missing. */
static rq_err look_for_files(const rq_cluster_place *p, const char *plugin, rq_cluster_store *s,
                             rq_error *why)
{
    const rq_cephfs_options o = cephfs_options(p, s);
    return p->files_root == NULL ? open_mounted(p, 0700, false, &s->files, why)
                                 : rq_cephfs_open(plugin, &o, s->shared, &s->files, why);
}

static rq_err look_in_ceph(const rq_cluster_place *p, rq_executor *ex, rq_cluster_store *s,
                           rq_error *why)
{
    char plugin[4096];
    rq_error own = {0};
    RQ_TRY(rq_shared_rados_find(plugin, sizeof plugin, why));
    RQ_TRY(connect_to_pool(p, plugin, ex, s, why));
    rq_err found = look_for_identity(s, &own);
    if (found != RQ_OK && found != RQ_E_NOT_FOUND) return rq_fail(why, found, "%s", own.message);
    rq_error_clear(&own);
    rq_err rc = look_for_files(p, plugin, s, &own);
    if (rc != RQ_OK && rc != RQ_E_NOT_FOUND) return rq_fail(why, rc, "%s", own.message);
    if (found != RQ_OK) return found;
    return rc != RQ_OK ? fail_missing(p, s, why)
                       : rq_root_check_claim(s->files, s->cluster_id, why);
}

rq_err rq__cluster_store_look(const rq_cluster_place *place, rq_executor *ex,
                              char ret_id[RQ_CLUSTER_ID_SIZE], rq_error *why)
{
    rq_cluster_store s = {0};
    rq_error own = {0};
    rq_err rc = place->pool != NULL ? look_in_ceph(place, ex, &s, &own)
                                    : look_in_folder(place->store, ex, &s, &own);
    memcpy(ret_id, rc == RQ_OK ? s.cluster_id : "", rc == RQ_OK ? RQ_CLUSTER_ID_SIZE : 1);
    rq__cluster_store_close(&s);
    if (rc == RQ_OK || rc == RQ_E_NOT_FOUND) return RQ_OK;
    return rq_fail(why, rc, "store %s: %s", place->store, own.message);
}

/* --- start codes --------------------------------------------------------------------------------- */

static rq_err read_code(rq_shared *shared, rq_arena *arena, int64_t *ret, uint64_t *ret_generation,
                        rq_error *why)
{
    rq_slice bytes;
    rq_error own = {0};
    *ret = 0;
    *ret_generation = 0;
    rq_err rc = rq_object_get(shared, "start-code", arena, &bytes, ret_generation, &own);
    if (rc == RQ_E_NOT_FOUND) return RQ_OK;
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", own.message);
    const char *text = rq_arena_cstr(arena, bytes);
    if (text == NULL) return rq_no_memory(why);
    *ret = strtoll(text, NULL, 10);
    return *ret > 0
               ? RQ_OK
               : rq_fail(why, RQ_E_CORRUPT, "the storage's object \"start-code\" is malformed");
}

/* RQ_E_CONFLICT: another process was faster. After another error the number is not used. */
static rq_err take_code(rq_shared *shared, rq_executor *ex, int64_t *ret, rq_error *why)
{
    rq_arena a = {0};
    uint64_t generation;
    char text[24];
    int64_t last, now = ex->now_ms(ex);
    rq_err rc = read_code(shared, &a, &last, &generation, why);
    if (rc == RQ_OK) {
        *ret = now > last ? now : last + 1;
        snprintf(text, sizeof text, "%" PRId64, *ret);
        rc = rq_object_cas(shared, "start-code", generation, rq_slice_cstr(text), &generation, why);
    }
    rq_arena_clear(&a);
    return rc;
}

rq_err rq__cluster_start_code(rq_shared *shared, rq_executor *ex, int64_t *ret, rq_error *why)
{
    rq_error own = {0};
    rq_err rc = RQ_E_CONFLICT;
    for (int i = 0; rc == RQ_E_CONFLICT && i < TRIES; i++) {
        rq_error_clear(&own);
        rc = take_code(shared, ex, ret, &own);
    }
    return rc == RQ_OK
               ? RQ_OK
               : rq_fail(why, rc, "cannot reserve a start code for this server: %s", own.message);
}
