/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane's side of writing: batches on their way to the token and back.
 *
 * The writes of one run of the lane are collected by region and passed on as lists. Lanes on two
 * cores that write one region then contend once per list instead of once per batch: the token, its
 * counters, the memstore's head and the log's end are cache lines that move between cores. A list
 * waits for the log once and is answered together, through its first batch.
 */
#include "region/engine_priv.h"
#include "region/write_priv.h"

#include <stdlib.h>

/* A list of this size is handed over: 100 to 200 us of work for the token's holder. */
#define LIST_WRITES 128
#define LIST_OPS 256
#define BUCKETS 64

struct rq_writer {
    rq_wal *wal;
    rq_lane *lane;
    rq_wal_member *member;
    rq_epoch *epoch;
    rq_epoch_member reader; /* member of the epoch, for lanes that are not loops */
    rq__write_list *first, **end;
    rq__write_list *buckets[BUCKETS]; /* by region */
    rq_task task;
    bool posted; /* the lane has the task */
    bool left;
};

/* --- the way back: on the batches' lane ------------------------------------------------------- */

static void raise_to(_Atomic uint64_t *mark, uint64_t value)
{
    uint64_t old = atomic_load_explicit(mark, memory_order_relaxed);
    while (old < value && !atomic_compare_exchange_weak_explicit(
                              mark, &old, value, memory_order_acq_rel, memory_order_relaxed))
        ;
}

/* The batches may have run on another core: each batch's data for done() is prefetched while
 * earlier ones are answered. */
static void deliver(rq__batch *first)
{
    rq_region *r = first->region;
    unsigned count = first->ended.count;
    rq__region_leave_many(r, count);
    for (rq_write *w = first->ended.first, *next; w != NULL; w = next) {
        next = w->next;
        if (next != NULL) {
            rq_prefetch_bytes(next->ops, sizeof *next->ops);
            if (next->next != NULL) rq_prefetch_bytes(next->next, RQ_CACHE_LINE);
        }
        w->done(w); /* done() may free the batch */
    }
    rq__region_unref_many(r, count);
}

static void deliver_late(rq_task *task)
{
    deliver(RQ_CONTAINER_OF(task, rq__batch, timer.task));
}

/* Back-pressure: between low and high mark of the memstore limit responses are delayed, so that
 * writers slow down. */
static void finish(rq__batch *first)
{
    rq_engine *e = first->region->engine;
    uint64_t bytes = first->ended.bytes;
    uint64_t delay = bytes == 0 ? 0 : rq__engine_debt_delay_ns(e, bytes);
    if (delay == 0) {
        deliver(first);
        return;
    }
    atomic_fetch_add_explicit(&e->delayed_writes, first->ended.count, memory_order_relaxed);
    atomic_fetch_add_explicit(&e->delay_ns, delay * first->ended.count, memory_order_relaxed);
    first->timer = (rq_timer){.task.run = deliver_late};
    e->env.executor->timer_arm(e->env.executor, &first->timer, rq__write_of(first)->writer->lane,
                               delay);
}

void rq__op_fail(rq_row_op *op, rq_err rc, const rq_error *why)
{
    op->rc = rc;
    op->processed = false;
    if (why == NULL || why->code == RQ_OK) return;
    if (op->why == NULL) op->why = malloc(sizeof *op->why);
    if (op->why != NULL) *op->why = *why;
}

void rq__row_op_release(rq_row_op *op)
{
    rq_cellblock_clear(&op->result);
    free(op->why);
    op->why = NULL;
}

void rq__write_fail_unacknowledged(rq_write *w, rq_err rc)
{
    for (size_t i = 0; i < w->op_count; i++) {
        rq_row_op *op = &w->ops[i];
        if (op->rc != RQ_OK) continue;
        rq_error why;
        rq_error_clear(&why);
        /* The write may still succeed; the client retries with the same op and nonce. */
        rq_err own =
            rc == RQ_E_NO_SPACE
                ? rq_fail(&why, RQ_E_REGION_TOO_BUSY,
                          "no space left on the server's disk: the write-ahead log cannot grow")
                : rq_fail(&why, rc, "the write-ahead log failed: %s", rq_err_text(rc));
        rq__op_fail(op, own, &why);
    }
}

static void wait_or_finish(rq__batch *first);

static void on_acknowledged(rq_wal_waiter *waiter, rq_err rc)
{
    rq__batch *first = RQ_CONTAINER_OF(waiter, rq__batch, waiter);
    if (rc != RQ_OK) {
        for (rq_write *w = rq__write_of(first); w != NULL; w = w->next)
            if (rq__batch_of(w)->last_seqid != 0) rq__write_fail_unacknowledged(w, rc);
        finish(first);
        return;
    }
    if (first->need_write != 0) {
        raise_to(&first->region->acked_write, first->need_write);
        first->need_write = 0;
    } else {
        raise_to(&first->region->acked_sync, first->need_sync);
        first->need_sync = 0;
    }
    wait_or_finish(first);
}

bool rq__batch_must_wait(rq__batch *b)
{
    rq_region *r = b->region;
    if (b->need_write <= atomic_load_explicit(&r->acked_write, memory_order_acquire))
        b->need_write = 0;
    if (b->need_sync <= atomic_load_explicit(&r->acked_sync, memory_order_acquire))
        b->need_sync = 0;
    return b->need_write != 0 || b->need_sync != 0;
}

static void wait_or_finish(rq__batch *first)
{
    if (rq__batch_must_wait(first)) {
        first->waiter.run = on_acknowledged;
        bool synced = first->need_write == 0;
        rq_wal_wait(rq__write_of(first)->writer->member, &first->waiter,
                    synced ? first->need_sync : first->need_write, synced);
        return;
    }
    uint64_t seqid = first->ended.last_seqid;
    if (seqid != 0) rq__region_raise_read_point(first->region, seqid);
    finish(first);
}

static void finish_task(rq_task *task)
{
    wait_or_finish(RQ_CONTAINER_OF(task, rq__batch, task));
}

void rq__writes_finish(rq_region *r, const rq__ended *e)
{
    if (e->first == NULL) return;
    rq__batch *first = rq__batch_of(e->first);
    first->ended = *e;
    if (e->last_seqid != 0) {
        first->need_write = r->write_horizon;
        first->need_sync = r->sync_horizon;
    }
    if (rq__batch_must_wait(first)) {
        wait_or_finish(first);
        return;
    }
    first->task.run = finish_task;
    rq_lane_post(e->first->writer->lane, &first->task);
}

/* --- the way there ---------------------------------------------------------------------------- */

static rq__write_list **bucket_of(rq_writer *w, const rq_region *r)
{
    return &w->buckets[((uintptr_t)r >> 6 ^ (uintptr_t)r >> 14) % BUCKETS];
}

static rq_region *region_of(rq__write_list *list)
{
    return RQ_CONTAINER_OF(list, rq__batch, list)->region;
}

static rq_write *first_of(rq__write_list *list)
{
    return rq__write_of(RQ_CONTAINER_OF(list, rq__batch, list));
}

/* One of a few open lists. */
static void expect(rq_writer *w, rq__write_list *list)
{
    rq_region_expected soon[RQ_REGION_EXPECT_MAX];
    size_t n = 0;
    for (; list != NULL && n < RQ_REGION_EXPECT_MAX; list = list->next)
        soon[n++] = (rq_region_expected){region_of(list), rq__write_row(first_of(list)), true};
    rq_epoch_enter(w->epoch, &w->reader);
    rq__region_expect_writes(soon, n);
    rq_epoch_exit(w->epoch, &w->reader);
}

static void hand_over(rq_writer *w)
{
    rq__write_list *list = w->first;
    w->first = NULL;
    w->end = &w->first;
    for (rq__write_list *l = list; l != NULL; l = l->next)
        *bucket_of(w, region_of(l)) = NULL;
    for (unsigned n = 0; list != NULL; n++) {
        rq__write_list *next = list->next; /* the token owns the list once it is enqueued */
        rq_region *r = region_of(list);
        if (n % RQ_REGION_EXPECT_MAX == 0) expect(w, list);
        if (list->writes > 1) rq__region_ref_many(r, (unsigned)list->writes - 1);
        atomic_fetch_add_explicit(&r->inflight, list->writes, memory_order_acq_rel);
        atomic_fetch_add_explicit(&r->write_requests, list->work.weight, memory_order_relaxed);
        rq__region_enqueue(r, &list->work);
        list = next;
    }
}

void rq__writer_push(rq_writer *w)
{
    hand_over(w);
    rq_wal_push(w->wal, w->member);
}

static void push_task(rq_task *task)
{
    rq_writer *w = RQ_CONTAINER_OF(task, rq_writer, task);
    w->posted = false;
    if (w->left)
        free(w);
    else
        rq__writer_push(w);
}

void rq_region_write(rq_region *r, rq_write *write)
{
    rq_writer *w = write->writer;
    rq__batch *b = rq__batch_of(write);
    /* A batch of a list may be delivered alone, after it waited for a block. */
    *b = (rq__batch){.region = r, .list.work = {.run = rq__write_list_run, .lane = w->lane}};
    write->next = NULL;
    rq__write_list **bucket = bucket_of(w, r);
    rq__write_list *list = *bucket;
    while (list != NULL && region_of(list) != r)
        list = list->same_bucket;
    if (list != NULL) {
        list->last->next = write;
    } else {
        list = &b->list;
        list->same_bucket = *bucket;
        *bucket = list;
        *w->end = list;
        w->end = &list->next;
        (void)rq_region_ref(r);
    }
    list->last = write;
    list->writes++;
    list->work.weight += (unsigned)write->op_count;
    if (list->writes >= LIST_WRITES || list->work.weight >= LIST_OPS) hand_over(w);
    if (w->posted) return;
    w->posted = true;
    rq_lane_post(w->lane, &w->task);
}

/* --- life ------------------------------------------------------------------------------------- */

rq_err rq_writer_new(rq_engine *e, rq_lane *lane, rq_writer **ret)
{
    rq_writer *w = calloc(1, sizeof *w);
    if (w == NULL) return RQ_E_NO_MEMORY;
    w->wal = e->wal;
    w->lane = lane;
    w->epoch = e->env.epoch;
    w->end = &w->first;
    w->task.run = push_task;
    rq_err rc = rq_wal_join(w->wal, lane, &w->member);
    if (rc != RQ_OK) {
        free(w);
        return rc;
    }
    rq_epoch_join(w->epoch, &w->reader);
    *ret = w;
    return RQ_OK;
}

void rq_writer_free(rq_writer *w)
{
    if (w == NULL) return;
    RQ_ASSERT(w->first == NULL);
    rq_wal_leave(w->member);
    rq_epoch_leave(w->epoch, &w->reader);
    w->left = true;
    if (!w->posted) free(w); /* else its last task does */
}
