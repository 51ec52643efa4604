/* SPDX-License-Identifier: Apache-2.0 */
/* Damaged bytes: found and reported, and no acknowledged record is lost silently. */
#include "history.h"

#include "wal/format.h"
#include "wal/survey.h"

static const rq_wal_options small = {
    .dir = "wal",
    .file_bytes = 8192,
    .staging_bytes = 4096,
    .staging_bytes_max = 65536,
};

/* Appends acknowledged records; `flush_every` (0: never): number of records after which all regions flush. */
static void fill(history *h, rq_sim *sim, int records, int flush_every)
{
    for (int i = 0; i < records; i++) {
        rq_err rc;
        staged *s = history_stage(h, i % REGIONS, rq_sim_random(sim) % 900, RQ_WAL_EDIT, &rc);
        assert_non_null(s);
        history_wait(h, s, false);
        rq_wal_push(h->wal, NULL);
        rq_sim_run(sim);
        assert_true(s->acknowledged);
        if (flush_every == 0 || i % flush_every != flush_every - 1) continue;
        for (int r = 0; r < REGIONS; r++)
            history_flush(h, r);
    }
}

static void open_new(history *h, rq_sim *sim)
{
    history_init(h, sim, &small);
    rq_error why = {0};
    if (!history_open(h, &why)) fail_msg("%s", why.message);
}

/* `idle`: the log is idle for a while first. */
static void crash(history *h, rq_sim *sim, bool idle)
{
    if (idle) rq_sim_advance(sim, 5000000000);
    history_close(h, false);
    rq_sim_restart(sim);
}

/* Makes a log of several WAL files with acknowledged records. */
static void build(history *h, rq_sim *sim, bool idle)
{
    open_new(h, sim);
    fill(h, sim, 60, 0);
    crash(h, sim, idle);
}

/* The same, in files that contained older records: these are behind the log's end, and in free files. */
static void build_recycled(history *h, rq_sim *sim, bool idle)
{
    open_new(h, sim);
    fill(h, sim, 120, 10);
    fill(h, sim, 20, 0);
    rq_wal_stats stats;
    rq_wal_get_stats(h->wal, &stats);
    assert_true(stats.recycled > 3);
    crash(h, sim, idle);
}

static size_t file_count(rq_sim *sim, char paths[][32], uint64_t sizes[])
{
    rq_vfs *v = rq_sim_env(sim)->vfs;
    rq_arena arena = {0};
    rq_dir_entry *entries;
    size_t count;
    assert_int_equal(rq_vfs_list(v, "wal", &arena, &entries, &count, NULL), RQ_OK);
    for (size_t i = 0; i < count; i++) {
        rq_stat st;
        snprintf(paths[i], 32, "wal/%.20s", entries[i].name);
        assert_int_equal(rq_vfs_stat(v, paths[i], &st, NULL), RQ_OK);
        sizes[i] = st.size;
    }
    rq_arena_clear(&arena);
    return count;
}

/* The number of records that no flush has made superfluous. */
static size_t count_needed(const history *h)
{
    size_t count = 0;
    for (size_t i = 0; i < h->count; i++)
        count += h->records[i]->sequence_id > h->flushed[h->records[i]->region];
    return count;
}

/* Opens the log and accepts missing records. */
static rq_err try_open(history *h, rq_error *why)
{
    for (size_t i = 0; i < h->count; i++)
        h->records[i]->durable = false;
    size_t before = count_needed(h);
    if (!history_open(h, why)) return why->code == RQ_OK ? RQ_E_STATE : why->code;
    h->lost = before - count_needed(h);
    return RQ_OK;
}

/* After idling even the last record is covered by a mark: no flipped bit may remain undetected and
 * lose a record. */
static void flip_bits(void (*make)(history *h, rq_sim *sim, bool idle))
{
    uint64_t seed = unit_seed();
    int named = 0, harmless = 0;
    for (uint64_t i = 0; i < 2500; i++) {
        rq_sim *sim;
        assert_int_equal(rq_sim_new(seed + i, NULL, &sim), RQ_OK);
        history h;
        make(&h, sim, true);
        char paths[32][32];
        uint64_t sizes[32];
        size_t count = file_count(sim, paths, sizes);
        size_t file = rq_sim_random(sim) % count;
        uint64_t offset = rq_sim_random(sim) % 8 == 0 ? rq_sim_random(sim) % 700
                                                      : rq_sim_random(sim) % sizes[file];
        if (!rq_sim_flip_bit(sim, paths[file], offset, (unsigned)(rq_sim_random(sim) % 8))) {
            history_clear(&h);
            rq_sim_free(sim);
            continue;
        }
        rq_error why = {0};
        rq_err rc = try_open(&h, &why);
        if (rc == RQ_OK) {
            harmless++;
            if (h.lost > 0)
                fail_msg("seed %llu: %s offset %llu: %zu records lost in silence",
                         (unsigned long long)(seed + i), paths[file], (unsigned long long)offset,
                         h.lost);
            history_close(&h, false);
        } else {
            named++;
            bool right = rc == RQ_E_CORRUPT && strstr(why.message, paths[file]) != NULL &&
                         strstr(why.message, "offset") != NULL;
            if (!right)
                fail_msg("seed %llu: %s offset %llu: %s %s", (unsigned long long)(seed + i),
                         paths[file], (unsigned long long)offset, h.fault, why.message);
        }
        history_clear(&h);
        rq_sim_free(sim);
    }
    printf("%d named, %d harmless\n", named, harmless);
    assert_true(named > 300 && harmless > 300);
}

static void a_flipped_bit_is_harmless_or_named(void **state)
{
    (void)state;
    flip_bits(build);
}

/* Old records behind the end, whose checksums are right, hide no damage. */
static void so_it_is_in_recycled_files(void **state)
{
    (void)state;
    flip_bits(build_recycled);
}

static rq_err count_record(void *ctx, const rq_wal_record *r)
{
    size_t *count = ctx;
    *count += r->kind == RQ_WAL_EDIT;
    return RQ_OK;
}

/* The number of records delivered when each region reads the log separately. */
static size_t count_alone(history *h)
{
    size_t count = 0;
    for (int r = 0; r < REGIONS; r++) {
        rq_error why = {0};
        rq_err rc = rq_wal_replay_region(h->wal, history_names[r], count_record, &count, &why);
        if (rc != RQ_OK) fail_msg("%s", why.message);
    }
    return count;
}

/* With options.salvage one record is lost, and all others are delivered. */
static void salvage_delivers_what_is_whole(void **state)
{
    (void)state;
    uint64_t seed = unit_seed();
    int salvaged = 0;
    for (uint64_t i = 0; i < 600; i++) {
        rq_sim *sim;
        assert_int_equal(rq_sim_new(seed + i, NULL, &sim), RQ_OK);
        history h;
        build(&h, sim, true);
        char paths[32][32];
        uint64_t sizes[32];
        size_t count = file_count(sim, paths, sizes);
        size_t file = rq_sim_random(sim) % count;
        uint64_t offset = RQ_WAL_FRAMES_AT + rq_sim_random(sim) % 8000;
        bool flipped = rq_sim_flip_bit(sim, paths[file], offset, 3);
        h.options.salvage = true;
        h.tolerant = true;
        rq_error why = {0};
        rq_err rc = try_open(&h, &why);
        if (rc != RQ_OK)
            fail_msg("seed %llu: %s %s", (unsigned long long)(seed + i), h.fault, why.message);
        assert_true(h.lost <= 1);
        if (h.lost > 0) assert_true(flipped && h.corrupt_places == 1);
        assert_int_equal(count_alone(&h), h.count);
        salvaged += h.lost == 1;
        history_close(&h, false);
        history_clear(&h);
        rq_sim_free(sim);
    }
    assert_true(salvaged > 50);
}

/* Bytes after the log's end, including old frames of a recycled file, are not read. */
static void garbage_behind_the_end_is_the_tail(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        rq_sim *sim;
        assert_int_equal(rq_sim_new(seed, NULL, &sim), RQ_OK);
        history h;
        build(&h, sim, seed % 2 == 0);
        char paths[32][32];
        uint64_t sizes[32];
        size_t count = file_count(sim, paths, sizes);
        /* Which file is the newest is not known here, so garbage is appended to all files. */
        rq_vfs *v = rq_sim_env(sim)->vfs;
        for (size_t i = 0; i < count; i++) {
            rq_file *f;
            uint8_t junk[3000];
            for (size_t b = 0; b < sizeof junk; b++)
                junk[b] = (uint8_t)rq_sim_random(sim);
            assert_int_equal(rq_vfs_open(v, paths[i], RQ_OPEN_WRITE, &f, NULL), RQ_OK);
            assert_int_equal(rq_file_write(f, junk, sizeof junk, sizes[i], NULL), RQ_OK);
            rq_file_close(f);
        }
        rq_error why = {0};
        if (try_open(&h, &why) != RQ_OK || h.lost > 0)
            fail_msg("seed %llu: %s %s", (unsigned long long)seed, h.fault, why.message);
        history_close(&h, false);
        history_clear(&h);
        rq_sim_free(sim);
    }
}

static void a_missing_file_is_noticed(void **state)
{
    (void)state;
    for (size_t lost = 0; lost < 5; lost++) {
        rq_sim *sim;
        assert_int_equal(rq_sim_new(lost, NULL, &sim), RQ_OK);
        history h;
        build(&h, sim, true);
        char paths[32][32];
        uint64_t sizes[32];
        size_t count = file_count(sim, paths, sizes);
        assert_true(count >= 4);
        if (lost + 1 < count) {
            assert_int_equal(rq_vfs_remove(rq_sim_env(sim)->vfs, paths[lost], NULL), RQ_OK);
            rq_error why = {0};
            rq_err rc = try_open(&h, &why);
            assert_int_equal(rc, RQ_E_CORRUPT);
            assert_non_null(strstr(why.message, "is missing"));
        }
        history_clear(&h);
        rq_sim_free(sim);
    }
}

typedef struct survey {
    size_t records, damages;
    rq_error first;
} survey;

static rq_err note_record(void *ctx, const rq_wal_surveyed_file *s, const rq_wal_record *r,
                          uint64_t offset, rq_error *why)
{
    survey *t = ctx;
    (void)why;
    assert_true(s->live && r->sequence_id > 0 && offset >= RQ_WAL_FRAMES_AT);
    t->records++;
    return RQ_OK;
}

static void note_damage(void *ctx, const rq_error *what)
{
    survey *t = ctx;
    if (t->damages++ == 0) t->first = *what;
}

static survey look(rq_sim *sim)
{
    survey t = {0};
    const rq_wal_survey_calls calls = {note_record, note_damage, &t};
    rq_arena arena = {0};
    rq_wal_survey v;
    rq_vfs *vfs = rq_sim_env(sim)->vfs;
    char *before = rq_sim_tree(sim);
    assert_int_equal(rq_wal_survey_dir(vfs, "wal", &arena, &calls, &v, NULL), RQ_OK);
    for (size_t i = 0; i < v.count; i++)
        if (v.files[i].live)
            assert_int_equal(rq_wal_survey_read(vfs, &v.files[i], &calls, NULL, NULL), RQ_OK);
    char *after = rq_sim_tree(sim);
    assert_string_equal(before, after);
    free(before);
    free(after);
    rq_arena_clear(&arena);
    return t;
}

/* A survey reports every problem that would prevent a start, none for an intact log, and delivers
 * undamaged records. */
static void a_survey_reports_what_an_open_refuses(void **state)
{
    (void)state;
    uint64_t seed = unit_seed();
    int named = 0;
    for (uint64_t i = 0; i < 600; i++) {
        rq_sim *sim;
        assert_int_equal(rq_sim_new(seed + i, NULL, &sim), RQ_OK);
        history h;
        build(&h, sim, true);
        survey whole = look(sim);
        assert_int_equal(whole.damages, 0);
        assert_true(whole.records > 0);
        char paths[32][32];
        uint64_t sizes[32];
        size_t file = rq_sim_random(sim) % file_count(sim, paths, sizes);
        uint64_t offset = rq_sim_random(sim) % 8 == 0 ? rq_sim_random(sim) % 700
                                                      : rq_sim_random(sim) % sizes[file];
        if (rq_sim_flip_bit(sim, paths[file], offset, (unsigned)(rq_sim_random(sim) % 8))) {
            survey t = look(sim);
            rq_error why = {0};
            rq_err rc = try_open(&h, &why);
            if (t.damages == 0 && rc != RQ_OK)
                fail_msg("seed %llu: not reported: %s", (unsigned long long)(seed + i),
                         why.message);
            if (t.damages > 0 && (strstr(t.first.message, paths[file]) == NULL ||
                                  strstr(t.first.message, "offset") == NULL))
                fail_msg("seed %llu: %s", (unsigned long long)(seed + i), t.first.message);
            if (t.damages == 0) assert_int_equal(t.records, whole.records);
            named += t.damages > 0;
            if (rc == RQ_OK) history_close(&h, false);
        }
        history_clear(&h);
        rq_sim_free(sim);
    }
    assert_true(named > 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flipped_bit_is_harmless_or_named),
        cmocka_unit_test(so_it_is_in_recycled_files),
        cmocka_unit_test(salvage_delivers_what_is_whole),
        cmocka_unit_test(garbage_behind_the_end_is_the_tail),
        cmocka_unit_test(a_missing_file_is_noticed),
        cmocka_unit_test(a_survey_reports_what_an_open_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
