/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of a ZooKeeper to "stat", for zk_dump: a line of text outside of its protocol. HBASE:
 * ZKDump.getServerStats. Blocks for about a second at most, connecting, sending and reading together,
 * and while the host's name is looked up; the answer is untrusted and has a limit. */
#include "shell/shell_priv.h"

#include <errno.h>
#include <mruby/error.h>
#include <mruby/string.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_MAX 65536
#define WAIT_NS 1000000000 /* HBASE: zookeeper.dump.connection.timeout */

/* Until the socket can be read or written; false: errno, after Ctrl-C too. */
static bool wait_for(int fd, short events, int64_t until_ns)
{
    struct pollfd p = {.fd = fd, .events = events};
    int64_t left = until_ns - rq_client_now_ns();
    int n = left <= 0 ? 0 : poll(&p, 1, (int)(left / 1000000 + 1));
    if (n == 0) errno = ETIMEDOUT;
    return n > 0;
}

static bool finish_connecting(int fd, int64_t until_ns)
{
    int why = 0;
    socklen_t len = sizeof why;
    if (errno != EINPROGRESS || !wait_for(fd, POLLOUT, until_ns)) return false;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &len) != 0) return false;
    errno = why;
    return why == 0;
}

/* A connection, which does not block; -1: errno. */
static int connect_to(const struct addrinfo *a, int64_t until_ns)
{
    int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
    if (fd < 0) return -1;
    if (connect(fd, a->ai_addr, a->ai_addrlen) == 0 || finish_connecting(fd, until_ns)) return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

/* Until the server closes the connection. */
static bool read_all(int fd, int64_t until_ns, rq_buf *ret)
{
    while (ret->len < ANSWER_MAX) {
        if (rq_buf_reserve(ret, 4096) != RQ_OK) {
            errno = ENOMEM;
            return false;
        }
        if (!wait_for(fd, POLLIN, until_ns)) return false;
        ssize_t n = recv(fd, ret->ptr + ret->len, 4096, 0);
        if (n == 0) return true;
        if (n < 0 && errno != EAGAIN) return false;
        if (n > 0) ret->len += (size_t)n;
    }
    return true;
}

static const char *ask(const char *host, const char *port, rq_buf *ret)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    int rc = getaddrinfo(host, port, &hints, &list), fd = -1;
    if (rc != 0) return gai_strerror(rc);
    int64_t until_ns = rq_client_now_ns() + WAIT_NS;
    for (const struct addrinfo *a = list; a != NULL && fd < 0; a = a->ai_next)
        fd = connect_to(a, until_ns);
    freeaddrinfo(list);
    if (fd < 0) return strerror(errno);
    bool is_read = send(fd, "stat\n", 5, MSG_NOSIGNAL) == 5 && read_all(fd, until_ns, ret);
    const char *why = is_read ? NULL : strerror(errno);
    close(fd);
    return why;
}

/* Shell.zookeeper_stat(host, port): the answer; an error of the system is raised. */
static mrb_value zookeeper_stat(mrb_state *mrb, mrb_value self)
{
    const char *host, *port;
    rq_buf *answer = &rq__shell_of(mrb)->answer;
    (void)self;
    mrb_get_args(mrb, "zz", &host, &port);
    rq_buf_reset(answer);
    const char *why = ask(host, port, answer);
    rq__shell_check_interrupt(mrb);
    if (why != NULL) mrb_raise(mrb, E_RUNTIME_ERROR, why);
    return mrb_str_new(mrb, (const char *)answer->ptr, (mrb_int)answer->len);
}

void rq__define_stat(mrb_state *mrb)
{
    struct RClass *m = mrb_define_module(mrb, "Shell");
    mrb_define_module_function(mrb, m, "zookeeper_stat", zookeeper_stat, MRB_ARGS_REQ(2));
}
