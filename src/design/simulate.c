/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan's keys over regions and servers, step by step.
 *
 * The different keys are sorted once; a region is a range of their ranks, a key's region is found by
 * binary search. A region that has grown beyond its limit is split where half of its bytes are before
 * the key, as HBase does at the middle of its largest file; its daughter goes to the server with the
 * fewest regions, which is what the balancer makes of it. HBASE: SteppingSplitPolicy: while a server has
 * one region of the table, it splits at twice the memstore's flush size.
 *
 * The heat map's bands are ranges of ranks with equal numbers of keys.
 */
#include "design/design.h"

#include <math.h>
#include <stdlib.h>

#define FLUSH_BYTES 134217728.0
enum { REGIONS_MAX = 2000000 };

typedef struct region {
    uint32_t first; /* rank of its first key */
    uint32_t server;
    double bytes;
    double load;    /* of the step */
    double total;   /* of all steps */
    bool is_single; /* has one key, or too few: cannot be split */
} region;

typedef struct world {
    const rq_plan *plan;
    uint32_t *ranks;   /* of the plan's keys */
    uint32_t *by_rank; /* one of the keys with this rank */
    double *key_bytes; /* by rank: of files */
    size_t rank_count;
    region *regions; /* by first key */
    size_t count, cap;
    uint64_t *regions_of_server;
    double *server_step; /* of the step */
    rq_outlook *out;
    size_t last_hottest;
    unsigned hottest_changes;
} world;

static rq_slice key_of(const rq_plan *p, uint32_t i)
{
    return rq_slice_of(p->bytes.ptr + p->keys[i].offset, p->keys[i].length);
}

/* --- ranks ------------------------------------------------------------------------------------ */

static int by_key(const void *a, const void *b, void *plan)
{
    return rq_slice_compare(key_of(plan, *(const uint32_t *)a), key_of(plan, *(const uint32_t *)b));
}

static rq_err rank_keys(world *w)
{
    const rq_plan *p = w->plan;
    uint32_t *order = malloc((p->count + 1) * sizeof *order);
    w->ranks = calloc(p->count + 1, sizeof *w->ranks);
    w->by_rank = calloc(p->count + 1, sizeof *w->by_rank);
    w->key_bytes = calloc(p->count + 1, sizeof *w->key_bytes);
    if (order == NULL || w->ranks == NULL || w->by_rank == NULL || w->key_bytes == NULL) {
        free(order);
        return RQ_E_NO_MEMORY;
    }
    for (uint32_t i = 0; i < p->count; i++)
        order[i] = i;
    qsort_r(order, p->count, sizeof *order, by_key, (void *)(uintptr_t)p);
    for (size_t i = 0; i < p->count; i++) {
        bool same = i > 0 && rq_slice_eq(key_of(p, order[i]), key_of(p, order[i - 1]));
        if (!same) w->by_rank[w->rank_count++] = order[i];
        w->ranks[order[i]] = (uint32_t)(w->rank_count - 1);
    }
    free(order);
    return RQ_OK;
}

/* The rank of the first key that is not before `key`. */
static uint32_t rank_of(const world *w, rq_slice key)
{
    size_t low = 0, high = w->rank_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (rq_slice_compare(key_of(w->plan, w->by_rank[middle]), key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return (uint32_t)low;
}

/* --- regions ---------------------------------------------------------------------------------- */

static size_t region_of(const world *w, uint32_t rank)
{
    size_t low = 0, high = w->count;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (w->regions[middle].first <= rank)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static uint32_t end_of(const world *w, size_t i)
{
    return i + 1 < w->count ? w->regions[i + 1].first : (uint32_t)w->rank_count;
}

static uint32_t idlest_server(const world *w)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < w->plan->servers; i++)
        if (w->regions_of_server[i] < w->regions_of_server[best]) best = i;
    return best;
}

static rq_err insert_region(world *w, size_t at, uint32_t first, double bytes, uint32_t server)
{
    if (w->count == w->cap) {
        size_t cap = w->cap == 0 ? 1024 : 2 * w->cap;
        region *regions = realloc(w->regions, cap * sizeof *regions);
        if (regions == NULL) return RQ_E_NO_MEMORY;
        w->regions = regions;
        w->cap = cap;
    }
    memmove(w->regions + at + 1, w->regions + at, (w->count - at) * sizeof(region));
    w->regions[at] = (region){.first = first, .server = server, .bytes = bytes};
    w->regions_of_server[server]++;
    w->count++;
    return RQ_OK;
}

/* The regions of a table that exists, on their servers. */
static rq_err take_regions(world *w)
{
    const rq_plan *p = w->plan;
    for (size_t i = 0; i < p->known_count; i++) {
        const rq_plan_region *r = &p->known[i];
        rq_slice key = rq_slice_of(p->bytes.ptr + r->offset, r->length);
        RQ_TRY(insert_region(w, i, rank_of(w, key), 0, r->server));
    }
    w->out->regions_at_start = w->count;
    return RQ_OK;
}

/* The table's regions at the start, dealt out to the servers in turn. */
static rq_err make_regions(world *w)
{
    const rq_plan *p = w->plan;
    if (p->known != NULL) return take_regions(w);
    RQ_TRY(insert_region(w, 0, 0, 0, 0));
    if (p->splits != NULL) {
        for (size_t i = 0; i < p->splits->count; i++) {
            rq_bytes key = p->splits->items[i];
            RQ_TRY(insert_region(w, w->count, rank_of(w, rq_slice_of(key.data, key.len)), 0,
                                 (uint32_t)(w->count % p->servers)));
        }
    } else if (p->splits_by_sample) {
        for (uint64_t i = 1; i < p->regions; i++)
            RQ_TRY(insert_region(w, w->count,
                                 (uint32_t)((double)w->rank_count * (double)i / (double)p->regions),
                                 0, (uint32_t)(w->count % p->servers)));
    }
    w->out->regions_at_start = w->count;
    return RQ_OK;
}

/* --- splits ----------------------------------------------------------------------------------- */

/* HBASE: SteppingSplitPolicy.getSizeToCheck */
static double split_size(const world *w, const region *r)
{
    double limit = w->plan->region_bytes;
    return w->regions_of_server[r->server] == 1 && 2 * FLUSH_BYTES < limit ? 2 * FLUSH_BYTES
                                                                           : limit;
}

/* The rank whose key splits the region's bytes in about two halves, or the region's first rank if no key does.
 * *ret_before: the bytes of the keys before it. */
static uint32_t middle_of(const world *w, size_t i, double *ret_before)
{
    uint32_t first = w->regions[i].first, end = end_of(w, i), at = first;
    double before = 0, half = w->regions[i].bytes / 2;
    while (at + 1 < end && before + w->key_bytes[at] / 2 < half)
        before += w->key_bytes[at++];
    *ret_before = before;
    return at;
}

/* RQ_E_END: it cannot be split. */
static rq_err split_region(world *w, size_t i)
{
    double before;
    uint32_t at = middle_of(w, i, &before);
    if (at == w->regions[i].first || before <= 0) {
        w->out->unsplittable += !w->regions[i].is_single;
        w->regions[i].is_single = true;
        return RQ_E_END;
    }
    double after = w->regions[i].bytes - before;
    RQ_TRY(insert_region(w, i + 1, at, after, idlest_server(w)));
    w->regions[i].bytes = before;
    w->out->splits++;
    return RQ_OK;
}

/* A daughter may be too large, too. */
static rq_err split_large(world *w)
{
    for (size_t i = 0; i < w->count; i++) {
        while (w->count < REGIONS_MAX && !w->regions[i].is_single &&
               w->regions[i].bytes > split_size(w, &w->regions[i])) {
            rq_err rc = split_region(w, i);
            if (rc == RQ_E_END) break;
            if (rc != RQ_OK) return rc;
        }
    }
    return RQ_OK;
}

/* --- steps ------------------------------------------------------------------------------------ */

static void add_load(world *w, uint32_t rank, uint32_t step, double load)
{
    region *r = &w->regions[region_of(w, rank)];
    size_t band = (size_t)rank * w->out->bands / w->rank_count;
    r->load += load;
    r->total += load;
    w->server_step[r->server] += load;
    w->out->heat[band * RQ_DESIGN_STEPS + step] += (float)load;
}

/* Adds the keys' writes, and their reads if the keys have any. */
static void use_keys(world *w, size_t from, size_t to, uint32_t step)
{
    for (size_t i = from; i < to; i++) {
        uint32_t rank = w->ranks[i];
        double bytes = w->plan->keys[i].weight * w->plan->row_bytes;
        add_load(w, rank, step, w->plan->keys[i].weight);
        if (w->plan->keys[i].is_read) continue;
        w->key_bytes[rank] += bytes;
        w->regions[region_of(w, rank)].bytes += bytes;
    }
}

/* Adds a step's reads, unless the plan's keys include reads of their own (has_reads). The load is spread over as many
 * rows as the step writes, taken from the rows that were written within the schema's read window. */
static void read_keys(world *w, const size_t *begins, uint32_t step)
{
    const rq_plan *p = w->plan;
    double step_s = p->period_s / RQ_DESIGN_STEPS;
    double window = p->read_window_s <= 0 ? step + 1 : ceil(p->read_window_s / step_s);
    uint32_t oldest = window > step ? 0 : step + 1 - (uint32_t)window;
    size_t from = begins[oldest], to = begins[step + 1], count = begins[step + 1] - begins[step];
    if (to == from || count == 0 || p->reads <= 0 || p->has_reads) return;
    double load = p->reads / RQ_DESIGN_STEPS / (double)count;
    for (size_t i = 0; i < count;
         i++) /* a stride that is odd and has nothing to do with the rows */
        add_load(w,
                 w->ranks[from + (size_t)((unsigned __int128)(i + 1) * 2654435761u % (to - from))],
                 step, load);
}

/* The busiest of a step, by server and by region. */
static void judge_step(world *w, uint32_t step, double *ret_all)
{
    rq_outlook *o = w->out;
    size_t hottest = 0;
    double all = 0, busiest = 0;
    for (uint32_t s = 0; s < w->plan->servers; s++) {
        o->server_load[s * RQ_DESIGN_STEPS + step] = w->server_step[s];
        all += w->server_step[s];
        if (w->server_step[s] > busiest) busiest = w->server_step[s];
        w->server_step[s] = 0;
    }
    for (size_t i = 0; i < w->count; i++)
        if (w->regions[i].load > w->regions[hottest].load) hottest = i;
    *ret_all = all;
    if (all <= 0) return;
    o->busiest_share += busiest;
    o->hottest_region += w->regions[hottest].load;
    if (busiest > o->peak_load) o->peak_load = busiest;
    w->hottest_changes += w->regions[hottest].first != w->last_hottest;
    w->last_hottest = w->regions[hottest].first;
    for (size_t i = 0; i < w->count; i++)
        w->regions[i].load = 0;
}

static rq_err run(world *w)
{
    const rq_plan *p = w->plan;
    size_t begins[RQ_DESIGN_STEPS + 1] = {0};
    double all = 0, step_all;
    for (size_t i = 0; i < p->count; i++)
        begins[p->keys[i].step + 1]++;
    for (uint32_t step = 0; step < RQ_DESIGN_STEPS; step++) {
        begins[step + 1] += begins[step];
        use_keys(w, begins[step], begins[step + 1], step);
        read_keys(w, begins, step);
        judge_step(w, step, &step_all);
        all += step_all;
        RQ_TRY(split_large(w));
    }
    rq_outlook *o = w->out;
    o->busiest_share /= all;
    o->hottest_region /= all;
    o->imbalance = o->busiest_share * (double)p->servers;
    o->mean_load = all / RQ_DESIGN_STEPS / (double)p->servers;
    o->moves = w->hottest_changes > RQ_DESIGN_STEPS / 6;
    return RQ_OK;
}

/* --- the whole -------------------------------------------------------------------------------- */

static void name_bands(world *w)
{
    rq_outlook *o = w->out;
    for (size_t band = 0; band < o->bands; band++) {
        size_t rank = (band * w->rank_count + o->bands - 1) / o->bands;
        rq_bytes_to_string(key_of(w->plan, w->by_rank[rank]), o->band_key[band],
                           sizeof o->band_key[band]);
    }
}

static void finish(world *w)
{
    rq_outlook *o = w->out;
    size_t hottest = 0;
    for (size_t i = 0; i < w->count; i++) {
        o->bytes += w->regions[i].bytes;
        if (w->regions[i].total > w->regions[hottest].total) hottest = i;
    }
    if (w->regions[hottest].first > 0 && w->regions[hottest].first < w->rank_count)
        rq_bytes_to_string(key_of(w->plan, w->by_rank[w->regions[hottest].first]), o->hottest_key,
                           sizeof o->hottest_key);
    o->regions_at_end = w->count;
    name_bands(w);
}

static rq_err prepare(world *w)
{
    rq_outlook *o = w->out;
    RQ_TRY(rank_keys(w));
    o->bands = w->rank_count < RQ_DESIGN_BANDS ? w->rank_count : RQ_DESIGN_BANDS;
    o->server_load = calloc(w->plan->servers * RQ_DESIGN_STEPS, sizeof *o->server_load);
    o->heat = calloc(o->bands * RQ_DESIGN_STEPS, sizeof *o->heat);
    o->band_key = calloc(o->bands, sizeof *o->band_key);
    w->regions_of_server = calloc(w->plan->servers, sizeof *w->regions_of_server);
    w->server_step = calloc(w->plan->servers, sizeof *w->server_step);
    if (o->server_load == NULL || o->heat == NULL || o->band_key == NULL ||
        w->regions_of_server == NULL || w->server_step == NULL)
        return RQ_E_NO_MEMORY;
    return make_regions(w);
}

rq_err rq_simulate(const rq_plan *p, rq_outlook *ret, rq_error *why)
{
    *ret = (rq_outlook){.plan = p};
    if (p->count == 0) return rq_fail(why, RQ_E_INVALID, "there are no keys");
    world w = {.plan = p, .out = ret, .last_hottest = SIZE_MAX};
    rq_err rc = prepare(&w);
    if (rc == RQ_OK) rc = run(&w);
    if (rc == RQ_OK) finish(&w);
    free(w.ranks);
    free(w.by_rank);
    free(w.key_bytes);
    free(w.regions);
    free(w.regions_of_server);
    free(w.server_step);
    return rc == RQ_E_NO_MEMORY ? rq_no_memory(why) : rc;
}

void rq_outlook_clear(rq_outlook *o)
{
    free(o->server_load);
    free(o->heat);
    free(o->band_key);
    *o = (rq_outlook){0};
}
