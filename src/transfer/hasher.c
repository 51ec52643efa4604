/* SPDX-License-Identifier: Apache-2.0 */
/* See hasher.h. */
#include "transfer/hasher.h"

#include "transfer/scan.h"

#include <stdlib.h>

#define SAID_MAX 20 /* differences; more are only counted */

void rq__hasher_begin(rq__hasher *h)
{
    MD5Init(&h->ctx);
    h->bytes = 0;
}

void rq__hasher_add(rq__hasher *h, const rq_cell *c)
{
    uint8_t time[8];
    uint64_t t = (uint64_t)c->timestamp;
    for (size_t i = 0; i < sizeof time; i++, t >>= 8)
        time[i] = (uint8_t)t; /* the lowest byte first */
    MD5Update(&h->ctx, c->row, c->row_len);
    MD5Update(&h->ctx, c->family, c->family_len);
    MD5Update(&h->ctx, c->qualifier, c->qualifier_len);
    if (!h->ignores_times) MD5Update(&h->ctx, time, sizeof time);
    MD5Update(&h->ctx, c->value, c->value_len);
    h->bytes += (uint64_t)c->row_len + c->family_len + c->qualifier_len + 8 + c->value_len;
}

void rq__hasher_end(rq__hasher *h, uint8_t ret[RQ__HASH_LEN])
{
    MD5Final(ret, &h->ctx);
}

/* --- lists ------------------------------------------------------------------------------------ */

rq_err rq__hash_list_add(rq__hash_list *l, rq_slice key, const uint8_t hash[RQ__HASH_LEN])
{
    if (l->count == l->cap) {
        size_t cap = l->cap == 0 ? 64 : 2 * l->cap;
        rq__hash_entry *bigger = realloc(l->entries, cap * sizeof *bigger);
        if (bigger == NULL) return RQ_E_NO_MEMORY;
        l->entries = bigger;
        l->cap = cap;
    }
    rq__hash_entry *e = &l->entries[l->count];
    e->key = rq_arena_copy(&l->arena, key);
    if (e->key.ptr == NULL) return RQ_E_NO_MEMORY;
    memcpy(e->hash, hash, RQ__HASH_LEN);
    l->count++;
    return RQ_OK;
}

void rq__hash_list_reset(rq__hash_list *l)
{
    rq_arena_reset(&l->arena);
    l->count = 0;
}

void rq__hash_list_clear(rq__hash_list *l)
{
    rq_arena_clear(&l->arena);
    free(l->entries);
    *l = (rq__hash_list){0};
}

/* --- comparing -------------------------------------------------------------------------------- */

typedef struct comparison {
    const rq__hash_list *list;
    rq_slice end;
    rq__crew *crew;
    rq__hasher hasher;
    size_t at; /* the batch that is being hashed */
} comparison;

static void print_difference(const comparison *c, rq_slice start, rq_slice stop)
{
    char from[400], to[400];
    if (atomic_fetch_add(&c->crew->different, 1) >= SAID_MAX) return;
    rq_bytes_to_string(start, from, sizeof from);
    rq_bytes_to_string(stop, to, sizeof to);
    /* An empty key is the table's start or end. */
    if (start.len == 0 && stop.len == 0)
        rq__crew_print(c->crew, "rows differ: the range is the whole table");
    else if (start.len == 0)
        rq__crew_print(c->crew, "rows before '%s' differ", to);
    else if (stop.len == 0)
        rq__crew_print(c->crew, "rows from '%s' to the end differ", from);
    else
        rq__crew_print(c->crew, "rows from '%s' to before '%s' differ", from, to);
}

static void end_batch(comparison *c)
{
    uint8_t hash[RQ__HASH_LEN];
    const rq__hash_entry *e = &c->list->entries[c->at];
    rq__hasher_end(&c->hasher, hash);
    c->at++;
    if (memcmp(hash, e->hash, sizeof hash) != 0)
        print_difference(c, e->key, c->at < c->list->count ? c->list->entries[c->at].key : c->end);
    rq__hasher_begin(&c->hasher);
}

static rq_err take_row(void *ctx, rq_op_result *row, rq_error *why)
{
    comparison *c = ctx;
    rq_cell cell;
    rq_err rc;
    (void)why;
    while ((rc = rq_result_next(&row->row, &row->cells, &cell)) == RQ_OK) {
        while (c->at + 1 < c->list->count &&
               rq_slice_compare(rq_cell_row(&cell), c->list->entries[c->at + 1].key) >= 0)
            end_batch(c);
        rq__hasher_add(&c->hasher, &cell);
    }
    return rc == RQ_E_END ? RQ_OK : rc;
}

rq_err rq__hash_list_compare(const rq__hash_list *l, rq_scan *scan, rq__link *link,
                             bool ignores_times, rq__crew *crew, rq_error *why)
{
    comparison c = {
        .list = l, .end = scan->stop, .crew = crew, .hasher.ignores_times = ignores_times};
    const rq__scan_calls calls = {take_row, NULL, &c};
    if (l->count == 0) return RQ_OK;
    rq__hasher_begin(&c.hasher);
    scan->start = l->entries[0].key;
    RQ_TRY(rq__link_scan(link, scan, &calls, why));
    while (c.at < l->count)
        end_batch(&c);
    return RQ_OK;
}
