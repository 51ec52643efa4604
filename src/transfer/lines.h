/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a text file by the rules of Hadoop's TextInputFormat: they end with LF, CR, CR LF or
 * the file. A part of a file has the lines that begin in it. */
#ifndef RQ_TRANSFER_LINES_H
#define RQ_TRANSFER_LINES_H

#include "transfer/in.h"

typedef struct rq__lines {
    rq__in in;
    const char *path; /* borrowed */
    bool has_quotes;  /* a line break between quotes ends no line */
    uint64_t start;   /* of the last line */
    uint64_t lf_from; /* in the file: from the position to there is no LF */
} rq__lines;

/* rq__lines_close follows, after an error too. */
RQ_NODISCARD
rq_err rq__lines_open(rq_vfs *v, const char *path, bool has_quotes, rq__lines *ret, rq_error *why);
/* Goes to the first line that begins at or behind `from`. REQUIRES: 0, or no quotes. */
RQ_NODISCARD
rq_err rq__lines_seek(rq__lines *l, uint64_t from, rq_error *why);
/* The next line that begins before `to`, without its end; valid until the next call. RQ_E_END. */
RQ_NODISCARD
rq_err rq__lines_next(rq__lines *l, uint64_t to, rq_slice *ret, rq_error *why);
void rq__lines_close(rq__lines *l);

#endif
