/* SPDX-License-Identifier: Apache-2.0 */
/* Multi's answer, part by part. Results of a region are in order of execution; `index` identifies
 * the action. Cells in the answer's cell block have the same order, so the result of a part is
 * encoded before the next part runs. */
#include "service/client_multi_priv.h"

#include "rpc/long_reply.h"
#include "service/encode.h"
#include "service/multi_answer.h"

/* A slot for the outcome of one action; the list has room for all actions. NULL: out of memory. */
static Pb__ResultOrException *add_outcome(rq__multi *m, Pb__RegionActionResult *group,
                                          uint32_t index)
{
    Pb__ResultOrException *r = rq_arena_alloc(m->batch.read.op.arena, sizeof *r);
    if (r == NULL) return NULL;
    *r = (Pb__ResultOrException)PB__RESULT_OR_EXCEPTION__INIT;
    r->has_index = 1;
    r->index = index;
    group->resultorexception[group->n_resultorexception++] = r;
    return r;
}

static Pb__Result *new_result(rq__multi *m)
{
    Pb__Result *r = rq_arena_alloc(m->batch.read.op.arena, sizeof *r);
    if (r != NULL) *r = (Pb__Result)PB__RESULT__INIT;
    return r;
}

static rq_err set_exception(rq__multi *m, Pb__NameBytesPair **ret, rq_err rc, const rq_error *why)
{
    m->rare_count++;
    *ret = rq__exception_pair(m->batch.read.op.arena, rc, why);
    return *ret == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

rq_err rq__multi_new_group(rq__multi *m, size_t part_count)
{
    rq_arena *arena = m->batch.read.op.arena;
    Pb__RegionActionResult *group = rq_arena_alloc(arena, sizeof *group);
    if (group == NULL) return RQ_E_NO_MEMORY;
    pb__region_action_result__init(group);
    group->resultorexception =
        rq_arena_alloc(arena, (part_count + 1) * sizeof(Pb__ResultOrException *));
    if (group->resultorexception == NULL) return RQ_E_NO_MEMORY;
    m->batch.group = group;
    m->response.regionactionresult[m->batch.group_at] = group;
    m->response.n_regionactionresult = m->batch.group_at + 1;
    return RQ_OK;
}

rq_err rq__multi_group_failed(rq_op_batch *b, rq_err rc, const rq_error *why)
{
    Pb__RegionActionResult *group = b->group;
    return set_exception(rq__multi_of(b), &group->exception, rc, why);
}

rq_err rq__multi_failed(rq_op_batch *b, const rq_batch_part *p, rq_err rc, const rq_error *why)
{
    rq__multi *m = rq__multi_of(b);
    rq_call *call = rq__multi_call(m);
    /* Clients before 1.2 do not know MultiActionResultTooLarge, but retry RegionTooBusyException
     * after a pause. */
    if (rc == RQ_E_RESULT_TOO_LARGE && !call->client->retry_immediately) rc = RQ_E_REGION_TOO_BUSY;
    Pb__ResultOrException *r = add_outcome(m, b->group, p->index);
    if (r == NULL) return RQ_E_NO_MEMORY;
    rq_call_alarm(call, rc, why);
    return set_exception(m, &r->exception, rc, why);
}

rq_err rq__multi_add_service_result(rq__multi *m, uint32_t index, const char *response_class,
                                    rq_slice response)
{
    rq_arena *arena = m->batch.read.op.arena;
    Pb__ResultOrException *r = add_outcome(m, m->batch.group, index);
    Pb__CoprocessorServiceResult *result = rq_arena_alloc(arena, sizeof *result);
    Pb__NameBytesPair *value = rq_arena_alloc(arena, sizeof *value);
    if (r == NULL || result == NULL || value == NULL) return RQ_E_NO_MEMORY;
    pb__coprocessor_service_result__init(result);
    pb__name_bytes_pair__init(value);
    value->name = (char *)response_class;
    value->has_value = 1;
    value->value = rq__pb_binary(response);
    result->value = value;
    r->service_result = result;
    m->rare_count++;
    return RQ_OK;
}

/* A long result, kept until a pool packs the answer (pack_long). In the arena. Of a get, it goes into the message; of an append or
 * increment, into the cell block. */
struct rq__multi_long {
    struct rq__multi_long *next; /* the one before it */
    Pb__Result *result;
    rq_cellblock cells;
    size_t at; /* its place in the cell block, which lacks those before it, too */
};

static void release_long(void *thing)
{
    struct rq__multi_long *l = thing;
    rq_cellblock_clear(&l->cells);
}

/* Moves a buffer, which has this result's cells only, to the batch's list of long results. */
static rq_err keep_long(rq__multi *m, rq_cellblock *cells, Pb__Result *result)
{
    rq_arena *arena = m->batch.read.op.arena;
    struct rq__multi_long *l = rq_arena_calloc(arena, 1, sizeof *l);
    if (l == NULL || rq_arena_link(arena, release_long, l) != RQ_OK) return RQ_E_NO_MEMORY;
    RQ_TRY(rq_arena_account(arena, cells->bytes.cap));
    l->result = result;
    l->cells = *cells;
    l->at = rq__multi_call(m)->cells.bytes.len;
    *cells = (rq_cellblock){.with_tags = l->cells.with_tags};
    l->next = m->last_long;
    m->last_long = l;
    return RQ_OK;
}

/* Of an append or increment; counted in the cell block from now on. */
static rq_err keep_written(rq__multi *m, rq_cellblock *cells, Pb__Result *result)
{
    rq_cellblock *out = &rq__multi_call(m)->cells;
    uint32_t count = cells->count;
    if (count > UINT32_MAX - out->count) return RQ_E_INVALID;
    RQ_TRY(keep_long(m, cells, result));
    out->count += count;
    result->has_associated_cell_count = 1;
    result->associated_cell_count = (int32_t)count;
    return RQ_OK;
}

/* Puts the long results into the cell block, from its end on. */
static rq_err join_long(const rq__multi *m, rq_arena *arena, rq_buf *out)
{
    size_t total = out->len, left = out->len;
    rq_buf joined = {0};
    for (struct rq__multi_long *l = m->last_long; l != NULL; l = l->next)
        total += l->cells.bytes.len;
    RQ_TRY(rq_arena_account(arena, total));
    RQ_TRY(rq_buf_reserve(&joined, total));
    uint8_t *to = joined.ptr + total;
    for (struct rq__multi_long *l = m->last_long; l != NULL; l = l->next) {
        to -= left - l->at;
        memcpy(to, out->ptr + l->at, left - l->at);
        left = l->at;
        to -= l->cells.bytes.len;
        memcpy(to, l->cells.bytes.ptr, l->cells.bytes.len);
    }
    memcpy(joined.ptr, out->ptr, left);
    joined.len = total;
    rq_buf_clear(out);
    *out = joined;
    return RQ_OK;
}

static rq_err encode_long(const rq__multi *m, rq_call *call)
{
    if (m->last_long == NULL) return RQ_OK;
    if (call->client->has_codec) return join_long(m, &call->arena, &call->cells.bytes);
    for (struct rq__multi_long *l = m->last_long; l != NULL; l = l->next)
        RQ_TRY(rq__encode_cells(rq_buf_slice(&l->cells.bytes), l->cells.count, &call->arena,
                                l->result));
    return RQ_OK;
}

/* Without a codec, the cells of a get go into its message. */
static rq_err encode_get(rq_op_batch *b, uint32_t cells, Pb__Result *result)
{
    if (RQ_UNLIKELY(b->get_mark.len == 0 && b->out->bytes.len > RQ__PACKED_AT_ONCE))
        return keep_long(rq__multi_of(b), b->out, result);
    rq_slice bytes =
        rq_slice_of(b->out->bytes.ptr + b->get_mark.len, b->out->bytes.len - b->get_mark.len);
    /* A copy: the message must not point into a buffer that grows with the next get. */
    rq_slice copy = rq_arena_copy(b->read.op.arena, bytes);
    if (copy.ptr == NULL) return RQ_E_NO_MEMORY;
    rq_cellblock_truncate(b->out, b->get_mark);
    rq__multi_of(b)->rare_count += cells;
    return rq__encode_cells(copy, cells, b->read.op.arena, result);
}

rq_err rq__multi_got(rq_op_batch *b, const rq_batch_part *p, uint32_t cells)
{
    rq__multi *m = rq__multi_of(b);
    Pb__ResultOrException *r = add_outcome(m, b->group, p->index);
    if (r == NULL) return RQ_E_NO_MEMORY;
    r->result = new_result(m);
    if (r->result == NULL) return RQ_E_NO_MEMORY;
    r->result->has_stale = 1;
    r->result->stale = m->stale;
    if (b->scan.check_existence_only) {
        r->result->has_exists = 1;
        r->result->exists = cells > 0;
        rq_cellblock_truncate(b->out, b->get_mark);
        return RQ_OK;
    }
    if (b->out == &m->get_cells) return encode_get(b, cells, r->result);
    r->result->has_associated_cell_count = 1;
    r->result->associated_cell_count = (int32_t)cells;
    return RQ_OK;
}

static bool returns_cells(const rq_row_op *op)
{
    for (size_t i = 0; i < op->mutation_count; i++)
        if (op->mutations[i].type == RQ_MUTATE_APPEND ||
            op->mutations[i].type == RQ_MUTATE_INCREMENT)
            return true;
    return false;
}

/* A put or delete answers an empty result. */
rq_err rq__multi_written(rq_op_batch *b, void *group, uint32_t index, rq_row_op *op, rq_err rc,
                         const rq_error *why)
{
    rq__multi *m = rq__multi_of(b);
    Pb__ResultOrException *r = add_outcome(m, group, index);
    if (r == NULL) return RQ_E_NO_MEMORY;
    if (rc != RQ_OK) return set_exception(m, &r->exception, rc, why);
    if (!returns_cells(op)) {
        r->result = &m->nothing;
        return RQ_OK;
    }
    r->result = new_result(m);
    if (r->result == NULL) return RQ_E_NO_MEMORY;
    r->result->has_stale = 1;
    rq_call *call = rq__multi_call(m);
    bool is_behind_others = call->client->has_codec && call->cells.bytes.len > 0;
    if (RQ_UNLIKELY(is_behind_others && op->result.bytes.len > RQ__PACKED_AT_ONCE))
        return keep_written(m, &op->result, r->result);
    return rq__encode_result(call, &op->result, r->result);
}

/* All actions of an atomic region action are one op. HBase puts the merged result into the first
 * slot, in the message (never in the cell block), and empty results into the others. */
rq_err rq__multi_atomic_written(rq_op_batch *b, void *group, const rq_row_op *op)
{
    rq__multi *m = rq__multi_of(b);
    Pb__RegionActionResult *answer = group;
    if (op->rc != RQ_OK) return set_exception(m, &answer->exception, op->rc, op->why);
    answer->has_processed = 1;
    answer->processed = op->processed;
    m->response.has_processed = 1; /* read by clients before 2.4 */
    m->response.processed = op->processed;
    bool cells = returns_cells(op) && op->processed;
    for (size_t i = 0; i < op->mutation_count; i++) {
        Pb__ResultOrException *r = add_outcome(m, answer, (uint32_t)i);
        if (r == NULL) return RQ_E_NO_MEMORY;
        if (op->condition_count > 0 && !(i == 0 && cells)) continue;
        r->result = &m->nothing;
        if (i > 0 || !cells) continue;
        r->result = new_result(m);
        if (r->result == NULL) return RQ_E_NO_MEMORY;
        m->rare_count += op->result.count;
        RQ_TRY(rq__encode_cells(rq_buf_slice(&op->result.bytes), op->result.count, b->read.op.arena,
                                r->result));
    }
    return RQ_OK;
}

/* A larger answer is packed on a pool, not on the loop. In units of effort; this many take about 0.1 ms. The outcome of an
 * action costs one unit; an exception, a service's result or a cell that stands in the message costs RARE_EFFORT more, and
 * such a cell one unit for each EFFORT_BYTES. */
#define PACKED_AT_ONCE 8192
#define RARE_EFFORT 16
#define EFFORT_BYTES 64

static rq_err pack_long(rq_call *call, rq_buf *ret)
{
    const rq__multi *m = call->user;
    bool is_generic = !call->client->has_codec;
    RQ_TRY(encode_long(m, call));
    size_t room = is_generic ? protobuf_c_message_get_packed_size(&m->response.base)
                             : rq__multi_room(&m->response);
    RQ_TRY(rq_arena_account(&call->arena, room));
    RQ_TRY(rq_buf_reserve(ret, room));
    ret->len = is_generic ? protobuf_c_message_pack(&m->response.base, ret->ptr)
                          : (size_t)(rq__put_multi(ret->ptr, &m->response) - ret->ptr);
    RQ_ASSERT(ret->len <= room);
    return RQ_OK;
}

static uint64_t effort(const rq__multi *m, const rq_call *call)
{
    uint64_t copied = call->client->has_codec ? 0 : m->batch.result_bytes;
    return m->action_count + m->rare_count * RARE_EFFORT + copied / EFFORT_BYTES;
}

void rq__multi_reply(rq__multi *m)
{
    rq_call *call = rq__multi_call(m);
    rq_slice packed;
    if (RQ_UNLIKELY(effort(m, call) > PACKED_AT_ONCE || m->last_long != NULL)) {
        call->user = m;
        rq_call_reply_long(call, pack_long);
        return;
    }
    /* Without a codec the cells are in the message, which may be large: avoid a second copy of
     * them. */
    if (!call->client->has_codec) {
        rq_call_reply(call, &m->response.base);
        return;
    }
    rq_err rc = rq__pack_multi(&m->response, &call->arena, &packed);
    if (rc == RQ_OK)
        rq_call_reply_packed(call, packed);
    else
        rq_call_fail(call, rc, NULL);
}
