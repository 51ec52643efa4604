/* SPDX-License-Identifier: Apache-2.0 */
/* The tables that exist before any user's: hbase:meta, hbase:namespace, and the procedure store,
 * with the descriptors HBase 2.6.1 gives them. */
#ifndef RQ_CATALOG_SYSTEM_TABLES_H
#define RQ_CATALOG_SYSTEM_TABLES_H

#include "store/schema.h"

typedef enum rq__system_table {
    RQ__META,      /* hbase:meta       HBASE: FSTableDescriptors.createMetaTableDescriptorBuilder */
    RQ__NAMESPACE, /* hbase:namespace  HBASE: TableDescriptorBuilder.NAMESPACE_TABLEDESC */
    RQ__STORE,     /* master:store     HBASE: MasterRegionFactory */
} rq__system_table;

/* A new reference. */
RQ_NODISCARD
rq_err rq__system_schema(rq__system_table which, rq_table_schema **ret, rq_error *why);
/* Whether a descriptor that was read has the families the table lives by: RQ_E_CORRUPT, as one
 * flipped bit of a name is, which no checksum covers. */
RQ_NODISCARD
rq_err rq__system_schema_check(rq__system_table which, const rq_table_schema *s, rq_error *why);

#endif
