/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses and ports a server listens on: the meaning of --listen, the host sent to clients, the search for free
 * ports, the port of the HTTP pages. */
#include "server/info.h"
#include "server/listen.h"

#include "net/socket.h"
#include "../base/unit.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

static rq_listen resolved(const char *text)
{
    rq_listen l;
    rq_error why = {0};
    if (rq__listen_resolve(text, &l, &why) != RQ_OK) fail_msg("%s: %s", text, why.message);
    return l;
}

static void addresses_and_names_are_resolved(void **state)
{
    (void)state;
    rq_listen l = resolved("127.0.0.1");
    assert_int_equal(l.count, 1);
    assert_string_equal(l.address[0], "127.0.0.1");
    assert_string_equal(l.first, "127.0.0.1");
    l = resolved("[::1] ,\t127.0.0.1");
    assert_int_equal(l.count, 2);
    assert_string_equal(l.address[0], "::1");
    assert_string_equal(l.address[1], "127.0.0.1");
    assert_string_equal(l.first, "::1");
    l = resolved("127.0.0.1,127.0.0.1"); /* duplicates count once */
    assert_int_equal(l.count, 1);
    l = resolved("localhost");
    assert_in_range(l.count, 1, 2); /* includes ::1 if the machine has IPv6 */
    assert_string_equal(l.first, "localhost");
}

static void wrong_addresses_are_refused(void **state)
{
    (void)state;
    char many[RQ_LISTEN_MAX * 16 + 32] = "127.0.0.1", longest[RQ_LISTEN_MAX * RQ_HOST_SIZE + 1];
    for (unsigned i = 2; i <= RQ_LISTEN_MAX + 1; i++)
        sprintf(many + strlen(many), ",127.0.0.%u", i);
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    char host[RQ_HOST_SIZE + 1];
    memset(host, 'a', sizeof host - 1);
    host[sizeof host - 1] = '\0';
    const char *const wrong[] = {"",   ",",     "127.0.0.1,", "[127.0.0.1]",         "[abc]",
                                 many, longest, host,         "no.such.name.invalid"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        rq_listen l;
        rq_error why = {0};
        assert_int_equal(rq__listen_resolve(wrong[i], &l, &why), RQ_E_CONFIG);
        assert_non_null(strstr(why.message, "--listen"));
    }
}

static void clients_get_a_reachable_host(void **state)
{
    (void)state;
    char host[RQ_HOST_SIZE], own[RQ_HOST_SIZE];
    rq_listen l = resolved("127.0.0.1,127.0.0.2");
    rq__listen_host(&l, NULL, host);
    assert_string_equal(host, "127.0.0.1");
    rq__listen_host(&l, "", host);
    assert_string_equal(host, "127.0.0.1");
    rq__listen_host(&l, "example.org", host);
    assert_string_equal(host, "example.org");
    assert_int_equal(gethostname(own, sizeof own), 0);
    l = resolved("0.0.0.0"); /* an address that clients cannot use */
    rq__listen_host(&l, NULL, host);
    assert_string_equal(host, own);
}

/* Binds as another program does, without SO_REUSEADDR. */
static bool is_free(const char *address, uint16_t port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    assert_int_equal(inet_pton(AF_INET, address, &at.sin_addr), 1);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    bool free = bind(fd, (struct sockaddr *)&at, sizeof at) == 0;
    close(fd);
    return free;
}

static void zeros_become_ports_that_differ(void **state)
{
    (void)state;
    rq_listen l = resolved("127.0.0.1,127.0.0.2");
    rq_error why = {0};
    rq_ports p = {0};
    rq_listen_held held;
    assert_int_equal(rq__listen_hold(&l, &p, &held, &why), RQ_OK);
    assert_true(p.zk != 0 && p.master != 0 && p.rs != 0);
    assert_true(p.zk != p.master && p.master != p.rs && p.rs != p.zk);
    rq__listen_release(&held);
    for (unsigned i = 0; i < l.count; i++)
        assert_true(is_free(l.address[i], p.rs));
    rq__listen_release(&held);
}

/* No other process gets the port between its choice and the listener. */
static void a_held_port_is_the_servers(void **state)
{
    (void)state;
    rq_listen l = resolved("127.0.0.1,127.0.0.2");
    rq_error why = {0};
    rq_ports p = {0};
    rq_listen_held held;
    int fd[2];
    assert_int_equal(rq__listen_hold(&l, &p, &held, &why), RQ_OK);
    for (unsigned i = 0; i < l.count; i++) {
        uint16_t bound;
        assert_false(is_free(l.address[i], p.rs));
        assert_int_equal(rq_socket_listen(l.address[i], p.rs, false, &fd[i], &bound, &why), RQ_OK);
        assert_int_equal(bound, p.rs);
    }
    rq__listen_release(&held);
    for (unsigned i = 0; i < l.count; i++) {
        assert_false(is_free(l.address[i], p.rs));
        close(fd[i]);
        assert_true(is_free(l.address[i], p.rs));
    }
}

static void equal_ports_are_refused(void **state)
{
    (void)state;
    rq_listen l = resolved("127.0.0.1");
    rq_error why = {0};
    rq_ports p = {.zk = 0, .master = 12345, .rs = 12345};
    rq_listen_held held;
    assert_int_equal(rq__listen_hold(&l, &p, &held, &why), RQ_E_CONFIG);
    assert_string_equal(why.message, "--master-port and --rs-port: both have port 12345");
    assert_int_equal(held.count, 0);
}

static void a_port_in_use_is_named(void **state)
{
    (void)state;
    rq_listen l = resolved("127.0.0.1,127.0.0.2");
    rq_error why = {0};
    rq_listen_held held;
    uint16_t taken;
    int fd;
    assert_int_equal(rq_socket_listen("127.0.0.2", 0, false, &fd, &taken, &why), RQ_OK);
    rq_ports p = {.master = taken};
    assert_int_equal(rq__listen_hold(&l, &p, &held, &why), RQ_E_EXISTS);
    assert_non_null(strstr(why.message, "--master-port"));
    assert_non_null(strstr(why.message, "127.0.0.2"));
    assert_int_equal(held.count, 0);
    close(fd);
    rq_error_clear(&why);
    p.zk = p.rs = 0;
    assert_int_equal(rq__listen_hold(&l, &p, &held, &why), RQ_OK);
    assert_int_equal(p.master, taken);
    rq__listen_release(&held);
}

/* An address of this process alone, so that its ports are free, except those that another process has on all addresses. */
static const char *own_address(void)
{
    static char address[16];
    unsigned pid = (unsigned)getpid();
    snprintf(address, sizeof address, "127.%u.%u.%u", 64 + (pid >> 16) % 128, (pid >> 8) & 255,
             1 + (pid & 255) % 254);
    return address;
}

static rq_err bind_pages(const rq_config *c, uint16_t port, const rq_ports *own, rq_info_place *p)
{
    rq_error why = {0};
    assert_int_equal(rq__info_place_of(c, p, &why), RQ_OK);
    snprintf(p->host, sizeof p->host, "%s", own_address());
    p->port = port;
    return rq__info_bind(p, own, NULL, &why);
}

/* Three ports in a row, of which the first is in use and the second is one of the server's own. */
static void the_pages_take_the_next_free_port(void **state)
{
    (void)state;
    rq_config *c;
    rq_info_place p;
    rq_error why = {0};
    uint16_t taken = UINT16_MAX;
    int fd = -1;
    assert_int_equal(rq_config_new(&c), RQ_OK);
    while (taken > UINT16_MAX - 3) {
        if (fd >= 0) close(fd);
        assert_int_equal(rq_socket_listen(own_address(), 0, false, &fd, &taken, &why), RQ_OK);
    }
    const rq_ports own = {
        .without_zk = true, .rs = (uint16_t)(taken + 1), .zk = (uint16_t)(taken + 2)};
    assert_int_equal(bind_pages(c, taken, &own, &p), RQ_OK);
    assert_false(p.on); /* it is the default: the server runs without pages */
    assert_int_equal(rq_config_set(c, "hbase.regionserver.info.port.auto", "true", &why), RQ_OK);
    assert_int_equal(bind_pages(c, taken, &own, &p), RQ_OK);
    assert_true(p.on);
    assert_true(p.port >= taken + 2); /* another process may have that one on all addresses */
    close(p.fd);
    assert_int_equal(rq_config_set(c, "hbase.regionserver.info.port.auto", "false", &why), RQ_OK);
    assert_int_equal(rq_config_set(c, "hbase.master.info.port", "1", &why), RQ_OK);
    assert_int_equal(bind_pages(c, taken, &own, &p), RQ_E_CONFIG);
    close(fd);
    rq_config_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_and_names_are_resolved),
        cmocka_unit_test(wrong_addresses_are_refused),
        cmocka_unit_test(clients_get_a_reachable_host),
        cmocka_unit_test(zeros_become_ports_that_differ),
        cmocka_unit_test(a_held_port_is_the_servers),
        cmocka_unit_test(equal_ports_are_refused),
        cmocka_unit_test(a_port_in_use_is_named),
        cmocka_unit_test(the_pages_take_the_next_free_port),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
