/* SPDX-License-Identifier: Apache-2.0 */
/* A WAL file's header on disk: reads, validates and replaces it. A power cut never loses both
 * copies. */
#ifndef RQ_WAL_HEADER_H
#define RQ_WAL_HEADER_H

#include "wal/reader.h"

#define RQ_WAL_SUFFIX ".wal"

/* Returns the codes of rq__wal_reader_open. *ret_older is the copy (0 or 1) to overwrite next; it
 * is also set on RQ_E_NOT_FOUND. */
RQ_NODISCARD rq_err rq__wal_header_read(rq_file *f, const char *path, rq_wal_file_info *ret,
                                        int *ret_older, rq_error *why);
/* RQ_E_CORRUPT: one of the copies is damaged. For tools; a server needs only one valid copy. */
RQ_NODISCARD rq_err rq__wal_header_check(rq_file *f, const char *path, rq_error *why);
/* A header's bytes, RQ_WAL_HEADER_LEN of them. */
void rq__wal_header_encode(const rq_wal_file_info *info, uint8_t *out);
/* Writes one copy, syncs, and writes the other, which is synced with the first frames. */
RQ_NODISCARD rq_err rq__wal_header_write(rq_file *f, const rq_wal_file_info *info, int older,
                                         rq_error *why);

#endif
