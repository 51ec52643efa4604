/* SPDX-License-Identifier: Apache-2.0 */
/* The region itself: identity, read points, failure and release. Opening and closing are in life.c,
 * writing in write.c. */
#include "region/engine_priv.h"
#include "region/region_scanner.h"

#include <stdio.h>
#include <stdlib.h>

/* --- identity --------------------------------------------------------------------------------- */

const rq_region_info *rq_region_get_info(const rq_region *r)
{
    return &r->info;
}

rq_table_schema *rq_region_schema(const rq_region *r)
{
    return rq_table_schema_ref(r->schema);
}

rq_engine *rq_region_engine(const rq_region *r)
{
    return r->engine;
}

uint64_t rq_region_cell_bytes_max(const rq_region *r)
{
    return r->cell_bytes_max;
}

uint64_t rq_region_open_seqid(const rq_region *r)
{
    return r->open_seqid;
}

bool rq_region_is_closing(const rq_region *r)
{
    return rq__region_state_now(r) != RQ__REGION_OPEN;
}

size_t rq_region_store_count(const rq_region *r)
{
    return r->store_count;
}

rq_store *rq_region_store_at(const rq_region *r, size_t i)
{
    return r->stores[i].store;
}

rq__region_store *rq__region_find_store(rq_region *r, rq_slice family, size_t *ret_place)
{
    size_t low = 0;
    size_t high = r->store_count; /* ascending by family */
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int c = rq_slice_compare(r->stores[mid].family, family);
        if (c == 0) {
            *ret_place = mid;
            return &r->stores[mid];
        }
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

rq_err rq__region_no_family(const rq_region *r, rq_slice family, rq_error *why)
{
    char name[512];
    char table[256];
    char asked[160];
    rq_region_info_text(&r->info, name, sizeof name);
    rq_bytes_to_string(r->info.table, table, sizeof table);
    rq_bytes_to_string(family, asked, sizeof asked);
    return rq_fail(why, RQ_E_NO_SUCH_FAMILY,
                   "Column family %s does not exist in region %s in table '%s'", asked, name,
                   table);
}

rq_err rq__region_not_serving(const rq_region *r, rq_error *why)
{
    static const char *const words[] = {
        [RQ__REGION_OPEN] = "is opening",
        [RQ__REGION_CLOSING] = "is closing",
        [RQ__REGION_CLOSED] = "is closed",
        [RQ__REGION_FAILED] = "is closing after a failure",
    };
    char name[600];
    rq_region_info_text(&r->info, name, sizeof name);
    return rq_fail(why, RQ_E_NOT_SERVING_REGION, "%s %s", name, words[rq__region_state_now(r)]);
}

/* --- read points ------------------------------------------------------------------------------ */

uint64_t rq__region_read_point(const rq_region *r)
{
    return atomic_load_explicit(&r->read_point, memory_order_acquire);
}

void rq__region_raise_read_point(rq_region *r, uint64_t seqid)
{
    uint64_t old = atomic_load_explicit(&r->read_point, memory_order_relaxed);
    while (old < seqid && !atomic_compare_exchange_weak(&r->read_point, &old, seqid))
        ;
}

/* Read points beyond the slots: an array sorted by number, with room at both ends. A number between
 * two entries counts for the lower one: that keeps more cells than necessary, but needs no
 * insertion. An entry without holders stays as a hole until half of the entries are holes. The
 * first entry is never a hole, and the last one stays: as long as numbers are only added above it,
 * the entry that a number counts for is found again. An operation takes logarithmic time; moving
 * the array is amortized over its use. */

/* The last entry with a number at most `number`; `from` if all are above. REQUIRES: lock, not
 * empty. */
static size_t list_find(const rq_region *r, uint64_t number)
{
    size_t low = r->read_point_from, high = r->read_point_to;
    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;
        if (r->read_points[mid].number <= number)
            low = mid;
        else
            high = mid;
    }
    return low;
}

/* Moves the entries, without holes except the last one, into the middle of an array four times as
 * large. REQUIRES: lock. */
static void list_move(rq_region *r)
{
    size_t used = r->read_point_to - r->read_point_from - r->read_point_holes + 1;
    size_t room = used < 4 ? 16 : used * 4;
    rq__read_point *fresh = malloc(room * sizeof *fresh);
    /* An unrecorded read point could lose cells under a reader: stop the process instead. */
    RQ_ASSERT(fresh != NULL);
    size_t from = (room - used) / 2, to = from;
    for (size_t i = r->read_point_from; i < r->read_point_to; i++)
        if (r->read_points[i].count > 0 || i + 1 == r->read_point_to)
            fresh[to++] = r->read_points[i];
    size_t holes = to > from && fresh[to - 1].count == 0 ? 1 : 0;
    free(r->read_points);
    r->read_points = fresh;
    r->read_point_room = room;
    r->read_point_from = from;
    r->read_point_to = to;
    r->read_point_holes = holes;
}

static void list_add(rq_region *r, uint64_t number)
{
    pthread_mutex_lock(&r->lock);
    bool is_empty = r->read_point_from == r->read_point_to;
    size_t i = is_empty ? r->read_point_to : list_find(r, number);
    bool above = is_empty || (i + 1 == r->read_point_to && r->read_points[i].number < number);
    bool below = !is_empty && r->read_points[i].number > number;
    if ((above && r->read_point_to == r->read_point_room) || (below && r->read_point_from == 0))
        list_move(r);
    if (above) {
        r->read_points[r->read_point_to++] = (rq__read_point){number, 1};
    } else if (below) {
        r->read_points[--r->read_point_from] = (rq__read_point){number, 1};
    } else if (r->read_points[i].count++ == 0) {
        r->read_point_holes--;
    }
    pthread_mutex_unlock(&r->lock);
}

static void list_remove(rq_region *r, uint64_t number)
{
    pthread_mutex_lock(&r->lock);
    RQ_ASSERT(r->read_point_from < r->read_point_to);
    rq__read_point *at = &r->read_points[list_find(r, number)];
    RQ_ASSERT(at->number <= number && at->count > 0);
    if (--at->count == 0) r->read_point_holes++;
    while (r->read_point_from < r->read_point_to && r->read_points[r->read_point_from].count == 0) {
        r->read_point_from++;
        r->read_point_holes--;
    }
    if (r->read_point_holes > 16 + (r->read_point_to - r->read_point_from) / 2) list_move(r);
    pthread_mutex_unlock(&r->lock);
}

static void keep(rq_region *r, uint64_t number)
{
    for (size_t i = 0; i < RQ__READ_POINT_SLOTS; i++) {
        uint64_t free_slot = 0;
        if (atomic_load_explicit(&r->read_slots[i], memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong(&r->read_slots[i], &free_slot, number + 1))
            return;
    }
    list_add(r, number);
}

void rq__region_read_point_release(rq_region *r, uint64_t read_point)
{
    for (size_t i = 0; i < RQ__READ_POINT_SLOTS; i++) {
        uint64_t mine = read_point + 1;
        if (atomic_load_explicit(&r->read_slots[i], memory_order_relaxed) == mine &&
            atomic_compare_exchange_strong(&r->read_slots[i], &mine, 0))
            return;
    }
    list_remove(r, read_point);
}

/*
 * A thread that takes a read point first reads the number and then stores it in a slot. A flush
 * that computes the smallest read point in between would not see it. Therefore the flush stores the
 * number that it starts from in read_floor before it looks at the slots: either the flush sees the
 * slot, or the other thread sees that the floor is above its number, and takes a newer number. (All
 * of these accesses are sequentially consistent.)
 */
uint64_t rq__region_read_point_acquire(rq_region *r, uint64_t read_point)
{
    rq__region_count_read(r);
    if (read_point != 0) {
        keep(r, read_point);
        return read_point;
    }
    for (;;) {
        uint64_t number = atomic_load(&r->read_point);
        keep(r, number);
        if (atomic_load(&r->read_floor) <= number) return number;
        rq__region_read_point_release(r, number);
    }
}

uint64_t rq__region_smallest_read_point(rq_region *r)
{
    uint64_t smallest = atomic_load(&r->read_point);
    uint64_t floor = atomic_load(&r->read_floor);
    while (floor < smallest && !atomic_compare_exchange_weak(&r->read_floor, &floor, smallest))
        ;
    for (size_t i = 0; i < RQ__READ_POINT_SLOTS; i++) {
        uint64_t v = atomic_load(&r->read_slots[i]);
        if (v != 0 && v - 1 < smallest) smallest = v - 1;
    }
    pthread_mutex_lock(&r->lock);
    if (r->read_point_from < r->read_point_to &&
        r->read_points[r->read_point_from].number < smallest)
        smallest = r->read_points[r->read_point_from].number;
    pthread_mutex_unlock(&r->lock);
    return smallest;
}

/* --- counts ----------------------------------------------------------------------------------- */

/* HBASE: StoreFileInfo.isHFile. */
static bool is_own_file(const char *name)
{
    return strpbrk(name, ".=-") == NULL; /* store/reference.h */
}

static void add_store_load(const rq_store_version *v, rq_region_load *ret)
{
    ret->memstore_bytes += rq_store_version_data_bytes(v);
    for (size_t i = 0; i < v->file_count; i++) {
        const rq_hfile_info *info = rq_hfile_reader_info(v->files[i].reader);
        ret->storefiles++;
        ret->storefile_bytes += v->files[i].size_bytes;
        if (is_own_file(v->files[i].name)) ret->hfile_bytes += v->files[i].size_bytes;
        ret->storefile_uncompressed_bytes += info->uncompressed_bytes;
        ret->root_index_bytes += info->root_index_bytes;
        ret->index_bytes += info->index_bytes;
        ret->bloom_bytes += info->bloom_bytes;
        ret->cached_bytes += rq_hfile_reader_cached_bytes(v->files[i].reader);
        if (v->files[i].major && (ret->last_major_compaction_ms == 0 ||
                                  info->create_time_ms < ret->last_major_compaction_ms))
            ret->last_major_compaction_ms = info->create_time_ms;
    }
}

RQ_COLD static size_t next_read_count(void)
{
    static _Atomic unsigned threads;
    return atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) % RQ__READ_COUNTS + 1;
}

/* The counter of the calling thread, of those of each region. */
static size_t own_read_count(void)
{
    static _Thread_local size_t own; /* 0: none yet */
    if (RQ_UNLIKELY(own == 0)) own = next_read_count();
    return own - 1;
}

static void count_reads(rq_region *r, uint64_t count)
{
    atomic_fetch_add_explicit(&r->read_requests[own_read_count()].n, count, memory_order_relaxed);
}

void rq__region_count_read(rq_region *r)
{
    count_reads(r, 1);
}

void rq__region_count_rows(rq_region *r, uint64_t returned, uint64_t filtered)
{
    if (returned > 0) count_reads(r, returned);
    if (filtered > 0)
        atomic_fetch_add_explicit(&r->filtered_read_requests, filtered, memory_order_relaxed);
}

static uint64_t reads_of(const rq_region *r)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < RQ__READ_COUNTS; i++)
        sum += atomic_load_explicit(&r->read_requests[i].n, memory_order_relaxed);
    return sum;
}

void rq__region_counts(const rq_region *r, rq_request_counts *ret)
{
    *ret = (rq_request_counts){
        .reads = reads_of(r),
        .filtered_reads = atomic_load_explicit(&r->filtered_read_requests, memory_order_relaxed),
        .writes = atomic_load_explicit(&r->write_requests, memory_order_relaxed),
    };
}

void rq_region_get_load(const rq_region *r, rq_region_load *ret)
{
    rq_request_counts counts;
    rq__region_counts(r, &counts);
    *ret = (rq_region_load){
        .read_requests = counts.reads,
        .write_requests = counts.writes,
        .filtered_read_requests = counts.filtered_reads,
        .max_flushed_seqid = atomic_load_explicit(&r->max_flushed_seqid, memory_order_relaxed),
        .stores = (uint32_t)r->store_count,
        .compacted_cells = atomic_load_explicit(&r->compacted_cells, memory_order_relaxed),
        .compacting_cells = atomic_load_explicit(&r->compacting_cells, memory_order_relaxed),
        .compaction_state = rq_region_compaction_state(r),
    };
    rq_epoch_member pin;
    rq_epoch_pin(r->env.epoch, &pin);
    for (size_t i = 0; i < r->store_count; i++)
        add_store_load(rq_store_version_now(r->stores[i].store), ret);
    rq_epoch_unpin(r->env.epoch, &pin);
}

void rq_region_evict_blocks(const rq_region *r, uint64_t *ret_blocks, uint64_t *ret_bytes)
{
    *ret_blocks = *ret_bytes = 0;
    for (size_t i = 0; i < r->store_count; i++) {
        rq_epoch_member pin;
        rq_epoch_pin(r->env.epoch, &pin);
        const rq_store_version *v = rq_store_version_ref(rq_store_version_now(r->stores[i].store));
        rq_epoch_unpin(r->env.epoch, &pin);
        for (size_t f = 0; f < v->file_count; f++) {
            uint64_t blocks, bytes;
            rq_hfile_reader_evict(v->files[f].reader, &blocks, &bytes);
            *ret_blocks += blocks;
            *ret_bytes += bytes;
        }
        rq_store_version_unref(v);
    }
}

static rq_err each_cached_file(const rq_store_version *v,
                               rq_err (*visit)(void *ctx, const char *path), void *ctx,
                               rq_error *why)
{
    for (size_t f = 0; f < v->file_count; f++) {
        bool is_cached;
        RQ_TRY(rq_hfile_reader_is_cached(v->files[f].reader, &is_cached, why));
        if (is_cached) RQ_TRY(visit(ctx, rq_hfile_reader_path(v->files[f].reader)));
    }
    return RQ_OK;
}

rq_err rq_region_each_cached_file(const rq_region *r, rq_err (*visit)(void *ctx, const char *path),
                                  void *ctx, rq_error *why)
{
    rq_err rc = RQ_OK;
    for (size_t i = 0; rc == RQ_OK && i < r->store_count; i++) {
        rq_epoch_member pin;
        rq_epoch_pin(r->env.epoch, &pin);
        const rq_store_version *v = rq_store_version_ref(rq_store_version_now(r->stores[i].store));
        rq_epoch_unpin(r->env.epoch, &pin);
        rc = each_cached_file(v, visit, ctx, why);
        rq_store_version_unref(v);
    }
    return rc;
}

/* A compaction that a client requested is reported from its request on; one that the server
 * started, once its files are selected. HBASE: HRegion.reportCompactionRequestStart, which runs
 * before the client gets its response. */
int rq_region_compaction_state(const rq_region *r)
{
    bool minor = false;
    bool major = false;
    for (size_t i = 0; i < r->store_count; i++) {
        unsigned now = atomic_load(&r->stores[i].compactions);
        bool asked_minor = (now & RQ__WANT_ASKED) != 0 && (now & RQ__WANT_MAJOR) == 0;
        minor |= (now & RQ__RUNS_MINOR) != 0 || asked_minor;
        major |= (now & (RQ__RUNS_MAJOR | RQ__WANT_MAJOR)) != 0;
    }
    return (major ? 2 : 0) + (minor ? 1 : 0); /* HBASE: CompactionState */
}

/* --- references and failure ------------------------------------------------------------------- */

void rq__region_ref_many(rq_region *r, unsigned count)
{
    atomic_fetch_add_explicit(&r->refs, count, memory_order_relaxed);
}

void rq__region_unref_many(rq_region *r, unsigned count)
{
    if (atomic_fetch_sub_explicit(&r->refs, count, memory_order_acq_rel) == count)
        rq__region_free(r);
}

rq_region *rq_region_ref(rq_region *r)
{
    rq__region_ref_many(r, 1);
    return r;
}

void rq_region_unref(rq_region *r)
{
    if (r != NULL) rq__region_unref_many(r, 1);
}

void rq__region_fail(rq_region *r, const rq_error *why)
{
    int state = RQ__REGION_OPEN;
    if (!atomic_compare_exchange_strong(&r->state, &state, RQ__REGION_FAILED)) {
        state = RQ__REGION_CLOSING;
        atomic_compare_exchange_strong(&r->state, &state, RQ__REGION_FAILED);
    }
    atomic_store(&r->stop, true);
    if (atomic_exchange(&r->failure_reported, true)) return;
    rq_log_error(r->env.log, "region", "region %s failed: %s", r->info.encoded, why->message);
    if (r->engine->region_failed != NULL) r->engine->region_failed(r->engine->context, r, why);
}

bool rq_region_has_failed(const rq_region *r)
{
    return atomic_load(&r->failure_reported);
}

bool rq__region_is_system(const rq_region *r)
{
    return rq_slice_eq(r->info.ns, RQ_SLICE_LIT("hbase")) ||
           rq_slice_eq(r->info.ns, RQ_SLICE_LIT("master"));
}

rq_log_level rq__region_log_level(const rq_region *r)
{
    return rq__region_is_system(r) ? RQ_LOG_DEBUG : RQ_LOG_INFO;
}

/* --- what is under way ------------------------------------------------------------------------ */

bool rq__region_enter(rq_region *r)
{
    atomic_fetch_add_explicit(&r->inflight, 1, memory_order_acq_rel);
    if (rq__region_state_now(r) == RQ__REGION_OPEN) return true;
    rq__region_leave(r);
    return false;
}

void rq__region_leave(rq_region *r)
{
    rq__region_leave_many(r, 1);
}

void rq__region_leave_many(rq_region *r, unsigned count)
{
    if (atomic_fetch_sub(&r->inflight, count) != count) return;
    rq_latch *idle = atomic_exchange(&r->idle, NULL);
    if (idle != NULL) r->env.executor->latch_open(idle, RQ_OK);
}
