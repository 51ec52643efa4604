/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a transfer: each part is done once, finished parts are skipped, the first error
 * ends all threads, the rate limits all threads together. */
#include "unit.h"

#include "base/clock.h"
#include "transfer/crew.h"

#include <stdlib.h>

enum { PARTS = 2000 };

typedef struct job {
    _Atomic int times[PARTS];
    _Atomic int open, opened;
    size_t fails_at; /* the part that fails; SIZE_MAX: none */
    uint64_t bytes;  /* bytes of each part */
} job;

static rq_err open_tools(rq__crew *c, void **ret, rq_error *why)
{
    job *j = c->ctx;
    (void)why;
    j->open++;
    j->opened++;
    *ret = j;
    return RQ_OK;
}

static void close_tools(void *tools)
{
    ((job *)tools)->open--;
}

static rq_err work(rq__crew *c, void *tools, size_t part, rq_error *why)
{
    job *j = tools;
    if (part == j->fails_at) return rq_fail(why, RQ_E_CORRUPT, "part %zu", part);
    RQ_TRY(rq__crew_pass(c, j->bytes, why));
    j->times[part]++;
    atomic_fetch_add(&c->rows, part);
    atomic_fetch_add(&c->done, 1);
    rq__crew_print(c, "%zu", part);
    return RQ_OK;
}

static void count_said(void *ctx, const char *text)
{
    (void)text;
    ++*(int *)ctx; /* the crew calls this from one thread at a time */
}

static rq_err run(job *j, const bool *is_done, uint64_t jobs, uint64_t rate, int *said,
                  rq_transfer_counts *ret, rq_error *why)
{
    const rq_transfer_options o = {.jobs = jobs, .rate = rate, .print = count_said, .ctx = said};
    rq__crew c = {.options = &o,
                  .count = PARTS,
                  .is_done = is_done,
                  .units = PARTS,
                  .ctx = j,
                  .open = open_tools,
                  .close = close_tools,
                  .work = work};
    *ret = (rq_transfer_counts){0};
    return rq__crew_run(&c, ret, why);
}

static void each_part_is_done_once(void **state)
{
    job *j = calloc(1, sizeof *j);
    bool *is_done = calloc(PARTS, sizeof *is_done);
    rq_transfer_counts counts;
    int said = 0;
    (void)state;
    assert_non_null(j);
    assert_non_null(is_done);
    for (size_t i = 0; i < PARTS; i += 3)
        is_done[i] = true;
    j->fails_at = SIZE_MAX;
    assert_int_equal(run(j, is_done, 8, 0, &said, &counts, NULL), RQ_OK);
    uint64_t sum = 0, done = 0;
    for (size_t i = 0; i < PARTS; i++) {
        assert_int_equal(j->times[i], !is_done[i]);
        sum += is_done[i] ? 0 : i;
        done += !is_done[i];
    }
    assert_int_equal(counts.parts, done);
    assert_int_equal(counts.rows, sum);
    assert_int_equal(said, done);
    assert_int_equal(j->open, 0);
    assert_int_equal(j->opened, 8);
    free(is_done);
    free(j);
}

static void the_first_error_ends_all(void **state)
{
    job *j = calloc(1, sizeof *j);
    rq_transfer_counts counts;
    rq_error why = {.code = RQ_OK};
    int said = 0;
    (void)state;
    assert_non_null(j);
    j->fails_at = 7;
    assert_int_equal(run(j, NULL, 4, 0, &said, &counts, &why), RQ_E_CORRUPT);
    assert_string_equal(why.message, "part 7");
    assert_true(counts.parts < PARTS);
    assert_int_equal(j->open, 0);
    free(j);
}

static void no_parts_start_no_worker(void **state)
{
    job *j = calloc(1, sizeof *j);
    bool *is_done = calloc(PARTS, sizeof *is_done);
    rq_transfer_counts counts;
    int said = 0;
    (void)state;
    assert_non_null(j);
    assert_non_null(is_done);
    memset(is_done, 1, PARTS * sizeof *is_done);
    assert_int_equal(run(j, is_done, 4, 0, &said, &counts, NULL), RQ_OK);
    assert_int_equal(j->opened, 0);
    free(is_done);
    free(j);
}

/* A wait longer than the clock can count must not become no wait. */
static void a_rate_that_takes_for_ever_holds(void **state)
{
    const rq_transfer_options o = {.rate = 1};
    rq__crew c = {.options = &o, .lock = PTHREAD_MUTEX_INITIALIZER, .stops = true};
    int64_t now = (int64_t)rq_clock_ns(CLOCK_MONOTONIC);
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rq__crew_pass(&c, UINT64_MAX, NULL), RQ_E_CANCELLED);
        assert_true(c.free_ns > now + (int64_t)1000000000 * 1000000);
    }
    pthread_mutex_destroy(&c.lock);
}

static void the_rate_is_that_of_all_threads(void **state)
{
    job *j = calloc(1, sizeof *j);
    rq_transfer_counts counts;
    int said = 0;
    (void)state;
    assert_non_null(j);
    j->fails_at = SIZE_MAX;
    j->bytes = 1000;
    uint64_t begun = rq_clock_ns(CLOCK_MONOTONIC);
    assert_int_equal(run(j, NULL, 8, 10 * 1000 * PARTS, &said, &counts, NULL), RQ_OK);
    /* the first part does not wait */
    assert_true(rq_clock_ns(CLOCK_MONOTONIC) - begun >= 99000000);
    free(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_part_is_done_once),
        cmocka_unit_test(the_first_error_ends_all),
        cmocka_unit_test(no_parts_start_no_worker),
        cmocka_unit_test(a_rate_that_takes_for_ever_holds),
        cmocka_unit_test(the_rate_is_that_of_all_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
