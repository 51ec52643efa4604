/* SPDX-License-Identifier: Apache-2.0 */
/* OpenTSDB's layout: declarations shared by the files for its keys and columns. */
#ifndef RQ_ROWKEY_TSDB_PRIV_H
#define RQ_ROWKEY_TSDB_PRIV_H

#include "rowkey/rowkey_priv.h"

enum {
    RQ__TSDB_UID = 3,
    RQ__TSDB_TIME = 4,
    RQ__TSDB_TAGS_MAX = 8,
    RQ__TSDB_ROW_S = 3600,
    RQ__TSDB_KEY_MAX = 1 + RQ__TSDB_UID + RQ__TSDB_TIME + RQ__TSDB_TAGS_MAX * 2 * RQ__TSDB_UID,
};

/* A column of one data point. */
typedef struct rq__tsdb_cell {
    uint8_t qualifier[4];
    uint8_t qualifier_len; /* 2: seconds, 4: milliseconds */
    uint8_t value[8];
    uint8_t value_len;
} rq__tsdb_cell;

/* The point's time is within the row's hour. */
void rq__tsdb_encode(const rq_tsdb_point *point, rq__tsdb_cell *ret);

/* What a column's points are given to. */
typedef rq_err (*rq__tsdb_take)(void *ctx, const rq_tsdb_value *value);
/* Calls `take` for each point of a column, single or compacted; the row's hour begins at base_s, in seconds since 1970.
 * For an annotation, which has no points, it is not called. RQ_E_MALFORMED, or an error of `take`. */
RQ_NODISCARD
rq_err rq__tsdb_decode(rq_slice qualifier, rq_slice value, uint32_t base_s, rq__tsdb_take take,
                       void *ctx, rq_error *why);

/* Metric and pairs of tags as UIDs. */
typedef struct rq__tsdb_ids {
    uint8_t metric[RQ__TSDB_UID];
    size_t tag_count;
    uint8_t tags[RQ__TSDB_TAGS_MAX][2 * RQ__TSDB_UID];
} rq__tsdb_ids;
/* A row's key, in `key` of RQ__TSDB_KEY_MAX bytes; sorts the tags. salt_buckets 0: no salt. */
size_t rq__tsdb_key(rq__tsdb_ids *ids, uint32_t base_s, uint32_t salt_buckets, uint8_t *key);

/* --- tsdb.c ----------------------------------------------------------------------------------- */

uint32_t rq__tsdb_salt_buckets(const rq_tsdb *t);
rq_table *rq__tsdb_data(const rq_tsdb *t);
rq_table *rq__tsdb_uids(const rq_tsdb *t);
/* The UID of a metric (0), tag name (1) or tag value (2); makes none. */
RQ_NODISCARD
rq_err rq__tsdb_uid(rq_tsdb *t, int kind, const char *name, uint8_t uid[RQ__TSDB_UID],
                    bool *ret_found, rq_failure *why);

/* --- tsdb_read.c ------------------------------------------------------------------------------ */

typedef rq_err (*rq__tsdb_take_row)(void *ctx, const rq_row *row);
/* Gives the rows of a metric's hours in [from, to), bucket by bucket. */
RQ_NODISCARD
rq_err rq__tsdb_scan(rq_tsdb *t, const uint8_t metric[RQ__TSDB_UID], int64_t from_ms, int64_t to_ms,
                     rq__tsdb_take_row take, void *ctx, rq_failure *why);

#endif
