/* SPDX-License-Identifier: Apache-2.0 */
/* State shared by all transfers: the cluster, the number of threads, the rate, progress callbacks,
 * and the counts at the end. */
#ifndef RQ_TRANSFER_TRANSFER_H
#define RQ_TRANSFER_TRANSFER_H

#include "client/client.h"

typedef struct rq_transfer_options {
    rq_client_options client; /* retries 0: HBase's 15 */
    uint64_t jobs;            /* threads, each with a client of its own; 0: 4 */
    uint64_t rate;            /* bytes a second, of all threads together; 0: no limit */
    /* Called about ten times a second on the caller's thread: `done` of `total` units of work
     * (equal shares of each part) are done. May be NULL. */
    void (*progress)(void *ctx, uint64_t done, uint64_t total);
    /* Called with a line for the user that does not end the transfer; on any thread, one call at a
     * time. */
    void (*print)(void *ctx, const char *text);
    void *ctx;
} rq_transfer_options;

typedef struct rq_transfer_counts {
    uint64_t parts;      /* of this run */
    uint64_t parts_kept; /* finished by an earlier run */
    uint64_t rows, cells, bytes;
    uint64_t bad_lines;
    uint64_t different; /* verify: ranges that differ */
} rq_transfer_counts;

#endif
