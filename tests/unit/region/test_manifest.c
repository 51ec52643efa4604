/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest's bytes: written manifests are read, invalid ones are refused with the position of
 * the error. */
#include "base/random.h"
#include "region/manifest.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static void random_manifest(rq_random *r, rq_arena *a, rq__manifest *m)
{
    *m = (rq__manifest){.in_use = rq_random_below(r, 2), .next_seqid = rq_random_next(r)};
    m->family_count = rq_random_below(r, 4);
    m->families = rq_arena_calloc(a, m->family_count + 1, sizeof *m->families);
    for (size_t i = 0; i < m->family_count; i++) {
        rq__manifest_family *f = &m->families[i];
        f->name = rq_slice_cstr(rq_arena_printf(a, "f%zu", i));
        f->flushed = rq_random_next(r);
        f->file_count = rq_random_below(r, 5);
        f->files = rq_arena_calloc(a, f->file_count + 1, sizeof *f->files);
        for (size_t j = 0; j < f->file_count; j++)
            f->files[j] = rq_slice_cstr(
                rq_arena_printf(a, "%02zu%030" PRIx64, j, rq_random_next(r) % 1000000));
    }
}

static void random_owner(rq_random *r, rq_arena *a, rq__manifest *m)
{
    if (rq_random_below(r, 2) == 0) return;
    m->is_owned = true;
    m->open_number = rq_random_next(r);
    m->last_stamp_ms = (int64_t)(rq_random_next(r) >> 1);
    m->truncations = rq_random_below(r, 3);
    if (m->truncations > 0 && m->family_count > 0 && rq_random_below(r, 2) == 0) {
        m->removed = m->families;
        m->removed_count = m->family_count;
        m->family_count = 0;
    }
    if (rq_random_below(r, 2) == 0) m->owner = RQ_SLICE_LIT("host,16020,17");
    m->log_count = rq_random_below(r, 4);
    m->logs = rq_arena_calloc(a, m->log_count + 1, sizeof *m->logs);
    for (size_t i = 0; i < m->log_count; i++) {
        m->logs[i].name = rq_slice_cstr(rq_arena_printf(a, "host%zu,16020,%zu", i, i * 7));
        m->logs[i].opening = rq_random_next(r);
        m->logs[i].from = rq_random_next(r);
    }
}

static void encoded_data_is_decoded(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        rq_random r;
        rq_arena a = {0};
        rq_buf one = {0};
        rq_buf two = {0};
        rq__manifest m;
        rq__manifest got;
        rq_random_seed(&r, seed);
        random_manifest(&r, &a, &m);
        random_owner(&r, &a, &m);
        assert_int_equal(rq__manifest_encode(&m, &one), RQ_OK);
        if (rq__manifest_decode(rq_buf_slice(&one), &a, &got, NULL) != RQ_OK)
            fail_msg("seed %" PRIu64, seed);
        assert_int_equal(rq__manifest_encode(&got, &two), RQ_OK);
        assert_int_equal(one.ptr[0],
                         m.is_owned ? 2 : 1); /* a standalone server's manifest keeps the first
                                               * format */
        assert_true(got.is_owned == m.is_owned && rq_slice_eq(got.owner, m.owner));
        assert_true(got.truncations == m.truncations && got.removed_count == m.removed_count &&
                    got.family_count == m.family_count);
        assert_true(rq_slice_eq(rq_buf_slice(&one), rq_buf_slice(&two)));
        for (size_t cut = 0; cut < one.len; cut++) /* every truncation is refused */
            assert_int_equal(rq__manifest_decode(rq_slice_of(one.ptr, cut), &a, &got, NULL),
                             RQ_E_CORRUPT);
        rq_buf_clear(&one);
        rq_buf_clear(&two);
        rq_arena_clear(&a);
    }
}

static void a_newer_version_is_reported(void **state)
{
    (void)state;
    rq_arena a = {0};
    rq__manifest m;
    rq_error why = {0};
    assert_int_equal(rq__manifest_decode(RQ_SLICE_LIT("\x03"), &a, &m, &why), RQ_E_VERSION);
    assert_string_equal(why.message, "the manifest has version 3; this program supports up to 2");
    rq_error_clear(&why);
    assert_int_equal(rq__manifest_decode(RQ_SLICE_LIT("\x02\x0b"), &a, &m, &why), RQ_E_VERSION);
    assert_string_equal(why.message, "the manifest has flags 0x0b, of which this program does not "
                                     "know 0x08: a newer one wrote it");
    /* A standalone server's manifest has no truncations. */
    assert_int_equal(rq__manifest_decode(RQ_SLICE_LIT("\x01\x02"), &a, &m, NULL), RQ_E_VERSION);
    rq_arena_clear(&a);
}

static void file_names_cannot_lead_out_of_the_folder(void **state)
{
    (void)state;
    assert_true(rq__store_file_name_ok(RQ_SLICE_LIT("0123456789abcdef0123456789abcdef")));
    assert_true(rq__store_file_name_ok(RQ_SLICE_LIT("00ff_SeqId_12_")));
    assert_false(rq__store_file_name_ok(RQ_SLICE_LIT("")));
    assert_false(rq__store_file_name_ok(RQ_SLICE_LIT(".tmp")));
    assert_false(rq__store_file_name_ok(RQ_SLICE_LIT("../x")));
    assert_false(rq__store_file_name_ok(RQ_SLICE_LIT("a/b")));
    assert_false(rq__store_file_name_ok(RQ_SLICE_LIT("a\0b")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encoded_data_is_decoded),
        cmocka_unit_test(a_newer_version_is_reported),
        cmocka_unit_test(file_names_cannot_lead_out_of_the_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
