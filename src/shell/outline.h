/* SPDX-License-Identifier: Apache-2.0 */
/* The state of an incomplete statement for irb's prompt: how deep it is nested, and in what. */
#ifndef RQ_SHELL_OUTLINE_H
#define RQ_SHELL_OUTLINE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct rq__outline {
    int depth;    /* open brackets and blocks */
    char string;  /* the quote of an open string, '=' of a comment from =begin; 0: none */
    bool goes_on; /* the last line ends where an expression must follow */
} rq__outline;

typedef struct rq__glance {
    rq__outline o;
    bool at_start; /* of a statement: `if` opens a block only there */
    bool loop;     /* behind while, until, for: their `do` opens nothing */
    size_t mark,
        mark_len; /* where the end mark of the open here-document stands; length 0: none is open */
} rq__glance;

/* Where the outline of a longer text goes on. */
typedef struct rq__outline_place {
    rq__glance g;
    size_t at;
} rq__outline_place;

/* Approximate, not a parser: it affects only the text of prompts. */
rq__outline rq__outline_of(const char *text, size_t len);
/* The same, for a statement that grows by lines: reads what is new. All zero for a new statement. */
rq__outline rq__outline_from(rq__outline_place *from, const char *text, size_t len);

#endif
