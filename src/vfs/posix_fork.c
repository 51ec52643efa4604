/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks are given up in a forked child. A lock of a folder belongs to an open file, which a child
 * shares: without this the folder stays locked until the last child ends, long after the process that
 * opened it. So a handler of fork closes the child's copies of the descriptors; the parent's lock
 * stays. The child can use nothing else of its parent's database (api/call.c).
 *
 * The list of held locks is global, because handlers of fork have no argument. It has a mutex, which
 * fork takes, so that no child is made between the opening of a descriptor and its entry in the list,
 * or between its removal and its closing. Children made by vfork, posix_spawn
 * and clone run no handler; the first two execute another program, and the descriptors are
 * close-on-exec.
 */
#include "vfs/posix_priv.h"

#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t held_lock = PTHREAD_MUTEX_INITIALIZER;
static rq__held *held RQ_GUARDED_BY(held_lock);
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int once_rc;

static void before_fork(void)
{
    pthread_mutex_lock(&held_lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&held_lock);
}

static void in_child(void)
{
    for (rq__held *h = held; h != NULL; h = h->next)
        for (int i = 0; i < 2; i++) {
            if (*h->descriptors[i] >= 0) close(*h->descriptors[i]);
            *h->descriptors[i] = -1;
        }
    held = NULL; /* the child's own locks begin another list */
    pthread_mutex_unlock(&held_lock);
}

static void watch_forks(void)
{
    once_rc = pthread_atfork(before_fork, after_fork, in_child);
}

rq_err rq__held_begin(void)
{
    pthread_once(&once, watch_forks);
    if (once_rc != 0) return RQ_E_NO_MEMORY;
    pthread_mutex_lock(&held_lock);
    return RQ_OK;
}

void rq__held_end(void)
{
    pthread_mutex_unlock(&held_lock);
}

void rq__held_add(rq__held *h, int *first, int *second)
{
    h->descriptors[0] = first;
    h->descriptors[1] = second;
    h->next = held;
    held = h;
}

void rq__held_remove(rq__held *h)
{
    for (rq__held **at = &held; *at != NULL; at = &(*at)->next) {
        if (*at != h) continue;
        *at = h->next;
        return;
    }
}
