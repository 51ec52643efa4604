/* SPDX-License-Identifier: Apache-2.0 */
/* A host's addresses. A numeric one is parsed at once; a name is looked up on a thread of its own,
 * because getaddrinfo waits for name servers, and libuv's pool, which could wait instead, is state
 * of the whole process. */
#ifndef RQ_NET_LOOKUP_H
#define RQ_NET_LOOKUP_H

#include "net/loop.h"

#include <netdb.h>

typedef struct rq__lookup rq__lookup;

/* The addresses of a numeric host; freed with freeaddrinfo. NULL: it is a name, or no memory. */
struct addrinfo *rq__lookup_numeric(const char *host, uint16_t port);
/* Starts a thread. `done` runs on the loop, once, unless the look-up is cancelled: with the addresses,
 * which are the callee's then, or with an error of getaddrinfo (EAI_SYSTEM: see errno). RQ_E_NO_MEMORY:
 * there can be no further thread, either. */
RQ_NODISCARD
rq_err rq__lookup_start(rq_loop *loop, const char *host, uint16_t port,
                        void (*done)(void *ctx, struct addrinfo *found, int error), void *ctx,
                        rq__lookup **ret);
/* `done` will not run. The thread goes on, and uses nothing of the loop any more. Loop's thread. */
void rq__lookup_cancel(rq__lookup *l);

#endif
