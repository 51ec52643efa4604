/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a statement of many lines must be parsed again to know whether its last line has ended it. Parsing it for
 * each line takes the square of its length. */
#ifndef RQ_SHELL_BRACKETS_H
#define RQ_SHELL_BRACKETS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct rq__brackets {
    size_t at;     /* bytes that were read */
    size_t depth;  /* open brackets */
    size_t words;  /* open blocks, definitions and conditions, or fewer */
    char quote;    /* of the string that is open; 0: none */
    char last;     /* the last byte of code that is no blank, or the first of its word or string */
    bool at_start; /* of a line: nothing stands before */
    bool in_loop;  /* the line begins with while, until or for: its `do` opens nothing more */
    size_t document,
        document_len; /* the end mark of the here-document of this line, or the open one; length 0: none */
    bool document_indents, in_document;
    bool is_unclear; /* the statement has syntax that this reader may misread */
    size_t parse_at; /* the length at which it is parsed even in brackets */
} rq__brackets;

/* Whether the statement need not be parsed yet: a bracket, a string, a here-document or a block is certainly open, and the
 * statement has grown by less than a quarter since it was parsed last. So a syntax error in a statement of more than
 * 4 KiB is reported when the statement has grown by a quarter, or when everything is closed.
 * All zero for a new statement; the text ends with a whole line, and begins with the text of the last call. */
bool rq__brackets_wait(rq__brackets *b, const char *text, size_t len);

#endif
