/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests and rows as two flat arrays, so that a call from Python crosses into C once, however many
 * cells it has: int64 numbers in a fixed order, and bytes one after another.
 *
 *   request: numbers (host order) and bytes, made by rorqual/_pack.py, which defines the order; first
 *            the numbers of actions, changes, edits, gets, columns, attributes and checks
 *   rows:    one block: how many numbers follow, the numbers, the bytes; freed by rqpy_free
 *
 * Numbers of a row:     cells, flags (1 exists, 2 partial, 4 no row but a scan's cursor), length of the
 *                       row key or cursor
 *            a cell:    lengths of family, qualifier, value; timestamp, type
 *            outcome:   code, retryable, done, lengths of class and message; then its row
 * Bytes are those of each length, in the same order.
 *
 * Lengths are trusted: they come from len() of the bytes that Python concatenated.
 */
#include "rorqual/rorqual.h"
#include "rorqual/rowkey.h"

#include <stdlib.h>

/* Reads a request from front to back into arrays with space for all of it. */
typedef struct input {
    const int64_t *numbers;
    const char *bytes;
    rq_edit *edits;
    rq_column *columns;
    rq_named_bytes *attributes;
} input;

static int64_t take_number(input *in)
{
    return *in->numbers++;
}

/* A negative length stands for absent bytes. */
static rq_bytes take_bytes(input *in, int64_t len)
{
    rq_bytes b = {NULL, 0};
    if (len < 0) return b;
    b.data = in->bytes;
    b.len = (size_t)len;
    in->bytes += len;
    return b;
}

/* --- requests --------------------------------------------------------------------------------- */

static void take_edit(input *in, rq_edit *edit)
{
    int64_t family = take_number(in), qualifier = take_number(in), value = take_number(in);
    *edit = (rq_edit){.family = take_bytes(in, family), .qualifier = take_bytes(in, qualifier)};
    edit->value = take_bytes(in, value);
    edit->timestamp = take_number(in);
    edit->amount = take_number(in);
    edit->scope = (rq_delete_scope)take_number(in);
}

/* Names are NUL-terminated. */
static const rq_named_bytes *take_attributes(input *in, size_t count)
{
    const rq_named_bytes *first = in->attributes;
    for (size_t i = 0; i < count; i++) {
        int64_t name = take_number(in), value = take_number(in);
        in->attributes->name = take_bytes(in, name).data;
        in->attributes->value = take_bytes(in, value);
        in->attributes++;
    }
    return first;
}

static void take_change(input *in, rq_change *change)
{
    *change = (rq_change){.size = sizeof *change, .edits = in->edits};
    change->kind = (rq_change_kind)take_number(in);
    change->row = take_bytes(in, take_number(in));
    change->edit_count = (size_t)take_number(in);
    change->timestamp = take_number(in);
    change->durability = (rq_durability_level)take_number(in);
    change->ttl_ms = (uint64_t)take_number(in);
    change->returns_nothing = take_number(in) != 0;
    change->min_timestamp = take_number(in);
    change->max_timestamp = take_number(in);
    change->priority = (int32_t)take_number(in);
    change->attribute_count = (size_t)take_number(in);
    change->attributes = take_attributes(in, change->attribute_count);
    for (size_t i = 0; i < change->edit_count; i++)
        take_edit(in, in->edits++);
}

static const rq_column *take_columns(input *in, size_t count)
{
    const rq_column *first = in->columns;
    for (size_t i = 0; i < count; i++) {
        int64_t family = take_number(in), qualifier = take_number(in);
        in->columns->family = take_bytes(in, family);
        in->columns->qualifier = take_bytes(in, qualifier);
        in->columns++;
    }
    return first;
}

/* Gets and scans begin with the same numbers; the text of a filter is NUL-terminated. */
static void take_get(input *in, rq_get_request *get)
{
    *get = (rq_get_request){.size = sizeof *get};
    get->row = take_bytes(in, take_number(in));
    get->column_count = (size_t)take_number(in);
    get->max_versions = (int32_t)take_number(in);
    get->min_timestamp = take_number(in);
    get->max_timestamp = take_number(in);
    get->filter_text = take_bytes(in, take_number(in)).data;
    get->filter = take_bytes(in, take_number(in));
    get->family_limit = (int32_t)take_number(in);
    get->family_offset = (int32_t)take_number(in);
    get->existence_only = take_number(in) != 0;
    get->no_block_cache = take_number(in) != 0;
    get->reads_uncommitted = take_number(in) != 0;
    get->priority = (int32_t)take_number(in);
    get->attribute_count = (size_t)take_number(in);
    get->attributes = take_attributes(in, get->attribute_count);
    get->columns = take_columns(in, get->column_count);
}

static void take_changes(input *in, rq_change *changes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        take_change(in, changes + i);
}

/* A request's structs, in one allocation: freed by request_free. */
typedef struct request {
    input in;
    void *memory;
    size_t action_count, change_count;
    rq_checked_action *actions;
    rq_change *changes;
    rq_get_request *gets;
    rq_check *checks;
} request;

/* Takes numbers and bytes in the form of _pack.py; false: out of memory. */
static bool request_begin(request *r, const char *numbers, const char *bytes)
{
    r->in = (input){.numbers = (const void *)numbers, .bytes = bytes};
    r->action_count = (size_t)take_number(&r->in);
    r->change_count = (size_t)take_number(&r->in);
    size_t edits = (size_t)take_number(&r->in) * sizeof *r->in.edits,
           gets = (size_t)take_number(&r->in) * sizeof *r->gets,
           columns = (size_t)take_number(&r->in) * sizeof *r->in.columns,
           attributes = (size_t)take_number(&r->in) * sizeof *r->in.attributes,
           checks = (size_t)take_number(&r->in) * sizeof *r->checks,
           actions = r->action_count * sizeof *r->actions,
           changes = r->change_count * sizeof *r->changes;
    char *at = malloc(actions + changes + edits + gets + columns + attributes + checks + 1);
    r->memory = at;
    if (at == NULL) return false;
    r->actions = (void *)at;
    r->changes = (void *)(at += actions);
    r->in.edits = (void *)(at += changes);
    r->gets = (void *)(at += edits);
    r->in.columns = (void *)(at += gets);
    r->in.attributes = (void *)(at += columns);
    r->checks = (void *)(at + attributes);
    return true;
}

static void request_free(request *r)
{
    free(r->memory);
}

static rq_err no_memory(rq_failure *why)
{
    why->code = RQ_E_NO_MEMORY;
    why->retryable = true;
    why->action = RQ_NO_ACTION;
    why->hbase_class[0] = 0;
    strcpy(why->message, "out of memory");
    return RQ_E_NO_MEMORY;
}

/* --- rows ------------------------------------------------------------------------------------- */

/* A block of rows under construction. */
typedef struct output {
    int64_t *numbers;
    size_t number_count, number_cap;
    char *bytes;
    size_t len, cap;
    bool failed;
} output;

static void *grow(void *memory, size_t *cap, size_t needed, size_t item)
{
    size_t wanted = *cap * 2 > needed ? *cap * 2 : needed;
    void *grown = realloc(memory, wanted * item);
    if (grown != NULL) *cap = wanted;
    return grown;
}

static void put_number(output *out, int64_t number)
{
    if (out->number_count == out->number_cap) {
        void *grown = grow(out->numbers, &out->number_cap, 32, sizeof number);
        out->failed |= grown == NULL;
        if (grown == NULL) return;
        out->numbers = grown;
    }
    out->numbers[out->number_count++] = number;
}

static void put_bytes(output *out, const void *data, size_t len)
{
    if (len > out->cap - out->len) {
        void *grown = grow(out->bytes, &out->cap, out->len + len + 256, 1);
        out->failed |= grown == NULL;
        if (grown == NULL) return;
        out->bytes = grown;
    }
    if (len > 0) memcpy(out->bytes + out->len, data, len);
    out->len += len;
}

static void put_sized(output *out, rq_bytes b)
{
    put_number(out, (int64_t)b.len);
    put_bytes(out, b.data, b.len);
}

static void put_row(output *out, const rq_row *row)
{
    put_number(out, (int64_t)row->count);
    put_number(out,
               (row->exists ? 1 : 0) | (row->is_partial ? 2 : 0) | (row->cursor.len > 0 ? 4 : 0));
    put_sized(out, row->count > 0 ? row->cells[0].row : row->cursor);
    for (size_t i = 0; i < row->count && !out->failed; i++) {
        const rq_kv *cell = row->cells + i;
        put_sized(out, cell->family);
        put_sized(out, cell->qualifier);
        put_sized(out, cell->value);
        put_number(out, cell->timestamp);
        put_number(out, cell->type);
    }
}

static void put_outcome(output *out, const rq_outcome *outcome)
{
    static const rq_row empty = {0};
    put_number(out, outcome->code);
    put_number(out, outcome->retryable);
    put_number(out, outcome->done);
    put_sized(out, rq_text(outcome->hbase_class != NULL ? outcome->hbase_class : ""));
    put_sized(out, rq_text(outcome->message != NULL ? outcome->message : ""));
    put_row(out, outcome->row != NULL ? outcome->row : &empty);
}

/* Makes one block from the collected data, and frees the rest. */
static rq_err output_end(output *out, char **ret, size_t *ret_len, rq_failure *why)
{
    size_t numbers = out->number_count * sizeof *out->numbers,
           len = sizeof(int64_t) + numbers + out->len;
    char *block = out->failed ? NULL : malloc(len);
    if (block != NULL) {
        int64_t count = (int64_t)out->number_count;
        memcpy(block, &count, sizeof count);
        if (numbers > 0) memcpy(block + sizeof count, out->numbers, numbers);
        if (out->len > 0) memcpy(block + sizeof count + numbers, out->bytes, out->len);
        *ret = block;
        *ret_len = len;
    }
    free(out->numbers);
    free(out->bytes);
    return block != NULL ? RQ_OK : no_memory(why);
}

static rq_err one_row(rq_err e, rq_row *row, char **ret, size_t *ret_len, rq_failure *why)
{
    if (e != RQ_OK || row == NULL) return e;
    output out = {0};
    put_row(&out, row);
    rq_row_free(row);
    return output_end(&out, ret, ret_len, why);
}
