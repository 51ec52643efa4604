/* SPDX-License-Identifier: Apache-2.0 */
/* The server object: services, workers, start and end. Contract in server.h. */
#include "rpc/rpc_priv.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

#define OUT_BYTES_MAX ((size_t)4 << 20)

/* --- services --------------------------------------------------------------------------------- */

static int method_order(const void *a, const void *b)
{
    const rq_rpc_method *const *x = a;
    const rq_rpc_method *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static rq_err index_service(const rq_rpc_service *service, rq_rpc_service_index *ret)
{
    ret->service = *service;
    ret->methods = calloc(service->method_count + 1, sizeof *ret->methods);
    if (ret->methods == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < service->method_count; i++)
        ret->methods[i] = &service->methods[i];
    qsort(ret->methods, service->method_count, sizeof *ret->methods, method_order);
    return RQ_OK;
}

const rq_rpc_service_index *rq__server_service(const rq_rpc_server *s, const char *name)
{
    for (size_t i = 0; i < s->options.service_count; i++)
        if (strcmp(s->services[i].service.name, name) == 0) return &s->services[i];
    return NULL;
}

const rq_rpc_method *rq__service_method(const rq_rpc_service_index *s, rq_slice name)
{
    size_t low = 0, high = s->service.method_count;
    while (low < high) {
        size_t mid = (low + high) / 2;
        int c = rq_slice_compare(name, rq_slice_cstr(s->methods[mid]->name));
        if (c == 0) return s->methods[mid];
        if (c < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
}

const char *rq__server_address(const rq_rpc_server *s, char buf[RQ_ADDRESS_MAX])
{
    return rq_host_port(s->host, atomic_load(&s->port), buf);
}

/* Threads of RQ_POOL_WORK, which procedures need, too. */
#define PACKERS 1

/* --- start ------------------------------------------------------------------------------------ */

static void server_free(rq_rpc_server *s)
{
    for (size_t i = 0; s->services != NULL && i < s->options.service_count; i++)
        free(s->services[i].methods);
    free(s->services);
    free(s->method_calls);
    free(s->cluster_id);
    for (unsigned i = 0; i < s->worker_count; i++) {
        rq_rpc_worker *w = &s->workers[i];
        rq__call_pool_clear(w);
        rq_chunk_pool_clear(&w->chunks);
        rq_buf_clear(&w->encoded);
        rq_buf_clear(&w->packed);
    }
    rq_pool_share_destroy(&s->packers);
    free(s);
}

static void defaults(rq_rpc_server_options *o)
{
    if (o->request_bytes_max == 0) o->request_bytes_max = RQ_RPC_REQUEST_BYTES_MAX;
    if (o->min_timeout_ms == 0) o->min_timeout_ms = RQ_RPC_MIN_TIMEOUT_MS;
    if (o->out_bytes_max == 0) o->out_bytes_max = OUT_BYTES_MAX;
}

/* Four connections that read nothing must not fill the budget. */
static size_t share_of(const rq_rpc_server_options *o)
{
    size_t part = o->unread == NULL ? o->out_bytes_max : rq_budget_max(o->unread) / 5;
    return part < o->out_bytes_max ? part : o->out_bytes_max;
}

static rq_err server_fill(rq_rpc_server *s, const rq_rpc_server_options *options)
{
    s->options = *options;
    s->options.services = NULL;
    defaults(&s->options);
    rq_pool_share_init(&s->packers, options->executor, RQ_POOL_WORK, PACKERS);
    s->has_packers = options->executor != NULL;
    s->share = share_of(&s->options);
    for (unsigned i = 0; i < rq_loops_count(options->loops); i++, s->worker_count++) {
        rq_rpc_worker *w = &s->workers[i];
        w->server = s;
        w->loop = rq_loops_get(options->loops, i);
        w->chunks.budget = options->budget;
        w->sample = RQ_SAMPLE_MASK_FIRST;
    }
    if (options->cluster_id != NULL) {
        s->cluster_id = strdup(options->cluster_id);
        if (s->cluster_id == NULL) return RQ_E_NO_MEMORY;
    }
    s->services = calloc(options->service_count + 1, sizeof *s->services);
    if (s->services == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < options->service_count; i++) {
        s->services[i].first_method = s->method_count;
        RQ_TRY(index_service(&options->services[i], &s->services[i]));
        s->method_count += options->services[i].method_count;
    }
    s->method_calls = calloc(s->worker_count * s->method_count + 1, sizeof *s->method_calls);
    if (s->method_calls == NULL) return RQ_E_NO_MEMORY;
    for (unsigned i = 0; i < s->worker_count; i++)
        s->workers[i].method_calls = &s->method_calls[i * s->method_count];
    return RQ_OK;
}

static rq_err listen_on(rq_rpc_server *s, const rq_rpc_server_options *options, rq_error *why)
{
    static const char *const loopback[] = {"127.0.0.1"};
    unsigned count = options->address_count;
    const char *const *addresses = count == 0 ? loopback : options->addresses;
    if (count == 0) count = 1;
    if (count > RQ_RPC_ADDRESSES_MAX)
        return rq_fail(why, RQ_E_INVALID, "the RPC server has too many addresses to listen on");
    snprintf(s->host, sizeof s->host, "%s", addresses[0]);
    for (; s->listener_count < count; s->listener_count++) {
        rq_listener_options l = {
            .address = addresses[s->listener_count],
            .only_v6 = count > 1,
            .port = options->port,
            .events = &rq_conn_events,
            .ctx = s,
            .connections_max = options->connections_max,
            .transform = options->transform,
        };
        RQ_TRY(rq_listener_open(options->loops, &l, &s->listeners[s->listener_count], why));
    }
    atomic_store(&s->port, rq_listener_port(s->listeners[0]));
    return RQ_OK;
}

static void close_listeners(rq_rpc_server *s)
{
    for (unsigned i = 0; i < s->listener_count; i++)
        rq_listener_close(s->listeners[i]);
}

static void stop_listeners(rq_rpc_server *s, bool streams)
{
    for (unsigned i = 0; i < s->listener_count; i++)
        rq_listener_stop(s->listeners[i], streams);
}

static unsigned connections(const rq_rpc_server *s)
{
    unsigned n = 0;
    for (unsigned i = 0; i < s->listener_count; i++)
        n += rq_listener_connections(s->listeners[i]);
    return n;
}

/* Read in this order, the second is not below the first. */
static uint64_t in_flight_of(const rq_rpc_worker *w)
{
    uint64_t ended = atomic_load_explicit(&w->counters.ended, memory_order_acquire);
    return atomic_load_explicit(&w->counters.calls, memory_order_relaxed) - ended;
}

static uint64_t calls_in_flight(const rq_rpc_server *s)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < s->worker_count; i++)
        n += in_flight_of(&s->workers[i]);
    return n;
}

rq_err rq_rpc_server_open(const rq_rpc_server_options *options, rq_rpc_server **ret, rq_error *why)
{
    size_t loops = rq_loops_count(options->loops);
    rq_rpc_server *s = calloc(1, sizeof *s + loops * sizeof s->workers[0]);
    if (s == NULL) return RQ_E_NO_MEMORY;
    rq_err rc = server_fill(s, options);
    if (rc == RQ_OK) rc = listen_on(s, options, why);
    if (rc != RQ_OK) {
        close_listeners(s);
        server_free(s);
        return rc;
    }
    *ret = s;
    return RQ_OK;
}

uint16_t rq_rpc_server_port(const rq_rpc_server *s)
{
    return rq_listener_port(s->listeners[0]);
}

rq_listener *rq_rpc_server_listener(rq_rpc_server *s)
{
    return s->listeners[0];
}

/* --- end -------------------------------------------------------------------------------------- */

static void sleep_1_ms(void)
{
    rq_clock_sleep_ns(1000000);
}

/* Makes responses that wait for memory stop waiting. */
static void wake_waiting_answers(rq_rpc_server *s)
{
    if (s->options.answers != NULL) rq_budget_wake_all(s->options.answers);
    if (s->options.unread != NULL) rq_budget_wake_all(s->options.unread);
}

bool rq_rpc_server_drain(rq_rpc_server *s, unsigned timeout_ms)
{
    atomic_store(&s->draining, true);
    stop_listeners(s, false);
    unsigned waited = 0;
    for (; calls_in_flight(s) > 0 && waited < timeout_ms; waited++) {
        if (waited % 100 == 0)
            wake_waiting_answers(s); /* a call may have begun to wait just
                                                         * before */
        sleep_1_ms();
    }
    if (calls_in_flight(s) > 0) return false; /* their answers need the connections */
    stop_listeners(s, true);
    for (; connections(s) > 0 && waited < timeout_ms; waited++)
        sleep_1_ms();
    return connections(s) == 0;
}

void rq_rpc_server_close(rq_rpc_server *s)
{
    if (s == NULL) return;
    atomic_store(&s->draining, true);
    close_listeners(s);
    while (calls_in_flight(s) > 0)
        sleep_1_ms();
    rq_loops_sync(s->options.loops); /* the last call's loop may still be leaving it */
    server_free(s);
}

rq_rpc_stats rq_rpc_server_stats(const rq_rpc_server *s)
{
    rq_rpc_stats t = {.connections = connections(s)};
    for (unsigned i = 0; i < s->worker_count; i++) {
        const rq_rpc_counters *c = &s->workers[i].counters;
        t.calls += atomic_load_explicit(&c->calls, memory_order_relaxed);
        t.exceptions += atomic_load_explicit(&c->exceptions, memory_order_relaxed);
        t.dropped += atomic_load_explicit(&c->dropped, memory_order_relaxed);
        t.bytes_in += atomic_load_explicit(&c->bytes_in, memory_order_relaxed);
        t.bytes_out += atomic_load_explicit(&c->bytes_out, memory_order_relaxed);
        t.refused += atomic_load_explicit(&c->refused, memory_order_relaxed);
        t.calls_in_flight += in_flight_of(&s->workers[i]);
    }
    return t;
}

void rq__worker_count_error(rq_rpc_worker *w, const char *java_class)
{
    rq__counter_add(&w->counters.exceptions, 1);
    for (size_t i = 0; i < RQ__ERROR_CLASSES; i++) {
        rq__error_count *e = &w->errors[i];
        const char *known = atomic_load_explicit(&e->java_class, memory_order_relaxed);
        if (known == NULL) atomic_store_explicit(&e->java_class, java_class, memory_order_release);
        if (known != NULL && known != java_class && strcmp(known, java_class) != 0) continue;
        rq__counter_add(&e->count, 1);
        return;
    }
}

void rq_rpc_server_each_method(const rq_rpc_server *s,
                               void (*each)(void *ctx, const char *service, const char *method,
                                            uint64_t calls),
                               void *ctx)
{
    for (size_t i = 0; i < s->options.service_count; i++) {
        const rq_rpc_service_index *x = &s->services[i];
        for (size_t m = 0; m < x->service.method_count; m++) {
            uint64_t calls = 0;
            for (unsigned k = 0; k < s->worker_count; k++)
                calls += atomic_load_explicit(&s->workers[k].method_calls[x->first_method + m],
                                              memory_order_relaxed);
            each(ctx, x->service.name, x->service.methods[m].name, calls);
        }
    }
}

void rq_rpc_server_each_error(const rq_rpc_server *s,
                              void (*each)(void *ctx, const char *java_class, uint64_t count),
                              void *ctx)
{
    for (unsigned i = 0; i < s->worker_count; i++) {
        const rq__error_count *e = s->workers[i].errors;
        const char *name;
        for (size_t k = 0; k < RQ__ERROR_CLASSES &&
                           (name = atomic_load_explicit(&e[k].java_class, memory_order_acquire));
             k++)
            each(ctx, name, atomic_load_explicit(&e[k].count, memory_order_relaxed));
    }
}

void rq_rpc_server_times(const rq_rpc_server *s, rq_times_sum *queue, rq_times_sum *process,
                         rq_times_sum *total)
{
    for (unsigned i = 0; i < s->worker_count; i++) {
        rq_times_read(&s->workers[i].queue_times, queue);
        rq_times_read(&s->workers[i].process_times, process);
        rq_times_read(&s->workers[i].total_times, total);
    }
}
