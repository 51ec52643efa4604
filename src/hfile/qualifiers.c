/* SPDX-License-Identifier: Apache-2.0 */
/* See qualifiers.h. */
#include "hfile/qualifiers.h"

#include <string.h>

static bool is_at(const rq__qualifiers *q, size_t at, rq_slice qualifier)
{
    return at < q->len && rq_slice_eq(rq_slice_of(q->bytes + at + 1, q->bytes[at]), qualifier);
}

/* Consecutive rows mostly have the same columns in the same order: compares first with the
 * qualifier behind the previous cell's, then with the previous cell's (another version), then with
 * all. */
void rq__qualifiers_add(rq__qualifiers *q, rq_slice qualifier)
{
    if (q->too_many) return;
    if (qualifier.len > UINT8_MAX) {
        q->too_many = true;
        return;
    }
    size_t behind = q->len == 0 ? 0 : q->at + 1u + q->bytes[q->at];
    if (is_at(q, behind, qualifier)) {
        q->at = (uint16_t)behind;
        return;
    }
    if (is_at(q, q->at, qualifier)) return;
    size_t at = 0;
    while (at < q->len && !is_at(q, at, qualifier))
        at += 1u + q->bytes[at];
    if (at == q->len) {
        if (q->count == RQ_QUALIFIERS_MAX || at + 1 + qualifier.len > sizeof q->bytes) {
            q->too_many = true;
            return;
        }
        q->bytes[at] = (uint8_t)qualifier.len;
        if (qualifier.len > 0) memcpy(q->bytes + at + 1, qualifier.ptr, qualifier.len);
        q->len = (uint16_t)(at + 1 + qualifier.len);
        q->count++;
    }
    q->at = (uint16_t)at;
}

bool rq_qualifiers_next(rq_slice *rest, rq_slice *ret)
{
    if (rest->len == 0) return false;
    size_t len = rest->ptr[0];
    *ret = rq_slice_of(rest->ptr + 1, len);
    *rest = rq_slice_of(rest->ptr + 1 + len, rest->len - 1 - len);
    return true;
}

bool rq__qualifiers_ok(rq_slice value)
{
    size_t count = 0;
    while (value.len > 0) {
        size_t entry = 1u + value.ptr[0];
        if (entry > value.len || ++count > RQ_QUALIFIERS_MAX) return false;
        value = rq_slice_of(value.ptr + entry, value.len - entry);
    }
    return true;
}

bool rq__qualifiers_has(rq_slice value, rq_slice qualifier)
{
    rq_slice one;
    while (rq_qualifiers_next(&value, &one))
        if (rq_slice_eq(one, qualifier)) return true;
    return false;
}
