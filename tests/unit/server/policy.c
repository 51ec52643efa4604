/* SPDX-License-Identifier: Apache-2.0 */
/* A policy for tests; see policy.h. */
#include "policy.h"

#include "ops/gate.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define TIMES 3 /* number of delays of each put */
#define HELD_MAX 16

struct policy {
    rq_gate_policy table;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stop;
    struct {
        rq_lane *lane;
        rq_task *task;
    } held[HELD_MAX];
    unsigned held_count;
    unsigned put_delays; /* delays of the current put */
    _Atomic bool refuses;
    _Atomic unsigned delays, refusals, ended;
    _Atomic uint64_t trace;
};

/* Resumes the delayed ops. */
static void *policy_main(void *arg)
{
    policy *p = arg;
    pthread_mutex_lock(&p->lock);
    while (!p->stop || p->held_count > 0) {
        if (p->held_count == 0) {
            pthread_cond_wait(&p->changed, &p->lock);
            continue;
        }
        p->held_count--;
        rq_lane_post(p->held[p->held_count].lane, p->held[p->held_count].task);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static rq_err before(void *ctx, rq_op *op, rq_task *task)
{
    policy *p = ctx;
    rq_err rc = RQ_OK;
    if (op->kind == RQ_OP_GET && atomic_load(&p->refuses)) {
        atomic_fetch_add(&p->refusals, 1);
        return rq_fail(&op->why, RQ_E_DO_NOT_RETRY, "user %.*s has no quota for gets",
                       (int)op->principal.len, (const char *)op->principal.ptr);
    }
    if (op->kind != RQ_OP_PUT || task == NULL) return RQ_OK;
    pthread_mutex_lock(&p->lock);
    if (p->put_delays == TIMES) {
        p->put_delays = 0;
    } else if (p->held_count < HELD_MAX) {
        p->put_delays++;
        p->held[p->held_count].lane = op->seat->lane;
        p->held[p->held_count++].task = task;
        pthread_cond_signal(&p->changed);
        atomic_fetch_add(&p->delays, 1);
        rc = RQ_E_AGAIN;
    }
    pthread_mutex_unlock(&p->lock);
    return rc;
}

static void after(void *ctx, const rq_op *op)
{
    policy *p = ctx;
    atomic_store(&p->trace, op->trace_id);
    atomic_fetch_add(&p->ended, 1);
}

policy *policy_new(void)
{
    policy *p = calloc(1, sizeof *p);
    if (p == NULL) abort();
    p->table = (rq_gate_policy){.ctx = p, .before = before, .after = after};
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    if (pthread_create(&p->thread, NULL, policy_main, p) != 0) abort();
    return p;
}

void policy_free(policy *p)
{
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_signal(&p->changed);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->changed);
    free(p);
}

const rq_gate_policy *policy_table(policy *p)
{
    return &p->table;
}

void policy_refuse_gets(policy *p, bool refuse)
{
    atomic_store(&p->refuses, refuse);
}

unsigned policy_delays(const policy *p)
{
    return atomic_load(&p->delays);
}

unsigned policy_refusals(const policy *p)
{
    return atomic_load(&p->refusals);
}

unsigned policy_ended(const policy *p)
{
    return atomic_load(&p->ended);
}

uint64_t policy_last_trace(const policy *p)
{
    return atomic_load(&p->trace);
}
