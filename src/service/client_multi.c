/* SPDX-License-Identifier: Apache-2.0 */
/* Multi: the request's region actions become the groups of a batch op, its actions their parts
 * (ops/batch.h). HBASE: RSRpcServices.multi.
 *
 * The kind of an action is determined once, when its region action is entered. Later code does not
 * look at the request's Action, because a client may set any combination of its optional fields. In
 * a decoded part, `request` is the get or service call, and `cells` the mutation's position if its
 * cells are in the cell block.
 *
 * A part with many columns or cells, and an atomic group of many, is translated on a pool (apart.h): the same
 * function as otherwise runs there, and the batch then takes its result. */
#include "service/client_multi_priv.h"

#include "service/apart.h"
#include "service/effort.h"
#include "service/endpoint.h"

static const Pb__MultiRequest *request_of(const rq__multi *m)
{
    return (const Pb__MultiRequest *)rq__multi_call(m)->param;
}

static bool is_read_modify_write(const Pb__MutationProto *m)
{
    rq_mutation_type type = rq__mutation_type(m);
    return type == RQ_MUTATE_APPEND || type == RQ_MUTATE_INCREMENT;
}

/* --- groups ----------------------------------------------------------------------------------- */

/* A part of kind OTHER is a service call if `request` is its message; otherwise the action is invalid: if `request` is
 * NULL none of get, mutation and service_call is set, if it is `several` more than one is. */
static const char several[] = "several";

static rq_batch_part classify(const Pb__Action *a)
{
    rq_batch_part p = {.kind = RQ_PART_OTHER, .index = a->index, .cells = a->mutation};
    int count = (a->get != NULL) + (a->mutation != NULL) + (a->service_call != NULL);
    if (count > 1) {
        p.request = several;
    } else if (a->get != NULL) {
        p.kind = RQ_PART_GET;
        p.is_long = rq__get_is_long(a->get);
        p.request = a->get;
        p.row = rq__pb_slice(a->get->row);
    } else if (a->mutation != NULL) {
        p.kind = is_read_modify_write(a->mutation) ? RQ_PART_ALONE : RQ_PART_COLLECTED;
        p.is_long = rq__mutation_is_long(a->mutation);
    } else {
        p.request = a->service_call;
    }
    return p;
}

static rq_err begin_to_classify(rq__multi *m, const Pb__RegionAction *ra)
{
    rq_call *call = rq__multi_call(m);
    rq_call_decoding(call, true);
    m->entered = rq_arena_alloc(&call->arena, ra->n_action * sizeof *m->entered);
    rq_call_decoding(call, false);
    m->entered_count = 0;
    m->announced = 0;
    return m->entered == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

/* Actions classified between two looks at the clock. Each costs some cache misses, because another thread has decoded
 * the long message. */
#define CLASSIFIED_AT_ONCE 64

static uint64_t announced_by(const Pb__Action *a)
{
    const Pb__MutationProto *m = a->mutation;
    bool has_any = m != NULL && m->has_associated_cell_count && m->associated_cell_count > 0;
    return has_any ? (uint64_t)m->associated_cell_count : 0;
}

/* RQ_E_AGAIN: the time slice is over. */
static rq_err classify_actions(rq__multi *m, const Pb__RegionAction *ra)
{
    rq_op_batch *b = &m->batch;
    if (m->entered == NULL) RQ_TRY(begin_to_classify(m, ra));
    while (m->entered_count < ra->n_action) {
        size_t end = m->entered_count + CLASSIFIED_AT_ONCE;
        if (end > ra->n_action) end = ra->n_action;
        for (size_t i = m->entered_count; i < end; i++) {
            m->entered[i] = classify(ra->action[i]);
            m->announced += announced_by(ra->action[i]);
        }
        m->entered_count = end;
        if (end < ra->n_action &&
            rq_meter_spent(&b->meter, b->read.op.seat->executor, CLASSIFIED_AT_ONCE))
            return RQ_E_AGAIN;
    }
    b->parts = m->entered;
    b->part_count = ra->n_action;
    m->entered = NULL;
    return RQ_OK;
}

/* Whether an atomic group takes long to decode. */
static bool group_is_long(const rq__multi *m)
{
    const rq_op_batch *b = &m->batch;
    size_t n = m->condition == NULL ? 0 : rq__elements_of_condition(m->condition);
    for (size_t i = 0; i < b->part_count && n <= RQ__ELEMENTS_AT_ONCE; i++)
        n += b->parts[i].cells == NULL ? 1 : 1 + rq__elements_of_mutation(b->parts[i].cells);
    return n > RQ__ELEMENTS_AT_ONCE;
}

/* Skips the action's cells in the request's cell block. */
static void skip(rq_op_batch *b, const rq_batch_part *p)
{
    if (p->cells != NULL) rq__skip_cells(p->cells, &rq__multi_of(b)->cells);
}

/* Skips the cells of the whole group. */
static void skip_group(rq__multi *m)
{
    rq_cell cell;
    for (uint64_t i = 0; i < m->announced; i++)
        if (rq_cellblock_next(&m->cells, &cell, NULL) != RQ_OK) return;
}

static rq_err enter(rq_op_batch *b)
{
    rq__multi *m = rq__multi_of(b);
    const Pb__MultiRequest *request = request_of(m);
    const Pb__RegionAction *ra = request->regionaction[b->group_at];
    rq_error why;
    rq_error_clear(&why);
    RQ_TRY(classify_actions(m, ra));
    RQ_TRY(rq__multi_new_group(m, b->part_count));
    rq_err rc = rq__find_region_to_read(m->service, ra->region, &b->region, &m->stale, &why);
    if (rc != RQ_OK) {
        skip_group(m);
        b->region = NULL;
        return rq__multi_group_failed(b, rc, &why);
    }
    m->condition = request->condition != NULL ? request->condition : ra->condition;
    b->has_condition = m->condition != NULL;
    b->is_atomic = b->has_condition || (ra->has_atomic && ra->atomic);
    b->is_long = b->is_atomic && group_is_long(m);
    if (b->is_atomic && b->part_count == 0) {
        Pb__RegionActionResult *group = b->group;
        group->has_processed = group->processed = 1;
        m->response.has_processed = m->response.processed = 1;
    }
    return RQ_OK;
}

/* --- parts ------------------------------------------------------------------------------------ */

/* The result of decode_get, decode_write or decode_atomic on a pool. */
typedef struct rq__translation {
    rq__apart apart;
    rq_op_batch *batch;
    const rq_batch_part *part; /* NULL: all of an atomic group */
    rq_scan scan;
    rq_mutation mutation;
    uint64_t nonce;
    rq_row_op row;
    rq_err rc;
    rq_error why;
} rq__translation;

RQ_COLD static const rq__translation *translated(const rq_op_batch *b, rq_error *why)
{
    const rq__translation *t = RQ_CONTAINER_OF(b, rq__multi, batch)->translation;
    *why = t->why;
    return t;
}

RQ_COLD static rq_err take_get(const rq_op_batch *b, rq_scan *ret, rq_error *why)
{
    const rq__translation *t = translated(b, why);
    *ret = t->scan;
    return t->rc;
}

RQ_COLD static rq_err take_write(const rq_op_batch *b, rq_mutation *ret, uint64_t *ret_nonce,
                                 rq_error *why)
{
    const rq__translation *t = translated(b, why);
    *ret = t->mutation;
    *ret_nonce = t->nonce;
    return t->rc;
}

RQ_COLD static rq_err take_atomic(const rq_op_batch *b, rq_row_op *ret, rq_error *why)
{
    const rq__translation *t = translated(b, why);
    *ret = t->row;
    return t->rc;
}

static rq_err decode_get(rq_op_batch *b, const rq_batch_part *p, rq_scan *ret, rq_error *why)
{
    if (RQ_UNLIKELY(b->is_translated)) return take_get(b, ret, why);
    const Pb__Get *get = p->request;
    rq_call *call = rq__multi_call(rq__multi_of(b));
    if (get->has_closest_row_before && get->closest_row_before)
        return rq_fail(why, RQ_E_UNKNOWN_PROTOCOL,
                       "Is this a pre-hbase-1.0.0 or asynchbase client? Client is invoking "
                       "getClosestRowBefore removed in hbase-2.0.0 replaced by reverse Scan.");
    rq_call_decoding(call, true);
    rq_err rc = rq__decode_get(get, b->region, &call->arena, ret, why);
    rq_call_decoding(call, false);
    return rc;
}

static rq_err decode_write(rq_op_batch *b, const rq_batch_part *p, rq_mutation *ret,
                           uint64_t *ret_nonce, rq_error *why)
{
    if (RQ_UNLIKELY(b->is_translated)) return take_write(b, ret, ret_nonce, why);
    rq__multi *m = rq__multi_of(b);
    rq_call *call = rq__multi_call(m);
    rq_cursor before = m->cells;
    rq_call_decoding(call, true);
    rq_err rc = m->stale ? rq__fail_read_only(why)
                         : rq__decode_mutation(p->cells, b->region, &m->cells,
                                               rq_region_cell_bytes_max(b->region), b->write_arena,
                                               ret, ret_nonce, why);
    rq_call_decoding(call, false);
    if (rc == RQ_OK) return rc;
    m->cells = before; /* in any case the next action must find its own cells */
    skip(b, p);
    return rc;
}

static rq_err decode_mutations(rq_op_batch *b, rq_cursor cells, rq_row_op *ret, rq_error *why)
{
    rq__multi *m = rq__multi_of(b);
    rq_arena *arena = b->read.op.arena;
    ret->mutations = rq_arena_alloc(arena, b->part_count * sizeof *ret->mutations);
    if (ret->mutations == NULL) return RQ_E_NO_MEMORY;
    if (m->stale) return rq__fail_read_only(why);
    for (size_t i = 0; i < b->part_count; i++) {
        const rq_batch_part *p = &b->parts[i];
        uint64_t nonce;
        if (p->kind == RQ_PART_GET)
            return rq_fail(why, RQ_E_DO_NOT_RETRY, "Atomic put and/or delete only, not a Get");
        if (!rq_batch_part_writes(p))
            return rq_fail(why, RQ_E_DO_NOT_RETRY, "Atomic put and/or delete only");
        RQ_TRY(rq__decode_mutation(p->cells, b->region, &cells, rq_region_cell_bytes_max(b->region),
                                   arena, &ret->mutations[i], &nonce, why));
        if (nonce != 0) ret->nonce = nonce;
    }
    ret->mutation_count = b->part_count;
    return RQ_OK;
}

static rq_err decode_condition(rq__multi *m, rq_row_op *ret, rq_error *why)
{
    rq_arena *arena = m->batch.read.op.arena;
    rq_condition *c = rq_arena_alloc(arena, sizeof *c);
    if (c == NULL) return RQ_E_NO_MEMORY;
    RQ_TRY(rq__decode_condition(m->condition, arena, c, why));
    RQ_TRY(rq__check_condition_row(c, ret->mutations[0].row, why));
    ret->conditions = c;
    ret->condition_count = 1;
    return RQ_OK;
}

static rq_err decode_atomic(rq_op_batch *b, rq_row_op *ret, rq_error *why)
{
    if (RQ_UNLIKELY(b->is_translated)) return take_atomic(b, ret, why);
    rq__multi *m = rq__multi_of(b);
    rq_call *call = rq__multi_call(m);
    rq_call_decoding(call, true);
    rq_err rc = decode_mutations(b, m->cells, ret, why);
    if (rc == RQ_OK && m->condition != NULL) rc = decode_condition(m, ret, why);
    rq_call_decoding(call, false);
    skip_group(m); /* in any case the next region action must find its own cells */
    ret->nonce_group = b->nonce_group;
    return rc;
}

static void translate_apart(rq__apart *a)
{
    rq__translation *t = RQ_CONTAINER_OF(a, rq__translation, apart);
    rq_op_batch *b = t->batch;
    const rq_batch_part *p = t->part;
    if (p == NULL)
        t->rc = decode_atomic(b, &t->row, &t->why);
    else if (p->kind == RQ_PART_GET)
        t->rc = decode_get(b, p, &t->scan, &t->why);
    else
        t->rc = decode_write(b, p, &t->mutation, &t->nonce, &t->why);
}

static void translated_apart(rq__apart *a)
{
    rq_op_batch_translated(RQ_CONTAINER_OF(a, rq__translation, apart)->batch);
}

static rq_err translate(rq_op_batch *b, const rq_batch_part *p)
{
    rq__multi *m = rq__multi_of(b);
    if (m->translation == NULL)
        m->translation = rq_arena_alloc(b->read.op.arena, sizeof *m->translation);
    rq__translation *t = m->translation;
    if (t == NULL) return RQ_E_NO_MEMORY;
    t->batch = b;
    t->part = p;
    t->nonce = 0;
    t->row = (rq_row_op){.result = {.with_tags = b->with_tags}};
    rq_error_clear(&t->why);
    rq__apart_start(&t->apart, m->service->env.executor, rq__multi_call(m), translate_apart,
                    translated_apart);
    return RQ_OK;
}

/* The batch waited for it. */
static void service_done(rq__endpoint *e)
{
    rq__multi *m = e->user;
    rq_op_batch *b = &m->batch;
    const rq_batch_part *p = &b->parts[b->part_at];
    rq_err rc = e->rc != RQ_OK
                    ? rq__multi_failed(b, p, e->rc, &e->why)
                    : rq__multi_add_service_result(m, p->index, e->response_class, e->response);
    rq_op_batch_go_on(b, rc);
}

static rq_err begin_other(rq_op_batch *b, const rq_batch_part *p, rq_error *why)
{
    rq__multi *m = rq__multi_of(b);
    if (p->request == NULL) return rq_fail(why, RQ_E_HBASE_IO, "Unexpected Action type");
    if (p->request == several)
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "An action is one of a get, a mutation and a service call, not several");
    rq__endpoint *e = rq_arena_alloc(b->read.op.arena, sizeof *e);
    if (e == NULL) return RQ_E_NO_MEMORY;
    e->service = m->service;
    e->call = rq__multi_call(m);
    e->region = b->region;
    e->done = service_done;
    e->user = m;
    rq__endpoint_start(e, p->request);
    return RQ_OK;
}

/* --- the call --------------------------------------------------------------------------------- */

static const rq_batch_caller of_multi = {
    .enter = enter,
    .translate = translate,
    .get = decode_get,
    .write = decode_write,
    .atomic = decode_atomic,
    .skip = skip,
    .other = begin_other,
    .got = rq__multi_got,
    .written = rq__multi_written,
    .atomic_written = rq__multi_atomic_written,
    .failed = rq__multi_failed,
    .group_failed = rq__multi_group_failed,
};

static void multi_done(rq_op *op)
{
    rq__multi *m = RQ_CONTAINER_OF(op, rq__multi, batch.read.op);
    rq_cellblock_clear(&m->get_cells);
    if (op->rc != RQ_OK)
        rq_call_fail(rq__call_of_op(op), op->rc, NULL);
    else
        rq__multi_reply(m);
}

/* Region actions that are counted on the loop. */
#define COUNTED_AT_ONCE 1024

static size_t count_actions(const Pb__MultiRequest *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_regionaction; i++)
        n += r->regionaction[i]->n_action;
    return n;
}

RQ_COLD static rq_err warn_of_size(const rq__multi *m, size_t actions, rq_error *why)
{
    rq_client_service *s = m->service;
    const rq_rpc_client *client = rq__multi_call(m)->client;
    char name[256] = "";
    rq_bytes_to_string(rq__pb_slice(request_of(m)->regionaction[0]->region->value), name,
                       sizeof name);
    rq_log_write_limited(
        s->env.log, &s->large_batches, RQ_LOG_WARN, "service",
        "Large batch operation detected (greater than %llu) (HBASE-18023). Requested "
        "Number of Rows: %zu Client: %s/%s first region in multi=%s",
        (unsigned long long)s->rows_warning, actions, client->user, client->host, name);
    if (!s->rows_reject) return RQ_OK;
    return rq_fail(why, RQ_E_IOEXCEPTION,
                   "Rejecting large batch operation for current batch with firstRegionName: %s , "
                   "Requested Number of Rows: %zu , Size Threshold: %llu",
                   name, actions, (unsigned long long)s->rows_warning);
}

/* Clients before 2.4 send one condition per request, for its only region action. HBase ignores the other
 * ones; here nothing of such a request is executed. */
static rq_err check_condition(const Pb__MultiRequest *r, rq_error *why)
{
    if (r->condition == NULL || r->n_regionaction <= 1) return RQ_OK;
    return rq_fail(why, RQ_E_DO_NOT_RETRY,
                   "a Multi with a condition of its own has one region action, not %zu",
                   r->n_regionaction);
}

static rq_err begin_multi(rq__multi *m, rq_call *call, rq_error *why)
{
    const Pb__MultiRequest *request = request_of(m);
    RQ_TRY(check_condition(request, why));
    if (m->action_count > m->service->rows_warning) RQ_TRY(warn_of_size(m, m->action_count, why));
    pb__multi_response__init(&m->response);
    pb__multi_region_load_stats__init(&m->stats);
    pb__result__init(&m->nothing);
    m->response.regionstatistics = &m->stats;
    m->response.regionactionresult = rq_arena_alloc(
        &call->arena, (request->n_regionaction + 1) * sizeof(Pb__RegionActionResult *));
    if (m->response.regionactionresult == NULL) return RQ_E_NO_MEMORY;
    if (request->condition != NULL && request->n_regionaction == 0)
        m->response.has_processed = m->response.processed = 1;
    m->cells = rq_cursor_of(call->cell_block);
    m->batch.table = &of_multi;
    m->batch.group_count = request->n_regionaction;
    m->batch.nonce_group = request->has_noncegroup ? request->noncegroup : 0;
    m->batch.out = call->client->has_codec ? &call->cells : &m->get_cells;
    m->batch.with_tags = call->client->codec_with_tags;
    /* The limit of block bytes applies only to clients that retry a refused part without a pause. The limit of the
     * answer's bytes applies to all clients. */
    m->batch.stops_at_blocks = call->client->retry_immediately;
    return RQ_OK;
}

static void start_multi(rq__multi *m, rq_call *call)
{
    rq_op *op = &m->batch.read.op;
    op->rc = begin_multi(m, call, &op->why);
    if (op->rc == RQ_OK)
        rq_op_batch_start(&m->batch);
    else
        rq__fail_call_of_op(op);
}

static void count_apart(rq__apart *a)
{
    RQ_CONTAINER_OF(a, rq__multi, apart)->action_count =
        count_actions((const Pb__MultiRequest *)a->call->param);
}

static void counted_apart(rq__apart *a)
{
    start_multi(RQ_CONTAINER_OF(a, rq__multi, apart), a->call);
}

void rq__handle_multi(void *ctx, rq_call *call)
{
    rq_client_service *s = ctx;
    rq__multi *m = rq_arena_calloc(&call->arena, 1, sizeof *m);
    if (m == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    rq_op *op = &m->batch.read.op;
    rq__op_of_call(op, RQ_OP_BATCH, rq__seat(s, call), call, multi_done);
    m->service = s;
    if (RQ_UNLIKELY(request_of(m)->n_regionaction > COUNTED_AT_ONCE)) {
        rq__apart_start(&m->apart, s->env.executor, call, count_apart, counted_apart);
        return;
    }
    m->action_count = count_actions(request_of(m));
    start_multi(m, call);
}
