/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes a MultiResponse. The answer to a batch of fifty puts has fifty messages, each with an
 * index and an empty result; the answer to fifty gets has fifty messages with a count of cells.
 * protobuf-c's generic code visits every field of each message twice, which was a fifth of all
 * instructions of such a batch. */
#ifndef RQ_SERVICE_MULTI_ANSWER_H
#define RQ_SERVICE_MULTI_ANSWER_H

#include "base/arena.h"

#include "proto/client.pb-c.h"

/* The same bytes as protobuf-c's, in the arena. */
RQ_NODISCARD
rq_err rq__pack_multi(const Pb__MultiResponse *m, rq_arena *arena, rq_slice *ret);
/* The same into memory of the caller: at most rq__multi_room bytes. Returns their end. */
size_t rq__multi_room(const Pb__MultiResponse *m);
uint8_t *rq__put_multi(uint8_t *p, const Pb__MultiResponse *m);

#endif
