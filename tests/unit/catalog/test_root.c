/* SPDX-License-Identifier: Apache-2.0 */
/* Which folders are taken, which are refused, and that a refused one stays as it was. */
#include "world.h"

/* Opening fails with this error, its line says this, and not a byte has changed. */
static void refused(world *w, rq_err error, const char *part)
{
    char *before = rq_sim_tree(w->sim);
    rq_root *root;
    rq_error why = {0};
    assert_string_equal(rq_err_name(rq_root_open(w->env, &root, &why)), rq_err_name(error));
    if (strstr(why.message, part) == NULL) fail_msg("\"%s\" says nothing of %s", why.message, part);
    char *after = rq_sim_tree(w->sim);
    assert_string_equal(before, after);
    free(before);
    free(after);
}

static void put_file(world *w, const char *path, const char *text)
{
    rq_error why = {0};
    const char *slash = strrchr(path, '/');
    if (slash != NULL) {
        char *dir = strndup(path, (size_t)(slash - path));
        assert_int_equal(rq_vfs_mkdirs(w->env->vfs, dir, &why), RQ_OK);
        free(dir);
    }
    (void)!rq_vfs_remove(w->env->vfs, path, NULL);
    assert_int_equal(rq_vfs_write_new_file(w->env->vfs, path, rq_slice_cstr(text), &why), RQ_OK);
}

static world *with_a_table(void)
{
    world *w = calloc(1, sizeof *w);
    world_init(w, unit_seed(), NULL);
    assert_int_equal(world_open(w), RQ_OK);
    assert_int_equal(world_create(w, "t", "f", NULL), RQ_OK);
    assert_int_equal(world_close(w, true), RQ_OK);
    return w;
}

static void end(world *w)
{
    world_clear(w);
    free(w);
}

static world *empty(void)
{
    world *w = calloc(1, sizeof *w);
    world_init(w, unit_seed(), NULL);
    return w;
}

static void a_running_server_keeps_others_out(void **state)
{
    (void)state;
    world *w = with_a_table();
    assert_int_equal(world_open(w), RQ_OK);
    refused(w, RQ_E_LOCKED, ".rorqual/lock");
    end(w);
}

static void a_newer_folder_is_refused(void **state)
{
    (void)state;
    world *w = with_a_table();
    put_file(w, ".rorqual/version", "2\n");
    refused(w, RQ_E_VERSION, "newer version");
    put_file(w, ".rorqual/version", "two");
    refused(w, RQ_E_CORRUPT, ".rorqual/version");
    end(w);
}

static void a_folder_of_another_hbase_version_is_refused(void **state)
{
    (void)state;
    world *w = with_a_table();
    put_file(w, "hbase.version", "PBUF\n\00217"); /* field 1, two bytes: "17" */
    refused(w, RQ_E_VERSION, "17");
    put_file(w, "hbase.version", "PBUF\xff");
    refused(w, RQ_E_CORRUPT, "hbase.version");
    put_file(w, "hbase.version", "7");
    refused(w, RQ_E_CORRUPT, "hbase.version");
    end(w);
}

static void a_folder_of_hbase_is_refused(void **state)
{
    (void)state;
    world *w = empty();
    put_file(w, "hbase.version", "PBUF\n\0018");
    put_file(w, "data/default/t/.tabledesc/.tableinfo.0000000001.5", "hello");
    refused(w, RQ_E_UNSUPPORTED, "Apache HBase");
    end(w);
}

static void a_folder_with_something_else_in_it_is_refused(void **state)
{
    (void)state;
    world *w = empty();
    put_file(w, "data/photo.jpg", "x");
    refused(w, RQ_E_UNSUPPORTED, "data");
    end(w);
}

static void logs_of_an_hbase_that_ran_in_between_are_not_passed_over(void **state)
{
    (void)state;
    static const char *const files[] = {"WALs/h,1,2/h%2C1%2C2.3", "MasterData/WALs/h,1,2/x"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(files); i++) {
        world *w = with_a_table();
        put_file(w, files[i], "edits");
        refused(w, RQ_E_STATE, "Apache HBase");
        end(w);
    }
    world *w = with_a_table(); /* empty folders are what a clean stop leaves */
    assert_int_equal(rq_vfs_mkdirs(w->env->vfs, "WALs/h,1,2-splitting", NULL), RQ_OK);
    assert_int_equal(world_open(w), RQ_OK);
    end(w);
}

/* A folder without the version file is only laid out anew when nothing can be lost by it. */
static void a_lost_version_file_does_not_cost_a_table(void **state)
{
    (void)state;
    world *w = with_a_table();
    assert_int_equal(rq_vfs_remove(w->env->vfs, ".rorqual/version", NULL), RQ_OK);
    refused(w, RQ_E_CORRUPT, "data/default/t");
    put_file(w, ".rorqual/version", "1\n");
    assert_int_equal(world_open(w), RQ_OK);
    assert_int_equal(world_namespace(w, RQ_DDL_CREATE_NAMESPACE, "n", NULL), RQ_OK);
    assert_int_equal(world_table(w, RQ_DDL_DISABLE_TABLE, "t"), RQ_OK);
    assert_int_equal(world_table(w, RQ_DDL_DELETE_TABLE, "t"), RQ_OK);
    assert_int_equal(world_close(w, true), RQ_OK);
    assert_int_equal(rq_vfs_remove(w->env->vfs, ".rorqual/version", NULL), RQ_OK);
    refused(w, RQ_E_CORRUPT, "data/n");
    end(w);
}

static void the_cluster_keeps_its_id(void **state)
{
    (void)state;
    world *w = with_a_table();
    assert_int_equal(world_open(w), RQ_OK);
    char id[64];
    snprintf(id, sizeof id, "%s", rq_root_cluster_id(w->root));
    assert_int_equal(strlen(id), 36);
    assert_int_equal(id[14], '4'); /* a random UUID */
    assert_int_equal(world_close(w, true), RQ_OK);
    assert_int_equal(world_open(w), RQ_OK);
    assert_string_equal(id, rq_root_cluster_id(w->root));
    end(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_running_server_keeps_others_out),
        cmocka_unit_test(a_newer_folder_is_refused),
        cmocka_unit_test(a_folder_of_another_hbase_version_is_refused),
        cmocka_unit_test(a_folder_of_hbase_is_refused),
        cmocka_unit_test(a_folder_with_something_else_in_it_is_refused),
        cmocka_unit_test(logs_of_an_hbase_that_ran_in_between_are_not_passed_over),
        cmocka_unit_test(a_lost_version_file_does_not_cost_a_table),
        cmocka_unit_test(the_cluster_keeps_its_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
