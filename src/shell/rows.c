/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and changes rows: the client's operations as methods of the module Rows; scans are in scans.c. A
 * cell is an array [row, family, qualifier, timestamp, type, value]. The client's callbacks run under
 * its loop, which an exception of Ruby must not leave: they copy cells to the session's buffer, and
 * Ruby sees them when the operation, or one response of a scan, is complete.
 *
 *     rows: (CELL, rq_cell, its row, family, qualifier, value) … ROW_END, and the next row */
#include "shell/rows.h"

#include "base/arena.h"
#include "filter/language.h"

#include <mruby/array.h>
#include <mruby/error.h>
#include <mruby/string.h>

#define LOOK_NS 100000000

enum { ROW_END, CELL };

/* The pointers in the copied rq_cell are set when it is read. */
static rq_err copy_cell(rq_buf *to, const rq_cell *c)
{
    RQ_TRY(rq_buf_append_u8(to, CELL));
    RQ_TRY(rq_buf_append(to, c, sizeof *c));
    RQ_TRY(rq_buf_append(to, c->row, c->row_len));
    RQ_TRY(rq_buf_append(to, c->family, c->family_len));
    RQ_TRY(rq_buf_append(to, c->qualifier, c->qualifier_len));
    return rq_buf_append(to, c->value, c->value_len);
}

static rq_err copy_row(rq_buf *to, rq_result_view *row, rq_cursor *cells)
{
    rq_cell c;
    rq_err rc;
    while ((rc = rq_result_next(row, cells, &c)) == RQ_OK)
        RQ_TRY(copy_cell(to, &c));
    return rc == RQ_E_END ? rq_buf_append_u8(to, ROW_END) : rc;
}

/* The next cell of the row; false: its end. REQUIRES: a row begins or goes on. */
static bool read_cell(rq_cursor *rows, rq_cell *ret)
{
    if (*rows->ptr++ == ROW_END) return false;
    memcpy(ret, rows->ptr, sizeof *ret);
    ret->row = rows->ptr + sizeof *ret;
    ret->family = ret->row + ret->row_len;
    ret->qualifier = ret->family + ret->family_len;
    ret->value = ret->qualifier + ret->qualifier_len;
    rows->ptr = ret->value + ret->value_len;
    return true;
}

static void copy_text(char *to, size_t size, rq_slice from)
{
    size_t len = from.len < size ? from.len : size - 1;
    if (len > 0) memcpy(to, from.ptr, len);
    to[len] = '\0';
}

void rq__rows_ended(rq_op *op, void *ctx, const rq_op_result *r)
{
    rq__outcome *o = ctx;
    (void)op;
    o->done = true;
    o->err = r->err;
    o->goes_on = r->goes_on;
    o->retry = r->retry;
    copy_text(o->java_class, sizeof o->java_class, r->java_class);
    copy_text(o->text, sizeof o->text, r->text.len > 0 ? r->text : r->kind);
}

static void ended_with_row(rq_op *op, void *ctx, const rq_op_result *r)
{
    rq__outcome *o = ctx;
    rq__rows_ended(op, ctx, r);
    if (r->err != RQ_OK || !r->row.present) return;
    o->shell->stale = r->row.stale;
    o->exists = r->row.exists;
    rq_result_view row = r->row;
    rq_cursor cells = r->cells;
    o->copied = copy_row(&o->shell->rows, &row, &cells);
}

void rq__rows_take(rq_op *op, void *ctx, uint32_t index, rq_op_result *r)
{
    rq__outcome *o = ctx;
    (void)op;
    (void)index;
    o->rows++;
    o->shell->stale = o->shell->stale || r->row.stale;
    if (o->copied == RQ_OK) o->copied = copy_row(&o->shell->rows, &r->row, &r->cells);
}

static bool must_stop(rq__outcome *o)
{
    if (!o->shell->interrupted || o->done) return false;
    int64_t now = rq_client_now_ns();
    if (o->stop_ns == 0) o->stop_ns = now + o->grace_ns;
    return now >= o->stop_ns;
}

void rq__rows_wait(mrb_state *mrb, rq__outcome *o, rq_err started)
{
    rq__shell *s = o->shell;
    if (started != RQ_OK)
        rq__raise_failure(mrb, started, "", rq_slice_cstr(rq_err_text(started)), false);
    rq__display_wait_begins(s);
    while (!o->done) {
        rq_client_poll(s->client, LOOK_NS);
        rq__display_waits(s);
        if (must_stop(o)) rq_client_stop(s->client);
    }
    rq__shell_check_interrupt(mrb);
    rq_err rc = o->err != RQ_OK ? o->err : o->copied;
    if (rc == RQ_E_CALL_TIMEOUT && o->java_class[0] == '\0') rq__raise_silence(mrb);
    if (rc != RQ_OK)
        rq__raise_failure(mrb, rc, o->java_class,
                          rq_slice_cstr(o->text[0] != '\0' ? o->text : rq_err_text(rc)), o->retry);
}

rq_client_table *rq__rows_table(mrb_state *mrb, mrb_value name)
{
    rq_client_table *t = NULL;
    rq_client *c = rq__shell_client(mrb);
    if (rq_client_table_get(c, mrb_string_value_cstr(mrb, &name), &t) != RQ_OK)
        mrb_raise(mrb, E_RUNTIME_ERROR, "out of memory");
    return t;
}

mrb_value rq__string_of(mrb_state *mrb, rq_slice s)
{
    return mrb_str_new(mrb, (const char *)s.ptr, (mrb_int)s.len);
}

static mrb_value cell_value(mrb_state *mrb, const rq_cell *c)
{
    const mrb_value list[] = {rq__string_of(mrb, rq_cell_row(c)),
                              rq__string_of(mrb, rq_cell_family(c)),
                              rq__string_of(mrb, rq_cell_qualifier(c)),
                              mrb_int_value(mrb, c->timestamp),
                              mrb_int_value(mrb, c->type),
                              rq__string_of(mrb, rq_cell_value(c))};
    return mrb_ary_new_from_values(mrb, 6, list);
}

mrb_value rq__rows_next(mrb_state *mrb, rq_cursor *rows)
{
    rq_cell c;
    if (rq_cursor_left(rows) == 0) return mrb_nil_value();
    mrb_value list = mrb_ary_new(mrb);
    int arena = mrb_gc_arena_save(mrb);
    while (read_cell(rows, &c)) {
        mrb_ary_push(mrb, list, cell_value(mrb, &c));
        mrb_gc_arena_restore(mrb, arena);
    }
    return list;
}

static rq_slice checked_slice(mrb_state *mrb, mrb_value v)
{
    if (!mrb_string_p(v)) mrb_raisef(mrb, E_TYPE_ERROR, "%v is no String", v);
    return rq__slice_of(v);
}

rq_slice rq__optional_slice(mrb_state *mrb, mrb_value v)
{
    return mrb_nil_p(v) ? (rq_slice){0} : checked_slice(mrb, v);
}

/* --- one row ---------------------------------------------------------------------------------- */

static void set_until(rq__shell *s)
{
    int64_t ns = s->options->operation_ns;
    rq_op_set_until(s->op, ns > 0 ? rq_client_now_ns() + ns : 0);
}

rq__outcome rq__rows_begin(mrb_state *mrb)
{
    rq__shell *s = rq__shell_of(mrb);
    rq_buf_reset(&s->rows);
    s->stale = false;
    return (rq__outcome){.shell = s};
}

/* A get with the arguments of the method: table, row, more, replica = 0; more: further fields of the
 * message Get, encoded. */
static void run_get(mrb_state *mrb, rq__outcome *o)
{
    mrb_value name, row, more;
    mrb_int replica = 0;
    mrb_get_args(mrb, "SSS|i", &name, &row, &more, &replica);
    rq_client_table *t = rq__rows_table(mrb, name);
    const rq_get g = {
        .row = rq__slice_of(row), .replica = (uint16_t)replica, .more = rq__slice_of(more)};
    *o = rq__rows_begin(mrb);
    rq_op_set_ctx(o->shell->op, o);
    set_until(o->shell);
    rq__rows_wait(mrb, o, rq_op_get(o->shell->op, t, &g, ended_with_row));
}

/* Rows.exists(table, row, more) → whether a get of existence only finds something. */
static mrb_value exists(mrb_state *mrb, mrb_value self)
{
    rq__outcome o;
    (void)self;
    run_get(mrb, &o);
    return mrb_bool_value(o.exists);
}

/* Rows.get(table, row, more, replica = 0) → cells */
static mrb_value get(mrb_state *mrb, mrb_value self)
{
    rq__outcome o;
    (void)self;
    run_get(mrb, &o);
    rq_cursor rows = rq_cursor_of(rq_buf_slice(&o.shell->rows));
    mrb_value list = rq__rows_next(mrb, &rows);
    return mrb_nil_p(list) ? mrb_ary_new(mrb) : list;
}

static void check_row(mrb_state *mrb, mrb_value row)
{
    rq_slice r = checked_slice(mrb, row);
    if (r.len > RQ_ROW_LEN_MAX)
        mrb_raisef(mrb, E_ARGUMENT_ERROR, "Row length %i is > 32767", (mrb_int)r.len);
}

/* HBASE: ConnectionUtils.validatePut, checkHasFamilies. A delete without cells is one of the whole row. */
static void check_count(mrb_state *mrb, mrb_int kind, size_t count)
{
    if (count > 0 || kind == RQ_MUTATE_DELETE) return;
    mrb_raise(mrb, E_ARGUMENT_ERROR,
              kind == RQ_MUTATE_PUT ? "No columns to insert"
                                    : "Invalid arguments, zero columns specified");
}

/* [family, qualifier, timestamp or nil, type, value]. The row is checked. */
static rq_cell cell_of(mrb_state *mrb, mrb_value row, mrb_value list)
{
    if (!mrb_array_p(list)) mrb_raisef(mrb, E_TYPE_ERROR, "%v is no cell", list);
    mrb_value family = mrb_ary_ref(mrb, list, 0), qualifier = mrb_ary_ref(mrb, list, 1),
              timestamp = mrb_ary_ref(mrb, list, 2), value = mrb_ary_ref(mrb, list, 4);
    rq_slice r = rq__slice_of(row), f = checked_slice(mrb, family),
             q = rq__optional_slice(mrb, qualifier), v = rq__optional_slice(mrb, value);
    if (f.len > RQ_FAMILY_LEN_MAX) mrb_raise(mrb, E_ARGUMENT_ERROR, "Family > 127");
    return (rq_cell){
        .row = r.ptr,
        .row_len = (uint16_t)r.len,
        .family = f.ptr,
        .family_len = (uint8_t)f.len,
        .qualifier = q.ptr,
        .qualifier_len = (uint32_t)q.len,
        .timestamp = mrb_nil_p(timestamp) ? RQ_TIMESTAMP_LATEST : mrb_as_int(mrb, timestamp),
        .type = (uint8_t)mrb_as_int(mrb, mrb_ary_ref(mrb, list, 3)),
        .value = v.ptr,
        .value_len = (uint32_t)v.len,
    };
}

/* Room for the cells of a list, until the method returns. */
static rq_cell *room_for(mrb_state *mrb, mrb_value list, size_t *ret_count)
{
    *ret_count = (size_t)RARRAY_LEN(list);
    return mrb_alloca(mrb, (*ret_count + 1) * sizeof(rq_cell));
}

/* Rows.mutate(table, kind, row, cells, more) → the row's new cells, of an append or increment. */
static mrb_value mutate(mrb_state *mrb, mrb_value self)
{
    mrb_value name, row, list, more;
    mrb_int kind;
    size_t count;
    (void)self;
    mrb_get_args(mrb, "SiSAS", &name, &kind, &row, &list, &more);
    rq_client_table *t = rq__rows_table(mrb, name);
    rq_cell *cells = room_for(mrb, list, &count);
    check_row(mrb, row);
    check_count(mrb, kind, count);
    for (size_t i = 0; i < count; i++)
        cells[i] = cell_of(mrb, row, mrb_ary_ref(mrb, list, (mrb_int)i));
    rq__outcome o = rq__rows_begin(mrb);
    const rq_mutate m = {.kind = (rq_mutate_kind)kind,
                         .row = rq__slice_of(row),
                         .cells = cells,
                         .cell_count = count,
                         .nonce = kind == RQ_MUTATE_APPEND || kind == RQ_MUTATE_INCREMENT
                                      ? (uint64_t)rq_client_now_ns() | 1
                                      : 0,
                         .more = rq__slice_of(more)};
    rq_op_set_ctx(o.shell->op, &o);
    set_until(o.shell);
    rq__rows_wait(mrb, &o, rq_op_mutate(o.shell->op, t, &m, ended_with_row));
    rq_cursor rows = rq_cursor_of(rq_buf_slice(&o.shell->rows));
    mrb_value result = rq__rows_next(mrb, &rows);
    return mrb_nil_p(result) ? mrb_ary_new(mrb) : result;
}

static void take_nothing(rq_op *op, void *ctx, uint32_t index, rq_op_result *r)
{
    (void)op;
    (void)ctx;
    (void)index;
    (void)r;
}

/* Adds the same change of each row to the batch that begins. */
static rq_err add_changes(rq_op *op, rq_mutate *m, rq_cell *cells, mrb_value rows)
{
    for (mrb_int i = 0; i < RARRAY_LEN(rows); i++) {
        rq_slice row = rq__slice_of(RARRAY_PTR(rows)[i]);
        for (size_t k = 0; k < m->cell_count; k++) {
            cells[k].row = row.ptr;
            cells[k].row_len = (uint16_t)row.len;
        }
        m->row = row;
        RQ_TRY(rq_op_batch_mutate(op, m));
    }
    return RQ_OK;
}

/* Rows.mutate_all(table, kind, rows, cells, more): the same cells of every row, as one batch. */
static mrb_value mutate_all(mrb_state *mrb, mrb_value self)
{
    mrb_value name, rows, list, more;
    mrb_int kind;
    size_t count;
    (void)self;
    mrb_get_args(mrb, "SiAAS", &name, &kind, &rows, &list, &more);
    rq_cell *cells = room_for(mrb, list, &count);
    check_count(mrb, kind, count);
    for (mrb_int i = 0; i < RARRAY_LEN(rows); i++)
        check_row(mrb, RARRAY_PTR(rows)[i]);
    for (size_t k = 0; k < count && RARRAY_LEN(rows) > 0; k++)
        cells[k] = cell_of(mrb, mrb_ary_ref(mrb, rows, 0), mrb_ary_ref(mrb, list, (mrb_int)k));
    rq_client_table *t = rq__rows_table(mrb, name);
    rq__outcome o = rq__rows_begin(mrb);
    rq_mutate m = {.kind = (rq_mutate_kind)kind,
                   .cells = cells,
                   .cell_count = count,
                   .more = rq__slice_of(more)};
    rq_op_set_ctx(o.shell->op, &o);
    set_until(o.shell);
    rq_op_batch_begin(o.shell->op, t);
    rq_err rc = add_changes(o.shell->op, &m, cells, rows);
    if (rc == RQ_OK) rc = rq_op_batch_run(o.shell->op, take_nothing, rq__rows_ended);
    rq__rows_wait(mrb, &o, rc);
    return mrb_nil_value();
}

/* Rows.stale → whether rows of the last get, scan or count came from a replica. */
static mrb_value is_stale(mrb_state *mrb, mrb_value self)
{
    (void)self;
    return mrb_bool_value(rq__shell_of(mrb)->stale);
}

/* --- filters ---------------------------------------------------------------------------------- */

/* Rows.filter(text) → [class, bytes]: HBase's filter language. */
static mrb_value filter(mrb_state *mrb, mrb_value self)
{
    mrb_value text;
    rq_arena arena = {0};
    rq_slice name, bytes;
    rq_error why = {.code = RQ_OK};
    (void)self;
    mrb_get_args(mrb, "S", &text);
    rq_err rc = rq_filter_language_compile(rq__slice_of(text), &arena, &name, &bytes, &why);
    mrb_value list = mrb_nil_value();
    if (rc == RQ_OK) list = mrb_assoc_new(mrb, rq__string_of(mrb, name), rq__string_of(mrb, bytes));
    rq_arena_clear(&arena);
    if (rc != RQ_OK)
        rq__raise_failure(mrb, rc, "java.lang.IllegalArgumentException", rq_slice_cstr(why.message),
                          false);
    return list;
}

void rq__define_rows(mrb_state *mrb)
{
    struct RClass *rows = mrb_define_module(mrb, "Rows");
    mrb_define_module_function(mrb, rows, "get", get, MRB_ARGS_REQ(3) | MRB_ARGS_OPT(1));
    mrb_define_module_function(mrb, rows, "exists", exists, MRB_ARGS_REQ(3) | MRB_ARGS_OPT(1));
    mrb_define_module_function(mrb, rows, "mutate", mutate, MRB_ARGS_REQ(5));
    mrb_define_module_function(mrb, rows, "mutate_all", mutate_all, MRB_ARGS_REQ(5));
    mrb_define_module_function(mrb, rows, "stale", is_stale, MRB_ARGS_NONE());
    mrb_define_module_function(mrb, rows, "filter", filter, MRB_ARGS_REQ(1));
}
