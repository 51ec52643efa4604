/* SPDX-License-Identifier: Apache-2.0 */
/* The balancer's choice: after it no two servers differ by more than one region, by as few moves as possible. */
#include "../base/unit.h"

#include "catalog/balancer.h"

#include <stdlib.h>

#define REGIONS_MAX 300
#define SERVERS_MAX 7
#define TABLES_MAX 5

static size_t on_server(const rq__balanced *list, size_t count, size_t server)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += list[i].server == server;
    return n;
}

/* The number of regions that exceed what their servers may keep. A plan needs at least so many moves. */
static size_t least_moves(const rq__balanced *list, size_t count, size_t servers)
{
    size_t low = count / servers, most = count % servers, above = 0, below = 0;
    for (size_t s = 0; s < servers; s++) {
        size_t n = on_server(list, count, s);
        bool one_more = n > low && most > 0;
        most -= one_more;
        if (n > low + one_more) above += n - low - one_more;
        if (n < low) below += low - n;
    }
    return above > below ? above : below;
}

static void any_distribution_is_balanced(void **state)
{
    (void)state;
    rq__balanced list[REGIONS_MAX], before[REGIONS_MAX];
    srandom((unsigned)unit_seed());
    for (int round = 0; round < 500; round++) {
        size_t count = (size_t)random() % (REGIONS_MAX + 1), moves, moved = 0;
        size_t servers = 1 + (size_t)random() % SERVERS_MAX, used = 1 + (size_t)random() % servers;
        for (size_t i = 0; i < count; i++)
            list[i] = (rq__balanced){.table = (size_t)random() % TABLES_MAX,
                                     .server = (size_t)random() % used};
        memcpy(before, list, sizeof list);
        assert_int_equal(rq__balance(list, count, TABLES_MAX, servers, SIZE_MAX, &moves), RQ_OK);
        for (size_t s = 0; s < servers; s++) {
            size_t n = on_server(list, count, s);
            assert_true(n == count / servers || n == (count + servers - 1) / servers);
        }
        for (size_t i = 0; i < count; i++) {
            moved += list[i].moves;
            assert_int_equal(list[i].moves, list[i].server != before[i].server);
        }
        assert_int_equal(moves, moved);
        assert_int_equal(moves, least_moves(before, count, servers));
    }
}

/* Of two tables each server has half afterwards, though any four regions would make the numbers even. */
static void tables_are_spread(void **state)
{
    (void)state;
    rq__balanced list[8];
    size_t moves, first = 0;
    for (size_t i = 0; i < 8; i++)
        list[i] = (rq__balanced){.table = i / 4, .server = 0};
    assert_int_equal(rq__balance(list, 8, 2, 2, SIZE_MAX, &moves), RQ_OK);
    assert_int_equal(moves, 4);
    for (size_t i = 0; i < 4; i++)
        first += list[i].server;
    assert_int_equal(first, 2);
}

static void a_run_is_bounded(void **state)
{
    (void)state;
    rq__balanced list[8];
    size_t moves;
    memset(list, 0, sizeof list);
    assert_int_equal(rq__balance(list, 8, 1, 2, 3, &moves), RQ_OK);
    assert_int_equal(moves, 3);
    assert_int_equal(on_server(list, 8, 1), 3);
    assert_int_equal(rq__balance(list, 8, 1, 0, 3, &moves), RQ_OK);
    assert_int_equal(moves, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_distribution_is_balanced),
        cmocka_unit_test(tables_are_spread),
        cmocka_unit_test(a_run_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
