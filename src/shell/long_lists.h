/* SPDX-License-Identifier: Apache-2.0 */
/* Long literals of arrays and hashes, which mruby's parser and compiler take in time that grows with the square of their
 * length.
 *
 * [1, 2, … 40000]  becomes  [*->{[*->{[1, … 64]}.(), …]}.(), …]: each piece has at most 256 elements, and a
 * table of literals of its own. (Here they have 64.)  {a => b, …}  becomes  {**->{({a => b, …})}.(), …}. */
#ifndef RQ_SHELL_LONG_LISTS_H
#define RQ_SHELL_LONG_LISTS_H

#include "base/buf.h"

#define RQ__LIST_PIECE 256

/* `out` is empty when nothing is to be changed. A piece has no assignment, no keyword and no key outside of braces, so
 * that it means the same in a lambda. */
RQ_NODISCARD
rq_err rq__long_lists(const char *text, size_t len, rq_buf *out);

#endif
