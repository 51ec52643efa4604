/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a family's files is kept in the block cache, and when. HBASE: CacheConfig: the family's
 * attributes (CACHE_DATA_ON_WRITE …) or the properties of server, table or family switch a thing
 * on; BLOCKCACHE and hbase.block.data.cacheonread must both allow reads to keep data. Index and
 * bloom blocks that are read are always kept.
 */
#ifndef RQ_STORE_CACHE_OPTIONS_H
#define RQ_STORE_CACHE_OPTIONS_H

#include "store/schema.h"

typedef struct rq_cache_options {
    bool data_on_read;
    bool data_on_write; /* of flushes; takes index and blooms along */
    bool index_on_write, blooms_on_write;
    bool compacted_on_write;      /* all blocks of what a compaction writes … */
    uint64_t compacted_bytes_max; /* … if its inputs are not larger */
    bool evict_on_close, prefetch_on_open;
} rq_cache_options;

rq_cache_options rq_cache_options_default(void);
/* The properties, index from 0; NULL behind the last. */
const char *rq_cache_property(size_t i);
/* Takes the value of one; false, and nothing changed, when it can have no such value. */
bool rq_cache_options_take(rq_cache_options *o, const char *property, rq_slice value);
/* `server`'s as a family of the table has them. */
rq_cache_options rq_cache_options_of(const rq_cache_options *server, const rq_table_schema *t,
                                     const rq_family_schema *f);

/* RQ_WARM_…: what of a new file goes into the cache at once. HBASE:
 * HStore.createWriter: a compaction leaves data out unless told otherwise. */
unsigned rq_cache_options_on_write(const rq_cache_options *o, bool compaction,
                                   uint64_t input_bytes);

#endif
