/* SPDX-License-Identifier: Apache-2.0 */
/* Regions of a cluster, case by case; random histories are in tests/sim/test_cluster.c. */
#include "cluster.h"

#include "region/mob_cleaner.h"
#include "store/mob_files.h"
#include "wal/head.h"

/* --- tests ------------------------------------------------------------------------------------ */

static void a_region_moves_with_a_close(void **state)
{
    (void)state;
    cluster c;
    rq__manifest m;
    rq_error why = {.code = RQ_OK};
    cluster_init(&c);
    cluster_server *one = &c.servers[0], *two = &c.servers[1];
    assert_ok(cluster_open(one, NULL));
    assert_ok(put(&one->f, "r", "a", "q", 5, "x"));
    rq_err rc = cluster_open(two, &why);
    assert_false(rq_err_do_not_retry(rc)); /* may be retried: host0 may be fenced by then */
    assert_int_equal(rc, RQ_E_CONFLICT);
    assert_int_equal(why.code, RQ_E_CONFLICT);
    assert_non_null(strstr(why.message, "is open at host0,16020,1, which is not fenced"));
    cluster_manifest(two, &m);
    assert_true(m.open_number == 1 && m.log_count == 1);
    assert_true(rq_slice_eq(m.owner, rq_slice_cstr(one->name)));
    assert_ok(cluster_close(one, false));
    cluster_manifest(two, &m);
    assert_true(m.owner.len == 0 && m.log_count == 0);
    assert_ok(cluster_open(two, NULL));
    assert_string_equal(get(&two->f, "r", "a", "q"), "x");
    cluster_manifest(one, &m);
    assert_int_equal(m.open_number, 2);
    assert_ok(cluster_close(two, false));
    assert_ok(cluster_open(one, NULL)); /* and back to the same incarnation */
    assert_string_equal(get(&one->f, "r", "a", "q"), "x");
    cluster_end(&c);
}

/* Takes over from the log alone when `adopts` is false; the records wait in memory, or exceed
 * it. */
static void take_over(bool adopts, bool little_memory)
{
    cluster c;
    rq__manifest m;
    cluster_init(&c);
    cluster_server *one = &c.servers[0], *two = &c.servers[1];
    char first[32];
    int64_t value;
    memcpy(first, one->name, sizeof first);
    assert_ok(cluster_open(one, NULL));
    assert_ok(put(&one->f, "r", "a", "q", 1, "flushed"));
    assert_ok(rq_region_flush(one->f.region, (rq_slice){0}, NULL, NULL));
    assert_ok(put(&one->f, "r", "a", "q", 2, "in the log"));
    assert_ok(increment(&one->f, "c", "b", "n", 3, 77, NULL));
    uint64_t number = one->f.region->staged_seqid;
    cluster_crash(&c, one);
    const char *encoded = two->f.info.encoded;
    assert_int_equal(rq_engine_adopt(two->f.engine, first, &encoded, 1, NULL), RQ_E_STATE);
    cluster_fence(two, first);
    if (little_memory) two->f.engine->recovery.bytes_max = 0;
    if (adopts) assert_ok(rq_engine_adopt(two->f.engine, first, &encoded, 1, NULL));
    assert_ok(cluster_open(two, NULL));
    assert_true(two->f.region->open_seqid > number);
    assert_string_equal(get(&two->f, "r", "a", "q"), "in the log");
    /* a retry of the previous increment */
    assert_ok(increment(&two->f, "c", "b", "n", 3, 77, NULL));
    assert_ok(increment(&two->f, "c", "b", "n", 1, 78, &value));
    assert_int_equal(value, 4);
    cluster_manifest(two, &m);
    assert_int_equal(m.log_count, 2);
    assert_int_equal(rq_wal_retire(two->shared, first, NULL), RQ_E_STATE);
    assert_ok(rq_region_flush(two->f.region, (rq_slice){0}, NULL, NULL));
    cluster_manifest(two, &m);
    assert_true(m.log_count == 1 && rq_slice_eq(m.logs[0].name, rq_slice_cstr(two->name)));
    assert_ok(rq_wal_retire(two->shared, first, NULL));
    cluster_end(&c);
}

static void a_dead_servers_region_is_taken_over(void **state)
{
    (void)state;
    take_over(false, false);
    take_over(true, false);
    take_over(true, true);
}

/* Two servers die one after the other; the second has not flushed what it replayed from the
 * first. */
static void several_logs_are_replayed(void **state)
{
    (void)state;
    cluster c;
    rq__manifest m;
    cluster_init(&c);
    cluster_server *one = &c.servers[0], *two = &c.servers[1];
    char first[32], second[32];
    memcpy(first, one->name, sizeof first);
    memcpy(second, two->name, sizeof second);
    assert_ok(cluster_open(one, NULL));
    assert_ok(put(&one->f, "r", "a", "q", 1, "first"));
    cluster_crash(&c, one);
    cluster_fence(two, first);
    assert_ok(cluster_open(two, NULL));
    assert_ok(put(&two->f, "s", "b", "q", 1, "second"));
    cluster_crash(&c, two);
    cluster_start(&c, one);
    cluster_fence(one, second);
    const char *encoded = one->f.info.encoded;
    assert_ok(rq_engine_adopt(one->f.engine, second, &encoded, 1, NULL));
    assert_ok(cluster_open(one, NULL));
    assert_string_equal(get(&one->f, "r", "a", "q"), "first");
    assert_string_equal(get(&one->f, "s", "b", "q"), "second");
    cluster_manifest(one, &m);
    assert_int_equal(m.log_count, 3);
    assert_ok(cluster_close(one, false));
    assert_ok(rq_wal_retire(one->shared, first, NULL));
    assert_ok(rq_wal_retire(one->shared, second, NULL));
    cluster_end(&c);
}

/* Keys that do not keep a log: of a failed opening, put late; of a region that no longer exists.
 * Keys that do: of an opening whose swap may still arrive; of one whose edits are only in the
 * log. */
static void late_keys_do_not_keep_a_log(void **state)
{
    (void)state;
    cluster c;
    size_t swept;
    cluster_init(&c);
    cluster_server *one = &c.servers[0], *two = &c.servers[1];
    const char *encoded = two->f.info.encoded;
    char first[32];
    memcpy(first, one->name, sizeof first);
    assert_ok(cluster_open(one, NULL));
    assert_ok(cluster_close(one, false));
    assert_ok(cluster_open(one, NULL));
    assert_ok(put(&one->f, "r", "a", "q", 1, "in the log"));
    assert_int_equal(rq_engine_sweep_late_keys(two->f.engine, first, &swept, NULL), RQ_E_STATE);
    cluster_crash(&c, one);
    cluster_fence(two, first);
    assert_ok(rq_wal_need(two->shared, first, encoded, 1, NULL));
    assert_ok(rq_wal_need(two->shared, first, encoded, 3, NULL));
    assert_ok(rq_wal_need(two->shared, first, "0123456789abcdef0123456789abcdef", 7, NULL));
    assert_ok(rq_engine_sweep_late_keys(two->f.engine, first, &swept, NULL));
    assert_int_equal(swept, 2);
    assert_int_equal(cluster_keys(two, first), 2); /* keys of openings 2 and 3 */
    assert_ok(cluster_open(two, NULL));            /* opening 3, by another server */
    assert_string_equal(get(&two->f, "r", "a", "q"), "in the log");
    assert_ok(rq_engine_sweep_late_keys(two->f.engine, first, &swept, NULL));
    assert_int_equal(swept, 1);
    assert_int_equal(rq_wal_retire(two->shared, first, NULL), RQ_E_STATE);
    assert_ok(rq_region_flush(two->f.region, (rq_slice){0}, NULL, NULL));
    assert_ok(rq_wal_retire(two->shared, first, NULL));
    assert_int_equal(rq_engine_sweep_late_keys(two->f.engine, first, &swept, NULL), RQ_E_NOT_FOUND);
    cluster_end(&c);
}

static rq_err (*real_get)(rq_shared *s, const char *name, rq_arena *arena, rq_slice *ret,
                          uint64_t *ret_generation, rq_error *why);
static cluster_server *adopts_too;
static const char *second_log;

/* Another log is adopted while the first is being read. */
static rq_err get_and_adopt(rq_shared *s, const char *name, rq_arena *arena, rq_slice *ret,
                            uint64_t *ret_generation, rq_error *why)
{
    cluster_server *by = adopts_too;
    if (by != NULL && strncmp(name, "log:", 4) == 0) {
        const char *encoded = by->f.info.encoded;
        adopts_too = NULL;
        assert_ok(rq_engine_adopt(by->f.engine, second_log, &encoded, 1, NULL));
    }
    return real_get(s, name, arena, ret, ret_generation, why);
}

static void two_logs_are_adopted_at_once(void **state)
{
    (void)state;
    cluster c;
    char first[32], second[32];
    cluster_init(&c);
    cluster_server *one = &c.servers[0], *two = &c.servers[1];
    memcpy(first, one->name, sizeof first);
    memcpy(second, two->name, sizeof second);
    second_log = second;
    assert_ok(cluster_open(one, NULL));
    assert_ok(put(&one->f, "r", "a", "q", 1, "first"));
    cluster_crash(&c, one);
    cluster_fence(two, first);
    assert_ok(cluster_open(two, NULL));
    assert_ok(put(&two->f, "s", "b", "q", 1, "second"));
    cluster_crash(&c, two);
    cluster_start(&c, one);
    cluster_fence(one, second);
    real_get = one->shared->object_get;
    one->shared->object_get = get_and_adopt;
    adopts_too = one;
    const char *encoded = one->f.info.encoded;
    assert_ok(rq_engine_adopt(one->f.engine, first, &encoded, 1, NULL));
    assert_null(adopts_too);
    one->shared->object_get = real_get;
    assert_ok(cluster_open(one, NULL));
    assert_string_equal(get(&one->f, "r", "a", "q"), "first");
    assert_string_equal(get(&one->f, "s", "b", "q"), "second");
    cluster_end(&c);
}

/* The former owner continues to write: its flush conflicts, the region fails, and it removes no
 * file that the new owner may have named. */
static void a_former_owners_flush_fails(void **state)
{
    (void)state;
    cluster c;
    cluster_init(&c);
    cluster_server *one = &c.servers[0], *two = &c.servers[1];
    assert_ok(cluster_open(one, NULL));
    assert_ok(put(&one->f, "r", "a", "q", 1, "x"));
    cluster_fence(two, one->name);
    assert_ok(cluster_open(two, NULL));
    assert_string_equal(get(&two->f, "r", "a", "q"), "x");
    assert_int_not_equal(rq_region_flush(one->f.region, (rq_slice){0}, NULL, NULL), RQ_OK);
    assert_int_equal(rq__region_state_now(one->f.region), RQ__REGION_FAILED);
    assert_int_not_equal(put(&one->f, "r", "a", "q", 2, "y"), RQ_OK);
    assert_ok(rq_region_flush(two->f.region, (rq_slice){0}, NULL, NULL));
    assert_string_equal(get(&two->f, "r", "a", "q"), "x");
    cluster_end(&c);
}

/* Responses are lost: each swap takes effect, but its sender gets an error. */
static rq_err (*real_cas)(rq_shared *s, const char *name, uint64_t expected, const rq_slice *bytes,
                          uint64_t *ret_generation, rq_error *why);

static rq_err unanswered(rq_shared *s, const char *name, uint64_t expected, const rq_slice *bytes,
                         uint64_t *ret_generation, rq_error *why)
{
    uint64_t generation;
    (void)!real_cas(s, name, expected, bytes, &generation, NULL);
    (void)ret_generation;
    return rq_fail(why, RQ_E_IO, "no answer");
}

static void swaps_without_answer_are_resolved(void **state)
{
    (void)state;
    cluster c;
    cluster_init(&c);
    cluster_server *one = &c.servers[0];
    real_cas = one->shared->object_cas;
    one->shared->object_cas = unanswered;
    assert_ok(cluster_open(one, NULL));
    for (int i = 0; i < 3; i++) {
        assert_ok(put(&one->f, "r", "a", "q", i, "x"));
        assert_ok(rq_region_flush(one->f.region, (rq_slice){0}, NULL, NULL));
    }
    assert_ok(cluster_close(one, false));
    one->shared->object_cas = real_cas;
    assert_ok(cluster_open(&c.servers[1], NULL));
    assert_string_equal(get(&c.servers[1].f, "r", "a", "q"), "x");
    cluster_end(&c);
}

/* Storage that refuses swaps, swaps without a response, or does not respond at all. */
static rq_err refused_cas(rq_shared *s, const char *name, uint64_t expected, const rq_slice *bytes,
                          uint64_t *ret_generation, rq_error *why)
{
    (void)s;
    (void)name;
    (void)expected;
    (void)bytes;
    (void)ret_generation;
    return rq_fail(why, RQ_E_IO, "not done");
}

static rq_err (*real_get)(rq_shared *s, const char *name, rq_arena *arena, rq_slice *ret,
                          uint64_t *ret_generation, rq_error *why);

static rq_err refused_get(rq_shared *s, const char *name, rq_arena *arena, rq_slice *ret,
                          uint64_t *ret_generation, rq_error *why)
{
    (void)s;
    (void)name;
    (void)arena;
    (void)ret;
    (void)ret_generation;
    return rq_fail(why, RQ_E_IO, "not read");
}

typedef enum close_fault { NOT_DONE, IN_DOUBT, DONE_IN_DOUBT, FAULTS } close_fault;

static void break_storage(rq_shared *s, close_fault fault)
{
    real_cas = s->object_cas;
    real_get = s->object_get;
    s->object_cas = fault == DONE_IN_DOUBT ? unanswered : refused_cas;
    if (fault != NOT_DONE) s->object_get = refused_get;
}

static void mend_storage(rq_shared *s)
{
    s->object_cas = real_cas;
    s->object_get = real_get;
}

/* A close whose flush succeeds and whose last swap fails. Server `one` keeps the region, which
 * refuses requests. */
static void fail_close(cluster *c, close_fault fault)
{
    cluster_server *one = &c->servers[0];
    cluster_init(c);
    assert_ok(cluster_open(one, NULL));
    assert_ok(put(&one->f, "r", "a", "q", 1, "x"));
    assert_ok(rq_region_flush(one->f.region, (rq_slice){0}, NULL, NULL));
    break_storage(one->shared, fault);
    assert_int_not_equal(rq_region_close(one->f.region, false, NULL), RQ_OK);
    mend_storage(one->shared);
    assert_false(one->f.region->owned->closes);
    assert_int_not_equal(put(&one->f, "r", "a", "q", 2, "late"), RQ_OK);
}

static void expect_given_up(cluster *c)
{
    rq__manifest m;
    cluster_server *one = &c->servers[0], *two = &c->servers[1];
    cluster_manifest(two, &m);
    assert_true(m.owner.len == 0 && m.log_count == 0);
    assert_int_equal(cluster_keys(two, one->name), 0);
    assert_ok(cluster_open(two, NULL));
    assert_string_equal(get(&two->f, "r", "a", "q"), "x");
}

/* No other server gets the region before it is released; the close can be repeated. */
static void a_failed_close_is_repeated(void **state)
{
    (void)state;
    for (close_fault fault = 0; fault < FAULTS; fault++) {
        cluster c;
        fail_close(&c, fault);
        if (fault != DONE_IN_DOUBT)
            assert_int_equal(cluster_open(&c.servers[1], NULL), RQ_E_CONFLICT);
        assert_ok(cluster_close(&c.servers[0], false));
        expect_given_up(&c);
        cluster_end(&c);
    }
}

/* As the host does after a failed close: no edit is only in the log, so an abort releases the
 * region. */
static void a_failed_close_ends_with_an_abort(void **state)
{
    (void)state;
    for (close_fault fault = 0; fault < FAULTS; fault++) {
        cluster c;
        fail_close(&c, fault);
        assert_ok(cluster_close(&c.servers[0], true));
        expect_given_up(&c);
        cluster_end(&c);
    }
}

/* The swap had taken effect, and another server has opened the region since: repeating or aborting
 * the close does not affect the new owner. */
static void a_repeated_close_leaves_the_next_owner_alone(void **state)
{
    (void)state;
    for (int aborts = 0; aborts < 2; aborts++) {
        cluster c;
        rq__manifest m;
        fail_close(&c, DONE_IN_DOUBT);
        cluster_server *one = &c.servers[0], *two = &c.servers[1];
        assert_ok(cluster_open(two, NULL));
        assert_ok(put(&two->f, "r", "a", "q", 3, "y"));
        if (aborts)
            assert_ok(cluster_close(one, true));
        else
            assert_int_not_equal(rq_region_close(one->f.region, false, NULL), RQ_OK);
        cluster_manifest(two, &m);
        assert_true(rq_slice_eq(m.owner, rq_slice_cstr(two->name)));
        assert_ok(rq_region_flush(two->f.region, (rq_slice){0}, NULL, NULL));
        assert_string_equal(get(&two->f, "r", "a", "q"), "y");
        cluster_end(&c);
    }
}

/* A failed opening releases the region, so that another server may open it. */
static void a_failed_opening_gives_the_region_back(void **state)
{
    (void)state;
    cluster c;
    rq__manifest m;
    cluster_init(&c);
    cluster_server *one = &c.servers[0], *two = &c.servers[1];
    static const family_def other[] = {{"z", {NULL}}};
    rq_table_schema *wrong = make_schema("default", "t", other, 1), *right = one->f.schema;
    one->f.schema = wrong;
    assert_int_equal(cluster_open(one, NULL), RQ_E_CORRUPT);
    one->f.schema = right;
    rq_table_schema_unref(wrong);
    cluster_manifest(two, &m);
    assert_true(m.owner.len == 0 && m.log_count == 0 && m.open_number == 1);
    assert_ok(cluster_open(two, NULL));
    cluster_end(&c);
}

/* A server whose clock is behind assigns no earlier timestamp than its predecessor did. */
static void timestamps_do_not_go_back(void **state)
{
    (void)state;
    cluster c;
    cluster_init(&c);
    cluster_server *one = &c.servers[0], *two = &c.servers[1];
    for (int crashes = 0; crashes < 2; crashes++) {
        assert_ok(cluster_open(one, NULL));
        assert_ok(put(&one->f, "r", "a", "q", RQ_TIMESTAMP_LATEST, "earlier"));
        rq_sim_set_clock(c.sim, -3600 * 1000);
        if (crashes == 1)
            cluster_crash(&c, one);
        else
            assert_ok(cluster_close(one, false));
        if (crashes == 1) cluster_fence(two, one->name);
        assert_ok(cluster_open(two, NULL));
        assert_ok(put(&two->f, "r", "a", "q", RQ_TIMESTAMP_LATEST, "later"));
        assert_string_equal(get(&two->f, "r", "a", "q"), "later");
        assert_ok(cluster_close(two, false));
    }
    cluster_end(&c);
}

static void the_forms_are_not_confused(void **state)
{
    (void)state;
    cluster c;
    fixture f;
    rq_buf bytes = {0};
    rq__manifest m = {.next_seqid = 1};
    rq_error why = {.code = RQ_OK};
    uint64_t generation = 0;
    char name[64];
    cluster_init(&c);
    cluster_server *one = &c.servers[0];
    (void)snprintf(name, sizeof name, "region:%s", one->f.info.encoded);
    assert_ok(rq__manifest_encode(&m, &bytes));
    assert_ok(rq_object_cas(one->shared, name, 1, rq_buf_slice(&bytes), &generation, NULL));
    assert_int_equal(cluster_open(one, &why), RQ_E_CORRUPT);
    assert_non_null(strstr(why.message, "standalone"));
    rq_buf_reset(&bytes);
    m.is_owned = true;
    assert_ok(rq__manifest_encode(&m, &bytes));
    fixture_open(&f, rq_sim_env(c.sim), NULL, 0);
    fixture_stop(&f, true);
    (void)snprintf(name, sizeof name, RQ__MANIFEST_DIR "/%s", f.info.encoded);
    rq_arena arena = {0};
    rq_slice old;
    assert_ok(rq_vfs_cas_read(f.env->vfs, name, &arena, &old, &generation, NULL));
    assert_ok(
        rq_vfs_cas(f.env->vfs, name, generation, rq_buf_slice(&bytes), &generation, NULL, NULL));
    rq__manifest got;
    assert_int_equal(rq__manifest_read(f.env->vfs, f.info.encoded, &arena, &got, &generation, NULL),
                     RQ_E_VERSION);
    rq_arena_clear(&arena);
    rq_buf_clear(&bytes);
    fixture_close(&f);
    cluster_end(&c);
}

static cluster_server *quick;

static bool quick_closes;

/* Another server opens the region between the read and the swap, and may have closed it again. */
static rq_err too_late(rq_shared *s, const char *name, uint64_t expected, const rq_slice *bytes,
                       uint64_t *ret_generation, rq_error *why)
{
    cluster_server *first = quick;
    quick = NULL;
    if (first != NULL) assert_ok(cluster_open(first, NULL));
    if (first != NULL && quick_closes) {
        assert_ok(put(&first->f, "r", "a", "q", 1, "x"));
        assert_ok(cluster_close(first, false));
    }
    return real_cas(s, name, expected, bytes, ret_generation, why);
}

static void an_opening_that_conflicts_leaves_no_key(void **state)
{
    (void)state;
    cluster c;
    cluster_init(&c);
    cluster_server *one = &c.servers[0];
    real_cas = one->shared->object_cas;
    quick = &c.servers[1];
    quick_closes = false;
    one->shared->object_cas = too_late;
    assert_int_equal(cluster_open(one, NULL), RQ_E_CONFLICT);
    assert_int_equal(cluster_keys(one, one->name), 0);
    assert_int_equal(cluster_keys(one, c.servers[1].name), 1);
    one->shared->object_cas = real_cas;
    cluster_end(&c);
}

/* Both openings took the same number. */
static void an_opening_between_read_and_swap_is_not_overwritten(void **state)
{
    (void)state;
    cluster c;
    cluster_init(&c);
    cluster_server *one = &c.servers[0];
    real_cas = one->shared->object_cas;
    quick = &c.servers[1];
    quick_closes = true;
    one->shared->object_cas = too_late;
    assert_int_equal(cluster_open(one, NULL), RQ_E_CONFLICT);
    one->shared->object_cas = real_cas;
    assert_ok(cluster_open(one, NULL));
    assert_string_equal(get(&one->f, "r", "a", "q"), "x");
    cluster_end(&c);
}

/* --- the cleaner of MOB files ------------------------------------------------------------------ */

static const char large[] = "0123456789012345678901234567890123456789012345678901234567890123456789"
                            "0123456789012345678901234567890123456789";

/* A swap of the other server calls the cleaner: rq_mob_writes would wait for the swap's end. */
static bool is_swapping;

/* `ctx`: the other server; NULL: it does not answer. */
static rq_err ask_other(void *ctx, rq_arena *arena, rq_mob_writers *ret, rq_error *why)
{
    cluster_server *s = ctx;
    (void)why;
    *ret = (rq_mob_writers){.servers = rq_arena_calloc(arena, 1, sizeof(rq_slice))};
    assert_non_null(ret->servers);
    if (s == NULL) return RQ_OK;
    rq_err rc = is_swapping
                    ? rq_mob_files_list_written(s->f.engine->mob_files, arena, &ret->files,
                                                &ret->file_count)
                    : rq_mob_writes(s->f.engine, arena, &ret->files, &ret->file_count, NULL);
    if (rc == RQ_OK) ret->servers[ret->server_count++] = rq_slice_cstr(s->name);
    return RQ_OK;
}

static rq_err clean(cluster_server *by, cluster_server *answers, size_t *ret_archived)
{
    rq_table_schema *const tables[] = {by->f.schema};
    const rq_mob_cleaning what = {.tables = tables,
                                  .table_count = 1,
                                  .now_ms = INT64_MAX / 2,
                                  .ask = ask_other,
                                  .ctx = answers};
    return rq_mob_clean(by->f.engine, &what, ret_archived, NULL);
}

static size_t count_mob_files(cluster_server *s)
{
    rq_dir_entry *entries;
    size_t count;
    const char *dir = rq_mob_family_dir(&s->f.arena, RQ_SLICE_LIT("t"), RQ_SLICE_LIT("a"));
    assert_ok(rq_vfs_list(s->f.env->vfs, dir, &s->f.arena, &entries, &count, NULL));
    return count;
}

static cluster *cleaned;

/* The cleaner runs between the end of a MOB file and the commit of the store file that refers to it. */
static rq_err cleaned_before(rq_shared *s, const char *name, uint64_t expected,
                             const rq_slice *bytes, uint64_t *ret_generation, rq_error *why)
{
    size_t archived;
    cluster_server *one = &cleaned->servers[0], *two = &cleaned->servers[1];
    is_swapping = true;
    assert_int_equal(count_mob_files(two), 1);
    assert_ok(clean(two, one, &archived));
    is_swapping = false;
    assert_int_equal(archived, 0);
    assert_int_equal(clean(two, NULL, &archived), RQ_E_STATE);
    assert_int_equal(archived, 0);
    return real_cas(s, name, expected, bytes, ret_generation, why);
}

static void a_mob_file_that_another_server_writes_is_not_archived(void **state)
{
    (void)state;
    cluster c;
    size_t archived;
    cluster_init(&c);
    cluster_server *one = &c.servers[0], *two = &c.servers[1];
    assert_ok(cluster_open(one, NULL));
    assert_ok(put(&one->f, "r", "a", "q", 1, large));
    cleaned = &c;
    real_cas = one->shared->object_cas;
    one->shared->object_cas = cleaned_before;
    assert_ok(rq_region_flush(one->f.region, (rq_slice){0}, NULL, NULL));
    one->shared->object_cas = real_cas;
    assert_ok(clean(two, one, &archived));
    assert_int_equal(archived, 0);
    assert_int_equal(count_mob_files(two), 1);
    assert_string_equal(get(&one->f, "r", "a", "q"), large);
    cluster_end(&c);
}

/* A swap that failed may still be applied: its MOB file stays until the next one. */
static void a_mob_file_of_a_commit_in_doubt_is_not_archived(void **state)
{
    (void)state;
    cluster c;
    size_t archived;
    cluster_init(&c);
    cluster_server *one = &c.servers[0], *two = &c.servers[1];
    assert_ok(cluster_open(one, NULL));
    assert_ok(put(&one->f, "r", "a", "q", 1, large));
    real_cas = one->shared->object_cas;
    one->shared->object_cas = refused_cas;
    assert_int_equal(rq_region_flush(one->f.region, (rq_slice){0}, NULL, NULL), RQ_E_IO);
    assert_int_equal(clean(two, one, &archived), RQ_E_STATE);
    assert_int_equal(archived, 0);
    assert_int_equal(count_mob_files(two), 1);
    one->shared->object_cas = real_cas;
    assert_ok(rq_region_flush(one->f.region, (rq_slice){0}, NULL, NULL));
    assert_int_equal(count_mob_files(two), 1); /* the one that is referred to */
    assert_ok(clean(two, one, &archived));
    assert_int_equal(archived, 0);
    assert_string_equal(get(&one->f, "r", "a", "q"), large);
    cluster_end(&c);
}

/* A compaction of two values of one cell, in two files, drops the older one. Its swap is applied, but the server does not
 * learn that. */
static void compact_in_doubt(cluster_server *s)
{
    break_storage(s->shared, DONE_IN_DOUBT);
    assert_ok(rq_region_compact(s->f.region, (rq_slice){0}, true, NULL));
    while (rq_region_compaction_state(s->f.region) != 0)
        s->f.env->executor->sleep(s->f.env->executor, 1000000);
    mend_storage(s->shared);
}

static cluster_server *in_doubt; /* from the cleaner's question on; NULL: not */

static rq_err ask_and_compact(void *ctx, rq_arena *arena, rq_mob_writers *ret, rq_error *why)
{
    rq_err rc = ask_other(ctx, arena, ret, why);
    if (in_doubt != NULL) compact_in_doubt(in_doubt);
    return rc;
}

/* The server's next swap goes back to the files before the compaction. */
static void check_old_value(cluster *c, bool after_answer)
{
    size_t archived;
    cluster_init(c);
    cluster_server *one = &c->servers[0], *two = &c->servers[1];
    assert_ok(cluster_open(one, NULL));
    for (int i = 1; i <= 2; i++) {
        assert_ok(put(&one->f, "r", "a", "q", i, large));
        assert_ok(rq_region_flush(one->f.region, (rq_slice){0}, NULL, NULL));
    }
    cleaned = c;
    in_doubt = after_answer ? one : NULL;
    if (!after_answer) compact_in_doubt(one);
    rq_table_schema *const tables[] = {two->f.schema};
    const rq_mob_cleaning what = {.tables = tables,
                                  .table_count = 1,
                                  .now_ms = INT64_MAX / 2,
                                  .ask = ask_and_compact,
                                  .ctx = one};
    rq_err rc = rq_mob_clean(two->f.engine, &what, &archived, NULL);
    assert_int_equal(rc, after_answer ? RQ_OK : RQ_E_STATE);
    assert_int_equal(archived, 0);
    assert_true(one->f.region->manifest.in_doubt);
    assert_ok(put(&one->f, "s", "b", "q", 1, "x"));
    assert_ok(rq_region_flush(one->f.region, (rq_slice){0}, NULL, NULL));
    assert_ok(clean(two, one, &archived)); /* at most the compaction's output */
    assert_true(count_mob_files(two) >= 2);
    cluster_end(c);
}

static void a_mob_file_of_before_a_compaction_in_doubt_is_not_archived(void **state)
{
    (void)state;
    cluster c;
    check_old_value(&c, false);
    check_old_value(&c, true);
}

static void a_fenced_server_stops_the_cleaner_until_its_region_is_taken(void **state)
{
    (void)state;
    cluster c;
    size_t archived;
    char first[32];
    cluster_init(&c);
    cluster_server *one = &c.servers[0], *two = &c.servers[1];
    memcpy(first, one->name, sizeof first);
    assert_ok(cluster_open(one, NULL));
    assert_ok(put(&one->f, "r", "a", "q", 1, large));
    real_cas = one->shared->object_cas;
    one->shared->object_cas = refused_cas;
    assert_int_equal(rq_region_flush(one->f.region, (rq_slice){0}, NULL, NULL), RQ_E_IO);
    cluster_crash(&c, one);
    one->shared->object_cas = real_cas;
    assert_int_equal(clean(two, NULL, &archived), RQ_E_STATE);
    cluster_fence(two, first);
    assert_int_equal(clean(two, NULL, &archived), RQ_E_STATE);
    assert_ok(cluster_open(two, NULL));
    assert_ok(clean(two, NULL, &archived));
    assert_int_equal(archived, 1); /* its store file was never committed */
    assert_string_equal(get(&two->f, "r", "a", "q"), large);
    assert_ok(rq_region_flush(two->f.region, (rq_slice){0}, NULL, NULL));
    cluster_start(&c, one);
    cluster_fence(one, two->name);
    assert_int_equal(clean(two, one, &archived), RQ_E_STATE); /* it was deposed */
    cluster_end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_region_moves_with_a_close),
        cmocka_unit_test(a_dead_servers_region_is_taken_over),
        cmocka_unit_test(several_logs_are_replayed),
        cmocka_unit_test(two_logs_are_adopted_at_once),
        cmocka_unit_test(late_keys_do_not_keep_a_log),
        cmocka_unit_test(a_former_owners_flush_fails),
        cmocka_unit_test(swaps_without_answer_are_resolved),
        cmocka_unit_test(a_failed_close_is_repeated),
        cmocka_unit_test(a_failed_close_ends_with_an_abort),
        cmocka_unit_test(a_repeated_close_leaves_the_next_owner_alone),
        cmocka_unit_test(a_failed_opening_gives_the_region_back),
        cmocka_unit_test(timestamps_do_not_go_back),
        cmocka_unit_test(an_opening_that_conflicts_leaves_no_key),
        cmocka_unit_test(an_opening_between_read_and_swap_is_not_overwritten),
        cmocka_unit_test(the_forms_are_not_confused),
        cmocka_unit_test(a_mob_file_that_another_server_writes_is_not_archived),
        cmocka_unit_test(a_mob_file_of_a_commit_in_doubt_is_not_archived),
        cmocka_unit_test(a_mob_file_of_before_a_compaction_in_doubt_is_not_archived),
        cmocka_unit_test(a_fenced_server_stops_the_cleaner_until_its_region_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
