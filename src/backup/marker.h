/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of what a finished backup consists of: RQ_ROOT_BACKUP_LIST, the last file written to it. Text:
 *
 *     rorqual backup 1
 *     source /var/lib/rorqual
 *     taken 1790000000000 from a running server
 *     f 1c291ca3 48291 data/default/t/…
 *     end COUNT BYTES CRC
 *
 * A line each: kind, CRC-32C of the content or "-", size, path. Kinds: d folder (of size 0), f immutable file, which
 * a restore may link, c other file. CRC in the last line: of all lines before it. A folder without this
 * file, or with one that does not end so, is no backup.
 */
#ifndef RQ_BACKUP_MARKER_H
#define RQ_BACKUP_MARKER_H

#include "base/buf.h"
#include "vfs/vfs.h"

typedef struct rq_listed_file {
    char kind; /* 'd', 'f', 'c' */
    bool has_crc;
    uint32_t crc;
    uint64_t size;
    const char *path; /* in the arena */
} rq_listed_file;

typedef struct rq_backup_list {
    const char *source; /* in the arena */
    int64_t taken_ms;
    bool was_running;
    rq_listed_file *files;
    size_t count;
    uint64_t bytes;
} rq_backup_list;

/* Writes the list; durable when this returns. RQ_E_UNSUPPORTED: a path has a line break. */
RQ_NODISCARD
rq_err rq__backup_list_write(rq_vfs *v, const rq_backup_list *list, rq_error *why);
/* RQ_E_NOT_FOUND: the folder is no finished backup. RQ_E_CORRUPT: the list is damaged. */
RQ_NODISCARD
rq_err rq__backup_list_read(rq_vfs *v, rq_arena *arena, rq_backup_list *ret, rq_error *why);

#endif
