/* SPDX-License-Identifier: Apache-2.0 */
/* Handles a failed step; the rules are in procedure.h. Two questions decide: is the error
 * temporary, and has the commit happened?
 *
 * The first is answered by the error's line in base/errors.def: a procedure does not retry errors
 * that clients must not retry. Temporary errors are retried for about 24 minutes, and a lack of
 * memory or disk space for as long as it lasts. If a procedure is parked because of a temporary error, its step
 * is run once every ten minutes. REOPEN_REGION is retried for as long as its errors are temporary, because
 * nothing else opens the region.
 *
 * The second is answered with certainty as long as no attempt to write the commit can have reached the
 * log. After a restart the view tells, if the kind has a function seen(). If a procedure that is to be ended has written
 * rows in parts (ddl_parts.c), hbase:meta is read. */
#include "catalog/ddl_priv.h"
#include "catalog/proc_priv.h"

#include <limits.h>

const char *rq__proc_step_name(const rq__proc *p, unsigned step)
{
    const char *name = step < RQ__STEPS_MAX ? p->ops->steps[step].name : NULL;
    return name == NULL ? "" : name;
}

/* Ends when others free memory or space, at an unknown time. */
static bool is_shortage(rq_err rc)
{
    return rc == RQ_E_NO_MEMORY || rc == RQ_E_NO_SPACE || rc == RQ_E_REGION_TOO_BUSY;
}

rq__commit_state rq__proc_commit_state(rq__proc *p)
{
    if (p->committed || p->step > p->ops->commit) return RQ__COMMIT_YES;
    if (!p->resumed && !p->unsure) return RQ__COMMIT_NO;
    if (p->unsure || p->ops->seen == NULL) return RQ__COMMIT_UNKNOWN;
    return p->ops->seen(p->catalog, p);
}

/* HBASE: hbase.assignment.maximum.attempts has no bound by default. */
static rq__fail_action judge_transient(const rq__proc *p, bool may_pass)
{
    bool goes_on = p->resumed && !p->aborted && may_pass;
    return goes_on ? RQ__FAIL_REPEAT : RQ__FAIL_END;
}

/* The step that writes the rows of all regions has failed. */
static rq__fail_action judge_rows(const rq__proc *p)
{
    rq__parts_state parts = rq__parts_look(p->catalog, p);
    return parts == RQ__PARTS_NONE  ? RQ__FAIL_UNDO
           : parts == RQ__PARTS_ALL ? RQ__FAIL_LEAVE_OUT
                                    : RQ__FAIL_STAY;
}

static rq__fail_action judge_aborted(const rq__proc *p, rq__commit_state state)
{
    if (state == RQ__COMMIT_NO) return RQ__FAIL_UNDO;
    if (p->step == p->ops->commit && p->ops->rows != RQ__ROWS_WHOLE) return judge_rows(p);
    return state == RQ__COMMIT_YES ? RQ__FAIL_LEAVE_OUT : RQ__FAIL_END;
}

rq__fail_action rq__proc_judge(rq__proc *p, rq_err rc)
{
    bool final = rq_err_do_not_retry(rc);
    bool often = p->attempts >= RQ__REPEATS_MAX && !is_shortage(rc);
    if (p->ops->transient) return judge_transient(p, !final);
    /* If the rows are written in parts, rq__parts_write knows which part has the commit, and sets `unsure`. */
    bool in_parts = p->ops->rows != RQ__ROWS_WHOLE;
    if (p->step == p->ops->commit && !final && !in_parts) p->unsure = true;
    rq__commit_state state = rq__proc_commit_state(p);
    if (p->aborted) return judge_aborted(p, state);
    bool first_run = p->step < p->ops->commit && !p->resumed;
    if (state == RQ__COMMIT_NO && (final || often || first_run)) return RQ__FAIL_UNDO;
    return final || often ? RQ__FAIL_PARK : RQ__FAIL_REPEAT;
}

rq_log_rate rq__proc_log_rate(const rq__proc *p)
{
    const rq_config *config = p->catalog->config;
    int64_t lines = config == NULL ? 0 : rq_config_int(config, RQ_SET_AUDIT_RATE);
    return (rq_log_rate){lines == 0 ? UINT_MAX : (unsigned)lines, UINT64_C(1000000000)};
}

void rq__proc_log(const rq__proc *p, rq_log_level level, rq_err rc, const rq_error *why,
                  const char *what)
{
    rq_log_limit *limits = p->catalog->procedures.trouble_lines;
    rq_log_write_rated(p->catalog->env->log, &limits[level == RQ_LOG_ERROR], rq__proc_log_rate(p),
                       level, "catalog", "procedure %llu (%s of %.*s), step %s: %s; %s",
                       (unsigned long long)p->id, p->java_class, (int)p->table.len,
                       (const char *)p->table.ptr, rq__proc_step_name(p, p->step),
                       why != NULL && why->code != RQ_OK ? why->message : rq_err_text(rc), what);
}

static void reopen_if_own(const rq__proc *p, const rq__region_node *n)
{
    bool own =
        p->ops->lock == RQ_LOCK_TABLE || rq__proc_names_region(p, rq_slice_cstr(n->info.encoded));
    if (own && n->pub.server == NULL) rq__procedures_reopen(p->catalog, &n->info, NULL);
}

/* After an abort that skipped steps: reopens the regions that the procedure had closed. Reopening
 * waits for the procedure's end. */
void rq__proc_reopen_closed(rq__proc *p)
{
    rq_catalog *c = p->catalog;
    rq__table_node *t;
    if (p->ops->lock == RQ_LOCK_NAMESPACE ||
        rq__catalog_table_ref(c, p->ns, p->qualifier, &t, NULL) != RQ_OK)
        return;
    for (size_t i = 0; i < t->pub.region_count && t->pub.state == RQ_TABLE_ENABLED; i++)
        reopen_if_own(p, rq__table_region(t, i));
    rq__table_node_unref(t);
}
