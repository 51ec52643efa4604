/* SPDX-License-Identifier: Apache-2.0 */
/* Changes that the master of a cluster refuses, because they do not work with shared storage yet, or because the servers cannot
 * be told of them. A refused change has no effects. */
#include "catalog/ddl_priv.h"

static const struct {
    rq_ddl_kind kind;
    const char *what;
} lacking[] = {
    {RQ_DDL_ADD_PEER, "replication"},    {RQ_DDL_REMOVE_PEER, "replication"},
    {RQ_DDL_ENABLE_PEER, "replication"}, {RQ_DDL_DISABLE_PEER, "replication"},
    {RQ_DDL_UPDATE_PEER, "replication"},
};

rq_err rq__cluster_check_kind(const rq_catalog *c, rq_ddl_kind kind, rq_error *why)
{
    if (!rq_engine_in_cluster(c->engine) || c->peers_changed != NULL) return RQ_OK;
    for (size_t i = 0; i < RQ_ARRAY_LEN(lacking); i++)
        if (lacking[i].kind == kind)
            return rq_fail(why, RQ_E_UNSUPPORTED, "a cluster does not support %s yet",
                           lacking[i].what);
    return RQ_OK;
}

rq_err rq__cluster_check_schema(const rq_catalog *c, const rq_table_schema *s, rq_error *why)
{
    if (!rq_engine_in_cluster(c->engine)) return RQ_OK;
    if (rq_slice_eq(s->name, RQ_SLICE_LIT("hbase:meta")) && rq_catalog_replication(s) > 1)
        return rq_fail(why, RQ_E_UNSUPPORTED,
                       "a cluster does not support replicas of hbase:meta yet");
    return RQ_OK;
}
