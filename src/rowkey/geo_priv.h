/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files for areas and their covers. */
#ifndef RQ_ROWKEY_GEO_PRIV_H
#define RQ_ROWKEY_GEO_PRIV_H

#include "rowkey/rowkey_priv.h"

#define RQ__CORNERS_MAX 1000

/* An area, checked. */
typedef struct rq__area {
    rq_area_kind kind;
    rq_box bounds; /* the box; of a polygon with its unwrapped longitudes */
    rq_point center;
    double radius;     /* radians */
    rq_point *corners; /* unwrapped */
    size_t corner_count;
} rq__area;

/* The caller clears it, also after an error. */
RQ_NODISCARD
rq_err rq__area_take(const rq_area *from, rq__area *to, rq_error *why);
void rq__area_clear(rq__area *a);

typedef enum rq__relation { RQ__OUTSIDE, RQ__ACROSS, RQ__INSIDE } rq__relation;

rq__relation rq__area_relation(const rq__area *a, const rq_box *cell);
bool rq__area_has(const rq__area *a, rq_point p);

/* Cells of the grid of 5 × letters bits, [from, to). */
typedef struct rq__cells {
    uint64_t from, to;
} rq__cells;

typedef struct rq__cover {
    unsigned letters;
    size_t count;
    rq__cells *items; /* ascending, apart from each other */
} rq__cover;

/* The caller frees ret->items. */
RQ_NODISCARD
rq_err rq__cover_make(const rq__area *a, unsigned letters, size_t most, rq__cover *ret,
                      rq_error *why);
/* The range's first and last letters; an empty end means no limit. */
void rq__cells_letters(rq__cells c, unsigned letters, char from[RQ_GEOHASH_SIZE],
                       char to[RQ_GEOHASH_SIZE]);

#endif
