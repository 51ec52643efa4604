/* SPDX-License-Identifier: Apache-2.0 */
/* The files held by HBase's snapshots; format and contract in snapshots.h. */
#include "catalog/snapshots.h"

#include "base/pb.h"
#include "catalog/snapshot_manifest.h"
#include "store/reference.h"

#include <stdlib.h>

#define SNAPSHOTS ".hbase-snapshot"
#define MANIFEST_MAX ((size_t)256 * 1024 * 1024) /* HBASE: snapshot.manifest.size.limit, 64 MB */

enum {
    MANIFEST_SCHEMA = 1,
    MANIFEST_REGION = 2,
    REGION_FAMILY = 3,
    FAMILY_FILE = 2,
    FILE_NAME = 1
};

/* --- names ------------------------------------------------------------------------------------ */

rq_err rq__names_add(rq__names *n, rq_slice name)
{
    if (n->count == n->cap) {
        size_t cap = n->cap == 0 ? 64 : 2 * n->cap;
        rq_slice *more = realloc(n->list, cap * sizeof *more);
        if (more == NULL) return RQ_E_NO_MEMORY;
        n->list = more;
        n->cap = cap;
    }
    n->list[n->count++] = name;
    return RQ_OK;
}

void rq__names_sort(rq__names *n)
{
    if (n->count > 1) qsort(n->list, n->count, sizeof *n->list, rq_slice_order);
}

bool rq__names_have(const rq__names *n, size_t sorted, rq_slice name)
{
    return sorted > 0 && bsearch(&name, n->list, sorted, sizeof name, rq_slice_order) != NULL;
}

/* --- a manifest ------------------------------------------------------------------------------- */

/* Adds the file, and the file it refers to: "<file>.<region>", "<table>=<region>-<file>", or
 * both. */
static rq_err add_file(rq__snapshot_files *s, rq_slice name)
{
    rq_store_name parts;
    rq_store_name_parse(name, &parts);
    RQ_TRY(rq__names_add(&s->names, name));
    return parts.is_link || parts.is_reference ? rq__names_add(&s->names, parts.file) : RQ_OK;
}

/* The path of fields from the manifest down to a file's name. */
static const uint32_t way[] = {MANIFEST_REGION, REGION_FAMILY, FAMILY_FILE, FILE_NAME};

static rq_err add_below(rq__snapshot_files *s, rq_slice message, size_t depth)
{
    if (depth == RQ_ARRAY_LEN(way)) return message.len == 0 ? RQ_E_CORRUPT : add_file(s, message);
    rq_cursor c = rq_cursor_of(message);
    rq_pb_field f;
    rq_err rc;
    while ((rc = rq_pb_next(&c, &f)) == RQ_OK)
        if (f.number == way[depth] && f.wire == RQ_PB_BYTES)
            RQ_TRY(add_below(s, f.bytes, depth + 1));
    return rc == RQ_E_END ? RQ_OK : rq_err_of_storage(rc, NULL);
}

/* Every manifest has the table's descriptor: an empty one means that data was lost. */
static rq_err check_schema(rq_slice manifest)
{
    rq_cursor c = rq_cursor_of(manifest);
    rq_pb_field f;
    while (rq_pb_next(&c, &f) == RQ_OK)
        if (f.number == MANIFEST_SCHEMA && f.wire == RQ_PB_BYTES) return RQ_OK;
    return RQ_E_CORRUPT;
}

rq_err rq__snapshot_add_manifest(rq__snapshot_files *s, rq_slice manifest, rq_error *why)
{
    rq_err rc = check_schema(manifest);
    if (rc == RQ_OK) rc = add_below(s, manifest, 0);
    return rc == RQ_OK ? RQ_OK
                       : rq_fail(why, rc, "%s",
                                 rc == RQ_E_CORRUPT ? "a malformed manifest of a snapshot"
                                                    : rq_err_text(rc));
}

/* --- all of them ------------------------------------------------------------------------------ */

/* A snapshot that cannot be parsed holds every file: it may be one of HBase 0.96, whose snapshots
 * were folders. */
static rq_err read_one(rq__snapshot_files *s, rq_vfs *v, const char *name, rq_error *why)
{
    rq_slice bytes;
    rq_error own = {0};
    const char *path = rq_arena_printf(&s->arena, SNAPSHOTS "/%s/data.manifest", name);
    if (path == NULL) return rq_no_memory(why);
    if (!rq__snapshot_exists(v, rq_slice_cstr(name))) return RQ_OK; /* half deleted */
    rq_err rc = rq_vfs_read_file(v, path, MANIFEST_MAX, &s->arena, &bytes, &own);
    if (rc == RQ_OK) rc = rq__snapshot_add_manifest(s, bytes, &own);
    if (rc == RQ_E_NOT_FOUND || rc == RQ_E_INVALID || rc == RQ_E_CORRUPT) {
        s->all = true;
        return RQ_OK;
    }
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s: %s", path, own.message);
}

static rq_err read_all(rq__snapshot_files *s, rq_vfs *v, rq_error *why)
{
    rq_dir_entry *entries;
    size_t count;
    RQ_TRY(rq_vfs_list_if_any(v, SNAPSHOTS, &s->arena, &entries, &count, why));
    for (size_t i = 0; i < count; i++)
        if (entries[i].is_dir && entries[i].name[0] != '.')
            RQ_TRY(read_one(s, v, entries[i].name, why));
    rq__names_sort(&s->names);
    s->is_read = true;
    return RQ_OK;
}

rq_err rq__snapshot_holds(rq__snapshot_files *s, rq_vfs *v, const char *name, bool *ret,
                          rq_error *why)
{
    if (!s->is_read) RQ_TRY(read_all(s, v, why));
    *ret = s->all || rq__names_have(&s->names, s->names.count, rq_slice_cstr(name));
    return RQ_OK;
}

void rq__snapshot_files_clear(rq__snapshot_files *s)
{
    free(s->names.list);
    rq_arena_clear(&s->arena);
    *s = (rq__snapshot_files){0};
}
