/* SPDX-License-Identifier: Apache-2.0 */
/* Regions of a cluster, case by case; random histories are in tests/sim/test_cluster.c. */
#include "fixture.h"

#include "region/engine_priv.h"
#include "region/owned.h"
#include "region/region_files.h"
#include "vfs/batch.h"
#include "vfs/sim.h"
#include "vfs/sim_shared.h"
#include "wal/head.h"

#define SERVERS 2
#define SECOND UINT64_C(1000000000)

typedef struct server {
    rq_sim_node *node;
    rq_shared *shared;
    rq_tenure *tenure;
    char name[32];
    fixture f;
} server;

typedef struct cluster {
    rq_sim *sim;
    rq_sim_storage *storage;
    server servers[SERVERS];
    unsigned start_code;
} cluster;

static void start(cluster *c, server *s)
{
    rq_error why = {.code = RQ_OK};
    (void)snprintf(s->name, sizeof s->name, "host%d,16020,%u", (int)(s - c->servers),
                   ++c->start_code);
    assert_ok(rq_tenure_begin(s->shared, s->name, &s->tenure, NULL));
    rq_engine_options o = {.config = s->f.config, .tenure = s->tenure, .server_name = s->name};
    if (rq_engine_open(s->f.env, &o, &s->f.engine, &why) != RQ_OK) fail_msg("%s", why.message);
}

static void cluster_init(cluster *c)
{
    static const family_def families[] = {{"a", {NULL}}, {"b", {NULL}}};
    *c = (cluster){0};
    assert_ok(rq_sim_new(1, NULL, &c->sim));
    assert_ok(rq_sim_storage_new(c->sim, 0, &c->storage));
    for (unsigned i = 0; i < SERVERS; i++) {
        server *s = &c->servers[i];
        s->f.env = rq_sim_env(c->sim);
        s->f.schema = make_schema("default", "t", families, 2);
        assert_ok(rq_config_new(&s->f.config));
        assert_ok(rq_region_info_make(&s->f.arena, RQ_SLICE_LIT("default"), RQ_SLICE_LIT("t"),
                                      (rq_slice){0}, (rq_slice){0}, 1700000000000, 0, &s->f.info));
        assert_ok(rq_sim_node_new(c->storage, 1000 + i, 0, &s->node));
        s->shared = rq_sim_node_shared(s->node);
        start(c, s);
    }
    assert_ok(rq_region_create(c->servers[0].f.engine, &c->servers[0].f.info,
                               c->servers[0].f.schema, NULL));
}

static rq_err open_at(server *s, rq_error *why)
{
    return rq_region_open(s->f.engine, &s->f.info, s->f.schema, &s->f.region, why);
}

static rq_err close_at(server *s, bool abort)
{
    rq_err rc = rq_region_close(s->f.region, abort, NULL);
    if (rc != RQ_OK) return rc;
    rq_region_unref(s->f.region);
    s->f.region = NULL;
    return RQ_OK;
}

/* As the end of a process without warning. */
static void crash(cluster *c, server *s)
{
    rq_wal_abort(rq_engine_wal(s->f.engine));
    if (s->f.region != NULL) assert_ok(close_at(s, true));
    rq_sim_run(c->sim);
    (void)!rq_engine_close(s->f.engine, false, NULL);
    s->f.engine = NULL;
    rq_tenure_free(s->tenure);
    s->tenure = NULL;
}

static void cluster_end(cluster *c)
{
    for (unsigned i = 0; i < SERVERS; i++)
        if (c->servers[i].f.engine != NULL) crash(c, &c->servers[i]);
    for (unsigned i = 0; i < SERVERS; i++) {
        rq_sim_node_free(c->servers[i].node);
        rq_table_schema_unref(c->servers[i].f.schema);
        rq_config_free(c->servers[i].f.config);
        rq_arena_clear(&c->servers[i].f.arena);
    }
    rq_sim_storage_free(c->storage);
    rq_sim_free(c->sim);
}

static void fence(server *by, const char *name)
{
    uint64_t quiet_ns;
    assert_ok(rq_wal_fence(by->shared, name, by->name, &quiet_ns, NULL));
}

static void read_manifest(server *s, rq__manifest *m)
{
    uint64_t generation;
    assert_ok(
        rq__owned_read(s->f.engine->cluster, s->f.info.encoded, &s->f.arena, m, &generation, NULL));
}

/* --- tests ------------------------------------------------------------------------------------ */

static void a_region_moves_with_a_close(void **state)
{
    (void)state;
    cluster c;
    rq__manifest m;
    rq_error why = {.code = RQ_OK};
    cluster_init(&c);
    server *one = &c.servers[0], *two = &c.servers[1];
    assert_ok(open_at(one, NULL));
    assert_ok(put(&one->f, "r", "a", "q", 5, "x"));
    assert_int_equal(open_at(two, &why), RQ_E_STATE);
    assert_non_null(strstr(why.message, "is open at host0,16020,1, which is not fenced"));
    read_manifest(two, &m);
    assert_true(m.open_number == 1 && m.log_count == 1);
    assert_true(rq_slice_eq(m.owner, rq_slice_cstr(one->name)));
    assert_ok(close_at(one, false));
    read_manifest(two, &m);
    assert_true(m.owner.len == 0 && m.log_count == 0);
    assert_ok(open_at(two, NULL));
    assert_string_equal(get(&two->f, "r", "a", "q"), "x");
    read_manifest(one, &m);
    assert_int_equal(m.open_number, 2);
    assert_ok(close_at(two, false));
    assert_ok(open_at(one, NULL)); /* and back, in the same incarnation */
    assert_string_equal(get(&one->f, "r", "a", "q"), "x");
    cluster_end(&c);
}

/* From the log alone when `adopts` is false; the records wait in memory, or are too many for it. */
static void take_over(bool adopts, bool little_memory)
{
    cluster c;
    rq__manifest m;
    cluster_init(&c);
    server *one = &c.servers[0], *two = &c.servers[1];
    char first[32];
    int64_t value;
    memcpy(first, one->name, sizeof first);
    assert_ok(open_at(one, NULL));
    assert_ok(put(&one->f, "r", "a", "q", 1, "flushed"));
    assert_ok(rq_region_flush(one->f.region, (rq_slice){0}, NULL, NULL));
    assert_ok(put(&one->f, "r", "a", "q", 2, "in the log"));
    assert_ok(increment(&one->f, "c", "b", "n", 3, 77, NULL));
    uint64_t number = one->f.region->staged_seqid;
    crash(&c, one);
    const char *encoded = two->f.info.encoded;
    assert_int_equal(rq_engine_adopt(two->f.engine, first, &encoded, 1, NULL), RQ_E_STATE);
    fence(two, first);
    if (little_memory) two->f.engine->recovery.bytes_max = 0;
    if (adopts) assert_ok(rq_engine_adopt(two->f.engine, first, &encoded, 1, NULL));
    assert_ok(open_at(two, NULL));
    assert_true(two->f.region->open_seqid > number);
    assert_string_equal(get(&two->f, "r", "a", "q"), "in the log");
    assert_ok(increment(&two->f, "c", "b", "n", 3, 77, NULL)); /* a retry of the one before */
    assert_ok(increment(&two->f, "c", "b", "n", 1, 78, &value));
    assert_int_equal(value, 4);
    read_manifest(two, &m);
    assert_int_equal(m.log_count, 2);
    assert_int_equal(rq_wal_retire(two->shared, first, NULL), RQ_E_STATE);
    assert_ok(rq_region_flush(two->f.region, (rq_slice){0}, NULL, NULL));
    read_manifest(two, &m);
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

/* Two servers die one after the other, and the second has not flushed what it took from the first. */
static void several_logs_are_replayed(void **state)
{
    (void)state;
    cluster c;
    rq__manifest m;
    cluster_init(&c);
    server *one = &c.servers[0], *two = &c.servers[1];
    char first[32], second[32];
    memcpy(first, one->name, sizeof first);
    memcpy(second, two->name, sizeof second);
    assert_ok(open_at(one, NULL));
    assert_ok(put(&one->f, "r", "a", "q", 1, "first"));
    crash(&c, one);
    fence(two, first);
    assert_ok(open_at(two, NULL));
    assert_ok(put(&two->f, "s", "b", "q", 1, "second"));
    crash(&c, two);
    start(&c, one);
    fence(one, second);
    const char *encoded = one->f.info.encoded;
    assert_ok(rq_engine_adopt(one->f.engine, second, &encoded, 1, NULL));
    assert_ok(open_at(one, NULL));
    assert_string_equal(get(&one->f, "r", "a", "q"), "first");
    assert_string_equal(get(&one->f, "s", "b", "q"), "second");
    read_manifest(one, &m);
    assert_int_equal(m.log_count, 3);
    assert_ok(close_at(one, false));
    assert_ok(rq_wal_retire(one->shared, first, NULL));
    assert_ok(rq_wal_retire(one->shared, second, NULL));
    cluster_end(&c);
}

static rq_err (*real_get)(rq_shared *s, const char *name, rq_arena *arena, rq_slice *ret,
                          uint64_t *ret_generation, rq_error *why);
static server *adopts_too;
static const char *second_log;

/* Another log is adopted while the first is read. */
static rq_err get_and_adopt(rq_shared *s, const char *name, rq_arena *arena, rq_slice *ret,
                            uint64_t *ret_generation, rq_error *why)
{
    server *by = adopts_too;
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
    server *one = &c.servers[0], *two = &c.servers[1];
    memcpy(first, one->name, sizeof first);
    memcpy(second, two->name, sizeof second);
    second_log = second;
    assert_ok(open_at(one, NULL));
    assert_ok(put(&one->f, "r", "a", "q", 1, "first"));
    crash(&c, one);
    fence(two, first);
    assert_ok(open_at(two, NULL));
    assert_ok(put(&two->f, "s", "b", "q", 1, "second"));
    crash(&c, two);
    start(&c, one);
    fence(one, second);
    real_get = one->shared->object_get;
    one->shared->object_get = get_and_adopt;
    adopts_too = one;
    const char *encoded = one->f.info.encoded;
    assert_ok(rq_engine_adopt(one->f.engine, first, &encoded, 1, NULL));
    assert_null(adopts_too);
    one->shared->object_get = real_get;
    assert_ok(open_at(one, NULL));
    assert_string_equal(get(&one->f, "r", "a", "q"), "first");
    assert_string_equal(get(&one->f, "s", "b", "q"), "second");
    cluster_end(&c);
}

/* The former owner writes on: its flush conflicts, the region fails, and no file is removed that the
 * new owner may have named. */
static void a_former_owners_flush_fails(void **state)
{
    (void)state;
    cluster c;
    cluster_init(&c);
    server *one = &c.servers[0], *two = &c.servers[1];
    assert_ok(open_at(one, NULL));
    assert_ok(put(&one->f, "r", "a", "q", 1, "x"));
    fence(two, one->name);
    assert_ok(open_at(two, NULL));
    assert_string_equal(get(&two->f, "r", "a", "q"), "x");
    assert_int_not_equal(rq_region_flush(one->f.region, (rq_slice){0}, NULL, NULL), RQ_OK);
    assert_int_equal(rq__region_state_now(one->f.region), RQ__REGION_FAILED);
    assert_int_not_equal(put(&one->f, "r", "a", "q", 2, "y"), RQ_OK);
    assert_ok(rq_region_flush(two->f.region, (rq_slice){0}, NULL, NULL));
    assert_string_equal(get(&two->f, "r", "a", "q"), "x");
    cluster_end(&c);
}

/* Answers are lost: each swap is done, and its sender does not know. */
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
    server *one = &c.servers[0];
    real_cas = one->shared->object_cas;
    one->shared->object_cas = unanswered;
    assert_ok(open_at(one, NULL));
    for (int i = 0; i < 3; i++) {
        assert_ok(put(&one->f, "r", "a", "q", i, "x"));
        assert_ok(rq_region_flush(one->f.region, (rq_slice){0}, NULL, NULL));
    }
    assert_ok(close_at(one, false));
    one->shared->object_cas = real_cas;
    assert_ok(open_at(&c.servers[1], NULL));
    assert_string_equal(get(&c.servers[1].f, "r", "a", "q"), "x");
    cluster_end(&c);
}

/* An opening that fails gives the region back: another server may open it. */
static void a_failed_opening_gives_the_region_back(void **state)
{
    (void)state;
    cluster c;
    rq__manifest m;
    cluster_init(&c);
    server *one = &c.servers[0], *two = &c.servers[1];
    static const family_def other[] = {{"z", {NULL}}};
    rq_table_schema *wrong = make_schema("default", "t", other, 1), *right = one->f.schema;
    one->f.schema = wrong;
    assert_int_equal(open_at(one, NULL), RQ_E_CORRUPT);
    one->f.schema = right;
    rq_table_schema_unref(wrong);
    read_manifest(two, &m);
    assert_true(m.owner.len == 0 && m.log_count == 0 && m.open_number == 1);
    assert_ok(open_at(two, NULL));
    cluster_end(&c);
}

/* A server whose clock is behind gives no earlier timestamp than its predecessor gave. */
static void timestamps_do_not_go_back(void **state)
{
    (void)state;
    cluster c;
    cluster_init(&c);
    server *one = &c.servers[0], *two = &c.servers[1];
    for (int crashes = 0; crashes < 2; crashes++) {
        assert_ok(open_at(one, NULL));
        assert_ok(put(&one->f, "r", "a", "q", RQ_TIMESTAMP_LATEST, "earlier"));
        rq_sim_set_clock(c.sim, -3600 * 1000);
        if (crashes == 1)
            crash(&c, one);
        else
            assert_ok(close_at(one, false));
        if (crashes == 1) fence(two, one->name);
        assert_ok(open_at(two, NULL));
        assert_ok(put(&two->f, "r", "a", "q", RQ_TIMESTAMP_LATEST, "later"));
        assert_string_equal(get(&two->f, "r", "a", "q"), "later");
        assert_ok(close_at(two, false));
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
    server *one = &c.servers[0];
    (void)snprintf(name, sizeof name, "region:%s", one->f.info.encoded);
    assert_ok(rq__manifest_encode(&m, &bytes));
    assert_ok(rq_object_cas(one->shared, name, 1, rq_buf_slice(&bytes), &generation, NULL));
    assert_int_equal(open_at(one, &why), RQ_E_CORRUPT);
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

/* --- closed regions --------------------------------------------------------------------------- */

/* The other half of the table's keys, or a region of another id. */
static rq_region_info make_info(server *s, const char *start, const char *end, int64_t id)
{
    rq_region_info info;
    assert_ok(rq_region_info_make(&s->f.arena, RQ_SLICE_LIT("default"), RQ_SLICE_LIT("t"),
                                  rq_slice_cstr(start), rq_slice_cstr(end), id, 0, &info));
    return info;
}

static void get_keys(server *s, const char *log, size_t *ret)
{
    const char **keys;
    assert_ok(rq__wal_needed_by(s->shared, log, &s->f.arena, &keys, ret, NULL));
}

static void use_region(server *s, const rq_region_info *info)
{
    s->f.info = *info;
}

static rq_err make_linked(server *s, const rq_region_info *info, const rq_region_info *from,
                          const rq_region_files *files, rq_error *why)
{
    rq_vfs *batch;
    RQ_TRY(rq_vfs_batch_new(s->f.env->vfs, &batch, why));
    rq_err rc = rq_region_create_linked(s->f.engine, batch, info, s->f.schema, from, files, why);
    return rq_vfs_batch_end(batch, s->f.env->executor, rc, why);
}

/* As a table is created, and cloned. */
static void a_region_of_links_has_a_manifest(void **state)
{
    (void)state;
    cluster c;
    rq_region_files files = {0};
    rq__manifest m;
    cluster_init(&c);
    server *one = &c.servers[0], *two = &c.servers[1];
    rq_region_info empty = make_info(one, "", "", 2), clone = make_info(one, "", "", 3);
    rq_region_info first = one->f.info;
    assert_ok(make_linked(one, &empty, &empty, &files, NULL));
    use_region(two, &empty);
    assert_ok(open_at(two, NULL));
    assert_ok(put(&two->f, "r", "a", "q", 1, "x"));
    assert_ok(rq_region_flush(two->f.region, (rq_slice){0}, NULL, NULL));
    assert_ok(make_linked(one, &empty, &empty, &files, NULL)); /* an attempt after a crash */
    read_manifest(two, &m);
    assert_int_equal(m.open_number, 1);
    assert_int_equal(rq__manifest_family_of(&m, RQ_SLICE_LIT("a"))->file_count, 1);
    assert_ok(close_at(two, false));
    use_region(one, &first);
    assert_ok(open_at(one, NULL));
    assert_ok(put(&one->f, "r", "a", "q", 1, "cloned"));
    assert_int_equal(rq_region_files_of_closed(one->f.engine, &first, one->f.schema, &one->f.arena,
                                               &files, NULL),
                     RQ_E_STATE);
    assert_ok(close_at(one, false));
    assert_ok(rq_region_files_of_closed(one->f.engine, &first, one->f.schema, &one->f.arena, &files,
                                        NULL));
    assert_ok(make_linked(one, &clone, &first, &files, NULL));
    use_region(two, &clone);
    assert_ok(open_at(two, NULL));
    assert_string_equal(get(&two->f, "r", "a", "q"), "cloned");
    cluster_end(&c);
}

static void a_region_is_split(void **state)
{
    (void)state;
    cluster c;
    rq_error why = {.code = RQ_OK};
    const rq_slice at = RQ_SLICE_LIT("m");
    cluster_init(&c);
    server *one = &c.servers[0], *two = &c.servers[1];
    rq_region_info parent = one->f.info,
                   halves[2] = {make_info(one, "", "m", 2), make_info(one, "m", "", 2)};
    assert_ok(open_at(two, NULL));
    assert_ok(put(&two->f, "a", "a", "q", RQ_TIMESTAMP_LATEST, "low"));
    assert_ok(put(&two->f, "z", "a", "q", RQ_TIMESTAMP_LATEST, "high"));
    assert_int_equal(rq_region_create_from(one->f.engine, &halves[0], one->f.schema, &parent, 1,
                                           &at, false, &why),
                     RQ_E_STATE);
    assert_ok(close_at(two, false));
    rq_sim_set_clock(c.sim, -3600 * 1000);
    for (int again = 0; again < 2; again++)
        for (int i = 0; i < 2; i++)
            assert_ok(rq_region_create_from(one->f.engine, &halves[i], one->f.schema, &parent, 1,
                                            &at, i == 1, NULL));
    use_region(two, &halves[1]);
    assert_ok(open_at(two, NULL));
    assert_string_equal(get(&two->f, "z", "a", "q"), "high");
    assert_ok(put(&two->f, "z", "a", "q", RQ_TIMESTAMP_LATEST, "later"));
    assert_string_equal(get(&two->f, "z", "a", "q"), "later");
    /* A deposed master does the step again. */
    assert_int_equal(rq_region_create_from(one->f.engine, &halves[1], one->f.schema, &parent, 1,
                                           &at, true, &why),
                     RQ_E_STATE);
    assert_string_equal(get(&two->f, "z", "a", "q"), "later");
    assert_ok(rq_region_flush(two->f.region, (rq_slice){0}, NULL, NULL));
    cluster_end(&c);
}

static rq_err remove_in_batch(server *s, rq_error *why)
{
    rq_vfs *batch;
    RQ_TRY(rq_vfs_batch_new(s->f.env->vfs, &batch, why));
    rq_err rc = rq_region_remove(s->f.engine, batch, &s->f.info, why);
    return rq_vfs_batch_end(batch, s->f.env->executor, rc, why);
}

static rq_err destroy_at_once(server *s, rq_error *why)
{
    return rq_region_destroy(s->f.engine, &s->f.info, why);
}

static void check_removal(rq_err (*removes)(server *s, rq_error *why))
{
    cluster c;
    rq_error why = {.code = RQ_OK};
    size_t keys;
    char name[32];
    cluster_init(&c);
    server *one = &c.servers[0], *two = &c.servers[1];
    memcpy(name, two->name, sizeof name);
    assert_ok(open_at(two, NULL));
    assert_ok(put(&two->f, "r", "a", "q", 1, "x"));
    assert_ok(rq_region_flush(two->f.region, (rq_slice){0}, NULL, NULL));
    assert_int_equal(removes(one, &why), RQ_E_STATE);
    assert_non_null(strstr(why.message, "which is not fenced"));
    assert_string_equal(get(&two->f, "r", "a", "q"), "x");
    assert_ok(put(&two->f, "s", "a", "q", 1, "in the log"));
    crash(&c, two);
    fence(one, name);
    assert_ok(removes(one, NULL));
    assert_ok(removes(one, NULL)); /* an attempt after a crash */
    assert_int_equal(open_at(one, NULL), RQ_E_NOT_FOUND);
    get_keys(one, name, &keys);
    assert_int_equal(keys, 0);
    assert_ok(rq_wal_retire(one->shared, name, NULL));
    assert_ok(rq_region_create(one->f.engine, &one->f.info, one->f.schema, NULL));
    assert_ok(open_at(one, NULL));
    assert_null(get(&one->f, "r", "a", "q"));
    assert_ok(close_at(one, false));
    assert_ok(removes(one, NULL));
    cluster_end(&c);
}

static void an_open_region_is_not_removed(void **state)
{
    (void)state;
    check_removal(destroy_at_once);
    check_removal(remove_in_batch);
}

static void a_removed_family_stays_removed(void **state)
{
    (void)state;
    static const family_def without[] = {{"b", {NULL}}};
    cluster c;
    rq__manifest m;
    char name[32];
    cluster_init(&c);
    server *one = &c.servers[0], *two = &c.servers[1];
    memcpy(name, two->name, sizeof name);
    assert_ok(open_at(two, NULL));
    assert_ok(put(&two->f, "r", "a", "q", 1, "flushed"));
    assert_ok(put(&two->f, "r", "b", "q", 1, "kept"));
    assert_int_equal(rq_region_remove_family(one->f.engine, &one->f.info, RQ_SLICE_LIT("a"), NULL),
                     RQ_E_STATE);
    assert_ok(rq_region_flush(two->f.region, (rq_slice){0}, NULL, NULL));
    assert_ok(put(&two->f, "s", "a", "q", 1, "in the log"));
    assert_ok(put(&two->f, "s", "b", "q", 1, "in the log"));
    crash(&c, two);
    fence(one, name);
    for (int again = 0; again < 2; again++)
        assert_ok(rq_region_remove_family(one->f.engine, &one->f.info, RQ_SLICE_LIT("a"), NULL));
    read_manifest(one, &m);
    assert_int_equal(m.family_count, 1);
    assert_true(rq_slice_eq(m.owner, rq_slice_cstr(name))); /* its lease is waited for */
    rq_table_schema *all = one->f.schema;
    one->f.schema = make_schema("default", "t", without, 1);
    assert_ok(open_at(one, NULL));
    assert_string_equal(get(&one->f, "s", "b", "q"), "in the log");
    assert_string_equal(get(&one->f, "r", "b", "q"), "kept");
    assert_ok(close_at(one, false));
    rq_table_schema_unref(one->f.schema);
    one->f.schema = all;
    assert_ok(open_at(one, NULL));
    assert_null(get(&one->f, "r", "a", "q"));
    assert_null(get(&one->f, "s", "a", "q"));
    cluster_end(&c);
}

/* What a failed change had opened is closed without a flush, and removed by any server. */
static void a_region_without_edits_is_given_up_without_a_flush(void **state)
{
    (void)state;
    cluster c;
    rq__manifest m;
    size_t keys;
    cluster_init(&c);
    server *one = &c.servers[0], *two = &c.servers[1];
    assert_ok(open_at(two, NULL));
    assert_ok(close_at(two, true));
    read_manifest(one, &m);
    assert_true(m.owner.len == 0 && m.log_count == 0);
    get_keys(one, two->name, &keys);
    assert_int_equal(keys, 0);
    assert_ok(open_at(two, NULL));
    assert_ok(put(&two->f, "r", "a", "q", 1, "in the log"));
    assert_ok(close_at(two, true));
    read_manifest(one, &m);
    assert_true(rq_slice_eq(m.owner, rq_slice_cstr(two->name)));
    cluster_end(&c);
}

static server *quick;

static bool quick_closes;

/* Another server opens the region between the read and the swap, and may have closed it. */
static rq_err too_late(rq_shared *s, const char *name, uint64_t expected, const rq_slice *bytes,
                       uint64_t *ret_generation, rq_error *why)
{
    server *first = quick;
    quick = NULL;
    if (first != NULL) assert_ok(open_at(first, NULL));
    if (first != NULL && quick_closes) {
        assert_ok(put(&first->f, "r", "a", "q", 1, "x"));
        assert_ok(close_at(first, false));
    }
    return real_cas(s, name, expected, bytes, ret_generation, why);
}

static void an_opening_that_conflicts_leaves_no_key(void **state)
{
    (void)state;
    cluster c;
    size_t keys;
    cluster_init(&c);
    server *one = &c.servers[0];
    real_cas = one->shared->object_cas;
    quick = &c.servers[1];
    quick_closes = false;
    one->shared->object_cas = too_late;
    assert_int_equal(open_at(one, NULL), RQ_E_CONFLICT);
    get_keys(one, one->name, &keys);
    assert_int_equal(keys, 0);
    get_keys(one, c.servers[1].name, &keys);
    assert_int_equal(keys, 1);
    one->shared->object_cas = real_cas;
    cluster_end(&c);
}

/* Both took the same number. */
static void an_opening_between_read_and_swap_is_not_overwritten(void **state)
{
    (void)state;
    cluster c;
    cluster_init(&c);
    server *one = &c.servers[0];
    real_cas = one->shared->object_cas;
    quick = &c.servers[1];
    quick_closes = true;
    one->shared->object_cas = too_late;
    assert_int_equal(open_at(one, NULL), RQ_E_CONFLICT);
    one->shared->object_cas = real_cas;
    assert_ok(open_at(one, NULL));
    assert_string_equal(get(&one->f, "r", "a", "q"), "x");
    cluster_end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_region_moves_with_a_close),
        cmocka_unit_test(a_dead_servers_region_is_taken_over),
        cmocka_unit_test(several_logs_are_replayed),
        cmocka_unit_test(two_logs_are_adopted_at_once),
        cmocka_unit_test(a_former_owners_flush_fails),
        cmocka_unit_test(swaps_without_answer_are_resolved),
        cmocka_unit_test(a_failed_opening_gives_the_region_back),
        cmocka_unit_test(timestamps_do_not_go_back),
        cmocka_unit_test(a_region_of_links_has_a_manifest),
        cmocka_unit_test(a_region_is_split),
        cmocka_unit_test(an_open_region_is_not_removed),
        cmocka_unit_test(a_removed_family_stays_removed),
        cmocka_unit_test(a_region_without_edits_is_given_up_without_a_flush),
        cmocka_unit_test(an_opening_that_conflicts_leaves_no_key),
        cmocka_unit_test(an_opening_between_read_and_swap_is_not_overwritten),
        cmocka_unit_test(the_forms_are_not_confused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
