/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the system's clocks; no other code does. The engine and the catalog do not use it: their
 * time comes from their executor (base/executor.h), which tests simulate. Event loops, the thread
 * executor and clients do. */
#ifndef RQ_BASE_CLOCK_H
#define RQ_BASE_CLOCK_H

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC: time since the machine's start; CLOCK_THREAD_CPUTIME_ID: processor time of the
 * calling thread; CLOCK_REALTIME: since 1970. Nanoseconds. */
static inline uint64_t rq_clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Puts the calling thread to sleep, for the whole time even if a signal arrives. */
static inline void rq_clock_sleep_ns(uint64_t ns)
{
    struct timespec left = {.tv_sec = (time_t)(ns / 1000000000u),
                            .tv_nsec = (long)(ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
        ;
}

/* A condition whose timed waits take times of CLOCK_MONOTONIC. */
static inline void rq_clock_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

#endif
