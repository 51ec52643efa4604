/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes of the simulated shared storage, and their messages.
 *
 * A message is on the wire to the storage, is executed there (sim_storage.c), and is on the wire
 * back. The sender's wait ends once: by the answer, by its time-out, or by its death. The memory
 * lives until message and wait have ended.
 */
#include <stdlib.h>

#include "vfs/sim_shared_priv.h"

#define MS UINT64_C(1000000)
#define PATIENCE_NS (2000 * MS)

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

static void put_on_wire(sim_message *m, uint64_t ns)
{
    m->storage->executor->timer_arm(m->storage->executor, &m->wire, m->storage->lane, ns);
}

static void free_if_over(sim_message *m)
{
    if (m->on_wire || m->impatient || m->node != NULL) return;
    rq_arena_clear(&m->arena);
    free(m);
}

static void deliver_result(sim_message *m, rq_err rc)
{
    sim_message **at = &m->node->waiting;
    while (*at != m)
        at = &(*at)->next;
    *at = m->next;
    rq_executor *ex = m->storage->executor;
    if (m->impatient && ex->timer_cancel(ex, &m->patience)) m->impatient = false;
    m->rc = rc;
    m->done(m);
    m->node = NULL;
}

static void leave_wire(sim_message *m)
{
    m->on_wire = false;
    m->storage->on_wire--;
    free_if_over(m);
}

static void on_wire(rq_task *task)
{
    sim_message *m = RQ_CONTAINER_OF(RQ_CONTAINER_OF(task, rq_timer, task), sim_message, wire);
    if (m->node != NULL && m->node->cut) {
        put_on_wire(m, a_while_ns(m->storage));
    } else if (!m->executed) {
        m->executed = true;
        m->rc = rq__sim_execute(m->storage->objects, &m->op, &m->arena);
        put_on_wire(m, delay_ns(m->storage));
    } else if (m->node != NULL && m->node->paused) {
        put_on_wire(m, a_while_ns(m->storage));
    } else {
        if (m->node != NULL && !m->unanswered) deliver_result(m, m->rc);
        leave_wire(m);
    }
}

static void lose_patience(rq_task *task)
{
    sim_message *m = RQ_CONTAINER_OF(RQ_CONTAINER_OF(task, rq_timer, task), sim_message, patience);
    m->impatient = false;
    if (m->node != NULL) deliver_result(m, RQ_E_IO);
    free_if_over(m);
}

sim_message *rq__sim_message_new(rq_sim_node *n, const sim_op *op, void (*done)(sim_message *m))
{
    sim_message *m = calloc(1, sizeof *m);
    if (m == NULL) return NULL;
    m->storage = n->storage;
    m->node = n;
    m->done = done;
    m->wire.task.run = on_wire;
    m->patience.task.run = lose_patience;
    m->op = *op;
    m->op.name = rq_arena_cstr(&m->arena, rq_slice_cstr(op->name));
    if (op->key != NULL) m->op.key = rq_arena_cstr(&m->arena, rq_slice_cstr(op->key));
    if (op->bytes.len > 0) m->op.bytes = rq_arena_copy(&m->arena, op->bytes);
    if (op->ledgers != NULL)
        m->op.ledgers = (rq_slog_ledger *)rq_arena_copy(
                            &m->arena, rq_slice_of(op->ledgers, op->count * sizeof *op->ledgers))
                            .ptr;
    return m;
}

void rq__sim_send(sim_message *m)
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
    /* Half of them arrive late. Of the others, half are lost, and of half only the answers. */
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

static void open_latch(sim_message *m)
{
    m->latch->executor->latch_open(m->latch, m->rc);
}

/* Results, copied from the sim_message into `arena`; NULL: the results are only numbers. */
static rq_err keep_results(const sim_message *m, sim_op *op, rq_arena *arena)
{
    op->generation = m->op.generation;
    op->off = m->op.off;
    op->closed = m->op.closed;
    if (arena == NULL) return RQ_OK;
    op->count = m->op.count;
    op->bytes = rq_arena_copy(arena, m->op.bytes);
    op->ledgers = rq_arena_calloc(arena, op->count, sizeof *op->ledgers);
    op->keys = rq_arena_calloc(arena, op->count, sizeof *op->keys);
    if (op->bytes.ptr == NULL || op->ledgers == NULL || op->keys == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < op->count && m->op.ledgers != NULL; i++)
        op->ledgers[i] = m->op.ledgers[i];
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

static void answered(sim_message *m)
{
    waiting_call *c = RQ_CONTAINER_OF(m->latch, waiting_call, latch);
    if (m->rc == RQ_OK) m->rc = keep_results(m, c->op, c->arena);
    open_latch(m);
}

rq_err rq__sim_call(rq_sim_node *n, sim_op *op, rq_arena *arena, rq_error *why)
{
    rq_executor *ex = n->storage->executor;
    waiting_call c = {.op = op, .arena = arena};
    stand_still(n);
    if (n->dead) return rq_fail(why, RQ_E_IO, "the node is dead");
    sim_message *m = rq__sim_message_new(n, op, answered);
    if (m == NULL) return rq_no_memory(why);
    ex->latch_init(ex, &c.latch);
    m->latch = &c.latch;
    rq__sim_send(m);
    rq_err rc = ex->latch_wait(&c.latch);
    ex->latch_destroy(&c.latch);
    stand_still(n);
    if (n->dead) rc = RQ_E_IO;
    return rc == RQ_OK ? RQ_OK
                       : rq_fail(why, rc, "storage: operation %d on %s", op->verb, op->name);
}

/* --- nodes and storage --------------------------------------------------------------------- */

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
    n->shared = rq__sim_shared_functions;
    n->storage = s;
    n->offset_ns = offset_ns;
    n->rate_ppm = rate_ppm;
    rq__quiet_times_init(&n->quiet_times);
    *ret = n;
    return RQ_OK;
}

void rq_sim_node_free(rq_sim_node *n)
{
    if (n == NULL) return;
    rq_sim_node_kill(n);
    rq__quiet_times_clear(&n->quiet_times);
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
        sim_message *m = n->waiting;
        deliver_result(m, RQ_E_IO);
        free_if_over(m);
    }
}
