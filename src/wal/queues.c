/* SPDX-License-Identifier: Apache-2.0 */
/* The object with a log's replication queues: bytes, swaps, the end. Rules: queues.h. */
#include "wal/queues.h"

#include <stdio.h>

#include "base/checksum.h"

#define MAGIC 0x52517175u /* "RQqu" */
#define VERSION 1
#define SET "queues"
#define PREFIX "queues:"
#define NAME_MAX_LEN (RQ_SHARED_NAME_MAX + sizeof PREFIX)
#define ENTRY_MIN 25

/* --- bytes ------------------------------------------------------------------------------------ */

static rq_err put_entry(rq_buf *out, const rq_wal_queue *e)
{
    RQ_TRY(rq_buf_append_varint(out, e->id.len));
    RQ_TRY(rq_buf_append(out, e->id.ptr, e->id.len));
    RQ_TRY(rq_buf_append_be64(out, e->number));
    RQ_TRY(rq_buf_append_be64(out, e->position));
    return rq_buf_append_be64(out, (uint64_t)e->lost_ms);
}

rq_err rq__queues_encode(const rq_wal_queues *q, rq_buf *out)
{
    RQ_ASSERT(q->owner.len <= RQ_SHARED_NAME_MAX && q->count <= RQ_WAL_QUEUES_MAX);
    RQ_TRY(rq_buf_append_be32(out, MAGIC));
    RQ_TRY(rq_buf_append_u8(out, VERSION));
    RQ_TRY(rq_buf_append_u8(out, (uint8_t)q->owner.len));
    RQ_TRY(rq_buf_append(out, q->owner.ptr, q->owner.len));
    RQ_TRY(rq_buf_append_be64(out, q->edit));
    RQ_TRY(rq_buf_append_be64(out, q->seen));
    RQ_TRY(rq_buf_append_varint(out, q->count));
    for (size_t i = 0; i < q->count; i++)
        RQ_TRY(put_entry(out, &q->list[i]));
    return rq_buf_append_be32(out, rq_crc32c(0, out->ptr, out->len));
}

static bool get_entry(rq_cursor *c, rq_wal_queue *e)
{
    uint64_t len, lost;
    if (!rq_cursor_varint(c, &len) || len > rq_cursor_left(c) ||
        !rq_cursor_bytes(c, (size_t)len, &e->id) || !rq_cursor_be64(c, &e->number) ||
        !rq_cursor_be64(c, &e->position) || !rq_cursor_be64(c, &lost))
        return false;
    e->lost_ms = (int64_t)lost;
    return e->position <= INT64_MAX && lost <= INT64_MAX;
}

static rq_err get_entries(rq_cursor *c, rq_arena *arena, rq_wal_queues *q, rq_error *why)
{
    uint64_t count;
    if (!rq_cursor_varint(c, &count) || count > RQ_WAL_QUEUES_MAX ||
        count > rq_cursor_left(c) / ENTRY_MIN)
        return rq_fail(why, RQ_E_CORRUPT, "bad count of queues");
    q->list = rq_arena_calloc(arena, (size_t)count + 1, sizeof *q->list);
    if (q->list == NULL) return rq_no_memory(why);
    for (; q->count < count; q->count++)
        if (!get_entry(c, &q->list[q->count]))
            return rq_fail(why, RQ_E_CORRUPT, "bad queue %zu", q->count);
    return RQ_OK;
}

rq_err rq__queues_decode(rq_slice bytes, rq_arena *arena, rq_wal_queues *ret, rq_error *why)
{
    rq_wal_queues q = {0};
    uint32_t magic;
    uint8_t version, len;
    rq_cursor c = rq_cursor_of(bytes);
    if (bytes.len < 5 + 4 || !rq_cursor_be32(&c, &magic) || magic != MAGIC ||
        !rq_cursor_u8(&c, &version))
        return rq_fail(why, RQ_E_CORRUPT, "wrong magic");
    if (rq_get_be32(bytes.ptr + bytes.len - 4) != rq_crc32c(0, bytes.ptr, bytes.len - 4))
        return rq_fail(why, RQ_E_CORRUPT, "wrong checksum");
    if (version != VERSION)
        return rq_fail(why, RQ_E_VERSION, "the queues have version %u; this program supports %u",
                       version, VERSION);
    c = rq_cursor_of(rq_slice_of(c.ptr, bytes.len - 5 - 4));
    if (!rq_cursor_u8(&c, &len) || len > RQ_SHARED_NAME_MAX ||
        !rq_cursor_bytes(&c, len, &q.owner) || !rq_cursor_be64(&c, &q.edit) ||
        !rq_cursor_be64(&c, &q.seen))
        return rq_fail(why, RQ_E_CORRUPT, "bad owner");
    RQ_TRY(get_entries(&c, arena, &q, why));
    if (rq_cursor_left(&c) > 0) return rq_fail(why, RQ_E_CORRUPT, "bad end");
    *ret = q;
    return RQ_OK;
}

/* --- the object ------------------------------------------------------------------------------- */

static void name_of(const char *server_name, char ret[static NAME_MAX_LEN])
{
    (void)snprintf(ret, NAME_MAX_LEN, PREFIX "%s", server_name);
}

rq_err rq_wal_queues_read(rq_shared *s, const char *server_name, rq_arena *arena,
                          rq_wal_queues *ret, uint64_t *ret_generation, rq_error *why)
{
    char name[NAME_MAX_LEN];
    rq_slice bytes;
    name_of(server_name, name);
    RQ_TRY(rq_object_get(s, name, arena, &bytes, ret_generation, why));
    rq_error detail = {.code = RQ_OK};
    rq_err rc = rq__queues_decode(bytes, arena, ret, &detail);
    return rc == RQ_OK ? rc : rq_fail(why, rc, "%s: %s", name, detail.message);
}

/* The owner alone writes it, so bytes with its name are an earlier swap of its own. */
static bool is_own(void *ctx, rq_slice bytes)
{
    const rq_wal_queues *q = ctx;
    rq_arena arena = {0};
    rq_wal_queues found;
    bool own = rq__queues_decode(bytes, &arena, &found, NULL) == RQ_OK &&
               rq_slice_eq(found.owner, q->owner);
    rq_arena_clear(&arena);
    return own;
}

rq_err rq_wal_queues_swap(rq_shared *s, const char *server_name, rq_wal_queues *q,
                          uint64_t *generation, rq_error *why)
{
    char name[NAME_MAX_LEN];
    rq_buf bytes = {0};
    name_of(server_name, name);
    if (*generation == 0) RQ_TRY(rq_set_put(s, SET, server_name, why));
    q->edit++;
    rq_err rc = rq__queues_encode(q, &bytes);
    if (rc == RQ_OK)
        rc = rq_object_swap(s, name, generation, rq_buf_slice(&bytes), is_own, q, why);
    else
        rc = rq_no_memory(why);
    rq_buf_clear(&bytes);
    return rc;
}

rq_err rq_wal_queues_remove(rq_shared *s, const char *server_name, uint64_t generation,
                            rq_error *why)
{
    char name[NAME_MAX_LEN];
    rq_error detail = {.code = RQ_OK};
    name_of(server_name, name);
    rq_err rc = generation == 0 ? RQ_OK : rq_object_remove(s, name, generation, &detail);
    if (rc != RQ_OK) { /* the outcome may be unknown */
        rq_arena arena = {0};
        rq_wal_queues found;
        uint64_t now;
        if (rq_wal_queues_read(s, server_name, &arena, &found, &now, NULL) == RQ_E_NOT_FOUND)
            rc = RQ_OK;
        rq_arena_clear(&arena);
    }
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", detail.message);
    return rq_set_del(s, SET, server_name, why);
}

rq_err rq_wal_queues_enter(rq_shared *s, const char *server_name, rq_error *why)
{
    return rq_set_put(s, SET, server_name, why);
}

rq_err rq_wal_queues_logs(rq_shared *s, rq_arena *arena, const char ***ret, size_t *ret_count,
                          rq_error *why)
{
    return rq_set_list(s, SET, arena, ret, ret_count, why);
}
