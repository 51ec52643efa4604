/* SPDX-License-Identifier: Apache-2.0 */
/* Loops, and a service of lines for tests: each line comes back, and "quit" is answered with "bye". */
#ifndef RQ_TESTS_NET_ECHO_H
#define RQ_TESTS_NET_ECHO_H

#include "net/stream.h"

#include <stdatomic.h>

rq_loops *start_loops(unsigned count, rq_epoch *epoch);
void stop_loops(rq_loops *loops);

struct echo {
    _Atomic unsigned opened, closed;
};

rq_err echo_open(void *ctx, rq_stream *s);
size_t echo_data(rq_stream *s, rq_slice bytes);
void echo_close(rq_stream *s, rq_err why);
extern const rq_stream_events echo_events;
/* `max` connections; 0: no limit. */
rq_listener *listen_echo(rq_loops *loops, struct echo *e, unsigned max);

#endif
