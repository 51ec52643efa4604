/* SPDX-License-Identifier: Apache-2.0 */
/* Prefetches what linking a batch's cells will read. */
#ifndef RQ_STORE_SEGMENT_AHEAD_H
#define RQ_STORE_SEGMENT_AHEAD_H

#include "store/segment.h"

/* A hint: searches for the rows of the first cells of the list, as many as pay off, to bring
 * their path into the caches. Returns the number of cells covered. REQUIRES: the writer; count >
 * 0. */
size_t rq__segment_ahead(const rq_segment_pending *list, size_t count);

#endif
