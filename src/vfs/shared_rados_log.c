/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tenures on RADOS, and the logs of ended ones. The fence, in this order:
 *
 *  1. The head's owner is replaced: from here on the tenure has no new ledger and no renewal.
 *  2. Each stripe of each ledger gets the owner "-", in an operation of its own; one that is missing
 *     is made, so that the writer cannot make it. Since each append compares the owner in the same
 *     operation, none that is executed after this one succeeds. Many stripes at the same time: each operation waits
 *     for the disks of several OSDs.
 *  3. The lengths are read, which no longer change, and written to the head once.
 *
 * Every step may be repeated, by any server, after any of the others. Later steps that compare the
 * head compare the whole value of `owner`: a head that was removed and made again has another.
 */
#include "vfs/shared_rados_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OWNER "owner"
#define SEALED "sealed"
#define NOBODY "-"

/* Each turn means that another server has changed the head. */
#define TRIES_MAX 16

static void head_name(const char *tenure, char ret[static RQ__RADOS_NAME_MAX])
{
    snprintf(ret, RQ__RADOS_NAME_MAX, "tenure/%s", tenure);
}

void rq__rados_stripe_name(const char *tenure, uint64_t number, unsigned stripe,
                           char ret[static RQ__RADOS_NAME_MAX])
{
    snprintf(ret, RQ__RADOS_NAME_MAX, "log/%s/%016llx.%u", tenure, (unsigned long long)number,
             stripe);
}

/* --- the lease ----------------------------------------------------------------------------- */

rq_err rq__rados_renew(rq__rados_tenure *t, rq_error *why)
{
    rq__rados *r = rq__rados_of(t->base.shared);
    uint64_t sent_ns = rq_shared_now_ns(t->base.shared);
    rados_read_op_t op = rados_create_read_op();
    rados_read_op_assert_exists(op);
    rados_read_op_cmpxattr(op, OWNER, LIBRADOS_CMPXATTR_OP_EQ, t->owner, strlen(t->owner));
    int rc = rados_read_op_operate(op, r->io, t->head, LIBRADOS_OPERATION_NOFLAG);
    rados_release_read_op(op);
    if (rc == -ECANCELED || rc == -ENOENT)
        rq__tenure_ended(&t->base);
    else if (rc >= 0)
        rq__tenure_renewed(&t->base, sent_ns);
    else
        return rq__rados_result(rc, "read", t->head, why);
    return rq__tenure_over(&t->base, why);
}

static rq_err renew(rq__renewals *r)
{
    return rq__rados_renew(RQ_CONTAINER_OF(r, rq__rados_tenure, renewals), NULL);
}

void rq__rados_tenure_free(rq_tenure *base)
{
    rq__rados_tenure *t = (rq__rados_tenure *)base;
    rq__renewals_close(&t->renewals);
    free(t);
}

/* --- the beginning ------------------------------------------------------------------------- */

/* If the name exists already, an earlier attempt of ours may have made it and its answer was lost; the owner attribute tells.
 * If the owner cannot be read now, that error is returned, and not that the name is taken. */
static rq_err take_name(rq__rados_tenure *t, rq_error *why)
{
    rq__rados *r = rq__rados_of(t->base.shared);
    char owner[RQ__RADOS_OWNER_MAX];
    rados_write_op_t op = rados_create_write_op();
    rados_write_op_create(op, LIBRADOS_CREATE_EXCLUSIVE, NULL);
    rados_write_op_setxattr(op, OWNER, t->owner, strlen(t->owner));
    int rc = rq__rados_write(r, t->head, op);
    if (rc >= 0) return RQ_OK;
    int found = rq__rados_text(r, t->head, OWNER, owner, sizeof owner);
    if (found < 0 && found != -ENOENT)
        return rq__rados_result(found, "read the owner of", t->head, why);
    if (found > 0 && strcmp(owner, t->owner) == 0) return RQ_OK;
    if (found > 0) rc = -EEXIST;
    return rq__rados_result(rc, "create", t->head, why);
}

rq_err rq__rados_tenure_begin(rq_shared *s, const char *name, rq_tenure **ret, rq_error *why)
{
    rq__rados *r = rq__rados_of(s);
    rq__rados_tenure *t = calloc(1, sizeof *t);
    if (t == NULL) return rq_no_memory(why);
    t->base = (rq_tenure){.shared = s, .valid_until_ns = 1}; /* in the past */
    memcpy(t->name, name, strlen(name) + 1);
    head_name(name, t->head);
    rq__rados_owner_make(r, '+', t->owner);
    if (rq__renewals_open(&t->renewals, r->executor, renew) != RQ_OK) {
        free(t);
        return rq_no_memory(why);
    }
    rq_err rc = take_name(t, why);
    if (rc == RQ_OK) rc = rq__rados_renew(t, why);
    if (rc != RQ_OK) {
        rq__rados_tenure_free(&t->base);
        return rc;
    }
    rq__renewals_begin(&t->renewals);
    *ret = &t->base;
    return RQ_OK;
}

/* --- the fence ----------------------------------------------------------------------------- */

typedef struct fencing {
    rq__rados *r;
    const char *name;
    const char *own; /* the owner who ends in order; NULL: any server */
    char head[RQ__RADOS_NAME_MAX];
    char owner[RQ__RADOS_OWNER_MAX]; /* the head's, once it is fenced */
    bool sealed;
    rq_arena arena;
    rq_slog_ledger *ledgers;
    size_t count;
} fencing;

/* Makes a head for a name that was never taken, so that it cannot be taken any more. */
static int make_fenced(fencing *f)
{
    rados_write_op_t op = rados_create_write_op();
    rq__rados_owner_make(f->r, '-', f->owner);
    rados_write_op_create(op, LIBRADOS_CREATE_EXCLUSIVE, NULL);
    rados_write_op_setxattr(op, OWNER, f->owner, strlen(f->owner));
    return rq__rados_write(f->r, f->head, op);
}

static int replace_owner(fencing *f, const char *seen)
{
    rados_write_op_t op = rados_create_write_op();
    bool own = f->own != NULL && strcmp(seen, f->own) == 0;
    rq__rados_owner_make(f->r, own ? '.' : '-', f->owner);
    rados_write_op_assert_exists(op);
    rados_write_op_cmpxattr(op, OWNER, LIBRADOS_CMPXATTR_OP_EQ, seen, strlen(seen));
    rados_write_op_setxattr(op, OWNER, f->owner, strlen(f->owner));
    return rq__rados_write(f->r, f->head, op);
}

/* Reads the head, and changes it if its tenure is open. *ret_again: another server has changed it
 * meanwhile. */
static rq_err fence_once(fencing *f, bool *ret_again, rq_error *why)
{
    char seen[RQ__RADOS_OWNER_MAX];
    int rc = rq__rados_text(f->r, f->head, OWNER, seen, sizeof seen);
    *ret_again = false;
    if (rc == -ENOENT && f->own != NULL)
        return rq_fail(why, RQ_E_NOT_FOUND, "the log of %s was removed", f->name);
    if (rc == -ENOENT)
        rc = make_fenced(f);
    else if (rc >= 0 && seen[0] == '+')
        rc = replace_owner(f, seen);
    else if (rc >= 0)
        memcpy(f->owner, seen, sizeof seen);
    *ret_again = rc == -EEXIST || rc == -ECANCELED || rc == -ENOENT;
    return *ret_again ? RQ_OK : rq__rados_result(rc, "fence", f->head, why);
}

static rq_err fence_head(fencing *f, rq_error *why)
{
    bool again = true;
    for (unsigned i = 0; i < TRIES_MAX && again; i++)
        RQ_TRY(fence_once(f, &again, why));
    if (again)
        return rq_fail(why, RQ_E_IO, "Ceph: %s changed during every attempt to read it", f->head);
    if (f->owner[0] != '-' && f->owner[0] != '.')
        return rq_fail(why, RQ_E_CORRUPT, "Ceph: the owner of %s is \"%s\"", f->head, f->owner);
    char sealed[4];
    int rc = rq__rados_text(f->r, f->head, SEALED, sealed, sizeof sealed);
    f->sealed = rc > 0;
    if (rc == -ENOENT) return rq_fail(why, RQ_E_NOT_FOUND, "the log of %s was removed", f->name);
    return rq__rados_result(rc, "read", f->head, why);
}

/* Sixteen hexadecimal digits. */
static bool parse_number(const char *key, uint64_t *ret)
{
    char *end;
    *ret = strtoull(key, &end, 16);
    return strlen(key) == 16 && strspn(key, "0123456789abcdef") == 16 && *end == '\0';
}

/* Ledgers cannot change any more. Keys of equal length are in order of their numbers. */
static rq_err list_ledgers(fencing *f, rq_error *why)
{
    const char **keys;
    RQ_TRY(rq__rados_keys(f->r, f->head, &f->arena, &keys, &f->count, why));
    f->ledgers = rq_arena_calloc(&f->arena, f->count, sizeof *f->ledgers);
    if (f->ledgers == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < f->count; i++)
        if (!parse_number(keys[i], &f->ledgers[i].number))
            return rq_fail(why, RQ_E_CORRUPT, "Ceph: %s has a ledger \"%s\"", f->head, keys[i]);
    return RQ_OK;
}

#define STRIPES_AT_ONCE 64

/* An operation on a stripe. */
typedef struct stripe_op {
    char name[RQ__RADOS_NAME_MAX];
    rados_completion_t completion;
    int rc; /* negative: it was not sent, or failed */
    uint64_t length;
    time_t changed;
} stripe_op;

static int send_fence(const fencing *f, stripe_op *o)
{
    rados_write_op_t op = rados_create_write_op();
    rados_write_op_create(op, LIBRADOS_CREATE_IDEMPOTENT, NULL);
    rados_write_op_setxattr(op, OWNER, NOBODY, strlen(NOBODY));
    int rc = rados_aio_write_op_operate(op, f->r->io, o->completion, o->name, NULL,
                                        LIBRADOS_OPERATION_NOFLAG);
    rados_release_write_op(op);
    return rc;
}

static int send_stat(const fencing *f, stripe_op *o)
{
    return rados_aio_stat(f->r->io, o->name, o->completion, &o->length, &o->changed);
}

static void begin_op(const fencing *f, stripe_op *o, int (*send)(const fencing *f, stripe_op *o))
{
    o->rc = rados_aio_create_completion2(NULL, NULL, &o->completion);
    if (o->rc < 0) return;
    o->rc = send(f, o);
    if (o->rc < 0) rados_aio_release(o->completion);
}

static void end_op(stripe_op *o)
{
    if (o->rc < 0) return;
    (void)rados_aio_wait_for_complete(o->completion);
    o->rc = rados_aio_get_return_value(o->completion);
    rados_aio_release(o->completion);
}

/* Sends all operations, then waits for all of them. Returns the first failure. */
static rq_err operate(const fencing *f, stripe_op *list, size_t count, const char *verb,
                      int (*send)(const fencing *f, stripe_op *o), rq_error *why)
{
    rq_err first = RQ_OK;
    for (size_t i = 0; i < count; i++)
        begin_op(f, &list[i], send);
    for (size_t i = 0; i < count; i++) {
        end_op(&list[i]);
        if (first == RQ_OK) first = rq__rados_result(list[i].rc, verb, list[i].name, why);
    }
    return first;
}

/* Of all stripes, `count` from the number `from`. RQ_E_NOT_FOUND: all was removed meanwhile. */
static rq_err fence_some(const fencing *f, size_t from, size_t count, stripe_op *list,
                         rq_error *why)
{
    for (size_t i = 0; i < count; i++)
        rq__rados_stripe_name(f->name, f->ledgers[(from + i) / RQ_SLOG_STRIPES].number,
                              (unsigned)((from + i) % RQ_SLOG_STRIPES), list[i].name);
    RQ_TRY(operate(f, list, count, "fence", send_fence, why));
    RQ_TRY(operate(f, list, count, "measure", send_stat, why));
    for (size_t i = 0; i < count; i++)
        f->ledgers[(from + i) / RQ_SLOG_STRIPES].lengths[(from + i) % RQ_SLOG_STRIPES] =
            list[i].length;
    return RQ_OK;
}

static rq_err fence_stripes(fencing *f, rq_error *why)
{
    size_t all = f->count * RQ_SLOG_STRIPES;
    stripe_op *list = rq_arena_calloc(&f->arena, STRIPES_AT_ONCE, sizeof *list);
    if (list == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < all; i += STRIPES_AT_ONCE)
        RQ_TRY(fence_some(f, i, all - i < STRIPES_AT_ONCE ? all - i : STRIPES_AT_ONCE, list, why));
    return RQ_OK;
}

/* The first seal stays; a second one would say the same. */
static rq_err seal_head(fencing *f, rq_error *why)
{
    rq_slice file;
    if (rq__seal_encode(&f->arena, f->ledgers, f->count, &file) != RQ_OK) return rq_no_memory(why);
    rados_write_op_t op = rados_create_write_op();
    rados_write_op_assert_exists(op);
    rados_write_op_cmpxattr(op, OWNER, LIBRADOS_CMPXATTR_OP_EQ, f->owner, strlen(f->owner));
    rados_write_op_cmpxattr(op, SEALED, LIBRADOS_CMPXATTR_OP_EQ, "", 0);
    rados_write_op_setxattr(op, SEALED, "1", 1);
    rados_write_op_write_full(op, (const char *)file.ptr, file.len);
    int rc = rq__rados_write(f->r, f->head, op);
    if (rc != -ECANCELED) return rq__rados_result(rc, "seal", f->head, why);
    char owner[RQ__RADOS_OWNER_MAX];
    rc = rq__rados_text(f->r, f->head, OWNER, owner, sizeof owner);
    RQ_TRY(rq__rados_result(rc, "read", f->head, why));
    if (strcmp(owner, f->owner) == 0) return RQ_OK; /* sealed already */
    return rq_fail(why, RQ_E_NOT_FOUND, "the log of %s was removed", f->name);
}

static int remove_object(rq__rados *r, const char *name)
{
    int rc = rados_remove(r->io, name);
    return rc == -ENOENT ? 0 : rc;
}

static rq_err remove_stripes(fencing *f, rq_error *why)
{
    for (size_t i = 0; i < f->count; i++)
        for (unsigned k = 0; k < RQ_SLOG_STRIPES; k++) {
            char name[RQ__RADOS_NAME_MAX];
            rq__rados_stripe_name(f->name, f->ledgers[i].number, k, name);
            RQ_TRY(rq__rados_result(remove_object(f->r, name), "remove", name, why));
        }
    return RQ_OK;
}

static rq_err fence_all(fencing *f, rq_error *why)
{
    RQ_TRY(fence_head(f, why));
    if (f->sealed) return RQ_OK;
    RQ_TRY(list_ledgers(f, why));
    RQ_TRY(fence_stripes(f, why));
    return seal_head(f, why);
}

/* RQ_E_NOT_FOUND: the log was ended and removed meanwhile. `why` is not NULL. */
static rq_err fence(rq_shared *s, const char *name, const char *own, bool *ret_closed,
                    rq_error *why)
{
    fencing f = {.r = rq__rados_of(s), .name = name, .own = own};
    head_name(name, f.head);
    rq_err rc = fence_all(&f, why);
    *ret_closed = f.owner[0] == '.';
    if (rc == RQ_E_NOT_FOUND) {
        /* Stripes that this one made after they had been removed. */
        rq_err removed = remove_stripes(&f, NULL);
        if (removed != RQ_OK) {
            rq_error_clear(why);
            rc = rq_fail(why, removed, "Ceph: cannot remove stripes of %s", name);
        }
    }
    rq_arena_clear(&f.arena);
    return rc;
}

rq_err rq__rados_tenure_end(rq_tenure *base, rq_error *why)
{
    rq__rados_tenure *t = (rq__rados_tenure *)base;
    bool closed;
    rq_error detail = {.code = RQ_OK};
    rq_err rc = fence(base->shared, t->name, t->owner, &closed, &detail);
    /* Revoked and removed. */
    return rc == RQ_OK || rc == RQ_E_NOT_FOUND ? RQ_OK : rq_fail(why, rc, "%s", detail.message);
}

rq_err rq__rados_tenure_revoke(rq_shared *s, const char *name, uint64_t *ret_quiet_ns,
                               rq_error *why)
{
    bool closed;
    rq_error detail = {.code = RQ_OK};
    rq_err rc = fence(s, name, NULL, &closed, &detail);
    if (rc != RQ_OK && rc != RQ_E_NOT_FOUND) return rq_fail(why, rc, "%s", detail.message);
    uint64_t now = rq_shared_now_ns(s);
    *ret_quiet_ns = closed ? now : rq__quiet_time(&rq__rados_of(s)->quiet_times, name, now);
    return RQ_OK;
}

/* --- a ledger of one's own ------------------------------------------------------------------ */

/* Executes an operation that compares the owner. *ret_ended: the tenure has ended. An absent stripe is no
 * error; the head exists as long as the tenure. */
static rq_err guarded(rq__rados_tenure *t, const char *name, rados_write_op_t op, bool *ret_ended,
                      rq_error *why)
{
    int rc = rq__rados_write(rq__rados_of(t->base.shared), name, op);
    bool gone = rc == -ENOENT;
    *ret_ended = rc == -ECANCELED || (gone && name == t->head);
    return *ret_ended || gone ? RQ_OK : rq__rados_result(rc, "remove", name, why);
}

static void guard(const rq__rados_tenure *t, rados_write_op_t op)
{
    rados_write_op_assert_exists(op);
    rados_write_op_cmpxattr(op, OWNER, LIBRADOS_CMPXATTR_OP_EQ, t->owner, strlen(t->owner));
}

/* Removes a ledger: first its stripes, then its key in the head, so that a ledger without a key
 * has no stripes. A fence in between creates the missing stripes again, empty. */
rq_err rq__rados_slog_drop(rq_tenure *base, uint64_t number, rq_error *why)
{
    rq__rados_tenure *t = (rq__rados_tenure *)base;
    bool ended = false;
    char name[RQ__RADOS_NAME_MAX], key[17];
    const char *keys = key;
    size_t key_len = 16;
    for (unsigned k = 0; k < RQ_SLOG_STRIPES && !ended; k++) {
        rq__rados_stripe_name(t->name, number, k, name);
        rados_write_op_t op = rados_create_write_op();
        guard(t, op);
        rados_write_op_remove(op);
        RQ_TRY(guarded(t, name, op, &ended, why));
    }
    if (!ended) {
        snprintf(key, sizeof key, "%016llx", (unsigned long long)number);
        rados_write_op_t op = rados_create_write_op();
        guard(t, op);
        rados_write_op_omap_rm_keys2(op, &keys, &key_len, 1);
        RQ_TRY(guarded(t, t->head, op, &ended, why));
    }
    if (ended) rq__tenure_ended(base);
    return ended ? rq__tenure_over(base, why) : RQ_OK;
}

/* --- ended logs ---------------------------------------------------------------------------- */

rq_err rq__rados_slog_lengths(rq_shared *s, const char *name, rq_arena *arena, rq_slog_ledger **ret,
                              size_t *ret_count, rq_error *why)
{
    rq__rados *r = rq__rados_of(s);
    char head[RQ__RADOS_NAME_MAX], sealed[4];
    rq_slice file;
    head_name(name, head);
    int rc = rq__rados_text(r, head, SEALED, sealed, sizeof sealed);
    if (rc == -ENOENT) return rq_fail(why, RQ_E_NOT_FOUND, "there is no tenure of %s", name);
    if (rc == 0) return rq_fail(why, RQ_E_STATE, "the tenure of %s has not ended", name);
    RQ_TRY(rq__rados_result(rc, "read", head, why));
    RQ_TRY(rq__rados_read_all(r, head, arena, &file, why));
    return rq__seal_decode(file, arena, ret, ret_count, why);
}

#define READ_MAX (4u << 20)

rq_err rq__rados_slog_read(rq_shared *s, const char *name, uint64_t number, unsigned stripe,
                           uint64_t off, void *buf, size_t len, size_t *ret_len, rq_error *why)
{
    char object[RQ__RADOS_NAME_MAX];
    rq__rados_stripe_name(name, number, stripe, object);
    *ret_len = 0;
    while (*ret_len < len) {
        size_t wanted = len - *ret_len < READ_MAX ? len - *ret_len : READ_MAX;
        int rc =
            rados_read(rq__rados_of(s)->io, object, (char *)buf + *ret_len, wanted, off + *ret_len);
        RQ_TRY(rq__rados_result(rc, "read", object, why));
        if (rc == 0) break;
        *ret_len += (size_t)rc;
    }
    return RQ_OK;
}

/* The head is removed last, so that objects left after a failure are found again. */
rq_err rq__rados_slog_remove(rq_shared *s, const char *name, rq_error *why)
{
    fencing f = {.r = rq__rados_of(s), .name = name};
    char sealed[4];
    head_name(name, f.head);
    int rc = rq__rados_text(f.r, f.head, SEALED, sealed, sizeof sealed);
    if (rc == -ENOENT) return RQ_OK;
    if (rc == 0) return rq_fail(why, RQ_E_STATE, "the tenure of %s has not ended", name);
    RQ_TRY(rq__rados_result(rc, "read", f.head, why));
    rq_err done = list_ledgers(&f, why);
    if (done == RQ_OK) done = remove_stripes(&f, why);
    rq_arena_clear(&f.arena);
    RQ_TRY(done);
    rados_write_op_t op = rados_create_write_op();
    rados_write_op_assert_exists(op);
    rados_write_op_cmpxattr(op, SEALED, LIBRADOS_CMPXATTR_OP_EQ, "1", 1);
    rados_write_op_remove(op);
    rc = rq__rados_write(f.r, f.head, op);
    /* CANCELED: another server has removed it, and a revoke has made it again. */
    if (rc == -ENOENT || rc == -ECANCELED) rc = 0;
    return rq__rados_result(rc, "remove", f.head, why);
}
