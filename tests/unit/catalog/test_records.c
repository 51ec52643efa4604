/* SPDX-License-Identifier: Apache-2.0 */
/* Records of procedures: those of earlier versions are read and finished; one that cannot be
 * decoded affects only its own procedure, never a start. */
#include "world.h"

#include <stdlib.h>

#include "catalog/catalog_priv.h"
#include "catalog/descriptor_change.h"
#include "catalog/proc_priv.h"
#include "proto/procedure.pb-c.h"

#define SPLIT "org.apache.hadoop.hbase.master.assignment.SplitTableRegionProcedure"

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != RQ_OK) fail_msg("%s: %s", #call, w.why.message);                             \
    } while (0)

/* The state_data of a record, encoded by hand. */
typedef struct record {
    uint8_t bytes[512];
    size_t len;
} record;

static void add_field(record *r, uint8_t tag, const void *value, size_t len)
{
    r->bytes[r->len++] = tag;
    r->bytes[r->len++] = (uint8_t)len; /* a varint below 128 */
    if (len > 0) memcpy(r->bytes + r->len, value, len);
    r->len += len;
}

/* The beginning of a record as versions before payloads wrote it. */
static record old_record(uint8_t kind, const char *table, uint8_t flags, const char *family)
{
    record r = {.bytes = {1, kind}, .len = 2};
    add_field(&r, 1, "default", 7);
    add_field(&r, 2, table, strlen(table));
    add_field(&r, 3, "", 0);
    add_field(&r, 4, family, strlen(family));
    add_field(&r, 5, &flags, 1);
    return r;
}

static void write_bytes(world *w, uint64_t id, rq_slice bytes)
{
    rq_region *store;
    rq_arena a;
    rq__batch b;
    uint8_t row[8];
    rq_arena_init(&a);
    rq_put_be64(row, id);
    assert_int_equal(rq__store_ref(w->catalog, &store, &w->why), RQ_OK);
    rq__batch_init(&b, &a, rq__catalog_now_ms(w->catalog));
    assert_int_equal(rq__batch_put(&b, rq_slice_of(row, 8), "proc", RQ_SLICE_LIT("d"), bytes),
                     RQ_OK);
    assert_int_equal(rq__batch_commit(&b, store, true, &w->why), RQ_OK);
    rq_region_unref(store);
    rq_arena_clear(&a);
}

static void write_record(world *w, uint64_t id, const char *java_class, Pb__ProcedureState state,
                         const record *r)
{
    uint8_t bytes[1024];
    Pb__Procedure m = PB__PROCEDURE__INIT;
    m.class_name = (char *)(uintptr_t)java_class;
    m.proc_id = id;
    m.state = state;
    m.has_state_data = true;
    m.state_data = (ProtobufCBinaryData){r->len, (uint8_t *)(uintptr_t)r->bytes};
    assert_true(pb__procedure__get_packed_size(&m) <= sizeof bytes);
    write_bytes(w, id, rq_slice_of(bytes, pb__procedure__pack(&m, bytes)));
}

static void crash_and_open(world *w)
{
    (void)!world_close(w, false);
    if (world_open(w) != RQ_OK) fail_msg("open: %s", w->why.message);
}

static bool find(world *w, rq_arena *a, uint64_t id, rq_procedure *ret)
{
    *ret = (rq_procedure){0};
    return rq_catalog_procedure(w->catalog, id, a, ret);
}

static void records_of_earlier_versions_are_finished(void **state)
{
    (void)state;
    world w;
    rq_arena a;
    rq_procedure p;
    rq_arena_init(&a);
    world_init(&w, unit_seed(), NULL);
    MUST(world_open(&w));
    MUST(world_create(&w, "t", "f g", NULL));
    MUST(world_create(&w, "u", "f g", "m"));
    MUST(world_put(&w, "t", "a", "f"));
    MUST(world_put(&w, "t", "a", "g"));
    /* A disable of u, and a delete of t's family g whose record has all fields of an alter. */
    record disable = old_record(RQ_DDL_DISABLE_TABLE, "u", 4, "");
    write_record(&w, 1000, "DisableTableProcedure", PB__PROCEDURE_STATE__RUNNABLE, &disable);
    const rq_catalog_table *t = rq_catalog_table_find(w.catalog, RQ_SLICE_LIT("t"));
    rq_table_schema *s;
    assert_int_equal(
        rq__descriptor_change(t->schema, RQ__FAMILY_DELETE, RQ_SLICE_LIT("g"), &s, &w.why), RQ_OK);
    rq_slice pb = rq_table_schema_pb(s);
    record alter = {.bytes = {1, RQ_DDL_DELETE_FAMILY}, .len = 2};
    uint8_t flags = 4;
    add_field(&alter, 1, "default", 7);
    add_field(&alter, 2, "t", 1);
    alter.bytes[alter.len++] = 3;
    assert_true(pb.len >= 128 && pb.len < 400); /* a varint of two bytes */
    alter.bytes[alter.len++] = (uint8_t)(0x80 | (pb.len & 0x7f));
    alter.bytes[alter.len++] = (uint8_t)(pb.len >> 7);
    memcpy(alter.bytes + alter.len, pb.ptr, pb.len);
    alter.len += pb.len;
    add_field(&alter, 4, "g", 1);
    add_field(&alter, 5, &flags, 1);
    add_field(&alter, 8, "g", 1);
    rq_table_schema_unref(s);
    write_record(&w, 1001, "ModifyTableProcedure", PB__PROCEDURE_STATE__RUNNABLE, &alter);
    crash_and_open(&w);
    assert_true(world_settle(&w));
    for (uint64_t id = 1000; id <= 1001; id++) {
        assert_true(find(&w, &a, id, &p));
        assert_true(p.finished);
        assert_int_equal(p.rc, RQ_OK);
    }
    t = rq_catalog_table_find(w.catalog, RQ_SLICE_LIT("u"));
    assert_int_equal(t->state, RQ_TABLE_DISABLED);
    t = rq_catalog_table_find(w.catalog, RQ_SLICE_LIT("t"));
    assert_int_equal(t->schema->family_count, 1);
    assert_int_equal(world_get(&w, "t", "a", "f"), RQ_OK);
    MUST(world_close(&w, true));
    world_clear(&w);
    rq_arena_clear(&a);
}

static void expect_kept(world *w, uint64_t id, const char *java_class, const char *message)
{
    rq_arena a;
    rq_procedure p, *list;
    size_t count, listed = 0;
    rq_arena_init(&a);
    assert_true(find(w, &a, id, &p));
    assert_true(p.parked && !p.finished);
    assert_string_equal(p.java_class, java_class);
    assert_int_equal(p.rc, RQ_E_CORRUPT);
    if (strstr(p.message, message) == NULL) fail_msg("%s", p.message);
    assert_int_equal(rq_catalog_procedures(w->catalog, &a, &list, &count), RQ_OK);
    for (size_t i = 0; i < count; i++)
        listed += list[i].id == id;
    assert_int_equal(listed, 1);
    rq_arena_clear(&a);
}

static bool is_unfinished(world *w, uint64_t id)
{
    rq_arena a;
    rq_procedure *list;
    size_t count;
    bool ret = false;
    rq_arena_init(&a);
    assert_int_equal(rq_catalog_unfinished_procedures(w->catalog, &a, &list, &count), RQ_OK);
    for (size_t i = 0; i < count; i++) {
        assert_false(list[i].finished);
        ret |= list[i].id == id;
    }
    rq_arena_clear(&a);
    return ret;
}

static void expect_aborted(world *w, uint64_t id)
{
    rq_arena a;
    rq_procedure p;
    rq_arena_init(&a);
    assert_true(is_unfinished(w, id));
    assert_true(rq_catalog_procedure_abort(w->catalog, id, false));
    (void)world_settle(w); /* other procedures are parked, so not all settle */
    assert_true(find(w, &a, id, &p));
    assert_true(p.finished && !p.parked);
    assert_int_equal(p.rc, RQ_E_DO_NOT_RETRY);
    assert_false(is_unfinished(w, id));
    rq_arena_clear(&a);
}

static void an_unknown_kind_is_kept_and_does_not_refuse_the_start(void **state)
{
    (void)state;
    world w;
    world_init(&w, unit_seed(), NULL);
    MUST(world_open(&w));
    MUST(world_create(&w, "t", "f g", NULL));
    MUST(world_create(&w, "u", "f g", NULL));
    MUST(world_put(&w, "t", "a", "f"));
    record r = old_record(99, "t", 4, "");
    add_field(&r, 77, "what nobody knows", 17);
    write_record(&w, 1000, "a.b.LaterProcedure", PB__PROCEDURE_STATE__RUNNABLE, &r);
    write_record(&w, 1001, "a.b.OtherProcedure", PB__PROCEDURE_STATE__SUCCESS, &r);
    for (int round = 0; round < 3; round++) {
        crash_and_open(&w);
        expect_kept(&w, 1000, "a.b.LaterProcedure", "unknown kind 99");
        assert_int_equal(world_get(&w, "t", "a", "f"), RQ_OK);
        assert_int_equal(world_table(&w, RQ_DDL_DISABLE_TABLE, "t"), RQ_E_DO_NOT_RETRY);
        assert_non_null(strstr(w.why.message, "procedure 1000 (a.b.LaterProcedure of t)"));
        MUST(world_table(&w, RQ_DDL_FLUSH_TABLE, "u"));
    }
    expect_aborted(&w, 1000);
    MUST(world_table(&w, RQ_DDL_DISABLE_TABLE, "t"));
    crash_and_open(&w); /* the end record of a procedure whose kind is unknown */
    rq_arena a;
    rq_procedure p;
    rq_arena_init(&a);
    assert_true(find(&w, &a, 1000, &p));
    assert_true(p.finished);
    rq_arena_clear(&a);
    MUST(world_table(&w, RQ_DDL_ENABLE_TABLE, "t"));
    MUST(world_close(&w, true));
    world_clear(&w);
}

static void garbage_costs_its_own_procedure(void **state)
{
    (void)state;
    world w;
    world_init(&w, unit_seed(), NULL);
    MUST(world_open(&w));
    MUST(world_create(&w, "t", "f g", NULL));
    record r[4];
    for (size_t i = 0; i < RQ_ARRAY_LEN(r); i++)
        r[i] = old_record(RQ_DDL_SPLIT_REGION, "t", 4, "0123");
    add_field(&r[0], 6, "no region", 9);
    add_field(&r[1], 9, "12345678", 8); /* a split has no such field */
    r[2].len -= 1;                      /* truncated */
    r[3].bytes[0] = 9;                  /* unknown format version */
    for (size_t i = 0; i < RQ_ARRAY_LEN(r); i++)
        write_record(&w, 1000 + i, SPLIT, PB__PROCEDURE_STATE__RUNNABLE, &r[i]);
    write_bytes(&w, 1010, RQ_SLICE_LIT("no message at all"));
    record none = {.len = 0};
    write_record(&w, 1011, "Empty", PB__PROCEDURE_STATE__RUNNABLE, &none);
    crash_and_open(&w);
    for (size_t i = 0; i < RQ_ARRAY_LEN(r); i++)
        expect_kept(&w, 1000 + i, SPLIT, "");
    expect_kept(&w, 1010, "", "no Procedure message");
    expect_kept(&w, 1011, "Empty", "cut short");
    MUST(world_create(&w, "u", "f g", NULL));
    for (size_t i = 0; i < RQ_ARRAY_LEN(r); i++)
        expect_aborted(&w, 1000 + i);
    expect_aborted(&w, 1010);
    expect_aborted(&w, 1011);
    MUST(world_table(&w, RQ_DDL_DISABLE_TABLE, "t"));
    MUST(world_close(&w, true));
    MUST(world_open(&w));
    MUST(world_close(&w, true));
    world_clear(&w);
}

/* --- answers ---------------------------------------------------------------------------------- */

typedef struct hidden {
    world *w;
    rq_region *store; /* the real store while c->store is NULL */
    unsigned attempts;
    bool answered;
    rq_ddl ddl;
} hidden;

static void hidden_answered(rq_ddl *d)
{
    RQ_CONTAINER_OF(d, hidden, ddl)->answered = true;
}

/* The commit fails twice; after the first failure the record cannot be written either. */
static rq_err hide_store(void *ctx, const rq__proc *p, rq_error *why)
{
    hidden *h = ctx;
    rq_catalog *c = h->w->catalog;
    if (p->step > 0 || h->attempts == 2) return RQ_OK;
    assert_false(h->answered);
    pthread_mutex_lock(&c->store_lock);
    rq_region *store = c->store;
    c->store = h->store;
    h->store = store;
    pthread_mutex_unlock(&c->store_lock);
    h->attempts++;
    return rq_fail(why, RQ_E_IO, "injected");
}

static void an_error_is_no_answer_while_the_change_goes_on(void **state)
{
    (void)state;
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    world_init(w, unit_seed(), NULL);
    OK(world_open(w));
    OK(world_create(w, "t", "f", NULL));
    hidden h = {.w = w,
                .ddl = {.kind = RQ_DDL_DISABLE_TABLE,
                        .ns = RQ_SLICE_LIT("default"),
                        .qualifier = RQ_SLICE_LIT("t"),
                        .submitted = hidden_answered}};
    w->catalog->procedures.before_step = hide_store;
    w->catalog->procedures.before_step_ctx = &h;
    rq_catalog_submit(w->catalog, &h.ddl);
    for (int i = 0; i < 1000 && !h.answered; i++)
        rq_sim_advance(w->sim, 10000000);
    assert_true(h.answered);
    assert_int_equal(h.ddl.rc, RQ_OK);
    /* answered after the second failure, when the record was durable */
    assert_int_equal(h.attempts, 2);
    assert_true(world_settle(w));
    assert_int_equal(world_get(w, "t", "a", "f"), RQ_E_NOT_SERVING_REGION);
    world_clear(w);
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_of_earlier_versions_are_finished),
        cmocka_unit_test(an_unknown_kind_is_kept_and_does_not_refuse_the_start),
        cmocka_unit_test(garbage_costs_its_own_procedure),
        cmocka_unit_test(an_error_is_no_answer_while_the_change_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
