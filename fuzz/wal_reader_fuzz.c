/* SPDX-License-Identifier: Apache-2.0 */
/* The log's reader on arbitrary bytes. The first byte selects the meaning of the rest:
 *
 *  - 0: a WAL file
 *  - 1: bodies of frames (be16 length each), put into a WAL file with valid checksums, to reach the
 *    code behind the checksums; one byte of the file is then damaged
 *  - 2: one record's body
 *  - 3: like 1, with the first one as the body of the index at the WAL file's end */
#include <stdlib.h>

#include "base/checksum.h"
#include "vfs/sim.h"
#include "wal/format.h"
#include "wal/reader.h"
#include "wal/record_codec.h"
#include "wal/header.h"

#define FILE_NAME "000001.wal"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void touch(rq_slice s)
{
    volatile uint8_t sum = 0;
    for (size_t i = 0; i < s.len; i++)
        sum = (uint8_t)(sum + s.ptr[i]);
}

static void touch_record(const rq_wal_record *r)
{
    touch(r->region);
    touch(r->table);
    touch(r->cluster_ids);
    touch(r->scopes);
    touch(r->payload);
    rq_cursor c = rq_cursor_of(r->scopes);
    rq_slice family;
    uint32_t scope;
    while (rq_wal_scope_next(&c, &family, &scope))
        touch(family);
}

static rq_err touch_entry(void *ctx, const rq_wal_index_entry *e)
{
    (void)ctx;
    touch(e->region);
    return RQ_OK;
}

/* Calls all functions of a reader, with unknown or known end. */
static void read_all(rq_vfs *v, uint64_t end)
{
    rq_wal_reader *r;
    rq_error why = {0};
    if (rq__wal_reader_open(v, FILE_NAME, &r, &why) != RQ_OK) return;
    if (end != 0) rq__wal_reader_set_end(r, rq__wal_reader_info(r)->first_lsn + end);
    for (;;) {
        rq_wal_record record;
        why = (rq_error){0};
        rq_err rc = rq__wal_reader_next(r, &record, &why);
        if (rc == RQ_OK) {
            touch_record(&record);
            continue;
        }
        if (rc != RQ_E_CORRUPT && rc != RQ_E_VERSION) break;
        if (rq__wal_reader_skip(r, NULL) != RQ_OK) break;
    }
    if (end != 0) {
        rq_err unimportant = rq_wal_reader_index(r, touch_entry, NULL, NULL);
        for (unsigned c = 0; c < RQ_WAL_CHUNKS; c += 9)
            unimportant = rq_wal_reader_seek_chunk(r, c, NULL);
        rq_wal_record record;
        unimportant = rq__wal_reader_next(r, &record, NULL);
        (void)unimportant;
    }
    rq__wal_reader_close(r);
}

static rq_err put_frame(rq_file *f, rq_slice body, uint64_t *lsn, uint32_t *crc)
{
    uint8_t header[RQ_WAL_FRAME_HEADER_LEN];
    rq__wal_frame frame = {.epoch = 1,
                           .lsn = *lsn,
                           .durable = *lsn,
                           .body_len = (uint32_t)body.len,
                           .prev_crc = *crc,
                           .body_crc = rq_crc32c(0, body.ptr, body.len)};
    rq__wal_frame_encode(&frame, header);
    uint64_t off = RQ_WAL_FRAMES_AT + (*lsn - RQ_WAL_FIRST_LSN);
    RQ_TRY(rq_file_write(f, header, sizeof header, off, NULL));
    RQ_TRY(rq_file_write(f, body.ptr, body.len, off + sizeof header, NULL));
    *lsn += rq__wal_frame_len(body.len);
    *crc = frame.crc;
    return RQ_OK;
}

static rq_err put_index(rq_file *f, rq_slice body, uint64_t end)
{
    uint8_t header[RQ_WAL_INDEX_HEADER_LEN];
    rq_put_be32(header, RQ_WAL_INDEX_MAGIC);
    rq_put_be32(header + 4, (uint32_t)body.len);
    rq_put_be64(header + 8, end);
    rq_put_be32(header + 16, rq_crc32c(0, body.ptr, body.len));
    rq_put_be32(header + 20, rq_crc32c(0, header, 20));
    uint64_t off = RQ_WAL_FRAMES_AT + (end - RQ_WAL_FIRST_LSN);
    RQ_TRY(rq_file_write(f, header, sizeof header, off, NULL));
    return rq_file_write(f, body.ptr, body.len, off + sizeof header, NULL);
}

static rq_err put_file(rq_file *f, rq_slice bodies, bool has_index, uint64_t *ret_end)
{
    rq_wal_file_info info = {
        .number = 1, .epoch = 1, .first_lsn = RQ_WAL_FIRST_LSN, .oldest_number = 1};
    RQ_TRY(rq__wal_header_write(f, &info, 0, NULL));
    uint64_t lsn = RQ_WAL_FIRST_LSN;
    uint32_t crc = 0;
    rq_cursor c = rq_cursor_of(bodies);
    uint16_t len;
    rq_slice body, index = {0};
    for (bool first = true; rq_cursor_be16(&c, &len); first = false) {
        if (!rq_cursor_bytes(&c, len < rq_cursor_left(&c) ? len : rq_cursor_left(&c), &body)) break;
        if (first && has_index)
            index = body;
        else
            RQ_TRY(put_frame(f, body, &lsn, &crc));
    }
    *ret_end = lsn - RQ_WAL_FIRST_LSN;
    return has_index ? put_index(f, index, lsn) : RQ_OK;
}

static void fuzz_file(uint8_t mode, rq_slice bytes)
{
    rq_sim *sim;
    rq_file *f;
    if (rq_sim_new(1, NULL, &sim) != RQ_OK) return;
    rq_vfs *v = rq_sim_env(sim)->vfs;
    uint64_t end = bytes.len > 8 ? bytes.ptr[bytes.len - 1] * 64u : 0;
    if (rq_vfs_open(v, FILE_NAME, RQ_OPEN_WRITE | RQ_OPEN_CREATE, &f, NULL) == RQ_OK) {
        rq_err rc = mode == 0 ? rq_file_write(f, bytes.ptr, bytes.len, 0, NULL)
                              : put_file(f, bytes, mode == 3, &end);
        rq_file_close(f);
        if (rc == RQ_OK) {
            read_all(v, 0);
            read_all(v, end);
            if (mode == 1 && end > 0) {
                bool flipped = rq_sim_flip_bit(sim, FILE_NAME, RQ_WAL_FRAMES_AT + end / 2, 1);
                (void)flipped;
                read_all(v, 0);
                read_all(v, end);
            }
        }
    }
    rq_sim_free(sim);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > (1u << 20)) return 0;
    rq_slice rest = rq_slice_of(data + 1, size - 1);
    if (data[0] % 4 == 2) {
        rq_wal_record r;
        if (rq__wal_record_decode(rest, &r) == RQ_OK) touch_record(&r);
    } else {
        fuzz_file(data[0] % 4, rest);
    }
    return 0;
}
