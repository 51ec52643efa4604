/* SPDX-License-Identifier: Apache-2.0 */
/* Replication peers, on a disk that is full of log kept for them; in the simulated environment. */
#include "world.h"

#include "catalog/peers.h"
#include "wal/tail.h"
#include "wal/wal.h"

static rq_wal *wal_of(world *w)
{
    return rq_engine_wal(w->engine);
}

static rq_err put_large(world *w, int n)
{
    static uint8_t value[8000];
    char row[16];
    snprintf(row, sizeof row, "r%05d", n);
    return world_put_cell(w, "t", row, "f", "q", rq_slice_of(value, sizeof value));
}

static size_t count_peers(world *w)
{
    rq_arena a = {0};
    rq_peer_info *peers;
    size_t count;
    OK(rq_catalog_peers(w->catalog, &a, &peers, &count));
    rq_arena_clear(&a);
    return count;
}

static bool is_enabled(world *w)
{
    rq_arena a = {0};
    rq_peer_info peer;
    OK(rq_catalog_peer(w->catalog, RQ_SLICE_LIT("p"), &a, &peer));
    rq_arena_clear(&a);
    return peer.enabled;
}

/* A log of 4 MB that only the peer needs, on a full disk. Returns the number of rows. */
static int begin(world *w, const char *file_bytes)
{
    world_init(w, unit_seed(), NULL);
    OK(rq_config_set(w->config, "rorqual.wal.file.size", file_bytes, &w->why));
    OK(rq_config_set(w->config, "rorqual.wal.max", "131072", &w->why));
    OK(rq_config_set(w->config, "hbase.busy.wait.duration", "1000", &w->why));
    OK(world_open(w));
    OK(world_create(w, "t", "f", NULL));
    OK(world_peer(w, RQ_DDL_ADD_PEER, "p", 0));
    int n = 0;
    for (; n < 500; n++)
        OK(put_large(w, n));
    OK(world_table(w, RQ_DDL_FLUSH_TABLE, "t"));
    rq_sim_quota(w->sim, rq_sim_used(w->sim) + 1);
    while (!rq_wal_lacks_space(wal_of(w)) && n < 1000)
        if (put_large(w, n) == RQ_OK) n++;
    assert_true(rq_wal_lacks_space(wal_of(w)));
    return n;
}

static void a_peer_is_removed_although_its_log_fills_the_disk(void **state)
{
    (void)state;
    world the, *w = &the;
    int n = begin(w, "65536");
    OK(world_peer(w, RQ_DDL_REMOVE_PEER, "p", 0));
    assert_int_equal(count_peers(w), 0);
    OK(put_large(w, n));
    rq_sim_quota(w->sim, 0);
    OK(world_close(w, true));
    OK(world_open(w));
    assert_int_equal(count_peers(w), 0);
    world_clear(w);
}

/* The peer can be disabled although rows are refused, because an operator's changes need log space,
 * too. */
static void a_peer_is_disabled_on_a_full_disk(void **state)
{
    (void)state;
    world the, *w = &the;
    int n = begin(w, "8388608");
    while (n < 2000 && put_large(w, n) == RQ_OK)
        n++;
    assert_true(n < 2000);
    OK(world_peer(w, RQ_DDL_DISABLE_PEER, "p", 0));
    assert_int_not_equal(put_large(w, n), RQ_OK);
    rq_sim_quota(w->sim, 0);
    OK(world_close(w, true));
    OK(world_open(w));
    assert_false(is_enabled(w));
    OK(put_large(w, n));
    world_clear(w);
}

static rq_lsn position_of(world *w)
{
    rq_arena a = {0};
    rq_peer_info peer;
    OK(rq_catalog_peer(w->catalog, RQ_SLICE_LIT("p"), &a, &peer));
    rq_arena_clear(&a);
    return peer.position;
}

/* The source of a removed peer ended after the next peer of that name was added: it wrote its
 * position into the new peer's row, which then began with writes from before it was added, or with
 * a log file that no longer exists. */
static void a_removed_peer_leaves_no_position_to_the_next_one(void **state)
{
    (void)state;
    world the, *w = &the;
    world_init(w, unit_seed(), NULL);
    OK(world_open(w));
    OK(world_create(w, "t", "f", NULL));
    OK(world_peer(w, RQ_DDL_ADD_PEER, "p", 0));
    OK(world_put(w, "t", "a", "f"));
    rq_lsn shipped = rq_wal_durable(wal_of(w));
    OK(world_put(w, "t", "b", "f"));
    OK(world_peer(w, RQ_DDL_REMOVE_PEER, "p", 0));
    OK(world_peer(w, RQ_DDL_ADD_PEER, "p", 0));
    rq_lsn begins = position_of(w);
    assert_true(begins > shipped);
    OK(rq_catalog_peer_advance(w->catalog, "p", shipped, &w->why));
    assert_true(position_of(w) == begins);
    OK(world_put(w, "t", "c", "f"));
    (void)!world_close(w, false);
    OK(world_open(w));
    assert_true(position_of(w) == begins);
    OK(rq_catalog_peer_advance(w->catalog, "p", begins + 1, &w->why));
    (void)!world_close(w, false);
    OK(world_open(w));
    assert_true(position_of(w) == begins + 1);
    world_end(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peer_is_disabled_on_a_full_disk),
        cmocka_unit_test(a_peer_is_removed_although_its_log_fills_the_disk),
        cmocka_unit_test(a_removed_peer_leaves_no_position_to_the_next_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
