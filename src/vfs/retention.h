/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The register of files that must not be removed yet, because something outside the database's own
 * references still reads them. A *holder* has a name and holds store files, the log from a position
 * on, or both. Holders are backups, replication peers, and procedures that take or clone a snapshot.
 *
 * Code that removes files asks here first:
 *   - the log, before it recycles a WAL file (wal/holders.c)
 *   - the cleaner of archive/, before it removes a file (catalog/cleaner.c). Compactions, dropped
 *     tables and split parents only move files into archive/, and need not ask: a held file is
 *     found under its own path or under rq_retention_archived() of it
 *   - the cleaner of MOB files, before it moves one into archive/ (region/mob_cleaner.c). A holder
 *     lists store files first and MOB files last; if compactions replace the listed store files in
 *     between, only the holder still needs the MOB files to which they refer
 *
 *  1. Holders are in memory. A feature whose holder must survive a restart (a snapshot, a peer) has
 *     a durable record of its own, and takes its holder again before the first cleaner runs, or the
 *     cleaner reads the record (a snapshot's manifest). So no holder outlives its purpose.
 *  2. A new holder holds every file. Its owner adds the files it needs (rq_holder_add) and then
 *     releases the rest (rq_holder_narrow), so no file is removed between its listing and its
 *     holding.
 *  3. Names are kept as hashes of 8 bytes. Two names with one hash keep a file too long, never too
 *     short.
 *  4. Nothing here depends on hard links; where links are possible they only replace a copy. In a
 *     cluster a holder's record will be an object in the shared storage, behind the same functions.
 *
 * Threads: any. One lock, held for a lookup.
 */
#ifndef RQ_VFS_RETENTION_H
#define RQ_VFS_RETENTION_H

#include "base/arena.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct rq_retention rq_retention;
typedef struct rq_holder rq_holder;

#define RQ_RETENTION_NO_LOG UINT64_MAX

RQ_NODISCARD
rq_err rq_retention_new(rq_retention **ret);
/* REQUIRES: no holder is left. NULL is allowed. */
void rq_retention_free(rq_retention *r);

/* Adds a holder of every file. `name` is copied, `now_ms` is the wall clock. */
RQ_NODISCARD
rq_err rq_retention_hold(rq_retention *r, const char *name, int64_t now_ms, rq_holder **ret);
/* Adds a file to the holder's list, by the path it has now. */
RQ_NODISCARD
rq_err rq_holder_add(rq_holder *h, const char *path);
/* From now on the holder holds only what was added. */
void rq_holder_narrow(rq_holder *h);
/* Holds the log from this position on (wal/wal.h); RQ_RETENTION_NO_LOG: no longer. */
void rq_holder_keep_log(rq_holder *h, uint64_t from);
/* Ends the holder. NULL is allowed. */
void rq_holder_release(rq_holder *h);

/* Whether some holder needs the file. `path` may be the one in archive/. */
bool rq_retention_keeps(rq_retention *r, const char *path);
/* Whether some holder holds every file: it may still be listing them. */
bool rq_retention_keeps_all(rq_retention *r);
/* The lowest log position that is held; RQ_RETENTION_NO_LOG: none. Takes no lock. */
uint64_t rq_retention_log_from(const rq_retention *r);

typedef struct rq_holder_info {
    const char *name; /* in the arena */
    int64_t since_ms;
    bool holds_all_files;
    size_t files;
    uint64_t log_from;
} rq_holder_info;

/* The holders now, for status pages. */
RQ_NODISCARD
rq_err rq_retention_list(rq_retention *r, rq_arena *arena, rq_holder_info **ret, size_t *ret_count);

/* The path in the archive of a file of data/, MasterData/ or mobdir/, allocated in the arena. NULL:
 * memory is exhausted. */
const char *rq_retention_archived(rq_arena *arena, const char *path);

#endif
