/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening beneath a folder; contract in posix_priv.h. openat2 resolves the whole path in one call.
 * Without it (Linux before 5.6, a seccomp filter that does not know it) the path is walked name by
 * name, each relative to its folder's descriptor, so that no name is looked up outside.
 */
#include "vfs/posix_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vfs/vfs_priv.h"

/* openat2 fails with EAGAIN when names change during the lookup. */
#define TRIES_MAX 16

static int by_openat2(int folder, const char *path, int flags, mode_t mode)
{
    struct open_how how = {.flags = (unsigned)flags,
                           .mode = (flags & O_CREAT) != 0 ? mode : 0,
                           .resolve =
                               RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    long fd = -1;
    for (int i = 0; i < TRIES_MAX; i++) {
        fd = syscall(SYS_openat2, folder, path, &how, sizeof how);
        if (fd >= 0 || errno != EAGAIN) break;
    }
    return (int)fd;
}

/* Closes `folder` unless it is `first`. */
static int step(int first, int folder, const char *name, int flags, mode_t mode)
{
    int fd = openat(folder, name, flags | O_NOFOLLOW | O_CLOEXEC, mode);
    int e = errno;
    if (folder != first) close(folder);
    errno = e;
    return fd;
}

static int by_names(int folder, const char *path, int flags, mode_t mode)
{
    char copy[RQ_PATH_MAX];
    if (strlen(path) >= sizeof copy) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(copy, path);
    int at = folder;
    char *name = copy;
    for (char *slash; at >= 0 && (slash = strchr(name, '/')) != NULL; name = slash + 1) {
        *slash = '\0';
        at = step(folder, at, name, O_PATH | O_DIRECTORY, 0);
    }
    return at < 0 ? at : step(folder, at, name, flags, mode);
}

int rq__open_beneath(int folder, const char *path, int flags, mode_t mode)
{
    int fd = by_openat2(folder, path, flags, mode);
    if (fd >= 0 || (errno != ENOSYS && errno != EPERM && errno != EINVAL && errno != E2BIG))
        return fd;
    return by_names(folder, path, flags, mode);
}

int rq__open_folder_of(int folder, const char *path, const char **ret_name)
{
    char parent[RQ_PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t len = slash == NULL ? 0 : (size_t)(slash - path);
    *ret_name = slash == NULL ? path : slash + 1;
    if (len >= sizeof parent) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(parent, slash == NULL ? "." : path, slash == NULL ? 1 : len);
    parent[slash == NULL ? 1 : len] = '\0';
    return rq__open_beneath(folder, parent, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
}
