/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A procedure's record: HBase's Procedure message, so that tools can list it, with our own bytes as
 * its state_data:
 *
 *   u8 format (1) | u8 kind | fields…       field = u8 tag | varint length | bytes
 *
 * A parked one has the state WAITING, its step as stack_id, and its error as exception; a version
 * that knows nothing of it goes on with the procedure.
 *
 * DO NOT CHANGE the tags; an unknown one is refused, because skipping it might do half of
 * something.
 */
#include "catalog/procedure.h"

#include <stdlib.h>

#include "proto/procedure.pb-c.h"
#include "store/pb_arena.h"

#define RECORD_FORMAT 1
#define LIST_MAX 1000000

enum tag {
    TAG_NS = 1,
    TAG_QUALIFIER = 2,
    TAG_DESCRIPTOR = 3,
    TAG_FAMILY = 4,
    TAG_FLAGS = 5, /* u8: 1 preserve_splits, 2 no_reopen, 4 prepared */
    TAG_REGION = 6,
    TAG_OLD_REGION = 7,
    TAG_REMOVED_FAMILY = 8,
    TAG_OPEN_SEQNUM = 9, /* be64; TRUNCATE_REGION */
};

/* --- writing ---------------------------------------------------------------------------------- */

static rq_err put_field(rq_buf *b, enum tag tag, rq_slice value)
{
    RQ_TRY(rq_buf_append_u8(b, (uint8_t)tag));
    RQ_TRY(rq_buf_append_varint(b, value.len));
    return rq_buf_append(b, value.ptr, value.len);
}

static rq_err put_regions(rq_buf *b, enum tag tag, const rq_region_info *list, size_t count)
{
    rq_arena a;
    rq_arena_init(&a);
    rq_err rc = RQ_OK;
    for (size_t i = 0; i < count && rc == RQ_OK; i++) {
        rq_slice bytes;
        rc = rq_region_info_serialize(&list[i], &a, &bytes);
        if (rc == RQ_OK) rc = put_field(b, tag, bytes);
        rq_arena_reset(&a);
    }
    rq_arena_clear(&a);
    return rc;
}

static rq_err put_state(rq_buf *b, const rq__proc *p)
{
    RQ_TRY(rq_buf_append_u8(b, RECORD_FORMAT));
    RQ_TRY(rq_buf_append_u8(b, (uint8_t)p->ops->kind));
    RQ_TRY(put_field(b, TAG_NS, p->ns));
    RQ_TRY(put_field(b, TAG_QUALIFIER, p->qualifier));
    if (p->ended) return RQ_OK; /* a result needs no more */
    RQ_TRY(put_field(b, TAG_DESCRIPTOR, p->descriptor));
    RQ_TRY(put_field(b, TAG_FAMILY, p->family));
    uint8_t flags =
        (uint8_t)((p->preserve_splits ? 1 : 0) | (p->no_reopen ? 2 : 0) | (p->prepared ? 4 : 0));
    RQ_TRY(put_field(b, TAG_FLAGS, rq_slice_of(&flags, 1)));
    RQ_TRY(put_regions(b, TAG_REGION, p->regions, p->region_count));
    RQ_TRY(put_regions(b, TAG_OLD_REGION, p->old_regions, p->old_region_count));
    for (size_t i = 0; i < p->removed_family_count; i++)
        RQ_TRY(put_field(b, TAG_REMOVED_FAMILY, p->removed_families[i]));
    if (p->ops->kind != RQ_DDL_TRUNCATE_REGION) return RQ_OK;
    uint8_t seqnum[8];
    rq_put_be64(seqnum, (uint64_t)p->open_seqnum);
    return put_field(b, TAG_OPEN_SEQNUM, rq_slice_of(seqnum, sizeof seqnum));
}

static rq_err pack(const rq__proc *p, const rq_buf *state, rq_arena *arena, rq_slice *ret)
{
    Pb__Procedure m = PB__PROCEDURE__INIT;
    Pb__ForeignExceptionMessage foreign = PB__FOREIGN_EXCEPTION_MESSAGE__INIT;
    Pb__GenericExceptionMessage generic = PB__GENERIC_EXCEPTION_MESSAGE__INIT;
    m.class_name = (char *)(uintptr_t)p->ops->java_class;
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
    if (*count >= LIST_MAX) return bad(why, "too many regions");
    if ((*count & (*count - 1)) == 0) { /* full at each power of two */
        size_t cap = *count == 0 ? 1 : *count * 2;
        rq_region_info *more = rq_arena_calloc(&p->arena, cap, sizeof *more);
        if (more == NULL) return RQ_E_NO_MEMORY;
        if (*count > 0) memcpy(more, *list, *count * sizeof *more);
        *list = more;
    }
    RQ_TRY(rq_region_info_parse(value, &p->arena, &(*list)[*count], why));
    (*count)++;
    return RQ_OK;
}

static rq_err take_removed(rq__proc *p, rq_slice value, rq_error *why)
{
    size_t n = p->removed_family_count;
    if (n >= LIST_MAX) return bad(why, "too many families");
    if ((n & (n - 1)) == 0) {
        rq_slice *more = rq_arena_calloc(&p->arena, n == 0 ? 1 : n * 2, sizeof *more);
        if (more == NULL) return RQ_E_NO_MEMORY;
        if (n > 0) memcpy(more, p->removed_families, n * sizeof *more);
        p->removed_families = more;
    }
    RQ_TRY(take_slice(p, value, &p->removed_families[n]));
    p->removed_family_count++;
    return RQ_OK;
}

static rq_err take_field(rq__proc *p, uint8_t tag, rq_slice value, rq_error *why)
{
    switch ((enum tag)tag) {
    case TAG_NS:
        return take_slice(p, value, &p->ns);
    case TAG_QUALIFIER:
        return take_slice(p, value, &p->qualifier);
    case TAG_DESCRIPTOR:
        return take_slice(p, value, &p->descriptor);
    case TAG_FAMILY:
        return take_slice(p, value, &p->family);
    case TAG_FLAGS:
        if (value.len != 1 || value.ptr[0] > 7) return bad(why, "flags");
        p->preserve_splits = value.ptr[0] & 1;
        p->no_reopen = value.ptr[0] & 2;
        p->prepared = value.ptr[0] & 4;
        return RQ_OK;
    case TAG_REGION:
        return take_region(p, value, &p->regions, &p->region_count, why);
    case TAG_OLD_REGION:
        return take_region(p, value, &p->old_regions, &p->old_region_count, why);
    case TAG_REMOVED_FAMILY:
        return take_removed(p, value, why);
    case TAG_OPEN_SEQNUM:
        if (value.len != 8) return bad(why, "sequence number");
        p->open_seqnum = (int64_t)rq_get_be64(value.ptr);
        return RQ_OK;
    }
    return bad(why, "unknown field");
}

static rq_err take_state(rq__proc *p, rq_slice state, rq_error *why)
{
    rq_cursor c = rq_cursor_of(state);
    uint8_t format, kind;
    if (!rq_cursor_u8(&c, &format) || !rq_cursor_u8(&c, &kind)) return bad(why, "cut short");
    if (format != RECORD_FORMAT) return bad(why, "unknown format");
    p->ops = rq__proc_kind_of((rq_ddl_kind)kind);
    if (p->ops == NULL) return bad(why, "unknown kind");
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

/* The error of our table that has this Java class; what is not there was never written by us. */
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
    if (m == NULL && memory.exhausted) return rq_fail(why, RQ_E_NO_MEMORY, "out of memory");
    if (m == NULL) return bad(why, "no Procedure message");
    p->id = m->proc_id;
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
    p->recorded = true;
    rq_err rc = RQ_OK;
    if (p->id == 0) rc = bad(why, "no id");
    if (rc == RQ_OK && m->owner != NULL) rc = take_slice(p, rq_slice_cstr(m->owner), &p->user);
    if (rc == RQ_OK && !m->has_state_data) rc = bad(why, "not one of this server");
    if (rc == RQ_OK) rc = take_state(p, rq_slice_of(m->state_data.data, m->state_data.len), why);
    if (rc == RQ_OK && m->exception != NULL && m->exception->generic_exception != NULL) {
        const Pb__GenericExceptionMessage *g = m->exception->generic_exception;
        p->rc = err_of_class(g->class_name == NULL ? "" : g->class_name);
        (void)rq_fail(&p->why, p->rc, "%s", g->message == NULL ? "" : g->message);
    }
    return rc;
}
