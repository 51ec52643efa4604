/* SPDX-License-Identifier: Apache-2.0 */
/* The quotas in memory: the rows of hbase:quota as entries of a hash table. Any client may write to
 * hbase:quota: a row that cannot be read is logged and left out, and there are at most ENTRIES_MAX
 * entries. HBASE: QuotaUtil.fetchUserQuotas, fetchTableQuotas … */
#include "quota/quota_priv.h"

#include "base/fnv.h"
#include "base/pb_arena.h"

#include <stdlib.h>
#include <string.h>

#define ENTRIES_MAX 100000
#define MAGIC "PBUF"

/* --- values ----------------------------------------------------------------------------------- */

Pb__Quotas *rq__quotas_unpack(rq_slice bytes, rq_arena *arena)
{
    rq_pb_arena memory;
    size_t magic = sizeof MAGIC - 1;
    if (bytes.len < magic || memcmp(bytes.ptr, MAGIC, magic) != 0) return NULL;
    rq_pb_arena_init(&memory, arena);
    return pb__quotas__unpack(&memory.allocator, bytes.len - magic, bytes.ptr + magic);
}

/* Any client may write to hbase:quota. HBASE: a number outside of the enumeration is an absent field, whose
 * default is DISABLE. */
static Pb__SpaceViolationPolicy known_policy(Pb__SpaceViolationPolicy p)
{
    return rq__space_policy_is_known((int)p) ? p : PB__SPACE_VIOLATION_POLICY__DISABLE;
}

rq_err rq__quotas_pack(const Pb__Quotas *m, rq_arena *arena, rq_slice *ret)
{
    size_t magic = sizeof MAGIC - 1, len = pb__quotas__get_packed_size(m);
    uint8_t *bytes = rq_arena_alloc(arena, magic + len);
    if (bytes == NULL) return RQ_E_NO_MEMORY;
    memcpy(bytes, MAGIC, magic);
    pb__quotas__pack(m, bytes + magic);
    *ret = rq_slice_of(bytes, magic + len);
    return RQ_OK;
}

/* --- the table -------------------------------------------------------------------------------- */

static uint64_t hash_of(rq__owner owner, rq_slice name, rq_slice other)
{
    uint64_t h = rq_fnv1a(RQ_FNV1A ^ (uint64_t)owner, name) * UINT64_C(0x9e3779b97f4a7c15);
    h = rq_fnv1a(h, other) * UINT64_C(0x9e3779b97f4a7c15);
    return h >> 24;
}

const rq__entry *rq__quota_find(const rq__view_of_quotas *v, rq__owner owner, rq_slice name,
                                rq_slice other)
{
    if (v->slots == NULL) return NULL;
    for (size_t at = hash_of(owner, name, other) & v->slot_mask; v->slots[at] != 0;
         at = (at + 1) & v->slot_mask) {
        const rq__entry *e = &v->entries[v->slots[at] - 1];
        if (e->owner == owner && rq_slice_eq(e->name, name) && rq_slice_eq(e->other, other))
            return e;
    }
    return NULL;
}

static rq_err make_slots(rq__view_of_quotas *v)
{
    size_t cap = 16;
    while (cap < v->count * 2)
        cap *= 2;
    v->slots = rq_arena_calloc(&v->arena, cap, sizeof *v->slots);
    if (v->slots == NULL) return RQ_E_NO_MEMORY;
    v->slot_mask = cap - 1;
    for (size_t i = 0; i < v->count; i++) {
        const rq__entry *e = &v->entries[i];
        size_t at = hash_of(e->owner, e->name, e->other) & v->slot_mask;
        while (v->slots[at] != 0)
            at = (at + 1) & v->slot_mask;
        v->slots[at] = (uint32_t)(i + 1);
    }
    return RQ_OK;
}

/* --- reading ---------------------------------------------------------------------------------- */

typedef struct reading {
    rq_quotas *q;
    rq__view_of_quotas *view;
    const rq__view_of_quotas *before;
    uint64_t unreadable;
} reading;

static rq__entry *add_entry(rq__view_of_quotas *v)
{
    if (v->count == v->cap) {
        size_t cap = v->cap == 0 ? 16 : v->cap * 2;
        rq__entry *more = rq_arena_calloc(&v->arena, cap, sizeof *more);
        if (more == NULL) return NULL;
        if (v->count > 0) memcpy(more, v->entries, v->count * sizeof *more);
        v->entries = more;
        v->cap = cap;
    }
    return &v->entries[v->count++];
}

/* A limiter that was there before keeps what was used of it. */
static rq__limiter *limiter_of(const reading *r, const rq__entry *e, const Pb__Throttle *t)
{
    rq__limiter *fresh = rq__limiter_new(t, &r->q->refill);
    const rq__entry *old =
        r->before == NULL ? NULL : rq__quota_find(r->before, e->owner, e->name, e->other);
    if (fresh == NULL || old == NULL || old->limiter == NULL) return fresh;
    rq__limiter_update(old->limiter, fresh);
    rq__limiter_unref(fresh);
    return rq__limiter_ref(old->limiter);
}

static bool has_throttle(const Pb__Throttle *t)
{
    for (int i = 0; t != NULL && i < RQ__BUDGETS; i++)
        if (rq__throttle_field(t, (rq__budget)i) != NULL) return true;
    return false;
}

static rq_err take_entry(reading *r, rq__owner owner, rq_slice name, rq_slice other, rq_slice value)
{
    rq_arena scratch;
    rq_arena_init(&scratch);
    rq__view_of_quotas *v = r->view;
    Pb__Quotas *m = rq__quotas_unpack(value, &scratch);
    rq__entry *e = NULL;
    rq_err rc = RQ_OK;
    if (m == NULL || v->count >= ENTRIES_MAX)
        r->unreadable++;
    else if ((e = add_entry(v)) == NULL)
        rc = RQ_E_NO_MEMORY;
    if (e != NULL) {
        *e = (rq__entry){.owner = owner,
                         .name = rq_arena_copy(&v->arena, name),
                         .other = rq_arena_copy(&v->arena, other),
                         .bypasses = m->has_bypass_globals && m->bypass_globals};
        if (e->name.ptr == NULL || e->other.ptr == NULL) rc = RQ_E_NO_MEMORY;
    }
    if (e != NULL && rc == RQ_OK && has_throttle(m->throttle)) {
        e->limiter = limiter_of(r, e, m->throttle);
        if (e->limiter == NULL) rc = RQ_E_NO_MEMORY;
        v->throttles = true;
    }
    if (e != NULL && rc == RQ_OK && m->space != NULL && m->space->has_soft_limit) {
        e->has_space = v->spaces = true;
        e->space_limit = m->space->soft_limit;
        e->policy = known_policy(m->space->violation_policy);
    }
    rq_arena_clear(&scratch);
    return rc;
}

static bool starts_with(rq_slice s, const char *prefix, rq_slice *ret_rest)
{
    size_t len = strlen(prefix);
    if (s.len < len || memcmp(s.ptr, prefix, len) != 0) return false;
    *ret_rest = rq_slice_of(s.ptr + len, s.len - len);
    return true;
}

/* q:s, or q:s.TABLE, q:s.NAMESPACE: of a user's row. */
static rq_err take_user_cell(reading *r, rq_slice user, const rq_cell *cell)
{
    rq_slice qualifier = rq_cell_qualifier(cell), of;
    rq_slice none = {0};
    if (rq_slice_eq(qualifier, RQ_SLICE_LIT("s")))
        return take_entry(r, RQ__OWNER_USER, user, none, rq_cell_value(cell));
    if (!starts_with(qualifier, "s.", &of)) return RQ_OK;
    if (of.len > 0 && of.ptr[of.len - 1] == ':')
        return take_entry(r, RQ__OWNER_USER_NAMESPACE, user, rq_slice_of(of.ptr, of.len - 1),
                          rq_cell_value(cell));
    return take_entry(r, RQ__OWNER_USER_TABLE, user, of, rq_cell_value(cell));
}

static rq_err take_cell(reading *r, const rq_cell *cell)
{
    rq_slice row = rq_cell_row(cell), name;
    rq_slice none = {0};
    if (starts_with(row, "u.", &name)) return take_user_cell(r, name, cell);
    if (!rq_slice_eq(rq_cell_qualifier(cell), RQ_SLICE_LIT("s"))) return RQ_OK;
    if (starts_with(row, "t.", &name))
        return take_entry(r, RQ__OWNER_TABLE, name, none, rq_cell_value(cell));
    if (starts_with(row, "n.", &name))
        return take_entry(r, RQ__OWNER_NAMESPACE, name, none, rq_cell_value(cell));
    if (starts_with(row, "r.", &name))
        return take_entry(r, RQ__OWNER_SERVER, name, none, rq_cell_value(cell));
    if (rq_slice_eq(row, RQ_SLICE_LIT("exceedThrottleQuota")))
        r->view->exceeds = cell->value_len == 1 && cell->value[0] != 0;
    return RQ_OK;
}

/* A table's u:p. */
static rq_err take_usage(reading *r, const rq_cell *cell)
{
    rq_slice table;
    if (!rq_slice_eq(rq_cell_qualifier(cell), RQ_SLICE_LIT("p")) ||
        !starts_with(rq_cell_row(cell), "t.", &table) || r->view->count >= ENTRIES_MAX)
        return RQ_OK;
    rq_arena scratch;
    rq_pb_arena memory;
    rq_arena_init(&scratch);
    rq_pb_arena_init(&memory, &scratch);
    Pb__SpaceQuotaSnapshot *m =
        pb__space_quota_snapshot__unpack(&memory.allocator, cell->value_len, cell->value);
    rq__entry *e = m == NULL ? NULL : add_entry(r->view);
    if (e != NULL) {
        r->view->usages = true;
        const Pb__SpaceQuotaStatus *status = m->quota_status;
        *e = (rq__entry){.owner = RQ__OWNER_TABLE_USAGE,
                         .name = rq_arena_copy(&r->view->arena, table),
                         .usage = m->quota_usage,
                         .space_limit = m->quota_limit,
                         .policy = status == NULL ? PB__SPACE_VIOLATION_POLICY__DISABLE
                                                  : known_policy(status->violation_policy),
                         .is_violated = status != NULL && status->in_violation};
    }
    bool failed = e != NULL && e->name.ptr == NULL;
    rq_arena_clear(&scratch);
    return failed ? RQ_E_NO_MEMORY : RQ_OK;
}

static rq_err take_row(void *ctx, const rq_cell *cells, size_t count, rq_error *why)
{
    reading *r = ctx;
    (void)why;
    for (size_t i = 0; i < count; i++) {
        rq_slice family = rq_cell_family(&cells[i]);
        if (rq_slice_eq(family, RQ_SLICE_LIT("q"))) RQ_TRY(take_cell(r, &cells[i]));
        if (rq_slice_eq(family, RQ_SLICE_LIT("u"))) RQ_TRY(take_usage(r, &cells[i]));
    }
    return RQ_OK;
}

/* A user's row with quotas of tables only is a row of the user too: the defaults do not apply. */
static rq_err complete_users(rq__view_of_quotas *v)
{
    size_t count = v->count;
    for (size_t i = 0; i < count; i++) {
        rq__owner owner = v->entries[i].owner;
        if (owner != RQ__OWNER_USER_TABLE && owner != RQ__OWNER_USER_NAMESPACE) continue;
        /* The cells of a row are adjacent, q:s first. */
        const rq__entry *before = i == 0 ? NULL : &v->entries[i - 1];
        bool has = before != NULL && before->owner <= RQ__OWNER_USER_NAMESPACE &&
                   rq_slice_eq(before->name, v->entries[i].name);
        if (has) continue;
        rq_slice user = v->entries[i].name;
        rq__entry *e = add_entry(v);
        if (e == NULL) return RQ_E_NO_MEMORY;
        *e = (rq__entry){.owner = RQ__OWNER_USER, .name = user};
    }
    return RQ_OK;
}

rq_err rq__quota_view_read(rq_quotas *q, const rq__view_of_quotas *before, rq__view_of_quotas **ret,
                           rq_error *why)
{
    rq__view_of_quotas *v = calloc(1, sizeof *v);
    if (v == NULL) return rq_no_memory(why);
    rq_arena_init(&v->arena);
    reading r = {.q = q, .view = v, .before = before};
    rq_err rc = rq_catalog_each_row(q->catalog, RQ__QUOTA_TABLE, take_row, &r, why);
    if (rc == RQ_OK) rc = complete_users(v);
    if (rc == RQ_OK) rc = make_slots(v);
    if (rc != RQ_OK) {
        rq__quota_view_free(v);
        return rc == RQ_E_NO_MEMORY ? rq_no_memory(why) : rc;
    }
    if (r.unreadable > 0)
        rq_log_warn(q->env.log, "quota",
                    "hbase:quota: %llu cells are not quotas, or are too many, and are ignored",
                    (unsigned long long)r.unreadable);
    *ret = v;
    return RQ_OK;
}

void rq__quota_view_free(rq__view_of_quotas *v)
{
    if (v == NULL) return;
    for (size_t i = 0; i < v->count; i++)
        rq__limiter_unref(v->entries[i].limiter);
    rq_arena_clear(&v->arena);
    free(v);
}
