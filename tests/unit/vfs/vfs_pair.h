/* SPDX-License-Identifier: Apache-2.0 */
/* The same random calls on two vfs, whose results must be equal. */
#ifndef RQ_TESTS_VFS_PAIR_H
#define RQ_TESTS_VFS_PAIR_H

#include "vfs/vfs.h"

typedef struct vfs_pair {
    rq_vfs *first, *second;
} vfs_pair;

/* Fails the test at the first difference, naming the seed. REQUIRES: both are empty. */
void vfs_pair_agrees(const vfs_pair *p, uint64_t with_seed, int calls);
/* Removes what the calls have left. */
void vfs_pair_clear(rq_vfs *v);

#endif
