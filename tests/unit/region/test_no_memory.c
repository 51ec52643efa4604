/* SPDX-License-Identifier: Apache-2.0 */
/* Fails each allocation of a history of writes, flushes and an opening once: the call may be
 * refused, but nothing crashes, no acknowledged write is lost, and no refused write is partly
 * applied. Counts allocations of this thread from arm() on; pools work normally. */
#include "fixture.h"

#include "../base/failing_memory.h"

#include <unistd.h>

static _Thread_local bool armed;
static _Thread_local uint64_t left; /* allocations until the failing one; 0: it has failed */

bool allocation_fails(void)
{
    return armed && left > 0 && --left == 0;
}

#define ROWS 5

typedef struct acked {
    bool row[ROWS];
    int64_t counter;
    unsigned refused;
} acked;

/* RowMutations over both families: one put in each. */
static rq_err put_both(fixture *f, unsigned n)
{
    char row[8];
    snprintf(row, sizeof row, "r%u", n);
    rq_cell a = cell_of("a", "q", 1, RQ_TYPE_PUT, "value");
    rq_cell b = cell_of("b", "q", 1, RQ_TYPE_PUT, "value");
    rq_mutation m[2] = {
        {.type = RQ_MUTATE_PUT, .row = rq_slice_cstr(row), .cells = &a, .cell_count = 1},
        {.type = RQ_MUTATE_PUT, .row = rq_slice_cstr(row), .cells = &b, .cell_count = 1},
    };
    rq_row_op op = {.mutations = m, .mutation_count = 2};
    return rq_region_write_sync(f->region, &op, 1, NULL);
}

static void note(acked *a, bool *ok, rq_err rc)
{
    if (ok != NULL) *ok = rc == RQ_OK;
    a->refused += rc != RQ_OK;
}

static void run(fixture *f, acked *a)
{
    bool ok = false;
    note(a, &a->row[0], put_both(f, 0));
    note(a, &ok, increment(f, "c", "b", "n", 3, 1, NULL));
    if (ok) a->counter += 3;
    note(a, NULL, rq_region_flush(f->region, (rq_slice){0}, NULL, NULL));
    note(a, &a->row[1], put_both(f, 1));
    note(a, &ok, increment(f, "c", "b", "n", 4, 2, NULL));
    if (ok) a->counter += 4;
    note(a, &a->row[2], put_both(f, 2));
    note(a, NULL, rq_region_flush(f->region, RQ_SLICE_LIT("a"), NULL, NULL));
    note(a, &a->row[3], put_both(f, 3));
}

static void check(fixture *f, const acked *a, uint64_t n, const char *when)
{
    for (unsigned i = 0; i < ROWS; i++) {
        char row[8];
        snprintf(row, sizeof row, "r%u", i);
        bool in_a = get(f, row, "a", "q") != NULL;
        bool in_b = get(f, row, "b", "q") != NULL;
        if (in_a != in_b || in_a != a->row[i])
            fail_msg("allocation %llu, %s: %s is in a %d, in b %d, acknowledged %d",
                     (unsigned long long)n, when, row, in_a, in_b, a->row[i]);
    }
    int64_t counter = get_long(f, "c", "b", "n");
    if (counter == INT64_MIN) counter = 0;
    if (counter != a->counter)
        fail_msg("allocation %llu, %s: counter %lld of %lld", (unsigned long long)n, when,
                 (long long)counter, (long long)a->counter);
}

static void writes_and_flushes_survive(const family_def *families, size_t count)
{
    bool reached = true;
    for (uint64_t n = 1; reached; n++) {
        real_env e;
        fixture f;
        acked a = {0};
        real_env_open(&e);
        e.log.level = RQ_LOG_ERROR + 1;
        fixture_open(&f, &e.env, families, count);
        left = n;
        armed = true;
        run(&f, &a);
        armed = false;
        reached = left == 0;
        if (!reached) assert_int_equal(a.refused, 0);
        check(&f, &a, n, "at once");
        note(&a, &a.row[4], put_both(&f, 4)); /* everything works again */
        assert_true(a.row[4]);
        fixture_stop(&f, n % 2 == 0);
        fixture_start(&f);
        check(&f, &a, n, n % 2 == 0 ? "after a stop" : "after a crash");
        fixture_close(&f);
        real_env_close(&e);
    }
}

static void writes_and_flushes_survive_every_failing_allocation(void **state)
{
    (void)state;
    writes_and_flushes_survive(NULL, 0);
}

static void mob_families_do_too(void **state)
{
    (void)state;
    static const family_def mob[] = {
        {"a", {"IS_MOB", "true", "MOB_THRESHOLD", "0", NULL}},
        {"b", {"IS_MOB", "true", "MOB_THRESHOLD", "2", "VERSIONS", "3", NULL}}};
    writes_and_flushes_survive(mob, 2);
}

static void an_opening_survives_every_failing_allocation(void **state)
{
    (void)state;
    real_env e;
    fixture f;
    acked a = {0};
    real_env_open(&e);
    e.log.level = RQ_LOG_ERROR + 1;
    fixture_open(&f, &e.env, NULL, 0);
    run(&f, &a);
    bool reached = true;
    for (uint64_t n = 1; reached; n++) {
        assert_int_equal(rq_region_close(f.region, true, NULL), RQ_OK);
        rq_region_unref(f.region);
        f.region = NULL;
        left = n;
        armed = true;
        rq_err rc = rq_region_open(f.engine, &f.info, f.schema, &f.region, NULL);
        armed = false;
        reached = left == 0;
        if (rc != RQ_OK) assert_ok(rq_region_open(f.engine, &f.info, f.schema, &f.region, NULL));
        check(&f, &a, n, "after an opening");
    }
    fixture_close(&f);
    real_env_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_and_flushes_survive_every_failing_allocation),
        cmocka_unit_test(mob_families_do_too),
        cmocka_unit_test(an_opening_survives_every_failing_allocation),
    };
    /* Hundreds of starts: uses memory instead of the disk if possible. */
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
