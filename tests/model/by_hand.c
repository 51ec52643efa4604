/* SPDX-License-Identifier: Apache-2.0 */
/* See by_hand.h. */
#include "by_hand.h"

#include "hfile/writer.h"

#include <stdio.h>
#include <stdlib.h>

static void must(rq_err rc, const rq_error *why)
{
    if (rc == RQ_OK) return;
    fprintf(stderr, "by_hand: %s: %s\n", rq_err_name(rc), why != NULL ? why->message : "");
    abort();
}

/* --- the environment -------------------------------------------------------------------------- */
static by_hand *world_of(rq_executor *ex)
{
    return RQ_CONTAINER_OF(ex, by_hand, executor);
}

static uint64_t now_ns(rq_executor *ex)
{
    world_of(ex)->clock_looks++;
    return world_of(ex)->now_ns += 1000;
}

static int64_t now_ms(rq_executor *ex)
{
    return world_of(ex)->now_ms;
}

static uint64_t random_bits(rq_executor *ex)
{
    return rq_random_next(&world_of(ex)->random);
}

void by_hand_init(by_hand *w, uint64_t seed, const rq_family_schema *families, size_t count,
                  rq_cell_order order, uint64_t cache_bytes)
{
    memset(w, 0, sizeof(*w));
    rq_random_seed(&w->random, seed);
    memory_vfs_init(&w->vfs, seed + 1);
    rq_arena_init(&w->arena);
    must(rq_epoch_new(&w->epoch), NULL);
    if (cache_bytes > 0) must(rq_block_cache_new(cache_bytes, &w->cache), NULL);
    w->executor = (rq_executor){.now_ns = now_ns, .now_ms = now_ms, .random = random_bits};
    w->env = (rq_env){.vfs = &w->vfs.base, .executor = &w->executor, .epoch = w->epoch};
    w->now_ms = 10000;
    w->store_count = count;
    for (size_t i = 0; i < count; i++) {
        rq_store *s = &w->stores[i];
        s->schema = families[i];
        s->order = order;
        s->caching.data_on_read = families[i].block_cache;
        s->world = w;
        s->version.snapshots = s->snapshots;
        s->version.files = s->files;
        must(rq_segment_new(order, &s->version.active), NULL);
    }
    w->region.world = w;
    w->region.refs = 1;
    rq_error why = {0};
    must(rq_region_info_make(&w->arena, RQ_SLICE_LIT("default"), RQ_SLICE_LIT("t"), (rq_slice){0},
                             (rq_slice){0}, 1, 0, &w->region.info),
         &why);
}

void by_hand_clear(by_hand *w)
{
    for (size_t i = 0; i < w->store_count; i++) {
        rq_store_version *v = &w->stores[i].version;
        rq_segment_unref(v->active);
        for (size_t k = 0; k < v->snapshot_count; k++)
            rq_segment_unref(v->snapshots[k]);
        for (size_t k = 0; k < v->file_count; k++)
            rq_hfile_reader_unref(v->files[k].reader);
    }
    RQ_ASSERT(w->region.refs == 1 && w->region.open_count == 0);
    rq_block_cache_free(w->cache);
    memory_vfs_clear(&w->vfs);
    rq_epoch_free(w->epoch);
    rq_arena_clear(&w->arena);
}

/* --- what readers call of a store ------------------------------------------------------------- */
const rq_store_version *rq_store_version_now(const rq_store *s)
{
    return &s->version;
}

const rq_family_schema *rq_store_schema(const rq_store *s)
{
    return &s->schema;
}

const rq_cache_options *rq__store_cache_options(const rq_store *s)
{
    return &s->caching;
}

const rq_mob_options *rq__store_mob(const rq_store *s)
{
    (void)s;
    return NULL;
}

rq_cell_order rq_store_order(const rq_store *s)
{
    return s->order;
}

const rq_env *rq_store_env(const rq_store *s)
{
    return &s->world->env;
}

struct rq_log_limit *rq__store_damage_lines(const rq_store *s)
{
    return &s->world->damage;
}

/* --- what readers call of a region ------------------------------------------------------------ */
uint64_t rq__region_read_point_acquire(rq_region *r, uint64_t read_point)
{
    if (read_point == 0) read_point = r->read_point;
    RQ_ASSERT(r->open_count < RQ_ARRAY_LEN(r->open_points));
    r->open_points[r->open_count++] = read_point;
    return read_point;
}

void rq__region_read_point_release(rq_region *r, uint64_t read_point)
{
    for (size_t i = 0; i < r->open_count; i++) {
        if (r->open_points[i] != read_point) continue;
        r->open_points[i] = r->open_points[--r->open_count];
        return;
    }
    RQ_ASSERT(false && "a read point that was not acquired");
}

uint64_t by_hand_smallest_read_point(const by_hand *w)
{
    uint64_t smallest = w->region.read_point;
    for (size_t i = 0; i < w->region.open_count; i++) {
        if (w->region.open_points[i] < smallest) smallest = w->region.open_points[i];
    }
    return smallest;
}

size_t rq_region_store_count(const rq_region *r)
{
    return r->world->store_count;
}

rq_store *rq_region_store_at(const rq_region *r, size_t i)
{
    return &r->world->stores[i];
}

const rq_region_info *rq_region_get_info(const rq_region *r)
{
    return &r->info;
}

bool rq_region_is_closing(const rq_region *r)
{
    return r->closing;
}

void rq__region_count_rows(rq_region *r, uint64_t returned, uint64_t filtered)
{
    (void)r;
    (void)returned;
    (void)filtered;
}

rq_region *rq_region_ref(rq_region *r)
{
    r->refs++;
    return r;
}

void rq_region_unref(rq_region *r)
{
    r->refs--;
}

/* --- changes ---------------------------------------------------------------------------------- */
void by_hand_add(by_hand *w, size_t family, const rq_cell *cell)
{
    must(rq_segment_add(w->stores[family].version.active, cell), NULL);
    if (cell->seqid > w->region.read_point) w->region.read_point = cell->seqid;
}

bool by_hand_rotate(by_hand *w, size_t family)
{
    rq_store *s = &w->stores[family];
    rq_store_version *v = &s->version;
    if (rq_segment_cell_count(v->active) == 0) return false;
    RQ_ASSERT(v->snapshot_count < BY_HAND_FILES_MAX);
    memmove(&v->snapshots[1], &v->snapshots[0], v->snapshot_count * sizeof(v->snapshots[0]));
    v->snapshots[0] = v->active;
    v->snapshot_count++;
    must(rq_segment_new(s->order, &v->active), NULL);
    return true;
}

static rq_hfile_options file_options(const rq_store *s)
{
    rq_hfile_options o = rq_hfile_options_default();
    o.list_qualifiers = true;
    o.block_bytes = s->schema.block_bytes;
    o.index_chunk_bytes = 256;
    o.index_entries_min = 2;
    o.bloom = s->schema.bloom;
    o.bloom_prefix_len = s->schema.bloom_prefix_len;
    o.encoding = s->schema.encoding;
    o.compress_tags = s->schema.compress_tags;
    o.order = s->order;
    o.create_time_ms = s->world->now_ms;
    return o;
}

/* Writes the cells that the scanner returns; without cells no file is made. */
static bool write_file(rq_store *s, const rq_rewrite_options *o, uint64_t max_seqid,
                       cell_set *written, rq_store_file *ret)
{
    by_hand *w = s->world;
    rq_error why = {0};
    char name[64];
    snprintf(name, sizeof(name), "%032x", ++w->next_file);
    rq_rewrite_scanner *in = NULL;
    must(rq__rewrite_scanner_open(o, &in, &why), &why);
    rq_hfile_options fo = file_options(s);
    rq_hfile_writer *out = NULL;
    must(rq_hfile_writer_open(w->env.vfs, name, &fo, &out, &why), &why);
    must(rq_hfile_writer_set_store_info(out, max_seqid, o->major, NULL, 0, &why), &why);
    rq_cell cell;
    rq_err rc;
    size_t count = 0;
    while ((rc = rq__rewrite_scanner_next(in, &cell, &why)) == RQ_OK) {
        must(rq_hfile_writer_append(out, &cell, &why), &why);
        if (written != NULL) cell_set_add(written, &cell);
        count++;
    }
    if (rc != RQ_E_END) must(rc, &why);
    if (count > 0) must(rq_hfile_writer_finish(out, NULL, &why), &why);
    rq_hfile_writer_close(out);
    rq__rewrite_scanner_close(in);
    if (count == 0) return false;

    rq_hfile_reader *reader;
    must(rq_hfile_reader_open(w->env.vfs, name, w->cache, false, &reader, &why), &why);
    const rq_hfile_info *info = rq_hfile_reader_info(reader);
    *ret = (rq_store_file){
        .reader = reader,
        .size_bytes = info->size_bytes,
        .max_seqid = info->max_seqid,
        .entry_count = info->entry_count,
        .min_ts = info->min_ts,
        .max_ts = info->max_ts,
        .major = info->major,
    };
    memcpy(ret->name, name, strlen(name) + 1);
    return true;
}

void by_hand_flush(by_hand *w, size_t family, uint64_t smallest_read_point, cell_set *written)
{
    rq_store *s = &w->stores[family];
    rq_store_version *v = &s->version;
    if (v->snapshot_count == 0) return;
    uint64_t max = 0;
    for (size_t i = 0; i < v->snapshot_count; i++) {
        uint64_t lo, hi;
        rq_segment_seqid_range(v->snapshots[i], &lo, &hi);
        if (hi > max) max = hi;
    }
    rq_rewrite_options o = {
        .store = s,
        .segments = v->snapshots,
        .segment_count = v->snapshot_count,
        .is_flush = true,
        .smallest_read_point = smallest_read_point,
        .max_seqid_inclusive = max,
        .now_ms = w->now_ms,
    };
    rq_store_file file;
    bool any = write_file(s, &o, max, written, &file);
    for (size_t i = 0; i < v->snapshot_count; i++)
        rq_segment_unref(v->snapshots[i]);
    v->snapshot_count = 0;
    RQ_ASSERT(v->file_count < BY_HAND_FILES_MAX);
    if (any) v->files[v->file_count++] = file;
}

/* The same value as in rq_store_files_take. */
static uint64_t unflushed_from(const rq_store_version *v)
{
    uint64_t from, min, max;
    rq_segment_seqid_range(v->active, &from, &max);
    for (size_t i = 0; i < v->snapshot_count; i++) {
        rq_segment_seqid_range(v->snapshots[i], &min, &max);
        if (min < from) from = min;
    }
    return from == UINT64_MAX ? 0 : from;
}

void by_hand_compact(by_hand *w, size_t family, size_t first, size_t count,
                     uint64_t smallest_read_point, cell_set *written)
{
    rq_store *s = &w->stores[family];
    rq_store_version *v = &s->version;
    rq_rewrite_options o = {
        .store = s,
        .files = &v->files[first],
        .file_count = count,
        .major = count == v->file_count,
        .unflushed_from = unflushed_from(v),
        .smallest_read_point = smallest_read_point,
        .now_ms = w->now_ms + 1, /* so that files made at this time count as old */
        .time_to_purge_deletes_ms = w->purge_ms,
    };
    uint64_t max = 0;
    for (size_t i = first; i < first + count; i++)
        if (v->files[i].max_seqid > max) max = v->files[i].max_seqid;
    rq_store_file file;
    bool any = write_file(s, &o, max, written, &file);
    for (size_t i = first; i < first + count; i++)
        rq_hfile_reader_unref(v->files[i].reader);
    size_t kept = any ? 1 : 0;
    memmove(&v->files[first + kept], &v->files[first + count],
            (v->file_count - first - count) * sizeof(v->files[0]));
    if (any) v->files[first] = file;
    v->file_count = v->file_count - count + kept;
}

void by_hand_bulk_load(by_hand *w, size_t family, const cell_set *cells, uint64_t seqid)
{
    rq_store *s = &w->stores[family];
    rq_error why = {0};
    char name[64];
    snprintf(name, sizeof(name), "%032x", ++w->next_file);
    rq_hfile_options o = file_options(s);
    o.include_mvcc = false;
    rq_hfile_writer *out = NULL;
    must(rq_hfile_writer_open(w->env.vfs, name, &o, &out, &why), &why);
    for (size_t i = 0; i < cells->count; i++)
        must(rq_hfile_writer_append(out, &cells->items[i], &why), &why);
    must(rq_hfile_writer_finish(out, NULL, &why), &why);
    rq_hfile_writer_close(out);
    rq_hfile_reader *reader;
    must(rq_hfile_reader_open(w->env.vfs, name, w->cache, false, &reader, &why), &why);
    const rq_hfile_info *info = rq_hfile_reader_info(reader);
    rq_store_version *v = &s->version;
    RQ_ASSERT(v->file_count < BY_HAND_FILES_MAX);
    v->files[v->file_count] = (rq_store_file){
        .reader = reader,
        .size_bytes = info->size_bytes,
        .max_seqid = seqid,
        .entry_count = info->entry_count,
        .min_ts = INT64_MIN,
        .max_ts = INT64_MAX,
        .bulk_loaded = true,
    };
    memcpy(v->files[v->file_count].name, name, strlen(name) + 1);
    v->file_count++;
    if (seqid > w->region.read_point) w->region.read_point = seqid;
}
