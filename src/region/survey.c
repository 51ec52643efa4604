/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a region's files for a tool; contract in survey.h. */
#include "region/survey.h"

#include "base/read_failure.h"
#include "hfile/check.h"
#include "region/engine_priv.h"
#include "region/filelist.h"
#include "region/tracking.h"
#include "store/mob.h"
#include "store/reference.h"

#include <stdarg.h>
#include <stdio.h>

#define EDITS "recovered.edits"
#define REFERENCE_MAX ((size_t)128 * 1024)

static void report_finding(const rq_findings *f, rq_finding level, const char *place,
                           const char *format, ...) RQ_PRINTF(4, 5);

static void report_finding(const rq_findings *f, rq_finding level, const char *place,
                           const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    f->report(f->ctx, level, place, text);
}

/* --- manifest and folder ---------------------------------------------------------------------- */

typedef struct look {
    rq_vfs *vfs;
    const rq_region_info *info;
    const rq_region_survey_options *options;
    rq_arena *arena;
    const rq_findings *findings;
    rq__manifest manifest;
    rq_region_survey *out;
} look;

static rq_err read_manifest(look *l, rq_error *why)
{
    rq_error own = {0};
    const char *other = NULL;
    const char *place = rq_arena_printf(l->arena, RQ__MANIFEST_DIR "/%s", l->info->encoded);
    if (place == NULL) return rq_no_memory(why);
    rq_err rc = rq__manifest_peek(l->vfs, l->info->encoded, l->arena, &l->manifest, &other, &own);
    l->out->has_manifest = rc == RQ_OK;
    if (rc == RQ_OK) {
        l->out->in_use = l->manifest.in_use;
        if (other != NULL)
            report_finding(l->findings, RQ_FINDING_NOTE, other,
                           "a slot of the manifest is damaged; the other one counts");
        return RQ_OK;
    }
    if (rc == RQ_E_NOT_FOUND) return RQ_OK;
    if (rc != RQ_E_CORRUPT && rc != RQ_E_VERSION) return rq_fail(why, rc, "%s", own.message);
    report_finding(l->findings, RQ_FINDING_PROBLEM, place, "%s", own.message);
    return RQ_OK;
}

static rq_err look_at_edits(look *l, const char *dir, rq_error *why)
{
    rq_dir_entry *entries;
    size_t count;
    const char *edits = rq_arena_printf(l->arena, "%s/" EDITS, dir);
    if (edits == NULL) return rq_no_memory(why);
    RQ_TRY(rq_vfs_list_if_any(l->vfs, edits, l->arena, &entries, &count, why));
    for (size_t i = 0; i < count; i++) {
        const char *name = entries[i].name;
        if (name[strspn(name, "0123456789")] != '\0') continue;
        const char *place = rq_arena_printf(l->arena, "%s/%s", edits, name);
        if (place == NULL) return rq_no_memory(why);
        report_finding(l->findings, RQ_FINDING_PROBLEM, place, "edits that HBase has not replayed");
    }
    return RQ_OK;
}

static bool is_among(const char *const *names, size_t count, rq_slice name)
{
    for (size_t i = 0; i < count; i++)
        if (rq_slice_eq(rq_slice_cstr(names[i]), name)) return true;
    return false;
}

static void report_file(const look *l, const rq_region_survey_family *f, rq_finding level,
                        rq_slice name, const char *text)
{
    char place[1024];
    snprintf(place, sizeof place, "%s/%.*s", f->dir, (int)name.len, (const char *)name.ptr);
    l->findings->report(l->findings->ctx, level, place, text);
}

/* Takes the `count` names of `list`; reports files in the folder that are not among them. */
static rq_err take_names(look *l, rq_region_survey_family *f, const rq_slice *names, size_t count,
                         const char *who, rq_finding others, const char *others_text, rq_error *why)
{
    const char **folder = f->files;
    size_t folder_count = f->file_count;
    f->file_count = 0;
    f->files = rq_arena_calloc(l->arena, count + 1, sizeof *f->files);
    if (f->files == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < count; i++) {
        if (!is_among(folder, folder_count, names[i])) {
            report_file(l, f, RQ_FINDING_PROBLEM, names[i], who);
            continue;
        }
        f->files[f->file_count] = rq_arena_cstr(l->arena, names[i]);
        if (f->files[f->file_count++] == NULL) return rq_no_memory(why);
    }
    for (size_t i = 0; i < folder_count; i++)
        if (!is_among(f->files, f->file_count, rq_slice_cstr(folder[i])))
            report_file(l, f, others, rq_slice_cstr(folder[i]), others_text);
    return RQ_OK;
}

/* After a clean close manifest and folder must be equal, unless another program has changed the
 * folder since. */
static void compare_with_manifest(look *l, rq_region_survey_family *f, const rq__manifest_family *m)
{
    rq_finding level = l->options->closed_long ? RQ_FINDING_NOTE : RQ_FINDING_PROBLEM;
    for (size_t i = 0; i < m->file_count; i++)
        if (!is_among(f->files, f->file_count, m->files[i]))
            report_file(
                l, f, level, m->files[i],
                "is missing, but the manifest of the region, which was closed cleanly, lists it");
    for (size_t i = 0; i < f->file_count; i++) {
        bool known = false;
        for (size_t k = 0; k < m->file_count && !known; k++)
            known = rq_slice_eq(m->files[k], rq_slice_cstr(f->files[i]));
        if (!known)
            report_file(
                l, f, level, rq_slice_cstr(f->files[i]),
                "is not in the manifest of the region, which was closed cleanly; a start would "
                "add it to the region");
    }
}

static rq_err look_at_list(look *l, rq_region_survey_family *f, bool *ret_listed, rq_error *why)
{
    rq__filelist fl = {0};
    rq_error own = {0};
    *ret_listed = false;
    rq_err rc = rq__filelist_read(l->vfs, f->dir, l->arena, &fl, &own);
    if (rc == RQ_E_NOT_FOUND && l->out->has_manifest) return RQ_OK;
    if (rc == RQ_E_CORRUPT || rc == RQ_E_VERSION) {
        report_finding(l->findings, RQ_FINDING_PROBLEM, f->dir, "%s", own.message);
        return RQ_OK;
    }
    if (rc != RQ_OK && rc != RQ_E_NOT_FOUND) return rq_fail(why, rc, "%s", own.message);
    rq_slice *names = rq_arena_calloc(l->arena, fl.count + 1, sizeof *names);
    if (names == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < fl.count; i++)
        names[i] = fl.files[i].name;
    *ret_listed = true;
    return take_names(l, f, names, fl.count, "is in the list of files, but missing",
                      RQ_FINDING_NOTE, "is not in the list of files, so it is not read", why);
}

static rq_err look_at_family(look *l, rq_region_survey_family *f, rq_error *why)
{
    rq_dir_entry *entries;
    size_t count;
    f->dir = rq__family_dir(l->arena, l->info, f->name);
    if (f->dir == NULL) return rq_no_memory(why);
    RQ_TRY(rq_vfs_list_if_any(l->vfs, f->dir, l->arena, &entries, &count, why));
    f->files = rq_arena_calloc(l->arena, count + 1, sizeof *f->files);
    if (f->files == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < count; i++) {
        if (entries[i].is_dir || entries[i].name[0] == '.') continue;
        if (rq__store_file_name_ok(rq_slice_cstr(entries[i].name)))
            f->files[f->file_count++] = entries[i].name;
        else
            report_file(l, f, RQ_FINDING_PROBLEM, rq_slice_cstr(entries[i].name),
                        "is not a store file; the region cannot be opened");
    }
    const rq__manifest_family *m =
        l->out->has_manifest ? rq__manifest_family_of(&l->manifest, f->name) : NULL;
    if (m != NULL) f->flushed = m->flushed;
    if (l->out->in_use)
        return take_names(l, f, m == NULL ? NULL : m->files, m == NULL ? 0 : m->file_count,
                          "is in the manifest, but missing", RQ_FINDING_NOTE,
                          "was left behind by a crash; the next start puts it aside", why);
    const rq_table_schema *schema = l->options->schema;
    const rq_family_schema *fs = schema == NULL ? NULL : rq_table_schema_family(schema, f->name);
    bool listed = false;
    if (fs != NULL && rq__tracking_reads_list(schema, fs)) RQ_TRY(look_at_list(l, f, &listed, why));
    if (m != NULL && !l->options->foreign) compare_with_manifest(l, f, m);
    return RQ_OK;
}

static rq_err add_family(look *l, rq_slice name)
{
    rq_region_survey *s = l->out;
    for (size_t i = 0; i < s->family_count; i++)
        if (rq_slice_eq(s->families[i].name, name)) return RQ_OK;
    s->families[s->family_count++].name = rq_arena_copy(l->arena, name);
    return s->families[s->family_count - 1].name.ptr == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

/* Reports the folder of a family that the descriptor does not name. A region whose manifest names the family
 * cannot be opened (life.c, check_families), unless an alter removes the family before that. A region without
 * a manifest cannot be opened if its log has cells of the family. */
static rq_err report_unnamed_family(const look *l, rq_slice family, rq_error *why)
{
    const char *place = rq__family_dir(l->arena, l->info, family);
    if (place == NULL) return rq_no_memory(why);
    bool has_manifest = l->out->has_manifest, in_change = l->options->in_change;
    report_finding(
        l->findings, has_manifest && !in_change ? RQ_FINDING_PROBLEM : RQ_FINDING_NOTE, place,
        "is of a family that the table's descriptor (.tableinfo) does not name; %s",
        !has_manifest ? "it is not read; if the log has cells of it, the region cannot be opened"
        : in_change   ? "the region cannot be opened before a procedure has ended"
                      : "the region cannot be opened");
    return RQ_OK;
}

static bool in_manifest(const look *l, rq_slice family)
{
    return rq__manifest_family_of(&l->manifest, family) != NULL;
}

static rq_err find_unnamed_families(const look *l, const rq_dir_entry *entries, size_t count,
                                    rq_error *why)
{
    const rq_table_schema *schema = l->options->schema;
    for (size_t i = 0; schema != NULL && i < count; i++) {
        rq_slice name = rq_slice_cstr(entries[i].name);
        if (rq_region_is_family_folder(&entries[i]) &&
            rq_table_schema_family(schema, name) == NULL &&
            (!l->out->has_manifest || in_manifest(l, name)))
            RQ_TRY(report_unnamed_family(l, name, why));
    }
    return RQ_OK;
}

static rq_err look_at_families(look *l, const char *dir, rq_error *why)
{
    rq_dir_entry *entries;
    size_t count;
    RQ_TRY(rq_vfs_list_if_any(l->vfs, dir, l->arena, &entries, &count, why));
    l->out->families =
        rq_arena_calloc(l->arena, count + l->manifest.family_count + 1, sizeof *l->out->families);
    if (l->out->families == NULL) return rq_no_memory(why);
    RQ_TRY(find_unnamed_families(l, entries, count, why));
    for (size_t i = 0; i < count; i++)
        if (rq_region_is_family_folder(&entries[i]))
            RQ_TRY(add_family(l, rq_slice_cstr(entries[i].name)));
    for (size_t i = 0; i < l->manifest.family_count; i++)
        RQ_TRY(add_family(l, l->manifest.families[i].name));
    for (size_t i = 0; i < l->out->family_count; i++)
        RQ_TRY(look_at_family(l, &l->out->families[i], why));
    return RQ_OK;
}

rq_err rq_region_survey_read(rq_vfs *vfs, const rq_region_info *info,
                             const rq_region_survey_options *options, rq_arena *arena,
                             const rq_findings *findings, rq_region_survey *ret, rq_error *why)
{
    look l = {.vfs = vfs,
              .info = info,
              .options = options,
              .arena = arena,
              .findings = findings,
              .out = ret};
    *ret = (rq_region_survey){0};
    const char *dir = rq__region_dir(arena, info);
    if (dir == NULL) return rq_no_memory(why);
    RQ_TRY(read_manifest(&l, why));
    if (!options->edits_replayed) RQ_TRY(look_at_edits(&l, dir, why));
    return look_at_families(&l, dir, why);
}

/* --- files ------------------------------------------------------------------------------------ */

typedef struct file_look {
    rq_vfs *vfs;
    const rq_region_info *info;
    bool deep;
    bool (*is_known)(void *ctx, const char *path);
    void *ctx;
    const rq_findings *findings;
} file_look;

/* Damage is reported; other errors are returned, because they say nothing about the folder. */
static rq_err report_result(const file_look *l, const char *place, rq_err rc, const rq_error *own,
                            rq_error *why)
{
    if (rc == RQ_OK) return RQ_OK;
    if (rq_is_read_failure(rc)) return rq_fail(why, rc, "%s: %s", place, own->message);
    report_finding(l->findings, RQ_FINDING_PROBLEM, place, "%s",
                   own->message[0] != '\0' ? own->message : rq_err_text(rc));
    return RQ_OK;
}

/* Rows outside the region's range are never read, and are missing in the region they belong to. */
static void look_at_range(const file_look *l, const char *path, const rq_hfile_info *hi)
{
    rq_cell first, last;
    if (hi->order != RQ_ORDER_DEFAULT ||
        rq_cell_parse_stored_key(hi->first_key, &first, NULL) != RQ_OK ||
        rq_cell_parse_stored_key(hi->last_key, &last, NULL) != RQ_OK)
        return;
    bool low = rq_slice_compare(rq_cell_row(&first), l->info->start_key) < 0;
    bool high =
        l->info->end_key.len > 0 && rq_slice_compare(rq_cell_row(&last), l->info->end_key) >= 0;
    if (low || high)
        report_finding(l->findings, RQ_FINDING_PROBLEM, path, "holds rows %s the region's range",
                       low ? "before" : "behind");
}

static rq_err check_contents(const file_look *l, rq_hfile_reader *reader, rq_error *why)
{
    rq_hfile_report report;
    rq_error inner = {0};
    if (!l->deep) return RQ_OK;
    rq_err rc = rq_hfile_check(reader, &report, &inner);
    return report_result(l, rq_hfile_reader_path(reader), rc, &inner, why);
}

static void count_bytes(const file_look *l, const rq_hfile_reader *reader)
{
    if (l->findings->step != NULL)
        l->findings->step(l->findings->ctx, rq_hfile_reader_info(reader)->size_bytes);
}

/* --- MOB files -------------------------------------------------------------------------------- */

typedef struct mob_look {
    const file_look *l;
    const char *path; /* of the store file */
    rq_slice family;
} mob_look;

static rq_err read_mob_file(const file_look *l, const char *path, rq_error *why)
{
    rq_hfile_reader *reader;
    rq_error inner = {0};
    rq_err rc = rq_hfile_reader_open(l->vfs, path, NULL, false, &reader, &inner);
    if (rc != RQ_OK) return report_result(l, path, rc, &inner, why);
    rc = check_contents(l, reader, why);
    rq_hfile_reader_unref(reader);
    return rc;
}

/* The file in its place, or in the archive; each file is read once. */
static rq_err look_at_mob_file(void *ctx, rq_slice table, rq_slice file, rq_error *why)
{
    const mob_look *m = ctx;
    rq_arena a = {0};
    rq_stat st;
    rq_error inner = {0};
    const char *dir = rq_mob_family_dir(&a, table, m->family);
    const char *place =
        dir == NULL ? NULL
                    : rq_arena_printf(&a, "%s/%.*s", dir, (int)file.len, (const char *)file.ptr);
    const char *archived =
        place == NULL ? NULL : rq_arena_printf(&a, "archive%s", place + sizeof RQ_MOB_DIR - 1);
    rq_err rc =
        archived == NULL ? rq_no_memory(&inner) : rq_vfs_stat(m->l->vfs, place, &st, &inner);
    if (rc == RQ_E_NOT_FOUND) {
        inner = (rq_error){0};
        rc = rq_vfs_stat(m->l->vfs, archived, &st, &inner);
        if (rc == RQ_E_NOT_FOUND)
            report_finding(m->l->findings, RQ_FINDING_PROBLEM, m->path,
                           "refers to the MOB file %s, which is neither there nor in archive/",
                           place);
        place = archived;
    }
    bool there = rc == RQ_OK;
    if (rc == RQ_E_NOT_FOUND)
        rc = RQ_OK;
    else if (rc != RQ_OK)
        (void)rq_fail(why, rc, "%s", inner.message);
    if (there && (m->l->is_known == NULL || !m->l->is_known(m->l->ctx, place)))
        rc = read_mob_file(m->l, place, why);
    rq_arena_clear(&a);
    return rc;
}

static rq_err look_at_mob_refs(const file_look *l, rq_hfile_reader *reader, const char *path,
                               rq_slice family, rq_error *why)
{
    rq_slice value;
    rq_error inner = {0};
    rq_mob_refs refs = {0};
    mob_look m = {l, path, family};
    if (!rq_hfile_reader_file_info(reader, RQ_SLICE_LIT(RQ_MOB_INFO_REFS), &value)) return RQ_OK;
    rq_err rc = rq_mob_refs_add_encoded(&refs, value, &inner);
    if (rc == RQ_OK)
        rc = rq_mob_refs_each(&refs, look_at_mob_file, &m, why);
    else
        rc = report_result(l, path, rc, &inner, why);
    rq_mob_refs_clear(&refs);
    return rc;
}

/* --- store files ------------------------------------------------------------------------------ */

static rq_err look_at_hfile(const file_look *l, const char *path, rq_slice family, bool own,
                            rq_error *why)
{
    rq_hfile_reader *reader;
    rq_error inner = {0};
    rq_err rc = rq_hfile_reader_open(l->vfs, path, NULL, false, &reader, &inner);
    if (rc != RQ_OK) return report_result(l, path, rc, &inner, why);
    const rq_hfile_info *hi = rq_hfile_reader_info(reader);
    if (own && hi->entry_count > 0) look_at_range(l, path, hi);
    rc = check_contents(l, reader, why);
    if (rc == RQ_OK) rc = look_at_mob_refs(l, reader, path, family, why);
    count_bytes(l, reader);
    rq_hfile_reader_unref(reader);
    return rc;
}

static rq_err look_at_reference(const file_look *l, const char *path, rq_arena *arena,
                                rq_error *why)
{
    rq_slice bytes;
    rq_hfile_half half;
    rq_error own = {0};
    rq_err rc = rq_vfs_read_file(l->vfs, path, REFERENCE_MAX, arena, &bytes, &own);
    if (rc == RQ_OK) rc = rq_reference_decode(bytes, &half, &own);
    return report_result(l, path, rc, &own, why);
}

static rq_err look_at_file(const file_look *l, const rq_region_survey_family *f, const char *name,
                           rq_arena *arena, rq_error *why)
{
    const char *dir = f->dir;
    rq_store_name parts;
    rq_error own = {0};
    const char *target;
    const char *path = rq_arena_printf(arena, "%s/%s", dir, name);
    if (path == NULL) return rq_no_memory(why);
    rq_store_name_parse(rq_slice_cstr(name), &parts);
    if (parts.is_reference) RQ_TRY(look_at_reference(l, path, arena, why));
    rq_err rc = rq_store_file_locate(l->vfs, dir, name, arena, &target, &own);
    if (rc != RQ_OK) return report_result(l, path, rc, &own, why);
    bool elsewhere = parts.is_reference || parts.is_link;
    if (elsewhere && l->is_known != NULL && l->is_known(l->ctx, target)) return RQ_OK;
    return look_at_hfile(l, target, f->name, !elsewhere, why);
}

rq_err rq_region_survey_files(rq_vfs *vfs, const rq_region_info *info, const rq_region_survey *s,
                              bool deep, bool (*is_known)(void *ctx, const char *path), void *ctx,
                              const rq_findings *findings, rq_error *why)
{
    const file_look l = {vfs, info, deep, is_known, ctx, findings};
    rq_arena arena = {0};
    rq_err rc = RQ_OK;
    for (size_t i = 0; i < s->family_count; i++)
        for (size_t k = 0; k < s->families[i].file_count && rc == RQ_OK; k++) {
            rq_arena_reset(&arena);
            rc = look_at_file(&l, &s->families[i], s->families[i].files[k], &arena, why);
        }
    rq_arena_clear(&arena);
    return rc;
}

/* --- nonces ----------------------------------------------------------------------------------- */

/* Numbers above it are not committed by the region's manifest. */
static uint64_t committed_number(rq_vfs *vfs, const char *region)
{
    rq_arena arena = {0};
    rq__manifest m;
    const char *other;
    uint64_t number = UINT64_MAX;
    if (strlen(region) <= RQ_ENCODED_NAME_LEN &&
        rq__manifest_peek(vfs, region, &arena, &m, &other, NULL) == RQ_OK && m.next_seqid > 0)
        number = m.next_seqid - 1;
    rq_arena_clear(&arena);
    return number;
}

static rq_err look_at_nonces(rq_vfs *vfs, const char *region, uint64_t committed, const char *path,
                             const char *name,
                             rq_err (*callback)(void *ctx, const rq_nonce_survey *file,
                                                rq_error *why),
                             void *ctx, rq_error *why)
{
    rq_arena arena = {0};
    rq_slice bytes;
    rq__nonce_entries e = {0};
    rq_error own = {0};
    unsigned n;
    rq_nonce_survey f = {.path = path, .region = region};
    bool named = rq__nonce_file_name_parse(name, &f.highest, &n);
    f.unfinished = named && f.highest > committed;
    rq_err rc = rq_vfs_read_file(vfs, path, RQ__NONCE_FILE_BYTES_MAX, &arena, &bytes, &own);
    if (rc == RQ_OK) rc = rq__nonce_file_decode(bytes, &e, &own);
    if (rc != RQ_OK)
        f.damage = own.message;
    else if (!named || f.highest != e.seqid)
        f.damage = "offset 8: the number differs from the number in the file's name";
    f.written_ms = e.written_ms;
    f.count = e.count;
    f.entries = e.bytes;
    rc = rc == RQ_E_NO_MEMORY ? rq_no_memory(why) : callback(ctx, &f, why);
    rq_arena_clear(&arena);
    return rc;
}

rq_err rq_nonces_survey(rq_vfs *vfs,
                        rq_err (*callback)(void *ctx, const rq_nonce_survey *file, rq_error *why),
                        void *ctx, rq_error *why)
{
    rq_arena arena = {0};
    rq_dir_entry *regions;
    size_t count = 0;
    rq_err rc = rq_vfs_list_if_any(vfs, RQ__NONCE_DIR, &arena, &regions, &count, why);
    for (size_t i = 0; i < count && rc == RQ_OK; i++) {
        rq_dir_entry *files;
        size_t n = 0;
        const char *dir = rq_arena_printf(&arena, RQ__NONCE_DIR "/%s", regions[i].name);
        if (dir == NULL) rc = rq_no_memory(why);
        if (rc == RQ_OK && regions[i].is_dir) rc = rq_vfs_list(vfs, dir, &arena, &files, &n, why);
        uint64_t committed = n == 0 ? 0 : committed_number(vfs, regions[i].name);
        for (size_t k = 0; k < n && rc == RQ_OK; k++) {
            const char *path = rq_arena_printf(&arena, "%s/%s", dir, files[k].name);
            rc = path == NULL ? rq_no_memory(why)
                              : look_at_nonces(vfs, regions[i].name, committed, path, files[k].name,
                                               callback, ctx, why);
        }
    }
    rq_arena_clear(&arena);
    return rc;
}

rq_nonce_survey_entry rq_nonces_survey_entry(const rq_nonce_survey *file, size_t i)
{
    const rq__nonce_entries e = {.count = file->count, .bytes = file->entries};
    rq__nonce n = rq__nonce_entry(&e, i);
    return (rq_nonce_survey_entry){n.group, n.nonce, n.seqid, n.age_ms};
}
