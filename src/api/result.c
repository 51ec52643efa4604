/* SPDX-License-Identifier: Apache-2.0 */
/* Rows, and the outcomes of batches. A row is one allocation, or a piece of the arena of the rows of a
 * scan that are returned together:
 *
 *    own_row | rq_kv [count] | the cells' bytes, a copy of their cell block
 */
#include "api/api_priv.h"

#include "cell/cellblock.h"

#include <stdlib.h>

static rq_bytes bytes_of(const void *data, size_t len)
{
    return (rq_bytes){data, len};
}

typedef struct own_row {
    bool in_arena; /* and freed with it */
    rq_row pub;
} own_row;

static own_row *row_alloc(rq_arena *memory, size_t more)
{
    size_t size = sizeof(own_row) + more;
    own_row *row = memory == NULL ? malloc(size) : rq_arena_alloc(memory, size);
    if (row != NULL) row->in_arena = memory != NULL;
    return row;
}

rq_err rq_row_of_block(rq_slice block, uint32_t count, rq_arena *memory, rq_row **ret)
{
    if (count > block.len / 4) return RQ_E_MALFORMED; /* each has a length of its own */
    own_row *row = row_alloc(memory, count * sizeof(rq_kv) + block.len);
    if (row == NULL) return RQ_E_NO_MEMORY;
    rq_kv *cells = (rq_kv *)(row + 1);
    uint8_t *bytes = (uint8_t *)(cells + count);
    if (block.len > 0) memcpy(bytes, block.ptr, block.len);
    rq_cursor c = rq_cursor_of(rq_slice_of(bytes, block.len));
    row->pub = (rq_row){.count = count, .cells = cells, .exists = count > 0};
    for (uint32_t i = 0; i < count; i++) {
        rq_cell cell;
        rq_err rc = rq_cellblock_next(&c, &cell, NULL);
        if (rc != RQ_OK) {
            rq_row_free(&row->pub);
            return rc == RQ_E_END ? RQ_E_MALFORMED : rc;
        }
        cells[i] = (rq_kv){.row = bytes_of(cell.row, cell.row_len),
                           .family = bytes_of(cell.family, cell.family_len),
                           .qualifier = bytes_of(cell.qualifier, cell.qualifier_len),
                           .value = bytes_of(cell.value, cell.value_len),
                           .timestamp = cell.timestamp,
                           .type = (rq_kv_type)cell.type};
    }
    *ret = &row->pub;
    return RQ_OK;
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

void rq_row_free(rq_row *row)
{
    if (row == NULL) return;
    own_row *own = RQ_CONTAINER_OF(row, own_row, pub);
    if (!own->in_arena) free(own);
}

/* --- rows of a scan --------------------------------------------------------------------------- */

typedef struct row_list {
    rq_rows pub;
    rq_row **items; /* pub.items */
    size_t cap;
    rq_arena memory; /* of rows */
    bool has_others; /* rows that have memory of their own */
} row_list;

rq_err rq__rows_new(rq_rows **ret)
{
    row_list *list = calloc(1, sizeof *list);
    if (list == NULL) return RQ_E_NO_MEMORY;
    *ret = &list->pub;
    return RQ_OK;
}

rq_arena *rq__rows_memory(rq_rows *rows)
{
    return &RQ_CONTAINER_OF(rows, row_list, pub)->memory;
}

rq_err rq__rows_add(rq_rows *rows, rq_row *row)
{
    row_list *list = RQ_CONTAINER_OF(rows, row_list, pub);
    if (rows->count == list->cap) {
        size_t cap = list->cap == 0 ? 16 : 2 * list->cap;
        rq_row **items = realloc(list->items, cap * sizeof *items);
        if (items == NULL) {
            rq_row_free(row);
            return RQ_E_NO_MEMORY;
        }
        rows->items = list->items = items;
        list->cap = cap;
    }
    if (!RQ_CONTAINER_OF(row, own_row, pub)->in_arena) list->has_others = true;
    list->items[rows->count++] = row;
    return RQ_OK;
}

void rq_rows_free(rq_rows *rows)
{
    if (rows == NULL) return;
    row_list *list = RQ_CONTAINER_OF(rows, row_list, pub);
    for (size_t i = 0; i < rows->count && list->has_others; i++)
        rq_row_free(list->items[i]);
    rq_arena_clear(&list->memory);
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
    rq_why why;          /* of it */
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

void rq_outcome_row(rq_outcomes *o, size_t action, rq_row *row)
{
    o->items[action] = (rq_outcome){.code = RQ_OK, .row = row};
    o->set[action] = true;
}

/* The class and the message as two strings of one link; NULL: no memory, and static texts do. */
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
    bool told = why != NULL && why->is_remote;
    const char *java_class =
        told && why->java_class[0] != '\0' ? why->java_class : rq_err_java_class(rc);
    const char *message =
        why != NULL && why->error.message[0] != '\0' ? why->error.message : rq_err_text(rc);
    *out = (rq_outcome){.code = rc, .retryable = told ? why->retryable : !rq_err_do_not_retry(rc)};
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
