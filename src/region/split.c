/* SPDX-License-Identifier: Apache-2.0 */
/* The region's part of split and merge: the split point, and a new region that consists of
 * references to files of closed ones (store/reference.h). The catalog decides when, and makes the
 * new region the valid one.
 *
 * A region made here starts above its parents' numbers, as its manifest and HBase's seqid file
 * record. The parents are not changed; they own their files until no reference is left. */
#include "region/engine_priv.h"
#include "region/owned.h"

#include <stdlib.h>

#include "store/reference.h"

/* --- where a region is divided ---------------------------------------------------------------- */

static const rq_store_version *referenced_version(rq_region *r, size_t i)
{
    rq_epoch_member pin;
    rq_epoch_pin(r->env.epoch, &pin);
    const rq_store_version *v = rq_store_version_ref(rq_store_version_now(r->stores[i].store));
    rq_epoch_unpin(r->env.epoch, &pin);
    return v;
}

static bool version_has_reference(const rq_store_version *v)
{
    for (size_t i = 0; i < v->file_count; i++)
        if (v->files[i].is_reference) return true;
    return false;
}

bool rq_region_has_references(rq_region *r)
{
    bool has = false;
    for (size_t i = 0; i < r->store_count && !has; i++) {
        const rq_store_version *v = referenced_version(r, i);
        has = version_has_reference(v);
        rq_store_version_unref(v);
    }
    return has;
}

uint64_t rq_region_largest_store_bytes(rq_region *r)
{
    uint64_t most = 0;
    for (size_t i = 0; i < r->store_count; i++) {
        const rq_store_version *v = referenced_version(r, i);
        uint64_t bytes = 0;
        for (size_t k = 0; k < v->file_count; k++)
            bytes += v->files[k].size_bytes;
        if (bytes > most) most = bytes;
        rq_store_version_unref(v);
    }
    return most;
}

static bool is_live(const rq_store_version *v, const char *name)
{
    for (size_t i = 0; i < v->file_count; i++)
        if (strcmp(v->files[i].name, name) == 0) return true;
    return false;
}

/* Drops references in a family's folder that the region does not name. `v`: the family's files; NULL: the region has no
 * such family. */
static rq_err drop_stale(rq_region *r, rq_slice family, const rq_store_version *v, rq_arena *arena,
                         rq_error *why)
{
    rq_dir_entry *files;
    size_t count;
    const char *dir = rq__family_dir(arena, &r->info, family);
    if (dir == NULL) return rq_no_memory(why);
    RQ_TRY(rq_vfs_list(r->env.vfs, dir, arena, &files, &count, why));
    for (size_t i = 0; i < count; i++) {
        rq_store_name parts;
        rq_store_name_parse(rq_slice_cstr(files[i].name), &parts);
        if (files[i].is_dir || !parts.is_reference) continue;
        if (v != NULL && is_live(v, files[i].name)) continue;
        rq__region_removes_names(r);
        RQ_TRY(rq__archive_file(r->env.vfs, &r->info, family, files[i].name, why));
    }
    return RQ_OK;
}

static rq_err drop_stale_of(rq_region *r, rq_slice family, rq_arena *arena, rq_error *why)
{
    for (size_t i = 0; i < r->store_count; i++) {
        if (!rq_slice_eq(rq_store_schema(r->stores[i].store)->name, family)) continue;
        const rq_store_version *v = referenced_version(r, i);
        rq_err rc = drop_stale(r, family, v, arena, why);
        rq_store_version_unref(v);
        return rc;
    }
    return drop_stale(r, family, NULL, arena, why);
}

/* An open region never gets new references, so references that its stores' versions do not name are stale: a compaction
 * has rewritten their cells, or an earlier attempt at the split has made them. All family folders are searched, because
 * a deposed master may write references at any time, even into the folder of a family that was dropped meanwhile. */
static rq_err drop_all_stale(rq_region *r, rq_arena *arena, rq_error *why)
{
    rq_dir_entry *families;
    size_t count;
    const char *dir = rq__region_dir(arena, &r->info);
    if (dir == NULL) return rq_no_memory(why);
    RQ_TRY(rq_vfs_list(r->env.vfs, dir, arena, &families, &count, why));
    for (size_t i = 0; i < count; i++)
        if (rq_region_is_family_folder(&families[i]))
            RQ_TRY(drop_stale_of(r, rq_slice_cstr(families[i].name), arena, why));
    return RQ_OK;
}

rq_err rq_region_drop_stale_references(rq_region *r, rq_error *why)
{
    rq_arena arena = {0};
    if (!rq__region_enter(r)) return rq__region_not_serving(r, why);
    rq_err rc = drop_all_stale(r, &arena, why);
    rq__region_leave(r);
    rq_arena_clear(&arena);
    return rc;
}

/* The row in the middle of the largest file, if it can divide the region. HBASE:
 * StoreUtils.getSplitPoint. */
static rq_err point_of_store(const rq_store_version *v, rq_arena *arena, rq_slice *ret,
                             uint64_t *ret_bytes, rq_error *why)
{
    const rq_store_file *largest = NULL;
    uint64_t bytes = 0;
    for (size_t i = 0; i < v->file_count; i++) {
        bytes += v->files[i].size_bytes;
        if (largest == NULL || v->files[i].size_bytes > largest->size_bytes) largest = &v->files[i];
    }
    *ret_bytes = bytes;
    if (largest == NULL || version_has_reference(v)) return RQ_OK;
    const rq_hfile_info *info = rq_hfile_reader_info(largest->reader);
    rq_read_ctx ctx = {.may_block = true};
    rq_buf key = {0};
    rq_cell middle, first, last;
    rq_err rc = rq_hfile_midkey(largest->reader, &ctx, &key, why);
    if (rc == RQ_OK) rc = rq_cell_parse_stored_key(rq_buf_slice(&key), &middle, why);
    if (rc == RQ_OK) rc = rq_cell_parse_stored_key(info->first_key, &first, why);
    if (rc == RQ_OK) rc = rq_cell_parse_stored_key(info->last_key, &last, why);
    if (rc == RQ_OK && !rq_slice_eq(rq_cell_row(&middle), rq_cell_row(&first)) &&
        !rq_slice_eq(rq_cell_row(&middle), rq_cell_row(&last))) {
        *ret = rq_arena_copy(arena, rq_cell_row(&middle));
        if (ret->ptr == NULL) rc = rq_no_memory(why);
    }
    rq_buf_clear(&key);
    rq_read_ctx_clear(&ctx);
    return rc == RQ_E_END ? RQ_OK : rc;
}

rq_err rq_region_split_point(rq_region *r, rq_arena *arena, rq_slice *ret, rq_error *why)
{
    uint64_t most = 0;
    *ret = (rq_slice){NULL, 0};
    for (size_t i = 0; i < r->store_count; i++) {
        const rq_store_version *v = referenced_version(r, i);
        rq_slice point = {NULL, 0};
        uint64_t bytes;
        rq_err rc = point_of_store(v, arena, &point, &bytes, why);
        rq_store_version_unref(v);
        RQ_TRY(rc);
        if (point.len == 0 || bytes <= most) continue;
        most = bytes;
        *ret = point;
    }
    return RQ_OK;
}

/* --- a region made of references -------------------------------------------------------------- */

typedef struct making {
    rq_engine *engine;
    rq_arena *arena;
    const rq_region_info *info; /* of the new one */
    const rq_region_info *parent;
    const rq_hfile_half *half;
    rq__claimed earlier; /* in a cluster: of an earlier attempt */
    rq_error *why;
} making;

/* Whether the file has a cell in this half. HBASE: HRegionFileSystem.splitStoreFile. */
static rq_err holds_any(const making *m, const char *parent_dir, const char *name, bool *ret)
{
    rq_hfile_reader *reader;
    rq_store_name parts;
    const char *path = rq_arena_printf(m->arena, "%s/%s", parent_dir, name);
    if (path == NULL) return rq_no_memory(m->why);
    rq_store_name_parse(rq_slice_cstr(name), &parts);
    rq_vfs *vfs = m->engine->env.vfs;
    rq_hfile_reader_options plain = {0};
    RQ_TRY(parts.is_link || parts.is_reference
               ? rq_store_open_elsewhere(vfs, parent_dir, path, &parts, &plain, &reader, m->why)
               : rq_hfile_reader_open_with(vfs, path, &plain, &reader, m->why));
    const rq_hfile_info *info = rq_hfile_reader_info(reader);
    rq_cell first, last;
    *ret = info->entry_count > 0;
    rq_err rc = RQ_OK;
    if (*ret) rc = rq_cell_parse_stored_key(info->first_key, &first, m->why);
    if (*ret && rc == RQ_OK) rc = rq_cell_parse_stored_key(info->last_key, &last, m->why);
    if (*ret && rc == RQ_OK)
        *ret = m->half->top ? rq_slice_compare(rq_cell_row(&last), m->half->row) >= 0
                            : rq_slice_compare(rq_cell_row(&first), m->half->row) < 0;
    rq_hfile_reader_unref(reader);
    return rc;
}

/* In a cluster a deposed master may repeat this step at any time. So the file appears under its name only when it is
 * complete, and a file that has the name already stays: it has the same content. */
static rq_err publish_reference(const making *m, const char *dir, const char *path, rq_slice bytes)
{
    rq_vfs *vfs = m->engine->env.vfs;
    rq_executor *ex = m->engine->env.executor;
    if (m->engine->cluster == NULL) return rq_vfs_write_new_file(vfs, path, bytes, m->why);
    const char *temporary =
        rq_arena_printf(m->arena, "%s/.new-%016llx", dir, (unsigned long long)ex->random(ex));
    if (temporary == NULL) return rq_no_memory(m->why);
    RQ_TRY(rq_vfs_write_new_file(vfs, temporary, bytes, m->why));
    return rq_vfs_move(vfs, temporary, path, m->why);
}

static rq_err refer(const making *m, rq_slice family, rq_slice file, rq__manifest_family *to)
{
    const char *parent_dir = rq__family_dir(m->arena, m->parent, family);
    const char *dir = rq__family_dir(m->arena, m->info, family);
    const char *old = rq_arena_cstr(m->arena, file);
    char *name = rq_arena_printf(m->arena, "%.*s.%s", (int)file.len, (const char *)file.ptr,
                                 m->parent->encoded);
    char *path = dir == NULL || name == NULL ? NULL : rq_arena_printf(m->arena, "%s/%s", dir, name);
    if (parent_dir == NULL || old == NULL || path == NULL) return rq_no_memory(m->why);
    bool any = false;
    RQ_TRY(holds_any(m, parent_dir, old, &any));
    if (!any) return RQ_OK;
    if (strlen(name) > RQ_STORE_FILE_NAME_MAX)
        return rq_fail(m->why, RQ_E_UNSUPPORTED, "%s: the name of a reference to it is too long",
                       old);
    rq_buf bytes = {0};
    rq_err rc = rq_reference_encode(m->half, &bytes);
    if (rc == RQ_OK) rc = publish_reference(m, dir, path, rq_buf_slice(&bytes));
    rq_buf_clear(&bytes);
    if (rc == RQ_OK) to->files[to->file_count++] = rq_slice_cstr(name);
    return rc;
}

static rq_err read_parent(const making *m, rq__manifest *ret)
{
    const rq_engine *e = m->engine;
    uint64_t generation;
    if (e->cluster != NULL)
        return rq__owned_read_closed(e->cluster, m->parent->encoded, m->arena, ret, m->why);
    RQ_TRY(rq__manifest_read(e->env.vfs, m->parent->encoded, m->arena, ret, &generation, m->why));
    if (!ret->in_use) return RQ_OK;
    return rq_fail(m->why, RQ_E_STATE, "region %s was not closed", m->parent->encoded);
}

/* Adds the parent's files, for each family the table has, to the manifest. */
static rq_err refer_all(const making *m, rq__manifest *to)
{
    rq__manifest from;
    RQ_TRY(read_parent(m, &from));
    if (from.last_stamp_ms > to->last_stamp_ms) to->last_stamp_ms = from.last_stamp_ms;
    if (from.next_seqid > to->next_seqid) to->next_seqid = from.next_seqid;
    for (size_t i = 0; i < to->family_count; i++) {
        rq__manifest_family *f = &to->families[i];
        const rq__manifest_family *old = rq__manifest_family_of(&from, f->name);
        if (old == NULL || old->file_count == 0) continue;
        rq_slice *files = rq_arena_calloc(m->arena, f->file_count + old->file_count, sizeof *files);
        if (files == NULL) return rq_no_memory(m->why);
        if (f->file_count > 0) memcpy(files, f->files, f->file_count * sizeof *files);
        f->files = files;
        for (size_t k = 0; k < old->file_count; k++)
            RQ_TRY(refer(m, f->name, old->files[k], f));
    }
    return RQ_OK;
}

/* Removes the files that an attempt before a crash has left; no reader knows them yet. In a cluster they stay and are
 * used again. If the region was opened already, a later master has completed the step: RQ_E_STATE. */
static rq_err look_at_earlier(making *m)
{
    const rq_engine *e = m->engine;
    rq_error detail = {.code = RQ_OK};
    if (e->cluster == NULL) return rq_region_destroy(m->engine, m->info, m->why);
    rq_err rc = rq__owned_read(e->cluster, m->info->encoded, m->arena, &m->earlier.manifest,
                               &m->earlier.generation, &detail);
    if (rc == RQ_E_NOT_FOUND) return RQ_OK;
    if (rc != RQ_OK) return rq_fail(m->why, rc, "%s", detail.message);
    m->earlier.there = true;
    if (m->earlier.manifest.open_number == 0) return RQ_OK;
    return rq_fail(m->why, RQ_E_STATE, "region %s is open already", m->info->encoded);
}

/* In a cluster an earlier attempt's manifest is replaced only if it has not changed since look_at_earlier. The parents
 * may have been opened and have changed between two attempts, so the attempts of two masters may name different files;
 * the manifest of one of them must not overwrite the other's unnoticed. */
static rq_err write_manifest(making *m, rq__manifest *to)
{
    const rq__cluster *c = m->engine->cluster;
    uint64_t generation = 0;
    if (c == NULL)
        return rq__manifest_write(m->engine->env.vfs, m->info->encoded, to, &generation, NULL,
                                  m->why);
    if (!m->earlier.there) return rq__owned_create(c, m->info->encoded, to, m->why);
    to->is_owned = to->in_use = true;
    return rq__owned_swap_closed(c, m->info->encoded, to, &m->earlier.generation, m->why);
}

static rq_err make(making *m, const rq_table_schema *schema, const rq_region_info *parents,
                   size_t parent_count)
{
    rq_vfs *vfs = m->engine->env.vfs;
    RQ_TRY(look_at_earlier(m));
    RQ_TRY(rq__region_lay_out(vfs, m->arena, m->info, schema, m->why));
    rq__manifest to;
    RQ_TRY(rq__manifest_of_schema(m->arena, schema, &to, m->why));
    for (size_t i = 0; i < parent_count; i++) {
        m->parent = &parents[i];
        RQ_TRY(refer_all(m, &to));
        RQ_TRY(rq__nonce_files_link(vfs, m->parent->encoded, m->info->encoded, m->why));
    }
    for (size_t i = 0; i < to.family_count; i++) {
        rq__manifest_family *f = &to.families[i];
        f->flushed = to.next_seqid - 1;
        if (f->file_count > 1) qsort(f->files, f->file_count, sizeof *f->files, rq_slice_order);
    }
    RQ_TRY(rq__seqid_file_write(vfs, m->info, to.next_seqid - 1, m->why));
    return write_manifest(m, &to);
}

rq_err rq_region_create_from(rq_engine *e, const rq_region_info *info,
                             const rq_table_schema *schema, const rq_region_info *parents,
                             size_t parent_count, const rq_slice *split_row, bool top,
                             rq_error *why)
{
    rq_arena arena = {0};
    rq_hfile_half half = {.row = info->start_key, .top = true};
    if (split_row != NULL) half = (rq_hfile_half){.row = *split_row, .top = top};
    making m = {.engine = e, .arena = &arena, .info = info, .half = &half, .why = why};
    rq_err rc = make(&m, schema, parents, parent_count);
    rq_arena_clear(&arena);
    return rc;
}

/* --- what is left of a split or merge --------------------------------------------------------- */

static rq_err look_for_references(rq_vfs *vfs, rq_arena *arena, const char *dir, bool *ret,
                                  rq_error *why)
{
    rq_dir_entry *families;
    size_t count;
    rq_err rc = rq_vfs_list(vfs, dir, arena, &families, &count, NULL);
    if (rc == RQ_E_NOT_FOUND) return RQ_OK;
    if (rc != RQ_OK) return rq_fail(why, rc, "%s: %s", dir, rq_err_text(rc));
    for (size_t i = 0; i < count && !*ret; i++) {
        if (!rq_region_is_family_folder(&families[i])) continue;
        rq_dir_entry *files;
        size_t n;
        const char *family = rq_arena_printf(arena, "%s/%s", dir, families[i].name);
        if (family == NULL) return rq_no_memory(why);
        RQ_TRY(rq_vfs_list(vfs, family, arena, &files, &n, why));
        for (size_t k = 0; k < n && !*ret; k++) {
            rq_store_name parts;
            rq_store_name_parse(rq_slice_cstr(files[k].name), &parts);
            *ret = !files[k].is_dir && files[k].name[0] != '.' && parts.is_reference;
        }
    }
    return RQ_OK;
}

rq_err rq_region_folder_has_references(rq_engine *e, const rq_region_info *info, bool *ret,
                                       rq_error *why)
{
    rq_arena arena = {0};
    const char *dir = rq__region_dir(&arena, info);
    *ret = false;
    rq_err rc =
        dir == NULL ? rq_no_memory(why) : look_for_references(e->env.vfs, &arena, dir, ret, why);
    rq_arena_clear(&arena);
    return rc;
}
