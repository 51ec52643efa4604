/* SPDX-License-Identifier: Apache-2.0 */
/* Compares everything below data/ with hbase:meta: tables and descriptors, regions and their infos,
 * manifests; then checks each table's chain of regions, which must cover every row once. */
#include "catalog/fsck_priv.h"

#include <stdlib.h>

#include "catalog/tableinfo.h"
#include "base/read_failure.h"

#define REGION_INFO_MAX ((size_t)1024 * 1024)
#define MANIFESTS ".rorqual/regions"

typedef struct table_look {
    rq__fsck *k;
    const char *ns, *qualifier, *dir;
    rq_slice name;
    bool is_meta; /* hbase:meta has no row of itself */
    bool disabled;
    bool changes;            /* an unfinished procedure changes the table */
    bool in_the_making;      /* it does, and the table is not in meta */
    rq_table_schema *schema; /* NULL: cannot be read */
} table_look;

/* --- one region's folder ---------------------------------------------------------------------- */

static int by_encoded(const void *a, const void *b)
{
    const rq__fsck_region *x = a, *y = b;
    return strcmp(x->info.encoded, y->info.encoded);
}

/* REQUIRES: the regions are sorted so. */
static rq__fsck_region *region_of(rq__fsck *k, const char *encoded)
{
    rq__fsck_region key = {0};
    if (k->region_count == 0 || strlen(encoded) > RQ_ENCODED_NAME_LEN) return NULL;
    strcpy(key.info.encoded, encoded);
    return bsearch(&key, k->regions, k->region_count, sizeof key, by_encoded);
}

static bool was_merged(const rq__fsck *k, const char *encoded)
{
    return rq__fsck_has_path(&k->merged, encoded);
}

/* The .regioninfo in the folder; false if it is missing or not believable. */
static rq_err read_info(table_look *t, const char *dir, const char *encoded, rq_region_info *ret,
                        bool *ret_read, rq_error *why)
{
    rq__fsck *k = t->k;
    rq_slice bytes;
    rq_error own = {0};
    *ret_read = false;
    const char *path = rq_arena_printf(&k->arena, "%s/.regioninfo", dir);
    if (path == NULL) return RQ_E_NO_MEMORY;
    rq_err rc = rq_vfs_read_file(k->vfs, path, REGION_INFO_MAX, &k->arena, &bytes, &own);
    if (rc == RQ_OK) rc = rq_region_info_parse_delimited(bytes, &k->arena, ret, &own);
    if (rq_is_read_failure(rc)) return rq_fail(why, rc, "%s", own.message);
    if (rc != RQ_OK) {
        rq__fsck_report(k, RQ_FINDING_PROBLEM, path, "%s", own.message);
        return RQ_OK;
    }
    *ret_read = strcmp(ret->encoded, encoded) == 0 && rq_slice_eq(ret->table, t->name);
    if (!*ret_read)
        rq__fsck_report(k, RQ_FINDING_PROBLEM, path, "belongs to another region (%s)",
                        ret->encoded);
    return RQ_OK;
}

/* Whether hbase:meta is too incomplete to compare it with the folders. */
static bool is_blind(const rq__fsck *k)
{
    return k->refused || k->log_damaged || !k->meta_whole;
}

static rq_err report_orphan(const table_look *t, const char *dir)
{
    rq__fsck *k = t->k;
    if (is_blind(k) || k->parents_unknown) return RQ_OK;
    if (rq__fsck_has_path(&k->claimed, strrchr(dir, '/') + 1)) return RQ_OK;
    if (t->changes) {
        rq__fsck_report(k, RQ_FINDING_NOTE, dir,
                        "a region without a row in hbase:meta; a procedure is unfinished");
        return RQ_OK;
    }
    rq__fsck_report(k, RQ_FINDING_PROBLEM, dir, "a region without a row in hbase:meta");
    return rq__fsck_note_path(k, &k->orphans, dir);
}

/* Reports a .regioninfo whose bytes no writer would have written, because the file has no checksum.
 * `info`: the RegionInfo that it contains, or should contain. */
static rq_err compare_info(rq__fsck *k, const char *dir, const rq_region_info *info, rq_error *why)
{
    rq_slice bytes, wanted;
    rq_error own = {0};
    rq_region_info plain = *info;
    plain.offline = plain.split = false; /* meta alone tells of a split */
    const char *path = rq_arena_printf(&k->arena, "%s/.regioninfo", dir);
    if (path == NULL) return RQ_E_NO_MEMORY;
    RQ_TRY(rq_region_info_serialize_delimited(&plain, &k->arena, &wanted));
    rq_err rc = rq_vfs_read_file(k->vfs, path, REGION_INFO_MAX, &k->arena, &bytes, &own);
    if (rq_is_read_failure(rc)) return rq_fail(why, rc, "%s", own.message);
    if (rc != RQ_OK || !rq_slice_eq(bytes, wanted))
        rq__fsck_report(k, RQ_FINDING_PROBLEM, path, "%s",
                        rc != RQ_OK ? own.message
                                    : "differs from the .regioninfo that this region should have");
    return RQ_OK;
}

/* These folders have fixed names; their infos must be the known ones. */
static rq_err look_at_system_region(rq__fsck *k, const char *dir, const char *encoded,
                                    const rq_region_info *info, rq_error *why)
{
    if (strcmp(encoded, info->encoded) == 0) return compare_info(k, dir, info, why);
    rq__fsck_report(k, RQ_FINDING_PROBLEM, dir,
                    "the folder's name is not the name of this table's only region");
    return RQ_OK;
}

/* Compares the region's folder with meta. *ret: the info to check the region by. */
static rq_err look_at_identity(table_look *t, const char *dir, const char *encoded,
                               rq__fsck_region *known, bool is_parent, rq_region_info *ret,
                               rq_error *why)
{
    rq__fsck *k = t->k;
    bool read;
    *ret = (rq_region_info){0};
    RQ_TRY(read_info(t, dir, encoded, ret, &read, why));
    if (known != NULL) {
        known->on_disk = true;
        if (read && (!rq_slice_eq(ret->start_key, known->info.start_key) ||
                     !rq_slice_eq(ret->end_key, known->info.end_key)))
            rq__fsck_report(k, RQ_FINDING_PROBLEM, dir,
                            ".regioninfo and hbase:meta have different keys");
        else if (read)
            RQ_TRY(compare_info(k, dir, &known->info, why));
        *ret = known->info;
        return RQ_OK;
    }
    RQ_TRY(rq__fsck_note_path(k, &k->known, encoded));
    if (!is_parent) RQ_TRY(report_orphan(t, dir));
    if (read) return RQ_OK;
    /* Its location is enough for a check; keys outside its range are not searched for. */
    *ret = (rq_region_info){0};
    ret->ns = rq_slice_cstr(t->ns);
    ret->qualifier = rq_slice_cstr(t->qualifier);
    ret->table = t->name;
    memcpy(ret->encoded, encoded, strlen(encoded) + 1);
    return RQ_OK;
}

/* A split or merged region may lack files, because the janitor removes them one by one. A missing
 * file that is still needed is reported for the region that refers to it. */
static rq_err look_at_region(table_look *t, const char *encoded, rq_error *why)
{
    rq__fsck *k = t->k;
    rq_region_info info;
    rq_region_survey s;
    const char *dir = rq_arena_printf(&k->arena, "%s/%s", t->dir, encoded);
    if (dir == NULL) return RQ_E_NO_MEMORY;
    if (t->is_meta) {
        RQ_TRY(rq__fsck_note_path(k, &k->known, encoded));
        RQ_TRY(rq_region_info_meta(&k->arena, &info));
        return look_at_system_region(k, dir, encoded, &info, why);
    }
    rq__fsck_region *known = region_of(k, encoded);
    bool is_parent = known != NULL ? known->is_parent : was_merged(k, encoded);
    bool is_made = known == NULL && !is_parent && t->changes;
    k->half_made = is_parent || is_made;
    rq_err rc = look_at_identity(t, dir, encoded, known, is_parent, &info, why);
    k->half_made = is_made;
    if (rc == RQ_OK)
        rc = rq__fsck_look_at_region(k, &info, t->schema, is_parent || is_made, t->disabled, &s,
                                     why);
    k->half_made = false;
    return rc;
}

/* --- tables ----------------------------------------------------------------------------------- */

static bool is_encoded_name(const char *name)
{
    size_t n = strspn(name, "0123456789abcdef");
    return name[n] == '\0' && n > 0 && n <= RQ_ENCODED_NAME_LEN;
}

static rq_err look_at_table_dir(table_look *t, rq_error *why)
{
    rq__fsck *k = t->k;
    rq_dir_entry *entries;
    size_t count;
    rq_error own = {0};
    rq_err rc = rq_tableinfo_read(k->vfs, rq_slice_cstr(t->ns), rq_slice_cstr(t->qualifier),
                                  &t->schema, &own);
    if (rq_is_read_failure(rc)) return rq_fail(why, rc, "%s", own.message);
    if (rc != RQ_OK) {
        t->schema = NULL;
        rq__fsck_report(k, t->in_the_making ? RQ_FINDING_NOTE : RQ_FINDING_PROBLEM, t->dir,
                        "no readable descriptor: %s",
                        own.message[0] != '\0' ? own.message : rq_err_text(rc));
    }
    if (t->schema != NULL && !rq_slice_eq(t->schema->name, t->name))
        rq__fsck_report(k, RQ_FINDING_PROBLEM, t->dir, "its descriptor names table %.*s",
                        (int)t->schema->name.len, (const char *)t->schema->name.ptr);
    rc = rq__fsck_list(k, t->dir, &entries, &count, why);
    for (size_t i = 0; i < count && rc == RQ_OK; i++)
        if (entries[i].is_dir && is_encoded_name(entries[i].name))
            rc = look_at_region(t, entries[i].name, why);
    rq_table_schema_unref(t->schema);
    return rc;
}

static rq_err look_at_table(rq__fsck *k, const char *ns, const char *qualifier, rq_error *why)
{
    bool in_default = strcmp(ns, "default") == 0;
    table_look t = {.k = k, .ns = ns, .qualifier = qualifier};
    t.dir = rq_arena_printf(&k->arena, "data/%s/%s", ns, qualifier);
    char *name = rq_arena_printf(&k->arena, "%s%s%s", in_default ? "" : ns, in_default ? "" : ":",
                                 qualifier);
    if (t.dir == NULL || name == NULL) return RQ_E_NO_MEMORY;
    t.name = rq_slice_cstr(name);
    t.is_meta = strcmp(name, "hbase:meta") == 0;
    k->totals.tables++;
    rq__fsck_table *of_meta = rq__fsck_table_of(k, t.name);
    bool known = t.is_meta || of_meta != NULL;
    if (of_meta != NULL) {
        of_meta->on_disk = true;
        t.disabled = of_meta->disabled;
    }
    t.changes = rq__fsck_table_changes(k, t.name);
    t.in_the_making = !known && t.changes;
    if (!known && !is_blind(k))
        rq__fsck_report(k, t.changes ? RQ_FINDING_NOTE : RQ_FINDING_PROBLEM, t.dir,
                        "a table without a row in hbase:meta");
    return look_at_table_dir(&t, why);
}

static rq_err look_at_data(rq__fsck *k, rq_error *why)
{
    rq_dir_entry *spaces;
    size_t count;
    RQ_TRY(rq__fsck_list(k, "data", &spaces, &count, why));
    for (size_t i = 0; i < count; i++) {
        rq_dir_entry *tables;
        size_t n;
        if (!spaces[i].is_dir || spaces[i].name[0] == '.') continue;
        const char *dir = rq_arena_printf(&k->arena, "data/%s", spaces[i].name);
        if (dir == NULL) return RQ_E_NO_MEMORY;
        RQ_TRY(rq__fsck_list(k, dir, &tables, &n, why));
        for (size_t t = 0; t < n; t++)
            if (tables[t].is_dir && tables[t].name[0] != '.')
                RQ_TRY(look_at_table(k, spaces[i].name, tables[t].name, why));
    }
    return RQ_OK;
}

/* --- what meta knows and nobody else ---------------------------------------------------------- */

/* A difference of a table that an unfinished procedure changes is a note. */
static rq_finding level_of(const rq__fsck *k, rq_slice table)
{
    return rq__fsck_table_changes(k, table) ? RQ_FINDING_NOTE : RQ_FINDING_PROBLEM;
}

static void look_for_missing(rq__fsck *k)
{
    for (size_t i = 0; i < k->table_count; i++) {
        const rq__fsck_table *t = &k->tables[i];
        if (!t->on_disk)
            rq__fsck_report(k, level_of(k, t->name), "hbase:meta", "table %.*s has no folder",
                            (int)t->name.len, (const char *)t->name.ptr);
    }
    for (size_t i = 0; i < k->region_count; i++) {
        const rq__fsck_region *r = &k->regions[i];
        if (r->on_disk) continue;
        rq__fsck_report(k, r->is_parent ? RQ_FINDING_NOTE : level_of(k, r->info.table),
                        "hbase:meta", "%sregion %s of table %.*s has no folder",
                        r->is_parent ? "the split " : "", r->info.encoded, (int)r->info.table.len,
                        (const char *)r->info.table.ptr);
    }
}

/* --- the chain -------------------------------------------------------------------------------- */

static int by_table_and_key(const void *a, const void *b)
{
    const rq__fsck_region *x = a, *y = b;
    int c = rq_slice_compare(x->info.table, y->info.table);
    if (c == 0) c = rq_slice_compare(x->info.start_key, y->info.start_key);
    return c != 0 ? c : strcmp(x->info.encoded, y->info.encoded);
}

static void report_gap(rq__fsck *k, const char *what, const rq_region_info *before,
                       const rq_region_info *after)
{
    const rq_region_info *any = before != NULL ? before : after;
    char from[140] = "the first row";
    char to[140] = "the last row";
    if (before != NULL)
        rq_bytes_to_string(
            rq_slice_of(before->end_key.ptr, before->end_key.len > 32 ? 32 : before->end_key.len),
            from, sizeof from);
    if (after != NULL)
        rq_bytes_to_string(rq_slice_of(after->start_key.ptr,
                                       after->start_key.len > 32 ? 32 : after->start_key.len),
                           to, sizeof to);
    rq__fsck_report(
        k, level_of(k, any->table), "hbase:meta", "table %.*s: %s between %s (%s) and %s (%s)",
        (int)any->table.len, (const char *)any->table.ptr, what, from,
        before != NULL ? before->encoded : "begin", to, after != NULL ? after->encoded : "end");
}

/* `before` NULL: `r` is the table's first region. */
static void look_at_joint(rq__fsck *k, const rq_region_info *before, const rq_region_info *r)
{
    if (before == NULL) {
        if (r->start_key.len > 0) report_gap(k, "a hole", NULL, r);
        return;
    }
    /* An empty end key is the end of the table: any region that follows overlaps. */
    int c = before->end_key.len == 0 ? 1 : rq_slice_compare(before->end_key, r->start_key);
    if (c < 0) report_gap(k, "a hole", before, r);
    if (c > 0) report_gap(k, "an overlap", before, r);
}

static bool reaches_further(const rq_region_info *a, const rq_region_info *b)
{
    if (a->end_key.len == 0) return true;
    return b->end_key.len > 0 && rq_slice_compare(a->end_key, b->end_key) > 0;
}

/* Its chain is one hole, which has no joint. */
static void look_for_empty_tables(rq__fsck *k)
{
    for (size_t i = 0; i < k->table_count; i++) {
        const rq__fsck_table *t = &k->tables[i];
        if (!t->has_regions)
            rq__fsck_report(k, level_of(k, t->name), "hbase:meta", "table %.*s has no region",
                            (int)t->name.len, (const char *)t->name.ptr);
    }
}

static void look_at_chain(rq__fsck *k)
{
    const rq_region_info *before = NULL;
    if (k->region_count > 1)
        qsort(k->regions, k->region_count, sizeof *k->regions, by_table_and_key);
    for (size_t i = 0; i < k->region_count; i++) {
        const rq_region_info *r = &k->regions[i].info;
        if (k->regions[i].is_parent || r->replica_id != 0) continue;
        if (before != NULL && !rq_slice_eq(before->table, r->table)) {
            if (before->end_key.len > 0) report_gap(k, "a hole", before, NULL);
            before = NULL;
        }
        look_at_joint(k, before, r);
        /* A region inside another one must not hide a hole behind both. */
        if (before == NULL || reaches_further(r, before)) before = r;
    }
    if (before != NULL && before->end_key.len > 0) report_gap(k, "a hole", before, NULL);
}

/* --- manifests -------------------------------------------------------------------------------- */

static bool has_folder(rq__fsck *k, const char *encoded)
{
    const rq__fsck_region *r = region_of(k, encoded);
    return (r != NULL && r->on_disk) || rq__fsck_has_path(&k->known, encoded);
}

/* <encoded>.0 and .1; manifests of regions with a folder were checked with the region. */
static rq_err look_at_manifests(rq__fsck *k, rq_error *why)
{
    rq_dir_entry *entries;
    size_t count;
    RQ_TRY(rq__fsck_list(k, MANIFESTS, &entries, &count, why));
    for (size_t i = 0; i < count; i++) {
        char *encoded = rq_arena_printf(&k->arena, "%s", entries[i].name);
        const char *path = rq_arena_printf(&k->arena, MANIFESTS "/%s", entries[i].name);
        if (encoded == NULL || path == NULL) return RQ_E_NO_MEMORY;
        char *dot = strrchr(encoded, '.');
        if (dot != NULL) *dot = '\0';
        if (is_blind(k) || k->parents_unknown || has_folder(k, encoded)) continue;
        const rq__fsck_region *r = region_of(k, encoded);
        bool passing = rq__fsck_region_changes(k, encoded) || (r != NULL && r->is_parent) ||
                       was_merged(k, encoded);
        rq__fsck_report(k, passing ? RQ_FINDING_NOTE : RQ_FINDING_PROBLEM, path,
                        "the manifest of a region without a folder");
        if (r == NULL && !passing) RQ_TRY(rq__fsck_note_path(k, &k->orphans, path));
    }
    return RQ_OK;
}

/* Damage only means that repeated increments may count twice. */
static rq_err look_at_nonces(void *ctx, const rq_nonce_survey *f, rq_error *why)
{
    rq__fsck *k = ctx;
    (void)why;
    if (f->unfinished)
        rq__fsck_report(k, RQ_FINDING_NOTE, f->path, "nonces of an unfinished flush");
    else if (f->damage != NULL)
        rq__fsck_report(k, RQ_FINDING_PROBLEM, f->path,
                        "%s: retried increments may be applied twice", f->damage);
    if (!is_blind(k) && !has_folder(k, f->region))
        rq__fsck_report(k, RQ_FINDING_NOTE, f->path, "nonces of a region without a folder");
    return RQ_OK;
}

static rq_err look_at_store(rq__fsck *k, rq_error *why)
{
    static const char dir[] = "MasterData/data/master/store";
    rq_region_info info;
    rq_dir_entry *entries;
    size_t count;
    rq_slice none = {NULL, 0};
    RQ_TRY(rq_region_info_make(&k->arena, RQ_SLICE_LIT("master"), RQ_SLICE_LIT("store"), none, none,
                               1, 0, &info));
    RQ_TRY(rq__fsck_note_path(k, &k->known, info.encoded));
    RQ_TRY(rq__fsck_list(k, dir, &entries, &count, why));
    for (size_t i = 0; i < count; i++) {
        const char *region = rq_arena_printf(&k->arena, "%s/%s", dir, entries[i].name);
        if (region == NULL) return RQ_E_NO_MEMORY;
        if (entries[i].is_dir && is_encoded_name(entries[i].name))
            RQ_TRY(look_at_system_region(k, region, entries[i].name, &info, why));
    }
    return RQ_OK;
}

rq_err rq__fsck_tables(rq__fsck *k, rq_error *why)
{
    if (k->region_count > 1) qsort(k->regions, k->region_count, sizeof *k->regions, by_encoded);
    RQ_TRY(look_at_store(k, why));
    RQ_TRY(look_at_data(k, why));
    if (is_blind(k)) {
        rq__fsck_report(k, RQ_FINDING_NOTE, "hbase:meta",
                        "cannot be read completely, so folders are not compared with it");
    } else {
        look_for_missing(k);
    }
    RQ_TRY(look_at_manifests(k, why));
    RQ_TRY(rq_nonces_survey(k->vfs, look_at_nonces, k, why));
    if (is_blind(k)) return RQ_OK;
    look_for_empty_tables(k);
    look_at_chain(k); /* last, because it sorts the regions differently */
    return RQ_OK;
}
