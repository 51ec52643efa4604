/* SPDX-License-Identifier: Apache-2.0 */
/* A file of Ruby in pieces, each of one statement or a few: compiled as one unit, a long file takes time that grows with the
 * square of its length, and may have more literals than mruby can count. The reader does not know Ruby: its caller
 * parses a piece, and asks for more lines while it is not complete. */
#ifndef RQ_SHELL_PIECES_H
#define RQ_SHELL_PIECES_H

#include "shell/brackets.h"

#include "base/buf.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>

typedef struct rq__pieces {
    FILE *file;
    size_t max;       /* bytes of a line, and of a piece */
    rq_buf next;      /* the line after the piece */
    const char *line; /* its text */
    ssize_t len;      /* of `line`; -1: the file is over */
    uint64_t number;  /* of `line`, from 1 */
    rq_buf text;      /* the piece */
    uint64_t begin;   /* the number of its first line */
    rq__brackets brackets;
    size_t parsed; /* the length at which the caller parsed it last; 0: not yet */
    int error; /* errno, of a read that failed; ENOMEM: a line or piece is longer than `max`; 0: none */
} rq__pieces;

typedef struct rq__pieces_limits {
    size_t max;        /* bytes of a line, and of a piece */
    size_t copied_max; /* bytes of the copy of a file that is no regular one */
    const volatile sig_atomic_t *interrupted; /* set by SIGINT's handler */
} rq__pieces_limits;

/* Returns 0 or errno; then rq__pieces_close is due as well. A file that is no regular one, such as a pipe, is copied to a temporary
 * file, because it is read twice. EFBIG: it has more than `copied_max` bytes, or no end. EINTR: `interrupted`. */
RQ_NODISCARD
int rq__pieces_open(rq__pieces *p, const char *path, const rq__pieces_limits *limits);
/* Begins again with the first line. */
void rq__pieces_restart(rq__pieces *p);
/* Begins the next piece. False: no code is left, or `error` is set. */
bool rq__pieces_next(rq__pieces *p);
/* The piece is not complete: adds the lines up to the next place where it may be. False: no line is left, or `error` is set. */
bool rq__pieces_more(rq__pieces *p);
void rq__pieces_close(rq__pieces *p);

#endif
