/* SPDX-License-Identifier: Apache-2.0 */
/* The quotas in memory: the rows of hbase:quota as entries, in buckets by the hash of their row, ordered within
 * a bucket. A lookup searches one bucket. A change of one row copies one bucket and the list of buckets, and reads
 * no other row. Any client may write to hbase:quota: a row that cannot be read is logged and skipped, there are at
 * most ENTRIES_MAX entries, and a search among rows with equal hashes is not slower than among others. HBASE:
 * QuotaUtil.fetchUserQuotas, fetchTableQuotas … */
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

/* The policy, or DISABLE for a number outside of the enumeration, which any client may write to hbase:quota. HBase
 * takes such a field for absent, and DISABLE is its default. */
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

/* --- order and search ------------------------------------------------------------------------- */

/* The kind of the entry's row: with the name it identifies the row. */
static unsigned row_kind(rq__owner owner)
{
    static const unsigned kinds[] = {
        [RQ__OWNER_USER] = 0,  [RQ__OWNER_USER_TABLE] = 0,  [RQ__OWNER_USER_NAMESPACE] = 0,
        [RQ__OWNER_TABLE] = 1, [RQ__OWNER_TABLE_USAGE] = 1, [RQ__OWNER_NAMESPACE] = 2,
        [RQ__OWNER_SERVER] = 3};
    return kinds[owner];
}

static uint64_t hash_of(rq__owner owner, rq_slice name)
{
    uint64_t h = rq_fnv1a(RQ_FNV1A ^ row_kind(owner), name) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 32;
}

typedef struct rq__quota_place place;

static int by_row(const place *a, const place *b)
{
    if (a->hash != b->hash) return a->hash < b->hash ? -1 : 1;
    unsigned x = row_kind(a->entry->owner), y = row_kind(b->entry->owner);
    return x != y ? (x < y ? -1 : 1) : rq_slice_compare(a->entry->name, b->entry->name);
}

static int by_owner(const void *a, const void *b)
{
    const place *x = a, *y = b;
    int order = by_row(x, y);
    if (order != 0) return order;
    if (x->entry->owner != y->entry->owner) return x->entry->owner < y->entry->owner ? -1 : 1;
    return rq_slice_compare(x->entry->other, y->entry->other);
}

static size_t bucket_of(uint64_t hash)
{
    return hash % RQ__QUOTA_BUCKETS;
}

/* The entry is only a key. */
static place place_of(rq__entry *e)
{
    return (place){hash_of(e->owner, e->name), e};
}

const rq__entry *rq__quota_find(const rq__view_of_quotas *v, rq__owner owner, rq_slice name,
                                rq_slice other)
{
    rq__entry key = {.owner = owner, .name = name, .other = other};
    place p = place_of(&key);
    const rq__quota_bucket *b = v->buckets[bucket_of(p.hash)];
    const place *found = b == NULL ? NULL : bsearch(&p, b->list, b->count, sizeof p, by_owner);
    return found == NULL ? NULL : found->entry;
}

const rq__entry *rq__quota_next(const rq__view_of_quotas *v, rq__quota_cursor *cursor)
{
    for (; cursor->bucket < RQ__QUOTA_BUCKETS; cursor->bucket++, cursor->at = 0) {
        const rq__quota_bucket *b = v->buckets[cursor->bucket];
        if (b != NULL && cursor->at < b->count) return b->list[cursor->at++].entry;
    }
    return NULL;
}

/* --- entries and buckets ---------------------------------------------------------------------- */

static rq__entry *entry_new(rq__owner owner, rq_slice name, rq_slice other)
{
    rq__entry *e = calloc(1, sizeof *e + name.len + other.len + 1);
    if (e == NULL) return NULL;
    uint8_t *names = (uint8_t *)(e + 1);
    if (name.len > 0) memcpy(names, name.ptr, name.len);
    if (other.len > 0) memcpy(names + name.len, other.ptr, other.len);
    atomic_init(&e->refs, 1);
    e->owner = owner;
    e->name = rq_slice_of(names, name.len);
    e->other = rq_slice_of(names + name.len, other.len);
    return e;
}

static void entry_unref(rq__entry *e)
{
    if (atomic_fetch_sub(&e->refs, 1) != 1) return;
    rq__limiter_unref(e->limiter);
    free(e);
}

static void bucket_unref(rq__quota_bucket *b)
{
    if (b == NULL || atomic_fetch_sub(&b->refs, 1) != 1) return;
    for (size_t i = 0; i < b->count; i++)
        entry_unref(b->list[i].entry);
    free(b);
}

/* A bucket with at least one entry; takes a reference on each entry. */
static rq__quota_bucket *bucket_new(const place *list, size_t count)
{
    rq__quota_bucket *b = malloc(sizeof *b + count * sizeof *list);
    if (b == NULL) return NULL;
    atomic_init(&b->refs, 1);
    b->count = count;
    memcpy(b->list, list, count * sizeof *list);
    for (size_t i = 0; i < count; i++)
        atomic_fetch_add(&list[i].entry->refs, 1);
    return b;
}

static void count_bucket(rq__view_of_quotas *v, const rq__quota_bucket *b, bool more)
{
    size_t by = more ? 1 : (size_t)-1;
    for (size_t i = 0; b != NULL && i < b->count; i++) {
        const rq__entry *e = b->list[i].entry;
        v->count += by;
        if (e->limiter != NULL) v->throttles += by;
        if (e->has_space) v->spaces += by;
        if (e->owner == RQ__OWNER_TABLE_USAGE) v->usages += by;
    }
}

/* --- reading ---------------------------------------------------------------------------------- */

typedef struct reading {
    rq_quotas *q;
    const rq__view_of_quotas *before;
    size_t others; /* entries of rows that are not read again */
    place *list;   /* references */
    size_t count, cap;
    bool exceeds;
    uint64_t unreadable;
} reading;

/* NULL: out of memory. */
static rq__entry *add_entry(reading *r, rq__owner owner, rq_slice name, rq_slice other)
{
    if (r->count == r->cap) {
        size_t cap = r->cap == 0 ? 16 : r->cap * 2;
        place *more = realloc(r->list, cap * sizeof *more);
        if (more == NULL) return NULL;
        r->list = more;
        r->cap = cap;
    }
    rq__entry *e = entry_new(owner, name, other);
    if (e != NULL) r->list[r->count++] = place_of(e);
    return e;
}

static void clear_reading(reading *r)
{
    for (size_t i = 0; i < r->count; i++)
        entry_unref(r->list[i].entry);
    free(r->list);
}

static bool is_full(const reading *r)
{
    return r->others + r->count >= ENTRIES_MAX;
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
    Pb__Quotas *m = is_full(r) ? NULL : rq__quotas_unpack(value, &scratch);
    rq__entry *e = m == NULL ? NULL : add_entry(r, owner, name, other);
    rq_err rc = m != NULL && e == NULL ? RQ_E_NO_MEMORY : RQ_OK;
    if (m == NULL) r->unreadable++;
    if (e != NULL) e->bypasses = m->has_bypass_globals && m->bypass_globals;
    if (e != NULL && has_throttle(m->throttle)) {
        e->limiter = limiter_of(r, e, m->throttle);
        if (e->limiter == NULL) rc = RQ_E_NO_MEMORY;
    }
    if (e != NULL && m->space != NULL && m->space->has_soft_limit) {
        e->has_space = true;
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
        r->exceeds = cell->value_len == 1 && cell->value[0] != 0;
    return RQ_OK;
}

/* A table's u:p. */
static rq_err take_usage(reading *r, const rq_cell *cell)
{
    rq_slice table, none = {0};
    if (!rq_slice_eq(rq_cell_qualifier(cell), RQ_SLICE_LIT("p")) ||
        !starts_with(rq_cell_row(cell), "t.", &table) || is_full(r))
        return RQ_OK;
    rq_arena scratch;
    rq_pb_arena memory;
    rq_arena_init(&scratch);
    rq_pb_arena_init(&memory, &scratch);
    Pb__SpaceQuotaSnapshot *m =
        pb__space_quota_snapshot__unpack(&memory.allocator, cell->value_len, cell->value);
    rq__entry *e = m == NULL ? NULL : add_entry(r, RQ__OWNER_TABLE_USAGE, table, none);
    bool failed = m != NULL && e == NULL;
    if (e != NULL) {
        const Pb__SpaceQuotaStatus *status = m->quota_status;
        e->usage = m->quota_usage;
        e->space_limit = m->quota_limit;
        e->policy = status == NULL ? PB__SPACE_VIOLATION_POLICY__DISABLE
                                   : known_policy(status->violation_policy);
        e->is_violated = status != NULL && status->in_violation;
    }
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
static rq_err complete_users(reading *r)
{
    size_t count = r->count;
    rq_slice none = {0};
    for (size_t i = 0; i < count; i++) {
        const rq__entry *e = r->list[i].entry;
        if (e->owner != RQ__OWNER_USER_TABLE && e->owner != RQ__OWNER_USER_NAMESPACE) continue;
        /* The cells of a row are adjacent, q:s first. */
        const rq__entry *before = i == 0 ? NULL : r->list[i - 1].entry;
        bool has = before != NULL && before->owner <= RQ__OWNER_USER_NAMESPACE &&
                   rq_slice_eq(before->name, e->name);
        if (!has && add_entry(r, RQ__OWNER_USER, e->name, none) == NULL) return RQ_E_NO_MEMORY;
    }
    return RQ_OK;
}

static void log_unreadable(const reading *r)
{
    if (r->unreadable > 0)
        rq_log_warn(r->q->env.log, "quota",
                    "hbase:quota: %llu cells are ignored, because they are not quotas or exceed "
                    "the limits on quotas",
                    (unsigned long long)r->unreadable);
}

/* --- views ------------------------------------------------------------------------------------ */

static int by_bucket(const void *a, const void *b)
{
    size_t x = bucket_of(((const place *)a)->hash), y = bucket_of(((const place *)b)->hash);
    return x != y ? (x < y ? -1 : 1) : by_owner(a, b);
}

static rq_err make_buckets(reading *r, rq__view_of_quotas *v)
{
    if (r->count > 1) qsort(r->list, r->count, sizeof *r->list, by_bucket);
    for (size_t i = 0, end; i < r->count; i = end) {
        size_t which = bucket_of(r->list[i].hash);
        for (end = i + 1; end < r->count && bucket_of(r->list[end].hash) == which;)
            end++;
        v->buckets[which] = bucket_new(r->list + i, end - i);
        if (v->buckets[which] == NULL) return RQ_E_NO_MEMORY;
        count_bucket(v, v->buckets[which], true);
    }
    v->exceeds = r->exceeds;
    return RQ_OK;
}

static rq_err finish_view(reading *r, rq_err rc, rq__view_of_quotas *v, rq__view_of_quotas **ret,
                          rq_error *why)
{
    clear_reading(r);
    if (rc == RQ_OK) {
        log_unreadable(r);
        *ret = v;
        return RQ_OK;
    }
    rq__quota_view_free(v);
    return rc == RQ_E_NO_MEMORY ? rq_no_memory(why) : rc;
}

rq_err rq__quota_view_read(rq_quotas *q, const rq__view_of_quotas *before, rq__view_of_quotas **ret,
                           rq_error *why)
{
    rq__view_of_quotas *v = calloc(1, sizeof *v);
    if (v == NULL) return rq_no_memory(why);
    reading r = {.q = q, .before = before};
    rq_err rc = rq_catalog_each_row(q->catalog, RQ__QUOTA_TABLE, take_row, &r, why);
    if (rc == RQ_OK) rc = complete_users(&r);
    if (rc == RQ_OK) rc = make_buckets(&r, v);
    return finish_view(&r, rc, v, ret, why);
}

/* The owner of a row's entries; false: it is no owner's. */
static bool owner_of_row(rq_slice row, rq__owner *ret, rq_slice *ret_name)
{
    static const struct {
        const char *prefix;
        rq__owner owner;
    } kinds[] = {{"u.", RQ__OWNER_USER},
                 {"t.", RQ__OWNER_TABLE},
                 {"n.", RQ__OWNER_NAMESPACE},
                 {"r.", RQ__OWNER_SERVER}};
    for (size_t i = 0; i < RQ_ARRAY_LEN(kinds); i++) {
        if (!starts_with(row, kinds[i].prefix, ret_name)) continue;
        *ret = kinds[i].owner;
        return true;
    }
    return false;
}

/* The bucket with the row's entries replaced by those that were read. `key` is of the row. */
static rq_err replace_row(reading *r, const place *key, rq__view_of_quotas *v)
{
    size_t which = bucket_of(key->hash), n = 0;
    rq__quota_bucket *old = v->buckets[which], *fresh = NULL;
    size_t old_count = old == NULL ? 0 : old->count;
    place *list = malloc((old_count + r->count + 1) * sizeof *list);
    if (list == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < old_count; i++)
        if (by_row(&old->list[i], key) != 0) list[n++] = old->list[i];
    for (size_t i = 0; i < r->count; i++)
        list[n++] = r->list[i];
    if (n > 1) qsort(list, n, sizeof *list, by_owner);
    if (n > 0) fresh = bucket_new(list, n);
    free(list);
    if (n > 0 && fresh == NULL) return RQ_E_NO_MEMORY;
    count_bucket(v, old, false);
    count_bucket(v, fresh, true);
    v->buckets[which] = fresh;
    bucket_unref(old);
    return RQ_OK;
}

static size_t count_row(const rq__view_of_quotas *v, const place *key)
{
    const rq__quota_bucket *b = v->buckets[bucket_of(key->hash)];
    size_t n = 0;
    for (size_t i = 0; b != NULL && i < b->count; i++)
        n += by_row(&b->list[i], key) == 0;
    return n;
}

rq_err rq__quota_view_update(rq_quotas *q, const rq__view_of_quotas *before, rq_slice row,
                             rq__view_of_quotas **ret, rq_error *why)
{
    rq__entry key = {.owner = RQ__OWNER_USER};
    if (!owner_of_row(row, &key.owner, &key.name)) return rq__quota_view_read(q, before, ret, why);
    rq__view_of_quotas *v = calloc(1, sizeof *v);
    if (v == NULL) return rq_no_memory(why);
    const place at = place_of(&key);
    *v = *before;
    for (size_t i = 0; i < RQ__QUOTA_BUCKETS; i++)
        if (v->buckets[i] != NULL) atomic_fetch_add(&v->buckets[i]->refs, 1);
    reading r = {.q = q, .before = before, .others = before->count - count_row(before, &at)};
    rq_err rc = rq_catalog_row(q->catalog, RQ__QUOTA_TABLE, row, take_row, &r, why);
    if (rc == RQ_OK) rc = complete_users(&r);
    if (rc == RQ_OK) rc = replace_row(&r, &at, v);
    return finish_view(&r, rc, v, ret, why);
}

rq_err rq__quota_view_has_room(const rq__view_of_quotas *v, rq_slice row, rq_error *why)
{
    rq__entry key = {.owner = RQ__OWNER_USER};
    if (v == NULL || v->count < ENTRIES_MAX || !owner_of_row(row, &key.owner, &key.name))
        return RQ_OK;
    const place at = place_of(&key);
    if (count_row(v, &at) > 0) return RQ_OK;
    return rq_fail(why, RQ_E_DO_NOT_RETRY,
                   "%d quotas exist already; another one would not be enforced", ENTRIES_MAX);
}

void rq__quota_view_free(rq__view_of_quotas *v)
{
    if (v == NULL) return;
    for (size_t i = 0; i < RQ__QUOTA_BUCKETS; i++)
        bucket_unref(v->buckets[i]);
    free(v);
}
