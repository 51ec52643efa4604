/* SPDX-License-Identifier: Apache-2.0 */
/* Random histories, read back: puts and all four kinds of deletes over few rows, columns and
 * timestamps, in stores of one to three families with random attributes, flushed and compacted at
 * random; gets and scans with random options, filters and limits, suspended between
 * calls, with page-cache misses at random. Every flush, compaction and row is compared with the
 * model.
 *
 * Some runs keep every version and marker; in those, versions of the stores change while scanners
 * are inside rows. In the others they change only between rows, where the model reads again (a
 * compaction may legally change what an old read sees, as in HBase).
 *
 * READ_SEED=n replays one run, READ_RUNS=n makes n. With the argument "many", "unfiltered" or
 * "reversed" the runs are of the other kinds (read_run.h). */
#include "read_run.h"
#include "../seeds.h"

#include "store/row_get.h"

#include <stdio.h>
#include <stdlib.h>

/* --- scans ---------------------------------------------------------------------------------- */

typedef struct reader {
    rq_arena arena;
    rq_scan scan;
    rq_scan for_model; /* the same scan with a separate filter */
    rq_scan_family wanted[MODEL_FAMILIES_MAX];
    rq_slice qualifiers[MODEL_FAMILIES_MAX][8];
    filter_bytes filter;
    rq_scan_limits limits;
    bool in_pieces; /* limits differ between calls */
    rq_region_scanner *scanner;
    model_scan model;
    rq_read_ctx ctx;
    rq_cellblock out;
    cell_set expected; /* the model's row */
    cell_set got;      /* cells of this row returned so far */
    bool has_expected;
    bool model_done;
} reader;

static rq_time_range random_range(run *r)
{
    if (r->new_versions || chance(r, 60)) return RQ_TIME_RANGE_ALL;
    int64_t a = run_ts(r);
    int64_t b = run_ts(r);
    rq_time_range range = {a < b ? a : b, (a < b ? b : a) + 1};
    if (chance(r, 30)) range.min = 0;
    if (chance(r, 30)) range.max = INT64_MAX;
    return range;
}

static void choose_columns(run *r, reader *d)
{
    size_t n = 0;
    for (size_t f = 0; f < r->family_count; f++) {
        if (chance(r, 25)) continue;
        rq_scan_family *w = &d->wanted[n];
        *w = (rq_scan_family){.family = r->families[f].name};
        if (!d->scan.raw && chance(r, 50)) {
            w->qualifiers = d->qualifiers[n];
            for (size_t q = 0; q < RUN_QUALIFIERS; q++)
                if (chance(r, 35))
                    d->qualifiers[n][w->qualifier_count++] = rq_slice_cstr(run_qualifier_names[q]);
        }
        if (chance(r, 15)) {
            w->has_time_range = true;
            w->time_range = random_range(r);
        }
        n++;
    }
    d->scan.families = d->wanted;
    d->scan.family_count = n;
}

/* Chooses a scan from the last row to the first, with all features that move a scan inside a row. */
static void choose_the_way_back(run *r, reader *d)
{
    d->scan.reversed = chance(r, 85);
    if (d->scan.reversed) d->scan.load_families_on_demand = false;
    d->scan.include_start = chance(r, 70);
    if (chance(r, 20)) d->scan.time_range = random_range(r);
    d->scan.raw = chance(r, 10);
    if (chance(r, 40)) choose_columns(r, d);
}

/* Chooses a scan of most rows, with few other options. */
static void choose_scan_of_many(run *r, reader *d)
{
    d->scan = (rq_scan){
        .max_versions = chance(r, 80) ? 1 : 3,
        .time_range = RQ_TIME_RANGE_ALL,
        .store_limit = chance(r, 5) ? (int32_t)below(r, 4) : -1,
        .store_offset = chance(r, 5) ? (int32_t)below(r, 3) : 0,
        .cache_blocks = true,
        .load_families_on_demand = chance(r, 40),
        .include_start = true,
        .include_stop = chance(r, 30),
    };
    if (chance(r, 30)) d->scan.start_row = run_row(r);
    if (chance(r, 30)) d->scan.stop_row = run_row(r);
    if (r->reversed) choose_the_way_back(r, d);
}

static void choose_scan(run *r, reader *d)
{
    if (r->many_rows) {
        choose_scan_of_many(r, d);
        return;
    }
    rq_scan *s = &d->scan;
    *s = (rq_scan){
        .max_versions = chance(r, 40) ? INT32_MAX : 1 + (int32_t)below(r, 3),
        .time_range = random_range(r),
        .store_limit = chance(r, 15) ? (int32_t)below(r, 4) : -1,
        .store_offset = chance(r, 10) ? (int32_t)below(r, 3) : 0,
        .raw = !r->new_versions && chance(r, 20),
        .cache_blocks = true,
        .load_families_on_demand = chance(r, 40),
        .include_start = true,
    };
    if (chance(r, 25)) {
        s->is_get = true;
        s->raw = false;
        s->include_stop = true;
        s->start_row = s->stop_row = run_row(r);
    } else {
        s->reversed = chance(r, 35);
        if (s->reversed) s->load_families_on_demand = false;
        s->include_start = chance(r, 70);
        s->include_stop = chance(r, 30);
        if (chance(r, 40)) s->start_row = run_row(r);
        if (chance(r, 40)) s->stop_row = run_row(r);
    }
    if (chance(r, 60)) choose_columns(r, d);
}

static void parse_filter(run *r, reader *d, rq_filter **ret)
{
    rq_error why = {0};
    rq_err rc = rq_filter_parse(rq_slice_cstr(d->filter.name), rq_buf_slice(&d->filter.pb),
                                &d->arena, ret, &why);
    if (rc != RQ_OK) run_fail(r, why.message);
}

static void choose_limits(run *r, reader *d)
{
    rq_scan_limits *l = &d->limits;
    *l = (rq_scan_limits){0};
    if (d->scan.batch > 0) l->cells = (uint32_t)d->scan.batch;
    l->may_stop_inside_row = chance(r, 60);
    if (chance(r, 30)) l->bytes = rq_result_bytes(&d->out) + 1 + below(r, 400);
    if (chance(r, 20)) l->deadline_ns = r->world.now_ns + below(r, 20000);
    if (chance(r, 10)) l->yield_ns = r->world.now_ns + below(r, 20000);
}

static void close_reader(run *r, reader *d)
{
    r->passed += rq_region_scanner_stats(d->scanner)->rows_passed;
    r->taken += rq_region_scanner_stats(d->scanner)->rows_taken;
    rq_region_scanner_close(d->scanner);
    rq_read_ctx_clear(&d->ctx);
    rq_cellblock_clear(&d->out);
    rq_buf_clear(&d->filter.pb);
    model_scan_clear(&d->model);
    cell_set_clear(&d->expected);
    cell_set_clear(&d->got);
    rq_arena_clear(&d->arena);
}

/* HBase does not open files that the time range excludes, so filters never see rows that are only
 * in such files. With a marker that covers older cells a file's time range begins at 0. */
static bool is_opened(const run *r, const reader *d, size_t family, size_t file)
{
    const rq_family_schema *schema = &r->families[family];
    const cell_set *cells = &r->files[family][file];
    /* bulk-loaded files have no time range */
    if (r->world.stores[family].version.files[file].bulk_loaded) return true;
    int64_t min = INT64_MAX;
    int64_t max = INT64_MIN;
    for (size_t i = 0; i < cells->count; i++) {
        const rq_cell *c = &cells->items[i];
        if (c->timestamp < min) min = c->timestamp;
        if (c->timestamp > max) max = c->timestamp;
        if (c->type == RQ_TYPE_DELETE_COLUMN || c->type == RQ_TYPE_DELETE_FAMILY) min = 0;
    }
    rq_time_range range = d->scan.time_range;
    for (size_t i = 0; i < d->scan.family_count; i++)
        if (rq_slice_eq(d->wanted[i].family, schema->name) && d->wanted[i].has_time_range)
            range = d->wanted[i].time_range;
    if (min >= range.max || max < range.min) return false;
    return d->scan.raw || schema->min_versions > 0 || schema->ttl_s == RQ_TTL_FOREVER ||
           max >= r->world.now_ms - 1000 * (int64_t)schema->ttl_s;
}

/* Collects the cells that exist now for this reader. */
static void gather(run *r, const reader *d)
{
    for (size_t f = 0; f < r->family_count; f++) {
        cell_set_empty(&r->all[f]);
        cell_set_add_all(&r->all[f], &r->active[f]);
        cell_set_add_all(&r->all[f], &r->snapshots[f]);
        for (size_t i = 0; i < r->file_count[f]; i++)
            if (is_opened(r, d, f, i)) cell_set_add_all(&r->all[f], &r->files[f][i]);
    }
}

static void print_reader(const run *r, const reader *d)
{
    const rq_scan *s = &d->scan;
    char start[32];
    char stop[32];
    rq_bytes_to_string(s->start_row, start, sizeof(start));
    rq_bytes_to_string(s->stop_row, stop, sizeof(stop));
    fprintf(stderr,
            "%s%s%s start=%s%s stop=%s%s versions=%d range=%lld..%lld limit=%d offset=%d batch=%d "
            "on demand=%d filter=%s read point=%llu now=%lld lossless=%d\n",
            s->is_get ? "get" : "scan", s->reversed ? " reversed" : "", s->raw ? " raw" : "", start,
            s->include_start ? "" : " (excl.)", stop, s->include_stop ? " (incl.)" : "",
            s->max_versions, (long long)s->time_range.min, (long long)s->time_range.max,
            s->store_limit, s->store_offset, s->batch, s->load_families_on_demand,
            d->filter.name != NULL ? d->filter.name + 31 : "none",
            (unsigned long long)rq_region_scanner_read_point(d->scanner),
            (long long)r->world.now_ms, r->lossless);
    for (size_t f = 0; f < d->model.family_count; f++) {
        const model_family *m = &d->model.families[f];
        fprintf(stderr, "  family %.*s versions=%d min=%d ttl=%d keep=%d bloom=%d columns:",
                (int)m->schema->name.len, m->schema->name.ptr, m->schema->max_versions,
                m->schema->min_versions, m->schema->ttl_s, m->schema->keep_deleted,
                m->schema->bloom);
        for (size_t q = 0; m->wanted != NULL && q < m->wanted->qualifier_count; q++)
            fprintf(stderr, " '%.*s'", (int)m->wanted->qualifiers[q].len,
                    m->wanted->qualifiers[q].ptr);
        if (m->wanted != NULL && m->wanted->has_time_range)
            fprintf(stderr, " range=%lld..%lld", (long long)m->wanted->time_range.min,
                    (long long)m->wanted->time_range.max);
        fprintf(stderr, "\n");
        cell_set_sort(m->cells);
        cell_set_print(m->cells, "  cells");
    }
}

static const rq_scan_family *wanted_of(const reader *d, rq_slice family)
{
    for (size_t i = 0; i < d->scan.family_count; i++)
        if (rq_slice_eq(d->wanted[i].family, family)) return &d->wanted[i];
    return NULL;
}

static void give_model_the_families(run *r, const reader *d, model_scan *m)
{
    for (size_t f = 0; f < r->family_count; f++) {
        const rq_scan_family *wanted = wanted_of(d, r->families[f].name);
        if (d->scan.family_count == 0 || wanted != NULL)
            model_scan_add_family(m, &r->families[f], wanted, &r->all[f]);
    }
}

/* Gets each family's part by rq_store_get_row; false: not all parts could be read this way. */
static bool get_without_scanner(run *r, reader *d, rq_cellblock *out)
{
    bool answered = true;
    for (size_t f = 0; f < r->family_count && answered; f++) {
        const rq_scan_family *wanted = wanted_of(d, r->families[f].name);
        if (d->scan.family_count > 0 && wanted == NULL) continue;
        rq_error why = {0};
        uint32_t before = out->count;
        rq_err rc;
        while ((rc = rq_store_get_row(&r->world.stores[f], &r->world.stores[f].version, &d->scan,
                                      wanted, r->world.region.read_point, r->world.now_ms,
                                      &d->arena, &d->ctx, out, &answered, &why)) == RQ_E_AGAIN) {
            r->agains++;
            if (answered || out->count != before) run_fail(r, "waits and has answered");
            if (rq_read_ctx_fulfil(&d->ctx, &why) != RQ_OK) run_fail(r, why.message);
        }
        if (rc != RQ_OK) run_fail(r, why.message);
        if (!answered && out->count != before) run_fail(r, "appended what it did not answer");
    }
    return answered;
}

/* The fast path of a get (store/row_get.h) must return the model's results, too. */
static void compare_short_get(run *r, reader *d)
{
    const rq_scan *s = &d->scan;
    if (!s->is_get || s->filter != NULL || s->store_limit >= 0 || s->store_offset > 0) return;
    rq_cellblock out = {.with_tags = true};
    r->gets++;
    if (get_without_scanner(r, d, &out)) {
        cell_set expected = {0};
        cell_set got = {0};
        model_scan m;
        rq_cell cell;
        rq_cursor c = rq_cursor_of(rq_buf_slice(&out.bytes));
        while (rq_cellblock_next(&c, &cell, NULL) == RQ_OK)
            cell_set_add(&got, &cell);
        model_scan_init(&m, s, NULL, r->world.region.read_point, r->world.now_ms);
        gather(r, d);
        give_model_the_families(r, d, &m);
        if (!model_scan_next(&m, &expected)) cell_set_empty(&expected);
        if (got.count != out.count || !cell_set_equal(&expected, &got, false)) {
            print_reader(r, d);
            cell_set_print(&expected, "expected");
            cell_set_print(&got, "got");
            run_fail(r, "a get without a scanner differs");
        }
        r->short_gets++;
        model_scan_clear(&m);
        cell_set_clear(&expected);
        cell_set_clear(&got);
    }
    rq_cellblock_clear(&out);
    rq_read_ctx_clear(&d->ctx);
}

static void open_reader(run *r, reader *d)
{
    memset(d, 0, sizeof(*d));
    choose_scan(r, d);
    if (chance(r, r->unfiltered ? 5 : r->many_rows && !r->reversed ? 95 : 45)) {
        run_make_filter(r, &d->filter, 0);
        parse_filter(r, d, &d->scan.filter);
    }
    bool whole_rows = d->scan.filter != NULL && rq_filter_has_filter_row(d->scan.filter);
    if (!d->scan.is_get && !whole_rows && chance(r, 30)) d->scan.batch = 1 + (int32_t)below(r, 3);
    d->scan.counts_rows = chance(r, 20);
    d->in_pieces = chance(r, 60);
    d->out.with_tags = true;
    d->for_model = d->scan;
    if (d->scan.filter != NULL) parse_filter(r, d, &d->for_model.filter);

    rq_error why = {0};
    if (rq_region_scanner_open(&r->world.region, &d->scan, 0, &d->arena, &d->scanner, &why) !=
        RQ_OK)
        run_fail(r, why.message);
    model_scan_init(&d->model, &d->for_model, d->for_model.filter,
                    rq_region_scanner_read_point(d->scanner), r->world.now_ms);
    give_model_the_families(r, d, &d->model);
    r->scans++;
    compare_short_get(r, d);
}

static void compare_row(run *r, reader *d)
{
    if (!d->model.failed && cell_set_equal(&d->expected, &d->got, false)) {
        r->rows++;
        r->cells += d->got.count;
        return;
    }
    print_reader(r, d);
    cell_set_print(&d->expected, "expected");
    cell_set_print(&d->got, "got");
    run_fail(r, "row differs");
}

/* One call, repeated after RQ_E_AGAIN, and sometimes suspended. False: the filter failed, as in the
 * model. */
static bool call_next(run *r, reader *d, rq_scan_state *ret)
{
    rq_scan_state state = RQ_SCAN_DONE;
    rq_error why = {0};
    for (;;) {
        rq_err rc = rq_region_scanner_next(d->scanner, &d->limits, &d->ctx, &d->out, &state, &why);
        if (rc == RQ_OK) {
            *ret = state;
            return true;
        }
        if (rc != RQ_E_AGAIN) {
            if (d->model.failed && d->model.why.code == rc) return false;
            print_reader(r, d);
            run_fail(r, why.message);
        }
        r->agains++;
        if (d->ctx.need.reader != NULL) {
            if (chance(r, 50)) {
                rq_region_scanner_suspend(d->scanner);
                r->suspends++;
            }
            if (rq_read_ctx_fulfil(&d->ctx, &why) != RQ_OK) run_fail(r, why.message);
        } else {
            if (d->limits.yield_ns == 0) run_fail(r, "gave up its slice without being asked");
            if (chance(r, 50)) rq_region_scanner_suspend(d->scanner);
            d->limits.yield_ns = 0;
        }
    }
}

/* At the beginning of a row the model uses the cells that exist now. */
static void expect_row(run *r, reader *d)
{
    gather(r, d);
    if (d->has_expected) return;
    d->has_expected = model_scan_next(&d->model, &d->expected);
    d->model_done = !d->has_expected;
    if (!d->has_expected) cell_set_empty(&d->expected);
}

static void end_row(run *r, reader *d)
{
    compare_row(r, d);
    cell_set_empty(&d->got);
    d->has_expected = false;
}

static void collect(run *r, reader *d, uint32_t from_count, size_t from_len)
{
    rq_cursor c =
        rq_cursor_of(rq_slice_of(d->out.bytes.ptr + from_len, d->out.bytes.len - from_len));
    rq_cell cell;
    rq_err rc;
    uint32_t n = from_count;
    while ((rc = rq_cellblock_next(&c, &cell, NULL)) == RQ_OK) {
        /* The row may have had no further cells after the part; then the next row follows at
         * once. */
        if (d->got.count > 0 && !rq_cell_same_row(&d->got.items[0], &cell)) {
            if (n != from_count) run_fail(r, "two rows in one answer");
            end_row(r, d);
            expect_row(r, d);
        }
        cell_set_add(&d->got, &cell);
        n++;
    }
    if (rc != RQ_E_END || n != d->out.count) run_fail(r, "the result is no cell block");
}

/* After the scan's end. */
static void expect_no_row(run *r, reader *d)
{
    gather(r, d);
    if (!d->has_expected && (d->model_done || !model_scan_next(&d->model, &d->expected))) return;
    print_reader(r, d);
    cell_set_print(&d->expected, "expected");
    run_fail(r, "the scan ended early");
}

/* Compares rows that were taken at once, which begin at the mark. */
static void compare_taken(run *r, reader *d, rq_cellblock_mark from, const rq_scan_rows *rows)
{
    rq_cursor c = rq_cursor_of(rq_slice_of(d->out.bytes.ptr + from.len, rows->end.len - from.len));
    rq_cell cell;
    for (uint32_t i = 0; i < rows->count; i++) {
        expect_row(r, d);
        for (uint32_t n = 0; n < rows->cells[i]; n++) {
            if (rq_cellblock_next(&c, &cell, NULL) != RQ_OK)
                run_fail(r, "fewer cells than counted");
            cell_set_add(&d->got, &cell);
        }
        end_row(r, d);
    }
    if (rq_cellblock_next(&c, &cell, NULL) != RQ_E_END) run_fail(r, "more cells than counted");
}

/* Sometimes takes several rows at once, as ops does. *from: the start of the cells that the next
 * call completes. False: the result ends with them. */
static bool take_rows(run *r, reader *d, rq_cellblock_mark *from, rq_scan_state *ret)
{
    uint32_t cells[64];
    rq_scan_rows rows = {.cells = cells, .max = 1 + (uint32_t)below(r, 64)};
    *ret = RQ_SCAN_MORE;
    if (d->got.count > 0 || chance(r, 30)) return true;
    if (rq_region_scanner_take_rows(d->scanner, &d->limits, &d->out, &rows, ret) != RQ_OK)
        run_fail(r, "taking rows failed");
    if (rows.count > rows.max) run_fail(r, "more rows than there is room for");
    compare_taken(r, d, *from, &rows);
    *from = rows.end;
    if (*ret == RQ_SCAN_MORE) {
        expect_row(r, d);
        return rows.count == 0 || d->out.count > rows.end.count || chance(r, 50);
    }
    if (rows.count == 0 || d->out.count > rows.end.count) run_fail(r, "no row to have a state");
    if (*ret == RQ_SCAN_DONE)
        expect_no_row(r, d);
    else if (*ret == RQ_SCAN_BYTES_REACHED ? rq_result_bytes(&d->out) < d->limits.bytes
                                           : *ret != RQ_SCAN_TIME_REACHED)
        run_fail(r, "took rows, and stopped for no reason");
    return false;
}

/* Reads one result and checks it as far as possible. False: the scan has ended. */
static bool read_answer(run *r, reader *d)
{
    if (d->got.count == 0) expect_row(r, d);
    if (chance(r, 30)) rq_cellblock_reset(&d->out);
    if (d->in_pieces) choose_limits(r, d);
    rq_cellblock_mark from = rq_cellblock_get_mark(&d->out);
    rq_scan_state state;
    if (!take_rows(r, d, &from, &state)) return state != RQ_SCAN_DONE;
    uint32_t from_count = from.count;
    size_t from_len = from.len;
    if (!call_next(r, d, &state)) return false;
    rq_read_ctx_clear(&d->ctx);
    collect(r, d, from_count, from_len);
    uint32_t cells = d->out.count - from_count;
    bool inside = state == RQ_SCAN_BATCH_REACHED || state == RQ_SCAN_BYTES_REACHED_MID_ROW ||
                  state == RQ_SCAN_TIME_REACHED_MID_ROW;
    bool whole_rows = d->scan.filter != NULL && rq_filter_has_filter_row(d->scan.filter);
    if (inside) r->cuts++;
    if (inside && whole_rows) run_fail(r, "a row was cut although the filter decides on rows");
    if (inside && state != RQ_SCAN_BATCH_REACHED && !d->limits.may_stop_inside_row)
        run_fail(r, "a row was cut although it must not be");
    if (state == RQ_SCAN_BATCH_REACHED && cells != d->limits.cells) run_fail(r, "batch size");
    if (d->limits.cells > 0 && cells > d->limits.cells) run_fail(r, "more than the batch");
    if ((state == RQ_SCAN_BYTES_REACHED || state == RQ_SCAN_BYTES_REACHED_MID_ROW) &&
        rq_result_bytes(&d->out) < d->limits.bytes)
        run_fail(r, "stopped below the size limit");
    if (state == RQ_SCAN_MORE && cells == 0) run_fail(r, "nothing delivered and no limit reached");
    if (inside) return true;
    if (d->got.count == 0) {
        if (state == RQ_SCAN_TIME_REACHED) return true; /* heartbeat */
        if (state != RQ_SCAN_DONE) run_fail(r, "an empty row");
        if (d->has_expected) {
            print_reader(r, d);
            cell_set_print(&d->expected, "expected");
            run_fail(r, "a row is missing");
        }
        return false;
    }
    end_row(r, d);
    if (state != RQ_SCAN_DONE) return true;
    expect_no_row(r, d);
    return false;
}

#define READERS_MAX 3

static void change_something(run *r, reader *readers, const bool *open)
{
    for (size_t i = 0; i < READERS_MAX; i++)
        if (open[i]) rq_region_scanner_suspend(readers[i].scanner);
    r->suspends++;
    bool inside = false;
    for (size_t i = 0; i < READERS_MAX; i++)
        inside = inside || (open[i] && (readers[i].got.count > 0 || readers[i].has_expected));
    if (!inside || r->lossless)
        run_change_versions(r);
    else
        run_write(r, 1);
}

static void one_run(uint64_t seed, run *totals)
{
    run *r = calloc(1, sizeof(*r));
    RQ_ASSERT(r != NULL);
    r->many_rows = totals->many_rows;
    r->unfiltered = totals->unfiltered;
    r->reversed = totals->reversed;
    r->seed = seed;
    rq_random_seed(&r->random, seed);
    run_make_families(r);
    r->order = !r->many_rows && chance(r, 15) ? RQ_ORDER_META : RQ_ORDER_DEFAULT;
    model_set_order(r->order);
    by_hand_init(&r->world, seed, r->families, r->family_count, r->order,
                 chance(r, 50)   ? 1 << 20
                 : chance(r, 50) ? 4096
                                 : 0);
    r->world.now_ms = 10500;
    if (r->lossless)
        r->world.purge_ms = 100000;
    else if (chance(r, 30))
        r->world.purge_ms = 1000 * (int64_t)below(r, 10);
    r->world.vfs.again_percent = chance(r, 60) ? 30 : 0;
    /* Longer sequence ids for some runs, depending on the seed. */
    if (!r->new_versions && seed % 3 == 2) r->seqid = UINT64_C(1) << (seed % 40);
    if (r->many_rows) run_write_many(r);
    reader readers[READERS_MAX];
    bool open[READERS_MAX] = {false};
    for (unsigned steps = 100 + (unsigned)below(r, 150); steps > 0; steps--) {
        if (chance(r, r->many_rows ? 5 : 30)) run_write(r, 1 + (unsigned)below(r, 4));
        if (chance(r, r->many_rows ? 8 : 15)) change_something(r, readers, open);
        size_t i = below(r, READERS_MAX);
        if (!open[i]) {
            open_reader(r, &readers[i]);
            open[i] = true;
        }
        for (uint64_t n = 1 + below(r, 6); n > 0 && open[i]; n--) {
            open[i] = read_answer(r, &readers[i]);
            if (!open[i]) close_reader(r, &readers[i]);
        }
        if (open[i] && chance(r, 40)) {
            rq_region_scanner_suspend(readers[i].scanner);
            r->suspends++;
        }
    }
    for (size_t i = 0; i < READERS_MAX; i++)
        if (open[i]) close_reader(r, &readers[i]);
    totals->scans += r->scans;
    totals->gets += r->gets;
    totals->short_gets += r->short_gets;
    totals->rows += r->rows;
    totals->cells += r->cells;
    totals->agains += r->agains;
    totals->suspends += r->suspends;
    totals->cuts += r->cuts;
    totals->rewrites += r->rewrites;
    totals->passed += r->passed;
    totals->taken += r->taken;
    for (size_t f = 0; f < r->family_count; f++) {
        cell_set_clear(&r->active[f]);
        cell_set_clear(&r->snapshots[f]);
        cell_set_clear(&r->all[f]);
        for (size_t i = 0; i < r->file_count[f]; i++)
            cell_set_clear(&r->files[f][i]);
        free(r->files[f]);
        free(r->newest[f]);
    }
    by_hand_clear(&r->world);
    free(r);
}

int main(int argc, char **argv)
{
    uint64_t first = seeds_number("READ_SEED", 20260101);
    uint64_t runs = seeds_number("READ_RUNS", getenv("READ_SEED") != NULL ? 1 : 150);
    const char *kind = argc > 1 ? argv[1] : "";
    run totals = {.unfiltered = strcmp(kind, "unfiltered") == 0,
                  .reversed = strcmp(kind, "reversed") == 0};
    totals.many_rows = totals.unfiltered || totals.reversed || strcmp(kind, "many") == 0;
    for (uint64_t i = 0; i < runs; i++)
        one_run(first + i, &totals);
    printf("%llu runs from seed %llu: %llu scans, %llu rows, %llu cells, %llu times again, "
           "%llu suspensions, %llu cut rows, %llu rewrites, %llu of %llu gets without a scanner, "
           "%llu rows passed over, %llu taken at once\n",
           (unsigned long long)runs, (unsigned long long)first, (unsigned long long)totals.scans,
           (unsigned long long)totals.rows, (unsigned long long)totals.cells,
           (unsigned long long)totals.agains, (unsigned long long)totals.suspends,
           (unsigned long long)totals.cuts, (unsigned long long)totals.rewrites,
           (unsigned long long)totals.short_gets, (unsigned long long)totals.gets,
           (unsigned long long)totals.passed, (unsigned long long)totals.taken);
    if (totals.unfiltered && totals.taken < 50 * runs) {
        fprintf(stderr, "too few rows were taken at once\n");
        return 1;
    }
    if (totals.many_rows && !totals.unfiltered && !totals.reversed && totals.passed < 50 * runs) {
        fprintf(stderr, "too few rows were passed over the short way\n");
        return 1;
    }
    if (totals.gets > 100 && totals.short_gets < totals.gets / 4) {
        fprintf(stderr, "too few gets went the short way\n");
        return 1;
    }
    return 0;
}
