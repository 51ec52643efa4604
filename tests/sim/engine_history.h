/* SPDX-License-Identifier: Apache-2.0 */
/* A random history of a region in the simulated environment, and the conditions that must hold
 * after any power cut.
 *
 * Writes. Op k of row r writes k as the value of a:v and b:v with timestamp k, and puts or deletes
 * a:x. The op is one put over two families or RowMutations, alone or in a batch, waited for or with
 * many in flight. So a row's state identifies the op that made it, and in a torn op the two
 * families disagree. Counters are incremented one at a time, with a nonce.
 *
 * After a restart, the op seen in each row was issued, is at least as new as the newest
 * acknowledged one, and is complete. A counter has the value of all acknowledged increments, with
 * or without the one in flight; after a retry with its nonce each increment is counted exactly
 * once, also one that was acknowledged. */
#ifndef RQ_TESTS_SIM_ENGINE_HISTORY_H
#define RQ_TESTS_SIM_ENGINE_HISTORY_H

#include "base/config.h"
#include "region/engine.h"
#include "vfs/sim.h"
#include "store/scan.h"

#define HISTORY_ROWS 12
#define HISTORY_COUNTERS 3

typedef struct history_row {
    uint32_t issued;
    uint32_t acked;
} history_row;

typedef struct history_counter {
    int64_t acked;
    int64_t in_flight;  /* delta of the increment that is not yet acknowledged, 0: none */
    int64_t last_delta; /* of the newest increment, and its nonce */
    uint64_t nonce;
} history_counter;

typedef struct history {
    rq_sim *sim;
    uint64_t seed;
    rq_env *env;
    rq_config *config;
    rq_arena arena;
    rq_table_schema *schema;
    rq_region_info info;
    rq_engine *engine;
    rq_region *region;
    rq_lane *lane;
    rq_writer *writer;
    history_row rows[HISTORY_ROWS];
    history_counter counters[HISTORY_COUNTERS];
    uint64_t nonces;
    unsigned in_flight;
    unsigned failed_ops; /* ops refused without a power cut or a fault: none may be */
    bool mob;            /* the families are MOB families, and are sometimes cleaned */
    bool lists;          /* the table has the tracker FILE: a clean close leaves lists of files */
    bool replicated;     /* the families are replicated, and the log is kept for a peer */
    bool faults;         /* calls are made to fail, so ops may be refused */
    /* the disk may be full: writes may be refused with the reason, reads continue */
    bool full;
    unsigned refused; /* writes refused because the disk was full */
    unsigned reopens; /* number of reopenings begun */
    char fault[1100]; /* the first error found; empty: none */
} history;

void history_init(history *h, rq_sim *sim, uint64_t seed);
/* Call right after init: values of b, and those of two or more digits of a, go to MOB files. Files
 * that the cleaner archives are deleted at once, so that a file archived too early is noticed. */
void history_make_mob(history *h);
/* Call right after init. */
void history_replicate(history *h);
void history_list_files(history *h);
/* Call right after init: the log acknowledges what the operating system has. A power cut may lose that, a kill may not. */
void history_hand_over(history *h);
void history_clear(history *h);
/* False: the engine could not be opened (a fault, unless a power cut or failing calls explain the
 * error). */
bool history_open(history *h);
/* Up to `count` random steps; ends early when the power is cut. */
void history_steps(history *h, unsigned count);
/* `clean`: flushes, and expects an empty log. */
void history_close(history *h, bool clean);
/* Passes each cell that the scan finds in the region to `take`. */
rq_err history_scan(history *h, const rq_scan *scan, void (*take)(void *ctx, const rq_cell *c),
                    void *ctx, rq_error *why);
/* Compares the actual state with the expected one. Also retries increments in flight, which
 * writes. */
void history_check(history *h);

#endif
