/* SPDX-License-Identifier: Apache-2.0 */
/* Shows what a server would do with a configuration, without doing it. Nothing is written; ports
 * are bound briefly to see whether they are free. */
#include "server/server.h"

#include "base/address.h"
#include "base/machine.h"
#include "catalog/root.h"
#include "cluster/secret.h"
#include "region/engine.h"
#include "server/cluster.h"
#include "server/info.h"
#include "server/listen.h"
#include "server/node.h"
#include "server/security.h"
#include "vfs/vfs.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct check {
    const rq_server_options *o;
    rq_server_line line;
    void *ctx;
    rq_err first; /* problem */
} check;

RQ_PRINTF(3, 4)
static void print_line(const check *c, const char *subject, const char *fmt, ...)
{
    char text[2048];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    c->line(c->ctx, subject, text);
}

static void problem(check *c, rq_err rc, const rq_error *why)
{
    print_line(c, "PROBLEM", "%s", why->message[0] == '\0' ? rq_err_text(rc) : why->message);
    if (c->first == RQ_OK) c->first = rc;
}

static void print_addresses(const check *c, const rq_listen *l, const rq_ports *p)
{
    char text[RQ_HOST_PORT_MAX], zk[32] = "";
    if (!p->without_zk) snprintf(zk, sizeof zk, "zookeeper %u, ", p->zk);
    for (unsigned i = 0; i < l->count; i++)
        print_line(c, "listen", "%s: %smaster %u, regionserver %u",
                   rq_host_bracketed(l->address[i], text), zk, p->master, p->rs);
}

/* A port in use is no error of the configuration: this very server may be the one that uses it. */
static void check_listening(check *c)
{
    const rq_config *config = c->o->config;
    rq_error why = {.code = RQ_OK};
    rq_listen l;
    rq_listen_held held;
    rq_ports p = {.zk = (uint16_t)rq_config_int(config, RQ_SET_ZK_PORT),
                  .without_zk = c->o->cluster != NULL,
                  .master = (uint16_t)rq_config_int(config, RQ_SET_MASTER_PORT),
                  .rs = (uint16_t)rq_config_int(config, RQ_SET_RS_PORT)};
    char host[RQ_HOST_SIZE], text[RQ_HOST_PORT_MAX];
    rq_err rc = rq__listen_resolve(c->o->listen, &l, &why);
    if (rc != RQ_OK) {
        problem(c, rc, &why);
        return;
    }
    print_addresses(c, &l, &p);
    rq__listen_host(&l, c->o->advertise, host);
    print_line(c, "clients", "connect to %s", rq_host_bracketed(host, text));
    rc = rq__listen_hold(&l, &p, &held, &why);
    rq__listen_release(&held);
    if (rc == RQ_E_EXISTS)
        print_line(c, "note", "now: %s", why.message);
    else if (rc != RQ_OK)
        problem(c, rc, &why);
}

static void check_pages(check *c)
{
    rq_error why = {.code = RQ_OK};
    rq_info_place p;
    rq_err rc = rq__info_place_of(c->o->config, &p, &why);
    if (rc != RQ_OK)
        problem(c, rc, &why);
    else if (!p.on)
        print_line(c, "listen", "no HTTP pages");
    else
        print_line(c, "listen", "HTTP pages on %s%s", RQ_HOST_PORT(p.host, p.port),
                   p.may_move || (c->o->cluster != NULL && !p.is_explicit)
                       ? ", or the next free port"
                   : p.is_explicit ? ""
                                   : ", if the port is free");
}

/* Shares below ten units have a digit after the point, because a budget of 1 MB has shares too. */
static void in_mb(double mb, char ret[32])
{
    snprintf(ret, 32, "%.*f MB", mb < 10 ? 1 : 0, mb);
}

static void check_memory(const check *c)
{
    char all[32], memstores[32], cache[32];
    const rq_config *config = c->o->config;
    double budget = (double)rq_engine_memory_budget(config) / (1 << 20);
    in_mb(budget, all);
    in_mb(budget * rq_config_real(config, RQ_SET_GLOBAL_MEMSTORE), memstores);
    in_mb(budget * rq_config_real(config, RQ_SET_BLOCK_CACHE), cache);
    print_line(c, "memory", "%s of %llu MB: memstores %s, block cache %s", all,
               (unsigned long long)(rq_machine_memory() >> 20), memstores, cache);
}

static void check_settings(check *c)
{
    const rq_config *config = c->o->config;
    rq_error why = {.code = RQ_OK};
    unsigned mode;
    rq_err rc = rq__security_check(config, NULL, &why);
    if (rc == RQ_OK) rc = rq_server_folder_mode(config, &mode, &why);
    if (rc != RQ_OK) problem(c, rc, &why);
    for (int s = 0; s < RQ_SETTING_COUNT; s++) {
        const rq_setting_info *i = rq_setting_get((rq_setting)s);
        const char *text = rq_config_text(config, (rq_setting)s);
        if (strcmp(text, i->fallback) != 0) print_line(c, "setting", "%s = %s", i->name, text);
    }
    for (size_t i = 0; rq_config_unused(config, i) != NULL; i++)
        print_line(c, "no effect", "%s, a setting of HBase", rq_config_unused(config, i));
}

static rq_err check_existing(check *c, const char *path, rq_error *why)
{
    static const char *const states[] = {
        [RQ_ROOT_NEW] = "is empty: it becomes a new data folder",
        [RQ_ROOT_BEGUN] = "is left from an interrupted first start, which is repeated",
        [RQ_ROOT_CLEAN] = "is Rorqual's and was stopped cleanly",
        [RQ_ROOT_OPEN] =
            ("is Rorqual's; a server runs on it, or was not stopped cleanly, and a start "
             "replays the log"),
        [RQ_ROOT_HBASES] = "is HBase's: it is taken over",
    };
    rq_root_state state;
    rq_vfs *vfs;
    RQ_TRY(rq_vfs_posix_new(path, &vfs, why));
    rq_err rc = rq_root_look(vfs, &state, why);
    rq_vfs_free(vfs);
    if (rc == RQ_OK) print_line(c, "data", "%s %s", path, states[state]);
    return rc;
}

static void check_folder(check *c)
{
    const char *path = c->o->data;
    rq_error why = {.code = RQ_OK};
    struct stat st;
    rq_err rc = RQ_OK;
    if (stat(path, &st) != 0 && errno == ENOENT && path[0] != '\0')
        print_line(c, "data", "%s does not exist: it becomes a new data folder", path);
    else if (stat(path, &st) != 0)
        rc = rq_fail(&why, RQ_E_IO, "data folder %s: %s", path, strerror(errno));
    else if (!S_ISDIR(st.st_mode))
        rc = rq_fail(&why, RQ_E_IO, "data folder %s: not a folder", path);
    else if (access(path, R_OK | W_OK | X_OK) != 0)
        rc = rq_fail(&why, RQ_E_PERMISSION, "data folder %s: %s", path, strerror(errno));
    else
        rc = check_existing(c, path, &why);
    if (rc != RQ_OK) problem(c, rc, &why);
}

/* --- a server of a cluster ------------------------------------------------------------------------ */

static rq_err look_at_store(const check *c, const rq_cluster_place *p, rq_error *why)
{
    char id[RQ_CLUSTER_ID_SIZE];
    rq_executor *executor;
    static const unsigned threads[RQ_POOL_COUNT] = {1, 1, 1, 1, 1, 1, 1};
    if (rq_thread_executor_new_lazy(threads, &executor) != RQ_OK) return rq_no_memory(why);
    rq_err rc = rq__cluster_store_look(p, executor, id, why);
    rq_thread_executor_free(executor);
    if (rc != RQ_OK) return rc;
    if (id[0] != '\0')
        print_line(c, "store", "%s has cluster %s", p->store, id);
    else
        print_line(c, "store", "%s has no cluster yet: the first server makes one", p->store);
    return RQ_OK;
}

static rq_err check_place(const check *c, rq_arena *arena, rq_error *why)
{
    rq_cluster_place p;
    rq_secret secret;
    RQ_TRY(rq__node_can_open(why));
    RQ_TRY(rq__cluster_parse(c->o->cluster, rq_config_text(c->o->config, RQ_SET_ZNODE_PARENT),
                             arena, &p, why));
    rq_err rc = rq_secret_read(p.secret, &secret, why);
    explicit_bzero(&secret, sizeof secret);
    if (rc != RQ_OK) return rc;
    print_line(c, "cluster", "zookeeper %s%s, which this check does not ask; secret %s", p.quorum,
               p.root, p.secret);
    return look_at_store(c, &p, why);
}

/* Ceph is asked, too: it answers a look at the pool and the folder of HFiles. */
static void check_cluster(check *c)
{
    rq_arena a = {0};
    rq_error why = {.code = RQ_OK};
    rq_err rc = check_place(c, &a, &why);
    if (rc != RQ_OK) problem(c, rc, &why);
    rq_arena_clear(&a);
}

rq_err rq_server_check(const rq_server_options *o, rq_server_line line, void *ctx)
{
    check c = {.o = o, .line = line, .ctx = ctx, .first = RQ_OK};
    check_listening(&c);
    check_pages(&c);
    (c.o->cluster != NULL ? check_cluster : check_folder)(&c);
    check_memory(&c);
    check_settings(&c);
    return c.first;
}
