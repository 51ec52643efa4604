/* SPDX-License-Identifier: Apache-2.0 */
/* A server's first message to its master. HBASE: MasterRpcServices.regionServerStartup. */
#include "cluster/remote_priv.h"

#include "cluster/wire_priv.h"
#include "proto/region_server_status.pb-c.h"

#include <inttypes.h>
#include <string.h>

/* HBASE: hbase.master.maxclockskew, .warningclockskew. */
#define SKEW_MAX_MS 30000
#define SKEW_WARN_MS 10000
/* HBASE: HConstants.KEY_FOR_HOSTNAME_SEEN_BY_MASTER */
#define SEEN_AS "hbase.regionserver.hostname.seen.by.master"

/* The connection has proven host, port and start code already. */
static rq_err check_name(const rq_server_name *from, const Pb__RegionServerStartupRequest *r,
                         rq_error *why)
{
    const char *host = r->use_this_hostname_instead;
    bool same = r->port == from->port && (int64_t)r->server_start_code == from->start_code &&
                (host == NULL || strcmp(host, from->host) == 0);
    if (same) return RQ_OK;
    return rq_fail(why, RQ_E_DO_NOT_RETRY, "%s sent the startup message of %.255s,%u,%" PRIu64,
                   from->text, host == NULL ? from->host : host, r->port, r->server_start_code);
}

static rq_err check_clock(const rq_remote *m, const rq_server_name *from, uint64_t theirs,
                          rq_error *why)
{
    uint64_t ours = (uint64_t)m->o.env->executor->now_ms(m->o.env->executor);
    uint64_t skew = ours > theirs ? ours - theirs : theirs - ours;
    if (skew > SKEW_MAX_MS)
        return rq_fail(why, RQ_E_CLOCK_OUT_OF_SYNC,
                       "Server %s has been rejected; Reported time is too far out of sync with "
                       "master.  Time difference of %" PRIu64 "ms > max allowed of %dms",
                       from->text, skew, SKEW_MAX_MS);
    if (skew > SKEW_WARN_MS)
        rq_log_warn(m->o.env->log, "cluster", "the clock of %s differs by %" PRIu64 " ms",
                    from->text, skew);
    return RQ_OK;
}

/* HBASE: ServerManager.checkRejectableDecommissionedStatus. */
static rq_err check_host(rq_remote *m, const rq_server_name *from, rq_error *why)
{
    if (!m->o.rejects_hosts) return RQ_OK;
    pthread_mutex_lock(&m->lock);
    bool drains = rq__draining_has_host(m, from->host);
    pthread_mutex_unlock(&m->lock);
    if (!drains) return RQ_OK;
    rq_log_warn(m->o.env->log, "cluster",
                "%s is refused, because a server of its host is decommissioned "
                "(hbase.master.reject.decommissioned.hosts)",
                from->text);
    return rq_fail(why, RQ_E_HOST_REJECTED,
                   "Host %s exists in the list of decommissioned servers and Master is configured "
                   "to reject decommissioned hosts",
                   from->host);
}

static rq_err answer(const rq_server_name *from, rq_arena *arena, rq_slice *ret)
{
    Pb__NameStringPair seen_as = PB__NAME_STRING_PAIR__INIT, *list[] = {&seen_as};
    Pb__RegionServerStartupResponse m = PB__REGION_SERVER_STARTUP_RESPONSE__INIT;
    seen_as.name = rq__wire_text(SEEN_AS);
    seen_as.value = rq__wire_text(from->host);
    m.map_entries = list;
    m.n_map_entries = 1;
    return rq__wire_pack(arena, &m.base, ret);
}

rq_err rq_remote_startup(rq_remote *m, const rq_server_name *from, rq_slice request,
                         rq_arena *arena, rq_slice *ret, rq_error *why)
{
    const void *p;
    RQ_TRY(
        rq__wire_unpack(&pb__region_server_startup_request__descriptor, request, arena, &p, why));
    const Pb__RegionServerStartupRequest *r = p;
    RQ_TRY(check_name(from, r, why));
    RQ_TRY(check_host(m, from, why));
    RQ_TRY(check_clock(m, from, r->server_current_time, why));
    RQ_TRY(rq_remote_server_up(m, from, why));
    return answer(from, arena, ret);
}
