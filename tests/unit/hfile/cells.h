/* SPDX-License-Identifier: Apache-2.0 */
/* Random sorted cells in plain memory: the model with which the HFile tests compare. */
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
    unsigned row_space; /* approximate number of different rows */
    unsigned column_space;
    unsigned value_max;
    bool tags;
    bool deletes;
    rq_cell_order order;
} cell_shape;

void cell_list_make(cell_list *list, rq_random *random, const cell_shape *shape);
void cell_list_clear(cell_list *list);
/* A random key, which may be near cells of the list; in the list's arena. */
rq_cell cell_list_random_key(cell_list *list, rq_random *random, const cell_shape *shape);
/* The first cell whose key is not before `key`; count if there is none. */
size_t cell_list_floor(const cell_list *list, rq_cell_order order, const rq_cell *key);
/* Writes the cells to a new file. */
RQ_NODISCARD
rq_err cell_list_write(const cell_list *list, rq_vfs *vfs, const char *path,
                       const rq_hfile_options *options, rq_error *why);
/* A random row key of the same form as the list's rows. */
rq_slice cell_list_random_row(rq_arena *arena, rq_random *random, const cell_shape *shape);

#endif
