/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the master's and the region server's administrative services that no client library
 * sends: numbers outside of their enumeration, lists with one element many times, very long
 * paths. */
#include "service_world.h"

#include "base/clock.h"
#include "base/meter.h"

#include "proto/admin.pb-c.h"
#include "proto/client.pb-c.h"
#include "proto/cluster_status.pb-c.h"
#include "proto/master.pb-c.h"
#include "proto/quota.pb-c.h"
#include "proto/replication.pb-c.h"
#include "proto/rsgroup.pb-c.h"
#include "proto/wal.pb-c.h"

#include "rpc/rpc_priv.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct fixture {
    service_world *world;
    service_client client;
    rq_arena arena;
    const char *text; /* text of the last exception */
} fixture;

static int begin(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->world = service_world_new();
    rq_arena_init(&f->arena);
    *state = f;
    return 0;
}

static int end(void **state)
{
    fixture *f = *state;
    service_world_free(f->world);
    rq_arena_clear(&f->arena);
    free(f);
    return 0;
}

/* The exception in the response, or "none"; the response is in f->client.message until the next
 * call. */
static const char *send_with(fixture *f, service_kind kind, const char *method,
                             const ProtobufCMessage *m, rq_slice cells)
{
    uint8_t *p = rq_arena_alloc(&f->arena, protobuf_c_message_get_packed_size(m) + 1);
    assert_non_null(p);
    size_t len = protobuf_c_message_pack(m, p);
    service_client_open(&f->client, f->world, kind, 0);
    assert_true(service_client_call(&f->client, method, rq_slice_of(p, len), cells));
    const char *exception = service_client_exception(&f->client);
    if (exception != NULL)
        f->text = rq_arena_cstr(&f->arena, rq_slice_cstr(f->client.header->exception->stack_trace));
    return exception == NULL ? "none" : rq_arena_cstr(&f->arena, rq_slice_cstr(exception));
}

static void hang_up(fixture *f)
{
    service_client_close(&f->client);
}

/* Like send_with, but frees the response. */
static const char *send(fixture *f, service_kind kind, const char *method,
                        const ProtobufCMessage *m)
{
    const char *exception = send_with(f, kind, method, m, (rq_slice){0});
    hang_up(f);
    return exception;
}

static ProtobufCBinaryData bytes(const char *text)
{
    return (ProtobufCBinaryData){strlen(text), (uint8_t *)(uintptr_t)text};
}

static Pb__TableName table_name(const char *qualifier)
{
    Pb__TableName t = PB__TABLE_NAME__INIT;
    t.namespace_ = bytes("default");
    t.qualifier = bytes(qualifier);
    return t;
}

#define DO_NOT_RETRY "org.apache.hadoop.hbase.DoNotRetryIOException"

/* ---- numbers outside of their enumeration */

static int state_of_table(fixture *f, Pb__TableName *name)
{
    Pb__GetTableStateRequest get = PB__GET_TABLE_STATE_REQUEST__INIT;
    get.table_name = name;
    assert_string_equal(send_with(f, SERVICE_MASTER, "GetTableState", &get.base, (rq_slice){0}),
                        "none");
    Pb__GetTableStateResponse *r =
        pb__get_table_state_response__unpack(NULL, f->client.message.len, f->client.message.ptr);
    assert_non_null(r);
    int is = (int)r->table_state->state;
    pb__get_table_state_response__free_unpacked(r, NULL);
    hang_up(f);
    return is;
}

static void a_table_state_without_a_name_is_refused(void **state)
{
    fixture *f = *state;
    static const int numbers[] = {4, 77, 1 << 30, -1};
    Pb__TableName name = table_name("t");
    Pb__TableState to = PB__TABLE_STATE__INIT;
    Pb__SetTableStateInMetaRequest set = PB__SET_TABLE_STATE_IN_META_REQUEST__INIT;
    set.table_name = &name;
    set.table_state = &to;
    for (size_t i = 0; i < RQ_ARRAY_LEN(numbers); i++) {
        to.state = (Pb__TableState__State)numbers[i];
        assert_string_equal(send(f, SERVICE_HBCK, "SetTableStateInMeta", &set.base), DO_NOT_RETRY);
        assert_int_equal(state_of_table(f, &name), PB__TABLE_STATE__STATE__ENABLED);
    }
}

/* HBASE: TableStateManager.getTableState */
static void an_unknown_table_has_no_state(void **state)
{
    fixture *f = *state;
    Pb__TableName none = table_name("none");
    Pb__GetTableStateRequest get = PB__GET_TABLE_STATE_REQUEST__INIT;
    get.table_name = &none;
    assert_string_equal(send(f, SERVICE_MASTER, "GetTableState", &get.base),
                        "org.apache.hadoop.hbase.TableNotFoundException");
    assert_non_null(strstr(f->text, "No state found for none"));
}

static void a_quota_with_a_policy_without_a_name_is_refused(void **state)
{
    fixture *f = *state;
    static const int numbers[] = {0, 5, 1000, -1};
    Pb__TableName name = table_name("t");
    Pb__SpaceQuota quota = PB__SPACE_QUOTA__INIT;
    Pb__SpaceLimitRequest space = PB__SPACE_LIMIT_REQUEST__INIT;
    Pb__SetQuotaRequest set = PB__SET_QUOTA_REQUEST__INIT;
    quota.has_soft_limit = quota.has_violation_policy = 1;
    quota.soft_limit = 1;
    space.quota = &quota;
    set.table_name = &name;
    set.space_limit = &space;
    for (size_t i = 0; i < RQ_ARRAY_LEN(numbers); i++) {
        quota.violation_policy = (Pb__SpaceViolationPolicy)numbers[i];
        assert_string_equal(send(f, SERVICE_MASTER, "SetQuota", &set.base), DO_NOT_RETRY);
    }
}

/* ---- one element many times */

static void create_table(fixture *f, const char *qualifier, size_t attribute_len)
{
    Pb__TableName name = table_name(qualifier);
    Pb__ColumnFamilySchema family = PB__COLUMN_FAMILY_SCHEMA__INIT, *families[] = {&family};
    Pb__BytesBytesPair pair = PB__BYTES_BYTES_PAIR__INIT, *pairs[] = {&pair};
    Pb__TableSchema schema = PB__TABLE_SCHEMA__INIT;
    Pb__CreateTableRequest create = PB__CREATE_TABLE_REQUEST__INIT;
    family.name = bytes("f");
    pair.first = bytes("LONG");
    pair.second.len = attribute_len;
    pair.second.data = rq_arena_calloc(&f->arena, attribute_len, 1);
    assert_non_null(pair.second.data);
    memset(pair.second.data, 'x', attribute_len);
    schema.table_name = &name;
    schema.column_families = families;
    schema.n_column_families = 1;
    schema.attributes = pairs;
    schema.n_attributes = 1;
    create.table_schema = &schema;
    assert_string_equal(send(f, SERVICE_MASTER, "CreateTable", &create.base), "none");
    rq_sim_run(f->world->w.sim);
}

/* A request of a few kB asks for the same long descriptor many times. */
static void descriptors_of_a_table_that_is_named_often_have_a_limit(void **state)
{
    fixture *f = *state;
    enum { ATTRIBUTE = 100 << 10, FEW = 100, MANY = 2000 };
    static Pb__TableName *names[MANY];
    Pb__TableName name = table_name("long");
    Pb__GetTableDescriptorsRequest get = PB__GET_TABLE_DESCRIPTORS_REQUEST__INIT;
    create_table(f, "long", ATTRIBUTE);
    for (size_t i = 0; i < MANY; i++)
        names[i] = &name;
    get.table_names = names;
    get.n_table_names = FEW;
    assert_string_equal(
        send_with(f, SERVICE_MASTER, "GetTableDescriptors", &get.base, (rq_slice){0}), "none");
    assert_true(f->client.message.len > (size_t)FEW * ATTRIBUTE);
    hang_up(f);
    get.n_table_names = MANY;
    assert_string_equal(send(f, SERVICE_MASTER, "GetTableDescriptors", &get.base), DO_NOT_RETRY);
}

/* Lists of names are processed in one step, so long lists are processed on a pool. */
static void long_lists_of_tables_are_walked_elsewhere(void **state)
{
    fixture *f = *state;
    enum { MANY = 5000 };
    static Pb__TableName *names[MANY];
    Pb__TableName name = table_name("t");
    Pb__GetTableDescriptorsRequest get = PB__GET_TABLE_DESCRIPTORS_REQUEST__INIT;
    for (size_t i = 0; i < MANY; i++)
        names[i] = &name;
    get.table_names = names;
    unsigned tasks[2];
    for (int i = 0; i < 2; i++) {
        get.n_table_names = i == 0 ? 1 : MANY;
        unsigned before = f->world->posted;
        assert_string_equal(
            send_with(f, SERVICE_MASTER, "GetTableDescriptors", &get.base, (rq_slice){0}), "none");
        tasks[i] = f->world->posted - before;
        assert_true(f->client.message.len > get.n_table_names * 10);
        hang_up(f);
    }
    assert_true(tasks[1] > tasks[0]);
}

/* HBASE: HMaster.getTableDescriptors: a pattern applies to named tables, too. */
static void a_pattern_selects_among_named_tables(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *regex;
        bool is_found;
    } cases[] = {{"t", true}, {"default:t", true}, {"u.*", false}, {"", false}};
    Pb__TableName name = table_name("t");
    Pb__TableName *names[] = {&name};
    Pb__GetTableDescriptorsRequest get = PB__GET_TABLE_DESCRIPTORS_REQUEST__INIT;
    get.table_names = names;
    get.n_table_names = 1;
    for (size_t i = 0; i < RQ_ARRAY_LEN(cases); i++) {
        get.regex = (char *)(uintptr_t)cases[i].regex;
        assert_string_equal(
            send_with(f, SERVICE_MASTER, "GetTableDescriptors", &get.base, (rq_slice){0}), "none");
        assert_int_equal(f->client.message.len > 0, cases[i].is_found);
        hang_up(f);
    }
    get.regex = (char *)(uintptr_t) "(";
    assert_string_not_equal(send(f, SERVICE_MASTER, "GetTableDescriptors", &get.base), "none");
}

/* ---- the sink of replication */

static void add_event(rq_cellblock *cells, const char *qualifier, rq_slice value)
{
    rq_cell c = {.row = (const uint8_t *)"r",
                 .row_len = 1,
                 .family = (const uint8_t *)"METAFAMILY",
                 .family_len = 10,
                 .qualifier = (const uint8_t *)qualifier,
                 .qualifier_len = (uint32_t)strlen(qualifier),
                 .timestamp = 1,
                 .type = RQ_TYPE_PUT,
                 .value = value.ptr,
                 .value_len = (uint32_t)value.len};
    assert_int_equal(rq_cellblock_append(cells, &c), RQ_OK);
}

/* Sends one entry with these cells, whose files are below that folder. */
static const char *replicate(fixture *f, const char *folder, const rq_cellblock *cells)
{
    Pb__WALKey key = PB__WALKEY__INIT;
    Pb__WALEntry entry = PB__WALENTRY__INIT, *entries[] = {&entry};
    Pb__ReplicateWALEntryRequest r = PB__REPLICATE_WALENTRY_REQUEST__INIT;
    key.table_name = bytes("t");
    key.encoded_region_name = bytes("0123456789abcdef0123456789abcdef");
    entry.key = &key;
    entry.has_associated_cell_count = 1;
    entry.associated_cell_count = (int32_t)cells->count;
    r.entry = entries;
    r.n_entry = 1;
    r.sourcebasenamespacedirpath = r.sourcehfilearchivedirpath = (char *)(uintptr_t)folder;
    const char *exception =
        send_with(f, SERVICE_ADMIN, "ReplicateWALEntry", &r.base, rq_buf_slice(&cells->bytes));
    hang_up(f);
    return exception;
}

static unsigned tasks_of_events(fixture *f, unsigned count)
{
    rq_cellblock cells = {0};
    for (unsigned i = 0; i < count; i++)
        add_event(&cells, "HBASE::REPLICATION_MARKER", (rq_slice){0});
    unsigned before = f->world->posted;
    assert_string_equal(replicate(f, NULL, &cells), "none");
    rq_cellblock_clear(&cells);
    return f->world->posted - before;
}

/* Events in the source's log that are not mutations. */
static void many_events_are_taken_in_slices(void **state)
{
    fixture *f = *state;
    enum { COUNT = 20000, LEAST = 2 * COUNT / RQ_METER_STRETCH_STEPS };
    unsigned few = tasks_of_events(f, 10);
    assert_true(tasks_of_events(f, COUNT) >= few + LEAST);
}

/* The folder's name is prepended to the name of each file of a bulk load. */
static void the_folder_of_a_bulk_load_has_a_longest_name(void **state)
{
    fixture *f = *state;
    enum { FILES = 4000 };
    static const size_t lengths[] = {100, 4000, 1 << 20};
    static char *files[FILES];
    Pb__StoreDescriptor store = PB__STORE_DESCRIPTOR__INIT, *stores[] = {&store};
    Pb__BulkLoadDescriptor event = PB__BULK_LOAD_DESCRIPTOR__INIT;
    Pb__TableName name = table_name("t");
    rq_cellblock cells = {0};
    for (size_t i = 0; i < FILES; i++)
        files[i] = (char *)(uintptr_t) "0123456789abcdef0123456789abcdef_SeqId_4_";
    store.family_name = bytes("f");
    store.store_home_dir = (char *)(uintptr_t) "f";
    store.store_file = files;
    store.n_store_file = FILES;
    event.table_name = &name;
    event.encoded_region_name = bytes("0123456789abcdef0123456789abcdef");
    event.stores = stores;
    event.n_stores = 1;
    size_t len = pb__bulk_load_descriptor__get_packed_size(&event);
    uint8_t *value = rq_arena_alloc(&f->arena, len);
    assert_non_null(value);
    (void)pb__bulk_load_descriptor__pack(&event, value);
    add_event(&cells, "HBASE::BULK_LOAD", rq_slice_of(value, len));
    for (size_t i = 0; i < RQ_ARRAY_LEN(lengths); i++) {
        char *folder = rq_arena_alloc(&f->arena, lengths[i] + 1);
        assert_non_null(folder);
        memset(folder, '/', lengths[i]);
        folder[lengths[i]] = '\0';
        /* the folder is not listed */
        assert_string_equal(replicate(f, folder, &cells), DO_NOT_RETRY);
        bool too_long = strstr(f->text, "a path of more than 4096 bytes") != NULL;
        assert_true(too_long == (lengths[i] > 4000));
    }
    rq_cellblock_clear(&cells);
}

/* ---- groups of servers */

/* Moves `count` tables to the group that has all tables; returns CPU seconds. */
static double cost_of_tables(fixture *f, size_t count)
{
    Pb__MoveTablesRequest move = PB__MOVE_TABLES_REQUEST__INIT;
    Pb__CoprocessorServiceCall call = PB__COPROCESSOR_SERVICE_CALL__INIT;
    Pb__CoprocessorServiceRequest r = PB__COPROCESSOR_SERVICE_REQUEST__INIT;
    Pb__RegionSpecifier region = PB__REGION_SPECIFIER__INIT;
    Pb__TableName *names = rq_arena_calloc(&f->arena, count, sizeof *names);
    move.target_group = (char *)(uintptr_t) "default";
    move.table_name = rq_arena_calloc(&f->arena, count, sizeof(Pb__TableName *));
    assert_true(names != NULL && move.table_name != NULL);
    for (; move.n_table_name < count; move.n_table_name++) {
        names[move.n_table_name] =
            table_name(rq_arena_printf(&f->arena, "none%zu", move.n_table_name));
        move.table_name[move.n_table_name] = &names[move.n_table_name];
    }
    call.row = bytes("");
    call.service_name = (char *)(uintptr_t) "RSGroupAdminService";
    call.method_name = (char *)(uintptr_t) "MoveTables";
    call.request.len = pb__move_tables_request__get_packed_size(&move);
    call.request.data = rq_arena_alloc(&f->arena, call.request.len);
    assert_non_null(call.request.data);
    (void)pb__move_tables_request__pack(&move, call.request.data);
    region.value = bytes("");
    r.region = &region;
    r.call = &call;
    uint64_t before = rq_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    assert_string_equal(send(f, SERVICE_MASTER, "ExecMasterService", &r.base), "none");
    return (double)(rq_clock_ns(CLOCK_THREAD_CPUTIME_ID) - before) / 1e9;
}

/* Moves of tables between groups occupy the threads of all admin calls and hold the groups' lock,
 * so their time must not grow faster than the number of tables. */
static void many_tables_of_a_move_cost_no_more(void **state)
{
    fixture *f = *state;
    enum { FEW = 1000, MANY = 32 * FEW };
    assert_int_equal(rq_config_set(f->world->w.config, "hbase.coprocessor.master.classes",
                                   "org.apache.hadoop.hbase.rsgroup.RSGroupAdminEndpoint", NULL),
                     RQ_OK);
    (void)cost_of_tables(f, 1); /* creates the table of groups */
    double few = cost_of_tables(f, FEW), many = cost_of_tables(f, MANY);
    assert_true(many < 200 * few + 0.05);
}

/* Methods with legitimately longer parameters, which are processed in slices or on a pool. */
static bool takes_long_requests(const char *method)
{
    static const char *const names[] = {"CreateTable", "Assigns", "Unassigns",
                                        "SetRegionStateInMeta", "ReplicateWALEntry"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(names); i++)
        if (strcmp(method, names[i]) == 0) return true;
    return false;
}

static void expect_refusal(fixture *f, service_kind kind, const char *method, size_t len)
{
    void *zeros = calloc(1, len);
    assert_non_null(zeros);
    service_client_open(&f->client, f->world, kind, 0);
    assert_true(service_client_call(&f->client, method, rq_slice_of(zeros, len), (rq_slice){0}));
    assert_string_equal(service_client_exception(&f->client),
                        "org.apache.hadoop.hbase.DoNotRetryIOException");
    assert_non_null(
        strstr(f->client.header->exception->stack_trace, "the limit of this method is"));
    service_client_close(&f->client);
    free(zeros);
}

/* Handlers walk the lists of their requests on the loop, so a request has a longest parameter: a
 * million empty elements would block the loop. The bytes sent here are not a valid message, because
 * they must not be decoded. */
static void parameters_of_administrative_methods_have_a_longest(void **state)
{
    fixture *f = *state;
    for (service_kind kind = SERVICE_ADMIN; kind < SERVICE_KINDS; kind++) {
        const rq_rpc_service *s = &f->world->services[kind];
        if (kind == SERVICE_META || kind == SERVICE_BOOTSTRAP)
            continue; /* requests without lists have no limit */
        for (size_t i = 0; i < s->method_count; i++) {
            const rq_rpc_method *m = &s->methods[i];
            if (m->handle == NULL || takes_long_requests(m->name)) continue;
            size_t limit = rq__rpc_param_max(s, m->name);
            assert_in_range(limit, RQ_RPC_PARAM_SHORT, 1 << 20);
            expect_refusal(f, kind, m->name, limit + 1);
        }
    }
    const rq_rpc_service *s = f->world->services;
    assert_int_equal(rq__rpc_param_max(&s[SERVICE_MASTER], "CreateTable"), 16 << 20);
    assert_int_equal(rq__rpc_param_max(&s[SERVICE_CLIENT], "BulkLoadHFile"), 4 << 20);
}

/* ---- a large catalog */

static void add_table_of_many_regions(fixture *f)
{
    enum { KEYS = 600, KEY = 600 };
    rq_slice *keys = rq_arena_calloc(&f->arena, KEYS, sizeof *keys);
    for (size_t i = 0; i < KEYS; i++)
        keys[i] = rq_slice_cstr(rq_arena_printf(&f->arena, "%04zu%0*d", i, KEY, 0));
    assert_int_equal(world_create_at(&f->world->w, "many", "f", keys, KEYS), RQ_OK);
}

/* The catalog is listed on the loop while it is small, and on a pool when it is large. A long answer is taken from there
 * to the pool once more, instead of being copied by the loop. */
static void a_large_catalog_is_listed_elsewhere(void **state)
{
    fixture *f = *state;
    Pb__GetTableNamesRequest names = PB__GET_TABLE_NAMES_REQUEST__INIT;
    Pb__GetTableDescriptorsRequest schemas = PB__GET_TABLE_DESCRIPTORS_REQUEST__INIT;
    Pb__ListTableNamesByStateRequest by_state = PB__LIST_TABLE_NAMES_BY_STATE_REQUEST__INIT;
    Pb__ListNamespacesRequest namespaces = PB__LIST_NAMESPACES_REQUEST__INIT;
    Pb__ListNamespaceDescriptorsRequest described = PB__LIST_NAMESPACE_DESCRIPTORS_REQUEST__INIT;
    Pb__GetSpaceQuotaRegionSizesRequest sizes = PB__GET_SPACE_QUOTA_REGION_SIZES_REQUEST__INIT;
    Pb__TableName many = table_name("many");
    Pb__GetSchemaAlterStatusRequest altered = PB__GET_SCHEMA_ALTER_STATUS_REQUEST__INIT;
    Pb__MajorCompactionTimestampRequest compacted = PB__MAJOR_COMPACTION_TIMESTAMP_REQUEST__INIT;
    Pb__GetOnlineRegionRequest online = PB__GET_ONLINE_REGION_REQUEST__INIT;
    Pb__GetRegionLoadRequest loads = PB__GET_REGION_LOAD_REQUEST__INIT;
    const struct {
        service_kind kind;
        const char *method;
        const ProtobufCMessage *request;
    } all[] = {
        {SERVICE_MASTER, "GetTableNames", &names.base},
        {SERVICE_MASTER, "GetTableDescriptors", &schemas.base},
        {SERVICE_MASTER, "ListTableNamesByState", &by_state.base},
        {SERVICE_MASTER, "ListNamespaces", &namespaces.base},
        {SERVICE_MASTER, "ListNamespaceDescriptors", &described.base},
        {SERVICE_MASTER, "GetSpaceQuotaRegionSizes", &sizes.base},
        {SERVICE_MASTER, "GetSchemaAlterStatus", &altered.base},
        {SERVICE_MASTER, "getLastMajorCompactionTimestamp", &compacted.base},
        {SERVICE_ADMIN, "GetOnlineRegion", &online.base},
        {SERVICE_ADMIN, "GetRegionLoad", &loads.base},
    };
    unsigned tasks[RQ_ARRAY_LEN(all)];
    by_state.is_enabled = 1;
    altered.table_name = compacted.table_name = &many;
    for (int large = 0; large < 2; large++) {
        if (large) add_table_of_many_regions(f);
        for (size_t i = 0; i < RQ_ARRAY_LEN(all); i++) {
            unsigned before = f->world->posted;
            assert_string_equal(
                send_with(f, all[i].kind, all[i].method, all[i].request, (rq_slice){0}), "none");
            unsigned took = f->world->posted - before;
            bool is_long = f->client.message.len > 256 * 1024;
            hang_up(f);
            if (large) assert_int_equal(took, tasks[i] + 1 + is_long);
            assert_int_equal(is_long, large && all[i].kind == SERVICE_ADMIN);
            tasks[i] = took;
        }
    }
    assert_string_equal(send_with(f, SERVICE_ADMIN, "GetOnlineRegion", &online.base, (rq_slice){0}),
                        "none");
    Pb__GetOnlineRegionResponse *r =
        pb__get_online_region_response__unpack(NULL, f->client.message.len, f->client.message.ptr);
    assert_non_null(r);
    assert_true(r->n_region_info > 600);
    pb__get_online_region_response__free_unpacked(r, NULL);
    hang_up(f);
}

/* ---- threads of calls that take long */

enum { CALLS_SENT = 20 };

/* Collects the tasks of a pool instead of running them on threads. */
static struct {
    rq_pool pool;
    void (*submit)(rq_executor *ex, rq_pool pool, rq_task *task); /* the executor's own function */
    rq_task *held[2 * CALLS_SENT];
    size_t count;
} waiting;

static void hold_calls(rq_executor *ex, rq_pool pool, rq_task *task)
{
    if (pool != waiting.pool)
        waiting.submit(ex, pool, task);
    else
        waiting.held[waiting.count++] = task;
}

/* One connection sends many calls of one method. Every call is answered, but the calls use at most
 * `most` threads. */
static void check_threads(fixture *f, service_kind kind, const char *method,
                          const ProtobufCMessage *m, rq_pool pool, size_t most)
{
    rq_executor *ex = f->world->w.env->executor;
    uint8_t *p = rq_arena_alloc(&f->arena, protobuf_c_message_get_packed_size(m) + 1);
    assert_non_null(p);
    rq_slice message = rq_slice_of(p, protobuf_c_message_pack(m, p));
    service_client_open(&f->client, f->world, kind, 0);
    waiting.submit = ex->submit;
    waiting.pool = pool;
    waiting.count = 0;
    ex->submit = hold_calls;
    for (int i = 0; i < CALLS_SENT; i++)
        service_client_send(&f->client, method, message, (rq_slice){0});
    size_t took = waiting.count;
    ex->submit = waiting.submit;
    for (size_t i = 0; i < took; i++)
        ex->submit(ex, pool, waiting.held[i]);
    for (int i = 0; i < 200 && f->client.answers < CALLS_SENT; i++) {
        rq_sim_advance(f->world->w.sim, 50000000);
        service_client_take(&f->client);
    }
    assert_int_equal(f->client.answers, CALLS_SENT);
    hang_up(f);
    assert_in_range(took, 1, most);
}

static void flushes_leave_threads_to_others(void **state)
{
    fixture *f = *state;
    Pb__RegionSpecifier region = PB__REGION_SPECIFIER__INIT;
    Pb__FlushRegionRequest m = PB__FLUSH_REGION_REQUEST__INIT;
    region.type = PB__REGION_SPECIFIER__REGION_SPECIFIER_TYPE__ENCODED_REGION_NAME;
    region.value = bytes(f->world->regions[0]);
    m.region = &region;
    check_threads(f, SERVICE_ADMIN, "FlushRegion", &m.base, RQ_POOL_CALL, 5);
}

static void bulk_loads_leave_threads_to_others(void **state)
{
    fixture *f = *state;
    Pb__RegionSpecifier region = PB__REGION_SPECIFIER__INIT;
    Pb__TableName name = table_name("t");
    Pb__PrepareBulkLoadRequest m = PB__PREPARE_BULK_LOAD_REQUEST__INIT;
    region.type = PB__REGION_SPECIFIER__REGION_SPECIFIER_TYPE__ENCODED_REGION_NAME;
    region.value = bytes(f->world->regions[0]);
    m.table_name = &name;
    m.region = &region;
    check_threads(f, SERVICE_CLIENT, "PrepareBulkLoad", &m.base, RQ_POOL_CALL, 8);
}

/* The codecs' pool has one thread, which translates one request of each connection at a time. */
static void long_requests_of_a_connection_take_turns(void **state)
{
    enum { QUALIFIERS = 5000 };
    fixture *f = *state;
    Pb__RegionSpecifier region = PB__REGION_SPECIFIER__INIT;
    Pb__Column column = PB__COLUMN__INIT;
    Pb__Column *columns[] = {&column};
    Pb__Get get = PB__GET__INIT;
    Pb__GetRequest m = PB__GET_REQUEST__INIT;
    region.type = PB__REGION_SPECIFIER__REGION_SPECIFIER_TYPE__ENCODED_REGION_NAME;
    region.value = bytes(f->world->regions[0]);
    column.family = bytes("f");
    column.n_qualifier = QUALIFIERS;
    column.qualifier = rq_arena_calloc(&f->arena, QUALIFIERS, sizeof *column.qualifier);
    for (size_t i = 0; i < QUALIFIERS; i++)
        column.qualifier[i] = bytes(rq_arena_printf(&f->arena, "q%zu", i));
    get.row = bytes("a2");
    get.column = columns;
    get.n_column = 1;
    m.region = &region;
    m.get = &get;
    check_threads(f, SERVICE_CLIENT, "Get", &m.base, RQ_POOL_CODEC, 1);
}

/* There may be ten thousand of them, whatever the catalog's size is. */
static void procedures_locks_and_peers_are_listed_elsewhere(void **state)
{
    fixture *f = *state;
    Pb__GetClusterStatusRequest status =
        PB__GET_CLUSTER_STATUS_REQUEST__INIT; /* with the master's tasks */
    Pb__ListReplicationPeersRequest peers = PB__LIST_REPLICATION_PEERS_REQUEST__INIT;
    Pb__GetProceduresRequest procedures = PB__GET_PROCEDURES_REQUEST__INIT;
    Pb__GetLocksRequest locks = PB__GET_LOCKS_REQUEST__INIT;
    check_threads(f, SERVICE_MASTER, "GetProcedures", &procedures.base, RQ_POOL_CODEC, 1);
    check_threads(f, SERVICE_MASTER, "GetLocks", &locks.base, RQ_POOL_CODEC, 1);
    check_threads(f, SERVICE_MASTER, "GetReplicationPeerModificationProcedures", &procedures.base,
                  RQ_POOL_CODEC, 1);
    check_threads(f, SERVICE_MASTER, "GetClusterStatus", &status.base, RQ_POOL_CODEC, 1);
    check_threads(f, SERVICE_MASTER, "ListReplicationPeers", &peers.base, RQ_POOL_CODEC, 1);
}

/* ---- the audit log */

/* Sends `count` calls that are refused at once, from this host. */
static void send_refused(fixture *f, const char *host, unsigned count)
{
    service_client_open(&f->client, f->world, SERVICE_ADMIN, 0);
    rq_rpc_conn *conn = rq_stream_user(&f->client.stream);
    snprintf(conn->host, sizeof conn->host, "%s", host);
    for (unsigned i = 0; i < count; i++)
        assert_true(service_client_call(&f->client, "OpenRegion", (rq_slice){0}, (rq_slice){0}));
    hang_up(f);
}

typedef struct audit_lines {
    unsigned lines, suppressed;
} audit_lines;

/* The lines about a host in the log's file. */
static audit_lines lines_about(FILE *file, const char *host)
{
    audit_lines ret = {0};
    char line[RQ_LOG_LINE_MAX + 1];
    rewind(file);
    while (fgets(line, sizeof line, file) != NULL) {
        const char *suppressed = strstr(line, " suppressed=");
        if (strstr(line, "audit: OpenRegion ") == NULL || strstr(line, host) == NULL) continue;
        ret.lines++;
        if (suppressed != NULL)
            ret.suppressed += (unsigned)atoi(suppressed + strlen(" suppressed="));
    }
    return ret;
}

/* Time is simulated, and does not advance while calls are answered at once. */
static void audit_lines_about_a_host_have_a_limit(void **state)
{
    enum { RATE = 7, CALLS = 50 };
    fixture *f = *state;
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_true(dup2(fileno(file), f->world->log_fd) >= 0);
    assert_int_equal(rq_config_set(f->world->w.config, "rorqual.log.audit.rate", "7", NULL), RQ_OK);
    send_refused(f, "192.0.2.1", CALLS);
    audit_lines got = lines_about(file, "address=192.0.2.1:");
    assert_int_equal(got.lines, RATE);
    send_refused(f, "192.0.2.99", 1); /* another host's calls are not hidden */
    assert_int_equal(lines_about(file, "address=192.0.2.99:").lines, 1);
    rq_sim_advance(f->world->w.sim, 1000000001);
    send_refused(f, "192.0.2.1", 1);
    got = lines_about(file, "address=192.0.2.1:");
    assert_int_equal(got.lines, RATE + 1);
    assert_int_equal(got.suppressed, CALLS - RATE);
    send_refused(f, "2001:db8::1", CALLS);
    send_refused(f, "2001:db8::2", CALLS); /* the same network */
    assert_int_equal(lines_about(file, "address=[2001:db8::").lines, RATE);
    assert_int_equal(rq_config_set(f->world->w.config, "rorqual.log.audit.rate", "0", NULL), RQ_OK);
    send_refused(f, "192.0.2.1", CALLS);
    assert_int_equal(lines_about(file, "address=192.0.2.1:").lines, RATE + 1 + CALLS);
    fclose(file);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_table_state_without_a_name_is_refused),
        TEST(an_unknown_table_has_no_state),
        TEST(a_quota_with_a_policy_without_a_name_is_refused),
        TEST(descriptors_of_a_table_that_is_named_often_have_a_limit),
        TEST(long_lists_of_tables_are_walked_elsewhere),
        TEST(a_pattern_selects_among_named_tables),
        TEST(many_events_are_taken_in_slices),
        TEST(the_folder_of_a_bulk_load_has_a_longest_name),
        TEST(many_tables_of_a_move_cost_no_more),
        TEST(parameters_of_administrative_methods_have_a_longest),
        TEST(a_large_catalog_is_listed_elsewhere),
        TEST(flushes_leave_threads_to_others),
        TEST(bulk_loads_leave_threads_to_others),
        TEST(long_requests_of_a_connection_take_turns),
        TEST(procedures_locks_and_peers_are_listed_elsewhere),
        TEST(audit_lines_about_a_host_have_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
