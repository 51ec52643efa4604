/* SPDX-License-Identifier: Apache-2.0 */
/* Plans from recorded accesses: the same keys at the same times, for a schema and its remedies. */
#ifndef RQ_DESIGN_TRACE_H
#define RQ_DESIGN_TRACE_H

#include "design/design.h"

#include "base/random.h"

#include <stdio.h>

typedef struct rq_traced {
    int64_t time_ms;
    bool is_read;
    uint32_t key_len;
    uint8_t *key;
} rq_traced;

/* A sample of a trace's lines, each with equal probability, and the sums over all lines. */
typedef struct rq_trace {
    rq_traced *rows;
    size_t count, most;
    uint64_t reads, writes;
    uint64_t kept_reads, kept_writes;
    uint64_t sized; /* writes of which the trace gives the bytes */
    double bytes;
    int64_t first_ms, last_ms;
    rq_random random;
} rq_trace;

/* Reads all lines and keeps `most`. RQ_E_INVALID: the message begins with the line's number.
 * RQ_E_NOT_FOUND: no access. The caller clears the trace, always. */
RQ_NODISCARD
rq_err rq_trace_read(FILE *from, size_t most, uint64_t seed, rq_trace *ret, rq_error *why);
void rq_trace_clear(rq_trace *t);

/* Makes a plan of the recorded accesses, with the keys that a remedy for the schema would give
 * them. The trace's keys have the schema's format; the trace's period, writes and reads replace the
 * schema's. RQ_E_UNSUPPORTED: the remedy does not fit the schema. RQ_E_INVALID: a key does not have
 * the format. The caller clears the plan. */
RQ_NODISCARD
rq_err rq_plan_of_trace(const rq_schema *s, rq_remedy remedy, const rq_trace *t, rq_plan *ret,
                        rq_error *why);

#endif
