/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of the log made while the log is in use: it contains exactly the records staged before,
 * whatever is flushed, rolled and recycled meanwhile. While the log is held, no WAL file is
 * recycled. */
#include "history.h"

#include "wal/image.h"

static void copy_file(rq_vfs *v, const char *from, uint64_t bytes)
{
    char to[64];
    rq_arena a = {0};
    rq_slice content;
    snprintf(to, sizeof to, "copy/%s", strrchr(from, '/') + 1);
    assert_int_equal(rq_vfs_read_file(v, from, (size_t)1 << 24, &a, &content, NULL), RQ_OK);
    assert_true(bytes <= content.len);
    content.len = (size_t)bytes;
    assert_int_equal(rq_vfs_write_new_file(v, to, content, NULL), RQ_OK);
    rq_arena_clear(&a);
}

static void copy_image(rq_vfs *v, const rq_wal_image *image)
{
    char to[64];
    assert_int_equal(rq_vfs_remove_tree(v, "copy", NULL), RQ_OK);
    assert_int_equal(rq_vfs_mkdirs(v, "copy", NULL), RQ_OK);
    for (size_t i = 0; i < image->count; i++)
        copy_file(v, image->pieces[i].path, image->pieces[i].bytes);
    snprintf(to, sizeof to, "copy/%s", strrchr(image->last_path, '/') + 1);
    assert_int_equal(rq_vfs_write_new_file(v, to, image->last, NULL), RQ_OK);
}

typedef struct reading {
    const history *h;
    uint64_t highest[REGIONS];
} reading;

static rq_err note_record(void *ctx, const rq_wal_record *r)
{
    reading *found = ctx;
    int region = 0;
    while (!rq_slice_eq(rq_slice_cstr(rq_wal_region_name(found->h->regions[region])), r->region))
        assert_true(++region < REGIONS);
    assert_true(r->sequence_id > found->highest[region]);
    found->highest[region] = r->sequence_id;
    return RQ_OK;
}

/* A log made from the copy must contain exactly the records of each region staged by then. */
static void check_copy(const history *h, const uint64_t *upto, const uint64_t *flushed)
{
    rq_wal_options o = h->options;
    rq_wal *wal;
    reading found = {.h = h};
    rq_error why = {0};
    o.dir = "copy";
    o.retention = NULL;
    if (rq_wal_open(rq_sim_env(h->sim), &o, &wal, &why) != RQ_OK ||
        rq_wal_replay(wal, note_record, &found, &why) != RQ_OK)
        fail_msg("%s", why.message);
    for (int i = 0; i < REGIONS; i++) {
        if (upto[i] > flushed[i] && found.highest[i] < upto[i])
            fail_msg("region %d: %llu of %llu", i, (unsigned long long)found.highest[i],
                     (unsigned long long)upto[i]);
        assert_true(found.highest[i] < h->next_sequence_id[i]);
    }
    assert_int_equal(rq_wal_close(wal, false, NULL), RQ_OK);
}

/* The highest sequence ids that hold a WAL file until they are flushed. */
static void newest_edits(const history *h, uint64_t ret[REGIONS])
{
    memset(ret, 0, REGIONS * sizeof *ret);
    for (size_t i = 0; i < h->count; i++)
        if (h->records[i]->holds) ret[h->records[i]->region] = h->records[i]->sequence_id;
}

static void run_seed(uint64_t seed)
{
    rq_sim *sim;
    rq_retention *retention;
    rq_holder *holder;
    rq_error why = {0};
    history h;
    assert_int_equal(rq_sim_new(seed, NULL, &sim), RQ_OK);
    assert_int_equal(rq_retention_new(&retention), RQ_OK);
    rq_wal_options o = {.dir = "wal",
                        .file_bytes = 8192,
                        .max_log_bytes = 40000,
                        .staging_bytes = 4096,
                        .staging_bytes_max = 65536,
                        .retention = retention};
    history_init(&h, sim, &o);
    if (!history_open(&h, &why)) fail_msg("%s %s", h.fault, why.message);
    for (int round = 0; round < 6; round++) {
        rq_arena a = {0};
        rq_wal_image image;
        uint64_t flushed[REGIONS], upto[REGIONS];
        history_steps(&h, 200);
        assert_int_equal(rq_retention_hold(retention, "test", 0, &holder), RQ_OK);
        /* as the regions' manifests state at this time */
        memcpy(flushed, h.flushed, sizeof flushed);
        rq_wal_hold(h.wal, holder);
        history_steps(&h, (int)(seed % 5) * 40);
        newest_edits(&h, upto);
        assert_int_equal(rq_wal_image_take(h.wal, &a, &image, &why), RQ_OK);
        history_steps(&h, 400); /* writes more than the log's length */
        copy_image(rq_sim_env(sim)->vfs, &image);
        check_copy(&h, upto, flushed);
        uint64_t recycled[2];
        rq_wal_stats stats;
        rq_wal_get_stats(h.wal, &stats);
        recycled[0] = stats.recycled;
        rq_holder_release(holder);
        rq_wal_let_go(h.wal);
        rq_wal_get_stats(h.wal, &stats);
        recycled[1] = stats.recycled;
        assert_true(recycled[1] >= recycled[0]);
        rq_arena_clear(&a);
    }
    assert_string_equal(h.fault, "");
    history_close(&h, false);
    history_clear(&h);
    rq_retention_free(retention);
    rq_sim_free(sim);
}

static void a_copy_has_what_was_staged_before(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++)
        run_seed(seed);
}

static void an_empty_log_has_an_image(void **state)
{
    (void)state;
    rq_sim *sim;
    history h;
    rq_arena a = {0};
    rq_wal_image image;
    rq_error why = {0};
    static const uint64_t none[REGIONS];
    assert_int_equal(rq_sim_new(1, NULL, &sim), RQ_OK);
    history_init(&h, sim, &(rq_wal_options){.dir = "wal", .file_bytes = 8192});
    if (!history_open(&h, &why)) fail_msg("%s %s", h.fault, why.message);
    assert_int_equal(rq_wal_image_take(h.wal, &a, &image, &why), RQ_OK);
    assert_int_equal(image.count, 0);
    copy_image(rq_sim_env(sim)->vfs, &image);
    check_copy(&h, none, none);
    rq_arena_clear(&a);
    history_close(&h, false);
    history_clear(&h);
    rq_sim_free(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_has_what_was_staged_before),
        cmocka_unit_test(an_empty_log_has_an_image),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
