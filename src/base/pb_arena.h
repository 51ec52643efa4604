/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacks protobuf messages into an arena. protobuf-c returns NULL both for a malformed message
 * and for exhausted memory. For files the difference matters: only the former means that a table
 * is damaged. */
#ifndef RQ_BASE_PB_ARENA_H
#define RQ_BASE_PB_ARENA_H

#include "base/arena.h"

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

typedef struct rq_pb_arena {
    ProtobufCAllocator allocator; /* for …__unpack; nothing needs to be freed */
    rq_arena *arena;
    bool exhausted;
} rq_pb_arena;

static inline void *rq__pb_arena_alloc(void *ctx, size_t size)
{
    rq_pb_arena *p = (rq_pb_arena *)ctx;
    void *bytes = rq_arena_alloc(p->arena, size);
    if (bytes == NULL) p->exhausted = true;
    return bytes;
}

static inline void rq__pb_arena_free(void *ctx, void *bytes)
{
    (void)ctx;
    (void)bytes;
}

static inline void rq_pb_arena_init(rq_pb_arena *p, rq_arena *arena)
{
    *p = (rq_pb_arena){{rq__pb_arena_alloc, rq__pb_arena_free, p}, arena, false};
}

#endif
