/* SPDX-License-Identifier: Apache-2.0 */
/* Rows, and the outcomes of batches. A row is one block of memory:
 *
 *    own_row | rq_kv [count] | the cells' bytes, a copy of their cell block
 *
 * It is an allocation of its own, or is in an arena with the other rows of a list (rq_rows), or in a chunk
 * with the neighbouring rows of a scan. A chunk is freed with the last of its rows. */
#include "api/api_priv.h"

#include "base/work_limit.h"
#include "cell/cellblock.h"

#include <stdlib.h>

static rq_bytes bytes_of(const void *data, size_t len)
{
    return (rq_bytes){data, len};
}

/* --- memory of rows --------------------------------------------------------------------------- */

/* A chunk of rows that are freed one by one, by any thread. The rq_row_memory that allocates rows in the chunk holds
 * REFS_OF_MAKER references and passes one to each new row, which needs no atomic operation. When it leaves the chunk,
 * it releases the references that it has not passed on. A row that is kept keeps its whole chunk allocated, so chunks
 * are small. */
typedef struct rq__row_chunk {
    _Atomic size_t refs;
    size_t used;
    size_t given; /* number of references passed to rows */
    _Alignas(RQ_ARENA_ALIGN) uint8_t bytes[];
} row_chunk;

#define REFS_OF_MAKER (SIZE_MAX / 2)
#define CHUNK_BYTES ((size_t)16 * 1024 - sizeof(row_chunk) - 16)
/* A larger row is an allocation of its own. */
#define ROW_IN_CHUNK_MAX (CHUNK_BYTES / 8)

typedef struct own_row {
    row_chunk *chunk; /* NULL: in none */
    bool in_arena;    /* allocated in an arena, and freed with it */
    rq_row pub;
} own_row;

static row_chunk *chunk_begin(row_chunk *c)
{
    if (c == NULL) return NULL;
    atomic_init(&c->refs, REFS_OF_MAKER);
    c->used = c->given = 0;
    return c;
}

/* Whether the chunk's memory is the caller's now. */
static bool chunk_unref(row_chunk *c, size_t refs)
{
    return atomic_fetch_sub_explicit(&c->refs, refs, memory_order_acq_rel) == refs;
}

void rq_row_memory_clear(rq_row_memory *m)
{
    row_chunk *c = m->chunk;
    m->chunk = NULL;
    if (c != NULL && chunk_unref(c, REFS_OF_MAKER - c->given)) free(c);
    rq_arena_clear(&m->arena);
}

/* The next chunk: the last one again, if its rows are freed. */
RQ_COLD static row_chunk *chunk_next(rq_row_memory *m)
{
    row_chunk *c = m->chunk;
    if (c == NULL || !chunk_unref(c, REFS_OF_MAKER - c->given)) c = malloc(sizeof *c + CHUNK_BYTES);
    return m->chunk = chunk_begin(c);
}

static own_row *alloc_in_chunk(rq_row_memory *m, size_t size)
{
    size_t rounded = (size + RQ_ARENA_ALIGN - 1) & ~(RQ_ARENA_ALIGN - 1);
    row_chunk *c = m->chunk;
    if (RQ_UNLIKELY(c == NULL || CHUNK_BYTES - c->used < rounded)) c = chunk_next(m);
    if (RQ_UNLIKELY(c == NULL)) return NULL;
    own_row *row = (own_row *)(c->bytes + c->used);
    c->used += rounded;
    c->given++;
    row->chunk = c;
    row->in_arena = false;
    return row;
}

/* AddressSanitizer sees the end of each row only if it is an allocation. */
static bool fits_chunk(const rq_row_memory *m, size_t size)
{
    return !RQ_ASAN && m != NULL && m->counts && size <= ROW_IN_CHUNK_MAX;
}

static own_row *row_alloc(rq_row_memory *m, size_t more)
{
    size_t size = sizeof(own_row) + more;
    bool in_arena = m != NULL && !m->counts;
    if (RQ_LIKELY(fits_chunk(m, size))) return alloc_in_chunk(m, size);
    own_row *row = in_arena ? rq_arena_alloc(&m->arena, size) : malloc(size);
    if (row == NULL) return NULL;
    row->chunk = NULL;
    row->in_arena = in_arena;
    return row;
}

void rq_row_free(rq_row *row)
{
    if (row == NULL) return;
    own_row *own = RQ_CONTAINER_OF(row, own_row, pub);
    if (own->in_arena) return;
    if (own->chunk == NULL)
        free(own);
    else if (chunk_unref(own->chunk, 1))
        free(own->chunk);
}

/* --- a row's cells ---------------------------------------------------------------------------- */

/* Nearly every cell: a put without tags. Returns where it ends; NULL: it is another one, or none. */
static const uint8_t *take_put(const uint8_t *p, const uint8_t *end, rq_kv *ret)
{
    size_t left = (size_t)(end - p);
    if (RQ_UNLIKELY(left < 12 + RQ_KEY_FIXED_LEN)) return NULL;
    uint64_t len = rq_get_be32(p), key_len = rq_get_be32(p + 4), value_len = rq_get_be32(p + 8);
    if (RQ_UNLIKELY(len > left - 4 || 8 + key_len + value_len != len || value_len > INT32_MAX ||
                    key_len < RQ_KEY_FIXED_LEN))
        return NULL;
    const uint8_t *row = p + 14, *value = p + 12 + key_len;
    size_t room = key_len - RQ_KEY_FIXED_LEN, row_len = rq_get_be16(p + 12);
    if (RQ_UNLIKELY(row_len > RQ_ROW_LEN_MAX || row_len > room)) return NULL;
    size_t family_len = row[row_len];
    room -= row_len;
    if (RQ_UNLIKELY(family_len > RQ_FAMILY_LEN_MAX || family_len > room)) return NULL;
    if (RQ_UNLIKELY(value[-1] != RQ_TYPE_PUT)) return NULL;
    const uint8_t *family = row + row_len + 1;
    ret->row = bytes_of(row, row_len);
    ret->family = bytes_of(family, family_len);
    ret->qualifier = bytes_of(family + family_len, room - family_len);
    ret->value = bytes_of(value, value_len);
    ret->timestamp = (int64_t)rq_get_be64(value - 9);
    ret->type = RQ_KV_PUT;
    rq_work_count(0);
    return value + value_len;
}

static rq_err take_cell(rq_cursor *c, rq_kv *ret)
{
    rq_cell cell;
    rq_err rc = rq_cellblock_next(c, &cell, NULL);
    if (rc != RQ_OK) return rc == RQ_E_END ? RQ_E_MALFORMED : rc;
    *ret = (rq_kv){.row = bytes_of(cell.row, cell.row_len),
                   .family = bytes_of(cell.family, cell.family_len),
                   .qualifier = bytes_of(cell.qualifier, cell.qualifier_len),
                   .value = bytes_of(cell.value, cell.value_len),
                   .timestamp = cell.timestamp,
                   .type = (rq_kv_type)cell.type};
    return RQ_OK;
}

static rq_err take_cells(rq_slice bytes, rq_kv *cells, uint32_t count)
{
    rq_cursor c = rq_cursor_of(bytes);
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *after = take_put(c.ptr, c.end, &cells[i]);
        if (RQ_LIKELY(after != NULL))
            c.ptr = after;
        else
            RQ_TRY(take_cell(&c, &cells[i]));
    }
    return RQ_OK;
}

rq_err rq_row_of_block(rq_slice block, uint32_t count, rq_row_memory *memory, rq_row **ret)
{
    if (count > block.len / 4) return RQ_E_MALFORMED; /* each has a length of its own */
    own_row *row = row_alloc(memory, count * sizeof(rq_kv) + block.len);
    if (row == NULL) return RQ_E_NO_MEMORY;
    rq_kv *cells = (rq_kv *)(row + 1);
    uint8_t *bytes = (uint8_t *)(cells + count);
    if (block.len > 0) memcpy(bytes, block.ptr, block.len);
    row->pub = (rq_row){.count = count, .cells = cells, .exists = count > 0};
    rq_err rc = take_cells(rq_slice_of(bytes, block.len), cells, count);
    if (rc == RQ_OK)
        *ret = &row->pub;
    else
        rq_row_free(&row->pub);
    return rc;
}

rq_err rq_row_of_cursor(rq_slice cursor, rq_row **ret)
{
    own_row *row = row_alloc(NULL, cursor.len);
    if (row == NULL) return RQ_E_NO_MEMORY;
    uint8_t *bytes = (uint8_t *)(row + 1);
    if (cursor.len > 0) memcpy(bytes, cursor.ptr, cursor.len);
    row->pub = (rq_row){.cursor = bytes_of(bytes, cursor.len)};
    *ret = &row->pub;
    return RQ_OK;
}

/* --- copies ----------------------------------------------------------------------------------- */

static rq_bytes copy_bytes(uint8_t **at, rq_bytes from)
{
    uint8_t *to = *at;
    if (from.len > 0) memcpy(to, from.data, from.len);
    *at = to + from.len;
    return bytes_of(to, from.len);
}

/* Cells with the same key as the one before share its bytes: in a row that is all of them. */
static bool has_same_key(const rq_kv *a, const rq_kv *b)
{
    return rq_slice_eq(rq_slice_of_bytes(a->row), rq_slice_of_bytes(b->row));
}

static size_t copied_bytes(const rq_kv *cells, size_t count)
{
    size_t len = 0;
    for (size_t i = 0; i < count; i++) {
        const rq_kv *c = &cells[i];
        len += c->family.len + c->qualifier.len + c->value.len;
        if (i == 0 || !has_same_key(c, c - 1)) len += c->row.len;
    }
    return len;
}

/* Returns where the copied bytes end. */
static uint8_t *copy_cells(uint8_t *at, const rq_kv *from, size_t count, rq_kv *to)
{
    for (size_t i = 0; i < count; i++) {
        const rq_kv *c = &from[i];
        bool shares = i > 0 && has_same_key(c, c - 1);
        to[i] = (rq_kv){.timestamp = c->timestamp, .type = c->type};
        to[i].row = shares ? to[i - 1].row : copy_bytes(&at, c->row);
        to[i].family = copy_bytes(&at, c->family);
        to[i].qualifier = copy_bytes(&at, c->qualifier);
        to[i].value = copy_bytes(&at, c->value);
    }
    return at;
}

static rq_err no_copy(rq_failure *failure)
{
    rq_why why;
    rq_why_clear(&why);
    return rq_fill_failure(failure, rq_no_memory(&why.error), &why);
}

rq_err rq_row_copy(const rq_row *row, rq_row **ret, rq_failure *failure)
{
    RQ_TRY(rq_needs(row, "row", failure));
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    own_row *copy = row_alloc(NULL, row->count * sizeof(rq_kv) +
                                        copied_bytes(row->cells, row->count) + row->cursor.len);
    if (copy == NULL) return no_copy(failure);
    rq_kv *cells = (rq_kv *)(copy + 1);
    uint8_t *at = copy_cells((uint8_t *)(cells + row->count), row->cells, row->count, cells);
    copy->pub = *row;
    copy->pub.cells = cells;
    copy->pub.cursor = copy_bytes(&at, row->cursor);
    *ret = &copy->pub;
    return RQ_OK;
}

rq_err rq_kv_copy(const rq_kv *cell, rq_kv **ret, rq_failure *failure)
{
    RQ_TRY(rq_needs(cell, "cell", failure));
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    rq_kv *copy = malloc(sizeof *copy + copied_bytes(cell, 1));
    if (copy == NULL) return no_copy(failure);
    (void)copy_cells((uint8_t *)(copy + 1), cell, 1, copy);
    *ret = copy;
    return RQ_OK;
}

void rq_kv_free(rq_kv *cell)
{
    free(cell);
}

/* --- rows of a scan --------------------------------------------------------------------------- */

typedef struct row_list {
    rq_rows pub;
    rq_row **items; /* pub.items */
    size_t cap;
    rq_row_memory memory; /* in which rows are allocated */
    bool has_others;      /* some rows are not in `memory`: each must be freed */
} row_list;

rq_err rq__rows_new(rq_rows **ret)
{
    row_list *list = calloc(1, sizeof *list);
    if (list == NULL) return RQ_E_NO_MEMORY;
    *ret = &list->pub;
    return RQ_OK;
}

static row_list *list_of(rq_rows *rows)
{
    return RQ_CONTAINER_OF(rows, row_list, pub);
}

rq_row_memory *rq__rows_memory(rq_rows *rows)
{
    return &list_of(rows)->memory;
}

rq_err rq__rows_room(rq_rows *rows, size_t count, rq_row ***ret)
{
    row_list *list = list_of(rows);
    if (list->cap - rows->count < count) {
        size_t cap = 2 * list->cap > rows->count + count ? 2 * list->cap : rows->count + count;
        rq_row **items = realloc(list->items, cap * sizeof *items);
        if (items == NULL) return RQ_E_NO_MEMORY;
        rows->items = list->items = items;
        list->cap = cap;
    }
    *ret = list->items + rows->count;
    return RQ_OK;
}

void rq__rows_added(rq_rows *rows, size_t count)
{
    row_list *list = list_of(rows);
    for (size_t i = 0; i < count && !list->has_others; i++)
        list->has_others = !RQ_CONTAINER_OF(list->items[rows->count + i], own_row, pub)->in_arena;
    rows->count += count;
}

rq_err rq__rows_add(rq_rows *rows, rq_row *row)
{
    rq_row **room;
    if (rq__rows_room(rows, 1, &room) != RQ_OK) {
        rq_row_free(row);
        return RQ_E_NO_MEMORY;
    }
    *room = row;
    rq__rows_added(rows, 1);
    return RQ_OK;
}

void rq_rows_free(rq_rows *rows)
{
    if (rows == NULL) return;
    row_list *list = list_of(rows);
    for (size_t i = 0; i < rows->count && list->has_others; i++)
        rq_row_free(list->items[i]);
    rq_row_memory_clear(&list->memory);
    free(list->items);
    free(list);
}

/* --- columns of a row ------------------------------------------------------------------------- */

static bool is(rq_bytes a, rq_bytes b)
{
    return rq_slice_eq(rq_slice_of_bytes(a), rq_slice_of_bytes(b));
}

const rq_kv *rq_row_find(const rq_row *row, rq_bytes family, rq_bytes qualifier)
{
    for (size_t i = 0; row != NULL && i < row->count; i++)
        if (is(row->cells[i].family, family) && is(row->cells[i].qualifier, qualifier))
            return &row->cells[i];
    return NULL;
}

/* --- outcomes --------------------------------------------------------------------------------- */

typedef struct text_link {
    struct text_link *next;
    char bytes[];
} text_link;

struct rq_outcomes {
    rq_results pub;
    size_t first_failed; /* action, by index; RQ_NO_ACTION: none */
    rq_why why;          /* of the action `first_failed` */
    text_link *texts;
    bool *set;
    rq_outcome items[];
};

rq_err rq__outcomes_new(size_t count, rq_outcomes **ret)
{
    if (count > (SIZE_MAX - sizeof(rq_outcomes)) / (sizeof(rq_outcome) + 1)) return RQ_E_NO_MEMORY;
    rq_outcomes *o = calloc(1, sizeof *o + count * (sizeof(rq_outcome) + sizeof(bool)));
    if (o == NULL) return RQ_E_NO_MEMORY;
    o->pub = (rq_results){.count = count, .items = o->items};
    o->set = (bool *)(o->items + count);
    o->first_failed = RQ_NO_ACTION;
    *ret = o;
    return RQ_OK;
}

void rq_results_free(rq_results *results)
{
    if (results == NULL) return;
    rq_outcomes *o = RQ_CONTAINER_OF(results, rq_outcomes, pub);
    for (size_t i = 0; i < o->pub.count; i++)
        rq_row_free((rq_row *)(uintptr_t)o->items[i].row);
    while (o->texts != NULL) {
        text_link *t = o->texts;
        o->texts = t->next;
        free(t);
    }
    free(o);
}

bool rq_outcome_is_set(const rq_outcomes *o, size_t action)
{
    return o->set[action];
}

void rq_outcome_row(rq_outcomes *o, size_t action, rq_row *row, bool done)
{
    o->items[action] = (rq_outcome){.code = RQ_OK, .done = done, .row = row};
    o->set[action] = true;
}

/* The class and the message as two strings of one link. Without memory it returns static texts. */
static const char *keep_texts(rq_outcomes *o, const char *java_class, const char *message,
                              const char **ret_message)
{
    size_t a = strlen(java_class) + 1, b = strlen(message) + 1;
    text_link *t = malloc(sizeof *t + a + b);
    if (t == NULL) return NULL;
    t->next = o->texts;
    o->texts = t;
    memcpy(t->bytes, java_class, a);
    memcpy(t->bytes + a, message, b);
    *ret_message = t->bytes + a;
    return t->bytes;
}

void rq_outcome_fail(rq_outcomes *o, size_t action, rq_err rc, const rq_why *why)
{
    rq_outcome *out = &o->items[action];
    bool is_remote = why != NULL && why->is_remote;
    const char *java_class =
        is_remote && why->java_class[0] != '\0' ? why->java_class : rq_err_java_class(rc);
    const char *message =
        why != NULL && why->error.message[0] != '\0' ? why->error.message : rq_err_text(rc);
    *out = (rq_outcome){.code = rc,
                        .retryable = is_remote ? why->retryable : !rq_err_do_not_retry(rc)};
    out->hbase_class = keep_texts(o, java_class, message, &out->message);
    if (out->hbase_class == NULL) {
        out->hbase_class = rq_err_java_class(rc);
        out->message = rq_err_text(rc);
    }
    o->set[action] = true;
    if (action > o->first_failed) return;
    o->first_failed = action;
    if (why != NULL)
        o->why = *why;
    else
        rq_why_clear(&o->why);
}

void rq__outcomes_fill(rq_outcomes *o, size_t count, rq_err rc, const rq_why *why)
{
    for (size_t i = 0; rc != RQ_OK && i < count; i++)
        if (!o->set[i]) rq_outcome_fail(o, i, rc, why);
}

rq_err rq__outcomes_end(rq_outcomes *o, rq_results **ret, rq_why *why)
{
    rq_err rc = RQ_OK;
    if (o->first_failed != RQ_NO_ACTION) {
        rc = o->items[o->first_failed].code;
        *why = o->why;
        why->action = o->first_failed;
    }
    if (ret != NULL)
        *ret = &o->pub;
    else
        rq_results_free(&o->pub);
    return rc;
}

/* --- names ------------------------------------------------------------------------------------ */

rq_err rq_naming_add(rq_naming *n, rq_slice name)
{
    RQ_TRY(rq_buf_append(&n->text, name.ptr, name.len));
    RQ_TRY(rq_buf_append_u8(&n->text, 0));
    n->count++;
    return RQ_OK;
}

void rq_names_free(rq_names *names)
{
    free(names);
}
