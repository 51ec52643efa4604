/* SPDX-License-Identifier: Apache-2.0 */
/* A progress bar on standard error for work that takes longer than a second; nothing if that is not
 * a terminal. One thread. A zeroed struct is a bar that was not begun. */
#ifndef RQ_CLI_PROGRESS_H
#define RQ_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct rq_progress {
    const char *what; /* in front of the bar; borrowed */
    int64_t begin_ns, drawn_ns;
    bool is_terminal;
    bool is_drawn;
} rq_progress;

void rq__progress_begin(rq_progress *p, const char *what);
/* Cheap enough to be called often: draws at most ten times a second. */
void rq__progress_step(rq_progress *p, uint64_t done, uint64_t total);
/* Shows the name at once, for work of unknown length. */
void rq__progress_name(rq_progress *p);
/* Wipes the bar or name. */
void rq__progress_end(rq_progress *p);

#endif
