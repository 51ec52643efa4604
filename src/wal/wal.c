/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing the log: open finds the live chain among the files, replay reads it and
 * begins a WAL file of a new epoch behind it, close leaves the log complete or empty.
 *
 * After a crash nothing is appended to the old WAL files: the new one's header records where the
 * last old one ended. The last old one is made durable first: after a kill its bytes may exist only in
 * the page cache, and records that replay delivers must not vanish in the next power cut. */
#include "wal/wal.h"

#include <stdio.h>
#include <stdlib.h>

#include "wal/striped.h"

#define DEFAULT_FILE_BYTES (64u << 20)
#define FILE_BYTES_MAX (1u << 30)
#define DEFAULT_FILES 32
#define REWRITE_BYTES (256u << 10)
/* On shared storage: the log's length determines the time of a recovery. */
#define LEDGER_BYTES_MAX (16u << 20)
#define LEDGERS_MAX 16

void rq__wal_slot_path(const rq_wal *wal, unsigned id, char path[static RQ_WAL_PATH_MAX])
{
    (void)snprintf(path, RQ_WAL_PATH_MAX, "%s/%06u" RQ_WAL_SUFFIX, wal->dir, id);
}

void rq__wal_slot_free(slot *s)
{
    if (s == NULL) return;
    (void)rq_file_close(s->file); /* the records that count were synced */
    free(s);
}

static rq_err options_set(rq_wal *wal, const rq_wal_options *o, rq_error *why)
{
    wal->options = *o;
    rq_wal_options *w = &wal->options;
    const char *dir = o->dir == NULL ? ".rorqual/wal" : o->dir;
    if (strlen(dir) >= sizeof wal->dir)
        return rq_fail(why, RQ_E_INVALID, "log folder's name is too long: %s", dir);
    strcpy(wal->dir, dir);
    w->dir = wal->dir;
    if (w->file_bytes == 0) w->file_bytes = DEFAULT_FILE_BYTES;
    if (w->file_bytes < 4096 || w->file_bytes > FILE_BYTES_MAX)
        return rq_fail(why, RQ_E_CONFIG, "a WAL file of %llu bytes is not between 4 kB and 1 GB",
                       (unsigned long long)w->file_bytes);
    if (w->max_log_bytes == 0) w->max_log_bytes = w->file_bytes * DEFAULT_FILES;
    if (o->tenure != NULL && w->file_bytes > LEDGER_BYTES_MAX) w->file_bytes = LEDGER_BYTES_MAX;
    if (o->tenure != NULL && w->max_log_bytes > LEDGER_BYTES_MAX * LEDGERS_MAX)
        w->max_log_bytes = LEDGER_BYTES_MAX * LEDGERS_MAX;
    if (w->staging_bytes == 0) w->staging_bytes = 1u << 20;
    if (w->staging_bytes_max == 0) w->staging_bytes_max = 64u << 20;
    if (w->staging_bytes_max < w->staging_bytes) w->staging_bytes_max = w->staging_bytes;
    if (w->staging_bytes_max > FILE_BYTES_MAX) w->staging_bytes_max = FILE_BYTES_MAX;
    wal->chunk_width = (w->file_bytes + RQ_WAL_CHUNKS - 1) / RQ_WAL_CHUNKS;
    return RQ_OK;
}

/* --- the chain ---------------------------------------------------------------------------- */

/* A file as open finds it. */
typedef struct found {
    slot *slot;
    rq_wal_file_info info;
    bool live;
} found;

typedef struct found_list {
    found *ptr;
    size_t count;
} found_list;

static bool slot_id(const char *name, unsigned *ret)
{
    char *end;
    unsigned long id = strtoul(name, &end, 10);
    if (end == name || strcmp(end, RQ_WAL_SUFFIX) != 0 || id > 999999) return false;
    *ret = (unsigned)id;
    return true;
}

static void report_corrupt(const rq_wal *wal, const rq_error *why)
{
    if (wal->options.on_corrupt != NULL) wal->options.on_corrupt(wal->options.ctx, why);
}

/* Opens one file and checks its header. A file that was never begun becomes a free slot. */
static rq_err file_found(rq_wal *wal, unsigned id, found_list *list, rq_error *why)
{
    char path[RQ_WAL_PATH_MAX];
    rq__wal_slot_path(wal, id, path);
    slot *s = calloc(1, sizeof *s);
    if (s == NULL) return rq_fail(why, RQ_E_NO_MEMORY, "%s: out of memory", path);
    s->id = id;
    rq_wal_file_info info = {0};
    rq_error detail = {0};
    rq_err rc = rq_vfs_open(wal->env.vfs, path, RQ_OPEN_WRITE, &s->file, &detail);
    if (rc == RQ_OK) rc = rq_file_opened_size(s->file, &s->prewritten, &detail);
    if (rc == RQ_OK) rc = rq__wal_header_read(s->file, path, &info, &s->older, &detail);
    if (rc == RQ_OK) {
        s->number = info.number;
        list->ptr[list->count++] = (found){.slot = s, .info = info};
        return RQ_OK;
    }
    if (rc == RQ_E_NOT_FOUND && s->file != NULL) {
        s->next = wal->free_slots;
        wal->free_slots = s;
        return RQ_OK;
    }
    rq__wal_slot_free(s);
    if (rc == RQ_E_CORRUPT && wal->options.salvage) {
        report_corrupt(wal, &detail); /* the file is left as it is */
        return RQ_OK;
    }
    return rq_fail(why, rc, "%s", detail.message);
}

static found *find_number(const found_list *list, uint64_t number)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->ptr[i].info.number == number) return &list->ptr[i];
    return NULL;
}

static rq_err missing(const rq_wal *wal, const found *f, rq_error *why)
{
    char path[RQ_WAL_PATH_MAX];
    rq__wal_slot_path(wal, f->slot->id, path);
    return rq_fail(why, RQ_E_CORRUPT, "%s: the previous WAL file, number %llu, is missing", path,
                   (unsigned long long)f->info.prev_number);
}

static rq_err file_prepend(rq_wal *wal, found *f)
{
    wal_file *s = rq__wal_file_new(f->info.first_lsn);
    if (s == NULL) return RQ_E_NO_MEMORY;
    s->slot = f->slot;
    s->number = f->info.number;
    s->prev_number = f->info.prev_number;
    s->found = f->info;
    s->next = wal->oldest;
    if (s->next != NULL) {
        s->sealed = true;
        s->end_lsn = s->next->first_lsn;
    }
    wal->oldest = s;
    if (wal->newest == NULL) wal->newest = s;
    f->live = true;
    return RQ_OK;
}

/* Rule 4 of wal/format.h. */
static rq_err chain_build(rq_wal *wal, found_list *list, rq_error *why)
{
    found *newest = NULL;
    for (size_t i = 0; i < list->count; i++) {
        found *f = &list->ptr[i];
        if (newest == NULL || f->info.number > newest->info.number) newest = f;
        if (f->info.epoch > wal->epoch) wal->epoch = f->info.epoch;
    }
    if (newest != NULL) wal->next_number = newest->info.number + 1;
    rq_err rc = RQ_OK;
    for (found *f = newest; f != NULL && rc == RQ_OK;) {
        rc = file_prepend(wal, f);
        if (rc != RQ_OK || f->info.number <= newest->info.oldest_number) break;
        found *prev = find_number(list, f->info.prev_number);
        if (prev == NULL || prev->info.first_lsn > f->info.first_lsn) {
            rq_error detail = {0};
            rc = missing(wal, f, &detail);
            if (wal->options.salvage) {
                report_corrupt(wal, &detail);
                rc = RQ_OK;
                break;
            }
            return rq_fail(why, rc, "%s", detail.message);
        }
        f = prev;
    }
    if (rc != RQ_OK) return rq_fail(why, rc, "%s: out of memory", wal->dir);
    return RQ_OK;
}

static rq_err files_find(rq_wal *wal, rq_error *why)
{
    rq_arena arena = {0};
    rq_dir_entry *entries = NULL;
    size_t count = 0;
    found_list list = {0};
    rq_err rc = rq_vfs_list_if_any(wal->env.vfs, wal->dir, &arena, &entries, &count, why);
    if (rc != RQ_OK) goto out;
    list.ptr = rq_arena_calloc(&arena, count + 1, sizeof *list.ptr);
    if (list.ptr == NULL) {
        rc = rq_fail(why, RQ_E_NO_MEMORY, "%s: out of memory", wal->dir);
        goto out;
    }
    for (size_t i = 0; i < count && rc == RQ_OK; i++) {
        unsigned id;
        if (!slot_id(entries[i].name, &id)) continue;
        if (id >= wal->next_slot) wal->next_slot = id + 1;
        rc = file_found(wal, id, &list, why);
    }
    if (rc == RQ_OK) rc = chain_build(wal, &list, why);
out:
    for (size_t i = 0; i < list.count; i++) {
        if (list.ptr[i].live) continue;
        list.ptr[i].slot->next = wal->free_slots;
        wal->free_slots = list.ptr[i].slot;
    }
    rq_arena_clear(&arena);
    return rc;
}

/* --- open --------------------------------------------------------------------------------- */

static void wal_free(rq_wal *wal)
{
    free(wal->ring_retired);
    free(wal->ring);
    wal_file *next;
    for (wal_file *s = wal->oldest; s != NULL; s = next) {
        next = s->next;
        rq__wal_slot_free(s->slot);
        free(s);
    }
    slot *next_slot;
    for (slot *s = wal->free_slots; s != NULL; s = next_slot) {
        next_slot = s->next;
        rq__wal_slot_free(s);
    }
    rq__wal_slot_free(wal->spare);
    rq__striped_free(wal->striped);
    for (size_t b = 0; wal->buckets != NULL && b < wal->bucket_count; b++) {
        rq_wal_region *next_region;
        for (rq_wal_region *r = wal->buckets[b]; r != NULL; r = next_region) {
            next_region = r->next;
            RQ_ASSERT(!r->open);
            rq__wal_region_free(r);
        }
    }
    free(wal->buckets);
    RQ_ASSERT(wal->members == NULL);
    rq__wal_member_free(wal->direct);
    pthread_mutex_destroy(&wal->members_mutex);
    pthread_mutex_destroy(&wal->mutex);
    pthread_cond_destroy(&wal->copied);
    pthread_mutex_destroy(&wal->regions_mutex);
    free(wal);
}

rq_err rq_wal_open(const rq_env *env, const rq_wal_options *options, rq_wal **ret, rq_error *why)
{
    rq_wal *wal = calloc(1, sizeof *wal);
    if (wal == NULL) return rq_fail(why, RQ_E_NO_MEMORY, "the log: out of memory");
    wal->env = *env;
    wal->lane_task.run = rq__wal_lane_run;
    wal->timer.task.run = rq__wal_timer_run;
    wal->next_number = 1;
    wal->next_slot = 1;
    wal->kept_from = RQ_RETENTION_NO_LOG;
    pthread_mutex_init(&wal->regions_mutex, NULL);
    pthread_mutexattr_t spins; /* spinning: held only for the time of a copy, and taken by every
                                * loop */
    pthread_mutexattr_init(&spins);
    pthread_mutexattr_settype(&spins, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(&wal->mutex, &spins);
    pthread_mutexattr_destroy(&spins);
    pthread_cond_init(&wal->copied, NULL);
    pthread_mutex_init(&wal->members_mutex, NULL);
    atomic_init(&wal->full_above, UINT64_MAX);
    wal->bucket_count = RQ_WAL_BUCKETS_MIN;
    wal->buckets = calloc(RQ_WAL_BUCKETS_MIN, sizeof(rq_wal_region *));
    rq_err rc = options_set(wal, options, why);
    if (rc == RQ_OK && (wal->buckets == NULL || rq__wal_ring_init(wal) != RQ_OK ||
                        rq__wal_member_new(wal, NULL, &wal->direct) != RQ_OK))
        rc = rq_fail(why, RQ_E_NO_MEMORY, "the log: out of memory");
    if (rc == RQ_OK)
        rc = options->tenure != NULL ? rq__striped_open(wal, why) : files_find(wal, why);
    if (rc != RQ_OK) {
        wal_free(wal);
        return rc;
    }
    *ret = wal;
    return RQ_OK;
}

/* --- replay ------------------------------------------------------------------------------- */

typedef struct replay {
    rq_wal *wal;
    rq_err (*callback)(void *ctx, const rq_wal_record *r);
    void *ctx;
    rq_lsn end;     /* behind the last frame */
    rq_lsn durable; /* known from the frames of the last WAL file */
    uint32_t crc;   /* of the last frame */
    bool chained;   /* no gap was left before it */
} replay;

static rq_err note_found(rq_wal *wal, wal_file *s, const rq_wal_record *r, rq_lsn lsn,
                         rq_error *why)
{
    pthread_mutex_lock(&wal->regions_mutex);
    rq_wal_region *region = rq__wal_region_find(wal, r->region);
    rq_err rc = RQ_OK;
    if (region == NULL) rc = rq__wal_region_add(wal, r->region, r->table, &region);
    if (rc == RQ_OK) {
        pthread_mutex_lock(&wal->mutex);
        rc = rq__wal_note_reserve(region);
        if (rc == RQ_OK) {
            rq__wal_note(region, s, wal->chunk_width, lsn, r->sequence_id, r->kind);
            if (r->sequence_id > region->found) region->found = r->sequence_id;
        }
        pthread_mutex_unlock(&wal->mutex);
    }
    pthread_mutex_unlock(&wal->regions_mutex);
    if (rc != RQ_OK) return rq_fail(why, rc, "%s: %s", wal->dir, rq_err_text(rc));
    return RQ_OK;
}

/* In salvage mode, skips a corrupt place: RQ_OK continues, RQ_E_END means the WAL file's end. */
static rq_err pass_corrupt(replay *p, rq_wal_reader *reader, rq_err rc, const rq_error *detail,
                           rq_error *why)
{
    if (!p->wal->options.salvage) return rq_fail(why, rc, "%s", detail->message);
    report_corrupt(p->wal, detail);
    p->chained = false;
    return rq__wal_reader_skip(reader, why);
}

static rq_err file_read(replay *p, wal_file *s, rq_wal_reader *reader, rq_error *why)
{
    for (;;) {
        rq_wal_record r;
        rq_error detail = {0};
        rq_err rc = rq__wal_reader_next(reader, &r, &detail);
        if (rc == RQ_OK) {
            RQ_TRY(note_found(p->wal, s, &r, rq__wal_reader_record_lsn(reader), why));
            if (p->callback != NULL) RQ_TRY(p->callback(p->ctx, &r));
            p->chained = true;
            continue;
        }
        if (rc == RQ_E_CORRUPT || rc == RQ_E_VERSION)
            rc = pass_corrupt(p, reader, rc, &detail, why);
        else if (rc != RQ_E_END)
            return rq_fail(why, rc, "%s", detail.message);
        if (rc == RQ_E_END) break;
        if (rc != RQ_OK) return rc;
    }
    p->end = rq__wal_reader_lsn(reader);
    p->durable = rq__wal_reader_durable(reader);
    p->crc = rq__wal_reader_prev_crc(reader);
    return RQ_OK;
}

static rq_err file_replay(replay *p, wal_file *s, rq_error *why)
{
    char path[RQ_WAL_PATH_MAX];
    rq__wal_slot_path(p->wal, s->slot->id, path);
    rq_wal_reader *reader;
    const rq_wal_file_info *info = &s->found;
    RQ_TRY(rq__wal_reader_of(s->slot->file, path, info, s->slot->prewritten, &reader, why));
    if (s->sealed) rq__wal_reader_set_end(reader, s->end_lsn);
    rq_err rc = RQ_OK;
    bool first = s == p->wal->oldest;
    if (!first && p->chained && (info->first_lsn != p->end || info->prev_crc != p->crc)) {
        rq_error detail = {0};
        rc = rq_fail(&detail, RQ_E_CORRUPT,
                     "%s: offset 0: does not continue the WAL file before it", path);
        if (p->wal->options.salvage) {
            report_corrupt(p->wal, &detail);
            rc = RQ_OK;
        } else {
            (void)rq_fail(why, rc, "%s", detail.message);
        }
    }
    p->chained = true;
    if (rc == RQ_OK) rc = file_read(p, s, reader, why);
    rq__wal_reader_close(reader);
    return rc;
}

/* No space for the first WAL file: the log behaves like one whose last write failed for lack of
 * space. Nothing is staged until the lane has found space (repair in lane.c); existing records can
 * be read meanwhile. `unsure`: for rq_wal.unsure. */
static void begin_later(rq_wal *wal, wal_file *old, wal_file *s, rq_lsn unsure)
{
    pthread_mutex_lock(&wal->mutex);
    wal->unsure = unsure;
    wal->spare = s->slot;
    s->slot = NULL;
    wal->current = old;
    wal->broken = RQ_E_NO_SPACE;
    wal->broken_by_sync = true; /* the old one is complete */
    wal->no_space = true;
    wal->pen = PEN_LANE;
    wal->retry_at_ns = wal->env.executor->now_ns(wal->env.executor) + RQ_WAL_RETRY_NS;
    pthread_mutex_unlock(&wal->mutex);
}

/* Writes the file's bytes [from, to) once more. It may end before `to`. */
static rq_err write_again(rq_file *f, uint64_t from, uint64_t to, rq_error *why)
{
    rq_err rc = RQ_OK;
    uint8_t *buf = malloc(REWRITE_BYTES);
    if (buf == NULL) return rq_no_memory(why);
    while (rc == RQ_OK && from < to) {
        size_t len = to - from < REWRITE_BYTES ? (size_t)(to - from) : REWRITE_BYTES;
        size_t got = 0;
        rc = rq_file_read(f, buf, len, from, &got, why);
        if (rc == RQ_OK && got == 0) break;
        if (rc == RQ_OK) rc = rq_file_write(f, buf, got, from, why);
        from += got;
    }
    free(buf);
    return rc;
}

rq_err rq__wal_make_durable(const wal_file *s, rq_lsn from, rq_error *why)
{
    rq_file *f = s->slot->file;
    if (from == s->first_lsn) RQ_TRY(write_again(f, 0, RQ_WAL_FRAMES_AT, why));
    RQ_TRY(write_again(f, rq__wal_offset(s, from), rq__wal_offset(s, s->end_lsn), why));
    return rq_file_sync(f, why);
}

/* Makes the last old WAL file durable (NULL: no region needs it), and creates the new file behind it. *ret_unsure, for
 * RQ_E_NO_SPACE: the value for rq_wal.unsure. */
static rq_err begin_file(rq_wal *wal, const wal_file *old, rq_lsn durable, wal_file *s,
                         const rq_wal_file_info *info, rq_lsn *ret_unsure, rq_error *why)
{
    *ret_unsure = 0;
    if (old != NULL) {
        *ret_unsure = durable > old->first_lsn ? durable : old->first_lsn;
        RQ_TRY(rq__wal_make_durable(old, *ret_unsure, why));
        *ret_unsure = 0;
    }
    RQ_TRY(rq__wal_slot_take(wal, &s->slot, why));
    RQ_TRY(rq__wal_header_put(wal, s->slot, info, why));
    s->slot->older = 1 - s->slot->older;
    return RQ_OK;
}

/* Begins the first WAL file of this epoch, behind the end of the existing ones. */
static rq_err log_begin(rq_wal *wal, const replay *p, rq_error *why)
{
    rq_lsn end = p->end;
    uint32_t crc = p->crc;
    if (wal->newest == NULL) RQ_TRY(rq_vfs_mkdirs(wal->env.vfs, wal->dir, why));
    wal_file *s = rq__wal_file_new(end);
    if (s == NULL) return rq_fail(why, RQ_E_NO_MEMORY, "%s: out of memory", wal->dir);
    s->number = wal->next_number++;
    wal_file *old = wal->newest;
    pthread_mutex_lock(&wal->mutex);
    if (wal->newest != NULL) {
        s->prev_number = wal->newest->number;
        wal->newest->sealed = true;
        wal->newest->end_lsn = end;
        wal->newest->next = s;
    } else {
        wal->oldest = s;
    }
    wal->newest = wal->current = s;
    wal->epoch++;
    wal->staged = wal->written = wal->synced = wal->attested = wal->mark_end = end;
    wal->staged_crc = wal->written_crc = wal->synced_crc = crc;
    atomic_store(&wal->staged_mark, end);
    atomic_store(&wal->written_mark, end);
    atomic_store(&wal->synced_mark, end);
    rq__wal_recycle(wal);
    if (wal->oldest == s)
        old = NULL; /* nothing needs it: it is free, its file will be the new one's */
    rq_wal_file_info info = rq__wal_info_of(wal, s, crc);
    pthread_mutex_unlock(&wal->mutex);
    rq_error own = {0};
    rq_lsn unsure;
    rq_err rc = begin_file(wal, old, p->durable, s, &info, &unsure, &own);
    if (rc == RQ_OK) return RQ_OK;
    if (rc != RQ_E_NO_SPACE || old == NULL) return rq_fail(why, rc, "%s", own.message);
    begin_later(wal, old, s, unsure);
    return RQ_OK;
}

rq_err rq_wal_replay(rq_wal *wal, rq_err (*callback)(void *ctx, const rq_wal_record *r), void *ctx,
                     rq_error *why)
{
    RQ_ASSERT(!wal->replayed);
    replay p = {
        .wal = wal, .callback = callback, .ctx = ctx, .end = RQ_WAL_FIRST_LSN, .chained = true};
    for (wal_file *s = wal->oldest; s != NULL; s = s->next)
        RQ_TRY(file_replay(&p, s, why));
    if (wal->striped != NULL)
        RQ_TRY(rq__striped_begin(wal, why));
    else
        RQ_TRY(log_begin(wal, &p, why));
    rq_err rc = wal->env.executor->lane_new(wal->env.executor, "rq-wal", &wal->lane);
    if (rc != RQ_OK) return rq_fail(why, rc, "cannot start the log's lane: %s", rq_err_text(rc));
    wal->replayed = true;
    pthread_mutex_lock(&wal->mutex);
    if (wal->broken != RQ_OK) rq__wal_arm_timer(wal);
    pthread_mutex_unlock(&wal->mutex);
    return RQ_OK;
}

/* --- one region alone --------------------------------------------------------------------- */

/* The part of one WAL file that must be read for one region. */
typedef struct part {
    uint64_t number;
    unsigned slot_id;
    rq_lsn end;
    bool indexed;
    uint64_t chunks;
    uint32_t chunk_first[RQ_WAL_CHUNKS];
} part;

static rq_err parts_get(rq_wal *wal, const char *encoded, part **ret, size_t *ret_count)
{
    rq_err rc = RQ_OK;
    part *parts = NULL;
    size_t count = 0;
    pthread_mutex_lock(&wal->regions_mutex);
    pthread_mutex_lock(&wal->mutex);
    const rq_wal_region *r = rq__wal_region_find(wal, rq_slice_cstr(encoded));
    size_t n = r == NULL ? 0 : r->note_count;
    if (n > 0) {
        parts = calloc(n, sizeof *parts);
        if (parts == NULL) rc = RQ_E_NO_MEMORY;
    }
    for (size_t i = 0; i < n && rc == RQ_OK; i++) {
        const wal_file *s = r->notes[i].file;
        /* The WAL file that the lane is rolling or repairing into has no records of its own yet. */
        if (!r->notes[i].holds || (!s->sealed && s != wal->current)) continue;
        part *p = &parts[count++];
        p->number = s->number;
        p->slot_id = s->slot->id;
        p->end = s->sealed ? s->end_lsn : wal->written;
        p->indexed = s->indexed;
        p->chunks = r->notes[i].chunks;
        memcpy(p->chunk_first, s->chunk_first, sizeof p->chunk_first);
    }
    pthread_mutex_unlock(&wal->mutex);
    pthread_mutex_unlock(&wal->regions_mutex);
    *ret = parts;
    *ret_count = count;
    return rc;
}

typedef struct region_replay {
    replay base;
    rq_slice encoded;
} region_replay;

/* Delivers the region's records that begin below `upto`. In salvage mode corrupt places are passed
 * over; the replay of the whole log has reported them. */
static rq_err part_run(const region_replay *p, rq_wal_reader *reader, rq_lsn upto, rq_error *why)
{
    while (rq__wal_reader_lsn(reader) < upto) {
        rq_wal_record r;
        rq_error detail = {0};
        rq_err rc = rq__wal_reader_next(reader, &r, &detail);
        if (rc == RQ_E_CORRUPT && p->base.wal->options.salvage) {
            rc = rq__wal_reader_skip(reader, &detail);
            if (rc == RQ_OK) continue;
        }
        if (rc == RQ_E_END) break;
        if (rc != RQ_OK) return rq_fail(why, rc, "%s", detail.message);
        if (!rq_slice_eq(r.region, p->encoded) || rq__wal_reader_record_lsn(reader) >= upto)
            continue;
        RQ_TRY(p->base.callback(p->base.ctx, &r));
    }
    return RQ_OK;
}

static rq_err part_replay(const region_replay *p, const part *from, rq_error *why)
{
    const rq_wal *wal = p->base.wal;
    char path[RQ_WAL_PATH_MAX];
    rq__wal_slot_path(wal, from->slot_id, path);
    rq_wal_reader *reader;
    RQ_TRY(rq__wal_reader_open(wal->env.vfs, path, &reader, why));
    const rq_wal_file_info *info = rq__wal_reader_info(reader);
    rq_err rc = RQ_OK;
    if (info->number != from->number)
        rc = rq_fail(why, RQ_E_STATE, "%s: recycled while being read", path);
    rq__wal_reader_set_end(reader, from->end);
    if (rc == RQ_OK && !from->indexed) rc = part_run(p, reader, from->end, why);
    for (unsigned c = 0; c < RQ_WAL_CHUNKS && rc == RQ_OK && from->indexed; c++) {
        if ((from->chunks >> c & 1) == 0) continue;
        rq_lsn first = info->first_lsn + from->chunk_first[c];
        rq_lsn upto =
            c + 1 == RQ_WAL_CHUNKS ? from->end : info->first_lsn + (c + 1) * wal->chunk_width;
        rq__wal_reader_seek(reader, first);
        rc = part_run(p, reader, upto < from->end ? upto : from->end, why);
    }
    rq__wal_reader_close(reader);
    return rc;
}

rq_err rq_wal_replay_region(rq_wal *wal, const char *encoded,
                            rq_err (*callback)(void *ctx, const rq_wal_record *r), void *ctx,
                            rq_error *why)
{
    if (wal->striped != NULL)
        return rq_fail(why, RQ_E_UNSUPPORTED,
                       "a log on shared storage is read only after it has ended");
    rq_lsn staged = atomic_load_explicit(&wal->staged_mark, memory_order_acquire);
    rq_err rc = rq_wal_wait_blocking(wal, staged, false);
    if (rc != RQ_OK) return rq_fail(why, rc, "the log has failed: %s", rq_err_text(rc));
    region_replay p = {.base = {.wal = wal, .callback = callback, .ctx = ctx},
                       .encoded = rq_slice_cstr(encoded)};
    part *parts;
    size_t count;
    rc = parts_get(wal, encoded, &parts, &count);
    if (rc != RQ_OK) return rq_fail(why, rc, "the log: %s", rq_err_text(rc));
    for (size_t i = 0; i < count && rc == RQ_OK; i++)
        rc = part_replay(&p, &parts[i], why);
    free(parts);
    return rc;
}

/* --- close -------------------------------------------------------------------------------- */

static rq_err check_unneeded(const rq_wal *wal, rq_error *why)
{
    for (const wal_file *s = wal->oldest; s != NULL; s = s->next) {
        if (s->holders == 0) continue;
        const rq_wal_region *holder = rq__wal_holder(wal);
        return rq_fail(why, RQ_E_STATE,
                       "the write-ahead log is kept: region %s still needs its records",
                       holder == NULL ? "(unknown)" : holder->encoded);
    }
    return RQ_OK;
}

/* Turns the last WAL file into an empty one that marks a clean stop; removes the other
 * files. */
static rq_err leave_empty(rq_wal *wal, rq_error *why)
{
    RQ_TRY(check_unneeded(wal, why));
    /* Somebody reads it after the next start, or in a cluster when it has been fenced. */
    if (wal->kept_from < wal->staged) return RQ_OK;
    if (wal->striped != NULL) return rq__striped_close_head(wal, why);
    slot *last = wal->current->slot;
    const wal_file empty = {.number = wal->next_number++,
                            .first_lsn = wal->staged,
                            .prev_number = wal->current->number};
    rq_wal_file_info info = rq__wal_info_of(wal, &empty, wal->staged_crc);
    info.oldest_number = info.number;
    info.clean = true;
    /* One durable copy of the header is enough. */
    RQ_TRY(rq__wal_header_put(wal, last, &info, why));
    rq_arena arena = {0};
    rq_dir_entry *entries;
    size_t count;
    rq_err rc = rq_vfs_list(wal->env.vfs, wal->dir, &arena, &entries, &count, why);
    for (size_t i = 0; i < count && rc == RQ_OK; i++) {
        unsigned id;
        char path[RQ_WAL_PATH_MAX];
        if (!slot_id(entries[i].name, &id) || id == last->id) continue;
        rq__wal_slot_path(wal, id, path);
        rc = rq_vfs_remove(wal->env.vfs, path, why);
    }
    rq_arena_clear(&arena);
    return rc;
}

rq_err rq_wal_close(rq_wal *wal, bool clean, rq_error *why)
{
    if (wal == NULL) return RQ_OK;
    rq_err rc = RQ_OK;
    if (wal->lane != NULL) {
        rq_executor *ex = wal->env.executor;
        pthread_mutex_lock(&wal->mutex);
        wal->closing = true;
        if (wal->broken != RQ_OK || wal->no_space) rq__wal_lane_wake(wal);
        rq_lsn staged = wal->staged;
        pthread_mutex_unlock(&wal->mutex);
        rc = rq_wal_wait_blocking(wal, staged, true);
        if (rc != RQ_OK) (void)rq_fail(why, rc, "the log has failed: %s", rq_err_text(rc));
        if (wal->striped != NULL) rq__striped_drain(wal);
        (void)ex->timer_cancel(ex, &wal->timer);
        ex->lane_free(ex, wal->lane);
        if (rc == RQ_OK && clean) rc = leave_empty(wal, why);
    }
    wal_free(wal);
    return rc;
}

/* --- state -------------------------------------------------------------------------------- */

bool rq_wal_failed(const rq_wal *wal)
{
    return rq__wal_has_failed(wal);
}

bool rq_wal_lacks_space(rq_wal *wal)
{
    pthread_mutex_lock(&wal->mutex);
    bool lacks = wal->no_space || wal->broken == RQ_E_NO_SPACE;
    pthread_mutex_unlock(&wal->mutex);
    return lacks;
}

void rq_wal_roll(rq_wal *wal)
{
    pthread_mutex_lock(&wal->mutex);
    wal->roll_wanted = true;
    rq__wal_lane_wake(wal);
    pthread_mutex_unlock(&wal->mutex);
}

void rq_wal_set_slow(rq_wal *wal, uint64_t slow_ns)
{
    pthread_mutex_lock(&wal->mutex);
    wal->options.slow_ns = slow_ns;
    pthread_mutex_unlock(&wal->mutex);
}

/* REQUIRES: mutex. */
static uint64_t spare_bytes(const rq_wal *wal)
{
    uint64_t bytes = 0;
    for (const slot *s = wal->free_slots; s != NULL; s = s->next)
        bytes += s->prewritten;
    return bytes;
}

void rq_wal_get_stats(rq_wal *wal, rq_wal_stats *ret)
{
    pthread_mutex_lock(&wal->mutex);
    *ret = wal->stats;
    ret->files = 0;
    for (const wal_file *s = wal->oldest; s != NULL; s = s->next)
        ret->files++;
    ret->log_bytes = wal->oldest == NULL ? 0 : rq__wal_live_bytes(wal);
    ret->spare_bytes = spare_bytes(wal);
    ret->staged = wal->staged;
    ret->written = wal->written;
    ret->synced = wal->synced;
    pthread_mutex_unlock(&wal->mutex);
    if (wal->options.tenure != NULL)
        rq_tenure_lapses(wal->options.tenure, &ret->lease_lapses, &ret->lease_lapsed_ns);
}

void rq_wal_sync_times(const rq_wal *wal, rq_times_sum *to)
{
    rq_times_read(&wal->sync_times, to);
}
