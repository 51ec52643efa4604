/* SPDX-License-Identifier: Apache-2.0 */
/* Regions by row; contract in region_locator.h. */
#include "replication/region_locator.h"

#include "client/client.h"

#include <stdlib.h>
#include <string.h>

#define READ_TIMEOUT_MS 5000 /* of a read of hbase:meta */
#define ENCODED_LEN 32

struct rq__locator {
    rq_client *client;
    char *bootstrap; /* the client's option is borrowed */
};

rq_err rq__locator_open(const char *bootstrap, rq__locator **ret, rq_error *why)
{
    rq__locator *p = calloc(1, sizeof *p);
    if (p == NULL || (p->bootstrap = strdup(bootstrap)) == NULL) {
        free(p);
        return rq_no_memory(why);
    }
    const rq_client_options o = {.bootstrap = p->bootstrap, .rpc_timeout_ms = READ_TIMEOUT_MS};
    rq_err rc = rq_client_open(&o, &p->client, why);
    if (rc == RQ_OK)
        *ret = p;
    else
        rq__locator_close(p);
    return rc;
}

void rq__locator_close(rq__locator *p)
{
    if (p == NULL) return;
    if (p->client != NULL) rq_client_close(p->client);
    free(p->bootstrap);
    free(p);
}

int64_t rq__locator_now_ns(void)
{
    return rq_client_now_ns();
}

/* HBASE: ReplicationSink.batch */
static rq_err no_table(const char *name, rq_error *why)
{
    return rq_fail(why, RQ_E_TABLE_NOT_FOUND, "'%s'", name);
}

static rq_err read_table(rq_client_table *t, const char *name, int64_t since_ns, rq_error *why)
{
    rq_client_region first;
    bool is_known = rq_client_table_regions(t) > 0 && rq_client_table_read_at(t) >= since_ns;
    if (is_known) return RQ_OK;
    RQ_TRY(rq_client_table_read(t, why));
    if (rq_client_table_regions(t) > 0) return RQ_OK;
    return rq_client_table_find(t, (rq_slice){0}, &first) == RQ_E_TABLE_NOT_FOUND
               ? no_table(name, why)
               : RQ_OK;
}

rq_err rq__locator_read(rq__locator *p, rq_slice table, int64_t since_ns, rq__located_table **ret,
                        rq_error *why)
{
    char *name = rq_slice_strdup(table);
    if (name == NULL) return rq_no_memory(why);
    rq_err rc = rq_client_table_get(p->client, name, ret);
    if (rc == RQ_OK)
        rc = read_table(*ret, name, since_ns, why);
    else
        (void)rq_no_memory(why);
    free(name);
    return rc;
}

/* The encoded part of a region's name: TABLE,START,ID.ENCODED. (with the last point). */
static rq_slice encoded_of(rq_slice name)
{
    if (name.len < ENCODED_LEN + 2) return (rq_slice){0};
    return rq_slice_of(name.ptr + name.len - ENCODED_LEN - 1, ENCODED_LEN);
}

rq_err rq__locator_find(const rq__located_table *t, rq_slice row, rq__location *ret)
{
    rq_client_region r;
    RQ_TRY(rq_client_table_find(t, row, &r));
    *ret = (rq__location){
        .encoded = encoded_of(r.name), .host = r.host, .port = r.port, .start_code = r.start_code};
    return RQ_OK;
}
