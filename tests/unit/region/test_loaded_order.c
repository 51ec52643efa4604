/* SPDX-License-Identifier: Apache-2.0 */
/* The order of bulk-loaded and written cells with the same timestamp, through compactions:
 * the cells of a loaded file have no sequence ids, and count as written at the load. */
#include "fixture.h"

#include "hfile/writer.h"
#include "region/bulk_load.h"
#include "region/engine_priv.h"
#include "vfs/sim.h"

static const family_def family = {
    "f", {"hbase.hstore.compaction.min", "2", "hbase.hstore.compaction.min.size", "1", NULL}};

/* Writes a file with a cell of row "r", the row that all tests check. */
static void write_cell(fixture *f, const char *path, int64_t ts, rq_cell_type type,
                       const char *value)
{
    rq_hfile_options o = rq_hfile_options_default();
    rq_hfile_writer *w;
    o.include_mvcc = false;
    rq_cell c = cell_of("f", "q", ts, type, value);
    c.row = (const uint8_t *)"r";
    c.row_len = 1;
    assert_ok(rq_hfile_writer_open(f->env->vfs, path, &o, &w, NULL));
    assert_ok(rq_hfile_writer_append(w, &c, NULL));
    assert_ok(rq_hfile_writer_finish(w, NULL, NULL));
    rq_hfile_writer_close(w);
}

static rq_err load_file(fixture *f, const char *path)
{
    bool loaded;
    rq_bulk_file file = {RQ_SLICE_LIT("f"), f->env->vfs, path, path};
    rq_bulk_load what = {.files = &file, .file_count = 1, .assign_seqid = true};
    rq_err rc = rq_region_bulk_load(f->region, &what, &loaded, NULL);
    assert_true(loaded == (rc == RQ_OK));
    return rc;
}

static void load_cell_at(fixture *f, const char *path, int64_t ts, rq_cell_type type,
                         const char *value)
{
    write_cell(f, path, ts, type, value);
    assert_ok(load_file(f, path));
}

static void load_cell(fixture *f, const char *path, rq_cell_type type, const char *value)
{
    load_cell_at(f, path, 5, type, value);
}

static void load(fixture *f, const char *path, const char *value)
{
    load_cell(f, path, RQ_TYPE_PUT, value);
}

static void compact(fixture *f, rq_sim *sim, bool major)
{
    assert_ok(rq_region_compact(f->region, (rq_slice){0}, major, NULL));
    rq_sim_run(sim);
}

static uint32_t files_of(const fixture *f)
{
    rq_region_load load;
    rq_region_get_load(f->region, &load);
    return load.storefiles;
}

static rq_sim *open(fixture *f)
{
    rq_sim *sim;
    assert_ok(rq_sim_new(11, NULL, &sim));
    fixture_open(f, rq_sim_env(sim), &family, 1);
    return sim;
}

static void flush(fixture *f)
{
    assert_ok(rq_region_flush(f->region, (rq_slice){0}, NULL, NULL));
}

/* Checks the value through flushes, compactions and reopenings. */
static void check_and_close(fixture *f, rq_sim *sim, const char *value)
{
    for (int round = 0; round < 4; round++) {
        const char *there = get(f, "r", "f", "q");
        assert_string_equal(there == NULL ? "nothing" : there, value);
        if (round == 0) flush(f);
        if (round == 1) compact(f, sim, true);
        if (round == 2) {
            fixture_stop(f, true);
            fixture_start(f);
        }
    }
    fixture_close(f);
    rq_sim_free(sim);
}

static void a_memstore_is_older_than_the_compacted_load(void **state)
{
    (void)state;
    fixture f;
    rq_sim *sim = open(&f);
    assert_ok(put(&f, "r", "f", "q", 5, "before"));
    load(&f, "one", "loaded");
    compact(&f, sim, true);
    check_and_close(&f, sim, "loaded");
}

static void a_larger_file_is_older_than_the_compacted_loads(void **state)
{
    (void)state;
    fixture f;
    char large[20000];
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    rq_sim *sim = open(&f);
    assert_ok(put(&f, "other", "f", "q", 5, large));
    assert_ok(put(&f, "r", "f", "q", 5, "before"));
    flush(&f);
    load(&f, "one", "first");
    load(&f, "two", "second");
    compact(&f, sim, false);
    assert_int_equal(files_of(&f), 2);
    check_and_close(&f, sim, "second");
}

static void a_loaded_marker_deletes_what_is_in_the_memstore(void **state)
{
    (void)state;
    fixture f;
    rq_sim *sim = open(&f);
    assert_ok(put(&f, "r", "f", "q", 4, "before"));
    load_cell(&f, "one", RQ_TYPE_DELETE_COLUMN, "");
    compact(&f, sim, true);
    check_and_close(&f, sim, "nothing");
}

/* With no period during which compactions keep sequence ids. */
static void an_old_load_is_still_newer_than_the_memstore(void **state)
{
    (void)state;
    fixture f;
    rq_sim *sim;
    static const char *const settings[] = {"hbase.hstore.compaction.keep.seqId.period=0", NULL};
    assert_ok(rq_sim_new(11, NULL, &sim));
    fixture_open_with(&f, rq_sim_env(sim), &family, 1, settings);
    assert_ok(put(&f, "other", "f", "q", 5, "v"));
    flush(&f);
    assert_ok(put(&f, "r", "f", "q", 5, "before"));
    load(&f, "one", "loaded");
    for (int i = 0; i < 2; i++) {
        rq_sim_advance(sim, (uint64_t)1000 * 1000 * 1000);
        compact(&f, sim, true);
    }
    check_and_close(&f, sim, "loaded");
}

/* A later write is newer, also if the log was replayed after the load. */
static void a_write_behind_the_load_is_newer(void **state)
{
    (void)state;
    fixture f;
    rq_sim *sim = open(&f);
    load(&f, "one", "loaded");
    assert_ok(put(&f, "r", "f", "q", 5, "after"));
    compact(&f, sim, true);
    fixture_stop(&f, false);
    fixture_start(&f);
    check_and_close(&f, sim, "after");
}

/* --- odd files -------------------------------------------------------------------------------- */

/* A marker that is older than anything is dropped by a major compaction, although the time minus its timestamp
 * overflows. */
static void a_marker_at_the_beginning_of_time_can_be_dropped(void **state)
{
    (void)state;
    static const family_def purging = {"f", {"hbase.hstore.compaction.min", "9", NULL}};
    static const char *const settings[] = {"hbase.hstore.time.to.purge.deletes=3600000", NULL};
    fixture f;
    rq_sim *sim;
    assert_ok(rq_sim_new(11, NULL, &sim));
    fixture_open_with(&f, rq_sim_env(sim), &purging, 1, settings);
    assert_ok(put(&f, "r", "f", "other", 5, "value"));
    flush(&f);
    load_cell_at(&f, "one", INT64_MIN, RQ_TYPE_DELETE_COLUMN, NULL);
    load_cell_at(&f, "two", INT64_MIN + 1, RQ_TYPE_DELETE_COLUMN, NULL);
    compact(&f, sim, true);
    assert_int_equal(files_of(&f), 1);
    const rq_store_version *v = rq_store_version_now(f.region->stores[0].store);
    assert_int_equal(v->files[0].entry_count, 1);
    assert_string_equal(get(&f, "r", "f", "other"), "value");
    fixture_close(&f);
    rq_sim_free(sim);
}

/* Copies a file as a program does that does not sync the copy. */
static void copy_unsynced(fixture *f, const char *from, const char *to)
{
    rq_slice bytes;
    rq_file *file;
    rq_vfs *vfs = f->env->vfs;
    assert_ok(rq_vfs_read_file(vfs, from, 1 << 20, &f->arena, &bytes, NULL));
    assert_ok(rq_vfs_open(vfs, to, RQ_OPEN_WRITE | RQ_OPEN_CREATE, &file, NULL));
    assert_ok(rq_file_write(file, bytes.ptr, bytes.len, 0, NULL));
    assert_ok(rq_file_close(file));
}

static void cut_power(fixture *f, rq_sim *sim)
{
    rq_sim_run(sim);
    rq_sim_cut_now(sim);
    (void)!rq_region_close(f->region, true, NULL);
    rq_region_unref(f->region);
    (void)!rq_engine_close(f->engine, false, NULL);
    rq_sim_run(sim);
    rq_sim_restart(sim);
}

/* The client repeats a load whose sync failed. What it then gets acknowledged must survive a power cut. */
static void a_file_whose_sync_failed_is_durable_once_it_is_loaded(void **state)
{
    (void)state;
    unsigned repeated = 0;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        for (uint64_t call = 1; call <= 40; call++) {
            fixture f;
            rq_sim *sim;
            assert_ok(rq_sim_new(seed, NULL, &sim));
            fixture_open(&f, rq_sim_env(sim), &family, 1);
            write_cell(&f, "file", 5, RQ_TYPE_PUT, "loaded");
            copy_unsynced(&f, "file", "source");
            rq_sim_fail_at(sim, rq_sim_calls(sim) + call, RQ_E_IO);
            bool loaded = load_file(&f, "source") == RQ_OK;
            if (!loaded && load_file(&f, "source") == RQ_OK) {
                loaded = true;
                repeated++;
            }
            cut_power(&f, sim);
            fixture_start(&f);
            if (loaded && get(&f, "r", "f", "q") == NULL)
                fail_msg("seed %d, call %d: it is lost", (int)seed, (int)call);
            fixture_close(&f);
            rq_sim_free(sim);
        }
    }
    assert_true(repeated > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_memstore_is_older_than_the_compacted_load),
        cmocka_unit_test(a_larger_file_is_older_than_the_compacted_loads),
        cmocka_unit_test(a_loaded_marker_deletes_what_is_in_the_memstore),
        cmocka_unit_test(an_old_load_is_still_newer_than_the_memstore),
        cmocka_unit_test(a_write_behind_the_load_is_newer),
        cmocka_unit_test(a_marker_at_the_beginning_of_time_can_be_dropped),
        cmocka_unit_test(a_file_whose_sync_failed_is_durable_once_it_is_loaded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
