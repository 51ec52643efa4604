/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A condition for answers: while it does not hold, the output of accepted streams is held back.
 *
 * A server of a cluster may answer what it read from memory only while its lease is valid (vfs/shared.h, rule 5), and
 * the process may be paused between any two instructions. So the condition is checked between making the answer and
 * writing its bytes: a lease that is valid then was valid when the answer was made. Output that is held back stays in
 * its queue, within the queue's limits, until the condition holds again.
 */
#ifndef RQ_NET_ANSWERS_H
#define RQ_NET_ANSWERS_H

#include "net/stream.h"

#include <stdbool.h>

/* `may_answer` is called by the loops' threads for each write to a socket, and every 5 ms while output is held; it must
 * not block. REQUIRES: the loops have not been started. Not called in a standalone server, whose output is never held back. */
void rq_loops_hold_answers(rq_loops *loops, bool (*may_answer)(void *ctx), void *ctx);
/* `always`: from now on the output of this accepted stream is never held, because it neither contains data of regions nor
 * acknowledges writes. Called on the stream's loop. */
void rq_stream_answers_always(rq_stream *s, bool always);

#endif
