/* SPDX-License-Identifier: Apache-2.0 */
/* Calls from start to end: attempts, pauses, and asking the master whether the table exists. Nothing here
 * blocks: a pause is a timer of the client, and the master's answer comes to a callback. */
#include "remote/remote_priv.h"

#include "base/pb.h"

#define PAUSE_NS 500000000
#define PAUSE_DOUBLINGS 4

static void end(rq__job *j, rq_err rc)
{
    j->rc = rc;
    j->end(j);
}

static rq_err find_table(rq__job *j, rq_client_table **ret)
{
    char name[512];
    rq_slice given = j->table->name;
    if (given.len >= sizeof name)
        return rq_fail(&j->why->error, RQ_E_ILLEGAL_ARGUMENT, "the table's name is too long");
    memcpy(name, given.ptr, given.len);
    name[given.len] = '\0';
    if (rq_client_table_get(j->remote->client, name, ret) != RQ_OK)
        return rq_no_memory(&j->why->error);
    return RQ_OK;
}

static void attempt(rq__job *j)
{
    rq_err rc = RQ_OK;
    rq_why_clear(j->why);
    if (j->is_abandoned) {
        end(j, RQ_E_CANCELLED);
        return;
    }
    if (j->table->own == NULL) { /* the client's, kept */
        rq_client_table *found;
        rc = find_table(j, &found);
        if (rc == RQ_OK) j->table->own = found;
    }
    if (rc == RQ_OK) rc = j->attempt(j, j->table->own);
    if (rc == RQ_OK) return;
    if (j->why->error.code == RQ_OK) (void)rq_fail(&j->why->error, rc, "%s", rq_err_text(rc));
    rq__job_ended(j, rc);
}

static void begin(rq__job *j)
{
    j->until_ns = rq_client_now_ns() + (int64_t)j->remote->db.timeout_ms * 1000000;
    j->failed = 0;
    attempt(j);
}

/* --- after a failed attempt ------------------------------------------------------------------- */

static void pause_is_over(rq_client_timer *timer)
{
    attempt(RQ_CONTAINER_OF(timer, rq__job, pause));
}

static void repeat_or_end(rq__job *j, bool may_pass)
{
    int64_t pause = (int64_t)PAUSE_NS
                    << (j->failed < PAUSE_DOUBLINGS ? j->failed : PAUSE_DOUBLINGS);
    if (!may_pass || rq_client_now_ns() + pause > j->until_ns) {
        end(j, j->why->error.code);
        return;
    }
    j->failed++;
    j->pause.run = pause_is_over;
    rq_client_timer_arm(j->remote->client, &j->pause, pause);
}

/* Errors of a region that is not where the map says: the table may be disabled or dropped. */
static bool doubts_table(rq_err rc)
{
    return rc == RQ_E_NOT_SERVING_REGION || rc == RQ_E_UNKNOWN_REGION || rc == RQ_E_TABLE_NOT_FOUND;
}

/* GetTableStateResponse { table_state 1 { state 1: ENABLED 0, DISABLED 1, DISABLING 2, ENABLING 3 } }
 */
static bool is_disabled(rq_slice message)
{
    rq_cursor c = rq_cursor_of(message);
    rq_pb_field f;
    if (rq_pb_next(&c, &f) != RQ_OK || f.number != 1 || f.wire != RQ_PB_BYTES) return false;
    c = rq_cursor_of(f.bytes);
    return rq_pb_next(&c, &f) == RQ_OK && f.number == 1 && (f.value == 1 || f.value == 2);
}

static void master_has_answered(rq_client_question *q, rq_err rc, rq_slice message)
{
    rq__job *j = RQ_CONTAINER_OF(q, rq__job, question);
    if (j->is_abandoned) {
        end(j, RQ_E_CANCELLED);
        return;
    }
    int len = (int)j->table->name.len;
    const char *name = (const char *)j->table->name.ptr;
    if (rc == RQ_E_TABLE_NOT_FOUND) {
        rq_why_clear(j->why);
        end(j, rq_fail(&j->why->error, rc, "%.*s", len, name));
    } else if (rc == RQ_OK && is_disabled(message)) {
        rq_why_clear(j->why);
        end(j, rq_fail(&j->why->error, RQ_E_TABLE_NOT_ENABLED, "%.*s is disabled.", len, name));
    } else {
        repeat_or_end(j, rc != RQ_E_CLOSED);
    }
}

static void ask_for_table(rq__job *j)
{
    rq_buf request = {0};
    j->question = (rq_client_question){.done = master_has_answered, .until_ns = j->until_ns};
    rq_err rc = rq__encode_table(&request, 1, j->table->ns, j->table->qualifier);
    if (rc == RQ_OK)
        rc = rq_client_ask_master(j->remote->client, "GetTableState", rq_buf_slice(&request),
                                  &j->question);
    rq_buf_clear(&request);
    if (rc != RQ_OK) repeat_or_end(j, rc != RQ_E_CLOSED);
}

void rq__job_ended(rq__job *j, rq_err rc)
{
    if (RQ_LIKELY(rc == RQ_OK)) {
        end(j, RQ_OK);
    } else if (j->is_abandoned) {
        end(j, rc);
    } else if (atomic_load(&j->remote->db.closed)) {
        rq_why_clear(j->why);
        end(j, rq_fail(&j->why->error, RQ_E_CLOSED, "the database was closed"));
    } else if (doubts_table(rc)) {
        ask_for_table(j);
    } else {
        repeat_or_end(j, j->why->is_remote ? j->why->retryable : !rq_err_do_not_retry(rc));
    }
}

void rq__job_abandon(rq__job *j)
{
    j->is_abandoned = true;
}

/* --- ways to run one -------------------------------------------------------------------------- */

static void wake_thread(rq__job *j)
{
    rq__wait_done(j->owner);
}

/* REQUIRES: the lock. */
static void begin_for(rq__job *j, rq__wait *wait)
{
    j->owner = wait;
    j->end = wake_thread;
    wait->done = false;
    begin(j);
}

rq_err rq__job_run(rq__job *j, rq__wait *wait)
{
    rq__remote *r = j->remote;
    pthread_mutex_lock(&r->lock);
    begin_for(j, wait);
    rq__remote_wait(r, wait);
    pthread_mutex_unlock(&r->lock);
    return j->rc;
}

void rq__job_begin(rq__job *j, rq__wait *wait)
{
    rq__remote *r = j->remote;
    pthread_mutex_lock(&r->lock);
    begin_for(j, wait);
    rq_client_flush(r->client);
    pthread_mutex_unlock(&r->lock);
}

rq_err rq__job_wait(rq__job *j, rq__wait *wait)
{
    rq__remote *r = j->remote;
    pthread_mutex_lock(&r->lock);
    rq__remote_wait(r, wait);
    pthread_mutex_unlock(&r->lock);
    return j->rc;
}

void rq__job_start(rq__job *j, rq_call *call, void (*end_of)(rq__job *job))
{
    j->owner = call;
    j->end = end_of;
    j->why = &call->why;
    begin(j);
}

void rq__job_complete(rq__job *j)
{
    rq__remote *r = j->remote;
    rq_call *call = j->owner;
    call->rc = j->rc;
    rq_call_done(call);
    if (r->turn.done) return;
    r->turn.done = true;
    if (r->is_asleep)
        rq_client_wake(r->client);
    else
        pthread_cond_signal(&r->turn.wake);
}

void rq__remote_start(rq_db *db, rq_call *call)
{
    rq__remote *r = rq__remote_of(db);
    rq_err rc = RQ_OK;
    pthread_mutex_lock(&r->lock);
    switch (call->kind) {
    case RQ_CALL_GET:
    case RQ_CALL_CHANGE:
        rc = rq__single_start(r, call);
        break;
    case RQ_CALL_BATCH:
        rc = rq__batch_start(r, call);
        break;
    case RQ_CALL_NEXT:
        rq__next_start(r, call);
        break;
    }
    rq_client_flush(r->client);
    pthread_mutex_unlock(&r->lock);
    if (rc == RQ_OK) return;
    call->rc = rq_fail(&call->why.error, rc, "%s", rq_err_text(rc));
    rq_call_done(call);
}
