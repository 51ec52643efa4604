/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which blocks of a family's files are cached, and when. HBASE: CacheConfig. Each option is on if
 * the family's attribute (CACHE_DATA_ON_WRITE …) or the property of server, table or family enables
 * it. Reads cache data only if both BLOCKCACHE and hbase.block.data.cacheonread allow it, or if
 * blocks are prefetched on open. Index and bloom blocks that are read are always cached.
 */
#ifndef RQ_STORE_CACHE_OPTIONS_H
#define RQ_STORE_CACHE_OPTIONS_H

#include "descriptor/schema.h"

typedef struct rq_cache_options {
    bool data_on_read;
    bool data_on_write; /* of flushes; includes index and blooms */
    bool index_on_write, blooms_on_write;
    bool compacted_on_write;      /* all blocks written by a compaction … */
    uint64_t compacted_bytes_max; /* … if its inputs are not larger than this */
    bool evict_on_close, prefetch_on_open;
} rq_cache_options;

rq_cache_options rq_cache_options_default(void);
/* Names of the properties, index from 0; NULL past the end. */
const char *rq_cache_property(size_t i);
/* Sets a property. False: the value is invalid; nothing was changed. */
bool rq_cache_options_take(rq_cache_options *o, const char *property, rq_slice value);
/* The server's options with those of table and family applied. */
rq_cache_options rq__cache_options_of(const rq_cache_options *server, const rq_table_schema *t,
                                      const rq_family_schema *f);

/* RQ_WARM_… flags: the blocks of a new file that are cached at once. HBASE: HStore.createWriter:
 * a compaction leaves data out unless configured otherwise. */
unsigned rq__cache_options_on_write(const rq_cache_options *o, bool compaction,
                                    uint64_t input_bytes);

#endif
