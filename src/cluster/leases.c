/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds servers that alone do not reach the shared storage. The master still hears them, but they answer no client,
 * because their leases (vfs/shared.h) have expired. See rq_remote_unleased.
 *
 *   valid ── a report says: expired ──► counted ── the limit ──► given up
 *     ▲─── a report says: valid ───────────┘
 *
 *  1. A server's report says whether the server's lease is valid, and if not, for how long it has been expired by the
 *     server's clock. The master counts the time itself, from the first report of an expired lease on, in steps from one
 *     look (a call of rq_remote_unleased) to the next, as it counts silence (silence.c, rule 1). A step is at most a sixth
 *     of the limit, and so is the time that the first report adds. Each report caps the count at the time in the report,
 *     so the count begins anew if the lease was valid between two reports.
 *  2. A report is believed for half of the limit. After that the server's lease counts neither as valid nor as expired,
 *     and its count rests, because the lease may be valid again; the server is found by its silence. Servers of older
 *     builds, whose reports do not mention leases, are treated the same way.
 *  3. If the storage answers nobody, all leases expire, and no server is at fault. So servers are given up only while the
 *     master's own lease and those of at least half of all servers, the master included, are valid. Otherwise counts go
 *     up to half of the limit only: servers that reach the storage again later than others have the other half.
 *  4. If the master's own lease has been expired for the limit while most of the other servers report valid ones, the
 *     master is the one that is cut off. While too few report valid ones, its count goes up to half of the limit only.
 *  5. Of two servers the master may give up the other one (rule 3) or itself (rule 4). It does neither for silence
 *     (silence.c, rule 8), because silence does not tell which of the two is cut off; a lease does.
 *  6. Counts are not stored. A later master counts anew.
 *  7. After more than half of the limit without a look, all counts are capped at half of the limit: the master's process
 *     was paused, or its keeper was blocked, and reports of valid leases may be queued.
 */
#include "cluster/remote_priv.h"

/* --- all REQUIRE: lock held ------------------------------------------------------------------- */

static void cap_ms(uint64_t *ns, uint64_t max_ms)
{
    if (max_ms < *ns / 1000000 + 1) rq__cap(ns, max_ms * 1000000);
}

static uint64_t since_look_ns(const rq_remote *m)
{
    uint64_t now_ns = m->o.env->executor->now_ns(m->o.env->executor);
    return m->leases_looked_ns == 0 ? 0 : now_ns - m->leases_looked_ns;
}

static uint64_t since_look_ms(const rq_remote *m)
{
    uint64_t ns = since_look_ns(m);
    return (ns < m->lease_step_ns ? ns : m->lease_step_ns) / 1000000;
}

void rq__note_lease(rq_remote *m, const rq_server_name *from, const uint64_t *expired_ms)
{
    rq__server *s = rq__server_find(m, from);
    if (s == NULL) return;
    bool was_expired = s->lease == RQ__LEASE_EXPIRED;
    s->lease = expired_ms == NULL ? RQ__LEASE_UNKNOWN
               : *expired_ms == 0 ? RQ__LEASE_VALID
                                  : RQ__LEASE_EXPIRED;
    if (!was_expired) s->unleased_ns = m->lease_step_ns;
    /* The count as of the last look: the next look adds the time since then. */
    uint64_t ms = s->lease == RQ__LEASE_EXPIRED ? *expired_ms : 0, since_ms = since_look_ms(m);
    cap_ms(&s->unleased_ns, ms > since_ms ? ms - since_ms : 0);
}

static bool says(const rq_remote *m, const rq__server *s, const rq_silence_limits *l,
                 rq__lease_state lease)
{
    return !rq__server_is_home(m, s) && s->lease == lease && s->unreported_ns < l->silent_ns / 2;
}

static void count_time(rq_remote *m, const rq_silence_limits *l, uint64_t own_expired_ms,
                       uint64_t step)
{
    for (rq__server *s = m->up.first; s != NULL; s = s->next)
        if (says(m, s, l, RQ__LEASE_EXPIRED)) s->unleased_ns += step;
    m->unleased_ns += step;
    cap_ms(&m->unleased_ns, own_expired_ms);
}

/* Counts the servers in other processes that report valid leases; *ret_others: all servers in other processes. */
static size_t count_valid(const rq_remote *m, const rq_silence_limits *l, size_t *ret_others)
{
    size_t valid = 0;
    *ret_others = 0;
    for (const rq__server *s = m->up.first; s != NULL; s = s->next) {
        *ret_others += !rq__server_is_home(m, s);
        valid += says(m, s, l, RQ__LEASE_VALID);
    }
    return valid;
}

/* By rules 3, 4 and 7. */
static void cap_counts(rq_remote *m, const rq_silence_limits *l, bool own_is_valid, bool is_late)
{
    size_t others, valid = count_valid(m, l, &others);
    bool enough = !is_late && own_is_valid && 2 * (valid + 1) >= others + 1;
    bool most = !is_late && 2 * valid > others;
    for (rq__server *s = m->up.first; s != NULL && !enough; s = s->next)
        rq__cap(&s->unleased_ns, l->silent_ns / 2);
    if (!most) rq__cap(&m->unleased_ns, l->silent_ns / 2);
}

static rq_err list_unleased(const rq_remote *m, const rq_silence_limits *l, rq_arena *arena,
                            rq_leases *ret)
{
    ret->servers = rq_arena_calloc(arena, m->server_count + 1, sizeof *ret->servers);
    if (ret->servers == NULL) return RQ_E_NO_MEMORY;
    for (const rq__server *s = m->up.first; s != NULL; s = s->next)
        if (says(m, s, l, RQ__LEASE_EXPIRED) && s->unleased_ns >= l->silent_ns)
            ret->servers[ret->count++] = rq_server_name_ref(s->name);
    return RQ_OK;
}

static const rq_server_name *find_witness(const rq_remote *m, const rq_silence_limits *l)
{
    const rq__server *s = m->up.first;
    while (s != NULL && !says(m, s, l, RQ__LEASE_VALID))
        s = s->next;
    return s == NULL ? NULL : rq_server_name_ref(s->name);
}

/* ---------------------------------------------------------------------------------------------- */

rq_err rq_remote_unleased(rq_remote *m, const rq_silence_limits *limits, uint64_t own_expired_ms,
                          rq_arena *arena, rq_leases *ret)
{
    *ret = (rq_leases){0};
    pthread_mutex_lock(&m->lock);
    m->lease_step_ns = limits->silent_ns / 6;
    bool is_late = since_look_ns(m) > limits->silent_ns / 2; /* rule 7 */
    uint64_t step = rq__remote_step(m, &m->leases_looked_ns, m->lease_step_ns);
    count_time(m, limits, own_expired_ms, step);
    cap_counts(m, limits, own_expired_ms == 0, is_late);
    rq_err rc = list_unleased(m, limits, arena, ret);
    if (m->unleased_ns >= limits->silent_ns) ret->witness = find_witness(m, limits);
    pthread_mutex_unlock(&m->lock);
    return rc;
}

void rq_remote_own_lease_counts_anew(rq_remote *m)
{
    pthread_mutex_lock(&m->lock);
    m->unleased_ns = 0;
    pthread_mutex_unlock(&m->lock);
}
