/* SPDX-License-Identifier: Apache-2.0 */
/* See moves.h. */
#include "catalog/moves.h"

#include "catalog/catalog_priv.h"

#include <stdlib.h>

/* A move that is being submitted, with what its ddl points to; freed when the procedure has been accepted or refused. */
struct rq__move {
    rq__move *next;
    rq_ddl ddl;
    rq_arena arena;
};

static void submitted(rq_ddl *d)
{
    rq__move *m = RQ_CONTAINER_OF(d, rq__move, ddl);
    rq_arena_clear(&m->arena);
    free(m);
}

rq_err rq__move_add(rq__move **list, const rq_region_info *info, const rq_server_name *to)
{
    rq__move *m = calloc(1, sizeof *m);
    if (m == NULL) return RQ_E_NO_MEMORY;
    m->next = *list;
    *list = m;
    m->ddl = (rq_ddl){.kind = RQ_DDL_MOVE_REGION, .submitted = submitted};
    m->ddl.ns = rq_arena_copy(&m->arena, info->ns);
    m->ddl.qualifier = rq_arena_copy(&m->arena, info->qualifier);
    m->ddl.of.one_region.region = rq_arena_copy(&m->arena, rq_slice_cstr(info->encoded));
    m->ddl.of.one_region.server = rq_arena_copy(&m->arena, rq_slice_cstr(to->text));
    bool ok = m->ddl.ns.ptr != NULL && m->ddl.qualifier.ptr != NULL &&
              m->ddl.of.one_region.region.ptr != NULL && m->ddl.of.one_region.server.ptr != NULL;
    return ok ? RQ_OK : RQ_E_NO_MEMORY;
}

rq_err rq__moves_submit(rq_catalog *c, rq__move *list, rq_err rc, size_t *ret_count)
{
    for (rq__move *m = list, *next; m != NULL; m = next) {
        next = m->next;
        if (rc != RQ_OK) {
            submitted(&m->ddl);
            continue;
        }
        (*ret_count)++;
        rq_catalog_submit(c, &m->ddl);
    }
    return rc;
}
