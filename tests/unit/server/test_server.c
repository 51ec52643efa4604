/* SPDX-License-Identifier: Apache-2.0 */
/* The server as an object: two of them in this process, transforms and in-memory connections below
 * the protocols, and a policy at the gate. */
#include "cluster.h"
#include "policy.h"

#include "base/clock.h"
#include "client/client_priv.h"

#include "../net/frames.h"
#include "../net/peer.h"
#include "../net/relay.h"
#include "proto/client.pb-c.h"
#include "proto/rpc.pb-c.h"
#include "../base/unit.h"
#include "../base/forbid.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint16_t zookeeper_port(const cluster *c)
{
    uint16_t zk, rs;
    rq_server_host(c->server, &zk, &rs);
    return zk;
}

static uint16_t region_server_port(const cluster *c)
{
    uint16_t zk, rs;
    rq_server_host(c->server, &zk, &rs);
    return rs;
}

/* ---- two servers ----------------------------------------------------------------------------- */

static void serve_a_table(cluster *c)
{
    cluster_connect(c);
    cluster_create_table(c);
    cluster_open_table(c);
}

static void expect_row(cluster *c, const char *row, const char *value)
{
    assert_int_equal(cluster_get(c, row), RQ_OK);
    assert_string_equal(c->value, value);
}

static void two_servers_share_nothing(void **state)
{
    (void)state;
    cluster a, b;
    cluster_start(&a, NULL, NULL, NULL);
    cluster_start(&b, NULL, NULL, NULL);
    assert_string_not_equal(a.zookeeper, b.zookeeper);
    serve_a_table(&a);
    serve_a_table(&b);
    assert_int_equal(cluster_put(&a, "row", "of a"), RQ_OK);
    assert_int_equal(cluster_put(&b, "row", "of b"), RQ_OK);
    assert_int_equal(cluster_put(&b, "only", "here"), RQ_OK);
    expect_row(&a, "row", "of a");
    expect_row(&b, "row", "of b");
    expect_row(&a, "only", "");
    cluster_stop(&a); /* the other server continues */
    assert_int_equal(cluster_put(&b, "row", "of b again"), RQ_OK);
    expect_row(&b, "row", "of b again");
    char folder[64];
    memcpy(folder, a.folder, sizeof folder);
    cluster_start(&a, folder, NULL, NULL);
    cluster_connect(&a);
    cluster_open_table(&a);
    expect_row(&a, "row", "of a");
    cluster_stop(&b);
    expect_row(&a, "row", "of a");
    cluster_stop(&a);
    cluster_remove_folder(&a);
    cluster_remove_folder(&b);
}

/* ---- the client on an older kernel ------------------------------------------------------------ */

static void *use_without_epoll_pwait2(void *arg)
{
    static bool there_are_filters;
    there_are_filters = forbid_system_call(SYS_epoll_pwait2, ENOSYS);
    if (!there_are_filters) return NULL;
    serve_a_table(arg);
    assert_int_equal(cluster_put(arg, "row", "value"), RQ_OK);
    expect_row(arg, "row", "value");
    return &there_are_filters;
}

/* Linux 5.10 has no epoll_pwait2, and neither have emulators. */
static void a_client_needs_no_epoll_pwait2(void **state)
{
    (void)state;
    cluster c;
    pthread_t thread; /* the system-call filter applies only to this thread */
    void *done;
    cluster_start(&c, NULL, NULL, NULL);
    assert_int_equal(pthread_create(&thread, NULL, use_without_epoll_pwait2, &c), 0);
    assert_int_equal(pthread_join(thread, &done), 0);
    cluster_stop(&c);
    cluster_remove_folder(&c);
    if (done == NULL) skip();
}

/* Three pauses between four attempts. */
static void a_client_pauses_for_whole_seconds(void **state)
{
    (void)state;
    cluster c;
    rq_error why = {0};
    rq_client *client;
    rq_client_table *table;
    cluster_start(&c, NULL, NULL, NULL);
    rq_client_options o = {.zookeeper = c.zookeeper, .pause_ms = 1000};
    assert_int_equal(rq_client_open(&o, &client, &why), RQ_OK);
    uint64_t begun = rq_clock_ns(CLOCK_MONOTONIC);
    assert_int_equal(rq_client_table_open(client, "absent", &table, &why), RQ_E_TABLE_NOT_FOUND);
    assert_true(rq_clock_ns(CLOCK_MONOTONIC) - begun >= 3000000000u);
    rq_client_close(client);
    cluster_stop(&c);
    cluster_remove_folder(&c);
}

/* A canary reads one table after the other, of thousands. A table may be closed while its regions are read again. */
static void a_closed_table_leaves_nothing(void **state)
{
    (void)state;
    cluster c;
    rq_error why = {0};
    rq_client_table *table, *by_name;
    cluster_start(&c, NULL, NULL, NULL);
    serve_a_table(&c);
    assert_int_equal(rq_client_table_get(c.client, "t", &by_name), RQ_OK);
    assert_ptr_not_equal(by_name, c.table);
    size_t before = c.client->table_count;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rq_client_table_open(c.client, "t", &table, &why), RQ_OK);
        assert_int_equal(c.client->table_count, before + 1);
        assert_int_equal(rq_client_table_get(c.client, "t", &by_name), RQ_OK);
        assert_ptr_not_equal(by_name, table);
        rq__map_refresh(table);
        assert_true(table->refreshing);
        rq_client_table_close(table);
        assert_int_equal(c.client->table_count, before);
    }
    assert_int_equal(rq_client_table_read(by_name, &why), RQ_OK);
    assert_int_equal(rq_client_table_regions(by_name), 1);
    /* The table that was opened before is another one. */
    assert_int_equal(rq_client_table_read(c.table, &why), RQ_OK);
    assert_int_equal(rq_client_table_regions(c.table), 1);
    cluster_stop(&c);
    cluster_remove_folder(&c);
}

/* ---- folders ---------------------------------------------------------------------------------- */

/* Only one server uses a folder at a time, also within a process. */
static void two_servers_do_not_share_a_folder(void **state)
{
    (void)state;
    cluster a;
    rq_error why = {0};
    rq_server *second = NULL;
    cluster_start(&a, NULL, NULL, NULL);
    rq_server_options o = {.data = a.folder, .listen = "127.0.0.1", .config = a.config};
    assert_int_equal(rq_server_open(&o, &second, &why), RQ_E_LOCKED);
    cluster_connect(&a);
    cluster_stop(&a);
    cluster_remove_folder(&a);
}

/* ---- layers below the connections ------------------------------------------------------------ */

/* ZooKeeper's protocol: a four-letter command, then a session that reads /hbase/hbaseid. */
static void ask_zookeeper(uint16_t port)
{
    static const uint8_t connect[] = {
        0, 0, 0, 44, /* length; then version, zxid, timeout, session */
        0, 0, 0, 0,  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x75, 0x30, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16};
    static const char path[] = "/hbase/hbaseid";
    uint8_t request[48] = {0}, answer[64];
    int fd = peer_connect(port);
    peer_send(fd, "ruok", 4);
    peer_expect(fd, "imok", 4);
    peer_expect_end(fd);
    close(fd);
    fd = peer_connect(port);
    memcpy(request, connect, sizeof connect);
    peer_send(fd, request, 48);
    peer_read(fd, answer, 4 + 36);
    uint8_t get[4 + 8 + 4 + sizeof path] = {0};
    size_t len = sizeof get - 4;
    rq_put_be32(get, (uint32_t)len);
    rq_put_be32(get + 4, 1);
    rq_put_be32(get + 8, 4); /* getData */
    rq_put_be32(get + 12, sizeof path - 1);
    memcpy(get + 16, path, sizeof path - 1);
    peer_send(fd, get, sizeof get);
    peer_read(fd, answer, 4 + 16); /* xid, zxid, error */
    assert_int_equal(rq_get_be32(answer + 4), 1);
    assert_int_equal(rq_get_be32(answer + 16), 0);
    close(fd);
}

/* HBase's RPC: a client that sends this preamble gets the cluster's id. */
static void ask_rpc(uint16_t port)
{
    uint8_t bytes[4];
    int fd = peer_connect(port);
    peer_send(fd, "Regist", 6);
    peer_read(fd, bytes, 4);
    assert_in_range(rq_get_be32(bytes), 30, 100);
    close(fd);
}

static void protocols_do_not_notice_a_transform(void **state)
{
    (void)state;
    static const rq_transform_kind kind = {.make = frames_make};
    cluster c;
    cluster_start(&c, NULL, NULL, &kind);
    relay_begin(&(relay_options){.frames = true});
    for (int i = 0; i < 20; i++) {
        ask_zookeeper(zookeeper_port(&c));
        ask_rpc(region_server_port(&c));
    }
    cluster_stop(&c);
    relay_end();
    cluster_remove_folder(&c);
}

static void a_program_connects_to_its_own_server(void **state)
{
    (void)state;
    cluster c;
    cluster_start(&c, NULL, NULL, NULL);
    for (int i = 0; i < 3; i++) {
        rq_memory_peer *p;
        char bytes[512];
        size_t len, total = 0;
        rq_server_port port = (rq_server_port)i;
        assert_int_equal(rq_server_connect(c.server, port, &p), RQ_OK);
        const char *hello = port == RQ_PORT_ZOOKEEPER ? "ruok" : "Regist";
        assert_int_equal(rq_memory_write(p, hello, strlen(hello)), RQ_OK);
        do {
            rq_memory_read(p, bytes + total, sizeof bytes - total, &len);
            total += len;
        } while (len > 0);
        if (port == RQ_PORT_ZOOKEEPER)
            assert_memory_equal(bytes, "imok", 4);
        else
            assert_int_equal(rq_get_be32((const uint8_t *)bytes), total - 4);
        rq_memory_close(p);
    }
    cluster_stop(&c);
    cluster_remove_folder(&c);
}

/* ---- a policy -------------------------------------------------------------------------------- */

static void try_a_policy(bool quotas)
{
    cluster c;
    policy *p = policy_new();
    if (quotas)
        cluster_start_with_quotas(&c, policy_table(p));
    else
        cluster_start(&c, NULL, policy_table(p), NULL);
    serve_a_table(&c);
    for (int i = 0; i < 5; i++) {
        unsigned before = policy_delays(p);
        assert_int_equal(cluster_put(&c, "row", "delayed"), RQ_OK);
        assert_int_equal(policy_delays(p), before + 3);
    }
    expect_row(&c, "row", "delayed");
    policy_refuse_gets(p, true);
    unsigned ended = policy_ended(p);
    assert_int_equal(cluster_get(&c, "row"), RQ_E_DO_NOT_RETRY);
    assert_non_null(strstr(c.text, "user rorqual has no quota for gets"));
    assert_int_equal(policy_refusals(p), 1);
    assert_int_equal(policy_ended(p), ended + 1);
    policy_refuse_gets(p, false);
    expect_row(&c, "row", "delayed");
    cluster_stop(&c);
    policy_free(p);
    cluster_remove_folder(&c);
}

static void a_policy_delays_and_refuses(void **state)
{
    (void)state;
    try_a_policy(false);
}

static void a_policy_is_asked_beside_quotas(void **state)
{
    (void)state;
    try_a_policy(true);
}

static size_t put_delimited(uint8_t *to, const ProtobufCMessage *m)
{
    size_t n = rq_put_varint(to, protobuf_c_message_get_packed_size(m));
    return n + protobuf_c_message_pack(m, to + n);
}

/* A Get of hbase:meta, traced as OpenTelemetry's clients do. */
static void get_meta_traced(uint16_t port, const char *traceparent)
{
    Pb__RPCTInfo__HeadersEntry entry = PB__RPCTINFO__HEADERS_ENTRY__INIT;
    Pb__RPCTInfo__HeadersEntry *entries[] = {&entry};
    Pb__RPCTInfo trace = PB__RPCTINFO__INIT;
    Pb__RequestHeader header = PB__REQUEST_HEADER__INIT;
    Pb__ConnectionHeader hello = PB__CONNECTION_HEADER__INIT;
    Pb__RegionSpecifier region = PB__REGION_SPECIFIER__INIT;
    Pb__Get get = PB__GET__INIT;
    Pb__GetRequest request = PB__GET_REQUEST__INIT;
    uint8_t bytes[512] = "HBas\0\x50", answer[4];
    hello.service_name = "ClientService";
    size_t len = pb__connection_header__pack(&hello, bytes + 10);
    rq_put_be32(bytes + 6, (uint32_t)len);
    len += 10;
    entry.key = "traceparent";
    entry.value = (char *)traceparent;
    trace.n_headers = 1;
    trace.headers = entries;
    header.has_call_id = header.has_request_param = header.request_param = true;
    header.method_name = "Get";
    header.trace_info = traceparent == NULL ? NULL : &trace;
    region.type = PB__REGION_SPECIFIER__REGION_SPECIFIER_TYPE__REGION_NAME;
    region.value = (ProtobufCBinaryData){13, (uint8_t *)"hbase:meta,,1"};
    get.row = (ProtobufCBinaryData){1, (uint8_t *)"x"};
    request.region = &region;
    request.get = &get;
    size_t at = len;
    len += 4;
    len += put_delimited(bytes + len, &header.base);
    len += put_delimited(bytes + len, &request.base);
    rq_put_be32(bytes + at, (uint32_t)(len - at - 4));
    int fd = peer_connect(port);
    peer_send(fd, bytes, len);
    peer_read(fd, answer, 4);
    close(fd);
}

static void an_op_carries_its_trace(void **state)
{
    (void)state;
    cluster c;
    policy *p = policy_new();
    cluster_start(&c, NULL, policy_table(p), NULL);
    get_meta_traced(region_server_port(&c),
                    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    assert_int_equal(policy_last_trace(p), 0xa3ce929d0e0e4736u);
    get_meta_traced(region_server_port(&c), NULL);
    assert_int_equal(policy_last_trace(p), 0);
    cluster_stop(&c);
    policy_free(p);
    cluster_remove_folder(&c);
}

/* ---- bulk loads ------------------------------------------------------------------------------ */

static void prepare_bulk_loads(uint16_t port, unsigned count)
{
    Pb__RequestHeader header = PB__REQUEST_HEADER__INIT;
    Pb__ConnectionHeader hello = PB__CONNECTION_HEADER__INIT;
    Pb__RegionSpecifier region = PB__REGION_SPECIFIER__INIT;
    Pb__TableName table = PB__TABLE_NAME__INIT;
    Pb__PrepareBulkLoadRequest request = PB__PREPARE_BULK_LOAD_REQUEST__INIT;
    uint8_t bytes[512] = "HBas\0\x50", answer[4096];
    hello.service_name = "ClientService";
    size_t len = pb__connection_header__pack(&hello, bytes + 10);
    rq_put_be32(bytes + 6, (uint32_t)len);
    int fd = peer_connect(port);
    peer_send(fd, bytes, len + 10);
    header.has_call_id = header.has_request_param = header.request_param = true;
    header.method_name = "PrepareBulkLoad";
    table.namespace_ = (ProtobufCBinaryData){5, (uint8_t *)"hbase"};
    table.qualifier = (ProtobufCBinaryData){4, (uint8_t *)"meta"};
    region.type = PB__REGION_SPECIFIER__REGION_SPECIFIER_TYPE__REGION_NAME;
    region.value = (ProtobufCBinaryData){13, (uint8_t *)"hbase:meta,,1"};
    request.table_name = &table;
    request.region = &region;
    for (unsigned i = 0; i < count; i++) {
        len = 4;
        len += put_delimited(bytes + len, &header.base);
        len += put_delimited(bytes + len, &request.base);
        rq_put_be32(bytes, (uint32_t)(len - 4));
        peer_send(fd, bytes, len);
        peer_read(fd, answer, 4);
        size_t n = rq_get_be32(answer);
        assert_true(n <= sizeof answer);
        peer_read(fd, answer, n);
    }
    close(fd);
}

static unsigned files_in(const char *path)
{
    unsigned count = 0;
    DIR *d = opendir(path);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        count += e->d_name[0] != '.';
    closedir(d);
    return count;
}

/* Clients that prepare bulk loads and disappear leave folders, whose total number is limited. */
static void folders_of_bulk_loads_have_a_total(void **state)
{
    (void)state;
    cluster c;
    char staging[80];
    cluster_start(&c, NULL, NULL, NULL);
    snprintf(staging, sizeof staging, "%s/staging", c.folder);
    prepare_bulk_loads(region_server_port(&c), 3);
    assert_int_equal(files_in(staging), 3);
    prepare_bulk_loads(region_server_port(&c), 1100);
    assert_in_range(files_in(staging), 1, 1024);
    cluster_stop(&c);
    cluster_remove_folder(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_servers_share_nothing),
        cmocka_unit_test(a_client_needs_no_epoll_pwait2),
        cmocka_unit_test(a_client_pauses_for_whole_seconds),
        cmocka_unit_test(a_closed_table_leaves_nothing),
        cmocka_unit_test(two_servers_do_not_share_a_folder),
        cmocka_unit_test(protocols_do_not_notice_a_transform),
        cmocka_unit_test(a_program_connects_to_its_own_server),
        cmocka_unit_test(a_policy_delays_and_refuses),
        cmocka_unit_test(a_policy_is_asked_beside_quotas),
        cmocka_unit_test(an_op_carries_its_trace),
        cmocka_unit_test(folders_of_bulk_loads_have_a_total),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
