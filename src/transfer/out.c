/* SPDX-License-Identifier: Apache-2.0 */
/* See out.h. */
#include "transfer/out.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_BYTES (1024 * 1024)
#define PATH_BYTES 4096

rq_err rq__drop_file(rq_vfs *v, const char *path, rq_error *why)
{
    rq_error mine = {.code = RQ_OK};
    rq_err rc = rq_vfs_remove(v, path, &mine);
    if (rc == RQ_OK || rc == RQ_E_NOT_FOUND) return RQ_OK;
    return rq_fail(why, rc, "%s", mine.message);
}

rq_err rq__out_open(rq_vfs *v, const char *path, rq__out *ret, rq_error *why)
{
    *ret = (rq__out){0};
    RQ_TRY(rq__drop_file(v, path, why));
    return rq_vfs_open(v, path, RQ_OPEN_WRITE | RQ_OPEN_CREATE | RQ_OPEN_EXCL, &ret->file, why);
}

rq_err rq__out_flush(rq__out *o, rq_error *why)
{
    if (o->buf.len == 0) return RQ_OK;
    RQ_TRY(rq_file_write(o->file, o->buf.ptr, o->buf.len, o->flushed, why));
    o->flushed += o->buf.len;
    rq_buf_reset(&o->buf);
    return RQ_OK;
}

rq_err rq__out_ease(rq__out *o, rq_error *why)
{
    return o->buf.len < BUFFER_BYTES ? RQ_OK : rq__out_flush(o, why);
}

rq_err rq__out_finish(rq__out *o, rq_error *why)
{
    RQ_TRY(rq__out_flush(o, why));
    return rq_file_sync(o->file, why);
}

void rq__out_close(rq__out *o)
{
    (void)rq_file_close(o->file);
    rq_buf_clear(&o->buf);
    *o = (rq__out){0};
}

rq_err rq__open_folder(const char *path, mode_t mode, rq_vfs **ret, bool *ret_made, rq_error *why)
{
    bool is_made = mkdir(path, mode) == 0;
    if (!is_made && errno != EEXIST)
        return rq_fail(why, RQ_E_IO, "cannot make %s: %s", path, strerror(errno));
    if (ret_made != NULL) *ret_made = is_made;
    return rq_vfs_posix_new(path, ret, why);
}

void rq__drop_empty_folder(const char *path)
{
    (void)rmdir(path); /* one that is not empty stays */
}

rq_err rq__move_file(rq_vfs *v, const char *from, const char *to, rq_error *why)
{
    RQ_TRY(rq__drop_file(v, to, why));
    return rq_vfs_move(v, from, to, why);
}

/* A file is replaced in three steps: PATH.draft is written; it is renamed to PATH.new when it is complete and durable;
 * PATH is removed, and PATH.new is renamed to PATH. After a crash PATH.new, if it exists, is the current file: the last
 * step is done again. */
rq_err rq__complete_file(rq_vfs *v, const char *path, rq_error *why)
{
    char complete[PATH_BYTES];
    rq_stat st;
    rq_error mine = {.code = RQ_OK};
    snprintf(complete, sizeof complete, "%s.new", path);
    rq_err rc = rq_vfs_stat(v, complete, &st, &mine);
    if (rc == RQ_E_NOT_FOUND) return RQ_OK;
    return rc == RQ_OK ? rq__move_file(v, complete, path, why)
                       : rq_fail(why, rc, "%s", mine.message);
}

rq_err rq__put_file(rq_vfs *v, const char *path, rq_slice bytes, rq_error *why)
{
    char draft[PATH_BYTES], complete[PATH_BYTES];
    snprintf(draft, sizeof draft, "%s.draft", path);
    snprintf(complete, sizeof complete, "%s.new", path);
    RQ_TRY(rq__complete_file(v, path, why));
    RQ_TRY(rq__drop_file(v, draft, why));
    RQ_TRY(rq_vfs_write_new_file(v, draft, bytes, why));
    RQ_TRY(rq_vfs_move(v, draft, complete, why));
    return rq__move_file(v, complete, path, why);
}
