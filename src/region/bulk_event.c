/* SPDX-License-Identifier: Apache-2.0 */
/* The record of a bulk load; contract in bulk_event.h. */
#include "region/bulk_event.h"

#include "base/pb.h"

#include <string.h>

#define PAYLOAD_MAX ((size_t)8 << 20) /* a log's smallest ring has records of this size */
#define PAUSE_NS ((uint64_t)20 * 1000 * 1000)

/* The numbers of proto/wal.proto. */
enum { EVENT_TABLE = 1, EVENT_REGION = 2, EVENT_STORE = 3, EVENT_NUMBER = 4, EVENT_CLUSTER = 5 };
enum { STORE_FAMILY = 1, STORE_HOME = 2, STORE_FILE = 3, STORE_BYTES = 4 };

static rq_err put_table(rq_buf *b, rq_slice table)
{
    size_t at;
    const uint8_t *colon = memchr(table.ptr, ':', table.len);
    size_t len = colon == NULL ? 0 : (size_t)(colon - table.ptr);
    rq_slice ns = colon == NULL ? RQ_SLICE_LIT("default") : rq_slice_of(table.ptr, len);
    rq_slice qualifier = colon == NULL ? table : rq_slice_of(colon + 1, table.len - len - 1);
    RQ_TRY(rq_pb_begin(b, EVENT_TABLE, &at));
    RQ_TRY(rq_pb_put_bytes(b, 1, ns));
    RQ_TRY(rq_pb_put_bytes(b, 2, qualifier));
    return rq_pb_end(b, at);
}

rq_err rq__bulk_event_begin(rq__bulk_event *e, const rq_region *r, const rq_bulk_load *load,
                            uint64_t number)
{
    rq_buf *b = &e->payload;
    e->load = load;
    RQ_TRY(put_table(b, r->info.table));
    RQ_TRY(rq_pb_put_bytes(b, EVENT_REGION, rq_slice_cstr(r->info.encoded)));
    RQ_TRY(rq_pb_put_number(b, EVENT_NUMBER, number));
    for (size_t i = 0; i < load->cluster_id_count; i++)
        RQ_TRY(rq_pb_put_bytes(b, EVENT_CLUSTER, rq_slice_cstr(load->cluster_ids[i])));
    return RQ_OK;
}

rq_err rq__bulk_event_add(rq__bulk_event *e, rq_slice family, const char *file, uint64_t size)
{
    size_t at;
    rq_buf *b = &e->payload;
    RQ_TRY(rq_pb_begin(b, EVENT_STORE, &at));
    RQ_TRY(rq_pb_put_bytes(b, STORE_FAMILY, family));
    RQ_TRY(rq_pb_put_bytes(b, STORE_HOME, family)); /* relative to the region's folder */
    RQ_TRY(rq_pb_put_bytes(b, STORE_FILE, rq_slice_cstr(file)));
    RQ_TRY(rq_pb_put_number(b, STORE_BYTES, size));
    return rq_pb_end(b, at);
}

rq_err rq__bulk_event_check(const rq__bulk_event *e, rq_error *why)
{
    if (e->payload.len <= PAYLOAD_MAX) return RQ_OK;
    return rq_fail(why, RQ_E_REQUEST_TOO_BIG,
                   "a bulk load of %zu files is too large to be replicated in one record",
                   e->load->file_count);
}

void rq__bulk_event_stage(rq_region *r, void *event)
{
    rq__bulk_event *e = event;
    rq_executor *ex = r->env.executor;
    rq_wal_record record = {.kind = RQ_WAL_BULK_LOAD,
                            .sequence_id = r->staged_seqid + 1,
                            .write_time_ms = ex->now_ms(ex),
                            .cluster_ids = e->load->clusters,
                            .scopes = r->log_scopes,
                            .payload = rq_buf_slice(&e->payload)};
    e->rc = rq_wal_stage(r->engine->wal, r->log, &record, NULL, 0, &e->lsn);
    if (e->rc != RQ_OK) return;
    r->staged_lsn = e->lsn;
    e->number = ++r->staged_seqid;
}

rq_err rq__bulk_event_finish(rq__bulk_event *e, rq_region *r, rq_error *why)
{
    rq_executor *ex = r->env.executor;
    while (e->rc == RQ_E_NO_SPACE || e->rc == RQ_E_REGION_TOO_BUSY) {
        if (rq_region_is_closing(r)) break;
        ex->sleep(ex, PAUSE_NS);
        rq__region_with_token(r, rq__bulk_event_stage, e);
    }
    if (e->rc == RQ_OK) return RQ_OK;
    return rq_fail(why, e->rc, "the files were loaded, but the load cannot be replicated: %s",
                   rq_err_text(e->rc));
}
