/* SPDX-License-Identifier: Apache-2.0 */
/* See screen.h. Uses escape sequences of ECMA-48 and xterm, which all current terminals support:
 * alternate screen, cursor position, erase to the end of line and screen, reverse video. */
#include "cli/screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define ENTER "\x1b[?1049h\x1b[?25l"
#define LEAVE "\x1b[?25h\x1b[?1049l"

/* Static because signal handlers get no argument: they restore the terminal from it. */
static struct {
    volatile sig_atomic_t is_on, has_keys, closed;
    struct termios before;
} screen;

static void write_all(const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(STDOUT_FILENO, bytes, len);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return; /* a terminal that is gone ends the process by SIGHUP */
        bytes += n;
        len -= (size_t)n;
    }
}

void rq__screen_end(void)
{
    if (!screen.is_on) return;
    screen.is_on = 0;
    write_all(LEAVE, sizeof LEAVE - 1);
    if (screen.has_keys) (void)tcsetattr(STDIN_FILENO, TCSANOW, &screen.before);
}

static void on_end(int number)
{
    rq__screen_end();
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

/* Only to wake poll. */
static void on_resize(int number)
{
    (void)number;
}

bool rq__screen_is_possible(void)
{
    const char *term = getenv("TERM");
    return isatty(STDOUT_FILENO) != 0 && term != NULL && term[0] != '\0' &&
           strcmp(term, "dumb") != 0;
}

/* Keys come one by one and are not shown; Ctrl-C still ends the process, Ctrl-Z does nothing. */
static void take_keys(void)
{
    struct termios raw;
    if (tcgetattr(STDIN_FILENO, &screen.before) != 0) return;
    raw = screen.before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    raw.c_cc[VSUSP] = _POSIX_VDISABLE;
    screen.has_keys = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

void rq__screen_begin(void)
{
    struct sigaction end = {.sa_handler = on_end};
    struct sigaction resize = {.sa_handler = on_resize};
    take_keys();
    screen.is_on = 1;
    (void)sigaction(SIGINT, &end, NULL);
    (void)sigaction(SIGTERM, &end, NULL);
    (void)sigaction(SIGHUP, &end, NULL);
    (void)sigaction(SIGWINCH, &resize, NULL);
    write_all(ENTER, sizeof ENTER - 1);
}

static void screen_size(unsigned *ret_columns, unsigned *ret_rows)
{
    struct winsize size;
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
    *ret_columns = known ? size.ws_col : 80;
    *ret_rows = known ? size.ws_row : 24;
}

/* --- frames ----------------------------------------------------------------------------------- */

static void append(rq__frame *f, const char *bytes, size_t len)
{
    if (rq_buf_append(&f->bytes, bytes, len) != RQ_OK) f->no_memory = true;
}

static void append_text(rq__frame *f, const char *text)
{
    append(f, text, strlen(text));
}

void rq__frame_begin(rq__frame *f)
{
    rq_buf_reset(&f->bytes);
    f->row = 0;
    f->no_memory = false;
    screen_size(&f->columns, &f->rows);
    append_text(f, "\x1b[H");
}

void rq__frame_line(rq__frame *f, bool reverse, const char *text)
{
    size_t len = strnlen(text, f->columns);
    if (f->row == f->rows) return;
    if (f->row++ > 0) append_text(f, "\r\n");
    if (reverse) append_text(f, "\x1b[7m");
    append(f, text, len);
    if (reverse) {
        for (size_t i = len; i < f->columns; i++)
            append_text(f, " ");
        append_text(f, "\x1b[0m");
    }
    if (len < f->columns) append_text(f, "\x1b[K");
}

void rq__frame_show(rq__frame *f)
{
    append_text(f, "\x1b[J");
    if (!f->no_memory) write_all((const char *)f->bytes.ptr, f->bytes.len);
}

/* --- keys ------------------------------------------------------------------------------------- */

static int read_byte(void)
{
    uint8_t byte;
    ssize_t n = read(STDIN_FILENO, &byte, 1);
    if (n == 1) return byte;
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) screen.closed = 1;
    return -1;
}

static bool has_input(int64_t timeout_ms)
{
    struct pollfd p = {.fd = screen.has_keys && !screen.closed ? STDIN_FILENO : -1,
                       .events = POLLIN};
    return poll(&p, 1, timeout_ms > 60000 ? 60000 : (int)timeout_ms) > 0;
}

/* After ESC. A terminal sends an escape sequence in one piece: a byte that does not follow at once
 * is a key of its own. */
static int read_sequence(void)
{
    if (!has_input(20)) return RQ__KEY_NONE;
    int c = read_byte();
    if (c != '[' && c != 'O') return RQ__KEY_NONE;
    int number = 0;
    while (has_input(20)) {
        c = read_byte();
        if (c >= '0' && c <= '9' && number < 100)
            number = number * 10 + c - '0';
        else if (c != ';')
            break;
    }
    switch (c) {
    case 'A':
        return RQ__KEY_UP;
    case 'B':
        return RQ__KEY_DOWN;
    case 'C':
        return RQ__KEY_RIGHT;
    case 'D':
        return RQ__KEY_LEFT;
    case '~':
        return number == 5 ? RQ__KEY_PAGE_UP : number == 6 ? RQ__KEY_PAGE_DOWN : RQ__KEY_NONE;
    default:
        return RQ__KEY_NONE;
    }
}

int rq__screen_key(int64_t timeout_ms)
{
    if (!has_input(timeout_ms < 0 ? 0 : timeout_ms)) return RQ__KEY_NONE;
    int c = read_byte();
    if (c < 0) return screen.closed ? RQ__KEY_CLOSED : RQ__KEY_NONE;
    return c == 0x1b ? read_sequence() : c;
}
