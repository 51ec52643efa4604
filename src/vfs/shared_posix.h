/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the shared folder (shared_posix.c): logs in shared_posix_log.c, objects and sets in
 * shared_posix_object.c. */
#ifndef RQ_VFS_SHARED_POSIX_H
#define RQ_VFS_SHARED_POSIX_H

#include "vfs/shared_priv.h"
#include "vfs/vfs.h"

#define RQ__DIR_MAX (RQ_SHARED_NAME_MAX + 16)                /* of "object/NAME" */
#define RQ__FILE_MAX (RQ__DIR_MAX + RQ_SHARED_NAME_MAX + 32) /* of a file in it */

typedef struct rq__folder {
    rq_shared base;
    rq_vfs *vfs; /* borrowed */
    rq_executor *executor;
    uint64_t (*clock)(void *ctx);
    void *clock_ctx;
} rq__folder;

static inline rq__folder *rq__folder_of(rq_shared *s)
{
    return (rq__folder *)s;
}

/* Creates DIR/NAME with all its bytes, or RQ_E_EXISTS; durable when this returns either of them.
 * RQ_E_NOT_FOUND: DIR is absent, or another server removed its temporary files meanwhile. */
RQ_NODISCARD rq_err rq__folder_publish(rq__folder *f, const char *dir, const char *name,
                                       rq_slice bytes, rq_error *why);
#define RQ__TEMPORARY "tmp-" /* how the names of temporary files begin */

/* Whether DIR/NAME exists. */
RQ_NODISCARD rq_err rq__folder_has(rq__folder *f, const char *dir, const char *name, bool *ret,
                                   rq_error *why);

/* The functions of shared.h. */
RQ_NODISCARD rq_err rq__folder_tenure_begin(rq_shared *s, const char *name, rq_tenure **ret,
                                            rq_error *why);
RQ_NODISCARD rq_err rq__folder_tenure_end(rq_tenure *t, rq_error *why);
void rq__folder_tenure_free(rq_tenure *t);
RQ_NODISCARD rq_err rq__folder_tenure_revoke(rq_shared *s, const char *name, uint64_t *ret_quiet_ns,
                                             rq_error *why);
RQ_NODISCARD rq_err rq__folder_slog_lengths(rq_shared *s, const char *name, rq_arena *arena,
                                            rq_slog_ledger **ret, size_t *ret_count, rq_error *why);
RQ_NODISCARD rq_err rq__folder_slog_read(rq_shared *s, const char *name, uint64_t number,
                                         unsigned stripe, uint64_t off, void *buf, size_t len,
                                         size_t *ret_len, rq_error *why);
RQ_NODISCARD rq_err rq__folder_slog_remove(rq_shared *s, const char *name, rq_error *why);
RQ_NODISCARD rq_err rq__folder_object_cas(rq_shared *s, const char *name, uint64_t expected,
                                          const rq_slice *bytes, uint64_t *ret_generation,
                                          rq_error *why);
RQ_NODISCARD rq_err rq__folder_object_get(rq_shared *s, const char *name, rq_arena *arena,
                                          rq_slice *ret, uint64_t *ret_generation, rq_error *why);
RQ_NODISCARD rq_err rq__folder_slog_open(rq_tenure *t, uint64_t number, rq_slog **ret,
                                         rq_error *why);
void rq__folder_slog_name(const rq_slog *log, unsigned stripe, char ret[static RQ_SLOG_NAME_MAX]);
void rq__folder_slog_submit(rq_slog *log, rq_slog_write *w);
void rq__folder_slog_close(rq_slog *log);
RQ_NODISCARD rq_err rq__folder_slog_drop(rq_tenure *t, uint64_t number, rq_error *why);

#endif
