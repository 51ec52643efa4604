/* SPDX-License-Identifier: Apache-2.0 */
/* A procedure's record: HBase's Procedure message, so that HBase's tools can list it, with our own
 * bytes as its state_data:
 *
 *    u8 format (1) | u8 kind | fields…       field = u8 tag | varint length | bytes
 *
 * A parked procedure has the state WAITING, its step as stack_id, and its error as exception; a
 * version that does not know parking continues the procedure.
 *
 * The tags are in procedure.h; fields of a kind are in its payload (payload.c). An unknown field or
 * kind is not skipped, because that might do half of a change: the record stays as it is, and its
 * procedure is parked (rq__proc_set_unreadable). */
#include "base/pb_arena.h"
#include "catalog/procedure.h"
#include "descriptor/schema.h"
#include "proto/procedure.pb-c.h"

#include <stdlib.h>

#define RECORD_FORMAT 1
#define FLAG_PREPARED 4
#define FLAG_UNDOES 16

/* --- writing ---------------------------------------------------------------------------------- */

rq_err rq__record_put(rq_buf *b, enum rq__record_tag tag, rq_slice value)
{
    RQ_TRY(rq_buf_append_u8(b, (uint8_t)tag));
    RQ_TRY(rq_buf_append_varint(b, value.len));
    return rq_buf_append(b, value.ptr, value.len);
}

static rq_err put_regions(rq_buf *b, enum rq__record_tag tag, const rq_region_info *list,
                          size_t count)
{
    rq_buf own = {0};
    if (count == 0) return RQ_OK;
    rq_err rc = rq__regions_encode(&own, list, count);
    if (rc == RQ_OK) rc = rq__record_put(b, tag, rq_buf_slice(&own));
    rq_buf_clear(&own);
    return rc;
}

static rq_err put_state(rq_buf *b, const rq__proc *p)
{
    RQ_TRY(rq_buf_append_u8(b, RECORD_FORMAT));
    RQ_TRY(rq_buf_append_u8(b, (uint8_t)p->ops->kind));
    RQ_TRY(rq__record_put(b, RQ__TAG_NS, p->ns));
    RQ_TRY(rq__record_put(b, RQ__TAG_QUALIFIER, p->qualifier));
    if (p->ended) return RQ_OK; /* a result needs no more */
    RQ_TRY(rq__record_put(b, RQ__TAG_DESCRIPTOR, p->descriptor));
    const rq__payload_kind *payload = p->ops->payload;
    uint8_t own = payload->flags == NULL ? 0 : payload->flags(p);
    uint8_t flags =
        (uint8_t)(own | (p->prepared ? FLAG_PREPARED : 0) | (p->undoes ? FLAG_UNDOES : 0));
    RQ_TRY(rq__record_put(b, RQ__TAG_FLAGS, rq_slice_of(&flags, 1)));
    RQ_TRY(put_regions(b, RQ__TAG_REGIONS, p->regions, p->region_count));
    RQ_TRY(put_regions(b, RQ__TAG_OLD_REGIONS, p->old_regions, p->old_region_count));
    return payload->encode == NULL ? RQ_OK : payload->encode(p, b);
}

static rq_err pack(const rq__proc *p, const rq_buf *state, rq_arena *arena, rq_slice *ret)
{
    Pb__Procedure m = PB__PROCEDURE__INIT;
    Pb__ForeignExceptionMessage foreign = PB__FOREIGN_EXCEPTION_MESSAGE__INIT;
    Pb__GenericExceptionMessage generic = PB__GENERIC_EXCEPTION_MESSAGE__INIT;
    m.class_name = (char *)(uintptr_t)p->java_class;
    m.proc_id = p->id;
    m.submitted_time = (uint64_t)p->submitted_ms;
    m.last_update = (uint64_t)p->updated_ms;
    m.state = p->parked        ? PB__PROCEDURE_STATE__WAITING
              : !p->ended      ? PB__PROCEDURE_STATE__RUNNABLE
              : p->rc == RQ_OK ? PB__PROCEDURE_STATE__SUCCESS
                               : PB__PROCEDURE_STATE__ROLLEDBACK;
    if (p->user.len > 0) m.owner = rq_arena_cstr(arena, p->user);
    m.has_nonce_group = m.has_nonce = p->nonce != 0;
    m.nonce_group = p->nonce_group;
    m.nonce = p->nonce;
    m.has_state_data = true;
    m.state_data = (ProtobufCBinaryData){state->len, state->ptr};
    uint32_t step = p->step;
    if (p->parked) {
        m.stack_id = &step;
        m.n_stack_id = 1;
    }
    if ((p->ended || p->parked) && p->rc != RQ_OK) {
        generic.class_name = (char *)(uintptr_t)rq_err_java_class(p->rc);
        generic.message = (char *)(uintptr_t)p->why.message;
        foreign.source = (char *)(uintptr_t) "master";
        foreign.generic_exception = &generic;
        m.exception = &foreign;
    }
    size_t len = pb__procedure__get_packed_size(&m);
    uint8_t *bytes = rq_arena_alloc(arena, len);
    if (bytes == NULL || (p->user.len > 0 && m.owner == NULL)) return RQ_E_NO_MEMORY;
    pb__procedure__pack(&m, bytes);
    *ret = rq_slice_of(bytes, len);
    return RQ_OK;
}

rq_err rq__proc_encode(const rq__proc *p, rq_arena *arena, rq_slice *ret)
{
    rq_buf state = {0};
    rq_err rc = put_state(&state, p);
    if (rc == RQ_OK) rc = pack(p, &state, arena, ret);
    rq_buf_clear(&state);
    return rc;
}

/* --- reading ---------------------------------------------------------------------------------- */

static rq_err bad(rq_error *why, const char *what)
{
    return rq_fail(why, RQ_E_CORRUPT, "procedure record: %s", what);
}

static rq_err take_slice(rq__proc *p, rq_slice value, rq_slice *ret)
{
    *ret = rq_arena_copy(&p->arena, value);
    return ret->ptr == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

static rq_err take_region(rq__proc *p, rq_slice value, rq_region_info **list, size_t *count,
                          rq_error *why)
{
    if (*count >= RQ__RECORD_LIST_MAX) return bad(why, "too many regions");
    if ((*count & (*count - 1)) == 0) { /* full at each power of two */
        size_t cap = *count == 0 ? 1 : *count * 2;
        rq_region_info *more = rq_arena_calloc(&p->arena, cap, sizeof *more);
        if (more == NULL) return RQ_E_NO_MEMORY;
        if (*count > 0) memcpy(more, *list, *count * sizeof *more);
        *list = more;
    }
    rq_region_info *r = &(*list)[*count];
    RQ_TRY(rq_region_info_parse(value, &p->arena, r, why));
    if (!rq_slice_eq(r->ns, p->ns) || !rq_slice_eq(r->qualifier, p->qualifier))
        return bad(why, "a region of another table");
    (*count)++;
    return RQ_OK;
}

static rq_err take_flags(rq__proc *p, rq_slice value, rq_error *why)
{
    if (value.len != 1) return bad(why, "flags");
    uint8_t own = (uint8_t)(value.ptr[0] & ~(FLAG_PREPARED | FLAG_UNDOES));
    const rq__payload_kind *payload = p->ops->payload;
    if (own != 0 && (payload->set_flags == NULL || !payload->set_flags(p, own)))
        return bad(why, "flags");
    p->prepared = value.ptr[0] & FLAG_PREPARED;
    p->undoes = value.ptr[0] & FLAG_UNDOES;
    return RQ_OK;
}

static rq_err take_own(rq__proc *p, uint8_t tag, rq_slice value, rq_error *why)
{
    rq_err rc = RQ_OK;
    const rq__payload_kind *payload = p->ops->payload;
    if (payload->decode != NULL && payload->decode(p, tag, value, &rc))
        return rc == RQ_E_CORRUPT ? bad(why, "malformed field of its kind") : rc;
    /* Earlier versions wrote this field for all kinds. */
    if (tag == RQ__TAG_NAME && value.len == 0) return RQ_OK;
    return bad(why, "unknown field");
}

static rq_err take_field(rq__proc *p, uint8_t tag, rq_slice value, rq_error *why)
{
    switch (tag) {
    case RQ__TAG_NS:
        return take_slice(p, value, &p->ns);
    case RQ__TAG_QUALIFIER:
        return take_slice(p, value, &p->qualifier);
    case RQ__TAG_DESCRIPTOR:
        return take_slice(p, value, &p->descriptor);
    case RQ__TAG_FLAGS:
        return take_flags(p, value, why);
    case RQ__TAG_REGION:
        return take_region(p, value, &p->regions, &p->region_count, why);
    case RQ__TAG_OLD_REGION:
        return take_region(p, value, &p->old_regions, &p->old_region_count, why);
    case RQ__TAG_REGIONS:
        return rq__regions_decode(p, value, &p->regions, &p->region_count, why);
    case RQ__TAG_OLD_REGIONS:
        return rq__regions_decode(p, value, &p->old_regions, &p->old_region_count, why);
    default:
        return take_own(p, tag, value, why);
    }
}

/* Reads the names from the record of an unknown kind. All kinds have these fields; the fields that
 * follow may be unknown. */
static rq_err take_names(rq__proc *p, rq_cursor c)
{
    uint8_t tag;
    uint64_t len;
    rq_slice value;
    while (rq_cursor_u8(&c, &tag) && rq_cursor_varint(&c, &len) && len <= rq_cursor_left(&c) &&
           rq_cursor_bytes(&c, (size_t)len, &value)) {
        if (tag == RQ__TAG_NS) RQ_TRY(take_slice(p, value, &p->ns));
        if (tag == RQ__TAG_QUALIFIER) RQ_TRY(take_slice(p, value, &p->qualifier));
    }
    return RQ_OK;
}

static rq_err take_state(rq__proc *p, rq_slice state, rq_error *why)
{
    rq_cursor c = rq_cursor_of(state);
    uint8_t format, kind;
    if (!rq_cursor_u8(&c, &format) || !rq_cursor_u8(&c, &kind)) return bad(why, "cut short");
    if (format != RECORD_FORMAT) return bad(why, "unknown format");
    p->ops = rq__proc_kind_of((rq_ddl_kind)kind);
    if (p->ops == NULL) {
        p->ops = &rq__proc_kind_unknown;
        RQ_TRY(take_names(p, c));
        p->table = rq_table_name_join(&p->arena, p->ns, p->qualifier);
        if (p->table.ptr == NULL) return RQ_E_NO_MEMORY;
        if (p->ended) return RQ_OK; /* a result needs no more */
        return rq_fail(why, RQ_E_CORRUPT, "procedure record: unknown kind %u", kind);
    }
    p->java_class = p->ops->java_class;
    while (rq_cursor_left(&c) > 0) {
        uint8_t tag;
        uint64_t len;
        rq_slice value;
        if (!rq_cursor_u8(&c, &tag) || !rq_cursor_varint(&c, &len) || len > rq_cursor_left(&c) ||
            !rq_cursor_bytes(&c, (size_t)len, &value))
            return bad(why, "cut short");
        RQ_TRY(take_field(p, tag, value, why));
    }
    if (p->ns.len == 0) return bad(why, "no name");
    p->table = rq_table_name_join(&p->arena, p->ns, p->qualifier);
    return p->table.ptr == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

/* The error whose Java class in base/errors.def is `java_class`. This server never writes other
 * classes. */
static rq_err err_of_class(const char *java_class)
{
    if (strcmp(java_class, "java.io.IOException") == 0) return RQ_E_IOEXCEPTION; /* many have it */
    for (int e = 1; e < RQ_ERR_COUNT; e++)
        if (strcmp(rq_err_java_class((rq_err)e), java_class) == 0) return (rq_err)e;
    return RQ_E_IOEXCEPTION;
}

rq_err rq__proc_decode(rq_slice bytes, rq__proc *p, rq_error *why)
{
    rq_pb_arena memory;
    rq_pb_arena_init(&memory, &p->arena);
    Pb__Procedure *m = pb__procedure__unpack(&memory.allocator, bytes.len, bytes.ptr);
    if (m == NULL && memory.exhausted) return rq_no_memory(why);
    p->ops = &rq__proc_kind_unknown;
    p->java_class = "";
    p->recorded = true;
    if (m == NULL) return bad(why, "no Procedure message");
    p->id = m->proc_id;
    p->java_class = m->class_name;
    p->submitted_ms = (int64_t)m->submitted_time;
    p->updated_ms = (int64_t)m->last_update;
    p->nonce_group = m->nonce_group;
    p->nonce = m->nonce;
    p->ended = m->state == PB__PROCEDURE_STATE__SUCCESS ||
               m->state == PB__PROCEDURE_STATE__FAILED ||
               m->state == PB__PROCEDURE_STATE__ROLLEDBACK;
    p->finished = p->ended;
    p->parked = m->state == PB__PROCEDURE_STATE__WAITING;
    if (p->parked && m->n_stack_id == 1 && m->stack_id[0] < RQ__STEPS_MAX) p->step = m->stack_id[0];
    rq_err rc = RQ_OK;
    if (p->id == 0) rc = bad(why, "no id");
    if (rc == RQ_OK && m->owner != NULL) rc = take_slice(p, rq_slice_cstr(m->owner), &p->user);
    if (rc == RQ_OK && !m->has_state_data)
        rc = bad(why, "it has no state data, so another program wrote it");
    if (rc == RQ_OK) rc = take_state(p, rq_slice_of(m->state_data.data, m->state_data.len), why);
    if (rc == RQ_OK && m->exception != NULL && m->exception->generic_exception != NULL) {
        const Pb__GenericExceptionMessage *g = m->exception->generic_exception;
        p->rc = err_of_class(g->class_name == NULL ? "" : g->class_name);
        (void)rq_fail(&p->why, p->rc, "%s", g->message == NULL ? "" : g->message);
    }
    return rc;
}

rq_err rq__proc_set_unreadable(rq__proc *p, uint64_t id, const rq_error *why)
{
    p->id = id;
    p->ops = &rq__proc_kind_unknown;
    p->unreadable = p->parked = p->prepared = true;
    p->undoes = false;
    p->step = 0;
    p->regions = p->old_regions = NULL;
    p->region_count = p->old_region_count = 0;
    p->of = (rq__payload){0};
    rq_slice *names[] = {&p->ns, &p->qualifier, &p->user};
    for (size_t i = 0; i < RQ_ARRAY_LEN(names); i++)
        if (names[i]->ptr == NULL) RQ_TRY(take_slice(p, (rq_slice){NULL, 0}, names[i]));
    p->table = rq_table_name_join(&p->arena, p->ns, p->qualifier);
    if (p->table.ptr == NULL) return RQ_E_NO_MEMORY;
    p->why = (rq_error){0};
    p->rc = rq_fail(&p->why, RQ_E_CORRUPT, "%s", why->message);
    return RQ_OK;
}
