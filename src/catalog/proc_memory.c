/* SPDX-License-Identifier: Apache-2.0 */
/* Creates procedures from submissions, reduces finished ones to results, and frees them. All data
 * of a procedure is in its own arena, except the regions it has opened and its schema, which are
 * references. */
#include "catalog/proc_priv.h"
#include "descriptor/schema.h"
#include "vfs/retention.h"

#include <stdlib.h>

rq__proc *rq__proc_new(rq_catalog *c)
{
    rq__proc *p = calloc(1, sizeof *p);
    if (p == NULL) return NULL;
    rq_arena_init(&p->arena);
    p->catalog = c;
    return p;
}

rq_err rq__proc_abandon_opened(rq__proc *p)
{
    if (p->opened == NULL) return RQ_OK;
    rq_err rc = rq__opened_abandon(p->catalog, p, p->opened, p->opened_count);
    return rc == RQ_E_NO_MEMORY ? rq__wait_a_while(p, rc, rq_err_text(rc), NULL) : rc;
}

void rq__proc_forget_opened(rq__proc *p)
{
    if (p->opened != NULL) rq__opened_clear(p->opened, p->opened_count);
    free(p->opened);
    p->opened = NULL;
    p->opened_count = 0;
}

/* Releases the procedure's references: regions, the schema, files held against the cleaner. */
static void release_all(rq__proc *p)
{
    rq__proc_forget_opened(p);
    rq_table_schema_unref(p->schema);
    p->schema = NULL;
    rq_holder_release(p->holder);
    p->holder = NULL;
    rq_server_name_unref(p->to);
    p->to = NULL;
}

void rq__proc_slim(rq__proc *p)
{
    rq__claims_free(p);
    rq__proc_free_names(p);
    release_all(p);
    rq_arena old = p->arena;
    rq_slice class = rq_slice_of(p->java_class, strlen(p->java_class) + 1);
    rq_slice *kept[] = {&p->ns, &p->qualifier, &p->table, &p->user, &class};
    rq_arena_init(&p->arena);
    rq_slice copies[RQ_ARRAY_LEN(kept)];
    for (size_t i = 0; i < RQ_ARRAY_LEN(kept); i++) {
        copies[i] = rq_arena_copy(&p->arena, *kept[i]);
        if (copies[i].ptr != NULL) continue;
        rq_arena_clear(&p->arena); /* out of memory for a smaller copy: keeps the large one */
        p->arena = old;
        return;
    }
    for (size_t i = 0; i < RQ_ARRAY_LEN(kept); i++)
        *kept[i] = copies[i];
    if (p->unreadable) p->java_class = (const char *)class.ptr; /* others are constants */
    rq_arena_clear(&old);
    p->descriptor = (rq_slice){NULL, 0};
    p->of = (rq__payload){0};
    p->regions = p->old_regions = NULL;
    p->region_count = p->old_region_count = 0;
    p->infos = NULL;
    p->info_count = 0;
    p->cause = NULL;
}

void rq__proc_free(rq__proc *p)
{
    if (p == NULL) return;
    rq__claims_free(p);
    rq__proc_free_names(p);
    release_all(p);
    rq__calls_free(p->calls);
    rq__calls_free(p->files);
    rq_arena_clear(&p->arena);
    free(p);
}

static bool copy_slice(rq__proc *p, rq_slice from, rq_slice *to)
{
    *to = rq_arena_copy(&p->arena, from);
    return to->ptr != NULL;
}

/* Bytes of the user's name. Clients choose it, and ten thousand results are kept with it, in memory and in records. */
#define USER_KEPT_MAX 255

rq_err rq__proc_from_ddl(rq__proc *p, const rq_ddl *d)
{
    rq_slice user = rq_text_beginning(d->user, USER_KEPT_MAX);
    p->ops = rq__proc_kind_of(d->kind);
    if (p->ops == NULL) return RQ_E_INVALID;
    p->java_class = p->ops->java_class;
    bool ok = copy_slice(p, d->ns, &p->ns) && copy_slice(p, d->qualifier, &p->qualifier) &&
              copy_slice(p, user, &p->user) && copy_slice(p, (rq_slice){NULL, 0}, &p->descriptor);
    if (!ok) return RQ_E_NO_MEMORY;
    if (p->ops->payload->take != NULL) RQ_TRY(p->ops->payload->take(p, d));
    p->table = rq_table_name_join(&p->arena, p->ns, p->qualifier);
    if (p->table.ptr == NULL) return RQ_E_NO_MEMORY;
    p->client = d->client;
    p->nonce_group = d->nonce_group;
    p->nonce = d->nonce;
    p->submitted_ms = p->updated_ms = rq__catalog_wall_ms(p->catalog);
    return rq__claims_new(p);
}

rq_err rq__proc_to_reopen(rq__proc *p, const rq_region_info *info, const rq_server_name *left)
{
    p->ops = rq__proc_kind_of(RQ_DDL_REOPEN_REGION);
    p->java_class = p->ops->java_class;
    bool ok = copy_slice(p, info->ns, &p->ns) && copy_slice(p, info->qualifier, &p->qualifier) &&
              copy_slice(p, info->table, &p->table) &&
              copy_slice(p, rq_slice_cstr(info->encoded), &p->of.region.name) &&
              (left == NULL || copy_slice(p, rq_slice_cstr(left->text), &p->left)) &&
              copy_slice(p, (rq_slice){NULL, 0}, &p->descriptor);
    if (!ok) return RQ_E_NO_MEMORY;
    p->prepared = true;
    p->resumed = true; /* repeated until it succeeds */
    p->submitted_ms = p->updated_ms = rq__catalog_wall_ms(p->catalog);
    return rq__claims_new(p);
}
