/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which coprocessors a table has. HBase loads classes that a descriptor names under
 * `coprocessor$N` (path|class|priority|arguments) or that the server's settings name; Rorqual has
 * no JVM and knows by their names the two endpoints that HBase's own clients call. Any other class
 * cannot be loaded, and is refused where HBase refuses a class that it cannot find.
 * HBASE: RegionCoprocessorHost.loadSystemCoprocessors, getTableCoprocessorAttrsFromSchema;
 * TableDescriptorBuilder.CP_HTD_ATTR_VALUE_PATTERN.
 */
#ifndef RQ_CATALOG_COPROCESSORS_H
#define RQ_CATALOG_COPROCESSORS_H

#include "base/config.h"
#include "store/schema.h"

/* A set of them. */
typedef enum rq_coprocessor {
    RQ_COPROCESSOR_AGGREGATE = 1,
    RQ_COPROCESSOR_MULTI_ROW = 2,
} rq_coprocessor;

/* What the descriptor names; unknown classes and malformed values add nothing. */
unsigned rq_coprocessors_of_table(const rq_table_schema *s);

/* Those every table has by hbase.coprocessor.region.classes, and those only users' tables have by
 * hbase.coprocessor.user.region.classes. RQ_E_CONFIG names a class that cannot be loaded. */
RQ_NODISCARD
rq_err rq_coprocessors_of_settings(const rq_config *c, unsigned *ret_all, unsigned *ret_users,
                                   rq_error *why);

/* RQ_E_DO_NOT_RETRY for the first class of the descriptor that cannot be loaded. */
RQ_NODISCARD
rq_err rq__coprocessors_check(const rq_table_schema *s, rq_error *why);

#endif
