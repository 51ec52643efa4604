/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the most frequent requests, Get, Mutate, Multi and Scan, without protobuf-c's generic decoder,
 * which would take a quarter of the instructions of a cached get (docs/lab/requests.md).
 *
 * The result is the message protobuf-c would return, except that bytes point into the request
 * instead of a copy. Rare parts (attributes, filters, time ranges of a family, conditions) are
 * decoded by protobuf-c, and so is the whole request if anything about it is unusual: an unknown
 * field, an unexpected wire type, a message field that appears twice, an empty row, truncated
 * bytes. */
#ifndef RQ_SERVICE_UNPACK_H
#define RQ_SERVICE_UNPACK_H

#include "base/bytes.h"

#include <protobuf-c/protobuf-c.h>

/* The message, of type GetRequest, MutateRequest, MultiRequest or ScanRequest; it lives in the allocator and in
 * `bytes`. NULL: let protobuf-c decode the request or report the error. */
ProtobufCMessage *rq__unpack_request(const ProtobufCMessageDescriptor *type,
                                     ProtobufCAllocator *allocator, rq_slice bytes);

#endif
