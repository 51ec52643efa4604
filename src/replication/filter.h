/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the log's records a peer gets: those of the tables, namespaces and families of its
 * configuration, except records that were already applied in the peer's cluster (their cluster ids
 * contain the peer's). HBASE: NamespaceTableCfWALEntryFilter,
 * ReplicationPeerConfig.needToReplicate, ClusterMarkingEntryFilter, SystemTableWALEntryFilter. */
#ifndef RQ_REPLICATION_FILTER_H
#define RQ_REPLICATION_FILTER_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define RQ_CLUSTER_ID_LEN 16

/* A table of the configuration, and its families. */
typedef struct rq__table_rule {
    rq_slice table;      /* as in records: "ns:q", or "q" in the namespace default */
    rq_slice *families;  /* ascending */
    size_t family_count; /* 0: all */
} rq__table_rule;

typedef struct rq__filter {
    bool replicate_all; /* all is replicated but what the lists name; false: only what they name */
    rq_slice *namespaces;
    size_t namespace_count;
    rq__table_rule *tables; /* both lists ascending */
    size_t table_count;
    /* Other settings of the peer: */
    const char *cluster_key;
    int64_t bandwidth; /* bytes per second; 0: no limit */
    bool serial;
} rq__filter;

/* From a packed ReplicationPeer. Everything is in the arena. */
RQ_NODISCARD
rq_err rq__filter_make(rq_slice config, rq_arena *arena, rq__filter *ret, rq_error *why);
/* Whether cells of the table are sent at all. *ret_rule: the rule that selects its
 * families; NULL: all families are sent. */
bool rq__filter_takes_table(const rq__filter *f, rq_slice table, const rq__table_rule **ret_rule);
bool rq__filter_takes_family(const rq__filter *f, const rq__table_rule *rule, rq_slice family);

/* Whether `id` is one of the concatenated ids. */
bool rq__clusters_contain(rq_slice ids, const uint8_t id[static RQ_CLUSTER_ID_LEN]);
/* "01234567-89ab-…" to bytes. False: it is no UUID. */
bool rq__cluster_id_parse(const char *text, uint8_t ret[static RQ_CLUSTER_ID_LEN]);

#endif
