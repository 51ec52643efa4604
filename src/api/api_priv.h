/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of this room: slots, arguments, results. */
#ifndef RQ_API_API_PRIV_H
#define RQ_API_API_PRIV_H

#include "api/backend.h"

/* --- calls (call.c) --------------------------------------------------------------------------- */

/* Whether the process is the one that opened the database; touches nothing else. */
bool rq__db_is_home(const rq_db *db);
/* Waits while every slot is taken. RQ_E_FORKED, RQ_E_CLOSED; else the caller gives the slot
 * back. */
RQ_NODISCARD
rq_err rq__slot_take(rq_db *db, rq_slot **ret, rq_why *why);
void rq__slot_give_back(rq_slot *slot);
rq_db *rq__db_ref(rq_db *db);

/* Copies a struct with a size tag to the library's size; bytes that the caller does not have are
 * zero. RQ_E_INVALID: no struct, or a size that no version had. */
RQ_NODISCARD
rq_err rq__sized(void *to, size_t to_size, const void *from, size_t least, const char *what,
                 rq_error *why);

/* --- arguments (arguments.c); everything they point to is the caller's or in the arena -------- */

RQ_NODISCARD
rq_err rq__take_get(const rq_get_request *get, rq_arena *arena, rq_getting *ret, rq_error *why);
/* Copies everything into the arena. */
RQ_NODISCARD
rq_err rq__take_scan(const rq_scan_request *scan, rq_arena *arena, rq_scanning *ret, rq_error *why);
/* One change, or an array of them. */
RQ_NODISCARD
rq_err rq__take_changes(const rq_change *changes, size_t count, rq_arena *arena, rq_changing **ret,
                        rq_error *why);
RQ_NODISCARD
rq_err rq__take_check(const rq_check *check, rq_arena *arena, rq_checking *ret, rq_error *why);

/* --- results (result.c) ----------------------------------------------------------------------- */

RQ_NODISCARD
rq_err rq__outcomes_new(size_t count, rq_outcomes **ret);
/* The first failed action's error, with `why`; RQ_OK: none failed. Gives the results to *ret, or
 * frees them if `ret` is NULL. */
rq_err rq__outcomes_end(rq_outcomes *o, rq_results **ret, rq_why *why);

#endif
