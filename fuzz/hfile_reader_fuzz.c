/* SPDX-License-Identifier: Apache-2.0 */
/* A whole HFile from untrusted bytes: opened, checked, scanned, searched forward, backward and by
 * the prefetch, with and without a cache. Seeds have no checksums and no seal, so that changed
 * bytes pass. */
#include "hfile/ahead.h"
#include "hfile/check.h"

/* A fuzz target is one source file, so the tests' in-memory files are included. */
#include "../tests/unit/hfile/memory_vfs.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* More steps than any seed needs: only a large file may make a scan take long. */
#define STEPS_MAX 20000

static void scan(rq_hfile_reader *r, rq_read_ctx *ctx)
{
    rq_hfile_scanner s;
    rq_hfile_scanner_init(&s, r);
    uint64_t sum = 0;
    rq_err rc = rq_hfile_scanner_seek_first(&s, ctx, NULL);
    for (int i = 0; rc == RQ_OK && i < STEPS_MAX; i++) {
        const rq_cell *c = rq_hfile_scanner_cell(&s);
        rq_slice tag;
        bool may;
        for (uint32_t k = 0; k < c->value_len; k++)
            sum += c->value[k];
        sum += rq_cell_tag(c, RQ_TAG_TTL, &tag);
        if (i % 16 == 0) {
            (void)!rq_hfile_may_contain_row(r, ctx, rq_cell_row(c), &may, NULL);
            (void)!rq_hfile_may_contain_column(r, ctx, rq_cell_row(c), rq_cell_qualifier(c), &may,
                                               NULL);
            (void)!rq__hfile_may_contain_delete_family(r, ctx, rq_cell_row(c), &may, NULL);
        }
        rc = rq_hfile_scanner_next(&s, ctx, NULL);
    }
    static const char *const rows[] = {"", "row", "row000100", "row7", "zzz"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(rows); i++) {
        rq_cell key = rq_cell_first_on_row(rq_slice_cstr(rows[i]));
        if (rq_hfile_scanner_seek(&s, ctx, &key, NULL) == RQ_OK)
            (void)!rq_hfile_scanner_next(&s, ctx, NULL);
        (void)!rq_hfile_scanner_seek_before(&s, ctx, &key, NULL);
        key = rq_cell_last_on_row(rq_slice_cstr(rows[i]));
        (void)!rq_hfile_scanner_reseek(&s, ctx, &key, NULL);
        rq_hfile_row row = {rq_slice_cstr(rows[i]), 2, {r, r}};
        rq_hfile_expect_rows(&row, 1);
    }
    rq_hfile_scanner_clear(&s);
    rq_buf key = {0};
    if (rq_hfile_midkey(r, ctx, &key, NULL) == RQ_OK) sum += key.len;
    rq_buf_clear(&key);
    /* Keeps the compiler from omitting the reads above. */
    if (sum == UINT64_MAX) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    memory_vfs vfs;
    memory_vfs_init(&vfs, size);
    memory_vfs_put(&vfs, "f", rq_slice_of(data, size));
    rq_block_cache *cache;
    if (rq_block_cache_new(1 << 16, &cache) != RQ_OK) abort();
    for (int with_cache = 0; with_cache < 2; with_cache++) {
        rq_hfile_reader *r;
        rq_error why = {0};
        if (rq_hfile_reader_open(&vfs.base, "f", with_cache ? cache : NULL, false, &r, &why) !=
            RQ_OK)
            continue;
        rq_hfile_report report;
        rq_read_ctx ctx = {.may_block = true};
        if (!with_cache) (void)!rq_hfile_check(r, &report, &why);
        scan(r, &ctx);
        rq_read_ctx_clear(&ctx);
        rq_hfile_reader_unref(r);
    }
    rq_block_cache_free(cache);
    memory_vfs_clear(&vfs);
    return 0;
}
