/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appending: stage and push.
 *
 * The ring contains the log's last ring_cap bytes, at lsn modulo its size. Bytes above `written`
 * must still be written. Bytes between `synced` and `written` are kept for a repair: always in SYNC
 * mode, in HANDOVER mode until their space is needed. The ring starts small and doubles up to its
 * maximum; a ring that is being written from is retired, and freed by the writer.
 *
 * Under the mutex, stage makes its checks, copies the record's bytes once, writes forty bytes of
 * frame header with its checksum, and updates the region's note. The body's checksum is computed
 * before. A long body is copied without the mutex, into the place that the record has taken: `copying` counts such
 * records. Until it is zero again nothing is written and the ring stays where it is.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "wal/wal_priv.h"

#define PAGE_BYTES 4096 /* the smallest unit that the operating system reads and caches */
/* Bytes of a body that is copied under the mutex, in a few microseconds. */
#define COPIED_AT_ONCE (32u << 10)

rq_err rq__wal_ring_init(rq_wal *wal)
{
    size_t cap = 4096;
    while (cap < wal->options.staging_bytes)
        cap *= 2;
    wal->ring = malloc(cap);
    wal->ring_cap = cap;
    return wal->ring == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

static void ring_put(uint8_t *ring, size_t cap, rq_lsn at, const uint8_t *bytes, size_t len)
{
    if (len == 0) return;
    size_t pos = (size_t)(at & (cap - 1));
    size_t first = cap - pos < len ? cap - pos : len;
    memcpy(ring + pos, bytes, first);
    if (len > first) memcpy(ring, bytes + first, len - first);
}

bool rq__wal_ring_holds(const rq_wal *wal, rq_lsn from)
{
    return from >= wal->ring_from && wal->staged - from <= wal->ring_cap;
}

/* The position below which the ring's bytes may be overwritten. */
static rq_lsn ring_floor(const rq_wal *wal)
{
    bool keep = wal->options.sync == RQ_WAL_SYNC ||
                (wal->broken != RQ_OK && rq__wal_ring_holds(wal, wal->synced));
    return keep ? wal->synced : wal->written;
}

/* The size that the ring needs for `len` bytes behind staged. */
static uint64_t ring_need(const rq_wal *wal, uint64_t len)
{
    return wal->staged - ring_floor(wal) + len;
}

/* REQUIRES: mutex; while records are copied, there is room. Makes room for `len` bytes behind staged. */
static rq_err ring_room(rq_wal *wal, uint64_t len)
{
    uint64_t need = ring_need(wal, len);
    if (RQ_LIKELY(need <= wal->ring_cap)) return RQ_OK;
    RQ_ASSERT(wal->copying == 0);
    if (need > wal->options.staging_bytes_max) return RQ_E_REGION_TOO_BUSY;
    if (wal->ring_retired != NULL) return RQ_E_REGION_TOO_BUSY; /* twice within one write */
    size_t cap = wal->ring_cap;
    while (cap < need)
        cap *= 2;
    uint8_t *ring = malloc(cap);
    if (ring == NULL) return RQ_E_NO_MEMORY;
    rq_lsn from = rq__wal_ring_holds(wal, wal->synced) ? wal->synced : ring_floor(wal);
    wal->ring_from = from;
    while (from < wal->staged) {
        size_t pos = (size_t)(from & (wal->ring_cap - 1));
        size_t len_here = wal->ring_cap - pos;
        if (len_here > wal->staged - from) len_here = (size_t)(wal->staged - from);
        ring_put(ring, cap, from, wal->ring + pos, len_here);
        from += len_here;
    }
    if (wal->pen == PEN_FREE)
        free(wal->ring);
    else
        wal->ring_retired = wal->ring;
    wal->ring = ring;
    wal->ring_cap = cap;
    return RQ_OK;
}

void rq__wal_ring_shrink(rq_wal *wal)
{
    if (wal->staged != wal->synced || wal->pen != PEN_FREE) return;
    if (wal->ring_cap <= 2 * wal->options.staging_bytes) return;
    uint8_t *old = wal->ring;
    size_t cap = wal->ring_cap;
    if (rq__wal_ring_init(wal) != RQ_OK) {
        wal->ring = old;
        wal->ring_cap = cap;
        return;
    }
    free(old);
    wal->ring_from = wal->staged;
}

/* The ring's contiguous bytes from that position on. */
static size_t piece_at(size_t cap, rq_lsn from, rq_lsn to)
{
    size_t len = cap - (size_t)(from & (cap - 1));
    return len < to - from ? len : (size_t)(to - from);
}

rq_err rq__wal_ring_write(const uint8_t *ring, size_t cap, const wal_file *s, const slot *to_slot,
                          rq_lsn from, rq_lsn to, rq_error *why)
{
    while (from < to) {
        size_t len = piece_at(cap, from, to);
        RQ_TRY(rq_file_write(to_slot->file, ring + (from & (cap - 1)), len, rq__wal_offset(s, from),
                             why));
        from += len;
    }
    return RQ_OK;
}

/* The start of the page that a write to [from, to) is the first to touch and does not fill; `to` if
 * there is none, or if the file, of file_bytes, does not reach that page. */
static rq_lsn page_begun(const wal_file *s, uint64_t file_bytes, rq_lsn from, rq_lsn to)
{
    uint64_t inside = rq__wal_offset(s, to) % PAGE_BYTES;
    bool begun = inside > 0 && inside <= to - from;
    return begun && rq__wal_offset(s, to) - inside + PAGE_BYTES <= file_bytes ? to - inside : to;
}

/* Writes into a recycled file. Its pages may no longer be in the page cache, and writing a part of
 * a page would read it from the device first, with a loop waiting. So the first write into a page
 * fills it, with zeros behind the end: the old bytes there are no frames of this WAL file. */
static rq_err write_over(const uint8_t *ring, size_t cap, const wal_file *s, uint64_t file_bytes,
                         rq_lsn from, rq_lsn to)
{
    uint8_t bytes[2 * PAGE_BYTES];
    rq_lsn page = page_begun(s, file_bytes, from, to);
    if (page == to) return rq__wal_ring_write(ring, cap, s, s->slot, from, to, NULL);
    /* Few bytes before the page are written in one call with it. */
    if (page - from > PAGE_BYTES) {
        RQ_TRY(rq__wal_ring_write(ring, cap, s, s->slot, from, page, NULL));
        from = page;
    }
    uint64_t at = rq__wal_offset(s, from);
    size_t len = 0;
    for (; from < to; from += piece_at(cap, from, to)) {
        size_t piece = piece_at(cap, from, to);
        memcpy(bytes + len, ring + (from & (cap - 1)), piece);
        len += piece;
    }
    size_t whole = (size_t)(rq__wal_offset(s, page) + PAGE_BYTES - at);
    memset(bytes + len, 0, whole - len);
    return rq_file_write(s->slot->file, bytes, whole, at, NULL);
}

/* --- stage -------------------------------------------------------------------------------- */

/* On a full disk only prewritten space is left. Its last RQ__WAL_RESERVE bytes are a reserve for vital
 * records, with which an operator can free space; the last RESERVE_OF_FLUSHES of these are left to
 * records of kinds that do not hold WAL files, because they help to free some. */
#define RESERVE_OF_FLUSHES (RQ__WAL_RESERVE / 4)

static bool fits_full_disk(const rq_wal *wal, uint64_t len, const rq_wal_record *r)
{
    if (wal->newest->slot == NULL) return false; /* the lane waits for space for a new file */
    uint64_t end = rq__wal_offset(wal->newest, wal->staged) + len;
    uint64_t reserve = !rq__wal_kind_holds(r->kind) ? 0
                       : r->vital                   ? RESERVE_OF_FLUSHES
                                                    : RQ__WAL_RESERVE;
    return end + reserve <= wal->newest->slot->prewritten;
}

/* A frame's body, in the caller's pieces. */
typedef struct body {
    rq_slice own[3]; /* head, scopes, payload */
    const rq_slice *more;
    size_t more_count;
} body;

static uint32_t crc_add(uint32_t crc, const rq_slice *pieces, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (pieces[i].len > 0) crc = rq_crc32c(crc, pieces[i].ptr, pieces[i].len);
    return crc;
}

static rq_lsn ring_put_all(uint8_t *ring, size_t cap, rq_lsn at, const rq_slice *pieces,
                           size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ring_put(ring, cap, at, pieces[i].ptr, pieces[i].len);
        at += pieces[i].len;
    }
    return at;
}

/* Adds the lengths; false if they exceed `max` bytes together. */
static bool len_add(uint64_t *len, const rq_slice *pieces, size_t count, uint64_t max)
{
    for (size_t i = 0; i < count; i++) {
        if (pieces[i].len > max - *len) return false;
        *len += pieces[i].len;
    }
    return true;
}

/* Behind the frame's header. */
static void body_put(uint8_t *ring, size_t cap, const rq__wal_frame *f, const body *b)
{
    rq_lsn at = f->lsn + RQ_WAL_FRAME_HEADER_LEN;
    at = ring_put_all(ring, cap, at, b->own, RQ_ARRAY_LEN(b->own));
    (void)ring_put_all(ring, cap, at, b->more, b->more_count);
}

/* REQUIRES: mutex, room. Takes the frame's place and writes its header and its padding; the body must follow. */
static void frame_begin(rq_wal *wal, rq__wal_frame *f)
{
    uint8_t header[RQ_WAL_FRAME_HEADER_LEN];
    static const uint8_t zeros[RQ_WAL_ALIGN];
    f->epoch = (uint32_t)wal->epoch;
    f->lsn = wal->staged;
    f->durable = wal->synced;
    f->prev_crc = wal->staged_crc;
    rq__wal_frame_encode(f, header);
    ring_put(wal->ring, wal->ring_cap, wal->staged, header, sizeof header);
    rq_lsn at = wal->staged + sizeof header + f->body_len;
    rq_lsn end = wal->staged + rq__wal_frame_len(f->body_len);
    ring_put(wal->ring, wal->ring_cap, at, zeros, (size_t)(end - at));
    wal->staged = end;
    wal->staged_crc = f->crc;
    wal->attested = wal->synced;
    atomic_store_explicit(&wal->staged_mark, end, memory_order_release);
}

void rq__wal_stage_mark(rq_wal *wal)
{
    static const uint8_t mark = RQ_WAL_MARK;
    body b = {.own[0] = rq_slice_of(&mark, 1)};
    rq__wal_frame f = {.body_len = 1, .body_crc = rq_crc32c(0, &mark, 1)};
    if (ring_room(wal, rq__wal_frame_len(1)) != RQ_OK) return; /* only a help for readers */
    frame_begin(wal, &f);
    body_put(wal->ring, wal->ring_cap, &f, &b);
    wal->mark_end = wal->staged;
}

/* --- long bodies -------------------------------------------------------------------------- */

void rq__wal_await_copies(rq_wal *wal)
{
    if (RQ_LIKELY(wal->copying == 0)) return;
    wal->copies_awaited++;
    while (wal->copying > 0)
        pthread_cond_wait(&wal->copied, &wal->mutex);
    wal->copies_awaited--;
}

/* Whether the record must wait for those being copied, because the ring has to grow for it. */
static bool must_await_copies(const rq_wal *wal, uint64_t len)
{
    return RQ_UNLIKELY(wal->copying > 0) && ring_need(wal, len) > wal->ring_cap;
}

/* REQUIRES: mutex, which is released meanwhile. */
RQ_COLD static void body_put_apart(rq_wal *wal, const rq__wal_frame *f, const body *b)
{
    uint8_t *ring = wal->ring;
    size_t cap = wal->ring_cap;
    wal->copying++;
    pthread_mutex_unlock(&wal->mutex);
    body_put(ring, cap, f, b);
    pthread_mutex_lock(&wal->mutex);
    if (--wal->copying == 0 && wal->copies_awaited > 0) pthread_cond_broadcast(&wal->copied);
}

/* REQUIRES: mutex. */
static rq_err stage_locked(rq_wal *wal, rq_wal_region *region, const rq_wal_record *r,
                           rq__wal_frame *f, const body *b, rq_lsn *ret)
{
    uint64_t len = rq__wal_frame_len(f->body_len);
    if (must_await_copies(wal, len)) rq__wal_await_copies(wal);
    rq_err failed = (rq_err)atomic_load_explicit(&wal->failed, memory_order_relaxed);
    if (RQ_UNLIKELY(failed != RQ_OK)) return failed;
    if (RQ_UNLIKELY(wal->no_space) && !fits_full_disk(wal, len, r)) {
        rq__wal_lane_wake(wal); /* to look again */
        return RQ_E_NO_SPACE;
    }
    RQ_TRY(rq__wal_note_reserve(region));
    RQ_TRY(ring_room(wal, len));
    rq__wal_note(region, wal->newest, wal->chunk_width, wal->staged, r->sequence_id, r->kind);
    frame_begin(wal, f);
    wal->stats.records++;
    wal->stats.record_bytes += len;
    *ret = wal->staged;
    if (RQ_LIKELY(f->body_len <= COPIED_AT_ONCE) || wal->copies_awaited > 0)
        body_put(wal->ring, wal->ring_cap, f, b);
    else
        body_put_apart(wal, f, b);
    return RQ_OK;
}

rq_err rq_wal_stage(rq_wal *wal, rq_wal_region *region, const rq_wal_record *r,
                    const rq_slice *more, size_t more_count, rq_lsn *ret)
{
    rq_wal_record full = *r;
    full.region = rq_slice_cstr(region->encoded);
    full.table = rq_slice_of(region->table, region->table_len);
    RQ_TRY(rq__wal_record_check(&full));
    uint8_t head[RQ_WAL_HEAD_MAX];
    body b = {
        .own = {rq_slice_of(head, rq__wal_record_encode_head(&full, head)), r->scopes, r->payload},
        .more = more,
        .more_count = more_count,
    };
    uint64_t max = wal->options.staging_bytes_max / 2 - rq__wal_frame_len(0);
    uint64_t len = 0;
    if (!len_add(&len, b.own, RQ_ARRAY_LEN(b.own), max) || !len_add(&len, more, more_count, max))
        return RQ_E_REQUEST_TOO_BIG;
    rq__wal_frame f = {.body_len = (uint32_t)len};
    f.body_crc = crc_add(crc_add(0, b.own, RQ_ARRAY_LEN(b.own)), more, more_count);

    pthread_mutex_lock(&wal->mutex);
    rq_err rc = stage_locked(wal, region, r, &f, &b, ret);
    pthread_mutex_unlock(&wal->mutex);
    return rc;
}

/* --- push --------------------------------------------------------------------------------- */

void rq__wal_write_staged(rq_wal *wal)
{
    if (RQ_UNLIKELY(wal->copying > 0)) {
        wal->push_wanted = true; /* the lane waits for the record, a loop does not */
        return;
    }
    wal_file *s = wal->current;
    rq_lsn from = wal->written;
    rq_lsn to = wal->staged;
    uint32_t crc = wal->staged_crc;
    RQ_ASSERT(wal->newest == s); /* otherwise the lane is rolling and has the pen */
    uint64_t end = rq__wal_offset(s, to);
    if (wal->prewriting && end > s->slot->prewritten) {
        wal->push_wanted = true; /* the lane writes it when it has finished writing zeros */
        return;
    }
    wal->push_wanted = false;
    const uint8_t *ring = wal->ring;
    size_t cap = wal->ring_cap;
    uint64_t file_bytes = s->slot->prewritten;
    pthread_mutex_unlock(&wal->mutex);
    rq_err rc = write_over(ring, cap, s, file_bytes, from, to);
    pthread_mutex_lock(&wal->mutex);
    free(wal->ring_retired);
    wal->ring_retired = NULL;
    wal->stats.writes++;
    if (rc == RQ_OK) {
        wal->written = to;
        wal->written_crc = crc;
        if (end > s->slot->prewritten) s->slot->prewritten = end;
        atomic_store_explicit(&wal->written_mark, to, memory_order_release);
    } else if (rc == RQ_E_NO_SPACE) {
        /* Nothing is lost: the same bytes are written to the same place once there is space. */
        wal->no_space = true;
        wal->push_wanted = true;
    } else if (wal->broken == RQ_OK) {
        wal->broken = rc;
        wal->broken_by_sync = false;
    }
}

/* REQUIRES: mutex. */
static bool sync_is_due(const rq_wal *wal)
{
    return wal->sync_wanted > wal->synced ||
           wal->written - wal->synced >= RQ_WAL_BACKGROUND_SYNC_BYTES;
}

/* REQUIRES: mutex. Called by a push that has written, or that found the pen taken. True: the lane
 * must run, as for rq__wal_lane_claim. */
static bool after_write(rq_wal *wal)
{
    const wal_file *s = wal->current;
    bool lane = wal->broken != RQ_OK || wal->no_space || sync_is_due(wal) ||
                wal->written - s->first_lsn >= wal->options.file_bytes || wal->push_wanted;
    if (lane) return rq__wal_lane_claim(wal);
    rq__wal_arm_timer(wal);
    return false;
}

void rq_wal_push(rq_wal *wal, rq_wal_member *self)
{
    rq_lsn staged = atomic_load_explicit(&wal->staged_mark, memory_order_acquire);
    rq_lsn written = atomic_load_explicit(&wal->written_mark, memory_order_acquire);
    if (staged != written) {
        bool wrote = false;
        bool post = false;
        pthread_mutex_lock(&wal->mutex);
        if (wal->pen != PEN_FREE || wal->broken != RQ_OK || rq__wal_has_failed(wal)) {
            wal->push_wanted = true;
            post = wal->striped != NULL && rq__wal_lane_claim(wal);
        } else if (wal->staged > wal->written) {
            wal->pen = PEN_LOOP;
            /* Writes once more for records staged meanwhile; after that the lane continues, not
             * this loop. */
            for (int round = 0; round < 2; round++) {
                rq__wal_write_staged(wal);
                wrote = true;
                if (wal->broken != RQ_OK || wal->no_space || wal->lane_wants_pen ||
                    !wal->push_wanted || wal->staged == wal->written)
                    break;
            }
            rq__wal_pen_release(wal);
            post = after_write(wal);
        }
        pthread_mutex_unlock(&wal->mutex);
        if (post) rq_lane_post(wal->lane, &wal->lane_task);
        if (wrote && wal->options.sync == RQ_WAL_HANDOVER) rq__wal_complete(wal, self);
    }
    if (self != NULL) rq__wal_member_run_done(self);
}
