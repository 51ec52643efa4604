/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How store files are written: HBase's properties, set for the server, a table or a family. HBASE:
 * HStore's CompoundConfiguration: family before table before server.
 */
#ifndef RQ_STORE_FILE_OPTIONS_H
#define RQ_STORE_FILE_OPTIONS_H

#include "descriptor/schema.h"
#include "hfile/writer.h"

/* Names of the properties, index from 0; NULL past the end. */
const char *rq_file_property(size_t i);
/* Sets a property. False: the value is invalid; nothing was changed. */
bool rq_file_options_take(rq_hfile_options *o, const char *property, rq_slice value);

/* The server's options with the properties and attributes of table and family applied. The
 * caller sets the fields that depend on the file (mvcc, tags, time, order). */
rq_hfile_options rq__file_options_of(const rq_hfile_options *server, const rq_table_schema *t,
                                     const rq_family_schema *f);

#endif
