/* SPDX-License-Identifier: Apache-2.0 */
/* A SequenceFile from untrusted bytes: all its records, read from the beginning and from other positions, and the
 * Results in them. The parts of a file must contain each record once. */
#include "transfer/result.h"
#include "transfer/seqfile.h"
#include "vfs/memory.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t sum_result(rq_slice value)
{
    rq_slice cells;
    rq_cell c;
    uint64_t sum = 0;
    if (rq__result_open(value, &cells) != RQ_OK) return 0;
    while (rq__result_next(&cells, &c) == RQ_OK)
        for (uint32_t i = 0; i < c.value_len; i++)
            sum += c.value[i];
    return sum;
}

/* Counts the records of the part; false: the file is damaged. */
static bool count(rq_vfs *v, uint64_t from, uint64_t to, uint64_t *ret)
{
    rq__seq_reader r;
    rq_slice key, value;
    uint64_t sum = 0;
    *ret = 0;
    rq_err rc = rq__seq_reader_open(v, "f", NULL, &r, NULL);
    if (rc == RQ_OK) rc = rq__seq_seek(&r, from, NULL);
    while (rc == RQ_OK && (rc = rq__seq_next(&r, to, &key, &value, NULL)) == RQ_OK) {
        sum += sum_result(value) + key.len;
        ++*ret;
    }
    rq__seq_reader_close(&r);
    RQ_ASSERT(rc == RQ_E_END || rc == RQ_E_CORRUPT || rc == RQ_E_UNSUPPORTED);
    if (sum == UINT64_MAX) abort(); /* keeps the compiler from omitting the reads above */
    return rc == RQ_E_END;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rq_vfs *v;
    uint64_t all, low, high;
    if (rq_vfs_memory_new(&v) != RQ_OK) return 0;
    if (rq_vfs_write_new_file(v, "f", rq_slice_of(data, size), NULL) == RQ_OK &&
        count(v, 0, UINT64_MAX, &all)) {
        bool whole = count(v, 0, size / 2, &low) && count(v, size / 2, UINT64_MAX, &high);
        RQ_ASSERT(!whole || low + high >= all);
    }
    rq_vfs_free(v);
    return 0;
}
