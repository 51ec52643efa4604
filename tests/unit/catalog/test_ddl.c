/* SPDX-License-Identifier: Apache-2.0 */
/* Each change by example: its effect, its effect after a restart, and every refusal with HBase's
 * error. */
#include "world.h"

#include <fcntl.h>
#include <unistd.h>

#include "catalog/catalog_priv.h"

static world *setup(void)
{
    world *w = calloc(1, sizeof *w);
    world_init(w, unit_seed(), NULL);
    rq_err rc = world_open(w);
    if (rc != RQ_OK) fail_msg("open: %s", w->why.message);
    return w;
}

static void teardown(world *w)
{
    char *faults = world_check(w);
    assert_string_equal(faults, "");
    free(faults);
    char *before = world_describe(w);
    if (world_close(w, true) != RQ_OK) fail_msg("close: %s", w->why.message);
    if (world_open(w) != RQ_OK) fail_msg("open again: %s", w->why.message);
    char *after = world_describe(w);
    assert_string_equal(before, after);
    faults = world_check(w);
    assert_string_equal(faults, "");
    free(faults);
    free(before);
    free(after);
    world_clear(w);
    free(w);
}

#define BYPASS                                                                                     \
    " Set hbase.table.sanity.checks to false at conf or table descriptor if you want to bypass "   \
    "sanity checks"

static void an_empty_folder_has_the_system_tables_and_namespaces(void **state)
{
    (void)state;
    world *w = setup();
    char *text = world_describe(w);
    assert_string_equal(text, "namespace default\nnamespace hbase\n");
    free(text);
    const rq_catalog_table *const *tables;
    size_t n;
    rq_catalog_tables(w->catalog, &tables, &n);
    assert_int_equal(n, 2);
    assert_true(tables[0]->schema->is_meta);
    const rq_host_region *r;
    OK(rq_host_find_encoded(w->host, RQ_SLICE_LIT("1588230740"), &r, &w->why));
    teardown(w);
}

static void a_created_table_takes_rows_in_each_region(void **state)
{
    (void)state;
    world *w = setup();
    OK(world_create(w, "t", "f:VERSIONS=3 g", "m c"));
    OK(world_put(w, "t", "a", "f"));
    OK(world_put(w, "t", "c", "g"));
    OK(world_put(w, "t", "z", "f"));
    OK(world_get(w, "t", "a", "f"));
    assert_int_equal(world_get(w, "t", "b", "f"), RQ_E_NOT_FOUND);
    OK(world_close(w, true));
    OK(world_open(w));
    OK(world_get(w, "t", "a", "f"));
    OK(world_get(w, "t", "c", "g"));
    OK(world_get(w, "t", "z", "f"));
    OK(world_close(w, false));
    OK(world_open(w));
    OK(world_get(w, "t", "z", "f"));
    teardown(w);
}

#define LONG_KEYS 150
#define LONG_KEY                                                                                   \
    30000 /* bytes, so that the rows of all regions are longer than the longest record of the log */

/* Keys that share no beginning. */
static rq_slice *long_keys(rq_arena *a)
{
    rq_slice *keys = rq_arena_calloc(a, LONG_KEYS, sizeof *keys);
    assert_non_null(keys);
    for (size_t i = 0; i < LONG_KEYS; i++) {
        uint8_t *bytes = rq_arena_alloc(a, LONG_KEY);
        assert_non_null(bytes);
        memset(bytes, 'x', LONG_KEY);
        bytes[0] = (uint8_t)(i + 1);
        keys[i] = rq_slice_of(bytes, LONG_KEY);
    }
    return keys;
}

static void a_table_has_more_regions_than_a_record_holds(void **state)
{
    (void)state;
    world *w = setup();
    rq_arena a = {0};
    OK(world_create_at(w, "t", "f", long_keys(&a), LONG_KEYS));
    OK(world_put(w, "t", "z", "f"));
    OK(world_close(w, false));
    OK(world_open(w));
    OK(world_get(w, "t", "z", "f"));
    OK(world_table(w, RQ_DDL_DISABLE_TABLE, "t"));
    OK(world_snapshot(w, "s", "t", true));
    OK(world_truncate(w, "t", true));
    assert_int_equal(world_get(w, "t", "z", "f"), RQ_E_NOT_FOUND);
    OK(world_table(w, RQ_DDL_DISABLE_TABLE, "t"));
    OK(world_restore(w, "s", "t"));
    OK(world_table(w, RQ_DDL_ENABLE_TABLE, "t"));
    OK(world_get(w, "t", "z", "f"));
    OK(world_table(w, RQ_DDL_DISABLE_TABLE, "t"));
    OK(world_table(w, RQ_DDL_DELETE_TABLE, "t"));
    OK(world_clone(w, "s", "c"));
    OK(world_get(w, "c", "z", "f"));
    rq_arena_clear(&a);
    teardown(w);
}

static void create_refuses_what_hbase_refuses(void **state)
{
    (void)state;
    world *w = setup();
    OK(world_create(w, "t", "f", NULL));
    REFUSED(world_create(w, "t", "f", NULL), RQ_E_TABLE_EXISTS, "t");
    REFUSED(world_create(w, "hbase:meta", "f", NULL), RQ_E_TABLE_EXISTS, "hbase:meta");
    REFUSED(world_create(w, "no:t", "f", NULL), RQ_E_NAMESPACE_NOT_FOUND, "no");
    REFUSED(world_create(w, "u", "", NULL), RQ_E_DO_NOT_RETRY,
            "Table should have at least one column family." BYPASS);
    REFUSED(world_create(w, "u", "f:TTL=-1", NULL), RQ_E_DO_NOT_RETRY,
            "TTL for column family f must be positive." BYPASS);
    static const char *const sizes[] = {"f:BLOCKSIZE=1", "f:BLOCKSIZE=0", "f:BLOCKSIZE=-2147483648",
                                        "f:BLOCKSIZE=2147483647"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(sizes); i++)
        REFUSED(world_create(w, "u", sizes[i], NULL), RQ_E_DO_NOT_RETRY,
                "Block size for column family f  must be between 1K and 16MB." BYPASS);
    REFUSED(world_create(w, "u", "f @MAX_FILESIZE=1024", NULL), RQ_E_DO_NOT_RETRY,
            "MAX_FILESIZE for table descriptor or \"hbase.hregion.max.filesize\" (1024) is too "
            "small, which might cause over splitting into unmanageable number of regions." BYPASS);
    REFUSED(world_create(w, "u", "f @MEMSTORE_FLUSHSIZE=1024", NULL), RQ_E_DO_NOT_RETRY,
            "MEMSTORE_FLUSHSIZE for table descriptor or \"hbase.hregion.memstore.flush.size\" "
            "(1024) is too small, which might cause very frequent flushing." BYPASS);
    REFUSED(world_create(w, "u", "f @REGION_REPLICATION=0", NULL), RQ_E_DO_NOT_RETRY,
            "Table region replication should be at least one." BYPASS);
    REFUSED(world_create(w, "u", "f:REPLICATION_SCOPE=7", NULL), RQ_E_DO_NOT_RETRY,
            "Replication scope for column family f is 7 which is invalid." BYPASS);
    REFUSED(
        world_create(w, "u", "f:COMPRESSION=FOO", NULL), RQ_E_DO_NOT_RETRY,
        "No enum constant org.apache.hadoop.hbase.io.compress.Compression.Algorithm.FOO" BYPASS);
    REFUSED(world_create(w, "u", "f:IN_MEMORY_COMPACTION=FOO", NULL), RQ_E_DO_NOT_RETRY,
            "No enum constant org.apache.hadoop.hbase.MemoryCompactionPolicy.FOO" BYPASS);
    REFUSED(world_create(w, "u", "f:BLOOMFILTER=ROWPREFIX_FIXED_LENGTH", NULL), RQ_E_DO_NOT_RETRY,
            "Failed to get bloom filter param" BYPASS);
    REFUSED(world_create(w, "u", "f @SPLIT_POLICY=no.such.Cls", NULL), RQ_E_DO_NOT_RETRY,
            "Unable to load configured region split policy 'no.such.Cls' for table 'u'" BYPASS);
    REFUSED(world_create(w, "u", "f @coprocessor$1=|no.such.Cls|1|", NULL), RQ_E_DO_NOT_RETRY,
            "Class no.such.Cls cannot be loaded" BYPASS);
    REFUSED(world_create(w, "u", "f @REGION_REPLICATION=65", NULL), RQ_E_DO_NOT_RETRY,
            "REGION_REPLICATION 65 is not supported, only up to 64");
    REFUSED(world_create(w, "u", "f @hbase.store.file-tracker.impl=my.Tracker", NULL),
            RQ_E_DO_NOT_RETRY,
            "java.lang.RuntimeException: java.lang.RuntimeException: "
            "java.lang.ClassNotFoundException: Class my.Tracker not found");
    REFUSED(world_create(w, "u", "f", "b b"), RQ_E_ILLEGAL_ARGUMENT,
            "All split keys must be unique, found duplicate: b, b");
    REFUSED(world_create(w, "a b", "f", NULL), RQ_E_ILLEGAL_ARGUMENT,
            "Illegal character code:32, < > at 1. User-space table qualifiers may only contain "
            "'alphanumeric characters' and digits: a b");
    OK(world_create(w, "u", "f:BLOCKSIZE=100 @hbase.table.sanity.checks=false", NULL));
    OK(world_create(w, "v", "f:BLOCKSIZE=0 @hbase.table.sanity.checks=false", NULL));
    teardown(w);
}

static void a_table_goes_through_its_states(void **state)
{
    (void)state;
    world *w = setup();
    OK(world_create(w, "t", "f", "m"));
    OK(world_put(w, "t", "a", "f"));
    REFUSED(world_table(w, RQ_DDL_DELETE_TABLE, "t"), RQ_E_TABLE_NOT_DISABLED,
            "Not DISABLED; tableName=t, state=ENABLED");
    REFUSED(world_table(w, RQ_DDL_ENABLE_TABLE, "t"), RQ_E_TABLE_NOT_DISABLED,
            "tableName=t, state=ENABLED");
    REFUSED(world_truncate(w, "t", true), RQ_E_TABLE_NOT_DISABLED, "t");
    OK(world_table(w, RQ_DDL_FLUSH_TABLE, "t"));
    OK(world_table(w, RQ_DDL_DISABLE_TABLE, "t"));
    REFUSED(world_table(w, RQ_DDL_DISABLE_TABLE, "t"), RQ_E_TABLE_NOT_ENABLED, "t");
    REFUSED(world_table(w, RQ_DDL_FLUSH_TABLE, "t"), RQ_E_TABLE_NOT_ENABLED, "t");
    assert_int_equal(world_get(w, "t", "a", "f"), RQ_E_NOT_SERVING_REGION);
    OK(world_close(w, false));
    OK(world_open(w));
    assert_int_equal(world_get(w, "t", "a", "f"), RQ_E_NOT_SERVING_REGION);
    OK(world_table(w, RQ_DDL_ENABLE_TABLE, "t"));
    OK(world_get(w, "t", "a", "f"));
    OK(world_table(w, RQ_DDL_DISABLE_TABLE, "t"));
    OK(world_table(w, RQ_DDL_DELETE_TABLE, "t"));
    REFUSED(world_table(w, RQ_DDL_DELETE_TABLE, "t"), RQ_E_TABLE_NOT_FOUND, "t");
    REFUSED(world_table(w, RQ_DDL_DISABLE_TABLE, "t"), RQ_E_TABLE_NOT_FOUND, "t");
    REFUSED(world_table(w, RQ_DDL_ENABLE_TABLE, "t"), RQ_E_TABLE_NOT_FOUND, "t");
    REFUSED(world_truncate(w, "t", false), RQ_E_TABLE_NOT_FOUND, "t");
    REFUSED(world_table(w, RQ_DDL_FLUSH_TABLE, "t"), RQ_E_TABLE_NOT_FOUND, "t");
    REFUSED(world_table(w, RQ_DDL_DISABLE_TABLE, "hbase:meta"), RQ_E_CONSTRAINT,
            "Cannot disable hbase:meta");
    REFUSED(world_table(w, RQ_DDL_DELETE_TABLE, "hbase:meta"), RQ_E_IOEXCEPTION,
            "Can't modify catalog tables");
    OK(world_create(w, "t", "f", NULL)); /* the new table has no rows of the dropped one */
    assert_int_equal(world_get(w, "t", "a", "f"), RQ_E_NOT_FOUND);
    teardown(w);
}

static void truncate_empties_and_keeps_or_drops_the_splits(void **state)
{
    (void)state;
    world *w = setup();
    for (int preserve = 1; preserve >= 0; preserve--) {
        const char *table = preserve ? "kept" : "dropped";
        OK(world_create(w, table, "f", "h p"));
        OK(world_put(w, table, "z", "f"));
        OK(world_table(w, RQ_DDL_DISABLE_TABLE, table));
        OK(world_truncate(w, table, preserve));
        assert_int_equal(world_get(w, table, "z", "f"), RQ_E_NOT_FOUND);
        OK(world_put(w, table, "z", "f"));
        const rq_catalog_table *t = rq_catalog_table_find(w->catalog, rq_slice_cstr(table));
        assert_int_equal(t->state, RQ_TABLE_ENABLED);
        assert_int_equal(t->region_count, preserve ? 3 : 1);
    }
    teardown(w);
}

/* SetTableStateInMeta disables a table whose regions stay open. */
static void a_table_whose_state_was_set_is_closed_before_its_files_change(void **state)
{
    (void)state;
    world *w = setup();
    static const char *const tables[] = {"deleted", "truncated", "enabled", "narrowed"};
    for (int i = 0; i < 4; i++) {
        rq_table_state before;
        OK(world_create(w, tables[i], "f g", "h p"));
        OK(world_put(w, tables[i], "z", "f"));
        OK(world_put(w, tables[i], "z", "g"));
        OK(rq_catalog_set_table_state(w->catalog, RQ_SLICE_LIT("default"), rq_slice_cstr(tables[i]),
                                      RQ_TABLE_DISABLED, &before, &w->why));
        assert_int_equal(before, RQ_TABLE_ENABLED);
    }
    OK(world_table(w, RQ_DDL_DELETE_TABLE, "deleted"));
    OK(world_truncate(w, "truncated", true));
    OK(world_table(w, RQ_DDL_ENABLE_TABLE, "enabled"));
    OK(world_family(w, RQ_DDL_DELETE_FAMILY, "narrowed", "g"));
    assert_int_equal(world_put(w, "narrowed", "z", "f"), RQ_E_NOT_SERVING_REGION);
    OK(world_table(w, RQ_DDL_ENABLE_TABLE, "narrowed"));
    OK(world_get(w, "narrowed", "z", "f"));
    assert_int_equal(world_get(w, "narrowed", "z", "g"), RQ_E_NO_SUCH_FAMILY);
    OK(world_table(w, RQ_DDL_FLUSH_TABLE, "narrowed"));
    assert_int_equal(world_get(w, "truncated", "z", "f"), RQ_E_NOT_FOUND);
    OK(world_get(w, "enabled", "z", "f"));
    OK(world_create(w, "deleted", "f", NULL));
    assert_int_equal(world_get(w, "deleted", "z", "f"), RQ_E_NOT_FOUND);
    teardown(w);
}

static void families_are_added_changed_and_removed(void **state)
{
    (void)state;
    world *w = setup();
    OK(world_create(w, "t", "f g", "m"));
    OK(world_put(w, "t", "a", "f"));
    OK(world_put(w, "t", "a", "g"));
    OK(world_family(w, RQ_DDL_ADD_FAMILY, "t", "h:VERSIONS=5"));
    OK(world_put(w, "t", "z", "h"));
    REFUSED(world_family(w, RQ_DDL_ADD_FAMILY, "t", "h"), RQ_E_INVALID_FAMILY_OP,
            "Column family 'h' in table 't' already exists so cannot be added");
    REFUSED(world_family(w, RQ_DDL_MODIFY_FAMILY, "t", "x"), RQ_E_INVALID_FAMILY_OP,
            "Family 'x' does not exist, so it cannot be modified");
    REFUSED(world_family(w, RQ_DDL_DELETE_FAMILY, "t", "x"), RQ_E_INVALID_FAMILY_OP,
            "Family 'x' does not exist, so it cannot be deleted");
    REFUSED(world_family(w, RQ_DDL_MODIFY_FAMILY, "t", "f:TTL=-2"), RQ_E_DO_NOT_RETRY,
            "TTL for column family f must be positive." BYPASS);
    OK(world_family(w, RQ_DDL_MODIFY_FAMILY, "t", "f:VERSIONS=9"));
    OK(world_family(w, RQ_DDL_DELETE_FAMILY, "t", "g"));
    OK(world_get(w, "t", "a", "f"));
    assert_int_equal(world_get(w, "t", "a", "g"), RQ_E_NO_SUCH_FAMILY);
    OK(world_family(w, RQ_DDL_ADD_FAMILY, "t", "g"));
    /* the value from before is not visible */
    assert_int_equal(world_get(w, "t", "a", "g"), RQ_E_NOT_FOUND);
    OK(world_table(w, RQ_DDL_DISABLE_TABLE, "t"));
    OK(world_family(w, RQ_DDL_DELETE_FAMILY, "t", "g"));
    OK(world_family(w, RQ_DDL_DELETE_FAMILY, "t", "h"));
    REFUSED(world_family(w, RQ_DDL_DELETE_FAMILY, "t", "f"), RQ_E_INVALID_FAMILY_OP,
            "Family 'f' is the only column family in the table, so it cannot be deleted");
    OK(world_modify(w, "t", "f:VERSIONS=2 n @READONLY=true"));
    OK(world_table(w, RQ_DDL_ENABLE_TABLE, "t"));
    OK(world_get(w, "t", "a", "f"));
    REFUSED(world_modify(w, "none", "f"), RQ_E_TABLE_NOT_FOUND, "none");
    REFUSED(world_modify(w, "t", ""), RQ_E_DO_NOT_RETRY,
            "Table should have at least one column family." BYPASS);
    uint32_t left, total;
    rq_catalog_alter_status(w->catalog, RQ_SLICE_LIT("t"), &left, &total);
    assert_int_equal(left, 0);
    assert_int_equal(total, 2);
    teardown(w);
}

/* The log may contain the removed family's edits as long as their WAL file is kept. */
static void a_family_removed_and_added_again_is_empty_after_crashes_too(void **state)
{
    (void)state;
    world *w = setup();
    OK(world_create(w, "t", "f g", NULL));
    OK(world_put(w, "t", "a", "g"));
    OK(world_put(w, "t", "b", "f"));
    OK(world_family(w, RQ_DDL_DELETE_FAMILY, "t", "g"));
    OK(world_close(w, false));
    OK(world_open(w));
    OK(world_family(w, RQ_DDL_ADD_FAMILY, "t", "g"));
    OK(world_put(w, "t", "c", "g"));
    for (int crash = 0; crash < 2; crash++) {
        OK(world_close(w, false));
        OK(world_open(w));
        assert_int_equal(world_get(w, "t", "a", "g"), RQ_E_NOT_FOUND);
        OK(world_get(w, "t", "b", "f"));
        OK(world_get(w, "t", "c", "g"));
    }
    teardown(w);
}

static void namespaces_come_and_go(void **state)
{
    (void)state;
    world *w = setup();
    OK(world_namespace(w, RQ_DDL_CREATE_NAMESPACE, "n", NULL));
    REFUSED(world_namespace(w, RQ_DDL_CREATE_NAMESPACE, "n", NULL), RQ_E_NAMESPACE_EXISTS,
            "Namespace n already exists");
    REFUSED(world_namespace(w, RQ_DDL_CREATE_NAMESPACE, "a-b", NULL), RQ_E_ILLEGAL_ARGUMENT,
            "Illegal character <-> at 1. Namespaces may only contain 'alphanumeric characters' "
            "from any language and digits: a-b");
    REFUSED(world_namespace(w, RQ_DDL_CREATE_NAMESPACE, "z", "hbase.namespace.quota.maxtables=0"),
            RQ_E_CONSTRAINT, "The max tables quota for z is less than or equal to zero.");
    REFUSED(world_namespace(w, RQ_DDL_CREATE_NAMESPACE, "z", "hbase.namespace.quota.maxregions=x"),
            RQ_E_DO_NOT_RETRY, "NumberFormatException while getting max regions.");
    OK(world_namespace(w, RQ_DDL_MODIFY_NAMESPACE, "n", "some.key=v"));
    REFUSED(world_namespace(w, RQ_DDL_MODIFY_NAMESPACE, "no", NULL), RQ_E_NAMESPACE_NOT_FOUND,
            "no");
    OK(world_create(w, "n:t", "f", NULL));
    REFUSED(world_namespace(w, RQ_DDL_DELETE_NAMESPACE, "n", NULL), RQ_E_CONSTRAINT,
            "Only empty namespaces can be removed. Namespace n has 1 tables");
    REFUSED(world_namespace(w, RQ_DDL_DELETE_NAMESPACE, "default", NULL), RQ_E_CONSTRAINT,
            "Reserved namespace default cannot be removed.");
    REFUSED(world_namespace(w, RQ_DDL_DELETE_NAMESPACE, "no", NULL), RQ_E_NAMESPACE_NOT_FOUND,
            "no");
    OK(world_namespace(w, RQ_DDL_CREATE_NAMESPACE, "empty", NULL));
    OK(world_namespace(w, RQ_DDL_DELETE_NAMESPACE, "empty", NULL));
    teardown(w);
}

static void quotas_of_a_namespace_hold_when_they_are_enabled(void **state)
{
    (void)state;
    world *w = setup();
    OK(world_namespace(w, RQ_DDL_CREATE_NAMESPACE, "n", "hbase.namespace.quota.maxtables=1"));
    OK(world_create(w, "n:a", "f", NULL));
    OK(world_create(w, "n:b", "f", NULL)); /* by HBase's default quotas are off */
    OK(rq_config_set(w->config, "hbase.quota.enabled", "true", &w->why));
    REFUSED(world_create(w, "n:c", "f", NULL), RQ_E_QUOTA_EXCEEDED,
            "The table n:c cannot be created as it would exceed maximum number of tables allowed  "
            "in the namespace.  The total number of tables permitted is 1");
    OK(world_namespace(w, RQ_DDL_CREATE_NAMESPACE, "r", "hbase.namespace.quota.maxregions=2"));
    OK(world_create(w, "r:a", "f", NULL));
    REFUSED(world_create(w, "r:b", "f", "m"), RQ_E_QUOTA_EXCEEDED,
            "The table r:b is not allowed to have 2 regions. The total number of regions permitted "
            "is only 2, while current region count is 1. This may be transient, please retry later "
            "if there are any ongoing split operations in the namespace.");
    teardown(w);
}

/* HBASE: HFileArchiver.archiveRegion moves the files of families to the archive; folders whose name begins with a
 * dot are deleted with the region. */
static void a_drop_archives_what_is_not_hidden(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        bool is_archived;
    } files[] = {{"f/0123456789abcdef0123456789abcdef", true},
                 {"gone/0123456789abcdef0123456789abcdef", true}, /* a removed family */
                 {".tmp/0123456789abcdef0123456789abcdef", false},
                 {".splits/0123456789abcdef0123456789abcdef", false},
                 {"f/.hidden", false},
                 {"f/.links-x/0123456789abcdef0123456789abcdef", false}};
    world *w = setup();
    rq_arena a = {0};
    char dir[128];
    rq_epoch_member m = {0};
    OK(world_create(w, "t", "f", NULL));
    rq_epoch_pin(w->env->epoch, &m);
    const rq_catalog_table *t = rq_catalog_table_find(w->catalog, RQ_SLICE_LIT("t"));
    snprintf(dir, sizeof dir, "data/default/t/%s", rq_catalog_table_region(t, 0)->info->encoded);
    rq_epoch_unpin(w->env->epoch, &m);
    OK(world_table(w, RQ_DDL_DISABLE_TABLE, "t"));
    for (size_t i = 0; i < RQ_ARRAY_LEN(files); i++) {
        char *path = rq_arena_printf(&a, "%s/%s", dir, files[i].path);
        char *folder = rq_arena_printf(&a, "%s", path);
        *strrchr(folder, '/') = '\0';
        OK(rq_vfs_mkdirs(w->env->vfs, folder, &w->why));
        OK(rq_vfs_write_new_file(w->env->vfs, path, RQ_SLICE_LIT("x"), &w->why));
    }
    OK(world_table(w, RQ_DDL_DELETE_TABLE, "t"));
    for (size_t i = 0; i < RQ_ARRAY_LEN(files); i++) {
        rq_stat st;
        char *path = rq_arena_printf(&a, "archive/%s/%s", dir, files[i].path);
        rq_err rc = rq_vfs_stat(w->env->vfs, path, &st, NULL);
        if ((rc == RQ_OK) != files[i].is_archived) fail_msg("%s", path);
    }
    rq_arena_clear(&a);
    teardown(w);
}

static void a_retried_nonce_is_the_same_procedure(void **state)
{
    (void)state;
    world *w = setup();
    w->nonce = 99;
    OK(world_create(w, "t", "f", NULL));
    uint64_t first = w->proc;
    assert_true(first > 0);
    OK(world_create(w, "t", "f", NULL));
    assert_int_equal(w->proc, first);
    OK(world_close(w, false)); /* and after a crash */
    OK(world_open(w));
    OK(world_create(w, "t", "f", NULL));
    assert_int_equal(w->proc, first);
    w->nonce = 100;
    REFUSED(world_create(w, "t", "f", NULL), RQ_E_TABLE_EXISTS, "t");
    /* A call whose answer was lost is repeated when its change has been made. */
    static const rq_ddl_kind kinds[] = {RQ_DDL_DISABLE_TABLE, RQ_DDL_ENABLE_TABLE,
                                        RQ_DDL_DISABLE_TABLE, RQ_DDL_TRUNCATE_TABLE};
    for (size_t i = 0; i < RQ_ARRAY_LEN(kinds); i++) {
        w->nonce++;
        OK(world_table(w, kinds[i], "t"));
        first = w->proc;
        OK(world_table(w, kinds[i], "t"));
        assert_int_equal(w->proc, first);
    }
    w->nonce = 0;
    teardown(w);
}

/* A call that is refused before it is a procedure, and repeated when the change has become possible. */
static void a_refused_nonce_keeps_its_refusal(void **state)
{
    (void)state;
    world *w = setup();
    rq_arena a = {0};
    rq_procedure p;
    OK(world_create(w, "t", "f", NULL));
    w->nonce = 7;
    REFUSED(world_table(w, RQ_DDL_TRUNCATE_TABLE, "t"), RQ_E_TABLE_NOT_DISABLED, "t");
    w->nonce = 0;
    OK(world_table(w, RQ_DDL_DISABLE_TABLE, "t"));
    w->nonce = 7;
    /* These calls wait for the end, so they get the result; others get the procedure's number. */
    REFUSED(world_table(w, RQ_DDL_TRUNCATE_TABLE, "t"), RQ_E_TABLE_NOT_DISABLED, "t");
    assert_true(rq_catalog_procedure(w->catalog, w->proc, &a, &p));
    assert_true(p.finished);
    assert_int_equal(p.rc, RQ_E_TABLE_NOT_DISABLED);
    assert_int_equal(p.kind, RQ_DDL_TRUNCATE_TABLE);
    w->nonce = 8;
    OK(world_table(w, RQ_DDL_TRUNCATE_TABLE, "t"));
    assert_true(rq_catalog_procedure(w->catalog, w->proc, &a, &p));
    assert_int_equal(p.rc, RQ_OK);
    w->nonce = 0;
    rq_arena_clear(&a);
    teardown(w);
}

typedef struct twin {
    rq_ddl ddl;
    bool answered;
} twin;

static void twin_answered(rq_ddl *d)
{
    RQ_CONTAINER_OF(d, twin, ddl)->answered = true;
}

/* The second call must not get a success while the first one's record may still fail. */
static void a_nonce_comes_twice_while_its_record_is_written(void **state)
{
    (void)state;
    unsigned refused = 0;
    for (unsigned steps = 0; steps < 40; steps++) {
        world *w = setup();
        OK(world_create(w, "t", "f", NULL));
        OK(world_table(w, RQ_DDL_DISABLE_TABLE, "t"));
        twin twins[2] = {0};
        for (size_t i = 0; i < 2; i++) {
            twins[i].ddl = (rq_ddl){.kind = RQ_DDL_ENABLE_TABLE,
                                    .ns = RQ_SLICE_LIT("default"),
                                    .qualifier = RQ_SLICE_LIT("t"),
                                    .user = RQ_SLICE_LIT("tester"),
                                    .nonce_group = 7,
                                    .nonce = 5,
                                    .early = true,
                                    .submitted = twin_answered};
            rq_catalog_submit(w->catalog, &twins[i].ddl);
        }
        for (unsigned i = 0; !twins[0].answered || !twins[1].answered; i++) {
            if (i == steps) rq_sim_fail_writes(w->sim, RQ_E_IO);
            if (!rq_sim_step(w->sim)) rq_sim_advance(w->sim, 10000000);
        }
        /* A call submitted after the failure may get another error. */
        assert_int_equal(twins[0].ddl.rc == RQ_OK, twins[1].ddl.rc == RQ_OK);
        assert_int_equal(twins[0].ddl.proc_id, twins[1].ddl.proc_id);
        refused += twins[0].ddl.rc != RQ_OK;
        (void)world_close(w, false); /* the log may have failed for good */
        world_clear(w);
        free(w);
    }
    assert_in_range(refused, 1, 39);
}

static void results_are_kept_until_they_are_old(void **state)
{
    (void)state;
    world *w = setup();
    OK(world_create(w, "t", "f", NULL));
    uint64_t id = w->proc;
    rq_arena a;
    rq_arena_init(&a);
    rq_procedure p;
    assert_true(rq_catalog_procedure(w->catalog, id, &a, &p));
    assert_true(p.finished);
    assert_int_equal(p.rc, RQ_OK);
    assert_int_equal(p.kind, RQ_DDL_CREATE_TABLE);
    rq_catalog_procedure_forget(w->catalog, id);
    assert_true(rq_catalog_procedure(w->catalog, id, &a, &p));
    rq_sim_advance(w->sim, UINT64_C(6) * 60 * 1000000000);
    OK(world_create(w, "u", "f", NULL)); /* expired results are removed when one is added */
    assert_false(rq_catalog_procedure(w->catalog, id, &a, &p));
    uint64_t second = w->proc;
    OK(world_close(w, true));
    OK(world_open(w));
    assert_true(rq_catalog_procedure(w->catalog, second, &a, &p)); /* a clean stop keeps results */
    OK(world_create(w, "v", "f", NULL));
    assert_true(w->proc > second); /* procedure ids are never reused */
    rq_arena_clear(&a);
    teardown(w);
}

static void switches_are_remembered_as_hbase_remembers_them(void **state)
{
    (void)state;
    world *w = setup();
    bool before;
    assert_true(rq_catalog_switch_get(w->catalog, RQ_SWITCH_BALANCER));
    OK(rq_catalog_switch_set(w->catalog, RQ_SWITCH_BALANCER, false, &before, &w->why));
    assert_true(before);
    OK(rq_catalog_switch_set(w->catalog, RQ_SWITCH_CATALOG_JANITOR, false, &before, &w->why));
    OK(world_close(w, false));
    OK(world_open(w));
    assert_false(rq_catalog_switch_get(w->catalog, RQ_SWITCH_BALANCER));
    assert_true(rq_catalog_switch_get(w->catalog, RQ_SWITCH_CATALOG_JANITOR));
    OK(rq_catalog_switch_set(w->catalog, RQ_SWITCH_BALANCER, true, &before, &w->why));
    assert_false(before);
    teardown(w);
}

static void lookups_answer_as_a_region_server(void **state)
{
    (void)state;
    world *w = setup();
    OK(world_create(w, "t", "f", "m"));
    const rq_catalog_region *r;
    OK(rq_catalog_locate(w->catalog, RQ_SLICE_LIT("t"), RQ_SLICE_LIT("m"), &r, &w->why));
    assert_true(rq_slice_eq(r->info->start_key, RQ_SLICE_LIT("m")));
    const rq_host_region *found;
    OK(rq_host_find(w->host, r->info->name, &found, &w->why));
    assert_ptr_equal(found->region, r->region);
    char name[300];
    snprintf(name, sizeof name, "%.*s", (int)r->info->name.len, (const char *)r->info->name.ptr);
    OK(world_table(w, RQ_DDL_DISABLE_TABLE, "t"));
    char expected[400];
    snprintf(expected, sizeof expected, "%s is not online on localhost,16020,%lld", name,
             (long long)w->start_code);
    w->why = (rq_error){0};
    REFUSED(rq_host_find(w->host, rq_slice_cstr(name), &found, &w->why), RQ_E_NOT_SERVING_REGION,
            expected);
    w->why = (rq_error){0};
    REFUSED(rq_catalog_locate(w->catalog, RQ_SLICE_LIT("no"), RQ_SLICE_LIT("m"), &r, &w->why),
            RQ_E_TABLE_NOT_FOUND, "no");
    teardown(w);
}

static void a_region_is_closed_and_opened_by_hand(void **state)
{
    (void)state;
    world *w = setup();
    OK(world_create(w, "t", "f", "m"));
    OK(world_put(w, "t", "a", "f"));
    OK(world_put(w, "t", "x", "f"));
    const rq_catalog_region *r;
    OK(rq_catalog_locate(w->catalog, RQ_SLICE_LIT("t"), RQ_SLICE_LIT("x"), &r, &w->why));
    char name[RQ_ENCODED_NAME_LEN + 1], expected[300];
    snprintf(name, sizeof name, "%s", r->info->encoded);
    snprintf(expected, sizeof expected,
             "Unexpected state for state=OPEN, location=localhost,16020,%lld, table=t, region=%s",
             (long long)w->start_code, name);
    REFUSED(world_family(w, RQ_DDL_ASSIGN_REGION, "t", name), RQ_E_DO_NOT_RETRY_REGION, expected);
    for (int i = 0; i < 2; i++) {
        OK(world_family(w, RQ_DDL_UNASSIGN_REGION, "t", name));
        assert_int_equal(world_get(w, "t", "x", "f"), RQ_E_NOT_SERVING_REGION);
        OK(world_get(w, "t", "a", "f"));
        OK(rq_catalog_locate(w->catalog, RQ_SLICE_LIT("t"), RQ_SLICE_LIT("x"), &r, &w->why));
        assert_int_equal(r->state, RQ_REGION_CLOSED);
        assert_int_not_equal(world_family(w, RQ_DDL_UNASSIGN_REGION, "t", name), RQ_OK);
        OK(world_family(w, RQ_DDL_ASSIGN_REGION, "t", name));
        OK(world_get(w, "t", "x", "f"));
    }
    /* A start opens every region of an enabled table, also after a crash. */
    OK(world_family(w, RQ_DDL_UNASSIGN_REGION, "t", name));
    OK(world_close(w, false));
    OK(world_open(w));
    OK(world_get(w, "t", "x", "f"));
    /* A disabled table's regions are left alone; a region that is already closed does not prevent
     * the disable. */
    OK(world_family(w, RQ_DDL_UNASSIGN_REGION, "t", name));
    OK(world_table(w, RQ_DDL_DISABLE_TABLE, "t"));
    assert_int_equal(world_family(w, RQ_DDL_ASSIGN_REGION, "t", name), RQ_E_DO_NOT_RETRY);
    OK(world_table(w, RQ_DDL_ENABLE_TABLE, "t"));
    OK(world_get(w, "t", "x", "f"));
    REFUSED(world_family(w, RQ_DDL_UNASSIGN_REGION, "t", "none"), RQ_E_UNKNOWN_REGION, "none");
    teardown(w);
}

/* --- memory of unfinished procedures ---------------------------------------------------------- */

#define MANY 200

typedef struct many {
    unsigned done, refused;
} many;

typedef struct one_of_many {
    rq_ddl ddl;
    many *all;
} one_of_many;

static void count_submitted(rq_ddl *d)
{
    many *m = RQ_CONTAINER_OF(d, one_of_many, ddl)->all;
    if (d->rc == RQ_OK)
        m->done++;
    else if (d->rc == RQ_E_CALL_QUEUE_TOO_BIG)
        m->refused++;
}

static void unfinished_procedures_have_a_limit(void **state)
{
    (void)state;
    world *w = setup();
    OK(world_create(w, "t", "f", "m"));
    w->catalog->procedures.bytes_max = 64 * 1024;
    many m = {0};
    one_of_many *list = calloc(MANY, sizeof *list);
    for (size_t i = 0; i < MANY; i++) {
        list[i].all = &m;
        list[i].ddl = (rq_ddl){.kind = RQ_DDL_FLUSH_TABLE,
                               .ns = RQ_SLICE_LIT("default"),
                               .qualifier = RQ_SLICE_LIT("t"),
                               .wait_finished = true,
                               .submitted = count_submitted};
        rq_catalog_submit(w->catalog, &list[i].ddl);
    }
    while (m.done + m.refused < MANY)
        (void)world_table(w, RQ_DDL_FLUSH_TABLE, "t"); /* this call may be refused, too */
    assert_true(m.refused > 0);
    assert_true(m.done > 0);
    OK(world_table(w, RQ_DDL_FLUSH_TABLE, "t"));
    assert_int_equal(w->catalog->procedures.total.bytes, 0);
    free(list);
    teardown(w);
}

/* A client repeats a refused change as often as it likes. */
static void ends_of_procedures_have_a_limit_of_lines(void **state)
{
    (void)state;
    world *w = setup();
    rq_log_sink sink = RQ_LOG_SINK_INIT;
    rq_log *log = w->env->log;
    const int usual_fd = log->fd;
    const rq_log_level usual_level = log->level;
    uint64_t before[RQ_LOG_LEVELS], after[RQ_LOG_LEVELS];
    assert_int_equal(rq_config_set_pair(w->config, "rorqual.log.audit.rate=5", NULL), RQ_OK);
    OK(world_create(w, "t", "f", NULL));
    log->fd = open("/dev/null", O_WRONLY);
    log->level = RQ_LOG_INFO;
    log->sink = &sink;
    rq_log_get_lines(log, before);
    int64_t since = w->env->executor->now_ms(w->env->executor);
    for (int i = 0; i < 2000; i++)
        REFUSED(world_create(w, "t", "f", NULL), RQ_E_TABLE_EXISTS, "t");
    int64_t periods = (w->env->executor->now_ms(w->env->executor) - since) / 1000 + 1;
    rq_log_get_lines(log, after);
    close(log->fd);
    log->fd = usual_fd;
    log->level = usual_level;
    log->sink = NULL;
    assert_true(periods < 200);
    assert_in_range(after[RQ_LOG_INFO] - before[RQ_LOG_INFO], 1, 5 * (periods + 1));
    teardown(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_folder_has_the_system_tables_and_namespaces),
        cmocka_unit_test(a_created_table_takes_rows_in_each_region),
        cmocka_unit_test(a_table_has_more_regions_than_a_record_holds),
        cmocka_unit_test(create_refuses_what_hbase_refuses),
        cmocka_unit_test(a_table_goes_through_its_states),
        cmocka_unit_test(truncate_empties_and_keeps_or_drops_the_splits),
        cmocka_unit_test(families_are_added_changed_and_removed),
        cmocka_unit_test(a_family_removed_and_added_again_is_empty_after_crashes_too),
        cmocka_unit_test(namespaces_come_and_go),
        cmocka_unit_test(quotas_of_a_namespace_hold_when_they_are_enabled),
        cmocka_unit_test(a_drop_archives_what_is_not_hidden),
        cmocka_unit_test(a_retried_nonce_is_the_same_procedure),
        cmocka_unit_test(a_refused_nonce_keeps_its_refusal),
        cmocka_unit_test(a_nonce_comes_twice_while_its_record_is_written),
        cmocka_unit_test(results_are_kept_until_they_are_old),
        cmocka_unit_test(switches_are_remembered_as_hbase_remembers_them),
        cmocka_unit_test(a_table_whose_state_was_set_is_closed_before_its_files_change),
        cmocka_unit_test(lookups_answer_as_a_region_server),
        cmocka_unit_test(a_region_is_closed_and_opened_by_hand),
        cmocka_unit_test(unfinished_procedures_have_a_limit),
        cmocka_unit_test(ends_of_procedures_have_a_limit_of_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
