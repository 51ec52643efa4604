/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gets of a Multi, one at a time, what they look at being asked for ahead. Most are answered at
 * once; one that needs a block which is not in memory has a scanner, and the walk comes back to it
 * when the block is there.
 *
 * Cells go behind those of the results before it: into the answer's cell block, or, for a client
 * without a codec, by way of `get_cells` into the message.
 */
#include "service/client_multi_priv.h"

#include "service/encode.h"

static void drop_scanner(rq__multi *m)
{
    rq_region_scanner_close(m->scanner);
    m->scanner = NULL;
    m->get_running = false;
}

static rq_cellblock *cells_of_get(rq__multi *m)
{
    return m->job.call->client->has_codec ? &m->job.call->cells : &m->get_cells;
}

/* What the next gets will look at is asked for. (Puts have that when they are linked.) */
static void expect_gets(rq__multi *m)
{
    rq_region_expected list[RQ_REGION_EXPECT_MAX];
    size_t n = 0;
    for (m->ahead = m->action_at; m->ahead < m->action_count && n < RQ_REGION_EXPECT_MAX;
         m->ahead++) {
        const rq__action *a = &m->actions[m->ahead];
        if (a->kind != RQ__ACTION_GET) continue;
        list[n++] = (rq_region_expected){m->region, rq__pb_slice(a->get->row), false};
    }
    if (n > 1) rq_region_expect(list, n);
}

rq_err rq__multi_begin_get(rq__multi *m, const rq__action *action, rq_error *why)
{
    if (m->action_at >= m->ahead) expect_gets(m);
    if (action->get->has_closest_row_before && action->get->closest_row_before)
        return rq_fail(why, RQ_E_UNKNOWN_PROTOCOL,
                       "Is this a pre-hbase-1.0.0 or asynchbase client? Client is invoking "
                       "getClosestRowBefore removed in hbase-2.0.0 replaced by reverse Scan.");
    rq_arena *arena = &m->job.call->arena;
    rq_cellblock *out = cells_of_get(m);
    bool answered;
    rq_call_decoding(m->job.call, true);
    rq_err rc = rq__decode_get(action->get, m->region, arena, &m->scan, why);
    rq_call_decoding(m->job.call, false);
    if (rc != RQ_OK) return rc;
    m->get_mark = rq_cellblock_get_mark(out);
    rc = rq_region_get(m->region, &m->scan, arena, &m->job.ctx, out, &answered, why);
    if (answered || (rc != RQ_OK && rc != RQ_E_AGAIN)) return rc;
    RQ_TRY(rq_region_scanner_open(m->region, &m->scan, 0, arena, &m->scanner, why));
    m->get_running = true;
    return rc;
}

rq_err rq__multi_answer_get(rq__multi *m, const rq__action *action)
{
    rq_cellblock *out = cells_of_get(m);
    Pb__ResultOrException *r = rq__multi_add_outcome(m, rq__multi_region_answer(m), action->index);
    if (r == NULL) return RQ_E_NO_MEMORY;
    r->result = rq__multi_new_result(m);
    if (r->result == NULL) return RQ_E_NO_MEMORY;
    r->result->has_stale = 1;
    r->result->stale = m->stale;
    uint32_t count = out->count - m->get_mark.count;
    rq_slice bytes =
        rq_slice_of(out->bytes.ptr + m->get_mark.len, out->bytes.len - m->get_mark.len);
    m->result_bytes += bytes.len;
    m->meter.steps += count + bytes.len / 64;
    if (m->scan.check_existence_only) {
        r->result->has_exists = 1;
        r->result->exists = count > 0;
        rq_cellblock_truncate(out, m->get_mark);
        return RQ_OK;
    }
    if (m->job.call->client->has_codec) {
        r->result->has_associated_cell_count = 1;
        r->result->associated_cell_count = (int32_t)count;
        return RQ_OK;
    }
    /* The message's byte fields must not point into a buffer that grows with the next get. */
    rq_slice copy = rq_arena_copy(&m->job.call->arena, bytes);
    if (copy.ptr == NULL) return RQ_E_NO_MEMORY;
    rq_cellblock_truncate(out, m->get_mark);
    return rq__encode_cells(copy, count, &m->job.call->arena, r->result);
}

rq_err rq__multi_go_on_get(rq__multi *m, const rq__action *action)
{
    rq_cellblock *out = cells_of_get(m);
    rq_executor *executor = m->job.service->env.executor;
    rq_scan_limits limits = {.yield_ns = executor->now_ns(executor) + RQ_METER_STRETCH_NS};
    rq_scan_state state;
    rq_error why;
    rq_error_clear(&why);
    rq_err rc = m->job.fetch_rc;
    if (rc == RQ_OK)
        rc = rq_region_scanner_next(m->scanner, &limits, &m->job.ctx, out, &state, &why);
    else
        why = m->job.why;
    if (rc == RQ_E_AGAIN) {
        rq_region_scanner_suspend(m->scanner);
        return rc;
    }
    m->job.fetch_rc = RQ_OK;
    rq_error_clear(&m->job.why);
    drop_scanner(m);
    if (rc == RQ_OK) return rq__multi_answer_get(m, action);
    rq_cellblock_truncate(out, m->get_mark);
    return rq__multi_add_exception(m, action->index, rc, &why);
}
