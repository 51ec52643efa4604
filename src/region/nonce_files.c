/* SPDX-License-Identifier: Apache-2.0 */
/* A region's nonces on disk; format and rules in nonce_files.h. */
#include "region/nonce_files.h"

#include "base/checksum.h"
#include "base/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MAGIC "RQNONC1\n"
#define HEADER_LEN 32
#define ENTRY_LEN 28
#define MS_NS UINT64_C(1000000)

/* --- the bytes -------------------------------------------------------------------------------- */

rq_err rq__nonce_file_encode(uint64_t seqid, int64_t written_ms, rq_slice entries, rq_buf *out)
{
    uint8_t header[HEADER_LEN];
    memcpy(header, MAGIC, 8);
    rq_put_be64(header + 8, seqid);
    rq_put_be64(header + 16, (uint64_t)written_ms);
    rq_put_be32(header + 24, (uint32_t)(entries.len / ENTRY_LEN));
    rq_put_be32(header + 28, rq_crc32c(0, header, 28));
    RQ_TRY(rq_buf_append(out, header, sizeof header));
    RQ_TRY(rq_buf_append(out, entries.ptr, entries.len));
    return rq_buf_append_be32(out, rq_crc32c(0, entries.ptr, entries.len));
}

rq_err rq__nonce_file_decode(rq_slice bytes, rq__nonce_entries *ret, rq_error *why)
{
    if (bytes.len < HEADER_LEN || memcmp(bytes.ptr, MAGIC, 8) != 0 ||
        rq_get_be32(bytes.ptr + 28) != rq_crc32c(0, bytes.ptr, 28))
        return rq_fail(why, RQ_E_CORRUPT, "offset 0: no valid header of a nonce file");
    size_t count = rq_get_be32(bytes.ptr + 24);
    if ((bytes.len - HEADER_LEN) / ENTRY_LEN < count ||
        bytes.len - HEADER_LEN - count * ENTRY_LEN != 4)
        return rq_fail(why, RQ_E_CORRUPT,
                       "offset %d: the file's length of %zu nonces does not match its %zu bytes",
                       HEADER_LEN, count, bytes.len);
    rq_slice entries = rq_slice_of(bytes.ptr + HEADER_LEN, count * ENTRY_LEN);
    if (rq_get_be32(entries.ptr + entries.len) != rq_crc32c(0, entries.ptr, entries.len))
        return rq_fail(why, RQ_E_CORRUPT, "offset %d: the nonces' checksum is wrong", HEADER_LEN);
    *ret = (rq__nonce_entries){.seqid = rq_get_be64(bytes.ptr + 8),
                               .written_ms = (int64_t)rq_get_be64(bytes.ptr + 16),
                               .count = count,
                               .bytes = entries};
    return RQ_OK;
}

rq_err rq__nonce_entry_put(rq_buf *out, const rq__nonce *n)
{
    uint8_t bytes[ENTRY_LEN];
    rq_put_be64(bytes, n->group);
    rq_put_be64(bytes + 8, n->nonce);
    rq_put_be64(bytes + 16, n->seqid);
    rq_put_be32(bytes + 24, n->age_ms > UINT32_MAX ? UINT32_MAX : (uint32_t)n->age_ms);
    return rq_buf_append(out, bytes, sizeof bytes);
}

rq__nonce rq__nonce_entry(const rq__nonce_entries *e, size_t i)
{
    const uint8_t *p = e->bytes.ptr + i * ENTRY_LEN;
    return (rq__nonce){.group = rq_get_be64(p),
                       .nonce = rq_get_be64(p + 8),
                       .seqid = rq_get_be64(p + 16),
                       .age_ms = rq_get_be32(p + 24)};
}

bool rq__nonce_file_name_parse(const char *name, uint64_t *ret_seqid, unsigned *ret_n)
{
    if (strspn(name, "0123456789abcdef") != 16 || name[16] != '.') return false;
    const char *digits = name + 17;
    size_t len = strlen(digits);
    if (len == 0 || len > 9 || strspn(digits, "0123456789") != len) return false;
    *ret_seqid = strtoull(name, NULL, 16);
    *ret_n = (unsigned)strtoul(digits, NULL, 10);
    return true;
}

/* --- the list --------------------------------------------------------------------------------- */

static const char *folder_of(rq_arena *arena, const char *encoded)
{
    return rq_arena_printf(arena, RQ__NONCE_DIR "/%s", encoded);
}

static const char *path_of(rq_arena *arena, const char *encoded, const char *name)
{
    return rq_arena_printf(arena, RQ__NONCE_DIR "/%s/%s", encoded, name);
}

static rq_err list_reserve(rq__nonce_files *f)
{
    if (f->count < f->room) return RQ_OK;
    size_t room = f->room == 0 ? 4 : f->room * 2;
    rq__nonce_file *list = realloc(f->list, room * sizeof *list);
    if (list == NULL) return RQ_E_NO_MEMORY;
    f->list = list;
    f->room = room;
    return RQ_OK;
}

void rq__nonce_files_clear(rq__nonce_files *f)
{
    free(f->list);
    *f = (rq__nonce_files){0};
}

uint64_t rq__nonce_files_due_ns(const rq__nonce_files *f)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < f->count; i++)
        if (f->list[i].youngest_at_ns < least) least = f->list[i].youngest_at_ns;
    return least;
}

/* --- reading ---------------------------------------------------------------------------------- */

static rq_err read_entries(const rq__nonce_place *at, const char *path, rq_arena *arena,
                           rq__nonce_entries *ret, rq_error *why)
{
    rq_slice bytes;
    rq_error own = {0};
    RQ_TRY(rq_vfs_read_file(at->vfs, path, RQ__NONCE_FILE_BYTES_MAX, arena, &bytes, why));
    rq_err rc = rq__nonce_file_decode(bytes, ret, &own);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s: %s", path, own.message);
}

/* Tries twice, since an I/O error may be temporary. */
static rq_err read_file(const rq__nonce_place *at, const rq__nonce_file *file, rq_arena *arena,
                        rq__nonce_entries *ret, rq_error *why)
{
    const char *path = path_of(arena, at->encoded, file->name);
    if (path == NULL) return rq_no_memory(why);
    rq_err rc = read_entries(at, path, arena, ret, why);
    if (rc == RQ_E_IO) {
        *why = (rq_error){0};
        rc = read_entries(at, path, arena, ret, why);
    }
    if (rc == RQ_OK && ret->seqid != file->seqid)
        rc = rq_fail(
            why, RQ_E_CORRUPT,
            "%s: offset 8: the number in the header differs from the one in the file's name", path);
    return rc;
}

static uint64_t ns_before(uint64_t now_ns, uint64_t ms)
{
    return ms < now_ns / MS_NS ? now_ns - ms * MS_NS : 0;
}

/* The youngest first: each entry is inserted in front of those in the table. */
static rq_err take_entries(const rq__nonce_place *at, const rq__nonce_entries *e,
                           uint64_t *ret_youngest_ms)
{
    *ret_youngest_ms = UINT64_MAX;
    for (size_t i = e->count; i > 0; i--) {
        rq__nonce n = rq__nonce_entry(e, i - 1);
        if (n.age_ms < *ret_youngest_ms) *ret_youngest_ms = n.age_ms;
        if (n.nonce != 0 && n.seqid != 0) RQ_TRY(rq__nonces_add_old(at->nonces, &n));
    }
    return RQ_OK;
}

static rq_err load_file(const rq__nonce_place *at, rq__nonce_file *file, rq_error *why)
{
    rq_arena arena = {0};
    rq__nonce_entries e = {0};
    rq_error own = {0};
    uint64_t now = at->executor->now_ns(at->executor);
    uint64_t youngest_ms = 0;
    rq_err rc = read_file(at, file, &arena, &e, &own);
    if (rc == RQ_OK) rc = take_entries(at, &e, &youngest_ms);
    file->count = e.count;
    file->ages_as_of_ns = now;
    file->youngest_at_ns = ns_before(now, youngest_ms);
    rq_arena_clear(&arena);
    if (rc == RQ_E_NO_MEMORY) return rq_no_memory(why);
    if (rc == RQ_OK) return RQ_OK;
    file->damaged = true;
    rq_log_warn(at->log, "region",
                "%s: retried increments and appends from before this start may be applied twice",
                own.message);
    return RQ_OK;
}

static int youngest_first(const void *a, const void *b)
{
    const rq__nonce_file *x = a;
    const rq__nonce_file *y = b;
    if (x->seqid != y->seqid) return x->seqid > y->seqid ? -1 : 1;
    return (x->n < y->n) - (x->n > y->n);
}

static rq_err note_name(rq__nonce_files *f, const rq__nonce_place *at, const char *name,
                        uint64_t used, rq_arena *arena)
{
    rq__nonce_file file = {0};
    if (strlen(name) > RQ__NONCE_FILE_NAME_MAX ||
        !rq__nonce_file_name_parse(name, &file.seqid, &file.n))
        return RQ_OK;
    if (file.seqid > used) {
        /* Of a flush that did not commit. If it stays, the next opening finds it again. */
        const char *path = path_of(arena, at->encoded, name);
        if (path == NULL) return RQ_E_NO_MEMORY;
        rq_err unimportant = rq_vfs_remove(at->vfs, path, NULL);
        (void)unimportant;
        return RQ_OK;
    }
    memcpy(file.name, name, strlen(name) + 1);
    RQ_TRY(list_reserve(f));
    f->list[f->count++] = file;
    return RQ_OK;
}

rq_err rq__nonce_files_load(rq__nonce_files *f, const rq__nonce_place *at, uint64_t used,
                            rq_error *why)
{
    rq_arena arena = {0};
    rq_dir_entry *entries = NULL;
    size_t count = 0;
    const char *dir = folder_of(&arena, at->encoded);
    rq_err rc =
        dir == NULL ? rq_no_memory(why) : rq_vfs_list(at->vfs, dir, &arena, &entries, &count, NULL);
    if (rc == RQ_E_IO) rc = rq_vfs_list(at->vfs, dir, &arena, &entries, &count, NULL);
    /* An empty folder does not count: an attempt that could not sync the folder's name may have left it,
     * so the next write syncs the name again. If the folder has a file, its name is synced, because
     * files are made after that. */
    f->has_folder = rc == RQ_OK && count > 0;
    if (rc != RQ_OK && rc != RQ_E_NOT_FOUND && rc != RQ_E_NO_MEMORY)
        rq_log_warn(at->log, "region",
                    "cannot list %s: retried increments and appends from before this start may be "
                    "applied twice",
                    dir);
    if (rc != RQ_E_NO_MEMORY) rc = RQ_OK;
    for (size_t i = 0; i < count && rc == RQ_OK; i++)
        rc = note_name(f, at, entries[i].name, used, &arena);
    if (f->count > 1) qsort(f->list, f->count, sizeof *f->list, youngest_first);
    for (size_t i = 0; i < f->count && rc == RQ_OK; i++)
        rc = load_file(at, &f->list[i], why);
    for (size_t i = 0; i < f->count / 2; i++) {
        rq__nonce_file other = f->list[i];
        f->list[i] = f->list[f->count - 1 - i];
        f->list[f->count - 1 - i] = other;
    }
    rq_arena_clear(&arena);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "nonces: %s", rq_err_text(rc));
}

/* --- writing ---------------------------------------------------------------------------------- */

/* Copies the live entries of the file at `path` into the new file. */
static rq_err take_over(const rq__nonce_place *at, const rq__nonce_file *file, const char *path,
                        rq_buf *out)
{
    rq_arena arena = {0};
    rq__nonce_entries e;
    rq_err rc = read_entries(at, path, &arena, &e, NULL);
    uint64_t older_ms = (at->executor->now_ns(at->executor) - file->ages_as_of_ns) / MS_NS;
    for (size_t i = 0; rc == RQ_OK && i < e.count; i++) {
        rq__nonce n = rq__nonce_entry(&e, i);
        n.age_ms += older_ms;
        if (n.age_ms < rq__nonces_life_ms(at->nonces) &&
            rq__nonces_find(at->nonces, n.group, n.nonce) != 0)
            rc = rq__nonce_entry_put(out, &n);
    }
    rq_arena_clear(&arena);
    return rc;
}

/* Index of the first file that the new file, of `count` entries, absorbs. */
static size_t first_taken_over(const rq__nonce_files *f, size_t count)
{
    size_t from = f->count;
    for (size_t i = f->count; i > 0; i--) {
        const rq__nonce_file *file = &f->list[i - 1];
        if (file->replaced) continue;
        if (file->damaged || file->count / 2 > count) break;
        count += file->count;
        from = i - 1;
    }
    return from;
}

static rq_err put_new(const rq__nonce_place *at, const rq__nonce_id *ids, size_t count, rq_buf *out,
                      size_t *ret_count)
{
    *ret_count = 0;
    for (size_t i = 0; i < count; i++) {
        rq__nonce n;
        if (!rq__nonces_get(at->nonces, ids[i], &n)) continue;
        RQ_TRY(rq__nonce_entry_put(out, &n));
        ++*ret_count;
    }
    return RQ_OK;
}

/* Writes the file at `path` and makes it durable; removes the remains of a failed attempt. */
static rq_err put_file(rq__nonce_files *f, const rq__nonce_place *at, const char *dir,
                       const char *path, rq_slice bytes, rq_error *why)
{
    if (!f->has_folder) RQ_TRY(rq_vfs_mkdirs(at->vfs, dir, why));
    f->has_folder = true;
    rq_err rc = rq_vfs_remove(at->vfs, path, NULL);
    if (rc != RQ_OK && rc != RQ_E_NOT_FOUND)
        return rq_fail(why, rc, "%s: %s", path, rq_err_text(rc));
    return rq_vfs_write_new_file(at->vfs, path, bytes, why);
}

static rq_err write_file(rq__nonce_files *f, const rq__nonce_place *at, rq__nonce_file *file,
                         size_t from, rq_slice fresh, rq_error *why)
{
    rq_arena arena = {0};
    rq_buf entries = {0};
    rq_buf bytes = {0};
    const char *dir = folder_of(&arena, at->encoded);
    const char *path = path_of(&arena, at->encoded, file->name);
    rq_err rc = dir == NULL || path == NULL ? rq_no_memory(why) : RQ_OK;
    for (size_t i = from; i < f->count && rc == RQ_OK; i++) {
        const char *old = path_of(&arena, at->encoded, f->list[i].name);
        if (f->list[i].replaced) continue;
        rc = old == NULL ? rq_no_memory(why) : take_over(at, &f->list[i], old, &entries);
        if (rc == RQ_OK || rc == RQ_E_NO_MEMORY) continue;
        f->list[i].damaged = true; /* it stays until its time is over */
        rc = RQ_OK;
    }
    if (rc == RQ_OK) rc = rq_buf_append(&entries, fresh.ptr, fresh.len);
    if (rc == RQ_OK)
        rc = rq__nonce_file_encode(file->seqid, at->executor->now_ms(at->executor),
                                   rq_buf_slice(&entries), &bytes);
    if (rc == RQ_OK) rc = put_file(f, at, dir, path, rq_buf_slice(&bytes), why);
    file->count = entries.len / ENTRY_LEN;
    rq_buf_clear(&entries);
    rq_buf_clear(&bytes);
    rq_arena_clear(&arena);
    return rc;
}

/* After a replay, a flush may get the number of an earlier one. */
static void name_new(const rq__nonce_files *f, rq__nonce_file *file)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->list[i].seqid == file->seqid && f->list[i].n >= file->n) file->n = f->list[i].n + 1;
    snprintf(file->name, sizeof file->name, "%016" PRIx64 ".%u", file->seqid, file->n);
}

rq_err rq__nonce_files_write(rq__nonce_files *f, const rq__nonce_place *at, const rq__nonce_id *ids,
                             size_t count, uint64_t seqid, rq_error *why)
{
    rq_buf fresh = {0};
    size_t fresh_count = 0;
    rq__nonce_file file = {.seqid = seqid};
    rq_err rc = put_new(at, ids, count, &fresh, &fresh_count);
    if (rc == RQ_OK && fresh_count > 0) {
        size_t from = first_taken_over(f, fresh_count);
        file.ages_as_of_ns = file.youngest_at_ns = at->executor->now_ns(at->executor);
        name_new(f, &file);
        rc = list_reserve(f);
        if (rc == RQ_OK) rc = write_file(f, at, &file, from, rq_buf_slice(&fresh), why);
        for (size_t i = from; rc == RQ_OK && i < f->count; i++)
            f->list[i].replaced = !f->list[i].damaged;
        if (rc == RQ_OK) f->list[f->count++] = file;
    }
    rq_buf_clear(&fresh);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "nonces: %s", rq_err_text(rc));
}

/* --- removing --------------------------------------------------------------------------------- */

void rq__nonce_files_tidy(rq__nonce_files *f, const rq__nonce_place *at, bool committed)
{
    uint64_t useless_before = rq__nonces_useless_before_ns(at->nonces);
    size_t kept = 0;
    for (size_t i = 0; i < f->count; i++) {
        const rq__nonce_file *file = &f->list[i];
        rq_arena arena = {0};
        bool goes = (file->replaced && committed) || file->youngest_at_ns < useless_before;
        const char *path = goes ? path_of(&arena, at->encoded, file->name) : NULL;
        if (path == NULL || (rq_vfs_remove(at->vfs, path, NULL) != RQ_OK))
            f->list[kept++] = *file; /* one that cannot go is tried again */
        rq_arena_clear(&arena);
    }
    f->count = kept;
}

rq_err rq__nonce_files_remove(rq_vfs *vfs, const char *encoded, rq_error *why)
{
    rq_arena arena = {0};
    const char *dir = folder_of(&arena, encoded);
    rq_err rc = dir == NULL ? rq_no_memory(why) : rq_vfs_remove_tree(vfs, dir, why);
    /* Also if it is absent: an earlier attempt may have ended before its sync. */
    if (rc == RQ_OK) rc = rq_vfs_sync_parent(vfs, dir, NULL);
    if (rc == RQ_E_NOT_FOUND) rc = RQ_OK; /* no region has nonces */
    rq_arena_clear(&arena);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "nonces: %s", rq_err_text(rc));
}

/* --- split and merge -------------------------------------------------------------------------- */

/* Parents of a merge may have files with the same number. */
static rq_err link_file(rq_vfs *vfs, rq_arena *arena, const char *from, const char *dir,
                        uint64_t seqid, rq_error *why)
{
    for (unsigned n = 0;; n++) {
        const char *to = rq_arena_printf(arena, "%s/%016" PRIx64 ".%u", dir, seqid, n);
        rq_err rc = to == NULL ? RQ_E_NO_MEMORY : rq_vfs_link(vfs, from, to, NULL);
        if (rc == RQ_OK) return RQ_OK;
        if (rc != RQ_E_EXISTS) return rq_fail(why, rc, "%s: %s", from, rq_err_text(rc));
    }
}

rq_err rq__nonce_files_link(rq_vfs *vfs, const char *from_encoded, const char *to_encoded,
                            rq_error *why)
{
    rq_arena arena = {0};
    rq_dir_entry *entries;
    size_t count = 0;
    const char *from = folder_of(&arena, from_encoded);
    const char *to = folder_of(&arena, to_encoded);
    rq_err rc = from == NULL || to == NULL
                    ? rq_no_memory(why)
                    : rq_vfs_list_if_any(vfs, from, &arena, &entries, &count, why);
    if (rc == RQ_OK && count > 0) rc = rq_vfs_mkdirs(vfs, to, why);
    for (size_t i = 0; i < count && rc == RQ_OK; i++) {
        uint64_t seqid;
        unsigned n;
        if (!rq__nonce_file_name_parse(entries[i].name, &seqid, &n)) continue;
        const char *path = path_of(&arena, from_encoded, entries[i].name);
        rc = path == NULL ? rq_no_memory(why) : link_file(vfs, &arena, path, to, seqid, why);
    }
    if (rc == RQ_OK && count > 0) rc = rq_vfs_sync_dir(vfs, to, why);
    rq_arena_clear(&arena);
    return rc;
}
