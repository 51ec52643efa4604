/* SPDX-License-Identifier: Apache-2.0 */
/* Format and contract in pwal.h. All bytes are untrusted. */
#include "catalog/pwal.h"

#include "base/arena.h"
#include "base/pb.h"
#include "base/pb_arena.h"
#include "cell/cellblock.h"
#include "proto/wal.pb-c.h"

#define MARKS RQ_SLICE_LIT("METAFAMILY") /* HBASE: WALEdit.METAFAMILY */
#define TRAILER_TAIL 8

static rq_err check_header(rq_slice pb, rq_arena *a, rq_error *why)
{
    rq_pb_arena memory;
    rq_pb_arena_init(&memory, a);
    Pb__WALHeader *h = pb__walheader__unpack(&memory.allocator, pb.len, pb.ptr);
    if (h == NULL) return rq_fail(why, RQ_E_CORRUPT, "malformed log header");
    if (h->has_encryption_key ||
        (h->writer_cls_name != NULL && strcmp(h->writer_cls_name, "SecureProtobufLogWriter") == 0))
        return rq_fail(why, RQ_E_UNSUPPORTED, "encrypted logs are not supported");
    if (h->has_has_compression && h->has_compression)
        return rq_fail(why, RQ_E_UNSUPPORTED, "compressed logs are not supported");
    return RQ_OK;
}

/* Reads one entry. RQ_E_END: no complete one is left. */
static rq_err read_entry(rq_cursor *c, rq_arena *a,
                         rq_err (*callback)(void *ctx, const rq__pwal_edit *edit, rq_error *why),
                         void *ctx, rq_error *why)
{
    rq_slice pb;
    if (!rq_pb_delimited(c, &pb) || pb.len == 0) return RQ_E_END;
    rq_pb_arena memory;
    rq_pb_arena_init(&memory, a);
    Pb__WALKey *key = pb__walkey__unpack(&memory.allocator, pb.len, pb.ptr);
    if (key == NULL) return memory.exhausted ? RQ_E_NO_MEMORY : RQ_E_END;
    rq__pwal_edit edit = {
        .table = rq_slice_of(key->table_name.data, key->table_name.len),
        .region = rq_slice_of(key->encoded_region_name.data, key->encoded_region_name.len),
        .seqid = key->log_sequence_number,
    };
    uint32_t count = key->has_following_kv_count ? key->following_kv_count : 0;
    /* Only complete entries count. */
    rq_cursor cells = *c;
    rq_cell cell;
    for (uint32_t i = 0; i < count; i++)
        if (rq_cellblock_next_stored(c, &cell, NULL) != RQ_OK) return RQ_E_END;
    for (uint32_t i = 0; i < count; i++) {
        rq_err rc = rq_cellblock_next_stored(&cells, &cell, why);
        if (rc != RQ_OK) return rc;
        edit.cell = &cell;
        if (!rq_slice_eq(rq_cell_family(&cell), MARKS)) RQ_TRY(callback(ctx, &edit, why));
    }
    return RQ_OK;
}

/* The offset at which entries end; *ret_closed: the writer closed the file. */
static size_t end_of_entries(rq_slice bytes, bool *ret_closed)
{
    *ret_closed = false;
    if (bytes.len < 4 + TRAILER_TAIL) return bytes.len;
    const uint8_t *tail = bytes.ptr + bytes.len - TRAILER_TAIL;
    uint64_t len = rq_get_be32(tail);
    if (memcmp(tail + 4, "LAWP", 4) != 0 || len > bytes.len - 4 - TRAILER_TAIL) return bytes.len;
    *ret_closed = true;
    return bytes.len - TRAILER_TAIL - (size_t)len;
}

rq_err rq__pwal_read(rq_slice bytes,
                     rq_err (*callback)(void *ctx, const rq__pwal_edit *edit, rq_error *why),
                     void *ctx, rq_error *why)
{
    if (bytes.len == 0) return RQ_OK;
    if (bytes.len < 4 || memcmp(bytes.ptr, "PWAL", 4) != 0)
        return rq_fail(why, RQ_E_CORRUPT, "not a write-ahead log of HBase");
    bool closed;
    size_t end = end_of_entries(bytes, &closed);
    rq_cursor c = rq_cursor_of(rq_slice_of(bytes.ptr + 4, end - 4));
    rq_slice pb;
    rq_arena a = {0};
    rq_err rc = RQ_OK;
    if (rq_pb_delimited(&c, &pb)) {
        rc = check_header(pb, &a, why);
        while (rc == RQ_OK && rq_cursor_left(&c) > 0) {
            rq_arena_reset(&a);
            rc = read_entry(&c, &a, callback, ctx, why);
        }
        if (rc == RQ_E_END)
            rc = closed ? rq_fail(why, RQ_E_CORRUPT, "a damaged entry before the trailer") : RQ_OK;
    }
    rq_arena_clear(&a);
    return rc;
}
