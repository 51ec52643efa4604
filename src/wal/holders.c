/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which region holds which WAL file.
 *
 * Each region has a short list of notes, one per WAL file with records of it. An EDIT above the
 * region's flushed sequence id holds the WAL file. A WAL file that no region holds is recycled as
 * soon as all older ones are, so that the live chain has no holes. The notes' other contents
 * (sequence ids of all kinds, chunks of the WAL file with frames) become the WAL file's index.
 */
#include <stdlib.h>

#include "base/checksum.h"
#include "base/fnv.h"
#include "wal/striped.h"

static rq_wal_region **bucket_of(const rq_wal *wal, rq_slice encoded)
{
    uint64_t h = rq_fnv1a(RQ_FNV1A, encoded);
    return &wal->buckets[(h ^ h >> 32) & (wal->bucket_count - 1)];
}

rq_wal_region *rq__wal_region_find(const rq_wal *wal, rq_slice encoded)
{
    rq_wal_region *r = *bucket_of(wal, encoded);
    while (r != NULL && !rq_slice_eq(rq_slice_cstr(r->encoded), encoded))
        r = r->next;
    return r;
}

/* Without memory for more buckets the chains get longer. REQUIRES: regions_mutex, mutex. */
static void grow_buckets(rq_wal *wal)
{
    size_t old_count = wal->bucket_count;
    rq_wal_region **old = wal->buckets;
    rq_wal_region **buckets = calloc(old_count * 2, sizeof(rq_wal_region *));
    if (buckets == NULL) return;
    wal->buckets = buckets;
    wal->bucket_count = old_count * 2;
    for (size_t b = 0; b < old_count; b++) {
        for (rq_wal_region *r = old[b], *next; r != NULL; r = next) {
            rq_wal_region **bucket = bucket_of(wal, rq_slice_cstr(r->encoded));
            next = r->next;
            r->next = *bucket;
            *bucket = r;
        }
    }
    free(old);
}

/* REQUIRES: regions_mutex. */
rq_err rq__wal_region_add(rq_wal *wal, rq_slice encoded, rq_slice table, rq_wal_region **ret)
{
    bool ok = encoded.len > 0 && encoded.len <= RQ_WAL_REGION_NAME_MAX &&
              memchr(encoded.ptr, '\0', encoded.len) == NULL && table.len <= RQ_WAL_TABLE_NAME_MAX;
    if (!ok) return RQ_E_INVALID;
    rq_wal_region *r = calloc(1, sizeof *r + table.len);
    if (r == NULL) return RQ_E_NO_MEMORY;
    r->wal = wal;
    memcpy(r->encoded, encoded.ptr, encoded.len);
    r->table_len = (uint16_t)table.len;
    if (table.len > 0) memcpy(r->table, table.ptr, table.len);
    pthread_mutex_lock(&wal->mutex);
    if (wal->region_count++ >= wal->bucket_count) grow_buckets(wal);
    rq_wal_region **bucket = bucket_of(wal, encoded);
    r->next = *bucket;
    *bucket = r;
    pthread_mutex_unlock(&wal->mutex);
    *ret = r;
    return RQ_OK;
}

void rq__wal_region_free(rq_wal_region *r)
{
    if (r == NULL) return;
    free(r->notes);
    free(r);
}

/* REQUIRES: regions_mutex. Frees a region that is neither open nor holds anything. */
static void region_drop_if_idle(rq_wal_region *r)
{
    rq_wal *wal = r->wal;
    pthread_mutex_lock(&wal->mutex);
    bool idle = !r->open;
    for (size_t i = 0; i < r->note_count; i++)
        idle = idle && !r->notes[i].holds && r->notes[i].file->sealed;
    if (idle) {
        rq_wal_region **at = bucket_of(wal, rq_slice_cstr(r->encoded));
        while (*at != r)
            at = &(*at)->next;
        *at = r->next;
        wal->region_count--;
    }
    pthread_mutex_unlock(&wal->mutex);
    if (idle) rq__wal_region_free(r);
}

void rq_wal_region_prefetch(const rq_wal_region *r)
{
    size_t from = offsetof(rq_wal_region, notes);
    rq_prefetch_bytes((const char *)r + from, sizeof *r + 16 - from);
}

/* --- notes -------------------------------------------------------------------------------- */

rq_err rq__wal_note_reserve(rq_wal_region *r)
{
    if (r->note_count < r->note_cap) return RQ_OK;
    size_t cap = r->note_cap == 0 ? 4 : r->note_cap * 2;
    note *more = realloc(r->notes, cap * sizeof *more);
    if (more == NULL) return RQ_E_NO_MEMORY;
    r->notes = more;
    r->note_cap = cap;
    return RQ_OK;
}

static note *note_of(rq_wal_region *r, wal_file *s)
{
    if (r->note_count > 0 && r->notes[r->note_count - 1].file == s)
        return &r->notes[r->note_count - 1];
    RQ_ASSERT(r->note_count < r->note_cap);
    note *n = &r->notes[r->note_count++];
    *n = (note){.file = s, .lowest = UINT64_MAX};
    return n;
}

static void note_hold(note *n)
{
    if (n->holds) return;
    n->holds = true;
    n->file->holders++;
}

static void note_release(note *n)
{
    if (!n->holds) return;
    n->holds = false;
    RQ_ASSERT(n->file->holders > 0);
    n->file->holders--;
}

void rq__wal_note(rq_wal_region *r, wal_file *s, uint64_t chunk_width, rq_lsn lsn,
                  uint64_t sequence_id, rq_wal_kind kind)
{
    note *n = note_of(r, s);
    if (sequence_id < n->lowest) n->lowest = sequence_id;
    if (sequence_id > n->highest) n->highest = sequence_id;
    uint64_t at = lsn - s->first_lsn;
    uint64_t chunk = at / chunk_width;
    if (chunk >= RQ_WAL_CHUNKS) chunk = RQ_WAL_CHUNKS - 1;
    n->chunks |= (uint64_t)1 << chunk;
    if (at < s->chunk_first[chunk]) s->chunk_first[chunk] = (uint32_t)at;
    if (rq__wal_kind_holds(kind)) {
        if (sequence_id > n->highest_edit) n->highest_edit = sequence_id;
        if (sequence_id > r->flushed) note_hold(n);
    }
}

/* Removes the oldest notes that hold nothing, except those the index still needs. */
static void notes_trim(rq_wal_region *r)
{
    size_t n = 0;
    while (n < r->note_count && !r->notes[n].holds && r->notes[n].file->sealed)
        n++;
    if (n == 0) return;
    r->note_count -= n;
    memmove(r->notes, r->notes + n, r->note_count * sizeof *r->notes);
}

rq_err rq__wal_notes_inherit(rq_wal *wal, const wal_file *from, wal_file *to)
{
    for (size_t b = 0; b < wal->bucket_count; b++) {
        for (rq_wal_region *r = wal->buckets[b]; r != NULL; r = r->next) {
            /* from's note is the last one or, if `to` has one already, the one before. */
            for (size_t i = r->note_count; i > 0; i--) {
                if (r->notes[i - 1].file != from) continue;
                if (r->notes[r->note_count - 1].file != to) RQ_TRY(rq__wal_note_reserve(r));
                note *n = note_of(r, to);
                const note *old = &r->notes[i - 1];
                if (old->lowest < n->lowest) n->lowest = old->lowest;
                if (old->highest > n->highest) n->highest = old->highest;
                if (old->highest_edit > n->highest_edit) n->highest_edit = old->highest_edit;
                n->chunks = UINT64_MAX;
                if (old->holds) note_hold(n);
                break;
            }
        }
    }
    return RQ_OK;
}

/* Removes all pointers to a WAL file that is being recycled. */
static void notes_forget(rq_wal *wal, const wal_file *s)
{
    for (size_t b = 0; b < wal->bucket_count; b++)
        for (rq_wal_region *r = wal->buckets[b]; r != NULL; r = r->next) {
            size_t kept = 0;
            for (size_t i = 0; i < r->note_count; i++)
                if (r->notes[i].file != s) r->notes[kept++] = r->notes[i];
            r->note_count = kept;
        }
}

/* Somebody beside the regions reads it: a backup, for one. */
static bool is_retained(const rq_wal *wal, const wal_file *s)
{
    if (s->end_lsn > wal->kept_from) return true;
    return wal->options.retention != NULL &&
           s->end_lsn > rq_retention_log_from(wal->options.retention);
}

void rq__wal_recycle(rq_wal *wal)
{
    while (wal->oldest != wal->current && wal->oldest->sealed && wal->oldest->holders == 0 &&
           !is_retained(wal, wal->oldest)) {
        wal_file *s = wal->oldest;
        wal->oldest = s->next;
        notes_forget(wal, s);
        wal->stats.recycled++;
        if (wal->striped != NULL) {
            rq__striped_freed(wal, s);
            continue;
        }
        s->slot->next = wal->free_slots;
        wal->free_slots = s->slot;
        free(s);
    }
}

uint64_t rq__wal_live_bytes(const rq_wal *wal)
{
    return wal->staged - wal->oldest->first_lsn;
}

/* The flushes of busy regions keep the log at two or three WAL files. It gets longer mostly because
 * of regions with few writes, above all hbase:meta: a single cell that is not flushed holds the
 * oldest WAL file, and thereby all later ones. */
#define GENTLE_SHARE 8
#define FEW_HOLDERS 4

rq__wal_pressure rq__wal_pressure_now(const rq_wal *wal)
{
    uint64_t live = rq__wal_live_bytes(wal);
    if (wal->oldest == wal->newest) return PRESSURE_NONE;
    if (live > wal->options.max_log_bytes) return PRESSURE_URGENT;
    bool is_held_by_few = wal->oldest->holders <= FEW_HOLDERS;
    return is_held_by_few && live > wal->options.max_log_bytes / GENTLE_SHARE ? PRESSURE_GENTLE
                                                                              : PRESSURE_NONE;
}

/* --- the index ---------------------------------------------------------------------------- */

static const note *note_find(const rq_wal_region *r, const wal_file *s)
{
    for (size_t i = r->note_count; i > 0; i--)
        if (r->notes[i - 1].file == s) return &r->notes[i - 1];
    return NULL;
}

static rq_err index_entry(rq_buf *b, const rq_wal_region *r, const note *n)
{
    size_t len = strlen(r->encoded);
    RQ_TRY(rq_buf_append_u8(b, (uint8_t)len));
    RQ_TRY(rq_buf_append(b, r->encoded, len));
    RQ_TRY(rq_buf_append_be64(b, n->lowest));
    RQ_TRY(rq_buf_append_be64(b, n->highest));
    RQ_TRY(rq_buf_append_be64(b, n->highest_edit));
    return rq_buf_append_be64(b, n->chunks);
}

rq_err rq__wal_index_build(rq_wal *wal, const wal_file *s, rq_lsn end, rq_buf *ret)
{
    static const uint8_t header_room[RQ_WAL_INDEX_HEADER_LEN];
    rq_buf_reset(ret);
    RQ_TRY(rq_buf_append(ret, header_room, sizeof header_room));
    RQ_TRY(rq_buf_append_be64(ret, wal->chunk_width));
    for (size_t i = 0; i < RQ_WAL_CHUNKS; i++)
        RQ_TRY(rq_buf_append_be32(ret, s->chunk_first[i]));
    size_t count_at = ret->len;
    uint32_t count = 0;
    RQ_TRY(rq_buf_append_be32(ret, 0));
    for (size_t b = 0; b < wal->bucket_count; b++) {
        for (const rq_wal_region *r = wal->buckets[b]; r != NULL; r = r->next) {
            const note *n = note_find(r, s);
            if (n == NULL) continue;
            RQ_TRY(index_entry(ret, r, n));
            count++;
        }
    }
    rq_put_be32(ret->ptr + count_at, count);
    uint8_t *header = ret->ptr;
    const uint8_t *body = header + RQ_WAL_INDEX_HEADER_LEN;
    size_t body_len = ret->len - RQ_WAL_INDEX_HEADER_LEN;
    rq_put_be32(header, RQ_WAL_INDEX_MAGIC);
    rq_put_be32(header + 4, (uint32_t)body_len);
    rq_put_be64(header + 8, end);
    rq_put_be32(header + 16, rq_crc32c(0, body, body_len));
    rq_put_be32(header + 20, rq_crc32c(0, header, 20));
    return RQ_OK;
}

/* --- regions ------------------------------------------------------------------------------ */

rq_err rq_wal_region_open(rq_wal *wal, const char *encoded, rq_slice table, void *owner,
                          rq_wal_region **ret)
{
    rq_err rc = RQ_OK;
    pthread_mutex_lock(&wal->regions_mutex);
    rq_wal_region *r = rq__wal_region_find(wal, rq_slice_cstr(encoded));
    if (r != NULL && r->open) {
        rc = RQ_E_EXISTS;
    } else if (r != NULL && !rq_slice_eq(rq_slice_of(r->table, r->table_len), table)) {
        rc = RQ_E_INVALID;
    } else if (r == NULL) {
        rc = rq__wal_region_add(wal, rq_slice_cstr(encoded), table, &r);
    }
    if (rc == RQ_OK) {
        pthread_mutex_lock(&wal->mutex);
        r->open = true;
        r->owner = owner;
        wal->pressed_oldest = 0; /* it may have been asked to flush while it had no owner */
        pthread_mutex_unlock(&wal->mutex);
        *ret = r;
    }
    pthread_mutex_unlock(&wal->regions_mutex);
    return rc;
}

void rq_wal_region_close(rq_wal_region *r)
{
    if (r == NULL) return;
    rq_wal *wal = r->wal;
    pthread_mutex_lock(&wal->regions_mutex);
    pthread_mutex_lock(&wal->mutex);
    r->open = false;
    r->owner = NULL;
    pthread_mutex_unlock(&wal->mutex);
    region_drop_if_idle(r);
    pthread_mutex_unlock(&wal->regions_mutex);
}

void *rq_wal_region_owner(const rq_wal_region *r)
{
    return r->owner;
}

const char *rq_wal_region_name(const rq_wal_region *r)
{
    return r->encoded;
}

/* REQUIRES: mutex. */
static void flushed_upto(rq_wal_region *r, uint64_t sequence_id)
{
    rq_wal *wal = r->wal;
    if (sequence_id > r->flushed) r->flushed = sequence_id;
    for (size_t i = 0; i < r->note_count; i++)
        if (r->notes[i].highest_edit <= r->flushed) note_release(&r->notes[i]);
    notes_trim(r);
    if (wal->replayed) rq__wal_recycle(wal);
}

void rq_wal_region_flushed(rq_wal_region *r, uint64_t sequence_id)
{
    rq_wal *wal = r->wal;
    pthread_mutex_lock(&wal->mutex);
    flushed_upto(r, sequence_id);
    if (wal->replayed && rq__wal_live_bytes(wal) > wal->options.max_log_bytes)
        rq__wal_lane_wake(wal); /* others hold it too */
    pthread_mutex_unlock(&wal->mutex);
}

/* REQUIRES: regions_mutex; the region is not open. It may be freed. */
static void region_forget(rq_wal_region *r)
{
    pthread_mutex_lock(&r->wal->mutex);
    flushed_upto(r, UINT64_MAX);
    r->flushed = 0; /* the name may be used again, after a failed creation */
    pthread_mutex_unlock(&r->wal->mutex);
    region_drop_if_idle(r);
}

void rq_wal_forget(rq_wal *wal, const char *encoded)
{
    pthread_mutex_lock(&wal->regions_mutex);
    rq_wal_region *r = rq__wal_region_find(wal, rq_slice_cstr(encoded));
    if (r != NULL && !r->open) region_forget(r);
    pthread_mutex_unlock(&wal->regions_mutex);
}

static bool region_holds(const rq_wal_region *r)
{
    for (size_t i = 0; i < r->note_count; i++)
        if (r->notes[i].holds) return true;
    return false;
}

bool rq_wal_holds(rq_wal *wal, const char *encoded)
{
    pthread_mutex_lock(&wal->regions_mutex);
    pthread_mutex_lock(&wal->mutex);
    const rq_wal_region *r = rq__wal_region_find(wal, rq_slice_cstr(encoded));
    bool holds = r != NULL && region_holds(r);
    pthread_mutex_unlock(&wal->mutex);
    pthread_mutex_unlock(&wal->regions_mutex);
    return holds;
}

const rq_wal_region *rq__wal_holder(const rq_wal *wal)
{
    for (size_t b = 0; b < wal->bucket_count; b++)
        for (const rq_wal_region *r = wal->buckets[b]; r != NULL; r = r->next)
            if (region_holds(r)) return r;
    return NULL;
}

size_t rq_wal_unclaimed(rq_wal *wal, bool (*forget)(void *ctx, const char *encoded), void *ctx)
{
    size_t count = 0;
    pthread_mutex_lock(&wal->regions_mutex);
    for (size_t b = 0; b < wal->bucket_count; b++) {
        rq_wal_region *next;
        for (rq_wal_region *r = wal->buckets[b]; r != NULL; r = next) {
            next = r->next;
            pthread_mutex_lock(&wal->mutex);
            bool unclaimed = !r->open && region_holds(r);
            pthread_mutex_unlock(&wal->mutex);
            if (!unclaimed) continue;
            if (forget != NULL && forget(ctx, r->encoded))
                region_forget(r);
            else
                count++;
        }
    }
    pthread_mutex_unlock(&wal->regions_mutex);
    return count;
}

uint64_t rq_wal_found_sequence_id(rq_wal *wal, const char *encoded)
{
    pthread_mutex_lock(&wal->regions_mutex);
    const rq_wal_region *r = rq__wal_region_find(wal, rq_slice_cstr(encoded));
    uint64_t found = r == NULL ? 0 : r->found;
    pthread_mutex_unlock(&wal->regions_mutex);
    return found;
}

void rq__wal_press(rq_wal *wal)
{
    if (wal->options.on_pressure == NULL) return;
    pthread_mutex_lock(&wal->regions_mutex);
    for (size_t b = 0; b < wal->bucket_count; b++) {
        for (rq_wal_region *r = wal->buckets[b]; r != NULL; r = r->next) {
            pthread_mutex_lock(&wal->mutex);
            rq__wal_pressure pressure = rq__wal_pressure_now(wal);
            bool holds = r->note_count > 0 && r->notes[0].file == wal->oldest && r->notes[0].holds;
            pthread_mutex_unlock(&wal->mutex);
            if (holds && pressure != PRESSURE_NONE)
                wal->options.on_pressure(wal->options.ctx, r, pressure == PRESSURE_URGENT);
        }
    }
    pthread_mutex_unlock(&wal->regions_mutex);
}
