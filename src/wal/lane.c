/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log's own lane: everything that waits for the disk.
 *
 * - sync: makes written bytes durable, then wakes each lane with waiters once; while there are more
 *   waiters, the next sync follows in a task of its own. On an executor without threads a task runs
 *   on the thread of a call, which returns when its own bytes are durable.
 * - write: bytes that pushes left behind.
 * - prewrite: fills the file with zeros ahead of the writers, so that fdatasync need not make new
 *   lengths and blocks durable with each batch, and a full disk is noticed early. Not in HANDOVER
 *   mode, where syncs are few and it would only cost (about 2 ms of CPU per MB).
 * - roll: ends a WAL file and begins the next, between two staged frames, with the pen. The old
 *   WAL file's bytes are durable before the new one's header (wal/format.h, rule 2).
 * - repair: after a failed write or sync, seals the WAL file at its last durable frame and appends
 *   everything behind it to a new one, with the same positions and bytes. A log opened on a full
 *   disk gets its first WAL file in the same way.
 *
 * One of these functions runs at a time. Each is entered and left with the mutex held and releases
 * it during file operations.
 */
#include <stdlib.h>

#include "wal/striped.h"

#define ZEROS (64u << 10)
#define PREWRITE_STEP (1u << 20)

bool rq__wal_lane_claim(rq_wal *wal)
{
    if (wal->lane_posted || wal->lane_running) return false;
    wal->lane_posted = true;
    return true;
}

void rq__wal_lane_wake(rq_wal *wal)
{
    if (rq__wal_lane_claim(wal)) rq_lane_post(wal->lane, &wal->lane_task);
}

void rq__wal_pen_release(rq_wal *wal)
{
    RQ_ASSERT(wal->pen != PEN_FREE);
    free(wal->ring_retired);
    wal->ring_retired = NULL;
    if (wal->pen == PEN_LOOP && (wal->lane_wants_pen || wal->broken != RQ_OK)) {
        wal->pen = PEN_LANE;
        wal->lane_wants_pen = false;
        rq__wal_lane_wake(wal);
    } else {
        wal->pen = PEN_FREE;
    }
}

/* False: a loop has the pen and will pass it to the lane. */
static bool pen_take(rq_wal *wal)
{
    if (wal->pen == PEN_LOOP) {
        wal->lane_wants_pen = true;
        return false;
    }
    wal->pen = PEN_LANE;
    return true;
}

static void complete(rq_wal *wal)
{
    pthread_mutex_unlock(&wal->mutex);
    rq__wal_complete(wal, NULL);
    pthread_mutex_lock(&wal->mutex);
}

void rq__wal_fail(rq_wal *wal, rq_err rc, const rq_error *detail)
{
    atomic_store_explicit(&wal->failed, (int)rc, memory_order_release);
    wal->pen = PEN_FREE;
    pthread_mutex_unlock(&wal->mutex);
    rq__wal_complete(wal, NULL);
    if (wal->options.on_failed != NULL) {
        rq_error why;
        rq_error_clear(&why);
        (void)rq_fail(&why, rc, "the write-ahead log has failed: %s",
                      detail->code != RQ_OK ? detail->message : rq_err_text(rc));
        wal->options.on_failed(wal->options.ctx, &why);
    }
    pthread_mutex_lock(&wal->mutex);
}

static uint64_t now_ns(rq_wal *wal)
{
    return wal->env.executor->now_ns(wal->env.executor);
}

void rq__wal_retry_later(rq_wal *wal)
{
    wal->retry_at_ns = now_ns(wal) + RQ_WAL_RETRY_NS;
}

bool rq__wal_may_retry(rq_wal *wal)
{
    return wal->retry_at_ns == 0 || wal->closing || now_ns(wal) >= wal->retry_at_ns;
}

/* --- sync --------------------------------------------------------------------------------- */

void rq__wal_marks_set(rq_wal *wal, rq_lsn written, rq_lsn synced)
{
    wal->written = written;
    wal->synced = synced;
    atomic_store_explicit(&wal->written_mark, written, memory_order_release);
    atomic_store_explicit(&wal->synced_mark, synced, memory_order_release);
}

/* Bytes written before it begins are durable when it returns, or the log is broken. */
static void sync_written(rq_wal *wal)
{
    rq_lsn target = wal->written;
    uint32_t crc = wal->written_crc;
    slot *s = wal->current->slot;
    pthread_mutex_unlock(&wal->mutex);
    uint64_t began = now_ns(wal);
    rq_err rc = rq_file_sync(s->file, NULL);
    uint64_t took = now_ns(wal) - began;
    pthread_mutex_lock(&wal->mutex);
    wal->stats.syncs++;
    wal->stats.sync_ns += took;
    rq_times_add(&wal->sync_times, took, 1);
    if (took > wal->stats.sync_ns_max) wal->stats.sync_ns_max = took;
    if (rc == RQ_OK) {
        wal->synced_crc = crc;
        rq__wal_marks_set(wal, wal->written, target);
    } else {
        s->bad = true;
        wal->broken = rc;
        wal->broken_by_sync = true;
    }
}

static bool sync_due(const rq_wal *wal)
{
    return wal->written > wal->synced &&
           (wal->sync_wanted > wal->synced ||
            wal->written - wal->synced >= RQ_WAL_BACKGROUND_SYNC_BYTES);
}

/* Whether bytes other than a mark were written. */
static bool sync_worthwhile(const rq_wal *wal)
{
    return wal->written > wal->synced && wal->written > wal->mark_end;
}

static bool mark_worthwhile(const rq_wal *wal)
{
    return wal->attested < wal->synced && wal->staged == wal->written;
}

void rq__wal_arm_timer(rq_wal *wal)
{
    if (wal->timer_armed || rq__wal_has_failed(wal)) return;
    /* On shared storage the timer also notices appends that are not answered. */
    if (wal->closing && (wal->striped == NULL || wal->written == wal->synced)) return;
    uint64_t delay;
    bool stands_still = wal->striped != NULL && wal->broken != RQ_OK;
    if (wal->retry_at_ns != 0 || stands_still)
        delay = RQ_WAL_RETRY_NS;
    else if (sync_worthwhile(wal) || mark_worthwhile(wal))
        delay = RQ_WAL_IDLE_NS;
    else
        return;
    wal->timer_armed = true;
    wal->env.executor->timer_arm(wal->env.executor, &wal->timer, wal->lane, delay);
}

/* --- prewriting --------------------------------------------------------------------------- */

static uint64_t prewrite_step(const rq_wal *wal)
{
    uint64_t step = wal->options.file_bytes / 4;
    return step > PREWRITE_STEP ? PREWRITE_STEP : step;
}

/* The distance between the staged end and the end of the prewritten space below which prewriting
 * begins. It exceeds RQ__WAL_RESERVE if WAL files are large enough, so that a full disk is noticed
 * before the reserve is used. */
static uint64_t due_ahead(const rq_wal *wal)
{
    uint64_t step = prewrite_step(wal);
    uint64_t least = step < 2 * RQ__WAL_RESERVE ? step / 2 : RQ__WAL_RESERVE * 3 / 2;
    if (wal->no_space) return step;
    return step / 8 > least ? step / 8 : least;
}

/* How far the zeros reach beyond the written bytes, and whether more are needed. */
static bool prewrite_due(rq_wal *wal, uint64_t least_ahead)
{
    const slot *s = wal->current->slot;
    uint64_t at = rq__wal_offset(wal->current, wal->staged);
    return wal->options.sync == RQ_WAL_SYNC &&
           s->prewritten < RQ_WAL_FRAMES_AT + wal->options.file_bytes &&
           s->prewritten < at + least_ahead && !s->bad && !wal->closing && rq__wal_may_retry(wal);
}

static rq_err zeros_write(rq_file *f, uint64_t from, uint64_t to)
{
    static const uint8_t zeros[ZEROS];
    while (from < to) {
        size_t len = to - from < ZEROS ? (size_t)(to - from) : ZEROS;
        RQ_TRY(rq_file_write(f, zeros, len, from, NULL));
        from += len;
    }
    return RQ_OK;
}

/* Writers that would pass `prewritten` meanwhile leave their bytes to the lane. */
static void prewrite(rq_wal *wal)
{
    if (wal->pen == PEN_LOOP) {
        /* It may be writing just there. */
        wal->lane_wants_pen = true;
        return;
    }
    slot *s = wal->current->slot;
    uint64_t from = s->prewritten;
    uint64_t at = rq__wal_offset(wal->current, wal->written);
    if (from < at) from = at;
    if (from < RQ_WAL_FRAMES_AT) from = RQ_WAL_FRAMES_AT;
    uint64_t to = from + prewrite_step(wal);
    wal->prewriting = true;
    pthread_mutex_unlock(&wal->mutex);
    rq_err rc = zeros_write(s->file, from, to);
    pthread_mutex_lock(&wal->mutex);
    wal->prewriting = false;
    if (rc == RQ_OK) {
        s->prewritten = to;
        wal->no_space = false;
        wal->retry_at_ns = 0;
    } else if (rc == RQ_E_NO_SPACE) {
        wal->no_space = true;
        rq__wal_retry_later(wal);
    } else if (wal->broken == RQ_OK) {
        wal->broken = rc;
        wal->broken_by_sync = false;
    }
}

/* --- files -------------------------------------------------------------------------------- */

static bool is_unfit(const rq_wal *wal, const slot *s)
{
    return s->bad || rq__wal_is_too_long(wal, s);
}

/* Removes unneeded files, except for a small stock. A file may be removed only once a durable
 * header says that its records are not needed. */
static void slots_trim(rq_wal *wal, uint64_t oldest_needed)
{
    slot *gone = NULL;
    unsigned kept = 0;
    for (slot **at = &wal->free_slots; *at != NULL;) {
        slot *s = *at;
        if (s->number < oldest_needed && (is_unfit(wal, s) || kept >= RQ_WAL_FREE_SLOTS_KEPT)) {
            *at = s->next;
            s->next = gone;
            gone = s;
        } else {
            kept += !s->bad;
            at = &s->next;
        }
    }
    if (gone == NULL) return;
    pthread_mutex_unlock(&wal->mutex);
    while (gone != NULL) {
        slot *s = gone;
        gone = s->next;
        char path[RQ_WAL_PATH_MAX];
        rq__wal_slot_path(wal, s->id, path);
        rq__wal_slot_free(s);
        /* The next open finds a file that stays, and treats it as free. */
        rq_err unimportant = rq_vfs_remove(wal->env.vfs, path, NULL);
        (void)unimportant;
    }
    pthread_mutex_lock(&wal->mutex);
}

/* Takes a free file. If it never had a valid header, its name may not be durable, because the
 * process may have crashed while creating it; so the folder is synced before a header is written
 * into it. */
static rq_err slot_take_free(rq_wal *wal, slot *s, slot **ret, rq_error *why)
{
    rq_err rc = s->number > 0 ? RQ_OK : rq_vfs_sync_dir(wal->env.vfs, wal->dir, why);
    if (rc == RQ_OK) {
        *ret = s;
        return RQ_OK;
    }
    pthread_mutex_lock(&wal->mutex);
    s->next = wal->free_slots;
    wal->free_slots = s;
    pthread_mutex_unlock(&wal->mutex);
    return rc;
}

rq_err rq__wal_slot_take(rq_wal *wal, slot **ret, rq_error *why)
{
    pthread_mutex_lock(&wal->mutex);
    slot **at = &wal->free_slots;
    while (*at != NULL && (*at)->bad)
        at = &(*at)->next;
    slot *s = *at;
    if (s != NULL) *at = s->next;
    unsigned id = s == NULL ? wal->next_slot++ : 0;
    pthread_mutex_unlock(&wal->mutex);
    if (s != NULL) {
        s->next = NULL;
        return slot_take_free(wal, s, ret, why);
    }
    s = calloc(1, sizeof *s);
    if (s == NULL) return rq_fail(why, RQ_E_NO_MEMORY, "%s: out of memory", wal->dir);
    s->id = id;
    char path[RQ_WAL_PATH_MAX];
    rq__wal_slot_path(wal, id, path);
    rq_err rc = rq_vfs_open(wal->env.vfs, path, RQ_OPEN_WRITE | RQ_OPEN_CREATE | RQ_OPEN_EXCL,
                            &s->file, why);
    if (rc == RQ_OK) rc = rq_vfs_sync_dir(wal->env.vfs, wal->dir, why);
    if (rc != RQ_OK) {
        rq__wal_slot_free(s);
        return rc;
    }
    *ret = s;
    return RQ_OK;
}

/* --- roll --------------------------------------------------------------------------------- */

static bool roll_due(rq_wal *wal)
{
    const wal_file *s = wal->current;
    if (wal->staged == s->first_lsn) wal->roll_wanted = false; /* nothing in it */
    return (wal->roll_wanted || wal->written - s->first_lsn >= wal->options.file_bytes) &&
           !wal->closing && rq__wal_may_retry(wal);
}

/* Makes everything up to the cut durable in `old`, and writes its index behind it. */
static rq_err roll_seal(const rq_wal *wal, const uint8_t *ring, size_t cap, const wal_file *old,
                        rq_lsn cut, const rq_buf *index, bool *ret_sync_failed)
{
    *ret_sync_failed = false;
    RQ_TRY(rq__wal_ring_write(ring, cap, old, old->slot, wal->written, cut, NULL));
    if (index->len > 0) {
        /* Readers can do without the index; the sync shows whether the file is sound. */
        rq_err unimportant =
            rq_file_write(old->slot->file, index->ptr, index->len, rq__wal_offset(old, cut), NULL);
        (void)unimportant;
    }
    rq_err rc = rq_file_sync(old->slot->file, NULL);
    *ret_sync_failed = rc != RQ_OK;
    return rc;
}

static void roll(rq_wal *wal)
{
    /* Makes most bytes durable while writers still write. */
    if (sync_worthwhile(wal)) {
        sync_written(wal);
        complete(wal);
        if (wal->broken != RQ_OK) return;
    }
    rq_err rc = RQ_OK;
    if (wal->spare == NULL) {
        pthread_mutex_unlock(&wal->mutex);
        rc = rq__wal_slot_take(wal, &wal->spare, NULL);
        pthread_mutex_lock(&wal->mutex);
    }
    if (wal->broken != RQ_OK || !pen_take(wal)) return;
    rq__wal_await_copies(wal);
    wal_file *old = wal->current;
    wal_file *next = rc == RQ_OK ? rq__wal_file_new(wal->staged) : NULL;
    if (next == NULL) {
        /* The old WAL file grows until there is a file for the next one. */
        rq__wal_retry_later(wal);
        rq__wal_pen_release(wal);
        return;
    }
    wal->roll_wanted = false;
    rq_buf index = {0};
    if (!old->indexed || rq__wal_index_build(wal, old, wal->staged, &index) != RQ_OK)
        rq_buf_clear(&index);
    rq_lsn cut = wal->staged;
    uint32_t crc = wal->staged_crc;
    next->number = wal->next_number++;
    next->prev_number = old->number;
    next->slot = wal->spare;
    wal->spare = NULL;
    old->next = next;
    wal->newest = next; /* staging continues in it */
    const uint8_t *ring = wal->ring;
    size_t cap = wal->ring_cap;
    bool sync_failed;

    pthread_mutex_unlock(&wal->mutex);
    rc = roll_seal(wal, ring, cap, old, cut, &index, &sync_failed);
    rq_buf_clear(&index);
    pthread_mutex_lock(&wal->mutex);
    if (rc != RQ_OK) {
        old->slot->bad = old->slot->bad || sync_failed;
        wal->broken = rc;
        wal->broken_by_sync = sync_failed;
        return; /* with the pen: repair continues */
    }
    wal->written_crc = wal->synced_crc = crc;
    rq__wal_marks_set(wal, cut, cut);
    rq_wal_file_info info = rq__wal_info_of(wal, next, crc);
    pthread_mutex_unlock(&wal->mutex);
    rc = rq__wal_header_put(wal, next->slot, &info, NULL);
    pthread_mutex_lock(&wal->mutex);
    if (rc != RQ_OK) {
        next->slot->bad = true;
        wal->broken = rc;
        wal->broken_by_sync = true; /* nothing can be recovered from the old one: it is complete */
        return;
    }
    next->slot->older = 1 - next->slot->older;
    old->sealed = true;
    old->end_lsn = cut;
    wal->current = next;
    wal->stats.rolls++;
    wal->retry_at_ns = 0;
    wal->no_space = false; /* the next write finds out */
    rq__wal_recycle(wal);
    rq__wal_pen_release(wal);
    slots_trim(wal, info.oldest_number);
    complete(wal);
}

/* --- repair ------------------------------------------------------------------------------- */

/* REQUIRES: the pen. One attempt on one file; the mutex is released. */
static rq_err repair_into(rq_wal *wal, wal_file *to, slot *file, rq_error *why)
{
    rq__wal_await_copies(wal);
    rq_lsn from = wal->synced;
    rq_lsn cut = wal->staged;
    uint32_t crc = wal->staged_crc;
    const uint8_t *ring = wal->ring;
    size_t cap = wal->ring_cap;
    to->number = wal->next_number++;
    rq_wal_file_info info = rq__wal_info_of(wal, to, wal->synced_crc);
    pthread_mutex_unlock(&wal->mutex);
    rq_err rc = rq__wal_header_put(wal, file, &info, why);
    if (rc == RQ_OK) rc = rq__wal_ring_write(ring, cap, to, file, from, cut, why);
    if (rc == RQ_OK) rc = rq_file_sync(file->file, why);
    pthread_mutex_lock(&wal->mutex);
    if (rc != RQ_OK) {
        file->bad = rc != RQ_E_NO_SPACE; /* the next attempt uses it then */
        return rc;
    }
    file->older = 1 - file->older;
    wal->written_crc = wal->synced_crc = crc;
    rq__wal_marks_set(wal, cut, cut);
    return RQ_OK;
}

static void slot_give_back(rq_wal *wal, slot *s)
{
    s->next = wal->free_slots;
    wal->free_slots = s;
}

/* The WAL file that replaces `old` from the last durable frame on. */
static wal_file *repair_file(rq_wal *wal, wal_file *old)
{
    wal_file *to = wal->newest;
    if (to == old) {
        to = rq__wal_file_new(wal->synced);
        if (to == NULL) return NULL;
        old->next = to;
        wal->newest = to;
    }
    if (to->slot != NULL)
        slot_give_back(wal, to->slot); /* its header failed, or never came to be */
    to->slot = NULL;
    to->first_lsn = wal->synced;
    to->prev_number = old->number;
    if (old->sealed) return to; /* the log's first WAL file: nothing has been staged for it yet */
    to->indexed = false;
    return rq__wal_notes_inherit(wal, old, to) == RQ_OK ? to : NULL;
}

/* Makes the former process's last WAL file durable, if the log's opening could not (rq_wal.unsure). REQUIRES: mutex,
 * which is released during the writes. */
static rq_err repair_old(rq_wal *wal, const wal_file *old, rq_error *why)
{
    if (wal->unsure == 0) return RQ_OK;
    pthread_mutex_unlock(&wal->mutex);
    rq_err rc = rq__wal_make_durable(old, wal->unsure, why);
    pthread_mutex_lock(&wal->mutex);
    if (rc == RQ_OK) wal->unsure = 0;
    return rc;
}

/* Writes the bytes that are not durable into a new file for `to`; tries several files. */
static rq_err repair_tries(rq_wal *wal, wal_file *to, rq_error *why)
{
    rq_err rc = RQ_OK;
    for (int i = 0; i < RQ_WAL_REPAIR_TRIES; i++) {
        slot *file = wal->spare;
        wal->spare = NULL;
        rc = RQ_OK;
        if (file == NULL) {
            pthread_mutex_unlock(&wal->mutex);
            rc = rq__wal_slot_take(wal, &file, why);
            pthread_mutex_lock(&wal->mutex);
        }
        if (rc != RQ_OK) continue;
        rc = repair_into(wal, to, file, why);
        if (rc == RQ_OK) {
            to->slot = file;
            return RQ_OK;
        }
        if (rc == RQ_E_NO_SPACE) {
            wal->spare = file;
            return rc;
        }
        slot_give_back(wal, file);
    }
    return rc;
}

static void repair(rq_wal *wal)
{
    rq_error why;
    rq_error_clear(&why);
    wal_file *old = wal->current;
    rq_err cause = wal->broken;
    if (!wal->broken_by_sync && wal->written > wal->synced) {
        /* Bytes written before the failed write can still become durable in their place. */
        sync_written(wal);
        complete(wal);
    }
    wal->broken = cause; /* also after that sync has failed */
    if (!rq__wal_ring_holds(wal, wal->synced)) {
        /* HANDOVER, and the bytes that the operating system lost are no longer in the ring. */
        rq__wal_fail(wal, cause, &why);
        return;
    }
    wal_file *to = repair_file(wal, old);
    rq_err rc = to == NULL ? RQ_E_NO_MEMORY : repair_old(wal, old, &why);
    if (rc == RQ_OK) rc = repair_tries(wal, to, &why);
    if (rc == RQ_E_NO_SPACE && !wal->closing) {
        wal->no_space = true; /* the bytes wait in the ring */
        rq__wal_retry_later(wal);
        return;
    }
    if (rc != RQ_OK) {
        rq__wal_fail(wal, rc, &why);
        return;
    }
    if (!old->sealed) old->indexed = false;
    old->sealed = true;
    old->end_lsn = to->first_lsn;
    wal->current = to;
    wal->broken = RQ_OK;
    wal->no_space = false;
    wal->retry_at_ns = 0;
    wal->stats.reappends++;
    rq__wal_recycle(wal);
    rq__wal_pen_release(wal);
    complete(wal);
}

/* --- the lane ----------------------------------------------------------------------------- */

/* Writes bytes that pushes left behind. False: there are none, or a loop is writing. */
static bool drain(rq_wal *wal)
{
    if (!wal->push_wanted || wal->staged == wal->written) return false;
    if (wal->no_space && !rq__wal_may_retry(wal)) return false;
    if (!pen_take(wal)) return false;
    bool full = wal->no_space;
    wal->no_space = false;
    rq__wal_await_copies(wal);
    rq__wal_write_staged(wal);
    if (wal->no_space) {
        if (wal->closing) wal->broken = RQ_E_NO_SPACE;
        rq__wal_retry_later(wal);
    } else if (full) {
        wal->retry_at_ns = 0;
    }
    if (wal->broken == RQ_OK) rq__wal_pen_release(wal);
    complete(wal);
    return true;
}

/* Does the most urgent piece of work; false if there is none. REQUIRES: mutex. */
static bool lane_step(rq_wal *wal)
{
    if (wal->striped != NULL) return rq__striped_step(wal);
    if (rq__wal_has_failed(wal)) return false;
    if (wal->broken != RQ_OK) {
        /* A log that is being closed needs no WAL file if nothing more is staged. */
        if (wal->broken == RQ_E_NO_SPACE && wal->closing && wal->staged == wal->synced)
            return false;
        if (!rq__wal_may_retry(wal) || !pen_take(wal)) return false;
        repair(wal);
        return true;
    }
    if (wal->no_space && wal->roll_wanted && roll_due(wal)) {
        roll(wal); /* removes files; prewriting would find no space as long as they are there */
        return !wal->lane_wants_pen;
    }
    if (prewrite_due(wal, due_ahead(wal))) {
        prewrite(wal);
        return !wal->lane_wants_pen;
    }
    if (wal->no_space && wal->retry_at_ns != 0 && rq__wal_may_retry(wal) && !wal->push_wanted) {
        wal->no_space = false; /* the next write finds out */
        wal->retry_at_ns = 0;
    }
    if (drain(wal)) return true;
    if (roll_due(wal)) { /* before sync: under load that is always due, and roll syncs too */
        roll(wal);
        return !wal->lane_wants_pen;
    }
    bool idle = wal->timed_out;
    if (sync_due(wal) || (idle && sync_worthwhile(wal))) {
        sync_written(wal);
        complete(wal);
        return true;
    }
    if (idle) {
        wal->timed_out = false;
        rq__wal_ring_shrink(wal);
        if (mark_worthwhile(wal)) {
            rq__wal_stage_mark(wal);
            wal->push_wanted = true;
            return true;
        }
    }
    if (wal->newest != wal->oldest && prewrite_due(wal, prewrite_step(wal))) {
        prewrite(wal);
        return !wal->lane_wants_pen;
    }
    return false;
}

/* Bytes that were staged before the disk was found full stay in the ring and will be written when
 * there is space. Their waiters get an error after a while, so that clients can retry and a close
 * need not wait for free space. True: the waiters must be checked. */
static bool patience_is_over(rq_wal *wal)
{
    bool full = !rq__wal_has_failed(wal) && (wal->no_space || wal->broken == RQ_E_NO_SPACE);
    if (!full)
        wal->full_since_ns = 0;
    else if (wal->full_since_ns == 0)
        wal->full_since_ns = now_ns(wal);
    bool over = full && now_ns(wal) - wal->full_since_ns >= RQ_WAL_PATIENCE_NS;
    /* On shared storage the chain keeps no unacknowledged bytes behind the failed append
     * (striped.c). */
    bool resends = wal->broken != RQ_OK || wal->striped != NULL;
    rq_lsn above = !over ? UINT64_MAX : resends ? wal->synced : wal->written;
    atomic_store_explicit(&wal->full_above, above, memory_order_release);
    return over;
}

/* Whether the task has made a sync and leaves the next one to another task. `syncs`: the log's count of syncs when
 * the task began. */
static bool has_done_its_part(const rq_wal *wal, uint64_t syncs)
{
    return wal->striped == NULL && wal->stats.syncs != syncs && sync_due(wal);
}

static void lane_loop(rq_wal *wal)
{
    uint64_t syncs = wal->stats.syncs;
    wal->lane_running = true;
    for (;;) {
        while (!has_done_its_part(wal, syncs) && lane_step(wal)) {
        }
        if (wal->pen != PEN_LANE || wal->striped != NULL) break;
        if (wal->broken != RQ_OK && !rq__wal_has_failed(wal))
            break;                /* kept until the disk has space */
        rq__wal_pen_release(wal); /* handed over, and not needed any more */
        if (!wal->push_wanted) break;
    }
    wal->lane_running = false;
    if (has_done_its_part(wal, syncs)) rq__wal_lane_wake(wal);
    bool tell = patience_is_over(wal);
    rq__wal_arm_timer(wal);
    bool press =
        rq__wal_pressure_now(wal) != PRESSURE_NONE &&
        (wal->pressed_oldest != wal->oldest->number || wal->pressed_newest != wal->newest->number);
    wal->pressed_oldest = wal->oldest->number;
    wal->pressed_newest = wal->newest->number;
    pthread_mutex_unlock(&wal->mutex);
    if (tell) rq__wal_complete(wal, NULL);
    if (press) rq__wal_press(wal);
}

void rq__wal_lane_run(rq_task *task)
{
    rq_wal *wal = RQ_CONTAINER_OF(task, rq_wal, lane_task);
    pthread_mutex_lock(&wal->mutex);
    wal->lane_posted = false;
    lane_loop(wal);
}

void rq__wal_lane_turn(rq_wal *wal)
{
    pthread_mutex_lock(&wal->mutex);
    lane_loop(wal);
}

void rq__wal_timer_run(rq_task *task)
{
    rq_wal *wal = RQ_CONTAINER_OF(task, rq_wal, timer.task);
    pthread_mutex_lock(&wal->mutex);
    wal->timer_armed = false;
    wal->timed_out = true;
    lane_loop(wal);
}
