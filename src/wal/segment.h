/* SPDX-License-Identifier: Apache-2.0 */
/* A segment's header on disk: read, judged, and replaced so that a power cut never loses both. */
#ifndef RQ_WAL_SEGMENT_H
#define RQ_WAL_SEGMENT_H

#include "wal/reader.h"

#define RQ_WAL_SUFFIX ".wal"

/* As rq_wal_reader_open's codes. *ret_older is the copy (0, 1) to be overwritten next. On
 * RQ_E_NOT_FOUND it is set too. */
RQ_NODISCARD rq_err rq__wal_header_read(rq_file *f, const char *path, rq_wal_segment_info *ret,
                                        int *ret_older, rq_error *why);
/* RQ_E_CORRUPT: one of the copies is damaged. The other serves a server; a tool tells. */
RQ_NODISCARD rq_err rq__wal_header_check(rq_file *f, const char *path, rq_error *why);
/* Writes one copy, syncs, writes the other (to be synced with the first frames). */
RQ_NODISCARD rq_err rq__wal_header_write(rq_file *f, const rq_wal_segment_info *info, int older,
                                         rq_error *why);

#endif
