/* SPDX-License-Identifier: Apache-2.0 */
/* The filter language within the room: one simple expression's arguments and its message. */
#ifndef RQ_FILTER_LANGUAGE_MAKE_H
#define RQ_FILTER_LANGUAGE_MAKE_H

#include "base/arena.h"

#include <protobuf-c/protobuf-c.h>

typedef struct rq__arguments {
    const rq_slice *arg; /* quoted ones with their quotes */
    size_t count;
    rq_arena *arena;
} rq__arguments;

/* The filter of this name: its class with the package, and its message. RQ_E_NOT_FOUND for a name
 * the language does not know, RQ_E_ILLEGAL_ARGUMENT for arguments that do not fit. */
rq_err rq__language_make(rq_slice name, const rq__arguments *a, const char **ret_java_class,
                         rq_slice *ret_message);

rq_err rq__language_pack(rq_arena *arena, const ProtobufCMessage *m, rq_slice *ret);

#endif
