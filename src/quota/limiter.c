/* SPDX-License-Identifier: Apache-2.0 */
/* See limiter.h. */
#include "quota/limiter.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* --- the fields of a throttle ----------------------------------------------------------------- */

Pb__TimedQuota **rq__throttle_place(Pb__Throttle *t, rq__budget b)
{
    Pb__TimedQuota **const places[] = {
        &t->req_num,
        &t->req_size,
        &t->write_num,
        &t->write_size,
        &t->read_num,
        &t->read_size,
        &t->req_capacity_unit,
        &t->write_capacity_unit,
        &t->read_capacity_unit,
        &t->atomic_read_size,
        &t->atomic_req_num,
        &t->atomic_write_size,
        &t->req_handler_usage_ms,
    };
    return places[b];
}

const Pb__TimedQuota *rq__throttle_field(const Pb__Throttle *t, rq__budget b)
{
    return *rq__throttle_place((Pb__Throttle *)(uintptr_t)t, b);
}

/* --- a rate ----------------------------------------------------------------------------------- */

static int64_t unit_of(Pb__TimeUnit unit)
{
    switch (unit) {
    case PB__TIME_UNIT__SECONDS:
        return 1000;
    case PB__TIME_UNIT__MINUTES:
        return 60 * 1000;
    case PB__TIME_UNIT__HOURS:
        return 60 * 60 * 1000;
    case PB__TIME_UNIT__DAYS:
        return 24 * 60 * 60 * 1000;
    default:
        return 1; /* HBase sees smaller units as milliseconds */
    }
}

static rq__rate rate_of(const Pb__TimedQuota *q)
{
    rq__rate r = {.limit = INT64_MAX, .left = INT64_MAX, .unit_ms = 1000, .refilled_ms = -1};
    if (q == NULL) return r;
    r.limit = r.left = q->soft_limit > INT64_MAX ? INT64_MAX : (int64_t)q->soft_limit;
    r.unit_ms = unit_of(q->time_unit);
    return r;
}

/* Converts as Java does: a number that is too large becomes the largest int64_t. Limits may be any number, 0
 * included, because any client may write to hbase:quota. */
static int64_t whole(double v)
{
    return v >= 0x1p63 ? INT64_MAX : v <= -0x1p63 ? INT64_MIN : (int64_t)v;
}

/* The part of the limit that a fixed interval refills. */
static int64_t share_of_interval(const rq__rate *r, int64_t interval_ms)
{
    return whole(ceil((double)interval_ms / (double)r->unit_ms * (double)r->limit));
}

static int64_t interval_of(const rq__rate *r, const rq__refill *how)
{
    return how->interval_ms < r->unit_ms ? how->interval_ms : r->unit_ms;
}

static int64_t refill_fixed(rq__rate *r, int64_t interval, int64_t now)
{
    if (r->refilled_ms == -1) {
        r->refilled_ms = now + interval;
        return r->limit;
    }
    if (now < r->refilled_ms) return 0;
    int64_t times = (interval + now - r->refilled_ms) / interval;
    double amount = (double)times * (double)share_of_interval(r, interval);
    r->refilled_ms = now + interval;
    return amount >= (double)r->limit ? r->limit : (int64_t)amount;
}

static int64_t refill_average(rq__rate *r, int64_t now)
{
    int64_t passed = now - r->refilled_ms, amount = 0;
    if (r->refilled_ms == -1) {
        r->refilled_ms = now;
        return r->limit;
    }
    if (passed >= r->unit_ms)
        amount = r->limit;
    else if (passed > 0)
        amount = whole((double)passed / (double)r->unit_ms * (double)r->limit);
    if (amount > 0) r->refilled_ms = now;
    return amount;
}

static int64_t wait_fixed(const rq__rate *r, int64_t interval, int64_t amount, int64_t now)
{
    int64_t share = share_of_interval(r, interval), next = r->refilled_ms - now, lacking, wait;
    if (share <= 0) return INT64_MAX;
    if (__builtin_sub_overflow(amount, r->left, &lacking)) lacking = INT64_MAX;
    if (lacking <= share) return next;
    bool too_long = __builtin_mul_overflow((lacking - 1) / share, interval, &wait) ||
                    __builtin_add_overflow(wait, next, &wait);
    return too_long ? INT64_MAX : wait;
}

/* 0: the budget has `amount`. */
static int64_t wait_ms(rq__rate *r, const rq__refill *how, int64_t amount, int64_t now)
{
    if (r->limit == INT64_MAX) return 0;
    int64_t interval = interval_of(r, how);
    int64_t more = how->fixed ? refill_fixed(r, interval, now) : refill_average(r, now);
    r->left = r->left > r->limit - more ? r->limit : r->left + more;
    if (r->left >= amount) return 0;
    if (how->fixed) return wait_fixed(r, interval, amount, now);
    if (r->limit == 0) return INT64_MAX;
    return whole(((double)amount - (double)r->left) * (double)r->unit_ms / (double)r->limit);
}

static void take(rq__rate *r, int64_t amount)
{
    if (r->limit == INT64_MAX) return;
    if (amount < 0 && r->left > r->limit + amount)
        r->left = r->limit;
    else if (amount > 0 && r->left < INT64_MIN + amount)
        r->left = INT64_MIN;
    else
        r->left -= amount;
}

/* --- life ------------------------------------------------------------------------------------- */

rq__limiter *rq__limiter_new(const Pb__Throttle *t, const rq__refill *refill)
{
    rq__limiter *l = calloc(1, sizeof *l);
    if (l == NULL) return NULL;
    pthread_mutex_init(&l->lock, NULL);
    l->refill = *refill;
    for (int i = 0; i < RQ__BUDGETS; i++)
        l->rates[i] = rate_of(rq__throttle_field(t, (rq__budget)i));
    atomic_store(&l->refs, 1);
    return l;
}

rq__limiter *rq__limiter_ref(rq__limiter *l)
{
    atomic_fetch_add(&l->refs, 1);
    return l;
}

void rq__limiter_unref(rq__limiter *l)
{
    if (l == NULL || atomic_fetch_sub(&l->refs, 1) != 1) return;
    pthread_mutex_destroy(&l->lock);
    free(l);
}

static void update_rate(rq__rate *r, const rq__rate *from)
{
    if (r->limit < from->limit) {
        int64_t more = from->limit - r->limit;
        r->left = r->left > from->limit - more ? from->limit : r->left + more;
    }
    if (from->limit == INT64_MAX) r->left = INT64_MAX;
    r->limit = from->limit;
    r->unit_ms = from->unit_ms;
}

void rq__limiter_update(rq__limiter *l, const rq__limiter *from)
{
    pthread_mutex_lock(&l->lock);
    l->refill = from->refill;
    for (int i = 0; i < RQ__BUDGETS; i++)
        update_rate(&l->rates[i], &from->rates[i]);
    pthread_mutex_unlock(&l->lock);
}

/* --- checks ----------------------------------------------------------------------------------- */

/* HBASE: RpcThrottlingException: clients read the wait from the text. */
static void wait_text(int64_t ms, char *to, size_t size)
{
    int64_t hours = ms / 3600000, minutes = ms / 60000 % 60, seconds = ms / 1000 % 60;
    char h[40] = "", m[40] = "", s[40] = "";
    if (hours != 0) snprintf(h, sizeof h, "%lld%s, ", (long long)hours, hours > 1 ? "hrs" : "hr");
    if (minutes != 0)
        snprintf(m, sizeof m, "%lld%s, ", (long long)minutes, minutes > 1 ? "mins" : "min");
    if (seconds != 0) snprintf(s, sizeof s, "%lldsec, ", (long long)seconds);
    snprintf(to, size, "%s%s%s%lldms", h, m, s, (long long)(ms % 1000));
}

static rq_err throttled(rq__budget b, int64_t ms, rq_error *why)
{
    static const char *const texts[] = {
        [RQ__BUDGET_REQUESTS] = "number of requests exceeded",
        [RQ__BUDGET_REQUEST_BYTES] = "request size limit exceeded",
        [RQ__BUDGET_WRITES] = "number of write requests exceeded",
        [RQ__BUDGET_WRITE_BYTES] = "write size limit exceeded",
        [RQ__BUDGET_READS] = "number of read requests exceeded",
        [RQ__BUDGET_READ_BYTES] = "read size limit exceeded",
        [RQ__BUDGET_UNITS] = "request capacity unit exceeded",
        [RQ__BUDGET_WRITE_UNITS] = "write capacity unit exceeded",
        [RQ__BUDGET_READ_UNITS] = "read capacity unit exceeded",
        [RQ__BUDGET_ATOMIC_READ_BYTES] = "atomic read size exceeded",
        [RQ__BUDGET_ATOMIC_REQUESTS] = "atomic request number exceeded",
        [RQ__BUDGET_ATOMIC_WRITE_BYTES] = "atomic write size exceeded",
        [RQ__BUDGET_HANDLER_MS] = "request handler usage time exceeded",
    };
    char wait[160];
    wait_text(ms, wait, sizeof wait);
    return rq_fail(why, RQ_E_THROTTLED, "%s - wait %s", texts[b], wait);
}

typedef struct want {
    rq__budget budget;
    int64_t amount;
    bool applies;
} want;

/* The amounts wanted from each budget, in HBase's order: the error names the first budget that does not
 * suffice. As in HBase, numbers of requests are compared with the budgets of atomic bytes. */
static size_t wants_of(const rq__demand *d, want *to)
{
    bool writes = d->write_bytes > 0, reads = d->read_bytes > 0;
    int64_t requests = d->writes + d->reads;
    const want all[] = {
        {RQ__BUDGET_REQUESTS, requests, true},
        {RQ__BUDGET_REQUEST_BYTES, d->write_bytes + d->read_bytes, true},
        {RQ__BUDGET_UNITS, d->write_units + d->read_units, true},
        {RQ__BUDGET_ATOMIC_REQUESTS, requests, d->is_atomic},
        {RQ__BUDGET_WRITES, d->writes, writes},
        {RQ__BUDGET_WRITE_BYTES, d->write_bytes, writes},
        {RQ__BUDGET_WRITE_UNITS, d->write_units, writes},
        {RQ__BUDGET_ATOMIC_WRITE_BYTES, d->writes, writes && d->is_atomic},
        {RQ__BUDGET_READS, d->reads, reads},
        {RQ__BUDGET_READ_BYTES, d->read_bytes, reads},
        {RQ__BUDGET_READ_UNITS, d->read_units, reads},
        {RQ__BUDGET_ATOMIC_READ_BYTES, requests, reads && d->is_atomic},
        {RQ__BUDGET_HANDLER_MS, d->handler_ms, true},
    };
    for (size_t i = 0; i < RQ_ARRAY_LEN(all); i++)
        to[i] = all[i];
    return RQ_ARRAY_LEN(all);
}

/* Limits each amount to the budget's limit: otherwise a request that is larger than a limit could never
 * pass. HBASE: DefaultOperationQuota.checkQuota. */
static rq__demand capped(const rq__limiter *l, const rq__demand *d)
{
    const rq__rate *r = l->rates;
    rq__demand c = *d;
    int64_t reads = r[RQ__BUDGET_READS].limit, writes = r[RQ__BUDGET_WRITES].limit;
    int64_t both = reads > INT64_MAX - writes ? INT64_MAX : reads + writes;
    int64_t requests = r[RQ__BUDGET_REQUESTS].limit < both ? r[RQ__BUDGET_REQUESTS].limit : both;
    int64_t bytes = r[RQ__BUDGET_REQUEST_BYTES].limit;
    const struct {
        int64_t *amount, limit, other;
    } caps[] = {
        {&c.writes, writes, requests},
        {&c.reads, reads, requests},
        {&c.write_bytes, r[RQ__BUDGET_WRITE_BYTES].limit, bytes},
        {&c.read_bytes, r[RQ__BUDGET_READ_BYTES].limit, bytes},
    };
    for (size_t i = 0; i < RQ_ARRAY_LEN(caps); i++) {
        if (*caps[i].amount > caps[i].limit) *caps[i].amount = caps[i].limit;
        if (*caps[i].amount > caps[i].other) *caps[i].amount = caps[i].other;
    }
    return c;
}

rq_err rq__limiter_check(rq__limiter *l, const rq__demand *d, int64_t now_ms, rq_error *why)
{
    want wants[RQ__BUDGETS];
    rq_err rc = RQ_OK;
    pthread_mutex_lock(&l->lock);
    rq__demand c = capped(l, d);
    size_t count = wants_of(&c, wants);
    for (size_t i = 0; rc == RQ_OK && i < count; i++) {
        if (!wants[i].applies) continue;
        int64_t wait = wait_ms(&l->rates[wants[i].budget], &l->refill, wants[i].amount, now_ms);
        if (wait > 0) rc = throttled(wants[i].budget, wait, why);
    }
    pthread_mutex_unlock(&l->lock);
    return rc;
}

void rq__limiter_take(rq__limiter *l, const rq__demand *d)
{
    rq__rate *r = l->rates;
    int64_t requests = d->writes + d->reads;
    pthread_mutex_lock(&l->lock);
    take(&r[RQ__BUDGET_REQUESTS], requests);
    take(&r[RQ__BUDGET_REQUEST_BYTES], d->write_bytes + d->read_bytes);
    take(&r[RQ__BUDGET_WRITES], d->write_bytes > 0 ? d->writes : 0);
    take(&r[RQ__BUDGET_WRITE_BYTES], d->write_bytes);
    take(&r[RQ__BUDGET_READS], d->read_bytes > 0 ? d->reads : 0);
    take(&r[RQ__BUDGET_READ_BYTES], d->read_bytes);
    take(&r[RQ__BUDGET_UNITS], d->write_units + d->read_units);
    take(&r[RQ__BUDGET_WRITE_UNITS], d->write_units);
    take(&r[RQ__BUDGET_READ_UNITS], d->read_units);
    take(&r[RQ__BUDGET_ATOMIC_REQUESTS], d->is_atomic ? requests : 0);
    take(&r[RQ__BUDGET_ATOMIC_READ_BYTES], d->is_atomic ? d->read_bytes : 0);
    take(&r[RQ__BUDGET_ATOMIC_WRITE_BYTES], d->is_atomic ? d->write_bytes : 0);
    take(&r[RQ__BUDGET_HANDLER_MS], d->handler_ms);
    pthread_mutex_unlock(&l->lock);
}

void rq__limiter_correct(rq__limiter *l, const rq__demand *d)
{
    rq__demand bytes = *d;
    bytes.writes = bytes.reads = 0;
    rq__limiter_take(l, &bytes);
}
