/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the cells of MOB families to files; contract in mob_rewrite.h. */
#include "store/mob_rewrite.h"

#include <stdlib.h>

/* --- what is written -------------------------------------------------------------------------- */

struct rq_mob_written {
    rq_mob_written *next;
    char *path;
    char name[RQ_MOB_FILE_NAME_LEN + 1];
};

/* Best effort: no store file refers to a file that stays, so the cleaner removes it in its next
 * round. */
static void remove_path(rq_vfs *vfs, const char *path)
{
    rq_err rc = rq_vfs_remove(vfs, path, NULL);
    (void)rc;
}

void rq_mob_output_end(rq_mob_output *o, const rq_store *s, bool remove)
{
    while (o->first != NULL) {
        rq_mob_written *w = o->first;
        o->first = w->next;
        if (remove) remove_path(rq_store_env(s)->vfs, w->path);
        rq__mob_files_written(rq__store_mob(s)->files, w->name);
        free(w->path);
        free(w);
    }
}

void rq_mob_output_move(rq_mob_output *from, rq_mob_output *to)
{
    while (from->first != NULL) {
        rq_mob_written *w = from->first;
        from->first = w->next;
        w->next = to->first;
        to->first = w;
    }
}

void rq_mob_output_forget(rq_mob_output *o)
{
    while (o->first != NULL) {
        rq_mob_written *w = o->first;
        o->first = w->next;
        free(w->path);
        free(w);
    }
}

/* Noted before the file exists. */
static rq_err note(rq__mob_rewrite *m, const char *path)
{
    rq_mob_written *w = calloc(1, sizeof *w);
    char *copy = w == NULL ? NULL : strdup(path);
    if (copy == NULL || rq__mob_files_writing(m->mob->files, m->name) != RQ_OK) {
        free(copy);
        free(w);
        return RQ_E_NO_MEMORY;
    }
    w->path = copy;
    memcpy(w->name, m->name, sizeof w->name);
    w->next = m->what->mob_output->first;
    m->what->mob_output->first = w;
    return RQ_OK;
}

static rq_err begin_file(rq__mob_rewrite *m, rq_error *why)
{
    const rq_env *env = rq_store_env(m->what->scan.store);
    uint64_t random[2] = {env->executor->random(env->executor),
                          env->executor->random(env->executor)};
    rq__mob_file_name(m->mob->start_key, m->newest_ms, random, m->mob->region, m->name);
    const char *dir;
    RQ_TRY(rq__store_mob_dir(m->what->scan.store, &dir, why));
    rq_arena a;
    rq_arena_init(&a);
    char *path = rq_arena_printf(&a, "%s/%s", dir, m->name);
    rq_err rc = path == NULL ? RQ_E_NO_MEMORY : note(m, path);
    if (rc == RQ_OK) rc = rq_hfile_writer_open(env->vfs, path, &m->options, &m->mob_file, why);
    rq_arena_clear(&a);
    m->mob_cells = 0;
    return rc;
}

static rq_err finish_file(rq__mob_rewrite *m, rq_error *why)
{
    if (m->mob_file == NULL) return RQ_OK;
    const rq_rewrite *w = m->what;
    RQ_TRY(rq_hfile_writer_set_mob_info(m->mob_file, w->max_seqid, w->scan.major, m->mob_cells));
    RQ_TRY(rq_hfile_writer_finish(m->mob_file, NULL, why));
    rq_hfile_writer_close(m->mob_file);
    m->mob_file = NULL;
    return RQ_OK;
}

/* --- cells ------------------------------------------------------------------------------------ */

static rq_err put_value(rq__mob_rewrite *m, const rq_cell *c, rq_error *why)
{
    rq_cell reference;
    if (m->mob_file == NULL) RQ_TRY(begin_file(m, why));
    rq_slice name = rq_slice_of(m->name, RQ_MOB_FILE_NAME_LEN);
    rq_err rc = rq__mob_reference_make(c, m->table, name, &m->reference, &reference);
    /* Its tags leave no room for a reference: the value stays in the store file. */
    if (rc == RQ_E_INVALID) return rq_hfile_writer_append(m->store_file, c, why);
    RQ_TRY(rc);
    RQ_TRY(rq_hfile_writer_append(m->mob_file, c, why));
    m->value_bytes += c->value_len;
    RQ_TRY(rq_hfile_writer_append(m->store_file, &reference, why));
    if (m->mob_cells++ == 0) RQ_TRY(rq__mob_refs_add(&m->refs, m->table, name));
    if (m->mob->optimized && !m->what->scan.is_flush &&
        rq_hfile_writer_bytes(m->mob_file) > m->mob->file_bytes_max)
        return finish_file(m, why);
    return RQ_OK;
}

/* A reference that names no file is kept as it is, since no data depends on it. HBase's compactions
 * fail on it. */
static rq_err keep_reference(rq__mob_rewrite *m, const rq_cell *c, rq_error *why)
{
    rq_mob_reference ref;
    bool names_file;
    if (rq__mob_reference_parse(c, &ref, &names_file, NULL) == RQ_OK && names_file)
        RQ_TRY(rq__mob_refs_add(&m->refs, ref.table, ref.file));
    return rq_hfile_writer_append(m->store_file, c, why);
}

static rq_err rewrite_reference(rq__mob_rewrite *m, const rq_cell *c, rq_error *why)
{
    rq_mob_reference ref;
    bool names_file;
    rq_cell value;
    if (rq__mob_reference_parse(c, &ref, &names_file, NULL) != RQ_OK || !names_file)
        return keep_reference(m, c, why);
    rq_error own = {0};
    rq_err rc = rq__mob_read_cell(&m->read, c, &m->ctx, &value, &own);
    if (rc == RQ_E_DO_NOT_RETRY && m->mob->discard_missing) {
        rq_log_write_limited(rq_store_env(m->what->scan.store)->log,
                             rq__store_damage_lines(m->what->scan.store), RQ_LOG_ERROR, "store",
                             "compaction drops a MOB value, because its MOB file is missing: %s",
                             own.message);
        return RQ_OK;
    }
    if (rc != RQ_OK) return rq_fail(why, rc, "%s", own.message);
    rq_read_ctx_wait_for(&m->ctx, NULL);
    bool is_large = value.value_len > m->threshold;
    if (is_large && m->mob->optimized &&
        rq_hfile_reader_info(m->read.at.reader)->size_bytes >= m->mob->file_bytes_max)
        return keep_reference(m, c, why);
    return is_large ? put_value(m, &value, why)
                    : rq_hfile_writer_append(m->store_file, &value, why);
}

rq_err rq__mob_rewrite_cell(rq__mob_rewrite *m, const rq_cell *c, rq_error *why)
{
    if (c->type != RQ_TYPE_PUT) return rq_hfile_writer_append(m->store_file, c, why);
    if (rq__mob_is_reference(c))
        return m->what->rewrites_mob ? rewrite_reference(m, c, why) : keep_reference(m, c, why);
    return c->value_len > m->threshold ? put_value(m, c, why)
                                       : rq_hfile_writer_append(m->store_file, c, why);
}

/* --- begin and end ---------------------------------------------------------------------------- */

/* HBASE: the memstore's newest timestamp, FileDetails.latestPutTs. */
static int64_t newest_ms(const rq_rewrite_options *o)
{
    int64_t newest = INT64_MIN;
    for (size_t i = 0; i < o->segment_count; i++) {
        int64_t min, max;
        rq__segment_time_range(o->segments[i], &min, &max);
        if (max > newest) newest = max;
    }
    for (size_t i = 0; i < o->file_count; i++)
        if (o->files[i].max_ts > newest) newest = o->files[i].max_ts;
    return newest;
}

void rq__mob_rewrite_init(rq__mob_rewrite *m, const rq_rewrite *what,
                          const rq_hfile_options *options, rq_hfile_writer *store_file)
{
    const rq_store *s = what->scan.store;
    *m = (rq__mob_rewrite){
        .what = what,
        .mob = rq__store_mob(s),
        .table = rq__store_table(s)->name,
        .threshold = rq_store_schema(s)->mob_threshold,
        .options = *options,
        .newest_ms = newest_ms(&what->scan),
        .store_file = store_file,
        .ctx = {.may_block = true},
    };
    /* HBASE: MobUtils.createWriter: no bloom filter, because only existing cells are looked up. */
    m->options.bloom = RQ_BLOOM_NONE;
    m->options.include_mvcc = true;
    m->options.include_tags = true;
    m->read = (rq_mob_read){
        .files = m->mob->files,
        .family = rq_store_schema(s)->name,
        .read_point = what->scan.smallest_read_point,
    };
}

rq_err rq__mob_rewrite_finish(rq__mob_rewrite *m, rq_error *why)
{
    RQ_TRY(finish_file(m, why));
    rq_buf refs = {0};
    rq_err rc = rq__mob_refs_encode(&m->refs, &refs);
    if (rc == RQ_OK)
        rc = rq_hfile_writer_append_file_info(m->store_file, RQ_SLICE_LIT(RQ_MOB_INFO_REFS),
                                              rq_buf_slice(&refs), why);
    rq_buf_clear(&refs);
    return rc;
}

void rq__mob_rewrite_clear(rq__mob_rewrite *m)
{
    rq_hfile_writer_close(m->mob_file);
    rq__mob_read_release(&m->read);
    rq_read_ctx_clear(&m->ctx);
    rq_mob_refs_clear(&m->refs);
    rq_buf_clear(&m->reference);
}
