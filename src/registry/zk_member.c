/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Membership and election; see zk_member.h. HBASE: ZKWatcher.createBaseZNodes, ActiveMasterManager,
 * MasterAddressTracker, RegionServerTracker, ZKClusterId, ClusterStatusTracker.
 *
 * Everything runs on the member's lane. `reconcile` writes this process's nodes to ZooKeeper and reads
 * those of the others. It may run at any time, any number of times; it runs after each event, and
 * again after an error.
 */
#include "registry/zk_member.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "registry/zk_nodes.h"
#include "registry/znode_values.h"

#define AGAIN_NS UINT64_C(500000000)
#define PATH_LEN_MAX 1024
#define RUNNING "running"
#define RACES_MAX 8 /* looks at the node of the master before a pause */

struct rq_member {
    rq_member_options options;
    rq_lane *lane;
    rq__zk *zk;
    uint64_t session; /* number of the session `zk`; events of earlier sessions are ignored */
    rq_timer again;
    bool reconciling;  /* the timer is armed, or its task queued */
    bool over;         /* closing, or refused: nothing is done any more */
    bool folders;      /* made in this session */
    bool was_running;  /* the node `running` was seen */
    bool ends_cluster; /* the node `running` must be removed */
    rq__zk_nodes nodes;
    struct deposed *deposed;    /* the last one; NULL: none */
    atomic_uint_fast64_t asked; /* how often rq_member_read_again was called */
    rq_task stop;
    rq_latch stopped;
    rq_arena arena; /* for one run of reconcile */
    pthread_mutex_t lock;
    rq_arena view_arena RQ_GUARDED_BY(lock);
    rq_member_view view RQ_GUARDED_BY(lock);
};

/* A master that has ended and is fenced, and its server. */
typedef struct deposed {
    rq_task task;
    rq_member *member;
    const char *server;
    char master[];
} deposed;

/* A run of `reconcile` that another thread wants. */
typedef struct wanted {
    rq_task task;
    rq_member *member;
} wanted;

/* The path in the arena; NULL: no memory. */
static const char *path_of(rq_member *m, const char *folder, const char *name)
{
    return rq_arena_printf(&m->arena, "%s/%s%s%s", m->options.root, folder, name == NULL ? "" : "/",
                           name == NULL ? "" : name);
}

/* --- what is known ------------------------------------------------------------------------- */

static const char *const *copy_names(rq_arena *arena, const char *const *names, size_t count)
{
    const char **copy = rq_arena_calloc(arena, count + 1, sizeof *copy);
    for (size_t i = 0; copy != NULL && i < count; i++)
        if ((copy[i] = rq_arena_cstr(arena, rq_slice_cstr(names[i]))) == NULL) return NULL;
    return copy;
}

static rq_err copy_view(const rq_member_view *v, rq_arena *arena, rq_member_view *ret)
{
    *ret = *v;
    ret->active = rq_arena_cstr(arena, rq_slice_cstr(v->active));
    ret->trouble = rq_arena_cstr(arena, rq_slice_cstr(v->trouble));
    ret->servers = copy_names(arena, v->servers, v->server_count);
    ret->backups = copy_names(arena, v->backups, v->backup_count);
    bool whole =
        ret->servers != NULL && ret->backups != NULL && ret->active != NULL && ret->trouble != NULL;
    return whole ? RQ_OK : RQ_E_NO_MEMORY;
}

static bool same_names(const char *const *a, size_t a_count, const char *const *b, size_t b_count)
{
    bool same = a_count == b_count;
    for (size_t i = 0; same && i < a_count; i++)
        same = strcmp(a[i], b[i]) == 0;
    return same;
}

static bool same_view(const rq_member_view *a, const rq_member_view *b)
{
    return a->state == b->state && a->connected == b->connected && a->number == b->number &&
           a->is_shut_down == b->is_shut_down && strcmp(a->active, b->active) == 0 &&
           strcmp(a->trouble, b->trouble) == 0 &&
           same_names(a->servers, a->server_count, b->servers, b->server_count) &&
           same_names(a->backups, a->backup_count, b->backups, b->backup_count);
}

static void tell_change(const rq_member *m)
{
    if (m->options.changed != NULL) m->options.changed(m->options.ctx);
}

/* False: there is no memory for a copy, and the former view stays. The caller makes the view again later. */
static bool publish(rq_member *m, const rq_member_view *v)
{
    rq_arena arena = {0};
    rq_member_view copy;
    pthread_mutex_lock(&m->lock);
    bool same = same_view(&m->view, v);
    bool copied = !same && copy_view(v, &arena, &copy) == RQ_OK;
    if (copied) {
        rq_arena former = m->view_arena;
        m->view = copy;
        m->view_arena = arena;
        arena = former;
    }
    pthread_mutex_unlock(&m->lock);
    rq_arena_clear(&arena);
    if (copied) tell_change(m);
    return same || copied;
}

/* Nothing is known without a session. Needs no memory. `trouble` is static. */
static void publish_nothing(rq_member *m, const char *trouble)
{
    pthread_mutex_lock(&m->lock);
    rq_arena former = m->view_arena;
    m->view = (rq_member_view){.active = "", .trouble = trouble};
    m->view_arena = (rq_arena){0};
    pthread_mutex_unlock(&m->lock);
    rq_arena_clear(&former);
    tell_change(m);
}

/* Without a connection changes are not reported: the last view stays, marked as disconnected. Needs no memory. */
static void publish_disconnected(rq_member *m)
{
    pthread_mutex_lock(&m->lock);
    bool was_connected = m->view.connected;
    m->view.connected = false;
    pthread_mutex_unlock(&m->lock);
    if (was_connected) tell_change(m);
}

rq_err rq_member_look(rq_member *m, rq_arena *arena, rq_member_view *ret)
{
    pthread_mutex_lock(&m->lock);
    rq_err rc = copy_view(&m->view, arena, ret);
    pthread_mutex_unlock(&m->lock);
    return rc;
}

bool rq_member_name_of(const char *text, rq_arena *arena, rq_server_name *ret)
{
    unsigned port;
    long long code;
    int end = 0;
    const char *comma = strchr(text, ',');
    if (comma == NULL || comma == text || sscanf(comma, ",%5u,%lld%n", &port, &code, &end) != 2 ||
        comma[end] != '\0' || port > UINT16_MAX)
        return false;
    ret->host = rq_arena_cstr(arena, rq_slice_of(text, (size_t)(comma - text)));
    ret->text = rq_arena_cstr(arena, rq_slice_cstr(text));
    ret->port = (uint16_t)port;
    ret->start_code = code;
    return ret->host != NULL && ret->text != NULL;
}

/* The host before the first comma, the start code behind the last. */
static bool same_process(const char *server, const char *master)
{
    size_t host = strcspn(server, ",");
    const char *a = strrchr(server, ','), *b = strrchr(master, ',');
    return a != NULL && b != NULL && strncmp(server, master, host + 1) == 0 && strcmp(a, b) == 0;
}

const char *rq_member_active_server(const rq_member_view *v)
{
    for (size_t i = 0; i < v->server_count; i++)
        if (same_process(v->servers[i], v->active)) return v->servers[i];
    return NULL;
}

/* --- nodes --------------------------------------------------------------------------------- */

/* HBASE: ZKWatcher, ZKProcedureUtil. Clients list some of these nodes. */
static const char *const folders[] = {
    "backup-masters",
    "draining",
    "flush-table-proc",
    "flush-table-proc/abort",
    "flush-table-proc/acquired",
    "flush-table-proc/reached",
    "master-maintenance",
    "namespace",
    "online-snapshot",
    "online-snapshot/abort",
    "online-snapshot/acquired",
    "online-snapshot/reached",
    "rs",
    "splitWAL",
    "table",
};

static rq_err make_folder(rq_member *m, const char *path, rq_error *why)
{
    rq_error detail = {.code = RQ_OK};
    rq_err rc = rq__zk_create(m->zk, path, RQ_SLICE_LIT(""), false, &detail);
    return rc == RQ_OK || rc == RQ_E_EXISTS ? RQ_OK : rq_fail(why, rc, "%s", detail.message);
}

static rq_err make_root(rq_member *m, rq_error *why)
{
    char path[PATH_LEN_MAX];
    const char *root = m->options.root;
    for (size_t i = 1; root[i - 1] != '\0'; i++) {
        if (root[i] != '/' && root[i] != '\0') continue;
        snprintf(path, sizeof path, "%.*s", (int)i, root);
        RQ_TRY(make_folder(m, path, why));
    }
    return RQ_OK;
}

static rq_err make_folders(rq_member *m, rq_error *why)
{
    if (m->folders) return RQ_OK;
    RQ_TRY(make_root(m, why));
    for (size_t i = 0; i < RQ_ARRAY_LEN(folders); i++) {
        const char *path = path_of(m, folders[i], NULL);
        if (path == NULL) return rq_no_memory(why);
        RQ_TRY(make_folder(m, path, why));
    }
    m->folders = true;
    return RQ_OK;
}

/* Creates an ephemeral node whose name only this process uses. If a former session of the process
 * has left the node, it is replaced, because ZooKeeper will remove the old node at the end of that
 * session. */
static rq_err ensure_own(rq_member *m, const char *path, rq_slice value, rq_error *why)
{
    rq_error detail = {.code = RQ_OK};
    rq__zk_node node;
    rq_err rc = rq__zk_create(m->zk, path, value, true, &detail);
    if (rc != RQ_E_EXISTS) return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", detail.message);
    RQ_TRY(rq__zk_get(m->zk, path, false, &m->arena, &node, why));
    if (node.own) return RQ_OK;
    RQ_TRY(rq__zk_remove(m->zk, path, node.version, why));
    return rq__zk_create(m->zk, path, value, true, why);
}

static rq_err join_servers(rq_member *m, rq_error *why)
{
    rq_slice value;
    const rq_server_name *server = &m->options.server;
    const char *path = path_of(m, "rs", server->text);
    if (path == NULL ||
        rq__znode_server(server->text, m->options.server_info_port, &m->arena, &value) != RQ_OK)
        return rq_no_memory(why);
    return ensure_own(m, path, value, why);
}

/* --- the election -------------------------------------------------------------------------- */

static bool same_place(const rq_server_name *a, const rq_server_name *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

/* Removes the nodes of a master that has ended, which are of one session. ZooKeeper counts versions of each node from 0, so
 * the version does not tell its node `master` from that of a later one; that the node of its server, whose name nobody else
 * has, goes in the same step does. RQ_OK: they are gone already, or are another's; the watch tells what follows. */
static rq_err remove_deposed(rq_member *m, const char *path, int32_t version, rq_error *why)
{
    rq_error detail = {.code = RQ_OK};
    const char *server = path_of(m, "rs", m->deposed->server);
    if (server == NULL) return rq_no_memory(why);
    rq_err rc = rq__zk_remove_both(m->zk, path, version, server, &detail);
    if (rc == RQ_OK) return RQ_E_NOT_FOUND;
    bool is_late = rc == RQ_E_NOT_FOUND || rc == RQ_E_CONFLICT;
    return is_late ? RQ_OK : rq_fail(why, rc, "%s", detail.message);
}

/* Reads the node `master`, with a watch, and sets v->active and v->state. RQ_E_NOT_FOUND: the node does not
 * exist any more, or named an earlier incarnation of this process or a deposed one and was removed. */
static rq_err look_at_master(rq_member *m, const char *path, rq_member_view *v, rq_error *why)
{
    rq__zk_node node;
    rq_server_name name;
    RQ_TRY(rq__zk_get(m->zk, path, true, &m->arena, &node, why));
    RQ_TRY(rq__znode_read_master(node.value, &m->arena, &name, why));
    v->active = name.text;
    v->state = node.own ? RQ_MEMBER_ACTIVE : RQ_MEMBER_STANDBY;
    if (node.own) return RQ_OK;
    if (m->deposed != NULL && strcmp(name.text, m->deposed->master) == 0)
        return remove_deposed(m, path, node.version, why);
    if (!same_place(&name, &m->options.master)) return RQ_OK;
    /* A former incarnation, or a former session, of this process. */
    RQ_TRY(rq__zk_remove(m->zk, path, node.version, why));
    return RQ_E_NOT_FOUND;
}

static rq_err contend(rq_member *m, rq_slice value, rq_member_view *v, rq_error *why)
{
    const char *path = path_of(m, "master", NULL);
    rq_error detail = {.code = RQ_OK};
    rq_err rc = RQ_E_NOT_FOUND;
    if (path == NULL) return rq_no_memory(why);
    for (int races = 0; rc == RQ_E_NOT_FOUND && races < RACES_MAX; races++) {
        rq_error_clear(&detail);
        rc = rq__zk_create(m->zk, path, value, true, &detail);
        rq_error_clear(&detail);
        if (rc == RQ_OK || rc == RQ_E_EXISTS) rc = look_at_master(m, path, v, &detail);
    }
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", detail.message);
}

/* --- what only the active master writes ---------------------------------------------------- */

/* HBASE: ClusterStatusTracker.setClusterUp. */
static rq_err ensure_running(rq_member *m, rq_error *why)
{
    rq_slice value;
    const char *path = path_of(m, RUNNING, NULL);
    rq_error detail = {.code = RQ_OK};
    if (path == NULL || rq__znode_running(m->options.master.text, m->options.master.start_code,
                                          &m->arena, &value) != RQ_OK)
        return rq_no_memory(why);
    rq_err rc = rq__zk_create(m->zk, path, value, false, &detail);
    return rc == RQ_OK || rc == RQ_E_EXISTS ? RQ_OK : rq_fail(why, rc, "%s", detail.message);
}

/* Makes `running` first. If the root was lost, `hbaseid` is missing too, and other members must not take the missing
 * `running` for a shutdown. */
static rq_err make_cluster_id(rq_member *m, const char *path, rq_error *why)
{
    rq_slice value;
    rq_error detail = {.code = RQ_OK};
    RQ_TRY(ensure_running(m, why));
    if (rq__znode_cluster_id(m->options.master.text, m->options.cluster_id, &m->arena, &value) !=
        RQ_OK)
        return rq_no_memory(why);
    rq_err rc = rq__zk_create(m->zk, path, value, false, &detail);
    return rc == RQ_OK || rc == RQ_E_EXISTS ? RQ_OK : rq_fail(why, rc, "%s", detail.message);
}

/* RQ_E_CONFIG: there is another cluster. */
static rq_err ensure_cluster_id(rq_member *m, rq_error *why)
{
    rq__zk_node node;
    const char *found, *path = path_of(m, "hbaseid", NULL), *id = m->options.cluster_id;
    rq_error detail = {.code = RQ_OK};
    if (path == NULL) return rq_no_memory(why);
    rq_err rc = rq__zk_get(m->zk, path, false, &m->arena, &node, &detail);
    if (rc == RQ_E_NOT_FOUND) {
        RQ_TRY(make_cluster_id(m, path, why));
        rq_error_clear(&detail);
        rc = rq__zk_get(m->zk, path, false, &m->arena, &node, &detail);
    }
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", detail.message);
    RQ_TRY(rq__znode_read_cluster_id(node.value, &m->arena, &found, why));
    if (strcmp(found, id) == 0) return RQ_OK;
    return rq_fail(why, RQ_E_CONFIG,
                   "ZooKeeper has cluster %s at %s, but the storage belongs to cluster %s", found,
                   path, id);
}

static rq_err be_active(rq_member *m, const char *backup, rq_error *why)
{
    rq_error detail = {.code = RQ_OK};
    rq_err rc = rq__zk_remove(m->zk, backup, -1, &detail);
    return rc == RQ_OK || rc == RQ_E_NOT_FOUND ? RQ_OK : rq_fail(why, rc, "%s", detail.message);
}

/* --- the end of the cluster ---------------------------------------------------------------- */

static rq_err remove_running(rq_member *m, rq_error *why)
{
    rq_error detail = {.code = RQ_OK};
    const char *path = path_of(m, RUNNING, NULL);
    if (path == NULL) return rq_no_memory(why);
    rq_err rc = rq__zk_remove(m->zk, path, -1, &detail);
    return rc == RQ_OK || rc == RQ_E_NOT_FOUND ? RQ_OK : rq_fail(why, rc, "%s", detail.message);
}

/* Also sets a watch on the root, which fires when the node `running` is removed. */
static rq_err find_running(rq_member *m, bool *ret, rq_error *why)
{
    const char **names;
    size_t count;
    RQ_TRY(rq__zk_children(m->zk, m->options.root, &m->arena, &names, &count, why));
    *ret = false;
    for (size_t i = 0; i < count; i++)
        *ret |= strcmp(names[i], RUNNING) == 0;
    return RQ_OK;
}

/* The cluster has been shut down if this process has seen the node `running` and the node is gone. A cluster that
 * starts has no such node until its first master makes it. HBASE: ClusterStatusTracker. */
static rq_err look_at_running(rq_member *m, rq_member_view *v, rq_error *why)
{
    bool is_there;
    if (m->ends_cluster) RQ_TRY(remove_running(m, why));
    RQ_TRY(find_running(m, &is_there, why));
    if (!is_there && !m->was_running && v->state == RQ_MEMBER_ACTIVE) {
        RQ_TRY(ensure_running(m, why));
        is_there = true;
    }
    m->was_running |= is_there;
    v->is_shut_down = m->was_running && !is_there;
    return RQ_OK;
}

/* --- reconcile -------------------------------------------------------------------------------- */

/* Every process compares the cluster id in ZooKeeper with that of its storage, so that none joins
 * another cluster; the first process writes it. */
static rq_err reconcile_all(rq_member *m, rq_member_view *v, rq_error *why)
{
    rq_slice value;
    size_t count;
    const rq_server_name *master = &m->options.master;
    RQ_TRY(make_folders(m, why));
    RQ_TRY(ensure_cluster_id(m, why));
    RQ_TRY(join_servers(m, why));
    const char *backup = path_of(m, "backup-masters", master->text), *rs = path_of(m, "rs", NULL);
    const char *backups = path_of(m, "backup-masters", NULL);
    if (backup == NULL || rs == NULL || backups == NULL ||
        rq__znode_master(master->text, master, m->options.master_info_port, &m->arena, &value) !=
            RQ_OK)
        return rq_no_memory(why);
    RQ_TRY(contend(m, value, v, why));
    RQ_TRY(v->state == RQ_MEMBER_ACTIVE ? be_active(m, backup, why)
                                        : ensure_own(m, backup, value, why));
    RQ_TRY(look_at_running(m, v, why));
    const char **names;
    RQ_TRY(rq__zk_children(m->zk, rs, &m->arena, &names, &count, why));
    v->servers = names;
    v->server_count = count;
    RQ_TRY(rq__zk_children(m->zk, backups, &m->arena, &names, &count, why));
    v->backups = names;
    v->backup_count = count;
    if (v->state != RQ_MEMBER_ACTIVE) rq__zk_nodes_forget(&m->nodes);
    return v->state != RQ_MEMBER_ACTIVE
               ? RQ_OK
               : rq__zk_nodes_write(&m->nodes, m->zk, m->options.root, &m->arena, why);
}

static void arm_again(rq_member *m, uint64_t ns)
{
    if (m->reconciling || m->over) return;
    m->reconciling = true;
    m->options.executor->timer_arm(m->options.executor, &m->again, m->lane, ns);
}

static void on_event(void *ctx, uint64_t session, rq__zk_event_kind kind);

static rq_err new_session(rq_member *m, rq_error *why)
{
    rq__zk_close(m->zk);
    m->zk = NULL;
    m->folders = false;
    rq__zk_nodes_forget(&m->nodes);
    m->session++;
    return rq__zk_open(&(rq__zk_options){.quorum = m->options.quorum,
                                         .timeout_ms = m->options.session_ms,
                                         .lane = m->lane,
                                         .event = on_event,
                                         .ctx = m,
                                         .session = m->session},
                       &m->zk, why);
}

static void open_session(rq_member *m)
{
    rq_error why = {.code = RQ_OK};
    if (new_session(m, &why) == RQ_OK) return;
    (void)publish(m, &(rq_member_view){.active = "", .trouble = why.message});
    arm_again(m, AGAIN_NS);
}

/* ZooKeeper has another cluster. The nodes of this process go with its session. */
static void refuse(rq_member *m, const rq_error *why)
{
    const rq_member_view v = {.state = RQ_MEMBER_REFUSED, .active = "", .trouble = why->message};
    rq__zk_close(m->zk);
    m->zk = NULL;
    m->over = publish(m, &v);
    arm_again(m, AGAIN_NS); /* unless it is over: a new session finds the same root */
}

/* RQ_E_TIMEOUT: the connection is lost. */
static bool publish_trouble(rq_member *m, rq_err rc, const rq_error *why)
{
    if (rc != RQ_E_TIMEOUT)
        return publish(m, &(rq_member_view){.active = "", .trouble = why->message});
    publish_disconnected(m);
    return true;
}

static void reconcile(rq_member *m)
{
    rq_error why = {.code = RQ_OK};
    rq_member_view v = {.connected = true, .active = "", .trouble = ""};
    v.number = atomic_load(&m->asked);
    rq_err rc = reconcile_all(m, &v, &why);
    if (rc == RQ_E_CONFIG) {
        refuse(m, &why);
    } else {
        bool published = rc == RQ_OK ? publish(m, &v) : publish_trouble(m, rc, &why);
        /* After the end of a session an event follows. */
        if (!published || (rc != RQ_OK && rc != RQ_E_CLOSED)) arm_again(m, AGAIN_NS);
    }
    rq_arena_reset(&m->arena);
}

/* A session that could not be opened is opened here. */
static void reconcile_again(rq_task *task)
{
    rq_member *m = RQ_CONTAINER_OF(RQ_CONTAINER_OF(task, rq_timer, task), rq_member, again);
    m->reconciling = false;
    if (m->over) return;
    (m->zk != NULL ? reconcile : open_session)(m);
}

static void on_event(void *ctx, uint64_t session, rq__zk_event_kind kind)
{
    rq_member *m = ctx;
    if (session != m->session || m->over || m->zk == NULL) return;
    if (kind == RQ__ZK_DISCONNECTED) {
        publish_disconnected(m);
    } else if (kind != RQ__ZK_EXPIRED) {
        reconcile(m);
    } else {
        publish_nothing(m, "the session with ZooKeeper expired");
        open_session(m);
    }
}

/* --- a master that has ended --------------------------------------------------------------- */

static void take_deposed(rq_task *task)
{
    deposed *d = RQ_CONTAINER_OF(task, deposed, task);
    rq_member *m = d->member;
    free(m->deposed);
    m->deposed = d;
    if (!m->over && m->zk != NULL) reconcile(m);
}

rq_err rq_member_depose(rq_member *m, const char *master, const char *server)
{
    size_t len = strlen(master) + 1, server_len = strlen(server) + 1;
    deposed *d = malloc(sizeof *d + len + server_len);
    if (d == NULL) return RQ_E_NO_MEMORY;
    d->task = (rq_task){.run = take_deposed};
    d->member = m;
    memcpy(d->master, master, len);
    d->server = memcpy(d->master + len, server, server_len);
    rq_lane_post(m->lane, &d->task);
    return RQ_OK;
}

/* --- runs that other threads want ----------------------------------------------------------- */

static void run_wanted(rq_task *task)
{
    rq_member *m = RQ_CONTAINER_OF(task, wanted, task)->member;
    free(RQ_CONTAINER_OF(task, wanted, task));
    if (!m->over && m->zk != NULL) reconcile(m);
}

static wanted *wanted_new(rq_member *m)
{
    wanted *w = malloc(sizeof *w);
    if (w != NULL) *w = (wanted){.task.run = run_wanted, .member = m};
    return w;
}

/* `contend` writes to ZooKeeper before anything is read. A server of ZooKeeper that lags behind the others answers a read
 * after this session's write with a state that has the write, and so all that was done before. */
rq_err rq_member_read_again(rq_member *m, uint64_t *ret)
{
    wanted *w = wanted_new(m);
    if (w == NULL) return RQ_E_NO_MEMORY;
    *ret = atomic_fetch_add(&m->asked, 1) + 1;
    rq_lane_post(m->lane, &w->task);
    return RQ_OK;
}

static void end_cluster(rq_task *task)
{
    RQ_CONTAINER_OF(task, wanted, task)->member->ends_cluster = true;
    run_wanted(task);
}

rq_err rq_member_end_cluster(rq_member *m)
{
    wanted *w = wanted_new(m);
    if (w == NULL) return RQ_E_NO_MEMORY;
    w->task.run = end_cluster;
    rq_lane_post(m->lane, &w->task);
    return RQ_OK;
}

rq_err rq_member_write(rq_member *m, const rq_member_node *list, size_t count)
{
    wanted *w = wanted_new(m);
    rq_err rc = w == NULL ? RQ_E_NO_MEMORY : rq__zk_nodes_give(&m->nodes, list, count);
    if (rc != RQ_OK) {
        free(w);
        return rc;
    }
    rq_lane_post(m->lane, &w->task);
    return RQ_OK;
}

/* --- life ---------------------------------------------------------------------------------- */

static void stop(rq_task *task)
{
    rq_member *m = RQ_CONTAINER_OF(task, rq_member, stop);
    m->over = true;
    bool cancelled = m->options.executor->timer_cancel(m->options.executor, &m->again);
    (void)cancelled; /* else its task is behind this one */
    rq__zk_close(m->zk);
    m->zk = NULL;
    m->options.executor->latch_open(&m->stopped, RQ_OK);
}

void rq_member_close(rq_member *m)
{
    if (m == NULL) return;
    rq_executor *ex = m->options.executor;
    /* The lane is about to be freed: neither the timer nor the session may post to it any more. */
    ex->latch_init(ex, &m->stopped);
    m->stop.run = stop;
    rq_lane_post(m->lane, &m->stop);
    (void)ex->latch_wait(&m->stopped);
    ex->latch_destroy(&m->stopped);
    ex->lane_free(ex, m->lane);
    rq_arena_clear(&m->arena);
    rq_arena_clear(&m->view_arena);
    rq__zk_nodes_clear(&m->nodes);
    free(m->deposed);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

static rq_err check_root(const char *root, rq_error *why)
{
    size_t len = strlen(root);
    bool good = root[0] == '/' && len > 1 && len < PATH_LEN_MAX && root[len - 1] != '/' &&
                strstr(root, "//") == NULL;
    return good ? RQ_OK : rq_fail(why, RQ_E_CONFIG, "\"%s\" is not the path of a root znode", root);
}

rq_err rq_member_can_open(rq_error *why)
{
    return rq__zk_can_open(why);
}

rq_err rq_member_open(const rq_member_options *o, rq_member **ret, rq_error *why)
{
    RQ_TRY(check_root(o->root, why));
    rq_member *m = calloc(1, sizeof *m);
    if (m == NULL) return rq_no_memory(why);
    m->options = *o;
    m->view = (rq_member_view){.active = "", .trouble = ""};
    m->again.task.run = reconcile_again;
    if (o->executor->lane_new(o->executor, "rq-zookeeper", &m->lane) != RQ_OK) {
        free(m);
        return rq_no_memory(why);
    }
    pthread_mutex_init(&m->lock, NULL);
    rq__zk_nodes_init(&m->nodes);
    /* Before an event of the session can be on the lane, because events read m->zk. */
    m->reconciling = true;
    o->executor->timer_arm(o->executor, &m->again, m->lane, 0);
    *ret = m;
    return RQ_OK;
}
