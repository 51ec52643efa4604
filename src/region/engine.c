/* SPDX-License-Identifier: Apache-2.0 */
/* The engine: start and stop, the memory limits, and a periodic tick for work that no other event
 * triggers (held writes, waiting flushes, periodic flushes and major compactions).
 *
 * Locks: the engine's `lock` guards the list of regions; a thread that walks the list holds it and does
 * not wait. A region's `lock` is never taken while the engine's is held. The log calls on_pressure with
 * its own lock held, and nothing here takes a lock in that call. */
#include "region/engine_priv.h"
#include "region/owned.h"

#include "base/fnv.h"
#include "base/machine.h"
#include "store/file_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define TICK_NS ((uint64_t)100 * 1000 * 1000)
/* Memory freed by memstores or evicted blocks is reused for the next ones, since new pages from the
 * kernel take a good part of the time of a put or get (docs/lab/requests.md). So each minute only
 * a part of the memory that was unused during all of it is returned to the system. Of memstores it is a
 * half: after a load they would otherwise keep for a quarter of an hour what the page cache could use. */
#define TICKS_BETWEEN_TRIMS 600
#define CACHE_TRIM_SHARE 8
#define SLABS_TRIM_SHARE 2
#define RELIEF_INTERVAL_NS ((uint64_t)1000 * 1000)

/* --- settings --------------------------------------------------------------------------------- */

uint64_t rq_engine_memory_budget(const rq_config *c)
{
    bool is_set = rq_config_int(c, RQ_SET_MEMORY) != 0; /* the machine tells in 13 system calls */
    return rq_config_memory_budget(c, is_set ? 0 : rq_machine_memory());
}

/* The log's ring: a record must fit into half of it, and a cell may have 10 MB. */
static size_t staging_bytes_max(const rq_config *c)
{
    uint64_t share = rq_engine_memory_budget(c) / 8;
    uint64_t least = (uint64_t)32 << 20;
    uint64_t most = (uint64_t)64 << 20;
    return (size_t)(share < least ? least : share > most ? most : share);
}

/* -1: none. */
static int hour_of(const char *text)
{
    char *end;
    long hour = strtol(text, &end, 10);
    return end != text && *end == '\0' && hour >= 0 && hour < 24 ? (int)hour : -1;
}

static uint64_t ticks_of(uint64_t ms)
{
    uint64_t ticks = ms / (TICK_NS / 1000000);
    return ticks == 0 ? 1 : ticks;
}

/* Those that change without a restart. */
static rq_err take_reloadable(rq_engine *e, const rq_config *c)
{
    rq_compaction_settings compaction = rq__compaction_settings_of_site(c);
    e->family_flush_bytes_min = (uint64_t)rq_config_int(c, RQ_SET_FLUSH_LOWER_BOUND);
    e->busy_wait_ns = (uint64_t)rq_config_int(c, RQ_SET_BUSY_WAIT) * 1000000;
    e->row_wait_ns = (uint64_t)rq_config_int(c, RQ_SET_ROW_WAIT) * 1000000;
    e->blocking_files_wait_ms = (uint64_t)rq_config_int(c, RQ_SET_BLOCKING_WAIT);
    e->flush_delay_ms = (uint64_t)rq_config_int(c, RQ_SET_FLUSH_DELAY) * 1000;
    e->offpeak_start = hour_of(rq_config_text(c, RQ_SET_OFFPEAK_START));
    e->offpeak_end = hour_of(rq_config_text(c, RQ_SET_OFFPEAK_END));
    return rq__compaction_publish(&e->compaction, &compaction);
}

static uint64_t slow_append_ns(const rq_config *c)
{
    return (uint64_t)rq_config_int(c, RQ_SET_LOG_SLOW) * 1000000;
}

rq_err rq_engine_reload(rq_engine *e, const rq_config *c, rq_error *why)
{
    rq__throughput_set(&e->throughput, c);
    rq_wal_set_slow(e->wal, slow_append_ns(c));
    pthread_mutex_lock(&e->lock);
    rq_err rc = take_reloadable(e, c);
    for (rq_region *r = e->regions; r != NULL && rc == RQ_OK; r = r->next)
        rc = rq__compaction_reconfigure(r);
    pthread_mutex_unlock(&e->lock);
    return rc == RQ_OK ? rc : rq_fail(why, rc, "%s", rq_err_text(rc));
}

static void take_settings(rq_engine *e, const rq_config *c)
{
    uint64_t budget = rq_engine_memory_budget(c);
    e->memstore_high = (uint64_t)((double)budget * rq_config_real(c, RQ_SET_GLOBAL_MEMSTORE));
    e->memstore_low =
        (uint64_t)((double)e->memstore_high * rq_config_real(c, RQ_SET_GLOBAL_MEMSTORE_LOW));
    e->cache_bytes = (uint64_t)((double)budget * rq_config_real(c, RQ_SET_BLOCK_CACHE));
    e->flush_bytes = (uint64_t)rq_config_int(c, RQ_SET_FLUSH_SIZE);
    e->block_multiplier = (uint64_t)rq_config_int(c, RQ_SET_BLOCK_MULTIPLIER);
    e->cell_bytes_max = (uint64_t)rq_config_int(c, RQ_SET_CELL_MAX);
    e->timestamp_slop_ms = rq_config_int(c, RQ_SET_TIMESTAMP_SLOP);
    e->bulk_verify = rq_config_int(c, RQ_SET_BULK_VERIFY) != 0;
    e->bulk_compact = rq_config_int(c, RQ_SET_BULK_COMPACT) != 0;
    e->nonces_enabled = rq_config_int(c, RQ_SET_NONCES) != 0;
    snprintf(e->store_engine, sizeof e->store_engine, "%s", rq_config_text(c, RQ_SET_STORE_ENGINE));
    snprintf(e->compaction_policy, sizeof e->compaction_policy, "%s",
             rq_config_text(c, RQ_SET_COMPACTION_POLICY));
    rq__throughput_init(&e->throughput, c);
    e->files = rq_hfile_options_default();
    e->files.list_qualifiers = true;
    for (size_t i = 0; rq_file_property(i) != NULL; i++) {
        const char *text = rq_config_by_name(c, rq_file_property(i));
        if (text != NULL && text[0] != '\0' &&
            !rq_file_options_take(&e->files, rq_file_property(i), rq_slice_cstr(text)))
            rq_log_warn(e->env.log, "region", "setting %s: invalid value '%s'; using the default",
                        rq_file_property(i), text);
    }
    e->caching = rq_cache_options_default();
    for (size_t i = 0; rq_cache_property(i) != NULL; i++) {
        const char *text = rq_config_by_name(c, rq_cache_property(i));
        if (text != NULL)
            (void)rq_cache_options_take(&e->caching, rq_cache_property(i), rq_slice_cstr(text));
    }
    e->ticks_between_compaction_looks =
        ticks_of((uint64_t)rq_config_int(c, RQ_SET_COMPACTION_CHECK));
    e->ticks_between_age_looks = ticks_of((uint64_t)rq_config_int(c, RQ_SET_FLUSH_CHECK));
    e->quiet_ms = (uint64_t)rq_config_int(c, RQ_SET_COMPACTION_QUIET);
    e->flush_interval_ms = rq_config_int(c, RQ_SET_FLUSH_INTERVAL);
    e->flush_changes = (uint64_t)rq_config_int(c, RQ_SET_FLUSH_CHANGES);
    e->mob_open_max = (size_t)rq_config_int(c, RQ_SET_MOB_OPEN_FILES);
    e->mob_file_bytes_max = (uint64_t)rq_config_int(c, RQ_SET_MOB_FILE_MAX);
    e->mob_optimized = strcmp(rq_config_text(c, RQ_SET_MOB_TYPE), "optimized") == 0;
    e->mob_discard_missing = rq_config_int(c, RQ_SET_MOB_DISCARD) != 0;
    e->ticks_between_mob_trims = ticks_of((uint64_t)rq_config_int(c, RQ_SET_MOB_TRIM) * 1000);
}

/* --- memory ----------------------------------------------------------------------------------- */

void rq__engine_memstore(rq_engine *e, int64_t delta)
{
    atomic_fetch_add_explicit(&e->memstore_bytes, (uint64_t)delta, memory_order_relaxed);
}

uint64_t rq__engine_memstore_held(const rq_engine *e)
{
    return rq_slab_pool_bytes(e->slabs);
}

void rq__engine_version_freed(void *engine)
{
    rq__engine_poke_held(engine);
}

/* Requests flushes, largest regions first, until the requested ones would bring the sum below
 * the low mark. Repeating it is cheap: a region whose flush is already requested counts as
 * requested. */
void rq__engine_relieve(rq_engine *e)
{
    uint64_t sum = atomic_load_explicit(&e->memstore_bytes, memory_order_relaxed);
    if (sum <= e->memstore_low) return;
    uint64_t now = e->env.executor->now_ns(e->env.executor);
    uint64_t before = atomic_load_explicit(&e->relieved_ns, memory_order_relaxed);
    /* Every write calls this; one check per interval is enough. */
    if (now - before < RELIEF_INTERVAL_NS ||
        !atomic_compare_exchange_strong(&e->relieved_ns, &before, now))
        return;
    if (pthread_mutex_trylock(&e->lock) != 0)
        return; /* another thread holds the list; the tick
                                                       * will do it */
    rq_region *largest = NULL;
    uint64_t most = 0;
    uint64_t asked = 0;
    for (rq_region *r = e->regions; r != NULL; r = r->next) {
        uint64_t bytes = atomic_load_explicit(&r->memstore_bytes, memory_order_relaxed);
        if (atomic_load_explicit(&r->flush_requested, memory_order_relaxed)) {
            asked += bytes;
            continue;
        }
        uint64_t active = atomic_load_explicit(&r->active_bytes, memory_order_relaxed);
        if (active > most) {
            most = active;
            largest = r;
        }
    }
    if (largest != NULL && sum - (asked < sum ? asked : sum) > e->memstore_low)
        rq__region_request_full_flush(largest);
    pthread_mutex_unlock(&e->lock);
}

uint64_t rq__engine_debt_delay_ns(rq_engine *e, uint64_t bytes)
{
    uint64_t sum = rq__engine_memstore_held(e);
    if (sum <= e->memstore_low) return 0;
    double depth = 1;
    if (sum < e->memstore_high)
        depth = (double)(sum - e->memstore_low) / (double)(e->memstore_high - e->memstore_low);
    return rq__debt_delay_ns(&e->debt, bytes, depth, e->env.executor->now_ns(e->env.executor));
}

/* --- the regions ------------------------------------------------------------------------------ */

#define BUCKETS_MIN 64

/* REQUIRES: lock. */
static rq_region **bucket_of(const rq_engine *e, const char *encoded)
{
    uint64_t h = rq_fnv1a(RQ_FNV1A, rq_slice_cstr(encoded));
    return &e->buckets[(h ^ h >> 32) & (e->bucket_count - 1)];
}

/* REQUIRES: lock. */
static void index_add(rq_engine *e, rq_region *r)
{
    rq_region **at = bucket_of(e, r->info.encoded);
    r->next_of_hash = *at;
    *at = r;
}

/* REQUIRES: lock. */
static void index_remove(const rq_engine *e, const rq_region *r)
{
    rq_region **at = bucket_of(e, r->info.encoded);
    while (*at != r)
        at = &(*at)->next_of_hash;
    *at = r->next_of_hash;
}

/* REQUIRES: lock. Doubles the buckets. Without memory for that, the chains get longer. */
static void index_grow(rq_engine *e)
{
    rq_region **more = calloc(e->bucket_count * 2, sizeof(rq_region *));
    if (more == NULL) return;
    free(e->buckets);
    e->buckets = more;
    e->bucket_count *= 2;
    for (rq_region *r = e->regions; r != NULL; r = r->next)
        index_add(e, r);
}

void rq__engine_add(rq_engine *e, rq_region *r)
{
    pthread_mutex_lock(&e->lock);
    if (e->region_count >= e->bucket_count) index_grow(e);
    index_add(e, r);
    r->next = e->regions;
    if (r->next != NULL) r->next->link = &r->next;
    r->link = &e->regions;
    e->regions = r;
    e->region_count++;
    /* The site's settings have changed since the stores' settings were computed. If there is no
     * memory for the new ones, the stores keep the old ones. */
    rq_err rc = RQ_OK;
    if (r->compaction_site != atomic_load(&e->compaction)) rc = rq__compaction_reconfigure(r);
    (void)rc;
    pthread_mutex_unlock(&e->lock);
}

/* Under the token: its holder may account after the last op has ended (rq__region_account). */
static void give_memory_back(rq_region *r, void *arg)
{
    (void)arg;
    rq__engine_memstore(r->engine, -(int64_t)r->memstore_heap);
    r->memstore_heap = 0;
}

void rq__engine_remove(rq_engine *e, rq_region *r)
{
    pthread_mutex_lock(&e->lock);
    RQ_ASSERT(r->link != NULL); /* it is closed once */
    index_remove(e, r);
    *r->link = r->next;
    e->region_count--;
    if (r->next != NULL) r->next->link = r->link;
    r->link = NULL;
    rq__past_add(e, r);
    pthread_mutex_unlock(&e->lock);
    rq__region_with_token(r, give_memory_back, NULL);
    (void)rq__region_note_flush(r, RQ_OK); /* there will be no more */
}

void rq__engine_grown(rq_engine *e, rq_region *r)
{
    if (e->region_grown != NULL && rq__region_state_now(r) == RQ__REGION_OPEN)
        e->region_grown(e->context, r);
}

rq_err rq__engine_list(rq_engine *e, rq_arena *arena, rq_region ***ret, size_t *ret_count)
{
    size_t count = 0;
    rq_region **list = rq_arena_alloc(arena, (e->region_count + 1) * sizeof *list);
    if (list == NULL) return RQ_E_NO_MEMORY;
    for (rq_region *r = e->regions; r != NULL; r = r->next)
        list[count++] = rq_region_ref(r);
    *ret = list;
    *ret_count = count;
    return RQ_OK;
}

rq_err rq_engine_regions(rq_engine *e, rq_arena *arena, rq_region ***ret, size_t *ret_count)
{
    pthread_mutex_lock(&e->lock);
    rq_err rc = rq__engine_list(e, arena, ret, ret_count);
    pthread_mutex_unlock(&e->lock);
    return rc;
}

rq_region *rq__engine_find(rq_engine *e, const char *encoded)
{
    pthread_mutex_lock(&e->lock);
    rq_region *r = *bucket_of(e, encoded);
    while (r != NULL && strcmp(r->info.encoded, encoded) != 0)
        r = r->next_of_hash;
    if (r != NULL) rq_region_ref(r);
    pthread_mutex_unlock(&e->lock);
    return r;
}

void rq__engine_poke_held(rq_engine *e)
{
    bool waits = atomic_load_explicit(&e->row_waits, memory_order_relaxed) > 0;
    if (atomic_load_explicit(&e->held_writes, memory_order_relaxed) == 0 && !waits) return;
    rq_arena arena = {0};
    rq_region **list;
    size_t count;
    if (rq_engine_regions(e, &arena, &list, &count) == RQ_OK) {
        for (size_t i = 0; i < count; i++) {
            if (waits || atomic_load_explicit(&list[i]->held, memory_order_relaxed) > 0)
                rq__region_poke(list[i]);
            rq_region_unref(list[i]);
        }
        rq_wal_push(e->wal, NULL); /* records of held writes staged on this thread */
    }
    rq_arena_clear(&arena);
}

bool rq__engine_is_offpeak(const rq_engine *e)
{
    int from = e->offpeak_start;
    int to = e->offpeak_end;
    if (from < 0 || to < 0 || from == to) return false;
    time_t now = (time_t)(e->env.executor->now_ms(e->env.executor) / 1000);
    struct tm local;
    if (localtime_r(&now, &local) == NULL) return false;
    int hour = local.tm_hour;
    return from < to ? hour >= from && hour < to : hour >= from || hour < to;
}

/* --- the tick --------------------------------------------------------------------------------- */

static void look_at_compactions(rq_region *r)
{
    for (size_t i = 0; i < r->store_count; i++) {
        unsigned postponed = atomic_exchange(&r->stores[i].postponed, 0);
        rq__store_request_compaction(&r->stores[i], postponed == 0 ? RQ__WANT_MINOR : postponed);
    }
}

static void look_at_regions(rq_engine *e, bool age, bool compactions)
{
    rq_arena arena = {0};
    rq_region **list;
    size_t count;
    int64_t now_ms = e->env.executor->now_ms(e->env.executor);
    if (rq_engine_regions(e, &arena, &list, &count) == RQ_OK) {
        for (size_t i = 0; i < count; i++) {
            if (!rq_region_is_closing(list[i])) {
                if (age) rq__flush_age_look(list[i], now_ms);
                if (age) rq__quiet_look(list[i]);
                if (age) rq__region_nonces_look(list[i]);
                if (compactions) look_at_compactions(list[i]);
            }
            rq_region_unref(list[i]);
        }
    }
    rq_arena_clear(&arena);
}

static void look_at_nonces(rq_engine *e)
{
    rq__nonces_stats s;
    rq__nonces_expire(e->nonces);
    if (e->logged_dropped_nonces) return;
    rq__nonces_get_stats(e->nonces, &s);
    if (s.dropped == 0) return;
    e->logged_dropped_nonces = true;
    rq_log_warn(e->env.log, "region",
                "there are more than %" PRIu64 " increments and appends within %" PRIu64
                " s (rorqual.nonces.max): the oldest nonces are dropped, and late retries may be "
                "applied twice",
                s.count, rq__nonces_life_ms(e->nonces) / 1000);
}

static void resume_flushes(rq_engine *e)
{
    pthread_mutex_lock(&e->lock);
    for (rq_region *r = e->regions; r != NULL; r = r->next) {
        rq__region_resume_flush(r);
        rq__region_retry_flush(r);
        rq__flush_age_act(r);
    }
    pthread_mutex_unlock(&e->lock);
}

static void arm_tick(rq_engine *e)
{
    e->env.executor->timer_arm(e->env.executor, &e->tick, e->lane, TICK_NS);
}

/* Closing files blocks. */
static void run_mob_trim(rq_task *task)
{
    rq_engine *e = RQ_CONTAINER_OF(task, rq_engine, mob_trim);
    rq_mob_files_trim(e->mob_files);
    atomic_store(&e->mob_trimming, false);
}

static void trim_mob_files(rq_engine *e)
{
    if (atomic_exchange(&e->mob_trimming, true)) return;
    e->mob_trim.run = run_mob_trim;
    e->env.executor->submit(e->env.executor, RQ_POOL_WORK, &e->mob_trim);
}

/* True once after a full disk has space again: waiting compactions may continue. */
static bool ends_compaction_wait(rq_engine *e)
{
    return !rq__engine_lacks_space(e) && atomic_load(&e->compactions_wait) &&
           atomic_exchange(&e->compactions_wait, false);
}

static void run_tick(rq_task *task)
{
    rq_engine *e = RQ_CONTAINER_OF(task, rq_engine, tick.task);
    if (atomic_load(&e->stopping)) {
        e->env.executor->latch_open(&e->stopped, RQ_OK);
        return;
    }
    e->ticks++;
    rq_epoch_collect(e->env.epoch); /* loops all of whose clients wait for memory do not collect */
    rq__engine_poke_held(e);
    rq__engine_relieve(e);
    if (e->ticks % 10 == 0) resume_flushes(e);
    if (e->ticks % 10 == 5) look_at_nonces(e);
    if (e->throughput.is_limited && e->ticks % e->throughput.ticks_between_looks == 0)
        rq__throughput_tune(e);
    bool age = e->ticks % e->ticks_between_age_looks == 0;
    bool compactions = e->ticks % e->ticks_between_compaction_looks == 0 || ends_compaction_wait(e);
    if (age || compactions) look_at_regions(e, age, compactions);
    if (e->ticks % TICKS_BETWEEN_TRIMS == 0) {
        rq_slab_pool_trim(e->slabs, SLABS_TRIM_SHARE);
        rq_block_cache_trim(e->cache, CACHE_TRIM_SHARE);
    }
    if (e->ticks % e->ticks_between_mob_trims == 0) trim_mob_files(e);
    arm_tick(e);
}

/* --- the log's callbacks ---------------------------------------------------------------------- */

/* A memstore below 1/128 of the region's flush size is flushed early when the flush frees a file of
 * the log. */
#define LITTLE_SHARE 128

static void on_pressure(void *ctx, rq_wal_region *holder, bool urgent)
{
    const rq_engine *e = ctx;
    rq_region *r = rq_wal_region_owner(holder);
    if (r == NULL) return;
    uint64_t bytes = atomic_load_explicit(&r->memstore_bytes, memory_order_relaxed);
    if (urgent || bytes <= e->flush_bytes / LITTLE_SHARE) rq__region_request_full_flush(r);
}

static void on_corrupt(void *ctx, const rq_error *why)
{
    const rq_engine *e = ctx;
    rq_log_error(e->env.log, "region", "write-ahead log: damaged records: %s", why->message);
}

static void log_lost(const rq_log *log, const rq_wal_late *l)
{
    rq_log_event(log, RQ_LOG_WARN, "wal",
                 "shared storage did not acknowledge an append: it is repeated in a new ledger",
                 rq_log_text("object", l->object), rq_log_number("bytes", l->bytes),
                 rq_log_ms("ms", l->ns), rq_log_text("why", l->why),
                 rq_log_number("suppressed", l->suppressed));
}

static void on_late(void *ctx, const rq_wal_late *l)
{
    const rq_log *log = ((const rq_engine *)ctx)->env.log;
    if (l->kind == RQ_WAL_LATE_SLOW)
        rq_log_event(log, RQ_LOG_INFO, "wal", "slow append", rq_log_text("object", l->object),
                     rq_log_number("bytes", l->bytes), rq_log_ms("ms", l->ns),
                     rq_log_number("suppressed", l->suppressed));
    else if (l->kind == RQ_WAL_LATE_LOST)
        log_lost(log, l);
    else if (l->kind == RQ_WAL_LATE_STALLED)
        rq_log_event(log, RQ_LOG_WARN, "wal",
                     "shared storage accepts no new ledger of the log: writes wait",
                     rq_log_ms("ms", l->ns), rq_log_text("why", l->why),
                     rq_log_number("suppressed", l->suppressed));
    else
        rq_log_event(log, RQ_LOG_INFO, "wal", "the log accepts appends again",
                     rq_log_ms("ms", l->ns));
}

static void on_failed(void *ctx, const rq_error *why)
{
    rq_engine *e = ctx;
    rq_log_error(e->env.log, "region", "the write-ahead log failed and takes no more writes: %s",
                 why->message);
    rq_arena arena = {0};
    rq_region **list;
    size_t count;
    /* Without memory for the list, each region fails at its next write. */
    if (rq_engine_regions(e, &arena, &list, &count) == RQ_OK) {
        for (size_t i = 0; i < count; i++) {
            rq__region_fail(list[i], why);
            rq_region_unref(list[i]);
        }
    }
    rq_arena_clear(&arena);
}

/* --- life ------------------------------------------------------------------------------------- */

static rq_err open_log(rq_engine *e, const rq_config *c, const rq_engine_options *options,
                       rq_error *why)
{
    const char *sync = rq_config_text(c, RQ_SET_SYNC);
    rq_wal_options o = {
        .file_bytes = (uint64_t)rq_config_int(c, RQ_SET_WAL_FILE),
        .max_log_bytes = (uint64_t)rq_config_int(c, RQ_SET_WAL_MAX),
        .staging_bytes_max = staging_bytes_max(c),
        .retention = e->retention,
        .salvage = options->salvage_log,
        .on_pressure = on_pressure,
        .on_corrupt = on_corrupt,
        .on_failed = on_failed,
        .on_late = on_late,
        .slow_ns = slow_append_ns(c),
        .ctx = e,
        .tenure = options->tenure,
        .server_name = options->server_name,
    };
    if (strcmp(sync, "fdatasync") == 0)
        o.sync = RQ_WAL_SYNC;
    else if (strcmp(sync, "handover") == 0)
        o.sync = RQ_WAL_HANDOVER;
    else
        return rq_fail(why, RQ_E_CONFIG,
                       "setting rorqual.wal.sync: '%s' is neither fdatasync nor "
                       "handover",
                       sync);
    return rq_wal_open(&e->env, &o, &e->wal, why);
}

/* An error in the cache's file is logged, and disables only the second level. */
static void open_cache_file(rq_engine *e, const rq_config *c)
{
    const char *engine = rq_config_text(c, RQ_SET_BUCKET_ENGINE);
    double size = rq_config_real(c, RQ_SET_BUCKET_SIZE);
    rq_error why = {0};
    if (engine[0] == '\0') return;
    if (strncmp(engine, "file:", 5) != 0 || size <= 0) {
        rq_log_warn(
            e->env.log, "region",
            "hbase.bucketcache.ioengine is '%s' and hbase.bucketcache.size is %g: only file:PATH "
            "with a size above 0 is supported; the block cache has no second level",
            engine, size);
        return;
    }
    char *path = strdup(engine + 5);
    char *slash = path == NULL ? NULL : strrchr(path, '/');
    rq_block_cache_file o = {
        .vfs = e->env.vfs,
        .path = path,
        .bytes = size < 1 ? (uint64_t)(size * (double)rq_engine_memory_budget(c))
                          : (uint64_t)(size * (double)(1 << 20)),
        .executor = e->env.executor,
        .log = e->env.log,
        .compresses = rq_config_int(c, RQ_SET_BUCKET_COMPRESS) != 0,
    };
    rq_err rc = path == NULL ? rq_no_memory(&why) : RQ_OK;
    if (rc == RQ_OK && path[0] != '/') e->cache_path = strdup(path);
    /* A relative path is relative to the data folder. */
    if (rc == RQ_OK && path[0] == '/') {
        *slash = '\0';
        rc = rq_vfs_posix_new(slash == path ? "/" : path, &e->cache_vfs, &why);
        o.vfs = e->cache_vfs;
        o.path = slash + 1;
    }
    if (rc == RQ_OK) rc = rq_block_cache_add_file(e->cache, &o, &why);
    if (rc == RQ_OK)
        rq_log_info(e->env.log, "region", "block cache file %s, %" PRIu64 " MB", engine + 5,
                    o.bytes >> 20);
    else
        rq_log_warn(e->env.log, "region",
                    "block cache file %s: %s; the block cache has no second level", engine + 5,
                    why.message);
    free(path);
}

static void engine_free(rq_engine *e)
{
    if (e->lane != NULL) e->env.executor->lane_free(e->env.executor, e->lane);
    rq__recovery_clear(&e->recovery);
    free(e->cluster);
    rq_mob_files_free(e->mob_files);
    rq_retention_free(e->retention);
    free(e->cache_path);
    if (e->cache != NULL) rq_block_cache_free(e->cache);
    if (e->cache_vfs != NULL) rq_vfs_free(e->cache_vfs);
    rq_slab_pool_free(e->slabs);
    rq__debt_clear(&e->debt);
    rq__nonces_free(e->nonces);
    rq__compaction_clear(&e->compaction);
    rq__past_clear(e);
    rq__table_times_clear(&e->table_times);
    rq_pool_share_destroy(&e->apart_share);
    pthread_mutex_destroy(&e->lock);
    free(e->buckets);
    free(e);
}

static rq_err join_cluster(rq_engine *e, const rq_engine_options *o, rq_error *why)
{
    size_t len = strlen(o->server_name);
    if (len == 0 || len > RQ_SHARED_NAME_MAX)
        return rq_fail(why, RQ_E_INVALID, "the server's name has %zu bytes", len);
    e->cluster = calloc(1, sizeof *e->cluster);
    if (e->cluster == NULL) return rq_no_memory(why);
    e->cluster->shared = o->tenure->shared;
    memcpy(e->cluster->server_name, o->server_name, len + 1);
    return RQ_OK;
}

static rq_err start(rq_engine *e, const rq_config *c, const rq_engine_options *o, rq_error *why)
{
    if (o->tenure != NULL)
        RQ_TRY(join_cluster(e, o, why));
    else
        RQ_TRY(rq_vfs_mkdirs(e->env.vfs, RQ__MANIFEST_DIR, why));
    RQ_TRY(rq_retention_new(&e->retention));
    RQ_TRY(rq_block_cache_new(e->cache_bytes, &e->cache));
    rq_block_cache_make_ready(e->cache, e->env.executor);
    open_cache_file(e, c);
    RQ_TRY(rq_mob_files_new(&e->env, e->cache, e->mob_open_max, &e->mob_files));
    RQ_TRY(rq_slab_pool_new(e->env.executor, e->memstore_high / RQ_SLAB_BYTES, &e->slabs));
    RQ_TRY(e->env.executor->lane_new(e->env.executor, "engine", &e->lane));
    RQ_TRY(open_log(e, c, o, why));
    rq_err rc = rq__recovery_collect(e, why);
    if (rc != RQ_OK) {
        (void)rq_wal_close(e->wal, false, NULL); /* the first error counts */
        e->wal = NULL;
        return rc;
    }
    e->tick.task.run = run_tick;
    arm_tick(e);
    return RQ_OK;
}

rq_err rq_engine_open(const rq_env *env, const rq_engine_options *options, rq_engine **ret,
                      rq_error *why)
{
    rq_engine *e = calloc(1, sizeof *e);
    rq_region **buckets = calloc(BUCKETS_MIN, sizeof(rq_region *));
    if (e == NULL || buckets == NULL) {
        free(e);
        free(buckets);
        return rq_no_memory(why);
    }
    e->buckets = buckets;
    e->bucket_count = BUCKETS_MIN;
    e->env = *env;
    e->region_failed = options->region_failed;
    e->region_grown = options->region_grown;
    e->context = options->context;
    pthread_mutex_init(&e->lock, NULL);
    rq_pool_share_init(&e->apart_share, e->env.executor, RQ_POOL_READ, RQ__APART_THREADS);
    rq__debt_init(&e->debt);
    rq_config *defaults = NULL;
    const rq_config *c = options->config;
    rq_err rc = rq__table_times_init(&e->table_times);
    if (rc == RQ_OK && c == NULL) {
        rc = rq_config_new(&defaults);
        c = defaults;
    }
    if (rc == RQ_OK) take_settings(e, c);
    if (rc == RQ_OK) rc = take_reloadable(e, c);
    if (rc == RQ_OK)
        rc = rq__nonces_new(e->env.executor, (size_t)rq_config_int(c, RQ_SET_NONCES_MAX),
                            (uint64_t)rq_config_int(c, RQ_SET_NONCE_LIFE), &e->nonces);
    rq__recovery_init(&e->recovery, e->memstore_high / 2);
    if (rc == RQ_OK) rc = start(e, c, options, why);
    rq_config_free(defaults);
    if (rc != RQ_OK) {
        engine_free(e);
        return rq_fail(why, rc, "%s", rq_err_text(rc));
    }
    *ret = e;
    return RQ_OK;
}

static void stop_tick(rq_engine *e)
{
    rq_executor *ex = e->env.executor;
    ex->latch_init(ex, &e->stopped);
    atomic_store(&e->stopping, true);
    /* If cancelled in time the tick does not run; otherwise it runs once more and opens the
     * latch. */
    if (!ex->timer_cancel(ex, &e->tick)) (void)ex->latch_wait(&e->stopped);
    ex->latch_destroy(&e->stopped);
}

typedef struct round {
    rq_task task;
    rq_executor *executor;
    rq_latch latch;
} round;

static void run_round(rq_task *task)
{
    round *r = RQ_CONTAINER_OF(task, round, task);
    r->executor->latch_open(&r->latch, RQ_OK);
}

static bool is_referenced(rq_engine *e)
{
    return atomic_load(&e->regions_alive) > 0 || atomic_load(&e->versions_alive) > 0;
}

/* Closed regions that a task still frees and retired versions use the engine and its cache. Versions
 * are freed once every loop has finished an iteration and RQ_POOL_WORK has run its tasks. */
static void wait_for_references(rq_engine *e)
{
    rq_executor *ex = e->env.executor;
    while (is_referenced(e) || atomic_load(&e->mob_trimming)) {
        round r = {.task.run = run_round, .executor = ex};
        rq_epoch_collect(e->env.epoch);
        ex->latch_init(ex, &r.latch);
        ex->submit(ex, RQ_POOL_WORK, &r.task);
        (void)ex->latch_wait(&r.latch);
        ex->latch_destroy(&r.latch);
        if (is_referenced(e)) ex->sleep(ex, 100000); /* a loop is in its read section */
    }
}

rq_err rq_engine_close(rq_engine *e, bool clean, rq_error *why)
{
    if (e == NULL) return RQ_OK;
    RQ_ASSERT(e->regions == NULL);
    stop_tick(e);
    wait_for_references(e);
    rq_err rc = rq_wal_close(e->wal, clean, why);
    engine_free(e);
    return rc;
}

/* --- what others ask -------------------------------------------------------------------------- */

bool rq_engine_in_cluster(const rq_engine *e)
{
    return e->cluster != NULL;
}

const rq_env *rq_engine_env(const rq_engine *e)
{
    return &e->env;
}

rq_wal *rq_engine_wal(const rq_engine *e)
{
    return e->wal;
}

rq_block_cache *rq_engine_block_cache(const rq_engine *e)
{
    return e->cache;
}

rq_retention *rq_engine_retention(const rq_engine *e)
{
    return e->retention;
}

void rq_engine_get_stats(const rq_engine *e, rq_engine_stats *ret)
{
#define GET(field) atomic_load_explicit(&e->field, memory_order_relaxed)
    rq__nonces_stats nonces;
    rq__nonces_get_stats(e->nonces, &nonces);
    *ret = (rq_engine_stats){
        .memstore_bytes = GET(memstore_bytes),
        .memstore_bytes_held = rq__engine_memstore_held(e),
        .memstore_bytes_low = e->memstore_low,
        .memstore_bytes_max = e->memstore_high,
        .block_cache_bytes_max = e->cache_bytes,
        .flush_queue = GET(flush_queue),
        .compaction_queue = GET(compaction_queue),
        .flushes = GET(flushes),
        .flushed_bytes = GET(flushed_bytes),
        .flushed_cells = GET(flushed_cells),
        .flushed_memstore_bytes = GET(flushed_memstore_bytes),
        .compactions = GET(compactions),
        .major_compactions = GET(major_compactions),
        .compacted_bytes = GET(compacted_bytes),
        .failed_flushes = GET(failed_flushes),
        .failed_compactions = GET(failed_compactions),
        .delayed_writes = GET(delayed_writes),
        .refused_writes = GET(refused_writes),
        .delay_ns = GET(delay_ns),
        .writes_without_wal = GET(writes_without_wal),
        .bytes_without_wal = GET(bytes_without_wal),
        .recovered_records = e->recovery.recovered,
        .dropped_records = GET(dropped_records),
        .nonces = nonces.count,
        .nonces_dropped = nonces.dropped,
        .nonces_bytes = nonces.bytes,
    };
#undef GET
}

void rq_engine_times(const rq_engine *e, rq_times_sum *flushes, rq_times_sum *compactions)
{
    rq_times_read(&e->flush_times, flushes);
    rq_times_read(&e->compaction_times, compactions);
}
