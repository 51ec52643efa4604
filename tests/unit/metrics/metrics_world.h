/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the simulated catalog of ../ops/ops_world.h: no RPC, no loops. */
#ifndef RQ_TESTS_METRICS_WORLD_H
#define RQ_TESTS_METRICS_WORLD_H

#include "../ops/ops_world.h"

#include "metrics/metrics.h"

typedef struct metrics_world {
    ops_world *o;
    rq_metrics *m;
} metrics_world;

void metrics_world_init(metrics_world *w);
void metrics_world_clear(metrics_world *w);
/* Gets and puts of f:q of row "r1" to "r9" of table t, one after another. */
void metrics_world_get(metrics_world *w, unsigned count);
void metrics_world_put(metrics_world *w, unsigned count);
/* The output formats as text; malloc'ed. */
char *metrics_world_prometheus(metrics_world *w, bool by_region);
char *metrics_world_jmx(metrics_world *w, const rq_metrics_query *query, rq_err *ret_rc);
char *metrics_world_hadoop(metrics_world *w);

#endif
