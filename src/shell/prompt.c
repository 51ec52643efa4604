/* SPDX-License-Identifier: Apache-2.0 */
/* The prompt, by libedit: editing, history in a file, search, completion. The prelude completes
 * words (Shell.complete): it knows commands, options, tables and families. libedit is loaded when a prompt begins, so
 * that a server does not spend memory on it; a static build links it. If it is not installed, lines are read without
 * editing. */
#include "shell/shell_priv.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <histedit.h>
#include <limits.h>
#include <mruby/array.h>
#include <mruby/class.h>
#include <mruby/string.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#define HISTORY_LINES 10000
#define HISTORY_BYTES (4 << 20) /* a larger file is cut to HISTORY_LINES */
#define SHOWN_MAX 200           /* words that Tab lists; as in prelude/prompt.rb */
#define REMEMBERED_BYTES 65536  /* a longer statement is not kept: the history is in memory */

/* libedit's functions. */
#define EDIT_FUNCTIONS(X)                                                                          \
    X(el_init)                                                                                     \
    X(el_end)                                                                                      \
    X(el_set)                                                                                      \
    X(el_gets)                                                                                     \
    X(el_line)                                                                                     \
    X(el_insertstr)                                                                                \
    X(el_push)                                                                                     \
    X(el_source)                                                                                   \
    X(el_reset)                                                                                    \
    X(history_init)                                                                                \
    X(history_end)                                                                                 \
    X(history)
typedef struct edit_library {
#define X(name) __typeof__(name) *name;
    EDIT_FUNCTIONS(X)
#undef X
} edit_library;

struct rq__prompt {
    rq__shell *shell;
    edit_library lib;
    EditLine *line;
    History *history;
    char text[64]; /* of the prompt */
    char path[PATH_MAX];
};

#ifdef RQ_EDIT_LINKED
static bool load(edit_library *ret)
{
#define X(name) ret->name = name;
    EDIT_FUNCTIONS(X)
#undef X
    return true;
}
#else
/* POSIX's way to make a function's address of dlsym's result. */
static bool find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static bool load(edit_library *ret)
{
    void *library = dlopen("libedit.so.2", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == NULL) library = dlopen("libedit.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    bool found = library != NULL;
#define X(name) found = found && find(library, #name, &ret->name);
    EDIT_FUNCTIONS(X)
#undef X
    if (library != NULL) (void)dlclose(library);
    return found;
}
#endif

/* libedit's callbacks get no argument of ours, only the line's client data, which libedit's own
 * function uses; a process has one prompt. */
static rq__prompt *at_terminal;

static char *prompt_of(EditLine *e)
{
    (void)e;
    return at_terminal->text;
}

/* Characters that belong to a word to be completed, which may begin with a quote. */
static bool in_word(char c)
{
    return isalnum((unsigned char)c) || strchr("_:.-$@\\", c) != NULL;
}

/* [the words, in order; whether there are others between the last two] */
static mrb_value candidates(rq__shell *s, const char *before, size_t len, size_t word)
{
    mrb_value shell = mrb_obj_value(mrb_module_get(s->mrb, "Shell"));
    s->display.is_completing = true;
    mrb_value list =
        mrb_funcall(s->mrb, shell, "complete", 2, mrb_str_new(s->mrb, before, (mrb_int)word),
                    mrb_str_new(s->mrb, before + word, (mrb_int)(len - word)));
    s->display.is_completing = false;
    s->interrupted = 0; /* by Ctrl-C, or because the server is silent: of this only */
    bool failed = s->mrb->exc != NULL || !mrb_array_p(list);
    s->mrb->exc = NULL;
    return failed ? mrb_assoc_new(s->mrb, mrb_ary_new(s->mrb), mrb_false_value()) : list;
}

/* The letters that all candidates share. */
static size_t shared(mrb_value list)
{
    rq_slice first = rq__slice_of(RARRAY_PTR(list)[0]);
    size_t n = first.len;
    for (mrb_int i = 1; i < RARRAY_LEN(list); i++) {
        rq_slice s = rq__slice_of(RARRAY_PTR(list)[i]);
        size_t k = 0;
        while (k < n && k < s.len && s.ptr[k] == first.ptr[k])
            k++;
        n = k;
    }
    return n;
}

static void show(mrb_value list, bool has_gap)
{
    mrb_int count = RARRAY_LEN(list), shown = count < SHOWN_MAX ? count : SHOWN_MAX;
    putchar('\n');
    for (mrb_int i = 0; i < shown; i++) {
        rq_slice s = rq__slice_of(RARRAY_PTR(list)[i]);
        printf("%.*s%s", (int)s.len, (const char *)s.ptr,
               (i + 1) % 4 == 0 && i + 1 < shown ? "\n" : "  ");
    }
    if (has_gap)
        fputs("\nand more; type more letters", stdout);
    else if (shown < count)
        printf("\nand %lld more", (long long)(count - shown));
    putchar('\n');
    (void)fflush(stdout);
}

/* Whether a Tab before the first word of a line is the indent of pasted text: more input is already waiting. */
static bool is_indent(const char *before, size_t len)
{
    int waiting = 0;
    for (size_t i = 0; i < len; i++)
        if (before[i] != ' ' && before[i] != '\t') return false;
    return ioctl(STDIN_FILENO, FIONREAD, &waiting) == 0 && waiting > 0;
}

static unsigned char complete(EditLine *e, int c)
{
    rq__prompt *p = at_terminal;
    (void)c;
    const LineInfo *l = p->lib.el_line(e);
    size_t len = (size_t)(l->cursor - l->buffer), word = len;
    if (is_indent(l->buffer, len)) return p->lib.el_insertstr(e, "\t") == 0 ? CC_REFRESH : CC_ERROR;
    while (word > 0 && in_word(l->buffer[word - 1]))
        word--;
    mrb_state *mrb = p->shell->mrb;
    int arena = mrb_gc_arena_save(mrb);
    mrb_value found = candidates(p->shell, l->buffer, len, word);
    mrb_value list = mrb_ary_ref(mrb, found, 0);
    unsigned char result = CC_ERROR;
    if (RARRAY_LEN(list) > 0) {
        size_t n = shared(list);
        rq_slice first = rq__slice_of(mrb_ary_ref(mrb, list, 0));
        char text[512];
        if (n > len - word && n - (len - word) < sizeof text) {
            memcpy(text, first.ptr + (len - word), n - (len - word));
            text[n - (len - word)] = '\0';
            result = p->lib.el_insertstr(e, text) == 0 ? CC_REFRESH : CC_ERROR;
        } else if (RARRAY_LEN(list) > 1) {
            show(list, mrb_test(mrb_ary_ref(mrb, found, 1)));
            result = CC_REDISPLAY;
        }
    }
    mrb_gc_arena_restore(mrb, arena);
    return result;
}

/* False: the path is longer than PATH_MAX, which no file can be opened by. */
static bool set_path(rq__prompt *p, const char *folder, const char *name)
{
    int n = snprintf(p->path, sizeof p->path, "%s/%s", folder, name);
    bool fits = n > 0 && (size_t)n < sizeof p->path;
    if (!fits) p->path[0] = '\0';
    return fits;
}

/* $XDG_STATE_HOME/rorqual/shell_history if that folder is there, else ~/.rorqual_history. Without HOME, the user's home folder
 * is that of the user database. */
static void find_history(rq__prompt *p)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    struct stat st;
    if (state != NULL && set_path(p, state, "rorqual") && stat(p->path, &st) == 0 &&
        set_path(p, state, "rorqual/shell_history"))
        return;
    const struct passwd *user = home == NULL ? getpwuid(geteuid()) : NULL;
    if (user != NULL) home = user->pw_dir;
    if (home == NULL || !set_path(p, home, ".rorqual_history")) p->path[0] = '\0';
}

/* --- the history's file ----------------------------------------------------------------------- */

/* Each statement is appended with one write: several shells may share the file, and neither the end of a shell
 * nor a full disk loses its contents. The format is libedit's. */
static const char cookie[] = "_HiStOrY_V2_\n";

/* As strvis(3) with VIS_WHITE. */
static rq_err encode(const char *text, rq_buf *to)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        bool is_plain = c > ' ' && c < 0x7f && c != '\\';
        char octal[8];
        if (!is_plain) snprintf(octal, sizeof octal, "\\%03o", c);
        RQ_TRY(is_plain ? rq_buf_append(to, &c, 1) : rq_buf_append(to, octal, 4));
    }
    return rq_buf_append(to, "\n", 1);
}

/* REQUIRES: the file's lock, so that only one shell writes the cookie, and a line that another shell has appended is
 * not removed with the part of a line that a full disk has left. */
static void append_to(int fd, const char *statement)
{
    rq_buf line = {0};
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) return;
    rq_err rc = st.st_size == 0 ? rq_buf_append(&line, cookie, sizeof cookie - 1) : RQ_OK;
    if (rc == RQ_OK) rc = encode(statement, &line);
    ssize_t n = rc == RQ_OK ? write(fd, line.ptr, line.len) : 0;
    if (n > 0 && (size_t)n < line.len && ftruncate(fd, st.st_size) != 0) n = -1;
    rq_buf_clear(&line);
}

/* A file that cannot be written does not concern the session. O_NONBLOCK: the name may be that of a pipe. */
static void append(const char *path, const char *statement)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
    if (fd < 0) return;
    if (flock(fd, LOCK_EX) == 0) append_to(fd, statement);
    (void)close(fd);
}

/* Rewrites a file that has many more lines than are kept, under another name first. A symbolic link stays one. */
static void shorten(rq__prompt *p)
{
    HistEvent event;
    char path[sizeof p->path + 8], target[PATH_MAX];
    if (realpath(p->path, target) == NULL) return;
    (void)set_path(p, "", target + 1);
    snprintf(path, sizeof path, "%s.new", p->path);
    bool is_saved = p->lib.history(p->history, &event, H_SAVE, path) >= 0;
    if (!is_saved || rename(path, p->path) != 0) (void)unlink(path);
}

/* A pipe would block. */
static void load_history(rq__prompt *p)
{
    HistEvent event;
    struct stat st;
    find_history(p);
    if (p->path[0] == '\0' || stat(p->path, &st) != 0 || !S_ISREG(st.st_mode)) return;
    (void)p->lib.history(p->history, &event, H_LOAD, p->path);
    if (st.st_size >= HISTORY_BYTES) shorten(p);
}

rq__prompt *rq__prompt_open(rq__shell *s)
{
    HistEvent event;
    rq__prompt *p = calloc(1, sizeof *p);
    if (p == NULL) return NULL;
    p->shell = s;
    at_terminal = p;
    if (!load(&p->lib)) {
        free(p);
        return NULL;
    }
    p->line = p->lib.el_init("rorqual-shell", stdin, stdout, stderr);
    p->history = p->lib.history_init();
    if (p->line == NULL || p->history == NULL) {
        rq__prompt_close(p);
        return NULL;
    }
    (void)p->lib.history(p->history, &event, H_SETSIZE, HISTORY_LINES);
    (void)p->lib.history(p->history, &event, H_SETUNIQUE, 1);
    (void)p->lib.el_set(p->line, EL_PROMPT, prompt_of);
    (void)p->lib.el_set(p->line, EL_EDITOR, "emacs");
    (void)p->lib.el_set(p->line, EL_SIGNAL, 0);
    (void)p->lib.el_set(p->line, EL_HIST, p->lib.history, p->history);
    (void)p->lib.el_set(p->line, EL_ADDFN, "complete", "Completes a word", complete);
    (void)p->lib.el_set(p->line, EL_BIND, "^I", "complete", NULL);
    (void)p->lib.el_set(p->line, EL_BIND, "^R", "em-inc-search-prev", NULL);
    (void)p->lib.el_source(p->line, NULL);
    load_history(p);
    return p;
}

void rq__prompt_close(rq__prompt *p)
{
    if (p == NULL) return;
    if (p->history != NULL) p->lib.history_end(p->history);
    if (p->line != NULL) p->lib.el_end(p->line);
    free(p);
}

/* The number of the last signal: SIGCONT or SIGWINCH. */
static volatile sig_atomic_t changed;

/* A signal that comes just before a read does not interrupt it. So SIGALRM repeats the signal each second until
 * read_line has seen the change. */
static void on_change(int number)
{
    if (number != SIGALRM) changed = number;
    if (changed != 0) (void)alarm(1);
}

/* Copies the line typed so far, for el_push. Copies "" if the line does not fit, or has control characters, which
 * libedit would execute as commands. */
static void keep_typed(const rq__prompt *p, char *to, size_t size)
{
    const LineInfo *l = p->lib.el_line(p->line);
    size_t len = (size_t)(l->lastchar - l->buffer);
    to[0] = '\0';
    if (len >= size) return;
    for (size_t i = 0; i < len; i++)
        to[i] = iscntrl((unsigned char)l->buffer[i]) ? ' ' : l->buffer[i]; /* a pasted tab */
    to[len] = '\0';
}

/* The terminal as the shell found it. The handler of a signal has no argument; a process has one prompt. */
static struct termios found; /* written before the handler is installed */

/* kill and Ctrl-\ end the process, as without a handler, but not with a terminal that neither echoes nor waits for whole lines.
 * In the background the terminal belongs to others, and tcsetattr would stop the process. */
static void on_end(int number)
{
    pid_t owner = tcgetpgrp(STDIN_FILENO);
    if (owner < 0 || owner == getpgrp()) (void)tcsetattr(STDIN_FILENO, TCSANOW, &found);
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

/* The handlers of signals while a line is read, and before. */
typedef struct handlers {
    struct sigaction before[5];
} handlers;
static const int handled[] = {SIGCONT, SIGWINCH, SIGALRM, SIGTERM, SIGQUIT};

static void set_handlers(handlers *h)
{
    bool is_known = tcgetattr(STDIN_FILENO, &found) == 0;
    for (size_t i = 0; i < RQ_ARRAY_LEN(handled); i++) {
        bool ends = handled[i] == SIGTERM || handled[i] == SIGQUIT;
        const struct sigaction act = {.sa_handler = ends ? on_end : on_change};
        (void)sigaction(handled[i], ends && !is_known ? NULL : &act, &h->before[i]);
    }
}

static void reset_handlers(const handlers *h)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(handled); i++)
        (void)sigaction(handled[i], &h->before[i], NULL);
}

/* Reads a line. After Ctrl-Z and fg the terminal has the modes that other programs have set, and after a change of
 * its size libedit's number of columns is wrong: in both cases libedit starts again with the text typed so far.
 * SIGCONT and SIGWINCH interrupt system calls only while this function reads. */
static const char *read_line(rq__prompt *p, int *ret_count)
{
    handlers before;
    const char *line;
    char typed[4096] = "";
    set_handlers(&before);
    for (;;) {
        changed = 0;
        (void)alarm(0); /* last, so that no SIGALRM interrupts the read without a change */
        if (typed[0] != '\0') p->lib.el_push(p->line, typed);
        line = p->lib.el_gets(p->line, ret_count);
        if (line != NULL || changed == 0 || p->shell->interrupted) break;
        keep_typed(p, typed, sizeof typed);
        if (changed == SIGWINCH) fputs("\r\033[J", stdout);
    }
    changed = 0;
    (void)alarm(0);
    reset_handlers(&before);
    /* A signal may have interrupted a write of libedit's. If the terminal is gone, the next write fails, too. */
    clearerr(stdout);
    return line;
}

const char *rq__prompt_line(rq__prompt *p, const char *prompt, bool *ret_interrupted)
{
    int count = 0;
    snprintf(p->text, sizeof p->text, "%s", prompt);
    p->shell->interrupted = 0;
    p->shell->is_reading = 1;
    const char *line = read_line(p, &count);
    p->shell->is_reading = 0;
    *ret_interrupted = p->shell->interrupted != 0;
    p->shell->interrupted = 0;
    if (*ret_interrupted) {
        (void)p->lib.el_reset(p->line);
        fputs("^C\n", stdout);
        return NULL;
    }
    return count > 0 ? line : NULL;
}

void rq__prompt_remember(rq__prompt *p, const char *statement)
{
    HistEvent event;
    if (p == NULL || strlen(statement) > REMEMBERED_BYTES) return;
    bool is_again =
        p->lib.history(p->history, &event, H_FIRST) >= 0 && strcmp(event.str, statement) == 0;
    (void)p->lib.history(p->history, &event, H_ENTER, statement);
    if (p->path[0] != '\0' && !is_again) append(p->path, statement);
}
