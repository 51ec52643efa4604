/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a call whose answer takes long to serialize. See call.h for the other ends. */
#ifndef RQ_RPC_LONG_REPLY_H
#define RQ_RPC_LONG_REPLY_H

#include "rpc/call.h"

/* Like rq_call_reply_packed, for a message that takes long to serialize. `pack` appends the message to `ret`; it runs
 * on RQ_POOL_CODEC if the server has pools, so it must use nothing that belongs to the loop, and it charges the bytes
 * to the arena (rq_arena_account). If `pack` returns an error, the call fails with this error. The pool's thread also
 * clears the arena, and the message is sent without a copy. */
void rq_call_reply_long(rq_call *call, rq_err (*pack)(rq_call *call, rq_buf *ret));

#endif
