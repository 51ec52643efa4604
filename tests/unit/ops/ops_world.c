/* SPDX-License-Identifier: Apache-2.0 */
/* Ops on a simulated catalog; see ops_world.h. */
#include "ops_world.h"

#include "region/table_times.h"

static void fill(world *w)
{
    char row[4] = "a0";
    OK(world_create(w, "t", "f:VERSIONS=3 g", "m"));
    for (int i = 0; i < 20; i++) {
        row[0] = i < 10 ? 'a' : 'r';
        row[1] = (char)('0' + i % 10);
        OK(world_put_cell(w, "t", row, "f", "q", rq_slice_cstr(row)));
        OK(world_put_cell(w, "t", row, "g", "q", RQ_SLICE_LIT("g")));
        if (i == 9) OK(world_table(w, RQ_DDL_FLUSH_TABLE, "t"));
    }
}

ops_world *ops_world_new(const rq_gate_policy *policy)
{
    ops_world *o = calloc(1, sizeof *o);
    rq_sim_options sim = {.again_percent = 50, .begin_percent = 50};
    assert_non_null(o);
    world *w = &o->w;
    world_init(w, 1, &sim);
    assert_int_equal(rq_config_set(w->config, "rorqual.read.uring", "true", NULL), RQ_OK);
    OK(world_open(w));
    fill(w);
    assert_int_equal(rq_sim_lane_new(w->sim, &o->lane), RQ_OK);
    rq_ops_options options = {.env = w->env,
                              .engine = w->engine,
                              .catalog = w->catalog,
                              .config = w->config,
                              .policy = policy,
                              .lane = o->lane};
    OK(rq_ops_new(&options, &o->ops, &w->why));
    rq_epoch_pin(w->env->epoch, &o->section);
    assert_int_equal(rq_ops_seat_new(o->ops, o->lane, NULL, &o->loop), RQ_OK);
    assert_int_equal(rq_ops_seat_new(o->ops, NULL, &o->section, &o->own), RQ_OK);
    return o;
}

void ops_world_free(ops_world *o)
{
    rq_arena_clear(&o->arena);
    rq_sim_run(o->w.sim);
    rq_ops_seat_free(o->loop);
    rq_ops_seat_free(o->own);
    rq_epoch_unpin(o->w.env->epoch, &o->section);
    rq_ops_free(o->ops);
    o->w.env->executor->lane_free(o->w.env->executor, o->lane);
    world_clear(&o->w);
    free(o);
}

void ops_done(rq_op *op)
{
    ops_world *o = op->user;
    o->done++;
}

void ops_init(ops_world *o, rq_op *op, rq_op_kind kind, rq_ops_seat *seat)
{
    rq_arena_reset(&o->arena); /* as callers do: its first chunk is used again */
    rq_op_init(op, kind, seat, &o->arena, ops_done);
    op->user = o;
    op->started_ns = o->w.env->executor->now_ns(o->w.env->executor);
}

void ops_wait(ops_world *o, unsigned done)
{
    for (int i = 0; i < 1000 && o->done < done; i++)
        if (!rq_sim_step(o->w.sim)) rq_sim_advance(o->w.sim, 10000000);
    assert_int_equal(o->done, done);
}

rq_region *ops_region(ops_world *o, const char *row)
{
    const rq_catalog_region *r = NULL;
    world *w = &o->w;
    OK(rq_catalog_locate(w->catalog, RQ_SLICE_LIT("t"), rq_slice_cstr(row), &r, &w->why));
    return r->region;
}

void ops_get(ops_world *o, rq_op_get *g, rq_ops_seat *seat, const char *row, rq_cellblock *out)
{
    static const rq_scan_family family = {.family = {(const uint8_t *)"f", 1}};
    rq_cellblock_reset(out);
    g->scan = rq_scan_of_row(rq_slice_cstr(row));
    g->scan.families = &family;
    g->scan.family_count = 1;
    g->out = out;
    ops_init(o, &g->read.op, RQ_OP_GET, seat);
    g->read.op.region = ops_region(o, row);
    rq_op_get_start(g);
}

void ops_flush(ops_world *o)
{
    world *w = &o->w;
    OK(world_table(w, RQ_DDL_FLUSH_TABLE, "t"));
}

void ops_put_long(ops_world *o, const char *row, size_t len)
{
    uint8_t *value = malloc(len);
    assert_non_null(value);
    memset(value, 'v', len);
    world *w = &o->w;
    OK(world_put_cell(w, "t", row, "f", "q", rq_slice_of(value, len)));
    free(value);
}

rq_slice ops_value(const rq_cellblock *cells)
{
    rq_cell cell;
    rq_cursor c = rq_cursor_of(rq_buf_slice(&cells->bytes));
    if (cells->count == 0) return (rq_slice){0};
    assert_int_equal(cells->count, 1);
    assert_int_equal(rq_cellblock_next(&c, &cell, NULL), RQ_OK);
    return rq_slice_of(cell.value, cell.value_len);
}

rq_op_stats ops_stats(ops_world *o, rq_op_kind kind)
{
    rq_op_stats s;
    rq_ops_stats(o->ops, kind, &s);
    return s;
}

uint64_t ops_table_times(ops_world *o, rq_op_kind kind)
{
    rq_arena arena = {0};
    rq_table_times *list;
    size_t tables, bytes;
    uint64_t count = 0;
    assert_int_equal(rq_engine_table_times(o->w.engine, &arena, &list, &tables, &bytes), RQ_OK);
    for (size_t i = 0; i < tables; i++)
        if (rq_slice_eq(list[i].qualifier, RQ_SLICE_LIT("t")) && list[i].of[kind] != NULL)
            count += rq_times_count(list[i].of[kind]);
    rq_arena_clear(&arena);
    return count;
}
