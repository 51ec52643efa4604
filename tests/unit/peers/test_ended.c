/* SPDX-License-Identifier: Apache-2.0 */
/* A master learns that a server's process has ended from its connections: closed, and then refused. The
 * master must not conclude this from any other failure of a connection. */
#include "nodes.h"

#include "proto/region_server_status.pb-c.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#define SECRET "the secret of this cluster"
#define CALL "ExecuteProcedures"

/* --- refused connections ---------------------------------------------------------------------- */

/* A port of 127.0.0.1. */
typedef struct socket_at {
    int fd;
    rq_server_name name;
    char text[64];
} socket_at;

static void bind_one(socket_at *s)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(s->fd >= 0);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&at, len), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&at, &len), 0);
    s->name = (rq_server_name){.host = "127.0.0.1", .port = ntohs(at.sin_port), .start_code = 7};
}

/* Whether the address refused the connection of a call. */
static bool was_refused(node *from, const rq_server_name *to, rq_err want)
{
    asked a;
    const rq_server_name *name = rq_server_name_new(to);
    assert_non_null(name);
    ask_begin(&a, from, name, CALL, (rq_slice){0});
    assert_int_equal(ask_end(&a), want);
    rq_server_name_unref(name);
    return a.call.refused;
}

static void an_address_without_a_listener_refuses(void **state)
{
    (void)state;
    node n;
    socket_at s;
    node_start(&n, SECRET, 1, 5000);
    bind_one(&s);
    assert_true(was_refused(&n, &s.name, RQ_E_IO));
    assert_true(was_refused(&n, &s.name, RQ_E_IO)); /* every attempt is refused */
    node_stop(&n);
    close(s.fd);
}

/* A process that accepts no connections because it is stopped or has no descriptors left. */
static void a_full_queue_does_not_refuse(void **state)
{
    (void)state;
    int fd[8];
    node n;
    socket_at s;
    node_start(&n, SECRET, 1, 300);
    bind_one(&s);
    assert_int_equal(listen(s.fd, 0), 0);
    const struct sockaddr_in at = {.sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                   .sin_port = htons(s.name.port)};
    assert_false(was_refused(&n, &s.name, RQ_E_IO)); /* the call waits for a response */
    for (size_t i = 0; i < RQ_ARRAY_LEN(fd); i++) {
        fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        /* fills the listener's queue */
        (void)connect(fd[i], (const struct sockaddr *)&at, sizeof at);
    }
    assert_false(was_refused(&n, &s.name, RQ_E_IO)); /* the call cannot connect */
    for (size_t i = 0; i < RQ_ARRAY_LEN(fd); i++)
        close(fd[i]);
    node_stop(&n);
    close(s.fd);
}

static void another_one_at_the_address_does_not_refuse(void **state)
{
    (void)state;
    node n, other;
    node_start(&n, SECRET, 1, 5000);
    node_start(&other, SECRET, 3, 5000);
    const rq_server_name old = {.host = "127.0.0.1", .port = other.port, .start_code = 2};
    const rq_server_name nowhere = {.host = "name.invalid", .port = 1, .start_code = 2};
    assert_false(was_refused(&n, &old, RQ_E_IO)); /* its proof is refused */
    assert_false(was_refused(&n, &nowhere, RQ_E_IO));
    assert_false(was_refused(&n, other.name, RQ_E_SERVER_NOT_RUNNING));
    node_stop(&other);
    node_stop(&n);
}

/* A server whose lease is expired answers no clients, but other servers hear it, also on new connections: otherwise all
 * servers would look dead while the storage does not answer. */
static void a_server_without_a_lease_answers_other_servers(void **state)
{
    (void)state;
    node n, other;
    node_start(&n, SECRET, 1, 60000);
    node_start(&other, SECRET, 2, 60000);
    atomic_store(&other.lease_expired, true);
    assert_int_equal(ask(&n, other.name, CALL, (rq_slice){0}, NULL), RQ_E_SERVER_NOT_RUNNING);
    assert_int_equal(ask(&n, other.name, CALL, (rq_slice){0}, NULL), RQ_E_SERVER_NOT_RUNNING);
    node_stop(&other);
    node_stop(&n);
}

/* A response to replicated entries acknowledges writes, which may not have waited for the log (ASYNC_WAL). */
static void a_server_without_a_lease_acknowledges_no_entries(void **state)
{
    (void)state;
    node n, patient, other;
    node_start(&n, SECRET, 1, 200);
    node_start(&patient, SECRET, 3, 60000);
    node_start(&other, SECRET, 2, 60000);
    rq_slice entries = RQ_SLICE_LIT("entries");
    atomic_store(&other.lease_expired, true);
    rq_err rc = ask(&n, other.name, "ReplicateWALEntry", entries, NULL);
    assert_true(rc != RQ_OK && !rq_err_do_not_retry(rc)); /* no response in time */
    assert_int_equal(ask(&patient, other.name, CALL, (rq_slice){0}, NULL), RQ_E_SERVER_NOT_RUNNING);
    atomic_store(&other.lease_expired, false);
    assert_int_equal(ask(&patient, other.name, "ReplicateWALEntry", entries, NULL), RQ_OK);
    node_stop(&other);
    node_stop(&patient);
    node_stop(&n);
}

/* --- a master --------------------------------------------------------------------------------- */

typedef struct watcher {
    node node;
    rq_executor *executor;
    rq_env env;
    rq_remote *remote;
    rq_peer_role sends;
    _Atomic unsigned hung_up;
} watcher;

static void hung_up(void *ctx)
{
    const rq_peer_role *role = ctx;
    watcher *w = role->ctx;
    atomic_fetch_add(&w->hung_up, 1);
}

static void watcher_open(watcher *w)
{
    static const unsigned threads[RQ_POOL_COUNT] = {1, 1, 1, 1, 1, 1, 1};
    node_start(&w->node, SECRET, 1, 5000);
    atomic_init(&w->hung_up, 0);
    assert_int_equal(rq_thread_executor_new(threads, &w->executor), RQ_OK);
    w->env = (rq_env){.executor = w->executor};
    w->sends = (rq_peer_role){.peers = w->node.peers, .self = w->node.name, .ctx = w};
    const rq_remote_options o = {.env = &w->env,
                                 .master_ms = 1,
                                 .send = rq_peers_send,
                                 .home = w->node.name,
                                 .hung_up = hung_up,
                                 .ctx = &w->sends};
    assert_int_equal(rq_remote_new(&o, &w->remote), RQ_OK);
    assert_int_equal(rq_remote_server_up(w->remote, w->node.name, NULL), RQ_OK);
    rq_sides_set_master(w->node.sides, w->remote);
}

static void watcher_close(watcher *w)
{
    rq_region_calls calls = rq_remote_calls(w->remote);
    calls.stop(calls.ctx);
    rq_peers_stop(w->node.peers);
    rq_sides_set_master(w->node.sides, NULL);
    node_stop(&w->node);
    rq_remote_free(w->remote);
    rq_thread_executor_free(w->executor);
}

static rq_err report(node *from, const watcher *to)
{
    uint8_t bytes[256];
    Pb__ServerName name = PB__SERVER_NAME__INIT;
    Pb__RegionServerReportRequest m = PB__REGION_SERVER_REPORT_REQUEST__INIT;
    name.host_name = (char *)(uintptr_t)from->name->host;
    name.has_port = name.has_start_code = true;
    name.port = from->name->port;
    name.start_code = (uint64_t)from->name->start_code;
    m.server = &name;
    size_t len = pb__region_server_report_request__pack(&m, bytes);
    return ask(from, to->node.name, "RegionServerReport", rq_slice_of(bytes, len), NULL);
}

/* Checks for ended servers; silence alone never ends a server here. Returns whether the only listed
 * server, if any, is this one. */
static bool finds_ended(const watcher *w, const rq_server_name *name)
{
    rq_arena a = {0};
    rq_silence s;
    const rq_silence_limits limits = {UINT64_MAX / 4, UINT64_MAX / 2};
    assert_int_equal(rq_remote_silent(w->remote, &limits, &a, &s), RQ_OK);
    assert_false(s.is_cut_off);
    bool found = s.count > 0;
    for (size_t i = 0; i < s.count; i++) {
        assert_string_equal(s.servers[i].name->text, name->text);
        assert_true(s.servers[i].has_ended);
        rq_server_name_unref(s.servers[i].name);
    }
    rq_arena_clear(&a);
    return found;
}

static void until_hung_up(const watcher *w, unsigned count)
{
    while (atomic_load(&w->hung_up) < count)
        sched_yield();
}

static void a_server_that_has_ended_is_found(void **state)
{
    (void)state;
    watcher w;
    node server, other;
    watcher_open(&w);
    node_start(&server, SECRET, 2, 5000);
    node_start(&other, SECRET, 3, 5000);
    assert_int_equal(report(&server, &w), RQ_OK);
    assert_int_equal(report(&other, &w), RQ_OK);
    const rq_server_name *name = rq_server_name_ref(server.name);
    assert_false(finds_ended(&w, name));
    node_stop(&server);
    until_hung_up(&w, 1);
    while (!finds_ended(&w, name))
        sched_yield();
    rq_remote_server_down(w.remote, name);
    assert_int_equal(report(&other, &w), RQ_OK);
    assert_false(finds_ended(&w, name));
    rq_server_name_unref(name);
    node_stop(&other);
    watcher_close(&w);
}

/* Checks often enough that several probes have been answered. */
static void look_often(const watcher *w, node *server)
{
    for (int i = 0; i < 20; i++) {
        assert_false(finds_ended(w, server->name));
        assert_false(
            was_refused(&((watcher *)(uintptr_t)w)->node, server->name, RQ_E_SERVER_NOT_RUNNING));
    }
}

static void a_server_that_runs_is_not_found(void **state)
{
    (void)state;
    watcher w;
    node server;
    watcher_open(&w);
    node_start(&server, SECRET, 2, 5000);
    assert_int_equal(report(&server, &w), RQ_OK);
    /* The connections are lost, but the port is open. */
    rq_peers_stop(server.peers);
    until_hung_up(&w, 1);
    look_often(&w, &server);
    node_stop(&server);
    watcher_close(&w);
}

/* The port is closed, but the connection is open. */
static void a_server_that_is_connected_is_not_found(void **state)
{
    (void)state;
    watcher w;
    node server;
    watcher_open(&w);
    node_start(&server, SECRET, 2, 5000);
    assert_int_equal(report(&server, &w), RQ_OK);
    rq_rpc_server_drain(server.server, 0);
    rq_remote_hung_up(w.remote,
                      server.name); /* refers to the earlier connection; the next connection is made
                                 * before the report */
    rq_remote_connected(w.remote, server.name);
    for (int i = 0; i < 20; i++) {
        assert_false(finds_ended(&w, server.name));
        assert_true(was_refused(&w.node, server.name, RQ_E_IO));
    }
    node_stop(&server);
    watcher_close(&w);
}

/* The server announces its stop, closes connections and port, and will leave ZooKeeper. */
static void a_server_that_leaves_is_not_found(void **state)
{
    (void)state;
    watcher w;
    node server;
    watcher_open(&w);
    node_start(&server, SECRET, 2, 5000);
    assert_int_equal(report(&server, &w), RQ_OK);
    assert_int_equal(ask(&server, w.node.name, "RegionServerLeaving", (rq_slice){0}, NULL), RQ_OK);
    const rq_server_name *name = rq_server_name_ref(server.name);
    node_stop(&server);
    for (int i = 0; i < 20; i++) {
        assert_false(finds_ended(&w, name));
        assert_true(was_refused(&w.node, name, RQ_E_IO));
    }
    assert_int_equal(atomic_load(&w.hung_up), 0);
    assert_true(rq_remote_is_up(w.remote, name));
    rq_server_name_unref(name);
    watcher_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_without_a_listener_refuses),
        cmocka_unit_test(a_full_queue_does_not_refuse),
        cmocka_unit_test(another_one_at_the_address_does_not_refuse),
        cmocka_unit_test(a_server_without_a_lease_answers_other_servers),
        cmocka_unit_test(a_server_without_a_lease_acknowledges_no_entries),
        cmocka_unit_test(a_server_that_has_ended_is_found),
        cmocka_unit_test(a_server_that_runs_is_not_found),
        cmocka_unit_test(a_server_that_is_connected_is_not_found),
        cmocka_unit_test(a_server_that_leaves_is_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
