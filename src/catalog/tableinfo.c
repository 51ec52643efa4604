/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing .tableinfo files; see tableinfo.h. */
#include "catalog/tableinfo.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define DESC_DIR ".tabledesc"
#define PREFIX ".tableinfo."
#define FILE_MAX ((size_t)64 << 20)

char *rq__table_dir(rq_arena *a, rq_slice ns, rq_slice qualifier)
{
    const char *root = rq_slice_eq(ns, RQ_SLICE_LIT("master")) ? "MasterData/" : "";
    return rq_arena_printf(a, "%sdata/%.*s/%.*s", root, (int)ns.len, (const char *)ns.ptr,
                           (int)qualifier.len, (const char *)qualifier.ptr);
}

/* ".tableinfo.0000000001.351" → 1, 351. In files of HBase before 0.98 there is no length: then it
 * is 0. */
static bool parse_name(const char *name, unsigned long *ret_number, unsigned long *ret_len)
{
    size_t prefix = strlen(PREFIX);
    if (strncmp(name, PREFIX, prefix) != 0) return false;
    char *end;
    *ret_number = strtoul(name + prefix, &end, 10);
    if (end == name + prefix) return false;
    *ret_len = 0;
    if (*end == '\0') return true;
    if (*end != '.') return false;
    const char *digits = end + 1;
    *ret_len = strtoul(digits, &end, 10);
    return end != digits && *end == '\0';
}

typedef struct found_files {
    char *dir;
    rq_dir_entry *entries;
    size_t count;
} found_files;

static rq_err find_files(rq_vfs *v, rq_arena *a, rq_slice ns, rq_slice qualifier, found_files *ret,
                         rq_error *why)
{
    char *table = rq__table_dir(a, ns, qualifier);
    ret->dir = table == NULL ? NULL : rq_arena_printf(a, "%s/%s", table, DESC_DIR);
    if (ret->dir == NULL) return RQ_E_NO_MEMORY;
    return rq_vfs_list(v, ret->dir, a, &ret->entries, &ret->count, why);
}

static rq_err read_one(rq_vfs *v, rq_arena *a, const char *path, unsigned long len,
                       rq_table_schema **ret, rq_error *why)
{
    rq_slice bytes;
    RQ_TRY(rq_vfs_read_file(v, path, FILE_MAX, a, &bytes, why));
    if (len != 0 && bytes.len != len)
        return rq_fail(why, RQ_E_CORRUPT, "%s: %zu bytes instead of %lu", path, bytes.len, len);
    if (bytes.len < 4 || memcmp(bytes.ptr, "PBUF", 4) != 0)
        return rq_fail(why, RQ_E_CORRUPT, "%s: no PBUF magic", path);
    rq_error parse = {0};
    rq_err rc = rq_table_schema_parse(rq_slice_of(bytes.ptr + 4, bytes.len - 4), ret, &parse);
    if (rc == RQ_OK || rc == RQ_E_NO_MEMORY) return rc;
    return rq_fail(why, RQ_E_CORRUPT, "%s: %s", path, parse.message);
}

rq_err rq_tableinfo_read(rq_vfs *v, rq_slice ns, rq_slice qualifier, rq_table_schema **ret,
                         rq_error *why)
{
    rq_arena a;
    rq_arena_init(&a);
    found_files f;
    rq_error first = {0}; /* the error of the newest one, if none can be read */
    rq_err rc = find_files(v, &a, ns, qualifier, &f, why);
    if (rc != RQ_OK) goto out;
    rc = RQ_E_NOT_FOUND;
    unsigned long below = ULONG_MAX;
    for (;;) {
        unsigned long best = 0, best_len = 0, number, len;
        const char *best_name = NULL;
        for (size_t i = 0; i < f.count; i++) {
            if (!parse_name(f.entries[i].name, &number, &len) || number >= below) continue;
            if (best_name != NULL && number < best) continue;
            best = number;
            best_len = len;
            best_name = f.entries[i].name;
        }
        if (best_name == NULL) break;
        char *path = rq_arena_printf(&a, "%s/%s", f.dir, best_name);
        if (path == NULL) {
            rc = RQ_E_NO_MEMORY;
            break;
        }
        rc = read_one(v, &a, path, best_len, ret, &first);
        if (rc != RQ_E_CORRUPT) break;
        below = best;
    }
    if (rc != RQ_OK) {
        if (first.code != RQ_OK)
            (void)rq_fail(why, rc, "%s", first.message);
        else
            (void)rq_fail(why, rc, "%s: no readable table descriptor", f.dir);
    }
out:
    rq_arena_clear(&a);
    return rc;
}

/* Makes the .tabledesc folder. If it exists, it and the folders above are durable: they were synced
 * when they were made. */
static rq_err make_dir(rq_vfs *v, const char *table, const char *dir, rq_error *why)
{
    rq_err rc = rq_vfs_mkdir(v, dir, NULL);
    if (rc == RQ_OK || rc == RQ_E_EXISTS) return rq_vfs_sync_dir(v, table, why);
    RQ_TRY(rq_vfs_mkdirs(v, table, why));
    return rq_vfs_mkdirs(v, dir, why);
}

static rq_err write_next(rq_vfs *v, rq_arena *a, const rq_table_schema *s, rq_error *why)
{
    rq_slice pb = rq_table_schema_pb(s);
    uint8_t *bytes = rq_arena_alloc(a, pb.len + 4);
    char *table = rq__table_dir(a, s->ns, s->qualifier);
    char *dir = table == NULL ? NULL : rq_arena_printf(a, "%s/%s", table, DESC_DIR);
    if (bytes == NULL || dir == NULL) return RQ_E_NO_MEMORY;
    memcpy(bytes, "PBUF", 4);
    memcpy(bytes + 4, pb.ptr, pb.len);
    RQ_TRY(make_dir(v, table, dir, why));

    found_files f;
    RQ_TRY(find_files(v, a, s->ns, s->qualifier, &f, why));
    unsigned long newest = 0, number, len;
    for (size_t i = 0; i < f.count; i++)
        if (parse_name(f.entries[i].name, &number, &len) && number > newest) newest = number;
    char *path = rq_arena_printf(a, "%s/" PREFIX "%010lu.%zu", dir, newest + 1, pb.len + 4);
    if (path == NULL) return RQ_E_NO_MEMORY;
    RQ_TRY(rq_vfs_write_new_file(v, path, rq_slice_of(bytes, pb.len + 4), why));

    /* From here on the new file counts; files that cannot be removed now are removed with the next
     * one. */
    for (size_t i = 0; i < f.count; i++) {
        if (!parse_name(f.entries[i].name, &number, &len)) continue;
        char *old = rq_arena_printf(a, "%s/%s", dir, f.entries[i].name);
        if (old == NULL || rq_vfs_remove(v, old, NULL) != RQ_OK) break;
    }
    return RQ_OK;
}

rq_err rq__tableinfo_write(rq_vfs *v, const rq_table_schema *s, rq_error *why)
{
    rq_arena a;
    rq_arena_init(&a);
    rq_err rc = write_next(v, &a, s, why);
    rq_arena_clear(&a);
    return rc;
}
