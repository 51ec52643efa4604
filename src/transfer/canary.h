/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a row of every region of tables and reports each duration (HBASE: CanaryTool, region
 * mode). A table that is disabled, or that is disabled or dropped during the run, is not a failure. */
#ifndef RQ_TRANSFER_CANARY_H
#define RQ_TRANSFER_CANARY_H

#include "transfer/transfer.h"

typedef enum rq_canary_kind {
    RQ_CANARY_REGION, /* a region was read, or could not be read */
    RQ_CANARY_TABLE,  /* no region of a table could be read, for example if it does not exist */
    RQ_CANARY_SKIPPED /* a table is not enabled: its (remaining) regions are not read */
} rq_canary_kind;

typedef struct rq_canary_read {
    rq_canary_kind kind;
    const char *table;
    rq_client_region region; /* with RQ_CANARY_REGION; name empty: hbase:meta's */
    int64_t ns;
    rq_err err;
    const char *why; /* text of an error, or why a table was skipped; never NULL */
} rq_canary_read;

typedef struct rq_canary {
    const rq_transfer_options *options;
    const char *const *tables; /* none: all enabled ones */
    size_t table_count;
    /* Called for each region, and for a table that fails or is skipped; *r is valid during the call. */
    void (*read)(void *ctx, const rq_canary_read *r);
    void *ctx;
} rq_canary;

/* Blocking. Failures of regions and tables are reported by `read`; the returned error concerns the
 * whole cluster. */
RQ_NODISCARD
rq_err rq_canary_run(const rq_canary *c, rq_error *why);

#endif
