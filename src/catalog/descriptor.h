/* SPDX-License-Identifier: Apache-2.0 */
/*
 * New descriptors out of old ones, and whether a descriptor makes sense.
 * HBASE: HMaster.addColumn/modifyColumn/deleteColumn, TableDescriptorChecker.
 */
#ifndef RQ_CATALOG_DESCRIPTOR_H
#define RQ_CATALOG_DESCRIPTOR_H

#include "base/config.h"
#include "store/schema.h"

/* Parses what a client sent and adds what HBase's master adds (IS_META, the store-file tracker). A
 * value no enumeration has is a failed sanity check, as in HBase. */
RQ_NODISCARD
rq_err rq__descriptor_parse(rq_slice pb, rq_table_schema **ret, rq_error *why);

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

/* "… Set hbase.table.sanity.checks to false …". `config` may be NULL: defaults. */
RQ_NODISCARD
rq_err rq__descriptor_check(const rq_config *config, const rq_table_schema *s, rq_error *why);

/* The part of it that is about compaction. */
RQ_NODISCARD
rq_err rq__descriptor_check_compaction(const rq_config *config, const rq_table_schema *s,
                                       rq_error *why);

struct Pb__TableSchema;
/* A schema of the unpacked message; an edited one, say. */
RQ_NODISCARD
rq_err rq__descriptor_from(const struct Pb__TableSchema *m, rq_table_schema **ret, rq_error *why);

#endif
