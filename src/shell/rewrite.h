/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrites Ruby that mruby's parser does not know into Ruby that it knows. */
#ifndef RQ_SHELL_REWRITE_H
#define RQ_SHELL_REWRITE_H

#include "base/buf.h"

/* mruby keeps 16 bits of a line's number, and takes 0 for none: one bit less is used for lines (rq__line_for_mruby). */
#define RQ__LINE_BITS 15

/* *out: the statement as mruby reads it; empty: as it is. line: the number of its first line; 0: not known. */
RQ_NODISCARD
rq_err rq__rewrite(const char *text, size_t len, uint64_t line, rq_buf *out);

#endif
