/* SPDX-License-Identifier: Apache-2.0 */
/* Folders that clients' files are taken from; rules in intake.h. */
#include "vfs/intake.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "vfs/vfs_priv.h"

#define SETTING "rorqual.bulkload.folders"
#define REPLICATED "rorqual.replication.bulkload.folders"

struct rq_intake {
    const char *setting; /* the list's; for messages */
    bool takes_data;     /* files of other servers' data folders too */
    rq_vfs *own;
    const char *own_path;
    rq_arena arena;
    const char **folders; /* plain, see plain_path */
    size_t count;
};

/* A listed folder within a visit. */
typedef struct rq_intake_place {
    bool is_resolved;
    const char *real_path; /* without symbolic links; NULL: it cannot be resolved */
    rq_vfs *vfs;           /* NULL: not opened */
} rq_intake_place;

/* --- paths ------------------------------------------------------------------------------------ */

/* The absolute path without empty and "." components and without a trailing slash ("/" is ""); NULL
 * if it is not absolute, too long or has a "..". */
static char *plain_path(rq_arena *a, rq_slice text)
{
    char *path = rq_arena_cstr(a, text);
    if (path == NULL || path[0] != '/' || text.len >= RQ_PATH_MAX) return NULL;
    char *to = path;
    for (const char *from = path; *from != '\0';) {
        from += strspn(from, "/");
        size_t n = strcspn(from, "/");
        if (n == 2 && memcmp(from, "..", 2) == 0) return NULL;
        if (n > 0 && !(n == 1 && *from == '.')) {
            *to++ = '/';
            memmove(to, from, n);
            to += n;
        }
        from += n;
    }
    *to = '\0';
    return path;
}

/* The part of the path behind the folder and a slash; NULL if the path is not below the folder. */
static const char *below(const char *folder, const char *path)
{
    size_t len = strlen(folder);
    bool is_below = strncmp(path, folder, len) == 0 && path[len] == '/' && path[len + 1] != '\0';
    return is_below ? path + len + 1 : NULL;
}

/* Like below, also of the folder itself. */
static bool is_in(const char *folder, const char *path)
{
    return strcmp(folder, path) == 0 || below(folder, path) != NULL;
}

/* The path without symbolic links; NULL: it cannot be resolved. */
static const char *resolve(rq_arena *a, const char *path)
{
    char *real = realpath(path[0] == '\0' ? "/" : path, NULL);
    const char *copy = real == NULL ? NULL : plain_path(a, rq_slice_cstr(real));
    free(real);
    return copy;
}

/* --- the list --------------------------------------------------------------------------------- */

/* If a folder inside the data folder were listed, a client could have a table's own files moved. */
static rq_err check_folder(rq_intake *t, const char *folder, rq_error *why)
{
    char staging[RQ_PATH_MAX];
    const char *real = resolve(&t->arena, folder);
    if (real == NULL) real = folder;
    snprintf(staging, sizeof staging, "%s/%s", t->own_path, RQ_INTAKE_STAGING);
    if (is_in(t->own_path, real) && !is_in(staging, real))
        return rq_fail(why, RQ_E_CONFIG, "setting %s: %s is inside the data folder", t->setting,
                       folder);
    return RQ_OK;
}

static rq_err add_folder(rq_intake *t, rq_slice text, rq_error *why)
{
    while (text.len > 0 && isspace(text.ptr[0])) {
        text.ptr++;
        text.len--;
    }
    while (text.len > 0 && isspace(text.ptr[text.len - 1]))
        text.len--;
    if (text.len == 0) return RQ_OK;
    const char *folder = plain_path(&t->arena, text);
    if (folder == NULL)
        return rq_fail(why, RQ_E_CONFIG, "setting %s: '%.*s' is not an absolute path", t->setting,
                       (int)text.len, (const char *)text.ptr);
    t->folders[t->count++] = folder;
    return check_folder(t, folder, why);
}

static rq_err parse_list(rq_intake *t, const char *list, rq_error *why)
{
    size_t parts = 1;
    for (const char *p = list; *p != '\0'; p++)
        parts += *p == ',';
    t->folders = rq_arena_calloc(&t->arena, parts, sizeof *t->folders);
    if (t->folders == NULL) return rq_no_memory(why);
    for (;;) {
        size_t n = strcspn(list, ",");
        RQ_TRY(add_folder(t, rq_slice_of(list, n), why));
        if (list[n] == '\0') return RQ_OK;
        list += n + 1;
    }
}

static rq_err intake_new(const char *setting, bool takes_data, const char *list, rq_vfs *own,
                         const char *own_path, rq_intake **ret, rq_error *why)
{
    rq_intake *t = calloc(1, sizeof *t);
    if (t == NULL) return rq_no_memory(why);
    t->setting = setting;
    t->takes_data = takes_data;
    t->own = own;
    t->own_path = own_path;
    rq_err rc = parse_list(t, list, why);
    if (rc == RQ_OK)
        *ret = t;
    else
        rq_intake_free(t);
    return rc;
}

rq_err rq_intake_new(const char *list, rq_vfs *own, const char *own_path, rq_intake **ret,
                     rq_error *why)
{
    return intake_new(SETTING, false, list, own, own_path, ret, why);
}

rq_err rq_intake_new_replicated(const char *list, rq_vfs *own, const char *own_path,
                                rq_intake **ret, rq_error *why)
{
    return intake_new(REPLICATED, true, list, own, own_path, ret, why);
}

void rq_intake_free(rq_intake *t)
{
    if (t == NULL) return;
    rq_arena_clear(&t->arena);
    free(t);
}

/* --- a visit ---------------------------------------------------------------------------------- */

rq_err rq_intake_begin(const rq_intake *t, rq_arena *arena, rq_intake_visit *ret)
{
    *ret = (rq_intake_visit){.intake = t, .arena = arena};
    ret->places = rq_arena_calloc(arena, t->count + 1, sizeof *ret->places);
    return ret->places == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

void rq_intake_end(rq_intake_visit *v)
{
    for (size_t i = 0; v->places != NULL && i < v->intake->count; i++)
        if (v->places[i].vfs != NULL) rq_vfs_free(v->places[i].vfs);
    v->places = NULL;
}

static rq_err refuse(const rq_intake *t, const char *said, rq_error *why)
{
    return rq_fail(why, RQ_E_DO_NOT_RETRY,
                   "the file is outside the folders that the server's setting %s allows: %s",
                   t->setting, said);
}

static const char *real_path_of(rq_intake_visit *v, size_t i)
{
    rq_intake_place *place = &v->places[i];
    if (!place->is_resolved) place->real_path = resolve(v->arena, v->intake->folders[i]);
    place->is_resolved = true;
    return place->real_path;
}

/* Clients may name a listed folder as it is listed, or by its path without symbolic links. */
static const char *below_place(rq_intake_visit *v, size_t i, const char *path)
{
    const char *inside = below(v->intake->folders[i], path);
    if (inside != NULL) return inside;
    const char *real = real_path_of(v, i);
    return real == NULL ? NULL : below(real, path);
}

/* The path of a file in the staging folder, relative to the data folder; NULL for others. */
static const char *in_staging(const rq_intake *t, const char *path)
{
    const char *inside = below(t->own_path, path);
    return inside == NULL || below(RQ_INTAKE_STAGING, inside) == NULL ? NULL : inside;
}

/* Whether the path leads into the data folder, but not into its staging folder, by a symbolic link that is the listed
 * folder or above it. Below the listed folder no link is followed. */
static bool is_own_by_link(rq_intake_visit *v, size_t i, const char *inside)
{
    const char *real = real_path_of(v, i);
    if (real == NULL) return false;
    const char *path = rq_arena_printf(v->arena, "%s/%s", real, inside);
    return path == NULL ||
           (is_in(v->intake->own_path, path) && in_staging(v->intake, path) == NULL);
}

static bool is_there(rq_vfs *vfs, const char *path)
{
    rq_file *f;
    rq_err rc = rq_vfs_open(vfs, path, RQ_OPEN_READ | RQ_OPEN_BENEATH, &f, NULL);
    if (rc == RQ_OK) (void)rq_file_close(f); /* only opened */
    return rc != RQ_E_NOT_FOUND;
}

/* Whether this is a server's data folder, or a folder that cannot be checked. */
static bool is_data_folder(rq_vfs *vfs, const char *dir)
{
    static const char *const names[] = {".rorqual", "hbase.version"};
    char path[RQ_PATH_MAX];
    for (size_t i = 0; i < RQ_ARRAY_LEN(names); i++) {
        int n = snprintf(path, sizeof path, "%s%s%s", dir, dir[0] == '\0' ? "" : "/", names[i]);
        if (n >= (int)sizeof path || is_there(vfs, path)) return true;
    }
    return false;
}

/* Any folder on the way to the file. */
static bool in_data_folder(rq_vfs *vfs, const char *path)
{
    char dir[RQ_PATH_MAX];
    if (is_data_folder(vfs, "")) return true;
    for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        memcpy(dir, path, (size_t)(slash - path));
        dir[slash - path] = '\0';
        if (is_data_folder(vfs, dir)) return true;
    }
    return false;
}

/* The innermost listed folder that contains the path. */
static bool find_place(rq_intake_visit *v, const char *path, size_t *ret, const char **ret_inside)
{
    *ret_inside = NULL;
    for (size_t i = 0; i < v->intake->count; i++) {
        const char *inside = below_place(v, i, path);
        if (inside == NULL || (*ret_inside != NULL && inside <= *ret_inside)) continue;
        *ret = i;
        *ret_inside = inside;
    }
    return *ret_inside != NULL;
}

rq_err rq_intake_find(rq_intake_visit *v, const char *said, rq_vfs **ret, const char **ret_path,
                      rq_error *why)
{
    size_t i;
    const char *inside;
    const char *path = plain_path(v->arena, rq_slice_cstr(said));
    if (path == NULL) return refuse(v->intake, said, why);
    if (is_in(v->intake->own_path, path)) {
        inside = in_staging(v->intake, path);
        if (inside == NULL) return refuse(v->intake, said, why);
        *ret = v->intake->own;
        *ret_path = inside;
        return RQ_OK;
    }
    if (!find_place(v, path, &i, &inside) || is_own_by_link(v, i, inside))
        return refuse(v->intake, said, why);
    rq_intake_place *place = &v->places[i];
    const char *folder = v->intake->folders[i];
    if (place->vfs == NULL)
        RQ_TRY(rq_vfs_posix_new(folder[0] == '\0' ? "/" : folder, &place->vfs, why));
    if (!v->intake->takes_data && in_data_folder(place->vfs, inside))
        return refuse(v->intake, said, why);
    *ret = place->vfs;
    *ret_path = inside;
    return RQ_OK;
}
