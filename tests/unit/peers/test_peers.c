/* SPDX-License-Identifier: Apache-2.0 */
/* Connections between servers: accepted and refused peers; calls to servers that do not respond, do
 * not read, have another name than claimed, or restart. Each call ends once. */
#include "../rpc/rpc_peer.h"
#include "fake_server.h"
#include "nodes.h"

#include "cluster/wire.h"
#include "proto/admin.pb-c.h"
#include "proto/cluster.pb-c.h"
#include "proto/region_server_status.pb-c.h"

#include <unistd.h>

#define SECRET "the secret of this cluster"
#define DENIED "org.apache.hadoop.hbase.security.AccessDeniedException"
#define REFUSED_TEXT "connections that have proven the cluster's secret"

/* A master's side on real threads. */
typedef struct masters {
    rq_executor *executor;
    rq_env env;
    rq_remote *remote;
} masters;

static void no_send(void *ctx, rq_remote_request *r)
{
    (void)ctx;
    r->done(r, RQ_E_IO, NULL);
}

static void master_open(masters *m, int64_t master_ms)
{
    static const unsigned threads[RQ_POOL_COUNT] = {1, 1, 1, 1, 1, 1, 1};
    assert_int_equal(rq_thread_executor_new(threads, &m->executor), RQ_OK);
    m->env = (rq_env){.executor = m->executor};
    const rq_remote_options o = {.env = &m->env, .master_ms = master_ms, .send = no_send};
    assert_int_equal(rq_remote_new(&o, &m->remote), RQ_OK);
}

static void master_close(masters *m)
{
    rq_region_calls calls = rq_remote_calls(m->remote);
    calls.stop(calls.ctx);
    rq_remote_free(m->remote);
    rq_thread_executor_free(m->executor);
}

/* A RegionServerReport of the node, encoded into `to`. */
static rq_slice report_of(const rq_server_name *n, uint8_t *to)
{
    Pb__ServerName name = PB__SERVER_NAME__INIT;
    Pb__RegionServerReportRequest m = PB__REGION_SERVER_REPORT_REQUEST__INIT;
    name.host_name = (char *)(uintptr_t)n->host;
    name.has_port = name.has_start_code = true;
    name.port = n->port;
    name.start_code = (uint64_t)n->start_code;
    m.server = &name;
    return rq_slice_of(to, pb__region_server_report_request__pack(&m, to));
}

static rq_err report(node *from, const rq_server_name *to, rq_error *why)
{
    uint8_t bytes[256];
    return ask(from, to, "RegionServerReport", report_of(from->name, bytes), why);
}

static void expect_words(const rq_error *why, const char *words)
{
    if (strstr(why->message, words) == NULL) fail_msg("\"%s\" not in \"%s\"", words, why->message);
}

static size_t servers_up(masters *m)
{
    rq_arena a = {0};
    const rq_server_name **list;
    size_t count, total;
    assert_int_equal(rq_remote_servers(m->remote, 0, &a, &list, &count, &total), RQ_OK);
    rq_arena_clear(&a);
    return total;
}

/* --- servers ---------------------------------------------------------------------------------- */

static void a_server_reports_to_a_master(void **state)
{
    (void)state;
    node master, server;
    masters m;
    rq_error why;
    asked a;
    master_open(&m, 1);
    node_start(&master, SECRET, 1, 5000);
    node_start(&server, SECRET, 2, 5000);
    assert_int_equal(report(&server, master.name, &why), RQ_E_SERVER_NOT_RUNNING);
    expect_words(&why, "it is not the active master");
    rq_sides_set_master(master.sides, m.remote);
    assert_int_equal(report(&server, master.name, &why), RQ_OK);
    assert_int_equal(servers_up(&m), 1);
    assert_int_equal(report(&master, master.name, &why), RQ_OK); /* also to itself */
    ask_begin(&a, &server, master.name, "GetLiveRegionServers", RQ_SLICE_LIT("\x08\x09"));
    pthread_mutex_lock(&a.lock);
    while (a.ended == 0)
        pthread_cond_wait(&a.changed, &a.lock);
    pthread_mutex_unlock(&a.lock);
    Pb__GetLiveRegionServersResponse *r =
        pb__get_live_region_servers_response__unpack(NULL, a.answer.len, a.answer.ptr);
    assert_non_null(r);
    assert_int_equal(r->n_server, 2);
    assert_int_equal(r->total, 2);
    pb__get_live_region_servers_response__free_unpacked(r, NULL);
    assert_int_equal(ask_end(&a), RQ_OK);
    rq_remote_server_down(m.remote, server.name);
    assert_int_equal(report(&server, master.name, &why), RQ_E_YOU_ARE_DEAD);
    /* This node takes no orders yet; orders are never sent without a proof. */
    assert_int_equal(ask(&master, server.name, "ExecuteProcedures", (rq_slice){0}, &why),
                     RQ_E_SERVER_NOT_RUNNING);
    assert_int_equal(ask(&master, server.name, "StopServer", (rq_slice){0}, &why),
                     RQ_E_DO_NOT_RETRY);
    rq_sides_set_master(master.sides, NULL);
    node_stop(&server);
    node_stop(&master);
    master_close(&m);
}

static void add_cell(rq_cellblock *cells, const char *row)
{
    const rq_cell c = {.row = (const uint8_t *)row,
                       .row_len = (uint16_t)strlen(row),
                       .family = (const uint8_t *)"f",
                       .family_len = 1,
                       .timestamp = 1,
                       .type = RQ_TYPE_PUT,
                       .value = (const uint8_t *)"v",
                       .value_len = 1,
                       .tags = (const uint8_t *)"\x00\x02\x07t",
                       .tags_len = 4};
    assert_int_equal(rq_cellblock_append(cells, &c), RQ_OK);
}

static void cells_go_with_their_message(void **state)
{
    (void)state;
    node one, two;
    asked a[20];
    rq_cellblock cells = {.with_tags = true};
    node_start(&one, SECRET, 1, 5000);
    node_start(&two, SECRET, 2, 5000);
    add_cell(&cells, "a");
    add_cell(&cells, "b");
    rq_slice bytes = rq_buf_slice(&cells.bytes);
    /* The first calls wait for the greeting; calls with and without cells follow each other. */
    for (size_t i = 0; i < RQ_ARRAY_LEN(a); i++)
        ask_begin_with(&a[i], &one, two.name, "ReplicateWALEntry", RQ_SLICE_LIT("message"),
                       i % 3 == 0 ? (rq_slice){0} : bytes);
    for (size_t i = 0; i < RQ_ARRAY_LEN(a); i++) {
        size_t cells_len = i % 3 == 0 ? 0 : bytes.len;
        pthread_mutex_lock(&a[i].lock);
        while (a[i].ended == 0)
            pthread_cond_wait(&a[i].changed, &a[i].lock);
        pthread_mutex_unlock(&a[i].lock);
        assert_int_equal(a[i].answer.len, 7 + cells_len);
        assert_memory_equal(a[i].answer.ptr, "message", 7);
        if (cells_len > 0) assert_memory_equal(a[i].answer.ptr + 7, bytes.ptr, cells_len);
        assert_int_equal(ask_end(&a[i]), RQ_OK);
    }
    rq_cellblock_clear(&cells);
    node_stop(&one);
    node_stop(&two);
}

static void another_secret_is_no_server(void **state)
{
    (void)state;
    node master, server;
    masters m;
    rq_error why;
    master_open(&m, 1);
    node_start(&master, SECRET, 1, 5000);
    node_start(&server, SECRET "!", 2, 5000);
    rq_sides_set_master(master.sides, m.remote);
    assert_int_equal(report(&server, master.name, &why), RQ_E_IO); /* the error may be temporary */
    expect_words(&why, "does not have this cluster's secret");
    assert_int_equal(servers_up(&m), 0);
    server.secret = secret_of(SECRET); /* as after a restart with the right secret */
    assert_int_equal(report(&server, master.name, &why), RQ_OK);
    rq_sides_set_master(master.sides, NULL);
    node_stop(&server);
    node_stop(&master);
    master_close(&m);
}

/* The address now belongs to a later incarnation. */
static void a_server_that_started_again_is_another(void **state)
{
    (void)state;
    node master, server;
    rq_error why;
    node_start(&master, SECRET, 1, 5000);
    node_start(&server, SECRET, 2, 5000);
    const rq_server_name *old = rq_server_name_ref(server.name);
    const rq_server_name later = {.host = old->host, .port = old->port, .start_code = 3};
    node_rename(&server, &later);
    assert_int_equal(ask(&master, old, "ExecuteProcedures", (rq_slice){0}, &why), RQ_E_IO);
    expect_words(&why, "the connection was intended for server");
    assert_int_equal(ask(&master, server.name, "ExecuteProcedures", (rq_slice){0}, &why),
                     RQ_E_SERVER_NOT_RUNNING);
    rq_server_name_unref(old);
    node_stop(&server);
    node_stop(&master);
}

/* The connection is lost with the process; the next call makes a new one. */
static void connections_are_made_again(void **state)
{
    (void)state;
    node master, server;
    masters m;
    rq_error why;
    master_open(&m, 1);
    node_start(&master, SECRET, 1, 5000);
    node_start(&server, SECRET, 2, 5000);
    rq_sides_set_master(master.sides, m.remote);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(report(&server, master.name, &why), RQ_OK);
        rq_rpc_server_close(master.server);
        /* the connection is lost or refused */
        assert_int_equal(report(&server, master.name, &why), RQ_E_IO);
        const rq_rpc_service table = rq_peer_service_methods(master.service);
        const rq_rpc_server_options o = {.loops = master.loops,
                                         .budget = master.budget,
                                         .services = &table,
                                         .service_count = 1,
                                         .port = master.port};
        assert_int_equal(rq_rpc_server_open(&o, &master.server, NULL), RQ_OK);
    }
    rq_sides_set_master(master.sides, NULL);
    node_stop(&server);
    node_stop(&master);
    master_close(&m);
}

/* --- peers without the secret ----------------------------------------------------------------- */

static int stranger(const node *n)
{
    return rpc_connect(n->port, &(rpc_hello){.service = RQ_PEER_SERVICE, .version = "2.6.1"});
}

static void call(int fd, uint32_t id, const char *method, const ProtobufCMessage *m)
{
    rq_buf b = {0};
    rpc_put_request(&b, id, method, m, (rq_slice){0}, 0);
    rpc_send(fd, &b);
}

static void call_bytes(int fd, uint32_t id, const char *method, rq_slice message,
                       const ProtobufCMessageDescriptor *type)
{
    ProtobufCMessage *m = protobuf_c_message_unpack(type, NULL, message.len, message.ptr);
    assert_non_null(m);
    call(fd, id, method, m);
    protobuf_c_message_free_unpacked(m, NULL);
}

static void every_call_is_refused(int fd)
{
    Pb__ExecuteProceduresRequest orders = PB__EXECUTE_PROCEDURES_REQUEST__INIT;
    Pb__GetLiveRegionServersRequest live = PB__GET_LIVE_REGION_SERVERS_REQUEST__INIT;
    Pb__ReportProcedureDoneRequest done = PB__REPORT_PROCEDURE_DONE_REQUEST__INIT;
    Pb__RegionServerStartupRequest startup = PB__REGION_SERVER_STARTUP_REQUEST__INIT;
    call(fd, 70, "ExecuteProcedures", &orders.base);
    rpc_expect_exception(fd, 70, DENIED, "ExecuteProcedures is allowed only on " REFUSED_TEXT,
                         true);
    call(fd, 71, "GetLiveRegionServers", &live.base);
    rpc_expect_exception(fd, 71, DENIED, REFUSED_TEXT, true);
    call(fd, 72, "ReportProcedureDone", &done.base);
    rpc_expect_exception(fd, 72, DENIED, REFUSED_TEXT, true);
    call(fd, 73, "RegionServerStartup", &startup.base);
    rpc_expect_exception(fd, 73, DENIED, REFUSED_TEXT, true);
}

/* Sends the hello as `from`, and computes the proof. */
static rq_slice greet(int fd, rq_caller *c, rq_arena *a)
{
    rpc_answer r;
    rq_slice hello, proof;
    assert_int_equal(rq_unguessable(c->nonce, RQ_NONCE_LEN), RQ_OK);
    assert_int_equal(rq_caller_hello(c, a, &hello), RQ_OK);
    call_bytes(fd, 1, "Hello", hello, &pb__peer_hello_request__descriptor);
    rpc_read(fd, &r);
    assert_null(r.header->exception);
    assert_int_equal(rq_caller_prove(c, r.message, a, &proof, NULL), RQ_OK);
    rpc_answer_clear(&r);
    return proof;
}

static void strangers_are_refused(void **state)
{
    (void)state;
    node n;
    rq_arena a = {0};
    const rq_secret right = secret_of(SECRET), wrong = secret_of("guess");
    const rq_server_name from = {.host = "x", .port = 1, .start_code = 2, .text = "x,1,2"};
    node_start(&n, SECRET, 1, 5000);
    /* Calls without a greeting, in the middle of a greeting, and after a proof with another
     * secret. */
    int fd = stranger(&n);
    every_call_is_refused(fd);
    rq_caller c = {.secret = &wrong, .from = &from, .to = n.name};
    rq_slice proof = greet(fd, &c, &a);
    every_call_is_refused(fd);
    call_bytes(fd, 2, "Prove", proof, &pb__peer_prove_request__descriptor);
    rpc_expect_exception(fd, 2, DENIED, "x,1,2 does not have this cluster's secret", true);
    every_call_is_refused(fd);
    /* On this connection even the right secret is refused now. */
    call_bytes(fd, 3, "Prove", proof, &pb__peer_prove_request__descriptor);
    rpc_expect_exception(fd, 3, DENIED,
                         "a proof of the cluster's secret without a greeting before it", true);
    close(fd);
    /* A proof copied from another connection. */
    int good = stranger(&n), late = stranger(&n);
    c.secret = &right;
    rq_caller heard = c;
    proof = greet(good, &c, &a);
    (void)greet(late, &heard, &a);
    call_bytes(late, 2, "Prove", proof, &pb__peer_prove_request__descriptor);
    rpc_expect_exception(late, 2, DENIED, "does not have this cluster's secret", true);
    every_call_is_refused(late);
    close(late);
    call_bytes(good, 2, "Prove", proof, &pb__peer_prove_request__descriptor);
    rpc_answer r;
    rpc_read(good, &r);
    assert_null(r.header->exception);
    assert_int_equal(rq_caller_check(&c, r.message, NULL), RQ_OK);
    rpc_answer_clear(&r);
    close(good);
    rq_arena_clear(&a);
    node_stop(&n);
}

/* Messages of a peer without the secret are not decoded, whatever their length: a malformed message
 * is refused like any other. Before the proof only short messages are accepted. */
static void messages_of_strangers_are_not_decoded(void **state)
{
    (void)state;
    Pb__GetLiveRegionServersRequest other = PB__GET_LIVE_REGION_SERVERS_REQUEST__INIT;
    Pb__PeerProveRequest proof = PB__PEER_PROVE_REQUEST__INIT;
    node n;
    node_start(&n, SECRET, 1, 5000);
    int fd = stranger(&n);
    /* its field 1 is no message, so decoding would fail */
    call(fd, 1, "RegionServerReport", &other.base);
    rpc_expect_exception(fd, 1, DENIED, "RegionServerReport is allowed only on " REFUSED_TEXT,
                         true);
    proof.proof.len = RQ_RPC_PARAM_SHORT;
    proof.proof.data = calloc(1, proof.proof.len);
    assert_non_null(proof.proof.data);
    call(fd, 2, "Prove", &proof.base);
    rpc_expect_exception(fd, 2, "org.apache.hadoop.hbase.DoNotRetryIOException",
                         "the limit of this method is 65536", true);
    call(fd, 3, "Hello", &proof.base);
    rpc_expect_exception(fd, 3, "org.apache.hadoop.hbase.DoNotRetryIOException",
                         "the limit of this method is 65536", true);
    free(proof.proof.data);
    close(fd);
    node_stop(&n);
}

/* An unfinished greeting occupies only its connection. */
static void half_open_greetings_block_no_other_server(void **state)
{
    (void)state;
    node n, server;
    rq_arena a = {0};
    rq_error why;
    int fds[200];
    const rq_secret right = secret_of(SECRET);
    const rq_server_name from = {.host = "x", .port = 1, .start_code = 2, .text = "x,1,2"};
    node_start(&n, SECRET, 1, 5000);
    node_start(&server, SECRET, 2, 5000);
    for (size_t i = 0; i < RQ_ARRAY_LEN(fds); i++) {
        rq_caller c = {.secret = &right, .from = &from, .to = n.name};
        fds[i] = stranger(&n);
        (void)greet(fds[i], &c, &a);
    }
    assert_int_equal(ask(&server, n.name, "ExecuteProcedures", (rq_slice){0}, &why),
                     RQ_E_SERVER_NOT_RUNNING);
    for (size_t i = 0; i < RQ_ARRAY_LEN(fds); i++)
        close(fds[i]);
    rq_arena_clear(&a);
    node_stop(&server);
    node_stop(&n);
}

/* --- called servers without the secret -------------------------------------------------------- */

static void no_call_goes_to_who_does_not_prove_itself(void **state)
{
    (void)state;
    static const struct {
        fake_way way;
        const char *words;
    } all[] = {
        {FAKE_SILENT, "has not answered in time"},
        {FAKE_CLOSES, "cannot connect to"},
        {FAKE_IGNORANT, "does not have this cluster's secret"},
        {FAKE_REFLECTS, "does not have this cluster's secret"},
        {FAKE_OTHER_HELLO, "greeting is malformed"},
        {FAKE_LONG, "the server's response exceeds the size limit"},
        {FAKE_GARBAGE, "the server's response is malformed"},
    };
    const rq_secret right = secret_of(SECRET);
    for (size_t i = 0; i < RQ_ARRAY_LEN(all); i++) {
        node n;
        fake_server f;
        rq_error why;
        asked many[20];
        /* The others end without the time-out, however slow this machine is. */
        node_start(&n, SECRET, 1, all[i].way == FAKE_SILENT ? 200 : 600000);
        fake_start(&f, all[i].way, &right);
        for (size_t j = 0; j < RQ_ARRAY_LEN(many); j++)
            ask_begin(&many[j], &n, &f.name, "ExecuteProcedures", RQ_SLICE_LIT("order"));
        for (size_t j = 0; j < RQ_ARRAY_LEN(many); j++)
            assert_int_equal(ask_end(&many[j]), RQ_E_IO);
        assert_int_equal(ask(&n, &f.name, "ExecuteProcedures", RQ_SLICE_LIT("order"), &why),
                         RQ_E_IO);
        expect_words(&why, all[i].words);
        assert_int_equal(atomic_load(&f.calls), 0);
        node_stop(&n);
        fake_stop(&f);
    }
}

typedef struct outcomes {
    unsigned full, lost, stopped;
} outcomes;

static outcomes count_outcomes(asked *list, size_t count)
{
    outcomes o = {0};
    for (size_t i = 0; i < count; i++) {
        rq_err rc = ask_end(&list[i]);
        o.full += rc == RQ_E_CALL_QUEUE_TOO_BIG;
        o.lost += rc == RQ_E_IO || rc == RQ_E_CALL_TIMEOUT;
        o.stopped += rc == RQ_E_SERVER_STOPPED;
    }
    return o;
}

enum { MAY_WAIT = 64 };

/* More calls than may wait, long messages, and no answer: none ends by itself. */
static void calls_that_wait_are_limited(fake_way way, rq_slice large)
{
    const rq_secret right = secret_of(SECRET);
    node n;
    fake_server f;
    asked many[100];
    node_start(&n, SECRET, 1, 600000);
    fake_start(&f, way, &right);
    for (size_t j = 0; j < RQ_ARRAY_LEN(many); j++)
        ask_begin(&many[j], &n, &f.name, "ExecuteProcedures", large);
    outcomes refused = count_outcomes(many + MAY_WAIT, RQ_ARRAY_LEN(many) - MAY_WAIT);
    assert_int_equal(refused.full, RQ_ARRAY_LEN(many) - MAY_WAIT);
    assert_true(atomic_load(&f.connections) <= 1);
    node_stop_calling(&n);
    assert_int_equal(count_outcomes(many, MAY_WAIT).stopped, MAY_WAIT);
    node_stop(&n);
    fake_stop(&f);
}

static void calls_that_wait_are_given_up(fake_way way, rq_slice large)
{
    const rq_secret right = secret_of(SECRET);
    node n;
    fake_server f;
    asked many[MAY_WAIT];
    node_start(&n, SECRET, 1, 500);
    fake_start(&f, way, &right);
    for (size_t j = 0; j < MAY_WAIT; j++)
        ask_begin(&many[j], &n, &f.name, "ExecuteProcedures", large);
    assert_int_equal(count_outcomes(many, MAY_WAIT).lost, MAY_WAIT);
    node_stop(&n);
    fake_stop(&f);
}

static void who_does_not_answer_or_read_is_given_up(void **state)
{
    (void)state;
    static const fake_way ways[] = {FAKE_MUTE, FAKE_DEAF};
    rq_slice large = {.ptr = calloc(1, 1 << 20), .len = 1 << 20};
    assert_non_null(large.ptr);
    for (size_t i = 0; i < RQ_ARRAY_LEN(ways); i++) {
        calls_that_wait_are_limited(ways[i], large);
        calls_that_wait_are_given_up(ways[i], large);
    }
    free((void *)(uintptr_t)large.ptr);
}

static void a_stop_ends_calls_at_once(void **state)
{
    (void)state;
    static const fake_way ways[] = {FAKE_SILENT, FAKE_MUTE};
    const rq_secret right = secret_of(SECRET);
    for (size_t i = 0; i < RQ_ARRAY_LEN(ways); i++) {
        node n;
        fake_server f;
        asked a[3];
        node_start(&n, SECRET, 1, 600000);
        fake_start(&f, ways[i], &right);
        for (size_t j = 0; j < RQ_ARRAY_LEN(a); j++)
            ask_begin(&a[j], &n, &f.name, "ExecuteProcedures", (rq_slice){0});
        node_stop_calling(&n);
        for (size_t j = 0; j < RQ_ARRAY_LEN(a); j++)
            assert_int_equal(ask_end(&a[j]), RQ_E_SERVER_STOPPED);
        assert_int_equal(ask(&n, &f.name, "ExecuteProcedures", (rq_slice){0}, NULL),
                         RQ_E_SERVER_STOPPED);
        node_stop(&n);
        fake_stop(&f);
    }
}

/* A message of the maximum length is sent; one byte more is refused by the caller's side. */
static void the_longest_messages(void **state)
{
    (void)state;
    const size_t max = (size_t)64 << 20;
    node a, b;
    rq_error why;
    rq_buf m = {0};
    node_start(&a, SECRET, 1, 60000);
    node_start(&b, SECRET, 2, 60000);
    for (size_t len = max; len <= max + 1; len++) {
        rq_buf_reset(&m);
        /* a field with an unknown number */
        assert_int_equal(rq_buf_append_varint(&m, 1000 << 3 | 2), RQ_OK);
        assert_int_equal(rq_buf_append_varint(&m, len - 6), RQ_OK);
        assert_int_equal(rq_buf_reserve(&m, len), RQ_OK);
        memset(m.ptr + m.len, 'x', len - m.len);
        m.len = len;
        assert_int_equal(ask(&a, b.name, "ExecuteProcedures", rq_buf_slice(&m), &why),
                         len == max ? RQ_E_SERVER_NOT_RUNNING : RQ_E_CALL_QUEUE_TOO_BIG);
    }
    rq_buf_clear(&m);
    node_stop(&a);
    node_stop(&b);
}

/* --- many calls ------------------------------------------------------------------------------- */

typedef struct caller_thread {
    pthread_t thread;
    node *from, *to;
    unsigned wrong;
} caller_thread;

static void *report_often(void *arg)
{
    caller_thread *t = arg;
    for (int i = 0; i < 200; i++)
        t->wrong += report(t->from, t->to->name, NULL) != RQ_OK;
    return NULL;
}

static void servers_call_each_other_at_once(void **state)
{
    (void)state;
    node nodes[3];
    masters m[3];
    caller_thread threads[9];
    for (size_t i = 0; i < 3; i++) {
        master_open(&m[i], (int64_t)i + 1);
        node_start(&nodes[i], SECRET, (int64_t)i + 1, 20000);
        rq_sides_set_master(nodes[i].sides, m[i].remote);
    }
    for (size_t i = 0; i < 9; i++) {
        threads[i] = (caller_thread){.from = &nodes[i / 3], .to = &nodes[i % 3]};
        assert_int_equal(pthread_create(&threads[i].thread, NULL, report_often, &threads[i]), 0);
    }
    for (size_t i = 0; i < 9; i++) {
        pthread_join(threads[i].thread, NULL);
        assert_int_equal(threads[i].wrong, 0);
    }
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(servers_up(&m[i]), 3);
        node_stop_calling(&nodes[i]);
    }
    for (size_t i = 0; i < 3; i++) {
        rq_sides_set_master(nodes[i].sides, NULL);
        node_stop(&nodes[i]);
        master_close(&m[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_reports_to_a_master),
        cmocka_unit_test(cells_go_with_their_message),
        cmocka_unit_test(another_secret_is_no_server),
        cmocka_unit_test(a_server_that_started_again_is_another),
        cmocka_unit_test(connections_are_made_again),
        cmocka_unit_test(strangers_are_refused),
        cmocka_unit_test(messages_of_strangers_are_not_decoded),
        cmocka_unit_test(half_open_greetings_block_no_other_server),
        cmocka_unit_test(no_call_goes_to_who_does_not_prove_itself),
        cmocka_unit_test(who_does_not_answer_or_read_is_given_up),
        cmocka_unit_test(a_stop_ends_calls_at_once),
        cmocka_unit_test(the_longest_messages),
        cmocka_unit_test(servers_call_each_other_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
