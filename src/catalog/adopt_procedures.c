/* SPDX-License-Identifier: Apache-2.0 */
/* The procedures that HBase left in its master:store (adopt.h), read from the region's files. An
 * unfinished procedure would leave a table half changed, except for ServerCrashProcedure and its
 * children: this server opens the regions of the crashed server itself. HBASE:
 * RegionProcedureStore, ServerCrashProcedure. */
#include "catalog/adopt.h"

#include <stdlib.h>

#include "base/pb_arena.h"
#include "hfile/reader.h"
#include "proto/procedure.pb-c.h"

typedef struct look {
    rq_vfs *vfs;
    rq_arena arena;
} look;

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s);
    size_t m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* A cell of family proc, from any of the files. */
typedef struct record {
    rq_cell cell; /* bytes in the arena */
} record;

typedef struct records {
    record *list;
    size_t count, cap;
} records;

static rq_err add_record(records *r, rq_arena *a, const rq_cell *c)
{
    if (r->count == r->cap) {
        size_t cap = r->cap == 0 ? 64 : r->cap * 2;
        record *more = realloc(r->list, cap * sizeof *more);
        if (more == NULL) return RQ_E_NO_MEMORY;
        r->list = more;
        r->cap = cap;
    }
    record *to = &r->list[r->count++];
    *to = (record){*c};
    to->cell.row = rq_arena_copy(a, rq_cell_row(c)).ptr;
    to->cell.family = rq_arena_copy(a, rq_cell_family(c)).ptr;
    to->cell.qualifier = rq_arena_copy(a, rq_cell_qualifier(c)).ptr;
    to->cell.value = rq_arena_copy(a, rq_cell_value(c)).ptr;
    to->cell.tags = NULL;
    to->cell.tags_len = 0;
    return to->cell.row == NULL || (c->value_len > 0 && to->cell.value == NULL) ? RQ_E_NO_MEMORY
                                                                                : RQ_OK;
}

static rq_err read_records(look *k, const char *path, records *out, rq_error *why)
{
    rq_hfile_reader *reader;
    RQ_TRY(rq_hfile_reader_open(k->vfs, path, NULL, false, &reader, why));
    rq_hfile_scanner s;
    rq_read_ctx ctx = {.may_block = true};
    rq_hfile_scanner_init(&s, reader);
    rq_err rc = rq_hfile_scanner_seek_first(&s, &ctx, why);
    while (rc == RQ_OK) {
        rc = add_record(out, &k->arena, rq_hfile_scanner_cell(&s));
        if (rc == RQ_OK) rc = rq_hfile_scanner_next(&s, &ctx, why);
    }
    rq_hfile_scanner_clear(&s);
    rq_read_ctx_clear(&ctx);
    rq_hfile_reader_unref(reader);
    return rc == RQ_E_END ? RQ_OK : rc;
}

static int by_key(const void *x, const void *y)
{
    return rq_cell_compare(RQ_ORDER_DEFAULT, &((const record *)x)->cell,
                           &((const record *)y)->cell);
}

/* Keeps the newest cell of each row unless a delete marker hides it. A compacted file that was not
 * archived yet contains the same cells again, which changes nothing. */
static void keep_newest(records *r)
{
    size_t n = 0;
    size_t i = 0;
    if (r->count > 0) qsort(r->list, r->count, sizeof *r->list, by_key);
    while (i < r->count) {
        size_t end = i;
        int64_t hidden_to = INT64_MIN;
        const record *found = NULL;
        while (end < r->count &&
               rq_slice_eq(rq_cell_row(&r->list[end].cell), rq_cell_row(&r->list[i].cell))) {
            const rq_cell *c = &r->list[end].cell;
            if (rq_cell_is_delete(c) && c->timestamp > hidden_to) hidden_to = c->timestamp;
            if (!rq_cell_is_delete(c) && found == NULL && c->timestamp > hidden_to)
                found = &r->list[end];
            end++;
        }
        if (found != NULL) r->list[n++] = *found;
        i = end;
    }
    r->count = n;
}

typedef struct procedure {
    uint64_t id, parent;
    const char *java_class;
    bool ended;
} procedure;

static rq_err parse_procedure(look *k, const rq_cell *c, procedure *ret, rq_error *why)
{
    rq_pb_arena memory;
    rq_pb_arena_init(&memory, &k->arena);
    Pb__Procedure *m = pb__procedure__unpack(&memory.allocator, c->value_len, c->value);
    if (m == NULL)
        return rq_fail(why, RQ_E_CORRUPT, "MasterData holds a malformed procedure record");
    *ret = (procedure){.id = m->proc_id,
                       .parent = m->has_parent_id ? m->parent_id : 0,
                       .java_class = m->class_name,
                       .ended = m->state == PB__PROCEDURE_STATE__SUCCESS ||
                                m->state == PB__PROCEDURE_STATE__FAILED ||
                                m->state == PB__PROCEDURE_STATE__ROLLEDBACK};
    return RQ_OK;
}

/* Whether the procedure, or an ancestor, handles a crashed server. */
static bool is_of_a_crash(const procedure *list, size_t count, const procedure *p)
{
    for (size_t depth = 0; p != NULL && depth <= count; depth++) {
        if (ends_with(p->java_class, ".ServerCrashProcedure")) return true;
        const procedure *parent = NULL;
        for (size_t i = 0; i < count && p->parent != 0; i++)
            if (list[i].id == p->parent) parent = &list[i];
        p = parent;
    }
    return false;
}

static rq_err check_records(look *k, const records *r, rq_error *why)
{
    procedure *list = rq_arena_calloc(&k->arena, r->count + 1, sizeof *list);
    size_t n = 0;
    if (list == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < r->count; i++)
        if (r->list[i].cell.value_len > 0)
            RQ_TRY(parse_procedure(k, &r->list[i].cell, &list[n++], why));
    for (size_t i = 0; i < n; i++)
        if (!list[i].ended && !is_of_a_crash(list, n, &list[i]))
            return rq_fail(why, RQ_E_STATE,
                           "HBase's procedure %llu (%s) in MasterData is not finished: start HBase "
                           "on the folder once more and let it finish; nothing was changed",
                           (unsigned long long)list[i].id, list[i].java_class);
    return RQ_OK;
}

static rq_err check_all(look *k, rq_error *why)
{
    static const char store[] = "MasterData/data/master/store";
    rq_dir_entry *regions;
    size_t count;
    records r = {0};
    rq_err rc = rq_vfs_list_if_any(k->vfs, store, &k->arena, &regions, &count, why);
    for (size_t i = 0; i < count && rc == RQ_OK; i++) {
        rq_dir_entry *files;
        size_t n;
        if (!regions[i].is_dir || regions[i].name[0] == '.') continue;
        char *dir = rq_arena_printf(&k->arena, "%s/%s/proc", store, regions[i].name);
        rc = dir == NULL ? RQ_E_NO_MEMORY
                         : rq_vfs_list_if_any(k->vfs, dir, &k->arena, &files, &n, why);
        for (size_t f = 0; rc == RQ_OK && f < n; f++) {
            char *path = rq_arena_printf(&k->arena, "%s/%s", dir, files[f].name);
            if (path == NULL) rc = RQ_E_NO_MEMORY;
            if (rc == RQ_OK && !files[f].is_dir && files[f].name[0] != '.')
                rc = read_records(k, path, &r, why);
        }
    }
    if (rc == RQ_OK) {
        keep_newest(&r);
        rc = check_records(k, &r, why);
    }
    free(r.list);
    return rc;
}

rq_err rq__adopt_check_procedures(rq_vfs *v, rq_error *why)
{
    look k = {.vfs = v};
    rq_err rc = check_all(&k, why);
    rq_arena_clear(&k.arena);
    return rc;
}
