/* SPDX-License-Identifier: Apache-2.0 */
/* The folders from which a bulk load may take files, and refused paths (vfs/intake.h). */
#include "../base/unit.h"

#include "vfs/intake.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

/* ROOT/data is the data folder, ROOT/in a listed one, ROOT/link a link to it; ROOT/in/deep is
 * listed, too; ROOT/absent is listed but does not exist. */
typedef struct world {
    char root[PATH_MAX];
    char data[PATH_MAX + 8];
    rq_vfs *top, *own;
    rq_intake *intake;
    rq_arena arena;
    rq_intake_visit visit;
} world;

static rq_err make_intake(world *w, const char *list, rq_intake **ret, rq_error *why)
{
    char text[PATH_MAX * 4];
    size_t n = 0;
    for (const char *p = list; *p != '\0'; p++) { /* '@' stands for the root */
        char one[] = {*p, '\0'};
        n += (size_t)snprintf(text + n, sizeof text - n, "%s", *p == '@' ? w->root : one);
    }
    text[n] = '\0';
    return rq_intake_new(text, w->own, w->data, ret, why);
}

static int make_world(void **state)
{
    world *w = calloc(1, sizeof *w);
    char made[] = "/tmp/rorqual-intake-XXXXXX";
    char at[PATH_MAX + 16];
    if (w == NULL || mkdtemp(made) == NULL || realpath(made, w->root) == NULL) return -1;
    snprintf(w->data, sizeof w->data, "%s/data", w->root);
    if (rq_vfs_posix_new(w->root, &w->top, NULL) != RQ_OK) return -1;
    static const char *const folders[] = {"data/staging", "in/deep", "in/other/.rorqual"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(folders); i++)
        if (rq_vfs_mkdirs(w->top, folders[i], NULL) != RQ_OK) return -1;
    snprintf(at, sizeof at, "%s/link", w->root);
    if (symlink("in", at) != 0) return -1;
    if (rq_vfs_posix_new(w->data, &w->own, NULL) != RQ_OK) return -1;
    *state = w;
    if (make_intake(w, " @//in/ ,@/link,\n@/in/deep,,@/absent", &w->intake, NULL) != RQ_OK)
        return -1;
    return rq_intake_begin(w->intake, &w->arena, &w->visit) == RQ_OK ? 0 : -1;
}

static int clear_world(void **state)
{
    world *w = *state;
    static const char *const names[] = {"data", "in", "link"};
    rq_intake_end(&w->visit);
    rq_intake_free(w->intake);
    rq_arena_clear(&w->arena);
    for (size_t i = 0; i < RQ_ARRAY_LEN(names); i++)
        if (rq_vfs_remove_tree(w->top, names[i], NULL) != RQ_OK) return -1;
    rq_vfs_free(w->own);
    rq_vfs_free(w->top);
    int rc = rmdir(w->root);
    free(w);
    return rc;
}

static const char *path_of(world *w, const char *rest)
{
    return rq_arena_printf(&w->arena, "%s/%s", w->root, rest);
}

static void expect(world *w, const char *path, const char *inside)
{
    rq_vfs *vfs = NULL;
    const char *found = NULL;
    rq_error why = {0};
    rq_err rc = rq_intake_find(&w->visit, path, &vfs, &found, &why);
    if (rc != RQ_OK) fail_msg("%s: %s", path, why.message);
    assert_string_equal(found, inside);
    assert_non_null(vfs);
}

static void refuse(world *w, const char *path)
{
    rq_vfs *vfs;
    const char *found;
    rq_error why = {0};
    rq_err rc = rq_intake_find(&w->visit, path, &vfs, &found, &why);
    if (rc != RQ_E_DO_NOT_RETRY) fail_msg("%s: %s", path, rq_err_name(rc));
    assert_non_null(strstr(why.message, "rorqual.bulkload.folders"));
}

static void a_listed_folder_is_found_by_its_names(void **state)
{
    world *w = *state;
    expect(w, path_of(w, "in/f"), "f");
    expect(w, path_of(w, "./in///a/./f/"), "a/f");
    expect(w, path_of(w, "link/a/f"), "a/f");
    expect(w, path_of(w, "in/deep/f"), "f"); /* relative to the innermost listed folder */
    expect(w, path_of(w, "in/deeper/f"), "deeper/f");
}

static void the_staging_folder_is_the_data_folders(void **state)
{
    world *w = *state;
    expect(w, path_of(w, "data/staging/x/f"), "staging/x/f");
    refuse(w, path_of(w, "data/staging"));
    refuse(w, path_of(w, "data/staging/../data/f"));
    refuse(w, path_of(w, "data/stagingx/f"));
    refuse(w, path_of(w, "data/data/f"));
    refuse(w, path_of(w, "data"));
}

static void nothing_else_is_found(void **state)
{
    world *w = *state;
    static const char *const bad[] = {"",      "in",      "inx/f",      "in/../in/f",
                                      "in/..", "other/f", "in/other/f", "in/other/a/f"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(bad); i++)
        refuse(w, path_of(w, bad[i]));
    refuse(w, "/etc/passwd");
    refuse(w, "/");
    refuse(w, "");
    refuse(w, "in/f");
    rq_vfs *vfs;
    const char *found;
    assert_int_equal(rq_intake_find(&w->visit, path_of(w, "absent/f"), &vfs, &found, NULL),
                     RQ_E_NOT_FOUND);
}

static void the_whole_machine_may_be_listed(void **state)
{
    world *w = *state;
    rq_intake *all;
    rq_intake_visit visit;
    rq_vfs *vfs;
    const char *found;
    assert_int_equal(make_intake(w, "/", &all, NULL), RQ_OK);
    assert_int_equal(rq_intake_begin(all, &w->arena, &visit), RQ_OK);
    const char *path = path_of(w, "in/f");
    assert_int_equal(rq_intake_find(&visit, path, &vfs, &found, NULL), RQ_OK);
    assert_string_equal(found, path + 1);
    const char *own = path_of(w, "data/data/f");
    assert_int_equal(rq_intake_find(&visit, own, &vfs, &found, NULL), RQ_E_DO_NOT_RETRY);
    rq_intake_end(&visit);
    rq_intake_free(all);
}

/* The folders of replicated loads may be data folders, but not the server's own. */
static void no_link_leads_into_the_own_data_folder(void **state)
{
    world *w = *state;
    rq_intake *replicated;
    rq_intake_visit visit;
    rq_vfs *vfs;
    const char *found;
    const char *link = path_of(w, "in/all"), *own = path_of(w, "in/all/data/data/f");
    assert_int_equal(symlink(w->root, link), 0);
    assert_int_equal(rq_intake_new_replicated(link, w->own, w->data, &replicated, NULL), RQ_OK);
    assert_int_equal(rq_intake_begin(replicated, &w->arena, &visit), RQ_OK);
    assert_int_equal(rq_intake_find(&visit, path_of(w, "in/all/in/other/f"), &vfs, &found, NULL),
                     RQ_OK);
    assert_string_equal(found, "in/other/f");
    assert_int_equal(rq_intake_find(&visit, own, &vfs, &found, NULL), RQ_E_DO_NOT_RETRY);
    rq_intake_end(&visit);
    rq_intake_free(replicated);
    assert_int_equal(unlink(link), 0);
}

/* The staging folder may be listed by another name. */
static void a_link_may_lead_into_the_staging_folder(void **state)
{
    world *w = *state;
    rq_intake *linked;
    rq_intake_visit visit;
    rq_vfs *vfs;
    const char *found;
    const char *link = path_of(w, "in/staged");
    assert_int_equal(symlink(path_of(w, "data/staging"), link), 0);
    assert_int_equal(make_intake(w, link, &linked, NULL), RQ_OK);
    assert_int_equal(rq_intake_begin(linked, &w->arena, &visit), RQ_OK);
    assert_int_equal(rq_intake_find(&visit, path_of(w, "in/staged/x/f"), &vfs, &found, NULL),
                     RQ_OK);
    assert_string_equal(found, "x/f");
    rq_intake_end(&visit);
    rq_intake_free(linked);
    assert_int_equal(unlink(link), 0);
}

static void lists_are_checked(void **state)
{
    world *w = *state;
    static const char *const bad[] = {"in",     "@/in,in",     "@/../in",
                                      "@/data", "@/data/data", "@/data/"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(bad); i++) {
        rq_intake *t;
        rq_error why = {0};
        if (make_intake(w, bad[i], &t, &why) != RQ_E_CONFIG) fail_msg("%s was accepted", bad[i]);
        assert_non_null(strstr(why.message, "rorqual.bulkload.folders"));
    }
    static const char *const good[] = {"", ",", " , ", "@/data/staging/x", "@"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(good); i++) {
        rq_intake *t;
        assert_int_equal(make_intake(w, good[i], &t, NULL), RQ_OK);
        rq_intake_free(t);
    }
}

#define IN_WORLD(f) cmocka_unit_test_setup_teardown(f, make_world, clear_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(a_listed_folder_is_found_by_its_names),
        IN_WORLD(the_staging_folder_is_the_data_folders),
        IN_WORLD(nothing_else_is_found),
        IN_WORLD(the_whole_machine_may_be_listed),
        IN_WORLD(no_link_leads_into_the_own_data_folder),
        IN_WORLD(a_link_may_lead_into_the_staging_folder),
        IN_WORLD(lists_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
