/* SPDX-License-Identifier: Apache-2.0 */
/* A connection of the fuzzer; see peer.h. */
#include "peer.h"

#include "base/macros.h"
#include "message.h"
#include "proto/client.pb-c.h"
#include "proto/rpc.pb-c.h"
#include "registry/zk_protocol.h"
#include "rpc/cell_codec.h"
#include "rpc/compressor.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_MAX ((size_t)1 << 20)
#define SLOW_READ 300
#define LATE_MS 2500
#define ANSWER_MAX ((size_t)300 << 20)
#define NO_CALL UINT32_MAX
/* A server that is short of memory disconnects peers that have read nothing for two seconds. On a busy machine this
 * process may be late; so a lost connection is no finding if it was last found empty longer ago than this. */
#define BEHIND_MS 1000
#define CELLS_MAX ((size_t)300 << 20)
/* The fuzzer does not wait for the remaining responses of a connection that has received more bytes than this: the
 * responses to thousands of repeated scans are tens of gigabytes, which take ten minutes. */
#define ENOUGH ((uint64_t)512 << 20)

static void found(peer *p, const char *format, ...) RQ_PRINTF(2, 3);

static void found(peer *p, const char *format, ...)
{
    if (p->problem[0] != '\0') return;
    va_list args;
    va_start(args, format);
    vsnprintf(p->problem, sizeof p->problem, format, args);
    va_end(args);
}

/* ---- frames */

static size_t begin_frame(rq_buf *out)
{
    must(rq_buf_append_be32(out, 0));
    return out->len;
}

static void end_frame(rq_buf *out, size_t at)
{
    rq_put_be32(out->ptr + at - 4, (uint32_t)(out->len - at));
}

static void put_message(rq_buf *out, const rq_buf *message)
{
    must(rq_buf_append_varint(out, message->len));
    put(out, message->ptr, message->len);
}

/* A length, or a count of cells, of a cell codec: a lie. */
static void lie(rq_random *r, rq_buf *coded)
{
    if (coded->len < 8) return;
    size_t at = rq_random_below(r, 4) == 0 ? rq_random_below(r, coded->len - 3) : 0;
    rq_put_be32(coded->ptr + at, (uint32_t)draw_number(r));
}

#define BOMB_BYTES ((size_t)48 << 20)

/* Appends bytes that compress well: zeros, or copies of the cells. */
static void arm(rq_random *r, rq_buf *coded)
{
    size_t len = coded->len;
    bool zeros = len == 0 || chance(r, 50);
    must(rq_buf_reserve(coded, BOMB_BYTES));
    if (zeros)
        memset(coded->ptr + len, 0, BOMB_BYTES);
    else
        for (size_t at = 0; at < BOMB_BYTES; at++)
            coded->ptr[len + at] = coded->ptr[at];
    coded->len += BOMB_BYTES;
}

/* Encodes cells with the connection's codec and compression; sometimes damaged. */
static void encode_cells(const plan_life *how, rq_random *r, const rq_buf *cells, bool bomb,
                         rq_buf *out)
{
    rq_buf coded = {0};
    if (rq__cell_codec_is_native((rq_cell_codec)how->codec))
        put(&coded, cells->ptr, cells->len);
    else if (rq__cell_codec_encode((rq_cell_codec)how->codec, rq_buf_slice(cells), &coded) != RQ_OK)
        rq_buf_reset(&coded);
    const rq_compressor *c =
        how->compressor_class == NULL ? NULL : rq__compressor_find(how->compressor_class);
    if (once_in(r, 40)) draw_damage(r, &coded);
    if (once_in(r, 60)) lie(r, &coded);
    if (bomb && c != NULL) arm(r, &coded);
    if (c == NULL)
        put(out, coded.ptr, coded.len);
    else
        (void)!rq__compressor_pack(c, rq_buf_slice(&coded), out); /* on an error, only some bytes */
    if (once_in(r, 40)) draw_damage(r, out);
    rq_buf_clear(&coded);
}

static bool put_request_header(rq_random *r, uint32_t call_id, const plan_method *method,
                               const rq_buf *block, rq_buf *out)
{
    rq_buf header = {0}, meta = {0};
    put_number_field(&header, 1, call_id);
    put_text_field(&header, 3, method->name);
    put_number_field(&header, 4, 1);
    if (block->len > 0) {
        put_number_field(&meta, 1, once_in(r, 100) ? draw_number(r) & UINT32_MAX : block->len);
        put_delimited(&header, 5, &meta);
    }
    if (chance(r, 10)) put_number_field(&header, 6, draw_number(r) & UINT32_MAX);
    bool hurries = once_in(r, 20);
    if (hurries) put_number_field(&header, 7, draw_number(r) & UINT32_MAX);
    put_message(out, &header);
    rq_buf_clear(&header);
    rq_buf_clear(&meta);
    return !hurries;
}

bool peer_frame(const plan_life *how, rq_random *r, uint32_t call_id, const plan_method *method,
                const rq_buf *message, const rq_buf *cells, bool bomb, rq_buf *out)
{
    rq_buf block = {0};
    size_t at = begin_frame(out);
    if (cells->len > 0 || bomb) encode_cells(how, r, cells, bomb, &block);
    bool due = put_request_header(r, call_id, method, &block, out);
    put_message(out, message);
    put(out, block.ptr, block.len);
    end_frame(out, at);
    rq_buf_clear(&block);
    return due;
}

static void put_version(bool old, rq_buf *header)
{
    rq_buf version = {0};
    put_text_field(&version, 1, old ? "1.2.0" : "2.6.1");
    for (unsigned i = 2; i <= 6; i++)
        put_text_field(&version, i, "x");
    if (!old) {
        put_number_field(&version, 7, 2);
        put_number_field(&version, 8, 6);
    }
    put_delimited(header, 5, &version);
    rq_buf_clear(&version);
}

static void say_hello(peer *p, rq_random *r)
{
    static const uint8_t preamble[] = {'H', 'B', 'a', 's', 0, 0x50};
    const plan_life *how = &p->how;
    rq_buf header = {0}, user = {0}, name = {0};
    put(&p->out, preamble, sizeof preamble);
    size_t at = begin_frame(&p->out);
    if (how->odd_header) {
        rq_buf odd = {0};
        world nothing = {.region_count = 0};
        maker m = {.r = *r, .world = &nothing};
        make_message(&m, &pb__connection_header__descriptor, &odd);
        put(&header, odd.ptr, odd.len);
        rq_buf_clear(&odd);
        rq_cellblock_clear(&m.cells);
        p->broken = true;
    }
    must(rq_buf_reserve(&name, how->user_len));
    if (how->user_len > 0) memset(name.ptr, 'u', how->user_len);
    name.len = how->user_len;
    put_delimited(&user, 1, &name);
    put_delimited(&header, 1, &user);
    put_text_field(&header, 2, how->service);
    if (how->codec_class != NULL) put_text_field(&header, 3, how->codec_class);
    if (how->compressor_class != NULL) put_text_field(&header, 4, how->compressor_class);
    put_version(how->old_client, &header);
    put(&p->out, header.ptr, header.len);
    end_frame(&p->out, at);
    rq_buf_clear(&header);
    rq_buf_clear(&user);
    rq_buf_clear(&name);
}

/* ---- ZooKeeper */

static void zookeeper_hello(peer *p, rq_random *r)
{
    size_t at = begin_frame(&p->out);
    p->broken = once_in(r, 10); /* a session that does not exist, which the server ends at once */
    must(rq_buf_append_be32(&p->out, 0));
    must(rq_buf_append_be64(&p->out, p->broken ? draw_number(r) : 0));
    must(rq_buf_append_be32(&p->out, 30000));
    must(rq_buf_append_be64(&p->out, p->broken ? draw_number(r) : 0));
    must(rq_buf_append_be32(&p->out, 16));
    for (int i = 0; i < 17; i++)
        must(rq_buf_append_u8(&p->out, 0));
    end_frame(&p->out, at);
}

static void draw_znode(rq_random *r, rq_buf *out)
{
    static const char *const nodes[] = {"/hbase",
                                        "/hbase/hbaseid",
                                        "/hbase/master",
                                        "/hbase/meta-region-server",
                                        "/hbase/rs",
                                        "/",
                                        "/hbase/table",
                                        "/hbase/table/fz0",
                                        "/hbase/table/by:watch",
                                        "/hbase/namespace",
                                        "/hbase/running",
                                        "/zookeeper",
                                        "/hbase/no",
                                        "",
                                        "hbase",
                                        "/hbase/",
                                        "//",
                                        "/hbase/../x",
                                        "/hbase/rs/x"};
    rq_buf path = {0};
    put_text(&path, nodes[rq_random_below(r, RQ_ARRAY_LEN(nodes))]);
    if (once_in(r, 8)) draw_row(r, &path);
    must(rq_buf_append_be32(out, (uint32_t)path.len));
    put(out, path.ptr, path.len);
    rq_buf_clear(&path);
}

static void put_znodes(rq_random *r, rq_buf *out)
{
    for (int list = 0; list < 3; list++) {
        unsigned count = once_in(r, 10) ? 5000 : draw_count(r);
        must(rq_buf_append_be32(out, count));
        while (count-- > 0)
            draw_znode(r, out);
    }
}

bool zookeeper_frame(rq_random *r, uint32_t call_id, rq_buf *out)
{
    static const int32_t ops[] = {RQ__ZK_EXISTS,
                                  RQ__ZK_GET_DATA,
                                  RQ__ZK_GET_CHILDREN,
                                  RQ__ZK_GET_CHILDREN2,
                                  RQ__ZK_PING,
                                  RQ__ZK_SET_WATCHES,
                                  RQ__ZK_SET_WATCHES2,
                                  RQ__ZK_CREATE,
                                  RQ__ZK_DELETE,
                                  RQ__ZK_SET_DATA,
                                  RQ__ZK_GET_ACL,
                                  RQ__ZK_SYNC,
                                  RQ__ZK_AUTH,
                                  14,
                                  9999};
    int32_t op = ops[rq_random_below(r, chance(r, 60) ? 4 : RQ_ARRAY_LEN(ops))];
    size_t at = begin_frame(out);
    must(rq_buf_append_be32(out, call_id));
    must(rq_buf_append_be32(out, (uint32_t)op));
    if (op == RQ__ZK_SET_WATCHES || op == RQ__ZK_SET_WATCHES2) {
        must(rq_buf_append_be64(out, draw_number(r)));
        put_znodes(r, out);
    } else if (op != RQ__ZK_PING) {
        draw_znode(r, out);
        must(rq_buf_append_u8(out, (uint8_t)rq_random_below(r, 2)));
    }
    end_frame(out, at);
    return op == RQ__ZK_EXISTS || op == RQ__ZK_GET_DATA || op == RQ__ZK_GET_CHILDREN ||
           op == RQ__ZK_GET_CHILDREN2;
}

/* ---- sockets */

void peer_close(peer *p)
{
    if (p->fd >= 0) close(p->fd);
    p->fd = -1;
    while (p->crowd_count > 0)
        close(p->crowd[--p->crowd_count]);
    rq_buf_clear(&p->out);
    rq_buf_clear(&p->in);
    p->out_at = 0;
    p->call_count = p->due = 0;
}

/* Opens further connections with the same header, which stay idle. */
static void gather_crowd(peer *p, const struct sockaddr_in *address)
{
    while (p->crowd_count < p->how.crowd) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0) return;
        p->crowd[p->crowd_count++] = fd;
        if (connect(fd, (const struct sockaddr *)address, sizeof *address) != 0) return;
        (void)!send(fd, p->out.ptr, p->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
}

void peer_open(peer *p, const struct sockaddr_in *address, const plan_life *how, uint64_t life,
               rq_random *r, int64_t now_ms)
{
    int on = 1;
    int small = 4096;
    peer_close(p);
    p->how = *how;
    p->life = life;
    p->opened_ms = p->read_ms = p->drained_ms = now_ms;
    p->broken = p->connected = false;
    p->received = 0;
    p->problem[0] = '\0';
    p->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    RQ_ASSERT(p->fd >= 0);
    if (how->temper == NEVER_READS || how->temper == READS_SLOWLY)
        setsockopt(p->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    if (connect(p->fd, (const struct sockaddr *)address, sizeof *address) != 0 &&
        errno != EINPROGRESS)
        found(p, "cannot connect: %s", strerror(errno));
    setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (how->service == NULL)
        zookeeper_hello(p, r);
    else
        say_hello(p, r);
    gather_crowd(p, address);
}

static void closed_by_server(peer *p, int64_t now_ms)
{
    /* Peers that do not read, and peers that send invalid requests, may be disconnected. */
    bool is_behind = now_ms > p->drained_ms + BEHIND_MS;
    if (p->how.temper == READS && !p->broken && !is_behind && p->due > 0)
        found(p, "the server closed a connection with %zu calls under way, %s first", p->call_count,
              p->calls[0].method == NULL ? "ZooKeeper's" : p->calls[0].method->name);
    close(p->fd);
    p->fd = -1;
    p->call_count = p->due = 0;
}

/* The server's reason for closing may be unread: peer_read() judges the end of the connection. */
static void write_failed(peer *p, int64_t now_ms)
{
    rq_buf_reset(&p->out);
    p->out_at = 0;
    if (p->how.temper != READS) closed_by_server(p, now_ms);
}

void peer_write(peer *p, int64_t now_ms)
{
    while (p->fd >= 0 && p->out_at < p->out.len) {
        ssize_t n = send(p->fd, p->out.ptr + p->out_at, p->out.len - p->out_at, MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == ENOTCONN || errno == EINTR)) return;
        if (n < 0) {
            write_failed(p, now_ms);
            return;
        }
        p->out_at += (size_t)n;
    }
    rq_buf_reset(&p->out);
    p->out_at = 0;
}

void peer_send(peer *p, const peer_call *call, const rq_buf *frame)
{
    if (p->fd < 0) return;
    put(&p->out, frame->ptr, frame->len);
    if (p->call_count == p->call_room) {
        p->call_room = p->call_room == 0 ? 64 : 2 * p->call_room;
        p->calls = realloc(p->calls, p->call_room * sizeof *p->calls);
        RQ_ASSERT(p->calls != NULL);
    }
    p->calls[p->call_count++] = *call;
    p->due += !call->optional;
}

bool peer_wants(const peer *p, int64_t now_ms)
{
    if (p->fd < 0 || p->how.temper == NEVER_READS) return false;
    return p->how.temper != READS_LATE || now_ms > p->opened_ms + LATE_MS;
}

const peer_call *peer_oldest(const peer *p)
{
    if (p->fd < 0 || p->broken || p->due == 0 || p->how.temper != READS) return NULL;
    if (p->received > ENOUGH) return NULL;
    size_t i = 0;
    while (p->calls[i].optional)
        i++;
    return &p->calls[i];
}

/* ---- answers */

static void note_time(peer *p, const peer_call *call)
{
    if (p->read_ms - call->sent_ms <= p->longest_ms) return;
    p->longest_ms = p->read_ms - call->sent_ms;
    p->longest = call->method;
}

static bool take_call(peer *p, uint32_t id, peer_call *ret)
{
    for (size_t i = 0; i < p->call_count; i++) {
        if (p->calls[i].id != id) continue;
        *ret = p->calls[i];
        note_time(p, ret);
        memmove(p->calls + i, p->calls + i + 1, (p->call_count - i - 1) * sizeof *p->calls);
        p->call_count--;
        p->due -= !ret->optional;
        return true;
    }
    return false;
}

/* Number of cells in a block; -1: the block is invalid. */
static int64_t count_cells(const peer *p, rq_slice block)
{
    rq_buf raw = {0};
    rq_cellblock native = {0};
    rq_error why = {0};
    rq_cell cell;
    int64_t count = 0;
    const rq_compressor *c =
        p->how.compressor_class == NULL ? NULL : rq__compressor_find(p->how.compressor_class);
    if (c != NULL && rq__compressor_unpack(c, block, CELLS_MAX, &raw, &why) != RQ_OK) count = -1;
    if (c != NULL) block = rq_buf_slice(&raw);
    native.with_tags = true;
    if (count == 0 && !rq__cell_codec_is_native((rq_cell_codec)p->how.codec)) {
        if (rq__cell_codec_decode((rq_cell_codec)p->how.codec, block, &native, &why) != RQ_OK)
            count = -1;
        block = rq_buf_slice(&native.bytes);
    }
    rq_cursor cursor = rq_cursor_of(block);
    rq_err rc = RQ_OK;
    while (count >= 0 && (rc = rq_cellblock_next(&cursor, &cell, NULL)) == RQ_OK)
        count++;
    rq_buf_clear(&raw);
    rq_cellblock_clear(&native);
    return rc == RQ_E_END ? count : -1;
}

static uint64_t announced(const Pb__ScanResponse *r)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < r->n_cells_per_result; i++)
        sum += r->cells_per_result[i];
    return sum;
}

static void check_block(peer *p, const peer_call *call, const ProtobufCMessage *m, rq_slice block)
{
    if (block.len == 0) return;
    int64_t count = count_cells(p, block);
    if (count < 0) {
        found(p, "the cell block of %zu bytes that answers %s is none", block.len,
              call->method->name);
    } else if (m->descriptor == &pb__scan_response__descriptor &&
               announced((const Pb__ScanResponse *)m) != (uint64_t)count) {
        found(p, "a scan's answer has %lld cells and says %llu", (long long)count,
              (unsigned long long)announced((const Pb__ScanResponse *)m));
    }
}

static void learn(world *w, const peer_call *call, const ProtobufCMessage *m)
{
    const ProtobufCFieldDescriptor *f =
        protobuf_c_message_descriptor_get_field_by_name(m->descriptor, "proc_id");
    if (f != NULL && f->type == PROTOBUF_C_TYPE_UINT64 && f->label != PROTOBUF_C_LABEL_REPEATED)
        world_learn_procedure(w, *(const uint64_t *)(const void *)((const char *)m + f->offset));
    if (m->descriptor != &pb__scan_response__descriptor) return;
    const Pb__ScanResponse *scan = (const Pb__ScanResponse *)m;
    if (scan->has_scanner_id) world_learn_scanner(w, call->number, scan->scanner_id);
}

static void read_result(peer *p, world *w, const peer_call *call, rq_slice message, rq_slice block)
{
    ProtobufCMessage *m =
        protobuf_c_message_unpack(call->method->response, NULL, message.len, message.ptr);
    if (m == NULL) {
        found(p, "the answer to %s is no %s", call->method->name,
              call->method->response->short_name);
        return;
    }
    check_block(p, call, m, block);
    if (call->number == CONTROL && m->descriptor == &pb__scan_response__descriptor)
        world_learn_regions(w, message);
    learn(w, call, m);
    protobuf_c_message_free_unpacked(m, NULL);
}

static bool read_delimited(rq_cursor *c, rq_slice *ret)
{
    uint64_t len;
    return rq_cursor_varint(c, &len) && len <= rq_cursor_left(c) && rq_cursor_bytes(c, len, ret);
}

static void read_refusal(peer *p, const peer_call *call, const Pb__ExceptionResponse *e)
{
    if (e->exception_class_name == NULL) {
        found(p, "an exception without a class");
        return;
    }
    if (p->log == NULL) return;
    const char *text = e->stack_trace == NULL ? "" : e->stack_trace;
    fprintf(p->log, "refused %llu %s: %.*s\n", (unsigned long long)call->number, call->method->name,
            (int)strcspn(text, "\n") < 300 ? (int)strcspn(text, "\n") : 300, text);
}

static void read_answer(peer *p, world *w, rq_slice frame)
{
    rq_cursor c = rq_cursor_of(frame);
    rq_slice head = {0}, message = {0}, block = {0};
    peer_call call;
    Pb__ResponseHeader *header = NULL;
    if (read_delimited(&c, &head)) header = pb__response_header__unpack(NULL, head.len, head.ptr);
    if (header == NULL) {
        found(p, "an answer of %zu bytes without a header", frame.len);
        return;
    }
    size_t block_len = header->cell_block_meta == NULL ? 0 : header->cell_block_meta->length;
    p->answers++;
    p->refusals += header->exception != NULL;
    if (header->call_id == NO_CALL) {
        /* The server states its reason for closing. */
        p->broken = true;
    } else if (!take_call(p, header->call_id, &call)) {
        if (!p->broken) found(p, "an answer to call %u, which nobody made", header->call_id);
    } else if (header->exception != NULL) {
        read_refusal(p, &call, header->exception);
    } else if (!read_delimited(&c, &message) || rq_cursor_left(&c) != block_len ||
               !rq_cursor_bytes(&c, block_len, &block)) {
        found(p, "the answer to %s does not fit its frame", call.method->name);
    } else {
        read_result(p, w, &call, message, block);
    }
    pb__response_header__free_unpacked(header, NULL);
}

static void read_zookeeper(peer *p, rq_slice frame)
{
    peer_call call;
    if (!p->connected) {
        p->connected = true;
        return;
    }
    if (frame.len < 16) {
        found(p, "ZooKeeper's answer has %zu bytes", frame.len);
        return;
    }
    (void)take_call(p, rq_get_be32(frame.ptr), &call); /* a response or an event */
    p->answers++;
}

static size_t read_frames(peer *p, world *w)
{
    size_t at = 0;
    while (p->fd >= 0 && p->in.len - at >= 4) {
        size_t len = rq_get_be32(p->in.ptr + at);
        if (len > ANSWER_MAX) {
            found(p, "an answer of %zu bytes is announced", len);
            return at;
        }
        if (p->in.len - at - 4 < len) break;
        rq_slice frame = rq_slice_of(p->in.ptr + at + 4, len);
        if (p->how.service == NULL)
            read_zookeeper(p, frame);
        else
            read_answer(p, w, frame);
        at += 4 + len;
    }
    return at;
}

void peer_read(peer *p, world *w, int64_t now_ms)
{
    bool slow = p->how.temper == READS_SLOWLY;
    size_t most = slow ? SLOW_READ : READ_MAX;
    must(rq_buf_reserve(&p->in, most));
    ssize_t n = recv(p->fd, p->in.ptr + p->in.len, most, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) {
        closed_by_server(p, now_ms);
        return;
    }
    p->read_ms = now_ms;
    if ((size_t)n < most) p->drained_ms = now_ms; /* these were all; poll may never find none */
    p->in.len += (size_t)n;
    p->received += (uint64_t)n;
    size_t used = read_frames(p, w);
    memmove(p->in.ptr, p->in.ptr + used, p->in.len - used);
    p->in.len -= used;
}
