/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots on disk, in HBase's layout. HBASE: SnapshotDescriptionUtils, SnapshotManifest,
 * SnapshotManifestV2.
 *
 *   .hbase-snapshot/<name>/.snapshotinfo    SnapshotDescription
 *   .hbase-snapshot/<name>/data.manifest    SnapshotDataManifest: the table's descriptor, and of
 *                                           each region its RegionInfo and the names of its files
 *   .hbase-snapshot/.tmp/<name>/…           the same, while the snapshot is being taken
 *
 * A snapshot exists from the moment .snapshotinfo has its final name until .snapshotinfo is removed: the
 * manifest is written before and removed after. The files that a manifest names stay in data/ or in
 * archive/, where the cleaner keeps them (snapshots.h); a snapshot copies none.
 *
 * Besides the regions of the table a manifest contains the table's split parents, because daughters may
 * refer to their files (RegionInfo.offline and .split are set), and, if there are MOB families, the
 * pseudo region of the table's MOB files (start key ".mob").
 */
#ifndef RQ_CATALOG_SNAPSHOT_MANIFEST_H
#define RQ_CATALOG_SNAPSHOT_MANIFEST_H

#include "region/region_files.h"
#include "vfs/vfs.h"

#define RQ__SNAPSHOT_DIR ".hbase-snapshot"
#define RQ__SNAPSHOT_TMP RQ__SNAPSHOT_DIR "/.tmp"
#define RQ__SNAPSHOT_INFO ".snapshotinfo"
#define RQ__SNAPSHOT_MANIFEST "data.manifest"
/* HBASE: snapshot.manifest.size.limit, 64 MB. */
#define RQ__SNAPSHOT_MANIFEST_MAX ((size_t)256 * 1024 * 1024)

/* --- writing ---------------------------------------------------------------------------------- */
/* Appends the table's descriptor, a serialized TableSchema: the manifest's first field. */
RQ_NODISCARD
rq_err rq__snapshot_put_schema(rq_buf *out, rq_slice schema);
/* Appends a region. */
RQ_NODISCARD
rq_err rq__snapshot_put_region(rq_buf *out, const rq_region_info *info,
                               const rq_region_files *files);

/* --- reading ---------------------------------------------------------------------------------- */
typedef struct rq__snapshot_region {
    rq_region_info info;
    rq_region_files files;
} rq__snapshot_region;

typedef struct rq__snapshot {
    rq_slice schema;              /* TableSchema */
    rq__snapshot_region *regions; /* to be served, in the manifest's order */
    size_t count;
    rq_region_files mob; /* the MOB files of the table */
} rq__snapshot;

/* Untrusted bytes; slices point into them or into the arena. Split parents are left out.
 * RQ_E_SNAPSHOT_CORRUPT. */
RQ_NODISCARD
rq_err rq__snapshot_parse(rq_slice manifest, rq_arena *arena, rq__snapshot *ret, rq_error *why);
/* RQ_E_SNAPSHOT_NOT_FOUND, RQ_E_SNAPSHOT_CORRUPT. */
RQ_NODISCARD
rq_err rq__snapshot_read(rq_vfs *v, rq_slice name, rq_arena *arena, rq__snapshot *ret,
                         rq_error *why);
/* Whether the snapshot has a region with the encoded name `name`, or a file whose name contains `name`: the file
 * itself, or a reference or link to it or to a file of the region `name`. */
bool rq__snapshot_names(const rq__snapshot *s, const char *name);
/* Fails unless every file of the snapshot exists, in data/, mobdir/ or archive/. */
RQ_NODISCARD
rq_err rq__snapshot_verify(rq_vfs *v, const rq__snapshot *s, rq_error *why);

/* What .snapshotinfo says. */
typedef struct rq__snapshot_info {
    rq_slice bytes; /* SnapshotDescription */
    rq_slice name;  /* the folder's */
    rq_slice table; /* as displayed */
    int64_t created_ms, ttl_s;
} rq__snapshot_info;

/* RQ_E_SNAPSHOT_NOT_FOUND, RQ_E_SNAPSHOT_CORRUPT. */
RQ_NODISCARD
rq_err rq__snapshot_info_read(rq_vfs *v, rq_slice name, rq_arena *arena, rq__snapshot_info *ret,
                              rq_error *why);
/* HBASE: SnapshotDescriptionUtils.isExpiredSnapshot. */
bool rq__snapshot_is_expired(const rq__snapshot_info *s, int64_t now_ms);
/* Whether there is one of that name; an error counts as yes. */
bool rq__snapshot_exists(rq_vfs *v, rq_slice name);
/* "<dir>/<name>/<file>", in the arena; NULL: out of memory. */
const char *rq__snapshot_path(rq_arena *arena, const char *dir, rq_slice name, const char *file);

#endif
