/* SPDX-License-Identifier: Apache-2.0 */
/* A line of limited length. getline would use all memory for input without a newline. */
#ifndef RQ_SHELL_LINE_H
#define RQ_SHELL_LINE_H

#include "base/buf.h"

#include <stdio.h>

/* Reads the next line, with its newline, into *line, and a zero byte behind it. The line may contain zero bytes.
 * RQ_E_END: the input is over. RQ_E_IO: errno; a signal causes EINTR. RQ_E_NO_MEMORY: the line has more than `max`
 * bytes; what was read of it is lost. After an error *line is empty. */
RQ_NODISCARD
rq_err rq__line_read(FILE *from, size_t max, rq_buf *line);

#endif
