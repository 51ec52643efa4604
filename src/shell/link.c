/* SPDX-License-Identifier: Apache-2.0 */
/* The session's connection: opened by the first command that needs it, closed by Ctrl-C. Calls of any
 * method of any server, as Wire.call; failures are HBaseErrors, which know HBase's Java class. */
#include "shell/shell_priv.h"

#include "base/clock.h"
#include "client/call.h"

#include <mruby/class.h>
#include <mruby/error.h>
#include <mruby/string.h>
#include <mruby/variable.h>
#include <stdio.h>

#define CALL_MS 60000   /* the client's default of rpc_timeout_ms */
#define PAUSE_MAX_S 1e9 /* 31 years; 9.2e9 s are more ns than an int64_t has */

void rq__raise_failure(mrb_state *mrb, rq_err rc, const char *java_class, rq_slice text, bool retry)
{
    const char *name = java_class[0] != '\0' ? java_class : rq_err_java_class(rc);
    mrb_value message = mrb_str_new(mrb, (const char *)text.ptr, (mrb_int)text.len);
    mrb_value e = mrb_obj_new(mrb, mrb_class_get(mrb, "HBaseError"), 1, &message);
    mrb_iv_set(mrb, e, mrb_intern_lit(mrb, "@retry"), mrb_bool_value(retry));
    (void)mrb_funcall(mrb, e, "java", 1, mrb_str_new_cstr(mrb, name));
    mrb_exc_raise(mrb, e);
}

void rq__raise_silence(mrb_state *mrb)
{
    const rq__shell *s = rq__shell_of(mrb);
    char text[128];
    long long call_ms = s->where.rpc_timeout_ms > 0 ? s->where.rpc_timeout_ms : CALL_MS,
              operation_ms = s->options->operation_ns / 1000000;
    bool is_call = operation_ms == 0 || call_ms <= operation_ms;
    snprintf(text, sizeof text, "the server has not answered for %lld ms (%s)",
             is_call ? call_ms : operation_ms,
             is_call ? "hbase.rpc.timeout" : "hbase.client.operation.timeout");
    rq__raise_failure(mrb, RQ_E_CALL_TIMEOUT, "", rq_slice_cstr(text), true);
}

void rq__shell_check_interrupt(mrb_state *mrb)
{
    rq__shell *s = rq__shell_of(mrb);
    if (!s->interrupted) return;
    s->interrupted = 0;
    rq__shell_disconnect(s);
    mrb_raise(mrb, mrb_class_get(mrb, "Interrupt"), "");
}

static void close_client(rq__shell *s)
{
    if (s->client == NULL) return;
    rq__scanners_end(s, s->client);
    rq_client_stop(s->client);
    rq_client_poll(s->client, 0);
    rq__scanners_lose(s, s->client);
    rq_op_free(s->op);
    s->op = NULL;
    rq_client_close(s->client);
    s->client = NULL;
}

static void go_home(rq__shell *s)
{
    if (s->home == NULL) return;
    close_client(s);
    s->client = s->home;
    s->op = s->home_op;
    s->home = NULL;
    s->home_op = NULL;
}

void rq__shell_disconnect(rq__shell *s)
{
    go_home(s);
    close_client(s);
}

static void connect_client(mrb_state *mrb, rq__shell *s)
{
    rq_error why = {.code = RQ_OK};
    rq_err rc = RQ_OK;
    rq__display_wait_begins(s);
    if (!s->is_open) {
        s->where = s->options->client;
        if (s->options->open != NULL) rc = s->options->open(s->options->ctx, &s->where, &why);
        s->where.stop = &s->interrupted;
        s->where.before_wait = rq__display_silence;
        s->where.ctx = s;
        s->is_open = rc == RQ_OK;
    }
    if (rc == RQ_OK) rc = rq_client_open(&s->where, &s->client, &why);
    if (rc == RQ_OK) rc = rq_op_new(s->client, 0, s, &s->op);
    if (rc == RQ_OK) return;
    if (s->client != NULL) rq_client_close(s->client);
    s->client = NULL;
    rq__shell_check_interrupt(mrb);
    const char *text = why.message[0] != '\0' ? why.message : rq_err_text(rc);
    rq__raise_failure(mrb, rc, "java.io.IOException", rq_slice_cstr(text), false);
}

rq_client *rq__shell_client(mrb_state *mrb)
{
    rq__shell *s = rq__shell_of(mrb);
    rq__shell_check_interrupt(mrb);
    if (s->client == NULL) connect_client(mrb, s);
    return s->client;
}

/* Wire.visit(zookeeper, root): calls go to this cluster until Wire.leave. */
static mrb_value visit(mrb_state *mrb, mrb_value self)
{
    const char *where, *root;
    rq_error why = {.code = RQ_OK};
    rq_client *peer = NULL;
    rq_op *op = NULL;
    (void)self;
    mrb_get_args(mrb, "zz", &where, &root);
    rq__shell *s = rq__shell_of(mrb);
    (void)rq__shell_client(mrb);
    if (s->home != NULL) mrb_raise(mrb, E_RUNTIME_ERROR, "already connected to another cluster");
    if (strlen(where) >= sizeof s->away || strlen(root) >= sizeof s->away_root)
        mrb_raise(mrb, E_ARGUMENT_ERROR, "the cluster key is too long");
    memcpy(s->away, where, strlen(where) + 1);
    memcpy(s->away_root, root, strlen(root) + 1);
    rq__display_wait_begins(s);
    rq_client_options there = s->where;
    there.zookeeper = s->away;
    there.zk_root = s->away_root;
    there.bootstrap = NULL;
    rq_err rc = rq_client_open(&there, &peer, &why);
    if (rc == RQ_OK) rc = rq_op_new(peer, 0, s, &op);
    if (rc != RQ_OK) {
        rq_client_close(peer);
        rq__shell_check_interrupt(mrb);
        const char *text = why.message[0] != '\0' ? why.message : rq_err_text(rc);
        rq__raise_failure(mrb, rc, "java.io.IOException", rq_slice_cstr(text), false);
    }
    s->home = s->client;
    s->home_op = s->op;
    s->client = peer;
    s->op = op;
    return mrb_nil_value();
}

static mrb_value leave(mrb_state *mrb, mrb_value self)
{
    (void)self;
    go_home(rq__shell_of(mrb));
    return mrb_nil_value();
}

/* Wire.call(host, port, service, method, message) → the response's message. host nil: the master. */
static mrb_value call(mrb_state *mrb, mrb_value self)
{
    mrb_value host, service, method, message;
    mrb_int port;
    rq_client_failure failure;
    (void)self;
    mrb_get_args(mrb, "oiSSS", &host, &port, &service, &method, &message);
    rq__shell *s = rq__shell_of(mrb);
    rq_client *c = rq__shell_client(mrb);
    const rq_client_target to = {.host = mrb_nil_p(host) ? (rq_slice){0} : rq__slice_of(host),
                                 .port = (uint16_t)port,
                                 .service = mrb_string_value_cstr(mrb, &service)};
    rq_buf_reset(&s->answer);
    rq__display_wait_begins(s);
    rq_err rc = rq_client_call(c, &to, mrb_string_value_cstr(mrb, &method), rq__slice_of(message),
                               &s->interrupted, &s->answer, &failure);
    rq__shell_check_interrupt(mrb);
    if (rc == RQ_E_CALL_TIMEOUT && failure.java_class[0] == '\0') rq__raise_silence(mrb);
    if (rc != RQ_OK)
        rq__raise_failure(mrb, rc, failure.java_class,
                          rq_slice_cstr(failure.text[0] != '\0' ? failure.text : rq_err_text(rc)),
                          failure.retry);
    return mrb_str_new(mrb, (const char *)s->answer.ptr, (mrb_int)s->answer.len);
}

/* Wire.pause(seconds): as Kernel#sleep, and ends with Interrupt. */
static mrb_value pause_for(mrb_state *mrb, mrb_value self)
{
    mrb_float seconds;
    (void)self;
    mrb_get_args(mrb, "f", &seconds);
    if (!(seconds < PAUSE_MAX_S)) seconds = PAUSE_MAX_S; /* NaN, too */
    (void)rq__display_written(); /* what was printed before a sleep is seen, in a pipe too */
    int64_t until = rq_client_now_ns() + (int64_t)(seconds * 1e9);
    for (int64_t left; (left = until - rq_client_now_ns()) > 0;) {
        rq__shell_check_interrupt(mrb);
        if (left > 100000000) left = 100000000;
        rq_clock_sleep_ns((uint64_t)left);
    }
    rq__shell_check_interrupt(mrb);
    return mrb_nil_value();
}

/* Wire.go_on: true; raises Interrupt after Ctrl-C. Called in loops, so that Ctrl-C also ends Ruby code
 * that makes no call. */
static mrb_value go_on(mrb_state *mrb, mrb_value self)
{
    (void)self;
    rq__shell_check_interrupt(mrb);
    return mrb_true_value();
}

static mrb_value master_address(mrb_state *mrb, mrb_value self)
{
    uint16_t port;
    (void)self;
    const char *host = rq_client_master_host(rq__shell_client(mrb), &port);
    return mrb_format(mrb, "%s:%d", host, (int)port);
}

/* The address of the session's registry, in the form of the official shell's setting
 * hbase.zookeeper.quorum. */
static mrb_value registry(mrb_state *mrb, mrb_value self)
{
    rq__shell *s = rq__shell_of(mrb);
    (void)self;
    (void)rq__shell_client(mrb);
    return mrb_str_new_cstr(mrb,
                            s->where.zookeeper != NULL ? s->where.zookeeper : s->where.bootstrap);
}

void rq__define_calls(mrb_state *mrb)
{
    struct RClass *wire = mrb_module_get(mrb, "Wire");
    mrb_define_module_function(mrb, wire, "call", call, MRB_ARGS_REQ(5));
    mrb_define_module_function(mrb, wire, "visit", visit, MRB_ARGS_REQ(2));
    mrb_define_module_function(mrb, wire, "leave", leave, MRB_ARGS_NONE());
    mrb_define_module_function(mrb, wire, "go_on", go_on, MRB_ARGS_NONE());
    mrb_define_module_function(mrb, wire, "pause", pause_for, MRB_ARGS_REQ(1));
    mrb_define_module_function(mrb, wire, "master_address", master_address, MRB_ARGS_NONE());
    mrb_define_module_function(mrb, wire, "registry", registry, MRB_ARGS_NONE());
    mrb_define_class(mrb, "HBaseError", mrb_class_get(mrb, "StandardError"));
    mrb_define_class(mrb, "Interrupt", mrb->eException_class);
}
