/* SPDX-License-Identifier: Apache-2.0 */
/* Commits a change of a region's files: the manifest is rewritten and swapped as a whole
 * (vfs/cas.c). Flushes, compactions and bulk loads call this with finished files.
 *
 * If a swap failed and could not be undone, the manifest is in doubt: after a power cut it may be
 * the old or the new one. While the doubt lasts, the files of both must be kept: discarded new
 * files are removed only after the next successful swap, and a compaction's inputs only after its
 * own swap. */
#include "region/engine_priv.h"
#include "region/owned.h"

#include <stdio.h>
#include <stdlib.h>

/* --- the new manifest ------------------------------------------------------------------------- */

static rq_err add_family(rq_arena *arena, rq__manifest *m, const rq__region_store *s, size_t more)
{
    const rq_store_version *v = rq_store_version_now(s->store);
    rq__manifest_family *f = &m->families[m->family_count++];
    f->name = rq_store_schema(s->store)->name;
    f->flushed = s->flushed;
    f->files = rq_arena_calloc(arena, v->file_count + more, sizeof *f->files);
    if (f->files == NULL) return RQ_E_NO_MEMORY;
    for (; f->file_count < v->file_count; f->file_count++) {
        f->files[f->file_count] = rq_arena_copy(arena, rq_slice_cstr(v->files[f->file_count].name));
        if (f->files[f->file_count].ptr == NULL) return RQ_E_NO_MEMORY;
    }
    return RQ_OK;
}

static int compare_families(const void *a, const void *b)
{
    return rq_slice_compare(((const rq__manifest_family *)a)->name,
                            ((const rq__manifest_family *)b)->name);
}

/* There may be thousands. */
static rq_err remove_files(rq_arena *arena, rq__manifest_family *f, const rq__store_change *c)
{
    rq_slice *gone = rq_arena_alloc(arena, c->removed_count * sizeof *gone);
    if (gone == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < c->removed_count; i++)
        gone[i] = rq_slice_cstr(c->removed[i].name);
    qsort(gone, c->removed_count, sizeof *gone, rq_slice_order);
    size_t kept = 0;
    for (size_t i = 0; i < f->file_count; i++)
        if (bsearch(&f->files[i], gone, c->removed_count, sizeof *gone, rq_slice_order) == NULL)
            f->files[kept++] = f->files[i];
    f->file_count = kept;
    return RQ_OK;
}

static rq_err change_files(rq_arena *arena, rq__manifest_family *f, const rq__store_change *c)
{
    if (c->removed_count > 0) RQ_TRY(remove_files(arena, f, c));
    if (c->added != NULL) f->files[f->file_count++] = rq_slice_cstr(c->added->name);
    if (c->flushed > f->flushed) f->flushed = c->flushed;
    return RQ_OK;
}

static rq_err build_manifest(rq_region *r, rq_arena *arena, const rq__store_change *changes,
                             size_t change_count, rq__manifest *m)
{
    *m = (rq__manifest){.in_use = r->manifest.in_use, .next_seqid = rq__region_read_point(r) + 1};
    m->families = rq_arena_calloc(arena, r->store_count + 1, sizeof *m->families);
    if (m->families == NULL) return RQ_E_NO_MEMORY;
    /* Files only change under the commit gate, which this thread holds: the file lists of versions
     * are stable, while segments may come and go. */
    rq_epoch_member pin;
    rq_epoch_pin(r->env.epoch, &pin);
    rq_err rc = RQ_OK;
    for (size_t i = 0; i < r->store_count && rc == RQ_OK; i++) {
        rc = add_family(arena, m, &r->stores[i], change_count + 1);
        for (size_t j = 0; j < change_count && rc == RQ_OK; j++)
            if (changes[j].store == &r->stores[i])
                rc = change_files(arena, &m->families[i], &changes[j]);
    }
    rq_epoch_unpin(r->env.epoch, &pin);
    for (size_t i = 0; i < m->family_count; i++)
        qsort(m->families[i].files, m->families[i].file_count, sizeof(rq_slice), rq_slice_order);
    qsort(m->families, m->family_count, sizeof *m->families, compare_families);
    return rc;
}

rq_err rq__region_files(rq_region *r, rq_arena *arena, rq__manifest *ret)
{
    return build_manifest(r, arena, NULL, 0, ret);
}

/* --- files that a commit in doubt may name ---------------------------------------------------- */

/* The manifest is certain again and does not name these files. Best effort: a file that stays is a
 * leftover. */
static void remove_unwanted(rq_region *r)
{
    for (size_t i = 0; i < r->unwanted_count; i++) {
        rq_err rc = rq_vfs_remove(r->env.vfs, r->unwanted[i], NULL);
        (void)rc;
        free(r->unwanted[i]);
    }
    free(r->unwanted);
    r->unwanted = NULL;
    r->unwanted_count = 0;
    for (size_t i = 0; i < r->store_count; i++)
        rq_mob_output_end(&r->stores[i].doubtful, r->stores[i].store, true);
}

/* If there is no memory for its name, the file stays as a leftover. */
static void note_unwanted(rq_region *r, const char *dir, const char *name)
{
    size_t size = strlen(dir) + 1 + strlen(name) + 1;
    char *path = malloc(size);
    char **list =
        path == NULL ? NULL : realloc(r->unwanted, (r->unwanted_count + 1) * sizeof *list);
    if (list == NULL) {
        free(path);
        return;
    }
    snprintf(path, size, "%s/%s", dir, name);
    r->unwanted = list;
    r->unwanted[r->unwanted_count++] = path;
}

void rq__region_give_up(rq__region_store *s, rq_store_file *f)
{
    rq_region *r = s->region;
    rq__region_removes_names(r);
    rq__gate_enter(&r->commit_gate, r->env.executor);
    if (r->manifest.in_doubt) {
        note_unwanted(r, rq_store_dir(s->store), f->name);
        rq_hfile_reader_unref(f->reader);
    } else {
        rq_store_file_discard(s->store, f);
    }
    rq__gate_leave(&r->commit_gate, r->env.executor);
}

void rq__region_give_up_mob(rq__region_store *s, rq_mob_output *o)
{
    rq_region *r = s->region;
    if (o->first == NULL) return;
    rq__gate_enter(&r->commit_gate, r->env.executor);
    if (r->manifest.in_doubt) rq_mob_output_move(o, &s->doubtful);
    rq__gate_leave(&r->commit_gate, r->env.executor);
    rq_mob_output_end(o, s->store, false);
}

/* --- the swap --------------------------------------------------------------------------------- */

rq_err rq__region_commit(rq_region *r, const rq__store_change *changes, size_t change_count,
                         rq_error *why)
{
    rq_arena arena = {0};
    rq__manifest m;
    rq_err rc = build_manifest(r, &arena, changes, change_count, &m);
    if (rc == RQ_OK && r->owned != NULL) {
        rc = rq__owned_fill(r, &arena, &m);
        if (rc == RQ_OK) rc = rq__owned_swap(r, &m, why);
    } else if (rc == RQ_OK)
        rc = rq__manifest_write(r->env.vfs, r->info.encoded, &m, &r->manifest.generation,
                                &r->manifest.in_doubt, why);
    rq_arena_clear(&arena);
    if (rc != RQ_OK)
        return rq_fail(why, rc, "cannot write the region's manifest: %s", rq_err_text(rc));
    remove_unwanted(r);
    for (size_t i = 0; i < change_count; i++)
        if (changes[i].flushed > changes[i].store->flushed)
            changes[i].store->flushed = changes[i].flushed;
    return RQ_OK;
}

rq_err rq__region_mark_in_use(rq_region *r, rq_error *why)
{
    rq_err rc = RQ_OK;
    rq__gate_enter(&r->commit_gate, r->env.executor);
    if (!r->manifest.in_use) {
        r->manifest.in_use = true;
        rc = rq__region_commit(r, NULL, 0, why);
        if (rc != RQ_OK) r->manifest.in_use = false;
    }
    rq__gate_leave(&r->commit_gate, r->env.executor);
    return rc;
}
