/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes of the simulated shared storage, and their messages.
 *
 * A message is on the wire to the storage, is executed there (sim_storage.c), and is on the wire back.
 * Its sender is told once: by the answer, by the end of its patience, or by its death. The memory
 * lives until both are over.
 */
#include "vfs/sim_shared.h"

#include <stdlib.h>

#include "vfs/sim_shared_priv.h"

#define MS UINT64_C(1000000)
#define PATIENCE_NS (2000 * MS)

struct rq_sim_storage {
    rq_sim *sim;
    rq_executor *executor;
    rq_lane *lane;
    rq_random random;
    unsigned unanswered;
    size_t on_wire;
    sim_objects *objects;
};

typedef struct message {
    rq_timer wire, patience;
    struct message *next; /* of the node's, while its sender waits */
    rq_sim_storage *storage;
    rq_sim_node *node;       /* NULL: the sender was told */
    bool on_wire, impatient; /* which of the timers is armed, or its task queued */
    bool executed, unanswered;
    rq_arena arena;
    sim_op op;
    rq_err rc;
    void (*told)(struct message *m); /* m->rc; may read m->op and the arena */
    rq_latch *latch;
    rq_slog_write *write;
    struct sim_tenure *tenure;
} message;

struct rq_sim_node {
    rq_shared shared;
    rq_sim_storage *storage;
    uint64_t offset_ns;
    int rate_ppm;
    bool paused, cut, dead;
    message *waiting;
};

typedef struct sim_tenure {
    rq_tenure base;
    uint64_t token, sent_ns;
    rq_lane *lane; /* its renewals' */
    rq_timer renewal;
    message *look; /* a renewal without answer */
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

/* --- messages ------------------------------------------------------------------------------ */

/* Mostly under 2 ms; one in 16 up to 100 ms. */
static uint64_t delay_ns(rq_sim_storage *s)
{
    bool slow = rq_random_below(&s->random, 16) == 0;
    return MS / 10 + rq_random_below(&s->random, slow ? 100 * MS : 2 * MS);
}

static uint64_t a_while_ns(rq_sim_storage *s)
{
    return 5 * MS + rq_random_below(&s->random, 15 * MS);
}

static void put_on_wire(message *m, uint64_t ns)
{
    m->storage->executor->timer_arm(m->storage->executor, &m->wire, m->storage->lane, ns);
}

static void free_if_over(message *m)
{
    if (m->on_wire || m->impatient || m->node != NULL) return;
    rq_arena_clear(&m->arena);
    free(m);
}

static void tell(message *m, rq_err rc)
{
    message **at = &m->node->waiting;
    while (*at != m)
        at = &(*at)->next;
    *at = m->next;
    rq_executor *ex = m->storage->executor;
    if (m->impatient && ex->timer_cancel(ex, &m->patience)) m->impatient = false;
    m->rc = rc;
    m->told(m);
    m->node = NULL;
}

static void leave_wire(message *m)
{
    m->on_wire = false;
    m->storage->on_wire--;
    free_if_over(m);
}

static void on_wire(rq_task *task)
{
    message *m = RQ_CONTAINER_OF(RQ_CONTAINER_OF(task, rq_timer, task), message, wire);
    if (m->node != NULL && m->node->cut) {
        put_on_wire(m, a_while_ns(m->storage));
    } else if (!m->executed) {
        m->executed = true;
        m->rc = rq__sim_execute(m->storage->objects, &m->op, &m->arena);
        put_on_wire(m, delay_ns(m->storage));
    } else if (m->node != NULL && m->node->paused) {
        put_on_wire(m, a_while_ns(m->storage));
    } else {
        if (m->node != NULL && !m->unanswered) tell(m, m->rc);
        leave_wire(m);
    }
}

static void lose_patience(rq_task *task)
{
    message *m = RQ_CONTAINER_OF(RQ_CONTAINER_OF(task, rq_timer, task), message, patience);
    m->impatient = false;
    if (m->node != NULL) tell(m, RQ_E_IO);
    free_if_over(m);
}

static message *message_new(rq_sim_node *n, const sim_op *op, void (*told)(message *m))
{
    message *m = calloc(1, sizeof *m);
    if (m == NULL) return NULL;
    m->storage = n->storage;
    m->node = n;
    m->told = told;
    m->wire.task.run = on_wire;
    m->patience.task.run = lose_patience;
    m->op = *op;
    m->op.name = rq_arena_cstr(&m->arena, rq_slice_cstr(op->name));
    if (op->key != NULL) m->op.key = rq_arena_cstr(&m->arena, rq_slice_cstr(op->key));
    if (op->bytes.len > 0) m->op.bytes = rq_arena_copy(&m->arena, op->bytes);
    if (op->segments != NULL)
        m->op.segments = (rq_slog_segment *)rq_arena_copy(
                             &m->arena, rq_slice_of(op->segments, op->count * sizeof *op->segments))
                             .ptr;
    return m;
}

static void send(message *m)
{
    rq_sim_storage *s = m->storage;
    m->next = m->node->waiting;
    m->node->waiting = m;
    m->on_wire = true;
    s->on_wire++;
    m->unanswered = rq_random_below(&s->random, 1000) < s->unanswered;
    if (!m->unanswered) {
        put_on_wire(m, delay_ns(s));
        return;
    }
    /* Half of them come late; of the others half are lost, and half only their answers. */
    bool late = rq_random_below(&s->random, 2) == 0;
    m->executed = !late && rq_random_below(&s->random, 2) == 0;
    put_on_wire(m, late ? rq_random_below(&s->random, 8000 * MS) : delay_ns(s));
    m->impatient = true;
    s->executor->timer_arm(s->executor, &m->patience, s->lane, PATIENCE_NS);
}

/* --- calls that wait ----------------------------------------------------------------------- */

static void stand_still(rq_sim_node *n)
{
    while (n->paused && !n->dead)
        n->storage->executor->sleep(n->storage->executor, a_while_ns(n->storage));
}

static void open_latch(message *m)
{
    m->latch->executor->latch_open(m->latch, m->rc);
}

/* Results, copied from the message, are in `arena`; NULL: there are none but numbers. */
static rq_err keep_results(const message *m, sim_op *op, rq_arena *arena)
{
    op->generation = m->op.generation;
    op->off = m->op.off;
    op->closed = m->op.closed;
    if (arena == NULL) return RQ_OK;
    op->count = m->op.count;
    op->bytes = rq_arena_copy(arena, m->op.bytes);
    op->segments = rq_arena_calloc(arena, op->count, sizeof *op->segments);
    op->keys = rq_arena_calloc(arena, op->count, sizeof *op->keys);
    if (op->bytes.ptr == NULL || op->segments == NULL || op->keys == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < op->count && m->op.segments != NULL; i++)
        op->segments[i] = m->op.segments[i];
    for (size_t i = 0; i < op->count && m->op.keys != NULL; i++) {
        op->keys[i] = rq_arena_cstr(arena, rq_slice_cstr(m->op.keys[i]));
        if (op->keys[i] == NULL) return RQ_E_NO_MEMORY;
    }
    return RQ_OK;
}

typedef struct waiting_call {
    sim_op *op;
    rq_arena *arena;
    rq_latch latch;
} waiting_call;

static void answered(message *m)
{
    waiting_call *c = RQ_CONTAINER_OF(m->latch, waiting_call, latch);
    if (m->rc == RQ_OK) m->rc = keep_results(m, c->op, c->arena);
    open_latch(m);
}

static rq_err call(rq_sim_node *n, sim_op *op, rq_arena *arena, rq_error *why)
{
    rq_executor *ex = n->storage->executor;
    waiting_call c = {.op = op, .arena = arena};
    stand_still(n);
    if (n->dead) return rq_fail(why, RQ_E_IO, "the node is dead");
    message *m = message_new(n, op, answered);
    if (m == NULL) return rq_no_memory(why);
    ex->latch_init(ex, &c.latch);
    m->latch = &c.latch;
    send(m);
    rq_err rc = ex->latch_wait(&c.latch);
    ex->latch_destroy(&c.latch);
    stand_still(n);
    if (n->dead) rc = RQ_E_IO;
    return rc == RQ_OK ? RQ_OK
                       : rq_fail(why, rc, "storage: operation %d on %s", op->verb, op->name);
}

/* --- tenures ------------------------------------------------------------------------------- */

static void renewed(message *m)
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
    t->look =
        message_new(n, &(sim_op){.verb = SIM_LOOK, .name = t->name, .token = t->token}, renewed);
    if (t->look == NULL) return;
    t->look->tenure = t;
    t->sent_ns = node_now_ns(t->base.shared);
    send(t->look);
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
    rq_err rc = call(n, &(sim_op){.verb = SIM_BEGIN, .name = name, .token = t->token}, NULL, why);
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
    rq_err rc = call(n, &head, &arena, why);
    for (size_t i = 0; rc == RQ_OK && i < head.count; i++)
        for (unsigned k = 0; rc == RQ_OK && k < RQ_SLOG_STRIPES; k++) {
            sim_op at = {.verb = SIM_FENCE_STRIPE, .name = name, .stripe = k};
            at.number = head.segments[i].number;
            rc = call(n, &at, NULL, why);
            head.segments[i].lengths[k] = at.off;
        }
    *ret_closed = head.closed;
    head.verb = SIM_SEAL;
    if (rc == RQ_OK) rc = call(n, &head, NULL, why);
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
    *ret_quiet_ns = node_now_ns(s) + (closed ? 0 : RQ_LEASE_WAIT_NS);
    return RQ_OK;
}

/* --- logs ---------------------------------------------------------------------------------- */

static rq_err sim_slog_open(rq_tenure *base, uint64_t number, rq_slog **ret, rq_error *why)
{
    sim_tenure *t = (sim_tenure *)base;
    rq_sim_node *n = node_of(base->shared);
    sim_op op = {.verb = SIM_ADD_SEGMENT, .name = t->name, .token = t->token, .number = number};
    rq_err rc = call(n, &op, NULL, why);
    op.verb = SIM_CREATE_STRIPE;
    for (op.stripe = 0; rc == RQ_OK && op.stripe < RQ_SLOG_STRIPES; op.stripe++)
        rc = call(n, &op, NULL, why);
    if (rc == RQ_E_SERVER_ABORTED) rq__tenure_ended(base);
    RQ_TRY(rc);
    rq_slog *log = calloc(1, sizeof *log);
    if (log == NULL) return rq_no_memory(why);
    *log = (rq_slog){.tenure = base, .number = number};
    *ret = log;
    return RQ_OK;
}

static void appended(message *m)
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
    message *m = n->dead ? NULL : message_new(n, &op, appended);
    if (m == NULL) {
        rq__slog_write_end(w, n->dead ? RQ_E_IO : RQ_E_NO_MEMORY);
        return;
    }
    m->write = w;
    send(m);
}

static void sim_slog_close(rq_slog *log)
{
    free(log);
}

static rq_err sim_slog_lengths(rq_shared *s, const char *name, rq_arena *arena,
                               rq_slog_segment **ret, size_t *ret_count, rq_error *why)
{
    sim_op op = {.verb = SIM_LENGTHS, .name = name};
    RQ_TRY(call(node_of(s), &op, arena, why));
    *ret = op.segments;
    *ret_count = op.count;
    return RQ_OK;
}

static rq_err sim_slog_read(rq_shared *s, const char *name, uint64_t number, unsigned stripe,
                            uint64_t off, void *buf, size_t len, size_t *ret_len, rq_error *why)
{
    rq_arena arena = {0};
    sim_op op = {.verb = SIM_READ, .name = name, .number = number, .stripe = stripe, .off = off};
    op.count = len;
    rq_err rc = call(node_of(s), &op, &arena, why);
    if (rc == RQ_OK) {
        memcpy(buf, op.bytes.ptr, op.bytes.len);
        *ret_len = op.bytes.len;
    }
    rq_arena_clear(&arena);
    return rc;
}

static rq_err sim_slog_remove(rq_shared *s, const char *name, rq_error *why)
{
    return call(node_of(s), &(sim_op){.verb = SIM_REMOVE, .name = name}, NULL, why);
}

/* --- objects and sets ---------------------------------------------------------------------- */

static rq_err sim_object_cas(rq_shared *s, const char *name, uint64_t expected,
                             const rq_slice *bytes, uint64_t *ret_generation, rq_error *why)
{
    sim_op op = {.verb = SIM_CAS, .name = name, .number = expected, .removes = bytes == NULL};
    if (bytes != NULL) op.bytes = *bytes;
    RQ_TRY(call(node_of(s), &op, NULL, why));
    *ret_generation = op.generation;
    return RQ_OK;
}

static rq_err sim_object_get(rq_shared *s, const char *name, rq_arena *arena, rq_slice *ret,
                             uint64_t *ret_generation, rq_error *why)
{
    sim_op op = {.verb = SIM_GET, .name = name};
    RQ_TRY(call(node_of(s), &op, arena, why));
    *ret = op.bytes;
    *ret_generation = op.generation;
    return RQ_OK;
}

static rq_err sim_set_put(rq_shared *s, const char *name, const char *key, rq_error *why)
{
    return call(node_of(s), &(sim_op){.verb = SIM_PUT, .name = name, .key = key}, NULL, why);
}

static rq_err sim_set_del(rq_shared *s, const char *name, const char *key, rq_error *why)
{
    return call(node_of(s), &(sim_op){.verb = SIM_DEL, .name = name, .key = key}, NULL, why);
}

static rq_err sim_set_list(rq_shared *s, const char *name, rq_arena *arena, const char ***ret,
                           size_t *ret_count, rq_error *why)
{
    sim_op op = {.verb = SIM_LIST, .name = name};
    RQ_TRY(call(node_of(s), &op, arena, why));
    *ret = op.keys;
    *ret_count = op.count;
    return RQ_OK;
}

/* --- nodes and storage --------------------------------------------------------------------- */

static void shared_free(rq_shared *s)
{
    (void)s; /* the node's */
}

static const rq_shared functions = {
    .tenure_begin = sim_tenure_begin,
    .tenure_end = sim_tenure_end,
    .tenure_free = sim_tenure_free,
    .tenure_revoke = sim_tenure_revoke,
    .now_ns = node_now_ns,
    .slog_open = sim_slog_open,
    .slog_submit = sim_slog_submit,
    .slog_close = sim_slog_close,
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

rq_err rq_sim_storage_new(rq_sim *sim, unsigned unanswered, rq_sim_storage **ret)
{
    rq_sim_storage *s = calloc(1, sizeof *s);
    if (s == NULL) return RQ_E_NO_MEMORY;
    s->sim = sim;
    s->executor = rq_sim_env(sim)->executor;
    s->unanswered = unanswered;
    rq_random_seed(&s->random, rq_sim_random(sim));
    rq_err rc = rq__sim_objects_new(&s->objects);
    if (rc == RQ_OK) rc = rq_sim_lane_new(sim, &s->lane);
    if (rc == RQ_OK)
        *ret = s;
    else
        rq_sim_storage_free(s);
    return rc;
}

void rq_sim_storage_free(rq_sim_storage *s)
{
    if (s == NULL) return;
    while (s->on_wire > 0)
        s->executor->sleep(s->executor, 100 * MS);
    if (s->lane != NULL) s->executor->lane_free(s->executor, s->lane);
    rq__sim_objects_free(s->objects);
    free(s);
}

rq_err rq_sim_node_new(rq_sim_storage *s, uint64_t offset_ns, int rate_ppm, rq_sim_node **ret)
{
    rq_sim_node *n = calloc(1, sizeof *n);
    if (n == NULL) return RQ_E_NO_MEMORY;
    n->shared = functions;
    n->storage = s;
    n->offset_ns = offset_ns;
    n->rate_ppm = rate_ppm;
    *ret = n;
    return RQ_OK;
}

void rq_sim_node_free(rq_sim_node *n)
{
    if (n == NULL) return;
    rq_sim_node_kill(n);
    free(n);
}

rq_shared *rq_sim_node_shared(rq_sim_node *n)
{
    return &n->shared;
}

void rq_sim_node_pause(rq_sim_node *n, bool paused)
{
    n->paused = paused;
}

void rq_sim_node_cut(rq_sim_node *n, bool cut)
{
    n->cut = cut;
}

void rq_sim_node_kill(rq_sim_node *n)
{
    n->dead = true;
    while (n->waiting != NULL) {
        message *m = n->waiting;
        tell(m, RQ_E_IO);
        free_if_over(m);
    }
}
