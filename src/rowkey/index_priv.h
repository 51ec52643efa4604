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

typedef struct rq__entry {
    bool exists;
    uint8_t token[RQ__TOKEN];
    rq_buf row; /* the row's key; whoever reads an entry clears it */
} rq__entry;

rq_err rq__index_fail(rq_failure *failure, rq_err rc, const char *text);
void rq__index_token(uint8_t token[RQ__TOKEN]);
/* The key of a value's entry; the value of an entry's key. Appended. */
RQ_NODISCARD
rq_err rq__index_key(const rq_index *x, rq_bytes value, rq_bytes row, rq_buf *out);
RQ_NODISCARD
rq_err rq__index_value_of(rq_bytes key, rq_buf *out);
/* false: no memory. */
bool rq__entry_take(const rq_row *row, rq__entry *ret);
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
