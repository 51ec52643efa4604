/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest of a snapshot: the reported names lie inside its bytes. */
#include "catalog/snapshot_manifest.h"
#include "catalog/snapshots.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Checked as in a clone: its regions cover the table once. */
static void parse(rq_slice manifest)
{
    rq_arena arena = {0};
    rq__snapshot s;
    rq_error why = {0};
    rq_err rc = rq__snapshot_parse(manifest, &arena, &s, &why);
    RQ_ASSERT(rc == RQ_OK || (rc == RQ_E_SNAPSHOT_CORRUPT && why.message[0] != '\0'));
    for (size_t i = 0; rc == RQ_OK && i + 1 < s.count; i++)
        RQ_ASSERT(rq_slice_eq(s.regions[i].info.end_key, s.regions[i + 1].info.start_key));
    RQ_ASSERT(rc != RQ_OK || s.count > 0);
    rq_arena_clear(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rq__snapshot_files s = {0};
    rq_error why = {0};
    rq_err rc = rq__snapshot_add_manifest(&s, rq_slice_of(data, size), &why);
    RQ_ASSERT(rc == RQ_OK || (rc == RQ_E_CORRUPT && why.message[0] != '\0'));
    for (size_t i = 0; i < s.names.count; i++)
        RQ_ASSERT(s.names.list[i].len > 0 && s.names.list[i].ptr >= data &&
                  s.names.list[i].len <= (size_t)(data + size - s.names.list[i].ptr));
    rq__snapshot_files_clear(&s);
    parse(rq_slice_of(data, size));
    return 0;
}
