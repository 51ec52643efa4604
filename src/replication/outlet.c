/* SPDX-License-Identifier: Apache-2.0 */
/* The client of a peer's cluster; contract in outlet.h. */
#include "replication/outlet.h"

#include "client/replicate.h"
#include "client/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Time limit for answers of ZooKeeper and the master; a stop may wait that long. */
#define ASK_TIMEOUT_MS 5000

struct rq__outlet {
    rq__outlet_options options;
    char *quorum; /* HOST:PORT of the server that answered */
    char *znode;
    rq_client *client;
    rq_client_sink **sinks; /* of the region servers */
    size_t sink_count;
    size_t next;
};

/* --- the cluster key -------------------------------------------------------------------------- */

/* The parts of HOST[:PORT],…:PORT:/ZNODE. */
typedef struct key_parts {
    rq_slice hosts, port, znode;
} key_parts;

static bool split_key(const char *key, key_parts *ret)
{
    const char *znode = strrchr(key, ':');
    if (znode == NULL || znode == key) return false;
    const char *port = znode - 1;
    while (port > key && *port != ':')
        port--;
    if (*port != ':') return false;
    ret->hosts = rq_slice_of(key, (size_t)(port - key));
    ret->port = rq_slice_of(port + 1, (size_t)(znode - port - 1));
    ret->znode = rq_slice_cstr(znode + 1);
    return true;
}

/* HOST:PORT of the first host, which is removed from the list. NULL: no memory. */
static char *next_host(key_parts *k)
{
    const uint8_t *comma = memchr(k->hosts.ptr, ',', k->hosts.len);
    size_t len = comma == NULL ? k->hosts.len : (size_t)(comma - k->hosts.ptr);
    rq_slice host = rq_slice_of(k->hosts.ptr, len);
    size_t rest = comma == NULL ? len : len + 1;
    k->hosts = rq_slice_of(k->hosts.ptr + rest, k->hosts.len - rest);
    char *text = NULL;
    bool has_port = memchr(host.ptr, ':', host.len) != NULL;
    int n = has_port ? asprintf(&text, "%.*s", (int)host.len, (const char *)host.ptr)
                     : asprintf(&text, "%.*s:%.*s", (int)host.len, (const char *)host.ptr,
                                (int)k->port.len, (const char *)k->port.ptr);
    return n < 0 ? NULL : text;
}

/* Opens a client by the first server of the quorum that answers. */
static rq_err open_client(rq__outlet *o, rq_error *why)
{
    key_parts k;
    rq_error last = {.code = RQ_OK};
    if (!split_key(o->options.cluster_key, &k))
        return rq_fail(why, RQ_E_INVALID, "Invalid cluster key: %s", o->options.cluster_key);
    o->znode = rq_slice_strdup(k.znode);
    if (o->znode == NULL) return rq_no_memory(why);
    rq_err rc = RQ_E_IO;
    while (k.hosts.len > 0 && rc != RQ_OK && !atomic_load(o->options.stop)) {
        free(o->quorum);
        o->quorum = next_host(&k);
        if (o->quorum == NULL) return rq_no_memory(why);
        rq_client_options options = {.zookeeper = o->quorum,
                                     .zk_root = o->znode,
                                     .rpc_timeout_ms = ASK_TIMEOUT_MS,
                                     .retries = 1};
        rq_error_clear(&last);
        rc = rq_client_open(&options, &o->client, &last);
    }
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", last.message);
}

/* --- region servers --------------------------------------------------------------------------- */

static rq_err take_servers(rq__outlet *o, const rq_cluster_status *s, rq_error *why)
{
    if (s->server_count == 0) return rq_fail(why, RQ_E_IO, "the peer has no region servers");
    o->sinks = calloc(s->server_count, sizeof *o->sinks);
    if (o->sinks == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < s->server_count; i++) {
        rq_err rc = rq_client_sink_new(o->client, s->servers[i].name.host, s->servers[i].name.port,
                                       o->options.timeout_ms, &o->sinks[i]);
        if (rc != RQ_OK) return rq_fail(why, rc, "%s", rq_err_text(rc));
        o->sink_count++;
    }
    o->next = (size_t)(o->options.seed % o->sink_count);
    return RQ_OK;
}

static rq_err find_servers(rq__outlet *o, rq_error *why)
{
    rq_cluster_status status = {.servers = NULL};
    rq_err rc = rq_client_status(o->client, &status, why);
    if (rc == RQ_OK) rc = take_servers(o, &status, why);
    rq_cluster_status_clear(&status);
    return rc;
}

/* --- life ------------------------------------------------------------------------------------- */

static rq_err outlet_new(const rq__outlet_options *options, rq__outlet **ret, rq_error *why)
{
    rq__outlet *o = calloc(1, sizeof *o);
    if (o == NULL) return rq_no_memory(why);
    o->options = *options;
    *ret = o;
    return RQ_OK;
}

rq_err rq__outlet_open(const rq__outlet_options *options, rq__outlet **ret, rq_error *why)
{
    rq__outlet *o = NULL;
    RQ_TRY(outlet_new(options, &o, why));
    rq_err rc = open_client(o, why);
    if (rc == RQ_OK) rc = find_servers(o, why);
    if (rc == RQ_OK)
        *ret = o;
    else
        rq__outlet_close(o);
    return rc;
}

void rq__outlet_close(rq__outlet *o)
{
    if (o == NULL) return;
    rq_client_close(o->client);
    free(o->sinks);
    free(o->quorum);
    free(o->znode);
    free(o);
}

rq_err rq__outlet_ask_id(const char *cluster_key, char ret[static 64], rq_error *why)
{
    const atomic_bool never = false;
    rq__outlet *o = NULL;
    rq__outlet_options options = {.cluster_key = cluster_key, .stop = &never};
    RQ_TRY(outlet_new(&options, &o, why));
    rq_err rc = open_client(o, why);
    if (rc == RQ_OK) (void)snprintf(ret, 64, "%s", rq_client_cluster_id(o->client));
    rq__outlet_close(o);
    return rc;
}

const char *rq__outlet_cluster_id(const rq__outlet *o)
{
    return rq_client_cluster_id(o->client);
}

/* Whether the error's text contains the class name. HBase's servers name the class of the cause of
 * an error only in the text (HBaseInterClusterReplicationEndpoint). */
static bool names_class(const rq_client_failure *f, const char *name)
{
    return strstr(f->java_class, name) != NULL || strstr(f->text, name) != NULL;
}

rq_err rq__outlet_ship(rq__outlet *o, rq_slice message, rq_slice cells, rq_error *why)
{
    rq_client_failure failure;
    rq_client_sink *to = o->sinks[o->next % o->sink_count];
    rq_err rc = rq_client_replicate(o->client, to, message, cells, o->options.stop, &failure);
    if (rc == RQ_OK || rc == RQ_E_CANCELLED) return rc;
    o->next++;
    bool no_table = names_class(&failure, "TableNotFoundException");
    bool no_family = names_class(&failure, "NoSuchColumnFamilyException");
    return rq_fail(why,
                   no_table    ? RQ_E_TABLE_NOT_FOUND
                   : no_family ? RQ_E_NO_SUCH_FAMILY
                               : RQ_E_IO,
                   "%s%s%.600s", failure.java_class, failure.java_class[0] != '\0' ? ": " : "",
                   failure.text);
}
