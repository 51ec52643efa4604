/* SPDX-License-Identifier: Apache-2.0 */
/* SetQuota: the settings in the request are merged with the quotas of their owner in hbase:quota.
 * As in HBase, if the owner then has no quota, its whole row is deleted; a user thereby also loses
 * the quotas on single tables and namespaces. HBASE: MasterQuotaManager.setQuota,
 * GlobalQuotaSettingsImpl.merge. */
#include "quota/quota_priv.h"

#include "descriptor/schema.h"

#include <string.h>

/* The cell that has the quotas. */
typedef struct place {
    rq_slice row, qualifier;
    bool lost; /* a table's quotas were removed, but its row still has a usage */
} place;

static rq_err find_place(const Pb__SetQuotaRequest *r, rq_arena *arena, place *ret, rq_error *why)
{
    rq_slice table = {0};
    char *row = NULL, *qualifier = (char *)(uintptr_t) "s";
    if (r->table_name != NULL) {
        rq_slice ns = rq_slice_of(r->table_name->namespace_.data, r->table_name->namespace_.len);
        rq_slice q = rq_slice_of(r->table_name->qualifier.data, r->table_name->qualifier.len);
        table = rq_table_name_join(arena, ns, q);
        if (table.ptr == NULL) return rq_no_memory(why);
        RQ_TRY(
            rq_table_name_parse(table, &ns, &q, why)); /* no NUL bytes, which would end the row */
    }
    if (r->user_name != NULL) {
        row = rq_arena_printf(arena, "u.%s", r->user_name);
        if (table.ptr != NULL)
            qualifier = rq_arena_printf(arena, "s.%.*s", (int)table.len, (const char *)table.ptr);
        else if (r->namespace_ != NULL)
            qualifier = rq_arena_printf(arena, "s.%s:", r->namespace_);
    } else if (table.ptr != NULL) {
        row = rq_arena_printf(arena, "t.%.*s", (int)table.len, (const char *)table.ptr);
    } else if (r->namespace_ != NULL) {
        row = rq_arena_printf(arena, "n.%s", r->namespace_);
    } else if (r->region_server != NULL) {
        row = rq_arena_printf(arena, "r.%s", r->region_server);
    } else {
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "java.lang.UnsupportedOperationException: a user, a table, a namespace or "
                       "region server must be specified");
    }
    if (row == NULL || qualifier == NULL) return rq_no_memory(why);
    *ret = (place){.row = rq_slice_cstr(row), .qualifier = rq_slice_cstr(qualifier)};
    return RQ_OK;
}

/* --- the row as it is ------------------------------------------------------------------------- */

typedef struct search {
    const place *at;
    rq_arena *arena;
    Pb__Quotas *found;
    bool is_bad;
} search;

static rq_err look_at(void *ctx, const rq_cell *cells, size_t count, rq_error *why)
{
    search *s = ctx;
    (void)why;
    for (size_t i = 0; i < count; i++) {
        if (!rq_slice_eq(rq_cell_family(&cells[i]), RQ_SLICE_LIT("q")) ||
            !rq_slice_eq(rq_cell_qualifier(&cells[i]), s->at->qualifier))
            continue;
        rq_slice own = rq_arena_copy(s->arena, rq_cell_value(&cells[i]));
        if (own.ptr == NULL) return RQ_E_NO_MEMORY;
        s->found = rq__quotas_unpack(own, s->arena);
        s->is_bad = s->found == NULL;
    }
    return RQ_OK;
}

static rq_err read_place(rq_quotas *q, const place *at, rq_arena *arena, Pb__Quotas *ret,
                         rq_error *why)
{
    search s = {.at = at, .arena = arena};
    pb__quotas__init(ret);
    RQ_TRY(rq_catalog_row(q->catalog, RQ__QUOTA_TABLE, at->row, look_at, &s, why));
    if (s.is_bad)
        return rq_fail(why, RQ_E_IOEXCEPTION, "hbase:quota, row %.*s: the value is not a quota",
                       (int)at->row.len, (const char *)at->row.ptr);
    if (s.found != NULL) *ret = *s.found;
    return RQ_OK;
}

/* --- merging ---------------------------------------------------------------------------------- */

static bool has_any(const Pb__Throttle *t)
{
    for (int i = 0; t != NULL && i < RQ__BUDGETS; i++)
        if (rq__throttle_field(t, (rq__budget)i) != NULL) return true;
    return false;
}

/* A throttle without a limit removes that one; without a type, all. */
static rq_err merge_throttle(const Pb__ThrottleRequest *r, rq_arena *arena, Pb__Quotas *to,
                             rq_error *why)
{
    bool is_known = r->has_type && r->type >= 1 && r->type <= (int)RQ__BUDGETS;
    if (r->has_type && !is_known)
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "throttle type %d is not known", (int)r->type);
    if (!r->has_type) {
        to->throttle = NULL;
        return RQ_OK;
    }
    if (r->timed_quota == NULL && to->throttle == NULL) return RQ_OK;
    /* Java has no unsigned numbers. */
    if (r->timed_quota != NULL && (int64_t)r->timed_quota->soft_limit < 1)
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "java.lang.UnsupportedOperationException: The throttle limit must be "
                       "greater then 0, got %lld",
                       (long long)r->timed_quota->soft_limit);
    if (to->throttle == NULL) {
        to->throttle = rq_arena_alloc(arena, sizeof *to->throttle);
        if (to->throttle == NULL) return rq_no_memory(why);
        pb__throttle__init(to->throttle);
    }
    /* The types are numbered as the fields. */
    *rq__throttle_place(to->throttle, (rq__budget)(r->type - 1)) = r->timed_quota;
    if (!has_any(to->throttle)) to->throttle = NULL;
    return RQ_OK;
}

static rq_err merge_space(const Pb__SetQuotaRequest *r, rq_arena *arena, Pb__Quotas *to,
                          rq_error *why)
{
    const Pb__SpaceQuota *s = r->space_limit->quota;
    if (s == NULL)
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "java.lang.IllegalArgumentException: SpaceLimitRequest is missing the "
                       "expected SpaceQuota.");
    if (r->user_name != NULL || r->region_server != NULL)
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "a space quota is for a table or a namespace, not for a user or a server");
    if (s->has_remove && s->remove) {
        to->space = NULL;
        return RQ_OK;
    }
    if (!s->has_soft_limit || !s->has_violation_policy)
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "java.lang.IllegalArgumentException: Cannot handle SpaceQuota without a %s",
                       s->has_soft_limit ? "violation policy" : "soft limit");
    if (!rq__space_policy_is_known((int)s->violation_policy))
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "violation policy %d is not known",
                       (int)s->violation_policy);
    Pb__SpaceQuota *own = rq_arena_alloc(arena, sizeof *own);
    if (own == NULL) return rq_no_memory(why);
    pb__space_quota__init(own);
    own->has_soft_limit = own->has_violation_policy = 1;
    own->soft_limit = s->soft_limit;
    own->violation_policy = s->violation_policy;
    to->space = own;
    return RQ_OK;
}

static rq_err merge(const Pb__SetQuotaRequest *r, rq_arena *arena, Pb__Quotas *to, rq_error *why)
{
    if ((r->has_bypass_globals != 0) + (r->space_limit != NULL) + (r->throttle != NULL) > 1)
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "java.lang.IllegalStateException: SetQuotaRequest has multiple limits");
    if (r->has_bypass_globals) {
        to->has_bypass_globals = 1;
        to->bypass_globals = r->bypass_globals;
        return RQ_OK;
    }
    if (r->space_limit != NULL) return merge_space(r, arena, to, why);
    if (r->throttle != NULL) return merge_throttle(r->throttle, arena, to, why);
    return rq_fail(why, RQ_E_DO_NOT_RETRY,
                   "java.lang.IllegalStateException: Unhandled SetRequestRequest state");
}

/* --- writing ---------------------------------------------------------------------------------- */

/* A table's usage is deleted once its last policy was undone (delete_usage). */
static rq_err delete_owner(rq_quotas *q, place *at, rq_error *why)
{
    if (!rq_slice_eq(at->qualifier, RQ_SLICE_LIT("s")))
        return rq_catalog_row_delete(q->catalog, RQ__QUOTA_TABLE, at->row, "q", &at->qualifier,
                                     why);
    RQ_TRY(rq_catalog_row_delete(q->catalog, RQ__QUOTA_TABLE, at->row, "q", NULL, why));
    at->lost = rq_slice_starts_with(at->row, RQ_SLICE_LIT("t."));
    if (at->lost) return RQ_OK;
    return rq_catalog_row_delete(q->catalog, RQ__QUOTA_TABLE, at->row, "u", NULL, why);
}

/* The record is kept if the table could not be enabled, or has its namespace's quota. */
static rq_err delete_usage(rq_quotas *q, const place *at, rq_error *why)
{
    rq_slice table = rq_slice_of(at->row.ptr + 2, at->row.len - 2);
    rq_err rc = RQ_OK;
    pthread_mutex_lock(&q->work);
    if (!rq__space_needs_record(q, table))
        rc = rq_catalog_row_delete(q->catalog, RQ__QUOTA_TABLE, at->row, "u", NULL, why);
    pthread_mutex_unlock(&q->work);
    return rc;
}

static rq_err store(rq_quotas *q, place *at, const Pb__Quotas *m, rq_arena *arena, rq_error *why)
{
    rq_slice bytes;
    if (m->throttle == NULL && m->space == NULL && !m->has_bypass_globals)
        return delete_owner(q, at, why);
    RQ_TRY(rq__quota_view_has_room(atomic_load(&q->view), at->row, why));
    if (rq__quotas_pack(m, arena, &bytes) != RQ_OK) return rq_no_memory(why);
    return rq_catalog_row_put(q->catalog, RQ__QUOTA_TABLE, at->row, "q", at->qualifier, bytes, why);
}

static rq_err set(rq_quotas *q, const Pb__SetQuotaRequest *r, rq_arena *arena, place *ret,
                  rq_error *why)
{
    Pb__Quotas m;
    RQ_TRY(find_place(r, arena, ret, why));
    RQ_TRY(rq_catalog_need_quota_table(q->catalog, why));
    if (r->has_remove_all && r->remove_all) return delete_owner(q, ret, why);
    RQ_TRY(read_place(q, ret, arena, &m, why));
    RQ_TRY(merge(r, arena, &m, why));
    return store(q, ret, &m, arena, why);
}

static rq_err set_and_load(rq_quotas *q, const Pb__SetQuotaRequest *r, rq_error *why)
{
    rq_arena arena;
    place at = {.lost = false};
    rq_arena_init(&arena);
    pthread_mutex_lock(&q->work);
    rq_err rc = set(q, r, &arena, &at, why);
    pthread_mutex_unlock(&q->work);
    bool of_space = r->space_limit != NULL || (r->has_remove_all && r->remove_all) || at.lost;
    if (rc == RQ_OK) rc = rq__quotas_reload_row(q, at.row, of_space, why);
    if (rc == RQ_OK && at.lost) rc = delete_usage(q, &at, why);
    rq_arena_clear(&arena);
    return rc;
}

rq_err rq_quotas_set(rq_quotas *q, const Pb__SetQuotaRequest *r, rq_error *why)
{
    if (!q->enabled)
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "java.lang.UnsupportedOperationException: quota support disabled");
    RQ_TRY(rq__quotas_begin_change(q, why));
    rq_err rc = set_and_load(q, r, why);
    rq__quotas_end_change(q);
    return rc;
}

/* --- switches --------------------------------------------------------------------------------- */

rq_err rq_quotas_switch_throttle(rq_quotas *q, bool on, bool *ret_before, rq_error *why)
{
    *ret_before = false;
    if (!q->enabled) return RQ_OK;
    RQ_TRY(rq__quotas_begin_change(q, why));
    pthread_mutex_lock(&q->work);
    rq_err rc = rq_catalog_switch_set(q->catalog, RQ_SWITCH_RPC_THROTTLE, on, ret_before, why);
    if (rc == RQ_OK) rq__quota_set_gate(q);
    pthread_mutex_unlock(&q->work);
    rq__quotas_end_change(q);
    return rc;
}

bool rq_quotas_throttle_is_on(const rq_quotas *q)
{
    return q->enabled && rq_catalog_switch_get(q->catalog, RQ_SWITCH_RPC_THROTTLE);
}

/* HBASE: QuotaUtil.checkRSQuotaToEnableExceedThrottle. The server's own quotas must limit reads and
 * writes, all of them with the time unit SECONDS. */
static rq_err check_server(const Pb__Throttle *t, rq_error *why)
{
    if (!has_any(t))
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "Please set region server quota before enable exceed throttle quota");
    bool both = t->req_num != NULL || t->req_size != NULL || t->req_capacity_unit != NULL;
    if (!both && t->read_num == NULL && t->read_size == NULL && t->read_capacity_unit == NULL)
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "Please set at least one read region server quota before enable exceed "
                       "throttle quota");
    if (!both && t->write_num == NULL && t->write_size == NULL && t->write_capacity_unit == NULL)
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "Please set at least one write region server quota before enable exceed "
                       "throttle quota");
    for (int i = 0; i <= (int)RQ__BUDGET_READ_UNITS; i++) {
        const Pb__TimedQuota *f = rq__throttle_field(t, (rq__budget)i);
        if (f != NULL && f->time_unit != PB__TIME_UNIT__SECONDS)
            return rq_fail(why, RQ_E_DO_NOT_RETRY,
                           "All region server quota must be in seconds time unit if enable exceed "
                           "throttle quota");
    }
    return RQ_OK;
}

static rq_err switch_exceed(rq_quotas *q, bool on, rq_arena *arena, bool *ret_before, rq_error *why)
{
    static const uint8_t values[] = {0, 0xff}; /* HBASE: Bytes.toBytes(boolean) */
    const place server = {.row = RQ_SLICE_LIT("r." RQ__QUOTA_SERVER),
                          .qualifier = RQ_SLICE_LIT("s")};
    Pb__Quotas m;
    const rq__view_of_quotas *v = atomic_load(&q->view);
    *ret_before = v != NULL && v->exceeds;
    if (*ret_before == on) return RQ_OK;
    RQ_TRY(rq_catalog_need_quota_table(q->catalog, why));
    if (on) {
        RQ_TRY(read_place(q, &server, arena, &m, why));
        RQ_TRY(check_server(m.throttle, why));
    }
    return rq_catalog_row_put(q->catalog, RQ__QUOTA_TABLE, RQ_SLICE_LIT("exceedThrottleQuota"), "q",
                              RQ_SLICE_LIT("s"), rq_slice_of(&values[on ? 1 : 0], 1), why);
}

rq_err rq_quotas_switch_exceed(rq_quotas *q, bool on, bool *ret_before, rq_error *why)
{
    *ret_before = false;
    if (!q->enabled) return RQ_OK;
    rq_arena arena;
    RQ_TRY(rq__quotas_begin_change(q, why));
    rq_arena_init(&arena);
    pthread_mutex_lock(&q->work);
    rq_err rc = switch_exceed(q, on, &arena, ret_before, why);
    pthread_mutex_unlock(&q->work);
    rq_arena_clear(&arena);
    if (rc == RQ_OK && *ret_before != on) rc = rq_quotas_reload(q, why);
    rq__quotas_end_change(q);
    return rc;
}
