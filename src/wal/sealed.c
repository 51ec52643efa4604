/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replay of a log on shared storage. Of each stripe of a segment one extent is in memory; the one that
 * begins at the expected LSN is next. Its frames are checked one by one, as in a WAL file.
 */
#include "wal/sealed.h"

#include <stdlib.h>

#include "base/checksum.h"
#include "wal/extent.h"
#include "wal/format.h"
#include "wal/head.h"
#include "wal/record_codec.h"

#define READ_AHEAD (256u << 10)

/* A window of one stripe, and the extent at its beginning. */
typedef struct stripe {
    rq_buf window;
    size_t pos;          /* of the extent in the window */
    uint64_t at, loaded; /* offsets in the stripe: of the extent, and behind the window */
    rq__extent extent;
    bool valid;
} stripe;

struct rq_wal_sealed {
    rq_shared *shared;
    char server_name[RQ_SHARED_NAME_MAX + 1];
    rq_arena arena;
    rq__head head;
    uint64_t epoch, from;
    size_t index; /* of the current segment */
    bool entered; /* its stripes are loaded */
    stripe stripes[RQ_SLOG_STRIPES];
    uint64_t lsn;         /* of the next frame */
    const uint8_t *frame; /* it, in the current extent; NULL: the next extent is to be found */
    size_t left;          /* of the current extent's body */
    unsigned current;     /* its stripe */
    uint32_t prev_crc;
    bool chained;
};

static const rq__head_segment *segment_now(const rq_wal_sealed *l)
{
    return &l->head.segments[l->index];
}

static bool is_last(const rq_wal_sealed *l)
{
    return l->index + 1 == l->head.count;
}

/* Where the segment ends by its successor. */
static uint64_t end_now(const rq_wal_sealed *l)
{
    return is_last(l) ? UINT64_MAX : l->head.segments[l->index + 1].first_lsn;
}

static rq_err corrupt(const rq_wal_sealed *l, const char *what, rq_error *why)
{
    return rq_fail(why, RQ_E_CORRUPT, "the log of %s, segment %llu, LSN %llu: %s", l->server_name,
                   (unsigned long long)segment_now(l)->slog.number, (unsigned long long)l->lsn,
                   what);
}

/* --- stripes ---------------------------------------------------------------------------------- */

static const uint8_t *extent_bytes(const stripe *s)
{
    return s->window.ptr + s->pos;
}

static size_t extent_room(const stripe *s)
{
    return s->window.len - s->pos;
}

/* At least `len` bytes from the extent's beginning, if the stripe has them. */
static rq_err stripe_load(rq_wal_sealed *l, unsigned k, size_t len, rq_error *why)
{
    stripe *s = &l->stripes[k];
    uint64_t sealed = segment_now(l)->slog.lengths[k];
    if (extent_room(s) >= len || s->loaded == sealed) return RQ_OK;
    if (s->pos > 0) memmove(s->window.ptr, extent_bytes(s), extent_room(s));
    s->window.len -= s->pos;
    s->pos = 0;
    size_t want = len - s->window.len < READ_AHEAD ? READ_AHEAD : len - s->window.len;
    if (want > sealed - s->loaded) want = (size_t)(sealed - s->loaded);
    if (rq_buf_reserve(&s->window, want) != RQ_OK) return rq_no_memory(why);
    size_t found = 0;
    RQ_TRY(rq_slog_read(l->shared, l->server_name, &segment_now(l)->slog, k, s->loaded,
                        s->window.ptr + s->window.len, want, &found, why));
    s->window.len += found;
    s->loaded += found;
    return RQ_OK;
}

/* Loads the next extent. An invalid one ends the stripe. */
static rq_err stripe_look(rq_wal_sealed *l, unsigned k, rq_error *why)
{
    stripe *s = &l->stripes[k];
    s->valid = false;
    RQ_TRY(stripe_load(l, k, RQ_WAL_EXTENT_HEADER_LEN, why));
    if (extent_room(s) < RQ_WAL_EXTENT_HEADER_LEN ||
        !rq__extent_decode(extent_bytes(s), l->epoch, &s->extent))
        return RQ_OK;
    uint64_t sealed = segment_now(l)->slog.lengths[k];
    if (s->extent.len > sealed - s->at - RQ_WAL_EXTENT_HEADER_LEN) return RQ_OK;
    RQ_TRY(stripe_load(l, k, RQ_WAL_EXTENT_HEADER_LEN + (size_t)s->extent.len, why));
    const uint8_t *body = extent_bytes(s) + RQ_WAL_EXTENT_HEADER_LEN;
    s->valid = rq_crc32c(0, body, s->extent.len) == s->extent.crc;
    return RQ_OK;
}

static rq_err stripe_advance(rq_wal_sealed *l, unsigned k, rq_error *why)
{
    stripe *s = &l->stripes[k];
    size_t whole = RQ_WAL_EXTENT_HEADER_LEN + (size_t)s->extent.len;
    s->at += whole;
    s->pos += whole;
    return stripe_look(l, k, why);
}

static rq_err segment_enter(rq_wal_sealed *l, rq_error *why)
{
    for (unsigned k = 0; k < RQ_SLOG_STRIPES; k++) {
        rq_buf_reset(&l->stripes[k].window);
        l->stripes[k].pos = 0;
        l->stripes[k].at = l->stripes[k].loaded = 0;
        RQ_TRY(stripe_look(l, k, why));
    }
    l->entered = true;
    return RQ_OK;
}

/* --- the next extent -------------------------------------------------------------------------- */

static bool has_bytes(const rq__head_segment *s)
{
    for (unsigned k = 0; k < RQ_SLOG_STRIPES; k++)
        if (s->slog.lengths[k] > 0) return true;
    return false;
}

/* No extent begins at l->lsn: this is the end of the log, unless later bytes are known to have been
 * acknowledged. */
static rq_err judge(rq_wal_sealed *l, rq_error *why)
{
    for (size_t i = l->index + 1; i < l->head.count; i++)
        if (l->head.segments[i].first_lsn > l->lsn && has_bytes(&l->head.segments[i]))
            return corrupt(l, "missing, though a later segment follows it", why);
    for (unsigned k = 0; k < RQ_SLOG_STRIPES; k++)
        while (l->stripes[k].valid) {
            if (l->stripes[k].extent.acknowledged > l->lsn)
                return corrupt(l, "missing, though it was acknowledged", why);
            RQ_TRY(stripe_advance(l, k, why));
        }
    return RQ_E_END;
}

/* Extents below the expected LSN do not exist in a sound log: each begins where one ended. */
static rq_err extent_find(rq_wal_sealed *l, rq_error *why)
{
    while (l->lsn >= end_now(l)) {
        l->index++;
        l->entered = false;
    }
    if (!l->entered) RQ_TRY(segment_enter(l, why));
    for (unsigned k = 0; k < RQ_SLOG_STRIPES; k++) {
        stripe *s = &l->stripes[k];
        if (!s->valid || s->extent.lsn != l->lsn) continue;
        if (s->extent.len > end_now(l) - l->lsn)
            return corrupt(l, "an extent reaches into the next segment", why);
        l->current = k;
        l->frame = extent_bytes(s) + RQ_WAL_EXTENT_HEADER_LEN;
        l->left = s->extent.len;
        return RQ_OK;
    }
    return judge(l, why);
}

/* --- frames ----------------------------------------------------------------------------------- */

/* RQ_E_AGAIN: a mark. */
static rq_err frame_take(rq_wal_sealed *l, rq_wal_record *ret, rq_error *why)
{
    rq__wal_frame f;
    if (l->left < RQ_WAL_FRAME_HEADER_LEN || !rq__wal_frame_decode(l->frame, &f) ||
        f.epoch != (uint32_t)l->epoch || f.lsn != l->lsn ||
        rq__wal_frame_len(f.body_len) > l->left || (l->chained && f.prev_crc != l->prev_crc))
        return corrupt(l, "damaged frame", why);
    rq_slice body = rq_slice_of(l->frame + RQ_WAL_FRAME_HEADER_LEN, f.body_len);
    if (rq_crc32c(0, body.ptr, body.len) != f.body_crc) return corrupt(l, "damaged frame", why);
    size_t whole = (size_t)rq__wal_frame_len(f.body_len);
    l->prev_crc = f.crc;
    l->chained = true;
    l->lsn += whole;
    l->left -= whole;
    l->frame += whole;
    if (body.len == 1 && body.ptr[0] == RQ_WAL_MARK) return RQ_E_AGAIN;
    rq_err rc = rq__wal_record_decode(body, ret);
    ret->lsn = l->lsn;
    return rc == RQ_OK ? rc : corrupt(l, "malformed record", why);
}

rq_err rq_wal_sealed_next(rq_wal_sealed *l, rq_wal_record *ret, rq_error *why)
{
    if (l->head.count == 0) return RQ_E_END;
    for (;;) {
        if (l->frame != NULL && l->left == 0) {
            l->frame = NULL;
            RQ_TRY(stripe_advance(l, l->current, why));
        }
        if (l->frame == NULL) RQ_TRY(extent_find(l, why));
        uint64_t begin = l->lsn;
        rq_err rc = frame_take(l, ret, why);
        if (rc == RQ_OK && begin < l->from) continue;
        if (rc != RQ_E_AGAIN) return rc;
    }
}

/* --- open ------------------------------------------------------------------------------------- */

rq_err rq_wal_sealed_open(rq_shared *s, const char *server_name, uint64_t from, rq_wal_sealed **ret,
                          rq_error *why)
{
    rq_wal_sealed *l = calloc(1, sizeof *l);
    if (l == NULL) return rq_no_memory(why);
    uint64_t generation;
    l->shared = s;
    l->from = from;
    l->epoch = rq__extent_epoch(server_name);
    rq_err rc = rq__head_read(s, server_name, &l->arena, &l->head, &generation, why);
    if (rc == RQ_OK && l->head.state == RQ_WAL_OPEN)
        rc = rq_fail(why, RQ_E_STATE, "the log of %s has not ended", server_name);
    if (rc != RQ_OK) {
        rq_wal_sealed_close(l);
        return rc;
    }
    memcpy(l->server_name, server_name, strlen(server_name) + 1);
    while (l->index + 1 < l->head.count && end_now(l) <= from)
        l->index++;
    if (l->head.count > 0) l->lsn = segment_now(l)->first_lsn;
    *ret = l;
    return RQ_OK;
}

void rq_wal_sealed_close(rq_wal_sealed *l)
{
    if (l == NULL) return;
    for (unsigned k = 0; k < RQ_SLOG_STRIPES; k++)
        rq_buf_clear(&l->stripes[k].window);
    rq_arena_clear(&l->arena);
    free(l);
}
