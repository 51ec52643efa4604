/* SPDX-License-Identifier: Apache-2.0 */
/* Requests decoded by protobuf-c, responses encoded by protobuf-c; random bytes are refused or
 * parsed, without reading out of bounds. */
#include "unit.h"

#include "base/random.h"
#include "cell/cellblock.h"
#include "client/request.h"
#include "client/response.h"
#include "client/scan_metrics.h"

#include "proto/client.pb-c.h"
#include "proto/comparator.pb-c.h"
#include "proto/filter.pb-c.h"
#include "proto/rpc.pb-c.h"

#include <string.h>

static void assert_bytes(ProtobufCBinaryData got, const char *expected)
{
    assert_int_equal(got.len, strlen(expected));
    assert_memory_equal(got.data, expected, got.len);
}

static void a_get_matches_protobuf(void **state)
{
    (void)state;
    rq_buf b = {0};
    rq_get g = {.row = RQ_SLICE_LIT("row"),
                .family = RQ_SLICE_LIT("cf"),
                .qualifier = RQ_SLICE_LIT("q"),
                .has_qualifier = true,
                .max_versions = 5,
                .column_limit = 7};
    assert_int_equal(rq__put_region(&b, RQ_SLICE_LIT("t,,1.x.")), RQ_OK);
    assert_int_equal(rq__put_get_body(&b, &g), RQ_OK);
    Pb__GetRequest *r = pb__get_request__unpack(NULL, b.len, b.ptr);
    assert_non_null(r);
    assert_bytes(r->region->value, "t,,1.x.");
    assert_int_equal(r->region->type, PB__REGION_SPECIFIER__REGION_SPECIFIER_TYPE__REGION_NAME);
    assert_bytes(r->get->row, "row");
    assert_int_equal(r->get->n_column, 1);
    assert_bytes(r->get->column[0]->family, "cf");
    assert_bytes(r->get->column[0]->qualifier[0], "q");
    assert_int_equal(r->get->max_versions, 5);
    Pb__ColumnCountGetFilter *f = pb__column_count_get_filter__unpack(
        NULL, r->get->filter->serialized_filter.len, r->get->filter->serialized_filter.data);
    assert_int_equal(f->limit, 7);
    pb__column_count_get_filter__free_unpacked(f, NULL);
    pb__get_request__free_unpacked(r, NULL);
    rq_buf_clear(&b);
}

static void a_conditional_put_with_a_long_value_matches_protobuf(void **state)
{
    (void)state;
    static uint8_t value[100000];
    rq_buf b = {0};
    rq_buf cells = {0};
    memset(value, 'v', sizeof value);
    rq_cell c = {.row = (const uint8_t *)"row",
                 .row_len = 3,
                 .family = (const uint8_t *)"cf",
                 .family_len = 2,
                 .value = value,
                 .value_len = sizeof value,
                 .timestamp = RQ_TIMESTAMP_LATEST,
                 .type = RQ_TYPE_PUT};
    rq_mutate m = {.kind = RQ_MUTATE_PUT,
                   .row = RQ_SLICE_LIT("row"),
                   .cells = &c,
                   .cell_count = 1,
                   .nonce = 99,
                   .has_condition = true,
                   .condition_family = RQ_SLICE_LIT("cf"),
                   .condition_qualifier = RQ_SLICE_LIT("q"),
                   .condition_value = rq_slice_of(value, sizeof value)};
    assert_int_equal(rq__put_region(&b, RQ_SLICE_LIT("r")), RQ_OK);
    assert_int_equal(rq__put_mutate_body(&b, &cells, &m, 17), RQ_OK);
    Pb__MutateRequest *r = pb__mutate_request__unpack(NULL, b.len, b.ptr);
    assert_non_null(r);
    assert_int_equal(r->mutation->associated_cell_count, 1);
    assert_int_equal(r->mutation->nonce, 99);
    assert_int_equal(r->nonce_group, 17);
    assert_string_equal(r->condition->comparator->name,
                        "org.apache.hadoop.hbase.filter.BinaryComparator");
    Pb__BinaryComparator *bc =
        pb__binary_comparator__unpack(NULL, r->condition->comparator->serialized_comparator.len,
                                      r->condition->comparator->serialized_comparator.data);
    assert_non_null(bc);
    assert_int_equal(bc->comparable->value.len, sizeof value);
    pb__binary_comparator__free_unpacked(bc, NULL);
    pb__mutate_request__free_unpacked(r, NULL);
    assert_int_equal(rq_get_be32(cells.ptr), cells.len - 4);
    rq_buf_clear(&b);
    rq_buf_clear(&cells);
}

static rq_cell cell_of(const char *qualifier, uint8_t type, int64_t timestamp)
{
    return (rq_cell){.row = (const uint8_t *)"row",
                     .row_len = 3,
                     .family = (const uint8_t *)"cf",
                     .family_len = 2,
                     .qualifier = (const uint8_t *)qualifier,
                     .qualifier_len = (uint32_t)strlen(qualifier),
                     .timestamp = timestamp,
                     .type = type};
}

/* Encodes the mutation as the only one of a RegionAction with a condition. */
static Pb__RegionAction *checked_action(const rq_mutate *m, rq_buf *cells)
{
    rq_buf b = {0};
    assert_int_equal(rq__put_region(&b, RQ_SLICE_LIT("r")), RQ_OK);
    assert_int_equal(rq__put_atomic_body(&b, cells, m, 1, RQ_SLICE_LIT("\012\001x")), RQ_OK);
    Pb__RegionAction *a = pb__region_action__unpack(NULL, b.len, b.ptr);
    assert_non_null(a);
    assert_true(a->has_atomic && a->atomic && a->condition != NULL);
    rq_buf_clear(&b);
    return a;
}

static void a_checked_mutation_has_its_cells_in_the_message(void **state)
{
    (void)state;
    static const uint8_t types[] = {RQ_TYPE_DELETE, RQ_TYPE_DELETE_COLUMN,
                                    RQ_TYPE_DELETE_FAMILY_VERSION};
    static const int numbers[] = {0, 1, 3};
    rq_buf none = {0};
    rq_cell cells[3] = {cell_of("q", RQ_TYPE_PUT, 5), cell_of("", RQ_TYPE_PUT, 0)};
    rq_mutate m = {.kind = RQ_MUTATE_PUT, .row = RQ_SLICE_LIT("row"), .cells = cells};
    cells[0].value = (const uint8_t *)"v";
    cells[0].value_len = 1;
    cells[0].tags = (const uint8_t *)"\0\2\200t";
    cells[0].tags_len = 4;
    m.cell_count = 2;
    m.with_tags = true;
    Pb__RegionAction *a = checked_action(&m, &none);
    assert_int_equal(a->n_action, 1);
    Pb__MutationProto *got = a->action[0]->mutation;
    assert_int_equal(got->n_column_value, 2);
    assert_int_equal(got->associated_cell_count, 0);
    const Pb__MutationProto__ColumnValue__QualifierValue *v =
        got->column_value[0]->qualifier_value[0];
    assert_bytes(got->column_value[0]->family, "cf");
    assert_bytes(v->qualifier, "q");
    assert_bytes(v->value, "v");
    assert_true(v->timestamp == 5 && v->tags.len == 4 && !v->has_delete_type);
    v = got->column_value[1]->qualifier_value[0];
    assert_true(v->has_value && v->value.len == 0 && v->has_timestamp && v->timestamp == 0);
    pb__region_action__free_unpacked(a, NULL);
    for (int i = 0; i < 3; i++)
        cells[i] = cell_of("q", types[i], i);
    m.kind = RQ_MUTATE_DELETE;
    m.cell_count = 3;
    a = checked_action(&m, &none);
    for (int i = 0; i < 3; i++) {
        v = a->action[0]->mutation->column_value[i]->qualifier_value[0];
        assert_true((int)v->delete_type == numbers[i] && v->timestamp == (uint64_t)i);
    }
    pb__region_action__free_unpacked(a, NULL);
    assert_int_equal(none.len, 0);
}

/* In one message HBase's server would drop the markers before that of the family. */
static void a_checked_delete_of_a_family_and_more_is_two_deletes(void **state)
{
    (void)state;
    rq_buf block = {0};
    rq_cell cells[3] = {cell_of("q", RQ_TYPE_DELETE_COLUMN, 9),
                        cell_of("", RQ_TYPE_DELETE_FAMILY, 5),
                        cell_of("", RQ_TYPE_DELETE_FAMILY, RQ_TIMESTAMP_LATEST)};
    rq_mutate m = {
        .kind = RQ_MUTATE_DELETE, .row = RQ_SLICE_LIT("row"), .cells = cells, .cell_count = 3};
    Pb__RegionAction *a = checked_action(&m, &block);
    assert_int_equal(a->n_action, 2);
    const int order[] = {1, 0, 2};
    rq_cursor c = rq_cursor_of(rq_buf_slice(&block));
    rq_error why;
    for (int i = 0; i < 3; i++) {
        rq_cell got;
        assert_int_equal(rq_cellblock_next(&c, &got, &why), RQ_OK);
        assert_true(got.type == cells[order[i]].type && got.timestamp == cells[order[i]].timestamp);
    }
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(a->action[i]->index, i);
        assert_int_equal(a->action[i]->mutation->associated_cell_count, 1 + i);
        assert_int_equal(a->action[i]->mutation->n_column_value, 0);
    }
    pb__region_action__free_unpacked(a, NULL);
    rq_buf_reset(&block);
    m.cells = &cells[1];
    m.cell_count = 1;
    a = checked_action(&m, &block);
    assert_true(a->n_action == 1 && block.len == 0);
    assert_int_equal(a->action[0]->mutation->column_value[0]->qualifier_value[0]->delete_type, 2);
    pb__region_action__free_unpacked(a, NULL);
    rq_buf_clear(&block);
}

static void a_reversed_scan_matches_protobuf(void **state)
{
    (void)state;
    rq_buf b = {0};
    rq_scan s = {.stop = RQ_SLICE_LIT("a"), .reversed = true, .batch = 3};
    assert_int_equal(rq__put_region(&b, RQ_SLICE_LIT("r")), RQ_OK);
    assert_int_equal(rq__put_scan_open(&b, &s, RQ_SLICE_LIT("m"), false, 100, 30, false), RQ_OK);
    Pb__ScanRequest *r = pb__scan_request__unpack(NULL, b.len, b.ptr);
    assert_non_null(r);
    assert_bytes(r->scan->start_row, "m");
    assert_bytes(r->scan->stop_row, "a");
    assert_true(r->scan->reversed);
    assert_true(r->scan->has_include_start_row && !r->scan->include_start_row);
    assert_int_equal(r->number_of_rows, 100);
    assert_int_equal(r->limit_of_rows, 30);
    assert_int_equal(r->scan->batch_size, 3);
    assert_true(r->client_handles_heartbeats && !r->client_handles_partials);
    pb__scan_request__free_unpacked(r, NULL);
    rq_buf_clear(&b);
}

/* HBASE: RequestConverter.buildScanRequest for a Scan with setNeedCursorResult. */
static void a_scan_that_takes_parts_matches_protobuf(void **state)
{
    (void)state;
    rq_buf b = {0};
    rq_scan s = {.wants_cursors = true};
    assert_int_equal(rq__put_region(&b, RQ_SLICE_LIT("r")), RQ_OK);
    assert_int_equal(rq__put_scan_open(&b, &s, RQ_SLICE_LIT("m"), true, 100, 0, true), RQ_OK);
    Pb__ScanRequest *r = pb__scan_request__unpack(NULL, b.len, b.ptr);
    assert_non_null(r);
    assert_true(r->client_handles_heartbeats && r->client_handles_partials);
    assert_true(r->scan->need_cursor_result);
    pb__scan_request__free_unpacked(r, NULL);
    rq_buf_reset(&b);
    s.counts_metrics = true;
    assert_int_equal(rq__put_scan_next(&b, &s, 7, 3, 100, 20, true), RQ_OK);
    r = pb__scan_request__unpack(NULL, b.len, b.ptr);
    assert_non_null(r);
    assert_true(r->client_handles_heartbeats && r->client_handles_partials && !r->close_scanner);
    assert_true(r->scanner_id == 7 && r->next_call_seq == 3 && r->limit_of_rows == 20);
    assert_true(r->track_scan_metrics);
    pb__scan_request__free_unpacked(r, NULL);
    rq_buf_reset(&b);
    assert_int_equal(rq__put_scan_close(&b, 7), RQ_OK);
    r = pb__scan_request__unpack(NULL, b.len, b.ptr);
    assert_non_null(r);
    assert_true(r->scanner_id == 7 && r->close_scanner && !r->has_next_call_seq);
    assert_true(r->has_number_of_rows && r->number_of_rows == 0);
    pb__scan_request__free_unpacked(r, NULL);
    rq_buf_clear(&b);
}

static void a_heartbeat_has_its_cursor(void **state)
{
    (void)state;
    Pb__ScanResponse m = PB__SCAN_RESPONSE__INIT;
    Pb__Cursor cursor = PB__CURSOR__INIT;
    uint8_t bytes[64];
    rq_scan_view v;
    cursor.has_row = m.has_heartbeat_message = m.heartbeat_message = true;
    cursor.row = (ProtobufCBinaryData){5, (uint8_t *)"row-x"};
    m.cursor = &cursor;
    size_t len = pb__scan_response__pack(&m, bytes);
    assert_int_equal(rq__scan_response_parse(rq_slice_of(bytes, len), &v), RQ_OK);
    assert_true(v.heartbeat && v.is_empty);
    assert_true(rq_slice_eq(v.cursor, RQ_SLICE_LIT("row-x")));
    /* The cursor's nested message is truncated. */
    static const uint8_t cut[] = {0x62, 2, 0x0a, 5};
    assert_int_equal(rq__scan_response_parse(rq_slice_of(cut, sizeof cut), &v), RQ_E_MALFORMED);
}

static void metrics_of_answers_add_up(void **state)
{
    (void)state;
    Pb__ScanResponse m = PB__SCAN_RESPONSE__INIT;
    Pb__ScanMetrics metrics = PB__SCAN_METRICS__INIT;
    Pb__NameInt64Pair pairs[3] = {PB__NAME_INT64_PAIR__INIT, PB__NAME_INT64_PAIR__INIT,
                                  PB__NAME_INT64_PAIR__INIT};
    Pb__NameInt64Pair *list[] = {&pairs[0], &pairs[1], &pairs[2]};
    static const char *const names[] = {"ROWS_SCANNED", "NOT_KNOWN", "ROWS_FILTERED"};
    rq_scan_metrics sum = {0};
    uint8_t bytes[256];
    rq_scan_view v;
    for (int i = 0; i < 3; i++) {
        pairs[i].name = (char *)names[i];
        pairs[i].has_value = true;
        pairs[i].value = 10 + i;
    }
    metrics.metrics = list;
    metrics.n_metrics = 3;
    m.scan_metrics = &metrics;
    m.has_stale = m.stale = true;
    size_t len = pb__scan_response__pack(&m, bytes);
    assert_int_equal(rq__scan_response_parse(rq_slice_of(bytes, len), &v), RQ_OK);
    assert_true(v.stale);
    for (int i = 0; i < 2; i++)
        assert_int_equal(rq__scan_metrics_add(&sum, v.metrics), RQ_OK);
    assert_int_equal(sum.values[RQ_SCAN_ROWS_SCANNED], 20);
    assert_int_equal(sum.values[RQ_SCAN_ROWS_FILTERED], 24);
    assert_int_equal(sum.values[RQ_SCAN_RPC_CALLS], 0);
    assert_int_equal(rq__scan_metrics_add(&sum, rq_slice_of(v.metrics.ptr, 1)), RQ_E_MALFORMED);
}

/* Encodes the frame of a response as a server sends it. */
static rq_buf make_frame(const Pb__ResponseHeader *head, const ProtobufCMessage *message,
                         const char *block)
{
    rq_buf b = {0};
    uint8_t bytes[1024];
    size_t len = pb__response_header__pack(head, bytes);
    assert_int_equal(rq_buf_append_varint(&b, len), RQ_OK);
    assert_int_equal(rq_buf_append(&b, bytes, len), RQ_OK);
    if (message != NULL) {
        len = protobuf_c_message_pack(message, bytes);
        assert_int_equal(rq_buf_append_varint(&b, len), RQ_OK);
        assert_int_equal(rq_buf_append(&b, bytes, len), RQ_OK);
        assert_int_equal(rq_buf_append(&b, block, strlen(block)), RQ_OK);
    }
    return b;
}

static void an_exception_says_its_class_and_whether_to_retry(void **state)
{
    (void)state;
    Pb__ExceptionResponse e = PB__EXCEPTION_RESPONSE__INIT;
    Pb__ResponseHeader head = PB__RESPONSE_HEADER__INIT;
    rq_response_view v;
    e.exception_class_name = "org.apache.hadoop.hbase.NotServingRegionException";
    e.stack_trace = "gone";
    e.has_do_not_retry = true;
    head.has_call_id = true;
    head.call_id = 12;
    head.exception = &e;
    rq_buf b = make_frame(&head, NULL, "");
    assert_int_equal(rq__response_parse(rq_buf_slice(&b), &v), RQ_OK);
    assert_int_equal(v.call_id, 12);
    assert_int_equal(rq__err_of_class(v.exception.java_class), RQ_E_NOT_SERVING_REGION);
    assert_false(v.exception.do_not_retry);
    assert_true(rq_slice_eq(v.exception.text, RQ_SLICE_LIT("gone")));
    rq_buf_clear(&b);
}

static void a_cell_block_must_be_as_long_as_the_header_says(void **state)
{
    (void)state;
    Pb__CellBlockMeta meta = PB__CELL_BLOCK_META__INIT;
    Pb__ResponseHeader head = PB__RESPONSE_HEADER__INIT;
    Pb__GetResponse get = PB__GET_RESPONSE__INIT;
    rq_response_view v;
    head.has_call_id = true;
    head.cell_block_meta = &meta;
    meta.has_length = true;
    meta.length = 5;
    rq_buf b = make_frame(&head, &get.base, "12345");
    assert_int_equal(rq__response_parse(rq_buf_slice(&b), &v), RQ_OK);
    assert_true(rq_slice_eq(v.cells, RQ_SLICE_LIT("12345")));
    b.len--;
    assert_int_equal(rq__response_parse(rq_buf_slice(&b), &v), RQ_E_MALFORMED);
    rq_buf_clear(&b);
}

static void an_inline_cell_is_read_from_the_message(void **state)
{
    (void)state;
    Pb__Cell cell = PB__CELL__INIT;
    Pb__Cell *cells[] = {&cell, &cell};
    Pb__Result result = PB__RESULT__INIT;
    Pb__GetResponse get = PB__GET_RESPONSE__INIT;
    uint8_t bytes[256];
    rq_result_view r;
    rq_cursor none = {0};
    rq_cell got;
    cell.has_row = cell.has_family = cell.has_value = cell.has_timestamp = true;
    cell.row = (ProtobufCBinaryData){3, (uint8_t *)"row"};
    cell.family = (ProtobufCBinaryData){2, (uint8_t *)"cf"};
    cell.value = (ProtobufCBinaryData){1, (uint8_t *)"v"};
    cell.timestamp = 44;
    result.n_cell = 2;
    result.cell = cells;
    get.result = &result;
    size_t len = pb__get_response__pack(&get, bytes);
    assert_int_equal(rq_get_response_parse(rq_slice_of(bytes, len), &r), RQ_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rq_result_next(&r, &none, &got), RQ_OK);
        assert_true(rq_slice_eq(rq_cell_row(&got), RQ_SLICE_LIT("row")));
        assert_int_equal(got.timestamp, 44);
    }
    assert_int_equal(rq_result_next(&r, &none, &got), RQ_E_END);
}

static void rows_of_a_scan_come_packed_or_one_by_one(void **state)
{
    (void)state;
    static const uint8_t packed[] = {0x0a, 3, 1, 0, 2};
    static const uint8_t plain[] = {0x08, 1, 0x08, 0, 0x08, 2};
    const rq_slice both[] = {{packed, sizeof packed}, {plain, sizeof plain}};
    for (int i = 0; i < 2; i++) {
        rq_scan_view v;
        rq_scan_rows rows;
        rq_result_view r;
        assert_int_equal(rq__scan_response_parse(both[i], &v), RQ_OK);
        rq__scan_rows_begin(&v, &rows);
        for (unsigned k = 0; k < 3; k++) {
            assert_int_equal(rq__scan_rows_next(&rows, &r), RQ_OK);
            assert_int_equal(r.count, k == 0 ? 1 : k == 1 ? 0 : 2);
        }
        assert_int_equal(rq__scan_rows_next(&rows, &r), RQ_E_END);
    }
}

static void random_bytes_end_every_reader(void **state)
{
    (void)state;
    rq_random random;
    rq_random_seed(&random, unit_seed());
    for (int i = 0; i < 200000; i++) {
        uint8_t bytes[64];
        size_t len = rq_random_below(&random, sizeof bytes);
        rq_slice s = {bytes, len};
        rq_response_view v;
        rq_region_result region;
        rq_scan_view scan;
        for (size_t k = 0; k < len; k++)
            bytes[k] = (uint8_t)(rq_random_below(&random, 2) == 0 ? rq_random_below(&random, 20)
                                                                  : rq_random_next(&random));
        if (rq__response_parse(s, &v) == RQ_OK) assert_true(v.message.len <= len);
        rq_cursor c = rq_cursor_of(s);
        while (rq__multi_response_next(&c, &region) == RQ_OK)
            assert_true(region.actions.len <= len);
        if (rq__scan_response_parse(s, &scan) == RQ_OK) assert_true(scan.message.len == len);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_get_matches_protobuf),
        cmocka_unit_test(a_conditional_put_with_a_long_value_matches_protobuf),
        cmocka_unit_test(a_checked_mutation_has_its_cells_in_the_message),
        cmocka_unit_test(a_checked_delete_of_a_family_and_more_is_two_deletes),
        cmocka_unit_test(a_reversed_scan_matches_protobuf),
        cmocka_unit_test(a_scan_that_takes_parts_matches_protobuf),
        cmocka_unit_test(a_heartbeat_has_its_cursor),
        cmocka_unit_test(metrics_of_answers_add_up),
        cmocka_unit_test(an_exception_says_its_class_and_whether_to_retry),
        cmocka_unit_test(a_cell_block_must_be_as_long_as_the_header_says),
        cmocka_unit_test(an_inline_cell_is_read_from_the_message),
        cmocka_unit_test(rows_of_a_scan_come_packed_or_one_by_one),
        cmocka_unit_test(random_bytes_end_every_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
