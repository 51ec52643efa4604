/* SPDX-License-Identifier: Apache-2.0 */
/* See files.h. */
#include "transfer/files.h"

#include "transfer/out.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* --- listing ---------------------------------------------------------------------------------- */

/* Opens a file of 0 bytes: no part reads it, so a file that cannot be read would pass unnoticed. */
static rq_err check_empty(const rq__files *f, const char *path, rq_error *why)
{
    rq_file *file = NULL;
    rq_err rc = rq_vfs_open(f->vfs, path, RQ_OPEN_READ, &file, why);
    (void)rq_file_close(file);
    return rc;
}

static rq_err note(rq__files *f, const char *path, rq_error *why)
{
    rq_stat st;
    RQ_TRY(rq_vfs_stat(f->vfs, path, &st, why));
    if (st.is_dir)
        return rq_fail(why, RQ_E_INVALID, "%s/%s is a folder, not a file", f->input, path);
    if (st.size == 0) RQ_TRY(check_empty(f, path, why));
    f->paths[f->count] = path;
    f->times_ms[f->count] = st.mtime_ms;
    f->sizes[f->count++] = st.size;
    return RQ_OK;
}

static rq_err make_lists(rq__files *f, size_t count, rq_error *why)
{
    f->paths = rq_arena_calloc(&f->arena, count + 1, sizeof *f->paths);
    f->sizes = rq_arena_calloc(&f->arena, count + 1, sizeof *f->sizes);
    f->times_ms = rq_arena_calloc(&f->arena, count + 1, sizeof *f->times_ms);
    return f->paths == NULL || f->sizes == NULL || f->times_ms == NULL ? rq_no_memory(why) : RQ_OK;
}

static rq_err open_folder(rq__files *f, rq_error *why)
{
    rq_dir_entry *list;
    size_t count;
    RQ_TRY(rq_vfs_posix_new(f->input, &f->vfs, why));
    RQ_TRY(rq_vfs_list(f->vfs, "", &f->arena, &list, &count, why));
    RQ_TRY(make_lists(f, count, why));
    for (size_t i = 0; i < count; i++)
        if (list[i].name[0] != '_' && list[i].name[0] != '.') RQ_TRY(note(f, list[i].name, why));
    return f->count > 0 ? RQ_OK : rq_fail(why, RQ_E_NOT_FOUND, "%s has no files", f->input);
}

static rq_err open_file(rq__files *f, rq_error *why)
{
    const char *slash = strrchr(f->input, '/');
    const char *folder = ".";
    if (slash != NULL)
        folder = rq_arena_printf(&f->arena, "%.*s", slash == f->input ? 1 : (int)(slash - f->input),
                                 f->input);
    if (folder == NULL) return rq_no_memory(why);
    f->base = folder;
    f->name = slash == NULL ? f->input : slash + 1;
    RQ_TRY(rq_vfs_posix_new(folder, &f->vfs, why));
    RQ_TRY(make_lists(f, 1, why));
    return note(f, f->name, why);
}

rq_err rq__files_open(const char *input, rq__files *ret, rq_error *why)
{
    struct stat st;
    *ret = (rq__files){.input = input, .base = input};
    if (stat(input, &st) != 0)
        return rq_fail(why, errno == ENOENT ? RQ_E_NOT_FOUND : RQ_E_IO, "%s: %s", input,
                       strerror(errno));
    return S_ISDIR(st.st_mode) ? open_folder(ret, why) : open_file(ret, why);
}

void rq__files_close(rq__files *f)
{
    (void)rq_file_close(f->lock);
    if (f->lock_vfs != NULL) rq_vfs_free(f->lock_vfs);
    if (f->progress_vfs != NULL) rq_vfs_free(f->progress_vfs);
    if (f->vfs != NULL) rq_vfs_free(f->vfs);
    rq_arena_clear(&f->arena);
    *f = (rq__files){0};
}

rq_err rq__files_check_results(const rq__files *f, rq_error *why)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->sizes[i] == 0)
            return rq_fail(why, RQ_E_CORRUPT, "%s/%s is empty, so it is not a SequenceFile",
                           f->base, f->paths[i]);
    return RQ_OK;
}

/* --- parts ------------------------------------------------------------------------------------ */

static size_t parts_of(uint64_t size, uint64_t bytes)
{
    return (size_t)(size / bytes + (size % bytes != 0));
}

rq_err rq__files_split(rq__files *f, uint64_t bytes, rq_error *why)
{
    size_t count = 0;
    for (size_t i = 0; i < f->count; i++)
        count += parts_of(f->sizes[i], bytes);
    f->parts = rq_arena_calloc(&f->arena, count + 1, sizeof *f->parts);
    if (f->parts == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < f->count; i++)
        for (uint64_t from = 0; from < f->sizes[i];) {
            uint64_t left = f->sizes[i] - from;
            uint64_t to = from + (left < bytes ? left : bytes);
            f->parts[f->part_count++] = (rq__file_part){f->paths[i], from, to, f->times_ms[i]};
            from = to;
        }
    return RQ_OK;
}

/* Names may have line breaks, the plan's lines may not. */
static char *line_of(rq__files *f, const rq__file_part *p, bool with_times)
{
    char *text =
        with_times
            ? rq_arena_printf(&f->arena, "%" PRIu64 " %" PRIu64 " of %" PRId64 " %s", p->from,
                              p->to, p->time_ms, p->path)
            : rq_arena_printf(&f->arena, "%" PRIu64 " %" PRIu64 " %s", p->from, p->to, p->path);
    for (char *at = text; at != NULL && (at = strchr(at, '\n')) != NULL;)
        *at = ' ';
    return text;
}

rq_err rq__files_texts(rq__files *f, bool with_times, const char *const **ret, rq_error *why)
{
    const char **texts = rq_arena_calloc(&f->arena, f->part_count + 1, sizeof *texts);
    if (texts == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < f->part_count; i++)
        if ((texts[i] = line_of(f, &f->parts[i], with_times)) == NULL) return rq_no_memory(why);
    *ret = texts;
    return RQ_OK;
}

/* Whether the plan has the same parts but no times of files, as earlier versions of rorqual wrote it. */
static bool lacks_times(rq__files *f, const rq__plan *plan)
{
    bool same = plan->count == f->part_count;
    for (size_t i = 0; same && i < plan->count; i++) {
        const char *line = line_of(f, &f->parts[i], false);
        same = line != NULL && strcmp(plan->parts[i], line) == 0;
    }
    return same;
}

/* Two transfers with the same progress would disturb each other. */
static rq_err lock_folder(rq__files *f, const char *base, const char *folder, rq_error *why)
{
    const char *path = rq_arena_printf(&f->arena, "%s/%s", base, folder);
    if (path == NULL) return rq_no_memory(why);
    RQ_TRY(rq_vfs_posix_new(path, &f->lock_vfs, why));
    return rq_vfs_lock(f->lock_vfs, NULL, &f->lock, why);
}

rq_err rq__files_plan(rq__files *f, const char *progress, const char *name, const char *what,
                      rq__plan *ret, rq_error *why)
{
    rq_error mine = {.code = RQ_OK};
    if (progress != NULL)
        RQ_TRY(rq__open_folder(progress, 0700, &f->progress_vfs, &f->has_made_progress, why));
    rq_vfs *v = progress != NULL ? f->progress_vfs : f->vfs;
    const char *folder = progress != NULL ? name
                         : f->name != NULL
                             ? rq_arena_printf(&f->arena, "_rorqual/file/%s/%s", f->name, name)
                             : rq_arena_printf(&f->arena, "_rorqual/%s", name);
    const char *const *texts;
    if (folder == NULL) return rq_no_memory(why);
    RQ_TRY(rq__files_texts(f, true, &texts, why));
    rq_err rc = rq_vfs_mkdirs(v, folder, &mine);
    if (rc != RQ_OK)
        return rq_fail(why, rc,
                       "cannot write the progress next to the input: %s; choose another folder "
                       "with --progress FOLDER",
                       mine.message);
    RQ_TRY(lock_folder(f, progress != NULL ? progress : f->base, folder, why));
    rc = rq__plan_open(v, folder, what, texts, f->part_count, true, ret, &mine);
    if (rc == RQ_E_CONFLICT && lacks_times(f, ret))
        return rq_fail(why, RQ_E_VERSION,
                       "the run recorded in %s was begun by an older version of rorqual, which did "
                       "not record the files' modification times: finish the run with that "
                       "version, or remove the folder to start over",
                       folder);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", mine.message);
}
