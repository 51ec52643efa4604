/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A master and two to seven servers, which are cut off from it one by one, in groups or all at once, and hang; the
 * master is paused. Messages are late by up to half a second. All of it comes from a seed, on the simulated clock.
 * Invariants, after each look of the master (rq_remote_silent), by what the simulation knows:
 *
 *   1. A server that could be heard for 8 s is not given up, however long the master was paused before.
 *   2. A server is given up only after trouble of its own: a pause of the master alone is none.
 *   3. Of the servers that are up, the master's included, half could be heard lately, and one beside the master's.
 *   4. If the master is cut off from all servers at once, which it could hear before, none is given up.
 *   5. A server that could not be heard for the limit and a second of the master's running time has been given up, if
 *      half of the servers could be heard for 8 s and half of the limit.
 *   6. What is given up and comes back is told so (YouAreDeadException).
 */
#include "../seeds.h"
#include "../unit/base/unit.h"

#include "base/random.h"
#include "cluster/remote.h"
#include "cluster/wire_priv.h"
#include "proto/region_server_status.pb-c.h"
#include "vfs/sim.h"

#define MS UINT64_C(1000000)
#define TICK_NS (50 * MS)
#define MEMBERS_MAX 7
#define PROBES_MAX 16
#define TIMEOUT_NS (5000 * MS)
#define PERIOD_NS (3000 * MS)
#define SURELY_NS                                                                                  \
    (8000 * MS) /* in this time at least one message of each reachable server arrives */

typedef struct member {
    const rq_server_name *name;
    bool up, told; /* by the master; the server was told that it is given up */
    uint64_t cut_until_ns, hangs_until_ns,
        mute_until_ns;     /* mute: its reports are lost, answers are not */
    uint64_t report_at_ns; /* when it sends the next one */
    uint64_t arrives_ns;   /* the one on the wire; 0: none */
    /* What the simulation knows, in running time of the master: */
    uint64_t well_ns;    /* for how long it could be heard, without a pause of the master */
    uint64_t ill_ns;     /* for how long it could not */
    uint64_t trouble_ns; /* how long it could not, since it was surely heard */
} member;

typedef struct probe {
    rq_remote_request *request; /* NULL: free */
    uint64_t sent_ns, due_ns;
    bool comes_back, is_lost;
} probe;

typedef struct net {
    rq_sim *sim;
    rq_remote *remote;
    rq_random random;
    const rq_server_name *home;
    uint64_t seed, limit_ns, now_ns;
    uint64_t paused_until_ns, isolated_until_ns;
    member members[MEMBERS_MAX];
    size_t count;
    probe probes[PROBES_MAX];
} net;

static unsigned seen_given_up, seen_isolated, seen_paused, seen_told, seen_spared;

/* `m` NULL: it is about all. */
static void check(const net *n, const member *m, bool holds, const char *what)
{
    if (!holds)
        fail_msg("seed %llu, %.3f s, %s: %s", (unsigned long long)n->seed, (double)n->now_ns / 1e9,
                 m == NULL ? "all" : m->name->text, what);
}

#define CHECK(n, m, condition) check(n, m, condition, #condition)

/* --- the network ------------------------------------------------------------------------------ */

static uint64_t delay_ns(net *n)
{
    bool slow = rq_random_below(&n->random, 16) == 0;
    return MS + rq_random_below(&n->random, slow ? 500 * MS : 5 * MS);
}

static bool is_cut(const net *n, const member *m)
{
    return n->now_ns < m->cut_until_ns;
}

static bool is_ill(const net *n, const member *m)
{
    return is_cut(n, m) || n->now_ns < m->hangs_until_ns;
}

static member *named(net *n, const rq_server_name *name)
{
    size_t i = 0;
    while (strcmp(n->members[i].name->text, name->text) != 0)
        i++;
    return &n->members[i];
}

static void take_probe(void *ctx, rq_remote_request *r)
{
    net *n = ctx;
    size_t i = 0;
    assert_int_equal(r->request.len, 0);
    while (n->probes[i].request != NULL)
        i++;
    n->probes[i] = (probe){.request = r, .sent_ns = n->now_ns, .due_ns = n->now_ns + delay_ns(n)};
}

static void end_probe(probe *p, rq_err rc)
{
    rq_remote_request *r = p->request;
    *p = (probe){0};
    r->done(r, rc, NULL);
}

/* On the wire and on the server. */
static void move_probe(net *n, probe *p)
{
    const member *m = named(n, p->request->server);
    if (p->due_ns > n->now_ns || p->is_lost || p->comes_back) return;
    if (is_cut(n, m)) {
        p->is_lost = true;
    } else if (!is_ill(n, m)) {
        p->comes_back = true;
        p->due_ns = n->now_ns + delay_ns(n);
    }
}

static void hear_probe(net *n, probe *p)
{
    const member *m = named(n, p->request->server);
    bool arrives = p->comes_back && !p->is_lost && p->due_ns <= n->now_ns;
    if (arrives && is_cut(n, m))
        p->is_lost = true;
    else if (arrives)
        end_probe(p, RQ_OK);
    else if (n->now_ns - p->sent_ns >= TIMEOUT_NS)
        end_probe(p, RQ_E_CALL_TIMEOUT);
}

static rq_err report(net *n, const member *m)
{
    rq_arena a = {0};
    rq_slice bytes;
    Pb__RegionServerReportRequest r = PB__REGION_SERVER_REPORT_REQUEST__INIT;
    r.server = rq__wire_put_server(&a, m->name);
    assert_non_null(r.server);
    assert_int_equal(rq__wire_pack(&a, &r.base, &bytes), RQ_OK);
    rq_err rc = rq_remote_server_report(n->remote, m->name, bytes, NULL);
    rq_arena_clear(&a);
    return rc;
}

static void send_report(net *n, member *m)
{
    if (m->told || n->now_ns < m->report_at_ns || is_ill(n, m)) return;
    m->report_at_ns = n->now_ns + PERIOD_NS;
    m->arrives_ns = n->now_ns + delay_ns(n);
}

/* Invariant 6. */
static void hear_report(net *n, member *m)
{
    if (m->arrives_ns == 0 || n->now_ns < m->arrives_ns) return;
    m->arrives_ns = 0;
    if (is_cut(n, m) || n->now_ns < m->mute_until_ns) {
        m->report_at_ns = n->now_ns + TIMEOUT_NS;
        return;
    }
    rq_err rc = report(n, m);
    CHECK(n, m, rc == (m->up ? RQ_OK : RQ_E_YOU_ARE_DEAD));
    m->told = !m->up;
    seen_told += m->told;
}

/* --- what the simulation knows ---------------------------------------------------------------- */

static void note_health(net *n, member *m, bool paused)
{
    bool ill = is_ill(n, m);
    m->well_ns = ill || paused ? 0 : m->well_ns + TICK_NS;
    if (!ill) m->ill_ns = 0; /* what it sends during a pause is heard after it */
    if (ill && !paused) {
        m->ill_ns += TICK_NS;
        m->trouble_ns += TICK_NS;
    }
    if (m->well_ns >= SURELY_NS) m->trouble_ns = 0;
}

static bool heard_lately(const net *n, const member *m)
{
    return m->ill_ns < n->limit_ns / 2 + 1000 * MS;
}

/* Whether half of those that are up are as `is` says, and one beside the master's. */
static bool half(const net *n, bool (*is)(const net *n, const member *m))
{
    size_t up = 1, good = 1;
    for (size_t i = 0; i < n->count; i++) {
        if (!n->members[i].up) continue;
        up++;
        good += is(n, &n->members[i]);
    }
    return good > 1 && 2 * good >= up;
}

static bool surely_heard(const net *n, const member *m)
{
    uint64_t for_ns = SURELY_NS + n->limit_ns / 2;
    return m->well_ns >= for_ns && n->now_ns >= m->mute_until_ns + for_ns;
}

static void given_up(net *n, member *m)
{
    CHECK(n, m, m->up);
    CHECK(n, m, m->well_ns < SURELY_NS);               /* 1 */
    CHECK(n, m, m->trouble_ns >= n->limit_ns / 4);     /* 2 */
    CHECK(n, NULL, half(n, heard_lately));             /* 3 */
    CHECK(n, NULL, n->now_ns >= n->isolated_until_ns); /* 4 */
    seen_given_up++;
}

static void look(net *n)
{
    rq_arena a = {0};
    const rq_server_name **list;
    size_t count;
    assert_int_equal(rq_remote_silent(n->remote, n->limit_ns, &a, &list, &count), RQ_OK);
    for (size_t i = 0; i < count; i++)
        given_up(n, named(n, list[i]));
    for (size_t i = 0; i < count; i++) {
        named(n, list[i])->up = false;
        rq_remote_server_down(n->remote, list[i]);
        rq_server_name_unref(list[i]);
    }
    rq_arena_clear(&a);
    for (size_t i = 0; i < n->count; i++) {
        const member *m = &n->members[i];
        bool long_ill = m->up && m->ill_ns >= n->limit_ns + 1000 * MS;
        CHECK(n, m, !(long_ill && half(n, surely_heard))); /* 5 */
        seen_spared += long_ill;
    }
}

/* --- trouble ---------------------------------------------------------------------------------- */

static uint64_t a_while_ns(net *n)
{
    return n->now_ns + 500 * MS + rq_random_below(&n->random, 3 * n->limit_ns);
}

static void isolate(net *n)
{
    uint64_t until = a_while_ns(n);
    bool clean = true; /* all could be heard before */
    for (size_t i = 0; i < n->count; i++) {
        clean &= surely_heard(n, &n->members[i]) || !n->members[i].up;
        n->members[i].cut_until_ns = until;
        n->members[i].hangs_until_ns = n->members[i].mute_until_ns = 0;
    }
    if (clean) n->isolated_until_ns = until;
    seen_isolated += clean;
}

static void make_trouble(net *n)
{
    bool isolated = n->now_ns < n->isolated_until_ns;
    member *m = &n->members[rq_random_below(&n->random, n->count)];
    switch (rq_random_below(&n->random, 8)) {
    case 0:
    case 1:
    case 2:
        if (!isolated) m->cut_until_ns = a_while_ns(n);
        break;
    case 3:
    case 4:
        m->hangs_until_ns = a_while_ns(n);
        break;
    case 5:
        m->mute_until_ns = a_while_ns(n);
        break;
    case 6:
        n->paused_until_ns = a_while_ns(n);
        seen_paused++;
        break;
    default:
        if (!isolated) isolate(n);
    }
}

/* --- a run ------------------------------------------------------------------------------------ */

static void master_runs(net *n)
{
    bool looks_first = rq_random_below(&n->random, 2) == 0; /* after a pause, for instance */
    if (looks_first) look(n);
    /* What has come is taken in any order, some of it in the next tick: after a pause there is a look in between. */
    for (size_t i = 0; i < n->count; i++)
        if (rq_random_below(&n->random, 3) > 0) hear_report(n, &n->members[i]);
    for (size_t i = 0; i < PROBES_MAX; i++)
        if (n->probes[i].request != NULL && rq_random_below(&n->random, 3) > 0)
            hear_probe(n, &n->probes[i]);
    if (!looks_first && rq_random_below(&n->random, 3) == 0) look(n);
}

static void tick(net *n)
{
    rq_executor *ex = rq_sim_env(n->sim)->executor;
    rq_sim_advance(n->sim, TICK_NS);
    n->now_ns = ex->now_ns(ex);
    bool paused = n->now_ns < n->paused_until_ns;
    for (size_t i = 0; i < n->count; i++) {
        note_health(n, &n->members[i], paused);
        send_report(n, &n->members[i]);
    }
    for (size_t i = 0; i < PROBES_MAX; i++)
        if (n->probes[i].request != NULL) move_probe(n, &n->probes[i]);
    if (!paused) master_runs(n);
    if (rq_random_below(&n->random, 400) == 0) make_trouble(n);
}

static void open_net(net *n, uint64_t seed)
{
    const rq_server_name self = {.host = "h0", .port = 1, .start_code = 1};
    *n = (net){.seed = seed, .home = rq_server_name_new(&self)};
    assert_non_null(n->home);
    assert_int_equal(rq_sim_new(seed, NULL, &n->sim), RQ_OK);
    rq_random_seed(&n->random, seed);
    n->limit_ns = (9000 + rq_random_below(&n->random, 12000)) * MS;
    n->count = 2 + (size_t)rq_random_below(&n->random, MEMBERS_MAX - 1);
    const rq_remote_options o = {
        .env = rq_sim_env(n->sim), .master_ms = 1, .send = take_probe, .home = n->home, .ctx = n};
    assert_int_equal(rq_remote_new(&o, &n->remote), RQ_OK);
    assert_int_equal(rq_remote_server_up(n->remote, n->home, NULL), RQ_OK);
    for (size_t i = 0; i < n->count; i++) {
        const rq_server_name name = {.host = "h1", .port = (uint16_t)(i + 1), .start_code = 1};
        n->members[i] = (member){.name = rq_server_name_new(&name), .up = true};
        assert_int_equal(rq_remote_server_up(n->remote, n->members[i].name, NULL), RQ_OK);
    }
}

static void close_net(net *n)
{
    rq_region_calls calls = rq_remote_calls(n->remote);
    calls.stop(calls.ctx);
    for (size_t i = 0; i < PROBES_MAX; i++)
        if (n->probes[i].request != NULL) end_probe(&n->probes[i], RQ_E_SERVER_STOPPED);
    rq_remote_free(n->remote);
    for (size_t i = 0; i < n->count; i++)
        rq_server_name_unref(n->members[i].name);
    rq_server_name_unref(n->home);
    rq_sim_free(n->sim);
}

static void run_seed(uint64_t seed)
{
    net n;
    open_net(&n, seed);
    for (unsigned i = 0; i < 10 * 60 * 20; i++) /* ten minutes */
        tick(&n);
    close_net(&n);
}

static void only_silent_servers_are_given_up(void **state)
{
    (void)state;
    const seeds_range seeds = seeds_wanted(300);
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++)
        run_seed(seed);
    printf("given up %u, told %u, spared looks %u, the master cut off %u, paused %u\n",
           seen_given_up, seen_told, seen_spared, seen_isolated, seen_paused);
    if (seeds.last - seeds.first < 11) return;
    /* What never happens is not tested. */
    assert_true(seen_given_up > 10 && seen_told > 0 && seen_spared > 0);
    assert_true(seen_isolated > 10 && seen_paused > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_silent_servers_are_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
