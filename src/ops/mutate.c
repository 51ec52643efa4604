/* SPDX-License-Identifier: Apache-2.0 */
/* Writes; see mutate.h. */
#include "ops/mutate.h"

#include "ops/ops_priv.h"

static void end(rq_op_mutate *m)
{
    rq_op *op = &m->op;
    const rq_row_op *row = &m->row;
    for (size_t i = 0; i < row->mutation_count; i++)
        op->cost.cells += row->mutations[i].cell_count;
    op->cost.rows = row->multi_row ? row->mutation_count : 1;
    op->cost.bytes_out = row->result.bytes.len;
    if (RQ_UNLIKELY(row->rc != RQ_OK) && row->why != NULL) op->why = *row->why;
    rq_op_end(op, row->rc);
}

static void written(rq_write *w)
{
    end(RQ_CONTAINER_OF(w, rq_op_mutate, write));
}

/* Executes the write on the calling thread, outside the epoch's read section: the write may wait
 * for memstore memory that could not be freed while this thread is inside. */
RQ_COLD static void write_on_thread(rq_op_mutate *m)
{
    rq_op *op = &m->op;
    rq_epoch *epoch = op->seat->ops->env.epoch;
    rq_region *region = rq_region_ref(op->region);
    rq_epoch_exit(epoch, op->seat->section);
    rq_err rc = rq_region_write_sync(region, &m->row, 1, &op->why);
    rq_epoch_enter(epoch, op->seat->section);
    m->row.rc = rc;
    end(m);
    rq_region_unref(region);
}

static void run(rq_op *op)
{
    rq_op_mutate *m = RQ_CONTAINER_OF(op, rq_op_mutate, op);
    if (RQ_UNLIKELY(op->seat->lane == NULL)) {
        write_on_thread(m);
        return;
    }
    /* Its state is the region's, and large. */
    m->write.ops = &m->row;
    m->write.op_count = 1;
    m->write.writer = op->seat->writer;
    m->write.gone = rq__op_gone(op);
    m->write.done = written;
    rq_region_write(op->region, &m->write);
}

void rq_op_mutate_start(rq_op_mutate *m)
{
    m->op.kind = rq__op_kind_of_row(&m->row);
    m->row.rc = RQ_OK;
    m->row.why = NULL;
    m->row.processed = false;
    rq_op_begin(&m->op, run);
}
