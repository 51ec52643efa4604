/* SPDX-License-Identifier: Apache-2.0 */
/* The tests' ClientService; see toy_service.h. */
#include "toy_service.h"

#include "../net/frames.h"
#include "../net/relay.h"
#include "proto/client.pb-c.h"
#include "../base/unit.h"

#include <unistd.h>

static void reply_row(rq_call *call)
{
    const Pb__GetRequest *request = (const Pb__GetRequest *)call->param;
    Pb__Cell cell = PB__CELL__INIT;
    Pb__Cell *cells[] = {&cell};
    cell.has_row = true;
    cell.row = request->get->row;
    Pb__Result result = PB__RESULT__INIT;
    result.n_cell = 1;
    result.cell = cells;
    Pb__GetResponse response = PB__GET_RESPONSE__INIT;
    response.result = &result;
    rq_call_reply(call, &response.base);
}

static void run_reply(rq_task *task)
{
    reply_row(RQ_CONTAINER_OF(task, rq_call, task));
}

static void post_reply(rq_call *call)
{
    call->task.run = run_reply;
    rq_call_post(call, &call->task);
}

static void *late_main(void *arg)
{
    toy *t = arg;
    pthread_mutex_lock(&t->lock);
    for (;;) {
        while (t->late_count == 0 && !atomic_load(&t->closing))
            pthread_cond_wait(&t->late_changed, &t->lock);
        if (t->late_count == 0) break;
        rq_call *call = t->late[--t->late_count];
        pthread_mutex_unlock(&t->lock);
        usleep(20000);
        post_reply(call);
        pthread_mutex_lock(&t->lock);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

static void keep(toy *t, rq_call *call, rq_call **list, unsigned *count)
{
    pthread_mutex_lock(&t->lock);
    list[(*count)++] = call;
    pthread_cond_signal(&t->late_changed);
    pthread_mutex_unlock(&t->lock);
}

static void add_cell(rq_call *call, size_t value_len)
{
    uint8_t *value = rq_arena_calloc(&call->arena, 1, value_len);
    rq_cell c = {.row = (const uint8_t *)"r",
                 .row_len = 1,
                 .family = (const uint8_t *)"f",
                 .family_len = 1,
                 .value = value,
                 .value_len = (uint32_t)value_len,
                 .type = RQ_TYPE_PUT};
    assert_int_equal(rq_cellblock_append(&call->cells, &c), RQ_OK);
}

#define PIECE ((size_t)50000)

static void reply_cells(rq_call *call)
{
    Pb__Result result = PB__RESULT__INIT;
    result.has_associated_cell_count = true;
    result.associated_cell_count = (int32_t)call->cells.count;
    Pb__GetResponse response = PB__GET_RESPONSE__INIT;
    response.result = &result;
    rq_call_reply(call, &response.base);
}

static void reply_big(rq_call *call, const char *number)
{
    for (size_t left = (size_t)atol(number); left > 0; left -= left < PIECE ? left : PIECE)
        add_cell(call, left < PIECE ? left : PIECE);
    reply_cells(call);
}

struct growth {
    rq_task task;
    rq_call *call;
    size_t left;
};

static void run_growth(rq_task *task)
{
    struct growth *g = RQ_CONTAINER_OF(task, struct growth, task);
    size_t held = g->call->cells.bytes.len;
    size_t n = g->left < PIECE ? g->left : PIECE;
    rq_err rc = rq_call_may_grow(g->call, held, held + n, &g->task);
    if (rc == RQ_E_AGAIN) return;
    if (rc != RQ_OK) {
        rq_call_fail(g->call, rc, NULL);
        return;
    }
    add_cell(g->call, n);
    g->left -= n;
    if (g->left == 0)
        reply_cells(g->call);
    else
        rq_loop_defer(g->call->loop, &g->task);
}

static void grow(rq_call *call, const char *number)
{
    struct growth *g = rq_arena_alloc(&call->arena, sizeof *g);
    *g = (struct growth){{NULL, run_growth}, call, (size_t)atol(number)};
    run_growth(&g->task);
}

/* Allocates `number` bytes from the call's arena in small pieces. */
static void eat(rq_call *call, const char *number)
{
    for (size_t left = (size_t)atol(number); left >= PIECE; left -= PIECE)
        if (rq_arena_alloc(&call->arena, PIECE) == NULL) {
            rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
            return;
        }
    reply_row(call);
}

static void handle_get(void *ctx, rq_call *call)
{
    toy *t = ctx;
    const Pb__GetRequest *request = (const Pb__GetRequest *)call->param;
    const char *row =
        rq_arena_cstr(&call->arena, rq_slice_of(request->get->row.data, request->get->row.len));
    rq_rpc_exception moved = {
        .java_class = "org.apache.hadoop.hbase.exceptions.RegionMovedException",
        .message = "Region moved to: hostname=h port=7 startCode=1.",
        .hostname = "h",
        .port = 7,
    };
    atomic_fetch_add(&t->seen, 1);
    assert_ptr_equal(rq_call_in_hand(), call);
    if (strcmp(row, "fail") == 0)
        rq_call_fail(call, RQ_E_NOT_SERVING_REGION, "%s is not online", "r");
    else if (strcmp(row, "moved") == 0)
        rq__call_throw(call, &moved);
    else if (strcmp(row, "never") == 0)
        rq_call_drop(call);
    else if (strcmp(row, "later") == 0)
        keep(t, call, t->late, &t->late_count);
    else if (strcmp(row, "hold") == 0)
        keep(t, call, t->held, &t->held_count);
    else if (strncmp(row, "big:", 4) == 0)
        reply_big(call, row + 4);
    else if (strncmp(row, "grow:", 5) == 0)
        grow(call, row + 5);
    else if (strncmp(row, "eat:", 4) == 0)
        eat(call, row + 4);
    else
        reply_row(call);
}

static void handle_multi(void *ctx, rq_call *call)
{
    (void)ctx;
    rq_cursor c = rq_cursor_of(call->cell_block);
    rq_cell cell;
    rq_err rc;
    while ((rc = rq_cellblock_next(&c, &cell, NULL)) == RQ_OK)
        assert_int_equal(rq_cellblock_append(&call->cells, &cell), RQ_OK);
    if (rc != RQ_E_END) {
        rq_call_fail(call, RQ_E_DO_NOT_RETRY, "malformed cell block");
        return;
    }
    Pb__MultiResponse response = PB__MULTI_RESPONSE__INIT;
    rq_call_reply(call, &response.base);
}

static const rq_rpc_method methods[] = {
    {"Multi", &pb__multi_request__descriptor, handle_multi},
    {"Get", &pb__get_request__descriptor, handle_get},
    {"Mutate", &pb__mutate_request__descriptor, NULL},
    {"GetShort", &pb__get_request__descriptor, handle_get},
};

static const rq_rpc_param_limit short_get = {"GetShort", RQ_RPC_PARAM_SHORT};

/* Called before the request is released: its message can still be read. */
static void ended(void *ctx, const rq_call *call, const ProtobufCMessage *response,
                  const rq_rpc_exception *failure)
{
    toy *t = ctx;
    assert_non_null(call->method);
    assert_true(response == NULL || failure == NULL);
    if (failure == NULL) assert_ptr_equal(call->param->descriptor, call->method->request);
    atomic_fetch_add(failure == NULL ? &t->ended : &t->failed, 1);
}

static void expect(void *ctx, const rq_slice *messages, size_t count)
{
    toy *t = ctx;
    (void)messages;
    atomic_fetch_add(&t->expected, (unsigned)count);
}

void toy_start(toy *t, const toy_options *o)
{
    memset(t, 0, sizeof *t);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->late_changed, NULL);
    rq_loops_options lo = {.count = o->loops > 0 ? o->loops : 2, .restless = o->restless};
    assert_int_equal(rq_loops_new(&lo, &t->loops), RQ_OK);
    assert_int_equal(rq_loops_start(t->loops), RQ_OK);
    size_t budget = o->budget_bytes > 0 ? o->budget_bytes : (size_t)1 << 30;
    assert_int_equal(rq_budget_new(budget, &t->budget), RQ_OK);
    if (o->answers_bytes > 0) {
        assert_int_equal(rq_budget_new(o->answers_bytes, &t->answers), RQ_OK);
        assert_int_equal(rq_budget_new(o->answers_bytes, &t->unread), RQ_OK);
    }
    rq_rpc_service service = {.name = "ClientService",
                              .methods = methods,
                              .method_count = RQ_ARRAY_LEN(methods),
                              .ctx = t,
                              .param_limits = &short_get,
                              .param_limit_count = 1,
                              .expect = expect,
                              .ended = ended};
    rq_rpc_server_options so = {
        .loops = t->loops,
        .budget = t->budget,
        .answers = t->answers,
        .unread = t->unread,
        .services = &service,
        .service_count = 1,
        .cluster_id = "the-cluster",
        .request_bytes_max = o->request_bytes_max,
        .out_bytes_max = o->out_bytes_max,
    };
    const char *below = getenv("TOY_BELOW");
    rq_transform_kind frames = {.make = frames_make, .budget = t->budget};
    bool framed = below != NULL && strstr(below, "frames") != NULL;
    if (framed) so.transform = &frames;
    assert_int_equal(rq_rpc_server_open(&so, &t->server, NULL), RQ_OK);
    relay_options relay = {.frames = framed};
    if (below != NULL && strstr(below, "memory") != NULL)
        relay.listener = rq_rpc_server_listener(t->server);
    if (below != NULL) relay_begin(&relay);
    t->port = rq_rpc_server_port(t->server);
    assert_int_equal(pthread_create(&t->late_thread, NULL, late_main, t), 0);
}

unsigned toy_release(toy *t)
{
    pthread_mutex_lock(&t->lock);
    unsigned n = t->held_count;
    t->held_count = 0;
    for (unsigned i = 0; i < n; i++)
        post_reply(t->held[i]);
    pthread_mutex_unlock(&t->lock);
    return n;
}

void toy_stop(toy *t)
{
    toy_release(t);
    rq_rpc_server_close(t->server);
    relay_end();
    pthread_mutex_lock(&t->lock);
    atomic_store(&t->closing, true);
    pthread_cond_signal(&t->late_changed);
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->late_thread, NULL);
    rq_loops_stop(t->loops);
    rq_loops_free(t->loops);
    rq_budget *budgets[] = {t->budget, t->answers, t->unread};
    for (size_t i = 0; i < RQ_ARRAY_LEN(budgets); i++) {
        if (budgets[i] == NULL) continue;
        assert_int_equal(rq_budget_used(budgets[i]), 0);
        rq_budget_free(budgets[i]);
    }
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->late_changed);
}
