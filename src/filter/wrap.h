/* SPDX-License-Identifier: Apache-2.0 */
/* Filters around one other filter, within the room. */
#ifndef RQ_FILTER_WRAP_H
#define RQ_FILTER_WRAP_H

#include "filter/filter_priv.h"

typedef struct rq__wrapping {
    rq_filter base;
    rq_filter *inner;
    bool tripped; /* Skip: exclude the row; While: the scan is over */
} rq__wrapping;

#endif
