/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a bulk load while the clock stands still: their names differ. */
#include "unit.h"

#include "transfer/hfiles.h"
#include "vfs/memory.h"

#include <time.h>

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
    (void)clock;
    *ret = (struct timespec){.tv_sec = 1700000000};
    return 0;
}

static void put(rq__hfiles *h, const char *row)
{
    rq_cell c = {.row = (const uint8_t *)row,
                 .row_len = (uint16_t)strlen(row),
                 .family = (const uint8_t *)"f",
                 .family_len = 1,
                 .timestamp = 1,
                 .type = RQ_TYPE_PUT};
    rq_error why;
    if (rq__hfiles_put(h, &c, &why) != RQ_OK) fail_msg("%s: %s", row, why.message);
}

static void names_do_not_depend_on_the_clock(void **state)
{
    (void)state;
    rq_family_schema family = {.name = RQ_SLICE_LIT("f"), .block_bytes = 65536};
    rq_table_schema table = {.name = RQ_SLICE_LIT("t"), .families = &family, .family_count = 1};
    rq__range ranges[] = {{.start = RQ_SLICE_LIT("")}, {.start = RQ_SLICE_LIT("m")}};
    rq_vfs *vfs;
    rq_error why;
    assert_int_equal(rq_vfs_memory_new(&vfs), RQ_OK);
    rq__hfiles h = {.vfs = vfs, .folder = "", .schema = &table, .ranges = ranges, .range_count = 2};
    put(&h, "a");
    put(&h, "n");
    assert_int_equal(rq__hfiles_end(&h, &why), RQ_OK);
    assert_int_equal(h.files, 2);
    rq__hfiles_clear(&h);
    rq_vfs_free(vfs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_do_not_depend_on_the_clock)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
