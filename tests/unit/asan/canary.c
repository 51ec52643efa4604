/* SPDX-License-Identifier: Apache-2.0 */
/* Canaries: each argument is one fault that must end the program in a build with
 * AddressSanitizer. Most are accesses outside of an allocation from one of the project's own
 * allocators (base/asan.h); the others are more work than a loop may do without yielding
 * (base/work_limit.h). "none" runs the same code without a fault, and must pass. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/work_limit.h"
#include "hfile/slab.h"
#include "net/input.h"
#include "store/segment.h"
#include "store/slab_pieces.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The fault to make; "none": no fault. */
static const char *wanted;

static void touch(const char *name, const void *p)
{
    if (strcmp(wanted, name) == 0) (void)*(const volatile uint8_t *)p;
}

/* Errors of calls are not the subject of this program. */
static void must(bool fine)
{
    if (!fine) exit(0); /* exit code 0 means that the canary failed to find its fault */
}

static void arena(void)
{
    rq_arena a;
    rq_arena_init(&a);
    uint8_t *first = rq_arena_alloc(&a, 13);
    uint8_t *second = rq_arena_alloc(&a, 16);
    must(first != NULL && second != NULL);
    memset(first, 1, 13);
    memset(second, 2, 16);
    touch("arena-behind", first + 13);
    touch("arena-before", second - 1);
    touch("arena-unused", second + 200);
    rq_arena_reset(&a);
    touch("arena-after-reset", first);
    rq_arena_clear(&a);
}

static void buf(void)
{
    rq_buf b = {0};
    must(rq_buf_append(&b, "0123456789", 10) == RQ_OK);
    must(rq_buf_reserve(&b, 3) == RQ_OK);
    touch("none", b.ptr + 12);
    touch("buf-behind", b.ptr + 13);
    rq_buf_reset(&b);
    touch("buf-after-reset", b.ptr + 1);
    rq_buf_clear(&b);
}

/* Adds cells of 1 kB until they lie in a slab of the largest size. */
static void segment(void)
{
    static const uint8_t value[1024];
    rq_cell cell = {.row = (const uint8_t *)"r",
                    .row_len = 1,
                    .family = (const uint8_t *)"f",
                    .family_len = 1,
                    .type = RQ_TYPE_PUT,
                    .value = value,
                    .value_len = sizeof value};
    rq_segment *s;
    rq_segment_node *n = NULL;
    must(rq_segment_new(RQ_ORDER_DEFAULT, &s) == RQ_OK);
    for (int i = 0; i < 3000; i++) {
        must(rq_segment_prepare(s, &cell, &n) == RQ_OK);
        if (i < 2999) rq__segment_link(s, n, (uint64_t)i + 1);
    }
    rq_slice bytes = rq_segment_node_bytes(n);
    touch("none", bytes.ptr + bytes.len - 1);
    touch("segment-behind", bytes.ptr + bytes.len);
    rq_segment_rollback(s, n);
    touch("segment-after-rollback", bytes.ptr);
    rq_segment_unref(s);
}

static void slabs(void)
{
    rq_slab_pool *pool;
    must(rq_slab_pool_new(NULL, 4, &pool) == RQ_OK);
    uint8_t *whole = rq__slab_pool_take(pool);
    uint8_t *piece = rq__slab_piece_take(rq__slab_pool_pieces(pool), RQ_PIECE_MIN);
    must(whole != NULL && piece != NULL);
    touch("none", whole + RQ_SLAB_BYTES - 1);
    touch("piece-behind", piece + RQ_PIECE_MIN);
    rq__slab_pool_give(pool, whole);
    touch("slab-after-give", whole + 4096);
    whole = rq__slab_pool_take(pool);
    touch("none", whole + 4096);
    rq__slab_pool_give(pool, whole);
    rq__slab_piece_give(rq__slab_pool_pieces(pool), piece, RQ_PIECE_MIN);
    touch("piece-after-give", piece + 64);
    rq_slab_pool_free(pool);
}

static void cached_block(void)
{
    rq__slab *s;
    size_t charge;
    must(rq__slab_new(&s) == RQ_OK);
    uint8_t *piece = rq__slab_take(s, 5000, &charge);
    must(piece != NULL);
    touch("block-behind", piece + 5000);
    rq__slab_give(s, piece, charge);
    touch("block-after-give", piece);
    rq__slab_free(s);
}

/* Two frames that arrived in one read. */
static void frame(void)
{
    rq_budget *budget;
    must(rq_budget_new(1 << 20, &budget) == RQ_OK);
    rq_chunk_pool pool = {.budget = budget};
    rq_input in = {.frame_max = 100};
    size_t room, len;
    rq_err why;
    uint8_t *p = rq_input_buffer(&in, &pool, &room, &why);
    must(p != NULL);
    memcpy(p, "\0\0\0\3abc\0\0\0\3def", 14);
    rq_input_received(&in, &pool, 14);
    rq_slice bytes;
    rq_chunk *owner;
    must(rq_input_frame(&in, &bytes, &owner, &len) == RQ_FRAME_WHOLE);
    touch("none", bytes.ptr + 2);
    touch("frame-behind", bytes.ptr + 3);
    rq_chunk_unref(owner);
    touch("frame-after-unref", bytes.ptr);
    rq_input_clear(&in, budget);
    rq_chunk_pool_clear(&pool);
    rq_budget_free(budget);
}

static void work(void)
{
    for (size_t i = 0; i < 2 * (size_t)RQ_WORK_STEPS_MAX; i++)
        rq_work_count(0); /* outside of an event loop work is not counted */
    rq_work_begin();
    rq_work_count(RQ_WORK_STEPS_MAX * (size_t)RQ_WORK_STEP_BYTES * 2); /* one cell */
    if (strcmp(wanted, "work-bytes") == 0)
        for (int i = 0; i < 64; i++)
            rq_work_count(RQ_WORK_ITEM_BYTES);
    rq_work_begin();
    size_t cells = RQ_WORK_STEPS_MAX + (strcmp(wanted, "work-cells") == 0 ? 1 : 0);
    for (size_t i = 0; i < cells; i++)
        rq_work_count(0);
    rq_work_end();
    rq_work_count(RQ_WORK_ITEM_BYTES);
}

int main(int argc, char **argv)
{
    if (argc < 2) return 0;
    wanted = argv[1];
    arena();
    buf();
    segment();
    slabs();
    cached_block();
    frame();
    work();
    return 0;
}
