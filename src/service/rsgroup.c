/* SPDX-License-Identifier: Apache-2.0 */
/* RSGroupAdminService's methods; see rsgroup.h. Each reads the groups, decides and writes, under one
 * lock, on RQ_POOL_CALL. HBASE: RSGroupAdminEndpoint, RSGroupAdminServer. */
#include "service/rsgroup.h"

#include "base/pb_arena.h"
#include "base/pb_missing.h"
#include "service/messages.h"

#include "proto/client.pb-c.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define ENDPOINT "org.apache.hadoop.hbase.rsgroup.RSGroupAdminEndpoint"
#define SERVICE "RSGroupAdminService"
#define RESPONSES "org.apache.hadoop.hbase.protobuf.generated.RSGroupAdminProtos$"

typedef struct job {
    rq__blocking blocking;
    const struct method *method;
    const ProtobufCMessage *request;
    rq__groups groups;
    rq_slice response; /* serialized */
} job;

typedef struct method {
    const char *name;
    const ProtobufCMessageDescriptor *request;
    const char *response_class;
    rq_err (*run)(job *j);
} method;

/* --- what the methods share ------------------------------------------------------------------- */

static rq_err refuse(job *j, const char *format, ...) RQ_PRINTF(2, 3);
static rq_err refuse(job *j, const char *format, ...)
{
    va_list list;
    char text[512];
    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return rq_fail(&j->blocking.why, RQ_E_CONSTRAINT, "%s", text);
}

static rq_err respond(job *j, const ProtobufCMessage *m)
{
    size_t len = protobuf_c_message_get_packed_size(m);
    uint8_t *bytes = rq_arena_alloc(j->groups.arena, len + 1);
    if (bytes == NULL) return RQ_E_NO_MEMORY;
    j->response = rq_slice_of(bytes, protobuf_c_message_pack(m, bytes));
    return RQ_OK;
}

/* The responses of all three Get methods are `optional RSGroupInfo r_s_group_info = 1`. */
static rq_err respond_group(job *j, Pb__RSGroupInfo *group)
{
    Pb__GetRSGroupInfoResponse m = PB__GET_RSGROUP_INFO_RESPONSE__INIT;
    m.r_s_group_info = group;
    return respond(j, &m.base);
}

/* HBASE: RSGroupInfoManagerImpl.checkGroupName. */
static rq_err check_name(job *j, const char *name)
{
    const char *letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    if (name[0] != '\0' && name[strspn(name, letters)] == '\0') return RQ_OK;
    return refuse(j, "RSGroup name should only contain alphanumeric characters");
}

static rq_err write_one(job *j, Pb__RSGroupInfo *group)
{
    return rq__groups_write(&j->groups, NULL, 0, &group, 1, &j->blocking.why);
}

/* HBASE: RSGroupAdminServer.getAndCheckRSGroupInfo. */
static rq_err need_group(job *j, const char *name, Pb__RSGroupInfo **ret)
{
    if (name[0] == '\0') return refuse(j, "RSGroup cannot be null.");
    *ret = rq__group_find(&j->groups, name);
    return *ret != NULL ? RQ_OK : refuse(j, "RSGroup does not exist: %s", name);
}

/* --- queries ---------------------------------------------------------------------------------- */

static rq_err get_info(job *j)
{
    const Pb__GetRSGroupInfoRequest *r = (const Pb__GetRSGroupInfoRequest *)j->request;
    return respond_group(j, rq__group_find(&j->groups, r->r_s_group_name));
}

static rq_err check_tables(job *j, Pb__TableName *const *tables, size_t count)
{
    for (size_t i = 0; i < count; i++)
        RQ_TRY(rq__table_name_check(tables[i], &j->blocking.why));
    return RQ_OK;
}

static rq_err get_info_of_table(job *j)
{
    const Pb__GetRSGroupInfoOfTableRequest *r =
        (const Pb__GetRSGroupInfoOfTableRequest *)j->request;
    RQ_TRY(check_tables(j, &r->table_name, 1));
    return respond_group(j, rq__group_of_table(&j->groups, r->table_name));
}

static rq_err get_info_of_server(job *j)
{
    const Pb__GetRSGroupInfoOfServerRequest *r =
        (const Pb__GetRSGroupInfoOfServerRequest *)j->request;
    return respond_group(j, rq__group_of_server(&j->groups, r->server));
}

static rq_err list_infos(job *j)
{
    Pb__ListRSGroupInfosResponse m = PB__LIST_RSGROUP_INFOS_RESPONSE__INIT;
    m.r_s_group_info = j->groups.list;
    m.n_r_s_group_info = j->groups.count;
    return respond(j, &m.base);
}

/* With one server there is nothing to move. */
static rq_err balance(job *j)
{
    const Pb__BalanceRSGroupRequest *r = (const Pb__BalanceRSGroupRequest *)j->request;
    const rq_admin_services *s = j->blocking.services;
    Pb__BalanceRSGroupResponse m = PB__BALANCE_RSGROUP_RESPONSE__INIT;
    Pb__RSGroupInfo *group;
    m.has_moves_calculated = m.has_moves_executed = 1;
    bool dry = r->has_dry_run && r->dry_run;
    if (rq_catalog_switch_get(s->catalog, RQ_SWITCH_BALANCER) || dry)
        RQ_TRY(need_group(j, r->r_s_group_name, &group));
    return respond(j, &m.base);
}

/* --- groups ----------------------------------------------------------------------------------- */

static rq_err add(job *j)
{
    const Pb__AddRSGroupRequest *r = (const Pb__AddRSGroupRequest *)j->request;
    Pb__RSGroupInfo m = PB__RSGROUP_INFO__INIT;
    RQ_TRY(check_name(j, r->r_s_group_name));
    if (rq__group_find(&j->groups, r->r_s_group_name) != NULL)
        return rq_fail(&j->blocking.why, RQ_E_DO_NOT_RETRY, "Group already exists: %s",
                       r->r_s_group_name);
    m.name = r->r_s_group_name;
    return write_one(j, &m);
}

/* The namespace that has claimed the group, in the arena; .ptr NULL: none. */
static rq_slice namespace_of(job *j, const char *group)
{
    rq_epoch_member m = {0};
    const rq_namespace *const *list;
    size_t count;
    rq_slice found = {0};
    rq_admin_services *s = j->blocking.services;
    rq_epoch_pin(s->env.epoch, &m);
    rq_catalog_namespaces(s->catalog, &list, &count);
    for (size_t i = 0; i < count && found.ptr == NULL; i++) {
        const rq_attribute *a = rq_attributes_find(&list[i]->configuration, "hbase.rsgroup.name");
        if (a != NULL && rq_slice_eq(a->value, rq_slice_cstr(group)))
            found = rq_arena_copy(j->groups.arena, list[i]->name);
    }
    rq_epoch_unpin(s->env.epoch, &m);
    return found;
}

static rq_err remove_group(job *j)
{
    const char *name = ((const Pb__RemoveRSGroupRequest *)j->request)->r_s_group_name;
    const Pb__RSGroupInfo *g = rq__group_find(&j->groups, name);
    if (g == NULL) return refuse(j, "RSGroup %s does not exist", name);
    if (g->n_tables > 0)
        return refuse(j,
                      "RSGroup %s has %zu tables; you must remove these tables from the rsgroup "
                      "before the rsgroup can be removed.",
                      name, g->n_tables);
    if (g->n_servers > 0)
        return refuse(j,
                      "RSGroup %s has %zu servers; you must remove these servers from the RSGroup "
                      "beforethe RSGroup can be removed.",
                      name, g->n_servers);
    rq_slice ns = namespace_of(j, name);
    if (ns.ptr != NULL)
        return refuse(j, "RSGroup %s is referenced by namespace: %.*s", name, (int)ns.len,
                      (const char *)ns.ptr);
    if (strcmp(name, RQ__DEFAULT_GROUP) == 0)
        return rq_fail(&j->blocking.why, RQ_E_DO_NOT_RETRY,
                       "Group %s does not exist or is a reserved group", name);
    return rq__groups_write(&j->groups, &name, 1, NULL, 0, &j->blocking.why);
}

static rq_err rename_group(job *j)
{
    const Pb__RenameRSGroupRequest *r = (const Pb__RenameRSGroupRequest *)j->request;
    const char *old = r->old_rsgroup_name;
    RQ_TRY(check_name(j, old));
    RQ_TRY(check_name(j, r->new_rsgroup_name));
    if (strcmp(old, RQ__DEFAULT_GROUP) == 0) return refuse(j, "Can't rename default rsgroup");
    Pb__RSGroupInfo *g = rq__group_find(&j->groups, old);
    if (g == NULL) return refuse(j, "RSGroup %s does not exist", old);
    if (rq__group_find(&j->groups, r->new_rsgroup_name) != NULL)
        return refuse(j, "Group already exists: %s", r->new_rsgroup_name);
    Pb__RSGroupInfo renamed = *g;
    renamed.name = r->new_rsgroup_name;
    renamed.n_configuration = 0; /* HBase drops it, too */
    Pb__RSGroupInfo *list[] = {&renamed};
    return rq__groups_write(&j->groups, &old, 1, list, 1, &j->blocking.why);
}

static rq_err update_config(job *j)
{
    const Pb__UpdateRSGroupConfigRequest *r = (const Pb__UpdateRSGroupConfigRequest *)j->request;
    if (strcmp(r->group_name, RQ__DEFAULT_GROUP) == 0)
        return refuse(j, "configuration of " RQ__DEFAULT_GROUP " can't be stored persistently");
    Pb__RSGroupInfo *g = rq__group_find(&j->groups, r->group_name);
    if (g == NULL)
        return rq_fail(&j->blocking.why, RQ_E_DO_NOT_RETRY, "RSGroup %s does not exist",
                       r->group_name);
    g->configuration = r->configuration;
    g->n_configuration = r->n_configuration;
    return write_one(j, g);
}

/* --- servers and tables ----------------------------------------------------------------------- */

/* Room for `count` more. */
static bool reserve(rq_arena *arena, void ***list, size_t used, size_t count)
{
    void **more = rq_arena_alloc(arena, (used + count + 1) * sizeof(void *));
    if (more == NULL) return false;
    if (used > 0) memcpy(more, *list, used * sizeof(void *));
    *list = more;
    return true;
}

static rq_err put_servers(job *j, Pb__ServerName *const *servers, size_t count, Pb__RSGroupInfo *to)
{
    rq__places moved;
    RQ_TRY(rq__places_of_servers(j->groups.arena, servers, count, &moved));
    rq__groups_drop_servers(&j->groups, &moved);
    if (!reserve(j->groups.arena, (void ***)&to->servers, to->n_servers, moved.count))
        return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        servers[i]->has_start_code = 0;
    for (size_t i = 0; i < moved.count; i++)
        to->servers[to->n_servers++] = (Pb__ServerName *)(uintptr_t)moved.list[i].what;
    return RQ_OK;
}

static rq_err put_tables(job *j, Pb__TableName *const *tables, size_t count, Pb__RSGroupInfo *to)
{
    rq__places moved;
    RQ_TRY(rq__places_of_tables(j->groups.arena, tables, count, &moved));
    rq__groups_drop_tables(&j->groups, &moved);
    if (!reserve(j->groups.arena, (void ***)&to->tables, to->n_tables, moved.count))
        return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < moved.count; i++)
        to->tables[to->n_tables++] = (Pb__TableName *)(uintptr_t)moved.list[i].what;
    return RQ_OK;
}

static rq_err write_all(job *j)
{
    return rq__groups_write(&j->groups, NULL, 0, j->groups.list, j->groups.count, &j->blocking.why);
}

static bool is_online(const job *j, const Pb__ServerName *server)
{
    const rq_server_name *self = rq_catalog_server(j->blocking.services->catalog);
    Pb__ServerName address = *server;
    address.has_start_code = 0;
    return rq__is_this_server(self, &address);
}

/* The group that the first server is in. */
static rq_err source_of(job *j, const Pb__ServerName *first, Pb__RSGroupInfo **ret)
{
    *ret = rq__group_of_server(&j->groups, first);
    if (*ret != NULL) return RQ_OK;
    return refuse(j, "Server %s:%u is either offline or it does not exist.", first->host_name,
                  first->port);
}

/* All servers must be in the group. */
static rq_err check_source(job *j, Pb__ServerName *const *servers, size_t count,
                           const Pb__RSGroupInfo *from)
{
    for (size_t i = 0; i < count; i++) {
        const Pb__RSGroupInfo *g = rq__group_of_server(&j->groups, servers[i]);
        if (g == from) continue;
        if (g == NULL)
            return refuse(j, "Server %s:%u is not an online server in 'default' RSGroup.",
                          servers[i]->host_name, servers[i]->port);
        return refuse(j,
                      "Move server request should only come from one source RSGroup. Expecting "
                      "only %s but contains %s",
                      from->name, g->name);
    }
    return RQ_OK;
}

static rq_err move_servers(job *j)
{
    const Pb__MoveServersRequest *r = (const Pb__MoveServersRequest *)j->request;
    Pb__RSGroupInfo *to, *from;
    if (r->n_servers == 0) return RQ_OK;
    RQ_TRY(need_group(j, r->target_group, &to));
    RQ_TRY(source_of(j, r->servers[0], &from));
    if (strcmp(from->name, RQ__DEFAULT_GROUP) == 0 && from->n_servers <= r->n_servers)
        return refuse(j, "should keep at least one server in 'default' RSGroup.");
    RQ_TRY(check_source(j, r->servers, r->n_servers, from));
    if (from->n_servers <= r->n_servers && from->n_tables > 0)
        return refuse(
            j, "Cannot leave a RSGroup %s that contains tables without servers to host them.",
            from->name);
    RQ_TRY(put_servers(j, r->servers, r->n_servers, to));
    return write_all(j);
}

static rq_err move_tables(job *j)
{
    const Pb__MoveTablesRequest *r = (const Pb__MoveTablesRequest *)j->request;
    RQ_TRY(check_tables(j, r->table_name, r->n_table_name));
    if (r->n_table_name == 0) return RQ_OK;
    Pb__RSGroupInfo *to = rq__group_find(&j->groups, r->target_group);
    if (to == NULL) return refuse(j, "Target %s RSGroup does not exist.", r->target_group);
    if (to->n_servers == 0) return refuse(j, "Target RSGroup must have at least one server.");
    RQ_TRY(put_tables(j, r->table_name, r->n_table_name, to));
    return write_all(j);
}

static rq_err move_both(job *j)
{
    const Pb__MoveServersAndTablesRequest *r = (const Pb__MoveServersAndTablesRequest *)j->request;
    Pb__RSGroupInfo *to, *from;
    RQ_TRY(check_tables(j, r->table_name, r->n_table_name));
    if (r->n_servers == 0) return refuse(j, "The list of servers to move cannot be null or empty.");
    if (r->n_table_name == 0)
        return refuse(j, "The list of tables to move cannot be null or empty.");
    RQ_TRY(need_group(j, r->target_group, &to));
    RQ_TRY(source_of(j, r->servers[0], &from));
    RQ_TRY(check_source(j, r->servers, r->n_servers, from));
    for (size_t i = 0; i < r->n_table_name; i++) {
        const Pb__RSGroupInfo *g = rq__group_of_table(&j->groups, r->table_name[i]);
        if (g == from) continue;
        return refuse(j,
                      "Move table request should only come from one source RSGroup. Expecting only "
                      "%s but contains %s",
                      from->name, g == NULL ? "null" : g->name);
    }
    if (from->n_servers <= r->n_servers && from->n_tables > r->n_table_name)
        return refuse(
            j, "Cannot leave a RSGroup %s that contains tables without servers to host them.",
            from->name);
    RQ_TRY(put_servers(j, r->servers, r->n_servers, to));
    RQ_TRY(put_tables(j, r->table_name, r->n_table_name, to));
    return write_all(j);
}

static rq_err remove_servers(job *j)
{
    const Pb__RemoveServersRequest *r = (const Pb__RemoveServersRequest *)j->request;
    if (r->n_servers == 0)
        return refuse(j, "The set of servers to remove cannot be null or empty.");
    bool drains = atomic_load(&j->blocking.services->decommissioned);
    for (size_t i = 0; i < r->n_servers; i++) {
        if (!drains && is_online(j, r->servers[i]))
            return refuse(j, "Server %s:%u is an online server, not allowed to remove.",
                          r->servers[i]->host_name, r->servers[i]->port);
    }
    rq__places gone;
    RQ_TRY(rq__places_of_servers(j->groups.arena, r->servers, r->n_servers, &gone));
    rq__groups_drop_servers(&j->groups, &gone);
    return write_all(j);
}

/* --- the call --------------------------------------------------------------------------------- */

#define METHOD(name, message, run)                                                                 \
    {                                                                                              \
#name, &pb__##message##_request__descriptor, RESPONSES #name "Response", run               \
    }

static const method methods[] = {
    METHOD(GetRSGroupInfo, get_rsgroup_info, get_info),
    METHOD(GetRSGroupInfoOfTable, get_rsgroup_info_of_table, get_info_of_table),
    METHOD(GetRSGroupInfoOfServer, get_rsgroup_info_of_server, get_info_of_server),
    METHOD(MoveServers, move_servers, move_servers),
    METHOD(MoveTables, move_tables, move_tables),
    METHOD(AddRSGroup, add_rsgroup, add),
    METHOD(RemoveRSGroup, remove_rsgroup, remove_group),
    METHOD(BalanceRSGroup, balance_rsgroup, balance),
    METHOD(ListRSGroupInfos, list_rsgroup_infos, list_infos),
    METHOD(MoveServersAndTables, move_servers_and_tables, move_both),
    METHOD(RemoveServers, remove_servers, remove_servers),
    METHOD(RenameRSGroup, rename_rsgroup, rename_group),
    METHOD(UpdateRSGroupConfig, update_rsgroup_config, update_config),
};

bool rq__rsgroup_serves(const rq_admin_services *s, const Pb__CoprocessorServiceCall *call)
{
    return strcmp(call->service_name, SERVICE) == 0 &&
           strstr(rq_config_text(s->config, RQ_SET_MASTER_COPROCESSORS), ENDPOINT) != NULL;
}

static const Pb__CoprocessorServiceCall *asked_of(const rq_call *call)
{
    return ((const Pb__CoprocessorServiceRequest *)call->param)->call;
}

/* Not on the loop: the request has up to 1 MiB. */
static rq_err unpack(job *j)
{
    rq_call *call = j->blocking.call;
    const Pb__CoprocessorServiceCall *c = asked_of(call);
    rq_slice bytes = rq__pb_slice(c->request);
    rq_pb_arena memory;
    char missing[512];
    rq_pb_arena_init(&memory, &call->arena);
    rq_call_decoding(call, true);
    j->request =
        protobuf_c_message_unpack(j->method->request, &memory.allocator, bytes.len, bytes.ptr);
    rq_call_decoding(call, false);
    if (j->request != NULL) return RQ_OK;
    if (memory.exhausted) return RQ_E_NO_MEMORY;
    if (rq_pb_missing(j->method->request, bytes, missing, sizeof missing))
        return rq_fail(&j->blocking.why, RQ_E_DO_NOT_RETRY, "%s", missing);
    return rq_fail(&j->blocking.why, RQ_E_DO_NOT_RETRY, "the request of %s.%s is not a %s",
                   c->service_name, c->method_name, j->method->request->short_name);
}

static rq_err work(rq__blocking *b)
{
    job *j = RQ_CONTAINER_OF(b, job, blocking);
    RQ_TRY(unpack(j));
    pthread_mutex_lock(&b->services->rsgroup_lock);
    rq_err rc = rq__groups_read(b->services, &b->call->arena, &j->groups, &b->why);
    if (rc == RQ_OK) rc = j->method->run(j);
    pthread_mutex_unlock(&b->services->rsgroup_lock);
    return rc;
}

static void answer(rq__blocking *b)
{
    const job *j = RQ_CONTAINER_OF(b, job, blocking);
    Pb__CoprocessorServiceResponse response = PB__COPROCESSOR_SERVICE_RESPONSE__INIT;
    Pb__RegionSpecifier region = PB__REGION_SPECIFIER__INIT;
    Pb__NameBytesPair value = PB__NAME_BYTES_PAIR__INIT;
    region.type = PB__REGION_SPECIFIER__REGION_SPECIFIER_TYPE__REGION_NAME;
    region.value.data = (uint8_t *)(uintptr_t) "";
    value.name = (char *)(uintptr_t)j->method->response_class;
    value.has_value = 1;
    value.value = rq__pb_binary(j->response);
    response.region = &region;
    response.value = &value;
    rq_call_reply(b->call, &response.base);
}

static const method *find_method(const char *name)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(methods); i++)
        if (strcmp(methods[i].name, name) == 0) return &methods[i];
    return NULL;
}

void rq__rsgroup_exec(rq_admin_services *s, rq_call *call)
{
    const Pb__CoprocessorServiceCall *c = asked_of(call);
    const method *m = find_method(c->method_name);
    if (m == NULL) {
        rq_call_fail(call, RQ_E_UNKNOWN_PROTOCOL, "Unknown method %s called on service hbase.pb.%s",
                     c->method_name, c->service_name);
        return;
    }
    job *j = rq_arena_calloc(&call->arena, 1, sizeof *j);
    if (j == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    j->method = m;
    rq__blocking_start(&j->blocking, s, call, work, answer);
}
