/* SPDX-License-Identifier: Apache-2.0 */
/* A secondary index, as its files pass it to each other; index.c describes it. */
#ifndef RQ_ROWKEY_INDEX_PRIV_H
#define RQ_ROWKEY_INDEX_PRIV_H

#include "api/backend.h"
#include "rowkey/rowkey_priv.h"

#define RQ__TOKEN 16

struct rq_index {
    rq_table *table, *entries;
    bool unique;
    char *names;
    rq_bytes family, qualifier; /* in `names` */
};

/* What was deleted so long ago is removed: no writer that read it before is still about to write. */
#define RQ__LONG_AGO_MS 900000

typedef struct rq__entry {
    bool exists;       /* with a token that is not empty */
    int64_t timestamp; /* of the token, also of an empty one; 0: none */
    uint8_t token[RQ__TOKEN];
    rq_buf row; /* the row's key; whoever reads an entry clears it */
} rq__entry;

rq_err rq__index_fail(rq_failure *failure, rq_err rc, const char *text);
/* The key of a value's entry; the value of an entry's key. Appended. */
RQ_NODISCARD
rq_err rq__index_key(const rq_index *x, rq_bytes value, rq_bytes row, rq_buf *out);
RQ_NODISCARD
rq_err rq__index_value_of(rq_bytes key, rq_buf *out);
/* Now, or a millisecond behind what was read. */
int64_t rq__index_time(int64_t newest);
/* Removes an entry that was deleted long ago, and whose cells are as old as was read. */
RQ_NODISCARD
rq_err rq__entry_remove(rq_index *x, rq_bytes key, const rq__entry *e, rq_failure *why);
/* false: no memory. */
bool rq__entry_take(const rq_row *row, rq__entry *ret);
/* Puts an entry with a new token, or an empty one (deletes it), over the one that was read, if that is
 * still there. */
RQ_NODISCARD
rq_err rq__entry_put(rq_index *x, rq_bytes key, rq_bytes row, const rq__entry *over, bool *ret_done,
                     rq_failure *why);
RQ_NODISCARD
rq_err rq__entry_delete(rq_index *x, rq_bytes key, const rq__entry *e, bool *ret_done,
                        rq_failure *why);
RQ_NODISCARD
rq_err rq__index_read(rq_index *x, rq_bytes key, rq_row **ret, rq_failure *why);
const rq_kv *rq__index_cell(const rq_index *x, const rq_row *row);
RQ_NODISCARD
rq_err rq__index_fence(rq_index *x, const rq_row *before, rq_bytes key, bool *ret_done,
                       rq_failure *why);

#endif
