/* SPDX-License-Identifier: Apache-2.0 */
/* Files that HBase compacted but did not archive before it stopped. The output of a compaction
 * names its inputs (COMPACTION_EVENT_KEY: "PBUF", CompactionEventTracker); inputs that are still in
 * the folder contain cells that the compaction dropped, including deleted ones. HBase ignores them
 * when it opens a region (HBASE: StoreEngine.refreshStoreFilesInternal,
 * HStoreFile.getCompactedStoreFiles). We do the same if the folder determines the region's files,
 * and move them aside. */
#include "region/engine_priv.h"
#include "store/reference.h"

#include "base/pb_arena.h"
#include "proto/files.pb-c.h"

#include <stdlib.h>

static rq_err read_inputs(rq_slice event, const char *path, rq_arena *arena, rq_slice **ret,
                          size_t *ret_count, rq_error *why)
{
    if (event.len < 4 || memcmp(event.ptr, "PBUF", 4) != 0)
        return rq_fail(why, RQ_E_CORRUPT, "%s: COMPACTION_EVENT_KEY without its magic", path);
    rq_pb_arena memory;
    rq_pb_arena_init(&memory, arena);
    Pb__CompactionEventTracker *m =
        pb__compaction_event_tracker__unpack(&memory.allocator, event.len - 4, event.ptr + 4);
    if (m == NULL)
        return rq_fail(why, memory.exhausted ? RQ_E_NO_MEMORY : RQ_E_CORRUPT,
                       "%s: malformed COMPACTION_EVENT_KEY", path);
    size_t n = m->n_compacted_store_file;
    rq_slice *list = rq_arena_calloc(arena, n + 1, sizeof *list);
    if (list == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < n; i++)
        list[i] = rq_slice_of(m->compacted_store_file[i].data, m->compacted_store_file[i].len);
    *ret = list;
    *ret_count = n;
    return RQ_OK;
}

/* A file's name, and its place in the list of names. */
typedef struct named {
    const char *name;
    size_t at;
} named;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const named *)a)->name, ((const named *)b)->name);
}

static int to_name(const void *key, const void *item)
{
    return rq_slice_compare(*(const rq_slice *)key, rq_slice_cstr(((const named *)item)->name));
}

/* The names in order, for searches: the folder may have thousands of files. */
static named *sort(const char *const *names, size_t count, rq_arena *arena)
{
    named *list = rq_arena_alloc(arena, count * sizeof *list);
    if (list == NULL) return NULL;
    for (size_t i = 0; i < count; i++)
        list[i] = (named){names[i], i};
    qsort(list, count, sizeof *list, by_name);
    return list;
}

/* The files among `names` that some file in the folder replaced. */
static rq_err find_replaced(rq_vfs *vfs, const char *dir, const char *const *names, size_t count,
                            rq_arena *arena, bool *replaced, rq_error *why)
{
    const named *sorted = sort(names, count, arena);
    if (sorted == NULL) return rq_no_memory(why);
    for (size_t i = 0; i < count; i++) {
        const char *path = rq_arena_printf(arena, "%s/%s", dir, names[i]);
        rq_hfile_reader *reader;
        rq_slice event;
        rq_slice *inputs = NULL;
        size_t n = 0;
        rq_store_name parts;
        rq_store_name_parse(rq_slice_cstr(names[i]), &parts);
        /* The file it refers to could only have been compacted in another region's folder. */
        if (parts.is_reference || parts.is_link) continue;
        if (path == NULL) return rq_no_memory(why);
        RQ_TRY(rq_hfile_reader_open(vfs, path, NULL, false, &reader, why));
        rq_err rc = RQ_OK;
        if (rq_hfile_reader_file_info(reader, RQ_SLICE_LIT("COMPACTION_EVENT_KEY"), &event))
            rc = read_inputs(event, path, arena, &inputs, &n, why);
        rq_hfile_reader_unref(reader);
        if (rc != RQ_OK) return rc;
        for (size_t j = 0; j < n; j++) {
            const named *k = bsearch(&inputs[j], sorted, count, sizeof *sorted, to_name);
            if (k != NULL && k->at != i) replaced[k->at] = true;
        }
    }
    return RQ_OK;
}

rq_err rq__drop_compacted(rq_region *r, rq_slice family, const char *dir, rq_arena *arena,
                          const char **names, size_t *count, rq_error *why)
{
    if (*count < 2) return RQ_OK;
    bool *replaced = rq_arena_calloc(arena, *count, sizeof *replaced);
    if (replaced == NULL) return rq_no_memory(why);
    RQ_TRY(find_replaced(r->env.vfs, dir, names, *count, arena, replaced, why));
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        if (!replaced[i]) {
            names[kept++] = names[i];
            continue;
        }
        rq_log_info(r->env.log, "region",
                    "moved %s/%s to archive/: an earlier compaction has replaced it", dir,
                    names[i]);
        rq__region_removes_names(r);
        RQ_TRY(rq__archive_file(r->env.vfs, &r->info, family, names[i], why));
    }
    *count = kept;
    return RQ_OK;
}
