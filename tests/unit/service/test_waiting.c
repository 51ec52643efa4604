/* SPDX-License-Identifier: Apache-2.0 */
/* Events while a call waits: at the gate, for a block, for the log, for its region's writer, for
 * another call of its scanner, for a thread, for a procedure. Each request is sent many times; the
 * k-th time the server runs k tasks before the event, until the request is answered without the
 * event. So the event meets the request in each of its states:
 *
 *   the connection closes; the table is disabled, and dropped; its region is moved (closed and opened again),
 *   split; the disk is full; the server stops
 *
 * The call must end once and release all that it held: service_world_free checks the memory of
 * requests, AddressSanitizer the rest. The server must continue: another client reads the remaining
 * rows. */
#include "service_world.h"

#include "proto/admin.pb-c.h"
#include "proto/client.pb-c.h"
#include "proto/master.pb-c.h"

#include "hfile/writer.h"
#include "region/region_priv.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static char place[200];

/* --- events ----------------------------------------------------------------------------------- */

typedef enum event {
    NOTHING,
    CLOSED,
    DISABLED,
    DROPPED,
    MOVED,
    SPLIT,
    DISK_FULL,
    STOPPED,
    EVENTS
} event;

static const char *const event_names[] = {"nothing",
                                          "the connection closes",
                                          "the table is disabled",
                                          "the table is dropped",
                                          "the region is moved",
                                          "the region is split",
                                          "the disk is full",
                                          "the server stops"};

/* Delays each op at its first arrival at the gate, until the test resumes it. */
typedef struct gatekeeper {
    rq_gate_policy table;
    bool holds;
    rq_task *held[64];
    rq_lane *lanes[64];
    size_t count;
} gatekeeper;

static rq_err before(void *ctx, rq_op *op, rq_task *task)
{
    gatekeeper *g = ctx;
    if (!g->holds || task == NULL || g->count == RQ_ARRAY_LEN(g->held)) return RQ_OK;
    g->held[g->count] = task;
    g->lanes[g->count++] = op->seat->lane;
    return RQ_E_AGAIN;
}

static void let_go(gatekeeper *g)
{
    g->holds = false;
    for (size_t i = 0; i < g->count; i++)
        rq_lane_post(g->lanes[i], g->held[i]);
    g->count = 0;
}

/* --- requests --------------------------------------------------------------------------------- */

typedef struct change {
    rq_ddl ddl;
    bool done;
} change;

static void submitted(rq_ddl *d)
{
    RQ_CONTAINER_OF(d, change, ddl)->done = true;
}

typedef struct trial {
    service_world *world;
    service_client client;
    rq_arena arena;
    gatekeeper gate;
    uint64_t scanner; /* 0: no scanner is open */
    event what;
    bool stopped;
    change lock;
} trial;

static ProtobufCBinaryData text(const char *s)
{
    return (ProtobufCBinaryData){strlen(s), (uint8_t *)(uintptr_t)s};
}

static Pb__RegionSpecifier region_of(const trial *t, int which)
{
    Pb__RegionSpecifier r = PB__REGION_SPECIFIER__INIT;
    r.type = PB__REGION_SPECIFIER__REGION_SPECIFIER_TYPE__ENCODED_REGION_NAME;
    r.value = text(t->world->regions[which]);
    return r;
}

static void send(trial *t, const char *method, const ProtobufCMessage *m)
{
    uint8_t *p = rq_arena_alloc(&t->arena, protobuf_c_message_get_packed_size(m) + 1);
    assert_non_null(p);
    size_t len = protobuf_c_message_pack(m, p);
    service_client_send(&t->client, method, rq_slice_of(p, len), (rq_slice){0});
}

/* Rows a2 and a6 are in a file whose blocks are not cached. */
static void send_get(trial *t)
{
    Pb__RegionSpecifier region = region_of(t, 0);
    Pb__Get get = PB__GET__INIT;
    Pb__GetRequest m = PB__GET_REQUEST__INIT;
    get.row = text("a2");
    m.region = &region;
    m.get = &get;
    send(t, "Get", &m.base);
}

static void make_mutation(Pb__MutationProto *m, Pb__MutationProto__MutationType type,
                          const char *row, Pb__MutationProto__ColumnValue *column,
                          Pb__MutationProto__ColumnValue__QualifierValue *value,
                          Pb__MutationProto__ColumnValue **columns,
                          Pb__MutationProto__ColumnValue__QualifierValue **values)
{
    pb__mutation_proto__init(m);
    pb__mutation_proto__column_value__init(column);
    pb__mutation_proto__column_value__qualifier_value__init(value);
    m->has_row = m->has_mutate_type = value->has_qualifier = value->has_value = 1;
    m->row = text(row);
    m->mutate_type = type;
    value->qualifier = text("n");
    value->value = text("12345678");
    *columns = column;
    *values = value;
    column->family = text("f");
    column->n_qualifier_value = 1;
    column->qualifier_value = values;
    m->n_column_value = 1;
    m->column_value = columns;
}

static void send_mutation(trial *t, Pb__MutationProto__MutationType type)
{
    Pb__RegionSpecifier region = region_of(t, 0);
    Pb__MutationProto mutation;
    Pb__MutationProto__ColumnValue column, *columns[1];
    Pb__MutationProto__ColumnValue__QualifierValue value, *values[1];
    Pb__MutateRequest m = PB__MUTATE_REQUEST__INIT;
    make_mutation(&mutation, type, "a2", &column, &value, columns, values);
    m.region = &region;
    m.mutation = &mutation;
    send(t, "Mutate", &m.base);
}

static void send_put(trial *t)
{
    send_mutation(t, PB__MUTATION_PROTO__MUTATION_TYPE__PUT);
}

static void send_increment(trial *t)
{
    send_mutation(t, PB__MUTATION_PROTO__MUTATION_TYPE__INCREMENT);
}

/* A get and a put in each of the two regions. */
static void send_multi(trial *t)
{
    Pb__MultiRequest m = PB__MULTI_REQUEST__INIT;
    Pb__RegionAction parts[2], *part_list[2];
    Pb__RegionSpecifier regions[2];
    Pb__Action actions[4], *action_lists[2][2];
    Pb__Get get[2];
    Pb__MutationProto mutation[2];
    Pb__MutationProto__ColumnValue column[2], *columns[2][1];
    Pb__MutationProto__ColumnValue__QualifierValue value[2], *values[2][1];
    for (int i = 0; i < 2; i++) {
        regions[i] = region_of(t, i);
        pb__region_action__init(&parts[i]);
        pb__get__init(&get[i]);
        get[i].row = text(i == 0 ? "a2" : "r1");
        make_mutation(&mutation[i], PB__MUTATION_PROTO__MUTATION_TYPE__PUT, i == 0 ? "a4" : "r5",
                      &column[i], &value[i], columns[i], values[i]);
        for (int k = 0; k < 2; k++) {
            Pb__Action *a = &actions[2 * i + k];
            pb__action__init(a);
            a->has_index = 1;
            a->index = (uint32_t)(2 * i + k);
            a->get = k == 0 ? &get[i] : NULL;
            a->mutation = k == 1 ? &mutation[i] : NULL;
            action_lists[i][k] = a;
        }
        parts[i].region = &regions[i];
        parts[i].n_action = 2;
        parts[i].action = action_lists[i];
        part_list[i] = &parts[i];
    }
    m.n_regionaction = 2;
    m.regionaction = part_list;
    send(t, "Multi", &m.base);
}

static void send_scan(trial *t)
{
    Pb__RegionSpecifier region = region_of(t, 0);
    Pb__Scan scan = PB__SCAN__INIT;
    Pb__ScanRequest m = PB__SCAN_REQUEST__INIT;
    m.region = &region;
    m.scan = &scan;
    m.has_number_of_rows = 1;
    m.number_of_rows = 2;
    send(t, "Scan", &m.base);
}

/* The scanner is open; its lease is taken by the call. */
static void send_next(trial *t)
{
    Pb__ScanRequest m = PB__SCAN_REQUEST__INIT;
    m.has_scanner_id = m.has_number_of_rows = 1;
    m.scanner_id = t->scanner;
    m.number_of_rows = 100;
    send(t, "Scan", &m.base);
}

static void open_scanner(trial *t)
{
    send_scan(t);
    for (int i = 0; i < 100 && t->client.answers == 0; i++) {
        rq_sim_advance(t->world->w.sim, 50000000);
        service_client_take(&t->client);
    }
    assert_int_equal(t->client.answers, 1);
    assert_null(service_client_exception(&t->client));
    Pb__ScanResponse *r =
        pb__scan_response__unpack(NULL, t->client.message.len, t->client.message.ptr);
    assert_non_null(r);
    t->scanner = r->scanner_id;
    pb__scan_response__free_unpacked(r, NULL);
    t->client.answers = 0;
}

static void send_flush(trial *t)
{
    Pb__RegionSpecifier region = region_of(t, 1);
    Pb__FlushRegionRequest m = PB__FLUSH_REGION_REQUEST__INIT;
    m.region = &region;
    send(t, "FlushRegion", &m.base);
}

static void send_compact(trial *t)
{
    Pb__RegionSpecifier region = region_of(t, 0);
    Pb__CompactRegionRequest m = PB__COMPACT_REGION_REQUEST__INIT;
    m.region = &region;
    m.has_major = m.major = 1;
    send(t, "CompactRegion", &m.base);
}

static void send_prepare(trial *t)
{
    Pb__TableName name = PB__TABLE_NAME__INIT;
    Pb__RegionSpecifier region = region_of(t, 0);
    Pb__PrepareBulkLoadRequest m = PB__PREPARE_BULK_LOAD_REQUEST__INIT;
    name.namespace_ = text("default");
    name.qualifier = text("t");
    m.table_name = &name;
    m.region = &region;
    send(t, "PrepareBulkLoad", &m.base);
}

#define STAGED "staging/x"

/* Writes a file with one row of family f, for the first region. */
static void stage_file(trial *t)
{
    rq_vfs *vfs = t->world->w.env->vfs;
    rq_hfile_options o = rq_hfile_options_default();
    rq_hfile_writer *out;
    o.include_mvcc = false;
    const rq_cell cell = {.row = (const uint8_t *)"b",
                          .row_len = 1,
                          .family = (const uint8_t *)"f",
                          .family_len = 1,
                          .qualifier = (const uint8_t *)"q",
                          .qualifier_len = 1,
                          .timestamp = 1,
                          .type = RQ_TYPE_PUT,
                          .value = (const uint8_t *)"loaded",
                          .value_len = 6};
    assert_int_equal(rq_vfs_mkdirs(vfs, STAGED, NULL), RQ_OK);
    assert_int_equal(rq_hfile_writer_open(vfs, STAGED "/1", &o, &out, NULL), RQ_OK);
    assert_int_equal(rq_hfile_writer_append(out, &cell, NULL), RQ_OK);
    assert_int_equal(rq_hfile_writer_finish(out, NULL, NULL), RQ_OK);
    rq_hfile_writer_close(out);
}

static void send_load(trial *t)
{
    Pb__RegionSpecifier region = region_of(t, 0);
    Pb__BulkLoadHFileRequest m = PB__BULK_LOAD_HFILE_REQUEST__INIT;
    Pb__BulkLoadHFileRequest__FamilyPath path = PB__BULK_LOAD_HFILE_REQUEST__FAMILY_PATH__INIT,
                                         *paths[] = {&path};
    path.family = text("f");
    path.path = (char *)(uintptr_t) "/rorqual/" STAGED "/1";
    m.region = &region;
    m.n_family_path = 1;
    m.family_path = paths;
    m.has_assign_seq_num = m.assign_seq_num = 1;
    send(t, "BulkLoadHFile", &m.base);
}

/* A file that was not loaded is still where the client put it. */
static void look_for_file(trial *t)
{
    rq_stat st;
    bool loaded = false;
    if (service_client_exception(&t->client) == NULL) {
        Pb__BulkLoadHFileResponse *r = pb__bulk_load_hfile_response__unpack(
            NULL, t->client.message.len, t->client.message.ptr);
        assert_non_null(r);
        loaded = r->loaded;
        pb__bulk_load_hfile_response__free_unpacked(r, NULL);
    }
    bool is_there = rq_vfs_stat(t->world->w.env->vfs, STAGED "/1", &st, NULL) == RQ_OK;
    if (loaded == is_there) fail_msg("%s: loaded %d, source %d", place, loaded, is_there);
}

static void send_disable(trial *t)
{
    Pb__TableName name = PB__TABLE_NAME__INIT;
    Pb__DisableTableRequest m = PB__DISABLE_TABLE_REQUEST__INIT;
    name.namespace_ = text("default");
    name.qualifier = text("t");
    m.table_name = &name;
    send(t, "DisableTable", &m.base);
}

/* The response is delayed until the procedure ends: here a lock that nobody renews. */
static void take_lock(trial *t)
{
    t->lock = (change){.ddl = {.kind = RQ_DDL_LOCK_TABLE_SHARED,
                               .ns = RQ_SLICE_LIT("default"),
                               .qualifier = RQ_SLICE_LIT("u"),
                               .submitted = submitted,
                               .of.lock.description = RQ_SLICE_LIT("a test")}};
    rq_catalog_submit(t->world->w.catalog, &t->lock.ddl);
    rq_loops_sync(&t->world->loops);
    assert_true(t->lock.done);
    assert_int_equal(t->lock.ddl.rc, RQ_OK);
}

static void send_result(trial *t)
{
    Pb__GetProcedureResultRequest m = PB__GET_PROCEDURE_RESULT_REQUEST__INIT;
    m.proc_id = t->lock.ddl.proc_id;
    send(t, "getProcedureResult", &m.base);
}

static void send_states(trial *t)
{
    Pb__GetQuotaStatesRequest m = PB__GET_QUOTA_STATES_REQUEST__INIT;
    send(t, "GetQuotaStates", &m.base);
}

static void send_sizes(trial *t)
{
    Pb__GetSpaceQuotaRegionSizesRequest m = PB__GET_SPACE_QUOTA_REGION_SIZES_REQUEST__INIT;
    send(t, "GetSpaceQuotaRegionSizes", &m.base);
}

static void send_snapshots(trial *t)
{
    Pb__GetSpaceQuotaSnapshotsRequest m = PB__GET_SPACE_QUOTA_SNAPSHOTS_REQUEST__INIT;
    send(t, "GetSpaceQuotaSnapshots", &m.base);
}

static void send_quota(trial *t)
{
    Pb__SetQuotaRequest m = PB__SET_QUOTA_REQUEST__INIT;
    Pb__ThrottleRequest throttle = PB__THROTTLE_REQUEST__INIT;
    Pb__TimedQuota quota = PB__TIMED_QUOTA__INIT;
    quota.time_unit = PB__TIME_UNIT__SECONDS;
    quota.has_soft_limit = throttle.has_type = 1;
    quota.soft_limit = 1000;
    throttle.type = PB__THROTTLE_TYPE__REQUEST_NUMBER;
    throttle.timed_quota = &quota;
    m.user_name = (char *)(uintptr_t) "bob";
    m.throttle = &throttle;
    send(t, "SetQuota", &m.base);
}

typedef struct request {
    const char *name;
    service_kind kind;
    void (*prepare)(trial *t); /* may be NULL */
    void (*send)(trial *t);
    void (*look)(trial *t); /* checks the effect; may be NULL */
    bool at_gate;           /* the request is an op, which can wait at the gate */
    bool writes;            /* the request can wait for memory */
    bool off_loop;          /* a thread makes the response */
} request;

static const request requests[] = {
    {"get", SERVICE_CLIENT, NULL, send_get, NULL, true, false, false},
    {"put", SERVICE_CLIENT, NULL, send_put, NULL, true, true, false},
    {"increment", SERVICE_CLIENT, NULL, send_increment, NULL, true, true, false},
    {"multi", SERVICE_CLIENT, NULL, send_multi, NULL, true, true, false},
    {"scan", SERVICE_CLIENT, NULL, send_scan, NULL, true, false, false},
    {"next", SERVICE_CLIENT, open_scanner, send_next, NULL, true, false, false},
    {"prepare bulk load", SERVICE_CLIENT, NULL, send_prepare, NULL, true, false, false},
    {"bulk load", SERVICE_CLIENT, stage_file, send_load, look_for_file, true, false, false},
    {"flush", SERVICE_ADMIN, NULL, send_flush, NULL, false, false, false},
    {"compact", SERVICE_ADMIN, NULL, send_compact, NULL, false, false, false},
    {"disable", SERVICE_MASTER, NULL, send_disable, NULL, false, false, false},
    {"result of a procedure", SERVICE_MASTER, take_lock, send_result, NULL, false, false, false},
    {"states of quotas", SERVICE_MASTER, NULL, send_states, NULL, false, false, true},
    {"sizes of tables", SERVICE_MASTER, NULL, send_sizes, NULL, false, false, false},
    {"usage of tables", SERVICE_ADMIN, NULL, send_snapshots, NULL, false, false, true},
    {"set quota", SERVICE_MASTER, NULL, send_quota, NULL, false, false, false},
};

/* --- a trial ---------------------------------------------------------------------------------- */

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) fail_msg("%s: %s", place, #condition);                                   \
    } while (0)

static void go_on(trial *t, const bool *until)
{
    for (int i = 0; i < 400 && !*until; i++)
        rq_sim_advance(t->world->w.sim, 50000000);
    rq_loops_sync(&t->world->loops);
}

/* Changes the table while the call waits. */
static void change_table(trial *t, rq_ddl_kind kind)
{
    change c = {.ddl = {.kind = kind,
                        .ns = RQ_SLICE_LIT("default"),
                        .qualifier = RQ_SLICE_LIT("t"),
                        .submitted = submitted,
                        .wait_finished = true}};
    rq_slice encoded = rq_slice_cstr(t->world->regions[0]);
    if (kind == RQ_DDL_MOVE_REGION) c.ddl.of.one_region.region = encoded;
    if (kind == RQ_DDL_SPLIT_REGION) {
        c.ddl.of.split.region = encoded;
        c.ddl.of.split.row = RQ_SLICE_LIT("a5");
    }
    rq_catalog_submit(t->world->w.catalog, &c.ddl);
    go_on(t, &c.done);
    MUST(c.done);
}

static void happen(trial *t, event what)
{
    switch (what) {
    case CLOSED:
        service_client_close(&t->client);
        break;
    case DISABLED:
        change_table(t, RQ_DDL_DISABLE_TABLE);
        break;
    case DROPPED:
        change_table(t, RQ_DDL_DISABLE_TABLE);
        change_table(t, RQ_DDL_DELETE_TABLE);
        break;
    case MOVED:
        change_table(t, RQ_DDL_MOVE_REGION);
        break;
    case SPLIT:
        change_table(t, RQ_DDL_SPLIT_REGION);
        break;
    case DISK_FULL:
        rq_sim_fail_writes(t->world->w.sim, RQ_E_NO_SPACE);
        rq_sim_advance(t->world->w.sim, 1000000000);
        rq_sim_fail_writes(t->world->w.sim, RQ_OK);
        break;
    case STOPPED:
        rq_catalog_stop(t->world->w.catalog);
        service_client_close(&t->client);
        t->stopped = true;
        break;
    default:
        break;
    }
}

static void evict(const trial *t)
{
    rq_epoch_member m = {0};
    const world *w = &t->world->w;
    rq_epoch_pin(w->env->epoch, &m);
    for (int i = 0; i < SERVICE_REGIONS; i++) {
        uint64_t blocks, bytes;
        const rq_catalog_region *r =
            rq_catalog_region_find(w->catalog, rq_slice_cstr(t->world->regions[i]));
        if (r != NULL && r->region != NULL) rq_region_evict_blocks(r->region, &blocks, &bytes);
    }
    rq_epoch_unpin(w->env->epoch, &m);
}

/* Another client still gets a response. */
static void ask_again(trial *t)
{
    Pb__RegionSpecifier region = region_of(t, 2);
    Pb__Get get = PB__GET__INIT;
    Pb__GetRequest m = PB__GET_REQUEST__INIT;
    uint8_t bytes[256];
    service_client other;
    get.row = text("a0");
    m.region = &region;
    m.get = &get;
    size_t len = pb__get_request__pack(&m, bytes);
    service_client_open(&other, t->world, SERVICE_CLIENT, 0);
    MUST(service_client_call(&other, "Get", rq_slice_of(bytes, len), (rq_slice){0}));
    MUST(service_client_exception(&other) == NULL);
    service_client_close(&other);
}

/* Where the request must wait, in addition to its usual waits. */
typedef enum wait { ANYWHERE, AT_GATE, FOR_MEMORY } wait;

/* Makes writes to the region wait for memory until *ret, which has a reference, is passed to
 * free_memory. */
static void fill_memory(trial *t, rq_region **ret)
{
    rq_epoch_member m = {0};
    const world *w = &t->world->w;
    rq_epoch_pin(w->env->epoch, &m);
    const rq_catalog_region *r =
        rq_catalog_region_find(w->catalog, rq_slice_cstr(t->world->regions[0]));
    *ret = rq_region_ref(r->region);
    (*ret)->blocking_bytes = 0;
    rq_epoch_unpin(w->env->epoch, &m);
}

static void free_memory(rq_region *r)
{
    if (r != NULL) r->blocking_bytes = UINT64_MAX;
    rq_region_unref(r);
}

/* Returns true if the call was answered before the event, or only time could continue it. */
static bool run(const request *r, event what, unsigned k, wait where)
{
    bool at_gate = where == AT_GATE;
    rq_region *full = NULL;
    trial *t = calloc(1, sizeof *t);
    assert_non_null(t);
    rq_arena_init(&t->arena);
    t->what = what;
    t->world = service_world_new_cold();
    service_client_open(&t->client, t->world, r->kind, 0);
    if (r->prepare != NULL) r->prepare(t);
    evict(t);
    t->gate.table = (rq_gate_policy){.ctx = &t->gate, .before = before};
    t->gate.holds = at_gate;
    if (at_gate) rq_ops_set_policy(t->world->ops, &t->gate.table);
    if (where == FOR_MEMORY) fill_memory(t, &full);
    t->world->steps_left = k;
    r->send(t);
    service_client_take(&t->client);
    bool early = t->client.answers > 0, all = early || t->world->steps_left > 0;
    if (early && !t->client.stream.closing && service_client_exception(&t->client) != NULL)
        fail_msg("%s: %s", place, service_client_exception(&t->client));
    t->world->steps_left = UINT_MAX;
    MUST(where == ANYWHERE || !early);
    happen(t, what);
    let_go(&t->gate);
    free_memory(full);
    bool ended = false;
    for (int i = 0; i < 400 && !ended; i++) {
        rq_sim_advance(t->world->w.sim, 50000000);
        rq_loops_sync(&t->world->loops);
        bool gone = what == CLOSED || what == STOPPED;
        if (!gone) service_client_take(&t->client);
        ended = gone ? i == 40 : t->client.answers > 0;
    }
    MUST(ended);
    rq_sim_advance(t->world->w.sim, 2000000000);
    if (what != CLOSED && what != STOPPED) {
        service_client_take(&t->client);
        MUST(t->client.answers == 1);
        if (r->look != NULL) r->look(t);
        service_client_close(&t->client);
    }
    if (at_gate) rq_ops_set_policy(t->world->ops, NULL);
    if (!t->stopped) ask_again(t);
    service_world_free(t->world); /* checks that the requests' memory was given back */
    rq_arena_clear(&t->arena);
    free(t);
    return all;
}

/* Limits the states of a request; a request with many states has about thirty. */
#define STATES_MAX 400

static unsigned wait_there(const request *r, event what, bool can, wait where, const char *text)
{
    if (!can) return 0;
    snprintf(place, sizeof place, "%s %s, %s", r->name, text, event_names[what]);
    (void)run(r, what, UINT_MAX, where);
    return 1;
}

static void each_state(event what)
{
    unsigned trials = 0;
    for (size_t i = 0; i < RQ_ARRAY_LEN(requests); i++) {
        bool ended = false;
        unsigned states = 0;
        for (unsigned k = 0; !ended && k < STATES_MAX; k++, trials++) {
            snprintf(place, sizeof place, "%s, %s after %u tasks", requests[i].name,
                     event_names[what], k);
            ended = run(&requests[i], what, k, ANYWHERE);
            states = k;
        }
        MUST(states > 0 || !requests[i].off_loop);
        if (what == CLOSED) printf("%s: %u states\n", requests[i].name, states);
        trials += wait_there(&requests[i], what, requests[i].at_gate, AT_GATE, "at the gate");
        trials += wait_there(&requests[i], what, requests[i].writes, FOR_MEMORY, "without memory");
    }
    printf("%s: %u trials\n", event_names[what], trials);
}

#define TEST(name, what)                                                                           \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        each_state(what);                                                                          \
    }
TEST(a_call_ends_though_its_connection_closes, CLOSED)
TEST(a_call_ends_though_its_table_is_disabled, DISABLED)
TEST(a_call_ends_though_its_table_is_dropped, DROPPED)
TEST(a_call_ends_though_its_region_is_moved, MOVED)
TEST(a_call_ends_though_its_region_is_split, SPLIT)
TEST(a_call_ends_though_the_disk_is_full, DISK_FULL)
TEST(a_call_ends_though_the_server_stops, STOPPED)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_ends_though_its_connection_closes),
        cmocka_unit_test(a_call_ends_though_its_table_is_disabled),
        cmocka_unit_test(a_call_ends_though_its_table_is_dropped),
        cmocka_unit_test(a_call_ends_though_its_region_is_moved),
        cmocka_unit_test(a_call_ends_though_its_region_is_split),
        cmocka_unit_test(a_call_ends_though_the_disk_is_full),
        cmocka_unit_test(a_call_ends_though_the_server_stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
