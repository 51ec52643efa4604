/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens client-given paths below a folder, without following a symbolic link. Paths have passed
 * vfs.c's check: no part is empty, "." or ".." ("." alone is the folder itself).
 */
#ifndef RQ_VFS_POSIX_PRIV_H
#define RQ_VFS_POSIX_PRIV_H

#include "base/err.h"
#include "vfs/vfs.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Like openat: returns a descriptor, or -1 with errno. A symbolic link gives ELOOP; in the
 * middle of the path, on kernels without openat2, ENOTDIR. */
int rq__open_beneath(int folder, const char *path, int flags, mode_t mode);
/* Opens the folder that contains the path's last name. *ret_name is that name. */
int rq__open_folder_of(int folder, const char *path, const char **ret_name);

/* --- reads from the page cache (posix_cached.c) ---------------------------------------------- */

enum { RQ__LOOKS_UNKNOWN, RQ__LOOKS_YES, RQ__LOOKS_NO };

/* What is known about the page cache of a folder's file system. Zero: nothing. Any thread. */
typedef struct rq__cached {
    _Atomic int looks;       /* whether the kernel tells what is cached */
    _Atomic unsigned failed; /* tries in a row, since the last that succeeded */
} rq__cached;

/* Reads up to `len` bytes if they are in the page cache; returns their number, which is smaller
 * only at the end of the file. -1: an error, in *ret_errno; EAGAIN: the bytes are not cached, or
 * the read was not tried because such reads have failed lately. */
ssize_t rq__cached_read(rq__cached *c, int fd, void *buf, size_t len, uint64_t off, int *ret_errno);
/* Called after these bytes were read in the ordinary way: finds out whether cachestat can be
 * trusted. */
void rq__cached_learn(rq__cached *c, int fd, uint64_t off, size_t len);

typedef struct rq__cached_counts {
    uint64_t pages; /* of the range */
    uint64_t cached, evicted, recently_evicted;
} rq__cached_counts;
/* The kernel's record of these bytes. False: the kernel does not provide one. */
bool rq__cached_look(rq__cached *c, int fd, uint64_t off, uint64_t len, rq__cached_counts *ret);

/* --- reads past the page cache (posix_direct.c) ----------------------------------------------- */

/* The descriptors that a vfs has open for direct reads. */
typedef struct rq__direct_count {
    _Atomic int open;
    int most;
} rq__direct_count;

/* Sets `most` to a share of the process's limit of open descriptors. */
void rq__direct_count_init(rq__direct_count *c);

/* The state of an open file. */
typedef struct rq__direct {
    _Atomic int fd; /* for direct reads; negative: none */
    _Atomic unsigned reads;
} rq__direct;

typedef struct rq__direct_file {
    rq__direct_count *count;
    int root; /* of `path` */
    const char *path;
    int fd;
} rq__direct_file;

void rq__direct_init(rq__direct *d);
void rq__direct_clear(rq__direct *d, rq__direct_count *c);
/* False for one read in sixteen, which is made through the page cache. Counts the read. */
bool rq__direct_has_its_turn(rq__direct *d);
/* Whether the page cache would not keep these bytes. */
bool rq__direct_is_worth_it(rq__direct *d, rq__cached *c, int fd, uint64_t off, size_t len);
/* The same for a read that no thread waits for (reads.h): the file's descriptor for direct reads, or -1. A thread makes the
 * file's first direct read, which opens the descriptor, and one read in sixteen, which uses the page cache. */
int rq__direct_worth_beginning(rq__direct *d, rq__cached *c, int fd, uint64_t off, size_t len);
/* The plan for a sequential read of these bytes (vfs.h). */
rq_read_plan rq__direct_plan(rq__direct *d, rq__cached *c, int fd, uint64_t off, uint64_t len);
/* Reads the bytes past the page cache. False: nothing was read, and the caller reads in the
 * ordinary way (which reports an error, or the end of the file). Blocks. */
bool rq__direct_read(rq__direct *d, const rq__direct_file *f, void *buf, size_t len, uint64_t off);

/* --- reads in sequence (posix_sequence.c) ------------------------------------------------------ */

/* The advice for posix_fadvise that makes a file of this file's device be read ahead. */
int rq__sequence_advice(int fd);
/* The same for a device that reads ahead so much by itself; -1: unknown. */
int rq__sequence_advice_for(long read_ahead_kb);

/* --- locks and fork (posix_fork.c) ------------------------------------------------------------ */

/* The descriptors of a held lock, embedded in the lock's struct. They are set to -1 in a forked
 * child. */
typedef struct rq__held {
    struct rq__held *next;
    int *descriptors[2];
} rq__held;

/* Prevents forks until the end of the section, which must be short. RQ_E_NO_MEMORY: not begun. */
RQ_NODISCARD
rq_err rq__held_begin(void);
void rq__held_end(void);
/* Adds a lock to the list. REQUIRES: between rq__held_begin and rq__held_end. */
void rq__held_add(rq__held *h, int *first, int *second);
/* Removes it; a lock that is not in the list is no error. REQUIRES: as for rq__held_add. */
void rq__held_remove(rq__held *h);

#endif
