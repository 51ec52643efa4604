/* SPDX-License-Identifier: Apache-2.0 */
/* The other end of a connection, for tests: blocking sockets with a time-out, failures assert. */
#ifndef RQ_TEST_RPC_PEER_H
#define RQ_TEST_RPC_PEER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int peer_connect(uint16_t port);
/* How peer_connect connects: with a socket, or with relay.h's function. */
extern int (*peer_connect_by)(uint16_t port);
int peer_connect_plain(uint16_t port);
void peer_send(int fd, const void *bytes, size_t len);
/* Returns false if the other end has closed. */
bool peer_try_send(int fd, const void *bytes, size_t len);
void peer_read(int fd, void *bytes, size_t len);
void peer_expect(int fd, const void *bytes, size_t len);
/* Expects that no more bytes arrive: end of file or a reset. */
void peer_expect_end(int fd);

/* Sends `count` copies from a separate thread. */
typedef struct peer_sender {
    pthread_t thread;
    int fd;
    const void *bytes;
    size_t len;
    unsigned count;
} peer_sender;

void peer_send_many(peer_sender *s, int fd, const void *bytes, size_t len, unsigned count);
void peer_sender_join(peer_sender *s);

#endif
