/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest of a snapshot of HBase's: the reported names lie inside its bytes. */
#include "catalog/snapshots.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rq__snapshot_files s = {0};
    rq_error why = {0};
    rq_err rc = rq__snapshot_add_manifest(&s, rq_slice_of(data, size), &why);
    RQ_ASSERT(rc == RQ_OK || (rc == RQ_E_CORRUPT && why.message[0] != '\0'));
    for (size_t i = 0; i < s.count; i++)
        RQ_ASSERT(s.names[i].len > 0 && s.names[i].ptr >= data &&
                  s.names[i].len <= (size_t)(data + size - s.names[i].ptr));
    rq__snapshot_files_clear(&s);
    return 0;
}
