/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads one WAL file: the header, its frames in order, and the index behind them. A window of the
 * file is held in memory and grows to the longest frame; a frame's length is believed only after
 * its header's checksum, and only up to the file's size.
 *
 * Rule 5 of wal/format.h is decided in judge(): the end of the log, or corruption.
 */
#include "wal/reader.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/checksum.h"
#include "wal/format.h"
#include "wal/header.h"
#include "wal/record_codec.h"

#define WINDOW (256u << 10)
#define UNKNOWN_END UINT64_MAX

struct rq_wal_reader {
    rq_file *file;
    bool borrows; /* the file is the caller's */
    char *path;
    rq_wal_file_info info;
    uint64_t file_size;
    uint64_t end_lsn; /* from the successor's header, or UNKNOWN_END */

    uint64_t lsn;        /* of the next frame */
    uint64_t record_lsn; /* of the last record */
    uint64_t durable;    /* the highest that a frame names */
    uint32_t prev_crc;
    bool chained; /* prev_crc is known, i.e. the reader has not skipped or sought */
    bool corrupt; /* reported by the last next() */

    uint8_t *window;
    size_t window_cap;
    uint64_t window_off;
    size_t window_len;
};

static uint64_t offset_of(const rq_wal_reader *r, uint64_t lsn)
{
    return RQ_WAL_FRAMES_AT + (lsn - r->info.first_lsn);
}

/* How much to read at `off` for `len` bytes: a window, but not past the end of the frames if that is
 * known. The reader of a live log looks every few milliseconds, and each time only a few kilobytes
 * are new. */
static size_t window_size(const rq_wal_reader *r, uint64_t off, size_t len)
{
    uint64_t size = WINDOW;
    uint64_t end = r->end_lsn == UNKNOWN_END ? UINT64_MAX : offset_of(r, r->end_lsn);
    if (end > off && end - off < size) size = end - off;
    return len < size ? (size_t)size : len;
}

/* The file's bytes [off, off + len); *ret_len is smaller at the end of the file. Valid until the
 * next call. */
static rq_err window_get(rq_wal_reader *r, uint64_t off, size_t len, const uint8_t **ret,
                         size_t *ret_len, rq_error *why)
{
    if (off >= r->file_size) len = 0;
    if (len > r->file_size - off) len = (size_t)(r->file_size - off);
    *ret_len = len;
    *ret = r->window;
    if (len == 0) return RQ_OK;
    if (off < r->window_off || off + len > r->window_off + r->window_len) {
        size_t want = window_size(r, off, len);
        if (want > r->window_cap) {
            uint8_t *more = realloc(r->window, want);
            if (more == NULL) return rq_fail(why, RQ_E_NO_MEMORY, "%s: out of memory", r->path);
            r->window = more;
            r->window_cap = want;
        }
        r->window_off = off;
        r->window_len = 0;
        RQ_TRY(rq_file_read(r->file, r->window, want, off, &r->window_len, why));
        if (r->window_len < len)
            return rq_fail(why, RQ_E_IO, "%s: shrank while being read", r->path);
    }
    *ret = r->window + (off - r->window_off);
    return RQ_OK;
}

rq_err rq__wal_reader_of(rq_file *file, const char *path, const rq_wal_file_info *info,
                         uint64_t size, rq_wal_reader **ret, rq_error *why)
{
    rq_wal_reader *r = calloc(1, sizeof *r);
    char *copy = strdup(path);
    if (r == NULL || copy == NULL) {
        free(r);
        free(copy);
        return rq_fail(why, RQ_E_NO_MEMORY, "%s: out of memory", path);
    }
    *r = (rq_wal_reader){.file = file,
                         .borrows = true,
                         .path = copy,
                         .info = *info,
                         .file_size = size,
                         .end_lsn = UNKNOWN_END,
                         .lsn = info->first_lsn,
                         .prev_crc = info->prev_crc,
                         .chained = true};
    *ret = r;
    return RQ_OK;
}

rq_err rq__wal_reader_open(rq_vfs *vfs, const char *path, rq_wal_reader **ret, rq_error *why)
{
    rq_file *file;
    rq_wal_file_info info;
    uint64_t size = 0;
    int older;
    RQ_TRY(rq_vfs_open(vfs, path, RQ_OPEN_READ, &file, why));
    rq_err rc = rq_file_opened_size(file, &size, why);
    if (rc == RQ_OK) rc = rq__wal_header_read(file, path, &info, &older, why);
    if (rc == RQ_OK) rc = rq__wal_reader_of(file, path, &info, size, ret, why);
    if (rc == RQ_OK)
        (*ret)->borrows = false;
    else
        (void)rq_file_close(file);
    return rc;
}

rq_err rq__wal_reader_refresh(rq_wal_reader *r, rq_error *why)
{
    r->window_len = 0;
    return rq_file_size(r->file, &r->file_size, why);
}

void rq__wal_reader_close(rq_wal_reader *r)
{
    if (r == NULL) return;
    if (!r->borrows) (void)rq_file_close(r->file);
    free(r->window);
    free(r->path);
    free(r);
}

const rq_wal_file_info *rq__wal_reader_info(const rq_wal_reader *r)
{
    return &r->info;
}

void rq__wal_reader_set_end(rq_wal_reader *r, uint64_t end_lsn)
{
    r->end_lsn = end_lsn;
}

uint64_t rq__wal_reader_lsn(const rq_wal_reader *r)
{
    return r->lsn;
}

uint64_t rq__wal_reader_record_lsn(const rq_wal_reader *r)
{
    return r->record_lsn;
}

void rq__wal_reader_seek(rq_wal_reader *r, uint64_t lsn)
{
    r->lsn = lsn;
    r->chained = false;
    r->corrupt = false;
}

uint64_t rq__wal_reader_offset(const rq_wal_reader *r)
{
    return offset_of(r, r->lsn);
}

uint64_t rq__wal_reader_lsn_offset(const rq_wal_reader *r, uint64_t lsn)
{
    return offset_of(r, lsn);
}

uint32_t rq__wal_reader_prev_crc(const rq_wal_reader *r)
{
    return r->prev_crc;
}

uint64_t rq__wal_reader_durable(const rq_wal_reader *r)
{
    return r->durable;
}

/* Whether this is a frame header of this WAL file and position. */
static bool frame_here(const rq_wal_reader *r, const uint8_t *p, uint64_t lsn, rq__wal_frame *ret)
{
    return rq__wal_frame_decode(p, ret) && ret->epoch == (uint32_t)r->info.epoch && ret->lsn == lsn;
}

/* Loads the whole frame at `lsn`: RQ_OK, RQ_E_END if there is no valid one, or an I/O error.
 * *ret_body is in the window. */
static rq_err frame_load(rq_wal_reader *r, uint64_t lsn, rq__wal_frame *ret, rq_slice *ret_body,
                         rq_error *why)
{
    const uint8_t *p;
    size_t len;
    uint64_t off = offset_of(r, lsn);
    RQ_TRY(window_get(r, off, RQ_WAL_FRAME_HEADER_LEN, &p, &len, why));
    if (len < RQ_WAL_FRAME_HEADER_LEN || !frame_here(r, p, lsn, ret)) return RQ_E_END;
    uint64_t whole = rq__wal_frame_len(ret->body_len);
    if (whole > r->file_size - off) return RQ_E_END;
    if (r->end_lsn != UNKNOWN_END && whole > r->end_lsn - lsn) return RQ_E_END;
    RQ_TRY(window_get(r, off, (size_t)whole, &p, &len, why));
    if (len < whole) return RQ_E_END;
    *ret_body = rq_slice_of(p + RQ_WAL_FRAME_HEADER_LEN, ret->body_len);
    return rq_crc32c(0, ret_body->ptr, ret_body->len) == ret->body_crc ? RQ_OK : RQ_E_END;
}

/* Searches behind a bad position for the next frame header that belongs there; RQ_E_END: none. With
 * `durable_above`, only for one that proves the bad position to have been durable. */
static rq_err frame_search(rq_wal_reader *r, uint64_t from, bool whole, uint64_t durable_above,
                           uint64_t *ret_lsn, rq_error *why)
{
    uint64_t lsn = from;
    for (;;) {
        if (r->end_lsn != UNKNOWN_END && lsn >= r->end_lsn) return RQ_E_END;
        const uint8_t *p;
        size_t len;
        RQ_TRY(window_get(r, offset_of(r, lsn), WINDOW / 2, &p, &len, why));
        if (len < RQ_WAL_FRAME_HEADER_LEN) return RQ_E_END;
        size_t i = 0;
        for (; i + RQ_WAL_FRAME_HEADER_LEN <= len; i += RQ_WAL_ALIGN) {
            rq__wal_frame f;
            if (rq_get_be32(p + i) != RQ_WAL_FRAME_MAGIC || !frame_here(r, p + i, lsn + i, &f))
                continue;
            if (!whole && f.durable <= durable_above) continue;
            if (whole) {
                rq_slice body;
                rq_err rc = frame_load(r, lsn + i, &f, &body, why);
                if (rc != RQ_OK && rc != RQ_E_END) return rc;
                if (rc == RQ_E_END) {
                    /* The window may have moved. */
                    RQ_TRY(window_get(r, offset_of(r, lsn), WINDOW / 2, &p, &len, why));
                    continue;
                }
            }
            *ret_lsn = lsn + i;
            return RQ_OK;
        }
        lsn += i;
    }
}

/* A clean stop leaves a header behind which nothing was ever appended. The bytes behind it are frames of the WAL file that
 * was in the file before, perhaps megabytes of them; they are not read. */
static bool is_empty(const rq_wal_reader *r)
{
    return r->info.clean && r->end_lsn == UNKNOWN_END && r->lsn == r->info.first_lsn;
}

/* There is no valid frame at r->lsn: the end, or corruption? */
static rq_err judge(rq_wal_reader *r, rq_error *why)
{
    uint64_t off = offset_of(r, r->lsn);
    if (r->end_lsn != UNKNOWN_END) {
        if (r->lsn == r->end_lsn) return RQ_E_END;
        r->corrupt = true;
        return rq_fail(why, RQ_E_CORRUPT,
                       "%s: offset %llu: damaged record; the WAL file's end is at offset %llu",
                       r->path, (unsigned long long)off,
                       (unsigned long long)offset_of(r, r->end_lsn));
    }
    uint64_t witness;
    rq_err rc = frame_search(r, r->lsn + RQ_WAL_ALIGN, false, r->lsn, &witness, why);
    if (rc != RQ_OK) return rc;
    r->corrupt = true;
    return rq_fail(why, RQ_E_CORRUPT,
                   "%s: offset %llu: damaged record; a later record at offset %llu shows that this "
                   "one was durable",
                   r->path, (unsigned long long)off, (unsigned long long)offset_of(r, witness));
}

rq_err rq__wal_reader_next(rq_wal_reader *r, rq_wal_record *ret, rq_error *why)
{
    r->corrupt = false;
    for (;;) {
        rq__wal_frame f;
        rq_slice body;
        if (is_empty(r) || (r->end_lsn != UNKNOWN_END && r->lsn >= r->end_lsn)) return RQ_E_END;
        rq_err rc = frame_load(r, r->lsn, &f, &body, why);
        if (rc == RQ_OK && r->chained && f.prev_crc != r->prev_crc) rc = RQ_E_END;
        if (rc == RQ_E_END) return judge(r, why);
        if (rc != RQ_OK) return rc;
        uint64_t end = r->lsn + rq__wal_frame_len(f.body_len);
        if (f.durable > r->durable) r->durable = f.durable;
        if (body.len == 1 && body.ptr[0] == RQ_WAL_MARK) {
            r->lsn = end;
            r->prev_crc = f.crc;
            r->chained = true;
            continue;
        }
        rc = rq__wal_record_decode(body, ret);
        if (rc != RQ_OK) {
            /* The checksums are right, so a writer has written this intentionally. */
            r->corrupt = true;
            return rq_fail(
                why, rc, "%s: offset %llu: %s", r->path, (unsigned long long)offset_of(r, r->lsn),
                rc == RQ_E_VERSION ? "a record of a kind that this version does not support"
                                   : "malformed record");
        }
        r->record_lsn = r->lsn;
        r->lsn = end;
        r->prev_crc = f.crc;
        r->chained = true;
        ret->lsn = end;
        return RQ_OK;
    }
}

rq_err rq__wal_reader_skip(rq_wal_reader *r, rq_error *why)
{
    if (!r->corrupt) return RQ_E_STATE;
    r->corrupt = false;
    uint64_t lsn;
    rq_err rc = frame_search(r, r->lsn + RQ_WAL_ALIGN, true, 0, &lsn, why);
    if (rc == RQ_E_END && r->end_lsn != UNKNOWN_END) {
        lsn = r->end_lsn; /* the successor's frames go on there */
        rc = RQ_OK;
    } else if (rc == RQ_E_END) {
        return rc;
    }
    if (rc != RQ_OK) return rc;
    r->lsn = lsn;
    r->chained = false;
    return RQ_OK;
}

/* --- the index ---------------------------------------------------------------------------- */

/* RQ_E_NOT_FOUND: there is no valid index. *ret_body is in the window. */
static rq_err index_load(rq_wal_reader *r, rq_slice *ret_body, rq_error *why)
{
    RQ_ASSERT(r->end_lsn != UNKNOWN_END);
    if (r->end_lsn < r->info.first_lsn) return RQ_E_NOT_FOUND;
    uint64_t off = offset_of(r, r->end_lsn);
    const uint8_t *p;
    size_t len;
    RQ_TRY(window_get(r, off, RQ_WAL_INDEX_HEADER_LEN, &p, &len, why));
    if (len < RQ_WAL_INDEX_HEADER_LEN || rq_get_be32(p) != RQ_WAL_INDEX_MAGIC ||
        rq_get_be32(p + 20) != rq_crc32c(0, p, 20) || rq_get_be64(p + 8) != r->end_lsn)
        return RQ_E_NOT_FOUND;
    uint32_t body_len = rq_get_be32(p + 4);
    uint32_t crc = rq_get_be32(p + 16);
    if (body_len > r->file_size - off - RQ_WAL_INDEX_HEADER_LEN) return RQ_E_NOT_FOUND;
    RQ_TRY(window_get(r, off + RQ_WAL_INDEX_HEADER_LEN, body_len, &p, &len, why));
    if (len < body_len || body_len < RQ_WAL_INDEX_BODY_FIXED || rq_crc32c(0, p, body_len) != crc)
        return RQ_E_NOT_FOUND;
    *ret_body = rq_slice_of(p, body_len);
    return RQ_OK;
}

rq_err rq_wal_reader_index(rq_wal_reader *r,
                           rq_err (*callback)(void *ctx, const rq_wal_index_entry *e), void *ctx,
                           rq_error *why)
{
    rq_slice body;
    rq_err rc = index_load(r, &body, why);
    if (rc != RQ_OK) return rq_fail(why, rc, "%s: no index at its end", r->path);
    uint32_t count = rq_get_be32(body.ptr + RQ_WAL_INDEX_BODY_FIXED - 4);
    rq_cursor c = rq_cursor_of(body);
    c.ptr += RQ_WAL_INDEX_BODY_FIXED;
    for (uint32_t i = 0; i < count; i++) {
        rq_wal_index_entry e;
        uint8_t len;
        if (!rq_cursor_u8(&c, &len) || !rq_cursor_bytes(&c, len, &e.region) ||
            !rq_cursor_be64(&c, &e.lowest) || !rq_cursor_be64(&c, &e.highest) ||
            !rq_cursor_be64(&c, &e.highest_edit) || !rq_cursor_be64(&c, &e.chunks))
            return rq_fail(why, RQ_E_CORRUPT, "%s: offset %llu: malformed index", r->path,
                           (unsigned long long)offset_of(r, r->end_lsn));
        RQ_TRY(callback(ctx, &e));
    }
    return RQ_OK;
}

rq_err rq_wal_reader_seek_chunk(rq_wal_reader *r, unsigned chunk, rq_error *why)
{
    RQ_ASSERT(chunk < RQ_WAL_CHUNKS);
    rq_slice body;
    rq_err rc = index_load(r, &body, why);
    if (rc != RQ_OK) return rq_fail(why, rc, "%s: no index at its end", r->path);
    uint32_t first = rq_get_be32(body.ptr + 8 + 4 * chunk);
    if (first == RQ_WAL_CHUNK_EMPTY) return RQ_E_END;
    uint64_t lsn = r->info.first_lsn + first;
    if (first % RQ_WAL_ALIGN != 0 || lsn >= r->end_lsn)
        return rq_fail(why, RQ_E_CORRUPT, "%s: offset %llu: malformed index", r->path,
                       (unsigned long long)offset_of(r, r->end_lsn));
    rq__wal_reader_seek(r, lsn);
    return RQ_OK;
}
