/* SPDX-License-Identifier: Apache-2.0 */
/* Bulk loads under power cuts, kills and failing calls: at every file call of some histories, at random
 * calls of many. Between other writes, loads of three files over two families are made. Afterwards
 * each load is complete or absent, complete if it was acknowledged, and the sources of an absent
 * one are still in place. Everything else in the history holds as without loads (engine_history.h).
 *
 * With odd seeds the table is replicated: after the restart the log has the record of each load
 * that was acknowledged or whose sources are gone, since nobody makes that load again; no record is
 * of an absent load, and each record names existing files. The record of a load whose sources exist
 * may be missing, because its client got no response and repeats it.
 *
 * RQ_SEEDS=n runs n random seeds from RQ_FIRST=f on; RQ_SEED=s runs one, RQ_CUT=k cuts at its k-th
 * file call. */
#include "engine_history.h"
#include "../seeds.h"

#include "hfile/writer.h"
#include "region/bulk_load.h"
#include "vfs/memory.h"
#include "wal/survey.h"

#include "proto/wal.pb-c.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define LOADS 3
#define ROWS 40 /* rows of a load */
#define STEPS 12

/* Load k: rows l<k>-00 … in a:v and b:v (b in two files). The files of load 2 are on other storage,
 * which the power cut does not affect; they are copied, and remain. */
#define ELSEWHERE 2
static const char families[] = {'a', 'b', 'b'};
#define FILES RQ_ARRAY_LEN(families)

typedef enum fate { NOT_TRIED, WRITTEN, TRIED, ACKED } fate;

typedef struct world {
    history h;
    rq_vfs *elsewhere;
    fate fates[LOADS];
    bool found[LOADS]; /* complete, by a check */
    /* Numbers of loads found complete after a restart, of loads whose record is required, and of
     * records in the log before the restart. */
    unsigned whole, owed, records;
    char text[1200];
} world;

static bool excused(const world *w)
{
    return w->h.faults || rq_sim_is_cut(w->h.sim);
}

static void note(world *w, const char *what, const char *detail)
{
    if (w->text[0] == '\0') snprintf(w->text, sizeof w->text, "%s: %s", what, detail);
}

static void source_path(char out[64], unsigned load, size_t file)
{
    snprintf(out, 64, "incoming/%u-%zu", load, file);
}

static rq_vfs *storage_of(const world *w, unsigned load)
{
    return load == ELSEWHERE ? w->elsewhere : w->h.env->vfs;
}

/* --- making and loading ----------------------------------------------------------------------- */

static rq_err write_source(world *w, unsigned load, size_t file, rq_error *why)
{
    char path[64];
    source_path(path, load, file);
    rq_hfile_options o = rq_hfile_options_default();
    o.include_mvcc = false;
    o.block_bytes = 300;
    rq_hfile_writer *out;
    RQ_TRY(rq_hfile_writer_open(storage_of(w, load), path, &o, &out, why));
    rq_err rc = RQ_OK;
    for (unsigned i = 0; i < ROWS && rc == RQ_OK; i++) {
        char row[16];
        char value[16];
        if (file > 0 && i % 2 != file - 1) continue; /* in b, each file has every second row */
        snprintf(row, sizeof row, "l%u-%02u", load, i);
        snprintf(value, sizeof value, "%u.%u", load, i);
        rq_cell c = {.row = (uint8_t *)row,
                     .row_len = (uint16_t)strlen(row),
                     .family = (const uint8_t *)&families[file],
                     .family_len = 1,
                     .qualifier = (const uint8_t *)"v",
                     .qualifier_len = 1,
                     .timestamp = 5,
                     .type = RQ_TYPE_PUT,
                     .value = (uint8_t *)value,
                     .value_len = (uint32_t)strlen(value)};
        rc = rq_hfile_writer_append(out, &c, why);
    }
    if (rc == RQ_OK) rc = rq_hfile_writer_finish(out, NULL, why);
    rq_hfile_writer_close(out);
    return rc;
}

static void load(world *w, unsigned k)
{
    rq_error why = {0};
    rq_err rc = rq_vfs_mkdirs(storage_of(w, k), "incoming", &why);
    for (size_t i = 0; i < FILES && rc == RQ_OK; i++)
        rc = write_source(w, k, i, &why);
    if (rc != RQ_OK && !excused(w)) note(w, "source", why.message);
    if (rc != RQ_OK) return;
    w->fates[k] = WRITTEN;
    char paths[FILES][64];
    rq_bulk_file files[FILES];
    for (size_t i = 0; i < FILES; i++) {
        source_path(paths[i], k, i);
        files[i] =
            (rq_bulk_file){rq_slice_of(&families[i], 1), storage_of(w, k), paths[i], paths[i]};
    }
    rq_bulk_load what = {.copy = k == 1,
                         .files = files,
                         .file_count = FILES,
                         .assign_seqid = true,
                         .ships = w->h.replicated};
    bool loaded = false;
    if (w->h.region == NULL) return;
    w->fates[k] = TRIED;
    rc = rq_region_bulk_load(w->h.region, &what, &loaded, &why);
    if (rc == RQ_OK && loaded) w->fates[k] = ACKED;
    if (rc == RQ_OK && !loaded) note(w, "load", "refused");
    if (rc != RQ_OK && !excused(w)) note(w, "load", why.message);
}

/* --- checking --------------------------------------------------------------------------------- */

static void count_cell(void *ctx, const rq_cell *c)
{
    ((unsigned *)ctx)[c->family[0] - 'a']++;
}

/* Counts the existing cells of load k in a and b. */
static bool count_cells(world *w, unsigned k, unsigned ret[2])
{
    char start[8];
    char stop[8];
    snprintf(start, sizeof start, "l%u-", k);
    snprintf(stop, sizeof stop, "l%u.", k);
    rq_scan scan = {.start_row = rq_slice_cstr(start),
                    .stop_row = rq_slice_cstr(stop),
                    .include_start = true,
                    .max_versions = 9,
                    .time_range = RQ_TIME_RANGE_ALL,
                    .store_limit = -1};
    rq_error why = {0};
    ret[0] = ret[1] = 0;
    rq_err rc = history_scan(&w->h, &scan, count_cell, ret, &why);
    if (rc != RQ_OK && !excused(w)) note(w, "read", why.message);
    return rc == RQ_OK;
}

/* The path of a missing source; NULL: none is missing. Valid until the next call. */
static const char *missing_source(world *w, unsigned k)
{
    static char path[64];
    rq_stat st;
    for (size_t i = 0; i < FILES && w->fates[k] >= WRITTEN; i++) {
        source_path(path, k, i);
        if (rq_vfs_stat(storage_of(w, k), path, &st, NULL) != RQ_OK) return path;
    }
    return NULL;
}

static void check_load(world *w, unsigned k)
{
    unsigned seen[2];
    char text[80];
    if (!count_cells(w, k, seen)) return;
    bool whole = seen[0] == ROWS && seen[1] == ROWS;
    snprintf(text, sizeof text, "%u cells in a, %u in b, fate %d", seen[0], seen[1],
             (int)w->fates[k]);
    if (!whole && seen[0] + seen[1] > 0) note(w, "a torn load", text);
    if (!whole && w->fates[k] == ACKED) note(w, "an acknowledged load is lost", text);
    if (!whole && w->found[k]) note(w, "a load that an earlier start has found is lost", text);
    w->found[k] = whole;
    if (whole && w->fates[k] < TRIED) note(w, "a load that was never made", text);
    const char *missing = missing_source(w, k);
    if (!whole && missing != NULL) note(w, "no source", missing);
    if (k == ELSEWHERE && missing != NULL)
        note(w, "a source that is not the server's is gone", missing);
    w->whole += whole;
    w->owed += whole && (w->fates[k] == ACKED || missing != NULL);
}

static void check(world *w)
{
    history_check(&w->h);
    w->whole = w->owed = 0;
    for (unsigned k = 0; k < LOADS; k++)
        check_load(w, k);
}

/* --- the records of loads --------------------------------------------------------------------- */

/* Whether the file is in the region's folder or, after a compaction, in the archive. */
static bool is_there(world *w, const char *family, const char *name)
{
    char path[300];
    rq_stat st;
    snprintf(path, sizeof path, "archive/data/default/t/%s/%s/%s", w->h.info.encoded, family, name);
    return rq_vfs_stat(w->h.env->vfs, path + strlen("archive/"), &st, NULL) == RQ_OK ||
           rq_vfs_stat(w->h.env->vfs, path, &st, NULL) == RQ_OK;
}

static rq_err take_record(void *ctx, const rq_wal_surveyed_file *s, const rq_wal_record *r,
                          uint64_t offset, rq_error *why)
{
    world *w = ctx;
    (void)s;
    (void)offset;
    (void)why;
    if (r->kind != RQ_WAL_BULK_LOAD) return RQ_OK;
    Pb__BulkLoadDescriptor *event =
        pb__bulk_load_descriptor__unpack(NULL, r->payload.len, r->payload.ptr);
    if (event == NULL || event->n_stores != FILES) {
        note(w, "record", "malformed");
    } else {
        w->records++;
        for (size_t i = 0; i < FILES; i++) {
            const Pb__StoreDescriptor *store = event->stores[i];
            char family[2] = {(char)store->family_name.data[0]};
            if (!is_there(w, family, store->store_file[0])) note(w, "record", "of no file");
        }
    }
    if (event != NULL) pb__bulk_load_descriptor__free_unpacked(event, NULL);
    return RQ_OK;
}

static void read_records(world *w)
{
    rq_arena a;
    rq_error why = {0};
    rq_wal_survey v;
    rq_wal_survey_calls calls = {.record = take_record, .ctx = w};
    rq_arena_init(&a);
    w->records = 0;
    rq_err rc = rq_wal_survey_dir(w->h.env->vfs, ".rorqual/wal", &a, &calls, &v, &why);
    for (size_t i = 0; i < v.count && rc == RQ_OK; i++)
        if (v.files[i].live)
            rc = rq_wal_survey_read(w->h.env->vfs, &v.files[i], &calls, NULL, &why);
    if (rc != RQ_OK) note(w, "the log", why.message);
    rq_arena_clear(&a);
}

static void check_records(world *w)
{
    char text[80];
    snprintf(text, sizeof text, "%u records, %u complete loads, of which %u must reach the peer",
             w->records, w->whole, w->owed);
    if (w->records < w->owed) note(w, "a load would not reach the peer", text);
    if (w->records > w->whole) note(w, "a record of an absent load", text);
}

/* --- histories -------------------------------------------------------------------------------- */

static void run(world *w)
{
    for (unsigned k = 0; k < LOADS; k++) {
        history_steps(&w->h, STEPS);
        if (!rq_sim_is_cut(w->h.sim) && w->h.region != NULL) load(w, k);
    }
    history_steps(&w->h, STEPS);
}

typedef struct outcome {
    uint64_t calls;
    char text[1300];
} outcome;

static void take_faults(outcome *o, const world *w, const char *when)
{
    const char *what = w->text[0] != '\0' ? w->text : w->h.fault;
    if (o->text[0] == '\0' && what[0] != '\0')
        snprintf(o->text, sizeof o->text, "%s: %s", when, what);
}

/* `fail`: call k fails instead of being the last before a power cut. */
static outcome once(uint64_t seed, uint64_t k, bool fail)
{
    outcome o = {0};
    rq_sim_options options = {.again_percent = seed % 4 * 20};
    rq_sim *sim;
    world w = {0};
    assert_int_equal(rq_sim_new(seed, &options, &sim), RQ_OK);
    history_init(&w.h, sim, seed);
    assert_int_equal(rq_vfs_memory_new(&w.elsewhere), RQ_OK);
    if (seed % 2 == 1) history_replicate(&w.h);
    if (fail) {
        w.h.faults = true;
        rq_sim_fail_at(sim, k, seed % 2 == 0 ? RQ_E_IO : RQ_E_NO_SPACE);
    } else {
        rq_sim_cut_at(sim, k);
    }
    if (history_open(&w.h)) {
        run(&w);
        if (k == 0) check(&w);
        history_close(&w.h, false);
    }
    o.calls = rq_sim_calls(sim);
    take_faults(&o, &w, "at first");
    w.h.faults = false;
    rq_sim_cut_at(sim, 0);
    bool only_killed = rq_sim_random(sim) % 2 == 0;
    if (only_killed)
        rq_sim_restart_process(sim);
    else
        rq_sim_restart(sim);
    if (w.h.replicated) read_records(&w);
    for (int round = 0; round < 2 && o.text[0] == '\0'; round++) {
        if (round > 0) rq_sim_restart(sim);
        if (history_open(&w.h)) {
            check(&w);
            if (w.h.replicated) check_records(&w);
            history_close(&w.h, round > 0 || !only_killed);
        }
        take_faults(&o, &w, round == 0 ? "after the restart" : "after the power cut");
    }
    history_clear(&w.h);
    rq_sim_free(sim);
    rq_vfs_free(w.elsewhere);
    return o;
}

static void every_load_survives_a_random_power_cut(void **state)
{
    (void)state;
    seeds_range seeds = seeds_wanted(20);
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++) {
        outcome whole = once(seed, 0, false);
        if (whole.text[0] != '\0') fail_msg("seed %" PRIu64 ": %s", seed, whole.text);
        uint64_t k = seeds_number("RQ_CUT", 1 + seed * 2654435761u % whole.calls);
        outcome o = once(seed, k, false);
        if (o.text[0] != '\0')
            fail_msg("seed %" PRIu64 " cut at call %" PRIu64 ": %s", seed, k, o.text);
    }
}

static void a_power_cut_at_every_call_is_survived(void **state)
{
    (void)state;
    outcome whole = once(2001, 0, false);
    for (uint64_t k = 1; k <= whole.calls; k++) {
        outcome o = once(2001, k, false);
        if (o.text[0] != '\0') fail_msg("seed 2001 cut at call %" PRIu64 ": %s", k, o.text);
    }
}

static void every_call_may_fail_once(void **state)
{
    (void)state;
    for (uint64_t seed = 3001; seed <= 3003; seed++) {
        outcome whole = once(seed, 0, false);
        for (uint64_t k = 1; k <= whole.calls; k++) {
            outcome o = once(seed, k, true);
            if (o.text[0] != '\0')
                fail_msg("seed %" PRIu64 ", call %" PRIu64 " fails: %s", seed, k, o.text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_load_survives_a_random_power_cut),
        cmocka_unit_test(a_power_cut_at_every_call_is_survived),
        cmocka_unit_test(every_call_may_fail_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
