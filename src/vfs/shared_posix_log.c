/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tenures of the shared folder, and the ends of their logs. shared_posix_append.c writes the logs.
 *
 * The lease. A look at the guard that began at t and found it open allows answers until t + 0.95 D
 * (D = RQ_SHARED_LEASE_NS). Whoever revokes closes the guard, waits D by his own clock, and only then
 * notes the lengths. So what was synced and acknowledged under the lease lies within them. Bytes
 * that a paused server adds later lie behind them and are never read.
 *
 * The lengths are noted once, in a file that is linked: a second revoker finds it and changes nothing.
 */
#include <stdio.h>
#include <stdlib.h>

#include "vfs/shared_posix_log.h"

static void dir_of(const char *name, char ret[static RQ__DIR_MAX])
{
    snprintf(ret, RQ__DIR_MAX, "tenure/%s", name);
}

/* --- the guard ----------------------------------------------------------------------------- */

#define TOKEN_LEN 16
#define GUARD_LEN (TOKEN_LEN + 1)

static void guard_make(uint64_t token, char state, char ret[static GUARD_LEN + 1])
{
    snprintf(ret, GUARD_LEN + 1, "%016llx%c", (unsigned long long)token, state);
}

rq_err rq__folder_renew(rq__folder_tenure *t, rq_error *why)
{
    rq__folder *f = rq__folder_of(t->base.shared);
    char path[RQ__FILE_MAX], open[GUARD_LEN + 1];
    rq_arena arena = {0};
    rq_slice found;
    rq_error detail = {.code = RQ_OK};
    uint64_t sent_ns = rq_shared_now_ns(&f->base);
    snprintf(path, sizeof path, "%s/guard", t->dir);
    guard_make(t->token, '+', open);
    rq_err rc = rq_vfs_read_file(f->vfs, path, GUARD_LEN, &arena, &found, &detail);
    bool ours = rc == RQ_OK && rq_slice_eq(found, rq_slice_of(open, GUARD_LEN));
    rq_arena_clear(&arena);
    if (rc != RQ_OK && rc != RQ_E_NOT_FOUND) return rq_fail(why, rc, "%s", detail.message);
    if (ours)
        rq__tenure_renewed(&t->base, sent_ns);
    else
        rq__tenure_ended(&t->base);
    return rq__tenure_over(&t->base, why);
}

/* Overwrites the state of a guard that exists. */
static rq_err close_guard(rq__folder *f, const char *path, rq_error *why)
{
    rq_file *file;
    RQ_TRY(rq_vfs_open(f->vfs, path, RQ_OPEN_WRITE, &file, why));
    rq_err rc = rq_file_write(file, "-", 1, TOKEN_LEN, why);
    if (rc == RQ_OK) rc = rq_file_sync(file, why);
    rq_err closed = rq_file_close(file);
    return rc != RQ_OK || closed == RQ_OK ? rc : rq_fail(why, closed, "cannot close %s", path);
}

/* A tenure that was never begun gets a closed guard. */
static rq_err fence(rq__folder *f, const char *dir, rq_error *why)
{
    char path[RQ__FILE_MAX], closed[GUARD_LEN + 1];
    rq_error detail = {.code = RQ_OK};
    snprintf(path, sizeof path, "%s/guard", dir);
    rq_err rc = close_guard(f, path, &detail);
    if (rc == RQ_E_NOT_FOUND) {
        guard_make(0, '-', closed);
        rq_error_clear(&detail);
        RQ_TRY(rq_vfs_mkdirs(f->vfs, dir, why));
        rc = rq__folder_publish(f, dir, "guard", rq_slice_of(closed, GUARD_LEN), &detail);
        if (rc == RQ_E_EXISTS) return close_guard(f, path, why);
    }
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", detail.message);
}

/* --- begin and end ------------------------------------------------------------------------- */

static rq_err renew(rq__renewals *r)
{
    return rq__folder_renew(RQ_CONTAINER_OF(r, rq__folder_tenure, renewals), NULL);
}

void rq__folder_tenure_free(rq_tenure *base)
{
    rq__folder_tenure *t = (rq__folder_tenure *)base;
    rq_executor *ex = rq__folder_of(base->shared)->executor;
    rq__renewals_close(&t->renewals);
    for (unsigned i = 0; i < RQ_SLOG_STRIPES; i++)
        if (t->lanes[i] != NULL) ex->lane_free(ex, t->lanes[i]);
    free(t);
}

static rq_err make_lanes(rq__folder_tenure *t)
{
    rq_executor *ex = rq__folder_of(t->base.shared)->executor;
    for (unsigned i = 0; i < RQ_SLOG_STRIPES; i++)
        RQ_TRY(ex->lane_new(ex, "rq-slog", &t->lanes[i]));
    return rq__renewals_open(&t->renewals, ex, renew);
}

static rq_err take_name(rq__folder_tenure *t, rq_error *why)
{
    rq__folder *f = rq__folder_of(t->base.shared);
    char guard[GUARD_LEN + 1];
    guard_make(t->token, '+', guard);
    RQ_TRY(rq_vfs_mkdirs(f->vfs, t->dir, why));
    return rq__folder_publish(f, t->dir, "guard", rq_slice_of(guard, GUARD_LEN), why);
}

rq_err rq__folder_tenure_begin(rq_shared *s, const char *name, rq_tenure **ret, rq_error *why)
{
    rq__folder *f = rq__folder_of(s);
    rq__folder_tenure *t = calloc(1, sizeof *t);
    if (t == NULL) return rq_no_memory(why);
    t->base = (rq_tenure){.shared = s, .valid_until_ns = 1}; /* in the past */
    t->token = f->executor->random(f->executor);
    dir_of(name, t->dir);
    rq_err rc = make_lanes(t);
    if (rc == RQ_OK) rc = take_name(t, why);
    if (rc == RQ_OK) rc = rq__folder_renew(t, why);
    if (rc != RQ_OK) {
        rq__folder_tenure_free(&t->base);
        return rq_fail(why, rc, "cannot begin the tenure of %s", name);
    }
    rq__renewals_begin(&t->renewals);
    *ret = &t->base;
    return RQ_OK;
}

/* --- the seal ------------------------------------------------------------------------------ */

/* "N.S": sixteen hexadecimal digits, and the stripe. */
static bool parse_stripe(const char *name, uint64_t *ret_number, unsigned *ret_stripe)
{
    uint64_t n = 0;
    if (strlen(name) != 18 || name[16] != '.') return false;
    static const char digits[] = "0123456789abcdef";
    for (unsigned i = 0; i < 16; i++) {
        const char *digit = memchr(digits, name[i], 16);
        if (digit == NULL) return false;
        n = n << 4 | (uint64_t)(digit - digits);
    }
    if (name[17] < '0' || name[17] >= '0' + RQ_SLOG_STRIPES) return false;
    *ret_number = n;
    *ret_stripe = (unsigned)(name[17] - '0');
    return true;
}

/* The file's length, once that much of it is durable. */
static rq_err durable_length(rq__folder *f, const char *dir, const char *name, uint64_t *ret,
                             rq_error *why)
{
    char path[RQ__FILE_MAX];
    rq_file *file;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    RQ_TRY(rq_vfs_open(f->vfs, path, RQ_OPEN_WRITE, &file, why));
    rq_err rc = rq_file_size(file, ret, why);
    if (rc == RQ_OK) rc = rq_file_sync(file, why);
    rq_err closed = rq_file_close(file);
    return rc != RQ_OK || closed == RQ_OK ? rc : rq_fail(why, closed, "cannot close %s", path);
}

/* Entries are sorted by name, so a ledger's stripes follow each other. */
static rq_err measure(rq__folder *f, const char *dir, rq_arena *arena, rq_slog_ledger **ret,
                      size_t *ret_count, rq_error *why)
{
    rq_dir_entry *entries;
    size_t count, n = 0;
    RQ_TRY(rq_vfs_list(f->vfs, dir, arena, &entries, &count, why));
    rq_slog_ledger *ledgers = rq_arena_calloc(arena, count, sizeof *ledgers);
    if (ledgers == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < count; i++) {
        uint64_t number;
        unsigned stripe;
        if (!parse_stripe(entries[i].name, &number, &stripe)) continue;
        if (n == 0 || ledgers[n - 1].number != number) ledgers[n++].number = number;
        rq_error detail = {.code = RQ_OK};
        uint64_t *length = &ledgers[n - 1].lengths[stripe];
        rq_err rc = durable_length(f, dir, entries[i].name, length, &detail);
        if (rc == RQ_E_NOT_FOUND) /* its owner dropped the ledger (rq_slog_drop) meanwhile */
            *length = 0;
        else if (rc != RQ_OK)
            return rq_fail(why, rc, "%s", detail.message);
    }
    *ret = ledgers;
    *ret_count = n;
    return RQ_OK;
}

static rq_err seal(rq__folder *f, const char *dir, rq_error *why)
{
    rq_arena arena = {0};
    rq_slog_ledger *ledgers = NULL;
    size_t count = 0;
    rq_slice file;
    rq_error detail = {.code = RQ_OK};
    rq_err rc = rq_vfs_sync_dir(f->vfs, dir, &detail); /* the ledgers' names */
    if (rc == RQ_OK) rc = measure(f, dir, &arena, &ledgers, &count, &detail);
    if (rc == RQ_OK) rc = rq__seal_encode(&arena, ledgers, count, &file);
    if (rc == RQ_OK) rc = rq__folder_publish(f, dir, "sealed", file, &detail);
    rq_arena_clear(&arena);
    if (rc == RQ_OK || rc == RQ_E_EXISTS) return RQ_OK;
    return rq_fail(why, rc, "cannot seal %s: %s", dir, detail.message);
}

rq_err rq__folder_tenure_end(rq_tenure *base, rq_error *why)
{
    rq__folder_tenure *t = (rq__folder_tenure *)base;
    rq_error detail = {.code = RQ_OK};
    rq_err rc = seal(rq__folder_of(base->shared), t->dir, &detail);
    /* Revoked and removed. */
    return rc == RQ_OK || rc == RQ_E_NOT_FOUND ? RQ_OK : rq_fail(why, rc, "%s", detail.message);
}

static void wait_until(rq__folder *f, uint64_t then_ns)
{
    for (;;) {
        uint64_t now_ns = rq_shared_now_ns(&f->base);
        if (now_ns >= then_ns) return;
        f->executor->sleep(f->executor, then_ns - now_ns);
    }
}

/* RQ_E_NOT_FOUND: the log was ended and removed meanwhile. */
static rq_err revoke(rq__folder *f, const char *dir, rq_error *why)
{
    bool sealed;
    RQ_TRY(rq__folder_has(f, dir, "sealed", &sealed, why));
    if (sealed) return rq_vfs_sync_dir(f->vfs, dir, why);
    RQ_TRY(fence(f, dir, why));
    wait_until(f, rq_shared_now_ns(&f->base) + RQ_LEASE_WAIT_NS);
    return seal(f, dir, why);
}

rq_err rq__folder_tenure_revoke(rq_shared *s, const char *name, uint64_t *ret_quiet_ns,
                                rq_error *why)
{
    char dir[RQ__DIR_MAX];
    rq_error detail = {.code = RQ_OK};
    dir_of(name, dir);
    rq_err rc = revoke(rq__folder_of(s), dir, &detail);
    if (rc != RQ_OK && rc != RQ_E_NOT_FOUND) return rq_fail(why, rc, "%s", detail.message);
    *ret_quiet_ns = rq_shared_now_ns(s);
    return RQ_OK;
}

/* --- ended logs ---------------------------------------------------------------------------- */

rq_err rq__folder_slog_lengths(rq_shared *s, const char *name, rq_arena *arena,
                               rq_slog_ledger **ret, size_t *ret_count, rq_error *why)
{
    rq__folder *f = rq__folder_of(s);
    char dir[RQ__DIR_MAX], path[RQ__FILE_MAX];
    bool sealed, begun;
    rq_slice file;
    dir_of(name, dir);
    snprintf(path, sizeof path, "%s/sealed", dir);
    RQ_TRY(rq__folder_has(f, dir, "guard", &begun, why));
    RQ_TRY(rq__folder_has(f, dir, "sealed", &sealed, why));
    if (!sealed && !begun) return rq_fail(why, RQ_E_NOT_FOUND, "there is no tenure of %s", name);
    if (!sealed) return rq_fail(why, RQ_E_STATE, "the tenure of %s has not ended", name);
    RQ_TRY(rq_vfs_sync_dir(f->vfs, dir, why));
    RQ_TRY(rq_vfs_read_file(f->vfs, path, SIZE_MAX, arena, &file, why));
    return rq__seal_decode(file, arena, ret, ret_count, why);
}

rq_err rq__folder_slog_read(rq_shared *s, const char *name, uint64_t number, unsigned stripe,
                            uint64_t off, void *buf, size_t len, size_t *ret_len, rq_error *why)
{
    char dir[RQ__DIR_MAX], path[RQ__FILE_MAX];
    rq_file *file;
    dir_of(name, dir);
    rq__folder_stripe_path(dir, number, stripe, path);
    RQ_TRY(rq_vfs_open(rq__folder_of(s)->vfs, path, RQ_OPEN_READ, &file, why));
    rq_err rc = rq_file_read(file, buf, len, off, ret_len, why);
    (void)rq_file_close(file); /* nothing was written */
    return rc;
}

/* The guard is removed first: a log with a guard and without a seal has not ended. The seal, last
 * by name, is removed after the ledgers that it lists. */
rq_err rq__folder_slog_remove(rq_shared *s, const char *name, rq_error *why)
{
    rq__folder *f = rq__folder_of(s);
    char dir[RQ__DIR_MAX], path[RQ__FILE_MAX];
    bool sealed, begun;
    dir_of(name, dir);
    snprintf(path, sizeof path, "%s/guard", dir);
    RQ_TRY(rq__folder_has(f, dir, "guard", &begun, why));
    RQ_TRY(rq__folder_has(f, dir, "sealed", &sealed, why));
    if (begun && !sealed) return rq_fail(why, RQ_E_STATE, "the tenure of %s has not ended", name);
    rq_error detail = {.code = RQ_OK};
    rq_err rc = begun ? rq_vfs_remove(f->vfs, path, &detail) : RQ_OK;
    if (rc == RQ_OK && begun) rc = rq_vfs_sync_dir(f->vfs, dir, &detail);
    if (rc == RQ_OK || rc == RQ_E_NOT_FOUND) {
        rq_error_clear(&detail);
        rc = rq_vfs_remove_tree(f->vfs, dir, &detail);
    }
    /* EXISTS: another server put a fence into the folder meanwhile. NOT_FOUND: another one removed
     * the folder. */
    if (rc == RQ_E_EXISTS)
        return rq_fail(why, RQ_E_STATE, "the right of %s to write its log is being revoked", name);
    if (rc != RQ_OK && rc != RQ_E_NOT_FOUND) return rq_fail(why, rc, "%s", detail.message);
    return begun || sealed ? rq_vfs_sync_dir(f->vfs, "tenure", why) : RQ_OK;
}
