/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matches JMX ObjectNames, "domain:key=value,key=value", against patterns: * and ? in the domain
 * and in values, ",*" for any further keys. The order of keys does not matter. An empty pattern is
 * "*:*". Quoted values are refused; no bean of HBase has one.
 */
#include "metrics/metrics_priv.h"

#include <string.h>

/* REQUIRES: `text` has neither * nor ?. After a mismatch the last * of the pattern matches one byte
 * more; the earlier ones can stay as they matched. */
static bool glob(rq_slice pattern, rq_slice text)
{
    size_t p = 0, t = 0, star = SIZE_MAX, star_text = 0;
    while (t < text.len) {
        bool has = p < pattern.len;
        if (has && pattern.ptr[p] == '*') {
            star = p++;
            star_text = t;
        } else if (has && (pattern.ptr[p] == '?' || pattern.ptr[p] == text.ptr[t])) {
            p++;
            t++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            t = ++star_text;
        } else {
            return false;
        }
    }
    while (p < pattern.len && pattern.ptr[p] == '*')
        p++;
    return p == pattern.len;
}

/* Cuts the text before the first `end`, or all of it, off `*rest`. */
static rq_slice take(rq_slice *rest, char end)
{
    const uint8_t *at = rest->len == 0 ? NULL : memchr(rest->ptr, end, rest->len);
    size_t len = at == NULL ? rest->len : (size_t)(at - rest->ptr);
    rq_slice taken = rq_slice_of(rest->ptr, len);
    size_t skip = at == NULL ? len : len + 1;
    *rest = rq_slice_of(rest->ptr + skip, rest->len - skip);
    return taken;
}

static rq_slice properties_of(const char *name, rq_slice *ret_domain)
{
    rq_slice rest = rq_slice_cstr(name[0] == '\0' ? "*:*" : name);
    *ret_domain = take(&rest, ':');
    return rest;
}

static bool is_star(rq_slice property)
{
    return property.len == 1 && property.ptr[0] == '*';
}

/* The value of the key among the properties; .ptr is NULL if the key is missing. */
static rq_slice value_of(rq_slice properties, rq_slice key)
{
    while (properties.len > 0) {
        rq_slice value = take(&properties, ',');
        if (rq_slice_eq(take(&value, '='), key)) return value;
    }
    return (rq_slice){0};
}

static bool property_is_valid(rq_slice property)
{
    rq_slice value = property;
    rq_slice key = take(&value, '=');
    bool has_value = key.len < property.len && value.len > 0;
    return has_value && key.len > 0 && memchr(value.ptr, '=', value.len) == NULL &&
           memchr(property.ptr, ':', property.len) == NULL &&
           memchr(property.ptr, '"', property.len) == NULL &&
           memchr(key.ptr, '*', key.len) == NULL && memchr(key.ptr, '?', key.len) == NULL;
}

bool rq__object_name_is_valid(const char *pattern)
{
    rq_slice domain;
    rq_slice rest = properties_of(pattern, &domain), all = rest;
    unsigned stars = 0;
    if (pattern[0] != '\0' && strchr(pattern, ':') == NULL) return false;
    if (rest.len == 0 || rest.ptr[rest.len - 1] == ',') return false;
    while (rest.len > 0) {
        rq_slice property = take(&rest, ',');
        if (is_star(property)) {
            stars++;
            continue;
        }
        if (!property_is_valid(property)) return false;
        rq_slice value = property;
        rq_slice key = take(&value, '=');
        if (value_of(all, key).ptr != value.ptr) return false; /* a key occurs twice */
    }
    return stars <= 1;
}

static size_t count_properties(rq_slice properties)
{
    size_t count = 0;
    for (; properties.len > 0; count++)
        take(&properties, ',');
    return count;
}

bool rq__object_name_matches(const char *pattern, const char *name)
{
    rq_slice pattern_domain, domain;
    rq_slice wanted = properties_of(pattern, &pattern_domain);
    rq_slice properties = properties_of(name, &domain);
    bool allows_more = false;
    size_t count = 0;
    if (!glob(pattern_domain, domain)) return false;
    while (wanted.len > 0) {
        rq_slice value = take(&wanted, ',');
        if (is_star(value)) {
            allows_more = true;
            continue;
        }
        rq_slice key = take(&value, '=');
        rq_slice found = value_of(properties, key);
        if (found.ptr == NULL || !glob(value, found)) return false;
        count++;
    }
    return allows_more || count == count_properties(properties);
}
