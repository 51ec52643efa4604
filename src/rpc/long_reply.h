/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a call whose answer takes long to serialize. See call.h for the other ends. */
#ifndef RQ_RPC_LONG_REPLY_H
#define RQ_RPC_LONG_REPLY_H

#include "rpc/call.h"

/* Like rq_call_reply_packed. `pack` appends the message to `ret`, on RQ_POOL_CODEC where the server has pools: it uses
 * nothing that belongs to the loop, and asks the arena for the bytes (rq_arena_account). An error is the call's. The
 * arena is cleared there too, and the message is sent without a copy. */
void rq_call_reply_long(rq_call *call, rq_err (*pack)(rq_call *call, rq_buf *ret));

#endif
