/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log on shared storage (vfs/shared.h): one for each incarnation of a server. It takes the place of
 * WAL files behind staging; positions, waiters and notes are the same.
 *
 *   ring ── batch ──► extent i ──► stripe i mod W of the segment ── acknowledged ──► in LSN order: synced
 *
 *  1. Loops do not write: push wakes the lane, which keeps the pen. It copies a batch out of the
 *     ring and sends it as an extent (extent.h). Each stripe has one append in flight at most:
 *     guarded appends to one object do not pipeline, and delay a fence.
 *  2. `written` is the end of the bytes sent. Acknowledgements arrive in any order, `synced`
 *     advances in the order of LSNs.
 *  3. A segment has a wal_file of the chain, without a slot. A new one is named in the head
 *     (head.h) and then made, on a lane of its own; records staged meanwhile are noted in it, and
 *     sent once everything before it is acknowledged.
 *  4. After an append that failed, or that was not answered within 2 s, the segment is *abandoned*:
 *     a new one begins at `synced`, and everything behind is sent again, with the same LSNs. Bytes
 *     of the abandoned one that arrive later are void. Its memory stays until its appends have
 *     ended.
 *  5. While the storage cannot be reached this is repeated. The log fails only when the tenure has
 *     ended. On full storage, waiters are told so after a while, as with files.
 *  6. Segments that no region needs leave the head first, then their bytes are removed.
 *
 * Prewriting, recycling, marks, indexes and HANDOVER exist for files only.
 */
#include "wal/striped.h"

#include <stdlib.h>

#include "base/checksum.h"
#include "wal/extent.h"
#include "wal/head.h"

#define PATIENCE_NS UINT64_C(2000000000)

typedef struct segment segment;

typedef struct extent_write {
    rq_slog_write write;
    segment *segment;
    struct extent_write *next; /* in the order of LSNs */
    rq_lsn from, to;
    uint64_t sent_ns;
    bool busy, acknowledged;
    rq_buf bytes;
} extent_write;

/* A segment of the storage, and the appends to it. The lane's. */
struct segment {
    segment *next; /* of the abandoned ones */
    rq_wal *wal;
    rq_slog *log;
    unsigned in_flight, next_stripe;
    bool abandoned;
    wal_file *gone; /* to be freed after it; NULL: its part of the chain stays */
    uint64_t lengths[RQ_SLOG_STRIPES];
    extent_write writes[RQ_SLOG_STRIPES];
};

struct rq__striped {
    rq_wal *wal;
    rq_shared *shared;
    rq_tenure *tenure;
    char server_name[RQ_SHARED_NAME_MAX + 1];
    segment *current, *abandoned;
    extent_write *first, *last; /* in flight, or acknowledged behind one that is */
    wal_file *freed;

    /* The task that edits the head. Its fields are the lane's while it does not run, and its own
     * while it does. */
    rq_lane *lane; /* the task's own: all pool tasks may be waiting for the log */
    rq_task task;
    bool running, ready; /* guarded by the log's mutex */
    bool opens;          /* a segment is to be made, of `next` */
    wal_file *next;
    wal_file *dropped; /* taken from `freed`: to be removed once the head no longer names them */
    segment *opened;
    rq__head head;
    size_t head_cap;
    uint64_t generation;
    rq_err rc;
    rq_error why;

    bool aborted; /* guarded by the log's mutex, as `draining` */
    bool draining;
    rq_latch drained;
};

static uint64_t now_ns(const rq_wal *wal)
{
    return wal->env.executor->now_ns(wal->env.executor);
}

/* --- segments --------------------------------------------------------------------------------- */

/* REQUIRES: mutex, unless the log is being freed. */
static void segment_free(segment *s)
{
    if (s == NULL) return;
    RQ_ASSERT(s->in_flight == 0);
    if (s->gone != NULL) rq__striped_freed(s->wal, s->gone);
    rq_slog_close(s->log);
    for (unsigned k = 0; k < RQ_SLOG_STRIPES; k++)
        rq_buf_clear(&s->writes[k].bytes);
    free(s);
}

/* Blocks. */
static rq_err segment_open(rq__striped *st, uint64_t number, segment **ret, rq_error *why)
{
    segment *s = calloc(1, sizeof *s);
    if (s == NULL) return rq_no_memory(why);
    s->wal = st->wal;
    rq_err rc = rq_slog_open(st->tenure, number, &s->log, why);
    if (rc != RQ_OK) {
        free(s);
        return rc;
    }
    *ret = s;
    return RQ_OK;
}

static void abandon(rq__striped *st, segment *s)
{
    if (s == NULL) return;
    if (s->in_flight == 0) {
        segment_free(s);
        return;
    }
    s->abandoned = true;
    s->next = st->abandoned;
    st->abandoned = s;
}

static void forget_abandoned(rq__striped *st, segment *gone)
{
    segment **at = &st->abandoned;
    while (*at != gone)
        at = &(*at)->next;
    *at = gone->next;
    segment_free(gone);
}

/* --- appends ---------------------------------------------------------------------------------- */

/* Nothing was acknowledged in the current segment. */
static bool lacks_progress(const rq_wal *wal)
{
    return wal->current->first_lsn == wal->synced;
}

/* REQUIRES: mutex. */
static void advance(rq__striped *st)
{
    rq_wal *wal = st->wal;
    while (st->first != NULL && st->first->acknowledged) {
        extent_write *w = st->first;
        uint64_t took = now_ns(wal) - w->sent_ns;
        st->first = w->next;
        if (st->first == NULL) st->last = NULL;
        w->busy = false;
        rq__wal_marks_set(wal, wal->written, w->to);
        wal->attested = wal->synced;
        wal->stats.syncs++;
        wal->stats.sync_ns += took;
        if (took > wal->stats.sync_ns_max) wal->stats.sync_ns_max = took;
        rq_times_add(&wal->sync_times, took, 1);
    }
}

static void appended(rq_slog_write *write, rq_err rc)
{
    extent_write *w = RQ_CONTAINER_OF(write, extent_write, write);
    segment *s = w->segment;
    rq_wal *wal = s->wal;
    rq__striped *st = wal->striped;
    pthread_mutex_lock(&wal->mutex);
    s->in_flight--;
    if (s->abandoned) {
        if (s->in_flight == 0) forget_abandoned(st, s);
    } else if (rc == RQ_OK) {
        w->acknowledged = true;
        s->lengths[write->stripe] += write->bytes.len;
        wal->no_space = false;
        advance(st);
    } else if (wal->broken == RQ_OK || rc == RQ_E_SERVER_ABORTED) {
        wal->broken = rc;
        if (rc == RQ_E_NO_SPACE) wal->no_space = true; /* until an append succeeds */
        if (lacks_progress(wal)) rq__wal_retry_later(wal);
    }
    pthread_mutex_unlock(&wal->mutex);
    rq__wal_complete(wal, NULL);
    rq__wal_lane_turn(wal);
}

/* The end of an extent that begins at `from`: the end of a frame. The ring's frames are our own and
 * trusted. */
static rq_lsn extent_end(const rq_wal *wal, rq_lsn from, rq_lsn to)
{
    if (to - from <= RQ_WAL_EXTENT_BYTES) return to;
    rq_lsn end = from;
    for (;;) {
        /* Frames are aligned and the ring's size is a power of two: no header field crosses the
         * ring's end. */
        uint32_t body = rq_get_be32(wal->ring + ((end + 24) & (wal->ring_cap - 1)));
        uint64_t len = rq__wal_frame_len(body);
        RQ_ASSERT(len <= to - end);
        if (end > from && end + len - from > RQ_WAL_EXTENT_BYTES) return end;
        end += len;
        if (end == to) return end;
    }
}

static rq_err extent_fill(const rq_wal *wal, extent_write *w, const uint8_t *ring, size_t cap,
                          uint64_t acknowledged)
{
    size_t len = (size_t)(w->to - w->from), pos = (size_t)(w->from & (cap - 1));
    size_t first = cap - pos < len ? cap - pos : len;
    rq_buf_reset(&w->bytes);
    RQ_TRY(rq_buf_reserve(&w->bytes, RQ_WAL_EXTENT_HEADER_LEN + len));
    uint8_t *body = w->bytes.ptr + RQ_WAL_EXTENT_HEADER_LEN;
    memcpy(body, ring + pos, first);
    memcpy(body + first, ring, len - first);
    w->bytes.len = RQ_WAL_EXTENT_HEADER_LEN + len;
    rq__extent e = {.epoch = wal->epoch, .lsn = w->from, .len = (uint32_t)len};
    e.acknowledged = acknowledged;
    e.crc = rq_crc32c(0, body, len);
    rq__extent_encode(&e, w->bytes.ptr);
    return RQ_OK;
}

/* Sends [written, to). REQUIRES: mutex, which is released meanwhile; the stripe is idle. */
static void send_extent(rq__striped *st, extent_write *w, unsigned stripe, rq_lsn to)
{
    rq_wal *wal = st->wal;
    segment *s = st->current;
    rq_lsn acknowledged = wal->synced;
    w->segment = s;
    w->from = wal->written;
    w->to = extent_end(wal, wal->written, to);
    w->next = NULL;
    w->acknowledged = false;
    const uint8_t *ring = wal->ring; /* stays, for the lane has the pen */
    size_t cap = wal->ring_cap;
    pthread_mutex_unlock(&wal->mutex);
    rq_err rc = extent_fill(wal, w, ring, cap, acknowledged);
    pthread_mutex_lock(&wal->mutex);
    free(wal->ring_retired);
    wal->ring_retired = NULL;
    if (rc != RQ_OK) {
        wal->broken = rc;
        return;
    }
    w->busy = true;
    w->sent_ns = now_ns(wal);
    w->write = (rq_slog_write){.stripe = stripe,
                               .off = s->lengths[stripe],
                               .bytes = rq_buf_slice(&w->bytes),
                               .lane = wal->lane,
                               .done = appended};
    *(st->last == NULL ? &st->first : &st->last->next) = w;
    st->last = w;
    s->in_flight++;
    s->next_stripe = (stripe + 1) % RQ_SLOG_STRIPES;
    wal->stats.writes++;
    wal->written = w->to;
    atomic_store_explicit(&wal->written_mark, w->to, memory_order_release);
    pthread_mutex_unlock(&wal->mutex);
    rq_slog_submit(s->log, &w->write);
    pthread_mutex_lock(&wal->mutex);
}

static bool send_next(rq__striped *st)
{
    rq_wal *wal = st->wal;
    segment *s = st->current;
    rq_lsn to = wal->newest == wal->current ? wal->staged : wal->newest->first_lsn;
    if (wal->written == to) {
        if (to == wal->staged) wal->push_wanted = false;
        return false;
    }
    extent_write *w = &s->writes[s->next_stripe];
    if (w->busy) return false;
    send_extent(st, w, s->next_stripe, to);
    return true;
}

/* --- the task that edits the head ------------------------------------------------------------- */

static bool tenure_is_over(const rq__striped *st)
{
    return rq_tenure_valid_until(st->tenure) == 0;
}

static rq_err named_add(rq__striped *st, const wal_file *s)
{
    if (st->head.count == st->head_cap) {
        size_t cap = st->head_cap == 0 ? 16 : st->head_cap * 2;
        void *more = realloc(st->head.segments, cap * sizeof *st->head.segments);
        if (more == NULL) return RQ_E_NO_MEMORY;
        st->head.segments = more;
        st->head_cap = cap;
    }
    st->head.segments[st->head.count++] =
        (rq__head_segment){.first_lsn = s->first_lsn, .slog.number = s->number};
    return RQ_OK;
}

/* The head names the chain; its newest segment only if that is current or about to be made.
 * REQUIRES: mutex, or no lane. */
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
static void drop_segments(rq__striped *st)
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
    return st->opens ? segment_open(st, st->next->number, &st->opened, why) : RQ_OK;
}

static void task_run(rq_task *task)
{
    rq__striped *st = RQ_CONTAINER_OF(task, rq__striped, task);
    rq_wal *wal = st->wal;
    rq_error_clear(&st->why);
    rq_err rc = edit_head(st, &st->why);
    if (rc == RQ_OK) drop_segments(st);
    pthread_mutex_lock(&wal->mutex);
    st->rc = rc;
    st->ready = true;
    rq__wal_lane_wake(wal);
    pthread_mutex_unlock(&wal->mutex);
}

static bool is_in_flight(const rq__striped *st, uint64_t number)
{
    for (const segment *s = st->abandoned; s != NULL; s = s->next)
        if (s->log->number == number) return true;
    return false;
}

/* Takes the freed segments without an append in flight, and appends them to those of a failed
 * attempt. REQUIRES: mutex, the task does not run. */
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

/* REQUIRES: mutex, it does not run. `next`: the segment to be made; NULL: none. */
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

/* The segment that replaces one in which nothing was acknowledged: its chain entry gets another
 * number. */
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

/* Begins a segment at `synced`, in which all later bytes are sent again. */
static void repair(rq__striped *st)
{
    rq_wal *wal = st->wal;
    wal_file *old = wal->current, *to = wal->newest;
    if (to == old && lacks_progress(wal)) renumber(st, old);
    abandon(st, st->current);
    st->current = NULL;
    st->first = st->last = NULL;
    rq__wal_marks_set(wal, wal->synced, wal->synced);
    wal->push_wanted = true;
    if (to == old && !lacks_progress(wal)) {
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

/* The segment that was made becomes the current one. */
static void switch_over(rq__striped *st)
{
    rq_wal *wal = st->wal;
    wal_file *old = wal->current, *to = st->next;
    bool repaired = wal->broken != RQ_OK;
    RQ_ASSERT(wal->synced == to->first_lsn && wal->written == to->first_lsn);
    segment_free(st->current);
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
    rq__wal_recycle(wal);
}

/* False: nothing can be done now. */
static bool take_result(rq__striped *st)
{
    rq_wal *wal = st->wal;
    bool was_repair = st->current == NULL;
    if (rq__wal_has_failed(wal)) {
        abandon(st, st->opened);
        st->opened = NULL;
    } else if (st->rc == RQ_OK && st->opens) {
        if (was_repair || wal->broken == RQ_OK) {
            if (wal->synced != st->next->first_lsn) return false; /* until all is acknowledged */
            switch_over(st);
        } else { /* an append failed while the log rolled */
            abandon(st, st->opened);
            st->opened = NULL;
        }
    } else if (st->rc != RQ_OK) {
        if (st->opens || st->rc == RQ_E_SERVER_ABORTED) wal->broken = st->rc;
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

static void look_at_patience(rq__striped *st)
{
    rq_wal *wal = st->wal;
    if (wal->broken != RQ_OK || st->first == NULL) return;
    for (const extent_write *w = st->first; w != NULL; w = w->next)
        if (!w->acknowledged && now_ns(wal) - w->sent_ns >= PATIENCE_NS) wal->broken = RQ_E_TIMEOUT;
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

/* While the log is being closed any error ends it, so that the close does not wait for the
 * storage. */
static bool has_ended(const rq__striped *st, rq_err *ret)
{
    const rq_wal *wal = st->wal;
    *ret = RQ_E_SERVER_ABORTED;
    if (st->aborted || tenure_is_over(st) || wal->broken == RQ_E_SERVER_ABORTED) return true;
    *ret = wal->broken;
    return wal->closing && wal->broken != RQ_OK && !st->running && wal->staged != wal->synced &&
           (st->current == NULL || lacks_progress(wal));
}

bool rq__striped_step(rq_wal *wal)
{
    rq__striped *st = wal->striped;
    rq_err rc;
    wal->timed_out = false;
    look_at_patience(st);
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
        if (wal->closing && wal->staged == wal->synced) { /* it needs no segment any more */
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
    if (send_next(st)) return true;
    if (!st->running && !wal->closing && rq__wal_may_retry(wal) && take_droppable(st)) {
        wal->retry_at_ns = 0;
        task_start(st, NULL);
        return true;
    }
    open_if_drained(st);
    return false;
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
    segment_free(st->current);
    segment_free(st->opened);
    files_free(st->freed);
    files_free(st->dropped);
    free(st->head.segments);
    free(st);
}
