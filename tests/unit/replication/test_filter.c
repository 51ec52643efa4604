/* SPDX-License-Identifier: Apache-2.0 */
/* The records that a peer gets, and the request that is made from them. */
#include "../base/unit.h"

#include "cell/cellblock.h"
#include "replication/shipment.h"

#include "proto/admin.pb-c.h"
#include "proto/replication.pb-c.h"

typedef struct world {
    rq_arena arena;
    rq__filter filter;
    rq__selection by;
} world;

static Pb__TableCF *table_of(rq_arena *a, const char *ns, const char *q, const char *family)
{
    Pb__TableCF *t = rq_arena_alloc(a, sizeof *t);
    pb__table_cf__init(t);
    t->table_name = rq_arena_alloc(a, sizeof *t->table_name);
    pb__table_name__init(t->table_name);
    t->table_name->namespace_ = (ProtobufCBinaryData){strlen(ns), (uint8_t *)(uintptr_t)ns};
    t->table_name->qualifier = (ProtobufCBinaryData){strlen(q), (uint8_t *)(uintptr_t)q};
    t->families = rq_arena_alloc(a, sizeof *t->families);
    if (family == NULL) return t;
    t->n_families = 1;
    t->families[0] = (ProtobufCBinaryData){strlen(family), (uint8_t *)(uintptr_t)family};
    return t;
}

static void make(world *w, Pb__ReplicationPeer *m)
{
    rq_error why = {0};
    uint8_t bytes[1000];
    size_t len = pb__replication_peer__pack(m, bytes);
    if (rq__filter_make(rq_slice_of(bytes, len), &w->arena, &w->filter, &why) != RQ_OK)
        fail_msg("%s", why.message);
    w->by = (rq__selection){.filter = &w->filter};
    memset(w->by.own_id, 1, RQ_CLUSTER_ID_LEN);
    memset(w->by.peer_id, 2, RQ_CLUSTER_ID_LEN);
}

static bool takes(const world *w, const char *table, const char *family)
{
    const rq__table_rule *rule;
    return rq__filter_takes_table(&w->filter, rq_slice_cstr(table), &rule) &&
           rq__filter_takes_family(&w->filter, rule, rq_slice_cstr(family));
}

static void all_tables_but_the_excluded(void **state)
{
    (void)state;
    world w = {.by = {.filter = NULL}};
    Pb__ReplicationPeer m = PB__REPLICATION_PEER__INIT;
    Pb__TableCF *tables[] = {table_of(&w.arena, "default", "whole", NULL),
                             table_of(&w.arena, "n", "part", "f")};
    ProtobufCBinaryData namespaces[] = {{6, (uint8_t *)(uintptr_t) "hidden"}};
    m.exclude_table_cfs = tables;
    m.n_exclude_table_cfs = 2;
    m.exclude_namespaces = namespaces;
    m.n_exclude_namespaces = 1;
    make(&w, &m);
    assert_true(takes(&w, "t", "f"));
    assert_false(takes(&w, "whole", "f"));
    assert_false(takes(&w, "n:part", "f"));
    assert_true(takes(&w, "n:part", "g"));
    assert_false(takes(&w, "hidden:t", "f"));
    assert_false(takes(&w, "hbase:meta", "info"));
    rq_arena_clear(&w.arena);
}

static void only_the_named_tables(void **state)
{
    (void)state;
    world w = {.by = {.filter = NULL}};
    Pb__ReplicationPeer m = PB__REPLICATION_PEER__INIT;
    Pb__TableCF *tables[] = {table_of(&w.arena, "default", "z", "f"),
                             table_of(&w.arena, "default", "a", NULL)};
    ProtobufCBinaryData namespaces[] = {{1, (uint8_t *)(uintptr_t) "n"}};
    m.has_replicate_all = 1;
    m.table_cfs = tables;
    m.n_table_cfs = 2;
    m.namespaces = namespaces;
    m.n_namespaces = 1;
    make(&w, &m);
    assert_true(takes(&w, "z", "f"));
    assert_false(takes(&w, "z", "g"));
    assert_true(takes(&w, "a", "g"));
    assert_true(takes(&w, "n:any", "f"));
    assert_false(takes(&w, "t", "f"));
    rq_arena_clear(&w.arena);
}

static rq_cell cell_of(const char *row, const char *family)
{
    return (rq_cell){.row = (const uint8_t *)row,
                     .row_len = (uint16_t)strlen(row),
                     .family = (const uint8_t *)family,
                     .family_len = (uint8_t)strlen(family),
                     .qualifier = (const uint8_t *)"q",
                     .qualifier_len = 1,
                     .value = (const uint8_t *)"v",
                     .value_len = 1,
                     .timestamp = 5,
                     .type = RQ_TYPE_PUT};
}

/* f is replicated, g is not. */
static const uint8_t scopes[] = {1, 'f', 0, 0, 0, 1};

static rq_wal_record record_of(rq_cellblock *block, rq_slice clusters)
{
    const char *const families[] = {"f", "g", "f"};
    block->with_tags = true;
    for (size_t i = 0; i < 3; i++) {
        rq_cell c = cell_of("row", families[i]);
        assert_int_equal(rq_cellblock_append(block, &c), RQ_OK);
    }
    return (rq_wal_record){.kind = RQ_WAL_EDIT,
                           .region = RQ_SLICE_LIT("0123456789abcdef0123456789abcdef"),
                           .table = RQ_SLICE_LIT("t"),
                           .sequence_id = 77,
                           .write_time_ms = 1234,
                           .cluster_ids = clusters,
                           .scopes = rq_slice_of(scopes, sizeof scopes),
                           .payload = rq_buf_slice(&block->bytes)};
}

static void a_record_becomes_an_entry(void **state)
{
    (void)state;
    world w = {.by = {.filter = NULL}};
    Pb__ReplicationPeer m = PB__REPLICATION_PEER__INIT;
    rq__shipment s = {.entries = 0};
    rq_cellblock block = {.with_tags = true};
    uint8_t other[RQ_CLUSTER_ID_LEN];
    memset(other, 3, sizeof other);
    make(&w, &m);
    rq_wal_record r = record_of(&block, rq_slice_of(other, sizeof other));
    assert_int_equal(rq__shipment_add(&s, &w.by, &r, NULL), RQ_OK);
    assert_int_equal(s.entries, 1);
    assert_int_equal(s.edits, 2);
    Pb__ReplicateWALEntryRequest *q =
        pb__replicate_walentry_request__unpack(NULL, s.message.len, s.message.ptr);
    assert_non_null(q);
    assert_int_equal(q->n_entry, 1);
    const Pb__WALKey *key = q->entry[0]->key;
    assert_int_equal(q->entry[0]->associated_cell_count, 2);
    assert_int_equal(key->log_sequence_number, 77);
    assert_int_equal(key->orig_sequence_number, 77);
    assert_int_equal(key->write_time, 1234);
    assert_int_equal(key->n_scopes, 1);
    assert_int_equal(key->n_cluster_ids, 2);
    assert_int_equal(key->cluster_ids[0]->most_sig_bits, 0x0303030303030303u);
    assert_int_equal(key->cluster_ids[1]->least_sig_bits, 0x0101010101010101u);
    rq_cursor c = rq_cursor_of(rq_buf_slice(&s.cells));
    rq_cell cell;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(rq_cellblock_next(&c, &cell, NULL), RQ_OK);
        assert_true(rq_slice_eq(rq_cell_family(&cell), RQ_SLICE_LIT("f")));
    }
    assert_int_equal(rq_cellblock_next(&c, &cell, NULL), RQ_E_END);
    pb__replicate_walentry_request__free_unpacked(q, NULL);
    rq_cellblock_clear(&block);
    rq__shipment_clear(&s);
    rq_arena_clear(&w.arena);
}

static void a_record_that_the_peer_has_is_left_out(void **state)
{
    (void)state;
    world w = {.by = {.filter = NULL}};
    Pb__ReplicationPeer m = PB__REPLICATION_PEER__INIT;
    rq__shipment s = {.entries = 0};
    rq_cellblock block = {.with_tags = true};
    uint8_t ids[2 * RQ_CLUSTER_ID_LEN];
    memset(ids, 9, sizeof ids);
    memset(ids + RQ_CLUSTER_ID_LEN, 2, RQ_CLUSTER_ID_LEN);
    make(&w, &m);
    rq_wal_record r = record_of(&block, rq_slice_of(ids, sizeof ids));
    assert_int_equal(rq__shipment_add(&s, &w.by, &r, NULL), RQ_OK);
    r.cluster_ids = (rq_slice){0};
    r.scopes = (rq_slice){0};
    assert_int_equal(rq__shipment_add(&s, &w.by, &r, NULL), RQ_OK);
    r.scopes = rq_slice_of(scopes, sizeof scopes);
    r.kind = RQ_WAL_FLUSH;
    assert_int_equal(rq__shipment_add(&s, &w.by, &r, NULL), RQ_OK);
    assert_int_equal(s.entries, 0);
    assert_int_equal(s.filtered, 3);
    assert_int_equal(rq__shipment_bytes(&s), 0);
    rq_cellblock_clear(&block);
    rq__shipment_clear(&s);
    rq_arena_clear(&w.arena);
}

/* A record as region/bulk_event.c writes it, with two families, of which one is replicated. */
static size_t load_event(uint8_t *out)
{
    char family_f[] = "f";
    char family_g[] = "g";
    char file[] = "0123456789abcdef0123456789abcdef_SeqId_7_";
    char *files[] = {file};
    Pb__StoreDescriptor stores[2];
    Pb__StoreDescriptor *list[] = {&stores[0], &stores[1]};
    for (size_t i = 0; i < 2; i++) {
        pb__store_descriptor__init(&stores[i]);
        stores[i].family_name.data = (uint8_t *)(i == 0 ? family_g : family_f);
        stores[i].family_name.len = 1;
        stores[i].store_home_dir = i == 0 ? family_g : family_f;
        stores[i].n_store_file = 1;
        stores[i].store_file = files;
        stores[i].has_store_file_size_bytes = true;
        stores[i].store_file_size_bytes = 1000;
    }
    Pb__TableName table = PB__TABLE_NAME__INIT;
    table.namespace_.data = (uint8_t *)(uintptr_t) "default";
    table.namespace_.len = 7;
    table.qualifier.data = (uint8_t *)(uintptr_t) "t";
    table.qualifier.len = 1;
    Pb__BulkLoadDescriptor d = PB__BULK_LOAD_DESCRIPTOR__INIT;
    d.table_name = &table;
    d.encoded_region_name.data = (uint8_t *)(uintptr_t) "region";
    d.encoded_region_name.len = 6;
    d.n_stores = 2;
    d.stores = list;
    d.bulkload_seq_num = 7;
    return pb__bulk_load_descriptor__pack(&d, out);
}

static void a_bulk_load_is_shipped_if_that_is_enabled(void **state)
{
    (void)state;
    world w = {.by = {.filter = NULL}};
    Pb__ReplicationPeer m = PB__REPLICATION_PEER__INIT;
    rq__shipment s = {.entries = 0};
    rq_cellblock block = {.with_tags = true};
    uint8_t event[512];
    make(&w, &m);
    rq_wal_record r = record_of(&block, (rq_slice){0});
    r.kind = RQ_WAL_BULK_LOAD;
    r.payload = rq_slice_of(event, load_event(event));
    assert_int_equal(rq__shipment_add(&s, &w.by, &r, NULL), RQ_OK);
    assert_int_equal(s.filtered, 1);
    w.by.cluster = "here";
    w.by.data_path = "/root";
    assert_int_equal(rq__shipment_add(&s, &w.by, &r, NULL), RQ_OK);
    assert_int_equal(s.entries, 1);
    assert_int_equal(s.files, 1);
    assert_int_equal(s.file_bytes, 1000);
    assert_int_equal(rq__shipment_seal(&s, &w.by), RQ_OK);
    Pb__ReplicateWALEntryRequest *q =
        pb__replicate_walentry_request__unpack(NULL, s.message.len, s.message.ptr);
    assert_non_null(q);
    assert_string_equal(q->replicationclusterid, "here");
    assert_string_equal(q->sourcebasenamespacedirpath, "file:/root/data");
    assert_string_equal(q->sourcehfilearchivedirpath, "file:/root/archive/data");
    pb__replicate_walentry_request__free_unpacked(q, NULL);
    rq_cursor c = rq_cursor_of(rq_buf_slice(&s.cells));
    rq_cell cell;
    assert_int_equal(rq_cellblock_next(&c, &cell, NULL), RQ_OK);
    assert_true(rq_slice_eq(rq_cell_family(&cell), RQ_SLICE_LIT("METAFAMILY")));
    assert_true(rq_slice_eq(rq_cell_qualifier(&cell), RQ_SLICE_LIT("HBASE::BULK_LOAD")));
    Pb__BulkLoadDescriptor *d = pb__bulk_load_descriptor__unpack(NULL, cell.value_len, cell.value);
    assert_non_null(d);
    assert_int_equal(d->n_stores, 1);
    assert_int_equal(d->stores[0]->family_name.data[0], 'f');
    assert_int_equal(d->bulkload_seq_num, 7);
    pb__bulk_load_descriptor__free_unpacked(d, NULL);
    r.payload.len -= 3;
    assert_int_equal(rq__shipment_add(&s, &w.by, &r, NULL), RQ_E_CORRUPT);
    assert_int_equal(s.entries, 1);
    rq_cellblock_clear(&block);
    rq__shipment_clear(&s);
    rq_arena_clear(&w.arena);
}

static void damaged_cells_are_an_error_and_leave_nothing(void **state)
{
    (void)state;
    world w = {.by = {.filter = NULL}};
    Pb__ReplicationPeer m = PB__REPLICATION_PEER__INIT;
    rq__shipment s = {.entries = 0};
    rq_cellblock block = {.with_tags = true};
    make(&w, &m);
    rq_wal_record r = record_of(&block, (rq_slice){0});
    r.payload.len -= 3;
    assert_int_equal(rq__shipment_add(&s, &w.by, &r, NULL), RQ_E_CORRUPT);
    assert_int_equal(rq__shipment_bytes(&s), 0);
    rq_cellblock_clear(&block);
    rq__shipment_clear(&s);
    rq_arena_clear(&w.arena);
}

static void cluster_ids(void **state)
{
    (void)state;
    uint8_t id[RQ_CLUSTER_ID_LEN];
    assert_true(rq__cluster_id_parse("00112233-4455-6677-8899-aabbccddeeff", id));
    assert_int_equal(rq_get_be64(id), 0x0011223344556677u);
    assert_int_equal(rq_get_be64(id + 8), 0x8899aabbccddeeffu);
    static const char *const wrong[] = {"", "00112233-4455-6677-8899-aabbccddeefg",
                                        "00112233x4455-6677-8899-aabbccddeeff",
                                        "00112233-4455-6677-8899-aabbccddeeff0"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(wrong); i++)
        assert_false(rq__cluster_id_parse(wrong[i], id));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_tables_but_the_excluded),
        cmocka_unit_test(only_the_named_tables),
        cmocka_unit_test(a_record_becomes_an_entry),
        cmocka_unit_test(a_record_that_the_peer_has_is_left_out),
        cmocka_unit_test(a_bulk_load_is_shipped_if_that_is_enabled),
        cmocka_unit_test(damaged_cells_are_an_error_and_leave_nothing),
        cmocka_unit_test(cluster_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
