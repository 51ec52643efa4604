/* SPDX-License-Identifier: Apache-2.0 */
/* Bulk loads among replicated entries: each event (BulkLoadDescriptor) is kept until the writes of
 * the request are done, and then becomes an op (ops/bulk_replicated.h), one after the other. HBASE:
 * ReplicationSink.buildBulkLoadHFileMap, HFileReplicator. */
#include "service/replicate_priv.h"

#include "base/pb_arena.h"

#include "proto/wal.pb-c.h"

#include <string.h>

#define PATH_LEN_MAX 4096 /* PATH_MAX */
#define SEPARATORS 8

struct rq__sink_load {
    rq__sink_load *next;
    Pb__BulkLoadDescriptor *event;
    rq_slice table;
    rq_slice clusters;
};

rq_err rq__sink_add_load(rq__sink_job *j, rq_slice table, rq_slice bytes)
{
    rq_arena *arena = j->batch.read.op.arena;
    rq_pb_arena memory;
    rq_pb_arena_init(&memory, arena);
    Pb__BulkLoadDescriptor *event =
        pb__bulk_load_descriptor__unpack(&memory.allocator, bytes.len, bytes.ptr);
    if (event == NULL)
        return memory.exhausted ? RQ_E_NO_MEMORY
                                : rq_fail(&j->batch.read.op.why, RQ_E_DO_NOT_RETRY,
                                          "a bulk load's description is malformed");
    if (event->has_replicate && !event->replicate) return RQ_OK;
    rq__sink_load *load = rq_arena_alloc(arena, sizeof *load);
    if (load == NULL) return RQ_E_NO_MEMORY;
    *load = (rq__sink_load){.event = event, .table = table, .clusters = j->batch.cluster_ids};
    *j->last_load = load;
    j->last_load = &load->next;
    return RQ_OK;
}

static size_t count_files(const Pb__BulkLoadDescriptor *event)
{
    size_t n = 0;
    for (size_t i = 0; i < event->n_stores; i++)
        n += event->stores[i]->n_store_file;
    return n;
}

/* FOLDER/ns/table/region/family/file; *ret NULL: the request names no such folder. The parts come from the
 * request, which could repeat a name of megabytes for each file. */
static rq_err path_of(rq__sink_job *j, const char *folder, const rq__sink_load *l,
                      const Pb__StoreDescriptor *store, const char *file, const char **ret)
{
    rq_slice ns;
    rq_slice qualifier;
    rq_slice region = rq__pb_slice(l->event->encoded_region_name);
    rq_slice family = rq__pb_slice(store->family_name);
    *ret = NULL;
    if (folder == NULL || rq_table_name_parse(l->table, &ns, &qualifier, NULL) != RQ_OK)
        return RQ_OK;
    if (strnlen(folder, PATH_LEN_MAX) + l->table.len + region.len + family.len +
            strnlen(file, PATH_LEN_MAX) >
        PATH_LEN_MAX - SEPARATORS)
        return rq_fail(&j->batch.read.op.why, RQ_E_DO_NOT_RETRY,
                       "a bulk load names a path of more than %d bytes", PATH_LEN_MAX);
    *ret = rq_arena_printf(j->batch.read.op.arena, "%s/%.*s/%.*s/%.*s/%.*s/%s", folder, (int)ns.len,
                           (const char *)ns.ptr, (int)qualifier.len, (const char *)qualifier.ptr,
                           (int)region.len, (const char *)region.ptr, (int)family.len,
                           (const char *)family.ptr, file);
    return *ret == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

static rq_err list_files(rq__sink_job *j, const rq__sink_load *l)
{
    const Pb__ReplicateWALEntryRequest *r = rq__sink_request(j);
    rq_arena *a = j->batch.read.op.arena;
    size_t count = count_files(l->event);
    rq_op_bulk_file *files = rq_arena_alloc(a, (count + 1) * sizeof *files);
    const char **archived = rq_arena_alloc(a, (count + 1) * sizeof *archived);
    size_t n = 0;
    if (files == NULL || archived == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < l->event->n_stores; i++) {
        const Pb__StoreDescriptor *s = l->event->stores[i];
        for (size_t k = 0; k < s->n_store_file; k++, n++) {
            const char *file = s->store_file[k], *path;
            RQ_TRY(path_of(j, r->sourcebasenamespacedirpath, l, s, file, &path));
            files[n] = (rq_op_bulk_file){rq__pb_slice(s->family_name), path == NULL ? file : path};
            RQ_TRY(path_of(j, r->sourcehfilearchivedirpath, l, s, file, &archived[n]));
        }
    }
    j->load.bulk.files = files;
    j->load.bulk.file_count = n;
    j->load.archived = archived;
    return RQ_OK;
}

static void loaded(rq_op *op)
{
    rq__sink_job *j = RQ_CONTAINER_OF(op, rq__sink_job, load.bulk.op);
    rq_sink *sink = rq__sink_counters(j);
    if (sink != NULL) atomic_fetch_add(&sink->bulk_files, j->load.loaded);
    if (sink != NULL) atomic_fetch_add(&sink->bulk_skipped, j->load.skipped);
    if (op->rc != RQ_OK) {
        rq__sink_end(j, op->rc, &op->why);
        return;
    }
    rq__sink_load_next(j);
}

void rq__sink_load_next(rq__sink_job *j)
{
    const rq__sink_load *l = j->loads;
    if (l == NULL) {
        rq__sink_end(j, RQ_OK, NULL);
        return;
    }
    j->loads = l->next;
    rq_call *call = rq__call_of_op(&j->batch.read.op);
    memset(&j->load, 0, sizeof j->load);
    rq__op_of_call(&j->load.bulk.op, RQ_OP_BULK_LOAD, rq__seat(j->services->client, call), call,
                   loaded);
    j->load.table = l->table;
    j->load.clusters = l->clusters;
    j->load.bulk.cluster_ids = (const char *const *)l->event->cluster_ids;
    j->load.bulk.cluster_id_count = l->event->n_cluster_ids;
    rq_err rc = list_files(j, l);
    if (rc == RQ_OK)
        rq_op_bulk_replicated_start(&j->load);
    else
        rq__sink_end(j, rc, rc == RQ_E_NO_MEMORY ? NULL : &j->batch.read.op.why);
}
