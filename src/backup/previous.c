/* SPDX-License-Identifier: Apache-2.0 */
/* See previous.h. */
#include "backup/previous.h"

#include "catalog/root.h"

#include <stdlib.h>
#include <string.h>

#define SMALL_FILE_MAX ((size_t)64 * 1024)

struct rq__previous {
    const char *folder; /* the caller's */
    rq_vfs *vfs;
    rq_file *lock;
    rq_arena arena;
    rq_backup_list list;
    const rq_listed_file **by_path,
        **by_name; /* files that never change; by_name: files whose names are unique */
    size_t paths, names;
};

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* No reference ("FILE.REGION"), link ("TABLE=REGION-FILE") or named file. */
static bool is_random(const char *name)
{
    return strlen(name) >= 32 && strspn(name, "0123456789abcdef") >= 32 &&
           strpbrk(name, ".=-") == NULL;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp((*(const rq_listed_file *const *)a)->path,
                  (*(const rq_listed_file *const *)b)->path);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(name_of((*(const rq_listed_file *const *)a)->path),
                  name_of((*(const rq_listed_file *const *)b)->path));
}

static rq_err make_indexes(rq__previous *p, rq_error *why)
{
    p->by_path = rq_arena_calloc(&p->arena, p->list.count + 1, sizeof(void *));
    p->by_name = rq_arena_calloc(&p->arena, p->list.count + 1, sizeof(void *));
    if (p->by_path == NULL || p->by_name == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < p->list.count; i++) {
        const rq_listed_file *f = &p->list.files[i];
        if (f->kind != 'f') continue;
        p->by_path[p->paths++] = f;
        if (is_random(name_of(f->path))) p->by_name[p->names++] = f;
    }
    qsort(p->by_path, p->paths, sizeof(void *), compare_paths);
    qsort(p->by_name, p->names, sizeof(void *), compare_names);
    return RQ_OK;
}

static rq_err open_all(rq__previous *p, rq_error *why)
{
    rq_error own = {0};
    RQ_TRY(rq_vfs_posix_new(p->folder, &p->vfs, why));
    rq_err rc = rq_root_check_finished(p->vfs, &own);
    if (rc == RQ_OK) rc = rq_vfs_lock(p->vfs, NULL, &p->lock, &own);
    if (rc == RQ_OK) rc = rq__backup_list_read(p->vfs, &p->arena, &p->list, &own);
    if (rc != RQ_OK) return rq_fail(why, rc, "%s: %s", p->folder, own.message);
    return make_indexes(p, why);
}

rq_err rq__previous_open(const char *folder, rq__previous **ret, rq_error *why)
{
    rq__previous *p = calloc(1, sizeof *p);
    *ret = NULL;
    if (p == NULL) return rq_no_memory(why);
    p->folder = folder;
    rq_arena_init(&p->arena);
    rq_err rc = open_all(p, why);
    if (rc == RQ_OK)
        *ret = p;
    else
        rq__previous_close(p);
    return rc;
}

void rq__previous_close(rq__previous *p)
{
    if (p == NULL) return;
    (void)rq_file_close(p->lock);
    rq_vfs_free(p->vfs);
    rq_arena_clear(&p->arena);
    free(p);
}

rq_err rq__previous_read(rq__previous *p, const char *path, rq_arena *arena, rq_slice *ret,
                         rq_error *why)
{
    rq_error own = {0};
    rq_err rc = rq_vfs_read_file(p->vfs, path, SMALL_FILE_MAX, arena, ret, &own);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s/%s: %s", p->folder, path, own.message);
}

/* --- files ------------------------------------------------------------------------------------ */

const rq_listed_file *rq__previous_find(const rq__previous *p, const char *path, uint64_t size)
{
    const rq_listed_file key = {.path = path};
    const rq_listed_file *k = &key;
    const rq_listed_file *const *f =
        bsearch(&k, p->by_path, p->paths, sizeof(void *), compare_paths);
    if (f == NULL && is_random(name_of(path)))
        f = bsearch(&k, p->by_name, p->names, sizeof(void *), compare_names);
    return f != NULL && (*f)->size == size ? *f : NULL;
}

rq_err rq__previous_differs(const rq__previous *p, const rq_listed_file *f, const char *what,
                            rq_error *why)
{
    return rq_fail(why, RQ_E_CORRUPT,
                   "%s/%s: %s: the previous backup is damaged and cannot be the base of a new one",
                   p->folder, f->path, what);
}

rq_err rq__previous_open_file(rq__previous *p, const rq_listed_file *f, rq_file **ret,
                              rq_error *why)
{
    uint64_t size = 0;
    rq_error own = {0};
    rq_err rc = rq_vfs_open(p->vfs, f->path, RQ_OPEN_READ, ret, &own);
    if (rc == RQ_E_NOT_FOUND) return rq__previous_differs(p, f, "the file is missing", why);
    if (rc != RQ_OK) return rq_fail(why, rc, "%s/%s: %s", p->folder, f->path, own.message);
    rc = rq_file_size(*ret, &size, why);
    if (rc == RQ_OK && size != f->size)
        rc = rq__previous_differs(p, f, "its size is not the listed one", why);
    if (rc != RQ_OK) (void)rq_file_close(*ret);
    return rc;
}
