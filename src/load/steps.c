/* SPDX-License-Identifier: Apache-2.0 */
/* The operations on rows. Each step begins in rq__begin_…, continues in the callbacks of its
 * requests, and ends with rq__slot_end_result. With a history, versions are timestamps and every
 * row read is checked; without one, cells are only counted. */
#include "load/load_priv.h"

#include "base/macros.h"

#include <stdlib.h>

#define COUNTER_QUALIFIER "n"
#define APPEND_QUALIFIER "a"
#define LOOK_FOR_QUIET 64 /* keys tried to find one that is not being written to */

/* --- keys and versions ------------------------------------------------------------------------ */

static uint64_t draw_key(rq__bench *b)
{
    return rq__keys_draw(&b->keys, b->inserted > 0 ? b->inserted : 1, &b->random);
}

static rq_row_history *history_of(rq__bench *b, uint64_t key)
{
    return b->rows.history != NULL ? &b->rows.history[key] : NULL;
}

static uint32_t take_version(rq__bench *b, uint64_t key, bool is_delete)
{
    rq_row_history *h = history_of(b, key);
    if (h == NULL) return 0;
    uint32_t v = (h->put_sent > h->delete_sent ? h->put_sent : h->delete_sent) + 1;
    if (is_delete)
        h->delete_sent = v;
    else
        h->put_sent = v;
    return v;
}

static void acked(rq__bench *b, uint64_t key, uint32_t version, bool is_delete)
{
    rq_row_history *h = history_of(b, key);
    if (h == NULL) return;
    uint32_t *newest = is_delete ? &h->delete_acked : &h->put_acked;
    if (version > *newest) *newest = version;
}

static int64_t timestamp_of(const rq__bench *b, uint32_t version)
{
    return b->rows.history != NULL ? (int64_t)(b->rows.base + version) : RQ_TIMESTAMP_LATEST;
}

/* The row's bytes replace those in the slot. */
static rq_err set_row(rq__slot *s, uint64_t key)
{
    rq_buf_reset(&s->row);
    return rq__rows_key(&s->bench->rows, key, &s->row);
}

/* The mutation that puts all columns of the key; it borrows the slot's buffers. */
static rq_err make_put(rq__slot *s, uint64_t key, uint32_t version, rq_mutate *ret)
{
    rq__bench *b = s->bench;
    uint64_t v = b->rows.history != NULL ? b->rows.base + version : ++b->version;
    RQ_TRY(set_row(s, key));
    rq_buf_reset(&s->values);
    for (unsigned i = 0; i < b->rows.columns; i++) {
        rq_cell *c = &s->cells[i];
        size_t at = s->values.len;
        RQ_TRY(rq__rows_value(&b->rows, key, i, v, &s->values));
        *c = (rq_cell){.type = RQ_TYPE_PUT, .timestamp = timestamp_of(b, version)};
        c->value_len = (uint32_t)(s->values.len - at);
    }
    const uint8_t *value = s->values.ptr;
    for (unsigned i = 0; i < b->rows.columns; i++) {
        rq_cell *c = &s->cells[i];
        const char *family = b->rows.family_names[i % b->rows.families];
        const char *qualifier = b->rows.qualifier_names[i];
        c->row = s->row.ptr;
        c->row_len = (uint16_t)s->row.len;
        c->family = (const uint8_t *)family;
        c->family_len = (uint8_t)strlen(family);
        c->qualifier = (const uint8_t *)qualifier;
        c->qualifier_len = (uint32_t)strlen(qualifier);
        c->value = value;
        value += c->value_len;
    }
    if (!b->loading && s->counts) {
        b->report->rows_written++;
        b->report->bytes_written += s->values.len;
    }
    *ret = (rq_mutate){.kind = RQ_MUTATE_PUT,
                       .row = rq_buf_slice(&s->row),
                       .cells = s->cells,
                       .cell_count = b->rows.columns};
    return RQ_OK;
}

/* Counts the cells of a row read, and checks them if requested. True: the row exists. */
static bool take_row(rq__slot *s, uint64_t key, rq_row_bounds bounds, rq_op_result *r)
{
    rq__bench *b = s->bench;
    uint64_t cells = 0;
    uint64_t bytes = 0;
    if (b->o->verify) {
        const char *wrong = rq__rows_check(&b->rows, key, bounds, r, &cells, &bytes);
        b->report->checked++;
        if (wrong != NULL) rq__note_wrong(b, key, wrong);
    } else {
        cells = r->row.count;
        bytes = (uint64_t)b->rows.columns * (uint64_t)rq__sizes_mean(&b->rows.value_len);
    }
    if (s->counts && !b->sweeping) {
        if (cells > 0) {
            b->report->rows_read++;
            b->report->cells_read += cells;
            b->report->bytes_read += bytes;
        } else {
            b->report->misses++;
        }
    }
    return cells > 0;
}

/* --- one row ---------------------------------------------------------------------------------- */

static void got(rq_op *op, void *ctx, const rq_op_result *r)
{
    rq__slot *s = ctx;
    (void)op;
    if (r->err == RQ_OK) {
        rq_op_result copy = *r;
        take_row(s, s->key, s->bounds, &copy);
    }
    rq__slot_end_result(s, r);
}

static rq_err get_row(rq__slot *s, uint64_t key, rq_op_done done)
{
    RQ_TRY(set_row(s, key));
    s->key = key;
    s->bounds = rq__rows_bounds(&s->bench->rows, key);
    rq_get g = {.row = rq_buf_slice(&s->row)};
    return rq_op_get(s->op, s->bench->table, &g, done);
}

rq_err rq__begin_get(rq__slot *s)
{
    return get_row(s, draw_key(s->bench), got);
}

static void was_put(rq_op *op, void *ctx, const rq_op_result *r)
{
    rq__slot *s = ctx;
    (void)op;
    if (r->err == RQ_OK) acked(s->bench, s->key, s->version, false);
    rq__slot_end_result(s, r);
}

static rq_err put_row(rq__slot *s, uint64_t key, rq_op_done done)
{
    rq_mutate m;
    s->key = key;
    s->version = take_version(s->bench, key, false);
    RQ_TRY(make_put(s, key, s->version, &m));
    return rq_op_mutate(s->op, s->bench->table, &m, done);
}

rq_err rq__begin_put(rq__slot *s)
{
    return put_row(s, draw_key(s->bench), was_put);
}

/* --- new rows --------------------------------------------------------------------------------- */

static bool makes_rows(const rq__slot *s)
{
    return s->step == RQ_LOAD_INSERT || s->step == RQ_LOAD_INGEST;
}

/* Updates the number of keys that certainly exist: all below the lowest one that is still being
 * inserted. `ended` is the slot whose insert has just ended. */
static void move_inserted(rq__bench *b, const rq__slot *ended)
{
    uint64_t lowest = b->issued;
    for (size_t i = 0; i < b->slot_count; i++) {
        const rq__slot *s = &b->slots[i];
        if (s != ended && makes_rows(s) && s->rows_wanted > 0 && s->key < lowest) lowest = s->key;
    }
    b->inserted = lowest;
}

static rq_err take_new_keys(rq__slot *s, uint64_t count)
{
    rq__bench *b = s->bench;
    s->key = b->issued;
    s->rows_wanted = count;
    if (b->rows.history != NULL) RQ_TRY(rq__rows_history(&b->rows, b->issued + count));
    b->issued += count;
    return RQ_OK;
}

static void inserted(rq_op *op, void *ctx, const rq_op_result *r)
{
    rq__slot *s = ctx;
    s->rows_wanted = 0;
    move_inserted(s->bench, s);
    was_put(op, ctx, r);
}

rq_err rq__begin_insert(rq__slot *s)
{
    RQ_TRY(take_new_keys(s, 1));
    return put_row(s, s->key, inserted);
}

/* --- batches ---------------------------------------------------------------------------------- */

static rq_err add_row(rq__slot *s, uint64_t key, bool is_write)
{
    rq__bench *b = s->bench;
    if (s->batch_count == s->batch_cap) {
        size_t cap = s->batch_cap == 0 ? 64 : s->batch_cap * 2;
        rq__batch_row *rows = realloc(s->batch, cap * sizeof *rows);
        if (rows == NULL) return RQ_E_NO_MEMORY;
        s->batch = rows;
        s->batch_cap = cap;
    }
    rq__batch_row *row = &s->batch[s->batch_count++];
    *row = (rq__batch_row){.key = key, .bounds = rq__rows_bounds(&b->rows, key)};
    if (!is_write) {
        RQ_TRY(set_row(s, key));
        rq_get g = {.row = rq_buf_slice(&s->row)};
        return rq_op_batch_get(s->op, &g);
    }
    rq_mutate m;
    row->version = take_version(b, key, false);
    RQ_TRY(make_put(s, key, row->version, &m));
    return rq_op_batch_mutate(s->op, &m);
}

static void batch_item(rq_op *op, void *ctx, uint32_t index, rq_op_result *r)
{
    rq__slot *s = ctx;
    rq__batch_row *row = &s->batch[index];
    (void)op;
    if (r->err != RQ_OK) return; /* the batch's end tells */
    if (s->batch_is_write)
        acked(s->bench, row->key, row->version, false);
    else
        take_row(s, row->key, row->bounds, r);
}

static void batch_done(rq_op *op, void *ctx, const rq_op_result *r)
{
    rq__slot *s = ctx;
    (void)op;
    if (makes_rows(s)) {
        s->rows_wanted = 0;
        move_inserted(s->bench, s);
    }
    rq__slot_end_result(s, r);
}

static void batch_begin(rq__slot *s, bool is_write)
{
    s->batch_count = 0;
    s->batch_is_write = is_write;
    rq_op_batch_begin(s->op, s->bench->table);
}

static rq_err batch_of_known(rq__slot *s, bool is_write)
{
    batch_begin(s, is_write);
    for (unsigned i = 0; i < s->bench->o->batch; i++)
        RQ_TRY(add_row(s, draw_key(s->bench), is_write));
    return rq_op_batch_run(s->op, batch_item, batch_done);
}

static rq_err batch_of_range(rq__slot *s, uint64_t first, uint64_t count, bool is_write)
{
    batch_begin(s, is_write);
    for (uint64_t i = 0; i < count; i++)
        RQ_TRY(add_row(s, first + i, is_write));
    return rq_op_batch_run(s->op, batch_item, batch_done);
}

rq_err rq__begin_multi_get(rq__slot *s)
{
    return batch_of_known(s, false);
}

rq_err rq__begin_multi_put(rq__slot *s)
{
    return batch_of_known(s, true);
}

rq_err rq__begin_ingest(rq__slot *s)
{
    RQ_TRY(take_new_keys(s, s->bench->o->batch));
    return batch_of_range(s, s->key, s->rows_wanted, true);
}

rq_err rq__begin_load_rows(rq__slot *s, uint64_t first, uint64_t count)
{
    return batch_of_range(s, first, count, true);
}

/* --- scans ------------------------------------------------------------------------------------ */

/* The order of rows as a number. */
static uint64_t place_of(const rq__bench *b, uint64_t key)
{
    return b->rows.hashed ? rq__mix64(key) : key;
}

static const char *check_order(const rq__slot *s, uint64_t key)
{
    const rq__bench *b = s->bench;
    bool back = s->step == RQ_LOAD_SCAN_REVERSE;
    uint64_t place = place_of(b, key);
    if (s->rows_got == 0) return NULL;
    uint64_t last = place_of(b, s->last_key);
    if (back ? place >= last : place <= last) return "a row out of order";
    /* Sorted keys that existed when the scan began must be adjacent. */
    if (!b->rows.hashed && key < s->key && place != (back ? last - 1 : last + 1))
        return "a scan skipped a row";
    return NULL;
}

static void scanned_row(rq_op *op, void *ctx, uint32_t index, rq_op_result *r)
{
    rq__slot *s = ctx;
    rq__bench *b = s->bench;
    (void)op;
    (void)index;
    if (!b->o->verify) {
        take_row(s, 0, (rq_row_bounds){0}, r);
        s->rows_got++;
        return;
    }
    rq_op_result look = *r;
    rq_cell c;
    uint64_t key = 0;
    if (rq_result_next(&look.row, &look.cells, &c) != RQ_OK ||
        !rq__rows_number(&b->rows, rq_cell_row(&c), &key)) {
        rq__note_wrong(b, key, "a row that was never written");
        return;
    }
    const char *wrong = check_order(s, key);
    if (wrong != NULL) rq__note_wrong(b, key, wrong);
    /* The scan began before later acknowledged writes: only the oldest version is certain. */
    rq_row_bounds bounds = rq__rows_bounds(&b->rows, key);
    if (bounds.put_acked > 1) bounds.put_acked = 1;
    bounds.delete_acked = 0;
    take_row(s, key, bounds, r);
    s->last_key = key;
    s->rows_got++;
}

static void scan_done(rq_op *op, void *ctx, const rq_op_result *r)
{
    rq__slot *s = ctx;
    (void)op;
    if (r->err == RQ_OK && s->bench->o->verify && s->rows_got < s->rows_wanted)
        rq__note_wrong(s->bench, s->last_key, "a scan ended too early");
    rq__slot_end_result(s, r);
}

/* The slot's key: keys below it existed when the scan began. */
static rq_err scan(rq__slot *s, const rq_scan *what)
{
    s->key = s->bench->inserted;
    s->rows_got = 0;
    return rq_op_scan(s->op, s->bench->table, what, scanned_row, scan_done);
}

static rq_err scan_some(rq__slot *s, bool back)
{
    rq__bench *b = s->bench;
    uint64_t key = draw_key(b);
    uint64_t limit = rq__sizes_of(&b->o->scan_rows, rq_random_next(&b->random));
    rq_scan what = {.reversed = back, .limit = limit > 0 ? limit : 1, .caching = b->o->caching};
    uint64_t there = back ? key + 1 : b->inserted - key;
    s->rows_wanted = b->rows.hashed ? 1 : what.limit < there ? what.limit : there;
    RQ_TRY(set_row(s, key));
    what.start = rq_buf_slice(&s->row);
    what.result_bytes = b->o->scan_bytes;
    return scan(s, &what);
}

rq_err rq__begin_scan_short(rq__slot *s)
{
    return scan_some(s, false);
}

rq_err rq__begin_scan_reverse(rq__slot *s)
{
    return scan_some(s, true);
}

rq_err rq__begin_scan_long(rq__slot *s)
{
    const rq_load_options *o = s->bench->o;
    rq_scan what = {.caching = o->caching, .result_bytes = o->scan_bytes};
    s->rows_wanted = s->bench->inserted;
    return scan(s, &what);
}

/* --- counters --------------------------------------------------------------------------------- */

static rq_err change_counter(rq__slot *s, uint64_t key, rq_mutate_kind kind, const char *qualifier,
                             rq_slice value, rq_op_done done)
{
    rq__bench *b = s->bench;
    rq_cell c = {.type = RQ_TYPE_PUT, .timestamp = RQ_TIMESTAMP_LATEST};
    s->key = key;
    s->version = b->counters[s->key];
    b->counters_sent[s->key]++;
    RQ_TRY(set_row(s, s->key));
    c.row = s->row.ptr;
    c.row_len = (uint16_t)s->row.len;
    c.family = (const uint8_t *)b->rows.family_names[0];
    c.family_len = (uint8_t)strlen(b->rows.family_names[0]);
    c.qualifier = (const uint8_t *)qualifier;
    c.qualifier_len = (uint32_t)strlen(qualifier);
    c.value = value.ptr;
    c.value_len = (uint32_t)value.len;
    rq_mutate m = {.kind = kind,
                   .row = rq_buf_slice(&s->row),
                   .cells = &c,
                   .cell_count = 1,
                   .nonce = rq_random_next(&b->random) | 1};
    return rq_op_mutate(s->op, b->table, &m, done);
}

/* The returned count must include everything acknowledged before, and no more than was sent. */
static void check_count(rq__slot *s, uint64_t count)
{
    rq__bench *b = s->bench;
    b->counters[s->key]++;
    b->report->checked++;
    if (count <= s->version) rq__note_wrong(b, s->key, "a counter lost an increment");
    if (count > b->counters_sent[s->key])
        rq__note_wrong(b, s->key, "a counter counted an increment twice");
}

static void incremented(rq_op *op, void *ctx, const rq_op_result *r)
{
    rq__slot *s = ctx;
    (void)op;
    if (r->err == RQ_OK) {
        rq_op_result copy = *r;
        rq_cell c;
        if (rq_result_next(&copy.row, &copy.cells, &c) == RQ_OK && c.value_len == 8)
            check_count(s, rq_get_be64(c.value));
        else
            rq__note_wrong(s->bench, s->key, "an increment without its result");
    }
    rq__slot_end_result(s, r);
}

rq_err rq__begin_increment(rq__slot *s)
{
    return change_counter(s, draw_key(s->bench), RQ_MUTATE_INCREMENT, COUNTER_QUALIFIER,
                          RQ_SLICE_LIT("\0\0\0\0\0\0\0\1"), incremented);
}

static void appended(rq_op *op, void *ctx, const rq_op_result *r)
{
    rq__slot *s = ctx;
    (void)op;
    if (r->err == RQ_OK) {
        rq_op_result copy = *r;
        rq_cell c = {0};
        char digits[RQ_ROW_DIGITS + 1];
        rq__rows_digits(&s->bench->rows, s->key, digits);
        bool good =
            rq_result_next(&copy.row, &copy.cells, &c) == RQ_OK && c.value_len % RQ_ROW_DIGITS == 0;
        for (size_t at = 0; good && at < c.value_len; at += RQ_ROW_DIGITS)
            good = memcmp(c.value + at, digits, RQ_ROW_DIGITS) == 0;
        if (good)
            check_count(s, c.value_len / RQ_ROW_DIGITS);
        else
            rq__note_wrong(s->bench, s->key, "an append's result is not what was appended");
    }
    rq__slot_end_result(s, r);
}

rq_err rq__begin_append(rq__slot *s)
{
    char digits[RQ_ROW_DIGITS + 1];
    uint64_t key = draw_key(s->bench);
    rq__rows_digits(&s->bench->rows, key, digits);
    return change_counter(s, key, RQ_MUTATE_APPEND, APPEND_QUALIFIER,
                          rq_slice_of(digits, RQ_ROW_DIGITS), appended);
}

/* --- conditions and deletes ------------------------------------------------------------------- */

static void checked_and_put(rq_op *op, void *ctx, const rq_op_result *r)
{
    rq__slot *s = ctx;
    (void)op;
    if (r->err == RQ_OK && r->processed)
        acked(s->bench, s->key, s->version, false);
    else if (r->err == RQ_OK && r->attempts == 0)
        rq__note_wrong(s->bench, s->key, "the server refused a condition that was true");
    /* After a retry, a refusal may mean that the first attempt succeeded: the key's value is
     * uncertain, and it is not used any more. */
    rq__slot_end_result(s, r);
}

rq_err rq__begin_check_and_put(rq__slot *s)
{
    rq__bench *b = s->bench;
    uint64_t key = draw_key(b);
    int looked = 0;
    for (; looked < LOOK_FOR_QUIET; looked++, key = (key + 1) % b->inserted) {
        const rq_row_history *h = &b->rows.history[key];
        if (h->put_sent == h->put_acked && h->put_acked > 0) break;
    }
    if (looked == LOOK_FOR_QUIET) return RQ_E_AGAIN;
    rq_mutate m;
    uint32_t was = b->rows.history[key].put_acked;
    s->key = key;
    s->version = take_version(b, key, false);
    RQ_TRY(make_put(s, key, s->version, &m));
    rq_buf_reset(&s->keep);
    RQ_TRY(rq__rows_value(&b->rows, key, 0, b->rows.base + was, &s->keep));
    m.has_condition = true;
    m.condition_family = rq_slice_cstr(b->rows.family_names[0]);
    m.condition_qualifier = rq_slice_cstr(b->rows.qualifier_names[0]);
    m.condition_value = rq_buf_slice(&s->keep);
    return rq_op_mutate(s->op, b->table, &m, checked_and_put);
}

static void deleted(rq_op *op, void *ctx, const rq_op_result *r)
{
    rq__slot *s = ctx;
    (void)op;
    if (r->err == RQ_OK) acked(s->bench, s->key, s->version, true);
    if (r->err != RQ_OK || !s->bench->o->verify) {
        rq__slot_end_result(s, r);
        return;
    }
    rq_err rc = get_row(s, s->key, got);
    if (rc != RQ_OK) rq__slot_broken(s, rc);
}

rq_err rq__begin_delete(rq__slot *s)
{
    rq__bench *b = s->bench;
    rq_cell markers[16];
    s->key = draw_key(b);
    s->version = take_version(b, s->key, true);
    RQ_TRY(set_row(s, s->key));
    for (unsigned i = 0; i < b->rows.families; i++) {
        const char *family = b->rows.family_names[i];
        markers[i] = (rq_cell){.row = s->row.ptr,
                               .row_len = (uint16_t)s->row.len,
                               .family = (const uint8_t *)family,
                               .family_len = (uint8_t)strlen(family),
                               .timestamp = timestamp_of(b, s->version),
                               .type = RQ_TYPE_DELETE_FAMILY};
    }
    rq_mutate m = {.kind = RQ_MUTATE_DELETE,
                   .row = rq_buf_slice(&s->row),
                   .cells = markers,
                   .cell_count = b->rows.families};
    return rq_op_mutate(s->op, b->table, &m, deleted);
}

static void read_then_write(rq_op *op, void *ctx, const rq_op_result *r)
{
    rq__slot *s = ctx;
    (void)op;
    if (r->err != RQ_OK) {
        rq__slot_end_result(s, r);
        return;
    }
    rq_op_result copy = *r;
    take_row(s, s->key, s->bounds, &copy);
    rq_err rc = put_row(s, s->key, was_put);
    if (rc != RQ_OK) rq__slot_broken(s, rc);
}

rq_err rq__begin_read_modify_write(rq__slot *s)
{
    return get_row(s, draw_key(s->bench), read_then_write);
}

/* --- after the run ---------------------------------------------------------------------------- */

static void swept_counter(rq_op *op, void *ctx, uint32_t index, rq_op_result *r)
{
    rq__slot *s = ctx;
    rq__bench *b = s->bench;
    uint64_t key = s->batch[index].key;
    uint64_t count = 0;
    rq_cell c;
    (void)op;
    if (r->err != RQ_OK) return;
    if (rq_result_next(&r->row, &r->cells, &c) == RQ_OK)
        count =
            rq_slice_eq(rq_cell_qualifier(&c), RQ_SLICE_LIT(COUNTER_QUALIFIER)) && c.value_len == 8
                ? rq_get_be64(c.value)
                : c.value_len / RQ_ROW_DIGITS;
    b->report->checked++;
    if (count < b->counters[key] || count > b->counters_sent[key])
        rq__note_wrong(b, key, "a counter does not hold what was acknowledged");
}

rq_err rq__begin_sweep(rq__slot *s, uint64_t first, uint64_t count)
{
    batch_begin(s, false);
    for (uint64_t i = 0; i < count; i++)
        RQ_TRY(add_row(s, first + i, false));
    return rq_op_batch_run(s->op, s->bench->counters != NULL ? swept_counter : batch_item,
                           batch_done);
}
