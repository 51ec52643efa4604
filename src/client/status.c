/* SPDX-License-Identifier: Apache-2.0 */
/* See status.h. The numbers of fields are those of proto/cluster_status.proto. */
#include "client/status.h"

#include "client/client_priv.h"

#include "base/address.h"
#include "base/pb.h"

#include <stdlib.h>

/* Room for one more element; NULL: no memory. */
static void *grown(void *list, size_t count, size_t size)
{
    if (count != 0 && (count < 16 || (count & (count - 1)) != 0)) return list;
    return realloc(list, (count < 16 ? 16 : 2 * count) * size);
}

#define APPEND(list, count, element)                                                               \
    ({                                                                                             \
        void *more_ = grown((list), (count), sizeof *(list));                                      \
        if (more_ != NULL) {                                                                       \
            (list) = more_;                                                                        \
            (list)[(count)++] = (element);                                                         \
        }                                                                                          \
        more_ != NULL ? RQ_OK : RQ_E_NO_MEMORY;                                                    \
    })

/* Calls `take` for each field. */
static rq_err each(rq_slice message, rq_err (*take)(void *ctx, const rq_pb_field *f), void *ctx)
{
    rq_cursor c = rq_cursor_of(message);
    rq_pb_field f;
    rq_err rc;
    while ((rc = rq_pb_next(&c, &f)) == RQ_OK)
        RQ_TRY(take(ctx, &f));
    return rc == RQ_E_END ? RQ_OK : rc;
}

static uint32_t narrow(uint64_t v)
{
    return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

/* ServerName { host 1, port 2, start code 3 } */
static rq_err take_name(void *ctx, const rq_pb_field *f)
{
    rq_server_name *n = ctx;
    if (f->number == 1) n->host = f->bytes;
    if (f->number == 2) n->port = (uint16_t)f->value;
    if (f->number == 3) n->start_ms = (int64_t)f->value;
    return RQ_OK;
}

/* RegionSpecifier { type 1, value 2 } */
static rq_err take_specifier(void *ctx, const rq_pb_field *f)
{
    if (f->number == 2) *(rq_slice *)ctx = f->bytes;
    return RQ_OK;
}

static rq_slice table_of(rq_slice region)
{
    const uint8_t *comma = region.len == 0 ? NULL : memchr(region.ptr, ',', region.len);
    return comma == NULL ? region : rq_slice_of(region.ptr, (size_t)(comma - region.ptr));
}

static rq_err take_load(void *ctx, const rq_pb_field *f)
{
    rq_region_status *r = ctx;
    switch (f->number) {
    case 1:
        return each(f->bytes, take_specifier, &r->name);
    case 2:
        r->stores = narrow(f->value);
        break;
    case 3:
        r->files = narrow(f->value);
        break;
    case 5:
        r->size_mb = narrow(f->value);
        break;
    case 6:
        r->memstore_mb = narrow(f->value);
        break;
    case 8:
        r->reads = f->value;
        break;
    case 9:
        r->writes = f->value;
        break;
    case 10:
        r->compacting_cells = f->value;
        break;
    case 11:
        r->compacted_cells = f->value;
        break;
    case 17:
        r->major_compacted_ms = (int64_t)f->value;
        break;
    case 19:
        r->filtered = f->value;
        break;
    case 27:
        r->compacts = f->value != 0;
        break;
    default:
        break;
    }
    return RQ_OK;
}

typedef struct server_take {
    rq_cluster_status *status;
    rq_server_status *server;
} server_take;

static rq_err take_server_load(void *ctx, const rq_pb_field *f)
{
    const server_take *t = ctx;
    rq_server_status *s = t->server;
    rq_region_status r = {0};
    switch (f->number) {
    case 1:
        s->requests_per_s = f->value;
        break;
    case 2:
        s->requests = f->value;
        break;
    case 3:
        s->heap_used_mb = narrow(f->value);
        break;
    case 4:
        s->heap_max_mb = narrow(f->value);
        break;
    case 5:
        RQ_TRY(each(f->bytes, take_load, &r));
        r.table = table_of(r.name);
        s->region_count++;
        return APPEND(t->status->regions, t->status->region_count, r);
    default:
        break;
    }
    return RQ_OK;
}

/* LiveServerInfo { server 1, load 2 } */
static rq_err take_live(void *ctx, const rq_pb_field *f)
{
    server_take *t = ctx;
    if (f->number == 1) return each(f->bytes, take_name, &t->server->name);
    return f->number == 2 ? each(f->bytes, take_server_load, t) : RQ_OK;
}

static rq_err take_server(rq_cluster_status *s, rq_slice bytes)
{
    rq_server_status server = {.first_region = s->region_count};
    server_take t = {s, &server};
    RQ_TRY(each(bytes, take_live, &t));
    return APPEND(s->servers, s->server_count, server);
}

/* RegionState { region 1, state 2, stamp 3 } */
static rq_err take_state(void *ctx, const rq_pb_field *f)
{
    rq_transition_status *t = ctx;
    if (f->number == 2) t->state = narrow(f->value);
    if (f->number == 3) t->since_ms = (int64_t)f->value;
    return RQ_OK;
}

/* RegionInTransition { specifier 1, state 2 } */
static rq_err take_transition(void *ctx, const rq_pb_field *f)
{
    rq_transition_status *t = ctx;
    if (f->number == 1) return each(f->bytes, take_specifier, &t->region);
    return f->number == 2 ? each(f->bytes, take_state, t) : RQ_OK;
}

/* TableName { namespace 1, qualifier 2 } */
static rq_err take_table_name(void *ctx, const rq_pb_field *f)
{
    rq_table_status *t = ctx;
    if (f->number == 1) t->ns = f->bytes;
    if (f->number == 2) t->qualifier = f->bytes;
    return RQ_OK;
}

static rq_err take_counts(void *ctx, const rq_pb_field *f)
{
    rq_table_status *t = ctx;
    uint32_t *const to[] = {NULL, &t->open, &t->split, &t->closed, &t->in_transition, &t->total};
    if (f->number < RQ_ARRAY_LEN(to)) *to[f->number] = narrow(f->value);
    return RQ_OK;
}

/* TableRegionStatesCount { table 1, counts 2 } */
static rq_err take_table(void *ctx, const rq_pb_field *f)
{
    if (f->number == 1) return each(f->bytes, take_table_name, ctx);
    return f->number == 2 ? each(f->bytes, take_counts, ctx) : RQ_OK;
}

/* HBaseVersionFileContent and ClusterId have one text. */
static rq_err take_text(void *ctx, const rq_pb_field *f)
{
    if (f->number == 1) *(rq_slice *)ctx = f->bytes;
    return RQ_OK;
}

static rq_err take_status(void *ctx, const rq_pb_field *f)
{
    rq_cluster_status *s = ctx;
    rq_transition_status transition = {0};
    rq_table_status table = {0};
    rq_server_name name = {0};
    switch (f->number) {
    case 1:
        return each(f->bytes, take_text, &s->version);
    case 2:
        return take_server(s, f->bytes);
    case 3:
        RQ_TRY(each(f->bytes, take_name, &name));
        return APPEND(s->dead, s->dead_count, name);
    case 4:
    case 1001: /* Rorqual's: closed on request */
        RQ_TRY(each(f->bytes, take_transition, &transition));
        return APPEND(s->transitions, s->transition_count, transition);
    case 5:
        return each(f->bytes, take_text, &s->cluster_id);
    case 7:
        return each(f->bytes, take_name, &s->master);
    case 8:
        RQ_TRY(each(f->bytes, take_name, &name));
        return APPEND(s->standbys, s->standby_count, name);
    case 9:
        s->balancer_on = f->value != 0;
        return RQ_OK;
    case 12:
    case 1002: /* Rorqual's own field, used instead: includes disabled tables' regions */
        if (f->number == 1002 && !s->counts_all) s->table_count = 0;
        s->counts_all = f->number == 1002;
        RQ_TRY(each(f->bytes, take_table, &table));
        return APPEND(s->tables, s->table_count, table);
    case 1000:
        s->rorqual = f->bytes;
        return RQ_OK;
    default:
        return RQ_OK;
    }
}

static rq_err take_response(void *ctx, const rq_pb_field *f)
{
    return f->number == 1 ? each(f->bytes, take_status, ctx) : RQ_OK;
}

rq_err rq__cluster_status_parse(rq_cluster_status *ret)
{
    return each(rq_buf_slice(&ret->bytes), take_response, ret);
}

static rq_err ask_master(rq_client *c, rq_cluster_status *ret, rq_error *why)
{
    RQ_TRY(rq__client_ask(c, "GetClusterStatus", (rq_slice){0}, &ret->bytes, why));
    rq_err rc = rq__cluster_status_parse(ret);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "the master's status is malformed");
}

rq_err rq_client_status(rq_client *c, rq_cluster_status *ret, rq_error *why)
{
    rq_error own = {.code = RQ_OK};
    *ret = (rq_cluster_status){0};
    rq_err rc = ask_master(c, ret, &own);
    return rc == RQ_OK
               ? RQ_OK
               : rq_fail(why, rc, "master %s: %s",
                         RQ_HOST_PORT(c->found.master.host, c->found.master.port), own.message);
}

void rq_cluster_status_clear(rq_cluster_status *s)
{
    rq_buf_clear(&s->bytes);
    free(s->dead);
    free(s->standbys);
    free(s->servers);
    free(s->regions);
    free(s->tables);
    free(s->transitions);
    *s = (rq_cluster_status){0};
}

const char *rq_region_state_name(uint32_t state)
{
    static const char *const names[] = {
        "OFFLINE",       "PENDING_OPEN",  "OPENING",      "OPEN",
        "PENDING_CLOSE", "CLOSING",       "CLOSED",       "SPLITTING",
        "SPLIT",         "FAILED_OPEN",   "FAILED_CLOSE", "MERGING",
        "MERGED",        "SPLITTING_NEW", "MERGING_NEW",  "ABNORMALLY_CLOSED"};
    return state < RQ_ARRAY_LEN(names) ? names[state] : "?";
}
