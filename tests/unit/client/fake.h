/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster that is a thread of the test: one function serves a socket's connections one after the
 * other, and other functions encode a cluster's responses. */
#ifndef RQ_TESTS_CLIENT_FAKE_H
#define RQ_TESTS_CLIENT_FAKE_H

#include "client/client.h"

#include "unit.h"

#include "base/buf.h"

#include <pthread.h>
#include <stdatomic.h>

#define SECOND_NS 1000000000ll

typedef struct fake fake;

struct fake {
    int fd;
    uint16_t port;
    char at[32]; /* host:port */
    pthread_t thread;
    void (*serve)(fake *f, int fd); /* serves one connection, which is closed afterwards */
    /* bytes to send before the connection ends, over all connections */
    size_t limit;
    rq_buf answers[4];
    unsigned calls; /* calls that `die` reads before it ends */
    _Atomic unsigned accepted;
    /* Connections that `serve` has served, before they are closed. Who reads this sees what `serve` has kept. */
    _Atomic unsigned served;
    _Atomic bool is_silent;
    _Atomic uint32_t priorities[8]; /* priorities of the calls, in order of arrival */
    _Atomic unsigned priority_count;
};

/* Listens; fake_run starts to accept. */
void fake_start(fake *f, void (*serve)(fake *f, int fd));
void fake_run(fake *f);
void fake_stop(fake *f);
bool fake_read(int fd, void *bytes, size_t len);
/* Returns false if not all bytes were sent. */
bool fake_send(fake *f, int fd, const rq_buf *b);
void wait_for_end(int fd);
/* Skips a message with its be32 length. */
bool skip_frame(int fd);

/* Appends { ServerName { host 1, port 2, start 3 } } as this field. */
void put_server(rq_buf *b, uint32_t field, const char *host, uint16_t port);
void put_frame(rq_buf *out, const rq_buf *frame);
/* Appends all responses of a session with ZooKeeper. */
void put_zookeeper(rq_buf *out, uint16_t meta_port, uint16_t master_port);
/* Appends ResponseHeader { call_id 1 } and the message. */
void put_response(rq_buf *out, uint32_t id, const rq_buf *message);
/* Sends the first response, unless the fake is silent. */
void serve_zookeeper(fake *f, int fd);
/* Reads one number of a frame's RequestHeader { call_id 1, priority 6 }; RQ_E_IO: end of the
 * connection. */
rq_err read_header(int fd, uint32_t number, uint32_t *ret);
/* Answers every call with a message without fields, and counts the calls. */
void serve_empty_answers(fake *f, int fd);
rq_err open_by(const fake *f, bool by_zookeeper, rq_client **ret, rq_error *why);

#endif
