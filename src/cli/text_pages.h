/* SPDX-License-Identifier: Apache-2.0 */
/* The server's code on a huge page. */
#ifndef RQ_CLI_TEXT_PAGES_H
#define RQ_CLI_TEXT_PAGES_H

#include <stdbool.h>

/* Moves the program's code to huge pages, if the kernel has them. A request uses some fifty pages
 * of code; on a core shared with the clients each of them costs a page walk again, one huge page
 * costs one. (HHVM and MySQL do the same.)
 *
 * Call it before other threads are started. False: nothing was changed, which is harmless: no huge
 * page was available, or the program was not linked for it (src/cli/meson.build). */
bool rq__text_to_huge_pages(void);

#endif
