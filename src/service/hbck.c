/* SPDX-License-Identifier: Apache-2.0 */
/* HbckService, the service that HBCK2 and the shell's hbck_chore_run call.
 *
 * BypassProcedure ends procedures. HBase marks them so that no further step runs; here they are
 * aborted: an uncommitted change is rolled back, a committed one tries its remaining steps once
 * more. The start of this server writes the location of every region to hbase:meta, so no region
 * belongs to a server that crashed, and no procedure for a crashed server is needed. HBASE:
 * MasterRpcServices, "HBCK Services". */
#include "service/master_priv.h"
#include "service/messages.h"
#include "service/slow_text.h"

#include "proto/cluster_status.pb-c.h"
#include "proto/master.pb-c.h"

#include <string.h>

#define NO_PROCEDURE UINT64_MAX /* HBASE: Procedure.NO_PROC_ID, -1 */

/* A job whose only parameters are the request's; NULL: the call was answered. */
static void start_blocking(void *ctx, rq_call *call, size_t size, rq_err (*work)(rq__blocking *),
                           void (*answer)(rq__blocking *))
{
    rq__blocking *b = rq_arena_calloc(&call->arena, 1, size); /* begins with the rq__blocking */
    if (b == NULL)
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
    else
        rq__blocking_start(b, ctx, call, work, answer);
}

/* Calls that wait for procedures, each with one of the few threads of RQ_POOL_CALL: a procedure waits for its table's
 * lock as long as somebody else holds it, perhaps a client (LockService). With all threads taken no other call of an
 * administrator would run, not even BypassProcedure. */
#define REPAIRS_MAX 4

static void end_repair(rq_admin_services *s)
{
    atomic_fetch_sub_explicit(&s->repairs, 1, memory_order_relaxed);
}

/* False: the call was answered. end_repair follows when it has waited. */
static bool begin_repair(rq_admin_services *s, rq_call *call)
{
    if (atomic_fetch_add_explicit(&s->repairs, 1, memory_order_relaxed) < REPAIRS_MAX) return true;
    end_repair(s);
    rq_call_fail(call, RQ_E_PLEASE_HOLD,
                 "%d calls of HbckService wait for procedures, which may wait for locks: try again "
                 "when one of them has ended",
                 REPAIRS_MAX);
    return false;
}

typedef struct repair_job {
    rq__blocking blocking;
    rq_err (*work)(rq__blocking *b);
} repair_job;

static rq_err repair_work(rq__blocking *b)
{
    rq_err rc = RQ_CONTAINER_OF(b, repair_job, blocking)->work(b);
    end_repair(b->services);
    return rc;
}

/* `size`: of a struct that begins with a repair_job. */
static void start_repair(void *ctx, rq_call *call, size_t size, rq_err (*work)(rq__blocking *),
                         void (*answer)(rq__blocking *))
{
    if (!begin_repair(ctx, call)) return;
    repair_job *j = rq_arena_calloc(&call->arena, 1, size);
    if (j == NULL) {
        end_repair(ctx);
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    j->work = work;
    rq__blocking_start(&j->blocking, ctx, call, repair_work, answer);
}

/* --- procedures ------------------------------------------------------------------------------- */

typedef struct bypass_job {
    rq__blocking blocking;
    Pb__BypassProcedureResponse response;
} bypass_job;

static rq_err bypass_work(rq__blocking *b)
{
    const Pb__BypassProcedureRequest *r = (const Pb__BypassProcedureRequest *)b->call->param;
    Pb__BypassProcedureResponse *m = &RQ_CONTAINER_OF(b, bypass_job, blocking)->response;
    pb__bypass_procedure_response__init(m);
    m->bypassed = rq_arena_calloc(&b->call->arena, r->n_proc_id + 1, sizeof *m->bypassed);
    if (m->bypassed == NULL) return RQ_E_NO_MEMORY;
    for (; m->n_bypassed < r->n_proc_id; m->n_bypassed++)
        m->bypassed[m->n_bypassed] =
            rq_catalog_procedure_bypass(b->services->catalog, r->proc_id[m->n_bypassed]);
    return RQ_OK;
}

static void bypass_answer(rq__blocking *b)
{
    rq_call_reply(b->call, &RQ_CONTAINER_OF(b, bypass_job, blocking)->response.base);
}

static void bypass_procedure(void *ctx, rq_call *call)
{
    start_blocking(ctx, call, sizeof(bypass_job), bypass_work, bypass_answer);
}

/* --- the check -------------------------------------------------------------------------------- */

typedef struct check_job {
    rq__blocking blocking;
    bool ran;
    rq_catalog_report report;
} check_job;

static rq_err check_work(rq__blocking *b)
{
    check_job *j = RQ_CONTAINER_OF(b, check_job, blocking);
    return rq_catalog_check(b->services->catalog, &j->ran, &j->report, &b->why);
}

static void check_answer(rq__blocking *b)
{
    Pb__RunHbckChoreResponse response = PB__RUN_HBCK_CHORE_RESPONSE__INIT;
    response.ran = RQ_CONTAINER_OF(b, check_job, blocking)->ran;
    rq_call_reply(b->call, &response.base);
}

static void run_hbck_chore(void *ctx, rq_call *call)
{
    start_blocking(ctx, call, sizeof(check_job), check_work, check_answer);
}

/* Fills holes and merges overlaps; names the tables that could not be repaired. */
static rq_err fix_work(rq__blocking *b)
{
    return rq_catalog_fix(b->services->catalog, rq_slice_cstr(b->call->client->user), &b->why);
}

static void fix_answer(rq__blocking *b)
{
    Pb__FixMetaResponse response = PB__FIX_META_RESPONSE__INIT;
    rq_call_reply(b->call, &response.base);
}

static void fix_meta(void *ctx, rq_call *call)
{
    start_repair(ctx, call, sizeof(repair_job), fix_work, fix_answer);
}

/* --- states ----------------------------------------------------------------------------------- */

typedef struct table_state_job {
    rq__blocking blocking;
    rq_table_state before;
} table_state_job;

static rq_err table_state_work(rq__blocking *b)
{
    table_state_job *j = RQ_CONTAINER_OF(b, table_state_job, blocking);
    const Pb__SetTableStateInMetaRequest *r =
        (const Pb__SetTableStateInMetaRequest *)b->call->param;
    rq_slice row;
    RQ_TRY(rq__table_row(&b->call->arena, r->table_name, &row, &b->why));
    return rq_catalog_set_table_state(b->services->catalog, rq__pb_slice(r->table_name->namespace_),
                                      rq__pb_slice(r->table_name->qualifier),
                                      (rq_table_state)r->table_state->state, &j->before, &b->why);
}

static void table_state_answer(rq__blocking *b)
{
    Pb__TableState state = PB__TABLE_STATE__INIT;
    Pb__GetTableStateResponse response = PB__GET_TABLE_STATE_RESPONSE__INIT;
    state.state = (Pb__TableState__State)RQ_CONTAINER_OF(b, table_state_job, blocking)->before;
    response.table_state = &state;
    rq_call_reply(b->call, &response.base);
}

static void set_table_state(void *ctx, rq_call *call)
{
    start_blocking(ctx, call, sizeof(table_state_job), table_state_work, table_state_answer);
}

/* A state's name in hbase:meta, and the state of ours that is closest to it. */
typedef struct region_state {
    const char *name;
    rq_region_state shown;
} region_state;

static const region_state region_states[] = {
    [PB__REGION_STATE__STATE__OFFLINE] = {"OFFLINE", RQ_REGION_OFFLINE},
    [PB__REGION_STATE__STATE__PENDING_OPEN] = {"PENDING_OPEN", RQ_REGION_CLOSED},
    [PB__REGION_STATE__STATE__OPENING] = {"OPENING", RQ_REGION_OPENING},
    [PB__REGION_STATE__STATE__OPEN] = {"OPEN", RQ_REGION_OPEN},
    [PB__REGION_STATE__STATE__PENDING_CLOSE] = {"PENDING_CLOSE", RQ_REGION_CLOSED},
    [PB__REGION_STATE__STATE__CLOSING] = {"CLOSING", RQ_REGION_CLOSING},
    [PB__REGION_STATE__STATE__CLOSED] = {"CLOSED", RQ_REGION_CLOSED},
    [PB__REGION_STATE__STATE__SPLITTING] = {"SPLITTING", RQ_REGION_SPLITTING},
    [PB__REGION_STATE__STATE__SPLIT] = {"SPLIT", RQ_REGION_CLOSED},
    [PB__REGION_STATE__STATE__FAILED_OPEN] = {"FAILED_OPEN", RQ_REGION_FAILED_OPEN},
    [PB__REGION_STATE__STATE__FAILED_CLOSE] = {"FAILED_CLOSE", RQ_REGION_CLOSED},
    [PB__REGION_STATE__STATE__MERGING] = {"MERGING", RQ_REGION_MERGING},
    [PB__REGION_STATE__STATE__MERGED] = {"MERGED", RQ_REGION_CLOSED},
    [PB__REGION_STATE__STATE__SPLITTING_NEW] = {"SPLITTING_NEW", RQ_REGION_CLOSED},
    [PB__REGION_STATE__STATE__MERGING_NEW] = {"MERGING_NEW", RQ_REGION_CLOSED},
    [PB__REGION_STATE__STATE__ABNORMALLY_CLOSED] = {"ABNORMALLY_CLOSED", RQ_REGION_CLOSED},
};

typedef struct region_states_job {
    rq__blocking blocking;
    Pb__SetRegionStateInMetaResponse response;
} region_states_job;

static rq_err add_before(rq_arena *arena, const Pb__RegionSpecifierAndState *of,
                         rq_region_state before, Pb__SetRegionStateInMetaResponse *response)
{
    Pb__RegionSpecifierAndState *m = rq_arena_alloc(arena, sizeof *m);
    if (m == NULL) return RQ_E_NO_MEMORY;
    pb__region_specifier_and_state__init(m);
    m->region_specifier = of->region_specifier;
    m->state = rq__region_state_message(before);
    response->states[response->n_states++] = m;
    return RQ_OK;
}

/* As in HBase, regions that already have the state are not in the answer. */
static rq_err region_states_work(rq__blocking *b)
{
    region_states_job *j = RQ_CONTAINER_OF(b, region_states_job, blocking);
    const Pb__SetRegionStateInMetaRequest *r =
        (const Pb__SetRegionStateInMetaRequest *)b->call->param;
    pb__set_region_state_in_meta_response__init(&j->response);
    j->response.states =
        rq_arena_alloc(&b->call->arena, (r->n_states + 1) * sizeof(Pb__RegionSpecifierAndState *));
    if (j->response.states == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < r->n_states; i++) {
        const Pb__RegionSpecifierAndState *s = r->states[i];
        const region_state *to =
            &region_states[s->state < (int)RQ_ARRAY_LEN(region_states) ? s->state : 0];
        rq_region_state before;
        RQ_TRY(rq_catalog_set_region_state(b->services->catalog,
                                           rq__encoded_of(s->region_specifier), to->name, to->shown,
                                           &before, &b->why));
        if (rq__region_state_message(before) != s->state)
            RQ_TRY(add_before(&b->call->arena, s, before, &j->response));
    }
    return RQ_OK;
}

static void region_states_answer(rq__blocking *b)
{
    rq_call_reply(b->call, &RQ_CONTAINER_OF(b, region_states_job, blocking)->response.base);
}

static void set_region_states(void *ctx, rq_call *call)
{
    start_blocking(ctx, call, sizeof(region_states_job), region_states_work, region_states_answer);
}

/* --- assigns, unassigns ----------------------------------------------------------------------- */

typedef struct transit_job {
    repair_job repair;
    Pb__AssignsResponse response; /* of Unassigns, too: `repeated uint64 pid = 1` */
} transit_job;

/* The kind of procedure for a region in that state; 0: none applies. */
static rq_ddl_kind kind_of(bool assigns, bool override, rq_region_state state)
{
    if (!assigns) return state == RQ_REGION_OPEN || override ? RQ_DDL_UNASSIGN_REGION : 0;
    if (state != RQ_REGION_OPEN) return RQ_DDL_ASSIGN_REGION;
    return override ? RQ_DDL_MOVE_REGION : 0;
}

/* *ret_known false: no such region, which HBase leaves out of the answer. */
static rq_err transit(rq__blocking *b, const Pb__RegionSpecifier *spec, bool assigns, bool override,
                      bool *ret_known, uint64_t *ret_pid)
{
    rq_admin_services *s = b->services;
    rq_epoch_member m = {0};
    rq_slice encoded = rq__encoded_of(spec);
    rq_ddl ddl = {.user = rq_slice_cstr(b->call->client->user)};
    rq_epoch_pin(s->env.epoch, &m);
    const rq_catalog_region *r = rq_catalog_region_find(s->catalog, encoded);
    *ret_known = r != NULL;
    if (r != NULL) {
        ddl.kind = kind_of(assigns, override, r->state);
        ddl.ns = rq_arena_copy(&b->call->arena, r->info->ns);
        ddl.qualifier = rq_arena_copy(&b->call->arena, r->info->qualifier);
    }
    rq_epoch_unpin(s->env.epoch, &m);
    *ret_pid = NO_PROCEDURE;
    if (r == NULL || ddl.kind == 0) return RQ_OK;
    if (ddl.ns.ptr == NULL || ddl.qualifier.ptr == NULL) return RQ_E_NO_MEMORY;
    ddl.of.one_region.region = encoded;
    ddl.of.one_region.override = override && !assigns;
    rq_error refused = {.code = RQ_OK}; /* as in HBase, the answer is "no procedure" */
    if (rq__submit_and_wait(s, &ddl, &refused) == RQ_OK) *ret_pid = ddl.proc_id;
    return RQ_OK;
}

static rq_err transit_all(rq__blocking *b, Pb__RegionSpecifier *const *list, size_t count,
                          bool assigns, bool override)
{
    transit_job *j = RQ_CONTAINER_OF(b, transit_job, repair.blocking);
    pb__assigns_response__init(&j->response);
    j->response.pid = rq_arena_alloc(&b->call->arena, (count + 1) * sizeof *j->response.pid);
    if (j->response.pid == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        bool known;
        uint64_t pid;
        RQ_TRY(transit(b, list[i], assigns, override, &known, &pid));
        if (known) j->response.pid[j->response.n_pid++] = pid;
    }
    return RQ_OK;
}

static rq_err assigns_work(rq__blocking *b)
{
    const Pb__AssignsRequest *r = (const Pb__AssignsRequest *)b->call->param;
    return transit_all(b, r->region, r->n_region, true, r->override);
}

static rq_err unassigns_work(rq__blocking *b)
{
    const Pb__UnassignsRequest *r = (const Pb__UnassignsRequest *)b->call->param;
    return transit_all(b, r->region, r->n_region, false, r->override);
}

static void transit_answer(rq__blocking *b)
{
    rq_call_reply(b->call, &RQ_CONTAINER_OF(b, transit_job, repair.blocking)->response.base);
}

static void assigns(void *ctx, rq_call *call)
{
    start_repair(ctx, call, sizeof(transit_job), assigns_work, transit_answer);
}

static void unassigns(void *ctx, rq_call *call)
{
    start_repair(ctx, call, sizeof(transit_job), unassigns_work, transit_answer);
}

/* --- crashed servers -------------------------------------------------------------------------- */

/* No region belongs to another server, so there is nothing to schedule; the server itself has not
 * crashed. */
static void schedule_crash(void *ctx, rq_call *call)
{
    const rq_admin_services *s = ctx;
    const Pb__ScheduleServerCrashProcedureRequest *r =
        (const Pb__ScheduleServerCrashProcedureRequest *)call->param;
    const rq_server_name *self = rq_catalog_server(s->catalog);
    Pb__ScheduleServerCrashProcedureResponse response =
        PB__SCHEDULE_SERVER_CRASH_PROCEDURE_RESPONSE__INIT;
    response.pid = rq_arena_alloc(&call->arena, (r->n_servername + 1) * sizeof *response.pid);
    if (response.pid == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    for (size_t i = 0; i < r->n_servername; i++) {
        if (rq__is_this_server(self, r->servername[i])) {
            rq_call_fail(call, RQ_E_DO_NOT_RETRY, "%s answers this call: it has not crashed",
                         self->text);
            return;
        }
        response.pid[response.n_pid++] = NO_PROCEDURE;
    }
    rq_call_reply(call, &response.base);
}

/* All servers in hbase:meta's locations are known: there is only this one. */
static void schedule_unknown(void *ctx, rq_call *call)
{
    (void)ctx;
    Pb__ScheduleSCPsForUnknownServersResponse response =
        PB__SCHEDULE_SCPS_FOR_UNKNOWN_SERVERS_RESPONSE__INIT;
    rq_call_reply(call, &response.base);
}

static const rq_rpc_method methods[] = {
    {"BypassProcedure", &pb__bypass_procedure_request__descriptor, bypass_procedure},
    {"SetTableStateInMeta", &pb__set_table_state_in_meta_request__descriptor, set_table_state},
    {"SetRegionStateInMeta", &pb__set_region_state_in_meta_request__descriptor, set_region_states},
    {"Assigns", &pb__assigns_request__descriptor, assigns},
    {"Unassigns", &pb__unassigns_request__descriptor, unassigns},
    {"ScheduleServerCrashProcedure", &pb__schedule_server_crash_procedure_request__descriptor,
     schedule_crash},
    {"ScheduleSCPsForUnknownServers", &pb__schedule_scps_for_unknown_servers_request__descriptor,
     schedule_unknown},
    {"RunHbckChore", &pb__run_hbck_chore_request__descriptor, run_hbck_chore},
    {"FixMeta", &pb__fix_meta_request__descriptor, fix_meta},
};

rq_rpc_service rq_hbck_service_methods(rq_admin_services *s)
{
    return rq__admin_service(s, "HbckService", methods, RQ_ARRAY_LEN(methods));
}

/* --- on a cluster's master ---------------------------------------------------------------------- */

/* Without the service a client's connection would be refused, which clients take for a passing error. */
static void refuse(void *ctx, rq_call *call)
{
    (void)ctx;
    rq_call_fail(call, RQ_E_UNSUPPORTED, "a cluster does not support %s of HbckService yet",
                 call->method->name);
}

rq_rpc_service rq_refused_hbck_service_methods(rq_admin_services *s)
{
    static_assert(RQ_ARRAY_LEN(methods) == RQ__HBCK_METHODS, "refused_hbck has all methods");
    for (size_t i = 0; i < RQ__HBCK_METHODS; i++) {
        s->refused_hbck[i] = methods[i];
        s->refused_hbck[i].handle = refuse;
    }
    return rq__admin_service(s, "HbckService", s->refused_hbck, RQ__HBCK_METHODS);
}
