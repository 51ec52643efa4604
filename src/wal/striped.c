/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log on shared storage (vfs/shared.h): one for each incarnation of a server. It takes the place of
 * WAL files behind staging; positions, waiters and notes are the same.
 *
 *   ring ── batch ──► extent i ──► stripe i mod W of the ledger ── acknowledged ──► in LSN order: synced
 *
 *  1. Loops do not write: push wakes the lane, which keeps the pen. It copies a batch out of the
 *     ring and sends it as an extent (extent.h). Each stripe has one append in flight at most:
 *     guarded appends to one object do not pipeline, and delay a fence.
 *  2. `written` is the end of the bytes sent. Acknowledgements arrive in any order, `synced`
 *     advances in the order of LSNs.
 *  3. A ledger has a wal_file of the chain, without a slot. A new one is named in the head
 *     (head.h) and then made, on a lane of its own; records staged meanwhile are noted in it, and
 *     sent once everything before it is acknowledged.
 *  4. After an append that failed, or that was not answered within 2 s, the ledger is *abandoned*:
 *     a new one begins at `synced`, and everything behind is sent again, with the same LSNs. Bytes
 *     of the abandoned one that arrive later are void. Its memory stays until its appends have
 *     ended.
 *  5. While the storage cannot be reached this is repeated. The log fails only when the tenure has
 *     ended. On full storage, waiters are told so after a while, as with files.
 *  6. Ledgers that no region needs leave the head first, then their bytes are removed.
 *
 * Prewriting, recycling, marks, indexes and HANDOVER exist for files only.
 */
#include "wal/striped_priv.h"

#include <stdlib.h>

#define PATIENCE_NS UINT64_C(2000000000)

/* --- the task that edits the head ------------------------------------------------------------- */

static bool tenure_is_over(const rq__striped *st)
{
    return rq_tenure_valid_until(st->tenure) == 0;
}

static rq_err named_add(rq__striped *st, const wal_file *s)
{
    if (st->head.count == st->head_cap) {
        size_t cap = st->head_cap == 0 ? 16 : st->head_cap * 2;
        void *more = realloc(st->head.ledgers, cap * sizeof *st->head.ledgers);
        if (more == NULL) return RQ_E_NO_MEMORY;
        st->head.ledgers = more;
        st->head_cap = cap;
    }
    st->head.ledgers[st->head.count++] =
        (rq__head_ledger){.first_lsn = s->first_lsn, .slog.number = s->number};
    return RQ_OK;
}

/* Makes the head name the ledgers of the chain; the newest one only if it is the current ledger, or
 * the task is about to make it. REQUIRES: mutex, or no lane. */
static rq_err head_from_chain(rq__striped *st)
{
    rq_wal *wal = st->wal;
    st->head.count = 0;
    st->head.state = RQ_WAL_OPEN;
    st->head.edit++;
    for (wal_file *s = wal->oldest; s != NULL; s = s->next) {
        if (s != st->next && s == wal->newest && s != wal->current) break;
        RQ_TRY(named_add(st, s));
    }
    return RQ_OK;
}

/* What stays is removed with the log. */
static void drop_ledgers(rq__striped *st)
{
    while (st->dropped != NULL) {
        wal_file *s = st->dropped;
        st->dropped = s->next;
        rq_err unimportant = rq_slog_drop(st->tenure, s->number, NULL);
        (void)unimportant;
        free(s);
    }
}

static rq_err edit_head(rq__striped *st, rq_error *why)
{
    RQ_TRY(rq__head_swap(st->shared, st->server_name, &st->head, &st->generation, why));
    return st->opens ? rq__ledger_open(st, st->next->number, &st->opened, why) : RQ_OK;
}

static void task_run(rq_task *task)
{
    rq__striped *st = RQ_CONTAINER_OF(task, rq__striped, task);
    rq_wal *wal = st->wal;
    rq_error_clear(&st->why);
    rq_err rc = edit_head(st, &st->why);
    if (rc == RQ_OK) drop_ledgers(st);
    pthread_mutex_lock(&wal->mutex);
    st->rc = rc;
    st->ready = true;
    rq__wal_lane_wake(wal);
    pthread_mutex_unlock(&wal->mutex);
}

static bool is_in_flight(const rq__striped *st, uint64_t number)
{
    for (const rq__ledger *s = st->abandoned; s != NULL; s = s->next)
        if (s->log->number == number) return true;
    return false;
}

/* Moves the freed ledgers that have no append in flight to `dropped`, which may still have ledgers
 * from a failed attempt. False: `dropped` is empty. REQUIRES: mutex, the task does not run. */
static bool take_droppable(rq__striped *st)
{
    for (wal_file **at = &st->freed; *at != NULL;) {
        wal_file *s = *at;
        if (is_in_flight(st, s->number)) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        s->next = st->dropped;
        st->dropped = s;
    }
    return st->dropped != NULL;
}

/* REQUIRES: mutex, it does not run. `next`: the ledger to be made; NULL: none. */
static void task_start(rq__striped *st, wal_file *next)
{
    rq_wal *wal = st->wal;
    st->opens = next != NULL;
    st->next = next;
    if (next != NULL) next->number = wal->next_number++;
    if (head_from_chain(st) != RQ_OK) {
        wal->broken = RQ_E_NO_MEMORY;
        rq__wal_retry_later(wal);
        return;
    }
    st->running = true;
    st->task.run = task_run;
    rq_lane_post(st->lane, &st->task);
}

/* --- roll and repair -------------------------------------------------------------------------- */

static void roll(rq__striped *st)
{
    rq_wal *wal = st->wal;
    wal_file *next = rq__wal_file_new(wal->staged);
    if (next == NULL) {
        rq__wal_retry_later(wal);
        return;
    }
    wal->roll_wanted = false;
    next->indexed = false;
    next->prev_number = wal->current->number;
    wal->current->next = next;
    wal->newest = next; /* staging continues in it */
    task_start(st, next);
}

/* The current ledger gets no more appends. Those in flight are void, or were acknowledged before the ledger's end. */
static void leave_ledger(const rq__striped *st)
{
    wal_file *s = st->wal->current;
    if (st->current != NULL) memcpy(s->lengths, st->current->lengths, sizeof s->lengths);
}

/* Prepares the replacement of a ledger in which nothing was acknowledged: the chain's entry `old` is
 * kept and gets a new number later; an entry made here has the old number, and is dropped. */
static void renumber(rq__striped *st, const wal_file *old)
{
    wal_file *gone = rq__wal_file_new(old->first_lsn);
    if (gone == NULL) return; /* its bytes stay until the log is removed */
    gone->number = old->number;
    if (st->current != NULL)
        st->current->gone = gone;
    else
        rq__striped_freed(st->wal, gone);
}

/* Begins a ledger at `synced`, in which all later bytes are sent again. */
static void repair(rq__striped *st)
{
    rq_wal *wal = st->wal;
    wal_file *old = wal->current, *to = wal->newest;
    if (to == old && rq__striped_lacks_progress(wal)) renumber(st, old);
    leave_ledger(st);
    rq__ledger_abandon(st, st->current);
    st->current = NULL;
    st->first = st->last = NULL;
    rq__wal_marks_set(wal, wal->synced, wal->synced);
    wal->push_wanted = true;
    if (to == old && !rq__striped_lacks_progress(wal)) {
        to = rq__wal_file_new(wal->synced);
        if (to == NULL) {
            rq__wal_retry_later(wal);
            return;
        }
        to->indexed = false;
        to->prev_number = old->number;
        old->next = to;
        wal->newest = to;
    }
    to->first_lsn = wal->synced;
    if (to != old && rq__wal_notes_inherit(wal, old, to) != RQ_OK) {
        rq__wal_retry_later(wal);
        return;
    }
    wal->retry_at_ns = 0;
    task_start(st, to);
}

/* The ledger that was made becomes the current one. */
static void switch_over(rq__striped *st)
{
    rq_wal *wal = st->wal;
    wal_file *old = wal->current, *to = st->next;
    bool repaired = wal->broken != RQ_OK;
    RQ_ASSERT(wal->synced == to->first_lsn && wal->written == to->first_lsn);
    leave_ledger(st);
    rq__ledger_free(st->current);
    st->current = st->opened;
    st->opened = NULL;
    if (old != to) {
        old->sealed = true;
        old->end_lsn = to->first_lsn;
    }
    wal->current = to;
    wal->broken = RQ_OK;
    wal->retry_at_ns = 0;
    if (repaired)
        wal->stats.reappends++;
    else
        wal->stats.rolls++;
    rq__late_resumed(st);
    rq__wal_recycle(wal);
}

/* False: nothing can be done now. */
static bool take_result(rq__striped *st)
{
    rq_wal *wal = st->wal;
    bool was_repair = st->current == NULL;
    if (rq__wal_has_failed(wal)) {
        rq__ledger_abandon(st, st->opened);
        st->opened = NULL;
    } else if (st->rc == RQ_OK && st->opens) {
        if (was_repair || wal->broken == RQ_OK) {
            if (wal->synced != st->next->first_lsn) return false; /* until all is acknowledged */
            switch_over(st);
        } else { /* an append failed while the log rolled */
            rq__ledger_abandon(st, st->opened);
            st->opened = NULL;
        }
    } else if (st->rc != RQ_OK) {
        if (st->opens || st->rc == RQ_E_SERVER_ABORTED) wal->broken = st->rc;
        if (st->rc != RQ_E_SERVER_ABORTED) rq__late_stalled(st, &st->why);
        rq__wal_retry_later(wal);
    }
    st->running = st->ready = false;
    return true;
}

/* --- the lane --------------------------------------------------------------------------------- */

static bool roll_is_due(const rq_wal *wal)
{
    if (wal->newest != wal->current || wal->closing) return false;
    if (wal->staged == wal->current->first_lsn) return false; /* nothing in it */
    return wal->roll_wanted || wal->written - wal->current->first_lsn >= wal->options.file_bytes;
}

static void check_patience(rq__striped *st)
{
    rq_wal *wal = st->wal;
    if (wal->broken != RQ_OK || st->first == NULL) return;
    for (const rq__extent_write *w = st->first; w != NULL; w = w->next)
        if (!w->acknowledged && rq__striped_now_ns(wal) - w->sent_ns >= PATIENCE_NS) {
            wal->broken = RQ_E_TIMEOUT;
            rq__late_lost(st, w, RQ_E_TIMEOUT);
        }
}

static void open_if_drained(rq__striped *st)
{
    if (!st->draining || st->running || st->abandoned != NULL ||
        (st->current != NULL && st->current->in_flight > 0))
        return;
    st->draining = false;
    rq_executor *ex = st->wal->env.executor;
    ex->latch_open(&st->drained, RQ_OK);
}

/* Whether the log has failed for good, with *ret. During a close any error counts, so that the close
 * does not wait for storage that cannot be reached. */
static bool has_ended(const rq__striped *st, rq_err *ret)
{
    const rq_wal *wal = st->wal;
    *ret = RQ_E_SERVER_ABORTED;
    if (st->aborted || tenure_is_over(st) || wal->broken == RQ_E_SERVER_ABORTED) return true;
    *ret = wal->broken;
    return wal->closing && wal->broken != RQ_OK && !st->running && wal->staged != wal->synced &&
           (st->current == NULL || rq__striped_lacks_progress(wal));
}

bool rq__striped_step(rq_wal *wal)
{
    rq__striped *st = wal->striped;
    rq_err rc;
    wal->timed_out = false;
    check_patience(st);
    rq__late_check(st);
    if (st->ready && take_result(st)) return true;
    if (rq__wal_has_failed(wal)) {
        open_if_drained(st);
        return false;
    }
    if (has_ended(st, &rc)) {
        rq_error none = {.code = RQ_OK};
        rq__wal_fail(wal, rc, &none);
        return true;
    }
    if (wal->broken != RQ_OK) {
        if (wal->closing && wal->staged == wal->synced) { /* it needs no ledger any more */
            open_if_drained(st);
            return false;
        }
        if (st->running || !rq__wal_may_retry(wal)) return false;
        repair(st);
        return true;
    }
    if (!st->running && roll_is_due(wal)) {
        roll(st);
        return true;
    }
    if (rq__ledger_send(st)) return true;
    if (!st->running && !wal->closing && rq__wal_may_retry(wal) && take_droppable(st)) {
        wal->retry_at_ns = 0;
        task_start(st, NULL);
        return true;
    }
    open_if_drained(st);
    return false;
}

rq_err rq__striped_place(rq_wal *wal, rq_lsn at, rq__striped_place_info *ret, rq_error *why)
{
    const rq__striped *st = wal->striped;
    const wal_file *s = wal->oldest;
    if (at < s->first_lsn)
        return rq_fail(why, RQ_E_NOT_FOUND,
                       "the write-ahead log begins at LSN %llu, after the position %llu",
                       (unsigned long long)s->first_lsn, (unsigned long long)at);
    while (s->sealed && s->end_lsn <= at)
        s = s->next;
    if (wal->synced <= at) return RQ_E_END;
    bool is_written = s == wal->current && st->current != NULL;
    *ret = (rq__striped_place_info){.ledger.number = s->number,
                                    .first_lsn = s->first_lsn,
                                    .end = s->sealed ? s->end_lsn : wal->synced};
    memcpy(ret->ledger.lengths, is_written ? st->current->lengths : s->lengths,
           sizeof ret->ledger.lengths);
    return RQ_OK;
}

void rq__striped_freed(rq_wal *wal, wal_file *s)
{
    s->next = wal->striped->freed;
    wal->striped->freed = s;
    if (wal->lane != NULL) rq__wal_lane_wake(wal);
}

void rq_wal_abort(rq_wal *wal)
{
    RQ_ASSERT(wal->striped != NULL);
    pthread_mutex_lock(&wal->mutex);
    wal->striped->aborted = true;
    if (wal->lane != NULL) rq__wal_lane_wake(wal);
    pthread_mutex_unlock(&wal->mutex);
}

/* --- beginning and end ------------------------------------------------------------------------ */

rq_err rq__striped_open(rq_wal *wal, rq_error *why)
{
    const rq_wal_options *o = &wal->options;
    size_t len = strlen(o->server_name);
    if (len > RQ_SHARED_NAME_MAX)
        return rq_fail(why, RQ_E_INVALID, "the server's name is too long");
    rq__striped *st = calloc(1, sizeof *st);
    if (st == NULL) return rq_no_memory(why);
    st->wal = wal;
    st->shared = o->tenure->shared;
    st->tenure = o->tenure;
    memcpy(st->server_name, o->server_name, len + 1);
    wal->striped = st;
    wal->options.sync = RQ_WAL_SYNC;
    wal->epoch = rq__extent_epoch(o->server_name);
    return RQ_OK;
}

rq_err rq__striped_begin(rq_wal *wal, rq_error *why)
{
    rq__striped *st = wal->striped;
    rq_executor *ex = wal->env.executor;
    rq_err rc = ex->lane_new(ex, "rq-wal-head", &st->lane);
    if (rc != RQ_OK) return rq_fail(why, rc, "cannot start the log's second lane");
    wal_file *s = rq__wal_file_new(RQ_WAL_FIRST_LSN);
    if (s == NULL) return rq_no_memory(why);
    s->indexed = false;
    s->number = wal->next_number++;
    pthread_mutex_lock(&wal->mutex);
    wal->oldest = wal->newest = wal->current = s;
    wal->staged = wal->attested = wal->mark_end = s->first_lsn;
    wal->staged_crc = 0;
    atomic_store(&wal->staged_mark, s->first_lsn);
    rq__wal_marks_set(wal, s->first_lsn, s->first_lsn);
    wal->pen = PEN_LANE; /* for ever */
    st->opens = true;
    st->next = s;
    rc = head_from_chain(st);
    pthread_mutex_unlock(&wal->mutex);
    if (rc != RQ_OK) return rq_no_memory(why);
    RQ_TRY(edit_head(st, why));
    st->current = st->opened;
    st->opened = NULL;
    return RQ_OK;
}

void rq__striped_drain(rq_wal *wal)
{
    rq__striped *st = wal->striped;
    rq_executor *ex = wal->env.executor;
    ex->latch_init(ex, &st->drained);
    pthread_mutex_lock(&wal->mutex);
    st->draining = true;
    rq__wal_lane_wake(wal);
    pthread_mutex_unlock(&wal->mutex);
    (void)ex->latch_wait(&st->drained);
    ex->latch_destroy(&st->drained);
}

rq_err rq__striped_close_head(rq_wal *wal, rq_error *why)
{
    rq__striped *st = wal->striped;
    st->head.count = 0;
    st->head.state = RQ_WAL_CLOSED;
    st->head.edit++;
    return rq__head_swap(st->shared, st->server_name, &st->head, &st->generation, why);
}

static void files_free(wal_file *list)
{
    while (list != NULL) {
        wal_file *s = list;
        list = s->next;
        free(s);
    }
}

void rq__striped_free(rq__striped *st)
{
    if (st == NULL) return;
    RQ_ASSERT(st->abandoned == NULL);
    if (st->lane != NULL) st->wal->env.executor->lane_free(st->wal->env.executor, st->lane);
    st->wal->lane = NULL; /* freed */
    rq__ledger_free(st->current);
    rq__ledger_free(st->opened);
    files_free(st->freed);
    files_free(st->dropped);
    free(st->head.ledgers);
    free(st);
}
