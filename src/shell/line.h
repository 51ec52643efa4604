/* SPDX-License-Identifier: Apache-2.0 */
/* A line of limited length, and the wait for it. getline would use all memory for input without a newline. */
#ifndef RQ_SHELL_LINE_H
#define RQ_SHELL_LINE_H

#include "base/buf.h"

#include <signal.h>
#include <stdio.h>

/* Reads the next line, with its newline, into *line, and a zero byte behind it. The line may contain zero bytes.
 * RQ_E_END: the input is over. RQ_E_IO: errno; a signal causes EINTR. RQ_E_NO_MEMORY: the line has more than `max`
 * bytes; what was read of it is lost. After an error *line is empty. */
RQ_NODISCARD
rq_err rq__line_read(FILE *from, size_t max, rq_buf *line);

/* Waits until the terminal or pipe has input, is closed, or SIGINT's handler has set *interrupted; returns at once if it is set.
 * SIGINT is blocked except during the wait, so that none is lost between the check and the wait. */
void rq__line_await(int terminal, const volatile sig_atomic_t *interrupted);

#endif
