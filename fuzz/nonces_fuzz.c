/* SPDX-License-Identifier: Apache-2.0 */
/* A nonce file: a file that decodes must encode to the same bytes. */
#include "region/nonce_files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rq_buf entries = {0};
    rq_buf out = {0};
    rq__nonce_entries e;
    rq_error why = {0};
    uint64_t seqid;
    unsigned n;
    char name[RQ__NONCE_FILE_NAME_MAX + 1] = "";
    memcpy(name, data, size < RQ__NONCE_FILE_NAME_MAX ? size : RQ__NONCE_FILE_NAME_MAX);
    if (rq__nonce_file_name_parse(name, &seqid, &n)) RQ_ASSERT(n < 1000000000);
    if (rq__nonce_file_decode(rq_slice_of(data, size), &e, &why) == RQ_OK) {
        for (size_t i = 0; i < e.count; i++) {
            rq__nonce one = rq__nonce_entry(&e, i);
            RQ_ASSERT(rq__nonce_entry_put(&entries, &one) == RQ_OK);
        }
        RQ_ASSERT(rq__nonce_file_encode(e.seqid, e.written_ms, rq_buf_slice(&entries), &out) ==
                  RQ_OK);
        RQ_ASSERT(rq_slice_eq(rq_buf_slice(&out), rq_slice_of(data, size)));
    } else {
        RQ_ASSERT(why.code != RQ_OK && why.message[0] != '\0');
    }
    rq_buf_clear(&entries);
    rq_buf_clear(&out);
    return 0;
}
