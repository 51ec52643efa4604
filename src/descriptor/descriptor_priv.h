/* SPDX-License-Identifier: Apache-2.0 */
/* The steps from a message to a descriptor and back. Everything is allocated in `arena`. */
#ifndef RQ_DESCRIPTOR_DESCRIPTOR_PRIV_H
#define RQ_DESCRIPTOR_DESCRIPTOR_PRIV_H

#include "descriptor/schema.h"

#include "proto/hbase.pb-c.h"

/* attributes.c. Sets an attribute; an empty value removes the key. HBASE: setValue. REQUIRES: a->items has room for
 * one more. */
void rq__attribute_set(rq_attributes *a, rq_slice key, rq_slice value);

/* values.c: fill the parsed fields from the attributes. Numbers written as text ("1 DAY") become
 * numbers in the map too. RQ_E_ILLEGAL_ARGUMENT with HBase's text. */
RQ_NODISCARD
rq_err rq__family_values(rq_arena *arena, rq_family_schema *f, rq_error *why);
RQ_NODISCARD
rq_err rq__table_values(rq_arena *arena, rq_table_schema *t, rq_error *why);

/* --- message.c: between the protobuf message and the struct ------------------------------------ */
/* Fills *t from the message, which must be in the arena: slices of *t point into it.
 * RQ_E_ILLEGAL_ARGUMENT with HBase's text. */
RQ_NODISCARD
rq_err rq__schema_take(rq_arena *arena, const Pb__TableSchema *m, rq_table_schema *t,
                       rq_error *why);
RQ_NODISCARD
rq_err rq__schema_pack(rq_arena *arena, const rq_table_schema *t, rq_slice *ret);

#endif
