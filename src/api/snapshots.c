/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions for snapshots, and HBase's message SnapshotDescription: { name 1, table 2,
 * creation_time 3, type 4, ttl 8 }. HBASE: HBaseAdmin.snapshot, cloneSnapshot, restoreSnapshot. */
#include "api/api_priv.h"

#include "base/pb.h"

#include <stdlib.h>

#define TYPE_FLUSH 1
#define TYPE_SKIPFLUSH 2

/* A result of the library's; everything is in its arena, the struct itself excepted. */
typedef struct list_memory {
    rq_snapshot_list pub;
    rq_arena arena;
} list_memory;

/* --- lists ------------------------------------------------------------------------------------ */

void rq_snapshot_list_free(rq_snapshot_list *list)
{
    if (list == NULL) return;
    list_memory *m = RQ_CONTAINER_OF(list, list_memory, pub);
    rq_arena_clear(&m->arena);
    free(m);
}

rq_err rq_snapshot_found(rq_snapshot_finding *f, rq_slice description)
{
    rq_cursor c = rq_cursor_of(description);
    rq_snapshot_entry e = {.name = "", .table = ""};
    rq_pb_field field;
    rq_err rc;
    while ((rc = rq_pb_next(&c, &field)) == RQ_OK) {
        if (field.wire == RQ_PB_BYTES && (field.number == 1 || field.number == 2)) {
            const char *text = rq_arena_cstr(f->arena, field.bytes);
            if (text == NULL) return RQ_E_NO_MEMORY;
            *(field.number == 1 ? &e.name : &e.table) = text;
        }
        if (field.wire == RQ_PB_VARINT && field.number == 3) e.created_ms = (int64_t)field.value;
        if (field.wire == RQ_PB_VARINT && field.number == 8) e.ttl_s = field.value;
    }
    if (rc != RQ_E_END) return rc;
    RQ_TRY(rq_arena_grow(f->arena, &f->items, sizeof *f->items, f->count, &f->cap));
    f->items[f->count++] = e;
    return RQ_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const rq_snapshot_entry *)a)->name, ((const rq_snapshot_entry *)b)->name);
}

static rq_err find_all(rq_db *db, rq_slot *slot, rq_snapshot_finding *ret, rq_why *why)
{
    rq_err rc = db->backend->snapshots(db, slot, ret, why);
    if (rc == RQ_E_NO_MEMORY) return rq_no_memory(&why->error);
    RQ_TRY(rc);
    if (ret->count > 1) qsort(ret->items, ret->count, sizeof *ret->items, by_name);
    return RQ_OK;
}

rq_err rq_snapshots(rq_db *db, rq_snapshot_list **ret, rq_failure *failure)
{
    rq_why why;
    rq_slot *slot;
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    rq_err rc = rq__db_begin(db, &slot, &why);
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    list_memory *m = calloc(1, sizeof *m);
    rc = m == NULL ? rq_no_memory(&why.error) : RQ_OK;
    if (rc == RQ_OK) {
        rq_snapshot_finding found = {.arena = &m->arena};
        rc = find_all(db, slot, &found, &why);
        m->pub = (rq_snapshot_list){found.count, found.items};
        if (rc == RQ_OK)
            *ret = &m->pub;
        else
            rq_snapshot_list_free(&m->pub);
    }
    rq__slot_give_back(slot);
    return rq_fill_failure(failure, rc, &why);
}

/* --- changes ---------------------------------------------------------------------------------- */

/* Checks a snapshot's name, which becomes the name of a folder, because HBase's master does not
 * check it. HBASE: TableName.isLegalFullyQualifiedTableName, in ClientSnapshotDescriptionUtils. */
static rq_err check_name(const char *name, rq_error *why)
{
    bool begins = true;
    for (const char *c = name; *c != '\0'; c++) {
        bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                      (*c >= '0' && *c <= '9') || *c == '_' || (*c & 0x80) != 0;
        if (!letter && (begins || (*c != '-' && *c != '.' && *c != ':')))
            return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "Illegal character in snapshot name: '%s'",
                           name);
        begins = *c == ':';
    }
    return begins ? rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "no snapshot name: '%s'", name) : RQ_OK;
}

static rq_err put_description(rq_buf *b, const char *name, const char *table, int type)
{
    RQ_TRY(rq_pb_put_bytes(b, 1, rq_slice_cstr(name)));
    if (table != NULL) RQ_TRY(rq_pb_put_bytes(b, 2, rq_slice_cstr(table)));
    return type == 0 ? RQ_OK : rq_pb_put_number(b, 4, (uint64_t)type);
}

/* `table` NULL: none. */
static rq_err define(rq_db *db, rq_slot *slot, rq_define_kind kind, const char *name,
                     const char *table, int type, rq_why *why)
{
    rq_buf message = {0};
    rq_defining d = {
        .kind = kind, .snapshot = rq_slice_cstr(name), .skips_flush = type == TYPE_SKIPFLUSH};
    RQ_TRY(check_name(name, &why->error));
    if (table != NULL) RQ_TRY(rq__split_name(table, &d.ns, &d.qualifier, &why->error));
    if (kind == RQ_DEFINE_SNAPSHOT && rq_slice_eq(d.ns, RQ_SLICE_LIT("hbase")) &&
        rq_slice_eq(d.qualifier, RQ_SLICE_LIT("meta")))
        return rq_fail(&why->error, RQ_E_ILLEGAL_ARGUMENT,
                       "System table snapshots are not allowed");
    rq_err rc = put_description(&message, name, table, type);
    d.message = rq_buf_slice(&message);
    rc = rc == RQ_OK ? db->backend->define(db, slot, &d, why) : rq_no_memory(&why->error);
    rq_buf_clear(&message);
    return rc;
}

/* Whether the table is there, and enabled. */
static rq_err look(rq_db *db, rq_slot *slot, const char *table, bool *ret_exists, bool *ret_enabled,
                   rq_why *why)
{
    rq_slice ns, qualifier;
    rq_buf schema = {0};
    *ret_enabled = false;
    RQ_TRY(rq__split_name(table, &ns, &qualifier, &why->error));
    rq_err rc = db->backend->describe(db, slot, ns, qualifier, &schema, ret_enabled, why);
    rq_buf_clear(&schema);
    *ret_exists = rc == RQ_OK;
    if (rc != RQ_E_TABLE_NOT_FOUND) return rc;
    rq_why_clear(why);
    return RQ_OK;
}

/* Fails if the table exists, because the master's call would then restore the table. HBASE:
 * HBaseAdmin.cloneSnapshot. */
static rq_err clone(rq_db *db, rq_slot *slot, const char *name, const char *table, rq_why *why)
{
    bool exists, enabled;
    RQ_TRY(look(db, slot, table, &exists, &enabled, why));
    if (exists) return rq_fail(&why->error, RQ_E_TABLE_EXISTS, "%s", table);
    return define(db, slot, RQ_DEFINE_CLONE_SNAPSHOT, name, table, 0, why);
}

/* HBASE: RawAsyncHBaseAdmin.restoreSnapshot */
static rq_err restore_table(rq_db *db, rq_slot *slot, const char *name, const char *table,
                            rq_why *why)
{
    bool exists, enabled;
    RQ_TRY(look(db, slot, table, &exists, &enabled, why));
    if (enabled) return rq_fail(&why->error, RQ_E_TABLE_NOT_DISABLED, "%s", table);
    return define(db, slot, RQ_DEFINE_RESTORE_SNAPSHOT, name, table, 0, why);
}

/* Finds the snapshot's table in the list of snapshots, and restores it. */
static rq_err restore(rq_db *db, rq_slot *slot, const char *name, const char *unused, rq_why *why)
{
    rq_snapshot_finding found = {.arena = &slot->arena};
    (void)unused;
    RQ_TRY(find_all(db, slot, &found, why));
    for (size_t i = 0; i < found.count; i++)
        if (strcmp(found.items[i].name, name) == 0)
            return restore_table(db, slot, name, found.items[i].table, why);
    return rq_fail(&why->error, RQ_E_SNAPSHOT_NOT_FOUND, "Snapshot '%s' does not exist", name);
}

static rq_err take(rq_db *db, rq_slot *slot, const char *name, const char *table, rq_why *why)
{
    return define(db, slot, RQ_DEFINE_SNAPSHOT, name, table, TYPE_FLUSH, why);
}

static rq_err take_files(rq_db *db, rq_slot *slot, const char *name, const char *table, rq_why *why)
{
    return define(db, slot, RQ_DEFINE_SNAPSHOT, name, table, TYPE_SKIPFLUSH, why);
}

static rq_err drop(rq_db *db, rq_slot *slot, const char *name, const char *unused, rq_why *why)
{
    (void)unused;
    return define(db, slot, RQ_DEFINE_DROP_SNAPSHOT, name, NULL, 0, why);
}

typedef rq_err (*change)(rq_db *db, rq_slot *slot, const char *name, const char *table,
                         rq_why *why);

static rq_err change_by(change function, rq_db *db, const char *name, const char *table,
                        rq_failure *failure)
{
    rq_why why;
    rq_slot *slot;
    RQ_TRY(rq_needs(name, "snapshot's name", failure));
    rq_err rc = rq__db_begin(db, &slot, &why);
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    rc = function(db, slot, name, table, &why);
    rq__slot_give_back(slot);
    return rq_fill_failure(failure, rc, &why);
}

rq_err rq_snapshot_create(rq_db *db, const char *name, const char *table, bool skips_flush,
                          rq_failure *failure)
{
    RQ_TRY(rq_needs(table, "table's name", failure));
    return change_by(skips_flush ? take_files : take, db, name, table, failure);
}

rq_err rq_snapshot_drop(rq_db *db, const char *name, rq_failure *failure)
{
    return change_by(drop, db, name, NULL, failure);
}

rq_err rq_snapshot_clone(rq_db *db, const char *name, const char *table, rq_failure *failure)
{
    RQ_TRY(rq_needs(table, "table's name", failure));
    return change_by(clone, db, name, table, failure);
}

rq_err rq_snapshot_restore(rq_db *db, const char *name, rq_failure *failure)
{
    return change_by(restore, db, name, NULL, failure);
}
