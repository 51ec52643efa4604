/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Membership and the log on shared storage together (tests/e2e/membership.py): a member of ZooKeeper that
 * writes a log on a shared folder. The active member revokes the tenure of each server whose node
 * in rs/ has disappeared, and counts that server's writes. Prints
 *
 *     acknowledged N            number of writes so far, printed at times
 *     active | standby | …      its state
 *     fenced NAME N             after a revoke: N writes without a gap are in the log of NAME
 *     aborted                   its own tenure was revoked; it ends with exit code 9
 *
 * server QUORUM FOLDER PORT START_CODE SESSION_MS; ends in order when its input ends.
 */
#include "../extents.h"

#include "registry/zk_member.h"
#include "vfs/shared.h"
#include "vfs/vfs.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LSN_MAX 4000000
#define SERVERS_MAX 16
#define CLUSTER_ID "5b1d2a44-93c0-4a0e-8b2f-000000000001"
#define SHOW_EVERY 40
#define EXIT_ABORTED 9

typedef struct server {
    rq_executor *executor;
    rq_vfs *vfs;
    rq_shared *shared;
    rq_tenure *tenure;
    rq_member *_Atomic member;
    rq_lane *watching, *writing, *completions;
    rq_task look, write;
    atomic_bool stopping, looking;
    rq_latch written;
    char seen[SERVERS_MAX][80]; /* servers seen in rs/ at the last check */
    size_t seen_count;
    rq_member_state state;
    char server[64], master[64];
} server;

static void say(const char *what, const char *name, long long n)
{
    char number[32] = "";
    if (n >= 0) snprintf(number, sizeof number, " %lld", n);
    printf("%s%s%s%s\n", what, name[0] == '\0' ? "" : " ", name, number);
    fflush(stdout);
}

/* Ends the program on errors after which it cannot continue. */
static void must(rq_err rc, const rq_error *why)
{
    if (rc == RQ_OK) return;
    fprintf(stderr, "%d: %s\n", rc, why->message);
    exit(1);
}

/* --- the log -------------------------------------------------------------------------------- */

typedef struct one_write {
    rq_slog_write write;
    rq_latch latch;
    uint8_t bytes[EXTENT_MAX];
} one_write;

static void written(rq_slog_write *w, rq_err rc)
{
    one_write *o = RQ_CONTAINER_OF(w, one_write, write);
    o->latch.executor->latch_open(&o->latch, rc);
}

/* Writes once on each stripe. */
static rq_err write_round(server *s, rq_slog *log, uint64_t off[], uint64_t lsn)
{
    one_write all[RQ_SLOG_STRIPES];
    rq_err worst = RQ_OK;
    for (unsigned k = 0; k < RQ_SLOG_STRIPES; k++) {
        size_t len = extent_make(lsn + k, all[k].bytes);
        all[k].write = (rq_slog_write){.stripe = k, .off = off[k], .lane = s->completions};
        all[k].write.bytes = rq_slice_of(all[k].bytes, len);
        all[k].write.done = written;
        off[k] += len;
        s->executor->latch_init(s->executor, &all[k].latch);
        rq_slog_submit(log, &all[k].write);
    }
    for (unsigned k = 0; k < RQ_SLOG_STRIPES; k++) {
        rq_err rc = s->executor->latch_wait(&all[k].latch);
        s->executor->latch_destroy(&all[k].latch);
        if (worst == RQ_OK || rc == RQ_E_SERVER_ABORTED) worst = rc;
    }
    return worst;
}

static void write_log(rq_task *task)
{
    server *s = RQ_CONTAINER_OF(task, server, write);
    rq_error why = {.code = RQ_OK};
    rq_slog *log;
    uint64_t off[RQ_SLOG_STRIPES] = {0};
    must(rq_slog_open(s->tenure, 0, &log, &why), &why);
    for (uint64_t lsn = 0; !s->stopping && lsn < LSN_MAX - RQ_SLOG_STRIPES;
         lsn += RQ_SLOG_STRIPES) {
        rq_err rc = write_round(s, log, off, lsn);
        if (rc == RQ_E_SERVER_ABORTED) {
            say("aborted", "", -1);
            _exit(EXIT_ABORTED);
        }
        must(rc, &why);
        if (lsn % SHOW_EVERY == 0) say("acknowledged", "", (long long)(lsn + RQ_SLOG_STRIPES));
    }
    rq_slog_close(log);
    must(rq_tenure_end(s->tenure, &why), &why);
    s->executor->latch_open(&s->written, RQ_OK);
}

/* --- the server that takes over ------------------------------------------------------------- */

static uint64_t read_stripe(server *s, const char *name, const rq_slog_ledger *ledger,
                            unsigned stripe, bool *present)
{
    size_t len = (size_t)ledger->lengths[stripe], found = 0;
    uint8_t *bytes = malloc(len + 1);
    rq_error why = {.code = RQ_E_NO_MEMORY};
    if (bytes == NULL) must(RQ_E_NO_MEMORY, &why);
    rq_error_clear(&why);
    must(rq_slog_read(s->shared, name, ledger, stripe, 0, bytes, len, &found, &why), &why);
    (void)extents_of(bytes, found, present, LSN_MAX);
    free(bytes);
    return found;
}

static void fence(server *s, const char *name)
{
    rq_arena arena = {0};
    rq_error why = {.code = RQ_OK};
    rq_slog_ledger *ledgers;
    size_t count;
    uint64_t quiet_ns, n = 0;
    bool *present = calloc(LSN_MAX, sizeof *present);
    if (present == NULL) must(RQ_E_NO_MEMORY, &why);
    must(rq_tenure_revoke(s->shared, name, &quiet_ns, &why), &why);
    must(rq_slog_lengths(s->shared, name, &arena, &ledgers, &count, &why), &why);
    for (size_t i = 0; i < count; i++)
        for (unsigned k = 0; k < RQ_SLOG_STRIPES; k++)
            (void)read_stripe(s, name, &ledgers[i], k, present);
    while (n < LSN_MAX && present[n])
        n++;
    say("fenced", name, (long long)n);
    free(present);
    rq_arena_clear(&arena);
}

static bool is_in(const rq_member_view *v, const char *name)
{
    for (size_t i = 0; i < v->server_count; i++)
        if (strcmp(v->servers[i], name) == 0) return true;
    return false;
}

static void look(rq_task *task)
{
    static const char *const states[] = {"joining", "standby", "active", "refused"};
    server *s = RQ_CONTAINER_OF(task, server, look);
    rq_arena arena = {0};
    rq_member_view v;
    rq_error why = {.code = RQ_OK};
    s->looking = false;
    must(rq_member_look(s->member, &arena, &v), &why);
    if (v.state != s->state) say(states[v.state], "", -1);
    s->state = v.state;
    for (size_t i = 0; i < s->seen_count && v.state == RQ_MEMBER_ACTIVE; i++)
        if (!is_in(&v, s->seen[i])) fence(s, s->seen[i]);
    if (v.state == RQ_MEMBER_ACTIVE || v.state == RQ_MEMBER_STANDBY) {
        s->seen_count = v.server_count < SERVERS_MAX ? v.server_count : SERVERS_MAX;
        for (size_t i = 0; i < s->seen_count; i++)
            snprintf(s->seen[i], sizeof s->seen[i], "%s", v.servers[i]);
    }
    rq_arena_clear(&arena);
}

/* On the member's thread. */
static void changed(void *ctx)
{
    server *s = ctx;
    if (s->member != NULL && !atomic_exchange(&s->looking, true))
        rq_lane_post(s->watching, &s->look);
}

/* --- life ----------------------------------------------------------------------------------- */

static rq_server_name name_of(const char *text, unsigned long port, const char *code)
{
    return (rq_server_name){.host = "localhost",
                            .port = (uint16_t)port,
                            .start_code = strtoll(code, NULL, 10),
                            .text = text};
}

static void start(server *s, char **argv)
{
    static const unsigned threads[RQ_POOL_COUNT] = {1, 1, 1, 1, 1, 1, 1};
    rq_error why = {.code = RQ_OK};
    unsigned long port = strtoul(argv[3], NULL, 10);
    snprintf(s->server, sizeof s->server, "localhost,%lu,%s", port, argv[4]);
    snprintf(s->master, sizeof s->master, "localhost,%lu,%s", port + 1, argv[4]);
    must(rq_thread_executor_new(threads, &s->executor), &why);
    must(s->executor->lane_new(s->executor, "watching", &s->watching), &why);
    must(s->executor->lane_new(s->executor, "writing", &s->writing), &why);
    must(s->executor->lane_new(s->executor, "completions", &s->completions), &why);
    must(rq_vfs_posix_new(argv[2], &s->vfs, &why), &why);
    must(rq_shared_posix_new(s->vfs, s->executor, NULL, NULL, &s->shared), &why);
    must(rq_tenure_begin(s->shared, s->server, &s->tenure, &why), &why);
    s->look.run = look;
    s->write.run = write_log;
    s->executor->latch_init(s->executor, &s->written);
    rq_lane_post(s->writing, &s->write);
    rq_member *member;
    must(rq_member_open(&(rq_member_options){.executor = s->executor,
                                             .quorum = argv[1],
                                             .root = "/fenced",
                                             .session_ms = atoi(argv[5]),
                                             .server = name_of(s->server, port, argv[4]),
                                             .master = name_of(s->master, port + 1, argv[4]),
                                             .cluster_id = CLUSTER_ID,
                                             .changed = changed,
                                             .ctx = s},
                        &member, &why),
         &why);
    s->member = member;
    changed(s);
}

/* Seals the log before removing the node in rs/, so that no server has to wait for a lease. */
static void stop(server *s)
{
    s->stopping = true;
    (void)s->executor->latch_wait(&s->written);
    rq_member_close(s->member);
    s->executor->lane_free(s->executor, s->watching);
    s->executor->lane_free(s->executor, s->writing);
    s->executor->lane_free(s->executor, s->completions);
    rq_tenure_free(s->tenure);
    rq_shared_free(s->shared);
    rq_vfs_free(s->vfs);
    rq_thread_executor_free(s->executor);
}

int main(int argc, char **argv)
{
    static server s;
    char byte;
    if (argc != 6) return 2;
    start(&s, argv);
    while (read(0, &byte, 1) > 0)
        ;
    stop(&s);
    return 0;
}
