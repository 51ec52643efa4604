/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of any replica. A table has one region on a server and a replica on another; each server answers a call, fails
 * it, ends the connection, or keeps the call until the test lets it answer. */
#include "fake.h"

#include "base/macros.h"
#include "base/pb.h"
#include "base/random.h"
#include "client/client_priv.h"

#include "proto/client.pb-c.h"

#include <errno.h>
#include <time.h>

enum { NEVER = 3600000, ROWS = 40, ROWS_AT_ONCE = 3, SCANNERS_MAX = 20000, HOLD_MS = 4 };

#define REGION "t,,1.0123456789abcdef0123456789abcdef."

typedef struct counts {
    unsigned calls, gets, opens, closes;
    char start[8];   /* of the last scanner that was opened */
    bool has_start;  /* includes it */
    uint64_t closed; /* the last scanner that was closed */
} counts;

typedef struct server {
    fake fake;
    const char *name; /* the value of its cells */
    /* What it does with one call after another: a: answers; e: fails, and may be asked again; f: fails for good; c: ends
     * the connection; s, x: says why it ends it, and may be asked again or not; h: answers when the test releases it; k:
     * fails for good then. Behind the script it answers. */
    const char *script;
    rq_random *random; /* instead of a script: chosen by chance, and released after a short time */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_released;
    counts counts;
    size_t scanners[SCANNERS_MAX]; /* the next row of each */
} server;

/* --- a cluster -------------------------------------------------------------------------------- */

static void put_cell(rq_buf *b, const char *row, const char *family, const char *qualifier,
                     rq_slice value)
{
    size_t at;
    assert_int_equal(rq_pb_begin(b, 1, &at), RQ_OK);
    assert_int_equal(rq_pb_put_bytes(b, 1, rq_slice_cstr(row)), RQ_OK);
    assert_int_equal(rq_pb_put_bytes(b, 2, rq_slice_cstr(family)), RQ_OK);
    assert_int_equal(rq_pb_put_bytes(b, 3, rq_slice_cstr(qualifier)), RQ_OK);
    assert_int_equal(rq_pb_put_number(b, 4, 1), RQ_OK);
    assert_int_equal(rq_pb_put_number(b, 5, 4), RQ_OK);
    assert_int_equal(rq_pb_put_bytes(b, 6, value), RQ_OK);
    assert_int_equal(rq_pb_end(b, at), RQ_OK);
}

typedef struct meta {
    fake fake;
    uint16_t region, replica;   /* ports */
    _Atomic bool has_no_server; /* of the region; its replica has one */
    _Atomic unsigned reads;     /* that were answered */
} meta;

/* ScanResponse { more_results 3, results 5 } */
static void serve_meta(fake *f, int fd)
{
    meta *m = RQ_CONTAINER_OF(f, meta, fake);
    char preamble[6], at[32];
    uint32_t id;
    bool more = fake_read(fd, preamble, sizeof preamble) && skip_frame(fd);
    while (more && read_header(fd, 1, &id) == RQ_OK) {
        rq_buf message = {0}, answer = {0}, info = {0};
        size_t result;
        assert_int_equal(rq_buf_append(&info, "PBUF", 4), RQ_OK);
        assert_int_equal(rq_pb_put_number(&info, 1, 1), RQ_OK);
        assert_int_equal(rq_pb_put_number(&message, 3, 0), RQ_OK);
        assert_int_equal(rq_pb_begin(&message, 5, &result), RQ_OK);
        put_cell(&message, REGION, "info", "regioninfo", rq_buf_slice(&info));
        snprintf(at, sizeof at, "127.0.0.1:%u", m->region);
        if (!atomic_load(&m->has_no_server))
            put_cell(&message, REGION, "info", "server", rq_slice_cstr(at));
        snprintf(at, sizeof at, "127.0.0.1:%u", m->replica);
        put_cell(&message, REGION, "info", "server_0001", rq_slice_cstr(at));
        assert_int_equal(rq_pb_end(&message, result), RQ_OK);
        put_response(&answer, id, &message);
        atomic_fetch_add(&m->reads, 1);
        more = fake_send(f, fd, &answer);
        rq_buf_clear(&message);
        rq_buf_clear(&answer);
        rq_buf_clear(&info);
    }
}

/* --- a region's server ------------------------------------------------------------------------ */

static char next_act(server *s)
{
    static const char acts[] = "aaaaaaaaaaehhc";
    if (s->random != NULL) return acts[rq_random_below(s->random, sizeof acts - 1)];
    return *s->script == '\0' ? 'a' : *s->script++;
}

/* REQUIRES: the lock. */
static void hold_shortly(server *s)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)rq_random_below(s->random, HOLD_MS) * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (pthread_cond_timedwait(&s->changed, &s->lock, &until) == 0)
        ;
}

/* REQUIRES: the lock. */
static void hold(server *s)
{
    while (s->random == NULL && !s->is_released)
        pthread_cond_wait(&s->changed, &s->lock);
    if (s->random != NULL) hold_shortly(s);
}

static void put_row(const server *s, rq_buf *message, uint32_t field, size_t row)
{
    char key[8];
    size_t at;
    snprintf(key, sizeof key, "r%02zu", row);
    assert_int_equal(rq_pb_begin(message, field, &at), RQ_OK);
    put_cell(message, key, "f", "q", rq_slice_cstr(s->name));
    assert_int_equal(rq_pb_end(message, at), RQ_OK);
}

/* ScanResponse { scanner_id 2, more_results 3, results 5, more_results_in_region 8 } */
static void answer_scan(server *s, const Pb__ScanRequest *r, rq_buf *message)
{
    uint64_t scanner = r->has_scanner_id ? r->scanner_id : ++s->counts.opens;
    assert_true(scanner < SCANNERS_MAX);
    if (!r->has_scanner_id) {
        ProtobufCBinaryData start = r->scan->start_row;
        snprintf(s->counts.start, sizeof s->counts.start, "%.*s", (int)start.len,
                 (const char *)start.data);
        s->counts.has_start = !r->scan->has_include_start_row || r->scan->include_start_row;
        s->scanners[scanner] =
            start.len == 0 ? 0 : (size_t)atoi(s->counts.start + 1) + !s->counts.has_start;
    }
    if (r->close_scanner) {
        s->counts.closes++;
        s->counts.closed = scanner;
        return;
    }
    size_t *at = &s->scanners[scanner], end = *at + ROWS_AT_ONCE;
    assert_int_equal(rq_pb_put_number(message, 2, scanner), RQ_OK);
    assert_int_equal(rq_pb_put_number(message, 3, 1), RQ_OK);
    while (*at < end && *at < ROWS)
        put_row(s, message, 5, (*at)++);
    assert_int_equal(rq_pb_put_number(message, 8, *at < ROWS), RQ_OK);
}

static void put_failure(rq_buf *out, uint32_t id, const char *java_class, bool for_good)
{
    rq_buf head = {0};
    size_t at;
    assert_int_equal(rq_pb_put_number(&head, 1, id), RQ_OK);
    assert_int_equal(rq_pb_begin(&head, 2, &at), RQ_OK);
    assert_int_equal(rq_pb_put_bytes(&head, 1, rq_slice_cstr(java_class)), RQ_OK);
    assert_int_equal(rq_pb_put_bytes(&head, 2, RQ_SLICE_LIT("the reason")), RQ_OK);
    if (for_good) assert_int_equal(rq_pb_put_number(&head, 5, 1), RQ_OK);
    assert_int_equal(rq_pb_end(&head, at), RQ_OK);
    rq_buf b = {0};
    assert_int_equal(rq_buf_append_varint(&b, head.len), RQ_OK);
    assert_int_equal(rq_buf_append(&b, head.ptr, head.len), RQ_OK);
    put_frame(out, &b);
    rq_buf_clear(&head);
    rq_buf_clear(&b);
}

/* Reads RequestHeader { call_id 1, method_name 3 } and the message behind it. */
static bool read_call(int fd, uint8_t *frame, size_t cap, uint32_t *ret_id, bool *ret_is_get,
                      rq_slice *ret_message)
{
    uint8_t head[4];
    rq_slice header = {0};
    rq_pb_field f;
    if (!fake_read(fd, head, sizeof head)) return false;
    uint32_t len = rq_get_be32(head);
    if (len > cap || !fake_read(fd, frame, len)) return false;
    rq_cursor c = rq_cursor_of(rq_slice_of(frame, len));
    assert_true(rq_pb_delimited(&c, &header) && rq_pb_delimited(&c, ret_message));
    rq_cursor h = rq_cursor_of(header);
    while (rq_pb_next(&h, &f) == RQ_OK) {
        if (f.number == 1) *ret_id = (uint32_t)f.value;
        if (f.number == 3) *ret_is_get = rq_slice_eq(f.bytes, RQ_SLICE_LIT("Get"));
    }
    return true;
}

#define HB "org.apache.hadoop.hbase."
#define NO_CALL UINT32_MAX /* -1, the id in exceptions that end the connection */

static void fail_call(rq_buf *answer, uint32_t id, char act)
{
    if (act == 's')
        put_failure(answer, NO_CALL, HB "regionserver.RegionServerStoppedException", false);
    else if (act == 'x')
        put_failure(answer, NO_CALL, HB "ipc.UnsupportedCellCodecException", true);
    else if (act == 'e')
        put_failure(answer, id, HB "RegionTooBusyException", false);
    else if (act != 'c')
        put_failure(answer, id, HB "DoNotRetryIOException", true);
}

/* REQUIRES: the lock. False: the connection ends. */
static bool answer_call(server *s, uint32_t id, bool is_get, rq_slice bytes, rq_buf *answer)
{
    rq_buf message = {0};
    Pb__ScanRequest *r = is_get ? NULL : pb__scan_request__unpack(NULL, bytes.len, bytes.ptr);
    bool is_close = r != NULL && r->close_scanner;
    char act = is_close ? 'a' : next_act(s);
    s->counts.calls++;
    s->counts.gets += is_get;
    if (act == 'h' || act == 'k') hold(s);
    if (act == 'a' || act == 'h') {
        if (is_get)
            put_row(s, &message, 1, 7);
        else
            answer_scan(s, r, &message);
        put_response(answer, id, &message);
    } else {
        fail_call(answer, id, act);
    }
    if (r != NULL) pb__scan_request__free_unpacked(r, NULL);
    rq_buf_clear(&message);
    return strchr("csx", act) == NULL;
}

static void serve_region(fake *f, int fd)
{
    server *s = RQ_CONTAINER_OF(f, server, fake);
    char preamble[6];
    uint8_t frame[4096];
    uint32_t id = 0;
    bool is_get = false;
    rq_slice message = {0};
    bool more = fake_read(fd, preamble, sizeof preamble) && skip_frame(fd);
    while (more && read_call(fd, frame, sizeof frame, &id, &is_get, &message)) {
        rq_buf answer = {0};
        pthread_mutex_lock(&s->lock);
        more = answer_call(s, id, is_get, message, &answer);
        pthread_cond_broadcast(&s->changed);
        pthread_mutex_unlock(&s->lock);
        more = fake_send(f, fd, &answer) && more;
        rq_buf_clear(&answer);
    }
}

static void release(server *s)
{
    pthread_mutex_lock(&s->lock);
    s->is_released = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static counts look(server *s)
{
    pthread_mutex_lock(&s->lock);
    counts copy = s->counts;
    pthread_mutex_unlock(&s->lock);
    return copy;
}

/* --- a client --------------------------------------------------------------------------------- */

typedef struct world {
    meta meta;
    fake zookeeper;
    server region, replica;
    rq_client *client;
    rq_client_table *table;
    rq_op *op;
    /* Of the operation. */
    rq_err end;
    bool may_repeat; /* it failed, and may be repeated */
    char why[128];
    size_t rows;
    char from; /* server of the last row */
} world;

static void start_server(server *s, const char *name)
{
    s->name = name;
    s->fake.limit = SIZE_MAX;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    fake_start(&s->fake, serve_region);
    fake_run(&s->fake);
}

static void stop_server(server *s)
{
    release(s);
    fake_stop(&s->fake);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
}

static world *start(const char *region, const char *replica, unsigned hedge_after_ms,
                    rq_random *random)
{
    world *w = calloc(1, sizeof *w);
    rq_error why;
    assert_non_null(w);
    w->region.script = region;
    w->replica.script = replica;
    w->meta.fake.limit = w->zookeeper.limit = SIZE_MAX;
    w->region.random = random;
    w->replica.random = random == NULL ? NULL : &random[1];
    start_server(&w->region, "P");
    start_server(&w->replica, "R");
    w->meta.region = w->region.fake.port;
    w->meta.replica = w->replica.fake.port;
    fake_start(&w->meta.fake, serve_meta);
    fake_start(&w->zookeeper, serve_zookeeper);
    put_zookeeper(&w->zookeeper.answers[0], w->meta.fake.port, w->meta.fake.port);
    fake_run(&w->meta.fake);
    fake_run(&w->zookeeper);
    rq_client_options o = {.rpc_timeout_ms = 600000,
                           .retries = random == NULL ? 0 : 1000000,
                           .pause_ms = 1,
                           .zookeeper = w->zookeeper.at,
                           .hedge_after_ms = hedge_after_ms};
    assert_int_equal(rq_client_open(&o, &w->client, &why), RQ_OK);
    assert_int_equal(rq_client_table_get(w->client, "t", &w->table), RQ_OK);
    assert_int_equal(rq_op_new(w->client, 0, w, &w->op), RQ_OK);
    return w;
}

static void finish(world *w)
{
    rq_op_free(w->op);
    rq_client_close(w->client);
    fake_stop(&w->zookeeper);
    fake_stop(&w->meta.fake);
    stop_server(&w->region);
    stop_server(&w->replica);
    free(w);
}

static void note_server(world *w, rq_op_result *r, const char *key)
{
    rq_cell cell;
    assert_int_equal(rq_result_next(&r->row, &r->cells, &cell), RQ_OK);
    assert_true(rq_slice_eq(rq_cell_row(&cell), rq_slice_cstr(key)));
    w->from = (char)cell.value[0];
}

static void take_get(rq_op *op, void *ctx, const rq_op_result *r)
{
    world *w = ctx;
    rq_op_result copy = *r;
    (void)op;
    w->end = r->err;
    w->may_repeat = r->retry;
    if (r->err == RQ_OK)
        note_server(w, &copy, "r07");
    else
        snprintf(w->why, sizeof w->why, "%.*s: %.*s", (int)r->java_class.len,
                 (const char *)r->java_class.ptr, (int)r->text.len, (const char *)r->text.ptr);
}

static void take_row(rq_op *op, void *ctx, uint32_t index, rq_op_result *r)
{
    world *w = ctx;
    char key[8];
    (void)op;
    assert_int_equal(index, w->rows);
    snprintf(key, sizeof key, "r%02zu", w->rows++);
    note_server(w, r, key);
}

static void take_end(rq_op *op, void *ctx, const rq_op_result *r)
{
    world *w = ctx;
    (void)op;
    w->end = r->err;
    w->may_repeat = r->retry;
}

static void await_end(world *w)
{
    while (w->end == RQ_E_AGAIN)
        rq_client_poll(w->client, SECOND_NS);
}

static void begin_get(world *w, bool any_replica)
{
    rq_get g = {.row = RQ_SLICE_LIT("r07"), .any_replica = any_replica};
    w->end = RQ_E_AGAIN;
    w->from = 0;
    assert_int_equal(rq_op_get(w->op, w->table, &g, take_get), RQ_OK);
}

static rq_err get(world *w, bool any_replica)
{
    begin_get(w, any_replica);
    await_end(w);
    return w->end;
}

static void begin_scan(world *w, bool fetches_ahead)
{
    rq_scan s = {.any_replica = true, .fetches_ahead = fetches_ahead};
    w->end = RQ_E_AGAIN;
    w->rows = 0;
    assert_int_equal(rq_op_scan(w->op, w->table, &s, take_row, take_end), RQ_OK);
}

static rq_err scan(world *w, bool fetches_ahead)
{
    begin_scan(w, fetches_ahead);
    await_end(w);
    return w->end;
}

/* Polls until the server has so many calls. */
static void await_calls(world *w, server *s, unsigned calls)
{
    while (look(s).calls < calls)
        rq_client_poll(w->client, SECOND_NS / 1000);
}

/* Polls until the server has closed so many scanners. */
static void await_closes(world *w, server *s, unsigned closes)
{
    while (look(s).closes < closes)
        rq_client_poll(w->client, SECOND_NS / 1000);
}

/* Polls the client until exactly `calls` calls are in flight. */
static void await_in_flight(world *w, size_t calls)
{
    for (size_t count = calls + 1; count != calls;) {
        rq_client_poll(w->client, SECOND_NS / 1000);
        count = 0;
        for (size_t i = 0; i < w->client->all_count; i++)
            count += rq__conn_in_flight(w->client->all[i]);
    }
}

/* The region keeps this call; the operation's time is over. */
static void hedge(world *w, unsigned call)
{
    await_calls(w, &w->region, call);
    rq_loop_hasten_timers(w->client->loop);
}

/* … and the replica has been asked, too. */
static void hedge_and_await(world *w, unsigned call)
{
    hedge(w, call);
    await_calls(w, &w->replica, 1);
}

/* The replica's call ends before the region answers. */
static void let_region_be_last(world *w)
{
    await_in_flight(w, 1);
    release(&w->region);
    await_end(w);
}

/* --- gets ------------------------------------------------------------------------------------- */

static void a_replica_answers_for_a_region_that_hangs(void **state)
{
    (void)state;
    world *w = start("h", "", 0, NULL);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(get(w, true), RQ_OK);
        assert_int_equal(w->from, 'R');
    }
    /* Answers to calls that have lost are not taken for others. */
    release(&w->region);
    assert_int_equal(get(w, false), RQ_OK);
    assert_int_equal(w->from, 'P');
    assert_int_equal(look(&w->region).gets, 4);
    finish(w);
}

static void a_region_that_answers_is_asked_alone(void **state)
{
    (void)state;
    world *w = start("", "", NEVER, NULL);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(get(w, true), RQ_OK);
        assert_int_equal(w->from, 'P');
    }
    assert_int_equal(scan(w, true), RQ_OK);
    assert_int_equal(w->rows, ROWS);
    assert_int_equal(look(&w->replica).calls, 0);
    finish(w);
}

/* Without waiting. */
static void a_replica_answers_for_a_region_that_fails(void **state)
{
    (void)state;
    const char *acts[] = {"e", "f", "c"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(acts); i++) {
        world *w = start(acts[i], "", NEVER, NULL);
        assert_int_equal(get(w, true), RQ_OK);
        assert_int_equal(w->from, 'R');
        finish(w);
    }
}

static void a_region_may_answer_after_its_replica_has_failed(void **state)
{
    (void)state;
    const char *acts[] = {"e", "f", "c"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(acts); i++) {
        world *w = start("h", acts[i], NEVER, NULL);
        begin_get(w, true);
        hedge_and_await(w, 1);
        let_region_be_last(w);
        assert_int_equal(w->end, RQ_OK);
        assert_int_equal(w->from, 'P');
        finish(w);
    }
}

/* The failure may pass if one of the calls may be repeated. */
static void all_may_fail(void **state)
{
    (void)state;
    world *w = start("eff", "fef", NEVER, NULL);
    for (int i = 0; i < 3; i++) {
        assert_int_not_equal(get(w, true), RQ_OK);
        assert_int_equal(w->may_repeat, i < 2);
    }
    assert_int_equal(look(&w->region).calls, 3);
    assert_int_equal(look(&w->replica).calls, 3);
    assert_int_equal(get(w, true), RQ_OK);
    finish(w);
}

/* As well if the region's failure, the last one, is for good. The third call of a scan may be sent ahead. */
static void the_region_may_fail_last(void **state)
{
    (void)state;
    static const char *const regions[] = {"k", "k", "aak", "aak"}, *const replicas[] = {"e", "f"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(regions) * 2; i++) {
        const char *region = regions[i / 2];
        bool is_get = i < 2;
        world *w = start(region, replicas[i % 2], NEVER, NULL);
        if (is_get)
            begin_get(w, true);
        else
            begin_scan(w, i / 2 == 2);
        hedge_and_await(w, (unsigned)strlen(region));
        let_region_be_last(w);
        assert_int_not_equal(w->end, RQ_OK);
        assert_int_equal(w->may_repeat, i % 2 == 0);
        finish(w);
    }
}

/* A server that ends a connection may say why. HBASE: RpcConnection.readResponse */
static void the_reason_of_an_ended_connection_counts(void **state)
{
    (void)state;
    world *w = start("xss", "", NEVER, NULL);
    w->client->options.retries = 5;
    assert_int_equal(get(w, false), RQ_E_UNSUPPORTED_CODEC);
    assert_false(w->may_repeat);
    assert_string_equal(w->why, HB "ipc.UnsupportedCellCodecException: the reason");
    assert_int_equal(look(&w->region).calls, 1);
    assert_int_equal(get(w, false), RQ_OK);
    assert_int_equal(look(&w->region).calls, 4);
    finish(w);
}

static void a_replica_answers_for_a_region_without_a_server(void **state)
{
    (void)state;
    world *w = start("", "", NEVER, NULL);
    rq_get g = {.row = RQ_SLICE_LIT("r07"), .replica = 1};
    atomic_store(&w->meta.has_no_server, true);
    assert_int_equal(get(w, true), RQ_OK);
    assert_int_equal(w->from, 'R');
    assert_int_equal(scan(w, true), RQ_OK);
    assert_int_equal(w->rows, ROWS);
    w->end = RQ_E_AGAIN;
    assert_int_equal(rq_op_get(w->op, w->table, &g, take_get), RQ_OK);
    await_end(w);
    assert_int_equal(w->end, RQ_OK);
    assert_int_equal(get(w, false), RQ_E_NOT_SERVING_REGION);
    assert_true(w->may_repeat);
    assert_int_equal(look(&w->region).calls, 0);
    atomic_store(&w->meta.has_no_server, false);
    while (get(w, false) != RQ_OK)
        rq_client_poll(w->client, SECOND_NS / 100);
    assert_int_equal(w->from, 'P');
    finish(w);
}

/* Makes a read that a replica answers, because the region has no server. Returns whether hbase:meta was read again. */
static bool reads_meta(world *w, int64_t since_ns, int64_t took_ns)
{
    rq_client_table *t = w->table;
    while (t->refreshing)
        rq_client_poll(w->client, SECOND_NS / 100);
    unsigned before = atomic_load(&w->meta.reads);
    t->refreshed_ns = rq_client_now_ns() - since_ns;
    t->refresh_took_ns = took_ns;
    assert_int_equal(get(w, true), RQ_OK);
    while (t->refreshing)
        rq_client_poll(w->client, SECOND_NS / 100);
    return atomic_load(&w->meta.reads) > before;
}

/* The map of a large table is read again after a long pause only, however often replicas are read meanwhile. */
static void a_map_is_read_for_a_part_of_the_time_only(void **state)
{
    (void)state;
    const int64_t hour = 3600 * SECOND_NS;
    world *w = start("", "", NEVER, NULL);
    atomic_store(&w->meta.has_no_server, true);
    rq__map_refresh(w->table);
    assert_true(reads_meta(w, hour, 0));
    assert_true(reads_meta(w, hour, 5 * SECOND_NS));
    assert_true(reads_meta(w, hour, hour));
    assert_false(reads_meta(w, -hour, 0));
    assert_true(reads_meta(w, 2 * SECOND_NS, 0));
    /* 58 s of the pause are left: longer than the reads of this test take. */
    assert_false(reads_meta(w, 2 * SECOND_NS, 5 * SECOND_NS));
    /* An operation that needs the region itself does not wait for the end of the pause. */
    atomic_store(&w->meta.has_no_server, false);
    w->table->refreshed_ns = rq_client_now_ns() + hour;
    while (get(w, false) != RQ_OK)
        rq_client_poll(w->client, SECOND_NS / 100);
    assert_int_equal(w->from, 'P');
    finish(w);
}

/* A registry that is slow to answer does not make the map's reading long. */
static void the_registrys_time_is_not_the_maps(void **state)
{
    (void)state;
    const int64_t hour = 3600 * SECOND_NS;
    world *w = start("", "", NEVER, NULL);
    rq_client_table *t = w->table;
    assert_int_equal(get(w, false), RQ_OK);
    w->client->meta_lost = true;
    rq__map_refresh(t);
    assert_true(t->awaits_registry);
    t->refresh_begun_ns -= hour;
    while (t->refreshing)
        rq_client_poll(w->client, SECOND_NS / 100);
    assert_int_equal(t->refresh_err, RQ_OK);
    assert_in_range(t->refresh_took_ns, 0, hour - 1);
    finish(w);
}

static void a_stopped_client_ends_hedged_reads(void **state)
{
    (void)state;
    world *w = start("h", "h", NEVER, NULL);
    begin_get(w, true);
    hedge_and_await(w, 1);
    rq_client_stop(w->client);
    await_end(w);
    assert_int_equal(w->end, RQ_E_CLOSED);
    finish(w);
}

/* --- scans ------------------------------------------------------------------------------------ */

static void a_scan_opens_where_it_is_answered(void **state)
{
    (void)state;
    world *w = start("h", "", NEVER, NULL);
    begin_scan(w, false);
    hedge(w, 1);
    await_end(w);
    assert_int_equal(w->end, RQ_OK);
    assert_int_equal(w->rows, ROWS);
    assert_int_equal(w->from, 'R');
    /* The scanner that was opened too late is closed. */
    release(&w->region);
    await_closes(w, &w->region, 1);
    assert_int_equal(look(&w->region).closed, 1);
    finish(w);
}

static void a_scan_continues_behind_the_last_row(void **state)
{
    (void)state;
    /* The third call is the first one that may be sent ahead. */
    const char *scripts[] = {"ah", "aah", "aaah", "aae", "aac"};
    for (size_t i = 0; i < 2 * RQ_ARRAY_LEN(scripts); i++) {
        const char *script = scripts[i / 2];
        world *w = start(script, "", NEVER, NULL);
        size_t calls = strlen(script);
        char start[8];
        begin_scan(w, i % 2 == 0);
        if (script[calls - 1] == 'h') hedge(w, (unsigned)calls);
        await_end(w);
        assert_int_equal(w->end, RQ_OK);
        assert_int_equal(w->rows, ROWS);
        assert_int_equal(w->from, 'R');
        snprintf(start, sizeof start, "r%02zu", (calls - 1) * ROWS_AT_ONCE - 1);
        assert_string_equal(look(&w->replica).start, start);
        assert_false(look(&w->replica).has_start);
        release(&w->region);
        if (script[calls - 1] == 'h') await_closes(w, &w->region, 1);
        finish(w);
    }
}

static void a_region_of_a_scan_that_wins_has_the_others_closed(void **state)
{
    (void)state;
    world *w = start("ah", "h", NEVER, NULL);
    begin_scan(w, false);
    hedge_and_await(w, 2);
    release(&w->region);
    await_end(w);
    assert_int_equal(w->end, RQ_OK);
    assert_int_equal(w->rows, ROWS);
    assert_int_equal(w->from, 'P');
    release(&w->replica);
    await_closes(w, &w->replica, 1);
    finish(w);
}

/* The region answers when the operation does not exist any more. */
static void an_abandoned_scan_leaves_no_scanner(void **state)
{
    (void)state;
    world *w = start("h", "h", NEVER, NULL);
    rq_scan s = {.any_replica = true, .is_stepwise = true};
    w->end = RQ_E_AGAIN;
    assert_int_equal(rq_op_scan(w->op, w->table, &s, take_row, take_end), RQ_OK);
    hedge_and_await(w, 1);
    rq_op_scan_abandon(w->op);
    release(&w->replica);
    await_end(w);
    assert_int_equal(w->end, RQ_OK);
    assert_int_equal(w->rows, ROWS_AT_ONCE);
    rq_op_scan_end(w->op);
    rq_op_free(w->op);
    w->op = NULL;
    await_closes(w, &w->replica, 1);
    release(&w->region);
    await_closes(w, &w->region, 1);
    finish(w);
}

static void reads_of_servers_that_fail_at_random_are_right(void **state)
{
    (void)state;
    rq_random random[2];
    rq_random_seed(&random[0], unit_seed());
    rq_random_seed(&random[1], unit_seed() + 1);
    world *w = start("", "", 1, &random[0]);
    for (int i = 0; i < 150; i++) {
        assert_int_equal(scan(w, i % 2 == 0), RQ_OK);
        assert_int_equal(w->rows, ROWS);
        for (int k = 0; k < 5; k++)
            assert_int_equal(get(w, k > 0), RQ_OK);
    }
    finish(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_replica_answers_for_a_region_that_hangs),
        cmocka_unit_test(a_region_that_answers_is_asked_alone),
        cmocka_unit_test(a_replica_answers_for_a_region_that_fails),
        cmocka_unit_test(a_region_may_answer_after_its_replica_has_failed),
        cmocka_unit_test(all_may_fail),
        cmocka_unit_test(the_region_may_fail_last),
        cmocka_unit_test(the_reason_of_an_ended_connection_counts),
        cmocka_unit_test(a_replica_answers_for_a_region_without_a_server),
        cmocka_unit_test(a_map_is_read_for_a_part_of_the_time_only),
        cmocka_unit_test(the_registrys_time_is_not_the_maps),
        cmocka_unit_test(a_stopped_client_ends_hedged_reads),
        cmocka_unit_test(a_scan_opens_where_it_is_answered),
        cmocka_unit_test(a_scan_continues_behind_the_last_row),
        cmocka_unit_test(a_region_of_a_scan_that_wins_has_the_others_closed),
        cmocka_unit_test(an_abandoned_scan_leaves_no_scanner),
        cmocka_unit_test(reads_of_servers_that_fail_at_random_are_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
