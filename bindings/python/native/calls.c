/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Synchronous calls: pack.c's requests become librorqual's requests, and rows become blocks. *ret
 * is set to a block that the caller frees with rqpy_free, or stays NULL if there is no result.
 *
 * One translation unit with pack.c and async.c, in the order that build.py gives.
 */

static rq_failure *fresh(rq_failure *why)
{
    why->size = sizeof *why;
    return why;
}

static void rqpy_free(char *block)
{
    free(block);
}

/* Gets all columns of a row. */
static rq_err rqpy_get_row(rq_table *table, const char *row, size_t row_len, char **ret,
                           size_t *ret_len, rq_failure *why)
{
    rq_get_request get = {.size = sizeof get, .row = {row, row_len}};
    rq_row *result = NULL;
    rq_err e = rq_table_get(table, &get, &result, fresh(why));
    return one_row(e, result, ret, ret_len, why);
}

/* A get; the request is given as numbers and bytes. */
static rq_err rqpy_get(rq_table *table, const char *numbers, const char *bytes, char **ret,
                       size_t *ret_len, rq_failure *why)
{
    request r;
    if (!request_begin(&r, numbers, bytes)) return no_memory(why);
    take_get(&r.in, r.gets);
    rq_row *row = NULL;
    rq_err e = rq_table_get(table, r.gets, &row, fresh(why));
    request_free(&r);
    return one_row(e, row, ret, ret_len, why);
}

/* One change, or several changes of one row, which are all made or none. */
static rq_err rqpy_change(rq_table *table, const char *numbers, const char *bytes, char **ret,
                          size_t *ret_len, rq_failure *why)
{
    request r;
    if (!request_begin(&r, numbers, bytes)) return no_memory(why);
    take_changes(&r.in, r.changes, r.change_count);
    rq_row *row = NULL;
    rq_err e;
    if (r.change_count != 1)
        e = rq_table_change_row(table, r.changes, r.change_count, fresh(why));
    else
        e = rq_table_change(table, r.changes, r.changes->kind >= RQ_APPEND ? &row : NULL,
                            fresh(why));
    request_free(&r);
    return one_row(e, row, ret, ret_len, why);
}

/* The check's numbers: lengths of family, qualifier, value; comparison; lengths of the filter's text and bytes; time range. */
static void take_check(input *in, rq_check *check)
{
    *check = (rq_check){.size = sizeof *check};
    check->family = take_bytes(in, take_number(in));
    check->qualifier = take_bytes(in, take_number(in));
    check->value = take_bytes(in, take_number(in));
    check->compare = (rq_compare)take_number(in);
    check->filter_text = take_bytes(in, take_number(in)).data;
    check->filter = take_bytes(in, take_number(in));
    check->min_timestamp = take_number(in);
    check->max_timestamp = take_number(in);
}

static rq_err rqpy_check_and_change(rq_table *table, const char *numbers, const char *bytes,
                                    bool *ret_done, char **ret, size_t *ret_len, rq_failure *why)
{
    request r;
    if (!request_begin(&r, numbers, bytes)) return no_memory(why);
    take_check(&r.in, r.checks);
    take_changes(&r.in, r.changes, r.change_count);
    rq_row *row = NULL;
    rq_err e = rq_table_check_and_change(table, r.checks, r.changes, r.change_count, ret_done, &row,
                                         fresh(why));
    request_free(&r);
    return one_row(e, row, ret, ret_len, why);
}

/* Each action begins with a number: 0 for a get, otherwise the number of changes of one row; negative: behind a check. */
static void take_actions(request *r)
{
    rq_change *change = r->changes;
    rq_get_request *get = r->gets;
    rq_check *check = r->checks;
    for (size_t i = 0; i < r->action_count; i++) {
        int64_t number = take_number(&r->in);
        rq_checked_action *a = &r->actions[i];
        *a = (rq_checked_action){.size = sizeof *a};
        if (number == 0) {
            take_get(&r->in, get);
            a->get = get++;
            continue;
        }
        if (number < 0) {
            take_check(&r->in, check);
            a->check = check++;
        }
        a->changes = change;
        a->change_count = (size_t)(number < 0 ? -number : number);
        take_changes(&r->in, change, a->change_count);
        change += a->change_count;
    }
}

/* *ret is set even if actions failed. */
static rq_err rqpy_batch(rq_table *table, const char *numbers, const char *bytes, char **ret,
                         size_t *ret_len, rq_failure *why)
{
    request r;
    if (!request_begin(&r, numbers, bytes)) return no_memory(why);
    take_actions(&r);
    rq_results *results = NULL;
    rq_err e = rq_table_batch_checked(table, r.actions, r.action_count, &results, fresh(why));
    request_free(&r);
    if (results == NULL) return e;
    output out = {0};
    for (size_t i = 0; i < results->count && !out.failed; i++)
        put_outcome(&out, results->items + i);
    rq_results_free(results);
    rq_err packed = output_end(&out, ret, ret_len, why);
    return e != RQ_OK ? e : packed;
}

/* The scan's numbers are a get's, with the start as row; then length of the stop, five flags, limit,
 * caching, batch, bytes, and a flag. */
static rq_scan_request take_scan(request *r)
{
    take_get(&r->in, r->gets);
    rq_scan_request scan = {.size = sizeof scan,
                            .start = r->gets->row,
                            .columns = r->gets->columns,
                            .column_count = r->gets->column_count,
                            .attributes = r->gets->attributes,
                            .attribute_count = r->gets->attribute_count};
    scan.max_versions = r->gets->max_versions;
    scan.min_timestamp = r->gets->min_timestamp;
    scan.max_timestamp = r->gets->max_timestamp;
    scan.filter_text = r->gets->filter_text;
    scan.filter = r->gets->filter;
    scan.family_limit = r->gets->family_limit;
    scan.family_offset = r->gets->family_offset;
    scan.no_block_cache = r->gets->no_block_cache;
    scan.reads_uncommitted = r->gets->reads_uncommitted;
    scan.priority = r->gets->priority;
    scan.stop = take_bytes(&r->in, take_number(&r->in));
    scan.excludes_start = take_number(&r->in) != 0;
    scan.includes_stop = take_number(&r->in) != 0;
    scan.reversed = take_number(&r->in) != 0;
    scan.raw = take_number(&r->in) != 0;
    scan.wants_cursors = take_number(&r->in) != 0;
    scan.limit = (uint64_t)take_number(&r->in);
    scan.caching = (uint32_t)take_number(&r->in);
    scan.batch = (uint32_t)take_number(&r->in);
    scan.fetch_bytes = (uint64_t)take_number(&r->in);
    scan.no_fetch_ahead = take_number(&r->in) != 0;
    return scan;
}

static rq_err rqpy_scan(rq_table *table, const char *numbers, const char *bytes, rq_scanner **ret,
                        rq_failure *why)
{
    request r;
    if (!request_begin(&r, numbers, bytes)) return no_memory(why);
    rq_scan_request scan = take_scan(&r);
    rq_err e = rq_table_scan(table, &scan, ret, fresh(why));
    request_free(&r);
    return e;
}

static rq_err rqpy_salted_scan(rq_table *table, const rq_key_format *format, const char *numbers,
                               const char *bytes, uint32_t threads, rq_salted_scanner **ret,
                               rq_failure *why)
{
    request r;
    if (!request_begin(&r, numbers, bytes)) return no_memory(why);
    rq_scan_request scan = take_scan(&r);
    rq_err e = rq_salted_scan(table, format, &scan, threads, ret, fresh(why));
    request_free(&r);
    return e;
}

/* Returns up to `most` rows, or about `bytes`. Fewer rows, or none, are returned only at the end
 * (*ret_end) or after a cursor, which is returned at once as the last row. An error that follows
 * rows is lost here: the rows are returned, and the scanner does not keep it. */
static rq_err take_rows(rq_err (*next)(void *scanner, rq_row **ret, rq_failure *why), void *scanner,
                        size_t most, size_t bytes, char **ret, size_t *ret_len, size_t *ret_count,
                        bool *ret_end, rq_failure *why)
{
    output out = {0};
    rq_err e = RQ_OK;
    size_t count = 0;
    *ret_end = false;
    while (count < most && out.len < bytes && !out.failed) {
        rq_row *row = NULL;
        e = next(scanner, &row, fresh(why));
        *ret_end = e != RQ_OK || row == NULL;
        if (*ret_end) break;
        bool is_cursor = row->cursor.len > 0;
        put_row(&out, row);
        rq_row_free(row);
        count++;
        if (is_cursor) break;
    }
    rq_err packed = output_end(&out, ret, ret_len, why);
    *ret_count = packed == RQ_OK ? count : 0;
    return e != RQ_OK ? e : packed;
}

static rq_err next_of_scan(void *scanner, rq_row **ret, rq_failure *why)
{
    return rq_scanner_next(scanner, ret, why);
}

static rq_err rqpy_scan_next(rq_scanner *scanner, size_t most, size_t bytes, char **ret,
                             size_t *ret_len, size_t *ret_count, bool *ret_end, rq_failure *why)
{
    return take_rows(next_of_scan, scanner, most, bytes, ret, ret_len, ret_count, ret_end, why);
}

static rq_err next_of_salted(void *scanner, rq_row **ret, rq_failure *why)
{
    return rq_salted_next(scanner, ret, why);
}

static rq_err rqpy_salted_next(rq_salted_scanner *scanner, size_t most, size_t bytes, char **ret,
                               size_t *ret_len, size_t *ret_count, bool *ret_end, rq_failure *why)
{
    return take_rows(next_of_salted, scanner, most, bytes, ret, ret_len, ret_count, ret_end, why);
}
