/* SPDX-License-Identifier: Apache-2.0 */
/* MasterService: replication peers. Changes are procedures (catalog/ddl_peer.c); queries read the
 * catalog's list. HBASE: MasterRpcServices, HMaster. */
#include "service/listing.h"
#include "service/master_priv.h"
#include "service/messages.h"

#include "base/pb.h"
#include "filter/regex.h"

#include "proto/replication.pb-c.h"

#include <string.h>

#define PATTERN_BYTES_MAX ((size_t)4 << 20) /* largest size of a compiled pattern */

/* --- changes ---------------------------------------------------------------------------------- */

/* The procedure's lock is the peer's id behind a prefix that no namespace has. NULL: the call was
 * answered. */
static rq__ddl_job *peer_ddl(const rq_admin_services *s, rq_call *call, rq_ddl_kind kind,
                             const char *id)
{
    if (!rq_catalog_switch_get(s->catalog, RQ_SWITCH_PEER_MODIFICATION)) {
        rq_call_fail(call, RQ_E_IOEXCEPTION, "Replication peer modification disabled");
        return NULL;
    }
    rq__ddl_job *j = rq__ddl_job_new(call, kind, 0, 0);
    if (j == NULL) return NULL;
    const char *key = rq_arena_printf(&call->arena, RQ_PEER_LOCK_PREFIX "%s", id);
    if (key == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return NULL;
    }
    j->ddl.ns = rq_slice_cstr(key);
    j->ddl.early = true; /* HBase checks this in the procedure, so the failure is in its result */
    return j;
}

static rq_err describe(rq_call *call, const char *id, bool enabled, Pb__ReplicationPeer *config,
                       rq_slice *ret)
{
    Pb__ReplicationPeerDescription m = PB__REPLICATION_PEER_DESCRIPTION__INIT;
    Pb__ReplicationState state = PB__REPLICATION_STATE__INIT;
    state.state =
        enabled ? PB__REPLICATION_STATE__STATE__ENABLED : PB__REPLICATION_STATE__STATE__DISABLED;
    m.id = (char *)(uintptr_t)id;
    m.state = &state;
    m.config = config;
    size_t len = pb__replication_peer_description__get_packed_size(&m);
    uint8_t *bytes = rq_arena_alloc(&call->arena, len + 1);
    if (bytes == NULL) return RQ_E_NO_MEMORY;
    *ret = rq_slice_of(bytes, pb__replication_peer_description__pack(&m, bytes));
    return RQ_OK;
}

typedef struct add_job {
    rq__blocking blocking;
    rq__ddl_job *ddl;
    const char *cluster_key;
} add_job;

/* HBase asks the peer's quorum for its cluster id, too, while it checks the configuration. */
static rq_err check_key(rq__blocking *b)
{
    add_job *j = RQ_CONTAINER_OF(b, add_job, blocking);
    if (b->services->replication == NULL || j->cluster_key == NULL) return RQ_OK;
    return rq_replication_check_key(b->services->replication, j->cluster_key, &b->why);
}

static void submit_add(rq__blocking *b)
{
    add_job *j = RQ_CONTAINER_OF(b, add_job, blocking);
    rq_catalog_submit(b->services->catalog, &j->ddl->ddl);
}

void rq__add_peer(void *ctx, rq_call *call)
{
    const Pb__AddReplicationPeerRequest *r = (const Pb__AddReplicationPeerRequest *)call->param;
    rq__ddl_job *ddl = peer_ddl(ctx, call, RQ_DDL_ADD_PEER, r->peer_id);
    if (ddl == NULL) return;
    add_job *j = rq_arena_calloc(&call->arena, 1, sizeof *j);
    bool enabled = r->peer_state->state == PB__REPLICATION_STATE__STATE__ENABLED;
    if (j == NULL || describe(call, r->peer_id, enabled, r->peer_config,
                              &ddl->ddl.of.put_peer.description) != RQ_OK) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    j->ddl = ddl;
    j->cluster_key = r->peer_config->clusterkey;
    rq__blocking_start(&j->blocking, ctx, call, check_key, submit_add);
}

void rq__update_peer(void *ctx, rq_call *call)
{
    rq_admin_services *s = ctx;
    const Pb__UpdateReplicationPeerConfigRequest *r =
        (const Pb__UpdateReplicationPeerConfigRequest *)call->param;
    rq__ddl_job *ddl = peer_ddl(s, call, RQ_DDL_UPDATE_PEER, r->peer_id);
    if (ddl == NULL) return;
    if (describe(call, r->peer_id, true, r->peer_config, &ddl->ddl.of.put_peer.description) !=
        RQ_OK)
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
    else
        rq_catalog_submit(s->catalog, &ddl->ddl);
}

/* Requests that name only a peer all have `required string peer_id = 1`. */
static void change(rq_admin_services *s, rq_call *call, rq_ddl_kind kind)
{
    const Pb__RemoveReplicationPeerRequest *r =
        (const Pb__RemoveReplicationPeerRequest *)call->param;
    rq__ddl_job *ddl = peer_ddl(s, call, kind, r->peer_id);
    if (ddl != NULL) rq_catalog_submit(s->catalog, &ddl->ddl);
}

void rq__remove_peer(void *ctx, rq_call *call)
{
    change(ctx, call, RQ_DDL_REMOVE_PEER);
}

void rq__enable_peer(void *ctx, rq_call *call)
{
    change(ctx, call, RQ_DDL_ENABLE_PEER);
}

void rq__disable_peer(void *ctx, rq_call *call)
{
    change(ctx, call, RQ_DDL_DISABLE_PEER);
}

/* --- queries ---------------------------------------------------------------------------------- */

/* Numbers of the answers' fields: proto/replication.proto. */

void rq__get_peer(void *ctx, rq_call *call)
{
    const rq_admin_services *s = ctx;
    const Pb__GetReplicationPeerConfigRequest *r =
        (const Pb__GetReplicationPeerConfigRequest *)call->param;
    rq_buf out = {0};
    rq_peer_info p;
    rq_err rc = rq_catalog_peer(s->catalog, rq_slice_cstr(r->peer_id), &call->arena, &p);
    if (rc == RQ_E_NOT_FOUND) {
        rq_call_fail(call, RQ_E_PEER_NOT_FOUND, "%s", r->peer_id);
        return;
    }
    if (rc == RQ_OK) rc = rq_pb_put_bytes(&out, 1, rq_slice_cstr(p.id));
    if (rc == RQ_OK) rc = rq_pb_put_bytes(&out, 2, p.config);
    if (rc == RQ_OK)
        rq_call_reply_packed(call, rq_buf_slice(&out));
    else
        rq_call_fail(call, rc, NULL);
    rq_buf_clear(&out);
}

void rq__is_peer_enabled(void *ctx, rq_call *call)
{
    const rq_admin_services *s = ctx;
    const Pb__GetReplicationPeerStateRequest *r =
        (const Pb__GetReplicationPeerStateRequest *)call->param;
    Pb__GetReplicationPeerStateResponse response = PB__GET_REPLICATION_PEER_STATE_RESPONSE__INIT;
    rq_peer_info p;
    rq_err rc = rq_catalog_peer(s->catalog, rq_slice_cstr(r->peer_id), &call->arena, &p);
    if (rc == RQ_OK) {
        response.is_enabled = p.enabled;
        rq_call_reply(call, &response.base);
        return;
    }
    rq_error why = {.code = RQ_OK};
    if (rc == RQ_E_NOT_FOUND) /* HBASE: ReplicationPeerManager.getPeerState */
        rc = rq_fail(&why, RQ_E_IOEXCEPTION,
                     "org.apache.hadoop.hbase.replication.ReplicationException: Replication Peer "
                     "of %s does not exist.",
                     r->peer_id);
    rq_call_fail_why(call, rc, &why);
}

typedef struct peer_pattern {
    rq_regex *compiled; /* NULL: all */
    rq_pace pace;
} peer_pattern;

static rq_err compile(peer_pattern *p, const char *regex, rq_arena *arena, rq_error *why)
{
    size_t bytes_left = PATTERN_BYTES_MAX;
    if (regex == NULL) return RQ_OK;
    rq_pace_begin(&p->pace, false);
    return rq_regex_new(rq_slice_cstr(regex), 0, RQ_REGEX_MATCHES, arena, &bytes_left, &p->compiled,
                        why);
}

static rq_err put_peer(rq_buf *out, const rq_peer_info *p)
{
    size_t at;
    size_t state;
    RQ_TRY(rq_pb_begin(out, 1, &at));
    RQ_TRY(rq_pb_put_bytes(out, 1, rq_slice_cstr(p->id)));
    RQ_TRY(rq_pb_begin(out, 2, &state));
    RQ_TRY(rq_pb_put_number(out, 1,
                            p->enabled ? PB__REPLICATION_STATE__STATE__ENABLED
                                       : PB__REPLICATION_STATE__STATE__DISABLED));
    RQ_TRY(rq_pb_end(out, state));
    RQ_TRY(rq_pb_put_bytes(out, 3, p->config));
    return rq_pb_end(out, at);
}

static rq_err put_peers(const rq_admin_services *s, rq_call *call, rq_buf *out, rq_error *why)
{
    const Pb__ListReplicationPeersRequest *r = (const Pb__ListReplicationPeersRequest *)call->param;
    peer_pattern pattern = {.compiled = NULL};
    rq_peer_info *peers;
    size_t count;
    RQ_TRY(compile(&pattern, r->regex, &call->arena, why));
    RQ_TRY(rq_catalog_peers(s->catalog, &call->arena, &peers, &count));
    for (size_t i = 0; i < count; i++) {
        bool wanted = true;
        if (pattern.compiled != NULL)
            RQ_TRY(rq_regex_search(pattern.compiled, rq_slice_cstr(peers[i].id), &pattern.pace,
                                   &wanted, why));
        if (wanted) RQ_TRY(put_peer(out, &peers[i]));
    }
    return RQ_OK;
}

static rq_err list_peers(rq__listing *l, rq_slice *ret)
{
    rq_buf out = {0};
    rq_err rc = put_peers(l->services, l->call, &out, &l->why);
    if (rc == RQ_OK) *ret = rq_arena_copy(&l->call->arena, rq_buf_slice(&out));
    if (rc == RQ_OK && ret->ptr == NULL) rc = RQ_E_NO_MEMORY;
    rq_buf_clear(&out);
    return rc;
}

void rq__list_peers(void *ctx, rq_call *call)
{
    rq__listing_reply_long(ctx, call, list_peers);
}
