/* SPDX-License-Identifier: Apache-2.0 */
/* The tables that the server makes: hbase:meta, hbase:namespace, the procedure store, hbase:quota,
 * hbase:rsgroup, with the descriptors of HBase 2.6.1. */
#ifndef RQ_CATALOG_SYSTEM_TABLES_H
#define RQ_CATALOG_SYSTEM_TABLES_H

#include "descriptor/schema.h"

typedef enum rq__system_table {
    RQ__META,      /* hbase:meta       HBASE: FSTableDescriptors.createMetaTableDescriptorBuilder */
    RQ__NAMESPACE, /* hbase:namespace  HBASE: TableDescriptorBuilder.NAMESPACE_TABLEDESC */
    RQ__STORE,     /* master:store     HBASE: MasterRegionFactory */
    RQ__QUOTA,     /* hbase:quota      HBASE: QuotaUtil.QUOTA_TABLE_DESC; made when it is needed */
    RQ__RSGROUP,   /* hbase:rsgroup    HBASE: RSGroupInfoManagerImpl.RSGROUP_TABLE_DESC; likewise */
} rq__system_table;

/* A new reference. */
RQ_NODISCARD
rq_err rq__system_schema(rq__system_table which, rq_table_schema **ret, rq_error *why);
/* Checks that a descriptor read from disk has the families the table needs: RQ_E_CORRUPT, since a
 * flipped bit in a name is not covered by a checksum. */
RQ_NODISCARD
rq_err rq__system_schema_check(rq__system_table which, const rq_table_schema *s, rq_error *why);

#endif
