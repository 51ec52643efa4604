/* SPDX-License-Identifier: Apache-2.0 */
/* See bulk_work.h. */
#include "transfer/bulk_work.h"

#include "base/digest.h"
#include "transfer/out.h"

#include <inttypes.h>
#include <stdio.h>

#define SMALL_BYTES_MAX 65536 /* of place, step and a part's mark */
#define FOR "for "

static const char *const steps[] = {
    [RQ__BULK_SORTING] = "sorting", [RQ__BULK_MERGED] = "merged", [RQ__BULK_LOADED] = "loaded"};

static const char *path_of(rq__bulk_work *w, const char *name)
{
    return rq_arena_printf(&w->arena, "%s/%s", w->folder, name);
}

/* --- reading ---------------------------------------------------------------------------------- */

/* NULL in *ret: there is no such file. */
static rq_err read_small(rq__bulk_work *w, const char *name, const char **ret, rq_error *why)
{
    rq_slice text;
    rq_error mine = {.code = RQ_OK};
    const char *path = path_of(w, name);
    *ret = NULL;
    if (path == NULL) return rq_no_memory(why);
    RQ_TRY(rq__complete_file(w->vfs, path, why));
    rq_err rc = rq_vfs_read_file(w->vfs, path, SMALL_BYTES_MAX, &w->arena, &text, &mine);
    if (rc == RQ_E_NOT_FOUND) return RQ_OK;
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", mine.message);
    *ret = rq_arena_cstr(&w->arena, text);
    return *ret == NULL ? rq_no_memory(why) : RQ_OK;
}

static bool is_line(const char *text, const char *line)
{
    size_t len = strlen(line);
    return strncmp(text, line, len) == 0 && text[len] == '\n';
}

static rq_err read_step(rq__bulk_work *w, rq_error *why)
{
    char word[16];
    const char *text;
    RQ_TRY(read_small(w, "step", &text, why));
    if (text == NULL) return RQ_OK;
    const char *second = strchr(text, '\n');
    w->step_is_for = second == NULL || strncmp(second + 1, FOR, strlen(FOR)) != 0
                         ? NULL
                         : second + 1 + strlen(FOR);
    if (sscanf(text, "%15s %" SCNu64 " %" SCNu64 " %" SCNu64, word, &w->files, &w->rows,
               &w->cells) == 4)
        for (rq__bulk_step s = RQ__BULK_MERGED; s <= RQ__BULK_LOADED; s++)
            if (strcmp(word, steps[s]) == 0) w->step = s;
    return w->step != RQ__BULK_SORTING ? RQ_OK
                                       : rq_fail(why, RQ_E_CORRUPT, "%s/step is damaged", w->shown);
}

/* --- opening ---------------------------------------------------------------------------------- */

static rq_err open_folders(rq__bulk_work *w, const char *progress, const char *name, rq_error *why)
{
    RQ_TRY(rq__open_folder(progress, 0700, &w->own_vfs, &w->has_made_progress, why));
    w->vfs = w->own_vfs;
    RQ_TRY(rq_vfs_mkdirs(w->vfs, name, why));
    RQ_TRY(rq_vfs_posix_new(w->shown, &w->lock_vfs, why));
    return rq_vfs_lock(w->lock_vfs, NULL, &w->lock, why);
}

/* Whether the command was killed while it removed the folder: the plan is gone, and the step still tells that all
 * is loaded. */
static rq_err was_removed(rq__bulk_work *w, bool *ret, rq_error *why)
{
    rq_stat st;
    rq_error mine = {.code = RQ_OK};
    const char *plan = path_of(w, "plan");
    *ret = false;
    if (plan == NULL) return rq_no_memory(why);
    rq_err rc = rq_vfs_stat(w->vfs, plan, &st, &mine);
    if (rc == RQ_OK) return RQ_OK;
    if (rc != RQ_E_NOT_FOUND) return rq_fail(why, rc, "%s", mine.message);
    rc = read_step(w, &mine);
    if (rc != RQ_OK && rc != RQ_E_CORRUPT) return rq_fail(why, rc, "%s", mine.message);
    *ret =
        w->step == RQ__BULK_LOADED && w->step_is_for != NULL && is_line(w->step_is_for, w->digest);
    if (!*ret) w->step = RQ__BULK_SORTING; /* another command's, or none's */
    return RQ_OK;
}

static rq_err digest_of(const char *what, const char *const *texts, size_t count, char *ret,
                        rq_error *why)
{
    rq_buf b = {0};
    rq_err rc = rq_buf_printf(&b, "%s\n", what);
    for (size_t i = 0; rc == RQ_OK && i < count; i++)
        rc = rq_buf_printf(&b, "%s\n", texts[i]);
    if (rc == RQ_OK) rq_md5_hex(rq_buf_slice(&b), ret);
    rq_buf_clear(&b);
    return rc == RQ_OK ? RQ_OK : rq_no_memory(why);
}

static rq_err open_plan(rq__bulk_work *w, const char *what, rq__files *files, rq_error *why)
{
    const char *const *texts;
    rq_error mine = {.code = RQ_OK};
    bool is_over;
    RQ_TRY(rq__files_texts(files, true, &texts, why));
    RQ_TRY(digest_of(what, texts, files->part_count, w->digest, why));
    RQ_TRY(was_removed(w, &is_over, why));
    if (is_over) {
        w->is_over = w->plan.is_resumed = true;
        return RQ_OK;
    }
    rq_err rc =
        rq__plan_open(w->vfs, w->folder, what, texts, files->part_count, true, &w->plan, &mine);
    if (rc != RQ_OK) return rq_fail(why, rc, "%s: %s", w->shown, mine.message);
    RQ_TRY(read_small(w, "place", &w->place, why));
    return read_step(w, why);
}

rq_err rq__work_open(const char *progress, rq_vfs *vfs, const char *vfs_path, const char *name,
                     const char *what, rq__files *files, rq__bulk_work *ret, rq_error *why)
{
    *ret = (rq__bulk_work){.vfs = vfs, .folder = name};
    ret->shown =
        rq_arena_printf(&files->arena, "%s/%s", progress != NULL ? progress : vfs_path, name);
    if (ret->shown == NULL) return rq_no_memory(why);
    if (progress != NULL) RQ_TRY(open_folders(ret, progress, name, why));
    RQ_TRY(open_plan(ret, what, files, why));
    ret->is_open = true;
    return RQ_OK;
}

void rq__work_close(rq__bulk_work *w)
{
    rq__plan_close(&w->plan);
    rq_arena_clear(&w->arena);
    (void)rq_file_close(w->lock);
    if (w->lock_vfs != NULL) rq_vfs_free(w->lock_vfs);
    if (w->own_vfs != NULL) rq_vfs_free(w->own_vfs);
    *w = (rq__bulk_work){0};
}

/* --- writing ---------------------------------------------------------------------------------- */

static rq_err put_small(rq__bulk_work *w, const char *name, const char *text, rq_error *why)
{
    const char *path = path_of(w, name);
    if (path == NULL || text == NULL) return rq_no_memory(why);
    return rq__put_file(w->vfs, path, rq_slice_cstr(text), why);
}

rq_err rq__work_set_place(rq__bulk_work *w, const char *place, rq_error *why)
{
    if (w->place == NULL || strcmp(w->place, place) != 0) RQ_TRY(put_small(w, "place", place, why));
    w->place = place;
    return RQ_OK;
}

rq_err rq__work_set_step(rq__bulk_work *w, rq__bulk_step step, rq_error *why)
{
    const char *text =
        rq_arena_printf(&w->arena, "%s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n" FOR "%s\n",
                        steps[step], w->files, w->rows, w->cells, w->digest);
    RQ_TRY(put_small(w, "step", text, why));
    w->step = step;
    return RQ_OK;
}

rq_err rq__work_note_part(const rq__bulk_work *w, size_t part, uint64_t rows, uint64_t cells,
                          uint64_t runs, rq_error *why)
{
    char text[128];
    snprintf(text, sizeof text, "rows %" PRIu64 " cells %" PRIu64 " runs %" PRIu64 "\n", rows,
             cells, runs);
    return rq__plan_note_done(&w->plan, part, text, why);
}

rq_err rq__work_list_runs(rq__bulk_work *w, rq__runs *ret, rq_error *why)
{
    *ret = (rq__runs){.vfs = w->vfs, .folder = w->folder};
    w->rows = w->cells = 0;
    for (size_t i = 0; i < w->plan.count; i++) {
        rq_slice mark;
        uint64_t rows, cells, runs;
        RQ_TRY(rq__plan_counts_of(&w->plan, i, &mark, why));
        const char *text = rq_arena_cstr(&w->arena, mark);
        if (text == NULL) return rq_no_memory(why);
        if (sscanf(text, "rows %" SCNu64 " cells %" SCNu64 " runs %" SCNu64, &rows, &cells,
                   &runs) != 3)
            return rq_fail(why, RQ_E_CORRUPT, "%s/%05zu is damaged", w->shown, i);
        RQ_TRY(rq__runs_add(ret, i, runs, why));
        w->rows += rows;
        w->cells += cells;
    }
    return RQ_OK;
}

rq_err rq__work_remove(rq__bulk_work *w, rq_error *why)
{
    return w->vfs == NULL ? RQ_OK : rq_vfs_remove_tree(w->vfs, w->folder, why);
}
