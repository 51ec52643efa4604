/* SPDX-License-Identifier: Apache-2.0 */
/* Orders and outcomes as messages; see wire.h. */
#include "cluster/wire_priv.h"

#include "base/pb_arena.h"
#include "proto/admin.pb-c.h"
#include "proto/cluster.pb-c.h"
#include "proto/region_server_status.pb-c.h"

#include <string.h>

#define FLUSH_CLASS "org.apache.hadoop.hbase.regionserver.FlushRegionCallable"

/* The class name for kinds other than OPEN and CLOSE. */
static const char *const classes[RQ_CALL_KINDS] = {
    [RQ_CALL_WARM] = "rorqual.WarmRegion",
    [RQ_CALL_FLUSH] = FLUSH_CLASS,
    [RQ_CALL_LOOK] = "rorqual.LookAtRegion",
    [RQ_CALL_COMPACT] = "rorqual.CompactRegion",
    [RQ_CALL_DROP_REFERENCES] = "rorqual.DropReferences",
    [RQ_CALL_LIST_FILES] = "rorqual.ListFiles",
    [RQ_CALL_LIST_MOB_WRITES] = "rorqual.ListMobWrites",
};

const char *rq__outcome_method(rq_region_call_kind kind)
{
    return kind == RQ_CALL_OPEN || kind == RQ_CALL_CLOSE ? "ReportRegionStateTransition"
                                                         : "ReportProcedureDone";
}

/* --- parts of messages ------------------------------------------------------------------------ */

rq_err rq__wire_pack(rq_arena *a, const ProtobufCMessage *m, rq_slice *ret)
{
    size_t size = protobuf_c_message_get_packed_size(m);
    uint8_t *p = rq_arena_alloc(a, size + 1);
    if (p == NULL) return RQ_E_NO_MEMORY;
    *ret = rq_slice_of(p, protobuf_c_message_pack(m, p));
    return RQ_OK;
}

rq_err rq__wire_unpack(const ProtobufCMessageDescriptor *type, rq_slice bytes, rq_arena *a,
                       const void **ret, rq_error *why)
{
    rq_pb_arena memory;
    rq_pb_arena_init(&memory, a);
    *ret = protobuf_c_message_unpack(type, &memory.allocator, bytes.len, bytes.ptr);
    if (*ret != NULL) return RQ_OK;
    if (memory.exhausted) return rq_no_memory(why);
    return rq_fail(why, RQ_E_DO_NOT_RETRY, "malformed %s", type->short_name);
}

Pb__RegionInfo *rq__wire_put_region(rq_arena *a, const rq_region_info *r)
{
    Pb__RegionInfo *m = rq_arena_alloc(a, sizeof *m);
    Pb__TableName *t = rq_arena_alloc(a, sizeof *t);
    if (m == NULL || t == NULL) return NULL;
    pb__region_info__init(m);
    pb__table_name__init(t);
    t->namespace_ = rq__wire_binary(r->ns);
    t->qualifier = rq__wire_binary(r->qualifier);
    m->table_name = t;
    m->region_id = (uint64_t)r->region_id;
    m->has_start_key = m->has_end_key = m->has_offline = m->has_split = m->has_replica_id = true;
    m->start_key = rq__wire_binary(r->start_key);
    m->end_key = rq__wire_binary(r->end_key);
    m->offline = r->offline;
    m->split = r->split;
    m->replica_id = r->replica_id;
    return m;
}

static rq_err take_region(const Pb__RegionInfo *m, rq_arena *a, rq_region_info *ret, rq_error *why)
{
    rq_err rc =
        rq_region_info_make(a, rq__wire_slice(m->table_name->namespace_),
                            rq__wire_slice(m->table_name->qualifier), rq__wire_slice(m->start_key),
                            rq__wire_slice(m->end_key), (int64_t)m->region_id, m->replica_id, ret);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", rq_err_text(rc));
}

Pb__ServerName *rq__wire_put_server(rq_arena *a, const rq_server_name *s)
{
    Pb__ServerName *m = rq_arena_alloc(a, sizeof *m);
    if (m == NULL) return NULL;
    pb__server_name__init(m);
    m->host_name = rq__wire_text(s->host);
    m->has_port = m->has_start_code = true;
    m->port = s->port;
    m->start_code = (uint64_t)s->start_code;
    return m;
}

rq_err rq__wire_take_server(const Pb__ServerName *m, rq_arena *a, const rq_server_name **ret,
                            rq_error *why)
{
    rq_server_name *s = rq_arena_calloc(a, 1, sizeof *s);
    if (s == NULL) return rq_no_memory(why);
    if (m->port > UINT16_MAX || strlen(m->host_name) > 255)
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "malformed ServerName");
    *s = (rq_server_name){
        .host = m->host_name, .port = (uint16_t)m->port, .start_code = (int64_t)m->start_code};
    s->text = rq_arena_printf(a, "%s,%u,%lld", s->host, s->port, (long long)s->start_code);
    if (s->text == NULL) return rq_no_memory(why);
    *ret = s;
    return RQ_OK;
}

/* --- orders: encoding ------------------------------------------------------------------------- */

static rq_err put_open(const rq_order *o, int64_t start_code, rq_arena *a,
                       Pb__ExecuteProceduresRequest *m)
{
    Pb__OpenRegionRequest *open = rq_arena_alloc(a, sizeof *open);
    Pb__OpenRegionRequest__RegionOpenInfo *info = rq_arena_alloc(a, sizeof *info);
    Pb__OpenRegionRequest__RegionOpenInfo **list = rq_arena_alloc(a, sizeof(void *));
    if (open == NULL || info == NULL || list == NULL) return RQ_E_NO_MEMORY;
    pb__open_region_request__init(open);
    pb__open_region_request__region_open_info__init(info);
    info->region = rq__wire_put_region(a, &o->info);
    info->has_open_proc_id = open->has_serverstartcode = true;
    info->open_proc_id = (int64_t)o->id;
    open->serverstartcode = (uint64_t)start_code;
    open->has_initiating_master_active_time = true;
    open->initiating_master_active_time = o->master_ms;
    list[0] = info;
    open->open_info = list;
    open->n_open_info = 1;
    m->open_region[m->n_open_region++] = open;
    return info->region == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

static rq_err put_close(const rq_order *o, int64_t start_code, rq_arena *a,
                        Pb__ExecuteProceduresRequest *m)
{
    Pb__CloseRegionRequest *close = rq_arena_alloc(a, sizeof *close);
    Pb__RegionSpecifier *region = rq_arena_alloc(a, sizeof *region);
    if (close == NULL || region == NULL) return RQ_E_NO_MEMORY;
    pb__close_region_request__init(close);
    pb__region_specifier__init(region);
    region->type = PB__REGION_SPECIFIER__REGION_SPECIFIER_TYPE__ENCODED_REGION_NAME;
    region->value = rq__wire_binary(rq_slice_cstr(o->info.encoded));
    close->region = region;
    close->has_serverstartcode = close->has_close_proc_id = close->has_abandon = true;
    close->serverstartcode = (uint64_t)start_code;
    close->close_proc_id = (int64_t)o->id;
    close->abandon = o->abandon;
    close->has_initiating_master_active_time = true;
    close->initiating_master_active_time = o->master_ms;
    if (o->moves_to != NULL) close->destination_server = rq__wire_put_server(a, o->moves_to);
    m->close_region[m->n_close_region++] = close;
    return o->moves_to != NULL && close->destination_server == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

static ProtobufCBinaryData *put_families(rq_arena *a, const rq_order *o)
{
    ProtobufCBinaryData *list = rq_arena_calloc(a, o->family_count + 1, sizeof *list);
    for (size_t i = 0; list != NULL && i < o->family_count; i++)
        list[i] = rq__wire_binary(o->families[i]);
    return list;
}

static rq_err pack_data(const rq_order *o, rq_arena *a, rq_slice *ret)
{
    *ret = (rq_slice){0};
    if (o->kind == RQ_CALL_LIST_MOB_WRITES) return RQ_OK; /* of no region */
    ProtobufCBinaryData *families = put_families(a, o);
    Pb__RegionInfo *region = rq__wire_put_region(a, &o->info);
    if (families == NULL || region == NULL) return RQ_E_NO_MEMORY;
    if (o->kind == RQ_CALL_FLUSH) {
        Pb__FlushRegionParameter m = PB__FLUSH_REGION_PARAMETER__INIT;
        m.region = region;
        m.column_family = families;
        m.n_column_family = o->family_count;
        return rq__wire_pack(a, &m.base, ret);
    }
    Pb__RegionOrder m = PB__REGION_ORDER__INIT;
    m.region = region;
    m.column_family = families;
    m.n_column_family = o->family_count;
    m.has_flush = true;
    m.flush = o->flush;
    return rq__wire_pack(a, &m.base, ret);
}

static rq_err put_proc(const rq_order *o, rq_arena *a, Pb__ExecuteProceduresRequest *m)
{
    Pb__RemoteProcedureRequest *p = rq_arena_alloc(a, sizeof *p);
    rq_slice data;
    if (p == NULL) return RQ_E_NO_MEMORY;
    RQ_TRY(pack_data(o, a, &data));
    pb__remote_procedure_request__init(p);
    p->proc_id = o->id;
    p->proc_class = rq__wire_text(classes[o->kind]);
    p->has_proc_data = p->has_initiating_master_active_time = true;
    p->proc_data = rq__wire_binary(data);
    p->initiating_master_active_time = o->master_ms;
    m->proc[m->n_proc++] = p;
    return RQ_OK;
}

rq_err rq__orders_encode(const rq_order *list, size_t count, int64_t start_code, rq_arena *a,
                         rq_slice *ret)
{
    Pb__ExecuteProceduresRequest m = PB__EXECUTE_PROCEDURES_REQUEST__INIT;
    m.open_region = rq_arena_calloc(a, count + 1, sizeof(void *));
    m.close_region = rq_arena_calloc(a, count + 1, sizeof(void *));
    m.proc = rq_arena_calloc(a, count + 1, sizeof(void *));
    if (m.open_region == NULL || m.close_region == NULL || m.proc == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        const rq_order *o = &list[i];
        RQ_TRY(o->kind == RQ_CALL_OPEN    ? put_open(o, start_code, a, &m)
               : o->kind == RQ_CALL_CLOSE ? put_close(o, start_code, a, &m)
                                          : put_proc(o, a, &m));
    }
    return rq__wire_pack(a, &m.base, ret);
}

/* --- orders: decoding ------------------------------------------------------------------------- */

typedef struct decoding {
    rq_arena *arena;
    rq_order *list;
    size_t count;
    int64_t start_code;
    rq_error *why;
} decoding;

/* All of one message are meant for one server. */
static rq_err note_start_code(decoding *d, bool has, uint64_t code)
{
    if (!has || code == 0) return RQ_OK;
    if (d->start_code != 0 && d->start_code != (int64_t)code)
        return rq_fail(d->why, RQ_E_DO_NOT_RETRY,
                       "ExecuteProcedures has two different start codes");
    d->start_code = (int64_t)code;
    return RQ_OK;
}

static rq_err take_open(decoding *d, const Pb__OpenRegionRequest *m)
{
    RQ_TRY(note_start_code(d, m->has_serverstartcode, m->serverstartcode));
    for (size_t i = 0; i < m->n_open_info; i++) {
        rq_order *o = &d->list[d->count++];
        *o = (rq_order){.kind = RQ_CALL_OPEN,
                        .id = (uint64_t)m->open_info[i]->open_proc_id,
                        .master_ms = m->initiating_master_active_time};
        RQ_TRY(take_region(m->open_info[i]->region, d->arena, &o->info, d->why));
    }
    return RQ_OK;
}

static rq_err take_close(decoding *d, const Pb__CloseRegionRequest *m)
{
    rq_order *o = &d->list[d->count++];
    rq_slice name = rq__wire_slice(m->region->value);
    *o = (rq_order){.kind = RQ_CALL_CLOSE,
                    .id = (uint64_t)m->close_proc_id,
                    .master_ms = m->initiating_master_active_time,
                    .abandon = m->has_abandon && m->abandon};
    RQ_TRY(note_start_code(d, m->has_serverstartcode, m->serverstartcode));
    /* Of a whole name the encoded part counts: "…,id.encoded." */
    if (m->region->type == PB__REGION_SPECIFIER__REGION_SPECIFIER_TYPE__REGION_NAME &&
        name.len > RQ_ENCODED_NAME_LEN + 1)
        name = rq_slice_of(name.ptr + name.len - RQ_ENCODED_NAME_LEN - 1, RQ_ENCODED_NAME_LEN);
    if (name.len == 0 || name.len > RQ_ENCODED_NAME_LEN || memchr(name.ptr, 0, name.len) != NULL)
        return rq_fail(d->why, RQ_E_DO_NOT_RETRY, "malformed CloseRegionRequest");
    memcpy(o->info.encoded, name.ptr, name.len);
    o->info.encoded[name.len] = '\0';
    o->info.name = rq_slice_cstr(o->info.encoded);
    if (m->destination_server == NULL) return RQ_OK;
    return rq__wire_take_server(m->destination_server, d->arena, &o->moves_to, d->why);
}

static rq_err take_families(decoding *d, rq_order *o, const ProtobufCBinaryData *list, size_t count)
{
    o->families = rq_arena_calloc(d->arena, count + 1, sizeof *o->families);
    if (o->families == NULL) return rq_no_memory(d->why);
    for (size_t i = 0; i < count; i++)
        o->families[i] = rq__wire_slice(list[i]);
    o->family_count = count;
    return RQ_OK;
}

static rq_err take_data(decoding *d, rq_order *o, rq_slice data)
{
    const void *p;
    if (o->kind == RQ_CALL_LIST_MOB_WRITES) return RQ_OK;
    if (o->kind == RQ_CALL_FLUSH) {
        RQ_TRY(
            rq__wire_unpack(&pb__flush_region_parameter__descriptor, data, d->arena, &p, d->why));
        const Pb__FlushRegionParameter *m = p;
        RQ_TRY(take_families(d, o, m->column_family, m->n_column_family));
        return take_region(m->region, d->arena, &o->info, d->why);
    }
    RQ_TRY(rq__wire_unpack(&pb__region_order__descriptor, data, d->arena, &p, d->why));
    const Pb__RegionOrder *m = p;
    o->flush = m->has_flush && m->flush;
    RQ_TRY(take_families(d, o, m->column_family, m->n_column_family));
    return take_region(m->region, d->arena, &o->info, d->why);
}

static rq_err take_proc(decoding *d, const Pb__RemoteProcedureRequest *m)
{
    rq_order *o = &d->list[d->count++];
    *o = (rq_order){
        .kind = RQ_CALL_KINDS, .id = m->proc_id, .master_ms = m->initiating_master_active_time};
    for (unsigned k = 0; k < RQ_CALL_KINDS; k++)
        if (classes[k] != NULL && strcmp(classes[k], m->proc_class) == 0) o->kind = k;
    if (o->kind == RQ_CALL_KINDS)
        return rq_fail(d->why, RQ_E_DO_NOT_RETRY, "unknown remote procedure %.200s", m->proc_class);
    return take_data(d, o, rq__wire_slice(m->proc_data));
}

rq_err rq__orders_decode(rq_slice bytes, rq_arena *arena, rq_order **ret, size_t *ret_count,
                         int64_t *ret_start_code, rq_error *why)
{
    const void *p;
    RQ_TRY(rq__wire_unpack(&pb__execute_procedures_request__descriptor, bytes, arena, &p, why));
    const Pb__ExecuteProceduresRequest *m = p;
    size_t count = m->n_close_region + m->n_proc;
    for (size_t i = 0; i < m->n_open_region; i++)
        count += m->open_region[i]->n_open_info;
    decoding d = {.arena = arena, .why = why};
    d.list = rq_arena_calloc(arena, count + 1, sizeof *d.list);
    if (d.list == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < m->n_open_region; i++)
        RQ_TRY(take_open(&d, m->open_region[i]));
    for (size_t i = 0; i < m->n_close_region; i++)
        RQ_TRY(take_close(&d, m->close_region[i]));
    for (size_t i = 0; i < m->n_proc; i++)
        RQ_TRY(take_proc(&d, m->proc[i]));
    *ret = d.list;
    *ret_count = d.count;
    *ret_start_code = d.start_code;
    return RQ_OK;
}

/* --- revoked tenures -------------------------------------------------------------------------- */

/* Protobuf: the concatenation of two encoded messages is their merge. */
rq_err rq__revoked_append(const rq_revoked *list, size_t count, rq_arena *arena, rq_slice *request)
{
    rq_slice more;
    Pb__ExecuteProceduresRequest m = PB__EXECUTE_PROCEDURES_REQUEST__INIT;
    Pb__RevokedTenure *items = rq_arena_calloc(arena, count + 1, sizeof *items);
    m.revoked = rq_arena_calloc(arena, count + 1, sizeof(void *));
    if (items == NULL || m.revoked == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        pb__revoked_tenure__init(&items[i]);
        items[i].server = rq__wire_text(list[i].server);
        items[i].quiet_in_ms = list[i].quiet_in_ms;
        m.revoked[m.n_revoked++] = &items[i];
    }
    RQ_TRY(rq__wire_pack(arena, &m.base, &more));
    uint8_t *both = rq_arena_alloc(arena, request->len + more.len + 1);
    if (both == NULL) return RQ_E_NO_MEMORY;
    if (request->len > 0) memcpy(both, request->ptr, request->len);
    if (more.len > 0) memcpy(both + request->len, more.ptr, more.len);
    *request = rq_slice_of(both, request->len + more.len);
    return RQ_OK;
}

rq_err rq__revoked_decode(rq_slice bytes, rq_arena *arena, rq_revoked **ret, size_t *ret_count)
{
    const void *p;
    RQ_TRY(rq__wire_unpack(&pb__execute_procedures_request__descriptor, bytes, arena, &p, NULL));
    const Pb__ExecuteProceduresRequest *m = p;
    *ret_count = 0;
    *ret = rq_arena_calloc(arena, m->n_revoked + 1, sizeof **ret);
    if (*ret == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < m->n_revoked; i++)
        (*ret)[(*ret_count)++] = (rq_revoked){.server = m->revoked[i]->server,
                                              .quiet_in_ms = m->revoked[i]->quiet_in_ms};
    return RQ_OK;
}
