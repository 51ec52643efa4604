/* SPDX-License-Identifier: Apache-2.0 */
/* Changes, writes and lookups at once, on real threads and files. Each thread that makes changes
 * owns a table, and all share another table; readers and writers use all tables that they find.
 * Acknowledged rows of a table that is altered, disabled and enabled but never emptied must exist
 * in the end, and after a restart. Under TSan this tests the locking rules.
 *
 * SEED=s makes the same changes; STEPS=n sets their number per thread. */
#include "world.h"

#include "../region/fixture.h"

#include "base/random.h"
#include "catalog/catalog_priv.h"

#include <pthread.h>
#include <stdatomic.h>

#define CHANGERS 3
#define CLIENTS 2
#define ROWS 64 /* per client */

typedef struct stage {
    world *w;
    atomic_bool over;
    atomic_uint faults; /* outcomes that must not occur */
} stage;

typedef struct actor {
    stage *s;
    world w; /* the outcomes of this thread's own operations */
    rq_random random;
    pthread_t thread;
    int number, steps;
    char table[16];
    bool acked[ROWS]; /* clients: rows of the table "kept" */
} actor;

static void fault(actor *a, const char *what, rq_err rc)
{
    atomic_fetch_add(&a->s->faults, 1);
    fprintf(stderr, "%s of %d: %s (%s)\n", what, a->number, rq_err_name(rc), a->w.why.message);
}

static bool one_of(rq_err rc, const rq_err *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (rc == list[i]) return true;
    return false;
}

static int below(actor *a, int bound)
{
    return (int)rq_random_below(&a->random, (uint64_t)bound);
}

/* --- threads that change tables --------------------------------------------------------------- */

static rq_err change(actor *a, const char *table)
{
    static const char *const splits[] = {NULL, "m", "c t"};
    switch (below(a, 9)) {
    case 0:
    case 1:
        return world_create(&a->w, table, "f g", splits[below(a, 3)]);
    case 2:
        return world_table(&a->w, RQ_DDL_DISABLE_TABLE, table);
    case 3:
        return world_table(&a->w, RQ_DDL_ENABLE_TABLE, table);
    case 4:
        return world_truncate(&a->w, table, below(a, 2) == 0);
    case 5:
        return world_table(&a->w, RQ_DDL_DELETE_TABLE, table);
    case 6:
        return world_family(&a->w, RQ_DDL_MODIFY_FAMILY, table,
                            below(a, 2) == 0 ? "f:VERSIONS=3" : "f:VERSIONS=5");
    case 7:
        return below(a, 2) == 0 ? world_family(&a->w, RQ_DDL_ADD_FAMILY, table, "h")
                                : world_family(&a->w, RQ_DDL_DELETE_FAMILY, table, "h");
    default:
        return world_table(&a->w, RQ_DDL_FLUSH_TABLE, table);
    }
}

/* Changes that keep the rows of f. */
static rq_err gentle_change(actor *a)
{
    switch (below(a, 4)) {
    case 0: {
        rq_err rc = world_table(&a->w, RQ_DDL_DISABLE_TABLE, "kept");
        if (rc != RQ_OK) return rc;
        return world_table(&a->w, RQ_DDL_ENABLE_TABLE, "kept");
    }
    case 1:
        return world_family(&a->w, RQ_DDL_MODIFY_FAMILY, "kept",
                            below(a, 2) == 0 ? "f:VERSIONS=3" : "f:COMPRESSION=GZ");
    case 2:
        return below(a, 2) == 0 ? world_family(&a->w, RQ_DDL_ADD_FAMILY, "kept", "h")
                                : world_family(&a->w, RQ_DDL_DELETE_FAMILY, "kept", "h");
    default:
        return world_table(&a->w, RQ_DDL_FLUSH_TABLE, "kept");
    }
}

static void *changer(void *arg)
{
    static const rq_err allowed[] = {
        RQ_OK,
        RQ_E_TABLE_EXISTS,
        RQ_E_TABLE_NOT_FOUND,
        RQ_E_TABLE_NOT_DISABLED,
        RQ_E_TABLE_NOT_ENABLED,
        RQ_E_INVALID_FAMILY_OP,
        RQ_E_NAMESPACE_NOT_FOUND,
    };
    actor *a = arg;
    for (int i = 0; i < a->steps; i++) {
        int which = below(a, 4);
        rq_err rc = which == 0   ? gentle_change(a)
                    : which == 1 ? change(a, "shared")
                                 : change(a, a->table);
        if (!one_of(rc, allowed, RQ_ARRAY_LEN(allowed))) fault(a, "change", rc);
    }
    return NULL;
}

/* --- clients ---------------------------------------------------------------------------------- */

static void look_around(actor *a)
{
    rq_epoch_member m = {0};
    rq_arena arena;
    rq_arena_init(&arena);
    rq_epoch_pin(a->w.env->epoch, &m);
    const rq_catalog_region **online;
    const rq_catalog_table *const *tables;
    size_t n, k;
    rq_err listed = rq_catalog_online(a->w.catalog, &arena, &online, &n);
    if (listed != RQ_OK) fault(a, "list", listed);
    for (size_t i = 0; i < n; i++) {
        const rq_host_region *r = NULL;
        rq_error why = {0};
        rq_err rc =
            rq_host_find_encoded(a->w.host, rq_slice_cstr(online[i]->info->encoded), &r, &why);
        /* A newer view may have the region elsewhere; in the same view the region must exist. */
        if (rc != RQ_OK && rc != RQ_E_NOT_SERVING_REGION && rc != RQ_E_REGION_OPENING)
            fault(a, "look-up", rc);
    }
    rq_catalog_tables(a->w.catalog, &tables, &k);
    for (size_t i = 0; i < k; i++) {
        uint32_t open, all;
        rq_slice name = tables[i]->schema->name;
        const rq_slice end = {0};
        for (size_t r = 0; r < tables[i]->region_count; r++) {
            const rq_region_info *info = rq_catalog_table_region(tables[i], r)->info;
            const rq_slice *after =
                r + 1 == tables[i]->region_count
                    ? &end
                    : &rq_catalog_table_region(tables[i], r + 1)->info->start_key;
            if (!rq_slice_eq(info->end_key, *after)) fault(a, "a hole in a table", RQ_E_STATE);
        }
        rq_catalog_alter_status(a->w.catalog, name, &open, &all);
        if (open > all) fault(a, "status", RQ_E_STATE);
    }
    rq_epoch_unpin(a->w.env->epoch, &m);
    rq_procedure *list;
    size_t count;
    rq_err rc = rq_catalog_procedures(a->w.catalog, &arena, &list, &count);
    if (rc != RQ_OK) fault(a, "procedures", rc);
    rq_arena_clear(&arena);
}

static void *client(void *arg)
{
    static const char *const tables[] = {"shared", "own0", "own1", "own2"};
    static const rq_err allowed[] = {
        RQ_OK,
        RQ_E_NOT_FOUND,
        RQ_E_TABLE_NOT_FOUND,
        RQ_E_NOT_SERVING_REGION,
        RQ_E_REGION_OPENING,
        RQ_E_NO_SUCH_FAMILY,
        RQ_E_REGION_TOO_BUSY,
    };
    actor *a = arg;
    for (int i = 0; !atomic_load(&a->s->over); i++) {
        char row[16];
        int n = below(a, ROWS);
        snprintf(row, sizeof row, "%c%d", "adnuz"[n % 5], a -> number *ROWS + n);
        rq_err rc = world_put(&a->w, "kept", row, "f");
        if (rc == RQ_OK) a->acked[n] = true;
        if (!one_of(rc, allowed, RQ_ARRAY_LEN(allowed)) || rc == RQ_E_TABLE_NOT_FOUND)
            fault(a, "put", rc);
        n = below(a, ROWS);
        snprintf(row, sizeof row, "%c%d", "adnuz"[n % 5], a -> number *ROWS + n);
        rc = world_get(&a->w, "kept", row, "f");
        if ((rc == RQ_E_NOT_FOUND && a->acked[n]) || !one_of(rc, allowed, RQ_ARRAY_LEN(allowed)))
            fault(a, "get", rc);
        const char *other = tables[below(a, (int)RQ_ARRAY_LEN(tables))];
        rc = below(a, 2) == 0 ? world_put(&a->w, other, row, below(a, 2) == 0 ? "f" : "h")
                              : world_get(&a->w, other, row, below(a, 2) == 0 ? "f" : "h");
        if (!one_of(rc, allowed, RQ_ARRAY_LEN(allowed))) fault(a, "row", rc);
        if (i % 16 == 0) look_around(a);
    }
    return NULL;
}

/* --- all threads together --------------------------------------------------------------------- */

static void check_rows(world *w, const actor *clients)
{
    for (int c = 0; c < CLIENTS; c++)
        for (int n = 0; n < ROWS; n++) {
            char row[16];
            snprintf(row, sizeof row, "%c%d", "adnuz"[n % 5], clients[c].number * ROWS + n);
            rq_err rc = world_get(w, "kept", row, "f");
            if (rc != RQ_OK && (clients[c].acked[n] || rc != RQ_E_NOT_FOUND))
                fail_msg("row %s: %s", row, rq_err_name(rc));
        }
}

static void changes_rows_and_look_ups_at_once_agree(void **state)
{
    (void)state;
    uint64_t seed = unit_seed();
    int steps = (int)seeds_number("STEPS", 25);
    real_env e;
    world w;
    real_env_open(&e);
    world_init_real(&w, &e.env);
    assert_ok(rq_config_set(w.config, "hbase.hregion.memstore.flush.size", "65536", NULL));
    if (world_open(&w) != RQ_OK) fail_msg("open: %s", w.why.message);
    assert_ok(world_create(&w, "kept", "f g", "c m t"));
    stage s = {.w = &w};
    actor changers[CHANGERS] = {0}, clients[CLIENTS] = {0};
    for (int i = 0; i < CHANGERS + CLIENTS; i++) {
        bool changes = i < CHANGERS;
        actor *a = changes ? &changers[i] : &clients[i - CHANGERS];
        a->s = &s;
        a->w = w;
        a->number = changes ? i : i - CHANGERS;
        a->steps = steps;
        rq_random_seed(&a->random, seed + (uint64_t)i);
        snprintf(a->table, sizeof a->table, "own%d", i);
        assert_int_equal(pthread_create(&a->thread, NULL, changes ? changer : client, a), 0);
    }
    for (int i = 0; i < CHANGERS; i++)
        pthread_join(changers[i].thread, NULL);
    atomic_store(&s.over, true);
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(clients[i].thread, NULL);
    assert_int_equal(atomic_load(&s.faults), 0);

    rq_err rc = world_table(&w, RQ_DDL_ENABLE_TABLE, "kept");
    assert_true(rc == RQ_OK || rc == RQ_E_TABLE_NOT_DISABLED);
    for (int round = 0; round < 3; round++) {
        char *faults = world_check(&w), *before = world_describe(&w);
        assert_string_equal(faults, "");
        check_rows(&w, clients);
        if (world_close(&w, round == 0) != RQ_OK && round == 0)
            fail_msg("clean stop: %s", w.why.message);
        if (world_open(&w) != RQ_OK) fail_msg("open: %s", w.why.message);
        char *after = world_describe(&w);
        assert_string_equal(before, after);
        free(faults);
        free(before);
        free(after);
    }
    world_end(&w);
    real_env_close(&e);
}

/* --- regions of one table at once ------------------------------------------------------------- */

#define SPLITTERS 4

/* Splits that are between the same two steps at the same time. */
typedef struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned inside, most;
} meeting;

/* Waits until two splits have met, or 20 s have passed. */
static rq_err meet(void *ctx, const rq__proc *p, rq_error *why)
{
    meeting *m = ctx;
    (void)why;
    if (p->ops->kind != RQ_DDL_SPLIT_REGION || p->step != 3) return RQ_OK;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    pthread_mutex_lock(&m->lock);
    if (++m->inside > m->most) m->most = m->inside;
    pthread_cond_broadcast(&m->changed);
    while (m->most < 2 && pthread_cond_timedwait(&m->changed, &m->lock, &until) == 0)
        ;
    m->inside--;
    pthread_mutex_unlock(&m->lock);
    return RQ_OK;
}

static rq_err change_region(actor *a, rq_ddl_kind kind, const char *row, const char *at)
{
    char encoded[RQ_ENCODED_NAME_LEN + 1];
    rq_epoch_member m = {0};
    const rq_catalog_region *r;
    a->w.why = (rq_error){0};
    rq_epoch_pin(a->w.env->epoch, &m);
    rq_err rc =
        rq_catalog_locate(a->w.catalog, RQ_SLICE_LIT("t"), rq_slice_cstr(row), &r, &a->w.why);
    if (rc == RQ_OK) memcpy(encoded, r->info->encoded, sizeof encoded);
    rq_epoch_unpin(a->w.env->epoch, &m);
    if (rc != RQ_OK) return rc;
    rq_ddl d = {.kind = kind, .ns = RQ_SLICE_LIT("default"), .qualifier = RQ_SLICE_LIT("t")};
    if (kind == RQ_DDL_SPLIT_REGION) {
        d.of.split.region = rq_slice_cstr(encoded);
        d.of.split.row = rq_slice_cstr(at);
    } else {
        d.of.one_region.region = rq_slice_cstr(encoded);
    }
    return rq__catalog_ddl_sync(a->w.catalog, &d, &a->w.why);
}

static void *splitter(void *arg)
{
    actor *a = arg;
    char row[2] = {(char)('b' + a->number), '\0'}, at[3] = {row[0], '5', '\0'};
    rq_err rc = change_region(a, RQ_DDL_SPLIT_REGION, row, at);
    for (int i = 0; i < 5 && rc == RQ_OK; i++) {
        rc = change_region(a, RQ_DDL_UNASSIGN_REGION, row, NULL);
        if (rc == RQ_OK) rc = change_region(a, RQ_DDL_ASSIGN_REGION, row, NULL);
    }
    if (rc == RQ_OK) rc = change_region(a, RQ_DDL_TRUNCATE_REGION, at, NULL);
    if (rc != RQ_OK) fault(a, "region", rc);
    return NULL;
}

static void regions_of_one_table_change_side_by_side(void **state)
{
    (void)state;
    real_env e;
    world w;
    real_env_open(&e);
    world_init_real(&w, &e.env);
    if (world_open(&w) != RQ_OK) fail_msg("open: %s", w.why.message);
    assert_ok(world_create(&w, "t", "f g", "b c d e f"));
    for (char c = 'a'; c < 'g'; c++) {
        char low[] = {c, '1', '\0'}, high[] = {c, '7', '\0'};
        assert_ok(world_put(&w, "t", low, "f"));
        assert_ok(world_put(&w, "t", high, "f"));
    }
    meeting m = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    w.catalog->procedures.before_step_ctx = &m;
    w.catalog->procedures.before_step = meet;
    stage s = {.w = &w};
    actor actors[SPLITTERS] = {0};
    for (int i = 0; i < SPLITTERS; i++) {
        actors[i] = (actor){.s = &s, .w = w, .number = i};
        assert_int_equal(pthread_create(&actors[i].thread, NULL, splitter, &actors[i]), 0);
    }
    for (int i = 0; i < SPLITTERS; i++)
        pthread_join(actors[i].thread, NULL);
    assert_int_equal(atomic_load(&s.faults), 0);
    assert_true(m.most >= 2);
    for (char c = 'a'; c < 'g'; c++) {
        char low[] = {c, '1', '\0'}, high[] = {c, '7', '\0'};
        bool truncated = c >= 'b' && c < 'b' + SPLITTERS;
        assert_ok(world_get(&w, "t", low, "f"));
        assert_int_equal(world_get(&w, "t", high, "f"), truncated ? RQ_E_NOT_FOUND : RQ_OK);
    }
    char *faults = world_check(&w);
    assert_string_equal(faults, "");
    free(faults);
    world_end(&w);
    real_env_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions_of_one_table_change_side_by_side),
        cmocka_unit_test(changes_rows_and_look_ups_at_once_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
