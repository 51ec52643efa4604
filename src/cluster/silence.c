/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers that are not heard: cut off from the master, or hanging, though their sessions in ZooKeeper live; see
 * rq_remote_silent.
 *
 *   heard ── a quarter of the limit ──► probed, again and again ── the limit ──► silent
 *     ▲────────── a report, or the answer to a probe ───────────────────┘
 *
 *  1. Silence is counted in steps, from one look to the next, and a step is an eighth of the limit at most. So a master
 *     that was paused itself does not take the pause for the silence of others, and several looks pass between the first
 *     probe and the end of the limit. No other machine's clock is read.
 *  2. A server counts as heard only below half of the limit. A master that is cut off stops hearing all servers at about
 *     the same time: each was heard a quarter of the limit ago at most, plus the way of a probe, because it is probed
 *     from then on. So before the first of them reaches the limit, the others are past half of it.
 *  3. Servers between half of the limit and the limit are neither heard nor silent.
 *  4. While too few servers are heard, silence is counted to half of the limit only. So those that are heard again later
 *     than the others, when the master is connected again, are not taken for silent.
 */
#include "cluster/remote_priv.h"

#include <stdlib.h>
#include <string.h>

/* A message without orders, until its answer. */
typedef struct probe {
    struct probe *next; /* of those that are to be sent */
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
    if (s != NULL && rc == RQ_OK) s->silent_ns = 0;
    pthread_mutex_unlock(&m->lock);
    probe_free(p);
}

/* Without memory it is tried at the next look. REQUIRES: lock held. */
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

static bool is_home(const rq_remote *m, const rq__server *s)
{
    return m->o.home != NULL && strcmp(s->name->text, m->o.home->text) == 0;
}

static void count_silence(rq_remote *m, uint64_t limit_ns, probe **list)
{
    uint64_t now = m->o.env->executor->now_ns(m->o.env->executor);
    uint64_t step = m->looked_ns == 0 ? 0 : now - m->looked_ns;
    if (step > limit_ns / 8) step = limit_ns / 8;
    m->looked_ns = now;
    for (rq__server *s = m->servers; s != NULL; s = s->next) {
        if (is_home(m, s)) continue;
        s->silent_ns += step;
        if (s->silent_ns >= limit_ns / 4 && !s->is_probed) add_probe(m, s, list);
    }
}

/* Half of all servers, and one beside the master's. */
static bool hears_enough(const rq_remote *m, uint64_t limit_ns)
{
    size_t heard = 0, others = 0;
    for (const rq__server *s = m->servers; s != NULL; s = s->next) {
        bool home = is_home(m, s), hears = home || s->silent_ns < limit_ns / 2;
        heard += hears;
        others += hears && !home;
    }
    return others > 0 && 2 * heard >= m->server_count;
}

/* Returns how many servers are not heard. */
static size_t count_again_from_half(rq_remote *m, uint64_t limit_ns)
{
    size_t count = 0;
    for (rq__server *s = m->servers; s != NULL; s = s->next) {
        if (s->silent_ns < limit_ns / 2) continue;
        s->silent_ns = limit_ns / 2;
        count++;
    }
    return count;
}

/* Logs once, until enough servers are heard again, that this master may be cut off. */
static void note_loneliness(rq_remote *m, size_t unheard)
{
    if (unheard > 0 && !m->is_lonely)
        rq_log_warn(m->o.env->log, "cluster",
                    "%zu of %zu servers are not heard, and too few others are: this master may be "
                    "cut off itself, so it takes no regions from them",
                    unheard, m->server_count);
    m->is_lonely = unheard > 0;
}

static rq_err list_silent(const rq_remote *m, uint64_t limit_ns, rq_arena *arena,
                          const rq_server_name ***ret, size_t *ret_count)
{
    *ret = rq_arena_calloc(arena, m->server_count + 1, sizeof **ret);
    if (*ret == NULL) return RQ_E_NO_MEMORY;
    for (const rq__server *s = m->servers; s != NULL; s = s->next)
        if (s->silent_ns >= limit_ns) (*ret)[(*ret_count)++] = rq_server_name_ref(s->name);
    return RQ_OK;
}

rq_err rq_remote_silent(rq_remote *m, uint64_t limit_ns, rq_arena *arena,
                        const rq_server_name ***ret, size_t *ret_count)
{
    probe *probes = NULL;
    *ret_count = 0;
    pthread_mutex_lock(&m->lock);
    if (!m->stopping) count_silence(m, limit_ns, &probes);
    note_loneliness(m, hears_enough(m, limit_ns) ? 0 : count_again_from_half(m, limit_ns));
    rq_err rc = list_silent(m, limit_ns, arena, ret, ret_count);
    pthread_mutex_unlock(&m->lock);
    send_probes(m, probes);
    return rc;
}
