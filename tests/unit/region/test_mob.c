/* SPDX-License-Identifier: Apache-2.0 */
/* MOB families. The property: a random history on a MOB family and the same history on a plain one
 * give the same results, whatever is flushed, compacted, cleaned and reopened in between, and
 * whether or not reads wait for blocks. Further tests are examples of features that only MOB
 * families have.
 *
 * RQ_SEED=s runs one seed, RQ_SEEDS=n n seeds from RQ_FIRST=f on; a failure prints its seed. */
#include "fixture.h"
#include "../../seeds.h"

#include "hfile/writer.h"
#include "region/bulk_load.h"
#include "region/image.h"
#include "region/mob_cleaner.h"
#include "store/mob_files.h"
#include "vfs/sim.h"

#include <inttypes.h>

#define ROWS 6
#define STEPS 80

typedef struct world {
    fixture f;
    rq_sim *sim;
    uint64_t seed;
    /* Compactions run automatically, of each family depending on its size. Reads that depend on a
     * compaction are not compared: raw reads, versions beyond VERSIONS in a time range, puts below
     * a delete marker. */
    bool uneven;
} world;

static uint64_t below(world *w, uint64_t bound)
{
    return rq_sim_random(w->sim) % bound;
}

/* --- schemas ---------------------------------------------------------------------------------- */

/* m is the MOB family, p the plain one. */
static rq_table_schema *schema_of(uint64_t seed, unsigned threshold)
{
    static const char *const encodings[] = {"NONE", "FAST_DIFF", "ROW_INDEX_V1", "PREFIX"};
    static const char *const kept[] = {"FALSE", "TRUE"};
    char text[16];
    snprintf(text, sizeof text, "%u", threshold);
    family_def f[] = {
        {"m",
         {"VERSIONS", "3", "IS_MOB", "true", "MOB_THRESHOLD", text, "DATA_BLOCK_ENCODING",
          encodings[seed % 4], "KEEP_DELETED_CELLS", kept[seed / 4 % 2], NULL}},
        {"p", {"VERSIONS", "3", "KEEP_DELETED_CELLS", kept[seed / 4 % 2], NULL}},
    };
    return make_schema("default", "t", f, 2);
}

static void begin(world *w, uint64_t seed, const char *const *settings)
{
    rq_sim_options o = {.again_percent = 60};
    *w = (world){.seed = seed};
    assert_ok(rq_sim_new(seed, &o, &w->sim));
    static const char *const few[] = {
        "hbase.hstore.compaction.min=100", "hbase.hstore.blockingStoreFiles=1000",
        "hbase.mob.file.cache.size=2", "rorqual.memory=33554432", NULL};
    fixture_open_with(&w->f, rq_sim_env(w->sim), NULL, 0, settings == NULL ? few : settings);
    fixture_stop(&w->f, true);
    rq_table_schema_unref(w->f.schema);
    w->f.schema = schema_of(seed, 8);
    assert_ok(rq_region_info_make(&w->f.arena, RQ_SLICE_LIT("default"), RQ_SLICE_LIT("t"),
                                  (rq_slice){0}, (rq_slice){0}, 1700000000001, 0, &w->f.info));
    fixture_start(&w->f);
}

static void end(world *w)
{
    fixture_close(&w->f);
    rq_sim_free(w->sim);
}

/* --- writing ---------------------------------------------------------------------------------- */

static void write_both(world *w, rq_cell_type type)
{
    static char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    char row[8], value[80];
    snprintf(row, sizeof row, "r%u", (unsigned)below(w, ROWS));
    const char *qualifier = below(w, 3) == 0 ? "x" : "y";
    if (type == RQ_TYPE_DELETE_FAMILY || type == RQ_TYPE_DELETE_FAMILY_VERSION) qualifier = "";
    int64_t ts = 1 + (int64_t)below(w, 9);
    snprintf(value, sizeof value, "%.*s", (int)below(w, 60), letters + below(w, 3));
    const char *families[] = {"m", "p"};
    for (size_t i = 0; i < 2; i++) {
        rq_err rc = type == RQ_TYPE_PUT ? put(&w->f, row, families[i], qualifier, ts, value)
                                        : delete_cell(&w->f, row, families[i], qualifier, ts, type);
        assert_ok(rc);
    }
}

static void append_both(world *w)
{
    rq_cell cells[] = {cell_of("m", "y", RQ_TIMESTAMP_LATEST, RQ_TYPE_PUT, "tail"),
                       cell_of("p", "y", RQ_TIMESTAMP_LATEST, RQ_TYPE_PUT, "tail")};
    rq_mutation m = {.type = RQ_MUTATE_APPEND,
                     .row = RQ_SLICE_LIT("r0"),
                     .cells = cells,
                     .cell_count = 2,
                     .time_range = RQ_TIME_RANGE_ALL};
    rq_row_op op = {.mutations = &m, .mutation_count = 1};
    assert_ok(rq_region_write_sync(w->f.region, &op, 1, NULL));
    rq_cellblock_clear(&op.result);
}

/* --- reading ---------------------------------------------------------------------------------- */

typedef struct reader {
    rq_arena arena;
    rq_scan scan;
    rq_scan_family family;
    rq_slice qualifier;
    rq_region_scanner *scanner;
    rq_buf text;
    bool done;
} reader;

/* Reads as an event loop does: without blocking, and holding no resource between two attempts. */
static void read_some(world *w, reader *r, uint32_t cells)
{
    rq_read_ctx ctx = {0};
    rq_cellblock out = {.with_tags = true};
    rq_scan_limits limits = {.cells = cells};
    rq_scan_state state;
    rq_error why = {0};
    rq_err rc;
    while (true) {
        rq_epoch_member pin;
        rq_epoch_pin(w->f.env->epoch, &pin);
        rc = rq_region_scanner_next(r->scanner, &limits, &ctx, &out, &state, &why);
        rq_region_scanner_suspend(r->scanner);
        rq_epoch_unpin(w->f.env->epoch, &pin);
        if (rc != RQ_E_AGAIN) break;
        if (below(w, 4) == 0) rq_sim_run(w->sim);
        if (rq_read_ctx_needs(&ctx)) assert_ok(rq_read_ctx_fulfil(&ctx, &why));
    }
    if (rc != RQ_OK) fail_msg("seed %" PRIu64 ": read: %s", w->seed, why.message);
    r->done = state == RQ_SCAN_DONE;
    rq_cursor at = rq_cursor_of(rq_buf_slice(&out.bytes));
    rq_cell c;
    while (rq_cellblock_next(&at, &c, NULL) == RQ_OK)
        assert_ok(rq_buf_printf(&r->text, "%.*s:%.*s/%" PRId64 "/%u/%u=%.*s\n", c.row_len, c.row,
                                (int)c.qualifier_len, c.qualifier, c.timestamp, c.type, c.tags_len,
                                (int)c.value_len, c.value));
    rq_read_ctx_clear(&ctx);
    rq_cellblock_clear(&out);
}

static void reader_open(world *w, reader *r, const char *family, rq_scan scan, bool one_column)
{
    rq_error why = {0};
    rq_epoch_member pin;
    *r = (reader){.scan = scan, .qualifier = RQ_SLICE_LIT("y")};
    r->family.family = rq_slice_cstr(family);
    r->family.qualifiers = &r->qualifier;
    r->family.qualifier_count = one_column;
    r->scan.families = &r->family;
    r->scan.family_count = 1;
    rq_epoch_pin(w->f.env->epoch, &pin);
    if (rq_region_scanner_open(w->f.region, &r->scan, 0, &r->arena, &r->scanner, &why) != RQ_OK)
        fail_msg("seed %" PRIu64 ": open: %s", w->seed, why.message);
    rq_epoch_unpin(w->f.env->epoch, &pin);
}

static void reader_close(reader *r)
{
    rq_region_scanner_close(r->scanner);
    rq_buf_clear(&r->text);
    rq_arena_clear(&r->arena);
}

static void expect_same(world *w, reader *m, reader *p)
{
    assert_ok(rq_buf_append_u8(&m->text, 0));
    assert_ok(rq_buf_append_u8(&p->text, 0));
    if (strcmp((char *)m->text.ptr, (char *)p->text.ptr) != 0)
        fail_msg("seed %" PRIu64 "\nMOB family:\n%s\nplain family:\n%s", w->seed, m->text.ptr,
                 p->text.ptr);
}

static rq_scan some_scan(world *w)
{
    static char rows[ROWS][4];
    unsigned i = (unsigned)below(w, ROWS);
    snprintf(rows[i], sizeof rows[i], "r%u", i);
    bool get = below(w, 3) == 0;
    rq_scan s = {.include_start = true,
                 .max_versions = 1 + (int32_t)below(w, 4),
                 .time_range = RQ_TIME_RANGE_ALL,
                 .store_limit = below(w, 6) == 0 ? 2 : -1,
                 .store_offset = below(w, 6) == 0 ? 1 : 0,
                 .cache_blocks = true,
                 .mob_cache_blocks = below(w, 2) == 0,
                 .raw = !get && !w->uneven && below(w, 4) == 0,
                 .reversed = !get && below(w, 4) == 0,
                 .is_get = get,
                 .include_stop = get};
    if (get) s.start_row = s.stop_row = rq_slice_cstr(rows[i]);
    if (!w->uneven && below(w, 4) == 0) s.time_range = (rq_time_range){2, 7};
    return s;
}

static void compare(world *w)
{
    reader m, p;
    rq_scan scan = some_scan(w);
    bool one_column = !scan.raw && below(w, 2) == 0;
    uint32_t batch = below(w, 2) == 0 ? 0 : 1 + (uint32_t)below(w, 3);
    reader_open(w, &m, "m", scan, one_column);
    reader_open(w, &p, "p", scan, one_column);
    while (!m.done)
        read_some(w, &m, batch);
    while (!p.done)
        read_some(w, &p, batch);
    expect_same(w, &m, &p);
    reader_close(&m);
    reader_close(&p);
}

/* --- background work -------------------------------------------------------------------------- */

static void flush(world *w)
{
    assert_ok(rq_region_flush(w->f.region, (rq_slice){0}, NULL, NULL));
}

static void compact(world *w)
{
    assert_ok(rq_region_compact(w->f.region, (rq_slice){0}, true, NULL));
    rq_sim_run(w->sim);
}

static char *mob_dir(world *w)
{
    const char *dir = rq_mob_family_dir(&w->f.arena, RQ_SLICE_LIT("t"), RQ_SLICE_LIT("m"));
    return rq_arena_printf(&w->f.arena, "%s", dir);
}

static size_t count_files(world *w, const char *dir)
{
    rq_dir_entry *entries;
    size_t count = 0;
    rq_err rc = rq_vfs_list(w->f.env->vfs, dir, &w->f.arena, &entries, &count, NULL);
    return rc == RQ_OK ? count : 0;
}

static size_t clean(world *w, int64_t min_age_ms)
{
    rq_error why = {0};
    size_t archived = 0;
    rq_mob_cleaning what = {.tables = &w->f.schema,
                            .table_count = 1,
                            .min_age_ms = min_age_ms,
                            .now_ms = w->f.env->executor->now_ms(w->f.env->executor)};
    if (rq_mob_clean(w->f.engine, &what, &archived, &why) != RQ_OK)
        fail_msg("seed %" PRIu64 ": clean: %s", w->seed, why.message);
    return archived;
}

static void throw_archive_away(world *w)
{
    const char *dir = mob_dir(w) + strlen(RQ_MOB_DIR);
    assert_ok(
        rq_vfs_remove_tree(w->f.env->vfs, rq_arena_printf(&w->f.arena, "archive%s", dir), NULL));
}

/* Reopens with another threshold, as after an alter. */
static void reopen(world *w)
{
    static const unsigned thresholds[] = {0, 8, 30, 1000};
    bool clean_stop = below(w, 2) == 0;
    fixture_stop(&w->f, clean_stop);
    rq_table_schema_unref(w->f.schema);
    w->f.schema = schema_of(w->seed, thresholds[below(w, 4)]);
    fixture_start(&w->f);
}

static void step(world *w)
{
    static const rq_cell_type types[] = {
        RQ_TYPE_PUT,           RQ_TYPE_PUT,           RQ_TYPE_PUT,
        RQ_TYPE_PUT,           RQ_TYPE_PUT,           RQ_TYPE_DELETE,
        RQ_TYPE_DELETE_COLUMN, RQ_TYPE_DELETE_FAMILY, RQ_TYPE_DELETE_FAMILY_VERSION};
    uint64_t what = below(w, 30);
    if (what < 14)
        write_both(w, w->uneven ? RQ_TYPE_PUT : types[below(w, RQ_ARRAY_LEN(types))]);
    else if (what < 16)
        append_both(w);
    else if (what < 19)
        flush(w);
    else if (what < 21)
        compact(w);
    else if (what < 22)
        reopen(w);
    else if (what < 23 && w->uneven)
        rq_sim_advance(w->sim, UINT64_C(2) * 1000000000);
    else if (what < 24) {
        clean(w, 0);
        throw_archive_away(w);
    } else
        compare(w);
}

static void a_mob_family_answers_as_a_plain_one(void **state)
{
    (void)state;
    seeds_range seeds = seeds_wanted(150);
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++) {
        static const char *const eager[] = {
            "hbase.hstore.compaction.min=2", "hbase.regionserver.compaction.check.period=1000",
            "hbase.mob.file.cache.size=0", "rorqual.memory=33554432", NULL};
        world w;
        begin(&w, seed, seed % 3 == 0 ? eager : NULL);
        w.uneven = seed % 3 == 0;
        for (int i = 0; i < STEPS; i++)
            step(&w);
        compact(&w);
        compare(&w);
        end(&w);
    }
}

/* --- a long-lived scanner --------------------------------------------------------------------- */

static void a_scanner_outlives_the_files_it_began_with(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        world w;
        begin(&w, seed, NULL);
        for (int i = 0; i < 40; i++)
            write_both(&w, RQ_TYPE_PUT);
        flush(&w);
        rq_scan all = {.include_start = true,
                       .max_versions = 3,
                       .time_range = RQ_TIME_RANGE_ALL,
                       .store_limit = -1};
        reader m, p;
        reader_open(&w, &m, "m", all, false);
        reader_open(&w, &p, "p", all, false);
        for (int round = 0; !m.done; round++) {
            read_some(&w, &m, 3);
            write_both(&w, round % 2 == 0 ? RQ_TYPE_PUT : RQ_TYPE_DELETE_COLUMN);
            flush(&w);
            if (round % 3 == 0) compact(&w);
            clean(&w, 0);
            throw_archive_away(&w);
        }
        while (!p.done)
            read_some(&w, &p, 3);
        expect_same(&w, &m, &p);
        reader_close(&m);
        reader_close(&p);
        end(&w);
    }
}

/* --- examples --------------------------------------------------------------------------------- */

#define LARGE "a value above the threshold"

static const char *read_m(world *w, rq_scan scan)
{
    reader r;
    scan.include_start = true;
    scan.max_versions = 3;
    scan.time_range = RQ_TIME_RANGE_ALL;
    scan.store_limit = -1;
    reader_open(w, &r, "m", scan, false);
    while (!r.done)
        read_some(w, &r, 0);
    char *text = rq_arena_cstr(&w->f.arena, rq_buf_slice(&r.text));
    reader_close(&r);
    return text;
}

static void larger_values_leave_the_store_file(void **state)
{
    (void)state;
    world w;
    begin(&w, 7, NULL);
    assert_ok(put(&w.f, "r", "m", "x", 1, "small"));
    assert_ok(put(&w.f, "r", "m", "y", 1, LARGE));
    /* In the memstore there are only values. */
    assert_string_equal(read_m(&w, (rq_scan){.mob_refs_only = true}), "");
    flush(&w);
    assert_int_equal(count_files(&w, mob_dir(&w)), 1);
    assert_string_equal(read_m(&w, (rq_scan){0}), "r:x/1/4/0=small\nr:y/1/4/0=" LARGE "\n");
    /* Tags 5 and 6; the value begins with a zero byte. */
    const char *raw = read_m(&w, (rq_scan){.mob_raw = true, .mob_refs_only = true});
    assert_memory_equal(raw, "r:y/1/4/7=", 10);
    assert_string_equal(read_m(&w, (rq_scan){.mob_refs_only = true}), "r:y/1/4/0=" LARGE "\n");
    end(&w);
}

static void a_compaction_on_request_moves_values_across_the_threshold(void **state)
{
    (void)state;
    world w;
    begin(&w, 7, NULL);
    assert_ok(put(&w.f, "r", "m", "x", 1, "small"));
    assert_ok(put(&w.f, "r", "m", "y", 1, LARGE));
    flush(&w);
    fixture_stop(&w.f, true);
    rq_table_schema_unref(w.f.schema);
    w.f.schema = schema_of(7, 1000);
    fixture_start(&w.f);
    compact(&w);
    assert_string_equal(read_m(&w, (rq_scan){.mob_refs_only = true}), "");
    assert_int_equal(clean(&w, 0), 1);
    assert_int_equal(count_files(&w, mob_dir(&w)), 0);
    fixture_stop(&w.f, true);
    rq_table_schema_unref(w.f.schema);
    w.f.schema = schema_of(7, 2);
    fixture_start(&w.f);
    compact(&w);
    assert_int_equal(count_files(&w, mob_dir(&w)), 1);
    const char *both = "r:x/1/4/0=small\nr:y/1/4/0=" LARGE "\n";
    assert_string_equal(read_m(&w, (rq_scan){.mob_refs_only = true}), both);
    end(&w);
}

static void the_cleaner_leaves_what_is_young_or_referred_to(void **state)
{
    (void)state;
    world w;
    begin(&w, 7, NULL);
    assert_ok(put(&w.f, "r", "m", "y", 1, LARGE));
    flush(&w);
    assert_int_equal(clean(&w, 0), 0);
    compact(&w); /* writes a new file; nothing refers to the previous one */
    assert_int_equal(count_files(&w, mob_dir(&w)), 2);
    assert_int_equal(clean(&w, 3600000), 0);
    rq_sim_advance(w.sim, UINT64_C(3700) * 1000000000);
    assert_int_equal(clean(&w, 3600000), 1);
    assert_int_equal(count_files(&w, mob_dir(&w)), 1);
    assert_string_equal(read_m(&w, (rq_scan){0}), "r:y/1/4/0=" LARGE "\n");
    end(&w);
}

/* Writes a file like HFileOutputFormat2, with a tag that is not a reference's. */
static void write_loaded(world *w, const char *path)
{
    static const uint8_t tag[] = {0, 2, 0x42, 'x'};
    rq_hfile_options o = rq_hfile_options_default();
    rq_hfile_writer *out;
    o.include_mvcc = false;
    o.include_tags = true;
    rq_cell c = cell_of("m", "y", 5, RQ_TYPE_PUT, LARGE);
    c.row = (const uint8_t *)"r";
    c.row_len = 1;
    c.tags = tag;
    c.tags_len = sizeof tag;
    assert_ok(rq_hfile_writer_open(w->f.env->vfs, path, &o, &out, NULL));
    assert_ok(rq_hfile_writer_append(out, &c, NULL));
    assert_ok(rq_hfile_writer_append_file_info(out, RQ_SLICE_LIT("BULKLOAD_SOURCE_TASK"),
                                               RQ_SLICE_LIT("attempt_1"), NULL));
    assert_ok(rq_hfile_writer_finish(out, NULL, NULL));
    rq_hfile_writer_close(out);
}

/* HBASE: DefaultMobStoreCompactor, MobFileCleanupUtil. */
static void a_loaded_value_stays_in_its_file_until_a_compaction(void **state)
{
    (void)state;
    world w;
    begin(&w, 7, NULL);
    assert_ok(put(&w.f, "q", "m", "y", 1, LARGE));
    flush(&w);
    compact(&w); /* nothing refers to the first file now */
    write_loaded(&w, "loaded");
    rq_bulk_file file = {RQ_SLICE_LIT("m"), w.f.env->vfs, "loaded", "loaded"};
    rq_bulk_load what = {.files = &file, .file_count = 1, .assign_seqid = true};
    bool loaded = false;
    assert_ok(rq_region_bulk_load(w.f.region, &what, &loaded, NULL));
    assert_true(loaded);
    const char *both = "q:y/1/4/0=" LARGE "\nr:y/5/4/4=" LARGE "\n";
    assert_string_equal(read_m(&w, (rq_scan){0}), both);
    assert_string_equal(read_m(&w, (rq_scan){.mob_refs_only = true}), "q:y/1/4/0=" LARGE "\n");
    /* The file refers to nothing, although it does not state this. */
    assert_int_equal(clean(&w, 0), 1);
    assert_int_equal(count_files(&w, mob_dir(&w)), 1);
    compact(&w);
    assert_string_equal(read_m(&w, (rq_scan){.mob_refs_only = true}), both);
    assert_int_equal(clean(&w, 0), 1);
    throw_archive_away(&w);
    assert_string_equal(read_m(&w, (rq_scan){0}), both);
    end(&w);
}

/* --- the cleaner while a region writes its manifest ------------------------------------------- */

static struct {
    world *w;
    rq_err (*open)(rq_vfs *v, const char *path, int flags, rq_file **ret, rq_error *why);
    rq_err (*sync)(rq_file *f, rq_error *why);
    rq_file *slot; /* the manifest that is being written */
    bool armed;
    rq_task cleaner;
    rq_err cleaned;
} hook;

static rq_err hooked_open(rq_vfs *v, const char *path, int flags, rq_file **ret, rq_error *why)
{
    rq_err rc = hook.open(v, path, flags, ret, why);
    if (rc == RQ_OK && (flags & RQ_OPEN_CREATE) != 0 && strstr(path, "/regions/") != NULL)
        hook.slot = *ret;
    return rc;
}

static void run_cleaner(rq_task *task)
{
    (void)task;
    size_t archived;
    rq_mob_cleaning what = {.tables = &hook.w->f.schema,
                            .table_count = 1,
                            .now_ms = hook.w->f.env->executor->now_ms(hook.w->f.env->executor)};
    hook.cleaned = rq_mob_clean(hook.w->f.engine, &what, &archived, NULL);
}

/* The slot's bytes are written but will never be durable. */
static rq_err hooked_sync(rq_file *f, rq_error *why)
{
    if (!hook.armed || f != hook.slot) return hook.sync(f, why);
    hook.armed = false;
    rq_executor *ex = hook.w->f.env->executor;
    hook.cleaner.run = run_cleaner;
    ex->submit(ex, RQ_POOL_WORK, &hook.cleaner);
    rq_sim_run(hook.w->sim);
    return rq_fail(why, RQ_E_NO_SPACE, "told to fail");
}

static void the_cleaner_takes_no_manifest_for_committed_that_is_being_written(void **state)
{
    (void)state;
    world w;
    begin(&w, 7, NULL);
    assert_ok(put(&w.f, "r", "m", "y", 1, LARGE));
    flush(&w);
    assert_ok(put(&w.f, "r", "m", "y", 2, LARGE));
    rq_vfs *vfs = w.f.env->vfs;
    memset(&hook, 0, sizeof hook);
    hook.w = &w;
    hook.open = vfs->open;
    hook.sync = vfs->sync;
    hook.armed = true;
    hook.cleaned = RQ_E_STATE;
    vfs->open = hooked_open;
    vfs->sync = hooked_sync;
    assert_err(rq_region_flush(w.f.region, (rq_slice){0}, NULL, NULL), RQ_E_NO_SPACE);
    rq_sim_run(w.sim);
    vfs->open = hook.open;
    vfs->sync = hook.sync;
    assert_ok(hook.cleaned);
    fixture_stop(&w.f, false);
    fixture_start(&w.f);
    assert_string_equal(read_m(&w, (rq_scan){0}), "r:y/2/4/0=" LARGE "\nr:y/1/4/0=" LARGE "\n");
    end(&w);
}

/* --- an image taken between a compaction's commit and its end --------------------------------- */

static struct {
    world *w;
    rq_err (*link)(rq_vfs *v, const char *from, const char *to, rq_error *why);
    unsigned lists;
    size_t mob_files; /* MOB files listed; the same number in each image */
} lister;

static rq_err count_mob_files(void *ctx, const rq_image_part *part, rq_error *why)
{
    size_t *count = ctx;
    (void)why;
    *count += part->kind == RQ_IMAGE_FILE && strncmp(part->path, "mobdir/", 7) == 0;
    return RQ_OK;
}

/* A compaction that has committed moves its inputs to the archive. */
static rq_err listing_link(rq_vfs *v, const char *from, const char *to, rq_error *why)
{
    rq_engine *e = lister.w->f.engine;
    rq_holder *holder;
    rq_error own = {0};
    lister.lists++;
    lister.mob_files = 0;
    assert_ok(rq_retention_hold(rq_engine_retention(e), "test", 1, &holder));
    const rq_image_sink sink = {count_mob_files, &lister.mob_files};
    if (rq_image_take(e, holder, &sink, &own) != RQ_OK) fail_msg("%s", own.message);
    rq_holder_release(holder);
    return lister.link(v, from, to, why);
}

/* Before the fix the image skipped the new MOB file because it counted as still being written. */
static void a_list_has_the_mob_files_of_a_compaction_that_has_committed(void **state)
{
    (void)state;
    world w;
    begin(&w, 7, NULL);
    assert_ok(put(&w.f, "r", "m", "y", 1, LARGE));
    flush(&w);
    rq_vfs *vfs = w.f.env->vfs;
    memset(&lister, 0, sizeof lister);
    lister.w = &w;
    lister.link = vfs->link;
    vfs->link = listing_link;
    compact(&w);
    vfs->link = lister.link;
    assert_true(lister.lists > 0);
    assert_int_equal(count_files(&w, mob_dir(&w)), 2);
    assert_int_equal(lister.mob_files, 2);
    end(&w);
}

static rq_err (*real_stat)(rq_vfs *v, const char *path, rq_stat *ret, rq_error *why);

static rq_err failing_stat(rq_vfs *v, const char *path, rq_stat *ret, rq_error *why)
{
    if (strcmp(path, "mobdir") == 0) return rq_fail(why, RQ_E_IO, "mobdir: input/output error");
    return real_stat(v, path, ret, why);
}

/* An image without the MOB files would pass for a whole one. */
static void an_image_fails_if_mobdir_cannot_be_read(void **state)
{
    (void)state;
    world w;
    rq_holder *holder;
    rq_error why = {0};
    size_t files = 0;
    begin(&w, 7, NULL);
    assert_ok(put(&w.f, "r", "m", "y", 1, LARGE));
    flush(&w);
    rq_vfs *vfs = w.f.env->vfs;
    const rq_image_sink sink = {count_mob_files, &files};
    assert_ok(rq_retention_hold(rq_engine_retention(w.f.engine), "test", 1, &holder));
    real_stat = vfs->stat;
    vfs->stat = failing_stat;
    assert_int_equal(rq_image_take(w.f.engine, holder, &sink, &why), RQ_E_IO);
    vfs->stat = real_stat;
    assert_ok(rq_image_take(w.f.engine, holder, &sink, &why));
    assert_int_equal(files, 1);
    rq_holder_release(holder);
    end(&w);
}

/* --- the cleaner while an image is taken ----------------------------------------------------- */

static struct {
    world *w;
    const char *name; /* the MOB file to which the listed store file refers */
    size_t cleaned;
    bool worked, listed;
} beside;

/* The region's files have been listed; now a compaction replaces them, and the cleaner runs. */
static rq_err compacting_take(void *ctx, const rq_image_part *part, rq_error *why)
{
    (void)ctx;
    (void)why;
    if (part->kind == RQ_IMAGE_FILE && strstr(part->path, beside.name) != NULL)
        beside.listed = true;
    if (part->kind != RQ_IMAGE_FILE || beside.worked) return RQ_OK;
    beside.worked = true;
    compact(beside.w);
    beside.cleaned = clean(beside.w, 0);
    return RQ_OK;
}

/* Before the fix the file was missing: it had moved to archive/, where only files needed by
 * snapshots and clones are listed. */
static void a_list_has_the_mob_files_of_store_files_compacted_meanwhile(void **state)
{
    (void)state;
    world w;
    rq_dir_entry *entries;
    size_t count;
    rq_holder *holder;
    rq_error why = {0};
    begin(&w, 7, NULL);
    assert_ok(put(&w.f, "r", "m", "y", 1, LARGE));
    flush(&w);
    assert_ok(rq_vfs_list(w.f.env->vfs, mob_dir(&w), &w.f.arena, &entries, &count, NULL));
    assert_int_equal(count, 1);
    memset(&beside, 0, sizeof beside);
    beside.w = &w;
    beside.name = entries[0].name;
    rq_engine *e = w.f.engine;
    const rq_image_sink sink = {compacting_take, NULL};
    assert_ok(rq_retention_hold(rq_engine_retention(e), "test", 1, &holder));
    if (rq_image_take(e, holder, &sink, &why) != RQ_OK) fail_msg("%s", why.message);
    assert_true(beside.worked);
    assert_true(beside.listed);
    assert_int_equal(beside.cleaned, 0);
    /* The file is kept only while the image is taken. */
    assert_int_equal(clean(&w, 0), 1);
    rq_holder_release(holder);
    end(&w);
}

static rq_err read_once(world *w, bool empty_on_miss, rq_buf *text, rq_error *why)
{
    reader r;
    rq_scan scan = {.include_start = true,
                    .max_versions = 1,
                    .time_range = RQ_TIME_RANGE_ALL,
                    .store_limit = -1,
                    .mob_empty_on_miss = empty_on_miss};
    rq_read_ctx ctx = {.may_block = true};
    rq_cellblock out = {0};
    rq_scan_limits none = {0};
    rq_scan_state state;
    rq_epoch_member pin;
    reader_open(w, &r, "m", scan, false);
    rq_epoch_pin(w->f.env->epoch, &pin);
    rq_err rc = rq_region_scanner_next(r.scanner, &none, &ctx, &out, &state, why);
    rq_epoch_unpin(w->f.env->epoch, &pin);
    rq_cursor at = rq_cursor_of(rq_buf_slice(&out.bytes));
    rq_cell c;
    if (rc == RQ_OK && rq_cellblock_next(&at, &c, NULL) == RQ_OK)
        assert_ok(rq_buf_printf(text, "%u bytes", c.value_len));
    rq_read_ctx_clear(&ctx);
    rq_cellblock_clear(&out);
    reader_close(&r);
    return rc;
}

static void a_file_that_is_gone_is_named_or_passed_over(void **state)
{
    (void)state;
    world w;
    begin(&w, 7, NULL);
    assert_ok(put(&w.f, "r", "m", "y", 1, LARGE));
    flush(&w);
    assert_ok(rq_mob_archive(w.f.engine, RQ_SLICE_LIT("t"), (rq_slice){0}, NULL, 0, NULL));
    assert_int_equal(count_files(&w, "mobdir/data/default"), 0);
    assert_string_equal(read_m(&w, (rq_scan){0}), "r:y/1/4/0=" LARGE "\n");
    throw_archive_away(&w);
    fixture_stop(&w.f, true); /* the file is still open */
    fixture_start(&w.f);
    rq_error why = {0};
    rq_buf text = {0};
    assert_err(read_once(&w, false, &text, &why), RQ_E_DO_NOT_RETRY);
    assert_non_null(strstr(why.message, "java.io.FileNotFoundException: File archive/data/"));
    assert_ok(read_once(&w, true, &text, &why));
    assert_string_equal((char *)text.ptr, "0 bytes");
    /* A requested compaction fails without the file, and loses nothing. */
    compact(&w);
    why = (rq_error){0};
    assert_err(read_once(&w, false, &text, &why), RQ_E_DO_NOT_RETRY);
    rq_buf_clear(&text);
    end(&w);
}

static void the_optimized_compaction_leaves_large_files(void **state)
{
    (void)state;
    static const char *const settings[] = {
        "hbase.hstore.compaction.min=100", "hbase.mob.compaction.type=optimized",
        "hbase.mob.compactions.max.file.size=6000", "rorqual.memory=33554432", NULL};
    world w;
    begin(&w, 8, settings); /* without an encoding, which would make the files small */
    char row[8];
    for (int i = 0; i < 60; i++) {
        snprintf(row, sizeof row, "r%02d", i);
        assert_ok(put(&w.f, row, "m", "y", 1, LARGE));
        if (i == 58) flush(&w);
    }
    flush(&w); /* a file with 59 values, larger than 6,000 bytes, and a file with one value */
    const char *before = read_m(&w, (rq_scan){0});
    compact(&w);
    assert_int_equal(count_files(&w, mob_dir(&w)), 3);
    assert_int_equal(clean(&w, 0), 1);
    assert_int_equal(count_files(&w, mob_dir(&w)), 2);
    throw_archive_away(&w);
    assert_string_equal(read_m(&w, (rq_scan){0}), before);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mob_family_answers_as_a_plain_one),
        cmocka_unit_test(a_scanner_outlives_the_files_it_began_with),
        cmocka_unit_test(larger_values_leave_the_store_file),
        cmocka_unit_test(a_compaction_on_request_moves_values_across_the_threshold),
        cmocka_unit_test(the_cleaner_leaves_what_is_young_or_referred_to),
        cmocka_unit_test(a_loaded_value_stays_in_its_file_until_a_compaction),
        cmocka_unit_test(the_cleaner_takes_no_manifest_for_committed_that_is_being_written),
        cmocka_unit_test(a_list_has_the_mob_files_of_a_compaction_that_has_committed),
        cmocka_unit_test(an_image_fails_if_mobdir_cannot_be_read),
        cmocka_unit_test(a_list_has_the_mob_files_of_store_files_compacted_meanwhile),
        cmocka_unit_test(a_file_that_is_gone_is_named_or_passed_over),
        cmocka_unit_test(the_optimized_compaction_leaves_large_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
