/* SPDX-License-Identifier: Apache-2.0 */
/* The other end of a connection, for tests: blocking sockets with a time-out, failures assert. */
#ifndef RQ_TEST_RPC_PEER_H
#define RQ_TEST_RPC_PEER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

int peer_connect(uint16_t port);
/* Closes what peer_connect returned. */
void peer_close(int fd);
/* Closes the connections that are still open, and joins the senders: in a teardown, after a test that failed.
 * REQUIRES: the program closes with peer_close. */
void peer_end(void);
/* What peer_connect calls: a socket, or relay.h's. */
extern int (*peer_connect_by)(uint16_t port);
int peer_connect_plain(uint16_t port);
void peer_send(int fd, const void *bytes, size_t len);
/* Returns false if the other end has closed. */
bool peer_try_send(int fd, const void *bytes, size_t len);
/* recv() that a stop of the process (SIGSTOP) does not interrupt. */
ssize_t peer_recv(int fd, void *bytes, size_t cap);
void peer_read(int fd, void *bytes, size_t len);
void peer_expect(int fd, const void *bytes, size_t len);
/* Expects that no more bytes arrive: end of file or a reset. */
void peer_expect_end(int fd);

/* Sends `count` copies from a thread of its own. `bytes` must live until the join. */
typedef struct peer_sender peer_sender;

peer_sender *peer_send_many(int fd, const void *bytes, size_t len, unsigned count);
void peer_sender_join(peer_sender *s);

#endif
