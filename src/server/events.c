/* SPDX-License-Identifier: Apache-2.0 */
/* See events.h. */
#include "server/events.h"

#include "base/machine.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define SUBJECT "server"
#define FEW_FILES 4096 /* a limit of open files below this is worth a warning */

static uint64_t now_ns(const rq_events *e)
{
    return e->executor->now_ns(e->executor);
}

/* --- the start -------------------------------------------------------------------------------- */

static void log_settings(const rq_log *log, const rq_config *config)
{
    for (int s = 0; s < RQ_SETTING_COUNT; s++) {
        const rq_setting_info *i = rq_setting_get((rq_setting)s);
        const char *text = rq_config_text(config, (rq_setting)s);
        if (strcmp(text, i->fallback) != 0)
            rq_log_event(log, RQ_LOG_INFO, SUBJECT, "setting", rq_log_text("name", i->name),
                         rq_log_text("value", text), rq_log_text("default", i->fallback));
    }
}

static void log_few_files(const rq_log *log)
{
    rq_process_usage u;
    rq_machine_process(&u);
    if (u.open_files_max < FEW_FILES)
        rq_log_event(log, RQ_LOG_WARN, SUBJECT,
                     "the limit of open files (ulimit -n) is low: each connection and each store "
                     "file needs one",
                     rq_log_number("limit", u.open_files_max));
}

void rq__events_begin(rq_events *e, const rq_env *env, const rq_server_options *o)
{
    const rq_log *log = env->log;
    e->log = log;
    e->executor = env->executor;
    e->begun_ns = now_ns(e);
    rq_log_event(log, RQ_LOG_INFO, SUBJECT, "starts",
                 rq_log_text("version", o->version == NULL ? "unknown" : o->version),
                 rq_log_number("pid", (uint64_t)getpid()), rq_log_text("data", o->data),
                 rq_log_text("listen", o->listen));
    log_settings(log, o->config);
    log_few_files(log);
}

static void log_memory(const rq_log *log, const rq_config *config, const rq_engine_stats *s)
{
    uint64_t budget = rq_engine_memory_budget(config);
    uint64_t scanners = (uint64_t)rq_config_int(config, RQ_SET_SCANNERS_MEMORY);
    uint64_t requests = (uint64_t)rq_config_int(config, RQ_SET_QUEUE_MAX);
    rq_log_event(log, RQ_LOG_INFO, SUBJECT, "memory", rq_log_number("machine", rq_machine_memory()),
                 rq_log_number("budget", budget), rq_log_number("memstores", s->memstore_bytes_max),
                 rq_log_number("block_cache", s->block_cache_bytes_max),
                 rq_log_number("scanners", scanners == 0 ? budget / 4 : scanners),
                 rq_log_number("requests", requests == 0 ? budget / 8 : requests),
                 rq_log_number("answers", budget / 8));
}

void rq__events_opened(rq_events *e, const rq_engine *engine, const rq_config *config,
                       const char *folder, bool is_new, const char *addresses)
{
    rq_engine_stats s;
    rq_engine_get_stats(engine, &s);
    e->is_open = true;
    log_memory(e->log, config, &s);
    rq_log_event(e->log, RQ_LOG_INFO, SUBJECT, is_new ? "new data folder" : "data folder",
                 rq_log_text("path", folder),
                 rq_log_number("recovered_records", s.recovered_records),
                 rq_log_number("dropped_records", s.dropped_records),
                 rq_log_ms("ms", now_ns(e) - e->begun_ns));
    rq_log_write(e->log, RQ_LOG_INFO, SUBJECT, "ready: %s", addresses);
}

/* --- meanwhile -------------------------------------------------------------------------------- */

void rq__events_slow(void *ctx, const char *what, const char *path, uint64_t bytes, uint64_t ns)
{
    rq_events *e = ctx;
    if (e->executor == NULL) return; /* the server is not open yet */
    const rq_log_rate rate = {1, UINT64_C(1000000000)};
    uint64_t suppressed;
    if (!rq_log_limit_passes(&e->slow_lines, rate, now_ns(e), &suppressed)) return;
    rq_log_event(e->log, RQ_LOG_INFO, "disk", "slow", rq_log_text("call", what),
                 rq_log_text("path", path), rq_log_number("bytes", bytes), rq_log_ms("ms", ns),
                 rq_log_number("suppressed", suppressed));
}

/* --- the stop --------------------------------------------------------------------------------- */

void rq__events_stopping(rq_events *e, const rq_engine *engine)
{
    if (!e->is_open) return;
    e->begun_ns = now_ns(e);
    rq_engine_get_stats(engine, &e->stats);
    rq_log_event(e->log, RQ_LOG_INFO, SUBJECT, "stops", rq_log_number("flushes", e->stats.flushes),
                 rq_log_number("compactions", e->stats.compactions),
                 rq_log_number("memstore_bytes", e->stats.memstore_bytes));
}

void rq__events_closed(rq_events *e, const rq_engine *engine)
{
    rq_engine_stats now;
    if (!e->is_open) return;
    rq_engine_get_stats(engine, &now);
    e->stats.flushes = now.flushes - e->stats.flushes;
    e->stats.flushed_bytes = now.flushed_bytes - e->stats.flushed_bytes;
}

void rq__events_stopped(const rq_events *e, rq_err rc, const rq_error *why)
{
    if (!e->is_open) return;
    if (rc != RQ_OK) {
        rq_log_event(e->log, RQ_LOG_ERROR, SUBJECT, "not stopped cleanly",
                     rq_log_text("why", why != NULL && why->message[0] != '\0' ? why->message
                                                                               : rq_err_text(rc)));
        return;
    }
    rq_log_event(e->log, RQ_LOG_INFO, SUBJECT, "stopped cleanly",
                 rq_log_number("flushes", e->stats.flushes),
                 rq_log_number("flushed_bytes", e->stats.flushed_bytes),
                 rq_log_ms("ms", now_ns(e) - e->begun_ns));
}
