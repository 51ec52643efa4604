/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the public functions: slots, arguments, results. */
#ifndef RQ_API_API_PRIV_H
#define RQ_API_API_PRIV_H

#include "api/backend.h"

/* --- calls (call.c) --------------------------------------------------------------------------- */

/* Takes a free slot, which the caller must give back; waits while all are taken. RQ_E_FORKED,
 * RQ_E_CLOSED. */
RQ_NODISCARD
rq_err rq__slot_take(rq_db *db, rq_slot **ret, rq_why *why);
/* The same for an asynchronous call that the back end executes. */
RQ_NODISCARD
rq_err rq__slot_take_for_call(rq_db *db, rq_slot **ret, rq_why *why);
void rq__slot_give_back(rq_slot *slot);
/* Takes a slot to free memory of the back end; works also while the database is being closed (for example in a
 * completion). NULL: the back end was closed; if its closing has begun, the function waits for its end. REQUIRES:
 * rq_db_is_home. */
rq_slot *rq__slot_take_last(rq_db *db);
rq_db *rq__db_ref(rq_db *db);

/* --- arguments (arguments.c); everything they point to is the caller's or in the arena -------- */

RQ_NODISCARD
rq_err rq__take_get(const rq_get_request *get, rq_arena *arena, rq_getting *ret, rq_error *why);
/* Copies everything into the arena. */
RQ_NODISCARD
rq_err rq__take_scan(const rq_scan_request *scan, rq_arena *arena, rq_scanning *ret, rq_error *why);
/* The i-th struct of an array whose elements all have the size of the first one, by which the array is read. Refuses one of
 * another size. */
RQ_NODISCARD
rq_err rq__element(const void *list, size_t i, const char *what, const void **ret, rq_error *why);
/* One change, or an array of them. */
RQ_NODISCARD
rq_err rq__take_changes(const rq_change *changes, size_t count, rq_arena *arena, rq_changing **ret,
                        rq_error *why);
RQ_NODISCARD
rq_err rq__take_check(const rq_check *check, rq_arena *arena, rq_checking *ret, rq_error *why);

RQ_NODISCARD
rq_err rq__take_some_attributes(const rq_named_bytes *given, size_t count, rq_arena *arena,
                                rq_named_list *ret, rq_error *why);
/* Copies names and values (attributes.c). Most requests have none. */
RQ_NODISCARD
static inline rq_err rq__take_attributes(const rq_named_bytes *given, size_t count, rq_arena *arena,
                                         rq_named_list *ret, rq_error *why)
{
    *ret = (rq_named_list){0};
    return RQ_LIKELY(count == 0) ? RQ_OK : rq__take_some_attributes(given, count, arena, ret, why);
}
/* A copy of `in` in the arena; its pointer is not NULL unless memory is exhausted. */
RQ_NODISCARD
rq_err rq__keep_slice(rq_arena *arena, rq_slice *in, rq_error *why);

/* Copies what the arguments point to into the arena. */
RQ_NODISCARD
rq_err rq__keep_get(rq_arena *arena, rq_getting *g, rq_error *why);
RQ_NODISCARD
rq_err rq__keep_changes(rq_arena *arena, rq_changing *changes, size_t count, rq_error *why);
RQ_NODISCARD
rq_err rq__keep_check(rq_arena *arena, rq_checking *k, rq_error *why);

/* What several functions on rows share (table.c). */
RQ_NODISCARD
rq_err rq__check_kinds(const rq_changing *c, size_t count, rq_error *why);
/* The actions that a caller gives for a batch: in one of the two lists. */
typedef struct rq__actions {
    const rq_action *plain;
    const rq_checked_action *checked;
    size_t count;
} rq__actions;
RQ_NODISCARD
rq_err rq__take_actions(const rq__actions *given, rq_arena *arena, rq_acting **ret, rq_why *why);
/* Fails all actions that have no outcome with `rc`, the error of the whole batch. */
void rq__outcomes_fill(rq_outcomes *o, size_t count, rq_err rc, const rq_why *why);
rq_table *rq__table_ref(rq_table *t);
void rq__table_unref(rq_table *t);

struct rq_scanner {
    rq_table *table;
    rq_arena arena;
    rq_scanning scan;
    void *own;
    rq_row_memory rows; /* for rows that are returned one by one */
    bool ended;
    rq_err ended_by; /* the error that ended the scan, with its `failure`; RQ_OK: none */
    rq_why failure;
    _Atomic bool
        in_call; /* an asynchronous call uses the scanner; set under the lock of rq__completions */
    bool closes; /* the end of this call closes the scanner; under the same lock */
};

/* After a call that has read rows: an error or no row ends the scan. */
void rq__scanner_read(rq_scanner *s, rq_err rc, size_t count, const rq_why *why);
/* The outcome of a call on a scan that has ended: its error again, because a failed scan must not look like a complete
 * one; else RQ_OK. */
RQ_NODISCARD
rq_err rq__scanner_end(const rq_scanner *s, rq_why *why);

/* async.c: whether an asynchronous call uses the scanner; then the end of the call closes the scanner. */
bool rq__scanner_closes_later(rq_scanner *s);

/* --- definitions (define.c) ------------------------------------------------------------------- */

RQ_NODISCARD
rq_err rq__db_begin(rq_db *db, rq_slot **ret, rq_why *why);
/* "ns:q" or "q"; the parts point into `name`, or to "default". */
RQ_NODISCARD
rq_err rq__split_name(const char *name, rq_slice *ret_ns, rq_slice *ret_qualifier, rq_error *why);
/* A ColumnFamilySchema as field 3, with HBase's defaults. */
RQ_NODISCARD
rq_err rq__put_family(rq_buf *b, const rq_family *f, rq_error *why);

/* --- completions (async.c) -------------------------------------------------------------------- */

typedef struct rq__completions rq__completions;
RQ_NODISCARD
rq_err rq__completions_new(rq_db *db, rq_error *why);
void rq__completions_free(rq_db *db);
/* Whether this thread runs a completion of the database. */
bool rq__completions_inside(const rq_db *db);
/* REQUIRES: db->closed is set. _stop ends calls that wait. _end, called when every slot is free, runs the
 * completions of all outstanding calls. */
void rq__completions_stop(rq_db *db);
void rq__completions_end(rq_db *db);

/* --- results (result.c) ----------------------------------------------------------------------- */

RQ_NODISCARD
rq_err rq__outcomes_new(size_t count, rq_outcomes **ret);
RQ_NODISCARD
rq_err rq__rows_new(rq_rows **ret);
/* The memory in which the rows of the list are allocated. */
rq_row_memory *rq__rows_memory(rq_rows *rows);
/* Returns room for `count` more rows; once the caller has filled it, rq__rows_added adds the rows. */
RQ_NODISCARD
rq_err rq__rows_room(rq_rows *rows, size_t count, rq_row ***ret);
void rq__rows_added(rq_rows *rows, size_t count);
/* Takes the row over, also if it fails. */
RQ_NODISCARD
rq_err rq__rows_add(rq_rows *rows, rq_row *row);
/* Adds at most `max` rows of the scan to `rows`: the buffered rows, or those of the next response. */
RQ_NODISCARD
rq_err rq__next_rows(rq_table *table, rq_slot *slot, void *scan, size_t max, rq_rows *rows,
                     rq_why *why);
/* The first failed action's error, with `why`; RQ_OK: none failed. Gives the results to *ret, or
 * frees them if `ret` is NULL. */
rq_err rq__outcomes_end(rq_outcomes *o, rq_results **ret, rq_why *why);

#endif
