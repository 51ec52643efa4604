/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of ClientService, made field by field and sent to the services of a simulated catalog (service_world.h). */
#ifndef RQ_TESTS_SERVICE_REQUESTS_H
#define RQ_TESTS_SERVICE_REQUESTS_H

#include "service_world.h"

#include "proto/client.pb-c.h"

typedef struct fixture {
    service_world *world;
    service_client client;
    rq_arena arena;
    rq_cellblock cells;
} fixture;

/* Setup and teardown for cmocka. */
int requests_begin(void **state);
int requests_end(void **state);

/* Makes a message in the fixture's arena. */
void *made(fixture *f, const ProtobufCMessageDescriptor *type);
#define MADE(f, name) made(f, &pb__##name##__descriptor)
ProtobufCBinaryData bytes(const char *text);
/* A specifier of region `which` of world->regions. */
Pb__RegionSpecifier *region(fixture *f, size_t which);
/* Sends the request with the cells added so far; returns the exception's class, NULL: none. */
const char *send_call(fixture *f, const char *method, const ProtobufCMessage *m);
/* Adds a cell to the cell block of the next request. */
void add_cell(fixture *f, const char *row, const char *qualifier, const char *value);
/* Adds an empty action. */
Pb__Action *action(fixture *f, Pb__RegionAction *ra);
void add_mutation(fixture *f, Pb__RegionAction *ra, Pb__MutationProto__MutationType type,
                  const char *row, int32_t count);
/* Adds a put that announces this many cells of the cell block. */
void add_put(fixture *f, Pb__RegionAction *ra, const char *row, int32_t count);
void add_get(fixture *f, Pb__RegionAction *ra, const char *row);
/* Makes a region action with space for this many actions. */
Pb__RegionAction *on_region(fixture *f, size_t which, size_t actions);
/* Sends a Multi; returns the response, which the caller frees. NULL: an exception. */
Pb__MultiResponse *multi(fixture *f, Pb__RegionAction **list, size_t count);
/* The exception of the action with this index; "" if it has none. */
const char *outcome(const Pb__MultiResponse *r, size_t which, uint32_t index);
/* The number of cells in a row of region 0. */
size_t cells_of(fixture *f, const char *row);
/* The number of the loop's tasks for the request. */
unsigned tasks_of(fixture *f, const char *method, const ProtobufCMessage *m);

#endif
