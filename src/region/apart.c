/* SPDX-License-Identifier: Apache-2.0 */
/* Reads apart from the writer token, and the locks of rows that they need; see apart.h.
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
/* Ops of one region that read apart. Every op of the region compares its rows with theirs. */
#define LOCKERS_MAX 64
/* Memory that an op may always have. Beyond APART_BYTES_MAX for all ops it fails, and beyond twice that with less, too. */
#define SMALL_BYTES ((uint64_t)256 * 1024)
#define APART_BYTES_MAX ((uint64_t)64 << 20)

struct rq__apart_reads {
    rq__apart_reads *next, **link; /* the region's list; token */
    rq_region *region;
    rq_write *write; /* whose next op this is */
    rq_row_op *op;
    rq_slice *rows; /* ascending; const until the end */
    size_t row_count;
    rq_write *first_waiting, *last_waiting; /* token */
    size_t loads; /* the region's bulk loads when the rows were locked; token */
    int64_t now_ms;
    rq_task task;
    rq_read_ctx ctx;
    rq__plan plan;
    bool is_planned;
    uint64_t bytes; /* counted for the engine */
    rq_err rc;
    rq_error why;
};

/* --- rows ------------------------------------------------------------------------------------- */

static rq_err list_rows(rq__apart_reads *a)
{
    const rq_row_op *op = a->op;
    size_t n = 0;
    rq_slice *rows = malloc((op->condition_count + op->mutation_count + 1) * sizeof *rows);
    if (rows == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < op->condition_count; i++)
        if (n == 0 || !rq_slice_eq(rows[n - 1], op->conditions[i].row))
            rows[n++] = op->conditions[i].row;
    for (size_t i = 0; i < op->mutation_count; i++)
        if (n == 0 || !rq_slice_eq(rows[n - 1], op->mutations[i].row))
            rows[n++] = op->mutations[i].row;
    qsort(rows, n, sizeof *rows, rq_slice_order);
    a->rows = rows;
    a->row_count = n;
    return RQ_OK;
}

static bool has_row(const rq__apart_reads *a, rq_slice row)
{
    return bsearch(&row, a->rows, a->row_count, sizeof row, rq_slice_order) != NULL;
}

static bool has_row_of(const rq__apart_reads *a, const rq_row_op *op)
{
    for (size_t i = 0; i < op->condition_count; i++)
        if (has_row(a, op->conditions[i].row)) return true;
    for (size_t i = 0; i < op->mutation_count; i++)
        if ((i == 0 || op->multi_row) && has_row(a, op->mutations[i].row)) return true;
    return false;
}

/* Who has locked a row of the op, or a place among the lockers, if the op may need one. */
static rq__apart_reads *owner_of(rq_region *r, const rq_row_op *op)
{
    size_t count = 0;
    for (rq__apart_reads *a = r->apart; a != NULL; a = a->next, count++)
        if (has_row_of(a, op)) return a;
    r->meter.steps += count / 8;
    return count >= LOCKERS_MAX && rq__op_reads(op) ? r->apart : NULL;
}

bool rq__apart_is_free(rq_region *r, const rq_row_op *op)
{
    return owner_of(r, op) == NULL;
}

bool rq__apart_blocks(rq_region *r, const rq_row_op *op, const rq__apart_reads *own, rq_write *w)
{
    rq__apart_reads *a = own != NULL ? NULL : owner_of(r, op);
    if (a == NULL) return false;
    rq__batch *b = rq__batch_of(w);
    if (b->waits_since_ns == 0) b->waits_since_ns = r->env.executor->now_ns(r->env.executor);
    w->next = NULL;
    *(a->first_waiting == NULL ? &a->first_waiting : &a->last_waiting->next) = w;
    a->last_waiting = w;
    atomic_fetch_add_explicit(&r->engine->row_waits, 1, memory_order_relaxed);
    return true;
}

/* Appends the expired ones to the list that ends at `end`; returns its new end. */
static rq_write **take_expired(rq__apart_reads *a, rq_region *r, uint64_t before_ns, rq_write **end)
{
    rq_write **link = &a->first_waiting;
    a->last_waiting = NULL;
    for (rq_write *w = *link; w != NULL; w = *link) {
        r->meter.steps++;
        if (rq__batch_of(w)->waits_since_ns > before_ns) {
            link = &w->next;
            a->last_waiting = w;
            continue;
        }
        *link = w->next;
        *end = w;
        end = &w->next;
        atomic_fetch_sub_explicit(&r->engine->row_waits, 1, memory_order_relaxed);
    }
    return end;
}

rq_write *rq__apart_take_expired(rq_region *r, uint64_t before_ns)
{
    rq_write *first = NULL;
    rq_write **end = &first;
    for (rq__apart_reads *a = r->apart; a != NULL; a = a->next)
        end = take_expired(a, r, before_ns, end);
    *end = NULL;
    return first;
}

static void lock_rows(rq__apart_reads *a, rq_region *r)
{
    rq__apart_reads **last = &r->apart;
    while (*last != NULL)
        last = &(*last)->next;
    a->link = last;
    *last = a;
    a->loads = r->bulk_loads;
}

/* A batch that has waited goes on. */
static void end_wait(rq_region *r, rq_write *w)
{
    w->next = NULL;
    atomic_fetch_sub_explicit(&r->engine->row_waits, 1, memory_order_relaxed);
    rq__region_enqueue(r, &rq__batch_of(w)->list.work);
}

static void wake_gone(rq__apart_reads *a, rq_region *r)
{
    rq_write **link = &a->first_waiting;
    a->last_waiting = NULL;
    for (rq_write *w = *link, *next; w != NULL; w = next) {
        next = w->next;
        if (rq__write_has_gone(w)) {
            *link = next;
            end_wait(r, w);
        } else {
            link = &w->next;
            a->last_waiting = w;
        }
    }
}

void rq__apart_wake_gone(rq_region *r)
{
    for (rq__apart_reads *a = r->apart; a != NULL; a = a->next)
        wake_gone(a, r);
}

static void unlock_rows(rq__apart_reads *a, rq_region *r)
{
    *a->link = a->next;
    if (a->next != NULL) a->next->link = a->link;
    for (rq_write *w = a->first_waiting, *next; w != NULL; w = next) {
        next = w->next;
        end_wait(r, w);
    }
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

rq__apart_reads *rq__apart_begin(rq_region *r, rq_write *w, int64_t now_ms)
{
    rq__apart_reads *a = calloc(1, sizeof *a);
    if (a == NULL) return NULL;
    *a = (rq__apart_reads){.region = r,
                           .write = w,
                           .op = &w->ops[rq__batch_of(w)->next_op],
                           .now_ms = now_ms,
                           .task.run = run_turn};
    if (list_rows(a) != RQ_OK) {
        free(a);
        return NULL;
    }
    lock_rows(a, r);
    rq_pool_share_submit(&r->engine->apart_share, &a->task);
    return a;
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
    unlock_rows(a, r);
    atomic_fetch_sub(&r->engine->apart_bytes, a->bytes);
    rq__plan_clear(&a->plan);
    rq_read_ctx_clear(&a->ctx);
    free(a->rows);
    free(a);
}
