/* SPDX-License-Identifier: Apache-2.0 */
/* A well-behaved client: puts and gets on a separate table, every few milliseconds, on a separate
 * thread. Other clients must not delay it, and its acknowledged writes must exist. */
#ifndef RQ_FUZZ_WIRE_BYSTANDER_H
#define RQ_FUZZ_WIRE_BYSTANDER_H

#include "base/buf.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>

#define BYSTANDER_BUCKETS 20000 /* of 1 ms; the last one counts longer calls, too */

typedef struct bystander {
    struct sockaddr_in address;
    const char *region; /* encoded name */
    pthread_t thread;
    atomic_bool stop;
    atomic_llong waiting_since_ms; /* start of the call in flight; 0: none */
    atomic_bool failed;            /* set after `problem` */
    char problem[512];
    /* Read after the thread was joined: */
    uint64_t calls, busy;
    uint64_t rows;         /* acknowledged rows w0000000000 …, whose value is their number */
    uint64_t worst_ms;     /* longest call */
    uint64_t worst_nap_ms; /* longest excess of a sleep, which the machine caused */
    uint64_t histogram[BYSTANDER_BUCKETS];
} bystander;

void bystander_start(bystander *b);
void bystander_join(bystander *b);
/* Latency that `share` of the calls did not exceed, in ms. */
uint64_t bystander_percentile(const bystander *b, double share);
int64_t clock_ms(void);

#endif
