/* SPDX-License-Identifier: Apache-2.0 */
/* Outgoing connections to other servers; see peers.h. All but rq_peers_call and _stop runs on the loop. */
#include "peers/peers.h"

#include "client/link.h"
#include "cluster/handshake.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define IDLE_NS UINT64_C(60000000000)
#define SWEEP_NS UINT64_C(10000000000)
#define ANSWER_MAX ((uint32_t)1 << 20)                         /* names of 10,000 servers */
#define FAILED_LINES ((rq_log_rate){1, UINT64_C(10000000000)}) /* for each server */

typedef struct peer {
    struct peer *next;
    rq_peers *owner;
    const rq_server_name *from, *to; /* references */
    rq_link *link;
    rq_caller caller; /* the caller's side of the handshake */
    uint64_t used_ns;
    rq_log_limit failed_lines;
} peer;

struct rq_peers {
    rq_peers_options o;
    peer *list;
    rq_loop_timer sweep; /* armed while there are connections */
    rq_task stop;
    pthread_mutex_t lock; /* guards the fields below */
    pthread_cond_t changed;
    size_t posted; /* calls posted to the loop and not taken yet */
    bool stopping, stopped;
};

/* --- greeting --------------------------------------------------------------------------------- */

/* The server's text without the class in front. */
static rq_slice text_of(const rq_reply *r)
{
    size_t len = r->java_class.len;
    if (r->text.len == 0 && r->err == RQ_E_CALL_TIMEOUT)
        return RQ_SLICE_LIT("it has not answered in time");
    if (r->text.len == 0) return r->kind;
    bool has_class = len > 0 && r->text.len > len + 2 &&
                     memcmp(r->text.ptr, r->java_class.ptr, len) == 0 &&
                     memcmp(r->text.ptr + len, ": ", 2) == 0;
    return has_class ? rq_slice_of(r->text.ptr + len + 2, r->text.len - len - 2) : r->text;
}

/* Waiting calls fail with a retryable error: the other server may start again with the right secret. */
static void greeting_failed(peer *p, rq_slice text)
{
    rq_error why = {0};
    uint64_t suppressed;
    (void)rq_fail(&why, RQ_E_IO, "cannot connect to server %.300s: %.*s", p->to->text,
                  (int)(text.len < 400 ? text.len : 400), (const char *)text.ptr);
    if (rq_log_limit_passes(&p->failed_lines, FAILED_LINES, rq_loop_clock_ns(), &suppressed))
        rq_log_event(p->owner->o.log, RQ_LOG_WARN, "peers", "cannot greet a server",
                     rq_log_text("why", why.message), rq_log_number("suppressed", suppressed));
    rq_link_greeted(p->link, RQ_E_IO, why.message);
}

/* The connection was lost during the greeting, or was closed by this process. */
static void greeting_lost(peer *p, const rq_reply *r)
{
    if (r->err == RQ_E_CLOSED)
        rq_link_greeted(p->link, RQ_E_CLOSED, NULL);
    else
        greeting_failed(p, text_of(r));
}

static void greeting_failed_why(peer *p, rq_err rc, const rq_error *why)
{
    greeting_failed(p, rq_slice_cstr(why->code != RQ_OK ? why->message : rq_err_text(rc)));
}

static void on_proof(void *ctx, const rq_reply *r)
{
    peer *p = ctx;
    rq_error why = {0};
    if (r->err != RQ_OK) {
        greeting_lost(p, r);
        return;
    }
    rq_err rc = rq_caller_check(&p->caller, r->message, &why);
    if (rc == RQ_OK)
        rq_link_greeted(p->link, RQ_OK, NULL);
    else
        greeting_failed_why(p, rc, &why);
}

static void on_hello(void *ctx, const rq_reply *r)
{
    peer *p = ctx;
    rq_arena a = {0};
    rq_error why = {0};
    rq_slice proof;
    if (r->err != RQ_OK) {
        greeting_lost(p, r);
        return;
    }
    rq_err rc = rq_caller_prove(&p->caller, r->message, &a, &proof, &why);
    if (rc == RQ_OK)
        rq_link_greet_call(p->link, "Prove", proof, on_proof, p);
    else
        greeting_failed_why(p, rc, &why);
    rq_arena_clear(&a);
}

static void greet(void *ctx, rq_link *l)
{
    peer *p = ctx;
    rq_arena a = {0};
    rq_error why = {0};
    rq_slice hello;
    p->caller = (rq_caller){.secret = p->owner->o.secret, .from = p->from, .to = p->to};
    rq_err rc = rq_unguessable(p->caller.nonce, sizeof p->caller.nonce);
    if (rc == RQ_OK) rc = rq_caller_hello(&p->caller, &a, &hello);
    if (rc == RQ_OK)
        rq_link_greet_call(l, "Hello", hello, on_hello, p);
    else
        greeting_failed_why(p, rc, &why);
    rq_arena_clear(&a);
}

/* --- connections ------------------------------------------------------------------------------ */

static void peer_free(peer *p)
{
    rq_link_free(p->link);
    rq_server_name_unref(p->from);
    rq_server_name_unref(p->to);
    free(p);
}

static void sweep(rq_loop_timer *t)
{
    rq_peers *o = RQ_CONTAINER_OF(t, rq_peers, sweep);
    uint64_t now = rq_loop_clock_ns();
    for (peer **at = &o->list; *at != NULL;) {
        peer *p = *at;
        if (rq_link_calls(p->link) > 0 || now - p->used_ns < IDLE_NS) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        peer_free(p);
    }
    if (o->list != NULL) rq_loop_timer_arm(o->o.loop, &o->sweep, SWEEP_NS);
}

static rq_err peer_new(rq_peers *o, const rq_peer_call *c, peer **ret)
{
    peer *p = calloc(1, sizeof *p);
    if (p == NULL) return RQ_E_NO_MEMORY;
    p->owner = o;
    p->from = rq_server_name_new(c->from);
    p->to = rq_server_name_new(c->to);
    const rq_link_options link = {.loop = o->o.loop,
                                  .host = c->to->host,
                                  .port = c->to->port,
                                  .service = RQ_PEER_SERVICE,
                                  .user = "rorqual",
                                  .timeout_ms = o->o.timeout_ms,
                                  .answer_max = ANSWER_MAX,
                                  .with_tags = true,
                                  .greet = greet,
                                  .ctx = p};
    rq_err rc = p->from == NULL || p->to == NULL ? RQ_E_NO_MEMORY : rq_link_new(&link, &p->link);
    if (rc != RQ_OK) {
        peer_free(p);
        return rc;
    }
    p->next = o->list;
    o->list = p;
    if (!o->sweep.armed) rq_loop_timer_arm(o->o.loop, &o->sweep, SWEEP_NS);
    *ret = p;
    return RQ_OK;
}

static rq_err find_peer(rq_peers *o, const rq_peer_call *c, peer **ret)
{
    peer *p = o->list;
    while (p != NULL &&
           (strcmp(p->to->text, c->to->text) != 0 || strcmp(p->from->text, c->from->text) != 0))
        p = p->next;
    *ret = p;
    return p != NULL ? RQ_OK : peer_new(o, c, ret);
}

/* --- calls ------------------------------------------------------------------------------------ */

static void fail(rq_peer_call *c, rq_err rc, const char *text)
{
    rq_error why = {0};
    (void)rq_fail(&why, rc, "%s", text == NULL ? rq_err_text(rc) : text);
    c->done(c, rc, &why, (rq_slice){0});
}

static void answered(void *ctx, const rq_reply *r)
{
    rq_peer_call *c = ctx;
    rq_error why = {0};
    if (r->err == RQ_OK) {
        c->done(c, RQ_OK, &why, r->message);
        return;
    }
    /* The server's do-not-retry flag decides, even if the error's class is unknown here. */
    rq_err rc = r->err;
    if (rc == RQ_E_CLOSED) rc = RQ_E_SERVER_STOPPED;
    if (r->java_class.len > 0 && r->retry && rq_err_do_not_retry(rc)) rc = RQ_E_IOEXCEPTION;
    rq_slice text = text_of(r);
    (void)rq_fail(&why, rc, "%.*s", (int)(text.len < 1000 ? text.len : 1000),
                  (const char *)text.ptr);
    c->refused = r->refused;
    c->done(c, rc, &why, (rq_slice){0});
}

static void leave(rq_peers *o)
{
    pthread_mutex_lock(&o->lock);
    if (--o->posted == 0) pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
}

static void begin(rq_task *task)
{
    rq_peer_call *c = RQ_CONTAINER_OF(task, rq_peer_call, task);
    rq_peers *o = c->peers;
    peer *p;
    pthread_mutex_lock(&o->lock);
    bool stopped = o->stopped;
    pthread_mutex_unlock(&o->lock);
    rq_err rc = stopped ? RQ_E_SERVER_STOPPED : find_peer(o, c, &p);
    if (rc == RQ_OK) {
        p->used_ns = rq_loop_clock_ns();
        rq_link_call(p->link, c->method, c->request, c->cells, answered, c);
    } else {
        fail(c, rc, NULL);
    }
    leave(o);
}

void rq_peers_call(rq_peers *o, rq_peer_call *c)
{
    c->peers = o;
    c->task.run = begin;
    pthread_mutex_lock(&o->lock);
    bool goes = !o->stopping;
    if (goes) o->posted++;
    pthread_mutex_unlock(&o->lock);
    if (goes)
        rq_lane_post(rq_loop_lane(o->o.loop), &c->task);
    else
        fail(c, RQ_E_SERVER_STOPPED, NULL);
}

/* --- life ------------------------------------------------------------------------------------- */

static void stop_on_loop(rq_task *task)
{
    rq_peers *o = RQ_CONTAINER_OF(task, rq_peers, stop);
    if (o->sweep.armed) rq_loop_timer_cancel(o->o.loop, &o->sweep);
    while (o->list != NULL) {
        peer *p = o->list;
        o->list = p->next;
        peer_free(p);
    }
    pthread_mutex_lock(&o->lock);
    o->stopped = true;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
}

void rq_peers_stop(rq_peers *o)
{
    pthread_mutex_lock(&o->lock);
    bool first = !o->stopping;
    o->stopping = true;
    pthread_mutex_unlock(&o->lock);
    if (first) rq_lane_post(rq_loop_lane(o->o.loop), &o->stop);
    pthread_mutex_lock(&o->lock);
    while (!o->stopped || o->posted > 0)
        pthread_cond_wait(&o->changed, &o->lock);
    pthread_mutex_unlock(&o->lock);
}

rq_err rq_peers_new(const rq_peers_options *options, rq_peers **ret)
{
    rq_peers *o = calloc(1, sizeof *o);
    if (o == NULL) return RQ_E_NO_MEMORY;
    o->o = *options;
    o->sweep.run = sweep;
    o->stop.run = stop_on_loop;
    pthread_mutex_init(&o->lock, NULL);
    pthread_cond_init(&o->changed, NULL);
    *ret = o;
    return RQ_OK;
}

void rq_peers_free(rq_peers *o)
{
    if (o == NULL) return;
    pthread_cond_destroy(&o->changed);
    pthread_mutex_destroy(&o->lock);
    free(o);
}
