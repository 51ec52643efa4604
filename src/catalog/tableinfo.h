/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Table descriptors on disk. HBASE: FSTableDescriptors.
 *
 *   <table folder>/.tabledesc/.tableinfo.<10-digit number>.<file's length>    "PBUF" + TableSchema
 *
 * The file with the highest number is the table's descriptor. A file whose length differs from the
 * length in its name is incomplete and ignored, so writing a new file is atomic without a rename.
 * Older files are removed afterwards.
 */
#ifndef RQ_CATALOG_TABLEINFO_H
#define RQ_CATALOG_TABLEINFO_H

#include "descriptor/schema.h"
#include "vfs/vfs.h"

/* data/<ns>/<qualifier>, or MasterData/data/master/store. NULL: out of memory. */
char *rq__table_dir(rq_arena *a, rq_slice ns, rq_slice qualifier);

/* The newest descriptor; RQ_E_NOT_FOUND without one, RQ_E_CORRUPT when none can be read. */
RQ_NODISCARD
rq_err rq_tableinfo_read(rq_vfs *v, rq_slice ns, rq_slice qualifier, rq_table_schema **ret,
                         rq_error *why);
/* Durable on return, including the table's folder and those above it. */
RQ_NODISCARD
rq_err rq__tableinfo_write(rq_vfs *v, const rq_table_schema *s, rq_error *why);

#endif
