/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of a store-file tracker. HBase switches in two alters, by MIGRATION, to tell the new
 * tracker which files the old one knows. Here the region's manifest has the files, so one alter is
 * enough; a client that uses MIGRATION itself must follow HBase's rules. */
#include "catalog/tracker.h"

#include <stdlib.h>

#include "catalog/descriptor_change.h"
#include "proto/hbase.pb-c.h"
#include "region/tracking.h"

static int shown(rq_slice s)
{
    return s.len > 256 ? 256 : (int)s.len;
}

/* --- checks ----------------------------------------------------------------------------------- */

/* HBase takes a name that is no keyword for a Java class, and reports that the class is not found. These
 * are its texts (HBASE: StoreFileTrackerFactory.getTrackerClass, Configuration.getClass). */
#define NO_CLASS "java.lang.ClassNotFoundException: "
#define IN_RUNTIME "java.lang.RuntimeException: "

static rq_err unknown(const char *before, rq_slice name, const char *after, rq_error *why)
{
    return rq_fail(why, RQ_E_DO_NOT_RETRY, "%s%.*s%s", before, shown(name), (const char *)name.ptr,
                   after);
}

rq_err rq__tracker_check_known(const rq_table_schema *s, const rq_family_schema *f, rq_error *why)
{
    static const char *const ends[] = {RQ_TRACKER_FROM, RQ_TRACKER_TO};
    rq_tracker impl = rq_tracking_of(s, f).impl;
    rq_slice name;
    if (impl == RQ_TRACKER_UNKNOWN && rq_schema_setting(s, f, RQ_TRACKER_IMPL, &name))
        return unknown(IN_RUNTIME IN_RUNTIME NO_CLASS "Class ", name, " not found", why);
    for (size_t i = 0; impl == RQ_TRACKER_MIGRATION && i < RQ_ARRAY_LEN(ends); i++)
        if (rq_schema_setting(s, f, ends[i], &name) && rq_tracker_parse(name) == RQ_TRACKER_UNKNOWN)
            return unknown(IN_RUNTIME NO_CLASS, name, "", why);
    return RQ_OK;
}

static rq_err check_new_family(const rq_table_schema *s, const rq_family_schema *f, rq_error *why)
{
    if (rq_tracking_of(s, f).impl != RQ_TRACKER_MIGRATION) return RQ_OK;
    return rq_fail(why, RQ_E_DO_NOT_RETRY,
                   "Should not use MIGRATION as store file tracker for new family %.*s of table "
                   "%.*s",
                   shown(f->name), (const char *)f->name.ptr, shown(s->name),
                   (const char *)s->name.ptr);
}

rq_err rq__tracker_check_create(const rq_table_schema *s, rq_error *why)
{
    for (size_t i = 0; i < s->family_count; i++)
        RQ_TRY(check_new_family(s, &s->families[i], why));
    return RQ_OK;
}

/* "… for family f of table t". */
#define OF_FAMILY " for family %.*s of table %.*s"
#define FAMILY(s, f)                                                                               \
    shown((f)->name), (const char *)(f)->name.ptr, shown((s)->name), (const char *)(s)->name.ptr

static rq_err check_same(const char *which, rq_tracker was, rq_tracker is, const rq_table_schema *s,
                         const rq_family_schema *f, rq_error *why)
{
    if (was == is) return RQ_OK;
    return rq_fail(why, RQ_E_DO_NOT_RETRY,
                   "The %s tracker has been changed from %s to %s" OF_FAMILY, which,
                   rq_tracker_name(was), rq_tracker_name(is), FAMILY(s, f));
}

static rq_err check_in_migration(rq_tracking was, rq_tracking is, bool enabled,
                                 const rq_table_schema *s, const rq_family_schema *f, rq_error *why)
{
    if (is.impl == RQ_TRACKER_MIGRATION) {
        RQ_TRY(check_same("src", was.from, is.from, s, f, why));
        return check_same("dst", was.to, is.to, s, f, why);
    }
    if (!enabled)
        return rq_fail(why, RQ_E_TABLE_NOT_ENABLED,
                       "Should not change store file tracker implementation from MIGRATION while "
                       "table %.*s is disabled",
                       shown(s->name), (const char *)s->name.ptr);
    if (is.impl != was.to)
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "Should migrate tracker to %s but got %s" OF_FAMILY,
                       rq_tracker_name(was.to), rq_tracker_name(is.impl), FAMILY(s, f));
    return RQ_OK;
}

/* HBASE: StoreFileTrackerFactory.createForMigration, called when a region opens. */
static rq_err check_ends(rq_tracking t, rq_error *why)
{
    if (t.from == RQ_TRACKER_NONE || t.to == RQ_TRACKER_NONE)
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "config %s is not set",
                       t.from == RQ_TRACKER_NONE ? RQ_TRACKER_FROM : RQ_TRACKER_TO);
    if (t.to == RQ_TRACKER_MIGRATION)
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "Should not specify " RQ_TRACKER_TO
                       " as MIGRATION because it can not be nested");
    return RQ_OK;
}

static rq_err check_into_migration(rq_tracking was, rq_tracking is, const rq_table_schema *s,
                                   const rq_family_schema *f, rq_error *why)
{
    const char *from = rq_tracker_name(was.impl);
    if (is.impl == was.impl) return RQ_OK;
    if (is.impl != RQ_TRACKER_MIGRATION)
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "Should change to MIGRATION first when migrating from %s" OF_FAMILY, from,
                       FAMILY(s, f));
    RQ_TRY(check_ends(is, why));
    if (is.from != was.impl)
        return rq_fail(
            why, RQ_E_DO_NOT_RETRY,
            "Should use src tracker %s first but got %s when migrating from %s" OF_FAMILY, from,
            rq_tracker_name(is.from), from, FAMILY(s, f));
    if (is.from == is.to)
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "The src tracker and dst tracker are both %s" OF_FAMILY, from, FAMILY(s, f));
    return RQ_OK;
}

/* HBASE: checkForModifyTable. */
rq_err rq__tracker_check_alter(const rq_table_schema *old, const rq_table_schema *s, bool enabled,
                               rq_error *why)
{
    for (size_t i = 0; i < s->family_count; i++) {
        const rq_family_schema *f = &s->families[i];
        const rq_family_schema *before = rq_table_schema_family(old, f->name);
        if (before == NULL) {
            RQ_TRY(check_new_family(s, f, why));
            continue;
        }
        rq_tracking was = rq_tracking_of(old, before), is = rq_tracking_of(s, f);
        RQ_TRY(was.impl == RQ_TRACKER_MIGRATION ? check_in_migration(was, is, enabled, s, f, why)
                                                : check_into_migration(was, is, s, f, why));
    }
    return RQ_OK;
}

/* HBASE: checkDstSFT. */
rq_err rq__tracker_check_target(rq_slice name, rq_error *why)
{
    switch (rq_tracker_parse(name)) {
    case RQ_TRACKER_DEFAULT:
    case RQ_TRACKER_FILE:
        return RQ_OK;
    case RQ_TRACKER_MIGRATION:
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "Do not need to transfer to %.*s", shown(name),
                       (const char *)name.ptr);
    default:
        return unknown(NO_CLASS, name, "", why);
    }
}

/* --- the change itself ------------------------------------------------------------------------ */

static bool is_of_trackers(rq_slice key)
{
    return rq_slice_eq(key, RQ_SLICE_LIT(RQ_TRACKER_IMPL)) ||
           rq_slice_eq(key, RQ_SLICE_LIT(RQ_TRACKER_FROM)) ||
           rq_slice_eq(key, RQ_SLICE_LIT(RQ_TRACKER_TO));
}

/* For packing only, the message gets another list: it frees the original one itself. */
static rq_err change_table(Pb__TableSchema *m, rq_slice name, rq_table_schema **ret, rq_error *why)
{
    Pb__BytesBytesPair tracker = PB__BYTES_BYTES_PAIR__INIT;
    Pb__BytesBytesPair **given = m->attributes;
    size_t given_count = m->n_attributes, n = 0;
    Pb__BytesBytesPair **list = calloc(given_count + 1, sizeof *list);
    if (list == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < given_count; i++)
        if (!is_of_trackers(rq_slice_of(given[i]->first.data, given[i]->first.len)))
            list[n++] = given[i];
    tracker.first.data = (uint8_t *)(uintptr_t)RQ_TRACKER_IMPL;
    tracker.first.len = sizeof RQ_TRACKER_IMPL - 1;
    tracker.second.data = (uint8_t *)(uintptr_t)name.ptr;
    tracker.second.len = name.len;
    list[n++] = &tracker;
    m->attributes = list;
    m->n_attributes = n;
    rq_err rc = rq__descriptor_from(m, ret, why);
    m->attributes = given;
    m->n_attributes = given_count;
    free(list);
    return rc;
}

static rq_err change_family(Pb__TableSchema *m, Pb__ColumnFamilySchema *f, rq_slice name,
                            rq_table_schema **ret, rq_error *why)
{
    Pb__NameStringPair tracker = PB__NAME_STRING_PAIR__INIT;
    Pb__NameStringPair **given = f->configuration;
    size_t given_count = f->n_configuration, n = 0;
    Pb__NameStringPair **list = calloc(given_count + 1, sizeof *list);
    char *value = rq_slice_strdup(name);
    rq_err rc = RQ_E_NO_MEMORY;
    if (list != NULL && value != NULL) {
        for (size_t i = 0; i < given_count; i++)
            if (!is_of_trackers(rq_slice_cstr(given[i]->name))) list[n++] = given[i];
        tracker.name = (char *)(uintptr_t)RQ_TRACKER_IMPL;
        tracker.value = value;
        list[n++] = &tracker;
        f->configuration = list;
        f->n_configuration = n;
        rc = rq__descriptor_from(m, ret, why);
        f->configuration = given;
        f->n_configuration = given_count;
    }
    free(value);
    free(list);
    return rc;
}

static rq_err change(Pb__TableSchema *m, const rq_slice *family, rq_slice name,
                     rq_table_schema **ret, rq_error *why)
{
    if (family == NULL) return change_table(m, name, ret, why);
    for (size_t i = 0; i < m->n_column_families; i++) {
        Pb__ColumnFamilySchema *f = m->column_families[i];
        if (rq_slice_eq(rq_slice_of(f->name.data, f->name.len), *family))
            return change_family(m, f, name, ret, why);
    }
    return RQ_E_NO_SUCH_FAMILY; /* it was looked for before */
}

rq_err rq__tracker_change(const rq_table_schema *old, const rq_slice *family, rq_slice name,
                          rq_table_schema **ret, rq_error *why)
{
    const rq_family_schema *f = family == NULL ? NULL : rq_table_schema_family(old, *family);
    *ret = NULL;
    if (family != NULL && f == NULL) {
        char text[256];
        rq_bytes_to_string(*family, text, sizeof text);
        return rq_fail(why, RQ_E_NO_SUCH_FAMILY, "%s does not exist for table %.*s", text,
                       shown(old->name), (const char *)old->name.ptr);
    }
    if (rq_tracking_of(old, f).impl == rq_tracker_parse(name)) return RQ_OK;
    rq_slice pb = rq_table_schema_pb(old);
    Pb__TableSchema *m = pb__table_schema__unpack(NULL, pb.len, pb.ptr);
    rq_err rc = m == NULL ? RQ_E_NO_MEMORY : change(m, family, name, ret, why);
    if (m != NULL) pb__table_schema__free_unpacked(m, NULL);
    return rc;
}
