/* SPDX-License-Identifier: Apache-2.0 */
/* Statements: whether one is complete, and running it so that its local variables stay for the next. */
#include "shell/shell_priv.h"

#include "shell/rewrite.h"

#include <mruby/array.h>
#include <mruby/class.h>
#include <mruby/error.h>
#include <mruby/proc.h>
#include <mruby/string.h>
#include <stdio.h>
#include <stdlib.h>

static mrbc_context *context_of(rq__shell *s)
{
    if (s->locals == NULL) {
        s->locals = mrbc_context_new(s->mrb);
        s->locals->capture_errors = true;
        s->locals->keep_lv = true;
        mrbc_filename(s->mrb, s->locals, "(hbase)"); /* HBASE: irb's name of it */
    }
    return s->locals;
}

struct mrb_parser_state *rq__statement_parse(rq__shell *s, mrbc_context *c, rq_slice text,
                                             uint64_t line, rq_slice *ret_read)
{
    if (rq__rewrite((const char *)text.ptr, text.len, line, &s->rewritten) != RQ_OK) return NULL;
    if (s->rewritten.len > 0) text = rq_buf_slice(&s->rewritten);
    struct mrb_parser_state *p = mrb_parser_new(s->mrb);
    if (p == NULL) return NULL;
    p->s = (const char *)text.ptr;
    p->send = p->s + text.len;
    c->lineno = rq__line_for_mruby(line);
    mrb_parser_parse(p, c);
    *ret_read = text;
    return p;
}

/* The parser reached the end of the text in the middle of a construct. */
static bool wants_more(const struct mrb_parser_state *p)
{
    if (p->parsing_heredoc != NULL || p->lex_strterm != NULL) return true;
    if (p->nerr == 0) return false;
    for (size_t i = 0; i < p->nerr && i < RQ_ARRAY_LEN(p->error_buffer); i++) {
        const char *m = p->error_buffer[i].message;
        if (m != NULL &&
            (strstr(m, "unexpected $end") != NULL || strstr(m, "unexpected end of file") != NULL ||
             strstr(m, "unterminated") != NULL || strstr(m, "embedded document meets") != NULL ||
             strstr(m, "can't find string") != NULL))
            return true;
    }
    return false;
}

/* Whether the last line ends with a backslash, which continues the statement on the next line. (Commas and operators at
 * the end of a line are left to the parser: wants_more.) */
static bool ends_open(const char *text, size_t len)
{
    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
        len--;
    return len > 0 && text[len - 1] == '\\';
}

rq__statement rq__statement_of(const struct mrb_parser_state *p, const char *text, size_t len)
{
    if (p != NULL && (wants_more(p) || ends_open(text, len))) return RQ__STATEMENT_OPEN;
    return p == NULL || p->tree == NULL || p->nerr > 0 ? RQ__STATEMENT_WRONG : RQ__STATEMENT_WHOLE;
}

const char *rq__parser_error(const struct mrb_parser_state *p)
{
    const char *message = p->error_buffer[0].message;
    return message != NULL ? message : RQ__NO_MEMORY_TO_PARSE;
}

rq__statement rq__statement_check(rq__shell *s, rq_slice text, rq__parsed *ret, char **ret_error)
{
    rq__parsed found = {0};
    int arena = mrb_gc_arena_save(s->mrb);
    found.parser = rq__statement_parse(s, context_of(s), text, s->begin, &found.read);
    rq__statement what = rq__statement_of(found.parser, (const char *)text.ptr, text.len);
    *ret_error = NULL;
    if (what == RQ__STATEMENT_WHOLE) {
        *ret = found;
    } else if (found.parser != NULL) {
        if (what == RQ__STATEMENT_WRONG && found.parser->nerr > 0)
            *ret_error = strdup(rq__parser_error(found.parser));
        mrb_parser_free(found.parser);
    }
    mrb_gc_arena_restore(s->mrb, arena);
    return what;
}

#define ENVIRONMENT_MAX 255U /* mruby's: the length has eight bits */

/* The blocks of all statements share one environment, which the first block creates. The environment is widened to
 * include the variables of later statements; without that these variables would be nil in a block. */
static void widen_environment(mrb_state *mrb, unsigned locals)
{
    struct REnv *e = mrb_vm_ci_env(mrb->c->cibase);
    unsigned len = locals < ENVIRONMENT_MAX ? locals : ENVIRONMENT_MAX;
    if (e != NULL && MRB_ENV_LEN(e) < (mrb_int)len) MRB_ENV_SET_LEN(e, len);
}

/* Refuses a statement that was parsed but cannot be compiled: sets a SyntaxError in mrb->exc, and removes the
 * statement's new variables, so that they do not make the next statement fail. */
static void refuse(rq__shell *s)
{
    mrb_state *mrb = s->mrb;
    mrb_value text = mrb_str_new_cstr(mrb, RQ__TOO_LARGE);
    s->locals->slen = s->locals_seen;
    mrb->exc = mrb_obj_ptr(mrb_exc_new_str(mrb, mrb_class_get(mrb, "SyntaxError"), text));
}

mrb_value rq__statement_run(rq__shell *s, rq__parsed *statement)
{
    mrb_state *mrb = s->mrb;
    struct RProc *proc = rq__compile(s, statement->parser, statement->read, s->begin);
    mrb_parser_free(statement->parser);
    *statement = (rq__parsed){0};
    if (proc == NULL) {
        refuse(s);
        return mrb_nil_value();
    }
    struct RClass *target = mrb->object_class;
    MRB_PROC_SET_TARGET_CLASS(proc, target);
    /* The registers that hold the local variables of earlier statements are kept; others are nil. */
    unsigned keep = s->local_count;
    s->local_count = proc->body.irep->nlocals;
    widen_environment(mrb, s->local_count);
    s->memory.runs = true;
    mrb_value v = mrb_vm_run(mrb, proc, mrb_top_self(mrb), keep);
    s->memory.runs = false;
    return v;
}

static mrb_sym nameless(mrb_state *mrb, int number)
{
    char name[16];
    int n = snprintf(name, sizeof name, " %d", number);
    return mrb_intern(mrb, name, (size_t)n);
}

/* Of the top level; nil: none was assigned. */
static mrb_value variable(const rq__shell *s, int number)
{
    bool is_set = number >= 0 && (unsigned)number + 1 < s->local_count;
    return is_set ? s->mrb->c->cibase->stack[number + 1] : mrb_nil_value();
}

/* HBASE: HBASE-28660. The variable's register stays; its name becomes one that no script can write. */
void rq__statement_free_commands(rq__shell *s)
{
    mrb_state *mrb = s->mrb;
    mrbc_context *c = s->locals;
    if (c == NULL) return;
    mrb_value shell = mrb_obj_value(mrb_module_get(mrb, "Shell"));
    for (; s->locals_seen < c->slen; s->locals_seen++) {
        mrb_value name = mrb_symbol_value(c->syms[s->locals_seen]);
        mrb_value is_command =
            mrb_funcall(mrb, shell, "hides_command?", 2, name, variable(s, s->locals_seen));
        if (mrb->exc == NULL && mrb_test(is_command))
            c->syms[s->locals_seen] = nameless(mrb, s->locals_seen);
        mrb->exc = NULL;
    }
}
