/* SPDX-License-Identifier: Apache-2.0 */
/* A filter of untrusted bytes: simple class name, NUL, message. Valid filters run over a few rows
 * in both directions, as in a scanner. */
#include "filter/filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PACKAGE "org.apache.hadoop.hbase.filter."

static rq_cell cell_of(const char *row, const char *family, const char *qualifier, int64_t ts,
                       const char *value)
{
    rq_cell c = rq_cell_first_on_column_ts(rq_slice_cstr(row), rq_slice_cstr(family),
                                           rq_slice_cstr(qualifier), ts);
    c.type = RQ_TYPE_PUT;
    c.value = (const uint8_t *)value;
    c.value_len = (uint32_t)strlen(value);
    return c;
}

static rq_err show_row(rq_filter *f, const rq_cell *cells, size_t count)
{
    bool out;
    RQ_TRY(rq_filter_row_key(f, rq_cell_row(&cells[0]), &out, NULL));
    bool keep[8];
    rq_cell kept[8];
    size_t n = 0;
    for (size_t i = 0; i < count && !out; i++) {
        rq_filter_code code;
        RQ_TRY(rq_filter_cell(f, &cells[i], &code, NULL));
        RQ_ASSERT(code <= RQ_FILTER_INCLUDE_AND_SEEK_NEXT_ROW);
        rq_cell hint;
        bool has;
        if (code == RQ_FILTER_SEEK_NEXT_USING_HINT) {
            RQ_TRY(rq_filter_next_cell_hint(f, &cells[i], &hint, &has));
            if (has) (void)rq_cell_compare(RQ_ORDER_DEFAULT, &hint, &cells[i]);
        } else if (code != RQ_FILTER_SKIP && code != RQ_FILTER_NEXT_COL &&
                   code != RQ_FILTER_NEXT_ROW) {
            keep[n] = true;
            rq_filter_transform_cell(f, &cells[i], &kept[n++]);
        }
    }
    if (rq_filter_has_filter_row(f))
        (void)rq_filter_row_done(f, kept, n, keep);
    else
        (void)rq_filter_row(f);
    rq_filter_reset(f);
    return RQ_OK;
}

static void drive(rq_filter *f, bool reversed)
{
    const rq_cell cells[] = {
        cell_of("a", "f", "a", 3, "1"),           cell_of("a", "f", "ab", 2, "Value"),
        cell_of("a", "f", "ab", 1, "\0\0\0\1\5"), cell_of("ab", "f", "", 5, ""),
        cell_of("ab", "g", "b", 4, "12345678"),   cell_of("b\xc3\xa4", "f", "b", 2, "\xe4\xff a"),
    };
    static const size_t rows[][2] = {{0, 3}, {3, 2}, {5, 1}};
    rq_filter_set_reversed(f, reversed);
    (void)rq_filter_is_family_essential(f, RQ_SLICE_LIT("f"));
    for (size_t i = 0; i < RQ_ARRAY_LEN(rows) && !rq_filter_all_remaining(f); i++) {
        const size_t *r = rows[reversed ? RQ_ARRAY_LEN(rows) - 1 - i : i];
        if (show_row(f, &cells[r[0]], r[1]) != RQ_OK) return;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *nul = size == 0 ? NULL : memchr(data, 0, size);
    if (nul == NULL) return 0;
    for (int reversed = 0; reversed < 2; reversed++) {
        rq_arena arena = {0};
        rq_error why = {0};
        const char *name = rq_arena_printf(&arena, PACKAGE "%s", (const char *)data);
        rq_slice message = rq_slice_of(nul + 1, (size_t)(data + size - nul - 1));
        rq_filter *f;
        if (name != NULL &&
            rq_filter_parse(rq_slice_cstr(name), message, &arena, &f, &why) == RQ_OK)
            drive(f, reversed != 0);
        rq_arena_clear(&arena);
    }
    return 0;
}
