/* SPDX-License-Identifier: Apache-2.0 */
/* Multi, Scan and checks that no client library sends, executed: counts that contradict the cell
 * block, cells in another order, parts that are missing or appear twice, invalid indexes. */
#include "requests.h"

#include "base/meter.h"

#include "proto/admin.pb-c.h"

#include <limits.h>
#include <string.h>
#include <sys/resource.h>

#define DO_NOT_RETRY "org.apache.hadoop.hbase.DoNotRetryIOException"
#define WRONG_ROW "org.apache.hadoop.hbase.client.WrongRowIOException"

/* ---- Multi */

static void each_action_takes_its_cells(void **state)
{
    fixture *f = *state;
    Pb__RegionAction *ra = on_region(f, 0, 3);
    add_put(f, ra, "b1", 2);
    add_put(f, ra, "b2", 0); /* no cell: HBase puts nothing and says so */
    add_put(f, ra, "b3", 1);
    add_cell(f, "b1", "x", "1");
    add_cell(f, "b1", "y", "2");
    add_cell(f, "b3", "x", "3");
    Pb__MultiResponse *r = multi(f, &ra, 1);
    assert_non_null(r);
    pb__multi_response__free_unpacked(r, NULL);
    assert_int_equal(cells_of(f, "b1"), 2);
    assert_int_equal(cells_of(f, "b3"), 1);
}

static void more_cells_than_announced_are_harmless(void **state)
{
    fixture *f = *state;
    Pb__RegionAction *ra = on_region(f, 0, 1);
    add_put(f, ra, "b1", 1);
    add_cell(f, "b1", "x", "1");
    add_cell(f, "b1", "y", "2");
    Pb__MultiResponse *r = multi(f, &ra, 1);
    assert_string_equal(outcome(r, 0, 0), "");
    pb__multi_response__free_unpacked(r, NULL);
    assert_int_equal(cells_of(f, "b1"), 1);
}

static void fewer_cells_than_announced_fail_their_action(void **state)
{
    fixture *f = *state;
    for (int32_t announced = 2; announced > 0; announced = announced == 2 ? INT32_MAX : -1) {
        Pb__RegionAction *ra = on_region(f, 0, 2);
        add_put(f, ra, "c1", announced);
        add_get(f, ra, "a0");
        add_cell(f, "c1", "x", "1");
        Pb__MultiResponse *r = multi(f, &ra, 1);
        assert_string_equal(outcome(r, 0, 0), DO_NOT_RETRY);
        assert_string_equal(outcome(r, 0, 1), "");
        pb__multi_response__free_unpacked(r, NULL);
        assert_int_equal(cells_of(f, "c1"), 0);
    }
}

static void cells_in_another_order_fail_only_their_region(void **state)
{
    fixture *f = *state;
    Pb__RegionAction *list[] = {on_region(f, 0, 2), on_region(f, 1, 1)};
    add_put(f, list[0], "c1", 1);
    add_put(f, list[0], "c2", 1);
    add_put(f, list[1], "x1", 1);
    add_cell(f, "c2", "x", "1");
    add_cell(f, "c1", "x", "1");
    add_cell(f, "x1", "x", "1");
    Pb__MultiResponse *r = multi(f, list, 2);
    assert_string_equal(outcome(r, 0, 0), WRONG_ROW);
    assert_string_equal(outcome(r, 0, 1), WRONG_ROW);
    assert_string_equal(outcome(r, 1, 0), "");
    pb__multi_response__free_unpacked(r, NULL);
    assert_int_equal(cells_of(f, "c1") + cells_of(f, "c2"), 0);
}

static void a_region_that_is_not_here_leaves_the_others_their_cells(void **state)
{
    fixture *f = *state;
    Pb__RegionAction *list[] = {on_region(f, 0, 1), on_region(f, 0, 1)};
    list[0]->region->value = bytes("0123456789abcdef0123456789abcdef");
    add_put(f, list[0], "c1", 1);
    add_put(f, list[1], "c2", 1);
    add_cell(f, "c1", "x", "1");
    add_cell(f, "c2", "x", "1");
    Pb__MultiResponse *r = multi(f, list, 2);
    assert_non_null(r->regionactionresult[0]->exception);
    assert_string_equal(outcome(r, 1, 0), "");
    pb__multi_response__free_unpacked(r, NULL);
    assert_int_equal(cells_of(f, "c2"), 1);
}

static void an_action_of_nothing_is_refused_alone(void **state)
{
    fixture *f = *state;
    Pb__RegionAction *ra = on_region(f, 0, 2);
    (void)action(f, ra);
    add_get(f, ra, "a0");
    Pb__MultiResponse *r = multi(f, &ra, 1);
    assert_string_equal(outcome(r, 0, 0), "org.apache.hadoop.hbase.HBaseIOException");
    assert_string_equal(outcome(r, 0, 1), "");
    pb__multi_response__free_unpacked(r, NULL);
}

static void a_wrong_increment_parts_what_is_collected(void **state)
{
    fixture *f = *state;
    Pb__RegionAction *ra = on_region(f, 0, 6);
    add_put(f, ra, "c1", 1);
    add_mutation(f, ra, PB__MUTATION_PROTO__MUTATION_TYPE__INCREMENT, "c1", 1);
    add_cell(f, "c1", "x", "1");
    add_cell(f, "c9", "x", "12345678");
    static const char *rows[] = {"c2", "c3", "c4", "c5"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(rows); i++) {
        add_put(f, ra, rows[i], 1);
        /* the last put has a cell of another row, which also affects c2 to c4, but not c1 */
        add_cell(f, i == 3 ? "c9" : rows[i], "x", "1");
    }
    Pb__MultiResponse *r = multi(f, &ra, 1);
    assert_string_equal(outcome(r, 0, 0), "");
    for (uint32_t i = 1; i < 6; i++)
        assert_string_equal(outcome(r, 0, i), WRONG_ROW);
    pb__multi_response__free_unpacked(r, NULL);
    assert_int_equal(cells_of(f, "c1"), 1);
    assert_int_equal(cells_of(f, "c2"), 0);
}

/* An action with two kinds: code that checks for a Get first treats it as a Get, other code as an
 * increment. */
static Pb__Action *add_get_and_increment(fixture *f, Pb__RegionAction *ra, const char *row)
{
    Pb__Get *g = MADE(f, get);
    g->row = bytes(row);
    add_mutation(f, ra, PB__MUTATION_PROTO__MUTATION_TYPE__INCREMENT, row, 1);
    Pb__Action *a = ra->action[ra->n_action - 1];
    a->get = g;
    return a;
}

/* HBase executes the kind that it checks for first. Before the fix two places classified such an
 * action differently: it was executed twice, and a batch exceeded its array. */
static void an_action_of_two_kinds_is_refused_alone(void **state)
{
    fixture *f = *state;
    enum { PUTS = 200 };
    Pb__RegionAction *ra = on_region(f, 0, PUTS + 2);
    add_put(f, ra, "c0", 1);
    add_cell(f, "c0", "x", "1");
    add_get_and_increment(f, ra, "c1");
    add_cell(f, "c1", "n", "12345678");
    char rows[PUTS][8];
    for (size_t i = 0; i < PUTS; i++) {
        snprintf(rows[i], sizeof rows[i], "c%03zu", i);
        add_put(f, ra, rows[i], 1);
        /* the put's own cell, although no action took the increment's cell */
        add_cell(f, rows[i], "x", "1");
        ra->action[ra->n_action - 1]->index = UINT32_MAX - (uint32_t)i;
    }
    Pb__MultiResponse *r = multi(f, &ra, 1);
    assert_non_null(r);
    assert_int_equal(r->regionactionresult[0]->n_resultorexception, PUTS + 2);
    assert_string_equal(outcome(r, 0, 0), "");
    assert_string_equal(outcome(r, 0, 1), DO_NOT_RETRY);
    for (uint32_t i = 0; i < PUTS; i++)
        assert_string_equal(outcome(r, 0, UINT32_MAX - i), "");
    pb__multi_response__free_unpacked(r, NULL);
    assert_int_equal(cells_of(f, "c0"), 1);
    assert_int_equal(cells_of(f, "c1"), 0);
    assert_int_equal(cells_of(f, "c199"), 1);
}

/* Every order of all kinds of action: each is answered once under its index, which the server only
 * copies. */
static void every_mixture_of_kinds_is_answered_one_by_one(void **state)
{
    fixture *f = *state;
    enum { ACTIONS = 4, KINDS = 6, MIXTURES = KINDS * KINDS * KINDS * KINDS };
    for (unsigned mixture = 0; mixture < 2 * MIXTURES; mixture++) {
        Pb__RegionAction *ra = on_region(f, 0, ACTIONS);
        ra->has_atomic = 1;
        ra->atomic = mixture >= MIXTURES;
        unsigned left = mixture;
        for (uint32_t i = 0; i < ACTIONS; i++, left /= KINDS) {
            unsigned kind = left % KINDS;
            Pb__Action *a;
            if (kind < 3) {
                add_mutation(f, ra,
                             kind == 0   ? PB__MUTATION_PROTO__MUTATION_TYPE__PUT
                             : kind == 1 ? PB__MUTATION_PROTO__MUTATION_TYPE__INCREMENT
                                         : PB__MUTATION_PROTO__MUTATION_TYPE__DELETE,
                             "d", kind < 2);
                a = ra->action[i];
            } else {
                a = action(f, ra);
            }
            if (kind < 2) add_cell(f, "d", kind == 0 ? "p" : "n", "12345678");
            if (kind == 3 || (kind < 3 && mixture % 7 == i)) {
                a->get = MADE(f, get);
                a->get->row = bytes("d");
            }
            if (kind == 4 || (kind == 3 && mixture % 5 == i)) {
                a->service_call = MADE(f, coprocessor_service_call);
                a->service_call->row = bytes("d");
                a->service_call->service_name = a->service_call->method_name = (char *)"x";
            }
            a->index = i * 0x40000001u;
        }
        Pb__MultiResponse *r = multi(f, &ra, 1);
        assert_non_null(r);
        if (ra->atomic == 0) {
            assert_int_equal(r->regionactionresult[0]->n_resultorexception, ACTIONS);
            for (uint32_t i = 0; i < ACTIONS; i++)
                assert_string_not_equal(outcome(r, 0, i * 0x40000001u), "no answer");
        }
        pb__multi_response__free_unpacked(r, NULL);
        rq_arena_reset(&f->arena);
    }
}

/* Each increment is passed to the region separately; its memory must not grow with the number of
 * increments that follow. A sanitizer's shadow memory is larger than the limit set here. */
static void ten_thousand_increments_fit_a_request(void **state)
{
    fixture *f = *state;
    enum { COUNT = 10000 };
    Pb__RegionAction *ra = on_region(f, 0, COUNT);
    for (int i = 0; i < COUNT; i++) {
        rq_cell c = {.row = (const uint8_t *)"an",
                     .row_len = 2,
                     .family = (const uint8_t *)"g",
                     .family_len = 1,
                     .qualifier = (const uint8_t *)"n",
                     .qualifier_len = 1,
                     .timestamp = RQ_TIMESTAMP_LATEST,
                     .type = RQ_TYPE_PUT,
                     .value = (const uint8_t *)"\0\0\0\0\0\0\0\1",
                     .value_len = 8};
        add_mutation(f, ra, PB__MUTATION_PROTO__MUTATION_TYPE__INCREMENT, "an", 1);
        assert_int_equal(rq_cellblock_append(&f->cells, &c), RQ_OK);
    }
#if !RQ_ASAN && !RQ_TSAN
    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    limit = (struct rlimit){(rlim_t)2 << 30, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
#endif
    Pb__MultiResponse *r = multi(f, &ra, 1);
#if !RQ_ASAN && !RQ_TSAN
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
#endif
    assert_non_null(r);
    for (uint32_t i = 0; i < COUNT; i++)
        assert_string_equal(outcome(r, 0, i), "");
    pb__multi_response__free_unpacked(r, NULL);
}

static void clear_block_cache(fixture *f, size_t which)
{
    Pb__ClearRegionBlockCacheRequest request = PB__CLEAR_REGION_BLOCK_CACHE_REQUEST__INIT;
    Pb__RegionSpecifier *list[] = {region(f, which)};
    uint8_t bytes[128];
    request.region = list;
    request.n_region = 1;
    size_t len = pb__clear_region_block_cache_request__pack(&request, bytes);
    service_client admin;
    service_client_open(&admin, f->world, SERVICE_ADMIN, 0);
    assert_true(service_client_call(&admin, "ClearRegionBlockCache", rq_slice_of(bytes, len),
                                    (rq_slice){0}));
    assert_null(service_client_exception(&admin));
    service_client_close(&admin);
}

/* f:q of the row is not "z", and gets another column. */
static void send_checked_put(fixture *f, const char *row)
{
    Pb__MutateRequest *m = MADE(f, mutate_request);
    Pb__Condition *c = m->condition = MADE(f, condition);
    Pb__RegionAction *ra = on_region(f, 0, 1);
    c->row = bytes(row);
    c->family = bytes("f");
    c->qualifier = bytes("q");
    c->has_compare_type = c->has_family = c->has_qualifier = 1;
    c->compare_type = PB__COMPARE_TYPE__NOT_EQUAL;
    c->comparator = MADE(f, comparator);
    c->comparator->name = (char *)"org.apache.hadoop.hbase.filter.BinaryComparator";
    c->comparator->has_serialized_comparator = 1;
    c->comparator->serialized_comparator = (ProtobufCBinaryData){5, (uint8_t *)"\x0a\x03\x0a\x01z"};
    add_put(f, ra, row, 1);
    add_cell(f, row, "other", "12345678");
    m->region = ra->region;
    m->mutation = ra->action[0]->mutation;
    uint8_t *p = rq_arena_alloc(&f->arena, pb__mutate_request__get_packed_size(m));
    assert_non_null(p);
    service_client_send(&f->client, "Mutate", rq_slice_of(p, pb__mutate_request__pack(m, p)),
                        rq_buf_slice(&f->cells.bytes));
    rq_cellblock_reset(&f->cells);
}

/* Calls that the loop reads together are passed to the region as one list, and their rows are in a file: each that waits
 * for a block, not only the first, is repeated when the block is loaded. */
static void each_of_a_list_may_wait_for_a_block(void **state)
{
    fixture *f = *state;
    enum { COUNT = 8, ROUNDS = 40 };
    static const char *const rows[] = {"a2", "a4", "a6"};
    for (unsigned round = 0; round < ROUNDS; round++) {
        clear_block_cache(f, 0);
        unsigned answers = f->client.answers;
        f->world->steps_left = 0; /* the list is passed on by a task */
        for (size_t i = 0; i < COUNT; i++)
            send_checked_put(f, rows[(i + round) % RQ_ARRAY_LEN(rows)]);
        f->world->steps_left = UINT_MAX;
        assert_int_equal(f->client.answers, answers);
        service_client_wait(&f->client, answers + COUNT);
        for (size_t i = 0; i < RQ_ARRAY_LEN(rows); i++)
            assert_true(cells_of(f, rows[i]) >= 2);
        rq_arena_reset(&f->arena);
    }
}

/* ---- the cost of a request */

/* The number of tasks in which a Multi of `count` actions is processed. */
static unsigned tasks_of_multi(fixture *f, size_t count, bool puts)
{
    Pb__RegionAction *ra = on_region(f, 0, count);
    for (size_t i = 0; i < count; i++) {
        if (puts) {
            add_put(f, ra, "b7", 1);
            add_cell(f, "b7", "x", "1");
        } else {
            add_get(f, ra, "a0");
        }
    }
    unsigned before = f->world->posted;
    Pb__MultiResponse *r = multi(f, &ra, 1);
    assert_non_null(r);
    assert_int_equal(r->regionactionresult[0]->n_resultorexception, count);
    pb__multi_response__free_unpacked(r, NULL);
    rq_arena_reset(&f->arena);
    return f->world->posted - before;
}

/* The simulated clock stands still while a task runs, so here the number of steps ends a time
 * slice. */
static void a_long_multi_goes_on_in_other_tasks(void **state)
{
    fixture *f = *state;
    enum { COUNT = 10000, LEAST = 2 * COUNT / RQ_METER_STRETCH_STEPS };
    (void)tasks_of_multi(f, 10, false);
    for (int puts = 0; puts < 2; puts++) {
        unsigned few = tasks_of_multi(f, 10, puts != 0);
        unsigned many = tasks_of_multi(f, COUNT, puts != 0);
        /* Puts take two series of tasks: one decodes and writes them under the region's token, one
         * answers them. */
        assert_true(many >= few + (puts ? 2 : 1) * LEAST);
    }
}

/* A handler decodes messages in bytes fields of its request (filters, comparators). Their memory is
 * charged like the request's own. */
static void decoded_memory_is_charged(void **state)
{
    fixture *f = *state;
    enum { PAIRS = 300000 };
    rq_buf filter = {0};
    for (size_t i = 0; i < PAIRS; i++) {
        static const uint8_t empty[] = {0x0a, 4, 0x0a, 0, 0x12, 0}; /* empty key and mask */
        assert_int_equal(rq_buf_append(&filter, empty, sizeof empty), RQ_OK);
    }
    Pb__GetRequest g = PB__GET_REQUEST__INIT;
    g.region = region(f, 0);
    g.get = MADE(f, get);
    g.get->row = bytes("a0");
    g.get->filter = MADE(f, filter);
    g.get->filter->name = (char *)"org.apache.hadoop.hbase.filter.FuzzyRowFilter";
    g.get->filter->has_serialized_filter = 1;
    g.get->filter->serialized_filter = (ProtobufCBinaryData){filter.len, filter.ptr};
    assert_string_equal(send_call(f, "Get", &g.base),
                        "org.apache.hadoop.hbase.DoNotRetryIOException");
    /* Messages of endpoints are in bytes fields, too. */
    Pb__CoprocessorServiceRequest e = PB__COPROCESSOR_SERVICE_REQUEST__INIT;
    e.region = region(f, 2);
    e.call = MADE(f, coprocessor_service_call);
    e.call->row = bytes("a0");
    e.call->service_name = (char *)"MultiRowMutationService";
    e.call->method_name = (char *)"MutateRows";
    rq_buf_reset(&filter);
    for (size_t i = 0; i < PAIRS; i++)
        assert_int_equal(rq_buf_append(&filter, "\x0a\0", 2), RQ_OK); /* an empty mutation */
    e.call->request = (ProtobufCBinaryData){filter.len, filter.ptr};
    assert_string_equal(send_call(f, "ExecService", &e.base),
                        "org.apache.hadoop.hbase.DoNotRetryIOException");
    rq_buf_clear(&filter);
    assert_int_equal(cells_of(f, "a0") > 0, 1); /* and all memory is released */
}

/* ---- Scan */

static Pb__ScanResponse *scan(fixture *f, const Pb__ScanRequest *request)
{
    if (send_call(f, "Scan", &request->base) != NULL) return NULL;
    Pb__ScanResponse *r =
        pb__scan_response__unpack(NULL, f->client.message.len, f->client.message.ptr);
    assert_non_null(r);
    return r;
}

/* Opens a scanner without reading; 0: refused. */
static uint64_t open_scanner(fixture *f, Pb__Scan *s)
{
    Pb__ScanRequest request = PB__SCAN_REQUEST__INIT;
    request.region = region(f, 0);
    request.scan = s;
    request.has_number_of_rows = 1;
    Pb__ScanResponse *r = scan(f, &request);
    if (r == NULL) return 0;
    uint64_t id = r->scanner_id;
    assert_int_equal(r->n_cells_per_result, 0);
    pb__scan_response__free_unpacked(r, NULL);
    return id;
}

/* Reads the rows of a response, and counts their cells. */
static size_t rows_of(fixture *f, uint64_t id, uint32_t rows, uint64_t sequence, size_t *ret_cells)
{
    Pb__ScanRequest request = PB__SCAN_REQUEST__INIT;
    request.has_scanner_id = request.has_number_of_rows = request.has_next_call_seq = 1;
    request.scanner_id = id;
    request.number_of_rows = rows;
    request.next_call_seq = sequence;
    Pb__ScanResponse *r = scan(f, &request);
    assert_non_null(r);
    size_t count = r->n_cells_per_result;
    for (size_t i = 0; ret_cells != NULL && i < count; i++)
        *ret_cells += r->cells_per_result[i];
    pb__scan_response__free_unpacked(r, NULL);
    return count;
}

static void rows_of_a_call_to_the_row(void **state)
{
    fixture *f = *state;
    Pb__Scan s = PB__SCAN__INIT;
    uint64_t id = open_scanner(f, &s);
    assert_int_not_equal(id, 0);
    assert_int_equal(rows_of(f, id, 0, 0, NULL), 0);
    assert_int_equal(rows_of(f, id, 1, 1, NULL), 1);
    assert_int_equal(rows_of(f, id, 2, 2, NULL), 2);
}

static void columns_that_come_twice_are_their_union(void **state)
{
    fixture *f = *state;
    Pb__Scan s = PB__SCAN__INIT;
    Pb__Column one = PB__COLUMN__INIT, other = PB__COLUMN__INIT, all = PB__COLUMN__INIT;
    Pb__Column *columns[] = {&one, &other, &all};
    ProtobufCBinaryData q = bytes("q"), empty = bytes("");
    one.family = other.family = all.family = bytes("f");
    one.n_qualifier = other.n_qualifier = 1;
    one.qualifier = &q;
    other.qualifier = &empty;
    s.column = columns;
    size_t cells[4] = {0};
    for (s.n_column = 0; s.n_column < 4; s.n_column++) {
        uint64_t id = open_scanner(f, &s);
        assert_int_not_equal(id, 0);
        (void)rows_of(f, id, 1000, 0, &cells[s.n_column]);
    }
    assert_true(cells[1] < cells[2]);
    assert_int_equal(cells[2], cells[3]); /* f has no further columns */
    assert_true(cells[3] < cells[0]);
}

static void an_invalid_scan_is_refused(void **state)
{
    fixture *f = *state;
    Pb__ScanRequest request = PB__SCAN_REQUEST__INIT;
    assert_string_equal(send_call(f, "Scan", &request.base), DO_NOT_RETRY);
    request.has_scanner_id = 1;
    request.scanner_id = 12345;
    assert_string_equal(send_call(f, "Scan", &request.base),
                        "org.apache.hadoop.hbase.UnknownScannerException");
    Pb__Scan s = PB__SCAN__INIT;
    uint64_t id = open_scanner(f, &s);
    request.scanner_id = id;
    request.has_next_call_seq = 1;
    request.next_call_seq = 1; /* the expected number would be 0 */
    assert_string_equal(send_call(f, "Scan", &request.base),
                        "org.apache.hadoop.hbase.exceptions.OutOfOrderScannerNextException");
    s.has_max_versions = 1;
    for (uint32_t versions = 0; versions < 2; versions++) {
        s.max_versions = versions == 0 ? 0 : UINT32_MAX;
        assert_int_equal(open_scanner(f, &s), 0);
    }
    s.max_versions = 1;
    assert_int_not_equal(open_scanner(f, &s), 0);
}

static void rows_of_a_scan_have_a_longest(void **state)
{
    fixture *f = *state;
    static uint8_t key[RQ_ROW_LEN_MAX + 1];
    Pb__Scan s = PB__SCAN__INIT;
    s.has_stop_row = 1;
    memset(key, 'b', sizeof key);
    for (size_t len = RQ_ROW_LEN_MAX - 1; len <= RQ_ROW_LEN_MAX + 1; len++) {
        s.stop_row = (ProtobufCBinaryData){len, key};
        uint64_t id = open_scanner(f, &s);
        assert_true((id != 0) == (len <= RQ_ROW_LEN_MAX));
    }
}

/* ---- conditions */

static const char *check_and_put(fixture *f, Pb__Condition *condition, const char *row)
{
    Pb__MutateRequest m = PB__MUTATE_REQUEST__INIT;
    Pb__MutationProto put = PB__MUTATION_PROTO__INIT;
    m.region = region(f, 0);
    m.mutation = &put;
    m.condition = condition;
    put.has_mutate_type = put.has_row = put.has_associated_cell_count = 1;
    put.mutate_type = PB__MUTATION_PROTO__MUTATION_TYPE__PUT;
    put.row = bytes(row);
    put.associated_cell_count = 1;
    add_cell(f, row, "x", "1");
    return send_call(f, "Mutate", &m.base);
}

static void a_condition_names_what_it_compares(void **state)
{
    fixture *f = *state;
    static uint8_t inner[] = {0x0a, 0x00}; /* an empty value: the column must be absent */
    Pb__Condition c = PB__CONDITION__INIT;
    Pb__Comparator comparator = PB__COMPARATOR__INIT;
    Pb__TimeRange range = PB__TIME_RANGE__INIT;
    c.row = bytes("d1");
    assert_string_equal(check_and_put(f, &c, "d1"), DO_NOT_RETRY);
    comparator.name = (char *)(uintptr_t) "org.apache.hadoop.hbase.filter.NoComparator";
    c.comparator = &comparator;
    assert_string_equal(check_and_put(f, &c, "d1"), "java.io.IOException");
    comparator.name = (char *)(uintptr_t) "org.apache.hadoop.hbase.filter.BinaryComparator";
    comparator.has_serialized_comparator = 1;
    comparator.serialized_comparator = (ProtobufCBinaryData){sizeof inner, inner};
    c.has_family = c.has_qualifier = c.has_compare_type = 1;
    c.family = bytes("f");
    c.qualifier = bytes("x");
    c.compare_type = PB__COMPARE_TYPE__EQUAL;
    assert_string_equal(check_and_put(f, &c, "d2"), DO_NOT_RETRY); /* a condition on another row */
    c.time_range = &range;
    range.has_from = range.has_to = 1;
    range.from = 5;
    range.to = 4;
    assert_string_equal(check_and_put(f, &c, "d1"), "java.io.IOException");
    range.to = 5; /* an empty range */
    assert_null(check_and_put(f, &c, "d1"));
    assert_int_equal(cells_of(f, "d1"), 1);
    c.row = bytes("");
    assert_string_equal(check_and_put(f, &c, "d1"), "java.io.IOException");
}

static const char *multi_if_absent(fixture *f, Pb__Condition *c, Pb__RegionAction **list,
                                   size_t count)
{
    Pb__MultiRequest m = PB__MULTI_REQUEST__INIT;
    m.regionaction = list;
    m.n_regionaction = count;
    m.condition = c;
    for (size_t i = 0; i < count; i++) {
        list[i] = on_region(f, 0, 1);
        list[i]->has_atomic = list[i]->atomic = 1;
        add_put(f, list[i], "d3", 1);
        add_cell(f, "d3", "x", "1");
    }
    return send_call(f, "Multi", &m.base);
}

/* With several region actions the condition, whose filter may be as long as a request, would be
 * decoded for each of them. Such a request is refused. */
static void the_condition_of_a_multi_is_for_one_region_action(void **state)
{
    fixture *f = *state;
    static uint8_t inner[] = {0x0a, 0x00};
    Pb__Condition c = PB__CONDITION__INIT;
    Pb__Comparator comparator = PB__COMPARATOR__INIT;
    Pb__RegionAction *list[2];
    comparator.name = (char *)(uintptr_t) "org.apache.hadoop.hbase.filter.BinaryComparator";
    comparator.has_serialized_comparator = 1;
    comparator.serialized_comparator = (ProtobufCBinaryData){sizeof inner, inner};
    c.comparator = &comparator;
    c.row = bytes("d3");
    c.has_family = c.has_qualifier = c.has_compare_type = 1;
    c.family = bytes("f");
    c.qualifier = bytes("x");
    c.compare_type = PB__COMPARE_TYPE__EQUAL;
    const char *refused = multi_if_absent(f, &c, list, 2);
    assert_non_null(refused);
    assert_string_equal(refused, DO_NOT_RETRY);
    assert_int_equal(cells_of(f, "d3"), 0);
    assert_null(multi_if_absent(f, &c, list, 1));
    assert_int_equal(cells_of(f, "d3"), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, requests_begin, requests_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_action_takes_its_cells),
        TEST(more_cells_than_announced_are_harmless),
        TEST(fewer_cells_than_announced_fail_their_action),
        TEST(cells_in_another_order_fail_only_their_region),
        TEST(a_region_that_is_not_here_leaves_the_others_their_cells),
        TEST(an_action_of_nothing_is_refused_alone),
        TEST(a_wrong_increment_parts_what_is_collected),
        TEST(an_action_of_two_kinds_is_refused_alone),
        TEST(every_mixture_of_kinds_is_answered_one_by_one),
        TEST(ten_thousand_increments_fit_a_request),
        TEST(each_of_a_list_may_wait_for_a_block),
        TEST(a_long_multi_goes_on_in_other_tasks),
        TEST(decoded_memory_is_charged),
        TEST(rows_of_a_call_to_the_row),
        TEST(columns_that_come_twice_are_their_union),
        TEST(an_invalid_scan_is_refused),
        TEST(rows_of_a_scan_have_a_longest),
        TEST(a_condition_names_what_it_compares),
        TEST(the_condition_of_a_multi_is_for_one_region_action),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
