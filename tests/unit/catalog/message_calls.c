/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated network with the master's and the server's end; see message_calls.h. */
#include "message_calls.h"

#include "../base/unit.h"
#include "cluster/orders.h"
#include "cluster/remote.h"

/* What the network does with a message. */
typedef enum fate { ARRIVES, ARRIVES_TWICE, IS_LOST, ANSWER_IS_LOST } fate;

typedef struct packet {
    struct packet *next;
    message_calls *owner;
    rq_timer timer;
    fate fate;
    rq_remote_request *order; /* `order` or `report` is set */
    rq_report *report;
} packet;

struct message_calls {
    rq_sim *sim;
    rq_executor *executor;
    rq_lane *lane;
    rq_orders *orders;
    rq_remote *remote;
    const rq_server_name *from; /* points to the host's name */
    packet *packets;
    bool down;
};

static fate some_fate(message_calls *m)
{
    uint64_t r = rq_sim_random(m->sim) % 16;
    return r == 0 ? IS_LOST : r == 1 ? ANSWER_IS_LOST : r == 2 ? ARRIVES_TWICE : ARRIVES;
}

static void unlink_packet(const packet *p)
{
    packet **at = &p->owner->packets;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
}

static rq_err deliver_once(packet *p, rq_error *why)
{
    message_calls *m = p->owner;
    if (p->order != NULL) return rq_orders_execute(m->orders, p->order->request, why);
    if (strcmp(p->report->method, "ReportProcedureDone") == 0)
        return rq_remote_procedures_done(m->remote, m->from, p->report->request, why);
    return rq_remote_transitions(m->remote, m->from, p->report->request, why);
}

static void answer(packet *p, rq_err rc, const rq_error *why)
{
    if (p->order != NULL)
        p->order->done(p->order, rc, why);
    else
        p->report->done(p->report, rc);
    free(p);
}

static void due(rq_task *task)
{
    packet *p = RQ_CONTAINER_OF(RQ_CONTAINER_OF(task, rq_timer, task), packet, timer);
    rq_error why = {0};
    rq_err rc = RQ_E_IO;
    unlink_packet(p);
    if (p->fate != IS_LOST) rc = deliver_once(p, &why);
    if (p->fate == ARRIVES_TWICE) rc = deliver_once(p, &why);
    if (p->fate == ANSWER_IS_LOST) rc = RQ_E_IO;
    answer(p, rc, &why);
}

static void post(message_calls *m, rq_remote_request *order, rq_report *report)
{
    packet *p = calloc(1, sizeof *p);
    assert_non_null(p);
    *p = (packet){.next = m->packets,
                  .owner = m,
                  .fate = some_fate(m),
                  .order = order,
                  .report = report,
                  .timer.task.run = due};
    if (m->down) {
        answer(p, RQ_E_IO, NULL);
        return;
    }
    m->packets = p;
    m->executor->timer_arm(m->executor, &p->timer, m->lane, rq_sim_random(m->sim) % 20000000);
}

static void send_order(void *ctx, rq_remote_request *r)
{
    post(ctx, r, NULL);
}

static void send_report(void *ctx, rq_report *r)
{
    post(ctx, NULL, r);
}

static void stop(void *ctx)
{
    message_calls *m = ctx;
    rq_region_calls calls = rq_remote_calls(m->remote);
    calls.stop(calls.ctx);
    m->down = true;
    while (m->packets != NULL) {
        packet *p = m->packets;
        if (!m->executor->timer_cancel(m->executor, &p->timer)) {
            rq_sim_run(m->sim); /* the message is due */
            continue;
        }
        unlink_packet(p);
        answer(p, RQ_E_IO, NULL);
    }
    rq_orders_stop(m->orders);
}

message_calls *message_calls_new(rq_sim *sim, rq_host *host, int64_t master_ms)
{
    message_calls *m = calloc(1, sizeof *m);
    assert_non_null(m);
    m->sim = sim;
    m->from = rq_host_name(host);
    m->executor = rq_sim_env(sim)->executor;
    assert_int_equal(rq_sim_lane_new(sim, &m->lane), RQ_OK);
    const rq_orders_options orders = {.host = host, .report = send_report, .ctx = m};
    const rq_remote_options remote = {
        .env = rq_sim_env(sim), .master_ms = master_ms, .send = send_order, .ctx = m};
    assert_int_equal(rq_orders_new(&orders, &m->orders), RQ_OK);
    assert_int_equal(rq_remote_new(&remote, &m->remote), RQ_OK);
    assert_int_equal(rq_remote_server_up(m->remote, m->from, NULL), RQ_OK);
    return m;
}

static void send_calls(void *ctx, rq_region_call_kind kind, rq_region_call *list, size_t count)
{
    rq_region_calls calls = rq_remote_calls(((message_calls *)ctx)->remote);
    calls.send(calls.ctx, kind, list, count);
}

static bool load(void *ctx, const rq_server_name *server, const rq_region_info *info,
                 rq_region_load *ret)
{
    rq_region_calls calls = rq_remote_calls(((message_calls *)ctx)->remote);
    return calls.load(calls.ctx, server, info, ret);
}

static const rq_server_name *place(void *ctx, const rq_region_info *info,
                                   const rq_server_name *last)
{
    rq_region_calls calls = rq_remote_calls(((message_calls *)ctx)->remote);
    return calls.place(calls.ctx, info, last);
}

rq_region_calls message_calls_table(message_calls *m)
{
    return (rq_region_calls){
        .send = send_calls, .load = load, .place = place, .stop = stop, .ctx = m};
}

void message_calls_free(message_calls *m)
{
    if (m == NULL) return;
    assert_null(m->packets);
    rq_orders_free(m->orders);
    rq_remote_free(m->remote);
    m->executor->lane_free(m->executor, m->lane);
    free(m);
}
