/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The power goes at every single file call of a script of changes to the catalog. After each cut
 * the catalog is opened again, and it must be exactly as it was after the last change that was
 * acknowledged, or as it is after the one that was being made: never between. Folders, meta,
 * descriptors and the view must agree, rows acknowledged before must be there, and the rest of the
 * script must go through.
 *
 * Each run takes every STRIDE-th call (default 9; 1: all of them), from a random first one.
 * SEEDS=n runs n seeds instead of one; SEED=s says which is the first, CUT=k cuts there alone.
 */
#include "world.h"

/* One change of the script. `table` is the table it touches. */
typedef struct change {
    const char *what;
    rq_err (*run)(world *w);
} change;

#define CHANGE(name, expr)                                                                         \
    static rq_err name(world *w)                                                                   \
    {                                                                                              \
        return expr;                                                                               \
    }

CHANGE(create_t, world_create(w, "t", "f g:VERSIONS=3", "m"))
CHANGE(put_t_a, world_put(w, "t", "a", "f"))
CHANGE(create_ns, world_namespace(w, RQ_DDL_CREATE_NAMESPACE, "n", "k=1"))
CHANGE(create_nu, world_create(w, "n:u", "f", NULL))
CHANGE(put_nu, world_put(w, "n:u", "b", "f"))
CHANGE(add_h, world_family(w, RQ_DDL_ADD_FAMILY, "t", "h"))
CHANGE(put_t_z, world_put(w, "t", "z", "h"))
CHANGE(flush_t, world_table(w, RQ_DDL_FLUSH_TABLE, "t"))
CHANGE(modify_f, world_family(w, RQ_DDL_MODIFY_FAMILY, "t", "f:VERSIONS=7"))
CHANGE(delete_g, world_family(w, RQ_DDL_DELETE_FAMILY, "t", "g"))
CHANGE(modify_ns, world_namespace(w, RQ_DDL_MODIFY_NAMESPACE, "n", "k=2"))
CHANGE(disable_nu, world_table(w, RQ_DDL_DISABLE_TABLE, "n:u"))
CHANGE(enable_nu, world_table(w, RQ_DDL_ENABLE_TABLE, "n:u"))
CHANGE(put_nu2, world_put(w, "n:u", "c", "f"))
CHANGE(disable_nu2, world_table(w, RQ_DDL_DISABLE_TABLE, "n:u"))
CHANGE(delete_nu, world_table(w, RQ_DDL_DELETE_TABLE, "n:u"))
CHANGE(delete_ns, world_namespace(w, RQ_DDL_DELETE_NAMESPACE, "n", NULL))
CHANGE(disable_t, world_table(w, RQ_DDL_DISABLE_TABLE, "t"))
CHANGE(truncate_t, world_truncate(w, "t", true))
CHANGE(put_t_q, world_put(w, "t", "q", "f"))
CHANGE(create_v, world_create(w, "v", "f", NULL))

#define C(name)                                                                                    \
    {                                                                                              \
#name, name                                                                                \
    }
static const change script[] = {
    C(create_t),   C(put_t_a), C(create_ns),   C(create_nu), C(put_nu),    C(add_h),
    C(put_t_z),    C(flush_t), C(modify_f),    C(delete_g),  C(modify_ns), C(disable_nu),
    C(enable_nu),  C(put_nu2), C(disable_nu2), C(delete_nu), C(delete_ns), C(disable_t),
    C(truncate_t), C(put_t_q), C(create_v),
};
#define STEPS RQ_ARRAY_LEN(script)

/* Rows that must be there after `done` changes, where their table can be read. */
typedef struct row {
    const char *table, *row, *family;
    size_t from, to; /* there after the changes [from, to) */
} row;

static const row rows[] = {
    {"t", "a", "f", 2, 18},    {"n:u", "b", "f", 5, 14},       {"t", "z", "h", 7, 18},
    {"n:u", "c", "f", 14, 14}, {"t", "q", "f", 20, STEPS + 1},
};

typedef struct reference {
    char *after[STEPS + 1]; /* the catalog after so many changes */
    uint64_t calls;
} reference;

/* Region names carry the time of their making, which a restart shifts: they are left out. */
static char *described(world *w)
{
    char *text = world_describe(w);
    char *out = text;
    for (char *in = text; *in != '\0';) {
        char *line_end = strchr(in, '\n');
        char *close = memchr(in, ')', (size_t)(line_end - in));
        if (in[2] == '[' && close != NULL) {
            memmove(out, in, (size_t)(close + 1 - in));
            out += close + 1 - in;
            in = close + 2 + RQ_ENCODED_NAME_LEN;
        }
        memmove(out, in, (size_t)(line_end + 1 - in));
        out += line_end + 1 - in;
        in = line_end + 1;
    }
    *out = '\0';
    return text;
}

static void run_reference(uint64_t seed, reference *ref)
{
    world w;
    world_init(&w, seed);
    assert_int_equal(world_open(&w), RQ_OK);
    ref->after[0] = described(&w);
    for (size_t i = 0; i < STEPS; i++) {
        if (script[i].run(&w) != RQ_OK) fail_msg("%s: %s", script[i].what, w.why.message);
        ref->after[i + 1] = described(&w);
    }
    ref->calls = rq_sim_calls(w.sim);
    world_clear(&w);
}

/* Procedures found unfinished go on in the background; waits until none is left. */
static bool settle(world *w)
{
    for (int i = 0; i < 2000; i++) {
        rq_sim_run(w->sim);
        rq_arena a;
        rq_arena_init(&a);
        rq_procedure *list;
        size_t count, open = 0;
        assert_int_equal(rq_catalog_procedures(w->catalog, &a, &list, &count), RQ_OK);
        for (size_t k = 0; k < count; k++)
            open += !list[k].finished;
        rq_arena_clear(&a);
        if (open == 0) return true;
        rq_sim_advance(w->sim, 100000000);
    }
    return false;
}

static void check_rows(world *w, size_t done, uint64_t seed, uint64_t cut)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(rows); i++) {
        if (done < rows[i].from || done >= rows[i].to) continue;
        rq_err rc = world_get(w, rows[i].table, rows[i].row, rows[i].family);
        if (rc == RQ_E_NOT_SERVING_REGION) continue; /* disabled at this point */
        if (rc != RQ_OK)
            fail_msg("seed %llu, cut at %llu, after %zu changes: row %s of %s: %s",
                     (unsigned long long)seed, (unsigned long long)cut, done, rows[i].row,
                     rows[i].table, rq_err_name(rc));
    }
}

static void check_agreement(world *w, const char *when, uint64_t seed, uint64_t cut)
{
    char *faults = world_check(w);
    if (faults[0] != '\0')
        fail_msg("seed %llu, cut at %llu, %s:\n%s", (unsigned long long)seed,
                 (unsigned long long)cut, when, faults);
    free(faults);
}

static void cut_once(uint64_t seed, uint64_t cut, const reference *ref)
{
    world w;
    world_init(&w, seed);
    rq_sim_cut_at(w.sim, cut);
    size_t done = 0;
    bool opened = world_open(&w) == RQ_OK;
    while (opened && done < STEPS && script[done].run(&w) == RQ_OK)
        done++;
    (void)world_close(&w, false);
    rq_sim_run(w.sim);
    rq_sim_restart(w.sim);
    if (world_open(&w) != RQ_OK)
        fail_msg("seed %llu, cut at %llu, after %zu changes: not opened again: %s",
                 (unsigned long long)seed, (unsigned long long)cut, done, w.why.message);
    if (!settle(&w))
        fail_msg("seed %llu, cut at %llu, after %zu changes: a procedure never ends",
                 (unsigned long long)seed, (unsigned long long)cut, done);
    check_agreement(&w, "opened again", seed, cut);
    char *now = described(&w);
    bool old = strcmp(now, ref->after[done]) == 0;
    bool new = done < STEPS &&strcmp(now, ref->after[done + 1]) == 0;
    if (!old && !new)
        fail_msg("seed %llu, cut at %llu, in %s: neither old nor new:\n--- is\n%s--- old\n%s--- "
                 "new\n%s",
                 (unsigned long long)seed, (unsigned long long)cut,
                 done < STEPS ? script[done].what : "the end", now, ref->after[done],
                 done < STEPS ? ref->after[done + 1] : "");
    check_rows(&w, done, seed, cut);
    /* The rest goes through; puts and flushes change no description, they are simply repeated. */
    if (!old) done++;
    for (free(now); done < STEPS; done++)
        if (script[done].run(&w) != RQ_OK)
            fail_msg("seed %llu, cut at %llu, later, %s: %s", (unsigned long long)seed,
                     (unsigned long long)cut, script[done].what, w.why.message);
    now = described(&w);
    assert_string_equal(now, ref->after[STEPS]);
    free(now);
    check_rows(&w, STEPS, seed, cut);
    check_agreement(&w, "at the end", seed, cut);
    if (world_close(&w, true) != RQ_OK) fail_msg("clean stop: %s", w.why.message);
    world_clear(&w);
}

static uint64_t number_of(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);
    return text == NULL ? fallback : strtoull(text, NULL, 10);
}

static void a_power_cut_at_any_file_call_leaves_old_or_new(void **state)
{
    (void)state;
    uint64_t seed = unit_seed(), last = seed + number_of("SEEDS", 1);
    uint64_t stride = number_of("STRIDE", 9), only = number_of("CUT", 0);
    for (; seed < last; seed++) {
        reference ref = {0};
        run_reference(seed, &ref);
        uint64_t cuts = 0;
        for (uint64_t cut = only != 0 ? only : seed % stride + 1; cut <= ref.calls; cut += stride) {
            cut_once(seed, cut, &ref);
            cuts++;
            if (only != 0) break;
        }
        printf("seed %llu: %llu of %llu cuts\n", (unsigned long long)seed, (unsigned long long)cuts,
               (unsigned long long)ref.calls);
        for (size_t i = 0; i <= STEPS; i++)
            free(ref.after[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_power_cut_at_any_file_call_leaves_old_or_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
