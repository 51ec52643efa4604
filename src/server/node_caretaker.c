/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The caretaker: a thread of the active master that looks every five seconds at the logs of servers and at replication's queues;
 * see node_source.c and node_fence.c. A peer that is away may keep thousands of ended logs, and the storage may be slow, so the
 * keeper, which fences servers, must not wait for these looks.
 *
 *   - The logs of servers that have not ended are looked at in each round. Of ended ones, 64 are, or one in LAP.
 *   - A server that ended unseen is reported to the keeper, which alone fences for a master.
 *   - The log of a server that is up for the master is not removed, although another server has fenced it: the keeper may be about
 *     to fence it, too, which would make the log again.
 */
#include "server/node_priv.h"

#include "base/clock.h"
#include "base/log.h"
#include "wal/head.h"
#include "wal/queues.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOK_MS 5000
#define LOOKS 64
#define LAP 64         /* after so many rounds each ended log was looked at once */
#define SWEEP_EVERY 12 /* laps */

/* What a round looks at. */
typedef struct round {
    rq_arena arena;
    rq_member_view view;
    bool has_peers;
    const char **ended, **logs; /* ascending; `logs`: those that may have queues */
    size_t ended_count, log_count;
    const char **part; /* of the ended ones, ascending */
    size_t part_count;
} round;

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_in(const char *const *list, size_t count, const char *name)
{
    return count > 0 && bsearch(&name, list, count, sizeof *list, by_name) != NULL;
}

/* --- a round ----------------------------------------------------------------------------------------- */

static rq_err choose_part(rq_node *n, round *r)
{
    size_t most = r->ended_count / LAP + 1;
    r->part_count = most > LOOKS ? most : LOOKS;
    if (r->part_count > r->ended_count) r->part_count = r->ended_count;
    r->part = rq_arena_calloc(&r->arena, r->part_count + 1, sizeof *r->part);
    if (r->part == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < r->part_count; i++) {
        if (n->caretaker.next >= r->ended_count) {
            n->caretaker.next = 0;
            n->caretaker.laps++;
        }
        r->part[i] = r->ended[n->caretaker.next++];
    }
    qsort(r->part, r->part_count, sizeof *r->part, by_name);
    return RQ_OK;
}

static rq_err begin(rq_node *n, round *r, rq_error *why)
{
    rq_shared *s = n->store.shared;
    if (rq_member_look(atomic_load(&n->answers_of.member), &r->arena, &r->view) != RQ_OK)
        return rq_no_memory(why);
    RQ_TRY(rq_set_list(s, RQ__NODE_ENDED, &r->arena, &r->ended, &r->ended_count, why));
    RQ_TRY(rq_wal_queues_logs(s, &r->arena, &r->logs, &r->log_count, why));
    return choose_part(n, r) == RQ_OK ? RQ_OK : rq_no_memory(why);
}

static bool is_up(rq_node *n, const char *server)
{
    rq_arena a = {0};
    rq_server_name name;
    bool up = rq_member_name_of(server, &a, &name) && rq_remote_is_up(rq__node_remote(n), &name);
    rq_arena_clear(&a);
    return up;
}

/* False: this process ends, or the storage does not answer: each call would wait. */
static bool goes_on(rq_node *n)
{
    return !rq__node_is_stopping(n) && rq__node_lease_expired_ms(n) == 0;
}

static void retire_part(rq_node *n, const round *r)
{
    bool sweeps = n->caretaker.laps % SWEEP_EVERY == SWEEP_EVERY - 1;
    for (size_t i = 0; i < r->part_count && goes_on(n); i++)
        if (!is_up(n, r->part[i])) rq__node_retire_log(n, r->part[i], sweeps);
}

/* The first error; other logs are looked at nonetheless. */
static rq_err look_at_queues(rq_node *n, const round *r, rq_error *why)
{
    rq_err rc = RQ_OK;
    for (size_t i = 0; i < r->log_count && goes_on(n); i++) {
        const char *server = r->logs[i];
        if (is_in(r->ended, r->ended_count, server) && !is_in(r->part, r->part_count, server))
            continue;
        rq_err one =
            rq__node_look_at_queues(n, &r->view, server, r->has_peers, rc == RQ_OK ? why : NULL);
        if (rc == RQ_OK) rc = one;
    }
    rq__node_forget_strays(n, r->logs, r->log_count);
    return rc;
}

static rq_err look(rq_node *n, round *r, rq_error *why)
{
    RQ_TRY(begin(n, r, why));
    retire_part(n, r);
    RQ_TRY(rq__node_publish_peers(n, &r->has_peers, why));
    return look_at_queues(n, r, why);
}

static void run_round(rq_node *n)
{
    round r = {0};
    rq_error why = {.code = RQ_OK};
    if (!goes_on(n)) return;
    if (look(n, &r, &why) != RQ_OK)
        rq_log_debug(n->o.log, "replication", "the peers and queues are looked at again: %s",
                     why.message);
    rq_arena_clear(&r.arena);
}

/* --- the thread -------------------------------------------------------------------------------------- */

/* False: the end. */
static bool wait_a_round(rq_node *n)
{
    uint64_t end = rq_clock_ns(CLOCK_MONOTONIC) + (uint64_t)LOOK_MS * 1000000;
    const struct timespec until = {(time_t)(end / 1000000000), (long)(end % 1000000000)};
    int rc = 0;
    pthread_mutex_lock(&n->lock);
    while (!n->stopping && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&n->caretaker.wake, &n->lock, &until);
    bool more = !n->stopping;
    pthread_mutex_unlock(&n->lock);
    return more;
}

static void *take_care(void *ctx)
{
    rq_node *n = ctx;
    do
        run_round(n);
    while (wait_a_round(n));
    return NULL;
}

rq_err rq__node_start_caretaker(rq_node *n, rq_error *why)
{
    if (n->caretaker.runs) return RQ_OK;
    int rc = pthread_create(&n->caretaker.thread, NULL, take_care, n);
    if (rc != 0) return rq_fail(why, RQ_E_IO, "cannot start a thread: %s", strerror(rc));
    n->caretaker.runs = true;
    return RQ_OK;
}

void rq__node_stop_caretaker(rq_node *n)
{
    pthread_mutex_lock(&n->lock);
    pthread_cond_signal(&n->caretaker.wake);
    pthread_mutex_unlock(&n->lock);
    if (n->caretaker.runs) pthread_join(n->caretaker.thread, NULL);
    n->caretaker.runs = false;
    rq__node_forget_strays(n, NULL, 0);
}

/* --- servers that ended unseen ----------------------------------------------------------------------- */

/* If there is no place, the next look finds the server again. */
void rq__node_report_unseen(rq_node *n, const char *server)
{
    pthread_mutex_lock(&n->lock);
    bool is_there = n->unseen_count == RQ_ARRAY_LEN(n->unseen);
    for (size_t i = 0; i < n->unseen_count; i++)
        is_there |= strcmp(n->unseen[i], server) == 0;
    if (!is_there) (void)snprintf(n->unseen[n->unseen_count++], sizeof n->unseen[0], "%s", server);
    pthread_mutex_unlock(&n->lock);
    rq__node_stir(n);
}

static bool next_unseen(rq_node *n, char ret[static RQ_SHARED_NAME_MAX + 1])
{
    pthread_mutex_lock(&n->lock);
    bool more = n->unseen_count > 0;
    if (more) memcpy(ret, n->unseen[--n->unseen_count], sizeof n->unseen[0]);
    pthread_mutex_unlock(&n->lock);
    return more;
}

/* A server may have been reported again while it was fenced. A second fence would make the log again if it was removed
 * meanwhile. If the state cannot be read, the next look reports the server again. */
static bool has_open_log(rq_node *n, const char *server)
{
    rq_wal_state state;
    return rq_wal_state_of(n->store.shared, server, &state, NULL) == RQ_OK && state == RQ_WAL_OPEN;
}

void rq__node_give_up_unseen(rq_node *n, const rq_member_view *v)
{
    char server[RQ_SHARED_NAME_MAX + 1];
    while (v->connected && next_unseen(n, server)) {
        if (rq__node_is_known(n, v, server) || !has_open_log(n, server)) continue;
        if (!rq__node_fence_or_retry(n, server)) continue;
        rq_log_info(n->o.log, "replication",
                    "%s ended before this master was elected: its log is replicated by other "
                    "servers",
                    server);
    }
}
