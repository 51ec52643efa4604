/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that a region consists of at one moment, and regions made of links to such files: what
 * snapshots and their clones are made of (catalog/snapshot_manifest.h).
 *
 * A link is an empty file whose name says where the HFile is (store/reference.h). For each link the
 * archive has a back reference, an empty file beside the place where the HFile will be archived:
 *
 *   archive/data/<ns>/<table>/<region>/<family>/.links-<hfile>/<region of the link>.<its table>
 *
 * While the link exists, the archive's cleaner keeps the HFile (catalog/cleaner.c). HBASE:
 * HFileLink, RestoreSnapshotHelper.
 */
#ifndef RQ_REGION_REGION_FILES_H
#define RQ_REGION_REGION_FILES_H

#include "region/region.h"

typedef struct rq_region_file {
    rq_slice name;
    rq_slice reference; /* of a reference: its message, without "PBUF"; otherwise empty */
    uint64_t size;      /* of the HFile that the name stands for */
} rq_region_file;

typedef struct rq_family_files {
    rq_slice name;
    rq_region_file *files;
    size_t count;
} rq_family_files;

typedef struct rq_region_files {
    rq_family_files *families; /* ascending by name */
    size_t count;
} rq_region_files;

/* The files of an open region, in the arena. With `flush` the files contain every write that was
 * visible before the call, in all families up to the same sequence id. Blocks. The caller must hold
 * the files (vfs/retention.h), because a compaction may archive them at any time. */
RQ_NODISCARD
rq_err rq_region_files_take(rq_region *r, bool flush, rq_arena *arena, rq_region_files *ret,
                            rq_error *why);
/* The files of a closed region. `schema` is the table's. */
RQ_NODISCARD
rq_err rq_region_files_of_closed(rq_engine *e, const rq_region_info *info,
                                 const rq_table_schema *schema, rq_arena *arena,
                                 rq_region_files *ret, rq_error *why);
/* The names of the MOB files in the table's folder below mobdir/, without sizes. ret->count is 0 if the table has no MOB
 * family. */
RQ_NODISCARD
rq_err rq_mob_files_list(rq_engine *e, const rq_table_schema *schema, rq_arena *arena,
                         rq_region_files *ret, rq_error *why);
/* Removes from the list the files that are being written, by this process or by other servers (`others`, sorted), and those
 * that are gone because their writer has failed. Adds the sizes of the rest. In a cluster other servers are asked after the
 * list was made: a file that nobody is writing then is complete. The caller holds the archive. */
RQ_NODISCARD
rq_err rq_mob_files_measure(rq_engine *e, const rq_table_schema *schema, const rq_slice *others,
                            size_t other_count, rq_arena *arena, rq_region_files *files,
                            rq_error *why);

/* Makes the region `info`, which consists of links to `files` of the region `from`, of the same or another
 * table. The new region must not be in use yet; files left by an earlier attempt are completed. The links
 * are made through `vfs`, a batch on the engine's vfs (vfs/batch.h). Families that the schema does not have
 * are left out. */
RQ_NODISCARD
rq_err rq_region_create_linked(rq_engine *e, rq_vfs *vfs, const rq_region_info *info,
                               const rq_table_schema *schema, const rq_region_info *from,
                               const rq_region_files *files, rq_error *why);
/* Makes links to the MOB files of the table `from` in the MOB folder of the table `schema`. Both may be the
 * same table: then a file that is still in the folder gets a link, too, because the cleaner may archive it
 * before a region refers to it again. */
RQ_NODISCARD
rq_err rq_mob_create_linked(rq_engine *e, rq_vfs *vfs, const rq_table_schema *schema, rq_slice from,
                            const rq_region_files *files, rq_error *why);
/* The path of the back reference of a link in the region, in the arena; NULL: memory is exhausted.
 * REQUIRES: `name` is a link's. */
const char *rq_link_back_reference(rq_arena *arena, const rq_region_info *info, rq_slice family,
                                   rq_slice name);
/* Removes the MOB links of a table that was not created. An absent folder is no error. */
RQ_NODISCARD
rq_err rq_mob_remove_linked(rq_engine *e, const rq_table_schema *schema, rq_error *why);

#endif
