/* SPDX-License-Identifier: Apache-2.0 */
/* Attribute maps: arrays in ascending order of their keys. */
#include "descriptor/descriptor_priv.h"

/* Index of the key, or where it would be inserted. */
static size_t find_slot(const rq_attributes *a, rq_slice key, bool *found)
{
    size_t lo = 0;
    size_t hi = a->count;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        int c = rq_slice_compare(a->items[mid].key, key);
        if (c == 0) {
            *found = true;
            return mid;
        }
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    *found = false;
    return lo;
}

void rq__attribute_set(rq_attributes *a, rq_slice key, rq_slice value)
{
    bool found;
    size_t i = find_slot(a, key, &found);
    if (value.len == 0) {
        if (!found) return;
        a->count--;
        memmove(&a->items[i], &a->items[i + 1], (a->count - i) * sizeof *a->items);
        return;
    }
    if (!found) {
        memmove(&a->items[i + 1], &a->items[i], (a->count - i) * sizeof *a->items);
        a->count++;
    }
    a->items[i] = (rq_attribute){key, value};
}

const rq_attribute *rq_attributes_find(const rq_attributes *a, const char *key)
{
    bool found;
    size_t i = find_slot(a, rq_slice_cstr(key), &found);
    return found ? &a->items[i] : NULL;
}

bool rq_schema_setting(const rq_table_schema *t, const rq_family_schema *f, const char *property,
                       rq_slice *ret)
{
    const rq_attribute *a = NULL;
    if (f != NULL) a = rq_attributes_find(&f->attributes, property);
    if (a == NULL && f != NULL) a = rq_attributes_find(&f->configuration, property);
    if (a == NULL) a = rq_attributes_find(&t->attributes, property);
    if (a == NULL) return false;
    *ret = a->value;
    return true;
}
