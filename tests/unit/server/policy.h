/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy for the gate: refuses gets when policy_refuse_gets says so, and delays each put three
 * times, from another thread. A separate file, because client and ops both define a type rq_op.
 */
#ifndef RQ_TEST_SERVER_POLICY_H
#define RQ_TEST_SERVER_POLICY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct policy policy;
struct rq_gate_policy;

policy *policy_new(void);
void policy_free(policy *p); /* REQUIRES: the server has stopped */
const struct rq_gate_policy *policy_table(policy *p);
/* From now on every get is refused with RegionTooBusyException (`refuse`), or none. */
void policy_refuse_gets(policy *p, bool refuse);
unsigned policy_delays(const policy *p);
unsigned policy_refusals(const policy *p);
/* number of operations that passed and ended, or were refused */
unsigned policy_ended(const policy *p);
uint64_t policy_last_trace(const policy *p);

#endif
