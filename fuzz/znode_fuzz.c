/* SPDX-License-Identifier: Apache-2.0 */
/* Values of znodes that other processes wrote. A decoded value is encoded and decoded again, and must be equal. */
#include "registry/znode_values.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_cluster_id(rq_arena *arena, rq_slice value)
{
    const char *id, *again;
    rq_slice written;
    if (rq__znode_read_cluster_id(value, arena, &id, NULL) != RQ_OK) return;
    if (rq__znode_cluster_id("writer", id, arena, &written) != RQ_OK ||
        rq__znode_read_cluster_id(written, arena, &again, NULL) != RQ_OK || strcmp(id, again) != 0)
        abort();
}

static void try_master(rq_arena *arena, rq_slice value)
{
    rq_server_name name, again;
    rq_slice written;
    if (rq__znode_read_master(value, arena, &name, NULL) != RQ_OK) return;
    if (rq__znode_master("writer", &name, 1, arena, &written) != RQ_OK ||
        rq__znode_read_master(written, arena, &again, NULL) != RQ_OK ||
        strcmp(name.text, again.text) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rq_arena arena = {0};
    try_cluster_id(&arena, rq_slice_of(data, size));
    try_master(&arena, rq_slice_of(data, size));
    rq_arena_clear(&arena);
    return 0;
}
