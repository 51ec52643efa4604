/* SPDX-License-Identifier: Apache-2.0 */
/* What the preludes ask of process and terminal. */
#include "shell/shell_priv.h"

#include "base/suggest.h"
#include "shell/line.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <mruby/array.h>
#include <mruby/class.h>
#include <mruby/error.h>
#include <mruby/string.h>
#include <mruby/variable.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Shell.width: the columns of the terminal on standard output, which may change; 0: not a terminal. Each command asks.
 * HBASE: jline reports 80 if it does not know. */
static mrb_value width(mrb_state *mrb, mrb_value self)
{
    struct winsize w = {0};
    (void)self;
    if (!rq__shell_of(mrb)->display.is_terminal) return mrb_int_value(mrb, 0);
    (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &w);
    return mrb_int_value(mrb, w.ws_col > 0 ? w.ws_col : 80);
}

/* Shell.print(text): to standard output, which C writes too. */
static mrb_value print(mrb_state *mrb, mrb_value self)
{
    mrb_value text;
    (void)self;
    mrb_get_args(mrb, "S", &text);
    rq__display_print(mrb, RSTRING_PTR(text), (size_t)RSTRING_LEN(text));
    return mrb_nil_value();
}

/* Shell.nearest(word, words) → the word of the list that was probably meant; nil: none. */
static mrb_value nearest(mrb_state *mrb, mrb_value self)
{
    const char *word;
    mrb_value list;
    (void)self;
    mrb_get_args(mrb, "zA", &word, &list);
    rq_suggestion s = rq_suggest(word);
    for (mrb_int i = 0; i < RARRAY_LEN(list); i++)
        rq_suggest_consider(&s, mrb_string_value_cstr(mrb, &RARRAY_PTR(list)[i]));
    return s.best == NULL ? mrb_nil_value() : mrb_str_new_cstr(mrb, s.best);
}

static mrb_value warn(mrb_state *mrb, mrb_value self)
{
    mrb_value text;
    (void)self;
    mrb_get_args(mrb, "S", &text);
    rq__display_flush(rq__shell_of(mrb));
    (void)fwrite(RSTRING_PTR(text), 1, (size_t)RSTRING_LEN(text), stderr);
    return mrb_nil_value();
}

static mrb_value flush(mrb_state *mrb, mrb_value self)
{
    (void)self;
    rq__display_flush(rq__shell_of(mrb));
    return mrb_nil_value();
}

/* Shell.read_line → the next line of standard input with its newline; nil: the end. Ctrl-C raises Interrupt. */
static mrb_value read_line(mrb_state *mrb, mrb_value self)
{
    rq__shell *s = rq__shell_of(mrb);
    (void)self;
    rq__display_flush(s);
    bool is_terminal = isatty(STDIN_FILENO);
    if (is_terminal) rq__line_await(STDIN_FILENO, &s->interrupted);
    rq__shell_check_interrupt(mrb);
    rq_err rc = rq__line_read(stdin, rq__memory_for_text(&s->memory), &s->answer);
    if (rc != RQ_OK && is_terminal) clearerr(stdin); /* Ctrl-D ends one answer */
    rq__shell_check_interrupt(mrb);
    if (rc == RQ_E_NO_MEMORY) mrb_raise(mrb, mrb_class_get(mrb, "NoMemoryError"), RQ__TOO_LONG);
    return rc != RQ_OK ? mrb_nil_value()
                       : mrb_str_new(mrb, (const char *)s->answer.ptr, (mrb_int)s->answer.len);
}

/* Shell.glob(pattern): paths, sorted; {a,b} are alternatives. */
static mrb_value glob_paths(mrb_state *mrb, mrb_value self)
{
    const char *pattern;
    glob_t found = {0};
    (void)self;
    mrb_get_args(mrb, "z", &pattern);
    int rc = glob(pattern, GLOB_BRACE, NULL, &found);
    mrb_value list = mrb_ary_new(mrb);
    for (size_t i = 0; rc == 0 && i < found.gl_pathc; i++)
        mrb_ary_push(mrb, list, mrb_str_new_cstr(mrb, found.gl_pathv[i]));
    globfree(&found);
    if (rc != 0 && rc != GLOB_NOMATCH) mrb_raisef(mrb, E_RUNTIME_ERROR, "cannot list %s", pattern);
    return list;
}

static mrb_value make_folder(mrb_state *mrb, mrb_value self)
{
    const char *path;
    (void)self;
    mrb_get_args(mrb, "z", &path);
    if (mkdir(path, 0777) != 0) mrb_raisef(mrb, E_RUNTIME_ERROR, "%s - %s", strerror(errno), path);
    return mrb_nil_value();
}

static mrb_value remove_folder(mrb_state *mrb, mrb_value self)
{
    const char *path;
    (void)self;
    mrb_get_args(mrb, "z", &path);
    if (rmdir(path) != 0) mrb_raisef(mrb, E_RUNTIME_ERROR, "%s - %s", strerror(errno), path);
    return mrb_nil_value();
}

/* Of a new file. */
static mode_t mode_by_umask(void)
{
    mode_t mask = umask(0);
    (void)umask(mask);
    return 0666 & ~mask;
}

/* Shell.replace_file(draft, path): makes the draft durable, and gives it its name and the mode of the file that had it. */
static mrb_value replace_file(mrb_state *mrb, mrb_value self)
{
    const char *draft, *path;
    struct stat st;
    (void)self;
    mrb_get_args(mrb, "zz", &draft, &path);
    int fd = open(draft, O_WRONLY | O_CLOEXEC);
    bool is_good = fd >= 0 &&
                   fchmod(fd, stat(path, &st) == 0 ? st.st_mode & 0777 : mode_by_umask()) == 0 &&
                   fsync(fd) == 0 && rename(draft, path) == 0;
    int error = errno;
    if (fd >= 0) (void)close(fd);
    errno = error;
    if (!is_good) mrb_sys_fail(mrb, path);
    return mrb_nil_value();
}

/* Shell.set_environment(name, value); nil: removes it. */
static mrb_value set_environment(mrb_state *mrb, mrb_value self)
{
    const char *name, *value;
    (void)self;
    mrb_get_args(mrb, "zz!", &name, &value);
    if ((value != NULL ? setenv(name, value, 1) : unsetenv(name)) != 0)
        mrb_raisef(mrb, E_ARGUMENT_ERROR, "not a variable's name: %s", name);
    tzset();
    return mrb_nil_value();
}

/* Shell.environment(name); nil: not set. */
static mrb_value environment(mrb_state *mrb, mrb_value self)
{
    const char *name;
    (void)self;
    mrb_get_args(mrb, "z", &name);
    const char *value = getenv(name);
    return value == NULL ? mrb_nil_value() : mrb_str_new_cstr(mrb, value);
}

static mrb_value user(mrb_state *mrb, mrb_value self)
{
    const struct passwd *p = getpwuid(geteuid());
    const rq__shell *s = rq__shell_of(mrb);
    (void)self;
    if (s->options->client.user != NULL) return mrb_str_new_cstr(mrb, s->options->client.user);
    return p == NULL ? mrb_nil_value() : mrb_str_new_cstr(mrb, p->pw_name);
}

/* Shell.groups → names of the user's groups. */
static mrb_value groups(mrb_state *mrb, mrb_value self)
{
    gid_t ids[64];
    int count = RQ_ARRAY_LEN(ids);
    mrb_value list = mrb_ary_new(mrb);
    const struct passwd *p = getpwuid(geteuid());
    (void)self;
    if (p == NULL || getgrouplist(p->pw_name, p->pw_gid, ids, &count) < 0) return list;
    for (int i = 0; i < count; i++) {
        const struct group *g = getgrgid(ids[i]);
        if (g != NULL) mrb_ary_push(mrb, list, mrb_str_new_cstr(mrb, g->gr_name));
    }
    return list;
}

static mrb_value option(mrb_state *mrb, mrb_value self)
{
    const char *name;
    (void)self;
    mrb_get_args(mrb, "z", &name);
    const rq_shell_options *o = rq__shell_of(mrb)->options;
    static const char *const as[] = {"hbase", "json", "csv", "tsv"};
    if (strcmp(name, "interactive") == 0) return mrb_bool_value(!o->non_interactive);
    if (strcmp(name, "debug") == 0) return mrb_bool_value(o->debug);
    if (strcmp(name, "top_level") == 0) return mrb_bool_value(o->top_level);
    if (strcmp(name, "yes") == 0) return mrb_bool_value(o->yes);
    if (strcmp(name, "typed") == 0) return mrb_bool_value(rq__shell_of(mrb)->is_typed);
    if (strcmp(name, "tty") == 0) return mrb_bool_value(rq__shell_of(mrb)->at_prompt);
    if (strcmp(name, "as") == 0) return mrb_str_new_cstr(mrb, as[o->as]);
    if (strcmp(name, "version") == 0) return mrb_str_new_cstr(mrb, o->version);
    return mrb_nil_value();
}

/* Shell.error_text(number): the text of a system error. */
static mrb_value error_text(mrb_state *mrb, mrb_value self)
{
    mrb_int number;
    (void)self;
    mrb_get_args(mrb, "i", &number);
    return mrb_str_new_cstr(mrb, strerror((int)number));
}

static mrb_value settings(mrb_state *mrb, mrb_value self)
{
    const rq_shell_options *o = rq__shell_of(mrb)->options;
    mrb_value list = mrb_ary_new(mrb);
    (void)self;
    for (int i = 0; i < o->setting_count; i++)
        mrb_ary_push(mrb, list, mrb_str_new_cstr(mrb, o->settings[i]));
    return list;
}

void rq__define_terminal(mrb_state *mrb)
{
    rq__shell_of(mrb)->display.is_terminal = isatty(STDOUT_FILENO);
    mrb_gv_set(mrb, mrb_intern_lit(mrb, "$$"), mrb_int_value(mrb, getpid()));
    struct RClass *m = mrb_define_module(mrb, "Shell");
    mrb_define_module_function(mrb, m, "environment", environment, MRB_ARGS_REQ(1));
    mrb_define_module_function(mrb, m, "glob", glob_paths, MRB_ARGS_REQ(1));
    mrb_define_module_function(mrb, m, "make_folder", make_folder, MRB_ARGS_REQ(1));
    mrb_define_module_function(mrb, m, "remove_folder", remove_folder, MRB_ARGS_REQ(1));
    mrb_define_module_function(mrb, m, "set_environment", set_environment, MRB_ARGS_REQ(2));
    mrb_define_module_function(mrb, m, "width", width, MRB_ARGS_NONE());
    mrb_define_module_function(mrb, m, "print", print, MRB_ARGS_REQ(1));
    mrb_define_module_function(mrb, m, "nearest", nearest, MRB_ARGS_REQ(2));
    mrb_define_module_function(mrb, m, "warn", warn, MRB_ARGS_REQ(1));
    mrb_define_module_function(mrb, m, "flush", flush, MRB_ARGS_NONE());
    mrb_define_module_function(mrb, m, "read_line", read_line, MRB_ARGS_NONE());
    mrb_define_module_function(mrb, m, "user", user, MRB_ARGS_NONE());
    mrb_define_module_function(mrb, m, "groups", groups, MRB_ARGS_NONE());
    mrb_define_module_function(mrb, m, "option", option, MRB_ARGS_REQ(1));
    mrb_define_module_function(mrb, m, "error_text", error_text, MRB_ARGS_REQ(1));
    mrb_define_module_function(mrb, m, "replace_file", replace_file, MRB_ARGS_REQ(2));
    mrb_define_module_function(mrb, m, "settings", settings, MRB_ARGS_NONE());
}
