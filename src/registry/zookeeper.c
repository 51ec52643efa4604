/* SPDX-License-Identifier: Apache-2.0 */
/* The registry over ZooKeeper's protocol: listener, connections, sessions.
 *
 * The first frame of a connection is a ConnectRequest (or four letters such as `ruok`), every later
 * one a request. The server keeps no state of a session: it consists of an id, and a password
 * derived from this id and the cluster id. So a client that reconnects, also after a restart of the
 * server, continues its session and sets its watches again, as after a connection loss with a real
 * ensemble.
 *
 * Requests are answered in zk_requests.c; watches are in zk_watches.c; zk_priv.h defines zxids. */
#include "registry/zk_priv.h"

#include <md5.h>
#include <stdio.h>
#include <stdlib.h>

#define TIMEOUT_MIN_MS 4000
#define TIMEOUT_MAX_MS 90000            /* HBASE: zookeeper.session.timeout */
#define UNREAD_MAX ((size_t)256 * 1024) /* unread answers; with more, no request is read */
/* The same limit while unread answers fill their budget. */
#define UNREAD_SCARCE ((size_t)16 * 1024)
/* An incomplete request up to this size is not charged: a connection without one takes more memory than this. Requests
 * of real clients are shorter, except setWatches. */
#define INPUT_FREE ((size_t)512)
#define MEMORY_MAX ((size_t)1 << 20)

/* --- memory ----------------------------------------------------------------------------------- */

bool rq__zk_charge(rq__zk_connection *c, size_t bytes)
{
    rq_registry *r = c->registry;
    size_t used = atomic_load_explicit(&r->memory_used, memory_order_relaxed);
    do {
        if (used + bytes > r->memory_max || c->memory + bytes > r->memory_max - used) return false;
    } while (!atomic_compare_exchange_weak(&r->memory_used, &used, used + bytes));
    c->memory += bytes;
    return true;
}

void rq__zk_give(rq__zk_connection *c, size_t bytes)
{
    c->memory -= bytes;
    atomic_fetch_sub(&c->registry->memory_used, bytes);
}

/* Charges the bytes kept of an incomplete request. */
static bool charge_input(rq__zk_connection *c, size_t bytes)
{
    if (bytes <= INPUT_FREE) bytes = 0;
    if (bytes > c->input) {
        if (!rq__zk_charge(c, bytes - c->input)) return false;
    } else {
        rq__zk_give(c, c->input - bytes);
    }
    c->input = bytes;
    return true;
}

static size_t unread_max(const rq__zk_connection *c)
{
    const rq_budget *unread = c->registry->unread;
    return unread != NULL && rq_budget_is_full(unread) ? UNREAD_SCARCE : UNREAD_MAX;
}

/* --- the session ------------------------------------------------------------------------------ */

static void make_password(const rq_registry *r, int64_t session, uint8_t out[RQ__ZK_PASSWORD_LEN])
{
    MD5_CTX md5;
    const char *id = rq_root_cluster_id(rq_catalog_root(r->catalog));
    MD5Init(&md5);
    MD5Update(&md5, (const uint8_t *)id, strlen(id));
    MD5Update(&md5, (const uint8_t *)&session, sizeof session);
    MD5Final(out, &md5);
}

static rq_err answer_connect(rq__zk_connection *c, bool expired, bool with_read_only)
{
    uint8_t password[RQ__ZK_PASSWORD_LEN] = {0};
    size_t at;
    rq_buf *out = rq_stream_out(c->stream);
    if (!expired) make_password(c->registry, c->session, password);
    RQ_TRY(rq__zk_frame_begin(out, &at));
    RQ_TRY(rq_buf_append_be32(out, 0));
    RQ_TRY(rq_buf_append_be32(out, expired ? 0 : (uint32_t)c->timeout_ms));
    RQ_TRY(rq_buf_append_be64(out, expired ? 0 : (uint64_t)c->session));
    RQ_TRY(rq__zk_write_buffer(out, rq_slice_of(password, sizeof password)));
    if (with_read_only) RQ_TRY(rq_buf_append_u8(out, 0));
    rq__zk_frame_end(out, at);
    rq_stream_written(c->stream);
    return RQ_OK;
}

static rq_err handle_connect(rq__zk_connection *c, rq_slice frame)
{
    rq_cursor in = rq_cursor_of(frame);
    int32_t version, timeout;
    int64_t zxid, session;
    rq_slice password;
    bool read_only;
    if (!rq__zk_read_i32(&in, &version) || !rq__zk_read_i64(&in, &zxid) ||
        !rq__zk_read_i32(&in, &timeout) || !rq__zk_read_i64(&in, &session) ||
        !rq__zk_read_buffer(&in, &password))
        return RQ_E_MALFORMED;
    bool with_read_only = rq__zk_read_bool(&in, &read_only); /* clients since 3.4 */
    rq_executor *executor = c->registry->env.executor;
    bool expired = false;
    if (session == 0) {
        session = (int64_t)(executor->random(executor) >> 1) | 1;
    } else {
        uint8_t expected[RQ__ZK_PASSWORD_LEN];
        make_password(c->registry, session, expected);
        expired = !rq_slice_eq(password, rq_slice_of(expected, sizeof expected));
    }
    c->session = session;
    c->timeout_ms = timeout < TIMEOUT_MIN_MS   ? TIMEOUT_MIN_MS
                    : timeout > TIMEOUT_MAX_MS ? TIMEOUT_MAX_MS
                                               : timeout;
    c->connected = true;
    rq_stream_named(c->stream);
    RQ_TRY(answer_connect(c, expired, with_read_only));
    if (expired) rq_stream_finish(c->stream);
    return RQ_OK;
}

/* --- four letters ----------------------------------------------------------------------------- */

static unsigned connections(const rq_registry *r)
{
    unsigned n = 0;
    for (unsigned i = 0; i < r->listener_count; i++)
        n += rq_listener_connections(r->listeners[i]);
    return n;
}

static rq_err four_letters(rq__zk_connection *c, const uint8_t word[4], bool *ret_known)
{
    char text[512];
    const rq_registry *r = c->registry;
    *ret_known = true;
    if (memcmp(word, "ruok", 4) == 0)
        snprintf(text, sizeof text, "imok");
    else if (memcmp(word, "isro", 4) == 0)
        snprintf(text, sizeof text, "rw");
    else if (memcmp(word, "srvr", 4) == 0 || memcmp(word, "stat", 4) == 0)
        snprintf(text, sizeof text,
                 "Zookeeper version: 3.8.4 (Rorqual " RQ_VERSION
                 ")\nConnections: %u\nZxid: 0x%llx\n"
                 "Mode: standalone\n",
                 connections(r), (unsigned long long)rq__zk_zxid_now(r));
    else
        *ret_known = false;
    if (!*ret_known) return RQ_OK;
    RQ_TRY(rq_stream_write(c->stream, text, strlen(text)));
    rq_stream_finish(c->stream);
    return RQ_OK;
}

/* --- the stream ------------------------------------------------------------------------------- */

/* Arms the timer for the next check of unread answers, or the session's end. */
static void arm(rq__zk_connection *c)
{
    uint64_t look = c->unread.look_ns;
    rq_stream_set_deadline(c->stream, look != 0 && look < c->expires_ns ? look : c->expires_ns);
}

static void set_deadline(rq__zk_connection *c)
{
    uint64_t now = rq_loop_now_ns(rq_stream_loop(c->stream));
    uint64_t wait_ms = c->connected ? (uint64_t)c->timeout_ms : TIMEOUT_MIN_MS * 4;
    c->expires_ns = now + wait_ms * 1000000;
    arm(c);
}

static void cut_off(rq_unread *u)
{
    rq_stream_close(RQ_CONTAINER_OF(u, rq__zk_connection, unread)->stream, RQ_E_TIMEOUT);
}

static void released(rq_unread *u)
{
    free(RQ_CONTAINER_OF(u, rq__zk_connection, unread));
}

static rq_err on_open(void *ctx, rq_stream *stream)
{
    rq__zk_connection *c = calloc(1, sizeof *c);
    if (c == NULL) return RQ_E_NO_MEMORY;
    c->registry = ctx;
    c->stream = stream;
    rq_unread_init(&c->unread, c->registry->unread, stream, cut_off, released);
    rq_stream_set_user(stream, c);
    set_deadline(c);
    return RQ_OK;
}

/* Handles one frame at the front of `bytes`. *ret_used 0: it is incomplete, or waits. */
static rq_err take_frame(rq__zk_connection *c, rq_slice bytes, size_t *ret_used)
{
    *ret_used = 0;
    if (bytes.len < 4) return RQ_OK;
    bool known = false;
    if (!c->connected) RQ_TRY(four_letters(c, bytes.ptr, &known));
    if (known) {
        *ret_used = bytes.len;
        return RQ_OK;
    }
    uint32_t len = rq_get_be32(bytes.ptr);
    if (len > RQ__ZK_FRAME_MAX) return RQ_E_REQUEST_TOO_BIG;
    if (bytes.len - 4 < len) return RQ_OK;
    rq_err rc = c->connected ? rq__zk_watches_look(c) : RQ_OK;
    c->waits = rc == RQ_E_AGAIN;
    if (rc != RQ_OK) return c->waits ? RQ_OK : rc;
    rq_slice frame = rq_slice_of(bytes.ptr + 4, len);
    rc = c->connected ? rq__zk_handle_request(c, frame) : handle_connect(c, frame);
    c->waits = rc == RQ_E_AGAIN;
    if (c->waits) {
        rq__zk_go_on_later(c);
        return RQ_OK;
    }
    *ret_used = 4 + (size_t)len;
    return rc;
}

static size_t on_data(rq_stream *stream, rq_slice bytes)
{
    rq__zk_connection *c = rq_stream_user(stream);
    size_t total = 0;
    while (!rq_stream_closing(stream)) {
        size_t used;
        if (rq_stream_out_pending(stream) > unread_max(c)) {
            rq_stream_pause(stream);
            break;
        }
        rq_err rc = take_frame(c, rq_slice_of(bytes.ptr + total, bytes.len - total), &used);
        if (rc != RQ_OK) {
            rq_stream_close(stream, rc);
            return bytes.len;
        }
        if (used == 0) break;
        total += used;
    }
    if (c->waits) rq_stream_pause(stream);
    rq_unread_account(&c->unread);
    if (total > 0 || c->waits)
        set_deadline(c);
    else
        arm(c); /* a part of a request does not prolong the session, as in ZooKeeper */
    if (!rq_stream_closing(stream) && !charge_input(c, bytes.len - total))
        rq_stream_close(stream, RQ_E_NO_MEMORY);
    return rq_stream_closing(stream) ? bytes.len : total;
}

/* The client has read its answers: its next requests are read. */
static void on_drain(rq_stream *stream)
{
    rq__zk_connection *c = rq_stream_user(stream);
    rq_unread_account(&c->unread);
    if (!rq_stream_paused(stream) || c->waits || rq_stream_out_pending(stream) > unread_max(c)) {
        arm(c);
        return;
    }
    set_deadline(c);
    rq_stream_resume(stream);
}

void rq__zk_go_on(rq__zk_connection *c)
{
    c->waits = false;
    rq_stream_written(
        c->stream); /* on_drain follows, also without events: the request is read there */
}

/* The session's timeout is over, or others need the memory of unread answers. */
static void on_deadline(rq_stream *stream)
{
    rq__zk_connection *c = rq_stream_user(stream);
    uint64_t now = rq_loop_now_ns(rq_stream_loop(stream));
    bool late = c->unread.look_ns != 0 && now >= c->unread.look_ns &&
                rq_unread_is_late(&c->unread, RQ_UNREAD_SLOW_NS);
    if (now >= c->expires_ns || (late && rq_budget_contended(c->registry->unread)))
        rq_stream_close(stream, RQ_E_TIMEOUT);
    else
        arm(c);
}

static bool is_busy(const rq_stream *stream)
{
    const rq__zk_connection *c = rq_stream_user(stream);
    return c->waits;
}

static void on_close(rq_stream *stream, rq_err why)
{
    rq__zk_connection *c = rq_stream_user(stream);
    (void)why;
    rq__zk_watches_clear(c);
    (void)charge_input(c, 0);
    rq_arena_clear(&c->arena);
    if (rq_unread_close(&c->unread)) free(c);
}

static const rq_stream_events events = {
    .on_open = on_open,
    .on_data = on_data,
    .on_drain = on_drain,
    .is_busy = is_busy,
    .on_deadline = on_deadline,
    .on_close = on_close,
};

/* --- life ------------------------------------------------------------------------------------- */

static rq_err listen_on(rq_registry *r, const rq_registry_options *o, rq_error *why)
{
    static const char *const loopback[] = {"127.0.0.1"};
    unsigned count = o->address_count;
    const char *const *addresses = count == 0 ? loopback : o->addresses;
    if (count == 0) count = 1;
    if (count > RQ_REGISTRY_ADDRESSES_MAX)
        return rq_fail(why, RQ_E_INVALID,
                       "the ZooKeeper service has too many addresses to listen on");
    for (; r->listener_count < count; r->listener_count++) {
        rq_listener_options listen = {.address = addresses[r->listener_count],
                                      .only_v6 = count > 1,
                                      .port = o->zk_port,
                                      .events = &events,
                                      .ctx = r,
                                      .transform = o->transform};
        RQ_TRY(rq_listener_open(o->loops, &listen, &r->listeners[r->listener_count], why));
    }
    return RQ_OK;
}

rq_err rq_registry_open(const rq_registry_options *o, rq_registry **ret, rq_error *why)
{
    rq_registry *r = calloc(1, sizeof *r);
    if (r == NULL) return rq_no_memory(why);
    r->env = *o->env;
    r->catalog = o->catalog;
    r->zxid_start = rq_catalog_server(o->catalog)->start_code << 16;
    r->root = strdup(o->zk_root == NULL ? "/hbase" : o->zk_root);
    r->znodes = (rq__znodes){o->catalog, r->root};
    r->loops = o->loops;
    r->unread = o->unread;
    r->memory_max = o->memory_max > 0 ? o->memory_max : MEMORY_MAX;
    r->watchers = calloc(rq_loops_count(o->loops), sizeof *r->watchers);
    for (unsigned i = 0; r->watchers != NULL && i < rq_loops_count(o->loops); i++) {
        rq__zk_watchers *all = &r->watchers[i];
        *all = (rq__zk_watchers){.task = {.run = rq__zk_watchers_run}};
        all->lane = rq_loop_lane(rq_loops_get(o->loops, i));
    }
    rq_err rc = r->root == NULL || r->watchers == NULL ? rq_no_memory(why) : listen_on(r, o, why);
    if (rc != RQ_OK) {
        rq_registry_close(r);
        return rc;
    }
    rq_catalog_on_change(o->catalog, rq__zk_on_change, r);
    *ret = r;
    return RQ_OK;
}

rq_listener *rq_registry_listener(rq_registry *r)
{
    return r->listeners[0];
}

void rq_registry_close(rq_registry *r)
{
    if (r == NULL) return;
    if (r->listener_count > 0) rq_catalog_on_change(r->catalog, NULL, NULL);
    for (unsigned i = 0; i < r->listener_count; i++)
        rq_listener_close(r->listeners[i]); /* runs tasks that were posted to the loops before */
    free(r->watchers);
    free(r->root);
    free(r);
}
