/* SPDX-License-Identifier: Apache-2.0 */
/* Inserts a layer below the connections that peer_connect opens, so that tests written for sockets
 * exercise a server's streams with a transform (frames.h), in memory, or both: one thread per
 * direction forwards between the test's socket and the server. */
#ifndef RQ_TEST_NET_RELAY_H
#define RQ_TEST_NET_RELAY_H

#include "net/stream.h"

typedef struct relay_options {
    bool frames;           /* the server's streams have the transform of frames.h */
    rq_listener *listener; /* connect to it in memory; NULL: by sockets */
} relay_options;

/* Applies to peer_connect on all threads from now on. */
void relay_begin(const relay_options *o);
/* REQUIRES: the server has closed. Waits for the threads. */
void relay_end(void);

#endif
