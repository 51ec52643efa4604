/* SPDX-License-Identifier: Apache-2.0 */
/* GetProcedures, ListProcedures and the list of peer modifications: procedures with their
 * parameters. HBase sends the parameters as state messages, which clients print as JSON: the
 * numbers of the steps, then a message that depends on the procedure's kind. Here each procedure
 * has one state message, with the table or namespace and the user; for procedures on single regions
 * it has the table's name. The definition of a table is not kept with its procedure's result.
 * HBASE: ProcedureUtil.convertToProtoProcedure; MasterProcedure.proto. */
#include "service/listing.h"
#include "service/master_priv.h"
#include "service/messages.h"

#include "proto/master.pb-c.h"
#include "proto/master_procedure.pb-c.h"
#include "proto/procedure.pb-c.h"

#define URL "type.googleapis.com/hbase.pb."

/* --- the message of a kind -------------------------------------------------------------------- */

static Pb__Any *any(rq_arena *arena, const char *url, const ProtobufCMessage *m)
{
    Pb__Any *a = rq_arena_alloc(arena, sizeof *a);
    size_t len = protobuf_c_message_get_packed_size(m);
    uint8_t *bytes = rq_arena_alloc(arena, len + 1);
    if (a == NULL || bytes == NULL) return NULL;
    pb__any__init(a);
    a->type_url = (char *)(uintptr_t)url;
    a->has_value = 1;
    a->value = (ProtobufCBinaryData){protobuf_c_message_pack(m, bytes), bytes};
    return a;
}

/* What most messages are made of. */
typedef struct parts {
    Pb__UserInformation user;
    Pb__TableName table;
    Pb__TableSchema schema;
    Pb__NamespaceDescriptor ns;
} parts;

typedef Pb__Any *make_state(rq_arena *arena, const rq_procedure *of, parts *p, const char *url);

static Pb__Any *create_table(rq_arena *arena, const rq_procedure *of, parts *p, const char *url)
{
    Pb__CreateTableStateData m = PB__CREATE_TABLE_STATE_DATA__INIT;
    (void)of;
    m.user_info = &p->user;
    m.table_schema = &p->schema;
    return any(arena, url, &m.base);
}

static Pb__Any *modify_table(rq_arena *arena, const rq_procedure *of, parts *p, const char *url)
{
    Pb__ModifyTableStateData m = PB__MODIFY_TABLE_STATE_DATA__INIT;
    (void)of;
    m.user_info = &p->user;
    m.modified_table_schema = &p->schema;
    return any(arena, url, &m.base);
}

static Pb__Any *truncate_table(rq_arena *arena, const rq_procedure *of, parts *p, const char *url)
{
    Pb__TruncateTableStateData m = PB__TRUNCATE_TABLE_STATE_DATA__INIT;
    (void)of;
    m.user_info = &p->user;
    m.table_name = &p->table;
    return any(arena, url, &m.base);
}

static Pb__Any *delete_table(rq_arena *arena, const rq_procedure *of, parts *p, const char *url)
{
    Pb__DeleteTableStateData m = PB__DELETE_TABLE_STATE_DATA__INIT;
    (void)of;
    m.user_info = &p->user;
    m.table_name = &p->table;
    return any(arena, url, &m.base);
}

/* For enabling and disabling: their messages have the same fields. */
static Pb__Any *switch_table(rq_arena *arena, const rq_procedure *of, parts *p, const char *url)
{
    Pb__DisableTableStateData m = PB__DISABLE_TABLE_STATE_DATA__INIT;
    (void)of;
    m.user_info = &p->user;
    m.table_name = &p->table;
    return any(arena, url, &m.base);
}

/* For creating and modifying a namespace: their messages have the same fields. */
static Pb__Any *put_namespace(rq_arena *arena, const rq_procedure *of, parts *p, const char *url)
{
    Pb__CreateNamespaceStateData m = PB__CREATE_NAMESPACE_STATE_DATA__INIT;
    (void)of;
    m.namespace_descriptor = &p->ns;
    return any(arena, url, &m.base);
}

static Pb__Any *delete_namespace(rq_arena *arena, const rq_procedure *of, parts *p, const char *url)
{
    Pb__DeleteNamespaceStateData m = PB__DELETE_NAMESPACE_STATE_DATA__INIT;
    (void)p;
    m.namespace_name = rq_arena_cstr(arena, of->ns);
    return m.namespace_name == NULL ? NULL : any(arena, url, &m.base);
}

static Pb__Any *flush_table(rq_arena *arena, const rq_procedure *of, parts *p, const char *url)
{
    Pb__FlushTableProcedureStateData m = PB__FLUSH_TABLE_PROCEDURE_STATE_DATA__INIT;
    (void)of;
    m.table_name = &p->table;
    return any(arena, url, &m.base);
}

static Pb__Any *table_name(rq_arena *arena, const rq_procedure *of, parts *p, const char *url)
{
    (void)of;
    return any(arena, url, &p->table.base);
}

typedef struct state_kind {
    const char *url;
    make_state *make;
} state_kind;

/* The message by kind of procedure; kinds not listed here have the table's name. */
static const state_kind states[] = {
    [RQ_DDL_CREATE_TABLE] = {URL "CreateTableStateData", create_table},
    [RQ_DDL_MODIFY_TABLE] = {URL "ModifyTableStateData", modify_table},
    [RQ_DDL_ADD_FAMILY] = {URL "ModifyTableStateData", modify_table},
    [RQ_DDL_MODIFY_FAMILY] = {URL "ModifyTableStateData", modify_table},
    [RQ_DDL_DELETE_FAMILY] = {URL "ModifyTableStateData", modify_table},
    [RQ_DDL_TRUNCATE_TABLE] = {URL "TruncateTableStateData", truncate_table},
    [RQ_DDL_DELETE_TABLE] = {URL "DeleteTableStateData", delete_table},
    [RQ_DDL_ENABLE_TABLE] = {URL "EnableTableStateData", switch_table},
    [RQ_DDL_DISABLE_TABLE] = {URL "DisableTableStateData", switch_table},
    [RQ_DDL_CREATE_NAMESPACE] = {URL "CreateNamespaceStateData", put_namespace},
    [RQ_DDL_MODIFY_NAMESPACE] = {URL "ModifyNamespaceStateData", put_namespace},
    [RQ_DDL_DELETE_NAMESPACE] = {URL "DeleteNamespaceStateData", delete_namespace},
    [RQ_DDL_FLUSH_TABLE] = {URL "FlushTableProcedureStateData", flush_table},
};

static Pb__Any *state_of_kind(rq_arena *arena, const rq_procedure *of, parts *p)
{
    static const state_kind other = {URL "TableName", table_name};
    const state_kind *k = &other;
    if ((size_t)of->kind < RQ_ARRAY_LEN(states) && states[of->kind].url != NULL)
        k = &states[of->kind];
    return k->make(arena, of, p, k->url);
}

static bool add_states(rq_arena *arena, const rq_procedure *of, Pb__Procedure *m)
{
    parts p;
    pb__user_information__init(&p.user);
    pb__table_name__init(&p.table);
    pb__table_schema__init(&p.schema);
    pb__namespace_descriptor__init(&p.ns);
    p.user.effective_user = m->owner;
    p.table.namespace_ = p.ns.name = rq__pb_binary(of->ns);
    p.table.qualifier = rq__pb_binary(of->qualifier);
    p.schema.table_name = &p.table;
    m->state_message = rq_arena_alloc(arena, sizeof(Pb__Any *));
    if (m->state_message == NULL) return false;
    m->state_message[0] = state_of_kind(arena, of, &p);
    m->n_state_message = 1;
    return m->state_message[0] != NULL;
}

/* --- procedures ------------------------------------------------------------------------------- */

/* HBase has no state for a parked procedure; FAILED there means failed and not yet rolled back. */
static Pb__ProcedureState state_of(const rq_procedure *p)
{
    if (p->finished)
        return p->rc == RQ_OK ? PB__PROCEDURE_STATE__SUCCESS : PB__PROCEDURE_STATE__ROLLEDBACK;
    if (p->holds) return PB__PROCEDURE_STATE__WAITING_TIMEOUT;
    if (p->parked) return PB__PROCEDURE_STATE__FAILED;
    return p->rc == RQ_OK ? PB__PROCEDURE_STATE__RUNNABLE : PB__PROCEDURE_STATE__WAITING_TIMEOUT;
}

Pb__Procedure *rq__procedure_message(rq_arena *arena, const rq_procedure *p)
{
    Pb__Procedure *m = rq_arena_alloc(arena, sizeof *m);
    if (m == NULL) return NULL;
    pb__procedure__init(m);
    m->class_name = (char *)(uintptr_t)p->java_class;
    m->proc_id = p->id;
    m->submitted_time = (uint64_t)p->submitted_ms;
    m->last_update = (uint64_t)p->updated_ms;
    m->owner = rq_arena_cstr(arena, p->user);
    if (m->owner == NULL) return NULL;
    m->state = state_of(p);
    m->has_nonce_group = m->has_nonce = 1;
    m->nonce_group = p->nonce_group;
    m->nonce = p->nonce;
    m->has_locked = 1;
    m->locked = !p->finished && !p->waiting;
    if (p->rc != RQ_OK && (m->exception = rq__foreign_exception(arena, p)) == NULL) return NULL;
    return add_states(arena, p, m) ? m : NULL;
}

static bool is_any(const rq_procedure *p)
{
    (void)p;
    return true;
}

static bool modifies_peer(const rq_procedure *p)
{
    return p->kind >= RQ_DDL_ADD_PEER && p->kind <= RQ_DDL_UPDATE_PEER;
}

typedef rq_err (*list_fn)(rq_catalog *c, rq_arena *arena, rq_procedure **ret, size_t *ret_count);

static rq_err list_messages(rq_admin_services *s, rq_arena *arena, list_fn get_list,
                            bool (*is_wanted)(const rq_procedure *p),
                            Pb__GetProceduresResponse *ret)
{
    rq_procedure *list;
    size_t count;
    RQ_TRY(get_list(s->catalog, arena, &list, &count));
    ret->procedure = rq_arena_alloc(arena, (count + 1) * sizeof(Pb__Procedure *));
    if (ret->procedure == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        if (!is_wanted(&list[i])) continue;
        Pb__Procedure *m = rq__procedure_message(arena, &list[i]);
        if (m == NULL) return RQ_E_NO_MEMORY;
        ret->procedure[ret->n_procedure++] = m;
    }
    return RQ_OK;
}

typedef struct procedures_listing {
    rq__listing listing;
    list_fn get_list;
    bool (*is_wanted)(const rq_procedure *p);
} procedures_listing;

/* The messages of all three calls are `repeated Procedure procedure = 1`. */
static rq_err list_procedures(rq__listing *l, rq_slice *ret)
{
    const procedures_listing *p = RQ_CONTAINER_OF(l, procedures_listing, listing);
    Pb__GetProceduresResponse response = PB__GET_PROCEDURES_RESPONSE__INIT;
    RQ_TRY(list_messages(l->services, &l->call->arena, p->get_list, p->is_wanted, &response));
    return rq__listing_pack(l, &response.base, ret);
}

/* Made on the pool: there may be 10,000 results of procedures. */
static void reply_procedures(rq_admin_services *s, rq_call *call, list_fn get_list,
                             bool (*is_wanted)(const rq_procedure *p))
{
    procedures_listing *p = rq_arena_calloc(&call->arena, 1, sizeof *p);
    if (p == NULL) {
        rq_call_fail(call, RQ_E_NO_MEMORY, NULL);
        return;
    }
    p->listing.is_long = true;
    p->get_list = get_list;
    p->is_wanted = is_wanted;
    rq__listing_start(&p->listing, s, call, list_procedures);
}

/* Also ListProcedures of 1.x. */
void rq__get_procedures(void *ctx, rq_call *call)
{
    reply_procedures(ctx, call, rq_catalog_procedures, is_any);
}

/* HBASE: MasterRpcServices.getReplicationPeerModificationProcedures. */
void rq__get_peer_procedures(void *ctx, rq_call *call)
{
    reply_procedures(ctx, call, rq_catalog_unfinished_procedures, modifies_peer);
}
