/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP thread without a server, as during a start: its responses, and the cost of peers that
 * send nothing, read nothing or connect in thousands. */
#include "http/http.h"

#include "base/address.h"
#include "net/socket.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_MS 30000

typedef struct world {
    rq_executor *executor;
    rq_config *config;
    rq_http *http;
    uint16_t port;
} world;

static void open_world(world *w, unsigned deadline_ms, size_t unread_max)
{
    static const unsigned threads[RQ_POOL_COUNT] = {1, 1, 1, 1, 1, 1};
    rq_error why = {.code = RQ_OK};
    int fd;
    assert_int_equal(rq_thread_executor_new(threads, &w->executor), RQ_OK);
    assert_int_equal(rq_config_new(&w->config), RQ_OK);
    assert_int_equal(rq_config_set(w->config, "hbase.rest.ssl.keystore.password", "hush", NULL),
                     RQ_OK);
    assert_int_equal(rq_socket_listen("127.0.0.1", 0, false, &fd, &w->port, &why), RQ_OK);
    rq_http_options o = {.fd = fd,
                         .executor = w->executor,
                         .config = w->config,
                         .version = "1.2.3",
                         .deadline_ms = deadline_ms,
                         .unread_bytes_max = unread_max};
    assert_int_equal(rq_http_open(&o, &w->http, &why), RQ_OK);
}

static void close_world(world *w)
{
    rq_http_close(w->http);
    rq_config_free(w->config);
    rq_thread_executor_free(w->executor);
}

static int dial(const world *w)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons(w->port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int small = 4096;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

static bool readable(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, ms) > 0;
}

/* The answer, until the peer closes, with NUL behind it; "" from a peer that closed before it had the request. */
static char *ask_if_open(const world *w, const char *request)
{
    size_t len = 0, cap = 1 << 16;
    char *text = malloc(cap);
    int fd = dial(w);
    ssize_t n = send(fd, request, strlen(request), MSG_NOSIGNAL);
    while (n > 0 && readable(fd, PATIENCE_MS) && (n = recv(fd, text + len, cap - len - 1, 0)) > 0) {
        len += (size_t)n;
        if (cap - len < 4096) text = realloc(text, cap *= 2);
    }
    assert_true(n == 0 || (n < 0 && len == 0 && errno != EAGAIN));
    text[len] = '\0';
    close(fd);
    return text;
}

static char *ask(const world *w, const char *request)
{
    char *text = ask_if_open(w, request);
    assert_true(text[0] != '\0');
    return text;
}

static void expect_answer(int fd, const char *end)
{
    char text[4096];
    size_t len = 0;
    ssize_t n = 1;
    while (readable(fd, PATIENCE_MS) && (n = recv(fd, text + len, sizeof text - len - 1, 0)) > 0)
        len += (size_t)n;
    text[len] = '\0';
    assert_memory_equal(text, "HTTP/1.1 200", 12);
    assert_non_null(strstr(text, end));
    close(fd);
}

static int status_of(char *answer)
{
    int code = answer[0] == '\0' ? 0 : atoi(answer + strlen("HTTP/1.1 "));
    free(answer);
    return code;
}

static void put_get(char *ret, size_t size, const char *path)
{
    snprintf(ret, size, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path);
}

static int status(const world *w, const char *path)
{
    char request[256];
    put_get(request, sizeof request, path);
    return status_of(ask(w, request));
}

/* With a short deadline this thread may itself be a slow sender, if it is stopped between its two calls: it then asks again. */
static int status_in_time(const world *w, const char *path)
{
    char request[256];
    int code;
    put_get(request, sizeof request, path);
    while ((code = status_of(ask_if_open(w, request))) == 0)
        ;
    return code;
}

static unsigned open_descriptors(void)
{
    unsigned count = 0;
    DIR *d = opendir("/proc/self/fd");
    while (readdir(d) != NULL)
        count++;
    closedir(d);
    return count;
}

static void a_server_that_starts_is_live_and_not_ready(void **state)
{
    (void)state;
    world w;
    open_world(&w, 0, 0);
    assert_int_equal(status(&w, "/health/live"), 200);
    assert_int_equal(status(&w, "/health/ready"), 503);
    static const char *const others[] = {
        "/",           "/metrics", "/metrics?regions",       "/jmx",
        "/prometheus", "/stacks",  "/rs-status?format=json", "/debug/slow"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(others); i++)
        assert_int_equal(status(&w, others[i]), 503);
    assert_int_equal(status(&w, "/health"), 404);
    assert_int_equal(status(&w, "/../../etc/passwd"), 404);
    assert_int_equal(status(&w, "/health/live%00x"), 400);
    assert_int_equal(status(&w, "/conf?format=json%00x"), 400);
    assert_int_equal(status(&w, "/conf?%00=1"), 400);
    assert_int_equal(status(&w, "/health/live%zz"), 404);
    assert_int_equal(status(&w, "/health/liv%65"), 200);
    close_world(&w);
}

static void secrets_are_not_shown(void **state)
{
    (void)state;
    world w;
    open_world(&w, 0, 0);
    static const char *const paths[] = {"/conf", "/conf?format=json"};
    for (size_t i = 0; i < 2; i++) {
        char request[128];
        snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nConnection: close\r\n\r\n", paths[i]);
        char *answer = ask(&w, request);
        assert_non_null(strstr(answer, "hbase.rest.ssl.keystore.password"));
        assert_non_null(strstr(answer, i == 0 ? "&lt;masked&gt;" : "\\u003cmasked\\u003e"));
        assert_null(strstr(answer, "hush"));
        free(answer);
    }
    assert_int_equal(status(&w, "/conf?format=yaml"), 400);
    assert_int_equal(status(&w, "/logLevel?log=x&level=DEBUG"), 403);
    close_world(&w);
}

static void only_reading_is_allowed(void **state)
{
    (void)state;
    world w;
    open_world(&w, 0, 0);
    static const char *const methods[] = {"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"};
    for (size_t i = 0; i < RQ_ARRAY_LEN(methods); i++) {
        char request[128];
        snprintf(request, sizeof request, "%s /health/live HTTP/1.1\r\nConnection: close\r\n\r\n",
                 methods[i]);
        char *answer = ask(&w, request);
        assert_memory_equal(answer, "HTTP/1.1 405", 12);
        assert_non_null(strstr(answer, "Allow: GET, HEAD"));
        free(answer);
    }
    char *head = ask(&w, "HEAD /health/live HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert_non_null(strstr(head, "Content-Length: 5\r\n"));
    assert_string_equal(head + strlen(head) - 4, "\r\n\r\n");
    free(head);
    close_world(&w);
}

/* Peers that send nothing, half a request, or one byte at a time. */
static void a_slow_sender_is_closed_at_the_deadline(void **state)
{
    (void)state;
    world w;
    open_world(&w, 200, 0);
    int silent = dial(&w), half = dial(&w);
    const char *request = "GET /health/live HTTP/1.1\r\nHost: a-name-that-takes-long-to-spell";
    char byte;
    bool closed = false;
    for (int waited = 0; !closed && waited < PATIENCE_MS; waited += 50) {
        if (send(half, *request != '\0' ? request : "x", 1, MSG_NOSIGNAL) < 0) closed = true;
        if (*request != '\0') request++;
        if (readable(half, 50)) closed = recv(half, &byte, 1, 0) <= 0;
    }
    assert_true(closed);
    assert_true(readable(silent, PATIENCE_MS));
    assert_true(recv(silent, &byte, 1, 0) <= 0);
    assert_int_equal(status_in_time(&w, "/health/live"), 200);
    close(silent);
    close(half);
    close_world(&w);
}

static void hundreds_of_idle_connections_block_no_client(void **state)
{
    (void)state;
    enum { COUNT = 400 }; /* both ends are in this process: the usual limit is 1,024 descriptors */
    world w;
    int fds[COUNT];
    unsigned before = open_descriptors();
    open_world(&w, 0, 0);
    for (int i = 0; i < COUNT; i++) {
        fds[i] = dial(&w);
        if (i % 100 == 0) assert_int_equal(status(&w, "/health/live"), 200);
    }
    assert_int_equal(status(&w, "/health/live"), 200);
    unsigned closed = 0;
    for (int waited = 0; waited < PATIENCE_MS && closed + RQ_HTTP_CONNECTIONS + 1 < COUNT;
         waited += 20) {
        closed = 0;
        for (int i = 0; i < COUNT; i++)
            closed += readable(fds[i], 0);
        poll(NULL, 0, 20);
    }
    assert_true(closed + RQ_HTTP_CONNECTIONS + 1 >= COUNT);
    for (int i = 0; i < COUNT; i++)
        close(fds[i]);
    assert_int_equal(status(&w, "/health/live"), 200);
    close_world(&w);
    assert_int_equal(open_descriptors(), before);
}

/* --- connections without a pause -------------------------------------------------------------- */

/* Repeatedly connects from the address, sends nothing and closes. */
typedef struct flood {
    const world *w;
    const char *from;
    _Atomic bool stop;
    _Atomic unsigned connections;
} flood;

static int dial_from(const world *w, const char *address)
{
    struct sockaddr_in own = {.sin_family = AF_INET},
                       a = {.sin_family = AF_INET,
                            .sin_port = htons(w->port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
    assert_int_equal(inet_pton(AF_INET, address, &own.sin_addr), 1);
    assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof own), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

/* The connection ends by a reset, so that none stays in TIME-WAIT. */
static void close_at_once(int fd)
{
    struct linger none = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    close(fd);
}

static void *connect_for_ever(void *ctx)
{
    flood *f = ctx;
    while (!atomic_load(&f->stop)) {
        close_at_once(dial_from(f->w, f->from));
        atomic_fetch_add(&f->connections, 1);
    }
    return NULL;
}

static void connections_without_a_pause_keep_nobody_out(void **state)
{
    (void)state;
    enum { THREADS = 4, CHECKS = 20 };
    world w;
    pthread_t threads[THREADS];
    open_world(&w, 0, 0);
    unsigned before = open_descriptors(), most = 0;
    flood f = {.w = &w, .from = "127.0.0.2"};
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, connect_for_ever, &f), 0);
    for (int i = 0; i < CHECKS; i++) {
        unsigned so_far = atomic_load(&f.connections);
        assert_int_equal(status(&w, "/health/live"), 200);
        unsigned now = open_descriptors();
        most = now > most ? now : most;
        while (atomic_load(&f.connections) == so_far)
            poll(NULL, 0, 1);
    }
    atomic_store(&f.stop, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_true(most <= before + 2 * RQ_HTTP_CONNECTIONS + THREADS + 1);
    close_world(&w);
}

/* The connections of one address are closed before those of others. */
static void one_address_does_not_use_up_the_connections(void **state)
{
    (void)state;
    enum { COUNT = 3 * RQ_HTTP_CONNECTIONS };
    static const char request[] = "GET /health/live HTTP/1.1\r\nConnection: close\r\n\r\n";
    world w;
    int fds[COUNT];
    open_world(&w, 0, 0);
    int bystander = dial_from(&w, "127.0.0.2");
    for (int i = 0; i < COUNT; i++)
        fds[i] = dial_from(&w, "127.0.0.3");
    for (int i = 0; i + RQ_HTTP_CONNECTIONS < COUNT; i++)
        assert_true(readable(fds[i], PATIENCE_MS)); /* closed to make room for later connections */
    assert_int_equal(send(bystander, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    expect_answer(bystander, "live\n");
    for (int i = 0; i < COUNT; i++)
        close(fds[i]);
    close_world(&w);
}

/* Memory of pages that peers do not read is counted; above the limit only small pages are made. */
static void a_peer_that_does_not_read_stops_large_pages_alone(void **state)
{
    (void)state;
    world w;
    open_world(&w, 0, 1);
    int fd = dial(&w);
    for (int i = 0; i < 2000; i++) {
        const char *request = "GET /conf HTTP/1.1\r\n\r\n";
        if (send(fd, request, strlen(request), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) break;
    }
    int code = 200;
    for (int waited = 0; waited < PATIENCE_MS && code != 503; waited += 20) {
        code = status(&w, "/conf");
        poll(NULL, 0, 20);
    }
    assert_int_equal(code, 503);
    assert_int_equal(status(&w, "/health/live"), 200);
    close(fd);
    for (int waited = 0; waited < PATIENCE_MS && code != 200; waited += 20) {
        code = status(&w, "/conf");
        poll(NULL, 0, 20);
    }
    assert_int_equal(code, 200);
    close_world(&w);
}

static void expect_status_line(int fd, unsigned *ret_ok, unsigned *ret_later);

/* One host's unread pages have reached the limit. Until all hosts together have four times as many, a host without
 * unread pages is still served. */
static void a_host_that_does_not_read_denies_others_nothing(void **state)
{
    (void)state;
    static const char request[] = "GET /conf HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    world w;
    unsigned ok = 0, later = 0;
    open_world(&w, 0, 0);
    char *page = ask(&w, request);
    size_t len = strlen(page);
    free(page);
    close_world(&w);
    open_world(&w, 0, len / 2);
    int fd = dial(&w), code = 200;
    for (int i = 0; i < 2000; i++)
        if (send(fd, "GET /conf HTTP/1.1\r\n\r\n", 22, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) break;
    /* A few times in a row: it is not a response that is just being sent. */
    for (int waited = 0, refused = 0; waited < PATIENCE_MS && refused < 10; waited += 20) {
        code = status(&w, "/conf");
        refused = code == 503 ? refused + 1 : 0;
        poll(NULL, 0, 20);
    }
    assert_int_equal(code, 503);
    int other = dial_from(&w, "127.0.0.2");
    assert_int_equal(send(other, request, sizeof request - 1, MSG_NOSIGNAL), sizeof request - 1);
    expect_status_line(other, &ok, &later);
    assert_int_equal(ok, 1);
    close(other);
    close(fd);
    close_world(&w);
}

static void it_ends_with_connections_in_every_state(void **state)
{
    (void)state;
    unsigned before = open_descriptors();
    for (int round = 0; round < 20; round++) {
        world w;
        open_world(&w, 0, 0);
        int silent = dial(&w), half = dial(&w), unread = dial(&w);
        assert_true(send(half, "GET /", 5, MSG_NOSIGNAL) == 5);
        for (int i = 0; i < 50; i++)
            assert_true(send(unread, "GET /conf HTTP/1.1\r\n\r\n", 22, MSG_NOSIGNAL) == 22);
        close_world(&w);
        close(silent);
        close(half);
        close(unread);
    }
    assert_int_equal(open_descriptors(), before);
}

/* --- /stacks ---------------------------------------------------------------------------------- */

/* A report that is finished when the test sends a byte. */
typedef struct slow_report {
    int begun[2], go[2];
    _Atomic int count;
} slow_report;

static void report_slowly(void *ctx, int fd)
{
    slow_report *r = ctx;
    char byte = 'x';
    atomic_fetch_add(&r->count, 1);
    assert_int_equal(write(r->begun[1], &byte, 1), 1);
    assert_int_equal(read(r->go[0], &byte, 1), 1);
    assert_int_equal(write(fd, "the report\n", 11), 11);
}

static void open_slow_world(world *w, slow_report *r)
{
    open_world(w, 0, 0);
    assert_int_equal(pipe(r->begun), 0);
    assert_int_equal(pipe(r->go), 0);
    atomic_init(&r->count, 0);
    rq_http_sources from = {.report = report_slowly, .report_ctx = r};
    rq_http_serve(w->http, &from);
}

static void close_slow_report(slow_report *r)
{
    close(r->begun[0]);
    close(r->begun[1]);
    close(r->go[0]);
    close(r->go[1]);
}

static int ask_for_stacks(const world *w)
{
    static const char request[] = "GET /stacks HTTP/1.1\r\nConnection: close\r\n\r\n";
    int fd = dial(w);
    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    return fd;
}

static void await_begin(const slow_report *r)
{
    char byte;
    assert_true(readable(r->begun[0], PATIENCE_MS));
    assert_int_equal(read(r->begun[0], &byte, 1), 1);
}

/* As while a loop hangs. Requests that arrive meanwhile share the report. */
static void health_is_served_while_stacks_are_gathered(void **state)
{
    (void)state;
    world w;
    slow_report r;
    unsigned before = open_descriptors();
    open_slow_world(&w, &r);
    int fds[3], gone;
    fds[0] = ask_for_stacks(&w);
    await_begin(&r);
    gone = ask_for_stacks(&w);
    fds[1] = ask_for_stacks(&w);
    fds[2] = ask_for_stacks(&w);
    close(gone);
    assert_int_equal(status(&w, "/health/live"), 200);
    assert_int_equal(status(&w, "/health/ready"), 200);
    assert_false(readable(fds[0], 0));
    assert_int_equal(write(r.go[1], "x", 1), 1);
    for (int i = 0; i < 3; i++)
        expect_answer(fds[i], "the report\n");
    assert_int_equal(atomic_load(&r.count), 1);
    fds[0] = ask_for_stacks(&w);
    await_begin(&r);
    assert_int_equal(write(r.go[1], "x", 1), 1);
    expect_answer(fds[0], "the report\n");
    close_world(&w);
    close_slow_report(&r);
    assert_int_equal(open_descriptors(), before);
}

/* --- a page with parameters ------------------------------------------------------------------- */

/* The clock that the page reads blocks until the test sends a byte. */
typedef struct slow_clock {
    rq_executor executor;
    slow_report gates;
} slow_clock;

static int64_t tell_time_slowly(rq_executor *e)
{
    slow_clock *c = RQ_CONTAINER_OF(e, slow_clock, executor);
    char byte = 'x';
    atomic_fetch_add(&c->gates.count, 1);
    assert_int_equal(write(c->gates.begun[1], &byte, 1), 1);
    assert_int_equal(read(c->gates.go[0], &byte, 1), 1);
    return 0;
}

static const char tasks_page[] =
    "GET /rs-status?format=json&filter=%s HTTP/1.1\r\nConnection: close\r\n\r\n";

static int ask_for_tasks_from(const world *w, const char *host, const char *filter)
{
    char request[200];
    int fd = dial_from(w, host), len = snprintf(request, sizeof request, tasks_page, filter);
    assert_int_equal(send(fd, request, (size_t)len, MSG_NOSIGNAL), len);
    return fd;
}

static int ask_for_tasks(const world *w, const char *filter)
{
    return ask_for_tasks_from(w, "127.0.0.1", filter);
}

static void open_slow_clock(world *w, slow_clock *c, rq_env *env)
{
    open_world(w, 0, 0);
    assert_int_equal(pipe(c->gates.begun), 0);
    assert_int_equal(pipe(c->gates.go), 0);
    atomic_init(&c->gates.count, 0);
    c->executor = (rq_executor){.now_ms = tell_time_slowly};
    *env = (rq_env){.executor = &c->executor};
    rq_http_sources from = {.env = env};
    rq_http_serve(w->http, &from);
}

/* Like a page over 100,000 regions, which takes seconds. Other requests of its kind wait for it. */
static void health_is_served_while_a_large_page_is_made(void **state)
{
    (void)state;
    enum { WAITING = 5 };
    world w;
    slow_clock c;
    rq_env env;
    int fds[WAITING];
    open_slow_clock(&w, &c, &env);
    fds[0] = ask_for_tasks(&w, "first");
    await_begin(&c.gates);
    for (int i = 1; i < WAITING; i++)
        fds[i] = ask_for_tasks(&w, "another");
    int gone = ask_for_tasks(&w, "gone");
    close(gone);
    assert_int_equal(status(&w, "/health/live"), 200);
    assert_int_equal(status(&w, "/health/ready"), 200);
    assert_int_equal(atomic_load(&c.gates.count), 1);
    for (int i = 0; i < WAITING + 1; i++)
        assert_int_equal(write(c.gates.go[1], "x", 1), 1);
    for (int i = 0; i < WAITING; i++)
        expect_answer(fds[i], "\r\n\r\n[]\n");
    close_world(&w);
    close_slow_report(&c.gates);
}

/* The server's kernel has the requests; then the HTTP thread reads them not later than a request that is sent now. */
static void await_requests(const world *w, const int *fds, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        for (int left = 1; left > 0; usleep(1000))
            assert_int_equal(ioctl(fds[i], SIOCOUTQ, &left), 0);
    assert_int_equal(status(w, "/health/live"), 200);
}

/* A host that has asked for many pages gets one, then the other host gets one. */
static void large_pages_are_made_for_hosts_in_turn(void **state)
{
    (void)state;
    enum { OWN = 4 };
    world w;
    slow_clock c;
    rq_env env;
    int fds[OWN + 1];
    open_slow_clock(&w, &c, &env);
    fds[0] = ask_for_tasks(&w, "first");
    await_begin(&c.gates);
    for (int i = 1; i < OWN; i++)
        fds[i] = ask_for_tasks(&w, "another");
    fds[OWN] = ask_for_tasks_from(&w, "127.0.0.2", "other");
    await_requests(&w, fds, OWN + 1);
    assert_int_equal(write(c.gates.go[1], "xx", 2), 2);
    expect_answer(fds[0], "\r\n\r\n[]\n");
    expect_answer(fds[OWN], "\r\n\r\n[]\n");
    for (int i = 1; i < OWN; i++)
        assert_false(readable(fds[i], 0));
    assert_int_equal(write(c.gates.go[1], "xxxx", OWN - 1), OWN - 1);
    for (int i = 1; i < OWN; i++)
        expect_answer(fds[i], "\r\n\r\n[]\n");
    close_world(&w);
    close_slow_report(&c.gates);
}

static void it_ends_while_large_pages_wait(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        world w;
        slow_clock c;
        rq_env env;
        int fds[5];
        open_slow_clock(&w, &c, &env);
        for (int i = 0; i < 5; i++)
            fds[i] = ask_for_tasks(&w, "some");
        if (round % 2 == 0) await_begin(&c.gates);
        if (round % 3 == 0) close(fds[round % 5]);
        for (int i = 0; i < 5; i++)
            assert_int_equal(write(c.gates.go[1], "x", 1), 1);
        close_world(&w);
        close_slow_report(&c.gates);
        for (int i = 0; i < 5; i++)
            if (round % 3 != 0 || i != round % 5) close(fds[i]);
    }
}

static void it_ends_while_stacks_are_gathered(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        world w;
        slow_report r;
        open_slow_world(&w, &r);
        int fd = ask_for_stacks(&w);
        if (round % 2 == 0) await_begin(&r);
        assert_int_equal(write(r.go[1], "x", 1), 1);
        /* the report has finished or was never begun, and nothing of it is used later */
        close_world(&w);
        close_slow_report(&r);
        close(fd);
    }
}

/* ---- a page that another thread makes */

#define REPORT_BYTES (256 << 10)

/* Makes a long page once the test permits it. */
static void report(void *ctx, int fd)
{
    const int *gate = ctx;
    static const char line[1024] = {[0 ... 1022] = 'x', '\n'};
    char byte;
    assert_int_equal(read(*gate, &byte, 1), 1);
    for (size_t i = 0; i < REPORT_BYTES / sizeof line; i++)
        assert_int_equal(write(fd, line, sizeof line), sizeof line);
}

static void expect_status_line(int fd, unsigned *ret_ok, unsigned *ret_later)
{
    char text[13] = "";
    size_t len = 0;
    while (len < sizeof text - 1 && readable(fd, PATIENCE_MS)) {
        ssize_t n = recv(fd, text + len, sizeof text - 1 - len, 0);
        assert_true(n > 0);
        len += (size_t)n;
    }
    *ret_ok += strcmp(text, "HTTP/1.1 200") == 0;
    *ret_later += strcmp(text, "HTTP/1.1 503") == 0;
}

/* Many requests wait for one page, and each gets a copy of it. */
static void a_page_for_many_has_the_limit_of_pages_for_one(void **state)
{
    (void)state;
    enum { COUNT = RQ_HTTP_CONNECTIONS / 2, MOST = 4 };
    world w;
    int fds[COUNT], gate[2];
    unsigned ok = 0, later = 0;
    open_world(&w, 0, (MOST - 1) * REPORT_BYTES);
    assert_int_equal(pipe(gate), 0);
    rq_http_sources from = {.report = report, .report_ctx = gate};
    rq_http_serve(w.http, &from);
    static const char request[] = "GET /stacks HTTP/1.1\r\nHost: x\r\n\r\n";
    for (int i = 0; i < COUNT; i++) {
        fds[i] = dial(&w);
        assert_int_equal(send(fds[i], request, sizeof request - 1, MSG_NOSIGNAL),
                         sizeof request - 1);
    }
    /* answered after all requests before it were read */
    assert_int_equal(status(&w, "/health/live"), 200);
    assert_int_equal(write(gate[1], "go", 1), 1);
    for (int i = 0; i < COUNT; i++)
        expect_status_line(fds[i], &ok, &later);
    assert_int_equal(ok + later, COUNT);
    assert_true(ok >= 1 && ok <= MOST);
    for (int i = 0; i < COUNT; i++)
        close(fds[i]);
    close_world(&w);
    close(gate[0]);
    close(gate[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_that_starts_is_live_and_not_ready),
        cmocka_unit_test(a_page_for_many_has_the_limit_of_pages_for_one),
        cmocka_unit_test(secrets_are_not_shown),
        cmocka_unit_test(only_reading_is_allowed),
        cmocka_unit_test(a_slow_sender_is_closed_at_the_deadline),
        cmocka_unit_test(hundreds_of_idle_connections_block_no_client),
        cmocka_unit_test(connections_without_a_pause_keep_nobody_out),
        cmocka_unit_test(one_address_does_not_use_up_the_connections),
        cmocka_unit_test(a_peer_that_does_not_read_stops_large_pages_alone),
        cmocka_unit_test(a_host_that_does_not_read_denies_others_nothing),
        cmocka_unit_test(it_ends_with_connections_in_every_state),
        cmocka_unit_test(health_is_served_while_stacks_are_gathered),
        cmocka_unit_test(it_ends_while_stacks_are_gathered),
        cmocka_unit_test(health_is_served_while_a_large_page_is_made),
        cmocka_unit_test(large_pages_are_made_for_hosts_in_turn),
        cmocka_unit_test(it_ends_while_large_pages_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
