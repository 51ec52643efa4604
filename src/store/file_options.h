/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How store files are written: HBase's properties, by which the server, a table or a family says
 * it. HBASE: HStore's CompoundConfiguration: the family's word counts before the table's, and that
 * before the server's.
 */
#ifndef RQ_STORE_FILE_OPTIONS_H
#define RQ_STORE_FILE_OPTIONS_H

#include "hfile/writer.h"
#include "store/schema.h"

/* The properties, index from 0; NULL behind the last. */
const char *rq_file_property(size_t i);
/* Takes the value of one; false, and nothing changed, when it can have no such value. */
bool rq_file_options_take(rq_hfile_options *o, const char *property, rq_slice value);

/* `server`'s options as a family of the table has them: properties and attributes. What is of the
 * moment (mvcc, tags, time, order) is left to the caller. */
rq_hfile_options rq_file_options_of(const rq_hfile_options *server, const rq_table_schema *t,
                                    const rq_family_schema *f);

#endif
