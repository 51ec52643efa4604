/* SPDX-License-Identifier: Apache-2.0 */
/* The fuzzer's knowledge of the server; see world.h. */
#include "world.h"

#include "proto/client.pb-c.h"

#include <stdio.h>

const char *world_namespace(unsigned n)
{
    return n < WORLD_TABLES - 2 ? "default" : "fns";
}

const char *world_qualifier(unsigned n)
{
    static const char *const names[WORLD_TABLES] = {"fz0", "fz1", "fz2", "fz3", "fz4", "fz5"};
    return names[n % WORLD_TABLES];
}

/* ---- regions */

void world_clear(world *w)
{
    for (size_t i = 0; i < w->region_count; i++) {
        rq_buf_clear(&w->regions[i].name);
        rq_buf_clear(&w->regions[i].start);
        rq_buf_clear(&w->regions[i].end);
    }
    free(w->regions);
    w->regions = NULL;
    w->region_count = 0;
}

static bool is_text(ProtobufCBinaryData bytes, const char *text)
{
    return bytes.len == strlen(text) && memcmp(bytes.data, text, bytes.len) == 0;
}

/* Returns true if the region belongs to a table of the fuzzer's. */
static bool read_info(const Pb__RegionInfo *info, world_region *ret)
{
    for (unsigned n = 0; n < WORLD_TABLES; n++) {
        if (!is_text(info->table_name->qualifier, world_qualifier(n))) continue;
        ret->table = n;
        ret->id = info->region_id;
        put(&ret->start, info->start_key.data, info->start_key.len);
        put(&ret->end, info->end_key.data, info->end_key.len);
        return true;
    }
    return false;
}

static void add_region(world *w, const Pb__Cell *cell)
{
    static const char magic[] = {'P', 'B', 'U', 'F'};
    if (!is_text(cell->qualifier, "regioninfo") || cell->row.len < ENCODED_LEN + 2 ||
        cell->value.len < sizeof magic || memcmp(cell->value.data, magic, sizeof magic) != 0)
        return;
    Pb__RegionInfo *info = pb__region_info__unpack(NULL, cell->value.len - sizeof magic,
                                                   cell->value.data + sizeof magic);
    if (info == NULL) return;
    world_region region = {.table = 0};
    if (read_info(info, &region)) {
        put(&region.name, cell->row.data, cell->row.len);
        memcpy(region.encoded, cell->row.data + cell->row.len - ENCODED_LEN - 1, ENCODED_LEN);
        w->regions = realloc(w->regions, (w->region_count + 1) * sizeof *w->regions);
        RQ_ASSERT(w->regions != NULL);
        w->regions[w->region_count++] = region;
    }
    pb__region_info__free_unpacked(info, NULL);
}

void world_learn_regions(world *w, rq_slice scan_response)
{
    Pb__ScanResponse *scan = pb__scan_response__unpack(NULL, scan_response.len, scan_response.ptr);
    if (scan == NULL) return;
    world_clear(w);
    for (size_t i = 0; i < scan->n_results; i++)
        for (size_t k = 0; k < scan->results[i]->n_cell; k++)
            add_region(w, scan->results[i]->cell[k]);
    pb__scan_response__free_unpacked(scan, NULL);
}

static bool holds(const world_region *region, rq_slice row)
{
    return rq_slice_compare(rq_buf_slice(&region->start), row) <= 0 &&
           (region->end.len == 0 || rq_slice_compare(row, rq_buf_slice(&region->end)) < 0);
}

const world_region *world_region_of(const world *w, unsigned table, rq_slice row)
{
    const world_region *any = NULL;
    for (size_t i = 0; i < w->region_count; i++) {
        const world_region *region = &w->regions[i];
        if (region->table != table) continue;
        if (holds(region, row)) return region;
        any = region;
    }
    if (any == NULL && w->region_count > 0) any = &w->regions[0];
    return any;
}

/* ---- numbers */

void world_learn_scanner(world *w, uint64_t request, uint64_t id)
{
    w->scanners[request % WORLD_SCANNERS].request = request;
    w->scanners[request % WORLD_SCANNERS].id = id;
}

uint64_t world_scanner(const world *w, uint64_t request)
{
    size_t at = request % WORLD_SCANNERS;
    return w->scanners[at].request == request ? w->scanners[at].id : 0;
}

void world_learn_procedure(world *w, uint64_t id)
{
    w->procedures[w->procedure_count++ % WORLD_PROCEDURES] = id;
}
