/* SPDX-License-Identifier: Apache-2.0 */
/* Random sorted cells in plain memory: the model every HFile test is held against. */
#ifndef RQ_TESTS_HFILE_CELLS_H
#define RQ_TESTS_HFILE_CELLS_H

#include "base/arena.h"
#include "base/random.h"
#include "cell/cell.h"
#include "hfile/writer.h"

typedef struct cell_list {
    rq_arena arena;
    rq_cell *cells; /* sorted by rq_cell_compare, no two equal */
    size_t count;
} cell_list;

typedef struct cell_shape {
    size_t count;
    unsigned row_space; /* about how many different rows */
    unsigned column_space;
    unsigned value_max;
    bool tags;
    bool deletes;
    rq_cell_order order;
} cell_shape;

void cell_list_make(cell_list *list, rq_random *random, const cell_shape *shape);
void cell_list_clear(cell_list *list);
/* A key that may or may not be near cells of the list; lives in the arena. */
rq_cell cell_list_random_key(cell_list *list, rq_random *random, const cell_shape *shape);
/* The first cell whose key is not before `key`; count when none. */
size_t cell_list_floor(const cell_list *list, rq_cell_order order, const rq_cell *key);
/* Into a file of their own. */
RQ_NODISCARD
rq_err cell_list_write(const cell_list *list, rq_vfs *vfs, const char *path,
                       const rq_hfile_options *options, rq_error *why);
/* A random row name as the list's rows are made. */
rq_slice cell_list_random_row(rq_arena *arena, rq_random *random, const cell_shape *shape);

#endif
