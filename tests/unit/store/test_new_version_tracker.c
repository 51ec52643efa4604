/* SPDX-License-Identifier: Apache-2.0 */
/* Work and memory of the tracker of NEW_VERSION_BEHAVIOR, for rows that are repeatedly written and
 * deleted. tests/model tests its decisions. */
#include "store/new_version_tracker.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define ROUNDS 20000

typedef struct fixture {
    rq_arena arena;
    rq__column_tracker columns;
    rq__new_version_tracker *tracker;
    size_t charged, charged_max;
} fixture;

static bool may_grow(void *ctx, size_t bytes)
{
    fixture *f = ctx;
    if (bytes > f->charged_max - f->charged) return false;
    f->charged += bytes;
    return true;
}

static void make(fixture *f, int32_t max_versions)
{
    *f = (fixture){.charged_max = SIZE_MAX};
    rq_arena_meter(&f->arena, may_grow, f);
    f->columns = (rq__column_tracker){.arena = &f->arena, .max_versions = max_versions};
    assert_int_equal(rq__new_version_tracker_new(&f->arena, &f->columns, max_versions, max_versions,
                                                 &f->tracker),
                     RQ_OK);
}

static rq_err give(fixture *f, const char *qualifier, int64_t ts, uint8_t type, uint64_t seqid,
                   rq__deleted *ret)
{
    rq_cell c = {
        .row = (const uint8_t *)"r",
        .row_len = 1,
        .family = (const uint8_t *)"f",
        .family_len = 1,
        .qualifier = (const uint8_t *)qualifier,
        .qualifier_len = (uint32_t)strlen(qualifier),
        .timestamp = ts,
        .type = type,
        .seqid = seqid,
    };
    return rq_cell_is_delete(&c) ? rq__new_version_tracker_add(f->tracker, &c)
                                 : rq__new_version_tracker_check(f->tracker, &c, ret);
}

/* For each timestamp, the newest first: a marker, then the put that it deletes. */
static void give_deleted_versions(fixture *f, uint8_t marker, unsigned rounds)
{
    for (unsigned i = rounds; i > 0; i--) {
        rq__deleted deleted = RQ__NOT_DELETED;
        assert_int_equal(give(f, "a", i, marker, 2 * (uint64_t)i + 1, NULL), RQ_OK);
        assert_int_equal(give(f, "a", i, RQ_TYPE_PUT, 2 * (uint64_t)i, &deleted), RQ_OK);
        assert_int_equal(deleted, RQ__VERSION_DELETED);
    }
}

static void versions_deleted_one_by_one_cost_a_few_steps_each(void **state)
{
    (void)state;
    fixture f;
    make(&f, 1);
    give_deleted_versions(&f, RQ_TYPE_DELETE, ROUNDS);
    assert_in_range(rq__new_version_tracker_steps(f.tracker), ROUNDS, 4 * ROUNDS);
    rq_arena_clear(&f.arena);
}

static void a_column_deleted_again_and_again_takes_no_memory(void **state)
{
    (void)state;
    fixture f;
    make(&f, 1);
    give_deleted_versions(&f, RQ_TYPE_DELETE_COLUMN, ROUNDS);
    assert_in_range(rq__new_version_tracker_steps(f.tracker), ROUNDS, 4 * ROUNDS);
    assert_true(f.charged < 64 * 1024);
    rq_arena_clear(&f.arena);
}

static void a_row_deleted_again_and_again_costs_each_column_nothing(void **state)
{
    (void)state;
    fixture f;
    make(&f, 1);
    for (uint64_t i = ROUNDS; i > 0; i--)
        assert_int_equal(give(&f, "", (int64_t)i, RQ_TYPE_DELETE_FAMILY, 2 * i, NULL), RQ_OK);
    for (int column = 0; column < 1000; column++) {
        char name[2] = {(char)('a' + column % 26), (char)('a' + column / 26)};
        rq__deleted deleted;
        rq_cell c = {.row = (const uint8_t *)"r",
                     .row_len = 1,
                     .qualifier = (const uint8_t *)name,
                     .qualifier_len = 2,
                     .timestamp = ROUNDS / 2,
                     .type = RQ_TYPE_PUT,
                     .seqid = column % 2 == 0 ? ROUNDS : 2 * ROUNDS + 1};
        assert_int_equal(rq__new_version_tracker_check(f.tracker, &c, &deleted), RQ_OK);
        assert_int_equal(deleted, column % 2 == 0 ? RQ__VERSION_DELETED : RQ__NOT_DELETED);
    }
    assert_in_range(rq__new_version_tracker_steps(f.tracker), 1, 4 * ROUNDS);
    rq_arena_clear(&f.arena);
}

/* The tracker's memory is charged to the reader, and may be refused. */
static void its_memory_is_charged(void **state)
{
    (void)state;
    fixture f;
    make(&f, 1);
    for (int row = 0; row < 3; row++) {
        rq__new_version_tracker_reset(f.tracker);
        give_deleted_versions(&f, RQ_TYPE_DELETE, ROUNDS);
        assert_in_range(f.charged, 32 * ROUNDS, 1024 * ROUNDS);
    }
    f.charged_max = f.charged;
    rq__new_version_tracker_reset(f.tracker);
    rq_err rc = RQ_OK;
    for (uint64_t i = 8 * ROUNDS; i > 0 && rc == RQ_OK; i--)
        rc = give(&f, "a", (int64_t)i, RQ_TYPE_DELETE, 2 * i, NULL);
    assert_int_equal(rc, RQ_E_NO_MEMORY);
    rq_arena_clear(&f.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_deleted_one_by_one_cost_a_few_steps_each),
        cmocka_unit_test(a_column_deleted_again_and_again_takes_no_memory),
        cmocka_unit_test(a_row_deleted_again_and_again_costs_each_column_nothing),
        cmocka_unit_test(its_memory_is_charged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
