/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of the shared folder's files (shared_posix.c). Integers are big-endian; each file ends
 * with the CRC-32C of all bytes before.
 *
 *     object  "RQOBJ\0\0\1"  u64 generation  u8 removed (0, 1)  u8 count  count × u64 token
 *             u32 length, bytes  u32 CRC
 *     seal    "RQSEAL\0\1"  u32 count  count × (u64 number, RQ_SLOG_STRIPES × u64 length)  u32 CRC
 *
 * A seal lists its ledgers in ascending order of their numbers.
 */
#include "base/buf.h"
#include "base/checksum.h"
#include "vfs/shared_priv.h"

#define MAGIC_LEN 8
static const char object_magic[MAGIC_LEN] = "RQOBJ\0\0\1";
static const char seal_magic[MAGIC_LEN] = "RQSEAL\0\1";

#define OBJECT_HEAD (MAGIC_LEN + 8 + 1 + 1)
#define LEDGER_LEN (8 + 8 * RQ_SLOG_STRIPES)

static rq_slice sealed_with_crc(uint8_t *file, size_t len)
{
    rq_put_be32(file + len, rq_crc32c(0, file, len));
    return rq_slice_of(file, len + 4);
}

/* The bytes between magic and checksum. */
static rq_err open_file(rq_slice file, const char *magic, const char *what, rq_cursor *ret,
                        rq_error *why)
{
    if (file.len < MAGIC_LEN + 4 || memcmp(file.ptr, magic, MAGIC_LEN - 1) != 0)
        return rq_fail(why, RQ_E_CORRUPT, "%s: the file's magic is wrong", what);
    if (file.ptr[MAGIC_LEN - 1] != (uint8_t)magic[MAGIC_LEN - 1])
        return rq_fail(why, RQ_E_VERSION, "%s: unknown format %u", what, file.ptr[MAGIC_LEN - 1]);
    uint32_t stored = rq_get_be32(file.ptr + file.len - 4);
    if (stored != rq_crc32c(0, file.ptr, file.len - 4))
        return rq_fail(why, RQ_E_CORRUPT, "%s: wrong checksum", what);
    *ret = rq_cursor_of(rq_slice_of(file.ptr + MAGIC_LEN, file.len - MAGIC_LEN - 4));
    return RQ_OK;
}

rq_err rq__object_encode(rq_arena *arena, const rq__object_record *r, rq_slice *ret)
{
    size_t len = OBJECT_HEAD + (size_t)r->history_count * 8 + 4 + r->bytes.len;
    uint8_t *file = rq_arena_alloc(arena, len + 4);
    if (file == NULL) return RQ_E_NO_MEMORY;
    memcpy(file, object_magic, MAGIC_LEN);
    rq_put_be64(file + MAGIC_LEN, r->generation);
    file[MAGIC_LEN + 8] = r->removed;
    file[MAGIC_LEN + 9] = (uint8_t)r->history_count;
    uint8_t *p = file + OBJECT_HEAD;
    for (unsigned i = 0; i < r->history_count; i++, p += 8)
        rq_put_be64(p, r->history[i]);
    rq_put_be32(p, (uint32_t)r->bytes.len);
    if (r->bytes.len > 0) memcpy(p + 4, r->bytes.ptr, r->bytes.len);
    *ret = sealed_with_crc(file, len);
    return RQ_OK;
}

rq_err rq__object_decode(rq_slice file, rq__object_record *ret, rq_error *why)
{
    rq_cursor c;
    uint8_t removed, count;
    uint32_t len;
    RQ_TRY(open_file(file, object_magic, "object", &c, why));
    bool good = rq_cursor_be64(&c, &ret->generation) && rq_cursor_u8(&c, &removed) &&
                rq_cursor_u8(&c, &count) && removed <= 1 && count > 0 && count <= RQ__HISTORY_MAX;
    for (unsigned i = 0; good && i < count; i++)
        good = rq_cursor_be64(&c, &ret->history[i]);
    good = good && rq_cursor_be32(&c, &len) && rq_cursor_bytes(&c, len, &ret->bytes) &&
           rq_cursor_left(&c) == 0 && ret->generation > 0;
    if (!good) return rq_fail(why, RQ_E_CORRUPT, "object: its fields contradict each other");
    ret->removed = removed == 1;
    ret->history_count = count;
    return RQ_OK;
}

rq_err rq__seal_encode(rq_arena *arena, const rq_slog_ledger *ledgers, size_t count, rq_slice *ret)
{
    size_t len = MAGIC_LEN + 4 + count * LEDGER_LEN;
    uint8_t *file = rq_arena_alloc(arena, len + 4);
    if (file == NULL) return RQ_E_NO_MEMORY;
    memcpy(file, seal_magic, MAGIC_LEN);
    rq_put_be32(file + MAGIC_LEN, (uint32_t)count);
    uint8_t *p = file + MAGIC_LEN + 4;
    for (size_t i = 0; i < count; i++) {
        rq_put_be64(p, ledgers[i].number);
        p += 8;
        for (unsigned k = 0; k < RQ_SLOG_STRIPES; k++, p += 8)
            rq_put_be64(p, ledgers[i].lengths[k]);
    }
    *ret = sealed_with_crc(file, len);
    return RQ_OK;
}

static bool take_ledger(rq_cursor *c, rq_slog_ledger *ret)
{
    bool good = rq_cursor_be64(c, &ret->number);
    for (unsigned k = 0; good && k < RQ_SLOG_STRIPES; k++)
        good = rq_cursor_be64(c, &ret->lengths[k]);
    return good;
}

rq_err rq__seal_decode(rq_slice file, rq_arena *arena, rq_slog_ledger **ret, size_t *ret_count,
                       rq_error *why)
{
    rq_cursor c;
    uint32_t count;
    RQ_TRY(open_file(file, seal_magic, "seal", &c, why));
    if (!rq_cursor_be32(&c, &count) || rq_cursor_left(&c) != (uint64_t)count * LEDGER_LEN)
        return rq_fail(why, RQ_E_CORRUPT, "seal: its length does not match its number of ledgers");
    rq_slog_ledger *ledgers = rq_arena_calloc(arena, count, sizeof *ledgers);
    if (ledgers == NULL) return rq_no_memory(why);
    for (uint32_t i = 0; i < count; i++)
        if (!take_ledger(&c, &ledgers[i]) || (i > 0 && ledgers[i].number <= ledgers[i - 1].number))
            return rq_fail(why, RQ_E_CORRUPT, "seal: ledgers are not in order");
    *ret = ledgers;
    *ret_count = count;
    return RQ_OK;
}
