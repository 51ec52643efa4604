/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptor of a benchmark's table. */
#ifndef RQ_BENCH_TABLE_SCHEMA_H
#define RQ_BENCH_TABLE_SCHEMA_H

#include "descriptor/schema.h"

/* The table default:TABLE with one family, which has `count` (at most 4) attributes, each a name and a value. An illegal
 * value ends the program with a message. The caller owns the descriptor. */
rq_table_schema *bench_table_schema(const char *table, const char *family,
                                    const char *const (*attributes)[2], size_t count);

#endif
