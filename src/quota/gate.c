/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decisions at the gate: throttles, and writes that a violated space quota forbids.
 *
 * The estimated cost of an op is checked against the limiters that apply to it (its user's, its table's,
 * its namespace's, the server's) and taken from each of them. At its end the difference to the true cost
 * is taken. The estimates are not stored but computed again then, and the limiters are looked up again:
 * if a quota has changed meanwhile, the difference of one op is wrong. Tables of the namespace hbase are
 * never throttled. HBASE: RegionServerRpcQuotaManager.getQuota, DefaultOperationQuota,
 * ExceedOperationQuota.
 */
#include "quota/quota_priv.h"

#include "ops/bulk.h"
#include "ops/get.h"
#include "ops/mutate.h"
#include "ops/scan.h"

#include "base/fnv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* HBASE: DefaultOperationQuota's averages, where sizes of results count. */
#define WRITE_ESTIMATE 100
#define GET_ESTIMATE 100
#define SCAN_ESTIMATE 1000
#define BLOCK_ESTIMATE 65536 /* otherwise a read is estimated at one block of the default size */
#define LIMITERS_MAX 4

typedef struct verdict {
    rq__limiter *limiters[LIMITERS_MAX];
    size_t count;
    rq__limiter *server; /* the server's limiter, if requests may exceed those in `limiters` */
} verdict;

/* --- who is limited --------------------------------------------------------------------------- */

/* HBASE: UserGroupInformation.getShortUserName, without rules: "bob/host@REALM" is bob. */
static rq_slice short_name(rq_slice user)
{
    for (size_t i = 0; i < user.len; i++)
        if (user.ptr[i] == '/' || user.ptr[i] == '@') return rq_slice_of(user.ptr, i);
    return user;
}

static rq_slice user_of(const rq_quotas *q, const rq_op *op)
{
    if (q->user_key[0] != '\0' && op->caller != NULL && op->caller->attribute != NULL) {
        rq_slice named = op->caller->attribute(op, q->user_key);
        if (named.ptr != NULL) return named;
    }
    return short_name(op->principal);
}

static size_t bucket_of(rq_slice name)
{
    return (size_t)(rq_fnv1a(RQ_FNV1A, name) >> 20) % RQ__DEFAULT_USERS;
}

static rq__default_user *new_user(rq_quotas *q, rq_slice name)
{
    if (q->user_count >= RQ__DEFAULT_USERS_MAX || name.len > RQ__DEFAULT_USER_NAME_MAX) return NULL;
    rq__default_user *u = calloc(1, sizeof *u + name.len);
    if (u == NULL) return NULL;
    u->limiter = rq__limiter_new(&q->defaults, &q->refill);
    if (u->limiter == NULL) {
        free(u);
        return NULL;
    }
    memcpy(u->name, name.ptr, name.len);
    u->name_len = name.len;
    q->user_count++;
    return u;
}

/* The limiter of a user who has only the default quotas. Users beyond RQ__DEFAULT_USERS_MAX share the limiter of the
 * user "", and so do users whose name is too long (a request's attribute may name the user) or for whose entry there
 * is no memory. */
static rq__limiter *default_limiter(rq_quotas *q, rq_slice name)
{
    rq__limiter *found = NULL;
    pthread_mutex_lock(&q->users_lock);
    for (int turn = 0; turn < 2 && found == NULL; turn++) {
        rq_slice n = turn == 0 ? name : RQ_SLICE_LIT("");
        rq__default_user **at = &q->users[bucket_of(n)];
        while (*at != NULL && !rq_slice_eq(rq_slice_of((*at)->name, (*at)->name_len), n))
            at = &(*at)->next;
        if (*at == NULL) *at = new_user(q, n);
        if (*at != NULL) found = (*at)->limiter;
    }
    pthread_mutex_unlock(&q->users_lock);
    return found;
}

static rq__limiter *user_limiter(rq_quotas *q, const rq__view_of_quotas *v, rq_slice user,
                                 const rq_region_info *info, bool *ret_bypasses)
{
    rq_slice none = {0};
    const rq__entry *u = rq__quota_find(v, RQ__OWNER_USER, user, none);
    *ret_bypasses = u != NULL && u->bypasses;
    if (u == NULL) return q->has_defaults ? default_limiter(q, user) : NULL;
    const rq__entry *e = rq__quota_find(v, RQ__OWNER_USER_TABLE, user, info->table);
    if (e != NULL && e->limiter != NULL) return e->limiter;
    e = rq__quota_find(v, RQ__OWNER_USER_NAMESPACE, user, info->ns);
    if (e != NULL && e->limiter != NULL) return e->limiter;
    return u->limiter;
}

static void add(verdict *d, rq__limiter *l)
{
    if (l != NULL) d->limiters[d->count++] = l;
}

static rq__limiter *limiter_of(const rq__view_of_quotas *v, rq__owner owner, rq_slice name)
{
    rq_slice none = {0};
    const rq__entry *e = rq__quota_find(v, owner, name, none);
    return e == NULL ? NULL : e->limiter;
}

static bool is_system(const rq_region_info *info)
{
    return rq_slice_eq(info->ns, RQ_SLICE_LIT("hbase"));
}

/* False: nothing limits the op. */
static bool judge(rq_quotas *q, const rq_op *op, const rq_region *region, verdict *d)
{
    const rq__view_of_quotas *v = atomic_load_explicit(&q->view, memory_order_acquire);
    *d = (verdict){.count = 0};
    if (v == NULL || !(v->throttles || q->has_defaults) || !rq_quotas_throttle_is_on(q))
        return false;
    const rq_region_info *info = rq_region_get_info(region);
    if (is_system(info)) return false;
    bool bypasses;
    add(d, user_limiter(q, v, user_of(q, op), info, &bypasses));
    if (bypasses) return d->count > 0;
    add(d, limiter_of(v, RQ__OWNER_TABLE, info->table));
    add(d, limiter_of(v, RQ__OWNER_NAMESPACE, info->ns));
    rq__limiter *server = limiter_of(v, RQ__OWNER_SERVER, RQ_SLICE_LIT(RQ__QUOTA_SERVER));
    if (v->exceeds)
        d->server = server;
    else
        add(d, server);
    return d->count > 0 || d->server != NULL;
}

/* --- estimates and costs ---------------------------------------------------------------------- */

static int64_t units(int64_t bytes, int64_t unit)
{
    return bytes / unit + (bytes % unit != 0);
}

static rq__demand estimate(const rq_quotas *q, const rq_gate_group *g, bool scans)
{
    rq__demand d = {.writes = g->writes, .reads = g->reads, .is_atomic = g->is_atomic};
    int64_t per_read = !q->by_results ? 0 : scans ? SCAN_ESTIMATE : GET_ESTIMATE;
    d.write_bytes = WRITE_ESTIMATE * (int64_t)g->writes;
    d.read_bytes = q->by_results ? per_read * g->reads : g->reads > 0 ? BLOCK_ESTIMATE : 0;
    d.write_units = units(d.write_bytes, q->write_unit);
    d.read_units = units(d.read_bytes, q->read_unit);
    d.handler_ms = 1;
    return d;
}

static rq_err check_all(const verdict *v, const rq__demand *d, int64_t now_ms, rq_error *why)
{
    for (size_t i = 0; i < v->count; i++)
        RQ_TRY(rq__limiter_check(v->limiters[i], d, now_ms, why));
    return RQ_OK;
}

static rq_err enter_limits(rq_quotas *q, const rq_op *op, const rq_gate_group *g, bool scans,
                           rq_error *why)
{
    verdict v;
    if (!judge(q, op, g->region, &v)) return RQ_OK;
    rq__demand d = estimate(q, g, scans);
    int64_t now = (int64_t)(q->env.executor->now_ns(q->env.executor) / 1000000);
    rq_error own = {.code = RQ_OK};
    if (v.server != NULL) RQ_TRY(rq__limiter_check(v.server, &d, now, why));
    rq_err rc = check_all(&v, &d, now, &own);
    if (rc != RQ_OK && v.server == NULL) return rq_fail(why, rc, "%s", own.message);
    for (size_t i = 0; i < v.count; i++)
        rq__limiter_take(v.limiters[i], &d);
    if (v.server != NULL) rq__limiter_take(v.server, &d);
    return RQ_OK;
}

static void leave_limits(rq_quotas *q, const rq_op *op, const rq_gate_group *g, bool scans)
{
    verdict v;
    if (!judge(q, op, g->region, &v)) return;
    rq__demand d = estimate(q, g, scans);
    int64_t read = (int64_t)g->bytes_returned, written = (int64_t)g->bytes_written;
    uint64_t ns = q->env.executor->now_ns(q->env.executor);
    if (!q->by_results && g->block_bytes > g->bytes_returned) read = (int64_t)g->block_bytes;
    d.write_units = units(written, q->write_unit) - d.write_units;
    d.read_units = units((int64_t)g->bytes_returned, q->read_unit) - d.read_units;
    d.write_bytes = written - d.write_bytes;
    d.read_bytes = read - d.read_bytes;
    d.handler_ms =
        (ns > op->started_ns ? (int64_t)((ns - op->started_ns) / 1000000) : 0) - d.handler_ms;
    for (size_t i = 0; i < v.count; i++)
        rq__limiter_correct(v.limiters[i], &d);
    if (v.server != NULL) rq__limiter_correct(v.server, &d);
}

/* --- space ------------------------------------------------------------------------------------ */

static const char *const policy_names[] = {
    [PB__SPACE_VIOLATION_POLICY__DISABLE] = "DISABLE",
    [PB__SPACE_VIOLATION_POLICY__NO_WRITES_COMPACTIONS] = "NO_WRITES_COMPACTIONS",
    [PB__SPACE_VIOLATION_POLICY__NO_WRITES] = "NO_WRITES",
    [PB__SPACE_VIOLATION_POLICY__NO_INSERTS] = "NO_INSERTS",
};

#define LOAD_PATHS_MAX 512 /* bytes of paths in a message */

static const rq_space_state *space_of(const rq_quotas *q, const rq_region *region)
{
    const rq__space_view *v = atomic_load_explicit(&q->space, memory_order_acquire);
    const rq_region_info *info = rq_region_get_info(region);
    if (v == NULL || is_system(info)) return NULL;
    const rq__space_entry *e = rq__space_find(v, info->table);
    return e == NULL ? NULL : &e->state;
}

/* HBASE: …ViolationPolicyEnforcement.check. */
static rq_err check_mutation(const rq_space_state *s, rq_mutation_type type, rq_error *why)
{
    static const char *const classes[] = {[RQ_MUTATE_PUT] = "Put",
                                          [RQ_MUTATE_DELETE] = "Delete",
                                          [RQ_MUTATE_APPEND] = "Append",
                                          [RQ_MUTATE_INCREMENT] = "Increment"};
    if (s->policy == PB__SPACE_VIOLATION_POLICY__DISABLE)
        return rq_fail(why, RQ_E_SPACE_LIMITED,
                       "DISABLE This table is disabled due to violating a space quota.");
    if (s->policy == PB__SPACE_VIOLATION_POLICY__NO_INSERTS && type == RQ_MUTATE_DELETE)
        return RQ_OK;
    return rq_fail(why, RQ_E_SPACE_LIMITED, "%s %ss are disallowed due to a space quota.",
                   policy_names[s->policy], classes[type]);
}

static rq_err write_passes(const rq_quotas *q, const rq_region *region, const rq_mutation *m,
                           rq_error *why)
{
    const rq_space_state *s = space_of(q, region);
    return s == NULL || !s->is_violated ? RQ_OK : check_mutation(s, m->type, why);
}

static rq_err mutations_pass(rq_quotas *q, rq_op *op)
{
    const rq_op_mutate *m = RQ_CONTAINER_OF(op, rq_op_mutate, op);
    for (size_t i = 0; i < m->row.mutation_count; i++)
        RQ_TRY(write_passes(q, op->region, &m->row.mutations[i], &op->why));
    return RQ_OK;
}

/* A violated quota forbids bulk loads, too. HBASE: DefaultViolationPolicyEnforcement.
 * computeBulkLoadSize. The list of paths in the message is cut after LOAD_PATHS_MAX bytes, with "…". */
static rq_err load_passes(const rq_quotas *q, rq_op *op)
{
    const rq_op_bulk *b = RQ_CONTAINER_OF(op, rq_op_bulk, op);
    const rq_space_state *s = space_of(q, op->region);
    char paths[LOAD_PATHS_MAX];
    size_t len = 0;
    if (s == NULL || !s->is_violated) return RQ_OK;
    paths[0] = '\0';
    for (size_t i = 0; i < b->file_count && len < sizeof paths; i++)
        len += (size_t)snprintf(paths + len, sizeof paths - len, "%s%s", i == 0 ? "" : ", ",
                                b->files[i].path);
    return rq_fail(&op->why, RQ_E_SPACE_LIMITED,
                   "%s Bulk load of [%s%s] is disallowed because the file(s) exceed the limits of "
                   "a space quota.",
                   policy_names[s->policy], paths, len < sizeof paths ? "" : "…");
}

/* Whether the list, separated by commas and blanks, has the name. */
static bool is_listed(const char *list, const char *name)
{
    for (size_t len; *(list += strspn(list, ", ")) != '\0'; list += len) {
        len = strcspn(list, ", ");
        if (rq_slice_eq(rq_slice_of(list, len), rq_slice_cstr(name))) return true;
    }
    return false;
}

/* HBASE: RSRpcServices.compactRegion. */
rq_err rq_quotas_may_compact(const rq_quotas *q, const rq_region *region, const char *user,
                             rq_error *why)
{
    const rq_space_state *s = q == NULL ? NULL : space_of(q, region);
    if (s == NULL || !s->is_violated ||
        s->policy != PB__SPACE_VIOLATION_POLICY__NO_WRITES_COMPACTIONS ||
        strcmp(user, q->owner) == 0 || is_listed(rq_config_text(q->config, RQ_SET_SUPERUSER), user))
        return RQ_OK;
    return rq_fail(why, RQ_E_DO_NOT_RETRY,
                   "Compactions on this region are disabled due to a space quota violation.");
}

/* --- the policy ------------------------------------------------------------------------------- */

/* An op of one region as a group; false: the op has groups of its own later, or is not limited. */
static bool group_of(const rq_op *op, rq_gate_group *g)
{
    *g = (rq_gate_group){.region = op->region};
    if (op->region == NULL) return false;
    switch (op->kind) {
    case RQ_OP_GET:
        g->reads = 1;
        g->bytes_returned = op->cost.bytes_out;
        g->block_bytes = RQ_CONTAINER_OF(op, rq_op_get, read.op)->read.ctx.block_bytes_used;
        return true;
    case RQ_OP_SCAN:
        g->reads = 1;
        g->bytes_returned = op->cost.bytes_out;
        g->block_bytes = RQ_CONTAINER_OF(op, rq_op_scan, read.op)->read.ctx.block_bytes_used;
        return RQ_CONTAINER_OF(op, rq_op_scan, read.op)->opens;
    case RQ_OP_PUT:
    case RQ_OP_DELETE:
    case RQ_OP_MUTATE_ROW:
        g->writes = 1;
        break;
    case RQ_OP_APPEND:
    case RQ_OP_INCREMENT:
    case RQ_OP_CHECK_AND_MUTATE:
        g->writes = g->reads = 1;
        g->is_atomic = true;
        break;
    default:
        return false;
    }
    const rq_op_mutate *m = RQ_CONTAINER_OF(op, rq_op_mutate, op);
    for (size_t i = 0; i < m->row.mutation_count; i++)
        g->bytes_written += rq_mutation_bytes(&m->row.mutations[i]);
    return true;
}

/* The next policy is called first: it may delay the op, and then this function is called again for the
 * op. The op has not run yet, so the costs that group_of fills in are not used here. */
static rq_err before(void *ctx, rq_op *op, rq_task *task)
{
    rq_quotas *q = ctx;
    rq_gate_group g;
    if (q->next != NULL && q->next->before != NULL) RQ_TRY(q->next->before(q->next->ctx, op, task));
    if (op->kind == RQ_OP_BULK_LOAD && op->region != NULL) return load_passes(q, op);
    if (!group_of(op, &g)) return RQ_OK;
    if (g.writes > 0) RQ_TRY(mutations_pass(q, op));
    return enter_limits(q, op, &g, op->kind == RQ_OP_SCAN, &op->why);
}

static void after(void *ctx, const rq_op *op)
{
    rq_quotas *q = ctx;
    rq_gate_group g;
    if (!op->is_refused && group_of(op, &g)) leave_limits(q, op, &g, op->kind == RQ_OP_SCAN);
    if (q->next != NULL && q->next->after != NULL) q->next->after(q->next->ctx, op);
}

static rq_err enter(void *ctx, const rq_op *op, const rq_gate_group *g, rq_error *why)
{
    rq_quotas *q = ctx;
    RQ_TRY(enter_limits(q, op, g, op->kind == RQ_OP_SCAN, why));
    if (q->next == NULL || q->next->enter == NULL) return RQ_OK;
    rq_err rc = q->next->enter(q->next->ctx, op, g, why);
    if (rc != RQ_OK) leave_limits(q, op, g, op->kind == RQ_OP_SCAN);
    return rc;
}

static void leave(void *ctx, const rq_op *op, const rq_gate_group *g)
{
    rq_quotas *q = ctx;
    leave_limits(q, op, g, op->kind == RQ_OP_SCAN);
    if (q->next != NULL && q->next->leave != NULL) q->next->leave(q->next->ctx, op, g);
}

static rq_err may_write(void *ctx, const rq_op *op, const rq_region *region, const rq_mutation *m,
                        rq_error *why)
{
    const rq_quotas *q = ctx;
    RQ_TRY(write_passes(q, region, m, why));
    if (q->next == NULL || q->next->write == NULL) return RQ_OK;
    return q->next->write(q->next->ctx, op, region, m, why);
}

const rq_gate_policy rq__quota_policy_table = {
    .before = before, .after = after, .enter = enter, .leave = leave, .write = may_write};

void rq__quota_set_gate(rq_quotas *q)
{
    const rq__view_of_quotas *v = atomic_load(&q->view);
    bool limits = rq_quotas_throttle_is_on(q) && ((v != NULL && v->throttles) || q->has_defaults);
    bool needed = limits || atomic_load(&q->space) != NULL;
    rq_ops_set_policy(q->ops, needed ? &q->policy : q->next);
}
