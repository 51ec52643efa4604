/* SPDX-License-Identifier: Apache-2.0 */
/* A list of regions in a procedure's record. The record is one cell, and two lists of 100,000 regions must fit into it,
 * so each region is encoded as its difference from the region before it:
 *
 *    varint count, then of each region:
 *       u8 flags        1 offline, 2 split
 *       varint          difference of the region id, zigzag
 *       varint          replica id
 *       key             start key, after the end key of the region before it
 *       key             end key, after the start key
 *
 *    key:  varint bytes that it shares with the other key | varint length of the rest | the rest
 *
 * The table's name is the procedure's. */
#include "catalog/procedure.h"

#include "cell/cell.h"

#define FLAG_OFFLINE 1
#define FLAG_SPLIT 2

static uint64_t to_zigzag(int64_t n)
{
    return (uint64_t)n << 1 ^ (n < 0 ? UINT64_MAX : 0);
}

static int64_t of_zigzag(uint64_t n)
{
    return (int64_t)(n >> 1 ^ ((n & 1) != 0 ? UINT64_MAX : 0));
}

/* --- writing ---------------------------------------------------------------------------------- */

static rq_err put_key(rq_buf *b, rq_slice other, rq_slice key)
{
    size_t most = other.len < key.len ? other.len : key.len, shared = 0;
    while (shared < most && other.ptr[shared] == key.ptr[shared])
        shared++;
    RQ_TRY(rq_buf_append_varint(b, shared));
    RQ_TRY(rq_buf_append_varint(b, key.len - shared));
    return key.len == shared ? RQ_OK : rq_buf_append(b, key.ptr + shared, key.len - shared);
}

static rq_err put_region(rq_buf *b, const rq_region_info *r, rq_slice before, int64_t id_before)
{
    uint8_t flags = (uint8_t)((r->offline ? FLAG_OFFLINE : 0) | (r->split ? FLAG_SPLIT : 0));
    RQ_TRY(rq_buf_append_u8(b, flags));
    RQ_TRY(rq_buf_append_varint(
        b, to_zigzag((int64_t)((uint64_t)r->region_id - (uint64_t)id_before))));
    RQ_TRY(rq_buf_append_varint(b, (uint64_t)r->replica_id));
    RQ_TRY(put_key(b, before, r->start_key));
    return put_key(b, r->start_key, r->end_key);
}

static bool is_too_long(const rq_region_info *list, size_t count)
{
    uint64_t keys = 0;
    for (size_t i = 0; i < count; i++)
        keys += list[i].start_key.len + list[i].end_key.len;
    return count > RQ__RECORD_LIST_MAX || keys > RQ__RECORD_KEYS_MAX;
}

rq_err rq__regions_encode(rq_buf *b, const rq_region_info *list, size_t count)
{
    rq_slice before = {NULL, 0};
    int64_t id = 0;
    if (is_too_long(list, count)) return RQ_E_REQUEST_TOO_BIG;
    RQ_TRY(rq_buf_append_varint(b, count));
    for (size_t i = 0; i < count; i++) {
        RQ_TRY(put_region(b, &list[i], before, id));
        before = list[i].end_key;
        id = list[i].region_id;
    }
    return RQ_OK;
}

/* --- reading ---------------------------------------------------------------------------------- */

/* The place in the list, and the keys and id of the region that was read last. */
typedef struct reader {
    rq_cursor c;
    rq_buf start, end;
    int64_t id;
} reader;

static rq_err bad(rq_error *why)
{
    return rq_fail(why, RQ_E_CORRUPT, "procedure record: malformed list of regions");
}

/* Reads the lengths of a key, of which it shares the first bytes with a key of `other_len` bytes. */
static bool take_lengths(rq_cursor *c, size_t other_len, uint64_t *ret_shared, uint64_t *ret_rest)
{
    return rq_cursor_varint(c, ret_shared) && rq_cursor_varint(c, ret_rest) &&
           *ret_shared <= other_len && *ret_rest <= RQ_ROW_LEN_MAX - *ret_shared;
}

static rq_err take_key(reader *r, const rq_buf *other, rq_buf *key, rq_error *why)
{
    uint64_t shared, len;
    rq_slice rest;
    if (!take_lengths(&r->c, other->len, &shared, &len) ||
        !rq_cursor_bytes(&r->c, (size_t)len, &rest))
        return bad(why);
    rq_buf_reset(key);
    if (shared > 0) RQ_TRY(rq_buf_append(key, other->ptr, (size_t)shared));
    return len == 0 ? RQ_OK : rq_buf_append(key, rest.ptr, rest.len);
}

static rq_err take_region(reader *r, rq__proc *p, rq_region_info *ret, rq_error *why)
{
    uint8_t flags;
    uint64_t step, replica;
    if (!rq_cursor_u8(&r->c, &flags) || flags > (FLAG_OFFLINE | FLAG_SPLIT) ||
        !rq_cursor_varint(&r->c, &step) || !rq_cursor_varint(&r->c, &replica) ||
        replica > UINT16_MAX)
        return bad(why);
    RQ_TRY(take_key(r, &r->end, &r->start, why));
    RQ_TRY(take_key(r, &r->start, &r->end, why));
    r->id = (int64_t)((uint64_t)r->id + (uint64_t)of_zigzag(step));
    RQ_TRY(rq_region_info_make(&p->arena, p->ns, p->qualifier, rq_buf_slice(&r->start),
                               rq_buf_slice(&r->end), r->id, (int32_t)replica, ret));
    ret->offline = (flags & FLAG_OFFLINE) != 0;
    ret->split = (flags & FLAG_SPLIT) != 0;
    return RQ_OK;
}

/* *len is the length of the other key, and then that of this one. */
static bool pass_key(rq_cursor *c, size_t *len)
{
    uint64_t shared, rest;
    rq_slice bytes;
    if (!take_lengths(c, *len, &shared, &rest) || !rq_cursor_bytes(c, (size_t)rest, &bytes))
        return false;
    *len = (size_t)(shared + rest);
    return true;
}

/* Whether the keys of the list stay within RQ__RECORD_KEYS_MAX, the limit that the writer obeys. Allocates nothing, because a
 * key that takes two bytes in the list may be 32 kB long. Other damage is found later, by the decoder. */
static bool are_keys_short(rq_cursor c, uint64_t count)
{
    uint64_t number, keys = 0;
    size_t len = 0;
    uint8_t flags;
    for (uint64_t i = 0; i < count && keys <= RQ__RECORD_KEYS_MAX; i++) {
        if (!rq_cursor_u8(&c, &flags) || !rq_cursor_varint(&c, &number) ||
            !rq_cursor_varint(&c, &number) || !pass_key(&c, &len))
            return false;
        keys += len;
        if (!pass_key(&c, &len)) return false;
        keys += len;
    }
    return keys <= RQ__RECORD_KEYS_MAX;
}

#define REGION_LEN_MIN 7 /* bytes: flags, id, replica id, two numbers for each key */

static rq_err take_all(reader *r, rq__proc *p, rq_region_info **ret, size_t *ret_count,
                       rq_error *why)
{
    uint64_t count;
    if (p->ns.len == 0 || p->qualifier.len == 0 || !rq_cursor_varint(&r->c, &count) ||
        count > RQ__RECORD_LIST_MAX || count > rq_cursor_left(&r->c) / REGION_LEN_MIN ||
        !are_keys_short(r->c, count))
        return bad(why);
    /* A power of two, as for fields with one region each, which may follow in a damaged record. */
    size_t cap = 1;
    while (cap < count)
        cap *= 2;
    rq_region_info *list = rq_arena_calloc(&p->arena, cap, sizeof *list);
    if (list == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        RQ_TRY(take_region(r, p, &list[i], why));
    if (rq_cursor_left(&r->c) > 0) return bad(why);
    *ret = list;
    *ret_count = (size_t)count;
    return RQ_OK;
}

rq_err rq__regions_decode(rq__proc *p, rq_slice bytes, rq_region_info **ret, size_t *ret_count,
                          rq_error *why)
{
    reader r = {.c = rq_cursor_of(bytes)};
    if (*ret != NULL) return bad(why); /* of a damaged record: each list may take much memory */
    rq_err rc = take_all(&r, p, ret, ret_count, why);
    rq_buf_clear(&r.start);
    rq_buf_clear(&r.end);
    return rc;
}
