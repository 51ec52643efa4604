/* SPDX-License-Identifier: Apache-2.0 */
/* See pieces.h. A piece ends at the end of a line at the earliest. A line that begins with a dot, also behind lines of
 * comments, goes on with the statement before it. Empty lines and comments before a piece are left out. */
#include "shell/pieces.h"

#include "shell/line.h"
#include "shell/words.h"

#include <errno.h>
#include <sys/stat.h>

/* Bytes. A shorter piece is parsed after each line; a longer one after a line that closes something and when it has grown
 * by 1/64, or when it has grown by a quarter: so the time to parse it again and again grows with its length only. */
#define EACH_LINE 4096

static FILE *copy(FILE *from)
{
    char part[65536];
    FILE *to = tmpfile();
    size_t n;
    bool is_written = to != NULL;
    while (is_written && (n = fread(part, 1, sizeof part, from)) > 0)
        is_written = fwrite(part, 1, n, to) == n;
    if (to != NULL && (!is_written || ferror(from) || fflush(to) != 0)) {
        int error = errno;
        (void)fclose(to);
        errno = error;
        to = NULL;
    }
    return to;
}

int rq__pieces_open(rq__pieces *p, const char *path, size_t max)
{
    struct stat st;
    *p = (rq__pieces){.file = fopen(path, "re"), .max = max};
    if (p->file == NULL || fstat(fileno(p->file), &st) != 0) return errno;
    if (S_ISDIR(st.st_mode)) return EISDIR;
    if (!S_ISREG(st.st_mode)) {
        FILE *given = p->file;
        p->file = copy(given);
        int error = errno;
        (void)fclose(given);
        if (p->file == NULL) return error;
    }
    rq__pieces_restart(p);
    return 0;
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
