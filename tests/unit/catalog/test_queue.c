/* SPDX-License-Identifier: Apache-2.0 */
/* The queues of procedures alone: which procedures exclude each other, in which order they run, and
 * how many steps that takes. */
#include "world.h"

#include <stdlib.h>

#include "base/random.h"
#include "catalog/proc_priv.h"

#define PROCS_MAX 10000

typedef struct queue {
    rq__procedures ps;
    rq__proc *procs[PROCS_MAX]; /* waiting and running procedures, in order of arrival */
    size_t count;
} queue;

static void setup(queue *q)
{
    q->count = 0;
    q->ps = (rq__procedures){.next_id = 1, .bytes_max = SIZE_MAX};
    assert_int_equal(rq__procs_init(&q->ps), RQ_OK);
}

static void teardown(queue *q)
{
    for (size_t i = 0; i < q->count; i++)
        rq__proc_free(q->procs[i]);
    rq__lock_table_free(q->ps.locks);
    free(q->ps.index[0]);
    free(q->ps.index[1]);
}

static rq_slice own(rq__proc *p, const char *text)
{
    return rq_arena_copy(&p->arena, rq_slice_cstr(text));
}

static rq__proc *make(rq_ddl_kind kind, const char *ns, const char *table, const char *region)
{
    rq__proc *p = rq__proc_new(NULL);
    assert_non_null(p);
    p->ops = rq__proc_kind_of(kind);
    p->ns = own(p, ns);
    p->qualifier = own(p, table);
    p->table = p->qualifier;
    if (p->ops->payload == &rq__payload_split)
        p->of.split.region = own(p, region);
    else if (p->ops->payload == &rq__payload_region)
        p->of.region.name = own(p, region);
    return p;
}

static rq__proc *enter(queue *q, rq__proc *p)
{
    p->id = q->ps.next_id++;
    assert_int_equal(rq__claims_new(p), RQ_OK);
    rq__procs_append(&q->ps, p);
    rq__queue_enter(&q->ps, p);
    q->procs[q->count++] = p;
    return p;
}

static rq__proc *add(queue *q, rq_ddl_kind kind, const char *table, const char *region)
{
    return enter(q, make(kind, "default", table, region));
}

static void leave(queue *q, rq__proc *p)
{
    size_t i = 0;
    while (q->procs[i] != p)
        i++;
    q->count--;
    memmove(q->procs + i, q->procs + i + 1, (q->count - i) * sizeof(rq__proc *));
    rq__procs_remove(&q->ps, p);
    rq__queue_remove_parked(&q->ps, p);
    rq__queue_leave(&q->ps, p);
    rq__proc_free(p);
}

#define NEXT_IS(q, p) assert_ptr_equal(rq__queue_ready(&(q)->ps), p)

static void regions_of_one_table_are_worked_on_side_by_side(void **state)
{
    (void)state;
    queue *q = malloc(sizeof *q);
    setup(q);
    rq__proc *a = add(q, RQ_DDL_SPLIT_REGION, "t", "a");
    rq__proc *b = add(q, RQ_DDL_UNASSIGN_REGION, "t", "b");
    rq__proc *a2 = add(q, RQ_DDL_TRUNCATE_REGION, "t", "a");
    NEXT_IS(q, a);
    NEXT_IS(q, b);
    NEXT_IS(q, NULL);
    rq__proc *alter = add(q, RQ_DDL_MODIFY_TABLE, "t", "");
    rq__proc *c = add(q, RQ_DDL_ASSIGN_REGION, "t", "c"); /* arrived after the alter */
    rq__proc *u = add(q, RQ_DDL_MODIFY_TABLE, "u", "");
    NEXT_IS(q, u);
    NEXT_IS(q, NULL);
    leave(q, a);
    NEXT_IS(q, a2);
    leave(q, b);
    NEXT_IS(q, NULL);
    leave(q, a2);
    NEXT_IS(q, alter);
    NEXT_IS(q, NULL);
    leave(q, alter);
    NEXT_IS(q, c);
    rq__proc *ns = add(q, RQ_DDL_MODIFY_NAMESPACE, "", "");
    leave(q, u);
    NEXT_IS(q, NULL);
    leave(q, c);
    NEXT_IS(q, ns);
    leave(q, ns);
    teardown(q);
    free(q);
}

static void a_merge_has_each_region_it_names(void **state)
{
    (void)state;
    queue *q = malloc(sizeof *q);
    setup(q);
    rq_slice names[] = {RQ_SLICE_LIT("a"), RQ_SLICE_LIT("b"), RQ_SLICE_LIT("a")};
    rq__proc *merge = make(RQ_DDL_MERGE_REGIONS, "default", "t", "");
    merge->of.merge.regions = names;
    /* one region is given twice: the procedure does not wait for itself */
    merge->of.merge.count = 3;
    rq__proc *c = add(q, RQ_DDL_SPLIT_REGION, "t", "c");
    rq__proc *b = add(q, RQ_DDL_SPLIT_REGION, "t", "b");
    enter(q, merge);
    /* queued behind the merge, which waits for b */
    rq__proc *a = add(q, RQ_DDL_SPLIT_REGION, "t", "a");
    NEXT_IS(q, c);
    NEXT_IS(q, b);
    NEXT_IS(q, NULL);
    leave(q, b);
    NEXT_IS(q, merge);
    NEXT_IS(q, NULL);
    leave(q, merge);
    NEXT_IS(q, a);
    teardown(q);
    free(q);
}

/* A merge of many regions, each of which is named twice. */
static uint64_t claim_steps_of(size_t count)
{
    rq__proc *merge = make(RQ_DDL_MERGE_REGIONS, "default", "t", "");
    merge->of.merge.regions = rq_arena_calloc(&merge->arena, 2 * count, sizeof(rq_slice));
    assert_non_null(merge->of.merge.regions);
    for (size_t i = 0; i < 2 * count; i++) {
        char name[32];
        snprintf(name, sizeof name, "%zu", i % count);
        merge->of.merge.regions[i] = own(merge, name);
    }
    merge->of.merge.count = 2 * count;
    assert_int_equal(rq__claims_new(merge), RQ_OK);
    uint64_t steps = merge->claim_steps;
    rq__proc_free(merge);
    return steps;
}

static void claims_on_many_regions_cost_little_each(void **state)
{
    (void)state;
    uint64_t few = claim_steps_of(1000), many = claim_steps_of(PROCS_MAX);
    assert_true(few >= 1000);
    assert_true(many < 20 * few);
}

/* Parked merges of other regions do not exclude a merge, and those of one of its regions do. */
static void a_parked_merge_excludes_one_of_its_regions(void **state)
{
    (void)state;
    rq_slice mine[] = {RQ_SLICE_LIT("a"), RQ_SLICE_LIT("b")};
    rq_slice others[] = {RQ_SLICE_LIT("c"), RQ_SLICE_LIT("d")},
             one[] = {RQ_SLICE_LIT("d"), mine[1]};
    rq_slice *lists[] = {mine, others, one};
    rq__proc *procs[3];
    for (size_t i = 0; i < 3; i++) {
        procs[i] = make(RQ_DDL_MERGE_REGIONS, "default", "t", "");
        procs[i]->of.merge.regions = lists[i];
        procs[i]->of.merge.count = 2;
        assert_int_equal(rq__claims_new(procs[i]), RQ_OK);
    }
    assert_false(rq__proc_parked_excludes(procs[0], procs[1]));
    assert_true(rq__proc_parked_excludes(procs[0], procs[2]));
    assert_true(rq__proc_parked_excludes(procs[2], procs[1]));
    for (size_t i = 0; i < 3; i++)
        rq__proc_free(procs[i]);
}

/* A procedure that a parked one excludes is ready to fail; all others get the lock. */
static void a_parked_procedure_refuses_conflicting_ones(void **state)
{
    (void)state;
    queue *q = malloc(sizeof *q);
    setup(q);
    rq__proc *a = add(q, RQ_DDL_TRUNCATE_REGION, "t", "a");
    NEXT_IS(q, a);
    rq__proc *again = add(q, RQ_DDL_SPLIT_REGION, "t", "a");
    rq__proc *flush = add(q, RQ_DDL_FLUSH_TABLE, "t", "");
    rq__proc *alter = add(q, RQ_DDL_MODIFY_TABLE, "t", "");
    NEXT_IS(q, NULL);
    a->parked = true;
    rq__queue_add_parked(&q->ps, a);
    rq__queue_park(&q->ps, a);
    bool refused[2] = {false, false}, flushed = false;
    for (rq__proc *p; (p = rq__queue_ready(&q->ps)) != NULL;) {
        refused[0] |= p == again && p->refused;
        refused[1] |= p == alter && p->refused;
        flushed |= p == flush && !p->refused;
    }
    assert_true(refused[0] && refused[1] && flushed);
    leave(q, flush);
    rq__proc *late = add(q, RQ_DDL_DELETE_TABLE, "t", "");
    NEXT_IS(q, late);
    assert_true(late->refused);
    rq__proc *b = add(q, RQ_DDL_SPLIT_REGION, "t", "b");
    NEXT_IS(q, b);
    assert_false(b->refused);
    a->parked = false; /* aborted: its last attempt has its locks */
    rq__queue_remove_parked(&q->ps, a);
    rq__queue_hold(&q->ps, a);
    rq__proc *last = add(q, RQ_DDL_SPLIT_REGION, "t", "a");
    NEXT_IS(q, NULL);
    leave(q, a);
    NEXT_IS(q, last);
    teardown(q);
    free(q);
}

/* --- against a simple definition -------------------------------------------------------------- */

static rq_slice region_of(const rq__proc *p)
{
    return p->ops->payload == &rq__payload_split ? p->of.split.region : p->of.region.name;
}

static bool excludes(const rq__proc *a, const rq__proc *b)
{
    if (!rq_slice_eq(a->ns, b->ns)) return false;
    if (a->ops->lock == RQ_LOCK_NAMESPACE || b->ops->lock == RQ_LOCK_NAMESPACE) return true;
    if (!rq_slice_eq(a->qualifier, b->qualifier)) return false;
    return a->ops->lock == RQ_LOCK_TABLE || b->ops->lock == RQ_LOCK_TABLE ||
           rq_slice_eq(region_of(a), region_of(b));
}

/* A procedure may run if no procedure that came before it excludes it. */
static void expect_rule(const queue *q, const bool *taken_by_id)
{
    for (size_t i = 0; i < q->count; i++) {
        bool free_to_go = true;
        for (size_t k = 0; k < i && free_to_go; k++)
            free_to_go = !excludes(q->procs[k], q->procs[i]);
        assert_int_equal(taken_by_id[q->procs[i]->id], free_to_go);
    }
}

static void the_queues_do_what_the_plain_rule_says(void **state)
{
    (void)state;
    static const rq_ddl_kind kinds[] = {
        RQ_DDL_SPLIT_REGION, RQ_DDL_ASSIGN_REGION, RQ_DDL_SPLIT_REGION, RQ_DDL_SPLIT_REGION,
        RQ_DDL_MODIFY_TABLE, RQ_DDL_FLUSH_TABLE,   RQ_DDL_SPLIT_REGION, RQ_DDL_MODIFY_NAMESPACE};
    static const char *const names[] = {"a", "b", "c", "d"};
    queue *q = malloc(sizeof *q);
    bool *taken = calloc(5000, sizeof *taken);
    rq_random r;
    rq_random_seed(&r, unit_seed());
    setup(q);
    for (int i = 0; i < 1500; i++) {
        if (q->count < 3 || (q->count < 40 && rq_random_below(&r, 2) == 0)) {
            rq_ddl_kind kind = kinds[rq_random_below(&r, RQ_ARRAY_LEN(kinds))];
            const char *ns = names[rq_random_below(&r, 2)], *table = names[rq_random_below(&r, 2)];
            char region[8]; /* region names are unique over all tables */
            snprintf(region, sizeof region, "%s%s%s", ns, table, names[rq_random_below(&r, 4)]);
            enter(q, make(kind, ns, table, region));
        } else { /* ends a running procedure */
            size_t at = rq_random_below(&r, q->count);
            while (!taken[q->procs[at]->id])
                at = (at + 1) % q->count;
            leave(q, q->procs[at]);
        }
        for (rq__proc *p; (p = rq__queue_ready(&q->ps)) != NULL;)
            taken[p->id] = true;
        expect_rule(q, taken);
    }
    teardown(q);
    free(taken);
    free(q);
}

/* --- cost ------------------------------------------------------------------------------------- */

/* Ends one procedure after another, always the first that may run. */
static void run_all(queue *q)
{
    for (; q->count > 0; q->count--) {
        rq__proc *p = rq__queue_ready(&q->ps);
        assert_non_null(p);
        rq__procs_remove(&q->ps, p);
        rq__queue_leave(&q->ps, p);
        rq__proc_free(p);
    }
}

static uint64_t steps_of(size_t count, bool one_table)
{
    queue *q = malloc(sizeof *q);
    setup(q);
    for (size_t i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "%zu", i);
        add(q, one_table && i % 2 == 0 ? RQ_DDL_MODIFY_TABLE : RQ_DDL_SPLIT_REGION, "t", name);
    }
    run_all(q);
    uint64_t steps = q->ps.lock_steps;
    teardown(q);
    free(q);
    return steps;
}

static void ten_times_as_many_cost_ten_times_as_much(void **state)
{
    (void)state;
    for (int one_table = 0; one_table < 2; one_table++) {
        uint64_t few = steps_of(1000, one_table), many = steps_of(PROCS_MAX, one_table);
        assert_true(few >= 1000);
        assert_true(many < 20 * few);
        assert_true(many < UINT64_C(30) * PROCS_MAX);
    }
}

/* --- results ---------------------------------------------------------------------------------- */

static size_t evict(queue *q, int64_t now_ms)
{
    size_t n = 0;
    for (rq__proc *p = rq__procs_take_evicted(&q->ps, now_ms), *next; p != NULL; p = next, n++) {
        next = p->next;
        rq__proc_free(p);
    }
    return n;
}

static void finish_one(queue *q, uint64_t nonce, int64_t now_ms)
{
    rq__proc *p = make(RQ_DDL_MODIFY_TABLE, "default", "t", "");
    p->id = q->ps.next_id++;
    p->nonce = nonce;
    p->nonce_group = 1;
    p->finished = true;
    p->updated_ms = now_ms;
    rq__procs_keep(&q->ps, p);
}

static void finish_for(queue *q, uint64_t client, uint64_t nonce, rq_err rc)
{
    finish_one(q, nonce, 1000);
    q->ps.finished->client = client;
    q->ps.finished->rc = rc;
    (void)evict(q, 1000);
}

/* A client that repeats a call, whose answer it has not got, must not have it done again because of the calls of others. */
static void a_client_displaces_only_its_own_results(void **state)
{
    (void)state;
    enum { MANY = 30000, OWN = 100, REFUSED = 1000000, DONE = 2000000 };
    queue *q = malloc(sizeof *q);
    setup(q);
    for (uint64_t i = 1; i <= OWN; i++) {
        finish_for(q, 1, i, RQ_OK);
        finish_for(q, 2, OWN + i, RQ_E_TABLE_EXISTS);
    }
    for (uint64_t i = 1; i <= MANY; i++) /* cheap calls, each from another connection */
        finish_for(q, 3 + i, REFUSED + i, RQ_E_TABLE_EXISTS);
    for (uint64_t i = 1; i <= OWN; i++)
        assert_non_null(rq__procs_by_nonce(&q->ps, 1, i));
    for (uint64_t i = 1; i <= MANY; i++) /* many from one connection */
        finish_for(q, 3, DONE + i, RQ_OK);
    for (uint64_t i = 1; i <= OWN; i++)
        assert_non_null(rq__procs_by_nonce(&q->ps, 1, i));
    assert_non_null(rq__procs_by_nonce(&q->ps, 1, DONE + MANY));
    assert_null(rq__procs_by_nonce(&q->ps, 1, DONE + 1));
    assert_true(q->ps.finished_count <= 12700);
    (void)evict(q, 1000 + 60 * 60 * 1000);
    teardown(q);
    free(q);
}

/* With little memory fewer results are kept. */
static void results_have_a_budget(void **state)
{
    (void)state;
    enum { MANY = 4000 };
    queue *q = malloc(sizeof *q);
    setup(q);
    q->ps.bytes_max = 1 << 20;
    for (uint64_t i = 1; i <= MANY; i++)
        finish_for(q, 1, i, RQ_OK);
    assert_true(q->ps.finished_count <= 512);
    assert_non_null(rq__procs_by_nonce(&q->ps, 1, MANY));
    (void)evict(q, 1000 + 60 * 60 * 1000);
    teardown(q);
    free(q);
}

/* HBASE: a nonce is known as long as its procedure's result, CompletedProcedureCleaner. */
static void nonces_go_with_the_results(void **state)
{
    (void)state;
    enum { MINUTE = 60 * 1000, MANY = 15000 };
    queue *q = malloc(sizeof *q);
    setup(q);
    finish_one(q, 7, 1000);
    assert_non_null(rq__procs_by_nonce(&q->ps, 1, 7));
    assert_null(rq__procs_by_nonce(&q->ps, 2, 7));
    assert_null(rq__procs_by_nonce(&q->ps, 1, 0));
    finish_one(q, 8, 10 * MINUTE);
    assert_int_equal(evict(q, 14 * MINUTE), 0);
    assert_int_equal(evict(q, 16 * MINUTE), 1);
    assert_null(rq__procs_by_nonce(&q->ps, 1, 7));
    assert_non_null(rq__procs_by_nonce(&q->ps, 1, 8));
    rq__procs_by_nonce(&q->ps, 1, 8)->acknowledged_ms = 16 * MINUTE;
    assert_int_equal(evict(q, 20 * MINUTE), 0);
    assert_int_equal(evict(q, 22 * MINUTE), 1);
    assert_int_equal(q->ps.finished_count, 0);
    size_t evicted = 0;
    for (uint64_t i = 1; i <= MANY; i++) { /* all at the same time */
        finish_one(q, i, 30 * MINUTE);
        evicted += evict(q, 30 * MINUTE);
    }
    assert_true(q->ps.finished_count < MANY);
    assert_int_equal(q->ps.finished_count + evicted, MANY);
    assert_non_null(rq__procs_by_nonce(&q->ps, 1, MANY));
    assert_null(rq__procs_by_nonce(&q->ps, 1, 1));
    assert_int_equal(evict(q, 60 * MINUTE), MANY - evicted);
    assert_null(rq__procs_by_nonce(&q->ps, 1, MANY));
    teardown(q);
    free(q);
}

/* Enters procedures of the client until one is refused; returns how many were accepted. */
static size_t fill_with(queue *q, uint64_t client, rq_ddl_kind kind)
{
    for (size_t n = 0;; n++) {
        rq__proc *p = make(kind, "default", "t", "");
        p->client = client;
        if (!rq__procs_have_room(&q->ps, p)) {
            rq__proc_free(p);
            return n;
        }
        enter(q, p);
    }
}

static void a_client_leaves_room_for_others(void **state)
{
    (void)state;
    queue *q = malloc(sizeof *q);
    setup(q);
    q->ps.bytes_max = 8 << 20;
    size_t first = fill_with(q, 1, RQ_DDL_ENABLE_TABLE);
    assert_in_range(q->ps.total.bytes, (7 << 20) * 8 / 10, 6 << 20);
    size_t second = fill_with(q, 2, RQ_DDL_ENABLE_TABLE);
    assert_in_range(second, 1, first / 2);
    for (uint64_t client = 3; client < 40; client++)
        (void)fill_with(q, client, RQ_DDL_ENABLE_TABLE);
    assert_true(q->ps.total.bytes <= q->ps.bytes_max);
    while (q->count > 20)
        leave(q, q->procs[q->count - 1]);
    assert_int_equal(fill_with(q, 1, RQ_DDL_ENABLE_TABLE), first - 20);
    /* the server's own procedures need no share */
    assert_true(fill_with(q, 0, RQ_DDL_SPLIT_REGION) > 0);
    while (q->count > 0)
        leave(q, q->procs[0]);
    assert_int_equal(q->ps.total.bytes, 0);
    for (size_t i = 0; i < RQ__PROC_CLIENTS; i++)
        assert_int_equal(q->ps.clients[i].bytes, 0);
    teardown(q);
    free(q);
}

static void locks_of_a_client_leave_room_for_locks_and_for_procedures(void **state)
{
    (void)state;
    queue *q = malloc(sizeof *q);
    setup(q);
    q->ps.bytes_max = 8 << 20;
    size_t first = fill_with(q, 1, RQ_DDL_LOCK_TABLE);
    assert_in_range(q->ps.total.lock_bytes, 1 << 20, (3 << 20) / 2);
    assert_in_range(fill_with(q, 2, RQ_DDL_LOCK_TABLE), 1, first);
    assert_true(fill_with(q, 1, RQ_DDL_ENABLE_TABLE) > 0);
    assert_true(fill_with(q, 3, RQ_DDL_ENABLE_TABLE) > 0);
    assert_true(fill_with(q, 4, RQ_DDL_LOCK_TABLE) > 0);
    while (q->count > 0)
        leave(q, q->procs[0]);
    assert_int_equal(q->ps.total.lock_bytes, 0);
    assert_int_equal(q->ps.clients[1].lock_bytes, 0);
    teardown(q);
    free(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions_of_one_table_are_worked_on_side_by_side),
        cmocka_unit_test(a_merge_has_each_region_it_names),
        cmocka_unit_test(claims_on_many_regions_cost_little_each),
        cmocka_unit_test(a_parked_merge_excludes_one_of_its_regions),
        cmocka_unit_test(a_parked_procedure_refuses_conflicting_ones),
        cmocka_unit_test(the_queues_do_what_the_plain_rule_says),
        cmocka_unit_test(ten_times_as_many_cost_ten_times_as_much),
        cmocka_unit_test(nonces_go_with_the_results),
        cmocka_unit_test(a_client_displaces_only_its_own_results),
        cmocka_unit_test(results_have_a_budget),
        cmocka_unit_test(a_client_leaves_room_for_others),
        cmocka_unit_test(locks_of_a_client_leave_room_for_locks_and_for_procedures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
