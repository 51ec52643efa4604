/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of shared.h on the simulated storage, for one node: each is one message or several, in
 * the order in which a node on Ceph would send them. */
#include <stdio.h>
#include <stdlib.h>

#include "vfs/sim_shared_priv.h"

typedef struct sim_tenure {
    rq_tenure base;
    uint64_t token, sent_ns;
    rq_lane *lane; /* its renewals' */
    rq_timer renewal;
    sim_message *look; /* a renewal without answer */
    rq_task stop;
    bool stopping;
    char name[RQ_SHARED_NAME_MAX + 1];
} sim_tenure;

static rq_sim_node *node_of(const rq_shared *s)
{
    return RQ_CONTAINER_OF(s, rq_sim_node, shared);
}

static uint64_t node_now_ns(const rq_shared *s)
{
    const rq_sim_node *n = node_of(s);
    uint64_t now = n->storage->executor->now_ns(n->storage->executor);
    return n->offset_ns + now + (uint64_t)((int64_t)now / 1000000 * n->rate_ppm);
}

/* --- tenures ------------------------------------------------------------------------------- */

static void renewed(sim_message *m)
{
    sim_tenure *t = m->tenure;
    rq_executor *ex = m->storage->executor;
    if (t == NULL) return; /* freed */
    t->look = NULL;
    if (m->rc == RQ_OK) rq__tenure_renewed(&t->base, t->sent_ns);
    if (m->rc == RQ_E_SERVER_ABORTED)
        rq__tenure_ended(&t->base);
    else
        ex->timer_arm(ex, &t->renewal, t->lane, RQ_SHARED_LEASE_NS / 4);
}

static void renew(rq_task *task)
{
    sim_tenure *t = RQ_CONTAINER_OF(RQ_CONTAINER_OF(task, rq_timer, task), sim_tenure, renewal);
    rq_sim_node *n = node_of(t->base.shared);
    if (t->stopping || n->dead) return;
    t->look = rq__sim_message_new(
        n, &(sim_op){.verb = SIM_LOOK, .name = t->name, .token = t->token}, renewed);
    if (t->look == NULL) return;
    t->look->tenure = t;
    t->sent_ns = node_now_ns(t->base.shared);
    rq__sim_send(t->look);
}

static void stop_renewals(rq_task *task)
{
    sim_tenure *t = RQ_CONTAINER_OF(task, sim_tenure, stop);
    rq_executor *ex = node_of(t->base.shared)->storage->executor;
    t->stopping = true;
    if (t->look != NULL) t->look->tenure = NULL;
    (void)ex->timer_cancel(ex, &t->renewal);
}

static void sim_tenure_free(rq_tenure *base)
{
    sim_tenure *t = (sim_tenure *)base;
    rq_executor *ex = node_of(base->shared)->storage->executor;
    t->stop.run = stop_renewals;
    rq_lane_post(t->lane, &t->stop);
    ex->lane_free(ex, t->lane);
    free(t);
}

static rq_err sim_tenure_begin(rq_shared *s, const char *name, rq_tenure **ret, rq_error *why)
{
    rq_sim_node *n = node_of(s);
    sim_tenure *t = calloc(1, sizeof *t);
    if (t == NULL) return rq_no_memory(why);
    t->token = rq_random_next(&n->storage->random) | 1;
    t->base = (rq_tenure){.shared = s, .valid_until_ns = 1};
    t->renewal.task.run = renew;
    memcpy(t->name, name, strlen(name) + 1);
    if (rq_sim_lane_new(n->storage->sim, &t->lane) != RQ_OK) {
        free(t);
        return rq_no_memory(why);
    }
    uint64_t sent_ns = node_now_ns(s);
    rq_err rc =
        rq__sim_call(n, &(sim_op){.verb = SIM_BEGIN, .name = name, .token = t->token}, NULL, why);
    if (rc != RQ_OK) {
        sim_tenure_free(&t->base);
        return rc;
    }
    rq__tenure_renewed(&t->base, sent_ns);
    n->storage->executor->timer_arm(n->storage->executor, &t->renewal, t->lane, 0);
    *ret = &t->base;
    return RQ_OK;
}

/* The fence: the head, then each stripe's guard; then the lengths, which no longer change.
 * RQ_E_NOT_FOUND: the log was ended and removed meanwhile. */
static rq_err end(rq_sim_node *n, const char *name, uint64_t token, bool *ret_closed, rq_error *why)
{
    rq_arena arena = {0};
    sim_op head = {.verb = SIM_FENCE, .name = name, .token = token};
    rq_err rc = rq__sim_call(n, &head, &arena, why);
    for (size_t i = 0; rc == RQ_OK && i < head.count; i++)
        for (unsigned k = 0; rc == RQ_OK && k < RQ_SLOG_STRIPES; k++) {
            sim_op at = {.verb = SIM_FENCE_STRIPE, .name = name, .stripe = k};
            at.number = head.ledgers[i].number;
            rc = rq__sim_call(n, &at, NULL, why);
            head.ledgers[i].lengths[k] = at.off;
        }
    *ret_closed = head.closed;
    head.verb = SIM_SEAL;
    if (rc == RQ_OK) rc = rq__sim_call(n, &head, NULL, why);
    rq_arena_clear(&arena);
    return rc;
}

static rq_err sim_tenure_end(rq_tenure *base, rq_error *why)
{
    sim_tenure *t = (sim_tenure *)base;
    bool closed;
    rq_error detail = {.code = RQ_OK};
    rq_err rc = end(node_of(base->shared), t->name, t->token, &closed, &detail);
    /* Revoked and removed. */
    return rc == RQ_OK || rc == RQ_E_NOT_FOUND ? RQ_OK : rq_fail(why, rc, "%s", detail.message);
}

static rq_err sim_tenure_revoke(rq_shared *s, const char *name, uint64_t *ret_quiet_ns,
                                rq_error *why)
{
    bool closed;
    rq_error detail = {.code = RQ_OK};
    rq_err rc = end(node_of(s), name, 0, &closed, &detail);
    if (rc != RQ_OK && rc != RQ_E_NOT_FOUND) return rq_fail(why, rc, "%s", detail.message);
    uint64_t now = node_now_ns(s);
    *ret_quiet_ns = closed ? now : rq__quiet_time(&node_of(s)->quiet_times, name, now);
    return RQ_OK;
}

static void sim_tenure_quiet(rq_shared *s, const char *name, uint64_t quiet_ns)
{
    rq__quiet_note(&node_of(s)->quiet_times, name, quiet_ns);
}

/* --- logs ---------------------------------------------------------------------------------- */

static rq_err sim_slog_open(rq_tenure *base, uint64_t number, rq_slog **ret, rq_error *why)
{
    sim_tenure *t = (sim_tenure *)base;
    rq_sim_node *n = node_of(base->shared);
    sim_op op = {.verb = SIM_ADD_LEDGER, .name = t->name, .token = t->token, .number = number};
    rq_err rc = rq__sim_call(n, &op, NULL, why);
    op.verb = SIM_CREATE_STRIPE;
    for (op.stripe = 0; rc == RQ_OK && op.stripe < RQ_SLOG_STRIPES; op.stripe++)
        rc = rq__sim_call(n, &op, NULL, why);
    if (rc == RQ_E_SERVER_ABORTED) rq__tenure_ended(base);
    RQ_TRY(rc);
    rq_slog *log = calloc(1, sizeof *log);
    if (log == NULL) return rq_no_memory(why);
    *log = (rq_slog){.tenure = base, .number = number};
    *ret = log;
    return RQ_OK;
}

static void appended(sim_message *m)
{
    if (m->rc == RQ_E_SERVER_ABORTED) rq__tenure_ended(m->write->log->tenure);
    if (m->rc == RQ_OK) rq__tenure_renewed(m->write->log->tenure, m->op.generation);
    rq__slog_write_end(m->write, m->rc);
}

static void sim_slog_submit(rq_slog *log, rq_slog_write *w)
{
    sim_tenure *t = (sim_tenure *)log->tenure;
    rq_sim_node *n = node_of(t->base.shared);
    sim_op op = {.verb = SIM_APPEND, .name = t->name, .token = t->token, .number = log->number};
    op.stripe = w->stripe;
    op.off = w->off;
    op.bytes = w->bytes;
    op.generation = node_now_ns(t->base.shared); /* when it was sent; an append has none */
    sim_message *m = n->dead ? NULL : rq__sim_message_new(n, &op, appended);
    if (m == NULL) {
        rq__slog_write_end(w, n->dead ? RQ_E_IO : RQ_E_NO_MEMORY);
        return;
    }
    m->write = w;
    rq__sim_send(m);
}

static void sim_slog_name(const rq_slog *log, unsigned stripe, char ret[static RQ_SLOG_NAME_MAX])
{
    const sim_tenure *t = (const sim_tenure *)log->tenure;
    snprintf(ret, RQ_SLOG_NAME_MAX, "log/%s/%llu.%u", t->name, (unsigned long long)log->number,
             stripe);
}

static void sim_slog_close(rq_slog *log)
{
    free(log);
}

static rq_err sim_slog_drop(rq_tenure *base, uint64_t number, rq_error *why)
{
    sim_tenure *t = (sim_tenure *)base;
    sim_op op = {.verb = SIM_DROP, .name = t->name, .token = t->token, .number = number};
    rq_err rc = rq__sim_call(node_of(base->shared), &op, NULL, why);
    if (rc == RQ_E_SERVER_ABORTED) rq__tenure_ended(base);
    return rc;
}

static rq_err sim_slog_lengths(rq_shared *s, const char *name, rq_arena *arena,
                               rq_slog_ledger **ret, size_t *ret_count, rq_error *why)
{
    sim_op op = {.verb = SIM_LENGTHS, .name = name};
    RQ_TRY(rq__sim_call(node_of(s), &op, arena, why));
    *ret = op.ledgers;
    *ret_count = op.count;
    return RQ_OK;
}

static rq_err sim_slog_read(rq_shared *s, const char *name, uint64_t number, unsigned stripe,
                            uint64_t off, void *buf, size_t len, size_t *ret_len, rq_error *why)
{
    rq_arena arena = {0};
    sim_op op = {.verb = SIM_READ, .name = name, .number = number, .stripe = stripe, .off = off};
    op.count = len;
    rq_err rc = rq__sim_call(node_of(s), &op, &arena, why);
    if (rc == RQ_OK) {
        memcpy(buf, op.bytes.ptr, op.bytes.len);
        *ret_len = op.bytes.len;
    }
    rq_arena_clear(&arena);
    return rc;
}

static rq_err sim_slog_remove(rq_shared *s, const char *name, rq_error *why)
{
    return rq__sim_call(node_of(s), &(sim_op){.verb = SIM_REMOVE, .name = name}, NULL, why);
}

/* --- objects and sets ---------------------------------------------------------------------- */

static rq_err sim_object_cas(rq_shared *s, const char *name, uint64_t expected,
                             const rq_slice *bytes, uint64_t *ret_generation, rq_error *why)
{
    sim_op op = {.verb = SIM_CAS, .name = name, .number = expected, .removes = bytes == NULL};
    if (bytes != NULL) op.bytes = *bytes;
    RQ_TRY(rq__sim_call(node_of(s), &op, NULL, why));
    *ret_generation = op.generation;
    return RQ_OK;
}

static rq_err sim_object_get(rq_shared *s, const char *name, rq_arena *arena, rq_slice *ret,
                             uint64_t *ret_generation, rq_error *why)
{
    sim_op op = {.verb = SIM_GET, .name = name};
    RQ_TRY(rq__sim_call(node_of(s), &op, arena, why));
    *ret = op.bytes;
    *ret_generation = op.generation;
    return RQ_OK;
}

static rq_err sim_set_put(rq_shared *s, const char *name, const char *key, rq_error *why)
{
    return rq__sim_call(node_of(s), &(sim_op){.verb = SIM_PUT, .name = name, .key = key}, NULL,
                        why);
}

static rq_err sim_set_del(rq_shared *s, const char *name, const char *key, rq_error *why)
{
    return rq__sim_call(node_of(s), &(sim_op){.verb = SIM_DEL, .name = name, .key = key}, NULL,
                        why);
}

static rq_err sim_set_list(rq_shared *s, const char *name, rq_arena *arena, const char ***ret,
                           size_t *ret_count, rq_error *why)
{
    sim_op op = {.verb = SIM_LIST, .name = name};
    RQ_TRY(rq__sim_call(node_of(s), &op, arena, why));
    *ret = op.keys;
    *ret_count = op.count;
    return RQ_OK;
}

static void shared_free(rq_shared *s)
{
    (void)s; /* the node's */
}

const rq_shared rq__sim_shared_functions = {
    .tenure_begin = sim_tenure_begin,
    .tenure_end = sim_tenure_end,
    .tenure_free = sim_tenure_free,
    .tenure_revoke = sim_tenure_revoke,
    .tenure_quiet = sim_tenure_quiet,
    .now_ns = node_now_ns,
    .slog_open = sim_slog_open,
    .slog_submit = sim_slog_submit,
    .slog_name = sim_slog_name,
    .slog_close = sim_slog_close,
    .slog_drop = sim_slog_drop,
    .slog_lengths = sim_slog_lengths,
    .slog_read = sim_slog_read,
    .slog_remove = sim_slog_remove,
    .object_cas = sim_object_cas,
    .object_get = sim_object_get,
    .set_put = sim_set_put,
    .set_del = sim_set_del,
    .set_list = sim_set_list,
    .free = shared_free,
};
