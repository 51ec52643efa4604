/* SPDX-License-Identifier: Apache-2.0 */
/* A bulk load that was killed and is continued, while the server may still execute its last call.
 * The server is simulated at the client's renames (the program is linked with --wrap=rename):
 * before or after the n-th rename the server links the file, removes the link, or ends the load. */
#include "unit.h"

#include "base/pb.h"
#include "transfer/hfiles.h"
#include "transfer/load_files.h"

#include <unistd.h>

/* The server's action at a rename. */
typedef enum deed { NOTHING, LINKS_BEFORE, UNLINKS_AFTER, LOADS_AFTER } deed;

static const deed *deeds; /* actions at the next renames, ended by NOTHING */
static unsigned renames;

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);

int __wrap_rename(const char *from, const char *to)
{
    deed d = deeds == NULL ? NOTHING : *deeds++;
    if (d == NOTHING) deeds = NULL;
    renames++;
    if (d == LINKS_BEFORE) assert_int_equal(link(from, "_store"), 0);
    int rc = __real_rename(from, to);
    if (d == UNLINKS_AFTER || d == LOADS_AFTER) assert_int_equal(unlink("_store"), 0);
    if (d == LOADS_AFTER) assert_int_equal(unlink(to), 0);
    return rc;
}

static rq_table_schema *schema_of_family(const char *family)
{
    rq_buf b = {0};
    size_t at;
    rq_table_schema *ret = NULL;
    assert_int_equal(rq_pb_begin(&b, 1, &at), RQ_OK);
    assert_int_equal(rq_pb_put_bytes(&b, 1, RQ_SLICE_LIT("default")), RQ_OK);
    assert_int_equal(rq_pb_put_bytes(&b, 2, RQ_SLICE_LIT("t")), RQ_OK);
    assert_int_equal(rq_pb_end(&b, at), RQ_OK);
    assert_int_equal(rq_pb_begin(&b, 3, &at), RQ_OK);
    assert_int_equal(rq_pb_put_bytes(&b, 1, rq_slice_cstr(family)), RQ_OK);
    assert_int_equal(rq_pb_end(&b, at), RQ_OK);
    assert_int_equal(rq_table_schema_parse(rq_buf_slice(&b), &ret, NULL), RQ_OK);
    rq_buf_clear(&b);
    return ret;
}

static void write_hfile(rq_vfs *v, const char *path, const rq_table_schema *s)
{
    rq_hfile_writer *w;
    rq_cell c = {.row = (const uint8_t *)"r",
                 .row_len = 1,
                 .family = (const uint8_t *)"f",
                 .family_len = 1,
                 .timestamp = 5,
                 .type = RQ_TYPE_PUT};
    const rq_family_schema *f = rq_table_schema_family(s, RQ_SLICE_LIT("f"));
    assert_int_equal(rq_vfs_mkdirs(v, "f", NULL), RQ_OK);
    assert_int_equal(rq__hfile_begin_at(v, path, f, &w, NULL), RQ_OK);
    assert_int_equal(rq_hfile_writer_append(w, &c, NULL), RQ_OK);
    assert_int_equal(rq_hfile_writer_finish(w, NULL, NULL), RQ_OK);
    rq_hfile_writer_close(w);
}

/* Returns how many files are left to load if an earlier run has called f/one and the server does
 * `what`. */
static size_t files_left(const deed *what)
{
    char folder[] = "/tmp/rorqual-load-XXXXXX";
    rq_vfs *v;
    rq__link link = {.name = "t"};
    rq_error why = {.code = RQ_OK};
    const char *called = "f/one";
    const rq__journal_line line = {.path = called, .state = RQ__LOAD_CALLED};
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(rq_vfs_posix_new(folder, &v, NULL), RQ_OK);
    rq_table_schema *schema = schema_of_family("f");
    write_hfile(v, called, schema);
    rq__load l = {.link = &link, .schema = schema, .vfs = v, .path = folder};
    rq__load_job j = {.l = &l};
    assert_int_equal(rq__journal_open(v, "t", &j.journal, NULL), RQ_OK);
    assert_int_equal(rq__journal_note(&j.journal, &line, 1, NULL), RQ_OK);
    rq__journal_close(&j.journal);
    assert_int_equal(rq__journal_open(v, "t", &j.journal, NULL), RQ_OK);
    deeds = what;
    renames = 0;
    if (rq__load_list_files(&j, &why) != RQ_OK) fail_msg("%s", why.message);
    deeds = NULL;
    size_t left = j.count;
    for (size_t i = 0; i < left; i++)
        assert_string_not_equal(j.files[i].path, called);
    rq__journal_close(&j.journal);
    free(j.files);
    rq_arena_clear(&j.arena);
    rq_table_schema_unref(schema);
    assert_int_equal(rq_vfs_remove_tree(v, "f", NULL), RQ_OK);
    assert_int_equal(rq__journal_remove(v, NULL), RQ_OK);
    rq_vfs_free(v);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(rmdir(folder), 0);
    return left;
}

static void a_call_that_never_began_is_made_under_another_name(void **state)
{
    static const deed what[] = {NOTHING};
    (void)state;
    assert_int_equal(files_left(what), 1);
    assert_int_equal(renames, 1);
}

/* Between its link and the client's rename the server may have checked the file's name. */
static void a_call_that_linked_the_file_before_the_rename_is_waited_for(void **state)
{
    static const deed what[] = {LINKS_BEFORE, LOADS_AFTER, NOTHING};
    (void)state;
    assert_int_equal(files_left(what), 0);
    assert_int_equal(renames, 2);
}

static void a_call_that_failed_at_the_rename_is_made_under_another_name(void **state)
{
    static const deed what[] = {LINKS_BEFORE, UNLINKS_AFTER, NOTHING};
    (void)state;
    assert_int_equal(files_left(what), 1);
    assert_int_equal(renames, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_never_began_is_made_under_another_name),
        cmocka_unit_test(a_call_that_linked_the_file_before_the_rename_is_waited_for),
        cmocka_unit_test(a_call_that_failed_at_the_rename_is_made_under_another_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
