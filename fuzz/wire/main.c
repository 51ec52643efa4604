/* SPDX-License-Identifier: Apache-2.0 */
/* The structured fuzzer over the wire: requests of every method of every service, generated from
 * the messages' descriptors, over several connections to a live server, together with a
 * well-behaved client. tests/e2e/fuzz_wire.py starts the server, and checks it afterwards.
 *
 * A finding ends the run with a line `FINDING text`: a call without an answer, an answer that a
 * client could not decode, a connection closed without reason, too much memory, or a bystander that
 * waits, fails or reads a wrong value. Ends with `done …` and 0, or with 1. */
#include "bystander.h"
#include "message.h"
#include "peer.h"

#include "base/macros.h"
#include "rpc/cell_codec.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define CONTROLS 2        /* connections for requests that keep the tables alive */
#define UNDER_WAY_MAX 160 /* maximum number of calls in flight over connections that read */
#define UNSENT_MAX ((size_t)8 << 20)
#define CARE_EVERY 120 /* requests between two rounds of care() */
#define LOGGED_BYTES 65536
#define P99_CALLS 400 /* with fewer calls the percentile is meaningless */

typedef struct fuzzer {
    struct sockaddr_in addresses[3];
    uint64_t seed, count;
    int64_t hang_ms, stall_ms, p99_ms, ends_ms;
    uint64_t rss_max_kb;
    int server;     /* process id */
    uint64_t *only; /* numbers of the requests to send; NULL: all */
    size_t only_count;
    FILE *log;
    plan plan;
    world world;
    peer peers[PLAN_SLOTS + CONTROLS];
    bystander by;
    uint32_t last_call;
    uint64_t sent;
    int64_t looked_ms;
    uint64_t rss_kb;
    bool found;
    bool holds; /* waits after a finding until a line arrives on standard input */
} fuzzer;

static void finding(fuzzer *f, const char *format, ...) RQ_PRINTF(2, 3);

/* Reports the connections with calls in flight: bytes left to send, and bytes received of a
 * response. */
static void report_peers(const fuzzer *f)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(f->peers); i++) {
        const peer *p = &f->peers[i];
        if (p->fd < 0 || p->call_count == 0) continue;
        struct sockaddr_in own = {0};
        socklen_t len = sizeof own;
        (void)getsockname(p->fd, (struct sockaddr *)&own, &len);
        printf("PEER slot %zu.%llu, port %u to %u: %zu calls under way, the first is request %llu; "
               "%zu bytes not sent, "
               "%zu received in part\n",
               i, (unsigned long long)p->life, ntohs(own.sin_port),
               ntohs(f->addresses[p->how.port].sin_port), p->call_count,
               (unsigned long long)p->calls[0].number, p->out.len - p->out_at, p->in.len);
    }
}

static void finding(fuzzer *f, const char *format, ...)
{
    va_list args;
    if (f->found) return;
    f->found = true;
    va_start(args, format);
    printf("FINDING ");
    vprintf(format, args);
    printf("\n");
    va_end(args);
    report_peers(f);
    fflush(stdout);
    if (!f->holds) return;
    for (int c = getchar(); c != EOF && c != '\n'; c = getchar())
        continue;
}

/* ---- watching */

static uint64_t resident_kb(int server)
{
    char path[64], line[256];
    unsigned long long kb = 0;
    snprintf(path, sizeof path, "/proc/%d/status", server);
    FILE *file = fopen(path, "r");
    if (file == NULL) return 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "VmHWM: %llu", &kb) == 1) break;
    fclose(file);
    return kb;
}

static void look_at_peer(fuzzer *f, const peer *p, int64_t now)
{
    if (p->problem[0] != '\0') finding(f, "%s", p->problem);
    const peer_call *oldest = peer_oldest(p);
    /* Gigabytes of responses may precede it, so a call hangs only if the connection receives no
     * more bytes. */
    if (oldest != NULL && now - oldest->sent_ms > f->hang_ms && now - p->read_ms > f->hang_ms)
        finding(f, "request %llu (%s) has no answer after %lld ms",
                (unsigned long long)oldest->number,
                oldest->method == NULL ? "ZooKeeper" : oldest->method->name,
                (long long)(now - oldest->sent_ms));
}

static void look(fuzzer *f)
{
    int64_t now = clock_ms();
    if (now < f->looked_ms + 50) return;
    f->looked_ms = now;
    for (size_t i = 0; i < RQ_ARRAY_LEN(f->peers); i++)
        look_at_peer(f, &f->peers[i], now);
    int64_t since = atomic_load(&f->by.waiting_since_ms);
    if (atomic_load(&f->by.failed)) finding(f, "bystander: %s", f->by.problem);
    if (since > 0 && now - since > f->stall_ms)
        finding(f, "bystander: a call waits for %lld ms", (long long)(now - since));
    if (f->server == 0) return;
    f->rss_kb = resident_kb(f->server);
    if (f->rss_max_kb > 0 && f->rss_kb > f->rss_max_kb)
        finding(f, "memory: %llu MB resident", (unsigned long long)f->rss_kb >> 10);
}

/* ---- input and output */

static size_t under_way(const fuzzer *f)
{
    size_t sum = 0;
    for (size_t i = 0; i < RQ_ARRAY_LEN(f->peers); i++)
        if (peer_oldest(&f->peers[i]) != NULL) sum += f->peers[i].due;
    return sum;
}

/* Notes which peers have nothing left to receive: poll has found their sockets empty. */
static void note_drained(fuzzer *f, const struct pollfd *fds, int64_t now)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(f->peers); i++)
        if ((fds[i].events & POLLIN) != 0 && (fds[i].revents & ~POLLOUT) == 0)
            f->peers[i].drained_ms = now;
}

static void turn(fuzzer *f, int wait_ms)
{
    struct pollfd fds[PLAN_SLOTS + CONTROLS];
    int64_t now = clock_ms();
    for (size_t i = 0; i < RQ_ARRAY_LEN(f->peers); i++) {
        const peer *p = &f->peers[i];
        bool reads = peer_wants(p, now);
        bool writes = p->out_at < p->out.len;
        fds[i] = (struct pollfd){.fd = reads || writes ? p->fd : -1,
                                 .events = (short)((reads ? POLLIN : 0) | (writes ? POLLOUT : 0))};
    }
    int ready = poll(fds, RQ_ARRAY_LEN(fds), wait_ms);
    if (ready >= 0) note_drained(f, fds, now);
    now = clock_ms();
    if (ready > 0)
        for (size_t i = 0; i < RQ_ARRAY_LEN(f->peers); i++) {
            peer *p = &f->peers[i];
            if ((fds[i].revents & POLLOUT) != 0) peer_write(p, now);
            if ((fds[i].revents & ~POLLOUT) != 0 && p->fd >= 0 && peer_wants(p, now))
                peer_read(p, &f->world, now);
        }
    look(f);
}

/* ---- requests */

static void log_bytes(FILE *log, const rq_buf *bytes)
{
    fputc('\t', log);
    for (size_t i = 0; i < bytes->len && i < LOGGED_BYTES; i++)
        fprintf(log, "%02x", bytes->ptr[i]);
}

/* Logs number, position, kind and length; message and cells in hex. */
static void log_request(fuzzer *f, const plan_request *p, const plan_life *life,
                        const rq_buf *message, const rq_buf *cells, size_t frame_len)
{
    if (f->log == NULL) return;
    fprintf(f->log, "%llu\tslot %u.%llu %s\ttemper %d\t%u x\t%s\t%zu",
            (unsigned long long)p->number, p->slot, (unsigned long long)p->life,
            p->method == NULL ? "ZooKeeper" : p->method->name, (int)life->temper, p->repeats,
            p->method == NULL ? "-" : p->method->request->short_name, frame_len);
    log_bytes(f->log, message);
    log_bytes(f->log, cells);
    fputc('\n', f->log);
    fflush(f->log);
}

static void send_frame(fuzzer *f, peer *p, const plan_request *request, rq_buf *frame, bool due)
{
    peer_call call = {f->last_call, request->number, request->method, clock_ms(), !due};
    if (p->out.len - p->out_at > UNSENT_MAX) return;
    peer_send(p, &call, frame);
    f->sent++;
}

/* Sends `message` as often as planned, mostly each time with a new call id. */
static void send_request(fuzzer *f, peer *p, const plan_request *request, maker *m,
                         const rq_buf *message)
{
    rq_buf frame = {0};
    rq_random r = m->r;
    for (unsigned i = 0; i < request->repeats && p->fd >= 0; i++) {
        rq_buf_reset(&frame);
        if (i == 0 || !request->same_id) f->last_call++;
        m->r = r;
        bool due = true;
        if (request->method == NULL)
            p->broken |= !zookeeper_frame(&m->r, f->last_call & INT32_MAX, &frame);
        else
            due = peer_frame(&p->how, &m->r, f->last_call, request->method, message,
                             &m->cells.bytes, request->bomb, &frame);
        if (i == 0)
            log_request(f, request, &p->how, request->method == NULL ? &frame : message,
                        &m->cells.bytes, frame.len);
        send_frame(f, p, request, &frame, due);
    }
    rq_buf_clear(&frame);
}

/* Sends bytes that are not a request; the server may close the connection after them. */
static void spoil(peer *p, rq_random *r)
{
    rq_buf junk = {0};
    p->broken = true;
    draw_bytes(r, &junk);
    draw_bytes(r, &junk);
    put(&p->out, junk.ptr, junk.len);
    rq_buf_clear(&junk);
}

static void end_life(peer *p)
{
    /* Truncates the bytes left to be sent to half a frame. */
    if (p->fd >= 0 && p->how.temper == LEAVES_HALF && p->out.len > p->out_at + 8) {
        p->out.len -= (p->out.len - p->out_at) / 2;
        peer_write(p, clock_ms());
    }
    peer_close(p);
}

static peer *peer_for(fuzzer *f, const plan_request *request, rq_random *r)
{
    plan_life life;
    peer *p = &f->peers[request->slot];
    plan_life_of(&f->plan, request->slot, request->life, &life);
    if (p->fd < 0 || p->life != request->life) {
        /* Connections that read first complete their calls. */
        while (p->fd >= 0 && peer_oldest(p) != NULL && !f->found)
            turn(f, 10);
        end_life(p);
        peer_open(p, &f->addresses[life.port], &life, request->life, r, clock_ms());
    }
    return p;
}

static void init_maker(fuzzer *f, const plan_request *request, const peer *p, maker *m)
{
    rq_buf row = {0};
    *m = (maker){.world = &f->world};
    draw_seed(&m->r, f->seed ^ 0x5eed, request->number);
    m->table = (unsigned)rq_random_below(&m->r, WORLD_TABLES);
    draw_row(&m->r, &row);
    m->region = world_region_of(&f->world, m->table, rq_buf_slice(&row));
    m->has_codec = p->how.codec != RQ_CODEC_NONE;
    m->cells.with_tags =
        p->how.codec == RQ_CODEC_KEYVALUE_TAGS || p->how.codec == RQ_CODEC_CELL_TAGS;
    m->long_lists = once_in(&m->r, request->repeats > 50 ? 4 : 25) ? 1 : 0;
    m->bytes_max = once_in(&m->r, 8) ? (size_t)4 << 20 : 300000;
    m->whole = request->repeats > 1 && chance(&m->r, 50);
    m->huge = request->huge;
    unsigned back = (unsigned)rq_random_below(&m->r, 12);
    if (request->method != NULL && request->scan == SCAN_CONTINUES)
        m->scanner = world_scanner(&f->world, plan_opener(&f->plan, request->number, back));
    rq_buf_clear(&row);
}

static void run_request(fuzzer *f, uint64_t number)
{
    plan_request request;
    rq_random r;
    maker m;
    rq_buf message = {0};
    plan_make(&f->plan, number, &request);
    draw_seed(&r, f->seed ^ 0xc0, number);
    peer *p = peer_for(f, &request, &r);
    init_maker(f, &request, p, &m);
    if (request.method != NULL) make_message(&m, request.method->request, &message);
    if (p->how.temper == READS && once_in(&m.r, 25)) draw_damage(&m.r, &message);
    send_request(f, p, &request, &m, &message);
    if (once_in(&m.r, 400)) spoil(p, &m.r);
    rq_buf_clear(&message);
    rq_cellblock_clear(&m.cells);
}

/* ---- keeping the tables alive */

static void control(fuzzer *f, unsigned which, const char *service, const char *method,
                    const rq_buf *message)
{
    static const char *const services[CONTROLS] = {"MasterService", "ClientService"};
    static const plan_port ports[CONTROLS] = {PORT_MASTER, PORT_REGION_SERVER};
    peer *p = &f->peers[PLAN_SLOTS + which];
    plan_life plain = {.port = ports[which], .service = services[which], .temper = READS};
    rq_buf frame = {0}, none = {0};
    rq_random r;
    draw_seed(&r, 0, 0);
    if (p->fd < 0) peer_open(p, &f->addresses[ports[which]], &plain, 0, &r, clock_ms());
    peer_call call = {++f->last_call, CONTROL, plan_method_find(service, method), clock_ms(),
                      false};
    (void)peer_frame(&plain, &r, call.id, call.method, message, &none, false, &frame);
    peer_send(p, &call, &frame);
    rq_buf_clear(&frame);
}

static void put_table_name(rq_buf *out, unsigned table)
{
    rq_buf name = {0};
    put_text_field(&name, 1, world_namespace(table));
    put_text_field(&name, 2, world_qualifier(table));
    put_delimited(out, 1, &name);
    rq_buf_clear(&name);
}

static void create_table(fuzzer *f, unsigned table)
{
    static const char *const families[] = {"f", "g", "c", "m"};
    rq_buf schema = {0}, message = {0};
    put_table_name(&schema, table);
    for (size_t i = 0; i < RQ_ARRAY_LEN(families); i++) {
        rq_buf family = {0};
        put_text_field(&family, 1, families[i]);
        put_delimited(&schema, 3, &family);
        rq_buf_clear(&family);
    }
    put_delimited(&message, 1, &schema);
    put_text_field(&message, 2, "r0300");
    put_text_field(&message, 2, "r0700");
    control(f, 0, "MasterService", "CreateTable", &message);
    rq_buf_clear(&schema);
    rq_buf_clear(&message);
}

static void learn_regions(fuzzer *f)
{
    rq_buf region = {0}, scan = {0}, message = {0};
    put_number_field(&region, 1, 2);
    put_text_field(&region, 2, "1588230740");
    put_delimited(&message, 1, &region);
    put_text_field(&scan, 3, "fns:");
    put_text_field(&scan, 4, "fz9");
    put_delimited(&message, 2, &scan);
    put_number_field(&message, 4, 1000);
    put_number_field(&message, 5, 1);
    control(f, 1, "ClientService", "Scan", &message);
    rq_buf_clear(&region);
    rq_buf_clear(&scan);
    rq_buf_clear(&message);
}

static void care(fuzzer *f, uint64_t number)
{
    if (number % CARE_EVERY != 0 || f->peers[PLAN_SLOTS].call_count > 4) return;
    rq_buf message = {0};
    unsigned table = (unsigned)(number / CARE_EVERY % WORLD_TABLES);
    put_table_name(&message, table);
    control(f, 0, "MasterService", "EnableTable", &message);
    rq_buf_clear(&message);
    create_table(f, table);
    learn_regions(f);
}

/* ---- the run */

static void drain(fuzzer *f)
{
    while (under_way(f) > 0 && !f->found)
        turn(f, 20);
}

static void prepare(fuzzer *f)
{
    learn_regions(f);
    drain(f);
}

static void run_all(fuzzer *f)
{
    size_t count = f->only != NULL ? f->only_count : f->count;
    for (size_t i = 0; i < count && !f->found; i++) {
        uint64_t number = f->only != NULL ? f->only[i] : i;
        struct timespec wall;
        if (f->ends_ms > 0 && clock_ms() > f->ends_ms) break;
        clock_gettime(CLOCK_REALTIME, &wall);
        f->world.now_ms = (uint64_t)wall.tv_sec * 1000;
        care(f, number);
        run_request(f, number);
        turn(f, 0);
        while (under_way(f) > UNDER_WAY_MAX && !f->found)
            turn(f, 5);
    }
    drain(f);
}

static void report_under_way(fuzzer *f)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(f->peers); i++)
        for (size_t k = 0; k < f->peers[i].call_count && k < 5; k++)
            if (f->peers[i].fd >= 0)
                printf("UNDERWAY %llu\n", (unsigned long long)f->peers[i].calls[k].number);
}

static int run(fuzzer *f)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(f->peers); i++)
        f->peers[i] = (peer){.fd = -1, .log = f->log};
    plan_init(&f->plan, f->seed);
    prepare(f);
    if (f->by.region != NULL) bystander_start(&f->by);
    if (!f->found) run_all(f);
    if (f->found) report_under_way(f);
    uint64_t answers = 0, refusals = 0;
    const peer *longest = &f->peers[0];
    for (size_t i = 0; i < RQ_ARRAY_LEN(f->peers); i++) {
        if (f->peers[i].longest_ms > longest->longest_ms) longest = &f->peers[i];
        answers += f->peers[i].answers;
        refusals += f->peers[i].refusals;
        peer_close(&f->peers[i]);
        free(f->peers[i].calls);
    }
    if (f->by.region != NULL) {
        bystander_join(&f->by);
        uint64_t p99 = bystander_percentile(&f->by, 0.99);
        if (f->by.calls > P99_CALLS && p99 > (uint64_t)f->p99_ms)
            finding(f, "bystander: p99 is %llu ms", (unsigned long long)p99);
        printf("bystander: %llu rows, %llu calls, %llu busy, p50 %llu ms, p99 %llu ms, worst %llu "
               "ms, worst nap "
               "%llu ms\n",
               (unsigned long long)f->by.rows, (unsigned long long)f->by.calls,
               (unsigned long long)f->by.busy,
               (unsigned long long)bystander_percentile(&f->by, 0.5), (unsigned long long)p99,
               (unsigned long long)f->by.worst_ms, (unsigned long long)f->by.worst_nap_ms);
    }
    printf("done: %llu requests, %llu answers, %llu refusals, %zu regions, %llu MB, longest call "
           "%lld ms (%s)\n",
           (unsigned long long)f->sent, (unsigned long long)answers, (unsigned long long)refusals,
           f->world.region_count, (unsigned long long)f->rss_kb >> 10,
           (long long)longest->longest_ms,
           longest->longest == NULL ? "ZooKeeper" : longest->longest->name);
    world_clear(&f->world);
    return f->found ? 1 : 0;
}

/* ---- arguments */

static bool parse_address(const char *text, struct sockaddr_in *ret)
{
    char host[64];
    unsigned port;
    if (sscanf(text, "%63[^:]:%u", host, &port) != 2) return false;
    *ret = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    return inet_pton(AF_INET, host, &ret->sin_addr) == 1;
}

/* Reads a file with numbers of requests, in ascending order. */
static bool read_only(fuzzer *f, const char *path)
{
    unsigned long long number;
    FILE *file = fopen(path, "r");
    if (file == NULL) return false;
    while (fscanf(file, "%llu", &number) == 1) {
        f->only = realloc(f->only, (f->only_count + 1) * sizeof *f->only);
        RQ_ASSERT(f->only != NULL);
        f->only[f->only_count++] = number;
    }
    fclose(file);
    return f->only != NULL;
}

static bool apply(fuzzer *f, int option, const char *value)
{
    switch (option) {
    case 'm':
        return parse_address(value, &f->addresses[PORT_MASTER]);
    case 'r':
        return parse_address(value, &f->addresses[PORT_REGION_SERVER]);
    case 'z':
        return parse_address(value, &f->addresses[PORT_ZOOKEEPER]);
    case 's':
        f->seed = strtoull(value, NULL, 10);
        return true;
    case 'n':
        f->count = strtoull(value, NULL, 10);
        return true;
    case 't':
        f->ends_ms = clock_ms() + atoll(value) * 1000;
        return true;
    case 'o':
        return read_only(f, value);
    case 'l':
        f->log = fopen(value, "w");
        return f->log != NULL;
    case 'p':
        if (f->world.path_count == WORLD_PATHS) return false;
        f->world.paths[f->world.path_count++] = value;
        return true;
    case 'b':
        f->by.region = value;
        return true;
    case 'P':
        f->server = atoi(value);
        return true;
    case 'M':
        f->rss_max_kb = strtoull(value, NULL, 10) << 10;
        return true;
    case 'H':
        f->hang_ms = atoll(value);
        return true;
    case 'S':
        f->stall_ms = atoll(value);
        return true;
    case '9':
        f->p99_ms = atoll(value);
        return true;
    case 'W':
        f->holds = true;
        return true;
    default:
        return false;
    }
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"master", required_argument, NULL, 'm'},
        {"rs", required_argument, NULL, 'r'},
        {"zk", required_argument, NULL, 'z'},
        {"seed", required_argument, NULL, 's'},
        {"count", required_argument, NULL, 'n'},
        {"seconds", required_argument, NULL, 't'},
        {"only", required_argument, NULL, 'o'},
        {"log", required_argument, NULL, 'l'},
        {"path", required_argument, NULL, 'p'},
        {"bystander", required_argument, NULL, 'b'},
        {"pid", required_argument, NULL, 'P'},
        {"rss-max", required_argument, NULL, 'M'},
        {"hang-ms", required_argument, NULL, 'H'},
        {"stall-ms", required_argument, NULL, 'S'},
        {"p99-ms", required_argument, NULL, '9'},
        {"hold", no_argument, NULL, 'W'},
        {NULL, 0, NULL, 0},
    };
    fuzzer *f = calloc(1, sizeof *f);
    int option;
    RQ_ASSERT(f != NULL);
    f->count = 3000;
    f->hang_ms = 30000;
    f->stall_ms = 5000;
    f->p99_ms = 1000;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        if (!apply(f, option, optarg)) {
            fprintf(stderr, "fuzz_wire: arguments as tests/e2e/fuzz_wire.py gives them\n");
            return 2;
        }
    f->by.address = f->addresses[PORT_REGION_SERVER];
    int code = run(f);
    if (f->log != NULL) fclose(f->log);
    free(f->only);
    free(f);
    return code;
}
