/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in lookup.h. The thread owns the look-up until it has posted `task`, then the loop owns it; the owner frees
 * it when it is done or was cancelled. */
#include "net/lookup.h"

#include "base/macros.h"
#include "base/signals.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct rq__lookup {
    rq_task task;
    void (*done)(void *ctx, struct addrinfo *found, int error);
    void *ctx;
    char *host;
    uint16_t port;
    struct addrinfo *found;
    int error;
    int system_error;
    pthread_mutex_t lock;
    rq_lane *lane RQ_GUARDED_BY(lock); /* NULL: it was cancelled */
};

static int ask(const char *host, uint16_t port, int flags, struct addrinfo **ret)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags};
    char text[8];
    snprintf(text, sizeof text, "%u", port);
    return getaddrinfo(host, text, &hints, ret);
}

struct addrinfo *rq__lookup_numeric(const char *host, uint16_t port)
{
    struct addrinfo *found = NULL;
    return ask(host, port, AI_NUMERICHOST, &found) == 0 ? found : NULL;
}

static void lookup_free(rq__lookup *l)
{
    if (l->found != NULL) freeaddrinfo(l->found);
    pthread_mutex_destroy(&l->lock);
    free(l->host);
    free(l);
}

/* On the loop. */
static void run_done(rq_task *task)
{
    rq__lookup *l = RQ_CONTAINER_OF(task, rq__lookup, task);
    pthread_mutex_lock(&l->lock); /* the thread has let it go */
    bool cancelled = l->lane == NULL;
    pthread_mutex_unlock(&l->lock);
    if (!cancelled) {
        struct addrinfo *found = l->found;
        l->found = NULL;
        errno = l->system_error;
        l->done(l->ctx, found, l->error);
    }
    lookup_free(l);
}

static void *lookup_main(void *arg)
{
    rq__lookup *l = arg;
    l->error = ask(l->host, l->port, 0, &l->found);
    l->system_error = errno;
    pthread_mutex_lock(&l->lock);
    bool cancelled = l->lane == NULL;
    if (!cancelled) rq_lane_post(l->lane, &l->task); /* the loop exists as long as it is not NULL */
    pthread_mutex_unlock(&l->lock);
    if (cancelled) lookup_free(l);
    return NULL;
}

static bool start_thread(rq__lookup *l)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    pthread_t thread;
    if (pthread_attr_init(&attributes) != 0) return false;
    rq_thread_signals(&all);
    bool ok = pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0 &&
              pthread_sigmask(SIG_BLOCK, &all, &before) == 0;
    if (ok) {
        ok = pthread_create(&thread, &attributes, lookup_main, l) == 0;
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    pthread_attr_destroy(&attributes);
    return ok;
}

rq_err rq__lookup_start(rq_loop *loop, const char *host, uint16_t port,
                        void (*done)(void *ctx, struct addrinfo *found, int error), void *ctx,
                        rq__lookup **ret)
{
    rq__lookup *l = calloc(1, sizeof *l);
    if (l == NULL) return RQ_E_NO_MEMORY;
    pthread_mutex_init(&l->lock, NULL);
    l->task.run = run_done;
    l->done = done;
    l->ctx = ctx;
    l->port = port;
    l->lane = rq_loop_lane(loop);
    l->host = strdup(host);
    *ret = l; /* before the thread can post */
    if (l->host != NULL && start_thread(l)) return RQ_OK;
    *ret = NULL;
    lookup_free(l);
    return RQ_E_NO_MEMORY;
}

void rq__lookup_cancel(rq__lookup *l)
{
    pthread_mutex_lock(&l->lock);
    l->lane = NULL;
    pthread_mutex_unlock(&l->lock); /* it may be freed from here on */
}
