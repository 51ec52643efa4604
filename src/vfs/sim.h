/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated environment: files in memory that can be lost as a disk loses them, and an executor
 * that runs everything on one thread in an order drawn from a seed, under a clock of its own. The
 * same seed and the same calls give the same run.
 *
 * Files. What a program sees is the *current* state; beside it stands what the disk holds. sync
 * copies a file's bytes and size, sync_dir a folder's names; from time to time a sector is written
 * back on its own, as an operating system does. After a power cut rq_sim_restart decides by chance,
 * for each 512-byte sector that was not synced, whether the disk has the old or the new one; for
 * each file which of its unsynced sizes holds (missing bytes are zeros); and for each unsynced name
 * of each folder, independently, whether it is as before or as after.
 *
 * A test of power cuts:
 *
 *     rq_sim_new(seed, NULL, &sim);
 *     open the engine on rq_sim_env(sim); note rq_sim_calls(sim)
 *     rq_sim_cut_at(sim, k);               // the k-th vfs call from the start of the simulation
 *     run the script; its calls begin to fail with RQ_E_IO at call k. Note what was acknowledged
 *     close the engine, ignoring errors    // everything unwinds: all vfs calls fail, none counts
 *     rq_sim_restart(sim);                 // the disk as the cut left it; the counter goes on
 *     open again, compare with what was acknowledged
 *
 * Executor. Tasks run only inside rq_sim_step, _run, _run_until and latch_wait. Pool tasks run on
 * stacks of their own and may wait on latches while others run; never with a mutex held. When
 * nothing can run, the clock jumps to the next timer; when there is none and somebody waits, the
 * simulation aborts with a message that names the seed.
 */
#ifndef RQ_VFS_SIM_H
#define RQ_VFS_SIM_H

#include "base/env.h"
#include "vfs/vfs.h"

typedef struct rq_sim rq_sim;

typedef struct rq_sim_options {
    bool ignore_sync;       /* sync and sync_dir answer RQ_OK and do nothing: tests must notice */
    unsigned again_percent; /* how often try_read answers RQ_E_AGAIN */
    unsigned writeback_percent; /* chance per call that a random unsynced sector reaches the disk;
                                   0: 5 */
    int log_fd;                 /* of the env's log; 0: none */
} rq_sim_options;

/* options may be NULL. */
RQ_NODISCARD rq_err rq_sim_new(uint64_t seed, const rq_sim_options *options, rq_sim **ret);
/* The engine is closed before. NULL is fine. */
void rq_sim_free(rq_sim *sim);
/* Valid as long as the simulation, restarts included. */
rq_env *rq_sim_env(rq_sim *sim);
/* The test's own chance, reproducible but apart from the simulation's. */
uint64_t rq_sim_random(rq_sim *sim);

/* --- files ------------------------------------------------------------------------------------ */
/* vfs calls made so far. Each verb of struct rq_vfs but close, size and try_read counts as one. */
uint64_t rq_sim_calls(const rq_sim *sim);
/* The power goes at that call (numbers start at 1; the call itself may or may not have begun to
 * reach the disk): it and all later ones fail with RQ_E_IO, until restart. 0: never. */
void rq_sim_cut_at(rq_sim *sim, uint64_t call);
void rq_sim_cut_now(rq_sim *sim);
bool rq_sim_is_cut(const rq_sim *sim);
/* That one call fails with `rc` and does nothing (a write may have done a part of it; a sync leaves
 * its file's unsynced bytes to chance). Up to 8 pending. */
void rq_sim_fail_at(rq_sim *sim, uint64_t call, rq_err rc);
/* Each call that writes, creates or syncs fails with `rc` from now on (with RQ_E_NO_SPACE syncs go
 * on); RQ_OK: no more. */
void rq_sim_fail_writes(rq_sim *sim, rq_err rc);
/* From now on all files together may take that many bytes: what would take more stops there with
 * RQ_E_NO_SPACE, what has its place may be overwritten, synced and removed. Less than what is there
 * is fine. 0: as many as they like. A restart changes nothing about it. */
void rq_sim_quota(rq_sim *sim, uint64_t bytes);
/* Bytes taken, as the quota counts them. */
uint64_t rq_sim_used(const rq_sim *sim);
/* Writes that ended inside a page of the file's which they were the first to write into, if files
 * are written from front to back: a system that had let the page go would have to read it first. */
uint64_t rq_sim_pages_begun(const rq_sim *sim);
/* Bytes that rq_file_drop_behind was told of. */
uint64_t rq_sim_dropped(const rq_sim *sim);
/* Applies the losses and lets calls through again. Without a cut before, it is one. Open files of
 * before fail for ever; locks are free. REQUIRES: no task is queued (armed timers are dropped). */
void rq_sim_restart(rq_sim *sim);
/* Like restart, but only the process died: everything it wrote is there, synced or not, and may
 * still be lost by a later power cut. */
void rq_sim_restart_process(rq_sim *sim);
/* Flips one bit, in memory and on disk. False if there is no such byte. */
bool rq_sim_flip_bit(rq_sim *sim, const char *path, uint64_t offset, unsigned bit);
/* The whole tree as text, one line per file (path, size, CRC-32C): for comparisons. malloc'ed. */
char *rq_sim_tree(rq_sim *sim);
/* Prints each counted vfs call to stderr. */
void rq_sim_trace(rq_sim *sim, bool on);

/* --- executor --------------------------------------------------------------------------------- */
/* A lane for tests that stand in for an event loop; freed by env->executor->lane_free. */
RQ_NODISCARD rq_err rq_sim_lane_new(rq_sim *sim, rq_lane **ret);
/* Runs one task, chosen by chance among those that can run. False when there is none. */
bool rq_sim_step(rq_sim *sim);
/* Until nothing can run; the clock stands still. */
void rq_sim_run(rq_sim *sim);
/* Until the latch is open; the clock jumps when nothing can run. Returns the latch's rc. */
rq_err rq_sim_run_until(rq_sim *sim, rq_latch *latch);
/* Moves the clock, running what becomes due on the way. */
void rq_sim_advance(rq_sim *sim, uint64_t ns);
/* Somebody sets the wall clock; the monotonic one goes on as before. */
void rq_sim_set_clock(rq_sim *sim, int64_t forward_ms);

#endif
