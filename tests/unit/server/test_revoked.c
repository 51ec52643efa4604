/* SPDX-License-Identifier: Apache-2.0 */
/* The list of fenced servers that orders carry: what it has after many logs of ended servers were found. */
#include "server/revoked.h"
#include "../base/unit.h"

#define MS UINT64_C(1000000)

static size_t list(const rq__revoked_servers *r, uint64_t now_ns, rq_arena *arena, rq_revoked **ret)
{
    rq_arena_clear(arena);
    return rq__revoked_list(r, now_ns, arena, ret);
}

static void many_logs_of_ended_servers_do_not_drive_out_the_fenced_master(void **state)
{
    (void)state;
    rq__revoked_servers r = {0};
    rq_arena a = {0};
    rq_revoked *found;
    rq__revoked_note(&r, "master,16020,1", 1000 * MS, false);
    for (int i = 0; i < 3 * RQ__REVOKED_LISTED_MAX; i++) {
        char name[32];
        snprintf(name, sizeof name, "old,16020,%d", i);
        rq__revoked_note(&r, name, 2000 * MS, true);
    }
    assert_int_equal(list(&r, 400 * MS, &a, &found), RQ__REVOKED_LISTED_MAX);
    assert_string_equal(found[0].server, "master,16020,1");
    assert_in_range(found[0].quiet_in_ms, 600, 601);
    rq__revoked_note(&r, "next,16020,1", 3000 * MS, false);
    (void)list(&r, 0, &a, &found);
    assert_string_equal(found[0].server, "next,16020,1");
    assert_string_equal(found[1].server, "master,16020,1");
    rq_arena_clear(&a);
    rq__revoked_clear(&r);
}

static void a_server_keeps_the_time_of_its_first_fence(void **state)
{
    (void)state;
    rq__revoked_servers r = {0};
    rq_arena a = {0};
    rq_revoked *found;
    rq__revoked_note(&r, "a", 1000 * MS, true);
    rq__revoked_note(&r, "b", 1000 * MS, true);
    rq__revoked_note(&r, "a", 5000 * MS, false);
    assert_int_equal(list(&r, 0, &a, &found), 2);
    assert_string_equal(found[0].server, "a");
    assert_in_range(found[0].quiet_in_ms, 1000, 1001);
    assert_int_equal(list(&r, 1500 * MS, &a, &found), 2);
    assert_int_equal(found[0].quiet_in_ms, 0);
    rq__revoked_forget(&r, "a");
    rq__revoked_forget(&r, "none");
    assert_int_equal(list(&r, 0, &a, &found), 1);
    assert_string_equal(found[0].server, "b");
    rq_arena_clear(&a);
    rq__revoked_clear(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_logs_of_ended_servers_do_not_drive_out_the_fenced_master),
        cmocka_unit_test(a_server_keeps_the_time_of_its_first_fence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
