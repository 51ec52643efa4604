/* SPDX-License-Identifier: Apache-2.0 */
/* The master's switches. HBASE: MasterStateStore, BooleanStateStore: row <name>, state:d, "PBUF" +
 * a message whose field 1 is the flag (LoadBalancerState, RegionNormalizerState, SwitchState … all
 * have this form). A switch that is not stored is on. */
#include "catalog/catalog_priv.h"

/* Rows of the store; NULL: HBase does not store this switch. */
static const char *const rows[RQ_SWITCH_COUNT] = {
    [RQ_SWITCH_BALANCER] = "load_balancer_on",
    [RQ_SWITCH_NORMALIZER] = "region_normalizer_on",
    [RQ_SWITCH_SPLIT] = "split_enabled",
    [RQ_SWITCH_MERGE] = "merge_enabled",
    [RQ_SWITCH_SNAPSHOT_CLEANUP] = "snapshot_cleanup_enabled",
    [RQ_SWITCH_PEER_MODIFICATION] = "replication_peer_modification_on",
    [RQ_SWITCH_RPC_THROTTLE] = "rorqual_rpc_throttle_on",
};

static rq_err load_row(void *ctx, const rq_cell *cells, size_t count, rq_error *why)
{
    rq_catalog *c = ctx;
    (void)why;
    for (size_t i = 0; i < count; i++) {
        if (!rq_slice_eq(rq_cell_family(&cells[i]), RQ_SLICE_LIT("state"))) continue;
        rq__catalog_saw_ms(c, cells[i].timestamp);
        for (size_t k = 0; k < RQ_SWITCH_COUNT; k++) {
            if (rows[k] == NULL || !rq_slice_eq(rq_cell_row(&cells[i]), rq_slice_cstr(rows[k])))
                continue;
            static const uint8_t off[] = {'P', 'B', 'U', 'F', 8, 0};
            rq_slice v = rq_cell_value(&cells[i]);
            atomic_store(&c->switches[k], !rq_slice_eq(v, rq_slice_of(off, sizeof off)));
        }
    }
    return RQ_OK;
}

rq_err rq__switches_load(rq_catalog *c, rq_error *why)
{
    return rq__store_each_row(c, load_row, why);
}

bool rq_catalog_in_maintenance(const rq_catalog *c)
{
    return c->config != NULL && rq_config_int(c->config, RQ_SET_MAINTENANCE) != 0;
}

/* HBASE: HMaster.isBalancerOn, isNormalizerOn, isSplitOrMergeEnabled. */
static bool is_off_for_repairs(const rq_catalog *c, rq_switch which)
{
    bool concerned = which == RQ_SWITCH_BALANCER || which == RQ_SWITCH_NORMALIZER ||
                     which == RQ_SWITCH_SPLIT || which == RQ_SWITCH_MERGE;
    return concerned && rq_catalog_in_maintenance(c);
}

bool rq_catalog_switch_get(const rq_catalog *c, rq_switch which)
{
    return atomic_load(&c->switches[which]) && !is_off_for_repairs(c, which);
}

rq_err rq_catalog_switch_set(rq_catalog *c, rq_switch which, bool on, bool *ret_before,
                             rq_error *why)
{
    if (rows[which] != NULL) {
        rq_region *store;
        RQ_TRY(rq__store_ref(c, &store, why));
        rq_arena a;
        rq_arena_init(&a);
        uint8_t value[] = {'P', 'B', 'U', 'F', 8, on ? 1 : 0};
        rq__batch b;
        rq__batch_init(&b, &a, rq__catalog_now_ms(c));
        rq_err rc = rq__batch_put(&b, rq_slice_cstr(rows[which]), "state", RQ_SLICE_LIT("d"),
                                  rq_slice_of(value, sizeof value));
        if (rc == RQ_OK) rc = rq__batch_commit(&b, store, true, why);
        rq_arena_clear(&a);
        rq_region_unref(store);
        RQ_TRY(rc);
    }
    *ret_before = atomic_exchange(&c->switches[which], on);
    return RQ_OK;
}
