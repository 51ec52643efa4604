/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a part of a file, in any of the formats. Malformed lines of text are reported,
 * counted and skipped, or (fails_on_bad_lines) end the transfer. */
#ifndef RQ_TRANSFER_FEED_H
#define RQ_TRANSFER_FEED_H

#include "transfer/crew.h"
#include "transfer/format.h"
#include "transfer/json.h"
#include "transfer/lines.h"
#include "transfer/seqfile.h"

/* What is the same for all files of a transfer. */
typedef struct rq__feed_options {
    rq_transfer_format format;
    const rq__columns *columns; /* of TSV and CSV */
    int64_t now_ms;             /* of cells without a timestamp */
    bool fails_on_bad_lines;
    const char *renames; /* "old:new,…" families; NULL: none */
} rq__feed_options;

typedef struct rq__feed {
    const rq__feed_options *options;
    rq__crew *crew;
    rq__seq_reader seq;
    rq__lines lines;
    rq__line line;
    rq__json_row json;
    uint64_t to;
    rq_cell *cells;
    size_t cell_cap;
    uint8_t ttl_tag[2 + 1 + 8];
} rq__feed;

typedef struct rq__feed_row {
    rq_slice row;
    rq_cell *cells;
    size_t count;
    rq_slice attributes; /* "NAME=>VALUE,…"; empty: none */
    rq_slice labels;     /* an expression of visibility labels; empty: none */
} rq__feed_row;

/* The part [from, to) of a file; `path` must outlive the source. rq__feed_close follows, after an
 * error too. */
RQ_NODISCARD
rq_err rq__feed_open(rq__crew *crew, const rq__feed_options *o, rq_vfs *v, const char *path,
                     uint64_t from, uint64_t to, rq__feed *ret, rq_error *why);
/* Valid until the next call. RQ_E_END: no more. */
RQ_NODISCARD
rq_err rq__feed_next(rq__feed *s, rq__feed_row *ret, rq_error *why);
/* The position in the file. */
uint64_t rq__feed_position(const rq__feed *s);
void rq__feed_close(rq__feed *s);

/* Whether the parts of a file can be read independently. */
bool rq__feed_splits(const rq__feed_options *o);
/* Replaces the cell's family by its new name, if it has one. */
void rq__rename_family(const char *renames, rq_cell *c);
/* RQ_E_INVALID: not "old:new,…". NULL is fine. */
RQ_NODISCARD
rq_err rq__check_renames(const char *renames, rq_error *why);

#endif
