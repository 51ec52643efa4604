/* SPDX-License-Identifier: Apache-2.0 */
/* See report.h. */
#include "server/report.h"

#define LOOP_WAIT_MS 2000

static void report_procedures(rq_catalog *c, const rq_log *log)
{
    rq_arena arena = {0};
    rq_procedure *list;
    size_t count = 0;
    if (rq_catalog_unfinished_procedures(c, &arena, &list, &count) != RQ_OK) count = 0;
    for (size_t i = 0; i < count; i++) {
        const rq_procedure *p = &list[i];
        rq_log_info(log, "report", "procedure %llu %s on %.*s:%.*s: %s, step %s",
                    (unsigned long long)p->id, rq_ddl_java_class(p->kind), (int)p->ns.len,
                    (const char *)p->ns.ptr, (int)p->qualifier.len, (const char *)p->qualifier.ptr,
                    p->parked    ? "parked"
                    : p->waiting ? "waiting"
                                 : "running",
                    p->step == NULL ? "none" : p->step);
    }
    rq_log_info(log, "report", "procedures: %zu unfinished", count);
    rq_arena_clear(&arena);
}

void rq__report_write(const rq_report_sources *from)
{
    if (from->log == NULL) return;
    rq_log log = rq_log_at(from->log, RQ_LOG_DEBUG);
    rq_log_info(&log, "report", "begins");
    rq_loops_report(from->loops, &log);
    if (from->master != NULL) rq_rpc_server_report(from->master, "master", &log, LOOP_WAIT_MS);
    rq_rpc_server_report(from->rs, "regionserver", &log, LOOP_WAIT_MS);
    rq_thread_executor_report(from->executor, &log);
    if (from->catalog != NULL) report_procedures(from->catalog, &log);
    rq_log_info(&log, "report", "ends");
}
