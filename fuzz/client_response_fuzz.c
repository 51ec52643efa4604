/* SPDX-License-Identifier: Apache-2.0 */
/* A server's response as a client reads it: a frame, then its message as a response of each kind,
 * including cells. */
#include "client/response.h"
#include "client/scan_metrics.h"
#include "client/status.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_cells(rq_result_view *r, rq_cursor *block)
{
    rq_cell c;
    while (rq_result_next(r, block, &c) == RQ_OK)
        ;
}

static void read_multi(const rq_response_view *v)
{
    rq_cursor message = rq_cursor_of(v->message);
    rq_cursor cells = rq_cursor_of(v->cells);
    rq_region_result region;
    rq_action_result action;
    while (rq__multi_response_next(&message, &region) == RQ_OK) {
        rq_cursor actions = rq_cursor_of(region.actions);
        while (rq__action_result_next(&actions, &action) == RQ_OK)
            read_cells(&action.result, &cells);
    }
}

static void read_scan(const rq_response_view *v)
{
    rq_cursor cells = rq_cursor_of(v->cells);
    rq_scan_view scan;
    rq_scan_rows rows;
    rq_result_view row;
    rq_scan_metrics metrics = {0};
    if (rq__scan_response_parse(v->message, &scan) != RQ_OK) return;
    if (rq__scan_metrics_add(&metrics, scan.metrics) != RQ_OK) return;
    rq__scan_rows_begin(&scan, &rows);
    while (rq__scan_rows_next(&rows, &row) == RQ_OK)
        read_cells(&row, &cells);
}

static void read_status(const rq_response_view *v)
{
    rq_cluster_status s = {0};
    if (rq_buf_append(&s.bytes, v->message.ptr, v->message.len) == RQ_OK &&
        rq__cluster_status_parse(&s) == RQ_OK)
        for (size_t i = 0; i < s.server_count; i++)
            if (s.servers[i].first_region + s.servers[i].region_count > s.region_count) abort();
    rq_cluster_status_clear(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rq_response_view v;
    rq_result_view r;
    bool processed;
    if (rq__response_parse(rq_slice_of(data, size), &v) != RQ_OK) return 0;
    rq_cursor cells = rq_cursor_of(v.cells);
    if (rq__mutate_response_parse(v.message, &r, &processed) == RQ_OK) read_cells(&r, &cells);
    read_multi(&v);
    read_scan(&v);
    read_status(&v);
    return 0;
}
