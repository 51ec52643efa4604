/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files of a store to merge, and writing what remains of segments or files into a new one.
 * Deciding is a pure function of the files' sizes and ages; writing is blocking, in bounded memory
 * (one block of each input and one of the output), and ends quickly when told to stop.
 */
#ifndef RQ_STORE_COMPACTION_H
#define RQ_STORE_COMPACTION_H

#include "store/store.h"
#include "store/store_scanner.h"

/* HBase's properties (hbase.hstore.compaction.*, hbase.hregion.majorcompaction*). */
typedef struct rq_compaction_settings {
    uint32_t min_files;
    uint32_t max_files;
    double ratio;
    uint64_t min_bytes; /* below it a file is taken whatever the ratio says */
    uint64_t max_bytes; /* above it a file is left out of minor compactions */
    uint32_t blocking_files;
    int64_t major_period_ms; /* 0: on request only */
    double major_jitter;
    int64_t keep_seqid_period_ms;
    int64_t time_to_purge_deletes_ms;
} rq_compaction_settings;

/* A contiguous run of the version's files. */
typedef struct rq_compaction_choice {
    size_t first;
    size_t count;   /* 0: nothing to do */
    bool all_files; /* then delete markers go and the result is marked major */
    bool major;     /* asked for, or due */
} rq_compaction_choice;

/* HBASE: SortedCompactionPolicy.selectCompaction with ExploringCompactionPolicy. `wants_major`: on
 * request. Files are oldest first. */
rq_compaction_choice rq_compaction_choose(const rq_compaction_settings *s,
                                          const rq_family_schema *family,
                                          const rq_store_file *files, size_t count,
                                          bool wants_major, int64_t now_ms);
/* Enough files for a look (HBASE: needsCompaction). */
bool rq_compaction_is_worth_a_look(const rq_compaction_settings *s, const rq_store_file *files,
                                   size_t count, const rq_family_schema *family, int64_t now_ms);

/* The MOB files a rewrite wrote, in the end referred to by its store file. */
typedef struct rq_mob_written rq_mob_written;
typedef struct rq_mob_output {
    rq_mob_written *first;
} rq_mob_output;

/* Once the store file counts, or never will: from here on the MOB files are like any others. Empty
 * ones are fine. `remove`: they are not needed. */
void rq_mob_output_end(rq_mob_output *o, const rq_store *s, bool remove);

typedef struct rq_rewrite {
    rq_rewrite_options scan;      /* `store` and inputs, see store_scanner.h */
    uint64_t max_seqid;           /* MAX_SEQ_ID_KEY of the new file */
    const _Atomic bool *stop;     /* looked at every few hundred cells; may be NULL */
    _Atomic uint64_t *cells_done; /* counts input that came out; may be NULL */
    /* MOB families: */
    rq_mob_output *mob_output; /* empty; the caller ends it. Not looked at for other families */
    bool rewrites_mob;         /* a compaction of MOB files too: of all files, on request */
} rq_rewrite;

/*
 * Blocking. Writes a new, durable file into the family's folder and opens it. *ret_empty: nothing
 * was left to write, there is no file and *ret is untouched. RQ_E_CANCELLED when stopped. On
 * failure no file stays behind but what a crash would leave too.
 */
RQ_NODISCARD
rq_err rq_store_rewrite(const rq_rewrite *w, rq_store_file *ret, bool *ret_empty, rq_error *why);
/* Gives up a file that was written and will not be published: its reader and, best effort, itself.
 */
void rq_store_file_discard(const rq_store *s, rq_store_file *f);

#endif
