/* SPDX-License-Identifier: Apache-2.0 */
/* Requests generated from protobuf-c's descriptors, so that a field added to a .proto is covered
 * without changing the tests that use this. A request is plausible (its required fields and those
 * that select a region, a table, a family of service_world.h are set) and one of its fields, or all
 * fields of one message, are repeated up to a size in bytes. */
#ifndef RQ_TESTS_SERVICE_REQUEST_MAKER_H
#define RQ_TESTS_SERVICE_REQUEST_MAKER_H

#include "base/buf.h"

#include <protobuf-c/protobuf-c.h>

#include <stdbool.h>

#define REQUEST_PATH_MAX 6

/* The path from a request to one of its repeated fields. */
typedef struct request_path {
    const ProtobufCFieldDescriptor *fields[REQUEST_PATH_MAX];
    unsigned depth;
} request_path;

/* How the repeated elements differ. */
typedef enum request_values {
    REQUEST_EQUAL,
    REQUEST_RISING,
    REQUEST_FALLING,
    REQUEST_OF_ONE_FAMILY, /* rising, except names of families and regions, which are equal */
} request_values;
#define REQUEST_VALUES 4

typedef struct request_plan {
    const ProtobufCMessageDescriptor *type;
    const request_path *path; /* the repeated field; NULL: none */
    bool siblings;            /* repeats the other repeated fields of the same message, too */
    request_values values;
    unsigned choice; /* selects the values of enums */
    size_t count;    /* number of elements in each repeated field */
    const char *region;
    const char *filter;           /* class of the filter in a Get or Scan; NULL: none */
    const rq_buf *filter_bytes;   /* the filter's message */
    const char *service, *method; /* service and method of a coprocessor call */
    const rq_buf *call_bytes;     /* the call's message */
} request_plan;

/* Calls use(ctx, path) for each repeated field that a message of the type can have. */
void request_each_path(const ProtobufCMessageDescriptor *type,
                       void (*use)(void *ctx, const request_path *path), void *ctx);
/* The path as text: "columnValue.qualifierValue". */
const char *request_path_text(const request_path *path, char *text, size_t size);
/* Appends the message to `out`. */
void request_make(const request_plan *plan, rq_buf *out);
/* The count with which the message has about `bytes` bytes. */
size_t request_count_for(request_plan plan, size_t bytes);

#endif
