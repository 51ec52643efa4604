/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the compaction attributes of a descriptor when a table is created or altered. HBASE:
 * TableDescriptorChecker.checkCompactionPolicy. An unknown class is refused, whereas HBase would
 * fail to open the regions. */
#include "catalog/descriptor_change.h"
#include "store/compaction.h"

#include <stdlib.h>

#define ENGINE "hbase.hstore.engine.class"
#define POLICY "hbase.hstore.defaultengine.compactionpolicy.class"
#define BLOCKING "hbase.hstore.blockingStoreFiles"
#define FIFO_FILES_MIN 1000
#define BYPASS                                                                                     \
    " Set hbase.table.sanity.checks to false at conf or table descriptor if you want to bypass "   \
    "sanity checks"

static rq_slice setting(const rq_config *config, const rq_table_schema *s,
                        const rq_family_schema *f, const char *property, rq_setting id)
{
    rq_slice text;
    if (rq_schema_setting(s, f, property, &text)) return text;
    return config == NULL ? (rq_slice){0} : rq_slice_cstr(rq_config_text(config, id));
}

static int64_t blocking_files(const rq_config *config, const rq_table_schema *s,
                              const rq_family_schema *f)
{
    char text[24];
    rq_slice given;
    if (rq_schema_setting(s, f, BLOCKING, &given) && given.len < sizeof text) {
        memcpy(text, given.ptr, given.len);
        text[given.len] = '\0';
        return strtoll(text, NULL, 10);
    }
    return config == NULL ? 16 : rq_config_int(config, RQ_SET_BLOCKING_FILES);
}

/* FIFO compaction only drops whole files whose cells have all expired. If cells do not expire, or
 * MIN_VERSIONS keeps expired ones, the store would grow forever; flushes that wait until there are
 * fewer files would wait forever. */
static rq_err check_fifo(const rq_config *config, const rq_table_schema *s,
                         const rq_family_schema *f, rq_error *why)
{
    if (f->ttl_s == RQ_TTL_FOREVER)
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "Default TTL is not supported for FIFO compaction" BYPASS);
    if (f->min_versions > 0)
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "MIN_VERSION > 0 is not supported for FIFO compaction" BYPASS);
    int64_t files = blocking_files(config, s, f);
    if (files < FIFO_FILES_MIN)
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "Blocking file count '" BLOCKING
                       "' %lld is below recommended minimum of 1000 for column family %.*s" BYPASS,
                       (long long)files, (int)f->name.len, (const char *)f->name.ptr);
    return RQ_OK;
}

rq_err rq__descriptor_check_compaction(const rq_config *config, const rq_table_schema *s,
                                       rq_error *why)
{
    for (size_t i = 0; i < s->family_count; i++) {
        const rq_family_schema *f = &s->families[i];
        rq_slice engine = setting(config, s, f, ENGINE, RQ_SET_STORE_ENGINE);
        rq_slice policy = setting(config, s, f, POLICY, RQ_SET_COMPACTION_POLICY);
        rq_compaction_policy known;
        if (!rq_compaction_policy_of(engine, policy, &known))
            return rq_fail(why, RQ_E_DO_NOT_RETRY,
                           "compaction by " ENGINE " '%.*s' and " POLICY " '%.*s' is not supported",
                           (int)engine.len, (const char *)engine.ptr, (int)policy.len,
                           (const char *)policy.ptr);
        if (known == RQ_COMPACT_FIFO) RQ_TRY(check_fifo(config, s, f, why));
    }
    return RQ_OK;
}
