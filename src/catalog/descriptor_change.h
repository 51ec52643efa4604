/* SPDX-License-Identifier: Apache-2.0 */
/* Makes new descriptors from old ones, and checks descriptors. HBASE:
 * HMaster.addColumn/modifyColumn/deleteColumn, TableDescriptorChecker. */
#ifndef RQ_CATALOG_DESCRIPTOR_CHANGE_H
#define RQ_CATALOG_DESCRIPTOR_CHANGE_H

#include "base/config.h"
#include "descriptor/schema.h"

/* Parses a client's descriptor and adds the attributes that HBase's master adds (IS_META; at `create`
 * the store-file tracker). A value outside an enumeration fails the sanity check, as in HBase. */
RQ_NODISCARD
rq_err rq__descriptor_parse(rq_slice pb, bool create, rq_table_schema **ret, rq_error *why);

typedef enum rq__family_change {
    RQ__FAMILY_ADD,
    RQ__FAMILY_MODIFY,
    RQ__FAMILY_DELETE
} rq__family_change;

/* `family`: a serialized ColumnFamilySchema, or for DELETE the name.
 * InvalidFamilyOperationException with HBase's texts. */
RQ_NODISCARD
rq_err rq__descriptor_change(const rq_table_schema *old, rq__family_change change, rq_slice family,
                             rq_table_schema **ret, rq_error *why);

/* HBase's sanity checks with HBase's texts, and a refusal of what this server does not have.
 * RQ_E_DO_NOT_RETRY. `config` may be NULL: defaults. */
RQ_NODISCARD
rq_err rq__descriptor_check(const rq_config *config, const rq_table_schema *s, rq_error *why);

/* The part of the check that concerns compaction. */
RQ_NODISCARD
rq_err rq__descriptor_check_compaction(const rq_config *config, const rq_table_schema *s,
                                       rq_error *why);

struct Pb__TableSchema;
/* A schema made from the unpacked message, for instance an edited one. */
RQ_NODISCARD
rq_err rq__descriptor_from(const struct Pb__TableSchema *m, rq_table_schema **ret, rq_error *why);

#endif
