/* SPDX-License-Identifier: Apache-2.0 */
/* The names of HBase's store-file trackers; their meaning is in tracking.h. */
#include "region/tracking.h"

#include <strings.h>

#define PACKAGE "org.apache.hadoop.hbase.regionserver.storefiletracker."

static const struct {
    rq_tracker tracker;
    const char *word;
    const char *java_class;
} names[] = {
    {RQ_TRACKER_DEFAULT, "DEFAULT", PACKAGE "DefaultStoreFileTracker"},
    {RQ_TRACKER_FILE, "FILE", PACKAGE "FileBasedStoreFileTracker"},
    {RQ_TRACKER_MIGRATION, "MIGRATION", PACKAGE "MigrationStoreFileTracker"},
};

static bool is_word(rq_slice name, const char *word)
{
    return name.len == strlen(word) && strncasecmp((const char *)name.ptr, word, name.len) == 0;
}

rq_tracker rq_tracker_parse(rq_slice name)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(names); i++)
        if (is_word(name, names[i].word) || rq_slice_eq(name, rq_slice_cstr(names[i].java_class)))
            return names[i].tracker;
    return RQ_TRACKER_UNKNOWN;
}

const char *rq_tracker_name(rq_tracker t)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(names); i++)
        if (names[i].tracker == t) return names[i].word;
    return "";
}

static rq_tracker setting(const rq_table_schema *t, const rq_family_schema *f, const char *property,
                          rq_tracker otherwise)
{
    rq_slice name;
    return rq_schema_setting(t, f, property, &name) ? rq_tracker_parse(name) : otherwise;
}

rq_tracking rq_tracking_of(const rq_table_schema *t, const rq_family_schema *f)
{
    return (rq_tracking){
        .impl = setting(t, f, RQ_TRACKER_IMPL, RQ_TRACKER_DEFAULT),
        .from = setting(t, f, RQ_TRACKER_FROM, RQ_TRACKER_NONE),
        .to = setting(t, f, RQ_TRACKER_TO, RQ_TRACKER_NONE),
    };
}

bool rq__tracking_reads_list(const rq_table_schema *t, const rq_family_schema *f)
{
    rq_tracking k = rq_tracking_of(t, f);
    return k.impl == RQ_TRACKER_FILE ||
           (k.impl == RQ_TRACKER_MIGRATION && k.from == RQ_TRACKER_FILE);
}

bool rq__tracking_keeps_list(const rq_table_schema *t, const rq_family_schema *f)
{
    rq_tracking k = rq_tracking_of(t, f);
    return k.impl == RQ_TRACKER_FILE || (k.impl == RQ_TRACKER_MIGRATION &&
                                         (k.from == RQ_TRACKER_FILE || k.to == RQ_TRACKER_FILE));
}
