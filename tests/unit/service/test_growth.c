/* SPDX-License-Identifier: Apache-2.0 */
/* The time of a request may grow with its size n as n log n, not faster. Every method of every
 * service gets requests in which each repeated field of its messages, of the filters and of the
 * endpoints' messages appears as often as fits into 1, 10 and 100 kB. The fields come from the
 * descriptors (request_maker.h), so a new one is tested automatically.
 *
 * Time is CPU time of this thread, on which loops and pools of the simulated environment run. From
 * 10 to 100 kB, n log n grows by a factor of 12.5, n squared by 100. A request of 100 kB that takes
 * 50 MB of memory (50,000 empty increments) reaches 50: half of its time is page faults, which the
 * smaller request does not have. A request whose factor exceeds FACTOR in the best of several
 * rounds fails, unless it takes less than a few milliseconds. */
#include "request_maker.h"
#include "service_world.h"

#include "proto/client.pb-c.h"
#include "proto/filter.pb-c.h"
#include "service/endpoint.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define FACTOR 60.0
#define IGNORED_MS (RQ_ASAN ? 40.0 : 12.0)
#define ROUNDS 16 /* on a busy machine several rounds in a row are slow */

typedef struct tester {
    service_world *world;
    service_kind kind;
    unsigned requests, failures;
    bool failed; /* the current path has failed */
    double worst;
    char worst_text[256];
    /* of the current method */
    const char *method;
    request_plan plan;
    char region[RQ_ENCODED_NAME_LEN + 1];
} tester;

static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void refresh(tester *t)
{
    if (service_world_is_whole(t->world)) return;
    service_world_free(t->world);
    t->world = service_world_new();
}

static double cost(tester *t, const char *method, rq_slice message, rq_slice cells)
{
    service_client c;
    refresh(t);
    service_client_open(&c, t->world, t->kind, 0);
    double before = cpu_ms();
    (void)service_client_call(&c, method, message, cells);
    double spent = cpu_ms() - before;
    service_client_close(&c);
    t->requests++;
    return spent;
}

typedef struct request {
    rq_buf message, cells;
} request;

/* Fails if `large` takes longer than its size relative to `small` allows. */
static void compare(tester *t, const char *method, const request *small, const request *large,
                    const char *what)
{
    double factor = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double high = cost(t, method, rq_buf_slice(&large->message), rq_buf_slice(&large->cells));
        if (high < IGNORED_MS) return;
        double low = cost(t, method, rq_buf_slice(&small->message), rq_buf_slice(&small->cells));
        for (int i = 0; i < 2; i++) {
            double again =
                cost(t, method, rq_buf_slice(&small->message), rq_buf_slice(&small->cells));
            if (again < low) low = again;
        }
        double own = high / (low < IGNORED_MS / FACTOR ? IGNORED_MS / FACTOR : low);
        if (round == 0 || own < factor) factor = own;
        if (factor < FACTOR) break;
    }
    if (factor > t->worst) {
        t->worst = factor;
        snprintf(t->worst_text, sizeof t->worst_text, "%s %s", method, what);
    }
    if (factor < FACTOR) return;
    t->failed = true;
    t->failures++;
    fprintf(stderr, "%s %s: %zu bytes cost %.0f times what %zu do\n", method, what,
            large->message.len + large->cells.len, factor, small->message.len + small->cells.len);
}

/* --- messages --------------------------------------------------------------------------------- */

static const size_t sizes[] = {1000, 10000, 100000};

static void clear(request *r)
{
    rq_buf_clear(&r->message);
    rq_buf_clear(&r->cells);
}

/* `inner` is the message with the repeated field; it may be nested in another message. */
static void fill(const tester *t, request_plan inner, size_t bytes, request *ret)
{
    inner.count = request_count_for(inner, bytes);
    if (inner.type == t->plan.type) {
        request_make(&inner, &ret->message);
        return;
    }
    rq_buf message = {0};
    request_make(&inner, &message);
    request_plan outer = t->plan;
    if (outer.filter != NULL) outer.filter_bytes = &message;
    if (outer.service != NULL) outer.call_bytes = &message;
    outer.choice = inner.choice;
    request_make(&outer, &ret->message);
    rq_buf_clear(&message);
}

/* Each element is a region or a store, which is created on disk: 100 kB of such elements take
 * minutes. */
static bool is_work(const request_path *path)
{
    const char *name = path->fields[path->depth - 1]->name;
    return strcmp(name, "split_keys") == 0 || strcmp(name, "column_families") == 0;
}

static void try(tester *t, const request_plan *plan)
{
    request list[RQ_ARRAY_LEN(sizes)] = {0};
    if (t->failed) return;
    char path[160], text[240];
    snprintf(text, sizeof text, "%s%s%s (values %d, enums %u%s)",
             t->plan.filter != NULL ? t->plan.filter : "", t->plan.filter != NULL ? " " : "",
             request_path_text(plan->path, path, sizeof path), (int)plan->values, plan->choice,
             plan->siblings ? ", siblings" : "");
    size_t divisor = is_work(plan->path) && t->kind >= SERVICE_MASTER ? 20 : 1;
    for (size_t i = 0; i < RQ_ARRAY_LEN(sizes); i++)
        fill(t, *plan, sizes[i] / divisor, &list[i]);
    (void)cost(t, t->method, rq_buf_slice(&list[0].message), (rq_slice){0});
    compare(t, t->method, &list[1], &list[2], text);
    for (size_t i = 0; i < RQ_ARRAY_LEN(sizes); i++)
        clear(&list[i]);
}

typedef struct inner {
    tester *tester;
    const ProtobufCMessageDescriptor *type;
} inner;

#define VARIANTS (REQUEST_VALUES * 4 * 2)

/* Whether the plan makes a message that differs from all earlier ones. */
static bool is_new(request_plan plan, rq_buf *made, size_t *count)
{
    rq_buf *own = &made[*count];
    plan.count = 3;
    request_make(&plan, own);
    for (size_t i = 0; i < *count; i++) {
        if (!rq_slice_eq(rq_buf_slice(&made[i]), rq_buf_slice(own))) continue;
        rq_buf_reset(own);
        return false;
    }
    ++*count;
    return true;
}

static void try_path(void *ctx, const request_path *path)
{
    inner *in = ctx;
    request_plan plan = in->tester->plan;
    rq_buf made[VARIANTS] = {0};
    size_t count = 0;
    plan.type = in->type;
    plan.path = path;
    in->tester->failed = false;
    memcpy(in->tester->region, in->tester->world->regions[2], sizeof in->tester->region);
    plan.region = in->tester->plan.region = in->tester->region;
    /* each request changes tables, which takes long */
    bool ddl = in->tester->kind >= SERVICE_MASTER;
    for (unsigned v = 0; v < (ddl ? REQUEST_VALUES : VARIANTS); v++) {
        plan.values = v % REQUEST_VALUES;
        plan.choice = v / REQUEST_VALUES % 4;
        plan.siblings = v / REQUEST_VALUES / 4 != 0;
        if (is_new(plan, made, &count)) try(in->tester, &plan);
    }
    for (size_t i = 0; i < VARIANTS; i++)
        rq_buf_clear(&made[i]);
}

static void try_type(tester *t, const ProtobufCMessageDescriptor *type)
{
    inner in = {t, type};
    request_each_path(type, try_path, &in);
}

static void try_method(tester *t, const rq_rpc_method *m)
{
    t->method = m->name;
    t->plan = (request_plan){.type = m->request};
    try_type(t, m->request);
}

static void try_service(tester *t, service_kind kind)
{
    const rq_rpc_service *s = &t->world->services[kind];
    t->kind = kind;
    for (size_t i = 0; i < s->method_count; i++)
        try_method(t, &s->methods[i]);
}

static void finish(tester *t)
{
    printf("%u requests; the steepest: %s, factor %.1f\n", t->requests, t->worst_text, t->worst);
    service_world_free(t->world);
    assert_int_equal(t->failures, 0);
}

static tester begin(void)
{
    return (tester){.world = service_world_new()};
}

static void client_service(void **state)
{
    (void)state;
    tester t = begin();
    try_service(&t, SERVICE_CLIENT);
    finish(&t);
}

static void admin_service(void **state)
{
    (void)state;
    tester t = begin();
    try_service(&t, SERVICE_ADMIN);
    finish(&t);
}

static void master_service(void **state)
{
    (void)state;
    tester t = begin();
    try_service(&t, SERVICE_MASTER);
    try_service(&t, SERVICE_MASTER_ADMIN);
    try_service(&t, SERVICE_META);
    try_service(&t, SERVICE_STATUS);
    finish(&t);
}

/* --- messages in bytes fields ----------------------------------------------------------------- */

#define FILTER "org.apache.hadoop.hbase.filter."

static void filters(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const ProtobufCMessageDescriptor *type;
    } list[] = {
        {FILTER "FilterList", &pb__filter_list__descriptor},
        {FILTER "FirstKeyValueMatchingQualifiersFilter",
         &pb__first_key_value_matching_qualifiers_filter__descriptor},
        {FILTER "FuzzyRowFilter", &pb__fuzzy_row_filter__descriptor},
        {FILTER "MultiRowRangeFilter", &pb__multi_row_range_filter__descriptor},
        {FILTER "MultipleColumnPrefixFilter", &pb__multiple_column_prefix_filter__descriptor},
        {FILTER "TimestampsFilter", &pb__timestamps_filter__descriptor},
    };
    tester t = begin();
    t.kind = SERVICE_CLIENT;
    for (size_t i = 0; i < RQ_ARRAY_LEN(list); i++) {
        t.method = "Scan";
        t.plan = (request_plan){.type = &pb__scan_request__descriptor, .filter = list[i].name};
        try_type(&t, list[i].type);
        t.method = "Get";
        t.plan.type = &pb__get_request__descriptor;
        try_type(&t, list[i].type);
    }
    finish(&t);
}

static void try_endpoints(tester *t, const char *service, const rq__endpoint_method *methods,
                          size_t count)
{
    t->method = "ExecService";
    for (size_t i = 0; i < count; i++) {
        t->plan = (request_plan){.type = &pb__coprocessor_service_request__descriptor,
                                 .service = service,
                                 .method = methods[i].name};
        try_type(t, methods[i].request);
    }
}

static void endpoints(void **state)
{
    (void)state;
    tester t = begin();
    t.kind = SERVICE_CLIENT;
    try_endpoints(&t, "AggregateService", rq__aggregate_methods, rq__aggregate_method_count);
    try_endpoints(&t, "BulkDeleteService", rq__bulk_delete_methods, rq__bulk_delete_method_count);
    try_endpoints(&t, "MultiRowMutationService", rq__multi_row_methods, rq__multi_row_method_count);
    finish(&t);
}

/* --- cell blocks ------------------------------------------------------------------------------ */

static void add_cells(request *r, size_t count, bool equal, uint8_t type, int64_t timestamp)
{
    rq_cellblock block = {0};
    for (size_t i = 0; i < count; i++) {
        char qualifier[24];
        snprintf(qualifier, sizeof qualifier, "%08zu", equal ? 0 : i);
        rq_cell c = {.row = (const uint8_t *)"a1",
                     .row_len = 2,
                     .family = (const uint8_t *)"f",
                     .family_len = 1,
                     .qualifier = (const uint8_t *)qualifier,
                     .qualifier_len = 8,
                     .timestamp = timestamp,
                     .type = type,
                     .value = (const uint8_t *)"12345678",
                     .value_len = type == RQ_TYPE_PUT ? 8 : 0};
        assert_int_equal(rq_cellblock_append(&block, &c), RQ_OK);
    }
    r->cells = block.bytes;
}

static Pb__RegionSpecifier region_of(const tester *t)
{
    Pb__RegionSpecifier region = PB__REGION_SPECIFIER__INIT;
    region.type = PB__REGION_SPECIFIER__REGION_SPECIFIER_TYPE__ENCODED_REGION_NAME;
    region.value = (ProtobufCBinaryData){strlen(t->world->regions[2]),
                                         (uint8_t *)(uintptr_t)t->world->regions[2]};
    return region;
}

/* A mutation of row a1 with `count` cells in the cell block. */
static Pb__MutationProto mutation_of(Pb__MutationProto__MutationType type, size_t count)
{
    Pb__MutationProto mutation = PB__MUTATION_PROTO__INIT;
    mutation.has_row = mutation.has_mutate_type = mutation.has_associated_cell_count = 1;
    mutation.row = (ProtobufCBinaryData){2, (uint8_t *)(uintptr_t) "a1"};
    mutation.mutate_type = type;
    mutation.associated_cell_count = (int32_t)count;
    return mutation;
}

static void make_mutate(const tester *t, Pb__MutationProto__MutationType type, size_t count,
                        request *ret)
{
    Pb__MutateRequest m = PB__MUTATE_REQUEST__INIT;
    Pb__MutationProto mutation = mutation_of(type, count);
    Pb__RegionSpecifier region = region_of(t);
    m.region = &region;
    m.mutation = &mutation;
    assert_int_equal(rq_buf_reserve(&ret->message, 256), RQ_OK);
    ret->message.len = pb__mutate_request__pack(&m, ret->message.ptr);
}

/* `count` actions, each a mutation with one cell. */
static void make_multi(const tester *t, Pb__MutationProto__MutationType type, size_t count,
                       request *ret)
{
    Pb__MultiRequest m = PB__MULTI_REQUEST__INIT;
    Pb__RegionAction part = PB__REGION_ACTION__INIT;
    Pb__RegionAction *parts = &part;
    Pb__RegionSpecifier region = region_of(t);
    Pb__MutationProto mutation = mutation_of(type, 1);
    Pb__Action action = PB__ACTION__INIT;
    Pb__Action **actions = malloc(count * sizeof *actions);
    assert_non_null(actions);
    action.mutation = &mutation;
    for (size_t i = 0; i < count; i++)
        actions[i] = &action;
    part.region = &region;
    part.action = actions;
    part.n_action = count;
    m.regionaction = &parts;
    m.n_regionaction = 1;
    assert_int_equal(rq_buf_reserve(&ret->message, pb__multi_request__get_packed_size(&m)), RQ_OK);
    ret->message.len = pb__multi_request__pack(&m, ret->message.ptr);
    free(actions);
}

static const struct {
    Pb__MutationProto__MutationType mutation;
    uint8_t cell;
} mutation_kinds[] = {
    {PB__MUTATION_PROTO__MUTATION_TYPE__PUT, RQ_TYPE_PUT},
    {PB__MUTATION_PROTO__MUTATION_TYPE__APPEND, RQ_TYPE_PUT},
    {PB__MUTATION_PROTO__MUTATION_TYPE__INCREMENT, RQ_TYPE_PUT},
    {PB__MUTATION_PROTO__MUTATION_TYPE__DELETE, RQ_TYPE_DELETE},
    {PB__MUTATION_PROTO__MUTATION_TYPE__DELETE, RQ_TYPE_DELETE_COLUMN},
    {PB__MUTATION_PROTO__MUTATION_TYPE__DELETE, RQ_TYPE_DELETE_FAMILY},
};

static void cells_of_a_mutation(void **state)
{
    (void)state;
    tester t = begin();
    t.kind = SERVICE_CLIENT;
    for (size_t i = 0; i < RQ_ARRAY_LEN(mutation_kinds); i++)
        for (int variant = 0; variant < 4; variant++) {
            int64_t timestamp = variant % 2 == 0 ? RQ_TIMESTAMP_LATEST : 5;
            request list[2] = {0};
            char text[64];
            for (size_t k = 0; k < 2; k++) {
                size_t count = sizes[k + 1] / 4;
                make_mutate(&t, mutation_kinds[i].mutation, count, &list[k]);
                add_cells(&list[k], count, variant < 2, mutation_kinds[i].cell, timestamp);
            }
            snprintf(text, sizeof text, "cells of kind %zu, variant %d", i, variant);
            compare(&t, "Mutate", &list[0], &list[1], text);
            clear(&list[0]);
            clear(&list[1]);
        }
    finish(&t);
}

static void try_ops(tester *t, size_t kind, bool equal, int64_t timestamp, size_t count)
{
    request list[2] = {0};
    char text[80];
    for (size_t k = 0; k < 2; k++) {
        size_t n = k == 0 ? count / 10 : count;
        make_multi(t, mutation_kinds[kind].mutation, n, &list[k]);
        add_cells(&list[k], n, equal, mutation_kinds[kind].cell, timestamp);
    }
    snprintf(text, sizeof text, "%zu ops of kind %zu, %s column, %s time", count, kind,
             equal ? "one" : "each its", timestamp == RQ_TIMESTAMP_LATEST ? "no" : "one");
    compare(t, "Multi", &list[0], &list[1], text);
    clear(&list[0]);
    clear(&list[1]);
}

/* Each operation that reads sees the results of the operations before it, and the delete markers of
 * a batch share its timestamp. With the larger number memory does not suffice: each operation is
 * refused separately. Each append to one column makes a value as long as all appends so far, so the
 * sum of the values grows with the square of their number. */
static void ops_of_a_multi(void **state)
{
    (void)state;
    tester t = begin();
    t.kind = SERVICE_CLIENT;
    for (size_t kind = 0; kind < RQ_ARRAY_LEN(mutation_kinds); kind++)
        for (int variant = 0; variant < 4; variant++) {
            bool equal = variant < 2;
            int64_t timestamp = variant % 2 == 0 ? RQ_TIMESTAMP_LATEST : 5;
            if (equal && mutation_kinds[kind].mutation == PB__MUTATION_PROTO__MUTATION_TYPE__APPEND)
                continue;
            try_ops(&t, kind, equal, timestamp, 10000);
            try_ops(&t, kind, equal, timestamp, 30000);
        }
    finish(&t);
}

int main(int argc, char **argv)
{
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(client_service), cmocka_unit_test(filters),
        cmocka_unit_test(endpoints),      cmocka_unit_test(cells_of_a_mutation),
        cmocka_unit_test(ops_of_a_multi), cmocka_unit_test(admin_service),
        cmocka_unit_test(master_service),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
