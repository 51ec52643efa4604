/* SPDX-License-Identifier: Apache-2.0 */
/* The prefetch for requests that arrived together is a hint: with any bytes in them it has no
 * effect on results. */
#include "service_world.h"

#include "base/random.h"
#include "proto/client.pb-c.h"

#include "../../seeds.h"

#include <stdio.h>
#include <string.h>

#define MESSAGES 16
#define MESSAGE_MAX 256

typedef struct message {
    uint8_t bytes[MESSAGE_MAX];
    size_t len;
} message;

static ProtobufCBinaryData binary(const char *text)
{
    return (ProtobufCBinaryData){strlen(text), (uint8_t *)(uintptr_t)text};
}

/* Makes a get or a put of a row that may exist or not, in one of the regions or in none. */
static void make(const service_world *w, rq_random *random, message *ret)
{
    static const char *const rows[] = {"", "a", "m", "row-3", "zzz"};
    uint64_t which = rq_random_below(random, SERVICE_REGIONS + 1);
    Pb__RegionSpecifier region = PB__REGION_SPECIFIER__INIT;
    region.type = rq_random_below(random, 4) == 0
                      ? PB__REGION_SPECIFIER__REGION_SPECIFIER_TYPE__REGION_NAME
                      : PB__REGION_SPECIFIER__REGION_SPECIFIER_TYPE__ENCODED_REGION_NAME;
    region.value = binary(which == SERVICE_REGIONS ? "none" : w->regions[which]);
    const char *row = rows[rq_random_below(random, RQ_ARRAY_LEN(rows))];
    Pb__Get get = PB__GET__INIT;
    Pb__GetRequest read = PB__GET_REQUEST__INIT;
    Pb__MutationProto put = PB__MUTATION_PROTO__INIT;
    Pb__MutateRequest write = PB__MUTATE_REQUEST__INIT;
    get.row = put.row = binary(row);
    put.has_row = put.has_mutate_type = 1;
    put.mutate_type = PB__MUTATION_PROTO__MUTATION_TYPE__PUT;
    read.region = write.region = &region;
    read.get = &get;
    write.mutation = &put;
    const ProtobufCMessage *m = rq_random_below(random, 2) == 0 ? &read.base : &write.base;
    assert_in_range(protobuf_c_message_get_packed_size(m), 1, MESSAGE_MAX);
    ret->len = protobuf_c_message_pack(m, ret->bytes);
}

/* Truncates the message or changes some bytes. */
static void spoil(rq_random *random, message *m)
{
    if (rq_random_below(random, 3) == 0) m->len = rq_random_below(random, m->len + 1);
    for (uint64_t n = rq_random_below(random, 4); n > 0 && m->len > 0; n--)
        m->bytes[rq_random_below(random, m->len)] = (uint8_t)rq_random_next(random);
}

static void random_expectations_do_no_harm(void **state)
{
    (void)state;
    service_world *w = service_world_new();
    const rq_rpc_service *service = &w->services[SERVICE_CLIENT];
    assert_non_null(service->expect);
    seeds_range range = seeds_wanted(3);
    for (uint64_t seed = range.first; seed <= range.last; seed++) {
        printf("seed %llu\n", (unsigned long long)seed);
        rq_random random;
        rq_random_seed(&random, seed);
        for (int turn = 0; turn < 3000; turn++) {
            message messages[MESSAGES];
            rq_slice list[MESSAGES];
            size_t count = rq_random_below(&random, MESSAGES + 1);
            for (size_t i = 0; i < count; i++) {
                make(w, &random, &messages[i]);
                if (turn % 2 == 1) spoil(&random, &messages[i]);
                /* A separate allocation, so that AddressSanitizer detects reads past the end. */
                uint8_t *copy = malloc(messages[i].len + 1);
                assert_non_null(copy);
                memcpy(copy + 1, messages[i].bytes, messages[i].len);
                list[i] = rq_slice_of(copy + 1, messages[i].len);
            }
            service->expect(service->ctx, list, count);
            for (size_t i = 0; i < count; i++)
                free((uint8_t *)(uintptr_t)list[i].ptr - 1);
        }
    }
    assert_true(service_world_is_whole(w));
    service_world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_expectations_do_no_harm)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
