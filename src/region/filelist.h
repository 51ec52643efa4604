/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files a family has, as HBase's FILE tracker writes it down (HBASE: StoreFileListFile,
 * FileBasedStoreFileTracker 2.6). Where the family's tracker is FILE (tracking.h), HBase believes
 * the list and not the folder.
 *
 *   <family>/.filelist/f1.<number>, f2.<number>     written in turn; of the files with the highest
 *                                                   number the one with the newest timestamp
 * counts; HBase 2.5's f1 and f2 have the number 0 be32 length | message {1: timestamp, 2: file {1:
 * name, 2: size}, 3: version = 1} | be32 CRC-32
 *
 * A file that ends too early was being written, and counts as none. The size is that of an HFile;
 * references and links have 0.
 *
 * While a region is open its manifest alone counts; the list is written at a clean close. Where
 * the tracker keeps none, the close removes one of former times: a list that is there is never
 * older than the close.
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
    uint64_t number; /* of the file it was read from */
} rq__filelist;

/* Untrusted bytes; names point into them. RQ_E_END: cut short. RQ_E_VERSION, RQ_E_CORRUPT. */
RQ_NODISCARD
rq_err rq__filelist_decode(rq_slice bytes, rq_arena *arena, rq__filelist *ret, rq_error *why);
RQ_NODISCARD
rq_err rq__filelist_encode(const rq__filelist *list, rq_buf *out);

/* Of the family's folder. RQ_E_NOT_FOUND: there is none. */
RQ_NODISCARD
rq_err rq__filelist_read(rq_vfs *vfs, const char *dir, rq_arena *arena, rq__filelist *ret,
                         rq_error *why);
/* Makes the list name exactly these files of the folder, unless it does already. */
RQ_NODISCARD
rq_err rq__filelist_write(rq_vfs *vfs, const char *dir, const char *const *names, size_t count,
                          int64_t now_ms, rq_error *why);
/* Removes all there are. */
RQ_NODISCARD
rq_err rq__filelist_remove(rq_vfs *vfs, const char *dir, rq_error *why);

#endif
