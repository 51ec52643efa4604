/* SPDX-License-Identifier: Apache-2.0 */
/* Garbage in hbase:meta and hbase:namespace: cells from untrusted bytes, written without the checks
 * of clients' cells, then a start on the result. The start must succeed; the table whose rows were
 * not touched must be served, a new table can be created, the janitor and changes of the touched
 * table must end, and fsck of the stopped folder must not fail.
 *
 *     byte 0   bit 0: the first stop is clean; bit 1: there is a second start
 *     cells    u8 what (see below) | u8 row | u8 column | u8 time | be16 length | value
 *
 *     what     bits 0 … 1: put, or DELETE_FAMILY, DELETE_COLUMN, DELETE; bit 2: hbase:namespace;
 *              bit 3: the value is a region's description, and is completed to one:
 *              u8 table | u8 length, start key | u8 length, end key | be64 id | u8 flags;
 *              bit 4: the row is that region's name
 *     row      below ROWS one of the known rows, else the value's first row % 64 bytes, 255: all
 *     column, time   from the lists below; time 255: the value's first eight bytes */
#include "../tests/unit/catalog/world.h"

#include "catalog/fsck.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const columns[][2] = {
    {"table", "state"},
    {"info", "regioninfo"},
    {"info", "state"},
    {"info", "splitA"},
    {"info", "splitB"},
    {"info", "merge0000"},
    {"info", "merge0001"},
    {"info", "state_0001"},
    {"info", "seqnumDuringOpen"},
    {"info", "server"},
    {"info", ""},
    {"table", ""},
    {"rep_barrier", "seqnumDuringOpen"},
};
static const char *const namespace_columns[] = {"d", "", "x"};
static const char *const tables[][2] = {
    {"default", "t"},   {"hbase", "meta"},   {"hbase", "namespace"}, {"master", "store"},
    {"n", "t"},         {"default", "gone"}, {"n", "a:b"},           {"", "t"},
    {"zookeeper", "t"}, {"default", ".."},
};
static const int64_t times[] = {
    RQ_TIMESTAMP_LATEST, INT64_MAX - 1, INT64_MAX - 2, INT64_MAX / 2, 0, -1, 1, INT64_MIN};

/* The rows of table t, of the system tables, and some meaningless ones; [0, 3) are made at run
 * time. */
enum { ROW_T_LOW, ROW_T_HIGH, ROW_NAMESPACE, ROWS = 12 };
static const char *const rows[ROWS] = {
    NULL, NULL,      NULL, "t",  "hbase:meta",  "hbase:meta,,1", "hbase:namespace",
    "n",  "default", "x",  ",,", "master:store"};

typedef struct input {
    rq_cursor at;
    world w;
    rq_slice names[3];
    rq_arena arena;
} input;

static void must(bool holds, const char *what, const world *w)
{
    if (holds) return;
    fprintf(stderr, "%s: %s\n", what, w->why.message);
    abort();
}

static uint8_t next_byte(rq_cursor *c)
{
    uint8_t b = 0;
    (void)!rq_cursor_u8(c, &b);
    return b;
}

static rq_slice next_bytes(rq_cursor *c, size_t len)
{
    rq_slice s = {(const uint8_t *)"", 0};
    if (len > rq_cursor_left(c)) len = rq_cursor_left(c);
    if (len > 0) (void)!rq_cursor_bytes(c, len, &s);
    return s;
}

/* --- cells ------------------------------------------------------------------------------------ */

static bool make_info(input *in, rq_slice value, rq_region_info *ret)
{
    rq_cursor c = rq_cursor_of(value);
    uint8_t table = next_byte(&c) % RQ_ARRAY_LEN(tables);
    rq_slice start = next_bytes(&c, next_byte(&c)), end = next_bytes(&c, next_byte(&c));
    uint8_t id[8] = {0};
    rq_slice given = next_bytes(&c, sizeof id);
    memcpy(id, given.ptr, given.len);
    uint8_t flags = next_byte(&c);
    if (rq_region_info_make(&in->arena, rq_slice_cstr(tables[table][0]),
                            rq_slice_cstr(tables[table][1]), start, end, (int64_t)rq_get_be64(id),
                            flags >> 4 & 3, ret) != RQ_OK)
        return false;
    ret->split = flags & 1;
    ret->offline = flags & 2;
    return true;
}

static rq_slice row_of(const input *in, uint8_t which, rq_slice value)
{
    if (which < ROWS && rows[which] != NULL) return rq_slice_cstr(rows[which]);
    if (which < ROWS) return in->names[which];
    size_t len = which < 255 && which % 64u < value.len ? which % 64u : value.len;
    return len == 0 ? RQ_SLICE_LIT("?") : rq_slice_of(value.ptr, len);
}

static bool is_of_sound(rq_slice row)
{
    return rq_slice_starts_with(row, RQ_SLICE_LIT("sound"));
}

static void write_cell(input *in)
{
    static const uint8_t types[] = {RQ_TYPE_PUT, RQ_TYPE_DELETE_FAMILY, RQ_TYPE_DELETE_COLUMN,
                                    RQ_TYPE_DELETE};
    uint8_t what = next_byte(&in->at), row = next_byte(&in->at), column = next_byte(&in->at);
    uint8_t time = next_byte(&in->at), high = next_byte(&in->at), low = next_byte(&in->at);
    rq_slice value = next_bytes(&in->at, (size_t)high << 8 | low);
    bool in_meta = (what & 4) == 0;
    rq_region_info info = {0};
    rq_slice name = row_of(in, row, value);
    if ((what & 8) != 0 && make_info(in, value, &info)) {
        if (rq_region_info_serialize(&info, &in->arena, &value) != RQ_OK) abort();
        if ((what & 16) != 0) name = info.name;
    }
    size_t at = column % RQ_ARRAY_LEN(columns);
    rq_slice family = in_meta ? rq_slice_cstr(columns[at][0]) : RQ_SLICE_LIT("info");
    rq_slice qualifier = rq_slice_cstr(
        in_meta ? columns[at][1] : namespace_columns[column % RQ_ARRAY_LEN(namespace_columns)]);
    rq_cell cell = {
        .row = name.ptr,
        .row_len = (uint16_t)name.len,
        .family = family.ptr,
        .family_len = (uint8_t)family.len,
        .qualifier = qualifier.ptr,
        .qualifier_len = (uint32_t)qualifier.len,
        .value = value.ptr,
        .value_len = (uint32_t)value.len,
        .timestamp = time < RQ_ARRAY_LEN(times) ? times[time]
                     : value.len >= 8           ? (int64_t)rq_get_be64(value.ptr)
                                                : RQ_TIMESTAMP_LATEST,
        .type = types[what & 3],
    };
    if (cell.type == RQ_TYPE_DELETE_FAMILY) cell.qualifier_len = 0;
    if (cell.type != RQ_TYPE_PUT) cell.value_len = 0;
    if (is_of_sound(name)) return;
    (void)world_write(&in->w, in_meta ? "hbase:meta" : "hbase:namespace",
                      cell.type == RQ_TYPE_PUT ? RQ_MUTATE_PUT : RQ_MUTATE_DELETE, &cell);
}

/* --- invariants ------------------------------------------------------------------------------- */

static rq_slice name_of(input *in, const char *table, const char *row)
{
    rq_epoch_member m = {0};
    const rq_catalog_region *r;
    rq_slice name = {NULL, 0};
    rq_epoch_pin(in->w.env->epoch, &m);
    if (rq_catalog_locate(in->w.catalog, rq_slice_cstr(table), rq_slice_cstr(row), &r, NULL) ==
        RQ_OK)
        name = rq_arena_copy(&in->arena, r->info->name);
    rq_epoch_unpin(in->w.env->epoch, &m);
    return name;
}

static void check(input *in, bool first)
{
    world *w = &in->w;
    int64_t cleaned;
    must(world_settle(w), "a procedure never ends", w);
    must(world_get(w, "sound", "a", "f") == RQ_OK, "sound, a", w);
    must(world_get(w, "sound", "z", "f") == RQ_OK, "sound, z", w);
    must(rq_catalog_clean_parents(w->catalog, &cleaned, &w->why) == RQ_OK, "the janitor", w);
    must(world_get(w, "sound", "a", "f") == RQ_OK, "sound, a, after the janitor", w);
    if (first) {
        must(world_create(w, "fresh", "f", NULL) == RQ_OK, "create", w);
        (void)world_table(w, RQ_DDL_DISABLE_TABLE, "t");
        (void)world_table(w, RQ_DDL_ENABLE_TABLE, "t");
        (void)world_split(w, "t", "q", "r");
        (void)world_table(w, RQ_DDL_DISABLE_TABLE, "t");
        (void)world_truncate(w, "t", true);
    } else {
        (void)world_table(w, RQ_DDL_DISABLE_TABLE, "t");
        (void)world_table(w, RQ_DDL_DELETE_TABLE, "t");
    }
    must(world_put(w, "fresh", "a", "f") == RQ_OK, "put", w);
    must(world_get(w, "sound", "z", "f") == RQ_OK, "sound, z, after changes", w);
}

static void tell_nobody(void *ctx, rq_finding level, const char *where, const char *text)
{
    (void)ctx;
    (void)level;
    (void)where;
    (void)text;
}

static void look_and_start(input *in, bool clean)
{
    world *w = &in->w;
    rq_fsck_totals totals;
    const rq_fsck_options o = {.findings = {tell_nobody, NULL, NULL}};
    (void)world_close(w, clean);
    must(rq_fsck(w->env->vfs, &o, &totals, &w->why) == RQ_OK, "fsck", w);
    must(world_open(w) == RQ_OK, "open", w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {.at = rq_cursor_of(rq_slice_of(data, size))};
    world *w = &in.w;
    uint8_t ways = next_byte(&in.at);
    bool clean = ways & 1;
    world_init(w, 1, NULL);
    w->env->log->level = RQ_LOG_ERROR + 1;
    w->trusted = true;
    must(world_open(w) == RQ_OK, "first start", w);
    must(world_create(w, "sound", "f", "m") == RQ_OK, "sound", w);
    must(world_create(w, "t", "f", "m") == RQ_OK, "t", w);
    must(world_put(w, "sound", "a", "f") == RQ_OK, "put", w);
    must(world_put(w, "sound", "z", "f") == RQ_OK, "put", w);
    must(world_put(w, "t", "z", "f") == RQ_OK, "put", w);
    in.names[ROW_T_LOW] = name_of(&in, "t", "a");
    in.names[ROW_T_HIGH] = name_of(&in, "t", "z");
    in.names[ROW_NAMESPACE] = name_of(&in, "hbase:namespace", "a");
    for (int i = 0; i < 32 && rq_cursor_left(&in.at) > 0; i++)
        write_cell(&in);
    look_and_start(&in, clean);
    check(&in, true);
    if ((ways & 2) != 0) {
        look_and_start(&in, !clean);
        check(&in, false);
    }
    world_clear(w);
    rq_arena_clear(&in.arena);
    return 0;
}
