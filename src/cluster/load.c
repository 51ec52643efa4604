/* SPDX-License-Identifier: Apache-2.0 */
/* See load.h. */
#include "cluster/load.h"

#include "cluster/wire_priv.h"

#include "base/machine.h"

/* --- a region --------------------------------------------------------------------------------- */

static uint32_t megabytes(uint64_t bytes)
{
    return (uint32_t)(bytes >> 20);
}

/* HBase rounds the size of a non-empty store up to one MB; clients compute split sizes from it. */
static uint32_t megabytes_up(uint64_t bytes)
{
    return bytes > 0 && bytes < 1 << 20 ? 1 : megabytes(bytes);
}

/* HBASE: HRegionServer.roundSize */
static uint32_t kilobytes_up(uint64_t bytes)
{
    uint64_t kb = bytes > 0 && bytes < 1024 ? 1 : bytes >> 10;
    return kb < INT32_MAX ? (uint32_t)kb : INT32_MAX;
}

static Pb__RegionSpecifier *specifier(rq_arena *arena, rq_slice name)
{
    Pb__RegionSpecifier *s = rq_arena_alloc(arena, sizeof *s);
    if (s == NULL) return NULL;
    pb__region_specifier__init(s);
    s->type = PB__REGION_SPECIFIER__REGION_SPECIFIER_TYPE__REGION_NAME;
    s->value = rq__wire_binary(name);
    return s;
}

static void put_sizes(const rq_region_load *load, Pb__RegionLoad *m)
{
    m->has_store_uncompressed_size_mb = m->has_region_size_mb = 1;
    m->store_uncompressed_size_mb = megabytes(load->storefile_uncompressed_bytes);
    m->region_size_mb = megabytes_up(load->hfile_bytes); /* HBASE: HStore.getHFilesSize */
    m->has_storefile_index_size_kb = m->has_root_index_size_kb = 1;
    m->has_total_static_index_size_kb = m->has_total_static_bloom_size_kb = 1;
    m->storefile_index_size_kb = m->root_index_size_kb = kilobytes_up(load->root_index_bytes);
    m->total_static_index_size_kb = kilobytes_up(load->index_bytes);
    m->total_static_bloom_size_kb = kilobytes_up(load->bloom_bytes);
}

Pb__RegionLoad *rq_reported_load_message(rq_arena *arena, const rq_region_info *info,
                                         const rq_region_load *load)
{
    Pb__RegionLoad *m = rq_arena_alloc(arena, sizeof *m);
    if (m == NULL) return NULL;
    pb__region_load__init(m);
    m->region_specifier = specifier(arena, info->name);
    if (m->region_specifier == NULL) return NULL;
    m->has_stores = m->has_storefiles = m->has_storefile_size_mb = m->has_mem_store_size_mb = 1;
    m->stores = load->stores;
    m->storefiles = load->storefiles;
    m->storefile_size_mb = megabytes_up(load->storefile_bytes);
    m->mem_store_size_mb = megabytes_up(load->memstore_bytes);
    m->has_read_requests_count = m->has_write_requests_count = m->has_complete_sequence_id = 1;
    if (info->replica_id == 0) { /* requests to a replica's name are counted under it */
        m->read_requests_count = load->read_requests;
        m->write_requests_count = load->write_requests;
    }
    m->complete_sequence_id = load->max_flushed_seqid;
    m->has_filtered_read_requests_count = 1;
    if (info->replica_id == 0) m->filtered_read_requests_count = load->filtered_read_requests;
    put_sizes(load, m);
    m->has_total_compacting_kvs = m->has_current_compacted_kvs = 1;
    m->total_compacting_kvs = load->compacting_cells;
    m->current_compacted_kvs = load->compacted_cells;
    m->has_last_major_compaction_ts = 1;
    m->last_major_compaction_ts = (uint64_t)load->last_major_compaction_ms;
    m->has_compaction_state = 1;
    m->compaction_state = (Pb__RegionLoad__CompactionState)load->compaction_state;
    return m;
}

void rq__reported_load(const Pb__RegionLoad *m, rq_region_load *ret)
{
    *ret = (rq_region_load){
        .stores = m->stores,
        .storefiles = m->storefiles,
        .storefile_bytes = (uint64_t)m->storefile_size_mb << 20,
        .storefile_uncompressed_bytes = (uint64_t)m->store_uncompressed_size_mb << 20,
        .hfile_bytes = (uint64_t)m->region_size_mb << 20,
        .memstore_bytes = (uint64_t)m->mem_store_size_mb << 20,
        .root_index_bytes = (uint64_t)m->root_index_size_kb << 10,
        .index_bytes = (uint64_t)m->total_static_index_size_kb << 10,
        .bloom_bytes = (uint64_t)m->total_static_bloom_size_kb << 10,
        .read_requests = m->read_requests_count,
        .write_requests = m->write_requests_count,
        .filtered_read_requests = m->filtered_read_requests_count,
        .compacting_cells = m->total_compacting_kvs,
        .compacted_cells = m->current_compacted_kvs,
        .max_flushed_seqid = m->complete_sequence_id,
        .last_major_compaction_ms = (int64_t)m->last_major_compaction_ts,
        .compaction_state = (int)m->compaction_state & 3,
    };
}

Pb__RegionLoad *rq_region_load_message(rq_arena *arena, const rq_region_info *info,
                                       const rq_region *r)
{
    rq_region_load load;
    rq_region_get_load(r, &load);
    Pb__RegionLoad *m = rq_reported_load_message(arena, info, &load);
    if (m == NULL) return NULL;
    m->has_data_locality = 1;
    m->data_locality = 1.0f;
    m->has_current_region_cached_ratio = 1;
    if (load.storefile_bytes > 0)
        m->current_region_cached_ratio = (float)load.cached_bytes / (float)load.storefile_bytes;
    /* Blocks are larger in memory than in the file, so the ratio may exceed 1. */
    if (m->current_region_cached_ratio > 1) m->current_region_cached_ratio = 1;
    return m;
}

/* --- replication ------------------------------------------------------------------------------- */

Pb__ReplicationLoadSink *rq_sink_load_message(rq_arena *arena, const rq_sink_load *load)
{
    Pb__ReplicationLoadSink *m = rq_arena_alloc(arena, sizeof *m);
    if (m == NULL) return NULL;
    pb__replication_load_sink__init(m);
    m->ageoflastappliedop = load->age_ms;
    m->timestampsoflastappliedop = (uint64_t)load->applied_ms;
    m->has_timestampstarted = m->has_totalopsprocessed = 1;
    m->timestampstarted = (uint64_t)load->started_ms;
    m->totalopsprocessed = load->entries;
    return m;
}

bool rq__reported_sink(const Pb__ReplicationLoadSink *m, rq_sink_load *ret)
{
    if (m == NULL) return false;
    *ret = (rq_sink_load){.entries = m->totalopsprocessed,
                          .age_ms = m->ageoflastappliedop,
                          .started_ms = (int64_t)m->timestampstarted,
                          .applied_ms = (int64_t)m->timestampsoflastappliedop};
    return true;
}

Pb__ReplicationLoadSource *rq_source_load_message(rq_arena *arena, const rq_source_load *load)
{
    Pb__ReplicationLoadSource *m = rq_arena_alloc(arena, sizeof *m);
    if (m == NULL) return NULL;
    pb__replication_load_source__init(m);
    m->peerid = (char *)(uintptr_t)load->peer;
    m->queueid = (char *)(uintptr_t)load->queue;
    m->ageoflastshippedop = load->age_ms;
    m->sizeoflogqueue = load->log_queue;
    m->timestampoflastshippedop = (uint64_t)load->shipped_at_ms;
    m->replicationlag = load->lag_ms;
    m->has_timestampofnexttoreplicate = m->has_recovered = m->has_running = 1;
    m->has_editssincerestart = m->has_editsread = m->has_opsshipped = 1;
    m->timestampofnexttoreplicate = (uint64_t)load->next_ms;
    m->recovered = load->recovered;
    m->running = load->running;
    m->editssincerestart = load->has_edits;
    m->editsread = load->edits_read;
    m->opsshipped = load->shipped;
    return m;
}

rq_err rq__reported_source(const Pb__ReplicationLoadSource *m, rq_arena *arena, rq_source_load *ret)
{
    const char *queue = m->queueid == NULL ? m->peerid : m->queueid;
    *ret = (rq_source_load){.peer = rq_arena_cstr(arena, rq_slice_cstr(m->peerid)),
                            .queue = rq_arena_cstr(arena, rq_slice_cstr(queue)),
                            .age_ms = m->ageoflastshippedop,
                            .log_queue = m->sizeoflogqueue,
                            .shipped_at_ms = (int64_t)m->timestampoflastshippedop,
                            .next_ms = (int64_t)m->timestampofnexttoreplicate,
                            .lag_ms = m->replicationlag,
                            .recovered = m->recovered,
                            .running = m->running,
                            .has_edits = m->editssincerestart,
                            .edits_read = m->editsread,
                            .shipped = m->opsshipped};
    return ret->peer == NULL || ret->queue == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

/* --- a server --------------------------------------------------------------------------------- */

typedef struct collecting {
    rq_arena *arena;
    Pb__RegionLoad **list;
    size_t count, cap;
} collecting;

static rq_err add_region(void *ctx, const rq_region *r)
{
    collecting *c = ctx;
    if (c->count == c->cap) {
        size_t cap = c->cap == 0 ? 64 : 2 * c->cap;
        Pb__RegionLoad **more = rq_arena_alloc(c->arena, cap * sizeof(Pb__RegionLoad *));
        if (more == NULL) return RQ_E_NO_MEMORY;
        for (size_t i = 0; i < c->count; i++)
            more[i] = c->list[i];
        c->list = more;
        c->cap = cap;
    }
    const rq_region_info *info = rq_region_get_info(r);
    Pb__RegionLoad *m = rq_region_load_message(c->arena, info, r);
    if (m == NULL) return RQ_E_NO_MEMORY;
    rq_slice name =
        rq_arena_copy(c->arena, info->name); /* the region may end before the message does */
    if (name.ptr == NULL) return RQ_E_NO_MEMORY;
    m->region_specifier->value = rq__wire_binary(name);
    c->list[c->count++] = m;
    return RQ_OK;
}

static void add_requests(Pb__ServerLoad *m, rq_engine *engine, rq_load_period *period,
                         int64_t now_ms)
{
    rq_request_counts past; /* of closed regions */
    rq_engine_past_counts(engine, &past);
    uint64_t reads = past.reads, writes = past.writes;
    for (size_t i = 0; i < m->n_region_loads; i++) {
        reads += m->region_loads[i]->read_requests_count;
        writes += m->region_loads[i]->write_requests_count;
    }
    m->has_read_requests_count = m->has_write_requests_count = true;
    m->read_requests_count = reads;
    m->write_requests_count = writes;
    uint64_t total = reads + writes;
    int64_t ms = now_ms - period->begin_ms;
    bool grown = period->begin_ms > 0 && ms > 0 && total > period->requests;
    m->has_number_of_requests = m->has_total_number_of_requests = true;
    m->number_of_requests = grown ? (total - period->requests) * 1000 / (uint64_t)ms : 0;
    m->total_number_of_requests = total;
    m->has_report_start_time = m->has_report_end_time = true;
    m->report_start_time = (uint64_t)(period->begin_ms > 0 ? period->begin_ms : now_ms);
    m->report_end_time = (uint64_t)now_ms;
    *period = (rq_load_period){.begin_ms = now_ms, .requests = total};
}

rq_err rq__server_load_message(rq_host *host, uint16_t info_port, rq_load_period *period,
                               rq_arena *arena, Pb__ServerLoad **ret)
{
    rq_engine *engine = rq_host_engine(host);
    rq_executor *ex = rq_engine_env(engine)->executor;
    collecting c = {.arena = arena};
    rq_engine_stats stats;
    Pb__ServerLoad *m = rq_arena_alloc(arena, sizeof *m);
    if (m == NULL) return RQ_E_NO_MEMORY;
    RQ_TRY(rq_host_each(host, add_region, &c));
    pb__server_load__init(m);
    m->region_loads = c.list;
    m->n_region_loads = c.count;
    add_requests(m, engine, period, ex->now_ms(ex));
    rq_engine_get_stats(engine, &stats);
    m->has_used_heap_mb = m->has_max_heap_mb = m->has_info_server_port = true;
    m->used_heap_mb = (uint32_t)(rq_machine_resident_bytes() >> 20);
    m->max_heap_mb = (uint32_t)((stats.memstore_bytes_max + stats.block_cache_bytes_max) >> 20);
    m->info_server_port = info_port == 0 ? UINT32_MAX : info_port; /* HBASE: -1 without pages */
    *ret = m;
    return RQ_OK;
}
