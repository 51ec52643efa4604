/* SPDX-License-Identifier: Apache-2.0 */
/* A well-behaved client; see bystander.h. */
#include "bystander.h"

#include "message.h"
#include "peer.h"
#include "proto/client.pb-c.h"
#include "proto/rpc.pb-c.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NAP_MS 4
#define RECEIVE_TIMEOUT_S 600 /* only if all hangs; the fuzzer finds a slow server earlier */
#define BUSY_PAUSE_MS 10
#define HB "org.apache.hadoop.hbase."

int64_t clock_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void nap(int64_t ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static bool fails(bystander *b, const char *what, const char *detail)
{
    if (atomic_load(&b->failed)) return false;
    snprintf(b->problem, sizeof b->problem, "%s: %s", what, detail);
    atomic_store(&b->failed, true);
    return false;
}

/* ---- the connection */

static bool send_all(bystander *b, int fd, const rq_buf *bytes)
{
    for (size_t at = 0; at < bytes->len;) {
        ssize_t n = send(fd, bytes->ptr + at, bytes->len - at, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fails(b, "cannot send", strerror(errno));
        at += (size_t)n;
    }
    return true;
}

static bool receive(bystander *b, int fd, uint8_t *to, size_t len)
{
    while (len > 0) {
        ssize_t n = recv(fd, to, len, 0);
        if (n < 0 && errno == EINTR) continue; /* the process was stopped and goes on */
        if (n == 0) return fails(b, "no answer", "the server closed the connection");
        if (n < 0) return fails(b, "no answer", strerror(errno));
        to += n;
        len -= (size_t)n;
    }
    return true;
}

static int open_connection(bystander *b)
{
    int on = 1;
    struct timeval timeout = {.tv_sec = RECEIVE_TIMEOUT_S};
    rq_buf hello = {0}, header = {0}, user = {0};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    RQ_ASSERT(fd >= 0);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    if (connect(fd, (const struct sockaddr *)&b->address, sizeof b->address) != 0)
        fails(b, "cannot connect", strerror(errno));
    put(&hello, "HBas\0\x50", 6);
    put_text_field(&user, 1, "bystander");
    put_delimited(&header, 1, &user);
    put_text_field(&header, 2, "ClientService");
    must(rq_buf_append_be32(&hello, (uint32_t)header.len));
    put(&hello, header.ptr, header.len);
    (void)send_all(b, fd, &hello);
    rq_buf_clear(&hello);
    rq_buf_clear(&header);
    rq_buf_clear(&user);
    return fd;
}

/* ---- calls */

static void put_region(bystander *b, rq_buf *message)
{
    rq_buf region = {0};
    put_number_field(&region, 1, 2);
    put_text_field(&region, 2, b->region);
    put_delimited(message, 1, &region);
    rq_buf_clear(&region);
}

static void make_put(bystander *b, const char *row, const char *value, rq_buf *message)
{
    rq_buf mutation = {0}, family = {0}, column = {0};
    put_region(b, message);
    put_text_field(&mutation, 1, row);
    put_number_field(&mutation, 2, 2);
    put_text_field(&column, 1, "q");
    put_text_field(&column, 2, value);
    put_text_field(&family, 1, "f");
    put_delimited(&family, 2, &column);
    put_delimited(&mutation, 3, &family);
    put_delimited(message, 2, &mutation);
    rq_buf_clear(&mutation);
    rq_buf_clear(&family);
    rq_buf_clear(&column);
}

static void make_get(bystander *b, const char *row, rq_buf *message)
{
    rq_buf get = {0};
    put_region(b, message);
    put_text_field(&get, 1, row);
    put_delimited(message, 2, &get);
    rq_buf_clear(&get);
}

static bool is_busy(const char *class_name)
{
    return strcmp(class_name, HB "RegionTooBusyException") == 0 ||
           strcmp(class_name, HB "CallQueueTooBigException") == 0;
}

typedef enum outcome { DONE, BUSY, FAILED } outcome;

/* Leaves the response's message in `answer`, from *ret_at on. */
static outcome read_outcome(bystander *b, rq_buf *answer, size_t *ret_at)
{
    rq_cursor c = rq_cursor_of(rq_buf_slice(answer));
    rq_slice head = {0};
    uint64_t len = 0;
    if (!rq_cursor_varint(&c, &len) || len > rq_cursor_left(&c) ||
        !rq_cursor_bytes(&c, (size_t)len, &head)) {
        fails(b, "an answer", "is too short");
        return FAILED;
    }
    Pb__ResponseHeader *h = pb__response_header__unpack(NULL, head.len, head.ptr);
    outcome ret = h == NULL ? FAILED : DONE;
    if (h != NULL && h->exception != NULL) {
        ret = is_busy(h->exception->exception_class_name) ? BUSY : FAILED;
        if (ret == FAILED) fails(b, h->exception->exception_class_name, h->exception->stack_trace);
    } else if (ret == DONE) {
        if (!rq_cursor_varint(&c, &len) || len != rq_cursor_left(&c)) ret = FAILED;
        *ret_at = answer->len - rq_cursor_left(&c);
    }
    if (h != NULL) pb__response_header__free_unpacked(h, NULL);
    if (ret == FAILED) fails(b, "an answer", "is malformed");
    return ret;
}

static outcome call_once(bystander *b, int fd, const plan_method *method, const rq_buf *message,
                         rq_buf *answer, size_t *ret_at)
{
    static const plan_life plain = {.service = "ClientService"};
    rq_buf frame = {0}, none = {0};
    rq_random r;
    uint8_t length[4];
    rq_random_seed(&r, 0);
    peer_frame(&plain, &r, (uint32_t)++b->calls, method, message, &none, false, &frame);
    bool ok = send_all(b, fd, &frame) && receive(b, fd, length, sizeof length);
    rq_buf_clear(&frame);
    if (!ok) return FAILED;
    rq_buf_reset(answer);
    must(rq_buf_reserve(answer, rq_get_be32(length)));
    if (!receive(b, fd, answer->ptr, rq_get_be32(length))) return FAILED;
    answer->len = rq_get_be32(length);
    return read_outcome(b, answer, ret_at);
}

/* Retries if the server is busy, as clients do; the call's time includes the waits. */
static bool call(bystander *b, int fd, const plan_method *method, const rq_buf *message,
                 rq_buf *answer, size_t *ret_at)
{
    int64_t begun = clock_ms();
    atomic_store(&b->waiting_since_ms, begun);
    outcome o;
    while ((o = call_once(b, fd, method, message, answer, ret_at)) == BUSY) {
        b->busy++;
        nap(BUSY_PAUSE_MS);
        if (atomic_load(&b->stop)) break;
    }
    uint64_t took = (uint64_t)(clock_ms() - begun);
    atomic_store(&b->waiting_since_ms, 0);
    if (took > b->worst_ms) b->worst_ms = took;
    b->histogram[took < BYSTANDER_BUCKETS ? took : BYSTANDER_BUCKETS - 1]++;
    return o == DONE;
}

static bool is_value(rq_slice message, const char *row, const char *value)
{
    Pb__GetResponse *g = pb__get_response__unpack(NULL, message.len, message.ptr);
    bool same = g != NULL && g->result != NULL && g->result->n_cell == 1 &&
                g->result->cell[0]->value.len == strlen(value) &&
                memcmp(g->result->cell[0]->value.data, value, strlen(value)) == 0 &&
                g->result->cell[0]->row.len == strlen(row);
    if (g != NULL) pb__get_response__free_unpacked(g, NULL);
    return same;
}

static bool put_and_get(bystander *b, int fd, rq_buf *answer)
{
    char row[32], value[32];
    rq_buf message = {0};
    size_t at = 0;
    snprintf(row, sizeof row, "w%010llu", (unsigned long long)b->rows);
    snprintf(value, sizeof value, "%llu", (unsigned long long)b->rows);
    make_put(b, row, value, &message);
    bool ok = call(b, fd, plan_method_find("ClientService", "Mutate"), &message, answer, &at);
    if (ok) b->rows++;
    rq_buf_reset(&message);
    make_get(b, row, &message);
    ok = ok && call(b, fd, plan_method_find("ClientService", "Get"), &message, answer, &at);
    if (ok && !is_value(rq_slice_of(answer->ptr + at, answer->len - at), row, value))
        ok = fails(b, "another value than was put", row);
    rq_buf_clear(&message);
    return ok;
}

static void *run(void *arg)
{
    bystander *b = arg;
    rq_buf answer = {0};
    int fd = open_connection(b);
    while (!atomic_load(&b->stop) && !atomic_load(&b->failed)) {
        int64_t begun = clock_ms();
        nap(NAP_MS);
        uint64_t napped = (uint64_t)(clock_ms() - begun) - NAP_MS;
        if (napped > b->worst_nap_ms) b->worst_nap_ms = napped;
        if (!put_and_get(b, fd, &answer)) break;
    }
    rq_buf_clear(&answer);
    close(fd);
    return NULL;
}

void bystander_start(bystander *b)
{
    RQ_ASSERT(pthread_create(&b->thread, NULL, run, b) == 0);
}

void bystander_join(bystander *b)
{
    atomic_store(&b->stop, true);
    pthread_join(b->thread, NULL);
}

uint64_t bystander_percentile(const bystander *b, double share)
{
    uint64_t sum = 0, seen = 0;
    for (size_t i = 0; i < BYSTANDER_BUCKETS; i++)
        sum += b->histogram[i];
    for (size_t i = 0; i < BYSTANDER_BUCKETS; i++) {
        seen += b->histogram[i];
        if ((double)seen >= share * (double)sum) return i;
    }
    return BYSTANDER_BUCKETS;
}
