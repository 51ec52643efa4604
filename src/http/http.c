/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP thread: libevent's evhttp on its own event base. Contract in http.h.
 *
 *   socket ─► evhttp ─► answer(): small pages are made on this thread ─► body, counted until it is read
 *                  │        └─ later.c: others on threads of their own ──┘
 *                  └─ sweep(): connections past their deadline, or too many
 *
 * evhttp limits neither the number of connections nor the time of a connection. So each
 * connection's bufferevent is created here, and a reference to it is kept. evhttp has freed its
 * connection when the bufferevent has no callbacks.
 *
 * Small pages are made under `lock`, which rq_http_withdraw takes too, so that the objects they show stay
 * alive; for the others it waits (rq__later_wait).
 */
#include "http/http_priv.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD_BYTES_MAX 16384
#define BODY_BYTES_MAX 1024 /* GET and HEAD have no body */
/* A peer that goes on sending while its response is made or written is not read beyond this. */
#define INPUT_BYTES_MAX (HEAD_BYTES_MAX + BODY_BYTES_MAX)
/* So many connections are accepted, then requests are answered and connections closed. libevent itself accepts as long as
 * peers connect. */
#define ACCEPTED_AT_ONCE 16
/* A host that has left nothing unread gets pages up to so many times the limit of unread ones, so that hosts that do not
 * read deny it nothing. */
#define READERS_PART 4

typedef struct connection {
    struct connection *next, *prev; /* ordered by since_ns, oldest first */
    struct bufferevent *stream;     /* a reference */
    uint64_t since_ns;              /* when it began, or its last response was read */
    bool ended;                     /* by end_connection */
    uint64_t host;                  /* of the peer (host_of) */
} connection;

struct rq_http {
    rq_executor *executor;
    const rq_log *log;
    const rq_config *config;
    const char *version;
    uint64_t deadline_ns;
    size_t unread_max;
    int fd;     /* the listening socket, until evhttp owns it */
    int end_fd; /* an eventfd that ends the thread */
    rq_lane *lane;
    rq_task task;
    struct event_base *base;
    struct evhttp *server;
    struct evconnlistener *listener; /* evhttp's */
    struct event *end, *tick, *accept_again;
    pthread_mutex_t lock;
    bool serves RQ_GUARDED_BY(lock);
    rq_http_sources from RQ_GUARDED_BY(lock);
    /* The thread's. */
    connection list; /* ring */
    unsigned connections;
    unsigned accepted; /* since accept_again ran */
    size_t unread;     /* bytes of bodies */
    rq__rates rates;
    rq__later *later[RQ__LATER_COUNT];
};

const rq_config *rq__http_config(const rq_http *h)
{
    return h->config;
}

const rq_log *rq__http_log(const rq_http *h)
{
    return h->log;
}

rq__rates *rq__http_rates(rq_http *h)
{
    return &h->rates;
}

const char *rq__http_version(const rq_http *h)
{
    return h->version;
}

bool rq__http_sources(rq_http *h, rq_http_sources *ret)
{
    pthread_mutex_lock(&h->lock);
    bool serves = h->serves;
    *ret = h->from;
    pthread_mutex_unlock(&h->lock);
    return serves;
}

static uint64_t now_ns(const rq_http *h)
{
    return h->executor->now_ns(h->executor);
}

/* --- connections ------------------------------------------------------------------------------ */

static void unlink_connection(connection *c)
{
    c->prev->next = c->next;
    c->next->prev = c->prev;
}

static void link_newest(rq_http *h, connection *c)
{
    c->since_ns = now_ns(h);
    c->prev = h->list.prev;
    c->next = &h->list;
    c->prev->next = c;
    h->list.prev = c;
}

static bool was_let_go(const connection *c)
{
    bufferevent_event_cb event = NULL;
    bufferevent_getcb(c->stream, NULL, NULL, &event, NULL);
    return event == NULL;
}

static void forget(rq_http *h, connection *c)
{
    unlink_connection(c);
    bufferevent_decref(c->stream);
    free(c);
    h->connections--;
}

/* Shuts the socket down: evhttp then reads end-of-file and closes the connection. */
static void end_connection(connection *c)
{
    int fd = bufferevent_getfd(c->stream);
    c->ended = true;
    if (fd >= 0) shutdown(fd, SHUT_RDWR);
}

/* Hosts are equal if these numbers are: an IPv4 address, or the network of an IPv6 address, whose other half a host may
 * choose freely. 0: unknown. */
static uint64_t host_of(int fd)
{
    struct sockaddr_in6 a = {.sin6_family = AF_UNSPEC};
    socklen_t len = sizeof a;
    uint64_t network;
    if (fd < 0 || getpeername(fd, (struct sockaddr *)&a, &len) != 0) return 0;
    if (a.sin6_family == AF_INET)
        return ((const struct sockaddr_in *)(const void *)&a)->sin_addr.s_addr;
    if (IN6_IS_ADDR_V4MAPPED(&a.sin6_addr)) return a.sin6_addr.s6_addr32[3];
    memcpy(&network, &a.sin6_addr, sizeof network);
    return network;
}

static unsigned connections_of(const rq_http *h, uint64_t host)
{
    unsigned count = 0;
    for (const connection *c = h->list.next; c != &h->list; c = c->next)
        count += !c->ended && c->host == host;
    return count;
}

/* The oldest connection of the host with the most connections, so that one host does not keep others out. */
static connection *one_too_many(const rq_http *h)
{
    connection *ret = NULL;
    unsigned most = 0;
    for (connection *c = h->list.next; c != &h->list; c = c->next) {
        unsigned count = c->ended ? 0 : connections_of(h, c->host);
        if (count <= most) continue;
        most = count;
        ret = c;
    }
    return ret;
}

/* NULL: it has closed, or evhttp made its stream. */
static connection *connection_of(const rq_http *h, struct evhttp_request *request)
{
    struct evhttp_connection *of = evhttp_request_get_connection(request);
    const struct bufferevent *stream = of == NULL ? NULL : evhttp_connection_get_bufferevent(of);
    for (connection *c = h->list.next; c != &h->list && stream != NULL; c = c->next)
        if (c->stream == stream) return c;
    return NULL;
}

uint64_t rq__http_host(rq_http *h, struct evhttp_request *request)
{
    connection *c = connection_of(h, request);
    if (c != NULL && c->host == 0) c->host = host_of(bufferevent_getfd(c->stream));
    return c == NULL ? 0 : c->host;
}

/* Bytes of responses to the host that it has not read. */
static size_t unread_of(const rq_http *h, uint64_t host)
{
    size_t bytes = 0;
    for (const connection *c = h->list.next; c != &h->list; c = c->next)
        if (c->host == host) bytes += evbuffer_get_length(bufferevent_get_output(c->stream));
    return bytes;
}

bool rq__http_has_room(rq_http *h, struct evhttp_request *request, rq__page *ret)
{
    if (h->unread <= h->unread_max) return true;
    uint64_t host = h->unread / READERS_PART <= h->unread_max ? rq__http_host(h, request) : 0;
    if (host != 0 && unread_of(h, host) == 0) return true;
    rq__page_fail(ret, RQ__HTTP_NOT_NOW, "too many responses have not been read yet");
    return false;
}

/* Frees the connections that evhttp has closed. Returns the number of those that nobody has ended. */
static unsigned forget_closed(rq_http *h)
{
    unsigned alive = 0;
    for (connection *c = h->list.next, *next; c != &h->list; c = next) {
        next = c->next;
        if (c->host == 0) c->host = host_of(bufferevent_getfd(c->stream));
        if (was_let_go(c))
            forget(h, c);
        else
            alive += !c->ended;
    }
    return alive;
}

/* Ends connections that are past their deadline, and some above the limit. */
static void sweep(rq_http *h)
{
    uint64_t now = now_ns(h);
    unsigned alive = forget_closed(h);
    for (connection *c = h->list.next; c != &h->list && now - c->since_ns >= h->deadline_ns;
         c = c->next) {
        if (c->ended) continue;
        end_connection(c);
        alive--;
    }
    for (; alive > RQ_HTTP_CONNECTIONS; alive--)
        end_connection(one_too_many(h));
}

/* Arms the timer, which runs once a second while there are connections. */
static void set_tick(rq_http *h)
{
    struct timeval second = {1, 0};
    if (!evtimer_pending(h->tick, NULL)) evtimer_add(h->tick, &second);
}

static void on_tick(evutil_socket_t fd, short what, void *ctx)
{
    rq_http *h = ctx;
    (void)fd;
    (void)what;
    evconnlistener_enable(h->listener); /* accept_again is late */
    sweep(h);
    if (h->connections > 0) set_tick(h);
}

/* Runs after the requests and ends of connections that the loop has found meanwhile. */
static void accept_again(evutil_socket_t fd, short what, void *ctx)
{
    rq_http *h = ctx;
    (void)fd;
    (void)what;
    sweep(h);
    h->accepted = 0;
    evconnlistener_enable(h->listener);
}

static void count_accepted(rq_http *h)
{
    struct timeval now = {0, 0};
    if (++h->accepted < ACCEPTED_AT_ONCE || evtimer_add(h->accept_again, &now) != 0) return;
    evconnlistener_disable(h->listener);
}

/* Makes the bufferevent of an accepted connection. Its descriptor is closed with the last
 * reference; until then no other connection can get the same descriptor number. NULL: evhttp makes
 * one itself, and only the idle time-out limits the connection. */
static struct bufferevent *make_stream(struct event_base *base, void *ctx)
{
    rq_http *h = ctx;
    sweep(h);
    set_tick(h);
    count_accepted(h);
    connection *c = calloc(1, sizeof *c);
    struct bufferevent *stream = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
    if (c == NULL || stream == NULL) {
        free(c);
        return stream;
    }
    bufferevent_setwatermark(stream, EV_READ, 0, INPUT_BYTES_MAX);
    bufferevent_incref(stream);
    c->stream = stream;
    link_newest(h, c);
    h->connections++;
    return stream;
}

static void listen_again(evutil_socket_t fd, short what, void *ctx)
{
    struct evconnlistener *listener = ctx;
    (void)fd;
    (void)what;
    evconnlistener_enable(listener);
}

/* Accepting has failed, mostly because of too many open files. Stops listening for a second, because otherwise
 * libevent would try the same connection again and again without a pause. `ctx` is evhttp's, as the listener is. */
static void on_accept_error(struct evconnlistener *listener, void *ctx)
{
    struct timeval second = {1, 0};
    (void)ctx;
    if (event_base_once(evconnlistener_get_base(listener), -1, EV_TIMEOUT, listen_again, listener,
                        &second) == 0)
        evconnlistener_disable(listener);
}

/* The kernel has taken the whole response. */
static void on_answered(struct evhttp_request *request, void *ctx)
{
    rq_http *h = ctx;
    connection *c = connection_of(h, request);
    if (c == NULL) return;
    unlink_connection(c);
    link_newest(h, c);
}

/* Lets the peer see the end at once; the descriptor is closed by the next sweep. */
static void on_close(struct evhttp_connection *of, void *ctx)
{
    (void)ctx;
    int fd = bufferevent_getfd(evhttp_connection_get_bufferevent(of));
    if (fd >= 0) shutdown(fd, SHUT_WR);
}

/* --- answers ---------------------------------------------------------------------------------- */

typedef struct body {
    rq_http *http;
    rq_buf buf;
} body;

static void body_free(const void *data, size_t len, void *ctx)
{
    body *b = ctx;
    (void)data;
    (void)len;
    b->http->unread -= b->buf.cap;
    rq_buf_clear(&b->buf);
    free(b);
}

static void add_headers(struct evhttp_request *request, const rq__page *p)
{
    static const char *const fixed[][2] = {
        {"Cache-Control", "no-store"},
        {"X-Content-Type-Options", "nosniff"},
        {"X-Frame-Options", "DENY"},
        {"Referrer-Policy", "no-referrer"},
        {"Content-Security-Policy",
         "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'; "
         "frame-ancestors 'none'"},
    };
    struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
    char number[24];
    for (size_t i = 0; i < RQ_ARRAY_LEN(fixed); i++)
        evhttp_add_header(headers, fixed[i][0], fixed[i][1]);
    evhttp_add_header(headers, "Content-Type", p->type);
    snprintf(number, sizeof number, "%zu", p->text.buf.len);
    evhttp_add_header(headers, "Content-Length", number);
    if (p->status == RQ__HTTP_NO_METHOD) evhttp_add_header(headers, "Allow", "GET, HEAD");
    if (p->status == RQ__HTTP_NOT_NOW) evhttp_add_header(headers, "Retry-After", "5");
    if (p->refresh_s == 0) return;
    snprintf(number, sizeof number, "%u", p->refresh_s);
    evhttp_add_header(headers, "Refresh", number);
}

/* Moves the page's text to the output without a copy. */
static bool give_body(rq_http *h, struct evbuffer *out, rq__page *p)
{
    body *b = malloc(sizeof *b);
    if (b == NULL) return false;
    *b = (body){h, p->text.buf};
    h->unread += b->buf.cap;
    if (evbuffer_add_reference(out, b->buf.ptr, b->buf.len, body_free, b) == 0) {
        p->text.buf = (rq_buf){0};
        return true;
    }
    h->unread -= b->buf.cap;
    free(b);
    return false;
}

/* If `request` has lost its connection meanwhile, evhttp frees it. */
static void send_page(rq_http *h, struct evhttp_request *request, rq__page *p)
{
    struct evhttp_connection *of = evhttp_request_get_connection(request);
    bool has_body = evhttp_request_get_command(request) != EVHTTP_REQ_HEAD && p->text.buf.len > 0;
    struct evbuffer *out = evbuffer_new();
    add_headers(request, p);
    evhttp_request_set_on_complete_cb(request, on_answered, h);
    if (of != NULL) evhttp_connection_set_closecb(of, on_close, NULL);
    if (out != NULL && (!has_body || give_body(h, out, p)))
        evhttp_send_reply(request, (int)p->status, NULL, out);
    else
        evhttp_send_error(request, RQ__HTTP_BROKEN, "out of memory");
    if (out != NULL) evbuffer_free(out);
    rq_buf_clear(&p->text.buf);
}

/* True: another thread makes the page, which is sent later. */
static bool make_page(rq_http *h, struct evhttp_request *request, const char *path,
                      rq__query *query, rq__page *ret)
{
    rq__request r = {.path = path, .query = query, .http = h};
    rq_http_sources from;
    const char *own_path;
    if (rq__page_is_large(path) && !rq__http_has_room(h, request, ret)) return false;
    rq__later_kind later = rq__page_later(path, query, &own_path);
    if (later != RQ__LATER_NONE) {
        if (rq__http_sources(h, &from))
            return rq__later_ask(h->later[later], request, own_path, query, ret);
        rq__page_fail(ret, RQ__HTTP_NOT_NOW, "the server is starting or stopping");
        return false;
    }
    pthread_mutex_lock(&h->lock);
    if (h->serves) r.from = &h->from;
    rq__page_make(&r, ret);
    pthread_mutex_unlock(&h->lock);
    return false;
}

/* Returns as make_page does. */
static bool read_request(rq_http *h, struct evhttp_request *request, rq__page *ret)
{
    bool later = false;
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);
    const char *raw = uri == NULL ? NULL : evhttp_uri_get_path(uri);
    const char *query = uri == NULL ? NULL : evhttp_uri_get_query(uri);
    rq__query parameters;
    rq_err rc = rq__query_read(&parameters, query);
    char *path = NULL;
    if (rc == RQ_OK) rc = rq__query_decode(raw == NULL || raw[0] == '\0' ? "/" : raw, false, &path);
    if (rc == RQ_E_NO_MEMORY)
        rq__page_fail(ret, RQ__HTTP_BROKEN, "out of memory");
    else if (rc != RQ_OK)
        rq__page_fail(ret, RQ__HTTP_BAD, "too many parameters, or a NUL in the address");
    else
        later = make_page(h, request, path, &parameters, ret);
    rq__query_clear(&parameters);
    free(path);
    return later;
}

static void answer(struct evhttp_request *request, void *ctx)
{
    rq_http *h = ctx;
    rq__page page = {0};
    enum evhttp_cmd_type command = evhttp_request_get_command(request);
    bool later = false;
    if (command == EVHTTP_REQ_GET || command == EVHTTP_REQ_HEAD)
        later = read_request(h, request, &page);
    else
        rq__page_fail(&page, RQ__HTTP_NO_METHOD, "only GET and HEAD are supported");
    if (!later) send_page(h, request, &page);
}

/* --- the thread ------------------------------------------------------------------------------- */

static void on_end(evutil_socket_t fd, short what, void *ctx)
{
    rq_http *h = ctx;
    (void)fd;
    (void)what;
    event_base_loopbreak(h->base);
}

static void run(rq_task *task)
{
    rq_http *h = RQ_CONTAINER_OF(task, rq_http, task);
    (void)setpriority(PRIO_PROCESS, (id_t)gettid(),
                      RQ__HTTP_NICE); /* where a sandbox forbids it: as others */
    event_base_dispatch(h->base);
}

static rq_err no_pages(rq_error *why)
{
    return rq_fail(why, RQ_E_NO_MEMORY, "cannot start the HTTP server: out of memory");
}

static rq_err listen_on(rq_http *h, rq_error *why)
{
    static const int all = EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD | EVHTTP_REQ_PUT |
                           EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS | EVHTTP_REQ_TRACE |
                           EVHTTP_REQ_CONNECT | EVHTTP_REQ_PATCH;
    h->server = evhttp_new(h->base);
    if (h->server == NULL) return no_pages(why);
    evhttp_set_allowed_methods(h->server, all);
    evhttp_set_max_headers_size(h->server, HEAD_BYTES_MAX);
    evhttp_set_max_body_size(h->server, BODY_BYTES_MAX);
    evhttp_set_timeout(h->server, RQ_HTTP_IDLE_S);
    evhttp_set_bevcb(h->server, make_stream, h);
    evhttp_set_gencb(h->server, answer, h);
    struct evhttp_bound_socket *bound = evhttp_accept_socket_with_handle(h->server, h->fd);
    if (bound == NULL) return no_pages(why);
    h->fd = -1; /* evhttp's */
    h->listener = evhttp_bound_socket_get_listener(bound);
    evconnlistener_set_error_cb(h->listener, on_accept_error);
    return RQ_OK;
}

static rq_err start(rq_http *h, rq_error *why)
{
    struct event_config *config = event_config_new();
    if (config == NULL) return no_pages(why);
    event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_IGNORE_ENV);
    h->base = event_base_new_with_config(config);
    event_config_free(config);
    h->end_fd = eventfd(0, EFD_CLOEXEC);
    if (h->base == NULL || h->end_fd < 0) return no_pages(why);
    h->tick = evtimer_new(h->base, on_tick, h);
    h->accept_again = evtimer_new(h->base, accept_again, h);
    h->end = event_new(h->base, h->end_fd, EV_READ, on_end, h);
    if (h->tick == NULL || h->accept_again == NULL || h->end == NULL ||
        event_add(h->end, NULL) != 0)
        return no_pages(why);
    for (int i = 0; i < RQ__LATER_COUNT; i++) {
        const rq__later_page *what = rq__later_page_of((rq__later_kind)i);
        h->later[i] = rq__later_new(what, h, h->executor, h->base, send_page);
        if (h->later[i] == NULL) return no_pages(why);
    }
    RQ_TRY(listen_on(h, why));
    rq_err rc = h->executor->lane_new(h->executor, "http", &h->lane);
    if (rc != RQ_OK) return rq_fail(why, rc, "cannot start the HTTP thread: %s", rq_err_text(rc));
    h->task.run = run;
    rq_lane_post(h->lane, &h->task);
    return RQ_OK;
}

/* --- life ------------------------------------------------------------------------------------- */

rq_err rq_http_open(const rq_http_options *o, rq_http **ret, rq_error *why)
{
    rq_http *h = calloc(1, sizeof *h);
    if (h == NULL) {
        close(o->fd);
        return no_pages(why);
    }
    h->executor = o->executor;
    h->log = o->log;
    h->config = o->config;
    h->version = o->version;
    h->deadline_ns =
        (uint64_t)(o->deadline_ms != 0 ? o->deadline_ms : RQ_HTTP_DEADLINE_MS) * 1000000;
    h->unread_max = o->unread_bytes_max != 0 ? o->unread_bytes_max : RQ_HTTP_UNREAD_BYTES;
    h->fd = o->fd;
    h->end_fd = -1;
    h->list.next = h->list.prev = &h->list;
    pthread_mutex_init(&h->lock, NULL);
    rq_err rc = start(h, why);
    if (rc != RQ_OK) {
        rq_http_close(h);
        return rc;
    }
    *ret = h;
    return RQ_OK;
}

void rq_http_serve(rq_http *h, const rq_http_sources *from)
{
    if (h == NULL) return;
    pthread_mutex_lock(&h->lock);
    h->from = *from;
    h->serves = true;
    pthread_mutex_unlock(&h->lock);
}

void rq_http_withdraw(rq_http *h)
{
    if (h == NULL) return;
    pthread_mutex_lock(&h->lock);
    h->serves = false;
    pthread_mutex_unlock(&h->lock);
    for (int i = 0; i < RQ__LATER_COUNT; i++)
        if (h->later[i] != NULL) rq__later_wait(h->later[i]);
}

static void end_thread(rq_http *h)
{
    uint64_t one = 1;
    ssize_t written = write(h->end_fd, &one, sizeof one);
    RQ_ASSERT(written == sizeof one);
    h->executor->lane_free(h->executor, h->lane);
}

void rq_http_close(rq_http *h)
{
    if (h == NULL) return;
    rq_http_withdraw(h);
    if (h->lane != NULL) end_thread(h);
    for (int i = 0; i < RQ__LATER_COUNT; i++)
        rq__later_free(h->later[i]);
    if (h->server != NULL) evhttp_free(h->server);
    while (h->list.next != &h->list)
        forget(h, h->list.next);
    if (h->tick != NULL) event_free(h->tick);
    if (h->accept_again != NULL) event_free(h->accept_again);
    if (h->end != NULL) event_free(h->end);
    if (h->base != NULL) event_base_free(h->base);
    if (h->fd >= 0) close(h->fd);
    if (h->end_fd >= 0) close(h->end_fd);
    pthread_mutex_destroy(&h->lock);
    free(h);
}
