/* SPDX-License-Identifier: Apache-2.0 */
/* The server's code on a huge page. */
#ifndef RQ_CLI_TEXT_PAGES_H
#define RQ_CLI_TEXT_PAGES_H

#include <stdbool.h>

/* Moves the program's code to huge pages, if the kernel has them. A request executes some fifty 4
 * KB pages of code. On a core shared with clients each of these pages costs a page walk per
 * request; with one huge page a request costs one. (HHVM and MySQL do the same.)
 *
 * Call it before other threads are started. False: nothing was changed, which is harmless: no huge
 * page was available, or the program was not linked for it (src/cli/meson.build). */
bool rq__text_to_huge_pages(void);

#endif
