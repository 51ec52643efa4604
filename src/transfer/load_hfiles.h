/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the HFiles of a folder, FOLDER/FAMILY/FILE, into a table, as HBase's LoadIncrementalHFiles
 * does (HBASE: BulkLoadHFilesTool): each file goes to the region that has its rows; a file that spans
 * regions is divided first, into a piece for each, below FOLDER/_rorqual_pieces. The server moves or
 * copies the files.
 *
 * Resuming after a kill: a file that the server moves is gone once it is loaded; copied and
 * divided files are recorded in a journal. Only the call in progress is in doubt:
 *   - moved files: the server links a file, commits and then removes the source. While the source has two names (hard
 *     links), this run waits for the earlier call; a source with one name is renamed, so that an earlier call that has
 *     not linked it yet finds nothing. The server looks at the name after the link and before the commit, the client at
 *     the link after the rename: one of them notices the other.
 *   - copied files (--keep, other file systems) are loaded again: the same cells, with the same
 *     timestamps. */
#ifndef RQ_TRANSFER_LOAD_HFILES_H
#define RQ_TRANSFER_LOAD_HFILES_H

#include "descriptor/schema.h"
#include "transfer/link.h"
#include "vfs/vfs.h"

typedef struct rq__load {
    rq__link *link;
    const rq_table_schema *schema;
    rq_vfs *vfs;       /* on the folder */
    const char *path;  /* of the folder: absolute, as the server is to see it */
    const char *token; /* of PrepareBulkLoad */
    bool keeps_files;  /* the server copies */
    uint64_t loaded;   /* files */
    uint64_t divided;
} rq__load;

/* Blocking. Regions may move or split meanwhile. RQ_E_NO_SUCH_FAMILY: the table has no family with
 * a folder's name, and nothing was loaded. A load that was killed or failed is resumed: files that the
 * server has loaded are not loaded again (load_journal.h). */
RQ_NODISCARD
rq_err rq__load_run(rq__load *l, rq_error *why);
/* Removes the state for resuming from the folder that the vfs is on; call it after rq__load_run has
 * succeeded. Until then another rq__load_run finds that everything is loaded. */
RQ_NODISCARD
rq_err rq__load_end(rq_vfs *v, rq_error *why);

/* PrepareBulkLoad and CleanupBulkLoad; the token is in the arena. */
RQ_NODISCARD
rq_err rq__load_prepare(rq__link *link, rq_arena *arena, const char **ret_token, rq_error *why);
RQ_NODISCARD
rq_err rq__load_cleanup(rq__link *link, const char *token, rq_error *why);
/* The table's descriptor, from the master; a new reference. */
RQ_NODISCARD
rq_err rq__table_schema_ask(rq__link *link, rq_table_schema **ret, rq_error *why);

#endif
