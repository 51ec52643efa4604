/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of bits; see row_filter.h. */
#include "store/row_filter.h"

#include <stdlib.h>

#define WORDS_FIRST 1024
#define GROWTH 4
#define ROWS_PER_WORD 8

rq_row_filter *rq__row_filter_new(rq_row_filter *older)
{
    size_t words = older == NULL ? WORDS_FIRST : GROWTH * older->words;
    rq_row_filter *f = calloc(1, sizeof *f + words * sizeof f->bits[0]);
    if (f == NULL) return NULL;
    f->older = older;
    f->words = words;
    return f;
}

void rq__row_filter_free(rq_row_filter *f)
{
    while (f != NULL) {
        rq_row_filter *older = f->older;
        free(f);
        f = older;
    }
}

size_t rq__row_filter_bytes(const rq_row_filter *f)
{
    return sizeof *f + f->words * sizeof f->bits[0];
}

bool rq__row_filter_is_full(const rq_row_filter *f)
{
    return f->rows >= f->words * ROWS_PER_WORD;
}

void rq__row_filter_add(rq_row_filter *f, uint64_t hash)
{
    if (rq__row_filter_may_have(f, hash)) return;
    _Atomic uint64_t *word = &f->bits[rq__row_word(f, hash)];
    uint64_t now = atomic_load_explicit(word, memory_order_relaxed);
    atomic_store_explicit(word, now | rq__row_bits(hash), memory_order_relaxed);
    f->rows++;
}
