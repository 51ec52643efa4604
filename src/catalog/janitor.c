/* SPDX-License-Identifier: Apache-2.0 */
/* The janitor: split and merged regions stay on disk while the new regions refer to their files. A
 * round searches meta for them and starts, for each table that has some, a procedure that archives
 * those without references (ddl_parents.c). HBASE: CatalogJanitor. */
#include "catalog/ddl_priv.h"

#include <stdlib.h>

typedef struct round_table {
    rq_ddl ddl;
    rq_arena arena;
} round_table;

static void round_done(rq_ddl *d)
{
    round_table *r = RQ_CONTAINER_OF(d, round_table, ddl);
    rq_arena_clear(&r->arena);
    free(r);
}

/* Submits the procedure and does not wait for it; the next round finds what then remains. */
static rq_err begin_clean(rq_catalog *c, const rq_slice table[2])
{
    round_table *r = calloc(1, sizeof *r);
    if (r == NULL) return RQ_E_NO_MEMORY;
    rq_arena_init(&r->arena);
    r->ddl = (rq_ddl){
        .kind = RQ_DDL_CLEAN_PARENTS,
        .ns = rq_arena_copy(&r->arena, table[0]),
        .qualifier = rq_arena_copy(&r->arena, table[1]),
        .submitted = round_done,
    };
    if (r->ddl.ns.ptr == NULL || r->ddl.qualifier.ptr == NULL) {
        round_done(&r->ddl);
        return RQ_E_NO_MEMORY;
    }
    rq_catalog_submit(c, &r->ddl);
    return RQ_OK;
}

static rq_err run_round(rq_catalog *c, bool wait, rq_error *why)
{
    rq_arena a;
    rq_arena_init(&a);
    rq_slice(*tables)[2];
    size_t count;
    rq_err rc = rq__tables_with_remains(c, &a, &tables, &count, why);
    for (size_t i = 0; i < count && rc == RQ_OK; i++) {
        if (!wait) {
            rc = begin_clean(c, tables[i]);
            continue;
        }
        rq_ddl d = {.kind = RQ_DDL_CLEAN_PARENTS, .ns = tables[i][0], .qualifier = tables[i][1]};
        rc = rq__catalog_ddl_sync(c, &d, why);
        if (rc == RQ_E_TABLE_NOT_FOUND) { /* dropped meanwhile, and its split and merged regions
                                           * with it */
            if (why != NULL) why->code = RQ_OK;
            rc = RQ_OK;
        }
    }
    rq_arena_clear(&a);
    return rc;
}

rq_err rq_catalog_clean_parents(rq_catalog *c, int64_t *ret_count, rq_error *why)
{
    *ret_count = -1;
    if (atomic_exchange(&c->janitor.busy, true)) return RQ_OK;
    uint64_t before = atomic_load(&c->janitor.cleaned);
    rq_err rc = run_round(c, true, why);
    *ret_count = (int64_t)(atomic_load(&c->janitor.cleaned) - before);
    atomic_store(&c->janitor.busy, false);
    return rc;
}

/* --- on its own ------------------------------------------------------------------------------- */

static void work(rq_catalog *c)
{
    rq_error why = {0};
    if (rq_catalog_switch_get(c, RQ_SWITCH_CATALOG_JANITOR) && !rq_catalog_in_maintenance(c) &&
        run_round(c, false, &why) != RQ_OK)
        rq_log_warn(c->env->log, "catalog", "cannot archive regions that were split or merged: %s",
                    why.message);
}

void rq__janitor_start(rq_catalog *c)
{
    rq__chore_start(&c->janitor.chore, c, work);
}
