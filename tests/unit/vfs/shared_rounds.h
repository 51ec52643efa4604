/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes on one shared storage (vfs/shared.h), for any implementation: a writer that is
 * stopped, continued and killed while another process revokes its tenure, and several processes
 * that swap one object.
 */
#ifndef RQ_TESTS_SHARED_ROUNDS_H
#define RQ_TESTS_SHARED_ROUNDS_H

#include "../base/unit.h"

#include "vfs/shared.h"
#include "vfs/vfs.h"

/* A process's own access to the storage. */
typedef struct door {
    rq_executor *executor;
    rq_vfs *vfs; /* for a folder */
    rq_shared *shared;
} door;

typedef struct rounds {
    const char *where; /* the argument of `open` */
    void (*open)(door *d, const char *where);
    void (*close)(door *d);
    bool revoke_waits; /* a revoke returns only after the old writer's lease */
    bool may_time_out; /* an operation may fail with RQ_E_TIMEOUT, and is then repeated */
} rounds;

typedef enum round_kind { ROUND_STOPPED, ROUND_KILLED, ROUND_RUNNING } round_kind;

void rounds_executor(door *d);
/* The calling process must have a single thread, because this forks. ROUNDS=n rounds (default 1);
 * STOPPED_SECONDS=n: stopped writers stay stopped for up to n seconds after the revoke. */
void rounds_run(const rounds *r, round_kind kind);
void rounds_swap(const rounds *r);

#endif
