/* SPDX-License-Identifier: Apache-2.0 */
/* Procedures on replication peers. The procedure's namespace field contains RQ_PEER_LOCK_PREFIX and
 * the peer's id; the description is a ReplicationPeerDescription. Checks and texts are those of
 * HBASE: AddPeerProcedure and its siblings, ReplicationPeerManager. */
#include "catalog/ddl_priv.h"
#include "catalog/peers_priv.h"

#include "proto/replication.pb-c.h"

#include <stdlib.h>
#include <string.h>

#define ENDPOINT                                                                                   \
    "org.apache.hadoop.hbase.replication.regionserver.HBaseInterClusterReplicationEndpoint"

static rq_slice id_of(const rq__proc *p)
{
    size_t len = strlen(RQ_PEER_LOCK_PREFIX);
    return rq_slice_of(p->ns.ptr + len, p->ns.len - len);
}

static rq_err listed(rq_catalog *c, const rq__proc *p, rq_arena *a, rq_peer_info *ret,
                     rq_error *why)
{
    rq_err rc = rq_catalog_peer(c, id_of(p), a, ret);
    if (rc != RQ_E_NOT_FOUND) return rc;
    return rq_fail(why, RQ_E_PEER_NOT_FOUND, "%.*s", (int)id_of(p).len, (const char *)id_of(p).ptr);
}

static rq_err unpack(const rq__proc *p, Pb__ReplicationPeerDescription **ret, rq_error *why)
{
    *ret = pb__replication_peer_description__unpack(NULL, p->descriptor.len, p->descriptor.ptr);
    if (*ret != NULL) return RQ_OK;
    return rq_fail(why, RQ_E_DO_NOT_RETRY, "the peer's description is malformed");
}

static rq_err check_switch(rq_catalog *c, rq_error *why)
{
    if (rq_catalog_switch_get(c, RQ_SWITCH_PEER_MODIFICATION)) return RQ_OK;
    return rq_fail(why, RQ_E_IOEXCEPTION, "Replication peer modification disabled");
}

/* The row is written. A step that fails here is repeated, and finds the row as it is. HBASE: REFRESH_PEER_ON_RS, a step of
 * its own: it would need another record, for which a full disk has no space. */
static rq_err refresh(rq_catalog *c, rq__proc *p, rq_error *why)
{
    p->committed = true;
    return c->peers_changed == NULL ? RQ_OK : c->peers_changed(c->peers_ctx, c, why);
}

/* --- the configuration ------------------------------------------------------------------------ */

static bool is_blank(const char *text)
{
    return text == NULL || text[strspn(text, " \t\n\r\f\v")] == '\0';
}

static bool is_number(const char *text, size_t len)
{
    char *end;
    char copy[16];
    if (len == 0 || len >= sizeof copy) return false;
    memcpy(copy, text, len);
    copy[len] = '\0';
    long n = strtol(copy, &end, 10);
    return *end == '\0' && n >= INT32_MIN && n <= INT32_MAX;
}

/* HOST[:PORT],…:PORT:/ZNODE. HBASE: ZKConfig.validateClusterKey, which takes no URI. */
static bool is_cluster_key(const char *key)
{
    const char *znode = strrchr(key, ':');
    if (znode == NULL || znode == key) return false;
    const char *port = znode - 1;
    while (port > key && *port != ':')
        port--;
    if (*port != ':' || port == key) return false;
    size_t len = strlen(znode + 1);
    return len >= 2 && znode[1] == '/' && znode[len] != '/' &&
           is_number(port + 1, (size_t)(znode - port - 1));
}

static rq_err check_endpoint(const Pb__ReplicationPeer *m, rq_error *why)
{
    const char *name = m->replicationendpointimpl;
    if (is_blank(name) || strcmp(name, ENDPOINT) == 0) return RQ_OK;
    return rq_fail(why, RQ_E_DO_NOT_RETRY,
                   "Can not instantiate configured replication endpoint class=%s", name);
}

static bool has_namespace(const ProtobufCBinaryData *list, size_t count,
                          const ProtobufCBinaryData *name)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].len == name->len && memcmp(list[i].data, name->data, name->len) == 0)
            return true;
    return false;
}

static rq_err check_conflict(const ProtobufCBinaryData *namespaces, size_t namespace_count,
                             Pb__TableCF *const *tables, size_t table_count, rq_error *why)
{
    for (size_t i = 0; i < table_count; i++) {
        const Pb__TableName *t = tables[i]->table_name;
        if (t == NULL || !has_namespace(namespaces, namespace_count, &t->namespace_)) continue;
        bool is_default = t->namespace_.len == 7 && memcmp(t->namespace_.data, "default", 7) == 0;
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "Table-cfs %.*s%s%.*s is conflict with namespaces %.*s in peer config",
                       is_default ? 0 : (int)t->namespace_.len, (const char *)t->namespace_.data,
                       is_default ? "" : ":", (int)t->qualifier.len,
                       (const char *)t->qualifier.data, (int)t->namespace_.len,
                       (const char *)t->namespace_.data);
    }
    return RQ_OK;
}

static rq_err check_tables(const Pb__ReplicationPeer *m, rq_error *why)
{
    if (!m->has_replicate_all || m->replicate_all) {
        if (m->n_namespaces > 0 || m->n_table_cfs > 0)
            return rq_fail(why, RQ_E_DO_NOT_RETRY,
                           "Need clean namespaces or table-cfs config firstly when you want "
                           "replicate all cluster");
        return check_conflict(m->exclude_namespaces, m->n_exclude_namespaces, m->exclude_table_cfs,
                              m->n_exclude_table_cfs, why);
    }
    if (m->n_exclude_namespaces > 0 || m->n_exclude_table_cfs > 0)
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "Need clean exclude-namespaces or exclude-table-cfs config firstly when "
                       "replicate_all flag is false");
    return check_conflict(m->namespaces, m->n_namespaces, m->table_cfs, m->n_table_cfs, why);
}

/* Classes of WAL entry filters run in HBase only. */
static rq_err check_filters(const Pb__ReplicationPeer *m, rq_error *why)
{
    for (size_t i = 0; i < m->n_configuration; i++) {
        const Pb__NameStringPair *p = m->configuration[i];
        if (strcmp(p->name, "hbase.replication.source.custom.walentryfilters") != 0 ||
            is_blank(p->value))
            continue;
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "Configured WALEntryFilter %.*s could not be created. Failing add/update "
                       "peer operation.",
                       (int)strcspn(p->value, ","), p->value);
    }
    return RQ_OK;
}

/* The records of a region that has moved are shipped by two servers side by side. */
static rq_err check_serial(const rq_catalog *c, const Pb__ReplicationPeer *m, rq_error *why)
{
    if (!rq_engine_in_cluster(c->engine) || !m->has_serial || !m->serial) return RQ_OK;
    return rq_fail(why, RQ_E_DO_NOT_RETRY, "a cluster does not support serial peers yet");
}

static rq_err check_config(const rq_catalog *c, const Pb__ReplicationPeer *m, rq_error *why)
{
    RQ_TRY(check_serial(c, m, why));
    RQ_TRY(check_endpoint(m, why));
    const char *key = m->clusterkey == NULL ? "" : m->clusterkey;
    if (!is_cluster_key(key))
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "Invalid cluster key: %s", key);
    RQ_TRY(check_tables(m, why));
    return check_filters(m, why);
}

/* As HBase's clients expect it: every field with a default has a value. */
static rq_err pack_config(Pb__ReplicationPeer *m, rq_arena *a, rq_slice *ret)
{
    char none[] = "";
    char *key = m->clusterkey;
    if (key == NULL) m->clusterkey = none;
    if (!m->has_replicate_all) m->replicate_all = 1;
    m->has_bandwidth = m->has_replicate_all = m->has_serial = 1;
    size_t len = pb__replication_peer__get_packed_size(m);
    uint8_t *bytes = rq_arena_alloc(a, len + 1);
    if (bytes != NULL) *ret = rq_slice_of(bytes, pb__replication_peer__pack(m, bytes));
    m->clusterkey = key;
    return bytes == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

/* --- the id ------------------------------------------------------------------------------------ */

#define ID_MAX (RQ_NAME_MAX - (int)strlen(RQ_PEER_LOCK_PREFIX))

/* Limits the id's length, because the results of procedures are kept with it (check_lengths in procedure.c). */
rq_err rq__peer_precheck(rq_catalog *c, rq__proc *p, rq_error *why)
{
    (void)c;
    rq_slice id = id_of(p);
    if (id.len <= (size_t)ID_MAX) return RQ_OK;
    bool adds = p->ops->kind == RQ_DDL_ADD_PEER;
    return rq_fail(why, adds ? RQ_E_DO_NOT_RETRY : RQ_E_PEER_NOT_FOUND, "%s%.*s",
                   adds ? "Found invalid peer name: " : "", ID_MAX, (const char *)id.ptr);
}

/* --- add -------------------------------------------------------------------------------------- */

rq_err rq__peer_add_prepare(rq_catalog *c, rq__proc *p, rq_error *why)
{
    Pb__ReplicationPeerDescription *d;
    rq_slice id = id_of(p);
    rq_peer_info found;
    rq_arena a;
    RQ_TRY(check_switch(c, why));
    if (id.len == 0 || memchr(id.ptr, '-', id.len) != NULL || memchr(id.ptr, '/', id.len) != NULL)
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "Found invalid peer name: %.*s", (int)id.len,
                       (const char *)id.ptr);
    RQ_TRY(unpack(p, &d, why));
    rq_err rc = check_config(c, d->config, why);
    pb__replication_peer_description__free_unpacked(d, NULL);
    if (rc != RQ_OK) return rc;
    rq_arena_init(&a);
    rc = rq_catalog_peer(c, id, &a, &found);
    rq_arena_clear(&a);
    if (rc == RQ_E_NOT_FOUND) return RQ_OK;
    if (rc != RQ_OK) return rc;
    return rq_fail(why, RQ_E_DO_NOT_RETRY, "Replication peer %.*s already exists", (int)id.len,
                   (const char *)id.ptr);
}

rq_err rq__peer_add_store(rq_catalog *c, rq__proc *p, rq_error *why)
{
    Pb__ReplicationPeerDescription *d;
    rq_peer_info found;
    rq_slice config;
    rq_arena a;
    rq_arena_init(&a);
    rq_err rc = rq_catalog_peer(c, id_of(p), &a, &found);
    if (rc == RQ_E_NOT_FOUND) { /* else: the step ran before a crash */
        rc = unpack(p, &d, why);
        if (rc == RQ_OK) {
            bool on = d->state->state == PB__REPLICATION_STATE__STATE__ENABLED;
            rc = pack_config(d->config, &a, &config);
            if (rc == RQ_OK) rc = rq__peer_put(c, id_of(p), config, on, why);
            pb__replication_peer_description__free_unpacked(d, NULL);
        }
    }
    rq_arena_clear(&a);
    return rc == RQ_OK ? refresh(c, p, why) : rc;
}

/* --- remove ----------------------------------------------------------------------------------- */

bool rq__peer_remove_make_room(rq_catalog *c, const rq__proc *p)
{
    return rq__peer_make_room(c, id_of(p));
}

rq_err rq__peer_remove_prepare(rq_catalog *c, rq__proc *p, rq_error *why)
{
    rq_peer_info found;
    rq_arena a;
    RQ_TRY(check_switch(c, why));
    rq_arena_init(&a);
    rq_err rc = listed(c, p, &a, &found, why);
    rq_arena_clear(&a);
    return rc;
}

rq_err rq__peer_remove_store(rq_catalog *c, rq__proc *p, rq_error *why)
{
    RQ_TRY(rq__peer_remove(c, id_of(p), why));
    return refresh(c, p, why);
}

/* --- enable, disable -------------------------------------------------------------------------- */

static rq_err prepare_state(rq_catalog *c, rq__proc *p, bool on, rq_error *why)
{
    rq_peer_info found;
    rq_arena a;
    RQ_TRY(check_switch(c, why));
    rq_arena_init(&a);
    rq_err rc = listed(c, p, &a, &found, why);
    if (rc == RQ_OK && found.enabled == on)
        rc = rq_fail(why, RQ_E_DO_NOT_RETRY, "Replication peer %s has already been %s", found.id,
                     on ? "enabled" : "disabled");
    rq_arena_clear(&a);
    return rc;
}

static rq_err store_state(rq_catalog *c, rq__proc *p, bool on, rq_error *why)
{
    rq_peer_info found;
    rq_arena a;
    rq_arena_init(&a);
    rq_err rc = listed(c, p, &a, &found, why);
    if (rc == RQ_OK && found.enabled != on) {
        rc = rq__peer_put(c, id_of(p), found.config, on, why);
        if (rc == RQ_OK && on && found.lost_ms != 0)
            rq_log_warn(
                c->env->log, "replication",
                "peer %s is enabled and receives writes from now on; earlier writes are missing "
                "there, because their log records were released: the peer needs a resync",
                found.id);
    }
    rq_arena_clear(&a);
    return rc == RQ_OK ? refresh(c, p, why) : rc;
}

rq_err rq__peer_enable_prepare(rq_catalog *c, rq__proc *p, rq_error *why)
{
    return prepare_state(c, p, true, why);
}

rq_err rq__peer_enable_store(rq_catalog *c, rq__proc *p, rq_error *why)
{
    return store_state(c, p, true, why);
}

rq_err rq__peer_disable_prepare(rq_catalog *c, rq__proc *p, rq_error *why)
{
    return prepare_state(c, p, false, why);
}

rq_err rq__peer_disable_store(rq_catalog *c, rq__proc *p, rq_error *why)
{
    return store_state(c, p, false, why);
}

/* --- update ----------------------------------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
    if (is_blank(a)) return is_blank(b);
    return b != NULL && strcmp(a, b) == 0;
}

static const char *shown(const char *text)
{
    return text == NULL ? "null" : text;
}

static rq_err check_update(const char *id, const Pb__ReplicationPeer *old,
                           const Pb__ReplicationPeer *m, rq_error *why)
{
    if (!same_text(m->clusterkey, old->clusterkey))
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "Changing the cluster key on an existing peer is not allowed. Existing key "
                       "'%s' for peer %s does not match new key '%s'",
                       shown(old->clusterkey), id, shown(m->clusterkey));
    if (same_text(m->replicationendpointimpl, old->replicationendpointimpl)) return RQ_OK;
    return rq_fail(why, RQ_E_DO_NOT_RETRY,
                   "Changing the replication endpoint implementation class on an existing peer is "
                   "not allowed. Existing class '%s' for peer %s does not match new class '%s'",
                   shown(old->replicationendpointimpl), id, shown(m->replicationendpointimpl));
}

/* The old configuration's pairs whose names the new one lacks are added to it. */
static rq_err merge(Pb__ReplicationPeer *m, const Pb__ReplicationPeer *old, rq_arena *a)
{
    size_t count = m->n_configuration + old->n_configuration;
    Pb__NameStringPair **list = rq_arena_alloc(a, (count + 1) * sizeof(Pb__NameStringPair *));
    if (list == NULL) return RQ_E_NO_MEMORY;
    size_t n = m->n_configuration;
    if (n > 0) memcpy(list, m->configuration, n * sizeof *list);
    for (size_t i = 0; i < old->n_configuration; i++) {
        bool has = false;
        for (size_t k = 0; k < m->n_configuration && !has; k++)
            has = strcmp(m->configuration[k]->name, old->configuration[i]->name) == 0;
        if (!has) list[n++] = old->configuration[i];
    }
    m->configuration = list;
    m->n_configuration = n;
    return RQ_OK;
}

typedef struct update {
    rq_arena arena;
    rq_peer_info found;
    Pb__ReplicationPeer *old;
    Pb__ReplicationPeerDescription *next;
} update;

static rq_err update_begin(rq_catalog *c, const rq__proc *p, update *u, rq_error *why)
{
    *u = (update){.old = NULL};
    rq_arena_init(&u->arena);
    RQ_TRY(listed(c, p, &u->arena, &u->found, why));
    RQ_TRY(unpack(p, &u->next, why));
    u->old = pb__replication_peer__unpack(NULL, u->found.config.len, u->found.config.ptr);
    return u->old != NULL ? RQ_OK : rq_fail(why, RQ_E_CORRUPT, "the peer's row is malformed");
}

static void update_end(update *u)
{
    if (u->old != NULL) pb__replication_peer__free_unpacked(u->old, NULL);
    if (u->next != NULL) pb__replication_peer_description__free_unpacked(u->next, NULL);
    rq_arena_clear(&u->arena);
}

rq_err rq__peer_update_prepare(rq_catalog *c, rq__proc *p, rq_error *why)
{
    update u;
    Pb__ReplicationPeerDescription *d;
    RQ_TRY(check_switch(c, why));
    RQ_TRY(unpack(p, &d, why));
    rq_err rc = check_config(c, d->config, why); /* HBase's first check */
    pb__replication_peer_description__free_unpacked(d, NULL);
    if (rc != RQ_OK) return rc;
    rc = update_begin(c, p, &u, why);
    if (rc == RQ_OK) rc = check_update(u.found.id, u.old, u.next->config, why);
    update_end(&u);
    return rc;
}

rq_err rq__peer_update_store(rq_catalog *c, rq__proc *p, rq_error *why)
{
    update u;
    rq_slice config;
    rq_err rc = update_begin(c, p, &u, why);
    if (rc == RQ_OK) {
        Pb__ReplicationPeer *m = u.next->config;
        Pb__NameStringPair **own = m->configuration;
        size_t own_count = m->n_configuration;
        rc = merge(m, u.old, &u.arena);
        if (rc == RQ_OK) rc = pack_config(m, &u.arena, &config);
        if (rc == RQ_OK) rc = rq__peer_put(c, id_of(p), config, u.found.enabled, why);
        m->configuration = own; /* the message frees what it has allocated */
        m->n_configuration = own_count;
    }
    update_end(&u);
    return rc == RQ_OK ? refresh(c, p, why) : rc;
}
