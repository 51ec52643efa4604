/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of slow and large calls: its limits, its order, and records that outlive the ring. */
#include "rpc/slow_log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS 1000000ull

static const rq_slow_limits limits = {
    .ns = 11 * MS, .scan_ns = 101 * MS, .bytes = 1000, .scan_bytes = RQ_SLOW_NEVER, .keeps = true};

static rq_slow_log *make(unsigned places, const rq_slow_limits *l)
{
    rq_slow_log *log = NULL;
    assert_int_equal(rq_slow_log_new(places, l, &log), RQ_OK);
    return log;
}

static bool judge(const rq_slow_log *l, bool is_scan, uint64_t ns, uint64_t bytes, bool *large)
{
    rq_slow_call c = {.ns = ns, .answer_bytes = bytes};
    rq__slow_log_judge(l, is_scan, &c);
    if (large != NULL) *large = c.is_large;
    return c.is_slow;
}

static void limits_are_hbases(void **state)
{
    (void)state;
    rq_slow_log *l = make(1, &limits);
    bool large;
    assert_false(judge(l, false, 11 * MS - 1, 1000, &large));
    assert_false(large);
    assert_true(judge(l, false, 11 * MS, 1001, &large));
    assert_true(large);
    assert_false(judge(l, true, 11 * MS, UINT64_MAX, &large));
    assert_false(large);
    assert_true(judge(l, true, 101 * MS, 0, NULL));
    rq_slow_log_free(l);
}

/* rq__slow_log_looks may skip only calls that are not slow. Its clock may be late by RQ_SLOW_SLACK_NS. */
static void every_slow_call_is_looked_at(void **state)
{
    (void)state;
    rq_slow_log *l = make(1, &limits);
    assert_true(rq__slow_log_looks(l, 11 * MS - RQ_SLOW_SLACK_NS, 0));
    assert_false(rq__slow_log_looks(l, 11 * MS - RQ_SLOW_SLACK_NS - 1, 0));
    assert_true(rq__slow_log_looks(l, 0, 1001));
    assert_false(rq__slow_log_looks(l, 0, 999));
    rq_slow_limits low = {
        .ns = MS, .scan_ns = MS, .bytes = RQ_SLOW_NEVER, .scan_bytes = RQ_SLOW_NEVER};
    rq_slow_log_set(l, &low);
    assert_true(rq__slow_log_looks(l, 0, 0));
    rq_slow_limits none = {RQ_SLOW_NEVER, RQ_SLOW_NEVER, RQ_SLOW_NEVER, RQ_SLOW_NEVER, true};
    rq_slow_log_set(l, &none);
    assert_false(rq__slow_log_looks(l, UINT64_MAX - 1, UINT64_MAX - 1));
    rq_slow_log_free(l);
}

static void settings_become_limits(void **state)
{
    (void)state;
    rq_config *c;
    assert_int_equal(rq_config_new(&c), RQ_OK);
    rq_slow_limits l = rq_slow_limits_of(c);
    assert_true(l.ns == 10001 * MS && l.scan_ns == 10001 * MS && l.keeps);
    assert_true(l.bytes == 104857600 && l.scan_bytes == 104857600);
    assert_int_equal(rq_config_set(c, "hbase.ipc.warn.response.time", "5", NULL), RQ_OK);
    assert_int_equal(rq_config_set(c, "hbase.ipc.warn.response.size.scan", "-1", NULL), RQ_OK);
    assert_int_equal(rq_config_set(c, "hbase.regionserver.slowlog.buffer.enabled", "false", NULL),
                     RQ_OK);
    l = rq_slow_limits_of(c);
    /* the limit of scans follows the general one */
    assert_true(l.ns == 6 * MS && l.scan_ns == 6 * MS);
    assert_true(l.bytes == 104857600 && l.scan_bytes == RQ_SLOW_NEVER);
    assert_false(l.keeps);
    assert_int_equal(rq_config_set(c, "hbase.ipc.warn.response.time.scan", "10000", NULL), RQ_OK);
    /* set explicitly, although to the default */
    assert_true(rq_slow_limits_of(c).scan_ns == 10001 * MS);
    rq_config_free(c);
}

static void add(rq_slow_log *l, const char *param)
{
    rq__slow_log_add(l, &(rq_slow_call){.is_slow = true,
                                        .method = "Get",
                                        .request = "GetRequest",
                                        .server = "HRegionServer",
                                        .client = "127.0.0.1:1",
                                        .user = "u",
                                        .region = "r",
                                        .param = param});
}

static void the_newest_are_kept(void **state)
{
    (void)state;
    rq_slow_log *l = make(3, &limits);
    rq_slow_list list;
    assert_int_equal(rq_slow_log_list(l, &list), RQ_OK);
    assert_int_equal(list.count, 0);
    rq_slow_list_release(&list);
    const char *const params[] = {"1", "2", "3", "4", "5"};
    for (size_t n = 0; n < 5; n++) {
        add(l, params[n]);
        assert_int_equal(rq_slow_log_list(l, &list), RQ_OK);
        assert_int_equal(list.count, n < 3 ? n + 1 : 3);
        for (size_t i = 0; i < list.count; i++)
            assert_string_equal(list.calls[i]->param, params[n - i]);
        rq_slow_list_release(&list);
    }
    assert_int_equal(rq_slow_log_count(l, false), 5);
    assert_int_equal(rq_slow_log_count(l, true), 0);
    rq_slow_log_free(l);
}

static void a_list_outlives_what_is_forgotten(void **state)
{
    (void)state;
    rq_slow_log *l = make(2, &limits);
    rq_slow_list list;
    char text[] = "kept";
    add(l, text);
    memset(text, 'x', 4); /* the log has a copy */
    assert_int_equal(rq_slow_log_list(l, &list), RQ_OK);
    assert_true(rq_slow_log_clear(l));
    add(l, "a");
    add(l, "b");
    assert_int_equal(list.count, 1);
    assert_string_equal(list.calls[0]->param, "kept");
    rq_slow_list_release(&list);
    rq_slow_log_free(l);
}

static void nothing_is_kept_where_it_is_off(void **state)
{
    (void)state;
    rq_slow_limits off = limits;
    rq_slow_list list;
    off.keeps = false;
    rq_slow_log *logs[] = {make(4, &off), make(0, &limits)};
    for (size_t i = 0; i < 2; i++) {
        add(logs[i], "x");
        assert_int_equal(rq_slow_log_list(logs[i], &list), RQ_OK);
        assert_int_equal(list.count, 0);
        assert_int_equal(rq_slow_log_count(logs[i], false), 1);
        rq_slow_list_release(&list);
    }
    assert_false(rq_slow_log_clear(logs[0]));
    rq_slow_log_free(logs[0]);
    rq_slow_log_free(logs[1]);
}

static void a_record_keeps_the_beginning_of_a_long_user(void **state)
{
    (void)state;
    rq_slow_log *l = make(1, &limits);
    char user[16000];
    memset(user, 'u', sizeof user - 1);
    user[sizeof user - 1] = '\0';
    const rq_slow_call call = {.method = "Get",
                               .request = "GetRequest",
                               .client = "c",
                               .user = user,
                               .region = "r",
                               .param = "p",
                               .is_slow = true};
    rq_slow_list list;
    rq__slow_log_add(l, &call);
    assert_int_equal(rq_slow_log_list(l, &list), RQ_OK);
    assert_int_equal(list.count, 1);
    assert_int_equal(strlen(list.calls[0]->user), 255);
    assert_string_equal(list.calls[0]->param, "p");
    rq_slow_list_release(&list);
    rq_slow_log_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_are_hbases),
        cmocka_unit_test(every_slow_call_is_looked_at),
        cmocka_unit_test(settings_become_limits),
        cmocka_unit_test(the_newest_are_kept),
        cmocka_unit_test(a_list_outlives_what_is_forgotten),
        cmocka_unit_test(nothing_is_kept_where_it_is_off),
        cmocka_unit_test(a_record_keeps_the_beginning_of_a_long_user),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
