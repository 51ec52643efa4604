/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A region's manifest: what it consists of, in one object that changes atomically (rq_vfs_cas at
 * .rorqual/regions/<encoded>). A flush of several families, a compaction, a bulk load each commit
 * by replacing it.
 *
 *   u8 version = 1 | u8 flags | be64 next number | varint families |
 *     family: u8 length, name | be64 flushed | varint files | file: u8 length, name
 *   families and files ascending by name; flags bit 0: IN_USE
 *
 * IN_USE is set before the first file is made after an opening, and cleared by a clean close. While
 * it is set, a file the manifest does not name is what a crashed flush or compaction left behind.
 * When it is clear and folder and manifest differ, somebody else (HBase, a tool) worked on the
 * folder after our clean close, and the folder is the truth. This is the stamp of the design's
 * decision 2, kept per region.
 */
#ifndef RQ_REGION_MANIFEST_H
#define RQ_REGION_MANIFEST_H

#include "base/buf.h"
#include "region/region_info.h"
#include "store/store.h"
#include "vfs/vfs.h"

#define RQ__MANIFEST_DIR ".rorqual/regions"
#define RQ__MANIFEST_BYTES_MAX ((size_t)16 * 1024 * 1024)

typedef struct rq__manifest_family {
    rq_slice name;
    uint64_t flushed; /* every cell of the family at or below is in a file (or gone for good) */
    rq_slice *files;
    size_t file_count;
} rq__manifest_family;

typedef struct rq__manifest {
    bool in_use;
    uint64_t next_seqid; /* numbers below were given or skipped */
    rq__manifest_family *families;
    size_t family_count;
} rq__manifest;

/* What an open region remembers between two commits. */
typedef struct rq__manifest_state {
    uint64_t generation;
    bool in_use;
    bool in_doubt; /* the last write failed, and may still be what a power cut leaves (vfs/vfs.h) */
} rq__manifest_state;

RQ_NODISCARD
rq_err rq__manifest_encode(const rq__manifest *m, rq_buf *out);
/* Untrusted bytes; slices of *ret point into them, arrays are in the arena. RQ_E_VERSION for a
 * newer format, RQ_E_CORRUPT with the offset. */
RQ_NODISCARD
rq_err rq__manifest_decode(rq_slice bytes, rq_arena *arena, rq__manifest *ret, rq_error *why);

/* Blocking. RQ_E_NOT_FOUND when there is none. */
RQ_NODISCARD
rq_err rq__manifest_read(rq_vfs *vfs, const char *encoded, rq_arena *arena, rq__manifest *ret,
                         uint64_t *ret_generation, rq_error *why);
/* The same for tools: nothing is written. *ret_other as of rq_vfs_cas_peek. */
RQ_NODISCARD
rq_err rq__manifest_peek(rq_vfs *vfs, const char *encoded, rq_arena *arena, rq__manifest *ret,
                         const char **ret_other, rq_error *why);
RQ_NODISCARD
rq_err rq__manifest_write(rq_vfs *vfs, const char *encoded, const rq__manifest *m,
                          uint64_t *generation, bool *in_doubt, rq_error *why);
RQ_NODISCARD
rq_err rq__manifest_remove(rq_vfs *vfs, const char *encoded, rq_error *why);
/* NULL when the manifest does not name the family. */
const rq__manifest_family *rq__manifest_family_of(const rq__manifest *m, rq_slice name);
/* A name a store file may have: letters, digits, '_', '.', '-', '='; not starting with '.'. */
bool rq__store_file_name_ok(rq_slice name);

#endif
