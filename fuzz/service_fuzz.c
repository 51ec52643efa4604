/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of ClientService, executed: the whole service on a catalog with two tables, in the
 * simulated environment, behind a connection in memory (tests/unit/service/service_world.h).
 * Decoded requests are executed, so that limits, positions and counts that a decoder lets pass
 * reach the code that relies on them.
 *
 * Input: byte 0 selects the kind of connection (service_world.c, `hellos`), then calls (session.h).
 * The tables are kept for many inputs and created again from time to time: inputs write little, and
 * a new catalog takes longer than a call. */
#include "session.h"

#define INPUTS_PER_WORLD 50

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* static, because libFuzzer's entry point has no context argument */
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
