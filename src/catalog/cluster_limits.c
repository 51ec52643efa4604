/* SPDX-License-Identifier: Apache-2.0 */
/* Table descriptors that the master of a cluster refuses. A refused change has no effects. */
#include "catalog/ddl_priv.h"

rq_err rq__cluster_check_schema(const rq_catalog *c, const rq_table_schema *s, rq_error *why)
{
    if (!rq_engine_in_cluster(c->engine)) return RQ_OK;
    if (rq_slice_eq(s->name, RQ_SLICE_LIT("hbase:meta")) && rq_catalog_replication(s) > 1)
        return rq_fail(why, RQ_E_UNSUPPORTED,
                       "a cluster does not support replicas of hbase:meta yet");
    return RQ_OK;
}
