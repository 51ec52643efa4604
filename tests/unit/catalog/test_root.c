/* SPDX-License-Identifier: Apache-2.0 */
/* Which folders are accepted, which are refused, and that a refused one stays unchanged. */
#include "world.h"

#include "base/pb.h"
#include "cell/cellblock.h"
#include "catalog/fsck.h"
#include "catalog/root_priv.h"
#include "hfile/writer.h"
#include "proto/procedure.pb-c.h"
#include "proto/wal.pb-c.h"

/* Opening fails with this error and a text that contains `part`, and no byte has changed. */
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

static void a_damaged_folder_of_hbase_is_refused(void **state)
{
    (void)state;
    world *w = empty();
    put_file(w, "hbase.version", "PBUF\n\0018");
    put_file(w, "data/default/t/.tabledesc/.tableinfo.0000000001.5", "hello");
    refused(w, RQ_E_NOT_FOUND, "hbase.id"); /* a complete folder would be taken over */
    put_file(w, "MasterData/WALs/h,1,2/x", "no log");
    refused(w, RQ_E_CORRUPT, "MasterData/WALs/h,1,2/x");
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

/* Writes a log as HBase does, with one put into f of table t. */
static void put_log(world *w, const char *path, const char *region, uint64_t seqid, bool compressed)
{
    uint8_t bytes[600] = "PWAL";
    Pb__WALHeader header = PB__WALHEADER__INIT;
    header.has_has_compression = header.has_compression = compressed;
    size_t n = 4 + rq_put_varint(bytes + 4, pb__walheader__get_packed_size(&header));
    n += pb__walheader__pack(&header, bytes + n);
    Pb__WALKey key = PB__WALKEY__INIT;
    key.encoded_region_name = (ProtobufCBinaryData){strlen(region), (uint8_t *)(uintptr_t)region};
    key.table_name = (ProtobufCBinaryData){1, (uint8_t *)(uintptr_t) "t"};
    key.log_sequence_number = seqid;
    key.has_following_kv_count = true;
    key.following_kv_count = 1;
    n += rq_put_varint(bytes + n, pb__walkey__get_packed_size(&key));
    n += pb__walkey__pack(&key, bytes + n);
    rq_cell cell = {.row = (const uint8_t *)"r",
                    .row_len = 1,
                    .family = (const uint8_t *)"f",
                    .family_len = 1,
                    .timestamp = 1,
                    .type = RQ_TYPE_PUT};
    rq_cellblock cells = {.with_tags = true};
    assert_int_equal(rq_cellblock_append(&cells, &cell), RQ_OK);
    memcpy(bytes + n, cells.bytes.ptr, cells.bytes.len);
    n += cells.bytes.len;
    rq_cellblock_clear(&cells);
    memcpy(bytes + n, "\0\0\0\0LAWP", 8);
    n += 8;
    char dir[100];
    rq_error why = {0};
    snprintf(dir, sizeof dir, "%.*s", (int)(strrchr(path, '/') - path), path);
    assert_int_equal(rq_vfs_mkdirs(w->env->vfs, dir, &why), RQ_OK);
    assert_int_equal(rq_vfs_write_new_file(w->env->vfs, path, rq_slice_of(bytes, n), &why), RQ_OK);
}

/* The encoded name of t's only region. */
static void region_of_t(world *w, char ret[64])
{
    rq_arena a = {0};
    rq_dir_entry *entries;
    size_t count;
    assert_int_equal(rq_vfs_list(w->env->vfs, "data/default/t", &a, &entries, &count, NULL), RQ_OK);
    for (size_t i = 0; i < count; i++)
        if (entries[i].name[0] != '.') snprintf(ret, 64, "%s", entries[i].name);
    rq_arena_clear(&a);
}

static void print_problem(void *ctx, rq_finding level, const char *place, const char *text)
{
    (void)ctx;
    if (level == RQ_FINDING_PROBLEM) print_message("%s: %s\n", place, text);
}

/* The number of problems that fsck finds. */
static uint64_t problems(world *w)
{
    rq_fsck_totals totals;
    const rq_fsck_options o = {.findings = {print_problem, NULL, NULL}};
    assert_int_equal(rq_fsck(w->env->vfs, &o, &totals, NULL), RQ_OK);
    return totals.problems;
}

static void logs_of_an_hbase_that_ran_in_between_are_not_passed_over(void **state)
{
    (void)state;
    static const char *const files[] = {"WALs/h,1,2/h%2C1%2C2.3", "MasterData/WALs/h,1,2/x"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(files); i++) {
        char region[64];
        world *w = with_a_table();
        put_file(w, files[i], "edits");
        refused(w, RQ_E_CORRUPT, files[i]);
        end(w);
        w = with_a_table();
        region_of_t(w, region);
        put_log(w, files[i], region, 7, false);
        refused(w, RQ_E_STATE, files[i]);
        end(w);
        w = with_a_table();
        put_log(w, files[i], region, 7, true);
        refused(w, RQ_E_UNSUPPORTED, "compressed");
        end(w);
    }
    /* The log may lack edits that a killed HBase had acknowledged. */
    world *w = with_a_table();
    put_log(w, files[0], "0123456789abcdef0123456789abcdef", 7, false);
    refused(w, RQ_E_STATE, "that was not stopped");
    end(w);
    w = with_a_table();
    put_file(w, files[0], "");
    refused(w, RQ_E_STATE, files[0]);
    end(w);
    /* The edits are of another region: HBase would skip them. The region is opened, and the file is
     * moved away. */
    w = with_a_table();
    char region[64];
    char path[200];
    region_of_t(w, region);
    put_log(w, "MasterData/WALs/h,1,2/x", "0123456789abcdef0123456789abcdef", 7, false);
    snprintf(path, sizeof path, "data/default/t/%s/recovered.edits/0000000000000000007", region);
    put_log(w, path, "0123456789abcdef0123456789abcdef", 7, false);
    assert_int_equal(problems(w), 0);
    assert_int_equal(world_open(w), RQ_OK);
    assert_int_equal(world_put(w, "t", "a", "f"), RQ_OK);
    end(w);
    w = with_a_table();
    region_of_t(w, region); /* a new name if the seed is the time */
    snprintf(path, sizeof path, "data/default/t/%s/recovered.edits/0000000000000000007", region);
    put_log(w, "MasterData/WALs/h,1,2/x", "0123456789abcdef0123456789abcdef", 7, false);
    put_log(w, path, region, 7, false);
    assert_int_equal(problems(w), 2); /* fsck reports the takeover and the file */
    refused(w, RQ_E_STATE, "recovered.edits");
    end(w);
    /* Other files in recovered.edits are not edits: leftovers of an interrupted log split, HBase
     * 1's sequence ids. */
    static const char *const others[] = {"0000000000000000009.temp", "0000000000000000007_seqid",
                                         "0000000000000000005.1700000000000"};
    w = with_a_table();
    region_of_t(w, region);
    put_log(w, "MasterData/WALs/h,1,2/x", "0123456789abcdef0123456789abcdef", 7, false);
    for (size_t i = 0; i < RQ_ARRAY_LEN(others); i++) {
        snprintf(path, sizeof path, "data/default/t/%s/recovered.edits/%s", region, others[i]);
        put_file(w, path, "x");
    }
    assert_int_equal(world_open(w), RQ_OK);
    assert_int_equal(world_put(w, "t", "a", "f"), RQ_OK);
    end(w);
    w = with_a_table(); /* edits as HFiles, which HBase loads when it opens the region */
    region_of_t(w, region);
    put_log(w, "MasterData/WALs/h,1,2/x", "0123456789abcdef0123456789abcdef", 7, false);
    snprintf(path, sizeof path, "data/default/t/%s/f/recovered.hfiles/7-h", region);
    put_file(w, path, "");
    assert_int_equal(world_open(w), RQ_OK); /* an empty file is accepted */
    assert_int_equal(world_close(w, true), RQ_OK);
    put_log(w, "MasterData/WALs/h,1,2/x", "0123456789abcdef0123456789abcdef", 7, false);
    snprintf(path, sizeof path, "data/default/t/%s/f/recovered.hfiles/8-h", region);
    put_file(w, path, "x");
    refused(w, RQ_E_STATE, "recovered.hfiles/8-h");
    end(w);
    w = with_a_table(); /* folders with unknown contents are not removed */
    put_file(w, "MasterData/WALs/h,1,2/deeper/x", "x");
    refused(w, RQ_E_UNSUPPORTED, "MasterData/WALs/h,1,2/deeper/x");
    end(w);
    w = with_a_table(); /* a clean stop of HBase leaves empty folders and logs without edits */
    assert_int_equal(rq_vfs_mkdirs(w->env->vfs, "WALs/h,1,2-splitting", NULL), RQ_OK);
    put_log(w, "MasterData/WALs/h,1,2/x", "0123456789abcdef0123456789abcdef", 7, false);
    assert_int_equal(world_open(w), RQ_OK);
    rq_stat st;
    assert_int_equal(rq_vfs_stat(w->env->vfs, "MasterData/WALs/h,1,2", &st, NULL), RQ_E_NOT_FOUND);
    assert_int_equal(rq_vfs_stat(w->env->vfs, "MasterData/oldWALs/x", &st, NULL), RQ_OK);
    end(w);
}

/* Whichever call fails, a log with edits is not taken for the log of something that was dropped. */
static void an_error_does_not_make_edits_forgotten(void **state)
{
    (void)state;
    char region[64];
    world *w = with_a_table();
    rq_root *root;
    region_of_t(w, region);
    put_log(w, "MasterData/WALs/h,1,2/x", region, 7, false);
    uint64_t fails_at = 0;
    for (uint64_t nth = 1; fails_at <= rq_sim_calls(w->sim); nth++) {
        rq_error why = {0};
        fails_at = rq_sim_calls(w->sim) + nth;
        rq_sim_fail_at(w->sim, fails_at, RQ_E_IO);
        assert_int_not_equal(rq_root_open(w->env, &root, &why), RQ_OK);
    }
    end(w);
}

/* A file of HBase's procedure store with one record. */
static void put_procedure(world *w, uint64_t id, const char *java_class, uint64_t parent,
                          Pb__ProcedureState state)
{
    static const char dir[] = "MasterData/data/master/store/1595e783b53d99cd5eef43b6debb2682/proc";
    uint8_t row[8];
    uint8_t value[200];
    char path[200];
    Pb__Procedure m = PB__PROCEDURE__INIT;
    m.class_name = (char *)(uintptr_t)java_class;
    m.proc_id = id;
    m.has_parent_id = parent != 0;
    m.parent_id = parent;
    m.state = state;
    rq_put_be64(row, id);
    rq_cell cell = {.row = row,
                    .row_len = 8,
                    .family = (const uint8_t *)"proc",
                    .family_len = 4,
                    .qualifier = (const uint8_t *)"d",
                    .qualifier_len = 1,
                    .timestamp = 1,
                    .seqid = 1,
                    .type = RQ_TYPE_PUT,
                    .value = value,
                    .value_len = (uint32_t)pb__procedure__pack(&m, value)};
    rq_hfile_options o = rq_hfile_options_default();
    rq_hfile_writer *out;
    snprintf(path, sizeof path, "%s/%032llx", dir, (unsigned long long)id);
    assert_int_equal(rq_vfs_mkdirs(w->env->vfs, dir, NULL), RQ_OK);
    assert_int_equal(rq_hfile_writer_open(w->env->vfs, path, &o, &out, NULL), RQ_OK);
    assert_int_equal(rq_hfile_writer_append(out, &cell, NULL), RQ_OK);
    assert_int_equal(rq_hfile_writer_set_store_info(out, 1, false, NULL, 0, NULL), RQ_OK);
    assert_int_equal(rq_hfile_writer_finish(out, NULL, NULL), RQ_OK);
    rq_hfile_writer_close(out);
}

static void only_procedures_of_a_crash_may_be_unfinished(void **state)
{
    (void)state;
    static const char log[] = "MasterData/WALs/h,1,2/x";
    static const char nowhere[] = "0123456789abcdef0123456789abcdef";
    world *w = with_a_table();
    put_log(w, log, nowhere, 7, false);
    put_procedure(w, 900, "o.a.h.hbase.master.procedure.CreateTableProcedure", 0,
                  PB__PROCEDURE_STATE__RUNNABLE);
    refused(w, RQ_E_STATE, "procedure 900");
    end(w);
    w = with_a_table();
    put_log(w, log, nowhere, 7, false);
    put_procedure(w, 900, "o.a.h.hbase.master.procedure.CreateTableProcedure", 0,
                  PB__PROCEDURE_STATE__SUCCESS);
    put_procedure(w, 901, "o.a.h.hbase.master.procedure.ServerCrashProcedure", 0,
                  PB__PROCEDURE_STATE__WAITING);
    put_procedure(w, 902, "o.a.h.hbase.master.assignment.TransitRegionStateProcedure", 901,
                  PB__PROCEDURE_STATE__RUNNABLE);
    assert_int_equal(world_open(w), RQ_OK);
    assert_int_equal(world_close(w, true), RQ_OK);
    assert_int_equal(world_open(w), RQ_OK);
    end(w);
}

static void hbase_writes_after_our_crash_are_not_mixed_with_the_log(void **state)
{
    (void)state;
    world *w = with_a_table();
    assert_int_equal(world_open(w), RQ_OK);
    assert_int_equal(world_close(w, false), RQ_OK);
    put_log(w, "MasterData/WALs/h,1,2/x", "0123456789abcdef0123456789abcdef", 7, false);
    refused(w, RQ_E_STATE, "had crashed");
    end(w);
}

/* A folder without the version file is laid out again only if no table can be lost. */
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

/* Runs the cleaner with a time to live of 0: files that nothing refers to are deleted at once. */
static bool is_there_after_a_round(world *w, const char *path)
{
    bool ran;
    rq_stat st;
    assert_int_equal(rq_catalog_clean_archive(w->catalog, &ran, NULL), RQ_OK);
    assert_true(ran);
    return rq_vfs_stat(w->env->vfs, path, &st, NULL) == RQ_OK;
}

static void what_links_and_snapshots_of_hbase_refer_to_stays_in_the_archive(void **state)
{
    (void)state;
    static const char file[] = "archive/data/n/origin/0a/f/33";
    static const char entry[] = "archive/data/n/origin/0a/f/.links-33/0b.clone";
    static const char link[] = "data/default/clone/0b/f/n=origin=0a-33";
    static const char other[] = "archive/data/n/origin/0a/f/44";
    world w;
    world_init(&w, unit_seed(), NULL);
    assert_int_equal(rq_config_set(w.config, "hbase.master.hfilecleaner.ttl", "0", NULL), RQ_OK);
    assert_int_equal(world_open(&w), RQ_OK);
    put_file(&w, file, "x");
    put_file(&w, entry, "");
    put_file(&w, link, "");
    put_file(&w, other, "x");
    put_file(&w, ".hbase-snapshot/s/.snapshotinfo", "x");
    assert_true(is_there_after_a_round(&w, other));
    assert_int_equal(rq_vfs_remove_tree(w.env->vfs, ".hbase-snapshot/s", NULL), RQ_OK);
    assert_false(is_there_after_a_round(&w, other));
    assert_true(is_there_after_a_round(&w, file));
    assert_true(is_there_after_a_round(&w, entry));
    assert_int_equal(rq_vfs_remove(w.env->vfs, link, NULL), RQ_OK);
    assert_false(is_there_after_a_round(&w, entry));
    assert_false(is_there_after_a_round(&w, file));
    assert_int_equal(rq_vfs_remove_tree(w.env->vfs, "data/default/clone", NULL), RQ_OK);
    world_clear(&w);
}

/* Writes a SnapshotDataManifest with one region, one family and these files. */
static void put_snapshot(world *w, const char *name, const char *const *files, size_t count)
{
    rq_buf out = {0};
    size_t region, family, file;
    char path[100];
    assert_int_equal(rq_pb_put_bytes(&out, 1, RQ_SLICE_LIT("descriptor")), RQ_OK);
    assert_int_equal(rq_pb_begin(&out, 2, &region), RQ_OK);
    assert_int_equal(rq_pb_put_number(&out, 1, 2), RQ_OK);
    assert_int_equal(rq_pb_put_bytes(&out, 2, RQ_SLICE_LIT("region")), RQ_OK);
    assert_int_equal(rq_pb_begin(&out, 3, &family), RQ_OK);
    assert_int_equal(rq_pb_put_bytes(&out, 1, RQ_SLICE_LIT("f")), RQ_OK);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(rq_pb_begin(&out, 2, &file), RQ_OK);
        assert_int_equal(rq_pb_put_bytes(&out, 1, rq_slice_cstr(files[i])), RQ_OK);
        assert_int_equal(rq_pb_put_number(&out, 3, 4711), RQ_OK);
        assert_int_equal(rq_pb_end(&out, file), RQ_OK);
    }
    assert_int_equal(rq_pb_end(&out, family), RQ_OK);
    assert_int_equal(rq_pb_end(&out, region), RQ_OK);
    snprintf(path, sizeof path, ".hbase-snapshot/%s", name);
    assert_int_equal(rq_vfs_mkdirs(w->env->vfs, path, NULL), RQ_OK);
    snprintf(path, sizeof path, ".hbase-snapshot/%s/data.manifest", name);
    assert_int_equal(rq_vfs_write_new_file(w->env->vfs, path, rq_buf_slice(&out), NULL), RQ_OK);
    snprintf(path, sizeof path, ".hbase-snapshot/%s/.snapshotinfo", name);
    put_file(w, path, "x");
    rq_buf_clear(&out);
}

static void a_snapshot_of_hbase_holds_the_files_it_names(void **state)
{
    (void)state;
    static const char *const named[] = {"aa", "bb.0123", "t=0a-cc", "n=t=0a-dd.0123",
                                        "ee_SeqId_4_"};
    static const char *const held[] = {"aa", "bb", "cc", "dd", "ee_SeqId_4_"};
    char path[100];
    world w;
    world_init(&w, unit_seed(), NULL);
    assert_int_equal(rq_config_set(w.config, "hbase.master.hfilecleaner.ttl", "0", NULL), RQ_OK);
    assert_int_equal(world_open(&w), RQ_OK);
    put_snapshot(&w, "s", named, 3);
    put_snapshot(&w, "s2", named + 3, 2);
    put_file(&w, ".hbase-snapshot/.tmp/s3/.snapshotinfo", "x"); /* a snapshot that was being made */
    for (size_t i = 0; i < RQ_ARRAY_LEN(held); i++) {
        snprintf(path, sizeof path, "archive/data/default/t/0a/f/%s", held[i]);
        put_file(&w, path, "x");
    }
    put_file(&w, "archive/data/default/t/0a/f/ff", "x");
    assert_false(is_there_after_a_round(&w, "archive/data/default/t/0a/f/ff"));
    for (size_t i = 0; i < RQ_ARRAY_LEN(held); i++) {
        snprintf(path, sizeof path, "archive/data/default/t/0a/f/%s", held[i]);
        assert_true(is_there_after_a_round(&w, path));
    }
    put_file(&w, ".hbase-snapshot/s4/.snapshotinfo", "x");
    put_file(&w, ".hbase-snapshot/s4/data.manifest", ""); /* a manifest without contents */
    put_file(&w, "archive/data/default/t/0a/f/ff", "x");
    assert_true(is_there_after_a_round(&w, "archive/data/default/t/0a/f/ff"));
    assert_int_equal(rq_vfs_remove_tree(w.env->vfs, ".hbase-snapshot", NULL), RQ_OK);
    assert_false(is_there_after_a_round(&w, "archive/data/default/t/0a/f/ff"));
    assert_false(is_there_after_a_round(&w, "archive/data/default/t/0a/f/aa"));
    world_clear(&w);
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

#define CLUSTER "5b1d2a44-93c0-4a0e-8b2f-000000000001"
#define OTHER_CLUSTER "5b1d2a44-93c0-4a0e-8b2f-000000000002"

/* --- the files of a cluster ------------------------------------------------------------------- */

static void a_clusters_files_are_not_a_standalone_folder(void **state)
{
    (void)state;
    world *w = empty();
    rq_error why = {0};
    rq_root_state look;
    assert_int_equal(rq_root_join(w->env->vfs, CLUSTER, &why), RQ_OK);
    assert_int_equal(rq_root_join(w->env->vfs, CLUSTER, &why), RQ_OK);
    refused(w, RQ_E_STATE, "has the files of a cluster");
    assert_int_equal(rq_root_look(w->env->vfs, &look, &why), RQ_E_STATE);
    end(w);
}

static void files_are_of_one_cluster(void **state)
{
    (void)state;
    world *w = empty();
    rq_error why = {0};
    assert_int_equal(rq_root_join(w->env->vfs, CLUSTER, &why), RQ_OK);
    char *before = rq_sim_tree(w->sim);
    assert_int_equal(rq_root_join(w->env->vfs, OTHER_CLUSTER, &why), RQ_E_STATE);
    assert_non_null(strstr(why.message, "of another cluster"));
    char *after = rq_sim_tree(w->sim);
    assert_string_equal(before, after);
    free(before);
    free(after);
    end(w);
}

/* The same for a cluster whose logs are elsewhere. */
static void a_cluster_knows_the_folder_that_it_claimed(void **state)
{
    (void)state;
    world *w = empty();
    rq_error why = {0};
    assert_int_equal(rq_root_check_claim(w->env->vfs, CLUSTER, &why), RQ_E_STATE);
    assert_non_null(strstr(why.message, "Is its file system mounted"));
    why = (rq_error){0};
    assert_int_equal(rq_root_claim(w->env->vfs, CLUSTER, &why), RQ_OK);
    assert_int_equal(rq_root_claim(w->env->vfs, CLUSTER, &why), RQ_OK);
    /* claims the folder as another process would */
    assert_int_equal(rq_root_claim(w->env->vfs, OTHER_CLUSTER, &why), RQ_OK);
    assert_int_equal(rq_root_check_claim(w->env->vfs, CLUSTER, &why), RQ_OK);
    assert_int_equal(rq_root_join(w->env->vfs, CLUSTER, &why), RQ_OK);
    assert_int_equal(rq_root_check_claim(w->env->vfs, CLUSTER, &why), RQ_OK);
    refused(w, RQ_E_STATE, "has the files of a cluster");
    assert_int_equal(rq_root_claim(w->env->vfs, OTHER_CLUSTER, &why), RQ_E_STATE);
    assert_non_null(strstr(why.message, "has the files of a cluster"));
    end(w);
}

/* A server was killed while it wrote the mark. */
static void an_unfinished_mark_is_completed(void **state)
{
    (void)state;
    static const char line[] = CLUSTER "\n";
    for (size_t len = 0; len < sizeof line; len++) {
        world *w = empty();
        rq_error why = {0};
        char part[sizeof line];
        snprintf(part, sizeof part, "%.*s", (int)len, line);
        put_file(w, ".rorqual/cluster", part);
        assert_int_equal(rq_root_join(w->env->vfs, CLUSTER, &why), RQ_OK);
        char *tree = rq_sim_tree(w->sim);
        refused(w, RQ_E_STATE, "has the files of a cluster");
        assert_int_equal(rq_root_join(w->env->vfs, CLUSTER, &why), RQ_OK);
        char *again = rq_sim_tree(w->sim);
        assert_string_equal(tree, again);
        free(tree);
        free(again);
        end(w);
    }
}

static void cannot_join(world *w, rq_err error, const char *part)
{
    rq_error why = {0};
    char *before = rq_sim_tree(w->sim);
    assert_string_equal(rq_err_name(rq_root_claim(w->env->vfs, CLUSTER, &why)), rq_err_name(error));
    rq_error_clear(&why);
    assert_string_equal(rq_err_name(rq_root_join(w->env->vfs, CLUSTER, &why)), rq_err_name(error));
    if (strstr(why.message, part) == NULL) fail_msg("\"%s\" says nothing of %s", why.message, part);
    char *after = rq_sim_tree(w->sim);
    assert_string_equal(before, after);
    free(before);
    free(after);
    end(w);
}

static void a_cluster_takes_no_folder_that_is_used(void **state)
{
    (void)state;
    world *w = with_a_table();
    cannot_join(w, RQ_E_STATE, "of a standalone server");
    w = empty();
    put_file(w, "hbase.version", "x");
    cannot_join(w, RQ_E_STATE, "of a standalone server or of HBase");
    w = empty();
    put_file(w, "letters/first", "x");
    cannot_join(w, RQ_E_UNSUPPORTED, "letters");
}

/* No process holds the folder's lock: a stopped master (SIGSTOP) must not block the next master. */
static void masters_of_a_cluster_share_its_files(void **state)
{
    (void)state;
    world *w = empty();
    rq_error why = {0};
    rq_root *first, *second;
    assert_int_equal(rq_root_join(w->env->vfs, CLUSTER, &why), RQ_OK);
    assert_int_equal(rq_root_open_joined(w->env, CLUSTER, &first, &why), RQ_OK);
    assert_true(rq_root_is_new(first));
    assert_string_equal(rq_root_cluster_id(first), CLUSTER);
    assert_int_equal(rq_root_open_joined(w->env, CLUSTER, &second, &why), RQ_OK);
    assert_string_equal(rq_root_cluster_id(second), CLUSTER);
    rq_root_close(second);
    rq_root_close(first);
    end(w);
}

static void check_version(world *w, const char *expected)
{
    rq_arena a = {0};
    rq_slice text;
    assert_int_equal(rq_vfs_read_file(w->env->vfs, ".rorqual/version", 100, &a, &text, NULL),
                     RQ_OK);
    assert_true(rq_slice_eq(text, rq_slice_cstr(expected)));
    rq_arena_clear(&a);
}

/* A master that was paused goes on after a newer version has raised the format's version. */
static void a_master_does_not_lower_the_version(void **state)
{
    (void)state;
    world *w = empty();
    rq_error why = {0};
    rq_root *fresh, *old;
    assert_int_equal(rq_root_join(w->env->vfs, CLUSTER, &why), RQ_OK);
    assert_int_equal(rq_root_open_joined(w->env, CLUSTER, &fresh, &why), RQ_OK);
    assert_int_equal(rq__root_write_identity(fresh, &why), RQ_OK);
    put_file(w, ".rorqual/version", "2\n");
    assert_int_equal(rq__root_seal(fresh, &why), RQ_E_VERSION);
    check_version(w, "2\n");
    put_file(w, ".rorqual/version", "1\n");
    assert_int_equal(rq_root_open_joined(w->env, CLUSTER, &old, &why), RQ_OK);
    put_file(w, ".rorqual/version", "2\n");
    assert_int_equal(rq__root_mark_open(old, &why), RQ_E_VERSION);
    check_version(w, "2\n");
    rq_root_close(old);
    rq_root_close(fresh);
    end(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_running_server_keeps_others_out),
        cmocka_unit_test(a_newer_folder_is_refused),
        cmocka_unit_test(a_folder_of_another_hbase_version_is_refused),
        cmocka_unit_test(a_damaged_folder_of_hbase_is_refused),
        cmocka_unit_test(a_folder_with_something_else_in_it_is_refused),
        cmocka_unit_test(logs_of_an_hbase_that_ran_in_between_are_not_passed_over),
        cmocka_unit_test(an_error_does_not_make_edits_forgotten),
        cmocka_unit_test(only_procedures_of_a_crash_may_be_unfinished),
        cmocka_unit_test(hbase_writes_after_our_crash_are_not_mixed_with_the_log),
        cmocka_unit_test(a_lost_version_file_does_not_cost_a_table),
        cmocka_unit_test(what_links_and_snapshots_of_hbase_refer_to_stays_in_the_archive),
        cmocka_unit_test(a_snapshot_of_hbase_holds_the_files_it_names),
        cmocka_unit_test(the_cluster_keeps_its_id),
        cmocka_unit_test(a_clusters_files_are_not_a_standalone_folder),
        cmocka_unit_test(files_are_of_one_cluster),
        cmocka_unit_test(a_cluster_knows_the_folder_that_it_claimed),
        cmocka_unit_test(an_unfinished_mark_is_completed),
        cmocka_unit_test(a_cluster_takes_no_folder_that_is_used),
        cmocka_unit_test(a_master_does_not_lower_the_version),
        cmocka_unit_test(masters_of_a_cluster_share_its_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
