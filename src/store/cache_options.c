/* SPDX-License-Identifier: Apache-2.0 */
/* HBase's block cache properties, as a table (cache_options.h). */
#include "store/cache_options.h"

#include "base/macros.h"
#include "hfile/reader.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

typedef struct property {
    const char *name;
    size_t place; /* of a bool in rq_cache_options */
} property;

#define PLACE(field) offsetof(rq_cache_options, field)
static const property properties[] = {
    {"hbase.block.data.cacheonread", PLACE(data_on_read)},
    {"hbase.rs.cacheblocksonwrite", PLACE(data_on_write)},
    {"hfile.block.index.cacheonwrite", PLACE(index_on_write)},
    {"hfile.block.bloom.cacheonwrite", PLACE(blooms_on_write)},
    {"hbase.rs.cachecompactedblocksonwrite", PLACE(compacted_on_write)},
    {"hbase.rs.evictblocksonclose", PLACE(evict_on_close)},
    {"hbase.rs.prefetchblocksonopen", PLACE(prefetch_on_open)},
    {"hbase.rs.cachecompactedblocksonwrite.threshold", SIZE_MAX}, /* a number */
};

rq_cache_options rq_cache_options_default(void)
{
    return (rq_cache_options){.data_on_read = true, .compacted_bytes_max = INT64_MAX};
}

const char *rq_cache_property(size_t i)
{
    return i < RQ_ARRAY_LEN(properties) ? properties[i].name : NULL;
}

static bool take_bytes(rq_slice v, uint64_t *ret)
{
    uint64_t n = 0;
    if (v.len == 0 || v.len > 19) return false;
    for (size_t i = 0; i < v.len; i++) {
        if (v.ptr[i] < '0' || v.ptr[i] > '9') return false;
        n = n * 10 + (uint64_t)(v.ptr[i] - '0');
    }
    *ret = n;
    return n <= INT64_MAX;
}

/* HBASE: Hadoop's Configuration.getBoolean: true and false in any case; other texts count as
 * unset. */
static bool take_bool(rq_slice v, bool *ret)
{
    static const char *const words[] = {"false", "true"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(words); i++) {
        if (v.len != strlen(words[i]) || strncasecmp((const char *)v.ptr, words[i], v.len) != 0)
            continue;
        *ret = i == 1;
        return true;
    }
    return false;
}

bool rq_cache_options_take(rq_cache_options *o, const char *name, rq_slice value)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(properties); i++) {
        if (strcmp(properties[i].name, name) != 0) continue;
        if (properties[i].place == SIZE_MAX) return take_bytes(value, &o->compacted_bytes_max);
        return take_bool(value, (bool *)((uint8_t *)o + properties[i].place));
    }
    return false;
}

rq_cache_options rq__cache_options_of(const rq_cache_options *server, const rq_table_schema *t,
                                      const rq_family_schema *f)
{
    rq_cache_options o = *server;
    for (size_t i = 0; i < RQ_ARRAY_LEN(properties); i++) {
        rq_slice value;
        /* An invalid value is ignored: the server's setting applies. */
        if (rq_schema_setting(t, f, properties[i].name, &value))
            (void)rq_cache_options_take(&o, properties[i].name, value);
    }
    o.data_on_read = o.data_on_read && f->block_cache;
    o.data_on_write = o.data_on_write || f->cache_on_write;
    o.index_on_write = o.index_on_write || f->cache_index_on_write;
    o.blooms_on_write = o.blooms_on_write || f->cache_blooms_on_write;
    o.evict_on_close = o.evict_on_close || f->evict_on_close;
    o.prefetch_on_open = o.prefetch_on_open || f->prefetch_on_open;
    /* HBASE: shouldCacheBlockOnRead: prefetched blocks must be admitted to the cache. */
    o.data_on_read = o.data_on_read || o.prefetch_on_open;
    return o;
}

unsigned rq__cache_options_on_write(const rq_cache_options *o, bool compaction,
                                    uint64_t input_bytes)
{
    bool all = compaction ? o->compacted_on_write && input_bytes <= o->compacted_bytes_max
                          : o->data_on_write;
    if (all) return RQ_WARM_ALL;
    return (o->index_on_write ? (unsigned)RQ_WARM_INDEX : 0) |
           (o->blooms_on_write ? (unsigned)RQ_WARM_BLOOMS : 0);
}
