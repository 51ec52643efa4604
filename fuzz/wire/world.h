/* SPDX-License-Identifier: Apache-2.0 */
/* The fuzzer's knowledge of the server: existing names, and numbers from its responses. The tables
 * have fixed names; their regions come from hbase:meta, other numbers from responses. */
#ifndef RQ_FUZZ_WIRE_WORLD_H
#define RQ_FUZZ_WIRE_WORLD_H

#include "draw.h"

#define WORLD_TABLES 6
#define WORLD_SCANNERS 4096 /* the latest ones */
#define WORLD_PROCEDURES 64
#define WORLD_PATHS 32
#define ENCODED_LEN 32

typedef struct world_region {
    rq_buf name; /* TABLE,START,ID.ENCODED. */
    rq_buf start, end;
    uint64_t id;
    unsigned table;
    char encoded[ENCODED_LEN + 1];
} world_region;

typedef struct world {
    world_region *regions;
    size_t region_count;
    struct {
        uint64_t request, id;
    } scanners[WORLD_SCANNERS];
    uint64_t procedures[WORLD_PROCEDURES];
    uint64_t procedure_count;
    const char *paths[WORLD_PATHS]; /* files for bulk loads */
    size_t path_count;
    uint64_t now_ms;
} world;

/* The name of table `n`; the last two tables are in a separate namespace. */
const char *world_namespace(unsigned n);
const char *world_qualifier(unsigned n);

void world_clear(world *w);
/* Replaces the regions by those in the ScanResponse of hbase:meta, whose cells are in its
 * results. */
void world_learn_regions(world *w, rq_slice scan_response);
/* NULL: none is known. */
const world_region *world_region_of(const world *w, unsigned table, rq_slice row);

void world_learn_scanner(world *w, uint64_t request, uint64_t id);
/* The id of the scanner that a request opened; 0: unknown. */
uint64_t world_scanner(const world *w, uint64_t request);
void world_learn_procedure(world *w, uint64_t id);

#endif
