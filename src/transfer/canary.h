/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a row of every region of tables and reports each duration (HBASE: CanaryTool, region
 * mode). A table that is disabled, or that is being disabled or dropped meanwhile, is no failure. */
#ifndef RQ_TRANSFER_CANARY_H
#define RQ_TRANSFER_CANARY_H

#include "transfer/transfer.h"

typedef enum rq_canary_kind {
    RQ_CANARY_REGION, /* a region was read, or could not be read */
    RQ_CANARY_TABLE,  /* a table of which no region could be looked at: it does not exist, … */
    RQ_CANARY_SKIPPED /* a table that is not enabled: none of its regions was read, or no further ones */
} rq_canary_kind;

typedef struct rq_canary_read {
    rq_canary_kind kind;
    const char *table;
    rq_client_region region; /* with RQ_CANARY_REGION; name empty: hbase:meta's */
    int64_t ns;
    rq_err err;
    const char *why; /* of an error, and why a table was skipped */
} rq_canary_read;

typedef struct rq_canary {
    const rq_transfer_options *options;
    const char *const *tables; /* none: all enabled ones */
    size_t table_count;
    /* Called for each region, and for tables as above; valid during the call. */
    void (*read)(void *ctx, const rq_canary_read *r);
    void *ctx;
} rq_canary;

/* Blocking. Failures of regions and tables are reported by `read`; the returned error concerns the
 * whole cluster. */
RQ_NODISCARD
rq_err rq_canary_run(const rq_canary *c, rq_error *why);

#endif
