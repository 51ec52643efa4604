/* SPDX-License-Identifier: Apache-2.0 */
/* See reload.h. */
#include "server/reload.h"

#include <string.h>

static rq_log_level level_of(const rq_config *c)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    const char *text = rq_config_text(c, RQ_SET_LOG_LEVEL);
    int level = RQ_LOG_ERROR;
    while (level > 0 && strcmp(text, names[level]) != 0)
        level--;
    return (rq_log_level)level;
}

void rq__log_configure(rq_log *log, const rq_config *c)
{
    if (log == NULL) return;
    log->level = level_of(c);
    log->format =
        strcmp(rq_config_text(c, RQ_SET_LOG_FORMAT), "json") == 0 ? RQ_LOG_JSON : RQ_LOG_TEXT;
}

uint64_t rq__slow_ns_of(const rq_config *c)
{
    uint64_t ms = (uint64_t)rq_config_int(c, RQ_SET_LOG_SLOW);
    return ms > UINT64_MAX / 1000000 ? UINT64_MAX : ms * 1000000;
}

static void on_changed(void *ctx, rq_setting s, const char *text)
{
    const rq_reload *r = ctx;
    const rq_setting_info *i = rq_setting_get(s);
    if (i->reloads)
        rq_log_info(r->log, "server", "setting %s is now '%s'", i->name, text);
    else
        rq_log_warn(r->log, "server", "setting %s: '%s' takes effect at the next start", i->name,
                    text);
}

static rq_err reload(rq_reload *r, rq_error *why)
{
    rq_config *fresh;
    RQ_TRY(r->reread(r->ctx, &fresh, why));
    rq_err rc = rq_config_take(r->config, fresh, on_changed, r);
    rq_config_free(fresh);
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", rq_err_text(rc));
    rq__log_configure(r->log, r->config);
    if (r->vfs != NULL) rq_vfs_posix_set_slow(r->vfs, rq__slow_ns_of(r->config));
    rq_thread_executor_resize(r->executor, RQ_POOL_COMPACT,
                              (unsigned)rq_config_int(r->config, RQ_SET_COMPACTION_THREADS));
    rq_thread_executor_resize(r->executor, RQ_POOL_COMPACT_LARGE,
                              (unsigned)rq_config_int(r->config, RQ_SET_COMPACTION_THREADS_LARGE));
    rq_ops_reload(r->ops, r->config);
    rq_client_service_reload(r->client, r->config);
    rq_slow_limits slow = rq_slow_limits_of(r->config);
    rq_slow_log_set(r->slow, &slow);
    if (r->quotas != NULL) RQ_TRY(rq_quotas_reload(r->quotas, why));
    return rq_engine_reload(r->engine, r->config, why);
}

rq_err rq__reload_run(rq_reload *r, rq_error *why)
{
    rq_error own = {.code = RQ_OK};
    if (r->reread == NULL) return RQ_OK;
    pthread_mutex_lock(&r->lock);
    rq_err rc = reload(r, &own);
    pthread_mutex_unlock(&r->lock);
    if (rc == RQ_OK) {
        rq_log_info(r->log, "server", "settings reloaded");
        return rc;
    }
    rq_log_error(r->log, "server", "settings were not reloaded: %s", own.message);
    return rq_fail(why, rc, "%s", own.message);
}
