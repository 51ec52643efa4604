/* SPDX-License-Identifier: Apache-2.0 */
/* Settings (base/config.h): defaults, both forms of files, errors that name the setting and the
 * line, renamed settings. */
#include "unit.h"

#include "base/config.h"

#include <string.h>
#include <unistd.h>

static rq_config *fresh(void)
{
    rq_config *c;
    assert_int_equal(rq_config_new(&c), RQ_OK);
    return c;
}

static void defaults_are_there_and_can_be_changed(void **state)
{
    (void)state;
    rq_config *c = fresh();
    assert_int_equal(rq_config_int(c, RQ_SET_FLUSH_SIZE), 134217728);
    assert_false(rq_config_given(c, RQ_SET_FLUSH_SIZE));
    assert_int_equal(rq_config_set_pair(c, "hbase.hregion.memstore.flush.size=64m", NULL), RQ_OK);
    assert_int_equal(rq_config_int(c, RQ_SET_FLUSH_SIZE), 64 << 20);
    assert_true(rq_config_given(c, RQ_SET_FLUSH_SIZE));
    assert_int_equal(rq_config_set_pair(c, "hfile.block.cache.size=0.25", NULL), RQ_OK);
    assert_true(rq_config_real(c, RQ_SET_BLOCK_CACHE) == 0.25);
    assert_string_equal(rq_config_by_name(c, "rorqual.wal.sync"), "fdatasync");
    assert_null(rq_config_by_name(c, "hbase.rootdir"));
    rq_config_free(c);
}

static void unknown_names_and_bad_values_are_errors_that_name_them(void **state)
{
    (void)state;
    static const char *const bad[] = {"hbase.no.such.thing=1",
                                      "rorqual.loop=1",
                                      "hbase.hregion.memstore.flush.size=-1",
                                      "hbase.hregion.memstore.flush.size=1x",
                                      "hbase.table.sanity.checks=maybe",
                                      "hfile.block.cache.size=",
                                      "noequals",
                                      "=x"};
    rq_config *c = fresh();
    for (size_t i = 0; i < RQ_ARRAY_LEN(bad); i++) {
        rq_error why = {.code = RQ_OK};
        assert_int_equal(rq_config_set_pair(c, bad[i], &why), RQ_E_CONFIG);
        assert_true(why.message[0] != '\0');
    }
    assert_null(rq_config_unused(c, 0));
    rq_config_free(c);
}

static void hbases_unused_names_are_listed(void **state)
{
    (void)state;
    rq_config *c = fresh();
    assert_int_equal(rq_config_set_pair(c, "hbase.regionserver.handler.count=30", NULL), RQ_OK);
    assert_int_equal(rq_config_set_pair(c, "dfs.replication=3", NULL), RQ_OK);
    assert_string_equal(rq_config_unused(c, 0), "hbase.regionserver.handler.count");
    assert_string_equal(rq_config_unused(c, 1), "dfs.replication");
    assert_null(rq_config_unused(c, 2));
    assert_int_equal(rq_config_set_pair(c, "hbase.regionserver.handler.count= 40 ", NULL), RQ_OK);
    assert_string_equal(rq_config_unused_value(c, 0), "40");
    assert_string_equal(rq_config_unused_value(c, 1), "3");
    assert_null(rq_config_unused_value(c, 2));
    assert_null(rq_config_unused(c, 2));
    rq_config_free(c);
}

static rq_err load_text(rq_config *c, const char *text, rq_error *why)
{
    char path[] = "/tmp/rorqual-config-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (int)strlen(text));
    close(fd);
    rq_err rc = rq_config_load(c, path, why);
    unlink(path);
    return rc;
}

static void both_file_forms_are_read(void **state)
{
    (void)state;
    rq_config *c = fresh();
    assert_int_equal(load_text(c,
                               "# a comment\n\nhbase.hstore.compaction.min=5\n"
                               "rorqual.wal.sync=handover\n",
                               NULL),
                     RQ_OK);
    assert_int_equal(rq_config_int(c, RQ_SET_COMPACTION_MIN), 5);
    assert_int_equal(load_text(c,
                               "<?xml version=\"1.0\"?>\n<configuration>\n<property><name>hbase."
                               "hstore.compaction.max</name><value>7</value><description>x"
                               "</description></property><property><name>hbase.rootdir</name>"
                               "<value>file:///x</value></property></configuration>",
                               NULL),
                     RQ_OK);
    assert_int_equal(rq_config_int(c, RQ_SET_COMPACTION_MAX), 7);
    assert_string_equal(rq_config_unused(c, 0), "hbase.rootdir");
    rq_error why = {.code = RQ_OK};
    assert_int_equal(load_text(c, "<configuration><property>", &why), RQ_E_CONFIG);
    rq_config_free(c);
}

static void blanks_around_names_and_values_do_not_count(void **state)
{
    (void)state;
    rq_config *c = fresh();
    assert_int_equal(
        load_text(c,
                  "<configuration><property><name>\n hbase.hstore.compaction.max </name>"
                  "<value>\n   7\n  </value></property></configuration>",
                  NULL),
        RQ_OK);
    assert_int_equal(rq_config_int(c, RQ_SET_COMPACTION_MAX), 7);
    assert_int_equal(load_text(c, "  hbase.hstore.compaction.max = 8\t\r\n", NULL), RQ_OK);
    assert_int_equal(rq_config_int(c, RQ_SET_COMPACTION_MAX), 8);
    rq_config_free(c);
}

static void an_error_in_a_file_says_where(void **state)
{
    static const struct {
        const char *text, *where;
    } cases[] = {
        {"\n# a comment\r\n\r\nhbase.hstore.compaction.max=many\n", ":4: setting hbase.hstore"},
        {"what is this", ":1: 'what is this' is not"},
        {"<configuration>\n<property>\n<name>no.such.thing</name></property></configuration>",
         ":3: setting no.such.thing: unknown to"},
        {"<configuration>\n<property>", ":2: "},
    };
    (void)state;
    rq_config *c = fresh();
    for (size_t i = 0; i < RQ_ARRAY_LEN(cases); i++) {
        rq_error why = {.code = RQ_OK};
        assert_int_equal(load_text(c, cases[i].text, &why), RQ_E_CONFIG);
        if (strncmp(why.message, "/tmp/rorqual-config-", 20) != 0 ||
            strstr(why.message, cases[i].where) == NULL)
            fail_msg("%zu: %s", i, why.message);
    }
    rq_config_free(c);
}

static void values_out_of_range_are_refused(void **state)
{
    static const struct {
        const char *pair, *says;
    } cases[] = {
        {"hbase.hregion.memstore.flush.size=64", "64m is 64 MB"},
        {"hbase.hregion.memstore.flush.size=1k", "at least 64k"},
        {"hfile.block.cache.size=1.5", "0 to 1"},
        {"hfile.block.cache.size=nan", "not a number"},
        {"hfile.block.cache.size=inf", "not a number"},
        {"hbase.regionserver.global.memstore.size=0.9", "0.01 to 0.8"},
        {"hbase.zookeeper.property.clientPort=65536", "0 to 65535"},
        {"hbase.hstore.compaction.max=99999999999", "2147483647"},
        {"rorqual.wal.sync=sometimes", "fdatasync|handover"},
        {"rorqual.log.level=loud", "debug|info|warn|error"},
        {"rorqual.memory=1000", "0, or at least 1m"},
    };
    (void)state;
    rq_config *c = fresh();
    for (size_t i = 0; i < RQ_ARRAY_LEN(cases); i++) {
        rq_error why = {.code = RQ_OK};
        assert_int_equal(rq_config_set_pair(c, cases[i].pair, &why), RQ_E_CONFIG);
        if (strstr(why.message, cases[i].says) == NULL) fail_msg("%zu: %s", i, why.message);
    }
    assert_int_equal(rq_config_set_pair(c, "rorqual.memory=0", NULL), RQ_OK);
    assert_int_equal(
        rq_config_set_pair(c, "hbase.regionserver.optionalcacheflushinterval=-1", NULL), RQ_OK);
    rq_config_free(c);
}

static void every_default_is_in_its_range_and_every_line_is_whole(void **state)
{
    (void)state;
    rq_config *c = fresh();
    for (int s = 0; s < RQ_SETTING_COUNT; s++) {
        const rq_setting_info *i = rq_setting_get((rq_setting)s);
        rq_error why = {.code = RQ_OK};
        if (rq_config_set(c, i->name, i->fallback, &why) != RQ_OK) fail_msg("%s", why.message);
        assert_true(i->text[0] != '\0');
        assert_true(i->most == 0 || i->most >= i->least);
    }
    rq_config_free(c);
}

static void an_older_name_gives_way_to_the_newer_one(void **state)
{
    (void)state;
    for (int newer_first = 0; newer_first < 2; newer_first++) {
        rq_config *c = fresh();
        const char *pairs[] = {"hbase.hstore.compactionThreshold=7",
                               "hbase.hstore.compaction.min=5"};
        assert_int_equal(rq_config_set_pair(c, pairs[newer_first], NULL), RQ_OK);
        assert_int_equal(rq_config_int(c, RQ_SET_COMPACTION_MIN), newer_first ? 5 : 7);
        assert_int_equal(rq__config_given_by_older(c, RQ_SET_COMPACTION_MIN), !newer_first);
        assert_int_equal(rq_config_set_pair(c, pairs[1 - newer_first], NULL), RQ_OK);
        assert_int_equal(rq_config_int(c, RQ_SET_COMPACTION_MIN), 5);
        assert_null(rq_config_unused(c, 0));
        rq_config_free(c);
    }
}

/* The older name is a share of all memory, the newer one a share of the memstores'. */
static void the_older_low_mark_is_converted(void **state)
{
    (void)state;
    rq_config *c = fresh();
    assert_int_equal(
        rq_config_set_pair(c, "hbase.regionserver.global.memstore.upperLimit=0.5", NULL), RQ_OK);
    assert_int_equal(
        rq_config_set_pair(c, "hbase.regionserver.global.memstore.lowerLimit=0.4", NULL), RQ_OK);
    assert_int_equal(rq_config_set_pair(c, "hfile.block.cache.size=0.3", NULL), RQ_OK);
    assert_int_equal(rq_config_check(c, 0, NULL), RQ_OK);
    assert_true(rq_config_real(c, RQ_SET_GLOBAL_MEMSTORE) == 0.5);
    assert_true(rq_config_real(c, RQ_SET_GLOBAL_MEMSTORE_LOW) == 0.8);
    rq_config_free(c);
}

/* A size in bytes overrides the share, in whatever order the two settings are given. */
static void sizes_in_bytes_become_shares(void **state)
{
    (void)state;
    rq_config *c = fresh();
    rq_error why = {.code = RQ_OK};
    assert_int_equal(rq_config_set_pair(c, "rorqual.memory=1g", NULL), RQ_OK);
    assert_int_equal(rq_config_set_pair(c, "hfile.block.cache.memory.size=512m", NULL), RQ_OK);
    assert_int_equal(rq_config_set_pair(c, "hfile.block.cache.size=0.1", NULL), RQ_OK);
    assert_int_equal(
        rq_config_set_pair(c, "hbase.regionserver.global.memstore.memory.size=268435456", NULL),
        RQ_OK);
    assert_int_equal(rq_config_check(c, 0, &why), RQ_OK);
    assert_true(rq_config_real(c, RQ_SET_BLOCK_CACHE) == 0.5);
    assert_true(rq_config_real(c, RQ_SET_GLOBAL_MEMSTORE) == 0.25);
    assert_int_equal(rq_config_set_pair(c, "hfile.block.cache.memory.size=600m", NULL), RQ_OK);
    assert_int_equal(rq_config_check(c, 0, &why), RQ_E_CONFIG);
    assert_non_null(strstr(why.message, "their sum is above 0.8"));
    why = (rq_error){.code = RQ_OK};
    assert_int_equal(rq_config_set_pair(c, "hfile.block.cache.memory.size=8g", NULL), RQ_OK);
    assert_int_equal(rq_config_check(c, 0, &why), RQ_E_CONFIG);
    assert_string_equal(why.message, "setting hfile.block.cache.memory.size: 8g is too much for a "
                                     "memory budget of 1024 MB (rorqual.memory)");
    rq_config_free(c);
}

static void sums_memory_and_znode_are_checked(void **state)
{
    static const struct {
        const char *pair, *says;
    } cases[] = {
        {"hfile.block.cache.size=0.41", "their sum is above 0.8"},
        {"rorqual.memory=2g", "1024 MB"},
        {"zookeeper.znode.parent=hbase", "not a path"},
        {"zookeeper.znode.parent=/", "not a path"},
        {"zookeeper.znode.parent=/x/", "not a path"},
    };
    (void)state;
    for (size_t i = 0; i < RQ_ARRAY_LEN(cases); i++) {
        rq_config *c = fresh();
        rq_error why = {.code = RQ_OK};
        assert_int_equal(rq_config_check(c, 1 << 30, &why), RQ_OK);
        assert_int_equal(rq_config_set_pair(c, cases[i].pair, NULL), RQ_OK);
        assert_int_equal(rq_config_check(c, 1 << 30, &why), RQ_E_CONFIG);
        if (strstr(why.message, cases[i].says) == NULL) fail_msg("%zu: %s", i, why.message);
        rq_config_free(c);
    }
}

typedef struct changes {
    unsigned count, reloading;
} changes;

static void count_change(void *ctx, rq_setting s, const char *text)
{
    changes *n = ctx;
    assert_non_null(text);
    n->count++;
    n->reloading += rq_setting_get(s)->reloads;
}

static void reloadable_settings_apply_and_old_strings_stay_valid(void **state)
{
    (void)state;
    rq_config *c = fresh(), *from = fresh();
    changes n = {0};
    assert_int_equal(rq_config_set_pair(from, "hbase.hstore.compaction.ratio=2.5", NULL), RQ_OK);
    assert_int_equal(rq_config_set_pair(from, "rorqual.log.level=debug", NULL), RQ_OK);
    assert_int_equal(rq_config_set_pair(from, "rorqual.loops=3", NULL), RQ_OK);
    const char *before = rq_config_text(c, RQ_SET_LOG_LEVEL);
    assert_int_equal(rq_config_take(c, from, count_change, &n), RQ_OK);
    assert_int_equal(n.count, 3);
    assert_int_equal(n.reloading, 2);
    assert_string_equal(before, "info");
    assert_string_equal(rq_config_text(c, RQ_SET_LOG_LEVEL), "debug");
    assert_true(rq_config_real(c, RQ_SET_COMPACTION_RATIO) == 2.5);
    assert_int_equal(rq_config_int(c, RQ_SET_LOOPS), 0);
    n = (changes){0};
    assert_int_equal(rq_config_take(c, from, count_change, &n), RQ_OK);
    assert_int_equal(n.count, 1); /* the change that needs a restart */
    rq_config_free(from);
    rq_config_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_there_and_can_be_changed),
        cmocka_unit_test(unknown_names_and_bad_values_are_errors_that_name_them),
        cmocka_unit_test(hbases_unused_names_are_listed),
        cmocka_unit_test(both_file_forms_are_read),
        cmocka_unit_test(blanks_around_names_and_values_do_not_count),
        cmocka_unit_test(an_error_in_a_file_says_where),
        cmocka_unit_test(values_out_of_range_are_refused),
        cmocka_unit_test(every_default_is_in_its_range_and_every_line_is_whole),
        cmocka_unit_test(an_older_name_gives_way_to_the_newer_one),
        cmocka_unit_test(the_older_low_mark_is_converted),
        cmocka_unit_test(sizes_in_bytes_become_shares),
        cmocka_unit_test(sums_memory_and_znode_are_checked),
        cmocka_unit_test(reloadable_settings_apply_and_old_strings_stay_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
