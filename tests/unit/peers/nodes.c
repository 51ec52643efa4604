/* SPDX-License-Identifier: Apache-2.0 */
/* See nodes.h. */
#include "nodes.h"

#include "net/answers.h"

rq_secret secret_of(const char *text)
{
    rq_secret s;
    rq_slice bytes = rq_slice_cstr(text);
    rq_hmac_sha256(rq_slice_cstr("tests"), &bytes, 1, s.key);
    return s;
}

/* The parameter, then the cells. */
static void echo_entries(void *ctx, rq_call *call)
{
    rq_slice message = rq_call_param_bytes(call);
    uint8_t *bytes = rq_arena_alloc(&call->arena, message.len + call->cell_block.len + 1);
    (void)ctx;
    assert_non_null(bytes);
    if (message.len > 0) memcpy(bytes, message.ptr, message.len);
    if (call->cell_block.len > 0)
        memcpy(bytes + message.len, call->cell_block.ptr, call->cell_block.len);
    rq_call_reply_packed(call, rq_slice_of(bytes, message.len + call->cell_block.len));
}

static void open_server(node *n)
{
    const rq_peer_service_options service = {.secret = &n->secret,
                                             .names = &n->name,
                                             .name_count = 1,
                                             .sides = n->sides,
                                             .apply = echo_entries};
    assert_int_equal(rq_peer_service_new(&service, &n->service), RQ_OK);
    const rq_rpc_service table = rq_peer_service_methods(n->service);
    const rq_rpc_server_options server = {
        .loops = n->loops, .budget = n->budget, .services = &table, .service_count = 1};
    assert_int_equal(rq_rpc_server_open(&server, &n->server, NULL), RQ_OK);
    n->port = rq_rpc_server_port(n->server);
}

static bool may_answer(void *ctx)
{
    node *n = ctx;
    return !atomic_load(&n->lease_expired);
}

void node_start(node *n, const char *secret, int64_t start_code, unsigned timeout_ms)
{
    const rq_loops_options loops = {.count = 2};
    *n = (node){.secret = secret_of(secret)};
    assert_int_equal(rq_loops_new(&loops, &n->loops), RQ_OK);
    assert_int_equal(rq_budget_new((size_t)1 << 28, &n->budget), RQ_OK);
    assert_int_equal(rq_sides_new(NULL, &n->sides), RQ_OK);
    rq_loops_hold_answers(n->loops, may_answer, n);
    assert_int_equal(rq_loops_start(n->loops), RQ_OK);
    open_server(n);
    const rq_server_name name = {.host = "127.0.0.1", .port = n->port, .start_code = start_code};
    n->name = rq_server_name_new(&name);
    assert_non_null(n->name);
    const rq_peers_options peers = {
        .loop = rq_loops_get(n->loops, 0), .secret = &n->secret, .timeout_ms = timeout_ms};
    assert_int_equal(rq_peers_new(&peers, &n->peers), RQ_OK);
}

void node_rename(node *n, const rq_server_name *name)
{
    rq_server_name_unref(n->name);
    n->name = rq_server_name_new(name);
    assert_non_null(n->name);
}

void node_stop_calling(node *n)
{
    rq_peers_stop(n->peers);
}

void node_stop(node *n)
{
    rq_peers_stop(n->peers);
    rq_rpc_server_close(n->server);
    rq_loops_stop(n->loops);
    rq_peers_free(n->peers);
    rq_loops_free(n->loops);
    rq_peer_service_free(n->service);
    rq_sides_free(n->sides);
    assert_int_equal(rq_budget_used(n->budget), 0);
    rq_budget_free(n->budget);
    rq_server_name_unref(n->name);
}

static void ended(rq_peer_call *c, rq_err rc, const rq_error *why, rq_slice answer)
{
    asked *a = RQ_CONTAINER_OF(c, asked, call);
    pthread_mutex_lock(&a->lock);
    a->ended++;
    a->rc = rc;
    a->why = *why;
    assert_int_equal(rq_buf_append(&a->answer, answer.ptr, answer.len), RQ_OK);
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

void ask_begin(asked *a, node *from, const rq_server_name *to, const char *method, rq_slice request)
{
    ask_begin_with(a, from, to, method, request, (rq_slice){0});
}

void ask_begin_with(asked *a, node *from, const rq_server_name *to, const char *method,
                    rq_slice request, rq_slice cells)
{
    *a = (asked){.call = {.from = from->name,
                          .to = to,
                          .method = method,
                          .request = request,
                          .cells = cells,
                          .done = ended}};
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->changed, NULL);
    rq_peers_call(from->peers, &a->call);
}

rq_err ask_end(asked *a)
{
    pthread_mutex_lock(&a->lock);
    while (a->ended == 0)
        pthread_cond_wait(&a->changed, &a->lock);
    assert_int_equal(a->ended, 1);
    pthread_mutex_unlock(&a->lock);
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
    rq_buf_clear(&a->answer);
    return a->rc;
}

rq_err ask(node *from, const rq_server_name *to, const char *method, rq_slice request,
           rq_error *why)
{
    asked a;
    ask_begin(&a, from, to, method, request);
    rq_err rc = ask_end(&a);
    if (why != NULL) *why = a.why;
    return rc;
}
