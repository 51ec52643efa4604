/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One member of a cluster, for tests/e2e/membership.py: joins, and prints a line for each change of
 * its state, its connection, the active master or the list of servers:
 *
 *     standby connected active=HOST,PORT,CODE servers=A;B;C trouble=TEXT
 *
 * member QUORUM ROOT CLUSTER_ID PORT START_CODE SESSION_MS; ends in order when its input ends.
 */
#include "registry/zk_member.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const states[] = {"joining", "standby", "active", "refused"};

/* The member's lane and the main thread print. The lock is held while the state is read and
 * printed, so that no older state is printed after a newer one. */
static pthread_mutex_t printing = PTHREAD_MUTEX_INITIALIZER;

static void show(rq_member *m)
{
    rq_arena arena = {0};
    rq_member_view v;
    pthread_mutex_lock(&printing);
    if (rq_member_look(m, &arena, &v) == RQ_OK) {
        printf("%s %s active=%s servers=", states[v.state],
               v.connected ? "connected" : "disconnected", v.active);
        for (size_t i = 0; i < v.server_count; i++)
            printf("%s%s", i == 0 ? "" : ";", v.servers[i]);
        printf(" trouble=%s\n", v.trouble);
        fflush(stdout);
    }
    pthread_mutex_unlock(&printing);
    rq_arena_clear(&arena);
}

/* Events before rq_member_open returns are printed afterwards, when the member is known. */
typedef struct watcher {
    rq_member *_Atomic member;
} watcher;

static void changed(void *ctx)
{
    watcher *w = ctx;
    if (w->member != NULL) show(w->member);
}

static rq_server_name name_of(const char *port, unsigned more, const char *code)
{
    static char texts[2][64];
    rq_server_name n = {.host = "localhost", .port = (uint16_t)(strtoul(port, NULL, 10) + more)};
    n.start_code = strtoll(code, NULL, 10);
    snprintf(texts[more > 0], sizeof texts[0], "localhost,%u,%s", n.port, code);
    n.text = texts[more > 0];
    return n;
}

int main(int argc, char **argv)
{
    static const unsigned threads[RQ_POOL_COUNT] = {1, 1, 1, 1, 1, 1, 1};
    watcher w = {.member = NULL};
    rq_executor *executor;
    rq_member *m;
    rq_error why = {.code = RQ_OK};
    char byte;
    if (argc != 7 || rq_thread_executor_new(threads, &executor) != RQ_OK) return 2;
    rq_member_options o = {.executor = executor,
                           .quorum = argv[1],
                           .root = argv[2],
                           .cluster_id = argv[3],
                           .server = name_of(argv[4], 0, argv[5]),
                           .master = name_of(argv[4], 1, argv[5]),
                           .server_info_port = 11,
                           .master_info_port = 12,
                           .session_ms = atoi(argv[6]),
                           .changed = changed,
                           .ctx = &w};
    if (rq_member_open(&o, &m, &why) != RQ_OK) {
        fprintf(stderr, "%s\n", why.message);
        return 1;
    }
    w.member = m;
    show(m);
    while (read(0, &byte, 1) > 0)
        ;
    rq_member_close(m);
    rq_thread_executor_free(executor);
    return 0;
}
