/* SPDX-License-Identifier: Apache-2.0 */
/* Compaction attributes of a descriptor: HBase's sanity checks with its texts, and the supported
 * classes. */
#include "catalog/descriptor_change.h"
#include "fixture.h"

#include <string.h>

#define POLICY "hbase.hstore.defaultengine.compactionpolicy.class"
#define ENGINE "hbase.hstore.engine.class"
#define PACKAGE "org.apache.hadoop.hbase.regionserver."
#define FIFO PACKAGE "compactions.FIFOCompactionPolicy"

static void expect(family_def family, const char *text)
{
    rq_table_schema *s = make_schema("default", "t", &family, 1);
    rq_error why = {0};
    rq_err rc = rq__descriptor_check(NULL, s, &why);
    rq_table_schema_unref(s);
    if (text == NULL) {
        if (rc != RQ_OK) fail_msg("refused: %s", why.message);
        return;
    }
    assert_err(rc, RQ_E_DO_NOT_RETRY);
    if (strstr(why.message, text) == NULL) fail_msg("'%s', not '%s'", why.message, text);
}

static void fifo_needs_an_end_of_its_cells_and_no_limit_of_files(void **state)
{
    (void)state;
    expect((family_def){"f", {POLICY, FIFO}},
           "Default TTL is not supported for FIFO compaction Set hbase.table.sanity.checks");
    expect((family_def){"f", {POLICY, FIFO, "TTL", "100", "VERSIONS", "3", "MIN_VERSIONS", "1"}},
           "MIN_VERSION > 0 is not supported for FIFO compaction");
    expect((family_def){"f", {POLICY, FIFO, "TTL", "100"}},
           "Blocking file count 'hbase.hstore.blockingStoreFiles' 16 is below recommended minimum "
           "of 1000 for column family f");
    expect(
        (family_def){"f", {POLICY, FIFO, "TTL", "100", "hbase.hstore.blockingStoreFiles", "999"}},
        "999 is below");
    expect(
        (family_def){"f", {POLICY, FIFO, "TTL", "100", "hbase.hstore.blockingStoreFiles", "1000"}},
        NULL);
}

static void classes_that_are_not_served_are_refused(void **state)
{
    (void)state;
    expect((family_def){"f", {ENGINE, PACKAGE "DateTieredStoreEngine"}}, NULL);
    expect((family_def){"f", {ENGINE, PACKAGE "DefaultStoreEngine"}}, NULL);
    expect((family_def){"f", {POLICY, PACKAGE "compactions.RatioBasedCompactionPolicy"}}, NULL);
    expect((family_def){"f", {ENGINE, PACKAGE "StripeStoreEngine"}}, "is not supported");
    expect((family_def){"f", {POLICY, "com.example.Own"}}, "'com.example.Own' is not supported");
    /* HBase cannot open such regions either. */
    expect((family_def){"f", {POLICY, PACKAGE "compactions.DateTieredCompactionPolicy"}},
           "is not supported");
    expect((family_def){"f", {ENGINE, PACKAGE "DateTieredStoreEngine", POLICY, FIFO}},
           "is not supported");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fifo_needs_an_end_of_its_cells_and_no_limit_of_files),
        cmocka_unit_test(classes_that_are_not_served_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
