/* SPDX-License-Identifier: Apache-2.0 */
/* Stores and a region whose versions are made by a test: memstore segments, snapshots and real
 * HFiles in memory, rotated, flushed and compacted by the test, through the real rewrite scanner.
 * They replace store.c and region.c (they define the functions that readers call), so a reader can
 * be driven through any sequence of versions. One thread; readers must be suspended before a
 * version changes. */
#ifndef RQ_TESTS_MODEL_BY_HAND_H
#define RQ_TESTS_MODEL_BY_HAND_H

#include "base/log.h"
#include "memory_vfs.h"
#include "model.h"
#include "region/region_scanner.h"
#include "store/store_scanner.h"

#define BY_HAND_FAMILIES_MAX 4
#define BY_HAND_FILES_MAX 64

struct rq_store {
    rq_family_schema schema;
    rq_cache_options caching;
    rq_cell_order order;
    struct by_hand *world;
    rq_store_version version;
    rq_segment *snapshots[BY_HAND_FILES_MAX];
    rq_store_file files[BY_HAND_FILES_MAX];
};

struct rq_region {
    rq_region_info info;
    bool closing;
    uint64_t read_point; /* newest visible write number */
    uint64_t open_points[64];
    size_t open_count;
    unsigned refs;
    struct by_hand *world;
};

typedef struct by_hand {
    rq_random random;
    memory_vfs vfs;
    rq_executor executor;
    rq_epoch *epoch;
    rq_env env;
    rq_log_limit damage;
    rq_block_cache *cache; /* may be NULL */
    rq_arena arena;
    int64_t now_ms;
    int64_t purge_ms; /* major compactions keep markers this long */
    uint64_t now_ns;  /* advances by 1000 at each reading */
    uint64_t clock_looks;
    rq_store stores[BY_HAND_FAMILIES_MAX];
    size_t store_count;
    struct rq_region region;
    unsigned next_file;
} by_hand;

void by_hand_init(by_hand *w, uint64_t seed, const rq_family_schema *families, size_t count,
                  rq_cell_order order, uint64_t cache_bytes);
void by_hand_clear(by_hand *w);

/* Copies the cell into the family's active segment. */
void by_hand_add(by_hand *w, size_t family, const rq_cell *cell);
/* Turns the active segment into a snapshot; false if it is empty. */
bool by_hand_rotate(by_hand *w, size_t family);
/* Writes all snapshots to a file. The written cells are appended to `written` (may be NULL). */
void by_hand_flush(by_hand *w, size_t family, uint64_t smallest_read_point, cell_set *written);
/* Replaces `count` files from `first` on by one file. */
void by_hand_compact(by_hand *w, size_t family, size_t first, size_t count,
                     uint64_t smallest_read_point, cell_set *written);
/* Adds a file with these sorted cells, as if written elsewhere; the cells count as written at
 * `seqid`. */
void by_hand_bulk_load(by_hand *w, size_t family, const cell_set *cells, uint64_t seqid);
/* The smallest read point any scanner may still use. */
uint64_t by_hand_smallest_read_point(const by_hand *w);

#endif
