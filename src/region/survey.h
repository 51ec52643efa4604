/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Examines a region on disk, for tools: its files by the rules of opening it (manifest.h,
 * filelist.h), and every inconsistency. Writes nothing and does not read the log.
 */
#ifndef RQ_REGION_SURVEY_H
#define RQ_REGION_SURVEY_H

#include "descriptor/schema.h"
#include "region/region_info.h"
#include "vfs/vfs.h"

typedef enum rq_finding {
    RQ_FINDING_NOTE,    /* for information; a server starts with it */
    RQ_FINDING_PROBLEM, /* something is missing, damaged or inconsistent */
} rq_finding;

/* Receives findings. `place` is a path below the root, with an offset if there is one. */
typedef struct rq_findings {
    void (*report)(void *ctx, rq_finding level, const char *place, const char *text);
    /* Reports progress: `bytes` more were read. May be NULL. */
    void (*step)(void *ctx, uint64_t bytes);
    void *ctx;
} rq_findings;

typedef struct rq_region_survey_family {
    rq_slice name;
    const char *dir;
    const char **files; /* names of the valid files */
    size_t file_count;
    uint64_t flushed; /* from the manifest; 0: none */
} rq_region_survey_family;

typedef struct rq_region_survey {
    bool has_manifest;
    bool in_use; /* it was not closed cleanly */
    rq_region_survey_family *families;
    size_t family_count;
} rq_region_survey;

typedef struct rq_region_survey_options {
    /* NULL: unknown; the families are those of folder and manifest. */
    const rq_table_schema *schema;
    /* Another program (HBase) has used the folder since: it may differ from the manifest. */
    bool foreign;
    /* The caller has read HBase's recovered.edits: the files hold all of their edits. */
    bool edits_replayed;
    bool closed_long; /* it may have been closed long ago: a difference is only a note */
    /* A procedure will continue at the next start: a family may be in removal. */
    bool in_change;
} rq_region_survey_options;

/* Compares manifest and folder. Results are in the arena. Returns only errors of reading. */
RQ_NODISCARD
rq_err rq_region_survey_read(rq_vfs *vfs, const rq_region_info *info,
                             const rq_region_survey_options *options, rq_arena *arena,
                             const rq_findings *findings, rq_region_survey *ret, rq_error *why);

/* Checks each file: trailer, file info, root index, the range of its rows, the target of a
 * reference or link, the MOB files it lists. With `deep` also its whole content (hfile/check.h),
 * except for files for which `is_known` returns true: they have been checked already, since several
 * references may lead to one file. `is_known` may be NULL. */
RQ_NODISCARD
rq_err rq_region_survey_files(rq_vfs *vfs, const rq_region_info *info, const rq_region_survey *s,
                              bool deep, bool (*is_known)(void *ctx, const char *path), void *ctx,
                              const rq_findings *findings, rq_error *why);

/* --- nonces (nonce_files.h) ------------------------------------------------------------------- */
typedef struct rq_nonce_survey {
    const char *path;
    const char *region; /* encoded name */
    uint64_t highest;   /* sequence id in the file's name; 0: not a valid name */
    int64_t written_ms;
    size_t count;
    rq_slice entries;
    bool unfinished;    /* from a flush that did not commit: the next start removes it */
    const char *damage; /* NULL: undamaged, and the fields above are valid */
} rq_nonce_survey;

typedef struct rq_nonce_survey_entry {
    uint64_t group, nonce, sequence_id, age_ms;
} rq_nonce_survey_entry;

/* Calls `callback` for each file of nonces, by region. Returns only errors of reading folders
 * and of the callback. */
RQ_NODISCARD
rq_err rq_nonces_survey(rq_vfs *vfs,
                        rq_err (*callback)(void *ctx, const rq_nonce_survey *file, rq_error *why),
                        void *ctx, rq_error *why);
/* REQUIRES: i < count. */
rq_nonce_survey_entry rq_nonces_survey_entry(const rq_nonce_survey *file, size_t i);

#endif
