/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of ClientService, executed: the whole service over a catalog with two tables, on the
 * simulated environment, behind a connection made of memory (tests/unit/service/service_world.h).
 * What is decoded is done, so limits, positions and counts that a decoder lets through meet the
 * code that believes them.
 *
 * Input:
 *   byte 0   what the connection can (see `hellos`)
 *   calls    method (index modulo their number), be16 length of the message, be16 length of the
 *            cell block, message, cell block; what is missing at the end is left out
 *
 * Two kinds of names are only known at run time and are put into messages here: a region whose
 * value is one byte is that one of the tables' regions, and a scanner id below 64 is that of the
 * n-th scanner this input opened.
 *
 * Each answer is decoded as a client would, and its cell block has to be one. Every call must have
 * an answer when nothing is left to do. The tables stay from one input to the next, and are made
 * anew from time to time: inputs write little, and a fresh catalog costs more than a call.
 */
#include "../tests/unit/service/service_world.h"

#include "proto/client.pb-c.h"

#include <stdlib.h>

#define INPUTS_PER_WORLD 50
#define SCANNERS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct session {
    service_client client;
    uint64_t scanners[SCANNERS_MAX];
    size_t scanner_count;
} session;

/* ---- answers */

static void note_scanner(session *s)
{
    if (s->client.header == NULL || s->client.header->exception != NULL) return;
    Pb__ScanResponse *r =
        pb__scan_response__unpack(NULL, s->client.message.len, s->client.message.ptr);
    if (r == NULL) abort(); /* no client could read it */
    if (r->has_scanner_id && s->scanner_count < SCANNERS_MAX &&
        (s->scanner_count == 0 || s->scanners[s->scanner_count - 1] != r->scanner_id))
        s->scanners[s->scanner_count++] = r->scanner_id;
    pb__scan_response__free_unpacked(r, NULL);
}

/* ---- requests */

static void name_region(session *s, Pb__RegionSpecifier *r)
{
    if (r == NULL || r->value.len != 1) return;
    const char *name = s->client.world->regions[r->value.data[0] % SERVICE_REGIONS];
    uint8_t *copy = malloc(RQ_ENCODED_NAME_LEN); /* freed with the message */
    if (copy == NULL) abort();
    memcpy(copy, name, RQ_ENCODED_NAME_LEN);
    free(r->value.data);
    r->value = (ProtobufCBinaryData){RQ_ENCODED_NAME_LEN, copy};
    r->type = PB__REGION_SPECIFIER__REGION_SPECIFIER_TYPE__ENCODED_REGION_NAME;
}

/* Wherever a message, or one inside it, has a region. */
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
            else
                name_regions(s, list[k]);
        }
    }
}

/* The message with the names put in; as it came when it is no such message. */
static void make_message(session *s, const rq_rpc_method *method, rq_slice bytes, rq_buf *ret)
{
    ProtobufCMessage *m = protobuf_c_message_unpack(method->request, NULL, bytes.len, bytes.ptr);
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

static bool call(session *s, const rq_rpc_method *method, rq_slice message, rq_slice cells)
{
    rq_buf param = {0};
    make_message(s, method, message, &param);
    bool open = service_client_call(&s->client, method->name, rq_buf_slice(&param), cells);
    if (open && method->request == &pb__scan_request__descriptor) note_scanner(s);
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

static void run_session(service_world *w, const uint8_t *data, size_t size)
{
    session s = {.scanner_count = 0};
    rq_rpc_service methods = rq_client_service_methods(w->service);
    rq_cursor c = rq_cursor_of(rq_slice_of(data, size));
    bool open = true;
    service_client_open(&s.client, w, take(&c, 1).ptr[0] % SERVICE_HELLOS);
    while (open && rq_cursor_left(&c) >= 5) {
        const uint8_t *head = take(&c, 5).ptr;
        rq_slice message = take(&c, rq_get_be16(head + 1));
        rq_slice cells = take(&c, rq_get_be16(head + 3));
        open = call(&s, &methods.methods[head[0] % methods.method_count], message, cells);
    }
    service_client_close(&s.client);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* libFuzzer's entry has no context to keep them in. */
    static service_world *shared;
    static unsigned inputs;
    if (size == 0) return 0;
    if (shared == NULL) shared = service_world_new();
    run_session(shared, data, size);
    if (++inputs % INPUTS_PER_WORLD != 0) return 0;
    service_world_free(shared);
    shared = NULL;
    return 0;
}
