/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Multi: batches of gets and mutations over several regions. HBASE: RSRpcServices.multi,
 * doNonAtomicRegionMutation, doAtomicBatchOp.
 *
 * Region actions are worked off one after another, each in one of three ways:
 *   with a condition   one op: all mutations if the condition holds
 *   atomic             one op: all mutations of one row (RowMutations)
 *   otherwise          each action for itself, in the client's order, except that puts and deletes
 *                      are collected: they go to the region as one batch when an append or an
 *                      increment comes (it must see them; so must what follows it see it) and at
 *                      the end
 * Whatever is waited for only by the answer is not waited for in between: the last batch of each
 * region is under way while the next region is worked on. The answer goes out when all are durable.
 *
 * The order of results in a region's answer is the order of execution; `index` says whose it is.
 * Cells in the answer's cell block stand in that order too, so a result with cells is encoded when
 * it is produced and before the next one.
 */
#include "service/client_multi_priv.h"

#include "service/encode.h"
#include "service/endpoint.h"
#include "service/multi_answer.h"

/* --- parts of the answer ---------------------------------------------------------------------- */

Pb__ResultOrException *rq__multi_add_outcome(rq__multi *m, Pb__RegionActionResult *answer,
                                             uint32_t index)
{
    Pb__ResultOrException *r = rq_arena_alloc(&m->job.call->arena, sizeof *r);
    if (r == NULL) return NULL;
    *r = (Pb__ResultOrException)PB__RESULT_OR_EXCEPTION__INIT;
    r->has_index = 1;
    r->index = index;
    answer->resultorexception[answer->n_resultorexception++] = r;
    return r;
}

Pb__Result *rq__multi_new_result(rq__multi *m)
{
    Pb__Result *r = rq_arena_alloc(&m->job.call->arena, sizeof *r);
    if (r != NULL) *r = (Pb__Result)PB__RESULT__INIT;
    return r;
}

rq_err rq__multi_add_exception(rq__multi *m, uint32_t index, rq_err code, const rq_error *why)
{
    Pb__ResultOrException *r = rq__multi_add_outcome(m, rq__multi_region_answer(m), index);
    if (r == NULL) return RQ_E_NO_MEMORY;
    rq_call_alarm(m->job.call, code, why);
    r->exception = rq__exception_pair(&m->job.call->arena, code, why);
    return r->exception == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

/* --- coprocessor endpoints -------------------------------------------------------------------- */

static void fail_call(rq__multi *m, rq_err rc);

static rq_err answer_service(rq__multi *m, const rq__endpoint *e)
{
    rq_arena *arena = &m->job.call->arena;
    uint32_t index = m->actions[m->action_at].index;
    if (e->rc != RQ_OK) return rq__multi_add_exception(m, index, e->rc, &e->why);
    Pb__ResultOrException *r = rq__multi_add_outcome(m, rq__multi_region_answer(m), index);
    Pb__CoprocessorServiceResult *result = rq_arena_alloc(arena, sizeof *result);
    Pb__NameBytesPair *value = rq_arena_alloc(arena, sizeof *value);
    if (r == NULL || result == NULL || value == NULL) return RQ_E_NO_MEMORY;
    pb__coprocessor_service_result__init(result);
    pb__name_bytes_pair__init(value);
    value->name = (char *)e->response_class;
    value->has_value = 1;
    value->value = (ProtobufCBinaryData){e->response.len, (uint8_t *)e->response.ptr};
    result->value = value;
    r->service_result = result;
    return RQ_OK;
}

/* The walk waited for it. */
static void service_done(rq__endpoint *e)
{
    rq__multi *m = e->user;
    rq_err rc = answer_service(m, e);
    if (rc != RQ_OK) {
        fail_call(m, rc);
        return;
    }
    m->action_at++;
    rq__multi_walk(m);
}

static rq_err begin_service(rq__multi *m, const rq__action *action)
{
    rq__endpoint *e = rq_arena_alloc(&m->job.call->arena, sizeof *e);
    if (e == NULL) return RQ_E_NO_MEMORY;
    e->service = m->job.service;
    e->call = m->job.call;
    e->region = m->region;
    e->done = service_done;
    e->user = m;
    rq__endpoint_start(e, action->call);
    return RQ_OK;
}

/* --- what an action is ------------------------------------------------------------------------ */

static bool is_read_modify_write(const Pb__MutationProto *m)
{
    return m->mutate_type == PB__MUTATION_PROTO__MUTATION_TYPE__APPEND ||
           m->mutate_type == PB__MUTATION_PROTO__MUTATION_TYPE__INCREMENT;
}

static rq__action classify(const Pb__Action *a)
{
    rq__action r = {.kind = RQ__ACTION_EMPTY, .index = a->index, .mutation = a->mutation};
    int parts = (a->get != NULL) + (a->mutation != NULL) + (a->service_call != NULL);
    if (parts > 1) {
        r.kind = RQ__ACTION_AMBIGUOUS;
    } else if (a->get != NULL) {
        r.kind = RQ__ACTION_GET;
        r.get = a->get;
    } else if (a->mutation != NULL) {
        r.kind = is_read_modify_write(a->mutation) ? RQ__ACTION_ALONE : RQ__ACTION_BATCHED;
    } else if (a->service_call != NULL) {
        r.kind = RQ__ACTION_SERVICE;
        r.call = a->service_call;
    }
    return r;
}

static rq_err classify_actions(rq__multi *m, const Pb__RegionAction *ra)
{
    rq__action *list = rq_arena_alloc(&m->job.call->arena, ra->n_action * sizeof *list);
    if (list == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < ra->n_action; i++)
        list[i] = classify(ra->action[i]);
    m->actions = list;
    m->action_count = ra->n_action;
    m->meter.steps += ra->n_action / 8;
    return RQ_OK;
}

void rq__multi_skip_cells(rq__multi *m, const rq__action *action)
{
    if (action->mutation != NULL) rq__skip_cells(action->mutation, &m->cells);
}

/* --- region actions as a whole ---------------------------------------------------------------- */

static rq_err fail_region(rq__multi *m, rq_err code, const rq_error *why)
{
    Pb__RegionActionResult *answer = rq__multi_region_answer(m);
    answer->exception = rq__exception_pair(&m->job.call->arena, code, why);
    return answer->exception == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

static void skip_region_cells(rq__multi *m)
{
    for (size_t i = 0; i < m->action_count; i++)
        rq__multi_skip_cells(m, &m->actions[i]);
}

static rq_err region_answer_new(rq__multi *m)
{
    rq_arena *arena = &m->job.call->arena;
    Pb__RegionActionResult *answer = rq_arena_alloc(arena, sizeof *answer);
    if (answer == NULL) return RQ_E_NO_MEMORY;
    pb__region_action_result__init(answer);
    answer->resultorexception =
        rq_arena_alloc(arena, (m->action_count + 1) * sizeof(Pb__ResultOrException *));
    if (answer->resultorexception == NULL) return RQ_E_NO_MEMORY;
    m->response.regionactionresult[m->region_at] = answer;
    m->response.n_regionactionresult = m->region_at + 1;
    return RQ_OK;
}

static void leave_region(rq__multi *m)
{
    if (m->region != NULL) rq_region_unref(m->region);
    m->region = NULL;
    m->in_region = false;
    m->collecting = NULL;
    m->region_at++;
}

/* Enters the next region action. A failure is the region's answer, not the call's. */
static rq_err enter_region(rq__multi *m)
{
    const Pb__RegionAction *ra = rq__multi_region_action(m);
    const Pb__MultiRequest *request = rq__multi_request(m);
    rq_error why;
    rq_error_clear(&why);
    rq_region *region;
    rq_call_decoding(m->job.call, true);
    rq_err rc = classify_actions(m, ra);
    rq_call_decoding(m->job.call, false);
    if (rc != RQ_OK) return rc;
    RQ_TRY(region_answer_new(m));
    rc = rq__find_region_to_read(m->job.service, ra->region, &region, &m->stale, &why);
    if (rc != RQ_OK) {
        skip_region_cells(m);
        RQ_TRY(fail_region(m, rc, &why));
        leave_region(m);
        return RQ_OK;
    }
    m->region = rq_region_ref(region);
    m->in_region = true;
    m->action_at = 0;
    m->ahead = 0;
    /* Before 2.4 the request had one condition, for its only region action. */
    const Pb__Condition *condition = ra->condition != NULL ? ra->condition : request->condition;
    if (condition == NULL && !(ra->has_atomic && ra->atomic)) return RQ_OK;
    if (m->action_count == 0) {
        rq__multi_region_answer(m)->has_processed = 1;
        rq__multi_region_answer(m)->processed = 1;
        m->response.has_processed = 1;
        m->response.processed = 1;
    } else {
        rq_call_decoding(m->job.call, true);
        rc = rq__multi_begin_atomic(m, condition, &why);
        rq_call_decoding(m->job.call, false);
        if (rc != RQ_OK) RQ_TRY(fail_region(m, rc, &why));
    }
    leave_region(m);
    return RQ_OK;
}

/* --- single actions --------------------------------------------------------------------------- */

/* The answer is long while answers' memory is short: what is missing is asked for again. */
#define LONG_WHEN_SCARCE ((size_t)64 * 1024)

/* HBASE: RSRpcServices.doNonAtomicRegionMutation, for clients that retry at once. Of the answer's
 * bytes there is a limit for all clients. */
static bool too_much(const rq__multi *m)
{
    const rq_rpc_client *client = m->job.call->client;
    const rq_client_service *s = m->job.service;
    if (m->result_bytes > rq_ops_result_bytes_max(s->ops) || m->job.fetch_rc != RQ_OK) return true;
    if (m->result_bytes > LONG_WHEN_SCARCE && rq_call_answers_are_scarce(m->job.call)) return true;
    return client->retry_immediately && m->job.ctx.block_bytes_used > rq_ops_block_bytes_max(s->ops);
}

static rq_err refuse(rq__multi *m, const rq__action *action, rq_err rc, const rq_error *why)
{
    rq__multi_skip_cells(m, action);
    return rq__multi_add_exception(m, action->index, rc, why);
}

static rq_err refuse_more(rq__multi *m, const rq__action *action)
{
    rq_error why;
    rq_error_clear(&why);
    /* A client before 1.2 does not have that class. This one it retries, after a pause. */
    bool knows = m->job.call->client->retry_immediately;
    rq_err rc = rq_fail(&why, knows ? RQ_E_RESULT_TOO_LARGE : RQ_E_REGION_TOO_BUSY,
                        "Max size exceeded CellSize: %llu BlockSize: %llu",
                        (unsigned long long)m->result_bytes,
                        (unsigned long long)m->job.ctx.block_bytes_used);
    return refuse(m, action, rc, &why);
}

static rq_err work_get(rq__multi *m, const rq__action *action)
{
    rq_error why;
    rq_error_clear(&why);
    rq_err rc = rq__multi_begin_get(m, action, &why);
    if (rc == RQ_E_AGAIN && m->get_running) return rc;
    if (rc != RQ_OK) return rq__multi_add_exception(m, action->index, rc, &why);
    return m->get_running ? rq__multi_go_on_get(m, action) : rq__multi_answer_get(m, action);
}

static rq_err work_mutation(rq__multi *m, const rq__action *action, bool *ret_wait)
{
    rq_error why;
    rq_error_clear(&why);
    rq_call_decoding(m->job.call, true);
    rq_err rc = rq__multi_collect(m, action, ret_wait, &why);
    rq_call_decoding(m->job.call, false);
    if (rc != RQ_OK) return rq__multi_add_exception(m, action->index, rc, &why);
    if (*ret_wait) {
        m->action_at++; /* its end may walk on before this returns */
        rq__multi_submit_collected(m, true);
    }
    return RQ_OK;
}

static rq_err work_service(rq__multi *m, const rq__action *action, bool *ret_wait)
{
    rq_err rc = begin_service(m, action);
    if (rc != RQ_OK) return rq__multi_add_exception(m, action->index, rc, NULL);
    *ret_wait = true;
    return RQ_OK;
}

/* Works off one action. *ret_wait: a batch or a service call was handed over that must be done
 * before the next. */
static rq_err work_action(rq__multi *m, const rq__action *action, bool *ret_wait)
{
    rq_error why;
    rq_err rc;
    *ret_wait = false;
    if (too_much(m)) return refuse_more(m, action);
    switch (action->kind) {
    case RQ__ACTION_GET:
        return work_get(m, action);
    case RQ__ACTION_BATCHED:
    case RQ__ACTION_ALONE:
        return work_mutation(m, action, ret_wait);
    case RQ__ACTION_SERVICE:
        return work_service(m, action, ret_wait);
    case RQ__ACTION_AMBIGUOUS:
        rq_error_clear(&why);
        rc = rq_fail(&why, RQ_E_DO_NOT_RETRY,
                     "An action is one of a get, a mutation and a service call, not several");
        return refuse(m, action, rc, &why);
    case RQ__ACTION_EMPTY:
        break;
    }
    rq_error_clear(&why);
    rc = rq_fail(&why, RQ_E_IOEXCEPTION, "Unexpected Action type");
    return refuse(m, action, rc, &why);
}

/* --- the walk --------------------------------------------------------------------------------- */

void rq__multi_fail(rq__multi *m, rq_err rc)
{
    if (m->failed == RQ_OK) m->failed = rc;
}

static void fail_call(rq__multi *m, rq_err rc)
{
    /* Batches under way still answer into the arena: the call ends with the last of them. */
    rq__multi_fail(m, rc);
    m->walked = true;
    rq__multi_finish_if_done(m);
}

void rq__multi_finish_if_done(rq__multi *m)
{
    if (!m->walked || m->batches_running > 0) return;
    if (m->region != NULL) rq_region_unref(m->region);
    m->region = NULL;
    rq_cellblock_clear(&m->get_cells);
    rq_call *call = m->job.call;
    rq_err rc = m->failed;
    rq_slice packed;
    /* Without a codec the cells are in the message, which may be large: not twice then. */
    bool small = call->client->has_codec;
    if (rc == RQ_OK && small) rc = rq__pack_multi(&m->response, &call->arena, &packed);
    if (rc != RQ_OK)
        rq_call_fail(call, rc, NULL);
    else if (small)
        rq_call_reply_packed(call, packed);
    else
        rq_call_reply(call, &m->response.base);
}

/* True: goes on at once. */
static bool walk_region(rq__multi *m, rq_err *ret)
{
    if (m->action_at == m->action_count) {
        if (m->collecting != NULL) rq__multi_submit_collected(m, false);
        leave_region(m);
        return true;
    }
    const rq__action *action = &m->actions[m->action_at];
    bool wait = false;
    *ret = m->get_running ? rq__multi_go_on_get(m, action) : work_action(m, action, &wait);
    if (wait) return false;
    if (*ret == RQ_OK) m->action_at++;
    return *ret == RQ_OK;
}

/* Of an action, beside its cells. */
#define ACTION_STEPS 4

void rq__multi_walk(rq__multi *m)
{
    rq_executor *executor = m->job.service->env.executor;
    rq_err rc = RQ_OK;
    rq_meter_begin(&m->meter);
    while (m->region_at < rq__multi_request(m)->n_regionaction) {
        bool goes_on = m->in_region ? walk_region(m, &rc) : (rc = enter_region(m)) == RQ_OK;
        if (!goes_on && rc == RQ_OK) return; /* an awaited batch or service call walks on */
        if (!goes_on) break;
        if (!rq_meter_spent(&m->meter, executor, ACTION_STEPS)) continue;
        rc = RQ_E_AGAIN; /* another task goes on */
        break;
    }
    if (rc == RQ_E_AGAIN) {
        rq__read_job_wait(&m->job);
        return;
    }
    if (rc != RQ_OK) {
        fail_call(m, rc);
        return;
    }
    m->walked = true;
    rq__multi_finish_if_done(m);
}

static void step_multi(rq__read_job *job)
{
    rq__multi_walk(RQ_CONTAINER_OF(job, rq__multi, job));
}

static size_t count_actions(const Pb__MultiRequest *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_regionaction; i++)
        n += r->regionaction[i]->n_action;
    return n;
}

static rq_err begin_multi(rq_client_service *s, rq_call *call, rq__multi *m, rq_error *why)
{
    const Pb__MultiRequest *request = (const Pb__MultiRequest *)call->param;
    *m = (rq__multi){.cells = rq_cursor_of(call->cell_block)};
    RQ_TRY(rq__read_job_init(&m->job, s, call, step_multi));
    size_t actions = count_actions(request);
    if (actions > s->rows_warning) {
        char name[256] = "";
        rq_bytes_to_string(rq__pb_slice(request->regionaction[0]->region->value), name,
                           sizeof name);
        rq_log_warn(s->env.log, "service",
                    "Large batch operation detected (greater than %llu) (HBASE-18023). Requested "
                    "Number of Rows: %zu Client: %s/%s first region in multi=%s",
                    (unsigned long long)s->rows_warning, actions, call->client->user,
                    call->client->host, name);
        if (s->rows_reject)
            return rq_fail(why, RQ_E_IOEXCEPTION,
                           "Rejecting large batch operation for current batch with "
                           "firstRegionName: %s , Requested Number of Rows: %zu , Size Threshold: "
                           "%llu",
                           name, actions, (unsigned long long)s->rows_warning);
    }
    pb__multi_response__init(&m->response);
    pb__multi_region_load_stats__init(&m->stats);
    pb__result__init(&m->nothing);
    m->response.regionstatistics = &m->stats;
    m->response.regionactionresult = rq_arena_alloc(
        &call->arena, (request->n_regionaction + 1) * sizeof(Pb__RegionActionResult *));
    if (m->response.regionactionresult == NULL) return RQ_E_NO_MEMORY;
    if (request->condition != NULL && request->n_regionaction == 0) {
        m->response.has_processed = 1;
        m->response.processed = 1;
    }
    return RQ_OK;
}

void rq__handle_multi(void *ctx, rq_call *call)
{
    rq_error why;
    rq_error_clear(&why);
    rq__multi *m = rq_arena_alloc(&call->arena, sizeof *m);
    rq_err rc = m == NULL ? RQ_E_NO_MEMORY : begin_multi(ctx, call, m, &why);
    if (rc != RQ_OK) {
        rq_call_fail_why(call, rc, &why);
        return;
    }
    rq__multi_walk(m);
}
