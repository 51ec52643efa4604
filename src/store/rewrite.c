/* SPDX-License-Identifier: Apache-2.0 */
/* Writes store files: the rewrite scanner selects the cells that survive, the HFile writer writes
 * them. Flush and compaction differ only in their inputs. HBASE: DefaultStoreFlusher,
 * DefaultCompactor. */
#include "store/compaction.h"
#include "store/file_options.h"
#include "store/mob_rewrite.h"

#include <stdio.h>
#include <stdlib.h>

#define MOB_BYTES_BETWEEN_LOOKS (1u << 20)
#define WARM_BYTES_BETWEEN_LOOKS (1u << 20)

static bool any_tags(const rq_rewrite_options *o)
{
    for (size_t i = 0; i < o->segment_count; i++)
        if (rq__segment_has_tags(o->segments[i])) return true;
    for (size_t i = 0; i < o->file_count; i++)
        if (rq_hfile_reader_info(o->files[i].reader)->has_tags) return true;
    return false;
}

/* Whether the output must keep the sequence id of a bulk-loaded file, which all its cells have: as
 * long as older writes may exist outside of the inputs. */
static bool has_number(const rq_rewrite_options *o, const rq_store_file *f)
{
    bool is_oldest = o->major && (o->unflushed_from == 0 || f->max_seqid < o->unflushed_from);
    return f->bulk_loaded && f->max_seqid > 0 && !is_oldest;
}

/* HBASE: the sequence ids of cells are omitted if no input has one that still matters. */
static bool any_mvcc(const rq_rewrite_options *o)
{
    if (o->segment_count > 0) return true;
    for (size_t i = 0; i < o->file_count; i++)
        if (rq_hfile_reader_info(o->files[i].reader)->max_memstore_ts > 0 ||
            has_number(o, &o->files[i]))
            return true;
    return false;
}

static rq_hfile_options options_of(const rq_rewrite *w)
{
    const rq_store *s = w->scan.store;
    rq_hfile_options o =
        rq__file_options_of(rq__store_file_options(s), rq__store_table(s), rq_store_schema(s));
    o.order = rq_store_order(s);
    bool is_mob = rq__store_mob(s) != NULL; /* HBASE: DefaultMobStoreCompactor.writerFactory */
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

/* --- outputs: one, or one for each window that has cells -------------------------------------- */

typedef struct output {
    char name[RQ_STORE_FILE_NAME_MAX + 1];
    char *path;
    rq_hfile_writer *writer; /* NULL: no cell so far */
} output;

static bool has_cells(const output *out)
{
    return out->writer != NULL && rq_hfile_writer_entry_count(out->writer) > 0;
}

typedef struct outputs {
    const rq_rewrite *rewrite;
    rq_hfile_options options;
    output *list;
    size_t count;
    size_t current;      /* where the last cell went */
    rq__mob_rewrite mob; /* of a MOB family, which has one output */
    bool is_mob;
} outputs;

static bool is_in(const rq_rewrite *w, size_t i, int64_t ts)
{
    return (i == 0 || ts >= w->boundaries[i]) &&
           (i + 1 >= w->boundary_count || ts < w->boundaries[i + 1]);
}

static size_t output_for(const outputs *o, int64_t ts)
{
    const rq_rewrite *w = o->rewrite;
    if (is_in(w, o->current, ts)) return o->current;
    size_t low = 0;
    size_t high = o->count;
    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;
        *(ts < w->boundaries[mid] ? &high : &low) = mid;
    }
    return low;
}

static rq_err open_output(const outputs *o, output *out, rq_error *why)
{
    const rq_store *s = o->rewrite->scan.store;
    rq_store_new_file_name(s, out->name);
    size_t size = strlen(rq_store_dir(s)) + 1 + strlen(out->name) + 1;
    out->path = malloc(size);
    if (out->path == NULL) return rq_no_memory(why);
    snprintf(out->path, size, "%s/%s", rq_store_dir(s), out->name);
    return rq_hfile_writer_open(rq_store_env(s)->vfs, out->path, &o->options, &out->writer, why);
}

/* Begins the only output of a MOB family, which needs files for values as well. */
static rq_err begin_mob(outputs *o, rq_error *why)
{
    o->is_mob = rq__store_mob(o->rewrite->scan.store) != NULL;
    if (!o->is_mob) return RQ_OK;
    RQ_TRY(open_output(o, &o->list[0], why));
    rq__mob_rewrite_init(&o->mob, o->rewrite, &o->options, o->list[0].writer);
    return RQ_OK;
}

static rq_err append(outputs *o, const rq_cell *cell, rq_error *why)
{
    if (o->is_mob) return rq__mob_rewrite_cell(&o->mob, cell, why);
    o->current = output_for(o, cell->timestamp);
    output *out = &o->list[o->current];
    if (out->writer == NULL) RQ_TRY(open_output(o, out, why));
    return rq_hfile_writer_append(out->writer, cell, why);
}

static uint64_t bytes_of(const outputs *o)
{
    uint64_t bytes = o->mob.value_bytes;
    for (size_t i = 0; i < o->count; i++)
        if (o->list[i].writer != NULL) bytes += rq_hfile_writer_bytes(o->list[i].writer);
    return bytes;
}

static rq_err finish(outputs *o, rq_error *why)
{
    for (size_t i = 0; i < o->count; i++) {
        rq_hfile_writer *out = o->list[i].writer;
        if (!has_cells(&o->list[i])) continue;
        RQ_TRY(set_info(o->rewrite, out, why));
        if (o->is_mob) RQ_TRY(rq__mob_rewrite_finish(&o->mob, why));
        RQ_TRY(rq_hfile_writer_finish(out, NULL, why));
    }
    return RQ_OK;
}

/* --- copying ---------------------------------------------------------------------------------- */

typedef struct copying {
    const rq_rewrite *rewrite;
    outputs *outputs;
    uint64_t written, reported; /* cells */
    uint64_t looked_at;         /* MOB bytes at the last progress report; the scanner sees only
                             * references */
} copying;

static bool is_stopped(const rq_rewrite *w)
{
    return w->stop != NULL && atomic_load_explicit(w->stop, memory_order_relaxed);
}

static bool flush_lacks_space(const rq_rewrite *w)
{
    return w->lacking != NULL && atomic_load_explicit(w->lacking, memory_order_relaxed) != 0;
}

static rq_err check_progress(void *context, rq_error *why)
{
    copying *c = context;
    const rq_rewrite *w = c->rewrite;
    if (w->cells_done != NULL)
        atomic_fetch_add_explicit(w->cells_done, c->written - c->reported, memory_order_relaxed);
    c->reported = c->written;
    c->looked_at = c->outputs->mob.value_bytes;
    rq_executor *ex = rq_store_env(w->scan.store)->executor;
    ex->yield(ex);
    if (w->pace != NULL) w->pace(w->pace_context, bytes_of(c->outputs));
    if (is_stopped(w)) return rq_fail(why, RQ_E_CANCELLED, "the store is closing");
    if (flush_lacks_space(w)) return rq_fail(why, RQ_E_CANCELLED, "the disk is full");
    return RQ_OK;
}

static rq_err copy_cells(const rq_rewrite *w, outputs *o, rq_error *why)
{
    copying c = {.rewrite = w, .outputs = o};
    rq_rewrite_options scan = w->scan;
    scan.look = check_progress;
    scan.look_context = &c;
    rq_rewrite_scanner *in = NULL;
    rq_err rc = rq__rewrite_scanner_open(&scan, &in, why);
    for (; rc == RQ_OK; c.written++) {
        rq_cell cell;
        rc = rq__rewrite_scanner_next(in, &cell, why);
        if (rc == RQ_OK) rc = append(o, &cell, why);
        if (rc == RQ_OK && o->mob.value_bytes - c.looked_at >= MOB_BYTES_BETWEEN_LOOKS)
            rc = check_progress(&c, why);
    }
    rq__rewrite_scanner_close(in);
    return rc == RQ_E_END ? RQ_OK : rc;
}

/* Best effort: a file that stays is in no manifest, and is moved aside at the next open. */
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

/* Loads the blocks that the family wants cached on write. The file is complete and has no readers
 * yet. If the task is asked to stop, the file is used nonetheless, with fewer blocks cached. */
static rq_err warm(const rq_rewrite *w, rq_hfile_reader *reader, rq_error *why)
{
    const rq_rewrite_options *o = &w->scan;
    uint64_t input_bytes = 0, position = 0;
    for (size_t i = 0; i < o->file_count; i++)
        input_bytes += o->files[i].size_bytes;
    unsigned what = rq__cache_options_on_write(rq__store_cache_options(o->store), o->file_count > 0,
                                               input_bytes);
    if (what == 0) return RQ_OK;
    rq_err rc = RQ_OK;
    while (rc == RQ_OK && !is_stopped(w))
        rc = rq_hfile_reader_warm(reader, what, WARM_BYTES_BETWEEN_LOOKS, &position, why);
    return rc == RQ_E_END ? RQ_OK : rc;
}

/* Opens the finished files; if one cannot be opened, all are removed. */
static rq_err open_files(const outputs *o, rq_store_file *ret, size_t *ret_count, rq_error *why)
{
    const rq_store *s = o->rewrite->scan.store;
    rq_err rc = RQ_OK;
    for (size_t i = 0; i < o->count && rc == RQ_OK; i++) {
        if (!has_cells(&o->list[i])) continue;
        rc = rq_store_file_open(s, o->list[i].name, &ret[*ret_count], why);
        if (rc != RQ_OK) break;
        rc = warm(o->rewrite, ret[(*ret_count)++].reader, why);
    }
    if (rc == RQ_OK) return RQ_OK;
    for (size_t i = 0; i < *ret_count; i++)
        rq_hfile_reader_unref(ret[i].reader);
    *ret_count = 0;
    for (size_t i = 0; i < o->count; i++)
        if (has_cells(&o->list[i])) remove_file(s, o->list[i].path);
    return rc;
}

rq_err rq_store_rewrite(const rq_rewrite *w, rq_store_file *ret, size_t *ret_count, rq_error *why)
{
    outputs o = {.rewrite = w, .options = options_of(w)};
    bool finished = false;
    *ret_count = 0;
    o.count = w->boundary_count == 0 ? 1 : w->boundary_count;
    o.list = calloc(o.count, sizeof *o.list);
    if (o.list == NULL) return rq_no_memory(why);
    rq_err rc = begin_mob(&o, why);
    if (rc == RQ_OK) rc = copy_cells(w, &o, why);
    if (rc == RQ_OK) rc = finish(&o, why);
    rq__mob_rewrite_clear(&o.mob);
    if (rc == RQ_OK) {
        finished = true;
        rc = open_files(&o, ret, ret_count, why);
    }
    for (size_t i = 0; i < o.count; i++) {
        /* The writer removes its unfinished file; finished ones are removed here. */
        if (!finished && o.list[i].writer != NULL) {
            rq_hfile_writer_close(o.list[i].writer);
            remove_file(w->scan.store, o.list[i].path);
        } else {
            rq_hfile_writer_close(o.list[i].writer);
        }
        free(o.list[i].path);
    }
    free(o.list);
    if (rc != RQ_OK && w->mob_output != NULL) rq_mob_output_end(w->mob_output, w->scan.store, true);
    return rc;
}
