/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of the files that snapshots of this server or of Apache HBase refer to; these files must not be removed
 * (snapshot_manifest.h). HBASE: SnapshotManifest, SnapshotReferenceUtil.getHFileNames, SnapshotFileCache.
 *
 *   .hbase-snapshot/<name>/data.manifest    SnapshotDataManifest { 1: table's descriptor,
 *                                           2: region { 3: family { 2: store file { 1: name } } } }
 *   .hbase-snapshot/.tmp/                   snapshots that were never finished: ignored
 *
 * As in HBase a file is held by its name alone, in whatever folder it is: names are random. The
 * name of a link or reference also holds the file that the link or reference points to.
 */
#ifndef RQ_CATALOG_SNAPSHOTS_H
#define RQ_CATALOG_SNAPSHOTS_H

#include "base/arena.h"
#include "vfs/vfs.h"

/* Names of files, zero-initialised; the owner frees `list`. */
typedef struct rq__names {
    rq_slice *list;
    size_t count, cap;
} rq__names;

RQ_NODISCARD
rq_err rq__names_add(rq__names *n, rq_slice name);
/* Sorts them, for rq__names_have. */
void rq__names_sort(rq__names *n);
/* Whether `name` is among the first `sorted` ones. */
bool rq__names_have(const rq__names *n, size_t sorted, rq_slice name);

/* Zero-initialised: nothing was read yet. */
typedef struct rq__snapshot_files {
    rq_arena arena;
    bool is_read;
    bool all; /* there is a snapshot of an unknown format, or a damaged one: every file counts as
               * held */
    rq__names names; /* ascending */
} rq__snapshot_files;

/* Whether a snapshot names the file. The first call reads all snapshots. Returns I/O errors. */
RQ_NODISCARD
rq_err rq__snapshot_holds(rq__snapshot_files *s, rq_vfs *v, const char *name, bool *ret,
                          rq_error *why);
void rq__snapshot_files_clear(rq__snapshot_files *s);

/* Adds the files in a data.manifest; slices point into it. Untrusted bytes; RQ_E_CORRUPT. */
RQ_NODISCARD
rq_err rq__snapshot_add_manifest(rq__snapshot_files *s, rq_slice manifest, rq_error *why);

#endif
