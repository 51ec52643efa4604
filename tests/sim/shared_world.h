/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers on one shared storage (vfs/shared.h), in one simulation, for random tests. There are two
 * forms: messages to a storage that checks guards (sim_shared.h), and a shared folder on the
 * simulated disk, where the process may pause before and after each file call.
 *
 * Each node's clock has another origin, and is faster or slower by up to half a percent.
 */
#ifndef RQ_TESTS_SHARED_WORLD_H
#define RQ_TESTS_SHARED_WORLD_H

#include "../unit/base/unit.h"

#include "base/random.h"
#include "vfs/sim.h"
#include "vfs/sim_shared.h"

#define WORLD_NODES 4

typedef enum world_form { FORM_MESSAGES, FORM_FOLDER } world_form;

typedef struct world_node {
    struct world *world;
    unsigned index;
    rq_shared *shared;
    rq_sim_node *sim;     /* FORM_MESSAGES */
    struct node_vfs *vfs; /* FORM_FOLDER */
    uint64_t offset_ns;
    int rate_ppm;
    bool paused, dead;
    /* FORM_FOLDER: */
    bool stops_at_link;     /* pauses just before its next link, once */
    bool keeps_temporaries; /* its removals of temporary files fail */
} world_node;

typedef struct world {
    world_form form;
    uint64_t seed;
    rq_sim *sim;
    rq_executor *executor;
    rq_random random;
    rq_sim_storage *storage;
    world_node nodes[WORLD_NODES];
    unsigned running; /* number of running tasks */
} world;

void world_open(world *w, world_form form, uint64_t seed, unsigned unanswered);
/* REQUIRES: tenures are freed. */
void world_close(world *w);
void world_pause(world_node *n, bool paused);
/* FORM_MESSAGES only, because a folder has no network. */
void world_cut(world_node *n, bool cut);
void world_kill(world_node *n);
/* After a random time one random fault may happen: a pause or a cut, shorter or longer than a
 * lease, or the end of the process. Node 1 is never killed, so that a server remains. */
typedef struct world_chances {
    unsigned pause, cut, kill; /* chances out of 30; otherwise no fault happens */
} world_chances;
/* Waits for the end of the fault. Returns whether the node was killed. */
bool world_fault(world_node *n, world_chances chances);
/* Waits while the node is paused. */
void world_stand_still(world_node *n);
uint64_t world_below(world *w, uint64_t bound);
void world_sleep_ms(world *w, uint64_t ms);

/* A task of the test, on a pool. */
typedef struct world_task {
    rq_task task;
    world *world;
    world_node *node;
    void (*run)(struct world_task *t);
} world_task;
void world_start(world_task *t, world *w, world_node *n, void (*run)(world_task *t));
/* Runs until all tasks have ended. */
void world_run(world *w);

#define world_fail(w, ...)                                                                         \
    do {                                                                                           \
        fprintf(stderr, "form %d, RQ_SEED=%llu: ", (w)->form, (unsigned long long)(w)->seed);      \
        fail_msg(__VA_ARGS__);                                                                     \
    } while (0)

#endif
