/* SPDX-License-Identifier: Apache-2.0 */
/* POSIX's error numbers, kinds of files and names of a folder in the terms of vfs.h, for all implementations on such file
 * systems. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "vfs/vfs_priv.h"

rq_err rq__errno_code(int e)
{
    switch (e) {
    case ENOENT:
        return RQ_E_NOT_FOUND;
    case ENOTDIR:
        return RQ_E_NOT_FOUND;
    case EEXIST:
        return RQ_E_EXISTS;
    case ENOTEMPTY:
        return RQ_E_EXISTS;
    case ENOSPC:
        return RQ_E_NO_SPACE;
    case EDQUOT:
        return RQ_E_NO_SPACE;
    case EFBIG:
        return RQ_E_NO_SPACE;
    case EACCES:
        return RQ_E_PERMISSION;
    case EPERM:
        return RQ_E_PERMISSION;
    case EROFS:
        return RQ_E_PERMISSION;
    case ENOMEM:
        return RQ_E_NO_MEMORY;
    case EISDIR: /* a folder where a file is to be written */
        return RQ_E_CORRUPT;
    case ELOOP: /* symbolic links that point to each other */
        return RQ_E_CORRUPT;
    case ENXIO: /* a socket, or a device that does not exist */
        return RQ_E_CORRUPT;
    default:
        return RQ_E_IO;
    }
}

const char *rq__file_kind(mode_t mode)
{
    if (S_ISDIR(mode)) return "a folder";
    if (S_ISFIFO(mode)) return "a FIFO";
    if (S_ISSOCK(mode)) return "a socket";
    return S_ISBLK(mode) || S_ISCHR(mode) ? "a device" : "a special file";
}

bool rq__entry_add(rq__entry_list *l, const char *name, bool is_dir, bool is_link)
{
    if (l->count == l->cap) {
        size_t cap = l->cap == 0 ? 16 : l->cap * 2;
        rq_dir_entry *more = rq_arena_calloc(l->arena, cap, sizeof *more);
        if (more == NULL) return false;
        if (l->count > 0) memcpy(more, l->ptr, l->count * sizeof *more);
        l->ptr = more;
        l->cap = cap;
    }
    char *copy = rq_arena_cstr(l->arena, rq_slice_cstr(name));
    if (copy == NULL) return false;
    l->ptr[l->count++] = (rq_dir_entry){.name = copy, .is_dir = is_dir, .is_link = is_link};
    return true;
}
