/* SPDX-License-Identifier: Apache-2.0 */
/* Records of procedures: those of earlier versions are read and finished; one that cannot be
 * decoded affects only its own procedure, never a start. */
#include "world.h"

#include <stdlib.h>

#include "base/random.h"
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
    world_end(&w);
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
    world_end(&w);
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
    world_end(&w);
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

/* --- lists of regions -------------------------------------------------------------------------- */

#define REGIONS 300

static rq_slice random_key(rq_random *r, rq_arena *a)
{
    size_t len = rq_random_below(r, 4) == 0 ? 0 : 1 + rq_random_below(r, 200);
    uint8_t *key = rq_arena_alloc(a, len + 1);
    assert_non_null(key);
    for (size_t i = 0; i < len; i++)
        key[i] = i + 3 < len ? 'k' : (uint8_t)rq_random_below(r, 256);
    return rq_slice_of(key, len);
}

/* Most begin where the one before ends, with its id. */
static void random_regions(rq_random *r, rq_arena *a, rq_region_info *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool goes_on = i > 0 && rq_random_below(r, 5) > 0;
        rq_slice start = goes_on ? list[i - 1].end_key : random_key(r, a);
        int64_t id = goes_on ? list[i - 1].region_id : (int64_t)(rq_random_next(r) >> 1);
        assert_int_equal(rq_region_info_make(a, RQ_SLICE_LIT("n"), RQ_SLICE_LIT("t"), start,
                                             random_key(r, a), id, 0, &list[i]),
                         RQ_OK);
        list[i].offline = list[i].split = rq_random_below(r, 5) == 0;
    }
}

static void expect_same(const rq_region_info *a, const rq_region_info *b, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(a[i].encoded, b[i].encoded);
        assert_true(rq_slice_eq(a[i].name, b[i].name));
        assert_true(rq_slice_eq(a[i].end_key, b[i].end_key));
        assert_true(rq_slice_eq(a[i].table, b[i].table));
        assert_int_equal(a[i].offline, b[i].offline);
        assert_int_equal(a[i].split, b[i].split);
    }
}

static rq__proc *drop_of(const rq_region_info *list, size_t count)
{
    rq__proc *p = rq__proc_new(NULL);
    assert_non_null(p);
    p->ops = rq__proc_kind_of(RQ_DDL_DELETE_TABLE);
    p->java_class = p->ops->java_class;
    p->id = 7;
    p->ns = RQ_SLICE_LIT("n");
    p->qualifier = RQ_SLICE_LIT("t");
    p->descriptor = RQ_SLICE_LIT("");
    p->prepared = true;
    p->old_region_count = count;
    p->old_regions = (rq_region_info *)(uintptr_t)list;
    return p;
}

static void lists_of_regions_are_read_as_they_were_written(void **state)
{
    (void)state;
    rq_random r;
    rq_random_seed(&r, unit_seed());
    for (size_t count = 0; count <= REGIONS; count += 1 + rq_random_below(&r, 40)) {
        rq_arena a = {0};
        rq_slice bytes;
        rq_error why = {0};
        rq_region_info list[REGIONS + 1];
        random_regions(&r, &a, list, count);
        rq__proc *wrote = drop_of(list, count), *read = rq__proc_new(NULL);
        assert_non_null(read);
        assert_int_equal(rq__proc_encode(wrote, &a, &bytes), RQ_OK);
        assert_int_equal(rq__proc_decode(bytes, read, &why), RQ_OK);
        assert_int_equal(read->old_region_count, count);
        expect_same(read->old_regions, list, count);
        rq__proc_free(wrote);
        rq__proc_free(read);
        rq_arena_clear(&a);
    }
}

/* 100,000 regions with keys of usual lengths take some ten bytes each. */
static void a_list_of_regions_is_short(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    rq_arena a = {0};
    rq_slice before = {NULL, 0};
    rq_region_info *list = rq_arena_calloc(&a, COUNT, sizeof *list);
    assert_non_null(list);
    for (size_t i = 0; i < COUNT; i++) {
        char *key = rq_arena_printf(&a, "a-prefix-of-thirty-bytes-------%06zu", i);
        assert_non_null(key);
        assert_int_equal(rq_region_info_make(&a, RQ_SLICE_LIT("n"), RQ_SLICE_LIT("t"), before,
                                             rq_slice_cstr(key), 1700000000000, 0, &list[i]),
                         RQ_OK);
        before = list[i].end_key;
    }
    rq_buf b = {0};
    assert_int_equal(rq__regions_encode(&b, list, COUNT), RQ_OK);
    assert_in_range(b.len, COUNT, 16 * COUNT);
    rq_buf_clear(&b);
    rq_arena_clear(&a);
}

/* The fields of a drop's record that come before its regions. */
static void put_head(rq_buf *data)
{
    const uint8_t head[] = {1, RQ_DDL_DELETE_TABLE}, flags = 4;
    assert_int_equal(rq_buf_append(data, head, sizeof head), RQ_OK);
    assert_int_equal(rq__record_put(data, RQ__TAG_NS, RQ_SLICE_LIT("n")), RQ_OK);
    assert_int_equal(rq__record_put(data, RQ__TAG_QUALIFIER, RQ_SLICE_LIT("t")), RQ_OK);
    assert_int_equal(rq__record_put(data, RQ__TAG_FLAGS, rq_slice_of(&flags, 1)), RQ_OK);
}

/* A RegionInfo in each field, as in records of earlier versions. */
static void put_each(rq_buf *data, rq_arena *a, const rq_region_info *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        rq_slice info;
        assert_int_equal(rq_region_info_serialize(&list[i], a, &info), RQ_OK);
        assert_int_equal(rq__record_put(data, RQ__TAG_OLD_REGION, info), RQ_OK);
    }
}

static rq__proc *read_fields(const rq_buf *data, rq_arena *a)
{
    Pb__Procedure m = PB__PROCEDURE__INIT;
    m.class_name = (char *)(uintptr_t) "DeleteTableProcedure";
    m.proc_id = 7;
    m.state = PB__PROCEDURE_STATE__RUNNABLE;
    m.has_state_data = true;
    m.state_data = (ProtobufCBinaryData){data->len, data->ptr};
    size_t len = pb__procedure__get_packed_size(&m);
    uint8_t *bytes = rq_arena_alloc(a, len);
    assert_non_null(bytes);
    pb__procedure__pack(&m, bytes);
    rq__proc *read = rq__proc_new(NULL);
    assert_non_null(read);
    assert_int_equal(rq__proc_decode(rq_slice_of(bytes, len), read, NULL), RQ_OK);
    return read;
}

static void lists_of_earlier_versions_are_read(void **state)
{
    (void)state;
    rq_random r;
    rq_random_seed(&r, unit_seed());
    rq_arena a = {0};
    rq_region_info list[3];
    random_regions(&r, &a, list, RQ_ARRAY_LEN(list));
    rq_buf data = {0};
    put_head(&data);
    put_each(&data, &a, list, RQ_ARRAY_LEN(list));
    rq__proc *read = read_fields(&data, &a);
    assert_int_equal(read->old_region_count, RQ_ARRAY_LEN(list));
    expect_same(read->old_regions, list, RQ_ARRAY_LEN(list));
    rq__proc_free(read);
    rq_buf_clear(&data);
    rq_arena_clear(&a);
}

/* No version writes both, but a damaged record may have both. */
static void fields_with_one_region_may_follow_a_list(void **state)
{
    (void)state;
    rq_random r;
    rq_random_seed(&r, unit_seed());
    for (size_t count = 0; count <= 20; count++) {
        rq_arena a = {0};
        rq_region_info list[20];
        rq_buf data = {0}, packed = {0};
        random_regions(&r, &a, list, RQ_ARRAY_LEN(list));
        put_head(&data);
        assert_int_equal(rq__regions_encode(&packed, list, count), RQ_OK);
        assert_int_equal(rq__record_put(&data, RQ__TAG_OLD_REGIONS, rq_buf_slice(&packed)), RQ_OK);
        put_each(&data, &a, list + count, RQ_ARRAY_LEN(list) - count);
        rq__proc *read = read_fields(&data, &a);
        assert_int_equal(read->old_region_count, RQ_ARRAY_LEN(list));
        expect_same(read->old_regions, list, RQ_ARRAY_LEN(list));
        rq__proc_free(read);
        rq_buf_clear(&packed);
        rq_buf_clear(&data);
        rq_arena_clear(&a);
    }
}

/* Changed and cut lists end in an error or in a list, never beyond their bytes. */
static void malformed_lists_of_regions_are_refused(void **state)
{
    (void)state;
    rq_random r;
    rq_random_seed(&r, unit_seed());
    rq_arena a = {0};
    rq_region_info list[20];
    rq_buf good = {0};
    random_regions(&r, &a, list, RQ_ARRAY_LEN(list));
    assert_int_equal(rq__regions_encode(&good, list, RQ_ARRAY_LEN(list)), RQ_OK);
    for (int i = 0; i < 3000; i++) {
        size_t len = rq_random_below(&r, 4) == 0 ? rq_random_below(&r, good.len) : good.len;
        uint8_t *bytes = malloc(len + 1);
        rq__proc *p = drop_of(NULL, 0);
        assert_non_null(bytes);
        memcpy(bytes, good.ptr, len);
        if (len == good.len)
            bytes[rq_random_below(&r, len)] ^= (uint8_t)(1 + rq_random_below(&r, 255));
        rq_err rc = rq__regions_decode(p, rq_slice_of(bytes, len), &p->old_regions,
                                       &p->old_region_count, NULL);
        assert_true(rc == RQ_E_CORRUPT || (rc == RQ_OK && len == good.len));
        rq__proc_free(p);
        free(bytes);
    }
    rq_buf_clear(&good);
    rq_arena_clear(&a);
}

static void put_varints(rq_buf *b, const uint64_t *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_int_equal(rq_buf_append_varint(b, list[i]), RQ_OK);
}

/* A damaged list of eleven bytes for each region whose keys share 32,767 bytes would take half a gigabyte. */
static void keys_of_a_damaged_list_are_not_made(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    static const uint8_t key[RQ_ROW_LEN_MAX];
    static const uint64_t first[] = {0, 0, 0, 0, 0}; /* flags, id, replica, an empty start key */
    static const uint64_t end[] = {0, sizeof key}, next[] = {0, 0, 0, sizeof key, 0, sizeof key, 0};
    rq_buf b = {0};
    assert_int_equal(rq_buf_append_varint(&b, COUNT), RQ_OK);
    put_varints(&b, first, RQ_ARRAY_LEN(first));
    put_varints(&b, end, RQ_ARRAY_LEN(end));
    assert_int_equal(rq_buf_append(&b, key, sizeof key), RQ_OK);
    for (size_t i = 1; i < COUNT; i++)
        put_varints(&b, next, RQ_ARRAY_LEN(next));
    rq__proc *p = drop_of(NULL, 0);
    rq_error why = {0};
    assert_int_equal(
        rq__regions_decode(p, rq_buf_slice(&b), &p->old_regions, &p->old_region_count, &why),
        RQ_E_CORRUPT);
    assert_true(p->arena.total_bytes < 1 << 20);
    rq__proc_free(p);
    rq_buf_clear(&b);
}

/* What could not be read again is not written. */
static void a_list_with_too_many_regions_is_not_written(void **state)
{
    (void)state;
    rq_buf b = {0};
    rq_region_info *list = calloc(RQ__RECORD_LIST_MAX + 1, sizeof *list);
    assert_non_null(list);
    assert_int_equal(rq__regions_encode(&b, list, RQ__RECORD_LIST_MAX + 1), RQ_E_REQUEST_TOO_BIG);
    assert_int_equal(rq__regions_encode(&b, list, RQ__RECORD_LIST_MAX), RQ_OK);
    rq_buf_reset(&b);
    list[1].start_key.len = RQ__RECORD_KEYS_MAX + 1; /* the bytes are not read */
    assert_int_equal(rq__regions_encode(&b, list, 2), RQ_E_REQUEST_TOO_BIG);
    rq_buf_clear(&b);
    free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_of_earlier_versions_are_finished),
        cmocka_unit_test(an_unknown_kind_is_kept_and_does_not_refuse_the_start),
        cmocka_unit_test(garbage_costs_its_own_procedure),
        cmocka_unit_test(an_error_is_no_answer_while_the_change_goes_on),
        cmocka_unit_test(lists_of_regions_are_read_as_they_were_written),
        cmocka_unit_test(a_list_of_regions_is_short),
        cmocka_unit_test(lists_of_earlier_versions_are_read),
        cmocka_unit_test(fields_with_one_region_may_follow_a_list),
        cmocka_unit_test(malformed_lists_of_regions_are_refused),
        cmocka_unit_test(keys_of_a_damaged_list_are_not_made),
        cmocka_unit_test(a_list_with_too_many_regions_is_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
