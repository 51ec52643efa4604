/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest's bytes and location; format and meaning are described in manifest.h. */
#include "region/manifest.h"

#include <stdio.h>

#define VERSION 1
#define VERSION_OWNED 2
#define FLAG_IN_USE 1
#define FLAG_TRUNCATED 2
#define FLAG_REMOVED 4
#define PATH_MAX_LEN (sizeof RQ__MANIFEST_DIR + 1 + RQ_ENCODED_NAME_LEN + 1)

bool rq__store_file_name_ok(rq_slice name)
{
    if (name.len == 0 || name.len > RQ_STORE_FILE_NAME_MAX || name.ptr[0] == '.') return false;
    for (size_t i = 0; i < name.len; i++) {
        uint8_t c = name.ptr[i];
        bool ok = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  c == '_' || c == '.' || c == '-' || c == '=';
        if (!ok) return false;
    }
    return true;
}

/* --- writing ---------------------------------------------------------------------------------- */

static rq_err put_name(rq_buf *out, rq_slice name)
{
    RQ_ASSERT(name.len > 0 && name.len <= UINT8_MAX);
    RQ_TRY(rq_buf_append_u8(out, (uint8_t)name.len));
    return rq_buf_append(out, name.ptr, name.len);
}

static rq_err put_owned(const rq__manifest *m, rq_buf *out)
{
    RQ_ASSERT(m->owner.len <= UINT8_MAX);
    RQ_TRY(rq_buf_append_be64(out, m->open_number));
    RQ_TRY(rq_buf_append_be64(out, (uint64_t)m->last_stamp_ms));
    if (m->truncations > 0) RQ_TRY(rq_buf_append_be64(out, m->truncations));
    RQ_TRY(rq_buf_append_u8(out, (uint8_t)m->owner.len));
    RQ_TRY(rq_buf_append(out, m->owner.ptr, m->owner.len));
    RQ_TRY(rq_buf_append_varint(out, m->log_count));
    for (size_t i = 0; i < m->log_count; i++) {
        RQ_TRY(put_name(out, m->logs[i].name));
        RQ_TRY(rq_buf_append_be64(out, m->logs[i].opening));
        RQ_TRY(rq_buf_append_be64(out, m->logs[i].from));
    }
    return RQ_OK;
}

static rq_err put_families(const rq__manifest_family *list, size_t count, rq_buf *out)
{
    RQ_TRY(rq_buf_append_varint(out, count));
    for (size_t i = 0; i < count; i++) {
        const rq__manifest_family *f = &list[i];
        RQ_TRY(put_name(out, f->name));
        RQ_TRY(rq_buf_append_be64(out, f->flushed));
        RQ_TRY(rq_buf_append_varint(out, f->file_count));
        for (size_t j = 0; j < f->file_count; j++)
            RQ_TRY(put_name(out, f->files[j]));
    }
    return RQ_OK;
}

static uint8_t flags_of(const rq__manifest *m)
{
    return (uint8_t)((m->in_use ? FLAG_IN_USE : 0) |
                     (m->is_owned && m->truncations > 0 ? FLAG_TRUNCATED : 0) |
                     (m->is_owned && m->removed_count > 0 ? FLAG_REMOVED : 0));
}

rq_err rq__manifest_encode(const rq__manifest *m, rq_buf *out)
{
    RQ_TRY(rq_buf_append_u8(out, m->is_owned ? VERSION_OWNED : VERSION));
    RQ_TRY(rq_buf_append_u8(out, flags_of(m)));
    RQ_TRY(rq_buf_append_be64(out, m->next_seqid));
    if (m->is_owned) RQ_TRY(put_owned(m, out));
    if (!m->is_owned || m->removed_count == 0)
        return put_families(m->families, m->family_count, out);
    RQ_ASSERT(m->family_count == 0);
    return put_families(m->removed, m->removed_count, out);
}

/* --- reading ---------------------------------------------------------------------------------- */

typedef struct decoder {
    rq_cursor c;
    const uint8_t *start;
    rq_arena *arena;
    rq_error *why;
} decoder;

static rq_err corrupt(const decoder *d, const char *what)
{
    return rq_fail(d->why, RQ_E_CORRUPT, "manifest: bad %s near offset %zu", what,
                   (size_t)(d->c.ptr - d->start));
}

static bool get_name(decoder *d, rq_slice *ret)
{
    uint8_t len;
    return rq_cursor_u8(&d->c, &len) && len > 0 && rq_cursor_bytes(&d->c, len, ret);
}

static rq_err decode_files(decoder *d, rq__manifest_family *f)
{
    uint64_t count;
    /* Each file takes at least two bytes: a larger count is wrong and must not size an
     * allocation. */
    if (!rq_cursor_varint(&d->c, &count) || count > rq_cursor_left(&d->c) / 2)
        return corrupt(d, "file count");
    f->files = rq_arena_calloc(d->arena, (size_t)count + 1, sizeof *f->files);
    if (f->files == NULL) return RQ_E_NO_MEMORY;
    for (; f->file_count < count; f->file_count++) {
        rq_slice *name = &f->files[f->file_count];
        if (!get_name(d, name) || !rq__store_file_name_ok(*name)) return corrupt(d, "file name");
        if (f->file_count > 0 && rq_slice_compare(name[-1], *name) >= 0)
            return corrupt(d, "order of files");
    }
    return RQ_OK;
}

static rq_err decode_owned(decoder *d, uint8_t flags, rq__manifest *m)
{
    uint64_t stamp, count;
    uint8_t len;
    m->is_owned = true;
    if (!rq_cursor_be64(&d->c, &m->open_number) || !rq_cursor_be64(&d->c, &stamp) ||
        stamp > INT64_MAX)
        return corrupt(d, "number of openings");
    m->last_stamp_ms = (int64_t)stamp;
    if ((flags & FLAG_TRUNCATED) != 0 &&
        (!rq_cursor_be64(&d->c, &m->truncations) || m->truncations == 0))
        return corrupt(d, "number of truncations");
    if (!rq_cursor_u8(&d->c, &len) || len > RQ_SHARED_NAME_MAX ||
        !rq_cursor_bytes(&d->c, len, &m->owner))
        return corrupt(d, "owner");
    if (!rq_cursor_varint(&d->c, &count) || count > RQ__MANIFEST_LOGS_MAX ||
        count > rq_cursor_left(&d->c) / 18)
        return corrupt(d, "count of logs");
    m->logs = rq_arena_calloc(d->arena, (size_t)count + 1, sizeof *m->logs);
    if (m->logs == NULL) return RQ_E_NO_MEMORY;
    for (; m->log_count < count; m->log_count++) {
        rq__manifest_log *l = &m->logs[m->log_count];
        if (!get_name(d, &l->name) || l->name.len > RQ_SHARED_NAME_MAX ||
            memchr(l->name.ptr, 0, l->name.len) != NULL || !rq_cursor_be64(&d->c, &l->opening) ||
            !rq_cursor_be64(&d->c, &l->from))
            return corrupt(d, "log");
    }
    return RQ_OK;
}

static rq_err decode_families(decoder *d, rq__manifest *m)
{
    uint64_t count;
    if (!rq_cursor_varint(&d->c, &count) || count > rq_cursor_left(&d->c) / 11)
        return corrupt(d, "family count");
    m->families = rq_arena_calloc(d->arena, (size_t)count + 1, sizeof *m->families);
    if (m->families == NULL) return RQ_E_NO_MEMORY;
    for (; m->family_count < count; m->family_count++) {
        rq__manifest_family *f = &m->families[m->family_count];
        if (!get_name(d, &f->name) || f->name.len > RQ_FAMILY_LEN_MAX ||
            !rq_cursor_be64(&d->c, &f->flushed))
            return corrupt(d, "family");
        if (m->family_count > 0 && rq_slice_compare(f[-1].name, f->name) >= 0)
            return corrupt(d, "order of families");
        RQ_TRY(decode_files(d, f));
    }
    return RQ_OK;
}

static rq_err take_removed(const decoder *d, rq__manifest *m)
{
    if (m->truncations == 0 || m->family_count == 0) return corrupt(d, "removed families");
    m->removed = m->families;
    m->removed_count = m->family_count;
    m->family_count = 0;
    return RQ_OK;
}

static rq_err check_flags(uint8_t version, uint8_t flags, rq_error *why)
{
    unsigned known =
        version == VERSION_OWNED ? FLAG_IN_USE | FLAG_TRUNCATED | FLAG_REMOVED : FLAG_IN_USE;
    if ((flags & ~known) == 0) return RQ_OK;
    return rq_fail(why, RQ_E_VERSION,
                   "the manifest has flags 0x%02x, of which this program does not know 0x%02x: a "
                   "newer one wrote it",
                   flags, flags & ~known);
}

rq_err rq__manifest_decode(rq_slice bytes, rq_arena *arena, rq__manifest *ret, rq_error *why)
{
    decoder d = {rq_cursor_of(bytes), bytes.ptr, arena, why};
    rq__manifest m = {0};
    uint8_t version;
    uint8_t flags;
    if (!rq_cursor_u8(&d.c, &version)) return corrupt(&d, "version");
    if (version > VERSION_OWNED)
        return rq_fail(why, RQ_E_VERSION,
                       "the manifest has version %u; this program supports up to %u", version,
                       VERSION_OWNED);
    if (version < VERSION) return corrupt(&d, "version");
    if (!rq_cursor_u8(&d.c, &flags)) return corrupt(&d, "flags");
    RQ_TRY(check_flags(version, flags, why));
    m.in_use = (flags & FLAG_IN_USE) != 0;
    if (!rq_cursor_be64(&d.c, &m.next_seqid)) return corrupt(&d, "number");
    if (version == VERSION_OWNED) RQ_TRY(decode_owned(&d, flags, &m));
    RQ_TRY(decode_families(&d, &m));
    if ((flags & FLAG_REMOVED) != 0) RQ_TRY(take_removed(&d, &m));
    if (rq_cursor_left(&d.c) > 0) return corrupt(&d, "end");
    *ret = m;
    return RQ_OK;
}

const rq__manifest_family *rq__manifest_family_of(const rq__manifest *m, rq_slice name)
{
    for (size_t i = 0; i < m->family_count; i++)
        if (rq_slice_eq(m->families[i].name, name)) return &m->families[i];
    return NULL;
}

/* --- its place -------------------------------------------------------------------------------- */

static void path_of(const char *encoded, char ret[PATH_MAX_LEN])
{
    snprintf(ret, PATH_MAX_LEN, "%s/%s", RQ__MANIFEST_DIR, encoded);
}

static rq_err decode_at(const char *path, rq_slice bytes, rq_arena *arena, rq__manifest *ret,
                        rq_error *why)
{
    rq_error inner = {0};
    rq_err rc = rq__manifest_decode(bytes, arena, ret, &inner);
    if (rc != RQ_OK) return rq_fail(why, rc, "%s: %s", path, inner.message);
    if (ret->is_owned)
        return rq_fail(why, RQ_E_VERSION, "%s: the manifest belongs to a region of a cluster",
                       path);
    return RQ_OK;
}

rq_err rq__manifest_read(rq_vfs *vfs, const char *encoded, rq_arena *arena, rq__manifest *ret,
                         uint64_t *ret_generation, rq_error *why)
{
    char path[PATH_MAX_LEN];
    path_of(encoded, path);
    rq_slice bytes;
    RQ_TRY(rq_vfs_cas_read(vfs, path, arena, &bytes, ret_generation, why));
    return decode_at(path, bytes, arena, ret, why);
}

rq_err rq__manifest_peek(rq_vfs *vfs, const char *encoded, rq_arena *arena, rq__manifest *ret,
                         const char **ret_other, rq_error *why)
{
    char path[PATH_MAX_LEN];
    path_of(encoded, path);
    rq_slice bytes;
    RQ_TRY(rq_vfs_cas_peek(vfs, path, arena, &bytes, ret_other, why));
    return decode_at(path, bytes, arena, ret, why);
}

rq_err rq__manifest_write(rq_vfs *vfs, const char *encoded, const rq__manifest *m,
                          uint64_t *generation, bool *in_doubt, rq_error *why)
{
    char path[PATH_MAX_LEN];
    path_of(encoded, path);
    rq_buf bytes = {0};
    rq_err rc = rq__manifest_encode(m, &bytes);
    if (rc == RQ_OK)
        rc = rq_vfs_cas(vfs, path, *generation, rq_buf_slice(&bytes), generation, in_doubt, why);
    rq_buf_clear(&bytes);
    return rc;
}

rq_err rq__manifest_remove(rq_vfs *vfs, const char *encoded, rq_error *why)
{
    char path[PATH_MAX_LEN];
    path_of(encoded, path);
    return rq_vfs_cas_remove(vfs, path, why);
}
