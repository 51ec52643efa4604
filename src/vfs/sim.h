/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated environment: files in memory that can be lost as a disk loses them, and an executor
 * that runs everything on one thread, in an order drawn from a seed, under a clock of its own. The
 * same seed and the same calls give the same run.
 *
 * Files. A program sees the *current* state; the simulation also keeps the state on disk. sync
 * copies a file's bytes and size to disk, sync_dir a folder's names. Now and then a sector is
 * written back unasked, as an operating system does. After a power cut, rq_sim_restart decides by
 * chance what the disk holds: for each 512-byte sector that was not synced, the old or the new
 * bytes; for each file, one of its unsynced sizes (missing bytes are zero); for each unsynced name,
 * independently, whether it is as before or as after the change.
 *
 * A test of power cuts:
 *
 *     rq_sim_new(seed, NULL, &sim);
 *     open the engine on rq_sim_env(sim); note rq_sim_calls(sim)
 *     rq_sim_cut_at(sim, k);               // the k-th vfs call from the start of the simulation
 *     run the script; its calls fail with RQ_E_IO from call k on. Note what was acknowledged
 *     close the engine, ignoring errors    // everything unwinds: all vfs calls fail, none counts
 *     rq_sim_restart(sim);                 // the disk as the cut left it; the counter goes on
 *     open again, compare with what was acknowledged
 *
 * Executor. Tasks run only inside rq_sim_step, rq_sim_run, rq_sim_run_until and latch_wait. Pool
 * tasks run on stacks of their own and may wait on latches while others run, but never with a mutex
 * held. When nothing can run, the clock jumps to the next timer. When there is no timer and a task
 * waits, the simulation aborts with a message that names the seed.
 */
#ifndef RQ_VFS_SIM_H
#define RQ_VFS_SIM_H

#include "base/env.h"
#include "vfs/vfs.h"

typedef struct rq_sim rq_sim;

typedef struct rq_sim_options {
    bool ignore_sync;       /* sync and sync_dir return RQ_OK and do nothing; tests must notice */
    unsigned again_percent; /* chance of RQ_E_AGAIN from try_read */
    /* Chance that rq_file_begin_read begins a read; about a fourth of these fail or end early. */
    unsigned begin_percent;
    unsigned writeback_percent; /* chance per call that a random unsynced sector is written back;
                                 * 0: 5 */
    int log_fd;                 /* for the env's log; 0: no log */
} rq_sim_options;

/* options may be NULL. */
RQ_NODISCARD rq_err rq_sim_new(uint64_t seed, const rq_sim_options *options, rq_sim **ret);
/* REQUIRES: the engine is closed. NULL is allowed. */
void rq_sim_free(rq_sim *sim);
/* Valid for the life of the simulation, across restarts. */
rq_env *rq_sim_env(rq_sim *sim);
/* Random numbers for the test: reproducible, and independent of the simulation's. */
uint64_t rq_sim_random(rq_sim *sim);

/* --- files ------------------------------------------------------------------------------------ */
/* vfs calls made so far. Each operation of struct rq_vfs counts as one, except close, size,
 * try_read, begin_read, plan_read, identify and drop_behind. */
uint64_t rq_sim_calls(const rq_sim *sim);
/* Cuts the power at that call (calls are numbered from 1; that call may or may not have begun to
 * reach the disk). It and all later calls fail with RQ_E_IO until restart. 0: never. */
void rq_sim_cut_at(rq_sim *sim, uint64_t call);
void rq_sim_cut_now(rq_sim *sim);
bool rq_sim_is_cut(const rq_sim *sim);
/* Makes one call fail with `rc`. By chance it does nothing, or part of its work: a write may be
 * partial, a name may be created or removed nevertheless, and a failed sync leaves its file's
 * unsynced bytes to chance. Up to 8 may be pending. */
void rq_sim_fail_at(rq_sim *sim, uint64_t call, rq_err rc);
/* From now on each call that writes, creates or syncs fails with `rc` (with RQ_E_NO_SPACE, syncs
 * succeed). RQ_OK: end. */
void rq_sim_fail_writes(rq_sim *sim, rq_err rc);
/* Limits the bytes of all files together. A write that needs more stops at the limit with
 * RQ_E_NO_SPACE; allocated bytes may still be overwritten, synced and removed. The limit may be
 * below the bytes in use. 0: no limit. Survives a restart. */
void rq_sim_quota(rq_sim *sim, uint64_t bytes);
/* Bytes in use, as the quota counts them. */
uint64_t rq_sim_used(const rq_sim *sim);
/* Counts writes that ended inside a page and were the first to write into it. If the operating
 * system had evicted that page, it would have to read it first. Meaningful for files that are
 * written from front to back. */
uint64_t rq_sim_pages_begun(const rq_sim *sim);
/* Total bytes passed to rq_file_drop_behind. */
uint64_t rq_sim_dropped(const rq_sim *sim);
/* Applies the losses of a power cut (and cuts, if there was none) and lets calls succeed again.
 * Files opened before fail forever; locks are free. REQUIRES: no task is queued. Armed timers
 * are dropped. */
void rq_sim_restart(rq_sim *sim);
/* Like restart, but only the process died: everything it wrote is there, synced or not. Unsynced
 * bytes may still be lost by a later power cut. */
void rq_sim_restart_process(rq_sim *sim);
/* Flips one bit, in memory and on disk. False if there is no such byte. */
bool rq_sim_flip_bit(rq_sim *sim, const char *path, uint64_t offset, unsigned bit);
/* The whole tree as text, one line per file (path, size, CRC-32C), for comparisons. The caller
 * frees it. NULL: memory is exhausted. */
char *rq_sim_tree(rq_sim *sim);
/* Prints each counted vfs call to stderr. */
void rq_sim_trace(rq_sim *sim, bool on);

/* --- executor --------------------------------------------------------------------------------- */
/* A lane that stands in for an event loop; freed by env->executor->lane_free. */
RQ_NODISCARD rq_err rq_sim_lane_new(rq_sim *sim, rq_lane **ret);
/* Runs one task, chosen by chance among the tasks that can run. False: there is none. */
bool rq_sim_step(rq_sim *sim);
/* Runs tasks until none can run. The clock does not advance. */
void rq_sim_run(rq_sim *sim);
/* Runs tasks until the latch is open. The clock jumps when nothing can run. Returns the latch's
 * rc. */
rq_err rq_sim_run_until(rq_sim *sim, rq_latch *latch);
/* Advances the clock by `ns`, running tasks that become due. */
void rq_sim_advance(rq_sim *sim, uint64_t ns);
/* Sets the wall clock forward (or back). The monotonic clock does not change. */
void rq_sim_set_clock(rq_sim *sim, int64_t forward_ms);

#endif
