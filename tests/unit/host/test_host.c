/* SPDX-License-Identifier: Apache-2.0 */
/* The host alone: addresses of moved regions, repeated calls, names. The world's catalog only makes the
 * folders. */
#include "world.h"

#include "host/calls.h"
#include "host/host.h"

#include <inttypes.h>

typedef struct fixture {
    world w;
    rq_arena arena;
    rq_region_info info; /* a region that the catalog has released */
    rq_table_schema *schema;
} fixture;

static fixture *setup(void)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    world *w = &f->w;
    world_init(w, unit_seed(), NULL);
    OK(world_open_closed_region(w, &f->arena, &f->info, &f->schema));
    return f;
}

static void teardown(fixture *f)
{
    rq_table_schema_unref(f->schema);
    rq_arena_clear(&f->arena);
    world_clear(&f->w);
    free(f);
}

static void calls_may_be_repeated(void **state)
{
    (void)state;
    fixture *f = setup();
    world *w = &f->w;
    int64_t first, second;
    assert_null(rq_host_ref(w->host, &f->info));
    OK(rq__host_open(w->host, &f->info, f->schema, &first, &w->why));
    rq_region *r = rq_host_ref(w->host, &f->info);
    assert_non_null(r);
    OK(rq__host_open(w->host, &f->info, f->schema, &second, &w->why));
    rq_region *again = rq_host_ref(w->host, &f->info);
    assert_ptr_equal(r, again);
    assert_int_equal(first, second);
    rq_region_unref(again);
    rq_region_unref(r);
    OK(rq_host_close(w->host, &f->info, false, NULL, &w->why));
    assert_null(rq_host_ref(w->host, &f->info));
    OK(rq_host_close(w->host, &f->info, false, NULL, &w->why));
    OK(rq_host_close(w->host, &f->info, true, NULL, &w->why));
    teardown(f);
}

/* The result of a request for the region. */
static rq_err find_region(fixture *f, rq_error *why)
{
    const rq_host_region *r;
    *why = (rq_error){0};
    return rq_host_find(f->w.host, f->info.name, &r, why);
}

static void a_moved_region_is_named_for_two_minutes(void **state)
{
    (void)state;
    fixture *f = setup();
    world *w = &f->w;
    rq_error why;
    const rq_server_name to = {.host = "h2", .port = 16021, .start_code = 77};
    assert_int_equal(find_region(f, &why), RQ_E_NOT_SERVING_REGION);
    rq__host_moved(w->host, f->info.encoded, &to, 12);
    assert_int_equal(find_region(f, &why), RQ_E_REGION_MOVED);
    assert_string_equal(why.message, "Region moved to: hostname=h2 port=16021 startCode=77. As of "
                                     "locationSeqNum=12.");
    rq_sim_advance(w->sim, 119000000000);
    assert_int_equal(find_region(f, &why), RQ_E_REGION_MOVED);
    rq_sim_advance(w->sim, 2000000000);
    assert_int_equal(find_region(f, &why), RQ_E_NOT_SERVING_REGION);
    teardown(f);
}

static void a_region_that_comes_back_is_not_moved(void **state)
{
    (void)state;
    fixture *f = setup();
    world *w = &f->w;
    rq_error why;
    int64_t seqnum;
    const rq_server_name to = {.host = "h2", .port = 16021, .start_code = 77};
    const rq_server_name other = {.host = "h3", .port = 16021, .start_code = 78};
    rq__host_moved(w->host, f->info.encoded, &to, 12);
    rq__host_moved(w->host, f->info.encoded, &other, 13); /* the later address is kept */
    assert_int_equal(find_region(f, &why), RQ_E_REGION_MOVED);
    assert_non_null(strstr(why.message, "hostname=h3"));
    OK(rq__host_open(w->host, &f->info, f->schema, &seqnum, &w->why));
    OK(rq_host_close(w->host, &f->info, false, NULL, &w->why));
    assert_int_equal(find_region(f, &why), RQ_E_NOT_SERVING_REGION);
    teardown(f);
}

/* Hex digits like a hash: the first eight differ between regions. */
static void name_number(unsigned i, char ret[static RQ_ENCODED_NAME_LEN + 1])
{
    uint32_t mixed = i * UINT32_C(2654435761);
    snprintf(ret, RQ_ENCODED_NAME_LEN + 1, "%08" PRIx32 "%08" PRIx32 "%016x", mixed, ~mixed, i);
}

/* More moves than the host remembers: the oldest are forgotten, without other effects. */
static void many_moved_regions_have_a_limit(void **state)
{
    (void)state;
    fixture *f = setup();
    world *w = &f->w;
    rq_error why;
    const rq_server_name to = {.host = "h2", .port = 16021, .start_code = 77};
    rq__host_moved(w->host, f->info.encoded, &to, 12);
    char name[RQ_ENCODED_NAME_LEN + 1];
    for (unsigned i = 0; i < 70000; i++) {
        name_number(i, name);
        rq__host_moved(w->host, name, &to, i);
    }
    const rq_host_region *r;
    assert_int_equal(find_region(f, &why), RQ_E_NOT_SERVING_REGION);
    why = (rq_error){0};
    assert_int_equal(rq_host_find_encoded(w->host, rq_slice_cstr(name), &r, &why),
                     RQ_E_REGION_MOVED);
    teardown(f);
}

/* --- calls ------------------------------------------------------------------------------------ */

static void done(rq_region_call *call)
{
    *(unsigned *)call->ctx += 1;
}

static rq_err call_one(fixture *f, rq_region_call_kind kind, rq_region_call *call)
{
    unsigned reports = 0;
    rq_region_calls calls = rq_host_calls(f->w.host);
    call->info = &f->info;
    call->server = rq_host_name(f->w.host);
    call->schema = f->schema;
    call->done = done;
    call->ctx = &reports;
    calls.send(calls.ctx, kind, call, 1);
    assert_int_equal(reports, 1);
    free(call->why);
    call->why = NULL;
    return call->rc;
}

static void calls_of_a_closed_region_tell_that(void **state)
{
    (void)state;
    fixture *f = setup();
    rq_arena a = {0};
    rq_region_call call = {.arena = &a};
    rq_region_load load;
    rq_region_calls calls = rq_host_calls(f->w.host);
    assert_int_equal(call_one(f, RQ_CALL_FLUSH, &call), RQ_E_NOT_SERVING_REGION);
    assert_int_equal(call_one(f, RQ_CALL_LOOK, &call), RQ_E_NOT_SERVING_REGION);
    assert_int_equal(call_one(f, RQ_CALL_LIST_FILES, &call), RQ_E_NOT_SERVING_REGION);
    assert_int_equal(call_one(f, RQ_CALL_COMPACT, &call), RQ_OK);
    assert_int_equal(call_one(f, RQ_CALL_DROP_REFERENCES, &call), RQ_OK);
    assert_int_equal(call_one(f, RQ_CALL_LIST_MOB_WRITES, &call), RQ_OK);
    assert_int_equal(call.mob_write_count, 0);
    assert_int_equal(call_one(f, RQ_CALL_WARM, &call), RQ_OK);
    assert_int_equal(call_one(f, RQ_CALL_CLOSE, &call), RQ_OK);
    assert_false(calls.load(calls.ctx, rq_host_name(f->w.host), &f->info, &load));
    assert_int_equal(call_one(f, RQ_CALL_OPEN, &call), RQ_OK);
    assert_true(calls.load(calls.ctx, rq_host_name(f->w.host), &f->info, &load));
    call = (rq_region_call){.arena = &a, .flush = true};
    assert_int_equal(call_one(f, RQ_CALL_LOOK, &call), RQ_OK);
    assert_true(call.splittable && call.mergeable);
    assert_int_equal(call_one(f, RQ_CALL_FLUSH, &call), RQ_OK);
    const rq_server_name to = {.host = "h2", .port = 1, .start_code = 7};
    rq_error why;
    call = (rq_region_call){.moves_to = &to};
    assert_int_equal(call_one(f, RQ_CALL_CLOSE, &call), RQ_OK);
    assert_int_equal(find_region(f, &why), RQ_E_REGION_MOVED);
    rq_arena_clear(&a);
    teardown(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_may_be_repeated),
        cmocka_unit_test(a_moved_region_is_named_for_two_minutes),
        cmocka_unit_test(a_region_that_comes_back_is_not_moved),
        cmocka_unit_test(many_moved_regions_have_a_limit),
        cmocka_unit_test(calls_of_a_closed_region_tell_that),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
