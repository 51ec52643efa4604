/* SPDX-License-Identifier: Apache-2.0 */
/* All services together, for tests and fuzzers: on a catalog in the simulated environment, behind
 * connections in memory (../net/memory_loop.h). Everything runs on the caller's thread.
 *
 * Two tables with about forty rows, some of them in files: t (families f and g, f with three
 * versions, split at row m) and u (f, g, and m with MOB; AggregateService,
 * BulkDeleteService and MultiRowMutationService).
 *
 * Errors stop the process with a message: a missing response, a response that a client could not
 * decode, memory of a request that was not released. */
#ifndef RQ_TESTS_SERVICE_WORLD_H
#define RQ_TESTS_SERVICE_WORLD_H

#include "../catalog/world.h"
#include "../net/memory_loop.h"

#include "proto/rpc.pb-c.h"
#include "registry/registry.h"
#include "rpc/rpc_priv.h"
#include "quota/quota.h"
#include "service/admin.h"
#include "service/service.h"

#define SERVICE_REGIONS 3

/* The region server's services, then the master's; a server has ClientMetaService on both ports. */
typedef enum service_kind {
    SERVICE_CLIENT,
    SERVICE_ADMIN,
    SERVICE_BOOTSTRAP,
    SERVICE_MASTER,
    SERVICE_MASTER_ADMIN,
    SERVICE_META,
    SERVICE_HBCK,
    SERVICE_LOCK,
    SERVICE_STATUS,
} service_kind;
#define SERVICE_KINDS 9

typedef struct service_world {
    world w;
    rq_loops loops;
    rq_lane *lane;
    rq_lane counting;        /* counts tasks, then passes them to the executor's lane */
    unsigned posted;         /* number of tasks posted */
    unsigned steps_left;     /* the loop stops after this many tasks; UINT_MAX: no limit */
    rq_epoch_member section; /* the loop's epoch section, left only between two iterations */
    rq_intake *intake;       /* contains only the staging folder */
    rq_ops *ops;
    rq_client_service *client;
    rq_admin_services *admin;
    rq_budget *budget;
    rq_quotas *quotas;
    rq_catalog_answers catalog_answers;
    rq_rpc_service services[SERVICE_KINDS];
    rq_rpc_server *server, *master;
    char regions[SERVICE_REGIONS][RQ_ENCODED_NAME_LEN + 1]; /* regions: t below m, t from m, u */
    int log_fd;
} service_world;

service_world *service_world_new(void);
/* Every read of a block waits for a thread; in other worlds one in five does. */
service_world *service_world_new_cold(void);
void service_world_free(service_world *s);
/* Whether the three regions still exist and are open. */
bool service_world_is_whole(const service_world *s);

/* The kinds of connections: codecs with and without tags, none, and clients of other versions. */
#define SERVICE_HELLOS 5

typedef struct service_client {
    service_world *world;
    rq_stream stream;
    uint32_t call_id;
    /* The response to the last call, valid until the next. */
    Pb__ResponseHeader *header;
    rq_buf message;
    rq_buf cells;
    unsigned answers;
} service_client;

void service_client_open(service_client *c, service_world *w, service_kind kind, unsigned hello);
void service_client_close(service_client *c);
/* Sends the request and lets time advance until the response arrives. False: the connection was
 * closed. */
bool service_client_call(service_client *c, const char *method, rq_slice message, rq_slice cells);
/* Sends the request, and runs at most service_world.steps_left tasks of the loop. */
void service_client_send(service_client *c, const char *method, rq_slice message, rq_slice cells);
/* Waits until so many responses have come; simulated time advances meanwhile. */
void service_client_wait(service_client *c, unsigned answers);
/* Reads the responses. */
void service_client_take(service_client *c);
/* The exception class in the last response; NULL: none. */
const char *service_client_exception(const service_client *c);

#endif
