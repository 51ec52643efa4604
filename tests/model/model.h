/* SPDX-License-Identifier: Apache-2.0 */
/* HBase's rules for versions, deletes, TTL and filters in their simplest and slowest form: plain
 * arrays of cells, sorted and searched again for each call. The engine is compared with it; it
 * shares no code with the engine's read path. (The filters are the real ones, called as black boxes
 * in HBase's order.) */
#ifndef RQ_TESTS_MODEL_MODEL_H
#define RQ_TESTS_MODEL_MODEL_H

#include "store/scan.h"
#include "descriptor/schema.h"

/* Sets the row order of all sets and scans of the model. */
void model_set_order(rq_cell_order order);

typedef struct cell_set {
    rq_arena arena; /* memory of the cells' bytes */
    rq_cell *items;
    size_t count;
    size_t cap;
} cell_set;

void cell_set_clear(cell_set *s);
void cell_set_empty(cell_set *s); /* keeps the memory */
/* Copies the cell. */
void cell_set_add(cell_set *s, const rq_cell *cell);
void cell_set_add_all(cell_set *to, const cell_set *from);
/* Adds a copy; replaces a cell with the same key and seqid, as a memstore does. */
void cell_set_put(cell_set *s, const rq_cell *cell);
void cell_set_sort(cell_set *s);
/* One line per cell, for messages. */
void cell_set_print(const cell_set *s, const char *title);
/* Compares everything except sequence ids (with `seqids`: those, too). */
bool cell_set_equal(const cell_set *a, const cell_set *b, bool seqids);

typedef struct model_rewrite_options {
    /* all files are compacted: markers may be dropped, and sequence ids are zeroed */
    bool all_files;
    bool any_age;          /* the time of a file's earliest put is unknown */
    uint64_t newest_seqid; /* newest sequence id in the files; ids up to it are zeroed */
    uint64_t smallest_read_point;
    uint64_t unflushed_from; /* smallest sequence id in the memstore; 0: it is empty */
    int64_t now_ms;
    int64_t purge_ms;
} model_rewrite_options;

/* Adds to `out` the cells that a flush or compaction of `in` keeps; sorts `in`. */
void model_rewrite(const rq_family_schema *schema, cell_set *in, const model_rewrite_options *o,
                   cell_set *out);

/* --- a scan over the cells that exist at the time of each call -------------------------------- */
#define MODEL_FAMILIES_MAX 4

typedef struct model_family {
    const rq_family_schema *schema;
    const rq_scan_family *wanted; /* NULL: all columns */
    cell_set *cells;              /* all existing cells; sorted by the model */
    bool essential;
    bool ended;
    bool has_floor; /* cells before `floor` are skipped, because of a filter's hint */
    cell_set floor; /* one cell */
} model_family;

typedef struct model_scan {
    const rq_scan *scan;
    rq_filter *filter; /* a separate instance, or NULL */
    uint64_t read_point;
    int64_t now_ms;
    model_family families[MODEL_FAMILIES_MAX];
    size_t family_count;
    bool has_row;
    cell_set row; /* one cell: the row read last */
    bool done;
    bool failed; /* the filter failed: the scan fails in the row read last */
    rq_error why;
} model_scan;

void model_scan_init(model_scan *m, const rq_scan *scan, rq_filter *filter, uint64_t read_point,
                     int64_t now_ms);
void model_scan_add_family(model_scan *m, const rq_family_schema *schema,
                           const rq_scan_family *wanted, cell_set *cells);
void model_scan_clear(model_scan *m);
/* The next row of the scan; false at the end. Empties `out` first. */
bool model_scan_next(model_scan *m, cell_set *out);

#endif
