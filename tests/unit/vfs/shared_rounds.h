/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes on one shared storage (vfs/shared.h), whichever implementation it is: a writer that is
 * stopped, continued and killed while another process revokes its tenure, and several that swap one
 * object.
 */
#ifndef RQ_TESTS_SHARED_ROUNDS_H
#define RQ_TESTS_SHARED_ROUNDS_H

#include "../base/unit.h"

#include "vfs/shared.h"
#include "vfs/vfs.h"

/* A process's own access to the storage. */
typedef struct door {
    rq_executor *executor;
    rq_vfs *vfs; /* of a folder */
    rq_shared *shared;
} door;

typedef struct rounds {
    const char *where; /* given to `open` */
    void (*open)(door *d, const char *where);
    void (*close)(door *d);
    bool revoke_waits; /* a revoke returns after the lease of the old writer */
    bool may_time_out; /* an operation may fail with RQ_E_TIMEOUT, and is then repeated */
} rounds;

typedef enum round_kind { ROUND_STOPPED, ROUND_KILLED, ROUND_RUNNING } round_kind;

void rounds_executor(door *d);
/* The calling process must have no thread: it forks. ROUNDS=n rounds (default 1);
 * STOPPED_SECONDS=n: those that are stopped stay so for up to n seconds after the revoke. */
void rounds_run(const rounds *r, round_kind kind);
void rounds_swap(const rounds *r);

#endif
