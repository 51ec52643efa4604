/* SPDX-License-Identifier: Apache-2.0 */
/* The fast decoders of Get, Mutate, Multi and Scan compared with protobuf-c: messages with any fields,
 * generated from the descriptors, then the same bytes damaged. Responses that are encoded without
 * protobuf-c are compared, too. */
#include "base/random.h"
#include "service/encode.h"
#include "service/multi_answer.h"
#include "service/scan_answer.h"
#include "service/unpack.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const ProtobufCMessageDescriptor *const types[] = {
    &pb__get_request__descriptor, &pb__mutate_request__descriptor, &pb__multi_request__descriptor,
    &pb__scan_request__descriptor};

static void *take(void *arena, size_t size)
{
    return rq_arena_alloc(arena, size);
}

static void leave(void *arena, void *p)
{
    (void)arena;
    (void)p;
}

/* --- messages of any shape -------------------------------------------------------------------- */

static ProtobufCMessage *make(rq_random *r, rq_arena *a, const ProtobufCMessageDescriptor *type,
                              unsigned depth);

static size_t size_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_ENUM:
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(int);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    default:
        return sizeof(void *);
    }
}

static void set(rq_random *r, rq_arena *a, const ProtobufCFieldDescriptor *f, void *member,
                unsigned depth)
{
    static const uint64_t numbers[] = {0,         1,          2,         127,       128,
                                       INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX};
    uint64_t number = numbers[rq_random_below(r, RQ_ARRAY_LEN(numbers))];
    size_t len = rq_random_below(r, 20) == 0 ? 200 : rq_random_below(r, 4);
    /* empty ones are tested separately */
    if (f->label == PROTOBUF_C_LABEL_REQUIRED && len == 0) len = 1;
    char *bytes = rq_arena_calloc(a, len + 1, 1);
    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)('a' + rq_random_below(r, 26));
    switch (f->type) {
    case PROTOBUF_C_TYPE_ENUM: {
        const ProtobufCEnumDescriptor *e = f->descriptor;
        *(int *)member = e->values[rq_random_below(r, e->n_values)].value;
        return;
    }
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)member = (protobuf_c_boolean)rq_random_below(r, 2);
        return;
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_UINT32:
        *(uint32_t *)member = (uint32_t)number;
        return;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
        *(uint64_t *)member = number;
        return;
    case PROTOBUF_C_TYPE_BYTES:
        *(ProtobufCBinaryData *)member = (ProtobufCBinaryData){len, (uint8_t *)bytes};
        return;
    case PROTOBUF_C_TYPE_STRING:
        *(char **)member = bytes;
        return;
    case PROTOBUF_C_TYPE_MESSAGE:
        *(ProtobufCMessage **)member = make(r, a, f->descriptor, depth + 1);
        return;
    default:
        fail_msg("field %s has a type that no request had so far", f->name);
    }
}

static ProtobufCMessage *make(rq_random *r, rq_arena *a, const ProtobufCMessageDescriptor *type,
                              unsigned depth)
{
    uint8_t *m = rq_arena_alloc(a, type->sizeof_message);
    protobuf_c_message_init(type, m);
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &type->fields[i];
        if (f->label == PROTOBUF_C_LABEL_REQUIRED) {
            set(r, a, f, m + f->offset, depth);
        } else if (rq_random_below(r, 2 + depth) > 0) {
            continue;
        } else if (f->label == PROTOBUF_C_LABEL_OPTIONAL) {
            if (f->type != PROTOBUF_C_TYPE_MESSAGE && f->type != PROTOBUF_C_TYPE_STRING)
                *(protobuf_c_boolean *)(m + f->quantifier_offset) = 1;
            set(r, a, f, m + f->offset, depth);
        } else {
            size_t count = 1 + rq_random_below(r, 3);
            uint8_t *list = rq_arena_alloc(a, count * sizeof(ProtobufCBinaryData));
            for (size_t k = 0; k < count; k++)
                set(r, a, f, list + k * size_of(f->type), depth);
            *(void **)(m + f->offset) = list;
            *(size_t *)(m + f->quantifier_offset) = count;
        }
    }
    return (ProtobufCMessage *)m;
}

/* --- comparing -------------------------------------------------------------------------------- */

static rq_slice packed(rq_arena *a, const ProtobufCMessage *m)
{
    uint8_t *bytes = rq_arena_alloc(a, protobuf_c_message_get_packed_size(m) + 1);
    return rq_slice_of(bytes, protobuf_c_message_pack(m, bytes));
}

/* Whether the fast decoder accepted the bytes; then protobuf-c must decode them to the same
 * message. */
static bool same_as_protobuf_c(rq_arena *a, const ProtobufCMessageDescriptor *type, rq_slice bytes,
                               uint64_t seed)
{
    ProtobufCAllocator allocator = {take, leave, a};
    /* A copy of exact size, so that a sanitizer detects reads past its end. */
    uint8_t *exact = malloc(bytes.len + (bytes.len == 0));
    if (bytes.len > 0) memcpy(exact, bytes.ptr, bytes.len);
    ProtobufCMessage *quick = rq__unpack_request(type, &allocator, rq_slice_of(exact, bytes.len));
    if (quick != NULL) {
        ProtobufCMessage *theirs =
            protobuf_c_message_unpack(type, &allocator, bytes.len, bytes.ptr);
        if (theirs == NULL || !rq_slice_eq(packed(a, quick), packed(a, theirs)))
            fail_msg("seed %" PRIu64 ": %s differs", seed, type->name);
    }
    free(exact);
    return quick != NULL;
}

static void whole_messages_are_decoded_alike(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        rq_random r;
        rq_arena a = {0};
        rq_random_seed(&r, seed);
        const ProtobufCMessageDescriptor *type = types[seed % RQ_ARRAY_LEN(types)];
        rq_slice bytes = packed(&a, make(&r, &a, type, 0));
        if (!same_as_protobuf_c(&a, type, bytes, seed))
            fail_msg("seed %" PRIu64 ": %s was left to protobuf-c", seed, type->name);
        rq_arena_clear(&a);
    }
}

static void damaged_messages_are_decoded_alike_or_left(void **state)
{
    (void)state;
    unsigned taken = 0;
    for (uint64_t seed = 1; seed <= 6000; seed++) {
        rq_random r;
        rq_arena a = {0};
        rq_random_seed(&r, seed);
        const ProtobufCMessageDescriptor *type = types[seed % RQ_ARRAY_LEN(types)];
        rq_slice bytes = packed(&a, make(&r, &a, type, 0));
        uint8_t *b = (uint8_t *)bytes.ptr;
        switch (rq_random_below(&r, 3)) {
        case 0:
            bytes.len = rq_random_below(&r, bytes.len + 1);
            break;
        case 1: /* changes some bytes */
            for (unsigned n = 0; n < 1 + seed % 3 && bytes.len > 0; n++)
                b[rq_random_below(&r, bytes.len)] = (uint8_t)rq_random_next(&r);
            break;
        default: { /* repeats all bytes: protobuf would merge the two messages */
            uint8_t *twice = rq_arena_alloc(&a, 2 * bytes.len + 1);
            memcpy(twice, b, bytes.len);
            memcpy(twice + bytes.len, b, bytes.len);
            bytes = rq_slice_of(twice, 2 * bytes.len);
        }
        }
        taken += same_as_protobuf_c(&a, type, bytes, seed);
        rq_arena_clear(&a);
    }
    assert_true(taken > 100); /* otherwise nothing was compared */
}

static void an_empty_row_is_left_to_protobuf_c(void **state)
{
    (void)state;
    rq_arena a = {0};
    Pb__GetRequest request = PB__GET_REQUEST__INIT;
    Pb__RegionSpecifier region = PB__REGION_SPECIFIER__INIT;
    Pb__Get get = PB__GET__INIT;
    region.value = (ProtobufCBinaryData){1, (uint8_t *)"r"};
    request.region = &region;
    request.get = &get;
    assert_false(same_as_protobuf_c(&a, types[0], packed(&a, &request.base), 0));
    get.row = region.value;
    assert_true(same_as_protobuf_c(&a, types[0], packed(&a, &request.base), 0));
    region.value.len = 0;
    assert_false(same_as_protobuf_c(&a, types[0], packed(&a, &request.base), 0));
    rq_arena_clear(&a);
}

static void other_requests_are_left_to_protobuf_c(void **state)
{
    (void)state;
    rq_arena a = {0};
    ProtobufCAllocator allocator = {take, leave, &a};
    assert_null(
        rq__unpack_request(&pb__bulk_load_hfile_request__descriptor, &allocator, (rq_slice){0}));
    rq_arena_clear(&a);
}

/* --- responses -------------------------------------------------------------------------------- */

static void short_answers_match_protobuf_c(void **state)
{
    (void)state;
    rq_arena a = {0};
    static const uint32_t counts[] = {0, 1, 127, 128, 1000000, INT32_MAX};
    for (size_t i = 0; i < RQ_ARRAY_LEN(counts); i++) {
        uint8_t out[RQ__COUNTED_RESULT_MAX];
        Pb__GetResponse response = PB__GET_RESPONSE__INIT;
        Pb__Result result = PB__RESULT__INIT;
        response.result = &result;
        result.has_stale = result.has_associated_cell_count = 1;
        result.associated_cell_count = (int32_t)counts[i];
        assert_true(
            rq_slice_eq(rq__pack_counted_result(counts[i], out), packed(&a, &response.base)));
    }
    for (int processed = 0; processed < 2; processed++) {
        uint8_t out[RQ__PROCESSED_LEN];
        Pb__MutateResponse response = PB__MUTATE_RESPONSE__INIT;
        response.has_processed = 1;
        response.processed = processed;
        assert_true(
            rq_slice_eq(rq__pack_processed(processed != 0, out), packed(&a, &response.base)));
    }
    rq_arena_clear(&a);
}

static void answers_of_multi_match_protobuf_c(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        rq_random r;
        rq_arena a = {0};
        rq_random_seed(&r, seed);
        ProtobufCMessage *m = make(&r, &a, &pb__multi_response__descriptor, 0);
        rq_slice quick;
        assert_int_equal(rq__pack_multi((Pb__MultiResponse *)m, &a, &quick), RQ_OK);
        if (!rq_slice_eq(quick, packed(&a, m))) fail_msg("seed %" PRIu64 " differs", seed);
        rq_arena_clear(&a);
    }
}

static rq_scan_result *results_of(rq_arena *a, const Pb__ScanResponse *m)
{
    rq_scan_result *results = rq_arena_calloc(a, m->n_cells_per_result + 1, sizeof *results);
    for (size_t i = 0; i < m->n_cells_per_result; i++) {
        bool flag = i < m->n_partial_flag_per_result && m->partial_flag_per_result[i] != 0;
        results[i] = (rq_scan_result){m->cells_per_result[i], flag};
    }
    return results;
}

static void answers_of_scans_match_protobuf_c(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        rq_random r;
        rq_arena a = {0};
        rq_random_seed(&r, seed);
        Pb__ScanResponse *m = (Pb__ScanResponse *)make(&r, &a, &pb__scan_response__descriptor, 0);
        m->n_results = 0;
        size_t count = m->n_cells_per_result;
        const rq_scan_result *results = results_of(&a, m);
        m->n_partial_flag_per_result = count;
        m->partial_flag_per_result = rq_arena_calloc(&a, count + 1, sizeof(protobuf_c_boolean));
        for (size_t i = 0; i < count; i++)
            m->partial_flag_per_result[i] = results[i].is_partial;
        rq_slice theirs = packed(&a, &m->base);
        m->n_cells_per_result = m->n_partial_flag_per_result = 0;
        rq_slice quick;
        assert_int_equal(rq__pack_scan(m, results, (uint32_t)count, &a, &quick), RQ_OK);
        if (!rq_slice_eq(quick, theirs)) fail_msg("seed %" PRIu64 " differs", seed);
        rq_arena_clear(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_messages_are_decoded_alike),
        cmocka_unit_test(damaged_messages_are_decoded_alike_or_left),
        cmocka_unit_test(an_empty_row_is_left_to_protobuf_c),
        cmocka_unit_test(other_requests_are_left_to_protobuf_c),
        cmocka_unit_test(short_answers_match_protobuf_c),
        cmocka_unit_test(answers_of_multi_match_protobuf_c),
        cmocka_unit_test(answers_of_scans_match_protobuf_c),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
