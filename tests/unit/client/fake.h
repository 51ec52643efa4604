/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster that is a thread of the test: a socket whose connections one function serves, one after
 * the other, and what a cluster answers. */
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
    void (*serve)(fake *f, int fd); /* a connection; it is closed afterwards */
    size_t limit;                   /* of bytes sent, all connections together */
    rq_buf answers[4];
    unsigned calls; /* that `die` takes before it ends */
    _Atomic unsigned accepted;
    _Atomic bool is_silent;
    _Atomic uint32_t priorities[8]; /* of calls, in their order */
    _Atomic unsigned priority_count;
};

/* Listens; fake_run accepts. */
void fake_start(fake *f, void (*serve)(fake *f, int fd));
void fake_run(fake *f);
void fake_stop(fake *f);
bool fake_read(int fd, void *bytes, size_t len);
/* False: not all of it. */
bool fake_send(fake *f, int fd, const rq_buf *b);
void wait_for_end(int fd);
/* A message behind be32 length. */
bool skip_frame(int fd);

/* { ServerName { host 1, port 2, start 3 } } as that field. */
void put_server(rq_buf *b, uint32_t field, const char *host, uint16_t port);
void put_frame(rq_buf *out, const rq_buf *frame);
/* The whole conversation of a session with ZooKeeper. */
void put_zookeeper(rq_buf *out, uint16_t meta_port, uint16_t master_port);
/* ResponseHeader { call_id 1 } and a message. */
void put_response(rq_buf *out, uint32_t id, const rq_buf *message);
/* Sends the first answer, unless it is silent. */
void serve_zookeeper(fake *f, int fd);
/* A number of RequestHeader { call_id 1, priority 6 } of a frame; RQ_E_IO: the end. */
rq_err read_header(int fd, uint32_t number, uint32_t *ret);
/* Answers every call with a message without fields, and counts them. */
void serve_empty_answers(fake *f, int fd);
rq_err open_by(const fake *f, bool by_zookeeper, rq_client **ret, rq_error *why);

#endif
