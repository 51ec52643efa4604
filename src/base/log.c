/* SPDX-License-Identifier: Apache-2.0 */
/* One write(2) per line, so that lines of several threads never mix. Texts of clients are in some:
 * they neither begin a line of their own nor move a terminal's cursor. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static void replace_controls(char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f) text[i] = '?';
}

void rq_log_write(const rq_log *log, rq_log_level level, const char *room, const char *fmt, ...)
{
    static const char *const names[] = {"DEBUG", "INFO", "WARN", "ERROR"};
    if (log == NULL || log->fd < 0 || level < log->level) return;
    char line[2048];
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t n = strftime(line, sizeof line, "%Y-%m-%dT%H:%M:%S", &utc);
    n += (size_t)snprintf(line + n, sizeof line - n, ".%03ldZ %s %s: ", now.tv_nsec / 1000000,
                          names[level], room);
    va_list args;
    va_start(args, fmt);
    int m = vsnprintf(line + n, sizeof line - n - 1, fmt, args);
    va_end(args);
    if (m < 0) return;
    size_t begin = n;
    n += (size_t)m;
    if (n > sizeof line - 2) n = sizeof line - 2;
    replace_controls(line + begin, n - begin);
    line[n++] = '\n';
    /* A log that cannot be written has nowhere to say so. */
    ssize_t written = write(log->fd, line, n);
    (void)written;
}
