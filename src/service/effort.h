/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates the processor time that the parts of a request take to translate (decode.h). It depends on the kind of the
 * parts, not on their bytes: a value of a megabyte is not copied, while ten bytes may be a column that has to be
 * sorted. */
#ifndef RQ_SERVICE_EFFORT_H
#define RQ_SERVICE_EFFORT_H

#include "proto/client.pb-c.h"

#include <stdbool.h>
#include <stddef.h>

/* Elements (cells, columns, attributes, 16 bytes of a filter) that are translated on the loop: in about a tenth of a
 * millisecond. More are translated on a pool (apart.h). */
#define RQ__ELEMENTS_AT_ONCE ((size_t)1024)

/* The number of elements, or any number above RQ__ELEMENTS_AT_ONCE if there are more. */
size_t rq__elements_of_get(const Pb__Get *g);
size_t rq__elements_of_mutation(const Pb__MutationProto *m);
size_t rq__elements_of_condition(const Pb__Condition *c);

/* No function is called for a Get of a whole row, nor for a mutation with few cells, all in the cell block. */
static inline bool rq__get_is_long(const Pb__Get *g)
{
    return (g->n_column > 0 || g->filter != NULL || g->n_attribute > 0 || g->n_cf_time_range > 0) &&
           rq__elements_of_get(g) > RQ__ELEMENTS_AT_ONCE;
}

static inline bool rq__mutation_is_long(const Pb__MutationProto *m)
{
    return (m->n_column_value > 0 || m->n_attribute > 0 ||
            m->associated_cell_count > (int32_t)RQ__ELEMENTS_AT_ONCE) &&
           rq__elements_of_mutation(m) > RQ__ELEMENTS_AT_ONCE;
}

#endif
