/* SPDX-License-Identifier: Apache-2.0 */
/* Prefetches what linking a batch's cells will read. */
#ifndef RQ_STORE_SEGMENT_AHEAD_H
#define RQ_STORE_SEGMENT_AHEAD_H

#include "store/segment.h"

/* Interleaved searches: about the number of cache misses a core can have in flight. */
#define RQ__SEGMENT_ROWS_AHEAD 16

/* A hint: searches for the rows of the first cells of the list, as many as pay off, to bring
 * their path into the caches. Returns their number; ret_cells[i]: how many of the list's cells are in the i-th
 * of them, one behind the other in one segment. REQUIRES: the writer; count > 0. */
size_t rq__segment_ahead(const rq_segment_pending *list, size_t count,
                         size_t ret_cells[RQ__SEGMENT_ROWS_AHEAD]);

#endif
