/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas (base/arena.h): alignment, borrowed memory, linked resources, sizes that overflow, lists. */
#include "unit.h"

#include "base/arena.h"
#include "base/random.h"

static void allocations_are_aligned_and_do_not_overlap(void **state)
{
    (void)state;
    enum { COUNT = 2000 };
    static struct {
        uint8_t *ptr;
        size_t len;
        uint8_t mark;
    } got[COUNT];
    rq_random r;
    rq_arena a;
    rq_random_seed(&r, unit_seed());
    rq_arena_init(&a);
    for (int round = 0; round < 5; round++) {
        for (size_t i = 0; i < COUNT; i++) {
            got[i].len = rq_random_below(&r, i % 50 == 0 ? 100000 : 200);
            got[i].ptr = rq_arena_alloc(&a, got[i].len);
            got[i].mark = (uint8_t)i;
            assert_non_null(got[i].ptr);
            assert_int_equal((uintptr_t)got[i].ptr % 16, 0);
            memset(got[i].ptr, got[i].mark, got[i].len);
        }
        for (size_t i = 0; i < COUNT; i++)
            for (size_t j = 0; j < got[i].len; j++)
                assert_int_equal(got[i].ptr[j], got[i].mark);
        rq_arena_reset(&a);
        assert_true(a.total_bytes <= 70 * 1024);
    }
    rq_arena_clear(&a);
    assert_int_equal(a.total_bytes, 0);
}

/* Grants up to *ctx bytes. */
static bool grant(void *ctx, size_t bytes)
{
    size_t *left = ctx;
    if (bytes > *left) return false;
    *left -= bytes;
    return true;
}

static void a_meter_is_asked_before_memory_is_added(void **state)
{
    (void)state;
    const size_t granted = (size_t)1 << 20;
    size_t left = granted, got = 0;
    rq_arena a;
    rq_arena_init(&a);
    rq_arena_meter(&a, grant, &left);
    while (rq_arena_alloc(&a, 1000) != NULL)
        got += 1000;
    assert_true(got > granted / 4 && got < granted);
    assert_int_equal(a.total_bytes, granted - left);
    assert_null(rq_arena_alloc(&a, granted));
    assert_null(rq_arena_alloc(&a, SIZE_MAX / 2));
    left = 500;
    assert_int_equal(rq_arena_account(&a, 501), RQ_E_NO_MEMORY);
    assert_int_equal(rq_arena_account(&a, 400), RQ_OK);
    assert_int_equal(left, 100);
    rq_arena_clear(&a);
}

static void lent_memory_is_used_first_and_not_freed(void **state)
{
    (void)state;
    size_t left = 10000;
    _Alignas(RQ_ARENA_ALIGN) uint8_t lent[256];
    rq_arena a;
    rq_arena_init(&a);
    rq_arena_lend(&a, lent, sizeof lent);
    rq_arena_meter(&a, grant, &left);
    size_t inside = 0;
    for (int i = 0; i < 10; i++) {
        uint8_t *p = rq_arena_alloc(&a, 48);
        assert_non_null(p);
        memset(p, i, 48);
        inside += (uintptr_t)p >= (uintptr_t)lent && (uintptr_t)p < (uintptr_t)(lent + 256);
        if (inside == (size_t)i + 1) assert_int_equal(left, 10000);
    }
    assert_true(inside == 4 || inside == 5);
    assert_true(left < 10000);
    rq_arena_clear(&a);
}

static int released[3], release_count;

static void note_release(void *thing)
{
    released[release_count++] = *(int *)thing;
}

static void links_are_released_in_reverse_order(void **state)
{
    (void)state;
    int things[] = {1, 2, 3};
    rq_arena a;
    rq_arena_init(&a);
    for (int i = 0; i < 3; i++)
        assert_int_equal(rq_arena_link(&a, note_release, &things[i]), RQ_OK);
    rq_arena_reset(&a);
    assert_int_equal(release_count, 3);
    assert_int_equal(released[0], 3);
    assert_int_equal(released[2], 1);
    rq_arena_clear(&a);
    assert_int_equal(release_count, 3);
}

static void overflowing_sizes_are_refused(void **state)
{
    (void)state;
    rq_arena a;
    rq_arena_init(&a);
    assert_null(rq_arena_calloc(&a, SIZE_MAX / 2, 3));
    assert_null(rq_arena_alloc(&a, SIZE_MAX - 3));
    rq_slice empty = rq_arena_copy(&a, (rq_slice){0});
    assert_non_null(empty.ptr);
    assert_string_equal(rq_arena_printf(&a, "%s-%d", "x", 5), "x-5");
    rq_arena_clear(&a);
}

static void a_list_grows_and_keeps_its_items(void **state)
{
    (void)state;
    rq_arena a = {0};
    uint32_t *items = NULL;
    size_t cap = 0;
    for (uint32_t n = 0; n < 1000; n++) {
        assert_int_equal(rq_arena_grow(&a, &items, sizeof *items, n, &cap), RQ_OK);
        assert_true(n < cap);
        items[n] = n;
    }
    for (uint32_t n = 0; n < 1000; n++)
        assert_int_equal(items[n], n);
    uint32_t *before = items;
    cap = SIZE_MAX / 2;
    assert_int_equal(rq_arena_grow(&a, &items, sizeof *items, cap, &cap), RQ_E_NO_MEMORY);
    assert_ptr_equal(items, before);
    rq_arena_clear(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocations_are_aligned_and_do_not_overlap),
        cmocka_unit_test(a_meter_is_asked_before_memory_is_added),
        cmocka_unit_test(lent_memory_is_used_first_and_not_freed),
        cmocka_unit_test(links_are_released_in_reverse_order),
        cmocka_unit_test(overflowing_sizes_are_refused),
        cmocka_unit_test(a_list_grows_and_keeps_its_items),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
