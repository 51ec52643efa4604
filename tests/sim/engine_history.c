/* SPDX-License-Identifier: Apache-2.0 */
/* The random history of a region; see engine_history.h. */
#include "engine_history.h"
#include "wal/tail.h"

#include "proto/hbase.pb-c.h"
#include "region/mob_cleaner.h"
#include "region/region_scanner.h"
#include "store/mob.h"
#include "wal/wal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define OPS_MAX 4

static void note_fault(history *h, const char *what, const char *detail)
{
    if (h->fault[0] != '\0') return;
    snprintf(h->fault, sizeof h->fault, "%s: %s", what, detail);
}

static bool is_excused(const history *h)
{
    return h->faults || rq_sim_is_cut(h->sim);
}

/* Whether a full disk may cause this error, after which clients retry the op. */
static bool is_refusal(history *h, rq_err rc, const rq_error *why)
{
    if (!h->full || rc != RQ_E_REGION_TOO_BUSY || strstr(why->message, "space") == NULL)
        return false;
    h->refused++;
    return true;
}

static bool is_short_of_space(const history *h, rq_err rc)
{
    return h->full && rc == RQ_E_NO_SPACE;
}

static uint64_t below(history *h, uint64_t bound)
{
    return rq_sim_random(h->sim) % bound;
}

/* --- life ------------------------------------------------------------------------------------- */

static Pb__BytesBytesPair pair(const char *key, const char *value)
{
    Pb__BytesBytesPair p = PB__BYTES_BYTES_PAIR__INIT;
    p.first = (ProtobufCBinaryData){strlen(key), (uint8_t *)(uintptr_t)key};
    p.second = (ProtobufCBinaryData){strlen(value), (uint8_t *)(uintptr_t)value};
    return p;
}

static void make_schema(history *h, uint64_t seed)
{
    static const char *const versions[] = {"1", "3"};
    Pb__BytesBytesPair kept = pair("VERSIONS", versions[seed % 2]);
    Pb__BytesBytesPair is_mob = pair("IS_MOB", "true");
    Pb__BytesBytesPair from_one = pair("MOB_THRESHOLD", "1");
    Pb__BytesBytesPair from_zero = pair("MOB_THRESHOLD", "0");
    Pb__BytesBytesPair scope = pair("REPLICATION_SCOPE", h->replicated ? "1" : "0");
    Pb__BytesBytesPair *of_a[] = {&scope, &is_mob, &from_one};
    Pb__BytesBytesPair *of_b[] = {&scope, &kept, &is_mob, &from_zero};
    Pb__ColumnFamilySchema a = PB__COLUMN_FAMILY_SCHEMA__INIT;
    a.name = (ProtobufCBinaryData){1, (uint8_t *)(uintptr_t) "a"};
    a.attributes = of_a;
    a.n_attributes = h->mob ? 3 : 1;
    Pb__ColumnFamilySchema b = a;
    b.name.data = (uint8_t *)(uintptr_t) "b";
    b.attributes = of_b;
    b.n_attributes = h->mob ? 4 : 2;
    Pb__ColumnFamilySchema *families[] = {&a, &b};
    Pb__TableName name = PB__TABLE_NAME__INIT;
    name.namespace_ = (ProtobufCBinaryData){7, (uint8_t *)(uintptr_t) "default"};
    name.qualifier = (ProtobufCBinaryData){1, (uint8_t *)(uintptr_t) "t"};
    Pb__BytesBytesPair tracker = pair("hbase.store.file-tracker.impl", "FILE");
    Pb__BytesBytesPair *of_t[] = {&tracker};
    Pb__TableSchema t = PB__TABLE_SCHEMA__INIT;
    t.attributes = of_t;
    t.n_attributes = h->lists ? 1 : 0;
    t.table_name = &name;
    t.column_families = families;
    t.n_column_families = 2;
    uint8_t bytes[512];
    size_t len = pb__table_schema__pack(&t, bytes);
    RQ_ASSERT(rq_table_schema_parse(rq_slice_of(bytes, len), &h->schema, NULL) == RQ_OK);
}

void history_init(history *h, rq_sim *sim, uint64_t seed)
{
    *h = (history){.sim = sim, .env = rq_sim_env(sim), .seed = seed};
    make_schema(h, seed);
    RQ_ASSERT(rq_config_new(&h->config) == RQ_OK);
    static const char *const settings[] = {
        "rorqual.memory=33554432",
        "rorqual.wal.file.size=16384",
        "rorqual.wal.max=65536",
        "hbase.hregion.memstore.flush.size=65536",
        "hbase.hregion.percolumnfamilyflush.size.lower.bound.min=1024",
        "hbase.hstore.compaction.min.size=1048576",
    };
    for (size_t i = 0; i < RQ_ARRAY_LEN(settings); i++)
        RQ_ASSERT(rq_config_set_pair(h->config, settings[i], NULL) == RQ_OK);
    if (seed % 5 == 4) /* every fifth history compacts as soon as there are two files */
        RQ_ASSERT(rq_config_set_pair(h->config, "hbase.hstore.compaction.min=2", NULL) == RQ_OK);
    RQ_ASSERT(rq_region_info_make(&h->arena, RQ_SLICE_LIT("default"), RQ_SLICE_LIT("t"),
                                  (rq_slice){0}, (rq_slice){0}, 1700000000000, 0,
                                  &h->info) == RQ_OK);
}

/* After a change of the history's kind. */
static void remake_schema(history *h)
{
    rq_table_schema_unref(h->schema);
    make_schema(h, h->seed);
}

void history_list_files(history *h)
{
    h->lists = true;
    remake_schema(h);
}

void history_hand_over(history *h)
{
    RQ_ASSERT(rq_config_set_pair(h->config, "rorqual.wal.sync=handover", NULL) == RQ_OK);
}

void history_make_mob(history *h)
{
    h->mob = true;
    remake_schema(h);
}

void history_replicate(history *h)
{
    h->replicated = true;
    remake_schema(h);
}

void history_clear(history *h)
{
    rq_table_schema_unref(h->schema);
    rq_config_free(h->config);
    rq_arena_clear(&h->arena);
}

static rq_err open_all(history *h, rq_error *why)
{
    rq_engine_options o = {.config = h->config};
    RQ_TRY(rq_engine_open(h->env, &o, &h->engine, why));
    if (h->replicated) rq_wal_keep_from(rq_engine_wal(h->engine), 0);
    /* As the catalog does: the table's folder is durable before there is a region in it. */
    RQ_TRY(rq_vfs_mkdirs(h->env->vfs, "data/default/t", why));
    RQ_TRY(rq_region_create(h->engine, &h->info, h->schema, why));
    RQ_TRY(rq_region_open(h->engine, &h->info, h->schema, &h->region, why));
    RQ_TRY(rq_sim_lane_new(h->sim, &h->lane));
    return rq_writer_new(h->engine, h->lane, &h->writer);
}

bool history_open(history *h)
{
    rq_error why = {0};
    rq_err rc = open_all(h, &why);
    if (rc == RQ_OK) return true;
    if (!is_excused(h)) note_fault(h, "open", why.message);
    history_close(h, false);
    return false;
}

void history_close(history *h, bool clean)
{
    rq_error why = {0};
    rq_err rc = RQ_OK;
    if (h->engine == NULL) return;
    if (h->writer != NULL) rq__writer_push(h->writer);
    if (h->region != NULL) {
        rc = rq_region_close(h->region, !clean, &why);
        if (rc != RQ_OK && clean) {
            if (!is_excused(h)) note_fault(h, "close", why.message);
            clean = false;
            rc = rq_region_close(h->region, true, NULL);
            RQ_ASSERT(rc == RQ_OK);
        }
    }
    rq_sim_run(h->sim);
    rq_writer_free(h->writer);
    h->writer = NULL;
    if (h->lane != NULL) h->env->executor->lane_free(h->env->executor, h->lane);
    h->lane = NULL;
    rq_region_unref(h->region);
    h->region = NULL;
    why = (rq_error){0};
    rc = rq_engine_close(h->engine, clean, &why);
    h->engine = NULL;
    if (rc != RQ_OK && clean && !is_excused(h)) note_fault(h, "stop", why.message);
    rq_sim_run(h->sim);
}

/* --- writing ---------------------------------------------------------------------------------- */

typedef struct batch {
    rq_write write;
    history *history;
    rq_row_op ops[OPS_MAX];
    rq_mutation mutations[OPS_MAX][2];
    rq_cell cells[OPS_MAX][3];
    char rows[OPS_MAX][8];
    char values[OPS_MAX][12];
    unsigned row[OPS_MAX];
    uint32_t number[OPS_MAX];
    char filler[256];
    rq_latch latch;
    bool waited;
    unsigned reopens; /* value of reopens when the batch was passed to the writer */
} batch;

/* Whether the batch was collected for a region that closed before it was submitted. */
static bool came_late(const batch *b, rq_err rc)
{
    return rc == RQ_E_NOT_SERVING_REGION && b->reopens != b->history->reopens;
}

static bool deletes_x(uint32_t k)
{
    return k % 3 == 0;
}

static rq_cell cell(const char *family, const char *qualifier, uint32_t k, uint8_t type,
                    const char *value)
{
    return (rq_cell){.family = (const uint8_t *)family,
                     .family_len = 1,
                     .qualifier = (const uint8_t *)qualifier,
                     .qualifier_len = 1,
                     .timestamp = k,
                     .type = type,
                     .value = (const uint8_t *)value,
                     .value_len = value == NULL ? 0 : (uint32_t)strlen(value)};
}

static void make_op(history *h, batch *b, unsigned i, unsigned row)
{
    uint32_t k = ++h->rows[row].issued;
    b->row[i] = row;
    b->number[i] = k;
    snprintf(b->rows[i], sizeof b->rows[i], "r%u", row);
    snprintf(b->values[i], sizeof b->values[i], "%u", k);
    b->cells[i][0] = cell("a", "v", k, RQ_TYPE_PUT, b->values[i]);
    b->cells[i][1] = cell("b", "v", k, RQ_TYPE_PUT, b->values[i]);
    b->cells[i][2] = deletes_x(k) ? cell("a", "x", k, RQ_TYPE_DELETE_COLUMN, NULL)
                                  : cell("a", "x", k, RQ_TYPE_PUT, b->values[i]);
    rq_slice name = rq_slice_cstr(b->rows[i]);
    b->mutations[i][0] =
        (rq_mutation){.type = RQ_MUTATE_PUT, .row = name, .cells = b->cells[i], .cell_count = 2};
    b->mutations[i][1] = (rq_mutation){
        .type = deletes_x(k) ? RQ_MUTATE_DELETE : RQ_MUTATE_PUT,
        .row = name,
        .cells = &b->cells[i][2],
        .cell_count = 1,
    };
    b->ops[i] = (rq_row_op){.mutations = b->mutations[i], .mutation_count = 2};
    if (deletes_x(k) || below(h, 2) == 0) return;
    b->mutations[i][0].cell_count = 3; /* one put over both families */
    b->ops[i].mutation_count = 1;
}

static void on_done(rq_write *w)
{
    batch *b = RQ_CONTAINER_OF(w, batch, write);
    history *h = b->history;
    for (size_t i = 0; i < w->op_count; i++) {
        history_row *r = &h->rows[b->row[i]];
        if (b->ops[i].rc == RQ_OK) {
            if (b->number[i] > r->acked) r->acked = b->number[i];
        } else if (!is_excused(h) && !came_late(b, b->ops[i].rc) &&
                   !is_refusal(h, b->ops[i].rc, b->ops[i].why)) {
            h->failed_ops++;
            note_fault(h, "write", b->ops[i].why == NULL ? "" : b->ops[i].why->message);
        }
        rq_row_op_clear(&b->ops[i]);
    }
    h->in_flight--;
    if (b->waited)
        h->env->executor->latch_open(&b->latch, RQ_OK);
    else
        free(b);
}

static void write_rows(history *h, bool wait)
{
    batch *b = calloc(1, sizeof *b);
    unsigned count = 1 + (unsigned)below(h, OPS_MAX);
    unsigned first = (unsigned)below(h, HISTORY_ROWS);
    b->history = h;
    b->waited = wait;
    b->reopens = h->reopens;
    for (unsigned i = 0; i < count; i++)
        make_op(h, b, i, (first + i) % HISTORY_ROWS);
    b->write = (rq_write){.ops = b->ops, .op_count = count, .writer = h->writer, .done = on_done};
    if (wait) h->env->executor->latch_init(h->env->executor, &b->latch);
    h->in_flight++;
    rq_region_write(h->region, &b->write);
    if (wait || below(h, 3) == 0) rq__writer_push(h->writer);
    if (!wait) return;
    (void)rq_sim_run_until(h->sim, &b->latch);
    h->env->executor->latch_destroy(&b->latch);
    free(b);
}

static rq_err increment(history *h, unsigned i, int64_t delta, uint64_t nonce)
{
    char row[8];
    uint8_t value[8];
    snprintf(row, sizeof row, "c%u", i);
    rq_put_be64(value, (uint64_t)delta);
    rq_cell c = cell("b", "n", 0, RQ_TYPE_PUT, NULL);
    c.timestamp = RQ_TIMESTAMP_LATEST;
    c.value = value;
    c.value_len = 8;
    rq_mutation m = {.type = RQ_MUTATE_INCREMENT,
                     .row = rq_slice_cstr(row),
                     .cells = &c,
                     .cell_count = 1,
                     .return_results = true};
    rq_row_op op = {.mutations = &m, .mutation_count = 1, .nonce_group = 7, .nonce = nonce};
    rq_error why;
    rq_error_clear(&why);
    rq_err rc = rq_region_write_sync(h->region, &op, 1, &why);
    if (rc != RQ_OK && !is_excused(h) && !is_refusal(h, rc, &why))
        note_fault(h, "increment", why.message);
    rq_row_op_clear(&op);
    return rc;
}

static void count_up(history *h)
{
    unsigned i = (unsigned)below(h, HISTORY_COUNTERS);
    history_counter *c = &h->counters[i];
    if (c->in_flight != 0) return; /* its outcome is unknown until history_check */
    c->in_flight = 1 + (int64_t)below(h, 9);
    c->last_delta = c->in_flight;
    c->nonce = ++h->nonces;
    if (increment(h, i, c->in_flight, c->nonce) != RQ_OK) return;
    c->acked += c->in_flight;
    c->in_flight = 0;
}

/* --- steps ------------------------------------------------------------------------------------ */

static void flush(history *h, const char *family)
{
    rq_error why = {0};
    rq_err rc = rq_region_flush(h->region, rq_slice_cstr(family), NULL, &why);
    if (rc != RQ_OK && !is_excused(h) && !is_short_of_space(h, rc))
        note_fault(h, "flush", why.message);
}

static void compact(history *h, bool major)
{
    rq_error why = {0};
    rq_err rc = rq_region_compact(h->region, (rq_slice){0}, major, &why);
    if (rc != RQ_OK && !is_excused(h)) note_fault(h, "compact", why.message);
}

static void clean_mob(history *h)
{
    static const char *const families[] = {"a", "b"};
    rq_error why = {0};
    size_t archived;
    rq_mob_cleaning what = {.tables = &h->schema,
                            .table_count = 1,
                            .now_ms = h->env->executor->now_ms(h->env->executor)};
    rq_err rc = rq_mob_clean(h->engine, &what, &archived, &why);
    rq_arena a = {0};
    for (size_t i = 0; rc == RQ_OK && i < RQ_ARRAY_LEN(families); i++) {
        const char *dir = rq_mob_family_dir(&a, RQ_SLICE_LIT("t"), rq_slice_cstr(families[i]));
        const char *archive = rq_arena_printf(&a, "archive%s", dir + strlen(RQ_MOB_DIR));
        rc = rq_vfs_remove_tree(h->env->vfs, archive, &why);
    }
    rq_arena_clear(&a);
    if (rc != RQ_OK && !is_excused(h)) note_fault(h, "clean", why.message);
}

/* Closes and reopens the region while the engine runs; with `abort` its memstore is lost and
 * restored from the log. */
static void reopen(history *h, bool abort)
{
    rq_error why = {0};
    h->reopens++;
    rq_err rc = rq_region_close(h->region, abort, &why);
    if (rc != RQ_OK && !abort) rc = rq_region_close(h->region, true, &why);
    if (rc == RQ_OK) {
        rq_region_unref(h->region);
        h->region = NULL;
        why = (rq_error){0};
        rc = rq_region_open(h->engine, &h->info, h->schema, &h->region, &why);
        /* A failed call may succeed the next time. */
        if (rc != RQ_OK && is_excused(h))
            rc = rq_region_open(h->engine, &h->info, h->schema, &h->region, NULL);
    }
    if (rc != RQ_OK && !is_excused(h)) note_fault(h, "reopen", why.message);
}

static void step(history *h)
{
    switch (
        below(h, h->full ? 38 : 40)) { /* models one life of a server: the region is not reopened
                                        * while the disk is full */
    case 38:
        reopen(h, false);
        return;
    case 39:
        reopen(h, true);
        return;
    default:
        break;
    }
    if (h->mob && below(h, 12) == 0) {
        clean_mob(h);
        return;
    }
    switch (below(h, 20)) {
    case 0:
        flush(h, "");
        break;
    case 1:
        flush(h, below(h, 2) == 0 ? "a" : "b");
        break;
    case 2:
        compact(h, below(h, 2) == 0);
        break;
    case 3:
        rq_sim_advance(h->sim, below(h, 3) * 200 * 1000 * 1000);
        break;
    case 4:
        rq_sim_run(h->sim);
        break;
    case 5:
    case 6:
    case 7:
        count_up(h);
        break;
    case 8:
    case 9:
    case 10:
    case 11:
        write_rows(h, true);
        break;
    default:
        write_rows(h, false);
        break;
    }
}

void history_steps(history *h, unsigned count)
{
    for (unsigned i = 0; i < count && !rq_sim_is_cut(h->sim) && h->fault[0] == '\0'; i++)
        if (h->region != NULL) step(h);
    rq_wal_push(rq_engine_wal(h->engine), NULL);
    rq_sim_run(h->sim);
}

/* --- checking --------------------------------------------------------------------------------- */

typedef struct seen {
    int64_t v[2]; /* values of a:v and b:v; -1: absent */
    int64_t x;
    int64_t n;
} seen;

static int64_t number_of(const rq_cell *c)
{
    char text[16] = "";
    memcpy(text, c->value, c->value_len < 15 ? c->value_len : 15);
    return atoll(text);
}

static void take_cell(void *ctx, const rq_cell *c)
{
    seen *s = ctx;
    if (c->qualifier[0] == 'v') s->v[c->family[0] - 'a'] = number_of(c);
    if (c->qualifier[0] == 'x') s->x = number_of(c);
    if (c->qualifier[0] == 'n' && c->value_len == 8) s->n = (int64_t)rq_get_be64(c->value);
}

rq_err history_scan(history *h, const rq_scan *scan, void (*take)(void *ctx, const rq_cell *c),
                    void *ctx, rq_error *why)
{
    rq_arena arena = {0};
    rq_cellblock out = {0};
    rq_read_ctx read = {.may_block = true};
    rq_region_scanner *s = NULL;
    rq_scan_limits none = {0};
    rq_scan_state state = RQ_SCAN_MORE;
    rq_epoch_member pin;
    rq_epoch_pin(h->env->epoch, &pin);
    rq_err rc = rq_region_scanner_open(h->region, scan, 0, &arena, &s, why);
    while (rc == RQ_OK && state != RQ_SCAN_DONE)
        rc = rq_region_scanner_next(s, &none, &read, &out, &state, why);
    rq_region_scanner_close(s);
    rq_epoch_unpin(h->env->epoch, &pin);
    rq_cursor at = rq_cursor_of(rq_buf_slice(&out.bytes));
    rq_cell c;
    while (rc == RQ_OK && rq_cellblock_next(&at, &c, NULL) == RQ_OK)
        take(ctx, &c);
    rq_read_ctx_clear(&read);
    rq_cellblock_clear(&out);
    rq_arena_clear(&arena);
    return rc;
}

static bool read_row(history *h, const char *row, seen *ret)
{
    *ret = (seen){.v = {-1, -1}, .x = -1, .n = 0};
    rq_scan scan = rq_scan_of_row(rq_slice_cstr(row));
    scan.cache_blocks = false;
    rq_error why = {0};
    rq_err rc = history_scan(h, &scan, take_cell, ret, &why);
    if (rc != RQ_OK && !is_excused(h)) note_fault(h, "read", why.message);
    return rc == RQ_OK;
}

static void check_row(history *h, unsigned i)
{
    char row[8];
    char detail[200];
    seen s;
    const history_row *r = &h->rows[i];
    snprintf(row, sizeof row, "r%u", i);
    if (!read_row(h, row, &s)) return;
    int64_t k = s.v[0] < 0 ? 0 : s.v[0];
    int64_t x = k == 0 || deletes_x((uint32_t)k) ? -1 : k;
    snprintf(detail, sizeof detail,
             "%s: a:v %" PRId64 ", b:v %" PRId64 ", a:x %" PRId64 "; acknowledged %u, issued %u",
             row, s.v[0], s.v[1], s.x, r->acked, r->issued);
    if (s.v[0] != s.v[1] || s.x != x) note_fault(h, "torn", detail);
    if (k < r->acked) note_fault(h, "lost", detail);
    if (k > r->issued) note_fault(h, "invented", detail);
}

/* Retries an increment that was acknowledged long ago, as if its client had not received the
 * response. */
static void repeat_old(history *h, unsigned i)
{
    char row[8];
    char detail[200];
    seen s;
    const history_counter *c = &h->counters[i];
    if (c->in_flight != 0 || c->last_delta == 0) return;
    if (increment(h, i, c->last_delta, c->nonce) != RQ_OK) return;
    snprintf(row, sizeof row, "c%u", i);
    if (!read_row(h, row, &s)) return;
    snprintf(detail, sizeof detail,
             "%s: %" PRId64 " after an acknowledged increment was repeated; %" PRId64 " expected",
             row, s.n, c->acked);
    if (s.n != c->acked) note_fault(h, "nonce", detail);
}

static void check_counter(history *h, unsigned i)
{
    char row[8];
    char detail[200];
    seen s;
    history_counter *c = &h->counters[i];
    snprintf(row, sizeof row, "c%u", i);
    if (!read_row(h, row, &s)) return;
    snprintf(detail, sizeof detail, "%s: %" PRId64 "; acknowledged %" PRId64 ", in flight %" PRId64,
             row, s.n, c->acked, c->in_flight);
    if (s.n != c->acked && s.n != c->acked + c->in_flight) note_fault(h, "counter", detail);
    if (c->in_flight == 0 || h->fault[0] != '\0') return;
    if (increment(h, i, c->in_flight, c->nonce) != RQ_OK) return;
    c->acked += c->in_flight;
    c->in_flight = 0;
    if (!read_row(h, row, &s)) return;
    snprintf(detail, sizeof detail, "%s: %" PRId64 " after the retry; %" PRId64 " expected", row,
             s.n, c->acked);
    if (s.n != c->acked) note_fault(h, "nonce", detail);
}

void history_check(history *h)
{
    if (h->region == NULL) return; /* the region failed; the next start opens it again */
    if (h->mob) clean_mob(h);
    for (unsigned i = 0; i < HISTORY_ROWS; i++)
        check_row(h, i);
    for (unsigned i = 0; i < HISTORY_COUNTERS; i++) {
        check_counter(h, i);
        repeat_old(h, i);
    }
}
