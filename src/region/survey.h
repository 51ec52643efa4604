/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A region as it lies on disk, for tools: what it consists of by the rules of its opening
 * (manifest.h, filelist.h), and everything about it that is not as it should be. Nothing is
 * written, the log is not looked at.
 */
#ifndef RQ_REGION_SURVEY_H
#define RQ_REGION_SURVEY_H

#include "region/region_info.h"
#include "store/schema.h"
#include "vfs/vfs.h"

typedef enum rq_finding {
    RQ_FINDING_NOTE,    /* worth knowing; a start copes with it */
    RQ_FINDING_PROBLEM, /* something is lost, damaged or contradicts something else */
} rq_finding;

/* Where a tool hears of what it finds; `place`: a path below the root, with an offset where there
 * is one. */
typedef struct rq_findings {
    void (*tell)(void *ctx, rq_finding level, const char *place, const char *text);
    /* So many bytes more were read through; may be NULL. */
    void (*step)(void *ctx, uint64_t bytes);
    void *ctx;
} rq_findings;

void rq_findings_tell(const rq_findings *f, rq_finding level, const char *place, const char *format,
                      ...) RQ_PRINTF(4, 5);

typedef struct rq_region_survey_family {
    rq_slice name;
    const char *dir;
    const char **files; /* names; those that count */
    size_t file_count;
    uint64_t flushed; /* of the manifest; 0: none */
} rq_region_survey_family;

typedef struct rq_region_survey {
    bool has_manifest;
    bool in_use; /* it was not closed cleanly */
    rq_region_survey_family *families;
    size_t family_count;
} rq_region_survey;

typedef struct rq_region_survey_options {
    /* NULL: not known; families are then what folder and manifest have. */
    const rq_table_schema *schema;
    /* Somebody else (HBase) has worked on the folder since: it may differ from the manifest. */
    bool foreign;
    bool closed_long; /* nobody may have opened it since: a difference is only a note */
    /* A procedure goes on at the next start: a family may be on its way out. */
    bool in_change;
} rq_region_survey_options;

/* Manifest against folder. Memory is the arena's. An error is one of reading. */
RQ_NODISCARD
rq_err rq_region_survey_read(rq_vfs *vfs, const rq_region_info *info,
                             const rq_region_survey_options *options, rq_arena *arena,
                             const rq_findings *findings, rq_region_survey *ret, rq_error *why);

/* Each file: trailer, file info, root index, the rows it may hold; what a reference or link stands
 * for; the MOB files it says it refers to. With `deep` everything that is in them (hfile/check.h),
 * but of files that `is_known` says were read already (several refer to one; may be NULL). */
RQ_NODISCARD
rq_err rq_region_survey_files(rq_vfs *vfs, const rq_region_info *info, const rq_region_survey *s,
                              bool deep, bool (*is_known)(void *ctx, const char *path), void *ctx,
                              const rq_findings *findings, rq_error *why);

/* --- nonces (nonce_files.h) ------------------------------------------------------------------- */
typedef struct rq_nonce_survey {
    const char *path;
    const char *region; /* encoded name */
    uint64_t highest;   /* sequence id, by the file's name; 0: it has no such name */
    int64_t written_ms;
    size_t count;
    rq_slice entries;
    bool unfinished;    /* of a flush that did not commit: the next start removes it */
    const char *damage; /* NULL: none, and then the above is what the file says */
} rq_nonce_survey;

typedef struct rq_nonce_survey_entry {
    uint64_t group, nonce, sequence_id, age_ms;
} rq_nonce_survey_entry;

/* Each file of nonces, by region. An error is one of reading folders, or the callback's. */
RQ_NODISCARD
rq_err rq_nonces_survey(rq_vfs *vfs,
                        rq_err (*callback)(void *ctx, const rq_nonce_survey *file, rq_error *why),
                        void *ctx, rq_error *why);
/* REQUIRES: i < count. */
rq_nonce_survey_entry rq_nonces_survey_entry(const rq_nonce_survey *file, size_t i);

#endif
