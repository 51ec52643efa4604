/* SPDX-License-Identifier: Apache-2.0 */
/* `load`: runs a file at the top, in pieces (pieces.h), as one unit of code that has its own local variables.
 *
 * The file is read twice: as in Ruby, nothing of a file runs if a syntax error is anywhere in it.
 *
 * A piece is compiled as mruby compiles the text of `eval`: its local variables are those of an outer unit, `scope`, which never
 * runs, and their values are in `values`. So a variable and the blocks that use it live as long as in one unit. When a piece has
 * new variables, they are added to `scope`, and the piece is parsed again.
 *
 * mruby keeps the number of a line in 16 bits; the number of a piece's first line gives the other bits of a syntax error's
 * line, places.c those of a backtrace's. */
#include "shell/shell_priv.h"

#include "shell/pieces.h"

#include <errno.h>
#include <mruby/array.h>
#include <mruby/class.h>
#include <mruby/data.h>
#include <mruby/error.h>
#include <mruby/irep.h>
#include <mruby/proc.h>
#include <mruby/string.h>
#include <mruby/variable.h>
#include <stdlib.h>

#define VARIABLES_MAX 254U /* mruby numbers registers with 8 bits; the first is self */

/* The error of a pipe that gives more than its temporary copy may have. */
#define ENDLESS                                                                                    \
    "a pipe or device gives more than the memory for scripts allows (HBASE_HEAPSIZE); a file may " \
    "be longer"

/* The value of a piece that was not left by `return`. */
#define END_OF_PIECE "end of a piece"

typedef struct loading {
    mrb_state *mrb;
    char *path;
    rq__pieces pieces;
    mrbc_context *context;
    struct mrb_parser_state *parser; /* of the piece; NULL: none */
    rq_slice read;                   /* what it has parsed */
    mrb_irep *variables;             /* of `scope` */
    mrb_sym *names;                  /* of the variables; VARIABLES_MAX of them are allocated */
    struct RProc *scope;
    struct REnv *values;
    struct RProc *code; /* of the piece */
} loading;

static void drop_parser(loading *l)
{
    if (l->parser != NULL) mrb_parser_free(l->parser);
    l->parser = NULL;
}

static void finish(mrb_state *mrb, loading *l)
{
    drop_parser(l);
    rq__pieces_close(&l->pieces);
    if (l->context != NULL) mrbc_context_free(mrb, l->context);
    l->context = NULL;
    free(l->path);
    l->path = NULL;
}

/* Ruby's exceptions unwind this file's functions: the garbage collector frees what they leave. */
static void collect(mrb_state *mrb, void *p)
{
    finish(mrb, p);
    free(p);
}

static const mrb_data_type loading_type = {"loading", collect};

/* --- errors ----------------------------------------------------------------------------------- */

static _Noreturn void raise_wrong(loading *l, uint64_t line, const char *message)
{
    mrb_state *mrb = l->mrb;
    mrb_value number = mrb_int_value(mrb, (mrb_int)line);
    mrb_value text = mrb_format(mrb, "%s:%v: %s", l->path, number, message);
    mrb_exc_raise(mrb, mrb_exc_new_str(mrb, mrb_class_get(mrb, "SyntaxError"), text));
    __builtin_unreachable();
}

static _Noreturn void raise_syntax_error(loading *l)
{
    if (l->parser == NULL || l->parser->nerr == 0) raise_wrong(l, l->pieces.begin, "out of memory");
    const struct mrb_parser_message *m = &l->parser->error_buffer[0];
    raise_wrong(l, rq__line_of_mruby(l->pieces.begin, m->lineno), rq__parser_error(l->parser));
}

static void check_read(const loading *l)
{
    if (l->pieces.error == 0) return;
    if (l->pieces.error == ENOMEM)
        mrb_raisef(l->mrb, mrb_class_get(l->mrb, "NoMemoryError"), "%s: %s", l->path, RQ__TOO_LONG);
    mrb_raisef(l->mrb, mrb_class_get(l->mrb, "IOError"), "%s: %s", l->path,
               strerror(l->pieces.error));
}

/* --- parsing ---------------------------------------------------------------------------------- */

static void parse(loading *l)
{
    mrbc_context *c = l->context;
    drop_parser(l);
    mrb_free(l->mrb, c->syms);
    c->syms = NULL;
    c->slen = 0;
    c->upper = l->scope;
    l->parser = rq__statement_parse(rq__shell_of(l->mrb), c, rq_buf_slice(&l->pieces.text),
                                    l->pieces.begin, &l->read);
}

static void add_variables(loading *l)
{
    const mrbc_context *c = l->context;
    unsigned known = l->variables->nlocals - 1U;
    if (known + (unsigned)c->slen > VARIABLES_MAX) raise_wrong(l, l->pieces.begin, RQ__TOO_LARGE);
    memcpy(l->names + known, c->syms, (size_t)c->slen * sizeof *c->syms);
    l->variables->nlocals = (uint16_t)(1U + known + (unsigned)c->slen);
}

/* Reads and parses the next piece. False: the file is over. */
static bool next_piece(loading *l)
{
    rq__statement what = RQ__STATEMENT_OPEN;
    bool has_more = rq__pieces_next(&l->pieces);
    while (has_more && what == RQ__STATEMENT_OPEN) {
        const rq_buf *text = &l->pieces.text;
        parse(l);
        what = rq__statement_of(l->parser, (const char *)text->ptr, text->len);
        if (what == RQ__STATEMENT_OPEN) has_more = rq__pieces_more(&l->pieces);
    }
    check_read(l);
    if (l->pieces.text.len == 0) return false;
    if (l->parser == NULL || l->parser->nerr > 0 || l->parser->tree == NULL) raise_syntax_error(l);
    return true;
}

/* --- the scope -------------------------------------------------------------------------------- */

static void make_values(loading *l)
{
    mrb_state *mrb = l->mrb;
    struct REnv *e = (struct REnv *)mrb_obj_alloc(mrb, MRB_TT_ENV, NULL);
    MRB_ENV_CLOSE(e);
    e->stack = mrb_malloc(mrb, (1 + VARIABLES_MAX) * sizeof *e->stack);
    for (unsigned i = 0; i <= VARIABLES_MAX; i++)
        e->stack[i] = mrb_nil_value();
    e->stack[0] = mrb_top_self(mrb);
    e->c = mrb->object_class;
    e->cxt = NULL;
    MRB_ENV_SET_LEN(e, 1 + VARIABLES_MAX);
    MRB_ENV_SET_BIDX(e, 1);
    l->values = e;
}

/* A scope without variables, for one reading of the file. */
static void make_scope(loading *l)
{
    mrb_state *mrb = l->mrb;
    l->variables = mrb_add_irep(mrb);
    l->scope = mrb_proc_new(mrb, l->variables);
    mrb_irep_decref(mrb, l->variables);
    l->variables->lv = l->names = mrb_malloc(mrb, VARIABLES_MAX * sizeof *l->names);
    l->variables->nlocals = 1;
    l->scope->upper = NULL;
    l->scope->flags |= MRB_PROC_SCOPE;
    MRB_PROC_SET_TARGET_CLASS(l->scope, mrb->object_class);
}

/* --- running ---------------------------------------------------------------------------------- */

/* A `return` at the top ends the file. A piece with the word `return` gets END_OF_PIECE as its last value: if it ends with
 * another value, a `return` has ended the piece. Returns whether the piece has the word. */
static bool mark_end(loading *l)
{
    static const char mark[] = "\n:\"" END_OF_PIECE "\"\n";
    rq_buf *text = &l->pieces.text;
    if (memmem(text->ptr, text->len, "return", 6) == NULL) return false;
    if (rq_buf_append(text, mark, sizeof mark - 1) != RQ_OK)
        raise_wrong(l, l->pieces.begin, "out of memory");
    parse(l);
    if (l->parser == NULL || l->parser->nerr > 0) raise_syntax_error(l);
    return true;
}

static void compile(loading *l)
{
    mrb_state *mrb = l->mrb;
    l->code = rq__compile(rq__shell_of(mrb), l->parser, l->read, l->pieces.begin);
    if (l->code == NULL) raise_wrong(l, l->pieces.begin, RQ__TOO_LARGE);
    drop_parser(l);
    l->code->upper = l->scope;
    l->code->e.env = l->values;
    l->code->flags |= MRB_PROC_ENVSET;
    mrb_field_write_barrier(mrb, (struct RBasic *)l->code, (struct RBasic *)l->values);
}

static mrb_value run_code(mrb_state *mrb, void *data)
{
    const loading *l = data;
    mrb_value v = mrb_top_run(mrb, l->code, mrb_top_self(mrb), 0);
    if (mrb->exc != NULL) mrb_exc_raise(mrb, mrb_obj_value(mrb->exc));
    return v;
}

/* The line of the file that the entry of a backtrace names; 0: none. */
static uint64_t line_in(const loading *l, const char *entry)
{
    size_t n = strlen(l->path);
    if (strncmp(entry, l->path, n) != 0 || entry[n] != ':') return 0;
    return strtoull(entry + n + 1, NULL, 10);
}

/* Stores the exception's place, "PATH:LINE": the line of this file that raised it, or that called the code which raised
 * it. An exception that came through an inner `load` has its place already. */
static void set_place(loading *l, mrb_value e)
{
    mrb_state *mrb = l->mrb;
    mrb_sym name = mrb_intern_lit(mrb, "@place");
    if (!mrb_exception_p(e) || mrb_iv_defined(mrb, e, name)) return;
    mrb_value list = rq__backtrace_of(mrb, e);
    uint64_t line = 0;
    for (mrb_int i = 0; line == 0 && mrb_array_p(list) && i < RARRAY_LEN(list); i++)
        line = line_in(l, mrb_string_cstr(mrb, RARRAY_PTR(list)[i]));
    if (line == 0) line = l->pieces.begin;
    mrb_iv_set(mrb, e, name, mrb_format(mrb, "%s:%v", l->path, mrb_int_value(mrb, (mrb_int)line)));
}

/* False: the piece was left by `return`. */
static bool run_piece(loading *l)
{
    mrb_state *mrb = l->mrb;
    mrb_bool has_failed = false;
    bool is_marked = mark_end(l);
    compile(l);
    mrb_value v = mrb_protect_error(mrb, run_code, l, &has_failed);
    if (has_failed) {
        set_place(l, v);
        finish(mrb, l);
        mrb_exc_raise(mrb, v);
    }
    return !is_marked || (mrb_symbol_p(v) && mrb_symbol(v) == mrb_intern_lit(mrb, END_OF_PIECE));
}

/* Parses the whole file; runs its pieces if `runs`. */
static void read_file(loading *l, bool runs)
{
    mrb_state *mrb = l->mrb;
    bool goes_on = true;
    make_scope(l);
    int arena = mrb_gc_arena_save(mrb);
    while (goes_on && next_piece(l)) {
        rq__shell_check_interrupt(mrb);
        bool is_known = l->context->slen == 0;
        if (!is_known) add_variables(l);
        if (!is_known && runs) parse(l);
        if (runs) goes_on = run_piece(l);
        mrb_gc_arena_restore(mrb, arena);
    }
}

/* Ctrl-C ends the wait for the writer of a pipe, and for its text. */
static _Noreturn void refuse(mrb_state *mrb, const char *path, int error)
{
    rq__shell_check_interrupt(mrb);
    if (error == EFBIG)
        mrb_raisef(mrb, mrb_class_get(mrb, "NoMemoryError"), "%s: %s", path, ENDLESS);
    struct RClass *class = mrb_class_get(mrb, "LoadError");
    if (error == ENOENT || error == ENOTDIR || error == EISDIR)
        mrb_raisef(mrb, class, "no such file to load -- %s", path);
    mrb_raisef(mrb, class, "%s: %s", path, strerror(error));
    __builtin_unreachable();
}

static loading *begin(mrb_state *mrb, const char *path)
{
    loading *l = calloc(1, sizeof *l);
    if (l == NULL) mrb_raise(mrb, E_RUNTIME_ERROR, "out of memory");
    l->mrb = mrb;
    (void)mrb_data_object_alloc(mrb, mrb->object_class, l, &loading_type);
    l->path = strdup(path);
    rq__shell *shell = rq__shell_of(mrb);
    rq__pieces_limits limits = {rq__memory_for_text(&shell->memory), shell->memory.max,
                                &shell->interrupted};
    int error = l->path == NULL ? ENOMEM : rq__pieces_open(&l->pieces, path, &limits);
    if (error != 0) refuse(mrb, path, error);
    l->context = mrbc_context_new(mrb);
    l->context->capture_errors = true;
    mrbc_filename(mrb, l->context, path);
    return l;
}

/* Shell.load_file(path) */
static mrb_value load_file(mrb_state *mrb, mrb_value self)
{
    const char *path;
    (void)self;
    mrb_get_args(mrb, "z", &path);
    loading *l = begin(mrb, path);
    read_file(l, false);
    rq__pieces_restart(&l->pieces);
    make_values(l);
    read_file(l, true);
    finish(mrb, l);
    return mrb_true_value();
}

void rq__define_load(mrb_state *mrb)
{
    mrb_define_module_function(mrb, mrb_module_get(mrb, "Shell"), "load_file", load_file,
                               MRB_ARGS_REQ(1));
}
