/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of region servers: RSGroupAdminService, a coprocessor service of the master. It is there if
 * hbase.coprocessor.master.classes names RSGroupAdminEndpoint, as in HBase.
 *
 * One server is in one group, "default" unless hbase:rsgroup says otherwise, so groups are names
 * with a configuration, and most moves are refused as an HBase with one server refuses them. */
#ifndef RQ_SERVICE_RSGROUP_H
#define RQ_SERVICE_RSGROUP_H

#include "service/admin_priv.h"

#include "proto/client.pb-c.h"
#include "proto/rsgroup.pb-c.h"

#define RQ__DEFAULT_GROUP "default"

/* --- rsgroup_store.c -------------------------------------------------------------------------- */

/* An index of servers or tables, sorted by name: lists of them come from requests, or from rows that any client may
 * write, and a search in this index takes O(log n) for each entry of such a list. */
typedef struct rq__place {
    const void *what; /* Pb__ServerName, Pb__TableName */
    Pb__RSGroupInfo *group;
    size_t rank; /* in the unsorted list: of equal entries the first counts */
} rq__place;

typedef struct rq__places {
    rq__place *list;
    size_t count;
    int (*order)(const void *a, const void *b); /* of rq__place, without the rank */
} rq__places;

/* All groups at one moment, in the arena; "default" is the last. */
typedef struct rq__groups {
    rq_admin_services *services;
    rq_arena *arena;
    Pb__RSGroupInfo **list;
    size_t count, cap;
    rq__places servers, tables; /* where they are, when the groups were read */
} rq__groups;

/* Blocking; makes hbase:rsgroup if it does not exist. */
RQ_NODISCARD
rq_err rq__groups_read(rq_admin_services *s, rq_arena *arena, rq__groups *ret, rq_error *why);
/* NULL: none. */
Pb__RSGroupInfo *rq__group_find(const rq__groups *g, const char *name);
Pb__RSGroupInfo *rq__group_of_server(const rq__groups *g, const Pb__ServerName *server);
Pb__RSGroupInfo *rq__group_of_table(const rq__groups *g, const Pb__TableName *table);
/* The servers or tables of a request, each once. */
RQ_NODISCARD
rq_err rq__places_of_servers(rq_arena *arena, Pb__ServerName *const *list, size_t count,
                             rq__places *ret);
RQ_NODISCARD
rq_err rq__places_of_tables(rq_arena *arena, Pb__TableName *const *list, size_t count,
                            rq__places *ret);
/* Removes them from every group. */
void rq__groups_drop_servers(rq__groups *g, const rq__places *gone);
void rq__groups_drop_tables(rq__groups *g, const rq__places *gone);
/* Removes groups and writes others, all or nothing; durable on return. Blocking. */
RQ_NODISCARD
rq_err rq__groups_write(const rq__groups *g, const char *const *gone, size_t gone_count,
                        Pb__RSGroupInfo *const *changed, size_t count, rq_error *why);

/* --- rsgroup.c -------------------------------------------------------------------------------- */

/* Whether ExecMasterService's call is for this service; if so, it is answered. */
bool rq__rsgroup_serves(const rq_admin_services *s, const Pb__CoprocessorServiceCall *call);
void rq__rsgroup_exec(rq_admin_services *s, rq_call *call);

#endif
