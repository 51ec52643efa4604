/* SPDX-License-Identifier: Apache-2.0 */
/* Cells and stores described by text; see by_example.h. */
#include "by_example.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

rq_family_schema family(const char *name)
{
    return (rq_family_schema){
        .name = rq_slice_cstr(name),
        .max_versions = 5,
        .ttl_s = RQ_TTL_FOREVER,
        .block_bytes = 65536,
        .block_cache = true,
        .bloom = RQ_BLOOM_ROW,
    };
}

fixture *make(const rq_family_schema *families, size_t count)
{
    fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    by_hand_init(&f->world, 1, families, count, RQ_ORDER_DEFAULT, 1 << 20);
    f->ctx.may_block = true;
    return f;
}

void drop(fixture *f)
{
    rq_read_ctx_clear(&f->ctx);
    by_hand_clear(&f->world);
    free(f);
}

void add(fixture *f, const char *row, const char *qualifier, int64_t ts, uint8_t type,
         const char *value)
{
    rq_cell c = {
        .row = (const uint8_t *)row,
        .row_len = (uint16_t)strlen(row),
        .family = f->world.stores[0].schema.name.ptr,
        .family_len = (uint8_t)f->world.stores[0].schema.name.len,
        .qualifier = (const uint8_t *)qualifier,
        .qualifier_len = (uint32_t)strlen(qualifier),
        .timestamp = ts,
        .type = type,
        .seqid = ++f->seqid,
        .value = (const uint8_t *)value,
        .value_len = (uint32_t)strlen(value),
    };
    by_hand_add(&f->world, 0, &c);
}

void put(fixture *f, const char *row, const char *qualifier, int64_t ts, const char *value)
{
    add(f, row, qualifier, ts, RQ_TYPE_PUT, value);
}

void put_ttl(fixture *f, const char *row, const char *qualifier, int64_t ts, int64_t ttl_ms)
{
    uint8_t tag[11] = {0, 9, RQ_TAG_TTL};
    rq_put_be64(tag + 3, (uint64_t)ttl_ms);
    rq_cell c = {
        .row = (const uint8_t *)row,
        .row_len = (uint16_t)strlen(row),
        .family = f->world.stores[0].schema.name.ptr,
        .family_len = (uint8_t)f->world.stores[0].schema.name.len,
        .qualifier = (const uint8_t *)qualifier,
        .qualifier_len = (uint32_t)strlen(qualifier),
        .timestamp = ts,
        .type = RQ_TYPE_PUT,
        .seqid = ++f->seqid,
        .value = (const uint8_t *)"t",
        .value_len = 1,
        .tags = tag,
        .tags_len = sizeof(tag),
    };
    by_hand_add(&f->world, 0, &c);
}

void del(fixture *f, const char *row, const char *qualifier, int64_t ts, uint8_t type)
{
    add(f, row, qualifier, ts, type, "");
}

void flush(fixture *f)
{
    by_hand_rotate(&f->world, 0);
    by_hand_flush(&f->world, 0, by_hand_smallest_read_point(&f->world), NULL);
}

void compact(fixture *f, bool major)
{
    size_t n = f->world.stores[0].version.file_count;
    if (!major) assert_true(n > 2);
    by_hand_compact(&f->world, 0, major ? 0 : 1, major ? n : n - 1,
                    by_hand_smallest_read_point(&f->world), NULL);
}

const char *describe(fixture *f, const rq_cellblock *out)
{
    char *p = f->text;
    char *end = f->text + sizeof(f->text);
    rq_cursor c = rq_cursor_of(rq_buf_slice(&out->bytes));
    rq_cell cell;
    *p = '\0';
    while (rq_cellblock_next(&c, &cell, NULL) == RQ_OK) {
        const char *mark = cell.type == RQ_TYPE_DELETE                  ? "D"
                           : cell.type == RQ_TYPE_DELETE_COLUMN         ? "DC"
                           : cell.type == RQ_TYPE_DELETE_FAMILY         ? "DF"
                           : cell.type == RQ_TYPE_DELETE_FAMILY_VERSION ? "DFV"
                                                                        : "=";
        p += snprintf(p, (size_t)(end - p), "%s%.*s/%.*s:%.*s@%lld%s%.*s", p == f->text ? "" : " ",
                      cell.row_len, cell.row, cell.family_len, cell.family, (int)cell.qualifier_len,
                      cell.qualifier, (long long)cell.timestamp, mark, (int)cell.value_len,
                      cell.value);
    }
    return f->text;
}

rq_scan everything(void)
{
    return (rq_scan){
        .include_start = true,
        .max_versions = INT32_MAX,
        .time_range = RQ_TIME_RANGE_ALL,
        .store_limit = -1,
        .cache_blocks = true,
    };
}

rq_scan get_row(const char *row)
{
    rq_scan s = everything();
    s.is_get = true;
    s.start_row = s.stop_row = rq_slice_cstr(row);
    s.include_stop = true;
    return s;
}

const char *read_all(fixture *f, const rq_scan *scan)
{
    rq_arena arena;
    rq_arena_init(&arena);
    rq_region_scanner *s;
    rq_error why = {0};
    if (rq_region_scanner_open(&f->world.region, scan, 0, &arena, &s, &why) != RQ_OK) {
        snprintf(f->text, sizeof(f->text), "%s", why.message);
        rq_arena_clear(&arena);
        return f->text;
    }
    rq_cellblock out = {0};
    rq_scan_limits limits = {0};
    rq_scan_state state;
    do {
        assert_int_equal(rq_region_scanner_next(s, &limits, &f->ctx, &out, &state, &why), RQ_OK);
    } while (state != RQ_SCAN_DONE);
    rq_region_scanner_close(s);
    rq_read_ctx_clear(&f->ctx);
    describe(f, &out);
    rq_cellblock_clear(&out);
    rq_arena_clear(&arena);
    return f->text;
}

const char *raw(fixture *f)
{
    rq_scan s = everything();
    s.raw = true;
    return read_all(f, &s);
}

const char *all(fixture *f)
{
    rq_scan s = everything();
    return read_all(f, &s);
}
