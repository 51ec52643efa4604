/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches one page of a server by HTTP, for processlist, with libevent's client on an event base of
 * its own. The base also resolves the name, so that Ctrl-C and the time limit end every kind of
 * wait. The answer is untrusted and has a limit. */
#include "shell/shell_priv.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/dns.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/util.h>
#include <mruby/array.h>
#include <mruby/error.h>
#include <mruby/string.h>
#include <stdio.h>

#define ANSWER_MAX (16 * 1024 * 1024)
#define HEADERS_MAX (64 * 1024)
#define TIMEOUT_NS 10000000000
#define LOOK_US 100000

typedef struct page {
    rq__shell *shell;
    struct event_base *base;
    struct evdns_base *names;
    struct evhttp_connection *connection;
    int64_t until_ns;
    int status;      /* of the answer, whose body is in shell->answer */
    const char *why; /* of a failure */
} page;

static void on_look(evutil_socket_t fd, short events, void *ctx)
{
    page *p = ctx;
    (void)fd;
    (void)events;
    bool late = rq_client_now_ns() > p->until_ns;
    if (late) p->why = "no response for 10 s";
    if (late || p->shell->interrupted) event_base_loopbreak(p->base);
}

/* evhttp keeps the reason of a failed connection only if the name could not be resolved. */
static const char *reason(const page *p, const char *otherwise)
{
    int error = bufferevent_socket_get_dns_error(evhttp_connection_get_bufferevent(p->connection));
    return error != 0 ? evutil_gai_strerror(error) : otherwise;
}

static void on_error(enum evhttp_request_error error, void *ctx)
{
    page *p = ctx;
    switch (error) {
    case EVREQ_HTTP_INVALID_HEADER:
        p->why = "not HTTP";
        break;
    case EVREQ_HTTP_DATA_TOO_LONG:
        p->why = "the response is longer than 16 MiB";
        break;
    default:
        p->why = reason(p, "not HTTP, or closed before its end");
        break;
    }
}

/* Called with an answer, after on_error, or without a connection. */
static void on_done(struct evhttp_request *request, void *ctx)
{
    page *p = ctx;
    p->status = request == NULL ? 0 : evhttp_request_get_response_code(request);
    if (p->status != 0) {
        struct evbuffer *body = evhttp_request_get_input_buffer(request);
        size_t len = evbuffer_get_length(body);
        if (rq_buf_reserve(&p->shell->answer, len) != RQ_OK)
            p->why = "out of memory";
        else
            p->shell->answer.len = (size_t)evbuffer_remove(body, p->shell->answer.ptr, len);
    } else if (p->why == NULL) {
        p->why = reason(p, "cannot connect");
    }
    event_base_loopbreak(p->base);
}

static bool ask(page *p, const char *host, uint16_t port, const char *path)
{
    char where[300];
    p->connection = evhttp_connection_base_new(p->base, p->names, host, port);
    if (p->connection == NULL) return false;
    evhttp_connection_set_max_headers_size(p->connection, HEADERS_MAX);
    evhttp_connection_set_max_body_size(p->connection, ANSWER_MAX);
    struct evhttp_request *request = evhttp_request_new(on_done, p);
    if (request == NULL) return false;
    evhttp_request_set_error_cb(request, on_error);
    snprintf(where, sizeof where, "%s:%d", host, port);
    struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
    if (evhttp_add_header(headers, "Host", where) != 0 ||
        evhttp_add_header(headers, "Connection", "close") != 0) {
        evhttp_request_free(request);
        return false;
    }
    /* The connection owns the request from here on, even if the call fails. */
    return evhttp_make_request(p->connection, request, EVHTTP_REQ_GET, path) == 0;
}

static void fetch_page(page *p, const char *host, uint16_t port, const char *path)
{
    const struct timeval pause = {.tv_usec = LOOK_US};
    struct event *look = NULL;
    rq_buf_reset(&p->shell->answer);
    p->base = event_base_new();
    if (p->base != NULL) p->names = evdns_base_new(p->base, EVDNS_BASE_INITIALIZE_NAMESERVERS);
    if (p->base != NULL) look = event_new(p->base, -1, EV_PERSIST, on_look, p);
    if (look == NULL || event_add(look, &pause) != 0 || !ask(p, host, port, path)) {
        if (p->why == NULL) p->why = "cannot create the request";
    } else if (p->why == NULL && p->status == 0) {
        (void)event_base_dispatch(p->base);
    }
    if (p->connection != NULL) evhttp_connection_free(p->connection);
    if (look != NULL) event_free(look);
    if (p->names != NULL) evdns_base_free(p->names, 1);
    if (p->base == NULL) return;
    /* A look-up that was ended frees its memory in a last turn. */
    (void)event_base_loop(p->base, EVLOOP_NONBLOCK);
    event_base_free(p->base);
}

/* Shell.fetch(host, port, path) → [status, body]. A failed request raises a RuntimeError with the URL
 * and the reason. */
static mrb_value fetch(mrb_state *mrb, mrb_value self)
{
    const char *host, *path;
    mrb_int port;
    char status[16];
    rq__shell *s = rq__shell_of(mrb);
    page p = {.shell = s, .until_ns = rq_client_now_ns() + TIMEOUT_NS};
    (void)self;
    mrb_get_args(mrb, "ziz", &host, &port, &path);
    fetch_page(&p, host, (uint16_t)port, path);
    rq__shell_check_interrupt(mrb);
    if (p.why != NULL)
        mrb_raisef(mrb, E_RUNTIME_ERROR, "http://%s:%d%s: %s", host, (int)port, path, p.why);
    int n = snprintf(status, sizeof status, "%d", p.status);
    return mrb_assoc_new(mrb, mrb_str_new(mrb, status, n),
                         mrb_str_new(mrb, (const char *)s->answer.ptr, (mrb_int)s->answer.len));
}

void rq__define_web(mrb_state *mrb)
{
    struct RClass *m = mrb_define_module(mrb, "Shell");
    mrb_define_module_function(mrb, m, "fetch", fetch, MRB_ARGS_REQ(3));
}
