/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the files of a store to compact, and rewrites segments or files into new files. The
 * choice is a pure function of the files' sizes, ages and time ranges. Rewriting blocks, uses
 * bounded memory (one block per input and output), and ends quickly when told to stop.
 *
 * HBase's policies, by its class names:
 *   exploring   the longest run of neighbours of which none is much larger than the others
 *   ratio       starts at the oldest file that is not much larger than those behind it
 *   FIFO        rewrites nothing: a file is removed when its last cell has expired
 *   date-tiered neighbours in one time window; windows grow with age (compaction_tiered.c)
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
    int64_t max_age_ms;     /* older files are not compacted */
    uint32_t incoming_min;  /* minimum number of files in the current window */
    int64_t base_window_ms; /* size of the youngest windows */
    uint32_t windows_per_tier;
    int64_t max_tier_age_ms;     /* beyond this age windows do not grow */
    bool single_output;          /* a minor compaction writes one file */
    rq_compaction_policy within; /* policy inside a window: exploring or ratio */
} rq_tier_settings;

/* HBase's properties (hbase.hstore.compaction.*, hbase.hregion.majorcompaction*). */
typedef struct rq_compaction_settings {
    rq_compaction_policy policy;
    uint32_t min_files;
    uint32_t max_files;
    double ratio, offpeak_ratio;
    uint64_t min_bytes; /* smaller files are taken regardless of the ratio */
    uint64_t max_bytes; /* larger files are left out of minor compactions */
    uint64_t offpeak_max_bytes;
    uint64_t throttle_bytes; /* larger compactions run in a pool of their own */
    uint32_t blocking_files;
    int64_t major_period_ms; /* 0: on request only */
    double major_jitter;
    int64_t keep_seqid_period_ms;
    int64_t time_to_purge_deletes_ms;
    bool drop_behind;  /* drop read bytes of inputs from the page cache */
    bool drop_expired; /* remove fully expired files without reading them */
    rq_tier_settings tiered;
} rq_compaction_settings;

/* A contiguous run of the version's files. */
typedef struct rq_compaction_choice {
    size_t first;
    size_t count;   /* 0: nothing to do */
    bool all_files; /* all files: delete markers are dropped and the result is marked major */
    bool major;     /* requested, or due */
    bool offpeak;
    enum {
        RQ_TIER_NONE,   /* one file */
        RQ_TIER_WINDOW, /* two files: before window_start, and from it on */
        RQ_TIER_ALL,    /* one file per window */
    } tiers;
    int64_t window_start;
} rq_compaction_choice;

/* Chooses files. `wants_major`: a major compaction was requested. `files` are oldest first.
 * HBASE: SortedCompactionPolicy.selectCompaction. */
rq_compaction_choice rq_compaction_choose(const rq_compaction_settings *s,
                                          const rq_family_schema *family,
                                          const rq_store_file *files, size_t count,
                                          bool wants_major, bool may_use_offpeak, int64_t now_ms);
/* The choice for a store that is no longer written to: at least two files, by the ratio of off-peak hours. A load
 * leaves some files that the ordinary ratio does not merge, and each short scan reads a block of each of them.
 * No file is chosen if the policy is neither exploring nor ratio-based, if a file is a reference, or if the sizes add up
 * to less than min_bytes, because small files are likely to be in memory. */
rq_compaction_choice rq_compaction_choose_quiet(const rq_compaction_settings *s,
                                                const rq_store_file *files, size_t count);
/* Whether rq_compaction_choose should be called: there are enough files, a major compaction is
 * due (HBASE: needsCompaction, shouldPerformMajorCompaction), a file is a reference, or one has
 * expired. */
bool rq_compaction_is_worth_a_look(const rq_compaction_settings *s, const rq_store_file *files,
                                   size_t count, const rq_family_schema *family, int64_t now_ms);
/* Whether file i can be removed without reading it, since all its cells have expired. HBASE:
 * HStore.removeUnneededFiles, which keeps the newest file; FIFOCompactionPolicy, which does not. */
bool rq_compaction_is_expired(const rq_compaction_settings *s, const rq_family_schema *family,
                              const rq_store_file *files, size_t count, size_t i, int64_t now_ms);
/* The lower bounds of the timestamp ranges into which a choice's output is divided; ascending,
 * the first is INT64_MIN; the caller frees them. One bound: not divided. */
RQ_NODISCARD
rq_err rq_compaction_boundaries(const rq_compaction_settings *s, const rq_compaction_choice *c,
                                const rq_store_file *files, int64_t now_ms, int64_t **ret,
                                size_t *ret_count);

/* Converts the class names of hbase.hstore.engine.class and
 * hbase.hstore.defaultengine.compactionpolicy.class (empty: HBase's default). False: not
 * supported. */
bool rq_compaction_policy_of(rq_slice engine, rq_slice policy, rq_compaction_policy *ret);
/* hbase.hstore.compaction.date.tiered.window.policy.class */
bool rq_compaction_policy_within(rq_slice policy, rq_compaction_policy *ret);

/* The MOB files written by a rewrite, which its store file refers to. */
typedef struct rq_mob_written rq_mob_written;
typedef struct rq_mob_output {
    rq_mob_written *first;
} rq_mob_output;

/* Ends the registration of the MOB files as being written: after this call lists of the MOB folder
 * contain them, and the cleaner may archive them if nothing refers to them. Call it when the store file
 * was discarded, or after its commit but before leaving the commit gate: a list made under the gate may
 * have the store file and then needs its MOB files. `remove`: removes the MOB files. An empty output is
 * allowed. */
void rq_mob_output_end(rq_mob_output *o, const rq_store *s, bool remove);
/* Moves all files of `from` to `to`, because the outcome of their commit is unknown. */
void rq_mob_output_move(rq_mob_output *from, rq_mob_output *to);
/* Frees the list. Its files stay registered as being written. */
void rq_mob_output_forget(rq_mob_output *o);

typedef struct rq_rewrite {
    rq_rewrite_options scan;   /* store and inputs, see store_scanner.h; `look` is set by
                                * rq_store_rewrite */
    uint64_t max_seqid;        /* MAX_SEQ_ID_KEY of the new files */
    const int64_t *boundaries; /* from rq_compaction_boundaries; NULL: one file */
    size_t boundary_count;
    /* Checked every few hundred cells; the rewrite ends when one is not zero. May be NULL. */
    const _Atomic bool *stop;        /* the store is closing */
    const _Atomic unsigned *lacking; /* a flush needs the disk's space */
    _Atomic uint64_t *cells_done;    /* counts input cells processed; may be NULL */
    /* For MOB families: */
    rq_mob_output *mob_output; /* empty; the caller calls rq_mob_output_end. Unused for other
                                * families */
    bool rewrites_mob;         /* also compact MOB files: for all files, on request */
    /* Called now and then with the bytes written so far; may wait. May be NULL. */
    void (*pace)(void *context, uint64_t bytes);
    void *pace_context;
} rq_rewrite;

/*
 * Writes new durable files into the family's folder and opens them: at most one per boundary, or
 * one without boundaries. *ret_count 0: there was nothing to write. `ret` has room for them.
 * Blocks. RQ_E_CANCELLED: stopped, or the space is needed. On failure no file remains except what a
 * crash would also leave.
 */
RQ_NODISCARD
rq_err rq_store_rewrite(const rq_rewrite *w, rq_store_file *ret, size_t *ret_count, rq_error *why);
/* Discards a written file that will not be published: closes its reader and removes it (best
 * effort). */
void rq_store_file_discard(const rq_store *s, rq_store_file *f);

#endif
