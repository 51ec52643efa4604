/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening what a path of somebody else names: below a folder, through no symbolic link. Paths have
 * passed vfs.c's check: no empty, "." or ".." part ("." alone is the folder itself).
 */
#ifndef RQ_VFS_POSIX_PRIV_H
#define RQ_VFS_POSIX_PRIV_H

#include <sys/types.h>

/* As openat: a descriptor, or -1 with errno. A symbolic link is ELOOP, in the middle of the path
 * where the kernel has no openat2 ENOTDIR. */
int rq__open_beneath(int folder, const char *path, int flags, mode_t mode);
/* The folder that the path's last name stands in, to find names in. */
int rq__open_folder_of(int folder, const char *path, const char **ret_name);

#endif
