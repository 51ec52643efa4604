/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A secondary index: a table with an entry for each row's value of one column.
 *
 *   entry        row  value, 00 00, row key (a unique index: value, 00 00)     as "v:bytes r:bytes"
 *                i:t  the entry's token: random, another one with each write of the entry
 *                i:r  the row key
 *                i:v  the token as it was when the row had been written: verified, if it is i:t still
 *                i:c… copies of covered columns (index_cover.c)
 *   row          FAMILY:_rq_index  its generation: random, another one with each write of the row
 *
 * A write, of value `new` over `old`:
 *
 *   1. read the row: old, generation g. Read the tokens of the entries of old, T, and of new.
 *   2. put new's entry with a new token, if its token is still what was read
 *   3. write the row and a new generation, if its generation is still g; else begin again
 *   4. give old's entry the token of a deleted one, if it is still T: it is deleted
 *
 * Invariant: a row's value has an entry whenever the row has the value. The entry is put before the row is written (2),
 * and a writer that deletes an entry has first read its token T, and has then changed the row's generation. Consider
 * another writer that puts the same entry again for its own write of the row: if it does so after T was read, the token
 * is not T, and the entry is not deleted; if before, the generation has changed, and its step 3 fails. After a crash
 * there may be too many entries, never too few; readers compare each entry with its row, and a repair deletes wrong
 * entries in the same way as step 4.
 *
 * With covered columns readers do not read the row of a verified entry. So (0) a write first gives old's entry a new
 * token, too, and after (4) verifies new's entry, if the entry still has the token of (2). A write of a covered column
 * puts the entry again although the value is the same. Invariant: while an entry is verified, the row has the value,
 * and the entry's copies are equal to the row's covered columns. A writer that changes the row puts another token into
 * the entry after it has read the row, and before it changes the row; this ends the verification. A writer that
 * verifies an entry has written the row's generation after it put its token, so that a writer that read the row before
 * can no longer change it.
 *
 * Tokens of deleted entries are random, too, and shorter. If they were all alike, a writer that reads a deleted entry
 * and is slow to put it again would not notice that others have put and deleted it in between: its put would succeed,
 * but with an earlier timestamp than theirs, and so never be visible.
 *
 * Timestamps: HBase hides a put behind a delete marker, or another put, of the same millisecond or a
 * later one. So everything is written at a time above all that was read (rq__index_time), entries are
 * never deleted by markers but by a put, and a repair removes those deleted long ago, as long as
 * clocks differ by less than that (RQ__LONG_AGO_MS).
 *
 * A deleted row keeps its generation for RQ__LONG_AGO_MS, so that step 3 fails for a writer that read the row before it
 * was written and deleted, and saw no generation. A writer that is slower than WRITE_MS begins again.
 */
#include "rowkey/index_priv.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

enum { ATTEMPTS_MAX = 200, WRITE_MS = 120000 };

static const char generation[] = "_rq_index";

rq_err rq__index_fail(rq_failure *failure, rq_err rc, const char *text)
{
    rq_why why;
    rq_why_clear(&why);
    return rq_fill_failure(failure, rq_fail(&why.error, rc, "%s", text), &why);
}

rq_err rq__index_sized(void *to, size_t to_size, const void *from, size_t least, const char *what,
                       rq_failure *failure)
{
    rq_why why;
    rq_why_clear(&why);
    return rq_fill_failure(failure, rq_sized(to, to_size, from, least, what, &why.error), &why);
}

/* rq_check_bytes, for a function that fills the caller's failure itself. */
static rq_err check_bytes(rq_bytes bytes, const char *what, rq_failure *failure)
{
    rq_why why;
    rq_why_clear(&why);
    return rq_fill_failure(failure, rq_check_bytes(bytes, what, &why.error), &why);
}

static void make_token(uint8_t *token, size_t len)
{
    if (getrandom(token, len, 0) == (ssize_t)len) return;
    uint8_t clock[RQ__TOKEN]; /* tokens are no secrets */
    rq_put_be64(clock, rq_clock_ns(CLOCK_MONOTONIC));
    rq_put_be64(clock + 8, (uint64_t)(uintptr_t)token);
    memcpy(token, clock, len);
}

/* --- entries ---------------------------------------------------------------------------------- */

rq_err rq__index_key(const rq_index *x, rq_bytes value, rq_bytes row, rq_buf *out)
{
    const uint8_t *v = value.data;
    for (size_t i = 0; i < value.len; i++) {
        RQ_TRY(rq_buf_append_u8(out, v[i]));
        if (v[i] == 0) RQ_TRY(rq_buf_append_u8(out, 0xff));
    }
    RQ_TRY(rq_buf_append(out, "\0", 2));
    return x->unique ? RQ_OK : rq_buf_append(out, row.data, row.len);
}

rq_err rq__index_value_of(rq_bytes key, rq_buf *out)
{
    const uint8_t *k = key.data;
    for (size_t i = 0; i + 1 < key.len; i++) {
        if (k[i] == 0 && k[i + 1] == 0) return RQ_OK;
        RQ_TRY(rq_buf_append_u8(out, k[i]));
        if (k[i] == 0) i++;
    }
    return RQ_E_MALFORMED;
}

/* The entry's row key and token. */
static rq_err read_entry(rq_index *x, rq_bytes key, rq__entry *ret, rq_failure *why)
{
    rq_row *row;
    rq_get_request get = {.size = sizeof get, .row = key};
    RQ_TRY(rq_table_get(x->entries, &get, &row, why));
    rq_err rc = rq__entry_take(row, ret) ? RQ_OK : RQ_E_NO_MEMORY;
    rq_row_free(row);
    return rc == RQ_OK ? RQ_OK : rq__index_fail(why, rc, "out of memory, for an index's entry");
}

int64_t rq__index_time(int64_t newest)
{
    int64_t now = (int64_t)(rq_clock_ns(CLOCK_REALTIME) / 1000000);
    if (now > newest) return now;
    return newest < INT64_MAX ? newest + 1 : newest; /* a server may send any timestamp */
}

static int64_t newest_of(const rq_row *row)
{
    int64_t newest = 0;
    for (size_t i = 0; i < row->count; i++)
        newest = row->cells[i].timestamp > newest ? row->cells[i].timestamp : newest;
    return newest;
}

bool rq__entry_take(const rq_row *row, rq__entry *ret)
{
    const rq_kv *token = rq_row_find(row, rq_text("i"), rq_text("t"));
    const rq_kv *key = rq_row_find(row, rq_text("i"), rq_text("r"));
    const rq_kv *verified = rq_row_find(row, rq_text("i"), rq_text("v"));
    ret->exists = token != NULL && key != NULL && token->value.len == RQ__TOKEN;
    ret->verified =
        ret->exists && verified != NULL &&
        rq_slice_eq(rq_slice_of_bytes(verified->value), rq_slice_of_bytes(token->value));
    ret->timestamp = newest_of(row);
    ret->row.len = 0;
    ret->token_len = token == NULL || token->value.len > RQ__TOKEN ? 0 : token->value.len;
    if (ret->token_len > 0) memcpy(ret->token, token->value.data, ret->token_len);
    if (!ret->exists) return true;
    return rq_buf_append(&ret->row, key->value.data, key->value.len) == RQ_OK;
}

/* That the entry's token is still what was read. */
static rq_check same_token(const rq__entry *e)
{
    return (rq_check){.size = sizeof(rq_check),
                      .family = rq_text("i"),
                      .qualifier = rq_text("t"),
                      .compare = e->token_len > 0 ? RQ_COMPARE_EQUAL : RQ_COMPARE_ABSENT,
                      .value = {e->token, e->token_len}};
}

/* Over what was read, if that is still there. */
static rq_err put_over(rq_index *x, rq_bytes key, const rq__entry *over, int64_t time,
                       const rq_edit *edits, size_t count, bool *ret_done, rq_failure *why)
{
    rq_change put = {.size = sizeof put,
                     .kind = RQ_PUT,
                     .row = key,
                     .edits = edits,
                     .edit_count = count,
                     .timestamp = time};
    rq_check check = same_token(over);
    return rq_table_check_and_change(x->entries, &check, &put, 1, ret_done, NULL, why);
}

rq_err rq__entry_put(rq_index *x, rq_bytes key, rq_bytes row, rq__entry *over,
                     const rq__copies *copies, bool *ret_done, rq_failure *why)
{
    uint8_t token[RQ__TOKEN];
    make_token(token, sizeof token);
    rq_edit edits[2 + RQ__COVERED_MAX] = {
        {.family = rq_text("i"), .qualifier = rq_text("t"), .value = {token, RQ__TOKEN}},
        {.family = rq_text("i"), .qualifier = rq_text("r"), .value = row}};
    size_t count = 2;
    for (size_t i = 0; copies != NULL && i < copies->count; i++)
        edits[count++] = copies->edits[i];
    int64_t time = rq__index_time(over->timestamp);
    RQ_TRY(put_over(x, key, over, time, edits, count, ret_done, why));
    if (!*ret_done) return RQ_OK;
    over->exists = true;
    over->verified = false;
    over->timestamp = time;
    over->token_len = RQ__TOKEN;
    memcpy(over->token, token, RQ__TOKEN);
    return RQ_OK;
}

rq_err rq__entry_delete(rq_index *x, rq_bytes key, const rq__entry *e, bool *ret_done,
                        rq_failure *why)
{
    uint8_t token[RQ__DELETED_TOKEN];
    make_token(token, sizeof token);
    rq_edit deleted = {
        .family = rq_text("i"), .qualifier = rq_text("t"), .value = {token, sizeof token}};
    return put_over(x, key, e, rq__index_time(e->timestamp), &deleted, 1, ret_done, why);
}

rq_err rq__entry_verify(rq_index *x, rq_bytes key, const rq__entry *e, rq_failure *why)
{
    bool done; /* or another writer has put the entry again, and will verify it */
    rq_edit same = {
        .family = rq_text("i"), .qualifier = rq_text("v"), .value = {e->token, RQ__TOKEN}};
    return put_over(x, key, e, rq__index_time(e->timestamp), &same, 1, &done, why);
}

rq_err rq__entry_remove(rq_index *x, rq_bytes key, const rq__entry *e, rq_failure *why)
{
    bool done;
    if (e->token_len == RQ__TOKEN) return RQ_OK; /* not deleted: its key is no entry's */
    rq_check check = same_token(e);
    rq_edit all = {.family = rq_text("i"), .scope = RQ_DELETE_FAMILY};
    rq_change del = {.size = sizeof del,
                     .kind = RQ_DELETE,
                     .row = key,
                     .edits = &all,
                     .edit_count = 1,
                     .timestamp = e->timestamp};
    return rq_table_check_and_change(x->entries, &check, &del, 1, &done, NULL, why);
}

/* --- rows ------------------------------------------------------------------------------------- */

rq_err rq__index_read(rq_index *x, rq_bytes key, rq_row **ret, rq_failure *why)
{
    rq_get_request get = {.size = sizeof get, .row = key};
    return rq_table_get(x->table, &get, ret, why);
}

/* The row's value in the indexed column, or NULL. */
const rq_kv *rq__index_cell(const rq_index *x, const rq_row *row)
{
    return rq_row_find(row, x->family, x->qualifier);
}

/* Step 3: applies the change and writes a new generation, if the row's generation is still that of `before`. With
 * ttl_ms the new generation expires, so older versions of it are deleted, or they would become visible again. */
static rq_err write_row(rq_index *x, const rq_row *before, rq_bytes key, const rq_change *change,
                        int64_t time, uint64_t ttl_ms, bool *ret_done, rq_failure *why)
{
    uint8_t token[RQ__TOKEN];
    const rq_kv *g = rq_row_find(before, x->family, rq_text(generation));
    rq_check check = {.size = sizeof check,
                      .family = x->family,
                      .qualifier = rq_text(generation),
                      .compare = g == NULL ? RQ_COMPARE_ABSENT : RQ_COMPARE_EQUAL,
                      .value = g == NULL ? rq_bytes_of(NULL, 0) : g->value};
    make_token(token, sizeof token);
    rq_edit edit = {
        .family = x->family, .qualifier = rq_text(generation), .value = {token, RQ__TOKEN}};
    rq_edit older = {.family = x->family, .qualifier = rq_text(generation), .timestamp = time - 1};
    rq_change changes[3] = {{.size = sizeof changes[0],
                             .kind = RQ_PUT,
                             .edits = &edit,
                             .edit_count = 1,
                             .ttl_ms = ttl_ms}};
    size_t count = 1;
    if (ttl_ms > 0)
        changes[count++] = (rq_change){
            .size = sizeof changes[0], .kind = RQ_DELETE, .edits = &older, .edit_count = 1};
    if (change != NULL) changes[count++] = *change;
    for (size_t i = 0; i < count; i++) {
        changes[i].row = key;
        changes[i].timestamp = time;
    }
    return rq_table_check_and_change(x->table, &check, changes, count, ret_done, NULL, why);
}

/* Writes a new generation if the row's generation is still that of `before` (*ret_done). Then no write succeeds whose
 * writer read the row before this call. A row that does not exist gets a generation that expires. */
rq_err rq__index_fence(rq_index *x, const rq_row *before, rq_bytes key, bool *ret_done,
                       rq_failure *why)
{
    bool empty =
        before->count == 0 ||
        (before->count == 1 && rq_row_find(before, x->family, rq_text(generation)) != NULL);
    return write_row(x, before, key, NULL, rq__index_time(newest_of(before)),
                     empty ? RQ__LONG_AGO_MS : 0, ret_done, why);
}

/* --- a write ---------------------------------------------------------------------------------- */

typedef struct writing {
    rq_index *x;
    rq_bytes key;
    const rq_change *change; /* NULL: the row is deleted */
    const rq_bytes *value;   /* the new one; NULL: none */
    bool keeps_value;        /* the change does not touch the column */
    bool changes_copies;     /* it touches a covered one */
    rq_row *before;
    int64_t time;            /* of the cells that are written */
    rq_buf old_key, new_key; /* of entries */
    rq__entry old, new;
    rq__copies copies; /* of the new entry */
    rq_failure *why;
} writing;

static bool has_value(const rq_index *x, const rq_row *row, rq_bytes value)
{
    const rq_kv *cell = rq__index_cell(x, row);
    return cell != NULL && rq_slice_eq(rq_slice_of_bytes(cell->value), rq_slice_of_bytes(value));
}

/* Another row has the value, which a unique index refuses. A change that does not touch the indexed column keeps the
 * value of the row as it was read: this is an error only if the row still has the value, because a write bypassed the
 * index; otherwise another writer has changed the row, and the change begins again. */
static rq_err refuse_double(writing *w, rq_bytes value)
{
    bool is_there = true;
    if (w->keeps_value) {
        rq_row *now;
        RQ_TRY(rq__index_read(w->x, w->key, &now, w->why));
        is_there = has_value(w->x, now, value);
        rq_row_free(now);
    }
    if (!is_there) return RQ_OK;
    return rq__index_fail(w->why, RQ_E_EXISTS,
                          "another row has this value, and the index is unique");
}

/* The entry of a unique index at this value belongs to another row. *ret_free: that row does not have the value, and no
 * write that has begun can give it the value (rq__index_fence), so the entry may be replaced. */
static rq_err look_at_owner(writing *w, const rq__entry *e, bool *ret_free)
{
    rq_row *row;
    rq_bytes key = {e->row.ptr, e->row.len};
    rq_bytes value = w->keeps_value ? rq__index_cell(w->x, w->before)->value : *w->value;
    *ret_free = false;
    RQ_TRY(rq__index_read(w->x, key, &row, w->why));
    rq_err rc = has_value(w->x, row, value) ? refuse_double(w, value)
                                            : rq__index_fence(w->x, row, key, ret_free, w->why);
    rq_row_free(row);
    return rc;
}

/* Step 2; *ret_done false: begin again. */
static rq_err put_new_entry(writing *w, bool *ret_done)
{
    rq_bytes key = {w->new_key.ptr, w->new_key.len};
    rq__entry *e = &w->new;
    bool is_free = true;
    rq_err rc = read_entry(w->x, key, e, w->why);
    if (rc == RQ_OK && e->exists && !rq_slice_eq(rq_buf_slice(&e->row), rq_slice_of_bytes(w->key)))
        rc = look_at_owner(w, e, &is_free);
    *ret_done = false;
    if (rc != RQ_OK || !is_free) return rc;
    if (rq__copies_make(w->x, w->before, w->change, w->time, &w->copies) != RQ_OK)
        return rq__index_fail(w->why, RQ_E_NO_MEMORY, "out of memory, for an index's entry");
    return rq__entry_put(w->x, key, w->key, e, &w->copies, ret_done, w->why);
}

/* Step 0: the old value's entry loses its verification, and no other writer can verify it again. */
static rq_err unverify_old_entry(writing *w, bool *ret_done)
{
    rq_bytes key = {w->old_key.ptr, w->old_key.len};
    *ret_done = true;
    if (key.len == 0) return RQ_OK;
    RQ_TRY(read_entry(w->x, key, &w->old, w->why));
    if (!rq_slice_eq(rq_buf_slice(&w->old.row), rq_slice_of_bytes(w->key)))
        w->old.exists = false; /* a unique index has the value for another row */
    if (!w->old.exists || w->x->covered_count == 0) return RQ_OK;
    return rq__entry_put(w->x, key, w->key, &w->old, NULL, ret_done, w->why);
}

static rq_err make_keys(writing *w)
{
    const rq_kv *cell = rq__index_cell(w->x, w->before);
    w->old_key.len = w->new_key.len = 0;
    rq_err rc = RQ_OK;
    if (cell != NULL) rc = rq__index_key(w->x, cell->value, w->key, &w->old_key);
    if (rc == RQ_OK && w->keeps_value)
        rc = rq_buf_append(&w->new_key, w->old_key.ptr, w->old_key.len);
    else if (rc == RQ_OK && w->value != NULL)
        rc = rq__index_key(w->x, *w->value, w->key, &w->new_key);
    if (w->new_key.len > RQ__KEY_MAX)
        return rq__index_fail(w->why, RQ_E_INVALID, "the value is too long for a key of the index");
    return rc == RQ_OK ? RQ_OK : rq__index_fail(w->why, rc, "out of memory, for an index's key");
}

/* Deletes every column that was read; the generation stays, and expires. */
static rq_err delete_columns(writing *w, bool *ret_done)
{
    size_t n = 0;
    rq_edit *edits = calloc(w->before->count + 1, sizeof *edits);
    if (edits == NULL) return rq__index_fail(w->why, RQ_E_NO_MEMORY, "out of memory, for a delete");
    for (size_t i = 0; i < w->before->count; i++) {
        const rq_kv *c = &w->before->cells[i];
        bool is_generation =
            rq_slice_eq(rq_slice_of_bytes(c->qualifier), rq_slice_cstr(generation)) &&
            rq_slice_eq(rq_slice_of_bytes(c->family), rq_slice_of_bytes(w->x->family));
        if (!is_generation) edits[n++] = (rq_edit){.family = c->family, .qualifier = c->qualifier};
    }
    rq_change del = {
        .size = sizeof del, .kind = RQ_DELETE, .row = w->key, .edits = edits, .edit_count = n};
    *ret_done = true;
    rq_err rc = n == 0 ? RQ_OK
                       : write_row(w->x, w->before, w->key, &del, w->time, RQ__LONG_AGO_MS,
                                   ret_done, w->why);
    free(edits);
    return rc;
}

/* Steps before the row is written; *ret_done false: begin again. */
static rq_err put_entries(writing *w, bool moves, bool puts, bool *ret_done)
{
    uint64_t begun = rq_clock_ns(CLOCK_MONOTONIC);
    *ret_done = true;
    w->old.exists = false;
    if (moves) RQ_TRY(unverify_old_entry(w, ret_done));
    if (puts && *ret_done) RQ_TRY(put_new_entry(w, ret_done));
    if (rq_clock_ns(CLOCK_MONOTONIC) - begun > WRITE_MS * UINT64_C(1000000)) *ret_done = false;
    return RQ_OK;
}

static rq_err write_old_and_new(writing *w, bool *ret_done)
{
    bool ready, done, moves = !rq_slice_eq(rq_buf_slice(&w->old_key), rq_buf_slice(&w->new_key));
    bool puts = w->new_key.len > 0 && (moves || w->changes_copies);
    *ret_done = false;
    RQ_TRY(put_entries(w, moves, puts, &ready));
    if (!ready) return RQ_OK;
    if (w->change == NULL)
        RQ_TRY(delete_columns(w, ret_done));
    else
        RQ_TRY(write_row(w->x, w->before, w->key, w->change, w->time, 0, ret_done, w->why));
    if (!*ret_done) return RQ_OK;
    rq_bytes old_key = {w->old_key.ptr, w->old_key.len}, new_key = {w->new_key.ptr, w->new_key.len};
    if (w->old.exists) RQ_TRY(rq__entry_delete(w->x, old_key, &w->old, &done, w->why));
    if (!puts || w->x->covered_count == 0) return RQ_OK;
    return rq__entry_verify(w->x, new_key, &w->new, w->why);
}

static rq_err attempt(writing *w, bool *ret_done)
{
    RQ_TRY(rq__index_read(w->x, w->key, &w->before, w->why));
    w->time = rq__index_time(newest_of(w->before));
    rq_err rc = make_keys(w);
    if (rc == RQ_OK) rc = write_old_and_new(w, ret_done);
    rq_row_free(w->before);
    w->before = NULL;
    return rc;
}

static rq_err write_indexed(writing *w)
{
    bool done = false;
    rq_err rc = RQ_OK;
    for (int i = 0; i < ATTEMPTS_MAX && rc == RQ_OK && !done; i++) {
        if (i > 3) rq_clock_sleep_ns((uint64_t)i * 100000);
        rc = attempt(w, &done);
    }
    rq_buf_clear(&w->old_key);
    rq_buf_clear(&w->new_key);
    rq_buf_clear(&w->old.row);
    rq_buf_clear(&w->new.row);
    rq_buf_clear(&w->copies.bytes);
    if (rc == RQ_OK && !done)
        return rq__index_fail(w->why, RQ_E_CONFLICT,
                              "other writers changed this row or value on every try");
    return rc;
}

/* --- public ----------------------------------------------------------------------------------- */

rq_err rq_index_put(rq_index *index, const rq_change *put, rq_failure *failure)
{
    RQ_TRY(rq_needs(index, "index", failure));
    const rq_bytes *value = NULL;
    rq_change own;
    RQ_TRY(rq__index_sized(&own, sizeof own, put, offsetof(rq_change, timestamp), "rq_change",
                           failure));
    own.size = sizeof own;
    put = &own;
    if (put->kind != RQ_PUT)
        return rq__index_fail(failure, RQ_E_INVALID, "the change is not a put");
    if (put->edit_count > 0) RQ_TRY(rq_needs(put->edits, "edits", failure));
    RQ_TRY(check_bytes(put->row, "a row", failure));
    for (size_t i = 0; i < put->edit_count; i++) {
        const rq_edit *e = &put->edits[i];
        RQ_TRY(check_bytes(e->family, "a family", failure));
        RQ_TRY(check_bytes(e->qualifier, "a qualifier", failure));
        RQ_TRY(check_bytes(e->value, "a value", failure));
        if (e->timestamp != 0)
            return rq__index_fail(failure, RQ_E_INVALID,
                                  "a put with an index must not have a timestamp");
        if (rq_slice_eq(rq_slice_of_bytes(e->family), rq_slice_of_bytes(index->family)) &&
            rq_slice_eq(rq_slice_of_bytes(e->qualifier), rq_slice_of_bytes(index->qualifier)))
            value = &e->value;
    }
    if (put->timestamp != 0)
        return rq__index_fail(failure, RQ_E_INVALID,
                              "a put with an index must not have a timestamp");
    if (put->ttl_ms != 0 && index->covered_count > 0)
        return rq__index_fail(
            failure, RQ_E_INVALID,
            "a put with an index that covers columns must not have a time to live");
    writing w = {.x = index,
                 .key = put->row,
                 .change = put,
                 .value = value,
                 .keeps_value = value == NULL,
                 .changes_copies = rq__covered_changes(index, put),
                 .why = failure};
    return write_indexed(&w);
}

rq_err rq_index_delete(rq_index *index, rq_bytes row, rq_failure *failure)
{
    RQ_TRY(rq_needs(index, "index", failure));
    RQ_TRY(check_bytes(row, "a row", failure));
    writing w = {.x = index, .key = row, .why = failure};
    return write_indexed(&w);
}

static rq_err make_table(rq_db *db, const char *name, rq_failure *why)
{
    bool exists;
    rq_family family = {"i", NULL, 0};
    rq_table_spec spec = {
        .size = sizeof spec, .name = name, .families = &family, .family_count = 1};
    RQ_TRY(rq_table_exists(db, name, &exists, why));
    if (exists) return RQ_OK;
    rq_err rc = rq_table_create(db, &spec, why);
    return rc == RQ_E_TABLE_EXISTS ? RQ_OK : rc;
}

static rq_err open_into(rq_index *x, rq_db *db, const rq_index_spec *spec, rq_failure *why)
{
    size_t f = spec->column.family.len, q = spec->column.qualifier.len;
    x->unique = spec->unique;
    x->names = malloc(f + q + 1);
    if (x->names == NULL) return rq__index_fail(why, RQ_E_NO_MEMORY, "out of memory, for an index");
    memcpy(x->names, spec->column.family.data, f);
    if (q > 0) memcpy(x->names + f, spec->column.qualifier.data, q);
    x->family = rq_bytes_of(x->names, f);
    x->qualifier = rq_bytes_of(x->names + f, q);
    RQ_TRY(rq__covered_take(x, spec, why));
    if (spec->creates) RQ_TRY(make_table(db, spec->index_table, why));
    RQ_TRY(rq_table_open(db, spec->table, &x->table, why));
    RQ_TRY(rq_table_open(db, spec->index_table, &x->entries, why));
    return spec->repair_every_ms == 0 ? RQ_OK : rq__upkeep_start(x, spec->repair_every_ms, why);
}

rq_err rq_index_open(rq_db *db, const rq_index_spec *spec, rq_index **ret, rq_failure *failure)
{
    RQ_TRY(rq_needs(db, "database", failure));
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    rq_index_spec own;
    RQ_TRY(rq__index_sized(&own, sizeof own, spec, offsetof(rq_index_spec, covered),
                           "rq_index_spec", failure));
    spec = &own;
    if (spec->table == NULL || spec->index_table == NULL || spec->column.family.len == 0 ||
        spec->column.family.data == NULL || spec->column.qualifier.data == NULL)
        return rq__index_fail(failure, RQ_E_INVALID, "a table or the column is NULL");
    rq_index *x = calloc(1, sizeof *x);
    if (x == NULL) return rq__index_fail(failure, RQ_E_NO_MEMORY, "out of memory, for an index");
    rq_err rc = open_into(x, db, spec, failure);
    if (rc == RQ_OK)
        *ret = x;
    else
        rq_index_close(x);
    return rc;
}

void rq_index_close(rq_index *index)
{
    if (index == NULL) return;
    if (index->upkeep != NULL && !rq_db_is_home(index->table->db))
        return; /* the thread is the parent's */
    rq__upkeep_stop(index);
    rq_table_close(index->table);
    rq_table_close(index->entries);
    rq_buf_clear(&index->covered_names);
    free(index->names);
    free(index);
}
