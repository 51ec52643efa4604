/* SPDX-License-Identifier: Apache-2.0 */
/* The list of a cluster's peers on shared storage: bytes, and how a master replaces it; see peer_list.h. */
#include "replication/peer_list.h"

#include "base/checksum.h"
#include "wal/head.h"
#include "wal/queues.h"

#include <string.h>

#define MAGIC 0x5251706cu /* "RQpl" */
#define VERSION 1
#define NAME "peers"
#define PEERS_MAX 65536
#define ENTRY_MIN 27
#define TRIES 16

/* --- bytes ------------------------------------------------------------------------------------ */

static rq_err put_text(rq_buf *out, rq_slice text)
{
    RQ_TRY(rq_buf_append_varint(out, text.len));
    return rq_buf_append(out, text.ptr, text.len);
}

static rq_err put_peer(rq_buf *out, const rq_peer_info *p)
{
    RQ_TRY(put_text(out, rq_slice_cstr(p->id)));
    RQ_TRY(rq_buf_append_u8(out, p->enabled));
    RQ_TRY(rq_buf_append_be64(out, p->position));
    RQ_TRY(rq_buf_append_be64(out, p->version));
    RQ_TRY(rq_buf_append_be64(out, (uint64_t)p->lost_ms));
    return put_text(out, p->config);
}

rq_err rq__peer_list_encode(const rq_peer_list *l, rq_buf *out)
{
    RQ_ASSERT(l->by.len <= RQ_SHARED_NAME_MAX && l->count <= PEERS_MAX);
    RQ_TRY(rq_buf_append_be32(out, MAGIC));
    RQ_TRY(rq_buf_append_u8(out, VERSION));
    RQ_TRY(rq_buf_append_u8(out, (uint8_t)l->by.len));
    RQ_TRY(rq_buf_append(out, l->by.ptr, l->by.len));
    RQ_TRY(rq_buf_append_be64(out, l->version));
    RQ_TRY(rq_buf_append_varint(out, l->count));
    for (size_t i = 0; i < l->count; i++)
        RQ_TRY(put_peer(out, &l->peers[i]));
    return rq_buf_append_be32(out, rq_crc32c(0, out->ptr, out->len));
}

static bool get_text(rq_cursor *c, rq_slice *ret)
{
    uint64_t len;
    return rq_cursor_varint(c, &len) && len <= rq_cursor_left(c) &&
           rq_cursor_bytes(c, (size_t)len, ret);
}

static bool get_peer(rq_cursor *c, rq_peer_info *p, rq_slice *ret_id)
{
    uint8_t enabled;
    uint64_t lost;
    if (!get_text(c, ret_id) || !rq_cursor_u8(c, &enabled) || !rq_cursor_be64(c, &p->position) ||
        !rq_cursor_be64(c, &p->version) || !rq_cursor_be64(c, &lost) || !get_text(c, &p->config))
        return false;
    p->enabled = enabled != 0;
    p->lost_ms = (int64_t)lost;
    return enabled <= 1 && lost <= INT64_MAX && memchr(ret_id->ptr, 0, ret_id->len) == NULL;
}

static rq_err get_peers(rq_cursor *c, rq_arena *arena, rq_peer_list *l, rq_error *why)
{
    uint64_t count;
    if (!rq_cursor_varint(c, &count) || count > PEERS_MAX || count > rq_cursor_left(c) / ENTRY_MIN)
        return rq_fail(why, RQ_E_CORRUPT, "list of peers: bad count");
    l->peers = rq_arena_calloc(arena, (size_t)count + 1, sizeof *l->peers);
    if (l->peers == NULL) return rq_no_memory(why);
    for (; l->count < count; l->count++) {
        rq_peer_info *p = &l->peers[l->count];
        rq_slice id;
        if (!get_peer(c, p, &id))
            return rq_fail(why, RQ_E_CORRUPT, "list of peers: bad peer %zu", l->count);
        p->id = rq_arena_cstr(arena, id);
        if (p->id == NULL) return rq_no_memory(why);
        if (l->count > 0 && strcmp(p[-1].id, p->id) >= 0)
            return rq_fail(why, RQ_E_CORRUPT, "list of peers: bad order");
    }
    return RQ_OK;
}

rq_err rq__peer_list_decode(rq_slice bytes, rq_arena *arena, rq_peer_list *ret, rq_error *why)
{
    rq_peer_list l = {0};
    uint32_t magic;
    uint8_t version, len;
    rq_cursor c = rq_cursor_of(bytes);
    if (bytes.len < 5 + 4 || !rq_cursor_be32(&c, &magic) || magic != MAGIC ||
        !rq_cursor_u8(&c, &version))
        return rq_fail(why, RQ_E_CORRUPT, "list of peers: wrong magic");
    if (rq_get_be32(bytes.ptr + bytes.len - 4) != rq_crc32c(0, bytes.ptr, bytes.len - 4))
        return rq_fail(why, RQ_E_CORRUPT, "list of peers: wrong checksum");
    if (version != VERSION)
        return rq_fail(why, RQ_E_VERSION,
                       "the list of peers has version %u; this program supports %u", version,
                       VERSION);
    c = rq_cursor_of(rq_slice_of(c.ptr, bytes.len - 5 - 4));
    if (!rq_cursor_u8(&c, &len) || len > RQ_SHARED_NAME_MAX || !rq_cursor_bytes(&c, len, &l.by) ||
        !rq_cursor_be64(&c, &l.version))
        return rq_fail(why, RQ_E_CORRUPT, "list of peers: bad names");
    RQ_TRY(get_peers(&c, arena, &l, why));
    if (rq_cursor_left(&c) > 0) return rq_fail(why, RQ_E_CORRUPT, "list of peers: bad end");
    *ret = l;
    return RQ_OK;
}

/* --- the object ------------------------------------------------------------------------------- */

rq_err rq__peer_list_read(rq_shared *s, rq_arena *arena, rq_peer_list *ret,
                          uint64_t *ret_generation, rq_error *why)
{
    rq_slice bytes;
    rq_error detail = {.code = RQ_OK};
    *ret = (rq_peer_list){0};
    *ret_generation = 0;
    rq_err rc = rq_object_get(s, NAME, arena, &bytes, ret_generation, &detail);
    if (rc == RQ_E_NOT_FOUND) return RQ_OK;
    if (rc == RQ_OK) rc = rq__peer_list_decode(bytes, arena, ret, &detail);
    return rc == RQ_OK ? rc : rq_fail(why, rc, "%s", detail.message);
}

/* After the object was read: whatever replaces the object later, this process's catalog was the master's when it was read, or
 * the swap fails. */
static rq_err check_master(rq_shared *s, const char *master, rq_error *why)
{
    rq_wal_state state;
    rq_error detail = {.code = RQ_OK};
    rq_err rc = rq_wal_state_of(s, master, &state, &detail);
    if (rc != RQ_OK && rc != RQ_E_NOT_FOUND) return rq_fail(why, rc, "%s", detail.message);
    if (rc == RQ_OK && state == RQ_WAL_OPEN) return RQ_OK;
    return rq_fail(why, RQ_E_SERVER_ABORTED, "the log of %s was fenced", master);
}

static bool is_same(const rq_peer_info *a, const rq_peer_info *b)
{
    return a->enabled == b->enabled && a->position == b->position && a->lost_ms == b->lost_ms &&
           rq_slice_eq(a->config, b->config);
}

/* Sets the versions of the new list; both ascend by id. Returns whether they are the same. */
static bool compare(const rq_peer_list *old, rq_peer_list *next)
{
    bool same = old->count == next->count;
    for (size_t i = 0, k = 0; i < next->count; i++) {
        rq_peer_info *p = &next->peers[i];
        while (k < old->count && strcmp(old->peers[k].id, p->id) < 0)
            k++;
        bool is_kept =
            k < old->count && strcmp(old->peers[k].id, p->id) == 0 && is_same(&old->peers[k], p);
        p->version = is_kept ? old->peers[k].version : next->version;
        same &= is_kept;
    }
    return same;
}

/* RQ_E_CONFLICT: it was replaced meanwhile. The object is read before the catalog: so a swap never puts an older state of the
 * catalog over a newer one. */
static rq_err publish_once(rq_shared *s, const char *master, rq_catalog *c, rq_arena *arena,
                           uint64_t *ret_version, rq_error *why)
{
    rq_peer_list old, next = {.by = rq_slice_cstr(master)};
    uint64_t generation;
    rq_buf bytes = {0};
    RQ_TRY(rq__peer_list_read(s, arena, &old, &generation, why));
    RQ_TRY(check_master(s, master, why));
    if (rq_catalog_peers(c, arena, &next.peers, &next.count) != RQ_OK) return rq_no_memory(why);
    next.version = old.version + 1;
    *ret_version = old.version;
    if (compare(&old, &next)) return RQ_OK;
    *ret_version = next.version;
    rq_err rc = rq__peer_list_encode(&next, &bytes);
    if (rc == RQ_OK)
        rc = rq_object_swap(s, NAME, &generation, rq_buf_slice(&bytes), NULL, NULL, why);
    else
        rc = rq_no_memory(why);
    rq_buf_clear(&bytes);
    return rc;
}

rq_err rq_peer_list_publish(rq_shared *s, const char *master, rq_catalog *c, uint64_t *ret_version,
                            rq_error *why)
{
    rq_error detail = {.code = RQ_OK};
    rq_err rc = RQ_E_CONFLICT;
    for (int i = 0; rc == RQ_E_CONFLICT && i < TRIES; i++) {
        rq_arena arena = {0};
        rq_error_clear(&detail);
        rc = publish_once(s, master, c, &arena, ret_version, &detail);
        rq_arena_clear(&arena);
    }
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", detail.message);
}

/* --- who follows it --------------------------------------------------------------------------- */

rq_err rq_peer_list_readers(rq_shared *s, uint64_t version, bool is_empty, rq_arena *arena,
                            rq_peer_list_wait *ret, rq_error *why)
{
    *ret = (rq_peer_list_wait){.version = version, .is_empty = is_empty};
    return rq_wal_queues_logs(s, arena, &ret->servers, &ret->count, why);
}

static rq_err has_ended(rq_shared *s, const char *server, bool *ret, rq_error *why)
{
    rq_wal_state state = RQ_WAL_OPEN;
    rq_error detail = {.code = RQ_OK};
    rq_err rc = rq_wal_state_of(s, server, &state, &detail);
    *ret = rc == RQ_E_NOT_FOUND || (rc == RQ_OK && state != RQ_WAL_OPEN);
    return rc == RQ_OK || rc == RQ_E_NOT_FOUND ? RQ_OK : rq_fail(why, rc, "%s", detail.message);
}

static rq_err is_followed(rq_shared *s, const char *server, uint64_t version, bool is_empty,
                          bool *ret, rq_error *why)
{
    rq_arena arena = {0};
    rq_wal_queues q;
    uint64_t generation;
    rq_error detail = {.code = RQ_OK};
    rq_err rc = rq_wal_queues_read(s, server, &arena, &q, &generation, &detail);
    *ret = rc == RQ_OK ? q.seen >= version : rc == RQ_E_NOT_FOUND && is_empty;
    rq_arena_clear(&arena);
    if (rc != RQ_OK && rc != RQ_E_NOT_FOUND) return rq_fail(why, rc, "%s", detail.message);
    return *ret ? RQ_OK : has_ended(s, server, ret, why);
}

rq_err rq_peer_list_do_all_follow(rq_shared *s, rq_peer_list_wait *w, const char **ret,
                                  rq_error *why)
{
    bool follows = true;
    for (; w->count > 0; w->count -= follows) {
        *ret = w->servers[w->count - 1];
        RQ_TRY(is_followed(s, *ret, w->version, w->is_empty, &follows, why));
        if (!follows) return RQ_OK;
    }
    *ret = NULL;
    return RQ_OK;
}
