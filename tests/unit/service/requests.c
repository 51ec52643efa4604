/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of ClientService, made and sent; see requests.h. */
#include "requests.h"

#include <string.h>

int requests_begin(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->world = service_world_new();
    service_client_open(&f->client, f->world, SERVICE_CLIENT, 0);
    rq_arena_init(&f->arena);
    *state = f;
    return 0;
}

int requests_end(void **state)
{
    fixture *f = *state;
    service_client_close(&f->client);
    service_world_free(f->world);
    rq_cellblock_clear(&f->cells);
    rq_arena_clear(&f->arena);
    free(f);
    return 0;
}

void *made(fixture *f, const ProtobufCMessageDescriptor *type)
{
    ProtobufCMessage *m = rq_arena_alloc(&f->arena, type->sizeof_message);
    assert_non_null(m);
    protobuf_c_message_init(type, m);
    return m;
}

ProtobufCBinaryData bytes(const char *text)
{
    return (ProtobufCBinaryData){strlen(text), (uint8_t *)(uintptr_t)text};
}

Pb__RegionSpecifier *region(fixture *f, size_t which)
{
    Pb__RegionSpecifier *r = MADE(f, region_specifier);
    r->type = PB__REGION_SPECIFIER__REGION_SPECIFIER_TYPE__ENCODED_REGION_NAME;
    r->value = bytes(f->world->regions[which]);
    return r;
}

const char *send_call(fixture *f, const char *method, const ProtobufCMessage *m)
{
    uint8_t *p = rq_arena_alloc(&f->arena, protobuf_c_message_get_packed_size(m));
    assert_non_null(p);
    size_t len = protobuf_c_message_pack(m, p);
    assert_true(service_client_call(&f->client, method, rq_slice_of(p, len),
                                    rq_buf_slice(&f->cells.bytes)));
    rq_cellblock_reset(&f->cells);
    return service_client_exception(&f->client);
}

void add_cell(fixture *f, const char *row, const char *qualifier, const char *value)
{
    rq_cell c = {.row = (const uint8_t *)row,
                 .row_len = (uint16_t)strlen(row),
                 .family = (const uint8_t *)"f",
                 .family_len = 1,
                 .qualifier = (const uint8_t *)qualifier,
                 .qualifier_len = (uint32_t)strlen(qualifier),
                 .timestamp = RQ_TIMESTAMP_LATEST,
                 .type = RQ_TYPE_PUT,
                 .value = (const uint8_t *)value,
                 .value_len = (uint32_t)strlen(value)};
    assert_int_equal(rq_cellblock_append(&f->cells, &c), RQ_OK);
}

Pb__Action *action(fixture *f, Pb__RegionAction *ra)
{
    Pb__Action *a = MADE(f, action);
    a->has_index = 1;
    a->index = (uint32_t)ra->n_action;
    ra->action[ra->n_action++] = a;
    return a;
}

void add_mutation(fixture *f, Pb__RegionAction *ra, Pb__MutationProto__MutationType type,
                  const char *row, int32_t count)
{
    Pb__MutationProto *m = MADE(f, mutation_proto);
    m->has_mutate_type = m->has_row = m->has_associated_cell_count = 1;
    m->mutate_type = type;
    m->row = bytes(row);
    m->associated_cell_count = count;
    action(f, ra)->mutation = m;
}

void add_put(fixture *f, Pb__RegionAction *ra, const char *row, int32_t count)
{
    add_mutation(f, ra, PB__MUTATION_PROTO__MUTATION_TYPE__PUT, row, count);
}

void add_get(fixture *f, Pb__RegionAction *ra, const char *row)
{
    Pb__Get *g = MADE(f, get);
    g->row = bytes(row);
    action(f, ra)->get = g;
}

Pb__RegionAction *on_region(fixture *f, size_t which, size_t actions)
{
    Pb__RegionAction *ra = MADE(f, region_action);
    ra->region = region(f, which);
    ra->action = rq_arena_calloc(&f->arena, actions, sizeof(Pb__Action *));
    return ra;
}

Pb__MultiResponse *multi(fixture *f, Pb__RegionAction **list, size_t count)
{
    Pb__MultiRequest m = PB__MULTI_REQUEST__INIT;
    m.regionaction = list;
    m.n_regionaction = count;
    if (send_call(f, "Multi", &m.base) != NULL) return NULL;
    Pb__MultiResponse *r =
        pb__multi_response__unpack(NULL, f->client.message.len, f->client.message.ptr);
    assert_non_null(r);
    assert_int_equal(r->n_regionactionresult, count);
    return r;
}

const char *outcome(const Pb__MultiResponse *r, size_t which, uint32_t index)
{
    const Pb__RegionActionResult *ra = r->regionactionresult[which];
    for (size_t i = 0; i < ra->n_resultorexception; i++) {
        const Pb__ResultOrException *one = ra->resultorexception[i];
        if (one->index == index) return one->exception == NULL ? "" : one->exception->name;
    }
    return "no answer";
}

size_t cells_of(fixture *f, const char *row)
{
    Pb__GetRequest g = PB__GET_REQUEST__INIT;
    g.region = region(f, 0);
    g.get = MADE(f, get);
    g.get->row = bytes(row);
    assert_null(send_call(f, "Get", &g.base));
    rq_cursor c = rq_cursor_of(rq_buf_slice(&f->client.cells));
    rq_cell cell;
    size_t count = 0;
    while (rq_cellblock_next(&c, &cell, NULL) == RQ_OK)
        count++;
    return count;
}

unsigned tasks_of(fixture *f, const char *method, const ProtobufCMessage *m)
{
    unsigned before = f->world->posted;
    assert_null(send_call(f, method, m));
    return f->world->posted - before;
}
