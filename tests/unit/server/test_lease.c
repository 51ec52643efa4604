/* SPDX-License-Identifier: Apache-2.0 */
/* What the keeper does with the lease (node_lease.c) and with a shutdown of the cluster (node_shutdown.c). */
#include "server/node_priv.h"

#include "../base/unit.h"

#include <unistd.h>

#define SECOND UINT64_C(1000000000)

static uint64_t now;

static uint64_t now_of(const rq_shared *s)
{
    (void)s;
    return now;
}

static uint64_t now_of_executor(rq_executor *ex)
{
    (void)ex;
    return now;
}

typedef struct world {
    rq_node *node;
    rq_executor executor;
    unsigned stops; /* calls of o.stop */
    rq_shared shared;
    rq_tenure tenure;
    rq_log log;
    int pipe[2];
} world;

static void stop(void *ctx)
{
    world *w = ctx;
    w->stops++;
}

static void world_init(world *w)
{
    *w = (world){.shared = {.now_ns = now_of}, .executor = {.now_ns = now_of_executor}};
    assert_int_equal(pipe(w->pipe), 0);
    w->log = (rq_log){.fd = w->pipe[1], .level = RQ_LOG_INFO};
    w->tenure.shared = &w->shared;
    w->node = calloc(1, sizeof *w->node);
    assert_non_null(w->node);
    w->node->o.log = &w->log;
    w->node->o.stop = stop;
    w->node->o.stop_ctx = w;
    w->node->env.executor = &w->executor;
    w->node->store.shared = &w->shared;
    w->node->tenure = &w->tenure;
    now = 100 * SECOND;
}

static void world_end(world *w)
{
    free(w->node);
    close(w->pipe[0]);
    close(w->pipe[1]);
}

/* Checks the lease at time `at`; the lease is valid until `until`. The log line must contain both
 * texts; text NULL: no line. Returns whether the master should hear of it. */
static bool check(world *w, uint64_t at, uint64_t until, const char *text, const char *figure)
{
    char line[4096] = "";
    now = at;
    atomic_store(&w->tenure.valid_until_ns, until);
    bool is_news = rq__node_check_lease(w->node);
    assert_int_equal(write(w->pipe[1], "\n", 1), 1); /* so that the read does not wait */
    ssize_t n = read(w->pipe[0], line, sizeof line - 1);
    assert_true(n > 0);
    if (text == NULL) {
        assert_string_equal(line, "\n");
        return is_news;
    }
    assert_non_null(strstr(line, text));
    assert_non_null(strstr(line, figure));
    return is_news;
}

#define EXPIRED "the lease has expired"
#define VALID "the lease is valid again"

/* One line when the lease expires, one every 30 s while it is expired, one when it is valid again. */
static void an_expired_lease_is_logged(void **state)
{
    (void)state;
    world w;
    uint64_t t = 100 * SECOND;
    world_init(&w);
    assert_false(check(&w, t, t + 1, NULL, NULL));
    assert_true(check(&w, t + SECOND, t + SECOND / 2, EXPIRED, "500"));
    assert_false(check(&w, t + 2 * SECOND, t + SECOND / 2, NULL, NULL));
    assert_false(check(&w, t + 30 * SECOND, t + SECOND / 2, NULL, NULL));
    assert_false(check(&w, t + 31 * SECOND, t + SECOND / 2, EXPIRED, "30500"));
    assert_true(check(&w, t + 32 * SECOND, t + 33 * SECOND, VALID, "31500"));
    assert_false(check(&w, t + 33 * SECOND - 1, t + 33 * SECOND, NULL, NULL));
    /* A lease that expires repeatedly does not fill the log. */
    assert_true(check(&w, t + 34 * SECOND, t + 33 * SECOND, NULL, NULL));
    assert_false(check(&w, t + 64 * SECOND, t + 33 * SECOND, EXPIRED, "suppressed=1"));
    world_end(&w);
}

/* What reports say: 0 only while the lease is valid. */
static void reports_say_for_how_long_the_lease_is_expired(void **state)
{
    (void)state;
    world w;
    world_init(&w);
    atomic_store(&w.tenure.valid_until_ns, now);
    assert_int_equal(rq__node_lease_expired_ms(w.node), 1);
    now += 2 * SECOND;
    assert_int_equal(rq__node_lease_expired_ms(w.node), 2001);
    atomic_store(&w.tenure.valid_until_ns, now + 1);
    assert_int_equal(rq__node_lease_expired_ms(w.node), 0);
    world_end(&w);
}

/* The keeper looks when the lease expires, not up to 200 ms later. */
static void the_keeper_looks_when_the_lease_expires(void **state)
{
    (void)state;
    world w;
    world_init(&w);
    atomic_store(&w.tenure.valid_until_ns, now + SECOND);
    assert_int_equal(rq__node_lease_look_ms(w.node, 200), 200);
    atomic_store(&w.tenure.valid_until_ns, now + SECOND / 10);
    assert_int_equal(rq__node_lease_look_ms(w.node, 200), 101);
    atomic_store(&w.tenure.valid_until_ns, now + 1);
    assert_int_equal(rq__node_lease_look_ms(w.node, 200), 1);
    atomic_store(&w.tenure.valid_until_ns, now);
    assert_int_equal(rq__node_lease_look_ms(w.node, 200), 200);
    world_end(&w);
}

static void the_end_of_the_tenure_is_no_expiry(void **state)
{
    (void)state;
    world w;
    world_init(&w);
    assert_false(check(&w, 100 * SECOND, 0, NULL, NULL));
    assert_true(rq__node_lease_expired_ms(w.node) > 0);
    world_end(&w);
}

/* --- a shutdown -------------------------------------------------------------------------------- */

static bool looks(world *w, rq_member_state state, size_t servers, bool is_shut_down)
{
    const rq_member_view v = {
        .state = state, .server_count = servers, .is_shut_down = is_shut_down, .active = ""};
    return rq__node_ends_with_cluster(w->node, &v);
}

static void without_a_shutdown_nobody_ends(void **state)
{
    (void)state;
    world w;
    world_init(&w);
    assert_false(looks(&w, RQ_MEMBER_STANDBY, 3, false));
    assert_false(looks(&w, RQ_MEMBER_ACTIVE, 3, false));
    assert_false(looks(&w, RQ_MEMBER_JOINING, 0, false));
    assert_int_equal(w.stops, 0);
    world_end(&w);
}

static void the_master_waits_a_minute_for_the_others(void **state)
{
    (void)state;
    world w;
    world_init(&w);
    assert_true(looks(&w, RQ_MEMBER_ACTIVE, 2, true));
    now += 59 * SECOND;
    assert_true(looks(&w, RQ_MEMBER_ACTIVE, 2, true));
    assert_int_equal(w.stops, 0);
    now += SECOND;
    assert_true(looks(&w, RQ_MEMBER_ACTIVE, 2, true));
    assert_true(looks(&w, RQ_MEMBER_ACTIVE, 2, true));
    assert_int_equal(w.stops, 1);
    world_end(&w);
    world_init(&w);
    assert_true(looks(&w, RQ_MEMBER_ACTIVE, 1, true));
    assert_int_equal(w.stops, 1);
    world_end(&w);
}

/* Its session expires, and a view without one says nothing of the shutdown; or ZooKeeper has lost its data, and nothing
 * says it any more. */
static void a_shutdown_is_not_forgotten_with_the_session(void **state)
{
    (void)state;
    world w;
    world_init(&w);
    assert_true(looks(&w, RQ_MEMBER_ACTIVE, 2, true));
    assert_true(looks(&w, RQ_MEMBER_JOINING, 0, false));
    assert_int_equal(w.stops, 1); /* another process may be the master meanwhile */
    world_end(&w);
    world_init(&w);
    assert_true(looks(&w, RQ_MEMBER_ACTIVE, 2, true));
    now += 59 * SECOND;
    assert_true(looks(&w, RQ_MEMBER_ACTIVE, 2, false));
    assert_int_equal(w.stops, 0);
    now += SECOND; /* the minute goes on */
    assert_true(looks(&w, RQ_MEMBER_ACTIVE, 2, false));
    assert_int_equal(w.stops, 1);
    world_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_expired_lease_is_logged),
        cmocka_unit_test(reports_say_for_how_long_the_lease_is_expired),
        cmocka_unit_test(the_keeper_looks_when_the_lease_expires),
        cmocka_unit_test(the_end_of_the_tenure_is_no_expiry),
        cmocka_unit_test(without_a_shutdown_nobody_ends),
        cmocka_unit_test(the_master_waits_a_minute_for_the_others),
        cmocka_unit_test(a_shutdown_is_not_forgotten_with_the_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
