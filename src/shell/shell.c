/* SPDX-License-Identifier: Apache-2.0 */
/* A session: starts Ruby, reads statements from a script, from standard input or at a prompt, runs
 * them and prints what irb prints. What is printed around them differs with the source, as in HBase's
 * shell: lines that come from no terminal are echoed behind their prompts.
 *
 *     lines ─► statement ─(complete?)─► run ─► "=> value"
 *                  └─ no: one more line          └─ exception: prelude/core.rb's Shell.failed
 */
#include "shell/shell_priv.h"

#include "shell/brackets.h"
#include "shell/line.h"
#include "shell/outline.h"
#include "shell/preludes.h"

#include <errno.h>
#include <locale.h>
#include <mruby/array.h>
#include <mruby/class.h>
#include <mruby/error.h>
#include <mruby/dump.h>
#include <mruby/irep.h>
#include <mruby/proc.h>
#include <mruby/string.h>
#include <mruby/variable.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes of a statement that are read for the wording of its error. */
#define TEXT_TOLD ((size_t)1 << 16)
/* Bytes of a buffer that the next statement uses again. */
#define TEXT_KEPT ((size_t)1 << 20)
/* A Ctrl-C that was not noticed for so long: the next one ends the process. */
#define STUCK_NS 1000000000

/* The session whose operation Ctrl-C ends; a signal handler has no argument. */
static rq__shell *current; /* written before signals are on */

/* Ruby that calls no server may not notice Ctrl-C: another one, a second later or more, ends the process. An impatient one does
 * not, nor one while a line is read: the terminal has then other modes. */
static void on_interrupt(int number)
{
    int64_t now = rq_client_now_ns();
    (void)number;
    if (!current->interrupted) current->interrupted_ns = now;
    bool is_stuck = current->interrupted && now - current->interrupted_ns >= STUCK_NS;
    if (is_stuck && !current->is_reading && current->display.pager == NULL) _exit(130);
    current->interrupted = 1;
}

/* --- Ruby ------------------------------------------------------------------------------------- */

static bool load(mrb_state *mrb, const char *name)
{
    for (size_t i = 0; i < rq__prelude_count; i++) {
        if (strcmp(rq__preludes[i].name, name) != 0) continue;
        int arena = mrb_gc_arena_save(mrb);
        mrb_irep *irep = mrb_read_irep_buf(mrb, rq__preludes[i].code, rq__preludes[i].len);
        if (irep == NULL) mrb_raisef(mrb, E_SCRIPT_ERROR, "cannot read prelude %s", name);
        struct RProc *proc = mrb_proc_new(mrb, irep);
        /* At the top, wherever it is loaded from. */
        proc->upper = NULL;
        MRB_PROC_SET_TARGET_CLASS(proc, mrb->object_class);
        mrb_irep_decref(mrb, irep);
        (void)mrb_top_run(mrb, proc, mrb_top_self(mrb), 0);
        mrb_gc_arena_restore(mrb, arena);
        return true;
    }
    return false;
}

/* Shell.load(name): a prelude that is needed now. */
static mrb_value load_prelude(mrb_state *mrb, mrb_value self)
{
    const char *name;
    (void)self;
    mrb_get_args(mrb, "z", &name);
    return mrb_bool_value(load(mrb, name));
}

static void set_arguments(rq__shell *s)
{
    mrb_value list = mrb_ary_new(s->mrb);
    for (int i = 0; i < s->options->argument_count; i++)
        mrb_ary_push(s->mrb, list, mrb_str_new_cstr(s->mrb, s->options->arguments[i]));
    mrb_define_global_const(s->mrb, "ARGV", list);
    const char *name = s->options->script != NULL ? s->options->script : "hbase";
    mrb_gv_set(s->mrb, mrb_intern_lit(s->mrb, "$0"), mrb_str_new_cstr(s->mrb, name));
    mrb_gv_set(s->mrb, mrb_intern_lit(s->mrb, "$PROGRAM_NAME"), mrb_str_new_cstr(s->mrb, name));
}

static bool start_ruby(rq__shell *s)
{
    s->mrb = rq__open_ruby(&s->memory);
    if (s->mrb == NULL) return false;
    s->mrb->ud = s;
    rq__define_messages(s->mrb);
    rq__define_calls(s->mrb);
    rq__define_rows(s->mrb);
    rq__define_scans(s->mrb);
    rq__define_bytes(s->mrb);
    rq__define_floats(s->mrb);
    rq__define_regexp(s->mrb);
    rq__define_times(s->mrb);
    rq__define_terminal(s->mrb);
    rq__define_web(s->mrb);
    rq__define_stat(s->mrb);
    rq__define_keys(s->mrb);
    rq__define_display(s->mrb);
    mrb_define_module_function(s->mrb, mrb_module_get(s->mrb, "Shell"), "load", load_prelude,
                               MRB_ARGS_REQ(1));
    rq__define_load(s->mrb);
    rq__define_eval(s->mrb);
    rq__define_places(s->mrb);
    set_arguments(s);
    (void)load(s->mrb, "core");
    if (s->mrb->exc != NULL) mrb_print_error(s->mrb);
    return s->mrb->exc == NULL;
}

/* Shell.NAME(argument); an exception of it is printed. */
static mrb_value ask(rq__shell *s, const char *name, mrb_value argument)
{
    mrb_value shell = mrb_obj_value(mrb_module_get(s->mrb, "Shell"));
    mrb_value v = mrb_funcall(s->mrb, shell, name, 1, argument);
    if (s->mrb->exc != NULL) mrb_print_error(s->mrb);
    s->mrb->exc = NULL;
    return v;
}

/* --- sources of lines ------------------------------------------------------------------------- */

typedef struct source {
    FILE *file; /* lines; NULL: the prompt */
    rq__prompt *prompt;
    bool is_script;            /* errors are printed by the official shell's handler */
    bool is_terminal;          /* `file` is one */
    bool is_waiting;           /* a read of `file` may wait: what was printed must be seen first */
    rq_buf read;               /* the last line of `file` */
    const char *line;          /* the last line */
    size_t len;                /* its length; it may have NUL bytes in a file */
    int error;                 /* errno of a read */
    rq__outline_place outline; /* of the statement */
    rq__brackets brackets;     /* likewise */
} source;

/* How the next line came. */
typedef enum next {
    LINE,
    NO_LINE, /* the input is over */
    CTRL_C,  /* instead of a line */
    TOO_LONG,
    BROKEN, /* the input cannot be read: source.error */
} next;

typedef enum fate {
    GO_ON,
    END, /* of the input, or exit */
    FAILED,
} fate;

static void prompt_text(const rq__shell *s, source *from, const rq_buf *statement, char *to,
                        size_t size)
{
    rq__outline o = {0};
    if (statement->len > 0)
        o = rq__outline_from(&from->outline, (const char *)statement->ptr, statement->len);
    const char kind[] = {o.string, '\0'};
    if (o.string != 0)
        snprintf(to, size, "hbase:%03d:%d%s ", s->line, o.depth, kind);
    else if (statement->len == 0 || o.goes_on || o.depth == 0 || s->at_prompt)
        snprintf(to, size, "hbase:%03d:%d%s ", s->line, o.depth, statement->len == 0 ? ">" : "*");
    else
        to[0] = '\0'; /* HBASE: irb's prompt is not set */
}

/* What the session prints between statements: into $stdout, which a script may have replaced. */
static void print(rq__shell *s, const char *text, size_t len)
{
    mrb_state *mrb = s->mrb;
    mrb_value top = mrb_obj_value(mrb->object_class);
    mrb_value to = mrb_gv_get(mrb, mrb_intern_lit(mrb, "$stdout"));
    mrb_sym name = mrb_intern_lit(mrb, "STDOUT");
    /* Scripts can remove a constant; one that is missing would be an exception. */
    if (mrb_const_defined(mrb, top, name) &&
        mrb_obj_equal(mrb, to, mrb_const_get(mrb, top, name))) {
        (void)fwrite(text, 1, len, stdout);
        return;
    }
    int arena = mrb_gc_arena_save(mrb);
    (void)mrb_funcall(mrb, to, "write", 1, mrb_str_new(mrb, text, (mrb_int)len));
    if (mrb->exc != NULL) mrb_print_error(mrb);
    mrb->exc = NULL;
    mrb_gc_arena_restore(mrb, arena);
}

/* --- lines ------------------------------------------------------------------------------------ */

static next line_of_prompt(source *from, const char *prompt)
{
    bool is_interrupted;
    from->line = rq__prompt_line(from->prompt, prompt, &is_interrupted);
    from->len = from->line != NULL ? strlen(from->line) : 0;
    if (is_interrupted) return CTRL_C;
    return from->line != NULL ? LINE : NO_LINE;
}

/* From now on Ctrl-C drops the statement that is typed. Called before the prompt is written: the user may answer it with
 * Ctrl-C before the shell waits for the line. */
static void begin_line_of_terminal(rq__shell *s)
{
    s->interrupted = 0;
    s->is_reading = 1;
}

/* Without libedit, because standard output goes elsewhere. As in irb, Ctrl-C drops the statement and not the session; the
 * terminal has echoed it as ^C. REQUIRES: begin_line_of_terminal. */
static next line_of_terminal(rq__shell *s, source *from)
{
    rq__line_await(STDIN_FILENO, &s->interrupted);
    rq_err rc = RQ_E_IO;
    if (!s->interrupted)
        rc = rq__line_read(from->file, rq__memory_for_text(&s->memory), &from->read);
    s->is_reading = 0;
    bool is_interrupted = s->interrupted != 0;
    s->interrupted = 0;
    if (rc == RQ_OK) return LINE;
    clearerr(from->file);
    if (rc == RQ_E_NO_MEMORY) return TOO_LONG;
    print(s, "\n", 1);
    return is_interrupted ? CTRL_C : NO_LINE;
}

static next line_of_file(rq__shell *s, source *from)
{
    rq_err rc = rq__line_read(from->file, rq__memory_for_text(&s->memory), &from->read);
    from->error = errno;
    if (rc == RQ_E_NO_MEMORY) return TOO_LONG;
    if (rc == RQ_E_IO && from->error != EBADF) return BROKEN; /* EBADF: <&- is empty input */
    if (rc != RQ_OK) {
        print(s, "\n", 1);
        return NO_LINE;
    }
    /* Nothing behind a last line without its end; irb prints none either. */
    print(s, (const char *)from->read.ptr, from->read.len);
    return LINE;
}

static next next_line(rq__shell *s, source *from, const rq_buf *statement)
{
    char prompt[64];
    prompt_text(s, from, statement, prompt, sizeof prompt);
    s->line++;
    if (from->prompt != NULL) return line_of_prompt(from, prompt);
    print(s, prompt, strlen(prompt));
    if (from->is_terminal) begin_line_of_terminal(s);
    if (from->is_waiting) (void)rq__display_written();
    next n = from->is_terminal ? line_of_terminal(s, from) : line_of_file(s, from);
    from->line = n == LINE ? (const char *)from->read.ptr : NULL;
    from->len = n == LINE ? from->read.len : 0;
    return n;
}

/* --- statements ------------------------------------------------------------------------------- */

/* A value is printed by inspect, unless it is nil. mrb->exc is set if that raised. */
static void print_value(rq__shell *s, mrb_value v)
{
    if (mrb_nil_p(v)) return;
    mrb_value shell = mrb_obj_value(mrb_module_get(s->mrb, "Shell"));
    mrb_value text = mrb_funcall(s->mrb, shell, "show", 1, v);
    if (s->mrb->exc != NULL || !mrb_string_p(text)) return;
    print(s, "=> ", 3);
    print(s, RSTRING_PTR(text), (size_t)RSTRING_LEN(text));
    print(s, "\n", 1);
}

/* How the session goes on after an exception; the statement is needed for Ruby's wording of the
 * message. */
static fate take_exception(rq__shell *s, const rq_buf *statement, bool is_script)
{
    mrb_value e = mrb_obj_value(s->mrb->exc);
    s->mrb->exc = NULL;
    size_t told = statement->len < TEXT_TOLD ? statement->len : TEXT_TOLD;
    mrb_value text = mrb_str_new(s->mrb, (const char *)statement->ptr, (mrb_int)told);
    mrb_value shell = mrb_obj_value(mrb_module_get(s->mrb, "Shell"));
    mrb_value verdict = mrb_funcall(s->mrb, shell, "failed", 3, e, text, mrb_bool_value(is_script));
    if (s->mrb->exc != NULL) mrb_print_error(s->mrb);
    s->mrb->exc = NULL;
    if (mrb_symbol_p(verdict)) {
        const char *name = mrb_sym_name(s->mrb, mrb_symbol(verdict));
        if (strcmp(name, "exit") == 0) return END;
        if (strcmp(name, "fail") == 0) return FAILED;
    }
    return GO_ON;
}

static fate run(rq__shell *s, const rq_buf *statement, rq__parsed *parsed, bool is_script)
{
    int arena = mrb_gc_arena_save(s->mrb);
    fate f = GO_ON;
    int64_t begun = rq_client_now_ns();
    mrb_value v = rq__statement_run(s, parsed);
    rq__display_end(s);
    if (s->mrb->exc == NULL) print_value(s, v);
    if (s->mrb->exc != NULL) f = take_exception(s, statement, is_script);
    rq__statement_free_commands(s);
    (void)ask(s, "took", mrb_float_value(s->mrb, (double)(rq_client_now_ns() - begun) / 1e9));
    mrb_gc_arena_restore(s->mrb, arena);
    return rq__display_written() ? f : FAILED;
}

static const rq_buf none = {.ptr = (uint8_t *)""}; /* no statement */

/* The statement fails before it runs. */
static fate refuse(rq__shell *s, const char *kind, const char *error, const rq_buf *statement,
                   bool is_script)
{
    mrb_value text = mrb_str_new_cstr(s->mrb, error);
    s->mrb->exc = mrb_obj_ptr(mrb_exc_new_str(s->mrb, mrb_class_get(s->mrb, kind), text));
    return take_exception(s, statement, is_script);
}

static fate wrong(rq__shell *s, const char *error, const rq_buf *statement, bool is_script)
{
    if (error != NULL && strcmp(error, RQ__NO_MEMORY_TO_PARSE) == 0)
        return refuse(s, "NoMemoryError", RQ__TOO_LONG, statement, is_script);
    return refuse(s, "SyntaxError", error != NULL ? error : "syntax error", statement, is_script);
}

/* Gives the memory of a long statement back. */
static void begin_text(rq__shell *s, source *from, rq_buf *text)
{
    rq_buf *const used[] = {text, &from->read, &s->rewritten};
    for (size_t i = 0; i < RQ_ARRAY_LEN(used); i++) {
        if (used[i]->cap > TEXT_KEPT) rq_buf_clear(used[i]);
        rq_buf_reset(used[i]);
    }
    from->outline = (rq__outline_place){0};
    from->brackets = (rq__brackets){0};
    s->begin = (uint64_t)s->line;
}

/* Appends the line to the statement, and charges both to the memory of scripts. False: they do not fit. */
static bool add_line(rq__shell *s, const source *from, rq_buf *text)
{
    if (text->len + from->len > rq__memory_for_text(&s->memory)) return false;
    if (rq_buf_append(text, from->line, from->len) != RQ_OK) return false;
    return rq__memory_hold(&s->memory, text->cap + from->read.cap + s->rewritten.cap);
}

static fate too_long(rq__shell *s, const source *from)
{
    return refuse(s, "NoMemoryError", RQ__TOO_LONG, &none, from->is_script);
}

static fate broken(rq__shell *s, const source *from)
{
    char text[512];
    const char *name = from->is_script ? s->options->script : "standard input";
    snprintf(text, sizeof text, "%.400s: %s", name, strerror(from->error));
    (void)refuse(s, "IOError", text, &none, from->is_script);
    return FAILED;
}

static bool is_blank(const char *line)
{
    return line[strspn(line, " \t\r\n")] == '\0';
}

/* One statement: its lines are read until it is complete. */
static fate statement(rq__shell *s, source *from, rq_buf *text)
{
    char *error = NULL;
    rq__parsed parsed = {0};
    fate f = GO_ON;
    begin_text(s, from, text);
    for (;;) {
        next n = next_line(s, from, text);
        const char *line = from->line;
        if (n == CTRL_C) return GO_ON;
        if (n == TOO_LONG) return too_long(s, from);
        if (n == BROKEN) return broken(s, from);
        if (line == NULL && text->len == 0) return END;
        if (line != NULL && text->len == 0 && is_blank(line)) return GO_ON;
        if (line != NULL && text->len == 0 && line[0] == '\\') {
            mrb_value end = ask(s, "meta", mrb_str_new_cstr(s->mrb, line));
            rq__display_end(s);
            rq__prompt_remember(from->prompt, line);
            (void)fflush(stdout);
            return mrb_symbol_p(end) ? END : GO_ON;
        }
        if (line != NULL && !add_line(s, from, text)) return too_long(s, from);
        if (line != NULL && rq__brackets_wait(&from->brackets, (const char *)text->ptr, text->len))
            continue;
        if (rq_buf_append_u8(text, 0) != RQ_OK) return FAILED;
        text->len--;
        rq__statement what = rq__statement_check(s, rq_buf_slice(text), &parsed, &error);
        if (what == RQ__STATEMENT_OPEN && line != NULL) continue;
        rq__prompt_remember(from->prompt, (const char *)text->ptr);
        f = what == RQ__STATEMENT_WHOLE ? run(s, text, &parsed, from->is_script)
                                        : wrong(s, error, text, from->is_script);
        free(error);
        return f;
    }
}

static fate statements(rq__shell *s, source *from)
{
    rq_buf text = {0};
    fate f = GO_ON;
    while (f == GO_ON)
        f = statement(s, from, &text);
    rq_buf_clear(&text);
    rq_buf_clear(&from->read);
    return f;
}

/* --- sources ---------------------------------------------------------------------------------- */

static fate run_script(rq__shell *s)
{
    source from = {.file = fopen(s->options->script, "re"), .is_script = true};
    if (from.file == NULL) {
        printf("ERROR LoadError: no such file to load -- %s\n", s->options->script);
        return FAILED;
    }
    fate f = statements(s, &from);
    (void)fclose(from.file);
    return f;
}

/* The whole file at once, as Ruby itself runs one. */
static fate run_plain(rq__shell *s)
{
    mrb_value shell = mrb_obj_value(mrb_module_get(s->mrb, "Shell"));
    mrb_value script = mrb_str_new_cstr(s->mrb, s->options->script);
    s->memory.runs = true;
    (void)mrb_funcall(s->mrb, shell, "run_file", 1, script);
    s->memory.runs = false;
    if (s->mrb->exc == NULL) return END;
    return take_exception(s, &none, false) == END ? END : FAILED;
}

static fate run_input(rq__shell *s)
{
    struct stat st;
    source from = {.file = stdin, .is_terminal = isatty(STDIN_FILENO)};
    /* await_line sees only what the system holds. */
    if (from.is_terminal) (void)setvbuf(stdin, NULL, _IONBF, 0);
    from.is_waiting = fstat(STDIN_FILENO, &st) != 0 || !S_ISREG(st.st_mode);
    s->is_typed = from.is_terminal;
    s->at_prompt = s->is_typed && isatty(STDOUT_FILENO);
    if (s->at_prompt) from.prompt = rq__prompt_open(s);
    if (from.prompt != NULL) from.file = NULL;
    if (!s->options->non_interactive) (void)ask(s, "banner", mrb_nil_value());
    fate f = statements(s, &from);
    rq__prompt_close(from.prompt);
    return f;
}

/* The number that exit was called with; -1: it was not. */
static int exit_code(rq__shell *s)
{
    mrb_value v = ask(s, "exit_code", mrb_nil_value());
    return mrb_integer_p(v) ? (int)mrb_integer(v) : -1;
}

static int run_sources(rq__shell *s)
{
    fate f = GO_ON;
    s->line = 1;
    if (s->options->script != NULL) {
        f = s->options->plain ? run_plain(s) : run_script(s);
        if (f == FAILED) return 1;
        int code = exit_code(s);
        if (code >= 0 || s->options->plain) return code >= 0 ? code : 0;
        s->line = 1;
    }
    f = run_input(s);
    if (f == FAILED) return 1;
    int code = exit_code(s);
    return s->options->non_interactive && code >= 0 ? code : 0; /* HBASE: so is irb's end */
}

static int run_session(rq__shell *s)
{
    int code = run_sources(s);
    (void)ask(s, "run_endings", mrb_nil_value());
    return rq__display_written() || code != 0 ? code : 1;
}

static void clear(rq__shell *s)
{
    rq__shell_disconnect(s);
    if (s->locals != NULL) mrbc_context_free(s->mrb, s->locals);
    if (s->mrb != NULL) mrb_close(s->mrb);
    rq_buf_clear(&s->request);
    rq_buf_clear(&s->answer);
    rq_buf_clear(&s->more);
    rq_buf_clear(&s->rows);
    rq_buf_clear(&s->rewritten);
    rq_buf_clear(&s->display.held);
}

/* In a single-byte locale the prompt would drop all non-ASCII characters that are typed or pasted. */
static void set_locale(void)
{
    if (setlocale(LC_CTYPE, "") == NULL || MB_CUR_MAX == 1) (void)setlocale(LC_CTYPE, "C.UTF-8");
}

int rq_shell_run(const rq_shell_options *o)
{
    rq__shell s = {.options = o};
    int code = 1;
    current = &s;
    const struct sigaction act = {.sa_handler = on_interrupt};
    if (isatty(STDIN_FILENO)) (void)sigaction(SIGINT, &act, NULL);
    (void)signal(SIGXFSZ, SIG_IGN); /* too long a file is an error of the write */
    set_locale();
    if (start_ruby(&s)) code = run_session(&s);
    (void)fflush(stdout);
    clear(&s);
    if (isatty(STDIN_FILENO)) (void)signal(SIGINT, SIG_DFL); /* `current` ends */
    return code;
}
