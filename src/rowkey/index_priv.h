/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of the secondary index; index.c describes it. */
#ifndef RQ_ROWKEY_INDEX_PRIV_H
#define RQ_ROWKEY_INDEX_PRIV_H

#include "api/backend.h"
#include "rowkey/rowkey_priv.h"

#define RQ__TOKEN 16
#define RQ__DELETED_TOKEN 8

#define RQ__COVERED_MAX 16 /* the indexed column is one of them */

typedef struct rq__upkeep rq__upkeep;

struct rq_index {
    rq_table *table, *entries;
    bool unique;
    char *names;
    rq_bytes family, qualifier; /* in `names` */
    /* Columns of rows that are copied to entries, sorted, including the indexed one; 0: none. */
    size_t covered_count;
    rq_column covered[RQ__COVERED_MAX];
    rq_bytes copies[RQ__COVERED_MAX]; /* their qualifiers in an entry */
    rq_buf covered_names;             /* what these point to */
    rq__upkeep *upkeep;               /* the background repairer; NULL: there is none */
};

/* Age at which deleted entries are removed: no writer that read the entry before can still be about
 * to write. */
#define RQ__LONG_AGO_MS 900000

typedef struct rq__entry {
    bool exists;       /* with a token that is not a deleted entry's */
    bool verified;     /* the row is known to have what the entry says */
    int64_t timestamp; /* of its newest cell, also of one that was deleted; 0: none */
    uint8_t token[RQ__TOKEN];
    size_t token_len; /* 0: none */
    rq_buf row;       /* the row's key; the caller that read the entry clears it */
} rq__entry;

rq_err rq__index_fail(rq_failure *failure, rq_err rc, const char *text);
/* rq_sized, for the caller's failure. */
RQ_NODISCARD
rq_err rq__index_sized(void *to, size_t to_size, const void *from, size_t least, const char *what,
                       rq_failure *failure);
/* The key of a value's entry; the value of an entry's key. Appended. */
RQ_NODISCARD
rq_err rq__index_key(const rq_index *x, rq_bytes value, rq_bytes row, rq_buf *out);
RQ_NODISCARD
rq_err rq__index_value_of(rq_bytes key, rq_buf *out);
/* The current time in ms, or `newest` + 1 if that is later. */
int64_t rq__index_time(int64_t newest);
/* Removes a deleted entry, if its token is still e's; cells newer than e->timestamp stay. */
RQ_NODISCARD
rq_err rq__entry_remove(rq_index *x, rq_bytes key, const rq__entry *e, rq_failure *why);
/* false: no memory. */
bool rq__entry_take(const rq_row *row, rq__entry *ret);
/* The copies of an entry: those of a row as it will be. */
typedef struct rq__copies {
    size_t count;
    rq_edit edits[RQ__COVERED_MAX];
    rq_buf bytes;
} rq__copies;

/* Writes an entry with a new token in place of the entry `over`, as it was read, if the stored
 * token is still over->token (*ret_done); `over` then describes the new entry. `copies` NULL: the
 * entry gets no copies. */
RQ_NODISCARD
rq_err rq__entry_put(rq_index *x, rq_bytes key, rq_bytes row, rq__entry *over,
                     const rq__copies *copies, bool *ret_done, rq_failure *why);
/* Gives the entry the token of a deleted one, if its token is still e's (*ret_done). */
RQ_NODISCARD
rq_err rq__entry_delete(rq_index *x, rq_bytes key, const rq__entry *e, bool *ret_done,
                        rq_failure *why);
/* Marks an entry as verified, if its token is still the one that is known. */
RQ_NODISCARD
rq_err rq__entry_verify(rq_index *x, rq_bytes key, const rq__entry *e, rq_failure *why);
RQ_NODISCARD
rq_err rq__index_read(rq_index *x, rq_bytes key, rq_row **ret, rq_failure *why);
const rq_kv *rq__index_cell(const rq_index *x, const rq_row *row);
RQ_NODISCARD
rq_err rq__index_fence(rq_index *x, const rq_row *before, rq_bytes key, bool *ret_done,
                       rq_failure *why);

/* Adds what it does to *r. RQ_E_CANCELLED: the index is being closed. */
RQ_NODISCARD
rq_err rq__index_repair(rq_index *x, rq_index_repairs *r, rq_failure *why);

/* --- the background repairer (index_upkeep.c) -------------------------------------------------- */

RQ_NODISCARD
rq_err rq__upkeep_start(rq_index *x, uint32_t every_ms, rq_failure *why);
/* Waits for the thread. */
void rq__upkeep_stop(rq_index *x);
/* Whether a running repair must end. `u` may be NULL. */
bool rq__upkeep_stops(rq__upkeep *u);

/* --- covered columns (index_cover.c) ---------------------------------------------------------- */

/* Of rq_index_open: the index's own copy of the columns, with the indexed one. */
RQ_NODISCARD
rq_err rq__covered_take(rq_index *x, const rq_index_spec *spec, rq_failure *why);
/* Whether a put changes a covered column. */
bool rq__covered_changes(const rq_index *x, const rq_change *put);
/* Makes the copies of the covered columns as they will be when `put` has changed the row, which was
 * read, at `time`; `put` NULL: as they are in the row. The caller clears ret->bytes. */
RQ_NODISCARD
rq_err rq__copies_make(const rq_index *x, const rq_row *row, const rq_change *put, int64_t time,
                       rq__copies *ret);
/* Makes the row from a verified entry's copies; NULL in *ret: the entry is not verified, or a copy
 * is missing. */
RQ_NODISCARD
rq_err rq__copies_row(const rq_index *x, const rq_row *entry, const rq__entry *e, rq_row **ret);

#endif
