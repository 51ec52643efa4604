/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The design of a table, judged before the table exists: a schema, or a sample of a live table, is
 * simulated over servers, regions and time.
 *
 *     rq_schema schema; rq_schema_parse(text, …);
 *     rq_plan plan; rq_plan_of_schema(&schema, REMEDY, …);  which keys are written when; or
 *                   rq_plan_of_trace(&schema, REMEDY, …);   were read and written; or of a live
 *                   rq_plan_of_table, rq_plan_of_regions    table
 *     rq_simulate(&plan, …, &result);                       which region and server gets them
 *     rq_report_text / _json / _html                        what people read
 */
#ifndef RQ_DESIGN_DESIGN_H
#define RQ_DESIGN_DESIGN_H

#include "rorqual/rowkey.h"

#include "base/arena.h"
#include "base/buf.h"

#define RQ_DESIGN_PARTS_MAX 64
#define RQ_DESIGN_FAMILIES_MAX 16
#define RQ_DESIGN_STEPS 120
#define RQ_DESIGN_BANDS 96

/* --- schemas ---------------------------------------------------------------------------------- */

typedef enum rq_values_kind {
    RQ_VALUES_RANDOM,   /* over the type's whole range */
    RQ_VALUES_UNIFORM,  /* low … high */
    RQ_VALUES_ZIPF,     /* `count` values, skew */
    RQ_VALUES_SEQUENCE, /* ascending with each row */
    RQ_VALUES_NOW,      /* the time of the write */
    RQ_VALUES_CHOICE,   /* one of `choices` */
} rq_values_kind;

typedef struct rq_values {
    rq_values_kind kind;
    double low, high;
    uint64_t count;
    double skew;
    const char **choices;
} rq_values;

typedef struct rq_design_family {
    const char *name;
    double columns;   /* of a row */
    double qualifier; /* bytes */
    double value;     /* bytes */
} rq_design_family;

typedef enum rq_arrival { RQ_ARRIVAL_CONSTANT, RQ_ARRIVAL_DAILY, RQ_ARRIVAL_BURSTS } rq_arrival;

typedef struct rq_schema {
    rq_arena arena;
    const char *table;
    const char *key;
    rq_key_format *format;
    rq_values values[RQ_DESIGN_PARTS_MAX]; /* of the format's parts with values */
    rq_design_family families[RQ_DESIGN_FAMILIES_MAX];
    size_t family_count;
    uint64_t servers, regions;
    double period_s, writes_s, reads_s;
    double read_window_s; /* greatest age of the rows that are read; 0: any age */
    rq_arrival arrival;
    double peak;         /* the largest rate, as a multiple of the mean */
    double region_bytes; /* a region splits above this size */
    bool presplit;       /* `regions` at the start with split keys from the format */
} rq_schema;

/* RQ_E_INVALID: the message begins with the line's number. The caller clears the schema, always. */
RQ_NODISCARD
rq_err rq_schema_parse(const char *text, rq_schema *ret, rq_error *why);
void rq_schema_clear(rq_schema *s);

/* Bytes of a row in a file before compression: in all, of the keys, of family names and
 * qualifiers. */
typedef struct rq_row_bytes {
    double all, keys, names;
    double cells;
} rq_row_bytes;
rq_row_bytes rq__schema_row_bytes(const rq_schema *s, double key_length);

/* --- plans: keys over time -------------------------------------------------------------------- */

typedef struct rq_plan_key {
    uint32_t offset, length; /* in plan->bytes */
    uint32_t step;
    float weight; /* writes that it stands for, or reads */
    bool is_read;
} rq_plan_key;

/* A region of a table that exists. Its start key is in plan->bytes. */
typedef struct rq_plan_region {
    uint32_t offset, length;
    uint32_t server;
} rq_plan_region;

typedef struct rq_plan {
    const char *name;
    const char *key;  /* the format, or "" */
    const char *cost; /* of a remedy: what it takes */
    rq_buf bytes;
    rq_plan_key *keys; /* by step */
    size_t count;
    double writes;        /* all */
    double row_bytes;     /* in files */
    double key_length;    /* mean */
    double hottest_first; /* the largest share of one value of the first part that has values */
    uint64_t scans;       /* number of scans that read one range of keys */
    uint64_t servers, regions;
    double period_s, region_bytes;
    double reads;   /* all */
    bool has_reads; /* reads are among the keys; else they are generated from rows written */
    double read_window_s;
    rq_key_list *splits; /* at the start; NULL: quantiles of the plan's own keys, or one region */
    bool splits_by_sample;
    rq_plan_region *known; /* the regions at the start, ascending; NULL: as `splits` says */
    size_t known_count;
} rq_plan;

typedef enum rq_remedy {
    RQ_REMEDY_NONE,
    RQ_REMEDY_PRESPLIT,
    RQ_REMEDY_SALT,
    RQ_REMEDY_HASH,
    RQ_REMEDY_REVERSE,
    RQ_REMEDIES,
} rq_remedy;

/* RQ_E_UNSUPPORTED: the remedy does not fit this format. The caller clears the plan. */
RQ_NODISCARD
rq_err rq_plan_of_schema(const rq_schema *s, rq_remedy remedy, size_t samples, uint64_t seed,
                         rq_plan *ret, rq_error *why);
RQ_NODISCARD
rq_err rq__plan_add(rq_plan *p, rq_slice key, uint32_t step, double weight);
void rq_plan_clear(rq_plan *p);

/* --- simulation ------------------------------------------------------------------------------- */

typedef struct rq_outlook {
    const rq_plan *plan;
    double *server_load; /* [server][step]: writes and reads */
    float *heat;         /* [band][step]: writes and reads of a key range */
    size_t bands;
    char (*band_key)[64]; /* the first key of a band, as text */
    uint64_t regions_at_start, regions_at_end, splits, unsplittable;
    double bytes;          /* of files at the end */
    double mean_load;      /* of a server, over time */
    double peak_load;      /* of the busiest server in its busiest step */
    double imbalance;      /* mean over time of busiest server ÷ mean server; 1 is best */
    double hottest_region; /* mean over time of the busiest region's share of all */
    double busiest_share;  /* mean over time of the busiest server's share */
    bool moves;            /* the busiest region is another one as time goes on */
    char hottest_key[64];  /* first key of the region with the most load */
} rq_outlook;

RQ_NODISCARD
rq_err rq_simulate(const rq_plan *p, rq_outlook *ret, rq_error *why);
void rq_outlook_clear(rq_outlook *o);

/* --- reports ---------------------------------------------------------------------------------- */

/* A design with its remedies; [0] is the design itself. */
typedef struct rq_review {
    const char *table;
    const rq_schema *schema; /* NULL: of a live table */
    rq_outlook outlooks[RQ_REMEDIES];
    size_t count;
    rq_names *advice; /* on the format; may be NULL */
} rq_review;

bool rq_review_is_hot(const rq_review *r);
RQ_NODISCARD
rq_err rq_report_text(const rq_review *r, rq_buf *out);
RQ_NODISCARD
rq_err rq_report_json(const rq_review *r, rq_buf *out);
RQ_NODISCARD
rq_err rq_report_html(const rq_review *r, rq_buf *out);

#endif
