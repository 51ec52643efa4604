/* SPDX-License-Identifier: Apache-2.0 */
/* The view alone: the tree of a table's regions, the hash of region names, and the nodes that an
 * edit shares with the previous view. */
#include "world.h"

#include <malloc.h>
#include <stdlib.h>

#include "base/random.h"
#include "catalog/system_tables.h"
#include "catalog/view.h"

#define REGIONS_MAX 3000

typedef struct fixture {
    rq_epoch *epoch;
    rq_region_names names;
    rq__views views;
    rq_table_schema *schema;
    rq_random random;
    rq__region_node *nodes[REGIONS_MAX]; /* the table's expected regions, in order */
    size_t count;
    int64_t next_id;
} fixture;

static void setup(fixture *f)
{
    rq_error why = {0};
    *f = (fixture){.next_id = 1};
    rq_random_seed(&f->random, unit_seed());
    assert_int_equal(rq_epoch_new(&f->epoch), RQ_OK);
    assert_int_equal(rq__region_names_init(&f->names, f->epoch), RQ_OK);
    assert_int_equal(rq__views_init(&f->views, f->epoch, &f->names), RQ_OK);
    assert_int_equal(rq__system_schema(RQ__NAMESPACE, &f->schema, &why), RQ_OK);
}

static void teardown(fixture *f)
{
    for (size_t i = 0; i < f->count; i++)
        rq__region_node_unref(f->nodes[i]);
    rq__views_clear(&f->views);
    rq__region_names_clear(&f->names);
    rq_table_schema_unref(f->schema);
    rq_epoch_free(f->epoch);
}

static rq__region_node *node_new(fixture *f, uint64_t key, int64_t id)
{
    char start[32];
    rq_arena a;
    rq_region_info info;
    rq_arena_init(&a);
    snprintf(start, sizeof start, "%020llu", (unsigned long long)key);
    assert_int_equal(rq_region_info_make(&a, f->schema->ns, f->schema->qualifier,
                                         rq_slice_cstr(start), (rq_slice){NULL, 0}, id, 0, &info),
                     RQ_OK);
    rq__region_node *n = rq__region_node_new(&info, RQ_REGION_CLOSED, NULL, NULL, 1, 1, NULL);
    assert_non_null(n);
    rq_arena_clear(&a);
    return n;
}

static const rq__table_node *table_now(const fixture *f)
{
    const rq__view *v = rq__views_now(&f->views);
    return RQ_CONTAINER_OF(rq__view_table(v, f->schema->ns, f->schema->qualifier), rq__table_node,
                           pub);
}

static void put_table(fixture *f)
{
    rq__edit e;
    assert_int_equal(rq__edit_begin(&f->views, &e), RQ_OK);
    assert_int_equal(
        rq__edit_put_table(&e, rq__table_node_new(f->schema, RQ_TABLE_ENABLED, f->nodes, f->count)),
        RQ_OK);
    assert_int_equal(rq__edit_commit(&e), RQ_OK);
}

static void fill(fixture *f, size_t count)
{
    for (f->count = 0; f->count < count; f->count++)
        f->nodes[f->count] = node_new(f, f->count << 32, f->next_id++);
    put_table(f);
}

static void replace(fixture *f, size_t i)
{
    rq__region_node *n =
        rq__region_node_new(&f->nodes[i]->info, RQ_REGION_OPENING, NULL, NULL, 1, 1, "");
    assert_non_null(n);
    rq__region_node_unref(f->nodes[i]);
    f->nodes[i] = n;
    rq__edit e;
    assert_int_equal(rq__edit_begin(&f->views, &e), RQ_OK);
    const rq__table_node *t = rq__edit_table(&e, f->schema->ns, f->schema->qualifier);
    assert_int_equal(rq__edit_replace_regions(&e, t, RQ_TABLE_ENABLED, &n, 1), RQ_OK);
    assert_int_equal(rq__edit_commit(&e), RQ_OK);
}

static uint64_t key_of(const fixture *f, size_t i)
{
    return strtoull((const char *)f->nodes[i]->info.start_key.ptr, NULL, 10);
}

/* Replaces `gone` regions from the i-th by `made` new regions, as a split or merge does. Does
 * nothing if the keys leave no room. */
static void swap(fixture *f, size_t i, size_t gone, size_t made)
{
    rq__region_node *fresh[4];
    rq_region_info old[4];
    uint64_t key = key_of(f, i);
    uint64_t end = i + gone < f->count ? key_of(f, i + gone) : key + (UINT64_C(1) << 32);
    if (end - key < made) return;
    for (size_t k = 0; k < made; k++)
        fresh[k] = node_new(f, key + k * (end - key) / made, f->next_id++);
    for (size_t k = 0; k < gone; k++)
        old[k] = f->nodes[i + k]->info;
    rq__edit e;
    assert_int_equal(rq__edit_begin(&f->views, &e), RQ_OK);
    const rq__table_node *t = rq__edit_table(&e, f->schema->ns, f->schema->qualifier);
    assert_int_equal(rq__edit_swap_regions(&e, t, old, gone, fresh, made), RQ_OK);
    assert_int_equal(rq__edit_commit(&e), RQ_OK);
    for (size_t k = 0; k < gone; k++) {
        rq_slice name = rq_slice_cstr(f->nodes[i + k]->info.encoded);
        assert_null(rq_region_names_find(&f->names, name));
        rq__region_node_unref(f->nodes[i + k]);
    }
    memmove(f->nodes + i + made, f->nodes + i + gone,
            (f->count - i - gone) * sizeof(rq__region_node *));
    memcpy(f->nodes + i, fresh, made * sizeof(rq__region_node *));
    f->count = f->count - gone + made;
}

typedef struct visited {
    const fixture *f;
    size_t count;
} visited;

static rq_err visit_name(void *ctx, const rq_host_region *r)
{
    visited *v = ctx;
    assert_ptr_equal(rq_region_names_find(&v->f->names, rq_slice_cstr(r->info->encoded)), r);
    v->count++;
    return RQ_OK;
}

static void expect_same(const fixture *f)
{
    visited v = {.f = f};
    assert_int_equal(rq_region_names_each(&f->names, visit_name, &v), RQ_OK);
    assert_int_equal(v.count, f->count);
    const rq__table_node *t = table_now(f);
    assert_int_equal(t->pub.region_count, f->count);
    for (size_t i = 0; i < f->count; i++) {
        rq__region_node *n = f->nodes[i];
        assert_ptr_equal(rq__table_region(t, i), n);
        assert_int_equal(rq__table_index(t, &n->info), i);
        assert_ptr_equal(rq_region_names_find(&f->names, rq_slice_cstr(n->info.encoded)), &n->pub);
    }
}

static void random_changes_match_a_plain_list(void **state)
{
    (void)state;
    fixture f;
    setup(&f);
    fill(&f, 70);
    for (int i = 0; i < 3000; i++) {
        size_t at = rq_random_below(&f.random, f.count);
        switch (rq_random_below(&f.random, 3)) {
        case 0:
            replace(&f, at);
            break;
        case 1:
            if (f.count + 2 < REGIONS_MAX) swap(&f, at, 1, 2);
            break;
        default:
            if (at + 2 < f.count) swap(&f, at, 2 + (i & 1), 1);
        }
        if (i % 100 == 0) expect_same(&f);
    }
    expect_same(&f);
    while (f.count > 1) /* the tree becomes one leaf again */
        swap(&f, 0, f.count > 2 ? 3 : 2, 1);
    expect_same(&f);
    teardown(&f);
}

/* The hash keeps the nodes of a table that is replaced by a table with the same nodes. */
static void nodes_that_stay_are_found(void **state)
{
    (void)state;
    fixture f;
    setup(&f);
    fill(&f, 500);
    put_table(&f);
    expect_same(&f);
    replace(&f, 7);
    put_table(&f);
    expect_same(&f);
    teardown(&f);
}

/* A reader that began before a change still sees the old table. */
static void an_old_table_stays_as_it_was(void **state)
{
    (void)state;
    fixture f;
    setup(&f);
    fill(&f, 1000);
    rq__table_node *old = rq__table_node_ref((rq__table_node *)(uintptr_t)table_now(&f));
    rq__region_node *was = rq__region_node_ref(f.nodes[500]);
    for (size_t i = 0; i < 200; i++)
        swap(&f, 500, i % 2 == 0 ? 1 : 2, i % 2 == 0 ? 2 : 1);
    assert_int_equal(old->pub.region_count, 1000);
    assert_ptr_equal(rq__table_region(old, 500), was);
    expect_same(&f);
    rq__region_node_unref(was);
    rq__table_node_unref(old);
    teardown(&f);
}

static void an_aborted_edit_changes_nothing(void **state)
{
    (void)state;
    fixture f;
    setup(&f);
    fill(&f, 100);
    rq__edit e;
    assert_int_equal(rq__edit_begin(&f.views, &e), RQ_OK);
    const rq__table_node *t = rq__edit_table(&e, f.schema->ns, f.schema->qualifier);
    rq__region_node *n = node_new(&f, 5, f.next_id++);
    assert_int_equal(rq__edit_swap_regions(&e, t, &f.nodes[3]->info, 1, &n, 1), RQ_OK);
    rq__edit_abort(&e);
    assert_null(rq_region_names_find(&f.names, rq_slice_cstr(n->info.encoded)));
    rq__region_node_unref(n);
    expect_same(&f);
    teardown(&f);
}

/* Bytes added by one region's change while a reader holds the previous view. */
static size_t bytes_of_a_change(fixture *f)
{
    rq_epoch_member m = {0};
    rq_epoch_pin(f->epoch, &m);
    size_t before = mallinfo2().uordblks;
    replace(f, f->count / 2);
    size_t after = mallinfo2().uordblks;
    rq_epoch_unpin(f->epoch, &m);
    rq_epoch_collect(f->epoch);
    return after - before;
}

static void a_change_does_not_copy_the_other_regions(void **state)
{
    (void)state;
    fixture f;
    setup(&f);
    fill(&f, 30);
    size_t few = bytes_of_a_change(&f);
    put_table(&f);
    for (size_t i = 0; i < f.count; i++)
        rq__region_node_unref(f.nodes[i]);
    fill(&f, REGIONS_MAX);
    size_t many = bytes_of_a_change(&f);
    assert_true(many < few + 3 * 1024); /* a list of 3,000 pointers alone is 24 KB */
    expect_same(&f);
    teardown(&f);
}

/* --- a reader concurrent with a writer -------------------------------------------------------- */

typedef struct reader {
    fixture *f;
    char names[64][RQ_ENCODED_NAME_LEN + 1];
    _Atomic bool stop;
    uint64_t missed;
} reader;

static void *read_names(void *arg)
{
    reader *r = arg;
    for (size_t i = 0; !atomic_load(&r->stop); i++) {
        rq_epoch_member m = {0};
        rq_epoch_pin(r->f->epoch, &m);
        const rq_catalog_region *region =
            rq_region_names_find(&r->f->names, rq_slice_cstr(r->names[i % 64]));
        r->missed += region == NULL || strcmp(region->info->encoded, r->names[i % 64]) != 0;
        rq_epoch_unpin(r->f->epoch, &m);
    }
    return NULL;
}

static void a_name_that_stays_is_found_at_all_times(void **state)
{
    (void)state;
    fixture f;
    setup(&f);
    fill(&f, 64);
    reader r = {.f = &f};
    for (size_t i = 0; i < 64; i++)
        memcpy(r.names[i], f.nodes[i]->info.encoded, sizeof r.names[i]);
    for (size_t i = 0; i < 8; i++) { /* regions that are added and removed besides those */
        f.nodes[f.count] = node_new(&f, (UINT64_C(1000) << 32) + i * 1000000, f.next_id++);
        f.count++;
    }
    put_table(&f);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, read_names, &r), 0);
    for (int i = 0; i < 2000; i++) {
        replace(&f, rq_random_below(&f.random, 64));
        swap(&f, 64, i % 2 == 0 ? 1 : 2, i % 2 == 0 ? 2 : 1);
        if (i % 50 == 0) put_table(&f);
    }
    atomic_store(&r.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(r.missed, 0);
    expect_same(&f);
    teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_changes_match_a_plain_list),
        cmocka_unit_test(nodes_that_stay_are_found),
        cmocka_unit_test(an_old_table_stays_as_it_was),
        cmocka_unit_test(an_aborted_edit_changes_nothing),
        cmocka_unit_test(a_change_does_not_copy_the_other_regions),
        cmocka_unit_test(a_name_that_stays_is_found_at_all_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
