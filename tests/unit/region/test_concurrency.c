/* SPDX-License-Identifier: Apache-2.0 */
/* Many lanes write one region while others read, flush and compact. The test is as much for TSan as
 * for its own checks. */
#include "fixture.h"

#include "region/mob_cleaner.h"
#include "wal/wal.h"

#include <pthread.h>
#include <stdatomic.h>

#define LANES 3
#define WRITES 400
#define DEPTH 8 /* writes in flight per lane */

typedef struct world {
    real_env real;
    fixture f;
    _Atomic unsigned running;
    _Atomic bool stop;
    size_t gets_at_once; /* rows that get_rows found without a scanner */
    size_t rows_taken;   /* rows that take_rows read several at a time */
} world;

typedef struct writer writer;

typedef struct slot {
    writer *owner;
    rq_write write;
    rq_row_op ops[2];
    rq_mutation mutations[2];
    rq_cell cells[3];
    char rows[2][16];
    char value[16];
    uint8_t one[8];
} slot;

struct writer {
    world *world;
    rq_lane *lane;
    rq_writer *way;
    rq_task start;
    slot slots[DEPTH];
    unsigned id;
    unsigned sent;
    unsigned done;
    unsigned refused;
    rq_latch latch;
};

static void on_done(rq_write *write);

/* Sends a put to two families, and an increment of a counter that all lanes share. */
static void send(slot *s)
{
    writer *w = s->owner;
    unsigned n = w->sent++;
    snprintf(s->rows[0], sizeof s->rows[0], "w%u-%u", w->id, n % 50);
    snprintf(s->rows[1], sizeof s->rows[1], "counter");
    snprintf(s->value, sizeof s->value, "%u", n);
    s->cells[0] = cell_of("a", "q", 1 + n, RQ_TYPE_PUT, s->value);
    s->cells[1] = cell_of("b", "q", 1 + n, RQ_TYPE_PUT, s->value);
    rq_put_be64(s->one, 1);
    s->cells[2] = cell_of("a", "n", RQ_TIMESTAMP_LATEST, RQ_TYPE_PUT, NULL);
    s->cells[2].value = s->one;
    s->cells[2].value_len = 8;
    s->mutations[0] = (rq_mutation){.type = RQ_MUTATE_PUT,
                                    .row = rq_slice_cstr(s->rows[0]),
                                    .cells = s->cells,
                                    .cell_count = 2};
    s->mutations[1] = (rq_mutation){.type = RQ_MUTATE_INCREMENT,
                                    .row = rq_slice_cstr(s->rows[1]),
                                    .cells = &s->cells[2],
                                    .cell_count = 1};
    for (int i = 0; i < 2; i++)
        s->ops[i] = (rq_row_op){.mutations = &s->mutations[i], .mutation_count = 1};
    s->write = (rq_write){.ops = s->ops, .op_count = 2, .writer = w->way, .done = on_done};
    rq_region_write(w->world->f.region, &s->write);
}

static void on_done(rq_write *write)
{
    slot *s = RQ_CONTAINER_OF(write, slot, write);
    writer *w = s->owner;
    for (int i = 0; i < 2; i++) {
        w->refused += s->ops[i].rc != RQ_OK;
        rq_row_op_clear(&s->ops[i]);
        rq_cellblock_clear(&s->ops[i].result);
    }
    if (++w->done == WRITES)
        w->world->f.env->executor->latch_open(&w->latch, RQ_OK);
    else if (w->sent < WRITES)
        send(s);
}

static void run_start(rq_task *task)
{
    writer *w = RQ_CONTAINER_OF(task, writer, start);
    for (int i = 0; i < DEPTH; i++)
        send(&w->slots[i]);
}

static void *disturb(void *arg)
{
    world *w = arg;
    for (unsigned n = 0; !atomic_load(&w->stop); n++) {
        if (rq_region_flush(w->f.region, (rq_slice){0}, NULL, NULL) != RQ_OK) break;
        if (rq_region_compact(w->f.region, (rq_slice){0}, n % 4 == 0, NULL) != RQ_OK) break;
        rq_region_load load;
        rq_region_get_load(w->f.region, &load);
        rq_engine_stats stats;
        rq_engine_get_stats(w->f.engine, &stats);
    }
    return NULL;
}

/* Reads whole rows: both families must always agree. */
static void *read_rows(void *arg)
{
    world *w = arg;
    uintptr_t torn = 0;
    while (!atomic_load(&w->stop)) {
        rq_arena arena = {0};
        rq_cellblock out = {0};
        rq_read_ctx ctx = {.may_block = true};
        rq_region_scanner *s;
        rq_scan scan = {.start_row = RQ_SLICE_LIT("w"),
                        .include_start = true,
                        .cache_blocks = true,
                        .max_versions = 1,
                        .time_range = RQ_TIME_RANGE_ALL,
                        .store_limit = -1};
        rq_scan_limits none = {0};
        rq_scan_state state = RQ_SCAN_MORE;
        rq_epoch_member pin;
        rq_epoch_pin(w->f.env->epoch, &pin);
        rq_err rc = rq_region_scanner_open(w->f.region, &scan, 0, &arena, &s, NULL);
        while (rc == RQ_OK && state != RQ_SCAN_DONE)
            rc = rq_region_scanner_next(s, &none, &ctx, &out, &state, NULL);
        if (rc == RQ_OK) rq_region_scanner_close(s);
        rq_epoch_unpin(w->f.env->epoch, &pin);
        rq_epoch_collect(w->f.env->epoch);
        rq_cursor at = rq_cursor_of(rq_buf_slice(&out.bytes));
        rq_cell a;
        rq_cell b;
        while (rq_cellblock_next(&at, &a, NULL) == RQ_OK) {
            bool both = rq_cellblock_next(&at, &b, NULL) == RQ_OK;
            torn += !both || !rq_cell_same_row(&a, &b) || a.timestamp != b.timestamp;
        }
        torn += rc != RQ_OK;
        rq_read_ctx_clear(&ctx);
        rq_cellblock_clear(&out);
        rq_arena_clear(&arena);
    }
    return (void *)torn;
}

/* Reads one response of a scan that takes several rows at once if possible; sometimes suspends the
 * scanner afterwards. */
static rq_err read_some(rq_region_scanner *s, unsigned n, rq_read_ctx *ctx, rq_cellblock *out,
                        rq_scan_state *state)
{
    uint32_t cells[16];
    rq_scan_rows rows = {.cells = cells, .max = 16};
    rq_scan_limits none = {0};
    RQ_TRY(rq_region_scanner_take_rows(s, &none, out, &rows, state));
    if (*state != RQ_SCAN_DONE) RQ_TRY(rq_region_scanner_next(s, &none, ctx, out, state, NULL));
    if (n % 3 == 0) rq_region_scanner_suspend(s);
    return RQ_OK;
}

/* Scans of one family: each row is returned once and in order, and never fewer rows than before. */
static void *take_rows(void *arg)
{
    world *w = arg;
    uintptr_t wrong = 0;
    size_t most = 0;
    rq_scan_family family = {.family = RQ_SLICE_LIT("a")};
    while (!atomic_load(&w->stop)) {
        rq_arena arena = {0};
        rq_cellblock out = {0};
        rq_read_ctx ctx = {.may_block = true};
        rq_region_scanner *s;
        rq_scan scan = {.families = &family,
                        .family_count = 1,
                        .include_start = true,
                        .cache_blocks = true,
                        .max_versions = 1,
                        .time_range = RQ_TIME_RANGE_ALL,
                        .store_limit = -1};
        rq_scan_state state = RQ_SCAN_MORE;
        rq_epoch_member pin;
        rq_epoch_pin(w->f.env->epoch, &pin);
        rq_err rc = rq_region_scanner_open(w->f.region, &scan, 0, &arena, &s, NULL);
        for (unsigned n = 0; rc == RQ_OK && state != RQ_SCAN_DONE; n++)
            rc = read_some(s, n, &ctx, &out, &state);
        if (rc == RQ_OK) {
            w->rows_taken += rq_region_scanner_stats(s)->rows_taken;
            rq_region_scanner_close(s);
        }
        rq_epoch_unpin(w->f.env->epoch, &pin);
        rq_epoch_collect(w->f.env->epoch);
        rq_cursor at = rq_cursor_of(rq_buf_slice(&out.bytes));
        rq_cell cell;
        rq_slice before = {0};
        size_t rows = 0;
        for (; rq_cellblock_next(&at, &cell, NULL) == RQ_OK; rows++) {
            wrong += rows > 0 && rq_slice_compare(before, rq_cell_row(&cell)) >= 0;
            before = rq_cell_row(&cell);
        }
        wrong += rc != RQ_OK || rows < most;
        most = rows;
        rq_read_ctx_clear(&ctx);
        rq_cellblock_clear(&out);
        rq_arena_clear(&arena);
    }
    return (void *)wrong;
}

/* Gets of single rows, by the fast path where possible: both families agree, and a later read never
 * sees an older version. */
static void *get_rows(void *arg)
{
    world *w = arg;
    uintptr_t torn = 0;
    int64_t seen[50] = {0};
    for (unsigned n = 0; !atomic_load(&w->stop); n++) {
        char row[16];
        snprintf(row, sizeof row, "w0-%u", n % 50);
        rq_arena arena = {0};
        rq_cellblock out = {0};
        rq_read_ctx ctx = {.may_block = true};
        rq_scan scan = rq_scan_of_row(rq_slice_cstr(row));
        bool answered;
        rq_epoch_member pin;
        rq_epoch_pin(w->f.env->epoch, &pin);
        rq_err rc = rq_region_get(w->f.region, &scan, &arena, &ctx, &out, &answered, NULL);
        rq_read_ctx_clear(&ctx);
        rq_epoch_unpin(w->f.env->epoch, &pin);
        rq_epoch_collect(w->f.env->epoch);
        rq_cursor at = rq_cursor_of(rq_buf_slice(&out.bytes));
        rq_cell a;
        rq_cell b;
        if (rc == RQ_OK && answered && rq_cellblock_next(&at, &a, NULL) == RQ_OK) {
            bool both = rq_cellblock_next(&at, &b, NULL) == RQ_OK;
            torn += !both || a.timestamp != b.timestamp || a.timestamp < seen[n % 50];
            seen[n % 50] = a.timestamp;
            w->gets_at_once++;
        } else {
            torn += rc != RQ_OK || (answered && seen[n % 50] > 0);
        }
        rq_cellblock_clear(&out);
        rq_arena_clear(&arena);
    }
    return (void *)torn;
}

/* MOB files without references are removed while readers still use them. */
static void *clean_mob(void *arg)
{
    world *w = arg;
    uintptr_t archived = 0;
    while (!atomic_load(&w->stop)) {
        rq_error why = {0};
        size_t n;
        rq_executor *ex = w->f.env->executor;
        rq_mob_cleaning what = {.tables = &w->f.schema, .table_count = 1, .now_ms = ex->now_ms(ex)};
        rq_err rc = rq_mob_clean(w->f.engine, &what, &n, &why);
        if (rc != RQ_OK && rc != RQ_E_STATE) print_message("%s\n", why.message);
        archived += n;
    }
    return (void *)archived;
}

static void run_all(const family_def *families, size_t count)
{
    bool is_mob = families != NULL;
    world *w = calloc(1, sizeof *w);
    real_env_open(&w->real);
    fixture_open(&w->f, &w->real.env, families, count);
    rq_executor *ex = w->f.env->executor;
    writer *writers = calloc(LANES, sizeof *writers);
    pthread_t disturber;
    pthread_t reader;
    pthread_t getter;
    pthread_t taker;
    pthread_t cleaner;
    pthread_create(&disturber, NULL, disturb, w);
    if (is_mob) pthread_create(&cleaner, NULL, clean_mob, w);
    pthread_create(&reader, NULL, read_rows, w);
    pthread_create(&getter, NULL, get_rows, w);
    pthread_create(&taker, NULL, take_rows, w);
    for (unsigned i = 0; i < LANES; i++) {
        writer *x = &writers[i];
        x->world = w;
        x->id = i;
        x->start.run = run_start;
        for (int j = 0; j < DEPTH; j++)
            x->slots[j].owner = x;
        ex->latch_init(ex, &x->latch);
        assert_ok(ex->lane_new(ex, "writer", &x->lane));
        assert_ok(rq_writer_new(w->f.engine, x->lane, &x->way));
        rq_lane_post(x->lane, &x->start);
    }
    for (unsigned i = 0; i < LANES; i++)
        assert_ok(ex->latch_wait(&writers[i].latch));
    atomic_store(&w->stop, true);
    void *torn;
    void *archived = NULL;
    pthread_join(disturber, NULL);
    pthread_join(reader, &torn);
    if (is_mob) pthread_join(cleaner, &archived);
    assert_int_equal((uintptr_t)torn, 0);
    pthread_join(getter, &torn);
    assert_int_equal((uintptr_t)torn, 0);
    pthread_join(taker, &torn);
    assert_int_equal((uintptr_t)torn, 0);
    print_message("%zu gets without a scanner, %zu rows taken at once\n", w->gets_at_once,
                  w->rows_taken);
    if (is_mob) print_message("%zu MOB files archived\n", (size_t)(uintptr_t)archived);
    for (unsigned i = 0; i < LANES; i++) {
        ex->lane_free(ex, writers[i].lane);
        rq_writer_free(writers[i].way);
        ex->latch_destroy(&writers[i].latch);
        assert_int_equal(writers[i].refused, 0);
    }
    assert_int_equal(get_long(&w->f, "counter", "a", "n"), LANES * WRITES);
    fixture_stop(&w->f, false);
    fixture_start(&w->f);
    assert_int_equal(get_long(&w->f, "counter", "a", "n"), LANES * WRITES);
    fixture_close(&w->f);
    real_env_close(&w->real);
    free(writers);
    free(w);
}

static void many_writers_readers_flushes_and_compactions_agree(void **state)
{
    (void)state;
    run_all(NULL, 0);
}

static void histories_with_mob_files_agree(void **state)
{
    (void)state;
    static const family_def mob[] = {{"a", {"IS_MOB", "true", "MOB_THRESHOLD", "1", NULL}},
                                     {"b", {"IS_MOB", "true", "MOB_THRESHOLD", "1", NULL}}};
    run_all(mob, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_writers_readers_flushes_and_compactions_agree),
        cmocka_unit_test(histories_with_mob_files_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
