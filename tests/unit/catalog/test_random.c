/* SPDX-License-Identifier: Apache-2.0 */
/* Random changes against a model made of plain lists: every outcome is predicted, rows that must
 * exist are read, and at times the server stops, cleanly or not. A second test submits the changes
 * concurrently: each is answered, and in the end catalog, meta and disk agree.
 *
 * SEED=s replays; STEPS=n sets the length. */
#include "world.h"

#include "base/random.h"

#define TABLES 6
#define FAMILIES 4
#define ROWS 6

typedef struct model_table {
    bool exists, enabled;
    int versions[FAMILIES]; /* 0: the family does not exist */
    int splits;
    bool rows[ROWS][FAMILIES];
} model_table;

typedef struct model {
    bool ns; /* whether namespace n exists; tables 3 to 5 are in it */
    model_table tables[TABLES];
    rq_random random;
} model;

static const char *const table_names[TABLES] = {"a", "b", "c", "n:a", "n:b", "n:c"};
static const char *const family_names[FAMILIES] = {"f", "g", "h", "i"};
static const char *const row_names[ROWS] = {"a", "c", "k", "m", "t", "z"};
static const char *const split_texts[] = {NULL, "m", "c t", "b d h p"};
static const int split_regions[] = {1, 2, 3, 5};

static int below(model *m, int bound)
{
    return (int)rq_random_below(&m->random, (uint64_t)bound);
}

static int family_count(const model_table *t)
{
    int n = 0;
    for (int f = 0; f < FAMILIES; f++)
        n += t->versions[f] > 0;
    return n;
}

static void expect(rq_err is, rq_err should, const char *what, const world *w)
{
    if (is != should)
        fail_msg("%s: %s instead of %s (%s)", what, rq_err_name(is), rq_err_name(should),
                 w->why.message);
}

/* --- one change each, on the world and on the model ------------------------------------------- */

static void do_create(world *w, model *m, int i)
{
    model_table *t = &m->tables[i], fresh = {.exists = true, .enabled = true};
    char text[200] = "";
    for (int f = 0; f < FAMILIES; f++) {
        if (below(m, 2) == 0) continue;
        fresh.versions[f] = 1 + below(m, 5);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s:VERSIONS=%d ",
                 family_names[f], fresh.versions[f]);
    }
    int splits = below(m, (int)RQ_ARRAY_LEN(split_texts));
    fresh.splits = split_regions[splits];
    rq_err should = i >= 3 && !m->ns            ? RQ_E_NAMESPACE_NOT_FOUND
                    : family_count(&fresh) == 0 ? RQ_E_DO_NOT_RETRY
                    : t->exists                 ? RQ_E_TABLE_EXISTS
                                                : RQ_OK;
    expect(world_create(w, table_names[i], text, split_texts[splits]), should, "create", w);
    if (should == RQ_OK) *t = fresh;
}

static void do_delete(world *w, model *m, int i)
{
    model_table *t = &m->tables[i];
    rq_err should = !t->exists   ? RQ_E_TABLE_NOT_FOUND
                    : t->enabled ? RQ_E_TABLE_NOT_DISABLED
                                 : RQ_OK;
    expect(world_table(w, RQ_DDL_DELETE_TABLE, table_names[i]), should, "delete", w);
    if (should == RQ_OK) *t = (model_table){0};
}

static void do_enable(world *w, model *m, int i)
{
    model_table *t = &m->tables[i];
    rq_err should = !t->exists   ? RQ_E_TABLE_NOT_FOUND
                    : t->enabled ? RQ_E_TABLE_NOT_DISABLED
                                 : RQ_OK;
    expect(world_table(w, RQ_DDL_ENABLE_TABLE, table_names[i]), should, "enable", w);
    if (should == RQ_OK) t->enabled = true;
}

static void do_disable(world *w, model *m, int i)
{
    model_table *t = &m->tables[i];
    rq_err should = !t->exists    ? RQ_E_TABLE_NOT_FOUND
                    : !t->enabled ? RQ_E_TABLE_NOT_ENABLED
                                  : RQ_OK;
    expect(world_table(w, RQ_DDL_DISABLE_TABLE, table_names[i]), should, "disable", w);
    if (should == RQ_OK) t->enabled = false;
}

static void do_truncate(world *w, model *m, int i)
{
    model_table *t = &m->tables[i];
    bool preserve = below(m, 2) == 0;
    rq_err should = !t->exists   ? RQ_E_TABLE_NOT_FOUND
                    : t->enabled ? RQ_E_TABLE_NOT_DISABLED
                                 : RQ_OK;
    expect(world_truncate(w, table_names[i], preserve), should, "truncate", w);
    if (should != RQ_OK) return;
    t->enabled = true;
    if (!preserve) t->splits = 1;
    memset(t->rows, 0, sizeof t->rows);
}

static void do_family(world *w, model *m, int i)
{
    static const rq_ddl_kind kinds[] = {RQ_DDL_ADD_FAMILY, RQ_DDL_MODIFY_FAMILY,
                                        RQ_DDL_DELETE_FAMILY};
    model_table *t = &m->tables[i];
    int f = below(m, FAMILIES), versions = 1 + below(m, 5), kind = below(m, 3);
    bool has = t->versions[f] > 0;
    rq_err should = !t->exists                          ? RQ_E_TABLE_NOT_FOUND
                    : has == (kind == 0)                ? RQ_E_INVALID_FAMILY_OP
                    : kind == 2 && family_count(t) == 1 ? RQ_E_INVALID_FAMILY_OP
                                                        : RQ_OK;
    char text[40];
    snprintf(text, sizeof text, kind == 2 ? "%s" : "%s:VERSIONS=%d", family_names[f], versions);
    expect(world_family(w, kinds[kind], table_names[i], text), should, "alter", w);
    if (should != RQ_OK) return;
    t->versions[f] = kind == 2 ? 0 : versions;
    for (int r = 0; r < ROWS && kind == 2; r++)
        t->rows[r][f] = false;
}

static void do_namespace(world *w, model *m)
{
    int tables = 0;
    for (int i = 3; i < TABLES; i++)
        tables += m->tables[i].exists;
    if (below(m, 2) == 0) {
        expect(world_namespace(w, RQ_DDL_CREATE_NAMESPACE, "n", NULL),
               m->ns ? RQ_E_NAMESPACE_EXISTS : RQ_OK, "create namespace", w);
        m->ns = true;
        return;
    }
    rq_err should = !m->ns ? RQ_E_NAMESPACE_NOT_FOUND : tables > 0 ? RQ_E_CONSTRAINT : RQ_OK;
    expect(world_namespace(w, RQ_DDL_DELETE_NAMESPACE, "n", NULL), should, "delete namespace", w);
    if (should == RQ_OK) m->ns = false;
}

static rq_err row_outcome(const model_table *t, int f)
{
    return !t->exists            ? RQ_E_TABLE_NOT_FOUND
           : !t->enabled         ? RQ_E_NOT_SERVING_REGION
           : t->versions[f] == 0 ? RQ_E_NO_SUCH_FAMILY
                                 : RQ_OK;
}

static void do_put(world *w, model *m, int i)
{
    int r = below(m, ROWS), f = below(m, FAMILIES);
    rq_err should = row_outcome(&m->tables[i], f);
    expect(world_put(w, table_names[i], row_names[r], family_names[f]), should, "put", w);
    if (should == RQ_OK) m->tables[i].rows[r][f] = true;
}

static void do_flush(world *w, model *m, int i)
{
    const model_table *t = &m->tables[i];
    rq_err should = !t->exists    ? RQ_E_TABLE_NOT_FOUND
                    : !t->enabled ? RQ_E_TABLE_NOT_ENABLED
                                  : RQ_OK;
    expect(world_table(w, RQ_DDL_FLUSH_TABLE, table_names[i]), should, "flush", w);
}

/* --- world and model agree -------------------------------------------------------------------- */

static void check(world *w, const model *m)
{
    for (int i = 0; i < TABLES; i++) {
        const model_table *t = &m->tables[i];
        rq_epoch_member member = {0};
        rq_epoch_pin(w->env->epoch, &member);
        const rq_catalog_table *is =
            rq_catalog_table_find(w->catalog, rq_slice_cstr(table_names[i]));
        assert_int_equal(is != NULL, t->exists);
        if (is != NULL) {
            assert_int_equal(is->state, t->enabled ? RQ_TABLE_ENABLED : RQ_TABLE_DISABLED);
            assert_int_equal(is->region_count, t->splits);
            assert_int_equal(is->schema->family_count, family_count(t));
            for (int f = 0; f < FAMILIES; f++) {
                const rq_family_schema *s =
                    rq_table_schema_family(is->schema, rq_slice_cstr(family_names[f]));
                assert_int_equal(s == NULL ? 0 : s->max_versions, t->versions[f]);
            }
        }
        rq_epoch_unpin(w->env->epoch, &member);
        for (int r = 0; r < ROWS; r++)
            for (int f = 0; f < FAMILIES; f++) {
                rq_err should = row_outcome(t, f);
                if (should == RQ_OK && !t->rows[r][f]) should = RQ_E_NOT_FOUND;
                expect(world_get(w, table_names[i], row_names[r], family_names[f]), should, "get",
                       w);
            }
    }
    assert_int_equal(rq_catalog_namespace_find(w->catalog, RQ_SLICE_LIT("n")) != NULL, m->ns);
    char *faults = world_check(w);
    assert_string_equal(faults, "");
    free(faults);
}

static void restart(world *w, bool clean)
{
    if (world_close(w, clean) != RQ_OK && clean) fail_msg("clean stop: %s", w->why.message);
    if (world_open(w) != RQ_OK) fail_msg("open: %s", w->why.message);
}

static void step(world *w, model *m)
{
    int i = below(m, TABLES);
    switch (below(m, 12)) {
    case 0:
    case 1:
        do_create(w, m, i);
        break;
    case 2:
        do_delete(w, m, i);
        break;
    case 3:
        do_enable(w, m, i);
        break;
    case 4:
        do_disable(w, m, i);
        break;
    case 5:
        do_truncate(w, m, i);
        break;
    case 6:
    case 7:
        do_family(w, m, i);
        break;
    case 8:
        do_namespace(w, m);
        break;
    case 9:
        do_flush(w, m, i);
        break;
    default:
        do_put(w, m, i);
        break;
    }
}

static void random_changes_do_what_the_model_says(void **state)
{
    (void)state;
    uint64_t seed = unit_seed();
    int steps = (int)seeds_number("STEPS", 600);
    world w;
    model m = {0};
    world_init(&w, seed, NULL);
    rq_random_seed(&m.random, seed);
    assert_int_equal(world_open(&w), RQ_OK);
    for (int n = 0; n < steps; n++) {
        step(&w, &m);
        if (n % 50 == 49) check(&w, &m);
        if (below(&m, 40) == 0) {
            restart(&w, below(&m, 2) == 0);
            check(&w, &m);
        }
    }
    check(&w, &m);
    world_end(&w);
}

/* --- concurrent changes ----------------------------------------------------------------------- */

#define CROWD 60

typedef struct member {
    rq_ddl ddl;
    bool answered;
} member;

static void answered(rq_ddl *d)
{
    RQ_CONTAINER_OF(d, member, ddl)->answered = true;
}

static void concurrent_changes_end_in_agreement(void **state)
{
    (void)state;
    uint64_t seed = unit_seed();
    static const rq_ddl_kind kinds[] = {
        RQ_DDL_CREATE_TABLE,  RQ_DDL_CREATE_TABLE, RQ_DDL_DELETE_TABLE,   RQ_DDL_DISABLE_TABLE,
        RQ_DDL_DISABLE_TABLE, RQ_DDL_ENABLE_TABLE, RQ_DDL_TRUNCATE_TABLE, RQ_DDL_FLUSH_TABLE,
    };
    static const rq_slice keys[] = {RQ_SLICE_LIT("c"), RQ_SLICE_LIT("m")};
    world w;
    world_init(&w, seed, NULL);
    assert_int_equal(world_open(&w), RQ_OK);
    assert_int_equal(world_namespace(&w, RQ_DDL_CREATE_NAMESPACE, "n", NULL), RQ_OK);
    rq_arena a;
    rq_arena_init(&a);
    member *crowd = rq_arena_calloc(&a, CROWD, sizeof *crowd);
    for (int i = 0; i < CROWD; i++) {
        rq_ddl *d = &crowd[i].ddl;
        const char *name = table_names[rq_sim_random(w.sim) % TABLES];
        assert_int_equal(rq_table_name_parse(rq_slice_cstr(name), &d->ns, &d->qualifier, NULL),
                         RQ_OK);
        d->kind = kinds[rq_sim_random(w.sim) % RQ_ARRAY_LEN(kinds)];
        if (d->kind == RQ_DDL_CREATE_TABLE) {
            d->of.create.schema = world_schema(&a, name, "f g");
            d->of.create.split_keys = keys;
            d->of.create.split_key_count = rq_sim_random(w.sim) % 3;
        }
        d->early = rq_sim_random(w.sim) % 2 == 0;
        d->wait_finished = rq_sim_random(w.sim) % 3 == 0;
        d->nonce = rq_sim_random(w.sim) % 40 + 1; /* some nonces are used twice */
        d->nonce_group = 3;
        d->submitted = answered;
        rq_catalog_submit(w.catalog, d);
        if (rq_sim_random(w.sim) % 4 == 0) rq_sim_step(w.sim);
    }
    assert_true(world_settle(&w));
    for (int i = 0; i < CROWD; i++)
        assert_true(crowd[i].answered);
    char *faults = world_check(&w), *before = world_describe(&w);
    assert_string_equal(faults, "");
    restart(&w, rq_sim_random(w.sim) % 2 == 0);
    char *after = world_describe(&w);
    assert_string_equal(before, after);
    free(faults);
    free(before);
    free(after);
    rq_arena_clear(&a);
    world_clear(&w);
}

/* A stop with many procedures pending answers all callers, and the next start finishes the
 * procedures that had begun. */
static void a_stop_answers_every_concurrent_change(void **state)
{
    (void)state;
    uint64_t seed = unit_seed();
    world w;
    world_init(&w, seed, NULL);
    assert_int_equal(world_open(&w), RQ_OK);
    rq_arena a;
    rq_arena_init(&a);
    member *crowd = rq_arena_calloc(&a, CROWD, sizeof *crowd);
    for (int i = 0; i < CROWD; i++) {
        rq_ddl *d = &crowd[i].ddl;
        const char *name = table_names[i % 3];
        assert_int_equal(rq_table_name_parse(rq_slice_cstr(name), &d->ns, &d->qualifier, NULL),
                         RQ_OK);
        d->kind = i < 3        ? RQ_DDL_CREATE_TABLE
                  : i % 2 == 0 ? RQ_DDL_DISABLE_TABLE
                               : RQ_DDL_ENABLE_TABLE;
        if (d->kind == RQ_DDL_CREATE_TABLE) d->of.create.schema = world_schema(&a, name, "f");
        d->early = i % 3 == 0;
        d->wait_finished = i % 5 == 0;
        d->submitted = answered;
        rq_catalog_submit(w.catalog, d);
    }
    for (uint64_t n = rq_sim_random(w.sim) % 200; n > 0; n--)
        rq_sim_step(w.sim);
    bool clean = rq_sim_random(w.sim) % 2 == 0;
    rq_err rc = world_close(&w, clean);
    if (clean && rc != RQ_OK) fail_msg("clean stop: %s", w.why.message);
    for (int i = 0; i < CROWD; i++)
        assert_true(crowd[i].answered);
    assert_int_equal(world_open(&w), RQ_OK);
    assert_true(world_settle(&w));
    char *faults = world_check(&w);
    assert_string_equal(faults, "");
    free(faults);
    rq_arena_clear(&a);
    world_clear(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_changes_do_what_the_model_says),
        cmocka_unit_test(concurrent_changes_end_in_agreement),
        cmocka_unit_test(a_stop_answers_every_concurrent_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
