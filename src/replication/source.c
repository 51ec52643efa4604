/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that ships one log to one peer:
 *
 *    fill a shipment from the log ─► ship, as often as it takes ─► note the position ─► fill …
 *
 * 1. One batch at a time, in the log's order. So the records of each region arrive in their order,
 *    also when a region was split or moved (a serial peer requires no more than this).
 * 2. The position is the end of the records that the peer has confirmed. It is written about once a
 *    second and at the end (rq__queue.advance: to the catalog, or in a cluster to the log's queues),
 *    so after a crash the batches of the last second are shipped again: applying them twice changes
 *    nothing.
 * 3. On a standalone server, writing the position adds records to the log itself. So it is only
 *    written after something was shipped, or after much of the log was passed over without shipping;
 *    an idle server stays idle.
 * 4. A batch that fails is shipped again until it succeeds, with HBase's growing pauses
 *    (replication.source.sleepforretries × attempts), because the peer may be away for days. The
 *    log is kept meanwhile, up to rorqual.replication.log.max.
 * 5. It begins a batch every 10 ms at most, unless the last one was full, and while it is far behind it leaves half of
 *    the time to clients (pace.h).
 * 6. A damaged record stops the shipping: nothing is left out silently.
 */
#include "replication/source.h"

#include "replication/filter.h"
#include "replication/log_reader.h"
#include "replication/outlet.h"
#include "replication/pace.h"
#include "replication/shipment.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUBJECT "replication"
#define LOOK_BUSY_NS ((uint64_t)5 * 1000 * 1000)  /* between looks at the log, with writes */
#define LOOK_IDLE_NS ((uint64_t)40 * 1000 * 1000) /* the same, a second after the last write */
#define IDLE_AFTER_NS ((uint64_t)1000 * 1000 * 1000)
#define WRITE_POSITION_NS ((uint64_t)1000 * 1000 * 1000)
#define WRITE_POSITION_BYTES ((uint64_t)16 << 20) /* passed over without shipping */
#define COPY_BYTES_PER_MS ((uint64_t)8 << 10)
#define COPY_MS_MAX 3600000
#define FAILURE_LINES ((rq_log_rate){1, UINT64_C(30000000000)})

struct rq__source {
    const rq__source_settings *settings;
    rq__queue queue;
    rq_arena arena; /* of the peer and the filter */
    const char *id;
    const char *name; /* in log lines: of the peer, and of an ended log */
    uint64_t version;
    rq__filter filter;
    rq__selection selection;
    pthread_t thread;
    bool has_thread;
    atomic_bool stop;
    atomic_bool done; /* an ended log was shipped to its end */
    /* Used by the source's thread only. */
    rq__log_reader *reader;
    rq__outlet *outlet;
    uint32_t patience_ms; /* the outlet's timeout of a batch */
    rq__shipment shipment;
    rq__pace pace;
    bool reached_end;    /* the last `fill` has read all that was durable */
    rq_lsn confirmed;    /* end of the records that the peer has confirmed */
    rq_lsn written;      /* the position given to queue.advance last */
    bool has_shipped;    /* something was shipped since the position was written */
    uint64_t written_ns; /* time when the position was written */
    uint64_t busy_ns;    /* when something was read last */
    rq_log_limit failure_lines;
    bool is_logged; /* that it fails, since it worked last */
    /* Read by other threads, too. */
    _Atomic uint64_t position;
    _Atomic uint64_t records, filtered, failed;
    _Atomic uint64_t shipped_records, shipped_edits, shipped_bytes, shipped_batches, shipped_files;
    _Atomic int64_t last_write_ms, shipped_ms, next_write_ms;
    pthread_mutex_t lock;
    char problem[512] RQ_GUARDED_BY(lock);
};

/* --- small helpers ---------------------------------------------------------------------------- */

static rq_executor *executor_of(const rq__source *s)
{
    return s->settings->env->executor;
}

static uint64_t now_ns(const rq__source *s)
{
    rq_executor *ex = executor_of(s);
    return ex->now_ns(ex);
}

static bool stops(const rq__source *s)
{
    return atomic_load_explicit(&s->stop, memory_order_relaxed);
}

static void add(_Atomic uint64_t *to, uint64_t n)
{
    atomic_fetch_add_explicit(to, n, memory_order_relaxed);
}

static void set_problem(rq__source *s, const char *text)
{
    pthread_mutex_lock(&s->lock);
    (void)snprintf(s->problem, sizeof s->problem, "%.500s", text);
    pthread_mutex_unlock(&s->lock);
}

/* Sleeps in pieces, so that a stop need not wait. */
static void pause_ns(const rq__source *s, uint64_t ns)
{
    rq_executor *ex = executor_of(s);
    uint64_t end = now_ns(s) + ns;
    for (uint64_t now = now_ns(s); now < end && !stops(s); now = now_ns(s))
        ex->sleep(ex, end - now < LOOK_IDLE_NS ? end - now : LOOK_IDLE_NS);
}

/* --- failures --------------------------------------------------------------------------------- */

static void log_failure(const rq__source *s, const char *text, uint64_t suppressed)
{
    const rq_log *log = s->settings->env->log;
    const rq_log_field peer = rq_log_text("peer", s->id);
    const rq_log_field count = rq_log_number("suppressed", suppressed);
    if (s->queue.log.wal == NULL)
        rq_log_event(log, RQ_LOG_WARN, SUBJECT, text, peer, rq_log_text("log", s->queue.log.server),
                     count);
    else
        rq_log_event(log, RQ_LOG_WARN, SUBJECT, text, peer, count);
}

/* HBASE: HBaseInterClusterReplicationEndpoint.sleepForRetries */
static void failed(rq__source *s, unsigned attempt, const char *what, const rq_error *why)
{
    char text[512];
    (void)snprintf(text, sizeof text, "%s: %.400s", what, why->message);
    set_problem(s, text);
    add(&s->failed, 1);
    uint64_t suppressed;
    if (rq_log_limit_passes(&s->failure_lines, FAILURE_LINES, now_ns(s), &suppressed)) {
        s->is_logged = true;
        log_failure(s, text, suppressed);
    }
    uint64_t times = attempt < s->settings->pauses_max ? attempt : s->settings->pauses_max;
    pause_ns(s, times * s->settings->pause_ms * 1000000);
}

static void recovered(rq__source *s)
{
    if (s->is_logged)
        rq_log_info(s->settings->env->log, SUBJECT, "%s: replication works again", s->name);
    s->is_logged = false;
    set_problem(s, "");
}

/* --- the position ----------------------------------------------------------------------------- */

static bool is_due(const rq__source *s, bool at_end)
{
    if (s->confirmed == s->written) return false;
    if (at_end || s->confirmed - s->written >= WRITE_POSITION_BYTES) return true;
    return s->has_shipped && now_ns(s) - s->written_ns >= WRITE_POSITION_NS;
}

/* A failure (a full disk) keeps the log a little longer. */
static void write_position(rq__source *s, bool at_end)
{
    rq_error why = {.code = RQ_OK};
    if (!is_due(s, at_end)) return;
    rq_err rc = s->queue.advance(s->queue.ctx, s->id, s->confirmed, &why);
    s->written_ns = now_ns(s);
    s->has_shipped = false;
    if (rc == RQ_OK)
        s->written = s->confirmed;
    else if (rc != RQ_E_NOT_FOUND)
        rq_log_warn(s->settings->env->log, SUBJECT,
                    "%s: cannot record the replication position: %s; the write-ahead log is kept "
                    "longer",
                    s->name, why.message);
}

static void confirm(rq__source *s)
{
    if (s->reader == NULL) return; /* it could not be opened again: `fill` tries */
    s->confirmed = rq__log_reader_lsn(s->reader);
    atomic_store_explicit(&s->position, s->confirmed, memory_order_relaxed);
}

/* --- reading ---------------------------------------------------------------------------------- */

/* A failure leaves none: `fill` tries again. */
static rq_err open_log(rq__source *s, rq_lsn from, rq_error *why)
{
    rq__log_reader_free(s->reader);
    s->reader = NULL;
    return rq__log_reader_new(&s->queue.log, from, &s->reader, why);
}

/* Bytes of the durable log that the peer has not confirmed. */
static uint64_t backlog(const rq__source *s)
{
    return rq__log_bytes_behind(&s->queue.log, s->confirmed);
}

/* Adds records until the shipment is large enough or nothing is left. */
static rq_err fill(rq__source *s, rq_error *why)
{
    const rq__source_settings *set = s->settings;
    uint64_t most = rq__pace_batch_bytes(backlog(s), set->batch_bytes);
    s->reached_end = false;
    if (s->reader == NULL) RQ_TRY(open_log(s, s->confirmed, why));
    while (rq__shipment_bytes(&s->shipment) < most && s->shipment.entries < set->batch_entries &&
           !stops(s)) {
        rq_wal_record r;
        rq_err rc = rq__log_reader_next(s->reader, &r, why);
        s->reached_end = rc == RQ_E_END;
        if (s->reached_end) break;
        if (rc != RQ_OK) return rc;
        add(&s->records, 1);
        uint64_t before = s->shipment.filtered;
        RQ_TRY(rq__shipment_add(&s->shipment, &s->selection, &r, why));
        add(&s->filtered, s->shipment.filtered - before);
        if (s->shipment.entries == 0 && rq__log_reader_lsn(s->reader) - s->confirmed > (1u << 20))
            confirm(s);                   /* nothing so far is for the peer */
        if (s->shipment.files > 0) break; /* copying them takes the peer a while */
    }
    return s->shipment.entries == 0 ? RQ_OK : rq__shipment_seal(&s->shipment, &s->selection);
}

/* Reads the shipment again, without tables and families that do not exist here any more. */
static rq_err refill(rq__source *s, rq_error *why)
{
    RQ_TRY(open_log(s, s->confirmed, why));
    rq__shipment_reset(&s->shipment);
    s->selection.exists = s->queue.exists;
    s->selection.ctx = s->queue.ctx;
    rq_err rc = fill(s, why);
    s->selection.exists = NULL;
    return rc;
}

/* --- shipping --------------------------------------------------------------------------------- */

/* HBASE: ReplicationSource.initialize: a peer that is this cluster gets nothing. */
static rq_err check_peer(rq__source *s, rq_error *why)
{
    const char *id = rq__outlet_cluster_id(s->outlet);
    if (!rq__cluster_id_parse(id, s->selection.peer_id))
        return rq_fail(why, RQ_E_STATE, "the peer's cluster id '%s' is not a UUID", id);
    if (memcmp(s->selection.peer_id, s->selection.own_id, RQ_CLUSTER_ID_LEN) != 0) return RQ_OK;
    return rq_fail(why, RQ_E_STATE, "peer %s is this cluster itself", s->filter.cluster_key);
}

/* The time that the peer may need to copy the files of the shipment. */
static uint32_t copy_ms(const rq__source *s)
{
    uint64_t ms = s->shipment.file_bytes / COPY_BYTES_PER_MS;
    return ms < COPY_MS_MAX ? (uint32_t)ms : COPY_MS_MAX;
}

static rq_err connect_peer(rq__source *s, rq_error *why)
{
    if (s->outlet != NULL && s->settings->timeout_ms + copy_ms(s) > s->patience_ms) {
        rq__outlet_close(s->outlet);
        s->outlet = NULL;
    }
    if (s->outlet != NULL) return RQ_OK;
    rq_executor *ex = executor_of(s);
    rq__outlet_options o = {.cluster_key = s->filter.cluster_key,
                            .timeout_ms = s->settings->timeout_ms,
                            .seed = ex->random(ex),
                            .stop = &s->stop};
    o.timeout_ms += copy_ms(s);
    s->patience_ms = o.timeout_ms;
    RQ_TRY(rq__outlet_open(&o, &s->outlet, why));
    rq_err rc = check_peer(s, why);
    if (rc == RQ_OK) return RQ_OK;
    rq__outlet_close(s->outlet);
    s->outlet = NULL;
    return rc;
}

/* Reads up to the first record for the peer. */
static rq_err find_first(rq__source *s, rq_error *why)
{
    if (s->reader == NULL) RQ_TRY(open_log(s, s->confirmed, why));
    while (s->shipment.entries == 0 && !stops(s)) {
        rq_wal_record r;
        RQ_TRY(rq__log_reader_next(s->reader, &r, why));
        RQ_TRY(rq__shipment_add(&s->shipment, &s->selection, &r, why));
    }
    return RQ_OK;
}

/* Sets next_write_ms, from which the lag is computed, while the peer has never been reached: finds
 * the oldest record that the peer lacks. Records that came from the peer's cluster count too,
 * because its id is not known yet. Errors of the log are reported later, by fill(). */
static void look_ahead(rq__source *s)
{
    rq_error why = {.code = RQ_OK};
    if (atomic_load_explicit(&s->next_write_ms, memory_order_relaxed) != 0) return;
    rq__shipment_reset(&s->shipment);
    rq_err rc = find_first(s, &why);
    atomic_store_explicit(&s->next_write_ms, s->shipment.first_write_ms, memory_order_relaxed);
    if (rc != RQ_E_END) (void)open_log(s, s->confirmed, &why);
}

/* Connects for the first time, and repeats this until it succeeds. Nothing is shipped before,
 * because the filter needs the peer's cluster id. */
static bool connect_first(rq__source *s)
{
    for (unsigned attempt = 1; !stops(s); attempt++) {
        rq_error why = {.code = RQ_OK};
        if (connect_peer(s, &why) == RQ_OK) {
            recovered(s);
            return true;
        }
        look_ahead(s);
        failed(s, attempt, "cannot connect", &why);
    }
    return false;
}

static void count_shipped(rq__source *s)
{
    rq_executor *ex = executor_of(s);
    int64_t now = ex->now_ms(ex);
    add(&s->shipped_batches, 1);
    add(&s->shipped_records, s->shipment.entries);
    add(&s->shipped_edits, s->shipment.edits);
    add(&s->shipped_bytes, rq__shipment_bytes(&s->shipment));
    add(&s->shipped_files, s->shipment.files);
    atomic_store_explicit(&s->last_write_ms, s->shipment.last_write_ms, memory_order_relaxed);
    atomic_store_explicit(&s->shipped_ms, now, memory_order_relaxed);
    /* Later records are not older. The next read of the log shows whether there are any. */
    atomic_store_explicit(&s->next_write_ms, s->shipment.last_write_ms, memory_order_relaxed);
}

/* If the peer lacks a table or family, and hbase.replication.drop.on.deleted.table or …columnfamily
 * is true: reads the shipment from the log again, without the edits of tables and families that do
 * not exist here any more either. True: the shipment has fewer edits now, or is empty because the
 * log cannot be read; then the log is read again from the confirmed position. */
static bool drop_missing(rq__source *s, rq_err rc)
{
    bool drops = (rc == RQ_E_TABLE_NOT_FOUND && s->settings->drops_tables) ||
                 (rc == RQ_E_NO_SUCH_FAMILY && s->settings->drops_families);
    rq_error why = {.code = RQ_OK};
    if (!drops || s->queue.exists == NULL) return false;
    uint64_t before = s->shipment.edits;
    rc = refill(s, &why);
    if (rc != RQ_OK) {
        /* A part of the log must not be taken for shipped: all of it is read again. */
        rq__shipment_reset(&s->shipment);
        failed(s, 1, "cannot read the log", &why);
        (void)open_log(s, s->confirmed, &why);
        return true;
    }
    return s->shipment.edits < before;
}

/* A write made after the peer was disabled or changed is not shipped by this source. */
static bool may_ship(rq__source *s)
{
    if (!s->queue.is_current(s->queue.ctx, s->id, s->version))
        atomic_store(&s->stop, true); /* who started it frees it */
    return !stops(s);
}

static void ship(rq__source *s)
{
    for (unsigned attempt = 1; s->shipment.entries > 0 && may_ship(s); attempt++) {
        rq_error why = {.code = RQ_OK};
        rq_err rc = connect_peer(s, &why);
        if (rc == RQ_OK)
            rc = rq__outlet_ship(s->outlet, rq_buf_slice(&s->shipment.message),
                                 rq_buf_slice(&s->shipment.cells), &why);
        if (rc == RQ_E_CANCELLED) return;
        if (rc == RQ_OK) {
            count_shipped(s);
            recovered(s);
            break;
        }
        if (drop_missing(s, rc)) continue;
        failed(s, attempt, "the peer does not take a batch", &why);
        if (rc == RQ_E_IO || attempt % 10 == 0) { /* its servers may be others now */
            rq__outlet_close(s->outlet);
            s->outlet = NULL;
        }
    }
    if (stops(s)) return;
    s->has_shipped = true;
    confirm(s);
}

/* The time to rest after a batch of `bytes`. HBASE: ReplicationThrottler. */
static uint64_t rest_ns(rq__source *s, uint64_t begun_ns, uint64_t bytes)
{
    rq__pace_batch batch = {.begun_ns = begun_ns,
                            .confirmed_ns = now_ns(s),
                            .reached_end = s->reached_end,
                            .backlog = backlog(s)};
    if (s->filter.bandwidth <= 0) return rq__pace_rest_ns(&s->pace, &batch);
    double seconds = (double)bytes / (double)s->filter.bandwidth;
    uint64_t throttled = (uint64_t)(seconds * 1e9);
    uint64_t gathers = rq__pace_gather_ns(&batch);
    return throttled > gathers ? throttled : gathers;
}

/* --- the loop --------------------------------------------------------------------------------- */

/* The log does not reach back to the confirmed position: the writes in between are lost for this
 * peer, so it is disabled and marked as needing a resync. Not if the peer was removed or changed
 * meanwhile (RQ_E_NOT_FOUND): that may have released its part of the log. */
static void lose(rq__source *s, unsigned attempt, const rq_error *why)
{
    rq_error more = {.code = RQ_OK};
    rq_err rc = s->queue.give_up(s->queue.ctx, s->id, s->version, &more);
    if (rc != RQ_OK && rc != RQ_E_NOT_FOUND) {
        failed(s, attempt, "it needs a resync and cannot be disabled", &more);
        return;
    }
    atomic_store(&s->stop, true);
    if (rc == RQ_E_NOT_FOUND) return;
    rq_log_error(s->settings->env->log, SUBJECT, "%s: the peer is disabled and needs a resync: %s",
                 s->name, why->message);
    set_problem(s, why->message);
}

/* Nothing is left to ship: an ended log gets no further records. */
static bool end_log(rq__source *s)
{
    if (s->queue.log.wal != NULL || stops(s)) return false;
    atomic_store(&s->done, true);
    atomic_store(&s->stop, true);
    return true;
}

static void round_of(rq__source *s, unsigned *failures)
{
    rq_error why = {.code = RQ_OK};
    uint64_t begun = now_ns(s);
    rq__shipment_reset(&s->shipment);
    rq_err rc = fill(s, &why);
    if (rc == RQ_E_NOT_FOUND) {
        lose(s, ++*failures, &why);
        return;
    }
    if (rc != RQ_OK) {
        failed(s, ++*failures, "cannot read the log", &why);
        (void)open_log(s, s->confirmed, &why);
        return;
    }
    *failures = 0;
    if (s->shipment.entries == 0) {
        atomic_store_explicit(&s->next_write_ms, 0, memory_order_relaxed);
        confirm(s);
        write_position(s, false);
        if (end_log(s)) return;
        bool idle = now_ns(s) - s->busy_ns > IDLE_AFTER_NS;
        pause_ns(s, idle ? LOOK_IDLE_NS : LOOK_BUSY_NS);
        return;
    }
    s->busy_ns = now_ns(s);
    atomic_store_explicit(&s->next_write_ms, s->shipment.first_write_ms, memory_order_relaxed);
    uint64_t bytes = rq__shipment_bytes(&s->shipment);
    ship(s);
    write_position(s, false);
    pause_ns(s, rest_ns(s, begun, bytes));
}

/* For profilers and top. */
static void name_thread(const rq__source *s)
{
    char name[16]; /* the kernel's limit */
    (void)snprintf(name, sizeof name, "rq-peer-%.7s", s->id);
    (void)pthread_setname_np(pthread_self(), name);
}

static void *run(void *arg)
{
    rq__source *s = arg;
    unsigned failures = 0;
    name_thread(s);
    s->busy_ns = now_ns(s);
    if (connect_first(s))
        while (!stops(s))
            round_of(s, &failures);
    write_position(s, true);
    rq__outlet_close(s->outlet);
    s->outlet = NULL;
    return NULL;
}

/* --- life ------------------------------------------------------------------------------------- */

static uint64_t setting(const rq_config *c, rq_setting which, uint64_t fallback)
{
    return c == NULL ? fallback : (uint64_t)rq_config_int(c, which);
}

void rq__source_configure(const rq_config *c, rq__source_settings *ret)
{
    *ret = (rq__source_settings){
        .batch_bytes = setting(c, RQ_SET_REPLICATION_BATCH, (uint64_t)4 << 20),
        .batch_entries = setting(c, RQ_SET_REPLICATION_ENTRIES, 25000),
        .pause_ms = setting(c, RQ_SET_REPLICATION_PAUSE, 1000),
        .pauses_max = setting(c, RQ_SET_REPLICATION_PAUSES, 300),
        .timeout_ms = (uint32_t)setting(c, RQ_SET_REPLICATION_TIMEOUT, 60000),
        .log_max = setting(c, RQ_SET_REPLICATION_LOG_MAX, 0),
        .drops_tables = setting(c, RQ_SET_REPLICATION_DROP_TABLE, 0) != 0,
        .drops_families = setting(c, RQ_SET_REPLICATION_DROP_FAMILY, 0) != 0,
    };
}

static void source_free(rq__source *s)
{
    rq__log_reader_free(s->reader);
    rq__shipment_clear(&s->shipment);
    pthread_mutex_destroy(&s->lock);
    rq_arena_clear(&s->arena);
    free(s);
}

static rq_err prepare(rq__source *s, const rq_peer_info *peer, rq_error *why)
{
    const char *own = s->settings->cluster_id;
    s->id = rq_arena_cstr(&s->arena, rq_slice_cstr(peer->id));
    if (s->id == NULL) return rq_no_memory(why);
    s->name = s->queue.log.wal != NULL
                  ? rq_arena_printf(&s->arena, "peer %s", s->id)
                  : rq_arena_printf(&s->arena, "peer %s, log of %s", s->id, s->queue.log.server);
    if (s->name == NULL) return rq_no_memory(why);
    s->version = peer->version;
    s->confirmed = s->written = peer->position;
    atomic_store(&s->position, peer->position);
    s->selection.filter = &s->filter;
    s->selection.cluster = s->settings->cluster;
    s->selection.data_path = s->settings->data_path;
    if (!rq__cluster_id_parse(own, s->selection.own_id))
        return rq_fail(why, RQ_E_STATE, "this cluster's id '%s' is not a UUID", own);
    RQ_TRY(rq__filter_make(peer->config, &s->arena, &s->filter, why));
    return RQ_OK;
}

rq_err rq__source_new(const rq__source_settings *settings, const rq__queue *queue,
                      const rq_peer_info *peer, rq__source **ret, rq_error *why)
{
    rq__source *s = calloc(1, sizeof *s);
    if (s == NULL) return rq_no_memory(why);
    s->settings = settings;
    s->queue = *queue;
    rq_arena_init(&s->arena);
    pthread_mutex_init(&s->lock, NULL);
    rq_err rc = prepare(s, peer, why);
    if (rc == RQ_OK) {
        s->has_thread = pthread_create(&s->thread, NULL, run, s) == 0;
        if (!s->has_thread)
            rc = rq_fail(why, RQ_E_NO_MEMORY, "cannot start a thread for %s", s->name);
    }
    if (rc == RQ_OK)
        *ret = s;
    else
        source_free(s);
    return rc;
}

void rq__source_stop(rq__source *s)
{
    atomic_store(&s->stop, true);
}

void rq__source_end(rq__source *s)
{
    rq__source_stop(s);
    if (s->has_thread) (void)pthread_join(s->thread, NULL);
    s->has_thread = false;
}

void rq__source_free(rq__source *s)
{
    if (s == NULL) return;
    rq__source_end(s);
    source_free(s);
}

bool rq__source_is_done(const rq__source *s)
{
    return atomic_load(&s->done);
}

const char *rq__source_id(const rq__source *s)
{
    return s->id;
}

uint64_t rq__source_version(const rq__source *s)
{
    return s->version;
}

static uint64_t get(const _Atomic uint64_t *from)
{
    return atomic_load_explicit(from, memory_order_relaxed);
}

rq_err rq__source_status(rq__source *s, rq_arena *arena, rq_source_status *ret)
{
    rq_executor *ex = executor_of(s);
    int64_t now = ex->now_ms(ex);
    int64_t last = atomic_load_explicit(&s->last_write_ms, memory_order_relaxed);
    ret->running = true;
    ret->shipped_ms = atomic_load_explicit(&s->shipped_ms, memory_order_relaxed);
    ret->next_write_ms = atomic_load_explicit(&s->next_write_ms, memory_order_relaxed);
    ret->lag_ms = ret->next_write_ms > 0 && now > ret->next_write_ms
                      ? (uint64_t)(now - ret->next_write_ms)
                      : 0;
    ret->age_of_last_ms = ret->shipped_ms > last ? (uint64_t)(ret->shipped_ms - last) : 0;
    ret->records = get(&s->records);
    ret->filtered = get(&s->filtered);
    ret->failed = get(&s->failed);
    ret->shipped_records = get(&s->shipped_records);
    ret->shipped_edits = get(&s->shipped_edits);
    ret->shipped_bytes = get(&s->shipped_bytes);
    ret->shipped_batches = get(&s->shipped_batches);
    ret->shipped_files = get(&s->shipped_files);
    pthread_mutex_lock(&s->lock);
    ret->problem = rq_arena_cstr(arena, rq_slice_cstr(s->problem));
    pthread_mutex_unlock(&s->lock);
    return ret->problem == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

rq_source_load rq_source_load_of(const rq_source_status *s)
{
    int64_t last_write_ms = s->shipped_ms - (int64_t)s->age_of_last_ms;
    return (rq_source_load){.peer = s->id,
                            .queue = s->id,
                            .age_ms = s->age_of_last_ms,
                            .log_queue = (uint32_t)(s->log_bytes >> 26) + 1,
                            .shipped_at_ms = last_write_ms,
                            .next_ms = s->next_write_ms != 0 ? s->next_write_ms : last_write_ms,
                            .lag_ms = s->lag_ms,
                            .running = s->running,
                            .has_edits = s->records > s->filtered,
                            .edits_read = s->records - s->filtered,
                            .shipped = s->shipped_records};
}
