/* SPDX-License-Identifier: Apache-2.0 */
/* What unfinished procedures may have half done, by their records: the tables and regions in whose folders and rows
 * differences are expected. A difference anywhere else is a problem. */
#include "catalog/fsck_priv.h"

#include <stdlib.h>

#include "catalog/procedure.h"
#include "descriptor/schema.h"

static rq_err add_table(rq__fsck *k, rq_slice name)
{
    if (k->change_count == k->change_cap) {
        size_t cap = k->change_cap == 0 ? 8 : k->change_cap * 2;
        rq_slice *more = realloc(k->changes, cap * sizeof *more);
        if (more == NULL) return RQ_E_NO_MEMORY;
        k->changes = more;
        k->change_cap = cap;
    }
    rq_slice own = rq_arena_copy(&k->arena, name);
    if (own.ptr == NULL) return RQ_E_NO_MEMORY;
    k->changes[k->change_count++] = own;
    return RQ_OK;
}

static rq_err add_regions(rq__fsck *k, const rq_region_info *list, size_t count)
{
    if (count == 0) return RQ_OK;
    rq__fsck_encoded *more = realloc(k->moving, (k->moving_count + count) * sizeof *more);
    if (more == NULL) return RQ_E_NO_MEMORY;
    k->moving = more;
    for (size_t i = 0; i < count; i++)
        memcpy(k->moving[k->moving_count++].name, list[i].encoded, sizeof more->name);
    return RQ_OK;
}

/* Locks, and changes of namespaces and peers, change no table. */
static rq_err add_changes(rq__fsck *k, const rq__proc *p)
{
    if (p->ops->holds || p->ops->lock == RQ_LOCK_NAMESPACE) return RQ_OK;
    rq_slice name = rq_table_name_join(&k->arena, p->ns, p->qualifier);
    if (name.ptr == NULL) return RQ_E_NO_MEMORY;
    RQ_TRY(add_table(k, name));
    RQ_TRY(add_regions(k, p->regions, p->region_count));
    return add_regions(k, p->old_regions, p->old_region_count);
}

rq_err rq__fsck_add_procedure(rq__fsck *k, rq_slice record)
{
    rq__proc p = {0};
    rq_error why = {.code = RQ_OK};
    rq_err rc = rq__proc_decode(record, &p, &why);
    /* Whether it names what it changes: a record may be damaged behind the name. */
    bool tells = p.ns.len > 0 && (p.qualifier.len > 0 || rc == RQ_OK);
    if (rc != RQ_E_NO_MEMORY) rc = tells ? add_changes(k, &p) : RQ_OK;
    k->all_change |= !tells;
    rq_arena_clear(&p.arena);
    return rc;
}

static int by_encoded(const void *a, const void *b)
{
    const rq__fsck_encoded *x = a, *y = b;
    return strcmp(x->name, y->name);
}

void rq__fsck_sort_changes(rq__fsck *k)
{
    if (k->change_count > 1) qsort(k->changes, k->change_count, sizeof *k->changes, rq_slice_order);
    if (k->moving_count > 1) qsort(k->moving, k->moving_count, sizeof *k->moving, by_encoded);
}

bool rq__fsck_table_changes(const rq__fsck *k, rq_slice table)
{
    return k->all_change || (k->change_count > 0 && bsearch(&table, k->changes, k->change_count,
                                                            sizeof table, rq_slice_order) != NULL);
}

bool rq__fsck_region_changes(const rq__fsck *k, const char *encoded)
{
    rq__fsck_encoded key = {.name = ""};
    if (k->all_change) return true;
    if (k->moving_count == 0 || strlen(encoded) > RQ_ENCODED_NAME_LEN) return false;
    strcpy(key.name, encoded);
    return bsearch(&key, k->moving, k->moving_count, sizeof key, by_encoded) != NULL;
}
