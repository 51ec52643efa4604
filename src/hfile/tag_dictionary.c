/* SPDX-License-Identifier: Apache-2.0 */
/* The tags of a block, each written once (tag_dictionary.h). A block has few different tags, so a
 * tag is found by comparing it with all of them, the newest first. */
#include "hfile/tag_dictionary.h"

#define NONE RQ__TAG_SLOTS
#define NEW_TAG 0xff

void rq__tag_dictionary_reset(rq__tag_dictionary *d)
{
    rq_buf_reset(&d->bytes);
    d->count = 0;
}

void rq__tag_dictionary_clear(rq__tag_dictionary *d)
{
    rq_buf_clear(&d->bytes);
    d->count = 0;
}

static void link_newest(rq__tag_dictionary *d, uint8_t slot)
{
    d->slots[slot].newer = NONE;
    d->slots[slot].older = d->newest;
    if (d->newest != NONE) d->slots[d->newest].newer = slot;
    d->newest = slot;
    if (d->oldest == NONE) d->oldest = slot;
}

static void unlink_slot(rq__tag_dictionary *d, uint8_t slot)
{
    const rq__tag_slot *s = &d->slots[slot];
    if (s->newer != NONE)
        d->slots[s->newer].older = s->older;
    else
        d->newest = s->older;
    if (s->older != NONE)
        d->slots[s->older].newer = s->newer;
    else
        d->oldest = s->newer;
}

static void use(rq__tag_dictionary *d, uint8_t slot)
{
    if (d->newest == slot) return;
    unlink_slot(d, slot);
    link_newest(d, slot);
}

static rq_err add(rq__tag_dictionary *d, rq_slice tag)
{
    if (tag.len == 0) return RQ_OK;
    if (d->count == 0) d->newest = d->oldest = NONE;
    size_t at = d->bytes.len;
    RQ_TRY(rq_buf_append(&d->bytes, tag.ptr, tag.len));
    uint8_t slot = d->oldest;
    if (d->count < RQ__TAG_SLOTS)
        slot = (uint8_t)d->count++;
    else
        unlink_slot(d, slot);
    d->slots[slot].at = at;
    d->slots[slot].len = (uint32_t)tag.len;
    link_newest(d, slot);
    return RQ_OK;
}

static uint8_t find(const rq__tag_dictionary *d, rq_slice tag)
{
    if (d->count == 0) return NONE;
    uint8_t slot = d->newest;
    for (; slot != NONE; slot = d->slots[slot].older) {
        const rq__tag_slot *s = &d->slots[slot];
        if (s->len == tag.len && memcmp(d->bytes.ptr + s->at, tag.ptr, tag.len) == 0) break;
    }
    return slot;
}

rq_err rq__tag_dictionary_pack(rq__tag_dictionary *d, rq_slice tags, rq_buf *out)
{
    rq_cursor c = rq_cursor_of(tags);
    while (rq_cursor_left(&c) > 0) {
        uint16_t len;
        rq_slice tag;
        if (!rq_cursor_be16(&c, &len) || !rq_cursor_bytes(&c, len, &tag)) return RQ_E_INVALID;
        uint8_t slot = find(d, tag);
        if (slot != NONE) {
            use(d, slot);
            RQ_TRY(rq_buf_append_be16(out, slot));
            continue;
        }
        RQ_TRY(add(d, tag));
        RQ_TRY(rq_buf_append_u8(out, NEW_TAG));
        RQ_TRY(rq_buf_append_varint(out, tag.len));
        RQ_TRY(rq_buf_append(out, tag.ptr, tag.len));
    }
    return RQ_OK;
}

rq_err rq__tag_dictionary_unpack(rq__tag_dictionary *d, rq_cursor *in, size_t len, rq_buf *out)
{
    while (len > 0) {
        uint8_t first;
        uint8_t second;
        uint64_t n;
        rq_slice tag;
        if (!rq_cursor_u8(in, &first)) return RQ_E_CORRUPT;
        if (first == NEW_TAG) {
            if (!rq_cursor_varint(in, &n) || n > UINT16_MAX || n + 2 > len ||
                !rq_cursor_bytes(in, n, &tag))
                return RQ_E_CORRUPT;
            RQ_TRY(add(d, tag));
        } else {
            if (!rq_cursor_u8(in, &second)) return RQ_E_CORRUPT;
            uint32_t slot = (uint32_t)first << 8 | second;
            if (slot >= d->count) return RQ_E_CORRUPT;
            use(d, (uint8_t)slot);
            tag = rq_slice_of(d->bytes.ptr + d->slots[slot].at, d->slots[slot].len);
            if ((uint64_t)tag.len + 2 > len) return RQ_E_CORRUPT;
        }
        RQ_TRY(rq_buf_append_be16(out, (uint16_t)tag.len));
        RQ_TRY(rq_buf_append(out, tag.ptr, tag.len));
        len -= tag.len + 2;
    }
    return RQ_OK;
}
