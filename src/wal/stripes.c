/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the stripes of one ledger in the order of LSNs; contract in stripes.h. */
#include "wal/stripes.h"

#include <string.h>

#include "base/checksum.h"
#include "wal/format.h"
#include "wal/record_codec.h"

#define READ_AHEAD (256u << 10)

rq_err rq__stripes_corrupt(const rq__stripes *r, const char *what, rq_error *why)
{
    return rq_fail(why, RQ_E_CORRUPT, "the log of %s, ledger %llu, LSN %llu: %s", r->server_name,
                   (unsigned long long)r->ledger.number, (unsigned long long)r->lsn, what);
}

void rq__stripes_init(rq__stripes *r, rq_shared *shared, const char *server_name)
{
    *r = (rq__stripes){.shared = shared,
                       .server_name = server_name,
                       .epoch = rq__extent_epoch(server_name),
                       .end = UINT64_MAX};
}

void rq__stripes_clear(rq__stripes *r)
{
    for (unsigned k = 0; k < RQ_SLOG_STRIPES; k++)
        rq_buf_clear(&r->stripes[k].window);
}

/* --- stripes ---------------------------------------------------------------------------------- */

static const uint8_t *extent_bytes(const rq__stripe *s)
{
    return s->window.ptr + s->pos;
}

static size_t extent_room(const rq__stripe *s)
{
    return s->window.len - s->pos;
}

/* At least `len` bytes from the extent's beginning, if the stripe has them. */
static rq_err load(rq__stripes *r, unsigned k, size_t len, rq_error *why)
{
    rq__stripe *s = &r->stripes[k];
    uint64_t length = r->ledger.lengths[k];
    if (extent_room(s) >= len || s->loaded == length) return RQ_OK;
    if (s->pos > 0) memmove(s->window.ptr, extent_bytes(s), extent_room(s));
    s->window.len -= s->pos;
    s->pos = 0;
    size_t want = len - s->window.len < READ_AHEAD ? READ_AHEAD : len - s->window.len;
    if (want > length - s->loaded) want = (size_t)(length - s->loaded);
    if (rq_buf_reserve(&s->window, want) != RQ_OK) return rq_no_memory(why);
    size_t found = 0;
    RQ_TRY(rq_slog_read(r->shared, r->server_name, &r->ledger, k, s->loaded,
                        s->window.ptr + s->window.len, want, &found, why));
    s->window.len += found;
    s->loaded += found;
    return RQ_OK;
}

/* Loads the next extent. An invalid one ends the stripe. */
static rq_err look(rq__stripes *r, unsigned k, rq_error *why)
{
    rq__stripe *s = &r->stripes[k];
    s->valid = false;
    RQ_TRY(load(r, k, RQ_WAL_EXTENT_HEADER_LEN, why));
    if (extent_room(s) < RQ_WAL_EXTENT_HEADER_LEN ||
        !rq__extent_decode(extent_bytes(s), r->epoch, &s->extent))
        return RQ_OK;
    uint64_t length = r->ledger.lengths[k];
    if (s->extent.len > length - s->at - RQ_WAL_EXTENT_HEADER_LEN) return RQ_OK;
    RQ_TRY(load(r, k, RQ_WAL_EXTENT_HEADER_LEN + (size_t)s->extent.len, why));
    const uint8_t *body = extent_bytes(s) + RQ_WAL_EXTENT_HEADER_LEN;
    s->valid = rq_crc32c(0, body, s->extent.len) == s->extent.crc;
    return RQ_OK;
}

rq_err rq__stripes_skip(rq__stripes *r, unsigned stripe, rq_error *why)
{
    rq__stripe *s = &r->stripes[stripe];
    size_t whole = RQ_WAL_EXTENT_HEADER_LEN + (size_t)s->extent.len;
    s->at += whole;
    s->pos += whole;
    return look(r, stripe, why);
}

rq_err rq__stripes_enter(rq__stripes *r, const rq_slog_ledger *ledger, uint64_t end, rq_error *why)
{
    r->ledger = *ledger;
    r->end = end;
    r->frame = NULL;
    r->left = 0;
    for (unsigned k = 0; k < RQ_SLOG_STRIPES; k++) {
        rq__stripe *s = &r->stripes[k];
        rq_buf_reset(&s->window);
        s->pos = 0;
        s->at = s->loaded = 0;
        RQ_TRY(look(r, k, why));
    }
    return RQ_OK;
}

rq_err rq__stripes_extend(rq__stripes *r, const rq_slog_ledger *ledger, uint64_t end, rq_error *why)
{
    r->ledger = *ledger;
    r->end = end;
    for (unsigned k = 0; k < RQ_SLOG_STRIPES; k++)
        if (!r->stripes[k].valid) RQ_TRY(look(r, k, why));
    return RQ_OK;
}

/* --- extents and frames ----------------------------------------------------------------------- */

/* Extents below the expected LSN do not exist in a sound log: each begins where one ended. */
static rq_err find_extent(rq__stripes *r, rq_error *why)
{
    for (unsigned k = 0; k < RQ_SLOG_STRIPES; k++) {
        rq__stripe *s = &r->stripes[k];
        if (!s->valid || s->extent.lsn != r->lsn) continue;
        if (s->extent.len > r->end - r->lsn)
            return rq__stripes_corrupt(r, "an extent reaches into the next ledger", why);
        r->current = k;
        r->frame = extent_bytes(s) + RQ_WAL_EXTENT_HEADER_LEN;
        r->left = s->extent.len;
        return RQ_OK;
    }
    return RQ_E_END;
}

/* RQ_E_AGAIN: a mark. */
static rq_err take_frame(rq__stripes *r, rq_wal_record *ret, rq_error *why)
{
    rq__wal_frame f;
    if (r->left < RQ_WAL_FRAME_HEADER_LEN || !rq__wal_frame_decode(r->frame, &f) ||
        f.epoch != (uint32_t)r->epoch || f.lsn != r->lsn ||
        rq__wal_frame_len(f.body_len) > r->left || (r->chained && f.prev_crc != r->prev_crc))
        return rq__stripes_corrupt(r, "damaged frame", why);
    rq_slice body = rq_slice_of(r->frame + RQ_WAL_FRAME_HEADER_LEN, f.body_len);
    if (rq_crc32c(0, body.ptr, body.len) != f.body_crc)
        return rq__stripes_corrupt(r, "damaged frame", why);
    size_t whole = (size_t)rq__wal_frame_len(f.body_len);
    r->prev_crc = f.crc;
    r->chained = true;
    r->lsn += whole;
    r->left -= whole;
    r->frame += whole;
    if (body.len == 1 && body.ptr[0] == RQ_WAL_MARK) return RQ_E_AGAIN;
    rq_err rc = rq__wal_record_decode(body, ret);
    ret->lsn = r->lsn;
    return rc == RQ_OK ? rc : rq__stripes_corrupt(r, "malformed record", why);
}

rq_err rq__stripes_next(rq__stripes *r, rq_wal_record *ret, rq_error *why)
{
    rq_err rc;
    do {
        if (r->frame != NULL && r->left == 0) {
            r->frame = NULL;
            RQ_TRY(rq__stripes_skip(r, r->current, why));
        }
        if (r->frame == NULL) {
            if (r->lsn >= r->end) return RQ_E_END;
            RQ_TRY(find_extent(r, why));
        }
        rc = take_frame(r, ret, why);
    } while (rc == RQ_E_AGAIN);
    return rc;
}
