/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log under test, with the model that it is compared with: a few regions that stage records, the
 * order of the records, and which are acknowledged. A record's bytes are determined by region and
 * number, so any replayed record can be checked by itself.
 *
 *  - found after a crash = all acknowledged records, followed by a prefix of the records staged
 *    after them
 *  - per region in order, nothing twice, nothing altered
 */
#ifndef RQ_TESTS_WAL_HISTORY_H
#define RQ_TESTS_WAL_HISTORY_H

#include "../base/unit.h"

#include "vfs/sim.h"
#include "wal/wal.h"

#define REGIONS 4
extern const char *const history_names[REGIONS]; /* encoded region names */

typedef struct history history;

/* One staged record. */
typedef struct staged {
    rq_wal_waiter waiter;
    history *h;
    int region;
    uint64_t sequence_id;
    bool holds; /* holds its WAL file until flushed */
    rq_lsn lsn;
    bool acknowledged;
    bool refused; /* its waiter got an error */
    /* durability was promised by the acknowledgement, or by a replay that returned the record */
    bool durable;
    bool synced; /* the waiter asked for `synced` */
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
    staged **records; /* all records staged and not lost, in order */
    size_t count, cap;
    size_t next_found;  /* used during replay */
    rq_lsn last_lsn[2]; /* lsn of the last waiter called, separately for written and synced */
    int pending;        /* waiters not yet called */
    bool out_of_order;
    char fault[512]; /* the first error found; empty: none */
    uint64_t corrupt_places;
    size_t lost;    /* records that the last open did not find */
    bool tolerant;  /* missing records are no error */
    bool killed;    /* only the process died: all acknowledged records must be found */
    int failures;   /* permanent failures of the log */
    int pressed[2]; /* counts of on_pressure, for tests that use it */
};

/* The caller keeps ownership of `sim`. */
void history_init(history *h, rq_sim *sim, const rq_wal_options *options);
void history_clear(history *h);

/* Opens, replays and compares. False: the log could not be opened (*why) or h->fault is set. */
bool history_open(history *h, rq_error *why);
/* Leaves the log and closes everything, also after errors. Returns rq_wal_close's result. */
rq_err history_close(history *h, bool clean);

/* Stages a record of about `size` bytes; NULL if refused (*ret). */
staged *history_stage(history *h, int region, size_t size, rq_wal_kind kind, rq_err *ret);
void history_wait(history *h, staged *s, bool synced);
/* Marks the region's records as flushed, up to its newest acknowledged one. */
void history_flush(history *h, int region);
/* Makes a few random steps of all functions above. */
void history_steps(history *h, int steps);

void history_payload(int region, uint64_t sequence_id, uint8_t *out, size_t len);

#endif
