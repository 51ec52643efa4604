/* SPDX-License-Identifier: Apache-2.0 */
/* The filter language, within the room: the arguments of one simple expression and the message
 * made of them. */
#ifndef RQ_FILTER_LANGUAGE_MAKE_H
#define RQ_FILTER_LANGUAGE_MAKE_H

#include "base/arena.h"

#include <protobuf-c/protobuf-c.h>

typedef struct rq__arguments {
    const rq_slice *arg; /* quoted arguments include their quotes */
    size_t count;
    rq_arena *arena;
} rq__arguments;

/* Makes the filter of this name: its class with package, and its message. RQ_E_NOT_FOUND: the
 * language has no such name. RQ_E_ILLEGAL_ARGUMENT: wrong arguments. */
rq_err rq__language_make(rq_slice name, const rq__arguments *a, const char **ret_java_class,
                         rq_slice *ret_message);

/* Serializes the message into the arena. */
rq_err rq__language_pack(rq_arena *arena, const ProtobufCMessage *m, rq_slice *ret);

#endif
