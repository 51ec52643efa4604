/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of settings that depend on each other or on the machine; contract in config.h. */
#include "base/config.h"

#include <stdio.h>
#include <string.h>

/* HBASE: HConstants.HBASE_CLUSTER_MINIMUM_MEMORY_THRESHOLD, as MemorySizeUtil compares. */
#define SHARES_MAX_PERCENT 80

/* An eighth of the memory available to the process, so that enough is left for other programs. */
static uint64_t default_budget(uint64_t memory)
{
    uint64_t share = (memory == 0 ? (uint64_t)4 << 30 : memory) / 8;
    uint64_t most = (uint64_t)512 << 20;
    return share < most ? share : most;
}

uint64_t rq_config_memory_budget(const rq_config *c, uint64_t memory)
{
    uint64_t budget = (uint64_t)rq_config_int(c, RQ_SET_MEMORY);
    return budget == 0 ? default_budget(memory) : budget;
}

/* HBASE: MemorySizeUtil.getGlobalMemStoreHeapPercent, getBlockCacheHeapPercent of releases after
 * 2.6.1. A size in bytes overrides the share of the budget. */
static rq_err derive_share(rq_config *c, rq_setting size, rq_setting share, uint64_t memory,
                           rq_error *why)
{
    char text[32];
    const rq_setting_info *i = rq_setting_get(share);
    double bytes = (double)rq_config_int(c, size);
    double budget = (double)rq_config_memory_budget(c, memory);
    if (bytes == 0) return RQ_OK;
    snprintf(text, sizeof text, "%.9g", bytes / budget);
    rq_error own = {.code = RQ_OK};
    rq_err rc = rq_config_set(c, i->name, text, &own);
    if (rc == RQ_OK) return RQ_OK;
    return rq_fail(why, rc,
                   "setting %s: %s is too %s for a memory budget of %.0f MB (rorqual.memory)",
                   rq_setting_get(size)->name, rq_config_text(c, size),
                   bytes / budget < i->least ? "little" : "much", budget / (1 << 20));
}

/* HBASE: MemorySizeUtil.getGlobalMemStoreHeapLowerMark. The older name is a share of all memory,
 * the newer one a share of the memstores' memory. */
static rq_err derive_low_mark(rq_config *c, rq_error *why)
{
    char text[32];
    if (!rq__config_given_by_older(c, RQ_SET_GLOBAL_MEMSTORE_LOW)) return RQ_OK;
    double share =
        rq_config_real(c, RQ_SET_GLOBAL_MEMSTORE_LOW) / rq_config_real(c, RQ_SET_GLOBAL_MEMSTORE);
    snprintf(text, sizeof text, "%.6g", share > 1 ? 1.0 : share);
    return rq_config_set(c, rq_setting_get(RQ_SET_GLOBAL_MEMSTORE_LOW)->name, text, why);
}

static rq_err check_shares(const rq_config *c, rq_error *why)
{
    double memstores = rq_config_real(c, RQ_SET_GLOBAL_MEMSTORE);
    double cache = rq_config_real(c, RQ_SET_BLOCK_CACHE);
    if ((int)(memstores * 100) + (int)(cache * 100) <= SHARES_MAX_PERCENT) return RQ_OK;
    return rq_fail(why, RQ_E_CONFIG,
                   "settings %s=%g and %s=%g: their sum is above 0.8 of the memory budget",
                   rq_setting_get(RQ_SET_GLOBAL_MEMSTORE)->name, memstores,
                   rq_setting_get(RQ_SET_BLOCK_CACHE)->name, cache);
}

static rq_err check_memory(const rq_config *c, uint64_t memory, rq_error *why)
{
    int64_t budget = rq_config_int(c, RQ_SET_MEMORY);
    if (memory == 0 || (uint64_t)budget <= memory) return RQ_OK;
    return rq_fail(why, RQ_E_CONFIG,
                   "setting %s: %s is more than the %llu MB that the machine, or the control group "
                   "of the process, has",
                   rq_setting_get(RQ_SET_MEMORY)->name, rq_config_text(c, RQ_SET_MEMORY),
                   (unsigned long long)(memory >> 20));
}

static rq_err check_znode(const rq_config *c, rq_error *why)
{
    const char *parent = rq_config_text(c, RQ_SET_ZNODE_PARENT);
    size_t len = strlen(parent);
    if (len > 1 && parent[0] == '/' && parent[len - 1] != '/') return RQ_OK;
    return rq_fail(why, RQ_E_CONFIG, "setting %s: '%s' is not a path such as /hbase",
                   rq_setting_get(RQ_SET_ZNODE_PARENT)->name, parent);
}

/* HBASE: Replication.initialize. */
static rq_err check_replication(const rq_config *c, rq_error *why)
{
    bool ships = rq_config_int(c, RQ_SET_REPLICATION_BULK) != 0;
    if (!ships || rq_config_text(c, RQ_SET_REPLICATION_CLUSTER)[0] != '\0') return RQ_OK;
    return rq_fail(why, RQ_E_CONFIG, "%s cannot be null/empty when %s is set to true.",
                   rq_setting_get(RQ_SET_REPLICATION_CLUSTER)->name,
                   rq_setting_get(RQ_SET_REPLICATION_BULK)->name);
}

rq_err rq_config_check(rq_config *c, uint64_t memory, rq_error *why)
{
    RQ_TRY(derive_share(c, RQ_SET_BLOCK_CACHE_BYTES, RQ_SET_BLOCK_CACHE, memory, why));
    RQ_TRY(derive_share(c, RQ_SET_GLOBAL_MEMSTORE_BYTES, RQ_SET_GLOBAL_MEMSTORE, memory, why));
    RQ_TRY(derive_low_mark(c, why));
    RQ_TRY(check_shares(c, why));
    RQ_TRY(check_znode(c, why));
    RQ_TRY(check_replication(c, why));
    return check_memory(c, memory, why);
}
