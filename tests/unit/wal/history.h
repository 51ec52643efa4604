/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log under test, and what must be true of it: a few regions that stage records, the order they
 * staged them in, and which were acknowledged. A record's bytes follow from region and number, so
 * that any record found can be checked alone.
 *
 *  - found after a crash = everything acknowledged, and then a prefix of what was staged after it
 *  - per region in order, nothing twice, nothing altered
 */
#ifndef RQ_TESTS_WAL_HISTORY_H
#define RQ_TESTS_WAL_HISTORY_H

#include "../base/unit.h"

#include "vfs/sim.h"
#include "wal/wal.h"

#define REGIONS 4
extern const char *const history_names[REGIONS]; /* encoded */

typedef struct history history;

/* One staged record. */
typedef struct staged {
    rq_wal_waiter waiter;
    history *h;
    int region;
    uint64_t sequence_id;
    bool holds; /* its WAL file, until flushed */
    rq_lsn lsn;
    bool acknowledged;
    bool refused; /* its waiter was told an error */
    bool durable; /* the acknowledgement, or a replay that showed it, promised durability */
    bool synced;  /* waited for with `synced` */
    bool found;
} staged;

struct history {
    rq_sim *sim;
    rq_wal_options options;
    rq_wal *wal;
    rq_wal_member *member;
    rq_lane *lane;
    rq_wal_region *regions[REGIONS];
    uint64_t next_sequence_id[REGIONS];
    uint64_t flushed[REGIONS];
    staged **records; /* all that were staged and not lost, in order */
    size_t count, cap;
    size_t next_found;  /* during replay */
    rq_lsn last_lsn[2]; /* of the last waiter told, by what it waited for */
    int pending;        /* waiters not told yet */
    bool out_of_order;
    char fault[512]; /* the first thing found wrong; empty: none */
    uint64_t corrupt_places;
    size_t lost;    /* records the last open did not find */
    bool tolerant;  /* gaps are no fault */
    bool killed;    /* only the process died: everything acknowledged is there */
    int failures;   /* of the log, for good */
    int pressed[2]; /* for tests that listen to on_pressure */
};

/* The simulation stays the caller's. */
void history_init(history *h, rq_sim *sim, const rq_wal_options *options);
void history_clear(history *h);

/* Opens, replays and compares. False: the log could not be opened (*why) or h->fault is set. */
bool history_open(history *h, rq_error *why);
/* Leaves, closes everything, whatever errors come. */
rq_err history_close(history *h, bool clean);

/* A record of about `size` bytes; NULL when staging was refused (*ret). */
staged *history_stage(history *h, int region, size_t size, rq_wal_kind kind, rq_err *ret);
void history_wait(history *h, staged *s, bool synced);
/* The region needs nothing up to its newest acknowledged record. */
void history_flush(history *h, int region);
/* A few random steps of everything above. */
void history_steps(history *h, int steps);

void history_payload(int region, uint64_t sequence_id, uint8_t *out, size_t len);

#endif
