/* SPDX-License-Identifier: Apache-2.0 */
/* One page of a server by HTTP/1.0, for processlist. Ctrl-C ends the wait; the answer is untrusted and
 * has a limit. */
#include "shell/shell_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <mruby/array.h>
#include <mruby/error.h>
#include <mruby/string.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_MAX (16 * 1024 * 1024)
#define TIMEOUT_NS 10000000000
#define LOOK_MS 100

typedef struct page {
    rq__shell *shell;
    int fd;
    int64_t until_ns;
    const char *why; /* of a failure */
} page;

/* Until the socket is ready; false: time, Ctrl-C or an error. */
static bool wait_for(page *p, short events)
{
    for (;;) {
        struct pollfd f = {.fd = p->fd, .events = events};
        int n = poll(&f, 1, LOOK_MS);
        if (n > 0) return true;
        if (n < 0 && errno != EINTR) p->why = strerror(errno);
        if (rq_client_now_ns() > p->until_ns) p->why = "no answer for 10 s";
        if (p->shell->interrupted || p->why != NULL) return false;
    }
}

static bool connect_to(page *p, const struct addrinfo *a)
{
    int error = 0;
    socklen_t len = sizeof error;
    p->fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
    if (p->fd < 0) {
        p->why = strerror(errno);
        return false;
    }
    if (connect(p->fd, a->ai_addr, a->ai_addrlen) == 0) return true;
    if (errno == EINPROGRESS) {
        if (!wait_for(p, POLLOUT)) return false;
        if (getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0) errno = error;
        if (error == 0) return true;
    }
    p->why = strerror(errno);
    return false;
}

static bool open_page(page *p, const char *host, const char *port)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    int rc = getaddrinfo(host, port, &hints, &list);
    if (rc != 0) {
        p->why = gai_strerror(rc);
        return false;
    }
    bool done = false;
    for (const struct addrinfo *a = list; a != NULL && !done; a = a->ai_next) {
        if (p->fd >= 0) (void)close(p->fd);
        p->why = NULL;
        done = connect_to(p, a);
    }
    freeaddrinfo(list);
    return done;
}

static bool send_request(page *p, const rq_buf *request)
{
    for (size_t at = 0; at < request->len;) {
        ssize_t n = send(p->fd, request->ptr + at, request->len - at, MSG_NOSIGNAL);
        if (n > 0)
            at += (size_t)n;
        else if (errno != EAGAIN && errno != EINTR)
            p->why = strerror(errno);
        if (p->why != NULL || (n <= 0 && !wait_for(p, POLLOUT))) return false;
    }
    return true;
}

/* Up to the end of the stream. */
static bool read_answer(page *p, rq_buf *answer)
{
    for (;;) {
        if (rq_buf_reserve(answer, 16384) != RQ_OK) p->why = "out of memory";
        if (answer->len > ANSWER_MAX) p->why = "the answer is longer than 16 MiB";
        if (p->why != NULL) return false;
        ssize_t n = recv(p->fd, answer->ptr + answer->len, 16384, 0);
        if (n == 0) return true;
        if (n > 0) {
            answer->len += (size_t)n;
            continue;
        }
        if (errno != EAGAIN && errno != EINTR) p->why = strerror(errno);
        if (p->why != NULL || !wait_for(p, POLLIN)) return false;
    }
}

static bool fetch_page(page *p, const char *host, const char *port, const char *path)
{
    rq__shell *s = p->shell;
    rq_buf_reset(&s->request);
    rq_buf_reset(&s->answer);
    rq_err rc =
        rq_buf_printf(&s->request, "GET %s HTTP/1.0\r\nHost: %s:%s\r\n\r\n", path, host, port);
    if (rc != RQ_OK) {
        p->why = rq_err_text(rc);
        return false;
    }
    bool done =
        open_page(p, host, port) && send_request(p, &s->request) && read_answer(p, &s->answer);
    if (p->fd >= 0) (void)close(p->fd);
    return done;
}

/* Shell.fetch(host, port, path) → [status, body]. A failed request raises a RuntimeError with the URL
 * and the reason. */
static mrb_value fetch(mrb_state *mrb, mrb_value self)
{
    const char *host, *path;
    mrb_int port;
    char number[16];
    rq__shell *s = rq__shell_of(mrb);
    page p = {.shell = s, .fd = -1, .until_ns = rq_client_now_ns() + TIMEOUT_NS};
    (void)self;
    mrb_get_args(mrb, "ziz", &host, &port, &path);
    snprintf(number, sizeof number, "%d", (int)port);
    bool done = fetch_page(&p, host, number, path);
    rq__shell_check_interrupt(mrb);
    if (!done) mrb_raisef(mrb, E_RUNTIME_ERROR, "http://%s:%s%s: %s", host, number, path, p.why);
    const char *text = (const char *)s->answer.ptr;
    size_t len = s->answer.len;
    const char *body = memmem(text, len, "\r\n\r\n", 4);
    if (len < 12 || memcmp(text, "HTTP/1.", 7) != 0 || body == NULL)
        mrb_raisef(mrb, E_RUNTIME_ERROR, "http://%s:%s%s: no HTTP", host, number, path);
    body += 4;
    return mrb_assoc_new(mrb, mrb_str_new(mrb, text + 9, 3),
                         mrb_str_new(mrb, body, (mrb_int)(len - (size_t)(body - text))));
}

void rq__define_web(mrb_state *mrb)
{
    struct RClass *m = mrb_define_module(mrb, "Shell");
    mrb_define_module_function(mrb, m, "fetch", fetch, MRB_ARGS_REQ(3));
}
