/* SPDX-License-Identifier: Apache-2.0 */
/* Ops of calls: the region that a request names, and the call as the op's caller (call_op.h). */
#include "service/call_op.h"
#include "service/client_priv.h"

#include "proto/rpc.pb-c.h"

#include <string.h>

rq_err rq__find_region_to_read(const rq_client_service *s, const Pb__RegionSpecifier *spec,
                               rq_region **ret, bool *ret_stale, rq_error *why)
{
    rq_slice name = rq__pb_slice(spec->value);
    const rq_catalog_region *r;
    if (spec->type == PB__REGION_SPECIFIER__REGION_SPECIFIER_TYPE__ENCODED_REGION_NAME)
        RQ_TRY(rq_host_find_encoded(s->host, name, &r, why));
    else
        RQ_TRY(rq_host_find(s->host, name, &r, why));
    *ret = r->region;
    *ret_stale = r->info->replica_id != 0;
    return RQ_OK;
}

rq_err rq__fail_read_only(rq_error *why)
{
    return rq_fail(why, RQ_E_DO_NOT_RETRY, "region is read only");
}

rq_err rq__find_region(const rq_client_service *s, const Pb__RegionSpecifier *spec, rq_region **ret,
                       rq_error *why)
{
    bool stale;
    RQ_TRY(rq__find_region_to_read(s, spec, ret, &stale, why));
    return stale ? rq__fail_read_only(why) : RQ_OK;
}

/* --- callbacks -------------------------------------------------------------------------------- */

static rq_err may_grow(rq_op *op, size_t held, size_t wanted, rq_task *task)
{
    return rq_call_may_grow(rq__call_of_op(op), held, wanted, task);
}

static bool is_scarce(const rq_op *op)
{
    return rq_call_answers_are_scarce(rq__call_of_op(op));
}

static void limit_memory(rq_op *op, bool on)
{
    rq_call_decoding(rq__call_of_op(op), on);
}

static bool has_gone(const rq_op *op)
{
    return rq_call_disconnected(rq__call_of_op(op));
}

static const _Atomic bool *gone(const rq_op *op)
{
    return rq_call_gone(rq__call_of_op(op));
}

/* Work of an op in its connection's turn. */
typedef struct op_work {
    rq_call_work own;
    rq_task *work, *done;
} op_work;

static bool run_op_work(rq_call_work *w)
{
    rq_task *work = RQ_CONTAINER_OF(w, op_work, own)->work;
    work->run(work);
    return true;
}

static void end_op_work(rq_call_work *w)
{
    rq_task *done = RQ_CONTAINER_OF(w, op_work, own)->done;
    done->run(done);
}

static rq_err work_apart(rq_op *op, rq_task *work, rq_task *done)
{
    op_work *w = rq_arena_alloc(op->arena, sizeof *w);
    if (w == NULL) return RQ_E_NO_MEMORY;
    w->work = work;
    w->done = done;
    rq_call_work_start(&w->own, op->seat->executor, rq__call_of_op(op), run_op_work, end_op_work);
    return RQ_OK;
}

static void defer(rq_op *op, rq_task *task)
{
    rq_loop_defer(rq__call_of_op(op)->loop, task);
}

static void waited_for_block(rq_op *op, uint64_t ns)
{
    rq__call_of_op(op)->place_ns[RQ_CALL_IN_FILES] += ns;
}

static rq_slice attribute(const rq_op *op, const char *name)
{
    const Pb__RequestHeader *head = rq_call_header(rq__call_of_op(op));
    for (size_t i = 0; head != NULL && i < head->n_attribute; i++)
        if (strcmp(head->attribute[i]->name, name) == 0)
            return rq_slice_of(head->attribute[i]->value.data, head->attribute[i]->value.len);
    return (rq_slice){0};
}

static const rq_op_caller of_call = {.may_grow = may_grow,
                                     .is_scarce = is_scarce,
                                     .limit_memory = limit_memory,
                                     .has_gone = has_gone,
                                     .gone = gone,
                                     .work_apart = work_apart,
                                     .defer = defer,
                                     .attribute = attribute,
                                     .waited_for_block = waited_for_block};

void rq__op_of_call(rq_op *op, rq_op_kind kind, rq_ops_seat *seat, rq_call *call,
                    void (*done)(rq_op *op))
{
    rq_op_init(op, kind, seat, &call->arena, done);
    op->caller = &of_call;
    op->user = call;
    op->principal = rq_slice_of(call->client->user, call->client->user_len);
    op->started_ns = call->started_ns;
    op->deadline_ns = call->deadline_ns;
    op->priority = call->priority;
    op->trace_id = call->trace_id;
    op->cost.bytes_in = call->request_bytes;
}

bool rq__op_is_of_call(const rq_op *op)
{
    return op->caller == &of_call;
}

void rq__fail_call_of_op(const rq_op *op)
{
    rq_call_fail_why(rq__call_of_op(op), op->rc, &op->why);
}
