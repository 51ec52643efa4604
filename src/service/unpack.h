/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests that come for every row, Get, Mutate and Multi, as messages, without protobuf-c's
 * generic decoder: that costs a quarter of a cached get's instructions (docs/lab/requests.md).
 *
 * What is returned is what protobuf-c would have returned, only that bytes point into the request
 * instead of a copy. Rare parts (attributes, filters, time ranges of a family, conditions) are left
 * to protobuf-c, and so is the whole request when anything about it is unusual: a field that we do
 * not know, one of another type than ours, a message that comes twice, an empty row, bytes that end
 * early.
 */
#ifndef RQ_SERVICE_UNPACK_H
#define RQ_SERVICE_UNPACK_H

#include "base/bytes.h"

#include <protobuf-c/protobuf-c.h>

/* NULL: protobuf-c shall decode it, or say what is wrong. The message, of type GetRequest,
 * MutateRequest or MultiRequest, lives in the allocator and in `bytes`. */
ProtobufCMessage *rq__unpack_request(const ProtobufCMessageDescriptor *type,
                                     ProtobufCAllocator *allocator, rq_slice bytes);

#endif
