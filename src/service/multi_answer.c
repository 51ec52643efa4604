/* SPDX-License-Identifier: Apache-2.0 */
/* See multi_answer.h. Field numbers as in proto/client.proto; rare fields are encoded by
 * protobuf-c. */
#include "service/multi_answer.h"

#include "service/put_field.h"

/* Largest encoding of a frequent Result: a count and three booleans. */
#define RESULT_MAX (1 + RQ_VARINT_MAX + 3 * 2)
/* Largest encoding of an outcome with such a Result; both lengths are below 128. */
#define OUTCOME_MAX (2 + 1 + RQ_VARINT_MAX + 2 + RESULT_MAX)
_Static_assert(OUTCOME_MAX < 128, "lengths are written as one byte");

/* --- one action's outcome --------------------------------------------------------------------- */

/* An index and a result without cells. */
static bool is_frequent(const Pb__ResultOrException *r)
{
    if (r->exception != NULL || r->service_result != NULL || r->loadstats != NULL ||
        r->metrics != NULL || r->base.n_unknown_fields > 0)
        return false;
    const Pb__Result *result = r->result;
    return result == NULL ||
           (result->n_cell == 0 && result->metrics == NULL && result->base.n_unknown_fields == 0);
}

static uint8_t *put_result(uint8_t *p, const Pb__Result *r)
{
    if (r->has_associated_cell_count) /* as for every int32, ten bytes if negative */
        p = rq__put_number(p, 2, (uint64_t)(int64_t)r->associated_cell_count);
    if (r->has_exists) p = rq__put_number(p, 3, r->exists != 0);
    if (r->has_stale) p = rq__put_number(p, 4, r->stale != 0);
    if (r->has_partial) p = rq__put_number(p, 5, r->partial != 0);
    return p;
}

static uint8_t *put_outcome(uint8_t *p, const Pb__ResultOrException *r)
{
    if (!is_frequent(r)) return rq__put_message(p, 1, &r->base);
    uint8_t *begin = p;
    p += 2;
    if (r->has_index) p = rq__put_number(p, 1, r->index);
    if (r->result != NULL) {
        uint8_t *result = p;
        p = put_result(p + 2, r->result);
        result[0] = RQ_PB_TAG(2, RQ_PB_BYTES);
        result[1] = (uint8_t)(p - result - 2);
    }
    begin[0] = RQ_PB_TAG(1, RQ_PB_BYTES);
    begin[1] = (uint8_t)(p - begin - 2);
    return p;
}

static size_t outcome_room(const Pb__ResultOrException *r)
{
    return is_frequent(r) ? OUTCOME_MAX : rq__put_message_room(&r->base);
}

/* --- a region's ------------------------------------------------------------------------------- */

static uint8_t *put_region(uint8_t *p, const Pb__RegionActionResult *r)
{
    /* The body is written first, behind room for the longest header; then its length is known. */
    uint8_t *body = p + RQ__PB_HEADER_MAX;
    uint8_t *end = body;
    for (size_t i = 0; i < r->n_resultorexception; i++)
        end = put_outcome(end, r->resultorexception[i]);
    if (r->exception != NULL) end = rq__put_message(end, 2, &r->exception->base);
    if (r->has_processed) end = rq__put_number(end, 3, r->processed != 0);
    size_t len = (size_t)(end - body);
    *p++ = RQ_PB_TAG(1, RQ_PB_BYTES);
    p += rq_put_varint(p, len);
    memmove(p, body, len);
    return p + len;
}

static size_t region_room(const Pb__RegionActionResult *r)
{
    size_t room = RQ__PB_HEADER_MAX + 2;
    for (size_t i = 0; i < r->n_resultorexception; i++)
        room += outcome_room(r->resultorexception[i]);
    if (r->exception != NULL) room += rq__put_message_room(&r->exception->base);
    return room;
}

/* --- all -------------------------------------------------------------------------------------- */

size_t rq__multi_room(const Pb__MultiResponse *m)
{
    size_t room = 2;
    for (size_t i = 0; i < m->n_regionactionresult; i++)
        room += region_room(m->regionactionresult[i]);
    if (m->regionstatistics != NULL) room += rq__put_message_room(&m->regionstatistics->base);
    return room;
}

uint8_t *rq__put_multi(uint8_t *p, const Pb__MultiResponse *m)
{
    for (size_t i = 0; i < m->n_regionactionresult; i++)
        p = put_region(p, m->regionactionresult[i]);
    if (m->has_processed) p = rq__put_number(p, 2, m->processed != 0);
    if (m->regionstatistics != NULL) p = rq__put_message(p, 3, &m->regionstatistics->base);
    return p;
}

rq_err rq__pack_multi(const Pb__MultiResponse *m, rq_arena *arena, rq_slice *ret)
{
    size_t room = rq__multi_room(m);
    uint8_t *begin = rq_arena_alloc(arena, room);
    if (begin == NULL) return RQ_E_NO_MEMORY;
    *ret = rq_slice_of(begin, (size_t)(rq__put_multi(begin, m) - begin));
    RQ_ASSERT(ret->len <= room);
    return RQ_OK;
}
