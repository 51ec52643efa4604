/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A condition on answers: output of accepted streams is not written while it does not hold.
 *
 * A server of a cluster may answer what it read from memory only while its lease is valid (vfs/shared.h, rule 5), and
 * the process may stand still between any two instructions. So the condition is asked for after the answer was made and
 * before its bytes are written: if it holds then, it held when the answer was made. Output that is held stays in its
 * queue, with the limits of any queue, until the condition holds again.
 */
#ifndef RQ_NET_ANSWERS_H
#define RQ_NET_ANSWERS_H

#include "net/loop.h"

#include <stdbool.h>

/* `may_answer` is called by the loops' threads for each write to a socket, and must not block. REQUIRES: the loops
 * have not been started. Without a call, as in a standalone server, nothing is asked. */
void rq_loops_hold_answers(rq_loops *loops, bool (*may_answer)(void *ctx), void *ctx);

#endif
