/* SPDX-License-Identifier: Apache-2.0 */
/* A server that dies on a full disk, during a change of the catalog or not, and is restarted while
 * the disk is still full: it starts, serves reads, refuses writes with the reason, and continues by
 * itself when there is space, including the change. At times it dies once more while it starts.
 *
 * RQ_SEEDS=n runs n random seeds from RQ_FIRST=f on; RQ_SEED=s runs one. */
#include "world.h"

#include "../seeds.h"

#include <inttypes.h>

#define SECOND ((uint64_t)1000 * 1000 * 1000)

typedef struct outcome {
    bool good;
    char text[1400];
} outcome;

static void wrong(outcome *o, const char *fmt, ...) RQ_PRINTF(2, 3);

static void wrong(outcome *o, const char *fmt, ...)
{
    if (!o->good) return;
    o->good = false;
    va_list args;
    va_start(args, fmt);
    vsnprintf(o->text, sizeof o->text, fmt, args);
    va_end(args);
}

/* --- interrupted changes ---------------------------------------------------------------------- */

#define CHANGE(name, expr)                                                                         \
    static void name(world *w)                                                                     \
    {                                                                                              \
        rq_err cut_off = expr;                                                                     \
        (void)cut_off;                                                                             \
    }

CHANGE(nothing, (w->why = (rq_error){0}, RQ_OK))
CHANGE(create_v, world_create(w, "v", "f", "k p"))
CHANGE(split_t, world_split(w, "t", "z", "q"))
CHANGE(merge_t, world_merge(w, "t", "a z", false))
CHANGE(alter_t, world_family(w, RQ_DDL_ADD_FAMILY, "t", "h"))
CHANGE(disable_t, world_table(w, RQ_DDL_DISABLE_TABLE, "t"))
CHANGE(flush_u, world_table(w, RQ_DDL_FLUSH_TABLE, "u"))

static void (*const changes[])(world *w) = {nothing, create_v,  split_t, merge_t,
                                            alter_t, disable_t, flush_u};

/* --- one run ---------------------------------------------------------------------------------- */

static void put_all(world *w)
{
    OK(world_create(w, "t", "f", "m"));
    OK(world_create(w, "u", "f", NULL));
    OK(world_put(w, "t", "a", "f"));
    OK(world_put(w, "u", "b", "f"));
    OK(world_table(w, RQ_DDL_FLUSH_TABLE, "t"));
    OK(world_put(w, "t", "z", "f"));
    OK(world_put(w, "u", "c", "f"));
}

static void die(world *w)
{
    if (!rq_sim_is_cut(w->sim)) rq_sim_cut_now(w->sim);
    (void)world_close(w, false);
    rq_sim_run(w->sim);
    rq_sim_cut_at(w->sim, 0);
    if (rq_sim_random(w->sim) % 2 == 0)
        rq_sim_restart(w->sim);
    else
        rq_sim_restart_process(w->sim);
}

static void check_reads(world *w, bool all, const char *when, outcome *o)
{
    static const char *const rows[][2] = {{"u", "b"}, {"u", "c"}, {"t", "a"}, {"t", "z"}};
    for (size_t i = 0; i < (all ? 4 : 2); i++) {
        rq_err rc = world_get(w, rows[i][0], rows[i][1], "f");
        if (rc != RQ_OK)
            wrong(o, "%s: row %s of %s: %s", when, rows[i][1], rows[i][0], rq_err_name(rc));
    }
}

static void run_full(world *w, bool t_is_whole, outcome *o)
{
    for (unsigned again = (unsigned)(rq_sim_random(w->sim) % 3); o->good && again > 0; again--) {
        rq_sim_cut_at(w->sim, rq_sim_calls(w->sim) + 1 + rq_sim_random(w->sim) % 120);
        if (world_open(w) != RQ_OK && !rq_sim_is_cut(w->sim))
            wrong(o, "not started on a full disk: %s", w->why.message);
        die(w);
    }
    if (!o->good) return;
    if (world_open(w) != RQ_OK) {
        wrong(o, "not started on a full disk: %s", w->why.message);
        return;
    }
    check_reads(w, t_is_whole, "on a full disk", o);
    rq_err rc = world_put(w, "u", "x", "f");
    bool says_why = strstr(w->why.message, "no space left") != NULL;
    /* Writes may succeed, because an overwritten log needs no further space. */
    if (rc != RQ_OK && (rc != RQ_E_REGION_TOO_BUSY || !says_why) && rc != RQ_E_NO_SPACE)
        wrong(o, "a write on a full disk: %s, %s", rq_err_name(rc), w->why.message);
    check_reads(w, t_is_whole, "after a write on a full disk", o);
}

static outcome run_once(uint64_t seed)
{
    outcome o = {.good = true};
    world own;
    world *w = &own;
    world_init(w, seed, NULL);
    assert_int_equal(rq_config_set_pair(w->config, "rorqual.wal.file.size=65536", NULL), RQ_OK);
    OK(world_open(w));
    put_all(w);
    size_t which = rq_sim_random(w->sim) % RQ_ARRAY_LEN(changes);
    /* an orderly stop, but before a start on a full disk */
    bool stops = which == 0 && rq_sim_random(w->sim) % 3 == 0;
    if (stops) {
        OK(world_close(w, true));
    } else {
        rq_sim_cut_at(w->sim, rq_sim_calls(w->sim) + 1 + rq_sim_random(w->sim) % 150);
        changes[which](w);
        die(w);
    }
    rq_sim_quota(w->sim, 1);
    run_full(w, which == 0 || which == 1 || which == 6, &o);
    rq_sim_quota(w->sim, 0);
    if (o.good) {
        rq_sim_advance(w->sim, 300 * SECOND);
        if (!world_settle(w)) wrong(&o, "a procedure never ends");
    }
    if (o.good && world_put(w, "u", "y", "f") != RQ_OK)
        wrong(&o, "a write with space again: %s", w->why.message);
    bool t_is_disabled = which == 5 && world_get(w, "t", "a", "f") != RQ_OK;
    if (o.good) check_reads(w, !t_is_disabled, "with space again", &o);
    char *faults = o.good ? world_check(w) : strdup("");
    if (faults[0] != '\0') wrong(&o, "with space again: %s", faults);
    free(faults);
    rq_stat st;
    if (o.good && rq_vfs_stat(w->env->vfs, ".rorqual/open", &st, NULL) != RQ_OK)
        wrong(&o, "the mark of a running server is not there");
    if (o.good && world_close(w, true) != RQ_OK) wrong(&o, "the stop: %s", w->why.message);
    if (o.good && world_open(w) != RQ_OK) wrong(&o, "the next start: %s", w->why.message);
    if (o.good) check_reads(w, !t_is_disabled, "at the end", &o);
    world_clear(w);
    return o;
}

static void a_server_starts_on_a_full_disk(void **state)
{
    (void)state;
    seeds_range seeds = seeds_wanted(300);
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++) {
        outcome o = run_once(seed);
        if (!o.good) fail_msg("seed %" PRIu64 ": %s", seed, o.text);
    }
}

#define LARGE_ROWS 12 /* one per region */
#define LARGE_CELLS 10
#define LARGE_BYTES ((size_t)100 * 1024)

static void put_large(world *w)
{
    rq_arena a = {0};
    char *value = rq_arena_calloc(&a, LARGE_BYTES, 1);
    OK(world_create(w, "t", "f", "b c d e f g h i j k l"));
    for (int i = 0; i < LARGE_ROWS; i++) {
        char row[2] = {(char)('a' + i), '\0'};
        for (int k = 0; k < LARGE_CELLS; k++) {
            char qualifier[2] = {(char)('0' + k), '\0'};
            OK(world_put_cell(w, "t", row, "f", qualifier, rq_slice_of(value, LARGE_BYTES)));
        }
    }
    rq_arena_clear(&a);
}

static unsigned readable(world *w)
{
    unsigned count = 0;
    for (int i = 0; i < LARGE_ROWS; i++) {
        char row[2] = {(char)('a' + i), '\0'};
        rq_err rc = world_get(w, "t", row, "f");
        assert_true(rc == RQ_OK || rc == RQ_E_NOT_SERVING_REGION);
        count += rc == RQ_OK;
    }
    return count;
}

/* The server has less memory than before. A region that does not fit, and cannot be flushed, stays
 * closed until it can be opened. */
static void the_log_of_a_full_disk_may_hold_more_than_memory(void **state)
{
    (void)state;
    world own;
    world *w = &own;
    world_init(w, 1, NULL);
    OK(world_open(w));
    put_large(w);
    die(w);
    rq_sim_quota(w->sim, 1);
    assert_int_equal(rq_config_set_pair(w->config, "rorqual.memory=8m", NULL), RQ_OK);
    OK(world_open(w));
    rq_engine_stats s;
    rq_engine_get_stats(w->engine, &s);
    unsigned open = readable(w);
    print_message("%u of %d regions are open, %" PRIu64 " MB of %" PRIu64 " MB\n", open, LARGE_ROWS,
                  s.memstore_bytes_held >> 20, s.memstore_bytes_max >> 20);
    assert_true(open > 0 && open < LARGE_ROWS);
    rq_sim_quota(w->sim, 0);
    rq_sim_advance(w->sim, 300 * SECOND);
    assert_int_equal(readable(w), LARGE_ROWS);
    OK(world_put(w, "t", "a", "f"));
    world_end(w);
}

/* The server cannot start; the error must be clear to an operator. */
static void a_new_folder_on_a_full_disk_is_refused(void **state)
{
    (void)state;
    for (uint64_t bytes = 1; bytes < 40000; bytes = bytes * 3 / 2 + 1) {
        world w;
        world_init(&w, bytes, NULL);
        rq_sim_quota(w.sim, bytes);
        assert_int_equal(world_open(&w), RQ_E_NO_SPACE);
        if (strstr(w.why.message, "no space left") == NULL) fail_msg("%s", w.why.message);
        rq_sim_run(w.sim);
        rq_sim_quota(w.sim, 0);
        if (world_open(&w) != RQ_OK) fail_msg("with space: %s", w.why.message);
        world_end(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_starts_on_a_full_disk),
        cmocka_unit_test(the_log_of_a_full_disk_may_hold_more_than_memory),
        cmocka_unit_test(a_new_folder_on_a_full_disk_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
