/* SPDX-License-Identifier: Apache-2.0 */
/* Scans: Rows.open makes a Rows::Scanner; prelude/rows.rb yields its rows to the block. The loop is written in Ruby,
 * because in mruby break and return cannot leave a block that a C function has called. A scanner has an operation of
 * its own, because the block may run others between two steps; a step's rows are kept in a string.
 *
 * An operation is freed by close, with its connection (rq__scanners_lose), or by the collector. Its scanner on the server is closed
 * at once, also after Ctrl-C: the prompt may wait for hours, and a server of HBase keeps the scanner of a closed connection for a
 * minute. */
#include "shell/rows.h"

#include <mruby/array.h>
#include <mruby/class.h>
#include <mruby/data.h>
#include <mruby/error.h>
#include <mruby/hash.h>
#include <mruby/string.h>
#include <mruby/variable.h>

/* How long the end of a scan waits for the response to its last request: only then the server can close its scanner. */
#define END_NS 100000000

struct rq__scanner {
    rq__outcome o;
    rq_client *client;
    rq_op *op; /* NULL: closed, or lost with the connection */
    bool is_closed;
    size_t at; /* in the step's rows: what was read */
    bool
        counts; /* rows are counted and not kept; every interval-th leaves a mark: (its number, its key) */
    uint64_t interval; /* 0: none leaves one */
    uint64_t until_mark;
    bool has_read_marks; /* the step's marks were read */
    int64_t begun_ns;
    rq__scanner *next; /* in the session's list */
};

/* --- life ------------------------------------------------------------------------------------- */

static void take_out(rq__scanner *sc)
{
    for (rq__scanner **at = &sc->o.shell->scanners; *at != NULL; at = &(*at)->next)
        if (*at == sc) {
            *at = sc->next;
            return;
        }
}

/* REQUIRES: no step is in progress. */
static void free_op(rq__scanner *sc)
{
    if (sc->op == NULL) return;
    sc->o.shell->metrics = *rq_op_scan_metrics(sc->op);
    rq_op_free(sc->op);
    sc->op = NULL;
    take_out(sc);
}

/* A step that has ended with `goes_on` has left a scanner on the server. */
static void end_scan(rq__scanner *sc)
{
    if (sc->op != NULL && sc->o.done && sc->o.goes_on) rq_op_scan_end(sc->op);
}

static void close_scanner(rq__scanner *sc)
{
    end_scan(sc);
    free_op(sc);
    sc->is_closed = true;
}

void rq__scanners_end(rq__shell *s, rq_client *client)
{
    for (rq__scanner *sc = s->scanners; sc != NULL; sc = sc->next)
        if (sc->client == client) end_scan(sc);
    rq_client_end_scans(client, END_NS);
}

void rq__scanners_lose(rq__shell *s, const rq_client *client)
{
    for (rq__scanner *sc = s->scanners, *next; sc != NULL; sc = next) {
        next = sc->next;
        if (sc->client == client) free_op(sc);
    }
}

static void free_scanner(mrb_state *mrb, void *p)
{
    rq__scanner *sc = p;
    if (sc != NULL) close_scanner(sc);
    mrb_free(mrb, sc);
}

static const mrb_data_type scanner_type = {"Scanner", free_scanner};

static rq__scanner *scanner_of(mrb_state *mrb, mrb_value self)
{
    return mrb_data_get_ptr(mrb, self, &scanner_type);
}

/* --- steps ------------------------------------------------------------------------------------ */

static mrb_sym step_symbol(mrb_state *mrb)
{
    return mrb_intern_lit(mrb, "step");
}

static void wait_for_step(mrb_state *mrb, mrb_value self, rq__scanner *sc, rq_err started)
{
    const rq_buf *rows = &sc->o.shell->rows;
    rq__rows_wait(mrb, &sc->o, started);
    mrb_value step = mrb_str_new(mrb, (const char *)rows->ptr, (mrb_int)rows->len);
    mrb_iv_set(mrb, self, step_symbol(mrb), step);
    sc->at = 0;
}

/* false: there is no further step. */
static bool take_step(mrb_state *mrb, mrb_value self, rq__scanner *sc)
{
    if (sc->is_closed || !sc->o.goes_on) return false;
    if (sc->op == NULL)
        rq__raise_failure(mrb, RQ_E_IO, "java.io.IOException",
                          RQ_SLICE_LIT("the scan's connection was closed"), false);
    rq_buf_reset(&sc->o.shell->rows);
    sc->o.done = false;
    sc->o.stop_ns = 0;
    rq_op_scan_step(sc->op);
    wait_for_step(mrb, self, sc, RQ_OK);
    return true;
}

/* The rows of the step that were not read. Valid until the next step. */
static rq_cursor rest_of_step(mrb_state *mrb, mrb_value self, const rq__scanner *sc)
{
    rq_slice step = rq__slice_of(mrb_iv_get(mrb, self, step_symbol(mrb)));
    return rq_cursor_of(rq_slice_of(step.ptr + sc->at, step.len - sc->at));
}

/* scanner.next → the cells of the next row; nil: the end. */
static mrb_value scanner_next(mrb_state *mrb, mrb_value self)
{
    rq__scanner *sc = scanner_of(mrb, self);
    if (sc->is_closed || sc->counts) return mrb_nil_value();
    do {
        rq_cursor c = rest_of_step(mrb, self, sc);
        size_t left = rq_cursor_left(&c);
        mrb_value row = rq__rows_next(mrb, &c);
        sc->at += left - rq_cursor_left(&c);
        if (!mrb_nil_p(row)) return row;
    } while (take_step(mrb, self, sc));
    return mrb_nil_value();
}

static void show_count(const rq__scanner *sc, mrb_int count)
{
    char text[128];
    if (!rq__display_wants_progress(sc->o.shell)) return;
    double seconds = (double)(rq_client_now_ns() - sc->begun_ns) / 1e9;
    snprintf(text, sizeof text, "count: %lld rows, %.0f rows/s", (long long)count,
             (double)count / seconds);
    rq__display_progress(sc->o.shell, text);
}

static rq_err note_mark(rq_buf *to, uint64_t number, rq_slice key)
{
    RQ_TRY(rq_buf_append(to, &number, sizeof number));
    RQ_TRY(rq_buf_append(to, &key.len, sizeof key.len));
    return rq_buf_append(to, key.ptr, key.len);
}

/* The callback of a scanner that counts. Cells are not read, but the first of a row that leaves a mark. */
static void count_row(rq_op *op, void *ctx, uint32_t index, rq_op_result *r)
{
    rq__outcome *o = ctx;
    rq__scanner *sc = RQ_CONTAINER_OF(o, rq__scanner, o);
    rq_cell first = {0};
    (void)op;
    (void)index;
    o->rows++;
    o->shell->stale = o->shell->stale || r->row.stale;
    if (sc->interval == 0 || --sc->until_mark > 0) return;
    sc->until_mark = sc->interval;
    rq_err rc = rq_result_next(&r->row, &r->cells, &first);
    if (rc == RQ_OK || rc == RQ_E_END)
        rc = note_mark(&o->shell->rows, o->rows, rq_cell_row(&first));
    if (o->copied == RQ_OK) o->copied = rc;
}

static mrb_value read_mark(mrb_state *mrb, rq_cursor *marks)
{
    uint64_t number;
    size_t len;
    memcpy(&number, marks->ptr, sizeof number);
    memcpy(&len, marks->ptr + sizeof number, sizeof len);
    rq_slice key = rq_slice_of(marks->ptr + sizeof number + sizeof len, len);
    marks->ptr = key.ptr + len;
    return mrb_assoc_new(mrb, mrb_int_value(mrb, (mrb_int)number), rq__string_of(mrb, key));
}

/* scanner.count → [count, [[count, row] …]]: the rows up to the end of the next step, and every interval-th of
 * that step; nil: the end. */
static mrb_value scanner_count(mrb_state *mrb, mrb_value self)
{
    rq__scanner *sc = scanner_of(mrb, self);
    if (sc->has_read_marks && !take_step(mrb, self, sc)) return mrb_nil_value();
    sc->has_read_marks = true;
    mrb_int count = (mrb_int)sc->o.rows;
    mrb_value list = mrb_ary_new(mrb);
    rq_cursor marks = rest_of_step(mrb, self, sc);
    while (rq_cursor_left(&marks) > 0)
        mrb_ary_push(mrb, list, read_mark(mrb, &marks));
    show_count(sc, count);
    return mrb_assoc_new(mrb, mrb_int_value(mrb, count), list);
}

/* Ends the scan; a second time nothing. */
static mrb_value scanner_close(mrb_state *mrb, mrb_value self)
{
    rq__scanner *sc = scanner_of(mrb, self);
    bool is_open = sc->op != NULL;
    close_scanner(sc);
    if (is_open) rq_client_end_scans(sc->client, END_NS);
    return mrb_nil_value();
}

/* --- opening ---------------------------------------------------------------------------------- */

static mrb_value option(mrb_state *mrb, mrb_value hash, const char *name)
{
    return mrb_hash_get(mrb, hash, mrb_symbol_value(mrb_intern_cstr(mrb, name)));
}

static uint64_t number_option(mrb_state *mrb, mrb_value hash, const char *name)
{
    mrb_value v = option(mrb, hash, name);
    return mrb_nil_p(v) ? 0 : (uint64_t)mrb_as_int(mrb, v);
}

static rq_scan scan_of(mrb_state *mrb, mrb_value options, mrb_value more)
{
    /* HBase's shell counts no call that is not needed, because it makes none. */
    bool counts_metrics = mrb_test(option(mrb, options, "metrics"));
    return (rq_scan){
        .start = rq__optional_slice(mrb, option(mrb, options, "start")),
        .stop = rq__optional_slice(mrb, option(mrb, options, "stop")),
        .limit = number_option(mrb, options, "limit"),
        .caching = (uint32_t)number_option(mrb, options, "caching"),
        .batch = (uint32_t)number_option(mrb, options, "batch"),
        .result_bytes = number_option(mrb, options, "result_bytes"),
        .reversed = mrb_test(option(mrb, options, "reversed")),
        .excludes_start = mrb_test(option(mrb, options, "excludes_start")),
        .includes_stop = mrb_test(option(mrb, options, "includes_stop")),
        .more = rq__slice_of(more),
        .is_stepwise = true,
        .fetches_ahead = !counts_metrics,
        .replica = (uint16_t)number_option(mrb, options, "replica"),
        .counts_metrics = counts_metrics,
    };
}

static mrb_value new_scanner(mrb_state *mrb, mrb_value module, rq__scanner **ret)
{
    struct RClass *c = mrb_class_get_under(mrb, mrb_class_ptr(module), "Scanner");
    struct RData *d = mrb_data_object_alloc(mrb, c, NULL, &scanner_type);
    *ret = d->data = mrb_calloc(mrb, 1, sizeof **ret);
    return mrb_obj_value(d);
}

/* Rows.open(table, options, more) → a scanner whose first step has been read. options: start, excludes_start, stop,
 * includes_stop, limit, caching, batch, result_bytes, reversed, replica, metrics. With the option interval the scanner
 * only counts rows: its method is `count`, not `next`, and every interval-th row is a mark (0: no marks). more: further
 * fields of the message Scan, encoded. */
static mrb_value open_scan(mrb_state *mrb, mrb_value self)
{
    mrb_value name, options, more;
    rq__scanner *sc;
    mrb_get_args(mrb, "SHS", &name, &options, &more);
    rq_client_table *t = rq__rows_table(mrb, name);
    const rq_scan scan = scan_of(mrb, options, more);
    mrb_value object = new_scanner(mrb, self, &sc);
    rq__shell *s = rq__shell_of(mrb);
    sc->o = rq__rows_begin(mrb);
    sc->client = s->client;
    sc->begun_ns = rq_client_now_ns();
    sc->o.grace_ns = END_NS;
    sc->counts = !mrb_nil_p(option(mrb, options, "interval"));
    sc->interval = sc->until_mark = number_option(mrb, options, "interval");
    rq_err started = rq_op_new(s->client, 0, &sc->o, &sc->op);
    if (started == RQ_OK) {
        sc->next = s->scanners;
        s->scanners = sc;
        started =
            rq_op_scan(sc->op, t, &scan, sc->counts ? count_row : rq__rows_take, rq__rows_ended);
    }
    wait_for_step(mrb, object, sc, started);
    return object;
}

/* Rows.metrics → name => value, of the last scan with metrics. */
static mrb_value metrics(mrb_state *mrb, mrb_value self)
{
    const rq_scan_metrics *m = &rq__shell_of(mrb)->metrics;
    mrb_value hash = mrb_hash_new_capa(mrb, RQ_SCAN_METRIC_COUNT);
    (void)self;
    for (int i = 0; i < RQ_SCAN_METRIC_COUNT; i++)
        mrb_hash_set(mrb, hash, mrb_str_new_cstr(mrb, rq_scan_metric_name((rq_scan_metric)i)),
                     mrb_int_value(mrb, (mrb_int)m->values[i]));
    return hash;
}

void rq__define_scans(mrb_state *mrb)
{
    struct RClass *rows = mrb_define_module(mrb, "Rows");
    struct RClass *scanner = mrb_define_class_under(mrb, rows, "Scanner", mrb->object_class);
    MRB_SET_INSTANCE_TT(scanner, MRB_TT_DATA);
    mrb_undef_class_method(mrb, scanner, "new");
    mrb_define_method(mrb, scanner, "next", scanner_next, MRB_ARGS_NONE());
    mrb_define_method(mrb, scanner, "count", scanner_count, MRB_ARGS_NONE());
    mrb_define_method(mrb, scanner, "close", scanner_close, MRB_ARGS_NONE());
    mrb_define_module_function(mrb, rows, "open", open_scan, MRB_ARGS_REQ(3));
    mrb_define_module_function(mrb, rows, "metrics", metrics, MRB_ARGS_NONE());
}
