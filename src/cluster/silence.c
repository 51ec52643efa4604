/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds servers that are not heard any more although their sessions in ZooKeeper live (they are cut off from the master,
 * or hang), and servers whose processes have ended before their sessions. See rq_remote_silent.
 *
 *   heard ── a quarter of the limit ──► probed, again and again ── the limit ──► silent
 *     ▲────────── a report, or the answer to a probe ───────────────────┘
 *
 *  1. Silence is counted in steps, from one look (a call of rq_remote_silent) to the next. A step is at most an eighth
 *     of the limit. So a master that was paused itself does not take the pause for the silence of others, and several
 *     looks pass between the first probe and the end of the limit. No other machine's clock is read.
 *  2. A server counts as heard while its silence is below half of the limit. A master that is cut off stops hearing all
 *     servers at about the same time: the last message of each came at most a quarter of the limit before, plus the
 *     time of a probe, because a server that is silent for longer is probed. So when the first server reaches the
 *     limit, the others are past half of it and do not count as heard.
 *  3. Servers between half of the limit and the limit are neither heard nor silent.
 *  4. While too few servers are heard, silence is counted up to half of the limit only. So when the master is connected
 *     again, servers that are heard again later than others are not taken for silent.
 *  5. A server is of use only if messages pass both ways: without orders it opens no region, and without its reports
 *     the master does not learn of it. A server that is heard one way only (reports or answers) is given up after the
 *     limit one_way_ns. This limit is at least twice as long, because making a new connection, or reports that are late
 *     because a pool of threads is busy, must not look like this. Rules 2 to 4 apply with this limit and the number of
 *     servers that are heard both ways, because the master itself may be cut off one way.
 *  6. A master is cut off if it has heard too few servers for the limit, counted from the look that found this; or too
 *     few both ways for half of one_way_ns. So this is found one and a half limits after the last message, or
 *     one_way_ns after the last message of one way. By then the sessions of servers that have ended are over, and these
 *     servers are not counted any more.
 *  7. A server whose process has ended is given up at once, however few servers are heard. The signs: it has closed all
 *     its connections, as the system does for a process that ends in any way; then its address has refused a connection
 *     at two looks in a row, and no message came in between. A running process has a listener, which refuses nobody, even
 *     if its queue is full, the process has no descriptors left, gets no processor time or is stopped. A process started
 *     again at the address has a listener, too, and is another server by its start code. A server that ends in order
 *     says so before it closes its port. A firewall that refuses connections both ways, instead of dropping packets,
 *     looks like an end.
 *  8. Of two servers neither can tell which one is cut off. So the master neither gives up the other server (except by
 *     rule 7) nor leaves its own role. If the other server became the master, it would be cut off as well, and the role
 *     would go to and fro.
 */
#include "cluster/remote_priv.h"

#include <stdlib.h>
#include <string.h>

/* A message without orders, until its answer. */
typedef struct probe {
    struct probe *next; /* in the list of probes to send */
    rq_remote *owner;
    const rq_server_name *server; /* a reference */
    rq_remote_request request;
} probe;

/* --- probes ----------------------------------------------------------------------------------- */

static void probe_free(probe *p)
{
    rq_server_name_unref(p->server);
    free(p);
}

static void answered(rq_remote_request *r, rq_err rc, const rq_error *why)
{
    probe *p = RQ_CONTAINER_OF(r, probe, request);
    rq_remote *m = p->owner;
    (void)why; /* the caller of rq_remote_silent logs a server that stays silent */
    pthread_mutex_lock(&m->lock);
    rq__server *s = rq__server_find(m, p->server);
    if (s != NULL) s->is_probed = false;
    if (s != NULL) s->refusals = rc != RQ_OK && r->refused ? s->refusals + 1 : 0;
    if (s != NULL && rc == RQ_OK) s->unanswered_ns = s->silent_ns = 0;
    pthread_mutex_unlock(&m->lock);
    probe_free(p);
}

/* Without memory the probe is made at the next look. REQUIRES: lock held. */
static void add_probe(rq_remote *m, rq__server *s, probe **list)
{
    probe *p = calloc(1, sizeof *p);
    if (p == NULL) return;
    p->owner = m;
    p->server = rq_server_name_ref(s->name);
    p->request = (rq_remote_request){.server = p->server, .done = answered};
    p->next = *list;
    *list = p;
    s->is_probed = true;
}

static void send_probes(rq_remote *m, probe *list)
{
    while (list != NULL) {
        probe *next = list->next; /* it may be answered before `send` returns */
        m->o.send(m->o.ctx, &list->request);
        list = next;
    }
}

/* --- counting; all REQUIRE: lock held --------------------------------------------------------- */

/* The longer one of the times since the last report and since the last answer. */
static uint64_t one_way_ns(const rq__server *s)
{
    return s->unreported_ns < s->unanswered_ns ? s->unanswered_ns : s->unreported_ns;
}

static bool is_heard(const rq__server *s, const rq_silence_limits *l)
{
    return s->silent_ns < l->silent_ns / 2;
}

static bool is_heard_both_ways(const rq__server *s, const rq_silence_limits *l)
{
    return is_heard(s, l) && one_way_ns(s) < l->one_way_ns / 2;
}

static void count_silence(rq_remote *m, uint64_t limit_ns, uint64_t step, probe **list)
{
    for (rq__server *s = m->up.first; s != NULL; s = s->next) {
        if (rq__server_is_home(m, s)) continue;
        s->silent_ns += step;
        s->unreported_ns += step;
        s->unanswered_ns += step;
        bool is_due = s->has_hung_up || s->unanswered_ns >= limit_ns / 4;
        if (is_due && !s->is_probed) add_probe(m, s, list);
    }
}

uint64_t rq__remote_step(const rq_remote *m, uint64_t *looked_ns, uint64_t max_ns)
{
    uint64_t now = m->o.env->executor->now_ns(m->o.env->executor);
    uint64_t step = *looked_ns == 0 ? 0 : now - *looked_ns;
    *looked_ns = now;
    return step < max_ns ? step : max_ns;
}

/* Whether at least half of all servers fulfil `is`, the master's own counted as such, and one of the others does. */
static bool enough(const rq_remote *m, const rq_silence_limits *l,
                   bool (*is)(const rq__server *s, const rq_silence_limits *l))
{
    size_t good = 0, others = 0;
    for (const rq__server *s = m->up.first; s != NULL; s = s->next) {
        bool home = rq__server_is_home(m, s), is_good = home || is(s, l);
        good += is_good;
        others += is_good && !home;
    }
    return others > 0 && 2 * good >= m->server_count;
}

/* Limits the counted times by rules 4 and 5. `hears`: enough servers are heard at all, so silence counts on. */
static void count_again(rq__server *s, const rq_silence_limits *l, bool hears)
{
    if (!hears) rq__cap(&s->silent_ns, l->silent_ns / 2);
    rq__cap(&s->unreported_ns, l->one_way_ns / 2);
    rq__cap(&s->unanswered_ns, l->one_way_ns / 2);
}

/* If too few servers are heard both ways, limits the counted times of the others, and returns the number of the others;
 * 0: enough servers are heard both ways. `hears`: enough are heard at all. */
static size_t spare(rq_remote *m, const rq_silence_limits *l, bool hears)
{
    size_t count = 0;
    if (enough(m, l, is_heard_both_ways)) return 0;
    for (rq__server *s = m->up.first; s != NULL; s = s->next) {
        if (rq__server_is_home(m, s) || is_heard_both_ways(s, l)) continue;
        count_again(s, l, hears);
        count++;
    }
    return count;
}

static void log_loneliness(const rq_remote *m, size_t unheard)
{
    if (m->server_count == 2)
        rq_log_warn(m->o.env->log, "cluster",
                    "messages to or from the other of two servers are lost. ZooKeeper cannot tell "
                    "which of the two is cut off: both keep their regions, and operations that "
                    "need both servers wait");
    else
        rq_log_warn(
            m->o.env->log, "cluster",
            "messages to or from %zu of %zu servers are lost, too many to assume that those "
            "servers are down: this master may be cut off itself, and takes no regions from them",
            unheard, m->server_count);
}

/* Logs once, until enough servers are heard again, that this master may be cut off. */
static void note_loneliness(rq_remote *m, size_t unheard, uint64_t step)
{
    bool lonely = unheard > 0;
    m->lonely_ns = lonely && m->is_lonely ? m->lonely_ns + step : 0;
    if (lonely && !m->is_lonely) log_loneliness(m, unheard);
    if (!lonely && m->is_lonely)
        rq_log_info(m->o.env->log, "cluster", "messages pass to and from enough servers again");
    m->is_lonely = lonely;
}

/* Counts the time since the first check that found messages from too few servers. */
static void count_deafness(rq_remote *m, bool hears, uint64_t step)
{
    m->deaf_ns = hears ? 0 : m->is_deaf ? m->deaf_ns + step : 0;
    m->is_deaf = !hears;
}

static bool is_cut_off(const rq_remote *m, const rq_silence_limits *l)
{
    return m->server_count > 2 && (m->deaf_ns >= l->silent_ns || m->lonely_ns >= l->one_way_ns / 2);
}

#define REFUSALS 2

/* By rule 7. */
static bool has_ended(const rq__server *s)
{
    return s->has_hung_up && !s->is_leaving && s->refusals >= REFUSALS;
}

static bool is_silent(const rq__server *s, const rq_silence_limits *l)
{
    return s->silent_ns >= l->silent_ns || one_way_ns(s) >= l->one_way_ns;
}

static rq_err list_silent(const rq_remote *m, const rq_silence_limits *l, rq_arena *arena,
                          rq_silence *ret)
{
    ret->servers = rq_arena_calloc(arena, m->server_count + 1, sizeof *ret->servers);
    if (ret->servers == NULL) return RQ_E_NO_MEMORY;
    for (const rq__server *s = m->up.first; s != NULL; s = s->next)
        if (has_ended(s) || is_silent(s, l))
            ret->servers[ret->count++] = (rq_silent_server){.name = rq_server_name_ref(s->name),
                                                            .unreported_ns = s->unreported_ns,
                                                            .unanswered_ns = s->unanswered_ns,
                                                            .has_ended = has_ended(s)};
    return RQ_OK;
}

rq_err rq_remote_silent(rq_remote *m, const rq_silence_limits *limits, rq_arena *arena,
                        rq_silence *ret)
{
    probe *probes = NULL;
    *ret = (rq_silence){0};
    pthread_mutex_lock(&m->lock);
    uint64_t step = rq__remote_step(m, &m->looked_ns, limits->silent_ns / 8); /* rule 1 */
    if (!m->stopping) count_silence(m, limits->silent_ns, step, &probes);
    bool hears = enough(m, limits, is_heard);
    note_loneliness(m, spare(m, limits, hears), step);
    count_deafness(m, hears, step);
    ret->is_cut_off = is_cut_off(m, limits);
    rq_err rc = list_silent(m, limits, arena, ret);
    pthread_mutex_unlock(&m->lock);
    send_probes(m, probes);
    return rc;
}

/* --- connections of servers -------------------------------------------------------------------- */

void rq_remote_connected(rq_remote *m, const rq_server_name *server)
{
    pthread_mutex_lock(&m->lock);
    rq__server *s = rq__server_find(m, server);
    if (s != NULL) s->has_hung_up = false;
    if (s != NULL) s->refusals = 0;
    pthread_mutex_unlock(&m->lock);
}

void rq_remote_hung_up(rq_remote *m, const rq_server_name *server)
{
    pthread_mutex_lock(&m->lock);
    rq__server *s = rq__server_find(m, server);
    bool news = s != NULL && !s->is_leaving && !rq__server_is_home(m, s);
    if (news) s->has_hung_up = true;
    if (news) s->refusals = 0; /* a firewall may have refused it before */
    pthread_mutex_unlock(&m->lock);
    if (news && m->o.hung_up != NULL) m->o.hung_up(m->o.ctx);
}

void rq_remote_leaving(rq_remote *m, const rq_server_name *server)
{
    pthread_mutex_lock(&m->lock);
    rq__server *s = rq__server_find(m, server);
    if (s != NULL) s->is_leaving = true;
    pthread_mutex_unlock(&m->lock);
}
