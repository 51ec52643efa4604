/* SPDX-License-Identifier: Apache-2.0 */
/* References to MOB files: the list in a store file's info, and a reference's value and tags. */
#include "store/mob.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void decode_list(rq_slice bytes)
{
    rq_mob_refs refs = {0};
    rq_mob_refs again = {0};
    rq_buf out = {0};
    rq_error why = {0};
    if (rq_mob_refs_add_encoded(&refs, bytes, &why) == RQ_OK) {
        RQ_ASSERT(rq__mob_refs_encode(&refs, &out) == RQ_OK);
        RQ_ASSERT(rq_mob_refs_add_encoded(&again, rq_buf_slice(&out), &why) == RQ_OK);
        RQ_ASSERT(again.count == refs.count);
    } else {
        RQ_ASSERT(why.code != RQ_OK && why.message[0] != '\0');
    }
    rq_buf_clear(&out);
    rq_mob_refs_clear(&refs);
    rq_mob_refs_clear(&again);
}

/* The first byte is the length of the value; the tags follow it. */
static void parse_reference(rq_slice bytes)
{
    size_t value = bytes.len == 0 ? 0 : bytes.ptr[0] % bytes.len;
    rq_cell c = {.value = bytes.ptr,
                 .value_len = (uint32_t)value,
                 .tags = bytes.ptr + value,
                 .tags_len = (uint16_t)((bytes.len - value) & 0xffff),
                 .type = RQ_TYPE_PUT};
    rq_mob_reference ref;
    bool names_file;
    rq_slice ns, qualifier;
    if (!rq__mob_is_reference(&c) ||
        rq__mob_reference_parse(&c, &ref, &names_file, NULL) != RQ_OK || !names_file)
        return;
    RQ_ASSERT(rq_mob_table_parts(ref.table, &ns, &qualifier));
    for (size_t i = 0; i < ref.file.len; i++)
        RQ_ASSERT(ref.file.ptr[i] != '/');
    (void)rq_mob_file_region(ref.file);
    (void)rq_mob_file_is_expired(ref.file, INT64_C(1700000000000));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    decode_list(rq_slice_of(data, size));
    parse_reference(rq_slice_of(data, size));
    return 0;
}
