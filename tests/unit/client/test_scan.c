/* SPDX-License-Identifier: Apache-2.0 */
/* A scan of a server that sends parts of rows and heartbeats, and loses scanners: a script lists its responses.
 *
 * A response is a list of results "ROW:QUALIFIERS", separated by "|". "+" after a result: more cells of the row may
 * follow. A cell whose qualifier is a capital letter has a tag. "~" alone is a heartbeat, "" a response without
 * results, "!" an unknown scanner, "?" a response whose cells are missing; "." at the end: the table has no more rows.
 * Cells are in a block, or (after "^") in the message; a response that begins with "@" is from a replica. */
#include "fake.h"

#include "client/op_priv.h"

#include "base/macros.h"
#include "base/pb.h"
#include "cell/cellblock.h"

#define ANSWERS_MAX 8

static const uint8_t tag[] = {0, 2, 8, 'T'};

/* Written before the server runs, and read after it has ended. */
typedef struct script {
    const char *answers[ANSWERS_MAX];
    unsigned calls;   /* answered calls */
    unsigned partial; /* calls that accept parts of rows */
    unsigned closes;  /* calls that close a scanner */
} script;

typedef struct server {
    fake fake;
    script *script;
} server;

/* --- answers ---------------------------------------------------------------------------------- */

static bool has_tag(char qualifier)
{
    return qualifier >= 'A' && qualifier <= 'Z';
}

static void add_cells(rq_cellblock *cells, char row, const char *qualifiers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const rq_cell cell = {.row = (const uint8_t *)&row,
                              .row_len = 1,
                              .family = (const uint8_t *)"f",
                              .family_len = 1,
                              .qualifier = (const uint8_t *)qualifiers + i,
                              .qualifier_len = 1,
                              .value = (const uint8_t *)"v",
                              .value_len = 1,
                              .timestamp = 1,
                              .type = RQ_TYPE_PUT,
                              .tags = tag,
                              .tags_len = has_tag(qualifiers[i]) ? sizeof tag : 0};
        assert_int_equal(rq_cellblock_append(cells, &cell), RQ_OK);
    }
}

/* Appends Result { cell 1 { row 1, family 2, qualifier 3, timestamp 4, cell_type 5, value 6, tags 7
 * }, partial 5 } as the message's field 5. */
static void add_result(rq_buf *message, char row, const char *qualifiers, size_t count,
                       bool partial)
{
    size_t result, cell;
    assert_int_equal(rq_pb_begin(message, 5, &result), RQ_OK);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(rq_pb_begin(message, 1, &cell), RQ_OK);
        assert_int_equal(rq_pb_put_bytes(message, 1, rq_slice_of((uint8_t *)&row, 1)), RQ_OK);
        assert_int_equal(rq_pb_put_bytes(message, 2, RQ_SLICE_LIT("f")), RQ_OK);
        assert_int_equal(rq_pb_put_bytes(message, 3, rq_slice_of((uint8_t *)qualifiers + i, 1)),
                         RQ_OK);
        assert_int_equal(rq_pb_put_number(message, 4, 1), RQ_OK);
        assert_int_equal(rq_pb_put_number(message, 5, RQ_TYPE_PUT), RQ_OK);
        assert_int_equal(rq_pb_put_bytes(message, 6, RQ_SLICE_LIT("v")), RQ_OK);
        if (has_tag(qualifiers[i]))
            assert_int_equal(rq_pb_put_bytes(message, 7, rq_slice_of(tag, sizeof tag)), RQ_OK);
        assert_int_equal(rq_pb_end(message, cell), RQ_OK);
    }
    assert_int_equal(rq_pb_put_number(message, 5, partial), RQ_OK);
    assert_int_equal(rq_pb_end(message, result), RQ_OK);
}

/* ScanResponse { cells_per_result 1, scanner_id 2, more_results 3, stale 6, partial_flag_per_result 7,
 * more_results_in_region 8, heartbeat_message 9 }. */
static void put_scan(const char *text, rq_buf *message, rq_cellblock *cells)
{
    bool ends = strchr(text, '.') != NULL, stale = *text == '@';
    text += stale;
    bool in_message = *text == '^';
    text += in_message;
    if (stale) assert_int_equal(rq_pb_put_number(message, 6, 1), RQ_OK);
    assert_int_equal(rq_pb_put_number(message, 2, 7), RQ_OK);
    assert_int_equal(rq_pb_put_number(message, 3, !ends), RQ_OK);
    assert_int_equal(rq_pb_put_number(message, 8, !ends), RQ_OK);
    if (*text == '?') assert_int_equal(rq_pb_put_number(message, 1, 1), RQ_OK);
    if (*text == '~') assert_int_equal(rq_pb_put_number(message, 9, 1), RQ_OK);
    while (text[0] != '\0' && text[1] == ':') {
        size_t count = strspn(text + 2, "qrstuvwxyzTUVWXYZ");
        const char *behind = text + 2 + count;
        if (in_message) {
            add_result(message, text[0], text + 2, count, *behind == '+');
        } else {
            add_cells(cells, text[0], text + 2, count);
            assert_int_equal(rq_pb_put_number(message, 1, count), RQ_OK);
            assert_int_equal(rq_pb_put_number(message, 7, *behind == '+'), RQ_OK);
        }
        text = behind + (*behind == '+');
        if (*text == '|') text++;
    }
}

/* ResponseHeader { call_id 1, exception 2 { exception_class_name 1 }, cell_block_meta 3 { length 1 } } */
static void put_answer(rq_buf *out, uint64_t id, const char *text)
{
    rq_buf head = {0}, message = {0}, b = {0};
    rq_cellblock cells = {.with_tags = true};
    size_t at;
    bool fails = *text == '!';
    if (!fails) put_scan(text, &message, &cells);
    assert_int_equal(rq_pb_put_number(&head, 1, id), RQ_OK);
    assert_int_equal(rq_pb_begin(&head, fails ? 2 : 3, &at), RQ_OK);
    if (fails)
        assert_int_equal(
            rq_pb_put_bytes(&head, 1,
                            RQ_SLICE_LIT("org.apache.hadoop.hbase.UnknownScannerException")),
            RQ_OK);
    else
        assert_int_equal(rq_pb_put_number(&head, 1, cells.bytes.len), RQ_OK);
    assert_int_equal(rq_pb_end(&head, at), RQ_OK);
    assert_int_equal(rq_buf_append_varint(&b, head.len), RQ_OK);
    assert_int_equal(rq_buf_append(&b, head.ptr, head.len), RQ_OK);
    if (!fails) {
        assert_int_equal(rq_buf_append_varint(&b, message.len), RQ_OK);
        assert_int_equal(rq_buf_append(&b, message.ptr, message.len), RQ_OK);
        if (cells.count > 0)
            assert_int_equal(rq_buf_append(&b, cells.bytes.ptr, cells.bytes.len), RQ_OK);
    }
    put_frame(out, &b);
    rq_buf_clear(&head);
    rq_buf_clear(&message);
    rq_buf_clear(&b);
    rq_cellblock_clear(&cells);
}

/* RequestHeader { call_id 1 }, ScanRequest { close_scanner 5, client_handles_partials 7,
 * client_handles_heartbeats 8 }. Returns false at the end, or if the call closes a scanner. */
static bool read_call(int fd, script *s, uint64_t *ret_id)
{
    uint8_t length[4], frame[4096];
    rq_slice header, message;
    rq_pb_field f;
    bool parts = false, heartbeats = false;
    if (!fake_read(fd, length, sizeof length)) return false;
    uint32_t len = rq_get_be32(length);
    if (len > sizeof frame || !fake_read(fd, frame, len)) return false;
    rq_cursor c = rq_cursor_of(rq_slice_of(frame, len));
    if (!rq_pb_delimited(&c, &header) || !rq_pb_delimited(&c, &message)) return false;
    for (c = rq_cursor_of(header); rq_pb_next(&c, &f) == RQ_OK;)
        if (f.number == 1) *ret_id = f.value;
    for (c = rq_cursor_of(message); rq_pb_next(&c, &f) == RQ_OK;) {
        if (f.number == 5 && f.value != 0) {
            s->closes++;
            return false;
        }
        if (f.number == 7) parts = f.value != 0;
        if (f.number == 8) heartbeats = f.value != 0;
    }
    s->partial += parts && heartbeats;
    return true;
}

static void serve_script(fake *f, int fd)
{
    script *s = RQ_CONTAINER_OF(f, server, fake)->script;
    char preamble[6];
    uint64_t id = 0;
    if (!fake_read(fd, preamble, sizeof preamble) || !skip_frame(fd)) return;
    while (read_call(fd, s, &id)) {
        rq_buf answer = {0};
        if (s->calls == ANSWERS_MAX || s->answers[s->calls] == NULL) return;
        put_answer(&answer, id, s->answers[s->calls++]);
        bool sent = fake_send(f, fd, &answer);
        rq_buf_clear(&answer);
        if (!sent) return;
    }
    wait_for_end(fd);
}

/* --- the scan --------------------------------------------------------------------------------- */

/* A receiver that reads no cells of a result, the first cells, or a copy of all. */
typedef enum reading { READS_NONE, READS_FIRST, READS_COPY, READINGS } reading;

typedef struct seen {
    reading reads; /* used by read_some */
    char items[256];
    rq_err end;
    bool goes_on;
    unsigned ends;
    rq_scan_metrics metrics;
} seen;

static void take_item(rq_op *op, void *ctx, uint32_t index, rq_op_result *r)
{
    seen *s = ctx;
    rq_cell cell;
    size_t len = strlen(s->items), cells = 0;
    (void)op, (void)index;
    while (rq_result_next(&r->row, &r->cells, &cell) == RQ_OK) {
        if (cells++ == 0)
            len += (size_t)snprintf(s->items + len, sizeof s->items - len,
                                    "%s%c:", len > 0 ? " " : "", cell.row[0]);
        len += (size_t)snprintf(s->items + len, sizeof s->items - len, "%c%s", cell.qualifier[0],
                                cell.tags_len > 0 ? "'" : "");
    }
    snprintf(s->items + len, sizeof s->items - len, "%s%s", r->row.partial ? "+" : "",
             r->row.stale ? "@" : "");
}

static void read_some(rq_op *op, void *ctx, uint32_t index, rq_op_result *r)
{
    seen *s = ctx;
    rq_op_result copy = *r;
    rq_cell cell;
    size_t len = strlen(s->items);
    (void)op;
    snprintf(s->items + len, sizeof s->items - len, "%u", index);
    if (s->reads == READS_FIRST) assert_int_equal(rq_result_next(&r->row, &r->cells, &cell), RQ_OK);
    while (s->reads == READS_COPY && rq_result_next(&copy.row, &copy.cells, &cell) == RQ_OK)
        continue;
}

static void take_end(rq_op *op, void *ctx, const rq_op_result *r)
{
    seen *s = ctx;
    s->end = r->err;
    s->goes_on = r->goes_on;
    s->ends++;
    s->metrics = *rq_op_scan_metrics(op);
}

/* A client, its two servers, and an operation. */
typedef struct world {
    server one;
    fake zookeeper;
    seen all;
    rq_client *c;
    rq_client_table *table;
    rq_op *op;
} world;

static void set_up(world *w, script *responses)
{
    rq_error why;
    *w = (world){.one = {.fake.limit = SIZE_MAX, .script = responses},
                 .zookeeper.limit = SIZE_MAX,
                 .all.end = RQ_E_AGAIN};
    fake_start(&w->one.fake, serve_script);
    fake_start(&w->zookeeper, serve_zookeeper);
    put_zookeeper(&w->zookeeper.answers[0], w->one.fake.port, w->one.fake.port);
    fake_run(&w->one.fake);
    fake_run(&w->zookeeper);
    assert_int_equal(open_by(&w->zookeeper, true, &w->c, &why), RQ_OK);
    assert_int_equal(rq_client_table_get(w->c, "hbase:meta", &w->table), RQ_OK);
    assert_int_equal(rq_op_new(w->c, 0, &w->all, &w->op), RQ_OK);
}

/* Polls until the scan, or a step of it, has ended. */
static void work(world *w)
{
    int64_t until = rq_client_now_ns() + 30 * SECOND_NS;
    while (w->all.end == RQ_E_AGAIN && rq_client_now_ns() < until)
        rq_client_poll(w->c, SECOND_NS / 100);
}

static void tear_down(world *w)
{
    rq_client_stop(w->c);
    rq_op_free(w->op);
    rq_client_close(w->c);
    fake_stop(&w->zookeeper);
    fake_stop(&w->one.fake);
}

/* How responses are requested: when needed, or ahead; with steps the caller starts each step, in
 * STEPS_LATE after the response ahead has arrived. */
typedef enum manner { NEEDED, AHEAD, STEPS, STEPS_AHEAD, STEPS_LATE, MANNERS } manner;

static void begin(world *w, const rq_scan *scan, manner how)
{
    rq_scan s = *scan;
    s.fetches_ahead = how == AHEAD || how >= STEPS_AHEAD;
    s.is_stepwise = how >= STEPS;
    assert_int_equal(rq_op_scan(w->op, w->table, &s, take_item, take_end), RQ_OK);
    work(w);
}

/* Waits until the request sent ahead is answered. */
static void let_arrive(world *w)
{
    int64_t until = rq_client_now_ns() + 30 * SECOND_NS;
    while (rq__ahead_is_sent(w->op) && rq_client_now_ns() < until)
        rq_client_poll(w->c, SECOND_NS / 100);
}

static void step(world *w, manner how)
{
    if (how == STEPS_LATE) let_arrive(w);
    w->all.end = RQ_E_AGAIN;
    rq_op_scan_step(w->op);
    work(w);
}

/* The scan must request all responses, and return these items. */
static rq_scan_metrics expect_in(manner how, const rq_scan *scan, script *responses,
                                 const char *expected)
{
    world w;
    unsigned answers = 0;
    set_up(&w, responses);
    begin(&w, scan, how);
    while (w.all.end == RQ_OK && w.all.goes_on)
        step(&w, how);
    tear_down(&w);
    while (answers < ANSWERS_MAX && responses->answers[answers] != NULL)
        answers++;
    assert_string_equal(w.all.items, expected);
    assert_int_equal(w.all.end, RQ_OK);
    assert_int_equal(responses->calls, answers);
    assert_int_equal(responses->partial, answers);
    return w.all.metrics;
}

static rq_scan_metrics expect_items(const rq_scan *scan, const script *responses,
                                    const char *expected)
{
    rq_scan_metrics m = {0};
    for (manner how = NEEDED; how < MANNERS; how++) {
        script again = *responses;
        m = expect_in(how, scan, &again, expected);
    }
    return m;
}

#define EXPECT(scan, expected, ...)                                                                \
    expect_items(&(const rq_scan)scan, &(script){.answers = {__VA_ARGS__}}, expected)
#define SCAN(...)                                                                                  \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static void parts_become_rows(void **state)
{
    (void)state;
    EXPECT(SCAN(0), "a:xy b:z", "a:x+", "~", "a:y", "b:z.");
    EXPECT(SCAN(0), "a:xy b:z", "a:x+", "a:y+", "b:z.");
    EXPECT(SCAN(0), "a:xy b:z", "a:x+|a:y+", "", "b:z.");
    EXPECT(SCAN(0), "a:xy", "a:x+", "a:y+", ".");
    EXPECT(SCAN(0), "a:xy b:z", "a:x+", "!", "a:xy", "b:z.");
}

/* A batch has the requested number of cells, however many the server sends at once. HBASE:
 * BatchScanResultCache. */
static void parts_become_batches(void **state)
{
    (void)state;
    EXPECT(SCAN(.batch = 2), "a:vw+ a:xy b:z", "a:v+", "~", "a:wx+", "a:y", "b:z.");
    EXPECT(SCAN(.batch = 2), "a:vw+ a:xy+ b:z", "a:vw+", "a:xy+", "b:z.");
    EXPECT(SCAN(.batch = 2), "a:vw+ a:x b:z", "a:vw+|a:x+", "b:z.");
    EXPECT(SCAN(.batch = 3), "a:vwx+ b:z", "a:v+", "a:wx+", "", "b:z.");
    EXPECT(SCAN(.batch = 2), "a:vw+ a:xy+ a:z", "a:vwxyz.");
    EXPECT(SCAN(.batch = 1), "", ".");
    EXPECT(SCAN(.batch = 2), "a:vw+ a:xy b:z", "^a:v+", "^a:wx+", "^a:y", "^b:z.");
    EXPECT(SCAN(.batch = 2), "a:vw+ a:x", "^a:vw+", "!", "^a:vw+", "^a:x.");
}

/* The scan continues after the last cell that was passed on, wherever in a result it is; also if
 * this cell no longer exists. */
static void a_batch_goes_on_after_a_failure(void **state)
{
    (void)state;
    EXPECT(SCAN(.batch = 2), "a:vw+ a:xy+ a:z b:q", "a:vw+", "a:x+", "!", "a:vw+|a:xy+",
           "a:z|b:q.");
    EXPECT(SCAN(.batch = 2), "a:vw+ a:xy", "a:vw+", "!", "a:v+", "a:wx+", "a:y.");
    EXPECT(SCAN(.batch = 2), "a:vw+ a:xy", "a:vw+", "!", "a:wx+", "a:y.");
    EXPECT(SCAN(.batch = 2), "a:vw+ a:xy", "a:vw+", "!", "a:vx+", "a:y.");
    EXPECT(SCAN(.batch = 2), "a:vw+ b:q", "a:vw+", "!", "a:vw+", "b:q.");
    EXPECT(SCAN(.batch = 2), "a:vw+ b:q", "a:vw+", "!", "b:q.");
}

/* A row that is returned in parts counts when the server reports its end. */
static void rows_in_parts_count(void **state)
{
    (void)state;
    EXPECT(SCAN(.batch = 1, .limit = 1), "a:v+ a:w+", "a:v+", "a:w+", "");
    EXPECT(SCAN(.batch = 1, .limit = 2), "a:v+ a:w b:x", "a:v+", "~", "a:w|b:x");
    EXPECT(SCAN(.batch = 2, .limit = 1), "a:v", "a:v+", "");
}

static void parts_keep_their_tags(void **state)
{
    (void)state;
    EXPECT(SCAN(0), "a:X'y b:Z'", "a:X+", "a:y", "b:Z.");
    EXPECT(SCAN(.batch = 2), "a:V'W'+ a:X' b:z", "^a:V+", "^a:W+", "!", "^a:VWX", "^b:z.");
}

/* HBASE: Result.createCompleteResult: a row is stale if one of its parts is. */
static void rows_of_replicas_are_stale_in_parts_too(void **state)
{
    (void)state;
    EXPECT(SCAN(0), "a:xy@ b:z", "@a:x+", "a:y", "b:z.");
    EXPECT(SCAN(0), "a:xy@ b:z@", "a:x+", "@a:y|b:z.");
    EXPECT(SCAN(.batch = 1), "a:x+@ a:y+@ b:z", "@a:xy+", "b:z.");
}

/* Cells are counted on arrival, also those that are received twice. HBASE:
 * ConnectionUtils.updateResultsMetrics. */
static void metrics_count_calls_and_cells(void **state)
{
    (void)state;
    const rq_scan scan = {.counts_metrics = true};
    script responses = {.answers = {"a:x+", "~", "!", "a:xy", "b:z."}};
    rq_scan_metrics m = expect_items(&scan, &responses, "a:xy b:z");
    assert_int_equal(m.values[RQ_SCAN_RPC_CALLS], 5);
    assert_int_equal(m.values[RQ_SCAN_RPC_RETRIES], 1);
    assert_int_equal(m.values[RQ_SCAN_REGIONS_SCANNED], 1);
    assert_int_equal(m.values[RQ_SCAN_NOT_SERVING_REGION_EXCEPTION], 0);
    assert_int_equal(m.values[RQ_SCAN_BYTES_IN_RESULTS], 4 * (4 + 8 + 2 + 1 + 1 + 1 + 1 + 9 + 1));
}

/* The response to the outstanding request is the last, even if the step would need more. */
static void an_abandoned_step_asks_for_nothing_more(void **state)
{
    (void)state;
    const rq_scan scan = {.is_stepwise = true};
    const struct {
        script responses;
        unsigned calls;
        rq_err end;
    } cases[] = {{{.answers = {"a:x", "~", "~", "~", "b:y."}}, 2, RQ_E_CANCELLED},
                 {{.answers = {"a:x", "!", "~", "b:y."}}, 2, RQ_E_CANCELLED},
                 {{.answers = {"a:x", "b:y", "c:z."}}, 2, RQ_OK},
                 {{.answers = {"a:x", "b:y."}}, 2, RQ_OK}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world w;
        script responses = cases[i].responses;
        set_up(&w, &responses);
        assert_int_equal(rq_op_scan(w.op, w.table, &scan, take_item, take_end), RQ_OK);
        work(&w);
        assert_int_equal(w.all.end, RQ_OK);
        w.all.end = RQ_E_AGAIN;
        rq_op_scan_step(w.op);
        rq_op_scan_abandon(w.op);
        work(&w);
        tear_down(&w);
        assert_int_equal(w.all.end, cases[i].end);
        assert_int_equal(responses.calls, cases[i].calls);
    }
}

/* --- requests that are sent ahead ------------------------------------------------------------- */

static uint64_t calls_of(const world *w)
{
    return rq_client_traffic_now(w->c).calls;
}

/* Requests are sent ahead from the third on; a scan with a limit sends none. */
static void requests_are_sent_ahead(void **state)
{
    (void)state;
    static const struct {
        manner how;
        unsigned limit;
        unsigned sent; /* requests after the second step, including the first two */
    } cases[] = {{STEPS, 0, 2}, {STEPS_AHEAD, 0, 3}, {STEPS_AHEAD, 9, 2}};
    for (size_t i = 0; i < RQ_ARRAY_LEN(cases); i++) {
        world w;
        const rq_scan scan = {.limit = cases[i].limit};
        script responses = {.answers = {"a:x", "b:y", "c:z", "d:q."}};
        set_up(&w, &responses);
        begin(&w, &scan, cases[i].how);
        uint64_t first = calls_of(&w);
        step(&w, cases[i].how);
        assert_int_equal(calls_of(&w) - first + 1, cases[i].sent);
        tear_down(&w);
        assert_string_equal(w.all.items, "a:x b:y");
    }
}

/* The scanner is closed after the server has answered, because it cannot be closed while the server
 * reads from it. */
static void a_scan_that_ends_early_closes_its_scanner(void **state)
{
    (void)state;
    static const struct {
        const char *last;
        manner how;
        bool frees;
        unsigned closes;
    } cases[] = {{"c:z", STEPS_AHEAD, false, 1}, {"c:z", STEPS_AHEAD, true, 1},
                 {"c:z.", STEPS_AHEAD, true, 0}, {"!", STEPS_AHEAD, false, 0},
                 {"c:z", STEPS_LATE, false, 1},  {"c:z.", STEPS_LATE, false, 0},
                 {"!", STEPS_LATE, true, 0},     {"?", STEPS_LATE, false, 1}};
    for (size_t i = 0; i < RQ_ARRAY_LEN(cases); i++) {
        world w;
        script responses = {.answers = {"a:x", "b:y", cases[i].last}};
        set_up(&w, &responses);
        begin(&w, &(rq_scan){0}, cases[i].how);
        step(&w, cases[i].how);
        if (cases[i].how == STEPS_LATE) let_arrive(&w);
        uint64_t before = calls_of(&w);
        if (!cases[i].frees) rq_op_scan_end(w.op);
        if (cases[i].frees) rq_op_free(w.op);
        if (cases[i].frees) w.op = NULL;
        rq_client_end_scans(w.c, 300 * SECOND_NS);
        assert_null(w.c->aheads);
        assert_int_equal(calls_of(&w) - before, cases[i].closes);
        rq_client_end_scans(w.c, 300 * SECOND_NS);
        rq_client_close(w.c); /* the server still receives what was sent before */
        rq_op_free(w.op);
        fake_stop(&w.zookeeper);
        fake_stop(&w.one.fake);
        assert_int_equal(responses.calls, 3);
        assert_int_equal(responses.closes, cases[i].closes);
        assert_int_equal(w.all.ends, 2);
    }
}

/* The operation is reused while the response to the previous scan is outstanding. */
static void a_scan_may_follow_one_that_was_left(void **state)
{
    (void)state;
    world w;
    script responses = {.answers = {"a:x", "b:y", ".", "d:q."}};
    set_up(&w, &responses);
    begin(&w, &(rq_scan){0}, STEPS_AHEAD);
    step(&w, STEPS_AHEAD);
    w.all.end = RQ_E_AGAIN;
    begin(&w, &(rq_scan){0}, STEPS_AHEAD);
    tear_down(&w);
    assert_string_equal(w.all.items, "a:x b:y d:q");
    assert_false(w.all.goes_on);
    assert_int_equal(responses.calls, 4);
}

/* A server may ignore the requested size: a response that no step waits for is not kept in
 * memory. */
static void a_long_answer_is_not_kept(void **state)
{
    (void)state;
    world w;
    script responses = {.answers = {"a:x", "b:y", "c:z|d:z|e:z|f:z", "c:z", "d:q."}};
    set_up(&w, &responses);
    const rq_scan scan = {.result_bytes = 20};
    begin(&w, &scan, STEPS_LATE);
    step(&w, STEPS_LATE);
    let_arrive(&w);
    assert_int_equal(w.op->ahead->state, RQ__AHEAD_LOST);
    assert_int_equal(w.op->ahead->message.cap + w.op->ahead->cells.cap, 0);
    tear_down(&w);
    assert_int_equal(responses.calls, 3);
}

/* After a lost scanner, too, the scan continues with the next row. */
static void unread_cells_are_skipped(void **state)
{
    (void)state;
    for (reading how = READS_NONE; how < READINGS; how++) {
        script responses = {.answers = {"a:xy|b:zzz", "!", "c:xy|d:x", "e:xyz."}};
        world w;
        set_up(&w, &responses);
        w.all.reads = how;
        assert_int_equal(rq_op_scan(w.op, w.table, &(rq_scan){0}, read_some, take_end), RQ_OK);
        work(&w);
        tear_down(&w);
        assert_string_equal(w.all.items, "01234");
        assert_int_equal(w.all.end, RQ_OK);
    }
}

/* The operation ends once, after the response to the request sent ahead has arrived, too. */
static void malformed_answers_end_the_scan(void **state)
{
    (void)state;
    for (manner how = NEEDED; how < MANNERS; how++) {
        world w;
        script responses = {
            .answers = {"a:x", "b:y", "?", how == NEEDED || how == STEPS ? NULL : "c:z"}};
        set_up(&w, &responses);
        begin(&w, &(rq_scan){0}, how);
        while (w.all.end == RQ_OK && w.all.goes_on)
            step(&w, how);
        assert_false(rq__ahead_is_sent(w.op));
        tear_down(&w);
        assert_int_equal(w.all.end, RQ_E_MALFORMED);
        assert_string_equal(w.all.items, "a:x b:y");
    }
}

/* A lost connection, or a client that is closed, ends the request sent ahead. */
static void a_client_stops_while_a_request_is_ahead(void **state)
{
    (void)state;
    world w;
    script responses = {.answers = {"a:x", "b:y", "c:z", "d:z"}};
    set_up(&w, &responses);
    begin(&w, &(rq_scan){0}, STEPS_AHEAD);
    step(&w, STEPS_AHEAD);
    rq_client_stop(w.c);
    w.all.end = RQ_E_AGAIN;
    rq_op_scan_step(w.op);
    tear_down(&w);
    assert_int_equal(w.all.end, RQ_E_CLOSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_become_rows),
        cmocka_unit_test(parts_become_batches),
        cmocka_unit_test(a_batch_goes_on_after_a_failure),
        cmocka_unit_test(rows_in_parts_count),
        cmocka_unit_test(parts_keep_their_tags),
        cmocka_unit_test(rows_of_replicas_are_stale_in_parts_too),
        cmocka_unit_test(metrics_count_calls_and_cells),
        cmocka_unit_test(an_abandoned_step_asks_for_nothing_more),
        cmocka_unit_test(requests_are_sent_ahead),
        cmocka_unit_test(a_scan_that_ends_early_closes_its_scanner),
        cmocka_unit_test(a_scan_may_follow_one_that_was_left),
        cmocka_unit_test(a_long_answer_is_not_kept),
        cmocka_unit_test(unread_cells_are_skipped),
        cmocka_unit_test(malformed_answers_end_the_scan),
        cmocka_unit_test(a_client_stops_while_a_request_is_ahead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
