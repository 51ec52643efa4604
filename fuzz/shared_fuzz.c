/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a shared folder: byte 0 odd: an object; even: a seal. The checksum is corrected, so that
 * other bytes reach the fields. A decoded file must encode to the same bytes. */
#include "base/checksum.h"
#include "vfs/shared_priv.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_object(rq_arena *arena, rq_slice file)
{
    rq__object_record r;
    rq_slice again;
    if (rq__object_decode(file, &r, NULL) != RQ_OK) return;
    if (rq__object_encode(arena, &r, &again) != RQ_OK || !rq_slice_eq(file, again)) abort();
}

static void try_seal(rq_arena *arena, rq_slice file)
{
    rq_slog_ledger *ledgers;
    size_t count;
    rq_slice again;
    if (rq__seal_decode(file, arena, &ledgers, &count, NULL) != RQ_OK) return;
    if (rq__seal_encode(arena, ledgers, count, &again) != RQ_OK || !rq_slice_eq(file, again))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rq_arena arena = {0};
    if (size < 5) return 0;
    uint8_t *file = malloc(size - 1);
    if (file == NULL) return 0;
    memcpy(file, data + 1, size - 1);
    if (data[0] % 4 < 2) rq_put_be32(file + size - 5, rq_crc32c(0, file, size - 5));
    (data[0] % 2 == 1 ? try_object : try_seal)(&arena, rq_slice_of(file, size - 1));
    rq_arena_clear(&arena);
    free(file);
    return 0;
}
