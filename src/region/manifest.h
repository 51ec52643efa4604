/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A region's manifest: the list of its files, in one object that is replaced atomically (rq_vfs_cas
 * at .rorqual/regions/<encoded>). A flush of several families, a compaction and a bulk load each
 * commit by replacing it.
 *
 *   u8 version = 1 | u8 flags | be64 next number | varint families |
 *     family: u8 length, name | be64 flushed | varint files | file: u8 length, name
 *   families and files ascending by name; flags bit 0: IN_USE
 *
 * In a cluster it is an object on shared storage that is compared and swapped, "region:<encoded>", and
 * says who may serve the region (owned.h):
 *
 *   u8 version = 2 | u8 flags | be64 next number | be64 open number | be64 last stamp |
 *     [be64 truncations |] u8 length, owner | varint logs: u8 length, name, be64 opening, be64 first LSN |
 *     varint families, as above
 *   logs in the order of their opening; owner and names of logs are ServerNames; flags bit 1: TRUNCATED, and the
 *   number of truncations is there; bit 2: REMOVED, the families have been removed by a truncation, and their files
 *   have not all been archived
 *
 * A standalone server refuses version 2, and a cluster version 1. An addition to a version has a flag. A flag that a program
 * does not know means a newer program: the bytes are checked (vfs/cas.c, vfs/shared.h), so damage is not taken for it.
 *
 * IN_USE is set before the first file is made after an opening, and cleared by a clean close. While
 * it is set, a file not in the manifest is left over from a crashed flush or compaction. If it is
 * clear and folder and manifest differ, another program (HBase, a tool) changed the folder after
 * the clean close, and the folder is right.
 */
#ifndef RQ_REGION_MANIFEST_H
#define RQ_REGION_MANIFEST_H

#include "base/buf.h"
#include "region/region_info.h"
#include "store/store.h"
#include "vfs/shared.h"
#include "vfs/vfs.h"

#define RQ__MANIFEST_DIR ".rorqual/regions"
#define RQ__MANIFEST_BYTES_MAX ((size_t)16 * 1024 * 1024)

typedef struct rq__manifest_family {
    rq_slice name;
    uint64_t flushed; /* every cell of the family with this sequence id or a lower one is in a
                       * file (or was dropped) */
    rq_slice *files;
    size_t file_count;
} rq__manifest_family;

/* A log that may have edits of the region, from this LSN on, that are in no file. */
typedef struct rq__manifest_log {
    rq_slice name;
    uint64_t opening; /* number of the opening that named it, as in its key (wal/head.h) */
    uint64_t from;
} rq__manifest_log;

#define RQ__MANIFEST_LOGS_MAX 1000

typedef struct rq__manifest {
    bool in_use;
    uint64_t next_seqid; /* lower numbers are used or skipped */
    /* The manifest of a cluster's region (version 2). The fields up to `removed` are valid only then. */
    bool is_owned;
    uint64_t open_number;  /* of openings so far */
    uint64_t truncations;  /* so far */
    int64_t last_stamp_ms; /* the latest timestamp given to cells without one */
    rq_slice owner;        /* empty: none */
    rq__manifest_log *logs;
    size_t log_count;
    rq__manifest_family *removed; /* by a truncation: their files are to be archived */
    size_t removed_count;         /* not 0: there are no families */
    rq__manifest_family *families;
    size_t family_count;
} rq__manifest;

/* The state an open region keeps between two commits. */
typedef struct rq__manifest_state {
    uint64_t generation;
    bool in_use;
    bool in_doubt; /* the last write failed, but a power cut may still leave its result
                    * (vfs/vfs.h) */
} rq__manifest_state;

RQ_NODISCARD
rq_err rq__manifest_encode(const rq__manifest *m, rq_buf *out);
/* Decodes a manifest, untrusted bytes. Slices of *ret point into them, arrays are in the arena.
 * RQ_E_VERSION: a newer format or an unknown flag. RQ_E_CORRUPT with the offset. */
RQ_NODISCARD
rq_err rq__manifest_decode(rq_slice bytes, rq_arena *arena, rq__manifest *ret, rq_error *why);

/* Reads the manifest. Blocks. RQ_E_NOT_FOUND: there is none. */
RQ_NODISCARD
rq_err rq__manifest_read(rq_vfs *vfs, const char *encoded, rq_arena *arena, rq__manifest *ret,
                         uint64_t *ret_generation, rq_error *why);
/* Like rq__manifest_read, but writes nothing; for tools. *ret_other as for rq_vfs_cas_peek. */
RQ_NODISCARD
rq_err rq__manifest_peek(rq_vfs *vfs, const char *encoded, rq_arena *arena, rq__manifest *ret,
                         const char **ret_other, rq_error *why);
RQ_NODISCARD
/* Replaces the manifest. *generation: on entry that of the manifest to replace (0: there is none), on
 * return that of the new one. *in_doubt as for rq_vfs_cas. */
rq_err rq__manifest_write(rq_vfs *vfs, const char *encoded, const rq__manifest *m,
                          uint64_t *generation, bool *in_doubt, rq_error *why);
RQ_NODISCARD
rq_err rq__manifest_remove(rq_vfs *vfs, const char *encoded, rq_error *why);
/* NULL: the manifest does not have the family. */
const rq__manifest_family *rq__manifest_family_of(const rq__manifest *m, rq_slice name);
/* Whether a store file may have this name: letters, digits, '_', '.', '-', '='; not starting
 * with '.'. */
bool rq__store_file_name_ok(rq_slice name);

#endif
