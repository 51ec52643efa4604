/* SPDX-License-Identifier: Apache-2.0 */
/* See crew.h. */
#include "transfer/crew.h"

#include "base/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define JOBS 4
#define JOBS_MAX 256
#define STEP_NS 100000000
#define TIME_MAX (INT64_MAX / 4) /* of the clock and of a wait: their sum is a time, too */

static int64_t now_ns(void)
{
    return (int64_t)rq_clock_ns(CLOCK_MONOTONIC);
}

static void fail(rq__crew *c, rq_err rc, const rq_error *why)
{
    pthread_mutex_lock(&c->lock);
    if (c->err == RQ_OK) {
        c->err = rc;
        c->why = *why;
    }
    pthread_mutex_unlock(&c->lock);
    atomic_store(&c->stops, true);
}

/* False: there is no part left. */
static bool take_part(rq__crew *c, size_t *ret)
{
    bool found = false;
    pthread_mutex_lock(&c->lock);
    while (!found && c->next < c->count && !atomic_load(&c->stops)) {
        *ret = c->next++;
        found = c->is_done == NULL || !c->is_done[*ret];
    }
    pthread_mutex_unlock(&c->lock);
    return found;
}

static void *work(void *ctx)
{
    rq__crew *c = ctx;
    rq_error why = {.code = RQ_OK};
    void *tools = NULL;
    size_t part;
    rq_err rc = c->open(c, &tools, &why);
    while (rc == RQ_OK && take_part(c, &part)) {
        rc = c->work(c, tools, part, &why);
        if (rc == RQ_OK) atomic_fetch_add(&c->parts, 1);
    }
    if (rc != RQ_OK) fail(c, rc, &why);
    c->close(tools);
    pthread_mutex_lock(&c->lock);
    c->running--;
    pthread_cond_signal(&c->ended);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static size_t left(const rq__crew *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->count; i++)
        n += c->is_done == NULL || !c->is_done[i];
    return n;
}

static size_t start(rq__crew *c, size_t wanted, pthread_t *threads)
{
    size_t started = 0;
    while (started < wanted && pthread_create(&threads[started], NULL, work, c) == 0) {
        started++;
        pthread_mutex_lock(&c->lock);
        c->running++;
        pthread_mutex_unlock(&c->lock);
    }
    return started;
}

/* Shows progress until all threads have ended. */
static void watch(rq__crew *c)
{
    const rq_transfer_options *o = c->options;
    pthread_mutex_lock(&c->lock);
    while (c->running > 0) {
        int64_t until = now_ns() + STEP_NS;
        struct timespec t = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000};
        pthread_cond_timedwait(&c->ended, &c->lock, &t);
        if (o->progress != NULL) o->progress(o->ctx, atomic_load(&c->done), c->units);
    }
    pthread_mutex_unlock(&c->lock);
}

static void count(const rq__crew *c, rq_transfer_counts *ret)
{
    ret->parts = c->parts;
    ret->rows += c->rows;
    ret->cells += c->cells;
    ret->bytes += c->bytes;
    ret->bad_lines += c->bad_lines;
    ret->different += c->different;
}

rq_err rq__crew_run(rq__crew *c, rq_transfer_counts *ret, rq_error *why)
{
    pthread_t threads[JOBS_MAX];
    size_t wanted = c->options->jobs == 0 ? JOBS : c->options->jobs;
    if (wanted > JOBS_MAX) wanted = JOBS_MAX;
    if (wanted > left(c)) wanted = left(c);
    pthread_mutex_init(&c->lock, NULL);
    rq_clock_cond_init(&c->ended);
    pthread_mutex_lock(&c->lock);
    c->running++; /* the main thread, so that the count is not 0 before all have started */
    pthread_mutex_unlock(&c->lock);
    size_t started = start(c, wanted, threads);
    pthread_mutex_lock(&c->lock);
    c->running--;
    pthread_mutex_unlock(&c->lock);
    watch(c);
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_cond_destroy(&c->ended);
    pthread_mutex_destroy(&c->lock);
    count(c, ret);
    if (c->err != RQ_OK) return rq_fail(why, c->err, "%s", c->why.message);
    return started == 0 && wanted > 0 ? rq_no_memory(why) : RQ_OK;
}

rq_err rq__crew_pass(rq__crew *c, uint64_t bytes, rq_error *why)
{
    int64_t until = 0;
    if (c->options->rate > 0) {
        double ns = (double)bytes * 1e9 / (double)c->options->rate;
        int64_t takes = ns < (double)TIME_MAX ? (int64_t)ns : TIME_MAX;
        pthread_mutex_lock(&c->lock);
        until = c->free_ns > now_ns() ? c->free_ns : now_ns();
        c->free_ns = until < TIME_MAX ? until + takes : until;
        pthread_mutex_unlock(&c->lock);
    }
    for (int64_t wait; !atomic_load(&c->stops) && (wait = until - now_ns()) > 0;)
        rq_clock_sleep_ns((uint64_t)(wait < STEP_NS ? wait : STEP_NS));
    return atomic_load(&c->stops) ? rq_fail(why, RQ_E_CANCELLED, "stopped") : RQ_OK;
}

void rq__crew_print(rq__crew *c, const char *fmt, ...)
{
    char text[1200];
    va_list args;
    if (c->options->print == NULL) return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    pthread_mutex_lock(&c->lock);
    c->options->print(c->options->ctx, text);
    pthread_mutex_unlock(&c->lock);
}
