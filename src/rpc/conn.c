/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One client's connection.
 *
 *   PREAMBLE ─ "HBas" 0 0x50 ─► HEADER ─ ConnectionHeader ─► OPEN ─ requests …
 *      │ "Regist": the cluster id, then closed     │             │
 *      │ "Securi": not enabled; another preamble,  │             │
 *      │           up to SECURITY_PREAMBLES_MAX    │             │
 *      └── anything else ──► DEAD ◄── unknown service or codec ──┴── malformed or too big
 *
 * Rules
 *  (1) A connection is not read while its client leaves too many responses unread, has too many
 *      calls in flight, or the budget of request bytes is used up.
 *  (2) Frames that were received already wait in the input while a connection is blocked.
 *  (3) Where HBase responds before it closes, so does this server. Where HBase closes silently
 *      (HBASE: NettyRpcServerRequestDecoder.exceptionCaught) for an unknown service or codec, this
 *      server first gives the reason with call id -1, which every client treats as fatal. Malformed
 *      frames close silently.
 */
#include "base/pb.h"
#include "net/answers.h"
#include "proto/registry.pb-c.h"
#include "rpc/rpc_priv.h"

#include <stdio.h>
#include <stdlib.h>

#define HB "org.apache.hadoop.hbase."
/* How much of a refused frame is read for its header. */
#define TOO_BIG_HEAD_MAX ((size_t)64 * 1024)
/* The sender is not known yet. */
#define HEADER_BYTES_MAX ((size_t)64 * 1024)
#define HEADER_ARENA_MAX ((size_t)1024 * 1024)
/* Limit of the names and version that a connection keeps; beyond STRINGS_FREE they are charged to
 * the budget of requests. Usual names are shorter than 300 bytes. */
#define STRINGS_MAX ((size_t)16 * 1024)
#define STRINGS_FREE ((size_t)512)
/* While others wait for memory, a connection is dropped if in this time it receives neither the end of a frame nor one
 * STALL_PARTS of it. So nobody holds memory by sending a byte now and then. */
#define STALL_NS (10 * 1000000000ull)
#define STALL_PARTS 32
/* Then bytes that wait in the socket are read first: the loop itself may have paused. */
#define STALL_GRACE_NS (1000000000ull)
/* When stopping, longest wait for a peer that reads slowly. */
#define STOP_SLOW_NS (2 * 1000000000ull)
/* How long a connection counts as heavy after a large response. */
#define HEAVY_NS 1000000000ull
/* A connection also counts as heavy while its score of long calls is at least HEAVY_SCORE. A long
 * call adds HEAVY_SCORE, up to HEAVY_SCORE_MAX; a short one subtracts 1. So one long call among
 * short ones, which may be a short call during which the thread did not run, has no effect for
 * long. */
#define LONG_CALL_NS 100000 /* several times the time of a get or put */
#define HEAVY_SCORE 16
#define HEAVY_SCORE_MAX 64
/* In a long iteration, a connection with short calls runs them for this time and then waits for its turn: many short
 * calls that arrived together hold the loop as a long call does. */
#define SLICE_NS 500000
/* When an iteration has lasted this long, every connection waits for its turn: there may be thousands of connections,
 * each with a slice. */
#define LATE_NS ((uint64_t)4 * RQ_TURN_NS)
#define AHEAD_MAX 16 /* frames of one read that the service learns of at once */
/* Most preambles of a connection that ask for security; a client sends one. Each of them costs an answer
 * many times its length. */
#define SECURITY_PREAMBLES_MAX 8
#define SWITCH_TO_SIMPLE ((uint32_t)-88) /* HBASE: SaslUtil.SWITCH_TO_SIMPLE_AUTH */

static const rq_rpc_server *server_of(const rq_rpc_conn *conn)
{
    return conn->worker->server;
}

void rq__conn_unref(rq_rpc_conn *conn)
{
    if (--conn->refs > 0) return;
    rq_budget_give(server_of(conn)->options.budget, conn->strings_charged);
    free(conn->strings);
    free(conn);
}

/* --- refusing --------------------------------------------------------------------------------- */

RQ_COLD static void refused(rq_rpc_conn *conn, const char *why)
{
    const rq_log *log = server_of(conn)->options.log;
    conn->state = RQ_CONN_DEAD;
    rq__counter_add(&conn->worker->counters.refused, 1);
    rq_log_write_limited(log, &conn->worker->refused_lines, RQ_LOG_WARN, "rpc",
                         "connection from %s closed: %s",
                         RQ_HOST_PORT(conn->client.host, conn->client.port), why);
}

/* Closes without an answer. */
RQ_COLD static void cut_off(rq_rpc_conn *conn, const char *why)
{
    refused(conn, why);
    rq_stream_finish(conn->stream);
}

RQ_COLD static void send_exception(rq_rpc_conn *conn, uint32_t call_id, const char *java_class,
                                   bool do_not_retry, const char *text)
{
    rq_rpc_exception e = {.java_class = java_class, .message = text, .do_not_retry = do_not_retry};
    rq_err rc = rq__response_exception(rq_stream_out(conn->stream), call_id, &e, text);
    if (rc == RQ_OK)
        rq_stream_written(conn->stream);
    else
        rq_stream_close(conn->stream, rc);
    rq__worker_count_error(conn->worker, java_class);
}

/* Answers with a fatal exception and closes. */
RQ_COLD static void fatal(rq_rpc_conn *conn, const char *java_class, const char *text)
{
    send_exception(conn, RQ_CALL_ID_NONE, java_class, true, text);
    cut_off(conn, text);
}

/* --- preamble --------------------------------------------------------------------------------- */

RQ_COLD static void answer_registry(rq_rpc_conn *conn)
{
    Pb__GetConnectionRegistryResponse r = PB__GET_CONNECTION_REGISTRY_RESPONSE__INIT;
    r.cluster_id = server_of(conn)->cluster_id;
    rq_err rc = rq__response_message(rq_stream_out(conn->stream), RQ_CALL_ID_NONE, &r.base);
    conn->state = RQ_CONN_DEAD;
    if (rc != RQ_OK) {
        rq_stream_close(conn->stream, rc);
        return;
    }
    rq_stream_written(conn->stream);
    rq_stream_finish(conn->stream);
}

/* A client that wants SASL from a server without security is told to continue without. Its first
 * token, a frame, is skipped. HBASE: ServerRpcConnection.processPreamble. */
RQ_COLD static void switch_to_simple(rq_rpc_conn *conn)
{
    uint8_t reply[8];
    rq_put_be32(reply, 0); /* SaslStatus.SUCCESS */
    rq_put_be32(reply + 4, SWITCH_TO_SIMPLE);
    rq_err rc = rq_stream_write(conn->stream, reply, sizeof reply);
    if (rc != RQ_OK) rq_stream_close(conn->stream, rc);
    conn->skip_frames = 1;
}

RQ_COLD static void bad_version(rq_rpc_conn *conn, const char *java_class, const uint8_t *p)
{
    char text[256];
    snprintf(text, sizeof text,
             "serverVersion=%d, clientVersion=%u, authMethod=%d, authName=unknown from %s",
             RQ_PROTOCOL_VERSION, p[4], (int8_t)p[5],
             RQ_HOST_PORT(conn->client.host, conn->client.port));
    fatal(conn, java_class, text);
}

RQ_COLD static void bad_magic(rq_rpc_conn *conn, const uint8_t *p)
{
    char got[32];
    char text[256];
    rq_bytes_to_string(rq_slice_of(p, 4), got, sizeof got);
    snprintf(text, sizeof text, "Expected HEADER=HBas but received HEADER=%s from %s", got,
             RQ_HOST_PORT(conn->client.host, conn->client.port));
    fatal(conn, HB "ipc.FatalConnectionException", text);
}

RQ_COLD static void no_security(rq_rpc_conn *conn)
{
    if (++conn->security_preambles > SECURITY_PREAMBLES_MAX)
        fatal(conn, HB "ipc.FatalConnectionException", "too many requests for security");
    else
        send_exception(conn, RQ_CALL_ID_NONE, HB "ipc.SecurityNotEnabledException", false,
                       "security is not enabled");
}

RQ_COLD static bool step_preamble(rq_rpc_conn *conn)
{
    rq_slice bytes = rq_input_peek(&conn->input);
    if (bytes.len < RQ_PREAMBLE_LEN) return false;
    const uint8_t *p = bytes.ptr;
    rq_input_consume(&conn->input, RQ_PREAMBLE_LEN);
    conn->stall_ns = 0;
    if (memcmp(p, "Regist", 6) == 0 && server_of(conn)->cluster_id != NULL) {
        answer_registry(conn);
    } else if (memcmp(p, "Securi", 6) == 0) {
        no_security(conn);
    } else if (memcmp(p, "HBas", 4) != 0) {
        bad_magic(conn, p);
    } else if (p[4] != RQ_PROTOCOL_VERSION) {
        bad_version(conn, HB "ipc.WrongVersionException", p);
    } else if (p[5] < RQ_AUTH_SIMPLE || p[5] > RQ_AUTH_DIGEST) {
        bad_version(conn, HB "ipc.BadAuthException", p);
    } else {
        if (p[5] != RQ_AUTH_SIMPLE) switch_to_simple(conn);
        conn->state = RQ_CONN_HEADER;
        conn->input.never_big = false;
    }
    return conn->state != RQ_CONN_DEAD;
}

/* --- connection header ------------------------------------------------------------------------ */

/* Parses major and minor of "2.6.1" or "3.0.0-beta-1"; 0, 0 for other texts. HBASE:
 * VersionInfoUtil, for clients that send only the text. */
RQ_COLD static void parse_version(const char *text, rq_rpc_client *c)
{
    unsigned major = 0, minor = 0;
    if (sscanf(text, "%u.%u", &major, &minor) < 1) return;
    c->version_major = major;
    c->version_minor = minor;
}

RQ_COLD static char *put_string(char **at, const char *text)
{
    size_t len = strlen(text) + 1;
    char *p = memcpy(*at, text, len);
    *at += len;
    return p;
}

/* With their ends. */
RQ_COLD static size_t strings_of(const Pb__ConnectionHeader *h)
{
    const Pb__UserInformation *u = h->user_info;
    size_t bytes = u != NULL ? strlen(u->effective_user) + 1 : 1;
    if (u != NULL && u->real_user != NULL) bytes += strlen(u->real_user) + 1;
    if (h->version_info != NULL) bytes += strlen(h->version_info->version) + 1;
    return bytes;
}

RQ_COLD static rq_err refuse_names(rq_rpc_conn *conn, size_t bytes)
{
    char text[160];
    if (bytes > STRINGS_MAX)
        snprintf(text, sizeof text,
                 "the names of users and the version in the connection header have %zu bytes, more "
                 "than %zu",
                 bytes, STRINGS_MAX);
    else
        snprintf(text, sizeof text, "there is no memory for the connection's names");
    fatal(conn, HB "ipc.FatalConnectionException", text);
    return RQ_E_REQUEST_TOO_BIG;
}

/* Copies the parts of the header that are needed later: the connection keeps no arena. */
RQ_COLD static rq_err keep_client(rq_rpc_conn *conn, const Pb__ConnectionHeader *h)
{
    rq_rpc_client *c = &conn->client;
    const char *user = h->user_info != NULL ? h->user_info->effective_user : "";
    const char *real = h->user_info != NULL ? h->user_info->real_user : NULL;
    const char *version = h->version_info != NULL ? h->version_info->version : NULL;
    size_t bytes = strings_of(h);
    size_t charged = bytes > STRINGS_FREE ? bytes : 0;
    if (bytes > STRINGS_MAX ||
        (charged > 0 && !rq_budget_try(server_of(conn)->options.budget, charged)))
        return refuse_names(conn, bytes);
    conn->strings_charged = charged;
    char *at = malloc(bytes);
    if (at == NULL) return RQ_E_NO_MEMORY;
    conn->strings = at;
    c->user = put_string(&at, user);
    c->user_len = strlen(user);
    c->real_user = real != NULL ? put_string(&at, real) : NULL;
    c->version = version != NULL ? put_string(&at, version) : NULL;
    c->service = conn->service->service.name;
    c->has_codec = conn->codec != RQ_CODEC_NONE;
    c->codec_with_tags = rq__cell_codec_has_tags(conn->codec);
    if (version == NULL) return RQ_OK;
    if (h->version_info->has_version_major && h->version_info->has_version_minor) {
        c->version_major = h->version_info->version_major;
        c->version_minor = h->version_info->version_minor;
    } else {
        parse_version(version, c);
    }
    c->retry_immediately = rq_rpc_client_at_least(c, 1, 2);
    return RQ_OK;
}

/* False: the client has the reason. */
RQ_COLD static bool choose_compressor(rq_rpc_conn *conn, const char *java_class)
{
    rq_error missing = {0};
    conn->compressor = rq__compressor_find(java_class);
    if (conn->compressor != NULL && rq__compressor_check(conn->compressor, &missing) == RQ_OK)
        return true;
    fatal(conn, HB "ipc.UnsupportedCompressionCodecException",
          conn->compressor == NULL ? java_class : missing.message);
    return false;
}

RQ_COLD static void open_with(rq_rpc_conn *conn, const Pb__ConnectionHeader *h)
{
    const char *service = h->service_name != NULL ? h->service_name : "";
    const char *codec = h->cell_block_codec_class;
    const char *compressor = h->cell_block_compressor_class;
    conn->service = rq__server_service(server_of(conn), service);
    if (conn->service == NULL) {
        fatal(conn, HB "ipc.UnknownServiceException", service);
        return;
    }
    if (codec != NULL && codec[0] != '\0') {
        if (!rq__cell_codec_find(codec, &conn->codec)) {
            fatal(conn, HB "ipc.UnsupportedCellCodecException", codec);
            return;
        }
        /* Without a codec the compressor is ignored. */
        if (compressor != NULL && !choose_compressor(conn, compressor)) return;
    }
    rq_err rc = keep_client(conn, h);
    if (conn->state == RQ_CONN_DEAD) return; /* it has got the reason */
    if (rc != RQ_OK) {
        rq_stream_close(conn->stream, rc);
        conn->state = RQ_CONN_DEAD;
        return;
    }
    conn->state = RQ_CONN_OPEN;
    if (conn->service->service.answers_always) rq_stream_answers_always(conn->stream, true);
    rq_stream_named(conn->stream);
    conn->input.frame_max = server_of(conn)->options.request_bytes_max;
}

static void *limited_alloc(void *data, size_t size)
{
    rq_arena *arena = data;
    if (size > HEADER_ARENA_MAX || arena->total_bytes > HEADER_ARENA_MAX) return NULL;
    return rq_arena_alloc(arena, size);
}

static void no_free(void *data, void *pointer)
{
    (void)data;
    (void)pointer;
}

RQ_COLD static void frame_header(rq_rpc_conn *conn, rq_slice bytes)
{
    rq_arena arena;
    rq_arena_init(&arena);
    ProtobufCAllocator allocator = {limited_alloc, no_free, &arena};
    Pb__ConnectionHeader *h = pb__connection_header__unpack(&allocator, bytes.len, bytes.ptr);
    if (h != NULL)
        open_with(conn, h);
    else
        cut_off(conn, "malformed connection header");
    rq_arena_clear(&arena);
}

/* --- frames ----------------------------------------------------------------------------------- */

/* The answer to a frame above the limit needs its call id: continues reading until the header is
 * there. HBASE: NettyRpcFrameDecoder.handleTooBigRequest. */
RQ_COLD static bool too_big(rq_rpc_conn *conn, rq_slice front, size_t len)
{
    char text[320];
    if (conn->state != RQ_CONN_OPEN) {
        snprintf(text, sizeof text, "connection header of %zu bytes, more than %zu", len,
                 HEADER_BYTES_MAX);
        fatal(conn, HB "ipc.FatalConnectionException", text);
        return false;
    }
    snprintf(text, sizeof text,
             "RPC data length of %zu received from %s is greater than max allowed %zu. Set "
             "\"hbase.ipc.max.request.size\" on server to override this limit (not recommended)",
             len, conn->client.host, server_of(conn)->options.request_bytes_max);
    rq_cursor c = rq_cursor_of(front);
    rq_request_head head;
    if (rq__request_head_parse(&c, &head)) {
        bool knows = rq_rpc_client_at_least(&conn->client, 1, 3);
        send_exception(conn, head.call_id,
                       knows ? HB "exceptions.RequestTooBigException" : HB "DoNotRetryIOException",
                       true, text);
        cut_off(conn, text);
    } else if (front.len >= TOO_BIG_HEAD_MAX) {
        cut_off(conn, text);
    }
    conn->input.never_big = true;
    return false;
}

static void look_ahead(rq_rpc_conn *conn);

static bool step_frame(rq_rpc_conn *conn)
{
    if (conn->state == RQ_CONN_OPEN && conn->ahead == 0 && conn->service->service.expect != NULL)
        look_ahead(conn);
    rq_slice bytes;
    rq_chunk *owner;
    size_t len;
    switch (rq_input_frame(&conn->input, &bytes, &owner, &len)) {
    case RQ_FRAME_MORE:
        return false;
    case RQ_FRAME_TOO_BIG:
        return too_big(conn, bytes, len);
    case RQ_FRAME_WHOLE:
        break;
    }
    if (conn->state == RQ_CONN_OPEN) {
        if (conn->ahead > 0) conn->ahead--;
        if (!rq__call_run(conn, bytes, owner))
            cut_off(conn, "malformed request header, or out of memory");
        return conn->state != RQ_CONN_DEAD;
    }
    if (conn->skip_frames > 0)
        conn->skip_frames--;
    else
        frame_header(conn, bytes);
    rq_chunk_unref(owner);
    return conn->state != RQ_CONN_DEAD;
}

/* --- running and blocking --------------------------------------------------------------------- */

static bool alive(const rq_rpc_conn *conn)
{
    return conn->stream != NULL && conn->state != RQ_CONN_DEAD && !rq_stream_closing(conn->stream);
}

static void begin_stall(rq_rpc_conn *conn)
{
    conn->stall_ns = rq_loop_now_ns(conn->worker->loop) + STALL_NS;
    conn->stall_bytes = rq_input_held(&conn->input);
    conn->stalls = false;
}

/* The length of the frame that is being received, or the length up to which its beginning is read. */
static size_t wanted(const rq_rpc_conn *conn)
{
    size_t want = rq_input_want(&conn->input);
    return want > 0 ? want : TOO_BIG_HEAD_MAX;
}

/* The rest of a frame is missing, and the connection is read. */
static bool waits_for_rest(const rq_rpc_conn *conn)
{
    return conn->blocked == 0 && rq_input_partial(&conn->input) &&
           rq_input_held(&conn->input) < wanted(conn);
}

static void watch_for_stall(rq_rpc_conn *conn)
{
    uint64_t due = conn->unread.look_ns;
    if (!waits_for_rest(conn))
        conn->stall_ns = 0;
    else if (conn->stall_ns == 0)
        begin_stall(conn);
    if (conn->stall_ns != 0 && (due == 0 || conn->stall_ns < due)) due = conn->stall_ns;
    rq_stream_set_deadline(conn->stream, due);
}

/* Charges what the peer has not read yet. */
static void account_output(rq_rpc_conn *conn)
{
    uint64_t look_ns = conn->unread.look_ns;
    rq_unread_account(&conn->unread);
    if (RQ_UNLIKELY(look_ns != conn->unread.look_ns)) watch_for_stall(conn);
}

/* The bytes of responses that the connection may leave unread, or have in the making: few while
 * unread responses fill their budget. */
static size_t share_of(const rq_rpc_conn *conn)
{
    const rq_budget *unread = server_of(conn)->options.unread;
    bool full = unread != NULL && RQ_UNLIKELY(rq_budget_is_full(unread));
    if (!full) return server_of(conn)->share;
    return conn->first_waiting != NULL ? 0 : RQ_UNREAD_SMALL;
}

static size_t answers_of(const rq_rpc_conn *conn)
{
    size_t pending = rq_stream_out_pending(conn->stream);
    size_t owed = conn->unread.debt.owed;
    return conn->made + (pending > owed ? pending : owed);
}

/* Whether the stream is paused while the connection is blocked. It is not paused if the connection only waits for its
 * turn, which usually comes in the same iteration, because pausing and resuming cost system calls; if bytes arrive
 * before the turn, on_buffer pauses the stream. */
static bool stops_reading(const rq_rpc_conn *conn)
{
    return (conn->blocked & ~(unsigned)RQ_BLOCK_TURN) != 0;
}

static bool blocked(rq_rpc_conn *conn)
{
    if (conn->calls >= RQ_CONN_CALLS_MAX) conn->blocked |= RQ_BLOCK_CALLS;
    size_t answers = answers_of(conn);
    bool few = answers <= RQ_UNREAD_SMALL && conn->first_waiting == NULL; /* within any share */
    if (RQ_UNLIKELY(!few) && answers > share_of(conn)) conn->blocked |= RQ_BLOCK_OUTPUT;
    return conn->blocked != 0;
}

/* Tells the service about all frames of one read before the first of them runs. */
static void look_ahead(rq_rpc_conn *conn)
{
    rq_slice messages[AHEAD_MAX];
    size_t count = 0;
    rq_slice received = rq_input_peek(&conn->input);
    rq_cursor c = rq_cursor_of(received);
    uint32_t len;
    if (received.len > 4 && rq_get_be32(received.ptr) == received.len - 4) {
        conn->ahead = 1; /* one alone: no other is prepared meanwhile */
        return;
    }
    for (; conn->ahead < AHEAD_MAX && rq_cursor_be32(&c, &len); conn->ahead++) {
        rq_slice frame, head;
        if (!rq_cursor_bytes(&c, len, &frame)) break;
        rq_cursor request = rq_cursor_of(frame);
        if (rq_pb_delimited(&request, &head) && rq_pb_delimited(&request, &messages[count]))
            count++;
    }
    if (count > 1) conn->service->service.expect(conn->service->service.ctx, messages, count);
}

static void unblock(rq_rpc_conn *conn, unsigned reason, bool in_turn);

static void run_turn(rq_task *task)
{
    rq_rpc_conn *conn = RQ_CONTAINER_OF(task, rq_rpc_conn, turn);
    conn->deferred = false;
    conn->slice_ns = rq_loop_clock_ns();
    unblock(conn, RQ_BLOCK_TURN, true);
    rq__conn_unref(conn);
}

/* A call took `ns` on the loop, in an iteration that was already long. */
static void judge_call(rq_rpc_conn *conn, uint64_t ns)
{
    if (RQ_UNLIKELY(ns > LONG_CALL_NS))
        conn->long_calls = conn->long_calls + HEAVY_SCORE < HEAVY_SCORE_MAX
                               ? conn->long_calls + HEAVY_SCORE
                               : HEAVY_SCORE_MAX;
    else if (RQ_UNLIKELY(conn->long_calls > 0))
        conn->long_calls--;
}

static bool is_heavy(const rq_rpc_conn *conn)
{
    bool is_new = conn->last_method == NULL;
    return is_new || conn->long_calls >= HEAVY_SCORE ||
           rq_loop_now_ns(conn->worker->loop) <= conn->heavy_ns + HEAVY_NS;
}

/* Whether the connection may start calls in an iteration that is long at `now_ns`. A heavy connection may not. Another
 * one may for a slice, which begins with its first call in the long iteration or with its turn. */
RQ_COLD static bool has_slice(rq_rpc_conn *conn, uint64_t now_ns)
{
    uint64_t begun_ns = rq_loop_now_ns(conn->worker->loop);
    if (is_heavy(conn)) return false;
    if (conn->slice_ns >= begun_ns) return now_ns <= conn->slice_ns + SLICE_NS;
    if (now_ns > begun_ns + LATE_NS) return false;
    conn->slice_ns = now_ns;
    return true;
}

RQ_COLD static void wait_for_turn(rq_rpc_conn *conn)
{
    conn->blocked |= RQ_BLOCK_TURN;
    if (!conn->deferred) {
        conn->deferred = true;
        conn->refs++;
        rq_loop_defer(conn->worker->loop, &conn->turn);
    }
}

/* Handles the received frames until there are no more, the connection is blocked, or the iteration
 * is long enough. `in_turn`: the connection has waited for its turn. A call's time on the loop is measured from its
 * beginning to that of the next call; the clock is read at the end of the last call only. */
static void run(rq_rpc_conn *conn, bool in_turn)
{
    if (conn->running) return;
    conn->running = true;
    conn->refs++;             /* handlers may end the last call of a stream that has closed */
    uint64_t unjudged_ns = 0; /* when the last call began here, in a long iteration */
    bool more = true;
    while (more && alive(conn) && !blocked(conn)) {
        uint64_t begun_ns = conn->worker->begun_ns;
        bool late = rq_loop_turn_is_over(conn->worker->loop, begun_ns);
        if (RQ_UNLIKELY(late) && !in_turn && !has_slice(conn, begun_ns)) {
            wait_for_turn(conn);
            break;
        }
        in_turn = false;
        more = conn->state == RQ_CONN_PREAMBLE ? step_preamble(conn) : step_frame(conn);
        uint64_t next_ns = conn->worker->begun_ns;
        if (!late || next_ns == begun_ns) continue; /* no call was run */
        if (unjudged_ns != 0) judge_call(conn, next_ns - unjudged_ns);
        unjudged_ns = next_ns;
    }
    if (unjudged_ns != 0) judge_call(conn, rq_loop_clock_ns() - unjudged_ns);
    if (alive(conn)) {
        rq_err rc = rq_input_detach(&conn->input, &conn->worker->chunks);
        if (rc != RQ_OK)
            rq_stream_close(conn->stream, rc);
        else if (stops_reading(conn))
            rq_stream_pause(conn->stream);
        else if (rq_stream_paused(conn->stream))
            rq_stream_resume(conn->stream);
        watch_for_stall(conn);
    } else {
        rq_input_clear(&conn->input, server_of(conn)->options.budget);
    }
    conn->running = false;
    rq__conn_unref(conn);
}

static void unblock(rq_rpc_conn *conn, unsigned reason, bool in_turn)
{
    conn->blocked &= ~reason;
    if (conn->blocked == 0 && alive(conn)) run(conn, in_turn);
}

/* The blocking reasons that no longer hold; a call's end may have removed them. */
static unsigned removed_reasons(const rq_rpc_conn *conn)
{
    unsigned gone = 0;
    if (conn->calls <= RQ_CONN_CALLS_MAX / 2) gone |= RQ_BLOCK_CALLS;
    if (answers_of(conn) <= share_of(conn) / 2) gone |= RQ_BLOCK_OUTPUT;
    /* It waits as a connection with calls in flight, and is none any more. */
    if (conn->calls == 0 && conn->waiting && !conn->input.prompt) gone |= RQ_BLOCK_BUDGET;
    return gone & conn->blocked;
}

/* False: the waiter's task is posted and will release its reference. */
static bool forget_waiter(rq_rpc_conn *conn)
{
    if (!rq_budget_forget(server_of(conn)->options.budget, &conn->waiter)) return false;
    conn->waiting = false;
    return true;
}

static void run_resume(rq_task *task)
{
    rq_rpc_conn *conn = RQ_CONTAINER_OF(task, rq_rpc_conn, resume);
    conn->resuming = false;
    if (conn->stream != NULL) {
        unsigned gone = removed_reasons(conn);
        if ((gone & RQ_BLOCK_BUDGET) != 0 && forget_waiter(conn)) conn->refs--;
        unblock(conn, gone, false);
    }
    rq__conn_unref(conn);
}

void rq__conn_call_ended(rq_rpc_conn *conn)
{
    unsigned reasons = RQ_BLOCK_CALLS | RQ_BLOCK_OUTPUT | RQ_BLOCK_BUDGET;
    if (RQ_LIKELY((conn->blocked & reasons) == 0) || conn->resuming || conn->stream == NULL ||
        removed_reasons(conn) == 0)
        return;
    /* Not directly: the caller may be a handler that run() has called. */
    conn->resuming = true;
    conn->refs++;
    rq_lane_post(rq_loop_lane(conn->worker->loop), &conn->resume);
}

void rq__conn_output_queued(rq_rpc_conn *conn)
{
    if (RQ_UNLIKELY(answers_of(conn) > server_of(conn)->share)) conn->blocked |= RQ_BLOCK_OUTPUT;
    account_output(conn);
    if (stops_reading(conn) && !conn->running && alive(conn)) rq_stream_pause(conn->stream);
}

static void on_drain(rq_stream *s)
{
    rq_rpc_conn *conn = rq_stream_user(s);
    account_output(conn);
    if (conn->first_waiting != NULL && conn->unread.debt.owed <= server_of(conn)->share / 2)
        rq__answers_wake_one(conn);
    if ((conn->blocked & RQ_BLOCK_OUTPUT) != 0 && answers_of(conn) <= share_of(conn) / 2)
        unblock(conn, RQ_BLOCK_OUTPUT, false);
}

static void cut_off_debtor(rq_unread *u)
{
    rq_rpc_conn *conn = RQ_CONTAINER_OF(u, rq_rpc_conn, unread);
    if (alive(conn))
        refused(conn, "it does not read its responses, and they use all memory for responses");
    rq_stream_close(conn->stream, RQ_E_TIMEOUT);
}

static void debtor_released(rq_unread *u)
{
    rq__conn_unref(RQ_CONTAINER_OF(u, rq_rpc_conn, unread));
}

static void run_room(rq_task *task)
{
    rq_rpc_conn *conn = RQ_CONTAINER_OF(task, rq_rpc_conn, waiter.task);
    rq_budget *budget = server_of(conn)->options.budget;
    rq_budget_woken(budget, &conn->waiter);
    conn->waiting = false;
    unblock(conn, RQ_BLOCK_BUDGET, false);
    rq_budget_kick(budget);
    rq__conn_unref(conn);
}

RQ_COLD static void wait_for_room(rq_rpc_conn *conn)
{
    conn->blocked |= RQ_BLOCK_BUDGET;
    if (conn->waiting) return;
    conn->waiting = true;
    rq_input_need need = rq_input_needs(&conn->input);
    conn->waiter.prompt = need.prompt;
    conn->waiter.bytes = need.bytes;
    conn->refs++;
    rq_budget_wait(server_of(conn)->options.budget, &conn->waiter);
}

/* --- the stream's events ---------------------------------------------------------------------- */

/* Sets everything in the connection that depends on its current loop. */
static void take_loop(rq_rpc_conn *conn, rq_rpc_server *server)
{
    rq_loop *loop = rq_stream_loop(conn->stream);
    conn->worker = &server->workers[rq_loop_index(loop)];
    conn->waiter.lane = rq_loop_lane(loop);
    if (conn->last_method != NULL) conn->last_count = rq__method_count(conn, conn->last_method);
    rq_unread_moved(&conn->unread);
}

static rq_err on_open(void *ctx, rq_stream *s)
{
    rq_rpc_server *server = ctx;
    rq_rpc_conn *conn = calloc(1, sizeof *conn);
    if (conn == NULL) return RQ_E_NO_MEMORY;
    conn->stream = s;
    rq_unread_init(&conn->unread, server->options.unread, s, cut_off_debtor, debtor_released);
    take_loop(conn, server);
    conn->refs = 1;
    conn->client.id = 1 + atomic_fetch_add_explicit(&server->opened, 1, memory_order_relaxed);
    conn->client.user = "";
    conn->client.service = "";
    conn->client.host = conn->host;
    snprintf(conn->host, sizeof conn->host, "%s", rq_stream_peer(s)->host);
    conn->client.port = rq_stream_peer(s)->port;
    conn->resume.run = run_resume;
    conn->turn.run = run_turn;
    conn->waiter.task.run = run_room;
    conn->input.never_big = true; /* a preamble is not a frame, whatever its bytes are */
    conn->input.frame_max = server->options.request_bytes_max < HEADER_BYTES_MAX
                                ? server->options.request_bytes_max
                                : HEADER_BYTES_MAX;
    rq_stream_set_user(s, conn);
    return RQ_OK;
}

static void *on_buffer(rq_stream *s, size_t *ret_len)
{
    rq_rpc_conn *conn = rq_stream_user(s);
    rq_err why;
    if (conn->blocked != 0) return NULL; /* the stream is paused */
    /* Connections with calls in flight hold the budget; another one must not wait for them. */
    conn->input.prompt = conn->calls == 0;
    void *p = rq_input_buffer(&conn->input, &conn->worker->chunks, ret_len, &why);
    if (p != NULL) return p;
    if (why == RQ_E_AGAIN)
        wait_for_room(conn);
    else
        rq_stream_close(s, why);
    return NULL;
}

static void on_read(rq_stream *s, size_t len)
{
    rq_rpc_conn *conn = rq_stream_user(s);
    if (len == 0) {
        rq_input_received_nothing(&conn->worker->chunks);
        return;
    }
    rq__counter_add(&conn->worker->counters.bytes_in, len);
    rq_input_received(&conn->input, &conn->worker->chunks, len);
    if (RQ_UNLIKELY(conn->stall_ns != 0) && rq_input_held(&conn->input) >= wanted(conn))
        conn->stall_ns = 0; /* a frame is whole */
    run(conn, false);
}

/* Calls, waiters and posted tasks belong to the loop, and each of them holds a reference. */
static bool on_leave(rq_stream *s)
{
    rq_rpc_conn *conn = rq_stream_user(s);
    conn->blocked |= RQ_BLOCK_MOVE;
    rq_stream_pause(s);
    return conn->refs == 1 && rq_input_is_own(&conn->input) && rq_unread_is_clear(&conn->unread);
}

static void on_move_end(rq_stream *s)
{
    rq_rpc_conn *conn = rq_stream_user(s);
    /* A connection that stays may be queued in a budget, where other threads read its lane. */
    if (conn->worker->loop != rq_stream_loop(s)) take_loop(conn, conn->worker->server);
    unblock(conn, RQ_BLOCK_MOVE, false);
}

/* Whether others wait for memory held by the connection's responses or its queued requests. */
static bool memory_is_needed(const rq_rpc_server_options *o)
{
    return rq_budget_contended(o->unread) || rq_budget_contended(o->budget) ||
           (o->answers != NULL && rq_budget_contended(o->answers));
}

static void look_at_debt(rq_rpc_conn *conn)
{
    const rq_rpc_server *server = server_of(conn);
    bool draining = atomic_load_explicit(&server->draining, memory_order_relaxed);
    bool late = rq_unread_is_late(&conn->unread, draining ? STOP_SLOW_NS : RQ_UNREAD_SLOW_NS);
    if (late && (draining || memory_is_needed(&server->options))) {
        refused(conn, "it does not read its responses, and other connections need the memory");
        rq_stream_close(conn->stream, RQ_E_TIMEOUT);
    } else {
        watch_for_stall(conn);
    }
}

static void look_at_stall(rq_rpc_conn *conn)
{
    rq_budget *budget = server_of(conn)->options.budget;
    size_t came = rq_input_held(&conn->input) - conn->stall_bytes;
    bool stalls = came <= wanted(conn) / STALL_PARTS && rq_budget_contended(budget);
    bool is_sure = conn->stalls;
    conn->stall_ns = stalls ? rq_loop_now_ns(conn->worker->loop) + STALL_GRACE_NS : 0;
    conn->stalls = stalls;
    if (!stalls || !is_sure) return;
    cut_off(conn, "the rest of a request did not arrive, and other connections need its memory");
    rq_input_clear(&conn->input, budget);
}

static void on_deadline(rq_stream *s)
{
    rq_rpc_conn *conn = rq_stream_user(s);
    uint64_t now = rq_loop_now_ns(conn->worker->loop);
    if (conn->stall_ns != 0 && now >= conn->stall_ns && waits_for_rest(conn)) look_at_stall(conn);
    if (!alive(conn)) return;
    if (conn->unread.look_ns != 0 && now >= conn->unread.look_ns)
        look_at_debt(conn);
    else
        watch_for_stall(conn);
}

static bool is_busy(const rq_stream *s)
{
    const rq_rpc_conn *conn = rq_stream_user(s);
    return conn->calls > 0 || conn->waiting || conn->deferred || conn->kept;
}

static void notify_service(rq_rpc_conn *conn)
{
    if (conn->service_state == NULL) return;
    const rq_rpc_service *service = &conn->service->service;
    if (service->closed != NULL) service->closed(service->ctx, conn->service_state);
    conn->service_state = NULL;
}

static void on_close(rq_stream *s, rq_err why)
{
    (void)why;
    rq_rpc_conn *conn = rq_stream_user(s);
    rq_budget *budget = server_of(conn)->options.budget;
    rq_input_received_nothing(&conn->worker->chunks); /* the last read may have met the end */
    rq_input_clear(&conn->input, budget);
    conn->stream = NULL;
    atomic_store_explicit(&conn->gone, true, memory_order_relaxed);
    if (!rq_unread_close(&conn->unread)) conn->refs++;
    rq__answers_wake_all(conn);
    notify_service(conn);
    if (conn->waiting && forget_waiter(conn))
        conn->refs--; /* not the last one: the stream still has a reference */
    rq__conn_unref(conn);
}

const rq_stream_events rq_conn_events = {
    .on_open = on_open,
    .on_buffer = on_buffer,
    .on_read = on_read,
    .on_drain = on_drain,
    .on_leave = on_leave,
    .on_move_end = on_move_end,
    .is_busy = is_busy,
    .on_deadline = on_deadline,
    .on_close = on_close,
};
