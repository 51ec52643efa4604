/* SPDX-License-Identifier: Apache-2.0 */
/* A connection with a greeting; see link.h. It uses an rq__conn (conn.c), which connects at the first call, and
 * ends its calls when the connection is lost. */
#include "client/link.h"

#include "client/client_priv.h"

#include <stdlib.h>
#include <string.h>

#define LOOK_NS UINT64_C(50000000) /* between two looks for calls that are late */

typedef enum state { IDLE, GREETING, OPEN } state;

typedef struct waiting {
    struct waiting *next;
    rq_link *link;
    rq_reply_fn done;
    void *ctx;
    const char *method;
    size_t len, message_len;
    uint8_t bytes[]; /* the message, then the cells */
} waiting;

struct rq_link {
    rq_link_options o;
    rq__conn *conn;
    state state;
    uint64_t greeted_connect; /* number of the connect whose greeting was begun */
    waiting *first, *last;    /* until the greeting has succeeded */
    size_t calls, bytes;
    rq_loop_timer timer; /* armed while there are calls */
    bool closing;
};

static bool is_open(const rq_link *l)
{
    return l->state == OPEN && !rq__conn_is_lost(l->conn) &&
           rq__conn_connects(l->conn) == l->greeted_connect;
}

/* --- late calls ------------------------------------------------------------------------------- */

static void look(rq_loop_timer *t)
{
    rq_link *l = RQ_CONTAINER_OF(t, rq_link, timer);
    rq__conn_check_timeouts(l->conn, rq_client_now_ns());
    if (rq__conn_in_flight(l->conn) > 0 && !l->timer.armed)
        rq_loop_timer_arm(l->o.loop, &l->timer, LOOK_NS);
}

static void watch(rq_link *l)
{
    if (!l->timer.armed) rq_loop_timer_arm(l->o.loop, &l->timer, LOOK_NS);
}

static void drop_if_late(rq_link *l, const rq_reply *r)
{
    if (r->err != RQ_E_CALL_TIMEOUT || r->java_class.len > 0 || l->closing) return;
    rq__conn_drop(l->conn, "the server has not answered in time");
}

/* --- ends ------------------------------------------------------------------------------------- */

static rq_reply failure(const rq_link *l, rq_err rc, const char *why)
{
    return (rq_reply){.err = rc,
                      .retry = !rq_err_do_not_retry(rc),
                      .refused = rc == RQ_E_IO && rq__conn_was_refused(l->conn),
                      .kind = rq_slice_cstr(rq_err_name(rc)),
                      .text = rq_slice_cstr(why == NULL ? rq_err_text(rc) : why)};
}

static void end(waiting *w, const rq_reply *r)
{
    rq_link *l = w->link;
    l->calls--;
    l->bytes -= w->len;
    w->done(w->ctx, r);
    free(w);
}

static void end_all(waiting *list, const rq_reply *r)
{
    while (list != NULL) {
        waiting *next = list->next;
        end(list, r);
        list = next;
    }
}

static waiting *take_waiting(rq_link *l)
{
    waiting *list = l->first;
    l->first = l->last = NULL;
    return list;
}

/* --- calls of an open connection -------------------------------------------------------------- */

static void answered(void *ctx, const rq_reply *r)
{
    waiting *w = ctx;
    rq_link *l = w->link;
    drop_if_late(l, r);
    end(w, r);
}

/* Never on a connection that was not greeted: conn.c would connect again. */
static void send_one(rq_link *l, waiting *w)
{
    rq_err rc = RQ_E_IO;
    if (is_open(l))
        rc = rq__conn_call(
            l->conn, w->method, 0, (rq_slice){0}, rq_slice_of(w->bytes, w->message_len),
            rq_slice_of(w->bytes + w->message_len, w->len - w->message_len), answered, w);
    if (rc == RQ_OK) {
        watch(l);
        return;
    }
    const rq_reply r = failure(l, rc, NULL);
    end(w, &r);
}

/* --- greeting --------------------------------------------------------------------------------- */

static void greet(rq_link *l)
{
    l->state = GREETING;
    l->o.greet(l->o.ctx, l);
}

void rq_link_greet_call(rq_link *l, const char *method, rq_slice message, rq_reply_fn done,
                        void *ctx)
{
    rq_err rc = rq__conn_call(l->conn, method, 0, (rq_slice){0}, message, (rq_slice){0}, done, ctx);
    l->greeted_connect = rq__conn_connects(l->conn);
    if (rc == RQ_OK) {
        watch(l);
        return;
    }
    const rq_reply r = failure(l, rc, NULL);
    done(ctx, &r);
}

void rq_link_greeted(rq_link *l, rq_err rc, const char *why)
{
    if (rc == RQ_OK && (rq__conn_is_lost(l->conn) || l->closing)) rc = RQ_E_IO;
    l->state = rc == RQ_OK ? OPEN : IDLE;
    waiting *list = take_waiting(l);
    if (rc == RQ_OK) {
        while (list != NULL) {
            waiting *next = list->next;
            send_one(l, list);
            list = next;
        }
        return;
    }
    if (!rq__conn_is_lost(l->conn) && !l->closing)
        rq__conn_drop(l->conn, why == NULL ? "the handshake has failed" : why);
    const rq_reply r = failure(l, rc, why);
    end_all(list, &r);
}

/* --- calls ------------------------------------------------------------------------------------ */

static waiting *waiting_new(rq_link *l, const char *method, rq_slice message, rq_slice cells,
                            rq_reply_fn done, void *ctx)
{
    waiting *w = malloc(sizeof *w + message.len + cells.len);
    if (w == NULL) return NULL;
    *w = (waiting){.link = l,
                   .done = done,
                   .ctx = ctx,
                   .method = method,
                   .len = message.len + cells.len,
                   .message_len = message.len};
    if (message.len > 0) memcpy(w->bytes, message.ptr, message.len);
    if (cells.len > 0) memcpy(w->bytes + message.len, cells.ptr, cells.len);
    l->calls++;
    l->bytes += w->len;
    return w;
}

static rq_err check(const rq_link *l, size_t message_len, size_t cells_len)
{
    if (l->closing) return RQ_E_CLOSED;
    size_t room = RQ_LINK_BYTES_MAX - l->bytes;
    bool full =
        l->calls >= RQ_LINK_CALLS_MAX || message_len > room || cells_len > room - message_len;
    return full ? RQ_E_CALL_QUEUE_TOO_BIG : RQ_OK;
}

void rq_link_call(rq_link *l, const char *method, rq_slice message, rq_slice cells,
                  rq_reply_fn done, void *ctx)
{
    rq_err rc = check(l, message.len, cells.len);
    waiting *w = rc == RQ_OK ? waiting_new(l, method, message, cells, done, ctx) : NULL;
    if (w == NULL) {
        const rq_reply r = failure(l, rc == RQ_OK ? RQ_E_NO_MEMORY : rc, NULL);
        done(ctx, &r);
        return;
    }
    if (is_open(l)) {
        send_one(l, w);
        return;
    }
    *(l->last == NULL ? &l->first : &l->last->next) = w;
    l->last = w;
    if (l->state != GREETING) greet(l);
}

size_t rq_link_calls(const rq_link *l)
{
    return l->calls;
}

/* --- life ------------------------------------------------------------------------------------- */

rq_err rq_link_new(const rq_link_options *o, rq_link **ret)
{
    const rq__conn_options conn = {.loop = o->loop,
                                   .host = o->host,
                                   .port = o->port,
                                   .service = o->service,
                                   .codec = o->with_tags ? RQ__CODEC_WITH_TAGS : NULL,
                                   .user = o->user,
                                   .timeout_ns = (int64_t)o->timeout_ms * 1000000,
                                   .answer_max = o->answer_max};
    rq_link *l = calloc(1, sizeof *l);
    if (l == NULL) return RQ_E_NO_MEMORY;
    l->o = *o;
    l->o.host = l->o.service = l->o.user = NULL; /* the connection has copies */
    l->timer.run = look;
    rq_err rc = rq__conn_new(&conn, &l->conn);
    if (rc == RQ_OK)
        *ret = l;
    else
        free(l);
    return rc;
}

void rq_link_free(rq_link *l)
{
    if (l == NULL) return;
    const rq_reply r = failure(l, RQ_E_CLOSED, NULL);
    l->closing = true;
    rq__conn_stop(l->conn);
    end_all(take_waiting(l), &r);
    if (l->timer.armed) rq_loop_timer_cancel(l->o.loop, &l->timer);
    rq__conn_free(l->conn);
    free(l);
}
