/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers and their master on the simulated shared storage (shared_world.h). Some or all servers are cut off from the storage,
 * while all of them hear each other. Each server reports its real lease; the master gives servers up (rq_remote_unleased),
 * fences them on the storage, or ends itself, and another server becomes the master. The invariants, by what the simulation
 * knows:
 *
 *  1. A server is given up only if its lease has been expired for the limit, apart from moments of less than a second in
 *     which it was valid.
 *  2. Then the master's lease is valid, and those of half of all servers were valid within half of the limit and a second.
 *  3. A master ends only if its own lease has been expired for the limit in the same way, and those of most other servers
 *     were valid within half of the limit and a second.
 *  4. Nobody is taken for silent.
 *
 * RQ_SEEDS=n runs n seeds from RQ_FIRST=f on, RQ_SEED=s one.
 */
#include "shared_world.h"

#include "../seeds.h"

#include "cluster/remote.h"
#include "cluster/wire_priv.h"
#include "proto/region_server_status.pb-c.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define TICK_NS (50 * MS)
#define LOOK_TICKS 4    /* of the master */
#define DELAY_MS_MAX 60 /* of a report */

typedef struct server {
    struct cluster *cluster;
    world_node *node;
    const rq_server_name *name;
    rq_tenure *tenure;
    bool is_old; /* a build whose reports do not mention the lease */
    bool ended;  /* its process */
    bool was_expired;
    uint64_t report_at_ns, arrives_ns, expired_ms; /* of the report on its way */
    /* What the simulation knows of its lease: */
    uint64_t valid_ns, expired_ns; /* for how long it has been valid, or expired, without a break */
    uint64_t ill_ns;               /* since it was last valid for a second without a break */
    /* A fence: */
    world_task fence;
    bool is_fenced;
    bool is_down; /* for this master */
    size_t fenced_by;
    uint64_t quiet_ns;
    uint64_t back_ns; /* from when on others may serve its regions; 0: not yet */
} server;

typedef struct cluster {
    world w;
    server servers[WORLD_NODES];
    size_t count, master;
    rq_remote *remote;
    uint64_t limit_ns, now_ns, master_since_ns;
    unsigned ticks, given_up, masters_ended;
    bool is_over;   /* all processes have ended */
    bool is_paused; /* the master's process, but not its lease: reports are queued */
} cluster;

static unsigned seen_given_up, seen_masters_ended, seen_spared;

/* --- servers ---------------------------------------------------------------------------------- */

static bool has_lease(const server *s)
{
    return rq_shared_now_ns(s->node->shared) < rq_tenure_valid_until(s->tenure);
}

static uint64_t lease_expired_ms(const server *s)
{
    uint64_t until = rq_tenure_valid_until(s->tenure), now = rq_shared_now_ns(s->node->shared);
    return now < until ? 0 : (now - until) / MS + 1;
}

static void note_lease(server *s)
{
    bool valid = has_lease(s);
    s->valid_ns = valid ? s->valid_ns + TICK_NS : 0;
    s->expired_ns = valid ? 0 : s->expired_ns + TICK_NS;
    s->ill_ns = s->valid_ns >= SECOND ? 0 : s->ill_ns + TICK_NS;
}

static bool was_valid_lately(const server *s)
{
    return s->expired_ns < s->cluster->limit_ns / 2 + SECOND;
}

static void end_process(server *s)
{
    s->ended = true;
    world_kill(s->node);
}

/* Reports, as a keeper does: at once if the lease has expired or is valid again, else three times within the limit. */
static void keep(server *s)
{
    cluster *c = s->cluster;
    bool is_expired = !has_lease(s);
    if (is_expired == s->was_expired && c->now_ns < s->report_at_ns) return;
    if (s->arrives_ns != 0) return; /* one at a time */
    s->was_expired = is_expired;
    s->report_at_ns = c->now_ns + c->limit_ns / 3;
    s->arrives_ns = c->now_ns + world_below(&c->w, DELAY_MS_MAX) * MS + 1;
    s->expired_ms = lease_expired_ms(s);
}

static rq_err report(const server *s)
{
    rq_arena a = {0};
    rq_slice bytes;
    Pb__RegionServerReportRequest r = PB__REGION_SERVER_REPORT_REQUEST__INIT;
    r.server = rq__wire_put_server(&a, s->name);
    r.has_lease_expired_ms = !s->is_old;
    r.lease_expired_ms = s->expired_ms;
    assert_non_null(r.server);
    assert_int_equal(rq__wire_pack(&a, &r.base, &bytes), RQ_OK);
    rq_err rc = rq_remote_server_report(s->cluster->remote, s->name, bytes, NULL);
    rq_arena_clear(&a);
    return rc;
}

static void hear_report(server *s)
{
    if (s->arrives_ns == 0 || s->cluster->now_ns < s->arrives_ns || s->cluster->is_paused) return;
    s->arrives_ns = 0;
    rq_err rc = report(s);
    if (rc != (s->is_down ? RQ_E_YOU_ARE_DEAD : RQ_OK))
        world_fail(&s->cluster->w, "%s reports: %s", s->name->text, rq_err_text(rc));
    if (s->is_down) end_process(s);
}

/* --- fences ----------------------------------------------------------------------------------- */

static void fence(world_task *t)
{
    server *s = RQ_CONTAINER_OF(t, server, fence);
    rq_err rc = RQ_E_IO;
    while (rc != RQ_OK && !t->node->dead)
        rc = rq_tenure_revoke(t->node->shared, s->name->text, &s->quiet_ns, NULL);
    s->is_fenced = rc == RQ_OK;
    if (rc != RQ_OK) s->fence.run = NULL; /* the next master fences it again */
}

static void begin_fence(cluster *c, server *s)
{
    if (s->fence.run != NULL) return;
    s->fenced_by = c->master;
    world_start(&s->fence, &c->w, c->servers[c->master].node, fence);
}

static void look_at_fence(cluster *c, server *s)
{
    if (s->fence.run == NULL || !s->is_fenced) return;
    if (rq_remote_is_up(c->remote, s->name)) {
        rq_remote_server_down(c->remote, s->name);
        s->is_down = true;
    }
    const rq_shared *shared = c->servers[s->fenced_by].node->shared;
    if (s->back_ns == 0 && rq_shared_now_ns(shared) >= s->quiet_ns) s->back_ns = c->now_ns;
}

/* --- the master ------------------------------------------------------------------------------- */

/* A probe. */
static void answer(void *ctx, rq_remote_request *r)
{
    (void)ctx;
    r->done(r, RQ_OK, NULL);
}

static void open_master(cluster *c, size_t index)
{
    const rq_remote_options o = {.env = rq_sim_env(c->w.sim),
                                 .master_ms = 1,
                                 .send = answer,
                                 .home = c->servers[index].name,
                                 .ctx = c};
    assert_int_equal(rq_remote_new(&o, &c->remote), RQ_OK);
    assert_int_equal(rq_remote_server_up(c->remote, c->servers[index].name, NULL), RQ_OK);
    c->master = index;
    c->master_since_ns = c->now_ns;
    for (size_t i = 0; i < c->count; i++) {
        server *s = &c->servers[i];
        s->report_at_ns = 0; /* all report to the new master at once */
        s->is_down = false;  /* it joins the new master if it reports, although it may be fenced */
    }
}

static void close_master(cluster *c)
{
    rq_region_calls calls = rq_remote_calls(c->remote);
    calls.stop(calls.ctx);
    rq_remote_free(c->remote);
}

/* Its process ends; another one is elected, and fences it. */
static void replace_master(cluster *c)
{
    server *former = &c->servers[c->master];
    size_t next = (c->master + 1) % c->count;
    end_process(former);
    while (next != c->master && (c->servers[next].ended || c->servers[next].is_fenced))
        next = (next + 1) % c->count;
    c->is_over = next == c->master;
    if (c->is_over) return;
    close_master(c);
    open_master(c, next);
    begin_fence(c, former);
}

/* By the fence of a master that has ended since. */
static void find_tenure_ended(cluster *c, server *s)
{
    if (s == &c->servers[c->master])
        replace_master(c);
    else
        end_process(s);
}

static server *named(cluster *c, const rq_server_name *name)
{
    size_t i = 0;
    while (strcmp(c->servers[i].name->text, name->text) != 0)
        i++;
    return &c->servers[i];
}

/* The number of servers, without `but` and those that ended or are fenced, that had a lease lately. *ret_all: of all
 * these servers. */
static size_t count_lately(const cluster *c, const server *but, size_t *ret_all)
{
    size_t lately = 0;
    *ret_all = 0;
    for (size_t i = 0; i < c->count; i++) {
        const server *s = &c->servers[i];
        if (s == but || s->ended || s->is_fenced) continue;
        ++*ret_all;
        lately += was_valid_lately(s);
    }
    return lately;
}

/* Invariants 1 and 2. */
static void give_up(cluster *c, server *s)
{
    size_t all, lately = count_lately(c, NULL, &all);
    if (s->fence.run != NULL) return; /* being fenced */
    /* The rates of clocks differ. */
    if (s->ill_ns + c->limit_ns / 100 < c->limit_ns)
        world_fail(&c->w, "%s is given up after %g s", s->name->text, (double)s->ill_ns / 1e9);
    if (!has_lease(&c->servers[c->master])) world_fail(&c->w, "the master has no lease");
    if (2 * lately < all) world_fail(&c->w, "%zu of %zu have leases", lately, all);
    c->given_up++;
    seen_given_up++;
    begin_fence(c, s);
}

/* Invariant 3. */
static void end_master(cluster *c)
{
    server *m = &c->servers[c->master];
    size_t others, lately = count_lately(c, m, &others);
    if (m->ill_ns + c->limit_ns / 100 < c->limit_ns)
        world_fail(&c->w, "the master ends after %g s", (double)m->ill_ns / 1e9);
    if (2 * lately <= others) world_fail(&c->w, "%zu of %zu others have leases", lately, others);
    c->masters_ended++;
    seen_masters_ended++;
    replace_master(c);
}

static void check_silence(cluster *c, const rq_silence_limits *limits)
{
    rq_arena a = {0};
    rq_silence silence;
    assert_int_equal(rq_remote_silent(c->remote, limits, &a, &silence), RQ_OK);
    if (silence.count > 0 || silence.is_cut_off) world_fail(&c->w, "somebody is silent");
    rq_arena_clear(&a);
}

static void look(cluster *c)
{
    rq_arena a = {0};
    rq_leases l;
    const rq_silence_limits limits = {c->limit_ns, 20 * SECOND};
    check_silence(c, &limits);
    assert_int_equal(
        rq_remote_unleased(c->remote, &limits, lease_expired_ms(&c->servers[c->master]), &a, &l),
        RQ_OK);
    for (size_t i = 0; i < l.count; i++) {
        give_up(c, named(c, l.servers[i]));
        rq_server_name_unref(l.servers[i]);
    }
    if (l.witness != NULL) end_master(c);
    rq_server_name_unref(l.witness);
    rq_arena_clear(&a);
}

/* --- a cluster -------------------------------------------------------------------------------- */

static void tick(cluster *c)
{
    rq_executor *ex = c->w.executor;
    rq_sim_advance(c->w.sim, TICK_NS);
    c->now_ns = ex->now_ns(ex);
    c->ticks++;
    for (size_t i = 0; i < c->count; i++) {
        server *s = &c->servers[i];
        look_at_fence(c, s);
        if (!s->ended && rq_tenure_valid_until(s->tenure) == 0) find_tenure_ended(c, s);
        if (s->ended) continue;
        note_lease(s);
        keep(s);
        hear_report(s);
    }
    if (c->ticks % LOOK_TICKS == 0 && !c->is_over && !c->is_paused) look(c);
}

static void run_for(cluster *c, uint64_t ns)
{
    for (uint64_t until = c->now_ns + ns; c->now_ns < until;)
        tick(c);
}

static void begin_tenure(world_task *t)
{
    server *s = RQ_CONTAINER_OF(t, server, fence);
    assert_int_equal(rq_tenure_begin(t->node->shared, s->name->text, &s->tenure, NULL), RQ_OK);
}

/* When it returns, all servers have run for at least twice the limit. */
static void open_cluster(cluster *c, uint64_t seed, size_t count, uint64_t limit_ns)
{
    *c = (cluster){.count = count, .limit_ns = limit_ns};
    world_open(&c->w, FORM_MESSAGES, seed, 0);
    for (size_t i = 0; i < count; i++) {
        server *s = &c->servers[i];
        const rq_server_name name = {.host = "h", .port = (uint16_t)(i + 1), .start_code = 1};
        *s = (server){.cluster = c, .node = &c->w.nodes[i], .name = rq_server_name_new(&name)};
        assert_non_null(s->name);
        world_start(&s->fence, &c->w, s->node, begin_tenure);
    }
    world_run(&c->w);
    for (size_t i = 0; i < count; i++)
        c->servers[i].fence.run = NULL;
    open_master(c, world_below(&c->w, count));
    run_for(c, 2 * limit_ns + world_below(&c->w, 1000) * MS);
}

static void close_cluster(cluster *c)
{
    for (size_t i = 0; i < c->count; i++)
        world_cut(c->servers[i].node, false);
    world_run(&c->w);
    close_master(c);
    for (size_t i = 0; i < c->count; i++) {
        rq_tenure_free(c->servers[i].tenure);
        rq_server_name_unref(c->servers[i].name);
    }
    world_close(&c->w);
}

static server *another(cluster *c)
{
    return &c->servers[(c->master + 1 + world_below(&c->w, c->count - 1)) % c->count];
}

static void cut_all(cluster *c, bool cut)
{
    for (size_t i = 0; i < c->count; i++)
        world_cut(c->servers[i].node, cut);
}

/* From the cut to the time when others may serve its regions: the lease, the limit, the keepers' looks, the fence, and
 * the former owner's lease. */
static uint64_t back_within_ns(const cluster *c)
{
    return c->limit_ns + 2500 * MS;
}

/* --- tests ------------------------------------------------------------------------------------ */

static void run_seeds(void (*run)(uint64_t seed))
{
    const seeds_range seeds = seeds_wanted(20);
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++)
        run(seed);
}

static void check_cut(uint64_t seed, size_t count)
{
    cluster c;
    open_cluster(&c, seed, count, 1500 * MS);
    server *s = another(&c);
    uint64_t begin = c.now_ns;
    size_t master = c.master;
    world_cut(s->node, true);
    run_for(&c, 20 * SECOND);
    if (c.given_up != 1 || c.masters_ended > 0 || c.master != master || !s->ended)
        world_fail(&c.w, "%s keeps its regions", s->name->text);
    if (s->back_ns - begin > back_within_ns(&c))
        world_fail(&c.w, "regions are back after %g s", (double)(s->back_ns - begin) / 1e9);
    close_cluster(&c);
}

static void cut_one(uint64_t seed)
{
    check_cut(seed, 3 + seed % 2);
    check_cut(seed, 2);
}

/* Its regions are back within 4 s. */
static void a_server_that_alone_is_cut_off_is_given_up(void **state)
{
    (void)state;
    run_seeds(cut_one);
}

static void check_master_cut(uint64_t seed, size_t count)
{
    cluster c;
    open_cluster(&c, seed, count, 1500 * MS);
    server *former = &c.servers[c.master];
    uint64_t begin = c.now_ns;
    world_cut(former->node, true);
    run_for(&c, 20 * SECOND);
    if (c.given_up > 0 || c.masters_ended != 1 || !former->ended)
        world_fail(&c.w, "%u masters have ended, %u servers are given up", c.masters_ended,
                   c.given_up);
    if (former->back_ns - begin > back_within_ns(&c))
        world_fail(&c.w, "regions are back after %g s", (double)(former->back_ns - begin) / 1e9);
    close_cluster(&c);
}

static void cut_master(uint64_t seed)
{
    check_master_cut(seed, 3 + seed % 2);
    check_master_cut(seed, 2);
}

static void a_master_that_alone_is_cut_off_ends(void **state)
{
    (void)state;
    run_seeds(cut_master);
}

/* The storage answers them again one after the other. */
static void cut_everybody(uint64_t seed)
{
    cluster c;
    open_cluster(&c, seed, 2 + seed % 3, 1500 * MS);
    cut_all(&c, true);
    run_for(&c, 60 * SECOND + world_below(&c.w, 2000) * MS);
    for (size_t i = 0; i < c.count; i++) {
        world_cut(c.servers[(i + seed) % c.count].node, false);
        run_for(&c, world_below(&c.w, 100) * MS);
    }
    run_for(&c, 20 * SECOND);
    if (c.given_up > 0 || c.masters_ended > 0) world_fail(&c.w, "somebody is blamed");
    seen_spared++;
    close_cluster(&c);
}

static void a_storage_that_answers_nobody_is_nobodys_fault(void **state)
{
    (void)state;
    run_seeds(cut_everybody);
}

/* The lease is expired for less than the limit at a time, and valid for a moment in between. */
static void flap(uint64_t seed)
{
    cluster c;
    open_cluster(&c, seed, 3, 3 * SECOND);
    server *s = seed % 2 == 0 ? another(&c) : &c.servers[c.master];
    for (int i = 0; i < 20; i++) {
        world_cut(s->node, true);
        run_for(&c, 2 * SECOND + world_below(&c.w, 800) * MS);
        world_cut(s->node, false);
        run_for(&c, 700 * MS);
    }
    if (c.given_up > 0 || c.masters_ended > 0) world_fail(&c.w, "%s is given up", s->name->text);
    close_cluster(&c);
}

static void a_lease_that_flaps_begins_anew(void **state)
{
    (void)state;
    run_seeds(flap);
}

/* The lease is valid again while the master is paused. The master's first look comes before the queued reports. */
static void pause_master(uint64_t seed)
{
    cluster c;
    open_cluster(&c, seed, 3, 3 * SECOND);
    server *s = another(&c);
    world_cut(s->node, true);
    while (s->expired_ns < c.limit_ns - 200 * MS)
        tick(&c);
    c.is_paused = true;
    world_cut(s->node, false);
    run_for(&c, 2 * c.limit_ns);
    look(&c);
    c.is_paused = false;
    run_for(&c, 10 * SECOND);
    if (c.given_up > 0 || c.masters_ended > 0) world_fail(&c.w, "%s is given up", s->name->text);
    close_cluster(&c);
}

static void a_master_that_was_paused_waits_for_reports(void **state)
{
    (void)state;
    run_seeds(pause_master);
}

static void restart_master(uint64_t seed)
{
    cluster c;
    open_cluster(&c, seed, 4, 1500 * MS);
    server *s = &c.servers[(c.master + 2) % c.count]; /* not the next master */
    world_cut(s->node, true);
    run_for(&c, 1000 * MS + world_below(&c.w, 900) * MS);
    replace_master(&c);
    uint64_t begin = c.now_ns;
    while (c.given_up == 0 && c.now_ns - begin < 10 * SECOND)
        tick(&c);
    if (c.given_up != 1 || c.now_ns - begin < c.limit_ns * 3 / 4)
        world_fail(&c.w, "given up %g s after the election", (double)(c.now_ns - begin) / 1e9);
    close_cluster(&c);
}

static void a_later_master_counts_anew(void **state)
{
    (void)state;
    run_seeds(restart_master);
}

/* Reports of older builds say nothing: nobody is given up until half of the servers are known to have leases. */
static void mix_builds(uint64_t seed)
{
    cluster c;
    open_cluster(&c, seed, 4, 1500 * MS);
    server *old = another(&c), *new = another(&c);
    while (new == old)
        new = another(&c);
    for (size_t i = 0; i < c.count; i++)
        c.servers[i].is_old = &c.servers[i] != new;
    run_for(&c, 5 * SECOND);
    world_cut(new->node, true);
    world_cut(old->node, true);
    run_for(&c, 30 * SECOND);
    if (c.given_up > 0 || c.masters_ended > 0) world_fail(&c.w, "somebody is given up");
    for (size_t i = 0; i < c.count; i++)
        c.servers[i].is_old = &c.servers[i] == old;
    run_for(&c, 30 * SECOND);
    if (c.given_up != 1 || !new->ended) world_fail(&c.w, "%s is not given up", new->name->text);
    close_cluster(&c);
}

static void older_builds_are_neither_given_up_nor_counted(void **state)
{
    (void)state;
    run_seeds(mix_builds);
}

static void cut_at_random(uint64_t seed)
{
    cluster c;
    open_cluster(&c, seed, 2 + seed % 3, (1500 + seed * 397 % 4000) * MS);
    for (int i = 0; i < 40; i++) {
        unsigned which = (unsigned)world_below(&c.w, 1u << c.count);
        for (size_t k = 0; k < c.count; k++)
            world_cut(c.servers[k].node, (which >> k & 1) != 0);
        run_for(&c, world_below(&c.w, 2 * c.limit_ns));
        size_t all;
        (void)count_lately(&c, NULL, &all);
        if (all < 2) break;
    }
    close_cluster(&c);
}

static void the_invariants_hold_whoever_is_cut_off(void **state)
{
    (void)state;
    run_seeds(cut_at_random);
    printf("given up %u, masters ended %u, spared %u times\n", seen_given_up, seen_masters_ended,
           seen_spared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_that_alone_is_cut_off_is_given_up),
        cmocka_unit_test(a_master_that_alone_is_cut_off_ends),
        cmocka_unit_test(a_storage_that_answers_nobody_is_nobodys_fault),
        cmocka_unit_test(a_lease_that_flaps_begins_anew),
        cmocka_unit_test(a_master_that_was_paused_waits_for_reports),
        cmocka_unit_test(a_later_master_counts_anew),
        cmocka_unit_test(older_builds_are_neither_given_up_nor_counted),
        cmocka_unit_test(the_invariants_hold_whoever_is_cut_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
