/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files of a store to merge, and writing what remains of segments or files into new ones.
 * Deciding is a pure function of the files' sizes, ages and time ranges; writing is blocking, in
 * bounded memory (one block of each input and each output), and ends quickly when told to stop.
 *
 * HBase's policies, by its class names:
 *   exploring   the longest run of neighbours none of which is much larger than the others
 *   ratio       from the oldest file on that is not much larger than those behind it
 *   FIFO        nothing is rewritten: a file goes when its last cell has expired
 *   date-tiered neighbours of one time window; windows grow with age (compaction_tiered.c)
 */
#ifndef RQ_STORE_COMPACTION_H
#define RQ_STORE_COMPACTION_H

#include "store/store.h"
#include "store/store_scanner.h"

typedef enum rq_compaction_policy {
    RQ_COMPACT_EXPLORING,
    RQ_COMPACT_RATIO,
    RQ_COMPACT_FIFO,
    RQ_COMPACT_DATE_TIERED,
} rq_compaction_policy;

/* hbase.hstore.compaction.date.tiered.*; ExponentialCompactionWindowFactory. */
typedef struct rq_tier_settings {
    int64_t max_age_ms;     /* older files are left alone */
    uint32_t incoming_min;  /* files of the window of now that are worth a compaction */
    int64_t base_window_ms; /* of the youngest windows */
    uint32_t windows_per_tier;
    int64_t max_tier_age_ms;     /* behind it windows do not grow */
    bool single_output;          /* a minor compaction writes one file */
    rq_compaction_policy within; /* a window: exploring or ratio */
} rq_tier_settings;

/* HBase's properties (hbase.hstore.compaction.*, hbase.hregion.majorcompaction*). */
typedef struct rq_compaction_settings {
    rq_compaction_policy policy;
    uint32_t min_files;
    uint32_t max_files;
    double ratio, offpeak_ratio;
    uint64_t min_bytes; /* below it a file is taken whatever the ratio says */
    uint64_t max_bytes; /* above it a file is left out of minor compactions */
    uint64_t offpeak_max_bytes;
    uint64_t throttle_bytes; /* above it a compaction is a large one, with a pool of its own */
    uint32_t blocking_files;
    int64_t major_period_ms; /* 0: on request only */
    double major_jitter;
    int64_t keep_seqid_period_ms;
    int64_t time_to_purge_deletes_ms;
    bool drop_behind;  /* inputs leave the system's memory as they are read */
    bool drop_expired; /* files whose cells have all expired go without being read */
    rq_tier_settings tiered;
} rq_compaction_settings;

/* A contiguous run of the version's files. */
typedef struct rq_compaction_choice {
    size_t first;
    size_t count;   /* 0: nothing to do */
    bool all_files; /* then delete markers go and the result is marked major */
    bool major;     /* asked for, or due */
    bool offpeak;
    enum {
        RQ_TIER_NONE,   /* one file */
        RQ_TIER_WINDOW, /* two: up to window_start, and from there on */
        RQ_TIER_ALL,    /* one for each window */
    } tiers;
    int64_t window_start;
} rq_compaction_choice;

/* HBASE: SortedCompactionPolicy.selectCompaction. `wants_major`: on request. Files are oldest
 * first. */
rq_compaction_choice rq_compaction_choose(const rq_compaction_settings *s,
                                          const rq_family_schema *family,
                                          const rq_store_file *files, size_t count,
                                          bool wants_major, bool may_use_offpeak, int64_t now_ms);
/* Enough files for a look, or a major compaction is due (HBASE: needsCompaction,
 * shouldPerformMajorCompaction), or a file has expired. */
bool rq_compaction_is_worth_a_look(const rq_compaction_settings *s, const rq_store_file *files,
                                   size_t count, const rq_family_schema *family, int64_t now_ms);
/* File i can go without being read: all its cells have expired. HBASE: HStore.removeUnneededFiles,
 * which spares the newest; FIFOCompactionPolicy, which does not. */
bool rq_compaction_is_expired(const rq_compaction_settings *s, const rq_family_schema *family,
                              const rq_store_file *files, size_t count, size_t i, int64_t now_ms);
/* Where a choice's output is divided by timestamp: lower bounds, ascending, the first INT64_MIN;
 * malloc'ed. One: not divided. */
RQ_NODISCARD
rq_err rq_compaction_boundaries(const rq_compaction_settings *s, const rq_compaction_choice *c,
                                const rq_store_file *files, int64_t now_ms, int64_t **ret,
                                size_t *ret_count);

/* What a table, a family or the site names in hbase.hstore.engine.class and
 * hbase.hstore.defaultengine.compactionpolicy.class (empty: HBase's default); false: not served. */
bool rq_compaction_policy_of(rq_slice engine, rq_slice policy, rq_compaction_policy *ret);
/* hbase.hstore.compaction.date.tiered.window.policy.class */
bool rq_compaction_policy_within(rq_slice policy, rq_compaction_policy *ret);

/* The MOB files a rewrite wrote, in the end referred to by its store file. */
typedef struct rq_mob_written rq_mob_written;
typedef struct rq_mob_output {
    rq_mob_written *first;
} rq_mob_output;

/* Once the store file counts, or never will: from here on the MOB files are like any others. Empty
 * ones are fine. `remove`: they are not needed. */
void rq_mob_output_end(rq_mob_output *o, const rq_store *s, bool remove);

typedef struct rq_rewrite {
    rq_rewrite_options scan;   /* `store` and inputs, see store_scanner.h; its `look` is our own */
    uint64_t max_seqid;        /* MAX_SEQ_ID_KEY of the new files */
    const int64_t *boundaries; /* as above; NULL: one file */
    size_t boundary_count;
    /* Looked at every few hundred cells read; may be NULL. Once not zero, it ends. */
    const _Atomic bool *stop;        /* the store is closing */
    const _Atomic unsigned *lacking; /* somebody has more need of the disk's space */
    _Atomic uint64_t *cells_done;    /* counts input that came out; may be NULL */
    /* MOB families: */
    rq_mob_output *mob_output; /* empty; the caller ends it. Not looked at for other families */
    bool rewrites_mob;         /* a compaction of MOB files too: of all files, on request */
    /* Called with the bytes written so far, now and then; may wait. May be NULL. */
    void (*pace)(void *context, uint64_t bytes);
    void *pace_context;
} rq_rewrite;

/*
 * Blocking. Writes new, durable files into the family's folder and opens them: at most as many as
 * there are boundaries, at most one without; *ret_count 0: nothing was left to write. `ret` has
 * room. RQ_E_CANCELLED when stopped or in the way. On failure no file stays behind but what a crash
 * would leave too.
 */
RQ_NODISCARD
rq_err rq_store_rewrite(const rq_rewrite *w, rq_store_file *ret, size_t *ret_count, rq_error *why);
/* Gives up a file that was written and will not be published: its reader and, best effort, itself.
 */
void rq_store_file_discard(const rq_store *s, rq_store_file *f);

#endif
