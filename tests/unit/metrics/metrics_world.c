/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of a simulated catalog; see metrics_world.h. */
#include "metrics_world.h"

#include "ops/mutate.h"

#include <stdio.h>

void metrics_world_init(metrics_world *w)
{
    w->o = ops_world_new(NULL);
    const rq_metrics_sources from = {.env = w->o->w.env,
                                     .engine = w->o->w.engine,
                                     .catalog = w->o->w.catalog,
                                     .ops = w->o->ops,
                                     .memory_budget = (uint64_t)64 << 20,
                                     .zk_quorum = "localhost:2181",
                                     .lane = w->o->lane};
    assert_int_equal(rq_metrics_new(&from, &w->m), RQ_OK);
}

void metrics_world_clear(metrics_world *w)
{
    rq_metrics_free(w->m);
    ops_world_free(w->o);
}

void metrics_world_get(metrics_world *w, unsigned count)
{
    rq_cellblock out = {0};
    for (unsigned i = 0; i < count; i++) {
        rq_op_get g;
        char row[3] = {'r', (char)('1' + i % 9), '\0'};
        rq_cellblock_reset(&out);
        ops_get(w->o, &g, w->o->own, row, &out);
        assert_int_equal(g.read.op.rc, RQ_OK);
    }
    rq_cellblock_clear(&out);
}

void metrics_world_put(metrics_world *w, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        char row[3] = {'r', (char)('1' + i % 9), '\0'};
        rq_cell cell = {.row = (const uint8_t *)row,
                        .row_len = 2,
                        .family = (const uint8_t *)"f",
                        .family_len = 1,
                        .qualifier = (const uint8_t *)"q",
                        .qualifier_len = 1,
                        .timestamp = RQ_TIMESTAMP_LATEST,
                        .type = RQ_TYPE_PUT,
                        .value = (const uint8_t *)row,
                        .value_len = 2};
        rq_mutation put = {.type = RQ_MUTATE_PUT,
                           .row = rq_slice_cstr(row),
                           .cells = &cell,
                           .cell_count = 1,
                           .time_range = RQ_TIME_RANGE_ALL};
        rq_op_mutate m = {0};
        ops_init(w->o, &m.op, RQ_OP_PUT, w->o->own);
        m.op.region = ops_region(w->o, row);
        m.row.mutations = &put;
        m.row.mutation_count = 1;
        rq_op_mutate_start(&m);
        assert_int_equal(m.op.rc, RQ_OK);
        rq_row_op_clear(&m.row);
    }
}

static char *text_of(rq_buf *out)
{
    assert_int_equal(rq_buf_append_u8(out, '\0'), RQ_OK);
    char *text = strdup((const char *)out->ptr);
    assert_non_null(text);
    rq_buf_clear(out);
    return text;
}

/* Leaves the test thread's epoch section, because the calls do not allow one. */
static void leave(metrics_world *w)
{
    rq_epoch_unpin(w->o->w.env->epoch, &w->o->section);
}

static void enter(metrics_world *w)
{
    rq_epoch_pin(w->o->w.env->epoch, &w->o->section);
}

char *metrics_world_prometheus(metrics_world *w, bool by_region)
{
    rq_buf out = {0};
    leave(w);
    assert_int_equal(rq_metrics_prometheus(w->m, by_region, &out), RQ_OK);
    enter(w);
    return text_of(&out);
}

char *metrics_world_jmx(metrics_world *w, const rq_metrics_query *query, rq_err *ret_rc)
{
    rq_buf out = {0};
    leave(w);
    *ret_rc = rq_metrics_jmx(w->m, query, &out);
    enter(w);
    return text_of(&out);
}

char *metrics_world_hadoop(metrics_world *w)
{
    rq_buf out = {0};
    leave(w);
    assert_int_equal(rq_metrics_hadoop_prometheus(w->m, true, NULL, &out), RQ_OK);
    enter(w);
    return text_of(&out);
}
