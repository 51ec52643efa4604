/* SPDX-License-Identifier: Apache-2.0 */
/* See pieces.h. A piece ends at the end of a line at the earliest. A line that begins with a dot, also behind lines of
 * comments, goes on with the statement before it. Empty lines and comments before a piece are left out. */
#include "shell/pieces.h"

#include "shell/line.h"
#include "shell/words.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes. A shorter piece is parsed after each line; a longer one after a line that closes something and when it has grown
 * by 1/64, or when it has grown by a quarter: so the time to parse it again and again grows with its length only. */
#define EACH_LINE 4096

/* Returns 0 or errno. A pipe may never end: its copy has a limit, or it would fill the disk. */
static int copy(int from, FILE *to, size_t max, const volatile sig_atomic_t *interrupted)
{
    char part[65536];
    ssize_t n = -1;
    size_t left = max;
    while (n != 0) {
        rq__line_await(from, interrupted);
        if (*interrupted) return EINTR;
        n = read(from, part, sizeof part);
        if (n < 0 && errno != EAGAIN && errno != EINTR) return errno;
        if (n <= 0) continue;
        if ((size_t)n > left) return EFBIG;
        if (fwrite(part, 1, (size_t)n, to) != (size_t)n) return errno;
        left -= (size_t)n;
    }
    return fflush(to) == 0 ? 0 : errno;
}

int rq__pieces_open(rq__pieces *p, const char *path, const rq__pieces_limits *limits)
{
    struct stat st;
    *p = (rq__pieces){.max = limits->max};
    /* A pipe without a writer is opened, too: the wait for its text ends by Ctrl-C. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return errno;
    int error = fstat(fd, &st) != 0 ? errno : S_ISDIR(st.st_mode) ? EISDIR : 0;
    if (error == 0) p->file = S_ISREG(st.st_mode) ? fdopen(fd, "r") : tmpfile();
    if (error == 0 && p->file == NULL) error = errno;
    if (error == 0 && !S_ISREG(st.st_mode))
        error = copy(fd, p->file, limits->copied_max, limits->interrupted);
    if (p->file == NULL || !S_ISREG(st.st_mode)) (void)close(fd);
    if (error == 0) rq__pieces_restart(p);
    return error;
}

void rq__pieces_close(rq__pieces *p)
{
    if (p->file != NULL) (void)fclose(p->file);
    p->file = NULL;
    rq_buf_clear(&p->next);
    rq_buf_clear(&p->text);
}

/* --- lines ------------------------------------------------------------------------------------ */

static void read_line(rq__pieces *p)
{
    rq_err rc = rq__line_read(p->file, p->max, &p->next);
    p->number++;
    p->line = (const char *)p->next.ptr;
    p->len = rc == RQ_OK ? (ssize_t)p->next.len : -1;
    if (rc == RQ_E_NO_MEMORY) p->error = ENOMEM;
    if (rc == RQ_E_IO) p->error = errno != 0 ? errno : EIO;
}

void rq__pieces_restart(rq__pieces *p)
{
    rewind(p->file);
    p->number = 0;
    p->error = 0;
    read_line(p);
}

static bool take_line(rq__pieces *p)
{
    if (p->len < 0) return false;
    if ((size_t)p->len > p->max - p->text.len ||
        rq_buf_append(&p->text, p->line, (size_t)p->len) != RQ_OK) {
        p->error = ENOMEM;
        return false;
    }
    read_line(p);
    return p->error == 0;
}

/* From the first byte of the line that is no blank on; "\n" if it has none. */
static const char *code_of(const rq__pieces *p)
{
    const char *c = p->line + strspn(p->line, " \t\r\f\v");
    return c < p->line + p->len ? c : "\n";
}

static bool is_comment(const rq__pieces *p)
{
    return p->len >= 0 && *code_of(p) == '#';
}

static bool goes_on(const rq__pieces *p)
{
    if (p->len < 0) return false;
    const char *c = code_of(p);
    return (c[0] == '.' && c[1] != '.') || (c[0] == '&' && c[1] == '.');
}

/* Code behind this line is data. */
static bool ends_code(const rq__pieces *p)
{
    size_t n = p->len < 0 ? 0 : strcspn(p->line, "\r\n");
    return n == strlen("__END__") && memcmp(p->line, "__END__", n) == 0;
}

/* --- pieces ----------------------------------------------------------------------------------- */

/* Takes a line, the comments behind it, and the lines that go on with it. */
static bool take_lines(rq__pieces *p)
{
    do {
        if (!take_line(p)) return false;
        while (is_comment(p))
            if (!take_line(p)) return false;
    } while (goes_on(p));
    return true;
}

/* Whether the line that comes next closes a block or a bracket that began at the left margin. */
static bool closes(const rq__pieces *p)
{
    if (p->len < 1) return false;
    char c = p->line[0];
    bool is_end = strncmp(p->line, "end", 3) == 0 && !rq__is_word(p->line[3]);
    return is_end || c == ')' || c == ']' || c == '}';
}

static bool is_worth_parsing(rq__pieces *p, bool has_closed)
{
    size_t len = p->text.len, grown = len - p->parsed;
    if (rq__brackets_wait(&p->brackets, (const char *)p->text.ptr, len)) return false;
    return len < EACH_LINE || (has_closed && grown >= p->parsed / 64) || grown >= p->parsed / 4;
}

bool rq__pieces_more(rq__pieces *p)
{
    bool has_closed;
    do {
        has_closed = closes(p);
        if (!take_lines(p)) return false;
    } while (p->len >= 0 && !is_worth_parsing(p, has_closed));
    p->parsed = p->text.len;
    return true;
}

bool rq__pieces_next(rq__pieces *p)
{
    rq_buf_reset(&p->text);
    p->brackets = (rq__brackets){0};
    p->parsed = 0;
    while (p->len >= 0 && (*code_of(p) == '#' || *code_of(p) == '\n'))
        read_line(p);
    p->begin = p->number;
    return p->error == 0 && !ends_code(p) && rq__pieces_more(p);
}
