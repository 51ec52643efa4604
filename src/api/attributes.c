/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of operations, checked and copied. HBASE: OperationWithAttributes. */
#include "api/api_priv.h"

/* Attributes for which the caller's structs have a field. */
static const char *const own[] = {"_raw_", "_isolationlevel_", "_ttl", "_rr_"};

static rq_err take_one(const rq_named_bytes *given, rq_arena *arena, rq_named *ret, rq_error *why)
{
    if (given->name == NULL || given->name[0] == '\0')
        return rq_fail(why, RQ_E_INVALID, "an attribute has no name");
    for (size_t i = 0; i < RQ_ARRAY_LEN(own); i++)
        if (strcmp(given->name, own[i]) == 0)
            return rq_fail(why, RQ_E_INVALID,
                           "attribute %s cannot be set here: it is a field of the request",
                           given->name);
    RQ_TRY(rq_check_bytes(given->value, given->name, why));
    ret->name = rq_arena_copy(arena, rq_slice_cstr(given->name));
    ret->value = rq_slice_of_bytes(given->value);
    if (ret->name.ptr == NULL) return rq_no_memory(why);
    return rq__keep_slice(arena, &ret->value, why);
}

rq_err rq__take_some_attributes(const rq_named_bytes *given, size_t count, rq_arena *arena,
                                rq_named_list *ret, rq_error *why)
{
    if (given == NULL || count > UINT16_MAX)
        return rq_fail(why, RQ_E_INVALID, "the attributes are NULL, or too many");
    rq_named *items = rq_arena_alloc(arena, count * sizeof *items);
    if (items == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < count; i++)
        RQ_TRY(take_one(&given[i], arena, &items[i], why));
    *ret = (rq_named_list){items, count};
    return RQ_OK;
}
