/* SPDX-License-Identifier: Apache-2.0 */
/* The world's rows, read and written without RPC services, through the catalog's lookup. */
#include "world.h"

#include "hfile/read_ctx.h"
#include "region/region_scanner.h"

static rq_err region_of(world *w, const char *table, rq_slice row, rq_region **ret)
{
    rq_epoch_member m = {0};
    rq_epoch_pin(w->env->epoch, &m);
    const rq_catalog_region *r;
    w->why = (rq_error){0};
    rq_err rc = rq_catalog_locate(w->catalog, rq_slice_cstr(table), row, &r, &w->why);
    if (rc == RQ_OK && r->region == NULL) rc = RQ_E_NOT_SERVING_REGION;
    if (rc == RQ_OK) *ret = rq_region_ref(r->region);
    rq_epoch_unpin(w->env->epoch, &m);
    return rc;
}

rq_err world_write(world *w, const char *table, rq_mutation_type type, const rq_cell *cell)
{
    rq_region *r;
    rq_err rc = region_of(w, table, rq_cell_row(cell), &r);
    if (rc != RQ_OK) return rc;
    rq_cell own = *cell;
    rq_mutation m = {.type = type, .row = rq_cell_row(cell), .cells = &own, .cell_count = 1};
    m.trusted = w->trusted;
    m.time_range = RQ_TIME_RANGE_ALL;
    rq_row_op op = {.mutations = &m, .mutation_count = 1};
    rc = rq_region_write_sync(r, &op, 1, &w->why);
    rq_cellblock_clear(&op.result);
    rq_region_unref(r);
    return rc;
}

static rq_cell cell_at(const char *row, const char *family)
{
    return (rq_cell){
        .row = (const uint8_t *)row,
        .row_len = (uint16_t)strlen(row),
        .family = (const uint8_t *)family,
        .family_len = (uint8_t)strlen(family),
        .timestamp = RQ_TIMESTAMP_LATEST,
    };
}

rq_err world_put_cell(world *w, const char *table, const char *row, const char *family,
                      const char *qualifier, rq_slice value)
{
    rq_cell cell = cell_at(row, family);
    cell.qualifier = (const uint8_t *)qualifier;
    cell.qualifier_len = (uint32_t)strlen(qualifier);
    cell.value = value.ptr;
    cell.value_len = (uint32_t)value.len;
    cell.type = RQ_TYPE_PUT;
    return world_write(w, table, RQ_MUTATE_PUT, &cell);
}

rq_err world_put(world *w, const char *table, const char *row, const char *family)
{
    return world_put_cell(w, table, row, family, "q", RQ_SLICE_LIT("value"));
}

rq_err world_delete(world *w, const char *table, const char *row, const char *family)
{
    rq_cell cell = cell_at(row, family);
    cell.type = RQ_TYPE_DELETE_FAMILY;
    return world_write(w, table, RQ_MUTATE_DELETE, &cell);
}

/* Reads the region, and passes each row's cells to `take`. */
static rq_err scan_region(world *w, rq_region *r, const rq_scan *scan,
                          void (*take)(void *ctx, const rq_cellblock *row), void *ctx)
{
    rq_arena a;
    rq_arena_init(&a);
    rq_cellblock out = {0};
    rq_read_ctx read = {.may_block = true};
    rq_scan_limits limits = {0};
    rq_scan_state state = RQ_SCAN_MORE;
    rq_region_scanner *s = NULL;
    rq_epoch_member m = {0};
    rq_epoch_pin(w->env->epoch, &m);
    rq_err rc = rq_region_scanner_open(r, scan, 0, &a, &s, &w->why);
    while (rc == RQ_OK && state != RQ_SCAN_DONE) {
        rq_cellblock_reset(&out);
        rc = rq_region_scanner_next(s, &limits, &read, &out, &state, &w->why);
        if (rc == RQ_E_AGAIN) {
            rc = rq_read_ctx_fulfil(&read, &w->why);
            continue;
        }
        if (rc == RQ_OK && out.count > 0) take(ctx, &out);
    }
    rq_region_scanner_close(s);
    rq_read_ctx_clear(&read);
    rq_epoch_unpin(w->env->epoch, &m);
    rq_arena_clear(&a);
    rq_cellblock_clear(&out);
    return rc;
}

static void count_row(void *ctx, const rq_cellblock *row)
{
    (void)row;
    ++*(size_t *)ctx;
}

rq_err world_get(world *w, const char *table, const char *row, const char *family)
{
    rq_region *r;
    rq_err rc = region_of(w, table, rq_slice_cstr(row), &r);
    if (rc != RQ_OK) return rc;
    rq_scan_family f = {.family = rq_slice_cstr(family)};
    rq_scan scan = rq_scan_of_row(rq_slice_cstr(row));
    scan.cache_blocks = false;
    scan.families = &f;
    scan.family_count = 1;
    size_t found = 0;
    rc = scan_region(w, r, &scan, count_row, &found);
    rq_region_unref(r);
    return rc == RQ_OK && found == 0 ? RQ_E_NOT_FOUND : rc;
}

static void note_row(void *ctx, const rq_cellblock *row)
{
    rq_cell cell;
    rq_cursor c = rq_cursor_of(rq_buf_slice(&row->bytes));
    assert_int_equal(rq_cellblock_next(&c, &cell, NULL), RQ_OK);
    (void)!rq_buf_printf(ctx, "%.*s ", (int)cell.row_len, (const char *)cell.row);
}

static rq_err read_rows(world *w, const char *table, const rq_scan *scan,
                        void (*take)(void *ctx, const rq_cellblock *row), void *ctx)
{
    rq_region *list[64];
    size_t count = 0;
    rq_err rc = RQ_OK;
    rq_epoch_member m = {0};
    rq_epoch_pin(w->env->epoch, &m);
    const rq_catalog_table *t = rq_catalog_table_find(w->catalog, rq_slice_cstr(table));
    for (size_t i = 0; t != NULL && i < t->region_count && i < 64; i++)
        if (rq_catalog_table_region(t, i)->region != NULL)
            list[count++] = rq_region_ref(rq_catalog_table_region(t, i)->region);
    rq_epoch_unpin(w->env->epoch, &m);
    for (size_t i = 0; i < count; i++) {
        if (rc == RQ_OK) rc = scan_region(w, list[i], scan, take, ctx);
        rq_region_unref(list[i]);
    }
    return rc;
}

static char *text_of(rq_buf *out)
{
    char *text = strndup(out->len == 0 ? "" : (const char *)out->ptr, out->len);
    rq_buf_clear(out);
    return text;
}

static const rq_scan whole = {
    .include_start = true,
    .max_versions = 1,
    .time_range = RQ_TIME_RANGE_ALL,
    .store_limit = -1,
};

char *world_rows(world *w, const char *table)
{
    rq_buf out = {0};
    if (read_rows(w, table, &whole, note_row, &out) != RQ_OK) rq_buf_reset(&out);
    return text_of(&out);
}

static void note_value(void *ctx, const rq_cellblock *row)
{
    rq_cell cell;
    rq_cursor c = rq_cursor_of(rq_buf_slice(&row->bytes));
    assert_int_equal(rq_cellblock_next(&c, &cell, NULL), RQ_OK);
    (void)!rq_buf_printf(ctx, "%.*s ", (int)cell.value_len, (const char *)cell.value);
}

char *world_values(world *w, const char *table, const char *family, const char *qualifier)
{
    rq_buf out = {0};
    rq_slice column = rq_slice_cstr(qualifier);
    rq_scan_family f = {
        .family = rq_slice_cstr(family), .qualifiers = &column, .qualifier_count = 1};
    rq_scan scan = whole;
    scan.families = &f;
    scan.family_count = 1;
    assert_int_equal(read_rows(w, table, &scan, note_value, &out), RQ_OK);
    return text_of(&out);
}
