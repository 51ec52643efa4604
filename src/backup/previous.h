/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The previous backup, on which an incremental backup is based: store files that it has are not
 * copied again.
 *
 * A store file never changes, and its name is random. So two store files of one cluster with the
 * same name and size are the same file, even if one of them is in archive/ by now. The names of
 * references and links are derived from other files' names, so they identify a file only within the
 * same folder.
 *
 * The earlier backup is only read, and locked meanwhile, so that no server is started on it.
 */
#ifndef RQ_BACKUP_PREVIOUS_H
#define RQ_BACKUP_PREVIOUS_H

#include "backup/marker.h"

typedef struct rq__previous rq__previous;

/* RQ_E_NOT_FOUND: the folder is not a finished backup. RQ_E_LOCKED: a server runs on it. */
RQ_NODISCARD
rq_err rq__previous_open(const char *folder, rq__previous **ret, rq_error *why);
/* NULL is fine. */
void rq__previous_close(rq__previous *p);
/* The content of a small file. */
RQ_NODISCARD
rq_err rq__previous_read(rq__previous *p, const char *path, rq_arena *arena, rq_slice *ret,
                         rq_error *why);
/* The earlier backup's copy of the store file that the server has at `path`; NULL: there is
 * none. */
const rq_listed_file *rq__previous_find(const rq__previous *p, const char *path, uint64_t size);
/* RQ_E_CORRUPT: the file is missing or has another size, so the earlier backup is damaged. */
RQ_NODISCARD
rq_err rq__previous_open_file(rq__previous *p, const rq_listed_file *f, rq_file **ret,
                              rq_error *why);
/* Returns an error with the text "FOLDER/PATH: what, so that backup is damaged: …". */
rq_err rq__previous_differs(const rq__previous *p, const rq_listed_file *f, const char *what,
                            rq_error *why);

#endif
