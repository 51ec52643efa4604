/* SPDX-License-Identifier: Apache-2.0 */
/* A fake server of the cluster, on a separate thread: listens at a server's address and misbehaves. */
#ifndef RQ_TEST_PEERS_FAKE_SERVER_H
#define RQ_TEST_PEERS_FAKE_SERVER_H

#include "cluster/handshake.h"

#include "../base/unit.h"

#include <pthread.h>
#include <stdatomic.h>

typedef enum fake_way {
    FAKE_SILENT,      /* accepts and does not respond */
    FAKE_CLOSES,      /* accepts and closes */
    FAKE_IGNORANT,    /* answers with an arbitrary proof */
    FAKE_REFLECTS,    /* answers with the caller's own proof */
    FAKE_OTHER_HELLO, /* answers the hello with another message */
    FAKE_LONG,        /* announces a response of 1 GiB */
    FAKE_GARBAGE,     /* sends bytes that are not an HBase frame */
    FAKE_DEAF,        /* proves itself, then reads nothing more */
    FAKE_MUTE,        /* proves itself, then reads but does not respond */
} fake_way;

typedef struct fake_server {
    fake_way way;
    rq_secret secret;
    rq_server_name name;
    char text[64];
    int fd;
    atomic_bool stopping;
    atomic_uint connections, calls; /* calls: without the greeting's */
    pthread_t thread;
} fake_server;

void fake_start(fake_server *f, fake_way way, const rq_secret *secret);
void fake_stop(fake_server *f);

#endif
