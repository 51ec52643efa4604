/* SPDX-License-Identifier: Apache-2.0 */
/* Entries that are passed on to the servers of their regions. The regions and the servers are this file's: it is linked
 * without replication/region_locator.c. */
#include "../base/unit.h"

#include "base/clock.h"
#include "cell/cellblock.h"
#include "replication/region_locator.h"
#include "replication/sink_router.h"
#include "wal/record.h"

#include "proto/admin.pb-c.h"

#include <pthread.h>
#include <stdatomic.h>

#define SERVERS 3
#define JOBS 4
#define ENCODED "00000000000000000000000000000000"

/* Every table has two regions: rows below "m", and the others. */
struct rq_client_table {
    int64_t read_ns;
};

typedef struct applied {
    unsigned parts, entries, edits, largest; /* the most edits of a part */
    unsigned last;                           /* number of the last row */
    bool in_order, knows_clusters;
} applied;

/* Answers parts on a thread of its own. */
typedef struct answerer {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    rq_sink_part *parts[JOBS * 2];
    size_t count;
    bool runs, ends;
} answerer;

typedef struct world {
    pthread_mutex_t lock; /* guards the rest where jobs run on several threads */
    rq_sink_router *router;
    rq_arena arena;
    rq_buf cells;
    Pb__WALEntry *entries[8192];
    size_t count;
    unsigned home[2];  /* the servers of the two regions, according to hbase:meta … */
    unsigned known[2]; /* … and to what was read last */
    unsigned opened, closed, reads, refused;
    size_t longest;    /* message */
    rq_err fails_with; /* parts for server 1 */
    unsigned fails;    /* how often */
    bool table_exists, is_unreachable;
    bool leaves; /* the source, when the first part arrives */
    _Atomic bool gone;
    uint64_t deadline_ns; /* the source's */
    applied by[SERVERS];
    answerer answerer;
} world;

static world *the_world; /* region_locator.h has no argument for it */
static struct rq_client_table the_table;

/* --- region_locator.h ----------------------------------------------------------------------------------- */

rq_err rq__locator_open(const char *bootstrap, rq__locator **ret, rq_error *why)
{
    (void)why;
    assert_string_equal(bootstrap, "here:1");
    if (the_world->is_unreachable) {
        rq_sink_router_stop(the_world->router); /* there is no second attempt */
        return RQ_E_IO;
    }
    pthread_mutex_lock(&the_world->lock);
    the_world->opened++;
    the_table.read_ns = INT64_MIN;
    pthread_mutex_unlock(&the_world->lock);
    *ret = (rq__locator *)(void *)the_world;
    return RQ_OK;
}

void rq__locator_close(rq__locator *p)
{
    pthread_mutex_lock(&the_world->lock);
    the_world->closed += p != NULL;
    pthread_mutex_unlock(&the_world->lock);
}

int64_t rq__locator_now_ns(void)
{
    pthread_mutex_lock(&the_world->lock);
    int64_t now = (int64_t)the_world->reads + 1;
    pthread_mutex_unlock(&the_world->lock);
    return now;
}

rq_err rq__locator_read(rq__locator *p, rq_slice table, int64_t since_ns, rq__located_table **ret,
                        rq_error *why)
{
    (void)p;
    *ret = &the_table;
    if (!the_world->table_exists)
        return rq_fail(why, RQ_E_TABLE_NOT_FOUND, "'%.*s'", (int)table.len,
                       (const char *)table.ptr);
    pthread_mutex_lock(&the_world->lock);
    if (the_table.read_ns == INT64_MIN || the_table.read_ns < since_ns) {
        the_table.read_ns = (int64_t)++the_world->reads;
        memcpy(the_world->known, the_world->home, sizeof the_world->known);
    }
    pthread_mutex_unlock(&the_world->lock);
    return RQ_OK;
}

rq_err rq__locator_find(const rq__located_table *t, rq_slice row, rq__location *ret)
{
    static const char *const hosts[SERVERS] = {"one", "two", "three"};
    assert_ptr_equal(t, &the_table);
    unsigned region = row.ptr[0] >= 'm';
    pthread_mutex_lock(&the_world->lock);
    unsigned server = the_world->known[region];
    pthread_mutex_unlock(&the_world->lock);
    if (server == SERVERS) return RQ_E_NOT_SERVING_REGION;
    *ret = (rq__location){.encoded = RQ_SLICE_LIT(ENCODED),
                          .host = hosts[server],
                          .port = (uint16_t)(1 + server),
                          .start_code = 100 + server};
    return RQ_OK;
}

/* --- servers ------------------------------------------------------------------------------------ */

/* Rows are a letter and a number, which only grows. */
static void take_row(applied *a, rq_slice row)
{
    unsigned number = (unsigned)strtoul((const char *)row.ptr + 1, NULL, 10);
    a->in_order = a->in_order && number >= a->last;
    a->last = number;
}

static void take_part(world *w, applied *a, const rq_sink_part *part)
{
    unsigned before = a->edits;
    rq_cursor cells = rq_cursor_of(part->cells);
    Pb__ReplicateWALEntryRequest *r =
        pb__replicate_walentry_request__unpack(NULL, part->message.len, part->message.ptr);
    assert_non_null(r);
    for (size_t i = 0; i < r->n_entry; i++) {
        const Pb__WALKey *k = r->entry[i]->key;
        assert_memory_equal(k->encoded_region_name.data, ENCODED, k->encoded_region_name.len);
        a->knows_clusters = a->knows_clusters && k->n_cluster_ids == 2 &&
                            k->cluster_ids[1]->most_sig_bits == 7 &&
                            k->cluster_ids[1]->least_sig_bits == 8 && k->write_time == 9;
        for (int n = 0; n < r->entry[i]->associated_cell_count; n++) {
            rq_cell c;
            assert_int_equal(rq_cellblock_next(&cells, &c, NULL), RQ_OK);
            take_row(a, rq_cell_row(&c));
            a->edits++;
        }
    }
    assert_int_equal(rq_cursor_left(&cells), 0);
    a->entries += (unsigned)r->n_entry;
    a->parts++;
    if (part->message.len > w->longest) w->longest = part->message.len;
    if (a->edits - before > a->largest) a->largest = a->edits - before;
    pb__replicate_walentry_request__free_unpacked(r, NULL);
}

static rq_err answer_of(world *w, const rq_sink_part *part)
{
    unsigned server = (unsigned)part->to->port - 1;
    assert_int_equal(part->to->start_code, 100 + server);
    if (server == 1 && w->fails > 0) {
        w->fails--;
        w->refused++;
        return w->fails_with;
    }
    take_part(w, &w->by[server], part);
    return RQ_OK;
}

static void answer(world *w, rq_sink_part *part)
{
    rq_error why = {0};
    pthread_mutex_lock(&w->lock);
    rq_err rc = answer_of(w, part);
    pthread_mutex_unlock(&w->lock);
    if (rc != RQ_OK) (void)rq_fail(&why, rc, "the server's text");
    rq_sink_part_sent(part, rc, rc == RQ_OK ? NULL : &why);
}

static rq_sink_part *next_part(answerer *a)
{
    pthread_mutex_lock(&a->lock);
    while (a->count == 0 && !a->ends)
        pthread_cond_wait(&a->changed, &a->lock);
    rq_sink_part *part = a->count == 0 ? NULL : a->parts[--a->count];
    pthread_mutex_unlock(&a->lock);
    return part;
}

static void *answer_all(void *ctx)
{
    world *w = ctx;
    for (rq_sink_part *part; (part = next_part(&w->answerer)) != NULL;)
        answer(w, part);
    return NULL;
}

static void begin_answers(world *w)
{
    pthread_mutex_init(&w->answerer.lock, NULL);
    pthread_cond_init(&w->answerer.changed, NULL);
    w->answerer.runs = true;
    assert_int_equal(pthread_create(&w->answerer.thread, NULL, answer_all, w), 0);
}

static void end_answers(world *w)
{
    pthread_mutex_lock(&w->answerer.lock);
    w->answerer.ends = true;
    pthread_cond_signal(&w->answerer.changed);
    pthread_mutex_unlock(&w->answerer.lock);
    pthread_join(w->answerer.thread, NULL);
    pthread_cond_destroy(&w->answerer.changed);
    pthread_mutex_destroy(&w->answerer.lock);
}

static void send_part(void *ctx, rq_sink_part *part)
{
    world *w = ctx;
    answerer *a = &w->answerer;
    if (w->leaves) atomic_store(&w->gone, true);
    if (!a->runs) {
        answer(w, part);
        return;
    }
    pthread_mutex_lock(&a->lock);
    assert_true(a->count < RQ_ARRAY_LEN(a->parts)); /* a job waits for its parts */
    a->parts[a->count++] = part;
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

/* --- requests ----------------------------------------------------------------------------------- */

static Pb__UUID *cluster(world *w, uint64_t most, uint64_t least)
{
    Pb__UUID *id = rq_arena_alloc(&w->arena, sizeof *id);
    pb__uuid__init(id);
    id->most_sig_bits = most;
    id->least_sig_bits = least;
    return id;
}

static void add_entry(world *w, const char *table, int cells, size_t clusters)
{
    Pb__WALEntry *e = rq_arena_alloc(&w->arena, sizeof *e);
    Pb__WALKey *k = rq_arena_alloc(&w->arena, sizeof *k);
    pb__walentry__init(e);
    pb__walkey__init(k);
    char *name = rq_arena_printf(&w->arena, "%s", table);
    k->table_name = (ProtobufCBinaryData){strlen(name), (uint8_t *)name};
    k->write_time = 9;
    k->n_cluster_ids = clusters;
    k->cluster_ids = rq_arena_calloc(&w->arena, clusters + 1, sizeof *k->cluster_ids);
    for (size_t i = 0; i < clusters; i++)
        k->cluster_ids[i] = cluster(w, i == 1 ? 7 : UINT64_MAX, i == 1 ? 8 : UINT64_MAX);
    e->key = k;
    e->has_associated_cell_count = 1;
    e->associated_cell_count = cells;
    w->entries[w->count++] = e;
}

static void add_cell(world *w, const char *family, char letter, unsigned number, size_t value_len)
{
    char row[32];
    int len = snprintf(row, sizeof row, "%c%06u", letter, number);
    uint8_t *value = rq_arena_calloc(&w->arena, 1, value_len + 1);
    rq_cellblock block = {.with_tags = true};
    const rq_cell c = {.row = (const uint8_t *)row,
                       .row_len = (uint16_t)len,
                       .family = (const uint8_t *)family,
                       .family_len = (uint8_t)strlen(family),
                       .qualifier = (const uint8_t *)"HBASE::BULK_LOAD",
                       .qualifier_len = 16,
                       .timestamp = 1,
                       .type = RQ_TYPE_PUT,
                       .value = value,
                       .value_len = (uint32_t)value_len};
    assert_int_equal(rq_cellblock_append(&block, &c), RQ_OK);
    assert_int_equal(rq_buf_append(&w->cells, block.bytes.ptr, block.bytes.len), RQ_OK);
    rq_cellblock_clear(&block);
}

/* An entry of rows of both regions, in turn. */
static void add_rows(world *w, const char *table, unsigned count)
{
    static unsigned number;
    add_entry(w, table, (int)count, 2);
    for (unsigned i = 0; i < count; i++)
        add_cell(w, "f", number % 2 == 0 ? 'a' : 'x', number, 10), number++;
}

static rq_err run(world *w, rq_error *why)
{
    Pb__ReplicateWALEntryRequest r = PB__REPLICATE_WALENTRY_REQUEST__INIT;
    rq_arena arena = {0};
    r.entry = w->entries;
    r.n_entry = w->count;
    rq_error_clear(why);
    const rq_sink_request request = {&r, rq_buf_slice(&w->cells), &w->gone, w->deadline_ns};
    rq_err rc = rq_sink_router_entries(w->router, &request, &arena, why);
    rq_arena_clear(&arena);
    return rc;
}

static int set_up(void **state)
{
    world *w = calloc(1, sizeof *w);
    const rq_sink_router_options o = {
        .bootstrap = "here:1",
        .waiting_max = 1,
        .limit_ns = UINT64_C(3600000000000), /* however long this thread is paused */
        .send = send_part,
        .ctx = w};
    pthread_mutex_init(&w->lock, NULL);
    w->home[1] = 1;
    w->table_exists = true;
    w->deadline_ns = UINT64_MAX;
    for (size_t i = 0; i < SERVERS; i++)
        w->by[i].in_order = w->by[i].knows_clusters = true;
    the_world = w;
    *state = w;
    return rq_sink_router_new(&o, &w->router) == RQ_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    world *w = *state;
    rq_sink_router_free(w->router);
    assert_int_equal(w->opened, w->closed);
    rq_buf_clear(&w->cells);
    rq_arena_clear(&w->arena);
    pthread_mutex_destroy(&w->lock);
    free(w);
    return 0;
}

/* --- tests -------------------------------------------------------------------------------------- */

static void a_long_request_is_sent_in_windows_and_in_order(void **state)
{
    world *w = *state;
    rq_error why;
    for (unsigned i = 0; i < 5; i++)
        add_rows(w, "t", 1000);
    assert_int_equal(run(w, &why), RQ_OK);
    for (size_t i = 0; i < 2; i++) {
        const applied *a = &w->by[i];
        assert_int_equal(a->edits, 2500);
        assert_int_equal(a->parts, 5); /* 5,000 edits in windows of 1,024 */
        assert_int_equal(a->largest, 512);
        assert_true(a->in_order && a->knows_clusters);
        assert_true(a->entries <= 10); /* not one for each mutation */
    }
    assert_int_equal(run(w, &why), RQ_OK);
    assert_int_equal(w->opened, 1); /* and used twice */
    assert_int_equal(w->reads, 1);
}

static void a_window_has_a_megabyte(void **state)
{
    world *w = *state;
    rq_error why;
    add_entry(w, "t", 10, 2);
    for (unsigned i = 0; i < 8; i++)
        add_cell(w, "f", 'a', i, 300000); /* windows of 3, of 3, and of 2 with the next cell */
    add_cell(w, "f", 'a', 8, 1);
    add_cell(w, "f", 'a', 9, (size_t)1 << 22); /* alone */
    assert_int_equal(run(w, &why), RQ_OK);
    assert_int_equal(w->by[0].edits, 10);
    assert_int_equal(w->by[0].parts, 4);
    assert_true(w->by[0].in_order);
}

/* The source sends the batch again on another connection. */
static void a_job_ends_when_its_source_has_gone(void **state)
{
    world *w = *state;
    rq_error why;
    w->leaves = true;
    for (unsigned i = 0; i < 2000; i++) {
        add_entry(w, "t", 1, 0);
        add_cell(w, "f", 'a', i, 10);
    }
    assert_int_equal(run(w, &why), RQ_E_CLOSED);
    assert_int_equal(w->by[0].parts, 1);
    assert_int_equal(w->by[0].edits, 1024);
}

/* The source sends the batch again although its connection is open. */
static void a_job_ends_when_its_source_waits_no_longer(void **state)
{
    world *w = *state;
    rq_error why;
    add_entry(w, "t", 1, 0);
    add_cell(w, "f", 'a', 1, 10);
    w->deadline_ns = 1;
    assert_int_equal(run(w, &why), RQ_E_CLOSED);
    assert_int_equal(w->by[0].parts, 0);
    w->deadline_ns = UINT64_MAX;
    assert_int_equal(run(w, &why), RQ_OK);
    assert_int_equal(w->by[0].parts, 1);
}

/* It answers after the limit: it is slow, and another part would be held there, too. */
static void a_server_that_does_not_answer_gets_a_part_once(void **state)
{
    world *w = *state;
    rq_error why;
    rq_sink_router *usual = w->router;
    const rq_sink_router_options o = {
        .bootstrap = "here:1", .waiting_max = 1, .limit_ns = 1, .send = send_part, .ctx = w};
    assert_int_equal(rq_sink_router_new(&o, &w->router), RQ_OK);
    add_entry(w, "t", 1, 0);
    add_cell(w, "f", 'x', 1, 10);
    w->fails_with = RQ_E_CALL_TIMEOUT;
    w->fails = 2;
    assert_int_equal(run(w, &why), RQ_E_CALL_TIMEOUT);
    assert_int_equal(w->fails, 1);
    rq_sink_router_free(w->router);
    w->router = usual;
}

/* What another server accepts of keys is limited. */
static void the_keys_of_a_window_have_a_megabyte(void **state)
{
    world *w = *state;
    rq_error why;
    for (unsigned i = 0; i < 1024; i++) {
        add_entry(w, "t", 1, RQ_WAL_CLUSTERS_MAX);
        add_cell(w, "f", 'a', i, 10);
    }
    assert_int_equal(run(w, &why), RQ_OK);
    assert_int_equal(w->by[0].edits, 1024);
    assert_true(w->by[0].in_order);
    assert_in_range(w->longest, (size_t)1 << 19, (size_t)1 << 20);
}

static void a_window_has_few_tables(void **state)
{
    world *w = *state;
    rq_error why;
    char name[16];
    for (unsigned i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "t%u", i % 100);
        add_rows(w, name, 2);
    }
    assert_int_equal(run(w, &why), RQ_OK);
    assert_int_equal(w->by[0].edits + w->by[1].edits, 400);
    assert_int_equal(w->by[0].parts, 4);
    assert_true(w->by[0].in_order && w->by[1].in_order);
}

static void a_moved_region_is_found_again(void **state)
{
    world *w = *state;
    rq_error why;
    w->fails = 1;
    w->fails_with = RQ_E_NOT_SERVING_REGION;
    add_rows(w, "t", 10);
    assert_int_equal(run(w, &why), RQ_OK); /* what hbase:meta says is read; the server has it now */
    assert_int_equal(w->by[0].parts, 1);   /* its part is not repeated */
    assert_int_equal(w->by[1].edits, 5);
    w->home[1] = 2;
    w->fails = 1;
    w->fails_with = RQ_E_IO;
    assert_int_equal(run(w, &why), RQ_OK);
    assert_int_equal(w->by[0].parts, 2);
    assert_int_equal(w->by[1].edits, 5);
    assert_int_equal(w->by[2].edits, 5);
    assert_int_equal(w->refused, 2);
    assert_int_equal(w->reads, 3);
}

/* If `waiting_max` jobs wait already, a further job makes one attempt only. Here the maximum is 0. */
static void a_job_that_may_not_wait_ends(void **state)
{
    world *w = *state;
    rq_error why;
    const rq_sink_router_options o = {.bootstrap = "here:1", .send = send_part, .ctx = w};
    rq_sink_router_free(w->router);
    assert_int_equal(rq_sink_router_new(&o, &w->router), RQ_OK);
    w->home[0] = SERVERS; /* as if the table is disabled */
    add_rows(w, "t", 10);
    assert_int_equal(run(w, &why), RQ_E_NOT_SERVING_REGION);
    assert_int_equal(w->reads, 1);
    assert_int_equal(w->by[1].edits, 5);
}

static void *run_often(void *ctx)
{
    rq_error why;
    for (int i = 0; i < 5; i++)
        assert_int_equal(run(ctx, &why), RQ_OK);
    return NULL;
}

static void jobs_of_several_threads_do_not_meet(void **state)
{
    world *w = *state;
    pthread_t threads[JOBS];
    for (unsigned i = 0; i < 3; i++)
        add_rows(w, "t", 1000);
    begin_answers(w);
    for (size_t i = 0; i < JOBS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_often, w), 0);
    for (size_t i = 0; i < JOBS; i++)
        pthread_join(threads[i], NULL);
    end_answers(w);
    assert_int_equal(w->by[0].edits, JOBS * 5 * 1500);
    assert_int_equal(w->by[1].edits, JOBS * 5 * 1500);
    assert_int_equal(w->by[0].parts, JOBS * 5 * 3);
    assert_true(w->opened <= JOBS);
}

static void a_server_that_refuses_for_good_ends_the_job(void **state)
{
    world *w = *state;
    rq_error why;
    w->fails = 100;
    w->fails_with = RQ_E_NO_SUCH_FAMILY;
    add_rows(w, "t", 10);
    assert_int_equal(run(w, &why), RQ_E_NO_SUCH_FAMILY);
    assert_string_equal(why.message, "the server's text");
    assert_int_equal(w->refused, 1);
    assert_int_equal(w->closed, 1);
}

static void what_is_wrong_in_a_request_is_refused(void **state)
{
    world *w = *state;
    rq_error why;
    w->table_exists = false;
    add_rows(w, "t", 1);
    assert_int_equal(run(w, &why), RQ_E_TABLE_NOT_FOUND);
    assert_string_equal(why.message, "'t'");
    w->table_exists = true;
    w->count = 0;
    add_rows(w, "t,a", 1);
    assert_int_equal(run(w, &why), RQ_E_TABLE_NOT_FOUND);
    w->count = 0;
    add_entry(w, "t", 100, 1); /* more cells than there are */
    assert_int_equal(run(w, &why), RQ_E_DO_NOT_RETRY);
    w->count = 0;
    add_entry(w, "t", 1, RQ_WAL_CLUSTERS_MAX + 1);
    assert_int_equal(run(w, &why), RQ_E_DO_NOT_RETRY);
    w->count = 0;
    rq_buf_reset(&w->cells);
    add_entry(w, "t", 1, 1);
    add_cell(w, "METAFAMILY", 'a', 1, 1);
    assert_int_equal(run(w, &why), RQ_E_UNSUPPORTED);
    assert_int_equal(w->by[0].parts + w->by[1].parts, 0);
}

static bool refuses_large(void *ctx, size_t bytes)
{
    return bytes < *(size_t *)ctx;
}

static void copies_are_charged(void **state)
{
    world *w = *state;
    rq_error why = {0};
    size_t most = (size_t)1 << 20;
    rq_arena arena;
    Pb__ReplicateWALEntryRequest r = PB__REPLICATE_WALENTRY_REQUEST__INIT;
    add_entry(w, "t", 1, 2);
    add_cell(w, "f", 'a', 1, (size_t)1 << 20);
    r.entry = w->entries;
    r.n_entry = 1;
    rq_arena_init(&arena);
    rq_arena_meter(&arena, refuses_large, &most);
    const rq_sink_request request = {&r, rq_buf_slice(&w->cells), NULL, UINT64_MAX};
    assert_int_equal(rq_sink_router_entries(w->router, &request, &arena, &why), RQ_E_NO_MEMORY);
    assert_int_equal(w->by[0].parts, 0);
    rq_arena_clear(&arena);
}

static void nothing_is_sent_after_a_stop(void **state)
{
    world *w = *state;
    rq_error why;
    add_rows(w, "t", 10);
    rq_sink_router_stop(w->router);
    assert_int_equal(run(w, &why), RQ_E_SERVER_STOPPED);
    assert_int_equal(w->by[0].parts + w->by[1].parts, 0);
    assert_int_equal(w->opened, 0);
}

/* Nothing is acknowledged, even if the error has no reason. */
static void a_cluster_that_cannot_be_reached_ends_the_job(void **state)
{
    world *w = *state;
    rq_error why;
    add_rows(w, "t", 10);
    w->is_unreachable = true;
    assert_int_not_equal(run(w, &why), RQ_OK);
    assert_int_not_equal(why.code, RQ_OK);
}

static void an_empty_request_is_done(void **state)
{
    world *w = *state;
    rq_error why;
    assert_int_equal(run(w, &why), RQ_OK);
    add_entry(w, "none", 0, 0);
    assert_int_equal(run(w, &why), RQ_OK);
    assert_int_equal(w->opened, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {TEST(a_long_request_is_sent_in_windows_and_in_order),
                                       TEST(a_window_has_a_megabyte),
                                       TEST(a_job_ends_when_its_source_has_gone),
                                       TEST(a_job_ends_when_its_source_waits_no_longer),
                                       TEST(a_server_that_does_not_answer_gets_a_part_once),
                                       TEST(the_keys_of_a_window_have_a_megabyte),
                                       TEST(a_window_has_few_tables),
                                       TEST(a_moved_region_is_found_again),
                                       TEST(a_job_that_may_not_wait_ends),
                                       TEST(jobs_of_several_threads_do_not_meet),
                                       TEST(a_server_that_refuses_for_good_ends_the_job),
                                       TEST(what_is_wrong_in_a_request_is_refused),
                                       TEST(copies_are_charged),
                                       TEST(nothing_is_sent_after_a_stop),
                                       TEST(a_cluster_that_cannot_be_reached_ends_the_job),
                                       TEST(an_empty_request_is_done)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
