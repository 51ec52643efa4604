/* SPDX-License-Identifier: Apache-2.0 */
/* The table of users and hosts, the policy that fills it, and its messages; contract in user_metrics.h. */
#include "service/user_metrics.h"

#include "ops/batch.h"
#include "ops/scan.h"
#include "service/call_op.h"

#include "base/fnv.h"

#include <pthread.h>
#include <stdlib.h>

#define BUCKETS 1024 /* a power of two */

typedef struct requests {
    uint64_t reads, filtered, writes;
} requests;

/* A user on a host. The texts follow the struct. */
typedef struct entry {
    struct entry *next; /* in its bucket */
    const char *user, *host, *version, *service;
    requests counts;
} entry;

struct rq_user_metrics {
    rq_gate_policy policy;
    const rq_gate_policy *next; /* may be NULL */
    pthread_mutex_t lock;
    size_t count;
    entry *buckets[BUCKETS];
};

static uint64_t sum_of(const requests *r)
{
    return r->reads + r->filtered + r->writes;
}

/* --- the table, under the lock ---------------------------------------------------------------- */

static size_t bucket_of(const char *user, size_t user_len, const char *host)
{
    uint64_t h = rq_fnv1a(RQ_FNV1A, rq_slice_of(user, user_len));
    h = rq_fnv1a(h, rq_slice_cstr(host));
    return (h ^ h >> 32) & (BUCKETS - 1);
}

static size_t cut(size_t len)
{
    return len < RQ_USER_NAME_MAX ? len : RQ_USER_NAME_MAX;
}

static const char *put_text(char **at, const char *text, size_t len)
{
    char *to = *at;
    memcpy(to, text, len);
    to[len] = '\0';
    *at += len + 1;
    return to;
}

/* HBase reports what a client does not tell as "Unknown". */
static entry *entry_new(const rq_rpc_client *c)
{
    const char *version = c->version != NULL ? c->version : "Unknown";
    size_t user_len = cut(c->user_len), version_len = cut(strlen(version));
    size_t host_len = strlen(c->host), service_len = strlen(c->service);
    entry *e = malloc(sizeof *e + user_len + version_len + host_len + service_len + 4);
    if (e == NULL) return NULL;
    char *at = (char *)(e + 1);
    *e = (entry){.user = put_text(&at, c->user, user_len),
                 .host = put_text(&at, c->host, host_len),
                 .version = put_text(&at, version, version_len),
                 .service = put_text(&at, c->service, service_len)};
    return e;
}

static entry **find(rq_user_metrics *m, const rq_rpc_client *c)
{
    size_t len = cut(c->user_len);
    entry **p = &m->buckets[bucket_of(c->user, len, c->host)];
    while (*p != NULL && (strncmp((*p)->user, c->user, len) != 0 || (*p)->user[len] != '\0' ||
                          strcmp((*p)->host, c->host) != 0))
        p = &(*p)->next;
    return p;
}

/* Calls `visit` for each entry, which may remove it from its place. */
static void each(rq_user_metrics *m, bool (*drops)(const entry *e, void *ctx), void *ctx)
{
    for (size_t i = 0; i < BUCKETS; i++) {
        for (entry **p = &m->buckets[i]; *p != NULL;) {
            entry *e = *p;
            if (!drops(e, ctx)) {
                p = &e->next;
                continue;
            }
            *p = e->next;
            free(e);
            m->count--;
        }
    }
}

static bool add_up(const entry *e, void *ctx)
{
    *(uint64_t *)ctx += sum_of(&e->counts);
    return false;
}

static bool is_rare(const entry *e, void *ctx)
{
    return sum_of(&e->counts) <= *(const uint64_t *)ctx;
}

static bool is_any(const entry *e, void *ctx)
{
    (void)e;
    (void)ctx;
    return true;
}

/* At least one entry has no more than the average. */
RQ_COLD static void make_room(rq_user_metrics *m)
{
    uint64_t sum = 0;
    each(m, add_up, &sum);
    uint64_t average = sum / m->count;
    each(m, is_rare, &average);
}

/* NULL: out of memory. */
static entry *entry_of(rq_user_metrics *m, const rq_rpc_client *c)
{
    entry **place = find(m, c);
    if (*place != NULL) return *place;
    if (m->count == RQ_USER_METRICS_MAX) {
        make_room(m);
        place = find(m, c);
    }
    *place = entry_new(c);
    m->count += *place != NULL;
    return *place;
}

static void add(rq_user_metrics *m, const rq_rpc_client *client, const requests *more)
{
    if (sum_of(more) == 0) return;
    pthread_mutex_lock(&m->lock);
    entry *e = entry_of(m, client);
    if (e != NULL) { /* else the requests are not counted: there is no memory */
        e->counts.reads += more->reads;
        e->counts.filtered += more->filtered;
        e->counts.writes += more->writes;
    }
    pthread_mutex_unlock(&m->lock);
}

/* --- the policy ------------------------------------------------------------------------------- */

static requests requests_of(const rq_op *op)
{
    const rq_op_batch *b;
    switch (op->kind) {
    case RQ_OP_GET:
        return (requests){.reads = op->cost.rows};
    case RQ_OP_SCAN:
        return (requests){.reads = op->cost.rows,
                          .filtered =
                              RQ_CONTAINER_OF(op, rq_op_scan, read.op)->stats.rows_filtered};
    case RQ_OP_PUT:
    case RQ_OP_DELETE:
    case RQ_OP_APPEND:
    case RQ_OP_INCREMENT:
        return (requests){.writes = 1};
    case RQ_OP_BATCH:
        b = RQ_CONTAINER_OF(op, rq_op_batch, read.op);
        return (requests){.reads = b->counts[RQ_OP_GET],
                          .writes = b->counts[RQ_OP_APPEND] + b->counts[RQ_OP_INCREMENT]};
    default:
        return (requests){0};
    }
}

static rq_err before(void *ctx, rq_op *op, rq_task *task)
{
    const rq_user_metrics *m = ctx;
    return m->next->before(m->next->ctx, op, task);
}

static void after(void *ctx, const rq_op *op)
{
    rq_user_metrics *m = ctx;
    if (op->rc == RQ_OK && !op->repeats && rq__op_is_of_call(op)) {
        requests more = requests_of(op);
        add(m, rq__call_of_op(op)->client, &more);
    }
    if (m->next != NULL && m->next->after != NULL) m->next->after(m->next->ctx, op);
}

static rq_err enter(void *ctx, const rq_op *op, const rq_gate_group *g, rq_error *why)
{
    const rq_user_metrics *m = ctx;
    return m->next->enter(m->next->ctx, op, g, why);
}

static void leave(void *ctx, const rq_op *op, const rq_gate_group *g)
{
    const rq_user_metrics *m = ctx;
    m->next->leave(m->next->ctx, op, g);
}

static rq_err may_write(void *ctx, const rq_op *op, const rq_region *region, const rq_mutation *mut,
                        rq_error *why)
{
    const rq_user_metrics *m = ctx;
    return m->next->write(m->next->ctx, op, region, mut, why);
}

/* --- life ------------------------------------------------------------------------------------- */

rq_user_metrics *rq_user_metrics_new(const rq_gate_policy *next)
{
    rq_user_metrics *m = calloc(1, sizeof *m);
    if (m == NULL) return NULL;
    m->next = next;
    m->policy = (rq_gate_policy){.ctx = m, .after = after};
    if (next != NULL && next->before != NULL) m->policy.before = before;
    if (next != NULL && next->enter != NULL) m->policy.enter = enter;
    if (next != NULL && next->leave != NULL) m->policy.leave = leave;
    if (next != NULL && next->write != NULL) m->policy.write = may_write;
    pthread_mutex_init(&m->lock, NULL);
    return m;
}

void rq_user_metrics_free(rq_user_metrics *m)
{
    if (m == NULL) return;
    each(m, is_any, NULL);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

const rq_gate_policy *rq_user_metrics_policy(rq_user_metrics *m)
{
    return &m->policy;
}

/* --- messages --------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const Pb__ClientMetrics *const *x = a, *const *y = b;
    int c = strcmp((*x)->user_name, (*y)->user_name);
    return c != 0 ? c : strcmp((*x)->hostname, (*y)->hostname);
}

static char *copy(rq_arena *arena, const char *text)
{
    return rq_arena_cstr(arena, rq_slice_cstr(text));
}

/* NULL: out of memory. */
static Pb__ClientMetrics *client_message(rq_arena *arena, const entry *e)
{
    Pb__ClientMetrics *c = rq_arena_alloc(arena, sizeof *c);
    if (c == NULL) return NULL;
    pb__client_metrics__init(c);
    c->hostname = c->host_address = copy(arena, e->host);
    c->user_name = copy(arena, e->user);
    c->client_version = copy(arena, e->version);
    c->service_name = copy(arena, e->service);
    c->has_read_requests_count = c->has_write_requests_count = c->has_filtered_requests_count = 1;
    c->read_requests_count = e->counts.reads;
    c->write_requests_count = e->counts.writes;
    c->filtered_requests_count = e->counts.filtered;
    bool whole = c->hostname != NULL && c->user_name != NULL && c->client_version != NULL &&
                 c->service_name != NULL;
    return whole ? c : NULL;
}

typedef struct collected {
    rq_arena *arena;
    Pb__ClientMetrics **list;
    size_t count;
    rq_err rc;
} collected;

static bool collect(const entry *e, void *ctx)
{
    collected *c = ctx;
    Pb__ClientMetrics *one = c->rc == RQ_OK ? client_message(c->arena, e) : NULL;
    if (one == NULL)
        c->rc = RQ_E_NO_MEMORY;
    else
        c->list[c->count++] = one;
    return false;
}

static rq_err clients(rq_user_metrics *m, rq_arena *arena, collected *ret)
{
    *ret = (collected){.arena = arena};
    pthread_mutex_lock(&m->lock);
    ret->list = rq_arena_calloc(arena, m->count + 1, sizeof *ret->list);
    if (ret->list == NULL)
        ret->rc = RQ_E_NO_MEMORY;
    else
        each(m, collect, ret);
    pthread_mutex_unlock(&m->lock);
    return ret->rc;
}

rq_err rq__user_loads(rq_user_metrics *m, rq_arena *arena, Pb__ServerLoad *ret)
{
    collected all;
    RQ_TRY(clients(m, arena, &all));
    qsort(all.list, all.count, sizeof(Pb__ClientMetrics *), compare);
    ret->userloads = rq_arena_calloc(arena, all.count + 1, sizeof(Pb__UserLoad *));
    if (ret->userloads == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < all.count; i++) {
        Pb__UserLoad *last = ret->n_userloads == 0 ? NULL : ret->userloads[ret->n_userloads - 1];
        if (last == NULL || strcmp(last->username, all.list[i]->user_name) != 0) {
            last = rq_arena_alloc(arena, sizeof *last);
            if (last == NULL) return RQ_E_NO_MEMORY;
            pb__user_load__init(last);
            last->username = all.list[i]->user_name;
            last->clientmetrics = &all.list[i]; /* the user's are adjacent */
            ret->userloads[ret->n_userloads++] = last;
        }
        last->n_clientmetrics++;
    }
    return RQ_OK;
}
