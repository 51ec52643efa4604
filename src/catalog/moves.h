/* SPDX-License-Identifier: Apache-2.0 */
/* Moves of regions that nobody waits for: each is a procedure. */
#ifndef RQ_CATALOG_MOVES_H
#define RQ_CATALOG_MOVES_H

#include "catalog/catalog.h"

typedef struct rq__move rq__move;

/* Adds one to the list, at first NULL. Copies. */
RQ_NODISCARD
rq_err rq__move_add(rq__move **list, const rq_region_info *info, const rq_server_name *to);
/* Submits the moves and counts them; with an error, as of a move for which memory did not suffice, it frees them. Returns that
 * error. */
RQ_NODISCARD
rq_err rq__moves_submit(rq_catalog *c, rq__move *list, rq_err rc, size_t *ret_count);

#endif
