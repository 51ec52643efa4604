/* SPDX-License-Identifier: Apache-2.0 */
/* Fails each allocation of a read once: the result must be RQ_E_NO_MEMORY, never a crash, a leak or
 * a wrong row, and the region must be unchanged. The linker wraps the malloc family. */
#include "by_hand.h"

#include "../unit/base/failing_memory.h"
#include "filter/language.h"

#include <stdio.h>
#include <stdlib.h>

static bool counting;
static uint64_t calls;
static uint64_t fail_at;

bool allocation_fails(void)
{
    return counting && ++calls == fail_at;
}

static void add(by_hand *w, size_t family, int row, int column, uint8_t type, uint64_t seqid)
{
    char name[64];
    char qualifier[128];
    int row_len = snprintf(name, sizeof(name), "a row with a rather long name %03d", row);
    /* Qualifiers of growing length, so that kept keys must grow. */
    int len = snprintf(
        qualifier, sizeof(qualifier), "%02d%.*s", column, 12 * column,
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
        "xxxxxxxxxxxx");
    rq_cell c = {
        .row = (const uint8_t *)name,
        .row_len = (uint16_t)row_len,
        .family = (const uint8_t *)(family == 0 ? "f" : "g"),
        .family_len = 1,
        .qualifier = (const uint8_t *)qualifier,
        .qualifier_len = type == RQ_TYPE_DELETE_FAMILY_VERSION ? 0 : (uint32_t)len,
        .timestamp = (int64_t)seqid,
        .type = type,
        .seqid = seqid,
    };
    by_hand_add(w, family, &c);
}

static void make_world(by_hand *w, bool new_versions)
{
    rq_family_schema families[2] = {
        {.name = RQ_SLICE_LIT("f"),
         .max_versions = 3,
         .ttl_s = RQ_TTL_FOREVER,
         .block_bytes = 256,
         .bloom = RQ_BLOOM_ROW,
         .new_version_behavior = new_versions},
        {.name = RQ_SLICE_LIT("g"), .max_versions = 3, .ttl_s = RQ_TTL_FOREVER, .block_bytes = 256},
    };
    by_hand_init(w, 1, families, 2, RQ_ORDER_DEFAULT, 16384);
    uint64_t seqid = 0;
    for (int round = 0; round < 3; round++) {
        for (int row = 0; row < 4; row++) {
            for (int column = 0; column < 8; column++) {
                add(w, 0, row, column, RQ_TYPE_PUT, ++seqid);
                add(w, 1, row, column, RQ_TYPE_PUT, ++seqid);
                add(w, 0, row, column, RQ_TYPE_DELETE, seqid);
            }
            for (int i = 0; i < 12; i++)
                add(w, 0, row, 0, RQ_TYPE_DELETE_FAMILY_VERSION, ++seqid);
        }
        for (size_t f = 0; f < 2 && round < 2; f++) {
            by_hand_rotate(w, f);
            by_hand_flush(w, f, 0, NULL);
        }
    }
}

/* The filter of the scans; NULL: none. It is made anew for each of them, because a scan that fails leaves its state. */
static const char *filter_text;

static rq_filter *make_filter(rq_arena *arena)
{
    rq_slice name, message;
    rq_filter *filter = NULL;
    bool before = counting;
    if (filter_text == NULL) return NULL;
    counting = false;
    RQ_ASSERT(rq_filter_language_compile(rq_slice_cstr(filter_text), arena, &name, &message,
                                         NULL) == RQ_OK);
    RQ_ASSERT(rq_filter_parse(name, message, arena, &filter, NULL) == RQ_OK);
    counting = before;
    return filter;
}

/* Reads all rows, and suspends the scan in every row. */
static rq_err read_all(by_hand *w, const rq_scan *asked, bool on_demand_cut, rq_cellblock *out)
{
    rq_arena arena, filters;
    rq_arena_init(&arena);
    rq_arena_init(&filters);
    rq_scan own = *asked, *scan = &own;
    own.filter = make_filter(&filters);
    rq_read_ctx ctx = {.may_block = true};
    rq_region_scanner *s = NULL;
    rq_scan_limits limits = {.cells = on_demand_cut ? 3 : 0};
    rq_scan_state state = RQ_SCAN_MORE;
    rq_err rc = rq_region_scanner_open(&w->region, scan, 0, &arena, &s, NULL);
    while (rc == RQ_OK && state != RQ_SCAN_DONE) {
        rc = rq_region_scanner_next(s, &limits, &ctx, out, &state, NULL);
        if (rc == RQ_OK)
            rq_region_scanner_suspend(s);
        else /* wherever it failed: in a row, or while a filter decides about it */
            RQ_ASSERT(rq_region_scanner_next(s, &limits, &ctx, out, &state, NULL) == rc);
    }
    rq_region_scanner_close(s);
    rq_read_ctx_clear(&ctx);
    rq_arena_clear(&arena);
    rq_arena_clear(&filters);
    return rc;
}

static void fail_each(by_hand *w, const rq_scan *scan, bool cut, const char *name)
{
    rq_cellblock expected = {0};
    rq_cellblock out = {0};
    counting = false;
    RQ_ASSERT(read_all(w, scan, cut, &expected) == RQ_OK && expected.count > 0);
    rq_err rc;
    fail_at = 0;
    do {
        fail_at++;
        calls = 0;
        counting = true;
        rc = read_all(w, scan, cut, &out);
        counting = false;
        RQ_ASSERT(rc == RQ_OK || rc == RQ_E_NO_MEMORY);
        RQ_ASSERT(w->region.refs == 1 && w->region.open_count == 0);
        if (rc == RQ_OK)
            RQ_ASSERT(rq_slice_eq(rq_buf_slice(&out.bytes), rq_buf_slice(&expected.bytes)));
        rq_cellblock_clear(&out);
    } while (calls >= fail_at);
    printf("%s: %llu allocations\n", name, (unsigned long long)fail_at - 1);
    rq_cellblock_clear(&expected);
}

int main(void)
{
    for (int round = 0; round < 2; round++) {
        by_hand *w = calloc(1, sizeof(*w));
        RQ_ASSERT(w != NULL);
        make_world(w, round == 1);
        rq_scan scan = {
            .include_start = true,
            .max_versions = 2,
            .time_range = RQ_TIME_RANGE_ALL,
            .store_limit = -1,
        };
        fail_each(w, &scan, true, "scan");
        scan.reversed = true;
        fail_each(w, &scan, false, "reversed scan");
        scan.reversed = false;
        scan.raw = true;
        fail_each(w, &scan, false, "raw scan");
        scan.raw = false;
        /* It looks at each row as a whole, and only family g is read before. */
        filter_text = "SingleColumnValueExcludeFilter('g', '00', >=, 'binary:', true, true)";
        scan.load_families_on_demand = true;
        fail_each(w, &scan, false, "scan with a filter");
        scan.load_families_on_demand = false;
        filter_text = NULL;
        rq_slice columns[] = {RQ_SLICE_LIT("00"), RQ_SLICE_LIT("01xxxxxxxxxxxx")};
        rq_scan_family wanted = {
            .family = RQ_SLICE_LIT("g"), .qualifiers = columns, .qualifier_count = 2};
        scan.families = &wanted;
        scan.family_count = 1;
        fail_each(w, &scan, false, "scan of columns");
        by_hand_clear(w);
        free(w);
    }
    return 0;
}
