/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a store file: the rewrite scanner says what survives, the HFile writer puts it on disk.
 * Flush and compaction differ only in their inputs. HBASE: DefaultStoreFlusher, DefaultCompactor.
 */
#include "store/compaction.h"
#include "store/file_options.h"
#include "store/mob_rewrite.h"

#include <stdio.h>
#include <stdlib.h>

#define CELLS_BETWEEN_LOOKS 256

static bool any_tags(const rq_rewrite_options *o)
{
    for (size_t i = 0; i < o->segment_count; i++)
        if (rq_segment_has_tags(o->segments[i])) return true;
    for (size_t i = 0; i < o->file_count; i++)
        if (rq_hfile_reader_info(o->files[i].reader)->has_tags) return true;
    return false;
}

/* HBASE: includeMVCC is left out when no input has a number that still matters. */
static bool any_mvcc(const rq_rewrite_options *o)
{
    if (o->segment_count > 0) return true;
    for (size_t i = 0; i < o->file_count; i++)
        if (rq_hfile_reader_info(o->files[i].reader)->max_memstore_ts > 0) return true;
    return false;
}

static rq_hfile_options options_of(const rq_rewrite *w)
{
    const rq_store *s = w->scan.store;
    rq_hfile_options o =
        rq_file_options_of(rq_store_file_options(s), rq_store_table(s), rq_store_schema(s));
    o.order = rq_store_order(s);
    bool is_mob = rq_store_mob(s) != NULL; /* HBASE: DefaultMobStoreCompactor.writerFactory */
    o.include_mvcc = is_mob || any_mvcc(&w->scan);
    o.include_tags = is_mob || any_tags(&w->scan);
    o.create_time_ms = w->scan.now_ms;
    return o;
}

static rq_err set_info(const rq_rewrite *w, rq_hfile_writer *out, rq_error *why)
{
    const rq_rewrite_options *o = &w->scan;
    rq_slice *names = calloc(o->file_count + 1, sizeof *names);
    if (names == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < o->file_count; i++)
        names[i] = rq_slice_cstr(o->files[i].name);
    rq_err rc =
        rq_hfile_writer_set_store_info(out, w->max_seqid, o->major, names, o->file_count, why);
    free(names);
    return rc;
}

static rq_err copy_cells(const rq_rewrite *w, rq_rewrite_scanner *in, rq_hfile_writer *out,
                         rq__mob_rewrite *mob, rq_error *why)
{
    for (unsigned n = 1;; n++) {
        rq_cell cell;
        rq_err rc = rq_rewrite_scanner_next(in, &cell, why);
        if (rc == RQ_E_END) break;
        if (rc != RQ_OK) return rc;
        RQ_TRY(mob == NULL ? rq_hfile_writer_append(out, &cell, why)
                           : rq__mob_rewrite_cell(mob, &cell, why));
        if (n % CELLS_BETWEEN_LOOKS != 0) continue;
        if (w->cells_done != NULL)
            atomic_fetch_add_explicit(w->cells_done, CELLS_BETWEEN_LOOKS, memory_order_relaxed);
        if (w->stop != NULL && atomic_load_explicit(w->stop, memory_order_relaxed))
            return rq_fail(why, RQ_E_CANCELLED, "the store is closing");
    }
    return RQ_OK;
}

static rq_err write_file(const rq_rewrite *w, const char *path, bool *ret_empty, rq_error *why)
{
    const rq_env *env = rq_store_env(w->scan.store);
    rq_rewrite_scanner *in = NULL;
    rq_hfile_writer *out = NULL;
    rq_hfile_options options = options_of(w);
    rq_err rc = rq_rewrite_scanner_open(&w->scan, &in, why);
    if (rc == RQ_OK) rc = rq_hfile_writer_open(env->vfs, path, &options, &out, why);
    rq__mob_rewrite mob = {0};
    bool is_mob = rq_store_mob(w->scan.store) != NULL;
    if (is_mob) rq__mob_rewrite_init(&mob, w, &options, out);
    if (rc == RQ_OK) rc = copy_cells(w, in, out, is_mob ? &mob : NULL, why);
    rq_rewrite_scanner_close(in);
    *ret_empty = rc == RQ_OK && rq_hfile_writer_entry_count(out) == 0;
    if (rc == RQ_OK && !*ret_empty) rc = set_info(w, out, why);
    if (rc == RQ_OK && !*ret_empty && is_mob) rc = rq__mob_rewrite_finish(&mob, why);
    rq__mob_rewrite_clear(&mob);
    if (rc == RQ_OK && !*ret_empty) rc = rq_hfile_writer_finish(out, NULL, why);
    rq_hfile_writer_close(out); /* removes what was not finished */
    return rc;
}

/* Best effort: what stays is in no manifest and put aside at the next open. */
static void remove_file(const rq_store *s, const char *path)
{
    rq_err rc = rq_vfs_remove(rq_store_env(s)->vfs, path, NULL);
    (void)rc;
}

void rq_store_file_discard(const rq_store *s, rq_store_file *f)
{
    rq_arena arena = {0};
    const char *path = rq_arena_printf(&arena, "%s/%s", rq_store_dir(s), f->name);
    rq_hfile_reader_unref(f->reader);
    if (path != NULL) remove_file(s, path);
    rq_arena_clear(&arena);
}

/* What the family wants cached as it is written. The file is ready; nobody reads it yet. */
static rq_err warm(const rq_rewrite *w, rq_hfile_reader *reader, rq_error *why)
{
    const rq_rewrite_options *o = &w->scan;
    uint64_t input_bytes = 0, position = 0;
    for (size_t i = 0; i < o->file_count; i++)
        input_bytes += o->files[i].size_bytes;
    unsigned what =
        rq_cache_options_on_write(rq_store_cache_options(o->store), o->file_count > 0, input_bytes);
    if (what == 0) return RQ_OK;
    rq_err rc = rq_hfile_reader_warm(reader, what, UINT64_MAX, &position, why);
    return rc == RQ_E_END ? RQ_OK : rc;
}

rq_err rq_store_rewrite(const rq_rewrite *w, rq_store_file *ret, bool *ret_empty, rq_error *why)
{
    const rq_store *s = w->scan.store;
    char name[RQ_STORE_FILE_NAME_MAX + 1];
    rq_store_new_file_name(s, name);
    size_t size = strlen(rq_store_dir(s)) + 1 + strlen(name) + 1;
    char *path = malloc(size);
    if (path == NULL) return rq_fail(why, RQ_E_NO_MEMORY, "out of memory");
    snprintf(path, size, "%s/%s", rq_store_dir(s), name);
    rq_err rc = write_file(w, path, ret_empty, why);
    if (rc == RQ_OK && !*ret_empty) {
        rc = rq_store_file_open(s, name, ret, why);
        bool opened = rc == RQ_OK;
        if (opened) rc = warm(w, ret->reader, why);
        if (opened && rc != RQ_OK) rq_hfile_reader_unref(ret->reader);
        if (rc != RQ_OK) remove_file(s, path);
    }
    if (rc != RQ_OK && w->mob_output != NULL) rq_mob_output_end(w->mob_output, s, true);
    free(path);
    return rc;
}
