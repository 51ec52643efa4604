/* SPDX-License-Identifier: Apache-2.0 */
#include "scan_fixture.h"

#include "filter/language.h"

scan_fixture *scan_fixture_new(int rows, int columns)
{
    rq_family_schema families[2] = {
        {.name = RQ_SLICE_LIT("f"), .max_versions = 3, .ttl_s = RQ_TTL_FOREVER, .block_bytes = 256},
        {.name = RQ_SLICE_LIT("g"), .max_versions = 3, .ttl_s = RQ_TTL_FOREVER, .block_bytes = 256},
    };
    scan_fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    by_hand_init(&f->world, 1, families, 2, RQ_ORDER_DEFAULT, 1 << 20);
    f->ctx.may_block = true;
    f->scan = (rq_scan){
        .include_start = true,
        .max_versions = 1,
        .time_range = RQ_TIME_RANGE_ALL,
        .store_limit = -1,
        .cache_blocks = true,
    };
    for (int r = 1; r <= rows; r++) {
        for (int i = 0; i < 2 * columns; i++) {
            char row[8];
            char column[2] = {(char)('a' + i % columns), 0};
            int len = snprintf(row, sizeof(row), "r%d", r);
            rq_cell c = {
                .row = (const uint8_t *)row,
                .row_len = (uint16_t)len,
                .family = (const uint8_t *)(i < columns ? "f" : "g"),
                .family_len = 1,
                .qualifier = (const uint8_t *)column,
                .qualifier_len = 1,
                .timestamp = 1,
                .type = RQ_TYPE_PUT,
                .seqid = ++f->seqid,
                .value = (const uint8_t *)column,
                .value_len = 1,
            };
            by_hand_add(&f->world, i < columns ? 0 : 1, &c);
        }
    }
    return f;
}

void scan_fixture_flush(scan_fixture *f)
{
    for (size_t i = 0; i < 2; i++) {
        by_hand_rotate(&f->world, i);
        by_hand_flush(&f->world, i, by_hand_smallest_read_point(&f->world), NULL);
    }
}

rq_err scan_fixture_open(scan_fixture *f)
{
    return rq_region_scanner_open(&f->world.region, &f->scan, 0, &f->arena, &f->scanner, &f->why);
}

void scan_fixture_close(scan_fixture *f)
{
    rq_region_scanner_close(f->scanner);
    f->scanner = NULL;
    rq_cellblock_reset(&f->out);
    rq_arena_reset(&f->arena);
}

void scan_fixture_free(scan_fixture *f)
{
    scan_fixture_close(f);
    rq_cellblock_clear(&f->out);
    rq_read_ctx_clear(&f->ctx);
    rq_arena_clear(&f->arena);
    by_hand_clear(&f->world);
    free(f);
}

const char *scan_fixture_next(scan_fixture *f)
{
    rq_cellblock_reset(&f->out);
    rq_err rc =
        rq_region_scanner_next(f->scanner, &f->limits, &f->ctx, &f->out, &f->state, &f->why);
    assert_int_equal(rc, RQ_OK);
    char *p = f->text;
    char *end = f->text + sizeof(f->text);
    rq_cursor c = rq_cursor_of(rq_buf_slice(&f->out.bytes));
    rq_cell cell;
    *p = '\0';
    while (rq_cellblock_next(&c, &cell, NULL) == RQ_OK) {
        if (p == f->text) p += snprintf(p, (size_t)(end - p), "%.*s", cell.row_len, cell.row);
        p += snprintf(p, (size_t)(end - p), " %.*s:%.*s", cell.family_len, cell.family,
                      (int)cell.qualifier_len, cell.qualifier);
    }
    return f->text;
}

static void append_field(rq_buf *b, unsigned field, const char *bytes, size_t len)
{
    assert_int_equal(rq_buf_append_varint(b, field << 3 | 2), RQ_OK);
    assert_int_equal(rq_buf_append_varint(b, len), RQ_OK);
    assert_int_equal(rq_buf_append(b, bytes, len), RQ_OK);
}

static void append_number(rq_buf *b, unsigned field, uint64_t n)
{
    assert_int_equal(rq_buf_append_varint(b, field << 3), RQ_OK);
    assert_int_equal(rq_buf_append_varint(b, n), RQ_OK);
}

static void set_filter(scan_fixture *f, const char *name, rq_buf *pb)
{
    char java[128];
    snprintf(java, sizeof(java), "org.apache.hadoop.hbase.filter.%s", name);
    rq_err rc =
        rq_filter_parse(rq_slice_cstr(java), rq_buf_slice(pb), &f->arena, &f->scan.filter, &f->why);
    rq_buf_clear(pb);
    assert_int_equal(rc, RQ_OK);
}

void scan_set_number_filter(scan_fixture *f, const char *name, uint64_t n)
{
    rq_buf pb = {0};
    append_number(&pb, 1, n);
    set_filter(f, name, &pb);
}

void scan_set_value_filter(scan_fixture *f, const char *family, const char *value)
{
    rq_buf array = {0};
    rq_buf binary = {0};
    rq_buf comparator = {0};
    rq_buf pb = {0};
    append_field(&array, 1, value, strlen(value));
    append_field(&binary, 1, (const char *)array.ptr, array.len);
    const char *name = "org.apache.hadoop.hbase.filter.BinaryComparator";
    append_field(&comparator, 1, name, strlen(name));
    append_field(&comparator, 2, (const char *)binary.ptr, binary.len);
    append_field(&pb, 1, family, 1);
    append_field(&pb, 2, "a", 1);
    append_number(&pb, 3, 2); /* EQUAL */
    append_field(&pb, 4, (const char *)comparator.ptr, comparator.len);
    append_number(&pb, 5, 1); /* rows without the column do not pass */
    append_number(&pb, 6, 1); /* the newest version decides */
    set_filter(f, "SingleColumnValueFilter", &pb);
    rq_buf_clear(&array);
    rq_buf_clear(&binary);
    rq_buf_clear(&comparator);
}

void scan_set_language_filter(scan_fixture *f, const char *text)
{
    rq_slice class_name;
    rq_slice bytes;
    assert_int_equal(
        rq_filter_language_compile(rq_slice_cstr(text), &f->arena, &class_name, &bytes, &f->why),
        RQ_OK);
    assert_int_equal(rq_filter_parse(class_name, bytes, &f->arena, &f->scan.filter, &f->why),
                     RQ_OK);
}

void scan_widen(scan_fixture *f, int cells, const rq_slice value)
{
    for (int i = 0; i < cells; i++) {
        char q[8];
        int len = snprintf(q, sizeof(q), "q%04d", i);
        rq_cell c = {.row = (const uint8_t *)"r1",
                     .row_len = 2,
                     .family = (const uint8_t *)"g",
                     .family_len = 1,
                     .qualifier = (const uint8_t *)q,
                     .qualifier_len = (uint32_t)len,
                     .timestamp = 1,
                     .type = RQ_TYPE_PUT,
                     .value = value.ptr,
                     .value_len = (uint32_t)value.len,
                     .seqid = ++f->seqid};
        by_hand_add(&f->world, 1, &c);
    }
}

rq_err scan_next_in_slices(scan_fixture *f, unsigned *ret_yields)
{
    f->limits.yield_ns = 1;
    *ret_yields = 0;
    rq_err rc;
    while ((rc = rq_region_scanner_next(f->scanner, &f->limits, &f->ctx, &f->out, &f->state,
                                        &f->why)) == RQ_E_AGAIN) {
        assert_null(f->ctx.need.reader);
        if (++*ret_yields % 3 == 0) rq_region_scanner_suspend(f->scanner);
    }
    return rc;
}
