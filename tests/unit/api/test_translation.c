/* SPDX-License-Identifier: Apache-2.0 */
/* Options of requests as both back ends pass them on: in HBase's messages, and in the engine's scan
 * requests. */
#include "../base/unit.h"

#include "client.pb-c.h"

#include "embed/embed_priv.h"

static const rq_named items[] = {{RQ_SLICE_LIT("id"), RQ_SLICE_LIT("the id")},
                                 {RQ_SLICE_LIT("hbase.mob.scan.raw"), RQ_SLICE_LIT("\1")}};
static const rq_reading reading = {.max_versions = 1,
                                   .max_timestamp = INT64_MAX,
                                   .family_limit = -1,
                                   .reads_uncommitted = true,
                                   .attributes = {items, 2}};

/* Not declared by including remote/remote_priv.h, because names of the client in that header are
 * also the engine's. */
rq_err rq__encode_get(rq_buf *out, const rq_reading *r);
rq_err rq__encode_scan(rq_buf *out, const rq_scanning *s);
rq_err rq__encode_change(rq_buf *out, const rq_changing *c);

static void has(Pb__NameBytesPair *const *list, size_t count, const char *name, const char *value)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(list[i]->name, name) != 0) continue;
        assert_int_equal(list[i]->value.len, strlen(value));
        assert_memory_equal(list[i]->value.data, value, strlen(value));
        return;
    }
    fail_msg("no attribute %s among %zu", name, count);
}

static void a_get_has_its_attributes(void **state)
{
    (void)state;
    rq_buf out = {0};
    assert_int_equal(rq_buf_append(&out, "\x0a\1r", 3), RQ_OK); /* the row */
    assert_int_equal(rq__encode_get(&out, &reading), RQ_OK);
    Pb__Get *get = pb__get__unpack(NULL, out.len, out.ptr);
    assert_non_null(get);
    assert_int_equal(get->n_attribute, 3);
    has(get->attribute, get->n_attribute, "_isolationlevel_", "\1");
    has(get->attribute, get->n_attribute, "id", "the id");
    pb__get__free_unpacked(get, NULL);
    rq_buf_clear(&out);
}

static void a_scan_has_its_attributes(void **state)
{
    (void)state;
    rq_buf out = {0};
    rq_scanning scanning = {.read = reading, .read_type = RQ_READ_PREAD, .raw = true};
    assert_int_equal(rq__encode_scan(&out, &scanning), RQ_OK);
    Pb__Scan *scan = pb__scan__unpack(NULL, out.len, out.ptr);
    assert_non_null(scan);
    assert_int_equal(scan->n_attribute, 4);
    has(scan->attribute, scan->n_attribute, "_isolationlevel_", "\1");
    has(scan->attribute, scan->n_attribute, "_raw_", "\xff");
    has(scan->attribute, scan->n_attribute, "id", "the id");
    assert_int_equal(scan->readtype, PB__SCAN__READ_TYPE__PREAD);
    pb__scan__free_unpacked(scan, NULL);
    rq_buf_clear(&out);
}

static void a_change_has_its_attributes(void **state)
{
    (void)state;
    rq_buf out = {0};
    rq_changing change = {.kind = RQ_PUT,
                          .cell_count = 1,
                          .ttl_ms = 1,
                          .max_timestamp = INT64_MAX,
                          .attributes = {items, 1}};
    assert_int_equal(rq__encode_change(&out, &change), RQ_OK);
    Pb__MutationProto *m = pb__mutation_proto__unpack(NULL, out.len, out.ptr);
    assert_non_null(m);
    assert_int_equal(m->n_attribute, 2);
    has(m->attribute, m->n_attribute, "id", "the id");
    pb__mutation_proto__free_unpacked(m, NULL);
    rq_buf_clear(&out);
}

static void the_engine_gets_them(void **state)
{
    (void)state;
    rq_arena arena = {0};
    rq_scan scan = {0};
    rq_error why = {0};
    rq_reading other = reading;
    assert_int_equal(rq__reading_to_scan(&reading, NULL, &arena, &scan, &why), RQ_OK);
    assert_true(scan.read_uncommitted && scan.mob_raw);
    assert_false(scan.mob_refs_only || scan.mob_empty_on_miss);
    other.reads_uncommitted = false;
    other.attributes.count = 1;
    scan = (rq_scan){0};
    assert_int_equal(rq__reading_to_scan(&other, NULL, &arena, &scan, &why), RQ_OK);
    assert_false(scan.read_uncommitted || scan.mob_raw);
    rq_arena_clear(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_get_has_its_attributes),
        cmocka_unit_test(a_scan_has_its_attributes),
        cmocka_unit_test(a_change_has_its_attributes),
        cmocka_unit_test(the_engine_gets_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
