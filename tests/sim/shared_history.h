/* SPDX-License-Identifier: Apache-2.0 */
/* Random histories of shared storage (vfs/shared.h) on two of its implementations. All results are
 * compared. */
#ifndef RQ_TESTS_SHARED_HISTORY_H
#define RQ_TESTS_SHARED_HISTORY_H

#include "../extents.h"
#include "../unit/base/unit.h"

#include "base/buf.h"
#include "base/random.h"
#include "vfs/shared.h"

#define HISTORY_TENURES 12
#define HISTORY_STEPS 120
#define HISTORY_LEDGERS 6
#define HISTORY_KINDS 14

/* One implementation, and the objects that the history has open in it. */
typedef struct form {
    rq_shared *shared;
    rq_executor *executor;
    rq_lane *lane;
    rq_err (*wait)(struct form *f, rq_latch *latch);
    void *ctx; /* argument of `wait` */
    rq_tenure *tenures[HISTORY_TENURES];
    rq_slog *logs[HISTORY_TENURES];
    uint64_t off[HISTORY_TENURES][RQ_SLOG_STRIPES];
    rq_arena arena;
} form;

/* The result of an operation. */
typedef struct answer {
    rq_err rc;
    uint64_t number;
    rq_buf bytes;
} answer;

typedef struct step {
    unsigned kind, tenure, stripe;
    uint64_t number;
    const char *name, *key;
    rq_slice bytes;
} step;

void form_release(form *f, unsigned tenure);
rq_err form_open_log(form *f, const step *s);
rq_err form_append(form *f, const step *s);
void form_read_all(form *f, const char *name, answer *a);
void form_list_set(form *f, const char *name, answer *a);

typedef struct history {
    uint64_t seed;
    rq_random random;
    form forms[2]; /* the two implementations, whose storage must be empty at first */
    bool removed[HISTORY_TENURES];
    bool dropped[HISTORY_TENURES][HISTORY_LEDGERS];
    uint64_t open[HISTORY_TENURES]; /* number of the ledger opened last */
} history;

/* Adds the number of successes and failures of each kind. Releases the tenures. */
void history_run(history *h, unsigned good[HISTORY_KINDS], unsigned bad[HISTORY_KINDS]);
/* Fails unless each kind of step has succeeded and failed. */
void history_check(const unsigned good[HISTORY_KINDS], const unsigned bad[HISTORY_KINDS]);

#endif
