/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Table and family descriptors: the attributes as HBase keeps them (maps of byte strings, stored
 * and returned unchanged), and the parsed values used by the engine. Immutable once built;
 * reference-counted; any thread.
 */
#ifndef RQ_DESCRIPTOR_SCHEMA_H
#define RQ_DESCRIPTOR_SCHEMA_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"
#include "hfile/format.h" /* rq_bloom_type, rq_compression */

typedef struct rq_attribute {
    rq_slice key;
    rq_slice value;
} rq_attribute;

typedef struct rq_attributes {
    rq_attribute *items;
    size_t count;
} rq_attributes;

typedef enum rq_keep_deleted {
    RQ_KEEP_DELETED_FALSE,
    RQ_KEEP_DELETED_TRUE,
    RQ_KEEP_DELETED_TTL
} rq_keep_deleted;

#define RQ_TTL_FOREVER INT32_MAX /* seconds */

typedef struct rq_family_schema {
    rq_slice name;
    rq_attributes attributes; /* as stored and returned, with defaults filled in as HBase does */
    rq_attributes configuration;
    int32_t max_versions;
    int32_t min_versions;
    int32_t ttl_s;
    uint32_t block_bytes;
    rq_bloom_type bloom;
    rq_compression compression;
    rq_keep_deleted keep_deleted;
    bool block_cache;
    bool in_memory;
    bool new_version_behavior;
    bool compress_tags;
    bool cache_on_write; /* CACHE_DATA_ON_WRITE; effective values: store/cache_options.h */
    bool cache_index_on_write, cache_blooms_on_write, evict_on_close, prefetch_on_open;
    bool is_mob;            /* IS_MOB */
    uint64_t mob_threshold; /* MOB_THRESHOLD: larger values go to MOB files */
    int32_t scope;          /* REPLICATION_SCOPE: 0 local, 1 global */
    rq_block_encoding encoding;
    uint32_t bloom_prefix_len; /* RowPrefixBloomFilter.prefix_length; 0: none, or none possible */
} rq_family_schema;

typedef struct rq_table_schema {
    rq_slice ns; /* "default" when the name has none */
    rq_slice qualifier;
    rq_slice name; /* "ns:qualifier", or the qualifier alone in the default namespace */
    rq_attributes attributes;
    rq_family_schema *families; /* ascending by name */
    size_t family_count;
    bool read_only;
    uint64_t flush_bytes;    /* MEMSTORE_FLUSHSIZE, 0: the server's default */
    uint64_t max_file_bytes; /* MAX_FILESIZE, 0: the server's default */
    int durability;          /* pb Durability; USE_DEFAULT = 0 */
    bool is_meta;            /* hbase:meta: RQ_ORDER_META */
    bool is_system;          /* hbase:meta, hbase:namespace: used by the server itself */
    bool compaction_enabled;
    int region_replication;
} rq_table_schema;

/*
 * Parses a serialized protobuf TableSchema (HBase.proto); returns a new reference. Families get the
 * defaults HBase adds, the table's configuration becomes attributes, empty values remove
 * attributes, times and sizes written as text ("1 DAY", "64 KB") become numbers.
 * RQ_E_ILLEGAL_ARGUMENT with HBase's text: an invalid name or value. Whether the values are
 * consistent is checked by the catalog (HBASE: TableDescriptorChecker).
 */
RQ_NODISCARD
rq_err rq_table_schema_parse(rq_slice pb, rq_table_schema **ret, rq_error *why);
/* The serialized protobuf TableSchema, as in .tableinfo files and responses. */
rq_slice rq_table_schema_pb(const rq_table_schema *s);
rq_table_schema *rq_table_schema_ref(rq_table_schema *s);
void rq_table_schema_unref(rq_table_schema *s); /* NULL is allowed */
/* "ns:qualifier", allocated in `a`; in the default namespace the qualifier itself, not copied.
 * Either part may be empty. Out of memory: .ptr is NULL. */
rq_slice rq_table_name_join(rq_arena *a, rq_slice ns, rq_slice qualifier);
/* NULL when absent. */
const rq_family_schema *rq_table_schema_family(const rq_table_schema *s, rq_slice name);
/* NULL: absent. Items are ascending by key. */
const rq_attribute *rq_attributes_find(const rq_attributes *a, const char *key);
/* Looks up a server setting overridden for a family: in its attributes, its configuration, then
 * the table's attributes (HBASE: StoreUtils.createStoreConfiguration). `f` may be NULL: only the
 * table's. False: the server's value is used. */
bool rq_schema_setting(const rq_table_schema *t, const rq_family_schema *f, const char *property,
                       rq_slice *ret);

#endif
