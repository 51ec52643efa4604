/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of orders as messages; see wire.h. */
#include "cluster/wire_priv.h"

#include "base/bytes.h"
#include "proto/cluster.pb-c.h"
#include "proto/region_server_status.pb-c.h"

#include <string.h>

/* --- errors ----------------------------------------------------------------------------------- */

/* *ret NULL: there is no error. */
static rq_err put_error(const rq_outcome *o, const rq_server_name *server, rq_arena *a,
                        Pb__ForeignExceptionMessage **ret)
{
    *ret = NULL;
    if (o->rc == RQ_OK) return RQ_OK;
    Pb__ForeignExceptionMessage *m = rq_arena_alloc(a, sizeof *m);
    Pb__GenericExceptionMessage *g = rq_arena_alloc(a, sizeof *g);
    uint8_t *number = rq_arena_alloc(a, 4);
    if (m == NULL || g == NULL || number == NULL) return RQ_E_NO_MEMORY;
    pb__foreign_exception_message__init(m);
    pb__generic_exception_message__init(g);
    rq_put_be32(number, (uint32_t)o->rc);
    g->class_name = rq__wire_text(rq_err_java_class(o->rc));
    g->message = rq__wire_text(o->message == NULL ? rq_err_text(o->rc) : o->message);
    g->has_error_info = true;
    g->error_info = rq__wire_binary(rq_slice_of(number, 4));
    m->source = rq__wire_text(server->text);
    m->generic_exception = g;
    *ret = m;
    return RQ_OK;
}

/* A number that is not in errors.def, or of an error that no call reports, becomes IOException. */
static rq_err number_of(const Pb__GenericExceptionMessage *g)
{
    if (g == NULL || !g->has_error_info || g->error_info.len != 4) return RQ_E_IOEXCEPTION;
    uint32_t n = rq_get_be32(g->error_info.data);
    bool good = n > 0 && n < RQ_ERR_COUNT && (rq_err)n != RQ_E_AGAIN && (rq_err)n != RQ_E_END;
    return good ? (rq_err)n : RQ_E_IOEXCEPTION;
}

static void take_error(const Pb__ForeignExceptionMessage *m, rq_outcome *ret)
{
    const Pb__GenericExceptionMessage *g = m == NULL ? NULL : m->generic_exception;
    ret->rc = number_of(g);
    ret->message = g == NULL || g->message == NULL ? rq_err_text(ret->rc) : g->message;
}

/* --- encoding --------------------------------------------------------------------------------- */

static Pb__RegionStateTransition__TransitionCode transition_of(const rq_outcome *o)
{
    if (o->kind == RQ_CALL_CLOSE) return PB__REGION_STATE_TRANSITION__TRANSITION_CODE__CLOSED;
    return o->rc == RQ_OK ? PB__REGION_STATE_TRANSITION__TRANSITION_CODE__OPENED
                          : PB__REGION_STATE_TRANSITION__TRANSITION_CODE__FAILED_OPEN;
}

static rq_err encode_transition(const rq_outcome *o, const rq_server_name *server, rq_arena *a,
                                rq_slice *ret)
{
    Pb__RegionStateTransition t = PB__REGION_STATE_TRANSITION__INIT, *list[] = {&t};
    Pb__ReportRegionStateTransitionRequest m = PB__REPORT_REGION_STATE_TRANSITION_REQUEST__INIT;
    Pb__RegionInfo *infos[1];
    int64_t id = (int64_t)o->id;
    t.transition_code = transition_of(o);
    if (o->info != NULL && o->info->qualifier.len > 0) { /* a close knows the encoded name only */
        infos[0] = rq__wire_put_region(a, o->info);
        if (infos[0] == NULL) return RQ_E_NO_MEMORY;
        t.region_info = infos;
        t.n_region_info = 1;
    }
    t.has_open_seq_num = o->kind == RQ_CALL_OPEN && o->rc == RQ_OK;
    t.open_seq_num = (uint64_t)o->open_seqnum;
    t.proc_id = &id;
    t.n_proc_id = 1;
    t.has_initiating_master_active_time = true;
    t.initiating_master_active_time = o->master_ms;
    RQ_TRY(put_error(o, server, a, &t.error));
    m.server = rq__wire_put_server(a, server);
    m.transition = list;
    m.n_transition = 1;
    return m.server == NULL ? RQ_E_NO_MEMORY : rq__wire_pack(a, &m.base, ret);
}

static rq_err encode_done(const rq_outcome *o, const rq_server_name *server, rq_arena *a,
                          rq_slice *ret)
{
    Pb__RemoteProcedureResult r = PB__REMOTE_PROCEDURE_RESULT__INIT, *list[] = {&r};
    Pb__ReportProcedureDoneRequest m = PB__REPORT_PROCEDURE_DONE_REQUEST__INIT;
    Pb__RegionAnswer answer = PB__REGION_ANSWER__INIT;
    rq_slice data;
    answer.has_splittable = answer.has_mergeable = answer.has_split_row = true;
    answer.splittable = o->splittable;
    answer.mergeable = o->mergeable;
    answer.split_row = rq__wire_binary(o->split_row);
    RQ_TRY(rq__wire_put_files(&o->files, a, &answer));
    RQ_TRY(rq__wire_put_names(o->mob_writes, o->mob_write_count, a, &answer.mob_file));
    answer.n_mob_file = o->mob_write_count;
    RQ_TRY(rq__wire_pack(a, &answer.base, &data));
    r.proc_id = o->id;
    r.status = o->rc == RQ_OK ? PB__REMOTE_PROCEDURE_RESULT__STATUS__SUCCESS
                              : PB__REMOTE_PROCEDURE_RESULT__STATUS__ERROR;
    RQ_TRY(put_error(o, server, a, &r.error));
    r.has_initiating_master_active_time = r.has_proc_result_data = true;
    r.initiating_master_active_time = o->master_ms;
    r.proc_result_data = rq__wire_binary(data);
    m.result = list;
    m.n_result = 1;
    return rq__wire_pack(a, &m.base, ret);
}

rq_err rq__outcome_encode(const rq_outcome *o, const rq_server_name *server, rq_arena *arena,
                          rq_slice *ret)
{
    return o->kind == RQ_CALL_OPEN || o->kind == RQ_CALL_CLOSE
               ? encode_transition(o, server, arena, ret)
               : encode_done(o, server, arena, ret);
}

/* --- decoding --------------------------------------------------------------------------------- */

/* Splits and merges are done by the master here: servers do not report them. */
static rq_err take_transition(const Pb__RegionStateTransition *t, rq_outcome *ret, rq_error *why)
{
    *ret = (rq_outcome){.id = t->n_proc_id == 1 ? (uint64_t)t->proc_id[0] : 0,
                        .master_ms = t->initiating_master_active_time};
    if (t->n_proc_id != 1)
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "a region transition must name one procedure, not %zu", t->n_proc_id);
    switch (t->transition_code) {
    case PB__REGION_STATE_TRANSITION__TRANSITION_CODE__OPENED:
        ret->kind = RQ_CALL_OPEN;
        ret->open_seqnum = (int64_t)t->open_seq_num;
        return RQ_OK;
    case PB__REGION_STATE_TRANSITION__TRANSITION_CODE__FAILED_OPEN:
        ret->kind = RQ_CALL_OPEN;
        take_error(t->error, ret);
        return RQ_OK;
    case PB__REGION_STATE_TRANSITION__TRANSITION_CODE__CLOSED:
        ret->kind = RQ_CALL_CLOSE;
        if (t->error != NULL) take_error(t->error, ret);
        return RQ_OK;
    default:
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "region servers do not report region transition %d",
                       (int)t->transition_code);
    }
}

rq_err rq__transitions_decode(rq_slice bytes, rq_arena *arena, rq_outcome **ret, size_t *ret_count,
                              const rq_server_name **ret_server, rq_error *why)
{
    const void *p;
    RQ_TRY(rq__wire_unpack(&pb__report_region_state_transition_request__descriptor, bytes, arena,
                           &p, why));
    const Pb__ReportRegionStateTransitionRequest *m = p;
    rq_outcome *list = rq_arena_calloc(arena, m->n_transition + 1, sizeof *list);
    if (list == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < m->n_transition; i++)
        RQ_TRY(take_transition(m->transition[i], &list[i], why));
    *ret = list;
    *ret_count = m->n_transition;
    return rq__wire_take_server(m->server, arena, ret_server, why);
}

static rq_err take_result(const Pb__RemoteProcedureResult *r, rq_arena *a, rq_outcome *ret,
                          rq_error *why)
{
    const void *p;
    *ret = (rq_outcome){
        .kind = RQ_CALL_LOOK, .id = r->proc_id, .master_ms = r->initiating_master_active_time};
    if (r->status != PB__REMOTE_PROCEDURE_RESULT__STATUS__SUCCESS) {
        take_error(r->error, ret);
        return RQ_OK;
    }
    if (!r->has_proc_result_data) return RQ_OK;
    RQ_TRY(rq__wire_unpack(&pb__region_answer__descriptor, rq__wire_slice(r->proc_result_data), a,
                           &p, why));
    const Pb__RegionAnswer *m = p;
    ret->splittable = m->splittable;
    ret->mergeable = m->mergeable;
    ret->split_row = rq__wire_slice(m->split_row);
    if (ret->split_row.len > RQ_ROW_LEN_MAX)
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "a split row of %zu bytes is too long",
                       ret->split_row.len);
    ret->mob_write_count = m->n_mob_file;
    RQ_TRY(rq__wire_take_names(m->mob_file, m->n_mob_file, a, &ret->mob_writes, why));
    return rq__wire_take_files(m, a, &ret->files, why);
}

rq_err rq__procedures_done_decode(rq_slice bytes, rq_arena *arena, rq_outcome **ret,
                                  size_t *ret_count, rq_error *why)
{
    const void *p;
    RQ_TRY(rq__wire_unpack(&pb__report_procedure_done_request__descriptor, bytes, arena, &p, why));
    const Pb__ReportProcedureDoneRequest *m = p;
    rq_outcome *list = rq_arena_calloc(arena, m->n_result + 1, sizeof *list);
    if (list == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < m->n_result; i++)
        RQ_TRY(take_result(m->result[i], arena, &list[i], why));
    *ret = list;
    *ret_count = m->n_result;
    return RQ_OK;
}
