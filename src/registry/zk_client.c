/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions by libzookeeper-mt; see zk_client.h.
 *
 * The library has two threads for each session: one for its socket and pings, one for callbacks. A
 * live session does not prove that the server's event loops run, because the library's threads send
 * the pings. The only function of ours that they call is `on_event`, which posts a task to the
 * session's lane.
 */
#include "registry/zk_client.h"

#define THREADED /* the functions that wait */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zookeeper/zookeeper.h>

#define LIBRARY "libzookeeper_mt.so.2"
#define VALUE_MAX (1 << 20) /* ZooKeeper's own limit (jute.maxbuffer) */

/* ZooKeeper's numbers. The library has them as variables, which would have to be looked up with
 * dlsym. */
enum { EVENT_SESSION = -1, STATE_CONNECTED = 3, STATE_EXPIRED = -112, STATE_AUTH_FAILED = -113 };
enum { FLAG_EPHEMERAL = 1, PERMS_ALL = 0x1f };

/* The functions of the library that are called. */
#define FUNCTIONS(X)                                                                               \
    X(zookeeper_init2)                                                                             \
    X(zookeeper_close)                                                                             \
    X(zoo_set_debug_level)                                                                         \
    X(zoo_client_id)                                                                               \
    X(zoo_create)                                                                                  \
    X(zoo_get)                                                                                     \
    X(zoo_set)                                                                                     \
    X(zoo_delete)                                                                                  \
    X(zoo_delete_op_init)                                                                          \
    X(zoo_multi)                                                                                   \
    X(zoo_get_children)                                                                            \
    X(zerror)                                                                                      \
    X(deallocate_String_vector)

struct rq__zk {
    void *library;
    zhandle_t *handle;
    rq__zk_options options;
#define X(name) __typeof__(name) *name;
    FUNCTIONS(X)
#undef X
    char *buffer; /* of VALUE_MAX bytes */
};

static rq_err open_library(rq__zk *z, rq_error *why)
{
    z->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (z->library == NULL)
        return rq_fail(why, RQ_E_UNSUPPORTED,
                       "a cluster needs ZooKeeper's client library (Debian: libzookeeper-mt2): %s",
                       dlerror());
#define X(name)                                                                                    \
    z->name = (__typeof__(name) *)dlsym(z->library, #name);                                        \
    if (z->name == NULL) return rq_fail(why, RQ_E_UNSUPPORTED, LIBRARY " has no " #name);
    FUNCTIONS(X)
#undef X
    return RQ_OK;
}

rq_err rq__zk_can_open(rq_error *why)
{
    rq__zk z = {0}; /* the library stays loaded, as with a session */
    return open_library(&z, why);
}

/* --- events -------------------------------------------------------------------------------- */

typedef struct event {
    rq_task task;
    void (*call)(void *ctx, uint64_t session, rq__zk_event_kind kind);
    void *ctx;
    uint64_t session;
    rq__zk_event_kind kind;
} event;

static void deliver(rq_task *task)
{
    event *e = RQ_CONTAINER_OF(task, event, task);
    e->call(e->ctx, e->session, e->kind);
    free(e);
}

static rq__zk_event_kind kind_of(int type, int state)
{
    if (type != EVENT_SESSION) return RQ__ZK_CHANGED;
    if (state == STATE_CONNECTED) return RQ__ZK_CONNECTED;
    bool over = state == STATE_EXPIRED || state == STATE_AUTH_FAILED;
    return over ? RQ__ZK_EXPIRED : RQ__ZK_DISCONNECTED;
}

/* Runs on the library's thread. */
static void on_event(zhandle_t *handle, int type, int state, const char *path, void *ctx)
{
    const rq__zk *z = ctx;
    (void)handle;
    (void)path;
    event *e = malloc(sizeof *e);
    RQ_ASSERT(e != NULL); /* an event that is lost would leave a dead master in its place */
    *e = (event){.call = z->options.event, .ctx = z->options.ctx, .session = z->options.session};
    e->kind = kind_of(type, state);
    e->task.run = deliver;
    rq_lane_post(z->options.lane, &e->task);
}

/* Drops the library's log: events and errors tell what matters. */
static void drop_line(const char *message)
{
    (void)message;
}

rq_err rq__zk_open(const rq__zk_options *o, rq__zk **ret, rq_error *why)
{
    rq__zk *z = calloc(1, sizeof *z);
    if (z == NULL) return rq_no_memory(why);
    z->options = *o;
    z->buffer = malloc(VALUE_MAX);
    rq_err rc = z->buffer == NULL ? rq_no_memory(why) : open_library(z, why);
    if (rc == RQ_OK) {
        z->zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
        z->handle = z->zookeeper_init2(o->quorum, on_event, o->timeout_ms, NULL, z, 0, drop_line);
        if (z->handle == NULL)
            rc = rq_fail(why, RQ_E_CONFIG, "cannot reach ZooKeeper at %s: %s", o->quorum,
                         strerror(errno));
    }
    if (rc == RQ_OK)
        *ret = z;
    else
        rq__zk_close(z);
    return rc;
}

void rq__zk_close(rq__zk *z)
{
    if (z == NULL) return;
    if (z->handle != NULL) {
        int closed = z->zookeeper_close(z->handle);
        (void)closed; /* without a connection the session ends by its time */
    }
    /* The library stays loaded: its threads may still be executing its code while they end. */
    free(z->buffer);
    free(z);
}

/* --- nodes --------------------------------------------------------------------------------- */

static rq_err code_of(int rc)
{
    switch (rc) {
    case ZOK:
        return RQ_OK;
    case ZNONODE:
        return RQ_E_NOT_FOUND;
    case ZNODEEXISTS:
    case ZNOTEMPTY:
        return RQ_E_EXISTS;
    case ZBADVERSION:
        return RQ_E_CONFLICT;
    case ZNOAUTH:
        return RQ_E_PERMISSION;
    case ZSESSIONEXPIRED:
    case ZINVALIDSTATE:
    case ZAUTHFAILED:
    case ZCLOSING:
        return RQ_E_CLOSED;
    case ZCONNECTIONLOSS:
    case ZOPERATIONTIMEOUT:
        return RQ_E_TIMEOUT;
    case ZBADARGUMENTS:
        return RQ_E_INVALID;
    default:
        return RQ_E_IO;
    }
}

static rq_err result(const rq__zk *z, int rc, const char *verb, const char *path, rq_error *why)
{
    if (rc == ZOK) return RQ_OK;
    return rq_fail(why, code_of(rc), "ZooKeeper: cannot %s %s: %s", verb, path, z->zerror(rc));
}

rq_err rq__zk_create(rq__zk *z, const char *path, rq_slice value, bool ephemeral, rq_error *why)
{
    char scheme[] = "world", anyone[] = "anyone";
    struct ACL all = {.perms = PERMS_ALL, .id = {.scheme = scheme, .id = anyone}};
    struct ACL_vector acl = {.count = 1, .data = &all};
    int rc = z->zoo_create(z->handle, path, (const char *)value.ptr, (int)value.len, &acl,
                           ephemeral ? FLAG_EPHEMERAL : 0, NULL, 0);
    return result(z, rc, "create", path, why);
}

rq_err rq__zk_get(rq__zk *z, const char *path, bool watch, rq_arena *arena, rq__zk_node *ret,
                  rq_error *why)
{
    struct Stat stat;
    int len = VALUE_MAX;
    int rc = z->zoo_get(z->handle, path, watch, z->buffer, &len, &stat);
    RQ_TRY(result(z, rc, "read", path, why));
    /* -1: a node without a value */
    ret->value = rq_arena_copy(arena, rq_slice_of(z->buffer, len < 0 ? 0 : (size_t)len));
    if (ret->value.ptr == NULL) return rq_no_memory(why);
    ret->version = stat.version;
    ret->own =
        stat.ephemeralOwner != 0 && stat.ephemeralOwner == z->zoo_client_id(z->handle)->client_id;
    return RQ_OK;
}

rq_err rq__zk_set(rq__zk *z, const char *path, rq_slice value, rq_error *why)
{
    int rc = z->zoo_set(z->handle, path, (const char *)value.ptr, (int)value.len, -1);
    return result(z, rc, "write", path, why);
}

rq_err rq__zk_remove(rq__zk *z, const char *path, int32_t version, rq_error *why)
{
    return result(z, z->zoo_delete(z->handle, path, version), "remove", path, why);
}

rq_err rq__zk_remove_both(rq__zk *z, const char *path, int32_t version, const char *other,
                          rq_error *why)
{
    zoo_op_t ops[2];
    zoo_op_result_t results[2];
    z->zoo_delete_op_init(&ops[0], path, version);
    z->zoo_delete_op_init(&ops[1], other, -1);
    return result(z, z->zoo_multi(z->handle, 2, ops, results), "remove", path, why);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

rq_err rq__zk_children(rq__zk *z, const char *path, rq_arena *arena, const char ***ret,
                       size_t *ret_count, rq_error *why)
{
    struct String_vector found = {0};
    RQ_TRY(result(z, z->zoo_get_children(z->handle, path, 1, &found), "list", path, why));
    size_t count = (size_t)found.count;
    const char **names = rq_arena_calloc(arena, count, sizeof *names);
    rq_err rc = names == NULL ? rq_no_memory(why) : RQ_OK;
    for (size_t i = 0; i < count && rc == RQ_OK; i++) {
        names[i] = rq_arena_cstr(arena, rq_slice_cstr(found.data[i]));
        if (names[i] == NULL) rc = rq_no_memory(why);
    }
    z->deallocate_String_vector(&found);
    if (rc != RQ_OK) return rc;
    if (count > 1) qsort(names, count, sizeof *names, compare_names);
    *ret = names;
    *ret_count = count;
    return RQ_OK;
}
