/* SPDX-License-Identifier: Apache-2.0 */
/* The random history of a run: writes, flushes, compactions and bulk loads, applied to the stores
 * and to the model, which must agree about every file. */
#include "read_run.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const row_names[] = {"a", "aa", "ab", "b", "b\xff", "c", "d0", "d1"};
static const char *const meta_row_names[] = {"a,,1",  "a,b,1",    "a,b,12", "a,b\xff,1", "a,b,c,1",
                                             "aa,,1", "aa,a,,,3", "b,,2",   "b,\xff,2"};
const char *const run_qualifier_names[RUN_QUALIFIERS] = {"", "a", "b", "ba", "bb", "c"};
static const char *const family_names[] = {"f", "g", "h"};

void run_fail(const run *r, const char *what)
{
    fprintf(stderr, "FAILED: %s; READ_SEED=%llu replays\n", what, (unsigned long long)r->seed);
    exit(1);
}

rq_slice run_row(run *r)
{
    if (r->many_rows) return rq_slice_cstr(r->row_names[below(r, RUN_MANY_ROWS)]);
    if (r->order == RQ_ORDER_META)
        return rq_slice_cstr(meta_row_names[below(r, RQ_ARRAY_LEN(meta_row_names))]);
    return rq_slice_cstr(row_names[below(r, RQ_ARRAY_LEN(row_names))]);
}

rq_slice run_qualifier(run *r)
{
    return rq_slice_cstr(run_qualifier_names[below(r, RUN_QUALIFIERS)]);
}

int64_t run_ts(run *r)
{
    return 1000 * (int64_t)(1 + below(r, 10));
}

/* Depends only on the seed, so that histories of known seeds do not change. */
static rq_block_encoding encoding_of(uint64_t seed, size_t family)
{
    static const rq_block_encoding all[] = {RQ_ENCODING_NONE, RQ_ENCODING_PREFIX, RQ_ENCODING_DIFF,
                                            RQ_ENCODING_FAST_DIFF, RQ_ENCODING_ROW_INDEX_V1};
    return all[(seed + family) % RQ_ARRAY_LEN(all)];
}

static void make_many_rows(run *r)
{
    static const char *const tails[] = {"", "", "", "/t", "/tail", "/a_longer_tail"};
    for (size_t i = 0; i < RUN_MANY_ROWS; i++)
        (void)snprintf(r->row_names[i], sizeof(r->row_names[i]), "r%02zu%s", i,
                       tails[below(r, RQ_ARRAY_LEN(tails))]);
    r->family_count = 1;
    r->families[0] = (rq_family_schema){
        .name = rq_slice_cstr(family_names[0]),
        .max_versions = chance(r, 60) ? 1 : 1 + (int32_t)below(r, 3),
        .ttl_s = chance(r, 20) ? 2 + (int32_t)below(r, 8) : RQ_TTL_FOREVER,
        .block_bytes = 100 + (uint32_t)below(r, 4000),
        .block_cache = true,
        .encoding = chance(r, 85) ? RQ_ENCODING_NONE : encoding_of(r->seed, 0),
    };
}

void run_make_families(run *r)
{
    if (r->many_rows) {
        make_many_rows(r);
        return;
    }
    r->new_versions = chance(r, 15);
    r->lossless = !r->new_versions && chance(r, 40);
    r->family_count = 1 + below(r, 3);
    for (size_t i = 0; i < r->family_count; i++) {
        rq_family_schema *f = &r->families[i];
        *f = (rq_family_schema){
            .name = rq_slice_cstr(family_names[i]),
            .max_versions = chance(r, 30) ? INT32_MAX : 1 + (int32_t)below(r, 4),
            .min_versions = chance(r, 40) ? (int32_t)below(r, 3) : 0,
            .ttl_s = chance(r, 40) ? 2 + (int32_t)below(r, 8) : RQ_TTL_FOREVER,
            .block_bytes = 64 + (uint32_t)below(r, 400),
            .block_cache = chance(r, 80),
            .bloom = (rq_bloom_type)below(r, 3),
            .encoding = encoding_of(r->seed, i),
            .compress_tags = r->seed % 2 == 0,
            .bloom_prefix_len = 1 + (uint32_t)(r->seed % 3),
            .keep_deleted = (rq_keep_deleted)below(r, 3),
        };
        if (r->seed % 4 == 1) f->bloom = RQ_BLOOM_ROWPREFIX_FIXED_LENGTH;
        if (r->lossless) {
            f->max_versions = INT32_MAX;
            f->min_versions = 0;
            f->ttl_s = RQ_TTL_FOREVER;
            f->keep_deleted = RQ_KEEP_DELETED_TRUE;
        }
        if (r->new_versions) {
            f->new_version_behavior = true;
            f->min_versions = 0;
            f->ttl_s = RQ_TTL_FOREVER;
            f->keep_deleted = RQ_KEEP_DELETED_FALSE;
        }
    }
}

typedef struct cell_bytes {
    char value[32];
    uint8_t ttl[11];
} cell_bytes;

/* With NEW_VERSION_BEHAVIOR no version is written twice, because then HBase's rules, which the
 * engine follows, would differ from the model's. A marker mostly names a version that was
 * written. */
static int64_t unique_ts(run *r, size_t family, uint64_t seqid, bool marker)
{
    const cell_set *known = &r->active[family];
    if (r->file_count[family] > 0 && chance(r, 50))
        known = &r->files[family][below(r, r->file_count[family])];
    if (marker && known->count > 0 && chance(r, 80))
        return known->items[below(r, known->count)].timestamp;
    return 100000 * (int64_t)(1 + below(r, 10)) + (int64_t)seqid;
}

/* Increasing like a clock: later writes have newer timestamps. For a third of the runs, chosen by
 * the seed. */
static int64_t rising_ts(uint64_t seqid)
{
    return 1000 + (int64_t)(9000 * seqid / (seqid + 60));
}

static rq_cell random_cell(run *r, size_t family, rq_slice row, uint64_t seqid, cell_bytes *bytes)
{
    static const uint8_t markers[] = {RQ_TYPE_DELETE, RQ_TYPE_DELETE_FAMILY_VERSION,
                                      RQ_TYPE_DELETE_COLUMN, RQ_TYPE_DELETE_FAMILY};
    rq_slice qualifier = run_qualifier(r);
    rq_cell c = {
        .row = row.ptr,
        .row_len = (uint16_t)row.len,
        .family = r->families[family].name.ptr,
        .family_len = 1,
        .qualifier = qualifier.ptr,
        .qualifier_len = (uint32_t)qualifier.len,
        .timestamp = run_ts(r),
        .type = RQ_TYPE_PUT,
        .seqid = seqid,
    };
    if (r->seed % 3 == 1) c.timestamp = rising_ts(seqid);
    if (chance(r, r->many_rows ? 1 : 25)) {
        c.type = markers[below(r, 4)];
        if (c.type == RQ_TYPE_DELETE_FAMILY || c.type == RQ_TYPE_DELETE_FAMILY_VERSION)
            c.qualifier_len = 0;
    } else {
        c.value_len = (uint32_t)snprintf(bytes->value, sizeof(bytes->value), "%llu",
                                         (unsigned long long)seqid);
        c.value = (const uint8_t *)bytes->value;
    }
    if (r->new_versions) c.timestamp = unique_ts(r, family, seqid, c.type != RQ_TYPE_PUT);
    if (!r->lossless && !r->new_versions && chance(r, r->many_rows ? 1 : 8)) {
        memcpy(bytes->ttl, (const uint8_t[]){0, 9, RQ_TAG_TTL}, 3);
        rq_put_be64(bytes->ttl + 3, 1000 * below(r, 9));
        c.tags = bytes->ttl;
        c.tags_len = sizeof(bytes->ttl);
    }
    return c;
}

static void add_cell(run *r, rq_slice row, uint64_t seqid)
{
    size_t family = below(r, r->family_count);
    cell_bytes bytes;
    rq_cell c = random_cell(r, family, row, seqid, &bytes);
    by_hand_add(&r->world, family, &c);
    cell_set_put(&r->active[family], &c);
}

void run_write(run *r, unsigned batches)
{
    for (unsigned i = 0; i < batches; i++) {
        uint64_t seqid = ++r->seqid;
        rq_slice row = run_row(r);
        for (uint64_t n = 1 + below(r, 5); n > 0; n--) {
            add_cell(r, row, seqid);
            /* In this mode the order of writing decides, which the model knows only from the
             * sequence id. */
            if (r->new_versions) seqid = ++r->seqid;
        }
    }
    if (r->world.region.read_point < r->seqid) r->world.region.read_point = r->seqid;
}

static void compare_rewrite(run *r, const char *what, const cell_set *in, const cell_set *expected,
                            const cell_set *got)
{
    r->rewrites++;
    if (r->new_versions) return; /* in this mode only results of reads are compared */
    if (cell_set_equal(expected, got, true)) return;
    cell_set_print(in, "in");
    cell_set_print(expected, "expected");
    cell_set_print(got, "got");
    run_fail(r, what);
}

static void add_file(run *r, size_t f, cell_set cells, uint64_t newest)
{
    size_t n = r->file_count[f]++;
    r->files[f] = realloc(r->files[f], (n + 1) * sizeof(cell_set));
    r->newest[f] = realloc(r->newest[f], (n + 1) * sizeof(uint64_t));
    RQ_ASSERT(r->files[f] != NULL && r->newest[f] != NULL);
    r->files[f][n] = cells;
    r->newest[f][n] = newest;
}

static uint64_t newest_of(const cell_set *s)
{
    uint64_t newest = 0;
    for (size_t i = 0; i < s->count; i++)
        if (s->items[i].seqid > newest) newest = s->items[i].seqid;
    return newest;
}

static void flush(run *r, size_t f)
{
    if (r->snapshots[f].count == 0) return;
    uint64_t smallest = by_hand_smallest_read_point(&r->world);
    cell_set expected = {0};
    cell_set got = {0};
    model_rewrite_options o = {.smallest_read_point = smallest, .now_ms = r->world.now_ms};
    model_rewrite(&r->families[f], &r->snapshots[f], &o, &expected);
    by_hand_flush(&r->world, f, smallest, &got);
    compare_rewrite(r, "flush", &r->snapshots[f], &expected, &got);
    cell_set_empty(&r->snapshots[f]);
    cell_set_clear(&expected);
    if (got.count > 0) add_file(r, f, got, newest_of(&got));
}

static void rotate(run *r, size_t f)
{
    if (!by_hand_rotate(&r->world, f)) return;
    cell_set_add_all(&r->snapshots[f], &r->active[f]);
    cell_set_empty(&r->active[f]);
}

/* Adds a file written elsewhere, whose cells count as written now. HBase flushes older cells first;
 * so do most runs, depending on the seed. */
static void bulk_load(run *r, size_t f)
{
    if (r->seed % 5 != 4) {
        rotate(r, f);
        flush(r, f);
    }
    uint64_t seqid = ++r->seqid;
    cell_set cells = {0};
    cell_bytes bytes;
    for (uint64_t n = 1 + below(r, 12); n > 0; n--) {
        rq_cell c = random_cell(r, f, run_row(r), seqid, &bytes);
        cell_set_put(&cells, &c);
    }
    cell_set_sort(&cells);
    by_hand_bulk_load(&r->world, f, &cells, seqid);
    add_file(r, f, cells, 0);
}

static void lower_to_oldest(const cell_set *s, uint64_t *oldest)
{
    for (size_t i = 0; i < s->count; i++)
        if (*oldest == 0 || s->items[i].seqid < *oldest) *oldest = s->items[i].seqid;
}

static void compact(run *r, size_t f)
{
    size_t count = r->file_count[f];
    if (count == 0) return;
    size_t first = below(r, count);
    size_t n = 1 + below(r, count - first);
    if (chance(r, 40)) {
        first = 0;
        n = count;
    }
    uint64_t smallest = by_hand_smallest_read_point(&r->world);
    cell_set in = {0};
    cell_set expected = {0};
    cell_set got = {0};
    bool any_age = false;
    uint64_t newest = 0;
    for (size_t i = first; i < first + n; i++) {
        any_age = any_age || r->world.stores[f].version.files[i].bulk_loaded;
        if (r->newest[f][i] > newest) newest = r->newest[f][i];
        cell_set_add_all(&in, &r->files[f][i]);
        cell_set_clear(&r->files[f][i]);
    }
    uint64_t unflushed_from = 0;
    lower_to_oldest(&r->active[f], &unflushed_from);
    lower_to_oldest(&r->snapshots[f], &unflushed_from);
    model_rewrite_options o = {
        .unflushed_from = unflushed_from,
        .all_files = n == count,
        .any_age = any_age,
        .newest_seqid = newest,
        .smallest_read_point = smallest,
        .now_ms = r->world.now_ms + 1,
        .purge_ms = r->world.purge_ms,
    };
    model_rewrite(&r->families[f], &in, &o, &expected);
    by_hand_compact(&r->world, f, first, n, smallest, &got);
    compare_rewrite(r, n == count ? "major compaction" : "minor compaction", &in, &expected, &got);
    size_t kept = got.count > 0 ? 1 : 0;
    memmove(&r->files[f][first + kept], &r->files[f][first + n],
            (count - first - n) * sizeof(cell_set));
    memmove(&r->newest[f][first + kept], &r->newest[f][first + n],
            (count - first - n) * sizeof(uint64_t));
    if (kept) {
        r->files[f][first] = got;
        r->newest[f][first] = newest_of(&got);
    }
    r->file_count[f] = count - n + kept;
    cell_set_clear(&in);
    cell_set_clear(&expected);
}

void run_write_many(run *r)
{
    for (uint64_t n = 1 + below(r, 2); n > 0; n--) {
        run_write(r, 60);
        rotate(r, 0);
        flush(r, 0);
    }
    if (chance(r, 80)) compact(r, 0);
}

/* One random change of a store's version; no reader may be positioned on it. */
void run_change_versions(run *r)
{
    size_t f = below(r, r->family_count);
    switch (below(r, r->new_versions ? 6 : 7)) {
    case 0:
    case 1:
        rotate(r, f);
        break;
    case 2:
    case 3:
        flush(r, f);
        break;
    case 4:
    case 5:
        compact(r, f);
        break;
    default:
        bulk_load(r, f);
        break;
    }
}
