/* SPDX-License-Identifier: Apache-2.0 */
/* A small object replaced as a whole (for example a region's manifest), without rename.
 *
 * An object NAME is kept in the slots NAME.0 and NAME.1. A slot:
 *
 *     0     8  magic "RQSLOT1\n"          512    8  magic "RQMARK1\n"
 *     8     8  generation                 520    8  generation
 *    16     8  length of the bytes        528    4  CRC-32C of the 16 bytes before
 *    24     4  CRC-32C of the bytes
 *    28     4  CRC-32C of the 28 before   1024      the bytes
 *
 * All integers are big-endian. Header, mark and bytes are in separate sectors.
 *
 * 1. The valid slot with the higher generation counts. Only the other one is ever written.
 * 2. A write puts header and bytes and syncs them; from then on the generation is committed.
 * 3. Then the mark of that generation is written, without a sync: after a power cut it may exist or
 *    not, but if it exists the slot was durable. So a broken slot without a mark is a torn write; a
 *    broken slot whose mark names a generation above the other slot's is corruption: falling back
 *    to the older generation would silently forget a committed object.
 * 4. An object without its mark may exist only in the page cache (the server was killed between
 *    write and sync, or after a failed sync, which another sync alone would not repair). It is
 *    written again, synced and marked before it is used.
 * 5. A failed write is undone: its header is overwritten with zeros and synced. If this fails too,
 *    a power cut may leave either generation, and the caller learns that the outcome is in doubt.
 *    The next write goes to the same slot, whatever it contains by then.
 * 6. A slot without a valid object may still have one on disk, if undoing it failed before the
 *    process died. It is undone again before the other slot is used. A file too short for an object
 *    is never such a slot, because slots are never truncated: files that a full disk left short
 *    need not be touched, and could not be.
 * 7. Removal takes the older slot first and syncs, so that no older generation ever comes back.
 *
 * One writer per name at a time (the caller must ensure this); a concurrent reader may see either
 * generation. */
#include "vfs/vfs.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/checksum.h"
#include "vfs/vfs_priv.h"

#define SLOT_MAGIC "RQSLOT1\n"
#define MARK_MAGIC "RQMARK1\n"
#define HEADER_LEN 32
#define MARK_AT 512
#define MARK_LEN 20
#define BYTES_AT 1024
#define BYTES_MAX (256u << 20) /* largest object a reader accepts; far above any manifest */

typedef struct slot {
    char path[RQ_PATH_MAX];
    bool exists;
    bool is_short; /* it never held an object */
    bool valid;
    uint64_t generation; /* if valid */
    rq_slice bytes;      /* if valid */
    uint64_t marked;     /* generation that was durable in this slot, 0: none known */
} slot;

static rq_err slot_path(const char *name, int i, slot *s, rq_error *why)
{
    int n = snprintf(s->path, sizeof s->path, "%s.%d", name, i);
    if (n < 0 || (size_t)n >= sizeof s->path)
        return rq_fail(why, RQ_E_INVALID, "path \"%s\" is too long", name);
    return RQ_OK;
}

static void slot_parse(slot *s, rq_slice all)
{
    if (all.len >= MARK_AT + MARK_LEN) {
        const uint8_t *m = all.ptr + MARK_AT;
        if (memcmp(m, MARK_MAGIC, 8) == 0 && rq_get_be32(m + 16) == rq_crc32c(0, m, 16))
            s->marked = rq_get_be64(m + 8);
    }
    s->is_short = all.len < BYTES_AT;
    if (s->is_short) return;
    const uint8_t *h = all.ptr;
    if (memcmp(h, SLOT_MAGIC, 8) != 0 || rq_get_be32(h + 28) != rq_crc32c(0, h, 28)) return;
    uint64_t generation = rq_get_be64(h + 8);
    uint64_t len = rq_get_be64(h + 16);
    if (generation == 0 || len > all.len - BYTES_AT) return;
    if (rq_crc32c(0, all.ptr + BYTES_AT, (size_t)len) != rq_get_be32(h + 24)) return;
    s->valid = true;
    s->generation = generation;
    s->bytes = rq_slice_of(all.ptr + BYTES_AT, (size_t)len);
}

/* Reads both slots and determines the valid one: *ret_newest is 0, 1, or -1 for none. */
static rq_err slots_read(rq_vfs *v, const char *name, rq_arena *arena, slot slots[2],
                         int *ret_newest, rq_error *why)
{
    int newest = -1;
    for (int i = 0; i < 2; i++) {
        slot *s = &slots[i];
        memset(s, 0, sizeof *s);
        RQ_TRY(slot_path(name, i, s, why));
        rq_slice all;
        rq_error detail = {0};
        rq_err rc =
            rq_vfs_read_file(v, s->path, BYTES_AT + (size_t)BYTES_MAX, arena, &all, &detail);
        if (rc == RQ_E_NOT_FOUND) continue;
        if (rc != RQ_OK) return rq_fail(why, rc, "%s", detail.message);
        s->exists = true;
        slot_parse(s, all);
        if (s->valid && (newest < 0 || s->generation > slots[newest].generation)) newest = i;
    }
    uint64_t found = newest < 0 ? 0 : slots[newest].generation;
    for (int i = 0; i < 2; i++)
        if (!slots[i].valid && slots[i].marked > found)
            return rq_fail(why, RQ_E_CORRUPT,
                           "%s: generation %llu was committed and is damaged (newest valid: %llu)",
                           slots[i].path, (unsigned long long)slots[i].marked,
                           (unsigned long long)found);
    *ret_newest = newest;
    return RQ_OK;
}

/* Writes the mark. Errors do not matter: the slot is durable already. */
static void slot_mark(rq_file *f, uint64_t generation)
{
    uint8_t mark[MARK_LEN];
    memcpy(mark, MARK_MAGIC, 8);
    rq_put_be64(mark + 8, generation);
    rq_put_be32(mark + 16, rq_crc32c(0, mark, 16));
    rq_err unimportant = rq_file_write(f, mark, sizeof mark, MARK_AT, NULL);
    (void)unimportant;
}

/* Rule 5. */
static rq_err slot_undo(rq_file *f, rq_error *why)
{
    static const uint8_t no_header[HEADER_LEN];
    RQ_TRY(rq_file_write(f, no_header, sizeof no_header, 0, why));
    return rq_file_sync(f, why);
}

/* Bytes and header, synced. */
static rq_err slot_put(rq_file *f, uint64_t generation, rq_slice bytes, rq_error *why)
{
    uint8_t header[HEADER_LEN];
    uint64_t size = 0;
    memcpy(header, SLOT_MAGIC, 8);
    rq_put_be64(header + 8, generation);
    rq_put_be64(header + 16, bytes.len);
    rq_put_be32(header + 24, rq_crc32c(0, bytes.ptr, bytes.len));
    rq_put_be32(header + 28, rq_crc32c(0, header, 28));
    RQ_TRY(rq_file_opened_size(f, &size, why));
    RQ_TRY(rq_file_write(f, bytes.ptr, bytes.len, BYTES_AT, why));
    RQ_TRY(rq_file_write(f, header, sizeof header, 0, why));
    /* An empty object still has its whole header. */
    if (bytes.len == 0 && size < BYTES_AT) RQ_TRY(rq_file_truncate(f, BYTES_AT, why));
    return rq_file_sync(f, why);
}

/* Makes the other slot's name durable too: both are in the same folder. */
static rq_err slot_write(rq_vfs *v, const slot *s, bool names_durable, uint64_t generation,
                         rq_slice bytes, bool *in_doubt, rq_error *why)
{
    rq_file *f;
    RQ_TRY(rq_vfs_open(v, s->path, RQ_OPEN_WRITE | RQ_OPEN_CREATE, &f, why));
    rq_err rc = slot_put(f, generation, bytes, why);
    if (rc == RQ_OK && !names_durable) rc = rq__vfs_sync_parent(v, s->path, why);
    if (rc == RQ_OK) {
        slot_mark(f, generation);
        *in_doubt = false;
    } else {
        *in_doubt = slot_undo(f, NULL) != RQ_OK;
    }
    (void)rq_file_close(f);
    return rc;
}

/* Rules 4 and 6. In a read-only folder the slots are taken as they are. */
static rq_err slot_make_durable(rq_vfs *v, const slot *s, rq_error *why)
{
    rq_file *f;
    rq_error detail = {0};
    rq_err rc = rq_vfs_open(v, s->path, RQ_OPEN_WRITE, &f, &detail);
    if (rc == RQ_E_PERMISSION) return RQ_OK;
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", detail.message);
    rc = s->valid ? slot_put(f, s->generation, s->bytes, why) : slot_undo(f, why);
    if (rc == RQ_OK && s->valid) rc = rq__vfs_sync_parent(v, s->path, why);
    if (rc == RQ_OK && s->valid) slot_mark(f, s->generation);
    (void)rq_file_close(f);
    return rc;
}

static bool slot_is_marked(const slot *s)
{
    return s->valid && s->marked == s->generation;
}

rq_err rq_vfs_cas(rq_vfs *v, const char *name, uint64_t expected, rq_slice bytes,
                  uint64_t *ret_generation, bool *in_doubt, rq_error *why)
{
    bool own_doubt = false;
    if (in_doubt == NULL) in_doubt = &own_doubt;
    if (bytes.len > BYTES_MAX)
        return rq_fail(why, RQ_E_INVALID, "%s: %zu bytes are too many", name, bytes.len);
    rq_arena arena = {0};
    slot slots[2];
    int newest;
    rq_err rc = slots_read(v, name, &arena, slots, &newest, why);
    /* The generation that an earlier call could not undo is replaced by this one. */
    if (rc == RQ_OK && *in_doubt && newest >= 0 && slots[newest].generation == expected + 1) {
        slots[newest].valid = false;
        newest = slots[1 - newest].valid ? 1 - newest : -1;
    }
    if (rc == RQ_OK) {
        uint64_t found = newest < 0 ? 0 : slots[newest].generation;
        if (found != expected)
            rc = rq_fail(why, RQ_E_CONFLICT, "%s has generation %llu, expected %llu", name,
                         (unsigned long long)found, (unsigned long long)expected);
    }
    if (rc == RQ_OK) {
        /* A mark is written after the sync of the name, and stays when its slot is rewritten. */
        bool names_durable = slots[0].marked != 0 && slots[1].marked != 0;
        rc = slot_write(v, &slots[newest == 0 ? 1 : 0], names_durable, expected + 1, bytes,
                        in_doubt, why);
    }
    rq_arena_clear(&arena);
    if (rc == RQ_OK) *ret_generation = expected + 1;
    return rc;
}

rq_err rq_vfs_cas_read(rq_vfs *v, const char *name, rq_arena *arena, rq_slice *ret,
                       uint64_t *ret_generation, rq_error *why)
{
    slot slots[2];
    int newest;
    RQ_TRY(slots_read(v, name, arena, slots, &newest, why));
    if (newest < 0) return rq_fail(why, RQ_E_NOT_FOUND, "%s does not exist", name);
    const slot *other = &slots[1 - newest];
    if (other->exists && !other->valid && !other->is_short)
        RQ_TRY(slot_make_durable(v, other, why));
    if (!slot_is_marked(&slots[newest])) RQ_TRY(slot_make_durable(v, &slots[newest], why));
    *ret = slots[newest].bytes;
    *ret_generation = slots[newest].generation;
    return RQ_OK;
}

rq_err rq_vfs_cas_peek(rq_vfs *v, const char *name, rq_arena *arena, rq_slice *ret,
                       const char **ret_other, rq_error *why)
{
    slot slots[2];
    int newest;
    *ret_other = NULL;
    RQ_TRY(slots_read(v, name, arena, slots, &newest, why));
    if (newest < 0) return rq_fail(why, RQ_E_NOT_FOUND, "%s does not exist", name);
    const slot *other = &slots[1 - newest];
    if (other->exists && !other->valid) {
        *ret_other = rq_arena_printf(arena, "%s", other->path);
        if (*ret_other == NULL) return rq_no_memory(why);
    }
    *ret = slots[newest].bytes;
    return RQ_OK;
}

rq_err rq_vfs_cas_remove(rq_vfs *v, const char *name, rq_error *why)
{
    rq_arena arena = {0};
    slot slots[2];
    int newest;
    rq_err rc = slots_read(v, name, &arena, slots, &newest, why);
    rq_arena_clear(&arena);
    if (rc != RQ_OK) return rc;
    int order[2] = {newest == 0 ? 1 : 0, newest == 0 ? 0 : 1};
    for (int i = 0; i < 2; i++) {
        const slot *s = &slots[order[i]];
        if (!s->exists) continue;
        RQ_TRY(rq_vfs_remove(v, s->path, why));
        RQ_TRY(rq__vfs_sync_parent(v, s->path, why));
    }
    return RQ_OK;
}
