/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions on regions and on the cluster. */
#include "api/api_priv.h"

#include "base/pb.h"

#include <stdlib.h>

/* A result of the library's; everything is in its arena, the struct itself excepted. */
typedef struct region_memory {
    rq_region_list pub;
    rq_arena arena;
} region_memory;

typedef struct cluster_memory {
    rq_cluster_info pub;
    rq_arena arena;
} cluster_memory;

/* --- regions ---------------------------------------------------------------------------------- */

void rq_region_list_free(rq_region_list *list)
{
    if (list == NULL) return;
    region_memory *m = RQ_CONTAINER_OF(list, region_memory, pub);
    rq_arena_clear(&m->arena);
    free(m);
}

/* "table,start,id.encoded." */
static rq_err encoded_of(rq_arena *arena, rq_slice name, const char **ret)
{
    size_t end = name.len, begin;
    if (end < 2 || name.ptr[end - 1] != '.') return RQ_E_MALFORMED;
    for (begin = --end; begin > 0 && name.ptr[begin - 1] != '.'; begin--)
        ;
    if (begin == 0) return RQ_E_MALFORMED;
    *ret = rq_arena_cstr(arena, rq_slice_of(name.ptr + begin, end - begin));
    return *ret == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

static rq_err keep(rq_arena *arena, rq_slice from, rq_bytes *ret)
{
    rq_slice kept = from.len == 0 ? RQ_SLICE_LIT("") : rq_arena_copy(arena, from);
    *ret = rq_bytes_of(kept.ptr, kept.len);
    return kept.ptr == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

rq_err rq_region_found(rq_region_finding *f, rq_slice name, rq_slice start, rq_slice stop,
                       const char *server)
{
    RQ_TRY(rq_arena_grow(f->arena, &f->items, sizeof *f->items, f->count, &f->cap));
    rq_region_entry *r = &f->items[f->count];
    RQ_TRY(encoded_of(f->arena, name, &r->encoded));
    RQ_TRY(keep(f->arena, name, &r->name));
    RQ_TRY(keep(f->arena, start, &r->start));
    RQ_TRY(keep(f->arena, stop, &r->stop));
    r->server = rq_arena_cstr(f->arena, rq_slice_cstr(server));
    if (r->server == NULL) return RQ_E_NO_MEMORY;
    f->count++;
    return RQ_OK;
}

static int by_start(const void *a, const void *b)
{
    return rq_slice_compare(rq_slice_of_bytes(((const rq_region_entry *)a)->start),
                            rq_slice_of_bytes(((const rq_region_entry *)b)->start));
}

static rq_err find_regions(rq_db *db, rq_slot *slot, const char *name, rq_region_finding *ret,
                           rq_why *why)
{
    rq_slice ns, qualifier;
    RQ_TRY(rq__split_name(name, &ns, &qualifier, &why->error));
    RQ_TRY(db->backend->regions(db, slot, ns, qualifier, ret, why));
    if (ret->count > 1) qsort(ret->items, ret->count, sizeof *ret->items, by_start);
    return RQ_OK;
}

rq_err rq_table_regions(rq_db *db, const char *name, rq_region_list **ret, rq_failure *failure)
{
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    rq_why why;
    rq_slot *slot;
    rq_err rc = rq__db_begin(db, &slot, &why);
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    region_memory *m = calloc(1, sizeof *m);
    rc = m == NULL ? rq_no_memory(&why.error) : RQ_OK;
    if (rc == RQ_OK) {
        rq_region_finding found = {.arena = &m->arena};
        rc = find_regions(db, slot, name, &found, &why);
        m->pub = (rq_region_list){found.count, found.items};
        if (rc == RQ_OK)
            *ret = &m->pub;
        else
            rq_region_list_free(&m->pub);
    }
    rq__slot_give_back(slot);
    return rq_fill_failure(failure, rc, &why);
}

static const rq_region_entry *region_of(const rq_region_finding *f, rq_slice row)
{
    for (size_t i = 0; i < f->count; i++) {
        const rq_region_entry *r = &f->items[i];
        if (rq_slice_compare(rq_slice_of_bytes(r->start), row) <= 0 &&
            (r->stop.len == 0 || rq_slice_compare(row, rq_slice_of_bytes(r->stop)) < 0))
            return r;
    }
    return NULL;
}

static rq_err split(rq_db *db, rq_slot *slot, const char *name, rq_slice row, rq_why *why)
{
    rq_region_finding found = {.arena = &slot->arena};
    rq_defining d = {.kind = RQ_DEFINE_SPLIT_REGION, .row = row};
    if (row.len == 0) return rq_fail(&why->error, RQ_E_INVALID, "the row is empty");
    RQ_TRY(find_regions(db, slot, name, &found, why));
    RQ_TRY(rq__split_name(name, &d.ns, &d.qualifier, &why->error));
    d.region = region_of(&found, row);
    if (d.region == NULL)
        return rq_fail(&why->error, RQ_E_NOT_FOUND, "no region of %s is open at that row", name);
    return db->backend->define(db, slot, &d, why);
}

rq_err rq_table_split(rq_db *db, const char *name, rq_bytes row, rq_failure *failure)
{
    rq_why why;
    rq_slot *slot;
    rq_err rc = rq__db_begin(db, &slot, &why);
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    rc = rq_check_bytes(row, "a row", &why.error);
    if (rc == RQ_OK) rc = split(db, slot, name, rq_slice_of_bytes(row), &why);
    rq__slot_give_back(slot);
    return rq_fill_failure(failure, rc, &why);
}

static rq_err merge(rq_db *db, rq_slot *slot, const char *name, const char *const *regions,
                    size_t count, rq_why *why)
{
    rq_defining d = {.kind = RQ_DEFINE_MERGE_REGIONS, .region_count = count};
    RQ_TRY(rq__split_name(name, &d.ns, &d.qualifier, &why->error));
    if (count < 2 || count > UINT16_MAX || regions == NULL)
        return rq_fail(&why->error, RQ_E_INVALID, "%zu regions to merge; allowed are 2 to 65,535",
                       count);
    rq_slice *list = rq_arena_alloc(&slot->arena, count * sizeof *list);
    if (list == NULL) return rq_no_memory(&why->error);
    for (size_t i = 0; i < count; i++) {
        if (regions[i] == NULL)
            return rq_fail(&why->error, RQ_E_INVALID, "a region's name is NULL");
        list[i] = rq_slice_cstr(regions[i]);
    }
    d.regions = list;
    return db->backend->define(db, slot, &d, why);
}

rq_err rq_table_merge(rq_db *db, const char *name, const char *const *regions, size_t count,
                      rq_failure *failure)
{
    rq_why why;
    rq_slot *slot;
    rq_err rc = rq__db_begin(db, &slot, &why);
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    rc = merge(db, slot, name, regions, count, &why);
    rq__slot_give_back(slot);
    return rq_fill_failure(failure, rc, &why);
}

rq_err rq_table_compact(rq_db *db, const char *name, const char *family, bool major,
                        rq_failure *failure)
{
    rq_why why;
    rq_slot *slot;
    rq_slice ns, qualifier;
    rq_err rc = rq__db_begin(db, &slot, &why);
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    rc = rq__split_name(name, &ns, &qualifier, &why.error);
    rq_slice of = family == NULL ? (rq_slice){0} : rq_slice_cstr(family);
    if (rc == RQ_OK) rc = db->backend->compact(db, slot, ns, qualifier, of, major, &why);
    rq__slot_give_back(slot);
    return rq_fill_failure(failure, rc, &why);
}

/* --- the cluster ------------------------------------------------------------------------------ */

void rq_cluster_info_free(rq_cluster_info *info)
{
    if (info == NULL) return;
    cluster_memory *m = RQ_CONTAINER_OF(info, cluster_memory, pub);
    rq_arena_clear(&m->arena);
    free(m);
}

rq_err rq_cluster_describe(rq_db *db, rq_cluster_info **ret, rq_failure *failure)
{
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    rq_why why;
    rq_slot *slot;
    rq_err rc = rq__db_begin(db, &slot, &why);
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    cluster_memory *m = calloc(1, sizeof *m);
    rc = m == NULL ? rq_no_memory(&why.error) : RQ_OK;
    if (rc == RQ_OK) {
        rq_cluster_finding found = {&m->arena, &m->pub};
        rc = db->backend->cluster(db, slot, &found, &why);
        bool complete = m->pub.id != NULL && m->pub.version != NULL && m->pub.master != NULL;
        for (size_t i = 0; rc == RQ_OK && i < m->pub.server_count; i++)
            complete = complete && m->pub.servers[i].name != NULL;
        if (rc == RQ_OK && !complete) rc = rq_no_memory(&why.error);
        if (rc == RQ_OK)
            *ret = &m->pub;
        else
            rq_cluster_info_free(&m->pub);
    }
    rq__slot_give_back(slot);
    return rq_fill_failure(failure, rc, &why);
}
