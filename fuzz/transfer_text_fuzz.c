/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of TSV, CSV and JSON, and a manifest of hashes. The first byte selects the format (low two bits) and
 * whether escapes are decoded and empty fields skipped (next bits). */
#include "transfer/columns.h"
#include "transfer/hashdir.h"
#include "transfer/json.h"
#include "transfer/lines.h"
#include "vfs/memory.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TSV, CSV, JSON, MANIFEST };

static uint64_t sum_bytes(rq_slice s)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < s.len; i++)
        sum += s.ptr[i];
    return sum;
}

static uint64_t take_json(rq_slice text, rq__json_row *row)
{
    rq_err rc;
    uint64_t sum = 0;
    if (rq__json_parse(text, 7, row, &rc) != NULL || rc != RQ_OK) return 0;
    RQ_ASSERT(row->count > 0);
    for (size_t i = 0; i < row->count; i++) {
        RQ_ASSERT(row->cells[i].row_len > 0 && row->cells[i].family_len > 0);
        sum += sum_bytes(rq_cell_row(&row->cells[i])) + sum_bytes(rq_cell_value(&row->cells[i]));
    }
    return sum;
}

static uint64_t take_line(const rq__columns *c, rq_slice text, rq__line *l)
{
    rq_err rc;
    uint64_t sum = 0;
    if (rq__line_parse(c, text, l, &rc) != NULL || rc != RQ_OK) return 0;
    RQ_ASSERT(l->count <= c->count && l->row.len > 0 && l->ttl_ms >= 0);
    for (size_t i = 0; i < l->count; i++)
        sum += sum_bytes(l->fields[i]);
    return sum;
}

static void take_lines(rq_vfs *v, int kind, const rq__columns *c)
{
    rq__lines lines;
    rq__line line = {0};
    rq__json_row row = {0};
    rq_slice text;
    uint64_t sum = 0;
    rq_err rc = rq__lines_open(v, "f", kind == CSV, &lines, NULL);
    if (rc == RQ_OK) rc = rq__line_init(c, &line);
    if (rc == RQ_OK && kind != CSV) rc = rq__lines_seek(&lines, 3, NULL);
    while (rc == RQ_OK && (rc = rq__lines_next(&lines, UINT64_MAX, &text, NULL)) == RQ_OK)
        sum += kind == JSON ? take_json(text, &row) : take_line(c, text, &line);
    RQ_ASSERT(rc == RQ_E_END);
    rq__lines_close(&lines);
    rq__line_clear(&line);
    rq__json_row_clear(&row);
    if (sum == UINT64_MAX) abort(); /* keeps the compiler from omitting the reads above */
}

static void take_manifest(rq_slice text)
{
    rq_arena arena = {0};
    rq__hash_manifest m;
    (void)!rq__hash_manifest_parse(text, &arena, &m, NULL);
    rq_arena_clear(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rq_vfs *v;
    rq__columns columns;
    if (size == 0) return 0;
    int kind = data[0] & 3;
    rq_slice text = rq_slice_of(data + 1, size - 1);
    const rq_text_format format = {
        .columns = "HBASE_ROW_KEY,HBASE_TS_KEY,cf:a,HBASE_CELL_TTL,HBASE_ATTRIBUTES_KEY,g",
        .separator = kind == CSV ? ',' : '\t',
        .has_quotes = kind == CSV,
        .has_escapes = (data[0] & 4) != 0,
        .skips_empty = (data[0] & 8) != 0};
    if (kind == MANIFEST) {
        take_manifest(text);
        return 0;
    }
    if (rq_vfs_memory_new(&v) != RQ_OK) return 0;
    rq_err rc = rq__columns_parse(&format, &columns, NULL);
    RQ_ASSERT(rc == RQ_OK);
    if (rq_vfs_write_new_file(v, "f", text, NULL) == RQ_OK) take_lines(v, kind, &columns);
    rq__columns_clear(&columns);
    rq_vfs_free(v);
    return 0;
}
