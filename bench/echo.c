/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lower bound of a request's cost: an epoll echo server. `echo REQUEST RESPONSE CONNECTIONS
 * SECONDS [DEPTH [CORE CORE [LOOPS]]]` starts a server thread that answers every REQUEST bytes with
 * RESPONSE bytes over loopback, and a client that keeps DEPTH requests (1) in flight on each
 * connection. It prints requests per second and the server thread's CPU time per request in
 * microseconds. Both sides answer all bytes of one read with one write. CORE: the cores of client
 * and server, -1: not pinned. LOOPS: the number of server threads, among which the connections are
 * divided.
 *
 * The client sends its next request at once, so the server finds several requests at each read and
 * hardly sleeps. client_echo.c measures the lower bound with clients that work between requests.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 256
#define FRAME_MAX (64 << 20)
#define LOOPS_MAX 16

/* The first loop accepts all connections. */
typedef struct loop {
    pthread_t thread;
    int epoll;
    double cpu_s;
} loop;

static size_t request_len, response_len;
static int listener, connections, depth = 1, server_core = -1, loop_count = 1;
static loop loops[LOOPS_MAX];
static atomic_bool served; /* the clients have finished */

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void write_all(int fd, const char *p, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) die("write");
        p += n;
        len -= (size_t)n;
    }
}

/* Writes n frames of `len` bytes, with as few writes as the buffer allows. */
static void write_frames(int fd, const char *bytes, size_t len, size_t n)
{
    size_t most = FRAME_MAX / len;
    for (size_t part; n > 0; n -= part) {
        part = n < most ? n : most;
        write_all(fd, bytes, part * len);
    }
}

static void pin(int core)
{
    cpu_set_t set;
    if (core < 0) return;
    CPU_ZERO(&set);
    CPU_SET((size_t)core, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) die("sched_setaffinity");
}

static void take_connection(size_t *got)
{
    static int accepted;
    int one = 1, c = accept(listener, NULL, NULL);
    if (c < 0 || c >= 1024) die("accept");
    setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    got[c] = 0;
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = c};
    epoll_ctl(loops[accepted++ % loop_count].epoll, EPOLL_CTL_ADD, c, &ev);
}

static void *serve(void *arg)
{
    static char out[FRAME_MAX];
    static size_t got[1024]; /* bytes received per connection, which only one loop accesses */
    loop *self = arg;
    struct epoll_event events[64];
    char *in = calloc(1, FRAME_MAX);
    if (in == NULL) die("calloc");
    pin(server_core);
    double start = seconds(CLOCK_THREAD_CPUTIME_ID);
    while (!atomic_load(&served)) {
        int n = epoll_wait(self->epoll, events, 64, 100);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) {
                take_connection(got);
                continue;
            }
            ssize_t r = read(fd, in, FRAME_MAX);
            if (r <= 0) {
                close(fd);
                continue;
            }
            got[fd] += (size_t)r;
            write_frames(fd, out, response_len, got[fd] / request_len);
            got[fd] %= request_len;
        }
    }
    self->cpu_s = seconds(CLOCK_THREAD_CPUTIME_ID) - start;
    free(in);
    return NULL;
}

static void start_loops(void)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = listener};
    for (int i = 0; i < loop_count; i++)
        loops[i].epoll = epoll_create1(0);
    epoll_ctl(loops[0].epoll, EPOLL_CTL_ADD, listener, &ev);
    for (int i = 0; i < loop_count; i++)
        if (pthread_create(&loops[i].thread, NULL, serve, &loops[i]) != 0) die("pthread_create");
}

/* Ends all loops; returns their CPU seconds. */
static double end_loops(void)
{
    double cpu_s = 0;
    atomic_store(&served, true);
    for (int i = 0; i < loop_count; i++) {
        pthread_join(loops[i].thread, NULL);
        cpu_s += loops[i].cpu_s;
    }
    return cpu_s;
}

static int connect_to(const struct sockaddr_in *address)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    if (fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof *address) != 0)
        die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static long drive(const struct sockaddr_in *address, double duration)
{
    static char bytes[FRAME_MAX];
    static size_t got[1024];
    int ep = epoll_create1(0);
    struct epoll_event events[64];
    long done = 0;
    for (int i = 0; i < connections; i++) {
        int fd = connect_to(address);
        struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};
        epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev);
        write_frames(fd, bytes, request_len, (size_t)depth);
    }
    double end = seconds(CLOCK_MONOTONIC) + duration;
    while (seconds(CLOCK_MONOTONIC) < end) {
        int n = epoll_wait(ep, events, 64, 1000);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            ssize_t r = read(fd, bytes, sizeof bytes);
            if (r <= 0) die("read");
            got[fd] += (size_t)r;
            size_t answers = got[fd] / response_len;
            got[fd] %= response_len;
            done += (long)answers;
            write_frames(fd, bytes, request_len, answers);
        }
    }
    return done;
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    if (argc < 5 || argc > 9 || argc == 7) {
        fprintf(stderr,
                "usage: echo REQUEST RESPONSE CONNECTIONS SECONDS [DEPTH [CORE CORE [LOOPS]]]\n");
        return 2;
    }
    request_len = strtoul(argv[1], NULL, 10);
    response_len = strtoul(argv[2], NULL, 10);
    connections = atoi(argv[3]);
    if (argc > 5) depth = atoi(argv[5]);
    if (argc > 7) server_core = atoi(argv[7]);
    if (argc > 8) loop_count = atoi(argv[8]);
    if (loop_count < 1 || loop_count > LOOPS_MAX) return 2;
    if (depth < 1 ||
        (size_t)depth * (request_len > response_len ? request_len : response_len) > FRAME_MAX)
        return 2;
    if (request_len == 0 || request_len > FRAME_MAX || response_len == 0 ||
        response_len > FRAME_MAX || connections < 1 || connections > CONNECTIONS_MAX)
        return 2;
    listener = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, 128) != 0)
        die("listen");
    getsockname(listener, (struct sockaddr *)&address, &len);
    start_loops();
    double duration = atof(argv[4]);
    if (argc > 7) pin(atoi(argv[6]));
    long done = drive(&address, duration);
    double cpu_s = end_loops();
    printf("%.0f requests/s, %.2f us server CPU per request\n", (double)done / duration,
           cpu_s * 1e6 / (double)done);
    return 0;
}
