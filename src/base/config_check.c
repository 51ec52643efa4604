/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of settings that depend on each other or on the machine; contract in config.h. */
#include "base/config.h"

#include <stdio.h>
#include <string.h>

/* HBASE: HConstants.HBASE_CLUSTER_MINIMUM_MEMORY_THRESHOLD, as MemorySizeUtil compares. */
#define SHARES_MAX_PERCENT 80

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
                   "settings %s=%g and %s=%g: together more than 0.8 of the memory budget",
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

rq_err rq_config_check(rq_config *c, uint64_t memory, rq_error *why)
{
    RQ_TRY(derive_low_mark(c, why));
    RQ_TRY(check_shares(c, why));
    RQ_TRY(check_znode(c, why));
    return check_memory(c, memory, why);
}
