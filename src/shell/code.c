/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles Ruby, and refuses code that mruby 3.1 compiles wrongly. mruby counts the literals of a unit of code (a file, a
 * statement, a block) in 16 bits, and does not notice when the count starts again at 0. The instructions then name
 * literals that the table does not have: running them would end the process by SIGSEGV. */
#include "shell/shell_priv.h"

#include "shell/rewrite.h"

#include <mruby/array.h>
#include <mruby/class.h>
#include <mruby/error.h>
#include <mruby/irep.h>
#include <mruby/opcode.h>
#include <mruby/proc.h>
#include <mruby/string.h>
#include <stddef.h>
#include <stdlib.h>

typedef struct instruction {
    unsigned code, a, b; /* its first two operands; 0 if it has fewer */
} instruction;

/* An operand of one byte; of two behind an EXT. */
static unsigned operand(const mrb_code **at, bool is_wide)
{
    unsigned v = is_wide ? (unsigned)PEEK_S(*at) : PEEK_B(*at);
    *at += is_wide ? 2 : 1;
    return v;
}

/* The sizes of the operands, in the letters of mruby/ops.h. */
static const char *const layouts[] = {
#define OPCODE(name, operands) #operands,
#include <mruby/ops.h>
#undef OPCODE
};

/* Returns the place behind the instruction that begins at `at`. */
static const mrb_code *read_instruction(const mrb_code *at, instruction *ret)
{
    unsigned values[3] = {0}, n = 0, code = *at++;
    bool wide_a = code == OP_EXT1 || code == OP_EXT3, wide_b = code == OP_EXT2 || code == OP_EXT3;
    if (wide_a || wide_b) code = *at++;
    for (const char *p = layouts[code]; *p != '\0' && *p != 'Z'; p++) {
        bool is_wide = *p == 'S' || (*p == 'B' && ((n == 0 && wide_a) || (n == 1 && wide_b)));
        if (*p == 'W') at++;
        values[n++] = operand(&at, is_wide || *p == 'W');
    }
    *ret = (instruction){code, values[0], values[1]};
    return at;
}

static bool has_its_literals(const mrb_irep *irep)
{
    const mrb_code *at = irep->iseq, *end = irep->iseq + irep->ilen;
    while (at < end) {
        instruction i;
        at = read_instruction(at, &i);
        bool names_b = i.code == OP_LOADL || i.code == OP_SYMBOL || i.code == OP_STRING;
        if (names_b && i.b >= irep->plen) return false;
        if (i.code == OP_ERR && i.a >= irep->plen) return false;
    }
    return true;
}

/* Recursive over nested units; mruby's compiler limits their depth. */
static bool is_sound(const mrb_irep *irep)
{
    if (!has_its_literals(irep)) return false;
    for (unsigned i = 0; i < irep->rlen; i++)
        if (!is_sound(irep->reps[i])) return false;
    return true;
}

/* --- a trial ----------------------------------------------------------------------------------- */

/* A text that is shorter has no 65,536 literals: a literal takes two bytes, and something between it and the next. */
#define MANY_LITERALS_BYTES ((size_t)3 << 16)

/* mruby also loses the memory of literals when their count starts again. So a long text is first compiled in a separate
 * mrb_state, only to check it; all memory of this state is in a list of blocks and freed afterwards. */
typedef struct links {
    struct links *before, *next;
} links;

typedef struct block {
    links links; /* first */
    size_t size;
    max_align_t bytes[];
} block;

typedef struct trial {
    links blocks; /* the list's head */
    size_t left;  /* bytes that it may still take */
} trial;

static void unlink_block(const block *b)
{
    b->links.before->next = b->links.next;
    b->links.next->before = b->links.before;
}

static void link_block(trial *t, block *b)
{
    links *l = &b->links;
    l->before = &t->blocks;
    l->next = t->blocks.next;
    l->next->before = l->before->next = l;
}

static void *allocate(mrb_state *mrb, void *p, size_t size, void *ctx)
{
    trial *t = ctx;
    block *b = p != NULL ? (block *)((char *)p - offsetof(block, bytes)) : NULL;
    size_t had = b != NULL ? b->size : 0;
    (void)mrb;
    if (size > had && size - had > t->left) return NULL;
    if (b != NULL) unlink_block(b);
    block *grown = NULL;
    if (size == 0)
        free(b);
    else
        grown = realloc(b, offsetof(block, bytes) + size);
    if (size > 0 && grown == NULL) {
        if (b != NULL) link_block(t, b);
        return NULL;
    }
    if (t->left != SIZE_MAX) t->left = t->left + had - size;
    if (grown == NULL) return NULL;
    grown->size = size;
    link_block(t, grown);
    return grown->bytes;
}

static bool compiles(trial *t, mrb_state *mrb, rq_slice text)
{
    mrbc_context *c = mrbc_context_new(mrb);
    c->capture_errors = true;
    struct mrb_parser_state *p = mrb_parse_nstring(mrb, (const char *)text.ptr, text.len, c);
    t->left = SIZE_MAX; /* as rq__compile */
    struct RProc *proc = p != NULL && p->nerr == 0 ? mrb_generate_code(mrb, p) : NULL;
    return proc != NULL && is_sound(proc->body.irep);
}

/* Whether the text, as rewrite.c has left it, has few enough literals. */
static bool has_room(const rq__shell *s, rq_slice text)
{
    if (text.len < MANY_LITERALS_BYTES) return true;
    trial t = {.left = rq__memory_left(&s->memory)};
    t.blocks.before = t.blocks.next = &t.blocks;
    mrb_state *mrb = mrb_open_core(allocate, &t);
    bool is_good = mrb != NULL && compiles(&t, mrb, text);
    while (t.blocks.next != &t.blocks) {
        block *b = RQ_CONTAINER_OF(t.blocks.next, block, links);
        unlink_block(b);
        free(b);
    }
    return is_good;
}

struct RProc *rq__compile(rq__shell *s, struct mrb_parser_state *p, rq_slice read, uint64_t line)
{
    if (!has_room(s, read)) return NULL;
    s->memory.compiles = true;
    struct RProc *proc = mrb_generate_code(s->mrb, p);
    s->memory.compiles = false;
    if (proc == NULL || !is_sound(proc->body.irep)) return NULL;
    rq__mark_lines(s->mrb, proc, line);
    return proc;
}

/* --- eval -------------------------------------------------------------------------------------- */

/* Replaces the first argument of the method that runs. */
static void replace_text(mrb_state *mrb, mrb_value text)
{
    mrb_callinfo *ci = mrb->c->ci;
    if (ci->n < 15) { /* otherwise the arguments are in an array, which may be the script's */
        ci->stack[1] = text;
        return;
    }
    mrb_value list = mrb_ary_new_from_values(mrb, mrb_get_argc(mrb), mrb_get_argv(mrb));
    mrb_ary_set(mrb, list, 0, text);
    mrb->c->ci->stack[1] = list;
}

/* Of the method that runs, if that is text and no block. */
static void take_text(mrb_state *mrb)
{
    rq__shell *s = rq__shell_of(mrb);
    if (mrb_get_argc(mrb) == 0 || !mrb_string_p(mrb_get_argv(mrb)[0])) return;
    rq_slice text = rq__slice_of(mrb_get_argv(mrb)[0]);
    if (rq__rewrite((const char *)text.ptr, text.len, 0, &s->rewritten) != RQ_OK)
        mrb_raise(mrb, E_RUNTIME_ERROR, "out of memory");
    bool is_changed = s->rewritten.len > 0;
    if (is_changed) text = rq_buf_slice(&s->rewritten);
    if (!has_room(s, text)) mrb_raise(mrb, mrb_class_get(mrb, "SyntaxError"), RQ__TOO_LARGE);
    if (is_changed) replace_text(mrb, mrb_str_new(mrb, (const char *)text.ptr, (mrb_int)text.len));
}

static mrb_value eval(mrb_state *mrb, mrb_value self)
{
    take_text(mrb);
    return rq__shell_of(mrb)->evals[0](mrb, self);
}

static mrb_value instance_eval(mrb_state *mrb, mrb_value self)
{
    take_text(mrb);
    return rq__shell_of(mrb)->evals[1](mrb, self);
}

static mrb_value class_eval(mrb_state *mrb, mrb_value self)
{
    take_text(mrb);
    return rq__shell_of(mrb)->evals[2](mrb, self);
}

static mrb_func_t function_of(mrb_state *mrb, struct RClass *c, const char *name)
{
    mrb_method_t m = mrb_method_search(mrb, c, mrb_intern_cstr(mrb, name));
    mrb_assert(MRB_METHOD_CFUNC_P(m));
    return MRB_METHOD_CFUNC(m);
}

void rq__define_eval(mrb_state *mrb)
{
    struct RClass *object = mrb_class_get(mrb, "BasicObject");
    mrb_func_t *own = rq__shell_of(mrb)->evals;
    own[0] = function_of(mrb, mrb->kernel_module, "eval");
    own[1] = function_of(mrb, object, "instance_eval");
    own[2] = function_of(mrb, mrb->module_class, "class_eval");
    mrb_define_module_function(mrb, mrb->kernel_module, "eval", eval, MRB_ARGS_ARG(1, 3));
    mrb_define_method(mrb, object, "instance_eval", instance_eval,
                      MRB_ARGS_OPT(3) | MRB_ARGS_BLOCK());
    for (size_t i = 0; i < 2; i++)
        mrb_define_method(mrb, mrb->module_class, i == 0 ? "class_eval" : "module_eval", class_eval,
                          MRB_ARGS_OPT(3) | MRB_ARGS_BLOCK());
}
