/* SPDX-License-Identifier: Apache-2.0 */
/* Code shared by all implementations of shared.h: names are checked here, once; a lease only grows
 * until its tenure ends; and a stripe has one write in flight. */
#include "vfs/shared.h"

#include <stdatomic.h>

#include "vfs/shared_priv.h"

static bool name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == ',' || c == '_' || c == '-' || c == ':';
}

static rq_err check(const char *what, const char *name, rq_error *why)
{
    size_t len = strlen(name), good = 0;
    while (name_char(name[good]))
        good++;
    if (len > 0 && len <= RQ_SHARED_NAME_MAX && good == len && name[0] != '.') return RQ_OK;
    return rq_fail(why, RQ_E_INVALID, "bad name of %s: \"%.200s\"", what, name);
}

/* --- tenures ------------------------------------------------------------------------------- */

rq_err rq_tenure_begin(rq_shared *s, const char *server_name, rq_tenure **ret, rq_error *why)
{
    RQ_TRY(check("a tenure", server_name, why));
    return s->tenure_begin(s, server_name, ret, why);
}

uint64_t rq_tenure_valid_until(const rq_tenure *t)
{
    return atomic_load_explicit(&t->valid_until_ns, memory_order_acquire);
}

/* It was valid until `before`. The first renewal of a tenure finds 1. */
static void note_lapse(rq_tenure *t, uint64_t before)
{
    uint64_t now = rq_shared_now_ns(t->shared);
    if (before <= 1 || now <= before) return;
    atomic_fetch_add(&t->lapses, 1);
    atomic_fetch_add(&t->lapsed_ns, now - before);
}

void rq__tenure_renewed(rq_tenure *t, uint64_t sent_ns)
{
    uint64_t until = sent_ns + RQ_LEASE_USED_NS, before = atomic_load(&t->valid_until_ns);
    while (before != 0 && before < until)
        if (atomic_compare_exchange_weak(&t->valid_until_ns, &before, until)) {
            note_lapse(t, before);
            return;
        }
}

void rq_tenure_lapses(const rq_tenure *t, uint64_t *ret_count, uint64_t *ret_ns)
{
    *ret_count = atomic_load(&t->lapses);
    *ret_ns = atomic_load(&t->lapsed_ns);
}

void rq__tenure_ended(rq_tenure *t)
{
    atomic_store(&t->valid_until_ns, 0);
}

rq_err rq__tenure_over(const rq_tenure *t, rq_error *why)
{
    if (rq_tenure_valid_until(t) != 0) return RQ_OK;
    return rq_fail(
        why, RQ_E_SERVER_ABORTED,
        "this server may no longer write its write-ahead log: another server has fenced it");
}

void rq__quiet_times_init(rq__quiet_times *q)
{
    pthread_mutex_init(&q->lock, NULL);
    q->count = 0;
}

void rq__quiet_times_clear(rq__quiet_times *q)
{
    pthread_mutex_destroy(&q->lock);
}

/* The time of the name; a new name is entered with `ns`. REQUIRES: lock held. */
static uint64_t *quiet_time(rq__quiet_times *q, const char *name, uint64_t ns)
{
    size_t kept = q->count < RQ__QUIET_MAX ? q->count : RQ__QUIET_MAX;
    for (size_t i = 0; i < kept; i++)
        if (strcmp(q->list[i].name, name) == 0) return &q->list[i].ns;
    size_t at = q->count++ % RQ__QUIET_MAX;
    memcpy(q->list[at].name, name, strlen(name) + 1);
    q->list[at].ns = ns;
    return &q->list[at].ns;
}

uint64_t rq__quiet_time(rq__quiet_times *q, const char *name, uint64_t now_ns)
{
    pthread_mutex_lock(&q->lock);
    uint64_t ns = *quiet_time(q, name, now_ns + RQ_LEASE_WAIT_NS);
    pthread_mutex_unlock(&q->lock);
    return ns;
}

void rq__quiet_note(rq__quiet_times *q, const char *name, uint64_t quiet_ns)
{
    pthread_mutex_lock(&q->lock);
    uint64_t *ns = quiet_time(q, name, quiet_ns);
    if (quiet_ns < *ns) *ns = quiet_ns;
    pthread_mutex_unlock(&q->lock);
}

rq_err rq_tenure_end(rq_tenure *t, rq_error *why)
{
    rq__tenure_ended(t); /* first: whoever sees the seal may answer reads */
    return t->shared->tenure_end(t, why);
}

void rq_tenure_free(rq_tenure *t)
{
    if (t != NULL) t->shared->tenure_free(t);
}

rq_err rq_tenure_revoke(rq_shared *s, const char *server_name, uint64_t *ret_quiet_ns,
                        rq_error *why)
{
    RQ_TRY(check("a tenure", server_name, why));
    return s->tenure_revoke(s, server_name, ret_quiet_ns, why);
}

void rq_tenure_quiet_in(rq_shared *s, const char *server_name, uint64_t in_ns)
{
    if (s->tenure_quiet == NULL || check("a tenure", server_name, NULL) != RQ_OK) return;
    uint64_t most = in_ns < RQ_LEASE_WAIT_NS ? in_ns : RQ_LEASE_WAIT_NS;
    s->tenure_quiet(s, server_name, rq_shared_now_ns(s) + most);
}

uint64_t rq_shared_now_ns(const rq_shared *s)
{
    return s->now_ns(s);
}

/* --- logs ---------------------------------------------------------------------------------- */

rq_err rq_slog_open(rq_tenure *t, uint64_t number, rq_slog **ret, rq_error *why)
{
    RQ_TRY(rq__tenure_over(t, why));
    return t->shared->slog_open(t, number, ret, why);
}

static void notify_written(rq_task *task)
{
    rq_slog_write *w = RQ_CONTAINER_OF(task, rq_slog_write, task);
    rq_slog *log = w->log;
    if (w->rc == RQ_OK)
        log->stripes[w->stripe].length = w->off + w->bytes.len;
    else
        log->stripes[w->stripe].failed = true;
    log->stripes[w->stripe].busy = false;
    w->done(w, w->rc);
}

void rq__slog_write_end(rq_slog_write *w, rq_err rc)
{
    w->rc = rc;
    w->task.run = notify_written;
    rq_lane_post(w->lane, &w->task);
}

void rq_slog_submit(rq_slog *log, rq_slog_write *w)
{
    RQ_ASSERT(w->stripe < RQ_SLOG_STRIPES && !log->stripes[w->stripe].busy);
    w->log = log;
    log->stripes[w->stripe].busy = true;
    rq_err over = rq__tenure_over(log->tenure, NULL);
    if (over == RQ_OK && log->stripes[w->stripe].failed) over = RQ_E_STATE;
    if (over == RQ_OK) RQ_ASSERT(w->off == log->stripes[w->stripe].length);
    if (over != RQ_OK)
        rq__slog_write_end(w, over);
    else
        log->tenure->shared->slog_submit(log, w);
}

void rq_slog_name(const rq_slog *log, unsigned stripe, char ret[static RQ_SLOG_NAME_MAX])
{
    log->tenure->shared->slog_name(log, stripe, ret);
}

void rq_slog_close(rq_slog *log)
{
    if (log != NULL) log->tenure->shared->slog_close(log);
}

rq_err rq_slog_drop(rq_tenure *t, uint64_t number, rq_error *why)
{
    RQ_TRY(rq__tenure_over(t, why));
    return t->shared->slog_drop(t, number, why);
}

rq_err rq_slog_lengths(rq_shared *s, const char *server_name, rq_arena *arena, rq_slog_ledger **ret,
                       size_t *ret_count, rq_error *why)
{
    RQ_TRY(check("a tenure", server_name, why));
    return s->slog_lengths(s, server_name, arena, ret, ret_count, why);
}

rq_err rq_slog_read(rq_shared *s, const char *server_name, const rq_slog_ledger *ledger,
                    unsigned stripe, uint64_t off, void *buf, size_t len, size_t *ret_len,
                    rq_error *why)
{
    RQ_TRY(check("a tenure", server_name, why));
    uint64_t sealed = stripe < RQ_SLOG_STRIPES ? ledger->lengths[stripe] : 0;
    uint64_t left = off < sealed ? sealed - off : 0;
    size_t wanted = left < len ? (size_t)left : len, found = 0;
    if (wanted > 0)
        RQ_TRY(s->slog_read(s, server_name, ledger->number, stripe, off, buf, wanted, &found, why));
    if (found != wanted)
        return rq_fail(
            why, RQ_E_CORRUPT,
            "the write-ahead log of %s: ledger %llu, stripe %u is shorter than its sealed length",
            server_name, (unsigned long long)ledger->number, stripe);
    *ret_len = found;
    return RQ_OK;
}

rq_err rq_slog_remove(rq_shared *s, const char *server_name, rq_error *why)
{
    RQ_TRY(check("a tenure", server_name, why));
    return s->slog_remove(s, server_name, why);
}

/* --- objects and sets ---------------------------------------------------------------------- */

rq_err rq_object_cas(rq_shared *s, const char *name, uint64_t expected, rq_slice bytes,
                     uint64_t *ret_generation, rq_error *why)
{
    RQ_TRY(check("an object", name, why));
    if (bytes.len > RQ_OBJECT_BYTES_MAX)
        return rq_fail(why, RQ_E_INVALID, "object %s of %zu bytes is too long", name, bytes.len);
    return s->object_cas(s, name, expected, &bytes, ret_generation, why);
}

rq_err rq_object_get(rq_shared *s, const char *name, rq_arena *arena, rq_slice *ret,
                     uint64_t *ret_generation, rq_error *why)
{
    RQ_TRY(check("an object", name, why));
    return s->object_get(s, name, arena, ret, ret_generation, why);
}

#define SWAP_TRIES 4

/* After a swap that reported a failure: RQ_OK, it succeeded after all; RQ_E_AGAIN, repeat it. */
static rq_err resolve(rq_shared *s, const char *name, uint64_t *generation, const rq_slice *bytes,
                      bool (*again)(void *ctx, rq_slice bytes), void *ctx, rq_error *why)
{
    rq_arena arena = {0};
    rq_slice found = {0};
    uint64_t now = 0;
    rq_error detail = {.code = RQ_OK};
    rq_err rc = rq_object_get(s, name, &arena, &found, &now, &detail);
    if (rc == RQ_E_NOT_FOUND || rc == RQ_OK) {
        bool applied = rc == RQ_OK && rq_slice_eq(found, *bytes);
        bool repeat = now == *generation || (rc == RQ_OK && again != NULL && again(ctx, found));
        rc = applied ? RQ_OK : repeat ? RQ_E_AGAIN : RQ_E_CONFLICT;
        if (rc != RQ_E_CONFLICT) *generation = now;
        if (rc == RQ_E_CONFLICT)
            (void)rq_fail(&detail, rc, "object %s was replaced by another server", name);
    }
    rq_arena_clear(&arena);
    return rc == RQ_OK || rc == RQ_E_AGAIN ? rc : rq_fail(why, rc, "%s", detail.message);
}

rq_err rq_object_swap(rq_shared *s, const char *name, uint64_t *generation, rq_slice bytes,
                      bool (*again)(void *ctx, rq_slice bytes), void *ctx, rq_error *why)
{
    rq_error detail = {.code = RQ_OK};
    rq_err rc = RQ_E_IO;
    for (int i = 0; i < SWAP_TRIES; i++) {
        rq_error_clear(&detail);
        rc = rq_object_cas(s, name, *generation, bytes, generation, &detail);
        if (rc == RQ_OK) return RQ_OK;
        if (rc == RQ_E_INVALID) break;
        rq_error_clear(&detail);
        rc = resolve(s, name, generation, &bytes, again, ctx, &detail);
        if (rc == RQ_OK) return RQ_OK;
        if (rc == RQ_E_CONFLICT) break;
        if (rc == RQ_E_AGAIN)
            rc = rq_fail(&detail, RQ_E_IO,
                         "object %s could not be replaced: too many attempts failed", name);
    }
    return rq_fail(why, rc, "%s", detail.message);
}

rq_err rq_object_remove(rq_shared *s, const char *name, uint64_t expected, rq_error *why)
{
    uint64_t generation;
    RQ_TRY(check("an object", name, why));
    if (expected == 0) return rq_fail(why, RQ_E_INVALID, "object %s: generation 0 is absent", name);
    return s->object_cas(s, name, expected, NULL, &generation, why);
}

rq_err rq_set_put(rq_shared *s, const char *name, const char *key, rq_error *why)
{
    RQ_TRY(check("a set", name, why));
    RQ_TRY(check("a key", key, why));
    return s->set_put(s, name, key, why);
}

rq_err rq_set_del(rq_shared *s, const char *name, const char *key, rq_error *why)
{
    RQ_TRY(check("a set", name, why));
    RQ_TRY(check("a key", key, why));
    return s->set_del(s, name, key, why);
}

rq_err rq_set_list(rq_shared *s, const char *name, rq_arena *arena, const char ***ret,
                   size_t *ret_count, rq_error *why)
{
    RQ_TRY(check("a set", name, why));
    return s->set_list(s, name, arena, ret, ret_count, why);
}

void rq_shared_free(rq_shared *s)
{
    if (s != NULL) s->free(s);
}
