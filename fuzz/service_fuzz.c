/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of ClientService, executed: the whole service over a catalog with two tables, on the
 * simulated environment, behind a connection made of memory (tests/unit/service/service_world.h).
 * What is decoded is done, so limits, positions and counts that a decoder lets through meet the
 * code that believes them.
 *
 * Input: byte 0 what the connection can (service_world.c, `hellos`), then calls (session.h). The
 * tables stay from one input to the next, and are made anew from time to time: inputs write little,
 * and a fresh catalog costs more than a call.
 */
#include "session.h"

#define INPUTS_PER_WORLD 50

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* libFuzzer's entry has no context to keep them in. */
    static service_world *shared;
    static unsigned inputs;
    if (size == 0) return 0;
    if (shared == NULL) shared = service_world_new();
    session_run(shared, SERVICE_CLIENT, data[0] % SERVICE_HELLOS, rq_slice_of(data + 1, size - 1));
    if (++inputs % INPUTS_PER_WORLD != 0) return 0;
    service_world_free(shared);
    shared = NULL;
    return 0;
}
