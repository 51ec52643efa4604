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
#include "server/server_priv.h"
#include "vfs/vfs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define FORMAT 1
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
    return rq_fail(why, RQ_E_CONFIG,
                   "--cluster: zk: '%s' cannot be the root of the cluster's znodes; /hbase is one",
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
        return rq_fail(why, RQ_E_CONFIG, "--cluster: zk: /ROOT comes behind the last ZooKeeper");
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
    char *zk = value_of(part, "zk"), *store = value_of(part, "store");
    char *secret = value_of(part, "secret");
    if (zk != NULL && ret->quorum != NULL)
        return rq_fail(why, RQ_E_CONFIG, "--cluster: zk= is given twice");
    if (zk != NULL || (*in_zk && strchr(part, '=') == NULL)) {
        *in_zk = true;
        return add_zookeeper(zk != NULL ? zk : part, arena, ret, why);
    }
    *in_zk = false;
    if (store != NULL) return set_once("store", store, &ret->store, why);
    if (secret != NULL) return set_once("secret", secret, &ret->secret, why);
    return rq_fail(why, RQ_E_CONFIG,
                   "--cluster: '%s' is not understood: "
                   "zk=HOST:PORT[,HOST:PORT]...[/ROOT],store=DIR,secret=FILE",
                   part);
}

static rq_err check_complete(const rq_cluster_place *p, rq_error *why)
{
    if (p->quorum == NULL)
        return rq_fail(why, RQ_E_CONFIG, "--cluster: zk=HOST:PORT/ROOT is missing");
    if (p->store == NULL)
        return rq_fail(why, RQ_E_CONFIG,
                       "--cluster: store=DIR is missing, the folder that all servers see");
    if (p->secret == NULL)
        return rq_fail(why, RQ_E_CONFIG,
                       "--cluster: secret=FILE is missing: servers take calls only from those that "
                       "have the cluster's secret. Make one: (umask 077; head -c 32 /dev/urandom | "
                       "base64 >FILE), and copy it to all servers");
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
    return check_complete(ret, why);
}

/* --- the storage --------------------------------------------------------------------------------- */

static rq_err make_below(const char *folder, const char *name, unsigned mode, rq_vfs **ret,
                         rq_error *why)
{
    char path[4096];
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path)
        return rq_fail(why, RQ_E_CONFIG, "--cluster: store: the path is too long");
    RQ_TRY(rq__server_make_folder(path, mode, why));
    RQ_TRY(rq_vfs_posix_new(path, ret, why));
    rq_vfs_posix_set_mode(*ret, mode);
    return RQ_OK;
}

/* Nothing but a cluster's two folders. */
static rq_err check_entries(const char *folder, rq_vfs *v, rq_error *why)
{
    rq_arena a = {0};
    rq_dir_entry *entries;
    size_t count = 0;
    rq_err rc = rq_vfs_list(v, "", &a, &entries, &count, why);
    for (size_t i = 0; rc == RQ_OK && i < count; i++) {
        const char *name = entries[i].name;
        bool ours = strcmp(name, "files") == 0 || strcmp(name, "shared") == 0 ||
                    strcmp(name, "lost+found") == 0;
        bool standalone = strcmp(name, ".rorqual") == 0 || strcmp(name, "hbase.version") == 0;
        if (standalone)
            rc = rq_fail(why, RQ_E_STATE,
                         "store %s is the data folder of a standalone server or of HBase (it has "
                         "%s), not a cluster's. Nothing was changed",
                         folder, name);
        else if (!ours)
            rc = rq_fail(why, RQ_E_UNSUPPORTED,
                         "store %s has %s, so it is not a cluster's. Nothing was changed; use an "
                         "empty folder or one that does not exist",
                         folder, name);
    }
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
                       "the cluster has format %d, this server knows up to %d: it was written by a "
                       "newer version",
                       format, FORMAT);
    return strlen(s->cluster_id) == RQ_CLUSTER_ID_SIZE - 1
               ? RQ_OK
               : rq_fail(why, RQ_E_CORRUPT, "the storage's object \"cluster\" has no id");
}

static rq_err make_identity(rq_cluster_store *s, rq_executor *ex, rq_arena *arena, rq_error *why)
{
    uint64_t generation;
    rq_root_make_cluster_id(ex, s->cluster_id);
    const char *text = rq_arena_printf(arena, "format %d\nid %s\n", FORMAT, s->cluster_id);
    if (text == NULL) return rq_no_memory(why);
    return rq_object_cas(s->shared, "cluster", 0, rq_slice_cstr(text), &generation, why);
}

static rq_err identify(rq_cluster_store *s, rq_executor *ex, rq_error *why)
{
    rq_arena a = {0};
    rq_error own = {0};
    rq_err rc = read_identity(s, &a, &own);
    if (rc == RQ_E_NOT_FOUND) {
        rq_error_clear(&own);
        rc = make_identity(s, ex, &a, &own);
        rq_error_clear(&own);
        if (rc == RQ_OK || rc == RQ_E_CONFLICT) rc = read_identity(s, &a, &own);
    }
    rq_arena_clear(&a);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", own.message);
}

rq_err rq__cluster_store_open(const char *folder, unsigned mode, rq_executor *ex,
                              rq_cluster_store *ret, rq_error *why)
{
    rq_error own = {0};
    *ret = (rq_cluster_store){0};
    RQ_TRY(check_folder(folder, mode, why));
    RQ_TRY(make_below(folder, "files", mode, &ret->files, why));
    RQ_TRY(make_below(folder, "shared", mode, &ret->shared_files, why));
    RQ_TRY(rq_shared_posix_new(ret->shared_files, ex, NULL, NULL, &ret->shared));
    RQ_TRY(identify(ret, ex, why));
    rq_err rc = rq_root_join(ret->files, ret->cluster_id, &own);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "store %s/files: %s", folder, own.message);
}

void rq__cluster_store_close(rq_cluster_store *s)
{
    rq_shared_free(s->shared);
    rq_vfs_free(s->shared_files);
    rq_vfs_free(s->files);
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
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "no start code: %s", own.message);
}
