/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of every service except ClientService, executed as service_fuzz.c does with ClientService's. They
 * create, change, split and drop tables: the world is created again whenever a region that inputs
 * can name is missing, and every few inputs.
 *
 * Input: byte 0 selects the service and the kind of connection; then calls (session.h). */
#include "session.h"

#define INPUTS_PER_WORLD 20

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const service_kind kinds[] = {SERVICE_MASTER, SERVICE_ADMIN,    SERVICE_MASTER_ADMIN,
                                         SERVICE_META,   SERVICE_HBCK,     SERVICE_LOCK,
                                         SERVICE_STATUS, SERVICE_BOOTSTRAP};
    /* static, because libFuzzer's entry point has no context argument */
    static service_world *shared;
    static unsigned inputs;
    if (size == 0) return 0;
    if (shared == NULL) shared = service_world_new();
    session_run(shared, kinds[data[0] % RQ_ARRAY_LEN(kinds)],
                data[0] / RQ_ARRAY_LEN(kinds) % SERVICE_HELLOS, rq_slice_of(data + 1, size - 1));
    if (++inputs % INPUTS_PER_WORLD != 0 && service_world_is_whole(shared)) return 0;
    service_world_free(shared);
    shared = NULL;
    return 0;
}
