/* SPDX-License-Identifier: Apache-2.0 */
/* Checks whether a cluster answers: IsMasterRunning on the master, and on the region server a Get
 * of a row of hbase:meta that need not exist. Each over a connection of its own, which is closed. */
#include "client/client_priv.h"

static rq_err ping_master(rq_client *c, const rq__address *at, rq_buf *answer, rq_error *why)
{
    rq__conn *conn = NULL;
    rq_pb_field f;
    bool running = false;
    rq_err rc = rq__client_conn(c, at, "MasterService", NULL, &conn);
    if (rc == RQ_OK) rc = rq__client_call(c, conn, "IsMasterRunning", (rq_slice){0}, answer, why);
    rq__client_retire_conn(c, conn);
    RQ_TRY(rc);
    rq_cursor cursor = rq_cursor_of(rq_buf_slice(answer));
    while (rq_pb_next(&cursor, &f) == RQ_OK)
        if (f.number == 1 && f.wire == 0) running = f.value != 0;
    return running ? RQ_OK : rq_fail(why, RQ_E_SERVER_NOT_RUNNING, "the master is not running");
}

static rq_err ping_meta(rq_client *c, const rq__address *at, rq_buf *answer, rq_error *why)
{
    rq__conn *conn = NULL;
    rq_buf request = {0};
    rq_get get = {.row = RQ_SLICE_LIT("ping")};
    rq_err rc = rq__client_conn(c, at, "ClientService", NULL, &conn);
    if (rc == RQ_OK) rc = rq__put_region(&request, RQ_SLICE_LIT(RQ__META_REGION));
    if (rc == RQ_OK) rc = rq__put_get_body(&request, &get);
    if (rc == RQ_OK) rc = rq__client_call(c, conn, "Get", rq_buf_slice(&request), answer, why);
    rq__client_retire_conn(c, conn);
    rq_buf_clear(&request);
    return rc;
}

rq_err rq_client_ping(rq_client *c, bool same_host, rq_error *why)
{
    const rq__address *registry = &c->registry.at; /* the one that has answered */
    rq__address master = c->found.master;
    rq__address meta = c->found.meta;
    rq_buf answer = {0};
    if (same_host) {
        memcpy(master.host, registry->host, sizeof master.host);
        memcpy(meta.host, registry->host, sizeof meta.host);
    }
    rq_err rc = ping_master(c, &master, &answer, why);
    if (rc == RQ_OK) rc = ping_meta(c, &meta, &answer, why);
    rq_buf_clear(&answer);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", rq_err_text(rc));
}
