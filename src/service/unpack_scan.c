/* SPDX-License-Identifier: Apache-2.0 */
/* The decoder of Scan; see unpack.h. The tag of a field from 16 to 31 is a varint of two bytes: the
 * first has the value RQ_PB_TAG(number, wire type), 128 to 255, and the second is 1. */
#include "service/unpack_priv.h"

typedef struct scan_parts {
    Pb__Scan *scan;
    repeated columns, attributes, family_ranges;
} scan_parts;

/* The fields that most scans have. */
RQ_INLINE bool frequent_member(unpacker *u, uint8_t tag, rq_cursor *c, scan_parts *parts)
{
    Pb__Scan *m = parts->scan;
    switch (tag) {
    case BYTES(1):
        return note(&parts->columns, c);
    case BYTES(2):
        return note(&parts->attributes, c);
    case BYTES(3):
        m->has_start_row = 1;
        return binary(c, &m->start_row);
    case BYTES(4):
        m->has_stop_row = 1;
        return binary(c, &m->stop_row);
    case BYTES(5):
        return inner(u, c, filter, &m->filter);
    case BYTES(6):
        return inner(u, c, time_range, &m->time_range);
    case VARINT(7):
        return number32(c, &m->has_max_versions, &m->max_versions);
    case VARINT(8):
        return boolean(c, &m->has_cache_blocks, &m->cache_blocks);
    case VARINT(9):
        return number32(c, &m->has_batch_size, &m->batch_size);
    case VARINT(10):
        return number64(c, &m->has_max_result_size, &m->max_result_size);
    case VARINT(11):
        return number32(c, &m->has_store_limit, &m->store_limit);
    case VARINT(12):
        return number32(c, &m->has_store_offset, &m->store_offset);
    case VARINT(13):
        return boolean(c, &m->has_load_column_families_on_demand,
                       &m->load_column_families_on_demand);
    case VARINT(14):
        return boolean(c, &m->has_small, &m->small);
    case VARINT(15):
        return boolean(c, &m->has_reversed, &m->reversed);
    default:
        return false;
    }
}

RQ_INLINE bool later_member(uint8_t tag, rq_cursor *c, scan_parts *parts)
{
    Pb__Scan *m = parts->scan;
    if (c->ptr == c->end || *c->ptr++ != 1) return false;
    switch (tag) {
    case VARINT(16):
        return choice(c, &m->has_consistency, (uint32_t *)&m->consistency);
    case VARINT(17):
        return number32(c, &m->has_caching, &m->caching);
    case VARINT(18):
        return boolean(c, &m->has_allow_partial_results, &m->allow_partial_results);
    case BYTES(19):
        return note(&parts->family_ranges, c);
    case VARINT(20):
        return number64(c, &m->has_mvcc_read_point, &m->mvcc_read_point);
    case VARINT(21):
        return boolean(c, &m->has_include_start_row, &m->include_start_row);
    case VARINT(22):
        return boolean(c, &m->has_include_stop_row, &m->include_stop_row);
    case VARINT(23):
        return choice(c, &m->has_readtype, (uint32_t *)&m->readtype);
    case VARINT(24):
        return boolean(c, &m->has_need_cursor_result, &m->need_cursor_result);
    case VARINT(25):
        return boolean(c, &m->has_query_metrics_enabled, &m->query_metrics_enabled);
    default:
        return false;
    }
}

RQ_INLINE bool scan_member(unpacker *u, uint8_t tag, rq_cursor *c, void *parts)
{
    return tag < 128 ? frequent_member(u, tag, c, parts) : later_member(tag, c, parts);
}

static bool scan(unpacker *u, rq_slice bytes, void *slot)
{
    Pb__Scan *m = take(u, sizeof *m);
    if (m == NULL) return false;
    *(Pb__Scan **)slot = m;
    *m = (Pb__Scan)PB__SCAN__INIT;
    scan_parts parts = {.scan = m};
    if (!each(u, bytes, scan_member, &parts)) return false;
    m->n_column = parts.columns.count;
    m->n_attribute = parts.attributes.count;
    m->n_cf_time_range = parts.family_ranges.count;
    return list(u, bytes, 1, column, &parts.columns, &m->column) &&
           list(u, bytes, 2, attribute, &parts.attributes, &m->attribute) &&
           list(u, bytes, 19, family_range, &parts.family_ranges, &m->cf_time_range);
}

RQ_INLINE bool scan_request_member(unpacker *u, uint8_t tag, rq_cursor *c, void *message)
{
    Pb__ScanRequest *m = message;
    switch (tag) {
    case BYTES(1):
        return inner(u, c, region, &m->region);
    case BYTES(2):
        return inner(u, c, scan, &m->scan);
    case VARINT(3):
        return number64(c, &m->has_scanner_id, &m->scanner_id);
    case VARINT(4):
        return number32(c, &m->has_number_of_rows, &m->number_of_rows);
    case VARINT(5):
        return boolean(c, &m->has_close_scanner, &m->close_scanner);
    case VARINT(6):
        return number64(c, &m->has_next_call_seq, &m->next_call_seq);
    case VARINT(7):
        return boolean(c, &m->has_client_handles_partials, &m->client_handles_partials);
    case VARINT(8):
        return boolean(c, &m->has_client_handles_heartbeats, &m->client_handles_heartbeats);
    case VARINT(9):
        return boolean(c, &m->has_track_scan_metrics, &m->track_scan_metrics);
    case VARINT(10):
        return boolean(c, &m->has_renew, &m->renew);
    case VARINT(11):
        return number32(c, &m->has_limit_of_rows, &m->limit_of_rows);
    default:
        return false;
    }
}

ProtobufCMessage *rq__unpack_scan_request(unpacker *u, rq_slice bytes)
{
    Pb__ScanRequest *m = take(u, sizeof *m);
    if (m == NULL) return NULL;
    *m = (Pb__ScanRequest)PB__SCAN_REQUEST__INIT;
    return each(u, bytes, scan_request_member, m) ? &m->base : NULL;
}
