/* SPDX-License-Identifier: Apache-2.0 */
/* A log on shared storage as other servers read it: the head object, then the bytes of its four
 * stripes, each a quarter of the rest, the same for all ledgers. Byte 0: bit 0 corrects the head's
 * checksum, bit 1 the checksums of the stripes' first extents. A decoded head must encode to the
 * same bytes; records must be delivered in order. */
#include "base/checksum.h"
#include "wal/extent.h"
#include "wal/head.h"
#include "wal/sealed.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SERVER "host,16020,1"

typedef struct storage {
    rq_shared base;
    rq_slice head, stripes;
} storage;

static rq_err get(rq_shared *s, const char *name, rq_arena *arena, rq_slice *ret,
                  uint64_t *ret_generation, rq_error *why)
{
    (void)name;
    (void)why;
    *ret_generation = 1;
    *ret = rq_arena_copy(arena, ((storage *)s)->head);
    return ret->ptr == NULL && ((storage *)s)->head.len > 0 ? RQ_E_NO_MEMORY : RQ_OK;
}

static rq_err read_stripe(rq_shared *s, const char *name, uint64_t number, unsigned stripe,
                          uint64_t off, void *buf, size_t len, size_t *ret_len, rq_error *why)
{
    (void)name;
    (void)number;
    (void)why;
    rq_slice all = ((storage *)s)->stripes;
    size_t quarter = all.len / RQ_SLOG_STRIPES;
    size_t left = off < quarter ? quarter - (size_t)off : 0;
    *ret_len = left < len ? left : len;
    memcpy(buf, all.ptr + stripe * quarter + (left == 0 ? 0 : off), *ret_len);
    return RQ_OK;
}

static void read_log(storage *s)
{
    rq_wal_sealed *l;
    rq_wal_record r;
    uint64_t last = 0;
    if (rq_wal_sealed_open(&s->base, SERVER, 0, &l, NULL) != RQ_OK) return;
    while (rq_wal_sealed_next(l, &r, NULL) == RQ_OK) {
        if (r.lsn <= last) abort();
        last = r.lsn;
    }
    rq_wal_sealed_close(l);
}

static void check_head(rq_slice head)
{
    rq_arena arena = {0};
    rq_buf again = {0};
    rq__head h;
    if (rq__head_decode(head, &arena, &h, NULL) == RQ_OK) {
        if (rq__head_encode(&h, &again) != RQ_OK) abort();
        if (!rq_slice_eq(head, rq_buf_slice(&again))) abort();
    }
    rq_buf_clear(&again);
    rq_arena_clear(&arena);
}

/* Corrects epoch and checksums of the extents at the stripes' beginnings. */
static void correct(uint8_t *stripes, size_t len)
{
    size_t quarter = len / RQ_SLOG_STRIPES;
    for (unsigned k = 0; k < RQ_SLOG_STRIPES; k++) {
        uint8_t *p = stripes + k * quarter;
        if (quarter < RQ_WAL_EXTENT_HEADER_LEN) return;
        rq_put_be64(p + 8, rq__extent_epoch(SERVER));
        size_t body = rq_get_be32(p + 4);
        if (body > quarter - RQ_WAL_EXTENT_HEADER_LEN) body = quarter - RQ_WAL_EXTENT_HEADER_LEN;
        rq_put_be32(p + 32, rq_crc32c(0, p + RQ_WAL_EXTENT_HEADER_LEN, body));
        rq_put_be32(p + 36, rq_crc32c(0, p, 36));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3) return 0;
    size_t head_len = rq_get_be16(data + 1);
    if (head_len > size - 3) head_len = size - 3;
    uint8_t *copy = malloc(size);
    if (copy == NULL) return 0;
    memcpy(copy, data, size);
    uint8_t *head = copy + 3, *stripes = head + head_len;
    size_t rest = size - 3 - head_len;
    if ((data[0] & 1) != 0 && head_len >= 4)
        rq_put_be32(head + head_len - 4, rq_crc32c(0, head, head_len - 4));
    if ((data[0] & 2) != 0) correct(stripes, rest);
    storage s = {.base = {.object_get = get, .slog_read = read_stripe},
                 .head = rq_slice_of(head, head_len),
                 .stripes = rq_slice_of(stripes, rest)};
    check_head(s.head);
    read_log(&s);
    free(copy);
    return 0;
}
