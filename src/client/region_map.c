/* SPDX-License-Identifier: Apache-2.0 */
/* A table's regions, from hbase:meta. The map is an array sorted by start key. It is read in the
 * background, by a scan of meta from `table,,` to `table ,,` (HBASE: MetaTableAccessor), and
 * replaces the old map when it is complete. If reading fails, the old one stays.
 *
 *    row <region name>: info:regioninfo = "PBUF" + RegionInfo, info:server = host:port,
 *                       info:serverstartcode = be64, info:server_<%04X> = host:port of a replica
 *
 * Parents of a split are left out, and, unless with_unserved is set, regions that have no server and no replica with one.
 * A row in such a gap has no region for the time being; the operation is retried. A region that has no
 * server itself is in the map if a replica of it has one. */
#include "client/client_priv.h"

#include "base/digest.h"
#include "cell/cellblock.h"

#include <stdio.h>
#include <stdlib.h>

#define ROWS_PER_ANSWER 1000

/* --- looking up ------------------------------------------------------------------------------- */

/* The number of regions that start at or before the row. */
static size_t regions_up_to(const rq_client_table *t, rq_slice row)
{
    size_t low = 0;
    size_t high = t->region_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (rq_slice_compare(t->regions[middle].start, row) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const rq__region *rq__map_locate(const rq_client_table *t, rq_slice row)
{
    size_t n = regions_up_to(t, row);
    if (n == 0) return NULL;
    const rq__region *r = &t->regions[n - 1];
    return r->end.len == 0 || rq_slice_compare(row, r->end) < 0 ? r : NULL;
}

const rq__region *rq__map_locate_before(const rq_client_table *t, rq_slice start)
{
    size_t n = start.len == 0 ? t->region_count : regions_up_to(t, start);
    if (start.len > 0 && n > 0 && rq_slice_eq(t->regions[n - 1].start, start)) n--;
    if (n == 0) return NULL;
    const rq__region *r = &t->regions[n - 1];
    return r->end.len == 0 || (start.len > 0 && rq_slice_compare(start, r->end) <= 0) ? r : NULL;
}

bool rq__map_replica(const rq__region *r, uint16_t id, uint32_t *ret_server,
                     rq_slice *ret_specifier)
{
    *ret_server = r->server;
    *ret_specifier = r->specifier;
    if (id == 0) return true;
    for (size_t i = 0; i < r->replica_count; i++) {
        if (r->replicas[i].id != id) continue;
        *ret_server = r->replicas[i].server;
        *ret_specifier = r->replicas[i].specifier;
        return true;
    }
    return false;
}

/* --- rows of meta ----------------------------------------------------------------------------- */

#define REPLICAS_MAX 64 /* HBASE: none; Rorqual's limit. More are not read from */

typedef struct meta_row {
    rq_slice row;
    rq_slice info;
    rq_slice server;
    int64_t start_code;
    size_t replica_count;
    struct {
        uint16_t id;
        rq_slice server;
    } replicas[REPLICAS_MAX];
} meta_row;

/* RegionInfo { region_id 1, table_name 2, start_key 3, end_key 4, offline 5, split 6, replica 7 }
 */
static rq_err parse_region_info(rq_slice value, rq_slice *start, rq_slice *end, bool *ret_counts)
{
    rq_pb_field f;
    rq_err rc;
    *start = *end = (rq_slice){0};
    *ret_counts = true;
    if (value.len < 4 || memcmp(value.ptr, "PBUF", 4) != 0) return RQ_E_MALFORMED;
    rq_cursor c = rq_cursor_of(rq_slice_of(value.ptr + 4, value.len - 4));
    while ((rc = rq_pb_next(&c, &f)) == RQ_OK) {
        if (f.number == 3 && f.wire == 2) *start = f.bytes;
        if (f.number == 4 && f.wire == 2) *end = f.bytes;
        if (f.number >= 5 && f.number <= 7 && f.wire == 0 && f.value != 0) *ret_counts = false;
    }
    return rc == RQ_E_END ? RQ_OK : rc;
}

/* TABLE,START,ID.MD5. becomes TABLE,START,ID_0001.MD5. HBASE: RegionInfo.createRegionName */
static rq_err put_replica_name(rq_buf *out, rq_slice name, uint16_t id)
{
    char md5[RQ_MD5_HEX_LEN + 1];
    const size_t tail = 2 + RQ_MD5_HEX_LEN;
    if (name.len <= tail || name.ptr[name.len - tail] != '.') return RQ_E_MALFORMED;
    RQ_TRY(rq_buf_append(out, name.ptr, name.len - tail));
    RQ_TRY(rq_buf_printf(out, "_%04X", id));
    rq_md5_hex(rq_buf_slice(out), md5);
    return rq_buf_printf(out, ".%s.", md5);
}

static rq_err add_replica(rq_client_table *t, const meta_row *m, size_t i, rq__replica *ret)
{
    rq__address at;
    rq_buf name = {0};
    if (!rq__address_parse(m->replicas[i].server, &at)) return RQ_E_MALFORMED;
    ret->id = m->replicas[i].id;
    RQ_TRY(rq__client_server(t->client, &at, &ret->server));
    rq_err rc = put_replica_name(&name, m->row, ret->id);
    rq_buf_reset(&t->request);
    if (rc == RQ_OK) rc = rq__put_region(&t->request, rq_buf_slice(&name));
    rq_buf_clear(&name);
    RQ_TRY(rc);
    ret->specifier = rq_arena_copy(&t->next_arena, rq_buf_slice(&t->request));
    return ret->specifier.ptr == NULL ? RQ_E_NO_MEMORY : RQ_OK;
}

/* A replica that is nowhere has an empty server, or none. */
static rq_err add_replicas(rq_client_table *t, const meta_row *m, rq__region *r)
{
    r->replica_count = 0;
    r->replicas = NULL;
    if (m->replica_count == 0) return RQ_OK;
    r->replicas = rq_arena_alloc(&t->next_arena, m->replica_count * sizeof *r->replicas);
    if (r->replicas == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < m->replica_count; i++)
        if (m->replicas[i].server.len > 0)
            RQ_TRY(add_replica(t, m, i, &r->replicas[r->replica_count++]));
    return RQ_OK;
}

static bool has_server(const meta_row *m)
{
    bool has = m->server.len > 0;
    for (size_t i = 0; !has && i < m->replica_count; i++)
        has = m->replicas[i].server.len > 0;
    return has;
}

static rq_err find_server(rq_client_table *t, const meta_row *m, uint32_t *ret)
{
    rq__address at;
    *ret = RQ__NO_SERVER;
    if (m->server.len == 0) return RQ_OK;
    if (!rq__address_parse(m->server, &at)) return RQ_E_MALFORMED;
    return rq__client_server(t->client, &at, ret);
}

static rq_err add_region(rq_client_table *t, const meta_row *m)
{
    rq_slice start;
    rq_slice end;
    bool counts;
    if (m->info.len > 0) t->next_has_rows = true;
    if (m->info.len == 0) return RQ_OK; /* the table's row */
    if (!has_server(m) && !t->client->options.with_unserved) return RQ_OK;
    RQ_TRY(parse_region_info(m->info, &start, &end, &counts));
    if (!counts) return RQ_OK;
    if (t->next_count == t->next_cap) {
        size_t cap = t->next_cap == 0 ? 16 : t->next_cap * 2;
        rq__region *regions = realloc(t->next_regions, cap * sizeof *regions);
        if (regions == NULL) return RQ_E_NO_MEMORY;
        t->next_regions = regions;
        t->next_cap = cap;
    }
    rq__region *r = &t->next_regions[t->next_count];
    RQ_TRY(find_server(t, m, &r->server));
    r->start_code = m->start_code;
    r->start = rq_arena_copy(&t->next_arena, start);
    r->end = rq_arena_copy(&t->next_arena, end);
    rq_buf_reset(&t->request);
    RQ_TRY(rq__put_region(&t->request, m->row));
    r->specifier = rq_arena_copy(&t->next_arena, rq_buf_slice(&t->request));
    if (r->start.ptr == NULL || r->end.ptr == NULL || r->specifier.ptr == NULL)
        return RQ_E_NO_MEMORY;
    RQ_TRY(add_replicas(t, m, r));
    t->next_count++;
    return RQ_OK;
}

/* "server_0001": HBASE: CatalogFamilyFormat.getServerColumn, RegionInfo.REPLICA_ID_FORMAT. */
static bool replica_of(rq_slice qualifier, uint16_t *ret)
{
    static const char prefix[] = "server_";
    char digits[5] = "";
    char *end;
    size_t len = sizeof prefix - 1;
    if (qualifier.len != len + 4 || memcmp(qualifier.ptr, prefix, len) != 0) return false;
    memcpy(digits, qualifier.ptr + len, 4);
    *ret = (uint16_t)strtoul(digits, &end, 16);
    return *end == '\0' && *ret != 0;
}

static void take_server(meta_row *m, const rq_cell *c)
{
    uint16_t id;
    if (rq_slice_eq(rq_cell_qualifier(c), RQ_SLICE_LIT("server"))) m->server = rq_cell_value(c);
    if (rq_slice_eq(rq_cell_qualifier(c), RQ_SLICE_LIT("serverstartcode")) &&
        rq_cell_value(c).len == 8)
        m->start_code = (int64_t)rq_get_be64(rq_cell_value(c).ptr);
    if (m->replica_count == REPLICAS_MAX || !replica_of(rq_cell_qualifier(c), &id)) return;
    m->replicas[m->replica_count].id = id;
    m->replicas[m->replica_count++].server = rq_cell_value(c);
}

static rq_err take_row(rq_client_table *t, rq_result_view *row, rq_cursor *cells)
{
    meta_row m = {0};
    rq_cell c;
    rq_err rc;
    while ((rc = rq_result_next(row, cells, &c)) == RQ_OK) {
        m.row = rq_cell_row(&c);
        if (rq_slice_eq(rq_cell_qualifier(&c), RQ_SLICE_LIT("regioninfo")))
            m.info = rq_cell_value(&c);
        take_server(&m, &c);
    }
    return rc == RQ_E_END ? add_region(t, &m) : rc;
}

/* --- reading meta ----------------------------------------------------------------------------- */

static int by_start(const void *a, const void *b)
{
    return rq_slice_compare(((const rq__region *)a)->start, ((const rq__region *)b)->start);
}

const char *rq__refresh_text(const rq_client_table *t)
{
    return t->refresh_text == NULL ? "" : t->refresh_text;
}

rq_err rq__map_empty_error(const rq_client_table *t)
{
    if (t->refresh_err != RQ_OK) return t->refresh_err;
    return t->has_rows ? RQ_E_NOT_SERVING_REGION : RQ_E_TABLE_NOT_FOUND;
}

static void end_refresh(rq_client_table *t, rq_err err, rq_slice text)
{
    t->refreshing = false;
    t->refresh_err = err;
    t->refreshed_ns = rq_client_now_ns();
    t->refresh_took_ns = err == RQ_OK ? t->refreshed_ns - t->refresh_begun_ns : 0;
    free(t->refresh_text);
    t->refresh_text =
        text.len == 0 ? NULL : strndup((const char *)text.ptr, text.len > 400 ? 400 : text.len);
    if (err == RQ_OK) {
        rq_arena arena = t->arena;
        rq__region *regions = t->regions;
        if (t->next_count > 0)
            qsort(t->next_regions, t->next_count, sizeof *t->next_regions, by_start);
        t->arena = t->next_arena;
        t->regions = t->next_regions;
        t->region_count = t->next_count;
        t->has_rows = t->next_has_rows;
        t->version++;
        t->next_arena = arena;
        t->next_regions = regions;
        t->next_cap = 0; /* the old array's size is not kept */
        free(t->next_regions);
        t->next_regions = NULL;
        rq__map_replaced(t);
    } else {
        t->client->meta_lost = true;
    }
    rq_arena_clear(&t->next_arena);
    t->next_count = 0;
    t->next_has_rows = false;
    rq__ops_map_known(t);
}

static void ask(rq_client_table *t, bool open);

static void take_answer(void *ctx, const rq_reply *reply)
{
    rq_client_table *t = ctx;
    rq_scan_view v;
    rq_scan_rows rows;
    rq_result_view row;
    if (reply->err != RQ_OK) {
        end_refresh(t, reply->err, reply->text.len > 0 ? reply->text : reply->kind);
        return;
    }
    rq_err rc = rq__scan_response_parse(reply->message, &v);
    if (rc == RQ_OK) {
        rq_cursor cells = rq_cursor_of(reply->cells);
        rq__scan_rows_begin(&v, &rows);
        while ((rc = rq__scan_rows_next(&rows, &row)) == RQ_OK && rc == RQ_OK)
            if ((rc = take_row(t, &row, &cells)) != RQ_OK) break;
        if (rc == RQ_E_END) rc = RQ_OK;
    }
    if (rc != RQ_OK) {
        end_refresh(t, rc, RQ_SLICE_LIT("hbase:meta has malformed rows"));
    } else if (v.more_results && v.more_results_in_region) {
        if (v.has_scanner) t->scanner = v.scanner;
        ask(t, false);
    } else {
        end_refresh(t, RQ_OK, RQ_SLICE_LIT(""));
    }
}

static rq_err put_open(rq_client_table *t)
{
    rq_buf names = {0};
    rq_scan scan = {.family = RQ_SLICE_LIT("info")};
    rq_err rc = rq_buf_printf(&names, "%s,,%s ,,", t->name, t->name);
    size_t start_len = strlen(t->name) + 2;
    if (rc == RQ_OK) {
        scan.start = rq_slice_of(names.ptr, start_len);
        scan.stop = rq_slice_of(names.ptr + start_len, start_len + 1);
        rc = rq__put_region(&t->request, RQ_SLICE_LIT(RQ__META_REGION));
    }
    if (rc == RQ_OK)
        rc = rq__put_scan_open(&t->request, &scan, scan.start, true, ROWS_PER_ANSWER, 0, false);
    rq_buf_clear(&names);
    return rc;
}

static void ask(rq_client_table *t, bool open)
{
    rq_client *c = t->client;
    rq_buf_reset(&t->request);
    if (open) t->sequence = 0;
    rq_err rc = open ? put_open(t)
                     : rq__put_scan_next(&t->request, &(rq_scan){0}, t->scanner, t->sequence++,
                                         ROWS_PER_ANSWER, 0, false);
    if (rc == RQ_OK)
        rc = rq__conn_call(c->meta, "Scan", RQ__PRIORITY_META, (rq_slice){0},
                           rq_buf_slice(&t->request), (rq_slice){0}, take_answer, t);
    if (rc != RQ_OK) end_refresh(t, rc, RQ_SLICE_LIT("cannot scan hbase:meta"));
}

/* Stores the addresses of the master and of hbase:meta's server from the registry's answer. If an address
 * has changed, the connection to the old address is retired. */
static void take_found(rq_client *c, const rq__registry_answer *found)
{
    bool moved =
        found->meta.port != c->found.meta.port || strcmp(found->meta.host, c->found.meta.host) != 0;
    if (found->master.port != c->found.master.port ||
        strcmp(found->master.host, c->found.master.host) != 0) {
        rq__client_retire_conn(c, c->master);
        c->master = NULL;
    }
    c->found = *found;
    if (!moved) return;
    rq__client_retire_conn(c, c->meta);
    c->meta = NULL;
}

/* hbase:meta as a table: its map is not in itself. One region, where the registry says. */
static rq_err take_meta(rq_client_table *t)
{
    rq__region *r = t->next_regions = calloc(1, sizeof *r);
    if (r == NULL) return RQ_E_NO_MEMORY;
    rq_buf_reset(&t->request);
    RQ_TRY(rq__client_server(t->client, &t->client->found.meta, &r->server));
    RQ_TRY(rq__put_region(&t->request, RQ_SLICE_LIT(RQ__META_REGION)));
    r->specifier = rq_arena_copy(&t->next_arena, rq_buf_slice(&t->request));
    if (r->specifier.ptr == NULL) return RQ_E_NO_MEMORY;
    t->next_count = 1;
    return RQ_OK;
}

static bool is_meta(const rq_client_table *t)
{
    return strcmp(t->name, "hbase:meta") == 0;
}

static void read_meta(rq_client_table *t)
{
    rq_client *c = t->client;
    rq_err rc = RQ_OK;
    t->refresh_begun_ns = rq_client_now_ns();
    if (is_meta(t)) {
        end_refresh(t, take_meta(t), RQ_SLICE_LIT(""));
        return;
    }
    if (c->meta == NULL) rc = rq__client_conn(c, &c->found.meta, "ClientService", NULL, &c->meta);
    if (rc == RQ_OK)
        ask(t, true);
    else
        end_refresh(t, rc, RQ_SLICE_LIT(""));
}

void rq__map_registry_answered(rq_client *c)
{
    const rq__registry *r = &c->registry;
    if (r->rc == RQ_OK) {
        take_found(c, &r->found);
        c->meta_lost = c->master_lost = false;
    }
    for (rq_client_table *t = c->tables; t != NULL; t = t->next) {
        if (!t->awaits_registry) continue;
        t->awaits_registry = false;
        if (r->rc == RQ_OK)
            read_meta(t);
        else
            end_refresh(t, r->rc, rq_slice_cstr(r->why.message));
    }
}

/* Asks the registry for the location of hbase:meta, and reads the map after its answer. */
static void find_meta(rq_client_table *t)
{
    rq_client *c = t->client;
    rq_error why = {0};
    rq_err rc = c->registry.asking ? RQ_OK : rq__registry_ask(c, RQ__REGISTRY_TIMEOUT_NS, &why);
    if (rc == RQ_OK)
        t->awaits_registry = true;
    else
        end_refresh(t, rc, rq_slice_cstr(why.message));
}

void rq__map_refresh(rq_client_table *t)
{
    rq_client *c = t->client;
    if (t->refreshing) return;
    t->refreshing = true;
    if (is_meta(t) && t->region_count > 0) c->meta_lost = true; /* it is not where it was */
    if (c->stopped)
        end_refresh(t, RQ_E_CLOSED, RQ_SLICE_LIT(""));
    else if (c->meta_lost)
        find_meta(t);
    else
        read_meta(t);
}

/* While a region has no server and its replicas answer, the map is read again after a pause. Reading the map of a
 * large table takes seconds, so the pause is this factor times the duration of the last reading; it has a minimum
 * and a maximum. */
#define LACKS_SERVER_NS 1000000000
#define LACKS_SERVER_FACTOR 20
#define LACKS_SERVER_MAX_NS 60000000000

static int64_t pause_without_server(const rq_client_table *t)
{
    const int64_t most = LACKS_SERVER_MAX_NS / LACKS_SERVER_FACTOR;
    int64_t took = t->refresh_took_ns < most ? t->refresh_took_ns : most;
    int64_t pause = took * LACKS_SERVER_FACTOR;
    return pause > LACKS_SERVER_NS ? pause : LACKS_SERVER_NS;
}

void rq__map_lacks_server(rq_client_table *t)
{
    if (rq_client_now_ns() - t->refreshed_ns >= pause_without_server(t)) rq__map_refresh(t);
}
