/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files in memory, for tests and fuzzing of readers: given bytes can be put in and taken out,
 * try_read refuses as often as wanted, and the n-th call can be made to fail. One thread, or reads
 * only.
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
    unsigned again_percent; /* of try_reads that answer RQ_E_AGAIN */
    _Atomic uint64_t calls; /* reads, writes, syncs */
    uint64_t fail_at;       /* this call returns RQ_E_IO; 0: none */
    uint64_t dir_syncs;
} memory_vfs;

void memory_vfs_init(memory_vfs *m, uint64_t seed);
void memory_vfs_clear(memory_vfs *m);
/* The file's bytes, to look at or to change; NULL when there is no such file. */
rq_buf *memory_vfs_bytes(memory_vfs *m, const char *name);
/* Puts a copy of the bytes there. */
void memory_vfs_put(memory_vfs *m, const char *name, rq_slice bytes);

#endif
