/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions of an embedded database wait for a locked table until the call's timeout. The test
 * locks the table as a client of the lock service does. The change is made after the timeout. */
#include "../base/unit.h"

#include "catalog/catalog.h"
#include "embed/embed.h"
#include "embed/embed_priv.h"
#include "rorqual/rorqual.h"

#include <sched.h>

enum { LIMIT_MS = 50 };

static rq_failure why = {.size = sizeof(rq_failure)};
static rq_latch locked;

static void have_lock(rq_ddl *ddl)
{
    locked.executor->latch_open(&locked, ddl->rc);
}

/* The procedure that holds the table's lock. */
static uint64_t lock_table(rq__embed *e, const char *name)
{
    static rq_ddl ddl;
    bool held = false;
    rq_error error = {.code = RQ_OK};
    ddl = (rq_ddl){.kind = RQ_DDL_LOCK_TABLE,
                   .ns = RQ_SLICE_LIT("default"),
                   .qualifier = rq_slice_cstr(name),
                   .user = RQ_SLICE_LIT("test"),
                   .submitted = have_lock};
    e->executor->latch_init(e->executor, &locked);
    rq_catalog_submit(e->catalog, &ddl);
    assert_int_equal(e->executor->latch_wait(&locked), RQ_OK);
    e->executor->latch_destroy(&locked);
    while (!held) {
        assert_int_equal(rq_catalog_lock_heartbeat(e->catalog, ddl.proc_id, true, &held, &error),
                         RQ_OK);
        sched_yield();
    }
    return ddl.proc_id;
}

static size_t snapshots(rq_db *db)
{
    rq_snapshot_list *list;
    assert_int_equal(rq_snapshots(db, &list, &why), RQ_OK);
    size_t n = list->count;
    rq_snapshot_list_free(list);
    return n;
}

static void a_call_ends_and_its_procedure_goes_on(void **state)
{
    (void)state;
    rq_db *db;
    bool held;
    rq_error error = {.code = RQ_OK};
    const rq_connect_options options = {.size = sizeof options, .timeout_ms = LIMIT_MS};
    rq_family family = {"f", NULL, 0};
    rq_table_spec spec = {.size = sizeof spec, .name = "t", .families = &family, .family_count = 1};
    assert_int_equal(rq_embed_open(NULL, &options, &db, &error), RQ_OK);
    rq_err made = rq_table_create(db, &spec, &why);
    /* The table is made even if the procedure took longer than the call. */
    for (bool exists = false; !exists; sched_yield())
        assert_int_equal(rq_table_exists(db, "t", &exists, &why), RQ_OK);
    assert_true(made == RQ_OK || made == RQ_E_TIMEOUT);
    rq__embed *e = rq__embed_of(db);
    uint64_t lock = lock_table(e, "t");
    assert_int_equal(rq_snapshot_create(db, "s", "t", false, &why), RQ_E_TIMEOUT);
    assert_non_null(strstr(why.message, "not finished after 50 ms"));
    assert_int_equal(rq_table_disable(db, "t", &why), RQ_E_TIMEOUT);
    assert_int_equal(snapshots(db), 0);
    assert_int_equal(rq_catalog_lock_heartbeat(e->catalog, lock, false, &held, &error), RQ_OK);
    while (snapshots(db) == 0)
        sched_yield();
    /* Waits for the disable, which is still running. */
    while (rq_table_enable(db, "t", &why) == RQ_E_TABLE_NOT_DISABLED)
        sched_yield();
    /* A procedure whose caller has timed out when the database is closed. */
    lock_table(e, "t");
    assert_int_equal(rq_table_disable(db, "t", &why), RQ_E_TIMEOUT);
    assert_int_equal(rq_disconnect(db, &why), RQ_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_call_ends_and_its_procedure_goes_on)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
