/* SPDX-License-Identifier: Apache-2.0 */
/* How clients learn the end of a procedure, and abort it. HBase's client asks with
 * getProcedureResult, and sleeps 100 ms and longer between two questions. So the answer for a
 * running procedure is held back until the procedure ends, or a short time is over. HBASE:
 * MasterRpcServices. */
#include "service/master_priv.h"

#include "proto/master.pb-c.h"

/* Longest hold if the client's time limit is not shorter (hold_ns). A call counts as slow after
 * hbase.ipc.warn.response.time, 10 s. */
#define HOLD_MAX_NS UINT64_C(500000000)

typedef struct held_question {
    rq_admin_services *services;
    rq_call *call;
    rq_procedure_watch watch;
    rq_loop_timer timer;
} held_question;

Pb__ForeignExceptionMessage *rq__foreign_exception(rq_arena *arena, const rq_procedure *p)
{
    Pb__ForeignExceptionMessage *m = rq_arena_alloc(arena, sizeof *m);
    Pb__GenericExceptionMessage *g = rq_arena_alloc(arena, sizeof *g);
    if (m == NULL || g == NULL) return NULL;
    pb__foreign_exception_message__init(m);
    pb__generic_exception_message__init(g);
    g->class_name = (char *)rq_err_java_class(p->rc);
    g->message = (char *)(p->message != NULL ? p->message : rq_err_text(p->rc));
    m->source = (char *)"pid";
    m->generic_exception = g;
    return m;
}

static uint64_t asked_id(const rq_call *call)
{
    return ((const Pb__GetProcedureResultRequest *)call->param)->proc_id;
}

/* The client of a parked procedure gets its error at once: it may stay parked forever. */
static bool has_ended(const rq_procedure *p)
{
    return p->finished || p->parked;
}

static void answer(rq_admin_services *s, rq_call *call)
{
    Pb__GetProcedureResultResponse response = PB__GET_PROCEDURE_RESULT_RESPONSE__INIT;
    rq_procedure p;
    if (!rq_catalog_procedure(s->catalog, asked_id(call), &call->arena, &p)) {
        response.state = PB__GET_PROCEDURE_RESULT_RESPONSE__STATE__NOT_FOUND;
        rq_call_reply(call, &response.base);
        return;
    }
    bool ended = has_ended(&p);
    response.state = ended ? PB__GET_PROCEDURE_RESULT_RESPONSE__STATE__FINISHED
                           : PB__GET_PROCEDURE_RESULT_RESPONSE__STATE__RUNNING;
    response.has_submitted_time = response.has_last_update = 1;
    response.submitted_time = (uint64_t)p.submitted_ms;
    response.last_update = (uint64_t)p.updated_ms;
    if (p.finished) rq_catalog_procedure_forget(s->catalog, asked_id(call));
    if (ended && p.rc != RQ_OK) {
        response.exception = rq__foreign_exception(&call->arena, &p);
        if (response.exception == NULL) {
            rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
            return;
        }
    }
    rq_call_reply(call, &response.base);
}

static void procedure_ended(rq_task *task)
{
    held_question *h = RQ_CONTAINER_OF(task, held_question, watch.task);
    rq_loop_timer_cancel(h->call->loop, &h->timer);
    answer(h->services, h->call);
}

static void time_is_over(rq_loop_timer *timer)
{
    held_question *h = RQ_CONTAINER_OF(timer, held_question, timer);
    /* Else its task is on its way, and answers. */
    if (rq_catalog_procedure_unwatch(h->services->catalog, &h->watch)) answer(h->services, h->call);
}

/* Half of what is left of the client's time. */
static uint64_t hold_ns(const rq_call *call)
{
    uint64_t now = rq_loop_now_ns(call->loop);
    if (call->deadline_ns <= now) return 0;
    uint64_t half = (call->deadline_ns - now) / 2;
    return half < HOLD_MAX_NS ? half : HOLD_MAX_NS;
}

static bool hold(rq_admin_services *s, rq_call *call)
{
    held_question *h = rq_arena_calloc(&call->arena, 1, sizeof *h);
    if (h == NULL) return false;
    h->services = s;
    h->call = call;
    h->watch.lane = rq_loop_lane(call->loop);
    h->watch.task.run = procedure_ended;
    h->timer.run = time_is_over;
    /* The task runs on this loop, so not before the timer is armed. */
    if (!rq_catalog_procedure_watch(s->catalog, asked_id(call), &h->watch)) return false;
    rq_loop_timer_arm(call->loop, &h->timer, hold_ns(call));
    return true;
}

void rq__get_procedure_result(void *ctx, rq_call *call)
{
    rq_admin_services *s = ctx;
    if (!hold(s, call)) answer(s, call);
}

/* HBASE: ProcedureExecutor.abort. */
void rq__abort_procedure(void *ctx, rq_call *call)
{
    rq_admin_services *s = ctx;
    const Pb__AbortProcedureRequest *r = (const Pb__AbortProcedureRequest *)call->param;
    Pb__AbortProcedureResponse response = PB__ABORT_PROCEDURE_RESPONSE__INIT;
    response.is_procedure_aborted =
        rq_catalog_procedure_abort(s->catalog, r->proc_id, r->mayinterruptifrunning);
    rq_call_reply(call, &response.base);
}
