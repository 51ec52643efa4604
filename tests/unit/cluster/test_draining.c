/* SPDX-License-Identifier: Apache-2.0 */
/* Decommissioned servers: where regions are placed instead, and that the next master has the
 * list. */
#include "../base/unit.h"

#include "cluster/remote.h"
#include "cluster/wire_priv.h"
#include "proto/region_server_status.pb-c.h"
#include "vfs/sim.h"

typedef struct fixture {
    rq_sim *sim;
    rq_remote *remote;
    rq_region_calls calls;
    const rq_server_name *name[3];
    rq_region_info info;
    rq_arena arena;
    rq_err kept; /* the result of storing a mark */
    unsigned keeps;
} fixture;

static void no_send(void *ctx, rq_remote_request *r)
{
    (void)ctx;
    r->done(r, RQ_E_IO, NULL);
}

static rq_err keep(void *ctx, const rq_server_name *server, bool drains, rq_error *why)
{
    fixture *f = ctx;
    (void)server;
    (void)drains;
    f->keeps++;
    return f->kept == RQ_OK ? RQ_OK : rq_fail(why, f->kept, "no storage");
}

static void setup_with(fixture *f, bool rejects_hosts)
{
    *f = (fixture){0};
    assert_int_equal(rq_sim_new(1, NULL, &f->sim), RQ_OK);
    const rq_remote_options o = {.env = rq_sim_env(f->sim),
                                 .master_ms = 1,
                                 .send = no_send,
                                 .keep_draining = keep,
                                 .rejects_hosts = rejects_hosts,
                                 .ctx = f};
    assert_int_equal(rq_remote_new(&o, &f->remote), RQ_OK);
    f->calls = rq_remote_calls(f->remote);
    for (uint16_t i = 0; i < 3; i++) {
        const rq_server_name name = {.host = i == 2 ? "h2" : "h1", .port = i, .start_code = 5};
        f->name[i] = rq_server_name_new(&name);
        assert_non_null(f->name[i]);
        assert_int_equal(rq_remote_server_up(f->remote, f->name[i], NULL), RQ_OK);
    }
    assert_int_equal(rq_region_info_make(&f->arena, RQ_SLICE_LIT("default"), RQ_SLICE_LIT("t"),
                                         (rq_slice){0}, (rq_slice){0}, 1, 0, &f->info),
                     RQ_OK);
}

static void setup(fixture *f)
{
    setup_with(f, false);
}

static void teardown(fixture *f)
{
    f->calls.stop(f->calls.ctx);
    rq_remote_free(f->remote);
    for (size_t i = 0; i < 3; i++)
        rq_server_name_unref(f->name[i]);
    rq_arena_clear(&f->arena);
    rq_sim_free(f->sim);
}

/* The servers that get regions, as bits: those chosen in six placements. */
static unsigned placed(fixture *f, const rq_server_name *last)
{
    unsigned seen = 0;
    for (int turn = 0; turn < 6; turn++) {
        const rq_server_name *s = f->calls.place(f->calls.ctx, &f->info, last);
        for (unsigned i = 0; i < 3 && s != NULL; i++)
            if (strcmp(s->text, f->name[i]->text) == 0) seen |= 1U << i;
        rq_server_name_unref(s);
    }
    return seen;
}

static void drain(fixture *f, size_t server, bool drains)
{
    rq_error why = {0};
    assert_int_equal(f->calls.drain(f->calls.ctx, f->name[server], drains, &why), RQ_OK);
    assert_int_equal(f->calls.is_draining(f->calls.ctx, f->name[server]), drains);
    assert_int_equal(f->calls.takes_regions(f->calls.ctx, f->name[server]), !drains);
}

static void regions_go_to_the_others(void **state)
{
    (void)state;
    fixture f;
    setup(&f);
    assert_int_equal(placed(&f, NULL), 7);
    drain(&f, 1, true);
    drain(&f, 1, true); /* marking a server twice changes nothing */
    assert_int_equal(placed(&f, NULL), 5);
    assert_int_equal(placed(&f, f.name[1]), 5); /* the region's server drains: any other server */
    assert_int_equal(placed(&f, f.name[0]), 1); /* the server where the region was */
    drain(&f, 0, true);
    drain(&f, 2, true);
    assert_int_equal(placed(&f, NULL), 0);
    drain(&f, 1, false);
    drain(&f, 1, false);
    assert_int_equal(placed(&f, NULL), 2);
    teardown(&f);
}

static void one_that_ends_in_order_gets_none(void **state)
{
    (void)state;
    fixture f;
    setup(&f);
    rq_remote_leaving(f.remote, f.name[2]);
    assert_int_equal(placed(&f, NULL), 3);
    assert_int_equal(placed(&f, f.name[2]), 3);
    assert_false(f.calls.takes_regions(f.calls.ctx, f.name[2]));
    assert_false(f.calls.is_draining(f.calls.ctx, f.name[2]));
    teardown(&f);
}

/* A mark that cannot be stored has no effect. Marking a server that is not up is no error, and
 * stores nothing. */
static void what_is_not_kept_is_not_so(void **state)
{
    (void)state;
    fixture f;
    rq_error why = {0};
    const rq_server_name name = {.host = "h1", .port = 1, .start_code = 4}, *earlier;
    setup(&f);
    f.kept = RQ_E_IO;
    assert_int_equal(f.calls.drain(f.calls.ctx, f.name[1], true, &why), RQ_E_IO);
    assert_string_equal(why.message, "no storage");
    assert_int_equal(placed(&f, NULL), 7);
    f.kept = RQ_OK;
    drain(&f, 1, true);
    f.kept = RQ_E_IO;
    assert_int_equal(f.calls.drain(f.calls.ctx, f.name[1], false, &why), RQ_E_IO);
    assert_int_equal(placed(&f, NULL), 5);
    earlier = rq_server_name_new(&name);
    assert_non_null(earlier);
    f.keeps = 0;
    assert_int_equal(f.calls.drain(f.calls.ctx, earlier, true, &why), RQ_OK);
    assert_int_equal(f.keeps, 0);
    assert_false(f.calls.is_draining(f.calls.ctx, earlier));
    rq_server_name_unref(earlier);
    teardown(&f);
}

/* A new master knows the mark before the server has reported; a later process at the same address
 * is another server. */
static void a_mark_is_of_one_incarnation(void **state)
{
    (void)state;
    fixture f;
    const rq_server_name name = {.host = "h1", .port = 1, .start_code = 6}, *later;
    const rq_server_name **list;
    size_t count;
    setup(&f);
    later = rq_server_name_new(&name);
    assert_non_null(later);
    assert_int_equal(rq_remote_set_draining(f.remote, later, true), RQ_OK);
    assert_int_equal(placed(&f, NULL), 7);
    assert_int_equal(rq_remote_server_up(f.remote, later, NULL), RQ_OK);
    rq_remote_server_down(f.remote, f.name[1]);
    assert_int_equal(placed(&f, NULL), 5);
    assert_int_equal(rq_remote_draining(f.remote, &f.arena, &list, &count), RQ_OK);
    assert_int_equal(count, 1);
    assert_string_equal(list[0]->text, later->text);
    rq_server_name_unref(list[0]);
    assert_int_equal(rq_remote_set_draining(f.remote, later, false), RQ_OK);
    assert_int_equal(rq_remote_draining(f.remote, &f.arena, &list, &count), RQ_OK);
    assert_int_equal(count, 0);
    rq_server_name_unref(later);
    teardown(&f);
}

/* Reports the start of a server; *why: the reason of a refusal. */
static rq_err start_up(fixture *f, const char *host, uint16_t port, rq_error *why)
{
    const rq_server_name name = {.host = host, .port = port, .start_code = 6};
    const rq_server_name *s = rq_server_name_new(&name);
    rq_executor *ex = rq_sim_env(f->sim)->executor;
    rq_slice bytes, answer;
    Pb__RegionServerStartupRequest m = PB__REGION_SERVER_STARTUP_REQUEST__INIT;
    assert_non_null(s);
    m.port = port;
    m.server_start_code = 6;
    m.server_current_time = (uint64_t)ex->now_ms(ex);
    assert_int_equal(rq__wire_pack(&f->arena, &m.base, &bytes), RQ_OK);
    *why = (rq_error){.code = RQ_OK};
    rq_err rc = rq_remote_startup(f->remote, s, bytes, &f->arena, &answer, why);
    rq_server_name_unref(s);
    return rc;
}

/* If the option is set, the mark of one server refuses servers at all ports of its host, but not of other hosts. */
static void a_decommissioned_host_is_refused(void **state)
{
    (void)state;
    for (int rejects = 0; rejects < 2; rejects++) {
        fixture f;
        rq_error why;
        setup_with(&f, rejects == 1);
        drain(&f, 0, true);
        assert_int_equal(start_up(&f, "h1", 7, &why), rejects == 1 ? RQ_E_HOST_REJECTED : RQ_OK);
        if (rejects == 1)
            assert_string_equal(why.message,
                                "Host h1 exists in the list of decommissioned servers and Master "
                                "is configured to reject decommissioned hosts");
        assert_int_equal(start_up(&f, "h2", 7, &why), RQ_OK);
        drain(&f, 0, false);
        assert_int_equal(start_up(&f, "h1", 8, &why), RQ_OK);
        teardown(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions_go_to_the_others),
        cmocka_unit_test(one_that_ends_in_order_gets_none),
        cmocka_unit_test(what_is_not_kept_is_not_so),
        cmocka_unit_test(a_mark_is_of_one_incarnation),
        cmocka_unit_test(a_decommissioned_host_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
