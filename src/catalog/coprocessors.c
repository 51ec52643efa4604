/* SPDX-License-Identifier: Apache-2.0 */
/* The coprocessors in descriptors and settings; contract in coprocessors.h. */
#include "catalog/coprocessors.h"

#include <ctype.h>
#include <strings.h>

#define KEY "coprocessor$"
#define KEY_LEN (sizeof KEY - 1)

static const struct {
    const char *java_class;
    unsigned bit;
} known[] = {
    {"org.apache.hadoop.hbase.coprocessor.AggregateImplementation", RQ_COPROCESSOR_AGGREGATE},
    {"org.apache.hadoop.hbase.coprocessor.example.BulkDeleteEndpoint", RQ_COPROCESSOR_BULK_DELETE},
    {"org.apache.hadoop.hbase.coprocessor.MultiRowMutationEndpoint", RQ_COPROCESSOR_MULTI_ROW},
};

static unsigned bit_of(rq_slice java_class)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(known); i++)
        if (rq_slice_eq(java_class, rq_slice_cstr(known[i].java_class))) return known[i].bit;
    return 0;
}

static rq_slice trimmed(rq_slice s)
{
    while (s.len > 0 && isspace(s.ptr[0])) {
        s.ptr++;
        s.len--;
    }
    while (s.len > 0 && isspace(s.ptr[s.len - 1]))
        s.len--;
    return s;
}

/* Cuts the part before the next bar off `rest`; false if there is no bar. */
static bool cut(rq_slice *rest, rq_slice *ret)
{
    const uint8_t *bar = rest->len == 0 ? NULL : memchr(rest->ptr, '|', rest->len);
    if (bar == NULL) return false;
    *ret = rq_slice_of(rest->ptr, (size_t)(bar - rest->ptr));
    *rest = rq_slice_of(bar + 1, rest->len - ret->len - 1);
    return true;
}

static bool only_digits(rq_slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!isdigit(s.ptr[i])) return false;
    return true;
}

/* Parses an attribute `coprocessor$N` with a well-formed value. HBase ignores others. */
static bool parse(const rq_attribute *a, rq_slice *ret_path, rq_slice *ret_class)
{
    if (a->key.len <= KEY_LEN || strncasecmp((const char *)a->key.ptr, KEY, KEY_LEN) != 0 ||
        !only_digits(rq_slice_of(a->key.ptr + KEY_LEN, a->key.len - KEY_LEN)))
        return false;
    rq_slice rest = a->value;
    rq_slice priority;
    if (!cut(&rest, ret_path) || !cut(&rest, ret_class)) return false;
    if (!cut(&rest, &priority)) priority = rest;
    *ret_path = trimmed(*ret_path);
    if (ret_class->len == 0) return false;
    *ret_class = trimmed(*ret_class);
    return only_digits(trimmed(priority));
}

unsigned rq_coprocessors_of_table(const rq_table_schema *s)
{
    unsigned set = 0;
    for (size_t i = 0; i < s->attributes.count; i++) {
        rq_slice path;
        rq_slice java_class;
        if (parse(&s->attributes.items[i], &path, &java_class) && path.len == 0)
            set |= bit_of(java_class);
    }
    return set;
}

rq_err rq__coprocessors_check(const rq_table_schema *s, rq_error *why)
{
    for (size_t i = 0; i < s->attributes.count; i++) {
        rq_slice path;
        rq_slice java_class;
        if (!parse(&s->attributes.items[i], &path, &java_class)) continue;
        if (path.len == 0 && bit_of(java_class) != 0) continue;
        return rq_fail(why, RQ_E_DO_NOT_RETRY,
                       "Class %.*s cannot be loaded Set hbase.table.sanity.checks to false at conf "
                       "or table descriptor if you want to bypass sanity checks",
                       (int)java_class.len, (const char *)java_class.ptr);
    }
    return RQ_OK;
}

/* A comma-separated list of classes; like HBase accepts `class|priority` too. */
static rq_err parse_setting(const char *name, const char *text, unsigned *ret, rq_error *why)
{
    *ret = 0;
    while (text != NULL && *text != '\0') {
        size_t len = strcspn(text, ",");
        rq_slice item = rq_slice_of((const uint8_t *)text, len);
        rq_slice java_class;
        if (!cut(&item, &java_class)) java_class = item;
        java_class = trimmed(java_class);
        if (java_class.len > 0) {
            unsigned bit = bit_of(java_class);
            if (bit == 0)
                return rq_fail(why, RQ_E_CONFIG, "%s: class %.*s cannot be loaded", name,
                               (int)java_class.len, (const char *)java_class.ptr);
            *ret |= bit;
        }
        text += len;
        if (*text == ',') text++;
    }
    return RQ_OK;
}

rq_err rq_coprocessors_of_settings(const rq_config *c, unsigned *ret_all, unsigned *ret_users,
                                   rq_error *why)
{
    RQ_TRY(parse_setting("hbase.coprocessor.region.classes", rq_config_text(c, RQ_SET_COPROCESSORS),
                         ret_all, why));
    return parse_setting("hbase.coprocessor.user.region.classes",
                         rq_config_text(c, RQ_SET_USER_COPROCESSORS), ret_users, why);
}
