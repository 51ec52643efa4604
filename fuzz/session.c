/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of one connection; see session.h. */
#include "session.h"

#include "proto/access_control.pb-c.h"
#include "proto/admin.pb-c.h"
#include "proto/client.pb-c.h"
#include "proto/logs.pb-c.h"
#include "proto/master.pb-c.h"
#include "proto/quota.pb-c.h"
#include "proto/region_server_status.pb-c.h"
#include "proto/registry.pb-c.h"
#include "proto/replication.pb-c.h"
#include "proto/rsgroup.pb-c.h"
#include "store/mob.h"

#include <stdlib.h>

#define SCANNERS_MAX 64
#define REGIONS_NAMED 64 /* smaller ids are numbers of regions */
#define MOB_REGION 0x80  /* in a region's byte: the MOB region of u or t */
#define AS_IT_CAME 0x80  /* in the method's byte: the message is sent unchanged */

typedef struct session {
    service_client client;
    uint64_t scanners[SCANNERS_MAX];
    size_t scanner_count;
} session;

/* ---- responses */

static const struct {
    const char *service, *method;
    const ProtobufCMessageDescriptor *response;
} answers[] = {
#define X(service, method, request, response) {#service, #method, &pb__##response##__descriptor},
#include "rpc/methods.def"
#undef X
};

static const ProtobufCMessageDescriptor *answer_of(const char *service, const char *method)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(answers); i++)
        if (strcmp(answers[i].service, service) == 0 && strcmp(answers[i].method, method) == 0)
            return answers[i].response;
    abort(); /* a service has a method that is missing in the list */
}

static void note_scanner(session *s, const Pb__ScanResponse *r)
{
    if (r->has_scanner_id && s->scanner_count < SCANNERS_MAX &&
        (s->scanner_count == 0 || s->scanners[s->scanner_count - 1] != r->scanner_id))
        s->scanners[s->scanner_count++] = r->scanner_id;
}

static void read_answer(session *s, const char *service, const char *method)
{
    if (s->client.header == NULL || s->client.header->exception != NULL) return;
    const ProtobufCMessageDescriptor *type = answer_of(service, method);
    ProtobufCMessage *m =
        protobuf_c_message_unpack(type, NULL, s->client.message.len, s->client.message.ptr);
    if (m == NULL) abort(); /* no client could decode it */
    if (type == &pb__scan_response__descriptor) note_scanner(s, (const Pb__ScanResponse *)m);
    protobuf_c_message_free_unpacked(m, NULL);
}

/* ---- requests */

static void set_bytes(ProtobufCBinaryData *member, rq_slice bytes)
{
    uint8_t *copy = malloc(bytes.len + (bytes.len == 0)); /* freed with the message */
    if (copy == NULL) abort();
    if (bytes.len > 0) memcpy(copy, bytes.ptr, bytes.len);
    free(member->data);
    *member = (ProtobufCBinaryData){bytes.len, copy};
}

/* The pseudo region of a table's MOB files on the master: never open; its name contains a hash. */
static void name_mob_region(const char *table, Pb__RegionSpecifier *r)
{
    rq_buf name = {0};
    char encoded[RQ_MD5_HEX_LEN + 1];
    if (rq_mob_region_name(rq_slice_cstr(table), &name, encoded) != RQ_OK) abort();
    set_bytes(&r->value, rq_buf_slice(&name));
    r->type = PB__REGION_SPECIFIER__REGION_SPECIFIER_TYPE__REGION_NAME;
    rq_buf_clear(&name);
}

static void name_region(session *s, Pb__RegionSpecifier *r)
{
    if (r == NULL || r->value.len != 1) return;
    uint8_t which = r->value.data[0];
    if ((which & MOB_REGION) != 0) {
        name_mob_region((which & 1) != 0 ? "u" : "t", r);
        return;
    }
    const char *name = s->client.world->regions[which % SERVICE_REGIONS];
    set_bytes(&r->value, rq_slice_cstr(name));
    r->type = PB__REGION_SPECIFIER__REGION_SPECIFIER_TYPE__ENCODED_REGION_NAME;
}

static void name_info(session *s, Pb__RegionInfo *r)
{
    if (r == NULL || r->region_id >= REGIONS_NAMED) return;
    const service_world *w = s->client.world;
    const char *name = w->regions[r->region_id % SERVICE_REGIONS];
    const rq_catalog_region *region = rq_catalog_region_find(w->w.catalog, rq_slice_cstr(name));
    if (region == NULL) return; /* an earlier call has removed the region */
    const rq_region_info *info = region->info;
    r->region_id = (uint64_t)info->region_id;
    set_bytes(&r->table_name->namespace_, info->ns);
    set_bytes(&r->table_name->qualifier, info->qualifier);
    set_bytes(&r->start_key, info->start_key);
    set_bytes(&r->end_key, info->end_key);
    r->has_start_key = r->has_end_key = 1;
}

/* Inserts regions into the message and its nested messages. */
static void name_regions(session *s, ProtobufCMessage *m)
{
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
        if (f->type != PROTOBUF_C_TYPE_MESSAGE) continue;
        uint8_t *at = (uint8_t *)m + f->offset;
        size_t count = 1;
        ProtobufCMessage **list = (ProtobufCMessage **)(void *)at;
        if (f->label == PROTOBUF_C_LABEL_REPEATED) {
            memcpy(&count, (uint8_t *)m + f->quantifier_offset, sizeof count);
            list = *(ProtobufCMessage ***)(void *)at;
        }
        for (size_t k = 0; k < count; k++) {
            if (list[k] == NULL) continue;
            if (f->descriptor == &pb__region_specifier__descriptor)
                name_region(s, (Pb__RegionSpecifier *)list[k]);
            else if (f->descriptor == &pb__region_info__descriptor)
                name_info(s, (Pb__RegionInfo *)list[k]);
            else
                name_regions(s, list[k]);
        }
    }
}

/* Encodes the message with the names inserted; unchanged if it cannot be decoded, or if
 * as_it_came. */
static void make_message(session *s, const rq_rpc_method *method, bool as_it_came, rq_slice bytes,
                         rq_buf *ret)
{
    ProtobufCMessage *m =
        as_it_came ? NULL : protobuf_c_message_unpack(method->request, NULL, bytes.len, bytes.ptr);
    if (m == NULL) {
        if (rq_buf_append(ret, bytes.ptr, bytes.len) != RQ_OK) abort();
        return;
    }
    name_regions(s, m);
    if (m->descriptor == &pb__scan_request__descriptor) {
        Pb__ScanRequest *scan = (Pb__ScanRequest *)m;
        if (scan->has_scanner_id && scan->scanner_id < s->scanner_count)
            scan->scanner_id = s->scanners[scan->scanner_id];
    }
    if (rq_buf_reserve(ret, protobuf_c_message_get_packed_size(m)) != RQ_OK) abort();
    ret->len = protobuf_c_message_pack(m, ret->ptr);
    protobuf_c_message_free_unpacked(m, NULL);
}

static bool call(session *s, service_kind kind, uint8_t which, rq_slice message, rq_slice cells)
{
    const rq_rpc_service *service = &s->client.world->services[kind];
    const rq_rpc_method *method = &service->methods[(which & ~AS_IT_CAME) % service->method_count];
    rq_buf param = {0};
    make_message(s, method, (which & AS_IT_CAME) != 0, message, &param);
    /* Announces two requests, as if another one had arrived with this one. */
    rq_slice both[2] = {rq_buf_slice(&param), rq_buf_slice(&param)};
    if (service->expect != NULL) service->expect(service->ctx, both, 2);
    bool open = service_client_call(&s->client, method->name, rq_buf_slice(&param), cells);
    if (open) read_answer(s, service->name, method->name);
    rq_buf_clear(&param);
    return open;
}

static rq_slice take(rq_cursor *c, size_t len)
{
    rq_slice s = {0};
    if (len > rq_cursor_left(c)) len = rq_cursor_left(c);
    if (!rq_cursor_bytes(c, len, &s)) abort();
    return s;
}

void session_run(service_world *w, service_kind kind, unsigned hello, rq_slice calls)
{
    session s = {.scanner_count = 0};
    rq_cursor c = rq_cursor_of(calls);
    bool open = true;
    service_client_open(&s.client, w, kind, hello);
    while (open && rq_cursor_left(&c) >= 5) {
        const uint8_t *head = take(&c, 5).ptr;
        rq_slice message = take(&c, rq_get_be16(head + 1));
        rq_slice cells = take(&c, rq_get_be16(head + 3));
        open = call(&s, kind, head[0], message, cells);
    }
    service_client_close(&s.client);
}
