/* SPDX-License-Identifier: Apache-2.0 */
/* See line.h. */
#include "shell/line.h"

#include <errno.h>
#include <poll.h>

/* Reads to the end of the line, of the input or of the array. Returns the last byte, or EOF. */
static int read_part(FILE *from, uint8_t *part, size_t size, size_t *ret_len)
{
    int c = 0;
    *ret_len = 0;
    while (*ret_len < size && c != '\n' && (c = getc_unlocked(from)) != EOF)
        part[(*ret_len)++] = (uint8_t)c;
    return c;
}

static rq_err read_line(FILE *from, size_t max, rq_buf *line)
{
    uint8_t part[512];
    size_t n;
    int last;
    do {
        last = read_part(from, part, sizeof part, &n);
        if (n > max - line->len) return RQ_E_NO_MEMORY;
        RQ_TRY(rq_buf_append(line, part, n));
    } while (last != '\n' && last != EOF);
    if (ferror(from)) return RQ_E_IO;
    if (line->len == 0) return RQ_E_END;
    RQ_TRY(rq_buf_append_u8(line, 0));
    line->len--;
    return RQ_OK;
}

rq_err rq__line_read(FILE *from, size_t max, rq_buf *line)
{
    rq_buf_reset(line);
    errno = 0;
    rq_err rc = read_line(from, max, line);
    int error = errno;
    if (rc == RQ_E_NO_MEMORY) rq_buf_clear(line);
    if (rc != RQ_OK) rq_buf_reset(line);
    errno = error;
    return rc;
}

void rq__line_await(int terminal, const volatile sig_atomic_t *interrupted)
{
    struct pollfd input = {.fd = terminal, .events = POLLIN};
    sigset_t interrupt, before;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &interrupt, &before);
    if (!*interrupted) (void)ppoll(&input, 1, NULL, &before);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}
