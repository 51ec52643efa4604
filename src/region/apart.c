/* SPDX-License-Identifier: Apache-2.0 */
/* Reads apart from the writer token; see apart.h.
 *
 * The reads of all ops take turns on RQ__APART_THREADS threads: a peer that has many ops read for minutes delays the
 * others' by its share only. An op that gives way keeps what it has found, but no segment and no file: a memstore that
 * was flushed meanwhile is freed. The bytes found are limited for each op (rmw.c) and, by check_memory, for all together. */
#include "region/apart.h"

#include "region/engine_priv.h"
#include "region/write_priv.h"

#include <stdlib.h>

/* A turn's time. One that nobody waits for is followed by the next one at once. */
#define TURN_NS ((uint64_t)20 * 1000 * 1000)
/* Ops of one region that read at a time; each has a scanner. */
#define READERS_MAX 64
/* Memory that an op may always have. Beyond APART_BYTES_MAX for all ops it fails, and beyond twice that with less, too. */
#define SMALL_BYTES ((uint64_t)256 * 1024)
#define APART_BYTES_MAX ((uint64_t)64 << 20)

struct rq__apart_reads {
    rq__apart_reads *next; /* in the region's line; token */
    rq_region *region;
    rq_write *write; /* whose next op this is */
    rq_row_op *op;
    rq__row_set *rows; /* locked until the end */
    bool has_place;    /* token */
    size_t loads;      /* the region's bulk loads when the reads began; token */
    int64_t now_ms;
    rq_task task;
    rq_read_ctx ctx;
    rq__plan plan;
    bool is_planned;
    uint64_t bytes; /* counted for the engine */
    rq_err rc;
    rq_error why;
};

/* --- places ----------------------------------------------------------------------------------- */

static void take_place(rq__apart_reads *a, rq_region *r)
{
    r->apart.reading++;
    a->has_place = true;
    a->loads = r->bulk_loads;
    rq_pool_share_submit(&r->engine->apart_share, &a->task);
}

/* The rows are locked meanwhile: ops of one row read in the order of their arrival. */
static void stand_in_line(rq__apart_reads *a, rq_region *r)
{
    rq__row_wait_begin(r, a->write);
    *(r->apart.first == NULL ? &r->apart.first : &r->apart.last->next) = a;
    r->apart.last = a;
}

static void leave_place(rq__apart_reads *a, rq_region *r)
{
    if (!a->has_place) return;
    r->apart.reading--;
    rq__apart_reads *next = r->apart.first;
    if (next == NULL) return;
    r->apart.first = next->next;
    rq__row_wait_end(r);
    rq__batch_of(next->write)->waits_since_ns = 0;
    take_place(next, r);
}

/* Those of clients that have gone end; they are enqueued, and fail with `rc`. */
void rq__apart_wake_gone(rq_region *r)
{
    rq__apart_reads **link = &r->apart.first;
    r->apart.last = NULL;
    for (rq__apart_reads *a = *link; a != NULL; a = *link) {
        r->meter.steps++;
        if (!rq__write_has_gone(a->write)) {
            link = &a->next;
            r->apart.last = a;
            continue;
        }
        *link = a->next;
        a->rc = RQ_E_CALLER_DISCONNECTED;
        a->write->next = NULL;
        rq__row_wait_end(r);
        rq__region_enqueue(r, &rq__batch_of(a->write)->list.work);
    }
}

/* The line is in the order of arrival. */
static rq_write **take_expired(rq_region *r, uint64_t before_ns, rq_write **end)
{
    rq__apart_reads *a = r->apart.first;
    for (; a != NULL && rq__batch_of(a->write)->waits_since_ns <= before_ns; a = a->next) {
        r->meter.steps++;
        *end = a->write;
        end = &a->write->next;
        rq__row_wait_end(r);
    }
    r->apart.first = a;
    *end = NULL;
    return end;
}

rq_write *rq__apart_take_expired(rq_region *r, uint64_t before_ns)
{
    rq_write *first = NULL;
    (void)rq__row_locks_take_expired(r, before_ns, take_expired(r, before_ns, &first));
    return first;
}

/* --- turns ------------------------------------------------------------------------------------ */

/* The op's share of the memory for all of them. */
static rq_err check_memory(rq__apart_reads *a, rq_error *why)
{
    _Atomic uint64_t *all = &a->region->engine->apart_bytes;
    uint64_t bytes = rq__plan_bytes(&a->plan);
    uint64_t sum = atomic_fetch_add(all, bytes - a->bytes) + bytes - a->bytes;
    a->bytes = bytes;
    uint64_t limit = bytes <= SMALL_BYTES ? 2 * APART_BYTES_MAX : APART_BYTES_MAX;
    if (sum <= limit || sum == bytes) return RQ_OK;
    return rq_fail(why, RQ_E_REGION_TOO_BUSY,
                   "appends, increments and checks in progress hold %llu MB that they have read, "
                   "which is the limit; retry, regionName=%s",
                   (unsigned long long)(sum >> 20), a->region->info.encoded);
}

static rq_err read_until(rq__apart_reads *a, uint64_t yield_ns)
{
    rq_region *r = a->region;
    rq_epoch_member pin;
    rq_err rc = RQ_OK;
    rq_epoch_pin(r->env.epoch, &pin);
    if (!a->is_planned) rc = rq__plan_make(&a->plan, r, a->op, a->now_ms, &a->why);
    a->is_planned = true;
    if (rc == RQ_OK) rc = rq__plan_read(&a->plan, r, &a->ctx, yield_ns, &a->why);
    /* It points into versions of the stores, which may be freed when the epoch is unpinned. */
    if (a->plan.scanner != NULL) rq_region_scanner_suspend(a->plan.scanner);
    rq_epoch_unpin(r->env.epoch, &pin);
    return rc;
}

/* A closing region waits for the batch, and so may others for its rows. */
static rq_err check_wanted(rq__apart_reads *a)
{
    if (rq__write_has_gone(a->write)) return RQ_E_CALLER_DISCONNECTED;
    if (rq__region_state_now(a->region) == RQ__REGION_OPEN) return RQ_OK;
    return rq__region_not_serving(a->region, &a->why);
}

/* RQ_E_AGAIN: the turn is over. */
static rq_err take_turn(rq__apart_reads *a)
{
    rq_executor *ex = a->region->env.executor;
    uint64_t until = ex->now_ns(ex) + TURN_NS;
    for (;;) {
        RQ_TRY(check_wanted(a));
        rq_err rc = read_until(a, until);
        if (rc == RQ_OK || rc == RQ_E_AGAIN) RQ_TRY(check_memory(a, &a->why));
        if (rc != RQ_E_AGAIN || !rq_read_ctx_needs(&a->ctx)) return rc;
        RQ_TRY(rq_read_ctx_fulfil(&a->ctx, &a->why));
    }
}

static void go_on(rq__apart_reads *a)
{
    rq_region *r = rq_region_ref(a->region);
    rq__batch *b = rq__batch_of(a->write);
    rq_read_ctx_clear(&a->ctx);
    a->write->next = NULL;
    rq__region_enqueue_here(r, &b->list.work);
    rq_wal_push(r->engine->wal, NULL); /* whatever this thread may have staged */
    rq_region_unref(r);
}

static void run_turn(rq_task *task)
{
    rq__apart_reads *a = RQ_CONTAINER_OF(task, rq__apart_reads, task);
    rq_engine *e = a->region->engine;
    for (;;) {
        a->rc = take_turn(a);
        if (a->rc != RQ_E_AGAIN) break;
        rq_read_ctx_unpin(&a->ctx);
        if (rq_pool_share_give_way(&e->apart_share, task)) return;
    }
    rq_pool_share_end(&e->apart_share);
    go_on(a);
}

/* --- life ------------------------------------------------------------------------------------- */

/* The rows may be locked already, after a wait. */
static rq__row_set *own_rows(rq_region *r, const rq_row_op *op, rq_write *w)
{
    rq__batch *b = rq__batch_of(w);
    rq__row_set *rows = b->rows;
    b->rows = NULL;
    return rows != NULL ? rows : rq__row_locks_take(r, op, w);
}

rq__apart_reads *rq__apart_begin(rq_region *r, rq_write *w, int64_t now_ms)
{
    rq__apart_reads *a = calloc(1, sizeof *a);
    if (a == NULL) return NULL;
    *a = (rq__apart_reads){.region = r,
                           .write = w,
                           .op = &w->ops[rq__batch_of(w)->next_op],
                           .now_ms = now_ms,
                           .task.run = run_turn};
    a->rows = own_rows(r, a->op, w);
    if (a->rows == NULL) {
        free(a);
        return NULL;
    }
    if (r->apart.reading < READERS_MAX)
        take_place(a, r);
    else
        stand_in_line(a, r);
    return a;
}

/* What was read is dropped. */
static void forget_reads(rq__apart_reads *a, rq_region *r)
{
    atomic_fetch_sub(&r->engine->apart_bytes, a->bytes);
    a->bytes = 0;
    rq__plan_clear(&a->plan);
    rq_read_ctx_clear(&a->ctx);
}

void rq__apart_again(rq__apart_reads *a, rq_region *r, int64_t now_ms)
{
    forget_reads(a, r);
    a->plan = (rq__plan){0};
    a->ctx = (rq_read_ctx){0};
    a->is_planned = false;
    a->now_ms = now_ms;
    a->loads = r->bulk_loads;
    rq_pool_share_submit(&r->engine->apart_share, &a->task);
}

rq_err rq__apart_apply(rq__apart_reads *a, rq_region *r, rq_row_op *op, int64_t now_ms,
                       rq_error *why)
{
    RQ_ASSERT(op == a->op);
    if (a->rc != RQ_OK) {
        *why = a->why;
        return a->rc;
    }
    if (a->loads != r->bulk_loads) return RQ_E_AGAIN;
    return rq__plan_apply(&a->plan, r, op, now_ms, why);
}

bool rq__apart_has_failed(const rq__apart_reads *a)
{
    return a->rc != RQ_OK;
}

uint64_t rq__apart_steps(const rq__apart_reads *a)
{
    return a->ctx.cells_passed;
}

void rq__apart_end(rq_region *r, rq__apart_reads *a)
{
    if (a == NULL) return;
    rq__row_locks_free(r, a->rows);
    forget_reads(a, r);
    leave_place(a, r);
    free(a);
}
