/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by plans of schemas and plans of traces (plan.c). */
#ifndef RQ_DESIGN_PLAN_PRIV_H
#define RQ_DESIGN_PLAN_PRIV_H

#include "design/design.h"

/* Begins the plan of a remedy for the schema: fills the remedy's name, its cost and the text of its
 * key format; *ret_format is the parsed format, which the caller frees. RQ_E_UNSUPPORTED: the
 * remedy does not fit the schema. */
RQ_NODISCARD
rq_err rq__plan_begin(const rq_schema *s, rq_remedy remedy, rq_plan *ret,
                      rq_key_format **ret_format, rq_error *why);
/* Split keys from the format, or (presplit without a format) from the sample. */
void rq__plan_splits(const rq_schema *s, rq_remedy remedy, const rq_key_format *format, rq_plan *p);
/* Adds a key whose bytes are in p->bytes already. */
RQ_NODISCARD
rq_err rq__plan_add_again(rq_plan *p, uint32_t offset, uint32_t length, uint32_t step,
                          double weight);
/* By step; keys of a step in the order in which they were added. */
void rq__plan_sort(rq_plan *p);
uint64_t rq__plan_hash(const char *text);

#endif
