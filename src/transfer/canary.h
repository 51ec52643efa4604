/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a row of every region of tables and reports each duration (HBASE: CanaryTool, region
 * mode). */
#ifndef RQ_TRANSFER_CANARY_H
#define RQ_TRANSFER_CANARY_H

#include "transfer/transfer.h"

typedef struct rq_canary_read {
    const char *table;
    rq_client_region region; /* of no table that cannot be found: name empty */
    int64_t ns;
    rq_err err;
    const char *why; /* of an error */
} rq_canary_read;

typedef struct rq_canary {
    const rq_transfer_options *options;
    const char *const *tables; /* none: all enabled ones */
    size_t table_count;
    void (*read)(void *ctx, const rq_canary_read *r); /* each region; valid during the call */
    void *ctx;
} rq_canary;

/* Blocking. Failures of regions and tables are reported by `read`; the returned error concerns the
 * whole cluster. */
RQ_NODISCARD
rq_err rq_canary_run(const rq_canary *c, rq_error *why);

#endif
