/* SPDX-License-Identifier: Apache-2.0 */
/* Mixes of operations of two applications: a micro blog, and events by time.
 *
 * Micro blog, three tables. User u (eight digits) is followed by the next `followers` users, modulo
 * the number of users; he has published posts 0 … posts-1.
 *
 *    content    row <uid>_<millis>   cf:content = the post
 *    relations  row <uid>            fans:<fan> = fan
 *    mailbox    row <fan>            cf:<publisher> at the post's millis = the row in content
 *
 * Publishing: put content, get the fans, one batch into their mailboxes. Reading a timeline: get
 * the mailbox with five versions, then one batch of gets in content.
 *
 * Events, two schemas. The key has Long.MAX_VALUE - millis, so the newest event comes first.
 *
 *    rows     row <uid><time>   cf:        the newest N: a scan from uid on, limit N
 *    columns  row <uid>         cf:<time>  the newest N: a get with ColumnCountGetFilter(N) */
#include "load/load_priv.h"

#include <inttypes.h>
#include <stdlib.h>

#define UID_LEN 8
#define MILLIS_LEN 13
#define TIME_LEN 19
#define POST_ROW_LEN (UID_LEN + 1 + MILLIS_LEN)
#define VERSIONS_READ 5
#define EPOCH_MS INT64_C(1700000000000) /* of post 0 and event 0 */
#define EVENT_STEP_MS 1000

static const rq_slice family = {(const uint8_t *)"cf", 2};
static const rq_slice fans = {(const uint8_t *)"fans", 4};

static uint64_t users(const rq__bench *b)
{
    return b->o->records;
}

static uint64_t item_key(uint64_t user, uint64_t number)
{
    return user << 32 | number;
}

static void put_uid(char *out, uint64_t user)
{
    for (int i = UID_LEN - 1; i >= 0; i--, user /= 10)
        out[i] = (char)('0' + user % 10);
}

/* Decimal digits; false when one is not. */
static bool digits(rq_slice text, uint64_t *ret)
{
    *ret = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') return false;
        *ret = *ret * 10 + (uint64_t)(text.ptr[i] - '0');
    }
    return text.len > 0;
}

static void put_post_row(char out[POST_ROW_LEN + 1], uint64_t user, uint64_t number)
{
    put_uid(out, user);
    snprintf(out + UID_LEN, MILLIS_LEN + 2, "_%013" PRId64, EPOCH_MS + (int64_t)number);
}

static rq_cell make_cell(rq_slice row, rq_slice fam, rq_slice qualifier, rq_slice value,
                         int64_t timestamp)
{
    return (rq_cell){.row = row.ptr,
                     .row_len = (uint16_t)row.len,
                     .family = fam.ptr,
                     .family_len = (uint8_t)fam.len,
                     .qualifier = qualifier.ptr,
                     .qualifier_len = (uint32_t)qualifier.len,
                     .value = value.ptr,
                     .value_len = (uint32_t)value.len,
                     .timestamp = timestamp,
                     .type = RQ_TYPE_PUT};
}

static rq_mutate make_put(const rq_cell *cell)
{
    return (rq_mutate){
        .kind = RQ_MUTATE_PUT, .row = rq_cell_row(cell), .cells = cell, .cell_count = 1};
}

static void count_written(rq__slot *s, const rq_cell *c)
{
    if (s->bench->loading || !s->counts) return;
    s->bench->report->rows_written++;
    s->bench->report->bytes_written += c->value_len;
}

static void count_read(rq__slot *s, const rq_cell *c)
{
    if (!s->counts) return;
    s->bench->report->cells_read++;
    s->bench->report->bytes_read += c->value_len;
}

static void wrong_if(rq__slot *s, bool wrong, const char *what)
{
    if (s->bench->o->verify && wrong) rq__note_wrong(s->bench, s->key, what);
}

/* --- posts ------------------------------------------------------------------------------------ */

/* Makes the post's cell; the value is in the slot's buffer, the row in `row`. */
static rq_err make_post(rq__slot *s, uint64_t user, uint64_t number, char row[POST_ROW_LEN + 1],
                        rq_cell *ret)
{
    rq_buf_reset(&s->values);
    RQ_TRY(rq__rows_value(&s->bench->rows, item_key(user, number), 0, (uint64_t)EPOCH_MS + number,
                          &s->values));
    put_post_row(row, user, number);
    *ret = make_cell(rq_slice_of(row, POST_ROW_LEN), family, RQ_SLICE_LIT("content"),
                     rq_buf_slice(&s->values), RQ_TIMESTAMP_LATEST);
    count_written(s, ret);
    return RQ_OK;
}

/* Adds the reference to a post for one fan to the batch. */
static rq_err add_reference(rq__slot *s, rq_slice fan, uint64_t user, uint64_t number)
{
    char row[POST_ROW_LEN + 1];
    put_post_row(row, user, number);
    rq_cell c = make_cell(fan, family, rq_slice_of(row, UID_LEN), rq_slice_of(row, POST_ROW_LEN),
                          EPOCH_MS + (int64_t)number);
    rq_mutate m = make_put(&c);
    count_written(s, &c);
    return rq_op_batch_mutate(s->op, &m);
}

static void ignore_item(rq_op *op, void *ctx, uint32_t index, rq_op_result *r)
{
    (void)op;
    (void)ctx;
    (void)index;
    (void)r;
}

static void done(rq_op *op, void *ctx, const rq_op_result *r)
{
    (void)op;
    rq__slot_end_result(ctx, r);
}

/* --- publish ---------------------------------------------------------------------------------- */

static void published(rq_op *op, void *ctx, const rq_op_result *r)
{
    rq__slot *s = ctx;
    if (r->err == RQ_OK) s->bench->posts[s->key]++;
    done(op, ctx, r);
}

static void take_fans(rq_op *op, void *ctx, const rq_op_result *r)
{
    rq__slot *s = ctx;
    rq_op_result copy = *r;
    rq_cell c;
    rq_err rc = RQ_OK;
    uint64_t count = 0;
    if (r->err != RQ_OK) {
        done(op, ctx, r);
        return;
    }
    /* Copies the fans' names, which are valid during this call only. */
    rq_buf_reset(&s->keep);
    while (rc == RQ_OK && rq_result_next(&copy.row, &copy.cells, &c) == RQ_OK) {
        if (c.qualifier_len != UID_LEN) continue;
        count_read(s, &c);
        rc = rq_buf_append(&s->keep, c.qualifier, UID_LEN);
        count++;
    }
    wrong_if(s, count != s->bench->o->followers, "a follower is missing");
    s->bench->report->checked += s->bench->o->verify;
    if (rc == RQ_OK && count == 0) {
        done(op, ctx, r);
        return;
    }
    rq_op_batch_begin(s->op, s->bench->table);
    for (uint64_t i = 0; rc == RQ_OK && i < count; i++)
        rc = add_reference(s, rq_slice_of(s->keep.ptr + i * UID_LEN, UID_LEN), s->key, s->version);
    if (rc == RQ_OK) rc = rq_op_batch_run(s->op, ignore_item, published);
    if (rc != RQ_OK) rq__slot_broken(s, rc);
}

static void stored(rq_op *op, void *ctx, const rq_op_result *r)
{
    rq__slot *s = ctx;
    char uid[UID_LEN];
    if (r->err != RQ_OK) {
        done(op, ctx, r);
        return;
    }
    put_uid(uid, s->key);
    rq_get g = {.row = rq_slice_of(uid, UID_LEN), .family = fans};
    rq_err rc = rq_op_get(s->op, s->bench->relations, &g, take_fans);
    if (rc != RQ_OK) rq__slot_broken(s, rc);
}

rq_err rq__begin_publish(rq__slot *s)
{
    rq__bench *b = s->bench;
    char row[POST_ROW_LEN + 1];
    rq_cell c;
    s->key = rq__keys_draw(&b->keys, users(b), &b->random);
    s->version = b->posts_sent[s->key]++;
    RQ_TRY(make_post(s, s->key, s->version, row, &c));
    rq_mutate m = make_put(&c);
    return rq_op_mutate(s->op, b->content, &m, stored);
}

/* --- timeline --------------------------------------------------------------------------------- */

static void take_post(rq_op *op, void *ctx, uint32_t index, rq_op_result *r)
{
    rq__slot *s = ctx;
    rq__bench *b = s->bench;
    uint64_t user = 0;
    uint64_t millis = 0;
    uint64_t version = 0;
    rq_cell c;
    (void)op;
    if (r->err != RQ_OK) return;
    bool there = rq_result_next(&r->row, &r->cells, &c) == RQ_OK;
    if (there) count_read(s, &c);
    if (s->counts) b->report->rows_read++;
    if (!b->o->verify) return;
    b->report->checked++;
    rq_slice row = rq_slice_of(s->keep.ptr + (size_t)index * POST_ROW_LEN, POST_ROW_LEN);
    if (!there)
        rq__note_wrong(b, s->key, "a post that a mailbox names is missing");
    else if (!digits(rq_slice_of(row.ptr, UID_LEN), &user) ||
             !digits(rq_slice_of(row.ptr + UID_LEN + 1, MILLIS_LEN), &millis) ||
             millis < (uint64_t)EPOCH_MS || !rq_slice_eq(rq_cell_row(&c), row) ||
             !rq__rows_value_check(&b->rows, item_key(user, millis - (uint64_t)EPOCH_MS), 0,
                                   rq_cell_value(&c), &version) ||
             version != millis)
        rq__note_wrong(b, s->key, "a post differs from the published one");
}

/* The number of posts that the mailbox must have: up to five of each followed user. */
static uint64_t posts_expected(const rq__slot *s)
{
    const rq__bench *b = s->bench;
    uint64_t sum = 0;
    for (uint64_t k = 1; k <= b->o->followers; k++) {
        uint32_t n = b->posts[(s->key + users(b) - k % users(b)) % users(b)];
        sum += n < VERSIONS_READ ? n : VERSIONS_READ;
    }
    return sum;
}

static void take_mailbox(rq_op *op, void *ctx, const rq_op_result *r)
{
    rq__slot *s = ctx;
    rq_op_result copy = *r;
    rq_cell c;
    rq_err rc = RQ_OK;
    uint64_t count = 0;
    if (r->err != RQ_OK) {
        done(op, ctx, r);
        return;
    }
    rq_buf_reset(&s->keep);
    while (rc == RQ_OK && rq_result_next(&copy.row, &copy.cells, &c) == RQ_OK) {
        uint64_t millis;
        bool good = c.value_len == POST_ROW_LEN && c.qualifier_len == UID_LEN &&
                    memcmp(c.value, c.qualifier, UID_LEN) == 0 &&
                    digits(rq_slice_of(c.value + UID_LEN + 1, MILLIS_LEN), &millis) &&
                    (int64_t)millis == c.timestamp;
        wrong_if(s, !good, "a mailbox names a post that was never published");
        if (!good) continue;
        count_read(s, &c);
        rc = rq_buf_append(&s->keep, c.value, c.value_len);
        count++;
    }
    if (s->counts) s->bench->report->rows_read++;
    s->bench->report->checked += s->bench->o->verify;
    wrong_if(s, count < s->rows_wanted, "a mailbox lacks a post");
    if (rc == RQ_OK && count == 0) {
        s->bench->report->misses++;
        done(op, ctx, r);
        return;
    }
    rq_op_batch_begin(s->op, s->bench->content);
    for (uint64_t i = 0; rc == RQ_OK && i < count; i++) {
        rq_get g = {.row = rq_slice_of(s->keep.ptr + i * POST_ROW_LEN, POST_ROW_LEN)};
        rc = rq_op_batch_get(s->op, &g);
    }
    if (rc == RQ_OK) rc = rq_op_batch_run(s->op, take_post, done);
    if (rc != RQ_OK) rq__slot_broken(s, rc);
}

rq_err rq__begin_timeline(rq__slot *s)
{
    rq__bench *b = s->bench;
    char uid[UID_LEN];
    s->key = rq__keys_draw(&b->keys, users(b), &b->random);
    s->rows_wanted = b->o->verify && !b->o->reuse ? posts_expected(s) : 0;
    put_uid(uid, s->key);
    rq_get g = {.row = rq_slice_of(uid, UID_LEN), .family = family, .max_versions = VERSIONS_READ};
    return rq_op_get(s->op, b->table, &g, take_mailbox);
}

/* --- events ----------------------------------------------------------------------------------- */

static void put_time(char out[TIME_LEN + 1], uint64_t number)
{
    snprintf(out, TIME_LEN + 1, "%019" PRId64,
             INT64_MAX - (EPOCH_MS + (int64_t)number * EVENT_STEP_MS));
}

/* Checks the n-th newest event in order of arrival. */
static void take_event(rq__slot *s, rq_slice time, const rq_cell *c)
{
    rq__bench *b = s->bench;
    char expected[TIME_LEN + 1];
    uint64_t version;
    uint64_t number = b->o->events - 1 - s->rows_got;
    count_read(s, c);
    if (b->o->verify && s->rows_got < b->o->events) {
        put_time(expected, number);
        b->report->checked++;
        wrong_if(s,
                 !rq_slice_eq(time, rq_slice_of(expected, TIME_LEN)) ||
                     !rq__rows_value_check(&b->rows, item_key(s->key, number), 0, rq_cell_value(c),
                                           &version),
                 "an event out of order, or with a wrong value");
    }
    s->rows_got++;
}

static void events_done(rq_op *op, void *ctx, const rq_op_result *r)
{
    rq__slot *s = ctx;
    if (r->err == RQ_OK) wrong_if(s, s->rows_got != s->rows_wanted, "the wrong number of events");
    if (r->err == RQ_OK && s->counts) s->bench->report->rows_read += s->rows_got;
    done(op, ctx, r);
}

static void event_row(rq_op *op, void *ctx, uint32_t index, rq_op_result *r)
{
    rq__slot *s = ctx;
    rq_cell c;
    (void)op;
    (void)index;
    if (rq_result_next(&r->row, &r->cells, &c) != RQ_OK || c.row_len != UID_LEN + TIME_LEN) {
        wrong_if(s, true, "a row that is not an event");
        return;
    }
    take_event(s, rq_slice_of(c.row + UID_LEN, TIME_LEN), &c);
}

static void event_columns(rq_op *op, void *ctx, const rq_op_result *r)
{
    rq__slot *s = ctx;
    rq_op_result copy = *r;
    rq_cell c;
    if (r->err == RQ_OK)
        while (rq_result_next(&copy.row, &copy.cells, &c) == RQ_OK)
            take_event(s, rq_cell_qualifier(&c), &c);
    events_done(op, ctx, r);
}

static void draw_user(rq__slot *s, char uid[UID_LEN])
{
    const rq__bench *b = s->bench;
    s->key = rq__keys_draw(&s->bench->keys, users(b), &s->bench->random);
    s->rows_got = 0;
    s->rows_wanted = b->o->newest < b->o->events ? b->o->newest : b->o->events;
    put_uid(uid, s->key);
}

rq_err rq__begin_newest_rows(rq__slot *s)
{
    char uid[UID_LEN];
    char behind[UID_LEN];
    draw_user(s, uid);
    put_uid(behind, s->key + 1);
    rq_scan what = {.start = rq_slice_of(uid, UID_LEN),
                    .stop = rq_slice_of(behind, UID_LEN),
                    .limit = s->bench->o->newest,
                    .caching = s->bench->o->newest};
    return rq_op_scan(s->op, s->bench->table, &what, event_row, events_done);
}

rq_err rq__begin_newest_columns(rq__slot *s)
{
    char uid[UID_LEN];
    draw_user(s, uid);
    rq_get g = {
        .row = rq_slice_of(uid, UID_LEN), .family = family, .column_limit = s->bench->o->newest};
    return rq_op_get(s->op, s->bench->table, &g, event_columns);
}

/* --- loading ---------------------------------------------------------------------------------- */

uint64_t rq__app_items(const rq__bench *b)
{
    return users(b) *
           (b->workload->kind == RQ__LOAD_TIMELINE ? b->o->posts : (uint64_t)b->o->events);
}

static rq_err add_event(rq__slot *s, uint64_t user, uint64_t number)
{
    bool rows = s->bench->workload->kind == RQ__LOAD_EVENT_ROWS;
    char row[UID_LEN + TIME_LEN + 1];
    put_uid(row, user);
    put_time(row + UID_LEN, number);
    rq_buf_reset(&s->values);
    RQ_TRY(rq__rows_value(&s->bench->rows, item_key(user, number), 0, number, &s->values));
    rq_cell c = make_cell(rq_slice_of(row, rows ? UID_LEN + TIME_LEN : UID_LEN), family,
                          rows ? RQ_SLICE_LIT("") : rq_slice_of(row + UID_LEN, TIME_LEN),
                          rq_buf_slice(&s->values), RQ_TIMESTAMP_LATEST);
    rq_mutate m = make_put(&c);
    return rq_op_batch_mutate(s->op, &m);
}

/* Third: the mailboxes. Item i is post i % posts of user i / posts. */
static void load_mailboxes(rq_op *op, void *ctx, const rq_op_result *r)
{
    rq__slot *s = ctx;
    rq__bench *b = s->bench;
    rq_err rc = RQ_OK;
    if (r->err != RQ_OK) {
        done(op, ctx, r);
        return;
    }
    rq_op_batch_begin(op, b->table);
    for (uint64_t i = s->key; rc == RQ_OK && i < s->key + s->rows_wanted; i++)
        for (uint64_t k = 1; rc == RQ_OK && k <= b->o->followers; k++) {
            char fan[UID_LEN];
            put_uid(fan, (i / b->o->posts + k) % users(b));
            rc = add_reference(s, rq_slice_of(fan, UID_LEN), i / b->o->posts, i % b->o->posts);
        }
    if (rc == RQ_OK) rc = rq_op_batch_run(op, ignore_item, done);
    if (rc != RQ_OK) rq__slot_broken(s, rc);
}

/* Second: the followers of users whose first post is among the items. */
static void load_relations(rq_op *op, void *ctx, const rq_op_result *r)
{
    rq__slot *s = ctx;
    rq__bench *b = s->bench;
    rq_err rc = RQ_OK;
    if (r->err != RQ_OK) {
        done(op, ctx, r);
        return;
    }
    rq_op_batch_begin(op, b->relations);
    for (uint64_t i = s->key; rc == RQ_OK && i < s->key + s->rows_wanted; i++) {
        char uid[UID_LEN];
        char fan[UID_LEN];
        if (i % b->o->posts != 0) continue;
        put_uid(uid, i / b->o->posts);
        for (uint64_t k = 1; rc == RQ_OK && k <= b->o->followers; k++) {
            put_uid(fan, (i / b->o->posts + k) % users(b));
            rq_cell c = make_cell(rq_slice_of(uid, UID_LEN), fans, rq_slice_of(fan, UID_LEN),
                                  rq_slice_of(fan, UID_LEN), RQ_TIMESTAMP_LATEST);
            rq_mutate m = make_put(&c);
            rc = rq_op_batch_mutate(op, &m);
        }
    }
    if (rc == RQ_OK) rc = rq_op_batch_run(op, ignore_item, load_mailboxes);
    if (rc != RQ_OK) rq__slot_broken(s, rc);
}

rq_err rq__begin_load_app(rq__slot *s, uint64_t first, uint64_t count)
{
    rq__bench *b = s->bench;
    s->key = first;
    s->rows_wanted = count;
    if (b->workload->kind != RQ__LOAD_TIMELINE) {
        rq_op_batch_begin(s->op, b->table);
        for (uint64_t i = first; i < first + count; i++)
            RQ_TRY(add_event(s, i / b->o->events, i % b->o->events));
        return rq_op_batch_run(s->op, ignore_item, done);
    }
    rq_op_batch_begin(s->op, b->content);
    for (uint64_t i = first; i < first + count; i++) {
        char row[POST_ROW_LEN + 1];
        rq_cell c;
        RQ_TRY(make_post(s, i / b->o->posts, i % b->o->posts, row, &c));
        rq_mutate m = make_put(&c);
        RQ_TRY(rq_op_batch_mutate(s->op, &m));
    }
    return rq_op_batch_run(s->op, ignore_item, load_relations);
}
