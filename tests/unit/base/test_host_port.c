/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts with ports (base/host_port.h). */
#include "unit.h"

#include "base/host_port.h"
#include "base/macros.h"

static void expect_split(const char *text, const char *host, uint16_t port)
{
    char got[16];
    uint16_t got_port = 1;
    assert_true(rq_host_port_split(rq_slice_cstr(text), got, sizeof got, &got_port));
    assert_string_equal(got, host);
    assert_int_equal(got_port, port);
}

static void a_host_and_a_port_are_split(void **state)
{
    (void)state;
    expect_split("a:1", "a", 1);
    expect_split("a.b-c:65535", "a.b-c", 65535);
    expect_split("a:0", "a", 0);
    expect_split("[::1]:2181", "::1", 2181);
    expect_split("::1:2181", "::1", 2181);
    expect_split("[]:1", "[]", 1);
    expect_split("123456789012345:1", "123456789012345", 1);
}

static void other_texts_are_refused(void **state)
{
    static const char *const wrong[] = {"",
                                        ":",
                                        "a",
                                        "a:",
                                        ":1",
                                        "a:b",
                                        "a:1b",
                                        "a: 1",
                                        "a:-1",
                                        "a:65536",
                                        "a:99999999999999999999",
                                        "[::1]",
                                        "1234567890123456:1"};
    char host[16];
    uint16_t port;
    (void)state;
    for (size_t i = 0; i < RQ_ARRAY_LEN(wrong); i++)
        assert_false(rq_host_port_split(rq_slice_cstr(wrong[i]), host, sizeof host, &port));
    assert_false(rq_host_port_split((rq_slice){0}, host, sizeof host, &port));
}

static void expect_with_port(const char *entry, const char *expected)
{
    char text[32];
    int len = rq_host_with_port(text, sizeof text, rq_slice_cstr(entry), RQ_SLICE_LIT("2181"));
    assert_string_equal(text, expected);
    assert_int_equal(len, strlen(expected));
}

static void a_port_is_added_where_there_is_none(void **state)
{
    char small[4];
    (void)state;
    expect_with_port("a", "a:2181");
    expect_with_port("a:1", "a:1");
    expect_with_port("127.0.0.1", "127.0.0.1:2181");
    expect_with_port("::1", "[::1]:2181");
    expect_with_port("[::1]", "[::1]:2181");
    expect_with_port("[::1]:1", "[::1]:1");
    assert_int_equal(
        rq_host_with_port(small, sizeof small, RQ_SLICE_LIT("a"), RQ_SLICE_LIT("2181")), 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_and_a_port_are_split),
        cmocka_unit_test(other_texts_are_refused),
        cmocka_unit_test(a_port_is_added_where_there_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
