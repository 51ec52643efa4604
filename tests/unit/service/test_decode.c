/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that no client library sends: rows, times and versions out of range, and cell blocks
 * with fewer or other cells than the message announces. */
#include "../base/unit.h"

#include "service/decode.h"

#include <string.h>

typedef struct made {
    rq_cellblock block;
    rq_cursor cells;
    rq_arena arena;
    rq_mutation mutation;
    rq_error why;
} made;

static void add_cell(made *m, const char *row, uint32_t value_len)
{
    static const uint8_t zeros[4096];
    rq_cell c = {.row = (const uint8_t *)row,
                 .row_len = (uint16_t)strlen(row),
                 .family = (const uint8_t *)"f",
                 .family_len = 1,
                 .qualifier = (const uint8_t *)"q",
                 .qualifier_len = 1,
                 .timestamp = 1,
                 .type = RQ_TYPE_PUT,
                 .value = zeros,
                 .value_len = value_len};
    assert_int_equal(rq_cellblock_append(&m->block, &c), RQ_OK);
}

static void start(made *m)
{
    *m = (made){0};
    rq_arena_init(&m->arena);
}

static void clear(made *m)
{
    rq_cellblock_clear(&m->block);
    rq_arena_clear(&m->arena);
}

/* Decodes a Put on `row` (NULL: the row of its cells) of this many cells of the block. */
static rq_err take(made *m, const char *row, int32_t count, uint64_t cell_max)
{
    Pb__MutationProto p = PB__MUTATION_PROTO__INIT;
    uint64_t nonce;
    p.has_mutate_type = 1;
    p.mutate_type = PB__MUTATION_PROTO__MUTATION_TYPE__PUT;
    p.has_row = row != NULL;
    if (row != NULL) p.row = (ProtobufCBinaryData){strlen(row), (uint8_t *)row};
    p.has_associated_cell_count = 1;
    p.associated_cell_count = count;
    m->why = (rq_error){.code = RQ_OK};
    return rq__decode_mutation(&p, NULL, &m->cells, cell_max, &m->arena, &m->mutation, &nonce,
                               &m->why);
}

static void cells_are_taken_in_order(void **state)
{
    (void)state;
    made m;
    start(&m);
    for (uint32_t i = 0; i < 4; i++)
        add_cell(&m, i < 3 ? "a" : "b", i);
    m.cells = rq_cursor_of(rq_buf_slice(&m.block.bytes));
    assert_int_equal(take(&m, "a", 2, 0), RQ_OK);
    assert_int_equal(m.mutation.cell_count, 2);
    assert_int_equal(m.mutation.cells[1].value_len, 1);
    assert_int_equal(take(&m, NULL, 1, 0), RQ_OK);
    assert_int_equal(m.mutation.cells[0].value_len, 2);
    assert_int_equal(take(&m, NULL, 1, 0), RQ_OK);
    assert_memory_equal(m.mutation.row.ptr, "b", 1);
    assert_int_equal(rq_cursor_left(&m.cells), 0);
    clear(&m);
}

/* Invalid cells in a client's cell block are never reported as damage on disk. */
static void bad_cells_are_no_damage(void **state)
{
    (void)state;
    made m;
    start(&m);
    add_cell(&m, "a", 3);
    size_t refused = 0;
    for (size_t i = 0; i < m.block.bytes.len; i++)
        for (unsigned bit = 0; bit < 8; bit++) {
            m.block.bytes.ptr[i] ^= (uint8_t)(1u << bit);
            m.cells = rq_cursor_of(rq_buf_slice(&m.block.bytes));
            rq_err rc = take(&m, "a", 1, 0);
            assert_int_not_equal(rc, RQ_E_CORRUPT);
            assert_int_not_equal(m.why.code, RQ_E_CORRUPT);
            refused += rc == RQ_E_MALFORMED;
            m.block.bytes.ptr[i] ^= (uint8_t)(1u << bit);
        }
    assert_true(refused > 0);
    assert_true(rq_err_do_not_retry(RQ_E_MALFORMED));
    clear(&m);
}

static void too_few_cells_are_an_error(void **state)
{
    (void)state;
    static const int32_t counts[] = {3, 4, 1000, INT32_MAX};
    made m;
    start(&m);
    add_cell(&m, "a", 0);
    add_cell(&m, "a", 0);
    for (size_t i = 0; i < RQ_ARRAY_LEN(counts); i++) {
        m.cells = rq_cursor_of(rq_buf_slice(&m.block.bytes));
        assert_int_equal(take(&m, "a", counts[i], 0), RQ_E_DO_NOT_RETRY);
    }
    m.cells = rq_cursor_of(rq_slice_of("", 0));
    assert_int_equal(take(&m, "a", 1, 0), RQ_E_DO_NOT_RETRY);
    assert_string_equal(m.why.message, "Cell count of 1 but no cellScanner");
    clear(&m);
}

static void a_cell_of_another_row_fails_only_its_mutation(void **state)
{
    (void)state;
    made m;
    start(&m);
    add_cell(&m, "a", 0);
    add_cell(&m, "x", 0);
    add_cell(&m, "b", 7);
    m.cells = rq_cursor_of(rq_buf_slice(&m.block.bytes));
    assert_int_equal(take(&m, "a", 2, 0), RQ_E_WRONG_ROW);
    assert_int_equal(take(&m, "b", 1, 0), RQ_OK); /* the next put finds its own cell */
    assert_int_equal(m.mutation.cells[0].value_len, 7);
    clear(&m);
}

static void the_size_of_a_cell_counts_to_the_byte(void **state)
{
    (void)state;
    made m;
    start(&m);
    add_cell(&m, "a", 1000);
    size_t size = m.block.bytes.len;
    for (int more = -1; more <= 1; more++) {
        m.cells = rq_cursor_of(rq_buf_slice(&m.block.bytes));
        assert_int_equal(take(&m, "a", 1, size - (size_t)more),
                         more > 0 ? RQ_E_DO_NOT_RETRY : RQ_OK);
    }
    clear(&m);
}

/* Decodes a put of one cell with these tags, whose TTL, `ttl`, becomes a tag, too. */
static rq_err decode_with_ttl(made *m, uint8_t *tags, size_t len, uint8_t ttl[static 8])
{
    static uint8_t q[1] = {'q'}, row[1] = {'a'}, family[1] = {'f'};
    uint64_t nonce;
    Pb__MutationProto__ColumnValue__QualifierValue value =
        PB__MUTATION_PROTO__COLUMN_VALUE__QUALIFIER_VALUE__INIT;
    Pb__MutationProto__ColumnValue__QualifierValue *values[] = {&value};
    value.has_qualifier = value.has_value = value.has_tags = 1;
    value.qualifier = value.value = (ProtobufCBinaryData){sizeof q, q};
    value.tags = (ProtobufCBinaryData){len, tags};
    Pb__MutationProto__ColumnValue column = PB__MUTATION_PROTO__COLUMN_VALUE__INIT;
    Pb__MutationProto__ColumnValue *columns[] = {&column};
    column.family = (ProtobufCBinaryData){sizeof family, family};
    column.n_qualifier_value = 1;
    column.qualifier_value = values;
    Pb__NameBytesPair pair = PB__NAME_BYTES_PAIR__INIT;
    Pb__NameBytesPair *pairs[] = {&pair};
    pair.name = (char *)"_ttl";
    pair.has_value = 1;
    pair.value = (ProtobufCBinaryData){8, ttl};
    Pb__MutationProto p = PB__MUTATION_PROTO__INIT;
    p.has_mutate_type = p.has_row = 1;
    p.mutate_type = PB__MUTATION_PROTO__MUTATION_TYPE__PUT;
    p.row = (ProtobufCBinaryData){sizeof row, row};
    p.n_column_value = 1;
    p.column_value = columns;
    p.n_attribute = 1;
    p.attribute = pairs;
    return rq__decode_mutation(&p, NULL, &m->cells, 0, &m->arena, &m->mutation, &nonce, &m->why);
}

static void too_many_tags_are_refused_in_hbases_words(void **state)
{
    (void)state;
    enum { LEN = RQ_TAGS_LEN_MAX - 10 };
    static uint8_t many[LEN] = {(LEN - 2) >> 8, (LEN - 2) & 0xff, 200}; /* one tag */
    static uint8_t less[LEN - 1] = {(LEN - 3) >> 8, (LEN - 3) & 0xff, 200};
    uint8_t ttl[8] = {0, 0, 0, 0, 0, 0, 0, 5};
    made m;
    start(&m);
    assert_int_equal(decode_with_ttl(&m, many, LEN, ttl), RQ_E_DO_NOT_RETRY);
    assert_string_equal(m.why.message, "tagslength 65536 > 65535");
    assert_int_equal(decode_with_ttl(&m, less, LEN - 1, ttl), RQ_OK);
    assert_int_equal(m.mutation.cells[0].tags_len, RQ_TAGS_LEN_MAX);
    clear(&m);
}

/* The mutation's TTL counts, wherever the cell has one of its own. HBASE: TagUtil.carryForwardTTLTag. */
static void a_ttl_replaces_that_of_the_cell(void **state)
{
    (void)state;
    uint8_t ttl[8] = {0, 0, 0, 0, 0, 0, 0, 5};
    uint8_t tags[] = {0, 2, 200, 'a', 0, 9, RQ_TAG_TTL, 9,   9,   9,
                      9, 9, 9,   9,   9, 0, 3,          201, 'b', 'c'};
    static const uint8_t expected[] = {0, 2,          200, 'a', 0, 3, 201, 'b', 'c', 0,
                                       9, RQ_TAG_TTL, 0,   0,   0, 0, 0,   0,   0,   5};
    made m;
    start(&m);
    assert_int_equal(decode_with_ttl(&m, tags, sizeof tags, ttl), RQ_OK);
    assert_int_equal(m.mutation.cells[0].tags_len, sizeof expected);
    assert_memory_equal(m.mutation.cells[0].tags, expected, sizeof expected);
    assert_int_equal(decode_with_ttl(&m, tags + 4, 11, ttl), RQ_OK); /* it has no other tag */
    assert_int_equal(m.mutation.cells[0].tags_len, 11);
    assert_memory_equal(m.mutation.cells[0].tags, expected + 9, 11);
    clear(&m);
}

static rq_err get(made *m, const Pb__Get *g)
{
    rq_scan scan;
    m->why = (rq_error){.code = RQ_OK};
    return rq__decode_get(g, NULL, &m->arena, &scan, &m->why);
}

static void rows_versions_and_times_of_a_get(void **state)
{
    (void)state;
    static uint8_t row[40000];
    made m;
    Pb__TimeRange time = PB__TIME_RANGE__INIT;
    start(&m);
    Pb__Get g = PB__GET__INIT;
    assert_int_equal(get(&m, &g), RQ_E_IOEXCEPTION);
    assert_string_equal(m.why.message, "Row length is 0");
    g.row = (ProtobufCBinaryData){RQ_ROW_LEN_MAX, row};
    assert_int_equal(get(&m, &g), RQ_OK);
    g.row.len++;
    assert_int_equal(get(&m, &g), RQ_E_IOEXCEPTION);
    g.row.len = 1;
    g.has_max_versions = 1;
    for (uint32_t versions = 0; versions < 2; versions++) {
        g.max_versions = versions == 0 ? 0 : UINT32_MAX;
        assert_int_equal(get(&m, &g), RQ_E_IOEXCEPTION);
    }
    g.max_versions = INT32_MAX;
    assert_int_equal(get(&m, &g), RQ_OK);
    g.time_range = &time;
    assert_int_equal(get(&m, &g), RQ_OK);
    time.has_from = time.has_to = 1;
    time.from = 2;
    time.to = 1;
    assert_int_equal(get(&m, &g), RQ_E_IOEXCEPTION);
    assert_string_equal(m.why.message, "maxStamp is smaller than minStamp");
    time.to = UINT64_MAX; /* -1 */
    assert_int_equal(get(&m, &g), RQ_E_IOEXCEPTION);
    clear(&m);
}

/* HBase's client sends 1, the enum's ordinal, for READ_UNCOMMITTED. */
static void an_isolation_level_is_its_ordinal(void **state)
{
    (void)state;
    static uint8_t row[] = {'r'}, level[1];
    made m;
    start(&m);
    Pb__NameBytesPair a = PB__NAME_BYTES_PAIR__INIT, *list[] = {&a};
    a.name = (char *)(uintptr_t) "_isolationlevel_";
    a.has_value = 1;
    a.value = (ProtobufCBinaryData){1, level};
    Pb__Get g = PB__GET__INIT;
    g.row = (ProtobufCBinaryData){1, row};
    g.n_attribute = 1;
    g.attribute = list;
    for (level[0] = 0; level[0] < 2; level[0]++) {
        rq_scan scan;
        assert_int_equal(rq__decode_get(&g, NULL, &m.arena, &scan, &m.why), RQ_OK);
        assert_int_equal(scan.read_uncommitted, level[0] == 1);
    }
    clear(&m);
}

/* protobuf-c passes on numbers outside an enum; Java treats them as absent. */
static void unknown_enum_numbers_count_as_absent(void **state)
{
    (void)state;
    static uint8_t value[] = {0x0a, 0x03, 0x0a, 0x01, 'v'};
    static const int numbers[] = {-1, 5, 7, 1 << 20};
    made m;
    uint64_t nonce;
    Pb__MutationProto p = PB__MUTATION_PROTO__INIT;
    Pb__Comparator comparator = PB__COMPARATOR__INIT;
    Pb__Condition c = PB__CONDITION__INIT;
    rq_condition condition;
    start(&m);
    add_cell(&m, "a", 0);
    p.has_mutate_type = p.has_associated_cell_count = p.has_durability = 1;
    p.mutate_type = PB__MUTATION_PROTO__MUTATION_TYPE__PUT;
    p.associated_cell_count = 1;
    comparator.name = (char *)(uintptr_t) "org.apache.hadoop.hbase.filter.BinaryComparator";
    comparator.has_serialized_comparator = c.has_compare_type = 1;
    comparator.serialized_comparator = (ProtobufCBinaryData){sizeof value, value};
    c.row = (ProtobufCBinaryData){1, (uint8_t *)(uintptr_t) "a"};
    c.comparator = &comparator;
    for (size_t i = 0; i < RQ_ARRAY_LEN(numbers); i++) {
        m.cells = rq_cursor_of(rq_buf_slice(&m.block.bytes));
        p.durability = (Pb__MutationProto__Durability)numbers[i];
        assert_int_equal(
            rq__decode_mutation(&p, NULL, &m.cells, 0, &m.arena, &m.mutation, &nonce, &m.why),
            RQ_OK);
        assert_int_equal(m.mutation.durability, RQ_USE_DEFAULT);
        c.compare_type = (Pb__CompareType)(numbers[i] == 5 ? 8 : numbers[i]);
        assert_int_equal(rq__decode_condition(&c, &m.arena, &condition, &m.why), RQ_OK);
        assert_int_equal(condition.op, RQ_LESS);
    }
    /* The type's protobuf default is APPEND. */
    for (size_t i = 0; i < RQ_ARRAY_LEN(numbers); i++) {
        m.cells = rq_cursor_of(rq_buf_slice(&m.block.bytes));
        p.mutate_type = (Pb__MutationProto__MutationType)numbers[i];
        assert_int_equal(rq__mutation_type(&p), RQ_MUTATE_APPEND);
        assert_int_equal(
            rq__decode_mutation(&p, NULL, &m.cells, 0, &m.arena, &m.mutation, &nonce, &m.why),
            RQ_OK);
        assert_int_equal(m.mutation.type, RQ_MUTATE_APPEND);
    }
    clear(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_are_taken_in_order),
        cmocka_unit_test(bad_cells_are_no_damage),
        cmocka_unit_test(too_few_cells_are_an_error),
        cmocka_unit_test(a_cell_of_another_row_fails_only_its_mutation),
        cmocka_unit_test(the_size_of_a_cell_counts_to_the_byte),
        cmocka_unit_test(too_many_tags_are_refused_in_hbases_words),
        cmocka_unit_test(a_ttl_replaces_that_of_the_cell),
        cmocka_unit_test(rows_versions_and_times_of_a_get),
        cmocka_unit_test(an_isolation_level_is_its_ordinal),
        cmocka_unit_test(unknown_enum_numbers_count_as_absent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
