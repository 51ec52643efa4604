/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of a family's files, in the format of HBase's FILE tracker (HBASE: StoreFileListFile,
 * FileBasedStoreFileTracker 2.6). If the family's tracker is FILE (tracking.h), HBase uses the list
 * instead of the folder.
 *
 *   <family>/.filelist/f1.<number>, f2.<number>     written in turn
 *
 *   be32 length | message {1: timestamp, 2: file {1: name, 2: size}, 3: version = 1} | be32 CRC-32
 *
 * Of the files with the highest number the one with the newest timestamp is valid. HBase 2.5's f1
 * and f2 have the number 0. A truncated file was being written and is ignored. The size is that of
 * an HFile; references and links have 0.
 *
 * While a region is open only its manifest is used; the list is written at a clean close. If the
 * tracker keeps no list, the close removes an existing one: a list is never older than the last
 * clean close.
 */
#ifndef RQ_REGION_FILELIST_H
#define RQ_REGION_FILELIST_H

#include "base/arena.h"
#include "base/buf.h"
#include "vfs/vfs.h"

#define RQ__FILELIST_DIR ".filelist"

typedef struct rq__filelist_entry {
    rq_slice name;
    uint64_t size;
} rq__filelist_entry;

typedef struct rq__filelist {
    uint64_t timestamp;
    rq__filelist_entry *files;
    size_t count;
    uint64_t number; /* number of the file it was read from */
} rq__filelist;

/* Decodes a list, untrusted bytes; names point into them. RQ_E_END: truncated. RQ_E_VERSION,
 * RQ_E_CORRUPT. */
RQ_NODISCARD
rq_err rq__filelist_decode(rq_slice bytes, rq_arena *arena, rq__filelist *ret, rq_error *why);
RQ_NODISCARD
rq_err rq__filelist_encode(const rq__filelist *list, rq_buf *out);

/* Reads the list of a family's folder. RQ_E_NOT_FOUND: there is none. */
RQ_NODISCARD
rq_err rq__filelist_read(rq_vfs *vfs, const char *dir, rq_arena *arena, rq__filelist *ret,
                         rq_error *why);
/* Makes the list contain exactly these files of the folder. If it already does, and is known to be durable
 * (`is_durable`), nothing is written: a list that a killed process has left may exist in the page cache only. */
RQ_NODISCARD
rq_err rq__filelist_write(rq_vfs *vfs, const char *dir, const char *const *names, size_t count,
                          bool is_durable, int64_t now_ms, rq_error *why);
/* Removes all list files. */
RQ_NODISCARD
rq_err rq__filelist_remove(rq_vfs *vfs, const char *dir, rq_error *why);

#endif
