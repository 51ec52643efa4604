/* SPDX-License-Identifier: Apache-2.0 */
/* A tenure of the shared folder, for the two files that write its log and end it. */
#ifndef RQ_VFS_SHARED_POSIX_LOG_H
#define RQ_VFS_SHARED_POSIX_LOG_H

#include "vfs/shared_posix.h"

typedef struct rq__folder_tenure {
    rq_tenure base;
    uint64_t token;
    rq_lane *lanes[RQ_SLOG_STRIPES]; /* one for each stripe's writes and syncs */
    rq__renewals renewals;
    char dir[RQ__DIR_MAX];
} rq__folder_tenure;

/* Looks at the guard: RQ_E_SERVER_ABORTED if it is not ours and open. */
RQ_NODISCARD rq_err rq__folder_renew(rq__folder_tenure *t, rq_error *why);
void rq__folder_stripe_path(const char *dir, uint64_t number, unsigned stripe,
                            char ret[static RQ__FILE_MAX]);

#endif
