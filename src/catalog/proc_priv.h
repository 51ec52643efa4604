/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the procedures: procedure.c accepts, starts and aborts them, proc_run.c
 * executes them, proc_lists.c holds the lists, proc_queue.c makes conflicting ones wait,
 * proc_locks.c decides what a parked one blocks, proc_fail.c handles failed steps, proc_store.c keeps
 * their records, proc_memory.c creates and frees them, proc_share.c limits their memory. */
#ifndef RQ_CATALOG_PROC_PRIV_H
#define RQ_CATALOG_PROC_PRIV_H

#include "catalog/catalog_priv.h"

/* --- procedure.c ------------------------------------------------------------------------------ */
/* Answers a submitted change, on its lane if it has one. NULL is fine. */
void rq__ddl_answer(rq_ddl *d, rq_err rc, const rq_error *why, uint64_t proc_id);
/* Answers the procedure's submitter, unless it was answered before. */
void rq__proc_answer(rq__proc *p, rq_err rc, const rq_error *why);
/* Returns the procedure's task, counted as running; _startable: the tasks of all procedures that
 * are ready, linked by task.next. REQUIRES: lock held. */
rq_task *rq__proc_take(rq__procedures *ps, rq__proc *p);
rq_task *rq__procs_take_startable(rq__procedures *ps);
/* Starts tasks that were taken. REQUIRES: lock not held. */
void rq__procs_start(rq_catalog *c, rq_task *list);
/* Ends a task. The catalog may be freed when this returns. */
void rq__procs_task_done(rq_catalog *c);

/* --- proc_run.c ------------------------------------------------------------------------------- */
/* The task of a procedure. */
void rq__proc_run(rq_task *task);
/* Sets rc and why. */
void rq__proc_note_error(rq__proc *p, rq_err rc, const rq_error *why);
/* Writes the first record. If this fails, calls the kind's make_room() and tries once more. */
RQ_NODISCARD
rq_err rq__proc_write_first(rq__proc *p, rq_error *why);
/* Number of attempts of a step after which a temporary error counts as permanent. The first ten attempts take 102 s,
 * with growing intervals; the others follow in intervals of one minute. */
#define RQ__REPEATS_MAX 32

/* Begins the next attempt of a procedure whose timer has fired or was cancelled, or of a parked one:
 * returns the tasks to start. REQUIRES: lock held. */
rq_task *rq__proc_wake(rq__procedures *ps, rq__proc *p);
rq_task *rq__proc_unpark(rq__procedures *ps, rq__proc *p);
/* Tries a parked procedure again after a while, if its error may pass. REQUIRES: lock held. */
void rq__proc_revive_later(rq__procedures *ps, rq__proc *p);
/* A call has reported. Any thread. */
void rq__proc_reported(rq__calls *k);
/* For a step that cannot continue now and waits for no report: `rc` and `text` are the reason. The step
 * must return the result, RQ_E_AGAIN, and runs again after a second. Without a procedure (`p` NULL or
 * without ops) the result is `rc`, an error for the caller. */
RQ_NODISCARD
rq_err rq__wait_a_while(rq__proc *p, rq_err rc, const char *text, rq_error *why);

/* --- proc_memory.c ---------------------------------------------------------------------------- */
/* NULL: no memory. */
rq__proc *rq__proc_new(rq_catalog *c);
/* NULL is fine. */
void rq__proc_free(rq__proc *p);
RQ_NODISCARD
rq_err rq__proc_from_ddl(rq__proc *p, const rq_ddl *d);
/* Makes `p` a REOPEN_REGION procedure; `left` as in rq__procedures_reopen. */
RQ_NODISCARD
rq_err rq__proc_to_reopen(rq__proc *p, const rq_region_info *info, const rq_server_name *left);
/* Closes the regions of p->opened that are in no view (rq__opened_abandon). RQ_E_AGAIN: as of a step. */
RQ_NODISCARD
rq_err rq__proc_abandon_opened(rq__proc *p);
/* Frees p->opened. Regions that are open belong to the host, which closes them. */
void rq__proc_forget_opened(rq__proc *p);
/* Frees data that a result does not need: region names, descriptors. REQUIRES: lock held. */
void rq__proc_slim(rq__proc *p);

/* --- proc_pause.c ----------------------------------------------------------------------------- */
/* Every change that a procedure makes on disk is between _begin and _end; _pause_point is called between
 * two steps. _begin and _pause_point block during a pause. */
void rq__step_begin(rq__procedures *ps, rq_executor *ex);
void rq__step_end(rq__procedures *ps);
void rq__step_pause_point(rq__procedures *ps, rq_executor *ex);

/* --- proc_locks.c; all REQUIRE: lock held ----------------------------------------------------- */
/* Calls `each` with the encoded names of the regions that the procedure works on; a name may come
 * twice. Before prepare these are the regions in the request. */
RQ_NODISCARD
rq_err rq__proc_each_region(const rq__proc *p, rq_err (*each)(void *ctx, rq_slice encoded),
                            void *ctx);
bool rq__proc_names_region(const rq__proc *p, rq_slice encoded);
/* Makes p->named of a procedure that is going to be parked, in O(n log n). Without lock. */
void rq__proc_sort_names(rq__proc *p);
/* Frees p->named. Also if nobody else knows the procedure. */
void rq__proc_free_names(rq__proc *p);
/* Whether `p` is refused as long as the procedure `parked` is parked. */
bool rq__proc_parked_excludes(const rq__proc *parked, const rq__proc *p);
/* Fills in the error with which `p` ends. */
void rq__proc_refuse(rq__proc *p, const rq__proc *parked);
bool rq__proc_holds_closed(const rq__proc *p);

/* --- proc_queue.c; all but _new and _free REQUIRE: lock held ---------------------------------- */
RQ_NODISCARD
rq_err rq__lock_table_new(rq__lock_table **ret);
void rq__lock_table_free(rq__lock_table *t);
/* Makes the procedure's missing claims. Called before the procedure enters the queues, and again after
 * prepare has named more regions. RQ_E_NO_MEMORY: claims made so far stay. */
RQ_NODISCARD
rq_err rq__claims_new(rq__proc *p);
/* REQUIRES: the claims are in no queue, or the queues are no longer used. */
void rq__claims_free(rq__proc *p);
/* Whether both have claims on the same region. Procedures that lock a whole table have no claims on regions. */
bool rq__claims_share_region(const rq__proc *p, const rq__proc *q);
/* Puts the procedure's claims at the end of the locks' queues. The procedure becomes ready once it has
 * all its locks and its record is durable (not `recording`). If a parked procedure excludes it, it
 * becomes `refused`, and ready without locks. */
void rq__queue_enter(rq__procedures *ps, rq__proc *p);
/* The procedure's record is durable: ends `recording`. */
void rq__queue_recorded(rq__procedures *ps, rq__proc *p);
/* Grants the locks of claims that are in no queue at once, in addition to the current holders. */
void rq__queue_hold(rq__procedures *ps, rq__proc *p);
/* Whether nobody holds a lock that excludes the procedure's, which is in no queue. */
bool rq__queue_is_free(rq__procedures *ps, const rq__proc *p);
/* Gives up all locks and places in queues; procedures that waited for them may become ready. */
void rq__queue_leave(rq__procedures *ps, rq__proc *p);
/* Takes the next ready procedure; NULL: none. */
rq__proc *rq__queue_ready(rq__procedures *ps);
/* Makes the procedure ready without its locks; it leaves the queues. */
void rq__queue_skip(rq__procedures *ps, rq__proc *p);
/* Gives up the locks of a procedure that was parked. Procedures that wait for one of these locks and are
 * excluded by `parked` become `refused` and ready; the others get the lock. */
void rq__queue_park(rq__procedures *ps, rq__proc *parked);
void rq__queue_add_parked(rq__procedures *ps, rq__proc *p);
/* Nothing when it is not in the list. */
void rq__queue_remove_parked(rq__procedures *ps, rq__proc *p);

/* --- proc_fail.c: by the procedure's own task ------------------------------------------------- */
typedef enum rq__fail_action {
    RQ__FAIL_UNDO,      /* roll back, then end the procedure */
    RQ__FAIL_END,       /* end the procedure without a rollback */
    RQ__FAIL_REPEAT,    /* repeat the step after a while */
    RQ__FAIL_PARK,      /* park the procedure (procedure.h, rule 7) */
    RQ__FAIL_STAY,      /* park an aborted procedure again (rule 8) */
    RQ__FAIL_LEAVE_OUT, /* skip the step of an aborted procedure, and run the next one */
} rq__fail_action;
/* Decides how to go on after the current step has failed with `rc`. */
rq__fail_action rq__proc_judge(rq__proc *p, rq_err rc);
rq__commit_state rq__proc_commit_state(rq__proc *p);
/* The limit of each kind of log lines about procedures: clients cause them. */
rq_log_rate rq__proc_log_rate(const rq__proc *p);
/* "procedure 7 (… of t), step …: error; what" */
void rq__proc_log(const rq__proc *p, rq_log_level level, rq_err rc, const rq_error *why,
                  const char *what);
/* After an abort that left steps out: reopens the regions that the procedure had closed. */
void rq__proc_reopen_closed(rq__proc *p);
/* The name of the step with this number; "": there is none. Any thread. */
const char *rq__proc_step_name(const rq__proc *p, unsigned step);

/* --- proc_lists.c; all REQUIRE: lock held ----------------------------------------------------- */
void rq__procs_append(rq__procedures *ps, rq__proc *p);
void rq__procs_remove(rq__procedures *ps, rq__proc *p);
/* Into the results. */
void rq__procs_keep(rq__procedures *ps, rq__proc *p);
RQ_NODISCARD
rq_err rq__procs_init(rq__procedures *ps);
/* The unfinished procedure with this id; NULL: there is none. */
rq__proc *rq__procs_active(rq__procedures *ps, uint64_t id);
/* The procedure, finished or not, with this nonce; NULL: there is none, or the nonce is 0. */
rq__proc *rq__procs_by_nonce(rq__procedures *ps, uint64_t group, uint64_t nonce);
/* Takes the expired results out of the list, if it is time to look for them; linked by `next`.
 * NULL: none. */
rq__proc *rq__procs_take_evicted(rq__procedures *ps, int64_t now_ms);

/* --- proc_share.c; all REQUIRE: lock held ----------------------------------------------------- */
/* Whether the limits for all procedures and for the client of `p` allow one more procedure. */
bool rq__procs_have_room(const rq__procedures *ps, const rq__proc *p);
void rq__procs_charge(rq__procedures *ps, rq__proc *p);
void rq__procs_release(rq__procedures *ps, rq__proc *p);

/* --- proc_watch.c ----------------------------------------------------------------------------- */
/* Posts the tasks that wait for the procedure's end. REQUIRES: lock held. */
void rq__procs_notify_watches(rq__procedures *ps, rq__proc *p);

/* --- locks.c ---------------------------------------------------------------------------------- */
int64_t rq__lock_timeout_ms(const rq_catalog *c);

/* --- proc_store.c: blocking ------------------------------------------------------------------- */
RQ_NODISCARD
rq_err rq__proc_write(rq__proc *p, bool synced, rq_error *why);
/* Deletes the records of a list of results and frees the list. */
void rq__proc_evict(rq_catalog *c, rq__proc *list);

#endif
