/* SPDX-License-Identifier: Apache-2.0 */
/* See copy.h. */
#include "backup/copy.h"

#include "base/checksum.h"
#include "catalog/root.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_BYTES ((size_t)1024 * 1024)

/* --- the target ------------------------------------------------------------------------------- */

static bool is_in(const char *inner, const char *outer)
{
    size_t n = strlen(outer);
    return strncmp(inner, outer, n) == 0 && (inner[n] == '/' || inner[n] == '\0');
}

/* Paths are compared without symbolic links. */
static rq_err check_disjoint(const char *folder, const char *source, rq_error *why)
{
    char *a = realpath(folder, NULL), *b = realpath(source, NULL);
    rq_err rc = RQ_OK;
    if (a == NULL || b == NULL)
        rc = rq_fail(why, RQ_E_IO, "cannot find %s: %s", a == NULL ? folder : source,
                     strerror(errno));
    else if (is_in(a, b))
        rc = rq_fail(why, RQ_E_INVALID, "%s is inside %s, the folder to copy", folder, source);
    else if (is_in(b, a))
        rc = rq_fail(why, RQ_E_INVALID, "%s, the folder to copy, is inside %s", source, folder);
    free(a);
    free(b);
    return rc;
}

static rq_err make_folder(const char *folder, bool *ret_made, rq_error *why)
{
    *ret_made = mkdir(folder, 0700) == 0;
    if (*ret_made || errno == EEXIST) return RQ_OK;
    return rq_fail(why, errno == ENOSPC ? RQ_E_NO_SPACE : RQ_E_IO, "cannot make folder %s: %s",
                   folder, strerror(errno));
}

/* Removes the marker last: until then the folder is an unfinished copy. */
static rq_err empty(rq_vfs *v, const rq_dir_entry *entries, size_t count, rq_error *why)
{
    rq_arena a = {0};
    rq_dir_entry *own;
    size_t own_count;
    for (size_t i = 0; i < count; i++)
        if (strcmp(entries[i].name, ".rorqual") != 0 && strcmp(entries[i].name, "lost+found") != 0)
            RQ_TRY(rq_vfs_remove_tree(v, entries[i].name, why));
    rq_err rc = rq_vfs_list(v, ".rorqual", &a, &own, &own_count, why);
    for (size_t i = 0; i < own_count && rc == RQ_OK; i++) {
        const char *path = rq_arena_printf(&a, ".rorqual/%s", own[i].name);
        if (path == NULL)
            rc = RQ_E_NO_MEMORY;
        else if (strcmp(path, RQ_ROOT_UNFINISHED) != 0)
            rc = rq_vfs_remove_tree(v, path, why);
    }
    rq_arena_clear(&a);
    return rc;
}

/* Content left by a copy that ended before its marker was written. */
static bool is_empty_rorqual(rq_vfs *v, const char *name)
{
    rq_arena a = {0};
    rq_dir_entry *entries;
    size_t count = 1;
    bool empty = strcmp(name, ".rorqual") == 0 &&
                 rq_vfs_list(v, name, &a, &entries, &count, NULL) == RQ_OK && count == 0;
    rq_arena_clear(&a);
    return empty;
}

static rq_err check_empty(rq_vfs *v, const char *folder, bool *ret_unfinished, rq_error *why)
{
    rq_arena a = {0};
    rq_dir_entry *entries;
    size_t count;
    rq_stat st;
    rq_err rc = rq_vfs_list(v, "", &a, &entries, &count, why);
    *ret_unfinished = rq_vfs_stat(v, RQ_ROOT_UNFINISHED, &st, NULL) == RQ_OK;
    if (rc == RQ_OK && *ret_unfinished) rc = empty(v, entries, count, why);
    for (size_t i = 0; i < count && rc == RQ_OK && !*ret_unfinished; i++)
        if (strcmp(entries[i].name, "lost+found") != 0 && !is_empty_rorqual(v, entries[i].name))
            rc = rq_fail(why, RQ_E_EXISTS, "%s is not empty (%s is in it); nothing was written",
                         folder, entries[i].name);
    rq_arena_clear(&a);
    return rc;
}

static rq_err mark(rq_copy *c, const char *what, rq_error *why)
{
    rq_buf text = {0};
    rq_error own = {0};
    rq_err rc = rq_vfs_mkdir(c->vfs, ".rorqual", &own);
    if (rc != RQ_OK && rc != RQ_E_EXISTS) return rq_fail(why, rc, "%s", own.message);
    rc = rq_buf_printf(&text, "%s\n", what);
    if (rc == RQ_OK)
        rc = rq_vfs_write_new_file(c->vfs, RQ_ROOT_UNFINISHED, rq_buf_slice(&text), why);
    if (rc == RQ_OK) rc = rq_vfs_sync_dir(c->vfs, "", why);
    rq_buf_clear(&text);
    return rc;
}

static rq_err take_target(rq_copy *c, const char *folder, const char *what, rq_error *why)
{
    bool unfinished;
    RQ_TRY(rq_vfs_posix_new(folder, &c->vfs, why));
    RQ_TRY(rq_vfs_lock(c->vfs, NULL, &c->lock, why));
    RQ_TRY(check_empty(c->vfs, folder, &unfinished, why));
    return unfinished ? RQ_OK : mark(c, what, why);
}

rq_err rq__copy_begin(const char *folder, const char *source, const char *what, rq_copy *ret,
                      rq_error *why)
{
    rq_copy c = {.may_link = true, .checksums = true, .buf = malloc(COPY_BYTES)};
    bool made = false;
    rq_err rc = c.buf == NULL ? rq_no_memory(why) : RQ_OK;
    if (rc == RQ_OK) rc = make_folder(folder, &made, why);
    if (rc == RQ_OK) rc = check_disjoint(folder, source, why);
    if (rc != RQ_OK && made) (void)rmdir(folder);
    if (rc == RQ_OK) rc = take_target(&c, folder, what, why);
    if (rc != RQ_OK) {
        rq__copy_clear(&c);
        return rc;
    }
    *ret = c;
    return RQ_OK;
}

void rq__copy_clear(rq_copy *c)
{
    (void)rq_file_close(c->lock);
    rq_vfs_free(c->vfs);
    free(c->buf);
    free(c->made);
    *c = (rq_copy){0};
}

/* --- parts ------------------------------------------------------------------------------------ */

/* Does not sync: rq__copy_sync does it once for all files. */
rq_err rq__copy_dir(rq_copy *c, const char *path, rq_error *why)
{
    rq_error own = {0};
    if (c->made != NULL && strcmp(c->made, path) == 0) return RQ_OK;
    rq_err rc = rq_vfs_mkdir(c->vfs, path, &own);
    const char *slash = strrchr(path, '/');
    if (rc == RQ_E_NOT_FOUND && slash != NULL) {
        char *parent = strndup(path, (size_t)(slash - path));
        rc = parent == NULL ? RQ_E_NO_MEMORY : rq__copy_dir(c, parent, &own);
        free(parent);
        if (rc == RQ_OK) rc = rq_vfs_mkdir(c->vfs, path, &own);
    }
    if (rc != RQ_OK && rc != RQ_E_EXISTS) return rq_fail(why, rc, "%s", own.message);
    char *made = strdup(path);
    free(c->made);
    c->made = made;
    return RQ_OK;
}

static rq_err make_parent(rq_copy *c, const char *path, rq_error *why)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL) return RQ_OK;
    char *parent = strndup(path, (size_t)(slash - path));
    if (parent == NULL) return rq_no_memory(why);
    rq_err rc = rq__copy_dir(c, parent, why);
    free(parent);
    return rc;
}

static void step(const rq_copy *c, uint64_t bytes)
{
    if (c->step != NULL) c->step(c->ctx, bytes);
}

static rq_err create(rq_copy *c, const char *path, rq_file **ret, rq_error *why)
{
    RQ_TRY(make_parent(c, path, why));
    return rq_vfs_open(c->vfs, path, RQ_OPEN_WRITE | RQ_OPEN_CREATE | RQ_OPEN_EXCL, ret, why);
}

rq_err rq__copy_bytes(rq_copy *c, const char *path, rq_slice bytes, uint32_t *ret_crc,
                      rq_error *why)
{
    rq_file *to;
    RQ_TRY(create(c, path, &to, why));
    rq_err rc = bytes.len == 0 ? RQ_OK : rq_file_write(to, bytes.ptr, bytes.len, 0, why);
    rq_err closed = rq_file_close(to);
    *ret_crc = rq_crc32c(0, bytes.ptr, bytes.len);
    step(c, bytes.len);
    c->copied_files++;
    c->copied_bytes += bytes.len;
    return rc != RQ_OK ? rc : closed;
}

/* Reads the first `size` bytes; writes them where `to` is not NULL. */
static rq_err pass_bytes(rq_copy *c, const char *path, rq_file *from, rq_file *to, uint64_t size,
                         uint32_t *ret_crc, rq_error *why)
{
    uint32_t crc = 0;
    for (uint64_t at = 0; at < size;) {
        size_t want = size - at < COPY_BYTES ? (size_t)(size - at) : COPY_BYTES, n = 0;
        RQ_TRY(rq_file_read(from, c->buf, want, at, &n, why));
        if (n == 0)
            return rq_fail(why, RQ_E_CORRUPT, "%s: %llu bytes were copied, %llu were expected",
                           path, (unsigned long long)at, (unsigned long long)size);
        crc = rq_crc32c(crc, c->buf, n);
        if (to != NULL) RQ_TRY(rq_file_write(to, c->buf, n, at, why));
        rq_file_drop_behind(from, at, n);
        at += n;
        step(c, n);
    }
    *ret_crc = crc;
    return RQ_OK;
}

static bool has_size(rq_file *f, uint64_t size)
{
    uint64_t now = 0;
    return rq_file_size(f, &now, NULL) == RQ_OK && now == size;
}

static rq_err link_part(rq_copy *c, const char *path, rq_file *from, uint64_t size,
                        uint32_t *ret_crc, rq_error *why)
{
    c->linked_files++;
    c->linked_bytes += size;
    if (c->checksums) return pass_bytes(c, path, from, NULL, size, ret_crc, why);
    step(c, size);
    return RQ_OK;
}

rq_err rq__copy_file(rq_copy *c, const char *path, rq_file *from, uint64_t size, bool immutable,
                     uint32_t *ret_crc, rq_error *why)
{
    rq_file *to;
    *ret_crc = 0;
    RQ_TRY(make_parent(c, path, why));
    if (immutable && c->may_link && has_size(from, size) &&
        rq_file_share(from, c->vfs, path, NULL) == RQ_OK)
        return link_part(c, path, from, size, ret_crc, why);
    RQ_TRY(create(c, path, &to, why));
    rq_err rc = pass_bytes(c, path, from, to, size, ret_crc, why);
    rq_err closed = rq_file_close(to);
    c->copied_files++;
    c->copied_bytes += size;
    return rc != RQ_OK ? rc : closed;
}

rq_err rq__copy_link(rq_copy *c, const char *path, rq_file *from, uint64_t size, uint32_t *ret_crc,
                     rq_error *why)
{
    rq_error own = {0};
    *ret_crc = 0;
    RQ_TRY(make_parent(c, path, why));
    rq_err rc = rq_file_share(from, c->vfs, path, &own);
    if (rc != RQ_OK) return rq_fail(why, rc, "cannot link %s: %s", path, own.message);
    return link_part(c, path, from, size, ret_crc, why);
}

rq_err rq__copy_sync(rq_copy *c, rq_error *why)
{
    return rq_vfs_sync_all(c->vfs, why);
}

rq_err rq__copy_finish(rq_copy *c, rq_error *why)
{
    RQ_TRY(rq_vfs_remove(c->vfs, RQ_ROOT_UNFINISHED, why));
    return rq_vfs_sync_dir(c->vfs, ".rorqual", why);
}
