/* SPDX-License-Identifier: Apache-2.0 */
/* The coprocessors of a table. HBase loads classes named by a descriptor's `coprocessor$N`
 * (path|class|priority|arguments) or by the server's settings. Rorqual has no JVM; it implements
 * endpoints that HBase ships, and recognizes them by their class names. Any
 * other class cannot be loaded, and is refused where HBase refuses a class that it cannot find.
 * HBASE: RegionCoprocessorHost.loadSystemCoprocessors, getTableCoprocessorAttrsFromSchema;
 * TableDescriptorBuilder.CP_HTD_ATTR_VALUE_PATTERN. */
#ifndef RQ_CATALOG_COPROCESSORS_H
#define RQ_CATALOG_COPROCESSORS_H

#include "base/config.h"
#include "descriptor/schema.h"

/* A set of them. */
typedef enum rq_coprocessor {
    RQ_COPROCESSOR_AGGREGATE = 1,
    RQ_COPROCESSOR_MULTI_ROW = 2,
    RQ_COPROCESSOR_BULK_DELETE = 4,
} rq_coprocessor;

/* The coprocessors in the descriptor; unknown classes and malformed values are ignored. */
unsigned rq_coprocessors_of_table(const rq_table_schema *s);

/* The coprocessors of every table (hbase.coprocessor.region.classes), and of users' tables only
 * (hbase.coprocessor.user.region.classes). RQ_E_CONFIG names a class that cannot be loaded. */
RQ_NODISCARD
rq_err rq_coprocessors_of_settings(const rq_config *c, unsigned *ret_all, unsigned *ret_users,
                                   rq_error *why);

/* RQ_E_DO_NOT_RETRY for the first class of the descriptor that cannot be loaded. */
RQ_NODISCARD
rq_err rq__coprocessors_check(const rq_table_schema *s, rq_error *why);

#endif
