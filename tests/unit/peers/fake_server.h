/* SPDX-License-Identifier: Apache-2.0 */
/* A fake server of the cluster, on a separate thread: listens at a server's address and misbehaves. */
#ifndef RQ_TEST_PEERS_FAKE_SERVER_H
#define RQ_TEST_PEERS_FAKE_SERVER_H

#include "cluster/handshake.h"

#include "../base/unit.h"

#include <pthread.h>
#include <stdatomic.h>

typedef enum fake_way {
    FAKE_SILENT,      /* accepts and says nothing */
    FAKE_CLOSES,      /* accepts and closes */
    FAKE_IGNORANT,    /* answers the proof with bytes of its own */
    FAKE_REFLECTS,    /* … with the caller's */
    FAKE_OTHER_HELLO, /* answers the hello with what is no answer */
    FAKE_LONG,        /* announces an answer of 1 GiB */
    FAKE_GARBAGE,     /* sends what is no frame of HBase's */
    FAKE_DEAF,        /* proves itself, and reads nothing from then on */
    FAKE_MUTE,        /* proves itself, reads on, and answers nothing from then on */
} fake_way;

typedef struct fake_server {
    fake_way way;
    rq_secret secret;
    rq_server_name name;
    char text[64];
    int fd;
    atomic_bool stopping;
    atomic_uint connections, calls; /* of methods other than the greeting's */
    pthread_t thread;
} fake_server;

void fake_start(fake_server *f, fake_way way, const rq_secret *secret);
void fake_stop(fake_server *f);

#endif
