/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a request from records of the log; see shipment.h. HBASE: ReplicationProtbufUtil,
 * WALKeyImpl.getBuilder, ScopeWALEntryFilter. */
#include "replication/shipment.h"

#include "base/pb.h"
#include "cell/cellblock.h"

#include <string.h>

/* The numbers of proto/admin.proto and proto/wal.proto. */
enum { REQUEST_ENTRY = 1, ENTRY_KEY = 1, ENTRY_CELLS = 3 };
enum { REQUEST_CLUSTER = 2, REQUEST_DATA = 3, REQUEST_ARCHIVE = 4 };
enum {
    KEY_REGION = 1,
    KEY_TABLE = 2,
    KEY_NUMBER = 3,
    KEY_TIME = 4,
    KEY_SCOPES = 6,
    KEY_CLUSTERS = 8,
    KEY_NONCE_GROUP = 9,
    KEY_NONCE = 10,
    KEY_FIRST_NUMBER = 11
};

static rq_err put_cluster(rq_buf *b, const uint8_t *id)
{
    size_t at;
    RQ_TRY(rq_pb_begin(b, KEY_CLUSTERS, &at));
    RQ_TRY(rq_pb_put_number(b, 1, rq_get_be64(id + 8)));
    RQ_TRY(rq_pb_put_number(b, 2, rq_get_be64(id)));
    return rq_pb_end(b, at);
}

static rq_err put_scopes(rq_buf *b, rq_slice scopes)
{
    rq_cursor c = rq_cursor_of(scopes);
    rq_slice family;
    uint32_t scope;
    while (rq_wal_scope_next(&c, &family, &scope)) {
        size_t at;
        RQ_TRY(rq_pb_begin(b, KEY_SCOPES, &at));
        RQ_TRY(rq_pb_put_bytes(b, 1, family));
        RQ_TRY(rq_pb_put_number(b, 2, scope));
        RQ_TRY(rq_pb_end(b, at));
    }
    return RQ_OK;
}

static rq_err put_key(rq_buf *b, const rq__selection *by, const rq_wal_record *r)
{
    RQ_TRY(rq_pb_put_bytes(b, KEY_REGION, r->region));
    RQ_TRY(rq_pb_put_bytes(b, KEY_TABLE, r->table));
    RQ_TRY(rq_pb_put_number(b, KEY_NUMBER, r->sequence_id));
    RQ_TRY(rq_pb_put_number(b, KEY_TIME, (uint64_t)r->write_time_ms));
    RQ_TRY(put_scopes(b, r->scopes));
    for (size_t at = 0; at + RQ_CLUSTER_ID_LEN <= r->cluster_ids.len; at += RQ_CLUSTER_ID_LEN)
        RQ_TRY(put_cluster(b, r->cluster_ids.ptr + at));
    if (!rq__clusters_contain(r->cluster_ids, by->own_id)) RQ_TRY(put_cluster(b, by->own_id));
    if (r->nonce_group != 0) RQ_TRY(rq_pb_put_number(b, KEY_NONCE_GROUP, r->nonce_group));
    if (r->nonce != 0) RQ_TRY(rq_pb_put_number(b, KEY_NONCE, r->nonce));
    return rq_pb_put_number(b, KEY_FIRST_NUMBER, r->sequence_id);
}

static rq_err put_entry(rq_buf *b, const rq__selection *by, const rq_wal_record *r, uint32_t cells)
{
    size_t entry;
    size_t key;
    RQ_TRY(rq_pb_begin(b, REQUEST_ENTRY, &entry));
    RQ_TRY(rq_pb_begin(b, ENTRY_KEY, &key));
    RQ_TRY(put_key(b, by, r));
    RQ_TRY(rq_pb_end(b, key));
    RQ_TRY(rq_pb_put_number(b, ENTRY_CELLS, cells));
    return rq_pb_end(b, entry);
}

static bool has_scope(rq_slice scopes, rq_slice family)
{
    rq_cursor c = rq_cursor_of(scopes);
    rq_slice name;
    uint32_t scope;
    while (rq_wal_scope_next(&c, &name, &scope))
        if (scope != 0 && rq_slice_eq(name, family)) return true;
    return false;
}

static bool takes_family(const rq__selection *by, const rq_wal_record *r,
                         const rq__table_rule *rule, rq_slice family)
{
    return has_scope(r->scopes, family) && rq__filter_takes_family(by->filter, rule, family) &&
           (by->exists == NULL || by->exists(by->ctx, r->table, family));
}

/* The result for the last family looked up: a record has few families, and its cells are grouped by
 * family. */
typedef struct decision {
    rq_slice family;
    bool known, takes;
} decision;

static bool takes_cell(const rq__selection *by, const rq_wal_record *r, const rq__table_rule *rule,
                       const rq_cell *cell, decision *d)
{
    rq_slice family = rq_cell_family(cell);
    if (d->known && rq_slice_eq(d->family, family)) return d->takes;
    d->family = family;
    d->known = true;
    d->takes = takes_family(by, r, rule, family);
    return d->takes;
}

static rq_err add_cells(rq__shipment *s, const rq__selection *by, const rq_wal_record *r,
                        const rq__table_rule *rule, uint32_t *ret, rq_error *why)
{
    rq_cursor c = rq_cursor_of(r->payload);
    decision d = {.known = false};
    *ret = 0;
    for (;;) {
        const uint8_t *from = c.ptr;
        rq_cell cell;
        rq_err rc = rq_cellblock_next_stored(&c, &cell, why);
        if (rc == RQ_E_END) return RQ_OK;
        if (rc != RQ_OK) return rc;
        if (!takes_cell(by, r, rule, &cell, &d)) continue;
        RQ_TRY(rq_buf_append(&s->cells, from, (size_t)(c.ptr - from)));
        ++*ret;
    }
}

/* --- bulk loads ------------------------------------------------------------------------------- */

/* The numbers of proto/wal.proto. */
enum { EVENT_STORE = 3, STORE_FAMILY = 1, STORE_FILE = 3, STORE_BYTES = 4 };

typedef struct store {
    rq_slice family;
    uint64_t files, bytes;
} store;

typedef struct totals {
    uint64_t files, bytes;
} totals;

static rq_err read_store(rq_slice message, store *ret)
{
    rq_cursor c = rq_cursor_of(message);
    rq_pb_field f;
    rq_err rc;
    *ret = (store){.files = 0};
    while ((rc = rq_pb_next(&c, &f)) == RQ_OK) {
        if (f.number == STORE_FAMILY && f.wire == RQ_PB_BYTES) ret->family = f.bytes;
        if (f.number == STORE_BYTES && f.wire == RQ_PB_VARINT) ret->bytes = f.value;
        ret->files += f.number == STORE_FILE && f.wire == RQ_PB_BYTES;
    }
    return rc == RQ_E_END ? RQ_OK : rc;
}

/* Copies the BulkLoadDescriptor without the stores that the peer does not get. */
static rq_err filter_event(const rq__selection *by, const rq_wal_record *r,
                           const rq__table_rule *rule, rq_buf *ret, totals *sum)
{
    rq_cursor c = rq_cursor_of(r->payload);
    rq_pb_field f;
    rq_err rc;
    for (const uint8_t *from = c.ptr; (rc = rq_pb_next(&c, &f)) == RQ_OK; from = c.ptr) {
        if (f.number == EVENT_STORE && f.wire == RQ_PB_BYTES) {
            store one;
            RQ_TRY(read_store(f.bytes, &one));
            if (!takes_family(by, r, rule, one.family)) continue;
            sum->files += one.files;
            sum->bytes += one.bytes;
        }
        RQ_TRY(rq_buf_append(ret, from, (size_t)(c.ptr - from)));
    }
    return rc == RQ_E_END ? RQ_OK : rc;
}

/* HBASE: WALEdit.createBulkLoadEvent; the row says nothing. */
static rq_err put_event(rq_buf *cells, const rq_wal_record *r, rq_slice event)
{
    rq_cellblock block = {.bytes = *cells, .with_tags = true};
    rq_slice family = RQ_SLICE_LIT("METAFAMILY");
    rq_slice qualifier = RQ_SLICE_LIT("HBASE::BULK_LOAD");
    rq_cell cell = {.row = (const uint8_t *)"",
                    .row_len = 1,
                    .family = family.ptr,
                    .family_len = (uint8_t)family.len,
                    .qualifier = qualifier.ptr,
                    .qualifier_len = (uint32_t)qualifier.len,
                    .timestamp = r->write_time_ms,
                    .type = RQ_TYPE_PUT,
                    .value = event.ptr,
                    .value_len = (uint32_t)event.len};
    rq_err rc = rq_cellblock_append(&block, &cell);
    *cells = block.bytes;
    return rc;
}

/* Adds the record of a bulk load in the form of the cell that HBase's region servers write to their
 * log for a bulk load. HBASE: BulkLoadCellFilter. */
static rq_err add_load(rq__shipment *s, const rq__selection *by, const rq_wal_record *r,
                       const rq__table_rule *rule, uint32_t *ret, rq_error *why)
{
    rq_buf event = {0};
    totals sum = {.files = 0};
    rq_err rc = filter_event(by, r, rule, &event, &sum);
    if (rc == RQ_OK && sum.files > 0) rc = put_event(&s->cells, r, rq_buf_slice(&event));
    rq_buf_clear(&event);
    if (rc == RQ_E_NO_MEMORY) return rc;
    if (rc != RQ_OK) return rq_fail(why, RQ_E_CORRUPT, "the record of a bulk load is malformed");
    *ret = sum.files > 0;
    s->files += sum.files;
    s->file_bytes += sum.bytes;
    return RQ_OK;
}

/* HBASE: ReplicationProtobufUtil.buildReplicateWALEntryRequest. */
rq_err rq__shipment_seal(rq__shipment *s, const rq__selection *by)
{
    static const char *const folders[] = {"data", "archive/data"};
    if (by->data_path == NULL || s->files == 0) return RQ_OK;
    RQ_TRY(rq_pb_put_bytes(&s->message, REQUEST_CLUSTER, rq_slice_cstr(by->cluster)));
    for (uint32_t i = 0; i < RQ_ARRAY_LEN(folders); i++) {
        size_t at;
        RQ_TRY(rq_pb_begin(&s->message, REQUEST_DATA + i, &at));
        RQ_TRY(rq_buf_append(&s->message, "file:", 5));
        RQ_TRY(rq_buf_append(&s->message, by->data_path, strlen(by->data_path)));
        RQ_TRY(rq_buf_append(&s->message, "/", 1));
        RQ_TRY(rq_buf_append(&s->message, folders[i], strlen(folders[i])));
        RQ_TRY(rq_pb_end(&s->message, at));
    }
    return RQ_OK;
}

/* --- a record --------------------------------------------------------------------------------- */

static bool takes_kind(const rq__selection *by, rq_wal_kind kind)
{
    return kind == RQ_WAL_EDIT || (kind == RQ_WAL_BULK_LOAD && by->data_path != NULL);
}

static bool takes_record(const rq__selection *by, const rq_wal_record *r,
                         const rq__table_rule **ret_rule)
{
    return takes_kind(by, r->kind) && r->scopes.len > 0 &&
           !rq__clusters_contain(r->cluster_ids, by->peer_id) &&
           rq__filter_takes_table(by->filter, r->table, ret_rule) &&
           (by->exists == NULL || by->exists(by->ctx, r->table, (rq_slice){0}));
}

static rq_err add_payload(rq__shipment *s, const rq__selection *by, const rq_wal_record *r,
                          const rq__table_rule *rule, uint32_t *ret, rq_error *why)
{
    return r->kind == RQ_WAL_EDIT ? add_cells(s, by, r, rule, ret, why)
                                  : add_load(s, by, r, rule, ret, why);
}

rq_err rq__shipment_add(rq__shipment *s, const rq__selection *by, const rq_wal_record *r,
                        rq_error *why)
{
    const rq__table_rule *rule = NULL;
    uint32_t cells = 0;
    size_t mark = s->cells.len;
    size_t message_mark = s->message.len;
    rq_err rc = RQ_OK;
    if (takes_record(by, r, &rule)) rc = add_payload(s, by, r, rule, &cells, why);
    if (rc == RQ_OK && cells > 0) rc = put_entry(&s->message, by, r, cells);
    if (rc != RQ_OK) {
        s->cells.len = mark;
        s->message.len = message_mark;
        return rc;
    }
    if (cells == 0) {
        s->filtered++;
        return RQ_OK;
    }
    if (s->entries == 0) s->first_write_ms = r->write_time_ms;
    s->entries++;
    s->edits += cells;
    s->last_write_ms = r->write_time_ms;
    return RQ_OK;
}

#define KEPT_BYTES ((size_t)256 * 1024)

void rq__shipment_reset(rq__shipment *s)
{
    rq_buf message = s->message;
    rq_buf cells = s->cells;
    if (message.cap > KEPT_BYTES) rq_buf_clear(&message);
    if (cells.cap > KEPT_BYTES) rq_buf_clear(&cells);
    *s = (rq__shipment){.message = message, .cells = cells};
    rq_buf_reset(&s->message);
    rq_buf_reset(&s->cells);
}

void rq__shipment_clear(rq__shipment *s)
{
    rq_buf_clear(&s->message);
    rq_buf_clear(&s->cells);
}
