/* SPDX-License-Identifier: Apache-2.0 */
/* The server's code on a huge page. */
#ifndef RQ_CLI_TEXT_PAGES_H
#define RQ_CLI_TEXT_PAGES_H

#include <stdbool.h>

/*
 * Moves the program's code into memory of huge pages, where the kernel has them. A request runs
 * through some fifty pages of code, and on a machine whose cores are shared with the clients each
 * costs a page walk again; one huge page costs one. (As HHVM and MySQL do.)
 *
 * To be called before other threads are started. False: nothing was changed, which does no harm:
 * no huge page was to be had, or the program was not linked for it (src/cli/meson.build).
 */
bool rq_text_to_huge_pages(void);

#endif
