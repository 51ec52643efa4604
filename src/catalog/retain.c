/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens regions on the server where they were before. The row of a closed region in hbase:meta keeps the server's
 * address; a server that has started again at this address gets the region back:
 *
 *   when a table is enabled                   always                        HBASE: EnableTableProcedure
 *   after the end of a server, and when a     if hbase.master.scp.retain.assignment is true, which is not the
 *   master starts                             default                       HBASE: ServerCrashProcedure.assignRegions
 *
 * This is only a preference: a region without an address, or whose row cannot be read, is opened on any server.
 */
#include "base/host_port.h"
#include "catalog/ddl_priv.h"
#include "catalog/meta.h"

#include <string.h>

#define HOST_SIZE 256

/* "host:port" or "[::1]:port" of info:server. NULL: it is none, or there is no memory. */
static const rq_server_name *parse(rq_slice text)
{
    char host[HOST_SIZE];
    rq_server_name name = {.host = host};
    if (!rq_host_port_split(text, host, sizeof host, &name.port) || name.port == 0) return NULL;
    return rq_server_name_new(&name);
}

static rq_err take_server(void *ctx, const rq_cell *cells, size_t count, rq_error *why)
{
    const rq_server_name **ret = ctx;
    (void)why;
    for (size_t i = 0; i < count && *ret == NULL; i++)
        if (rq_slice_eq(rq_cell_qualifier(&cells[i]), RQ_SLICE_LIT("server")))
            *ret = parse(rq_cell_value(&cells[i]));
    return RQ_OK;
}

void rq__retain_places(rq_catalog *c, rq__opened *list, size_t count)
{
    rq_region *meta;
    rq_error why = {.code = RQ_OK};
    if (c->calls.servers == NULL) return; /* this process is the only server */
    rq_err rc = rq__meta_ref(c, &meta, &why);
    if (rc == RQ_OK) {
        for (size_t i = 0; i < count && rc == RQ_OK; i++)
            if (list[i].last == NULL)
                rc = rq__region_row(meta, list[i].info->name, take_server, &list[i].last, &why);
        rq_region_unref(meta);
    }
    if (rc != RQ_OK)
        rq_log_warn(c->env->log, "catalog",
                    "cannot read from hbase:meta on which servers regions were; they are opened on "
                    "any server: %s",
                    why.code == RQ_OK ? rq_err_text(rc) : why.message);
}

void rq__retain_places_after_end(rq_catalog *c, rq__opened *list, size_t count)
{
    if (c->config != NULL && rq_config_int(c->config, RQ_SET_SCP_RETAIN) != 0)
        rq__retain_places(c, list, count);
}
