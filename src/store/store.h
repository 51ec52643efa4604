/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One family of one region: memstore segments and HFiles.
 *
 * What readers see is an immutable *version*, replaced as a whole (flush began, flush ended,
 * compaction ended, bulk load) by publishing a pointer; the old one is retired through the epoch.
 * A reader uses a version inside its read section (a loop's iteration), or takes a reference.
 * Whichever version a reader takes, the cells at or below its read point are the same: flush and
 * compaction drop only what no open read point can see.
 */
#ifndef RQ_STORE_STORE_H
#define RQ_STORE_STORE_H

#include "base/env.h"
#include "hfile/reader.h"
#include "hfile/writer.h"
#include "store/schema.h"
#include "store/segment.h"

#include <stdatomic.h>

typedef struct rq_store rq_store;

typedef struct rq_store_file {
    rq_hfile_reader *reader; /* a reference of the version's */
    char name[48];           /* file name in the family's folder: 32 hex digits */
    uint64_t size_bytes;
    uint64_t max_seqid;      /* of its cells; MAX_SEQ_ID_KEY */
    uint64_t entry_count;
    int64_t min_ts, max_ts;
    bool major;              /* MAJOR_COMPACTION_KEY */
    bool bulk_loaded;
} rq_store_file;

typedef struct rq_store_version {
    _Atomic unsigned refs;
    rq_epoch_node retired;
    rq_segment *active;      /* the one segment that still grows */
    rq_segment **snapshots;  /* being flushed, newest first */
    size_t snapshot_count;
    rq_store_file *files;    /* oldest first, by max_seqid */
    size_t file_count;
} rq_store_version;

/* Inside a read section; valid until its end unless referenced. */
const rq_store_version *rq_store_version_now(const rq_store *s);
const rq_store_version *rq_store_version_ref(const rq_store_version *v);
void rq_store_version_unref(const rq_store_version *v);

const rq_family_schema *rq_store_schema(const rq_store *s);
rq_cell_order rq_store_order(const rq_store *s);
const rq_env *rq_store_env(const rq_store *s);

#endif
