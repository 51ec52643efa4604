/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens client-given paths below a folder, without following a symbolic link. Paths have passed
 * vfs.c's check: no part is empty, "." or ".." ("." alone is the folder itself).
 */
#ifndef RQ_VFS_POSIX_PRIV_H
#define RQ_VFS_POSIX_PRIV_H

#include <sys/types.h>

/* Like openat: returns a descriptor, or -1 with errno. A symbolic link gives ELOOP; in the
 * middle of the path, on kernels without openat2, ENOTDIR. */
int rq__open_beneath(int folder, const char *path, int flags, mode_t mode);
/* Opens the folder that contains the path's last name. *ret_name is that name. */
int rq__open_folder_of(int folder, const char *path, const char **ret_name);

#endif
