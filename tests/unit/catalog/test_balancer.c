/* SPDX-License-Identifier: Apache-2.0 */
/* The balancer's choice: after it no two servers differ by more than one region, by as few moves as possible. */
#include "../base/unit.h"

#include "catalog/balancer.h"

#include <stdlib.h>

#define REGIONS_MAX 300
#define SERVERS_MAX 7
#define TABLES_MAX 5
#define CANDIDATES 16 /* the balancer considers this many tables per move */
#define MANY_TABLES 60

static size_t on_server(const rq__balanced *list, size_t count, size_t server)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += list[i].server == server;
    return n;
}

/* The number of regions that exceed what their servers may keep. A plan needs at least this many
 * moves. */
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

/* Of each of two tables every server has half afterwards, although moving any four regions would
 * make the numbers even. */
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

/* --- against an algorithm that considers every region for each move ----------------------------- */

static size_t of_most(const size_t *counts, size_t n, bool least)
{
    size_t at = 0;
    for (size_t i = 1; i < n; i++)
        if (least ? counts[i] < counts[at] : counts[i] > counts[at]) at = i;
    return at;
}

/* A region of server `from`, of the table that is spread most unevenly over both servers. */
static rq__balanced *choose_simply(rq__balanced *list, size_t count, size_t from, size_t to)
{
    size_t here[MANY_TABLES] = {0}, there[MANY_TABLES] = {0}, most = 0;
    rq__balanced *best = NULL;
    for (size_t i = 0; i < count; i++) {
        here[list[i].table] += list[i].server == from;
        there[list[i].table] += list[i].server == to;
    }
    for (size_t i = 0; i < count; i++) {
        size_t h = here[list[i].table], t = there[list[i].table], uneven = h > t ? h - t : 0;
        if (list[i].server != from || (best != NULL && uneven <= most)) continue;
        best = &list[i];
        most = uneven;
    }
    return best;
}

static void balance_simply(rq__balanced *list, size_t count, size_t servers, size_t max)
{
    size_t counts[SERVERS_MAX] = {0};
    for (size_t i = 0; i < count; i++)
        counts[list[i].server]++;
    for (size_t moves = 0; moves < max; moves++) {
        size_t from = of_most(counts, servers, false), to = of_most(counts, servers, true);
        if (counts[from] < counts[to] + 2) break;
        rq__balanced *r = choose_simply(list, count, from, to);
        counts[from]--;
        counts[to]++;
        r->server = to;
        r->moves = true;
    }
}

/* Regions as servers have them after some of them have joined and left. */
static void scatter(rq__balanced *list, size_t count, size_t tables, size_t servers)
{
    size_t used = 1 + (size_t)random() % servers;
    for (size_t i = 0; i < count; i++)
        list[i] = (rq__balanced){.table = (size_t)random() % tables,
                                 .server = (size_t)random() % (random() % 3 == 0 ? servers : used)};
}

static void the_choice_equals_a_simple_algorithms(void **state)
{
    (void)state;
    rq__balanced list[REGIONS_MAX], simple[REGIONS_MAX];
    srandom((unsigned)unit_seed());
    for (int round = 0; round < 300; round++) {
        size_t count = (size_t)random() % (REGIONS_MAX + 1), moves;
        size_t servers = 1 + (size_t)random() % SERVERS_MAX;
        size_t max = random() % 2 == 0 ? SIZE_MAX : (size_t)random() % 40;
        scatter(list, count, CANDIDATES, servers);
        memcpy(simple, list, sizeof list);
        assert_int_equal(rq__balance(list, count, CANDIDATES, servers, max, &moves), RQ_OK);
        balance_simply(simple, count, servers, max);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(list[i].server, simple[i].server);
            assert_int_equal(list[i].moves, simple[i].moves);
        }
    }
}

/* The sum, over all tables, of the difference between the largest and the smallest number of regions that a server has of the table. */
static size_t spread(const rq__balanced *list, size_t count, size_t servers)
{
    size_t sum = 0;
    for (size_t t = 0; t < MANY_TABLES; t++) {
        size_t counts[SERVERS_MAX] = {0};
        for (size_t i = 0; i < count; i++)
            if (list[i].table == t) counts[list[i].server]++;
        sum += counts[of_most(counts, servers, false)] - counts[of_most(counts, servers, true)];
    }
    return sum;
}

/* With more tables than are considered per move, the tables are spread about as well. */
static void many_tables_are_spread(void **state)
{
    (void)state;
    rq__balanced list[REGIONS_MAX], simple[REGIONS_MAX];
    size_t moves, sum = 0, simple_sum = 0, before = 0;
    srandom((unsigned)unit_seed());
    for (int round = 0; round < 60; round++) {
        size_t servers = 2 + (size_t)random() % (SERVERS_MAX - 1);
        scatter(list, REGIONS_MAX, MANY_TABLES, servers);
        memcpy(simple, list, sizeof list);
        before += spread(list, REGIONS_MAX, servers);
        assert_int_equal(rq__balance(list, REGIONS_MAX, MANY_TABLES, servers, SIZE_MAX, &moves),
                         RQ_OK);
        balance_simply(simple, REGIONS_MAX, servers, SIZE_MAX);
        sum += spread(list, REGIONS_MAX, servers);
        simple_sum += spread(simple, REGIONS_MAX, servers);
    }
    print_message("spread %zu; %zu by the simple choice; %zu before\n", sum, simple_sum, before);
    assert_true(sum < before);
    assert_true(sum * 10 <= simple_sum * 11);
}

/* 1,000 servers, one of them new and empty, and 100,000 regions, the largest cluster of the design. */
static void a_large_cluster_is_balanced(void **state)
{
    (void)state;
    size_t count = 100000, servers = 1000, moves, got = 0;
    rq__balanced *list = calloc(count, sizeof *list);
    assert_non_null(list);
    for (size_t i = 0; i < count; i++)
        list[i] = (rq__balanced){.table = i / 2, .server = i % (servers - 1)};
    assert_int_equal(rq__balance(list, count, count, servers, 1000, &moves), RQ_OK);
    assert_int_equal(moves, 100);
    for (size_t i = 0; i < count; i++)
        got += list[i].moves && list[i].server == servers - 1;
    assert_int_equal(got, 100);
    free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_distribution_is_balanced),
        cmocka_unit_test(tables_are_spread),
        cmocka_unit_test(a_run_is_bounded),
        cmocka_unit_test(the_choice_equals_a_simple_algorithms),
        cmocka_unit_test(many_tables_are_spread),
        cmocka_unit_test(a_large_cluster_is_balanced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
