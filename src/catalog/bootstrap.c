/* SPDX-License-Identifier: Apache-2.0 */
/* Every start, including the first.
 *
 * 1. Open the procedure store and hbase:meta (create them on a new root).
 * 2. Read meta: tables, their states, their regions.
 * 3. Read the procedures' records: a procedure that is unfinished opens its table's regions itself. Ignore rows that
 *    such a procedure was writing or removing (ddl_parts.c). Read each table's descriptor.
 * 4. Open and read hbase:namespace: from here on the folder is not refused any more.
 * 5. Open the regions of enabled tables in parallel; a failure is logged and the region stays
 *    closed; write the regions' locations to meta.
 * 6. Drop records in the log that belong to no known region.
 *
 * On a full disk the start proceeds in the same way: data it cannot write is kept in memory (the
 * locations of regions) or written later (.rorqual/open, the log's first WAL file).
 *
 * A new root is laid out with few syncs: all writes go to one log, only the last one is waited for,
 * and only then .rorqual/version marks the folder as complete.
 *
 * The files of a cluster are laid out so that each part can be made again: a master that is killed or paused meanwhile
 * may leave any of them, and go on later. Descriptors that can be read stay, manifests are made by a swap from "absent",
 * the rows are the same ones, and each write is durable before the next. Regions that the earlier master had open are
 * opened from their logs, once it is fenced. */
#include "catalog/ddl_priv.h"

#include <stdio.h>
#include <stdlib.h>

#include "catalog/adopt.h"
#include "catalog/root_priv.h"
#include "catalog/system_tables.h"
#include "catalog/tableinfo.h"
#include "base/read_failure.h"
#include "wal/tail.h"

typedef struct known_table {
    rq_slice name; /* "ns:q" or "q" */
    bool has_state;
    rq_table_state state;
    rq_table_schema *schema;
    const char *broken; /* why there is no descriptor */
    rq__opened *regions;
    size_t region_count, region_cap;
    bool is_left_out; /* ignored: a procedure was creating or dropping it (ddl_parts.c) */
} known_table;

typedef struct boot {
    rq_catalog *catalog;
    rq_arena arena;
    known_table *tables; /* in the order of meta's rows */
    size_t table_count, table_cap;
    rq_table_schema *meta_schema;
    rq__opened meta;
    bool namespaces_read;   /* hbase:namespace was read into the view */
    uint64_t rows_reported; /* number of rows and tables that were skipped or ignored */
} boot;

/* --- a new root ------------------------------------------------------------------------------- */

/* Folders laid out in parallel: threads that sync at the same time share the disk's flushes. */
typedef struct layout {
    rq_catalog *catalog;
    rq_region_info info[3]; /* by rq__system_table */
    rq_err rc[4];
    rq_error why[4];
} layout;

/* An earlier master may have written the descriptor, and may do so still. */
static rq_err lay_out_descriptor(rq_catalog *c, const rq_table_schema *schema, rq_error *why)
{
    rq_table_schema *there = NULL;
    rq_err rc = RQ_E_NOT_FOUND;
    if (rq__root_is_joined(c->root))
        rc = rq_tableinfo_read(c->env->vfs, schema->ns, schema->qualifier, &there, NULL);
    if (rc == RQ_OK) rq_table_schema_unref(there);
    if (rc == RQ_E_NOT_FOUND || rc == RQ_E_CORRUPT)
        rc = rq__tableinfo_write(c->env->vfs, schema, why);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", rq_err_text(rc));
}

static rq_err lay_out_table(rq_catalog *c, rq__system_table which, const rq_region_info *info,
                            rq_error *why)
{
    rq_table_schema *schema;
    RQ_TRY(rq__system_schema(which, &schema, why));
    rq_err rc = lay_out_descriptor(c, schema, why);
    /* HBASE: MasterRegion.create treats the folder as complete only with this mark. */
    if (rc == RQ_OK && which == RQ__STORE)
        rc = rq_vfs_mkdirs(c->env->vfs, "MasterData/data/master/store/.initialized", why);
    if (rc == RQ_OK && which == RQ__STORE) rc = rq_vfs_mkdirs(c->env->vfs, "MasterData/WALs", why);
    if (rc == RQ_OK) rc = rq_region_create(c->engine, info, schema, why);
    rq_table_schema_unref(schema);
    return rc;
}

static void lay_out_one(void *ctx, size_t i)
{
    layout *l = ctx;
    if (i < RQ_ARRAY_LEN(l->info))
        l->rc[i] = lay_out_table(l->catalog, (rq__system_table)i, &l->info[i], &l->why[i]);
    else
        l->rc[i] = rq__root_write_identity(l->catalog->root, &l->why[i]);
}

static rq_err store_info(rq_arena *a, rq_region_info *ret)
{
    rq_slice none = {NULL, 0};
    return rq_region_info_make(a, RQ_SLICE_LIT("master"), RQ_SLICE_LIT("store"), none, none, 1, 0,
                               ret); /* HBASE: MasterRegion.REGION_INFO */
}

static rq_err lay_out(boot *b, rq_region_info *ret_namespace, rq_error *why)
{
    layout l = {.catalog = b->catalog};
    rq_slice none = {NULL, 0};
    /* Another attempt in a cluster must name the same region. */
    int64_t id = rq__root_is_joined(b->catalog->root) ? 1 : rq__catalog_now_ms(b->catalog);
    RQ_TRY(store_info(&b->arena, &l.info[RQ__STORE]));
    RQ_TRY(rq_region_info_meta(&b->arena, &l.info[RQ__META]));
    RQ_TRY(rq_region_info_make(&b->arena, RQ_SLICE_LIT("hbase"), RQ_SLICE_LIT("namespace"), none,
                               none, id, 0, &l.info[RQ__NAMESPACE]));
    rq_parallel(b->catalog->env->executor, RQ_ARRAY_LEN(l.rc), lay_out_one, &l);
    for (size_t i = 0; i < RQ_ARRAY_LEN(l.rc); i++)
        if (l.rc[i] != RQ_OK) return rq_fail(why, l.rc[i], "%s", l.why[i].message);
    *ret_namespace = l.info[RQ__NAMESPACE];
    return RQ_OK;
}

/* --- 1: the procedure store and hbase:meta ---------------------------------------------------- */

/* The descriptor on disk, or the built-in one (which is then written) if it cannot be read or
 * belongs to another table. */
static rq_err system_schema(rq_catalog *c, rq__system_table which, const char *ns, const char *q,
                            rq_table_schema **ret, rq_error *why)
{
    rq_vfs *v = c->env->vfs;
    rq_error reason = {0};
    rq_err rc = rq_tableinfo_read(v, rq_slice_cstr(ns), rq_slice_cstr(q), ret, &reason);
    if (rc == RQ_OK) {
        rc = rq__system_schema_check(which, *ret, &reason);
        if (rc == RQ_OK) return RQ_OK;
        rq_table_schema_unref(*ret);
    }
    if (rq_is_read_failure(rc)) return rq_fail(why, rc, "%s", reason.message);
    rq_log_warn(c->env->log, "catalog",
                "table %s:%s: writing a new descriptor, because the old one is unusable: %s", ns, q,
                reason.message);
    RQ_TRY(rq__system_schema(which, ret, why));
    rc = rq__tableinfo_write(v, *ret, why);
    if (rc != RQ_OK) rq_table_schema_unref(*ret);
    return rc;
}

void rq__store_abandon(rq_catalog *c, rq_region *store)
{
    rq_error why = {0};
    if (rq_region_close(store, true, &why) != RQ_OK)
        rq_log_warn(c->env->log, "catalog", "closing master:store: %s", why.message);
}

static rq_err open_store(boot *b, rq_error *why)
{
    rq_catalog *c = b->catalog;
    rq_region_info info;
    rq_table_schema *schema;
    RQ_TRY(store_info(&b->arena, &info));
    RQ_TRY(system_schema(c, RQ__STORE, "master", "store", &schema, why));
    rq_err rc = rq_region_open(c->engine, &info, schema, &c->store, why);
    rq_table_schema_unref(schema);
    return rc;
}

static rq_err open_meta(boot *b, rq_error *why)
{
    rq_catalog *c = b->catalog;
    rq_region_info *info = rq_arena_calloc(&b->arena, 1, sizeof *info);
    if (info == NULL) return RQ_E_NO_MEMORY;
    RQ_TRY(rq_region_info_meta(&b->arena, info));
    RQ_TRY(system_schema(c, RQ__META, "hbase", "meta", &b->meta_schema, why));
    b->meta = (rq__opened){.info = info, .schema = b->meta_schema};
    RQ_TRY(rq__open_regions(c, NULL, &b->meta, 1, why));
    if (b->meta.rc != RQ_OK) return rq_fail(why, b->meta.rc, "hbase:meta: %s", b->meta.why.message);
    /* Published at once: code that writes to meta finds the region in the view. */
    rq__table_node *t = rq__table_node_new(b->meta_schema, RQ_TABLE_ENABLED, &b->meta.node, 1);
    rq__edit e;
    if (t == NULL) return RQ_E_NO_MEMORY;
    rq_err rc = rq__edit_begin(&c->views, &e);
    if (rc != RQ_OK) {
        rq__table_node_unref(t);
        return rc;
    }
    rc = rq__edit_put_table(&e, t);
    if (rc == RQ_OK) return rq__edit_commit(&e);
    rq__edit_abort(&e);
    return rc;
}

/* Adds a new root's hbase:namespace: one region, enabled, still closed. */
static rq_err add_namespace_table(boot *b, const rq_region_info *info, rq_error *why)
{
    rq__batch batch;
    rq__batch_init(&batch, &b->arena, rq__catalog_now_ms(b->catalog));
    RQ_TRY(rq__meta_put_region(&batch, info, RQ_REGION_CLOSED, NULL, -1));
    RQ_TRY(rq__meta_put_table_state(&batch, RQ_SLICE_LIT("hbase:namespace"), RQ_TABLE_ENABLED));
    return rq__meta_note(b->catalog, &batch, why);
}

/* --- 2: what meta says ------------------------------------------------------------------------ */

#define ROWS_LOGGED_MAX 20

/* Any client may write any number of rows to hbase:meta: only the first ones are logged. */
static void report_row(boot *b, const char *what, rq_slice row, const char *consequence)
{
    char name[256];
    if (++b->rows_reported > ROWS_LOGGED_MAX) return;
    rq_bytes_to_string(rq_slice_of(row.ptr, row.len > 60 ? 60 : row.len), name, sizeof name);
    rq_log_error(b->catalog->env->log, "catalog", "hbase:meta: %s in row %s; %s", what, name,
                 consequence);
}

static void report_rest(const boot *b)
{
    if (b->rows_reported > ROWS_LOGGED_MAX)
        rq_log_error(
            b->catalog->env->log, "catalog",
            "hbase:meta: %llu more rows with errors are not logged; rorqual fsck lists them",
            (unsigned long long)(b->rows_reported - ROWS_LOGGED_MAX));
}

static known_table *table_of(boot *b, rq_slice name)
{
    /* A table's rows are adjacent: its state first, then its regions. */
    if (b->table_count > 0 && rq_slice_eq(b->tables[b->table_count - 1].name, name))
        return &b->tables[b->table_count - 1];
    if (b->table_count == b->table_cap) {
        size_t cap = b->table_cap == 0 ? 64 : b->table_cap * 2;
        known_table *more = realloc(b->tables, cap * sizeof *more);
        if (more == NULL) return NULL;
        b->tables = more;
        b->table_cap = cap;
    }
    rq_slice own = rq_arena_copy(&b->arena, name); /* the row is freed soon */
    if (own.ptr == NULL) return NULL;
    known_table *t = &b->tables[b->table_count++];
    *t = (known_table){.name = own};
    return t;
}

static rq_err add_region(boot *b, known_table *t, const rq__meta_row *row)
{
    if (t->region_count == t->region_cap) {
        size_t cap = t->region_cap == 0 ? 4 : t->region_cap * 2;
        rq__opened *more = realloc(t->regions, cap * sizeof *more);
        if (more == NULL) return RQ_E_NO_MEMORY;
        t->regions = more;
        t->region_cap = cap;
    }
    rq_region_info *info = rq_arena_alloc(&b->arena, sizeof *info);
    if (info == NULL) return RQ_E_NO_MEMORY;
    RQ_TRY(rq_region_info_copy(&b->arena, &row->info, info));
    t->regions[t->region_count++] = (rq__opened){.info = info};
    return RQ_OK;
}

static rq_err take_row(void *ctx, const rq__meta_row *row, rq_error *why)
{
    boot *b = ctx;
    (void)why;
    if (row->malformed != NULL) {
        char what[80];
        snprintf(what, sizeof what, "malformed %s", row->malformed);
        report_row(b, what, row->row, "the row is skipped");
        return RQ_OK;
    }
    if (row->odd != NULL) report_row(b, row->odd, row->row, "the column is ignored");
    if (rq_slice_eq(row->row, RQ_SLICE_LIT("hbase:meta"))) return RQ_OK; /* always enabled */
    if (row->is_table) {
        known_table *t = table_of(b, row->row);
        if (t == NULL) return RQ_E_NO_MEMORY;
        t->has_state = true;
        t->state = row->table_state;
        return RQ_OK;
    }
    /* A split parent is not served any more; its daughters have rows of their own. */
    if (row->info.split || row->info.offline) return RQ_OK;
    rq__catalog_saw_ms(b->catalog, row->info.region_id);
    known_table *t = table_of(b, row->info.table);
    return t == NULL ? RQ_E_NO_MEMORY : add_region(b, t, row);
}

/* Ignores the rows of hbase:meta that a procedure was writing or removing when the last process ended. */
static rq_err leave_out_unfinished(boot *b)
{
    const rq__proc *const *list;
    size_t count;
    RQ_TRY(rq__parts_unfinished(b->catalog, &b->arena, &list, &count));
    for (size_t i = 0; i < b->table_count && count > 0; i++) {
        known_table *t = &b->tables[i];
        const rq__proc *p = rq__parts_of_table(list, count, t->name);
        if (p != NULL)
            RQ_TRY(rq__parts_leave_out(p, t->has_state, t->regions, &t->region_count,
                                       &t->is_left_out));
    }
    return RQ_OK;
}

/* A table without a readable descriptor stays visible, so that no new table is created over it; an
 * alter with the whole descriptor repairs it. */
static rq_err broken_schema(boot *b, known_table *t, rq_slice ns, rq_slice qualifier,
                            const rq_error *reason, rq_error *why)
{
    t->broken = rq_arena_cstr(&b->arena, rq_slice_cstr(reason->message));
    uint8_t pb[2 * RQ_ROW_LEN_MAX / 64 + 1100];
    if (t->broken == NULL) return RQ_E_NO_MEMORY;
    if (ns.len + qualifier.len > sizeof pb - 40)
        return rq_fail(why, RQ_E_CORRUPT, "%s", reason->message);
    /* TableSchema{1: TableName{1: ns, 2: qualifier}} */
    uint8_t inner[sizeof pb];
    uint8_t *p = inner;
    *p++ = 0x0a;
    p += rq_put_varint(p, ns.len);
    memcpy(p, ns.ptr, ns.len);
    p += ns.len;
    *p++ = 0x12;
    p += rq_put_varint(p, qualifier.len);
    memcpy(p, qualifier.ptr, qualifier.len);
    p += qualifier.len;
    size_t inner_len = (size_t)(p - inner);
    p = pb;
    *p++ = 0x0a;
    p += rq_put_varint(p, inner_len);
    memcpy(p, inner, inner_len);
    p += inner_len;
    return rq_table_schema_parse(rq_slice_of(pb, (size_t)(p - pb)), &t->schema, why);
}

static bool exists(boot *b, const char *path)
{
    rq_stat st;
    return path == NULL || rq_vfs_stat(b->catalog->env->vfs, path, &st, NULL) != RQ_E_NOT_FOUND;
}

/* Whether the table is only a name in hbase:meta: nothing on disk that a new table of that name
 * could damage. */
static bool is_phantom(boot *b, rq_slice ns, rq_slice qualifier)
{
    rq_arena a;
    rq_arena_init(&a);
    bool there = exists(b, rq__table_dir(&a, ns, qualifier));
    rq_arena_clear(&a);
    return !there;
}

static bool has_folder(boot *b, const rq_region_info *info)
{
    rq_arena a;
    rq_arena_init(&a);
    char *table = rq__table_dir(&a, info->ns, info->qualifier);
    bool there = table == NULL || exists(b, rq_arena_printf(&a, "%s/%s", table, info->encoded));
    rq_arena_clear(&a);
    return there;
}

static int by_start_key(const void *a, const void *b)
{
    const rq__opened *x = a, *y = b;
    return rq_slice_compare(x->info->start_key, y->info->start_key);
}

/* REQUIRES: sorted by start key. */
static bool overlaps(const rq__opened *list, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        rq_slice end =
            list[i - 1].info->end_key; /* where all regions before it end; none overlaps so far */
        if (end.len == 0 || rq_slice_compare(end, list[i].info->start_key) > 0) return true;
    }
    return false;
}

/* Leaves out overlapping regions without a folder: opening would create them, and lookups would
 * find them instead of the regions that have the rows. */
static void leave_out_intruders(boot *b, known_table *t)
{
    size_t kept = 0;
    if (t->region_count < 2) return;
    qsort(t->regions, t->region_count, sizeof *t->regions, by_start_key);
    if (!overlaps(t->regions, t->region_count)) return;
    for (size_t i = 0; i < t->region_count; i++) {
        if (has_folder(b, t->regions[i].info))
            t->regions[kept++] = t->regions[i];
        else
            report_row(b, "a region without a folder that overlaps others",
                       t->regions[i].info->name, "the row is skipped");
    }
    t->region_count = kept;
}

/* *ret false: it is passed over. */
static rq_err read_descriptor(boot *b, known_table *t, bool *ret, rq_error *why)
{
    rq_catalog *c = b->catalog;
    rq_slice ns, qualifier;
    rq_error reason = {0};
    *ret = false;
    if (t->is_left_out) return RQ_OK;
    if (!t->has_state) t->state = RQ_TABLE_ENABLED; /* HBASE: TableStateManager.fixTableStates */
    if (rq_table_name_parse(t->name, &ns, &qualifier, &reason) != RQ_OK) {
        report_row(b, reason.message, t->name, "the row is skipped");
        return RQ_OK;
    }
    leave_out_intruders(b, t);
    rq_err rc = rq_slice_eq(t->name, RQ_SLICE_LIT("hbase:namespace"))
                    ? system_schema(c, RQ__NAMESPACE, "hbase", "namespace", &t->schema, &reason)
                    : rq_tableinfo_read(c->env->vfs, ns, qualifier, &t->schema, &reason);
    if (rc == RQ_E_NO_MEMORY) return rc;
    if (rc == RQ_E_NOT_FOUND && is_phantom(b, ns, qualifier)) {
        report_row(b, "a table without a folder", t->name, "the row is skipped");
        return RQ_OK;
    }
    *ret = true;
    if (rc == RQ_OK) return RQ_OK;
    rq_log_error(c->env->log, "catalog",
                 "table %.*s is not served, because its descriptor cannot be read: %s; an alter "
                 "with the complete descriptor repairs the table",
                 (int)t->name.len, (const char *)t->name.ptr, reason.message);
    return broken_schema(b, t, ns, qualifier, &reason, why);
}

static rq_err read_descriptors(boot *b, rq_error *why)
{
    size_t kept = 0, i = 0;
    rq_err rc = RQ_OK;
    for (; i < b->table_count && rc == RQ_OK; i++) {
        bool keep;
        rc = read_descriptor(b, &b->tables[i], &keep, why);
        if (rc != RQ_OK) break;
        if (keep)
            b->tables[kept++] = b->tables[i];
        else
            free(b->tables[i].regions);
    }
    for (; i < b->table_count; i++) /* those not read, for the clean-up */
        b->tables[kept++] = b->tables[i];
    b->table_count = kept;
    return rc;
}

/* --- 5: regions ------------------------------------------------------------------------------- */

/* HBASE: MaintenanceLoadBalancer, which places no other regions. */
static bool is_left_closed(const rq_catalog *c, const known_table *t)
{
    return rq_catalog_in_maintenance(c) &&
           (t->name.len < 6 || memcmp(t->name.ptr, "hbase:", 6) != 0);
}

static bool to_be_opened(rq_catalog *c, const known_table *t, size_t region)
{
    return !is_left_closed(c, t) && t->broken == NULL && t->state == RQ_TABLE_ENABLED &&
           t->regions[region].node == NULL && !rq__procedures_own(c, t->regions[region].info);
}

/* One list over all tables, so that all regions are opened in parallel. */
static rq_err open_tables(boot *b, rq_error *why)
{
    rq_catalog *c = b->catalog;
    size_t total = 0;
    for (size_t i = 0; i < b->table_count; i++)
        total += b->tables[i].region_count;
    rq__opened *all = calloc(total + 1, sizeof *all);
    if (all == NULL) return RQ_E_NO_MEMORY;
    size_t n = 0;
    for (size_t i = 0; i < b->table_count; i++) {
        known_table *t = &b->tables[i];
        for (size_t r = 0; r < t->region_count; r++) {
            if (!to_be_opened(c, t, r)) continue;
            t->regions[r].schema = t->schema;
            all[n++] = t->regions[r];
        }
    }
    rq__retain_places_after_end(c, all, n);
    rq_err rc = rq__open_regions(c, NULL, all, n, why);
    n = 0;
    for (size_t i = 0; i < b->table_count && rc == RQ_OK; i++) {
        known_table *t = &b->tables[i];
        for (size_t r = 0; r < t->region_count; r++)
            if (to_be_opened(c, t, r)) t->regions[r] = all[n++];
    }
    if (rc != RQ_OK) rq__opened_clear(all, total); /* what is open is the host's */
    free(all);
    return rc;
}

/* Nodes of regions that were not opened. */
static rq_err closed_nodes(boot *b)
{
    int64_t now = rq__catalog_wall_ms(b->catalog);
    for (size_t i = 0; i < b->table_count; i++) {
        known_table *t = &b->tables[i];
        for (size_t r = 0; r < t->region_count; r++) {
            rq__opened *o = &t->regions[r];
            if (o->node != NULL) continue;
            o->node = rq__region_node_new(
                o->info, t->broken != NULL ? RQ_REGION_FAILED_OPEN : RQ_REGION_CLOSED, NULL, NULL,
                -1, now, t->broken);
            if (o->node == NULL) return RQ_E_NO_MEMORY;
        }
    }
    return RQ_OK;
}

static rq_err publish_tables(boot *b, rq_error *why)
{
    rq_catalog *c = b->catalog;
    RQ_TRY(closed_nodes(b));
    rq__edit e;
    RQ_TRY(rq__edit_begin(&c->views, &e));
    rq_err rc = RQ_OK;
    for (size_t i = 0; i < b->table_count && rc == RQ_OK; i++) {
        known_table *t = &b->tables[i];
        rq__region_node **nodes = calloc(t->region_count + 1, sizeof(rq__region_node *));
        rq__table_node *node = NULL;
        for (size_t r = 0; r < t->region_count && nodes != NULL; r++)
            nodes[r] = t->regions[r].node;
        if (nodes != NULL) node = rq__table_node_new(t->schema, t->state, nodes, t->region_count);
        free(nodes);
        rc = node == NULL ? RQ_E_NO_MEMORY : rq__edit_put_table(&e, node);
    }
    if (rc == RQ_OK) return rq__edit_commit(&e);
    rq__edit_abort(&e);
    return rq_fail(why, rc, "%s", rq_err_text(rc));
}

/* --- 4 and 5: namespaces, places -------------------------------------------------------------- */

typedef struct namespaces {
    rq_catalog *catalog;
    rq__namespace_node **list;
    size_t count, cap;
    uint64_t malformed;
} namespaces;

static rq__keep keep_namespace(const rq_cell *c)
{
    return rq_slice_eq(rq_cell_family(c), RQ_SLICE_LIT("info")) &&
                   rq_slice_eq(rq_cell_qualifier(c), RQ_SLICE_LIT("d"))
               ? RQ__KEEP
               : RQ__KEEP_NOT;
}

/* Any client may write there. */
static rq_err parse_namespace(const rq_cell *c, rq__namespace_node **ret)
{
    rq_error why = {0};
    RQ_TRY(rq__namespace_node_new(rq_cell_value(c), ret, &why));
    if (rq_slice_eq((*ret)->pub.name, rq_cell_row(c)) &&
        rq__namespace_name_check((*ret)->pub.name, NULL) == RQ_OK &&
        rq__name_len_check("Namespace name", (*ret)->pub.name, NULL) == RQ_OK &&
        !rq__table_is_internal((*ret)->pub.name, RQ_SLICE_LIT("")))
        return RQ_OK;
    rq__namespace_node_unref(*ret);
    return RQ_E_CORRUPT;
}

static rq_err take_namespace(void *ctx, const rq_cell *cells, size_t count, rq_error *why)
{
    namespaces *n = ctx;
    (void)why;
    for (size_t i = 0; i < count; i++) {
        if (n->count == n->cap) {
            size_t cap = n->cap == 0 ? 8 : n->cap * 2;
            rq__namespace_node **more = realloc(n->list, cap * sizeof(rq__namespace_node *));
            if (more == NULL) return RQ_E_NO_MEMORY;
            n->list = more;
            n->cap = cap;
        }
        rq_err rc = parse_namespace(&cells[i], &n->list[n->count]);
        if (rc == RQ_E_NO_MEMORY) return rc;
        if (rc == RQ_OK) {
            n->count++;
            continue;
        }
        if (n->malformed++ >= ROWS_LOGGED_MAX) continue;
        rq_slice row = rq_cell_row(&cells[i]);
        char name[256];
        rq_bytes_to_string(rq_slice_of(row.ptr, row.len > 60 ? 60 : row.len), name, sizeof name);
        rq_log_error(n->catalog->env->log, "catalog",
                     "hbase:namespace: malformed info:d in row %s; the row is skipped", name);
    }
    return RQ_OK;
}

static rq_err put_builtin(rq__edit *e, const char *name)
{
    uint8_t pb[32];
    size_t len = strlen(name);
    pb[0] = 0x0a; /* NamespaceDescriptor{1: name} */
    pb[1] = (uint8_t)len;
    memcpy(pb + 2, name, len);
    rq__namespace_node *n;
    RQ_TRY(rq__namespace_node_new(rq_slice_of(pb, len + 2), &n, NULL));
    return rq__edit_put_namespace(e, n);
}

static rq_region *namespace_region(rq_catalog *c)
{
    rq__table_node *t;
    rq_slice q = RQ_SLICE_LIT("namespace");
    if (rq__catalog_table_ref(c, RQ_SLICE_LIT("hbase"), q, &t, NULL) != RQ_OK) return NULL;
    rq_region *r = NULL;
    if (t->pub.region_count > 0 && rq__table_region(t, 0)->pub.region != NULL)
        r = rq_region_ref(rq__table_region(t, 0)->pub.region);
    rq__table_node_unref(t);
    return r;
}

/* If hbase:namespace is closed, its rows cannot be read. Then the names of the namespaces are taken from
 * the names of the tables, so that the tables can be used. */
static rq_err put_of_tables(rq__edit *e)
{
    for (size_t i = 0; i < e->table_count; i++) {
        rq_slice ns = e->tables[i]->pub.schema->ns;
        char name[30];
        if (ns.len >= sizeof name) continue;
        memcpy(name, ns.ptr, ns.len);
        name[ns.len] = '\0';
        RQ_TRY(put_builtin(e, name));
    }
    return RQ_OK;
}

static rq_err publish_namespaces(rq_catalog *c, const namespaces *n, bool of_tables)
{
    rq__edit e;
    RQ_TRY(rq__edit_begin(&c->views, &e));
    rq_err rc = put_builtin(&e, "default");
    if (rc == RQ_OK) rc = put_builtin(&e, "hbase");
    if (rc == RQ_OK && of_tables) rc = put_of_tables(&e);
    for (size_t i = 0; i < n->count && rc == RQ_OK; i++)
        rc = rq__edit_put_namespace(&e, rq__namespace_node_ref(n->list[i]));
    if (rc == RQ_OK) return rq__edit_commit(&e);
    rq__edit_abort(&e);
    return rc;
}

/* The region's rows are read before the view's edit lock is taken, because a read may wait for the disk.
 * The region is not published yet, so the rows cannot change in between. */
rq_err rq__namespaces_read(rq_catalog *c, rq_region *r, rq_error *why)
{
    namespaces n = {.catalog = c};
    rq_err rc = RQ_OK;
    rq__seen seen = {.ignored = false};
    if (r != NULL) rc = rq__region_each_row(r, keep_namespace, &seen, take_namespace, &n, why);
    rq__catalog_saw_ms(c, seen.newest_ms);
    if (n.malformed > ROWS_LOGGED_MAX)
        rq_log_error(c->env->log, "catalog", "hbase:namespace: skipped %llu more malformed rows",
                     (unsigned long long)(n.malformed - ROWS_LOGGED_MAX));
    if (rc == RQ_OK) rc = publish_namespaces(c, &n, r == NULL);
    for (size_t i = 0; i < n.count; i++)
        rq__namespace_node_unref(n.list[i]);
    free(n.list);
    return rc;
}

/* Opens and reads hbase:namespace of a root that is not new. Runs before anything is written, because a
 * folder whose namespaces are unreadable is refused. If hbase:namespace cannot even be opened, the
 * server starts without it. */
static rq_err open_namespaces(boot *b, rq_error *why)
{
    rq_catalog *c = b->catalog;
    for (size_t i = 0; i < b->table_count; i++) {
        known_table *t = &b->tables[i];
        if (!rq_slice_eq(t->name, RQ_SLICE_LIT("hbase:namespace")) || t->region_count == 0 ||
            !to_be_opened(c, t, 0))
            continue;
        t->regions[0].schema = t->schema;
        RQ_TRY(rq__open_regions(c, NULL, t->regions, 1, why));
        rq_region *r = t->regions[0].node->pub.region;
        if (r == NULL) return RQ_OK;
        RQ_TRY(rq__namespaces_read(c, r, why));
        b->namespaces_read = true;
    }
    return RQ_OK;
}

/* Fails with the error that the opening of hbase:namespace ended with. */
RQ_COLD static rq_err namespaces_not_open(const boot *b, rq_error *why)
{
    rq_err rc = RQ_OK;
    const char *text = "";
    for (size_t i = 0; i < b->table_count; i++) {
        const known_table *t = &b->tables[i];
        if (!rq_slice_eq(t->name, RQ_SLICE_LIT("hbase:namespace")) || t->region_count == 0)
            continue;
        rc = t->regions[0].rc;
        if (t->regions[0].why.code != RQ_OK) text = t->regions[0].why.message;
    }
    if (rc == RQ_OK) rc = RQ_E_IO;
    return rq_fail(why, rc, "hbase:namespace could not be opened: %s",
                   text[0] != '\0' ? text : rq_err_text(rc));
}

/* Writes the rows of HBase's two standard namespaces to a new root. This is the last write of the
 * layout, and the only one that is waited for. */
static rq_err write_namespaces(boot *b, rq_error *why)
{
    static const uint8_t descriptors[2][9] = {"\x0a\x07"
                                              "default",
                                              "\x0a\x05"
                                              "hbase"};
    static const char *const names[] = {"default", "hbase"};
    rq_catalog *c = b->catalog;
    rq_region *r = namespace_region(c);
    if (r == NULL) return namespaces_not_open(b, why);
    rq_err rc = RQ_OK;
    rq__batch batch;
    rq__batch_init(&batch, &b->arena, rq__catalog_now_ms(c));
    for (size_t i = 0; i < 2 && rc == RQ_OK; i++)
        rc = rq__batch_put(&batch, rq_slice_cstr(names[i]), "info", RQ_SLICE_LIT("d"),
                           rq_slice_of(descriptors[i], strlen(names[i]) + 2));
    if (rc == RQ_OK) rc = rq__batch_commit(&batch, r, true, why);
    rq_region_unref(r);
    return rc;
}

typedef struct servers {
    rq_arena *arena;
    const rq_server_name *self;
    rq__batch *batch;
    bool has_self;
} servers;

static rq_err forget_server(void *ctx, const rq_cell *cells, size_t count, rq_error *why)
{
    servers *s = ctx;
    (void)why;
    bool here = false;
    for (size_t i = 0; i < count; i++)
        here |= rq_slice_eq(rq_cell_family(&cells[i]), RQ_SLICE_LIT("rs"));
    if (!here) return RQ_OK;
    if (rq_slice_eq(rq_cell_row(&cells[0]), rq_slice_cstr(s->self->text))) {
        s->has_self = true;
        return RQ_OK;
    }
    rq_slice row = rq_arena_copy(s->arena, rq_cell_row(&cells[0]));
    return row.ptr == NULL ? RQ_E_NO_MEMORY : rq__batch_delete_family(s->batch, row, "rs");
}

/* Writes the list of live servers, which is only this one, to the store's family rs. From this list an
 * HBase that takes the folder over learns whose regions to assign again. HBASE: MasterRegionServerList.
 * *ret_was_here: the list already had this server, with the same start code. */
static rq_err put_servers(boot *b, rq__batch *batch, bool *ret_was_here, rq_error *why)
{
    rq_catalog *c = b->catalog;
    servers s = {.arena = &b->arena, .self = c->server, .batch = batch};
    RQ_TRY(rq__region_each_row(c->store, NULL, NULL, forget_server, &s, why));
    *ret_was_here = s.has_self;
    return rq__batch_put(batch, rq_slice_cstr(c->server->text), "rs", RQ_SLICE_LIT("state"),
                         RQ_SLICE_LIT("ONLINE"));
}

/* Writes rows that only an HBase that takes the folder over reads. If the disk is full, and memory is full
 * of data that cannot be flushed, the start goes on without these rows. */
static rq_err note_in_store(rq_catalog *c, const rq__batch *batch, rq_error *why)
{
    rq_error own = {0};
    rq_err rc = rq__batch_note(batch, c->engine, c->store, &own);
    if (rc == RQ_OK) return RQ_OK;
    if (rc != RQ_E_REGION_TOO_BUSY) return rq_fail(why, rc, "%s", own.message);
    rq_log_warn(c->env->log, "catalog", "cannot record this server's name in master:store: %s",
                own.message);
    return RQ_OK;
}

static rq_err drop_known_places(rq_catalog *c, rq__batch *batch, rq_error *why)
{
    rq_region *meta;
    RQ_TRY(rq__meta_ref(c, &meta, why));
    rq_err rc = rq__batch_drop_known(batch, meta, why);
    rq_region_unref(meta);
    return rc;
}

/* In parts, because the rows of 100,000 regions are longer than the longest record of the log. They need not change
 * together: each start writes all of them. */
static rq_err note_places(rq_catalog *c, const rq__batch *all, rq_error *why)
{
    for (size_t i = 0; i < all->count;) {
        const rq__batch part = rq__batch_part(all, i);
        RQ_TRY(rq__meta_note(c, &part, why));
        i += part.count;
    }
    return RQ_OK;
}

/* Writes the regions' new location: this server, with this start code. An embedded database has the
 * same server name at each start, so most of its rows have this location already and are not written. */
static rq_err write_places(boot *b, rq_error *why)
{
    rq_catalog *c = b->catalog;
    rq__batch batch;
    bool was_here = false;
    rq__batch_init(&batch, &b->arena, rq__catalog_now_ms(c));
    RQ_TRY(put_servers(b, &batch, &was_here, why));
    /* HBASE: the master's local region has the location of meta itself. */
    RQ_TRY(rq__meta_put_region(&batch, b->meta.info, RQ_REGION_OPEN, c->server,
                               b->meta.node->pub.open_seqnum));
    if (was_here) RQ_TRY(rq__batch_drop_known(&batch, c->store, why));
    RQ_TRY(note_in_store(c, &batch, why));
    rq__batch_init(&batch, &b->arena, rq__catalog_now_ms(c));
    for (size_t i = 0; i < b->table_count; i++) {
        known_table *t = &b->tables[i];
        for (size_t r = 0; r < t->region_count; r++) {
            const rq_catalog_region *node = &t->regions[r].node->pub;
            if (node->state == RQ_REGION_OPEN || node->state == RQ_REGION_FAILED_OPEN)
                RQ_TRY(rq__batch_opened(c, &batch, &t->regions[r], 1));
        }
    }
    if (was_here) RQ_TRY(drop_known_places(c, &batch, why));
    return note_places(c, &batch, why);
}

/* --- 6: what the log holds besides ------------------------------------------------------------ */

static rq_leftover_fate decide(void *ctx, const rq_leftover *left)
{
    rq_catalog *c = ctx;
    rq_epoch_member m = {0};
    rq_epoch_pin(c->env->epoch, &m);
    bool known = rq_catalog_region_find(c, rq_slice_cstr(left->encoded)) != NULL;
    rq_epoch_unpin(c->env->epoch, &m);
    if (known) return RQ_LEFTOVER_KEEP;
    if (left->has_manifest || rq__region_is_on_disk(c, left->encoded)) {
        /* It was never flushed, if it has no manifest. Its row in meta was lost, or an unfinished drop will remove the records too. */
        rq_log_warn(c->env->log, "catalog",
                    "region %s is not in hbase:meta, but has files or a manifest: its %llu records "
                    "stay in the write-ahead log",
                    left->encoded, (unsigned long long)left->records);
        return RQ_LEFTOVER_KEEP;
    }
    rq_log_info(c->env->log, "catalog",
                "removed %llu records of dropped region %s from the write-ahead log",
                (unsigned long long)left->records, left->encoded);
    return RQ_LEFTOVER_DROP;
}

/* --- all of it -------------------------------------------------------------------------------- */

static rq_err run(boot *b, rq_error *why)
{
    rq_catalog *c = b->catalog;
    bool fresh = rq_root_is_new(c->root);
    rq_region_info namespace_info;
    if (fresh) RQ_TRY(lay_out(b, &namespace_info, why));
    RQ_TRY(open_store(b, why));
    if (rq__root_adopts(c->root)) RQ_TRY(rq__adopt_store(c, why));
    RQ_TRY(open_meta(b, why));
    if (fresh) RQ_TRY(add_namespace_table(b, &namespace_info, why));
    rq_region *meta;
    RQ_TRY(rq__meta_ref(c, &meta, why));
    int64_t newest_ms;
    rq_err rc = rq__meta_scan(meta, take_row, b, &newest_ms, why);
    rq_region_unref(meta);
    RQ_TRY(rc);
    rq__catalog_saw_ms(c, newest_ms);
    RQ_TRY(rq__procedures_load(c, why));
    RQ_TRY(leave_out_unfinished(b));
    RQ_TRY(read_descriptors(b, why));
    report_rest(b);
    RQ_TRY(rq__switches_load(c, why));
    RQ_TRY(rq__peers_load(c, why));
    if (!fresh) {
        RQ_TRY(open_namespaces(b, why));
        RQ_TRY(rq__open_mark_write(c, why)); /* from here on the folder is not refused */
    }
    if (rq_catalog_in_maintenance(c))
        rq_log_warn(c->env->log, "catalog",
                    "maintenance mode: only tables of the namespace hbase are opened");
    RQ_TRY(open_tables(b, why));
    RQ_TRY(publish_tables(b, why));
    RQ_TRY(write_places(b, why));
    if (fresh) RQ_TRY(write_namespaces(b, why));
    if (!b->namespaces_read) {
        rq_region *at = namespace_region(c);
        rc = rq__namespaces_read(c, at, why);
        rq_region_unref(at);
        RQ_TRY(rc);
    }
    if (!fresh) (void)rq_engine_recovered(c->engine, decide, c);
    for (size_t i = 0; i < b->table_count; i++)
        rq__reopen_failed(c, b->tables[i].regions, b->tables[i].region_count);
    if (fresh) RQ_TRY(rq__root_seal(c->root, why));
    if (!rq__root_adopts(c->root)) return RQ_OK;
    rq_log_info(c->env->log, "catalog", "taking over a data folder written by Apache HBase");
    return rq__root_adopted(c->root, why);
}

rq_err rq__bootstrap(rq_catalog *c, rq_error *why)
{
    boot b = {.catalog = c};
    rq_wal *wal = rq_engine_wal(c->engine);
    rq_arena_init(&b.arena);
    rq_wal_keep_from(wal, 0); /* until the peers are known that need it */
    rq_err rc = run(&b, why);
    if (rc == RQ_OK) rq_wal_keep_from(wal, RQ_RETENTION_NO_LOG);
    /* After an error the host closes regions that are open but in no view. */
    for (size_t i = 0; i < b.table_count; i++) {
        rq__opened_clear(b.tables[i].regions, b.tables[i].region_count);
        free(b.tables[i].regions);
        rq_table_schema_unref(b.tables[i].schema);
    }
    free(b.tables);
    rq__opened_clear(&b.meta, 1);
    rq_table_schema_unref(b.meta_schema);
    rq_arena_clear(&b.arena);
    return rc;
}
