/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asynchronous calls. A call copies its arguments and is passed to the back end. When it has an outcome, the
 * back end puts it into the list of ended calls. The completions of this list run on the thread that is in
 * rq_poll, or on the library's own thread.
 *
 *    …_async ─► outstanding + 1 ─► backend->start … rq_call_done ─► list ─► rq_poll ─► completion
 *
 * If a back end needs a thread, for its sockets or because its engine has no threads, rq_poll calls its turn() on this
 * thread; a back end with threads of its own has no turn(), and rq_poll sleeps until the list is not empty.
 *
 * There is one lock. No other lock is taken, and no completion or function of the back end is called, while
 * it is held.
 */
#include "api/api_priv.h"

#include "base/clock.h"
#include "base/signals.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define NO_DESCRIPTOR (-1)
#define THREAD_TURN_NS 1000000000
#define LAST_WORK_NS 10000000

struct rq__completions {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    rq_call *first RQ_GUARDED_BY(lock); /* ended calls, oldest first */
    rq_call **end RQ_GUARDED_BY(lock);
    size_t outstanding RQ_GUARDED_BY(lock); /* calls whose completion has not run */
    bool is_polled RQ_GUARDED_BY(lock);     /* a thread, `poller`, runs completions */
    pthread_t poller RQ_GUARDED_BY(lock);
    bool stopped RQ_GUARDED_BY(lock);
    /* The descriptor of rq_descriptor, an epoll set. It is readable while the list of ended calls is not
     * empty (event), when the back end is due (timer), or when the back end's own descriptor is. */
    int descriptor RQ_GUARDED_BY(lock);
    int event RQ_GUARDED_BY(lock);
    int timer RQ_GUARDED_BY(lock);
    int64_t timer_due RQ_GUARDED_BY(lock); /* INT64_MAX: it is not armed */
    bool has_thread;
    pthread_t thread;
};

static int64_t now_ns(void)
{
    return (int64_t)rq_clock_ns(CLOCK_MONOTONIC);
}

/* --- the list --------------------------------------------------------------------------------- */

static void signal_event(rq__completions *q)
{
    uint64_t one = 1;
    if (q->event == NO_DESCRIPTOR) return;
    ssize_t n = write(q->event, &one, sizeof one); /* EAGAIN: it is readable */
    (void)n;
}

void rq_call_done(rq_call *call)
{
    rq__completions *q = call->table->db->completions;
    call->next = NULL;
    pthread_mutex_lock(&q->lock);
    if (q->first == NULL && !q->is_polled) signal_event(q);
    *q->end = call;
    q->end = &call->next;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

bool rq_db_has_ended_call(const rq_db *db)
{
    rq__completions *q = db->completions;
    pthread_mutex_lock(&q->lock);
    bool any = q->first != NULL || q->stopped;
    pthread_mutex_unlock(&q->lock);
    return any;
}

static rq_call *take_all(rq__completions *q, bool *ret_outstanding)
{
    pthread_mutex_lock(&q->lock);
    rq_call *list = q->first;
    q->first = NULL;
    q->end = &q->first;
    *ret_outstanding = q->outstanding > 0;
    pthread_mutex_unlock(&q->lock);
    return list;
}

static void call_free(rq_call *call)
{
    rq_arena_clear(&call->arena);
    rq__table_unref(call->table);
    free(call);
}

/* The scanner's next call may come. Returns the scanner if it was closed meanwhile. */
static rq_scanner *leave_scanner(rq__completions *q, const rq_call *call, rq_err rc)
{
    rq_scanner *s = call->scanner;
    pthread_mutex_lock(&q->lock);
    rq__scanner_read(s, rc, call->rows == NULL ? 0 : call->rows->count, &call->why);
    s->in_call = false;
    bool closes = s->closes;
    pthread_mutex_unlock(&q->lock);
    return closes ? s : NULL;
}

static bool enter_scanner(rq_scanner *s)
{
    rq__completions *q = s->table->db->completions;
    pthread_mutex_lock(&q->lock);
    bool free = !s->in_call;
    s->in_call = true;
    pthread_mutex_unlock(&q->lock);
    return free;
}

bool rq__scanner_closes_later(rq_scanner *s)
{
    rq__completions *q = s->table->db->completions;
    pthread_mutex_lock(&q->lock);
    bool later = s->in_call;
    s->closes = later;
    pthread_mutex_unlock(&q->lock);
    return later;
}

static void complete(rq__completions *q, rq_call *call)
{
    rq_failure why = {.size = sizeof why};
    rq_completion c = {.size = sizeof c, .done = call->done, .row = call->row, .rows = call->rows};
    rq_err rc = call->rc;
    rq_scanner *closing = NULL;
    if (call->scanner != NULL) closing = leave_scanner(q, call, rc);
    if (rc != RQ_OK) {
        rq_rows_free(c.rows);
        c.rows = NULL;
    }
    if (call->outcomes != NULL) {
        rq__outcomes_fill(call->outcomes, call->action_count, rc, &call->why);
        rc = rq__outcomes_end(call->outcomes, &c.results, &call->why);
    }
    c.code = rq_fill_failure(&why, rc, &call->why);
    c.why = rc == RQ_OK ? NULL : &why;
    call->complete(call->context, &c);
    rq_scanner_close(closing);
    call_free(call);
    pthread_mutex_lock(&q->lock);
    q->outstanding--;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

static size_t complete_list(rq__completions *q, rq_call *list)
{
    size_t count = 0;
    while (list != NULL) {
        rq_call *next = list->next;
        complete(q, list);
        list = next;
        count++;
    }
    return count;
}

/* --- polling ---------------------------------------------------------------------------------- */

static void sleep_for_change(rq__completions *q, int64_t until_ns)
{
    struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};
    pthread_mutex_lock(&q->lock);
    while (q->first == NULL && !q->stopped && q->outstanding > 0)
        if (pthread_cond_timedwait(&q->changed, &q->lock, &until) == ETIMEDOUT) break;
    pthread_mutex_unlock(&q->lock);
}

/* The back end's descriptor may be readable without a call, for example because a server has closed its
 * connection. Unless its events are handled, it stays readable, and an event loop calls rq_poll for ever. */
static void work_without_calls(rq_db *db, int64_t timeout_ns)
{
    if (db->backend->idle != NULL)
        db->backend->idle(db, timeout_ns);
    else if (db->backend->turn != NULL)
        db->backend->turn(db, 0);
}

/* Runs completions; waits for the first one until the given time. REQUIRES: this thread is the
 * poller. */
static size_t poll_until(rq_db *db, int64_t until_ns)
{
    rq__completions *q = db->completions;
    for (bool is_last = false;;) {
        bool outstanding;
        rq_call *list = take_all(q, &outstanding);
        if (list != NULL) return complete_list(q, list);
        if (is_last || atomic_load(&db->closed)) return 0;
        int64_t left = until_ns - now_ns();
        is_last = left <= 0;
        if (!outstanding) {
            work_without_calls(db, is_last ? 0 : left);
            return 0;
        }
        if (db->backend->turn != NULL)
            db->backend->turn(db, is_last ? 0 : left);
        else
            sleep_for_change(q, until_ns);
    }
}

static bool begin_polling(rq__completions *q)
{
    pthread_mutex_lock(&q->lock);
    bool free = !q->is_polled;
    if (free) {
        q->is_polled = true;
        q->poller = pthread_self();
    }
    pthread_mutex_unlock(&q->lock);
    return free;
}

/* The descriptor is readable from now on if there is something in the list. */
static void end_polling(rq__completions *q)
{
    uint64_t count;
    pthread_mutex_lock(&q->lock);
    q->is_polled = false;
    if (q->event != NO_DESCRIPTOR) {
        ssize_t n = read(q->event, &count, sizeof count); /* EAGAIN: it is not readable */
        (void)n;
    }
    if (q->first != NULL) signal_event(q);
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

/* --- the descriptor --------------------------------------------------------------------------- */

/* Arms the timer for the time at which the back end is due, unless it is armed for an earlier
 * time. */
static void arm_timer(rq_db *db)
{
    rq__completions *q = db->completions;
    if (db->backend->due == NULL) return;
    int64_t due = db->backend->due(db);
    int64_t now = now_ns();
    pthread_mutex_lock(&q->lock);
    if (q->timer != NO_DESCRIPTOR && (due < q->timer_due || q->timer_due <= now)) {
        int64_t at = due == INT64_MAX ? 0 : due > 0 ? due : 1; /* 0 disarms */
        struct itimerspec spec = {.it_value = {at / 1000000000, at % 1000000000}};
        if (timerfd_settime(q->timer, TFD_TIMER_ABSTIME, &spec, NULL) == 0) q->timer_due = due;
    }
    pthread_mutex_unlock(&q->lock);
}

static bool watch(int epoll, int fd)
{
    struct epoll_event ev = {.events = EPOLLIN};
    return fd != NO_DESCRIPTOR && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev) == 0;
}

static void close_fd(int *fd)
{
    if (*fd != NO_DESCRIPTOR) close(*fd);
    *fd = NO_DESCRIPTOR;
}

/* `of_backend`: the descriptor of a back end that has turns. REQUIRES: the lock. */
static bool open_descriptor(rq__completions *q, bool turns, int of_backend)
{
    q->event = eventfd(q->first != NULL, EFD_CLOEXEC | EFD_NONBLOCK);
    if (turns) q->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    q->timer_due = INT64_MAX;
    q->descriptor = epoll_create1(EPOLL_CLOEXEC);
    if (q->descriptor != NO_DESCRIPTOR && watch(q->descriptor, q->event) &&
        (!turns || (watch(q->descriptor, q->timer) && watch(q->descriptor, of_backend))))
        return true;
    close_fd(&q->descriptor);
    close_fd(&q->event);
    close_fd(&q->timer);
    return false;
}

rq_err rq_descriptor(rq_db *db, int *ret, rq_failure *failure)
{
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    rq_why why;
    rq_slot *slot;
    rq_why_clear(&why);
    rq_err rc = db == NULL ? rq_fail(&why.error, RQ_E_INVALID, "the database is NULL")
                           : rq__slot_take(db, &slot, &why);
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    rq__completions *q = db->completions;
    bool turns = db->backend->turn != NULL;
    int of_backend = turns ? db->backend->descriptor(db) : NO_DESCRIPTOR;
    pthread_mutex_lock(&q->lock);
    if (q->has_thread)
        rc = rq_fail(&why.error, RQ_E_STATE,
                     "completions run on a thread of the library, so the database has no "
                     "descriptor to poll");
    else if (q->descriptor == NO_DESCRIPTOR && !open_descriptor(q, turns, of_backend))
        rc = rq_fail(&why.error, errno == ENOMEM ? RQ_E_NO_MEMORY : RQ_E_IO,
                     "cannot create a descriptor to poll: %s", strerror(errno));
    else
        *ret = q->descriptor;
    pthread_mutex_unlock(&q->lock);
    if (rc == RQ_OK) arm_timer(db);
    rq__slot_give_back(slot);
    return rq_fill_failure(failure, rc, &why);
}

rq_err rq_poll(rq_db *db, int timeout_ms, size_t *ret_count, rq_failure *failure)
{
    rq_why why;
    rq_slot *slot;
    rq_why_clear(&why);
    rq_err rc = db == NULL ? rq_fail(&why.error, RQ_E_INVALID, "the database is NULL")
                           : rq__slot_take(db, &slot, &why);
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    size_t count = 0;
    if (begin_polling(db->completions)) {
        int64_t until = timeout_ms < 0 ? INT64_MAX / 2 : now_ns() + (int64_t)timeout_ms * 1000000;
        count = poll_until(db, until);
        arm_timer(db);
        end_polling(db->completions);
    } else {
        rc = rq_fail(&why.error, RQ_E_STATE,
                     "completions are run by another thread, or by another call of rq_poll");
    }
    if (rc == RQ_OK && ret_count != NULL) *ret_count = count;
    rq__slot_give_back(slot);
    return rq_fill_failure(failure, rc, &why);
}

/* --- the library's thread --------------------------------------------------------------------- */

/* Waits until there is a call; false: the database is closed and there is none. */
static bool wait_for_calls(rq__completions *q)
{
    pthread_mutex_lock(&q->lock);
    while (q->outstanding == 0 && !q->stopped)
        pthread_cond_wait(&q->changed, &q->lock);
    bool any = q->outstanding > 0;
    pthread_mutex_unlock(&q->lock);
    return any;
}

static void run_rest(rq_db *db);

static void *thread_main(void *arg)
{
    rq_db *db = arg;
    (void)begin_polling(db->completions);
    while (!atomic_load(&db->closed) && wait_for_calls(db->completions))
        (void)poll_until(db, now_ns() + THREAD_TURN_NS);
    run_rest(db);
    end_polling(db->completions);
    return NULL;
}

rq_err rq_db_start_thread(rq_db *db, rq_error *why)
{
    rq__completions *q = db->completions;
    sigset_t all, before;
    rq_thread_signals(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    int rc = pthread_create(&q->thread, NULL, thread_main, db);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    /* EAGAIN: no memory for its stack, or as many threads as the user may have. */
    if (rc != 0)
        return rq_fail(why, rc == EAGAIN ? RQ_E_NO_MEMORY : RQ_E_IO, "cannot start a thread: %s",
                       strerror(rc));
    q->has_thread = true;
    return RQ_OK;
}

/* --- life ------------------------------------------------------------------------------------- */

rq_err rq__completions_new(rq_db *db, rq_error *why)
{
    rq__completions *q = calloc(1, sizeof *q);
    if (q == NULL) return rq_no_memory(why);
    pthread_mutex_init(&q->lock, NULL);
    rq_clock_cond_init(&q->changed);
    q->end = &q->first;
    q->descriptor = q->event = q->timer = NO_DESCRIPTOR;
    db->completions = q;
    return RQ_OK;
}

void rq__completions_free(rq_db *db)
{
    rq__completions *q = db->completions;
    if (q == NULL) return;
    close_fd(&q->descriptor);
    close_fd(&q->event);
    close_fd(&q->timer);
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
    free(q);
    db->completions = NULL;
}

bool rq__completions_inside(const rq_db *db)
{
    rq__completions *q = db->completions;
    pthread_mutex_lock(&q->lock);
    bool inside = q->is_polled && pthread_equal(q->poller, pthread_self());
    pthread_mutex_unlock(&q->lock);
    return inside;
}

void rq__completions_stop(rq_db *db)
{
    rq__completions *q = db->completions;
    if (db->backend->stop != NULL) db->backend->stop(db);
    pthread_mutex_lock(&q->lock);
    q->stopped = true;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

/* REQUIRES: the lock, given up meanwhile. A call that was begun just before the database was closed may
 * not have ended when the back end stopped. */
static void wait_for_end(rq_db *db, rq__completions *q)
{
    if (db->backend->idle == NULL) {
        pthread_cond_wait(&q->changed, &q->lock);
        return;
    }
    pthread_mutex_unlock(&q->lock);
    db->backend->idle(db, LAST_WORK_NS);
    pthread_mutex_lock(&q->lock);
}

/* Runs the completions of all outstanding calls; the back end ends them without a turn. */
static void run_rest(rq_db *db)
{
    rq__completions *q = db->completions;
    pthread_mutex_lock(&q->lock);
    while (q->outstanding > 0) {
        while (q->first == NULL)
            wait_for_end(db, q);
        pthread_mutex_unlock(&q->lock);
        bool outstanding;
        (void)complete_list(q, take_all(q, &outstanding));
        pthread_mutex_lock(&q->lock);
    }
    pthread_mutex_unlock(&q->lock);
}

void rq__completions_end(rq_db *db)
{
    rq__completions *q = db->completions;
    if (q->has_thread) {
        pthread_join(q->thread, NULL);
        return;
    }
    (void)begin_polling(
        q); /* for rq__completions_inside; no thread can be in rq_poll, which holds a slot */
    run_rest(db);
    end_polling(q);
}

/* --- calls ------------------------------------------------------------------------------------ */

void rq_call_run(rq_call *call)
{
    const rq_backend *backend = call->table->db->backend;
    rq_slot *slot;
    rq_err rc = rq__slot_take_for_call(call->table->db, &slot, &call->why);
    if (rc == RQ_OK) {
        switch (call->kind) {
        case RQ_CALL_GET:
            rc = backend->get(call->table, slot, &call->get, &call->row, &call->why);
            break;
        case RQ_CALL_CHANGE:
            rc = backend->change(call->table, slot, call->has_check ? &call->check : NULL,
                                 call->changes, call->change_count, &call->done,
                                 call->returns_row ? &call->row : NULL, &call->why);
            break;
        case RQ_CALL_BATCH:
            rc = backend->batch(call->table, slot, call->actions, call->action_count,
                                call->outcomes, &call->why);
            break;
        case RQ_CALL_NEXT:
            rc = rq__next_rows(call->table, slot, call->scan, call->rows_max, call->rows,
                               &call->why);
            break;
        }
        rq__slot_give_back(slot);
    }
    call->rc = rc;
}

rq_err rq_call_add_row(rq_call *call, rq_row *row)
{
    return rq__rows_add(call->rows, row);
}

size_t rq_call_row_count(const rq_call *call)
{
    return call->rows->count;
}

/* Makes a call and takes a slot until it is submitted; the caller fills it and calls submit. */
static rq_err prepare(rq_table *table, rq_call_kind kind, rq_done done, void *context,
                      rq_slot **ret_slot, rq_call **ret, rq_why *why)
{
    rq_why_clear(why);
    if (table == NULL) return rq_fail(&why->error, RQ_E_INVALID, "the table is NULL");
    if (done == NULL) return rq_fail(&why->error, RQ_E_INVALID, "the completion function is NULL");
    RQ_TRY(rq__slot_take(table->db, ret_slot, why));
    rq_call *call = calloc(1, sizeof *call);
    if (call == NULL) {
        rq__slot_give_back(*ret_slot);
        return rq_no_memory(&why->error);
    }
    rq_arena_lend(&call->arena, call->lent, sizeof call->lent);
    call->kind = kind;
    call->table = rq__table_ref(table);
    call->complete = done;
    call->context = context;
    rq_why_clear(&call->why);
    *ret = call;
    return RQ_OK;
}

/* Whether there is nothing to do: an empty batch, a scan that has ended. */
static bool is_trivial(const rq_call *call)
{
    return (call->kind == RQ_CALL_BATCH && call->action_count == 0) ||
           (call->kind == RQ_CALL_NEXT && call->scanner->ended);
}

/* Begins the call, or frees it if it could not be filled. */
static rq_err submit(rq_call *call, rq_slot *slot, rq_err rc, rq_why *why, rq_failure *failure)
{
    rq_db *db = call->table->db;
    rq__completions *q = db->completions;
    if (rc == RQ_OK) {
        pthread_mutex_lock(&q->lock);
        if (q->outstanding++ == 0 && q->has_thread) pthread_cond_broadcast(&q->changed);
        bool timed = q->timer != NO_DESCRIPTOR;
        pthread_mutex_unlock(&q->lock);
        if (!is_trivial(call)) {
            db->backend->start(db, call);
        } else {
            if (call->kind == RQ_CALL_NEXT) call->rc = rq__scanner_end(call->scanner, &call->why);
            rq_call_done(call);
            if (db->backend->wake != NULL) db->backend->wake(db);
        }
        if (timed) arm_timer(db);
    } else {
        if (call->outcomes != NULL) (void)rq__outcomes_end(call->outcomes, NULL, &call->why);
        rq_rows_free(call->rows);
        call_free(call);
    }
    rq__slot_give_back(slot);
    return rq_fill_failure(failure, rc, why);
}

rq_err rq_table_get_async(rq_table *table, const rq_get_request *get, rq_done done, void *context,
                          rq_failure *failure)
{
    rq_why why;
    rq_slot *slot;
    rq_call *call;
    rq_err rc = prepare(table, RQ_CALL_GET, done, context, &slot, &call, &why);
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    rc = rq__take_get(get, &call->arena, &call->get, &why.error);
    if (rc == RQ_OK) rc = rq__keep_get(&call->arena, &call->get, &why.error);
    return submit(call, slot, rc, &why, failure);
}

static rq_err change_async(rq_table *table, const rq_check *check, const rq_change *changes,
                           size_t count, rq_done done, void *context, rq_failure *failure)
{
    rq_why why;
    rq_slot *slot;
    rq_call *call;
    rq_err rc = prepare(table, RQ_CALL_CHANGE, done, context, &slot, &call, &why);
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    call->has_check = check != NULL;
    call->change_count = count;
    if (check != NULL) rc = rq__take_check(check, &call->arena, &call->check, &why.error);
    if (rc == RQ_OK && check != NULL) rc = rq__keep_check(&call->arena, &call->check, &why.error);
    if (rc == RQ_OK)
        rc = rq__take_changes(changes, count, &call->arena, &call->changes, &why.error);
    if (rc == RQ_OK) rc = rq__check_kinds(call->changes, count, &why.error);
    if (rc == RQ_OK) rc = rq__keep_changes(&call->arena, call->changes, count, &why.error);
    if (rc == RQ_OK)
        call->returns_row =
            count == 1 && !call->changes->returns_nothing &&
            (call->changes->kind == RQ_APPEND || call->changes->kind == RQ_INCREMENT);
    return submit(call, slot, rc, &why, failure);
}

rq_err rq_table_change_async(rq_table *table, const rq_change *change, rq_done done, void *context,
                             rq_failure *why)
{
    return change_async(table, NULL, change, 1, done, context, why);
}

rq_err rq_table_change_row_async(rq_table *table, const rq_change *changes, size_t count,
                                 rq_done done, void *context, rq_failure *why)
{
    return change_async(table, NULL, changes, count, done, context, why);
}

rq_err rq_table_check_and_change_async(rq_table *table, const rq_check *check,
                                       const rq_change *changes, size_t count, rq_done done,
                                       void *context, rq_failure *failure)
{
    if (check == NULL) {
        rq_why why;
        rq_why_clear(&why);
        return rq_fill_failure(failure, rq_fail(&why.error, RQ_E_INVALID, "the rq_check is NULL"),
                               &why);
    }
    return change_async(table, check, changes, count, done, context, failure);
}

static rq_err keep_actions(rq_call *call, rq_error *why)
{
    for (size_t i = 0; i < call->action_count; i++) {
        rq_acting *a = &call->actions[i];
        if (a->check != NULL) /* take_action made it, in the call's arena, so it may be changed */
            RQ_TRY(rq__keep_check(&call->arena, (rq_checking *)(uintptr_t)a->check, why));
        RQ_TRY(a->is_get ? rq__keep_get(&call->arena, &a->get, why)
                         : rq__keep_changes(&call->arena, a->changes, a->change_count, why));
    }
    return RQ_OK;
}

static rq_err batch_async(rq_table *table, const rq__actions *given, rq_done done, void *context,
                          rq_failure *failure)
{
    rq_why why;
    rq_slot *slot;
    rq_call *call;
    rq_err rc = prepare(table, RQ_CALL_BATCH, done, context, &slot, &call, &why);
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    call->action_count = given->count;
    rc = rq__take_actions(given, &call->arena, &call->actions, &why);
    if (rc == RQ_OK) rc = keep_actions(call, &why.error);
    if (rc == RQ_OK && rq__outcomes_new(given->count, &call->outcomes) != RQ_OK)
        rc = rq_no_memory(&why.error);
    return submit(call, slot, rc, &why, failure);
}

rq_err rq_table_batch_async(rq_table *table, const rq_action *actions, size_t count, rq_done done,
                            void *context, rq_failure *failure)
{
    const rq__actions given = {.plain = actions, .count = count};
    return batch_async(table, &given, done, context, failure);
}

rq_err rq_table_batch_checked_async(rq_table *table, const rq_checked_action *actions, size_t count,
                                    rq_done done, void *context, rq_failure *failure)
{
    const rq__actions given = {.checked = actions, .count = count};
    return batch_async(table, &given, done, context, failure);
}

rq_err rq_scanner_next_async(rq_scanner *s, size_t max, rq_done done, void *context,
                             rq_failure *failure)
{
    rq_why why;
    rq_slot *slot;
    rq_call *call;
    rq_err rc =
        prepare(s == NULL ? NULL : s->table, RQ_CALL_NEXT, done, context, &slot, &call, &why);
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    rc = rq__rows_new(&call->rows);
    if (rc != RQ_OK)
        rc = rq_no_memory(&why.error);
    else if (!enter_scanner(s))
        rc = rq_fail(&why.error, RQ_E_STATE, "the scanner is used by another call");
    if (rc == RQ_OK) {
        call->scanner = s;
        call->scan = s->own;
        call->rows_max = max == 0 ? SIZE_MAX : max;
    }
    return submit(call, slot, rc, &why, failure);
}
