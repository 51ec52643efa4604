/* SPDX-License-Identifier: Apache-2.0 */
/* HBase's list of a family's files: the bytes as a file, and as the message in one, with valid
 * length and checksum. */
#include "base/checksum.h"
#include "region/filelist.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void decode(rq_slice bytes)
{
    rq_arena arena = {0};
    rq__filelist list, again;
    rq_error why = {0};
    rq_buf out = {0};
    if (rq__filelist_decode(bytes, &arena, &list, &why) == RQ_OK) {
        RQ_ASSERT(rq__filelist_encode(&list, &out) == RQ_OK);
        RQ_ASSERT(rq__filelist_decode(rq_buf_slice(&out), &arena, &again, &why) == RQ_OK);
        RQ_ASSERT(again.count == list.count && again.timestamp == list.timestamp);
        for (size_t i = 0; i < list.count; i++)
            RQ_ASSERT(rq_slice_eq(list.files[i].name, again.files[i].name));
    } else {
        RQ_ASSERT(why.code != RQ_OK && why.message[0] != '\0');
    }
    rq_buf_clear(&out);
    rq_arena_clear(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rq_buf file = {0};
    decode(rq_slice_of(data, size));
    /* The corpus has complete files, whose message begins after the length. */
    rq_slice pb = rq_slice_of(size > 8 ? data + 4 : data, size > 8 ? size - 8 : size);
    RQ_ASSERT(rq_buf_append_be32(&file, (uint32_t)pb.len) == RQ_OK);
    RQ_ASSERT(rq_buf_append(&file, pb.ptr, pb.len) == RQ_OK);
    RQ_ASSERT(rq_buf_append_be32(&file, rq_crc32(0, pb.ptr, pb.len)) == RQ_OK);
    decode(rq_buf_slice(&file));
    rq_buf_clear(&file);
    return 0;
}
