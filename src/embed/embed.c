/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens and closes a database of this process: the same parts as a server (server/server.c), in the same
 * order, without event loops and ports.
 *
 *   settings ─► folder or memory ─► root (lock, versions) ─► engine (log) ─► catalog ─► ops
 *
 * Threads: one for timers, from the start. Threads of lanes (the log, the engine, procedures, leases) and
 * of pools are started when there is work for them. All of them block all signals. With the option no_threads
 * there are none: the executor is the driven one (base/driven_executor.h), whose tasks run inside the calls.
 */
#include "embed/embed_priv.h"

#include "base/machine.h"
#include "vfs/memory.h"
#include "vfs/vfs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* The names under which hbase:meta lists its server; no client reads them. */
#define HOST "localhost"
#define PORT 16020
#define MASTER_PORT 16000
/* The same at each opening, so that the rows need not be written anew; older than any server's. */
#define START_CODE 1

#define IDLE_PIECE_NS ((int64_t)100 * 1000 * 1000)
#define PAUSE_NS 100000
#define ASYNC_THREADS 8 /* that execute asynchronous calls; started when they are needed */

/* --- settings --------------------------------------------------------------------------------- */

/* Defaults of an embedded database, for settings that the caller leaves unset: the process has
 * other work to do. */
static const rq_property memory_settings[] = {{"rorqual.wal.sync", "handover"},
                                              {"rorqual.wal.file.size", "4194304"},
                                              {"rorqual.wal.max", "33554432"}};

/* The machine is asked once: the rooms below find the memory budget set. */
static rq_err set_memory_budget(rq_config *c, rq_error *why)
{
    uint64_t memory = rq_machine_memory();
    char text[24];
    RQ_TRY(rq_config_check(c, memory, why));
    snprintf(text, sizeof text, "%" PRIu64, rq_config_memory_budget(c, memory));
    return rq_config_set(c, rq_setting_get(RQ_SET_MEMORY)->name, text, why);
}

static rq_err make_config(const rq_connect_options *o, bool in_memory, rq_config **ret,
                          rq_error *why)
{
    rq_config *c;
    rq_err rc = rq_config_new(&c);
    if (rc != RQ_OK) return rq_no_memory(why);
    for (size_t i = 0; in_memory && rc == RQ_OK && i < RQ_ARRAY_LEN(memory_settings); i++)
        rc = rq_config_set(c, memory_settings[i].name, memory_settings[i].value, why);
    for (size_t i = 0; rc == RQ_OK && i < o->setting_count; i++) {
        const rq_property *p = &o->settings[i];
        rc = p->name == NULL || p->value == NULL
                 ? rq_fail(why, RQ_E_CONFIG, "a setting has no name or no value")
                 : rq_config_set(c, p->name, p->value, why);
    }
    if (rc == RQ_OK) rc = set_memory_budget(c, why);
    if (rc == RQ_OK)
        *ret = c;
    else
        rq_config_free(c);
    return rc;
}

/* --- opening ---------------------------------------------------------------------------------- */

static void region_failed(void *context, rq_region *r, const rq_error *why)
{
    rq__embed *e = context;
    if (atomic_load(&e->has_catalog)) rq_catalog_region_failed(e->catalog, r, why);
}

static void region_grown(void *context, rq_region *r)
{
    rq__embed *e = context;
    if (atomic_load(&e->has_catalog)) rq_catalog_region_grown(e->catalog, r);
}

static rq_err code_of_mkdir(int e)
{
    switch (e) {
    case EACCES:
    case EPERM:
    case EROFS:
        return RQ_E_PERMISSION;
    case ENOSPC:
        return RQ_E_NO_SPACE;
    case ENOMEM:
        return RQ_E_NO_MEMORY;
    default:
        return RQ_E_IO;
    }
}

static rq_err open_folder(rq__embed *e, const char *path, bool must_exist, rq_error *why)
{
    struct stat st;
    if (path == NULL) return rq_vfs_memory_new(&e->vfs) == RQ_OK ? RQ_OK : rq_no_memory(why);
    bool is_there = stat(path, &st) == 0;
    if (must_exist && !is_there && errno == ENOENT)
        return rq_fail(why, RQ_E_NOT_FOUND, "folder %s does not exist", path);
    if (is_there && !S_ISDIR(st.st_mode)) return rq_fail(why, RQ_E_IO, "%s is not a folder", path);
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return rq_fail(why, code_of_mkdir(errno), "cannot create folder %s: %s", path,
                       strerror(errno));
    return rq_vfs_posix_new(path, &e->vfs, why);
}

static rq_err new_executor(rq__embed *e, const unsigned threads[RQ_POOL_COUNT])
{
    return e->is_driven ? rq_driven_executor_new(threads, &e->executor)
                        : rq_thread_executor_new_lazy(threads, &e->executor);
}

static rq_err open_environment(rq__embed *e, const char *path, bool must_exist, rq_error *why)
{
    unsigned compactions = (unsigned)rq_config_int(e->config, RQ_SET_COMPACTION_THREADS);
    unsigned large = (unsigned)rq_config_int(e->config, RQ_SET_COMPACTION_THREADS_LARGE);
    const unsigned threads[RQ_POOL_COUNT] = {
        [RQ_POOL_READ] = 1,
        [RQ_POOL_FLUSH] = 2,
        [RQ_POOL_COMPACT] = compactions == 0 ? 1 : compactions,
        [RQ_POOL_COMPACT_LARGE] = large == 0 ? 1 : large,
        [RQ_POOL_CODEC] = 1,
        [RQ_POOL_CALL] = ASYNC_THREADS,
        [RQ_POOL_WORK] = 4,
    };
    RQ_TRY(open_folder(e, path, must_exist, why));
    if (new_executor(e, threads) != RQ_OK || rq_epoch_new(&e->epoch) != RQ_OK)
        return rq_no_memory(why);
    e->log = (rq_log){.fd = -1, .level = RQ_LOG_ERROR};
    e->env = (rq_env){.vfs = e->vfs, .executor = e->executor, .epoch = e->epoch, .log = &e->log};
    e->nonce_group = e->executor->random(e->executor) | 1;
    return rq_root_open(&e->env, &e->root, why);
}

static rq_err open_data(rq__embed *e, rq_error *why)
{
    rq_engine_options engine = {.config = e->config,
                                .region_failed = region_failed,
                                .region_grown = region_grown,
                                .context = e};
    const rq_server_name name = {.host = HOST, .port = PORT, .start_code = START_CODE};
    rq_catalog_options catalog = {
        .master = {.host = HOST, .port = MASTER_PORT, .start_code = START_CODE},
        .config = e->config,
        .procedure_bytes_max = (size_t)rq_engine_memory_budget(e->config) / 16,
    };
    RQ_TRY(rq_engine_open(&e->env, &engine, &e->engine, why));
    if (rq_host_new(e->engine, &name, e->config, &e->host) != RQ_OK) return rq_no_memory(why);
    catalog.host = e->host;
    RQ_TRY(rq_catalog_open(e->root, &catalog, &e->catalog, why));
    atomic_store(&e->has_catalog, true);
    if (e->executor->lane_new(e->executor, "rq leases", &e->lane) != RQ_OK)
        return rq_no_memory(why);
    rq_ops_options ops = {.env = &e->env,
                          .engine = e->engine,
                          .catalog = e->catalog,
                          .config = e->config,
                          .lane = e->lane};
    return rq_ops_new(&ops, &e->ops, why);
}

/* --- closing ---------------------------------------------------------------------------------- */

static void seat_free(rq__embed *e, rq_slot *slot)
{
    rq__embed_seat *s = slot->own;
    if (s == NULL) return;
    slot->own = NULL;
    rq_ops_seat_free(s->ops);
    rq_epoch_leave(e->epoch, &s->section);
    rq_cellblock_clear(&s->out);
    free(s);
}

/* Closes everything that was opened, in reverse order. */
static rq_err close_all(rq__embed *e, rq_error *why)
{
    rq_err first = RQ_OK;
    if (e->catalog != NULL) rq_catalog_stop(e->catalog);
    for (size_t i = 0; i < RQ_SLOTS; i++)
        seat_free(e, &e->db.slots[i]);
    rq_ops_stop(e->ops);
    if (e->lane != NULL)
        e->executor->lane_free(e->executor, e->lane); /* the leases' timer may run */
    rq_ops_free(e->ops);
    if (e->catalog != NULL) first = rq_catalog_close(e->catalog, true, why);
    rq_host_free(e->host);
    if (e->engine != NULL) {
        rq_err rc = rq_engine_close(e->engine, first == RQ_OK, why);
        if (first == RQ_OK) first = rc;
        if (first == RQ_OK && e->catalog != NULL) rq_root_stopped_cleanly(e->root);
    }
    rq_root_close(e->root);
    rq_epoch_free(e->epoch);
    if (e->is_driven)
        rq_driven_executor_free(e->executor);
    else if (e->executor != NULL)
        rq_thread_executor_free(e->executor);
    rq_vfs_free(e->vfs);
    rq_config_free(e->config);
    return first;
}

static rq_err embed_close(rq_db *db, rq_error *why)
{
    return close_all(rq__embed_of(db), why);
}

/* --- asynchronous calls ----------------------------------------------------------------------- */

static void run_call(rq_task *task)
{
    rq_call *call = RQ_CONTAINER_OF(task, rq_call, task);
    rq_call_run(call);
    rq_call_done(call);
}

/* A write waits for the log, so calls that are executed together share its syncs. */
static void start_call(rq_db *db, rq_call *call)
{
    rq_executor *executor = rq__embed_of(db)->executor;
    call->task.run = run_call;
    executor->submit(executor, RQ_POOL_CALL, &call->task);
}

/* --- the work of a database without threads --------------------------------------------------- */

static bool has_ended_call(void *db)
{
    return rq_db_has_ended_call(db);
}

static uint64_t after(const rq__embed *e, int64_t timeout_ns)
{
    return e->executor->now_ns(e->executor) + (uint64_t)timeout_ns;
}

/* Without time to wait it still does a slice of work. */
static void driven_turn(rq_db *db, int64_t timeout_ns)
{
    rq__embed *e = rq__embed_of(db);
    if (timeout_ns > 0)
        (void)rq_driven_run(e->executor, has_ended_call, db, after(e, timeout_ns));
    else
        rq_driven_help(e->executor, RQ__HELP_NS);
}

/* In pieces, because another thread may close the database meanwhile. */
static void driven_idle(rq_db *db, int64_t timeout_ns)
{
    rq__embed *e = rq__embed_of(db);
    bool ended = false;
    if (timeout_ns <= 0) rq_driven_help(e->executor, RQ__HELP_NS);
    while (timeout_ns > 0 && !ended) {
        int64_t piece = timeout_ns < IDLE_PIECE_NS ? timeout_ns : IDLE_PIECE_NS;
        timeout_ns -= piece;
        ended = rq_driven_run(e->executor, NULL, NULL, after(e, piece)) || atomic_load(&db->closed);
    }
}

/* The calls that have not begun end with RQ_E_CLOSED, the others by themselves. */
static void driven_stop(rq_db *db)
{
    rq_driven_finish_pool(rq__embed_of(db)->executor, RQ_POOL_CALL);
}

/* An asynchronous call that waits for a slot must not keep others from running: they have the slots. */
static void driven_pause(rq_db *db)
{
    rq_executor *executor = rq__embed_of(db)->executor;
    executor->sleep(executor, PAUSE_NS);
}

static void driven_wake(rq_db *db)
{
    rq_driven_wake(rq__embed_of(db)->executor);
}

static int driven_descriptor(rq_db *db)
{
    return rq_driven_descriptor(rq__embed_of(db)->executor);
}

static int64_t driven_due(rq_db *db)
{
    uint64_t due = rq_driven_due(rq__embed_of(db)->executor);
    return due > (uint64_t)INT64_MAX ? INT64_MAX : (int64_t)due;
}

static const rq_backend backend = {
    .close = embed_close,
    .define = rq__embed_define,
    .describe = rq__embed_describe,
    .tables = rq__embed_tables,
    .namespaces = rq__embed_namespaces,
    .describe_namespace = rq__embed_describe_namespace,
    .snapshots = rq__embed_snapshots,
    .regions = rq__embed_regions,
    .compact = rq__embed_compact,
    .cluster = rq__embed_cluster,
    .get = rq__embed_get,
    .change = rq__embed_change,
    .batch = rq__embed_batch,
    .scan = rq__embed_scan,
    .next = rq__embed_next,
    .has_row = rq__embed_has_row,
    .scan_close = rq__embed_scan_close,
    .start = start_call,
};

/* What a database without threads has besides. */
static void add_driving(rq_backend *b)
{
    b->no_threads = true;
    b->stop = driven_stop;
    b->turn = driven_turn;
    b->descriptor = driven_descriptor;
    b->due = driven_due;
    b->idle = driven_idle;
    b->pause = driven_pause;
    b->wake = driven_wake;
}

rq_err rq_embed_open(const char *path, const rq_connect_options *o, rq_db **ret, rq_error *why)
{
    rq__embed *e = aligned_alloc(RQ_CACHE_LINE, sizeof *e);
    if (e == NULL) return rq_no_memory(why);
    memset(e, 0, sizeof *e);
    e->is_driven = o->no_threads;
    e->backend = backend;
    if (e->is_driven) add_driving(&e->backend);
    rq_err rc = rq_db_init(&e->db, &e->backend, o->timeout_ms, why);
    if (rc == RQ_OK) rc = make_config(o, path == NULL, &e->config, why);
    if (rc == RQ_OK) rc = open_environment(e, path, o->must_exist, why);
    if (rc == RQ_OK) rc = open_data(e, why);
    if (rc == RQ_OK) {
        *ret = &e->db;
        return RQ_OK;
    }
    (void)close_all(e, NULL); /* the first error counts */
    rq_db_unref(&e->db);
    return rc;
}

/* --- seats ------------------------------------------------------------------------------------ */

rq_err rq__seat_of(rq__embed *e, rq_slot *slot, rq__embed_seat **ret, rq_why *why)
{
    if (RQ_LIKELY(slot->own != NULL)) {
        *ret = slot->own;
        return RQ_OK;
    }
    rq__embed_seat *s = calloc(1, sizeof *s);
    if (s == NULL) return rq_no_memory(&why->error);
    rq_epoch_join(e->epoch, &s->section);
    if (rq_ops_seat_new(e->ops, NULL, &s->section, &s->ops) != RQ_OK) {
        rq_epoch_leave(e->epoch, &s->section);
        free(s);
        return rq_no_memory(&why->error);
    }
    *ret = slot->own = s;
    return RQ_OK;
}

static void op_done(rq_op *op)
{
    (void)op; /* its start returns now */
}

void rq__op_begin(rq__embed_seat *s, rq_slot *slot, rq_op *op, rq_op_kind kind)
{
    rq_op_init(op, kind, s->ops, &slot->arena, op_done);
}

/* --- regions ---------------------------------------------------------------------------------- */

/* HBASE: a client that finds a region without a server asks whether its table is enabled
 * (TableNotEnabledException). */
RQ_COLD static rq_err not_open(const rq__embed *e, const rq_table *t, rq_error *why)
{
    const rq_catalog_table *table = rq_catalog_table_find(e->catalog, t->name);
    bool disabled =
        table != NULL && (table->state == RQ_TABLE_DISABLED || table->state == RQ_TABLE_DISABLING);
    int len = (int)t->name.len;
    if (disabled)
        return rq_fail(why, RQ_E_TABLE_NOT_ENABLED, "%.*s is disabled.", len,
                       (const char *)t->name.ptr);
    return rq_fail(why, RQ_E_NOT_SERVING_REGION, "a region of %.*s is not open", len,
                   (const char *)t->name.ptr);
}

/* Caches the table in the seat: looking it up by name takes longer than finding the region, and the view changes
 * rarely. */
static rq_err find_table(const rq__embed *e, rq__embed_seat *s, const rq_table *t, rq_error *why)
{
    uint64_t view = rq_catalog_view_number(e->catalog);
    if (RQ_LIKELY(s->table_number == t->number && s->view_number == view)) return RQ_OK;
    s->table_number = 0;
    s->region = NULL;
    s->table = rq_catalog_table_find(e->catalog, t->name);
    if (s->table == NULL)
        return rq_fail(why, RQ_E_TABLE_NOT_FOUND, "%.*s", (int)t->name.len,
                       (const char *)t->name.ptr);
    if (rq_catalog_view_number(e->catalog) != view) return RQ_OK; /* it is of one of two views */
    s->table_number = t->number;
    s->view_number = view;
    return RQ_OK;
}

rq_err rq__locate(const rq__embed *e, rq__embed_seat *s, const rq_table *t, rq_slice row,
                  rq_region **ret, rq_error *why)
{
    RQ_TRY(find_table(e, s, t, why));
    if (s->region == NULL || !rq_region_info_contains(s->region->info, row))
        RQ_TRY(rq_catalog_locate_in(s->table, row, &s->region, why));
    if (RQ_UNLIKELY(s->region->region == NULL)) return not_open(e, t, why);
    *ret = s->region->region;
    return RQ_OK;
}

/* --- repetitions ------------------------------------------------------------------------------ */

bool rq__may_pass(rq_err rc)
{
    switch (rc) {
    case RQ_E_NOT_SERVING_REGION:
    case RQ_E_WRONG_REGION:
    case RQ_E_REGION_MOVED:
    case RQ_E_REGION_OPENING:
    case RQ_E_REGION_TOO_BUSY:
    case RQ_E_CALL_QUEUE_TOO_BIG:
    case RQ_E_RESULT_TOO_LARGE:
    case RQ_E_PLEASE_HOLD:
        return true;
    default:
        return false;
    }
}

/* The first pauses are short: in one process a split or flush ends within milliseconds, and repeated attempts
 * put no load on another server. */
bool rq__attempt_again(rq__embed *e, rq__attempts *a, rq_err rc, rq_error *why)
{
    static const unsigned pauses_ms[] = {1, 2, 5, 10, 20, 50, 100};
    if (!rq__may_pass(rc) || atomic_load(&e->db.closed)) return false;
    uint64_t now = e->executor->now_ns(e->executor);
    if (a->until_ns == 0) a->until_ns = now + (uint64_t)e->db.timeout_ms * 1000000;
    size_t last = RQ_ARRAY_LEN(pauses_ms) - 1;
    uint64_t pause = (uint64_t)pauses_ms[a->failed < last ? a->failed : last] * 1000000;
    if (now + pause >= a->until_ns) return false;
    a->failed++;
    e->executor->sleep(e->executor, pause);
    rq_error_clear(why);
    return true;
}
