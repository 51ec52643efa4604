/* SPDX-License-Identifier: Apache-2.0 */
/* What linking a batch's cells will look at, asked for from memory before. */
#ifndef RQ_STORE_SEGMENT_AHEAD_H
#define RQ_STORE_SEGMENT_AHEAD_H

#include "store/segment.h"

/* A hint: looks for the rows that the list's cells begin with, for as many as are worth it, and
 * returns how many of the cells these are. REQUIRES: the writer; count > 0. */
size_t rq__segment_ahead(const rq_segment_pending *list, size_t count);

#endif
