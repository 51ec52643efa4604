/* SPDX-License-Identifier: Apache-2.0 */
/* The argument of --cluster, and the cluster's storage: identity, start codes, refused folders. */
#include "server/cluster.h"
#include "../base/unit.h"

#include "vfs/vfs.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- the argument of --cluster ------------------------------------------------------------------- */

static void parsed(const char *text, const char *quorum, const char *root)
{
    rq_arena a = {0};
    rq_error why = {0};
    rq_cluster_place p;
    if (rq__cluster_parse(text, "/hbase", &a, &p, &why) != RQ_OK)
        fail_msg("%s: %s", text, why.message);
    assert_string_equal(p.quorum, quorum);
    assert_string_equal(p.root, root);
    assert_string_equal(p.store, "/s");
    assert_null(p.pool);
    assert_string_equal(p.secret, "/f");
    rq_arena_clear(&a);
}

static void a_place_has_three_parts(void **state)
{
    (void)state;
    parsed("zk=a:1/x,store=/s,secret=/f", "a:1", "/x");
    parsed("secret=/f,zk=a:1/x/y,store=/s", "a:1", "/x/y");
    parsed("zk=a:2181,store=/s,secret=/f", "a:2181", "/hbase");
    parsed("store=/s,zk=a:1,b:2,[::1]:3/x,secret=/f", "a:1,b:2,[::1]:3", "/x");
    parsed("zk=a:1,b:2,store=/s,secret=/f", "a:1,b:2", "/hbase");
}

static void a_store_in_ceph_has_more_parts(void **state)
{
    (void)state;
    static const struct {
        const char *text, *pool, *space, *conf, *user, *files, *system, *root;
    } right[] = {
        {"store=rados:p,files=/d", "p", "rorqual", "/etc/ceph/ceph.conf", "client.admin", "/d",
         NULL, NULL},
        {"files=/d,store=rados:p/n,conf=/c,user=client.u", "p", "n", "/c", "client.u", "/d", NULL,
         NULL},
        {"files=cephfs:/a/b,store=rados:p/n,conf=/c,user=client.u", "p", "n", "/c", "client.u",
         "cephfs:/a/b", NULL, "/a/b"},
        {"files=cephfs:fs/a,store=rados:p/n,conf=/c,user=client.u", "p", "n", "/c", "client.u",
         "cephfs:fs/a", "fs", "/a"},
    };
    for (size_t i = 0; i < RQ_ARRAY_LEN(right); i++) {
        rq_arena a = {0};
        rq_cluster_place p;
        const char *text = rq_arena_printf(&a, "zk=a:1,%s,secret=/f", right[i].text);
        assert_int_equal(rq__cluster_parse(text, "/hbase", &a, &p, NULL), RQ_OK);
        assert_string_equal(p.pool, right[i].pool);
        assert_string_equal(p.space, right[i].space);
        assert_string_equal(p.files, right[i].files);
        assert_string_equal(p.file_system == NULL ? "" : p.file_system,
                            right[i].system == NULL ? "" : right[i].system);
        assert_string_equal(p.files_root == NULL ? "" : p.files_root,
                            right[i].root == NULL ? "" : right[i].root);
        assert_string_equal(p.conf, right[i].conf);
        assert_string_equal(p.user, right[i].user);
        rq_arena_clear(&a);
    }
}

static void a_wrong_place_is_refused_with_the_reason(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } wrong[] = {
        {"", "is not valid"},
        {"store=/s,secret=/f", "zk=HOST:PORT/ROOT is missing"},
        {"zk=a:1/x,secret=/f", "store=DIR is missing"},
        {"zk=a:1/x,store=/s", "secret=FILE is missing"},
        {"zk=a/x,store=/s,secret=/f", "'a' is not HOST:PORT"},
        {"zk=:1/x,store=/s,secret=/f", "is not HOST:PORT"},
        {"zk=a:0/x,store=/s,secret=/f", "is not HOST:PORT"},
        {"zk=a:65536/x,store=/s,secret=/f", "is not HOST:PORT"},
        {"zk=a:+1/x,store=/s,secret=/f", "is not HOST:PORT"},
        {"zk=a:1x/x,store=/s,secret=/f", "is not HOST:PORT"},
        {"zk=,store=/s,secret=/f", "is not HOST:PORT"},
        {"zk=a:1/,store=/s,secret=/f", "'/' cannot be the root"},
        {"zk=a:1//x,store=/s,secret=/f", "cannot be the root"},
        {"zk=a:1/x/,store=/s,secret=/f", "cannot be the root"},
        {"zk=a:1/x/../y,store=/s,secret=/f", "cannot be the root"},
        {"zk=a:1/x/.,store=/s,secret=/f", "cannot be the root"},
        {"zk=a:1/..,store=/s,secret=/f", "cannot be the root"},
        {"zk=a:1/zookeeper,store=/s,secret=/f", "cannot be the root"},
        {"zk=a:1/x,b:2/y,store=/s,secret=/f", "must follow the last HOST:PORT"},
        {"zk=a:1/x,zk=b:2,store=/s,secret=/f", "zk= is given twice"},
        {"zk=a:1/x,store=/s,store=/t,secret=/f", "store= is given twice"},
        {"zk=a:1/x,store=,secret=/f", "store= is empty"},
        {"zk=a:1/x,store=/s,/t,secret=/f", "'/t' is not valid"},
        {"zk=a:1/x,store=/s,secret=/f,other=1", "'other=1' is not valid"},
        {"zk=a:1/x,store=/s,secret=/f,", "'' is not valid"},
        {"zk=a:1,store=rados:p,secret=/f", "files=cephfs:/PATH or files=DIR is missing"},
        {"zk=a:1,store=rados:p,files=cephfs:,secret=/f", "is not cephfs:/PATH"},
        {"zk=a:1,store=rados:p,files=cephfs:/,secret=/f", "is not cephfs:/PATH"},
        {"zk=a:1,store=rados:p,files=cephfs:name,secret=/f", "is not cephfs:/PATH"},
        {"zk=a:1,store=rados:p,files=cephfs:/a/../b,secret=/f", "is not cephfs:/PATH"},
        {"zk=a:1,store=rados:p,files=cephfs:/a//b,secret=/f", "is not cephfs:/PATH"},
        {"zk=a:1,store=rados:p,files=cephfs:/a/,secret=/f", "is not cephfs:/PATH"},
        {"zk=a:1,store=rados:,files=/d,secret=/f", "is not rados:POOL"},
        {"zk=a:1,store=rados:p/,files=/d,secret=/f", "is not rados:POOL"},
        {"zk=a:1,store=rados:/n,files=/d,secret=/f", "is not rados:POOL"},
        {"zk=a:1,store=rados:p/n/m,files=/d,secret=/f", "is not rados:POOL"},
        {"zk=a:1,store=rados:p,files=/d,secret=/f,user=u", "'u' is not client.NAME"},
        {"zk=a:1,store=rados:p,files=/d,secret=/f,user=client.", "is not client.NAME"},
        {"zk=a:1,store=/s,files=/d,secret=/f", "belong to a store in Ceph"},
        {"zk=a:1,store=/s,conf=/c,secret=/f", "belong to a store in Ceph"},
        {"zk=a:1,store=/s,user=client.u,secret=/f", "belong to a store in Ceph"},
        {"zk=a:1,store=/s,files=/d,files=/e,secret=/f", "files= is given twice"},
    };
    for (size_t i = 0; i < RQ_ARRAY_LEN(wrong); i++) {
        rq_arena a = {0};
        rq_error why = {0};
        rq_cluster_place p;
        assert_int_equal(rq__cluster_parse(wrong[i].text, "/hbase", &a, &p, &why), RQ_E_CONFIG);
        if (strstr(why.message, wrong[i].part) == NULL)
            fail_msg("%s: \"%s\" says nothing of %s", wrong[i].text, why.message, wrong[i].part);
        rq_arena_clear(&a);
    }
}

/* --- the storage --------------------------------------------------------------------------------- */

typedef struct fixture {
    char folder[64], store[96];
    rq_executor *executor;
} fixture;

static fixture *setup(void)
{
    static const unsigned threads[RQ_POOL_COUNT] = {1, 1, 1, 1, 1, 1, 1};
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    snprintf(f->folder, sizeof f->folder, "/tmp/rorqual-cluster-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->store, sizeof f->store, "%s/store", f->folder);
    assert_int_equal(rq_thread_executor_new(threads, &f->executor), RQ_OK);
    return f;
}

static void teardown(fixture *f)
{
    rq_vfs *v;
    assert_int_equal(rq_vfs_posix_new(f->folder, &v, NULL), RQ_OK);
    (void)!rq_vfs_remove_tree(v, "store", NULL);
    rq_vfs_free(v);
    assert_int_equal(rmdir(f->folder), 0);
    rq_thread_executor_free(f->executor);
    free(f);
}

static const rq_cluster_process process = {.host = "h", .port = 1};

static void open_store(fixture *f, rq_cluster_store *s)
{
    rq_error why = {0};
    const rq_cluster_place p = {.store = f->store};
    if (rq__cluster_store_open(&p, 0700, f->executor, &process, s, &why) != RQ_OK)
        fail_msg("%s", why.message);
}

static void every_process_finds_the_same_cluster(void **state)
{
    (void)state;
    fixture *f = setup();
    rq_cluster_store a, b;
    open_store(f, &a);
    open_store(f, &b);
    assert_int_equal(strlen(a.cluster_id), 36);
    assert_string_equal(a.cluster_id, b.cluster_id);
    assert_true(a.start_code > 0 && b.start_code > a.start_code);
    rq__cluster_store_close(&b);
    rq__cluster_store_close(&a);
    teardown(f);
}

static void start_codes_are_unique_and_rise(void **state)
{
    (void)state;
    fixture *f = setup();
    rq_cluster_store s;
    open_store(f, &s);
    int64_t last = f->executor->now_ms(f->executor) - 1;
    for (int i = 0; i < 50; i++) {
        int64_t code;
        assert_int_equal(rq__cluster_start_code(s.shared, f->executor, &code, NULL), RQ_OK);
        assert_true(code > last);
        last = code;
    }
    rq__cluster_store_close(&s);
    teardown(f);
}

static void place_refused(fixture *f, const rq_cluster_place *p, rq_err error, const char *part)
{
    rq_cluster_store s;
    rq_error why = {0};
    assert_string_equal(
        rq_err_name(rq__cluster_store_open(p, 0700, f->executor, &process, &s, &why)),
        rq_err_name(error));
    if (strstr(why.message, part) == NULL) fail_msg("\"%s\" says nothing of %s", why.message, part);
    rq__cluster_store_close(&s);
}

static void refused(fixture *f, rq_err error, const char *part)
{
    const rq_cluster_place p = {.store = f->store};
    place_refused(f, &p, error, part);
}

/* The program of this test has no plug-in next to it. */
static void a_missing_plugin_is_named_in_the_error(void **state)
{
    (void)state;
    fixture *f = setup();
    const rq_cluster_place p = {.store = "rados:p",
                                .pool = "p",
                                .space = "n",
                                .files = f->store,
                                .conf = "/c",
                                .user = "client.u"};
    place_refused(f, &p, RQ_E_UNSUPPORTED, "the package rorqual-rados");
    struct stat st;
    assert_int_not_equal(stat(f->store, &st), 0); /* no folder was made */
    teardown(f);
}

static void a_folder_of_something_else_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *part;
        rq_err error;
    } wrong[] = {{".rorqual", "of a standalone server", RQ_E_STATE},
                 {"hbase.version", "of HBase", RQ_E_STATE},
                 {"letters", "letters", RQ_E_UNSUPPORTED}};
    for (size_t i = 0; i < RQ_ARRAY_LEN(wrong); i++) {
        fixture *f = setup();
        char path[160];
        struct stat st;
        snprintf(path, sizeof path, "%s/%s", f->store, wrong[i].name);
        assert_int_equal(mkdir(f->store, 0700), 0);
        assert_int_equal(mkdir(path, 0700), 0);
        refused(f, wrong[i].error, wrong[i].part);
        snprintf(path, sizeof path, "%s/files", f->store);
        assert_int_not_equal(stat(path, &st), 0); /* the folder was not made */
        teardown(f);
    }
}

/* A data folder may contain anything besides; the error says that it is one. */
static void a_data_folder_is_named_whatever_else_it_contains(void **state)
{
    (void)state;
    static const char *const names[] = {"", "/.hbase-snapshot", "/.rorqual", "/zoo"};
    fixture *f = setup();
    for (size_t i = 0; i < RQ_ARRAY_LEN(names); i++) {
        char path[160];
        snprintf(path, sizeof path, "%s%s", f->store, names[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    refused(f, RQ_E_STATE, "of a standalone server");
    teardown(f);
}

static void a_newer_cluster_is_refused(void **state)
{
    (void)state;
    fixture *f = setup();
    rq_cluster_store s;
    rq_arena a = {0};
    rq_slice bytes;
    uint64_t generation;
    open_store(f, &s);
    assert_int_equal(rq_object_get(s.shared, "cluster", &a, &bytes, &generation, NULL), RQ_OK);
    const char *newer = "format 2\nid 5b1d2a44-93c0-4a0e-8b2f-000000000001\n";
    assert_int_equal(
        rq_object_cas(s.shared, "cluster", generation, rq_slice_cstr(newer), &generation, NULL),
        RQ_OK);
    refused(f, RQ_E_VERSION, "format 2");
    assert_int_equal(
        rq_object_cas(s.shared, "cluster", generation, RQ_SLICE_LIT("no"), &generation, NULL),
        RQ_OK);
    refused(f, RQ_E_CORRUPT, "malformed");
    rq_arena_clear(&a);
    rq__cluster_store_close(&s);
    teardown(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_place_has_three_parts),
        cmocka_unit_test(a_store_in_ceph_has_more_parts),
        cmocka_unit_test(a_wrong_place_is_refused_with_the_reason),
        cmocka_unit_test(every_process_finds_the_same_cluster),
        cmocka_unit_test(start_codes_are_unique_and_rise),
        cmocka_unit_test(a_missing_plugin_is_named_in_the_error),
        cmocka_unit_test(a_folder_of_something_else_is_refused),
        cmocka_unit_test(a_data_folder_is_named_whatever_else_it_contains),
        cmocka_unit_test(a_newer_cluster_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
