/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of ClientMetaService in a standalone server: the catalog names the only server. */
#include "registry/meta_view.h"

static rq_err look_at_catalog(const rq_meta_answers *a, rq_arena *arena, rq_meta_view *ret)
{
    (void)arena;
    rq_catalog *catalog = RQ_CONTAINER_OF(a, const rq_catalog_answers, answers)->catalog;
    const rq_catalog_table *meta = rq_catalog_table_find(catalog, RQ_SLICE_LIT("hbase:meta"));
    ret->cluster_id = rq_root_cluster_id(rq_catalog_root(catalog));
    ret->active = rq_catalog_master(catalog);
    ret->meta_server = ret->servers = rq_catalog_server(catalog);
    ret->server_count = 1;
    ret->meta_copies = meta == NULL ? 1 : rq_catalog_replication(meta->schema);
    return RQ_OK;
}

rq_catalog_answers rq_catalog_answers_of(rq_catalog *catalog)
{
    return (rq_catalog_answers){.answers = {look_at_catalog}, .catalog = catalog};
}
