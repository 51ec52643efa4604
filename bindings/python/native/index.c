/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secondary indexes: the functions that take a change or return rows; Python calls the others
 * directly.
 *
 * One translation unit with pack.c, calls.c and async.c, in the order that build.py gives.
 */

/* The request is one put. */
static rq_err rqpy_index_put(rq_index *index, const char *numbers, const char *bytes,
                             rq_failure *why)
{
    request r;
    if (!request_begin(&r, numbers, bytes)) return no_memory(why);
    take_change(&r.in, r.changes);
    rq_err e = rq_index_put(index, r.changes, fresh(why));
    request_free(&r);
    return e;
}

static rq_err next_of_index(void *scanner, rq_row **ret, rq_failure *why)
{
    return rq_index_next(scanner, ret, why);
}

/* Like rqpy_scan_next. */
static rq_err rqpy_index_next(rq_index_scanner *scanner, size_t most, size_t bytes, char **ret,
                              size_t *ret_len, size_t *ret_count, bool *ret_end, rq_failure *why)
{
    return take_rows(next_of_index, scanner, most, bytes, ret, ret_len, ret_count, ret_end, why);
}
