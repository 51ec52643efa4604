/* SPDX-License-Identifier: Apache-2.0 */
/* Long requests: a pool sorts their columns, reads their cells and parses their filters, not the
 * loop (apart.h). The tests count tasks of the loop, because the simulated clock stands still while
 * a task runs. */
#include "requests.h"

#include "base/meter.h"

#include "proto/endpoints.pb-c.h"

#include <string.h>

#define MANY 3000 /* cells */

/* ---- Get and Scan */

/* Columns of family f, all different and in no order, so that a sort has the most work. */
static Pb__Column *columns_of_f(fixture *f, size_t count)
{
    Pb__Column *c = MADE(f, column);
    c->family = bytes("f");
    c->qualifier = rq_arena_calloc(&f->arena, count, sizeof *c->qualifier);
    for (size_t i = 0; i < count; i++)
        c->qualifier[i] = bytes(rq_arena_printf(&f->arena, "%05zu", i * 7919 % count));
    c->qualifier[count / 2] = bytes("q");
    c->n_qualifier = count;
    return c;
}

/* Otherwise the loop would sort the columns in one step. */
static void a_long_get_is_translated_elsewhere(void **state)
{
    fixture *f = *state;
    Pb__GetRequest g = PB__GET_REQUEST__INIT;
    Pb__Column *columns[1];
    g.region = region(f, 0);
    g.get = MADE(f, get);
    g.get->row = bytes("a2");
    g.get->column = columns;
    g.get->n_column = 1;
    (void)cells_of(f, "a2"); /* brings the row's blocks into memory */
    columns[0] = columns_of_f(f, 10);
    unsigned few = tasks_of(f, "Get", &g.base);
    size_t found = f->client.cells.len;
    assert_true(found > 0);
    columns[0] = columns_of_f(f, 10000);
    assert_true(tasks_of(f, "Get", &g.base) > few);
    assert_int_equal(f->client.cells.len, found);
    /* An error of the translation ends the call with an exception. */
    g.get->has_max_versions = 1;
    g.get->max_versions = 0;
    assert_non_null(send_call(f, "Get", &g.base));
}

static void the_opening_of_a_long_scan_is_translated_elsewhere(void **state)
{
    fixture *f = *state;
    Pb__ScanRequest s = PB__SCAN_REQUEST__INIT;
    Pb__Column *columns[1];
    s.region = region(f, 0);
    s.scan = MADE(f, scan);
    s.scan->column = columns;
    s.scan->n_column = 1;
    s.has_number_of_rows = s.has_close_scanner = 1;
    s.number_of_rows = 100;
    s.close_scanner = 1;
    columns[0] = columns_of_f(f, 10);
    (void)tasks_of(f, "Scan", &s.base); /* brings the scan's blocks into memory */
    unsigned few = tasks_of(f, "Scan", &s.base);
    size_t found = f->client.cells.len;
    assert_true(found > 0);
    columns[0] = columns_of_f(f, 10000);
    assert_true(tasks_of(f, "Scan", &s.base) > few);
    assert_int_equal(f->client.cells.len, found);
    /* An error of the translation ends the call with an exception. */
    s.scan->has_max_versions = 1;
    s.scan->max_versions = 0;
    assert_non_null(send_call(f, "Scan", &s.base));
}

/* ---- Mutate */

static void add_cells(fixture *f, const char *row, size_t count)
{
    for (size_t i = 0; i < count; i++)
        add_cell(f, row, rq_arena_printf(&f->arena, "%05zu", i), "v");
}

static Pb__MutateRequest put_of(fixture *f, const char *row)
{
    Pb__MutateRequest m = PB__MUTATE_REQUEST__INIT;
    m.region = region(f, 0);
    m.mutation = MADE(f, mutation_proto);
    m.mutation->has_row = m.mutation->has_mutate_type = 1;
    m.mutation->mutate_type = PB__MUTATION_PROTO__MUTATION_TYPE__PUT;
    m.mutation->row = bytes(row);
    return m;
}

static void cells_in_block(fixture *f, Pb__MutateRequest *m, const char *row, size_t count)
{
    m->mutation->has_associated_cell_count = 1;
    m->mutation->associated_cell_count = (int32_t)count;
    add_cells(f, row, count);
}

static void a_long_mutation_is_translated_elsewhere(void **state)
{
    fixture *f = *state;
    Pb__MutateRequest m = put_of(f, "b1");
    cells_in_block(f, &m, "b1", 10);
    unsigned few = tasks_of(f, "Mutate", &m.base);
    cells_in_block(f, &m, "b1", MANY);
    assert_true(tasks_of(f, "Mutate", &m.base) > few);
    assert_int_equal(cells_of(f, "b1"), MANY);
    /* An error of the translation ends the call with an exception, and nothing is written. */
    m = put_of(f, "b2");
    cells_in_block(f, &m, "b2", MANY);
    m.mutation->associated_cell_count++;
    add_cell(f, "other", "x", "v");
    assert_non_null(send_call(f, "Mutate", &m.base));
    assert_int_equal(cells_of(f, "b2"), 0);
}

static Pb__MutationProto__ColumnValue *values_of_f(fixture *f, size_t count)
{
    Pb__MutationProto__ColumnValue *v = MADE(f, mutation_proto__column_value);
    v->family = bytes("f");
    v->qualifier_value = rq_arena_calloc(&f->arena, count, sizeof *v->qualifier_value);
    for (; v->n_qualifier_value < count; v->n_qualifier_value++) {
        Pb__MutationProto__ColumnValue__QualifierValue *q =
            MADE(f, mutation_proto__column_value__qualifier_value);
        q->has_qualifier = q->has_value = 1;
        q->qualifier = bytes(rq_arena_printf(&f->arena, "%05zu", v->n_qualifier_value));
        q->value = bytes("v");
        v->qualifier_value[v->n_qualifier_value] = q;
    }
    return v;
}

static void a_long_mutation_of_messages_is_translated_elsewhere(void **state)
{
    fixture *f = *state;
    Pb__MutateRequest m = put_of(f, "b1");
    Pb__MutationProto__ColumnValue *values[1] = {values_of_f(f, 10)};
    m.mutation->column_value = values;
    m.mutation->n_column_value = 1;
    unsigned few = tasks_of(f, "Mutate", &m.base);
    values[0] = values_of_f(f, MANY);
    assert_true(tasks_of(f, "Mutate", &m.base) > few);
    assert_int_equal(cells_of(f, "b1"), MANY);
}

/* Two bytes of a message are decoded into two hundred bytes. The loop stops decoding, and a pool
 * decodes the whole message. */
static void tiny_fields_are_decoded_elsewhere(void **state)
{
    fixture *f = *state;
    Pb__MutateRequest m = put_of(f, "b1");
    Pb__MutationProto__ColumnValue__QualifierValue empty =
        PB__MUTATION_PROTO__COLUMN_VALUE__QUALIFIER_VALUE__INIT;
    Pb__MutationProto__ColumnValue *values[1] = {values_of_f(f, 60000)};
    unsigned tasks[2];
    m.mutation->column_value = values;
    m.mutation->n_column_value = 1;
    for (size_t i = 0; i < values[0]->n_qualifier_value; i++)
        values[0]->qualifier_value[i] = &empty;
    for (int many = 0; many < 2; many++) {
        values[0]->n_qualifier_value = many ? 60000 : 2000;
        unsigned before = f->world->posted;
        const char *refused = send_call(f, "Mutate", &m.base);
        tasks[many] = f->world->posted - before;
        assert_non_null(refused);
        assert_string_equal(refused, "org.apache.hadoop.hbase.DoNotRetryIOException");
    }
    assert_int_equal(tasks[0], 0);
    assert_int_equal(tasks[1], 2); /* one after the decoding, one after the translation */
    assert_int_equal(cells_of(f, "b1"), 0);
}

/* ---- Multi */

/* A region action of a put, a put of `cells` cells, a get of `columns` columns, and a put; and a
 * second region action of one put. */
static unsigned tasks_of_parts(fixture *f, size_t cells, size_t columns)
{
    Pb__RegionAction *list[2] = {on_region(f, 0, 4), on_region(f, 0, 1)};
    Pb__Column *column[1] = {columns_of_f(f, columns)};
    add_put(f, list[0], "d1", 1);
    add_cells(f, "d1", 1);
    add_put(f, list[0], "d2", (int32_t)cells);
    add_cells(f, "d2", cells);
    add_get(f, list[0], "a2");
    list[0]->action[2]->get->column = column;
    list[0]->action[2]->get->n_column = 1;
    add_put(f, list[0], "d3", 2);
    add_cells(f, "d3", 2);
    add_put(f, list[1], "d4", 3);
    add_cells(f, "d4", 3);
    unsigned before = f->world->posted;
    Pb__MultiResponse *r = multi(f, list, 2);
    unsigned tasks = f->world->posted - before;
    assert_non_null(r);
    assert_true(f->client.cells.len > 0);
    for (uint32_t i = 0; i < 5; i++)
        assert_string_equal(outcome(r, i / 4, i % 4), "");
    pb__multi_response__free_unpacked(r, NULL);
    assert_int_equal(cells_of(f, "d1"), 1);
    assert_int_equal(cells_of(f, "d2"), cells);
    assert_int_equal(cells_of(f, "d3"), 2);
    assert_int_equal(cells_of(f, "d4"), 3);
    return tasks;
}

static void long_parts_of_a_multi_are_translated_elsewhere(void **state)
{
    fixture *f = *state;
    (void)tasks_of_parts(f, 2, 10); /* brings the blocks into memory */
    unsigned few = tasks_of_parts(f, 10, 10);
    assert_true(tasks_of_parts(f, 10, 10000) > few);
    assert_true(tasks_of_parts(f, MANY, 10) > few);
}

/* A refused part must consume its cells, or the next part would take them. */
static void a_long_part_that_is_refused_is_alone(void **state)
{
    fixture *f = *state;
    Pb__RegionAction *list[2] = {on_region(f, 0, 2), on_region(f, 0, 2)};
    add_put(f, list[0], "e1", MANY + 1);
    add_cells(f, "e1", MANY);
    add_cell(f, "other", "x", "v");
    add_get(f, list[1], "a2");
    Pb__Column *column[1] = {columns_of_f(f, 10000)};
    list[1]->action[0]->get->column = column;
    list[1]->action[0]->get->n_column = 1;
    list[1]->action[0]->get->has_max_versions = 1;
    list[1]->action[0]->get->max_versions = 0;
    add_put(f, list[1], "e2", 1);
    add_cells(f, "e2", 1);
    Pb__MultiResponse *r = multi(f, list, 2);
    assert_non_null(r);
    assert_string_not_equal(outcome(r, 0, 0), "");
    assert_string_not_equal(outcome(r, 1, 0), "");
    assert_string_equal(outcome(r, 1, 1), "");
    pb__multi_response__free_unpacked(r, NULL);
    assert_int_equal(cells_of(f, "e1"), 0);
    assert_int_equal(cells_of(f, "e2"), 1);
}

/* RowMutations of two puts, before a put in another region action. */
static unsigned tasks_of_atomic(fixture *f, const char *row, size_t cells, bool is_wrong)
{
    Pb__RegionAction *list[2] = {on_region(f, 0, 2), on_region(f, 0, 1)};
    list[0]->has_atomic = list[0]->atomic = 1;
    add_put(f, list[0], row, (int32_t)cells);
    add_cells(f, row, cells);
    add_put(f, list[0], row, 1);
    add_cell(f, is_wrong ? "other" : row, "x", "v");
    add_put(f, list[1], "d5", 1);
    add_cells(f, "d5", 1);
    unsigned before = f->world->posted;
    Pb__MultiResponse *r = multi(f, list, 2);
    unsigned tasks = f->world->posted - before;
    assert_non_null(r);
    assert_int_equal(r->regionactionresult[0]->exception != NULL, is_wrong);
    assert_string_equal(outcome(r, 1, 0), "");
    pb__multi_response__free_unpacked(r, NULL);
    assert_int_equal(cells_of(f, row), is_wrong ? 0 : cells + 1);
    return tasks;
}

static void a_long_atomic_group_is_translated_elsewhere(void **state)
{
    fixture *f = *state;
    unsigned few = tasks_of_atomic(f, "d6", 10, false);
    assert_true(tasks_of_atomic(f, "d7", MANY, false) > few);
    (void)tasks_of_atomic(f, "d8", MANY, true);
}

/* None of the actions is executed, because the region does not exist. */
static unsigned tasks_of_strangers(fixture *f, size_t count)
{
    Pb__MultiRequest m = PB__MULTI_REQUEST__INIT;
    Pb__RegionAction *list[1] = {on_region(f, 0, count)};
    list[0]->region->value = bytes("0123456789abcdef0123456789abcdef");
    for (size_t i = 0; i < count; i++)
        add_get(f, list[0], "a0");
    m.regionaction = list;
    m.n_regionaction = 1;
    return tasks_of(f, "Multi", &m.base);
}

static void many_actions_are_looked_at_in_several_tasks(void **state)
{
    enum { COUNT = 20000 };
    fixture *f = *state;
    unsigned few = tasks_of_strangers(f, 10);
    assert_true(tasks_of_strangers(f, COUNT) >= few + COUNT / RQ_METER_STRETCH_STEPS);
}

static unsigned tasks_of_region_actions(fixture *f, size_t count)
{
    Pb__MultiRequest m = PB__MULTI_REQUEST__INIT;
    Pb__RegionAction *one = on_region(f, 0, 1);
    /* unknown region: one step each */
    one->region->value = bytes("0123456789abcdef0123456789abcdef");
    m.regionaction = rq_arena_calloc(&f->arena, count, sizeof *m.regionaction);
    for (; m.n_regionaction < count; m.n_regionaction++)
        m.regionaction[m.n_regionaction] = one;
    return tasks_of(f, "Multi", &m.base);
}

static void many_region_actions_are_counted_elsewhere(void **state)
{
    fixture *f = *state;
    unsigned few = tasks_of_region_actions(f, 1000);
    assert_int_equal(tasks_of_region_actions(f, 1500), few + 1);
}

/* Each action gets an exception. */
static unsigned tasks_of_nothing(fixture *f, size_t count)
{
    Pb__RegionAction *list[1] = {on_region(f, 0, count)};
    for (size_t i = 0; i < count; i++)
        (void)action(f, list[0]);
    unsigned before = f->world->posted;
    Pb__MultiResponse *r = multi(f, list, 1);
    unsigned tasks = f->world->posted - before;
    assert_non_null(r);
    assert_int_equal(r->regionactionresult[0]->n_resultorexception, count);
    for (size_t i = 0; i < count; i++)
        assert_non_null(r->regionactionresult[0]->resultorexception[i]->exception);
    assert_int_equal(r->regionactionresult[0]->resultorexception[count - 1]->index, count - 1);
    pb__multi_response__free_unpacked(r, NULL);
    return tasks;
}

static void the_long_answer_of_a_multi_is_packed_elsewhere(void **state)
{
    fixture *f = *state;
    for (unsigned hello = 0; hello < SERVICE_HELLOS; hello++) {
        service_client_close(&f->client);
        service_client_open(&f->client, f->world, SERVICE_CLIENT, hello);
        unsigned few = tasks_of_nothing(f, 300);
        assert_int_equal(tasks_of_nothing(f, 1000), few + 1);
    }
}

/* The response's message is moved to the output, followed by its cells. */
static void a_long_answer_with_cells_is_whole(void **state)
{
    fixture *f = *state;
    enum { COUNT = 1000 };
    Pb__RegionAction *list[1] = {on_region(f, 0, COUNT + 1)};
    for (size_t i = 0; i < COUNT; i++)
        (void)action(f, list[0]);
    add_get(f, list[0], "a2");
    size_t cells = cells_of(f, "a2");
    Pb__MultiResponse *r = multi(f, list, 1);
    assert_non_null(r);
    const Pb__ResultOrException *got = r->regionactionresult[0]->resultorexception[COUNT];
    assert_non_null(got->result);
    assert_int_equal(got->result->associated_cell_count, cells);
    assert_true(f->client.cells.len > 0);
    pb__multi_response__free_unpacked(r, NULL);
    assert_int_equal(cells_of(f, "a2"), cells);
}

/* ---- long values */

static const unsigned PLAIN = 2; /* the hello of clients without a codec */

/* The loop's tasks for a get of the row, with the value in the message or in a cell block; checks
 * the response's length. */
static unsigned tasks_of_row(fixture *f, const char *row, size_t len)
{
    Pb__GetRequest g = PB__GET_REQUEST__INIT;
    g.region = region(f, 0);
    g.get = MADE(f, get);
    g.get->row = bytes(row);
    unsigned tasks = tasks_of(f, "Get", &g.base);
    assert_true(f->client.message.len + f->client.cells.len >= len);
    return tasks;
}

static unsigned tasks_of_multi(fixture *f, const char *first, const char *second)
{
    Pb__RegionAction *list[1] = {on_region(f, 0, 2)};
    add_get(f, list[0], first);
    add_get(f, list[0], second);
    unsigned before = f->world->posted;
    Pb__MultiResponse *r = multi(f, list, 1);
    unsigned tasks = f->world->posted - before;
    assert_non_null(r);
    for (size_t i = 0; i < 2; i++) {
        const Pb__Result *result = r->regionactionresult[0]->resultorexception[i]->result;
        assert_int_equal(result->n_cell + (size_t)result->associated_cell_count, 1);
    }
    pb__multi_response__free_unpacked(r, NULL);
    return tasks;
}

static unsigned tasks_of_scan(fixture *f, const char *row)
{
    Pb__ScanRequest s = PB__SCAN_REQUEST__INIT;
    s.region = region(f, 0);
    s.scan = MADE(f, scan);
    s.scan->has_start_row = s.scan->has_stop_row = s.scan->has_include_stop_row = 1;
    s.scan->start_row = s.scan->stop_row = bytes(row);
    s.scan->include_stop_row = 1;
    s.has_number_of_rows = s.has_close_scanner = 1;
    s.number_of_rows = 10;
    s.close_scanner = 1;
    return tasks_of(f, "Scan", &s.base);
}

static void put_value(fixture *f, const char *row, size_t len)
{
    char *value = rq_arena_alloc(&f->arena, len + 1);
    memset(value, 'v', len);
    value[len] = '\0';
    Pb__MutateRequest m = put_of(f, row);
    m.mutation->has_associated_cell_count = 1;
    m.mutation->associated_cell_count = 1;
    add_cell(f, row, "q", value);
    assert_null(send_call(f, "Mutate", &m.base));
}

/* The loop neither copies the value nor encodes the message. */
static void long_values_are_answered_elsewhere(void **state)
{
    fixture *f = *state;
    put_value(f, "b1", 100);
    put_value(f, "b2", (size_t)2 << 20);
    for (unsigned hello = 0; hello < SERVICE_HELLOS; hello++) {
        service_client_close(&f->client);
        service_client_open(&f->client, f->world, SERVICE_CLIENT, hello);
        unsigned more = 1 + (hello == PLAIN); /* one task after copying, one after encoding */
        assert_true(tasks_of_row(f, "b2", (size_t)2 << 20) >= tasks_of_row(f, "b1", 100) + more);
        assert_true(tasks_of_multi(f, "b1", "b2") >= tasks_of_multi(f, "b1", "b1") + more);
        assert_true(tasks_of_scan(f, "b2") >= tasks_of_scan(f, "b1") + more);
    }
}

/* An append of `len` bytes `fill`, in the message. */
static Pb__MutationProto *append_of(fixture *f, const char *row, size_t len, char fill)
{
    Pb__MutationProto *m = MADE(f, mutation_proto);
    m->has_row = m->has_mutate_type = 1;
    m->mutate_type = PB__MUTATION_PROTO__MUTATION_TYPE__APPEND;
    m->row = bytes(row);
    m->column_value = rq_arena_calloc(&f->arena, 1, sizeof *m->column_value);
    m->column_value[0] = values_of_f(f, 1);
    m->n_column_value = 1;
    char *value = rq_arena_alloc(&f->arena, len + 1);
    memset(value, fill, len);
    value[len] = '\0';
    m->column_value[0]->qualifier_value[0]->value = bytes(value);
    return m;
}

#define LONG_RESULT ((size_t)300 * 1024)

static unsigned tasks_of_append(fixture *f, const char *row, size_t len)
{
    Pb__MutateRequest m = PB__MUTATE_REQUEST__INIT;
    m.region = region(f, 0);
    m.mutation = append_of(f, row, len, 'a');
    unsigned tasks = tasks_of(f, "Mutate", &m.base);
    assert_true(f->client.message.len + f->client.cells.len >= len);
    Pb__MutateResponse *r =
        pb__mutate_response__unpack(NULL, f->client.message.len, f->client.message.ptr);
    assert_non_null(r);
    assert_int_equal(r->result->n_cell + (size_t)r->result->associated_cell_count, 1);
    if (r->result->n_cell > 0) assert_int_equal(r->result->cell[0]->value.len, len);
    pb__mutate_response__free_unpacked(r, NULL);
    return tasks;
}

static const size_t appended[] = {10, LONG_RESULT, 20, LONG_RESULT + 1, LONG_RESULT + 2, 30};

static void check_appended(const fixture *f, const Pb__RegionActionResult *answer)
{
    rq_cursor cells = rq_cursor_of(rq_buf_slice(&f->client.cells));
    for (size_t i = 0; i < RQ_ARRAY_LEN(appended); i++) {
        const Pb__Result *one = answer->resultorexception[i]->result;
        rq_slice value = {0};
        rq_cell c;
        assert_non_null(one);
        assert_int_equal(one->n_cell + (size_t)one->associated_cell_count, 1);
        if (one->n_cell == 0) {
            assert_int_equal(rq_cellblock_next(&cells, &c, NULL), RQ_OK);
            value = rq_cell_value(&c);
        } else {
            value = rq_slice_of(one->cell[0]->value.data, one->cell[0]->value.len);
        }
        assert_int_equal(value.len, appended[i]);
        assert_int_equal(value.ptr[0], 'a' + (int)i);
        assert_int_equal(value.ptr[value.len - 1], 'a' + (int)i);
    }
    assert_int_equal(rq_cursor_left(&cells), 0);
}

/* Appends to separate rows, whose names begin with `rows`. */
static unsigned tasks_of_appends(fixture *f, const char *rows, bool is_long)
{
    Pb__RegionAction *list[1] = {on_region(f, 0, RQ_ARRAY_LEN(appended))};
    for (size_t i = 0; i < RQ_ARRAY_LEN(appended); i++) {
        const char *row = rq_arena_printf(&f->arena, "%s%zu", rows, i);
        size_t len = is_long || appended[i] < LONG_RESULT ? appended[i] : 5;
        action(f, list[0])->mutation = append_of(f, row, len, (char)('a' + (int)i));
    }
    unsigned before = f->world->posted;
    Pb__MultiResponse *r = multi(f, list, 1);
    unsigned tasks = f->world->posted - before;
    assert_non_null(r);
    if (is_long) check_appended(f, r->regionactionresult[0]);
    pb__multi_response__free_unpacked(r, NULL);
    return tasks;
}

/* Results of appends and increments are moved, or joined and encoded on a pool; each result is in
 * its place. */
static void long_results_of_writes_are_not_copied_on_the_loop(void **state)
{
    fixture *f = *state;
    for (unsigned hello = 0; hello < SERVICE_HELLOS; hello++) {
        service_client_close(&f->client);
        service_client_open(&f->client, f->world, SERVICE_CLIENT, hello);
        bool plain = hello == PLAIN || hello == PLAIN + 2;
        const char *name = rq_arena_printf(&f->arena, "c%u", hello);
        unsigned few = tasks_of_append(f, rq_arena_printf(&f->arena, "%ss", name), 100);
        assert_true(tasks_of_append(f, rq_arena_printf(&f->arena, "%sl", name), LONG_RESULT) >=
                    few + plain);
        few = tasks_of_appends(f, rq_arena_printf(&f->arena, "%sm", name), false);
        assert_true(tasks_of_appends(f, rq_arena_printf(&f->arena, "%sn", name), true) > few);
    }
}

/* ---- endpoints */

static Pb__CoprocessorServiceCall *mutate_rows(fixture *f, size_t count, const char *last)
{
    Pb__MutateRowsRequest rows = PB__MUTATE_ROWS_REQUEST__INIT;
    Pb__CoprocessorServiceCall *call = MADE(f, coprocessor_service_call);
    rows.mutation_request = rq_arena_calloc(&f->arena, count, sizeof *rows.mutation_request);
    for (; rows.n_mutation_request < count; rows.n_mutation_request++) {
        Pb__MutationProto *m = MADE(f, mutation_proto);
        bool is_last = rows.n_mutation_request + 1 == count;
        m->has_row = m->has_mutate_type = 1;
        m->mutate_type = PB__MUTATION_PROTO__MUTATION_TYPE__DELETE;
        m->row = bytes(is_last ? last : "some-row");
        rows.mutation_request[rows.n_mutation_request] = m;
    }
    size_t len = pb__mutate_rows_request__get_packed_size(&rows);
    call->request = (ProtobufCBinaryData){len, rq_arena_alloc(&f->arena, len)};
    (void)pb__mutate_rows_request__pack(&rows, call->request.data);
    call->row = bytes("a0");
    call->service_name = (char *)(uintptr_t) "MultiRowMutationService";
    call->method_name = (char *)(uintptr_t) "MutateRows";
    return call;
}

static void a_long_call_of_a_service_is_translated_elsewhere(void **state)
{
    fixture *f = *state;
    enum { COUNT = 2000 };
    Pb__CoprocessorServiceRequest e = PB__COPROCESSOR_SERVICE_REQUEST__INIT;
    e.region = region(f, 2);
    e.call = mutate_rows(f, 2, "b");
    unsigned few = tasks_of(f, "ExecService", &e.base);
    e.call = mutate_rows(f, COUNT, "b");
    assert_true(tasks_of(f, "ExecService", &e.base) > few);
    e.call = mutate_rows(f, COUNT, "");
    assert_non_null(send_call(f, "ExecService", &e.base));
}

/* Puts of an earlier region action must not be answered while the pool uses the call's memory, so
 * the batch waits for them. */
static void a_long_call_of_a_service_in_a_multi_is_alone(void **state)
{
    fixture *f = *state;
    Pb__MultiRequest m = PB__MULTI_REQUEST__INIT;
    Pb__RegionAction *list[3];
    m.regionaction = list;
    m.n_regionaction = 3;
    for (size_t i = 0; i < 3; i++) {
        list[i] = on_region(f, i == 1 ? 2 : 0, 2);
        if (i == 1) {
            action(f, list[i])->service_call = mutate_rows(f, 2000, "b");
            action(f, list[i])->service_call = mutate_rows(f, 2, "b");
        } else {
            add_put(f, list[i], i == 0 ? "d4" : "d5", 1);
            add_cell(f, i == 0 ? "d4" : "d5", "x", "1");
        }
    }
    assert_null(send_call(f, "Multi", &m.base));
    Pb__MultiResponse *r =
        pb__multi_response__unpack(NULL, f->client.message.len, f->client.message.ptr);
    assert_non_null(r);
    assert_int_equal(r->n_regionactionresult, 3);
    for (size_t i = 0; i < 3; i++) {
        const Pb__RegionActionResult *group = r->regionactionresult[i];
        assert_int_equal(group->n_resultorexception, i == 1 ? 2 : 1);
        for (size_t k = 0; k < group->n_resultorexception; k++)
            assert_null(group->resultorexception[k]->exception);
    }
    pb__multi_response__free_unpacked(r, NULL);
    assert_int_equal(cells_of(f, "d4"), 1);
    assert_int_equal(cells_of(f, "d5"), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, requests_begin, requests_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_long_get_is_translated_elsewhere),
        TEST(the_opening_of_a_long_scan_is_translated_elsewhere),
        TEST(a_long_mutation_is_translated_elsewhere),
        TEST(a_long_mutation_of_messages_is_translated_elsewhere),
        TEST(tiny_fields_are_decoded_elsewhere),
        TEST(long_parts_of_a_multi_are_translated_elsewhere),
        TEST(a_long_part_that_is_refused_is_alone),
        TEST(a_long_atomic_group_is_translated_elsewhere),
        TEST(many_actions_are_looked_at_in_several_tasks),
        TEST(many_region_actions_are_counted_elsewhere),
        TEST(the_long_answer_of_a_multi_is_packed_elsewhere),
        TEST(a_long_answer_with_cells_is_whole),
        TEST(long_values_are_answered_elsewhere),
        TEST(long_results_of_writes_are_not_copied_on_the_loop),
        TEST(a_long_call_of_a_service_is_translated_elsewhere),
        TEST(a_long_call_of_a_service_in_a_multi_is_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
