/* SPDX-License-Identifier: Apache-2.0 */
/* A host's addresses. A numeric address is parsed at once. A name is looked up on a thread of its own, because
 * getaddrinfo waits for name servers. libuv's thread pool is not used: it belongs to the whole process, and so to the
 * program that embeds the library. */
#ifndef RQ_NET_LOOKUP_H
#define RQ_NET_LOOKUP_H

#include "net/loop.h"

#include <netdb.h>

typedef struct rq__lookup rq__lookup;

/* The addresses of a numeric host; freed with freeaddrinfo. NULL: it is a name, or no memory. */
struct addrinfo *rq__lookup_numeric(const char *host, uint16_t port);
/* Starts a thread. `done` runs once, on the loop, unless the look-up is cancelled: with the addresses, which `done`
 * then owns, or with an error of getaddrinfo (EAI_SYSTEM: see errno). RQ_E_NO_MEMORY: out of memory, or no thread can
 * be started. */
RQ_NODISCARD
rq_err rq__lookup_start(rq_loop *loop, const char *host, uint16_t port,
                        void (*done)(void *ctx, struct addrinfo *found, int error), void *ctx,
                        rq__lookup **ret);
/* `done` will not run. The thread goes on, and uses nothing of the loop any more. Loop's thread. */
void rq__lookup_cancel(rq__lookup *l);

#endif
