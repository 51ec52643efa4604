/* SPDX-License-Identifier: Apache-2.0 */
/* A get from a large file is a chain of cache misses: the bloom's bits, the block, its sidecar, the
 * cell; each address is known only when the previous data has arrived. The rows of a batch are
 * independent of each other, so here their searches are interleaved: in every round each row makes
 * one step, which ends by prefetching the data of its next step. When the gets run afterwards, they
 * find everything in the processor's caches.
 *
 * This is a hint. Blocks that the reader does not hold and that are not in the block cache are left
 * to the get; nothing is read, counted or kept. Between two rounds a row holds a reference to its
 * block. */
#include "hfile/ahead.h"

#include "hfile/bloom.h"
#include "hfile/reader_priv.h"

/* Interleaved searches: about the number of cache misses a core can have in flight. */
#define ROWS 16
#define FIRST_BITS 3u /* most absent keys are detected by these first bits */

/* The state of a row's search. */
typedef struct row_search {
    const rq_hfile_row *row;
    size_t at;                          /* of the row's files */
    bool (*step)(struct row_search *s); /* the next; false: the search is over */
    const rq_hfile_block *chunk;        /* of the bloom; NULL: it is not used */
    rq__bloom_meta meta;
    uint64_t offset; /* of the data block */
    rq_hfile_block *block;
} row_search;

static bool find_block(row_search *s);
static bool find_sidecar(row_search *s);
static bool find_cell(row_search *s);

static const rq_hfile_reader *reader_of(const row_search *s)
{
    return s->row->files[s->at];
}

/* Whether the file can be searched; if so, finds the row bloom's chunk and prefetches its bits. */
static bool begin_file(row_search *s)
{
    const rq_hfile_reader *r = reader_of(s);
    s->step = find_block;
    s->chunk = NULL;
    if (r->cached == NULL || r->half != NULL || r->info.order != RQ_ORDER_DEFAULT) return false;
    if (r->info.bloom != RQ_BLOOM_ROW) return true;
    const rq_hfile_block *meta = rq__reader_held(r, RQ__HELD_BLOOM);
    if (meta == NULL) return true;
    int64_t at = rq__index_floor_bytes(rq__bloom_meta_index(meta), s->row->row);
    if (at < 0) return false;
    s->chunk = rq__reader_held(r, r->held_chunks[0] + (size_t)at);
    if (s->chunk == NULL) return true;
    memcpy(&s->meta, meta->payload, sizeof s->meta);
    rq__bloom_prefetch(
        rq_slice_of(s->chunk->payload, s->chunk->payload_len), (rq__hash_type)s->meta.hash_type,
        s->meta.hash_count < FIRST_BITS ? s->meta.hash_count : FIRST_BITS, s->row->row);
    return true;
}

/* To the next file that may have the row. */
static bool next_file(row_search *s)
{
    while (++s->at < s->row->count)
        if (begin_file(s)) return true;
    return false;
}

static bool bloom_denies(const row_search *s)
{
    return s->chunk != NULL &&
           !rq__bloom_test(rq_slice_of(s->chunk->payload, s->chunk->payload_len),
                           (rq__hash_type)s->meta.hash_type, s->meta.hash_count, s->row->row);
}

static uint32_t entry_at_or_before(const rq_hfile_block *b, const rq_cell *key)
{
    const rq__sidecar *marks = atomic_load_explicit(&b->sidecar, memory_order_acquire);
    int64_t at = rq__index_floor(rq__index_view_of(b->payload), marks, RQ_ORDER_DEFAULT, key);
    return at < 0 ? 0 : (uint32_t)at;
}

/* Finds the data block of the first file that may have the row, by the index, and prefetches its
 * head. */
static bool find_block(row_search *s)
{
    if (bloom_denies(s)) return next_file(s);
    const rq_hfile_reader *r = reader_of(s);
    const rq_hfile_block *index = rq__reader_held(r, RQ__HELD_ROOT);
    if (index == NULL || r->info.data_index_levels > 2) return false;
    rq_cell key = rq_cell_first_on_row(s->row->row);
    uint32_t at = entry_at_or_before(index, &key);
    if (r->info.data_index_levels == 2) {
        index = rq__reader_held(r, r->held_children + at);
        if (index == NULL) return false;
        at = entry_at_or_before(index, &key);
    }
    s->offset = rq__index_at(rq__index_view_of(index->payload), at).offset;
    s->step = find_sidecar;
    return rq__cache_prefetch(r->cached, s->offset);
}

static bool find_sidecar(row_search *s)
{
    s->block = rq__cache_peek(reader_of(s)->cached, s->offset);
    if (s->block == NULL) return false;
    const rq__sidecar *side = atomic_load_explicit(&s->block->sidecar, memory_order_acquire);
    if (side == NULL || s->block->kind != RQ_BLOCK_DATA) return false;
    rq__sidecar_prefetch(side);
    s->step = find_cell;
    return !rq__encoding_is_delta(reader_of(s)->info.encoding);
}

static bool find_cell(row_search *s)
{
    const rq__sidecar *side = atomic_load_explicit(&s->block->sidecar, memory_order_acquire);
    rq_cell key = rq_cell_first_on_row(s->row->row);
    uint32_t low, high;
    rq__sidecar_narrow(side, &key, &low, &high);
    if (low < high) rq__sidecar_prefetch_cell(side, low, s->block->payload);
    return false;
}

/* Makes one step of each search in turn, until all are finished. */
static void run(row_search *rows, size_t open)
{
    while (open > 0) {
        for (size_t i = 0; i < open;) {
            if (rows[i].step(&rows[i])) {
                i++;
                continue;
            }
            rq__hfile_block_unref(rows[i].block);
            rows[i] = rows[--open];
        }
    }
}

void rq_hfile_expect_rows(const rq_hfile_row *list, size_t count)
{
    row_search rows[ROWS];
    size_t open = 0;
    for (size_t i = 0; i < count; i++) {
        row_search *s = &rows[open];
        *s = (row_search){.row = &list[i]};
        if (list[i].count == 0 || (!begin_file(s) && !next_file(s))) continue;
        if (++open < ROWS) continue;
        run(rows, open);
        open = 0;
    }
    run(rows, open);
}
