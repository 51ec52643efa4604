/* SPDX-License-Identifier: Apache-2.0 */
/* Output on a terminal: a pager for text longer than the screen, a line of progress on standard
 * error, colours. None of this is used in a pipe.
 *
 *     Shell.page ─► text is held ─► screen full: the pager gets it and what follows
 *                       └─ the statement ends, or waits for long: it is printed */
#include "shell/shell_priv.h"

#include <errno.h>
#include <mruby/class.h>
#include <mruby/string.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define HOLD_NS 300000000     /* a slow statement shows what it has */
#define PROGRESS_NS 200000000 /* between two changes of the line, and before the first */
#define SILENCE_NS 2000000000 /* a wait for an answer that is shown; one by Tab ends */

static bool is_dumb(void)
{
    const char *term = getenv("TERM");
    return term == NULL || strcmp(term, "dumb") == 0;
}

static bool has_colours(const rq__shell *s)
{
    const char *none = getenv("NO_COLOR");
    return s->at_prompt && !is_dumb() && (none == NULL || none[0] == '\0');
}

static struct winsize size_of(int fd)
{
    struct winsize w = {0};
    (void)ioctl(fd, TIOCGWINSZ, &w);
    if (w.ws_col == 0) w.ws_col = 80;
    if (w.ws_row == 0) w.ws_row = 24;
    return w;
}

/* --- standard output -------------------------------------------------------------------------- */

/* Ctrl-C may interrupt a write to a slow terminal. The rest of the output is dropped with the command, and the
 * session goes on. REQUIRES: errno was 0 before the write. */
static void forgive_interrupt(void)
{
    if (ferror(stdout) && errno == EINTR) clearerr(stdout);
}

static void write_out(FILE *to, const void *text, size_t len)
{
    errno = 0;
    (void)fwrite(text, 1, len, to);
    if (to == stdout) forgive_interrupt();
}

bool rq__display_written(void)
{
    errno = 0;
    (void)fflush(stdout);
    forgive_interrupt();
    return !ferror(stdout);
}

/* --- progress --------------------------------------------------------------------------------- */

static void erase_progress(rq__display *c)
{
    if (!c->has_progress) return;
    c->has_progress = false;
    fputs("\r\033[K", stderr);
    (void)fflush(stderr);
}

/* Whether it is time to draw the progress line again. The first call of a statement only starts
 * the clock, so a short statement shows no progress. */
bool rq__display_wants_progress(rq__shell *s)
{
    rq__display *c = &s->display;
    int64_t now = rq_client_now_ns();
    if (now - c->progress_ns < PROGRESS_NS || !isatty(STDERR_FILENO) || is_dumb()) return false;
    bool waits = c->progress_ns == 0;
    c->progress_ns = now;
    return !waits;
}

void rq__display_progress(rq__shell *s, const char *text)
{
    rq__display *c = &s->display;
    if (c->pager != NULL) return;
    int columns = size_of(STDERR_FILENO).ws_col;
    (void)rq__display_written();
    fprintf(stderr, "\r%.*s\033[K", columns - 1, text);
    (void)fflush(stderr);
    c->has_progress = true;
}

void rq__display_wait_begins(rq__shell *s)
{
    s->display.silence_ns = rq_client_now_ns();
}

void rq__display_silence(void *ctx)
{
    rq__shell *s = ctx;
    char text[400];
    int64_t waited = rq_client_now_ns() - s->display.silence_ns;
    if (waited < SILENCE_NS) return;
    if (s->display.is_completing) s->interrupted = 1;
    if (s->display.is_completing || !rq__display_wants_progress(s)) return;
    const char *where = s->where.zookeeper != NULL ? s->where.zookeeper : s->where.bootstrap;
    int seconds = (int)(waited / 1000000000);
    if (s->client == NULL)
        snprintf(text, sizeof text, "connecting to %s: %d s; Ctrl-C ends it", where, seconds);
    else
        snprintf(text, sizeof text, "no answer for %d s; Ctrl-C ends the command", seconds);
    rq__display_progress(s, text);
}

/* --- pages ------------------------------------------------------------------------------------ */

static const char *pager_command(void)
{
    const char *own = getenv("PAGER");
    if (own != NULL) return own;
    return access("/usr/bin/less", X_OK) == 0 || access("/bin/less", X_OK) == 0 ? "less -FRSX" : "";
}

static void print_held(rq__display *c)
{
    FILE *to = c->pager != NULL ? c->pager : stdout;
    if (c->held.len > 0) write_out(to, c->held.ptr, c->held.len);
    rq_buf_reset(&c->held);
    c->is_holding = false;
}

static void open_pager(rq__display *c)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)rq__display_written();
    c->pager = popen(pager_command(), "we");
    /* The pager may end before it has read everything. */
    if (c->pager != NULL) (void)sigaction(SIGPIPE, &ignore, &c->pipe_before);
    print_held(c);
}

static mrb_value page(mrb_state *mrb, mrb_value self)
{
    rq__shell *s = rq__shell_of(mrb);
    rq__display *c = &s->display;
    (void)self;
    if (!s->at_prompt || c->is_off || c->is_holding || c->pager != NULL || is_dumb() ||
        pager_command()[0] == '\0')
        return mrb_nil_value();
    c->is_holding = true;
    c->held_lines = 0;
    c->held_ns = rq_client_now_ns();
    return mrb_nil_value();
}

/* Lines of the screen that the text fills. */
static size_t lines_of(const char *text, size_t len, size_t columns)
{
    size_t lines = 0, column = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\n') {
            lines += column == 0 ? 1 : (column + columns - 1) / columns;
            column = 0;
        } else {
            column++;
        }
    }
    return lines;
}

static void hold(rq__display *c, const char *text, size_t len)
{
    const struct winsize w = size_of(STDOUT_FILENO);
    if (rq_buf_append(&c->held, text, len) != RQ_OK) {
        print_held(c);
        write_out(stdout, text, len);
        return;
    }
    c->held_lines += lines_of(text, len, w.ws_col);
    if (c->held_lines >= w.ws_row) open_pager(c);
}

void rq__display_waits(rq__shell *s)
{
    rq__display *c = &s->display;
    if (!c->is_holding || rq_client_now_ns() - c->held_ns < HOLD_NS) return;
    print_held(c);
    (void)rq__display_written();
}

void rq__display_flush(rq__shell *s)
{
    erase_progress(&s->display);
    if (s->display.is_holding) print_held(&s->display);
    (void)rq__display_written();
}

/* Raises Interrupt if the pager has ended, and once if standard output cannot be written. */
void rq__display_print(mrb_state *mrb, const char *text, size_t len)
{
    rq__display *c = &rq__shell_of(mrb)->display;
    erase_progress(c);
    if (c->is_holding) {
        hold(c, text, len);
        return;
    }
    write_out(c->pager != NULL ? c->pager : stdout, text, len);
    if (c->pager != NULL) (void)fflush(c->pager);
    bool is_broken = ferror(c->pager != NULL ? c->pager : stdout) != 0;
    if (c->pager == NULL && is_broken && c->is_lost) return;
    if (c->pager == NULL) c->is_lost = is_broken;
    if (is_broken) mrb_raise(mrb, mrb_class_get(mrb, "Interrupt"), "");
}

void rq__display_end(rq__shell *s)
{
    rq__display *c = &s->display;
    erase_progress(c);
    c->progress_ns = 0;
    if (c->is_holding) print_held(c);
    if (c->pager == NULL) return;
    (void)pclose(c->pager);
    c->pager = NULL;
    (void)sigaction(SIGPIPE, &c->pipe_before, NULL);
    s->interrupted = 0; /* meant the pager */
}

/* --- for the preludes ------------------------------------------------------------------------- */

/* Shell.progress { text }: draws the line if it is time to. */
static mrb_value progress(mrb_state *mrb, mrb_value self)
{
    mrb_value block;
    (void)self;
    mrb_get_args(mrb, "&!", &block);
    rq__shell *s = rq__shell_of(mrb);
    if (!rq__display_wants_progress(s)) return mrb_nil_value();
    mrb_value text = mrb_obj_as_string(mrb, mrb_yield(mrb, block, mrb_nil_value()));
    rq__display_progress(s, mrb_string_cstr(mrb, text));
    return mrb_nil_value();
}

/* Shell.paint(code, text): the text in a colour of ECMA-48, if there are colours. */
static mrb_value paint(mrb_state *mrb, mrb_value self)
{
    mrb_value code, text;
    (void)self;
    mrb_get_args(mrb, "SS", &code, &text);
    if (!has_colours(rq__shell_of(mrb))) return text;
    return mrb_format(mrb, "\033[%vm%v\033[m", code, text);
}

static mrb_value set_paging(mrb_state *mrb, mrb_value self)
{
    mrb_bool on;
    (void)self;
    mrb_get_args(mrb, "b", &on);
    rq__shell_of(mrb)->display.is_off = !on;
    return mrb_bool_value(on);
}

static mrb_value is_paging(mrb_state *mrb, mrb_value self)
{
    (void)self;
    return mrb_bool_value(!rq__shell_of(mrb)->display.is_off);
}

void rq__define_display(mrb_state *mrb)
{
    struct RClass *m = mrb_define_module(mrb, "Shell");
    mrb_define_module_function(mrb, m, "page", page, MRB_ARGS_NONE());
    mrb_define_module_function(mrb, m, "paging", is_paging, MRB_ARGS_NONE());
    mrb_define_module_function(mrb, m, "paging=", set_paging, MRB_ARGS_REQ(1));
    mrb_define_module_function(mrb, m, "progress", progress, MRB_ARGS_BLOCK());
    mrb_define_module_function(mrb, m, "paint", paint, MRB_ARGS_REQ(2));
}
