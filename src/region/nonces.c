/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing with linear probing; contract in nonces.h. Slots are freed only by rebuilding,
 * which happens when the table is two thirds full, so probing needs no tombstones. */
#include "region/nonces.h"

#include <stdlib.h>

#define ROOM_FIRST 64

static size_t slot_of(const rq__nonces *n, uint64_t group, uint64_t nonce)
{
    uint64_t h = (group ^ (nonce << 31 | nonce >> 33)) * 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
    size_t i = (size_t)h & (n->room - 1);
    while (n->slots[i].seqid != 0 && (n->slots[i].group != group || n->slots[i].nonce != nonce))
        i = (i + 1) & (n->room - 1);
    return i;
}

void rq__nonces_add(rq__nonces *n, uint64_t group, uint64_t nonce, uint64_t seqid, int64_t time_ms)
{
    rq__nonce *s = &n->slots[slot_of(n, group, nonce)];
    if (s->seqid == 0) n->count++;
    *s = (rq__nonce){group, nonce, seqid, time_ms};
}

static bool is_expired(const rq__nonce *s, int64_t now_ms)
{
    return s->time_ms < now_ms - RQ__NONCE_LIFE_MS;
}

rq_err rq__nonces_reserve(rq__nonces *n, int64_t now_ms)
{
    if ((n->count + 1) * 3 <= n->room * 2) return RQ_OK;
    size_t alive = 0;
    for (size_t i = 0; i < n->room; i++)
        alive += n->slots[i].seqid != 0 && !is_expired(&n->slots[i], now_ms);
    rq__nonces larger = {.room = n->room == 0 ? ROOM_FIRST : n->room};
    while ((alive + 1) * 3 > larger.room)
        larger.room *= 2;
    larger.slots = calloc(larger.room, sizeof *larger.slots);
    if (larger.slots == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < n->room; i++) {
        const rq__nonce *s = &n->slots[i];
        if (s->seqid != 0 && !is_expired(s, now_ms))
            rq__nonces_add(&larger, s->group, s->nonce, s->seqid, s->time_ms);
    }
    free(n->slots);
    *n = larger;
    return RQ_OK;
}

uint64_t rq__nonces_find(const rq__nonces *n, uint64_t group, uint64_t nonce, int64_t now_ms)
{
    if (n->count == 0) return 0;
    const rq__nonce *s = &n->slots[slot_of(n, group, nonce)];
    return s->seqid == 0 || is_expired(s, now_ms) ? 0 : s->seqid;
}

void rq__nonces_clear(rq__nonces *n)
{
    free(n->slots);
    *n = (rq__nonces){0};
}
