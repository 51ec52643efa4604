/* SPDX-License-Identifier: Apache-2.0 */
/* See load_files.h. Pieces and renamed files are named by the digest of the path that they come from:
 * names of constant length, different from all others (HBase moves the files of a call into one
 * folder), and found again after a kill. */
#include "transfer/load_files.h"

#include "base/clock.h"
#include "base/digest.h"
#include "hfile/reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define WAIT_NS 50000000
#define WAITS_MAX 200 /* checks of files that an earlier call may be loading: 10 s */

/* --- the files -------------------------------------------------------------------------------- */

static rq_err row_of_key(rq_slice key, rq_arena *arena, rq_slice *ret, rq_error *why)
{
    rq_cell c;
    RQ_TRY(rq_cell_parse_stored_key(key, &c, why));
    *ret = rq_arena_copy(arena, rq_cell_row(&c));
    return ret->ptr == NULL ? rq_no_memory(why) : RQ_OK;
}

static rq_err push(rq__load_job *j, const rq__load_file *f, rq_error *why)
{
    if (j->count == j->cap) {
        size_t cap = j->cap == 0 ? 64 : 2 * j->cap;
        rq__load_file *bigger = realloc(j->files, cap * sizeof *bigger);
        if (bigger == NULL) return rq_no_memory(why);
        j->files = bigger;
        j->cap = cap;
    }
    j->files[j->count++] = *f;
    return RQ_OK;
}

rq_err rq__load_add_file(rq__load_job *j, const char *path, const rq_family_schema *family,
                         rq_error *why)
{
    rq_hfile_reader *r;
    rq_stat st;
    rq__load_file f = {.path = path, .family = family};
    if (path == NULL) return rq_no_memory(why);
    RQ_TRY(rq_vfs_stat(j->l->vfs, path, &st, why));
    f.size = st.size;
    f.mtime_ms = (uint64_t)st.mtime_ms;
    RQ_TRY(rq_hfile_reader_open(j->l->vfs, path, NULL, false, &r, why));
    const rq_hfile_info *info = rq_hfile_reader_info(r);
    rq_err rc = RQ_OK;
    if (info->entry_count > 0) {
        rc = row_of_key(info->first_key, &j->arena, &f.first, why);
        if (rc == RQ_OK) rc = row_of_key(info->last_key, &j->arena, &f.last, why);
        if (rc == RQ_OK) rc = push(j, &f, why);
    }
    rq_hfile_reader_unref(r);
    return rc;
}

const char *rq__load_piece_of(rq__load_job *j, const char *path, const rq_family_schema *family,
                              size_t number)
{
    char name[RQ_MD5_HEX_LEN + 1];
    const char *origin = rq_arena_printf(&j->arena, "%zu %s", number, path);
    if (origin == NULL) return NULL;
    rq_md5_hex(rq_slice_cstr(origin), name);
    return rq_arena_printf(&j->arena, RQ__LOAD_PIECES "/%.*s/%s", (int)family->name.len,
                           (const char *)family->name.ptr, name);
}

/* --- after a kill ----------------------------------------------------------------------------- */

rq_err rq__load_count_names(rq__load_job *j, const char *path, size_t *ret, rq_error *why)
{
    struct stat st;
    char *full = rq_arena_printf(&j->arena, "%s/%s", j->l->path, path);
    *ret = 0;
    if (full == NULL) return rq_no_memory(why);
    if (stat(full, &st) == 0) {
        *ret = (size_t)st.st_nlink;
        return RQ_OK;
    }
    if (errno == ENOENT) {
        *strrchr(full, '/') = '\0';
        if (stat(full, &st) == 0) return RQ_OK;
    }
    return rq_fail(why, RQ_E_IO, "%s: %s", full, strerror(errno));
}

static rq_err add_if_there(rq__load_job *j, const char *path, const rq_family_schema *family,
                           rq_error *why)
{
    size_t names;
    RQ_TRY(rq__load_count_names(j, path, &names, why));
    return names == 0 ? RQ_OK : rq__load_add_file(j, path, family, why);
}

/* Waits while a call may be loading the file; all waits of a job are bounded together. */
static rq_err wait_for_call(rq__load_job *j, const char *path, size_t *ret_names, rq_error *why)
{
    for (;;) {
        RQ_TRY(rq__load_count_names(j, path, ret_names, why));
        if (*ret_names <= 1 || j->waits >= WAITS_MAX) return RQ_OK;
        rq_clock_sleep_ns(WAIT_NS);
        j->waits++;
    }
}

/* No error if the file is gone. */
static rq_err rename_file(rq__load_job *j, const char *path, const char *as, rq_error *why)
{
    const char *from = rq_arena_printf(&j->arena, "%s/%s", j->l->path, path);
    const char *to = rq_arena_printf(&j->arena, "%s/%s", j->l->path, as);
    if (from == NULL || to == NULL) return rq_no_memory(why);
    if (rename(from, to) != 0 && errno != ENOENT)
        return rq_fail(why, RQ_E_IO, "cannot rename %s: %s", from, strerror(errno));
    return RQ_OK;
}

/* Renames a file that an earlier run named in a call, so that this call cannot load the file any more. If the call has
 * begun to load the file, waits for its end first; then the file may be gone. After the server has linked the file, it
 * checks the name, and the call fails if the name is gone (region/bulk_load.c). A second hard link beside the new name
 * shows that the server may have checked before the rename: then the file gets its old name back, and the call is
 * waited for again. */
static rq_err rename_called(rq__load_job *j, const char *path, const char *again, rq_error *why)
{
    for (size_t names;;) {
        RQ_TRY(wait_for_call(j, path, &names, why));
        if (names == 0) return RQ_OK;
        RQ_TRY(rename_file(j, path, again, why));
        RQ_TRY(rq__load_count_names(j, again, &names, why));
        if (names <= 1 || j->waits >= WAITS_MAX) return RQ_OK;
        RQ_TRY(rename_file(j, again, path, why));
    }
}

static bool is_made(const char *path)
{
    return strncmp(path, RQ__LOAD_PIECES "/", sizeof RQ__LOAD_PIECES) == 0;
}

/* Another name for the file, in its folder. NULL: no memory. */
static const char *other_name(rq__load_job *j, const char *path)
{
    char name[RQ_MD5_HEX_LEN + 1];
    const char *origin = rq_arena_printf(&j->arena, "again %s", path);
    if (origin == NULL) return NULL;
    rq_md5_hex(rq_slice_cstr(origin), name);
    return rq_arena_printf(&j->arena, "%.*s/%s", (int)(strrchr(path, '/') - path), path, name);
}

/* Handles a file that an earlier run named in a call: the call has loaded it, or it is added to the files to load now.
 * A file of the folder that is renamed here is found later, when the folder is listed. */
static rq_err take_called(rq__load_job *j, const char *path, const rq_family_schema *family,
                          rq_error *why)
{
    const char *again = other_name(j, path);
    if (again == NULL) return rq_no_memory(why);
    /* An earlier run has renamed it, and called that: what has its name now is another file. */
    if (rq__journal_state(&j->journal, again) != RQ__LOAD_NEW)
        return add_if_there(j, path, family, why);
    RQ_TRY(j->l->keeps_files ? add_if_there(j, path, family, why)
                             : rename_called(j, path, again, why));
    return is_made(path) ? add_if_there(j, again, family, why) : RQ_OK;
}

static rq_err take_pieces(rq__load_job *j, const rq__journal_line *line,
                          const rq_family_schema *family, rq_error *why)
{
    for (uint64_t i = 0; i < line->pieces; i++) {
        const char *path = rq__load_piece_of(j, line->path, family, (size_t)i);
        if (path == NULL) return rq_no_memory(why);
        if (rq__journal_state(&j->journal, path) == RQ__LOAD_NEW)
            RQ_TRY(rq__load_add_file(j, path, family, why));
    }
    return RQ_OK;
}

/* Of the path FAMILY/FILE of the folder. */
static rq_err family_of(rq__load_job *j, rq_slice name, const rq_family_schema **ret, rq_error *why)
{
    *ret = rq_table_schema_family(j->l->schema, name);
    return *ret != NULL
               ? RQ_OK
               : rq_fail(why, RQ_E_NO_SUCH_FAMILY, "%s/%.*s: table %s has no column family %.*s",
                         j->l->path, (int)name.len, (const char *)name.ptr, j->l->link->name,
                         (int)name.len, (const char *)name.ptr);
}

/* A file that is loaded may still be there: as a copy, or because it was divided. */
static rq_err check_unchanged(rq__load_job *j, const rq__journal_line *line, rq_error *why)
{
    rq_stat st;
    size_t names;
    RQ_TRY(rq__load_count_names(j, line->path, &names, why));
    if (names == 0) return RQ_OK;
    RQ_TRY(rq_vfs_stat(j->l->vfs, line->path, &st, why));
    if (st.size == line->size && (uint64_t)st.mtime_ms == line->mtime_ms) return RQ_OK;
    return rq_fail(why, RQ_E_CONFLICT,
                   "%s/%s has changed since an unfinished run loaded it; remove the file "
                   "_rorqual_load to load all files in the folder again",
                   j->l->path, line->path);
}

static rq_err resume_line(rq__load_job *j, const rq__journal_line *line, rq_error *why)
{
    const rq_family_schema *family;
    const char *path = line->path;
    if (is_made(path)) path += sizeof RQ__LOAD_PIECES;
    if (line->state != RQ__LOAD_CALLED) RQ_TRY(check_unchanged(j, line, why));
    if (line->state == RQ__LOAD_DONE) return RQ_OK;
    RQ_TRY(family_of(j, rq_slice_of(path, strcspn(path, "/")), &family, why));
    return line->state == RQ__LOAD_DIVIDED ? take_pieces(j, line, family, why)
                                           : take_called(j, line->path, family, why);
}

/* The files that earlier runs have begun to load. */
static rq_err resume(rq__load_job *j, rq_error *why)
{
    for (size_t i = 0; i < j->journal.count; i++)
        if (rq__journal_is_last(&j->journal, i)) RQ_TRY(resume_line(j, &j->journal.lines[i], why));
    return RQ_OK;
}

/* --- the folder ------------------------------------------------------------------------------- */

static bool is_hidden(const char *name)
{
    return name[0] == '_' || name[0] == '.';
}

/* Files that no earlier run has begun to load. */
static rq_err list_family(rq__load_job *j, const char *name, rq_error *why)
{
    rq_dir_entry *list;
    size_t count;
    const rq_family_schema *family;
    RQ_TRY(family_of(j, rq_slice_cstr(name), &family, why));
    RQ_TRY(rq_vfs_list(j->l->vfs, name, &j->arena, &list, &count, why));
    for (size_t i = 0; i < count; i++) {
        if (list[i].is_dir || is_hidden(list[i].name)) continue;
        const char *path = rq_arena_printf(&j->arena, "%s/%s", name, list[i].name);
        if (path == NULL) return rq_no_memory(why);
        if (rq__journal_state(&j->journal, path) == RQ__LOAD_NEW)
            RQ_TRY(rq__load_add_file(j, path, family, why));
    }
    return RQ_OK;
}

static rq_err list_folder(rq__load_job *j, rq_error *why)
{
    rq_dir_entry *list;
    size_t count;
    RQ_TRY(rq_vfs_list(j->l->vfs, "", &j->arena, &list, &count, why));
    for (size_t i = 0; i < count; i++) {
        bool is_family = rq_table_schema_family(j->l->schema, rq_slice_cstr(list[i].name)) != NULL;
        if (is_hidden(list[i].name) && !is_family) continue;
        if (!list[i].is_dir)
            return rq_fail(why, RQ_E_INVALID,
                           "%s/%s is a file; expected one folder of HFiles for each family",
                           j->l->path, list[i].name);
        RQ_TRY(list_family(j, list[i].name, why));
    }
    return RQ_OK;
}

rq_err rq__load_list_files(rq__load_job *j, rq_error *why)
{
    RQ_TRY(resume(j, why));
    return list_folder(j, why);
}
