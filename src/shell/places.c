/* SPDX-License-Identifier: Apache-2.0 */
/* Places in Ruby's code: the entries of backtraces, the file that a method was called from.
 *
 * mruby keeps the number of a line in 16 bits. The other bits are in the name of the file, in mruby's debug information of a
 * unit of code that begins behind line 32,767 (rq__line_for_mruby):
 *
 *     "load.rb", line 70,003  ─►  "load.rb<MARK>2", line 4,468  ─►  "load.rb:70003"
 *
 * So a unit of code, which is a statement, may have 32,768 lines; in a longer one, the line numbers of backtraces may
 * be 65,536 too low. */
#include "shell/shell_priv.h"

#include <mruby/irep.h> /* before debug.h, which needs it */

#include <mruby/array.h>
#include <mruby/class.h>
#include <mruby/debug.h>
#include <mruby/error.h>
#include <mruby/proc.h>
#include <mruby/string.h>
#include <mruby/variable.h>
#include <stdio.h>
#include <stdlib.h>

#define MARK '\x1f'

/* --- numbers of lines ------------------------------------------------------------------------- */

/* Recursive over nested units; mruby's compiler limits their depth. */
static void rename_files(const mrb_irep *irep, mrb_sym name)
{
    const mrb_irep_debug_info *d = irep->debug_info;
    for (uint16_t i = 0; d != NULL && i < d->flen; i++)
        d->files[i]->filename_sym = name;
    for (uint16_t i = 0; i < irep->rlen; i++)
        rename_files(irep->reps[i], name);
}

void rq__mark_lines(mrb_state *mrb, const struct RProc *code, uint64_t first)
{
    const mrb_irep_debug_info *d = code->body.irep->debug_info;
    char part[24];
    uint64_t rest = first >> RQ__LINE_BITS;
    if (rest == 0 || d == NULL || d->flen == 0) return;
    snprintf(part, sizeof part, "%c%llu", MARK, (unsigned long long)rest);
    int arena = mrb_gc_arena_save(mrb);
    mrb_value name = mrb_format(mrb, "%n%s", d->files[0]->filename_sym, part);
    rename_files(code->body.irep, mrb_intern_str(mrb, name));
    mrb_gc_arena_restore(mrb, arena);
}

/* The text with the number of the line that has a mark. */
static mrb_value without_mark(mrb_state *mrb, mrb_value text)
{
    const char *begin = mrb_string_cstr(mrb, text), *mark = strchr(begin, MARK);
    char *end;
    if (mark == NULL) return text;
    uint64_t first = (uint64_t)strtoull(mark + 1, &end, 10) << RQ__LINE_BITS;
    if (*end != ':') return mrb_str_new(mrb, begin, mark - begin);
    uint16_t number = (uint16_t)strtoul(end + 1, &end, 10);
    uint64_t line = rq__line_of_mruby(first, number);
    return mrb_format(mrb, "%l:%v%s", begin, (size_t)(mark - begin),
                      mrb_int_value(mrb, (mrb_int)line), end);
}

/* Shell.place(text) */
static mrb_value place(mrb_state *mrb, mrb_value self)
{
    mrb_value text;
    (void)self;
    mrb_get_args(mrb, "S", &text);
    return without_mark(mrb, text);
}

/* --- backtraces ------------------------------------------------------------------------------- */

/* "FILE:LINE:in `METHOD'", as Ruby writes what is "FILE:LINE:in METHOD" in mruby. */
static mrb_value entry_of(mrb_state *mrb, mrb_value text)
{
    text = without_mark(mrb, text);
    const char *begin = mrb_string_cstr(mrb, text), *in = strstr(begin, ":in ");
    if (in == NULL) return text;
    return mrb_format(mrb, "%l:in `%s'", begin, (size_t)(in - begin), in + strlen(":in "));
}

static void correct(mrb_state *mrb, mrb_value list)
{
    int arena = mrb_gc_arena_save(mrb);
    for (mrb_int i = 0; mrb_array_p(list) && i < RARRAY_LEN(list); i++) {
        mrb_ary_set(mrb, list, i, entry_of(mrb, mrb_ary_ref(mrb, list, i)));
        mrb_gc_arena_restore(mrb, arena);
    }
}

mrb_value rq__backtrace_of(mrb_state *mrb, mrb_value e)
{
    /* mruby keeps the array that it has made. One that a script has set stays. */
    bool is_made = mrb_array_p(mrb_iv_get(mrb, e, mrb_intern_lit(mrb, "backtrace")));
    mrb_value list = mrb_exc_backtrace(mrb, e);
    if (!is_made) correct(mrb, list);
    return list;
}

static mrb_value caller(mrb_state *mrb, mrb_value self)
{
    mrb_value list = rq__shell_of(mrb)->caller(mrb, self);
    correct(mrb, list);
    return list;
}

/* --- files ------------------------------------------------------------------------------------ */

/* The file of the Ruby code that has called the method that runs. */
static mrb_value calling_file(mrb_state *mrb)
{
    const mrb_callinfo *ci = mrb->c->ci - 1;
    while (ci > mrb->c->cibase && (ci->proc == NULL || MRB_PROC_CFUNC_P(ci->proc)))
        ci--;
    const mrb_irep *irep =
        ci->proc != NULL && !MRB_PROC_CFUNC_P(ci->proc) ? ci->proc->body.irep : NULL;
    const char *name = irep != NULL ? mrb_debug_get_filename(mrb, irep, 0) : NULL;
    return without_mark(mrb, mrb_str_new_cstr(mrb, name != NULL ? name : ""));
}

/* __dir__: the folder of the code's file; of code that is in no file, the current folder. */
static mrb_value calling_folder(mrb_state *mrb, mrb_value self)
{
    mrb_value file = mrb_obj_value(mrb_class_get(mrb, "File"));
    (void)self;
    mrb_value path = mrb_funcall(mrb, file, "expand_path", 1, calling_file(mrb));
    return mrb_funcall(mrb, file, "dirname", 1, path);
}

/* require_relative(name). HBASE: at irb's prompt, and in a text for eval, it is an error. */
static mrb_value require_relative(mrb_state *mrb, mrb_value self)
{
    mrb_value name;
    mrb_get_args(mrb, "S", &name);
    if (*mrb_string_cstr(mrb, calling_file(mrb)) == '(')
        mrb_raise(mrb, mrb_class_get(mrb, "LoadError"), "cannot infer basepath");
    mrb_value path = calling_folder(mrb, self);
    path = mrb_str_cat_str(mrb, mrb_str_cat_lit(mrb, path, "/"), name);
    return mrb_funcall(mrb, self, "require", 1, path);
}

void rq__define_places(mrb_state *mrb)
{
    struct RClass *kernel = mrb->kernel_module;
    mrb_method_t m = mrb_method_search(mrb, kernel, mrb_intern_lit(mrb, "caller"));
    mrb_assert(MRB_METHOD_CFUNC_P(m));
    rq__shell_of(mrb)->caller = MRB_METHOD_CFUNC(m);
    mrb_define_method(mrb, kernel, "caller", caller, MRB_ARGS_OPT(2));
    mrb_define_method(mrb, kernel, "__dir__", calling_folder, MRB_ARGS_NONE());
    mrb_define_method(mrb, kernel, "require_relative", require_relative, MRB_ARGS_REQ(1));
    mrb_define_method(mrb, mrb->eException_class, "backtrace", rq__backtrace_of, MRB_ARGS_NONE());
    mrb_define_module_function(mrb, mrb_module_get(mrb, "Shell"), "place", place, MRB_ARGS_REQ(1));
}
