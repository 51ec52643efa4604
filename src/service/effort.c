/* SPDX-License-Identifier: Apache-2.0 */
/* How long the parts of a request take to translate; see effort.h. */
#include "service/effort.h"

#define FILTER_ELEMENT 16 /* bytes; about what a filter within another one has on the wire */

static size_t elements_of_filter(const Pb__Filter *f)
{
    return f == NULL ? 0 : f->serialized_filter.len / FILTER_ELEMENT;
}

size_t rq__elements_of_get(const Pb__Get *g)
{
    size_t n = g->n_column + g->n_attribute + g->n_cf_time_range + elements_of_filter(g->filter);
    for (size_t i = 0; i < g->n_column && n <= RQ__ELEMENTS_AT_ONCE; i++)
        n += g->column[i]->n_qualifier;
    return n;
}

size_t rq__elements_of_mutation(const Pb__MutationProto *m)
{
    size_t n = m->n_column_value + m->n_attribute;
    if (m->has_associated_cell_count && m->associated_cell_count > 0)
        n += (size_t)m->associated_cell_count;
    for (size_t i = 0; i < m->n_column_value && n <= RQ__ELEMENTS_AT_ONCE; i++)
        n += m->column_value[i]->n_qualifier_value;
    return n;
}

size_t rq__elements_of_condition(const Pb__Condition *c)
{
    size_t n = elements_of_filter(c->filter);
    if (c->comparator != NULL) n += c->comparator->serialized_comparator.len / FILTER_ELEMENT;
    return n;
}
