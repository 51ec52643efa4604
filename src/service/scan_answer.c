/* SPDX-License-Identifier: Apache-2.0 */
/* See scan_answer.h. Field numbers as in proto/client.proto. */
#include "service/scan_answer.h"

#include "service/put_field.h"

/* Largest encoding of a row's count and of its flag. */
#define COUNT_MAX (1 + RQ__PB_UINT32_MAX)
#define FLAG_LEN 2
/* Largest encoding of the fields that occur once, without those that are messages. */
#define NUMBERS_MAX (8 * (1 + RQ_VARINT_MAX))

static uint8_t *put_counts(uint8_t *p, const rq_scan_result *results, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        p = rq__put_number(p, 1, results[i].cells);
    return p;
}

static uint8_t *put_flags(uint8_t *p, const rq_scan_result *results, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++, p += FLAG_LEN) {
        p[0] = RQ_PB_TAG(7, RQ_PB_VARINT);
        p[1] = results[i].is_partial;
    }
    return p;
}

static size_t messages_room(const Pb__ScanResponse *m)
{
    size_t room = 0;
    if (m->scan_metrics != NULL) room += rq__put_message_room(&m->scan_metrics->base);
    if (m->cursor != NULL) room += rq__put_message_room(&m->cursor->base);
    for (size_t i = 0; i < m->n_query_metrics; i++)
        room += rq__put_message_room(&m->query_metrics[i]->base);
    return room;
}

static uint8_t *put_all(uint8_t *p, const Pb__ScanResponse *m, const rq_scan_result *results,
                        uint32_t count)
{
    p = put_counts(p, results, count);
    if (m->has_scanner_id) p = rq__put_number(p, 2, m->scanner_id);
    if (m->has_more_results) p = rq__put_number(p, 3, m->more_results != 0);
    if (m->has_ttl) p = rq__put_number(p, 4, m->ttl);
    if (m->has_stale) p = rq__put_number(p, 6, m->stale != 0);
    p = put_flags(p, results, count);
    if (m->has_more_results_in_region) p = rq__put_number(p, 8, m->more_results_in_region != 0);
    if (m->has_heartbeat_message) p = rq__put_number(p, 9, m->heartbeat_message != 0);
    if (m->scan_metrics != NULL) p = rq__put_message(p, 10, &m->scan_metrics->base);
    if (m->has_mvcc_read_point) p = rq__put_number(p, 11, m->mvcc_read_point);
    if (m->cursor != NULL) p = rq__put_message(p, 12, &m->cursor->base);
    for (size_t i = 0; i < m->n_query_metrics; i++)
        p = rq__put_message(p, 13, &m->query_metrics[i]->base);
    return p;
}

rq_err rq__pack_scan(const Pb__ScanResponse *m, const rq_scan_result *results, uint32_t count,
                     rq_arena *arena, rq_slice *ret)
{
    RQ_ASSERT(m->n_results == 0 && m->n_cells_per_result == 0);
    size_t room = (size_t)count * (COUNT_MAX + FLAG_LEN) + NUMBERS_MAX + messages_room(m);
    uint8_t *begin = rq_arena_alloc(arena, room);
    if (begin == NULL) return RQ_E_NO_MEMORY;
    uint8_t *end = put_all(begin, m, results, count);
    *ret = rq_slice_of(begin, (size_t)(end - begin));
    RQ_ASSERT(ret->len <= room);
    return RQ_OK;
}
