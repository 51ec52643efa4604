/* SPDX-License-Identifier: Apache-2.0 */
/* Bulk load; contract in bulk_load.h. HBASE: HRegion.bulkLoadHFiles, HStore.assertBulkLoadHFileOk.
 *
 * 1. Check every file: regular, readable, of an existing family, within the region's key range. Its
 *    identity (rq_file_id) is noted, and later steps accept no other file under its name.
 *    A file that is to be copied is refused while another call copies it. A client that was killed and started again
 *    may name the file before the first call has ended, and a copied source shows no trace of having been loaded.
 * 2. Mark the manifest IN_USE: from now on a file it does not name is a leftover.
 * 3. Take the number n, under the token.
 * 4. Link the files into the families' folders under their final names (or copy them, where linking
 *    is not possible or the files are not the server's alone), make bytes and names durable, open
 *    them. Then look at each source's name again: a client that was killed and started again renames
 *    a file before it names it in another call, and only one of the two calls may load it. Renamed
 *    before this look, the file is not loaded by this call; a client that renames it later finds a
 *    file with two names (transfer/load_files.c), and waits.
 *    If the sync of a linked file fails, the file is copied by all later calls, until the process ends: another sync of
 *    it would succeed without writing anything.
 * 5. Commit the manifest with all of them: the point of no return.
 * 6. Publish the stores' versions, under the token, with one more number m as `visible_from`.
 * 7. With replication of bulk loads: stage a record of the load (bulk_event.c), with the number m + 1
 *    or, if the log had no room at first, a later one.
 * 8. Raise the read point to m, or to the record's number, once everything staged before is durable:
 *    the load is visible.
 * 9. Remove the sources that were linked.
 *
 * HBase flushes before step 3, so that the order of files by number is also the order of their
 * cells. That is not needed here: cells keep the numbers they were written with, in files too, a
 * compaction keeps the number of loaded cells as long as older ones may be elsewhere
 * (store/rewrite_scanner.c, 6), and a replay starts at the flushed numbers in the manifest, never
 * at a file's number. A crash before step 5 leaves links, which the next opening moves aside, and the
 * sources; a crash after it leaves sources that are loaded, as a crash of HBase's client would. A crash
 * between 5 and 7 leaves a load that no peer gets, and that was not acknowledged, as in HBase.
 *
 * A client that has not seen the response may repeat the call; as in HBase, the call has no nonce by which it could be
 * recognized. Files that were moved are not found again, so they are not loaded twice. Files that were copied are
 * loaded again, as in HBase: readers see their cells once, since both copies have the same keys. */
#include "region/bulk_load.h"

#include "hfile/reader.h"
#include "region/bulk_event.h"
#include "region/engine_priv.h"

#include <stdio.h>
#include <stdlib.h>

#define COPY_BYTES ((size_t)1 << 20)

/* One file on its way. */
typedef struct part {
    const rq_bulk_file *source;
    rq_file_id id; /* of the source, when it was looked at */
    rq__region_store *store;
    rq_store_file file; /* opened in its new place */
    char name[RQ_STORE_FILE_NAME_MAX + 1];
    const char *path; /* path in the store; NULL: not placed yet */
    bool linked, opened;
} part;

/* A store that gets files. */
typedef struct target {
    rq__region_store *store;
    rq_store_file *files;
    size_t count;
    rq_store_version *next;
} target;

/* The sources of a call that copies them; in the region's list while it runs. */
struct rq__copied_load {
    struct rq__copied_load *next;
    rq_file_id *ids; /* sorted */
    size_t count;
    bool is_listed;
    bool is_double; /* another call has one of them */
};

typedef struct loading {
    rq_region *region;
    const rq_bulk_load *what;
    struct rq__copied_load copied;
    rq_arena arena;
    part *parts; /* one per file */
    target *targets;
    size_t target_count;
    uint64_t number;     /* n */
    uint64_t visible_at; /* m */
    rq_lsn lsn;
    rq__bulk_event event;
} loading;

/* --- 1: what may be loaded -------------------------------------------------------------------- */

static rq_err family_differs(const part *p, rq_slice found, rq_error *why)
{
    rq_slice family = rq_store_schema(p->store->store)->name;
    return rq_fail(why, RQ_E_INVALID_HFILE, "%s holds cells of family %.*s, not %.*s",
                   p->source->name, (int)found.len, (const char *)found.ptr, (int)family.len,
                   (const char *)family.ptr);
}

static rq_err check_cell(const part *p, const rq_cell *c, rq_buf *last_row, rq_error *why)
{
    rq_slice family = rq_store_schema(p->store->store)->name;
    if (!rq_slice_eq(rq_cell_family(c), family)) return family_differs(p, rq_cell_family(c), why);
    if (rq_slice_compare(rq_buf_slice(last_row), rq_cell_row(c)) > 0)
        return rq_fail(why, RQ_E_INVALID_HFILE, "%s: its rows are not in ascending order",
                       p->source->name);
    rq_buf_reset(last_row);
    return rq_buf_append(last_row, c->row, c->row_len);
}

/* The first block is read in any case: it shows whether its encoding is supported. */
static rq_err check_cells(const part *p, rq_hfile_reader *reader, bool all, rq_error *why)
{
    rq_hfile_scanner s;
    rq_read_ctx ctx = {.may_block = true};
    rq_buf last_row = {0};
    rq_hfile_scanner_init(&s, reader);
    rq_err rc = rq_hfile_scanner_seek_first(&s, &ctx, why);
    while (rc == RQ_OK) {
        rc = check_cell(p, rq_hfile_scanner_cell(&s), &last_row, why);
        if (rc == RQ_OK && !all) break;
        if (rc == RQ_OK) rc = rq_hfile_scanner_next(&s, &ctx, why);
    }
    rq_hfile_scanner_clear(&s);
    rq_read_ctx_clear(&ctx);
    rq_buf_clear(&last_row);
    return rc == RQ_E_END ? RQ_OK : rc;
}

static bool in_region(const rq_region_info *info, const rq_cell *first, const rq_cell *last)
{
    if (rq_slice_compare(rq_cell_row(first), info->start_key) < 0) return false;
    return info->end_key.len == 0 || rq_slice_compare(rq_cell_row(last), info->end_key) < 0;
}

/* Whether the file's sequence ids leave room above them: the region's next numbers must be above all
 * numbers in its files. */
static bool leaves_numbers(const rq_hfile_info *info)
{
    return info->max_memstore_ts < RQ__SEQID_LIMIT && info->max_seqid < RQ__SEQID_LIMIT;
}

static rq_err check_open(const loading *l, const part *p, rq_hfile_reader *reader, bool *ret_fits,
                         rq_error *why)
{
    const rq_hfile_info *info = rq_hfile_reader_info(reader);
    rq_cell first;
    rq_cell last;
    if (info->entry_count == 0)
        return rq_fail(why, RQ_E_IOEXCEPTION, "First key can not be null"); /* HBase's words */
    if (info->order != rq_store_order(p->store->store))
        return rq_fail(why, RQ_E_INVALID_HFILE, "%s: its cells have another order than %s",
                       p->source->name, "those of the table");
    if (!leaves_numbers(info))
        return rq_fail(why, RQ_E_INVALID_HFILE, "%s: its sequence ids are too high",
                       p->source->name);
    RQ_TRY(rq_cell_parse_stored_key(info->first_key, &first, why));
    RQ_TRY(rq_cell_parse_stored_key(info->last_key, &last, why));
    if (!rq_slice_eq(rq_cell_family(&first), rq_cell_family(&last)))
        return family_differs(p, rq_cell_family(&last), why);
    *ret_fits = in_region(&l->region->info, &first, &last);
    return *ret_fits ? check_cells(p, reader, l->region->engine->bulk_verify, why) : RQ_OK;
}

static rq_err open_source(const part *p, rq_file **ret, rq_file_id *ret_id, rq_error *why)
{
    const rq_bulk_file *f = p->source;
    RQ_TRY(rq_vfs_open(f->source, f->path, RQ_OPEN_READ | RQ_OPEN_BENEATH, ret, why));
    rq_err rc = rq_file_identify(*ret, ret_id, why);
    if (rc != RQ_OK) (void)rq_file_close(*ret);
    return rc;
}

static rq_err check_file(const loading *l, part *p, bool *ret_fits, rq_error *why)
{
    size_t hint = 0;
    p->store = rq__region_store_of(l->region, p->source->family, &hint);
    if (p->store == NULL) {
        char family[256];
        rq_bytes_to_string(p->source->family, family, sizeof family);
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "No such column family %s", family);
    }
    rq_hfile_reader *reader;
    rq_file *file;
    rq_error own = {0};
    rq_err rc = open_source(p, &file, &p->id, &own);
    if (rc == RQ_OK) rc = rq_hfile_reader_open_file(file, p->source->name, &reader, &own);
    if (rc == RQ_OK) {
        rc = check_open(l, p, reader, ret_fits, &own);
        rq_hfile_reader_unref(reader);
    }
    return rc == RQ_OK ? RQ_OK
                       : rq_fail(why, rc, "%s: %s", p->source->name,
                                 own.message[0] == '\0' ? rq_err_text(rc) : own.message);
}

static rq_err check_files(const loading *l, bool *ret_fits, rq_error *why)
{
    *ret_fits = true;
    for (size_t i = 0; i < l->what->file_count; i++) {
        bool fits = true;
        RQ_TRY(check_file(l, &l->parts[i], &fits, why));
        if (!fits)
            rq_log_write_limited(l->region->env.log, &l->region->engine->bulk_lines, RQ_LOG_INFO,
                                 "region",
                                 "region %s: bulk load: file %s has rows outside the region",
                                 l->region->info.encoded, l->parts[i].source->name);
        *ret_fits = *ret_fits && fits;
    }
    return RQ_OK;
}

static int compare_ids(const void *a, const void *b)
{
    const rq_file_id *x = a, *y = b;
    if (x->device != y->device) return x->device < y->device ? -1 : 1;
    return (x->inode > y->inode) - (x->inode < y->inode);
}

static bool have_one_in_common(const struct rq__copied_load *a, const struct rq__copied_load *b)
{
    for (size_t i = 0, k = 0; i < a->count && k < b->count;) {
        int c = compare_ids(&a->ids[i], &b->ids[k]);
        if (c == 0) return true;
        *(c < 0 ? &i : &k) += 1;
    }
    return false;
}

/* token */
static void list_copied(rq_region *r, void *arg)
{
    struct rq__copied_load *own = arg;
    for (const struct rq__copied_load *k = r->copied_loads; k != NULL; k = k->next)
        own->is_double = own->is_double || have_one_in_common(own, k);
    if (own->is_double) return;
    own->is_listed = true;
    own->next = r->copied_loads;
    r->copied_loads = own;
}

/* token */
static void unlist_copied(rq_region *r, void *arg)
{
    struct rq__copied_load *own = arg, **at = &r->copied_loads;
    while (*at != own)
        at = &(*at)->next;
    *at = own->next;
}

static rq_err begin_copying(loading *l, rq_error *why)
{
    struct rq__copied_load *own = &l->copied;
    own->count = l->what->file_count;
    own->ids = rq_arena_alloc(&l->arena, own->count * sizeof *own->ids);
    if (own->ids == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < own->count; i++)
        own->ids[i] = l->parts[i].id;
    qsort(own->ids, own->count, sizeof *own->ids, compare_ids);
    rq__region_with_token(l->region, list_copied, own);
    if (!own->is_double) return RQ_OK;
    return rq_fail(why, RQ_E_CONFLICT,
                   "%s, or another file of this call, is already being loaded by another call",
                   l->what->files[0].name);
}

/* --- 3, 4: into the families' folders --------------------------------------------------------- */

static bool takes_number(const loading *l)
{
    return l->what->assign_seqid || l->what->ships;
}

/* token */
static void take_number(rq_region *r, void *arg)
{
    loading *l = arg;
    l->number = ++r->staged_seqid;
}

static rq_err copy_bytes(rq_file *from, rq_file *to, uint8_t *buf, const _Atomic bool *stop,
                         rq_error *why)
{
    for (uint64_t at = 0;;) {
        size_t n;
        if (atomic_load(stop)) return rq_fail(why, RQ_E_CANCELLED, "the region is closing");
        RQ_TRY(rq_file_read(from, buf, COPY_BYTES, at, &n, why));
        if (n == 0) return RQ_OK;
        RQ_TRY(rq_file_write(to, buf, n, at, why));
        at += n;
    }
}

static rq_err copy_file(const loading *l, const part *p, rq_file *from, rq_error *why)
{
    rq_file *to = NULL;
    uint8_t *buf = malloc(COPY_BYTES);
    rq_err rc = buf == NULL ? rq_no_memory(why) : RQ_OK;
    if (rc == RQ_OK)
        rc = rq_vfs_open(l->region->env.vfs, p->path, RQ_OPEN_WRITE | RQ_OPEN_CREATE | RQ_OPEN_EXCL,
                         &to, why);
    if (rc == RQ_OK) rc = copy_bytes(from, to, buf, &l->region->stop, why);
    if (rc == RQ_OK) rc = rq_file_sync(to, why);
    rq_err closed = rq_file_close(to);
    free(buf);
    return rc == RQ_OK ? closed : rc;
}

static bool same_file(const rq_file_id *a, const rq_file_id *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->written_ns == b->written_ns && a->changed_ns == b->changed_ns;
}

static bool has_failed_sync(rq_engine *e, const rq_file_id *id)
{
    pthread_mutex_lock(&e->lock);
    bool found = e->has_more_unsynced;
    for (size_t i = 0; i < e->unsynced_count && !found; i++)
        found = compare_ids(&e->unsynced[i], id) == 0;
    pthread_mutex_unlock(&e->lock);
    return found;
}

static void note_failed_sync(rq_engine *e, const rq_file_id *id)
{
    if (has_failed_sync(e, id)) return;
    pthread_mutex_lock(&e->lock);
    e->has_more_unsynced = e->unsynced_count == RQ__UNSYNCED_MAX;
    if (!e->has_more_unsynced) e->unsynced[e->unsynced_count++] = *id;
    pthread_mutex_unlock(&e->lock);
}

/* The program that wrote the file need not have synced it. */
static rq_err sync_link(const loading *l, const part *p, rq_error *why)
{
    rq_err rc = rq_vfs_sync_file(l->region->env.vfs, p->path, why);
    if (rc != RQ_OK) note_failed_sync(l->region->engine, &p->id);
    return rc;
}

/* Copies the file where a link is impossible (another file system, another owner, a second name), or where the file
 * cannot be made durable by a sync (an earlier one has failed). The file opened here is compared with the file checked
 * in step 1; no descriptor is kept open in between, because a call may name thousands of files. */
static rq_err link_or_copy(const loading *l, part *p, rq_error *why)
{
    rq_file *from;
    rq_file_id id;
    RQ_TRY(open_source(p, &from, &id, why));
    rq_err rc = RQ_OK;
    if (!same_file(&id, &p->id))
        rc = rq_fail(why, RQ_E_CONFLICT, "%s changed while it was loaded", p->source->name);
    if (rc == RQ_OK && !l->what->copy && !has_failed_sync(l->region->engine, &id))
        p->linked = rq_file_link(from, l->region->env.vfs, p->path, NULL) == RQ_OK;
    if (rc == RQ_OK) rc = p->linked ? sync_link(l, p, why) : copy_file(l, p, from, why);
    (void)rq_file_close(from); /* only read */
    return rc;
}

static rq_err bring(loading *l, part *p, rq_error *why)
{
    rq_store *s = p->store->store;
    rq_store_new_file_name(s, p->name);
    size_t len = strlen(p->name);
    if (takes_number(l))
        snprintf(p->name + len, sizeof p->name - len, "_SeqId_%llu_",
                 (unsigned long long)l->number);
    p->path = rq_arena_printf(&l->arena, "%s/%s", rq_store_dir(s), p->name);
    if (p->path == NULL) return rq_no_memory(why);
    RQ_TRY(link_or_copy(l, p, why));
    RQ_TRY(rq_store_file_open(s, p->name, &p->file, why));
    p->opened = true;
    return RQ_OK;
}

static target *target_of(loading *l, rq__region_store *s)
{
    for (size_t i = 0; i < l->target_count; i++)
        if (l->targets[i].store == s) return &l->targets[i];
    target *t = &l->targets[l->target_count++];
    t->store = s;
    return t;
}

static rq_err check_name(const part *p, rq_error *why)
{
    rq_file *now;
    rq_file_id id;
    rq_err rc = open_source(p, &now, &id, why);
    if (rc == RQ_OK) (void)rq_file_close(now); /* only read */
    bool gone = rc == RQ_E_NOT_FOUND;
    if (rc != RQ_OK && !gone) return rc;
    if (!gone && id.device == p->id.device && id.inode == p->id.inode) return RQ_OK;
    return rq_fail(why, RQ_E_CONFLICT, "%s was renamed, removed or replaced while it was loaded",
                   p->source->name);
}

/* A source that is to be kept may go in the meantime: another cluster may archive it. */
static rq_err check_names(const loading *l, rq_error *why)
{
    for (size_t i = 0; i < l->what->file_count && !l->what->copy; i++)
        RQ_TRY(check_name(&l->parts[i], why));
    return RQ_OK;
}

static rq_err place_files(loading *l, rq_error *why)
{
    size_t n = l->what->file_count;
    for (size_t i = 0; i < n; i++) {
        part *p = &l->parts[i];
        RQ_TRY(bring(l, p, why));
        target *t = target_of(l, p->store);
        if (t->files == NULL) t->files = rq_arena_calloc(&l->arena, n, sizeof *t->files);
        if (t->files == NULL) return rq_no_memory(why);
        t->files[t->count++] = p->file;
    }
    for (size_t i = 0; i < l->target_count; i++)
        RQ_TRY(rq_vfs_sync_dir(l->region->env.vfs, rq_store_dir(l->targets[i].store->store), why));
    return check_names(l, why);
}

/* The event, as long as a failure can be undone. */
static rq_err describe(loading *l, rq_error *why)
{
    if (!l->what->ships || l->region->log_scopes.len == 0) return RQ_OK;
    rq_err rc = rq__bulk_event_begin(&l->event, l->region, l->what, l->number);
    for (size_t i = 0; i < l->what->file_count && rc == RQ_OK; i++) {
        const part *p = &l->parts[i];
        rc = rq__bulk_event_add(&l->event, rq_store_schema(p->store->store)->name, p->name,
                                p->id.size);
    }
    return rc == RQ_OK ? rq__bulk_event_check(&l->event, why) : rq_no_memory(why);
}

/* Best effort: files that stay are in no manifest. */
static void take_back(loading *l)
{
    for (size_t i = 0; i < l->target_count; i++)
        rq_store_version_discard(l->targets[i].next);
    for (size_t i = 0; i < l->what->file_count; i++) {
        part *p = &l->parts[i];
        if (p->opened) {
            rq__region_give_up(p->store, &p->file);
        } else if (p->path != NULL) {
            rq_err rc = rq_vfs_remove(l->region->env.vfs, p->path, NULL);
            (void)rc;
        }
    }
}

/* --- 5, 6: commit ----------------------------------------------------------------------------- */

/* token */
static void publish(rq_region *r, void *arg)
{
    loading *l = arg;
    /* Cells that do not get this load's number keep the sequence ids they were written with: later
     * writes must have higher ones. */
    for (size_t i = 0; i < l->what->file_count; i++) {
        const rq_store_file *f = &l->parts[i].file;
        uint64_t highest = rq_hfile_reader_info(f->reader)->max_memstore_ts;
        if (f->bulk_loaded || f->max_seqid > highest) highest = f->max_seqid;
        if (highest > r->staged_seqid) r->staged_seqid = highest;
    }
    r->bulk_loads++;
    l->visible_at = ++r->staged_seqid;
    l->lsn = r->staged_lsn;
    for (size_t i = 0; i < l->target_count; i++) {
        target *t = &l->targets[i];
        for (size_t j = 0; j < t->count; j++)
            t->files[j].visible_from = l->visible_at;
        rq_store_publish(t->store->store, t->next, NULL, 0, NULL, 0, t->files, t->count);
        t->next = NULL;
    }
    if (l->event.payload.len > 0) rq__bulk_event_stage(r, &l->event);
}

static rq_err prepare_versions(loading *l)
{
    rq_err rc = RQ_OK;
    rq_epoch_member pin;
    rq_epoch_pin(l->region->env.epoch, &pin);
    for (size_t i = 0; i < l->target_count && rc == RQ_OK; i++)
        rc = rq_store_version_prepare_for(l->targets[i].store->store, l->targets[i].count,
                                          &l->targets[i].next);
    rq_epoch_unpin(l->region->env.epoch, &pin);
    return rc;
}

static rq_err commit(loading *l, rq_error *why)
{
    rq_region *r = l->region;
    size_t n = l->what->file_count;
    rq__store_change *changes = rq_arena_calloc(&l->arena, n, sizeof *changes);
    if (changes == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < n; i++)
        changes[i] = (rq__store_change){.store = l->parts[i].store, .added = &l->parts[i].file};
    rq__gate_enter(&r->commit_gate, r->env.executor);
    rq_err rc = prepare_versions(l);
    if (rc == RQ_OK) rc = rq__region_commit(r, changes, n, why);
    if (rc == RQ_OK) rq__region_with_token(r, publish, l);
    rq__gate_leave(&r->commit_gate, r->env.executor);
    return rc == RQ_OK ? RQ_OK : rq_fail(why, rc, "%s", rq_err_text(rc));
}

/* --- 7, 8, 9: afterwards ------------------------------------------------------------------------- */

static void remove_sources(const loading *l)
{
    for (size_t i = 0; i < l->what->file_count; i++) {
        const part *p = &l->parts[i];
        const rq_bulk_file *f = p->source;
        rq_error own = {0};
        /* HBase, too, copies from another file system and leaves the source in place. */
        if (p->linked && rq_vfs_remove_file(f->source, f->path, &p->id, &own) != RQ_OK)
            rq_log_write_limited(
                l->region->env.log, &l->region->engine->bulk_lines, RQ_LOG_WARN, "region",
                "region %s: file %s was loaded, but its source cannot be removed: %s",
                l->region->info.encoded, f->name, own.message);
    }
}

static rq_err make_visible(loading *l, rq_error *why)
{
    rq_region *r = l->region;
    if (l->event.payload.len > 0) {
        RQ_TRY(rq__bulk_event_finish(&l->event, r, why));
        l->visible_at = l->event.number;
        l->lsn = l->event.lsn;
    }
    if (l->lsn != 0) {
        rq_err rc;
        do /* the files are loaded: an error now would make the client retry */
            rc = rq_wal_wait_blocking(r->engine->wal, l->lsn, true);
        while (rc == RQ_E_NO_SPACE && !rq_region_is_closing(r));
        if (rc != RQ_OK) return rq_fail(why, rc, "the write-ahead log failed: %s", rq_err_text(rc));
    }
    rq__region_raise_read_point(r, l->visible_at);
    return RQ_OK;
}

static rq_err run(loading *l, bool *ret_loaded, rq_error *why)
{
    rq_region *r = l->region;
    bool fits;
    RQ_TRY(check_files(l, &fits, why));
    *ret_loaded = fits;
    if (!fits || l->what->file_count == 0) return RQ_OK;
    if (l->what->copy) RQ_TRY(begin_copying(l, why));
    rq__region_removes_names(r);
    RQ_TRY(rq__region_mark_in_use(r, why));
    if (takes_number(l)) rq__region_with_token(r, take_number, l);
    rq_err rc = place_files(l, why);
    if (rc == RQ_OK) rc = describe(l, why);
    if (rc == RQ_OK) rc = commit(l, why);
    if (rc != RQ_OK) {
        take_back(l);
        return rc;
    }
    for (size_t i = 0; i < l->target_count && r->engine->bulk_compact; i++)
        rq__store_request_compaction(l->targets[i].store, RQ__WANT_MINOR);
    /* If the log fails now, the region fails with it. The files are loaded and the sources stay:
     * the client gets an error and may load them again. */
    RQ_TRY(make_visible(l, why));
    remove_sources(l);
    return RQ_OK;
}

rq_err rq_region_bulk_load(rq_region *r, const rq_bulk_load *what, bool *ret_loaded, rq_error *why)
{
    *ret_loaded = false;
    if (r->schema->is_system) /* the cells of a file bypass the checks of writes */
        return rq_fail(why, RQ_E_DO_NOT_RETRY, "%.*s does not accept bulk loads",
                       (int)r->schema->name.len, (const char *)r->schema->name.ptr);
    if (!rq__region_enter(r)) return rq__region_not_serving(r, why);
    loading l = {.region = r, .what = what};
    l.parts = rq_arena_calloc(&l.arena, what->file_count + 1, sizeof *l.parts);
    l.targets = rq_arena_calloc(&l.arena, what->file_count + 1, sizeof *l.targets);
    rq_err rc = l.parts == NULL || l.targets == NULL ? rq_no_memory(why) : RQ_OK;
    for (size_t i = 0; i < what->file_count && rc == RQ_OK; i++)
        l.parts[i].source = &what->files[i];
    if (rc == RQ_OK) rc = run(&l, ret_loaded, why);
    if (rc != RQ_OK) *ret_loaded = false;
    if (l.copied.is_listed) rq__region_with_token(r, unlist_copied, &l.copied);
    atomic_fetch_add_explicit(&r->write_requests, 1, memory_order_relaxed);
    rq_buf_clear(&l.event.payload);
    rq_arena_clear(&l.arena);
    rq__region_leave(r);
    return rc;
}
