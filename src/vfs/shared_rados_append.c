/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log that a tenure writes. An append compares the stripe's owner and writes, in one operation. The
 * write has an explicit offset, because librados may send the operation twice.
 *
 * librados copies the bytes, so a write may end by a time-out while they are still being sent. They
 * may arrive later, up to the fence; the stripe accepts no more writes.
 */
#include "vfs/shared_rados_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OWNER "owner"

/* What is in flight on a stripe. */
typedef struct flight {
    rq_slog_write *write;
    rados_completion_t completion;
    uint64_t sent_ns;
} flight;

typedef struct rados_slog {
    rq_slog base;
    flight flights[RQ_SLOG_STRIPES];
    char names[RQ_SLOG_STRIPES][RQ__RADOS_NAME_MAX];
} rados_slog;

/* --- a new ledger ------------------------------------------------------------------------- */

/* An existing number may be our own if an answer was lost; using another number does no harm. */
static rq_err add_ledger(rq__rados_tenure *t, uint64_t number, rq_error *why)
{
    char key[20];
    int compared = 0;
    snprintf(key, sizeof key, "%016llx", (unsigned long long)number);
    const char *keys = key, *values = "s";
    size_t key_len = strlen(key), value_len = 1;
    rados_write_op_t op = rados_create_write_op();
    rados_write_op_assert_exists(op);
    rados_write_op_cmpxattr(op, OWNER, LIBRADOS_CMPXATTR_OP_EQ, t->owner, strlen(t->owner));
    rados_write_op_omap_cmp2(op, key, LIBRADOS_CMPXATTR_OP_EQ, "", key_len, 0, &compared);
    rados_write_op_omap_set2(op, &keys, &values, &key_len, &value_len, 1);
    int rc = rq__rados_write(rq__rados_of(t->base.shared), t->head, op);
    if (rc == -ENOENT || rc == -ECANCELED) {
        RQ_TRY(rq__rados_renew(t, why));
        return rq_fail(why, RQ_E_EXISTS, "ledger %llu exists already", (unsigned long long)number);
    }
    return rq__rados_result(rc, "append a ledger to", t->head, why);
}

/* An existing stripe was made by the revoker of the tenure, or by us if a response was lost. Only the stripe's owner
 * tells which: if the owner cannot be read now, the tenure does not count as ended. */
static rq_err create_stripe(rq__rados_tenure *t, const char *name, rq_error *why)
{
    rq__rados *r = rq__rados_of(t->base.shared);
    char owner[RQ__RADOS_OWNER_MAX];
    rados_write_op_t op = rados_create_write_op();
    rados_write_op_create(op, LIBRADOS_CREATE_EXCLUSIVE, NULL);
    rados_write_op_setxattr(op, OWNER, t->owner, strlen(t->owner));
    int rc = rq__rados_write(r, name, op);
    if (rc != -EEXIST) return rq__rados_result(rc, "create", name, why);
    rc = rq__rados_text(r, name, OWNER, owner, sizeof owner);
    if (rc < 0 && rc != -ENOENT) return rq__rados_result(rc, "read the owner of", name, why);
    if (rc > 0 && strcmp(owner, t->owner) == 0) return RQ_OK;
    rq__tenure_ended(&t->base);
    return rq__tenure_over(&t->base, why);
}

void rq__rados_slog_name(const rq_slog *log, unsigned stripe, char ret[static RQ_SLOG_NAME_MAX])
{
    const rq__rados_tenure *t = (const rq__rados_tenure *)log->tenure;
    rq__rados_stripe_name(t->name, log->number, stripe, ret);
}

void rq__rados_slog_close(rq_slog *base)
{
    free((rados_slog *)base);
}

/* The log may have been revoked and removed before a stripe was made: then no server would look for
 * bytes written there. If the head is still ours after the stripes were made, a later fence finds
 * them. */
static rq_err make_stripes(rq__rados_tenure *t, rados_slog *log, rq_error *why)
{
    for (unsigned k = 0; k < RQ_SLOG_STRIPES; k++) {
        rq__rados_stripe_name(t->name, log->base.number, k, log->names[k]);
        RQ_TRY(create_stripe(t, log->names[k], why));
    }
    return rq__rados_renew(t, why);
}

rq_err rq__rados_slog_open(rq_tenure *base, uint64_t number, rq_slog **ret, rq_error *why)
{
    rq__rados_tenure *t = (rq__rados_tenure *)base;
    rados_slog *log = calloc(1, sizeof *log);
    if (log == NULL) return rq_no_memory(why);
    log->base = (rq_slog){.tenure = base, .number = number};
    rq_err rc = add_ledger(t, number, why);
    if (rc == RQ_OK) rc = make_stripes(t, log, why);
    if (rc == RQ_OK)
        *ret = &log->base;
    else
        rq__rados_slog_close(&log->base);
    return rc;
}

/* --- appends ------------------------------------------------------------------------------- */

static rq_err outcome(rq_tenure *t, const flight *f, int rc)
{
    if (rc == -ECANCELED || rc == -ENOENT) {
        rq__tenure_ended(t);
        return RQ_E_SERVER_ABORTED;
    }
    if (rc >= 0) rq__tenure_renewed(t, f->sent_ns);
    return rq__rados_code(rc);
}

/* On a thread of librados. */
static void answered(rados_completion_t completion, void *ctx)
{
    flight *f = ctx;
    rq_slog_write *w = f->write;
    rq_err rc = outcome(w->log->tenure, f, rados_aio_get_return_value(completion));
    rados_aio_release(completion);
    rq__slog_write_end(w, rc); /* the log may be freed from here on */
}

static int send_append(rados_slog *log, rq_slog_write *w, flight *f)
{
    rq__rados_tenure *t = (rq__rados_tenure *)log->base.tenure;
    rados_write_op_t op = rados_create_write_op();
    rados_write_op_assert_exists(op);
    rados_write_op_cmpxattr(op, OWNER, LIBRADOS_CMPXATTR_OP_EQ, t->owner, strlen(t->owner));
    rados_write_op_write(op, (const char *)w->bytes.ptr, w->bytes.len, w->off);
    f->sent_ns = rq_shared_now_ns(t->base.shared);
    int rc = rados_aio_write_op_operate(op, rq__rados_of(t->base.shared)->io, f->completion,
                                        log->names[w->stripe], NULL, LIBRADOS_OPERATION_NOFLAG);
    rados_release_write_op(op);
    return rc;
}

void rq__rados_slog_submit(rq_slog *base, rq_slog_write *w)
{
    rados_slog *log = (rados_slog *)base;
    flight *f = &log->flights[w->stripe];
    f->write = w;
    if (w->bytes.len > RQ__RADOS_BYTES_MAX) {
        rq__slog_write_end(w, RQ_E_INVALID);
        return;
    }
    int rc = rados_aio_create_completion2(f, answered, &f->completion);
    if (rc >= 0) {
        rados_completion_t completion = f->completion;
        rc = send_append(log, w, f);
        if (rc < 0) rados_aio_release(completion); /* `answered` is not called */
    }
    if (rc < 0) rq__slog_write_end(w, rq__rados_code(rc));
}
