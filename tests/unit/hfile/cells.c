/* SPDX-License-Identifier: Apache-2.0 */
/* Random sorted cells (cells.h). Rows and qualifiers share prefixes and differ in length, so that
 * errors in shortened index keys show. */
#include "cells.h"

#include <stdio.h>
#include <stdlib.h>

static rq_slice printed(rq_arena *arena, const char *text, size_t len)
{
    return rq_arena_copy(arena, rq_slice_of(text, len));
}

static rq_slice random_name(rq_arena *arena, rq_random *random, unsigned space, const char *prefix)
{
    char text[64];
    unsigned n = (unsigned)rq_random_below(random, space);
    int len;
    switch (n % 4) {
    case 0:
        len = snprintf(text, sizeof(text), "%s%u", prefix, n);
        break;
    case 1:
        len = snprintf(text, sizeof(text), "%s%06u", prefix, n);
        break;
    case 2:
        len = snprintf(text, sizeof(text), "%s%c%u%c", prefix, (int)(n & 0xff), n, (int)0xff);
        break;
    default:
        len = snprintf(text, sizeof(text), "%06u%s", n, prefix);
        break;
    }
    return printed(arena, text, (size_t)len);
}

rq_slice cell_list_random_row(rq_arena *arena, rq_random *random, const cell_shape *shape)
{
    if (shape->order != RQ_ORDER_META)
        return random_name(arena, random, shape->row_space,
                           rq_random_below(random, 3) ? "row" : "");
    unsigned n = (unsigned)rq_random_below(random, shape->row_space);
    char text[96];
    int len = snprintf(text, sizeof(text), "table%u,%s%u,%u.abc.", n % 7, n % 2 ? "a,b" : "k",
                       n / 7, n % 5);
    return printed(arena, text, (size_t)len);
}

static uint8_t random_type(rq_random *random, bool deletes)
{
    static const uint8_t kinds[] = {RQ_TYPE_DELETE, RQ_TYPE_DELETE_COLUMN, RQ_TYPE_DELETE_FAMILY,
                                    RQ_TYPE_DELETE_FAMILY_VERSION};
    if (!deletes || rq_random_below(random, 4) != 0) return RQ_TYPE_PUT;
    return kinds[rq_random_below(random, 4)];
}

static rq_cell random_cell(cell_list *list, rq_random *random, const cell_shape *shape)
{
    rq_cell c = {0};
    rq_slice row = cell_list_random_row(&list->arena, random, shape);
    rq_slice qualifier = random_name(&list->arena, random, shape->column_space, "q");
    c.type = random_type(random, shape->deletes);
    if (c.type == RQ_TYPE_DELETE_FAMILY || c.type == RQ_TYPE_DELETE_FAMILY_VERSION ||
        rq_random_below(random, 20) == 0)
        qualifier.len = 0;
    c.row = row.ptr;
    c.row_len = (uint16_t)row.len;
    c.family = (const uint8_t *)"fam";
    c.family_len = 3;
    c.qualifier = qualifier.ptr;
    c.qualifier_len = (uint32_t)qualifier.len;
    c.timestamp = (int64_t)rq_random_below(random, 5) + 1700000000000;
    if (rq_random_below(random, 10) == 0)
        c.timestamp = (int64_t)(rq_random_next(random) >> (1 + rq_random_below(random, 62)));
    c.seqid = rq_random_below(random, 3) == 0 ? 0 : rq_random_below(random, 1u << 20);
    if (c.type == RQ_TYPE_PUT) {
        uint8_t value[4096];
        c.value_len = (uint32_t)rq_random_below(random, shape->value_max + 1);
        for (uint32_t i = 0; i < c.value_len; i++)
            value[i] = (uint8_t)(rq_random_below(random, 2) ? 'v' : rq_random_next(random));
        c.value = rq_arena_copy(&list->arena, rq_slice_of(value, c.value_len)).ptr;
    }
    if (shape->tags && rq_random_below(random, 3) == 0) {
        uint8_t tags[] = {0,          4,
                          RQ_TAG_TTL, 'x',
                          'y',        (uint8_t)rq_random_next(random),
                          0,          2,
                          70,         (uint8_t)rq_random_below(random, 3)};
        c.tags_len = rq_random_below(random, 3) == 0 ? sizeof(tags) : 6;
        c.tags = rq_arena_copy(&list->arena, rq_slice_of(tags, c.tags_len)).ptr;
    }
    return c;
}

static int compare_default(const void *a, const void *b)
{
    return rq_cell_compare(RQ_ORDER_DEFAULT, a, b);
}

static int compare_meta(const void *a, const void *b)
{
    return rq_cell_compare(RQ_ORDER_META, a, b);
}

void cell_list_make(cell_list *list, rq_random *random, const cell_shape *shape)
{
    rq_arena_init(&list->arena);
    list->cells = rq_arena_calloc(&list->arena, shape->count + 1, sizeof(rq_cell));
    if (list->cells == NULL) abort();
    for (size_t i = 0; i < shape->count; i++)
        list->cells[i] = random_cell(list, random, shape);
    qsort(list->cells, shape->count, sizeof(rq_cell),
          shape->order == RQ_ORDER_META ? compare_meta : compare_default);
    list->count = 0;
    for (size_t i = 0; i < shape->count; i++)
        if (list->count == 0 ||
            rq_cell_compare(shape->order, &list->cells[list->count - 1], &list->cells[i]) != 0)
            list->cells[list->count++] = list->cells[i];
}

void cell_list_clear(cell_list *list)
{
    rq_arena_clear(&list->arena);
}

rq_cell cell_list_random_key(cell_list *list, rq_random *random, const cell_shape *shape)
{
    rq_cell key = random_cell(list, random, shape);
    switch (rq_random_below(random, 6)) {
    case 0:
        return rq_cell_first_on_row(rq_cell_row(&key));
    case 1:
        return rq_cell_last_on_row(rq_cell_row(&key));
    case 2:
        return rq_cell_first_on_column(rq_cell_row(&key), rq_cell_family(&key),
                                       rq_cell_qualifier(&key));
    case 3:
        if (list->count > 0) return list->cells[rq_random_below(random, list->count)];
        return key;
    default:
        return key;
    }
}

size_t cell_list_floor(const cell_list *list, rq_cell_order order, const rq_cell *key)
{
    size_t i = 0;
    size_t n = list->count;
    while (i < n) {
        size_t mid = i + (n - i) / 2;
        if (rq_cell_compare_key(order, &list->cells[mid], key) < 0)
            i = mid + 1;
        else
            n = mid;
    }
    return i;
}

rq_err cell_list_write(const cell_list *list, rq_vfs *vfs, const char *path,
                       const rq_hfile_options *options, rq_error *why)
{
    rq_hfile_writer *writer;
    RQ_TRY(rq_hfile_writer_open(vfs, path, options, &writer, why));
    rq_err rc = RQ_OK;
    for (size_t i = 0; i < list->count && rc == RQ_OK; i++)
        rc = rq_hfile_writer_append(writer, &list->cells[i], why);
    if (rc == RQ_OK) rc = rq_hfile_writer_finish(writer, NULL, why);
    rq_hfile_writer_close(writer);
    return rc;
}
