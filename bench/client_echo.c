/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lower bound of a request's cost with HBase's clients: an epoll echo server that looks like a
 * region server to an unmodified client. `client_echo LISTEN TARGET TABLE PORT…` is a proxy at
 * LISTEN for a server at TARGET, on the same ports. It forwards everything except the Gets and
 * Mutates of one table: it keeps the first KEPT responses to each, and answers every later request
 * at once with one of them, under the request's call id. The remaining cost is unavoidable for any
 * server: waking up, reading, finding the frames and writing, after the client's work has evicted
 * the CPU caches.
 *
 *   client ──► client_echo ── Get, Mutate of TABLE ──► an answer kept
 *                   └───────── all else ─────────────► server
 *
 * For benchmarks only: it trusts both sides, and exits on anything unexpected.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define KEPT 64
#define READ_BYTES ((size_t)256 * 1024)
#define PREAMBLE_BYTES 6
#define TABLE_WITHIN 128 /* a region's name is the first field of the request */

typedef struct bytes {
    uint8_t *ptr;
    size_t len, cap;
} bytes;

typedef enum { GET, MUTATE, KINDS, OTHER = KINDS } kind;

/* A response without its lengths and its call id. */
typedef struct answer {
    bytes header, rest;
} answer;

typedef struct end {
    int fd;
    bool listens, is_client;
    unsigned port;
    struct end *peer;
    bytes in;
    uint64_t frames;     /* complete units so far: a client first sends preamble and header */
    uint32_t awaited_id; /* of a client: id of a forwarded request whose response is kept */
    kind awaited;
} end;

static answer kept[KINDS][KEPT];
static size_t kept_count[KINDS], next_answer[KINDS];
static const char *listen_host, *target_host, *table;
static size_t table_len;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void append(bytes *b, const void *p, size_t len)
{
    if (b->len + len > b->cap) {
        b->cap = (b->len + len) * 2;
        b->ptr = realloc(b->ptr, b->cap);
        if (b->ptr == NULL) die("realloc");
    }
    memcpy(b->ptr + b->len, p, len);
    b->len += len;
}

/* Blocks, which is safe because HBase's clients and servers never stop reading while they write. */
static void write_all(int fd, const uint8_t *p, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return; /* the peer has closed: the end is read next */
        p += n;
        len -= (size_t)n;
    }
}

static uint64_t varint(const uint8_t **p)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = *(*p)++;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) break;
    }
    return v;
}

static size_t put_varint(uint8_t *p, uint64_t v)
{
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        p[n++] = (uint8_t)(v | 0x80);
    p[n++] = (uint8_t)v;
    return n;
}

/* A RequestHeader's call id (1) and method (3). What follows it is the request. */
static kind classify(const uint8_t *frame, size_t len, uint32_t *ret_id)
{
    const uint8_t *p = frame, *after = frame + len;
    uint64_t header_len = varint(&p);
    if (header_len >= (uint64_t)(after - p)) return OTHER;
    const uint8_t *request = p + header_len;
    kind k = OTHER;
    while (p < request) {
        uint64_t tag = varint(&p), value = varint(&p);
        if (tag == 0x08) *ret_id = (uint32_t)value;
        if ((tag & 7) != 2) continue;
        if (tag == 0x1a && value == 3 && memcmp(p, "Get", 3) == 0) k = GET;
        if (tag == 0x1a && value == 6 && memcmp(p, "Mutate", 6) == 0) k = MUTATE;
        p += value;
    }
    size_t left = (size_t)(after - request);
    if (left > TABLE_WITHIN) left = TABLE_WITHIN;
    return k != OTHER && memmem(request, left, table, table_len) != NULL ? k : OTHER;
}

static void answer_with(bytes *out, const answer *a, uint32_t id)
{
    uint8_t call[8] = {0x08}, front[16];
    size_t call_len = 1 + put_varint(call + 1, id);
    size_t front_len = 4 + put_varint(front + 4, call_len + a->header.len);
    uint32_t total = htonl((uint32_t)(front_len - 4 + call_len + a->header.len + a->rest.len));
    memcpy(front, &total, 4);
    append(out, front, front_len);
    append(out, call, call_len);
    append(out, a->header.ptr, a->header.len);
    append(out, a->rest.ptr, a->rest.len);
}

static void take_request(end *client, const uint8_t *frame, size_t len, bytes *answers, bytes *pass)
{
    uint32_t id = 0;
    kind k = client->frames < 2 ? OTHER : classify(frame + 4, len - 4, &id);
    if (k != OTHER && kept_count[k] == KEPT) {
        answer_with(answers, &kept[k][next_answer[k]++ % KEPT], id);
        return;
    }
    if (k != OTHER) {
        client->awaited = k;
        client->awaited_id = id;
    }
    append(pass, frame, len);
}

/* Keeps the response that its client waits for, unless it is an exception (field 2). */
static void look_at_response(end *client, const uint8_t *frame, size_t len)
{
    const uint8_t *p = frame + 4, *after = frame + len;
    uint64_t header_len = varint(&p);
    const uint8_t *rest = p + header_len;
    if (client->awaited == OTHER || header_len < 2 || rest > after || *p++ != 0x08) return;
    if (varint(&p) != client->awaited_id) return;
    kind k = client->awaited;
    client->awaited = OTHER;
    if (kept_count[k] == KEPT || (p < rest && *p == 0x12)) return;
    answer *a = &kept[k][kept_count[k]++];
    append(&a->header, p, (size_t)(rest - p));
    append(&a->rest, rest, (size_t)(after - rest));
}

/* Length of the next complete unit; 0: incomplete. */
static size_t whole(const end *e, const uint8_t *p, size_t len)
{
    if (e->is_client && e->frames == 0) return len >= PREAMBLE_BYTES ? PREAMBLE_BYTES : 0;
    if (len < 4) return 0;
    uint32_t n;
    memcpy(&n, p, 4);
    size_t need = (size_t)ntohl(n) + 4;
    return len >= need ? need : 0;
}

static void take(end *e)
{
    static bytes answers, pass;
    size_t at = 0;
    answers.len = pass.len = 0;
    for (size_t n; (n = whole(e, e->in.ptr + at, e->in.len - at)) > 0; at += n, e->frames++) {
        if (e->is_client) {
            take_request(e, e->in.ptr + at, n, &answers, &pass);
        } else {
            look_at_response(e->peer, e->in.ptr + at, n);
            append(&pass, e->in.ptr + at, n);
        }
    }
    e->in.len -= at;
    memmove(e->in.ptr, e->in.ptr + at, e->in.len);
    if (answers.len > 0) write_all(e->fd, answers.ptr, answers.len);
    if (pass.len > 0) write_all(e->peer->fd, pass.ptr, pass.len);
}

static struct sockaddr_in address_of(const char *host, unsigned port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, host, &a.sin_addr) != 1) die(host);
    return a;
}

static end *watch(int ep, int fd)
{
    end *e = calloc(1, sizeof *e);
    if (e == NULL) die("calloc");
    e->fd = fd;
    e->awaited = OTHER;
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = e};
    if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) != 0) die("epoll_ctl");
    return e;
}

static void accept_from(int ep, const end *listener)
{
    int one = 1, c = accept(listener->fd, NULL, NULL), s = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = address_of(target_host, listener->port);
    if (c < 0 || s < 0 || connect(s, (struct sockaddr *)&to, sizeof to) != 0) die("connect");
    setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    end *client = watch(ep, c), *server = watch(ep, s);
    client->is_client = true;
    client->peer = server;
    server->peer = client;
}

/* If one side has closed, closes the other. The structs remain, because an event for them may be
 * pending. */
static void part(end *e)
{
    if (e->fd >= 0) close(e->fd);
    if (e->peer->fd >= 0) close(e->peer->fd);
    e->fd = e->peer->fd = -1;
}

static void serve(int ep)
{
    static uint8_t buffer[READ_BYTES];
    struct epoll_event events[64];
    for (;;) {
        int n = epoll_wait(ep, events, 64, -1);
        for (int i = 0; i < n; i++) {
            end *e = events[i].data.ptr;
            if (e->listens) {
                accept_from(ep, e);
                continue;
            }
            ssize_t r = e->fd < 0 ? -1 : read(e->fd, buffer, sizeof buffer);
            if (r > 0) {
                append(&e->in, buffer, (size_t)r);
                take(e);
            } else if (e->fd >= 0) {
                part(e);
            }
        }
    }
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: client_echo LISTEN TARGET TABLE PORT...\n");
        return 2;
    }
    listen_host = argv[1];
    target_host = argv[2];
    table = argv[3];
    table_len = strlen(table);
    int ep = epoll_create1(0), one = 1;
    for (int i = 4; i < argc; i++) {
        unsigned port = (unsigned)atoi(argv[i]);
        struct sockaddr_in at = address_of(listen_host, port);
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, 128) != 0)
            die(argv[i]);
        end *e = watch(ep, fd);
        e->listens = true;
        e->port = port;
    }
    puts("ready");
    fflush(stdout);
    serve(ep);
}
