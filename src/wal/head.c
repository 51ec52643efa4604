/* SPDX-License-Identifier: Apache-2.0 */
/* The head object of a log on shared storage: bytes, swaps, the fence, the end. Rules: head.h. */
#include "wal/head.h"

#include <stdio.h>

#include "base/checksum.h"
#include "wal/format.h"
#include "wal/queues.h"

#define MAGIC 0x52516864u /* "RQhd" */
#define VERSION 1
#define PREFIX "log:"
#define SET_PREFIX "log-regions:"
#define NAME_MAX_LEN (RQ_SHARED_NAME_MAX + sizeof SET_PREFIX)

/* --- bytes ------------------------------------------------------------------------------------ */

static rq_err put_ledger(rq_buf *out, const rq__head_ledger *s, bool sealed)
{
    RQ_TRY(rq_buf_append_be64(out, s->slog.number));
    RQ_TRY(rq_buf_append_be64(out, s->first_lsn));
    for (unsigned k = 0; sealed && k < RQ_SLOG_STRIPES; k++)
        RQ_TRY(rq_buf_append_be64(out, s->slog.lengths[k]));
    return RQ_OK;
}

rq_err rq__head_encode(const rq__head *h, rq_buf *out)
{
    RQ_ASSERT(h->by.len <= RQ_SHARED_NAME_MAX);
    RQ_TRY(rq_buf_append_be32(out, MAGIC));
    RQ_TRY(rq_buf_append_u8(out, VERSION));
    RQ_TRY(rq_buf_append_u8(out, (uint8_t)h->state));
    RQ_TRY(rq_buf_append_u8(out, (uint8_t)h->by.len));
    RQ_TRY(rq_buf_append(out, h->by.ptr, h->by.len));
    RQ_TRY(rq_buf_append_be64(out, h->edit));
    RQ_TRY(rq_buf_append_varint(out, h->count));
    for (size_t i = 0; i < h->count; i++)
        RQ_TRY(put_ledger(out, &h->ledgers[i], h->state == RQ_WAL_FENCED));
    return rq_buf_append_be32(out, rq_crc32c(0, out->ptr, out->len));
}

static bool get_ledger(rq_cursor *c, bool sealed, rq__head_ledger *s)
{
    bool ok = rq_cursor_be64(c, &s->slog.number) && rq_cursor_be64(c, &s->first_lsn);
    for (unsigned k = 0; ok && sealed && k < RQ_SLOG_STRIPES; k++)
        ok = rq_cursor_be64(c, &s->slog.lengths[k]) && s->slog.lengths[k] <= INT64_MAX;
    return ok && s->first_lsn >= RQ_WAL_FIRST_LSN && s->first_lsn <= INT64_MAX &&
           s->first_lsn % RQ_WAL_ALIGN == 0;
}

static bool in_order(const rq__head_ledger *a, const rq__head_ledger *b)
{
    return a->slog.number < b->slog.number && a->first_lsn <= b->first_lsn;
}

static rq_err get_ledgers(rq_cursor *c, rq_arena *arena, rq__head *h, rq_error *why)
{
    uint64_t count;
    if (!rq_cursor_varint(c, &count) || count > RQ_WAL_HEAD_LEDGERS_MAX ||
        count > rq_cursor_left(c) / 16)
        return rq_fail(why, RQ_E_CORRUPT, "log head: bad count of ledgers");
    h->ledgers = rq_arena_calloc(arena, (size_t)count + 1, sizeof *h->ledgers);
    if (h->ledgers == NULL) return rq_no_memory(why);
    for (; h->count < count; h->count++) {
        rq__head_ledger *s = &h->ledgers[h->count];
        if (!get_ledger(c, h->state == RQ_WAL_FENCED, s) || (h->count > 0 && !in_order(s - 1, s)))
            return rq_fail(why, RQ_E_CORRUPT, "log head: bad ledger %zu", h->count);
    }
    return RQ_OK;
}

rq_err rq__head_decode(rq_slice bytes, rq_arena *arena, rq__head *ret, rq_error *why)
{
    rq__head h = {0};
    uint32_t magic;
    uint8_t version, state, len;
    rq_cursor c = rq_cursor_of(bytes);
    if (bytes.len < 5 + 4 || !rq_cursor_be32(&c, &magic) || magic != MAGIC ||
        !rq_cursor_u8(&c, &version))
        return rq_fail(why, RQ_E_CORRUPT, "log head: wrong magic");
    if (rq_get_be32(bytes.ptr + bytes.len - 4) != rq_crc32c(0, bytes.ptr, bytes.len - 4))
        return rq_fail(why, RQ_E_CORRUPT, "log head: wrong checksum");
    if (version > VERSION)
        return rq_fail(why, RQ_E_VERSION, "log head has version %u; this program supports %u",
                       version, VERSION);
    c = rq_cursor_of(rq_slice_of(c.ptr, bytes.len - 5 - 4));
    if (version != VERSION || !rq_cursor_u8(&c, &state) || state < RQ_WAL_OPEN ||
        state > RQ_WAL_CLOSED)
        return rq_fail(why, RQ_E_CORRUPT, "log head: bad state");
    h.state = (rq_wal_state)state;
    if (!rq_cursor_u8(&c, &len) || len > RQ_SHARED_NAME_MAX || !rq_cursor_bytes(&c, len, &h.by) ||
        (len > 0) != (state == RQ_WAL_FENCED) || !rq_cursor_be64(&c, &h.edit))
        return rq_fail(why, RQ_E_CORRUPT, "log head: bad names");
    RQ_TRY(get_ledgers(&c, arena, &h, why));
    if (rq_cursor_left(&c) > 0) return rq_fail(why, RQ_E_CORRUPT, "log head: bad end");
    *ret = h;
    return RQ_OK;
}

/* --- the object ------------------------------------------------------------------------------- */

static void name_of(const char *prefix, const char *server_name, char ret[static NAME_MAX_LEN])
{
    (void)snprintf(ret, NAME_MAX_LEN, "%s%s", prefix, server_name);
}

rq_err rq__head_read(rq_shared *s, const char *server_name, rq_arena *arena, rq__head *ret,
                     uint64_t *ret_generation, rq_error *why)
{
    char name[NAME_MAX_LEN];
    rq_slice bytes;
    name_of(PREFIX, server_name, name);
    RQ_TRY(rq_object_get(s, name, arena, &bytes, ret_generation, why));
    rq_error detail = {.code = RQ_OK};
    rq_err rc = rq__head_decode(bytes, arena, ret, &detail);
    return rc == RQ_OK ? rc : rq_fail(why, rc, "%s: %s", name, detail.message);
}

/* While it is OPEN only its owner has written it. */
static bool is_open(void *ctx, rq_slice bytes)
{
    rq_arena arena = {0};
    rq__head h;
    (void)ctx;
    bool open = rq__head_decode(bytes, &arena, &h, NULL) == RQ_OK && h.state == RQ_WAL_OPEN;
    rq_arena_clear(&arena);
    return open;
}

static rq_err swap(rq_shared *s, const char *server_name, const rq__head *h, uint64_t *generation,
                   bool (*again)(void *ctx, rq_slice bytes), rq_error *why)
{
    char name[NAME_MAX_LEN];
    rq_buf bytes = {0};
    name_of(PREFIX, server_name, name);
    rq_err rc = rq__head_encode(h, &bytes);
    if (rc == RQ_OK)
        rc = rq_object_swap(s, name, generation, rq_buf_slice(&bytes), again, NULL, why);
    rq_buf_clear(&bytes);
    return rc;
}

rq_err rq__head_swap(rq_shared *s, const char *server_name, const rq__head *h, uint64_t *generation,
                     rq_error *why)
{
    rq_error detail = {.code = RQ_OK};
    rq_err rc = swap(s, server_name, h, generation, is_open, &detail);
    if (rc == RQ_E_CONFLICT)
        return rq_fail(why, RQ_E_SERVER_ABORTED, "the log of %s was fenced", server_name);
    return rc == RQ_OK ? rc : rq_fail(why, rc, "%s", detail.message);
}

/* --- the fence -------------------------------------------------------------------------------- */

/* A ledger that the head names but whose objects were never created has no bytes. */
static void take_lengths(rq__head *h, const rq_slog_ledger *found, size_t count)
{
    for (size_t i = 0, j = 0; i < h->count; i++) {
        while (j < count && found[j].number < h->ledgers[i].slog.number)
            j++;
        if (j < count && found[j].number == h->ledgers[i].slog.number)
            h->ledgers[i].slog = found[j];
    }
}

/* One attempt. RQ_E_CONFLICT: it was changed meanwhile. */
static rq_err fence_once(rq_shared *s, const char *server_name, const char *by, rq_arena *arena,
                         rq_error *why)
{
    rq__head h = {0};
    uint64_t generation = 0;
    rq_slog_ledger *found = NULL;
    size_t count = 0;
    rq_error detail = {.code = RQ_OK};
    rq_err rc = rq__head_read(s, server_name, arena, &h, &generation, &detail);
    if (rc != RQ_OK && rc != RQ_E_NOT_FOUND) return rq_fail(why, rc, "%s", detail.message);
    if (rc == RQ_OK && h.state != RQ_WAL_OPEN) return RQ_OK;
    rc = rq_slog_lengths(s, server_name, arena, &found, &count, &detail);
    /* Its owner made no ledger, or another server has retired the log. */
    if (rc != RQ_OK && rc != RQ_E_NOT_FOUND) return rq_fail(why, rc, "%s", detail.message);
    take_lengths(&h, found, count);
    h.state = RQ_WAL_FENCED;
    h.by = rq_slice_cstr(by);
    return swap(s, server_name, &h, &generation, NULL, why);
}

rq_err rq_wal_fence(rq_shared *s, const char *server_name, const char *by, uint64_t *ret_quiet_ns,
                    rq_error *why)
{
    RQ_TRY(rq_tenure_revoke(s, server_name, ret_quiet_ns, why));
    for (;;) {
        rq_arena arena = {0};
        rq_error detail = {.code = RQ_OK};
        rq_err rc = fence_once(s, server_name, by, &arena, &detail);
        rq_arena_clear(&arena);
        /* By the owner's last swap, or by another server's fence. */
        if (rc == RQ_E_CONFLICT) continue;
        return rc == RQ_OK ? rc : rq_fail(why, rc, "%s", detail.message);
    }
}

rq_err rq_wal_state_of(rq_shared *s, const char *server_name, rq_wal_state *ret, rq_error *why)
{
    rq_arena arena = {0};
    rq__head h = {0};
    uint64_t generation;
    rq_err rc = rq__head_read(s, server_name, &arena, &h, &generation, why);
    *ret = h.state;
    rq_arena_clear(&arena);
    return rc;
}

/* --- who needs it ----------------------------------------------------------------------------- */

/* Longer names are refused by the set. */
static void key_of(const char *encoded, uint64_t opening, char ret[static NAME_MAX_LEN])
{
    (void)snprintf(ret, NAME_MAX_LEN, "%s.%llu", encoded, (unsigned long long)opening);
}

rq_err rq_wal_need(rq_shared *s, const char *server_name, const char *encoded, uint64_t opening,
                   rq_error *why)
{
    char name[NAME_MAX_LEN], key[NAME_MAX_LEN];
    name_of(SET_PREFIX, server_name, name);
    key_of(encoded, opening, key);
    return rq_set_put(s, name, key, why);
}

rq_err rq_wal_need_no_more(rq_shared *s, const char *server_name, const char *encoded,
                           uint64_t opening, rq_error *why)
{
    char name[NAME_MAX_LEN], key[NAME_MAX_LEN];
    name_of(SET_PREFIX, server_name, name);
    key_of(encoded, opening, key);
    return rq_set_del(s, name, key, why);
}

rq_err rq_wal_needed_by(rq_shared *s, const char *server_name, rq_arena *arena, const char ***ret,
                        size_t *ret_count, rq_error *why)
{
    char name[NAME_MAX_LEN];
    name_of(SET_PREFIX, server_name, name);
    return rq_set_list(s, name, arena, ret, ret_count, why);
}

static rq_err check_queues(rq_shared *s, const char *server_name, rq_arena *arena, rq_error *why)
{
    rq_wal_queues queues;
    uint64_t generation;
    rq_error detail = {.code = RQ_OK};
    rq_err rc = rq_wal_queues_read(s, server_name, arena, &queues, &generation, &detail);
    if (rc == RQ_E_NOT_FOUND) return RQ_OK;
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", detail.message);
    RQ_TRY(rq_wal_queues_enter(s, server_name, why));
    return rq_fail(why, RQ_E_STATE, "the log of %s is still needed by replication", server_name);
}

static rq_err check_retirable(rq_shared *s, const char *server_name, rq_arena *arena,
                              const rq__head *h, rq_error *why)
{
    const char **needed_by;
    size_t count;
    if (h->state == RQ_WAL_OPEN)
        return rq_fail(why, RQ_E_STATE, "the log of %s has not ended", server_name);
    RQ_TRY(rq_wal_needed_by(s, server_name, arena, &needed_by, &count, why));
    if (count == 0) return check_queues(s, server_name, arena, why);
    return rq_fail(why, RQ_E_STATE,
                   "the log of %s is still needed by %zu region openings, the first one %s",
                   server_name, count, needed_by[0]);
}

/* A reader that arrives while the bytes are being removed finds an empty log. */
static rq_err empty(rq_shared *s, const char *server_name, rq__head *h, uint64_t *generation,
                    rq_error *why)
{
    if (h->state == RQ_WAL_CLOSED && h->count == 0) return RQ_OK;
    h->state = RQ_WAL_CLOSED;
    h->by = (rq_slice){0};
    h->count = 0;
    return swap(s, server_name, h, generation, NULL, why);
}

/* A revoke that takes effect after the log's removal takes the name again without sealing it: it is repeated first. */
static rq_err remove_log(rq_shared *s, const char *server_name, rq_error *why)
{
    uint64_t quiet_ns;
    rq_err rc = rq_slog_remove(s, server_name, why);
    if (rc != RQ_E_STATE) return rc;
    rq_error_clear(why);
    RQ_TRY(rq_tenure_revoke(s, server_name, &quiet_ns, why));
    return rq_slog_remove(s, server_name, why);
}

rq_err rq_wal_retire(rq_shared *s, const char *server_name, rq_error *why)
{
    char name[NAME_MAX_LEN];
    rq_arena arena = {0};
    rq__head h = {0};
    uint64_t generation;
    rq_error detail = {.code = RQ_OK};
    name_of(PREFIX, server_name, name);
    rq_err rc = rq__head_read(s, server_name, &arena, &h, &generation, &detail);
    if (rc == RQ_OK) {
        rc = check_retirable(s, server_name, &arena, &h, &detail);
        if (rc == RQ_OK) rc = empty(s, server_name, &h, &generation, &detail);
        if (rc == RQ_OK) rc = remove_log(s, server_name, &detail);
        if (rc == RQ_OK) rc = rq_object_remove(s, name, generation, &detail);
    }
    rq_arena_clear(&arena);
    /* CONFLICT: another server retired it meanwhile. */
    return rc == RQ_OK || rc == RQ_E_NOT_FOUND || rc == RQ_E_CONFLICT
               ? RQ_OK
               : rq_fail(why, rc, "%s", detail.message);
}
