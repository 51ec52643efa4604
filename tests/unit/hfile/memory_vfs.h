/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files in memory, for tests and fuzzing of readers: files can be written and read as bytes,
 * try_read fails with a given probability, and the n-th call can be made to fail. For one thread,
 * or for concurrent reads.
 */
#ifndef RQ_TESTS_HFILE_MEMORY_VFS_H
#define RQ_TESTS_HFILE_MEMORY_VFS_H

#include "base/buf.h"
#include "base/random.h"
#include "vfs/vfs.h"

typedef struct memory_file {
    rq_file base;
    char *name;
    rq_buf bytes;
    bool synced;
    struct memory_file *next;
} memory_file;

typedef struct memory_vfs {
    rq_vfs base;
    memory_file *files;
    rq_random random;
    unsigned again_percent; /* percentage of try_reads that return RQ_E_AGAIN */
    _Atomic uint64_t calls; /* reads, writes, syncs */
    uint64_t fail_at;       /* the number of the call that returns RQ_E_IO; 0: none */
    uint64_t dir_syncs;
} memory_vfs;

void memory_vfs_init(memory_vfs *m, uint64_t seed);
void memory_vfs_clear(memory_vfs *m);
/* The file's bytes, to be read or changed; NULL if the file does not exist. */
rq_buf *memory_vfs_bytes(memory_vfs *m, const char *name);
/* Makes a file with a copy of the bytes. */
void memory_vfs_put(memory_vfs *m, const char *name, rq_slice bytes);

#endif
