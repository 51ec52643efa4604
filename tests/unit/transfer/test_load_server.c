/* SPDX-License-Identifier: Apache-2.0 */
/* A bulk load of a folder while regions of the table open and close, and with a server that answers
 * incorrectly; the ranges of a table whose regions have gaps or overlap. All are simulated by replacing the client's functions (the program is linked with
 * --wrap). */
#include "unit.h"

#include "base/clock.h"
#include "base/pb.h"
#include "transfer/hfiles.h"
#include "transfer/load_hfiles.h"
#include "transfer/ranges.h"

#include <sys/stat.h>
#include <unistd.h>

enum { REGIONS_MAX = 4, READS_MAX = 3 };

/* The result of a read of the table's regions. */
typedef struct map {
    size_t count;
    rq_client_region regions[REGIONS_MAX];
} map;

static struct {
    map maps[READS_MAX]; /* results of successive reads; the last one is repeated */
    size_t reads, loaded, calls;
    const char *answer; /* response to BulkLoadHFile, instead of the correct one */
    size_t answer_len;
    size_t fails_at; /* this call fails permanently; 0: none */
} server;

static const map *now(void)
{
    return &server.maps[server.reads < READS_MAX ? server.reads : READS_MAX - 1];
}

size_t __wrap_rq_client_table_regions(const rq_client_table *t);
rq_client_region __wrap_rq_client_table_region(const rq_client_table *t, size_t i);
rq_err __wrap_rq_client_table_read(rq_client_table *t, rq_error *why);
const char *__wrap_rq_client_cluster_id(const rq_client *c);
int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *want,
                           struct timespec *left);
rq_err __wrap_rq_client_call_region(rq_client_table *t, size_t i, const char *method,
                                    rq_slice message, rq_buf *ret, rq_client_failure *ret_failure);

size_t __wrap_rq_client_table_regions(const rq_client_table *t)
{
    (void)t;
    return now()->count;
}

rq_client_region __wrap_rq_client_table_region(const rq_client_table *t, size_t i)
{
    (void)t;
    assert_true(i < now()->count);
    return now()->regions[i];
}

rq_err __wrap_rq_client_table_read(rq_client_table *t, rq_error *why)
{
    (void)t;
    (void)why;
    server.reads++;
    return RQ_OK;
}

const char *__wrap_rq_client_cluster_id(const rq_client *c)
{
    (void)c;
    return "c";
}

/* The pauses between the load's rounds take no time here; the rounds and their number are
 * unchanged. */
int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *want,
                           struct timespec *left)
{
    (void)clock;
    (void)flags;
    (void)want;
    (void)left;
    return 0;
}

/* Moves the files of a BulkLoadHFileRequest { family_path 2 { family 1, path 2 } } into the store. */
static void load_files(rq_slice message)
{
    rq_cursor c = rq_cursor_of(message);
    rq_pb_field f, part;
    char path[256];
    while (rq_pb_next(&c, &f) == RQ_OK) {
        if (f.number != 2) continue;
        rq_cursor parts = rq_cursor_of(f.bytes);
        while (rq_pb_next(&parts, &part) == RQ_OK)
            if (part.number == 2)
                snprintf(path, sizeof path, "%.*s", (int)part.bytes.len - 5,
                         (const char *)part.bytes.ptr + 5);
        assert_int_equal(unlink(path), 0);
        server.loaded++;
    }
}

rq_err __wrap_rq_client_call_region(rq_client_table *t, size_t i, const char *method,
                                    rq_slice message, rq_buf *ret, rq_client_failure *ret_failure)
{
    (void)t;
    (void)method;
    assert_true(i < now()->count);
    *ret_failure = (rq_client_failure){.retry = false, .text = "refused"};
    rq_buf_reset(ret);
    server.calls++;
    if (server.calls == server.fails_at) return RQ_E_PERMISSION;
    if (server.answer != NULL) return rq_buf_append(ret, server.answer, server.answer_len);
    load_files(message);
    return rq_buf_append(ret, "\x08\x01", 2);
}

/* --- a folder --------------------------------------------------------------------------------- */

typedef struct world {
    char folder[32];
    rq_vfs *v;
    rq_table_schema *schema;
    rq__link link;
} world;

static void put_family(rq_buf *b, const char *family)
{
    size_t at;
    assert_int_equal(rq_pb_begin(b, 3, &at), RQ_OK);
    assert_int_equal(rq_pb_put_bytes(b, 1, rq_slice_cstr(family)), RQ_OK);
    assert_int_equal(rq_pb_end(b, at), RQ_OK);
}

static world begin(void)
{
    world w = {.folder = "/tmp/rorqual-load-XXXXXX", .link = {.name = "t"}};
    rq_buf b = {0};
    size_t at;
    assert_int_equal(rq_pb_begin(&b, 1, &at), RQ_OK);
    assert_int_equal(rq_pb_put_bytes(&b, 1, RQ_SLICE_LIT("default")), RQ_OK);
    assert_int_equal(rq_pb_put_bytes(&b, 2, RQ_SLICE_LIT("t")), RQ_OK);
    assert_int_equal(rq_pb_end(&b, at), RQ_OK);
    put_family(&b, "f");
    put_family(&b, "_g");
    assert_int_equal(rq_table_schema_parse(rq_buf_slice(&b), &w.schema, NULL), RQ_OK);
    rq_buf_clear(&b);
    assert_non_null(mkdtemp(w.folder));
    assert_int_equal(rq_vfs_posix_new(w.folder, &w.v, NULL), RQ_OK);
    memset(&server, 0, sizeof server);
    return w;
}

static void end(world *w)
{
    assert_int_equal(rq__load_end(w->v, NULL), RQ_OK);
    assert_int_equal(rq_vfs_remove_tree(w->v, "f", NULL), RQ_OK);
    assert_int_equal(rq_vfs_remove_tree(w->v, "_g", NULL), RQ_OK);
    assert_int_equal(rmdir(w->folder), 0);
    rq_vfs_free(w->v);
    rq_table_schema_unref(w->schema);
}

/* A region for every letter of `starts` ("." is the table's start), up to the next one; regions
 * named in `gone` are not open. */
static map regions(const char *starts, const char *gone)
{
    map m = {.count = 0};
    for (const char *s = starts; *s != '\0'; s++) {
        if (strchr(gone, *s) != NULL) continue;
        m.regions[m.count++] = (rq_client_region){.name = rq_slice_of(s, 1),
                                                  .start = rq_slice_of(s, *s != '.'),
                                                  .end = rq_slice_of(s + 1, s[1] != '\0')};
    }
    return m;
}

/* Writes a file with a cell for every letter of `rows`. */
static void write_hfile(world *w, const char *family, const char *name, const char *rows)
{
    rq_hfile_writer *out;
    char path[64];
    const rq_family_schema *f = rq_table_schema_family(w->schema, rq_slice_cstr(family));
    assert_int_equal(rq_vfs_mkdirs(w->v, family, NULL), RQ_OK);
    snprintf(path, sizeof path, "%s/%s", family, name);
    assert_int_equal(rq__hfile_begin_at(w->v, path, f, &out, NULL), RQ_OK);
    for (; *rows != '\0'; rows++) {
        const rq_cell c = {.row = (const uint8_t *)rows,
                           .row_len = 1,
                           .family = (const uint8_t *)family,
                           .family_len = (uint8_t)strlen(family),
                           .timestamp = 5,
                           .type = RQ_TYPE_PUT};
        assert_int_equal(rq_hfile_writer_append(out, &c, NULL), RQ_OK);
    }
    assert_int_equal(rq_hfile_writer_finish(out, NULL, NULL), RQ_OK);
    rq_hfile_writer_close(out);
}

static rq_err run(world *w, rq_error *why)
{
    rq__load l = {
        .link = &w->link, .schema = w->schema, .vfs = w->v, .path = w->folder, .token = "token"};
    *why = (rq_error){.code = RQ_OK};
    return rq__load_run(&l, why);
}

/* --- regions that open and close -------------------------------------------------------------- */

static void a_file_waits_for_a_region_that_is_not_open(void **state)
{
    rq_error why;
    world w = begin();
    (void)state;
    write_hfile(&w, "f", "one", "abcz");
    write_hfile(&w, "f", "two", "c");
    server.maps[0] = regions(".bm", "b");
    server.maps[1] = server.maps[2] = regions(".bm", "");
    if (run(&w, &why) != RQ_OK) fail_msg("%s", why.message);
    assert_int_equal(server.loaded, 4); /* three pieces of the one file, and the other file */
    end(&w);
}

static void a_table_without_regions_is_an_error(void **state)
{
    rq_error why;
    world w = begin();
    (void)state;
    write_hfile(&w, "f", "one", "abc");
    if (run(&w, &why) == RQ_OK) fail_msg("loaded");
    assert_int_equal(why.code, RQ_E_NOT_SERVING_REGION);
    assert_non_null(strstr(why.message, "f/one"));
    assert_int_equal(server.calls, 0);
    rq__link *link = &w.link;
    assert_int_equal(rq__load_cleanup(link, "token", &why), RQ_E_NOT_SERVING_REGION);
    end(&w);
}

/* --- incorrect responses ---------------------------------------------------------------------- */

static void an_answer_that_says_nothing_is_an_error(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
    } bad[] = {{"", 0}, {"\x10\x01", 2}, {"\x08\x01\x08", 3}, {"\x0a\x01\x01", 3}};
    rq_error why;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        world w = begin();
        write_hfile(&w, "f", "one", "a");
        for (int k = 0; k < READS_MAX; k++)
            server.maps[k] = regions(".", "");
        server.answer = bad[i].bytes;
        server.answer_len = bad[i].len;
        assert_int_equal(run(&w, &why), RQ_E_MALFORMED);
        assert_int_equal(server.calls, 1);
        end(&w);
    }
}

/* --- a folder that has changed ---------------------------------------------------------------- */

/* The first call loads f/one, the second fails; then the folder gets another f/one. */
static void a_new_file_with_the_name_of_a_loaded_one_is_not_passed_over(void **state)
{
    rq_error why;
    world w = begin();
    (void)state;
    for (int k = 0; k < READS_MAX; k++)
        server.maps[k] = regions(".m", "");
    write_hfile(&w, "f", "one", "a");
    write_hfile(&w, "f", "two", "n");
    server.fails_at = 2;
    assert_int_equal(run(&w, &why), RQ_E_PERMISSION);
    assert_int_equal(server.loaded, 1);
    write_hfile(&w, "f", "one", "ab");
    assert_int_equal(run(&w, &why), RQ_E_CONFLICT);
    assert_non_null(strstr(why.message, "f/one has changed"));
    assert_int_equal(rq_vfs_remove(w.v, "f/one", NULL), RQ_OK);
    assert_int_equal(run(&w, &why), RQ_OK);
    assert_int_equal(server.loaded, 2);
    end(&w);
}

static void a_family_that_begins_with_an_underscore_is_loaded(void **state)
{
    rq_error why;
    world w = begin();
    (void)state;
    for (int k = 0; k < READS_MAX; k++)
        server.maps[k] = regions(".", "");
    write_hfile(&w, "f", "one", "a");
    write_hfile(&w, "_g", "one", "a");
    assert_int_equal(rq_vfs_mkdirs(w.v, "_logs", NULL), RQ_OK); /* left by a Hadoop job */
    assert_int_equal(run(&w, &why), RQ_OK);
    assert_int_equal(server.loaded, 2);
    assert_int_equal(rq_vfs_remove_tree(w.v, "_logs", NULL), RQ_OK);
    end(&w);
}

/* --- ranges ----------------------------------------------------------------------------------- */

/* The ranges of regions "START-END …", as a text of the same form. */
static void expect_ranges(const char *regions, const char *expected)
{
    char text[64], found[64] = "";
    rq_arena a = {0};
    rq__range *list;
    size_t count;
    memset(&server, 0, sizeof server);
    map *m = &server.maps[0];
    snprintf(text, sizeof text, "%s", regions);
    for (char *rest = text, *word; (word = strsep(&rest, " ")) != NULL;) {
        rq_slice start = rq_slice_cstr(strsep(&word, "-")), end = rq_slice_cstr(word);
        m->regions[m->count++] = (rq_client_region){.start = start, .end = end};
    }
    assert_int_equal(rq__ranges_of(NULL, (rq_slice){0}, (rq_slice){0}, &a, &list, &count), RQ_OK);
    for (size_t i = 0; i < count; i++)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%.*s-%.*s",
                 i == 0 ? "" : " ", (int)list[i].start.len, (const char *)list[i].start.ptr,
                 (int)list[i].stop.len, (const char *)list[i].stop.ptr);
    assert_string_equal(found, expected);
    rq_arena_clear(&a);
}

static void each_row_is_in_one_range(void **state)
{
    (void)state;
    expect_ranges("-", "-");
    expect_ranges("-d d-m m-", "-d d-m m-");
    /* Regions without a server are not in the map. */
    expect_ranges("d-m m-", "-m m-");
    expect_ranges("-d m-", "-m m-");
    expect_ranges("-d d-m", "-d d-");
    /* A parent of a split, or what was merged, was read before the change, and the rest of the map after it. */
    expect_ranges("-m -d d-m m-", "-d d-m m-");
    expect_ranges("-d -m d-m m-", "-d d-m m-");
    expect_ranges("d-m d-g g-m m-", "-g g-m m-");
    expect_ranges("-d d- d-m m-", "-d d-m m-");
    expect_ranges("-m d-m m-", "-d d-m m-");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_family_that_begins_with_an_underscore_is_loaded),
        cmocka_unit_test(an_answer_that_says_nothing_is_an_error),
        cmocka_unit_test(a_new_file_with_the_name_of_a_loaded_one_is_not_passed_over),
        cmocka_unit_test(a_table_without_regions_is_an_error),
        cmocka_unit_test(a_file_waits_for_a_region_that_is_not_open),
        cmocka_unit_test(each_row_is_in_one_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
