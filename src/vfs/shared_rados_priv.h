/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plug-in for RADOS: shared_rados.c has the connection, the pool and sets, _object swaps, _log
 * tenures and ended logs, _append the log that is written.
 *
 * What is in the pool. Each line is one object; each operation touches one object and is atomic.
 *
 *     tenure/NAME         the head. xattr owner: "+TOKEN" while the tenure runs, "-TOKEN" once it
 *                         is revoked, ".TOKEN" once it was ended in order; the token after '-' is
 *                         that of the revoker. omap: a key for each ledger. xattr sealed and
 *                         data: the lengths
 *     log/NAME/NUMBER.K   a stripe. xattr owner: "+TOKEN", or "-" once the tenure has ended
 *     object/NAME         xattr generation; data: a record of shared_format.c
 *     set/NAME            omap: the keys
 */
#ifndef RQ_VFS_SHARED_RADOS_PRIV_H
#define RQ_VFS_SHARED_RADOS_PRIV_H

#include <rados/librados.h>

#include "vfs/shared_priv.h"
#include "vfs/shared_rados.h"

/* Bytes of one operation. The OSDs refuse 90 MB (osd_max_write_size). */
#define RQ__RADOS_BYTES_MAX (64u << 20)

/* Prefix, name, number and stripe. */
#define RQ__RADOS_NAME_MAX RQ_SLOG_NAME_MAX
/* A value of `owner`: a letter, sixteen digits, NUL. */
#define RQ__RADOS_OWNER_MAX 18

typedef struct rq__rados {
    rq_shared base;
    rq_executor *executor;
    rados_t cluster;
    rados_ioctx_t io;
    rq__quiet_times quiet_times;
} rq__rados;

typedef struct rq__rados_tenure {
    rq_tenure base;
    char name[RQ_SHARED_NAME_MAX + 1], head[RQ__RADOS_NAME_MAX];
    char owner[RQ__RADOS_OWNER_MAX];
    rq__renewals renewals;
} rq__rados_tenure;

static inline rq__rados *rq__rados_of(const rq_shared *s)
{
    return (rq__rados *)(void *)s; /* its first field */
}

/* librados' negative errno as our code. */
rq_err rq__rados_code(int rc);
RQ_NODISCARD rq_err rq__rados_result(int rc, const char *verb, const char *name, rq_error *why);
/* "+", "-" or "." and a new token. */
void rq__rados_owner_make(rq__rados *r, char state, char ret[static RQ__RADOS_OWNER_MAX]);

/* Executes a write operation and frees it. Returns librados' result: 0 or a negative errno. */
int rq__rados_write(rq__rados *r, const char *name, rados_write_op_t op);
/* The text of an extended attribute. -ENOENT: there is no such object; an attribute that is absent
 * is "". */
int rq__rados_text(rq__rados *r, const char *name, const char *attribute, char *ret, size_t size);
/* All bytes of an object, in one operation. */
RQ_NODISCARD rq_err rq__rados_read_all(rq__rados *r, const char *name, rq_arena *arena,
                                       rq_slice *ret, rq_error *why);
/* The keys of an object's omap; of an absent object: none. */
RQ_NODISCARD rq_err rq__rados_keys(rq__rados *r, const char *name, rq_arena *arena,
                                   const char ***ret, size_t *ret_count, rq_error *why);

void rq__rados_stripe_name(const char *tenure, uint64_t number, unsigned stripe,
                           char ret[static RQ__RADOS_NAME_MAX]);
/* A guarded read of the head: extends the lease, or ends the tenure. */
RQ_NODISCARD rq_err rq__rados_renew(rq__rados_tenure *t, rq_error *why);

RQ_NODISCARD rq_err rq__rados_tenure_begin(rq_shared *s, const char *name, rq_tenure **ret,
                                           rq_error *why);
RQ_NODISCARD rq_err rq__rados_tenure_end(rq_tenure *t, rq_error *why);
void rq__rados_tenure_free(rq_tenure *t);
RQ_NODISCARD rq_err rq__rados_tenure_revoke(rq_shared *s, const char *name, uint64_t *ret_quiet_ns,
                                            rq_error *why);
RQ_NODISCARD rq_err rq__rados_slog_open(rq_tenure *t, uint64_t number, rq_slog **ret,
                                        rq_error *why);
void rq__rados_slog_name(const rq_slog *log, unsigned stripe, char ret[static RQ_SLOG_NAME_MAX]);
void rq__rados_slog_submit(rq_slog *log, rq_slog_write *w);
void rq__rados_slog_close(rq_slog *log);
RQ_NODISCARD rq_err rq__rados_slog_drop(rq_tenure *t, uint64_t number, rq_error *why);
RQ_NODISCARD rq_err rq__rados_slog_lengths(rq_shared *s, const char *name, rq_arena *arena,
                                           rq_slog_ledger **ret, size_t *ret_count, rq_error *why);
RQ_NODISCARD rq_err rq__rados_slog_read(rq_shared *s, const char *name, uint64_t number,
                                        unsigned stripe, uint64_t off, void *buf, size_t len,
                                        size_t *ret_len, rq_error *why);
RQ_NODISCARD rq_err rq__rados_slog_remove(rq_shared *s, const char *name, rq_error *why);
RQ_NODISCARD rq_err rq__rados_object_cas(rq_shared *s, const char *name, uint64_t expected,
                                         const rq_slice *bytes, uint64_t *ret_generation,
                                         rq_error *why);
RQ_NODISCARD rq_err rq__rados_object_get(rq_shared *s, const char *name, rq_arena *arena,
                                         rq_slice *ret, uint64_t *ret_generation, rq_error *why);

#endif
